"""Readings of where memory is: numa_maps, the tool numastat, meminfo of the nodes, memory.numa_stat, numactl -H."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import xarray as xr

from numalab.readers import _assemble, memcg, meminfo, mpstat, numa_maps, numactl, numastat_tables
from numalab.readers._assemble import Parts
from numalab.readers._placed import ranges
from numalab.readers._plain import Fill, apart, labels_of, plural, reading, side_by_side, single, span
from numalab.readers._reading import Found, Reading, Table, Value, no_run
from numalab.readers._text import NoRunError
from numalab.readers.node_numastat import PER_MB

#: Pages of 4 KiB.
_KB, _BYTES = 4, 4096
_ROUNDED = "MB turned into pages of 4 KiB, rounded as they were printed"
#: Rows of memory.numa_stat that do not overlap: all pages on the kernel's lists are in one of them (version 2 has
#: unevictable pages among the others).
_ACCOUNTED = {1: ("anon", "file", "unevictable"), 2: ("anon", "file")}


def _where(found: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(found)))


# ---------------------------------------------------------------- numa_maps


def read_numa_maps(text: str, source: str, _release: str | None = None) -> Reading:
    """Read numa_maps: pages per mapping and node."""
    report = numa_maps.parse(text, source)
    logged = text.lstrip().startswith("@")
    looks = [report.processes] if logged else apart(report.processes, lambda process: process.pid)
    found = [span(report.processes, "look")] if logged else []
    for process in [] if logged else report.processes:
        where = ", ".join(f"{count} on node {node}" for node, count in sorted(_pages(process).items()))
        who = f"process {process.pid}: " if process.pid >= 0 else ""
        what = f"{who}{plural(len(process.mappings), 'mapping')}, pages of 4 KiB: {where or 'none'}"
        found.append(Found(process.line, what))
    guesses: list[tuple[int, str]] = []

    def fill(processes: list[numa_maps.Process]) -> Fill:
        alone = numa_maps.Report(source, report.lines, processes)
        if not any(mapping.nodes for process in processes for mapping in process.mappings):
            return lambda parts: _refuse(source, "a numa_maps without pages on any node")
        return lambda parts: _assemble.add_memory(parts, "time", alone)

    if len(looks) == 1:
        dataset = single(fill(looks[0]), "numa_maps", source, report.skipped)
    else:
        guesses.append((0, "a process comes again without times, so each look is a run of its own"))
        labels = labels_of([look[0] for look in looks])
        fills = [(label, fill(look)) for label, look in zip(labels, looks, strict=True)]
        dataset = side_by_side(fills, "numa_maps", source, report.skipped)
    tables = () if logged else (_mappings(report), _by_class(report))
    return reading(report, "numa_maps", found, dataset, guesses=guesses, tables=tables)


def _refuse(source: str, what: str) -> None:
    raise NoRunError(source, 0, f"{what} has nothing that a run has")


def _pages(process: numa_maps.Process) -> dict[int, int]:
    pages: dict[int, int] = {}
    for mapping in process.mappings:
        for node, count in mapping.base_pages().items():
            pages[node] = pages.get(node, 0) + count
    return pages


def _mappings(report: numa_maps.Report) -> Table:
    nodes = sorted({node for one in report.processes for mapping in one.mappings for node in mapping.nodes})
    counts = [c for c in numa_maps.COUNTS if any(c in m.counts for one in report.processes for m in one.mappings)]
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (
            f"{mapping.start:x}",
            process.pid,
            mapping.policy,
            mapping.name,
            int(mapping.huge),
            *(mapping.counts.get(name) for name in counts),
            *(mapping.nodes.get(node, 0) for node in nodes),
            mapping.page_kb,
        )
        for process in report.processes
        for mapping in process.mappings
    )
    heads = (
        "start",
        "process",
        "policy",
        "name",
        "huge",
        *counts,
        *(f"N{node}" for node in nodes),
        "kernelpagesize_kB",
    )
    return Table("mappings", heads, rows, "pages of kernelpagesize_kB", report.processes[0].line)


def _by_class(report: numa_maps.Report) -> Table:
    """Sum up kB by process, class of memory and node."""
    sums: dict[tuple[int, str], dict[int, int]] = {}
    for process in report.processes:
        for mapping in process.mappings:
            row = sums.setdefault((process.pid, _class(mapping)), {})
            for node, pages in mapping.nodes.items():
                row[node] = row.get(node, 0) + pages * mapping.page_kb
    nodes = sorted({node for row in sums.values() for node in row})
    rows: list[tuple[Value, ...]] = [
        (f"{pid} {kind}", *(row.get(node, 0) for node in nodes)) for (pid, kind), row in sums.items()
    ]
    return Table("by class", ("process and class", *map(str, nodes)), tuple(rows), "kB", report.processes[0].line)


def _class(mapping: numa_maps.Mapping) -> str:
    if mapping.huge:
        return "huge"
    return mapping.name.partition(":")[0] if mapping.name in ("heap", "stack") else "file" if mapping.name else "anon"


# ---------------------------------------------------------------- numastat -p, numastat -m, meminfo


def read_numastat_processes(text: str, source: str, _release: str | None = None) -> Reading:
    """Read ``numastat -p``: memory of processes by node, as pages and as a table."""
    report = numastat_tables.parse(text, source)
    usages = [usage for usage in report.tables if usage.kind != "system"]
    found = []
    for usage in usages:
        who = (
            f"process {usage.pid} {usage.comm}".rstrip()
            if usage.kind == "classes"
            else plural(len(usage.comms), "process")
        )
        found.append(Found(usage.line, f"{who.replace('processs', 'processes')} on nodes {_where(usage.nodes)}, in MB"))
    if not usages:
        return _tables_only(report, "numastat-p")

    def fill(usage: numastat_tables.Usage) -> Fill:
        return lambda parts: _add_usage(parts, usage)

    fills = [(str(i), fill(usage)) for i, usage in enumerate(usages)]
    dataset = (
        single(fills[0][1], "numastat-p", source, report.skipped)
        if len(fills) == 1
        else side_by_side(fills, "numastat-p", source, report.skipped)
    )
    tables = [_usage_table(usage) for usage in usages]
    return reading(report, "numastat-p", found, dataset, guesses=[(usages[0].line, _ROUNDED)], tables=tables)


def _tables_only(report: numastat_tables.Report, name: str) -> Reading:
    found = [Found(usage.line, f"{plural(len(usage.rows), 'row')} in MB") for usage in report.tables]
    tables = [_usage_table(usage) for usage in report.tables]
    return reading(report, name, found, no_run(report.source, name), tables=tables)


def _add_usage(parts: Parts, usage: numastat_tables.Usage) -> None:
    rows = {name: row for name, row in usage.rows.items() if name != "Total"}
    position = parts.see_nodes(usage.nodes)
    table = np.zeros((1, 1, len(rows), len(position)), dtype=np.int64)
    for g, row in enumerate(rows.values()):
        for node, mb in row.items():
            table[0, 0, g, position[node]] = round(mb * PER_MB)
    if usage.kind == "classes":
        parts.process_names[usage.pid] = usage.comm
        regions, owners = list(rows), [usage.pid] * len(rows)
    else:
        parts.process_names |= {int(pid): comm for pid, comm in usage.comms.items()}
        regions, owners = [f"{usage.comms[pid]}-{pid}" for pid in rows], [int(pid) for pid in rows]
    parts.coords |= {"time": np.zeros(1), "region": np.array(regions), "region_process": (("region",), owners)}
    parts.variables["pages"] = (("run", "time", "region", "node"), table)


def _usage_table(usage: numastat_tables.Usage) -> Table:
    name = {"processes": "processes", "classes": f"process {usage.pid} {usage.comm}".rstrip(), "system": "system"}[
        usage.kind
    ]
    nodes = sorted(usage.nodes)
    totals = bool(usage.totals)
    rows = tuple(
        (
            label,
            *((usage.comms.get(label, ""),) if usage.kind == "processes" else ()),
            *(row.get(node) for node in nodes),
            *((usage.totals.get(label),) if totals else ()),
        )
        for label, row in usage.rows.items()
    )
    names = ("pid", "name") if usage.kind == "processes" else ("memory",)
    return Table(name, (*names, *map(str, nodes), *(("Total",) if totals else ())), rows, "MB", usage.line)


def read_numastat_system(text: str, source: str, _release: str | None = None) -> Reading:
    """Read ``numastat -m``: memory of the nodes, as a table; free and total memory as pages too."""
    report = numastat_tables.parse(text, source)
    usages = [usage for usage in report.tables if usage.kind == "system"]
    if not usages:
        return _tables_only(report, "numastat-m")
    found = tuple(
        Found(usage.line, f"{plural(len(usage.rows), 'row')} of nodes {_where(usage.nodes)}, in MB") for usage in usages
    )
    looks = [{name: {n: mb * PER_MB for n, mb in row.items()} for name, row in usage.rows.items()} for usage in usages]
    tables = [_usage_table(usage) for usage in usages]
    dataset = _free_and_total(looks, [str(i) for i in range(len(looks))], "numastat-m", report)
    return reading(report, "numastat-m", found, dataset, guesses=[(usages[0].line, _ROUNDED)], tables=tables)


def read_meminfo(text: str, source: str, _release: str | None = None) -> Reading:
    """Read meminfo of the nodes: a table; free and total memory as pages too."""
    report = meminfo.parse(text, source)
    looks, tables, found = [], [], []
    labels = [label or str(i) for i, label in enumerate(report.labels)]
    for label, line, sample in zip(labels, report.first, report.samples, strict=True):
        nodes = sorted(sample)
        names = list(dict.fromkeys(name for node in nodes for name in sample[node]))
        looks.append({n: {node: sample[node][n] / _KB for node in nodes if n in sample[node]} for n in names})
        rows = tuple((name, report.units[name], *(sample[node].get(name) for node in nodes)) for name in names)
        name = f"meminfo {label}" if len(labels) > 1 else "meminfo"
        tables.append(Table(name, ("memory", "units", *map(str, nodes)), rows, line=line))
        found.append(Found(line, f"{plural(len(names), 'row')} of nodes {_where(nodes)}, in kB"))
    dataset = _free_and_total(looks, labels, "meminfo", report)
    return reading(report, "meminfo", found, dataset, tables=tables)


def _free_and_total(
    looks: Sequence[Mapping[str, Mapping[int, float]]],
    labels: Sequence[str],
    name: str,
    report: numastat_tables.Report | meminfo.Report,
) -> Callable[[], xr.Dataset]:
    """Return what makes a dataset of MemFree and MemTotal, given in pages of 4 KiB by node."""

    def fill(look: Mapping[str, Mapping[int, float]]) -> Fill:
        def add(parts: Parts) -> None:
            nodes = [n for n in ("MemFree", "MemTotal") if n in look]
            if not nodes:
                raise NoRunError(report.source, 0, f"{name} without MemFree and MemTotal has nothing that a run has")
            _add_memory(parts, look.get("MemFree", {}), look.get("MemTotal", {}))

        return add

    fills = [(label, fill(look)) for label, look in zip(labels, looks, strict=True)]
    if len(fills) == 1:
        return single(fills[0][1], name, report.source, report.skipped)
    return side_by_side(fills, name, report.source, report.skipped)


def _add_memory(parts: Parts, free: Mapping[int, float], total: Mapping[int, float]) -> None:
    """Add free and total memory in pages of 4 KiB, each where it is known of all nodes."""
    parts.see_nodes([*free, *total])
    parts.coords["time"] = np.zeros(1)
    for name, known in (("free_pages", free), ("total_pages", total)):
        if known and set(known) == set(parts.nodes):
            table = [[[round(known[node]) for node in parts.nodes]]]
            parts.variables[name] = (("run", "time", "node"), np.array(table, dtype=np.int64))


# ---------------------------------------------------------------- memory.numa_stat


def read_memcg(text: str, source: str, _release: str | None = None) -> Reading:
    """Read memory.numa_stat: a table for each cgroup; what does not overlap as pages too."""
    report = memcg.parse(text, source)
    found, tables, guesses = [], [], []
    for sample in report.samples:
        unit = "pages" if sample.version == 1 else "bytes"
        nodes = sorted({node for row in sample.nodes.values() for node in row})
        rows = tuple(
            (name, *(row.get(node) for node in nodes), *((sample.totals[name],) if name in sample.totals else ()))
            for name, row in sample.nodes.items()
        )
        heads = ("memory", *map(str, nodes), *(("total",) if sample.totals else ()))
        tables.append(Table(f"numa_stat {sample.cgroup}".strip(), heads, rows, unit, sample.line))
        when = "" if sample.time is None else f" at {sample.time:.0f} s since 1970"
        what = f"version {sample.version}, {unit}: {plural(len(rows), 'row')} of nodes {_where(nodes)}{when}"
        found.append(Found(sample.line, f"cgroup {sample.cgroup}: {what}" if sample.cgroup else f"cgroup {what}"))
    if any(sample.version == 1 for sample in report.samples):
        guesses.append((0, "version 1 counts pages, whose size it does not say: taken as 4 KiB in the dataset"))
    # one moment with several cgroups is one run; a cgroup that comes again is another
    looks = apart(report.samples, lambda sample: sample.cgroup)
    fills = [(str(i), _memcg_fill(look)) for i, look in enumerate(looks)]
    dataset = (
        single(fills[0][1], "memcg", source, report.skipped)
        if len(fills) == 1
        else side_by_side(fills, "memcg", source, report.skipped)
    )
    return reading(report, "memcg", found, dataset, guesses=guesses, tables=tables)


def _memcg_fill(look: Sequence[memcg.Sample]) -> Fill:
    def fill(parts: Parts) -> None:
        rows = [(sample, name) for sample in look for name in _ACCOUNTED[sample.version] if name in sample.nodes]
        if not rows:
            problem = "a cgroup without anon and file has nothing that a run has"
            raise NoRunError("memory.numa_stat", look[0].line, problem)
        position = parts.see_nodes({node for sample, name in rows for node in sample.nodes[name]})
        table = np.zeros((1, 1, len(rows), len(position)), dtype=np.int64)
        for g, (sample, name) in enumerate(rows):
            for node, value in sample.nodes[name].items():
                table[0, 0, g, position[node]] = value if sample.version == 1 else round(value / _BYTES)
        regions = [f"{sample.cgroup} {name}".strip() for sample, name in rows]
        parts.coords |= {
            "time": np.zeros(1),
            "region": np.array(regions),
            "region_process": (("region",), [-1] * len(rows)),
        }
        parts.variables["pages"] = (("run", "time", "region", "node"), table)

    return fill


# ---------------------------------------------------------------- nodes of the machine, mpstat


def read_numactl(text: str, source: str, _release: str | None = None) -> Reading:
    """Read the machine's nodes: CPUs, distances, free and total memory."""
    report = numactl.parse(text, source)
    found, tables = [], []
    for i, sample in enumerate(report.samples):
        empty = [node for node in sample.nodes if sample.cpus.get(node) == [] and sample.size_mb.get(node) == 0]
        what = f"nodes {_where(sample.nodes)}: {sum(map(len, sample.cpus.values()))} CPUs"
        what += f", distances {_where(set(sample.distance.values()))}" if sample.distance else ""
        what += f"; without CPUs and memory: {_where(empty)}" if empty else ""
        found.append(Found(sample.line, what))
        odd = [(a, b) for (a, b), d in sample.distance.items() if a < b and d != sample.distance.get((b, a), d)]
        found += [Found(sample.line, f"distances that differ with the direction: {odd}")] if odd else []
        name = (sample.label or f"nodes {i}") if len(report.samples) > 1 else "nodes"
        tables.append(_nodes_table(sample, name))
        if sample.distance:
            rows = tuple((a, *(sample.distance.get((a, b)) for b in sample.nodes)) for a in sample.nodes)
            tables.append(Table(f"distances {name}", ("node", *map(str, sample.nodes)), rows, line=sample.line))
    whole = report.samples
    fills = [(label, _nodes_fill(one)) for label, one in zip(labels_of(whole), whole, strict=True)]
    same = all(
        (one.nodes, one.cpus, one.distance) == (whole[0].nodes, whole[0].cpus, whole[0].distance) for one in whole
    )
    if len(whole) == 1:
        dataset = single(fills[0][1], "numactl", source, report.skipped)
    elif same:
        dataset = side_by_side(fills, "numactl", source, report.skipped)
    else:
        dataset = no_run(source, f"a text with {len(whole)} different machines")
    return reading(report, "numactl", found, dataset, tables=tables)


def _nodes_table(sample: numactl.Sample, name: str) -> Table:
    def row(node: int) -> tuple[Value, ...]:
        cpus = sample.cpus.get(node)
        listed = None if cpus is None else ranges(cpus)
        return (
            node,
            None if cpus is None else len(cpus),
            listed,
            sample.size_mb.get(node),
            sample.free_mb.get(node),
        )

    heads = ("node", "cpus", "cpu_list", "size_MB", "free_MB")
    return Table(name, heads, tuple(row(node) for node in sample.nodes), line=sample.line)


def _nodes_fill(sample: numactl.Sample) -> Fill:
    def fill(parts: Parts) -> None:
        parts.see_nodes(sample.nodes)
        parts.node_of = {cpu: node for node, cpus in sample.cpus.items() for cpu in cpus}
        parts.coords["run"] = [0]
        if sample.distance and len(sample.distance) == len(sample.nodes) ** 2:
            table = [[sample.distance[a, b] for b in sample.nodes] for a in sample.nodes]
            parts.coords |= {"node2": sample.nodes, "distance": (("node", "node2"), table)}
        free, total = ({n: mb * PER_MB for n, mb in found.items()} for found in (sample.free_mb, sample.size_mb))
        if free or total:
            _add_memory(parts, free, total)

    return fill


def read_mpstat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read ``mpstat -N``: a table of percent by interval and node."""
    report = mpstat.parse(text, source)
    rows = tuple(
        (f"{row.time} {row.node}", row.time, row.node, *(row.percent.get(name) for name in report.names))
        for row in report.rows
    )
    table = Table("mpstat", ("row", "time", "node", *report.names), rows, "percent", report.rows[0].line)
    nodes = {row.node for row in report.rows if row.node != "all"}
    found = (Found(report.rows[0].line, f"{plural(len(rows), 'row')}, nodes {', '.join(sorted(nodes, key=int))}"),)
    return reading(report, "mpstat", found, no_run(source, "mpstat -N"), tables=[table])
