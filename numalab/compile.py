"""From a machine and a workload to the arrays the engine runs (:class:`numalab.layout.Layout`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import Any

import numpy as np

from numalab.layout import BASE, FOLIO, HUGE, RANDOM, SEQUENTIAL, Bools, Ints, Layout
from numalab.machine import PAGES_PER_MB, Machine
from numalab.records import DescriptionError, show
from numalab.workload import Access, Binding, Processes, Region, Workload

#: Pid of the first task; the others follow one by one. The kernel keeps 8 bits of a pid in its last-user
#: record of a page, so tasks 256 apart look like one: 288 processes have 32 such pairs.
FIRST_PID = 1000

_FOREVER_NS = int(np.iinfo(np.int64).max)
_PAGE_KINDS = {"base": BASE, "huge": HUGE, "folio": FOLIO}


@dataclass(frozen=True)
class _Process:
    """One process: its place in the workload, its kind, and its task indices, generation by generation."""

    number: int
    group: Processes
    start_ms: float
    tasks: range

    def tasks_of(self, thread: int) -> range:
        """Return the tasks that are a thread, one after the other."""
        if thread < self.group.lasting:
            return self.tasks[thread : thread + 1]
        return self.tasks[thread :: self.group.threads - self.group.lasting]

    def lives(self) -> Iterator[tuple[float, float | None]]:
        """Yield when each task starts and ends, in ms after the process; None: never."""
        group = self.group
        for generation in range(group.generations):
            for thread in range(group.threads):
                if thread >= group.lasting:
                    last = generation == group.generations - 1
                    end = None if last else (generation + 1) * group.thread_life_ms
                    yield generation * group.thread_life_ms, end
                elif generation == 0:
                    yield 0.0, None


@dataclass(frozen=True)
class _Part:
    """One instance of a region, and the processes that map it."""

    entry: int
    region: Region
    users: tuple[_Process, ...]
    number: int = 0
    of: int = 1
    thread: int | None = None
    blocks: int = 0
    own_copy: bool = False
    eldest: int = 0

    @property
    def pages(self) -> int:
        return self.blocks * self.region.block_pages

    @property
    def hole(self) -> int:
        """Pages of address space below its own, none in the part that was written."""
        return 0 if self.own_copy else round(self.region.reserved_mb * PAGES_PER_MB)


@dataclass(frozen=True)
class _Vma:
    """A part mapped by a process at a page address."""

    process: _Process
    part: int
    start: int


def compile_layout(machine: Machine, workload: Workload) -> Layout:
    """Turn a machine and a workload into the arrays that the engine runs.

    Pids count up from :data:`FIRST_PID`. The VMAs of a process start at multiples of 512 pages with at
    least 512 unmapped pages between them.

    Parameters
    ----------
    machine : Machine
    workload : Workload

    Returns
    -------
    Layout

    Raises
    ------
    DescriptionError
        The workload does not fit the machine: a node or CPU it lacks, threads with no CPU, too much memory.
        The key is relative to the workload.
    """
    processes = _processes(workload)
    parts = _parts(workload, processes)
    vmas = _vmas(processes, parts)
    block_node, node_reserved = _first_touch(machine, workload, parts)
    return Layout(
        **_machine_arrays(machine),
        **_task_arrays(processes),
        **_affinity(machine, workload, processes),
        **_region_arrays(parts),
        **_vma_arrays(vmas, parts),
        **_access_arrays(workload, vmas, parts),
        node_reserved=node_reserved,
        block_node=block_node,
        smt=machine.smt,
    )


def region_names(workload: Workload) -> list[str]:
    """Return a name for each region of the layout: the workload's, and whose it is where there are several."""

    def name(part: _Part) -> str:
        owner = ""
        if part.region.scope != "all" or part.own_copy:
            thread = "" if part.thread is None else f"t{part.thread}"
            owner = f"/p{part.users[0].number}{thread}"
        return part.region.name + owner + ("/own" if part.own_copy else "")

    return [name(part) for part in _parts(workload, _processes(workload))]


def _ints(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _bools(values: Any) -> Bools:
    return np.array(list(values), dtype=np.bool_)


def _ns(ms: float) -> int:
    return round(ms * 1_000_000)


def _processes(workload: Workload) -> list[_Process]:
    found: list[_Process] = []
    for group in workload.processes:
        for i in range(group.count):
            first = found[-1].tasks.stop if found else 0
            tasks = range(first, first + group.tasks)
            found.append(_Process(len(found), group, group.start_ms + i * group.stagger_ms, tasks))
    return found


def _parts(workload: Workload, processes: list[_Process]) -> list[_Part]:
    parts: list[_Part] = []
    for entry, region in enumerate(workload.regions):
        users = tuple(p for p in processes if not region.processes or p.group.name in region.processes)
        blocks = ceil(region.size_mb * PAGES_PER_MB / region.block_pages)
        own = round(blocks * region.written)
        owners: list[tuple[tuple[_Process, ...], int | None]]
        if region.scope == "all":
            owners = [(users, None)]
        elif region.scope == "process":
            owners = [((p,), None) for p in users]
        else:
            owners = [((p,), j) for p in users for j in range(p.group.threads)]
        n = len(owners)
        if blocks > own:
            parts += [
                _Part(entry, region, by, i, n, thread, blocks - own, eldest=users[0].tasks[0])
                for i, (by, thread) in enumerate(owners)
            ]
        if own:
            copies = [((p,), thread) for by, thread in owners for p in by]
            parts += [_Part(entry, region, by, i, n, t, own, own_copy=True) for i, (by, t) in enumerate(copies)]
    return parts


def _vmas(processes: list[_Process], parts: list[_Part]) -> list[_Vma]:
    mapped: list[list[int]] = [[] for _ in processes]
    for i, part in enumerate(parts):
        for process in part.users:
            mapped[process.number].append(i)
    vmas = []
    for process in processes:
        start = 512
        for i in mapped[process.number]:
            vmas.append(_Vma(process, i, start))
            start = -(-(start + parts[i].hole + parts[i].pages) // 512) * 512 + 512
    return vmas


def _machine_arrays(machine: Machine) -> dict[str, Any]:
    cpu_core, cores = [], 0
    for node in machine.nodes:
        here = node.cpus // machine.smt
        cpu_core += [cores + k % here for k in range(node.cpus)]
        cores += here
    return {
        "node_id": _ints(node.id for node in machine.nodes),
        "distance": np.array(machine.distance, dtype=np.int64),
        "node_pages": _ints(machine.node_pages()),
        "node_watermark": _ints(machine.watermark_pages()),
        "node_llcs": _ints(node.llcs for node in machine.nodes),
        "cpu_node": _cpu_node(machine),
        "cpu_core": _ints(cpu_core),
    }


def _cpu_node(machine: Machine) -> Ints:
    return np.repeat(np.arange(len(machine.nodes), dtype=np.int64), [node.cpus for node in machine.nodes])


def _task_arrays(processes: list[_Process]) -> dict[str, Any]:
    owner = [p for p in processes for _ in p.tasks]
    lives = [(p.start_ms, *life) for p in processes for life in p.lives()]
    return {
        "task_process": _ints(p.number for p in owner),
        "task_pid": FIRST_PID + np.arange(len(owner), dtype=np.int64),
        "task_demand": _ints(p.group.demand for p in owner),
        "task_nice": _ints(p.group.nice for p in owner),
        "task_weight": _ints(_weight(p.group.nice) for p in owner),
        "task_wake_ns": _ints(_ns(p.group.wake_ms) for p in owner),
        "task_start_ns": _ints(_ns(start + begin) for start, begin, _ in lives),
        "task_end_ns": _ints(_FOREVER_NS if end is None else _ns(start + end) for start, _, end in lives),
        "task_visits": _ints(p.group.page_visits for p in owner),
        "process_single_node": _bools(p.group.single_node for p in processes),
    }


def _weight(nice: int) -> int:
    """Return the load weight of a nice value: a factor of 1.25 a level, within 3 % of the kernel's table."""
    return round(1024 * 1.25**-nice)


def _affinity(machine: Machine, workload: Workload, processes: list[_Process]) -> dict[str, Any]:
    bindings = workload.bindings
    times = sorted({0} | {_ns(b.from_ms) for b in bindings} | {_ns(b.until_ms) for b in bindings if b.until_ms})
    cpu_node = _cpu_node(machine)
    affinity = np.ones((len(times), processes[-1].tasks.stop, machine.cpus), dtype=np.bool_)
    for i, binding in enumerate(bindings):
        until = _FOREVER_NS if binding.until_ms is None else _ns(binding.until_ms)
        phases = [f for f, time in enumerate(times) if _ns(binding.from_ms) <= time < until]
        for process in _named(binding.processes, processes):
            for thread in binding.threads or range(process.group.threads):
                if thread < process.group.threads:
                    mask = _mask(machine, binding, i, process, thread, cpu_node)
                    affinity[phases, process.tasks_of(thread)] = mask
    return {"affinity_ns": _ints(times), "affinity": affinity}


def _named(names: tuple[str, ...], processes: list[_Process]) -> list[_Process]:
    return [p for p in processes if not names or p.group.name in names]


def _mask(machine: Machine, binding: Binding, i: int, process: _Process, thread: int, cpu_node: Ints) -> Bools:
    if binding.cpus:
        if max(binding.cpus) >= machine.cpus:
            problem = f"expected CPUs below {machine.cpus} on machine {machine.name}, got {max(binding.cpus)}"
            raise DescriptionError(f"bindings[{i}].cpus", problem)
        return np.isin(np.arange(machine.cpus), binding.cpus)
    if binding.nodes == "free":
        return np.ones(machine.cpus, dtype=np.bool_)
    nodes, n, threads = machine.cpu_nodes, len(machine.cpu_nodes), process.group.threads
    chosen: tuple[int, ...]
    match binding.nodes:
        case "process":
            chosen = (nodes[process.number % n],)
        case "thread":
            chosen = (nodes[thread % n],)
        case "spread":
            chosen = (nodes[thread * n // threads],)
        case "mirror":
            chosen = (nodes[(threads - 1 - thread) * n // threads],)
        case ids:
            chosen = _node_indices(machine, ids, f"bindings[{i}].nodes")
    mask: Bools = np.isin(cpu_node, chosen)
    if not mask.any():
        raise DescriptionError(f"bindings[{i}].nodes", f"expected nodes with CPUs, got {show(binding.nodes)}")
    return mask


def _node_indices(machine: Machine, ids: int | str | tuple[int, ...], key: str) -> tuple[int, ...]:
    try:
        return tuple(machine.index(int(node)) for node in (ids if isinstance(ids, tuple) else (ids,)))
    except DescriptionError as error:
        raise error.within(key) from None


def _region_arrays(parts: list[_Part]) -> dict[str, Any]:
    blocks = _ints(part.blocks for part in parts)
    regions = [part.region for part in parts]
    return {
        "region_first": np.cumsum(blocks) - blocks,
        "region_blocks": blocks,
        "region_block_pages": _ints(region.block_pages for region in regions),
        "region_kind": _ints(_PAGE_KINDS[region.pages] for region in regions),
        "region_file": _bools(_is_file(part) for part in parts),
        "region_exec": _bools("x" in region.rights for region in regions),
        "region_dirty": _bools(part.region.dirty and not part.own_copy for part in parts),
    }


def _is_file(part: _Part) -> bool:
    if part.region.kind == "shmem":
        # Shmem pages are no file pages to reclaim and migration; its VMA has a file, which matters to the
        # scanner only where it is mapped read-only.
        return "w" not in part.region.rights
    return part.region.kind in ("data", "file", "file-shared") and not part.own_copy


def _vma_arrays(vmas: list[_Vma], parts: list[_Part]) -> dict[str, Any]:
    mapped = [parts[vma.part] for vma in vmas]
    regions = [part.region for part in mapped]
    blocks = _ints(part.blocks for part in mapped)
    shared = _bools(region.kind in ("shmem", "file-shared") for region in regions)
    return {
        "vma_process": _ints(vma.process.number for vma in vmas),
        "vma_region": _ints(vma.part for vma in vmas),
        "vma_start": _ints(vma.start for vma in vmas),
        "vma_pages": _ints(part.hole + part.pages for part in mapped),
        "vma_hole": _ints(part.hole for part in mapped),
        "vma_pte": np.cumsum(blocks) - blocks,
        "vma_read": _bools("r" in region.rights for region in regions),
        "vma_write": _bools("w" in region.rights for region in regions),
        "vma_shared": shared,
        # As the kernel counts it: private, and mprotect could make it writable.
        "vma_cow": ~shared,
        "vma_mof": _bools(_policy_lets_scan(region) for region in regions),
        "vma_scannable": _bools(not region.hugetlb_or_mixed for region in regions),
        "vma_migratable": _bools(not region.io_mapped for region in regions),
        "vma_pte_write": _bools(_ptes_writable(part) for part in mapped),
        "vma_pinned": _bools(region.pinned for region in regions),
    }


def _policy_lets_scan(region: Region) -> bool:
    return region.policy == "mof" or (region.policy == "default" and region.kind != "shmem")


def _ptes_writable(part: _Part) -> bool:
    region = part.region
    written = part.own_copy or region.kind in ("private", "shmem") or (region.kind == "file-shared" and region.dirty)
    return written and "w" in region.rights


def _access_arrays(workload: Workload, vmas: list[_Vma], parts: list[_Part]) -> dict[str, Any]:
    by_region: dict[tuple[int, int], list[int]] = {}
    for v, vma in enumerate(vmas):
        by_region.setdefault((parts[vma.part].entry, vma.process.number), []).append(v)
    entries = {region.name: i for i, region in enumerate(workload.regions)}
    processes = _processes(workload)
    rows: list[tuple[int, ...]] = []
    lives = {
        task: (_ns(process.start_ms + begin), _FOREVER_NS if end is None else _ns(process.start_ms + end))
        for process in processes
        for task, (begin, end) in zip(process.tasks, process.lives(), strict=True)
    }
    for access in workload.accesses:
        entry = entries[access.region]
        region = workload.regions[entry]
        visitors = [
            (process, thread)
            for process in _named(access.processes or region.processes, processes)
            for thread in access.threads or range(process.group.threads)
            if thread < process.group.threads
        ]
        for i, (process, thread) in enumerate(visitors):
            reached = [v for v in by_region[entry, process.number] if _reaches(access, parts[vmas[v].part], thread)]
            start = _start_share(access, region, (i, len(visitors)), (thread, process.group.threads))
            total = sum(parts[vmas[v].part].pages for v in reached)
            for v in reached:
                part = parts[vmas[v].part]
                rate = max(1, round(access.rate * part.pages / total))
                row = (v, rate, *_timing(access), int(start * part.blocks) % part.blocks)
                *_, begin, end, _ = row
                # a thread of one generation does nothing of what another's does
                alive = (task for task in process.tasks_of(thread) if lives[task][0] < end and begin < lives[task][1])
                rows += [(task, *row) for task in alive]
    rows.sort(key=lambda row: row[0])
    columns = np.array(rows, dtype=np.int64).reshape(-1, 8).T
    names = ("task", "vma", "rate", "order", "write", "from_ns", "until_ns", "start")
    return {f"access_{name}": np.ascontiguousarray(column) for name, column in zip(names, columns, strict=True)}


def _reaches(access: Access, part: _Part, thread: int) -> bool:
    return access.reach == "all" or part.thread in (None, thread)


def _start_share(access: Access, region: Region, visitor: tuple[int, int], thread: tuple[int, int]) -> float:
    if access.order == "random":
        return 0.0
    if access.start != "spread":
        return float(access.start)
    if region.scope == "thread" and access.reach == "own":
        return 0.0
    i, n = visitor if region.scope == "all" else thread
    return i / n


def _timing(access: Access) -> tuple[int, int, int, int]:
    order = RANDOM if access.order == "random" else SEQUENTIAL
    until = _FOREVER_NS if access.until_ms is None else _ns(access.until_ms)
    return order, round(access.write * 1000), _ns(access.from_ms), until


def _first_touch(machine: Machine, workload: Workload, parts: list[_Part]) -> tuple[Ints, Ints]:
    """Return the node of every block (or -1-t) and the pages of others on each node."""
    size, mark = _ints(machine.node_pages()), _ints(machine.watermark_pages())
    reserved = _ints(round(node.reserved_mb * PAGES_PER_MB) for node in machine.nodes)
    wanted, room = sum(part.pages for part in parts), int((size - reserved).sum())
    if wanted > room:
        problem = f"expected at most {room / PAGES_PER_MB:g} MB in all on machine {machine.name}"
        raise DescriptionError("regions", f"{problem}, got {wanted / PAGES_PER_MB:g} MB")
    # The allocator passes on from a node at its low watermark, 5/6 of the high one (min x 5/4 and x 3/2).
    low = mark * 5 // 6
    free = size - reserved - low
    nodes = [_settle(_wanted(machine, part), part, free, low, machine) for part in parts]
    block_node = np.concatenate(nodes)
    if workload.free_mb is not None:
        reserved = _fill(machine, workload.free_mb, block_node, parts, reserved)
    return block_node, reserved


def _wanted(machine: Machine, part: _Part) -> Ints:
    k = np.arange(part.blocks, dtype=np.int64)
    nodes = machine.memory_nodes
    touch = "self" if part.own_copy else part.region.first_touch
    match touch:
        case "rr":
            return _ints(nodes)[k % len(nodes)]
        case "process":
            return k * 0 + nodes[part.users[0].number % len(nodes)]
        case "spread":
            return k * 0 + nodes[part.number * len(nodes) // part.of]
        case "parent":
            return k * 0 - 1 - part.eldest
        case "main":
            return k * 0 - 1 - part.users[0].tasks[0]
        case "self":
            # those of the first generation
            tasks = list(chain.from_iterable(process.tasks[: process.group.threads] for process in part.users))
            tasks = tasks if part.thread is None else [tasks[part.thread]]
            return -1 - _ints(tasks)[k % len(tasks)]
        case ids:
            listed = _node_indices(machine, ids, f"regions[{part.entry}].first_touch")
            return _ints(listed)[k % len(listed)]


def _settle(wanted: Ints, part: _Part, free: Ints, low: Ints, machine: Machine) -> Ints:
    """Place blocks on the nodes they want, or the nearest with room; takes their pages off ``free``."""
    pages = part.region.block_pages
    asked = np.bincount(wanted[wanted >= 0], minlength=len(free)) * pages
    if (asked <= free).all():
        free -= asked
        return wanted
    placed = wanted.copy()
    by_distance = np.argsort(np.array(machine.distance), axis=1, kind="stable")
    for k in np.flatnonzero(wanted >= 0):
        near = by_distance[wanted[k]]
        # With every node at its low watermark the allocator digs into the reserve, nearest first.
        room = chain((n for n in near if free[n] >= pages), (n for n in near if free[n] + low[n] >= pages))
        node = next(room, None)
        if node is None:
            problem = f"expected at most what machine {machine.name} has free; {part.region.name!r} does not fit"
            raise DescriptionError(f"regions[{part.entry}].size_mb", problem)
        placed[k] = node
        free[node] -= pages
    return placed


def _fill(machine: Machine, free_mb: float, block_node: Ints, parts: list[_Part], reserved: Ints) -> Ints:
    if (block_node < 0).any():
        problem = 'expected none with first_touch "main" or "self" (the nodes are not known before the run)'
        raise DescriptionError("free_mb", f"{problem}, got {free_mb:g}")
    pages = np.repeat([part.region.block_pages for part in parts], [part.blocks for part in parts])
    used = np.bincount(block_node, weights=pages, minlength=len(machine.nodes)).astype(np.int64)
    size, mark = _ints(machine.node_pages()), _ints(machine.watermark_pages())
    filled = np.where(size > 0, size - used - mark - round(free_mb * PAGES_PER_MB), 0)
    short = np.flatnonzero(filled < reserved)
    if short.size:
        node = machine.nodes[short[0]]
        left = free_mb + float(filled[short[0]] - reserved[short[0]]) / PAGES_PER_MB
        raise DescriptionError("free_mb", f"expected at most {left:g}, what node {node.id} has left, got {free_mb:g}")
    return filled
