"""Touching memory: which trapped pages fault in a step, and whose faults they are (docs/model.md 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import RANDOM, SEQUENTIAL, Bools, Ints
from numalab.model import draws
from numalab.model.state import State

NS = 1_000_000_000


@dataclass
class Live:
    """The accesses that happen in a step, ordered by (run, access).

    Attributes
    ----------
    r, a, t, v : (K,) run, access, task, VMA
    useful : (K,) useful time of the task, ns
    rate : (K,) pages per second, slowed down by remote memory
    """

    r: Ints
    a: Ints
    t: Ints
    v: Ints
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


def live_accesses(state: State, index: Ints, useful: Ints) -> Live:
    """Return the accesses of tasks with useful time in this step, and credit their work.

    Parameters
    ----------
    index, useful : (K,)
        Flat indices of the running tasks, and their useful time.
    """
    one, fix = state.layout, state.fix
    busy = useful > 0
    index, useful = index[busy], useful[busy]
    r, t = index // one.tasks, index % one.tasks
    counts = fix.task_accesses[t]
    if counts.size and counts.min() == 1 == counts.max():
        a = fix.task_first_access[t]
    else:
        which = np.repeat(np.arange(len(t)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        a = fix.task_first_access[t][which] + within
        r, t, useful = r[which], t[which], useful[which]
    now = state.step_index[r] * state.dt
    on = (one.access_from_ns[a] <= now) & (now < one.access_until_ns[a])
    if not on.all():
        r, t, a, useful = r[on], t[on], a[on], useful[on]
    v = one.access_vma[a]
    slow = slowness(state)[r, one.vma_region[v], state.node_of_task[r, t]]
    rate = np.maximum(1, state.access_rate[r, a] * 1000 // slow)
    np.add.at(state.work.ravel(), r * one.tasks + t, rate * useful)
    return Live(r, a, t, v, useful, rate)


def slowness(state: State) -> Ints:
    """Return how much longer an access takes than a local one, seen from each node: (R, G, N), of 1000."""
    one = state.layout
    extra = (one.distance - 10)[None] * state.par.remote_cost[:, None, None] // 10
    weighted = state.region_node_pages @ (1000 + extra).transpose(0, 2, 1)
    return np.asarray(weighted // state.fix.region_pages[None, :, None])


def touch(state: State, live: Live) -> Touches:
    """Return the trapped PTE blocks that the step's accesses touch, first come first served."""
    one = state.layout
    order = one.access_order[live.a]
    pending = state.pending[live.r, live.v] > 0
    found = [_random(state, live, np.flatnonzero(pending & (order == RANDOM)))]
    if state.fix.has_sequential:
        found.append(_sequential(state, live, np.flatnonzero(order == SEQUENTIAL), pending))
    r, t, q, a, when = (np.concatenate(parts) for parts in zip(*found, strict=True))
    widest = int(state.fix.vma_blocks.max()) + 1
    by_order = np.argsort((r * len(one.access_task) + a) * widest + when, kind="stable")
    return Touches(r[by_order], t[by_order], q[by_order], a[by_order])


def _random(state: State, live: Live, sel: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Take the queued PTE blocks whose moment has come; the access is drawn by its share of the touches."""
    one = state.layout
    empty = np.zeros(0, np.int64)
    if not sel.size:
        return empty, empty, empty, empty, empty
    area = live.r[sel] * one.vmas + live.v[sel]
    by_area = np.argsort(area, kind="stable")
    sel, area = sel[by_area], area[by_area]
    weight = live.rate[sel] * live.useful[sel] // 1000
    upto = np.cumsum(weight)
    first = np.flatnonzero(np.r_[True, area[1:] != area[:-1]])
    before = np.r_[0, upto[first[1:] - 1]]
    touched = np.diff(np.r_[before, upto[-1]])
    areas = area[first]
    state.intensity.ravel()[areas] += touched
    open_ = np.flatnonzero(touched > 0)
    which, q = _pop_due(state, areas[open_])
    which = open_[which]
    if not q.size:
        return empty, empty, empty, empty, empty
    r = areas[which] // one.vmas
    u = draws.draw_keyed(state.key[draws.TOUCH][r], q, state.step_index[r])
    share = ((u >> np.uint64(44)).astype(np.int64) * touched[which]) >> 20
    by = sel[np.searchsorted(upto, before[which] + share, side="right")]
    return r, live.t[by], q, live.a[by], q - one.vma_pte[areas[which] % one.vmas]


def _pop_due(state: State, areas: Ints) -> tuple[Ints, Ints]:
    """Take from the queues of areas (flat run * V + v) all PTE blocks with threshold <= intensity.

    Returns
    -------
    which, q : (K,) index into ``areas``; PTE block
    """
    one = state.layout
    head, length = state.queue_head.ravel(), state.queue_len.ravel()
    queue, threshold = state.queue.ravel(), state.queue_threshold.ravel()
    base = (areas // one.vmas) * one.pte_blocks + one.vma_pte[areas % one.vmas]
    which_parts, q_parts = [], []
    open_ = np.arange(len(areas))
    width = 1
    while open_.size:
        at = head[areas[open_]][:, None] + np.arange(width)
        inside = at < length[areas[open_]][:, None]
        flat = base[open_][:, None] + np.minimum(at, np.maximum(0, length[areas[open_]] - 1)[:, None])
        due = inside & (threshold[flat] <= state.intensity.ravel()[areas[open_]][:, None])
        count = due.sum(axis=1)
        row, col = np.nonzero(due)
        which_parts.append(open_[row])
        q_parts.append(queue[flat[row, col]].astype(np.int64))
        head[areas[open_]] += count
        open_ = open_[count == width]
        width *= 8
    which, q = np.concatenate(which_parts), np.concatenate(q_parts)
    if state.fix.has_sequential:
        still = state.trapped[areas[which] // one.vmas, q]
        which, q = which[still], q[still]
    return which, q


def _sequential(state: State, live: Live, sel: Ints, pending: Bools) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Walk regions in order; a fault costs its task time, so a task whose faults are cheap runs ahead."""
    one, fix = state.layout, state.fix
    r, a, t, v = live.r[sel], live.a[sel], live.t[sel], live.v[sel]
    blocks = fix.vma_blocks[v]
    visit = np.maximum(1, NS * fix.vma_block_pages[v] // live.rate[sel])
    budget = live.useful[sel] + state.carry_ns[r, a]
    count = budget // visit
    carry = budget - count * visit
    start = state.pos[r, a]
    empty = np.zeros(0, np.int64)
    result = (empty, empty, empty, empty, empty)
    walk = np.flatnonzero(pending[sel] & (count > 0))
    if walk.size:
        result, passed, left = _walk(state, r[walk], a[walk], t[walk], v[walk], visit[walk], budget[walk])
        count[walk], carry[walk] = passed, left
    state.pos[r, a] = (start + count) % blocks
    state.carry_ns[r, a] = carry
    return result


def _walk(
    state: State, r: Ints, a: Ints, t: Ints, v: Ints, visit: Ints, budget: Ints
) -> tuple[tuple[Ints, Ints, Ints, Ints, Ints], Ints, Ints]:
    """Walk through areas with trapped pages as far as the budget reaches, faults included."""
    one, fix, par = state.layout, state.fix, state.par
    blocks, k, c = fix.vma_blocks[v], fix.vma_block_pages[v], fix.vma_fault_count[v]
    most = np.minimum(blocks, budget // visit)
    step = np.arange(int(most.max()))
    at = (state.pos[r, a][:, None] + step) % blocks[:, None]
    q = one.vma_pte[v][:, None] + at
    trapped = state.trapped[r[:, None], q] & (step < most[:, None])
    here = state.node[r[:, None], q + fix.vma_block_offset[v][:, None]] == state.node_of_task[r, t][:, None]
    local_cost = c * par.hint_fault_ns[r]
    remote_cost = c * (par.hint_fault_ns[r] + par.migrate_ns[r]) + k * par.copy_page_ns[r]
    est = np.where(trapped, np.where(here, local_cost[:, None], remote_cost[:, None]), 0)
    upto = np.cumsum(est + visit[:, None], axis=1)
    passes = (upto <= budget[:, None]) & (step < most[:, None])
    count = passes.sum(axis=1)
    spent = np.where(count > 0, np.take_along_axis(upto, np.maximum(0, count - 1)[:, None], axis=1)[:, 0], 0)
    left = budget - spent
    left = np.where(count == most, np.minimum(left, visit - 1), left)
    row, col = np.nonzero(trapped & passes)
    refund = np.where(passes, est, 0).sum(axis=1)
    np.subtract.at(state.debt_ns, (r, t), refund)
    return (r[row], t[row], q[row, col], a[row], col), count, left
