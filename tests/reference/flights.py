"""Pages in flight: migrations that outlast their step, and who sleeps for them (docs/model.md, 4.2, 4.5, 4.8)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from numalab.layout import RANDOM
from tests.reference.draws import MEET, draw, exponential

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.faults import Fault
    from tests.reference.oracle import Oracle


def wake(o: Oracle) -> None:
    """4.2: sleepers whose page has arrived wake, the others sleep through the step."""
    moved = set(o.moving)
    for t, b in enumerate(o.waits_for):
        if b < 0:
            continue
        # spec 4.2: "no task": not the sleeper itself either
        if b in moved:
            o.waited_ns[t] += o.dt
        else:
            o.waits_for[t] = -1


def owed(o: Oracle) -> dict[int, int]:
    """4.2: what each task that is moving a page owes, in ns."""
    return {t: o.debt_ns[t] + o.wait_ns[t] + o.spin_ns[t] for t, b in enumerate(o.moving) if b >= 0}


def go_on(o: Oracle, before: dict[int, int]) -> None:
    """4.2: whose page is in flight, who is done with it; before: what tasks owed before they ran."""
    # spec 4.2: of every task, running or not: the flight of one that does not run rests
    o.in_flight = [False] * o.T
    for t, now in owed(o).items():
        o.in_flight[t] = before[t] <= o.moving_ns[t] and now > 0
        if now <= 0:
            o.moving[t] = -1  # spec 4.2: moving_ns stays


def gather(o: Oracle) -> None:
    """4.5: the pages in flight by region and block, the tasks that move each, and what these still owe."""
    o.flights, o.left = {}, {}
    if not any(o.in_flight):
        return
    o.left = owed(o)
    # spec 4.5: a block's place in the "order of the moving tasks" is that of its first, in flight or not
    for u in o.left:
        b = o.moving[u]
        movers = o.flights.setdefault(o.block_region[b], {}).setdefault(b, [])
        if o.in_flight[u]:
            movers.append(u)


def source(o: Oracle, t: int, b: int) -> int:
    """4.6, 0: the node block b comes from if it is in flight of another task than t, else -1."""
    movers = o.flights.get(o.block_region[b], {}).get(b, [])
    return next((o.moving_from[u] for u in movers if u != t), -1)


def held(o: Oracle, t: int, b: int) -> bool:
    """4.5: whether block b is held against task t, which must not be moving one itself, in flight or not."""
    if o.moving[t] >= 0:
        return False
    movers = o.flights.get(o.block_region[b], {}).get(b, [])
    return any(lost(o, t, u) for u in movers)


def lost(o: Oracle, t: int, u: int) -> bool:
    """4.5: whether the process of task t has lost the page that task u is moving."""
    m, j = unmapped_before(o, o.block_region[o.moving[u]], o.lay.task_process[t])
    # spec 4.5: not while more is left than it takes (a scan came in between), even where no process comes before
    return j * o.moving_ns[u] < m * (o.moving_ns[u] - o.left[u])


def unmapped_before(o: Oracle, g: int, process: int) -> tuple[int, int]:
    """4.5: how many processes map region g, and how many of them lose its pages before this one."""
    return len(o.mappers[g]), bisect_left(o.mappers[g], process)


def meet(o: Oracle, t: int, b: int) -> None:
    """4.5: task t comes upon held block b and sleeps from the next step on; only its first in the step counts."""
    if o.waits_for[t] < 0:  # a task that touches memory was not asleep
        o.waits_for[t] = b
        o.counters["migration_waits"] += 1


def nearest_held(o: Oracle, t: int, g: int, pos: int) -> int | None:
    """4.5, sequential: blocks from pos to the nearest held block of region g, none if none is held."""
    first, blocks = o.lay.region_first[g], o.lay.region_blocks[g]
    return min(((b - first - pos) % blocks for b in o.flights.get(g, {}) if held(o, t, b)), default=None)


def meet_at_random(o: Oracle, live: dict[int, int]) -> None:
    """4.5: random accesses come upon held blocks, trapped or not, by chance."""
    if not o.flights:
        return
    for a, rate in live.items():
        if o.lay.access_order[a] != RANDOM:
            continue
        t, g = o.lay.access_task[a], o.lay.vma_region[o.lay.access_vma[a]]
        touched = rate * o.useful[t] // 1000
        for b in o.flights.get(g, {}):
            if not held(o, t, b):
                continue
            chance = exponential(draw(o.seed, MEET, b * len(o.lay.access_task) + a, o.i))
            if chance * o.region_pages[g] <= touched * o.lay.region_block_pages[g]:
                meet(o, t, b)


def note(o: Oracle, listed: list[Fault], takes: Callable[[Fault], int]) -> dict[int, Fault]:
    """4.8: tasks that still owe time for their last migration hold its block; by task, the faults left out of X."""
    # spec 4.8: "counted" read as listed for the rounds: no later finder's, no large folio that is not accounted
    last: dict[int, Fault] = {f.task: f for f in listed}
    left_out = {}
    for t, f in last.items():
        # spec 4.8: spin_ns does not count here; a task with some left has no useful time, so no fault
        if f.migrated and o.debt_ns[t] + o.wait_ns[t] > 0 and o.waits_for[t] < 0:
            o.moving[t], o.moving_from[t], o.moving_ns[t] = f.block, f.src, takes(f)
            if takes(f) > o.dt:
                left_out[t] = f
    return left_out
