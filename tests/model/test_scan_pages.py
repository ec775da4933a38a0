"""Which pages a scan window marks, per release; by hand. Task 0 on node 0 scans, memory is on node 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from numalab.layout import FOLIO, HUGE
from tests.model.small import counted, place, state_of
from tests.model.test_scan import marked, setting, window

#: private (copy-on-write) pages: mapped twice; once; once, of a file; once, pinned; a folio, mapped once; huge, twice
COW = [
    (2, {}),
    (1, {}),
    (1, {"region_file": [True]}),
    (1, {"vma_pinned": [True]}),
    (1, {"kind": FOLIO}),
    (2, {"kind": HUGE}),
]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("3.17", [1, 1, 1, 1, 1, 1]),
        ("4.15", [1, 1, 1, 1, 1, 1]),
        ("4.16", [0, 1, 1, 1, 1, 1]),  # 859d4adc3415: mapcount is 1
        ("4.19", [0, 1, 1, 1, 1, 1]),
        ("5.19", [0, 1, 0, 0, 0, 1]),  # page_count is 1: the page cache and others hold references
        ("6.5", [0, 1, 0, 0, 0, 1]),
        ("6.14", [0, 1, 1, 0, 1, 1]),  # not pinned and not mapped by several
        ("6.18", [0, 1, 1, 0, 1, 1]),
    ],
)
def test_shared_copy_on_write_pages(kernel: str, expected: Sequence[int]) -> None:
    got = []
    for mapped, flags in COW:
        rest: dict[str, Any] = {"blocks": 1, "block_pages": 512 if flags.get("kind") == HUGE else 16, **flags}
        if mapped == 2:
            rest |= {"processes": 2, "shared_region": True, "vma_shared": [False] * 2, "vma_cow": [True] * 2}
        state = setting(kernel, **rest)
        window(state)
        got.append(marked(state)[0])
    assert got == expected


def test_shared_mappings_are_no_copies() -> None:
    """Mapped twice, but not copy-on-write: marked in every release."""
    for kernel in ("4.15", "4.16", "5.19", "6.14", "6.18"):
        state = setting(kernel, processes=2, shared_region=True)
        assert window(state) == (16, 16)


def test_proposals_about_shared_copies() -> None:
    """At most five mappers; or the rest of the area with the first such page: 16 pages are looked at, or 1."""
    several = {"processes": 6, "cpus": 3, "shared_region": True, "vma_shared": [False] * 6, "vma_cow": [True] * 6}
    for switches, expected in (
        ({"cow_max_mappers": 5}, (16, 0)),
        ({"cow_max_mappers": 6}, (16, 16)),
        ({"skip_shared_cow": "mapcount"}, (16, 0)),
        ({"skip_shared_cow": "mapcount", "cow_skip_rest_of_vma": True}, (1, 0)),
    ):
        state = state_of("4.15", threads=1, home=1, switches=switches, **several)
        assert window(place(state, range(6))) == expected


def test_dirty_file_pages() -> None:
    for kernel, expected in (("4.15", 16), ("4.19", 0), ("6.18", 0)):
        state = setting(kernel, region_file=[True], region_dirty=[True], vma_shared=[True], vma_cow=[False])
        assert window(state) == (16, expected)


def test_local_pages_of_a_single_thread() -> None:
    """Since 4.15 only pages elsewhere, of private memory with one user; huge pages know no such rule."""
    local_half = {"block_node": [0] * 8 + [1] * 8, "home": None}
    for kernel, expected in (("4.1", 16), ("4.15", 8), ("6.18", 8)):
        state = setting(kernel, **local_half)
        window(state)
        assert marked(state) == [expected]
        assert bool(state.trapped[0, 0]) is (expected == 16)
    for rest in ({"threads": 2}, {"vma_shared": [True]}, {"kind": HUGE, "block_pages": 512}):
        state = setting("6.18", **local_half, **rest)
        window(state)
        assert marked(state) == [16]


def test_what_is_trapped_is_not_marked_again() -> None:
    state = setting("6.18")
    state.trapped[:, :5], state.pending[:] = True, 5
    assert window(state) == (16, 11)
    assert counted(state) == {"numa_pte_updates": 11}


def test_a_huge_page_counts_512_and_costs_one() -> None:
    state = setting("6.18", kind=HUGE, block_pages=512)
    assert window(state) == (16, 16)
    assert counted(state) == {"numa_pte_updates": 16 * 512, "numa_huge_pte_updates": 16}


def test_the_write_permission() -> None:
    """Lost by marking in the release candidates of 4.0 only."""
    for kernel, kept in (("3.19", True), ("4.0-rc1", False), ("4.0-rc4", False), ("4.0", True), ("6.18", True)):
        state = setting(kernel)
        state.trapped[:, 0], state.pending[:] = True, 1
        window(state)
        assert np.unique(state.pte_write[0, 1:]).tolist() == [kept]
        assert state.pte_write[0, 0]  # not marked by this window
