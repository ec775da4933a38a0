"""Every named workload runs in the model, on old and new kernels."""

from __future__ import annotations

import pytest

from numalab.machine import machine
from numalab.simulation import simulate
from numalab.workloads import NAMED, workload

#: Machine, parameters, and the seconds after which something must have been scanned.
CASES = {
    "perf_bench_numa": ("guest-4x2", {"p": 2, "t": 2, "P": 32}, 4),
    "shared_cow": ("guest-4x2", {"processes": 8, "size_ints": 100_000}, 4),
    "wrong_node": ("guest-2x2", {}, 4),
    "follow": ("guest-2x2", {"at_ms": 2000}, 4),
    "numa01": ("guest-4x2", {"size_mb": 64}, 4),
    "numa01_thread_alloc": ("guest-4x2", {"size_mb": 64}, 4),
    "numa02": ("guest-4x2", {"size_mb": 64}, 4),
    "numa02_smt": ("guest-4x2", {"size_mb": 64}, 4),
    "hackbench": ("lkp-snb01", {"groups": 2}, 15),
    "jvm": ("guest-4x2", {"threads": 8, "heap_mb": 64, "thread_mb": 2}, 4),
    "xfs_repair": ("dave-4n16", {"pages_per_s": 2000, "phase3_ms": 2000}, 4),
}


def test_every_named_workload_is_here() -> None:
    assert CASES.keys() == NAMED.keys()


@pytest.mark.parametrize("kernel", ["3.16", "6.12"])
@pytest.mark.parametrize("name", CASES)
def test_it_runs(name: str, kernel: str) -> None:
    host, parameters, seconds = CASES[name]
    on = machine(host)
    ds = simulate(on, workload(name, on, **parameters), kernel, seconds=seconds, seeds=[1], step_us=4000)
    there = ds.task_node.values[:, -1] >= 0
    assert there.all() if name != "xfs_repair" else there.any() and not there.all()
    pages = ds.pages.sum(["region", "node"]).values
    assert (pages == pages[:, :1]).all()
    assert ds.task_work_pages.values[:, -1].sum() > 0
    # shared copy-on-write pages are left alone since 4.16
    if not (name == "shared_cow" and kernel == "6.12"):
        assert ds.numa_pte_updates.values[0, -1] > 0
