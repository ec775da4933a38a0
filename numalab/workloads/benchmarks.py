"""Benchmarks by their own names: perf's of NUMA, hackbench, and the shape of SPECjbb."""

from __future__ import annotations

from typing import Literal

from numalab.records import Count, DescriptionError, Index, NotNegative, Positive, Share
from numalab.workload import Access, Order, Pages, Processes, Region, Workload


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
