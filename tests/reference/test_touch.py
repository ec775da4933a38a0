"""The oracle against values worked out by hand: touching memory (section 4.5)."""

from __future__ import annotations

from numalab.layout import HUGE, RANDOM, SEQUENTIAL
from tests.reference import faults, touch
from tests.reference.helpers import oracle, remote, run, trap, two_accesses

PAGE = 10**9  # the work (page*ns/s) of passing a page


def test_slowness():
    o = oracle(threads=1, home=0)
    assert touch.slowness(o, 0, 0) == 1000
    assert touch.slowness(o, 0, 1) == 1550
    o.on_node[0] = [8, 8]
    assert touch.slowness(o, 0, 0) == 1275


def test_sequential_walk_without_traps():
    o = oracle(threads=1, order=SEQUENTIAL, rate=1_500_000, home=0, nodes=1)
    run(o, 1)
    assert (o.pos[0], o.carry_ns[0]) == (1501 % 16, 10**6 - 1501 * 666)
    assert o.work[0] == 1_500_000 * 1501 * 666  # what is carried is no work yet
    run(o, 1)  # 1000334 ns: 1502 blocks of 666
    assert (o.pos[0], o.carry_ns[0], o.work[0]) == (3003 % 16, 2, 1_500_000 * 3003 * 666)


def test_sequential_walk_pays_for_faults():
    o = oracle(threads=1, order=SEQUENTIAL, rate=1_000_000, home=0, nodes=1)
    o.useful[0] = 10_000
    for q in (1, 2, 9):
        o.trapped[q] = True
    o.pending[0] = 3
    found = touch.touch(o, {0: 1_000_000})
    # 1000 ns a block, 1200 a fault: blocks 0 1 2 3 4 5 6 cost 7000 + 2400, the next would be 10400
    assert found == [(0, 1), (0, 2)]
    assert (o.pos[0], o.carry_ns[0], o.debt_ns[0]) == (7, 600, -2400)


def test_a_walk_over_remote_pages():
    """1000 ns a block; a fault 1200 + 1500 + 300 + 600 = 3600 and a wait of 5000, which limits how far it gets."""

    def walked(useful, wait=5000, power=1000, home=1):
        o = oracle("4.15", threads=1, order=SEQUENTIAL, home=home, params={"ipi_wait_ns": wait})
        o.cpu, o.useful[0], o.power = [0], useful, power
        o.work[0] = 10**6 * useful  # so far
        trap(o, [1, 2])
        found = [q for _, q in touch.touch(o, {0: 10**6})]
        return found, o.pos[0], o.carry_ns[0], o.debt_ns[0], o.sys_ns[0], o.work[0]

    # blocks 0 and 1: 1000 + 4600 and a wait of 5000; the wait is no cost, so it is carried on
    assert walked(10_599) == ([], 1, 9599, 0, 0, PAGE)
    assert walked(10_600) == ([1], 2, 5000, -3600, 3600, 2 * PAGE)
    # blocks 0 to 2: 1000 + 2*4600 and two waits
    assert walked(20_199) == ([1], 2, 14_599, -3600, 3600, 2 * PAGE)
    assert walked(20_200) == ([1, 2], 3, 10_000, -7200, 7200, 3 * PAGE)
    assert walked(10_200, wait=0) == ([1, 2], 3, 0, -7200, 7200, 3 * PAGE)
    # a fault of 1200 on local pages makes nobody wait: 3000 + 2400, of 5500
    assert walked(5500, home=0) == ([1, 2], 3, 100, -2400, 2400, 3 * PAGE)
    # at 300 of 1000 the time is longer, once rounded: 7200000 / 300, 2400000 / 700; nothing gets done at 0
    assert walked(10_200, wait=0, power=300)[3:] == (-7200, 24_000, 3 * PAGE)
    assert walked(5500, home=0, power=700)[4] == 3428
    assert walked(5500, home=0, power=0)[4] == 2_400_000


def test_a_walk_over_shared_pages():
    """4 pages mapped twice: 4*(1200 + 1500 + 2*300 + 600) = 15600 and a wait of 4*2*50; 4000 ns a block."""
    for useful, found in ((19_999, []), (20_000, [0])):
        o = oracle(
            nodes=2, processes=2, threads=1, shared_region=True, order=SEQUENTIAL, home=1, block_pages=4,
            params={"ipi_wait_ns": 50},
        )  # fmt: skip
        o.cpu, o.useful = [0, 0], [useful, 0]
        trap(o, [0])
        assert [q for _, q in touch.touch(o, {0: 10**6})] == found
        assert (o.debt_ns[0], o.carry_ns[0]) == ((-15_600, 400) if found else (0, 19_999))


def test_a_walk_of_a_step_is_system_time_at_once():
    """Of 1 ms 2 faults of 1200 are not worked in; what was refunded is charged again, so nothing is owed."""
    o = oracle(threads=1, order=SEQUENTIAL, rate=10**6, write=0, home=0, nodes=1, blocks=10_000)
    trap(o, [1, 2])
    run(o, 1)
    assert (o.counters["numa_hint_faults"], o.debt_ns, o.sys_ns) == (2, [0], [2400])
    assert o.pos == [997]  # 997*1000 + 2400 of 10^6, 600 carried
    assert (o.carry_ns, o.work) == ([600], [997 * PAGE])


def test_work_comes_when_a_block_is_passed():
    """512 pages at 10^5 a second take 5.12 ms."""
    o = oracle(threads=1, order=SEQUENTIAL, rate=10**5, home=0, nodes=1, block_pages=512, kind=HUGE)
    run(o, 5)
    assert (o.pos, o.carry_ns, o.work) == ([0], [5 * 10**6], [0])
    run(o, 1)
    assert (o.pos, o.carry_ns, o.work) == ([1], [880_000], [512 * PAGE])


def test_time_carried_is_work_at_the_rate_of_the_step():
    o = oracle(threads=1, order=SEQUENTIAL, home=0, nodes=1)
    o.useful[0], o.carry_ns[0], o.work[0] = 400, 600, 2 * 10**6 * 400  # 600 ns from before, at some other rate
    touch.touch(o, {0: 2 * 10**6})
    assert (o.pos[0], o.carry_ns[0], o.work[0]) == (2, 0, 2 * PAGE)


def test_work_of_a_walk_that_comes_round():
    """16 blocks of 1000 and a fault of 1200 leave 2800 of 20000; what is not carried was spent."""
    o = oracle(threads=1, order=SEQUENTIAL, home=0, nodes=1)
    o.useful[0], o.work[0] = 20_000, 10**6 * 20_000
    trap(o, [3])
    touch.touch(o, {0: 10**6})
    assert (o.pos[0], o.carry_ns[0], o.debt_ns[0], o.work[0]) == (0, 999, -1200, 10**6 * (16_000 + 1801))


def test_work_of_each_access():
    """Each has all the useful time; random accesses carry nothing."""
    o = two_accesses(SEQUENTIAL, SEQUENTIAL)
    o.useful[0], o.work[0] = 5500, (10**6 + 300_000) * 5500
    touch.touch(o, {0: 10**6, 1: 300_000})
    assert (o.pos, o.carry_ns) == ([5, 1], [500, 2167])
    assert o.work[0] == 5 * PAGE + 300_000 * 3333
    o = two_accesses(RANDOM, SEQUENTIAL)
    o.useful[0], o.work[0] = 5500, (300_000 + 10**6) * 5500
    touch.touch(o, {0: 300_000, 1: 10**6})
    assert (o.carry_ns, o.work[0]) == ([0, 500], 300_000 * 5500 + 5 * PAGE)
    o.useful[0] = 600  # of the walk that is not live nothing changes
    touch.touch(o, {0: 300_000})
    assert (o.carry_ns, o.work[0]) == ([0, 500], 300_000 * 5500 + 5 * PAGE)


def test_random_touch_by_threshold():
    o = oracle(threads=1, home=0, nodes=1)
    o.useful[0] = 10**6
    o.trapped[3] = o.trapped[5] = True
    o.pending[0], o.threshold[3], o.threshold[5] = 2, 10**8, 10**8 + 1
    o.ahead[0] = [(10**8, 3), (10**8 + 1, 5)]
    assert touch.touch(o, {0: 100_000}) == [(0, 3)]
    assert o.intensity[0] == 10**8
    assert touch.touch(o, {0: 1}) == [(0, 3), (0, 5)]


def test_the_threshold_of_a_block_trapped_again_is_the_new_one():
    """Whether a walk opened it before or after the intensity had reached the old one."""
    for ahead, passed in (([(10**8, 3), (2 * 10**8, 3)], set()), ([(2 * 10**8, 3)], {3})):
        o = oracle(threads=1, home=0, nodes=1)
        o.useful[0] = 10**6
        o.trapped[3], o.pending[0], o.threshold[3] = True, 1, 2 * 10**8
        o.ahead[0], o.reached[0] = ahead, passed
        assert touch.touch(o, {0: 100_000}) == []
        assert touch.touch(o, {0: 100_000}) == [(0, 3)]
        assert touch.touch(o, {0: 1}) == [(0, 3)]  # nobody faulted on it


def test_a_task_takes_random_finds_for_its_useful_time():
    def taken(o, useful, blocks=(2, 3, 5, 8)):
        o.useful[0] = useful
        trap(o, blocks)
        return [q for _, q in touch.touch(o, {0: 100_000})]

    # local: 1200 each; taken after 0, 1200, 2400, ... while that is less than the useful time
    local = {"threads": 1, "home": 0, "nodes": 1}
    assert taken(oracle(**local), 1) == [2]
    assert taken(oracle(**local), 1200) == [2]
    assert taken(oracle(**local), 1201) == [2, 3]
    assert taken(oracle(**local), 3600) == [2, 3, 5]
    assert taken(oracle(**local), 3601) == [2, 3, 5, 8]
    # 4 pages a block: 4*1200; a huge page counts once; either remote: + 1500 to migrate, 600 a page to copy
    far = {"params": {"unmap_ns": 0}}
    assert taken(oracle(**local, block_pages=4), 4801) == [2, 3]
    assert taken(oracle(**local, block_pages=4), 4800) == [2]
    assert taken(oracle(**local, block_pages=512, kind=HUGE), 1201) == [2, 3]
    assert taken(remote(**far), 3300) == [2]
    assert taken(remote(**far), 3301) == [2, 3]
    assert taken(remote(block_pages=512, kind=HUGE, **far), 2700 + 512 * 600) == [2]
    assert taken(remote(block_pages=512, kind=HUGE, **far), 2701 + 512 * 600) == [2, 3]
    o = remote(**far)
    o.node[2] = o.node[3] = 0  # the estimate is that of each block: 1200, 1200, 3300, 3300
    assert taken(o, 2400) == [2, 3]
    assert taken(o, 5700) == [2, 3, 5]
    assert taken(o, 5701) == [2, 3, 5, 8]


def test_waits_for_other_cpus_limit_random_finds():
    def taken(useful, unmap, wait, home=1, **rest):
        o = oracle(
            nodes=2, processes=2, threads=1, shared_region=True, home=home, blocks=16, write=0,
            params={"unmap_ns": unmap, "ipi_wait_ns": wait}, **rest,
        )  # fmt: skip
        o.cpu, o.useful[0] = [0, 0], useful
        trap(o, (2, 3, 5))
        return [q for _, q in touch.touch(o, {0: 10**9})]

    # mapped twice: 1200 + 1500 + 600 and 2*50000 to wait
    assert taken(103_300, 0, 50_000) == [2]
    assert taken(103_301, 0, 50_000) == [2, 3]
    assert taken(1201, 0, 50_000, home=0) == [2, 3]  # nobody waits for what does not move
    # 4 pages a block: 4 times all that; a huge page: 1200 + 1500 + 512*600 and 2*50000
    assert taken(413_200, 0, 50_000, block_pages=4) == [2]
    assert taken(413_201, 0, 50_000, block_pages=4) == [2, 3]
    assert taken(409_900, 0, 50_000, block_pages=512, kind=HUGE) == [2]
    assert taken(409_901, 0, 50_000, block_pages=512, kind=HUGE) == [2, 3]
    # unmapping is in the est: 3300 + 2*300 and 2*70 to wait
    assert taken(4040, 300, 70) == [2]
    assert taken(4041, 300, 70) == [2, 3]


def test_each_task_races_over_all_its_random_accesses():
    o = oracle(
        threads=2,
        home=0,
        nodes=1,
        access_task=[0, 0, 0, 1],
        access_vma=[0] * 4,
        access_rate=[1000] * 4,
        access_order=[RANDOM, SEQUENTIAL, RANDOM, RANDOM],
        access_write=[0] * 4,
        access_start=[0] * 4,
        access_from_ns=[0] * 4,
        access_until_ns=[2**62] * 4,
    )
    o.useful = [3000, 1200]
    # task 0: 0 and 1 (2400 so far), then 4 (3600); task 1: 6. Access 1 walks and does not race
    assert touch.race(o, [(0, 0), (0, 1), (2, 4), (2, 5), (3, 6), (3, 7)]) == [(0, 0), (0, 1), (2, 4), (3, 6)]
    # what is not taken is no find: whoever walks over it faults
    o.useful[0] = 1200
    trap(o, [0, 1])
    one, two = faults.handle(o, [*touch.race(o, [(0, 0), (0, 1)]), (1, 1)], {})
    assert [(one.access, one.q), (two.access, two.q)] == [(0, 0), (1, 1)]
    assert o.debt_ns == [0, 0]
    # and in one go: of 0 to 3 found by access 0 only 0 is taken; access 1 walks over 0, 1, 2 (1000 + 1200 each)
    o = two_accesses()
    o.useful[0], o.carry_ns[1] = 1200, 5400
    trap(o, [0, 1, 2, 3])
    assert touch.touch(o, {0: 10**6, 1: 10**6}) == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert o.debt_ns == [-3600]


def test_what_is_not_taken_is_found_in_a_later_step():
    """Faults of 0.6 ms, steps of 1 ms: two are taken, then 1.2 ms are owed."""
    o = oracle(threads=1, home=0, nodes=1, write=0, params={"hint_fault_ns": 600_000})
    trap(o, [1, 4, 7, 9, 12])
    run(o, 1)
    assert (o.counters["numa_hint_faults"], o.pending, o.debt_ns) == (2, [3], [1_200_000])
    assert [q for q in range(16) if o.trapped[q]] == [7, 9, 12]
    assert o.intensity == [10**8]  # 100000 pages/s for 1 ms, kept as some are pending
    run(o, 1)
    assert (o.counters["numa_hint_faults"], o.debt_ns, o.intensity) == (2, [200_000], [10**8])  # nothing useful
    run(o, 1)  # 0.8 ms useful
    assert (o.counters["numa_hint_faults"], o.debt_ns, o.intensity) == (4, [1_200_000], [180_000_000])
    assert [q for q in range(16) if o.trapped[q]] == [12]
    run(o, 2)
    assert (o.counters["numa_hint_faults"], o.pending, o.intensity) == (5, [0], [0])
