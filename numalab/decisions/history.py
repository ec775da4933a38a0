"""What a task and its group were like at a moment: sums with bounds, preferred node, scan sequence seen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from numalab.decisions import locality, runtime
from numalab.decisions.groups import Groups
from numalab.decisions.runtime import CpuFaults
from numalab.decisions.tasks import Track
from numalab.kernel import Kernel
from numalab.layout import Ints
from numalab.readers.recorded import Recording

#: A scan may be under way for this long, so that its end, which counts, comes after a sample.
SCAN_WITHIN_S = 1.0


@dataclass(frozen=True)
class GroupFaults:
    """Faults of a group by node: on memory, and bounds of those by CPU: (N,) each."""

    mem: Ints
    cpu_low: Ints
    cpu_high: Ints


class History:
    """Looks up what is known of tasks at a moment.

    Parameters
    ----------
    recording, tracks, groups, kernel
    """

    def __init__(self, recording: Recording, tracks: Mapping[int, Track], groups: Groups, kernel: Kernel) -> None:
        self.tracks, self.groups = tracks, groups
        self._nodes = int(recording.node_of.max()) + 1
        self.counted = {tid: locality.counts(recording, track, kernel) for tid, track in tracks.items()}
        self._cpu: dict[int, CpuFaults] = {
            tid: runtime.cpu_faults(track, [each.seen for each in self.counted[tid]], self._nodes)
            for tid, track in tracks.items()
        }
        self._preferred = {tid: _preferred(recording, track) for tid, track in tracks.items()}
        self._sequences = _sequences(recording, tracks)
        self._seen = {tid: self._bound_seen(track) for tid, track in tracks.items()}

    def group_faults(self, members: Sequence[int], time: float) -> GroupFaults | None:
        """Sum up the faults of a group's members at a moment; None when one's are not known."""
        mem, low, high = (np.zeros(self._nodes, np.int64) for _ in range(3))
        for member in members:
            track = self.tracks[member]
            if not track.known(time):
                return None
            mem += track.mem(time).sum(axis=1)
            if not track.whole(time):
                high += runtime.MOST
                continue
            done = track.placed_before(time)
            low += self._cpu[member].low[done].sum(axis=1)
            high += self._cpu[member].high[done].sum(axis=1)
        return GroupFaults(mem, low, high)

    def preferred(self, task: int, time: float) -> int | None:
        """Return a task's preferred node at a moment, -1 for none; None when it is not known."""
        times, nodes = self._preferred[task]
        return nodes[bisect_left(times, time)]

    def sequence(self, process: int, time: float) -> tuple[int, int]:
        """Bound the scan sequence of a process at a moment."""
        samples, scans = self._sequences[process]
        at = bisect_left(samples, (time, -1))
        before = samples[at - 1] if at else (float("-inf"), 0)
        begun = bisect_left(scans, time) - bisect_left(scans, before[0] - SCAN_WITHIN_S)
        most = before[1] + begun
        if at < len(samples):
            after = samples[at][1]
            # forking may set it back to 0
            return (before[1], min(most, after)) if after >= before[1] else (0, most)
        return before[1], most

    def seen(self, task: int, time: float) -> tuple[int, int]:
        """Bound the scan sequence a task saw at its last placement before a moment."""
        return self._seen[task][self.tracks[task].placed_before(time)]

    def _bound_seen(self, track: Track) -> list[tuple[int, int]]:
        """Bound what a task saw before its first placement and at each: it places when the sequence has gone on."""
        start = track.samples[0].scan_seq or 0
        bounds = [(0, start), *(self.sequence(track.process, placement.time) for placement in track.placements)]
        sequences = [sequence for _, sequence in self._sequences[track.process][0]]
        if sequences != sorted(sequences) or track.unknown:
            return bounds
        low, high = [low for low, _ in bounds], [high for _, high in bounds]
        for j in range(1, len(bounds)):
            low[j] = max(low[j], low[j - 1] + 1)
        for j in range(len(bounds) - 2, -1, -1):
            high[j] = min(high[j], high[j + 1] - 1)
        return list(zip(low, high, strict=True))


def _preferred(recording: Recording, track: Track) -> tuple[list[float], list[int | None]]:
    """Return when a task's preferred node was set, and its values before the first time and after each."""
    d = recording.decisions
    mine = d.preferred_pid == track.pid
    times: list[float] = d.preferred_time[mine].tolist()
    first = track.samples[0]
    early = first.time is not None and (not times or first.time < times[0])
    return times, [first.preferred if early else None, *d.preferred_node[mine].tolist()]


def _sequences(
    recording: Recording, tracks: Mapping[int, Track]
) -> dict[int, tuple[list[tuple[float, int]], list[float]]]:
    """Return for each process its printed scan sequences, and when scans began."""
    samples: dict[int, list[tuple[float, int]]] = {}
    for track in tracks.values():
        rows = samples.setdefault(track.process, [])
        rows += [(s.time, s.scan_seq) for s in track.samples if s.time is not None and s.scan_seq is not None]
    d = recording.decisions
    process = {tid: track.process for tid, track in tracks.items()}
    scans: dict[int, list[float]] = {pid: [] for pid in samples}
    for pid, time in zip(d.scan_pid.tolist(), d.scan_time.tolist(), strict=True):
        if pid in process:
            scans[process[pid]].append(time)
    return {pid: (sorted(rows), sorted(scans[pid])) for pid, rows in samples.items()}
