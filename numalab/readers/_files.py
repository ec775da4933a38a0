"""Logs of the sampler, traces, /proc/zoneinfo and perf lock: each a `Reading` with its own dataset."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numalab.readers import _assemble, _events, ftrace, perf_lock, tasks, zoneinfo
from numalab.readers._assemble import Parts
from numalab.readers._plain import Fill, single, span
from numalab.readers._reading import Found, Reading


def _reading(report: Any, name: str, understood: Sequence[Found], fill: Fill) -> Reading:
    dataset = single(fill, name, report.source, report.skipped)
    return Reading(report.source, name, report.lines, tuple(understood), tuple(report.skipped), dataset)


def read_tasks(text: str, source: str, _release: str | None = None) -> Reading:
    """Read tasks.log: where tasks were."""
    report = tasks.parse(text, source)
    tids = {row.tid for row in report.rows}
    found = [
        span(report.rows, "line"),
        Found(1, f"{len(tids)} tasks of {len({r.pid for r in report.rows})} processes"),
    ]
    return _reading(report, "tasks", found, lambda parts: _assemble.add_tasks(parts, "time", report.rows, []))


def read_ftrace(text: str, source: str, _release: str | None = None) -> Reading:
    """Read trace events: the table of moves, swaps and failures."""
    return reading_of_events(ftrace.parse(text, source), "ftrace")


def reading_of_events(report: ftrace.Report, name: str) -> Reading:
    """Make the reading of trace events, whoever printed them."""
    done, failed = _events.outcomes(report)
    found = [Found(0, f"{count} {name}") for name, count in report.counts().items()] or [Found(1, "no event")]
    found.append(Found(0, f"{len(done)} moves and swaps done, {len(failed)} attempts failed"))
    if report.lost:
        found.append(Found(0, f"the kernel lost {report.lost} events"))

    def fill(parts: Parts) -> None:
        _events.see_tasks(parts, report)
        _events.see_cpus(parts, report)
        parts.see_nodes(parts.node_of.values())
        _events.add_events(parts, report)

    return _reading(report, name, found, fill)


def read_zoneinfo(text: str, source: str, _release: str | None = None) -> Reading:
    """Read /proc/zoneinfo: free pages per node."""
    report = zoneinfo.parse(text, source)
    nodes = report.nodes()
    found = [Found(zone.line, f"zone {zone.name} of node {zone.node}") for zone in report.zones]
    found += [
        Found(0, f"node {node}: {pages['free']} pages free of {pages['managed']}") for node, pages in nodes.items()
    ]

    def fill(parts: Parts) -> None:
        parts.see_nodes(nodes)
        parts.coords["time"] = np.zeros(1)
        parts.variables["free_pages"] = np.array([[[nodes[node]["free"] for node in parts.nodes]]], dtype=np.int64)

    return _reading(report, "zoneinfo", found, fill)


def read_perf_lock(text: str, source: str, _release: str | None = None) -> Reading:
    """Read perf lock: who waited for locks, and of these the look-up of a shared policy."""
    report = perf_lock.parse_lock(text, source)
    waits = [wait for wait in report.waits if wait.is_lookup]
    worst = max(report.waits, key=lambda wait: wait.total_s)
    found = [
        Found(
            report.waits[0].line,
            f"{len(report.waits)} locks or callers, {sum(wait.contended for wait in report.waits)} waits",
        ),
        Found(worst.line, f"the longest in all: {worst.name} ({worst.kind}), {worst.total_s:.3g} s"),
        Found(
            waits[0].line if waits else 0,
            f"of these the look-up of a shared policy: {sum(wait.contended for wait in waits)} waits, "
            f"{sum(wait.total_s for wait in waits):.3g} s",
        ),
    ]

    def fill(parts: Parts) -> None:
        parts.variables["lock_waits"] = np.array([sum(wait.contended for wait in waits)])
        parts.variables["lock_total_wait_s"] = np.array([float(sum(wait.total_s for wait in waits))])

    return _reading(report, "perf-lock", found, fill)
