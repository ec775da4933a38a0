"""What a replay of the kernel's decisions needs from a run folder, read once.

Layout A with the probes of `numalab.readers.ftrace`: the hint faults and answers, the statistics of
/proc/PID/sched at each sample, the machine, and from when on the trace is not whole.
"""

import json
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.readers import _layout_a, ftrace, numa_maps, sched
from numalab.readers._assemble import Parts
from numalab.readers._collect import Collected, need, read_meta
from numalab.readers._events import Decisions, decisions
from numalab.readers._folder import Folder
from numalab.readers._text import ReadError

_STATS = re.compile(r"(?m)^cpu(\d+) overrun: (\d+) commit overrun: (\d+) dropped events: (\d+)")
_LOST = re.compile(r"(?:CPU:(\d+) \[LOST|.*\bLOST) \d+ events", re.IGNORECASE)

BEFORE_ALL = float("-inf")


@dataclass(frozen=True)
class Recording:
    """One run with the probes of hint faults.

    Attributes
    ----------
    name, release : str
        Of the run, of the kernel.
    node_of : int array (cpu)
        Node of each CPU.
    distance : int array (node, node)
    sysctl : dict
        Settings of NUMA balancing, as numbers where they are.
    decisions : Decisions
    pages : dict
        pid -> most pages (4 KiB) that numa_maps.log ever lists; empty without it.
    samples : dict
        tid -> its /proc/PID/sched, in the order of time; ``time`` on the axis of the run.
    loss_s : float
        From here on events are missing; infinity when none is.
    """

    name: str
    release: str
    node_of: NDArray[np.int64]
    distance: NDArray[np.int64]
    sysctl: dict[str, Any]
    decisions: Decisions
    pages: dict[int, int]
    samples: dict[int, list[sched.Task]]
    loss_s: float


def has_probes(path: str | PathLike[str]) -> bool:
    """Tell whether the meta.json of a folder says that it was taken with the probes (``trace.groups``)."""
    try:
        meta = json.loads((Path(path) / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    groups = (meta.get("trace") or {}).get("groups") if _layout_a.fits(meta) else None
    return "kprobe" in (groups or [])


def recording(path: str | PathLike[str]) -> Recording:
    """Read a folder.

    Raises
    ------
    ReadError
        Not of layout A, no trace, no hint fault in it, no sched.log, or one of them broken.
    """
    out = Collected(folder := Folder(Path(path)), read_meta(folder), Parts())
    if not _layout_a.fits(out.meta):
        raise ReadError(str(path), 0, "is not of layout A; only its trace records single faults")
    text, stats = (_text(folder, name) for name in ("trace.txt", "sched.log"))
    report = ftrace.parse(text, folder.source("trace.txt"))
    if not report.hint_faults:
        raise ReadError(report.source, 0, "holds no hint_fault event; it was taken without the probes (trace.groups)")
    report.lost = max(report.lost, _layout_a.lost(out))
    zero = _layout_a.zero(out)
    source = folder.source("meta.json")
    release = need(out.meta, "kernel.release", str, source)
    samples: dict[int, list[sched.Task]] = {}
    for task in sched.parse(stats, folder.source("sched.log"), release).tasks:
        if task.time is None:
            raise ReadError(folder.source("sched.log"), task.line, "expected '@ <seconds> pid=<n> tid=<n>' before it")
        task.time -= zero
        samples.setdefault(task.tid, []).append(task)
    node_of, distance = _machine(out.meta, source)
    return Recording(
        name=str(out.meta.get("run", folder.path.name)),
        release=release,
        node_of=node_of,
        distance=distance,
        sysctl=_layout_a.sysctl(out.meta),
        decisions=decisions(report, zero),
        pages=_pages(folder),
        samples=samples,
        loss_s=_first_loss(report, text, folder.text("trace_stats.txt") or "") - zero,
    )


def _pages(folder: Folder) -> dict[int, int]:
    most: dict[int, int] = {}
    text = folder.text("numa_maps.log")
    if text and text.strip():
        for process in numa_maps.parse(text, folder.source("numa_maps.log")).processes:
            pages = sum(sum(mapping.nodes.values()) * mapping.page_kb // 4 for mapping in process.mappings)
            most[process.pid] = max(pages, most.get(process.pid, 0))
    return most


def _text(folder: Folder, name: str) -> str:
    text = folder.text(name)
    if text is None or not text.strip():
        raise ReadError(folder.source(name), 0, "is missing or empty; the replay needs it, copy the folder again")
    return text


def _machine(meta: dict[str, Any], source: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    try:
        pairs = {
            int(cpu): int(node) for node, cpus in need(meta, "topology.node_cpus", dict, source).items() for cpu in cpus
        }
        node_of = np.array([pairs[cpu] for cpu in range(len(pairs))], np.int64)
        distance = np.array(need(meta, "topology.distance", list, source), np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise ReadError(source, 0, f"topology: expected CPUs 0, 1, ... by node and a matrix ({error})") from error
    count = int(node_of.max()) + 1
    if distance.shape != (count, count):
        raise ReadError(source, 0, f"topology.distance: expected {count} x {count}, got {distance.shape}")
    return node_of, distance


def _first_loss(report: ftrace.Report, text: str, stats: str) -> float:
    """Find the last moment, on the trace's clock, up to which it is whole.

    Buffers that do not overwrite lose their end (dropped events), others their beginning (overrun).
    """
    if not report.lost:
        return float("inf")
    moments = [(event.line, event.cpu, event.time) for event in _all_events(report)]
    times = [_last_time(moments, int(cpu), None) for cpu, _, _, dropped in _STATS.findall(stats) if int(dropped)]
    if any(int(over) + int(commit) for _, over, commit, _ in _STATS.findall(stats)):
        times.append(BEFORE_ALL)
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LOST.match(line):
            times.append(_last_time(moments, None if match[1] is None else int(match[1]), number))
    # lost events that nobody places: nothing is certain
    return min(times, default=BEFORE_ALL)


def _all_events(report: ftrace.Report) -> list[Any]:
    kinds = (
        report.hint_faults, report.should_migrate, report.scan_works, report.set_preferred, report.page_faults,
        report.skipped_vmas, report.migrate_pages, report.moves, report.swaps, report.sticks, report.migrate_tasks,
    )  # fmt: skip
    return [event for kind in kinds for event in kind]


def _last_time(moments: list[tuple[int, int, float]], cpu: int | None, before: int | None) -> float:
    """Return the time of a CPU's last event before a line."""
    found = [t for line, c, t in moments if cpu in (None, c) and (before is None or line < before)]
    return max(found, default=BEFORE_ALL)
