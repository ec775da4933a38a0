"""Reads of a recording what a model needs: nodes, tasks, memory; and says what it does not tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from numalab import runs
from numalab.derived import time_axis
from numalab.twin._errors import TwinError
from numalab.twin._seen import WHOLE, Evidence, SeenMemory, SeenProcess, SeenTask, pages_of

#: A task that runs for less of its time does no work that balancing would see.
WORKING = 0.02
#: Times this far apart are of one look, s.
SAME_LOOK_S = 0.5
HOW = "record with `numalab record -o RUN.nc -- COMMAND` (or --pid P), as the user of the processes or as root"

_LABEL = re.compile(r" ([0-9a-f]{4,16})(?: (.*))?$")


def evidence(ds: xr.Dataset, name: str) -> Evidence:
    """Read a recording.

    Parameters
    ----------
    ds : xarray.Dataset
        One measured run.
    name : str
        For messages.

    Raises
    ------
    TwinError
        It does not hold enough; names all that is missing, and how to record it.
    """
    if ds.attrs.get("source") != "measured":
        raise TwinError(f"{name}: is a run of the model already; expected a recording (numalab record, numalab read)")
    if ds.sizes["run"] != 1:
        raise TwinError(f"{name}: holds {ds.sizes['run']} runs; expected one recording")
    lacking = _lacking(ds)
    if lacking:
        raise TwinError(f"{name}: too little for a twin: it has no {', no '.join(lacking)}; {HOW}")
    found = Evidence(
        name,
        ds["node"].values.tolist(),
        {n: int((ds["cpu_node"].values == n).sum()) for n in ds["node"].values.tolist()},
        ds["distance"].values if "distance" in ds.coords else None,
        str(runs.provenance(ds).get("release") or ds["kernel"].values[0]),
        float(ds[time_axis(ds["numa_pte_updates"])].values[-1]),
    )
    if found.seconds <= 0:
        raise TwinError(f"{name}: ends at {found.seconds:g} s; expected counters over some time; {HOW}")
    if sum(map(bool, found.cpus.values())) < 2:
        raise TwinError(f"{name}: the machine has one node with CPUs; balancing needs two")
    how = runs.provenance(ds)
    found.sysctl, found.toggles = how.get("sysctl") or {}, how.get("switches") or {}
    _add_processes(found, ds)
    _add_memory(found, ds, how.get("machine") or {})
    return found


def _lacking(ds: xr.Dataset) -> list[str]:
    lacking = [] if "cpu_node" in ds.coords else ["nodes with their CPUs (/sys/devices/system/node)"]
    counters = "numa_pte_updates" in ds and "numa_hint_faults" in ds
    if not counters:
        lacking.append("counters numa_pte_updates and numa_hint_faults (/proc/vmstat)")
    elif ds.sizes[time_axis(ds["numa_pte_updates"])] < 2:
        lacking.append("second look at the counters")
    if "task_node" not in ds or "task_process" not in ds.coords:
        lacking.append("places of tasks (/proc/PID/task/TID/stat)")
    if "pages" not in ds or "region_process" not in ds.coords:
        lacking.append("memory of processes by node (/proc/PID/numa_maps)")
    if "kernel" not in ds.coords:
        lacking.append("kernel release")
    return lacking


# ---------------------------------------------------------------- tasks


def _add_processes(found: Evidence, ds: xr.Dataset) -> None:
    tasks, idle = _tasks(found, ds)
    owner = dict(zip(ds["task"].values.tolist(), ds["task_process"].values.tolist(), strict=True))
    names = _process_names(ds)
    memory = {pid: _memory(ds, pid) for pid in sorted({owner[task.tid] for task in tasks})}
    without = [pid for pid, own in memory.items() if not own]
    for pid in memory.keys() - set(without):
        own = tuple(task for task in tasks if owner[task.tid] == pid)
        found.processes.append(
            SeenProcess(pid, names.get(pid, ""), own, memory[pid], _private_share(ds, own), _small(ds, pid))
        )
    found.processes.sort(key=lambda one: one.pid)
    if not found.processes:
        what = f"of the processes that work ({_listed(without, names)})" if without else "of any process that works"
        raise TwinError(f"{found.name}: has no memory by node {what}: nothing to migrate; {HOW}")
    if without:
        found.assumed.append(f"left out: {_listed(without, names)}, whose memory by node was not recorded")
    if idle:
        found.assumed.append(f"left out: {idle} task(s) that ran less than {WORKING:.0%} of their time")


def _listed(pids: list[int], names: Mapping[int, str]) -> str:
    shown = ", ".join(f"{names.get(pid, '')} {pid}".strip() for pid in pids[:4])
    return shown + (f" and {len(pids) - 4} more" if len(pids) > 4 else "")


def _process_names(ds: xr.Dataset) -> dict[int, str]:
    if "process_name" not in ds.coords:
        return {}
    return dict(zip(ds["process"].values.tolist(), map(str, ds["process_name"].values), strict=True))


def _tasks(found: Evidence, ds: xr.Dataset) -> tuple[list[SeenTask], int]:
    """Return the tasks that work, and how many do not."""
    place = ds["task_node"].isel(run=0)
    axis = time_axis(place)
    times, node = place[axis].values, place.transpose(axis, "task").values
    looks = ds[time_axis(ds["numa_pte_updates"])].values
    told = _cpu_times(found, ds)
    out, idle = [], 0
    for i, tid in enumerate(ds["task"].values.tolist()):
        seen = np.flatnonzero((node[:, i] >= 0) & (times >= 0))
        share, ran = told(i, float(times[seen[-1]])) if len(seen) else (0.0, float("nan"))
        if share < WORKING:
            idle += 1
            continue
        first, last = seen[0], seen[-1]
        # it began after the look before the first that showed it, and as long ago as it had run
        before = float(times[first - 1]) if first and times[first - 1] >= 0 else 0.0
        ago = ran / 1000 if ran == ran else 0.0
        out.append(
            SeenTask(
                tid,
                max(before, float(times[first]) - ago) if first else 0.0,
                float(min((look for look in looks if look > times[last] + SAME_LOOK_S), default=np.inf)),
                int(node[first, i]),
                min(1.0, share),
                ran,
                _allowed(ds, i),
            )
        )
    return out, idle


def _cpu_times(found: Evidence, ds: xr.Dataset) -> Callable[[int, float], tuple[float, float]]:
    """Return what tells of a task, by its position and the time of its last look: share, CPU time at the first, ms."""
    if "task_run_ms" in ds:
        ran = ds["task_run_ms"].isel(run=0)
        axis = time_axis(ran)
        times = ran[axis].values
        values = ran.transpose(axis, "task").values[times >= 0]
        times = times[times >= 0]

        def by_time(i: int, end: float) -> tuple[float, float]:
            # CPU time is 0 before a task's first look
            first = int(np.argmax(values[:, i] > 0))
            span = 1000 * (end - times[first])
            share = float((values[-1, i] - values[first, i]) / span) if span > 0 else 0.0
            return share, float(values[first, i])

        return by_time
    if "task_state" in ds:
        found.assumed.append("no CPU times of tasks (/proc/PID/sched): how often they were seen running is taken")
        state = ds["task_state"].isel(run=0)
        axis = time_axis(state)
        seen = state.transpose(axis, "task").values[state[axis].values >= 0]
        shares = (seen == 0).sum(axis=0) / np.maximum(1, (seen >= 0).sum(axis=0))
        return lambda i, _: (float(shares[i]), float("nan"))
    found.assumed.append("neither CPU times nor states of tasks: all are taken to run all the time")
    return lambda *_: (1.0, float("nan"))


def _allowed(ds: xr.Dataset, i: int) -> tuple[tuple[float, frozenset[int]], ...]:
    if "task_cpus_allowed" not in ds:
        return ()
    table = ds["task_cpus_allowed"].isel(run=0, task=i)
    axis = time_axis(table)
    nodes = table["node"].values
    out: list[tuple[float, frozenset[int]]] = []
    for time, row in zip(table[axis].values.tolist(), table.transpose(axis, "node").values, strict=True):
        if row.min() < 0:
            continue
        now = frozenset(nodes[row > 0].tolist())
        if not out or out[-1][1] != now:
            out.append((float(time), now))
    return tuple(out)


def _private_share(ds: xr.Dataset, tasks: tuple[SeenTask, ...]) -> float | None:
    if "faults" not in ds:
        return None
    own = ds["faults"].isel(run=0).sel(task=[task.tid for task in tasks])
    total = own.sum([dim for dim in own.dims if dim != "kind"])
    count = float(total.sum())
    return float(total.sel(kind="private")) / count if count > 0 else None


# ---------------------------------------------------------------- memory


def _small(ds: xr.Dataset, pid: int) -> tuple[int, int] | None:
    if "process_small_below" not in ds.coords:
        return None
    below, above = (int(ds[f"process_small_{side}"].sel(process=pid)) for side in ("below", "above"))
    return (below, above) if below >= 0 else None


def _memory(ds: xr.Dataset, pid: int) -> tuple[SeenMemory, ...]:
    table = ds["pages"].isel(run=0)
    axis = time_axis(table)
    table = table.transpose(axis, "region", "node")
    times, nodes = table[axis].values, table["node"].values.tolist()
    keep = times >= 0
    out = []
    for g in np.flatnonzero(ds["region_process"].values == pid).tolist():
        pages = table.values[keep, g]
        total = pages.sum(axis=1)
        if not total.max(initial=0):
            continue
        whole = int(np.argmax(total >= WHOLE * total.max()))
        scale = total.max() / total[whole]
        less = whole > 0 and total[whole - 1] > 0
        region = str(ds["region"].values[g])
        label = _LABEL.search(region)
        out.append(
            SeenMemory(
                region,
                int(label[1], 16) if label else 0,
                (label[2] or "") if label else "",
                {node: round(count * scale) for node, count in zip(nodes, pages[whole].tolist(), strict=True) if count},
                float(times[keep][whole]),
                float(times[keep][whole - 1]) if less else 0.0,
                str(ds["region_policy"].values[g]) if "region_policy" in ds.coords else "",
                int(ds["region_sharers"].values[g]) if "region_sharers" in ds.coords else 1,
            )
        )
    return tuple(sorted(out, key=lambda one: one.start))


def _add_memory(found: Evidence, ds: xr.Dataset, machine: Mapping[str, Any]) -> None:
    """Add memory and free pages of the nodes, as the run or its provenance tells them."""
    at = max((one.at_s for process in found.processes for one in process.memory), default=0.0)
    told = {key: {int(n): v for n, v in (machine.get(key) or {}).items()} for key in ("size_mb", "free_mb", "zones")}
    if "total_pages" in ds:
        found.total = _at(ds["total_pages"], 0.0)
    elif told["size_mb"]:
        found.total = {n: 256 * int(mb) for n, mb in told["size_mb"].items()}
    elif told["zones"]:
        found.total = {n: int(zone["managed"]) for n, zone in told["zones"].items()}
    if "free_pages" in ds:
        axis = time_axis(ds["free_pages"])
        first = float(ds[axis].values[0])
        found.free = _at(ds["free_pages"], at)
        if ds.sizes[axis] < 2 and at > first + SAME_LOOK_S:
            found.free = _less_own(found, found.free)
    elif told["free_mb"]:
        # told before the work began
        found.free = _less_own(found, {n: 256 * int(mb) for n, mb in told["free_mb"].items()})


def _at(array: xr.DataArray, at: float) -> dict[int, int]:
    axis = time_axis(array)
    index = max(0, int(np.searchsorted(array[axis].values, at + SAME_LOOK_S, side="right")) - 1)
    row = array.isel({"run": 0, axis: index})
    return {int(n): int(v) for n, v in zip(row["node"].values, row.values, strict=True)}


def _less_own(found: Evidence, free: Mapping[int, int]) -> dict[int, int]:
    own = pages_of(found.processes)
    return {node: max(0, count - own.get(node, 0)) for node, count in free.items()}
