"""``nlwl``: the workloads of the before/after runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from numalab.machine import PAGES_PER_MB
from numalab.scenarios._command import Piece, ScenarioError, block_kb
from numalab.scenarios._cowread import FORK_PAGE, TMPFS, readers_of
from numalab.scenarios._guest import COSTS, Guest
from numalab.scenarios._messages import talkers
from numalab.workload import Access, Processes, Region

NAME = "nlwl"
#: Mean of the random pause before each mode begins, under 40 ms.
PAUSE_MS = 20.0
#: Instructions of a page visit, counted in the program (gcc 12 -O2). cow: 128 reads of 5. conv: 8 reads and writes of
#: 6, 10 to go on to the next page, 1 of the 64th part of what a chunk needs. scan: 16 of 5, 8 to go on, an 8th of 60
#: a chunk. jvm: 8 reads of 8, 4 writes, 33 to draw the page and 2 to go on.
COW, CONV, SCAN, JVM = 640, 59, 96, 103
#: Pages of a step of scan.
SCAN_PAGES = 8
#: Instructions to write the 1024 integers of a page, one by one.
FILL_PAGE = 5 * 1024
#: Pages of the program itself that a process maps. They lie where its file was first read, and the traces count them.
#: Fitted: S0 r1, 140 pages; S2 r1, 242; the mean. Not where nodes may be full: there they are taken before the start.
TEXT_PAGES = 190
#: The .data array of cow, MB.
DATA_MB = 1.0


def build(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe one run; arguments and errors as those of ``numawl``."""
    if not words or words[0] not in _MODES:
        got = repr(words[0]) if words else "none"
        raise ScenarioError(f"{NAME}: expected a mode ({', '.join(_MODES)}), got {got}")
    mode, arguments = words[0], words[1:]
    call, names = _MODES[mode]
    wanted = names.split()
    if len(arguments) != len(wanted):
        raise ScenarioError(f"{NAME} {mode}: expected {len(wanted)} arguments ({names}), got {len(arguments)}")
    values: dict[str, float | str] = {}
    for key, text in zip(wanted, arguments, strict=True):
        if "|" in key:
            if text not in key.split("|"):
                raise ScenarioError(f"{NAME} {mode}: {key}: expected one of the two, got {text!r}")
            values["kind"] = text
            continue
        if not re.fullmatch(r"\d+(\.\d+)?" if key == "FREE_MB" else r"\d+", text):
            raise ScenarioError(f"{NAME} {mode}: {key}: expected a number, got {text!r}")
        if key in ("N", "P", "T", "G", "K", "MB", "SECS", "KOPS", "LOOPS") and not int(text):
            raise ScenarioError(f"{NAME} {mode}: {key}: expected at least 1, got 0")
        if key in ("W%", "SH%") and int(text) > 100:
            raise ScenarioError(f"{NAME} {mode}: {key}: expected a share from 0 to 100, got {text}")
        values[key] = float(text)
    piece = call(values, guest, name)
    if mode in _BESIDE_A_HOG:
        return piece
    return replace(piece, regions=(_text(name), *piece.regions))


def _text(name: str) -> Region:
    return Region(
        f"{name}.text", TEXT_PAGES / PAGES_PER_MB, (name,), scope="all", kind="file", block_kb=4, first_touch="main"
    )


def _fill_ms(pages: float, instructions: float, guest: Guest, busy: float) -> float:
    return guest.ns(pages * (COSTS["first_touch"].instructions + instructions), busy) / 1e6


def _cow(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    readers, data = int(values["N"]), values["kind"] == "data"
    size = DATA_MB if data else float(values["MB"])
    pages = size * PAGES_PER_MB
    busy = float(min(readers, guest.cpus))
    # a pause under 3 ms after every fourth fork, and the fork itself
    stagger_ms = 1.5 / 4 + guest.ns(FORK_PAGE * pages, busy) / 1e6
    return readers_of(
        name,
        readers,
        size,
        guest.rate(COW),
        busy=busy,
        first_touch="main",
        start_ms=PAUSE_MS + (0.0 if data else _fill_ms(pages, FILL_PAGE, guest, 1)),
        stagger_ms=stagger_ms,
        seconds=float(values["SECS"]),
        kind="data" if data else "forked",
        scanned=not data,
        notes=(
            "the array lies where the first reader starts; in reality where the parent ran",
            *((TMPFS,) if data else ()),
        ),
    )


def _conv(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    processes, threads, size = int(values["P"]), int(values["T"]), float(values["MB"])
    busy = float(min(processes * threads, guest.cpus))
    fill = _fill_ms(size * PAGES_PER_MB, 0, guest, min(processes, guest.cpus))
    memory = f"{name}.memory"
    return Piece(
        (Processes(name, processes, threads, start_ms=PAUSE_MS + fill, stagger_ms=2.5),),
        (Region(memory, size, (name,), block_kb=block_kb(size), first_touch="main"),),
        (Access(memory, pages_per_s=guest.rate(CONV), processes=(name,), write=1.0),),
        busy=busy,
        seconds=PAUSE_MS / 1000 + float(values["SECS"]),
        notes=(
            "threads visit single pages at random; in reality 64 in a row from a random start",
            "memory lies where the first worker starts; in reality where the main thread ran",
        ),
    )


def _scan(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    threads, size = int(values["T"]), float(values["MB"])
    shared = float(values["SH%"]) / 100
    busy = float(min(threads, guest.cpus))
    rate, write = guest.rate(SCAN), float(values["W%"]) / 100
    visits = round(float(values["KOPS"]) * 1000 * SCAN_PAGES)
    part = f"{name}.part"
    accesses = []
    if shared < 1:
        accesses.append(Access(part, pages_per_s=rate * (1 - shared), processes=(name,), write=write))
    if shared > 0:
        accesses.append(Access(part, pages_per_s=rate * shared, processes=(name,), reach="all", write=write))
    start_ms = PAUSE_MS + _fill_ms(size * PAGES_PER_MB, 0, guest, 1)
    return Piece(
        (Processes(name, 1, threads, start_ms=start_ms, page_visits=visits),),
        (Region(part, size / threads, (name,), scope="thread", block_kb=block_kb(size), first_touch="main"),),
        tuple(accesses),
        busy=busy,
        notes=(
            "threads visit single pages at random; in reality 8 in a row",
            "the parts of the threads are areas of their own; in reality one area",
            "memory lies where the first worker starts; in reality where the main thread ran",
        ),
    )


def _shpol(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    raise ScenarioError(
        f"{NAME} shpol: a lock is what this run is about, not NUMA balancing; the lock model judges it (numalab.locks)"
    )


def _hb(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    pairs = int(values["G"]) * int(values["K"])
    # a sender fills its buffer of a page, which lies across two, and then uses its first 100 bytes
    return talkers(name, 1, 2 * pairs, guest, start_ms=PAUSE_MS, written_once=pairs)


def _jvm(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    threads, size, own_kb = int(values["T"]), float(values["MB"]), float(values["PRIVKB"])
    shared = float(values["SH%"]) / 100
    busy = float(min(threads, guest.cpus))
    rate = guest.rate(JVM)
    heap, own = f"{name}.heap", f"{name}.own"
    start_ms = PAUSE_MS + _fill_ms(size * PAGES_PER_MB, 0, guest, 1)
    regions = [Region(heap, size, (name,), block_kb=block_kb(size), first_touch="main")]
    accesses = []
    if shared > 0:
        accesses.append(Access(heap, pages_per_s=rate * shared, processes=(name,), write=1.0))
    if shared < 1:
        regions.append(Region(own, own_kb / 1024, (name,), scope="thread", block_kb=block_kb(own_kb / 1024)))
        accesses.append(Access(own, pages_per_s=rate * (1 - shared), processes=(name,), write=1.0))
    return Piece(
        (Processes(name, 1, threads, start_ms=start_ms),),
        tuple(regions),
        tuple(accesses),
        busy=busy,
        seconds=start_ms / 1000 + float(values["SECS"]),
        notes=("the heap lies where the first worker starts; in reality where the main thread ran",),
    )


def _hog(values: dict[str, float | str], guest: Guest, name: str) -> Piece:
    page = f"{name}.page"
    return Piece(
        (Processes(name, demand=1),),
        (Region(page, 1 / PAGES_PER_MB, (name,), block_kb=4, policy="explicit"),),
        busy=1.0,
        hog_mb=float(values["FREE_MB"]),
        notes=("the hog sleeps; its memory is taken off the nodes from the start",),
    )


_BESIDE_A_HOG = ("scan", "hog")
_MODES: dict[str, tuple[Callable[[dict[str, float | str], Guest, str], Piece], str]] = {
    "cow": (_cow, "N MB SECS SEED anon|data"),
    "conv": (_conv, "P T MB SECS SEED"),
    "scan": (_scan, "T MB KOPS W% SH% SEED"),
    "shpol": (_shpol, "N MB SECS SEED alloc|lookup"),
    "hb": (_hb, "G K LOOPS SEED"),
    "jvm": (_jvm, "T MB PRIVKB SH% SECS SEED"),
    "hog": (_hog, "FREE_MB"),
}
