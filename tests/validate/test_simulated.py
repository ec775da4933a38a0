"""A case in the model: whose memory is whose, who may move, which samples are compared."""

import numpy as np
import pytest

from numalab.compile import compile_layout
from numalab.machine import machine
from numalab.validate import simulated
from numalab.validate.cases import group, load
from numalab.workload import Access, Binding, Processes, Region, Workload

HEAP = (Region("heap", 1),)


def layout(*bindings, regions=HEAP):
    accesses = tuple(Access(region.name, rate_mbps=1) for region in regions)
    return compile_layout(machine("guest-2x2"), Workload("w", (Processes("p", 2, 2),), regions, accesses, bindings))


def test_memory_of_several_processes_is_nobodys():
    regions = (Region("heap", 1), Region("shared", 1, scope="all", kind="shmem", policy="mof"))
    assert sorted(simulated._owners(layout(regions=regions)).tolist()) == [-1, 0, 1]


@pytest.mark.parametrize(
    ("bindings", "bound"),
    [
        ((), False),
        ((Binding(nodes="process"),), True),
        ((Binding(nodes="thread"),), True),
        ((Binding(nodes="thread", until_ms=500.0),), False),
        # follows from node 0 to node 1: the task moves
        ((Binding(nodes=0, until_ms=500.0), Binding(nodes=1, from_ms=500.0)), False),
    ],
)
def test_bound_tasks_may_use_one_node_at_all_times(bindings, bound):
    # both processes
    assert simulated._bound(layout(*bindings), 2) is bound


def test_samples_of_another_repetition():
    """Sampled at 0.8, 1.9 and 4.5 s; wanted at 1.0, 2.0 and 3.0 s, of which the last has none within a second."""
    shares = np.arange(3.0).reshape(1, 3, 1, 1)
    times, found = simulated._at((np.array([0.8, 1.9, 4.5]), shares), np.array([1.0, 2.0, 3.0]))
    assert times.tolist() == [1.0, 2.0]
    assert found[0, :, 0, 0].tolist() == [0.0, 1.0]
    times, found = simulated._at((np.array([0.8, 1.9, 3.9]), shares), np.array([1.0, 2.0, 3.0]))
    assert found[0, :, 0, 0].tolist() == [0.0, 1.0, 2.0]


def test_model_and_trace_are_sampled_at_the_same_times():
    (case,) = group([load("b_wrongnode_free_2x2_r1")])
    outcome = simulated.run(case, 1)
    for name, (real, model) in outcome.series.items():
        if name not in ("task_moves", "task_swaps"):
            np.testing.assert_array_equal(real[0][0], model[0], err_msg=name)
    # fork puts the task on its memory's node, or the balancer moves it there: nothing is left to do for the scanner
    assert outcome.real["numa_pte_updates"].tolist() == [0.0]
    assert outcome.real["time_to_local"][0] < 1.0
