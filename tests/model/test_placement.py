"""Placement: decay, preferred node, active nodes, what asks for a move; by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalab.model import active, placement
from numalab.model.state import PRIVATE, SHARED, State
from tests.model.small import at, band, give, place, state_of
from tests.reference import tiny


def placed(state: State, t: int = 0, seq: int = 1) -> bool:
    """Place a task; says whether placement asks for a move."""
    state.seq[:] = seq
    return bool(placement.place(state, at(0), at(t))[0])


# ---------------------------------------------------------------- decay
def test_averages_halve_and_take_up_the_buffers() -> None:
    """9 - 9/2 + 4 = 9: integers never lose the last one. total goes along."""
    state = place(state_of("3.17"), [0, 1])
    state.mem[0, 0, 0, SHARED], state.mem[0, 0, 1, PRIVATE] = 9, 8
    state.total[0, 0] = 17
    state.membuf[0, 0, 1, PRIVATE] = 4
    placed(state)
    assert state.mem[0, 0].tolist() == [[5, 0], [0, 8]]  # 9 - 4, 8 - 4 + 4
    assert (state.total[0, 0], state.seq_seen[0, 0]) == (13, 1)
    assert not state.membuf.any()
    seen = []
    for seq in range(2, 8):
        placed(state, seq=seq)
        seen.append(state.mem[0, 0, :, :].sum(axis=1).tolist())
    assert seen == [[3, 4], [2, 2], [1, 1], [1, 1], [1, 1], [1, 1]]
    assert state.total[0, 0] == 2


def test_a_steady_task_has_twice_the_faults_of_a_pass() -> None:
    """x = x - x/2 + 100 rises 100, 150, 175, 188, 194, 197, 199, 200 and rests there."""
    state = place(state_of("3.17"), [0, 1])
    for seq in range(1, 20):
        state.membuf[0, 0, 0, PRIVATE] = 100
        placed(state, seq=seq)
    assert state.mem[0, 0, 0, PRIVATE] == 200


@pytest.mark.parametrize(("kernel", "expected"), [("3.14", 0), ("3.17", (32768 * 6) // 8), ("6.18", (32768 * 6) // 8)])
def test_cpu_faults_carry_the_run_time(kernel: str, expected: int) -> None:
    """Half a CPU over 1999 ns + 1 is 2**15 of 2**16; 6 faults of 7 since the last placement: 2**15 * 6 / (7 + 1)."""
    state = place(state_of(kernel, params={"step_us": 2}), [0, 1])
    state.step_index[:], state.placed_wall_ns[0, 0] = 0, 1  # the step ends at 2000 ns
    state.run_ns[0, 0] = 1000
    state.cpubuf[0, 0, 1, SHARED] = 6
    state.locality[0, 0] = [3, 4, 9]  # failures do not count
    placed(state)
    assert state.cpuf[0, 0].tolist() == [[0, 0], [expected, 0]]
    assert not state.cpubuf.any()
    assert (state.placed_run_ns[0, 0], state.placed_wall_ns[0, 0]) == (1000, 2000)


def test_the_group_follows_its_members() -> None:
    state = place(state_of("4.15", threads=3), [0, 1, 2])
    for t, faults in enumerate([[7, 0], [0, 4], [2, 2]]):
        give(state, t, faults)
    g = band(state, [0, 1])
    state.membuf[0, 1, 0, SHARED] = 5
    placed(state, 1)
    assert state.gmem[0, g].tolist() == state.mem[0, [0, 1]].sum(axis=0).tolist() == [[5, 7], [0, 2]]
    assert state.gtotal[0, g] == state.total[0, :2].sum() == 14


# ---------------------------------------------------------------- preferred node
def preferred(kernel: str, own: list[int], others: list[int] | None = None, **rest: Any) -> int:
    state = state_of(kernel, nodes=len(own), **rest)
    give(state, 0, own)
    if others is not None:
        give(state, 1, others)
        band(state, [0, 1])
    return int(placement.choose_preferred(state, at(0), at(0))[0])


def test_a_task_alone_prefers_its_own_most() -> None:
    for kernel in ("3.16", "3.17", "6.18"):
        assert preferred(kernel, [3, 4, 4]) == 1  # the lowest on ties
        assert preferred(kernel, [0, 0, 0]) == -1


def test_patch_1_the_group_decides() -> None:
    """Own 60/40, the group as a whole 60+0 / 40+200. By weights (3.16) 600+200 against 400+800: node 1.
    Own 90/10, the group 90/210: 900+300 against 100+700: node 0, though the group has most on node 1."""
    assert preferred("3.16", [60, 40], [0, 200]) == 1
    assert preferred("3.16", [90, 10], [0, 200]) == 0
    for kernel in ("3.17", "3.19", "6.18"):
        assert preferred(kernel, [90, 10], [0, 200]) == 1


def test_weights_may_choose_a_third_node() -> None:
    """Own 40/39/21, the group 40/39+121/21+119 of 380: 400+105, 390+421, 210+368."""
    assert preferred("3.16", [40, 39, 21], [0, 121, 119]) == 1
    # where both agree nothing is weighed: the group's and the task's best are node 0
    assert preferred("3.16", [40, 39, 21], [100, 0, 0]) == 0
    # so that rounding does not matter there: 333, 333, 333 of 1000, but node 1 has most
    assert preferred("3.16", [3334, 3335, 3331], [0, 0, 0]) == 1


def test_topology_corrects_the_group_since_3_19() -> None:
    """Mesh: 4 3 3 4 plus half of each of the two neighbours, rounded down: 4+1+1, 3+2+2, 3+2+2, 4+1+1.
    Backplane: 9 0 4 6: the second box has more, though node 0 alone has most."""
    none = [0, 0, 0, 0]
    assert preferred("3.19", [4, 3, 3, 4], none, distance=tiny.MESH) == 1
    assert preferred("3.17", [4, 3, 3, 4], none, distance=tiny.MESH) == 0
    assert preferred("4.15", [9, 0, 4, 6], none, distance=tiny.BACKPLANE) == 3
    assert preferred("3.17", [9, 0, 4, 6], none, distance=tiny.BACKPLANE) == 0
    assert preferred("4.15", [9, 0, 4, 6], distance=tiny.BACKPLANE) == 0  # a task alone


def test_a_node_without_cpus_passes_on_to_the_nearest() -> None:
    distance = [[10, 30, 20], [30, 10, 20], [20, 20, 10]]
    rest = {"distance": distance, "cpu_node": [0, 0, 2, 2, 2, 2]}
    assert preferred("4.15", [0, 5, 0], **rest) == 2
    assert preferred("4.15", [5, 0, 0], **rest) == 0


# ---------------------------------------------------------------- active nodes
@pytest.mark.parametrize(
    ("before", "after"),
    [
        # a = 32: in above 6*32/16 = 12, out below 3*32/16 = 6
        ([0], [0, 3]),
        ([0, 1, 2, 4], [0, 1, 2, 3]),
    ],
)
def test_the_mask_has_hysteresis(before: list[int], after: list[int]) -> None:
    state = state_of("3.17", nodes=5)
    give(state, 0, [1, 0, 0, 0, 0])
    g = band(state, [0], active=before)
    state.gcpu[0, g, :, SHARED] = [32, 12, 6, 13, 5]
    active.update(state, at(0), at(g))
    assert np.flatnonzero(state.gactive[0, g]).tolist() == after
    assert state.gcount[0, g] == len(after)
    state.gcpu[0, g, 3, SHARED] = 12  # not above 12, but stays in
    active.update(state, at(0), at(g))
    assert state.gactive[0, g, 3]


def test_the_count_takes_a_third() -> None:
    """Active above a third of the most: 12 of 33 is, 11 is not."""
    state = state_of("4.15", nodes=4)
    give(state, 0, [1, 0, 0, 0])
    g = band(state, [0])
    state.gcpu[0, g, :, SHARED] = [33, 5, 11, 12]
    active.update(state, at(0), at(g))
    assert (state.gmax[0, g], state.gcount[0, g]) == (33, 2)
    assert [bool(active.is_active(state, at(0), at(g), at(n))[0]) for n in range(4)] == [True, False, False, True]


# ---------------------------------------------------------------- asking for a move
@pytest.mark.parametrize(
    ("kernel", "first", "again", "home"),
    [
        ("3.16", True, False, False),
        ("3.16-tip", True, True, False),
        ("3.17", True, True, False),
        ("4.15", True, True, False),
        ("4.19", False, False, False),
    ],
)
def test_placement_asks_for_a_move(kernel: str, first: bool, again: bool, home: bool) -> None:
    """When the preferred node changed (3.16), whenever the task is not there (bb97fc31), never (4.19)."""
    state = place(state_of(kernel), [0, 1])
    state.membuf[0, 0, 1, PRIVATE] = 10
    assert placed(state, seq=1) is first
    assert state.preferred[0, 0] == 1
    assert placed(state, seq=2) is again
    place(state, [2, 1])
    assert placed(state, seq=3) is home


def test_no_faults_leave_the_preferred_node() -> None:
    state = place(state_of("3.17"), [0, 1])
    state.preferred[0, 0] = 1
    assert placed(state) is False
    assert state.preferred[0, 0] == 1


def test_when_placement_is_due() -> None:
    """Once per scan sequence; since 4.19 also not before the retry time (now is 4 ms)."""
    for kernel, waits in (("4.15", True), ("4.19", False)):
        state = state_of(kernel, params={"step_us": 4000})
        assert placement.due(state, at(0), at(0)).tolist() == [False]
        state.seq[:] = 1
        assert placement.due(state, at(0), at(0)).tolist() == [True]
        state.retry_ms[:] = 4
        assert placement.due(state, at(0), at(0)).tolist() == [waits]
