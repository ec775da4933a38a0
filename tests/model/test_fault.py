"""The migration filter branch by branch, and who gets a page's last-user record; by hand.

Four nodes of two CPUs; task n sits on the first CPU of node n. Pages are on node 1 unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import pytest

from numalab.model.fault import should_migrate
from numalab.model.state import SHARED, State
from tests.model.small import at, band, counted, fault_on, give, last_used, place, state_of

RELEASES = ["3.14", "3.17", "4.1", "4.15", "4.19", "6.18"]


def setting(kernel: str, **rest: Any) -> State:
    return place(state_of(kernel, **{"nodes": 4, "threads": 4, "home": 1, **rest}), [0, 2, 4, 6])


def settled(kernel: str, **rest: Any) -> State:
    """Task 0 has a preferred node and five scan sequences behind it: no early exceptions."""
    state = setting(kernel, **rest)
    state.preferred[:, 0], state.seq_seen[:, 0] = 0, 5
    return state


def passes(state: State, last: tuple[int, int], source: int = 1) -> bool:
    """Ask for a fault of task 0 (node 0) on a page of ``source`` last used by (CPU, pid & 255)."""
    return bool(should_migrate(state, at(0), at(0), at(source), at(0), at(last[0]), at(last[1]))[0])


UNSET = (-1, -1)
MINE, OTHER = 1000 & 255, 1001 & 255


# ---------------------------------------------------------------- two stages, private
@pytest.mark.parametrize("kernel", RELEASES)
def test_two_stages(kernel: str) -> None:
    """The fault before must have come from this node too (CPUs 0 and 1), or there was none."""
    state = settled(kernel)
    assert passes(state, (0, MINE))
    assert passes(state, (1, OTHER))  # somebody else here: no group, so yes
    assert passes(state, UNSET)
    assert not passes(state, (2, OTHER))
    assert not passes(state, (2, MINE))  # even of its own


def test_early_private_pages_need_one_stage() -> None:
    """4.19: without a preferred node, or up to sequence 4, a page of its own or nobody's comes at once."""
    for kernel, early in (("4.15", False), ("4.19", True), ("6.18", True)):
        state = setting(kernel)
        assert passes(state, (2, MINE)) is early
        assert not passes(state, (2, OTHER))
        state.preferred[:, 0], state.seq_seen[:, 0] = 0, 4
        assert passes(state, (2, MINE)) is early
        state.seq_seen[:, 0] = 5
        assert not passes(state, (2, MINE))
        state.preferred[:, 0] = -1
        assert passes(state, (2, MINE)) is early


def test_pids_have_eight_bits() -> None:
    """1000 and 1256 look alike: a page of the other counts as own and passes where a group would object."""
    state = settled("4.15", task_pid=[1000, 1256, 1002, 1003])
    band(state, [0], active=[0])
    assert passes(state, (1, 1256 & 255))
    assert not passes(state, (1, 1002 & 255))
    last_used(state, 0, 1)
    assert fault_on(state, (0, 0)).private.tolist() == [True]


def test_deferral_of_3_14() -> None:
    """While it counts down, pages of others and nobody's stay; own ones come."""
    state = settled("3.14")
    state.deferred[:, 0] = 1
    assert not passes(state, (1, OTHER))
    assert not passes(state, UNSET)
    assert passes(state, (0, MINE))
    state.deferred[:, 0] = 0
    assert passes(state, (1, OTHER))


# ---------------------------------------------------------------- groups
@pytest.mark.parametrize(
    ("active", "source", "target", "expected"),
    [
        ([1], 500, 0, False),  # target not active: no
        ([0], 0, 500, True),  # source not active: yes
        ([0, 1], 101, 74, True),  # less than 3*101/4 = 75
        ([0, 1], 101, 75, False),
    ],
)
def test_memory_filter(active: list[int], source: int, target: int, expected: bool) -> None:
    for kernel in ("3.16", "3.17", "4.1"):
        state = settled(kernel)
        give(state, 0, [target, source, 0, 0])
        band(state, [0], active=active)
        assert passes(state, (1, OTHER)) is expected
        assert passes(state, (0, MINE))  # own pages do not ask the group


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ((31, 10), (900, 1), True),  # more than three times the CPU faults: whatever the memory
        ((30, 10), (900, 1), False),
        ((10, 10), (29, 40), True),  # 10*40*3 = 1200 > 10*29*4 = 1160
        ((10, 10), (30, 40), False),  # 1200 = 1200
        ((0, 0), (0, 0), False),
    ],
)
def test_cpu_memory_filter(cpu: tuple[int, int], memory: tuple[int, int], expected: bool) -> None:
    """Pairs are (target, source)."""
    for kernel in ("4.15", "4.19", "6.18"):
        state = settled(kernel)
        give(state, 0, [*memory, 0, 0])
        state.cpuf[:, 0, :2, SHARED] = cpu
        band(state, [0])
        assert passes(state, (1, OTHER)) is expected


def test_without_a_group_filter_groups_do_not_matter() -> None:
    state = settled("3.14")
    give(state, 0, [900, 1, 0, 0])
    band(state, [0])
    assert passes(state, (1, OTHER))


# ---------------------------------------------------------------- the last user
def test_who_is_asked_replaces_the_last_user() -> None:
    """Remote faults always, refused or not; local ones until about 5.15."""
    for kernel, on_local in (("3.17", True), ("4.19", True), ("5.19", False), ("6.18", False)):
        state = settled(kernel)
        last_used(state, 0, 2)
        taken = fault_on(state, (0, 0))  # refused by the two stages
        assert (taken.migrated.any(), taken.failed.any()) == (False, False)
        assert (taken.other_cpu.tolist(), taken.other_pid.tolist()) == ([4], [1002 & 255])
        assert (state.last_cpu[0, 0], state.last_pid[0, 0]) == (0, MINE)
        fault_on(state, (1, 1))  # task 1 is where the page is
        assert bool(state.last_cpu[0, 1] == 2) is on_local


def test_the_second_fault_from_a_node_migrates() -> None:
    """4 pages: hint faults count pages, and so do migrations; free pages change sides."""
    state = settled("4.15", block_pages=4)
    last_used(state, 0, 2)
    free = state.free[0].copy()
    fault_on(state, (0, 0))
    assert state.node[0, 0] == 1
    taken = fault_on(state, (0, 0))
    assert (taken.migrated.tolist(), taken.memory.tolist(), taken.local.tolist()) == ([True], [0], [False])
    assert state.node[0, 0] == 0
    assert (state.free[0] - free).tolist() == [-4, 4, 0, 0]
    assert state.region_node_pages[0, 0].tolist() == [4, 60, 0, 0]
    assert counted(state) == {
        "numa_hint_faults": 8, "minor_faults": 8, "numa_pages_migrated": 4, "pgmigrate_success": 4
    }  # fmt: skip
    assert fault_on(state, (0, 0)).local.tolist() == [True]
    assert counted(state)["numa_hint_faults_local"] == 4
    assert not state.trapped.any()
    assert state.pending.tolist() == [[0]]


def test_first_touches_and_own_pages_are_private() -> None:
    """Judged by the record before the fault."""
    state = settled("4.15")
    last_used(state, 1, 0)
    last_used(state, 2, 1)
    assert fault_on(state, (0, 0), (0, 1), (0, 2)).private.tolist() == [True, True, False]


def test_faults_on_one_page_come_one_after_the_other() -> None:
    """Two processes map one region: PTE blocks 0 and 16 are the same page. The second sees what the first did."""
    state = place(state_of("4.15", nodes=4, processes=2, threads=1, home=1, shared_region=True), [0, 4])
    taken = fault_on(state, (0, 0), (1, 16))
    assert taken.private.tolist() == [True, False]
    assert (taken.migrated.tolist(), taken.memory.tolist()) == ([True, False], [0, 0])  # page now on node 0
    assert (state.last_cpu[0, 0], state.last_pid[0, 0]) == (4, 1001 & 255)


def test_no_migration_to_a_node_without_memory() -> None:
    """Since 6.14 not asked, so the last user stays too; before, the node was asked and is full."""
    for kernel, stays in (("6.5", False), ("6.14", True)):
        state = settled(kernel, node_pages=[0, 1 << 20, 1 << 20, 1 << 20])
        taken = fault_on(state, (0, 0))
        assert not taken.migrated.any()
        assert taken.failed.tolist() == [not stays]
        assert bool(state.last_cpu[0, 0] == -1) is stays
