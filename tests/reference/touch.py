"""Touching memory (docs/model.md, section 4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numalab.layout import BASE, RANDOM, SEQUENTIAL
from tests.reference.draws import TOUCH, draw

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def live_accesses(o: Oracle) -> dict[int, int]:
    """4.5: the accesses of the step with their rates (pages/s), in order; work done."""
    live: dict[int, int] = {}
    slow: dict[tuple[int, int], int] = {}
    for a, t in enumerate(o.lay.access_task):
        if o.useful[t] <= 0 or not o.lay.access_from_ns[a] <= o.t0 < o.lay.access_until_ns[a]:
            continue
        key = (o.lay.vma_region[o.lay.access_vma[a]], o.node_of(t))
        if key not in slow:
            slow[key] = slowness(o, *key)
        live[a] = max(1, o.lay.access_rate[a] * 1000 // slow[key])
        o.work[t] += live[a] * o.useful[t]
    return live


def slowness(o: Oracle, g: int, n: int) -> int:
    """4.5: how slow region g is from node n, of 1000."""
    total = 0
    there = sum(o.on_node[g])
    if not there:
        return 1000
    for m in range(o.N):
        total += o.on_node[g][m] * (1000 + o.par.remote_cost * (o.lay.distance[n][m] - 10) // 10)
    return total // there


def touch(o: Oracle, live: dict[int, int]) -> list[tuple[int, int]]:
    """4.5, 4.6: the trapped PTE blocks found, (access, PTE block), by task, access and order."""
    found: dict[int, list[int]] = {a: [] for a in live}
    by_vma: dict[int, list[int]] = {}
    for a in live:
        by_vma.setdefault(o.lay.access_vma[a], []).append(a)
    for v, mine in by_vma.items():
        if o.pending[v] > 0:
            touch_randomly(o, v, [a for a in mine if o.lay.access_order[a] == RANDOM], live, found)
        for a in mine:
            if o.lay.access_order[a] == SEQUENTIAL:
                walk(o, v, a, live[a], found[a])
    return [(a, q) for a in live for q in found[a]]


def touch_randomly(o: Oracle, v: int, accesses: list[int], live: dict[int, int], found: dict[int, list[int]]) -> None:
    """4.5, random: blocks whose threshold the intensity has reached are found, each by one access."""
    weights = [live[a] * o.useful[o.lay.access_task[a]] // 1000 for a in accesses]
    W = sum(weights)
    o.intensity[v] += W
    if W == 0:  # spec 4.5: nobody touched anything, so nobody finds a block whose threshold is reached
        return
    first = o.lay.vma_pte[v]
    for q in range(first, first + o.lay.region_blocks[o.lay.vma_region[v]]):
        if o.trapped[q] and o.threshold[q] <= o.intensity[v]:
            at = ((draw(o.seed, TOUCH, q, o.i) >> 44) * W) >> 20
            for a, weight in zip(accesses, weights, strict=True):
                if at < weight:
                    found[a].append(q)
                    break
                at -= weight


def walk(o: Oracle, v: int, a: int, rate: int, found: list[int]) -> None:
    """4.5, sequential: blocks passed in order for the useful time."""
    g = o.lay.vma_region[v]
    t, blocks = o.lay.access_task[a], o.lay.region_blocks[g]
    visit = max(1, 10**9 * o.lay.region_block_pages[g] // rate)
    budget = o.useful[t] + o.carry_ns[a]
    if o.pending[v] == 0:
        n = budget // visit
        o.carry_ns[a] = budget - n * visit
        o.pos[a] = (o.pos[a] + n) % blocks
        return
    most = min(blocks, budget // visit)
    spent = n = 0
    while n < most:
        j = (o.pos[a] + n) % blocks
        trapped = o.trapped[o.lay.vma_pte[v] + j]
        est = estimate(o, t, g, j) if trapped else 0
        if spent + visit + est > budget:
            break
        spent += visit + est
        n += 1
        if trapped:
            found.append(o.lay.vma_pte[v] + j)
            o.debt_ns[t] -= est
    o.carry_ns[a] = budget - spent
    if n == most:  # spec 4.5: "and not below it" read as nothing further, budget - spent is never negative
        o.carry_ns[a] = min(o.carry_ns[a], visit - 1)
    o.pos[a] = (o.pos[a] + n) % blocks


def estimate(o: Oracle, t: int, g: int, j: int) -> int:
    """4.5: what a fault on block j of region g is expected to cost task t."""
    k = o.lay.region_block_pages[g]
    c = k if o.lay.region_kind[g] == BASE else 1
    if o.node[o.lay.region_first[g] + j] == o.node_of(t):
        return c * o.par.hint_fault_ns
    return c * (o.par.hint_fault_ns + o.par.migrate_ns) + k * o.par.copy_page_ns
