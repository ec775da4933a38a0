"""When a task scans: stamps, the process's next scan, one winner per window, locks, and the pid filter; by hand.

A tick is 1 ms here and comes with every step, so each running task may trigger in each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalab.model.runqueue import spend_time
from numalab.model.scan import run_due_scans
from numalab.model.state import State
from tests.model.small import counted, place, state_of
from tests.model.test_scan import areas, marked, window

MS = 1_000_000


def setting(kernel: str, threads: int = 1, **rest: Any) -> State:
    params = {"tick_us": 1000, **rest.pop("params", {})}
    state = state_of(kernel, threads=threads, home=1, params=params, **rest)
    return place(state, [0, 1, 2, 3][:threads])


def tick(state: State, ms: int, *ran_ms: int) -> None:
    """Let it be a time at which the tasks have run for so long, and let the ticks come."""
    state.step_index[:] = ms - 1
    state.run_ns[0] = [ran * MS for ran in ran_ms]
    run_due_scans(state, np.full_like(state.run_ns, 1 << 60))


def test_a_scanner_spins_until_other_threads_have_flushed() -> None:
    """Two areas of 4 pages, 5 ms each: 10 ms more run time, of which the stretch counts whole ticks, 32 times."""
    params = {"tick_us": 1000, "flush_wait_ns": 5 * MS, "pte_scan_ns": 0, "pte_update_ns": 0}
    state = place(areas("6.18", 2, threads=2, params=params), [0, 1])
    state.next_scan_ms[:] = 1
    tick(state, 2000, 1500, 0)
    assert marked(state) == [4, 0]
    assert state.spin_ns[0].tolist() == [5 * MS, 0]
    assert spend_time(state)[0].tolist() == [0, 1 * MS]  # a step of 1 ms: the scanner's goes to spinning
    assert state.spin_ns[0].tolist() == [4 * MS, 0]
    assert state.sys_ns[0].tolist() == [1 * MS, 0]
    assert state.run_ns[0].tolist() == [1501 * MS, 1 * MS]
    before = stamps(state)[0]
    for ms in (2001, 2002):
        tick(state, ms, 1501, 1)
    assert marked(state) == [4, 4]
    assert not state.scans
    assert stamps(state)[0] == before + 32 * 10
    # alone it need not wait for anybody
    alone = place(areas("6.18", 2, threads=1, params=params), [0])
    alone.next_scan_ms[:] = 1
    tick(alone, 2000, 1500)
    assert (marked(alone), alone.spin_ns[0, 0]) == ([4, 4], 0)


def stamps(state: State) -> list[float]:
    return [float(ns) / MS for ns in state.stamp_ns[0]]


# ---------------------------------------------------------------- the trigger
@pytest.mark.parametrize("kernel", ["3.17", "4.15"])
def test_the_first_scan_of_a_process(kernel: str) -> None:
    """Run time must exceed stamp + period, 0 + 1000 ms. The first attempt only sets the next scan (now + delay); its
    stamp moves by the old period, and the period becomes the start period (4 MB: 1000)."""
    state = setting(kernel, blocks=1024, params={"pte_update_ns": 2995})
    tick(state, 1000, 1000)
    assert (stamps(state), state.next_scan_ms[0, 0]) == ([0], 0)
    tick(state, 1002, 1001)
    assert (stamps(state), state.next_scan_ms[0, 0], counted(state)) == ([1000], 2002, {})
    tick(state, 2001, 2001)  # by run time due, by the clock not: the attempt is lost
    assert (stamps(state), counted(state)) == ([2000], {})
    tick(state, 3002, 3001)
    assert counted(state) == {"numa_pte_updates": 1024}
    assert state.next_scan_ms[0, 0] == 3002 + 1000
    # 2 ticks more, and since 4.15 also 32 times the scan in whole ticks: 1024 * (5 + 2995) ns are 3 ms
    assert stamps(state) == [3000 + 2 + (32 * 3 if kernel == "4.15" else 0)]
    assert (state.sys_ns[0, 0], state.debt_ns[0, 0]) == (1024 * 3000, 0)


def test_run_time_counts_not_the_clock() -> None:
    state = setting("3.17")
    tick(state, 60_000, 999)
    assert (stamps(state), state.next_scan_ms[0, 0]) == ([0], 0)


def test_the_period_steps_to_its_start_unless_staggered() -> None:
    """1 GB: the first trigger takes 1000 down to 250. Since 4.19 the stamp of a further thread is 2 ticks, not 0: it
    keeps 1000."""
    for kernel, second in (("3.17", 250), ("4.15", 250), ("4.19", 1000), ("6.18", 1000)):
        state = setting(kernel, 2, blocks=512, block_pages=512)
        assert stamps(state) == [0, 0 if second == 250 else 2]
        tick(state, 1000, 1003, 1003)
        assert state.period_ms[0].tolist() == [250, second]
        assert (
            state.next_scan_ms[0, 0] == 1000 + 250
        )  # task 0 scanned: with several threads the delay runs from the start


def test_one_winner_per_window() -> None:
    """Both are due: the first scans and moves the process's next scan; the other's stamp moves all the same."""
    state = setting("3.17", 2, blocks=600)
    tick(state, 1000, 1001, 1001)
    assert counted(state) == {"numa_pte_updates": 600}
    assert stamps(state) == [1000 + 2, 1000]
    tick(state, 1999, 3000, 3000)
    assert counted(state) == {"numa_pte_updates": 600}
    assert stamps(state) == [2002, 2000]


def test_the_start_of_processes_by_fork() -> None:
    """The delay runs from the start, 500 ms, for every process but a lone one."""
    for kernel in ("3.17", "6.18"):
        assert setting(kernel).next_scan_ms.tolist() == [[0]]
        start = [500 * MS] * 2
        assert setting(kernel, 2, task_start_ns=start).next_scan_ms.tolist() == [[1500]]
        assert setting(kernel, 2, switches={"fork_resets_parent_scan": False}).next_scan_ms.tolist() == [[0]]


@pytest.mark.parametrize(("kernel", "scans"), [("6.14", True), ("6.18", False)])
def test_a_cpuset_with_one_node(kernel: str, scans: bool) -> None:
    state = setting(kernel, 2, process_single_node=[True])
    tick(state, 1000, 1003, 1003)
    assert bool(counted(state)) is scans
    assert stamps(state)[1] == 1002


@pytest.mark.parametrize(("kernel", "scans", "waits"), [("4.1", True, 100_000), ("4.15", False, 0), ("6.18", False, 0)])
def test_a_busy_mmap_lock(kernel: str, scans: bool, waits: int) -> None:
    """Waited for until 4.1; later the window is lost, though next scan and stamp have moved."""
    state = setting(kernel, 2, params={"mmap_busy": 1000})
    tick(state, 1000, 1001, 0)
    assert bool(counted(state)) is scans
    assert state.wait_ns[0, 0] == waits
    assert (state.next_scan_ms[0, 0], stamps(state)[0]) == (2000, 1002)


# ---------------------------------------------------------------- the pid filter
def filtered(kernel: str, seq: int, bits: list[bool], count: int = 3) -> State:
    """Areas of 4 pages: in those with a bit task 0 was seen; everybody else's time has come."""
    state = areas(kernel, count, switches={"skip_local_single_user": False})
    state.seq[:] = seq
    state.prev_seq[:] = seq - 1
    state.pids1[:] = np.where(bits, state.fix.task_pid_bit[0], np.uint64(0))
    return state


def scanned(state: State, now: int = 4000) -> list[bool]:
    before = state.pending[0].copy()
    window(state, now)
    return [bool(x) for x in state.pending[0] > before]


def test_without_the_filter_all_is_scanned() -> None:
    assert scanned(filtered("6.1", 5, [False] * 3)) == [True] * 3


@pytest.mark.parametrize("kernel", ["6.5", "6.12", "6.18"])
def test_only_areas_it_was_seen_in(kernel: str) -> None:
    """From the third sequence on. The list ends: sequence + 1."""
    for seq in (0, 1):
        state = filtered(kernel, seq, [False] * 3)
        assert scanned(state) == [True] * 3
    if kernel == "6.5":
        assert scanned(filtered(kernel, 2, [False] * 3)) == [False] * 3
    for bits in ([False, True, False], [True, False, True]):
        state = filtered(kernel, 5, bits)
        got = scanned(state)
        if kernel == "6.5":
            assert (got, state.seq[0, 0]) == (bits, 6)
        else:  # see below: once forced, one area more
            assert got == [True, True, bits[2]] if not bits[0] else [True, True, True]
    state = filtered(kernel, 5, [False] * 3)
    state.pids1[:], state.pids0[:] = 0, state.fix.task_pid_bit[0]  # the older half counts too
    assert scanned(state) == [True] * 3


def test_nobodys_areas_are_forced_one_by_one_since_6_7() -> None:
    """Nothing of the list is mine: once more without the filter, for one area. The window ends there, and the
    sequence goes on with the next window. 6.5 leaves them alone."""
    state = filtered("6.5", 5, [False] * 3)
    assert (scanned(state), state.seq[0, 0]) == ([False] * 3, 6)
    state = filtered("6.12", 5, [False] * 3)
    for area in range(3):
        assert scanned(state) == [n == area for n in range(3)]
        assert (state.offset[0, 0], state.seq[0, 0]) == (512 + area * 1024 + 4, 5)
        assert state.prev_seq[0].tolist() == [5 if n <= area else 4 for n in range(3)]


def test_once_per_sequence_since_6_7() -> None:
    """An area completed in this sequence is passed over."""
    for kernel, expected in (("6.5", [True] * 3), ("6.12", [True, False, True])):
        state = filtered(kernel, 5, [True] * 3)
        state.prev_seq[:, 1] = 5
        assert scanned(state) == expected


def test_areas_in_progress_or_long_unscanned_since_6_7() -> None:
    """A scan that stands inside an area goes on; one thread: after more than one sequence anybody may."""
    for kernel, taken in (("6.5", False), ("6.12", True)):
        state = filtered(kernel, 5, [False] * 3)
        state.offset[:] = 512 + 2
        assert scanned(state)[0] is taken
        state = filtered(kernel, 5, [False] * 3)
        state.prev_seq[:, 2] = 3  # 5 > 3 + 1
        got = scanned(state)
        assert got[2] is taken


@pytest.mark.parametrize("kernel", ["6.5", "6.12"])
def test_new_areas_wait_and_old_marks_fade(kernel: str) -> None:
    """Areas are 1000 ms old before they are scanned (but in the first sequence), and every 4000 ms the marks age."""
    assert scanned(filtered(kernel, 1, [True] * 3), now=999) == [False] * 3
    assert scanned(filtered(kernel, 0, [True] * 3), now=999) == [True] * 3
    assert scanned(filtered(kernel, 1, [True] * 3), now=1000) == [True] * 3
    state = filtered(kernel, 5, [True] * 3)
    mine = state.fix.task_pid_bit[0]
    scanned(state, now=5000)
    assert (state.pids0[0, 0], state.pids1[0, 0], state.vma_reset_ms[0, 0]) == (0, mine, 5000)
    state = filtered(kernel, 5, [True] * 3)
    scanned(state, now=5001)
    assert (state.pids0[0, 0], state.pids1[0, 0], state.vma_reset_ms[0, 0]) == (mine, 0, 9000)
