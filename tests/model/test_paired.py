"""Runs whose values lie side by side are those of a grid."""

import numpy as np
import pytest

from numalab import runs, simulate
from numalab.machine import Machine
from numalab.simulation import SimulationError, repeat
from numalab.workloads import wrong_node

SMALL = Machine.uniform(nodes=2, cpus_per_node=2, memory_mb=64)


def run(**given):
    return simulate(SMALL, wrong_node(size_mb=8), "6.1", seconds=2, **given)


def test_they_are_the_runs_of_the_grid():
    grid = run(seeds=[3, 5], scan_size_mb=[1, 256], rates={"all": [200, 1000]})
    pairs = run(seeds=[5, 3, 5], scan_size_mb=[1, 256, 256], rates={"all": [1000, 200, 1000]}, paired=True)
    # seeds innermost, then rates, then scan sizes
    same = grid.isel(run=[3, 4, 7])
    assert same.seed.values.tolist() == pairs.seed.values.tolist() == [5, 3, 5]
    assert same.rate_all.values.tolist() == pairs.rate_all.values.tolist()
    for name in ("numa_hint_faults", "pages", "task_run_ms", "task_node"):
        np.testing.assert_array_equal(same[name].values, pairs[name].values)


def test_one_number_goes_with_every_seed_and_it_can_be_repeated():
    ds = run(seeds=[0, 1], scan_size_mb=[1, 256], remote_cost=700, paired=True)
    assert ds.sizes["run"] == 2
    assert runs.equal(ds, repeat(ds))


def test_lengths_must_agree():
    with pytest.raises(SimulationError, match="scan_size_mb: expected 3 numbers, one for each seed, got 2"):
        run(seeds=3, scan_size_mb=[1, 256], paired=True)
