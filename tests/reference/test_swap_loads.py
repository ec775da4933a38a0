"""The load test of a swap of unequal tasks against values worked out by hand (7.2)."""

from __future__ import annotations

import pytest

from tests.reference import moves
from tests.reference.helpers import oracle, place, prefer

CLASSIC, MAYMOVE = "4.15", "4.19"


def searching(kernel, loads, cpus=1, at=(0, 0, 1, 1), **switches):
    """Two nodes; task 0 would gain 1000 by node 1, task 2 by node 0; loads are load averages, not weights."""
    o = oracle(kernel, cpus=cpus, threads=len(at), switches={"check_preferred": "always", **switches})
    place(o, at)
    o.load_avg = list(loads)
    prefer(o, 0, 1)
    prefer(o, 2, 0)
    return o


def swapped(*args, **rest):
    """Whether task 0 changes places with task 2; if not, it finds nothing."""
    o = searching(*args, **rest)
    before = list(o.cpu)
    moves.attempt(o, 0)
    (event,) = o.events
    if event[1] == moves.FAILED:
        assert o.cpu == before
        return False
    assert event[1:] == (moves.SWAP, 0, before[0], before[2], 2, 2000)
    assert (o.cpu[0], o.cpu[2]) == (before[2], before[0])
    return True


def shifted(here, there, moved):
    """Loads of four tasks, two on each node, of which tasks 0 and 2 differ by what their swap moves."""
    return [1000 + moved, here - 1000 - moved, 1000, there - 1000]


def limits(kernel, here, there, moves_, **switches):
    """Which of these swaps are made."""
    return [moved for moved in moves_ if swapped(kernel, shifted(here, there, moved), **switches)]


# ---------------------------------------------------------------- classic
def test_a_classic_swap_within_the_tolerance():
    """2000 and 2000: after a swap of 113 it is 1887 and 2113, 112 % of 1887 is 2113.44; 114 is beyond: 1886, 2114."""
    swaps = [-900, -114, -113, 0, 113, 114, 900]
    assert limits(CLASSIC, 2000, 2000, swaps) == [-113, 0, 113]
    assert limits("4.1", 2000, 2000, swaps) == [-113, 0, 113]  # the point of balance is passed either way


def test_a_classic_swap_may_be_as_bad_as_before():
    """3000 and 2000, already beyond the tolerance: at worst 2000 and 3000 after it."""
    assert limits(CLASSIC, 3000, 2000, [-900, -1, 0, 1, 999, 1000, 1001]) == [0, 1, 999, 1000]
    assert limits(CLASSIC, 2000, 3000, [-1001, -1000, -1, 0, 1], imbalance_pct=112) == [-1000, -1, 0]


def test_a_classic_swap_by_the_point_of_balance():
    """3000 and 2000: too far is 2358 and 2642 (112 % of 2358 is 2640.96), not 2359 and 2641 (2642.08).

    Nothing moved is taken as moved here: 2000 there is less than 3000 here, beyond the tolerance, so it is refused.
    """
    assert limits("4.1", 3000, 2000, [-1, 0, 1, 500, 641, 642, 1000]) == [1, 500, 641]
    # less here than there: what comes here must not pass the balance, what goes there is refused by the same token
    assert limits("4.1", 2000, 3000, [-1000, -642, -641, -1, 0, 1]) == [-641, -1, 0]


def test_loads_of_old_kernels_are_divided_first():
    """Of two CPUs a node, 4000 on each: 2000 after division, and all of the swap is moved; else 4000 less and more.

    The other tasks, of 2000, would come for a gain of 1000: 887 more here, too much in either case.
    """

    def swaps(moved, **switches):
        loads = [*shifted(2000, 2000, moved), 2000, 2000]
        return swapped(CLASSIC, loads, cpus=2, at=(0, 0, 2, 2, 1, 3), **switches)

    assert [swaps(moved, capacity_after=False) for moved in (113, 114, -113, -114)] == [True, False, True, False]
    # 212 * 226 is less than 12 * 4000, 212 * 227 is more
    assert [swaps(moved) for moved in (226, 227, -226, -227)] == [True, False, True, False]


@pytest.mark.parametrize(("kernel", "taken"), [(CLASSIC, True), (MAYMOVE, False)])
def test_tasks_alone_on_their_cpus(kernel, taken):
    """Until 4.18 they change places whatever their load: 2000 and 2000 become 1500 and 2500, or with task 3 as bad."""
    assert swapped(kernel, [1500, 500, 1000, 1000], cpus=2, at=(0, 1, 2, 3)) is taken


# ---------------------------------------------------------------- maymove
def test_a_maymove_swap_must_not_widen_the_gap():
    """A gap of 1000 may become one of -1000; without a gap nothing may be moved."""
    for kernel in (MAYMOVE, "5.7", "6.18"):
        no_more = {"home_bias": False}  # a task that goes home would gain an eighth more
        assert limits(kernel, 3000, 2000, [-900, -1, 0, 1, 999, 1000, 1001], **no_more) == [0, 1, 999, 1000]
        assert limits(kernel, 2000, 3000, [-1001, -1000, -1, 0, 1], **no_more) == [-1000, -1, 0]
        assert limits(kernel, 2000, 2000, [-1, 0, 1], **no_more) == [0]


def test_a_maymove_swap_of_equals_is_not_tested():
    """By the point of balance nothing moved would be too imbalanced, as above."""
    assert limits(MAYMOVE, 3000, 2000, [-1, 0, 1, 642], imbalance_rule="balance_point") == [0, 1]
    assert limits(CLASSIC, 3000, 2000, [-1, 0, 1, 642], imbalance_rule="balance_point") == [1]
    assert limits(MAYMOVE, 2000, 2000, [-114, -113, 0, 113, 114], imbalance_rule="threshold") == [-113, 0, 113]


@pytest.mark.parametrize("kernel", [CLASSIC, MAYMOVE])
def test_the_next_partner_is_tried(kernel):
    """1600 and 1400: with task 2 of 400 it would be 1000 and 2000; task 3 is an equal, though it gains nothing."""
    o = searching(kernel, [1000, 600, 400, 1000], cpus=2, at=(0, 0, 2, 3))
    moves.attempt(o, 0)
    assert o.events == [(0, moves.SWAP, 0, 0, 3, 3, 1000)]
    assert o.cpu == [3, 0, 2, 0]


def test_who_goes_home_is_taken_at_once():
    """1500 and 1500, task 3 of 500 would go home: 500 more there. With task 2 found before, its load is not asked."""

    def partner(loads, **switches):
        o = searching("6.18", loads, cpus=2, at=(0, 0, 2, 3), **switches)
        o.preferred[2], o.mem[2][0], o.total[2] = -1, [0, 0], 0
        prefer(o, 3, 0)
        moves.attempt(o, 0)
        return o.events[-1][1], o.events[-1][5], o.events[-1][6]

    equal, unequal = [1000, 500, 1000, 500], [1000, 600, 1100, 500]
    assert partner(equal) == (moves.SWAP, 3, 2250)
    assert partner(equal, home_bias=False) == (moves.SWAP, 2, 1000)
    # 1600 and 1600, task 2 brings 100 more here: refused, then task 3 is asked, and is refused too
    assert partner(unequal) == (moves.FAILED, -1, 0)
