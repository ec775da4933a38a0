"""What was looked at, and the verdict where no illness was found."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from numalab.diagnose.catalog import finding
from numalab.diagnose.counters import FEWEST_FAULTS
from numalab.diagnose.facts import Facts, Side, number
from numalab.diagnose.grouped import shape, together
from numalab.diagnose.result import Confidence, Evidence, Finding
from numalab.diagnose.series import CONVERGED
from numalab.diagnose.tasks import AWAY_FAULTS

#: Below it most faults are remote, more than chance on two nodes gives: not well, whatever the reason.
MOSTLY_REMOTE = 0.5
#: Migrations that failed, of those tried, and how many at least: then they are worth a question.
MANY_FAILED, FEWEST_FAILED = 0.25, 1000
#: Views whose tables were judged, and what they are called.
_VIEWS = {
    "numactl": "nodes and distances",
    "numastat-m": "memory of nodes",
    "meminfo": "memory of nodes",
    "numastat-p": "memory of processes",
    "numa_maps": "memory of processes",
    "memcg": "memory of cgroups",
    "perf-stat": "perf stat",
    "perf-report": "profile",
    "latency-histogram": "latencies",
    "autonuma-benchmark": "times of autonuma-benchmark",
}
#: Views that show how things stand, not whether balancing works: fine there is not fine.
_NARROW = frozenset(_VIEWS) - {"perf-report", "autonuma-benchmark"}


@dataclass(frozen=True)
class View:
    """Something looked at.

    Attributes
    ----------
    what : str
    evidence : tuple of Evidence
        Its main numbers.
    lacks : str
        What it lacks for a judgement; empty: nothing.
    how : str
        How to get that.
    narrow : bool
        Only few illnesses could show here.
    suspect : bool
        Something is not well, and what it lacks is what would say why.
    share : float or None
        Local share of hint faults.
    """

    what: str
    evidence: tuple[Evidence, ...]
    lacks: str = ""
    how: str = ""
    narrow: bool = False
    suspect: bool = False
    share: float | None = None


def views(facts: Facts) -> list[View]:
    """List what the inputs showed."""
    found = _of_sides(facts)
    for reading in {id(reading): reading for reading, _ in facts.tables}.values():
        if reading.format in _VIEWS:
            what, first = _VIEWS[reading.format], reading.tables[0]
            numbers = (Evidence(f"rows of {first.name}", len(first.rows), "1", reading.source, first.line),)
            found.append(View(f"{what} ({reading.source})", numbers, narrow=reading.format in _NARROW))
        elif reading.format == "mpstat":
            idle = tuple(
                Evidence(f"idle time of node {row[2]}", number(row[-1]), "percent", reading.source, table.line)
                for table in reading.tables
                for row in table.rows
                if row[2] != "all"
            )
            lacks = "CPU time by node says nothing about memory"
            found.append(View(f"CPU time of nodes ({reading.source})", idle, lacks, "grep numa /proc/vmstat, twice"))
    for source, ds in facts.datasets:
        if "perf_runtime_min_s" in ds.data_vars:
            took = float(np.nanmin(ds["perf_runtime_min_s"].values))
            shortest = (Evidence("shortest run time of a thread", took, "s", source),)
            found.append(View(f"perf bench numa ({source})", shortest))
        if "preferred_nid" in ds.data_vars and "numa_hint_faults" not in ds.data_vars:
            found.append(_of_tasks(source, ds))
    return found


def _of_sides(facts: Facts) -> list[View]:
    """Look at each side; what many samples of one input show alike is one view."""

    def alike(one: tuple[Side, View]) -> Hashable:
        side, view = one
        what = view.what.removesuffix(_label(side))
        return (side.table, what, shape(view.lacks), view.suspect) if side.many else None

    found = together(((side, view) for side in facts.sides for view in _of_side(side)), alike)
    return [_of_samples(group) if group[0][0].many else group[0][1] for group in found]


def _of_samples(group: Sequence[tuple[Side, View]]) -> View:
    """Make one view of alike ones: the numbers of the first, and of that with the least local share."""
    side, first = group[0]
    of = f"{len(group)} of {side.samples} samples ({side.source})"
    shares = [(view.share, at) for at, (_, view) in enumerate(group) if view.share is not None]
    least, at = min(shares, default=(None, 0))
    evidence = dict.fromkeys((*first.evidence, *group[at][1].evidence))
    lacks = f"{first.lacks} (in {side.name}, the first)" if first.lacks else ""
    what = first.what.removesuffix(_label(side)) + of
    return replace(first, what=what, evidence=tuple(evidence), lacks=lacks, share=least)


def _label(side: Side) -> str:
    label = f"{side.name} ({side.source})" if side.name and side.source else side.name or side.source
    return label + (f", mean of {side.runs} runs" if side.runs > 1 else "")


def _of_side(side: Side) -> Iterator[View]:
    label = _label(side)
    if "numa_hint_faults" in side.counts:
        evidence = side.evidence("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
        lacks = how = ""
        suspect = False
        if side.faults < FEWEST_FAULTS:
            lacks = f"{side.faults:,.0f} hint faults, where {FEWEST_FAULTS:,} are needed"
            how = "a longer window: grep numa /proc/vmstat before and after a minute of load"
        elif side.share is None:
            lacks, how = "numa_hint_faults_local is missing", "grep numa_hint /proc/vmstat"
        else:
            evidence.append(side.derived("local share", side.share))
            lacks = _unexplained(side)
            suspect = bool(lacks)
            if suspect:
                evidence += side.evidence("pgmigrate_success", "pgmigrate_fail")
                how = "grep 'numa\\|pgmigrate' /proc/vmstat every 10 s for a minute of load; numastat; numastat -m"
        yield View(f"counters of balancing of {label}", tuple(evidence), lacks, how, suspect=suspect, share=side.share)
    if side.nodes:
        misses = [one["numa_miss"].evidence() for one in side.nodes.values() if "numa_miss" in one]
        hits = [one["numa_hit"].evidence() for one in side.nodes.values() if "numa_hit" in one]
        every = [count.evidence() for one in side.nodes.values() for count in one.values()]
        lacks = "" if misses or hits else "numa_miss and numa_hit are missing"
        yield View(f"allocations by node of {label}", tuple((misses or hits or every)[:8]), lacks, "numastat")
    if "numa_migrations" in side.counts:
        yield View(f"migrations over time of {label}", tuple(side.evidence("numa_migrations")))


def _unexplained(side: Side) -> str:
    """Say what is not well in the counters of a side though no illness shows; empty: nothing."""
    if side.share is not None and side.share < MOSTLY_REMOTE:
        return f"only {side.share:.0%} of the faults were local, and totals do not say why, or whether that is over"
    failed, done = (side.value(name) or 0.0 for name in ("pgmigrate_fail", "pgmigrate_success"))
    if failed >= FEWEST_FAILED and failed > MANY_FAILED * (failed + done):
        return f"{failed / (failed + done):.0%} of the migrations failed, and totals do not say why"
    return ""


def _of_tasks(source: str, ds: xr.Dataset) -> View:
    """Look at /proc/PID/sched: does it have faults enough for a judgement?"""
    name = "total_numa_faults" if "total_numa_faults" in ds.data_vars else "faults"
    if name not in ds.data_vars:
        return View(f"tasks ({source})", (Evidence("NUMA faults of tasks", None, "1", source),), "faults are missing")
    last = ds[name].isel({str(ds[name].dims[1]): -1})
    most = float(last.sum([dim for dim in last.dims if dim not in ("run", "task")]).max())
    evidence = (Evidence("NUMA faults of the task with most (decayed)", most, "1", source),)
    if most >= AWAY_FAULTS:
        return View(f"tasks ({source})", evidence)
    lacks = f"{most:,.0f} NUMA faults of a task (decayed), where {AWAY_FAULTS} are needed, in two samples 10 s apart"
    return View(f"tasks ({source})", evidence, lacks, "cat /proc/PID/sched again after 10 s of load")


def verdict(found: Sequence[Finding], seen: Sequence[View]) -> Iterator[Finding]:
    """Say that nothing is wrong, or that nobody could know; nothing beside an illness or a contradiction."""
    if any(one.kind == "illness" or one.id in ("counters-contradict", "not-enough-data") for one in found):
        return
    judged = [view for view in seen if not view.lacks]
    if any(one.id == "balancing-off" for one in found):
        return
    lacking = [view for view in seen if view.lacks]
    if judged and not any(view.suspect for view in lacking):
        says = "No illness in: " + "; ".join(view.what for view in judged) + "."
        remote = any(view.share is not None and view.share < CONVERGED for view in judged)
        if remote:
            says += f" The local share is below {CONVERGED:g}, though: samples over time would show whether it rises."
        evidence = [one for view in judged for one in view.evidence][:12]
        narrow = all(view.narrow for view in judged)
        more = ("grep numa /proc/vmstat before and after a minute of load shows far more",) if narrow else ()
        sure: Confidence = "low" if narrow else "medium" if lacking or remote else "high"
        yield finding("nothing-wrong", says, evidence, sure, attempts=more)
    else:
        says = "; ".join(f"{view.what}: {view.lacks}" for view in lacking) or "The inputs hold nothing to judge."
        evidence = [one for view in lacking for one in view.evidence] or [Evidence("views of balancing or memory", 0.0)]
        how = tuple(dict.fromkeys(view.how for view in lacking if view.how)) or ("numactl -H; grep numa /proc/vmstat",)
        yield finding("not-enough-data", f"{says}.".replace("..", "."), evidence, None, attempts=how)
