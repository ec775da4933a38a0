"""Run folders of layout B: a kernel with a switch per historical behaviour, watched by its own monitor."""

import re
from typing import Any

import numpy as np

from numalab.readers import _assemble, nlmon, vmstat, workload_log, zoneinfo
from numalab.readers._collect import Collected, need, plural
from numalab.readers._layout_a import differences
from numalab.readers._text import ReadError
from numalab.schema import TASK_STATES

_SYSCTL = re.compile(r"(?m)^\S*/(\w+):(\d+)\s*$")
_HOG = re.compile(r"(?m)^HOG node(\d+) took (\d+) KB left (\d+) KB\s*$")
#: The monitor has room for this many nodes.
_NODES = 4


def fits(meta: dict[str, Any]) -> bool:
    """Tell whether a meta.json is of this layout."""
    topology = meta.get("topology")
    return "toggles" in meta and isinstance(topology, dict) and "nodes_x_cpus" in topology


def read(out: Collected) -> None:
    """Read everything in the folder into ``out.parts``; 0 s is when the monitor began, just before the load."""
    _machine(out)
    log = out.read("workload.log", workload_log.parse, "results of the load, places of its threads", whole=False)
    if log is not None:
        what = f"{plural(len(log.spread), 'look')} at the threads per node, {plural(len(log.results), 'result')}"
        out.note("workload.log", log, what)
    report = out.read("samples.log", nlmon.parse, "all counters, pages per node and places of tasks over time")
    if report is not None:
        out.note("samples.log", report, plural(len(report.samples), "sample"))
    totals = _totals(out)
    if report is not None:
        _counters(out, report, totals)
        _tasks(out, report)
        _memory(out, report)
    if log is not None and log.spread:
        _spread(out, log)
    _provenance(out, log)


def _source(out: Collected) -> str:
    return out.folder.source("meta.json")


def _machine(out: Collected) -> None:
    source, parts = _source(out), out.parts
    size = re.fullmatch(r"(\d+)x(\d+)", need(out.meta, "topology.nodes_x_cpus", str, source))
    if size is None:
        raise ReadError(source, 0, "topology.nodes_x_cpus: expected something like 4x2")
    nodes, cpus = int(size[1]), int(size[2])
    parts.nodes = list(range(nodes))
    parts.node_of = {cpu: cpu // cpus for cpu in range(nodes * cpus)}
    parts.fixed = True
    distance = np.full((nodes, nodes), need(out.meta, "topology.distance", int, source))
    np.fill_diagonal(distance, 10)
    parts.coords |= {"node2": parts.nodes, "distance": (("node", "node2"), distance)}


def _totals(out: Collected) -> dict[str, int] | None:
    """Read the counters around the run: after minus before, those that changed."""
    found: dict[str, dict[str, int]] = {}
    for kind, what in (("vmstat", "counters of /proc/vmstat"), ("counters", "the kernel's own counters")):
        pair = [out.read(f"{kind}_{when}.txt", vmstat.parse, f"{what} {when} the run") for when in ("before", "after")]
        for when, report in zip(("before", "after"), pair, strict=True):
            out.note(f"{kind}_{when}.txt", report, "a snapshot")
        before, after = pair
        if before is not None and after is not None:
            found[kind] = differences(before.samples[0].values, after.samples[0].values)
    out.parts.params["totals"] = found.get("vmstat", {}) | {f"k_{k}": v for k, v in found.get("counters", {}).items()}
    return found.get("vmstat")


def _counters(out: Collected, report: nlmon.Report, totals: dict[str, int] | None) -> None:
    samples = report.samples
    _assemble.add_counters(
        out.parts,
        "time",
        [sample.time for sample in samples],
        [sample.vmstat for sample in samples],
        [sample.line for sample in samples],
        report.source,
        more=[sample.counters for sample in samples],
        major=None if totals is None else totals.get("pgmajfault", 0),
    )
    # refused before it was tried: the target is full, or the page could not be isolated
    refused = [sample.counters.get("mig_full", 0) + sample.counters.get("mig_isolate_fail", 0) for sample in samples]
    out.parts.variables["migrate_refused"] = (("run", "time"), (np.array(refused) - refused[0])[None])


# ---------------------------------------------------------------- tasks


def _tasks(out: Collected, report: nlmon.Report) -> None:
    """Add the places of threads, which the monitor tells by process and order of creation only."""
    parts = out.parts
    names = list(dict.fromkeys(name for sample in report.samples for name in sample.threads))
    if not names:
        return
    parts.process_names = dict(enumerate(names))
    most = [max(len(sample.threads.get(name, ())) for sample in report.samples) for name in names]
    first = np.concatenate([[0], np.cumsum(most)])
    for process, name in enumerate(names):
        for thread in range(most[process]):
            task = int(first[process]) + thread
            parts.process_of[task] = process
            parts.names[task] = name if most[process] == 1 else f"{name}/{thread}"
    cpu, state = (np.full((1, len(report.samples), int(first[-1])), -1, dtype=np.int64) for _ in range(2))
    unknown = 0
    for i, sample in enumerate(report.samples):
        for process, name in enumerate(names):
            threads = sample.threads.get(name, [])
            known = _known(report, i, name, most[process])
            unknown += len(threads) - known
            for thread, (where, letter) in enumerate(threads[:known]):
                at = int(first[process]) + thread
                cpu[0, i, at], state[0, i, at] = where, TASK_STATES.find(letter.upper())
    node = np.where(cpu < 0, -1, np.array([parts.node_of.get(c, -1) for c in range(cpu.max() + 1)] + [-1])[cpu])
    if (node[cpu >= 0] < 0).any():
        raise ReadError(report.source, 0, f"names CPU {cpu.max()}, but the machine has {len(parts.node_of)}")
    dims = ("run", "time", "task")
    parts.variables |= {"task_cpu": (dims, cpu), "task_node": (dims, node), "task_state": (dims, state)}
    if unknown:
        what = f"{unknown} places of threads left out: some threads had ended, and the monitor does not say which"
        out.missing.append(("samples.log", what))


def _known(report: nlmon.Report, at: int, name: str, most: int) -> int:
    """Tell of how many threads, from the first, it is known which they are.

    The list is in the order of creation. Before it was longest it lacks those to come; afterwards, when it
    is shorter, any may be missing but the first, which lives as long as the process.
    """
    threads = report.samples[at].threads.get(name, [])
    if len(threads) == most:
        return most
    grown = any(len(sample.threads.get(name, ())) == most for sample in report.samples[:at])
    return min(len(threads), 1) if grown else len(threads)


def _memory(out: Collected, report: nlmon.Report) -> None:
    parts = out.parts
    names = list(dict.fromkeys(name for sample in report.samples for name in sample.memory))
    if not names:
        return
    processes = {name: process for process, name in parts.process_names.items()}
    table = np.zeros((1, len(report.samples), len(names), len(parts.nodes)), dtype=np.int64)
    for i, sample in enumerate(report.samples):
        for g, name in enumerate(names):
            pages = sample.memory.get(name, [0] * len(parts.nodes))
            if any(pages[len(parts.nodes) :]):
                raise ReadError(report.source, sample.line, f"{name} has pages beyond node {parts.nodes[-1]}")
            table[0, i, g] = (pages + [0] * len(parts.nodes))[: len(parts.nodes)]
    parts.coords["region"] = np.array(names)
    parts.coords["region_process"] = (("region",), [processes.get(name, -1) for name in names])
    parts.variables["pages"] = (("run", "time", "region", "node"), table)
    without = len(parts.process_names) - len(names)
    if without:
        out.missing.append(("samples.log", f"pages of {without} processes: the monitor looks at eight"))
    if len(parts.nodes) > _NODES:
        out.missing.append(("samples.log", f"pages on nodes from {_NODES} on: the monitor has room for {_NODES}"))


def _spread(out: Collected, log: workload_log.Report) -> None:
    """Add the threads per node that the load itself looked at, more often than the monitor."""
    parts = out.parts
    count = len(log.spread[0].threads)
    processes = {name: process for process, name in parts.process_names.items()}
    own = [processes.get(f"wl_p{i}", -1) for i in range(count)]
    if -1 in own or any(len(one) != len(parts.nodes) for one in log.spread[0].threads):
        found = f"{count} processes on {len(log.spread[0].threads[0])} nodes"
        raise ReadError(log.source, log.spread[0].line, f"tells of {found}, which samples.log or meta.json do not have")
    table = np.zeros((1, len(log.spread), len(parts.process_names), len(parts.nodes)), dtype=np.int64)
    for i, spread in enumerate(log.spread):
        for process, threads in zip(own, spread.threads, strict=True):
            table[0, i, process] = threads
    parts.coords["time_threads"] = np.array([spread.time for spread in log.spread])
    parts.variables["threads"] = (("run", "time_threads", "process", "node"), table)


# ---------------------------------------------------------------- provenance


def _provenance(out: Collected, log: workload_log.Report | None) -> None:
    meta, source, parts = out.meta, _source(out), out.parts
    name = str(meta.get("id", out.folder.path.name))
    command = need(meta, "command", str, source)
    uname = need(meta, "kernel", str, source)
    words = uname.split()
    release = words[2] if len(words) > 2 else uname
    changed = str(meta.get("toggles_changed", ""))
    parts.coords |= {
        "trace": ("run", [name]),
        "command": ("run", [command]),
        "kernel": ("run", [f"{release} {changed}".strip()]),
        "rep": ("run", [int(meta.get("rep", 1))]),
        "thread": ("run", [str(meta.get("thread", ""))]),
        "case": ("run", [str(meta.get("case", ""))]),
        "variant": ("run", [str(meta.get("label", ""))]),
    }
    numbers = re.findall(r"(?<!\S)\d+(?!\S)", command)
    if numbers:
        # the last number of every nlwl command
        parts.coords["seed"] = ("run", [int(numbers[-1])])
    zones = out.read("zoneinfo_before.txt", zoneinfo.parse, "free pages and watermarks of the nodes before the load")
    out.note("zoneinfo_before.txt", zones, plural(len(zones.zones) if zones else 0, "zone"))
    if zones is not None:
        free = zones.nodes()
        parts.see_nodes(free, zones.source)
        parts.coords["time_zoneinfo"] = np.zeros(1)
        pages = np.array([[[free.get(node, {"free": 0})["free"] for node in parts.nodes]]], dtype=np.int64)
        parts.variables["free_pages"] = (("run", "time_zoneinfo", "node"), pages)
    params: dict[str, Any] = {
        "reader": "trace",
        "layout": "B",
        "trace": name,
        "release": release,
        "switches": need(meta, "toggles", dict, source),
        "machine": {
            "cpus": {str(node): [c for c, n in parts.node_of.items() if n == node] for node in parts.nodes},
            "memory_mib": meta["topology"].get("mem_mib_per_node"),
            "distance": np.asarray(parts.coords["distance"][1]).tolist(),
            "zones": {str(node): pages for node, pages in zones.nodes().items()} if zones else {},
        },
        "sysctl": {name: int(value) for name, value in _SYSCTL.findall(out.folder.text("sysctl.txt") or "")},
        "command": command,
        "hog_left_kb": {node: int(left) for node, _, left in _HOG.findall(out.folder.text("hog.log") or "")},
        "zero_s": 0.0,
        "meta": meta,
    }
    if log is not None:
        params["results"] = log.results
        params["passes"] = {str(reader): passes for reader, passes in log.passes.items()}
    if not out.folder.has("sysctl.txt"):
        out.missing.append(("sysctl.txt", "is not there: settings of NUMA balancing"))
    parts.params = params | parts.params
