"""Topology of the machine as the kernel sees it (docs/model.md 9; since 3.19)."""

from __future__ import annotations

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import Ints

DIRECT, MESH, BACKPLANE = 0, 1, 2
LOCAL_DISTANCE = 10


def classify(distance: Ints, kernel: Kernel) -> int:
    """Return DIRECT, MESH or BACKPLANE for an (N, N) SLIT matrix, by the kernel's own test.

    On a mesh some node lies between the two most distant ones; on a backplane none does.
    """
    if kernel.direct_topology_test == "none":
        return DIRECT
    if len(distance) == 1:
        return DIRECT
    if kernel.direct_topology_test == "distinct_distances" and len(np.unique(distance)) <= 2:
        return DIRECT
    far = int(distance.max())
    a, b = np.argwhere(distance == far)[0]
    between = (distance[a] < far) & (distance[b] < far)
    return MESH if between.any() else BACKPLANE


def levels(distance: Ints, class_: int) -> Ints:
    """Return the limit distances that matter: all distinct ones on a backplane, else just one."""
    return np.unique(distance) if class_ == BACKPLANE else np.array([int(distance.max())], np.int64)


def scores(faults: Ints, distance: Ints, class_: int, kernel: Kernel) -> Ints:
    """Return each node's score per limit distance: its faults and what nodes near it add.

    Parameters
    ----------
    faults : (K, N) faults of K tasks or groups by node.
    distance : (N, N) SLIT distances.

    Returns
    -------
    (K, Lv, N) faults, Lv as in :func:`levels`. On a backplane nodes within the limit count in full, on a
    mesh all nodes count the more the nearer they are.
    """
    if class_ == DIRECT or not kernel.topology_scores:
        return faults[:, None, :]
    far = int(distance.max())
    other = (distance < far) & ~np.eye(len(distance), dtype=bool)
    if class_ == MESH:
        near = (faults[:, None, :] * np.where(other, far - distance, 0) // (far - LOCAL_DISTANCE)).sum(axis=2)
        return (faults + near)[:, None, :]
    limit = levels(distance, class_)[:, None, None]
    within = (distance < limit) if kernel.backplane_limit_excluded else (distance <= limit)
    near = (faults[:, None, None, :] * (within & other)).sum(axis=3)
    return faults[:, None, :] + near


def densest_cluster_node(faults: Ints, distance: Ints) -> int:
    """Return the node a group should prefer on a backplane: its densest cluster, level by level; -1 without faults.

    Parameters
    ----------
    faults : (N,) the group's faults by node.
    """
    nodes = list(range(len(faults)))
    answer = -1
    levels = sorted({int(x) for x in np.unique(distance) if x > LOCAL_DISTANCE}, reverse=True)
    for level in levels:
        best, best_faults, best_node = nodes, 0, -1
        taken: set[int] = set()
        for a in nodes:
            if a in taken:
                continue
            cluster = [b for b in nodes if b not in taken and (distance[a, b] < level or a == b)]
            taken.update(cluster)
            amount = int(faults[cluster].sum())
            if amount > best_faults:
                best, best_faults, best_node = cluster, amount, a
        if best_node < 0:
            break
        nodes, answer = best, best_node
    return answer
