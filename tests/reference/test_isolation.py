"""Faults on pages that another task is moving against values worked out by hand (4.6, 4.8)."""

from __future__ import annotations

import pytest

from numalab.layout import HUGE
from tests.reference import faults, flights, tasks, touch
from tests.reference.helpers import a_fault, oracle, remote, run, trap

MS = 10**6
FROM_3, FROM_0 = 3, 0


def machine(kernel="4.15", **rest):
    """Task t on node t of four, memory on node 1, nothing written."""
    o = oracle(kernel, nodes=4, cpus=1, threads=3, home=1, write=0, **rest)
    o.cpu = [0, 1, 2]
    return o


def fly(o, u, b, source, flying=True):
    """Task u has moved block b to its node, from another, and is not done with it."""
    o.moving[u], o.moving_from[u], o.moving_ns[u], o.debt_ns[u] = b, source, 9 * MS, 8 * MS
    o.node[b], o.in_flight[u] = o.node_of(u), flying
    flights.gather(o)


def seen(o, f):
    """What came of a fault: local, migrated, failed; the node it counts for; where the page is."""
    return f.local, f.migrated, f.failed, f.memory_node, o.node[f.block]


# ---------------------------------------------------------------- 4.6, 0 and 5
def test_a_page_in_flight_cannot_be_isolated_again():
    """Task 1 takes it from node 3; task 0 faults on it, as on a page of node 3, and would have it on node 0."""
    o = machine()
    fly(o, 1, 3, FROM_3)
    free = list(o.free)
    f = a_fault(o, 0, 3)
    assert seen(o, f) == (False, False, True, 3, 1)
    assert (f.src, f.isolated, o.free) == (3, True, free)
    counters = ("numa_hint_faults", "numa_hint_faults_local", "migrate_refused", "numa_pages_migrated")
    assert [o.counters[name] for name in counters] == [1, 0, 1, 0]
    assert (o.last_cpu[3], o.last_pid[3]) == (0, o.pid8[0])  # the filter was asked all the same
    tasks.account(o, [f])
    assert (o.membuf[0], o.cpubuf[0]) == ([[0, 0], [0, 0], [0, 0], [0, 1]], [[0, 1], [0, 0], [0, 0], [0, 0]])
    faults.charge(o, [f], {})
    assert (o.debt_ns[0], o.moving[0], o.moving_from) == (1200, -1, [-1, 3, -1])  # nothing but the fault
    assert seen(o, a_fault(o, 0, 4)) == (False, True, False, 0, 0)  # another page


def test_a_page_in_flight_is_local_where_it_comes_from():
    o = machine()
    fly(o, 2, 3, FROM_0)
    f = a_fault(o, 0, 3)
    assert seen(o, f) == (True, False, False, 0, 2)
    assert (o.counters["numa_hint_faults_local"], o.counters["migrate_refused"]) == (1, 0)


def test_a_page_in_flight_is_not_yet_local_where_it_goes():
    """Two tasks on node 1; task 1 takes the page there, task 0 next to it faults on it."""
    o = machine()
    o.cpu[0] = 1
    fly(o, 1, 3, FROM_3)
    assert seen(o, a_fault(o, 0, 3)) == (False, False, True, 3, 1)
    assert o.counters["numa_hint_faults_local"] == 0


def test_a_page_in_flight_is_no_other_for_who_moves_it():
    o = machine()
    fly(o, 1, 3, FROM_3)
    f = a_fault(o, 1, 3)
    assert seen(o, f) == (True, False, False, 1, 1)
    assert not f.isolated


def test_a_page_that_is_not_in_flight_moves_again():
    """Task 1 owes other things first: it is where it goes, and task 0 may have it."""
    o = machine()
    fly(o, 1, 3, FROM_3, flying=False)
    f = a_fault(o, 0, 3)
    assert (seen(o, f), f.src) == ((False, True, False, 0, 0), 1)
    faults.charge(o, [f], {})
    assert (o.moving, o.moving_from) == ([3, 3, -1], [1, 3, -1])


@pytest.mark.parametrize(
    ("flying", "sources"),
    [((True, True), (3, 0, 3)), ((False, True), (0, 0, 2)), ((True, False), (3, 2, 3)), ((False, False), (2, 2, 2))],
)
def test_the_first_other_task_that_moves_it_counts(flying, sources):
    """Task 1 moved it from node 3, task 2 from node 0 to node 2 later."""
    for t, source in enumerate(sources):
        o = machine()
        fly(o, 1, 3, FROM_3, flying[0])
        fly(o, 2, 3, FROM_0, flying[1])
        f = a_fault(o, t, 3)
        assert (f.src, f.local) == (source, source == t)
        assert f.isolated is any(flying[u - 1] for u in (1, 2) if u != t)


def test_what_is_not_wanted_is_not_refused():
    """The last to use it was on another node: the filter says no."""
    o = machine()
    fly(o, 1, 3, FROM_3)
    assert seen(o, a_fault(o, 0, 3, last=(2, o.pid8[2]))) == (False, False, False, 3, 1)
    assert o.counters["migrate_refused"] == 0


def test_the_filter_of_groups_asks_where_it_comes_from():
    """cpu_memory: 2*M*3 > 1*2*4 asks for M of node 3, 3, not for that of node 1, 1: wanted, then refused."""
    for m_source, m_now, wanted in ((3, 1, True), (1, 3, False)):
        o = machine()
        fly(o, 1, 3, FROM_3)
        o.group[0] = 0
        o.gcpu[0], o.gmem[0] = [[2, 0], [1, 0], [0, 0], [1, 0]], [[2, 0], [m_now, 0], [0, 0], [m_source, 0]]
        assert a_fault(o, 0, 3, last=(0, 0)).failed is wanted


def test_refused_after_the_rate_limit_has_counted():
    o = machine(switches={"migrate_ratelimit_pages": 9})
    fly(o, 1, 3, FROM_3)
    assert a_fault(o, 0, 3).failed
    assert o.rate_count == [1, 0, 0, 0]
    o.rate_count[0], o.rate_end_ms[0] = 10, 1
    assert a_fault(o, 0, 3).failed
    assert (o.rate_count[0], o.counters["migrate_refused"]) == (10, 2)


def test_a_refused_huge_page_and_its_write():
    """512 pages are refused at once; since 6.14 the write bit goes with it, and is lost to the next write."""
    o = machine("6.18", kind=HUGE, block_pages=512, blocks=4)
    fly(o, 1, 3, FROM_3)
    assert o.pte_write[3]
    assert a_fault(o, 0, 3).failed
    assert (o.counters["migrate_refused"], o.counters["numa_hint_faults"], o.pte_write[3]) == (512, 1, False)


def test_who_is_moving_one_itself_finds_it():
    """Nothing is held against task 0, which is moving block 9: its finds 2, 3 and 5 all fault."""
    o = machine()
    fly(o, 0, 9, FROM_3)
    fly(o, 1, 3, FROM_3)
    trap(o, [2, 3, 5])
    o.useful[0] = MS
    found = touch.touch(o, {0: 10**6})
    assert found == [(0, 2), (0, 3), (0, 5)]
    listed = faults.handle(o, found, {0: 10**6})
    assert [seen(o, f) for f in listed] == [
        (False, True, False, 0, 0),
        (False, False, True, 3, 1),
        (False, True, False, 0, 0),
    ]
    assert o.waits_for == [-1, -1, -1]


# ---------------------------------------------------------------- 4.8
def test_where_the_last_migration_came_from_is_noted():
    o = remote(write=0)
    assert o.moving_from == [-1, -1]
    o.node[6], o.node[9] = 3, 2
    faults.charge(o, [a_fault(o, q=q) for q in (2, 6, 9)], {})
    assert (o.moving, o.moving_from) == ([9, -1], [2, -1])
    faults.charge(o, [a_fault(o, q=4)], {})
    assert (o.moving, o.moving_from) == ([4, -1], [1, -1])
    run(o, 1)  # it has arrived
    assert (o.moving, o.moving_from) == ([-1, -1], [1, -1])
    o.moving[0], o.lay.task_end_ns[0] = 4, 1
    run(o, 1)  # or never will
    assert (o.cpu[0], o.moving, o.moving_from) == (-1, [-1, -1], [1, -1])


# ---------------------------------------------------------------- a whole flight
@pytest.mark.parametrize(("node", "local", "refused"), [(1, [1, 2], [0, 0]), (2, [0, 0], [0, 1])])
def test_a_slow_page_until_the_second_process_loses_it(node, local, refused):
    """Task 0 takes it from node 1 in 6146100 ns, half of which are done in the fifth step only.

    Till then task 1, of the other process, faults on it: on node 1 as at home. On node 2 the first fault finds that
    another used the page last, the second that it cannot have it.
    """
    o = oracle(
        "4.15", nodes=3, cpus=1, processes=2, threads=1, shared_region=True, blocks=1, home=1, rate=10**9, write=0,
        switches={"scan_delay_ms": 10**6}, params={"copy_page_ns": 6_144_000},
    )  # fmt: skip
    o.cpu = [0, node]
    o.lay.access_from_ns[1] = 2 * MS
    trap(o, [0])
    run(o, 1)
    takes = 1500 + 2 * 300 + 6_144_000
    assert (o.node, o.moving[0], o.moving_from[0], o.moving_ns[0]) == ([0], 0, 1, takes)
    assert o.debt_ns[0] == 1200 + takes
    run(o, 1)
    assert not o.in_flight[0]  # the fault is owed first
    for step in range(2):
        o.trapped[1], o.pending[1] = True, 1
        o.reached[1].add(1)
        run(o, 1)
        assert o.debt_ns[0] == 1200 + takes - (2 + step) * MS
        assert (o.in_flight[0], o.waits_for[1], o.node) == (True, -1, [0])
        assert (o.counters["numa_hint_faults"], o.counters["numa_pages_migrated"]) == (2 + step, 1)
        assert (o.counters["numa_hint_faults_local"], o.counters["migrate_refused"]) == (local[step], refused[step])
    run(o, 1)  # 2147300 left, 3998800 done
    assert (o.in_flight[0], o.waits_for[1]) == (True, 0)
    run(o, 3)
    assert (o.moving, o.moving_from, o.in_flight[0]) == ([-1, -1], [1, -1], False)
