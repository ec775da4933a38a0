"""Why a page does not come though it should: rate limit, watermark, kind of page; by hand.

Two nodes; task 0 on node 0, memory on node 1 and never used, so that every page may come on the first fault.
"""

from __future__ import annotations

from typing import Any

import pytest

from numalab.layout import HUGE
from numalab.model.state import State
from tests.model.small import counted, fault_on
from tests.model.test_fault_effects import setting, shared


def migrated(state: State, *blocks: int) -> list[bool]:
    taken = fault_on(state, *((0, block) for block in blocks))
    assert (taken.failed == ~taken.migrated).all()
    return [bool(x) for x in taken.migrated]


def test_rate_limit() -> None:
    """At most 8 pages may have been counted before: 0, 4, 8 pass and count, 12 does not. Now is 1 ms, so the window
    ends after 101 ms."""
    state = setting("4.15", block_pages=4, switches={"migrate_ratelimit_pages": 8})
    assert migrated(state, 0, 1, 2, 3) == [True, True, True, False]
    assert (state.rate_end_ms[0, 0], state.rate_count[0, 0]) == (101, 12)
    assert counted(state)["migrate_refused"] == 4
    for ms, expected in ((101, [False]), (102, [True])):
        state.step_index[:] = ms - 1
        assert migrated(state, ms - 97) == expected
    assert (state.rate_end_ms[0, 0], state.rate_count[0, 0]) == (202, 4)


def test_rate_limit_until_4_18() -> None:
    """32768 pages pass 128 MB: 64 huge pages and one, as the count is taken before."""
    huge = {"blocks": 70, "kind": HUGE, "block_pages": 512}
    assert migrated(setting("4.15", **huge), *range(70)) == [True] * 65 + [False] * 5
    assert migrated(setting("4.19", **huge), *range(70)) == [True] * 70


def test_watermark() -> None:
    """Free pages less 4 must reach the watermark of 10. What is refused counts for the rate limit all the same."""
    for free, expected in ((13, False), (14, True)):
        state = setting("4.15", block_pages=4, node_watermark=[10, 0])
        state.free[0, 0] = free
        assert migrated(state, 0) == [expected]
        assert state.rate_count[0, 0] == 4
        assert counted(state).get("pgmigrate_fail", 0) == 0  # as in the kernel: refusals show nowhere


def test_a_node_that_fills_up() -> None:
    """First come, first served; down to the last page, as the watermark is 0 here."""
    state = setting("4.19", block_pages=4)
    state.free[0, 0] = 8
    assert migrated(state, 0, 1, 2) == [True, True, False]
    assert state.free[0, 0] == 0


@pytest.mark.parametrize(
    ("kernel", "flags", "processes", "expected"),
    [
        # text mapped by several stays
        ("3.16", {"region_file": [True], "region_exec": [True]}, 2, False),
        ("6.18", {"region_file": [True], "region_exec": [True]}, 2, False),
        ("4.15", {"region_file": [True], "region_exec": [True]}, 1, True),
        ("4.15", {"region_file": [True]}, 2, True),
        ("4.15", {"region_exec": [True]}, 2, True),
        # dirty file pages stay since 4.17
        ("4.15", {"region_file": [True], "region_dirty": [True]}, 1, True),
        ("4.19", {"region_file": [True], "region_dirty": [True]}, 1, False),
        ("4.19", {"region_file": [False], "region_dirty": [True]}, 1, True),
        # huge pages of several stay: until 5.12 a reference more than expected tells of them
        ("4.15", {"kind": HUGE, "block_pages": 512}, 2, False),
        ("4.15", {"kind": HUGE, "block_pages": 512}, 1, True),
        ("6.1", {"kind": HUGE, "block_pages": 512}, 2, False),
        ("6.1", {"kind": HUGE, "block_pages": 512}, 1, True),
        ("6.1", {"block_pages": 512}, 2, True),
    ],
)
def test_kinds_of_pages(kernel: str, flags: dict[str, Any], processes: int, expected: bool) -> None:
    state = shared(kernel, **flags) if processes == 2 else setting(kernel, **flags)
    assert migrated(state, 0) == [expected]
    limited = kernel in ("3.16", "4.15") and expected
    assert bool(state.rate_count[0, 0]) is limited  # refused before the rate limit: not counted


def test_isolation_fails() -> None:
    state = setting("4.15", params={"isolate_fail": 1000})
    assert migrated(state, 0, 1) == [False, False]
    assert state.rate_count[0, 0] == 2
    assert counted(state)["migrate_refused"] == 2
