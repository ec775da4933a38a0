"""What each placement of a task finds counted: remote, local and failed faults since they were last cleared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.decisions.tasks import Track
from numalab.kernel import Kernel
from numalab.layout import Ints
from numalab.model import period
from numalab.readers.recorded import Recording
from numalab.readers.trace import FAULT_LOCAL, MIGRATE_FAIL


@dataclass(frozen=True)
class Counted:
    """Counts at one placement.

    Attributes
    ----------
    seen : int
        Faults since the counts were cleared.
    low, high : (3,) int
        Remote, local, failed, with the least and the most faults that can have counted as local: a shared
        fault between active nodes of the group does, and those nodes are not recorded.
    kinds : (2,) int
        Faults since the placement before, shared and private.
    doubles : bool
        The placement doubles the scan period.
    """

    seen: int
    low: Ints
    high: Ints
    kinds: Ints
    doubles: bool


def counts(recording: Recording, track: Track, kernel: Kernel) -> list[Counted]:
    """Count for each placement of a task."""
    low, high, out = np.zeros(3, np.int64), np.zeros(3, np.int64), []
    ones = np.ones(1, np.int64)
    for j, placement in enumerate(track.placements):
        remote, local, failed, unclear = _between(recording, track, j, kernel)
        low = low + np.array([remote, local, failed])
        high = high + np.array([remote - unclear, local + unclear, failed])
        kinds = placement.buffered.sum(axis=0)
        # a shared fault is enough not to be idle, and only shared ones are unclear: low and high agree
        _, doubles = period.adapted(kernel, ones, low[None], kinds[None], (ones, ones, ones), ones)
        out.append(Counted(int(low[:2].sum()), low, high, kinds, bool(doubles[0])))
        if kernel.doubling_clears_counts or not doubles[0]:
            low, high = np.zeros(3, np.int64), np.zeros(3, np.int64)
    return out


def _between(recording: Recording, track: Track, j: int, kernel: Kernel) -> tuple[int, int, int, int]:
    """Count pages of remote, local, failed faults since the placement before, and the remote ones that are unclear."""
    start, end = track.placements[j - 1].fault if j else 0, track.placements[j].fault
    rows = track.rows[start:end]
    pages, flags = recording.decisions.pages[rows].astype(np.int64), recording.decisions.flags[rows]
    local, failed = (flags & FAULT_LOCAL) != 0, (flags & MIGRATE_FAIL) != 0
    unclear = ~local & ~track.private[start:end] & (kernel.shared_group_local != "off")
    remote, near, lost, open_ = (int(pages[which].sum()) for which in (~local, local, failed, unclear))
    return remote, near, lost, open_
