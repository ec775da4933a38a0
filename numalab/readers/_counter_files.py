"""Readings of counters: /proc/vmstat, memory.stat of a cgroup, numastat of the nodes, /proc/PID/sched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import xarray as xr

from numalab.readers import _assemble, node_numastat, sched, vmstat
from numalab.readers._assemble import Parts
from numalab.readers._plain import Fill, apart, build, labels_of, plural, reading, side_by_side, single, span
from numalab.readers._reading import Found, Reading, Table, no_run

#: Names of a cgroup's memory.stat that say something of NUMA balancing and migration begin like those of vmstat.
_NUMA = ("numa_", "pgmigrate", "pgpromote", "pgdemote", "thp_migration")


def read_vmstat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read /proc/vmstat: counters over time, counted from the first of several samples."""
    return _read(text, source, "vmstat")


def read_memory_stat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read memory.stat of a cgroup: its counters of NUMA balancing, its memory in a table."""
    return _read(text, source, "memcg-stat")


def _read(text: str, source: str, name: str) -> Reading:
    report = vmstat.parse(text, source)
    samples = report.samples
    numa = sum(_is_numa(one) for one in samples[0].values)
    found = [
        span(samples, "snapshot"),
        Found(samples[0].line, f"{plural(len(samples[0].values), 'name')} in the first, {numa} of NUMA and migration"),
    ]
    guesses: list[tuple[int, str]] = []
    logged = text.lstrip().startswith("@")
    series = logged or len(samples) == 1 or vmstat.is_series(report)
    if not any(one.startswith(_assemble.FURTHER) for sample in samples for one in sample.values):
        dataset = no_run(source, name)
    elif series:
        dataset = single(_series(report, 0.0 if logged else samples[0].time or 0.0), name, source, report.skipped)
    elif pairs := vmstat.pairs(report):
        growth = [_growth(before, after) for before, after in pairs]
        what = "labelled before and after, and no counter falls: one boot, the growth between"
        guesses += [(sample.line, what) for sample in growth]
        found += [Found(one.line, f"growth {one.label}".strip()) for one in growth]
        dataset = _side_by_side(growth, name, report)
    else:
        common, every = report.common(), report.names()
        found += [
            Found(one.line, f"snapshot {i} {one.label}".rstrip() + f": {plural(len(one.values), 'name')}")
            for i, one in enumerate(samples)
        ]
        guesses.append((0, "no times, so each snapshot is a run of its own; they may be of different boots"))
        if len(common) < len(every):
            guesses.append(
                (0, f"a run has the {len(common)} names that all snapshots have; the table has all {len(every)}")
            )
        dataset = _side_by_side(samples, name, report)
    tables = () if logged else (_table(report, name),)
    return reading(report, name, found, dataset, guesses=guesses, tables=tables)


def _is_numa(name: str) -> bool:
    return name.startswith(_NUMA)


def _series(report: vmstat.Report, zero: float) -> Fill:
    """Return what puts all snapshots on one time axis; a single one keeps its counts since boot."""
    samples = report.samples
    names = report.common()

    def fill(parts: Parts) -> None:
        times = [(sample.time or 0.0) - zero for sample in samples]
        values = [{name: sample.values[name] for name in names} for sample in samples]
        _assemble.add_counters(parts, "time", times, values, [sample.line for sample in samples], report.source)

    return fill


def _growth(before: vmstat.Sample, after: vmstat.Sample) -> vmstat.Sample:
    """Subtract what was counted before; states keep their later value."""
    values = {
        name: value if name.startswith("nr_") else value - before.values[name]
        for name, value in after.values.items()
        if name in before.values
    }
    return vmstat.Sample(None, values, before.line, vmstat.pair_label(before), delta=True)


def _side_by_side(samples: Sequence[vmstat.Sample], name: str, report: vmstat.Report) -> Callable[[], xr.Dataset]:
    names = [one for one in samples[0].values if all(one in sample.values for sample in samples)]

    def dataset() -> xr.Dataset:
        parts = Parts(coords={"snapshot": ("run", labels_of(samples))})
        _assemble.add_counts(parts, [{one: sample.values[one] for one in names} for sample in samples])
        return build(parts, name, report.source, report.skipped)

    return dataset


def _table(report: vmstat.Report, name: str) -> Table:
    samples = report.samples
    heads = labels_of(samples) if len(samples) > 1 else [samples[0].label or "value"]
    rows = tuple((one, *(sample.values.get(one) for sample in samples)) for one in report.names())
    return Table(name, ("counter", *heads), rows, line=samples[0].line)


# ---------------------------------------------------------------- nodes


def read_numastat(text: str, source: str, _release: str | None = None) -> Reading:
    """Read numastat of the nodes: allocation counters per node."""
    report = node_numastat.parse(text, source)
    samples = report.samples
    nodes = sorted(samples[0].nodes)
    found = [span(samples, "sample"), Found(samples[0].line, f"nodes {', '.join(map(str, nodes))}")]
    guesses: list[tuple[int, str]] = []
    if any(sample.printed for sample in samples):
        guesses.append((samples[0].line, "MB turned into pages of 4 KiB, rounded as they were printed"))
    logged = text.lstrip().startswith("@")
    names = [f"numastat {label}" for label in labels_of(samples)] if len(samples) > 1 else ["numastat"]

    def fill(sample: node_numastat.Sample) -> Fill:
        alone = replace(report, samples=[sample])
        return lambda parts: _assemble.add_numastat(parts, "time", alone)

    if logged or len(samples) == 1:
        dataset = single(
            lambda parts: _assemble.add_numastat(parts, "time", report), "numastat", source, report.skipped
        )
    else:
        fills = [(label, fill(one)) for label, one in zip(labels_of(samples), samples, strict=True)]
        guesses.append((0, "no times, so each sample is a run of its own"))
        dataset = side_by_side(fills, "numastat", source, report.skipped)
    tables = () if logged else tuple(_node_table(sample, label) for label, sample in zip(names, samples, strict=True))
    return reading(report, "numastat", found, dataset, guesses=guesses, tables=tables)


def _node_table(sample: node_numastat.Sample, name: str) -> Table:
    nodes = sorted(sample.nodes)
    values = sample.printed or sample.nodes
    names = [name for name in node_numastat.NAMES if name in sample.nodes[nodes[0]]]
    rows = tuple((name, *(values[node][name] for node in nodes)) for name in names)
    return Table(name, ("counter", *map(str, nodes)), rows, "MB" if sample.printed else "pages", sample.line)


# ---------------------------------------------------------------- tasks


def read_sched(text: str, source: str, release: str | None = None) -> Reading:
    """Read /proc/PID/sched: fault statistics, preferred nodes, groups."""
    report = sched.parse(text, source, release)
    logged = text.lstrip().startswith("@")
    found, guesses = [span(report.tasks, "look")] if logged else [], []
    for task in [] if logged else report.tasks:
        total = "" if task.total is None else f", {task.total} faults in all"
        found.append(Found(task.line, f"task {task.tid} {task.comm}: NUMA part of {len(task.faults)} nodes{total}"))
    if report.swapped:
        found.append(Found(0, f"private and shared exchanged back: kernel {release} prints them exchanged"))
    elif release is None and any(task.group is not None for task in report.tasks):
        guesses.append((0, "taken as printed; kernels before 4.19 exchange private and shared (give --kernel)"))
    looks = [report.tasks] if logged else apart(report.tasks, lambda task: task.tid)

    def fill(tasks: list[sched.Task]) -> Fill:
        return lambda parts: _assemble.add_tasks(parts, "time", [], tasks)

    if len(looks) == 1:
        dataset = single(fill(looks[0]), "sched", source, report.skipped)
    else:
        guesses.append((0, "a task comes again without times, so each look is a run of its own"))
        fills = [(str(i), fill(look)) for i, look in enumerate(looks)]
        dataset = side_by_side(fills, "sched", source, report.skipped)
    tables = () if logged else tuple(table for task in report.tasks for table in _task_tables(task))
    return reading(report, "sched", found, dataset, guesses=guesses, tables=tables)


def _task_tables(task: sched.Task) -> list[Table]:
    who = f"task {task.tid} {task.comm}".rstrip()
    values = {**task.values, "current_node": task.node, "numa_group_id": task.group}
    rows = tuple((name, _whole(value)) for name, value in values.items() if value is not None)
    heads = ("node", "task_private", "task_shared", "group_private", "group_shared")
    # the older grammar has no counts of groups
    faults = tuple(
        (node, one.private, one.shared, *(None if count < 0 else count for count in one[2:]))
        for node, one in sorted(task.faults.items())
    )
    return [Table(who, ("name", "value"), rows, line=task.line), Table(f"faults {who}", heads, faults, line=task.line)]


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
