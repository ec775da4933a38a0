"""The search for a better CPU: which nodes, in which order (docs/model.md 7.2).

Candidates are examined in CPU order and each is compared with the best so far. All attempts of a step are
examined side by side: per node, a matrix attempts x CPUs of what each candidate is worth.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import maymove, weigh
from numalab.model.candidates import Found, Query, candidates, gains, improvement, query
from numalab.model.state import State


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
        own, group = improvement(state, asked.rows(sel), node, found.last[sel])
        worth = ~((own < 0) & (group < 0))
        sel, node = sel[worth], node[worth]
        before = found.last[sel]
        found.last[sel] = n
        if state.kernel.check_preferred == "has_capacity":
            fits = has_capacity(state, asked.rows(sel), node)
            sel, node, before = sel[fits], node[fits], before[fits]
        _examine(state, asked, found, sel, node, before)
    return found


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


def _examine(state: State, query: Query, found: Found, sel: Ints, node: Ints, seen_from: Ints) -> None:
    """Examine one node for each of some attempts, and keep what is better than the best so far."""
    if not sel.size:
        return
    part = query.rows(sel)
    own, group, base = gains(state, part, node, seen_from)
    at = candidates(state, part, node, seen_from)
    if state.kernel.maymove:
        maymove.examine(state, part, found, sel, node, own, base, at)
    else:
        weigh.examine(state, part, found, sel, node, own, group, base, at)
