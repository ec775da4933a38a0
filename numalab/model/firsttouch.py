"""First touch: where memory starts (docs/model.md 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.layout import Ints, Layout
from numalab.model.state import State


def place_blocks(state: State, r: int) -> None:
    """Place the blocks of a run that have no node yet and whose first task, if they wait for one, has started.

    A full node passes a block on to the nearest with room.

    Raises
    ------
    ValueError
        No node has room.
    """
    one, fix = state.layout, state.fix
    waits_for = np.maximum(0, -1 - one.block_node)
    ready = (one.block_node >= 0) | (state.cpu[r, waits_for] >= 0)
    blocks = np.flatnonzero((state.node[r] < 0) & ready)
    if not blocks.size:
        return
    k = one.region_block_pages[fix.block_region[blocks]]
    first = one.block_node[blocks]
    wanted = np.where(first >= 0, first, state.node_of_task[r, waits_for[blocks]])
    need = np.bincount(wanted, weights=k, minlength=one.nodes).astype(np.int64)
    if (need > state.free[r]).any():
        _spill(one, state.free[r].copy(), wanted, k)
        need = np.bincount(wanted, weights=k, minlength=one.nodes).astype(np.int64)
    state.free[r] -= need
    flat = fix.block_region[blocks] * one.nodes + wanted
    pages = np.bincount(flat, weights=k, minlength=one.regions * one.nodes).astype(np.int64)
    state.region_node_pages[r] += pages.reshape(one.regions, one.nodes)
    state.node[r, blocks] = wanted
    state.speed_stale[r] = True


def _spill(layout: Layout, free: Ints, wanted: NDArray[Any], k: Ints) -> None:
    """Send blocks, in order, to the nearest node with room."""
    by_distance = [np.lexsort((np.arange(layout.nodes), row)) for row in layout.distance]
    for i in range(len(wanted)):
        room = [n for n in by_distance[int(wanted[i])] if free[n] >= k[i]]
        if not room:
            raise ValueError("memory fits on no node: the workload needs more than the machine has")
        wanted[i] = room[0]
        free[room[0]] -= k[i]
