"""The convergence thread: the trap, a replay, perf's view of it, and what is claimed of times."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from numalab import _data, runs
from numalab.derived import time_axis
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.patch_threads import claims, convergence, convergence_trap
from numalab.patch_threads.convergence import AFTER, BEFORE, CONTROL, SHAPES, Case, Times
from numalab.readers import perf_bench
from numalab.simulation import simulate
from numalab.workloads import perf_bench_numa

INF = math.inf


# ---------------------------------------------------------------- the trap
def trap(kernel, seeds, limit_s):
    workload = perf_bench_numa(8, 20, P=1000, rate_mbps=convergence.RATE_MBPS)
    return convergence_trap.escape_times(machine(convergence.MACHINE), workload, kernel, seeds, limit_s)


@pytest.mark.parametrize("label", list(convergence_trap.VARIANTS))
def test_only_patches_2_and_5_together_free_the_stray(label):
    """With a balancer that sees right. The first attempt comes within a retry time (1 s) of the first fault."""
    patches = convergence_trap.VARIANTS[label]
    times = trap(Kernel(BEFORE).patched(*patches), [0, 1, 2], 6.0)
    if patches == ("S1#2", "S1#5"):
        assert max(times) < 6
    else:
        assert times == [INF] * 3


def test_the_whole_series_frees_the_stray():
    assert max(trap(Kernel(AFTER), [0, 1], 6.0)) < 6
    assert trap(Kernel("3.16"), [0], 4.0) == [INF]


def test_the_stuck_state_is_that_of_the_trace():
    """41/3 39/2 40/2 40/2, and one thread astray."""
    workload = perf_bench_numa(8, 20, P=1000, rate_mbps=convergence.RATE_MBPS)
    state = convergence_trap.stuck(machine(convergence.MACHINE), workload, Kernel(BEFORE), [0]).state
    node, process = state.node_of_task[0], state.layout.task_process
    shown = convergence.published()["trace"]
    assert [int((node == n).sum()) for n in range(4)] == shown["stuck_threads"]
    assert [len(set(process[node == n].tolist())) for n in range(4)] == shown["stuck_processes"]
    assert convergence_trap.astray(state).tolist() == [1]
    assert (state.nr[0] == 2).sum() == 78  # 80 CPUs, two tasks each but for one with three and one with one
    assert sorted(set(state.nr[0].tolist())) == [1, 2, 3]


def test_the_story_of_the_trap():
    """Loads before and after the move as in tests/model/test_search.py, once per kernel."""
    workload = perf_bench_numa(8, 20, P=1000, rate_mbps=convergence.RATE_MBPS)
    text = convergence_trap.tell(machine(convergence.MACHINE), workload, BEFORE, seeds=[0], limit_s=4.0)
    assert text.count("loads of node 0 and node 1: 3649, 3471; after a move 2625, 4495: too uneven") == 2
    assert text.count("loads of node 0 and node 1: 41984, 39936; after a move 40960, 40960: fine") == 2
    assert text.count("all threads home in 0 of 1 runs within 4 s") == 3
    assert text.count("all threads home in 1 of 1 runs within 4 s, median") == 1
    assert text.count("move: gains more than the swap, and the loads allow it") == 2  # mates', and others' CPUs
    rows = [line for line in text.splitlines() if line.startswith("process")]
    assert [row.count("swap that gains nothing") for row in rows] == [1, 1, 1, 1, 0, 0, 0, 0]


# ---------------------------------------------------------------- a replay in small
def test_after_the_series_it_converges(monkeypatch):
    """8 x 20 threads on the mail's machine: both runs within its 20 s, and neither in the first scan passes."""
    monkeypatch.setattr(convergence, "LIMIT_S", 20.0)
    monkeypatch.setattr(convergence, "AFTERGLOW_S", 0.5)
    ds = convergence.run_case(Case(AFTER, (8, 20), Kernel(AFTER)), [0, 1])
    assert ds.sizes["run"] == 2
    times = convergence.true_times(ds)
    assert (times <= 20).all()
    assert (times >= 5).all()
    # the balancer may disturb it again later
    at = np.searchsorted(ds[time_axis(ds.task_node)].values, times)
    for place in ds.task_node.values[[0, 1], at]:
        assert [len(set(place[ds.task_process.values == p].tolist())) for p in range(8)] == [1] * 8


@pytest.fixture(scope="module")
def small():
    """Four processes of three threads on four nodes of two CPUs."""
    ds = simulate(
        machine("guest-4x2"),
        perf_bench_numa(4, 3, P=16, rate_mbps=100),
        AFTER,
        seconds=14,
        seeds=[3, 4, 5],
        every={"task_node": 0.25, "task_work_pages": 0.25},
        stop_after_converged_s=3,
        step_us=4000,
    )
    return convergence.add_perf_view(ds, loop_mb=32)


def test_perfs_view_reads_back_into_the_same_values(small):
    """Counts exactly, minutes to a tenth, the time of a change to a tenth of a second, as perf prints them."""
    text = perf_bench.format_progress(small)
    back = perf_bench.to_dataset(perf_bench.parse(text))
    counts = small.perf_record_count.values
    assert (counts > 3).all()
    assert small.perf_converged_s.notnull().any()
    np.testing.assert_array_equal(back.perf_record_count.values, counts)
    for name in (
        "threads",
        "processes",
        "distance",
        "groups",
        "loops_min",
        "loops_max",
        "nodes_min",
        "nodes_max",
        "flag",
    ):
        for run, count in enumerate(counts):
            mine, theirs = (ds[f"perf_{name}"].values[run, :count] for ds in (small, back))
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    for run, count in enumerate(counts):
        for name, precision in (("time_s", 3.0), ("flag_s", 0.05)):
            mine, theirs = (ds[f"perf_{name}"].values[run, :count] for ds in (small, back))
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=precision + 1e-6)
    np.testing.assert_allclose(small.perf_converged_s.values, back.perf_converged_s.values, rtol=0, atol=0.05 + 1e-6)
    for name in ("tasks", "nodes", "cpus", "global_mb", "process_mb", "thread_mb", "loops"):
        np.testing.assert_array_equal(small[f"perf_{name}"].values, back[f"perf_{name}"].values)
    assert perf_bench.format_progress(back.isel(run=[0])).count("mins]") == counts[0]


def test_perf_is_late(small):
    """It looks at loop ends only, so never before the truth, and here within two loops of 32 MB at 100 MB/s or less."""
    true, perf = convergence.true_times(small), convergence.perf_times(small)
    seen = np.isfinite(perf)
    assert seen.any()
    assert (perf[seen] >= true[seen]).all()
    assert (perf[seen] - true[seen] < 3).all()


def test_what_perf_knows():
    """By hand: two processes of two threads, loops of 1 MB (256 pages), samples every second. A thread's node is that
    of its last loop end; thread 3 reports. At 1 s thread 1 has ended no loop. At 3 s perf sees 0 0 1 1, though thread 0
    has moved on: converged. At 4 s thread 0's end shows its move."""
    loops = [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 2, 1], [1, 1, 2, 2], [2, 2, 2, 3]]
    node = [[0, 0, 1, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1]]
    ds = runs.build(
        {
            "task_node": (("run", "time", "task"), np.array([node])),
            "task_work_pages": (("run", "time", "task"), np.array([loops]) * 256.0),
        },
        {
            "run": [0], "time": np.arange(5.0), "task": np.arange(4), "task_process": (("task",), [0, 0, 1, 1]),
            "node": [0, 1], "cpu": [0, 1],
        },
        title="by hand", source="simulated", params={},
    )  # fmt: skip
    seen = convergence.add_perf_view(ds, loop_mb=1).numa.table("progress", 0)
    assert seen.perf_time_s.values.tolist() == [1, 3, 4]
    assert seen.perf_threads.values.tolist() == [[1, 2], [2, 2], [1, 3]]
    assert seen.perf_processes.values.tolist() == [[1, 1], [1, 1], [1, 2]]
    assert seen.perf_nodes_min.values.tolist() == [0, -1, 1]  # not printed while converged
    assert seen.perf_nodes_max.values.tolist() == [1, -1, 2]
    assert seen.perf_loops_min.values.tolist() == [0, 0, 1]
    assert seen.perf_loops_max.values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(seen.perf_flag_s.values, [math.nan, 3, 4])
    assert convergence.perf_times(convergence.add_perf_view(ds, loop_mb=1)).tolist() == [3]


def test_each_case_is_kept_as_it_is_finished(small, monkeypatch):
    """The dataset is given away before the next case, which here is interrupted."""
    kept = {}

    def results(run, todo, **how):
        yield todo[0], small
        assert kept == {"3.16-tip-p8t20": small}
        raise KeyboardInterrupt

    monkeypatch.setattr(convergence.pool, "results", results)
    outcome = convergence.replay(seeds=3, keep=kept.__setitem__)
    assert outcome.interrupted
    assert outcome.text.startswith("Interrupted: 1 of 7 cases are finished.")
    assert outcome.datasets == kept


# ---------------------------------------------------------------- the mail
def test_the_mails_trace():
    shown = convergence.published()["trace"]
    (test,) = perf_bench.parse(_data.read_text("published", shown["file"])).tests
    assert len(test.progress) == 5
    assert test.converged_s == shown["converged_s"] == 41.8
    assert (test.setup.tasks, test.setup.nodes, test.setup.cpus) == (160, 4, 80)
    last_but_one = test.progress[-2]
    assert list(last_but_one.threads) == shown["stuck_threads"] == [41, 39, 40, 40]
    assert list(last_but_one.processes) == shown["stuck_processes"] == [3, 2, 2, 2]


# ---------------------------------------------------------------- claims
@pytest.mark.parametrize(
    ("q", "expected"), [(0, 1), (0.25, 1), (0.5, 2), (0.51, 3), (0.75, 3), (0.76, INF), (0.9, INF), (1, INF)]
)
def test_quantiles_of_times_some_of_which_never_come(q, expected):
    """The sample at rank ceil(q n), whatever is beyond it."""
    assert convergence.quantile(np.array([3, 1, INF, 2]), q) == expected


def times(label, true, shape=SHAPES[0], perf=None, **parameters):
    case = Case(label, shape, Kernel(BEFORE if label == BEFORE else AFTER), parameters)
    return Times(case, np.array(true, float), np.array(true if perf is None else perf, float))


def holds(results):
    return {claim.claim.split(" [")[0]: (claim.model, claim.holds) for claim in convergence.claims(results)}


def test_claims_after():
    """Ten times: rank 5 is the median, rank 9 the 90th percentile; 5 to 95 % are ranks 1 and 10."""
    good = [11, 12, 13, 14, 15, 16, 17, 18, 40, 61]
    assert holds([times(AFTER, good)]) == {
        "after: median time": (15, True),
        "after: 90th percentile": (40, True),
        "after: share later than 60 s": (0.1, False),
    }
    (median, _, _) = convergence.claims([times(AFTER, good)])
    assert (median.low, median.high) == (11, 61)
    late = [21] * 9 + [41, INF]
    assert [claim.holds for claim in convergence.claims([times(AFTER, late)])] == [False, False, False]
    assert [claim.holds for claim in convergence.claims([times(AFTER, [INF] * 3)])] == [False, False, False]
    assert "never" in convergence.claims_table(convergence.claims([times(AFTER, [INF] * 3)]))


def test_claims_before_are_counted_not_judged():
    """A constant was fitted to them. 41.8 s, the mail's one run, is compared with perf's times of 8 x 20."""
    got = holds([times(BEFORE, [30, 60, INF, 121], perf=[41.8, 41.9, INF, INF])])
    assert got == {
        "before: share not within 120 s": (0.5, None),
        "before: median time": (60, None),
        "before: share of runs perf calls converged by 41.8 s": (0.25, None),
    }


def test_shapes_are_pooled_and_side_cases_left_out():
    pooled = [times(AFTER, [12, 14], SHAPES[1]), times(AFTER, [16, 18], SHAPES[2])]
    side = [times(AFTER, [99] * 9, balancer_sigma=0), times("4.15", [99] * 9)]
    assert holds(pooled + side) == holds([times(AFTER, [12, 14, 16, 18])])


@pytest.mark.parametrize(("true", "expected"), [([INF, INF], (0, True)), ([INF, 50], (0.5, False))])
def test_the_control_must_not_converge(true, expected):
    assert holds([times(AFTER, true, CONTROL)]) == {"control: share converged of 2 x 80 threads": expected}


def test_cases():
    """Names are file names, so they must differ; the main ones are part of the full list."""
    main, full = convergence.cases(full=False), convergence.cases(full=True)
    assert [(case.label, case.shape) for case in main[:2]] == [("3.16-tip", (8, 20)), ("3.17", (8, 20))]
    assert len(main) == 2 * 3 + 1
    for some in (main, full):
        assert len({case.name for case in some}) == len(some)
    assert {case.name for case in main} <= {case.name for case in full}
    for case in full:
        assert not set(case.name) & set(" /#")
    kernels = {case.label: case.kernel for case in full}
    assert kernels["3.16-tip+S1#2+S1#5"] == Kernel(BEFORE).patched("S1#2", "S1#5")
    assert kernels["3.16-tip+S1#1..S1#6"].diff(Kernel(AFTER)) == {"numa_period_threshold": (3, 7)}


def test_the_stored_results_are_of_this_scenario() -> None:
    """The main cases, then those of a full replay in order, 12 runs each or more, for the constants in the code."""
    facts = json.loads(_data.read_text("results", "convergence.json"))
    assert (facts["machine"], facts["step_us"]) == (convergence.MACHINE, convergence.STEP_US)
    assert (facts["rate_mbps"], facts["limit_s"]) == (convergence.RATE_MBPS, convergence.LIMIT_S)
    times = {one.case.name: one for one in convergence.stored()}
    full = convergence.cases(full=True)
    assert len(times) >= len(convergence.cases(full=False)) + len(convergence.PATCHES)
    assert len(facts["seeds"]) >= 12
    for case, name in zip(full, times, strict=False):
        assert times[name].case == case
        assert len(times[name].true) == len(times[name].perf) == len(facts["seeds"])


def test_the_stored_results_hold_what_the_mail_says() -> None:
    """After: medians in 10-20 s, 90th percentiles up to 40 s, for every shape; before: a tail beyond 100 s."""
    for one in convergence.stored():
        if one.is_main and one.case.label == convergence.AFTER:
            assert 10 <= convergence.quantile(one.true, 0.5) <= 20
            assert convergence.quantile(one.true, 0.9) <= 40
        if one.is_main and one.case.label == convergence.BEFORE:
            assert np.mean(one.true > 100) >= 0.3


def test_the_first_runs_of_the_stored_results_come_out_again() -> None:
    stored = next(one for one in convergence.stored() if one.is_main and one.case.label == convergence.AFTER)
    ds = convergence.run_case(stored.case, [0, 1])
    np.testing.assert_allclose(convergence.true_times(ds), stored.true[:2], atol=1e-3)
    np.testing.assert_allclose(convergence.perf_times(ds), stored.perf[:2], atol=1e-3)


def test_the_readme_quotes_the_stored_results() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    main = [one for one in convergence.stored() if one.case in convergence.cases(full=False)]
    assert convergence.times_table(main) in readme
    made = convergence.claims(main)
    assert convergence.claims_table(made) in readme
    hold, judged = claims.counted(made)
    _, published = claims.counted([one for one in made if one.in_mail])
    assert f"Of the claims {hold} of {judged} that are judged hold, but only {published} are published" in readme
