"""Run folders of layout A: stock kernels, everything the kernel shows sampled once a second, ftrace."""

import re
from typing import Any

import numpy as np

from numalab.readers import (
    _assemble,
    _events,
    ftrace,
    node_numastat,
    numa_maps,
    perf_bench,
    sched,
    tasks,
    vmstat,
    workload_log,
)
from numalab.readers._collect import Collected, need, plural
from numalab.readers._text import ReadError, Skipped
from numalab.readers.perf_bench import PerfBenchError

_NODE_SIZE = re.compile(r"(?m)^node (\d+) (size|free): (\d+) MB\s*$")
_LOST = re.compile(r"(?:overrun|dropped events): (\d+)")


def fits(meta: dict[str, Any]) -> bool:
    """Tell whether a meta.json is of this layout."""
    topology = meta.get("topology")
    return isinstance(topology, dict) and "node_cpus" in topology


def read(out: Collected) -> None:
    """Read everything in the folder into ``out.parts``."""
    _machine(out)
    log = _workload(out)
    report = _trace(out)
    if report is not None:
        _events.see_tasks(out.parts, report)
    begins = _counters(out)
    _tasks_and_memory(out, begins)
    if report is not None:
        _events.add_events(out.parts, report)
    _perf(out, log)
    _provenance(out, log, report)


def _source(out: Collected) -> str:
    return out.folder.source("meta.json")


def _machine(out: Collected) -> None:
    meta, source, parts = out.meta, _source(out), out.parts
    node_cpus = need(meta, "topology.node_cpus", dict, source)
    try:
        parts.node_of = {int(cpu): int(node) for node, cpus in node_cpus.items() for cpu in cpus}
        parts.nodes = sorted(int(node) for node in node_cpus)
        distance = np.array(need(meta, "topology.distance", list, source), dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise ReadError(source, 0, f"topology: expected node numbers, lists of CPUs, a matrix ({error})") from error
    count = len(parts.nodes)
    if distance.shape != (count, count):
        raise ReadError(source, 0, f"topology.distance: expected {count} x {count}, got {distance.shape}")
    parts.fixed = True
    parts.coords |= {"node2": parts.nodes, "distance": (("node", "node2"), distance)}


def _workload(out: Collected) -> workload_log.Report | None:
    log = out.read("workload.log", workload_log.parse, "its work and the exact time it began", whole=False)
    if log is not None:
        what = f"{plural(len(log.starts), 'start')}, {plural(len(log.work), 'line')} of work done"
        out.note("workload.log", log, what)
    out.parts.zero = _began(out, log)
    return log


def zero(out: Collected) -> float:
    """Return the time of the trace's clock that is 0 s of the run."""
    text = out.folder.text("workload.log")
    return _began(out, None if text is None else workload_log.parse(text, out.folder.source("workload.log")))


def _began(out: Collected, log: workload_log.Report | None) -> float:
    if log is not None and log.starts:
        return max(log.starts.values())
    words = str(out.meta.get("uptime_cmd_start", "")).split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        problem = "uptime_cmd_start: expected '<seconds> <idle>', since workload.log does not say when the work began"
        raise ReadError(_source(out), 0, problem) from None


def _trace(out: Collected) -> ftrace.Report | None:
    report = out.read("trace.txt", ftrace.parse, "moves, swaps and failures of tasks")
    if report is not None:
        counts = ", ".join(f"{count} {name}" for name, count in report.counts().items()) or "no event"
        out.note("trace.txt", report, counts)
        report.lost = max(report.lost, lost(out))
        if report.lost:
            out.missing.append(("trace.txt", f"{report.lost} events: the kernel's buffers were full"))
    return report


def lost(out: Collected) -> int:
    """Return how many events the buffers of the trace lost, by their own account."""
    return sum(map(int, _LOST.findall(out.folder.text("trace_stats.txt") or "")))


def _counters(out: Collected) -> list[float]:
    """Read vmstat.log and numastat.log; returns when samples began."""
    parts = out.parts
    totals = _totals(out)
    log = out.read("vmstat.log", vmstat.parse, "all counters of scans, faults and migrations over time")
    begins: list[float] = []
    if log is not None:
        begins = [sample.time for sample in log.samples if sample.time is not None]
        if len(begins) != len(log.samples):
            raise ReadError(log.source, log.samples[0].line, "expected '@ <seconds>' before each snapshot")
        values, lines = [sample.values for sample in log.samples], [sample.line for sample in log.samples]
        major = totals.get("pgmajfault", 0) if totals is not None else None
        _assemble.add_counters(parts, "time", begins, values, lines, log.source, major=major)
        out.note("vmstat.log", log, plural(len(log.samples), "sample"))
    nodes = out.read("numastat.log", node_numastat.parse, "allocation counters per node")
    if nodes is not None:
        _assemble.add_numastat(parts, "time", nodes)
        out.note("numastat.log", nodes, plural(len(nodes.samples), "sample"))
    return begins


def _totals(out: Collected) -> dict[str, int] | None:
    """Read the counters around the whole run: after minus before, those that changed."""
    before = out.read("vmstat_before.txt", vmstat.parse, "counters before the run")
    after = out.read("vmstat_after.txt", vmstat.parse, "counters after the run")
    out.note("vmstat_before.txt", before, "a snapshot")
    out.note("vmstat_after.txt", after, "a snapshot")
    if before is None or after is None:
        return None
    totals = differences(before.samples[0].values, after.samples[0].values)
    out.parts.params["totals"] = totals
    return totals


def differences(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return what counters grew by, those that did; states (nr_...) are left out."""
    return {
        name: value - before.get(name, 0)
        for name, value in after.items()
        if value != before.get(name, 0) and not name.startswith("nr_")
    }


def _tasks_and_memory(out: Collected, begins: list[float]) -> None:
    parts = out.parts
    release = str(need(out.meta, "kernel.release", str, _source(out)))
    rows = out.read("tasks.log", tasks.parse, "CPU and node of the tasks")
    stats = out.read(
        "sched.log",
        lambda text, source: sched.parse(text, source, release),
        "fault statistics, preferred nodes, groups",
    )
    memory = out.read("numa_maps.log", numa_maps.parse, "pages per node of the processes")
    if memory is not None:
        for process in memory.processes:
            parts.process_names[process.pid] = parts.process_names.get(process.pid) or process.comm
    if rows is not None or stats is not None:
        found = rows.rows if rows else [], stats.tasks if stats else []
        _assemble.add_tasks(parts, "time_task", *found, begins, rows.source if rows else "")
    if memory is not None:
        _assemble.add_memory(parts, "time_memory", memory, begins)
        out.note("numa_maps.log", memory, f"{plural(len(memory.processes), 'look')} at a process")
    out.note("tasks.log", rows, f"{plural(len(rows.rows) if rows else 0, 'line')} of a task")
    swapped = ", private and shared exchanged back" if stats and stats.swapped else ""
    out.note("sched.log", stats, f"{plural(len(stats.tasks) if stats else 0, 'look')} at a task{swapped}")


def _perf(out: Collected, log: workload_log.Report | None) -> None:
    """Read the progress and results of perf bench numa mem, where that was the load."""
    text = out.folder.text("workload.log")
    if text is None or log is None or "numa-mem" not in text:
        return
    try:
        report = perf_bench.parse(text, out.folder.source("workload.log"))
    except PerfBenchError as error:
        raise ReadError(log.source, 0, str(error)) from error
    out.skipped = [skip for skip in out.skipped if skip.file != "workload.log"]
    out.skipped += [Skipped(*skip, file="workload.log") for skip in report.skipped]
    if len(report.tests) == 1:
        ds = perf_bench.to_dataset(report, nodes=out.parts.nodes)
        out.parts.variables |= {str(name): (array.dims, array.values) for name, array in ds.data_vars.items()}
        out.files = [file for file in out.files if file.name != "workload.log"]
        out.note(
            "workload.log", log, f"perf bench numa mem: {plural(len(report.tests[0].progress), 'progress record')}"
        )


def _provenance(out: Collected, log: workload_log.Report | None, report: ftrace.Report | None) -> None:
    meta, source, parts = out.meta, _source(out), out.parts
    name = str(meta.get("run", out.folder.path.name))
    command = need(meta, "workload.command", str, source)
    release = need(meta, "kernel.release", str, source)
    parts.coords |= {
        "trace": ("run", [name]),
        "command": ("run", [command]),
        "kernel": ("run", [release]),
        "rep": ("run", [int(meta.get("rep", 1))]),
    }
    if isinstance(meta.get("seed"), int):
        parts.coords["seed"] = ("run", [meta["seed"]])
    params: dict[str, Any] = {
        "reader": "trace",
        "layout": "A",
        "trace": name,
        "release": release,
        "switches": {},
        "machine": {
            "cpus": {str(node): [c for c, n in parts.node_of.items() if n == node] for node in parts.nodes},
            "memory_mib": meta["topology"].get("mem_mib_per_node"),
            "distance": meta["topology"]["distance"],
            **_sizes(out),
        },
        "sysctl": sysctl(meta),
        "command": command,
        "zero_s": parts.zero,
        "meta": meta,
    }
    if log is not None:
        params["starts_s"] = {str(pid): round(time - parts.zero, 6) for pid, time in log.starts.items()}
        last = {work.tid: work.passes for work in log.work}
        params["passes"] = {str(tid): passes for tid, passes in last.items()}
        params["results"] = log.results
    if report is not None:
        params["trace_groups"] = list((meta.get("trace") or {}).get("groups") or [])
        params["trace_events"] = report.counts()
        params["trace_lost"] = report.lost
    parts.params = params | parts.params


def _sizes(out: Collected) -> dict[str, dict[str, int]]:
    """Read what numactl said of the nodes before the run, MB."""
    text = out.folder.text("system.txt")
    if text is None:
        out.missing.append(("system.txt", "is not there: size and free memory of the nodes"))
        return {}
    found: dict[str, dict[str, int]] = {"size_mb": {}, "free_mb": {}}
    for node, what, mb in _NODE_SIZE.findall(text):
        found[f"{what}_mb"][node] = int(mb)
    return found


def sysctl(meta: dict[str, Any]) -> dict[str, int | str]:
    """Return the settings of meta.json, one level deep, numbers as numbers."""
    flat: dict[str, int | str] = {}
    for key, value in (meta.get("sysctl") or {}).items():
        pairs = value.items() if isinstance(value, dict) else [(key.removeprefix("kernel."), value)]
        flat |= {name: int(text) if str(text).isdecimal() else str(text) for name, text in pairs}
    return flat
