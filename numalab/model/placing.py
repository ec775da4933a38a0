"""Rules of placement over plain arrays: how faults decay, which node is preferred. See docs/model.md 5 and 9."""

from __future__ import annotations

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import Bools, Ints
from numalab.model import topology


def memory_change(mem: Ints, buffered: Ints) -> Ints:
    """Return what placement adds to the faults on memory: half of them goes, what was buffered comes."""
    return buffered - mem // 2


def cpu_change(cpu_faults: Ints, buffered: Ints, share: Ints, seen: Ints) -> Ints:
    """Return what placement adds to the faults by CPU.

    Parameters
    ----------
    cpu_faults, buffered : (...)
    share : (...) run time since the last placement, of 65536
    seen : (...) faults since the counts of locality were cleared
    """
    return share * buffered // (seen + 1) - cpu_faults // 2


def choice(
    kernel: Kernel, class_: int, distance: Ints, own: tuple[Ints, Ints], group: tuple[Ints, Ints], grouped: Bools
) -> Ints:
    """Choose preferred nodes: most faults of the task, or by ``preferred_rule`` of its group.

    Parameters
    ----------
    class_ : int
        `topology.classify` of the machine.
    distance : (N, N)
    own, group : (K, N) faults by node and (K,) their total, of the tasks and of their groups
    grouped : (K,) bool
        Tasks without a group choose by their own faults.

    Returns
    -------
    (K,) node, -1 without faults
    """
    alone = most(own[0])
    if kernel.preferred_rule == "weight_sum":
        both = most(_permille(*own) + _permille(*group))
        answer = np.where((most(group[0]) >= 0) & (most(group[0]) != alone) & (both >= 0), both, alone)
    elif kernel.preferred_rule == "group_max" or class_ == topology.DIRECT:
        answer = most(group[0])
    elif class_ == topology.MESH:
        score = topology.scores(group[0], distance, class_, kernel)[:, 0]
        answer = most(_permille(score, group[1]))
    else:
        answer = np.array([topology.densest_cluster_node(row, distance) for row in group[0]], np.int64)
    return np.where(grouped, answer, alone)


def most(amount: Ints) -> Ints:
    """Return the first node with the highest amount, -1 where all are 0: (K, N) to (K,)."""
    return np.where(amount.max(axis=1) > 0, amount.argmax(axis=1), -1)


def _permille(part: Ints, whole: Ints) -> Ints:
    return np.where(whole[:, None] > 0, 1000 * part // np.maximum(1, whole)[:, None], 0)
