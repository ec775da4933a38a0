"""The programs of autonuma-benchmark: numa01, numa02, and their variants."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from numalab.machine import Machine
from numalab.records import DescriptionError, Positive
from numalab.workload import Access, Binding, Pages, Processes, Region, Workload

Bind = Literal["none", "hard", "inverse"]


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
