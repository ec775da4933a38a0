"""NUMA groups: who founded one and who joined whose, from faults; held against the printed numa_group_id.

Founding is certain: the first fault on another's page that may group does it. Joining asks for the last user to be
running on the page's last CPU, and on a tie for the order of the groups' addresses. Neither is recorded, so
a join is placed at the first fault where the rule allows it and the trace shows the last user on that CPU
before and after, and where that leaves a choice of moments, membership between them counts as unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from numalab.decisions.tasks import PID_MASK, READ_WITHIN_S, Track
from numalab.readers.recorded import Recording
from numalab.readers.trace import NO_GROUP, SHARED

NONE = 0
#: More tasks whose group is unknown at once are not tried in all combinations.
MOST_UNKNOWN = 4


@dataclass(frozen=True)
class Change:
    """A task gets a group, at some time from ``first`` to ``last``."""

    first: float
    last: float
    group: int


@dataclass
class Joins:
    """Comparisons with the printed groups.

    Attributes
    ----------
    founded, founded_equal : int
        Groups founded by rule or in print, and those in both.
    joined, joined_equal : int
        Joins in print, and those for which a fault asks that the rule allows.
    asked : int
        Samples before which a join was due by rule but is not in print.
    lost : int
        Changes in print after events were lost.
    """

    founded: int = 0
    founded_equal: int = 0
    joined: int = 0
    joined_equal: int = 0
    asked: int = 0
    lost: int = 0


@dataclass
class Groups:
    """Groups over time.

    Attributes
    ----------
    changes : dict
        tid -> its changes in order.
    ends : dict
        tid -> when it was last seen; later it may have left its group.
    joins : dict
        tid -> Joins.
    """

    changes: dict[int, list[Change]]
    ends: dict[int, float]
    joins: dict[int, Joins] = field(default_factory=dict)

    def possible(self, task: int, time: float) -> list[int]:
        """Return the groups a task may have at a moment."""
        now = [NONE]
        for change in self.changes[task]:
            if change.first >= time:
                break
            now = [*now, change.group] if time <= change.last else [change.group]
        if time > self.ends[task] and now != [NONE]:
            now = [*now, NONE]
        return list(dict.fromkeys(now))

    def last(self, task: int, time: float) -> int:
        """Return the last group a task is known to have got until a moment."""
        return next((change.group for change in reversed(self.changes[task]) if change.first <= time), NONE)

    def size(self, group: int, time: float) -> tuple[int, int]:
        """Return the least and the largest number of sampled tasks in a group at a moment."""
        possible = [self.possible(task, time) for task in self.changes]
        return sum(groups == [group] for groups in possible), sum(group in groups for groups in possible)

    def members(self, task: int, time: float) -> list[tuple[int, ...]] | None:
        """Return the possible memberships of a task's group at a moment; () for no group, None: too many."""
        # the task itself is there to ask
        possible = {other: self.possible(other, time) for other in self.changes}
        possible[task] = [g for g in possible[task] if g != NONE or time <= self.ends[task]]
        unsure = [other for other, groups in possible.items() if len(groups) > 1]
        if len(unsure) > MOST_UNKNOWN:
            return None
        out: list[tuple[int, ...]] = []
        for choice in product(*(possible[other] for other in unsure)):
            group = {other: groups[0] for other, groups in possible.items()} | dict(zip(unsure, choice, strict=True))
            mine = group[task]
            out.append(() if mine == NONE else tuple(sorted(o for o, g in group.items() if g == mine)))
        return list(dict.fromkeys(out))


def follow(recording: Recording, tracks: Mapping[int, Track]) -> Groups:
    """Find the groups of all sampled tasks over time."""
    groups = Groups({tid: [] for tid in tracks}, {tid: _last_seen(recording, track) for tid, track in tracks.items()})
    for tid, track in tracks.items():
        groups.joins[tid] = Joins()
        _found(recording, track, groups)
    looks = [
        (new.time, tid, float("-inf") if old is None or old.time is None else old.time, new.group or NONE)
        for tid, track in tracks.items()
        for old, new in zip([None, *track.samples], track.samples, strict=False)
        if new.time is not None
    ]
    asking = _Asking(recording, tracks, groups)
    for time, tid, before, printed in sorted(looks):
        if time > recording.loss_s:
            groups.joins[tid].lost += printed != groups.last(tid, time)
        else:
            asking.compare(tid, before, time, printed)
    return groups


def _last_seen(recording: Recording, track: Track) -> float:
    times = [sample.time for sample in track.samples if sample.time is not None]
    return max([*times, *track.times[-1:]])


def _may_group(recording: Recording, track: Track) -> list[int]:
    """Return which faults, of a task's, found its group and ask for another's."""
    free = recording.decisions.flags[track.rows] & NO_GROUP == 0
    return np.flatnonzero(~track.private & free).tolist()


def _found(recording: Recording, track: Track, groups: Groups) -> None:
    """Take down when a task founds its group: at its first fault that may group."""
    joins, may = groups.joins[track.pid], _may_group(recording, track)
    founds = track.times[may[0]] if may else float("inf")
    without = [s.time for s in track.samples if s.group == NONE and s.time is not None and s.time <= recording.loss_s]
    having = [s.time for s in track.samples if s.group and s.time is not None and s.time <= recording.loss_s]
    if having:
        start, end = max(without, default=float("-inf")), having[0] + READ_WITHIN_S
        joins.founded += 1
        joins.founded_equal += start <= founds <= end
        first, last = (founds, founds) if start <= founds <= end else (start, having[0])
        groups.changes[track.pid].append(Change(first, last, track.pid))
        return
    joins.founded += founds <= max(without, default=float("-inf"))
    if founds < float("inf"):
        groups.changes[track.pid].append(Change(founds, founds, track.pid))


class _Asking:
    """Looks for the faults that ask for a join."""

    def __init__(self, recording: Recording, tracks: Mapping[int, Track], groups: Groups) -> None:
        self._d = recording.decisions
        self._tracks, self._groups = tracks, groups
        self._may = {tid: _may_group(recording, track) for tid, track in tracks.items()}
        self._next = dict.fromkeys(tracks, 0)
        self._by_bits: dict[int, list[int]] = {}
        for tid in tracks:
            self._by_bits.setdefault(tid & PID_MASK, []).append(tid)
        d = self._d
        times = np.concatenate([d.time, d.filter_time, d.scan_time])
        cpus = np.concatenate([d.cpu, d.filter_cpu, d.scan_cpu])
        pids = np.concatenate([d.pid, d.filter_pid, d.scan_pid])
        order = np.argsort(times, kind="stable")
        self._on = {
            cpu: (times[rows].tolist(), pids[rows].tolist())
            for cpu in np.unique(cpus).tolist()
            for rows in [order[cpus[order] == cpu]]
        }

    def compare(self, tid: int, before: float, time: float, printed: int) -> None:
        """Compare a task's printed group with the rules, and take down a join."""
        groups, joins = self._groups, self._groups.joins[tid]
        faults = self._due(tid, time)
        had = groups.last(tid, time)
        if printed == had:
            joins.asked += any(self._must_join(tid, fault, had) for fault in faults)
            return
        asks = [(at, sure) for fault in faults for at, sure in self._may_join(tid, fault, had, printed)]
        if had != NONE and printed != NONE:
            joins.joined += 1
            joins.joined_equal += bool(asks)
        if asks:
            last = next((at for at, sure in asks if sure), asks[-1][0])
            groups.changes[tid].append(Change(asks[0][0], last, printed))
        else:
            groups.changes[tid].append(Change(before, time, printed))

    def _due(self, tid: int, time: float) -> list[int]:
        """Return the faults that may group since the last call until a moment."""
        may, times, start = self._may[tid], self._tracks[tid].times, self._next[tid]
        end = start
        while end < len(may) and times[may[end]] <= time + READ_WITHIN_S:
            end += 1
        self._next[tid] = end
        return may[start:end]

    def _may_join(self, tid: int, fault: int, had: int, wanted: int) -> list[tuple[float, bool]]:
        """Say whether a fault can have made a task join a group: [(time, surely)], or []."""
        time = self._tracks[tid].times[fault]
        for other in self._last_users(tid, fault):
            there = wanted in (*self._groups.possible(other, time), self._printed_next(other, time))
            sizes = self._groups.size(had, time), self._groups.size(wanted, time)
            runs = self._runs(other, int(self._d.last_cpu[self._tracks[tid].rows[fault]]), time)
            if there and sizes[0][0] <= sizes[1][1] and runs is not False:
                return [(time, runs is True)]
        return []

    def _must_join(self, tid: int, fault: int, had: int) -> bool:
        """Say whether a fault must have made a task join a larger group."""
        time = self._tracks[tid].times[fault]
        for other in self._last_users(tid, fault):
            its = self._groups.possible(other, time)
            # the fault that founds a task's group goes on to ask for another's
            if len(its) > 1 or its[0] in (NONE, had) or self._groups.possible(tid, time) not in ([had], [NONE]):
                continue
            larger = self._groups.size(its[0], time)[0] > max(1, self._groups.size(had, time)[1])
            if larger and self._runs(other, int(self._d.last_cpu[self._tracks[tid].rows[fault]]), time) is True:
                return True
        return False

    def _last_users(self, tid: int, fault: int) -> list[int]:
        """Return the sampled tasks that may be a page's last user and whose group may be joined from here."""
        track = self._tracks[tid]
        row = track.rows[fault]
        shared = bool(self._d.flags[row] & SHARED)
        known = self._by_bits.get(int(self._d.last_pid[row]), [])
        return [o for o in known if o != tid and (shared or self._tracks[o].process == track.process)]

    def _printed_next(self, tid: int, time: float) -> int:
        later = (s.group or NONE for s in self._tracks[tid].samples if s.time is not None and s.time >= time)
        return next(later, NONE)

    def _runs(self, task: int, cpu: int, time: float) -> bool | None:
        """Say whether a task was running on a CPU: the events there before and after are its own; None: unclear."""
        times, pids = self._on.get(cpu, ([], []))
        at = bisect_right(times, time)
        around = [pids[i] == task for i in (at - 1, at) if 0 <= i < len(pids)]
        if all(around):
            return True if around else None
        return None if any(around) else False
