"""The CPU part of fault sums, which the kernel does not print: bounds from the run times it does print.

At a placement the buffered faults by CPU are weighted with the share of time the task ran since the one before.
Time not run, ``se.exec_start - se.sum_exec_runtime``, never falls, so the samples around two placements bound
how much of it lies between them. The first placement takes the share from the load average instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.decisions.tasks import Track
from numalab.layout import Ints
from numalab.model import placing
from numalab.readers import sched

ONE = 1 << 16
#: A task's faults by CPU are less than this: each placement halves them and adds at most ONE.
MOST = 2 * ONE + 4
#: Largest load sum of one task, and the least of one that has been runnable without a break for 0.4 s.
LOAD_AVG_MAX, LOAD_SUM_FULL = 47742, 46718
#: In this time a sleeping task's load sum halves: 32 periods of 2^20 ns.
LOAD_HALF_NS = 32 << 20
#: A task's clock stands still between ticks (4 ms).
TICK_NS = 5_000_000


@dataclass(frozen=True)
class CpuFaults:
    """Bounds of a task's faults by CPU after each of its placements: (K + 1, N, 2) each, none before the first."""

    low: Ints
    high: Ints


def cpu_faults(track: Track, seen: list[int], nodes: int) -> CpuFaults:
    """Fold the buffered faults by CPU, with the least and the largest share of time the task can have run.

    Parameters
    ----------
    track : Track
    seen : list of int
        For each placement the faults since the counts of locality were cleared.
    nodes : int
    """
    low, high = [np.zeros((nodes, 2), np.int64)], [np.zeros((nodes, 2), np.int64)]
    for j, placement in enumerate(track.placements):
        least, most = _share(track, j)
        for bounds, share in ((low, least), (high, most)):
            change = placing.cpu_change(bounds[-1], placement.cpu_buffered, np.array(share), np.array(seen[j]))
            bounds.append(bounds[-1] + change)
    return CpuFaults(np.array(low), np.array(high))


def _share(track: Track, j: int) -> tuple[int, int]:
    """Bound the share of time a task ran before its j-th placement since the one before, of 65536."""
    here = _around(track, track.placements[j].time)
    if j == 0:
        return _first_share(here)
    there = _around(track, track.placements[j - 1].time)
    wall = round((track.placements[j].time - track.placements[j - 1].time) * 1e9)
    most_idle = wall if here[1] is None or there[0] is None else _idle(here[1]) - _idle(there[0])
    least_idle = 0 if here[0] is None or there[1] is None else _idle(here[0]) - _idle(there[1])
    shortest, longest = max(0, wall - TICK_NS), wall + TICK_NS
    least = max(0, shortest - max(0, most_idle)) * ONE // (shortest + 1)
    most = max(0, longest - max(0, least_idle)) * ONE // (longest + 1)
    return min(least, most), most


def _first_share(around: tuple[sched.Task | None, sched.Task | None]) -> tuple[int, int]:
    before, after = around
    least = 0.0
    if before is not None and after is not None:
        least = min(before.values.get("se.avg.load_sum", 0.0), LOAD_SUM_FULL)
        if before.values.get("nr_voluntary_switches") != after.values.get("nr_voluntary_switches"):
            # it slept, at most as long as it did not run
            least *= 0.5 ** (max(0, _idle(after) - _idle(before)) / LOAD_HALF_NS)
    return int(least) * ONE // (LOAD_AVG_MAX + 1), LOAD_AVG_MAX * ONE // (LOAD_AVG_MAX + 1)


def _around(track: Track, time: float) -> tuple[sched.Task | None, sched.Task | None]:
    """Return the samples before and after a moment; one without a start time was on its way to another CPU."""
    told = [sample for sample in track.samples if sample.values.get("se.exec_start")]
    before = [sample for sample in told if sample.time is not None and sample.time < time]
    after = [sample for sample in told if sample.time is not None and sample.time >= time]
    return (before[-1] if before else None), (after[0] if after else None)


def _idle(sample: sched.Task) -> int:
    """Return the time a task has not run until its clock last moved, ns."""
    return round((sample.values["se.exec_start"] - sample.values["se.sum_exec_runtime"]) * 1e6)
