"""What a search for a better CPU looks at: attempts, gains, and the CPUs of a node (docs/model.md 7.1, 7.2)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import topology
from numalab.model.state import State

#: Share of a gain that leaving one's own group's or preferred node costs.
HYSTERESIS = 16
FULL = 1024


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
    nr, load : (K, N) runnable tasks and load by node
    free : (K, N) fewer tasks than the node holds
    """

    r: Ints
    t: Ints
    cpu: Ints
    node: Ints
    group: Ints
    nr: Ints
    load: Ints
    free: Bools

    def rows(self, sel: Ints) -> Query:
        """Return some of the attempts."""
        return Query(*(getattr(self, name)[sel] for name in ("r", "t", "cpu", "node", "group", "nr", "load", "free")))


def query(state: State, r: Ints, t: Ints) -> Query:
    """Return the attempts of tasks with the state of all nodes."""
    fix = state.fix
    nr, load = by_node(state, state.nr[r]), by_node(state, state.load[r])
    return Query(r, t, state.cpu[r, t], state.node_of_task[r, t], state.group[r, t], nr, load, nr < fix.task_capacity)


def by_node(state: State, of_cpus: Ints) -> Ints:
    """Return the sums over the CPUs of each node: (K, C) to (K, N)."""
    result = np.zeros((len(of_cpus), state.layout.nodes), np.int64)
    result[:, state.fix.nodes_with_cpus] = np.add.reduceat(of_cpus, state.fix.first_cpu, axis=1)
    return result


def _level(state: State, source: Ints, other: Ints) -> Ints:
    """Return the index of the limit distance between two nodes; 0 where limits do not matter."""
    if state.fix.class_ != topology.BACKPLANE:
        return np.zeros(len(source), np.int64)
    return np.searchsorted(state.fix.levels, state.layout.distance[source, other])


def improvement(state: State, query: Query, node: Ints, seen_from: Ints) -> tuple[Ints, Ints]:
    """Return the task's and its group's improvement on a node over the source, of 1000: (K,) each."""
    level = _level(state, query.node, seen_from)
    task = state.task_weight[query.r, query.t, level]
    group = state.group_weight[query.r, query.group, level]
    rows = np.arange(len(node))
    in_group = np.where(query.group >= 0, group[rows, node] - group[rows, query.node], 0)
    return task[rows, node] - task[rows, query.node], in_group


def gains(state: State, query: Query, node: Ints, seen_from: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the task's, the group's, and the deciding improvement on a node (``group_improvement``): (K,) each."""
    own, group = improvement(state, query, node, seen_from)
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


def turns(turn: Ints, rows: Ints) -> list[Ints]:
    """Split rows (K,) by their turns, which ascend."""
    if not rows.size:
        return []
    bounds = [0, *(np.flatnonzero(np.diff(turn[rows])) + 1), len(rows)]
    return [rows[low:high] for low, high in itertools.pairwise(bounds)]


def toward_zero(value: Ints, divisor: int) -> Ints:
    """Divide as C does."""
    return np.sign(value) * (np.abs(value) // divisor)
