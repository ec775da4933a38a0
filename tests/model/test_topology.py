"""What the kernel makes of a SLIT matrix: classes, faults nearby, the densest cluster; by hand."""

from __future__ import annotations

import numpy as np
import pytest

from numalab.kernel import Kernel
from numalab.model.topology import BACKPLANE, DIRECT, MESH, classify, densest_cluster_node, levels, scores
from tests.model.small import band, give, state_of
from tests.reference import tiny

FLAT = [[10, 21, 21], [21, 10, 21], [21, 21, 10]]
RING = [[10, 16, 22, 16], [16, 10, 16, 22], [22, 16, 10, 16], [16, 22, 16, 10]]
#: The first pair at the largest distance (0, 1) has nobody in between; a later one has.
FIRST_PAIR = [[10, 30, 30, 30], [30, 10, 20, 20], [30, 20, 10, 30], [30, 20, 30, 10]]


@pytest.mark.parametrize(
    ("distance", "since_4_15", "from_3_19"),
    [
        ([[10]], DIRECT, DIRECT),
        ([[10, 21], [21, 10]], DIRECT, BACKPLANE),  # until 4.1 fully connected boxes pass for backplanes
        (FLAT, DIRECT, BACKPLANE),
        (RING, MESH, MESH),
        (tiny.MESH, MESH, MESH),
        (tiny.BACKPLANE, BACKPLANE, BACKPLANE),
        (FIRST_PAIR, BACKPLANE, BACKPLANE),  # only the first pair is asked
    ],
)
def test_classes(distance: list[list[int]], since_4_15: int, from_3_19: int) -> None:
    matrix = np.array(distance)
    for release in ("4.15", "4.19", "6.18"):
        assert classify(matrix, Kernel(release)) == since_4_15
    for release in ("3.19", "4.1"):
        assert classify(matrix, Kernel(release)) == from_3_19
    for release in ("3.14", "3.17"):
        assert classify(matrix, Kernel(release)) == DIRECT  # topology is not looked at


def test_limits_that_matter() -> None:
    assert levels(np.array(tiny.BACKPLANE), BACKPLANE).tolist() == [10, 16, 22]
    assert levels(np.array(tiny.MESH), MESH).tolist() == [22]
    assert levels(np.array(FLAT), DIRECT).tolist() == [21]


FAULTS = np.array([[8, 4, 2, 16]])


def test_on_a_mesh_the_nearer_count_the_more() -> None:
    """D = 22: a neighbour at 16 counts (22-16)/(22-10) = one half, the far one not at all.
    Node 0 has 1 and 2 near: 8 + 2 + 1; node 1 has 0 and 3; node 2 has 0 and 3; node 3 has 1 and 2."""
    got = scores(FAULTS, np.array(tiny.MESH), MESH, Kernel("4.15"))
    assert got.tolist() == [[[8 + 2 + 1, 4 + 4 + 8, 2 + 4 + 8, 16 + 2 + 1]]]


def test_halves_are_rounded_down_one_by_one() -> None:
    """Two neighbours with 3 and 5 faults give 1 + 2, not 4."""
    got = scores(np.array([[0, 3, 5, 0]]), np.array(tiny.MESH), MESH, Kernel("4.15"))
    assert got[0, 0, 0] == 3


def test_on_a_backplane_all_within_the_limit_count() -> None:
    """One row of scores per limit 10, 16, 22. Nodes 0 and 1, and 2 and 3, are 16 apart; 22 is never near.
    Up to 4.15 the limit itself is near, later only what is below it."""
    matrix = np.array(tiny.BACKPLANE)
    alone, pairs = [8, 4, 2, 16], [12, 12, 18, 18]
    assert scores(FAULTS, matrix, BACKPLANE, Kernel("4.15")).tolist() == [[alone, pairs, pairs]]
    assert scores(FAULTS, matrix, BACKPLANE, Kernel("4.19")).tolist() == [[alone, alone, pairs]]


@pytest.mark.parametrize(("kernel", "distance", "class_"), [("4.15", FLAT, DIRECT), ("3.17", tiny.MESH, MESH)])
def test_elsewhere_only_own_faults_count(kernel: str, distance: list[list[int]], class_: int) -> None:
    faults = FAULTS[:, : len(distance)]
    assert scores(faults, np.array(distance), class_, Kernel(kernel)).tolist() == [faults.tolist()]


def test_a_flat_box_taken_for_a_backplane_is_harmless() -> None:
    """4.1: every other node is at the largest distance and so not near; the densest cluster is the best node."""
    got = scores(FAULTS[:, :3], np.array(FLAT), BACKPLANE, Kernel("4.1"))
    assert (got == FAULTS[:, None, :3]).all()
    assert densest_cluster_node(np.array([4, 9, 9]), np.array(FLAT)) == 1


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ([9, 0, 4, 6], 3),  # 9 against 10: the right box; in it 6 against 4, though node 0 alone has most
        ([9, 1, 4, 5], 0),  # 10 against 10: the first box
        ([1, 8, 4, 5], 1),
        ([0, 0, 0, 1], 3),
        ([0, 0, 0, 0], -1),
    ],
)
def test_densest_cluster(faults: list[int], expected: int) -> None:
    assert densest_cluster_node(np.array(faults), np.array(tiny.BACKPLANE)) == expected


def test_three_levels_of_clusters() -> None:
    """Eight nodes: halves 40 apart, quarters 30, pairs 20. Halves 16 and 15; quarters 7 and 9; then 4 and 5."""
    nodes = range(8)
    matrix = np.array([[[10, 20, 30, 40][(a ^ b).bit_length()] for b in nodes] for a in nodes])
    assert densest_cluster_node(np.array([7, 0, 4, 5, 15, 0, 0, 0]), matrix) == 3
    assert densest_cluster_node(np.array([7, 0, 4, 5, 17, 0, 0, 0]), matrix) == 4


def test_weights_are_shares_of_a_thousand_of_the_scores() -> None:
    """Task: 8 of 30, with half of the neighbours' 6: 1000*11/30. Its group has a second task's 10 faults on node 3."""
    state = state_of("4.15", nodes=4, distance=tiny.MESH)
    give(state, 0, [8, 4, 2, 16])
    give(state, 1, [0, 0, 0, 10])
    g = band(state, [0, 1])
    assert state.task_weight[0, 0].tolist() == [[1000 * n // 30 for n in (11, 16, 14, 19)]]
    # group 8 4 2 26: node 0 has 2 + 1 near, 1 and 2 have 4 + 13, 3 has 2 + 1
    assert state.group_weight[0, g].tolist() == [[1000 * n // 40 for n in (11, 21, 19, 29)]]
    give(state, 1, [0, 0, 0, 0])
    assert state.task_weight[0, 1].tolist() == [[0, 0, 0, 0]]
