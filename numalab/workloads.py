"""Workloads by name: those of the mails and of the usual NUMA benchmarks.

Each is a function from a few numbers to a :class:`numalab.workload.Workload`; :data:`NAMED` lists them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from numalab.machine import PAGES_PER_MB, Machine
from numalab.records import Count, DescriptionError, Index, NotNegative, Positive, Share, nearest, read_arguments, show
from numalab.workload import Access, Binding, Processes, Region, Workload

Order = Literal["random", "sequential"]
Bind = Literal["none", "hard", "inverse"]
Pages = Literal["base", "huge", "folio"]


@dataclass(frozen=True)
class Named:
    """A workload that can be asked for by name.

    Attributes
    ----------
    name : str
    build : callable
        Returns the workload; takes the machine first if ``needs_machine``, then the parameters.
    needs_machine : bool
    parameters : dict
        Parameter name to its default, ``inspect.Parameter.empty`` where it must be given.
    """

    name: str
    build: Callable[..., Workload]
    needs_machine: bool
    parameters: Mapping[str, Any]

    @property
    def doc(self) -> str:
        """What it is and what its parameters mean."""
        return inspect.getdoc(self.build) or ""

    @property
    def summary(self) -> str:
        """The first line of :attr:`doc`."""
        return self.doc.split("\n", 1)[0]


#: The named workloads.
NAMED: dict[str, Named] = {}


def _named(build: Callable[..., Workload]) -> Callable[..., Workload]:
    parameters = {key: value.default for key, value in inspect.signature(build).parameters.items()}
    needs_machine = parameters.pop("machine", None) is not None
    name = build.__name__
    NAMED[name] = Named(name, build, needs_machine, parameters)
    return build


def workload(name: str, machine: Machine, **parameters: object) -> Workload:
    """Build a workload by name.

    Parameters
    ----------
    name : str
        A key of :data:`NAMED`.
    machine : Machine
        The machine it will run on; some workloads size themselves by it.
    **parameters
        Of that workload.

    Returns
    -------
    Workload

    Raises
    ------
    DescriptionError
        Unknown name; unknown, missing or wrong parameter, by its name.
    """
    if name not in NAMED:
        raise DescriptionError("", f"no workload {show(name)}{nearest(name, NAMED)}")
    found = NAMED[name]
    given = read_arguments(found.build, parameters, skip=("machine",))
    return found.build(machine, **given) if found.needs_machine else found.build(**given)


@_named
def perf_bench_numa(
    p: Count,
    t: Count,
    P: NotNegative = 1000.0,
    T: NotNegative = 0.0,
    G: NotNegative = 0.0,
    rate_mbps: Positive = 500.0,
    order: Order = "random",
    node: Index | None = 0,
    write: Share = 1.0,
    pages: Pages = "base",
) -> Workload:
    """``perf bench numa mem -0 -p p -t t -P P -T T -G G``: threads that walk process, thread and global memory.

    Parameters
    ----------
    p, t : int
        Processes, and threads of each.
    P, T, G : float
        MB per process, per thread, and shared by all (MAP_SHARED, hence not scanned).
    rate_mbps : float
        MB a thread visits per second of useful time, divided among the three by their sizes. Assumed; the
        time to convergence hardly depends on it from 100 to 1000.
    order : {"random", "sequential"}
        The tool's default walks at random.
    node : int or None
        Node that first touches everything: 0 as with ``-0`` (``--init_cpu0``); None = each process's first
        thread.
    write : float
        Chance that a page just opened is written; the tool reads and writes.
    pages : {"base", "huge", "folio"}
    """
    sizes = {"process": P, "thread": T, "global": G}
    total = sum(sizes.values())
    if not total:
        raise DescriptionError("P", "expected at least one of P, T and G above 0, got 0 for all")
    touch = "main" if node is None else node
    regions, accesses = [], []
    for name, size in sizes.items():
        if not size:
            continue
        if name == "global":
            regions.append(Region(name, size, scope="all", kind="shmem", first_touch=touch, pages=pages))
        else:
            scope: Literal["process", "thread"] = "process" if name == "process" else "thread"
            regions.append(Region(name, size, scope=scope, first_touch=touch, pages=pages))
        rate = rate_mbps * size / total
        accesses.append(Access(name, rate, order=order, start="spread" if order == "sequential" else 0.0, write=write))
    return Workload(
        f"perf bench numa mem -p {p} -t {t} -P {P:g} -T {T:g} -G {G:g}",
        (Processes("perf", p, t),),
        tuple(regions),
        tuple(accesses),
        source="perf bench numa mem; rate assumed",
    )


@_named
def shared_cow(
    processes: Count = 288,
    size_ints: Count = 1_000_000,
    seconds: Positive = 10.0,
    pass_ms: Positive = 1.359,
    node: Index = 0,
    stagger_ms: NotNegative = 0.1,
    written: Share = 0.0,
) -> Workload:
    """Readers that sum one array in ``.data`` over and over: the test program of the shared_cow thread.

    Parameters
    ----------
    processes : int
        Readers. The program's parent only waits and is left out.
    size_ints : int
        Length of the array of 4-byte integers.
    seconds : float
        For how long they read.
    pass_ms : float
        Useful time of one pass over 1,000,000 integers. 1.359 is the published one with balancing off: 288
        readers made 2,118,782 passes in 10 s. With 144 CPUs half a reader's time was useful: give 0.68.
    node : int
        Node that holds the array's page-cache pages at the start; assumed to be one node.
    stagger_ms : float
        Time from one fork to the next; assumed.
    written : float
        Share of the array that each process has already written, and so owns.
    """
    pages_per_s = size_ints * 4 / 4096 / (pass_ms / 1000 * size_ints / 1_000_000)
    return Workload(
        f"shared_cow {processes} readers of {size_ints} ints",
        (Processes("reader", processes, stagger_ms=stagger_ms),),
        (
            Region(
                "array",
                size_ints * 4 / 4096 / PAGES_PER_MB,
                scope="all",
                kind="data",
                written=written,
                block_kb=4,
                first_touch=node,
            ),
        ),
        (Access("array", pages_per_s=pages_per_s, order="sequential", until_ms=seconds * 1000),),
        source="mail 1516130924-3545-1-git-send-email-henry.willard@oracle.com; start node and fork time assumed",
    )


@_named
def wrong_node(
    size_mb: Positive = 32.0,
    node: Index = 1,
    memory_node: Index = 0,
    rate_mbps: Positive = 500.0,
    order: Order = "sequential",
    write: Share = 0.0,
) -> Workload:
    """One thread bound to one node, its memory on another.

    Parameters
    ----------
    size_mb : float
        Private memory, MB.
    node, memory_node : int
        Node ids of the CPUs it may use, and of its memory at the start.
    rate_mbps : float
        MB visited per second of useful time; assumed.
    order : {"random", "sequential"}
    write : float
        Chance that a page just opened is written.
    """
    return Workload(
        f"wrong_node {size_mb:g} MB",
        (Processes("wl"),),
        (Region("array", size_mb, first_touch=memory_node),),
        (Access("array", rate_mbps, order=order, write=write),),
        (Binding(node),),
        source="the simplest case: one scan should bring all pages over",
    )


@_named
def follow(
    size_mb: Positive = 32.0,
    home: Index = 0,
    dst: Index = 1,
    at_ms: Positive = 8000.0,
    rate_mbps: Positive = 500.0,
    order: Order = "sequential",
    write: Share = 0.0,
) -> Workload:
    """One thread bound to one node and later to another; its memory should come after it.

    Parameters
    ----------
    size_mb : float
        Private memory, MB, at the start on the first node.
    home, dst : int
        Node ids before and from ``at_ms``.
    at_ms : float
        When the binding changes.
    rate_mbps : float
        MB visited per second of useful time; assumed.
    order : {"random", "sequential"}
    write : float
        Chance that a page just opened is written.
    """
    return Workload(
        f"follow {size_mb:g} MB",
        (Processes("wl"),),
        (Region("array", size_mb, first_touch=home),),
        (Access("array", rate_mbps, order=order, write=write),),
        (Binding(home, until_ms=at_ms), Binding(dst, from_ms=at_ms)),
        source="as the follow runs of the real-kernel traces",
    )


def _halves(machine: Machine, bind: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return for both processes of numa01 the nodes they run on and the nodes of their memory."""
    middle = len(machine.nodes) // 2
    halves = machine.nodes[:middle], machine.nodes[middle:]
    cpus = [tuple(node.id for node in half if node.cpus) for half in halves]
    memory = [tuple(node.id for node in half if node.memory_mb) for half in halves]
    if not all(cpus + memory):
        raise DescriptionError("bind", f"expected CPUs and memory in both halves of {machine.name}, or bind = none")
    return list(zip(cpus, memory if bind == "hard" else memory[::-1], strict=True))


def _numa01(machine: Machine, bind: str, region: Region, rate_mbps: float, name: str) -> Workload:
    threads = max(1, machine.cpus // 2)
    groups = tuple(Processes(half, 1, threads) for half in ("first", "second"))
    access = (Access(region.name, rate_mbps, order="sequential", write=1.0),)
    source = "autonuma-benchmark numa01.c; rate from the elapsed times of the scan_overhead mails (4 sockets, 48 cores)"
    if bind == "none":
        return Workload(name, groups, (region,), access, source=source)
    regions, accesses, bindings = [], [], []
    for group, (cpus, memory) in zip(groups, _halves(machine, bind), strict=True):
        own, by = f"{region.name}-{group.name}", (group.name,)
        regions.append(replace(region, name=own, processes=by, first_touch=memory, policy="explicit"))
        accesses.append(replace(access[0], region=own))
        bindings.append(Binding(cpus, processes=by))
    return Workload(f"{name} bind={bind}", groups, tuple(regions), tuple(accesses), tuple(bindings), source=source)


@_named
def numa01(
    machine: Machine,
    size_mb: Positive = 3072.0,
    rate_mbps: Positive = 304.0,
    bind: Bind = "none",
    pages: Pages = "base",
) -> Workload:
    """Two processes of CPUs/2 threads; all threads of a process clear all of its memory, over and over.

    Adverse on more than two nodes: a process wants one node and has more threads than that holds.

    Parameters
    ----------
    size_mb : float
        Memory of each process.
    rate_mbps : float
        MB a thread clears per second of useful time: 51 passes over 3 GB in 515.8 s.
    bind : {"none", "hard", "inverse"}
        ``hard``: CPUs and memory of the first process on the first half of the nodes, of the second on the
        other half. ``inverse``: memory on the half where the process does not run (the intent; the program
        itself sets the policy of only one of the two across).
    pages : {"base", "huge", "folio"}
        The original runs with huge pages where the kernel has them switched on.
    """
    # The threads all start clearing at the first byte: who is ahead touches first, here each in turn.
    region = Region("array", size_mb, first_touch="self", pages=pages)
    return _numa01(machine, bind, region, rate_mbps, "numa01")


@_named
def numa01_thread_alloc(
    machine: Machine,
    size_mb: Positive = 3072.0,
    rate_mbps: Positive = 341.0,
    bind: Bind = "none",
    pages: Pages = "base",
) -> Workload:
    """As numa01, but every thread clears only its own slice of its process's memory.

    Begins after the program's first pass, in which every thread clears everything: the slices lie
    interleaved over the machine's nodes (those of their policy if bound).

    Parameters
    ----------
    size_mb : float
        Memory of each process; a thread's slice is this over CPUs/2, a VMA of its own here.
    rate_mbps : float
        MB a thread clears per second of useful time: 128 GB in 384.1 s with 24 threads.
    bind : {"none", "hard", "inverse"}
        As in numa01.
    pages : {"base", "huge", "folio"}
    """
    slice_mb = size_mb / max(1, machine.cpus // 2)
    region = Region("slice", slice_mb, scope="thread", first_touch="rr", block_kb=_block_kb(pages), pages=pages)
    return _numa01(machine, bind, region, rate_mbps, "numa01_THREAD_ALLOC")


def _block_kb(pages: str) -> int | None:
    # Slices of some tens of MB: 256 kB blocks lose little to rounding and stay few.
    return 256 if pages == "base" else None


def _numa02(machine: Machine, threads: int, sizes: tuple[float, float], bind: str, pages: Pages, name: str) -> Workload:
    size_mb, rate_mbps = sizes
    bound = bind != "none"
    region = Region(
        "slice",
        size_mb / threads,
        scope="thread",
        first_touch="spread" if bound else "main",
        policy="explicit" if bound else "default",
        block_kb=_block_kb(pages),
        pages=pages,
    )
    return Workload(
        f"{name} bind={bind}" if bound else name,
        (Processes("numa02", 1, threads),),
        (region,),
        (Access("slice", rate_mbps, order="sequential", write=1.0),),
        (Binding("spread" if bind == "hard" else "mirror"),) if bound else (),
        source="autonuma-benchmark numa02.c; rate from elapsed times of the scan_overhead mails (4 sockets, 48 cores)",
    )


@_named
def numa02(
    machine: Machine,
    size_mb: Positive = 1024.0,
    rate_mbps: Positive = 349.0,
    bind: Bind = "none",
    pages: Pages = "base",
) -> Workload:
    """One process with a thread per CPU; each clears its own slice of memory that the first thread touched.

    Parameters
    ----------
    size_mb : float
        Memory of the process; a thread's slice is this over the CPUs, a VMA of its own here.
    rate_mbps : float
        MB a thread clears per second of useful time: 800 passes over 1 GB in 48.9 s with 48 threads.
    bind : {"none", "hard", "inverse"}
        ``hard``: slices and threads spread over the nodes in order, each thread beside its slice.
        ``inverse``: the same slices, the threads spread in reverse order.
    pages : {"base", "huge", "folio"}
    """
    return _numa02(machine, machine.cpus, (size_mb, rate_mbps), bind, pages, "numa02")


@_named
def numa02_smt(
    machine: Machine,
    size_mb: Positive = 1024.0,
    rate_mbps: Positive = 711.0,
    bind: Bind = "none",
    pages: Pages = "base",
) -> Workload:
    """As numa02 with a thread for every second CPU: the scheduler has room to choose.

    Parameters
    ----------
    size_mb, bind, pages
        As in numa02.
    rate_mbps : float
        MB a thread clears per second of useful time: 800 passes over 1 GB in 48.0 s with 24 threads.
    """
    return _numa02(machine, max(1, machine.cpus // 2), (size_mb, rate_mbps), bind, pages, "numa02_SMT")


@_named
def hackbench(
    groups: Count,
    kind: Literal["pipe", "socket"] = "pipe",
    tasks_per_group: Count = 40,
    demand: Count = 100,
    heap_mb: Positive = 4.0,
    stack_kb: Positive = 64.0,
    stack_pages_per_s: Positive | None = None,
    heap_pages_per_s: Positive | None = None,
) -> Workload:
    """``hackbench --threads``: many threads of one process that mostly wait for each other's messages.

    Messages and the waiting itself are not modelled: only the memory that the threads touch while they run
    and how much they want to run. All numbers but the group size are assumed.

    Parameters
    ----------
    groups : int
        Groups of ``tasks_per_group`` threads (20 senders, 20 receivers in the tool). The LKP runs at "50 %"
        have half as many groups as CPUs.
    kind : {"pipe", "socket"}
        A message through a socket takes about twice as long, so a running thread touches half as much.
    tasks_per_group : int
    demand : int
        Share of the time a thread wants to run, of 1000. At 100 and 20 threads a CPU all CPUs are busy and
        half of the threads that want to run wait, as in the tool.
    heap_mb, stack_kb : float
        Heap shared by all threads, and used stack of each.
    stack_pages_per_s, heap_pages_per_s : float or None
        Page visits per second of useful time; None: 100,000 and 10,000 for pipes (a 100-byte message in 5
        to 10 us, a page or so of stack each; the heap a tenth of that), half for sockets.
    """
    per_message = 1.0 if kind == "pipe" else 0.5
    return Workload(
        f"hackbench -g {groups} --threads {kind}",
        (Processes("hackbench", 1, groups * tasks_per_group, demand),),
        (
            Region("heap", heap_mb, first_touch="main"),
            Region("stack", stack_kb / 1024, scope="thread", block_kb=4),
        ),
        (
            Access("heap", pages_per_s=heap_pages_per_s or 10_000 * per_message, write=0.5),
            Access("stack", pages_per_s=stack_pages_per_s or 100_000 * per_message, write=1.0),
        ),
        source="hackbench in the LKP runs of the marginal_moves thread; demand, sizes and rates assumed",
    )


@_named
def jvm(
    threads: Count,
    heap_mb: Positive = 4096.0,
    shared: Share = 0.8,
    thread_mb: Positive = 16.0,
    rate_mbps: Positive = 400.0,
    demand: Count = 1000,
) -> Workload:
    """One process that spans all nodes: threads on one shared heap, each with a little of its own.

    The shape of SPECjbb with one JVM; no placement is right, so every move gains little.

    Parameters
    ----------
    threads : int
    heap_mb : float
        Shared heap, first touched by all threads in turn.
    shared : float
        Share of a thread's visits that go to the heap; the rest goes to its own memory.
    thread_mb : float
        Memory of each thread's own (stack, allocation buffer).
    rate_mbps : float
        MB a thread visits per second of useful time; assumed.
    demand : int
        Share of the time a thread wants to run, of 1000.
    """
    accesses = []
    if shared:
        accesses.append(Access("heap", rate_mbps * shared, write=0.5))
    if shared < 1:
        accesses.append(Access("own", rate_mbps * (1 - shared), write=1.0))
    return Workload(
        f"jvm {threads} threads",
        (Processes("java", 1, threads, demand),),
        (Region("heap", heap_mb), Region("own", thread_mb, scope="thread", block_kb=256)),
        tuple(accesses),
        source="a JVM as SPECjbb in the marginal_moves thread; sizes, shares and rates assumed",
    )


#: xfs_repair without ``bhash`` on an image of 500 TB: the map of blocks it plans for alone is larger than the guest, so
#: it takes its smallest cache, this many hash buckets (xfsprogs, repair/xfs_repair.c).
_LEAST_BUCKETS = 512
#: Buffers in a bucket, and kB of a buffer: an inode cluster.
_BUCKET_BUFFERS, _BUFFER_KB = 8, 8
#: Allocation groups of 500 TB, at most 1 TB each; without ``ag_stride`` xfs_repair divides them into runs of 15.
_GROUPS, _USUAL_STRIDE = 500, 15


@_named
def xfs_repair(
    ag_stride: int = -1,
    bhash: Index = 101073,
    threads: Count | None = None,
    phase3_ms: Positive = 150_000.0,
    pages_per_s: Positive = 50_000.0,
    write: Share = 0.6,
    free_mb: NotNegative = 4.0,
    records_mb: Positive = 256.0,
    cached: Share = 0.9,
) -> Workload:
    """Threads that visit a large buffer cache at random, on nodes that page cache keeps nearly full.

    What the scan_overhead thread needs of xfs_repair: shared memory without locality, first spread over all
    nodes, and migrations that full nodes refuse. All numbers are assumed except where said.

    Parameters
    ----------
    ag_stride, bhash : int
        As on the command line of the mails, -1 and 101073 (0 = not given). A stride of -1 switches striding
        off: one allocation group after the other, by 8 busy threads (as the mails say), prefetch included.
        Without ``ag_stride`` the 500 groups (inferred from 500 TB) are divided by 15, one worker each: 34
        threads. A bucket of the buffer hash holds 8 buffers of 8 kB; without ``bhash`` there are 512.
    threads : int or None
        Overrides the number of threads.
    phase3_ms : float
        Until then (phase 3, reading inodes) threads visit at the full rate, after that (phase 4, checking
        for duplicate blocks) at half of it.
    pages_per_s : float
        Page visits of a thread per second of useful time: as many as give the 150,000 PTE updates a second of
        the mail's kernel with patches 1 and 2.
    write : float
        Chance that a page just opened is written: fitted to the migrations of 4.0-rc4 in the mail.
    free_mb : float
        What page cache leaves free on every node above the high watermark.
    records_mb : float
        Memory beside the buffers: records of inodes, the map of blocks.
    cached : float
        Share of the visits that go to the buffers.
    """
    striding = -(-_GROUPS // (ag_stride or _USUAL_STRIDE)) if ag_stride >= 0 else 0
    count = threads or striding or 8
    cache_mb = (bhash or _LEAST_BUCKETS) * _BUCKET_BUFFERS * _BUFFER_KB / 1024
    regions, accesses = [], []
    for name, size_mb, share in (("buffers", cache_mb, cached), ("records", records_mb, 1 - cached)):
        # Small blocks where there is little memory, so that shares of nodes are not coarse.
        regions.append(Region(name, size_mb, first_touch="rr", block_kb=2048 if size_mb >= 1024 else 256))
        if share:
            rate = pages_per_s * share
            accesses.append(Access(name, pages_per_s=rate, write=write, until_ms=phase3_ms))
            accesses.append(Access(name, pages_per_s=rate / 2, write=write, from_ms=phase3_ms))
    return Workload(
        f"xfs_repair -o ag_stride={ag_stride},bhash={bhash}",
        (Processes("xfs_repair", 1, count),),
        tuple(regions),
        tuple(accesses),
        free_mb=free_mb,
        source="scan_overhead thread, mail 20150324115141.GS28621@dastard; threads, sizes and rates assumed",
    )
