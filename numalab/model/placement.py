"""Placement: fold the fault buffers into decaying averages, choose the preferred node (docs/model.md 5)."""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import active, period, placing, weights
from numalab.model.state import State


def due(state: State, r: Ints, t: Ints) -> Bools:
    """Say which faulting tasks (K,) see a new scan sequence and are allowed to place now."""
    new = state.seq_seen[r, t] != state.seq[r, state.layout.task_process[t]]
    if state.kernel.placement_at == "retry":
        new &= period.now_ms(state)[r] > state.retry_ms[r, t]
    return new


def place(state: State, r: Ints, t: Ints) -> Bools:
    """Place tasks: decay, active nodes, preferred node, scan period.

    Parameters
    ----------
    r, t : (K,) run and task, ascending

    Returns
    -------
    (K,) bool
        Which tasks placement itself wants moved.
    """
    _, _, longest = period.bounds(state, r, t)
    kinds = _decay(state, r, t)
    choice = choose_preferred(state, r, t)
    changed = (choice >= 0) & (choice != state.preferred[r, t])
    state.counters["preferred_changes"] += np.bincount(r[changed], minlength=state.runs)
    state.preferred[r[changed], t[changed]] = choice[changed]
    period.adapt(state, r, t, kinds, longest)
    if state.kernel.migrate_at_placement == "on_change":
        return changed
    if state.kernel.migrate_at_placement == "not_there":
        return (choice >= 0) & (state.node_of_task[r, t] != state.preferred[r, t])
    return np.zeros(len(r), np.bool_)


def _decay(state: State, r: Ints, t: Ints) -> Ints:
    """Halve the fault averages and add the buffers; the CPU part is weighted with the task's run time.

    Returns
    -------
    kinds : (K, 2) faults since the last placement, shared and private
    """
    end = (state.step_index[r] + 1) * state.dt
    state.seq_seen[r, t] = state.seq[r, state.layout.task_process[t]]
    seen = state.locality[r, t, :2].sum(axis=1)
    ran = state.run_ns[r, t] - state.placed_run_ns[r, t]
    share = (ran << 16) // (end - state.placed_wall_ns[r, t] + 1)
    state.placed_run_ns[r, t], state.placed_wall_ns[r, t] = state.run_ns[r, t], end

    buffered = state.membuf[r, t]
    change = placing.memory_change(state.mem[r, t], buffered)
    state.mem[r, t] += change
    state.membuf[r, t] = 0
    cpu_change = np.zeros_like(change)
    if state.kernel.cpu_faults:
        cpu_change = placing.cpu_change(state.cpuf[r, t], state.cpubuf[r, t], share[:, None, None], seen[:, None, None])
        state.cpuf[r, t] += cpu_change
    state.cpubuf[r, t] = 0
    summed = change.sum(axis=(1, 2))
    state.total[r, t] += summed

    weights.refresh_tasks(state, r, t)

    _add_to_groups(state, r, state.group[r, t], change, cpu_change, summed)
    return buffered.sum(axis=1)


def _add_to_groups(state: State, r: Ints, g: Ints, change: Ints, cpu_change: Ints, summed: Ints) -> None:
    """Add what changed of tasks to their groups (-1: none), and recount the nodes these are active on."""
    key = np.where(g >= 0, r * state.layout.tasks + g, -1)
    order = np.argsort(key, kind="stable")
    order = order[np.searchsorted(key[order], 0) :]
    if not order.size:
        return
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    r, g = key[first] // state.layout.tasks, key[first] % state.layout.tasks
    state.gmem[r, g] += np.add.reduceat(change[order], first, axis=0)
    state.gcpu[r, g] += np.add.reduceat(cpu_change[order], first, axis=0)
    state.gtotal[r, g] += np.add.reduceat(summed[order], first)
    weights.refresh_groups(state, r, g)
    active.update(state, r, g)


def choose_preferred(state: State, r: Ints, t: Ints) -> Ints:
    """Choose the preferred node of tasks: most faults of the task, or by ``preferred_rule`` of its group.

    Returns
    -------
    (K,) node, -1 without faults
    """
    g = state.group[r, t]
    own, of_group = state.mem[r, t].sum(axis=2), state.gmem[r, g].sum(axis=2)
    choice = placing.choice(
        state.kernel, state.fix.class_, state.layout.distance,
        (own, state.total[r, t]), (of_group, state.gtotal[r, g]), g >= 0,
    )  # fmt: skip
    return np.where(choice >= 0, state.fix.nearest_with_cpus[np.maximum(0, choice)], -1)
