"""Processes, memory, accesses and bindings of the model, from what was recorded of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from numalab.machine import PAGES_PER_MB
from numalab.records import DescriptionError
from numalab.scenarios import _areas
from numalab.twin._errors import TwinError
from numalab.twin._patterns import PATTERNS, Pattern
from numalab.twin._regions import Memory, memories_of, regions_of
from numalab.twin._seen import Evidence, SeenProcess
from numalab.workload import Access, Binding, Processes, Region, Workload

#: For how long a task is held where it was first seen, ms.
AT_START_MS = 1.0
#: Visits of pages per second of each thread, before they are fitted: 400 MB/s.
PAGES_PER_S = 1e5
#: Memory above this is placed and moved in blocks of 2 MB, MB in all.
SINGLE_PAGES_MB = 1024.0
#: Visits of a small area per second of a thread, and most such areas on either side.
SMALL_PASSES, MOST_SMALL = 10.0, 60
_ENDLESS = float("inf")


@dataclass(frozen=True)
class Inferred:
    """What ran, as the model has it.

    Attributes
    ----------
    workload : Workload
        A `Processes` for each process that works, in the order of their numbers.
    needed : dict
        Node -> pages that it has there at the start.
    regions : tuple of str
        Labels of the recorded regions that are in it, shared ones once.
    notes : list of str
        What is assumed.
    """

    workload: Workload
    needed: Mapping[int, int]
    regions: tuple[str, ...]
    notes: list[str]


def workload_of(found: Evidence, pattern: Pattern = PATTERNS[0], *, small_areas: bool = False) -> Inferred:
    """Describe what ran.

    Parameters
    ----------
    found : Evidence
    pattern : Pattern
    small_areas : bool
        Small mappings count too: the scanner goes by areas.

    Raises
    ------
    TwinError
    """
    names = {process.pid: _name(process) for process in found.processes}
    memories = memories_of(found, names, pattern)
    if not memories:
        raise TwinError(
            f"{found.name}: the processes that work have no memory but small mappings and files of programs"
        )
    whole = sum(one.seen.total for one in memories) / PAGES_PER_MB
    block_kb = 4 if whole <= SINGLE_PAGES_MB else None
    thp = "[always]" in str(found.sysctl.get("transparent_hugepage", "")) or (
        found.sysctl.get("transparent_hugepage") == "always"
    )
    placed = [(one, tuple(regions_of(one, found, names, block_kb, huge=thp))) for one in memories]
    regions = [region for _, own in placed for region in own]
    accesses = list(_accesses(found, names, placed, pattern))
    if small_areas:
        regions, more = _with_small(found, names, regions)
        accesses += more
    try:
        workload = Workload(
            found.name,
            tuple(_processes(process, names) for process in found.processes),
            tuple(regions),
            tuple(accesses),
            tuple(_bindings(found, names)),
            source=f"inferred from the recording {found.name}",
        )
    except DescriptionError as error:
        raise TwinError(f"{found.name}: what was recorded makes no workload: {error}") from error
    needed: dict[int, int] = {}
    for one in memories:
        for node, count in one.seen.pages.items():
            needed[node] = needed.get(node, 0) + count
    labels = tuple(one.seen.region for one in memories)
    notes = _notes(found, memories, whole, thp=thp, small_areas=small_areas)
    return Inferred(workload, needed, labels, notes)


def at_rate(workload: Workload, pages_per_s: float) -> Workload:
    """Return the workload with threads that visit so many pages a second each instead of `PAGES_PER_S`."""
    factor = pages_per_s / PAGES_PER_S
    return replace(workload, accesses=tuple(replace(one, pages_per_s=one.rate * factor) for one in workload.accesses))


def _name(process: SeenProcess) -> str:
    return re.sub(r"[^\w.-]", "_", f"{process.name or 'process'}-{process.pid}")


def _processes(process: SeenProcess, names: Mapping[int, str]) -> Processes:
    share = float(np.mean([task.share for task in process.tasks]))
    return Processes(
        names[process.pid],
        threads=len(process.tasks),
        demand=max(1, min(1000, round(1000 * share))),
        start_ms=_start_ms(process),
    )


def _start_ms(process: SeenProcess) -> float:
    return round(1000 * min(task.start_s for task in process.tasks), 3)


def _end_ms(process: SeenProcess) -> float:
    return round(1000 * max(task.end_s for task in process.tasks), 3) if _ends(process) else _ENDLESS


def _ends(process: SeenProcess) -> bool:
    return all(task.end_s < _ENDLESS for task in process.tasks)


# ---------------------------------------------------------------- accesses, bindings


def _accesses(
    found: Evidence, names: Mapping[int, str], placed: list[tuple[Memory, tuple[Region, ...]]], pattern: Pattern
) -> Iterable[Access]:
    """Let each thread visit the memory of its process, every page as often as any other."""
    for process in found.processes:
        name = names[process.pid]
        own = [(one.seen.from_s, region) for one, parts in placed for region in parts if name in one.owners]
        total = sum(region.size_mb for _, region in own)
        until = _end_ms(process)
        for from_s, region in own:
            begin = max(_start_ms(process), round(1000 * from_s, 3))
            yield Access(
                region.name,
                pages_per_s=PAGES_PER_S * region.size_mb / total,
                processes=(name,),
                order=pattern.order,
                start="spread" if pattern.order == "sequential" else 0.0,
                write=0.0 if region.kind == "forked" else 1.0,
                from_ms=begin,
                until_ms=until if begin < until < _ENDLESS else None,
            )


def _with_small(found: Evidence, names: Mapping[int, str], regions: list[Region]) -> tuple[list[Region], list[Access]]:
    """Put the small areas of each process around its mappings; its threads use their stacks and one of the others."""
    out: list[Region] = []
    accesses: list[Access] = []
    for process in found.processes:
        name = names[process.pid]
        own = [region for region in regions if region.processes[0] == name]
        below, above = process.small or (0, 0)
        layout = _areas.Layout(
            tuple((f"low{k:03}", 1) for k in range(min(below, MOST_SMALL))),
            tuple((f"high{k:03}", 1) for k in range(min(above, MOST_SMALL))),
            frozenset({"low000"}),
            "counted in numa_maps",
        )
        before, behind, more = _areas.around(
            name,
            (name,),
            layout,
            threads=len(process.tasks),
            first_touch=process.tasks[0].node,
            passes_per_s=SMALL_PASSES,
        )
        out += [*before, *own, *behind]
        accesses += more
    return out, accesses


def _bindings(found: Evidence, names: Mapping[int, str]) -> Iterable[Binding]:
    """Start each task where it was first seen; bind it where it was bound."""
    everywhere = frozenset(node for node, cpus in found.cpus.items() if cpus)
    for process in found.processes:
        name = (names[process.pid],)
        for thread, task in enumerate(process.tasks):
            until = max(1000 * task.start_s, _start_ms(process)) + AT_START_MS
            yield Binding(task.node, processes=name, threads=(thread,), until_ms=until)
            # what was seen first held before
            begins = [0.0, *(round(1000 * time, 3) for time, _ in task.allowed[1:])]
            for k, (_, nodes) in enumerate(task.allowed):
                begin, end = begins[k], begins[k + 1] if k + 1 < len(begins) else None
                if nodes and nodes != everywhere and (end is None or end > begin):
                    yield Binding(tuple(sorted(nodes)), processes=name, threads=(thread,), from_ms=begin, until_ms=end)


# ---------------------------------------------------------------- what is assumed


def _notes(found: Evidence, memories: list[Memory], whole_mb: float, *, thp: bool, small_areas: bool) -> list[str]:
    notes = [
        "every page of a process is visited as often as any other, and written; its threads are alike",
        "pages of a mapping on several nodes are taken as evenly mixed",
        "counters are the machine's: what other processes add is not in the twin",
    ]
    if any(process.private is None and len(process.tasks) > 1 for process in found.processes):
        notes.append("no fault statistics of tasks (/proc/PID/sched): which memory is whose is guessed")
    if any(one.kind == "forked" for one in memories):
        notes.append("what forked processes have at the same address is taken as shared if any page of it is")
    if small_areas and any(process.small is None for process in found.processes):
        notes.append("small mappings not counted: this kernel scans by areas, so large ones come up too often")
    elif small_areas:
        notes.append("small mappings hold a page each; of those only stacks and one more are used")
    late = max(one.seen.at_s for one in memories)
    if late > 1.5:
        notes.append(f"memory is placed as it was first seen as a whole (up to {late:.0f} s after the beginning)")
    before = max((task.ran_ms for process in found.processes for task in process.tasks), default=0.0)
    if before > 2000:
        notes.append(
            "processes had run before the recording began; the twin starts them afresh: shortest scan period, no "
            "fault statistics, no groups"
        )
    if any(_ends(process) for process in found.processes):
        notes.append("processes that ended stop touching memory in the twin, but their tasks run on")
    if not any(task.allowed for process in found.processes for task in process.tasks):
        notes.append("allowed CPUs not recorded: tasks may run anywhere")
    if not any(one.seen.policy for one in memories):
        notes.append("memory policies not recorded: none")
    if whole_mb > SINGLE_PAGES_MB:
        notes.append("mappings of 64 MB and more are placed and moved in blocks of 2 MB")
    if thp:
        notes.append("transparent huge pages are always on: all anonymous mappings of 2 MB and more have them")
    lasting = {task.share for process in found.processes for task in process.tasks}
    if max(lasting) - min(lasting) > 0.2:
        notes.append("tasks of a process want to run as often as their mean")
    return notes
