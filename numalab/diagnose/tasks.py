"""Illnesses of tasks: benchmarks that do not converge, tasks away from home, moves undone or for nothing, waiting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.derived import growth, time_axis
from numalab.diagnose.catalog import finding
from numalab.diagnose.counters import FEWEST_FAULTS
from numalab.diagnose.facts import Facts, number
from numalab.diagnose.result import Confidence, Evidence, Finding
from numalab.readers._reading import Reading
from numalab.schema import TABLES, VARIABLES

#: A run that ends this near its limit was ended by it, not by convergence.
AT_LIMIT = 0.95
#: Default of perf bench numa's -s.
PERF_LIMIT_S = 5.0
#: Seconds and (decayed) faults from which a task away from its preferred node is lost, not on its way.
AWAY_S, AWAY_FAULTS = 10.0, 500
#: Moves undone within one scan period that are more than chance.
UNDONE = 3
#: Scan period where a run does not have it: the kernel's shortest.
SCAN_PERIOD_S = 1.0
#: Gain of a marginal move, of 1000 (the kernel refuses swaps below 30 since 4.19) ...
SMALL_GAIN = 50
#: ... the share of such moves, and the moves that a share needs.
MARGINAL, FEWEST_MOVES = 0.5, 20
#: Waiting, in share of time, that is no longer noise.
WAITING = 0.05
#: Local share below which the waiting may be for moving pages.
WAITING_SHARE = 0.5
#: Processes that map one private area of a file.
MAPPED_BY = 10

_MOVE, _SWAP, _BALANCER = (VARIABLES["event_kind"].codes.index(kind) for kind in ("move", "swap", "balancer_move"))
_LIMIT = re.compile(r"\s-s\s*(\d+)")
#: -m: measure convergence, alone or among other letters.
_MEASURES = re.compile(r"\s-(?!-)\w*m\w*(?:\s|$)|--measure_convergence")


def findings(facts: Facts) -> Iterator[Finding]:
    """Find what benchmarks, tasks and events show."""
    for source, ds in facts.datasets:
        if "perf_runtime_min_s" in ds.data_vars:
            yield from _perf_bench(facts, source, ds)
        if {"preferred_nid", "task_node", "total_numa_faults"} <= set(ds.data_vars):
            yield from _away(source, ds)
        if "event_kind" in ds.data_vars:
            yield from _undone(source, ds)
        if "event_gain" in ds.data_vars:
            yield from _marginal(source, ds)
    for reading, _ in facts.named("autonuma-benchmark", "seconds"):
        yield from _autonuma(facts, reading)
    yield from _cow(facts)


# ---------------------------------------------------------------- convergence


def _perf_bench(facts: Facts, source: str, ds: xr.Dataset) -> Iterator[Finding]:
    for i in range(ds.sizes["run"]):
        command = f" {ds['command'].values[i]} " if "command" in ds.coords else " "
        took = float(ds["perf_runtime_min_s"].values[i])
        match = _LIMIT.search(command)
        limit = float(match[1]) if match else PERF_LIMIT_S
        test = str(ds["test"].values[i]) if "test" in ds.coords else ""
        if not _MEASURES.search(command) or not took >= AT_LIMIT * limit:
            continue
        if np.isfinite(ds["perf_converged_s"].values[i]):
            continue  # it converged in its last moments
        line = facts.line(source, "perf-bench-numa", 1, test) if test else 0
        evidence = [
            Evidence(f"shortest run time of a thread, {test}", took, "s", source, line),
            Evidence(f"limit ({'-s' if match else 'default of -s'})", limit, "s", source, line),
        ]
        says = f"{test or 'The test'} ran into its limit of {limit:g} s without converging."
        yield finding("no-convergence", says, evidence, "high", test)


def _autonuma(facts: Facts, reading: Reading) -> Iterator[Finding]:
    """Find tests slower than with all memory on the wrong node, in every iteration."""
    table, source = reading.table("seconds"), reading.source
    times = {str(row[0]): [t for cell in row[1:] if (t := number(cell)) is not None] for row in table.rows}
    for program, own in times.items():
        worst = times.get(f"{program}_INVERSE_BIND", [])
        if not own or len(own) != len(worst) or not all(a > b for a, b in zip(own, worst, strict=True)):
            continue
        best = times.get(f"{program}_HARD_BIND", [])
        every = {program: own, f"{program}_INVERSE_BIND": worst, f"{program}_HARD_BIND": best}
        evidence = [
            Evidence(
                f"mean of {name}", float(np.mean(ts)), "s", source, facts.line(source, reading.format, table.line, name)
            )
            for name, ts in every.items()
            if ts
        ]
        says = f"{program} is slower than with all memory bound to the wrong nodes, in each of {len(own)} iterations."
        sure: Confidence = "high" if len(own) > 1 else "low"
        yield finding("no-convergence", says, evidence, sure, program)


def _away(source: str, ds: xr.Dataset) -> Iterator[Finding]:
    """Find tasks that stay away from their preferred node."""
    axis = time_axis(ds["preferred_nid"])
    if ds["task_node"].dims != ds["preferred_nid"].dims or ds.sizes[axis] < 2:
        return
    times = ds[axis].values
    late = np.flatnonzero(times <= times[-1] - AWAY_S)
    if not late.size:
        return
    begin = times[late[-1]]
    node, preferred, faults = (_since(ds[name], begin) for name in ("task_node", "preferred_nid", "total_numa_faults"))
    lost = ((node >= 0) & (preferred >= 0) & (node != preferred)).all(axis=1) & (faults >= AWAY_FAULTS).all(axis=1)
    away = np.argwhere(lost).tolist()
    evidence = [Evidence("time away at least", float(times[-1] - begin), "s", source)]
    for run, task in away[:3]:
        of = f"task {ds['task'].values[task]}" + (f" of run {run}" if ds.sizes["run"] > 1 else "")
        evidence += [
            Evidence(f"node of {of}", float(node[run, -1, task]), "1", source),
            Evidence(f"preferred node of {of}", float(preferred[run, -1, task]), "1", source),
            Evidence(f"faults of {of} (decayed)", float(faults[run, -1, task]), "1", source),
        ]
    if away:
        says = f"{len(away)} of {lost.size} tasks are away from their preferred node: {times[-1] - begin:.3g} s."
        yield finding("no-convergence", says, evidence, "medium")


def _since(array: xr.DataArray, begin: float) -> NDArray[np.int64]:
    """Return the samples from a time on, and the one that held at that time: (run, time, task)."""
    axis = time_axis(array)
    first = max(int(np.searchsorted(array[axis].values, begin, side="right")) - 1, 0)
    return array.isel({axis: slice(first, None)}).transpose("run", axis, "task").values.astype(np.int64)


# ---------------------------------------------------------------- moves


def _events(ds: xr.Dataset, run: int) -> dict[str, list[float]]:
    """Return the columns of a run's task events that are in use."""
    used = int(ds[TABLES["event"]].values[run])
    names = ("time_s", "kind", "task", "src_node", "dst_node", "partner")
    return {name: ds[f"event_{name}"].values[run, :used].tolist() for name in names}


def _undone(source: str, ds: xr.Dataset) -> Iterator[Finding]:
    """Count NUMA moves that the load balancer takes back to another node within one scan period."""
    period = float(ds["scan_period_ms"].median()) / 1000 if "scan_period_ms" in ds.data_vars else SCAN_PERIOD_S
    counts, moves = [], []
    for run in range(ds.sizes["run"]):
        homes: dict[float, tuple[float, float]] = {}
        undone = moved = 0
        events = _events(ds, run)
        order = np.argsort(events["time_s"], kind="stable")
        for i in order:
            time, kind, task = events["time_s"][i], events["kind"][i], events["task"][i]
            if kind in (_MOVE, _SWAP):
                moved += 1
                homes[task] = time, events["dst_node"][i]
                if kind == _SWAP:
                    homes[events["partner"][i]] = time, events["src_node"][i]
            elif kind == _BALANCER and task in homes:
                since, home = homes.pop(task)
                away = events["dst_node"][i] != home and events["src_node"][i] == home
                undone += away and time - since <= period
        counts.append(undone)
        moves.append(moved)
    if counts and np.mean(counts) >= UNDONE:
        evidence = [
            Evidence("NUMA moves undone by the load balancer, each run", float(np.mean(counts)), "1", source),
            Evidence("NUMA moves and swaps, each run", float(np.mean(moves)), "1", source),
            Evidence("within", period, "s", source),
        ]
        says = f"The load balancer takes {np.mean(counts):.3g} NUMA moves back within a scan period."
        yield finding("balancers-disagree", says, evidence, "high")


def _marginal(source: str, ds: xr.Dataset) -> Iterator[Finding]:
    gains: list[float] = []
    for run in range(ds.sizes["run"]):
        kinds = _events(ds, run)["kind"]
        every = ds["event_gain"].values[run, : len(kinds)].tolist()
        gains += [gain for gain, kind in zip(every, kinds, strict=True) if kind in (_MOVE, _SWAP)]
    small = sum(gain < SMALL_GAIN for gain in gains)
    if len(gains) < FEWEST_MOVES or small < MARGINAL * len(gains):
        return
    evidence = [
        Evidence("moves and swaps", len(gains), "1", source),
        Evidence(f"with a gain below {SMALL_GAIN / 10:g} %", small, "1", source),
        Evidence("median gain", float(np.median(gains)), "1/1000", source),
    ]
    says = f"{small} of {len(gains)} moves of tasks promised less than {SMALL_GAIN / 10:g} %."
    yield finding("marginal-moves", says, evidence, "high")


# ---------------------------------------------------------------- waiting for shared pages


def _cow(facts: Facts) -> Iterator[Finding]:
    """Find waiting, a low local share and widely shared private areas, all three."""
    poor = [side for side in facts.sides if side.faults >= FEWEST_FAULTS and (side.share or 0.0) < WAITING_SHARE]
    poor = [side for side in poor if side.share is not None]
    shared, waits = list(_widely_mapped(facts)), [*_iowait(facts), *_slept(facts)]
    if not poor or not waits or not (shared or any(direct for _, direct in waits)):
        return
    side = poor[0]
    evidence = side.evidence("numa_hint_faults", "numa_hint_faults_local")
    evidence.append(side.derived("local share", side.share or 0.0))
    evidence += [one for one, _ in waits] + shared[:3]
    sure: Confidence = "high" if shared and any(direct for _, direct in waits) else "medium"
    says = "Tasks wait while few faults are local: for pages that many share and each of them moves."
    check = ("cat /proc/PID/stack of tasks in state D: migration_entry_wait? vmstat 1: any block I/O?",)
    yield finding("shared-cow-waiting", says, evidence, sure, side.name, check)


def _widely_mapped(facts: Facts) -> Iterator[Evidence]:
    """Give private writable areas of files (they have anonymous pages) that many processes map."""
    for reading, table in facts.named("numa_maps", "mappings"):
        if not {"mapmax", "anon", "name"} <= set(table.columns):
            continue
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            mapmax, name = number(cells["mapmax"]) or 0, str(cells["name"] or "")
            if mapmax >= MAPPED_BY and number(cells["anon"]) and name.startswith("/"):
                line = facts.line(reading.source, reading.format, table.line, str(cells["start"]))
                yield Evidence(f"processes that map {name} (mapmax)", mapmax, "1", reading.source, line)


def _iowait(facts: Facts) -> Iterator[tuple[Evidence, bool]]:
    for reading, table in facts.named("mpstat"):
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            waiting = number(cells.get("%iowait"))
            if cells["node"] == "all" and waiting is not None and waiting >= 100 * WAITING:
                line = facts.line(reading.source, reading.format, table.line, "all")
                yield Evidence("%iowait of all CPUs", waiting, "percent", reading.source, line), False
                return


def _slept(facts: Facts) -> Iterator[tuple[Evidence, bool]]:
    """Give the share of time that a run's tasks slept on pages under migration."""
    for source, ds in facts.datasets:
        if not {"task_wait_ms", "task_run_ms", "migration_waits"} <= set(ds.data_vars):
            continue
        waited, ran = (float(growth(ds[name]).sum()) for name in ("task_wait_ms", "task_run_ms"))
        waits = float(growth(ds["migration_waits"]).sum())
        if waits and waited >= WAITING * (waited + ran):
            yield Evidence("share of time asleep on pages under migration", waited / (waited + ran), "1", source), True
