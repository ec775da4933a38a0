"""Workloads: what is compiled for the engine, derived by hand, and what is refused."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab.compile import compile_layout
from numalab.layout import FOLIO, HUGE, RANDOM, SEQUENTIAL, Layout
from numalab.machine import Machine, Node, machine
from numalab.records import DescriptionError
from numalab.simulation import simulate
from numalab.workload import Access, Binding, Processes, Region, Workload
from numalab.workloads import (
    NAMED,
    follow,
    hackbench,
    jvm,
    numa01,
    numa01_thread_alloc,
    numa02,
    numa02_smt,
    perf_bench_numa,
    shared_cow,
    workload,
    wrong_node,
    xfs_repair,
)

TWO = Machine.uniform(2, 2, 64, 21, watermark_mb=0)
FOREVER = np.iinfo(np.int64).max
TOUCH = 'a node id, a list of node ids, "rr", "main", "parent", "self", "process" or "spread"'


def compiled(
    *regions: Region,
    on: Machine = TWO,
    processes: tuple[Processes, ...] = (Processes("a"),),
    **rest: Any,
) -> Layout:
    return compile_layout(on, Workload("w", processes, regions, **rest))


# ------------------------------------------------------------------ the machine's part


def test_machine_arrays() -> None:
    nodes = (Node(0, 4, 8, llcs=2, reserved_mb=1), Node(2, 0, 4), Node(5, 2, 0))
    on = Machine("m", nodes, ((10, 20, 21), (20, 10, 22), (21, 22, 10)), smt=2, watermark_mb=0.5)
    layout = compiled(Region("r", 1, first_touch=0), on=on)
    assert layout.node_id.tolist() == [0, 2, 5]
    assert layout.distance.tolist() == [[10, 20, 21], [20, 10, 22], [21, 22, 10]]
    assert layout.node_pages.tolist() == [2048, 1024, 0]
    assert layout.node_reserved.tolist() == [256, 0, 0]
    assert layout.node_watermark.tolist() == [128, 128, 0]
    assert layout.node_llcs.tolist() == [2, 1, 1]
    # Node 0 has cores 0 and 1, each met twice; node 5 has core 2 with two threads.
    assert layout.cpu_node.tolist() == [0, 0, 0, 0, 2, 2]
    assert layout.cpu_core.tolist() == [0, 1, 0, 1, 2, 2]
    assert layout.smt == 2


# ------------------------------------------------------------------ tasks, VMAs, blocks


def test_tasks_and_pids() -> None:
    groups = (Processes("a", 2, 3, demand=500, start_ms=1, stagger_ms=0.5), Processes("b", single_node=True))
    layout = compiled(Region("r", 1), processes=groups)
    assert layout.task_process.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert layout.task_pid.tolist() == [1000, 1001, 1002, 1003, 1004, 1005, 1006]
    assert layout.task_demand.tolist() == [500] * 6 + [1000]
    assert layout.task_start_ns.tolist() == [1_000_000] * 3 + [1_500_000] * 3 + [0]
    assert layout.process_single_node.tolist() == [False, False, True]


def test_addresses_and_ptes() -> None:
    regions = (
        Region("process", 3),
        Region("thread", 1, scope="thread"),
        Region("all", 1, scope="all", kind="shmem"),
    )
    layout = compiled(*regions, processes=(Processes("a", 2, 2),))
    # Regions: 2 x 768 pages, 4 x 256, 1 x 256; single pages below 64 MB.
    assert layout.region_blocks.tolist() == [768, 768, 256, 256, 256, 256, 256]
    assert layout.region_first.tolist() == [0, 768, 1536, 1792, 2048, 2304, 2560]
    assert layout.region_block_pages.tolist() == [1] * 7
    # 512 + 768 = 1280, next multiple 1536, a hole of 512: 2048; + 256 -> 2560 + 512 = 3072; -> 4096.
    assert layout.vma_start.tolist() == [512, 2048, 3072, 4096] * 2
    assert layout.vma_pages.tolist() == [768, 256, 256, 256] * 2
    assert layout.vma_process.tolist() == [0] * 4 + [1] * 4
    assert layout.vma_region.tolist() == [0, 2, 3, 6, 1, 4, 5, 6]
    assert layout.vma_pte.tolist() == [0, 768, 1024, 1280, 1536, 2304, 2560, 2816]
    assert layout.blocks == 2816
    assert layout.pte_blocks == 3072


@pytest.mark.parametrize(
    ("region", "blocks", "pages"),
    [
        (Region("r", 63), 63 * 256, 1),
        (Region("r", 64), 32, 512),
        (Region("r", 65), 33, 512),
        (Region("r", 0.001), 1, 1),
        (Region("r", 1, block_kb=64), 16, 16),
        (Region("r", 3, pages="huge"), 2, 512),
        (Region("r", 1, pages="folio"), 16, 16),
        (Region("r", 1, pages="folio", block_kb=32), 32, 8),
    ],
)
def test_block_sizes(region: Region, blocks: int, pages: int) -> None:
    layout = compiled(region, on=Machine.uniform(2, 2, 128))
    assert layout.region_blocks.tolist() == [blocks]
    assert layout.region_block_pages.tolist() == [pages]
    assert layout.vma_pages.tolist() == [blocks * pages]
    assert layout.region_kind.tolist() == [{"base": 0, "huge": HUGE, "folio": FOLIO}[region.pages]]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # write, shared, cow, mof, PTE writable, file, exec, dirty
        ({"kind": "private"}, (1, 0, 1, 1, 1, 0, 0, 0)),
        ({"kind": "private", "policy": "explicit"}, (1, 0, 1, 0, 1, 0, 0, 0)),
        ({"kind": "private", "protection": "r"}, (0, 0, 1, 1, 0, 0, 0, 0)),
        ({"kind": "forked", "scope": "all"}, (1, 0, 1, 1, 0, 0, 0, 0)),
        ({"kind": "data", "scope": "all"}, (1, 0, 1, 1, 0, 1, 0, 0)),
        ({"kind": "data", "scope": "all", "dirty": True}, (1, 0, 1, 1, 0, 1, 0, 1)),
        # Shared memory without a policy is not scanned; with the flag in its policy it is.
        ({"kind": "shmem", "scope": "all"}, (1, 1, 0, 0, 1, 0, 0, 0)),
        ({"kind": "shmem", "scope": "all", "policy": "mof"}, (1, 1, 0, 1, 1, 0, 0, 0)),
        ({"kind": "shmem", "scope": "all", "policy": "explicit"}, (1, 1, 0, 0, 1, 0, 0, 0)),
        # Mapped read-only it is to the scanner a read-only file mapping.
        ({"kind": "shmem", "scope": "all", "protection": "r"}, (0, 1, 0, 0, 0, 1, 0, 0)),
        ({"kind": "file"}, (0, 0, 1, 1, 0, 1, 0, 0)),
        ({"kind": "file", "protection": "rx", "scope": "all"}, (0, 0, 1, 1, 0, 1, 1, 0)),
        ({"kind": "file-shared", "scope": "all"}, (1, 1, 0, 1, 0, 1, 0, 0)),
        ({"kind": "file-shared", "scope": "all", "dirty": True}, (1, 1, 0, 1, 1, 1, 0, 1)),
    ],
)
def test_flags_of_each_kind(fields: dict[str, Any], expected: tuple[int, ...]) -> None:
    layout = compiled(Region("r", 1, **fields))
    found = (
        layout.vma_write,
        layout.vma_shared,
        layout.vma_cow,
        layout.vma_mof,
        layout.vma_pte_write,
        layout.region_file,
        layout.region_exec,
        layout.region_dirty,
    )
    assert tuple(int(flags[0]) for flags in found) == expected
    assert layout.vma_read.all()


def test_odd_mappings() -> None:
    plain = compiled(Region("r", 1))
    assert (plain.vma_scannable.all(), plain.vma_migratable.all(), plain.vma_pinned.any()) == (True, True, False)
    odd = compiled(Region("r", 1, hugetlb_or_mixed=True, io_mapped=True, pinned=True, protection="none"))
    assert (odd.vma_scannable.any(), odd.vma_migratable.any(), odd.vma_pinned.all()) == (False, False, True)
    assert not odd.vma_read.any()


def test_written_part_of_a_copy_on_write_region_is_private() -> None:
    region = Region("d", 1, scope="all", kind="data", written=0.25, first_touch=1)
    access = Access("d", pages_per_s=1000)
    layout = compiled(region, processes=(Processes("a", 2),), accesses=(access,))
    # 256 pages: 192 shared, and 64 for each process, behind the shared part.
    assert layout.region_blocks.tolist() == [192, 64, 64]
    assert layout.region_file.tolist() == [True, False, False]
    assert layout.vma_region.tolist() == [0, 1, 0, 2]
    assert layout.vma_start.tolist() == [512, 1536, 512, 1536]
    assert layout.vma_pte_write.tolist() == [False, True, False, True]
    assert layout.block_node[:192].tolist() == [1] * 192
    # The copies lie where their owners run: tasks 0 and 1.
    assert layout.block_node[192:].tolist() == [-1] * 64 + [-2] * 64
    assert layout.access_rate.tolist() == [750, 250, 750, 250]


def test_regions_of_some_processes_only() -> None:
    groups = (Processes("a"), Processes("b", 2))
    regions = (Region("x", 1, processes=("b",)), Region("y", 1, processes=("a", "b"), scope="all", kind="forked"))
    layout = compiled(*regions, processes=groups)
    assert layout.vma_process.tolist() == [0, 1, 1, 2, 2]
    assert layout.vma_region.tolist() == [2, 0, 2, 1, 2]


# ------------------------------------------------------------------ first touch


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ({"first_touch": 3}, [1, 1, 1, 1, 1, 1]),
        ({"first_touch": [0, 0, 3]}, [0, 0, 1, 0, 0, 1]),
        ({"first_touch": "rr"}, [0, 1, 0, 0, 1, 0]),
        ({"first_touch": "process"}, [0, 0, 0, 1, 1, 1]),
        ({"first_touch": "spread"}, [0, 0, 0, 1, 1, 1]),
        ({"first_touch": "main"}, [-1, -1, -1, -3, -3, -3]),
        ({"first_touch": "parent"}, [-1] * 6),
        ({"first_touch": "self"}, [-1, -2, -1, -3, -4, -3]),
        ({"first_touch": "self", "scope": "all", "kind": "shmem"}, [-1, -2, -3]),
        ({"first_touch": "main", "scope": "all", "kind": "shmem"}, [-1, -1, -1]),
    ],
)
def test_first_touch_of_process_memory(region: dict[str, Any], expected: list[int]) -> None:
    on = Machine("m", (Node(0, 1, 8), Node(3, 1, 8)), ((10, 20), (20, 10)))
    region = {"name": "r", "size_mb": 3 * 4 / 1024, **region}
    layout = compiled(Region(**region), on=on, processes=(Processes("a", 2, 2),))
    assert layout.block_node.tolist() == expected


def test_first_touch_of_thread_memory() -> None:
    group = (Processes("a", 1, 4),)
    page = 4 / 1024
    # Thread i of 4 on node i * 2 // 4.
    spread = compiled(Region("r", page, scope="thread", first_touch="spread"), processes=group)
    assert spread.block_node.tolist() == [0, 0, 1, 1]
    own = compiled(Region("r", 2 * page, scope="thread"), processes=group)
    assert own.block_node.tolist() == [-1, -1, -2, -2, -3, -3, -4, -4]


def test_full_node_passes_on_to_the_nearest() -> None:
    # 4 MB nodes, high watermark 0.75 MB = 192 pages, so the low one is 160: 864 pages go on a node.
    on = Machine("m", tuple(Node(i, 1, 4) for i in range(3)), ((10, 30, 20), (30, 10, 20), (20, 20, 10)), 1, 0.75)
    layout = compiled(Region("r", 6, first_touch=0), on=on)
    assert np.bincount(layout.block_node).tolist() == [864, 0, 672]
    assert layout.block_node[:864].tolist() == [0] * 864
    # 2800 pages of 3072: 3 x 864 = 2592, the other 208 from the reserve: 160 on node 0, 48 on node 2.
    layout = compiled(Region("r", 2800 / 256, first_touch=0), on=on)
    assert np.bincount(layout.block_node).tolist() == [1024, 864, 912]


def test_node_without_memory_is_passed_over() -> None:
    on = Machine("m", (Node(0, 1, 0), Node(1, 1, 4), Node(2, 1, 4)), ((10, 22, 21), (22, 10, 20), (21, 20, 10)))
    assert set(compiled(Region("r", 1, first_touch=0), on=on).block_node) == {2}
    assert set(compiled(Region("r", 1, first_touch="rr"), on=on).block_node) == {1, 2}


def test_too_much_memory() -> None:
    with pytest.raises(DescriptionError, match="regions: expected at most 128 MB in all on machine 2x2, got 130 MB"):
        compiled(Region("r", 130))


def test_others_fill_the_nodes() -> None:
    on = Machine.uniform(2, 2, 64, watermark_mb=2, reserved_mb=1)
    layout = compiled(Region("r", 10, first_touch=1), on=on, free_mb=3)
    # 64 MB - 2 of watermark - 3 free, on node 1 less the 10 of the region.
    assert layout.node_reserved.tolist() == [59 * 256, 49 * 256]
    with pytest.raises(DescriptionError, match="free_mb: expected at most 51, what node 1 has left, got 52"):
        compiled(Region("r", 10, first_touch=1), on=on, free_mb=52)
    with pytest.raises(DescriptionError, match='free_mb: expected none with first_touch "main" or "self"'):
        compiled(Region("r", 10), on=on, free_mb=3)


# ------------------------------------------------------------------ accesses


def test_accesses_are_ordered_by_task() -> None:
    regions = (Region("p", 1), Region("t", 1, scope="thread"))
    accesses = (
        Access("t", rate_mbps=2, order="sequential", start=0.5, write=0.25, from_ms=1, until_ms=2.5),
        Access("p", pages_per_s=100, threads=(1,)),
    )
    layout = compiled(*regions, processes=(Processes("a", 2, 2),), accesses=accesses)
    assert layout.access_task.tolist() == [0, 1, 1, 2, 3, 3]
    # VMAs of process 0: p, t of thread 0, t of thread 1; process 1 the same from 3.
    assert layout.access_vma.tolist() == [1, 2, 0, 4, 5, 3]
    assert layout.access_rate.tolist() == [512, 512, 100, 512, 512, 100]
    assert layout.access_order.tolist() == [SEQUENTIAL, SEQUENTIAL, RANDOM] * 2
    assert layout.access_write.tolist() == [250, 250, 0, 250, 250, 0]
    assert layout.access_start.tolist() == [128, 128, 0, 128, 128, 0]
    assert layout.access_from_ns.tolist() == [1_000_000, 1_000_000, 0] * 2
    assert layout.access_until_ns.tolist() == [2_500_000, 2_500_000, FOREVER] * 2


def test_spread_starts() -> None:
    walk = Access("r", pages_per_s=1, order="sequential", start="spread")
    group = (Processes("a", 2, 2),)
    own = compiled(Region("r", 1), processes=group, accesses=(walk,))
    assert own.access_start.tolist() == [0, 128, 0, 128]
    shared = compiled(Region("r", 1, scope="all", kind="shmem"), processes=group, accesses=(walk,))
    assert shared.access_start.tolist() == [0, 64, 128, 192]


def test_reach_all_divides_the_rate() -> None:
    layout = compiled(
        Region("t", 1, scope="thread"),
        processes=(Processes("a", 1, 2),),
        accesses=(Access("t", pages_per_s=100, reach="all"),),
    )
    assert layout.access_task.tolist() == [0, 0, 1, 1]
    assert layout.access_vma.tolist() == [0, 1, 0, 1]
    assert layout.access_rate.tolist() == [50] * 4


def test_no_access_is_an_empty_table() -> None:
    layout = compiled(Region("r", 1))
    assert layout.access_task.shape == layout.access_until_ns.shape == (0,)
    assert layout.access_task.dtype == np.int64


# ------------------------------------------------------------------ bindings


def on_nodes(layout: Layout, phase: int = 0) -> list[list[int]]:
    """Return for each task the nodes of the CPUs it may use."""
    return [sorted(set(layout.cpu_node[mask])) for mask in layout.affinity[phase]]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("free", [[0, 1]] * 6),
        (1, [[1]] * 6),
        ([0, 1], [[0, 1]] * 6),
        ("process", [[0]] * 3 + [[1]] * 3),
        ("thread", [[0], [1], [0]] * 2),
        ("spread", [[0], [0], [1]] * 2),
        ("mirror", [[1], [0], [0]] * 2),
    ],
)
def test_where_threads_may_run(nodes: Any, expected: list[list[int]]) -> None:
    layout = compiled(Region("r", 1), processes=(Processes("a", 2, 3),), bindings=(Binding(nodes),))
    assert layout.affinity_ns.tolist() == [0]
    assert on_nodes(layout) == expected


def test_without_bindings_every_cpu() -> None:
    layout = compiled(Region("r", 1))
    assert layout.affinity.shape == (1, 1, 4)
    assert layout.affinity.all()


def test_later_bindings_hold_and_end() -> None:
    bindings = (
        Binding(0),
        Binding(cpus=(3,), processes=("b",), from_ms=5, until_ms=10),
        Binding("free", threads=(1,), from_ms=10),
    )
    groups = (Processes("a", 1, 2), Processes("b"))
    layout = compiled(Region("r", 1), processes=groups, bindings=bindings)
    assert layout.affinity_ns.tolist() == [0, 5_000_000, 10_000_000]
    zero, three, free = [1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]
    assert layout.affinity.astype(int).tolist() == [
        [zero, zero, zero],
        [zero, zero, three],
        [zero, free, zero],
    ]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Region("r", 0), "size_mb: expected a number > 0, got 0"),
        (lambda: Region("r", 1, scope="all"), 'scope: expected "process" or "thread" for kind "private"'),
        (lambda: Region("r", 1, written=0.5), 'written: expected 0 unless kind is "forked" or "data", got 0.5'),
        (lambda: Region("r", 1, dirty=True), 'dirty: expected false for kind "private", got true'),
        (lambda: Region("r", 1, block_kb=12), "block_kb: expected a power of two from 4 to 2048 (kB), got 12"),
        (lambda: Region("r", 1, pages="huge", block_kb=64), "block_kb: expected 2048 or none with huge pages, got 64"),
        (lambda: Region("r", 1, first_touch="selv"), f'first_touch: expected {TOUCH}, got "selv"'),
        (lambda: Region("r", 1, first_touch=()), f"first_touch: expected {TOUCH}, got []"),
        (lambda: Access("r"), "rate_mbps: expected exactly one of rate_mbps and pages_per_s, got neither"),
        (lambda: Access("r", 1, 1), "rate_mbps: expected exactly one of rate_mbps and pages_per_s, got both"),
        (lambda: Access("r", 1, from_ms=2, until_ms=2), "until_ms: expected more than from_ms = 2, got 2"),
        (lambda: Access("r", 1, write=2), "write: expected a number from 0 to 1, got 2"),
        (lambda: Binding(0, cpus=(1,)), "cpus: expected either nodes or cpus, got both"),
        (lambda: Binding(), 'nodes: expected nodes or cpus, got neither; "free" allows all CPUs'),
        (lambda: Binding(until_ms=1e12, nodes=0), "until_ms: expected at most 1,000,000,000, got 1000000000000.0"),
        (lambda: Processes("a", demand=1001), "demand: expected a whole number from 1 to 1000, got 1001"),
        (lambda: Workload("w", (), (Region("r", 1),)), "processes: expected at least one entry, got none"),
        (lambda: Workload("w", (Processes("a"),), ()), "regions: expected at least one entry, got none"),
        (lambda: compiled(Region("r", 1), Region("r", 1)), 'regions[1].name: expected a name of its own, "r" is taken'),
        (lambda: compiled(Region("r", 1, processes=("b",))), 'regions[0].processes: no processes "b"; known: a'),
        (
            lambda: compiled(Region("heap", 1), accesses=(Access("hep", 1),)),
            'accesses[0].region: no region "hep"; did you mean "heap"?',
        ),
        (
            lambda: compiled(Region("r", 1), accesses=(Access("r", 1, threads=(1,)),)),
            "accesses[0].threads: expected thread numbers below 1, got 1",
        ),
        (
            lambda: compiled(Region("r", 1), accesses=(Access("r", 1, reach="all"),)),
            'accesses[0].reach: expected "own": region "r" has scope "process", not "thread", got "all"',
        ),
        (
            lambda: compiled(Region("r", 1, kind="file"), accesses=(Access("r", 1, write=1),)),
            'accesses[0].write: expected 0: region "r" is mapped "r", got 1',
        ),
        (
            lambda: compiled(
                Region("r", 1, processes=("a",)),
                processes=(Processes("a"), Processes("b")),
                accesses=(Access("r", 1, processes=("b",)),),
            ),
            'accesses[0].processes: expected processes that map region "r" (a), got "b"',
        ),
        (
            lambda: compiled(Region("r", 1, first_touch=2)),
            "regions[0].first_touch: expected a node of 2x2 (0, 1), got 2",
        ),
        (
            lambda: compiled(Region("r", 1), bindings=(Binding(2),)),
            "bindings[0].nodes: expected a node of 2x2 (0, 1), got 2",
        ),
        (
            lambda: compiled(Region("r", 1), bindings=(Binding(cpus=(4,)),)),
            "bindings[0].cpus: expected CPUs below 4 on machine 2x2, got 4",
        ),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        make()
    assert message in str(caught.value)


def test_bound_to_a_node_without_cpus() -> None:
    on = Machine("m", (Node(0, 1, 8), Node(1, 0, 8)), ((10, 20), (20, 10)))
    with pytest.raises(DescriptionError, match=r"bindings\[0\]\.nodes: expected nodes with CPUs, got 1"):
        compiled(Region("r", 1), on=on, bindings=(Binding(1),))


# ------------------------------------------------------------------ named workloads

SMALL: dict[str, dict[str, Any]] = {
    "perf_bench_numa": {"p": 2, "t": 2, "P": 16, "T": 2, "G": 4},
    "hackbench": {"groups": 2},
    "jvm": {"threads": 4, "heap_mb": 64},
    "xfs_repair": {"bhash": 5000},
    "shared_cow": {"processes": 8, "written": 0.1},
    "numa01": {"size_mb": 100, "bind": "hard"},
    "numa01_thread_alloc": {"size_mb": 100},
    "numa02": {"size_mb": 100, "bind": "inverse"},
    "numa02_smt": {"size_mb": 100},
}


@pytest.mark.parametrize("name", NAMED)
def test_named_workloads_compile_and_round_trip(name: str) -> None:
    on = machine("guest-2x4")
    made = workload(name, on, **SMALL.get(name, {}))
    assert Workload.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    check_invariants(compile_layout(on, made), on)
    assert NAMED[name].summary.endswith((".", ":"))
    for parameter in NAMED[name].parameters:
        assert parameter in NAMED[name].doc


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"name": "numa03"}, 'no workload "numa03"; did you mean "numa0'),
        ({"name": "jvm"}, "threads: missing; expected a whole number >= 1"),
        ({"name": "jvm", "threads": 2, "heap": 3}, 'heap: unknown key; did you mean "heap_mb"?'),
        ({"name": "jvm", "threads": 0}, "threads: expected a whole number >= 1, got 0"),
        ({"name": "numa01", "bind": "soft"}, 'bind: expected one of none, hard, inverse, got "soft"'),
    ],
)
def test_named_workload_errors(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        workload(machine=TWO, **parameters)
    assert message in str(caught.value)


def test_perf_bench_numa() -> None:
    layout = compile_layout(machine("rik-4n80"), perf_bench_numa(8, 20))
    assert (layout.processes, layout.tasks, layout.regions) == (8, 160, 8)
    assert layout.region_blocks.tolist() == [500] * 8
    assert set(layout.block_node) == {0}
    assert set(layout.access_rate) == {500 * 256}
    # 3 + 1 MB: three quarters of 400 MB/s go to the process's memory.
    split = compile_layout(TWO, perf_bench_numa(1, 1, P=3, T=1, rate_mbps=400))
    assert split.access_rate.tolist() == [300 * 256, 100 * 256]
    # Global memory is MAP_SHARED without a policy: mapped by all, not scanned.
    shared = compile_layout(TWO, perf_bench_numa(2, 1, P=0, G=4))
    assert shared.vma_region.tolist() == [0, 0]
    assert not shared.vma_mof.any()


def test_shared_cow() -> None:
    layout = compile_layout(machine("oracle-8s288"), shared_cow())
    assert (layout.processes, layout.tasks, layout.vmas, layout.blocks) == (288, 288, 288, 977)
    assert layout.pte_blocks == 288 * 977
    # 4,000,000 bytes are 976.5625 pages, in 1.359 ms.
    assert set(layout.access_rate) == {718_589}
    assert set(layout.access_until_ns) == {10_000_000_000}
    assert layout.vma_cow.all()
    assert layout.vma_mof.all()
    assert layout.vma_write.all()
    assert not layout.vma_pte_write.any()
    assert layout.region_file.all()
    # 8 bits of the pids: 288 tasks share 256 values.
    assert len(set(layout.task_pid & 255)) == 256


def test_wrong_node_and_follow() -> None:
    layout = compile_layout(TWO, wrong_node())
    assert on_nodes(layout) == [[1]]
    assert set(layout.block_node) == {0}
    assert layout.blocks == 8192
    later = compile_layout(TWO, follow())
    huge = compile_layout(TWO, follow(size_mb=48, pages="huge"))
    assert huge.region_block_pages.tolist() == [512]
    assert huge.region_blocks.tolist() == [24]
    assert later.affinity_ns.tolist() == [0, 8_000_000_000]
    assert (on_nodes(later, 0), on_nodes(later, 1)) == ([[0]], [[1]])


def test_numa01_bounds() -> None:
    on = Machine.uniform(4, 2, 256)
    hard = compile_layout(on, numa01(on, size_mb=16, bind="hard"))
    assert (hard.processes, hard.tasks) == (2, 8)
    assert on_nodes(hard) == [[0, 1]] * 4 + [[2, 3]] * 4
    first = slice(0, hard.region_blocks[0])
    assert set(hard.block_node[first]) == {0, 1}
    assert not hard.vma_mof.any()
    inverse = compile_layout(on, numa01(on, size_mb=16, bind="inverse"))
    assert on_nodes(inverse) == [[0, 1]] * 4 + [[2, 3]] * 4
    assert set(inverse.block_node[first]) == {2, 3}
    free = compile_layout(on, numa01(on, size_mb=16))
    assert free.vma_mof.all()
    assert free.affinity.all()
    with pytest.raises(DescriptionError, match="bind: expected CPUs and memory in both halves"):
        numa01(Machine.uniform(1, 2, 64), bind="hard")


def test_numa01_thread_alloc() -> None:
    layout = compile_layout(TWO, numa01_thread_alloc(TWO, size_mb=16))
    # 2 processes x 2 threads, a slice of 8 MB each in blocks of 256 kB, page-interleaved.
    assert layout.region_blocks.tolist() == [32] * 4
    assert layout.access_vma.tolist() == [0, 1, 2, 3]
    assert layout.block_node[:4].tolist() == [0, 1, 0, 1]


def test_numa02_bounds() -> None:
    hard = compile_layout(TWO, numa02(TWO, size_mb=4, bind="hard"))
    assert on_nodes(hard) == [[0], [0], [1], [1]]
    slices = hard.block_node[hard.region_first]
    assert slices.tolist() == [0, 0, 1, 1]
    inverse = compile_layout(TWO, numa02(TWO, size_mb=4, bind="inverse"))
    assert on_nodes(inverse) == [[1], [1], [0], [0]]
    assert inverse.block_node.tolist() == hard.block_node.tolist()
    free = compile_layout(TWO, numa02_smt(TWO, size_mb=4))
    assert free.tasks == 2
    assert set(free.block_node) == {-1}


def test_hackbench_and_jvm() -> None:
    pipe = compile_layout(machine("ivb42"), hackbench(24))
    assert (pipe.processes, pipe.tasks) == (1, 960)
    assert set(pipe.task_demand) == {100}
    socket = compile_layout(machine("ivb42"), hackbench(24, "socket"))
    assert (socket.access_rate * 2 == pipe.access_rate).all()
    java = compile_layout(machine("ivb42"), jvm(2, heap_mb=64, rate_mbps=100, shared=0.75))
    assert java.access_rate.tolist() == [75 * 256, 25 * 256] * 2


def test_xfs_repair_leaves_little_room() -> None:
    on = machine("dave-4n16")
    layout = compile_layout(on, xfs_repair(phase3_ms=1000))
    used = np.bincount(layout.block_node, np.repeat(layout.region_block_pages, layout.region_blocks), minlength=4)
    free = layout.node_pages - layout.node_reserved - used
    assert (free - layout.node_watermark).tolist() == [4 * 256] * 4


def test_threads_of_xfs_repair_end_with_their_allocation_group() -> None:
    """300 s for 500 groups in each of two phases: 300 ms a group, 7 generations in two phases of 1.05 s."""
    layout = compile_layout(machine("dave-4n16"), xfs_repair(phase3_ms=1050))
    assert layout.tasks == 1 + 7 * 7
    ends = layout.task_end_ns[layout.task_end_ns < 10**15] // 10**6
    assert ends.tolist() == [life for life in range(300, 2000, 300) for _ in range(7)]
    assert layout.task_end_ns[0] > 10**15
    # without stride 34 groups at once, each 34 times as long
    (striding,) = xfs_repair(ag_stride=0, phase3_ms=10_200).processes
    assert (striding.threads, striding.lasting, striding.generations) == (34, 5, 2)
    assert striding.thread_life_ms == pytest.approx(10_200)


def test_threads_that_end_with_their_work() -> None:
    """Two threads of 5000 visits at 10,000 pages a second, both on one CPU: a second in all, to a step of 4 ms."""
    load = Workload(
        "w", (Processes("p", 1, 2, page_visits=5000),), (Region("r", 1),), (Access("r", pages_per_s=10_000),)
    )
    ds = simulate(Machine.uniform(1, 1, 64), load, "6.1", seconds=2, step_us=4000)
    assert float(ds.task_end_s[0, -1].max()) == pytest.approx(1.0, abs=0.02)
    assert (ds.task_work_pages[0, -1].values >= 5000).all()
    assert (ds.task_work_pages[0, -1].values <= 5000 + 40).all()  # at most the rest of the step
    assert ds.task_node[0, -1].values.tolist() == [-1, -1]
    with pytest.raises(DescriptionError, match="page_visits: expected 0 with several generations"):
        Processes("p", generations=2, thread_life_ms=5, page_visits=10)


def test_space_that_a_stack_may_grow_into() -> None:
    """8 MB with one page at the end, of each of two threads; the next mapping begins 512 pages behind."""
    stack = Region("stack", 1 / 256, scope="thread", reserved_mb=8 - 1 / 256)
    load = Workload("w", (Processes("p", 1, 2),), (stack, Region("r", 1)), (Access("r", pages_per_s=1),))
    layout = compile_layout(Machine.uniform(1, 1, 64), load)
    assert layout.vma_pages.tolist() == [2048, 2048, 256]
    assert layout.vma_hole.tolist() == [2047, 2047, 0]
    assert layout.vma_start.tolist() == [512, 512 + 2048 + 512, 512 + 2 * 2560]
    assert layout.blocks == 1 + 1 + 256


def test_threads_that_last() -> None:
    """Of 3 threads the first stays, the others are created twice; new ones take over what the old ones did."""
    load = Workload(
        "w",
        (Processes("p", 1, 3, start_ms=5, generations=2, thread_life_ms=100, lasting=1),),
        (Region("r", 1),),
        (Access("r", pages_per_s=1000), Access("r", pages_per_s=10, threads=(2,))),
    )
    layout = compile_layout(machine("guest-4x2"), load)
    assert (layout.task_start_ns // 10**6).tolist() == [5, 5, 5, 105, 105]
    assert [end // 10**6 if end < 10**15 else None for end in layout.task_end_ns] == [None, 105, 105, None, None]
    slow = layout.access_task[layout.access_rate == 10]
    assert slow.tolist() == [2, 4]
    with pytest.raises(DescriptionError, match="lasting: expected at most 3"):
        Processes("p", threads=3, lasting=4)


def test_the_options_of_xfs_repair() -> None:
    """101073 buckets of 8 buffers of 8 kB; without bhash 512 of them; 500 groups by 15, or by what is given."""
    sizes = [xfs_repair(bhash=bhash).regions[0].size_mb for bhash in (101073, 0)]
    assert sizes == pytest.approx([6317.1, 32], abs=0.1)
    assert [xfs_repair(ag_stride=stride).processes[0].threads for stride in (-1, 0, 100)] == [8, 34, 5]
    rates = [(access.region, access.rate) for access in xfs_repair(pages_per_s=1000, cached=0.75).accesses]
    assert rates == [("buffers", 750), ("buffers", 375), ("records", 250), ("records", 125)]
    assert [access.region for access in xfs_repair(cached=1).accesses] == ["buffers"] * 2


def test_a_run_of_the_traces_can_be_described() -> None:
    # numawl -p 2 -t 2 -P 8 -T 4 -W -i rr -b inter -r 3000
    layout = compiled(
        Region("P", 8, first_touch="rr"),
        Region("T", 4, scope="thread", first_touch="rr"),
        processes=(Processes("wl", 2, 2),),
        accesses=(
            Access("P", 20, order="sequential", start="spread", write=1),
            Access("T", 10, order="sequential", write=1),
        ),
        bindings=(Binding("thread", until_ms=3000),),
    )
    assert layout.vma_pages.tolist() == [2048, 1024, 1024] * 2
    assert (layout.block_node == np.arange(layout.blocks) % 2).all()
    assert on_nodes(layout, 0) == [[0], [1]] * 2
    assert on_nodes(layout, 1) == [[0, 1]] * 4
    assert layout.access_start.tolist() == [0, 0, 1024, 0] * 2


# ------------------------------------------------------------------ whatever is described


def check_invariants(layout: Layout, on: Machine) -> None:
    assert layout.region_first.tolist() == (np.cumsum(layout.region_blocks) - layout.region_blocks).tolist()
    assert len(layout.block_node) == layout.region_blocks.sum()
    assert (layout.vma_start % 512 == 0).all()
    end = layout.vma_start + layout.vma_pages
    same = layout.vma_process[1:] == layout.vma_process[:-1]
    assert (layout.vma_start[1:] - end[:-1])[same].min(initial=512) >= 512
    assert (np.diff(layout.vma_process) >= 0).all()
    pages = layout.region_blocks * layout.region_block_pages
    assert (layout.vma_pages == pages[layout.vma_region]).all()
    assert (np.diff(layout.task_process) >= 0).all()
    assert (np.diff(layout.task_pid) == 1).all()
    assert (np.diff(layout.access_task) >= 0).all()
    assert (layout.task_process[layout.access_task] == layout.vma_process[layout.access_vma]).all()
    assert (layout.access_start < layout.region_blocks[layout.vma_region[layout.access_vma]]).all()
    assert layout.affinity.any(axis=2).all()
    assert layout.block_node.min() >= -layout.tasks
    placed = np.repeat(layout.region_block_pages, layout.region_blocks)[layout.block_node >= 0]
    used = np.bincount(layout.block_node[layout.block_node >= 0], weights=placed, minlength=layout.nodes)
    assert (used + layout.node_reserved <= layout.node_pages).all()
    for name, value in vars(layout).items():
        assert name == "smt" or value.dtype in (np.int64, np.bool_)


@st.composite
def regions(draw: st.DrawFn, number: int) -> Region:
    kind = draw(st.sampled_from(["private", "forked", "data", "shmem", "file", "file-shared"]))
    scopes = ["process", "thread"] if kind == "private" else ["process", "thread", "all"]
    return Region(
        f"r{number}",
        draw(st.floats(0.01, 3)),
        scope=draw(st.sampled_from(scopes)),
        kind=kind,
        written=draw(st.floats(0, 1)) if kind in ("forked", "data") else 0.0,
        pages=draw(st.sampled_from(["base", "huge", "folio"])),
        first_touch=draw(st.sampled_from([0, 1, (0, 1, 1), "rr", "main", "parent", "self", "process", "spread"])),
        policy=draw(st.sampled_from(["default", "explicit", "mof"])),
    )


@st.composite
def descriptions(draw: st.DrawFn) -> Workload:
    groups = tuple(
        Processes(f"g{i}", draw(st.integers(1, 3)), draw(st.integers(1, 3))) for i in range(draw(st.integers(1, 2)))
    )
    mapped = tuple(draw(regions(i)) for i in range(draw(st.integers(1, 3))))
    accesses = tuple(
        Access(
            region.name,
            draw(st.floats(0.01, 500)),
            order=draw(st.sampled_from(["random", "sequential"])),
            start=draw(st.sampled_from([0.0, 0.3, 1.0, "spread"])),
            reach=draw(st.sampled_from(["own", "all"])) if region.scope == "thread" else "own",
        )
        for region in mapped
    )
    where = st.sampled_from([0, 1, (0, 1), "free", "process", "thread", "spread", "mirror"])
    bindings = tuple(
        Binding(draw(where), from_ms=draw(st.integers(0, 3)), until_ms=draw(st.sampled_from([None, 4, 5])))
        for _ in range(draw(st.integers(0, 2)))
    )
    return Workload("w", groups, mapped, accesses, bindings)


@settings(max_examples=60, deadline=None)
@given(descriptions())
def test_any_workload_compiles_soundly_and_survives_json(made: Workload) -> None:
    on = Machine.uniform(2, 2, 256)
    check_invariants(compile_layout(on, made), on)
    assert Workload.from_dict(json.loads(json.dumps(made.to_dict()))) == made
