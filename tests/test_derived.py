"""Derived values, against figures worked out by hand or published."""

import numpy as np
import pytest

from numalab import derived, runs


def run(variables, **coords):
    return runs.build(variables, coords, title="t", source="simulated", params={})


def counters(faults, local, time, **more):
    return run({"numa_hint_faults": [faults], "numa_hint_faults_local": [local], **more}, time=time)


# The cost row is printed beside these counters: twice in "RFC 0/2 Hot page promotion optimization for large
# address space" (2024-03-27), twice in an mmtests table of numa01 without and with the filter of VMAs by pid.
@pytest.mark.parametrize(
    ("pte", "faults", "moved", "cost"),
    [
        (976844, 226763, 220146, 1144.84),
        (962680, 245620, 207025, 1238.77),
        (147858285, 150531983, 13535786, 753952.10),
        (18601, 18254, 2207, 91.44),
    ],
)
def test_autonuma_cost_equals_the_published_rows(pte, faults, moved, cost):
    assert round(derived.autonuma_cost(pte, faults, moved), 2) == cost


def test_autonuma_cost_with_the_copying_that_mmtests_drops():
    assert round(derived.autonuma_cost(976844, 226763, 220146, copy=True), 2) == 1259.09
    assert round(derived.autonuma_cost(962680, 245620, 207025, copy=True), 2) == 1346.22


def test_mmtests_rows():
    ds = run(
        {
            "numa_pte_updates": [[1000, 148857285 + 512 * 3 - 999000]],
            "numa_huge_pte_updates": [[1, 4]],
            "numa_hint_faults": [[7, 7 + 150531983]],
            "numa_hint_faults_local": [[7, 7 + 125691825]],
            "numa_pages_migrated": [[0, 13535786]],
        },
        time=[0.0, 2312.2],
    )
    rows = ds.numa.mmtests()
    assert rows["NUMA base-page range updates"].item() == 147857285 + 1536
    assert rows["NUMA PTE updates"].item() == 147857285
    assert rows["NUMA PMD updates"].item() == 3
    assert rows["NUMA hint local faults %"].item() == 125691825
    assert round(rows["NUMA hint local percent"].item(), 2) == 83.50  # as published
    assert rows["NUMA pages migrated"].item() == 13535786
    assert rows["NUMA PTE updates"].dtype == np.int64
    assert rows["AutoNUMA cost"].item() == pytest.approx((7 * 147858821 + 5000 * 150531983 + 19 * 13535786) / 1e6)


def test_mmtests_percent_is_100_without_faults_and_rows_without_counters_are_absent():
    rows = counters([3, 3], [1, 1], [0.0, 1.0]).numa.mmtests()
    assert rows["NUMA hint local percent"].item() == 100.0
    assert "AutoNUMA cost" not in rows


def test_local_share_of_the_whole_record():
    assert counters([100, 140], [50, 80], [0.0, 1.0]).numa.local_share().values.tolist() == [0.75]
    # one sample: counted from zero
    assert counters([100], [50], [0.0]).numa.local_share().values.tolist() == [0.5]


def test_local_share_is_unknown_without_faults():
    assert np.isnan(counters([9, 9], [9, 9], [0.0, 1.0]).numa.local_share().values).all()


def test_local_share_over_a_window():
    ds = counters([0, 10, 10, 30, 40], [0, 10, 10, 10, 15], [0.0, 0.1, 0.2, 0.3, 0.5])
    share = ds.numa.local_share(window=0.1)
    assert share.dims == ("run", "time")
    # 0.5 looks back to 0.4, where the last sample is the one at 0.3
    np.testing.assert_array_equal(share.values, [[np.nan, 1.0, np.nan, 0.0, 0.5]])
    # two samples back; at 0.1 the record is shorter than the window
    np.testing.assert_array_equal(ds.numa.local_share(window=0.2).values[0, :4], [np.nan, 1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="window: expected seconds above 0, got 0"):
        ds.numa.local_share(window=0)


def test_migrations_per_fault():
    ds = counters([0, 4], [0, 0], [0.0, 1.0], numa_pages_migrated=[[10, 12]])
    assert ds.numa.migrations_per_fault().values.tolist() == [0.5]
    ds = counters([4, 4], [0, 0], [0.0, 1.0], numa_pages_migrated=[[10, 12]])
    assert np.isnan(ds.numa.migrations_per_fault().values).all()


def test_rates():
    ds = counters([0, 10, 10, 70], [0, 0, 0, 0], [0.0, 0.5, 1.0, 3.0])
    rate = ds.numa.rates("numa_hint_faults")
    assert rate.values.tolist() == [[20.0, 0.0, 30.0]]
    assert rate.time.values.tolist() == [0.5, 1.0, 3.0]
    assert rate.attrs["units"] == "s-1"
    with pytest.raises(ValueError, match="rates: free_pages is not a counter"):
        ds.numa.rates("free_pages")
    with pytest.raises(ValueError, match="two are needed"):
        counters([1], [1], [0.0]).numa.rates("numa_hint_faults")
    with pytest.raises(runs.SchemaError, match="this run has no pgmigrate_fail"):
        ds.numa.rates("pgmigrate_fail")


def positions(*run_nodes, process=(1, 1, 2, 2), time=(0.0, 1.0, 2.0, 3.0)):
    return run(
        {"task_node": (("run", "time_task", "task"), list(run_nodes))},
        time_task=list(time),
        task=[10, 11, 20, 21],
        node=[0, 4],
        process=[1, 2],
        task_process=list(process),
        seed=list(range(len(run_nodes))),
    )


HOME, ASTRAY, START, HALF = [0, 0, 4, 4], [0, 4, 4, 4], [0, 0, 4, -1], [0, 0, -1, -1]


def test_convergence_time_needs_every_thread_to_stay():
    ds = positions(
        [START, ASTRAY, HOME, HOME],
        [HOME, ASTRAY, HOME, HOME],
        [HOME, HOME, HOME, ASTRAY],
        [HOME, HOME, HOME, HOME],
        [START, HALF, START, HALF],
    )
    time = ds.numa.convergence_time()
    np.testing.assert_array_equal(time.values, [2.0, 2.0, np.nan, 0.0, np.nan])
    np.testing.assert_array_equal(ds.numa.convergence_time(first=True).values, [2.0, 0.0, 0.0, 0.0, np.nan])
    assert time.seed.values.tolist() == [0, 1, 2, 3, 4]
    assert time.attrs["units"] == "s"


def test_who_has_ended_no_longer_counts():
    """The first process ends together, or apart; the second loses one thread and then the other."""
    ds = positions(
        [ASTRAY, HOME, [-1, -1, 4, -1], [-1, -1, -1, -1]],
        [HOME, ASTRAY, [-1, -1, 4, -1], [-1, -1, -1, -1]],
        [ASTRAY, ASTRAY, [0, -1, 4, 4], [0, -1, 4, 4]],
    )
    np.testing.assert_array_equal(ds.numa.convergence_time().values, [1.0, np.nan, 2.0])


def test_two_processes_may_share_a_node_and_others_are_left_out():
    shared = [0, 0, 0, 0]
    assert positions([shared] * 4).numa.convergence_time().values.tolist() == [0.0]
    # task 11 belongs to no process: it may be anywhere
    assert positions([ASTRAY] * 4, process=(1, -1, 2, 2)).numa.convergence_time().values.tolist() == [0.0]
    with pytest.raises(runs.SchemaError, match="names no process"):
        positions([HOME] * 4, process=(-1, -1, -1, -1)).numa.convergence_time()


def test_perf_convergence_time_is_read_not_computed():
    ds = positions([HOME] * 4)
    with pytest.raises(runs.SchemaError, match="this run has no perf_converged_s"):
        ds.numa.perf_convergence_time()
    assert ds.assign(perf_converged_s=("run", [7.5])).numa.perf_convergence_time().values.tolist() == [7.5]


def test_table_gives_one_run_without_padding():
    table = runs.padded("event", [{"event_time_s": [0.5], "event_gain": [70]}, {"event_time_s": [], "event_gain": []}])
    ds = run({**table, "numa_hint_faults": [[0], [0]]}, time=[0.0])
    assert ds.numa.table("event", 0).event_gain.values.tolist() == [70]
    assert ds.numa.table("event", 1).sizes["event"] == 0
    assert list(ds.numa.table("event", 0)) == ["event_time_s", "event_gain"]
