"""Task and group weights: shares of faults by node, of 1000 (docs/model.md 5.2, 9).

Kept as tables, since a search compares the weights of many tasks and placement changes those of few.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import Ints
from numalab.model import topology
from numalab.model.state import State

SCALE = 1000


def refresh_tasks(state: State, r: Ints, t: Ints) -> None:
    """Recompute the weights of tasks whose faults changed."""
    state.task_weight[r, t] = _weights(state, state.mem[r, t], state.total[r, t])


def refresh_groups(state: State, r: Ints, g: Ints) -> None:
    """Recompute the weights of groups whose faults changed."""
    state.group_weight[r, g] = _weights(state, state.gmem[r, g], state.gtotal[r, g])


def _weights(state: State, faults: Ints, total: Ints) -> Ints:
    score = topology.scores(faults.sum(axis=2), state.layout.distance, state.fix.class_, state.kernel)
    whole = total[:, None, None]
    return np.where(whole > 0, SCALE * score // np.maximum(1, whole), 0)
