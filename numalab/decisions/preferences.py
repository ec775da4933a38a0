"""Preferred nodes and group sums: what placements chose, and what the printed sums of groups are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numalab.decisions.history import History
from numalab.decisions.tasks import READ_WITHIN_S, Placement, Track
from numalab.kernel import Kernel
from numalab.layout import Ints
from numalab.model import placing, topology
from numalab.readers.recorded import Recording

#: A moment later: with what happened at a moment itself.
AFTER_S = 1e-9


@dataclass
class Tally:
    """Comparisons: decidable ones, equal ones, those that could not be made, and when some differed."""

    decidable: int = 0
    equal: int = 0
    unknown: int = 0
    differ: list[float] = field(default_factory=list)

    def add(self, time: float, equal: bool | None) -> None:
        """Count one; None: it could not be made."""
        if equal is None:
            self.unknown += 1
            return
        self.decidable += 1
        self.equal += equal
        if not equal:
            self.differ.append(time)


def preferred(recording: Recording, history: History, kernel: Kernel) -> Tally:
    """Compare the node each placement chooses by rule with the one that was set."""
    out = Tally()
    for track in history.tracks.values():
        for placement in track.placements:
            out.add(placement.time, _chosen_equal(recording, history, kernel, track, placement))
    return out


def _chosen_equal(
    recording: Recording, history: History, kernel: Kernel, track: Track, placement: Placement
) -> bool | None:
    choices = _choices(recording, history, kernel, track, placement)
    had = history.preferred(track.pid, placement.time)
    if had is None or len(choices) != 1:
        return None
    (choice,) = choices
    set_to = _settings(recording, track, placement)
    if choice in (had, -1):
        # a task that is elsewhere tries to move in the same fault, and what it finds may become preferred
        return not set_to or placement.node != choice
    return bool(set_to) and set_to[0] == choice


def _choices(recording: Recording, history: History, kernel: Kernel, track: Track, placement: Placement) -> set[int]:
    """Return the nodes a placement may choose; none if what it depends on is not known."""
    time = placement.time + AFTER_S
    groups = history.groups.members(track.pid, time)
    if groups is None or not track.known(placement.time):
        return set()
    own = placement.mem.sum(axis=1)[None]
    out = set()
    for members in groups:
        faults = history.group_faults(members, time)
        if faults is None:
            return set()
        chosen = placing.choice(
            kernel, topology.classify(recording.distance, kernel), recording.distance,
            (own, own.sum(axis=1)), (faults.mem[None], faults.mem[None].sum(axis=1)), np.array([bool(members)]),
        )  # fmt: skip
        out.add(int(chosen[0]))
    return out


def _settings(recording: Recording, track: Track, placement: Placement) -> list[int]:
    """Return the nodes set as preferred in the fault of a placement."""
    d = recording.decisions
    until = track.times[placement.fault + 1] if placement.fault + 1 < len(track.times) else float("inf")
    inside = (d.preferred_pid == track.pid) & (d.preferred_time >= placement.time) & (d.preferred_time < until)
    nodes: list[int] = d.preferred_node[inside].tolist()
    return nodes


def group_sums(recording: Recording, history: History) -> Tally:
    """Compare the printed sums of groups with those of their members, each time they change."""
    out = Tally()
    for track in history.tracks.values():
        before = None
        for sample in track.samples:
            printed = np.array([(node.group_shared, node.group_private) for _, node in sorted(sample.faults.items())])
            time = float("nan") if sample.time is None else sample.time
            if sample.group and (before is None or not np.array_equal(printed, before)):
                equal = [_sums_equal(history, track, at, printed) for at in _moments(history, time)]
                out.add(time, None if None in equal or time > recording.loss_s else True in equal)
            before = printed if sample.group else None
    return out


def _moments(history: History, time: float) -> list[float]:
    """Return the moments a sample may show: tasks may be placed between its stamp and the look."""
    placements = (placement.time for track in history.tracks.values() for placement in track.placements)
    return [time, *(at + AFTER_S for at in placements if time <= at <= time + READ_WITHIN_S)]


def _sums_equal(history: History, track: Track, time: float, printed: Ints) -> bool | None:
    groups = history.groups.members(track.pid, time)
    if groups is None or len(groups) != 1 or not all(history.tracks[member].known(time) for member in groups[0]):
        return None
    sums = sum((history.tracks[member].mem(time) for member in groups[0]), np.zeros_like(printed))
    return bool(np.array_equal(sums, printed))
