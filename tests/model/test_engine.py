"""Properties of the loop: skipping, batches, seeds, step length."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import xarray as xr

from numalab import runs
from numalab.compile import compile_layout
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.model.engine import Engine
from numalab.simulation import SimulationError, repeat, simulate
from numalab.workload import Access, Processes, Region, Workload
from numalab.workloads import perf_bench_numa, shared_cow, wrong_node
from tests.reference.cases import PER_RUN, random_kernel, random_layout, random_params


def advance(model: Engine, steps: int, skip: bool) -> int:
    """Advance to a step index; returns how many steps were really taken."""
    end, taken = np.full(model.state.runs, steps), 0
    while (model.state.step_index < end).all():
        if skip:
            model.skip(end)
        if (model.state.step_index < end).all():
            model.step()
            taken += 1
    return taken


def test_skipping_changes_nothing() -> None:
    """Random cases end in the same state whether idle stretches are skipped or stepped, and much is skipped."""
    skipped = compared = 0
    for seed in range(150):
        rng = random.Random(seed)
        layout, kernel, params = random_layout(rng), random_kernel(rng), random_params(rng)
        try:
            stepped, fast = (Engine(layout, kernel, [seed], params) for _ in range(2))
        except ValueError:
            continue
        advance(stepped, 220, skip=False)
        skipped += 220 - advance(fast, 220, skip=True)
        compared += 1
        for name in PER_RUN:
            np.testing.assert_array_equal(
                getattr(stepped.state, name), getattr(fast.state, name), err_msg=f"{seed} {name}"
            )
        for name, value in stepped.state.counters.items():
            np.testing.assert_array_equal(value, fast.state.counters[name])
        assert stepped.state.events == fast.state.events
    assert compared > 100
    assert skipped > 20 * compared


def test_an_area_nobody_touches_is_skipped_over() -> None:
    """Its pages stay trapped to the end; between scans nothing happens all the same."""
    load = Workload(
        "one",
        (Processes("one", threads=2),),
        (Region("used", 8, ("one",)), Region("unused", 64, ("one",))),
        (Access("used", pages_per_s=1e6),),
    )
    layout = compile_layout(machine("guest-2x2"), load)
    stepped, fast = (Engine(layout, Kernel("6.1"), [0], {"scan_delay_ms": 100}) for _ in range(2))
    advance(stepped, 1000, skip=False)
    assert advance(fast, 1000, skip=True) < 300
    assert fast.state.pending.any()
    for name in PER_RUN:
        np.testing.assert_array_equal(getattr(stepped.state, name), getattr(fast.state, name), err_msg=name)


def test_balancing_off_never_scans() -> None:
    """The sysctl varies along the run axis; nothing of what balancing counts happens where it is 0."""
    ds = simulate(machine("guest-2x2"), wrong_node(32), "6.12", seconds=4, seeds=[7], numa_balancing=[1, 0])
    assert ds.numa_pte_updates.values[:, -1].tolist() == [pytest.approx(32 * 256, rel=0.3), 0]
    assert ds.numa_hint_faults.values[1].max() == 0


def without_padding(ds: xr.Dataset, run: int) -> dict[str, Any]:
    events = int(ds.event_count[run])
    one = ds.isel(run=run)
    return {
        str(name): array.isel(event=slice(events)).values if "event" in array.dims else array.values
        for name, array in one.data_vars.items()
    }


@pytest.fixture(scope="module")
def small() -> tuple[Any, Workload]:
    return machine("guest-4x2"), perf_bench_numa(4, 3, P=16, rate_mbps=100)


def test_a_run_does_not_depend_on_its_batch(small: tuple[Any, Workload]) -> None:
    """Seed 5 with scan size 4 is the same alone and among others, one of which stops early."""
    many = simulate(*small, "3.17", seconds=6, seeds=[3, 5, 9], scan_size_mb=[4, 8], stop_after_converged_s=1)
    alone = simulate(*small, "3.17", seconds=6, seeds=[5], scan_size_mb=4, stop_after_converged_s=1)
    at = int(np.flatnonzero((many.seed == 5) & (many.scan_size_mb == 4))[0])
    mine, theirs = without_padding(alone, 0), without_padding(many, at)
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


def test_repeat_gives_the_same_run(small: tuple[Any, Workload], tmp_path: Any) -> None:
    ds = simulate(*small, Kernel("4.15", scan_size_mb=8), seconds=3, seeds=[1, 2], remote_cost=[0, 500])
    runs.save(ds, tmp_path / "run.nc")
    assert runs.differences(ds, repeat(runs.open(tmp_path / "run.nc"))) == []


def test_seeds_differ(small: tuple[Any, Workload]) -> None:
    ds = simulate(*small, "3.17", seconds=4, seeds=[0, 1])
    assert (ds.task_node.isel(run=0) != ds.task_node.isel(run=1)).any()


@pytest.mark.parametrize(
    ("host", "workload", "kernel", "quantity"),
    [
        ("guest-2x2", wrong_node(32), "6.12", "numa_pages_migrated"),
        ("guest-2x2", wrong_node(32), "3.17", "numa_pte_updates"),
        ("guest-4x2", perf_bench_numa(4, 3, P=16, rate_mbps=100), "3.17", "numa_hint_faults"),
        ("guest-4x2", shared_cow(16, size_ints=200_000), "4.15", "numa_hint_faults"),
    ],
    ids=["wrong_node-migrated", "wrong_node-updates", "perf-faults", "cow-faults"],
)
def test_halving_the_step_stays_within_the_spread(host: str, workload: Workload, kernel: str, quantity: str) -> None:
    """Medians over seeds at 1 ms and at 0.5 ms differ by less than the spread between seeds (or 3 %)."""
    totals = [
        simulate(machine(host), workload, kernel, seconds=10, seeds=range(10), step_us=step)[quantity].values[:, -1]
        for step in (1000, 500)
    ]
    spread = max(np.ptp(values) for values in totals)
    gap = abs(np.median(totals[0]) - np.median(totals[1]))
    assert np.median(totals[0]) > 0
    assert gap <= max(spread, 0.03 * np.median(totals[0])), (totals, gap, spread)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scan_size": 4}, "scan_size: no such parameter; did you mean 'scan_size_mb'?"),
        ({"every": {"tasks": 1}}, "every: no variable 'tasks'"),
        ({"every": {"pages": -1}}, "every: pages: expected seconds >= 0, got -1"),
        ({"seeds": []}, "seeds: expected at least one number, got none"),
        ({"seeds": "12"}, "seeds: expected whole numbers from 0 to 9223372036854775807, got '12'"),
        ({"seeds": [1.5]}, "seeds: expected whole numbers from 0 to 9223372036854775807, got 1.5"),
        ({"scan_size_mb": "64"}, "scan_size_mb: expected whole numbers from 1 to 1000000000, got '64'"),
        ({"scan_size_mb": 0}, "scan_size_mb: expected whole numbers from 1 to"),
        ({"slice_us": 0}, "slice_us: expected whole numbers from 1 to"),
        ({"mmap_busy": [0, 1001]}, "mmap_busy: expected whole numbers from 0 to 1000, got 1001"),
        ({"hint_fault_ns": -1}, "hint_fault_ns: expected whole numbers from 0 to"),
        ({"remote_cost": True}, "remote_cost: expected whole numbers"),
        ({"rates": {"process": 10**15}}, "rates: process: expected whole numbers from 1 to 1000000"),
        ({"seconds": float("nan")}, "seconds: expected seconds > 0, got nan"),
        ({"seconds": "3"}, "seconds: expected seconds > 0, got '3'"),
        ({"stop_after_converged_s": -1}, "stop_after_converged_s: expected seconds >= 0, got -1"),
        ({"step_us": [1000, 500]}, "step_us: all runs of a call share one step"),
    ],
)
def test_wrong_arguments_are_named(small: tuple[Any, Workload], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SimulationError) as error:
        simulate(*small, "3.17", **{"seconds": 1, **arguments})
    assert str(error.value).startswith(message)


def test_numbers_of_numpy_and_names_are_taken(small: tuple[Any, Workload]) -> None:
    ds = simulate("guest-4x2", small[1], "3.17", seconds=0.1, seeds=np.int64(2).item(), scan_size_mb=np.arange(4, 6))
    assert ds.seed.values.tolist() == [0, 1, 0, 1]
    assert ds.scan_size_mb.values.tolist() == [4, 4, 5, 5]
    assert runs.differences(ds, repeat(ds)) == []
    with pytest.raises(SimulationError, match="workload: expected a Workload, got 'numa01'"):
        simulate("guest-4x2", "numa01", "3.17", seconds=1)  # type: ignore[arg-type]


def test_memory_of_late_tasks_comes_with_them() -> None:
    """A second process starts after 2 s: its 16 MB are nowhere before, and on its first thread's node after."""
    late = Workload(
        "late",
        (Processes("early"), Processes("late", start_ms=2000)),
        (Region("own", 16, first_touch="main"),),
        (Access("own", 50),),
    )
    ds = simulate("guest-2x2", late, "3.17", seconds=4, every={"pages": 0.5, "task_node": 0.5})
    axis = ds.pages.dims[1]
    pages = ds.pages.sel(region="own/p1").isel(run=0).sum("node")
    assert pages.sel({axis: 1.5}).item() == 0
    assert pages.sel({axis: 2.5}).item() == 16 * 256
    assert ds.task_node.isel(run=0, task=1).values[:4].tolist() == [-1] * 4


def test_rates_vary_along_the_run(small: tuple[Any, Workload]) -> None:
    """Half the visits of the one region: as if the workload had half the rate, and no other run changes."""
    host, workload = small
    both = simulate(host, workload, "3.17", seconds=3, seeds=[4], rates={"process": [500, 1000]})
    assert both.rate_process.values.tolist() == [500, 1000]
    half = simulate(host, perf_bench_numa(4, 3, P=16, rate_mbps=50), "3.17", seconds=3, seeds=[4])
    full = simulate(host, workload, "3.17", seconds=3, seeds=[4])
    for run, alone in enumerate((half, full)):
        mine, theirs = without_padding(both, run), without_padding(alone, 0)
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert runs.differences(both, repeat(both)) == []
    with pytest.raises(ValueError, match="rates: the workload has no region 'heap'; it has process"):
        simulate(host, workload, "3.17", seconds=1, rates={"heap": 2})


def test_one_factor_for_all_regions(small: tuple[Any, Workload]) -> None:
    """``all`` stands for the regions that are not named; the workload has but one, so it is the same as naming it."""
    host, workload = small
    every = simulate(host, workload, "3.17", seconds=2, seeds=[4], rates={"all": [500, 1000]})
    named = simulate(host, workload, "3.17", seconds=2, seeds=[4], rates={"process": [500, 1000]})
    assert every.rate_all.values.tolist() == [500, 1000]
    for name in named.data_vars:
        np.testing.assert_array_equal(every[name].values, named[name].values, err_msg=str(name))
    both = simulate(host, workload, "3.17", seconds=2, seeds=[4], rates={"all": 500, "process": 1000})
    for name in both.data_vars:
        np.testing.assert_array_equal(both[name].values, named[name].isel(run=[1]).values, err_msg=str(name))
    assert runs.differences(every, repeat(every)) == []
