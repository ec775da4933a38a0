"""The formats that ``numalab read`` knows: how to recognise each, and what reading it gives.

A new format is a :class:`Format` in :data:`FORMATS` and a function that returns a :class:`Reading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from numalab.readers import (
    ftrace,
    lkp,
    mmtests,
    nlmon,
    node_numastat,
    numa_maps,
    perf_lock,
    sched,
    tasks,
    vmstat,
    zoneinfo,
)
from numalab.readers._reading import Found, Reading
from numalab.readers._text import Skipped

if TYPE_CHECKING:
    from numalab.readers.perf_bench import Test

__all__ = ["FORMATS", "Format", "FormatError", "Found", "Reading", "Skipped", "read", "read_folder"]


class FormatError(ValueError):
    """No known format, or not the one that was asked for."""


@dataclass(frozen=True)
class Format:
    """One format: its name, what prints it, a quick test of a text, and its reader (text, source, kernel release)."""

    name: str
    what: str
    sniff: Callable[[str], bool]
    read: Callable[[str, str, str | None], Reading]


def read(text: str, source: str, name: str | None = None, release: str | None = None) -> Reading:
    """Read a text in the format it looks like, or in a given one.

    Parameters
    ----------
    text : str
    source : str
        File name, for messages.
    name : str, optional
        A key of :data:`FORMATS`; default: the first whose test fits.
    release : str, optional
        Release of the kernel the text is from, where the format depends on it.

    Raises
    ------
    FormatError
        Nothing fits, or the name is unknown; lists the formats.
    ValueError
        The format's own error: the text contradicts itself; names the line.
    """
    if name is not None:
        if name not in FORMATS:
            raise FormatError(f"no format {name!r}; known: {', '.join(FORMATS)}")
        return FORMATS[name].read(text, source, release)
    for known in FORMATS.values():
        if known.sniff(text):
            return known.read(text, source, release)
    if nlmon.looks_like(text):
        raise FormatError(f"{source}: belongs to a run folder, beside its meta.json; give the folder")
    listed = "; ".join(f"{known.name} ({known.what})" for known in FORMATS.values())
    raise FormatError(f"{source}: looks like no format that numalab reads; known: {listed}; force one with --format")


def read_folder(path: Path) -> Reading:
    """Read the folder of one run; see `numalab.readers.trace`."""
    from numalab.readers import trace

    report = trace.read(path)
    return Reading(
        source=report.source,
        format=f"trace folder, layout {report.layout}",
        lines=sum(file.lines for file in report.files),
        understood=tuple(Found(0, file.what, file.name) for file in report.files),
        skipped=report.skipped,
        dataset=report.dataset,
        missing=tuple(Found(0, what, name) for name, what in report.missing),
    )


# ---------------------------------------------------------------- perf bench numa mem

_PERF = re.compile(
    r"perf bench numa|numa/mem|#\s+[\d.]+%\s+\[[\d.]+ mins\]|NUMA-convergence-latency|tasks? will execute"
)


def _read_perf(text: str, source: str, _release: str | None) -> Reading:
    from numalab.readers import perf_bench

    report = perf_bench.parse(text, source)
    understood = [Found(line, header) for line, header in report.headers]
    for test in report.tests:
        understood.append(Found(test.line, _describe(test)))
        understood += [Found(line, f"perf's remark: {remark}") for line, remark in test.notes]
    return Reading(
        source=source,
        format="perf-bench-numa",
        lines=len(text.splitlines()),
        understood=tuple(sorted(understood, key=lambda found: (found.line, found.what))),
        skipped=tuple(Skipped(*skip) for skip in report.skipped),
        dataset=lambda: perf_bench.to_dataset(report),
    )


def _describe(test: Test) -> str:
    parts = [f"test {test.name}"]
    if test.options:
        parts.append(f"options {test.options.args}")
    setup = test.setup
    if setup.tasks is not None:
        parts.append(f"{setup.tasks} tasks on {setup.nodes} nodes, {setup.cpus} CPUs")
    for count, noun, lines in (
        (len(test.progress), "progress records", [record.line for record in test.progress]),
        (len(test.ticks), "records without places", [line for line, _, _ in test.ticks]),
        (len(test.results), "result rows", [row.line for row in test.results]),
        (len(test.thread_results), "rows of single threads", [row.line for _, _, row in test.thread_results]),
    ):
        if count:
            parts.append(f"{count} {noun} (lines {min(lines)}-{max(lines)})")
    if test.converged is not None:
        parts.append("did not converge" if test.converged_s is None else f"converged after {test.converged_s:g} s")
    return ", ".join(parts)


# ---------------------------------------------------------------- all


def _file(function: str, module: str = "_files") -> Callable[[str, str, str | None], Reading]:
    """Return a reader that imports numpy and xarray only when it is called."""

    def call(text: str, source: str, release: str | None) -> Reading:
        reading: Reading = getattr(import_module(f"numalab.readers.{module}"), function)(text, source, release)
        return reading

    return call


# The order matters: the first that fits is taken. A table may name the command perf bench numa, and /proc/zoneinfo
# holds lines of /proc/vmstat.
FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format("lkp", "comparison table of LKP", lkp.looks_like, _file("read_lkp", "tables")),
        Format("mmtests", "comparison table of MMTests", mmtests.looks_like, _file("read_mmtests", "tables")),
        Format(
            "perf-bench-numa",
            "output of perf bench numa mem",
            lambda text: _PERF.search(text) is not None,
            _read_perf,
        ),
        Format(
            "perf-lock", "perf lock contention, perf lock report", perf_lock.looks_like_lock, _file("read_perf_lock")
        ),
        Format("perf-report", "perf report", perf_lock.looks_like_report, _file("read_perf_report")),
        Format("ftrace", "trace events of NUMA balancing", ftrace.looks_like, _file("read_ftrace")),
        Format("tasks", "tasks.log of the sampler", tasks.looks_like, _file("read_tasks")),
        Format("sched", "/proc/PID/sched", sched.looks_like, _file("read_sched")),
        Format("numa_maps", "/proc/PID/numa_maps", numa_maps.looks_like, _file("read_numa_maps")),
        Format("zoneinfo", "/proc/zoneinfo", zoneinfo.looks_like, _file("read_zoneinfo")),
        Format("numastat", "nodeN/numastat", node_numastat.looks_like, _file("read_numastat")),
        Format("vmstat", "/proc/vmstat", vmstat.looks_like, _file("read_vmstat")),
    )
}
