"""The search for a better CPU: candidates of a node, moves against swaps (docs/model.md 7.1, 7.2).

Candidates are examined in CPU order and each is compared with the best so far. All attempts of a step are
examined side by side: per node, a matrix attempts x CPUs of what each candidate is worth, in which every
attempt jumps from one accepted candidate to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import topology
from numalab.model.state import State

HYSTERESIS = 16
HOME_BONUS = 8
UNIT_LOAD = 1024
FULL = 1024
#: Below every score.
NOTHING = -(1 << 40)


@dataclass
class Found:
    """What the searches found so far.

    Attributes
    ----------
    cpu : (K,) best CPU, -1 none
    partner : (K,) task to swap with, -1: a move
    gain : (K,) improvement of the best, of 1000
    last : (K,) node examined last
    """

    cpu: Ints
    partner: Ints
    gain: Ints
    last: Ints


@dataclass
class Query:
    """The attempts under way: run, task, its CPU and node, its group, and the state of all nodes.

    Attributes
    ----------
    r, t, cpu, node, group : (K,)
    nr : (K, N) runnable tasks by node
    free : (K, N) fewer tasks than the node holds
    """

    r: Ints
    t: Ints
    cpu: Ints
    node: Ints
    group: Ints
    nr: Ints
    free: Bools

    def rows(self, sel: Ints) -> Query:
        """Return some of the attempts."""
        return Query(*(getattr(self, name)[sel] for name in ("r", "t", "cpu", "node", "group", "nr", "free")))


def find(state: State, r: Ints, t: Ints) -> Found:
    """Search a better CPU for tasks away from their preferred node.

    Parameters
    ----------
    r, t : (K,) run and task

    Returns
    -------
    Found
    """
    preferred = state.preferred[r, t]
    none = np.full(len(r), -1, np.int64)
    found = Found(none, none.copy(), np.zeros(len(r), np.int64), preferred.copy())
    if not r.size or len(state.fix.nodes_with_cpus) == 1:
        return found
    asked = query(state, r, t)
    first = np.flatnonzero(_preferred_is_searched(state, asked, preferred))
    _examine(state, asked, found, first, preferred[first], preferred[first])
    g = asked.group
    spread = (g >= 0) & (state.gcount[r, g] > 1) if state.kernel.search_all_if_spread else np.zeros(len(r), np.bool_)
    more = (found.cpu < 0) | spread
    for n in state.fix.nodes_with_cpus:
        sel = np.flatnonzero(more & (asked.node != n) & (preferred != n))
        node = np.full(len(sel), n)
        own, group = _improvement(state, asked.rows(sel), node, found.last[sel])
        worth = ~((own < 0) & (group < 0))
        sel, node = sel[worth], node[worth]
        before = found.last[sel]
        found.last[sel] = n
        if state.kernel.check_preferred == "has_capacity":
            fits = has_capacity(state, asked.rows(sel), node)
            sel, node, before = sel[fits], node[fits], before[fits]
        _examine(state, asked, found, sel, node, before)
    return found


def query(state: State, r: Ints, t: Ints) -> Query:
    """Return the attempts of tasks with the state of all nodes."""
    fix = state.fix
    nr = nr_by_node(state, r)
    return Query(r, t, state.cpu[r, t], state.node_of_task[r, t], state.group[r, t], nr, nr < fix.task_capacity)


def nr_by_node(state: State, r: Ints) -> Ints:
    """Return the runnable tasks of each node: (K, N)."""
    result = np.zeros((len(r), state.layout.nodes), np.int64)
    result[:, state.fix.nodes_with_cpus] = np.add.reduceat(state.nr[r], state.fix.first_cpu, axis=1)
    return result


def _preferred_is_searched(state: State, query: Query, preferred: Ints) -> Bools:
    """Say whether the preferred node is searched (commit a43455a1 and its later gate)."""
    rule = state.kernel.check_preferred
    if rule == "always":
        return np.ones(len(preferred), np.bool_)
    if rule == "if_free":
        return query.free[np.arange(len(preferred)), preferred]
    return has_capacity(state, query, preferred)


def has_capacity(state: State, query: Query, node: Ints) -> Bools:
    """Say whether a node is not relatively more loaded than the source (4.2 to 4.18)."""
    rows, capacity = np.arange(len(node)), state.fix.capacity
    free_target, free_source = query.free[rows, node], query.free[rows, query.node]
    source = query.nr[rows, query.node] * UNIT_LOAD * capacity[node] * state.par.imbalance_pct[query.r]
    target = query.nr[rows, node] * UNIT_LOAD * capacity[query.node] * 100
    return np.asarray((free_target | ~free_source) & (source > target))


def _level(state: State, source: Ints, other: Ints) -> Ints:
    """Return the index of the limit distance between two nodes; 0 where limits do not matter."""
    if state.fix.class_ != topology.BACKPLANE:
        return np.zeros(len(source), np.int64)
    return np.searchsorted(state.fix.levels, state.layout.distance[source, other])


def _improvement(state: State, query: Query, node: Ints, seen_from: Ints) -> tuple[Ints, Ints]:
    """Return the task's and its group's improvement on a node over the source, of 1000: (K,) each."""
    level = _level(state, query.node, seen_from)
    task = state.task_weight[query.r, query.t, level]
    group = state.group_weight[query.r, query.group, level]
    rows = np.arange(len(node))
    in_group = np.where(query.group >= 0, group[rows, node] - group[rows, query.node], 0)
    return task[rows, node] - task[rows, query.node], in_group


def _examine(state: State, query: Query, found: Found, sel: Ints, node: Ints, seen_from: Ints) -> None:
    """Examine one node for each of some attempts, and keep what is better than the best so far."""
    if not sel.size:
        return
    part = query.rows(sel)
    own, group, base = gains(state, part, node, seen_from)
    at = candidates(state, part, node, seen_from)
    if state.kernel.maymove:
        _examine_since_4_19(state, part, found, sel, node, own, base, at)
    else:
        _examine_before_4_19(state, part, found, sel, node, own, group, base, at)


def gains(state: State, query: Query, node: Ints, seen_from: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the task's, the group's, and the deciding improvement on a node (``group_improvement``): (K,) each."""
    own, group = _improvement(state, query, node, seen_from)
    if state.kernel.group_improvement == "if_positive":
        return own, group, np.where(group > 0, group, own)
    return own, group, np.where(query.group >= 0, group, own)


@dataclass
class Candidates:
    """The CPUs of the examined nodes, in order, padded: (K, X) each.

    Attributes
    ----------
    cpu : CPU, meaningless where not ``valid``
    valid : the task may run there
    cur : the task running there, -1 idle
    busy : it runs a task that may run on the attempt's CPU
    same : that task has the same group as the attempt's (or both none)
    cur_grouped : that task has a group
    task_gain, group_gain : what that task, or its group, gains on the attempt's node, of 1000
    """

    cpu: Ints
    valid: Bools
    cur: Ints
    busy: Bools
    same: Bools
    cur_grouped: Bools
    task_gain: Ints
    group_gain: Ints


def candidates(state: State, query: Query, node: Ints, seen_from: Ints) -> Candidates:
    """Return the CPUs of one node per attempt with the tasks running there."""
    table = state.fix.node_cpus[node]
    cpu = np.maximum(0, table)
    r, rows = query.r[:, None], state.affinity_phase[query.r][:, None]
    affinity = state.layout.affinity
    valid = (table >= 0) & affinity[rows, query.t[:, None], cpu]
    cur = np.where(valid, state.cur[r, cpu], -1)
    other = np.maximum(0, cur)
    busy = (cur >= 0) & affinity[rows, other, query.cpu[:, None]]
    group = state.group[r, other]
    level = _level(state, query.node, seen_from)[:, None]
    source, target = query.node[:, None], node[:, None]
    task_gain = state.task_weight[r, other, level, source] - state.task_weight[r, other, level, target]
    group_gain = state.group_weight[r, group, level, source] - state.group_weight[r, group, level, target]
    return Candidates(
        cpu, valid, cur, busy, group == query.group[:, None], group >= 0, task_gain, np.where(group >= 0, group_gain, 0)
    )


# ------------------------------------------------------------------------------------ until 4.18
@dataclass
class Weighed:
    """What the candidates of the examined nodes are worth, before any is compared with the best so far.

    Attributes
    ----------
    swap : (K, X) gain of a swap with the task running there, of 1000
    move : (K, 1) gain of a plain move to the node
    swap_ok, idle_ok : (K, X) a swap, or the move to an idle CPU, is not ruled out
    swap_fits, move_fits : (K, 1) the loads afterwards are not too imbalanced
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
    reduced = np.where(at.cur_grouped & (threshold == 0), within - _toward_zero(within, HYSTERESIS), within)
    across = np.where(grouped, group, own)[:, None] + np.where(at.cur_grouped, at.group_gain, at.task_gain)
    imp = np.where(at.same, reduced, across)
    swap_ok = at.valid & at.busy & ~(at.same & at.cur_grouped & (threshold > 0) & (imp < threshold))

    move_fits = ~too_imbalanced(state, query, node, UNIT_LOAD)
    idle_ok = move_fits & _idle_allowed(state, query, node) & ~((threshold[:, 0] > 0) & (base < threshold[:, 0]))
    single = (state.nr[query.r, query.cpu] == 1)[:, None] & (state.nr[query.r[:, None], at.cpu] == 1)
    return Weighed(
        swap=imp,
        move=base[:, None],
        swap_ok=swap_ok,
        idle_ok=at.valid & (at.cur < 0) & idle_ok[:, None],
        swap_fits=~too_imbalanced(state, query, node, 0)[:, None],
        move_fits=move_fits[:, None],
        single=single,
    )


def _examine_before_4_19(
    state: State, query: Query, found: Found, sel: Ints, node: Ints, own: Ints, group: Ints, base: Ints, at: Candidates
) -> None:
    """Compare the candidates with the best so far, in order."""
    worth = weigh(state, query, node, own, group, base, at)
    best = found.gain[sel]
    unordered = state.kernel.move_in_swap and not state.kernel.strict_improvement
    odd = worth.single.any(axis=1) | np.bool_(unordered)
    plain = np.flatnonzero(~odd)
    if plain.size:
        col, swapped, score = _last_accepted(state, worth, plain, best[plain])
        hit = col >= 0
        _keep(found, sel[plain[hit]], at, plain[hit], col[hit], swapped[hit], score[hit])
    if odd.any():
        _accept_in_turn(state, worth, found, sel, at, np.flatnonzero(odd))


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


def loads(state: State, query: Query, node: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the loads of source and target as the load test sees them, and both capacities: (K,) each."""
    rows = np.arange(len(node))
    source, target = query.nr[rows, query.node] * UNIT_LOAD, query.nr[rows, node] * UNIT_LOAD
    cap_source, cap_target = state.fix.capacity[query.node], state.fix.capacity[node]
    if state.kernel.capacity_after:
        return source, target, cap_source, cap_target
    # the slip of before 3.17: loads are divided by capacity, the moved load is not
    one = np.ones_like(source)
    return FULL * source // cap_source, FULL * target // cap_target, one, one


def too_imbalanced(state: State, query: Query, node: Ints, moved: int) -> Bools:
    """Say whether moving some load from the source to a node leaves them too uneven (``imbalance_rule``).

    Parameters
    ----------
    node : (K,) target
    moved : int
        Net load moved; 0 for a swap (every task weighs the same).

    Returns
    -------
    (K,) bool
    """
    pct = state.par.imbalance_pct[query.r]
    source, target, cap_source, cap_target = loads(state, query, node)
    new_source, new_target = source - moved, target + moved
    if state.kernel.imbalance_rule == "improve":
        new = np.abs(new_target * cap_source - new_source * cap_target)
        return np.asarray(new > np.abs(target * cap_source - source * cap_target))

    def above_tolerance(one: Ints, other: Ints) -> Ints:
        # capacities are not exchanged along with the loads
        return 100 * np.maximum(one, other) * cap_source - pct * np.minimum(one, other) * cap_target

    imbalance = above_tolerance(new_source, new_target)
    if state.kernel.imbalance_rule == "threshold":
        return np.asarray((imbalance > 0) & (imbalance > above_tolerance(source, target)))
    overshoot = (
        new_source * cap_target < new_target * cap_source
        if moved > 0
        else new_target * cap_source < new_source * cap_target
    )
    return np.asarray((imbalance > 0) & overshoot)


# ------------------------------------------------------------------------------------ since 4.19
def _examine_since_4_19(
    state: State, query: Query, found: Found, sel: Ints, node: Ints, own: Ints, base: Ints, at: Candidates
) -> None:
    """Weigh each CPU, with the load test of a move made once per node, and biases toward home."""
    kernel = state.kernel
    maymove = ~too_imbalanced(state, query, node, UNIT_LOAD)
    spare = is_spare(state, query, node)
    closed = np.zeros(len(sel), np.bool_)
    if kernel.node_classes:
        settled = spare & (allowed_imbalance(state, query, node) == 0)
        maymove = np.where(spare, settled, maymove)
        closed = settled & _take_idle_cpu(state, query, found, sel, settled, at)
    valid = at.valid
    if kernel.numa_migrate_on:
        valid = valid & ~state.numa_moved_to[query.r[:, None], at.cpu]
    swap_ok = valid & at.busy
    if kernel.spare_refuses_swap:
        swap_ok &= ~(spare[:, None] & at.same)
    idle = valid & (at.cur < 0) & maymove[:, None]
    imp, homeward = _swap_value(state, query, node, own, base, at)
    margin = state.par.small_improvement[query.r][:, None]
    moveimp = base[:, None]

    best = found.gain[sel]
    after = np.full(len(sel), -1)
    columns = np.arange(at.cpu.shape[1])
    open_ = np.flatnonzero(~closed)
    while open_.size:
        o, b = open_, best[open_][:, None]
        has_task, best_goes_home = _best_homeward(state, query, found, sel, o)
        usable = swap_ok[o] & ~(best_goes_home[:, None] & ~homeward[o]) if kernel.home_bias else swap_ok[o]
        take_idle = idle[o] & (moveimp[o] >= b)
        take_move = usable & maymove[o][:, None] & (moveimp[o] > imp[o]) & (moveimp[o] > b)
        small = margin[o]
        enough = np.where(small > 0, (imp[o] >= small) & (imp[o] > b + small // 2), imp[o] > b)
        if kernel.home_bias:
            enough |= homeward[o] & (has_task & ~best_goes_home)[:, None]
        take_swap = usable & ~take_move & enough
        accepted = (take_idle | take_move | take_swap) & (columns > after[o][:, None])
        hit = accepted.any(axis=1)
        open_ = o[hit]
        if not open_.size:
            break
        col = accepted[hit].argmax(axis=1)
        rows = np.flatnonzero(hit)
        swapped, idled = take_swap[rows, col], take_idle[rows, col]
        best[open_] = np.where(swapped, imp[open_, col], base[open_])
        after[open_] = col
        found.cpu[sel[open_]] = at.cpu[open_, col]
        found.partner[sel[open_]] = np.where(swapped, at.cur[open_, col], -1)
        if kernel.stop_when_good:
            good = idled | (swapped & homeward[open_, col] & ~maymove[open_])
            open_ = open_[~good]
    found.gain[sel[~closed]] = best[~closed]


def _swap_value(state: State, query: Query, node: Ints, own: Ints, base: Ints, at: Candidates) -> tuple[Ints, Bools]:
    """Return what each swap is worth, and whether it brings the other task to its preferred node: (K, X) each."""
    within = own[:, None] + at.task_gain
    within = np.where(at.cur_grouped, within - _toward_zero(within, HYSTERESIS), within)
    by_group = at.cur_grouped
    if state.kernel.pair_by_group:
        by_group = by_group & (query.group >= 0)[:, None]
    imp = np.where(at.same, within, base[:, None] + np.where(by_group, at.group_gain, at.task_gain))
    wants = state.preferred[query.r[:, None], np.maximum(0, at.cur)]
    homeward = (at.cur >= 0) & (wants == query.node[:, None])
    if state.kernel.home_bias:
        imp = np.where(wants == node[:, None], imp - _toward_zero(imp, HYSTERESIS), imp)
        imp = np.where(homeward, imp + _toward_zero(imp, HOME_BONUS), imp)
    return imp, homeward


def _best_homeward(state: State, query: Query, found: Found, sel: Ints, rows: Ints) -> tuple[Bools, Bools]:
    """Say for each attempt whether the best so far is a swap, and whether that brings its task home."""
    partner = found.partner[sel[rows]]
    has_task = partner >= 0
    wants = state.preferred[query.r[rows], np.maximum(0, partner)]
    return has_task, has_task & (wants == query.node[rows])


def _take_idle_cpu(state: State, query: Query, found: Found, sel: Ints, rows: Bools, at: Candidates) -> Bools:
    """Take an idle CPU at once, whatever was found before; an idle core is preferred. Says where there was one."""
    free = at.valid & (at.cur < 0) & (state.nr[query.r[:, None], at.cpu] == 0) & rows[:, None]
    if state.kernel.numa_migrate_on:
        free &= ~state.numa_moved_to[query.r[:, None], at.cpu]
    core_busy = _core_is_busy(state, query.r)[np.arange(len(sel))[:, None], at.cpu]
    rank = np.where(free, core_busy.astype(np.int64), 2)
    col = rank.argmin(axis=1)
    hit = free.any(axis=1)
    found.cpu[sel[hit]] = at.cpu[hit, col[hit]]
    found.partner[sel[hit]] = -1
    found.gain[sel[hit]] = 0
    return hit


def _core_is_busy(state: State, r: Ints) -> Bools:
    """Say for each CPU whether any thread of its core has a task: (K, C)."""
    core = state.layout.cpu_core
    cores = int(core.max()) + 1
    flat = np.arange(len(r))[:, None] * cores + core
    used = np.bincount(flat.ravel(), weights=(state.nr[r] > 0).ravel(), minlength=len(r) * cores)
    return np.asarray(used[flat] > 0)


def is_spare(state: State, query: Query, node: Ints) -> Bools:
    """Say whether nodes have spare capacity (node class of 5.7 on)."""
    rows, pct = np.arange(len(node)), state.par.imbalance_pct[query.r]
    nr, cpus, capacity = query.nr[rows, node], state.fix.cpus_of_node[node], state.fix.capacity[node]
    busy = (state.nr[query.r] > 0).astype(np.int64)
    util = FULL * np.add.reduceat(busy, state.fix.first_cpu, axis=1)[rows, state.fix.node_rank[node]]
    runnable = UNIT_LOAD * nr
    overloaded = (nr > cpus) & ((capacity * 100 < util * pct) | (capacity * pct < runnable * 100))
    spare = (nr < cpus) | ((capacity * 100 > util * pct) & (capacity * pct > runnable * 100))
    return np.asarray(spare & ~overloaded)


def allowed_imbalance(state: State, query: Query, node: Ints) -> Ints:
    """Return by how many tasks a move would unbalance two nodes beyond what is allowed: (K,)."""
    rows = np.arange(len(node))
    target, source = query.nr[rows, node] + 1, query.nr[rows, query.node] - 1
    over = np.maximum(0, target - source)
    return np.where((target <= state.fix.imbalance_nr[node]) & (over <= 2), 0, over)


def _toward_zero(value: Ints, divisor: int) -> Ints:
    """Divide as C does."""
    return np.sign(value) * (np.abs(value) // divisor)
