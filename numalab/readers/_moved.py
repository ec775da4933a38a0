"""Readings of what numamove and numasched print: their tables, and runs made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import numamove
from numalab.readers._assemble import Parts
from numalab.readers._reading import Found, Reading, Table
from numalab.readers.numamove import FORMAT, Change, Report
from numalab.schema import BALANCER_MOVE


def read_numamove(text: str, source: str, _release: str | None = None) -> Reading:
    """Read numamove (counters over time) or numasched (the table of moves)."""
    report = numamove.parse(text, source)
    return _read_rates(report) if report.samples else _read_changes(report)


def _read_rates(report: Report) -> Reading:
    samples = report.samples
    steps = {int(after.time - before.time) for before, after in pairwise(samples)}
    found = [
        Found(samples[0].line, f"{len(samples)} samples of numamove from {report.start}, {_steps(steps)}"),
        Found(0, f"{report.rate():.0f} migrations per sample on average, {sum(s.ms for s in samples)} ms in all"),
    ]
    guessed = Found(samples[0].line, "a huge page counts once, a failed call too; milliseconds of bcc are cut")
    columns = ("time", "migrations", "ms")
    table = Table("numamove", columns, tuple((s.time, s.calls, s.ms) for s in samples), line=samples[0].line)
    return _reading(report, found, lambda: migrations(report), guessed, table)


def _steps(steps: set[int]) -> str:
    if not steps:
        return "one only"
    return f"{min(steps)} s apart" if len(steps) == 1 else f"{min(steps)} to {max(steps)} s apart"


def _read_changes(report: Report) -> Reading:
    changes = report.changes
    tasks = {change.task for change in changes}
    found = [Found(changes[0].line, f"{len(changes)} changes of node from {report.start}, of {len(tasks)} tasks")]
    guessed = Found(changes[0].line, "numasched does not say who moved a task; all count as moves by others")
    columns = ("time", "process", "task", "from", "to", "name")
    rows = tuple((c.time, c.process, c.task, c.src, c.dst, c.comm) for c in changes)
    pairs = _pairs(changes)
    moves = Table("numasched", columns, rows, line=changes[0].line)
    return _reading(report, found, lambda: changes_of_node(report), guessed, moves, pairs)


def _reading(
    report: Report, found: list[Found], dataset: Callable[[], xr.Dataset], guessed: Found, *tables: Table
) -> Reading:
    return Reading(
        report.source,
        FORMAT,
        report.lines,
        tuple(found),
        tuple(report.skipped),
        dataset,
        guessed=(guessed,),
        tables=tables,
    )


def _pairs(changes: Sequence[Change]) -> Table:
    """Count the changes from each node to each."""
    nodes = sorted({node for change in changes for node in (change.src, change.dst)})
    counts = {(src, dst): 0 for src in nodes for dst in nodes}
    for change in changes:
        counts[change.src, change.dst] += 1
    rows = tuple((src, *(counts[src, dst] for dst in nodes)) for src in nodes)
    return Table("changes of node", ("from \\ to", *map(str, nodes)), rows)


# ---------------------------------------------------------------- runs


def migrations(report: Report) -> xr.Dataset:
    """Make counters of calls and milliseconds, summed up from the first sample on.

    Rows of the same second (the tool was late) are put together.
    """
    samples = report.samples
    times, last = np.unique([sample.time for sample in samples][::-1], return_index=True)
    ends = len(samples) - 1 - last
    sums = np.cumsum([[sample.calls, sample.ms] for sample in samples], axis=0)[ends]
    coords = {"time": times, "counter": ["numa_migrations", "numa_migrations_ms"]}
    return _build(report, {"counters": sums[np.newaxis]}, coords)


def changes_of_node(report: Report) -> xr.Dataset:
    """Make the table of moves; CPUs are not known (-1)."""
    parts = Parts()
    parts.see_nodes(node for change in report.changes for node in (change.src, change.dst))
    for change in report.changes:
        parts.see_task(change.task, change.process, change.comm)
    count = len(report.changes)
    columns = {
        "event_time_s": np.array([change.time for change in report.changes]),
        "event_kind": np.full(count, BALANCER_MOVE),
        "event_task": np.array([change.task for change in report.changes]),
        "event_src_node": np.array([change.src for change in report.changes]),
        "event_dst_node": np.array([change.dst for change in report.changes]),
        "event_src_cpu": np.full(count, -1),
        "event_dst_cpu": np.full(count, -1),
        "event_partner": np.full(count, -1),
    }
    parts.variables |= runs.padded("event", [columns])
    parts.finish()
    return _build(report, parts.variables, parts.coords)


def _build(report: Report, variables: dict[str, object], coords: dict[str, object]) -> xr.Dataset:
    params = {"reader": FORMAT, "file": report.source, "skipped_lines": len(report.skipped), "start": report.start}
    return runs.build(variables, coords, title=f"{FORMAT}: {report.source}", source="measured", params=params)
