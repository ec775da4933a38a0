"""``numawl``: processes of threads over arrays of a process, of a thread, and of all."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from numalab.machine import PAGES_PER_MB
from numalab.scenarios import _areas
from numalab.scenarios._command import Options, Piece, ScenarioError, block_kb
from numalab.scenarios._guest import Guest
from numalab.workload import Access, Binding, Processes, Region

NAME = "numawl"
#: For how long a task is held where it filled its array, ms.
AT_START_MS = 1.0


def instructions(accesses: int, *, write: bool, random: bool) -> int:
    """Return the instructions of one page visit (counted in the program, gcc 12 -O2).

    8 to find the next page in order (17 at random), 4 to begin and 6 to end the visit (5 when writing), 13 for each
    read (14 for each write) and one less for the first.
    """
    return (17 if random else 8) + 4 + (5 if write else 6) + (14 if write else 13) * accesses - 1


@dataclass(frozen=True)
class _Run:
    """The options, in numbers."""

    processes: int
    threads: int
    sizes: dict[str, int]
    init: str
    bind: str
    seconds: int
    sleep_us: int
    accesses: int
    write: bool
    fraction: float
    random: bool
    release_ms: int


def build(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe one run of the program.

    Parameters
    ----------
    words : list of str
        Its options.
    guest : Guest
    name : str
        Of its processes; begins the names of its regions.

    Raises
    ------
    ScenarioError
        An option it does not have, or an argument it cannot take.
    """
    run = _read(words)
    tasks = run.processes * run.threads
    busy, duty = _busy(run, guest, tasks)
    touch = _first_touch(run, guest)
    regions, accesses = _memory(run, guest, name, touch)
    bindings = _bindings(run, guest, name)
    below, above, more = _areas.around(
        name,
        (name,),
        _areas.STATIC,
        threads=run.threads,
        first_touch="main" if run.init == "self" else _last(run, guest),
        passes_per_s=guest.rate(instructions(run.accesses, write=run.write, random=run.random))
        / sum(_visits(run).values()),
    )
    notes = [_areas.STATIC.source]
    if run.init == "self" and not run.write and (run.sizes["P"] or run.sizes["G"]):
        notes.append("memory that is only read and never written is the zero page: not scanned, kept on one node")
    if run.init == "self" and run.write and run.sizes["P"] and run.threads > 1:
        notes.append(
            "-i self: pages lie on the nodes of the threads in turn; in reality a thread touches its share first"
        )
    if run.threads == 1:
        notes.append("the task begins with a fresh clock; in reality it has used CPU time to fill its array")
    if 0.0 <= run.fraction < 1.0 and run.sizes["P"]:
        notes.append("-o: the slices of the threads are areas of their own; in reality one area")
    if duty < 1.0:
        notes.append(
            f"-u: tasks want to run {duty:.3f} of the time, drawn every 10 ms; in reality they sleep after each pass"
        )
    return Piece(
        (Processes(name, run.processes, run.threads, demand=max(1, round(1000 * duty))),),
        (*below, *regions, *above),
        (*accesses, *more),
        bindings,
        busy=busy,
        seconds=float(run.seconds),
        notes=tuple(notes),
    )


def _read(words: list[str]) -> _Run:
    options = Options.read(NAME, words, "ptPTGibrsukonS", "WR")
    sizes = {letter: options.whole(letter, 0) for letter in "PTG"}
    if not any(sizes.values()):
        raise ScenarioError(f"{NAME}: expected memory (-P, -T or -G above 0), got none")
    init, bind = options.text("i", "self"), options.text("b", "free")
    if not re.fullmatch(r"rr|self|\d+", init):
        raise ScenarioError(f"{NAME}: -i: expected rr, self or the number of a node, got {init!r}")
    if not re.fullmatch(r"free|proc|inter|\d+|home:\d+,dst:\d+@\d+", bind):
        raise ScenarioError(f"{NAME}: -b: expected free, proc, inter, home:H,dst:D@MS or a node, got {bind!r}")
    return _Run(
        processes=options.whole("p", 1, 1),
        threads=options.whole("t", 1, 1),
        sizes=sizes,
        init=init,
        bind=bind,
        seconds=options.whole("s", 30, 1),
        sleep_us=options.whole("u", 0),
        accesses=options.whole("k", 8, 1),
        write=options.flag("W"),
        fraction=options.number("o", 1.0),
        random=options.flag("R"),
        release_ms=options.whole("r", 0),
    )


def _visits(run: _Run) -> dict[str, float]:
    """Return the pages of each array that a thread visits in one pass."""
    pages = {letter: float(size * PAGES_PER_MB) for letter, size in run.sizes.items()}
    own = pages["P"] / run.threads
    if run.fraction < 1.0:
        pages["P"] = own + run.fraction * (pages["P"] - own)
    return pages


def _busy(run: _Run, guest: Guest, tasks: int) -> tuple[float, float]:
    """Return the busy vCPUs, and the share of the time a task wants to run."""
    n = len(guest.nodes)
    match run.bind.partition(":")[0]:
        case "free" | "inter":
            places = min(tasks, guest.cpus)
        case "proc":
            on_node = [run.threads * len(range(i, run.processes, n)) for i in range(n)]
            places = sum(min(count, cpus) for count, cpus in zip(on_node, guest.cpus_per_node, strict=True))
        case "home":
            places = min(tasks, guest.cpus_per_node[int(re.findall(r"\d+", run.bind)[0]) % n])
        case node:
            places = min(tasks, guest.cpus_per_node[int(node) % n])
    if not run.sleep_us:
        return float(places), 1.0
    # The pass is shorter the fewer vCPUs are busy, and they are busy less the shorter it is.
    step = instructions(run.accesses, write=run.write, random=run.random)
    visits, duty = sum(_visits(run).values()), 1.0
    for _ in range(50):
        pass_ns = guest.ns(visits * step * guest.system, places * duty)
        duty = (duty + pass_ns / (pass_ns + 1000 * run.sleep_us)) / 2
    return max(1.0, places * duty), duty


def _first_touch(run: _Run, guest: Guest) -> int | str:
    if run.init == "self":
        return "self"
    if run.init == "rr":
        # The first 4 KiB to be touched bring in a whole huge page.
        return guest.nodes[0] if guest.huge else "rr"
    return guest.node(int(run.init))


def _last(run: _Run, guest: Guest) -> int:
    """Return the node to which the main thread was bound when it touched the last array."""
    return guest.nodes[-1] if run.init == "rr" else guest.node(int(run.init))


def _memory(run: _Run, guest: Guest, name: str, touch: int | str) -> tuple[tuple[Region, ...], tuple[Access, ...]]:
    visits = _visits(run)
    total = sum(visits.values())
    rate = guest.rate(instructions(run.accesses, write=run.write, random=run.random))
    share = {letter: rate * pages / total for letter, pages in visits.items()}
    unwritten = run.init == "self" and not run.write
    order: Literal["random", "sequential"] = "random" if run.random else "sequential"
    write = 1.0 if run.write else 0.0
    regions: list[Region] = []
    accesses: list[Access] = []

    def region(what: str, size: float, scope: Literal["process", "thread", "all"], zero_page: bool) -> Region:
        return Region(
            f"{name}.{what}",
            size,
            (name,),
            scope=scope,
            kind="shmem" if scope == "all" else "private",
            pages="huge" if guest.huge and scope != "all" else "base",
            block_kb=None if guest.huge and scope != "all" else block_kb(size),
            first_touch=guest.nodes[0] if zero_page else touch,
            policy="explicit" if zero_page else "default",
        )

    def access(what: str, pages_per_s: float) -> Access:
        return Access(f"{name}.{what}", pages_per_s=pages_per_s, processes=(name,), order=order, write=write)

    # in the order of their addresses: the kernel maps from the top down
    if run.sizes["T"]:
        # each thread writes its own array first
        regions.append(region("thread", run.sizes["T"], "thread", False))
        accesses.append(access("thread", share["T"]))
    if run.sizes["P"] and run.fraction >= 1.0:
        regions.append(region("process", run.sizes["P"], "process", unwritten))
        accesses.append(replace(access("process", share["P"]), start=0.0 if run.random else "spread"))
    elif run.sizes["P"]:
        regions.append(region("process", run.sizes["P"] / run.threads, "thread", unwritten))
        own = run.sizes["P"] * PAGES_PER_MB / run.threads
        accesses.append(access("process", share["P"] * own / visits["P"]))
        if visits["P"] > own:
            others = share["P"] * (1 - own / visits["P"])
            accesses.append(replace(access("process", others), reach="all", order="random"))
    if run.sizes["G"]:
        regions.append(region("global", run.sizes["G"], "all", unwritten))
        accesses.append(replace(access("global", share["G"]), start=0.0 if run.random else "spread"))
    return tuple(regions), tuple(accesses)


def _bindings(run: _Run, guest: Guest, name: str) -> tuple[Binding, ...]:
    match run.bind.partition(":")[0]:
        case "free":
            if run.threads > 1 or run.init == "self":
                return ()
            # The main thread works itself, and was bound where it touched last.
            return (Binding(_last(run, guest), processes=(name,), until_ms=AT_START_MS),)
        case "proc":
            return (Binding("process", processes=(name,)),)
        case "inter":
            until = float(run.release_ms) if run.release_ms else None
            return (Binding("thread", processes=(name,), until_ms=until),)
        case "home":
            home, there, at = (int(number) for number in re.findall(r"\d+", run.bind))
            first = (Binding(guest.node(home), processes=(name,), until_ms=float(at)),) if at else ()
            return (*first, Binding(guest.node(there), processes=(name,), from_ms=float(at)))
        case node:
            return (Binding(guest.node(int(node)), processes=(name,)),)
