"""The migration filter over plain arrays, by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from numalab.kernel import Kernel
from numalab.model import pagefilter


def test_branches_in_their_order() -> None:
    """The first test that holds, in the order of the names, decides; the group's ratio if none does."""
    for early, elsewhere, own, deferred, ungrouped in product([False, True], repeat=5):
        tests = {"early": early, "two-stage": elsewhere, "private": own, "deferred": deferred, "no group": ungrouped}
        expected = next((name for name, holds in tests.items() if holds), "group ratio")
        arrays = (np.array([value]) for value in (early, elsewhere, own, deferred, ungrouped))
        (branch,) = pagefilter.branch(*arrays)
        assert pagefilter.BRANCHES[branch] == expected


def test_what_branches_allow() -> None:
    allowed = {name for name, yes in zip(pagefilter.BRANCHES, pagefilter.ALLOWS, strict=True) if yes}
    assert allowed == {"early", "private", "no group"}


def test_a_pid_ending_in_255_is_no_user() -> None:
    """CPU 3 with pid bits 255, CPU 3 with pid bits 254, nothing recorded."""
    assert pagefilter.is_unset(np.array([3, 3, -1]), np.array([255, 254, -1])).tolist() == [True, False, True]


def test_own_pages() -> None:
    """Task 1000 (232): its own, another's, an untouched one. Task 511 (255) takes the untouched one for its own."""
    last = np.array([3, 3, -1]), np.array([232, 233, -1])
    assert pagefilter.is_own(*last, np.array([232] * 3)).tolist() == [True, False, False]
    assert pagefilter.is_own(*last, np.array([255] * 3)).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("preferred", "seen", "private", "expected"),
    [(-1, 9, True, True), (0, 4, True, True), (0, 5, True, False), (-1, 0, False, False)],
)
def test_early(preferred: int, seen: int, private: bool, expected: bool) -> None:
    values = (np.array([value]) for value in (preferred, seen, private))
    assert pagefilter.is_early(Kernel("6.12"), *values).tolist() == [expected]
    values = (np.array([value]) for value in (preferred, seen, private))
    assert pagefilter.is_early(Kernel("4.1"), *values).tolist() == [False]


@pytest.mark.parametrize(
    ("memory", "cpu", "expected"),
    [
        ((30, 10), (10, 31), True),  # 31 > 3*10
        ((10, 40), (10, 30), False),  # not more, and 30*10*3 < 10*40*4
        ((40, 30), (10, 10), False),  # 10*40*3 = 10*30*4
        ((41, 30), (10, 10), True),
    ],
)
def test_cpu_against_memory(memory: tuple[int, int], cpu: tuple[int, int], expected: bool) -> None:
    values = (np.array([value]) for value in (*memory, *cpu))
    assert pagefilter.cpu_memory_allows(*values).tolist() == [expected]
