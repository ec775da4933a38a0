"""The run that a log of ``numalab record`` makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import _assemble, record_log
from numalab.readers._assemble import Parts
from numalab.readers._plain import plural
from numalab.readers._reading import Found, Reading
from numalab.readers._text import NoRunError
from numalab.readers.record_log import Report


def read_record(text: str, source: str, _release: str | None = None) -> Reading:
    """Read a log of the recorder: counters, nodes, tasks, statistics and memory over time."""
    report = record_log.parse(text, source)
    return Reading(
        source=source,
        format="record",
        lines=report.lines,
        understood=tuple(_understood(report)),
        skipped=tuple(report.skipped),
        dataset=lambda: dataset(report),
        missing=tuple(Found(line, note) for line, note in report.notes),
    )


def _understood(report: Report) -> list[Found]:
    tids = {row.tid for row in report.rows}
    pids = {row.pid for row in report.rows}
    head = report.head
    found = [
        Found(2, f"{head.get('what', '')} on kernel {head['release']}"),
        Found(2, f"{plural(len(report.times), 'interval')}, {report.times[0]:g} to {report.times[-1]:g} s"),
        Found(0, f"{plural(len(tids), 'task')} of {len(pids)} process{'es' if len(pids) != 1 else ''}"),
    ]
    if report.stats:
        swapped = ", private and shared exchanged back" if report.swapped else ""
        found.append(Found(0, f"{plural(len(report.stats), 'look')} at the statistics of a task{swapped}"))
    if report.maps:
        found.append(Found(0, f"{plural(len(report.maps.processes), 'look')} at the memory of a process"))
    if report.cgroup:
        found.append(Found(0, f"{plural(len(report.cgroup), 'look')} at the memory of the cgroup by node"))
    if report.cgroup_counters:
        found.append(Found(0, f"{plural(len(report.cgroup_counters.samples), 'look')} at the cgroup's own counters"))
    found.append(Found(0, f"ended: {report.stop}" if report.stop else "the recorder was killed, or still runs"))
    return found


def dataset(report: Report) -> xr.Dataset:
    """Make the run.

    Raises
    ------
    NoRunError
        The log has no counters, which every machine shows.
    """
    if report.counters is None:
        raise NoRunError(report.source, 0, "holds no counter of /proc/vmstat, so there is nothing that a run has")
    parts = Parts()
    _machine(parts, report)
    _counters(parts, report)
    if report.rows:
        _assemble.add_tasks(parts, "time_task", report.rows, [], report.times, report.source)
    if report.stats:
        _assemble.add_tasks(parts, "time_sched", [], report.stats, report.times, report.source)
    if report.maps is not None:
        _assemble.add_memory(parts, "time_memory", report.maps, report.times, policies=True)
    if report.affinity and parts.node_of:
        _assemble.add_affinity(parts, "time_affinity", report.affinity)
    if report.cgroup:
        _assemble.add_cgroup(parts, "time_cgroup", report.cgroup)
    parts.coords["kernel"] = ("run", [report.head["release"]])
    parts.finish()
    title = f"{report.head.get('what')} on {report.head.get('host')}, {report.head['release']}"
    return runs.build(parts.variables, parts.coords, title=title, source="measured", params=_provenance(parts, report))


def _machine(parts: Parts, report: Report) -> None:
    machine = report.machine
    if machine is None:
        return
    parts.nodes, parts.fixed = machine.nodes, True
    parts.node_of = report.node_of
    if len(machine.distance) == len(machine.nodes) ** 2:
        matrix = [[machine.distance[a, b] for b in machine.nodes] for a in machine.nodes]
        parts.coords |= {"node2": machine.nodes, "distance": (("node", "node2"), matrix)}


def _counters(parts: Parts, report: Report) -> None:
    assert report.counters is not None
    samples = report.counters.samples
    values, lines = [one.values for one in samples], [one.line for one in samples]
    _assemble.add_counters(parts, "time", report.times, values, lines, report.source, more=_of_cgroup(report))
    if report.nodes is not None:
        _assemble.add_numastat(parts, "time", report.nodes)
    if len(report.memory) == len(report.times):
        for name, key in (("free_pages", "MemFree"), ("total_pages", "MemTotal")):
            table = [[kb.get(node, {}).get(key, 0) // 4 for node in parts.nodes] for kb in report.memory]
            parts.variables[name] = (("run", "time", "node"), np.array([table], np.int64))


def _of_cgroup(report: Report) -> list[dict[str, int]]:
    """Return the cgroup's own counters at each time, as long as it is there; then they stay."""
    if report.cgroup_counters is None:
        return []
    looks = {sample.time: sample.values for sample in report.cgroup_counters.samples}
    out: list[dict[str, int]] = []
    for time in report.times:
        values = looks.get(time)
        now = {f"cgroup_{name}": value for name, value in values.items()} if values else out[-1] if out else {}
        out.append(now)
    return out


def _provenance(parts: Parts, report: Report) -> dict[str, Any]:
    head = report.head
    span = report.times[-1] - report.times[0]
    machine: dict[str, Any] = {
        "cpus": {str(node): [cpu for cpu, own in sorted(parts.node_of.items()) if own == node] for node in parts.nodes}
    }
    if "distance" in parts.coords:
        machine["distance"] = parts.coords["distance"][1]
    if report.memory:
        machine["size_mb"] = {str(node): kb.get("MemTotal", 0) // 1024 for node, kb in report.memory[0].items()}
    return {
        "reader": "record",
        "file": report.source,
        "skipped_lines": len(report.skipped),
        "release": head["release"],
        "what": head.get("what"),
        "command": " ".join(head.get("command") or []),
        "began": head.get("began"),
        "every_s": head.get("every_s"),
        "asked_s": head.get("asked_s"),
        "machine": machine,
        "sysctl": {name: _number(value) for name, value in head.get("sysctl", {}).items()},
        "notes": [note for _, note in report.notes],
        "stop": report.stop or "killed",
        "recorder_cpu_percent": round((report.cpu_ms[-1] - report.cpu_ms[0]) / span / 10, 3) if span else None,
    }


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() else value
