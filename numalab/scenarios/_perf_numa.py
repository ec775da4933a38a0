"""``perf bench numa mem``: threads that walk process, thread and global memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from numalab.machine import PAGES_PER_MB
from numalab.readers.perf_bench import FLAG_OPTIONS, LONG_OPTIONS, VALUED_OPTIONS
from numalab.scenarios import _areas
from numalab.scenarios._command import Options, Piece, ScenarioError, block_kb
from numalab.scenarios._guest import COSTS, Guest
from numalab.workload import Access, Binding, Processes, Region

NAME = "perf bench numa mem"
#: The tool asks for 2 MB more than it visits, and fills them too.
MORE_MB = 2.0
#: Instructions to fill a word, to read and write one (at -O3, with the tests of the options out of the loop), and
#: to clear one of a page's 512.
FILL, WALK, CLEAR = 5, 6, 1
WORDS = 512
#: How long a perturbed thread is held on another CPU, ms.
HELD_MS = 4.0


def build(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe one run of the tool; arguments and errors as those of ``numawl``."""
    options = Options.read(NAME, words, VALUED_OPTIONS, FLAG_OPTIONS, LONG_OPTIONS)
    _refuse(options)
    processes, threads = options.whole("p", 1, 1), options.whole("t", 1, 1)
    sizes = {"process": options.number("P", 0), "thread": options.number("T", 0), "global": options.number("G", 1)}
    if not any(sizes.values()):
        raise ScenarioError(f"{NAME}: expected memory (-P, -T or -G above 0), got none")
    busy = float(min(processes * threads, guest.cpus))
    thp = options.text("H", "0")
    huge = (guest.huge and not thp.startswith("-")) or (thp not in ("", "0") and not thp.startswith("-"))
    groups = _groups(options, name, processes, threads)
    start_ms = _start_ms(sizes, guest, busy)
    names = tuple(group.name for group in groups)
    regions, accesses = _memory(options, guest, sizes, names, huge, name)
    below, above, more_accesses = _areas.around(
        name,
        names,
        _areas.PERF,
        threads=threads,
        first_touch="main",
        passes_per_s=_rate(options, guest) / (sum(sizes.values()) * PAGES_PER_MB),
    )
    seconds = float(options.whole("s", 5))
    notes = [
        _areas.PERF.source,
        "time before the work (loading the tool) is left out but for filling the memory",
        "a walk visits runs of two pages; in the model single pages",
    ]
    if options.flag("m"):
        notes.append("-m: ends when converged; the model runs as long as the trace")
    if "u" in options.given or "L" in options.given:
        notes.append("-u and -L: waiting for the lock of the process is left out")
    bindings, more = _perturbed(options, guest, groups[0].name, start_ms, seconds)
    return Piece(
        tuple(replace(group, start_ms=start_ms) for group in groups),
        (*below, *regions, *above),
        (*accesses, *more_accesses),
        bindings,
        busy=busy,
        seconds=None if options.flag("m") or not seconds else seconds + start_ms / 1000,
        notes=(*notes, *more),
    )


def _refuse(options: Options) -> None:
    for letter, why in (("a", "the whole suite"), ("C", "tasks bound to CPUs"), ("M", "tasks bound to memory")):
        if options.flag(letter):
            raise ScenarioError(f"{NAME}: -{letter}: {why} is not modelled; expected a single run of free tasks")


def _groups(options: Options, name: str, processes: int, threads: int) -> tuple[Processes, ...]:
    if "x" not in options.given or processes == 1:
        return (Processes(name, processes, threads),)
    return Processes(f"{name}.first", 1, threads), Processes(name, processes - 1, threads)


def _start_ms(sizes: dict[str, float], guest: Guest, busy: float) -> float:
    """Return how long filling the memory takes: the global memory alone, then all processes at once."""
    page = COSTS["first_touch"].instructions + FILL * WORDS
    alone = (sizes["global"] + MORE_MB) * PAGES_PER_MB if sizes["global"] else 0.0
    each = sum(sizes[what] + MORE_MB for what in ("process", "thread") if sizes[what]) * PAGES_PER_MB
    return (guest.ns(alone * page, 1) + guest.ns(each * page, busy)) / 1e6


def _rate(options: Options, guest: Guest) -> float:
    return guest.rate(WORDS * (CLEAR if options.flag("Z") else WALK))


def _memory(
    options: Options, guest: Guest, sizes: dict[str, float], names: tuple[str, ...], huge: bool, name: str
) -> tuple[tuple[Region, ...], tuple[Access, ...]]:
    walk = options.flag("r", True)
    order: Literal["random", "sequential"] = "random" if walk else "sequential"
    rate = _rate(options, guest)
    write = 1.0 if options.flag("Z") or options.flag("W", True) else 0.0
    total = sum(sizes.values())
    touch = guest.nodes[0] if options.flag("0") else None
    regions: list[Region] = []
    accesses: list[Access] = []
    for what, size in sizes.items():
        if not size:
            continue
        scope: Literal["process", "thread", "all"] = (
            "all" if what == "global" else "thread" if what == "thread" else "process"
        )
        own = "self" if what == "thread" else "main"
        region = Region(
            f"{name}.{what}",
            size,
            names,
            scope=scope,
            kind="shmem" if scope == "all" else "private",
            pages="huge" if huge and scope != "all" else "base",
            block_kb=None if huge and scope != "all" else block_kb(size),
            first_touch=own if touch is None else touch,
        )
        regions.append(region)
        if scope != "all":
            regions.append(replace(region, name=f"{name}.{what}-edge", size_mb=MORE_MB))
        start: float | Literal["spread"] = 0.0 if walk else "spread"
        accesses.append(
            Access(region.name, pages_per_s=rate * size / total, processes=names, order=order, start=start, write=write)
        )
    return tuple(regions), tuple(accesses)


def _perturbed(
    options: Options, guest: Guest, first: str, start_ms: float, seconds: float
) -> tuple[tuple[Binding, ...], tuple[str, ...]]:
    """Return the bindings that move the first thread to the other half of the machine, every ``-x`` seconds."""
    if "x" not in options.given:
        return (), ()
    every = options.whole("x", 0, 1)
    times = [start_ms + 1000.0 * every * i for i in range(1, int(max(seconds, 1) // every) + 1)]
    bindings = tuple(
        Binding(
            cpus=(guest.cpus - 1 if i % 2 == 0 else 0,),
            processes=(first,),
            threads=(0,),
            from_ms=at,
            until_ms=at + HELD_MS,
        )
        for i, at in enumerate(times)
    )
    note = "-x: the thread is moved to the last and the first CPU in turn; in reality to the half where it is not"
    return bindings, (note,)
