"""The oracle against values worked out by hand: scanning, faults, groups (sections 4.3, 4.4, 4.6 to 4.8)."""

from __future__ import annotations

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import FOLIO, HUGE
from tests.reference import faults, groups, scan
from tests.reference.helpers import (
    GB,
    a_fault,
    first_step_with,
    oracle,
    remote,
    run,
    window_of,
)
from tests.reference.oracle import Oracle
from tests.reference.tasks import counts_as_local
from tests.reference.tiny import tiny_layout


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
    assert (o.sys_ns[0], o.debt_ns[0]) == (16 * (5 + 60), 16 * 1200)  # looked at and marked; all faulted in the step


def test_cpuset_of_one_node_is_not_scanned():
    o = oracle(threads=1, process_single_node=[True], switches={"scan_delay_ms": 10})
    assert run(o, 300).counters["numa_pte_updates"] == 0


# ---------------------------------------------------------------- 4.4
def test_windows_split_a_vma_and_count_sequences():
    o = oracle(threads=2, blocks=1024, switches={"scan_size_mb": 2})  # 512 pages a window
    assert (window_of(o).looked_at, o.offset, o.seq) == (512, [1024], [0])
    # the budget ends exactly at the VMA's end: the sequence counts at the next window's beginning
    assert (window_of(o).looked_at, o.offset, o.seq) == (512, [1536], [0])
    assert o.pending == [1024]
    o.now_ms = 2000
    window = window_of(o)
    assert (o.seq, o.offset) == ([2], [0])  # all trapped already: no budget is used, the list ends
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
    assert (window.looked_at, window.updates) == (16, 16)
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


# ---------------------------------------------------------------- 4.6
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
    one, two = faults.handle(o, [(0, 3), (1, 19)], {})
    assert (one.migrated, two.local, two.migrated) == (True, True, False)
    assert two.last_cpu == 0
    assert not two.priv
    assert o.node[3] == 0


def test_a_second_finder_only_pays():
    o = remote()
    o.trapped[0], o.pending[0] = True, 1
    assert len(faults.handle(o, [(0, 0), (1, 0)], {})) == 1
    assert (o.debt_ns, o.pending, o.counters["numa_hint_faults"]) == ([0, 1200], [0], 1)


def test_lost_write_bit_costs_a_second_fault():
    o = oracle("4.0-rc4", threads=1, write=1000)
    window_of(o)
    assert not any(o.pte_write)
    (f,) = faults.handle(o, [(0, 0)], {})
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
        assert o.counters["numa_hint_faults"] >= faulting
        assert (o.counters["numa_hint_faults"] > 0) is (faulting > 0)
        assert o.counters["minor_faults"] >= 16
        assert (sum(map(sum, o.locality)) > 0) is (faulting > 0)


def test_shared_faults_between_active_nodes_count_as_local():
    o = remote("3.17")
    f = faults.Fault(0, 0, 0, 0, 0, 0, 1, 1, memory_node=1)
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


def test_the_last_processes_to_lose_a_page_wait_least():
    """g is 1000*9 // 16 = 562, 1000*4 // 16 = 250 and 1000 // 16 = 62 for the second to the fourth of four."""
    o = oracle(
        "4.15", processes=4, threads=1, shared_region=True, kind=HUGE, block_pages=512, home=1,
        switches={"refuse_shared_thp": False},
    )  # fmt: skip
    o.cpu[0] = 0
    o.lay.access_rate = [2000 * 8192] * 4
    f = a_fault(o)
    assert f.migrated
    faults.charge(o, [f], dict.fromkeys(range(4), 1))
    X = 309**2  # 1500 + 4*300 + 512*600 = 309900
    assert o.wait_ns == [0, X * 562 // 1000, X * 250 // 1000, X * 62 // 1000]


def test_flushes_interrupt_the_others():
    """ipi_ns 100: task 0 migrates 4 pages (c 4), task 1 a block as well; the other process maps them or not."""
    for shared in (True, False):
        o = oracle(
            "4.15", nodes=2, cpus=3, processes=2, threads=2, shared_region=shared, home=1, block_pages=4,
            params={"ipi_ns": 100, "hint_fault_ns": 0, "migrate_ns": 0, "unmap_ns": 0, "copy_page_ns": 0},
        )  # fmt: skip
        o.cpu, o.running = [0, 0, 1, 3], [0, 1, 2]  # task 3 does not run
        listed = [a_fault(o, t, q) for t, q in ((0, 0), (0, 2), (1, 5))]
        assert all(f.migrated for f in listed)
        for f in listed:
            f.wp_ns = 0
        faults.charge(o, listed, {})
        assert o.debt_ns == [400, 800, 1200 if shared else 0, 0]
        o.node[9] = 0
        local = a_fault(o, 0, 9)
        local.wp_ns = 0
        faults.charge(o, [local], {})
        assert o.debt_ns == [400, 800, 1200 if shared else 0, 0]  # who does not migrate does not flush


def test_an_interrupted_task_still_owes_when_flights_are_noted():
    o = remote(write=0, params={"ipi_ns": 7})
    o.cpu, o.running = [0, 1], [0, 1]
    o.debt_ns = [0, -3606]  # what its own migration takes: 3600, and 7 for the other's flush
    listed = [a_fault(o, 0, 2), a_fault(o, 1, 3)]
    faults.charge(o, listed, {})
    assert o.debt_ns == [3607, 1]
    assert o.moving == [2, 3]


def test_the_running_tasks_of_a_step_are_interrupted():
    """Of tasks 0 and 1 on one CPU only one, the balancer may move them later in the step."""
    o = oracle("4.15", nodes=2, cpus=2, threads=3, home=1, rate=0)
    o.cpu = [0, 0, 2]
    run(o, 1)
    assert o.running in ([0, 2], [1, 2])
