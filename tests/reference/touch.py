"""Touching memory (docs/model.md, section 4.5)."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from numalab.layout import BASE, SEQUENTIAL
from tests.reference import flights
from tests.reference.draws import TOUCH, draw

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def live_accesses(o: Oracle) -> dict[int, int]:
    """4.5: the accesses of the step with their rates (pages/s), in order; work, as if all time were."""
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
    """4.5, 4.6: the trapped PTE blocks found and taken, (access, PTE block), by task, access and order."""
    flights.gather(o)
    at_random: dict[int, list[int]] = {a: [] for a in live}
    for v in range(o.V):
        if o.pending[v] > 0:
            mine = [a for a in o.random_accesses[v] if a in live]
            touch_randomly(o, v, mine, live, at_random)
    found: dict[int, list[int]] = {a: [] for a in live}
    listed = [(a, q) for a in live for q in at_random[a]]
    for a, q in race(o, listed):
        found[a].append(q)
    for a in live:
        if o.lay.access_order[a] == SEQUENTIAL:
            walk(o, a, live[a], found[a])
    flights.meet_at_random(o, live)
    return [(a, q) for a in live for q in found[a]]


def race(o: Oracle, listed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """4.5: which random finds are taken: every task takes some for its useful time, until it meets a held page."""
    taken: list[tuple[int, int]] = []
    spent = [0] * o.T
    met = [False] * o.T
    for a, q in listed:
        t, v = o.lay.access_task[a], o.lay.access_vma[a]
        g = o.lay.vma_region[v]
        block = o.lay.region_first[g] + q - o.lay.vma_pte[v]
        if met[t] or spent[t] >= o.useful[t]:
            continue
        if flights.held(o, t, block):  # spec 4.5: "up to" it: the held one is not taken itself
            met[t] = True
            flights.meet(o, t, block)
            continue
        # spec 4.5: a find that turns out to be another's fault (4.6) was taken too
        spent[t] += estimate(o, t, g, q - o.lay.vma_pte[v])
        if o.node[block] != o.node_of(t):
            spent[t] += faults_of_block(o, g) * o.par.ipi_wait_ns * o.mapcount[g]
        taken.append((a, q))
    return taken


def touch_randomly(o: Oracle, v: int, accesses: list[int], live: dict[int, int], found: dict[int, list[int]]) -> None:
    """4.5, random: blocks whose threshold the intensity has reached are found, each by one access."""
    weights = [live[a] * o.useful[o.lay.access_task[a]] // 1000 for a in accesses]
    W = sum(weights)
    o.intensity[v] += W
    if W == 0:  # spec 4.5: nobody touched anything, so nobody finds a block whose threshold is reached
        return
    for q in reached(o, v):
        at = ((draw(o.seed, TOUCH, q, o.i) >> 44) * W) >> 20
        for a, weight in zip(accesses, weights, strict=True):
            if at < weight:
                found[a].append(q)
                break
            at -= weight


def reached(o: Oracle, v: int) -> list[int]:
    """4.5, random: the trapped PTE blocks of VMA v whose threshold the intensity has reached, in order."""
    ahead = o.ahead[v]
    while ahead and ahead[0][0] <= o.intensity[v]:
        _, q = heappop(ahead)
        o.reached[v].add(q)
    # others may have faulted on a block since, and a scan may have trapped it again
    o.reached[v] = {q for q in o.reached[v] if o.trapped[q] and o.threshold[q] <= o.intensity[v]}
    return sorted(o.reached[v])


def walk(o: Oracle, a: int, rate: int, found: list[int]) -> None:
    """4.5, sequential: blocks passed in order for the useful time, or until a held one."""
    t, v = o.lay.access_task[a], o.lay.access_vma[a]
    g = o.lay.vma_region[v]
    blocks = o.lay.region_blocks[g]
    visit = max(1, 10**9 * o.lay.region_block_pages[g] // rate)
    budget = o.useful[t] + o.carry_ns[a]
    estimates: list[int] = []
    if o.pending[v] == 0:
        n = budget // visit
        carry = budget - n * visit
    else:
        estimates, carry = afforded(o, a, visit, budget)
        n = len(estimates)
    d = flights.nearest_held(o, t, g, o.pos[a])
    if d is not None and d < n:
        flights.meet(o, t, o.lay.region_first[g] + (o.pos[a] + d) % blocks)
        n, carry = d, 0
    paid = estimates[:n]
    for step in range(len(paid)):
        q = o.lay.vma_pte[v] + (o.pos[a] + step) % blocks
        if o.trapped[q]:
            found.append(q)
    E = sum(paid)
    o.debt_ns[t] -= E
    o.sys_ns[t] += E * 1000 // max(1, o.power)
    o.work[t] -= rate * (E + carry - o.carry_ns[a])  # no work: spent on faults, or not yet
    o.carry_ns[a] = carry
    o.pos[a] = (o.pos[a] + n) % blocks


def afforded(o: Oracle, a: int, visit: int, budget: int) -> tuple[list[int], int]:
    """4.5, sequential: the est of each block (0: no fault) the budget lasts for where some are trapped; carry."""
    t, v = o.lay.access_task[a], o.lay.access_vma[a]
    g = o.lay.vma_region[v]
    blocks = o.lay.region_blocks[g]
    most = min(blocks, budget // visit)
    estimates: list[int] = []
    spent = waits = 0
    while len(estimates) < most:
        j = (o.pos[a] + len(estimates)) % blocks
        est = wait = 0
        if o.trapped[o.lay.vma_pte[v] + j]:
            est = estimate(o, t, g, j)
            # spec 4.5: "each on another node": each it faults on
            if o.node[o.lay.region_first[g] + j] != o.node_of(t):
                wait = faults_of_block(o, g) * o.par.ipi_wait_ns * o.mapcount[g]
        if spent + visit + est + waits + wait > budget:
            break
        spent += visit + est
        waits += wait
        estimates.append(est)
    carry = budget - spent
    if len(estimates) == most:
        # spec 4.5: "and not below it" read as nothing further, budget - spent is never negative
        carry = min(carry, visit - 1)
    return estimates, carry


def estimate(o: Oracle, t: int, g: int, j: int) -> int:
    """4.5: what a fault on block j of region g is expected to cost task t."""
    k, c = o.lay.region_block_pages[g], faults_of_block(o, g)
    if o.node[o.lay.region_first[g] + j] == o.node_of(t):
        return c * o.par.hint_fault_ns
    unmap = o.par.unmap_ns * o.mapcount[g]
    return c * (o.par.hint_fault_ns + o.par.migrate_ns + unmap) + k * o.par.copy_page_ns


def faults_of_block(o: Oracle, g: int) -> int:
    """4.5, c: the faults that a block of region g counts for."""
    return o.lay.region_block_pages[g] if o.lay.region_kind[g] == BASE else 1
