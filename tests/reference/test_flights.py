"""Pages in flight and the waits of a guest's migrations against values worked out by hand (4.2, 4.5, 4.8)."""

from __future__ import annotations

import pytest

from numalab.layout import BASE, HUGE, RANDOM, SEQUENTIAL
from tests.reference import draws, faults, flights, touch
from tests.reference.helpers import a_fault, first_step_with, oracle, remote, run, trap, two_accesses

MS = 10**6


def pair(**rest):
    """Two tasks alone on their CPUs of one node; nothing is touched by itself."""
    return oracle(nodes=1, cpus=2, threads=2, home=0, rate=0, **rest)


# ---------------------------------------------------------------- 4.2
def migrating(o, t, b, ns, owed=None):
    """Task t is moving block b, which takes ns, and owes as much or what is given."""
    o.moving[t], o.moving_ns[t], o.debt_ns[t] = b, ns, ns if owed is None else owed


def test_a_flight_takes_what_its_task_still_owes():
    o = pair()
    migrating(o, 0, 3, 1_500_000, 1_200_000)
    o.wait_ns[0] = 300_000
    run(o, 1)  # 300000 waited, 700000 paid
    assert (o.moving, o.in_flight, o.debt_ns, o.wait_ns) == ([3, -1], [True, False], [500_000, 0], [0, 0])
    assert o.moving_ns == [1_500_000, 0]
    run(o, 1)
    assert (o.moving, o.in_flight, o.moving_ns) == ([-1, -1], [False, False], [1_500_000, 0])
    migrating(o, 0, 3, MS)  # exactly one step
    run(o, 1)
    assert (o.moving, o.in_flight) == ([-1, -1], [False, False])
    migrating(o, 0, 3, MS + 1)
    run(o, 1)
    assert (o.moving, o.in_flight) == ([3, -1], [True, False])


@pytest.mark.parametrize(("owed", "flying"), [(2_500_000, (False, True, False)), (2_500_001, (False, False, False))])
def test_a_task_owes_other_things_first(owed, flying):
    """Of 2500000 1500000 are left after a step, the time of the migration; of one more one more, then 500001."""
    o = pair()
    migrating(o, 0, 3, 1_500_000, owed)
    for moving, flies in zip((3, 3, -1), flying, strict=True):
        run(o, 1)
        assert (o.moving[0], o.in_flight[0], o.moving_ns[0]) == (moving, flies, 1_500_000)


def test_credit_and_wait_are_one_sum():
    for wait, flying in ((1_800_000, True), (1_800_001, False)):
        o = pair()
        migrating(o, 0, 3, 1_500_000, -300_000)
        o.wait_ns[0] = wait
        run(o, 1)  # it waits all the step, the credit is useful time
        assert (o.useful[0], o.debt_ns[0], o.wait_ns[0]) == (300_000, 0, wait - MS)
        assert (o.moving[0], o.in_flight[0]) == (3, flying)


def test_spins_are_owed_too():
    for spin, owed, moving, flying in (
        (300_000, 800_000, 3, True),
        (1_000_000, 1_500_000, 3, True),
        (1_000_001, 1_500_001, 3, False),
    ):
        o = pair()
        migrating(o, 0, 3, 2_500_000, 1_500_000)
        o.spin_ns[0] = spin
        run(o, 1)
        assert (o.debt_ns[0] + o.spin_ns[0], o.moving[0], o.in_flight[0]) == (owed, moving, flying)
    o = pair()
    migrating(o, 0, 3, 3_500_000, 0)
    o.spin_ns[0] = 1_000_001
    for moving in (3, -1):
        run(o, 1)
        assert (o.moving[0], o.in_flight[0]) == (moving, moving == 3)
    o = pair(params={"shared_cpus": 1000})  # all spin or wait: not owed
    migrating(o, 0, 3, 1_500_000)
    o.spin_ns[0], o.wait_ns[1] = 9 * MS, 1
    run(o, 1)
    assert (o.debt_ns[0], o.in_flight[0]) == (MS, True)  # power 500


def test_new_debt_holds_up_a_flight():
    """What is charged while a page is moved (scans, waits for others) counts as owed first."""
    o = pair()
    migrating(o, 0, 3, 3_500_000)
    for more, owed, flying in ((0, 2_500_000, True), (1_000_001, 2_500_001, False), (0, 1_500_001, True)):
        o.wait_ns[0] += more
        run(o, 1)
        assert (o.debt_ns[0] + o.wait_ns[0], o.in_flight[0], o.moving[0]) == (owed, flying, 3)


def test_a_flight_rests_while_its_task_does_not_run():
    o = oracle(nodes=1, cpus=1, threads=2, home=0, rate=0, params={"slice_us": 1000, "shared_cpus": 0})
    for t, b in ((0, 3), (1, 4)):
        migrating(o, t, b, 1_500_000)
    run(o, 1)
    assert (sorted(o.debt_ns), o.in_flight) == ([500_000, 1_500_000], [True, True])
    run(o, 1)
    assert (o.debt_ns, o.in_flight) == ([500_000, 500_000], [True, True])
    run(o, 1)
    assert sorted(o.in_flight) == [False, True]
    run(o, 1)
    assert (o.moving, o.in_flight) == ([-1, -1], [False, False])
    migrating(o, 0, 3, MS, 3 * MS)  # what owes other things rests too
    o.lay.task_demand[0] = 0
    run(o, 5)
    assert (o.moving[0], o.in_flight[0], o.debt_ns[0]) == (3, False, 3 * MS)


def test_a_flight_in_a_guest():
    def guest(debt, wait, shared=1000):
        o = pair(params={"shared_cpus": shared})
        o.moving, o.moving_ns, o.debt_ns, o.wait_ns = [3, 4], [1_500_000] * 2, debt, wait
        return run(o, 1)

    # task 0 waits 200000: power 1000 // 1.8 = 555, 444000 and 555000 done
    o = guest([1_300_000, 1_500_000], [200_000, 0])
    assert (o.debt_ns, o.in_flight, o.waited_ns) == ([856_000, 945_000], [True, True], [200_000, 0])
    o = guest([1_300_001, 1_500_000], [200_000, 0])  # a wait that is not skipped is owed
    assert (o.debt_ns, o.in_flight) == ([856_001, 945_000], [False, True])
    o = guest([1_500_000, 1_500_001], [0, 0])  # power 500
    assert (o.debt_ns, o.in_flight) == ([MS, 1_000_001], [True, False])
    o = guest([1_500_000, 1_500_001], [300_000, 10])  # both wait: skipped, then as before
    assert (o.debt_ns, o.in_flight, o.wait_ns, o.waited_ns) == ([MS, 1_000_001], [True, False], [0, 0], [0, 0])
    assert o.moving_ns == [1_500_000] * 2
    o = guest([0, 0], [300_000, 2 * MS], 1)  # power 0: nothing but the skip
    assert (o.moving, o.in_flight) == ([-1, -1], [False, False])
    o = guest([1, 0], [300_000, 2 * MS], 1)
    assert (o.moving, o.in_flight) == ([3, -1], [True, False])


def test_a_sleeper_wakes_after_the_flight():
    o = pair()
    o.moving[0], o.moving_ns[0], o.debt_ns[0] = 3, 1_500_000, 1_500_000
    o.waits_for[1], o.wait_ns[1], o.debt_ns[1] = 3, 70, 80
    for waited in (MS, 2 * MS):  # the flight ends in the second step, after it was looked who wakes
        run(o, 1)
        assert (o.waits_for[1], o.waited_ns[1], o.run_ns[1], o.useful[1]) == (3, waited, 0, 0)
        assert (o.wait_ns[1], o.debt_ns[1], sum(map(len, o.queue))) == (70, 80, 1)
    assert o.moving == [-1, -1]
    run(o, 1)
    assert (o.waits_for, o.waited_ns[1], o.run_ns[1]) == ([-1, -1], 2 * MS + 70, MS - 70)
    assert o.useful[1] == MS - 70 - 80
    migrating(o, 0, 3, 1000, 3 * MS)  # never in flight, yet somebody is moving it
    o.waits_for[1] = 3
    for waits_for in (3, 3, 3, -1):
        run(o, 1)
        assert (o.waits_for[1], o.in_flight) == (waits_for, [False, False])


def test_a_sleeper_waits_for_every_task_that_moves_its_page():
    o = pair()
    migrating(o, 0, 4, 9 * MS)
    o.waits_for[1] = 3
    run(o, 1)
    assert (o.waits_for[1], o.waited_ns[1]) == (-1, 0)  # only another page is on its way
    o = oracle(nodes=1, cpus=3, threads=3, home=0, rate=0)
    migrating(o, 0, 3, 500_000)
    migrating(o, 1, 3, 1_500_000)
    o.waits_for[2] = 3
    run(o, 1)
    assert o.moving == [-1, 3, -1]
    run(o, 2)
    assert (o.waits_for[2], o.waited_ns[2], o.run_ns[2]) == (-1, 2 * MS, MS)


def test_a_task_that_has_just_arrived_meets_others():
    """Its own flight ends in 4.2 of the step in which it comes upon the page of the other."""
    for left, met in ((MS // 2, 5), (MS, -1), (MS + 1, -1)):  # of a whole step nothing is left to touch with
        o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=10**9, write=0)
        o.lay.access_until_ns[1] = 0
        fly(o, 0, 4)
        fly(o, 1, 5)
        o.debt_ns[0] = left
        run(o, 1)
        assert (o.waits_for[0], o.moving[0]) == (met, -1 if left <= MS else 4)


def test_a_sleeper_is_neither_load_nor_scans():
    o = oracle(nodes=2, cpus=1, threads=3, home=0, rate=0, params={"balancer_sigma": 0})
    cpu = list(o.cpu)
    crowded = max(cpu, key=cpu.count)
    a, b = (t for t in range(3) if o.cpu[t] == crowded)
    o.waits_for[a] = 5
    migrating(o, b, 5, 2**60)
    run(o, 100)
    assert o.cpu == cpu  # one runnable task on each CPU
    assert (o.run_ns[a], o.run_ns[b], o.waited_ns[a]) == (0, 100 * MS, 100 * MS)


# ---------------------------------------------------------------- 4.5, random finds
def fly(o, t, b):
    """Task t is in the middle of a migration of block b."""
    migrating(o, t, b, 9 * MS, 8 * MS)
    o.in_flight[t] = True


def test_a_page_is_held_while_it_is_in_flight():
    o = oracle(nodes=1, cpus=4, threads=4, home=0, rate=0)
    fly(o, 0, 3)
    fly(o, 1, 3)
    migrating(o, 2, 4, MS)  # on its way, not in flight
    flights.gather(o)
    assert [flights.held(o, 3, b) for b in (3, 4, 5)] == [True, False, False]
    o.in_flight[0] = False  # the other's flight goes on
    flights.gather(o)
    assert [flights.held(o, t, 3) for t in range(4)] == [False, False, False, True]  # 0 to 2 are moving one
    o.in_flight[1] = False
    flights.gather(o)
    assert not flights.held(o, 3, 3)


def test_processes_lose_a_page_in_flight_one_after_the_other():
    """Of three processes the first once some of 9 ms is done, the second after 3 ms, the third after 6."""
    for left, holders in ((9_000_001, []), (9_000_000, []), (8_999_999, [1]), (6_000_000, [1]), (5_999_999, [1, 2]),
                          (3_000_000, [1, 2]), (2_999_999, [1, 2, 3]), (1, [1, 2, 3])):  # fmt: skip
        o = oracle(nodes=1, cpus=5, processes=4, threads=1, home=0, rate=0, vma_region=[1, 0, 0, 0])
        o.moving[0], o.moving_ns[0], o.in_flight[0] = 3, 9 * MS, True  # the task that moves it is of none of them
        o.debt_ns[0], o.wait_ns[0], o.spin_ns[0] = left - 300, 200, 100
        touch.touch(o, {})
        assert [t for t in range(4) if flights.held(o, t, 3)] == holders


def test_what_is_left_of_a_flight_is_that_of_the_beginning():
    """The task that moves block 3 walks in the same step, and what it owes falls by what that is expected to cost."""
    o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=0, order=SEQUENTIAL)
    fly(o, 0, 3)
    o.debt_ns[0] = 9 * MS  # nothing done yet
    o.useful, o.pos = [10_000, 1500], [5, 3]
    trap(o, [5])
    assert touch.touch(o, {0: 10**6, 1: 10**6}) == [(0, 5)]
    assert (o.debt_ns[0], o.waits_for) == (9 * MS - 1200, [-1, -1])


def test_who_touches_a_page_not_yet_in_flight_goes_on():
    """At first 2000001 are owed of 1000001: in flight in the second step, held then, arrived in the third."""
    o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=10**9, write=0)
    o.lay.access_until_ns[1] = 0
    migrating(o, 1, 5, 1_000_001, 2_000_001)
    for flying, waits_for in ((False, -1), (True, 5), (False, 5), (False, -1)):
        run(o, 1)
        assert (o.in_flight[1], o.waits_for[0]) == (flying, waits_for)
    for order in (RANDOM, SEQUENTIAL):
        o = still(order)
        o.useful[0] = 9000
        trap(o, [2, 3])
        migrating(o, 1, 3, MS)
        assert [q for _, q in touch.touch(o, {0: 10**6 if order == SEQUENTIAL else 10**9})] == [2, 3]
        assert (o.waits_for[0], o.counters["migration_waits"]) == (-1, 0)


def test_random_finds_end_at_a_held_page():
    def found(o, useful, b, blocks=(2, 3, 5, 8)):
        o.lay.access_rate, o.useful[0] = [10**5, 0], useful
        trap(o, blocks)
        fly(o, 1, b)
        return [q for _, q in touch.touch(o, {0: 10**9})], o.waits_for[0], o.counters["migration_waits"]

    # 1200 each: 4000 last for all 4 (0, 1200, 2400, 3600 before)
    for b, expected in ((2, []), (3, [2]), (5, [2, 3]), (8, [2, 3, 5])):
        assert found(still(), 4000, b) == (expected, b, 1)
    assert found(still(), 4000, 4) == ([2, 3, 5, 8], -1, 0)  # in flight, yet not found
    # 2400 last for two finds: the third, held, is met no more; 2401 are enough
    assert found(still(), 2400, 5) == ([2, 3], -1, 0)
    assert found(still(), 2401, 5) == ([2, 3], 5, 1)
    for own in (3, 9):  # nothing holds up a task that is itself moving, be it the same block
        o = still()
        fly(o, 0, own)
        assert found(o, 4000, 3) == ([2, 3, 5, 8], -1, 0)
    o = still()
    found(o, 4000, 3)
    assert [q for q in range(16) if o.trapped[q]] == [2, 3, 5, 8]  # 4.6 untraps what was taken
    faults.handle(o, [(0, 2)], {})
    assert [q for q in range(16) if o.trapped[q]] == [3, 5, 8]
    assert o.pending == [3]


def still(order=RANDOM, **rest):
    """Two tasks, local memory of a region so large that random accesses meet no held page by chance."""
    o = oracle(nodes=1, cpus=2, threads=2, home=0, order=order, rate=0, **rest)
    o.region_pages = [2**62]
    return o


def test_finds_of_every_access_end_at_the_first_held_page():
    o = still(
        access_task=[0, 0, 1],
        access_vma=[0] * 3,
        access_rate=[0] * 3,
        access_order=[RANDOM] * 3,
        access_write=[0] * 3,
        access_start=[0] * 3,
        access_from_ns=[0] * 3,
        access_until_ns=[2**62] * 3,
    )
    o.useful = [10**5, 10**5]
    fly(o, 1, 4)
    flights.gather(o)
    listed = [(0, 2), (0, 4), (0, 5), (1, 1), (1, 4), (2, 3), (2, 4), (2, 6)]
    assert touch.race(o, listed) == [(0, 2), (2, 3), (2, 4), (2, 6)]  # nothing is held against task 1
    assert (o.waits_for, o.counters["migration_waits"]) == ([4, -1], 1)


# ---------------------------------------------------------------- 4.5, walks
@pytest.mark.parametrize(("b", "d"), [(2, 0), (5, 3), (1, 15)])
def test_a_walk_ends_at_a_held_page(b, d):
    """From block 2, 1000 ns a block: 20000 ns pass 20 blocks and leave 500 of the 500 carried."""
    o = still(SEQUENTIAL)
    o.useful[0], o.pos[0], o.carry_ns[0] = 20_000, 2, 500
    fly(o, 1, b)
    assert touch.touch(o, {0: 10**6}) == []
    assert (o.pos[0], o.carry_ns[0]) == ((2 + d) % 16, 0)
    assert o.work[0] == 10**6 * 500  # more than that of the useful time: nothing is carried on
    assert (o.waits_for[0], o.counters["migration_waits"]) == (b, 1)


def test_a_walk_that_ends_before_a_held_page():
    for b, met in ((6, True), (7, False), (1, False)):
        o = still(SEQUENTIAL)
        o.useful[0], o.pos[0] = 5500, 2  # passes 2 to 6
        fly(o, 1, b)
        touch.touch(o, {0: 10**6})
        assert o.waits_for[0] == (b if met else -1)
        assert (o.pos[0], o.carry_ns[0]) == ((b, 0) if met else (7, 500))


def test_the_nearest_held_page_of_the_region_counts():
    o = oracle(nodes=1, cpus=4, threads=4, home=0, order=SEQUENTIAL, rate=0)
    o.useful[0], o.pos[0] = 9000, 14
    for t, b in ((1, 13), (2, 3), (3, 1)):  # 15, 5 and 3 blocks ahead
        fly(o, t, b)
    touch.touch(o, {0: 10**6})
    assert (o.pos[0], o.waits_for[0]) == (1, 1)
    o.waits_for[0], o.pos[0] = -1, 14
    fly(o, 0, 8)  # one that is moving walks on: 9 blocks
    touch.touch(o, {0: 10**6})
    assert (o.pos[0], o.waits_for[0], o.counters["migration_waits"]) == (7, -1, 1)
    o = oracle(nodes=1, cpus=2, processes=2, threads=1, home=0, order=SEQUENTIAL, rate=0)
    o.useful = [9000, 9000]
    fly(o, 0, 16 + 5)  # a block of the other region, its index is no place in this one
    touch.touch(o, {0: 10**6, 1: 10**6})
    assert (o.pos, o.waits_for) == ([9, 5], [-1, 21])


def test_a_walk_faults_on_what_it_passes_only():
    """1000 ns a block, 1200 a fault: 0, 1, 2, 3, 4 cost 5000 + 4*1200 = 9800 of 10000, the next would be too much."""
    for b, found, pos, carry in ((5, [1, 2, 3, 4], 5, 200), (3, [1, 2], 3, 0), (1, [], 1, 0)):
        o = still(SEQUENTIAL)
        o.useful[0] = 10_000
        trap(o, [1, 2, 3, 4, 9])
        fly(o, 1, b)
        assert [q for _, q in touch.touch(o, {0: 10**6})] == found
        assert (o.pos[0], o.carry_ns[0], o.debt_ns[0]) == (pos, carry, -1200 * len(found))
        assert o.work[0] == -(10**6) * (1200 * len(found) + carry)  # less than that of the useful time
        assert o.waits_for[0] == (b if b < 5 else -1)


def test_a_walk_meets_a_trapped_page_too_dear_to_fault_on():
    """The faults bound how far it gets: it never reaches a held block it could not have passed."""
    o = still(SEQUENTIAL)
    o.useful[0] = 2100  # block 0 costs 1000, block 1 would cost 2200
    trap(o, [1])
    fly(o, 1, 1)
    touch.touch(o, {0: 10**6})
    assert (o.pos[0], o.carry_ns[0], o.waits_for[0]) == (1, 1100, -1)


def test_every_walk_of_a_task_ends_at_its_held_page():
    """Also after another has met one; that a task met one is counted once."""
    o = two_accesses(SEQUENTIAL, SEQUENTIAL)
    o.T = 3
    o.moving, o.in_flight = [-1, 6, 4], [False, True, True]  # as if there were two more tasks
    o.moving_ns, o.debt_ns, o.wait_ns, o.spin_ns = [0, 9, 9], [0, 8, 8], [0] * 3, [0] * 3
    o.useful[0], o.pos = 8000, [5, 0]
    touch.touch(o, {0: 10**6, 1: 10**6})
    assert (o.pos, o.carry_ns) == ([6, 4], [0, 0])
    assert (o.waits_for, o.counters["migration_waits"]) == ([6], 1)


# ---------------------------------------------------------------- 4.5, random accesses
def test_random_accesses_meet_held_pages_by_chance():
    """Met if EXP * 16 pages <= (rate * useful // 1000) * k; the draw's name is block 3 of 2 accesses, step 7."""
    for a, k, kind in ((0, 1, BASE), (1, 1, BASE), (0, 512, HUGE)):
        chance = draws.exponential(draws.draw(1, draws.MEET, 3 * 2 + a, 7))
        assert chance > 0
        enough = chance * 16  # touched pages; of blocks of k pages there are k times as many, and k times the chance
        for touched, met in ((enough, True), (enough - 1, False)):
            o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=0, block_pages=k, kind=kind)
            o.i, o.useful[a] = 7, 1000
            fly(o, 1 - a, 3)  # not trapped, nothing pending
            assert touch.touch(o, {a: touched}) == []
            assert o.waits_for[a] == (3 if met else -1)
            assert o.counters["migration_waits"] == met
    o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=0)
    o.useful[0] = 1000
    fly(o, 0, 3)
    touch.touch(o, {0: 2**60})
    assert o.waits_for == [-1, -1]  # its own
    fly(o, 1, 3)
    fly(o, 0, 4)
    touch.touch(o, {0: 2**60})
    assert o.waits_for == [-1, -1]  # it is moving one itself
    o.moving[0], o.in_flight[0] = -1, False
    touch.touch(o, {0: 2**60})
    assert o.waits_for == [3, -1]


def test_random_accesses_meet_held_pages_in_order_of_the_movers():
    o = oracle(nodes=1, cpus=4, threads=4, home=0, rate=0)
    o.useful = [1000] * 4
    for t, b in ((1, 9), (2, 4), (3, 9)):
        fly(o, t, b)
    touch.touch(o, {0: 2**60, 1: 2**60})
    assert (o.waits_for, o.counters["migration_waits"]) == ([9, -1, -1, -1], 1)  # 1 is moving one itself
    o.moving, o.waits_for = [-1, 4, 9, 4], [-1] * 4
    touch.touch(o, {0: 2**60})
    assert o.waits_for[0] == 4
    o = oracle(nodes=1, cpus=2, processes=2, threads=1, home=0, rate=0)
    o.useful = [1000] * 2
    fly(o, 0, 16 + 5)
    touch.touch(o, {0: 2**60, 1: 2**60})
    assert o.waits_for == [-1, 21]  # the other region is not touched by task 0


def test_finds_come_first_then_walks_then_random_accesses():
    def met(finds, walks, touched):
        o = two_accesses(SEQUENTIAL, RANDOM)
        o.T, o.useful[0] = 4, 10_000
        o.moving, o.in_flight = [-1, 12, 7, 8], [False, True, True, True]  # three more tasks, in words
        o.moving_ns, o.debt_ns, o.wait_ns, o.spin_ns = [0, 9, 9, 9], [0, 8, 8, 8], [0] * 4, [0] * 4
        o.useful += [0] * 3
        if finds:
            trap(o, [8])
        touch.touch(o, {0: 10**6 if walks else 1, 1: touched})
        return o.waits_for[0], o.counters["migration_waits"], o.pos[0]

    # the walk of 10 blocks (of 0 at the rate 1) meets 7, though 12 is the first in order of the moving tasks
    assert met(True, True, 2**60) == (8, 1, 7)
    assert met(False, True, 2**60) == (7, 1, 7)
    assert met(True, False, 2**60) == (8, 1, 0)
    assert met(False, False, 2**60) == (12, 1, 0)
    assert met(False, False, 1) == (-1, 0, 0)


def test_the_step_of_a_meeting_goes_on():
    """What it found before is faulted, its work is done; it sleeps from the next step on."""
    o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=100_000, write=0)
    o.lay.access_until_ns[1] = 0
    trap(o, [2, 3, 5])
    o.moving[1], o.moving_ns[1], o.debt_ns[1] = 5, 1_500_000, 1_500_000
    run(o, 1)
    assert (o.waits_for, o.counters["migration_waits"]) == ([5, -1], 1)
    assert (o.counters["numa_hint_faults"], o.pending, o.debt_ns[0]) == (2, [1], 2400)
    assert (o.work[0], o.run_ns[0], o.waited_ns[0]) == (100_000 * MS, MS, 0)
    run(o, 1)
    assert (o.work[0], o.run_ns[0], o.waited_ns[0], o.moving) == (100_000 * MS, MS, MS, [-1, -1])
    run(o, 1)
    assert (o.waits_for, o.run_ns[0], o.waited_ns[0], o.pending) == ([-1, -1], 2 * MS, MS, [0])
    assert o.work[0] == 100_000 * (MS + MS - 2400)
    assert o.counters["migration_waits"] == 1


# ---------------------------------------------------------------- 4.8
MOVE = 1500 + 300 + 600  # a migration of one page mapped once
REMOTE = 1200 + MOVE  # with its fault


def unwritten(**rest):
    return remote(write=0, **rest)


def test_the_last_migration_of_a_task_is_noted():
    o = unwritten()
    listed = [a_fault(o, q=q) for q in (2, 6, 9)]
    faults.charge(o, listed, {})
    assert (o.moving, o.moving_ns, o.debt_ns) == ([9, -1], [MOVE, 0], [3 * REMOTE, 0])
    o.wait_ns[0] = 40
    faults.charge(o, [a_fault(o, q=3)], {})  # whatever it was moving before, whatever it owes
    assert (o.moving, o.moving_ns) == ([3, -1], [MOVE, 0])
    assert o.in_flight == [False, False]  # before the next step
    o.cpu[1] = 0
    both = [a_fault(o, 1, 11), a_fault(o, 0, 10)]
    listed = sorted(both, key=lambda f: f.task)
    assert flights.note(o, listed, lambda _: MS) == {}  # fits in a step
    assert (o.moving, o.moving_ns[0]) == ([10, -1], MS)  # task 1 owes nothing: not charged here


def test_what_is_not_noted():
    o = unwritten()
    listed = [a_fault(o, q=2), a_fault(o, q=3)]
    listed[1].migrated = False  # the last is what counts
    faults.charge(o, listed, {})
    assert o.moving == [-1, -1]
    o = unwritten()
    o.waits_for[0] = 7  # it met a held page in this step
    faults.charge(o, [a_fault(o, q=2)], {})
    assert (o.moving, o.moving_ns) == ([-1, -1], [0, 0])
    for debt, wait, noted in ((-REMOTE, 0, 0), (1 - REMOTE, 0, 1), (-REMOTE - 5, 5, 0), (-REMOTE - 5, 6, 1)):
        o = unwritten()
        o.debt_ns[0], o.wait_ns[0] = debt, wait  # credit of a walk
        faults.charge(o, [a_fault(o, q=2)], {})
        assert (o.moving[0], o.moving_ns[0]) == ((2, MOVE) if noted else (-1, 0))


def test_long_flights_do_not_make_others_wait():
    """A huge page takes 1500 + 300 + 512*600 = 309000 ns, D = 309 us; with the fault 310200 ns are owed."""

    def huge(step_us):
        o = unwritten(kind=HUGE, block_pages=512, params={"step_us": step_us})
        o.lay.access_rate = [2000 * 8192] * 2
        return o

    # exactly a step is not above it, though more is owed
    for step_us, left_out in ((308, True), (309, False)):
        o = huge(step_us)
        faults.charge(o, [a_fault(o)], {0: 1, 1: 1})
        assert (o.moving[0], o.moving_ns[0], o.debt_ns[0]) == (0, 309_000, 310_200)
        assert o.wait_ns == [0, 0 if left_out else 309**2]
    # of two migrations only the last is left out
    for step_us, counted in ((308, 1), (620, 2)):
        o = huge(step_us)
        faults.charge(o, [a_fault(o), a_fault(o, q=1)], {0: 1, 1: 1})
        assert (o.moving[0], o.moving_ns[0], o.wait_ns) == (1, 309_000, [0, counted * 309**2])
    # and each task's own part: the other's flight is left out, mine is in X_t: it is not noted for nothing is owed
    o = huge(308)
    o.debt_ns[0] = -310_200
    o.cpu[1] = 0
    faults.charge(o, [a_fault(o), a_fault(o, 1, 1)], {0: 1, 1: 1})
    assert (o.moving, o.wait_ns) == ([-1, 1], [0, 309**2])
    # the wait for other CPUs is part of the time: 309000 + 1000
    o = unwritten(kind=HUGE, block_pages=512, params={"step_us": 309, "ipi_wait_ns": 1000})
    o.lay.access_rate = [2000 * 8192] * 2
    faults.charge(o, [a_fault(o)], {0: 1, 1: 1})
    assert (o.moving_ns[0], o.wait_ns) == (310_000, [1000, 0])


def test_migrations_of_a_guest_wait_for_other_cpus():
    """4 pages mapped twice: 4*(1500 + 2*300) + 4*600 = 10800 of work and a wait of 4*2*50000."""
    o = oracle(
        nodes=2, processes=2, threads=1, shared_region=True, home=1, blocks=8, block_pages=4, write=0,
        params={"ipi_wait_ns": 50_000},
    )  # fmt: skip
    o.cpu = [0, 0]
    o.lay.access_rate = [2000 * 32] * 2
    f = a_fault(o)
    assert f.migrated
    faults.charge(o, [f], {0: 1, 1: 1})
    assert o.debt_ns == [4 * 1200 + 10_800, 0]
    assert o.wait_ns == [400_000, 410**2 // 4]  # D = 410800 // 1000; task 1's process is the second to lose the page
    assert (o.moving[0], o.moving_ns[0]) == (0, 400_000 + 10_800)
    o = remote(write=0, params={"ipi_wait_ns": 50_000})
    o.node[0] = 0
    local = a_fault(o)
    assert not local.migrated
    faults.charge(o, [local], {0: 1})
    assert (o.wait_ns, o.debt_ns) == ([0, 0], [1200, 0])
    o.wait_ns[0] = 7
    faults.charge(o, [a_fault(o, q=1)], {0: 1, 1: 1})  # of one page, mapped once
    assert o.wait_ns[0] == 7 + 50_000
    assert o.moving_ns[0] == 50_000 + MOVE
    huge = remote(kind=HUGE, block_pages=512, write=0, params={"ipi_wait_ns": 50_000})
    faults.charge(huge, [a_fault(huge)], {})  # c = 1
    assert (huge.wait_ns[0], huge.moving_ns[0]) == (50_000, 50_000 + 309_000)


def test_a_huge_page_from_fault_to_arrival():
    """Copying takes 512*6000 ns, so it outlasts three steps; the other thread sleeps until it is over."""
    o = oracle(
        "4.15", nodes=2, cpus=1, threads=2, kind=HUGE, blocks=1, block_pages=512, home=1, rate=10**9, write=0,
        switches={"scan_delay_ms": 10**6}, params={"copy_page_ns": 6000},
    )  # fmt: skip
    a, b = (o.cpu.index(n) for n in (0, 1))  # on node 0, far from the page, and on node 1
    trap(o, [0])
    o.useful = [MS, MS]
    o.lay.access_from_ns[b] = MS  # the other comes a step later
    run(o, 1)
    takes = 1500 + 300 + 512 * 6000
    owed = 1200 + takes
    assert (o.node, o.moving[a], o.moving_ns[a], o.debt_ns[a]) == ([0], 0, takes, owed)
    assert o.wait_ns == [0, 0]
    run(o, 1)  # the fault is owed first: b touches every page over and over, and goes on
    assert (o.waits_for[b], o.in_flight[a], o.debt_ns[a], o.useful[b]) == (-1, False, owed - MS, MS)
    run(o, 1)  # it meets this one
    assert (o.waits_for[b], o.in_flight[a], o.debt_ns[a], o.useful[b]) == (0, True, owed - 2 * MS, MS)
    run(o, 1)
    assert (o.waits_for[b], o.in_flight[a], o.debt_ns[a], o.waited_ns[b]) == (0, True, 75_000, MS)
    run(o, 1)  # 75000 left: it arrives
    assert (o.waits_for[b], o.moving[a], o.useful[a], o.waited_ns[b]) == (0, -1, MS - 75_000, 2 * MS)
    run(o, 1)
    assert (o.waits_for[b], o.waited_ns[b], o.useful[b]) == (-1, 2 * MS, MS)
    assert (o.counters["migration_waits"], o.moving_ns[a]) == (1, takes)
    assert o.i == 6


def test_random_machines_meet_held_pages():
    o = oracle("4.15", nodes=2, cpus=2, threads=4, kind=HUGE, blocks=8, block_pages=512, home=0, rate=10**7,
               switches={"scan_delay_ms": 5, "scan_period_min_ms": 10}, params={"copy_page_ns": 6000})  # fmt: skip
    first_step_with(o, lambda o: o.counters["migration_waits"] > 2, limit=2000)
