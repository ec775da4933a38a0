"""The oracle against values worked out by hand, and what must hold in any run."""

from __future__ import annotations

import numpy as np
import pytest

from numalab.kernel import Kernel, names
from numalab.layout import FOLIO, HUGE, SEQUENTIAL
from tests.reference import balancer, draws, faults, groups, load, moves, placement, scan, topology, touch
from tests.reference.oracle import Oracle
from tests.reference.tiny import BACKPLANE, MESH, random_layout, tiny_layout

GB = 262144  # pages


def oracle(kernel="6.18", params=None, seed=1, switches=None, **layout):
    return Oracle(tiny_layout(**layout), Kernel(kernel, **(switches or {})), params or {}, seed)


def run(o, steps):
    for _ in range(steps):
        o.step()
    return o


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


def test_two_tasks_share_a_cpu_by_slices():
    o = run(oracle(nodes=1, cpus=1, threads=2, rate=0), 24)
    assert o.run_ns == [12_000_000, 12_000_000]


# ---------------------------------------------------------------- 4.3
def test_scan_periods_by_size():
    o = oracle(threads=1, blocks=512, block_pages=512, kind=HUGE)  # 1 GB
    assert (scan.windows(o, 0), scan.min_period(o, 0), scan.max_period(o, 0)) == (4, 250, 15000)
    o.rss[0] = 16 * GB
    assert (scan.min_period(o, 0), scan.max_period(o, 0)) == (100, 937)
    o.rss[0] = 0
    assert (scan.windows(o, 0), scan.min_period(o, 0)) == (1, 1000)
    o = oracle(switches={"scan_size_mb": 2560})
    assert scan.min_period(o, 0) == 1000


def test_group_scales_the_period():
    o = oracle(threads=4)
    for t in range(4):
        o.group[t] = 0
    o.gtasks[0] = 4
    o.gmem[0][0] = [3, 4]
    assert scan.start_period(o, 0) == 1000 * 4 * 4 // 8
    assert scan.max_period(o, 0) == 60000 * 4 * 4 // 8
    o.gmem[0][0] = [0, 99]
    assert (scan.start_period(o, 0), scan.max_period(o, 0)) == (1000, 60000)


def first_step_with(o, what, limit=5000):
    for _ in range(limit):
        o.step()
        if what(o):
            return o.i
    raise AssertionError("never")


def test_first_scan_of_a_single_task():
    """Stamp passed after 1 s of run time; next_scan is then set; the next attempt after another second scans."""
    o = oracle("3.17", threads=1, switches={"fork_resets_parent_scan": False})
    step = first_step_with(o, lambda o: o.stamp_ns[0] > 0)
    assert 1001 <= step <= 1004
    assert o.next_scan_ms[0] == step + 1000
    assert o.stamp_ns[0] == 10**9
    step = first_step_with(o, lambda o: o.counters["numa_pte_updates"])
    assert 2001 <= step <= 2008
    assert o.counters["numa_pte_updates"] == 16
    assert o.seq == [1]
    assert o.stamp_ns[0] == 2 * 10**9 + 8_000_000
    assert o.debt_ns[0] == 16 * (5 + 60 + 1200)  # looked at, marked, and all faulted within the step


def test_cpuset_of_one_node_is_not_scanned():
    o = oracle(threads=1, process_single_node=[True], switches={"scan_delay_ms": 10})
    assert run(o, 300).counters["numa_pte_updates"] == 0


# ---------------------------------------------------------------- 4.4
def window_of(o, t=0):
    window = scan.Window(o, t)
    window.walk()
    return window


def test_windows_split_a_vma_and_count_sequences():
    o = oracle(threads=2, blocks=1024, switches={"scan_size_mb": 2})  # 512 pages a window
    assert (window_of(o).looked_at, o.offset, o.seq) == (512, [1024], [0])
    # the budget ends exactly at the VMA's end: the sequence counts at the next window's beginning
    assert (window_of(o).looked_at, o.offset, o.seq) == (512, [1536], [0])
    assert o.pending == [1024]
    o.pids0 = [2**64 - 1]
    window = window_of(o)
    assert (o.seq, o.offset) == ([1], [1536])  # all trapped already: only the virtual budget is used
    assert (window.looked_at, window.updates) == (1024, 0)


def test_cumulative_budget_charges_everything_after_the_first_change():
    def layout(kernel):
        o = oracle(kernel, threads=2, blocks=2048, switches={"scan_size_mb": 2, "virtual_scan_budget": False})
        for q in range(512, 1536):
            o.trapped[q] = True
        return window_of(o).looked_at

    assert layout("4.1") == 512
    o = oracle("4.15", threads=2, blocks=2048, switches={"scan_size_mb": 4})  # 1024 pages
    for q in range(512):
        o.trapped[q] = o.trapped[q + 1024] = True
    assert window_of(o).looked_at == 1024  # the chunk changed something


def test_unsuitable_vmas():
    for change in ({"vma_mof": [False]}, {"vma_migratable": [False]}, {"vma_read": [False], "vma_write": [False]}):
        assert window_of(oracle(threads=1, **change)).looked_at == 0
    assert window_of(oracle(threads=1, vma_scannable=[False])).looked_at == 0
    assert window_of(oracle("3.16", threads=1, vma_scannable=[False])).looked_at == 16
    assert window_of(oracle(threads=1, region_file=[True], vma_write=[False])).looked_at == 0


def test_shared_cow_rules():
    def marked(kernel, **change):
        switches = change.pop("switches", {})
        layout = tiny_layout(processes=2, threads=2, shared_region=True, vma_shared=[False] * 2, vma_cow=[True] * 2)
        fields = {name: getattr(layout, name) for name in layout.__dataclass_fields__} | change
        fields = {name: np.asarray(value) if name != "smt" else value for name, value in fields.items()}
        return window_of(Oracle(type(layout)(**fields), Kernel(kernel, **switches), {}, 1))

    assert marked("4.15").updates == 16
    for kernel in ("4.19", "6.1", "6.14", "6.18"):
        assert (marked(kernel).updates, marked(kernel).looked_at) == (0, 16)
    assert marked("6.18", vma_cow=[False] * 2).updates == 16
    assert marked("4.19", switches={"cow_max_mappers": 5}).updates == 16
    assert marked("4.15", switches={"cow_max_mappers": 1}).updates == 0
    rest = marked("4.19", switches={"cow_skip_rest_of_vma": True})
    assert (rest.looked_at, rest.updates) == (1, 0)


def test_local_pages_of_a_single_task_are_not_marked():
    here = oracle("6.1", threads=1).node_of(0)
    assert window_of(oracle("6.1", threads=1, home=here)).updates == 0
    assert window_of(oracle("6.1", threads=1, home=1 - here)).updates == 16
    assert window_of(oracle("6.1", threads=1, home=here, kind=HUGE, block_pages=512)).updates == 16
    assert window_of(oracle("6.1", threads=2, home=here)).updates == 16


def test_huge_pages_count_512_and_1():
    o = oracle(threads=1, kind=HUGE, block_pages=512)
    window = window_of(o)
    assert (window.looked_at, window.updates) == (16 * 512, 16)
    assert (o.counters["numa_pte_updates"], o.counters["numa_huge_pte_updates"]) == (16 * 512, 16)


def test_pid_filter():
    o = oracle("6.5", threads=2)
    o.seq, o.now_ms = [2], 2000
    assert window_of(o).looked_at == 0  # nobody claims it
    assert o.seq == [3]
    o.pids1[0] = scan.pid_bit(o, 0)
    assert window_of(o).looked_at == 16
    o = oracle("6.18", threads=2)
    o.seq, o.now_ms, o.prev_seq = [2], 2000, [1]
    window = window_of(o)  # forced: one VMA, then it ends there
    assert (window.looked_at, window.forced, o.offset, o.prev_seq, o.seq) == (16, True, [528], [2], [2])
    o.now_ms = 500
    assert window_of(o).looked_at == 0  # too new
    o.now_ms, o.pids1 = 5001, [7]
    window_of(o)
    assert (o.pids0, o.pids1, o.vma_reset_ms) == ([7], [0], [9000])


# ---------------------------------------------------------------- 4.5
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
    assert o.work[0] == 1_500_000 * 10**6


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


def test_random_touch_by_threshold():
    o = oracle(threads=1, home=0, nodes=1)
    o.useful[0] = 10**6
    o.trapped[3] = o.trapped[5] = True
    o.pending[0], o.threshold[3], o.threshold[5] = 2, 10**8, 10**8 + 1
    assert touch.touch(o, {0: 100_000}) == [(0, 3)]
    assert o.intensity[0] == 10**8
    assert touch.touch(o, {0: 1}) == [(0, 3), (0, 5)]


# ---------------------------------------------------------------- 4.6
def a_fault(o, t=0, q=0, last=None):
    o.trapped[q] = True
    o.pending[0] += 1
    if last is not None:
        o.last_cpu[q], o.last_pid[q] = last
    (f,) = faults.handle(o, [(t, q)])
    return f


def remote(kernel="4.15", **rest):
    """Four nodes, task 0 on CPU 0; memory on node 1."""
    o = oracle(kernel, nodes=4, cpus=2, threads=2, home=1, **rest)
    o.cpu = [0, 2]
    return o


def test_filter_first_touch_and_two_stages():
    assert a_fault(remote()).migrated  # unset, no group
    o = remote()
    assert a_fault(o, last=(0, o.pid8[0])).migrated
    o = remote()
    f = a_fault(o, last=(2, o.pid8[1]))  # last user on another node
    assert not f.migrated
    assert not f.priv
    assert (o.last_cpu[0], o.last_pid[0]) == (0, o.pid8[0])
    o = remote()
    assert a_fault(o, last=(1, o.pid8[1])).migrated  # same node, no group


def test_filter_of_groups():
    o = remote()
    o.group[0] = 0
    o.gcpu[0], o.gmem[0] = [[4, 0], [1, 0], [0, 0], [0, 0]], [[0, 0], [9, 0], [0, 0], [0, 0]]
    assert a_fault(o, last=(1, 0)).migrated  # 4 > 3*1
    o = remote()
    o.group[0] = 0
    o.gcpu[0], o.gmem[0] = [[2, 0], [1, 0], [0, 0], [0, 0]], [[3, 0], [2, 0], [0, 0], [0, 0]]
    assert not a_fault(o, last=(1, 0)).migrated  # 2*2*3 = 12 = 1*3*4
    o = remote("3.17")
    o.group[0] = 0
    o.gactive[0], o.gmem[0] = [True, True, False, False], [[3, 0], [4, 0], [0, 0], [0, 0]]
    assert not a_fault(o, last=(1, 0)).migrated  # 3 < 3 is no
    o.gmem[0][1] = [6, 0]
    assert a_fault(o, q=1, last=(1, 0)).migrated  # 3 < 4
    o.gactive[0], o.gmem[0][1] = [True, False, False, False], [0, 0]
    assert a_fault(o, q=2, last=(1, 0)).migrated
    o.gactive[0] = [False, True, False, False]
    assert not a_fault(o, q=3, last=(1, 0)).migrated


def test_filter_early_private():
    o = remote("6.1")
    assert a_fault(o, last=(2, o.pid8[0])).migrated  # mine though last used elsewhere
    o.preferred[0], o.seq_seen[0] = 0, 5
    assert not a_fault(o, q=1, last=(2, o.pid8[0])).migrated


def test_local_faults_and_the_last_user():
    for kernel, user in (("5.7", 0), ("6.1", -1)):
        o = oracle(kernel, threads=1, home=0)
        o.cpu = [0]
        f = a_fault(o)
        assert f.local
        assert o.last_cpu[0] == user
        assert o.counters["numa_hint_faults_local"] == 1


def test_deferred_migrations_of_3_14():
    o = remote("3.14")
    a_fault(o, last=(2, 0))
    assert o.deferred[0] == 16
    assert not a_fault(o, q=1, last=(1, 0)).migrated
    assert o.deferred[0] == 15
    assert a_fault(o, q=2, last=(1, o.pid8[0])).migrated
    assert o.deferred[0] == 15


def test_rate_limit():
    o = remote(switches={"migrate_ratelimit_pages": 1})
    o.now_ms = 50
    assert [a_fault(o, q=q).migrated for q in range(4)] == [True, True, False, False]
    assert (o.rate_end_ms[0], o.rate_count[0]) == (150, 2)
    o.now_ms = 150
    assert a_fault(o, q=4).failed
    o.now_ms = 151
    assert a_fault(o, q=5).migrated


def test_watermark_and_other_refusals():
    o = remote(node_watermark=[2**20 - 1, 0, 0, 0])
    assert a_fault(o).migrated  # one page above it
    f = a_fault(o, q=1)
    assert f.failed
    assert f.memory_node == 1
    assert o.counters["migrate_refused"] == 1
    assert o.free[0] == 2**20 - 1
    assert a_fault(remote("6.1", region_file=[True], region_dirty=[True])).failed
    assert a_fault(remote(params={"isolate_fail": 1000})).failed
    assert not a_fault(remote("6.18", node_pages=[0] + [1 << 20] * 3)).failed  # not even tried


def test_a_page_of_two_processes_is_faulted_in_rounds():
    o = oracle("4.15", processes=2, threads=1, shared_region=True, home=1, cpus=2)
    o.cpu = [0, 0]
    o.trapped[3] = o.trapped[16 + 3] = True
    o.pending = [1, 1]
    one, two = faults.handle(o, [(0, 3), (1, 19)])
    assert (one.migrated, two.local, two.migrated) == (True, True, False)
    assert two.last_cpu == 0
    assert not two.priv
    assert o.node[3] == 0


def test_a_second_finder_only_pays():
    o = remote()
    o.trapped[0], o.pending[0] = True, 1
    assert len(faults.handle(o, [(0, 0), (1, 0)])) == 1
    assert (o.debt_ns, o.pending, o.counters["numa_hint_faults"]) == ([0, 1200], [0], 1)


def test_lost_write_bit_costs_a_second_fault():
    o = oracle("4.0-rc4", threads=1, write=1000)
    window_of(o)
    assert not any(o.pte_write)
    (f,) = faults.handle(o, [(0, 0)])
    assert f.wp_ns == 700
    assert o.pte_write[0]
    assert o.counters["minor_faults"] == 2
    assert o.last_cpu[0] == -1  # forgotten
    o = oracle("4.0-rc4", threads=1, write=1000, vma_pte_write=[False], switches={"wp_fault_resets_cpupid": False})
    a_fault(o)
    assert o.last_cpu[0] == o.cpu[0]


def test_no_group_rules():
    for rule, expected in (("pte_write", False), ("always_private", True), ("pte_dirty", False), ("vma_write", False)):
        assert a_fault(remote(switches={"no_group_rule": rule})).no_group is expected
    assert a_fault(remote(vma_pte_write=[False], write=0)).no_group


# ---------------------------------------------------------------- 4.7
def test_threads_join_by_size_and_address():
    o = oracle("4.15", threads=3)
    o.cpu, o.cur = [0, 1, 2], [0, 1, 2, -1]
    o.mem[0][0], o.total[0] = [5, 3], 8
    assert groups.join(o, 0, 0, 1, o.pid8[1], False) is False  # creates its own, the other has none
    assert (o.group, o.gtasks[0], o.gtotal[0], o.gactive[0]) == ([0, -1, -1], 1, 8, [True, False])
    groups.join(o, 2, 1, 3, 0, False)  # nobody runs there
    o.group_address[:3] = [10, 0, 20]
    groups.join(o, 2, 1, 0, o.pid8[0], False)  # tie, mine is higher: stay
    assert o.group == [0, -1, 2]
    groups.join(o, 0, 0, 2, o.pid8[2], False)
    assert o.group == [2, -1, 2]
    assert (o.gtasks, o.gtotal[2], o.gmem[2][0], o.gmem[0][0]) == ([0, 0, 2], 8, [5, 3], [0, 0])
    assert o.gactive[0] == [False, False]
    groups.join(o, 1, 0, 0, o.pid8[0], False)
    assert o.gtasks[2] == 3


def test_other_processes_join_only_through_shared_memory():
    for shared in (False, True):
        o = oracle("4.15", processes=2, threads=1)
        o.cpu, o.cur, o.group_address = [0, 1], [0, 1, -1, -1], [1, 2]
        groups.create(o, 1, 0)
        assert groups.join(o, 0, 0, 1, o.pid8[1], shared) is not shared
        assert o.group[0] == (1 if shared else 0)


def test_large_folios_were_not_accounted():
    for kernel, faulting in (("6.12", 0), ("6.14", 16)):
        o = oracle(kernel, threads=2, kind=FOLIO, block_pages=16, switches={"scan_delay_ms": 20}, rate=10**6)
        run(o, 100)
        assert o.counters["numa_hint_faults"] >= 16
        assert (sum(map(sum, o.locality)) > 0) is (faulting > 0)


def test_shared_faults_between_active_nodes_count_as_local():
    o = remote("3.17")
    f = faults.Fault(0, 0, 0, 0, 0, 0, 1, 1, True, memory_node=1)
    from tests.reference.tasks import counts_as_local

    assert not counts_as_local(o, f, 0)
    groups.create(o, 0, 0)
    assert not counts_as_local(o, f, 0)
    o.gactive[0][1] = True
    assert counts_as_local(o, f, 0)
    f.priv = True
    assert not counts_as_local(o, f, 0)


# ---------------------------------------------------------------- 4.8
def test_costs_and_waiting():
    o = remote(kind=HUGE, block_pages=512)
    o.lay.access_rate = [2000 * 8192, 2000 * 8192]
    f = a_fault(o)
    faults.charge(o, [f], {0: 1, 1: 1})
    cost = 1500 + 300 + 512 * 600
    assert o.debt_ns == [1200 + f.wp_ns + cost, 0]
    assert o.wait_ns == [0, (cost // 1000) ** 2]


# ---------------------------------------------------------------- 5
def test_decay_halves():
    o = oracle(threads=1)
    o.mem[0][0], o.total[0] = [9, 0], 9
    o.membuf[0][1] = [0, 4]
    o.cpubuf[0][0] = [0, 4]
    o.locality[0] = [1, 3, 0]
    o.t1, o.run_ns[0] = 1999, 1000
    assert placement.decay(o, 0) == [0, 4]
    assert o.mem[0] == [[5, 0], [0, 4]]  # 9 - 9//2
    assert o.total[0] == 9
    assert o.cpuf[0] == [[0, 32768 * 4 // 5], [0, 0]]  # half a CPU
    for _ in range(9):
        placement.decay(o, 0)
    assert o.mem[0] == [[1, 0], [0, 1]]  # never back to 0


def test_active_nodes():
    o = oracle("3.17", nodes=4)
    o.gactive[0] = [True, True, False, False]
    o.gcpu[0] = [[16, 0], [3, 0], [6, 0], [7, 0]]
    placement.update_active(o, 0)
    assert (o.gactive[0], o.gcount[0]) == ([True, True, False, True], 3)
    o = oracle("4.15", nodes=4)
    o.gcpu[0] = [[16, 0], [3, 0], [6, 0], [5, 0]]
    placement.update_active(o, 0)
    assert (o.gmax[0], o.gcount[0]) == (16, 2)


def test_preferred_choice():
    o = oracle("3.16", threads=2)
    o.mem[0], o.total[0] = [[3, 0], [3, 0]], 6
    assert placement.preferred_choice(o, 0) == 0  # the lowest on ties
    o.group[0] = 1
    o.gmem[1], o.gtotal[1] = [[1, 0], [9, 0]], 10
    assert placement.preferred_choice(o, 0) == 1  # 500+100 < 500+900
    o.mem[0] = [[6, 0], [0, 0]]
    assert placement.preferred_choice(o, 0) == 0  # 1000+100 > 900
    o.sw.preferred_rule = "group_max"
    assert placement.preferred_choice(o, 0) == 1
    o.gmem[1] = [[0, 0], [0, 0]]
    assert placement.preferred_choice(o, 0) == -1


# ---------------------------------------------------------------- 6
def adapted(kernel, locality, types, period=1000, **switches):
    o = oracle(kernel, threads=1, switches=switches)
    o.rss[0] = 16 * GB  # 100 to 937
    o.sw.scan_period_max_ms = 600_000
    o.period_ms[0], o.locality[0], o.now_ms = period, list(locality), 7
    placement.adapt_period(o, 0, list(types))
    return o.period_ms[0], o.locality[0], o.next_scan_ms[0]


def test_scan_period_extremes():
    assert adapted("3.17", [0, 9, 0], [0, 9]) == (1300, [0, 0, 0], 0)
    assert adapted("3.17", [9, 0, 0], [1, 99])[0] == 300
    assert adapted("3.16", [9, 0, 0], [1, 99])[0] == 700
    assert adapted("3.16", [7, 3, 0], [0, 9])[0] == 1100  # lr = T: one slot
    assert adapted("3.17", [9, 0, 0], [9, 0])[0] == 1000  # nothing private
    assert adapted("3.17", [9, 0, 0], [2, 1])[0] == 1000 - 700 * 4 // 10
    assert adapted("3.19", [19, 1, 0], [0, 9])[0] == 1000 - 700 * 9 // 10  # ceil(90/10) = 9
    assert adapted("4.15", [9, 0, 0], [0, 9])[0] == 1300
    assert adapted("4.15", [9, 0, 0], [9, 0])[0] == 300
    assert adapted("4.15", [5, 5, 0], [6, 4])[0] == 800


def test_scan_period_doubles():
    assert adapted("3.17", [9, 0, 0], [1, 99], period=100)[0] == 100  # clamped
    assert adapted("3.17", [9, 0, 0], [0, 9])[0] == 2000  # nothing local, nothing shared: private and remote slows too
    assert adapted("4.0", [1, 1, 1], [0, 2]) == (2000, [1, 1, 1], 2007)
    assert adapted("3.17", [1, 0, 0], [1, 99], period=1005)[0] == 1005 - 707
    assert adapted("4.15", [2, 0, 0], [0, 0]) == (2000, [2, 0, 0], 2007)


# ---------------------------------------------------------------- 7
def two_nodes(kernel="4.15", cpus=2, threads=4, **rest):
    """Tasks 0 and 1 on node 0, 2 and 3 on node 1, all runnable and alone."""
    o = oracle(kernel, cpus=cpus, threads=threads, **rest)
    place(o, [0, 1, 2, 3][:threads])
    return o


def place(o, cpus):
    o.cpu = list(cpus)
    o.queue = [[t for t in range(o.T) if o.cpu[t] == c] for c in range(o.C)]
    o.cur = [q[0] if q else -1 for q in o.queue]


def prefer(o, t, n, faults_=100):
    o.preferred[t], o.mem[t][n], o.total[t] = n, [0, faults_], faults_


def test_attempt_entry():
    o = two_nodes()
    moves.attempt(o, 0)
    assert o.retry_ms[0] == 0
    prefer(o, 0, 0)
    moves.attempt(o, 0)
    assert (o.retry_ms[0], o.events) == (1000 // 16, [])
    o = oracle(nodes=2, cpu_node=[0, 0, 0, 0])
    prefer(o, 0, 1)
    moves.attempt(o, 0)
    assert (o.preferred[0], o.events) == (0, [])


@pytest.mark.parametrize("kernel", ["3.16-tip", "3.17", "4.0", "4.15", "4.19", "5.7", "6.18"])
def test_a_swap_that_suits_both(kernel):
    o = two_nodes(kernel)
    prefer(o, 0, 1)
    prefer(o, 3, 0)
    moves.attempt(o, 0)
    assert o.cpu == [3, 1, 2, 0]
    gain = {"5.7": 2250, "6.18": 2250}.get(kernel, 2000)  # home_bias: an eighth more
    assert o.events == [(0, moves.SWAP, 0, 0, 3, 3, gain)]
    assert o.queue == [[3], [1], [2], [0]]
    assert o.cur == [3, 1, 2, 0]


def test_marginal_swaps():
    """A gain of zero is taken until 3.16, one below 3 % until 4.18."""
    for kernel, imp, swapped in (("3.16-tip", 0, True), ("3.17", 0, False), ("4.15", 20, True), ("4.19", 20, False)):
        o = two_nodes(kernel)
        o.preferred[0], o.mem[0], o.total[0] = 1, [[500 - imp, 0], [500, 0]], 1000 - imp
        moves.attempt(o, 0)
        assert (o.cpu[0] != 0) is swapped, kernel
    o = two_nodes("3.17", switches={"numa_move_threshold": 50})
    for t in range(4):
        o.group[t] = 0
    o.preferred[0], o.mem[0], o.total[0] = 1, [[0, 0], [49, 0]], 1000
    o.gtasks[0] = 4
    moves.attempt(o, 0)
    assert o.events[-1][1] == moves.FAILED


def test_move_to_an_idle_cpu():
    o = two_nodes("4.15", cpus=4, threads=3)
    place(o, [0, 1, 7])
    prefer(o, 0, 1)
    moves.attempt(o, 0)
    assert o.events == [(0, moves.MOVE, 0, 0, 4, -1, 1000)]
    assert o.cur[0] == -1
    assert o.cur[4] == 0
    assert o.period_ms[0] == 1000


def test_idle_cpu_of_a_node_with_spare_is_taken_at_once():
    o = two_nodes("6.18", cpus=4, threads=4, smt=2)
    place(o, [0, 2, 4, 1])
    o.preferred[0], o.mem[0], o.total[0] = 1, [[100, 0], [0, 0]], 100  # a loss even
    moves.attempt(o, 0)
    assert o.events == [(0, moves.MOVE, 0, 0, 6, -1, 0)]  # an idle core; 2 there against 2 here


def test_fail_and_stay_put():
    def failed(kernel, active):
        o = two_nodes(kernel, switches={"strict_improvement": True})
        o.group[0], o.gtasks[0], o.gcount[0] = 0, 1, 2
        o.gactive[0] = [active, True]
        o.gcpu[0], o.gmax[0] = [[9 if active else 0, 0], [9, 0]], 9
        o.preferred[0], o.mem[0], o.total[0] = 1, [[100, 0], [0, 0]], 100
        o.gmem[0], o.gtotal[0] = [[100, 0], [0, 0]], 100
        moves.attempt(o, 0)
        assert o.events[-1] == (0, moves.FAILED, 0, 0, -1, -1, 0)
        return o.preferred[0]

    assert [failed("3.17", active) for active in (True, False)] == [0, 1]
    assert [failed("4.19", active) for active in (True, False)] == [0, 0]


def test_load_rules():
    def verdict(rule, src, dst, moved=1024, **switches):
        o = oracle("4.15", cpus=4, threads=src + dst, switches={"imbalance_rule": rule, **switches})
        place(o, [0] * src + [4] * dst)
        search = moves.Search(o, 0)
        search.n = 1
        return search.too_imbalanced(moved)

    assert not verdict("threshold", 3, 1)
    assert not verdict("threshold", 3, 2)  # 2 against 3: as bad as before
    assert verdict("threshold", 2, 2)
    assert not verdict("balance_point", 3, 1)
    assert verdict("balance_point", 3, 2)
    assert not verdict("improve", 3, 2)
    assert verdict("improve", 2, 2)
    # divided by capacity first: loads 768 and 256, then a whole 1024 is moved
    assert verdict("threshold", 3, 1, capacity_after=False)


def test_node_numbers():
    o = oracle("4.15", cpus=4, smt=2, threads=3)
    place(o, [0, 1, 2])
    assert load.capacity(o, 0) == 4 * 589
    assert load.task_capacity(o, 0) == 2
    assert not load.free(o, 0)
    assert load.free(o, 1)
    o = oracle("3.16", cpus=8, smt=2, threads=3)
    assert load.task_capacity(o, 0) == (8 * 589 + 512) // 1024
    o = oracle("6.18", cpus=16)
    assert (load.capacity(o, 0), load.imbnr(o, 0)) == (16384, 2)
    o.lay.node_llcs = [4, 1]
    assert load.imbnr(o, 0) == 4


def test_period_after_a_move_by_the_scheduler():
    from tests.reference.scheduling import reset_period

    o = two_nodes("6.18")
    prefer(o, 0, 0)
    for seq, a, b, expected in ((0, 0, 1, 1000), (3, 0, 1, 1000), (3, 1, 0, 77), (3, 0, 0, 77)):
        o.period_ms[0], o.seq_seen[0] = 77, seq
        reset_period(o, 0, a, b)
        assert o.period_ms[0] == expected


# ---------------------------------------------------------------- 8
def test_balancer_pulls_and_evens_out():
    o = oracle("4.15", threads=6, params={"balancer_sigma": 0})
    place(o, [0, 0, 0, 0, 1, 1])
    o.balance_ns = [10**12, 0]
    balancer.balance(o)
    (event,) = o.events
    assert event[:2] == (0, balancer.KIND)
    assert event[2] in (1, 2, 3)
    assert event[3:] == (0, 2, -1, 0)
    assert o.balance_ns[1] == 4 * 10**6
    # now 3, 2, 1, 0: no two CPUs of a node differ by 2
    assert [len(q) for q in o.queue] == [3, 2, 1, 0]
    place(o, [0, 0, 0, 1, 2, 3])
    balancer.even_out(o, 0)
    assert [len(q) for q in o.queue] == [2, 2, 1, 1]
    assert o.cpu[0] == 0


def test_balancer_and_locality():
    o = oracle("4.15", threads=4)
    place(o, [0, 0, 0, 0])
    prefer(o, 1, 0)
    assert balancer.hot(o, 1, 0, 0, 1, True)  # others may go
    for t in range(4):
        prefer(o, t, 0)
    assert not balancer.hot(o, 1, 0, 0, 1, True)
    o.preferred[1] = 1
    assert not balancer.hot(o, 1, 0, 0, 1, False)
    o.preferred[1] = 5
    assert not balancer.hot(o, 1, 0, 0, 1, True)
    assert balancer.hot(o, 1, 0, 0, 1, False)
    o.sw.can_migrate_rule = "favour_higher"
    assert not balancer.hot(o, 1, 0, 0, 1, False)


# ---------------------------------------------------------------- 9
def test_topologies():
    def kind(kernel, distance):
        return oracle(kernel, nodes=len(distance), distance=distance).topology

    assert [kind("6.18", d) for d in (MESH, BACKPLANE)] == ["MESH", "BACKPLANE"]
    assert kind("3.17", MESH) == "DIRECT"
    assert kind("4.1", [[10, 21], [21, 10]]) == "BACKPLANE"
    assert kind("4.15", [[10, 21], [21, 10]]) == "DIRECT"
    assert kind("4.1", [[10]]) == "DIRECT"


def test_faults_nearby():
    o = oracle("4.15", nodes=4, distance=MESH)
    mem = [[0, 8], [4, 0], [2, 0], [16, 0]]
    assert topology.near(o, mem, 0, 0) == 4 * 6 // 12 + 2 * 6 // 12
    o = oracle("4.15", nodes=4, distance=BACKPLANE)
    assert topology.near(o, mem, 0, 16) == 4
    assert topology.near(o, mem, 0, 10) == 0
    o = oracle("4.19", nodes=4, distance=BACKPLANE)
    assert topology.near(o, mem, 0, 16) == 0
    assert topology.near(o, mem, 0, 22) == 4
    assert topology.best_cluster(o, [[9, 0], [0, 0], [4, 0], [6, 0]]) == 3
    assert topology.best_cluster(o, [[9, 0], [1, 0], [4, 0], [5, 0]]) == 0
    assert topology.best_cluster(o, [[0, 0]] * 4) == -1


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
        o = Oracle(random_layout(seed * 100 + len(kernel)), Kernel(kernel, **FAST), {"isolate_fail": 50}, seed)
        for _ in range(12):
            check(run(o, 50))


def check(o):
    lay = o.lay
    assert min(o.free) >= 0
    for n in range(o.N):
        here = sum(o.block_pages[b] for b in range(len(o.node)) if o.node[b] == n)
        assert o.free[n] + here == lay.node_pages[n] - lay.node_reserved[n]
        assert here == sum(o.on_node[g][n] for g in range(o.G))
    for v in range(o.V):
        end = lay.vma_pte[v] + lay.region_blocks[lay.vma_region[v]]
        assert o.pending[v] == sum(o.trapped[lay.vma_pte[v] : end])
        assert o.pending[v] or not o.intensity[v]
    assert all(o.trapped[q] or o.threshold[q] == 0 for q in range(len(o.trapped)))
    for t in range(o.T):
        assert o.total[t] == sum(map(sum, o.mem[t]))
        assert all(x >= 0 for row in o.mem[t] + o.cpuf[t] for x in row)
        assert o.cpu[t] < 0 or o.allowed(t, o.cpu[t])
        assert 0 <= o.run_ns[t] + o.waited_ns[t] <= o.i * o.dt
    for g in range(o.T):
        members = [t for t in range(o.T) if o.group[t] == g]
        assert o.gtasks[g] == len(members)
        assert o.gtotal[g] == sum(o.total[t] for t in members)
        for n in range(o.N):
            for p in (0, 1):
                assert o.gmem[g][n][p] == sum(o.mem[t][n][p] for t in members)
                assert o.gcpu[g][n][p] == sum(o.cpuf[t][n][p] for t in members)
    counted = o.counters
    assert counted["numa_pages_migrated"] == counted["pgmigrate_success"]
    assert counted["numa_hint_faults_local"] <= counted["numa_hint_faults"] <= counted["minor_faults"]


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
