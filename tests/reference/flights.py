"""Pages in flight: migrations that outlast their step, and who sleeps for them (docs/model.md, 4.2, 4.5, 4.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numalab.layout import RANDOM
from tests.reference.draws import MEET, draw, exponential

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.faults import Fault
    from tests.reference.oracle import Oracle


def wake(o: Oracle) -> None:
    """4.2: sleepers whose page has arrived wake, the others sleep through the step."""
    for t in range(o.T):
        if o.waits_for[t] < 0:
            continue
        # spec 4.2: "no task": not the sleeper itself either
        if o.waits_for[t] in o.moving:
            o.waited_ns[t] += o.dt
        else:
            o.waits_for[t] = -1


def owed(o: Oracle) -> list[int]:
    """4.2: what each task owes, in ns."""
    return [sum(times) for times in zip(o.debt_ns, o.wait_ns, o.spin_ns, strict=True)]


def go_on(o: Oracle, before: list[int]) -> None:
    """4.2: whose page is in flight, who is done with it; before: what tasks owed before they ran."""
    # spec 4.2: of every task, running or not: the flight of one that does not run rests
    for t, now in enumerate(owed(o)):
        o.in_flight[t] = o.moving[t] >= 0 and before[t] <= o.moving_ns[t] and now > 0
        if now <= 0:
            o.moving[t] = -1  # spec 4.2: moving_ns stays


def held(o: Oracle, t: int, b: int) -> bool:
    """4.5: whether block b is held against task t, which must not be moving one itself, in flight or not."""
    movers = [u for u in range(o.T) if u != t and o.in_flight[u] and o.moving[u] == b]
    return o.moving[t] < 0 and any(lost(o, t, u) for u in movers)


def lost(o: Oracle, t: int, u: int) -> bool:
    """4.5: whether the process of task t has lost the page that task u is moving."""
    g = next(g for g in range(o.G) if is_block_of(o, o.moving[u], g))
    m, j = unmapped_before(o, g, o.lay.task_process[t])
    # spec 4.5: not while more is left than it takes (a scan came in between), even where no process comes before
    return j * o.moving_ns[u] < m * (o.moving_ns[u] - o.left[u])


def unmapped_before(o: Oracle, g: int, process: int) -> tuple[int, int]:
    """4.5: how many processes map region g, and how many of them lose its pages before this one."""
    return len(o.mappers[g]), sum(m < process for m in o.mappers[g])


def meet(o: Oracle, t: int, b: int) -> None:
    """4.5: task t comes upon held block b and sleeps from the next step on; only its first in the step counts."""
    if o.waits_for[t] < 0:  # a task that touches memory was not asleep
        o.waits_for[t] = b
        o.counters["migration_waits"] += 1


def nearest_held(o: Oracle, t: int, g: int, pos: int) -> int | None:
    """4.5, sequential: blocks from pos to the nearest held block of region g, none if none is held."""
    first, blocks = o.lay.region_first[g], o.lay.region_blocks[g]
    for d in range(blocks):
        if held(o, t, first + (pos + d) % blocks):
            return d
    return None


def meet_at_random(o: Oracle, live: dict[int, int]) -> None:
    """4.5: random accesses come upon held blocks, trapped or not, by chance."""
    for a, rate in live.items():
        if o.lay.access_order[a] != RANDOM:
            continue
        t, g = o.lay.access_task[a], o.lay.vma_region[o.lay.access_vma[a]]
        touched = rate * o.useful[t] // 1000
        for u in range(o.T):
            b = o.moving[u]
            if b < 0 or not held(o, t, b) or not is_block_of(o, b, g):
                continue
            chance = exponential(draw(o.seed, MEET, b * len(o.lay.access_task) + a, o.i))
            if chance * o.region_pages[g] <= touched * o.lay.region_block_pages[g]:
                meet(o, t, b)


def is_block_of(o: Oracle, b: int, g: int) -> bool:
    """Whether memory block b belongs to region g."""
    return o.lay.region_first[g] <= b < o.lay.region_first[g] + o.lay.region_blocks[g]


def note(o: Oracle, listed: list[Fault], takes: Callable[[Fault], int]) -> list[Fault]:
    """4.8: tasks that still owe time for their last migration hold its block; the faults left out of X."""
    # spec 4.8: "counted" read as listed for the rounds: no later finder's, no large folio that is not accounted
    last: dict[int, Fault] = {f.task: f for f in listed}
    left_out = []
    for t, f in last.items():
        # spec 4.8: spin_ns does not count here; a task with some left has no useful time, so no fault
        if f.migrated and o.debt_ns[t] + o.wait_ns[t] > 0 and o.waits_for[t] < 0:
            o.moving[t], o.moving_ns[t] = f.block, takes(f)
            if takes(f) > o.dt:
                left_out.append(f)
    return left_out
