"""The load balancer and what it asks of NUMA (docs/model.md 8).

It sees node loads with an error: that, and not NUMA balancing, ends the stuck states of old kernels, so the
error is a parameter (``balancer_sigma``). Evaluations are rare and worked off one at a time.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import draws, moves, period, runqueue, topology
from numalab.model.state import UNIT_LOAD, State

BUSY_FACTOR = 32
CACHE_NICE_TRIES = 2
MILLION = 1_000_000


def balance(state: State) -> None:
    """Balance between nodes whose time has come, then within uneven nodes."""
    end = (state.step_index + 1) * state.dt
    due = state.balance_ns <= end[:, None]
    due[:, state.fix.cpus_of_node == 0] = False
    # with no CPU that has two tasks there is nothing to pull
    crowded = np.any(state.nr >= 2, axis=1)[:, None]
    r, n = np.nonzero(due & ~crowded)
    _put_off(state, r, n, end)
    for r, n in zip(*np.nonzero(due & crowded), strict=True):
        _between_nodes(state, int(r), int(n), int(end[r]))
    if state.maybe_uneven.any():
        _within_nodes(state)


def _put_off(state: State, r: Ints, n: Ints, end: Ints) -> None:
    """Set when nodes balance next, which have nothing to do now."""
    fix = state.fix
    idle = np.logical_or.reduceat(state.nr == 0, fix.first_cpu, axis=1)[r, fix.node_rank[n]]
    state.balance_ns[r, n] = end[r] + interval_ns(state, r, idle)


def _between_nodes(state: State, r: int, n: int, end: int) -> None:
    """Let node n pull at most one task from the node that looks busiest."""
    one, fix = state.layout, state.fix
    nr = state.nr[r]
    idle = bool((nr[one.cpu_node == n] == 0).any())
    state.balance_ns[r, n] = end + int(interval_ns(state, np.array(r), np.array(idle)))

    nr_node = np.bincount(one.cpu_node, weights=nr, minlength=one.nodes).astype(np.int64)
    idle_node = np.bincount(one.cpu_node, weights=nr == 0, minlength=one.nodes).astype(np.int64)
    crowded = np.bincount(one.cpu_node, weights=nr >= 2, minlength=one.nodes) > 0
    crowded[n] = False
    if not crowded.any():
        return
    seen = _seen_load(state, r, n)
    busiest = int(np.where(crowded, seen, -1).argmax())
    if idle:
        full = nr_node[busiest] > fix.cpus_of_node[busiest] or idle_node[n] > idle_node[busiest] + 1
        needed = seen[busiest] > seen[n] and full
    else:
        needed = 100 * seen[busiest] > state.par.domain_pct[r] * seen[n]
    if not needed:
        return
    if _spare_on_both(state, n, busiest, nr_node):
        if _gap_is_allowed(state, n, busiest, nr_node, idle_node):
            return
        _pull(state, r, n, busiest, idle)
        return
    average = seen[fix.nodes_with_cpus].sum() // len(fix.nodes_with_cpus)
    excess = min(seen[busiest] - average, average - seen[n])
    if UNIT_LOAD * UNIT_LOAD // fix.capacity[busiest] > 2 * excess:
        return
    _pull(state, r, n, busiest, idle)


def interval_ns(state: State, r: Ints, idle: Bools) -> Ints:
    """Return the time between balancing attempts of nodes, short while they have an idle CPU."""
    usual = state.layout.cpus * MILLION
    newidle = state.par.newidle_ms[r] * MILLION
    return np.where(idle, np.where(newidle > 0, newidle, usual), usual * BUSY_FACTOR)


def _seen_load(state: State, r: int, n: int) -> Ints:
    """Return the load per capacity of every node as the balancer of node n sees it."""
    nodes = state.layout.nodes
    u = draws.draw_keyed(state.key[draws.BALANCE][r], n * nodes + np.arange(nodes), state.step_index[r])
    error = np.maximum(0, MILLION + state.par.balancer_sigma[r] * draws.normal(u))
    load = np.bincount(state.layout.cpu_node, weights=state.load[r], minlength=nodes).astype(np.int64)
    return load * UNIT_LOAD // np.maximum(1, state.fix.capacity) * error // MILLION


def _spare_on_both(state: State, n: int, busiest: int, nr_node: Ints) -> bool:
    """Say whether idle CPUs are compared in place of loads (``balancer_allows_imbalance``)."""
    cpus = state.fix.cpus_of_node
    fits = nr_node[n] < cpus[n] and nr_node[busiest] <= cpus[busiest]
    return bool(state.kernel.balancer_allows_imbalance and fits)


def _gap_is_allowed(state: State, n: int, busiest: int, nr_node: Ints, idle_node: Ints) -> bool:
    """Say whether the imbalance of idle CPUs is small enough to be left alone."""
    gap = max(0, int(idle_node[n] - idle_node[busiest]))
    if nr_node[n] + 1 <= state.fix.imbalance_nr[n] and gap <= 2:
        gap = 0
    return gap // 2 == 0


def _pull(state: State, r: int, n: int, busiest: int, idle: bool) -> None:
    """Move the first task that may go from the fullest suitable queue of a node to the emptiest CPU of n."""
    one = state.layout
    queue = _busiest_queue(state, r, n, busiest)
    if queue < 0:
        return
    tasks = np.flatnonzero(state.runnable[r] & (state.cpu[r] == queue))
    u = draws.draw_keyed(state.key[draws.PICK][r], one.nodes + n, state.step_index[r])[0]
    start = int(u % np.uint64(len(tasks)))
    home = one.cpu_node == n
    for t in np.roll(tasks, -start):
        allowed = np.flatnonzero(home & one.affinity[state.affinity_phase[r], t])
        if t == state.cur[r, queue] or not allowed.size:
            continue
        if _is_hot(state, r, int(t), queue, busiest, n, idle) and state.balance_failed[r, n] <= CACHE_NICE_TRIES:
            continue
        target = int(allowed[state.nr[r, allowed].argmin()])
        state.events.append(
            (int(state.number[r]), int(state.step_index[r]), moves.BALANCE, int(t), queue, target, -1, 0)
        )
        state.put(r, int(t), target)
        period.changed_node(state, *(np.array([x]) for x in (r, int(t), busiest, n)))
        runqueue.requeue(state, np.array([r]))
        state.balance_failed[r, n] = 0
        return
    state.balance_failed[r, n] += 1


def _busiest_queue(state: State, r: int, n: int, node: int) -> int:
    """Return the CPU with most tasks whose class is not above the node's; -1 if there is none.

    Classes keep queues of well-placed tasks out as long as others have tasks that are not.
    """
    one = state.layout
    cpus = np.flatnonzero(one.cpu_node == node)
    tasks = np.flatnonzero(state.runnable[r])
    on = state.cpu[r, tasks]
    known = np.bincount(on, weights=state.preferred[r, tasks] != -1, minlength=one.cpus).astype(np.int64)
    home = np.bincount(on, weights=state.preferred[r, tasks] == node, minlength=one.cpus).astype(np.int64)

    def class_(nr: Ints, known: Ints, home: Ints) -> Ints:
        return np.where(nr > known, 0, np.where(nr > home, 1, 2))

    nr = state.nr[r, cpus]
    of_node = class_(nr.sum(), known[cpus].sum(), home[cpus].sum())
    fits = (nr >= 2) & (class_(nr, known[cpus], home[cpus]) <= of_node)
    if not fits.any():
        return -1
    u = draws.draw_keyed(state.key[draws.PICK][r], n, state.step_index[r])[0]
    start = int(u % np.uint64(len(cpus)))
    most = np.roll(np.where(fits, nr, -1), -start)
    return int(cpus[(int(most.argmax()) + start) % len(cpus)])


def _is_hot(state: State, r: int, t: int, queue: int, source: int, target: int, idle: bool) -> bool:
    """Say whether NUMA asks the balancer to leave a task where it is (``can_migrate_rule``)."""
    rule, preferred = state.kernel.can_migrate_rule, int(state.preferred[r, t])
    if rule == "favour_higher" or preferred < 0 or state.total[r, t] <= 0:
        return False
    if preferred == source:
        on_queue = state.runnable[r] & (state.cpu[r] == queue)
        return bool(state.nr[r, queue] > (on_queue & (state.preferred[r] == source)).sum())
    if preferred == target or idle:
        return False
    g = int(state.group[r, t])
    if rule == "preferred_count":
        faults = state.gmem[r, g] if g >= 0 else state.mem[r, t]
        return bool(faults[target].sum() < faults[source].sum())
    level = 0
    if state.fix.class_ == topology.BACKPLANE:
        level = int(np.searchsorted(state.fix.levels, state.layout.distance[source, target]))
    weight = state.group_weight[r, g, level] if g >= 0 else state.task_weight[r, t, level]
    return bool(weight[target] < weight[source])


def _within_nodes(state: State) -> None:
    """Even out the queues of a node by one task a step; a run with even nodes is left alone until something moves."""
    fix = state.fix
    rows = np.flatnonzero(state.maybe_uneven)
    uneven = _gaps(state.nr[rows], fix.first_cpu) >= 2
    if not fix.equal_loads:
        uneven |= _gaps(state.load[rows], fix.first_cpu) >= 2
    if fix.always_runnable:
        state.maybe_uneven[rows] = uneven.any(axis=1)
    for i, j in zip(*np.nonzero(uneven), strict=True):
        _even_out(state, int(rows[i]), np.flatnonzero(state.layout.cpu_node == fix.nodes_with_cpus[j]))


def _gaps(amount: Ints, first_cpu: Ints) -> Ints:
    """Return the difference between a node's highest and lowest CPU: (K, C) to (K, nodes with CPUs)."""
    return np.maximum.reduceat(amount, first_cpu, axis=1) - np.minimum.reduceat(amount, first_cpu, axis=1)


def _even_out(state: State, r: int, cpus: Ints) -> None:
    """Move one waiting task from the longest queue to the shortest, or else from the highest load to the lowest."""
    nr, load = state.nr[r, cpus], state.load[r, cpus]
    by_number = nr.max() - nr.min() >= 2
    amount = nr if by_number else load
    high, low = int(cpus[amount.argmax()]), int(cpus[amount.argmin()])
    for t in np.flatnonzero(state.runnable[r] & (state.cpu[r] == high)):
        may = t != state.cur[r, high] and state.layout.affinity[state.affinity_phase[r], t, low]
        if may and (by_number or 2 * state.load_avg[r, t] <= load.max() - load.min()):
            state.put(r, int(t), low)
            runqueue.requeue(state, np.array([r]))
            return
