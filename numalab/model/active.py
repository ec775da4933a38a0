"""Active nodes: where a group runs, by the CPU part of its faults (docs/model.md 5.3)."""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model.state import State


def is_active(state: State, r: Ints, g: Ints, node: Ints) -> Bools:
    """Say whether groups are active on nodes (of a group -1 the answer means nothing)."""
    if state.kernel.active_nodes == "count":
        return 3 * state.gcpu[r, g, node].sum(axis=-1) > state.gmax[r, g]
    return state.gactive[r, g, node]


def update(state: State, r: Ints, g: Ints) -> None:
    """Recount the nodes that distinct groups (r, g) run on, by the CPU part of their faults."""
    rule = state.kernel.active_nodes
    if rule == "none" or not r.size:
        return
    faults = state.gcpu[r, g].sum(axis=2)
    most = faults.max(axis=1)
    if rule == "count":
        state.gmax[r, g] = most
        state.gcount[r, g] = (3 * faults > most[:, None]).sum(axis=1)
        return
    was = state.gactive[r, g]
    now = np.where(was, faults >= (3 * most // 16)[:, None], faults > (6 * most // 16)[:, None])
    state.gactive[r, g] = now
    state.gcount[r, g] = now.sum(axis=1)
