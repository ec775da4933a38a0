"""NUMA groups: tasks that fault on each other's pages are placed together (docs/model.md 4.7)."""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import active, draws, weights
from numalab.model.fault import Faults
from numalab.model.state import State


def join(state: State, faults: Faults) -> tuple[Bools, Bools]:
    """Let the step's faults create and join groups, in order, and classify each fault.

    A group changes seldom, so all faults are judged by the groups as they are; of those that change a group
    the first of each run is carried out, and the faults after it are judged again.

    Returns
    -------
    private : (K,) the fault counts as private
    local : (K,) the fault counts as local for the scan rate
    """
    private, local = faults.private.copy(), faults.local.copy()
    left = np.flatnonzero(~faults.private)
    while left.size:
        changes, refused = _judge(state, faults, left)
        private[left] = refused
        counts_local = ~refused & ~faults.local[left]
        local[left] = faults.local[left] | (counts_local & _between_active(state, faults, left))
        changing = np.flatnonzero(changes)
        if not changing.size:
            break
        run = faults.r[left[changing]]
        acting = left[changing[np.r_[True, run[1:] != run[:-1]]]]
        private[acting] = _carry_out(state, faults, acting)
        counts_local = ~private[acting] & ~faults.local[acting]
        local[acting] = faults.local[acting] | (counts_local & _between_active(state, faults, acting))
        upto = np.full(state.runs, len(faults.r))
        upto[faults.r[acting]] = acting
        left = left[left > upto[faults.r[left]]]
    return private, local


def _judge(state: State, faults: Faults, rows: Ints) -> tuple[Bools, Bools]:
    """Say for each fault whether it changes a group, and whether it asked for a join and was refused."""
    may = ~faults.no_group[rows]
    mine = state.group[faults.r[rows], faults.t[rows]]
    reached, joins = _wants_join(state, faults, rows, mine)
    return may & ((mine < 0) | joins), may & (mine >= 0) & reached & ~joins


def _wants_join(state: State, faults: Faults, rows: Ints, mine: Ints) -> tuple[Bools, Bools]:
    """Compare with the group of the task now running where the page was last used.

    Returns
    -------
    reached : (K,) there is such a task with another group that is not smaller (ties by address)
    joins : (K,) and they share an address space or the mapping is shared
    """
    r, t = faults.r[rows], faults.t[rows]
    other = state.cur[r, np.maximum(0, faults.other_cpu[rows])]
    there = (faults.other_cpu[rows] >= 0) & (other >= 0) & (other != t)
    other = np.maximum(0, other)
    there &= state.fix.task_pid8[other] == faults.other_pid[rows]
    its = state.group[r, other]
    there &= (its >= 0) & (its != mine)
    sel = np.flatnonzero(there)
    if sel.size:
        my_size, its_size = state.gtasks[r[sel], mine[sel]], state.gtasks[r[sel], its[sel]]
        tie = my_size == its_size
        there[sel] = (my_size < its_size) | (
            tie & (address(state, r[sel], mine[sel]) <= address(state, r[sel], its[sel]))
        )
    process = state.layout.task_process
    return there, there & ((process[other] == process[t]) | faults.shared[rows])


def address(state: State, r: Ints, g: Ints) -> Ints:
    """Return the stand-in for a group's address, which breaks ties of size."""
    return (draws.draw_keyed(state.key[draws.GROUP][r], g, 0) >> np.uint64(1)).astype(np.int64)


def _carry_out(state: State, faults: Faults, rows: Ints) -> Bools:
    """Create and join as one fault of each run asks; says which asked for a join and were refused."""
    r, t = faults.r[rows], faults.t[rows]
    alone = state.group[r, t] < 0
    _create(state, r[alone], t[alone], faults.here[rows][alone])
    mine = state.group[r, t]
    reached, joins = _wants_join(state, faults, rows, mine)
    other = state.cur[r, np.maximum(0, faults.other_cpu[rows])]
    _move_stats(state, r[joins], t[joins], mine[joins], state.group[r, other][joins])
    return reached & ~joins


def _create(state: State, r: Ints, t: Ints, here: Ints) -> None:
    """Make groups of one task each, with the task's own faults."""
    state.group[r, t] = t
    state.gtasks[r, t] = 1
    state.gmem[r, t], state.gcpu[r, t] = state.mem[r, t], state.cpuf[r, t]
    state.gtotal[r, t] = state.total[r, t]
    state.gactive[r, t] = False
    state.gactive[r, t, here] = True
    state.gmax[r, t], state.gcount[r, t] = 0, 1


def _move_stats(state: State, r: Ints, t: Ints, old: Ints, new: Ints) -> None:
    """Take one task of each of some runs from one group to another; a group left empty is forgotten."""
    _count(state, r, t, new, 1)
    state.group[r, t] = new
    _count(state, r, t, old, -1)
    _forget_empty(state, r, old)


def leave(state: State, r: Ints, t: Ints) -> None:
    """Take ending tasks, one of each of some runs, out of their groups."""
    grouped = state.group[r, t] >= 0
    r, t = r[grouped], t[grouped]
    old = state.group[r, t]
    _count(state, r, t, old, -1)
    state.group[r, t] = -1
    _forget_empty(state, r, old)
    weights.refresh_groups(state, r, old)


def _count(state: State, r: Ints, t: Ints, group: Ints, sign: int) -> None:
    """Add a task of each of some runs to a group, or take it away."""
    state.gmem[r, group] += sign * state.mem[r, t]
    state.gcpu[r, group] += sign * state.cpuf[r, t]
    state.gtotal[r, group] += sign * state.total[r, t]
    state.gtasks[r, group] += sign


def _forget_empty(state: State, r: Ints, old: Ints) -> None:
    empty = state.gtasks[r, old] == 0
    r, old = r[empty], old[empty]
    for array in (state.gmem, state.gcpu, state.gtotal, state.gmax, state.gcount):
        array[r, old] = 0
    state.gactive[r, old] = False


def _between_active(state: State, faults: Faults, rows: Ints) -> Bools:
    """Say whether a fault happened between two nodes its task's group is active on."""
    rule = state.kernel.shared_group_local
    r, g = faults.r[rows], state.group[faults.r[rows], faults.t[rows]]
    if rule == "off":
        return np.zeros(len(rows), np.bool_)
    both = active.is_active(state, r, g, faults.here[rows]) & active.is_active(state, r, g, faults.memory[rows])
    if rule == "several_active":
        both &= state.gcount[r, g] > 1
    return both & (g >= 0)
