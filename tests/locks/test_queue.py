"""The closed queue at a lock, against results by hand, textbook formulas and the published figures."""

import math
import time

import numpy as np
import pytest

from numalab.locks import KINDS, Lock, solve


def one(lock, n, name):
    return getattr(solve(lock, n), name)[0]


def test_two_tasks_by_hand():
    """Away 3, section 1. P(0) : P(1) : P(2) = 1 : 2/3 : 2/9 = 9 : 6 : 2, so a share of 8/17 finds the lock free.

    Tasks away 2 * 9/17 + 6/17 = 24/17, throughput 8/17; waiting 2/17 tasks, 1/17 of the time of two.
    An arrival finds the other one inside with 1 / (1 + 3).
    """
    found = solve(Lock("ticket", 3.0, 1.0), 2)
    assert found.throughput == pytest.approx([8 / 17])
    assert found.mean_waiters == pytest.approx([2 / 17])
    assert found.waiting_share == pytest.approx([1 / 17])
    assert found.area_share == pytest.approx([1 / 17 + 8 / 17 / 2])
    assert found.wait_s == pytest.approx([1 / 4])
    assert found.contended_share == pytest.approx([1 / 4])


def test_handing_over_costs_more_the_more_wait():
    """Three tasks away 1, section 1, request 2: times to the next release 1, 2, 3.

    P = 1 : 3 : 3*2*2 : 3*2*1*2*3 = 1 : 3 : 12 : 36. Away (3 + 6 + 12) / 52. Working: the holder's 1, 1/2 and 1/3 of
    the time, (3 + 6 + 12) / 52; at the lock (3 + 24 + 108) / 52, so waiting 114 / 52.
    """
    found = solve(Lock("ticket", 1.0, 1.0, handoff_s=2.0), 3)
    assert found.throughput == pytest.approx([21 / 52])
    assert found.mean_waiters == pytest.approx([114 / 52])
    # With an MCS queue: 1, 3, 3, so 1 : 3 : 18 : 54.
    assert one(Lock("mcs", 1.0, 1.0, handoff_s=2.0), 3, "throughput") == pytest.approx((3 + 6 + 18) / 76)


@pytest.mark.parametrize("kind", KINDS)
def test_one_task_never_waits(kind):
    found = solve(Lock(kind, 7.0, 2.0, 1.0, handoff_s=5.0, atomic_s=0.5), 1)
    atomics = {"rwlock": 4, "rcu": 2}.get(kind, 0) * 0.5
    assert found.throughput == pytest.approx([1 / (10 + atomics)])
    assert found.area_share == pytest.approx([(3 + atomics) / (10 + atomics)])
    assert found.waiting_share == pytest.approx([0], abs=1e-15)
    assert found.contended_share.tolist() == [0]


def test_two_tasks_and_two_cache_lines_by_hand():
    """rwlock, away 1, atomics 1/2, so two of 1 at each line. P(k) = (k + 1) * n! / (n - k)!: 1 : 4 : 6 of 11.

    Away (2 + 4) / 11. Two tasks at the lines share one in a third of the cases each way: 2/3 wait.
    """
    found = solve(Lock("rwlock", 0.75, 0.25, atomic_s=0.5), 2)
    assert found.throughput == pytest.approx([6 / 11])
    assert found.mean_waiters == pytest.approx([6 / 11 * 2 / 3])
    assert found.contended_share.tolist() == [0]


def test_rcu_is_the_machine_repair_queue():
    """One line, two atomics a look-up: as one exclusive server of that length, of which the atomics are the section."""
    server = solve(Lock("ticket", 5.0, 0.8), [3, 10, 40])
    rcu = solve(Lock("rcu", 4.0, 1.0, atomic_s=0.4), [3, 10, 40])
    assert rcu.throughput == pytest.approx(server.throughput)
    assert rcu.mean_waiters == pytest.approx(server.mean_waiters)


def test_an_empty_tree_costs_nothing_but_the_look_up():
    found = solve(Lock("none", 9.0, 0.5, 0.5, atomic_s=3.0), [1, 100, 4096])
    assert found.throughput == pytest.approx(np.array([1, 100, 4096]) / 10)
    assert found.waiting_share.tolist() == [0, 0, 0]
    assert found.area_share == pytest.approx(0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_littles_law(kind):
    """Tasks = throughput x mean cycle, away, waiting and served."""
    tasks = np.array([2, 17, 300, 4096])
    lock = Lock(kind, 1.0, 3e-3, 2e-3, handoff_s=1e-4, atomic_s=1e-4)
    found = solve(lock, tasks)
    cycle = 1.0 + 5e-3 + 2 * lock.lines * 1e-4 + found.wait_s
    assert found.throughput * cycle == pytest.approx(tasks, rel=1e-10)
    assert found.area_share == pytest.approx(1 - found.throughput / tasks, rel=1e-9)


def test_bounds_far_from_the_knee():
    """Few: throughput n / cycle. Many: one section after another; a ticket lock's waiters all but n x throughput."""
    lock = Lock("ticket", 1.0, 1e-2)
    assert one(lock, 4096, "throughput") == pytest.approx(100)
    assert one(lock, 4096, "area_share") == pytest.approx(1 - 100 / 4096)
    rwlock = Lock("rwlock", 1.0, 1e-2, atomic_s=1e-3)
    assert one(rwlock, 4096, "throughput") == pytest.approx(500, rel=1e-2)


def test_small_shares_keep_their_digits():
    """Two tasks that hardly ever meet: waiting 2 (s/a)^2 / 2, to twelve digits; nothing is lost to rounding."""
    ratio = 1e-9
    found = one(Lock("ticket", 1.0, ratio), 2, "waiting_share")
    assert found == pytest.approx(ratio**2 / (1 + 2 * ratio), rel=1e-12)


def test_thousands_of_tasks_are_solved_at_once():
    lock = Lock("ticket", 1.0, 2e-3, handoff_s=5e-6)
    solve(lock, 4096)
    start = time.perf_counter()
    found = solve(lock, [128, 512, 2048, 4096])
    assert time.perf_counter() - start < 0.5
    assert np.isfinite(found.area_share).all()


def test_the_ticket_locks_published_curve():
    """Times that give the mail's 1, 13 and over 90 %: a second program of the same formula found the other shares."""
    lock = Lock("ticket", 1.0, 2.067e-3, handoff_s=5.11e-6)
    shares = solve(lock, [128, 256, 448, 512, 576, 640, 1024, 2048]).area_share + 0.0072
    assert shares == pytest.approx([0.010, 0.012, 0.029, 0.130, 0.316, 0.44, 0.76, 0.93], abs=0.0075)
    constant = solve(Lock("ticket", 1.0, 2.067e-3), [2048]).area_share
    assert constant == pytest.approx([0.764], abs=1e-3)  # 1 - 1 / (2048 x 2.067e-3)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("spin", 1, 1), "known: ticket, mcs"),
        (("ticket", 0, 1), "positive think_s"),
        (("mcs", 1, 0), "positive section_s"),
        (("rcu", 1, 1, -1), "no negative time"),
    ],
)
def test_what_is_no_lock(arguments, word):
    with pytest.raises(ValueError, match=word):
        Lock(*arguments)


@pytest.mark.parametrize("tasks", [0, [4, 0], []])
def test_no_tasks(tasks):
    with pytest.raises(ValueError, match="at least one task"):
        solve(Lock("none", 1.0, 1.0), tasks)


def test_nothing_is_nan():
    assert not any(math.isnan(x) for x in vars(solve(Lock("none", 1.0, 0.0), 3)).values() for x in x)
