"""Turns what was read into `numalab.diagnose.facts.Facts`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import xarray as xr

from numalab.diagnose.facts import (
    NODE_COUNTERS,
    Count,
    Facts,
    Named,
    Node,
    Result,
    Side,
    every_text,
    located,
    number,
    sides_of_runs,
)
from numalab.diagnose.snapshots import remarks, sides_of_snapshots
from numalab.readers._reading import Reading, Readings, Table
from numalab.readers._text import ReadError
from numalab.readers.tables import MMTESTS_COUNTERS

_VMSTAT = "proc-vmstat."
_NODE = re.compile(rf"numa-numastat\.node(\d+)\.({'|'.join(NODE_COUNTERS)})$")
#: Rows of tables that are times or rates of work, and which way is better.
_LOWER = re.compile(
    r"(?:^|\s|\.)(?:Elapsed|System|elapsed_time|system_time|get_\w*time_sec|seconds|runtime)\b"
    r"|(?:Amean|Hmean)\s+(?:elsp|syst|Lat)|real_time"
)
_HIGHER = re.compile(r"throughput|ops(?:_per_sec)?$|\bscore$|_rps$|Mbps|Hmean\s+\S+$|workload$", re.IGNORECASE)
#: Means of MMTests; spreads and extremes are no results.
_SPREAD = re.compile(r"^(?:Stddev|CoeffVar|Min|Max|Lat|Duration User|User|Ops)\b")
#: Pages of 4 KiB in a MB.
_PAGES_MB = 256
#: Formats whose runs are judged; of the others the tables are.
_FROM_DATASETS = frozenset(
    {"vmstat", "memcg-stat", "numastat", "numamove", "skip-reasons", "sched", "tasks", "ftrace", "perf-script"}
)


def collect(readings: Iterable[Reading], datasets: Sequence[Named]) -> Facts:
    """Gather the facts of texts, folders and runs."""
    readings = list(readings)
    facts = Facts(texts=every_text(readings), datasets=list(datasets))
    for source, ds in datasets:
        facts.sides += sides_of_runs(ds, source, _next(facts))
    for reading in readings:
        facts.tables += [(reading, table) for table in reading.tables]
        if reading.format in ("lkp", "mmtests"):
            for table in reading.tables:
                _add_table(facts, reading, table)
        elif reading.format in _FROM_DATASETS or not reading.tables:
            _add_run(facts, reading)
        for table in reading.tables:
            if table.columns[:2] == ("node", "cpus"):
                facts.machines.append(dict(_machine(reading, table)))
    _add_memory(facts, readings)
    return facts


def _next(facts: Facts) -> int:
    return len({side.table for side in facts.sides})


def _add_run(facts: Facts, reading: Reading) -> None:
    """Add the sides of a text or folder that makes a run."""
    try:
        ds = reading.dataset()
    except ReadError:
        return  # nothing of it has a place in a run; its tables are there
    facts.datasets.append((reading.source, ds))
    if "snapshot" in ds.coords and ds.sizes.get("time") == 1:
        found = list(sides_of_snapshots(ds, reading.source, _next(facts)))
        facts.remarks += remarks([side for _, side in found])
    else:
        found = list(enumerate(sides_of_runs(ds, reading.source, _next(facts))))
    if reading.format == "vmstat" and reading.tables:
        _add_further([side for _, side in found], reading.tables[0])
    facts.sides += [located(side, facts, reading, nth) for nth, side in found]


def _add_further(sides: Sequence[Side], table: Table) -> None:
    """Add the rows of a vmstat that a run has no place for, where each column is a side."""
    if len(table.columns) != len(sides) + 1 or any(side.series for side in sides):
        return
    for i, side in enumerate(sides, 1):
        for row in table.rows:
            value, name = number(row[i]), str(row[0])
            if value is not None and name not in side.counts:
                side.counts[name] = Count(name, value, source=side.source)


def _add_table(facts: Facts, reading: Reading, table: Table) -> None:
    """Add a side for each column of an LKP or MMTests table (and each test of an older LKP one)."""
    heads = [head for head in table.columns[1:] if _is_column(head, table)]
    tests = list(dict.fromkeys(row[1] for row in table.rows)) if "test" in table.columns else [None]
    for test in tests:
        at = _next(facts)
        for head in heads:
            side = Side(f"{head} {test}" if test else head, reading.source, at)
            for row in table.rows:
                if test is None or row[1] == test:
                    _add_row(facts, side, reading, table, row, head)
            if elapsed := next((r for label, r in side.results.items() if _is_elapsed(label)), None):
                side.seconds = elapsed.count.value
            if side.counts or side.nodes or side.results:
                facts.sides.append(side)


def _is_elapsed(label: str) -> bool:
    return label in ("Elapsed", "Duration Elapsed") or label.endswith("elapsed_time")


def _is_column(head: str, table: Table) -> bool:
    """Tell whether a head is of a column of values, not of what stands beside one."""
    beside = (" stddev_percent", " change", " better_percent", " significant")
    return head not in ("test", "change_in", "stat", "label") and not head.endswith(beside)


def _add_row(facts: Facts, side: Side, reading: Reading, table: Table, row: tuple[object, ...], head: str) -> None:
    label, value = str(row[0]), number(row[table.columns.index(head)])
    if value is None:
        return
    spread = f"{head} stddev_percent"
    percent = number(row[table.columns.index(spread)]) if spread in table.columns else None
    line = facts.line(reading.source, reading.format, table.line, label)
    label = label.removeprefix("Ops ")
    # LKP prints a spread only from 2 % on
    error = abs(value) * (percent or 0.0) / 100
    count = Count(label, value, error, "1", reading.source, line)
    if match := _NODE.match(label):
        side.nodes.setdefault(int(match[1]), {})[match[2]] = count
    elif label.startswith(_VMSTAT):
        side.counts[label.removeprefix(_VMSTAT)] = count
    elif label in MMTESTS_COUNTERS:
        # "NUMA PTE updates" of newer tables counts a huge page once; the row that counts its pages comes first
        side.counts.setdefault(MMTESTS_COUNTERS[label], count)
    elif label == "NUMA PTE updates":
        side.counts.setdefault("numa_pte_updates", count)
    else:
        _add_other(side, label, count)


def _add_other(side: Side, label: str, count: Count) -> None:
    if label.startswith("NUMA") and ("percent" in label or label.endswith("%")):
        side.counts["printed local percent"] = count
    elif re.match(r"numa-meminfo\.node\d+\.MemTotal$", label):
        side.counts[label] = count
    elif not _SPREAD.match(label):
        better = "lower" if _LOWER.search(label) else "higher" if _HIGHER.search(label) else ""
        side.results[label] = Result(count, better)


# ---------------------------------------------------------------- machines


def _machine(reading: Reading, table: Table) -> Iterator[tuple[int, Node]]:
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        node = int(str(cells["node"]))
        cpus = number(cells["cpus"])
        yield (
            node,
            Node(
                node,
                None if cpus is None else int(cpus),
                number(cells["size_MB"]),
                number(cells["free_MB"]),
                reading.source,
                table.line,
            ),
        )


def _add_memory(facts: Facts, readings: Sequence[Reading]) -> None:
    """Add what node meminfo files and numastat -m say of the memory of nodes."""
    for reading in readings:
        if reading.format not in ("meminfo", "numastat-m"):
            continue
        try:
            ds = reading.dataset()
        except ReadError:
            continue
        found = {}
        for node in ds["node"].values.tolist() if "node" in ds.coords else []:
            at = ds.sel(node=node).isel(run=0, time=-1)
            size, free = (float(at[name]) / _PAGES_MB if name in at else None for name in ("total_pages", "free_pages"))
            found[node] = Node(node, None, size, free, reading.source, reading.tables[0].line)
        known = facts.machine(reading.source)
        if not known and found:
            facts.machines.append(found)
        for node, one in found.items():
            if node in known and known[node].size_mb is None:
                known[node] = Node(node, known[node].cpus, one.size_mb, one.free_mb, one.source, one.line)


def all_readings(inputs: Iterable[Readings | Reading | xr.Dataset]) -> tuple[list[Reading], list[Named]]:
    """Part inputs into readings and runs; a run is named by its file, else by its title."""
    readings: list[Reading] = []
    datasets: list[Named] = []
    for one in inputs:
        if isinstance(one, xr.Dataset):
            datasets.append((str(one.encoding.get("source") or one.attrs.get("title", "")), one))
        elif isinstance(one, Reading):
            readings.append(one)
        else:
            readings += one.parts
    return readings, datasets
