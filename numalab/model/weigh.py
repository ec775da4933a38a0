"""Moves against swaps until 4.18: what each CPU is worth, and which one is taken (docs/model.md 7.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model.candidates import HYSTERESIS, Candidates, Found, Query, toward_zero, turns
from numalab.model.loadtest import load_moved, load_swapped, too_imbalanced
from numalab.model.state import State

#: Below every score.
NOTHING = -(1 << 40)


@dataclass
class Weighed:
    """What the candidates of the examined nodes are worth, before any is compared with the best so far.

    Attributes
    ----------
    swap : (K, X) gain of a swap with the task running there, of 1000
    move : (K, 1) gain of a plain move to the node
    swap_ok, idle_ok : (K, X) a swap, or the move to an idle CPU, is not ruled out
    swap_fits, move_fits : (K, X), (K, 1) the loads afterwards are not too imbalanced
    single : (K, X) both CPUs have one task each, so loads do not count
    """

    swap: Ints
    move: Ints
    swap_ok: Bools
    idle_ok: Bools
    swap_fits: Bools
    move_fits: Bools
    single: Bools

    def accept(self, state: State, rows: Ints, best: Ints) -> tuple[Bools, Bools, Bools]:
        """Say what is better than the best so far: moves to idle CPUs, moves to busy ones, swaps; (k, X) each.

        A busy CPU is taken by a move rather than a swap where that gains more (``move_in_swap``, thread S1 patch 5).
        """
        swap, move, best = self.swap[rows], self.move[rows], best[:, None]
        strict = state.kernel.strict_improvement
        better = swap > best if strict else swap >= best
        move_better = move > best
        idle = self.idle_ok[rows] & (move_better if strict else move >= best)
        at_once = self.swap_ok[rows] & better & self.single[rows]
        instead = np.zeros_like(idle)
        if state.kernel.move_in_swap:
            enters = better | move_better if strict else better
            instead = self.swap_ok[rows] & enters & (move > swap) & move_better & self.move_fits[rows] & ~at_once
        swaps = at_once | (self.swap_ok[rows] & better & self.swap_fits[rows] & ~instead)
        return idle, instead, swaps


def weigh(state: State, query: Query, node: Ints, own: Ints, group: Ints, base: Ints, at: Candidates) -> Weighed:
    """Weigh each CPU of the nodes: an idle one as a move, a busy one as a swap and as a move."""
    par = state.par
    grouped = query.group >= 0
    threshold = par.numa_move_threshold[query.r][:, None]
    within = own[:, None] + at.task_gain
    cut = at.cur_grouped & (threshold == 0) & state.kernel.group_hysteresis
    reduced = np.where(cut, within - toward_zero(within, HYSTERESIS), within)
    across = np.where(grouped, group, own)[:, None] + np.where(at.cur_grouped, at.group_gain, at.task_gain)
    imp = np.where(at.same, reduced, across)
    swap_ok = at.valid & at.busy & ~(at.same & at.cur_grouped & (threshold > 0) & (imp < threshold))

    move_fits = ~too_imbalanced(state, query, node, load_moved(state, query))
    swap_fits = ~too_imbalanced(state, query, node, load_swapped(state, query, at.cur))
    idle_ok = move_fits[:, 0] & _idle_allowed(state, query, node) & ~((threshold[:, 0] > 0) & (base < threshold[:, 0]))
    single = (state.nr[query.r, query.cpu] == 1)[:, None] & (state.nr[query.r[:, None], at.cpu] == 1)
    return Weighed(
        swap=imp,
        move=base[:, None],
        swap_ok=swap_ok,
        idle_ok=at.valid & (at.cur < 0) & idle_ok[:, None],
        swap_fits=np.broadcast_to(swap_fits, imp.shape),
        move_fits=move_fits,
        single=single,
    )


def examine(
    state: State, query: Query, found: Found, sel: Ints, node: Ints, own: Ints, group: Ints, base: Ints,
    at: Candidates, turn: Ints,
) -> None:  # fmt: skip
    """Compare the candidates with the best so far, in order."""
    worth = weigh(state, query, node, own, group, base, at)
    some: Bools = np.any(worth.idle_ok | worth.swap_ok, axis=1)
    unordered = state.kernel.move_in_swap and not state.kernel.strict_improvement
    odd: Bools = np.any(worth.single, axis=1) | np.bool_(unordered)
    for rows in turns(turn, np.flatnonzero(some)):
        plain = rows[~odd[rows]]
        if plain.size:
            col, swapped, score = _last_accepted(state, worth, plain, found.gain[sel[plain]])
            hit = col >= 0
            _keep(found, sel[plain[hit]], at, plain[hit], col[hit], swapped[hit], score[hit])
        if plain.size < rows.size:
            _accept_in_turn(state, worth, found, sel, at, rows[odd[rows]])


def _keep(found: Found, sel: Ints, at: Candidates, rows: Ints, col: Ints, swapped: Bools, score: Ints) -> None:
    found.cpu[sel] = at.cpu[rows, col]
    found.partner[sel] = np.where(swapped, at.cur[rows, col], -1)
    found.gain[sel] = score


def _last_accepted(state: State, worth: Weighed, rows: Ints, best: Ints) -> tuple[Ints, Bools, Ints]:
    """Return where going through the candidates in order ends: column (-1: none), whether a swap, score.

    The best so far only grows, so it ends at the highest score; ties go to the first candidate under a strict
    test, else to the last. A move to a busy CPU scores one below its gain and so gives way to a later one, and
    to every swap or idle CPU that is as good as the move.
    """
    move, swap = worth.move[rows], worth.swap[rows]
    fitting = worth.swap_ok[rows] & worth.swap_fits[rows]
    idle = worth.idle_ok[rows]
    score = np.where(idle, move, np.where(fitting, swap, NOTHING))
    index = np.arange(len(rows))
    if not state.kernel.strict_improvement:
        col = score.shape[1] - 1 - score[:, ::-1].argmax(axis=1)
        top = score[index, col]
        return np.where(top >= best, col, -1), ~idle[index, col], top
    col = score.argmax(axis=1)
    top = score[index, col]
    moves = worth.swap_ok[rows] & (swap < move) & worth.move_fits[rows] & (move > best[:, None])
    if not state.kernel.move_in_swap or not moves.any():
        return np.where(top > best, col, -1), ~idle[index, col], top
    instead = moves.any(axis=1) & (top < move[:, 0])
    last = moves.shape[1] - 1 - moves[:, ::-1].argmax(axis=1)
    col = np.where(instead, last, np.where(top > best, col, -1))
    return col, ~instead & ~idle[index, col], np.where(instead, move[:, 0] - 1, top)


def _accept_in_turn(state: State, worth: Weighed, found: Found, sel: Ints, at: Candidates, open_: Ints) -> None:
    """Go from one accepted candidate to the next: the general case, needed where single tasks swap unweighed."""
    best = found.gain[sel]
    after = np.full(len(sel), -1)
    columns = np.arange(at.cpu.shape[1])
    while open_.size:
        take_idle, take_move, take_swap = worth.accept(state, open_, best[open_])
        accepted = (take_idle | take_move | take_swap) & (columns > after[open_][:, None])
        hit = accepted.any(axis=1)
        open_ = open_[hit]
        col = accepted[hit].argmax(axis=1)
        rows = np.flatnonzero(hit)
        swapped, moved = take_swap[rows, col], take_move[rows, col]
        best[open_] = np.where(swapped, worth.swap[open_, col], worth.move[open_, 0] - moved)
        after[open_] = col
        _keep(found, sel[open_], at, open_, col, swapped, best[open_])


def _idle_allowed(state: State, query: Query, node: Ints) -> Bools:
    """Apply ``idle_capacity_test``: does an idle CPU of the node have capacity for the task?"""
    rows = np.arange(len(node))
    target_full = ~query.free[rows, node]
    rule = state.kernel.idle_capacity_test
    if rule == "none":
        return np.ones(len(node), np.bool_)
    if rule == "free":
        return ~(query.free[rows, query.node] & target_full)
    fitting = query.nr[rows, query.node] <= state.fix.task_capacity[query.node]
    return ~(fitting & target_full)
