"""Scan periods, judged by when scans come: none may come before it is due.

The scan that begins puts the process's next one off by its own task's period; a placement that doubles a
period does so too. The period itself is not recorded. It is known between bounds: what counts as local may be
unclear, and a move between nodes may have put it back to its start. With the shortest period that is possible
a scan may still come too early, and then a rule is wrong.

How late a scan comes says less, since the task's run time counts, and scanning itself puts it off.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from numalab.decisions.locality import Counted
from numalab.decisions.tasks import Track
from numalab.kernel import Kernel
from numalab.model import period
from numalab.readers.recorded import Recording

#: Times of the kernel count in ticks of 4 ms; a tick late and a tick early.
TICK_S = 0.004
#: Two calls this close are one scan that two tasks competed for.
RACE_S = 0.05
PAGES_PER_MB = 256
#: Pages of a process that numa_maps.log may leave out, its small mappings.
UNLISTED = 2048
FAR = 1 << 30


@dataclass
class Scans:
    """Scans of one process.

    Attributes
    ----------
    due, kept : int
        Scans for which a moment before which they must not come is known, and those that kept to it.
    exact : int
        Of the due ones those whose bounds of the period were one number.
    early : list of float
        When one came too early.
    lost : int
        Scans after events were lost.
    """

    due: int = 0
    kept: int = 0
    exact: int = 0
    early: list[float] = field(default_factory=list)
    lost: int = 0


Bounds = tuple[int, int]


def compare(
    recording: Recording, tracks: Mapping[int, Track], counted: Mapping[int, list[Counted]], kernel: Kernel
) -> dict[int, Scans]:
    """Check when the scans of each process came.

    Returns
    -------
    dict
        pid -> Scans.
    """
    out: dict[int, Scans] = {}
    for process in sorted({track.process for track in tracks.values()}):
        members = [track for track in tracks.values() if track.process == process]
        out[process] = _process(recording, members, counted, kernel)
    return out


def _process(recording: Recording, members: list[Track], counted: Mapping[int, list[Counted]], kernel: Kernel) -> Scans:
    scans, limits = Scans(), _Limits(recording, kernel, members)
    periods = {track.pid: _Period(track, counted[track.pid], limits) for track in members}
    d = recording.decisions
    events = [(t, 1, pid) for t, pid in zip(d.scan_time.tolist(), d.scan_pid.tolist(), strict=True) if pid in periods]
    events += [
        (placement.time, 0, track.pid)
        for track in members
        for placement, each in zip(track.placements, counted[track.pid], strict=True)
        if each.doubles
    ]
    due: tuple[float, Bounds] | None = None
    before = float("-inf")
    for time, is_scan, pid in sorted(events):
        if not all(track.whole(time) for track in members):
            due = None
            scans.lost += is_scan * (time > recording.loss_s)
            continue
        if is_scan and time - before > RACE_S and due is not None:
            scans.due += 1
            scans.exact += due[1][0] == due[1][1]
            if time >= due[0] + due[1][0] / 1000 - TICK_S:
                scans.kept += 1
            else:
                scans.early.append(time)
        if is_scan:
            before = time
        due = (time, periods[pid].after(time) if not is_scan else periods[pid].before(time))
    return scans


class _Limits:
    """Bounds of the scan period that hold for every task of a process: (least, most) each, ms."""

    def __init__(self, recording: Recording, kernel: Kernel, members: list[Track]) -> None:
        def setting(name: str) -> int:
            value = recording.sysctl.get(name)
            return value if isinstance(value, int) else int(getattr(kernel, name))

        size = max(1, setting("scan_size_mb"))
        pages = recording.pages.get(members[0].process)
        fewest, most = (1, FAR) if pages is None else (_windows(pages, size), _windows(pages + UNLISTED, size))
        floor = 1000 // max(1, int(kernel.max_scan_window_mbps) // size)
        least, longest = setting("scan_period_min_ms"), setting("scan_period_max_ms")
        # a group stretches the longest period and the one to start with, by its number of tasks at most
        times = len(members) if kernel.group_scaled_period else 1
        self.shortest = (max(floor, least // most), max(floor, least // fewest))
        self.start = (self.shortest[0], self.shortest[1] * times)
        self.longest = (max(self.shortest[0], longest // most), max(self.shortest[1], longest // fewest * times))
        self.kernel = kernel


def _windows(pages: int, size_mb: int) -> int:
    return max(1, -(-pages // (size_mb * PAGES_PER_MB)))


class _Period:
    """Bounds of one task's scan period over time."""

    def __init__(self, track: Track, counted: list[Counted], limits: _Limits) -> None:
        kernel = limits.kernel
        fresh = (int(kernel.scan_delay_ms), int(kernel.scan_delay_ms))
        if track.pid == track.process or not kernel.thread_stagger:
            # its first scan puts it to the start value
            fresh = _either(fresh, limits.start)
        moved = _may_have_moved(track) if kernel.reset_period_on_cross_node or kernel.reset_period_on_numa_move else []
        self._times, self._bounds = [float("-inf")], [fresh]
        steps: list[tuple[float, Counted | None]] = [
            (placement.time, each) for placement, each in zip(track.placements, counted, strict=True)
        ]
        steps += [(time, None) for begin, end in moved for time in (begin, end)]
        for time, each in sorted(steps, key=lambda step: step[0]):
            now = self._bounds[-1]
            if each is not None:
                now = _adapted(now, each, limits)
            if each is None or any(begin <= time <= end for begin, end in moved):
                now = _either(now, limits.start)
            self._times.append(time)
            self._bounds.append(now)

    def before(self, time: float) -> Bounds:
        """Return the bounds just before a moment."""
        return self._bounds[bisect_left(self._times, time) - 1]

    def after(self, time: float) -> Bounds:
        """Return the bounds just after a moment."""
        return self._bounds[bisect_right(self._times, time) - 1]


def _either(one: Bounds, other: Bounds) -> Bounds:
    return min(one[0], other[0]), max(one[1], other[1])


def _adapted(now: Bounds, counted: Counted, limits: _Limits) -> Bounds:
    """Apply the rule of the period to both bounds; it grows with the period and with the local share."""
    out = []
    for i, counts in enumerate((counted.low, counted.high)):
        ends = (np.array([limit[i]]) for limit in (limits.shortest, limits.longest, limits.longest))
        shortest, longest, before = ends
        threshold = np.array([limits.kernel.numa_period_threshold])
        period_ms, _ = period.adapted(
            limits.kernel, np.array([now[i]]), counts[None], counted.kinds[None], (shortest, longest, before), threshold
        )
        out.append(int(period_ms[0]))
    return min(out), max(out)


def _may_have_moved(track: Track) -> list[tuple[float, float]]:
    """Return the times between samples in which a task changed its CPU, and those for which that is not known."""
    times = [sample.time or 0.0 for sample in track.samples]
    moves = [sample.values.get("se.nr_migrations") for sample in track.samples]
    out = [(float("-inf"), times[0])] if moves[0] != 0 else []
    pairs = range(1, len(times))
    out += [(times[i - 1], times[i]) for i in pairs if moves[i] is None or moves[i] != moves[i - 1]]
    return [*out, (times[-1], float("inf"))]
