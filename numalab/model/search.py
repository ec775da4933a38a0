"""The search for a better CPU: which nodes, in which order (docs/model.md 7.2).

Candidates are examined in CPU order and each is compared with the best so far. All attempts of a step are
examined side by side: what each candidate is worth is a matrix, attempts and nodes by CPUs; node by node it is
compared with the best so far.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import maymove, topology, weigh
from numalab.model.candidates import Found, Query, candidates, gains, improvement, query
from numalab.model.state import State

#: Candidates weighed at the same time, to bound memory.
AT_ONCE = 1 << 20


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
    _examine(state, asked, found, first, preferred[first], preferred[first], np.zeros_like(first))
    g = asked.group
    spread = (g >= 0) & (state.gcount[r, g] > 1) if state.kernel.search_all_if_spread else np.zeros(len(r), np.bool_)
    more = (found.cpu < 0) | spread
    for nodes in _parts(state, len(r)):
        which, sel = np.nonzero(more & (asked.node != nodes[:, None]) & (preferred != nodes[:, None]))
        node, before = nodes[which], found.last[sel]
        own, group = improvement(state, asked.rows(sel), node, before)
        worth = ~((own < 0) & (group < 0))
        sel, node, before, which = sel[worth], node[worth], before[worth], which[worth]
        # nodes in ascending order: the last one stays
        found.last[sel] = node
        if state.kernel.check_preferred == "has_capacity":
            fits = has_capacity(state, asked.rows(sel), node)
            sel, node, before, which = sel[fits], node[fits], before[fits], which[fits]
        _examine(state, asked, found, sel, node, before, which)
    return found


def _parts(state: State, attempts: int) -> list[Ints]:
    """Split the nodes into parts whose candidates are weighed at once: what a node is worth may hang on the last."""
    nodes, cpus = state.fix.node_cpus.shape
    parts = -(-attempts * nodes * cpus // AT_ONCE)
    if state.fix.class_ == topology.BACKPLANE:
        parts = nodes
    return np.array_split(state.fix.nodes_with_cpus, min(parts, len(state.fix.nodes_with_cpus)))


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
    source = query.load[rows, query.node] * capacity[node] * state.par.imbalance_pct[query.r]
    target = query.load[rows, node] * capacity[query.node] * 100
    return (free_target | ~free_source) & (source > target)


def _examine(state: State, query: Query, found: Found, sel: Ints, node: Ints, seen_from: Ints, turn: Ints) -> None:
    """Examine nodes for some attempts, and keep what is better than the best so far.

    Parameters
    ----------
    sel, node, seen_from : (K,) attempt, node, and the node examined before it
    turn : (K,) ascending: an attempt has one node in each turn
    """
    if not sel.size:
        return
    part = query.rows(sel)
    own, group, base = gains(state, part, node, seen_from)
    at = candidates(state, part, node, seen_from)
    if state.kernel.maymove:
        maymove.examine(state, part, found, sel, node, own, base, at, turn)
    else:
        weigh.examine(state, part, found, sel, node, own, group, base, at, turn)
