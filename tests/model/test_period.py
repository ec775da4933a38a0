"""The scan period: its bounds, its start and its adaptation, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalab.model import period
from numalab.model.state import PRIVATE, SHARED, State
from tests.model.small import at, band, state_of

#: Blocks of 2 MB in so many GB.
BLOCKS_OF_1_GB = 512


def sized(kernel: str, gb: float, **rest: Any) -> State:
    return state_of(kernel, blocks=round(gb * BLOCKS_OF_1_GB), block_pages=512, node_pages=1 << 23, **rest)


def bounds(state: State, t: int = 0, r: int = 0) -> tuple[int, int, int]:
    shortest, start, longest = period.bounds(state, at(r), at(t))
    return int(shortest[0]), int(start[0]), int(longest[0])


# ---------------------------------------------------------------- bounds
@pytest.mark.parametrize("kernel", ["3.14", "3.17", "4.15", "6.18"])
@pytest.mark.parametrize(
    ("gb", "expected"),
    [
        (0.1, (1000, 1000, 60000)),  # one window
        (0.25, (1000, 1000, 60000)),  # exactly one
        (0.252, (500, 500, 30000)),  # a page block more: two
        (1, (250, 250, 15000)),  # four windows: 1000/4, 60000/4
        (16, (100, 100, 937)),  # 64: the floor of 1000/(2560/256), and 60000/64
    ],
)
def test_windows_of_a_pass(kernel: str, gb: float, expected: tuple[int, int, int]) -> None:
    assert bounds(sized(kernel, gb)) == expected


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"scan_size_mb": 64}, (62, 62, 3750)),  # 16 windows, floor 1000/40 = 25
        ({"scan_size_mb": 8}, (7, 7, 468)),  # 128 windows, floor 1000/320 = 3
        ({"scan_size_mb": 8, "scan_period_min_ms": 100}, (3, 3, 468)),  # 100/128 = 0: the floor
        ({"scan_size_mb": 4096}, (1000, 1000, 60000)),  # larger than what a second may scan: 1000
        ({"scan_period_max_ms": 400}, (250, 250, 250)),  # longest is never below shortest
        ({"max_scan_window_mbps": 512}, (500, 500, 15000)),  # floor 1000/2
    ],
)
def test_sysctls_move_the_bounds(params: dict[str, int], expected: tuple[int, int, int]) -> None:
    assert bounds(sized("3.17", 1, params=params)) == expected


def test_bounds_differ_along_a_batch() -> None:
    state = sized("3.17", 1, runs=2, params={"scan_size_mb": np.array([256, 64])})
    assert [bounds(state, r=r) for r in (0, 1)] == [(250, 250, 15000), (62, 62, 3750)]


@pytest.mark.parametrize(
    ("shared", "private", "start", "longest"),
    [
        (3, 0, 1000, 60000),  # all shared: 4 members times as long
        (0, 9, 250, 15000),  # 250*4*1/10 = 100 and 15000*4*1/10 = 6000: not below those of a task alone
        (4, 5, 500, 30000),  # 250*4*5/10, 15000*4*5/10
    ],
)
def test_a_group_scans_less_often_the_more_it_shares(shared: int, private: int, start: int, longest: int) -> None:
    """Since 4.15: period * members * (shared + 1) / (private + shared + 1)."""
    for kernel, expected in (("4.15", (250, start, longest)), ("4.1", (250, 250, 15000))):
        state = sized(kernel, 1, threads=4)
        state.mem[0, 0, 1] = [shared, private]
        state.total[0, 0] = shared + private
        band(state, [0, 1, 2, 3])
        assert bounds(state, 2) == expected


# ---------------------------------------------------------------- adaptation
def adapted(
    kernel: str,
    remote_local: tuple[int, int],
    shared_private: tuple[int, int],
    *,
    fail: int = 0,
    p: int = 1000,
    **rest: Any,
) -> State:
    """Adapt a period P of a 16 GB process with bounds 100 and 9375."""
    state = sized(kernel, 16, params={"scan_period_max_ms": 600_000, **rest})
    state.step_index[:] = 6  # it is 7 ms
    state.period_ms[:], state.locality[:, 0] = p, [*remote_local, fail]
    longest = period.bounds(state, at(0), at(0))[2]
    period.adapt(state, at(0), at(0), np.array([shared_private]), longest)
    return state


@pytest.mark.parametrize(
    ("kernel", "remote_local", "shared_private", "expected"),
    [
        # one slot is 1000/10. All local, tenths 10: 10 - T slots slower
        ("3.16", (0, 9), (0, 9), 1000 + 700),
        ("3.17", (0, 9), (0, 9), 1000 + 300),
        # exactly at the threshold: still one slot slower
        ("3.16", (7, 3), (0, 9), 1000 + 100),
        ("3.17", (3, 7), (0, 9), 1000 + 100),
        # all remote: T slots faster, times the private share in tenths, rounded up: 99 of 100 is 10
        ("3.16", (9, 0), (1, 99), 1000 - 300),
        ("3.17", (9, 0), (1, 99), 1000 - 700),
        ("3.17", (9, 0), (2, 1), 1000 - 700 * 4 // 10),  # ceil(10/3)
        ("3.17", (9, 0), (9, 0), 1000),  # nothing private: unchanged
        ("3.17", (1, 1), (1, 99), 1000 - 200),
        # 3.19 divides by one more: ceil(80/10) = 8 of ten instead of ceil(80/9) = 9
        ("3.17", (9, 0), (1, 8), 1000 - 630),
        ("3.19", (9, 0), (1, 8), 1000 - 560),
        # since 4.14 the private share first: mostly private slows down, though all is remote
        ("4.15", (9, 0), (1, 9), 1000 + 200),
        ("4.15", (1, 9), (9, 0), 1000 + 200),  # then the local share
        ("4.15", (9, 0), (3, 7), 1000 + 100),  # exactly at the threshold: one slot
        ("4.15", (3, 7), (9, 0), 1000 + 100),
        ("4.15", (5, 5), (6, 4), 1000 - 200),  # 7 - max(5, 4)
        ("4.15", (9, 0), (9, 0), 1000 - 700),  # all shared and remote: seven slots, whatever the share
        ("6.18", (9, 0), (9, 0), 1000 - 700),
    ],
)
def test_tenths_decide(kernel: str, remote_local: Any, shared_private: Any, expected: int) -> None:
    state = adapted(kernel, remote_local, shared_private)
    assert state.period_ms[0, 0] == expected
    assert state.locality[0, 0].tolist() == [0, 0, 0]
    assert state.next_scan_ms[0, 0] == state_of(kernel).next_scan_ms[0, 0]


def test_slots_are_rounded_up_and_bounds_hold() -> None:
    """P = 1005: a slot is 101; 7 slots faster. 100 and 9375 are the bounds of 16 GB with 600 s."""
    assert adapted("3.17", (9, 0), (1, 99), p=1005).period_ms[0, 0] == 1005 - 707
    assert adapted("3.17", (9, 0), (1, 99), p=200).period_ms[0, 0] == 100
    assert adapted("3.17", (0, 9), (0, 9), p=9000).period_ms[0, 0] == 9375


def test_nothing_local_and_nothing_shared_doubles() -> None:
    """Not the remote faults count here, but the shared ones: only private remote faults look like none at all.
    Locality is kept and the process's next scan moves to now + P (7 + 2000)."""
    for kernel in ("3.14", "3.17", "4.15", "6.18"):
        state = adapted(kernel, (9, 0), (0, 9))
        assert (state.period_ms[0, 0], state.next_scan_ms[0, 0]) == (2000, 2007)
        assert state.locality[0, 0].tolist() == [9, 0, 0]
    assert adapted("3.17", (9, 0), (0, 9), p=5000).period_ms[0, 0] == 9375  # at most the longest


def test_a_failed_migration_doubles_since_4_0_and_sticks() -> None:
    state = adapted("3.19", (0, 9), (0, 9), fail=1)
    assert state.period_ms[0, 0] == 1300
    for kernel in ("4.0", "4.15", "6.18"):
        state = adapted(kernel, (0, 9), (0, 9), fail=1)
        periods = [int(state.period_ms[0, 0])]
        for _ in range(3):  # the count is never cleared on this branch: one failure doubles on and on
            period.adapt(state, at(0), at(0), np.array([[0, 9]]), at(9375))
            periods.append(int(state.period_ms[0, 0]))
        assert periods == [2000, 4000, 8000, 9375]
        assert state.locality[0, 0].tolist() == [0, 9, 1]


def test_the_threshold_may_differ_along_a_batch() -> None:
    state = sized("3.16", 16, runs=2, params={"numa_period_threshold": np.array([3, 7])})
    state.period_ms[:], state.locality[:, 0, :2] = 500, [5, 5]
    rows, tasks = at(0, 1), at(0, 0)
    period.adapt(state, rows, tasks, np.array([[0, 9]] * 2), at(9375, 9375))
    assert state.period_ms[:, 0].tolist() == [500 + 2 * 50, 500 - 2 * 50]  # 5 tenths: 5-3 slots slower, 7-5 faster


def test_the_last_of_a_process_sets_its_next_scan() -> None:
    """Two tasks double in one step: next scan is now + the last one's period."""
    state = sized("3.17", 16, threads=2, params={"scan_period_max_ms": 600_000})
    state.step_index[:], state.period_ms[:] = 6, [[300, 400]]
    period.adapt(state, at(0, 0), at(0, 1), np.zeros((2, 2), np.int64), at(9375, 9375))
    assert state.period_ms[0].tolist() == [600, 800]
    assert state.next_scan_ms[0, 0] == 7 + 800


def test_kinds_are_shared_and_private_in_this_order() -> None:
    assert (SHARED, PRIVATE) == (0, 1)
