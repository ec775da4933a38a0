"""Scan windows: how far they reach, which areas and pages they mark, per release; by hand.

Task 0 is alone on node 0 and does the scanning. Memory is on node 1 unless said otherwise, so that rules about
local pages stay out of the way. S is 256 MB: 65536 pages, 128 blocks of 2 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from numalab.layout import BASE, FOLIO, HUGE
from numalab.model.scan import scan_window
from numalab.model.state import State
from tests.model.small import counted, place, state_of

S = 65536


def setting(kernel: str, **rest: Any) -> State:
    """One task, alone."""
    merged: dict[str, Any] = {"threads": 1, "home": 1, "node_pages": 1 << 24, **rest}
    state = state_of(kernel, **merged)
    return place(state, [0, 2, 1, 3][: state.layout.tasks])


def areas(kernel: str, count: int, *, blocks: int = 4, block_pages: int = 1, kind: int = BASE, **rest: Any) -> State:
    """So many areas of one process, alike but for what ``rest`` says."""
    pages = blocks * block_pages
    each: dict[str, Any] = {
        "region_first": [g * blocks for g in range(count)],
        "region_blocks": [blocks] * count,
        "region_block_pages": [block_pages] * count,
        "region_kind": [kind] * count,
        "block_node": [1] * (count * blocks),
        "vma_process": [0] * count,
        "vma_region": range(count),
        "vma_start": [512 + g * (-(-pages // 512) + 1) * 512 for g in range(count)],
        "vma_pages": [pages] * count,
        "vma_pte": [g * blocks for g in range(count)],
    }
    flags = {
        "region_file": False, "region_exec": False, "region_dirty": False, "vma_read": True, "vma_write": True,
        "vma_shared": False, "vma_cow": True, "vma_mof": True, "vma_scannable": True, "vma_migratable": True,
        "vma_pte_write": True, "vma_pinned": False,
    }  # fmt: skip
    return setting(kernel, **{**each, **{name: [value] * count for name, value in flags.items()}, **rest})


def window(state: State, now: int = 10_000, t: int = 0) -> tuple[int, int]:
    """Pages looked at, and marked."""
    return scan_window(state, 0, t, int(state.layout.task_process[t]), now)


def marked(state: State) -> list[int]:
    """Trapped PTE blocks of each area."""
    return [int(n) for n in state.pending[0]]


# ---------------------------------------------------------------- how far
@pytest.mark.parametrize("kernel", ["3.14", "3.17", "4.15", "6.18"])
def test_a_gigabyte_takes_four_windows(kernel: str) -> None:
    """The fourth ends with the area; that the list has ended shows at the start of the fifth."""
    state = setting(kernel, blocks=512, block_pages=512)
    for n in range(1, 5):
        assert window(state) == (S, S)
        assert (state.offset[0, 0], state.seq[0, 0]) == (512 + n * S, 0)
    assert counted(state) == {"numa_pte_updates": 4 * S}
    looked, fresh = window(state)
    assert (looked, fresh, state.seq[0, 0]) == (4 * S, 0, 2)  # all trapped already: at no charge, to the end again


@pytest.mark.parametrize(("kernel", "looked", "seq"), [("4.1", 16 * S, 1), ("4.15", 8 * S, 0), ("6.18", 8 * S, 0)])
def test_address_space_that_yields_nothing(kernel: str, looked: int, seq: int) -> None:
    """4 GB, all trapped: free until 4.1, at most 8 S later."""
    state = setting(kernel, blocks=2048, block_pages=512)
    state.trapped[:], state.pending[:] = True, 2048
    assert window(state) == (looked, 0)
    assert state.seq[0, 0] == seq


@pytest.mark.parametrize(("kernel", "looked"), [("3.16", S), ("4.1", S), ("4.15", 4 * S), ("6.18", 4 * S)])
def test_what_one_marked_page_does_to_the_budget(kernel: str, looked: int) -> None:
    """A 1 GB area with one fresh page in its first 2 MB, in windows of 2 MB chunks: from that page on everything is
    charged until 4.1; later only the chunk (S at first, so 1 GB - S is left for nothing)."""
    state = setting(kernel, blocks=512, block_pages=512)
    state.trapped[:], state.pending[:] = True, 511
    state.trapped[:, 0] = False
    assert window(state) == (looked if looked == S else S, 512)
    assert (state.offset[0, 0], state.seq[0, 0]) == (512 + S, 0)


@pytest.mark.parametrize(("kernel", "looked"), [("3.16", S), ("4.1", S), ("4.15", 3 * S), ("6.18", 3 * S)])
def test_the_next_area_pays_for_the_first(kernel: str, looked: int) -> None:
    """128 MB fresh, then areas of 128 MB trapped already: S in all until 4.1, later the rest is free: five areas."""
    state = areas(kernel, 6, blocks=64, block_pages=512)
    state.trapped[:, 64:], state.pending[:, 1:] = True, 64
    assert window(state) == (looked, S // 2)
    assert state.seq[0, 0] == (looked == 3 * S)


def test_windows_end_at_two_megabytes() -> None:
    """1 MB is 256 pages, but the end is rounded up to a multiple of 512."""
    state = setting("6.18", blocks=2048, params={"scan_size_mb": 1})
    assert window(state) == (512, 512)
    state = setting("6.18", blocks=2048, params={"scan_size_mb": 3})
    assert window(state) == (1024, 1024)
    assert state.offset[0, 0] == 512 + 1024


def test_a_gap_is_stepped_over_and_the_end_starts_again() -> None:
    state = areas("4.15", 2)
    assert window(state) == (8, 8)
    assert (state.offset[0, 0], state.seq[0, 0]) == (0, 1)
    state.offset[:] = 512 + 4  # the end of the first
    state.trapped[:], state.pending[:] = False, 0
    window(state)
    assert marked(state) == [0, 4]


# ---------------------------------------------------------------- which areas
@pytest.mark.parametrize(
    ("kernel", "hugetlb"), [("3.16", 4), ("4.0", 4), ("4.1", 0), ("4.15", 0), ("6.18", 0)]
)
def test_areas_left_out(kernel: str, hugetlb: int) -> None:
    """Plain; IO; no policy for it; hugetlb or mixed; file read-only; no access; anonymous read-only; file writable."""
    state = areas(
        kernel, 8,
        vma_migratable=[True, False, *[True] * 6],
        vma_mof=[True, True, False, *[True] * 5],
        vma_scannable=[True, True, True, False, *[True] * 4],
        region_file=[False] * 4 + [True, False, False, True],
        vma_write=[True] * 4 + [False, False, False, True],
        vma_read=[True] * 5 + [False, True, True],
    )  # fmt: skip
    window(state)
    file = 0 if kernel == "6.18" and False else 4
    assert marked(state) == [4, 0, 0, hugetlb, 0, 0, 4, file]


#: private (copy-on-write) pages: mapped twice; once; once, of a file; once, pinned; a folio, mapped once; huge, twice
COW = [(2, {}), (1, {}), (1, {"region_file": [True]}), (1, {"vma_pinned": [True]}), (1, {"kind": FOLIO}), (2, {"kind": HUGE})]


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
        state = state_of("4.15", threads=1, switches=switches, **several)
        assert window(place(state, range(6))) == expected


# ---------------------------------------------------------------- which pages
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
