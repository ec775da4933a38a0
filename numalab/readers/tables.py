"""Tables of LKP and MMTests as readings: what was understood, and a dataset of the counters in them.

Each column of a table (in the older LKP style each test and column) becomes one entry along ``run``: the mean over
runs nobody can tell apart any more. Counters are whole numbers, so means are rounded; spreads, times and
throughputs stay in the table, and `numalab.sides` compares those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import lkp, mmtests
from numalab.readers._reading import Found, Reading
from numalab.readers._text import ReadError
from numalab.schema import VARIABLES

#: LKP's prefix of counters of /proc/vmstat.
_VMSTAT = "proc-vmstat."

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
        if where := [table.setup[key] for key in ("tbox_group", "testcase", "test") if key in table.setup]:
            found.append(Found(table.line, f"taken on {', '.join(where)}"))
    found += [Found(line, f"note: {text}") for line, text in report.notes]
    return _reading(report, "lkp", found, [record for table in report.tables for record in _lkp_records(table)])


def _lkp_records(table: lkp.Table) -> Iterable[_Record]:
    for row in table.rows:
        if row.stat.startswith(_VMSTAT) and row.test != lkp.TOTAL:
            for column, cell in zip(table.columns, row.cells, strict=True):
                yield column, row.test, {row.stat.removeprefix(_VMSTAT): cell.mean}


def read_mmtests(text: str, source: str, _release: str | None = None) -> Reading:
    """Read MMTests tables: values by kernel."""
    report = mmtests.parse(text, source)
    found = []
    for table in report.tables:
        counters = sum(row.metric in MMTESTS_COUNTERS for row in table.rows)
        starred = sum(any(row.significant) for row in table.rows)
        what = f"table of {', '.join(table.kernels)}: {len(table.rows)} rows, {counters} counters of /proc/vmstat"
        found.append(Found(table.line, what + (f", {starred} with a change marked significant" if starred else "")))
    found += [Found(line, f"note: {text}") for line, text in report.notes]
    records = [record for table in report.tables for record in _mmtests_records(table)]
    return _reading(report, "mmtests", found, records)


def _mmtests_records(table: mmtests.Table) -> Iterable[_Record]:
    for row in table.rows:
        if row.statistic in ("", "Ops") and row.metric in MMTESTS_COUNTERS:
            for kernel, value in zip(table.kernels, row.values, strict=True):
                yield kernel, "", {MMTESTS_COUNTERS[row.metric]: value}


def _reading(
    report: lkp.Report | mmtests.Report, name: str, found: Sequence[Found], records: Sequence[_Record]
) -> Reading:
    def dataset() -> xr.Dataset:
        return _dataset(report, name, records)

    return Reading(report.source, name, report.lines, tuple(found), tuple(report.skipped), dataset)


def _dataset(report: lkp.Report | mmtests.Report, name: str, records: Sequence[_Record]) -> xr.Dataset:
    """Make one run of each kernel and test, with the counters that all of them have."""
    merged: dict[tuple[str, str], dict[str, float]] = {}
    for kernel, test, values in records:
        known = merged.setdefault((kernel, test), {})
        known.update({key: value for key, value in values.items() if key not in known and np.isfinite(value)})
    if not merged:
        raise ReadError(report.source, 0, "holds no counter of /proc/vmstat, of which a dataset could be made")
    every = list(merged.values())
    # names beginning with nr_ are states, not counts
    common = [key for key in every[0] if all(key in one for one in every) and not key.startswith("nr_")]
    if not common:
        raise ReadError(report.source, 0, "holds no counter that all its columns and tests have")
    means = {key: np.array([[round(one[key])] for one in every], dtype=np.int64) for key in common}
    variables = {key: value for key, value in means.items() if key in VARIABLES}
    further = [key for key in common if key not in VARIABLES]
    coords: dict[str, object] = {"kernel": [kernel for kernel, _ in merged], "time": np.zeros(1)}
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
