"""What numamove and numasched print, as runs."""

from __future__ import annotations

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers._assemble import Parts
from numalab.readers.numamove import FORMAT, Report
from numalab.schema import BALANCER_MOVE


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
