"""Rules of placement over plain arrays: by hand, and the engine's placement gives the same."""

from __future__ import annotations

import numpy as np
import pytest

from numalab.kernel import Kernel
from numalab.model import placement, placing, topology
from tests.model.small import at, band, place, state_of

DISTANCES = {
    topology.DIRECT: [[10, 21, 21], [21, 10, 21], [21, 21, 10]],
    topology.MESH: [[10, 16, 22], [16, 10, 16], [22, 16, 10]],
}


def test_halves_go_and_buffers_come() -> None:
    """9 - 9/2 + 4 = 9; 8 - 8/2 = 4; the last one stays: 1 - 1/2 = 1."""
    mem = np.array([9, 8, 1])
    assert (mem + placing.memory_change(mem, np.array([4, 0, 0]))).tolist() == [9, 4, 1]


def test_cpu_faults_are_shares_of_run_time() -> None:
    """Half the time, 6 of 7 faults: 32768*6 // 8, and half of the 9 before goes."""
    assert placing.cpu_change(np.array([9]), np.array([6]), np.array([32768]), np.array([7])).tolist() == [24576 - 4]


@pytest.mark.parametrize(
    ("kernel", "class_", "expected"),
    [
        ("3.16", topology.DIRECT, 0),  # 600 + 300 of 1000 against 400 + 400 and 0 + 300
        ("3.17", topology.DIRECT, 1),  # the group's most
        ("6.12", topology.DIRECT, 1),
        ("6.12", topology.MESH, 1),
    ],
)
def test_choice_of_a_grouped_task(kernel: str, class_: int, expected: int) -> None:
    own, group = np.array([[60, 40, 0]]), np.array([[30, 40, 30]])
    totals = (own, own.sum(axis=1)), (group, group.sum(axis=1))
    distance = np.array(DISTANCES[class_])
    assert placing.choice(Kernel(kernel), class_, distance, *totals, np.array([True])).tolist() == [expected]
    assert placing.choice(Kernel(kernel), class_, distance, *totals, np.array([False])).tolist() == [0]


@pytest.mark.parametrize("kernel", ["3.16", "3.17", "4.1", "4.15", "6.12"])
def test_the_engine_places_by_these_rules(kernel: str) -> None:
    draw = np.random.default_rng(5)
    state = place(state_of(kernel, nodes=4, threads=4, home=1), [0, 2, 4, 6])
    state.mem[:] = draw.integers(0, 90, state.mem.shape)
    state.cpuf[:] = draw.integers(0, 9000, state.cpuf.shape)
    state.membuf[:] = draw.integers(0, 90, state.membuf.shape)
    state.cpubuf[:] = draw.integers(0, 90, state.cpubuf.shape)
    state.locality[:, :, :2] = draw.integers(1, 200, (*state.locality.shape[:2], 2))
    state.total[:] = state.mem.sum(axis=(2, 3))
    state.step_index[:], state.run_ns[:] = 99, 40_000_000  # of 100 ms
    state.seq[:] = 1
    g = band(state, [0, 1, 2])
    mem, cpuf = state.mem[0].copy(), state.cpuf[0].copy()
    buffered, cpu_buffered = state.membuf[0].copy(), state.cpubuf[0].copy()
    seen = state.locality[0, :, :2].sum(axis=1)[:, None, None]
    share = np.array((40_000_000 << 16) // (100_000_000 + 1))
    placement.place(state, at(0, 0, 0, 0), at(0, 1, 2, 3))
    mem += placing.memory_change(mem, buffered)
    assert (state.mem[0] == mem).all()
    assert (state.cpuf[0] == cpuf + placing.cpu_change(cpuf, cpu_buffered, share, seen)).all()
    faults, of_group = mem.sum(axis=2), np.broadcast_to(state.gmem[0, g].sum(axis=1), (4, 4))
    chosen = placing.choice(
        state.kernel,
        state.fix.class_,
        state.layout.distance,
        (faults, faults.sum(axis=1)),
        (of_group, of_group.sum(axis=1)),
        np.array([True, True, True, False]),
    )
    assert state.preferred[0].tolist() == chosen.tolist()
