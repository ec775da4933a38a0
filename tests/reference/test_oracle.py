"""The oracle: draws, start, who runs; and what must hold in any run."""

from __future__ import annotations

import numpy as np
import pytest

from numalab.kernel import Kernel, names
from tests.reference import draws
from tests.reference.helpers import (
    oracle,
    run,
)
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
