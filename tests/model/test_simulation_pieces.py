"""A simulation in pieces gives what it gives at once."""

import pytest

from numalab import runs
from numalab.simulation import Simulation, SimulationError, simulate
from numalab.workloads import perf_bench_numa

LOAD = perf_bench_numa(p=2, t=2, P=16)


def test_pieces_make_the_same_runs():
    whole = simulate("guest-4x2", LOAD, "3.17", seconds=2, seeds=3, scan_size_mb=[64, 256])
    pieces = Simulation("guest-4x2", LOAD, "3.17", seconds=2, seeds=3, scan_size_mb=[64, 256])
    seen = []
    while not pieces.done:
        pieces.advance(0.01)
        seen.append(pieces.simulated_s)
    assert runs.equal(pieces.dataset(), whole)
    assert len(seen) > 3
    assert seen == sorted(seen)
    # 2 s of 3 seeds with 2 scan sizes
    assert seen[-1] == pieces.total_s == pytest.approx(12)


def test_on_the_way_it_shows_what_is_done():
    whole = simulate("guest-4x2", LOAD, "3.17", seconds=2)
    going = Simulation("guest-4x2", LOAD, "3.17", seconds=2)
    with pytest.raises(SimulationError, match="call advance"):
        going.dataset()
    going.advance(0.0)
    first = going.dataset()
    assert first.sizes["time"] < whole.sizes["time"]
    assert first.numa_hint_faults.values.tolist() == whole.numa_hint_faults[:, : first.sizes["time"]].values.tolist()
    runs.validate(first)


def test_more_than_a_batch(monkeypatch):
    monkeypatch.setattr("numalab.simulation.BATCH", 2)
    going = Simulation("guest-4x2", LOAD, "3.17", seconds=0.2, seeds=5)
    while not going.done:
        going.advance(0.0)
    assert runs.equal(going.dataset(), simulate("guest-4x2", LOAD, "3.17", seconds=0.2, seeds=5))
