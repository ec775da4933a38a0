"""Scan windows: how far they reach, which areas and pages they mark, per release; by hand.

Task 0 is alone on node 0 and does the scanning. Memory is on node 1 unless said otherwise, so that rules about
local pages stay out of the way. S is 256 MB: 65536 pages, 128 blocks of 2 MB.
"""

from __future__ import annotations

from typing import Any

import pytest

from numalab.layout import BASE
from numalab.model.scan import begin
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
        "vma_hole": [0] * count,
        "vma_pte": [g * blocks for g in range(count)],
    }
    flags = {
        "region_file": False, "region_exec": False, "region_dirty": False, "vma_read": True, "vma_write": True,
        "vma_shared": False, "vma_cow": True, "vma_mof": True, "vma_scannable": True, "vma_migratable": True,
        "vma_pte_write": True, "vma_pinned": False,
    }  # fmt: skip
    return setting(kernel, **{**each, **{name: [value] * count for name, value in flags.items()}, **rest})


def window(state: State, now: int = 10_000) -> tuple[int, int]:
    """Pages looked at, and marked, by task 0 at a time in ms; told from what they cost."""
    state.step_index[0] = now * 10**6 // state.dt - 1
    state.par.pte_scan_ns[0], state.par.pte_update_ns[0] = 1, 1 << 30
    scan = begin(state, 0, 0, int(state.layout.task_process[0]))
    scan.time = 1 << 60
    assert list(scan.course) == []
    return scan.spent % (1 << 30), scan.spent >> 30


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


def test_a_stack_counts_with_the_space_it_may_grow_into() -> None:
    """Stacks of 8 MB with two pages each: 32 of them fill a window of 256 MB, 64 pages are looked at."""
    space = {"vma_pages": [2048] * 40, "vma_hole": [2046] * 40, "vma_start": [512 + g * 2560 for g in range(40)]}
    state = areas("4.15", 40, blocks=2, **space)
    assert state.fix.rss[0] == 80
    assert window(state) == (64, 64)
    assert marked(state) == [2] * 32 + [0] * 8
    assert (state.offset[0, 0], state.seq[0, 0]) == (512 + 31 * 2560 + 2048, 0)
    assert window(state) == (16, 16)
    assert state.seq[0, 0] == 1


def test_a_gap_is_stepped_over_and_the_end_starts_again() -> None:
    state = areas("4.15", 2)
    assert window(state) == (8, 8)
    assert (state.offset[0, 0], state.seq[0, 0]) == (0, 1)
    state.offset[:] = 512 + 4  # the end of the first
    state.trapped[:], state.pending[:] = False, 0
    window(state)
    assert marked(state) == [0, 4]


# ---------------------------------------------------------------- which areas
@pytest.mark.parametrize(("kernel", "hugetlb"), [("3.16", 4), ("4.0", 4), ("4.1", 0), ("4.15", 0), ("6.18", 0)])
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
    assert marked(state) == [4, 0, 0, hugetlb, 0, 0, 4, 4]
