"""Touching memory: which trapped pages fault in a step, and whose faults they are (docs/model.md 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import draws, flight
from numalab.model.flight import Held
from numalab.model.state import FOREVER, NS, State

NOTHING = np.zeros(0, np.int64)


@dataclass
class Live:
    """What every access does in a step; (R, A) each.

    Attributes
    ----------
    useful : useful time, ns; 0 for accesses that do not happen
    rate : pages per second, slowed down by remote memory
    """

    useful: Ints
    rate: Ints


@dataclass
class Touches:
    """Trapped PTE blocks touched in a step, ordered by (run, task, access, order of touch).

    Attributes
    ----------
    r, t, q, a : (K,) run, task, PTE block, access
    """

    r: Ints
    t: Ints
    q: Ints
    a: Ints

    def pick(self, which: Bools | slice) -> Touches:
        """Return some of them."""
        return Touches(self.r[which], self.t[which], self.q[which], self.a[which])


def live_accesses(state: State, useful: Ints) -> Live:
    """Give every access its task's useful time, and credit its work.

    Parameters
    ----------
    useful : (R, T) useful time of the tasks, ns
    """
    one, fix = state.layout, state.fix
    if not fix.one_access_each:
        useful = useful[:, one.access_task]
    if fix.accesses_have_phases:
        now = (state.step_index * state.dt)[:, None]
        useful = np.where((one.access_from_ns <= now) & (now < one.access_until_ns), useful, 0)
    refresh_speed(state)
    state.access_work += state.access_speed * useful
    return Live(useful, state.access_speed)


def refresh_speed(state: State) -> None:
    """Recompute how fast accesses go in runs where pages or tasks changed their node."""
    one = state.layout
    rows = np.flatnonzero(state.speed_stale)
    if not rows.size:
        return
    state.speed_stale[rows] = False
    node = np.maximum(0, state.node_of_task[rows][:, one.access_task])
    region = one.vma_region[one.access_vma]
    slow = slowness(state, rows)[np.arange(len(rows))[:, None], region, node]
    state.access_speed[rows] = np.maximum(1, state.access_rate[rows] * 1000 // slow)


def slowness(state: State, rows: Ints) -> Ints:
    """Return how much longer an access takes than a local one, seen from each node: (K, G, N), of 1000."""
    extra = (state.layout.distance - 10)[None] * state.par.remote_cost[rows][:, None, None] // 10
    pages = state.region_node_pages[rows]
    weighted = pages @ (1000 + extra).transpose(0, 2, 1)
    if not state.fix.blocks_come_late:
        return weighted // state.fix.region_pages[None, :, None]
    there = pages.sum(axis=2)[:, :, None]
    return np.where(there > 0, weighted // np.maximum(1, there), 1000)


def touch(state: State, live: Live) -> Touches:
    """Return the trapped PTE blocks that the step's accesses touch, first come first served."""
    found = []
    held = flight.held(state)
    if len(state.fix.random_access):
        found.append(_random(state, live, held))
    if state.fix.has_sequential:
        found.append(_sequential(state, live, held))
    if held.r.size and len(state.fix.random_access):
        flight.meet_at_random(state, held, live.rate * live.useful // 1000)
    r, a, q, when = (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else (NOTHING,) * 4
    widest = int(state.fix.vma_blocks.max(initial=0)) + 1
    order = np.argsort((r * len(state.layout.access_task) + a) * widest + when, kind="stable")
    a = a[order]
    return Touches(r[order], state.layout.access_task[a], q[order], a)


def _random(state: State, live: Live, held: Held) -> tuple[Ints, Ints, Ints, Ints]:
    """Take the queued PTE blocks whose moment has come; the access is drawn by its share of the touches.

    Returns
    -------
    r, a, q, when : (K,) run, access, PTE block, place in the area
    """
    one, fix = state.layout, state.fix
    trapped = state.pending[:, fix.random_vma] > 0
    if not trapped.any():
        return (NOTHING,) * 4
    # accesses in order of their areas: one running sum over the batch gives every area's total, and the draws
    weight = live.rate * live.useful // 1000
    if not fix.random_is_all:
        weight = weight[:, fix.random_access]
    upto = np.cumsum(weight)
    row = np.arange(state.runs)[:, None] * weight.shape[1]
    first, last = row + fix.random_first, row + fix.random_last
    before = upto[first] - weight.ravel()[first]
    touched = np.where(trapped, upto[last] - before, 0)
    intensity = state.intensity[:, fix.random_vma] + touched
    state.intensity[:, fix.random_vma] = intensity
    r, j = np.nonzero((touched > 0) & (state.next_threshold[:, fix.random_vma] <= intensity))
    if not r.size:
        return (NOTHING,) * 4
    areas = r * one.vmas + fix.random_vma[j]
    which, q, place = _pop_due(state, areas)
    r, j = r[which], j[which]
    u = draws.draw_keyed(state.key[draws.TOUCH][r], q, state.step_index[r])
    share = ((u >> np.uint64(44)).astype(np.int64) * touched[r, j]) >> 20
    a = fix.random_access[np.searchsorted(upto, before[r, j] + share, side="right") % weight.shape[1]]
    left = _left_trapped(state, live, held, r, a, q)
    if left.any():
        _put_back(state, areas[which[left]], q[left], place[left])
        r, j, a, q = r[~left], j[~left], a[~left], q[~left]
    return r, a, q, q - one.vma_pte[fix.random_vma[j]]


def _left_trapped(state: State, live: Live, held: Held, r: Ints, a: Ints, q: Ints) -> Bools:
    """Say which finds do not fault yet: threads race through a burst, and sleep at a page in flight.

    A find is left where the faults before it have used up its task's time, and from the first page in flight on.
    """
    one = state.layout
    t, v = one.access_task[a], one.access_vma[a]
    cost = _estimate(state, r, t, v, q)
    task = r * one.tasks + t
    spent = np.bincount(task, weights=cost, minlength=state.runs * one.tasks)
    left = spent[task] >= live.useful[r, a]
    b = q + state.fix.vma_block_offset[v]
    if held.r.size:
        flying = held.holds(state, r, t, b)
        left |= np.isin(task, task[flying])
    some = np.flatnonzero(left)
    if not some.size:
        return left
    some = some[np.lexsort((q[some], a[some], task[some]))]
    upto = np.cumsum(cost[some])
    first = np.flatnonzero(np.r_[True, task[some[1:]] != task[some[:-1]]])
    length = np.diff(np.r_[first, len(some)])
    before = upto - cost[some] - np.repeat(upto[first] - cost[some[first]], length)
    late = before >= live.useful[r[some], a[some]]
    if held.r.size:
        stops = flying[some] & ~late
        passed = np.cumsum(stops)
        late |= passed > np.repeat(passed[first] - stops[first], length)
        met = some[stops]
        flight.sleep(state, r[met], t[met], b[met])
    left[some] = late
    return left


def _estimate(state: State, r: Ints, t: Ints, v: Ints, q: Ints) -> Ints:
    """Return what a fault is expected to cost its task, ns: more if its page is on another node."""
    fix, par = state.fix, state.par
    c, k = fix.vma_fault_count[v], fix.vma_block_pages[v]
    here = state.node[r, q + fix.vma_block_offset[v]] == state.node_of_task[r, t]
    local = c * par.hint_fault_ns[r]
    mapped = c * fix.mapcount[state.layout.vma_region[v]]
    remote = local + c * par.migrate_ns[r] + k * par.copy_page_ns[r] + mapped * (par.unmap_ns + par.ipi_wait_ns)[r]
    return np.where(here, local, remote)


def _put_back(state: State, areas: Ints, q: Ints, place: Ints) -> None:
    """Return PTE blocks to the front of their areas' queues, in the order they had."""
    one = state.layout
    order = np.lexsort((place, areas))
    areas, q, place = areas[order], q[order], place[order]
    base = (areas // one.vmas) * one.pte_blocks + one.vma_pte[areas % one.vmas]
    queue, threshold = state.queue.ravel(), state.queue_threshold.ravel()
    thresholds = threshold[base + place]
    group, first, count = np.unique(areas, return_index=True, return_counts=True)
    head = state.queue_head.ravel()
    head[group] -= count
    at = base + np.repeat(head[group], count) + np.arange(len(areas)) - np.repeat(first, count)
    queue[at], threshold[at] = q, thresholds
    state.next_threshold.ravel()[group] = thresholds[first]


def _pop_due(state: State, areas: Ints) -> tuple[Ints, Ints, Ints]:
    """Take from the queues of areas (flat run * V + v) all PTE blocks with threshold <= intensity.

    Returns
    -------
    which, q, place : (K,) index into ``areas``; PTE block; its place in the queue
    """
    one = state.layout
    head, length = state.queue_head.ravel(), state.queue_len.ravel()
    queue, threshold = state.queue.ravel(), state.queue_threshold.ravel()
    base = (areas // one.vmas) * one.pte_blocks + one.vma_pte[areas % one.vmas]
    intensity = state.intensity.ravel()[areas]
    which_parts, q_parts, places = [], [], []
    open_ = np.arange(len(areas))
    width = 4
    while open_.size:
        at = head[areas[open_]][:, None] + np.arange(width)
        end = length[areas[open_]][:, None]
        flat = base[open_][:, None] + np.minimum(at, end - 1)
        due = (at < end) & (threshold[flat] <= intensity[open_][:, None])
        count = due.sum(axis=1)
        row, col = np.nonzero(due)
        which_parts.append(open_[row])
        q_parts.append(queue[flat[row, col]].astype(np.int64))
        places.append(at[row, col])
        head[areas[open_]] += count
        open_ = open_[count == width]
        width *= 8
    left = head[areas] < length[areas]
    following = threshold[base + np.minimum(head[areas], length[areas] - 1)]
    state.next_threshold.ravel()[areas] = np.where(left, following, FOREVER)
    which, q, place = np.concatenate(which_parts), np.concatenate(q_parts), np.concatenate(places)
    if state.fix.has_sequential:
        still = state.trapped[areas[which] // one.vmas, q]
        which, q, place = which[still], q[still], place[still]
    return which, q, place


def _sequential(state: State, live: Live, held: Held) -> tuple[Ints, Ints, Ints, Ints]:
    """Walk regions in order; a fault costs its task time, so a task whose faults are cheap runs ahead."""
    one, fix = state.layout, state.fix
    walking = fix.sequential_access
    r, a = np.nonzero(live.useful[:, walking] > 0)
    a = walking[a]
    t, v = one.access_task[a], one.access_vma[a]
    visit = np.maximum(1, NS * fix.vma_block_pages[v] // live.rate[r, a])
    budget = live.useful[r, a] + state.carry_ns[r, a]
    count = budget // visit
    carry = budget - count * visit
    start = state.pos[r, a]
    result = (NOTHING,) * 4
    limit, flying = flight.distance(state, held, r, a) if held.r.size else (np.full(len(r), flight.BEYOND), NOTHING)
    walk = np.flatnonzero((state.pending[r, v] > 0) & (count > 0))
    if walk.size:
        part = (part[walk] for part in (r, a, t, v, visit, budget, limit))
        result, count[walk], carry[walk] = _walk(state, *part)
    stopped = np.flatnonzero(limit < count)
    if stopped.size:
        count[stopped], carry[stopped] = limit[stopped], 0
        flight.sleep(state, r[stopped], t[stopped], flying[stopped])
    state.pos[r, a] = (start + count) % fix.vma_blocks[v]
    # time not spent yet is no work yet
    state.access_work[r, a] -= live.rate[r, a] * (carry - state.carry_ns[r, a])
    state.carry_ns[r, a] = carry
    return result


def _walk(
    state: State, r: Ints, a: Ints, t: Ints, v: Ints, visit: Ints, budget: Ints, limit: Ints
) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints, Ints]:
    """Walk through areas with trapped pages as far as the budget reaches, faults included.

    Faults end at the limit; the count returned does not, so that the caller sees who was stopped.
    """
    one, fix, par = state.layout, state.fix, state.par
    blocks, k, c = fix.vma_blocks[v], fix.vma_block_pages[v], fix.vma_fault_count[v]
    most = np.minimum(blocks, budget // visit)
    step = np.arange(int(most.max()))
    at = (state.pos[r, a][:, None] + step) % blocks[:, None]
    q = one.vma_pte[v][:, None] + at
    trapped = state.trapped[r[:, None], q] & (step < most[:, None])
    here = state.node[r[:, None], q + fix.vma_block_offset[v][:, None]] == state.node_of_task[r, t][:, None]
    local_cost = c * par.hint_fault_ns[r]
    mapped = c * fix.mapcount[one.vma_region[v]]
    remote_cost = local_cost + c * par.migrate_ns[r] + k * par.copy_page_ns[r] + mapped * par.unmap_ns[r]
    est = np.where(trapped, np.where(here, local_cost[:, None], remote_cost[:, None]), 0)
    upto = np.cumsum(est + visit[:, None], axis=1)
    waits = np.cumsum(np.where(trapped & ~here, (mapped * par.ipi_wait_ns[r])[:, None], 0), axis=1)
    passes = (upto + waits <= budget[:, None]) & (step < most[:, None])
    count = passes.sum(axis=1)
    spent = np.where(count > 0, np.take_along_axis(upto, np.maximum(0, count - 1)[:, None], axis=1)[:, 0], 0)
    left = budget - spent
    left = np.where(count == most, np.minimum(left, visit - 1), left)
    passes &= step < limit[:, None]
    row, col = np.nonzero(trapped & passes)
    refund = np.where(passes, est, 0).sum(axis=1)
    np.subtract.at(state.debt_ns, (r, t), refund)
    np.add.at(state.sys_ns, (r, t), refund * 1000 // np.maximum(1, state.power[r]))
    state.access_work[r, a] -= state.access_speed[r, a] * refund
    return (r[row], a[row], q[row, col], col), count, left
