"""Model scenarios of real runs: the machine, workload and kernel that a trace's meta.json describes.

Nothing is tuned to a run. What a page visit costs is counted in the programs; the few costs that had to be fitted
stand in :data:`COSTS`, each with the traces it was fitted to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any

from numalab.kernel import Kernel
from numalab.machine import Machine
from numalab.readers import _layout_a, _layout_b, zoneinfo
from numalab.readers._assemble import Parts
from numalab.readers._collect import Collected, read_meta
from numalab.readers._folder import Folder
from numalab.readers._text import ReadError
from numalab.records import DescriptionError
from numalab.scenarios import _cowread, _guest, _kernels, _machines, _messages, _nlwl, _numawl, _perf_numa
from numalab.scenarios._command import Piece, ScenarioError, programs
from numalab.scenarios._guest import COSTS, MONITOR_NAME, Cost, Guest
from numalab.workload import Workload

__all__ = ["COSTS", "MONITOR_NAME", "Cost", "Scenario", "ScenarioError", "scenario"]

#: Longest start of a command that names a program, in words.
_PROGRAMS: dict[tuple[str, ...], Callable[[list[str], Guest, str], Piece]] = {
    ("numawl",): _numawl.build,
    ("cowread",): _cowread.build,
    ("perf", "bench", "numa", "mem"): _perf_numa.build,
    ("perf", "bench", "sched", "messaging"): _messages.messaging,
    ("perf", "bench", "sched", "pipe"): _messages.pipe,
    ("nlwl",): _nlwl.build,
}


@dataclass(frozen=True)
class Scenario:
    """A trace as the model runs it.

    Attributes
    ----------
    machine : Machine
    workload : Workload
    kernel : Kernel
    params : dict
        Model parameters (:mod:`numalab.model.params`) and scan settings of this trace.
    seconds : float
        Length of the run, from the trace's zero.
    notes : tuple of str
        What of the run the model does not follow, and what is assumed.
    """

    machine: Machine
    workload: Workload
    kernel: Kernel
    params: dict[str, float]
    seconds: float
    notes: tuple[str, ...]


def scenario(trace: str | PathLike[str] | Mapping[str, Any]) -> Scenario:
    """Describe a trace for the model.

    Parameters
    ----------
    trace : path-like or mapping
        The folder of a run, of either layout, packed or not; or the contents of its meta.json alone: then nodes are
        empty, scan settings those in it, and a command that ends with its work needs the times of the run in it.

    Returns
    -------
    Scenario
        For ``simulate(s.machine, s.workload, s.kernel, seconds=s.seconds, **s.params)``.

    Raises
    ------
    ScenarioError
        The folder, a key of meta.json or an argument of the command that cannot be used, and what was expected.
    """
    if isinstance(trace, Mapping):
        return _from(dict(trace), "meta.json", None)
    try:
        folder = Folder(Path(os.fspath(trace)))
        meta = read_meta(folder)
    except ReadError as error:
        raise ScenarioError(str(error)) from error
    return _from(meta, folder.source("meta.json"), folder)


def _from(meta: dict[str, Any], source: str, folder: Folder | None) -> Scenario:
    stock = _layout_a.fits(meta)
    if not stock and not _layout_b.fits(meta):
        problem = "expected topology.node_cpus (stock kernels) or toggles and topology.nodes_x_cpus (toggle kernel)"
        raise ScenarioError(f"{source}: {problem}")
    command = _text(meta, "workload.command" if stock else "command", source)
    name = _text(meta, "kernel.release" if stock else "kernel", source)
    sysctl = _sysctl_stock(meta) if stock else _sysctl_toggle(meta, folder)
    release, notes = _kernels.release(name if stock else _uname_release(name), source)
    kernel, more = (Kernel(release), ()) if stock else _kernels.toggled(release, meta["toggles"], source)
    settings, about_settings = _kernels.settings(kernel, sysctl, source)
    shape = _machines.shape(meta, source)
    guest = _guest_of(meta, shape, source)
    try:
        pieces = _pieces(command, guest)
    except (ScenarioError, DescriptionError) as error:
        raise ScenarioError(f"{source}: {error}") from error
    hogs = [piece.hog_mb for piece in pieces if piece.hog_mb is not None]
    given = meta.get("hog_free_mb")
    hog_mb = hogs[0] if hogs else float(given) if given and not _zones(folder) else None
    machine, about_machine = _machines.build(
        shape,
        system=folder.text("system.txt") if folder else None,
        zones=_zones(folder),
        hog_mb=hog_mb,
        source=source,
    )
    took = _took(meta, folder, stock=stock)
    pieces, seconds, about_time = _in_time(pieces, took, source)
    busy = max(piece.busy for piece in pieces)
    threads = max(min(piece.busy, group.threads) for piece in pieces for group in piece.processes)
    costs = _guest.params(guest, busy, threads, many_mappings=any(piece.many_mappings for piece in pieces))
    about_pieces = tuple(note for piece in pieces for note in piece.notes)
    about_guest = (f"costs are those of {threads:g} busy threads a process and {busy:g} busy vCPUs throughout",)
    return Scenario(
        machine,
        _workload(command, [*pieces, guest.monitor(busy)], source),
        kernel,
        {**costs, **_scheduler(kernel, guest), **settings},
        seconds,
        tuple(
            dict.fromkeys((*notes, *more, *about_settings, *about_machine, *about_pieces, *about_guest, *about_time))
        ),
    )


def _text(meta: Mapping[str, Any], path: str, source: str) -> str:
    value: Any = meta
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise ScenarioError(f"{source}: {path}: expected text, got {value!r}")
    return value


def _uname_release(uname: str) -> str:
    words = uname.split()
    return words[2] if len(words) > 2 else uname


def _sysctl_stock(meta: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in (meta.get("sysctl") or {}).items():
        flat |= value if isinstance(value, Mapping) else {key.removeprefix("kernel."): value}
    return flat


def _sysctl_toggle(meta: Mapping[str, Any], folder: Folder | None) -> dict[str, Any]:
    """Read path:value lines, or name=value words of meta.json where there is no file."""
    text = folder.text("sysctl.txt") if folder else None
    if text is not None:
        pairs = [line.rpartition(":") for line in text.splitlines() if ":" in line]
        return {path.rpartition("/")[2]: value.strip() for path, _, value in pairs}
    words = [word.partition("=") for word in str(meta.get("sysctl") or "").split() if "=" in word]
    return {path.rpartition("/")[2].rpartition(".")[2]: value for path, _, value in words}


def _guest_of(meta: Mapping[str, Any], shape: _machines.Shape, source: str) -> Guest:
    accel = _text(meta, "qemu.accel", source)
    host = meta["qemu"].get("host_cpus", 2)
    if isinstance(host, bool) or not isinstance(host, int) or host < 1:
        raise ScenarioError(f"{source}: qemu.host_cpus: expected a number >= 1, got {host!r}")
    instruction_ns, parallel, system = _guest.clock(accel, host, source)
    toggle = "toggles" in meta
    huge = not toggle and (meta.get("sysctl") or {}).get("transparent_hugepage") == "always"
    cpus = tuple(shape.cpus.values())
    return Guest(tuple(shape.cpus), cpus, instruction_ns, parallel, huge, toggle, system)


def _pieces(command: str, guest: Guest) -> list[Piece]:
    found = []
    chain = programs(command)
    for number, words in enumerate(chain, 1):
        start = next((key for key in _PROGRAMS if tuple(words[: len(key)]) == key), None)
        if start is None:
            known = ", ".join(" ".join(key) for key in _PROGRAMS)
            raise ScenarioError(f"command {command!r}: expected one of {known}, got {' '.join(words)!r}")
        name = start[-1] if len(chain) == 1 else f"{start[-1]}{number}"
        found.append(_PROGRAMS[start](words[len(start) :], guest, name))
    return found


def _zones(folder: Folder | None) -> zoneinfo.Report | None:
    text = folder.text("zoneinfo_before.txt") if folder else None
    return None if not text else zoneinfo.parse(text, folder.source("zoneinfo_before.txt") if folder else "")


def _took(meta: Mapping[str, Any], folder: Folder | None, *, stock: bool) -> float | None:
    """Return how long the real run took, from its zero; None where the folder does not say."""
    try:
        if not stock:
            begin, end = meta["guest_uptime_s"]
            return float(end) - float(begin)
        if folder is None:
            begin = float(str(meta["uptime_cmd_start"]).split()[0])
        else:
            begin = _layout_a.zero(Collected(folder, dict(meta), Parts()))
        return float(str(meta["uptime_after"]).split()[0]) - begin
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def _in_time(pieces: list[Piece], took: float | None, source: str) -> tuple[list[Piece], float, tuple[str, ...]]:
    """Put the programs one after the other; those that end with their work share what the real run leaves them."""
    open_ended = [piece for piece in pieces if piece.seconds is None]
    if open_ended and took is None:
        problem = "expected the times of the run (uptime_cmd_start and uptime_after, or guest_uptime_s)"
        raise ScenarioError(f"{source}: {problem}: the command ends with its work")
    notes = ("the program ends with its work; the model runs as long as the trace",) if open_ended else ()
    left = max(0.0, (took or 0.0) - sum(piece.seconds or 0.0 for piece in pieces))
    length = [left / len(open_ended) if piece.seconds is None else piece.seconds for piece in pieces]
    ends = list(accumulate(length))
    if len(pieces) == 1:
        return pieces, ends[0], notes
    placed = [
        _between(piece, 1000 * (end - own), 1000 * end) for piece, own, end in zip(pieces, length, ends, strict=True)
    ]
    chained = "programs one after the other: tasks of the earlier ones stay and run on without touching memory"
    return placed, ends[-1], (*notes, chained)


def _between(piece: Piece, begin_ms: float, end_ms: float) -> Piece:
    """Return a program that begins and ends at other times."""

    def later(value: float | None) -> float | None:
        return None if value is None else value + begin_ms

    return replace(
        piece,
        processes=tuple(replace(group, start_ms=group.start_ms + begin_ms) for group in piece.processes),
        accesses=tuple(replace(entry, until_ms=end_ms) for entry in piece.accesses),
        bindings=tuple(
            replace(entry, from_ms=entry.from_ms + begin_ms, until_ms=later(entry.until_ms)) for entry in piece.bindings
        ),
    )


def _workload(command: str, pieces: list[Piece], source: str) -> Workload:
    try:
        return Workload(
            command,
            tuple(entry for piece in pieces for entry in piece.processes),
            tuple(entry for piece in pieces for entry in piece.regions),
            tuple(entry for piece in pieces for entry in piece.accesses),
            tuple(entry for piece in pieces for entry in piece.bindings),
            source=f"{source}: {command}",
        )
    except DescriptionError as error:
        raise ScenarioError(f"{source}: command {command!r}: {error}") from error


def _scheduler(kernel: Kernel, guest: Guest) -> dict[str, float]:
    """Return what of the scheduler depends on release and number of CPUs.

    The tolerance of the load balancer between nodes is 117 % since 5.10. Until 6.5 two tasks of a CPU share a
    latency of 6 ms x (1 + log2 of up to 8 CPUs); since 6.6 a slice ends with the first tick after 0.75 ms x the same.
    """
    scale = 1 + (min(8, guest.cpus)).bit_length() - 1
    release = tuple(int(part) for part in kernel.release.split("."))
    slice_us = 4000 if release >= (6, 6) else 6000 * scale // 2
    return {"domain_pct": 117, "slice_us": slice_us}
