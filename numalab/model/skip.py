"""Skipping idle stretches: steps in which nothing is due are taken in one go.

While nobody touches an area with a trapped page, nothing can fault, so only clocks move, and they move linearly. The
result is the same as stepping; the test suite compares both.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import SEQUENTIAL, Bools, Ints
from numalab.model import balance, runqueue, touch
from numalab.model.state import NS, State

MILLION = 1_000_000


def skip_idle(state: State, until: Ints) -> None:
    """Advance runs in which nothing is due, to just before their next event.

    Parameters
    ----------
    until : (R,) step index no run may be taken past
    """
    rows = _idle_rows(state)
    if not rows.size:
        return
    steps = np.minimum(until[rows], _next_event(state, rows)) - state.step_index[rows]
    some = steps > 0
    rows, steps = rows[some], steps[some]
    if rows.size:
        _advance(state, rows, steps)


def _idle_rows(state: State) -> Ints:
    if not state.fix.always_runnable or state.fix.work_ends or state.in_flight:
        return np.zeros(0, np.int64)
    idle = ~state.queue_changed & ~state.maybe_uneven
    # closed forms below need time slices of whole steps
    idle &= (state.par.slice_us * 1000) % state.dt == 0
    idle[[r for r, _ in state.scans]] = False
    idle &= ~state.spin_ns.any(axis=1)
    if not state.own_cpus:
        idle &= ~(state.wait_ns.any(axis=1) | state.debt_ns.any(axis=1))
    rows = np.flatnonzero(idle)
    return rows[~_may_fault(state, rows)]


def _may_fault(state: State, rows: Ints) -> Bools:
    """Say in which of some runs somebody may touch an area with trapped pages as things are: (K,)."""
    one = state.layout
    may = np.asarray(state.pending[rows].any(axis=1))
    some = rows[may]
    if some.size:
        now = (state.step_index[some] * state.dt)[:, None]
        live = (one.access_from_ns <= now) & (now < one.access_until_ns) & (state.cpu[some][:, one.access_task] >= 0)
        may[may] = (live & (state.pending[some][:, one.access_vma] > 0)).any(axis=1)
    return may


def _next_event(state: State, rows: Ints) -> Ints:
    """Return a step index up to which certainly nothing happens: (K,)."""
    one, dt = state.layout, state.dt
    at = state.step_index[rows]
    # a task cannot trigger a scan before it has run for what its stamp lacks; tasks that have wait for a tick
    lacks = state.stamp_ns[rows] + state.period_ms[rows] * MILLION - state.run_ns[rows]
    may = (state.cpu[rows] >= 0) & (state.par.numa_balancing[rows] > 0)[:, None]
    lacks = np.where(may, np.maximum(0, lacks), np.iinfo(np.int64).max // 2)
    scan = at + lacks.min(axis=1) // dt
    # the balancer acts in the first step that ends at or after its time, if any CPU has two tasks
    due = state.balance_ns[rows][:, state.fix.nodes_with_cpus].min(axis=1)
    crowded = (state.nr[rows] >= 2).any(axis=1)
    event = np.where(crowded, np.minimum(scan, -(-due // dt) - 1), scan)
    boundaries = np.unique(
        np.concatenate([one.affinity_ns, one.task_start_ns, one.task_end_ns, one.access_from_ns, one.access_until_ns])
    )
    # one within the step before comes in the step that is next
    following = np.searchsorted(boundaries, (at - 1) * dt, side="right")
    later = np.append(boundaries, np.iinfo(np.int64).max // 2)[following]
    return np.minimum(event, -(-later // dt))


def _turns(state: State, rows: Ints, upto: Ints) -> Ints:
    """Return in how many steps before ``upto`` each task runs: (K, T)."""
    slots = state.par.slice_us[rows] * 1000 // state.dt
    cpu = np.maximum(0, state.cpu[rows])
    nr = np.maximum(1, np.take_along_axis(state.nr[rows], cpu, axis=1))
    phase = np.take_along_axis(state.slice_phase[rows], cpu, axis=1)
    turn = (state.rank[rows] - phase) % nr
    cycle = slots[:, None] * nr
    rest = upto[:, None] % cycle - slots[:, None] * turn
    return upto[:, None] // cycle * slots[:, None] + np.clip(rest, 0, slots[:, None])


def _advance(state: State, rows: Ints, steps: Ints) -> None:
    """Let the clocks of some runs move on by a number of steps."""
    one, dt = state.layout, state.dt
    at = state.step_index[rows]
    runs = _turns(state, rows, at + steps) - _turns(state, rows, at)
    runs[~state.runnable[rows]] = 0
    time = runs * dt
    waited = np.minimum(state.wait_ns[rows], time)
    ran = time - waited
    owed = np.where(runs > 0, state.debt_ns[rows], 0)
    state.wait_ns[rows] -= waited
    state.waited_ns[rows] += waited
    state.run_ns[rows] += ran
    state.sys_ns[rows] += np.clip(owed, 0, ran)
    useful = np.maximum(0, ran - owed)
    if not state.own_cpus:
        useful = runs * (dt * runqueue.power(state)[rows][:, None] // 1000)
    state.debt_ns[rows] = np.where(runs > 0, np.maximum(0, owed - ran), state.debt_ns[rows])

    now = at * dt
    live = (one.access_from_ns[None] <= now[:, None]) & (now[:, None] < one.access_until_ns[None])
    spent = np.where(live, useful[:, one.access_task], 0)
    touch.refresh_speed(state)
    rate = state.access_speed[rows]
    state.access_work[rows] += rate * spent
    if state.fix.has_sequential:
        _walk_on(state, rows, spent, rate)
    state.step_index[rows] += steps
    _idle_balancing(state, rows)
    # the slice may have changed; who runs is chosen anew at the next step
    state.slot[rows] = -1


def _walk_on(state: State, rows: Ints, spent: Ints, rate: Ints) -> None:
    """Advance sequential walks through areas without trapped pages."""
    one, fix = state.layout, state.fix
    walks: Bools = (one.access_order == SEQUENTIAL)[None] & (spent > 0)
    visit = np.maximum(1, NS * fix.vma_block_pages[one.access_vma][None] // rate)
    budget = spent + state.carry_ns[rows]
    passed = np.where(walks, budget // visit, 0)
    state.pos[rows] = np.where(walks, (state.pos[rows] + passed) % fix.vma_blocks[one.access_vma], state.pos[rows])
    carry: Ints = np.where(walks, budget - passed * visit, state.carry_ns[rows])
    state.access_work[rows] -= rate * (carry - state.carry_ns[rows])
    state.carry_ns[rows] = carry


def _idle_balancing(state: State, rows: Ints) -> None:
    """Advance the balancer's timers over evaluations that found no queue of two."""
    fix, dt = state.fix, state.dt
    last = state.step_index[rows][:, None]
    idle = np.logical_or.reduceat(state.nr[rows] == 0, fix.first_cpu, axis=1)
    interval = balance.interval_ns(state, rows[:, None], idle)
    due = state.balance_ns[rows][:, fix.nodes_with_cpus]
    first = -(-due // dt)
    period = -(-interval // dt)
    rounds = (last - first) // period
    after = (first + rounds * period) * dt + interval
    state.balance_ns[rows[:, None], fix.nodes_with_cpus] = np.where(last >= first, after, due)
