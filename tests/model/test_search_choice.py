"""Which CPU the search takes, and for which gain; by hand.

Unless said otherwise two nodes of two CPUs, tasks 0 to 3 alone on CPUs 0 to 3, all of one process and without a
group. Task 0 prefers node 1; its faults by node are ``own``, those of tasks 2 and 3 ``two`` and ``three``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from numalab.model import search
from numalab.model.state import State
from tests.model.small import at, band, give, place, state_of

NONE = (0, 0)


def setting(
    kernel: str, own: Sequence[int] = (0, 100), two: Sequence[int] = NONE, three: Sequence[int] = NONE, **rest: Any
) -> State:
    """Faults are of 1000 where they sum to less than 1000 and more than 100."""
    state = place(state_of(kernel, **{"threads": 4, **rest}), [0, 1, 2, 3])
    for t, faults in ((0, own), (2, two), (3, three)):
        give(state, t, faults, total=None if sum(faults) in (0, 100) else 1000)
    state.preferred[:, 0] = 1
    return state


def found(state: State, t: int = 0) -> tuple[int, int, int, int]:
    """CPU, partner, gain, node examined last."""
    got = search.find(state, at(0), at(t))
    return int(got.cpu[0]), int(got.partner[0]), int(got.gain[0]), int(got.last[0])


NOTHING = (-1, -1, 0, 1)
OLD = ["3.16-tip", "3.17", "3.19", "4.1", "4.15"]


@pytest.mark.parametrize("kernel", [*OLD, "4.19"])
def test_the_swap_that_suits_both(kernel: str) -> None:
    """CPU 2 gains 1000; CPU 3, whose task wants to node 0, gains 1000 + 1000. Since 5.7 an eighth more."""
    state = setting(kernel, three=(100, 0))
    state.preferred[:, 3] = 0
    assert found(state) == (3, 3, 2000, 1)


def test_home_bias() -> None:
    """Going home an eighth more: 2000 + 250; leaving home a sixteenth less: 1000 + 100 - 68."""
    state = setting("6.18", three=(100, 0))
    state.preferred[:, 3] = 0
    assert found(state) == (3, 3, 2250, 1)
    state = setting("6.18", three=(100, 0), two=(100, 0))  # as good, but at home where it is
    state.preferred[:, [2, 3]] = 1
    assert found(state) == (2, 2, 2000 - 125, 1)
    # task 3 goes home and is worth less than task 2, which does not
    state = setting("6.18", two=(100, 0), three=(0, 100))
    state.preferred[:, 3] = 0
    assert found(state) == (3, 3, 0, 1)  # 1000 - 1000
    state.preferred[:, 3] = -1
    assert found(state) == (2, 2, 2000, 1)


@pytest.mark.parametrize("kernel", ["4.19", "5.19", "6.18"])
def test_a_swap_of_unequal_tasks_must_not_unbalance(kernel: str) -> None:
    """Nodes of 2048 and 128 + 4096. With CPU 2's task: 1152 and 5120, farther apart than before; with CPU 3's:
    5120 and 1152. Of 3072 and 128 + 1024 the first swap leaves 2176 and 2048."""
    weights = {"task_weight": [1024, 1024, 128, 4096]}
    assert found(setting(kernel, two=(100, 0), three=(100, 0), **weights)) == NOTHING
    weights = {"task_weight": [1024, 2048, 128, 1024]}
    assert found(setting(kernel, two=(100, 0), **weights)) == (2, 2, 2000, 1)


def test_nothing_gained_is_good_enough_until_3_16() -> None:
    """Half of the faults on either node: every swap gains 0. The last of equals wins. Later: better or nothing."""
    assert found(setting("3.16-tip", own=(50, 50))) == (3, 3, 0, 1)
    for kernel in ("3.17", "3.19", "4.15", "4.19", "6.18"):
        assert found(setting(kernel, own=(50, 50))) == NOTHING


@pytest.mark.parametrize(
    ("gain", "more", "until_4_18", "since"),
    [
        (29, 0, (2, 2, 29, 1), NOTHING),  # below 30
        (30, 0, (2, 2, 30, 1), (2, 2, 30, 1)),
        (30, 15, (3, 3, 45, 1), (2, 2, 30, 1)),  # must be better by more than 15
        (30, 16, (3, 3, 46, 1), (3, 3, 46, 1)),
    ],
)
def test_small_improvements(gain: int, more: int, until_4_18: Any, since: Any) -> None:
    """Task 0 gains so much of 1000, and task 3 some more."""
    for kernel, expected in (("3.17", until_4_18), ("4.15", until_4_18), ("4.19", since), ("6.18", since)):
        assert found(setting(kernel, own=(400, 400 + gain), three=(more, 0))) == expected


@pytest.mark.parametrize(
    ("imp", "expected"), [(1000, 938), (49, 46), (16, 15), (15, 15)]
)  # imp - imp/16; below 16 nothing is taken off
def test_hysteresis_within_a_group(imp: int, expected: int) -> None:
    for kernel in OLD:
        own = (0, 100) if imp == 1000 else (100, 100 + imp)
        state = setting(kernel, own=own)
        band(state, [0, 1, 2, 3])
        assert found(state)[2] == expected


def test_proposal_of_2014() -> None:
    """A swap within a group must gain 50, and nothing is taken off; a swap across groups may gain less."""
    for gain, expected in ((49, NOTHING), (50, (2, 2, 50, 1))):
        state = setting("3.17", own=(400, 400 + gain), switches={"numa_move_threshold": 50})
        assert found(state)[0] == 2  # ungrouped: no such rule
        band(state, [0, 1, 2, 3])
        assert found(state) == expected


@pytest.mark.parametrize(
    ("patches", "expected"),
    [
        ({}, "swap"),
        ({"capacity_after": True}, "swap"),
        ({"move_in_swap": True, "strict_improvement": True}, "nothing"),
        ({"capacity_after": True, "move_in_swap": True, "strict_improvement": True}, "move"),
    ],
)
def test_the_trap_in_small(patches: dict[str, bool], expected: str) -> None:
    """21 and 19 tasks on nodes of 10 threads of SMT 2; those of node 1 are at home, so a swap gains 1000 - 1000.
    A move gains 1000 (999 in the books). Divided loads: 21*1048576/5890 = 3738 and 3382, after it 2714 and 4406:
    100*4406 - 112*2714 > 0 > 100*3738 - 112*3382, refused; else 20 and 20."""
    state = state_of("3.16-tip", cpus=10, smt=2, threads=40, switches=patches)
    place(state, [i % 10 for i in range(21)] + [10 + i % 10 for i in range(19)])
    for t in (0, *range(21, 40)):
        give(state, t, [0, 100], 1)
    cpu, partner, gain, last = found(state)
    verdict = "nothing" if cpu < 0 else "swap" if partner >= 0 else "move"
    assert (verdict, gain, last) == (expected, 999 if expected == "move" else 0, 1)


def test_is_the_preferred_node_searched() -> None:
    """It holds two and has two: until 3.16 not at all; always; 4.15: unless more loaded than the source."""
    assert found(setting("3.16")) == NOTHING
    for kernel in ("3.16-tip", "3.17", "4.15", "4.19"):
        assert found(setting(kernel))[0] >= 2
    state = place(state_of("4.15", threads=5), [0, 1, 2, 3, 3])  # 2 against 3
    give(state, 0, [0, 100], 1)
    assert found(state) == (-1, -1, 0, 1)


def test_who_may_go_where() -> None:
    """Task 0 may not use CPU 2; task 3 may not use CPU 0."""
    affinity = np.ones((1, 4, 4), bool)
    affinity[0, 0, 2] = affinity[0, 3, 0] = False
    for kernel in (*OLD, "4.19", "6.18"):
        assert found(setting(kernel, affinity=affinity)) == NOTHING
        affinity_of_task_3 = affinity.copy()
        affinity_of_task_3[0, 3, 0] = True
        assert found(setting(kernel, affinity=affinity_of_task_3))[0] == 3


def test_targets_of_the_step_are_left_alone() -> None:
    """Since 4.19 a CPU that a NUMA move of the step went to is passed over."""
    for kernel, cpu in (("4.15", 2), ("4.19", 3), ("6.18", 3)):
        state = setting(kernel)
        state.numa_moved_to[:, 2] = True
        assert found(state)[0] == cpu
