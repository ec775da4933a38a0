"""Moves against swaps since 4.19: a load test per node, spare capacity, the way home (docs/model.md 7.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model.candidates import FULL, HYSTERESIS, Candidates, Found, Query, toward_zero, turns
from numalab.model.loadtest import load_moved, load_swapped, too_imbalanced
from numalab.model.state import UNIT_LOAD, State

#: Share of a gain that bringing the other task to its preferred node adds.
HOME_BONUS = 8


@dataclass
class Weighed:
    """What the candidates of the examined nodes are worth, before any is compared with the best so far.

    Attributes
    ----------
    swap : (K, X) gain of a swap with the task running there, of 1000
    move : (K,) gain of a plain move to the node
    idle, swap_ok : (K, X) the move to an idle CPU, or a swap, is not ruled out
    swap_fits : (K, X) the loads after a swap are equal to those before, or not too imbalanced
    homeward : (K, X) the swap brings the other task to its preferred node
    maymove, may_gain : (K,) the loads allow a move; and it gains enough
    taken, first : (K,) an idle CPU is taken at once, and which
    """

    swap: Ints
    move: Ints
    idle: Bools
    swap_ok: Bools
    swap_fits: Bools
    homeward: Bools
    maymove: Bools
    may_gain: Bools
    taken: Bools
    first: Ints


def weigh(state: State, query: Query, node: Ints, own: Ints, base: Ints, at: Candidates) -> Weighed:
    """Weigh each CPU of the nodes, with the load test of a move made once per node, and biases toward home."""
    kernel = state.kernel
    threshold = state.par.numa_move_threshold[query.r]
    gains_enough = (threshold == 0) | (base >= threshold)
    maymove = ~too_imbalanced(state, query, node, load_moved(state, query))[:, 0]
    spare = is_spare(state, query, node)
    taken, first = np.zeros(len(node), np.bool_), np.full(len(node), -1)
    if kernel.node_classes:
        settled = spare & (allowed_imbalance(state, query, node) == 0)
        maymove = np.where(spare, settled, maymove)
        taken, first = _idle_cpu(state, query, settled & gains_enough, at)
    valid = at.valid
    if kernel.numa_migrate_on:
        valid = valid & ~state.numa_moved_to[query.r[:, None], at.cpu]
    swap, homeward, gains_too_little = _swap_value(state, query, node, own, base, at)
    swap_ok = valid & at.busy & ~gains_too_little
    if kernel.spare_refuses_swap:
        swap_ok &= ~(spare[:, None] & at.same)
    may_gain = maymove & gains_enough
    idle = valid & (at.cur < 0) & may_gain[:, None]
    swap_fits = np.ones(swap.shape, np.bool_)
    if not state.fix.equal_loads:
        more = load_swapped(state, query, at.cur)
        swap_fits = (more == 0) | ~too_imbalanced(state, query, node, more)
    return Weighed(swap, base, idle, swap_ok, swap_fits, homeward, maymove, may_gain, taken, first)


def examine(
    state: State, query: Query, found: Found, sel: Ints, node: Ints, own: Ints, base: Ints, at: Candidates, turn: Ints
) -> None:
    """Compare the candidates with the best so far, in order."""
    worth = weigh(state, query, node, own, base, at)
    some = worth.taken | (worth.idle | worth.swap_ok).any(axis=1)
    for rows in turns(turn, np.flatnonzero(some)):
        taken = worth.taken[rows]
        at_once = rows[taken]
        found.cpu[sel[at_once]], found.partner[sel[at_once]] = worth.first[at_once], -1
        found.gain[sel[at_once]] = 0
        _accept_in_turn(state, query, worth, found, sel, at, rows[~taken])


def _accept_in_turn(
    state: State, query: Query, worth: Weighed, found: Found, sel: Ints, at: Candidates, open_: Ints
) -> None:
    """Go from one accepted candidate to the next."""
    kernel = state.kernel
    margin = state.par.small_improvement[query.r][:, None]
    after = np.full(len(sel), -1)
    columns = np.arange(at.cpu.shape[1])
    while open_.size:
        o, best = open_, found.gain[sel[open_]][:, None]
        swap, move, usable = worth.swap[o], worth.move[o][:, None], worth.swap_ok[o]
        has_task, best_goes_home = _best_homeward(state, query, found, sel, o)
        if kernel.home_bias:
            usable = usable & ~(best_goes_home[:, None] & ~worth.homeward[o])
        take_idle = worth.idle[o] & (move >= best)
        take_move = usable & worth.may_gain[o][:, None] & (move > swap) & (move > best) & kernel.move_in_swap
        small = margin[o]
        enough = np.where(small > 0, (swap >= small) & (swap > best + small // 2), swap > best) & worth.swap_fits[o]
        if kernel.home_bias:
            enough |= worth.homeward[o] & (has_task & ~best_goes_home)[:, None]
        take_swap = usable & ~take_move & enough
        accepted = (take_idle | take_move | take_swap) & (columns > after[o][:, None])
        hit = accepted.any(axis=1)
        open_ = o[hit]
        if not open_.size:
            break
        col = accepted[hit].argmax(axis=1)
        rows = np.flatnonzero(hit)
        swapped, idled = take_swap[rows, col], take_idle[rows, col]
        after[open_] = col
        found.cpu[sel[open_]] = at.cpu[open_, col]
        found.partner[sel[open_]] = np.where(swapped, at.cur[open_, col], -1)
        found.gain[sel[open_]] = np.where(swapped, worth.swap[open_, col], worth.move[open_])
        if kernel.stop_when_good:
            good = idled | (swapped & worth.homeward[open_, col] & ~worth.maymove[open_])
            open_ = open_[~good]


def _swap_value(
    state: State, query: Query, node: Ints, own: Ints, base: Ints, at: Candidates
) -> tuple[Ints, Bools, Bools]:
    """Return what each swap is worth: (K, X) each.

    Returns
    -------
    imp : gain, of 1000
    homeward : it brings the other task to its preferred node
    too_little : it is within a group and gains less than ``numa_move_threshold``
    """
    threshold = state.par.numa_move_threshold[query.r][:, None]
    within = own[:, None] + at.task_gain
    too_little = at.same & at.cur_grouped & (threshold > 0) & (within < threshold)
    cut = at.cur_grouped & (threshold == 0) & state.kernel.group_hysteresis
    within = np.where(cut, within - toward_zero(within, HYSTERESIS), within)
    by_group = at.cur_grouped
    if state.kernel.pair_by_group:
        by_group = by_group & (query.group >= 0)[:, None]
    imp = np.where(at.same, within, base[:, None] + np.where(by_group, at.group_gain, at.task_gain))
    wants = state.preferred[query.r[:, None], np.maximum(0, at.cur)]
    homeward = (at.cur >= 0) & (wants == query.node[:, None])
    if state.kernel.home_bias:
        imp = np.where(wants == node[:, None], imp - toward_zero(imp, HYSTERESIS), imp)
        imp = np.where(homeward, imp + toward_zero(imp, HOME_BONUS), imp)
    return imp, homeward, too_little


def _best_homeward(state: State, query: Query, found: Found, sel: Ints, rows: Ints) -> tuple[Bools, Bools]:
    """Say for each attempt whether the best so far is a swap, and whether that brings its task home."""
    partner = found.partner[sel[rows]]
    has_task = partner >= 0
    wants = state.preferred[query.r[rows], np.maximum(0, partner)]
    return has_task, has_task & (wants == query.node[rows])


def _idle_cpu(state: State, query: Query, rows: Bools, at: Candidates) -> tuple[Bools, Ints]:
    """Return whether there is an idle CPU to take at once, whatever was found before, and which: an idle core first."""
    free = at.valid & (at.cur < 0) & (state.nr[query.r[:, None], at.cpu] == 0) & rows[:, None]
    if state.kernel.numa_migrate_on:
        free &= ~state.numa_moved_to[query.r[:, None], at.cpu]
    every = np.arange(len(rows))
    core_busy = _core_is_busy(state, query.r)[every[:, None], at.cpu]
    col = np.where(free, core_busy.astype(np.int64), 2).argmin(axis=1)
    return free.any(axis=1), at.cpu[every, col]


def _core_is_busy(state: State, r: Ints) -> Bools:
    """Say for each CPU whether any thread of its core has a task: (K, C)."""
    core = state.layout.cpu_core
    cores = int(core.max()) + 1
    flat = np.arange(len(r))[:, None] * cores + core
    used = np.bincount(flat.ravel(), weights=(state.nr[r] > 0).ravel(), minlength=len(r) * cores)
    return used[flat] > 0


def is_spare(state: State, query: Query, node: Ints) -> Bools:
    """Say whether nodes have spare capacity (node class of 5.7 on)."""
    rows, pct = np.arange(len(node)), state.par.imbalance_pct[query.r]
    nr, cpus, capacity = query.nr[rows, node], state.fix.cpus_of_node[node], state.fix.capacity[node]
    busy = (state.nr[query.r] > 0).astype(np.int64)
    util = FULL * np.add.reduceat(busy, state.fix.first_cpu, axis=1)[rows, state.fix.node_rank[node]]
    runnable = UNIT_LOAD * nr
    overloaded = (nr > cpus) & ((capacity * 100 < util * pct) | (capacity * pct < runnable * 100))
    spare = (nr < cpus) | ((capacity * 100 > util * pct) & (capacity * pct > runnable * 100))
    return spare & ~overloaded


def allowed_imbalance(state: State, query: Query, node: Ints) -> Ints:
    """Return by how many tasks a move would unbalance two nodes beyond what is allowed: (K,)."""
    rows = np.arange(len(node))
    target, source = query.nr[rows, node] + 1, query.nr[rows, query.node] - 1
    over = np.maximum(0, target - source)
    return np.where((target <= state.fix.imbalance_nr[node]) & (over <= 2), 0, over)
