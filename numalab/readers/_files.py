"""Single files of /proc, /sys and trace tools, read for themselves: each a `Reading` with its own dataset."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import (
    _assemble,
    _events,
    ftrace,
    node_numastat,
    numa_maps,
    perf_lock,
    sched,
    tasks,
    vmstat,
    zoneinfo,
)
from numalab.readers._assemble import Parts
from numalab.readers._reading import Found, Reading
from numalab.readers._text import Skipped


def _dataset(parts: Parts, name: str, source: str, skipped: Sequence[Skipped]) -> xr.Dataset:
    parts.finish()
    params = {"reader": name, "file": source, "skipped_lines": len(skipped)}
    return runs.build(parts.variables, parts.coords, title=f"{name}: {source}", source="measured", params=params)


def _reading(report: Any, name: str, understood: Sequence[Found], fill: Callable[[Parts], None]) -> Reading:
    def dataset() -> xr.Dataset:
        parts = Parts()
        fill(parts)
        return _dataset(parts, name, report.source, report.skipped)

    return Reading(report.source, name, report.lines, tuple(understood), tuple(report.skipped), dataset)


def _time(time: float | None) -> str:
    return "" if time is None else f" at {time:g} s"


def _span(found: Sequence[Any], noun: str) -> list[Found]:
    """Say how many records there are, and from when to when."""
    times = [one.time for one in found if one.time is not None]
    span = f", {min(times):g} to {max(times):g} s" if len(times) > 1 else _time(times[0]) if times else ""
    return [Found(found[0].line if found else 0, f"{len(found)} {noun}{'' if len(found) == 1 else 's'}{span}")]


def read_vmstat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read /proc/vmstat: counters over time, counted from the first of several samples."""
    report = vmstat.parse(text, source)
    numa = sum(name.startswith(("numa_", "pgmigrate")) for name in report.samples[0].values)
    found = _span(report.samples, "snapshot")
    found.append(Found(found[0].line, f"{len(report.samples[0].values)} names in each, {numa} of NUMA and migration"))
    if report.samples[0].time is None and len(report.samples) > 1:
        return _vmstat_side_by_side(report)

    def fill(parts: Parts) -> None:
        samples = report.samples
        times = [sample.time or 0.0 for sample in samples]
        values, lines = [sample.values for sample in samples], [sample.line for sample in samples]
        _assemble.add_counters(parts, "time", times, values, lines, source)

    return _reading(report, "vmstat", found, fill)


def _vmstat_side_by_side(report: vmstat.Report) -> Reading:
    """Keep snapshots without times apart, one entry along ``run`` each: they may be of different boots."""
    names = report.common()
    found = [
        Found(sample.line, f"snapshot {i}{' ' if sample.label else ''}{sample.label}: {len(sample.values)} names")
        for i, sample in enumerate(report.samples)
    ]
    found.append(Found(0, f"no times, so each is a run of its own, with the {len(names)} names all have"))

    def one(i: int, sample: vmstat.Sample) -> xr.Dataset:
        parts = Parts(coords={"snapshot": ("run", [sample.label or str(i)])})
        values = {name: sample.values[name] for name in names}
        _assemble.add_counters(parts, "time", [0.0], [values], [sample.line], report.source)
        return _dataset(parts, "vmstat", report.source, report.skipped)

    reading = _reading(report, "vmstat", found, lambda parts: None)
    return replace(reading, dataset=lambda: runs.concat([one(i, sample) for i, sample in enumerate(report.samples)]))


def read_numastat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read numastat of the nodes: allocation counters per node."""
    report = node_numastat.parse(text, source)
    nodes = sorted(report.samples[0].nodes)
    found = [*_span(report.samples, "sample"), Found(report.samples[0].line, f"nodes {', '.join(map(str, nodes))}")]
    return _reading(report, "numastat", found, lambda parts: _assemble.add_numastat(parts, "time", report))


def read_sched(text: str, source: str, release: str | None = None) -> Reading:
    """Read /proc/PID/sched: fault statistics, preferred nodes, groups."""
    report = sched.parse(text, source, release)
    found = _span(report.tasks, "look") if report.tasks[0].time is not None else []
    for task in [] if found else report.tasks:
        total = "" if task.total is None else f", {task.total} faults in all"
        found.append(Found(task.line, f"task {task.tid} {task.comm}: NUMA part of {len(task.faults)} nodes{total}"))
    if report.swapped:
        found.append(Found(0, f"private and shared exchanged back: kernel {release} prints them exchanged"))
    elif release is None and any(task.group is not None for task in report.tasks):
        found.append(Found(0, "taken as printed; kernels before 4.19 exchange private and shared (give --kernel)"))
    return _reading(report, "sched", found, lambda parts: _assemble.add_tasks(parts, "time", [], report.tasks))


def read_tasks(text: str, source: str, _release: str | None = None) -> Reading:
    """Read tasks.log: where tasks were."""
    report = tasks.parse(text, source)
    tids = {row.tid for row in report.rows}
    found = [
        *_span(report.rows, "line"),
        Found(1, f"{len(tids)} tasks of {len({r.pid for r in report.rows})} processes"),
    ]
    return _reading(report, "tasks", found, lambda parts: _assemble.add_tasks(parts, "time", report.rows, []))


def read_numa_maps(text: str, source: str, _release: str | None = None) -> Reading:
    """Read numa_maps: pages per mapping and node."""
    report = numa_maps.parse(text, source)
    found = _span(report.processes, "look")
    for process in report.processes if len(report.processes) == 1 else []:
        pages: dict[int, int] = {}
        for mapping in process.mappings:
            for node, count in mapping.base_pages().items():
                pages[node] = pages.get(node, 0) + count
        where = ", ".join(f"{count} on node {node}" for node, count in sorted(pages.items()))
        found.append(Found(process.line, f"{len(process.mappings)} mappings, pages of 4 KiB: {where or 'none'}"))
    return _reading(report, "numa_maps", found, lambda parts: _assemble.add_memory(parts, "time", report))


def read_ftrace(text: str, source: str, _release: str | None = None) -> Reading:
    """Read trace events: the table of moves, swaps and failures."""
    report = ftrace.parse(text, source)
    done, failed = _events.outcomes(report)
    found = [Found(0, f"{count} {name}") for name, count in report.counts().items()] or [Found(1, "no event")]
    found.append(Found(0, f"{len(done)} moves and swaps done, {len(failed)} attempts failed"))
    if report.lost:
        found.append(Found(0, f"the kernel lost {report.lost} events"))

    def fill(parts: Parts) -> None:
        _events.see_tasks(parts, report)
        _events.see_cpus(parts, report)
        parts.see_nodes(parts.node_of.values())
        _events.add_events(parts, report)

    return _reading(report, "ftrace", found, fill)


def read_zoneinfo(text: str, source: str, _release: str | None = None) -> Reading:
    """Read /proc/zoneinfo: free pages per node."""
    report = zoneinfo.parse(text, source)
    nodes = report.nodes()
    found = [Found(zone.line, f"zone {zone.name} of node {zone.node}") for zone in report.zones]
    found += [
        Found(0, f"node {node}: {pages['free']} pages free of {pages['managed']}") for node, pages in nodes.items()
    ]

    def fill(parts: Parts) -> None:
        parts.see_nodes(nodes)
        parts.coords["time"] = np.zeros(1)
        parts.variables["free_pages"] = np.array([[[nodes[node]["free"] for node in parts.nodes]]], dtype=np.int64)

    return _reading(report, "zoneinfo", found, fill)


def read_perf_lock(text: str, source: str, _release: str | None = None) -> Reading:
    """Read perf lock: who waited for locks, and of these the look-up of a shared policy."""
    report = perf_lock.parse_lock(text, source)
    waits = [wait for wait in report.waits if wait.is_lookup]
    worst = max(report.waits, key=lambda wait: wait.total_s)
    found = [
        Found(
            report.waits[0].line,
            f"{len(report.waits)} locks or callers, {sum(wait.contended for wait in report.waits)} waits",
        ),
        Found(worst.line, f"the longest in all: {worst.name} ({worst.kind}), {worst.total_s:.3g} s"),
        Found(
            waits[0].line if waits else 0,
            f"of these the look-up of a shared policy: {sum(wait.contended for wait in waits)} waits, "
            f"{sum(wait.total_s for wait in waits):.3g} s",
        ),
    ]

    def fill(parts: Parts) -> None:
        parts.variables["lock_waits"] = np.array([sum(wait.contended for wait in waits)])
        parts.variables["lock_total_wait_s"] = np.array([float(sum(wait.total_s for wait in waits))])

    return _reading(report, "perf-lock", found, fill)


def read_perf_report(text: str, source: str, _release: str | None = None) -> Reading:
    """Read perf report: the share of time in the look-up of a shared policy and its lock."""
    report = perf_lock.parse_report(text, source)
    area, waiting = report.area_share(), report.waiting_share()
    top = max(report.symbols, key=lambda symbol: symbol.own)
    found = [
        Found(report.symbols[0].line, f"{len(report.symbols)} symbols; the largest {top.name}, {top.own:g} %"),
        Found(0, f"spinning for any lock: {report.spinning_share():.2%}"),
    ]
    for what, share in (("in the look-up of a shared policy", area), ("spinning for its lock", waiting)):
        chains = "not known without call chains (perf record -g)"
        found.append(Found(0, f"{what}: {chains if share is None else f'{share:.2%}'}"))

    def fill(parts: Parts) -> None:
        for name, share in (("lock_area_share", area), ("lock_waiting_share", waiting)):
            parts.variables[name] = np.array([np.nan if share is None else share])

    return _reading(report, "perf-report", found, fill)
