"""Workloads: processes, the memory they map, who touches what how often, and where they may run.

A :class:`Workload` is a description in names, MB and ms; :func:`numalab.compile.compile_layout` turns it and a
machine into the arrays the engine runs. Named workloads are in :mod:`numalab.workloads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from numalab.machine import PAGES_PER_MB
from numalab.records import (
    Count,
    DescriptionError,
    Index,
    LaterMs,
    Megabytes,
    Milliseconds,
    Name,
    Rule,
    Share,
    SizeMb,
    check,
    nearest,
    read_record,
    show,
    to_plain,
)

Kind = Literal["private", "forked", "data", "shmem", "file", "file-shared"]
Pages = Literal["base", "huge", "folio"]
Order = Literal["random", "sequential"]
#: Kinds whose pages are copied on write.
COW_KINDS = ("forked", "data")
#: Bounds of a workload beyond which arrays do not fit into the memory of any computer that runs this.
MOST_TASKS, MOST_BLOCKS = 10**6, 10**8

Interval = Annotated[float, Rule("a number from 0.001 to 1e9", lambda v: 0.001 <= v <= 1e9)]
Nice = Annotated[int, Rule("a nice value from -20 to 19", lambda v: -20 <= v <= 19)]
Demand = Annotated[int, Rule("a whole number from 1 to 1000", lambda v: 1 <= v <= 1000)]
#: No memory is faster than a million MB/s.
Rate = Annotated[float, Rule("a number > 0", lambda v: v > 0, 10**6)]
PageRate = Annotated[float, Rule("a number > 0", lambda v: v > 0, 10**6 * PAGES_PER_MB)]
#: As many in ns fit into 63 bits.
Visits = Annotated[int, Rule("a whole number from 0 to 9e9", lambda v: 0 <= v <= 9 * 10**9)]
Block = Annotated[int, Rule("a power of two from 4 to 2048 (kB)", lambda v: v in {2**i for i in range(2, 12)})]


def _is_first_touch(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("rr", "main", "parent", "self", "process", "spread")
    return value != () and all(node >= 0 for node in (value if isinstance(value, tuple) else (value,)))


def _is_where(value: Any) -> bool:
    if isinstance(value, str):
        # Empty: not given.
        return value in ("", "free", "process", "thread", "spread", "mirror")
    return value != () and all(node >= 0 for node in (value if isinstance(value, tuple) else (value,)))


FirstTouch = Annotated[
    int | str | tuple[int, ...],
    Rule('a node id, a list of node ids, "rr", "main", "parent", "self", "process" or "spread"', _is_first_touch),
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
    wake_ms : float
        How often a task with a demand below 1000 decides anew to run or sleep.
    nice : int
        Nice value, -20 to 19: a CPU's tasks of the lowest run first, and each level weighs 1.25 times the next.
    start_ms, stagger_ms : float
        The i-th process (from 0) is created at ``start_ms + i * stagger_ms``.
    generations : int
        How often their threads are created: all end after ``thread_life_ms``, and as many new ones take over their
        part of the work and of the memory; the last ones stay.
    thread_life_ms : float
        How long the threads of a generation live; more than 0 if there are several.
    page_visits : int
        So many pages each thread visits, then it ends; 0: it does not end by that.
    lasting : int
        So many of the threads, the first of the process, do not end with their generation: they live as long as it.
    single_node : bool
        Their cpuset allows memory of one node only.
    """

    name: Name
    count: Count = 1
    threads: Count = 1
    demand: Demand = 1000
    wake_ms: Interval = 10.0
    nice: Nice = 0
    start_ms: Milliseconds = 0.0
    stagger_ms: Milliseconds = 0.0
    generations: Count = 1
    thread_life_ms: Milliseconds = 0.0
    page_visits: Visits = 0
    lasting: Index = 0
    single_node: bool = False

    def __post_init__(self) -> None:
        """Check the fields and that they go together."""
        check(self)
        if self.generations > 1 and not self.thread_life_ms:
            problem = f"expected more than 0 ms for {self.generations} generations, got 0"
            raise DescriptionError("thread_life_ms", problem)
        if self.generations > 1 and self.page_visits:
            problem = f"expected 0 with several generations, which end by time, got {self.page_visits}"
            raise DescriptionError("page_visits", problem)
        if self.lasting > self.threads:
            raise DescriptionError("lasting", f"expected at most {self.threads} (threads), got {self.lasting}")

    @property
    def tasks(self) -> int:
        """Tasks of one process over its whole life."""
        return self.lasting + (self.threads - self.lasting) * self.generations


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
        thread of the process starts); ``"parent"`` (where the first of all processes that map it starts, as their
        parent wrote it before it forked them); ``"self"`` (where the touching thread starts: its own for scope
        ``thread``, else block k by thread k modulo threads); ``"process"`` (process i on node i modulo
        nodes); ``"spread"`` (instance i of n on node i * nodes // n). A node too full for them passes pages
        on to the nearest with room, as the page allocator does.
    reserved_mb : float
        Address space of the mapping below its pages in which there are none, as of a thread's stack.
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
    size_mb: SizeMb
    processes: tuple[str, ...] = ()
    scope: Literal["process", "thread", "all"] = "process"
    kind: Kind = "private"
    written: Share = 0.0
    pages: Pages = "base"
    block_kb: Block | None = None
    first_touch: FirstTouch = "self"
    reserved_mb: Megabytes = 0.0
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
    rate_mbps: Rate | None = None
    pages_per_s: PageRate | None = None
    processes: tuple[str, ...] = ()
    threads: tuple[Index, ...] = ()
    reach: Literal["own", "all"] = "own"
    order: Order = "random"
    start: Share | Literal["spread"] = 0.0
    write: Share = 0.0
    from_ms: Milliseconds = 0.0
    until_ms: LaterMs | None = None

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
        CPU numbers, instead of nodes. One of the two must be given.
    processes : tuple of str
        Names of the :class:`Processes`; empty = all.
    threads : tuple of int
        Numbers of the threads within their process; empty = all.
    from_ms, until_ms : float
        When it holds; until None = to the end.
    """

    nodes: Where = ""
    cpus: tuple[Index, ...] = ()
    processes: tuple[str, ...] = ()
    threads: tuple[Index, ...] = ()
    from_ms: Milliseconds = 0.0
    until_ms: LaterMs | None = None

    def __post_init__(self) -> None:
        """Check the fields and that they go together."""
        check(self)
        if not self.nodes and self.nodes != 0:
            if not self.cpus:
                raise DescriptionError("nodes", 'expected nodes or cpus, got neither; "free" allows all CPUs')
            object.__setattr__(self, "nodes", "free")
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
    free_mb: Megabytes | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Check the fields and that names refer to something."""
        check(self)
        if not self.processes:
            raise DescriptionError("processes", "expected at least one entry, got none")
        if not self.regions:
            raise DescriptionError("regions", "expected at least one entry, got none")
        self._check_size()
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

    def _check_size(self) -> None:
        tasks = sum(group.count * group.tasks for group in self.processes)
        if tasks > MOST_TASKS:
            problem = f"expected at most {MOST_TASKS:,} tasks in all, got {tasks:,} (count × threads × generations)"
            raise DescriptionError("processes", problem)
        for i, group in enumerate(self.processes):
            last = group.start_ms + (group.count - 1) * group.stagger_ms
            if last > 10**9:
                problem = f"expected the last process to start within {10**9:,} ms, got {last:g}"
                raise DescriptionError(f"processes[{i}].stagger_ms", problem)
        blocks = 0.0
        for region in self.regions:
            users = [group for group in self.processes if not region.processes or group.name in region.processes]
            instances = {
                "process": sum(group.count for group in users),
                "thread": sum(group.count * group.threads for group in users),
                "all": 1,
            }
            blocks += instances[region.scope] * region.size_mb * PAGES_PER_MB / region.block_pages
        if blocks > MOST_BLOCKS:
            problem = f"expected at most {MOST_BLOCKS:,} blocks of pages in all, got {blocks:.3g}"
            raise DescriptionError("regions", f"{problem}; take less memory or larger blocks (block_kb)")

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
