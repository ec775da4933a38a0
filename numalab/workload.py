"""Workloads: processes, the memory they map, who touches what how often, and where they may run.

A :class:`Workload` is a description in names, MB and ms; :func:`compile_layout` turns it and a machine into
the arrays the engine runs (:class:`numalab.layout.Layout`). Named workloads are in :mod:`numalab.workloads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import Annotated, Any, Literal

import numpy as np

from numalab.layout import BASE, FOLIO, HUGE, RANDOM, SEQUENTIAL, Bools, Ints, Layout
from numalab.machine import (
    PAGES_PER_MB,
    Count,
    DescriptionError,
    Index,
    Machine,
    Name,
    NotNegative,
    Positive,
    Rule,
    Share,
    check,
    nearest,
    read_record,
    show,
    to_plain,
)

#: Pid of the first task; the others follow one by one. The kernel keeps 8 bits of a pid in its last-user
#: record of a page, so tasks 256 apart look like one: 288 processes have 32 such pairs.
FIRST_PID = 1000

Kind = Literal["private", "forked", "data", "shmem", "file", "file-shared"]
#: Kinds whose pages are copied on write.
COW_KINDS = ("forked", "data")

Demand = Annotated[int, Rule("a whole number from 1 to 1000", lambda v: 1 <= v <= 1000)]
Block = Annotated[int, Rule("a power of two from 4 to 2048 (kB)", lambda v: v in {2**i for i in range(2, 12)})]


def _is_first_touch(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("rr", "main", "self", "process", "spread")
    return value != () and all(node >= 0 for node in (value if isinstance(value, tuple) else (value,)))


def _is_where(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("free", "process", "thread", "spread", "mirror")
    return value != () and all(node >= 0 for node in (value if isinstance(value, tuple) else (value,)))


FirstTouch = Annotated[
    int | str | tuple[int, ...],
    Rule('a node id, a list of node ids, "rr", "main", "self", "process" or "spread"', _is_first_touch),
]
Where = Annotated[
    int | str | tuple[int, ...],
    Rule('a node id, a list of node ids, "free", "process", "thread", "spread" or "mirror"', _is_where),
]


@dataclass(frozen=True)
class Processes:
    """A number of equal processes.

    Attributes
    ----------
    name : str
        What regions, accesses and bindings call them.
    count : int
        How many.
    threads : int
        Tasks of each; all of them work.
    demand : int
        Share of the time a task wants to run, of 1000.
    start_ms, stagger_ms : float
        The i-th process (from 0) is created at ``start_ms + i * stagger_ms``.
    single_node : bool
        Their cpuset allows memory of one node only.
    """

    name: Name
    count: Count = 1
    threads: Count = 1
    demand: Demand = 1000
    start_ms: NotNegative = 0.0
    stagger_ms: NotNegative = 0.0
    single_node: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        check(self)


@dataclass(frozen=True)
class Region:
    """Memory that processes map.

    Attributes
    ----------
    name : str
    size_mb : float
        Size of each instance in MB (2**20 bytes), rounded up to whole blocks.
    processes : tuple of str
        Names of the :class:`Processes` that map it; empty = all.
    scope : {"process", "thread", "all"}
        One instance per process, one per thread (mapped by its process), or one mapped by all.
    kind : {"private", "forked", "data", "shmem", "file", "file-shared"}
        * ``private``: anonymous memory of its process, written.
        * ``forked``: anonymous memory a parent wrote before it forked, copy-on-write.
        * ``data``: private writable file mapping (``.data``), not yet written, copy-on-write.
        * ``shmem``: MAP_SHARED anonymous memory, tmpfs, SysV. Without a policy it is not scanned.
        * ``file``: private read-only file mapping (text, mapped input); never scanned.
        * ``file-shared``: MAP_SHARED mapping of a file on disk.
    written : float
        ``forked`` and ``data`` only: share of the pages that each process has already written and so owns.
        They are laid out as a private region of their own behind the shared rest; in reality the two are
        mixed in one VMA.
    pages : {"base", "huge", "folio"}
        4 KiB pages, transparent huge pages, or large folios of ``block_kb`` mapped by PTEs.
    block_kb : int or None
        Size of the blocks in which the model places and faults base pages, or the size of a folio. None:
        2048 for regions of 64 MB and more, else 4 (folio: 64). Huge pages are always 2048.
    first_touch : int, tuple of int or str
        Where the pages are at the start: a node id; a list of node ids (block k on entry k modulo length);
        ``"rr"`` (block k on the k-th node with memory, modulo their number); ``"main"`` (where the first
        thread of the process starts); ``"self"`` (where the touching thread starts: its own for scope
        ``thread``, else block k by thread k modulo threads); ``"process"`` (process i on node i modulo
        nodes); ``"spread"`` (instance i of n on node i * nodes // n). A node too full for them passes pages
        on to the nearest with room, as the page allocator does.
    policy : {"default", "explicit", "mof"}
        Memory policy: none (numa balancing may scan), numactl or mbind (it may not), or one with the
        migrate-on-fault flag (it may, shmem included).
    protection : {"none", "r", "rx", "rw", "rwx"} or None
        Of the mapping. None: ``r`` for ``file``, else ``rw``.
    dirty : bool
        File kinds: the pages are dirty in the page cache.
    hugetlb_or_mixed, io_mapped, pinned : bool
        A hugetlb or MIXEDMAP mapping; an IO, PFN or DAX mapping; pages with extra references (GUP).
    """

    name: Name
    size_mb: Positive
    processes: tuple[str, ...] = ()
    scope: Literal["process", "thread", "all"] = "process"
    kind: Kind = "private"
    written: Share = 0.0
    pages: Literal["base", "huge", "folio"] = "base"
    block_kb: Block | None = None
    first_touch: FirstTouch = "self"
    policy: Literal["default", "explicit", "mof"] = "default"
    protection: Literal["none", "r", "rx", "rw", "rwx"] | None = None
    dirty: bool = False
    hugetlb_or_mixed: bool = False
    io_mapped: bool = False
    pinned: bool = False

    def __post_init__(self) -> None:
        """Check the fields and that they go together."""
        check(self)
        if self.kind == "private" and self.scope == "all":
            problem = 'expected "process" or "thread" for kind "private"; processes share "forked", "data" or "shmem"'
            raise DescriptionError("scope", f'{problem}, got "all"')
        if self.written and self.kind not in COW_KINDS:
            raise DescriptionError("written", f'expected 0 unless kind is "forked" or "data", got {self.written:g}')
        if self.dirty and self.kind not in ("data", "file", "file-shared"):
            raise DescriptionError("dirty", f'expected false for kind "{self.kind}", got true')
        if self.pages == "huge" and self.block_kb not in (None, 2048):
            raise DescriptionError("block_kb", f"expected 2048 or none with huge pages, got {self.block_kb}")

    @property
    def block_pages(self) -> int:
        """Pages of 4 KiB in a block."""
        if self.pages == "huge":
            return 512
        if self.block_kb is not None:
            return self.block_kb // 4
        return 16 if self.pages == "folio" else 512 if self.size_mb >= 64 else 1

    @property
    def rights(self) -> str:
        """The protection, with the default of the kind filled in."""
        return self.protection or ("r" if self.kind == "file" else "rw")


@dataclass(frozen=True)
class Access:
    """Threads that visit a region.

    Attributes
    ----------
    region : str
        Its name.
    rate_mbps, pages_per_s : float or None
        How much each thread visits, per second of useful time while all memory is local: exactly one of
        the two. MB is 2**20 bytes.
    processes : tuple of str
        Names of the :class:`Processes`; empty = all that map the region.
    threads : tuple of int
        Numbers of the threads within their process; empty = all.
    reach : {"own", "all"}
        Regions of scope ``thread``: each thread visits its own, or all of its process's in equal shares.
    order : {"random", "sequential"}
    start : float or "spread"
        Sequential: where the walk begins, as a share of the region; ``"spread"``: thread j of n at j/n
        (regions of scope ``all``: counted over all threads that visit it).
    write : float
        Chance that a page just opened by a fault is written before the next scan.
    from_ms, until_ms : float
        When it happens; until None = to the end.
    """

    region: Name
    rate_mbps: Positive | None = None
    pages_per_s: Positive | None = None
    processes: tuple[str, ...] = ()
    threads: tuple[Index, ...] = ()
    reach: Literal["own", "all"] = "own"
    order: Literal["random", "sequential"] = "random"
    start: Share | Literal["spread"] = 0.0
    write: Share = 0.0
    from_ms: NotNegative = 0.0
    until_ms: Positive | None = None

    def __post_init__(self) -> None:
        """Check the fields and that they go together."""
        check(self)
        if (self.rate_mbps is None) == (self.pages_per_s is None):
            found = "neither" if self.rate_mbps is None else "both"
            raise DescriptionError("rate_mbps", f"expected exactly one of rate_mbps and pages_per_s, got {found}")
        _check_span(self.from_ms, self.until_ms)

    @property
    def rate(self) -> float:
        """Pages per second of useful time."""
        return self.pages_per_s if self.pages_per_s is not None else (self.rate_mbps or 0.0) * PAGES_PER_MB


@dataclass(frozen=True)
class Binding:
    """CPUs that threads may use for some time. Where bindings overlap, the later in the list holds.

    Attributes
    ----------
    nodes : int, tuple of int or str
        A node id or a list of them; ``"free"`` (all CPUs); over the n nodes with CPUs: ``"process"``
        (process i, counted over the workload, on node i modulo n), ``"thread"`` (thread j of its process on
        node j modulo n), ``"spread"`` (thread j of t on node j * n // t), ``"mirror"`` (the same, last
        thread first).
    cpus : tuple of int
        CPU numbers, instead of nodes.
    processes : tuple of str
        Names of the :class:`Processes`; empty = all.
    threads : tuple of int
        Numbers of the threads within their process; empty = all.
    from_ms, until_ms : float
        When it holds; until None = to the end.
    """

    nodes: Where = "free"
    cpus: tuple[Index, ...] = ()
    processes: tuple[str, ...] = ()
    threads: tuple[Index, ...] = ()
    from_ms: NotNegative = 0.0
    until_ms: Positive | None = None

    def __post_init__(self) -> None:
        """Check the fields and that they go together."""
        check(self)
        if self.cpus and self.nodes != "free":
            raise DescriptionError("cpus", "expected either nodes or cpus, got both")
        _check_span(self.from_ms, self.until_ms)


@dataclass(frozen=True)
class Workload:
    """What runs: processes, regions, accesses, bindings.

    Attributes
    ----------
    name : str
    processes : tuple of Processes
    regions : tuple of Region
        In the order of their addresses.
    accesses : tuple of Access
    bindings : tuple of Binding
    free_mb : float or None
        If given, pages of others (page cache, a memory hog) fill every node at the start until this many
        MB above the high watermark are left. Needs a first touch that names nodes.
    source : str
        What is modelled, where the figures come from, what is assumed.

    Raises
    ------
    DescriptionError
        Naming the field, what was expected and what was found.
    """

    name: Name
    processes: tuple[Processes, ...]
    regions: tuple[Region, ...]
    accesses: tuple[Access, ...] = ()
    bindings: tuple[Binding, ...] = ()
    free_mb: NotNegative | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Check the fields and that names refer to something."""
        check(self)
        if not self.processes:
            raise DescriptionError("processes", "expected at least one entry, got none")
        if not self.regions:
            raise DescriptionError("regions", "expected at least one entry, got none")
        for key in ("processes", "regions"):
            names = [entry.name for entry in getattr(self, key)]
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise DescriptionError(f"{key}[{i}].name", f"expected a name of its own, {show(name)} is taken")
        for key in ("regions", "accesses", "bindings"):
            for i, entry in enumerate(getattr(self, key)):
                self._check_processes(entry, f"{key}[{i}]")
        for i, access in enumerate(self.accesses):
            self._check_access(access, f"accesses[{i}]")

    def _check_processes(self, entry: Region | Access | Binding, key: str) -> None:
        known = {group.name: group for group in self.processes}
        for name in entry.processes:
            if name not in known:
                raise DescriptionError(f"{key}.processes", f"no processes {show(name)}{nearest(name, known)}")
        most = max(known[name].threads for name in entry.processes or known)
        for thread in getattr(entry, "threads", ()):
            if thread >= most:
                raise DescriptionError(f"{key}.threads", f"expected thread numbers below {most}, got {thread}")

    def _check_access(self, access: Access, key: str) -> None:
        known = {region.name: region for region in self.regions}
        if access.region not in known:
            raise DescriptionError(f"{key}.region", f"no region {show(access.region)}{nearest(access.region, known)}")
        region = known[access.region]
        for name in access.processes:
            if region.processes and name not in region.processes:
                problem = f"expected processes that map region {show(region.name)} ({', '.join(region.processes)})"
                raise DescriptionError(f"{key}.processes", f"{problem}, got {show(name)}")
        if access.reach == "all" and region.scope != "thread":
            problem = f'expected "own": region {show(region.name)} has scope "{region.scope}", not "thread"'
            raise DescriptionError(f"{key}.reach", f'{problem}, got "all"')
        if access.write and "w" not in region.rights:
            problem = f'expected 0: region {show(region.name)} is mapped "{region.rights}"'
            raise DescriptionError(f"{key}.write", f"{problem}, got {access.write:g}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, from which :meth:`from_dict` makes an equal workload."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Workload:
        """Make a workload of what :meth:`to_dict` gave, or of a table in a description file.

        Raises
        ------
        DescriptionError
            Unknown, missing or wrong key, by its path.
        """
        return read_record(cls, data)


def _check_span(from_ms: float, until_ms: float | None) -> None:
    if until_ms is not None and until_ms <= from_ms:
        raise DescriptionError("until_ms", f"expected more than from_ms = {from_ms:g}, got {until_ms:g}")


# ------------------------------------------------------------------ compiling

_FOREVER_NS = int(np.iinfo(np.int64).max)
_PAGE_KINDS = {"base": BASE, "huge": HUGE, "folio": FOLIO}


@dataclass(frozen=True)
class _Process:
    """One process: its place in the workload, its kind, and its task indices."""

    number: int
    group: Processes
    start_ms: float
    tasks: range


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

    @property
    def pages(self) -> int:
        return self.blocks * self.region.block_pages


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
            tasks = range(first, first + group.threads)
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
            parts += [_Part(entry, region, by, i, n, thread, blocks - own) for i, (by, thread) in enumerate(owners)]
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
            start = -(-(start + parts[i].pages) // 512) * 512 + 512
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
    return {
        "task_process": _ints(p.number for p in owner),
        "task_pid": FIRST_PID + np.arange(len(owner), dtype=np.int64),
        "task_demand": _ints(p.group.demand for p in owner),
        "task_start_ns": _ints(_ns(p.start_ms) for p in owner),
        "process_single_node": _bools(p.group.single_node for p in processes),
    }


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
                    affinity[phases, process.tasks[thread]] = mask
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
        "vma_pages": _ints(part.pages for part in mapped),
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
                rows.append((process.tasks[thread], v, rate, *_timing(access), int(start * part.blocks) % part.blocks))
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
        case "main":
            return k * 0 - 1 - part.users[0].tasks[0]
        case "self":
            tasks = list(chain.from_iterable(process.tasks for process in part.users))
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
