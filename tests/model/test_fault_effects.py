"""What faults do besides: who may group, lost write permissions, kinds of pages; by hand.

Two nodes; task 0 on node 0, memory on node 1 and never used, so that every page may come on the first fault.
"""

from __future__ import annotations

from typing import Any

import pytest

from numalab.layout import BASE, FOLIO, HUGE
from numalab.model.state import State
from tests.model.small import counted, fault_on, last_used, place, state_of


def setting(kernel: str, **rest: Any) -> State:
    return place(state_of(kernel, **{"home": 1, "write": 0, **rest}), [0, 2])


def shared(kernel: str, **rest: Any) -> State:
    """Two processes of one task that map one region."""
    return setting(kernel, processes=2, threads=1, shared_region=True, **rest)


# ---------------------------------------------------------------- flags
@pytest.mark.parametrize(
    ("kernel", "private", "private_lost", "shared_lost"),
    [
        ("3.19", False, True, True),  # PTE not writable
        ("4.0-rc1", True, True, True),  # any private mapping, or PTE not writable
        ("4.0-rc4", False, False, False),  # PTE not dirty: these were written once
        ("4.0", False, False, False),  # mapping not writable
        ("4.15", False, True, True),
    ],
)
def test_who_may_not_group(kernel: str, private: bool, private_lost: bool, shared_lost: bool) -> None:
    """Of a writable mapping: private with a writable PTE; private, or shared, with a PTE that lost the right."""
    for state, lost, expected in (
        (setting(kernel), False, private),
        (setting(kernel), True, private_lost),
        (shared(kernel), True, shared_lost),
    ):
        state.pte_write[:] = not lost
        assert fault_on(state, (0, 0)).no_group.tolist() == [expected]


def test_read_only_mappings_and_clean_pages() -> None:
    assert fault_on(setting("4.0", vma_write=[False]), (0, 0)).no_group.tolist() == [True]
    state = setting("4.0-rc4")
    state.pte_dirty[:] = False
    assert fault_on(state, (0, 0)).no_group.tolist() == [True]


@pytest.mark.parametrize(
    ("kernel", "kind", "expected"), [("4.15", BASE, True), ("6.1", HUGE, False), ("6.14", HUGE, True)]
)
def test_shared_faults(kernel: str, kind: int, expected: bool) -> None:
    """A page of a shared mapping with several mappings; huge ones only since 6.14."""
    pages = {"kind": kind, "block_pages": 512 if kind == HUGE else 1}
    assert fault_on(shared(kernel, **pages), (0, 0)).shared.tolist() == [expected]
    assert fault_on(shared(kernel, vma_shared=[False] * 2, **pages), (0, 0)).shared.tolist() == [False]
    assert fault_on(setting(kernel, vma_shared=[True], **pages), (0, 0)).shared.tolist() == [False]


# ---------------------------------------------------------------- kinds of PTEs
@pytest.mark.parametrize(("kernel", "accounted"), [("4.15", False), ("6.1", False), ("6.14", True)])
def test_large_folios(kernel: str, accounted: bool) -> None:
    """Before 6.14 the fault happens and costs, but counts nowhere and moves nothing."""
    state = setting(kernel, kind=FOLIO, block_pages=16)
    state.trapped[0, 0], state.pending[0, 0] = True, 1
    if accounted:
        assert fault_on(state, (0, 0)).k.tolist() == [16]
        assert counted(state) == {
            "numa_hint_faults": 1, "minor_faults": 1, "numa_pages_migrated": 16, "pgmigrate_success": 16
        }  # fmt: skip
    else:
        with pytest.raises(AssertionError):  # nothing to account
            fault_on(state, (0, 0))
        assert counted(state) == {"minor_faults": 1}
        assert state.debt_ns[0, 0] == 1200
    assert not state.trapped.any()


def test_a_huge_page_is_one_fault_and_512_pages() -> None:
    state = setting("4.15", kind=HUGE, block_pages=512)
    assert (fault_on(state, (0, 0)).c.tolist(), counted(state)["numa_pages_migrated"]) == ([1], 512)


def test_a_lost_write_permission_costs_a_second_fault() -> None:
    """All touches write. The second fault brings the right back and, on a page of its own, forgets the last user."""
    for pages, forgets in ({"block_pages": 4}, True), ({"block_pages": 512, "kind": HUGE}, False):
        state = setting("4.0-rc4", write=1000, **pages)
        state.pte_write[:] = state.pte_dirty[:] = False
        taken = fault_on(state, (0, 0))
        c = 1 if "kind" in pages else 4
        assert taken.wrote.tolist() == [True]
        assert (counted(state)["numa_hint_faults"], counted(state)["minor_faults"]) == (c, 2 * c)
        assert state.pte_write[0, 0] == state.pte_dirty[0, 0] == 1
        assert bool(state.last_cpu[0, 0] == -1) is forgets
        assert fault_on(state, (0, 0)).wrote.tolist() == [False]  # kept from now on


def test_without_the_forgetting_the_last_user_stays() -> None:
    state = setting("4.0-rc4", write=1000, switches={"wp_fault_resets_cpupid": False})
    state.pte_write[:] = False
    fault_on(state, (0, 0))
    assert state.last_cpu[0, 0] == 0
    state = shared("4.0-rc4", write=1000)  # mapped twice: not reused in place
    state.pte_write[:] = False
    fault_on(state, (0, 0))
    assert state.last_cpu[0, 0] == 0


def test_a_failed_migration_drops_the_right_in_6_14() -> None:
    for kernel, lost in (("6.1", False), ("6.14", True)):
        state = setting(kernel)
        state.free[0, 0] = 0
        fault_on(state, (0, 0))
        assert state.pte_write[0, 0] == (not lost)


def test_faults_are_remembered_by_pid() -> None:
    """Bit (pid * 0x61C88647 mod 2**32) >> 26 of the area, since 6.4."""
    bits = sum(1 << ((pid * 0x61C88647 & 0xFFFFFFFF) >> 26) for pid in (1000, 1001))
    for kernel, expected in (("6.1", 0), ("6.5", bits), ("6.18", bits)):
        state = setting(kernel)
        fault_on(state, (0, 0), (1, 1))
        assert (int(state.pids1[0, 0]), int(state.pids0[0, 0])) == (expected, 0)
        last_used(state, 0, None)
