"""Fault sums of each task: recorded faults go through the rules and must give what the kernel printed.

When a task was placed is not recorded. But each placement folds the faults since the one before into the
printed sums, so of all moments between two samples at most one can give the sums that were printed (each
fault changes them). That moment is taken; when there is none, faults were classified, counted or decayed
otherwise than the kernel did.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import placing
from numalab.readers import sched
from numalab.readers.recorded import Recording
from numalab.readers.trace import MIGRATE_FAIL

#: A sample shows its task up to this long after its stamp.
READ_WITHIN_S = 0.05
PID_MASK = 255

#: A placement: faults folded in before it and with it, and the sums after it.
Step = tuple[int, int, Ints]


@dataclass(frozen=True)
class Placement:
    """A placement that a task went through.

    Attributes
    ----------
    fault : int
        How many faults of the task were counted before; it ran in the next one.
    time : float
    node : int
        Of the CPU it ran on.
    mem : (N, 2) int
        Faults on memory after it, shared and private.
    buffered, cpu_buffered : (N, 2) int
        What it folded in.
    failed : int
        Pages of failed migrations since the placement before.
    """

    fault: int
    time: float
    node: int
    mem: Ints
    buffered: Ints
    cpu_buffered: Ints
    failed: int


@dataclass
class Sums:
    """Comparisons of printed sums with replayed ones.

    Attributes
    ----------
    changed, equal : int
        Samples whose sums differ from those before, and those of them that the rules give in just one way.
    several : int
        Those that the rules can give in several ways: when placements happened is not known.
    totals : int
        Samples whose total_numa_faults is the sum of the faults.
    placements, faults : int
        Placements between them whose moment is known, and faults whose class and node they confirm.
    doubtful : int
        Faults counted up to a sample that the rules do not give.
    lost : int
        Samples that differ after events were lost.
    differ : list of float
        When the samples were taken that the rules do not give.
    """

    changed: int = 0
    equal: int = 0
    several: int = 0
    totals: int = 0
    placements: int = 0
    faults: int = 0
    doubtful: int = 0
    lost: int = 0
    differ: list[float] = field(default_factory=list)


@dataclass
class Track:
    """What is known of one task.

    Attributes
    ----------
    pid, process : int
    rows : (K,) int
        Its hint faults in the recording, in order.
    times : list of float
        Of these.
    private : (K,) bool
        How they count.
    samples : list of sched.Task
    placements : list of Placement
    unknown : list of (float, float)
        From, to: times in which the sums are not known. From the first on placements may be missing or
        misplaced, so what only they tell (faults by CPU, scan period) stays unknown; see `whole`.
    sums : Sums
    """

    pid: int
    process: int
    rows: Ints
    times: list[float]
    private: Bools
    samples: list[sched.Task]
    placements: list[Placement] = field(default_factory=list)
    unknown: list[tuple[float, float]] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)

    def placed_before(self, time: float) -> int:
        """Return how many placements happened before a moment."""
        return bisect_left([placement.time for placement in self.placements], time)

    def known(self, time: float) -> bool:
        """Tell whether the sums at a moment are known."""
        return not any(start <= time <= end for start, end in self.unknown)

    def whole(self, time: float) -> bool:
        """Tell whether every placement until a moment is known."""
        return all(time < start for start, _ in self.unknown)

    def mem(self, time: float) -> Ints:
        """Return the faults on memory at a moment: (N, 2)."""
        done = self.placed_before(time)
        return self.placements[done - 1].mem if done else np.zeros_like(_printed(self.samples[0]))


def tracks(recording: Recording) -> dict[int, Track]:
    """Follow every task that was sampled.

    Returns
    -------
    dict
        tid -> Track.
    """
    out = {}
    for pid, samples in recording.samples.items():
        rows = np.flatnonzero(recording.decisions.pid == pid)
        private = _private(recording, rows, pid)
        track = Track(pid, samples[0].pid, rows, recording.decisions.time[rows].tolist(), private, samples)
        _follow(recording, track)
        out[pid] = track
    return out


def _private(recording: Recording, rows: Ints, pid: int) -> Bools:
    """Classify faults: first touch, or own page.

    A fault that asks for a join and is refused is private too. That happens between processes only, on memory
    not mapped as shared; no trace has such a fault, and one would show in the sums.
    """
    d = recording.decisions
    return (d.last_cpu[rows] < 0) | (d.last_pid[rows] == pid & PID_MASK)


def _printed(sample: sched.Task) -> Ints:
    return np.array([(node.shared, node.private) for _, node in sorted(sample.faults.items())], np.int64)


def _follow(recording: Recording, track: Track) -> None:
    """Find the placements between samples."""
    counted = _Counted(recording, track)
    sums, last = track.sums, track.samples[0]
    now, starts, before = _printed(last), range(1), float("-inf")
    lost_since = before if now.any() else None
    if now.any():
        starts = range(counted.upto(_time(last)) + 1)
    for sample in track.samples:
        printed, time = _printed(sample), _time(sample)
        if time > recording.loss_s:
            sums.lost += not np.array_equal(printed, now)
        elif not np.array_equal(printed, now):
            scans = (sample.scan_seq or 0) - (last.scan_seq or 0)
            ways = counted.ways(now, printed, starts, counted.upto(time + READ_WITHIN_S), twice=scans > 1)
            sums.totals += sample.total == int(printed.sum())
            starts = _take(counted, track, ways, starts, counted.upto(time))
            if not ways:
                sums.differ.append(time)
            if len(starts) > 1:
                lost_since = before if lost_since is None else lost_since
            elif lost_since is not None:
                track.unknown.append((lost_since, track.placements[-1].time))
                lost_since = None
            elif len(ways) > 1:
                track.unknown.append((before, time))
        now, before, last = printed, time, sample
    ends = [recording.loss_s] if lost_since is None else [recording.loss_s, lost_since]
    if min(ends) < float("inf"):
        track.unknown.append((min(ends), float("inf")))


def _take(counted: _Counted, track: Track, ways: list[list[Step]], starts: range, end: int) -> range:
    """Take down the placements of the one way there is; returns how many faults may be folded in by then."""
    sums = track.sums
    sums.changed += 1
    sums.equal += len(ways) == 1
    sums.several += len(ways) > 1
    ends = sorted({way[-1][1] for way in ways})
    if len(ways) == 1:
        (way,) = ways
        track.placements += [counted.placement(*step) for step in way]
        sums.placements += len(way)
        sums.faults += ends[0] - max(way[0][0], starts[-1])
    elif not ways:
        sums.doubtful += end - starts[-1]
    elif len(ends) == 1:
        # when is not certain, but what comes next can still be followed
        track.placements += [counted.placement(*step) for step in ways[0]]
    return range(ends[0], ends[-1] + 1) if ends else range(starts[0], end + 1)


def _time(sample: sched.Task) -> float:
    return float("nan") if sample.time is None else sample.time


class _Counted:
    """Running counts of a task's faults by node and kind, to look sums up in."""

    def __init__(self, recording: Recording, track: Track) -> None:
        d, nodes = recording.decisions, int(recording.node_of.max()) + 1
        self._track = track
        rows = track.rows
        pages, kind = d.pages[rows].astype(np.int64), track.private.astype(np.int64)
        self._node = recording.node_of[d.cpu[rows]]
        self._mem = _running(nodes, d.node[rows].astype(np.int64), kind, pages)
        self._cpu = _running(nodes, self._node, kind, pages)
        failed = np.where(d.flags[rows] & MIGRATE_FAIL, pages, 0)
        self._failed = np.r_[0, failed.cumsum()]
        self._total = self._mem.sum(axis=(1, 2))
        mine = recording.decisions.preferred_time[recording.decisions.preferred_pid == track.pid]
        # the fault that a setting happens in is the last one begun
        self._sets = {self.upto(time) - 1 for time in mine.tolist()}

    def upto(self, time: float) -> int:
        """Return how many faults came until a moment."""
        return bisect_right(self._track.times, time)

    def ways(self, before: Ints, after: Ints, starts: range, end: int, *, twice: bool) -> list[list[Step]]:
        """Find all ways to get from sums to others in the faults up to ``end``.

        A placement that changes the preferred node is recorded, so ways that explain more of these count only.

        Parameters
        ----------
        before, after : (N, 2) int
        starts : range
            How many faults may have been folded in before.
        end : int
        twice : bool
            The scan sequence allows for two placements.

        Returns
        -------
        list of list of Step
        """
        out: list[list[Step]] = []
        for start in starts:
            at = self._at(before, after, start, end)
            if at is not None:
                out.append([(start, at, after)])
        if twice and len(starts) == 1:
            out += self._by_two(before, after, starts[0], end)
        most = max((self._explained(way, starts[0], end) for way in out), default=0)
        return [way for way in out if self._explained(way, starts[0], end) == most]

    def _by_two(self, before: Ints, after: Ints, start: int, end: int) -> list[list[Step]]:
        """Find the ways by two placements."""
        out: list[list[Step]] = []
        for first in range(start, end):
            between = before + placing.memory_change(before, self._mem[first] - self._mem[start])
            at = self._at(between, after, first, end)
            if at is not None and not np.array_equal(between, before):
                out.append([(start, first, between), (first, at, after)])
        return out

    def _explained(self, way: list[Step], start: int, end: int) -> int:
        """Count the settings of the preferred node that happened in the faults of a way's placements."""
        return len(self._sets & {at for _, at, _ in way if start <= at <= end})

    def _at(self, before: Ints, after: Ints, start: int, end: int) -> int | None:
        """Return the number of faults after which a placement gives ``after``; None: there is none."""
        # what must have been buffered: the change that an empty buffer leaves out
        missing = after - before - placing.memory_change(before, np.zeros_like(before))
        if (missing < 0).any():
            return None
        at = int(np.searchsorted(self._total, self._total[start] + missing.sum()))
        fits = at < min(end, len(self._track.rows)) and np.array_equal(self._mem[at], self._mem[start] + missing)
        return at if fits else None

    def placement(self, start: int, at: int, mem: Ints) -> Placement:
        """Describe a step."""
        return Placement(
            fault=at,
            time=self._track.times[at],
            node=int(self._node[at]),
            mem=mem,
            buffered=self._mem[at] - self._mem[start],
            cpu_buffered=self._cpu[at] - self._cpu[start],
            failed=int(self._failed[at] - self._failed[start]),
        )


def _running(nodes: int, node: Ints, kind: Ints, pages: Ints) -> Ints:
    """Return counts before each fault and after the last: (K + 1, N, 2)."""
    each = np.zeros((len(node), nodes, 2), np.int64)
    each[np.arange(len(node)), node, kind] = pages
    return np.concatenate([np.zeros((1, nodes, 2), np.int64), each.cumsum(axis=0)])
