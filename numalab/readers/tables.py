"""Tables of LKP and MMTests as readings: what was understood, the tables, and a dataset of the counters in them.

Each column of a table (in the older LKP style each test and column) becomes one entry along ``run``: the mean over
runs nobody can tell apart any more. Counters are whole numbers, so means are rounded; spreads, times and
throughputs stay in the table, and `numalab.sides` compares those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import runs
from numalab.readers import lkp, mmtests
from numalab.readers._reading import Found, Reading, Table
from numalab.readers._tables import Report
from numalab.readers._text import NoRunError, ReadError
from numalab.schema import VARIABLES

#: LKP's prefix of counters of /proc/vmstat.
_VMSTAT = "proc-vmstat."
#: LKP's names of the allocation counters of nodes.
_NODE = re.compile(r"numa-numastat\.node(\d+)\.(numa_hit|numa_miss|numa_foreign|interleave_hit|local_node|other_node)$")

#: Labels of MMTests -> counters of /proc/vmstat. "base-page" counts a huge page as its 512 pages.
MMTESTS_COUNTERS = {
    "NUMA base-page range updates": "numa_pte_updates",
    "NUMA page range updates": "numa_pte_updates",
    "NUMA PMD updates": "numa_huge_pte_updates",
    "NUMA huge PMD updates": "numa_huge_pte_updates",
    "NUMA hint faults": "numa_hint_faults",
    "NUMA hint local faults %": "numa_hint_faults_local",
    "NUMA hint local faults": "numa_hint_faults_local",
    "NUMA pages migrated": "numa_pages_migrated",
    "NUMA alloc hit": "numa_hit",
    "NUMA alloc miss": "numa_miss",
    "NUMA interleave hit": "numa_interleave",
    "NUMA alloc local": "numa_local",
    "Minor Faults": "minor_faults",
    "Page migrate success": "pgmigrate_success",
    "Page migrate failure": "pgmigrate_fail",
}

#: Rows since huge pages are counted apart.
_HUGE = re.compile(r"NUMA (?:base-page |page )range updates|NUMA (?:huge )?PMD updates|NUMA base PTE updates")
#: No counter of 64 bits, a whole number of which a table prints the mean, is above this.
_MOST = 2**62
#: Kernel (or commit), test, counter -> mean.
_Record = tuple[str, str, dict[str, float]]


def read_lkp(text: str, source: str, _release: str | None = None) -> Reading:
    """Read LKP tables: means by commit."""
    report = lkp.parse(text, source)
    found = []
    for table in report.tables:
        counters = sum(row.stat.startswith(_VMSTAT) for row in table.rows)
        what = (
            f"table of {' against '.join(table.columns)}: {len(table.rows)} rows, {counters} counters of /proc/vmstat"
        )
        what += f", {len(table.failures)} failures in {table.runs} runs" if table.runs else ""
        found.append(Found(table.line, what))
    found += [Found(line, f"title: {text}") for line, text in report.titles]
    found += [Found(line, f"note: {text}") for line, text in report.notes]
    records = [record for table in report.tables for record in _lkp_records(table, source)]
    return _reading(report, "lkp", found, records, _lkp_tables(report.tables))


def _count(value: float, row: lkp.Row | mmtests.Row, source: str) -> float:
    """Return the value of a counter.

    Raises
    ------
    ReadError
        It is negative.
    """
    if value < 0:
        raise ReadError(source, row.line, f"{value:g} for a counter, which is never negative; was the line changed?")
    return value


def _lkp_records(table: lkp.Table, source: str) -> Iterable[_Record]:
    for row in table.rows:
        if (row.stat.startswith(_VMSTAT) or _NODE.match(row.stat)) and row.test != lkp.TOTAL:
            for column, cell in zip(table.columns, row.cells, strict=True):
                yield column, row.test, {row.stat.removeprefix(_VMSTAT): _count(cell.mean, row, source)}


def _lkp_tables(tables: Sequence[lkp.Table]) -> list[Table]:
    """Return the rows as they stand, of the same columns together: mean, spread, change of each but the first."""
    found = []
    for columns in dict.fromkeys(table.columns for table in tables):
        same = [table for table in tables if table.columns == columns]
        names = ["stat", "test"]
        for i, column in enumerate(columns):
            names += [column, f"{column} stddev_percent"] + ([f"{column} change"] if i else [])
        rows = [_lkp_row(row) for table in same for row in table.rows]
        found.append(Table(f"lkp {' '.join(columns)}", (*names, "change_in"), tuple(rows), line=same[0].line))
    return found


def _lkp_row(row: lkp.Row) -> tuple[Any, ...]:
    values: list[Any] = [row.stat, row.test or None]
    for i, cell in enumerate(row.cells):
        values += [cell.mean, cell.stddev_percent] + ([row.changes[i - 1]] if i else [])
    return (*values, "points" if row.absolute else "percent")


def read_mmtests(text: str, source: str, _release: str | None = None) -> Reading:
    """Read MMTests tables: values by kernel."""
    report = mmtests.parse(text, source)
    names = mmtests_counters(report)
    found = []
    for table in report.tables:
        counters = sum(row.metric in names for row in table.rows)
        starred = sum(any(row.significant) for row in table.rows)
        what = f"table of {', '.join(table.kernels)}: {len(table.rows)} rows, {counters} counters of /proc/vmstat"
        found.append(Found(table.line, what + (f", {starred} with a change marked significant" if starred else "")))
    found += [Found(line, f"note: {text}") for line, text in report.notes]
    records = [record for table in report.tables for record in _mmtests_records(table, names, source)]
    return _reading(report, "mmtests", found, records, _mmtests_tables(report.tables))


def _mmtests_tables(tables: Sequence[mmtests.Table]) -> list[Table]:
    """Return the rows as they stand, of the same kernels together: value, how much better, whether that is marked."""
    found = []
    for kernels in dict.fromkeys(table.kernels for table in tables):
        same = [table for table in tables if table.kernels == kernels]
        names = ["label"]
        for i, kernel in enumerate(kernels):
            names += [kernel] + ([f"{kernel} better_percent", f"{kernel} significant"] if i else [])
        rows = [_mmtests_row(row) for table in same for row in table.rows]
        found.append(Table(f"mmtests {' '.join(kernels)}", tuple(names), tuple(rows), line=same[0].line))
    return found


def _mmtests_row(row: mmtests.Row) -> tuple[Any, ...]:
    values: list[Any] = [row.label]
    for i, value in enumerate(row.values):
        beside = [_finite(row.changes[i]), int(row.significant[i])] if row.changes else [None, None]
        values += [_finite(value)] + (beside if i else [])
    return tuple(values)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def mmtests_counters(report: mmtests.Report) -> dict[str, str]:
    """Return labels -> counters of /proc/vmstat, as they were when the tables of a text were made.

    In 2013 and before, which rows of huge pages tell, "NUMA PTE updates" was the kernel's own counter.
    """
    if any(_HUGE.search(row.metric) for table in report.tables for row in table.rows):
        return MMTESTS_COUNTERS
    return MMTESTS_COUNTERS | {"NUMA PTE updates": "numa_pte_updates"}


def _mmtests_records(table: mmtests.Table, names: Mapping[str, str], source: str) -> Iterable[_Record]:
    for row in table.rows:
        if row.statistic in ("", "Ops") and row.metric in names:
            for kernel, value in zip(table.kernels, row.values, strict=True):
                yield kernel, "", {names[row.metric]: _count(value, row, source)}


def _reading(
    report: Report[Any], name: str, found: Sequence[Found], records: Sequence[_Record], tables: Sequence[Table]
) -> Reading:
    def dataset() -> xr.Dataset:
        return _dataset(report, name, records)

    skipped = tuple(report.skipped)
    return Reading(report.source, name, report.lines, tuple(found), skipped, dataset, tables=tuple(tables))


def _dataset(report: Report[Any], name: str, records: Sequence[_Record]) -> xr.Dataset:
    """Make one run of each kernel and test, with the counters that all of them have."""
    merged: dict[tuple[str, str], dict[str, float]] = {}
    for kernel, test, values in records:
        known = merged.setdefault((kernel, test), {})
        known.update({key: value for key, value in values.items() if key not in known and abs(value) < _MOST})
    if not merged:
        raise NoRunError(report.source, 0, "holds no counter of /proc/vmstat, of which a dataset could be made")
    every = list(merged.values())
    # names beginning with nr_ are states, not counts
    common = [key for key in every[0] if all(key in one for one in every) and not key.startswith("nr_")]
    if not common:
        raise NoRunError(report.source, 0, "holds no counter that all its columns and tests have")
    means = {key: np.array([[round(one[key])] for one in every], dtype=np.int64) for key in common}
    variables, nodes = _of_nodes(means)
    common = [key for key in common if not _NODE.match(key)]
    variables |= {key: means[key] for key in common if key in VARIABLES}
    further = [key for key in common if key not in VARIABLES]
    coords: dict[str, object] = {"kernel": [kernel for kernel, _ in merged], "time": np.zeros(1)} | nodes
    if further:
        coords["counter"] = further
        variables["counters"] = np.stack([means[key] for key in further], axis=-1)
    if any(test for _, test in merged):
        coords["test"] = ("run", [test for _, test in merged])
    params: Mapping[str, object] = {
        "reader": name,
        "file": report.source,
        "skipped_lines": len(report.skipped),
        "values": "means over an unknown number of runs, rounded",
    }
    return runs.build(variables, coords, title=f"{name}: {report.source}", source="measured", params=params)


def _of_nodes(means: Mapping[str, NDArray[np.int64]]) -> tuple[dict[str, NDArray[np.int64]], dict[str, object]]:
    """Return the allocation counters that every node has, and the coordinates of nodes and counters."""
    found = {(int(match[1]), match[2]): key for key in means if (match := _NODE.match(key))}
    nodes = sorted({node for node, _ in found})
    names = [name for name in dict.fromkeys(name for _, name in found) if all((node, name) in found for node in nodes)]
    if not names:
        return {}, {}
    values = np.stack([np.stack([means[found[node, name]] for name in names], axis=-1) for node in nodes], axis=-2)
    return {"node_counters": values}, {"node": nodes, "node_counter": names}
