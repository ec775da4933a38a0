"""Sides of a comparison: runs pooled by test, columns of tables with the names of the run schema."""

import numpy as np
import pytest

from numalab import runs, sides
from numalab.readers import lkp, mmtests, trace
from numalab.schema import SLEEPING
from numalab.sides import LOCAL_SHARE, MMTESTS, OWN, VMSTAT, Quantity, lkp_stat
from tests.comparing import make_run
from tests.readers.helpers import golden


def test_runs_are_pooled():
    side = sides.from_runs("a", [make_run([100, 200], [50, 150]), make_run([600], [0])], ["x.nc", "y.nc"])
    assert side.tests == ["two/load"]
    quantity, values = side.samples["two/load", "numa_hint_faults"]
    assert (quantity.units, quantity.better, quantity.origin) == ("1", "lower", VMSTAT)
    # (100 + 200 + 600) / 3; variance (200² + 100² + 300²) / 2
    assert (values.mean, values.n, values.low, values.high) == (300.0, 3, 100.0, 600.0)
    assert values.stddev == pytest.approx(70000**0.5)
    assert values.stddev_percent == pytest.approx(100 * 70000**0.5 / 300)
    # shares are taken of each run: 50 %, 75 %, 0 %
    assert side.samples["two/load", LOCAL_SHARE][1].values == (50.0, 75.0, 0.0)
    assert side.seconds == {"two/load": [10.0, 10.0]}


def test_other_tests_are_kept_apart():
    side = sides.from_runs("a", [make_run([1], [1]), make_run([3], [1], workload="other")], ["x", "y"])
    assert side.tests == ["two/load", "two/other"]
    assert side.samples["two/other", "numa_hint_faults"][1].mean == 3.0


def test_a_run_without_faults_has_no_share():
    _, values = sides.from_runs("a", [make_run([0, 10], [0, 5])], ["x"]).samples["two/load", LOCAL_SHARE]
    assert (values.mean, values.n, values.without) == (50.0, 1, 1)


def test_what_only_some_runs_recorded_is_left_out():
    lean = make_run([1], [1]).drop_vars("numa_pte_updates")
    side = sides.from_runs("a", [make_run([1], [1]), lean], ["x", "y"])
    assert ("two/load", "numa_pte_updates") not in side.samples
    assert side.notes == ["a: left out, as some of its runs did not record them: numa_pte_updates"]


def test_split_by_what_varies_but_not_by_seed():
    ds = runs.concat([make_run([1, 2], [1, 1]), make_run([3], [1], kernel="3.17")])
    assert [(label, part.sizes["run"]) for label, part in sides.split(ds)] == [("3.16", 2), ("3.17", 1)]
    assert [label for label, _ in sides.split(make_run([1, 2], [1, 1]))] == [""]
    swept = make_run([1, 2], [1, 1], scan_size_mb=("run", [64, 256]))
    assert [label for label, _ in sides.split(swept)] == ["scan_size_mb=64", "scan_size_mb=256"]


def test_joined_set_ups_that_nothing_tells_apart_are_seen():
    ds = runs.concat([make_run([1], [1]), make_run([1], [1], workload="other")])
    assert sides.mixed(ds)
    assert not sides.mixed(runs.concat([make_run([1], [1]), make_run([3], [1], kernel="3.17")]))


@pytest.mark.parametrize(("state", "told"), [(SLEEPING, False), (0, True)])
def test_who_sleeps_all_the_time_cannot_converge(state, told):
    variables = {"task_node": np.zeros((1, 2, 2), np.int64), "task_state": np.full((1, 2, 2), state)}
    tasks = {"task": [7, 8], "task_process": ("task", [7, 7]), "task_name": ("task", ["a", "b"])}
    ds = runs.build(variables, {"run": [0], "time": [0.0, 1.0], **tasks}, title="t", source="measured", params={})
    assert ("convergence_s" in {quantity.name for quantity, _ in sides.quantities(ds)}) == told


def test_a_measured_run_has_what_its_program_printed():
    ds = trace.load("S2_write_base_r1")
    assert sides.test_of(ds) == "write"
    found = {quantity.name: (quantity, values) for quantity, values in sides.quantities(ds)}
    assert found["pages_per_s"][0].better == "higher"
    assert found["runtime_s"][1].tolist() == [16.72]
    assert sides.test_of(trace.load("c_swap_2x2_r1")) == "c_swap_2x2"


# ---------------------------------------------------------------- tables


def test_columns_of_lkp():
    base, new = sides.from_lkp(lkp.parse(golden("lkp", "018.txt"), "x.txt"))
    assert (base.name, new.name) == ("4ab93063c83a2478", "7aaa45f8374887d98cd479a6bdd")
    assert base.tests == ["lkp-csl-2sp9/kbuild"]
    _, values = base.samples["lkp-csl-2sp9/kbuild", "numa_hint_faults"]
    # printed ± 30 %: at least that, and less than 31 %
    assert (values.mean, values.n, values.stddev) == (360277, None, pytest.approx(0.30 * 360277))
    assert values.stddev_most == pytest.approx(0.31 * 360277)
    # nothing printed: at most 2 %
    _, values = base.samples["lkp-csl-2sp9/kbuild", "numa_hit"]
    assert (values.stddev, values.stddev_most) == (None, pytest.approx(0.02 * 3.5e8))


def test_ratios_that_a_report_leaves_to_its_reader():
    """Case 054: a share of 0.760 against 0.606, within the errors of the two counters."""
    base, new = sides.from_lkp(lkp.parse(golden("lkp", "054.txt")))
    share = [side.samples["", LOCAL_SHARE][1] for side in (base, new)]
    assert [round(one.mean, 1) for one in share] == [76.0, 60.6]
    # 17 % and 10 %, 27 % and 4 %, as of independent counts
    assert share[0].stddev == pytest.approx(76.0 * (0.17**2 + 0.10**2) ** 0.5, rel=1e-3)
    assert share[1].stddev == pytest.approx(60.55 * (0.27**2 + 0.04**2) ** 0.5, rel=1e-3)
    base, new = sides.from_lkp(lkp.parse(golden("lkp", "020.txt")))
    test = "lkp-icl-2sp7/redis/set,get"
    assert [round(side.samples[test, LOCAL_SHARE][1].mean, 2) for side in (base, new)] == [99.96, 99.84]
    assert [round(side.samples[test, "migrations_per_fault"][1].mean, 4) for side in (base, new)] == [0.0005, 0.0016]
    # the local faults have no spread printed, so neither has their share
    assert base.samples[test, LOCAL_SHARE][1].stddev is None


def test_runs_of_a_table():
    report = lkp.parse(golden("lkp", "054.txt"))
    assert [side.samples["", "numa_hint_faults"][1].n for side in sides.from_lkp(report, [6])] == [6, 6]
    assert [side.samples["", "numa_hint_faults"][1].n for side in sides.from_lkp(report, [6, 4])] == [6, 4]
    with pytest.raises(sides.SidesError, match="3 numbers of runs for a table of 2 columns"):
        sides.from_lkp(report, [6, 4, 2])


def test_tests_of_2014_are_tests_and_totals_are_none():
    base, _ = sides.from_lkp(lkp.parse(golden("lkp", "flat.txt")))
    assert base.tests == ["ivb42/hackbench/50%-threads-pipe", "lkp-snb01/hackbench/50%-threads-socket"]
    assert [value.mean for _, value in base.samples.values()] == [94500, 67745]


def test_kernels_of_mmtests():
    base, new = sides.from_mmtests(mmtests.parse(golden("mmtests", "047.txt")), [3])
    assert base.name == "6.6.0-rc2-sched-numabtrace-v1"
    quantity, values = new.samples["", "elsp-NUMA01_THREADLOCAL"]
    assert (quantity.better, quantity.origin) == ("lower", MMTESTS)
    assert (values.mean, values.stddev, values.low, values.high, values.n) == (123.34, 4.06, 117.64, 128.03, 3)
    # counters of the whole test: of one record, whatever the runs
    assert new.samples["", "numa_pte_updates"][1] == sides.Values(26374386)
    assert new.samples["", LOCAL_SHARE][1].mean == 74.90
    assert ("", "Stddev_elsp-NUMA01_THREADLOCAL") not in new.samples


def test_a_share_of_no_faults_is_not_100():
    base, *_ = sides.from_mmtests(mmtests.parse(golden("mmtests", "044.txt")))
    assert base.samples["", "numa_hint_faults"][1].mean == 0
    assert ("", LOCAL_SHARE) not in base.samples


@pytest.mark.parametrize(
    ("quantity", "stat"),
    [
        (Quantity("numa_hint_faults", origin=VMSTAT), "proc-vmstat.numa_hint_faults"),
        (Quantity(LOCAL_SHARE), "numalab.local_share%"),
        (Quantity("elsp-NUMA02", origin=MMTESTS), "mmtests.elsp-NUMA02"),
        (Quantity("perf-stat.i.ipc", origin=""), "perf-stat.i.ipc"),
    ],
)
def test_names_of_lkp(quantity, stat):
    assert lkp_stat(quantity) == stat
    row = lkp.Row(stat, (lkp.Cell(1.0), lkp.Cell(1.0)), (0.0,))
    report = lkp.Report("x", 1, [lkp.Table(1, ("a", "b"), [row])])
    (back, _), *_ = sides.from_lkp(report)[0].samples.values()
    assert (back.name, back.origin) == (quantity.name, quantity.origin)
    assert Quantity("x").origin == OWN


def test_values_of_one_run():
    values = sides.sample([5.0, np.nan])
    assert (values.mean, values.stddev, values.n, values.without) == (5.0, None, 1, 1)


def test_counters_in_tables_of_2012_and_later():
    """ "NUMA PTE updates" was the kernel's counter until huge pages were counted apart; then it is a difference."""
    *_, last = sides.from_mmtests(mmtests.parse(golden("mmtests", "2012.txt")))
    quantity, values = last.samples["", "numa_pte_updates"]
    assert (quantity.origin, values.mean) == (VMSTAT, 301160396)
    later, *_ = sides.from_mmtests(mmtests.parse(golden("mmtests", "five.txt")))
    assert later.samples["", "numa_pte_updates"][1].mean == 2517600
    assert later.samples["", "Ops_NUMA_PTE_updates"][0].origin == MMTESTS
