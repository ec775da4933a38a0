"""The oracle: draws, start, who runs; and what must hold in any run."""

from __future__ import annotations

import numpy as np
import pytest

from numalab.kernel import Kernel, names
from tests.reference import draws, groups, load, scan
from tests.reference.helpers import (
    first_step_with,
    oracle,
    run,
)
from tests.reference.invariants import Ledger, check, check_weights
from tests.reference.oracle import Oracle
from tests.reference.tiny import MESH, random_layout


# ---------------------------------------------------------------- 1
def test_mix_is_splitmix64():
    assert draws.mix(0) == 0
    assert draws.mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # its first output with seed 0


def test_draw_depends_on_every_name():
    assert draws.draw(0, 0, 0, 0) == 0
    values = {draws.draw(*x) for x in [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)]}
    assert len(values) == 5
    assert draws.draw(1 << 64, 1, 0, 0) == draws.draw(0, 1, 0, 0)


def test_exponential():
    assert draws.exponential(2**64 - 1) == 0  # x = 2^53
    assert draws.EXP_TABLE[0] == 693025  # ln 2 - ln(1 + 1/8192)
    assert draws.exponential(0) == 52 * 693147 + 693025
    assert draws.exponential(2**63 - 1) == 693025  # x = 2^52 = 0.5 * 2^53
    mean = sum(draws.exponential(draws.draw(0, 1, a, 0)) for a in range(20000)) / 20000
    assert abs(mean - 10**6) < 2 * 10**4


def test_normal():
    assert draws.normal(0) == -3668
    assert draws.normal(2**64 - 1) == 3668
    assert draws.normal(2**63) == 0
    assert draws.NORMAL_TABLE[3446] == 1000  # Phi(1) = 0.8413


def test_signed_division():
    assert draws.truncated(-7, 2) == -3
    assert draws.truncated(7, 2) == 3
    assert draws.ceiling(1, 10) == 1
    assert draws.ceiling(10, 10) == 1


# ---------------------------------------------------------------- 3
def test_start_state():
    o = oracle(threads=3, home=0)
    assert all(c >= 0 for c in o.cpu)
    assert o.stamp_ns == [0, 8_000_000, 8_000_000]  # thread_stagger
    assert o.next_scan_ms == [1000]  # several tasks
    assert oracle(threads=1).next_scan_ms == [0]
    assert o.vma_reset_ms == [5000]
    assert o.free == [2**20 - 16, 2**20]


def test_tasks_spread_over_nodes_and_cpus():
    o = oracle(processes=4, threads=1, params={"fork_spread": 0})
    assert sorted(o.cpu) == [0, 1, 2, 3]
    assert o.cpu == [0, 2, 1, 3]


def test_cores_before_threads():
    o = oracle(nodes=1, cpus=4, smt=2, threads=3)
    assert o.cpu == [0, 2, 1]


def test_first_touch_follows_the_task_and_spills_to_the_nearest():
    o = oracle(nodes=4, distance=MESH, threads=1, blocks=4, home=0, node_pages=[2, 0, 1, 9])
    assert o.node == [0, 0, 2, 3]
    assert o.free == [0, 0, 0, 8]
    o = oracle(threads=1)
    assert set(o.node) == {o.node_of(0)}


def test_a_layout_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="no node has room"):
        oracle(threads=1, blocks=4, node_pages=1)


# ---------------------------------------------------------------- 4.1, 4.2
def test_late_start_and_affinity_phases():
    affinity = np.ones((2, 2, 4), dtype=bool)
    affinity[1, :, 1:] = False
    o = oracle(task_start_ns=[0, 2_000_000], affinity_ns=[0, 3_000_000], affinity=affinity)
    assert o.cpu[1] == -1
    run(o, 2)
    assert o.cpu[1] == -1
    run(o, 1)
    assert o.cpu[1] >= 0
    run(o, 1)
    assert o.cpu == [0, 0]
    assert not o.events


def test_a_task_ends():
    o = oracle(threads=3, rate=0, task_end_ns=[3_000_000, 2**62, 2**62])
    run(o, 3)
    assert o.run_ns[0] == 3 * 10**6
    o.mem[0][1], o.cpuf[0][0], o.total[0] = [4, 5], [1, 2], 9
    o.mem[1][1], o.cpuf[1][1], o.total[1] = [1, 1], [3, 3], 2
    o.group = [2, 2, -1]
    o.gtasks[2], o.gtotal[2], o.gmem[2][1], o.gcpu[2] = 2, 11, [5, 6], [[1, 2], [3, 3]]
    o.debt_ns, o.wait_ns = [5_000_000] * 3, [70, 0, 0]
    o.moving, o.moving_ns, o.waits_for = [3, -1, -1], [9, 0, 0], [4, -1, 3]
    run(o, 1)
    assert o.cpu[0] == -1
    assert (o.run_ns[0], o.debt_ns[0], o.wait_ns[0], o.moving[0], o.waits_for[0]) == (3 * 10**6, 0, 0, -1, -1)
    assert o.waits_for[2] == -1  # its sleeper wakes
    assert (o.group, o.gtasks[2], o.gtotal[2]) == ([-1, 2, -1], 1, 2)
    assert (o.gmem[2][1], o.gcpu[2]) == ([1, 1], [[0, 0], [3, 3]])
    assert (o.mem[0][1], o.cpuf[0][0], o.total[0]) == ([4, 5], [1, 2], 9)
    run(o, 5)
    assert (o.cpu[0], o.run_ns[0]) == (-1, 3 * 10**6)  # it never starts again
    assert [t for queue in o.queue for t in queue if t == 0] == []


def test_the_last_of_a_group_ends():
    o = oracle(threads=2, rate=0, task_end_ns=[1_000_000, 2**62])
    groups.create(o, 0, 0)
    o.gmax[0] = 7
    run(o, 2)
    assert (o.group[0], o.gtasks[0], o.gcount[0], o.gmax[0], o.gactive[0]) == (-1, 0, 0, 0, [False, False])


def test_a_task_that_ends_drops_its_window():
    o = oracle(threads=2, rate=0, task_end_ns=[1_000_000, 2**62])
    run(o, 1)
    o.window = [scan.Window(o, 0), None]
    run(o, 1)
    assert o.window == [None, None]


def test_a_task_ends_after_its_visits():
    """A page each ms, all of it local and useful; only what is finished when a step begins counts."""
    o = oracle(nodes=1, threads=2, rate=1000, home=0, task_visits=[3, 0])
    run(o, 3)
    assert (o.cpu[0] >= 0, o.work) == (True, [3 * 10**9] * 2)
    o.debt_ns[0], o.spin_ns[0], o.window[0] = 70, 80, scan.Window(o, 0)
    run(o, 1)
    assert (o.cpu[0], o.run_ns[0], o.debt_ns[0], o.spin_ns[0], o.window[0]) == (-1, 3 * 10**6, 0, 0, None)
    run(o, 20)  # it never starts again; of the other nothing is asked
    assert (o.cpu[0], o.run_ns, o.work) == (-1, [3 * 10**6, 24 * 10**6], [3 * 10**9, 24 * 10**9])
    o = oracle(nodes=1, threads=1, rate=1001, home=0, task_visits=[3], task_end_ns=[2_000_000])
    assert run(o, 5).run_ns == [2 * 10**6]  # whichever comes first
    o = oracle(nodes=1, threads=1, rate=999, home=0, task_visits=[3])
    assert run(o, 9).run_ns == [4 * 10**6]  # 2.997 are not 3


def test_a_task_that_is_over_before_it_begins():
    o = oracle(threads=2, rate=0, task_start_ns=[0, 2_000_000], task_end_ns=[0, 2_000_000], home=0)
    run(o, 5)
    assert (o.cpu, o.run_ns) == ([-1, -1], [0, 0])


def test_whoever_comes_after_all_have_ended_is_scanned_anew():
    def after(ends, reset=True, starts=(0, 0, 5_000_000)):
        o = oracle("4.15", threads=3, rate=0, task_start_ns=list(starts), task_end_ns=[*ends, 2**62],
                   switches={"fork_resets_parent_scan": reset, "scan_delay_ms": 20})  # fmt: skip
        o.seq, o.next_scan_ms, o.offset = [3], [9999], [77]
        run(o, 5)
        assert (o.seq, o.next_scan_ms) == ([3], [9999])
        run(o, 1)
        assert o.cpu[2] >= 0
        assert o.offset == [77]
        return o.seq[0], o.next_scan_ms[0]

    assert after([3_000_000, 5_000_000]) == (0, 25)  # the last ends as the new one starts
    assert after([3_000_000, 5_000_001]) == (3, 9999)
    assert after([3_000_000, 4_000_000], reset=False) == (3, 9999)
    assert after([0, 0]) == (3, 9999)  # nobody has been there


def test_whoever_comes_after_the_visits_are_done_is_scanned_anew():
    for visits, seq in ((5, 0), (6, 3)):  # a page each ms
        o = oracle("4.15", nodes=1, threads=2, rate=1000, home=0, task_start_ns=[0, 5_000_000],
                   task_visits=[visits, 0], switches={"scan_delay_ms": 20})  # fmt: skip
        o.seq = [3]
        run(o, 6)
        assert (o.cpu[0] < 0, o.cpu[1] >= 0, o.seq) == (seq == 0, True, [seq])


def test_time_of_a_task():
    o = oracle(threads=1, rate=0)
    o.wait_ns[0], o.debt_ns[0] = 300_000, 900_000
    run(o, 1)
    assert (o.waited_ns[0], o.run_ns[0], o.sys_ns[0], o.debt_ns[0], o.useful[0]) == (
        300_000,
        700_000,
        700_000,
        200_000,
        0,
    )
    run(o, 1)
    assert (o.run_ns[0], o.sys_ns[0], o.debt_ns[0], o.useful[0]) == (1_700_000, 900_000, 0, 800_000)
    o.debt_ns[0] = -500
    run(o, 1)
    assert (o.sys_ns[0], o.debt_ns[0], o.useful[0]) == (900_000, 0, 1_000_500)


def test_a_task_spins_after_its_wait_and_before_its_debt():
    o = oracle(threads=1, rate=0)
    o.wait_ns[0], o.spin_ns[0], o.debt_ns[0] = 300_000, 900_000, 150_000
    run(o, 1)  # 300000 waited, 700000 spun
    assert (o.waited_ns, o.run_ns, o.sys_ns, o.useful) == ([300_000], [700_000], [700_000], [0])
    assert (o.wait_ns, o.spin_ns, o.debt_ns) == ([0], [200_000], [150_000])
    run(o, 1)  # 200000 spun, 150000 paid
    assert (o.run_ns, o.sys_ns, o.useful) == ([1_700_000], [1_050_000], [650_000])
    assert (o.spin_ns, o.debt_ns) == ([0], [0])


def test_cpus_of_a_guest_share_their_work():
    """Three CPUs and 0.6 of a fourth, that waits first, share one: power = 1000 // 3.6 = 277, of 1 ms 277000 ns."""
    o = oracle(nodes=1, cpus=5, threads=4, rate=0, params={"shared_cpus": 1000})
    o.debt_ns, o.wait_ns[3] = [100_000, 500_000, 0, -200], 400_000
    run(o, 1)
    # task 0 pays all its debt: 100000 of 277000 got, so 100000*1000000 // 277000 of its time
    # task 1 gets only 277000 of its debt paid, all its time; task 3 runs for 600000: 166200 got, credit of 200
    assert o.run_ns == [1_000_000, 1_000_000, 1_000_000, 600_000]
    assert o.useful == [177_000, 0, 277_000, 166_400]
    assert o.sys_ns == [361_010, 1_000_000, 0, 0]
    assert o.debt_ns == [0, 223_000, 0, 0]
    assert o.waited_ns == [0, 0, 0, 400_000]


def test_power_follows_the_busy_cpus():
    def useful(shared, wait=0, **layout):
        o = oracle(rate=0, nodes=1, params={"shared_cpus": shared}, **layout)
        o.wait_ns[-1] = wait
        return run(o, 1).useful

    assert useful(700, cpus=4, threads=1) == [700_000]  # idle CPUs take nothing
    assert useful(2500, cpus=2, threads=2) == [1_000_000, 1_000_000]  # a CPU has no more than one
    assert useful(1999, cpus=2, threads=2) == [999_000, 999_000]
    assert useful(1000, cpus=2, threads=2, wait=10**6) == [1_000_000, 0]  # nor does a task that waits
    assert useful(1000, cpus=2, threads=2, wait=10**9) == [1_000_000, 0]
    assert useful(1000, cpus=2, threads=2, wait=500_000) == [666_000, 333_000]  # for as long: 1000 // 1.5
    assert useful(1000, cpus=2, threads=2, wait=1) == [500_000, 499_999]
    assert sorted(useful(1000, cpus=1, threads=2)) == [0, 1_000_000]  # queued tasks are not running
    o = oracle(nodes=1, cpus=3, threads=3, rate=0, params={"shared_cpus": 2})  # 2 // 3: nothing gets done
    o.debt_ns = [70, -500, 0]
    run(o, 1)
    assert (o.useful, o.debt_ns, o.sys_ns) == ([0, 500, 0], [70, 0, 0], [0, 0, 0])
    assert o.run_ns == [10**6] * 3


def test_waits_of_all_are_skipped_in_a_guest():
    for shared, waited, run_ns, useful in (
        (0, [300_000, 5], [700_000, 999_995], [700_000, 999_995]),
        (900, [0, 0], [10**6, 10**6], [450_000, 450_000]),
    ):
        o = oracle(nodes=1, cpus=2, threads=2, rate=0, params={"shared_cpus": shared})
        o.wait_ns = [300_000, 5]
        run(o, 1)
        # the waits being skipped both are busy: power 900 // 2
        assert (o.waited_ns, o.run_ns, o.useful, o.wait_ns) == (waited, run_ns, useful, [0, 0])


def test_spins_in_a_guest():
    def guest(wait, spin, debt=(0, 0)):
        o = oracle(nodes=1, cpus=2, threads=2, rate=0, params={"shared_cpus": 900})
        o.wait_ns, o.spin_ns, o.debt_ns = list(wait), list(spin), list(debt)
        return run(o, 1)

    # task 0 spins 400000: power 900 // 1.6 = 562; its debt 50000 of 337200 got takes 50000*600000 // 337200 = 88967
    o = guest((0, 0), (400_000, 0), (50_000, 0))
    assert (o.useful, o.run_ns, o.sys_ns) == ([287_200, 562_000], [10**6, 10**6], [488_967, 0])
    o = guest((100_000, 0), (200_000, 0))  # 900 // 1.7 = 529
    assert (o.useful, o.run_ns, o.sys_ns) == ([370_300, 529_000], [900_000, 10**6], [200_000, 0])
    o = guest((300_000, 0), (10**6, 0))  # task 1 alone is busy
    assert (o.useful, o.spin_ns, o.waited_ns, o.sys_ns) == ([0, 900_000], [300_000, 0], [300_000, 0], [700_000, 0])
    for wait, spin in (((0, 300_000), (5 * 10**6, 0)), ((0, 0), (7, 7)), ((7, 7), (7, 0))):
        o = guest(wait, spin)  # all wait or spin: skipped, then both are busy
        assert (o.useful, o.wait_ns, o.spin_ns) == ([450_000] * 2, [0, 0], [0, 0])
        assert (o.run_ns, o.waited_ns, o.sys_ns) == ([10**6] * 2, [0, 0], [0, 0])


def test_scans_of_a_guest_take_longer():
    """16 pages of 100000 ns: 10 and 6 in two steps of 1 ms; with power 300 three in each of five, 1 ms, then one."""

    def stretched(shared):
        params = {"shared_cpus": shared, "fork_spread": 0, "tick_us": 1000, "pte_scan_ns": 0, "pte_update_ns": 100_000}
        o = oracle("4.15", threads=1, home=1, rate=0, params=params)
        assert o.cpu == [0]  # local pages of a single task are not marked
        assert o.sw.scan_overhead_stretch
        o.lay.access_until_ns = [0]
        o.period_ms[0] = o.next_scan_ms[0] = o.stamp_ns[0] = 1
        o.run_ns[0] = 10**6
        begun = first_step_with(o, lambda o: o.window[0] is not None)
        ended = first_step_with(o, lambda o: o.window[0] is None)
        assert o.sys_ns[0] == o.scan_ns[0]
        # the old period of 1 ms, two ticks, and 32 times what the scan took
        return ended - begun + 1, o.scan_ns[0], o.stamp_ns[0] - (1 + 10**6 + 2 * o.tick_ns)

    assert stretched(0) == stretched(1000) == (2, 1_600_000, 32 * 10**6)
    assert stretched(300) == (6, 5_333_333, 32 * 5 * 10**6)


def test_two_tasks_share_a_cpu_by_slices():
    o = run(oracle(nodes=1, cpus=1, threads=2, rate=0), 24)
    assert o.run_ns == [12_000_000, 12_000_000]


def test_only_the_lowest_nice_value_takes_turns():
    o = oracle(nodes=1, cpus=1, threads=4, rate=0, task_nice=[5, 0, -3, 0])
    o.lay.task_demand[2] = 0  # never awake
    run(o, 24)
    assert o.run_ns == [0, 12_000_000, 0, 12_000_000]
    assert o.queue == [[1, 3, 0]]
    o.lay.task_demand[2] = 1000
    run(o, 24)
    assert o.run_ns == [0, 12_000_000, 24_000_000, 12_000_000]
    assert o.queue == [[2, 1, 3, 0]]
    o.lay.task_demand[1:] = [0] * 3
    run(o, 3)
    assert (o.run_ns[0], o.queue) == (3_000_000, [[0]])


def test_tasks_decide_to_sleep_at_their_own_pace():
    """Steps of 1 ms: task 0 decides anew every 2, task 1 every 5."""
    o = oracle(nodes=1, cpus=2, threads=2, rate=0, demand=500, task_wake_ns=[2_000_000, 5_000_000])
    awake = [[], []]
    for _ in range(40):
        run(o, 1)
        for t in (0, 1):
            awake[t].append(any(t in queue for queue in o.queue))
    for t, every in enumerate((2, 5)):
        decided = [draws.draw(1, draws.WAKE, t, a) % 1000 < 500 for a in range(40 // every)]
        assert awake[t] == [x for x in decided for _ in range(every)]
        assert len(set(decided)) == 2


@pytest.mark.parametrize(
    ("step_us", "keep", "asleep", "awake"),
    [
        # all rounded: 0.5 ^ (1/32.768) = 0.97907; 1024*64164 / 65536, 1003*64164 / 65536; up from 0 by
        # 1024*1372 / 65536, then (21*64164 + 1024*1372) / 65536 = 2752372 / 65536
        (1000, 64164, [1003, 982], [21, 42]),
        # 0.5 ^ (4/32.768) = 0.918868; 1024*60219 / 65536, 941*60219 / 65536; 1024*5317 / 65536,
        # (83*60219 + 1024*5317) / 65536 = 10442785 / 65536
        (4000, 60219, [941, 865], [83, 159]),
        (32768, 32768, [512, 256], [512, 768]),
        (65536, 16384, [256, 64], [768, 960]),
    ],
)
def test_load_averages(step_us, keep, asleep, awake):
    o = oracle(nodes=1, cpus=3, threads=3, rate=0, params={"step_us": step_us})
    assert (o.load_keep, o.load_avg) == (keep, [1024] * 3)
    # never awake; awake in all these steps, after a long sleep; always awake
    o.lay.task_demand = [0, 999, 1000]
    o.load_avg[1] = 0
    assert all(draws.draw(1, draws.WAKE, 1, a) % 1000 < 999 for a in range(20))
    for down, up in zip(asleep, awake, strict=True):
        run(o, 1)
        assert o.load_avg == [down, up, 1024]


def test_load_averages_follow_the_weight():
    """Half of 29104, then half of that; of tasks that have not started too; asleep for a page is asleep."""
    o = oracle(
        nodes=1, cpus=4, threads=4, rate=0, params={"step_us": 32768},
        task_weight=[29104, 820, 29104, 335], task_start_ns=[0, 0, 10**12, 10**12], task_demand=[0, 999, 500, 1000],
    )  # fmt: skip
    o.moving[0], o.moving_ns[0], o.debt_ns[0], o.waits_for[1] = 3, 2**60, 2**60, 3
    run(o, 1)
    assert o.load_avg == [14552, 410, 14552, 335]
    run(o, 1)
    assert o.load_avg == [7276, 205, 7276, 335]
    assert o.cpu[2:] == [-1, -1]
    # what has not started is on no CPU; what waits for a page is no load, what sleeps is
    loads = [load.cpu_load(o, c) for c in range(4)]
    assert loads[o.cpu[0]] == sum(loads) == 7276
    assert (load.load(o, 0), load.nr(o, 0)) == (7276, 0)


def test_who_comes_upon_a_held_page_is_load_until_the_next_step():
    o = oracle(nodes=1, cpus=2, threads=2, home=0, rate=10**9, write=0)
    o.lay.access_until_ns[1] = 0
    o.moving[1], o.moving_ns[1], o.debt_ns[1] = 5, 1_500_000, 1_500_000
    run(o, 1)
    assert o.waits_for[0] == 5
    assert load.load(o, 0) == 2048
    run(o, 1)
    assert (o.waits_for[0], load.load(o, 0)) == (5, 1024)
    run(o, 1)  # the flight was over in the step before
    assert (o.waits_for[0], load.load(o, 0)) == (-1, 2048)


def test_changes_of_the_preferred_node_are_counted():
    o = oracle(threads=1)
    for n, count in ((1, 1), (1, 1), (0, 2), (1, 3)):
        o.prefer(0, n)
        assert (o.preferred, o.counters["preferred_changes"]) == ([n], count)


# ---------------------------------------------------------------- any run
FAST = {
    "scan_delay_ms": 30,
    "scan_period_min_ms": 40,
    "scan_period_max_ms": 400,
    "max_scan_window_mbps": 100,
    "scan_size_mb": 1,
}


@pytest.mark.parametrize("kernel", list(names()))
def test_invariants(kernel):
    for seed in range(3):
        params = {"isolate_fail": 50, "flush_wait_ns": 1_500_000}
        o = Oracle(random_layout(seed * 100 + len(kernel)), Kernel(kernel, **FAST), params, seed)
        ledger = Ledger(o)
        for step in range(600):
            o.step()
            ledger.check(o)
            if step % 10 == 0:
                check(o)
                check_weights(o)


def test_a_seed_is_a_run():
    def final(seed):
        o = run(Oracle(random_layout(5), Kernel("4.15", **FAST), {}, seed), 200)
        return o.state(), o.events

    assert final(3) == final(3)
    assert final(3)[0] != final(4)[0]


def test_state_is_a_copy():
    o = oracle()
    state = o.state()
    state["mem"][0][0][0] = 7
    assert o.mem[0][0][0] == 0
    with pytest.raises(KeyError):
        oracle(params={"no_such": 1})
