"""The compared quantities, on small runs whose answers are plain, and on traces whose README states them."""

import numpy as np
import pytest

from numalab import quantities, runs
from numalab.quantities import QUANTITIES
from numalab.readers import trace

BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}
#: Two nodes of two CPUs.
MACHINE = {"node": [0, 1], "cpu": [0, 1, 2, 3], "cpu_node": (("cpu",), [0, 0, 1, 1])}


def build(variables, source="simulated", params=None, **coords):
    return runs.build(variables, MACHINE | coords, title="t", source=source, params=params or {})


def value(name, ds, until):
    return BY_NAME[name].value(ds, until)


# ---------------------------------------------------------------- counters


def test_counters_count_from_the_last_sample_before_the_work_to_the_end():
    ds = build({"numa_pte_updates": [[0, 5, 7, 107, 207]]}, time=[-1.2, -0.2, 0.8, 1.8, 2.8])
    assert value("numa_pte_updates", ds, 2.0) == 102  # 107 at 1.8 s, 5 at -0.2 s
    assert value("numa_pte_updates", ds, 9.0) == 202


def test_a_counter_that_begins_with_the_work():
    ds = build({"numa_pte_updates": [[0, 40]]}, time=[0.5, 1.5])
    assert value("numa_pte_updates", ds, 2.0) == 40


def test_thirds_add_up():
    ds = build({"numa_pte_updates": [[0, 10, 30, 60, 100, 150, 210]]}, time=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    parts = [value(f"pte_updates_third_{number}", ds, 6.0)[0] for number in (1, 2, 3)]
    assert parts == [30, 70, 110]


def test_the_local_share_of_a_few_faults_of_the_guest_is_undefined():
    faults = {"numa_hint_faults": [[0, 118], [0, 200]], "numa_hint_faults_local": [[0, 100], [0, 50]]}
    share = value("local_share", build(faults, time=[0.0, 1.0]), 1.0)
    assert np.isnan(share[0])
    assert share[1] == 0.25


def test_failures_are_what_failed_and_what_was_refused_where_that_was_counted():
    failed = {"pgmigrate_fail": [[0, 3]]}
    assert value("migrate_failures", build(failed, time=[0.0, 1.0]), 1.0) == 3
    both = failed | {"migrate_refused": [[0, 40]]}
    assert value("migrate_failures", build(both, time=[0.0, 1.0]), 1.0) == 43


def test_layout_b_counters_that_are_not_printed_are_zero():
    dims = ("run", "time", "counter")
    ds = build(
        {"counters": (dims, [[[0, 10], [4, 20]]])}, "measured", counter=["move_ok", "blocked_samples"], time=[0.0, 1.0]
    )
    assert value("task_moves", ds, 1.0) == 4
    assert value("task_swaps", ds, 1.0) == 0
    assert value("preferred_changes", ds, 1.0) == 0


def test_waiting_tasks_are_the_mean_of_the_monitors_looks_or_the_time_waited():
    dims = ("run", "time", "counter")
    seen = build(
        {"counters": (dims, [[[0, 0], [30, 20]]])},
        "measured",
        counter=["blocked_sum", "blocked_samples"],
        time=[0.0, 2.0],
    )
    assert value("waiting_tasks", seen, 2.0) == 1.5
    waited = build({"task_wait_ms": [[[0.0, 0.0], [1000.0, 2000.0]]]}, time=[0.0, 2.0], task=[0, 1])
    assert value("waiting_tasks", waited, 2.0) == 1.5


def test_the_page_rate_of_fixed_work_is_its_work_over_its_time():
    """Runs whose tasks all end by 8 s of 10, and not: the time is theirs, or all there is."""
    work = {"task_work_pages": [[[0.0, 0.0], [400.0, 400.0]]] * 2}
    ends = {"task_end_s": [[[np.nan, np.nan], [6.0, 8.0]], [[np.nan, np.nan], [6.0, np.nan]]]}
    ds = build(work | ends, time=[0.0, 10.0], task=[0, 1])
    assert value("page_rate", ds, 10.0).tolist() == [100.0, 80.0]


# ---------------------------------------------------------------- tasks


def test_moves_and_swaps_are_events_up_to_the_end():
    table = {
        "event_time_s": np.array([0.5, 1.0, 3.0]),
        "event_kind": np.array([0, 1, 0]),
        **{name: np.zeros(3, int) for name in ("event_task", "event_src_cpu", "event_src_node", "event_dst_cpu")},
        **{name: np.zeros(3, int) for name in ("event_dst_node", "event_partner", "event_gain")},
    }
    ds = build(runs.padded("event", [table]))
    assert value("task_moves", ds, 2.0) == 1
    assert value("task_moves", ds, 4.0) == 2
    assert value("task_swaps", ds, 2.0) == 1


def test_preferred_changes_include_the_first_choice_but_not_its_loss():
    preferred = [[[-1, -1], [0, -1], [0, 1], [1, 1], [-1, 1]]]
    ds = build({"preferred_nid": preferred}, time=[0.0, 1.0, 2.0, 3.0, 4.0], task=[0, 1])
    assert value("preferred_changes", ds, 4.0) == 3


def threads(places, times, **more):
    """Two processes of two threads each; places (time, task)."""
    tasks = {"task": [0, 1, 2, 3], "task_process": (("task",), [0, 0, 1, 1])}
    return build({"task_node": [places], **more}, time=times, **tasks)


def test_convergence_must_last_two_seconds():
    apart, together = [0, 1, 0, 1], [0, 0, 1, 1]
    places = [apart, together, apart, together, together, together, apart, apart]
    ds = threads(places, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert value("convergence_time", ds, 7.0) == 3.0
    assert value("converged_share", ds, 7.0) == 0.5
    # one of two threads on the main node, or both
    assert value("main_node_share", ds, 7.0) == pytest.approx((4 * 0.5 + 4 * 1.0) / 8)


def test_never_converged_counts_as_the_whole_time():
    ds = threads([[0, 1, 0, 1]] * 3, [0.0, 1.0, 2.0])
    assert value("convergence_time", ds, 2.0) == 2.0


def test_a_thread_that_has_not_started_keeps_its_process_from_counting():
    ds = threads([[0, -1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]], [0.0, 1.0, 2.0, 3.0])
    assert value("convergence_time", ds, 3.0) == 1.0


def test_processes_too_large_for_a_node_cannot_converge():
    """Four threads of one process, two CPUs a node: nothing to measure."""
    ds = build(
        {"task_node": [[[0, 0, 1, 1]] * 3]}, time=[0.0, 1.0, 2.0], task=[0, 1, 2, 3], task_process=(("task",), [0] * 4)
    )
    assert value("convergence_time", ds, 2.0) is None
    assert value("main_node_share", ds, 2.0) == 0.5


def test_main_threads_that_sleep_are_not_workers():
    asleep = {"task_state": [[[1, 0, 0, 0]] * 3]}
    ds = threads([[1, 0, 1, 1]] * 3, [0.0, 1.0, 2.0], **asleep)
    assert quantities.workers(ds, 2.0).tolist() == [False, True, True, True]
    ran = {"task_run_ms": [[[5.0, 900.0, 900.0, 900.0]] * 3]}
    assert quantities.workers(threads([[1, 0, 1, 1]] * 3, [0.0, 1.0, 2.0], **ran), 2.0).tolist() == [False, *[True] * 3]


# ---------------------------------------------------------------- memory


def memory(pages, times, owner):
    coords = {"region": [f"r{i}" for i in range(len(owner))], "region_process": (("region",), owner)}
    return build({"pages": [pages]}, time=times, task=[0, 1], task_process=(("task",), [0, 1]), **coords)


def test_time_to_local_looks_at_the_node_of_the_end():
    """All on node 0, then on the way to node 1: 95 % there at 3 s. The 100 % on node 0 before do not count."""
    ds = memory([[[100, 0]], [[100, 0]], [[50, 50]], [[5, 95]], [[8, 92]]], [0.0, 1.0, 2.0, 3.0, 4.0], [0])
    assert value("time_to_local", ds, 4.0) == 3.0


def test_time_to_local_is_the_mean_over_processes_never_being_the_end():
    """Process 0 from 1 s on; process 1 leaves again and stays half and half."""
    first, second = [[0, 10], [10, 0], [10, 0], [10, 0]], [[0, 10], [0, 10], [5, 5], [4, 6]]
    ds = memory([list(pair) for pair in zip(first, second, strict=True)], [0.0, 1.0, 2.0, 3.0], [0, 1])
    assert value("time_to_local", ds, 3.0) == (1.0 + 3.0) / 2


def test_memory_of_nobody_is_everybodys():
    times, shares = quantities.page_shares(memory([[[30, 10], [10, 30]]], [0.0], [0, -1]), 0.0)
    assert times.tolist() == [0.0]
    # process 0: 40 and 40; process 1, which is only known from its task: 10 and 30
    assert shares.tolist() == [[[[0.5, 0.5], [0.25, 0.75]]]]


def test_rms_of_page_shares():
    """All pages elsewhere half of the time: sqrt(1/2); swapped in one of the two processes throughout: sqrt(1/2)."""
    times = np.array([0.0, 1.0])
    here = np.tile([1.0, 0.0], (1, 2, 2, 1))
    late = here.copy()
    late[0, 1] = [0.0, 1.0]
    assert quantities.rms((times, here), (times, late))[0, 0] == pytest.approx(np.sqrt(0.5))
    other = here.copy()
    other[0, :, 1] = [0.0, 1.0]
    assert quantities.rms((times, here), (times, other))[0, 0] == pytest.approx(np.sqrt(0.5))
    assert quantities.rms((times, here), (times, here))[0, 0] == 0.0


# ---------------------------------------------------------------- sampling


def test_like_takes_the_last_sample_at_or_before():
    fine = np.arange(0, 3.01, 0.2)
    simulated = build({"numa_pte_updates": [np.arange(len(fine))]}, time=fine)
    measured = build({"numa_pte_updates": [[0, 0, 0, 0]]}, "measured", time=[-0.5, 0.5, 1.4, 2.5])
    sampled = quantities.like(simulated, measured, 2.0)
    assert sampled["time_counter"].values.tolist() == [0.5, 1.4]
    assert sampled["numa_pte_updates"].values.tolist() == [[2, 7]]


# ---------------------------------------------------------------- traces


def test_a_page_by_page_follow_as_its_readme_states():
    """b_wrongnode_bound: all 8192 pages on node 1 at +3.3 s; 8293 marked, 8289 faults, none local, 8219 migrated."""
    ds = trace.load("b_wrongnode_bound_2x2_r1")
    counts = {
        "numa_pte_updates": 8293,
        "numa_hint_faults": 8289,
        "local_share": 0.0,
        "numa_pages_migrated": 8219,
        "task_moves": 0,
    }
    for name, number in counts.items():
        assert value(name, ds, 39.3) == number, name
    assert value("time_to_local", ds, 39.3) == pytest.approx(3.3, abs=0.05)


def test_the_swap_scenario_as_its_readme_states():
    """c_swap_2x2_mt_r1: one swap; 90 % home at 45.2 and 34.3 s."""
    ds = trace.load("c_swap_2x2_mt_r1")
    assert value("task_swaps", ds, 60.2) == 1
    assert value("time_to_local", ds, 60.2) == pytest.approx((45.2 + 34.3) / 2, abs=0.2)


@pytest.mark.parametrize(
    ("name", "converged"),
    [("S1_p4t2_new_r1", 11.23), ("S1_p4t2_stock_r1", 36.24), ("S1_p4t2_old_r1", 40.2)],  # old: never
)
def test_convergence_is_what_the_load_printed(name, converged):
    ds = trace.load(name)
    assert value("convergence_time", ds, 40.2) == pytest.approx(converged, abs=0.3)
    told = runs.provenance(ds)["results"]
    assert value("converged_share", ds, 40.2) == pytest.approx(told["conv_frac"], abs=0.01)
    assert value("main_node_share", ds, 40.2) == pytest.approx(told["majority"], abs=0.01)
    assert value("page_rate", ds, 40.2) == told["per_s"]


def test_unfair_readers_as_the_load_printed():
    """S0 trap: 22,274 sums by 16 readers, slowest 306, fastest 3317; 1329 in D state in 278 looks."""
    ds = trace.load("S0_anon_n16_nb1_trap_r1")
    assert value("slowest_worker", ds, 15.6) == pytest.approx(306 / (22274 / 16))
    assert value("fastest_worker", ds, 15.6) == pytest.approx(3317 / (22274 / 16))
    assert value("page_rate", ds, 15.6) == pytest.approx(1484.93 * 256)
    assert value("waiting_tasks", ds, 15.6) == pytest.approx(1329 / 278)
