"""Names, dimensions, types and units of everything a run may hold: one table.

A simulated run and a measured one use the same names, so every plot, table and
diagnosis works on both. `validate` checks them; `numalab.runs` builds, saves and opens them.

Dimensions
----------
run, node, node2, task, process, region, cpu, kind
    Plain dimensions. ``node``, ``task``, ``process`` and ``cpu`` carry the ids the
    kernel uses as labels, which may have gaps.
time
    Seconds. What is recorded how often is chosen per variable: a variable may sit
    on ``time`` or on any ``time_<group>``, each with its own coordinate.
event, progress
    Rows of a table whose length differs between runs. Each run uses its first
    ``event_count`` (``perf_record_count``) rows; the rest is padding, -1 in
    integers and NaN in floats. A run's records need no time axis in common.
cgroup_memory
    Kinds of memory of a cgroup, as the kernel names them.
counter, node_counter
    Names of counters that only some kernels or tools have.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

SOURCES = ("simulated", "measured")

#: Raised by one when names, dimensions, types or meaning change.
VERSION = 1

#: Dimension of a padded table -> variable with the number of rows in use.
TABLES = {"event": "event_count", "progress": "perf_record_count"}

#: Values of ``event_kind``.
MOVE, SWAP, BALANCER_MOVE, FAILED = 0, 1, 2, 3

#: Values of ``perf_flag``.
NO_FLAG, CONVERGED, DECONVERGED = 0, 1, 2

#: Values of ``status``.
TO_DO, DONE, FAILED_RUN = 0, 1, 2

#: Letters of ``task_state``, as /proc/PID/stat prints them: runs, sleeps, waits for a page, disk or lock,
#: stopped, zombie, idle kernel thread.
TASK_STATES = "RSDTZI"
SLEEPING = 1

#: Labels of the dimension ``kind``, in the order of the kernel's fault array.
FAULT_KINDS = ("shared", "private")


class SchemaError(ValueError):
    """A dataset is not a run in numalab's sense; the message names what is wrong."""


@dataclass(frozen=True)
class Variable:
    """What one variable or coordinate looks like.

    Attributes
    ----------
    dims : tuple of str
        Dimensions in order; ``time`` stands for ``time`` or any ``time_<group>``.
    dtype : str
        numpy type, exact; ``str`` for text.
    units : str
        Plain text; "1" when dimensionless.
    long_name : str
        One line for axes and tables.
    cumulative : bool
        Counts up from the start of the run, or from boot, and never falls along time.
    codes : tuple of str
        Meanings of the values 0, 1, 2, ...
    """

    dims: tuple[str, ...]
    dtype: str
    units: str
    long_name: str
    cumulative: bool = False
    codes: tuple[str, ...] = ()


def _counter(units: str, long_name: str) -> Variable:
    return Variable(("run", "time"), "int64", units, long_name, cumulative=True)


def _task(dtype: str, units: str, long_name: str, cumulative: bool = False) -> Variable:
    return Variable(("run", "time", "task"), dtype, units, long_name, cumulative)


def _event(dtype: str, units: str, long_name: str, codes: tuple[str, ...] = ()) -> Variable:
    return Variable(("run", "event"), dtype, units, long_name, codes=codes)


def _record(dtype: str, units: str, long_name: str, codes: tuple[str, ...] = ()) -> Variable:
    return Variable(("run", "progress"), dtype, units, long_name, codes=codes)


def _per_run(dtype: str, units: str, long_name: str) -> Variable:
    return Variable(("run",), dtype, units, long_name)


#: Coordinates. Further ones along ``run`` (parameters that vary) may have any name.
COORDS: dict[str, Variable] = {
    "run": _per_run("int64", "1", "run number"),
    "seed": _per_run("int64", "1", "seed of the random generator"),
    "kernel": _per_run("str", "1", "kernel release or name of the variant"),
    "time": Variable(("time",), "float64", "s", "time since the start of the run"),
    "node": Variable(("node",), "int64", "1", "NUMA node id"),
    "node2": Variable(("node2",), "int64", "1", "NUMA node id (second axis)"),
    "distance": Variable(("node", "node2"), "int64", "1", "SLIT distance, 10 = local"),
    "cpu": Variable(("cpu",), "int64", "1", "CPU number"),
    "cpu_node": Variable(("cpu",), "int64", "1", "node of the CPU"),
    "task": Variable(("task",), "int64", "1", "task id"),
    "task_process": Variable(("task",), "int64", "1", "process the task belongs to"),
    "task_name": Variable(("task",), "str", "1", "name of the task"),
    "process": Variable(("process",), "int64", "1", "process id"),
    "process_name": Variable(("process",), "str", "1", "name of the process"),
    "process_small_below": Variable(
        ("process",), "int64", "1", "small mappings with written pages below the largest (-1: unknown)"
    ),
    "process_small_above": Variable(
        ("process",), "int64", "1", "small mappings with written pages above the largest (-1: unknown)"
    ),
    "region": Variable(("region",), "str", "1", "memory region"),
    "region_process": Variable(("region",), "int64", "1", "process the region belongs to (-1: several)"),
    "region_policy": Variable(("region",), "str", "1", "memory policy of the region, as numa_maps prints it last"),
    "region_sharers": Variable(("region",), "int64", "1", "most processes that map a page of the region"),
    "cgroup_memory": Variable(("cgroup_memory",), "str", "1", "kind of memory of a cgroup"),
    "kind": Variable(("kind",), "str", "1", "kind of hint fault: shared or private"),
    "counter": Variable(("counter",), "str", "1", "name of a counter"),
    "node_counter": Variable(("node_counter",), "str", "1", "name of a counter per node"),
}

#: Data variables.
VARIABLES: dict[str, Variable] = {
    # /proc/vmstat counters
    "numa_pte_updates": _counter("pages", "pages trapped by the scanner (512 per huge page)"),
    "numa_huge_pte_updates": _counter("1", "huge pages trapped by the scanner"),
    "numa_hint_faults": _counter("1", "NUMA hint faults (a huge page counts once)"),
    "numa_hint_faults_local": _counter("1", "NUMA hint faults on the node of the page"),
    "numa_pages_migrated": _counter("pages", "pages migrated by hint faults (512 per huge page)"),
    "pgmigrate_success": _counter("pages", "pages migrated for any reason"),
    "pgmigrate_fail": _counter(
        "pages", "page migrations that were tried and failed (the model has none: those that fail are refused)"
    ),
    "migrate_refused": _counter("pages", "page migrations refused before they were tried"),
    "minor_faults": _counter("1", "minor page faults, hint faults included"),
    "migration_waits": _counter("1", "times a task slept for a page under migration, of those longer than a step"),
    "preferred_changes": _counter("1", "changes of tasks' preferred nodes by placement, the first choice included"),
    "counters": Variable(
        ("run", "time", "counter"), "int64", "1", "further counters, under the kernel's or tool's names", True
    ),
    "node_counters": Variable(
        ("run", "time", "node", "node_counter"), "int64", "pages", "allocation counters of the node (numastat)", True
    ),
    # memory
    "pages": Variable(("run", "time", "region", "node"), "int64", "pages", "pages of the region on the node"),
    "free_pages": Variable(("run", "time", "node"), "int64", "pages", "free pages on the node"),
    "total_pages": Variable(("run", "time", "node"), "int64", "pages", "pages of memory that the node has"),
    "cgroup_pages": Variable(
        ("run", "time", "cgroup_memory", "node"), "int64", "pages", "pages of the cgroup on the node, by kind of memory"
    ),
    # tasks
    "task_node": _task("int32", "1", "node the task runs on (-1: not started, ended or unknown)"),
    "task_cpu": _task("int32", "1", "CPU the task runs on (-1: not started, ended or unknown)"),
    "task_state": Variable(
        ("run", "time", "task"),
        "int32",
        "1",
        "state of the task (-1: not started, ended or unknown)",
        codes=("running", "sleeping", "waiting", "stopped", "zombie", "idle"),
    ),
    "task_cpus_allowed": Variable(
        ("run", "time", "task", "node"), "int32", "1", "CPUs of the node that the task may use (-1: unknown)"
    ),
    "threads": Variable(("run", "time", "process", "node"), "int32", "1", "threads of the process on CPUs of the node"),
    "preferred_nid": _task("int32", "1", "preferred node of the task (-1: none)"),
    "scan_period_ms": _task("int32", "ms", "NUMA scan period of the task"),
    "numa_group_id": _task("int32", "1", "NUMA group of the task (0: none)"),
    "total_numa_faults": _task("int64", "1", "decayed sum of the task's NUMA faults"),
    "task_run_ms": _task("float64", "ms", "time on a CPU", cumulative=True),
    "task_sys_ms": _task("float64", "ms", "time in the kernel for NUMA balancing", cumulative=True),
    "task_wait_ms": _task("float64", "ms", "time asleep on pages under migration or on locks", cumulative=True),
    "task_work_pages": _task("float64", "pages", "useful work: pages visited", cumulative=True),
    "task_end_s": _task("float64", "s", "when the task ended (NaN: not yet)"),
    "faults": Variable(
        ("run", "time", "task", "node", "kind"), "int64", "1", "decayed NUMA faults of the task by node of the memory"
    ),
    "group_faults": Variable(
        ("run", "time", "task", "node", "kind"), "int64", "1", "decayed NUMA faults of the task's group by node"
    ),
    "scan_seq": Variable(
        ("run", "time", "process"), "int32", "1", "completed scans of the address space; forking may set it back to 0"
    ),
    # moves and swaps of tasks
    "event_count": _per_run("int64", "1", "rows in use in the table of task events"),
    "event_time_s": _event("float64", "s", "time of the event"),
    "event_kind": _event("int32", "1", "what happened", ("move", "swap", "balancer_move", "failed")),
    "event_task": _event("int64", "1", "task that moves"),
    "event_src_cpu": _event("int32", "1", "CPU it leaves"),
    "event_src_node": _event("int32", "1", "node it leaves"),
    "event_dst_cpu": _event("int32", "1", "CPU it goes to (-1: none found)"),
    "event_dst_node": _event("int32", "1", "node it goes to (-1: none found)"),
    "event_partner": _event("int64", "1", "task it is swapped with (-1: none)"),
    "event_gain": _event("int32", "1/1000", "improvement the kernel computed, of 1000"),
    # progress lines of perf bench numa mem, one row per record
    "perf_record_count": _per_run("int64", "1", "progress records of perf bench numa"),
    "perf_time_s": _record("float64", "s", "time of the record (perf prints tenths of a minute)"),
    "perf_percent": _record("float64", "percent", "share of the loops done"),
    "perf_threads": Variable(("run", "progress", "node"), "int32", "1", "threads last seen on the node"),
    "perf_processes": Variable(("run", "progress", "node"), "int32", "1", "processes with threads on the node"),
    "perf_distance": _record("int32", "1", "most minus fewest threads on a node"),
    "perf_groups": _record("int32", "1", "process-node pairs; equals the processes when converged"),
    "perf_loops_min": _record("int64", "1", "loops done by the slowest thread"),
    "perf_loops_max": _record("int64", "1", "loops done by the fastest thread"),
    "perf_nodes_min": _record("int32", "1", "fewest nodes a process is spread over (-1: not printed)"),
    "perf_nodes_max": _record("int32", "1", "most nodes a process is spread over (-1: not printed)"),
    "perf_flag": _record("int32", "1", "change of state reported", ("none", "converged", "de_converged")),
    "perf_flag_s": _record("float64", "s", "time printed with the change of state (NaN: no change)"),
    # set-up and results of perf bench numa mem
    "perf_converged_s": _per_run("float64", "s", "convergence time as perf reports it (NaN: not, or unknown)"),
    "perf_tasks": _per_run("int32", "1", "threads of the test (-1: not stated)"),
    "perf_nodes": _per_run("int32", "1", "nodes of the machine (-1: not stated)"),
    "perf_cpus": _per_run("int32", "1", "CPUs of the machine (-1: not stated)"),
    "perf_global_mb": _per_run("int64", "MiB", "memory shared by all (-1: not stated)"),
    "perf_process_mb": _per_run("int64", "MiB", "memory shared in each process (-1: not stated)"),
    "perf_thread_mb": _per_run("int64", "MiB", "memory of each thread (-1: not stated)"),
    "perf_loops": _per_run("int64", "1", "loops asked for, as printed: -1 unlimited (-2: not stated)"),
    "perf_latency_s": _per_run("float64", "s", "run time printed as convergence latency, converged or not"),
    "perf_runtime_max_s": _per_run("float64", "s", "run time of the slowest thread"),
    "perf_runtime_min_s": _per_run("float64", "s", "run time of the fastest thread"),
    "perf_runtime_avg_s": _per_run("float64", "s", "mean run time of the threads"),
    "perf_spread_percent": _per_run("float64", "percent", "half the range of run times over the longest"),
    "perf_thread_gb": _per_run("float64", "GB", "data processed per thread"),
    "perf_total_gb": _per_run("float64", "GB", "data processed in total"),
    "perf_ns_per_byte": _per_run("float64", "ns", "run time per byte and thread"),
    "perf_thread_gb_per_s": _per_run("float64", "GB/s", "speed of a thread"),
    "perf_total_gb_per_s": _per_run("float64", "GB/s", "speed of all threads"),
    # the lock of the shared policies: numalab.locks, perf lock, perf report (NaN: not known)
    "lock_throughput": _per_run("float64", "1/s", "look-ups of all tasks"),
    "lock_area_share": _per_run("float64", "1", "time in the look-up, waiting included, of all CPU time"),
    "lock_waiting_share": _per_run("float64", "1", "time waiting for the look-up's lock, of all CPU time"),
    "lock_mean_waiters": _per_run("float64", "1", "tasks waiting"),
    "lock_wait_s": _per_run("float64", "s", "mean waiting time of a look-up"),
    "lock_contended_share": _per_run("float64", "1", "look-ups that found the lock held, of all"),
    "lock_waits": _per_run("int64", "1", "look-ups that waited"),
    "lock_total_wait_s": _per_run("float64", "s", "waiting time of all look-ups"),
    # a run of a sweep in one number each (numalab.sweeps; NaN: not known)
    "status": Variable(("run",), "int32", "1", "whether the run is simulated", codes=("to_do", "done", "failed")),
    "failure": _per_run("str", "1", "why the run failed"),
    "converged_s": _per_run("float64", "s", "time from which every process has all its threads on one node"),
    "first_converged_s": _per_run("float64", "s", "first time at which every process had all its threads on one node"),
    "local_share": _per_run("float64", "1", "share of local hint faults"),
    "migrations_per_fault": _per_run("float64", "pages", "pages migrated per hint fault"),
    "system_s": _per_run("float64", "s", "time in the kernel for NUMA balancing, all tasks"),
    "waiting_s": _per_run("float64", "s", "time asleep on pages under migration or on locks, all tasks"),
    "work_pages": _per_run("float64", "pages", "useful work of all tasks: pages visited"),
    "task_moves": _per_run("float64", "1", "moves of tasks by NUMA balancing"),
    "task_swaps": _per_run("float64", "1", "swaps of tasks by NUMA balancing"),
    "balancer_moves": _per_run("float64", "1", "moves of tasks between nodes by the load balancer"),
}


def is_time(dim: str) -> bool:
    """Tell whether a dimension is a time axis: ``time`` or ``time_<group>``."""
    return dim == "time" or dim.startswith("time_")


def matches(dims: tuple[str, ...], spec: tuple[str, ...]) -> bool:
    """Tell whether dimensions are the declared ones, any time axis standing for ``time``."""
    return len(dims) == len(spec) and all(
        is_time(dim) if want == "time" else dim == want for dim, want in zip(dims, spec, strict=True)
    )


def declared_coord(name: str) -> Variable | None:
    """Look up a coordinate; None for a parameter that varies along ``run``."""
    if is_time(name):
        time = COORDS["time"]
        return Variable((name,), time.dtype, time.units, time.long_name)
    return COORDS.get(name)


def validate(ds: xr.Dataset) -> None:
    """Check that a dataset is a run.

    Raises
    ------
    SchemaError
        Lists every variable that is unknown or differs from its declaration in
        dimensions, type or units; counters that fall; axes that are not increasing;
        tables whose padding is not padding; missing or broken attributes.
    """
    problems: list[str] = []
    # a run of a sweep that is not done has no values
    done = ds["status"].values == DONE if "status" in ds else None
    for name, array in ds.data_vars.items():
        if name not in VARIABLES:
            problems.append(f"{name}: not a variable of a run; add it to numalab.schema.VARIABLES")
        else:
            problems += _check(str(name), array, VARIABLES[str(name)], done)
    for name, array in ds.coords.items():
        spec = declared_coord(str(name))
        if spec is not None:
            problems += _check(str(name), array, spec)
        elif array.dims != ("run",):
            problems.append(f"{name}: an extra coordinate must lie along run, got dims {array.dims}")
    if "run" not in ds.dims:
        problems.append("run: every run has this dimension, even when there is only one")
    for dim in ds.dims:
        problems += _check_axis(ds, str(dim))
    if not problems:
        problems += _check_labels(ds)
        problems += [line for dim in TABLES if dim in ds.dims for line in _check_table(ds, dim)]
    problems += _check_attrs(ds)
    if problems:
        raise SchemaError("not a numalab run: " + "\n  ".join(problems))


def _check(name: str, array: xr.DataArray, spec: Variable, done: NDArray[np.bool_] | None = None) -> list[str]:
    dims = tuple(str(dim) for dim in array.dims)
    if not matches(dims, spec.dims):
        return [f"{name}: expected dims {spec.dims}, got {dims}"]
    if spec.dtype == "str":
        return [] if array.dtype.kind in "UOT" else [f"{name}: expected text, got {array.dtype}"]
    if array.dtype != spec.dtype:
        return [f"{name}: expected {spec.dtype}, got {array.dtype}"]
    if array.attrs.get("units") != spec.units:
        return [f"{name}: expected units {spec.units!r}, got {array.attrs.get('units')!r}"]
    if spec.cumulative:
        values = array.values if done is None else array.values[done]
        if values.size and values.min() < 0:
            return [f"{name}: a counter is never negative, got {values.min()}"]
        axis = next(i for i, dim in enumerate(dims) if is_time(dim))
        if (np.diff(values, axis=axis) < 0).any():
            return [f"{name}: a counter never falls along {dims[axis]}; was it reset, or are the samples out of order?"]
    return []


def _check_axis(ds: xr.Dataset, dim: str) -> list[str]:
    if is_time(dim):
        if dim not in ds.coords:
            return [f"{dim}: a time axis needs its coordinate in seconds"]
        time = ds[dim].values
        if time.dtype.kind == "f" and not (np.isfinite(time).all() and (np.diff(time) > 0).all()):
            return [f"{dim}: expected strictly increasing finite seconds"]
    elif dim in {"node", "node2", "task", "process", "cpu", "region", "counter", "node_counter", "cgroup_memory"}:
        if dim not in ds.coords:
            return [f"{dim}: expected a coordinate with the labels"]
        if len(np.unique(ds[dim].values)) != ds.sizes[dim]:
            return [f"{dim}: labels are not unique"]
    elif dim == "kind":
        if list(ds[dim].values) != list(FAULT_KINDS):
            return [f"kind: expected {FAULT_KINDS}"]
    elif dim not in {"run", *TABLES}:
        return [f"{dim}: not a dimension of a run"]
    return []


#: Variables whose values are labels of an axis, -1 meaning none.
_LABELS = {
    "node": ("task_node", "preferred_nid", "event_src_node", "event_dst_node", "cpu_node"),
    "cpu": ("task_cpu", "event_src_cpu", "event_dst_cpu"),
    "task": ("event_task", "event_partner"),
    "process": ("task_process", "region_process"),
}


def _check_labels(ds: xr.Dataset) -> list[str]:
    problems = []
    for axis, names in _LABELS.items():
        for name in names:
            if axis in ds.coords and name in ds.variables:
                known = [-1, *ds[axis].values.tolist()]
                strange = np.setdiff1d(ds[name].values, known)
                if len(strange):
                    problems.append(f"{name}: {strange[0]} is not a label of {axis} ({known[1:]}) nor -1")
    return problems


def _check_table(ds: xr.Dataset, dim: str) -> list[str]:
    count = TABLES[dim]
    if count not in ds:
        return [f"{count}: missing, but the table {dim} needs it"]
    used = ds[count].values
    if ((used < 0) | (used > ds.sizes[dim])).any():
        return [f"{count}: expected 0 to {ds.sizes[dim]}, the length of {dim}"]
    padding = np.arange(ds.sizes[dim]) >= used[:, None]
    problems = []
    for name, array in ds.data_vars.items():
        if dim not in array.dims:
            continue
        values = array.values
        rest = values[padding]
        if not (np.isnan(rest) if values.dtype.kind == "f" else rest == -1).all():
            problems.append(f"{name}: rows beyond {count} must be padding (-1, NaN)")
        codes = VARIABLES[str(name)].codes
        if codes and not np.isin(values[~padding], np.arange(len(codes))).all():
            problems.append(f"{name}: expected 0 to {len(codes) - 1} ({', '.join(codes)})")
    return problems


def _check_attrs(ds: xr.Dataset) -> list[str]:
    problems = [f"attribute {key!r} is missing" for key in ("title", "Conventions", "history") if not ds.attrs.get(key)]
    if ds.attrs.get("source") not in SOURCES:
        problems.append(f"attribute 'source': expected one of {SOURCES}, got {ds.attrs.get('source')!r}")
    if ds.attrs.get("numalab_schema") != VERSION:
        got = ds.attrs.get("numalab_schema")
        problems.append(f"attribute 'numalab_schema': this numalab reads version {VERSION}, got {got!r}")
    try:
        provenance(ds)
    except SchemaError as error:
        problems.append(str(error))
    return problems


def provenance(ds: xr.Dataset) -> dict[str, Any]:
    """Read back what is needed to repeat a run.

    Returns
    -------
    dict
        As given to `build`, plus ``numalab`` (version) and ``revision``. For a concatenation
        of runs with different parameters: ``{"concatenated": [dict, ...]}``.

    Raises
    ------
    SchemaError
        When the attribute ``numalab_params`` is missing or is not a JSON object.
    """
    text = ds.attrs.get("numalab_params")
    if not isinstance(text, str):
        raise SchemaError("attribute 'numalab_params' is missing: the dataset does not say how it was made")
    try:
        params = json.loads(text)
    except json.JSONDecodeError as error:
        raise SchemaError(f"attribute 'numalab_params' is not JSON: {error}") from error
    if not isinstance(params, dict):
        raise SchemaError(f"attribute 'numalab_params': expected a JSON object, got {type(params).__name__}")
    return params
