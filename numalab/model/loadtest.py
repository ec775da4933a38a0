"""Load tests: does moving a task leave two nodes too uneven (docs/model.md 7.2)."""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model.candidates import FULL, Query
from numalab.model.state import State


def loads(state: State, query: Query, node: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the loads of source and target as the load test sees them, and both capacities: (K,) each."""
    rows = np.arange(len(node))
    source, target = query.load[rows, query.node], query.load[rows, node]
    cap_source, cap_target = state.fix.capacity[query.node], state.fix.capacity[node]
    if state.kernel.capacity_after:
        return source, target, cap_source, cap_target
    # the slip of before 3.17: loads are divided by capacity, the moved load is not
    one = np.ones_like(source)
    return FULL * source // cap_source, FULL * target // cap_target, one, one


def too_imbalanced(state: State, query: Query, node: Ints, moved: Ints | int) -> Bools:
    """Say whether moving some load from the source to a node leaves them too uneven (``imbalance_rule``).

    Parameters
    ----------
    node : (K,) target
    moved : (K, X), (K, 1) or int
        Load moved; of a swap, what the one task's is above the other's.

    Returns
    -------
    (K, X) or (K, 1) bool
    """
    pct = state.par.imbalance_pct[query.r][:, None]
    source, target, cap_source, cap_target = (part[:, None] for part in loads(state, query, node))
    new_source, new_target = source - moved, target + moved
    if state.kernel.imbalance_rule == "improve":
        new = np.abs(new_target * cap_source - new_source * cap_target)
        return new > np.abs(target * cap_source - source * cap_target)

    def above_tolerance(one: Ints, other: Ints) -> Ints:
        # capacities are not exchanged along with the loads
        return 100 * np.maximum(one, other) * cap_source - pct * np.minimum(one, other) * cap_target

    imbalance = above_tolerance(new_source, new_target)
    if state.kernel.imbalance_rule == "threshold":
        return (imbalance > 0) & (imbalance > above_tolerance(source, target))
    new_source, new_target = new_source * cap_target, new_target * cap_source
    overshoot = np.where(np.asarray(moved) > 0, new_source < new_target, new_target < new_source)
    return (imbalance > 0) & overshoot


def load_moved(state: State, query: Query) -> Ints:
    """Return the load that a move of each attempt's task moves: (K, 1)."""
    return state.load_avg[query.r, query.t][:, None]


def load_swapped(state: State, query: Query, cur: Ints) -> Ints:
    """Return by how much the attempt's task is the heavier one: (K, X), or (K, 1) where all weigh the same."""
    moved = load_moved(state, query)
    return moved * 0 if state.fix.equal_loads else moved - state.load_avg[query.r[:, None], np.maximum(0, cur)]
