"""The formats that ``numalab read`` knows: how to recognise each, and what reading it gives.

A new format is a :class:`Format` in :data:`FORMATS` and a function that returns a :class:`Reading`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from numalab.readers import (
    autonuma_log,
    ftrace,
    funclatency,
    lkp,
    memcg,
    meminfo,
    mmtests,
    mpstat,
    nlmon,
    node_numastat,
    numa_maps,
    numactl,
    numamove,
    numastat_tables,
    perf_lock,
    perf_report,
    perf_script,
    perf_stat,
    record_log,
    sched,
    skip_reasons,
    tasks,
    vmstat,
    workload_log,
    zoneinfo,
)
from numalab.readers._reading import Found, Reading
from numalab.readers._text import Skipped
from numalab.records import nearest

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
        Nothing fits, or the name is unknown; names the nearest.
    ValueError
        The format's own error: the text contradicts itself; names the line.
    """
    if name is not None:
        if name not in FORMATS:
            raise FormatError(f"no format {name!r}{nearest(name, FORMATS)}")
        return replace(FORMATS[name].read(text, source, release), text=text)
    for known in FORMATS.values():
        if known.sniff(text):
            return replace(known.read(text, source, release), text=text)
    raise unknown(text, source)


#: Words that texts of common formats hold, mangled or not.
_WORDS = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "lkp": r"%stddev|%change|proc-vmstat\.",
        "mmtests": r"\b(?:[AH]mean|Duration|Ops)\b",
        "perf-bench-numa": r"numa/mem|thread-avg|GB/sec",
        "perf-stat": r"performance counter|task-clock|time elapsed",
        "perf-report": r"\[k\]|\bOverhead\b",
        "perf-lock": r"\bcontended\b|avg wait",
        "perf-script": r"\bsched:|\bmigrate:mm_",
        "sched": r"numa_faults|numa_preferred_nid|numa_scan_seq",
        "numa_maps": r"kernelpagesize|mapmax|\bN\d+=",
        "meminfo": r"\bMem(?:Total|Free|Used)\b",
        "numastat-p": r"\b(?:Heap|Stack|Private)\b",
        "mpstat": r"%usr|%iowait",
        "numastat": r"local.?node|other.?node|interleave.?hit",
        "numactl": r"node \d+ (?:cpus|size|free)|node distances",
        "vmstat": r"numa_(?:hit|hint|pte)|\b(?:nr|pgmigrate|pgpromote)_|\bpgfault\b",
    }.items()
}
#: Of a text so many characters are looked at, and fewer than one of so many is a NUL.
_READ, _FEW = 50_000, 100


def unknown(text: str, source: str) -> FormatError:
    """Return the error for a text that no format knows; it names those it may be of."""
    if nlmon.looks_like(text) or workload_log.looks_like(text):
        return FormatError(f"{source}: belongs to a run folder, beside its meta.json; give the folder")
    if text.count("\0") * _FEW > len(text):
        return FormatError(f"{source}: is no text; a saved run (.nc) is for numalab show, plot and diagnose")
    near = " or ".join(_nearest(text))
    hint = f"; perhaps {near}, by its words: force it with --format" if near else ""
    return FormatError(f"{source}: looks like no format that numalab reads{hint}; numalab read --help lists all")


def _nearest(text: str) -> list[str]:
    """Return the formats, two at most, whose words a text holds most often."""
    counts = Counter({name: len(words.findall(text[:_READ])) for name, words in _WORDS.items()})
    return [name for name, count in counts.most_common(2) if count]


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


# The order matters where a whole text is asked: the first that fits is taken. A table may name the command perf bench
# numa, and /proc/zoneinfo holds lines of /proc/vmstat.
FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format("record", "log of numalab record", record_log.looks_like, _file("read_record", "_recording")),
        Format("lkp", "comparison table of LKP", lkp.looks_like, _file("read_lkp", "tables")),
        Format("mmtests", "comparison table of MMTests", mmtests.looks_like, _file("read_mmtests", "tables")),
        Format(
            "perf-bench-numa",
            "output of perf bench numa mem",
            lambda text: _PERF.search(text) is not None,
            _read_perf,
        ),
        Format("perf-stat", "perf stat", perf_stat.looks_like, perf_stat.read),
        Format(
            "perf-lock", "perf lock contention, perf lock report", perf_lock.looks_like_lock, _file("read_perf_lock")
        ),
        Format("perf-report", "perf report", perf_report.looks_like, _file("read_perf_report", "_shares")),
        Format("numamove", "numamove and numasched of BPF", numamove.looks_like, _file("read_numamove", "_moved")),
        Format("latency-histogram", "histograms of funclatency and bpftrace", funclatency.looks_like, funclatency.read),
        Format("skip-reasons", "counts of sched_skip_vma_numa by reason", skip_reasons.looks_like, skip_reasons.read),
        Format("autonuma-benchmark", "log of autonuma-benchmark", autonuma_log.looks_like, autonuma_log.read),
        Format("ftrace", "trace events of NUMA balancing", ftrace.looks_like, _file("read_ftrace")),
        Format("perf-script", "trace events by perf script, trace-cmd", perf_script.looks_like, perf_script.read),
        Format("tasks", "tasks.log of the sampler", tasks.looks_like, _file("read_tasks")),
        Format("sched", "/proc/PID/sched", sched.looks_like, _file("read_sched", "_counter_files")),
        Format("numa_maps", "/proc/PID/numa_maps", numa_maps.looks_like, _file("read_numa_maps", "_memory_files")),
        Format("zoneinfo", "/proc/zoneinfo", zoneinfo.looks_like, _file("read_zoneinfo")),
        Format("memcg", "memory.numa_stat of a cgroup", memcg.looks_like, _file("read_memcg", "_memory_files")),
        Format("meminfo", "nodeN/meminfo", meminfo.looks_like, _file("read_meminfo", "_memory_files")),
        Format(
            "numastat-p",
            "numastat -p",
            numastat_tables.looks_like_processes,
            _file("read_numastat_processes", "_memory_files"),
        ),
        Format(
            "numastat-m",
            "numastat -m",
            numastat_tables.looks_like_system,
            _file("read_numastat_system", "_memory_files"),
        ),
        Format("mpstat", "mpstat -N", mpstat.looks_like, _file("read_mpstat", "_memory_files")),
        Format(
            "numastat", "numastat, nodeN/numastat", node_numastat.looks_like, _file("read_numastat", "_counter_files")
        ),
        Format(
            "numactl", "numactl -H, cpulist and distance", numactl.looks_like, _file("read_numactl", "_memory_files")
        ),
        Format(
            "memcg-stat",
            "memory.stat of a cgroup",
            vmstat.looks_like_cgroup,
            _file("read_memory_stat", "_counter_files"),
        ),
        Format("vmstat", "/proc/vmstat", vmstat.looks_like, _file("read_vmstat", "_counter_files")),
    )
}
