"""Illnesses of tasks, each at its threshold and just below."""

import numpy as np
import pytest

from numalab import runs
from numalab.diagnose import diagnose
from tests.diagnose.samples import alarms, balancing, found, numbers
from tests.readers.helpers import golden

SUITE = golden("cases", "048-perf-bench-ingo-3.7-suite", "input.txt")


def test_perf_bench_at_its_limit():
    assert alarms(SUITE) == ["no-convergence"]
    # within a longer limit, its 100.103 s are when it converged
    assert alarms(SUITE.replace("-s 100", "-s 106")) == []


def test_perf_bench_near_its_limit():
    # 95 % of the 5 s that perf takes if not told
    def run(shortest):
        variables = {"perf_runtime_min_s": np.array([shortest]), "perf_converged_s": np.array([np.nan])}
        coords = {"command": ["-p 2 -t 2 -m -0 -P 300"], "test": ["main"]}
        return runs.build(variables, coords, title="perf", source="measured", params={})

    (one,) = diagnose(run(4.75)).illnesses
    assert numbers(one) == {"shortest run time of a thread, main": 4.75, "limit (default of -s)": 5}
    assert diagnose(run(4.749)).illnesses == ()


def test_perf_bench_that_measures_no_convergence():
    # RAM-bw-local runs its 20 s to the end, as it should
    assert alarms(SUITE.replace("-zZ0qcm", "-zZ0qc")) == []


def autonuma(own, worst):
    rows = {"numa01": own, "numa01_HARD_BIND": [50.0] * len(own), "numa01_INVERSE_BIND": worst}
    text = "".join("".join(f"{name}\n{every[i]:.2f}\n" for name, every in rows.items()) for i in range(len(own)))
    return text


def test_autonuma_slower_than_the_wrong_binding():
    result = found(autonuma([100.01, 120.0], [100.0, 100.0]))
    assert [(one.id, one.side, one.confidence) for one in result.illnesses] == [("no-convergence", "numa01", "high")]
    # 110 on average, but not in each iteration
    assert alarms(autonuma([100.0, 120.0], [100.0, 100.0])) == []


def tasks(preferred, node, total, times):
    """Task 7, with these nodes and faults at these times."""
    samples = len(times)

    def every(value):
        values = value if isinstance(value, list) else [value] * samples
        return np.array(values).reshape(1, samples, 1)

    variables = {
        "preferred_nid": every(preferred).astype(np.int32),
        "task_node": every(node).astype(np.int32),
        "total_numa_faults": every(total).astype(np.int64),
    }
    coords = {"time": np.array(times, float), "task": [7], "task_process": ("task", [7])}
    return runs.build(variables, coords, title="tasks", source="measured", params={})


def test_task_away_from_its_node():
    (one,) = diagnose(tasks(0, 1, 500, [0, 10])).illnesses
    assert (one.id, one.confidence) == ("no-convergence", "medium")
    assert numbers(one)["preferred node of task 7"] == 0
    assert numbers(one)["node of task 7"] == 1


@pytest.mark.parametrize(
    "ds",
    [
        tasks(0, 1, 500, [0, 9.9]),
        tasks(0, 1, 499, [0, 10]),
        tasks(0, [1, 0], 500, [0, 10]),  # it got home
        tasks(0, [1, 0, 1], 500, [0, 5, 10]),  # and was there in between
        tasks(-1, 1, 500, [0, 10]),  # it has no preferred node
    ],
)
def test_task_at_home_or_on_its_way(ds):
    assert diagnose(ds).illnesses == ()


def events(rows, **variables):
    """Task events: (time, kind, task, from node, to node, partner)."""
    time, kind, task, src, dst, partner = (np.array(column) for column in zip(*rows, strict=True))
    found_ = {
        "event_count": np.array([len(rows)]),
        "event_time_s": time[None].astype(float),
        "event_kind": kind[None].astype(np.int32),
        "event_task": task[None].astype(np.int64),
        "event_src_node": src[None].astype(np.int32),
        "event_dst_node": dst[None].astype(np.int32),
        "event_partner": partner[None].astype(np.int64),
        **variables,
    }
    return runs.build(found_, {"task": [1, 2, 3, 4]}, title="events", source="measured", params={})


MOVE, SWAP, BALANCER = 0, 1, 2


def undone(after, count=3, home=1):
    rows = []
    for i in range(count):
        rows += [(10 * i, MOVE, 1, 0, 1, -1), (10 * i + after, BALANCER, 1, home, 0, -1)]
    return events(rows)


def test_moves_undone():
    (one,) = diagnose(undone(1.0)).illnesses
    assert (one.id, one.confidence) == ("balancers-disagree", "high")
    assert numbers(one)["NUMA moves undone by the load balancer, each run"] == 3
    assert diagnose(undone(1.001)).illnesses == ()  # later than one scan period
    assert diagnose(undone(1.0, count=2)).illnesses == ()
    assert diagnose(undone(1.0, home=2)).illnesses == ()  # from where it had gone otherwise


def test_both_tasks_of_a_swap_may_be_taken_back():
    # 1 and 2 change places, 2 is now on node 0 and is taken to 1
    rows = [row for i in range(3) for row in ((i, SWAP, 1, 0, 1, 2), (i + 0.5, BALANCER, 2, 0, 1, -1))]
    assert [one.id for one in diagnose(events(rows)).illnesses] == ["balancers-disagree"]


def gains(small, large):
    rows = [(i, MOVE, 1, 0, 1, -1) for i in range(small + large)]
    every = np.array([[49] * small + [50] * large], dtype=np.int32)
    return events(rows, event_gain=every)


def test_marginal_moves():
    (one,) = diagnose(gains(10, 10)).illnesses
    assert (one.id, one.confidence) == ("marginal-moves", "high")
    assert numbers(one)["with a gain below 5 %"] == 10
    assert diagnose(gains(9, 11)).illnesses == ()
    assert diagnose(gains(19, 0)).illnesses == ()


MPSTAT = """\
Average:     NODE    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
Average:      all   20.00    0.00   10.00   {waiting}    0.00    0.00    0.00    0.00    0.00   60.00
Average:        0   20.00    0.00   10.00   {waiting}    0.00    0.00    0.00    0.00    0.00   60.00
"""
MAPS = (
    "7f0000000000 default file=/data/array anon=2000 dirty=2000 mapped=4000 mapmax={by} N0=4000 N1=0 "
    "kernelpagesize_kB=4\n"
)


def test_waiting_for_shared_pages():
    def texts(waiting="5.00", by=10, local=499, maps=MAPS):
        return MPSTAT.format(waiting=waiting), maps.format(by=by), balancing(1000, local, 100)

    (one,) = found(*texts()).illnesses
    assert (one.id, one.confidence, one.thread) == ("shared-cow-waiting", "medium", "shared_cow")
    assert numbers(one)["%iowait of all CPUs"] == 5
    assert numbers(one)["processes that map /data/array (mapmax)"] == 10
    assert alarms(*texts(waiting="4.99")) == []
    assert alarms(*texts(by=9)) == []
    assert alarms(*texts(local=500)) == []
    # no page of it is private: a shared mapping
    assert alarms(*texts(maps=MAPS.replace("anon=2000 ", ""))) == []


def slept(waited, waits=100):
    def grown(value, dtype):
        return np.array([0, value], dtype=dtype).reshape(1, 2)

    variables = {
        "numa_hint_faults": grown(2000, np.int64),
        "numa_hint_faults_local": grown(500, np.int64),
        "migration_waits": grown(waits, np.int64),
        "task_run_ms": grown(9500.0, float)[..., None],
        "task_wait_ms": grown(waited, float)[..., None],
    }
    coords = {"time": [0.0, 10.0], "task": [1], "task_process": ("task", [1])}
    return runs.build(variables, coords, title="readers", source="simulated", params={})


def test_sleeping_on_pages_under_migration():
    # 500 ms of 10,000
    (one,) = diagnose(slept(500.0)).illnesses
    assert one.id == "shared-cow-waiting"
    assert numbers(one)["share of time asleep on pages under migration"] == 0.05
    assert diagnose(slept(499.0)).illnesses == ()
    assert diagnose(slept(500.0, waits=0)).illnesses == ()
