"""perf's records as a run in numalab's schema, and back as perf's text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from numalab import runs
from numalab.readers._perf_types import RESULTS, PerfBenchError, Progress, Report
from numalab.schema import CONVERGED, DECONVERGED, NO_FLAG

_FLAGS = {None: NO_FLAG, "converged": CONVERGED, "de-converged": DECONVERGED}
_FLAG_TEXT = {value: key for key, value in _FLAGS.items()}
#: Fields of `Setup`; the variable is perf_<field>. -1 means "not stated", but a loop limit of
#: -1 is how perf prints "none".
_SETUP = {"tasks": -1, "nodes": -1, "cpus": -1, "global_mb": -1, "process_mb": -1, "thread_mb": -1, "loops": -2}


def skew(record: Progress) -> float:
    """Compute how far the slowest thread lags, percent of the fastest; 0 before both ended a second loop."""
    return 100 * (1 - record.loops_min / record.loops_max) if record.loops_min and record.loops_max else 0.0


def observe(
    seconds: float,
    task_node: ArrayLike,
    task_process: ArrayLike,
    loops: ArrayLike,
    *,
    nodes: Sequence[int],
    converged_before: bool,
    percent: float = 0.0,
) -> Progress:
    """Make the record perf would print at one moment.

    Parameters
    ----------
    seconds : float
        Run time of the reporting thread.
    task_node : array of int (task)
        Node of each thread at the end of its last loop; -1 before its first loop ended.
    task_process : array of int (task)
        Process of each thread.
    loops : array of int (task)
        Number of the last loop each thread ended, from 0.
    nodes : sequence of int
        Labels of the nodes.
    converged_before : bool
        State after the record before; perf prints changes only.
    percent : float
        Share of the loops done; 0 without a loop limit.

    Returns
    -------
    Progress
        Not rounded; `format_record` prints it.
    """
    node, process, done = np.asarray(task_node), np.asarray(task_process), np.asarray(loops)
    threads = tuple(int((node == label).sum()) for label in nodes)
    processes = tuple(len(np.unique(process[node == label])) for label in nodes)
    # A process with a thread that has not reported counts as spread over no node.
    spread = [0 if (own < 0).any() else len(np.unique(own)) for own in (node[process == p] for p in np.unique(process))]
    # perf also asks for as many process-node pairs as processes; in one snapshot that is the same.
    converged = set(spread) == {1}
    flag = None
    if converged != converged_before:
        flag = "converged" if converged else "de-converged"
    started = done[node >= 0]
    return Progress(
        percent=percent,
        minutes=seconds / 60,
        threads=threads,
        processes=processes,
        distance=max(threads) - min(threads),
        groups=sum(processes),
        loops_min=int(started.min()) if started.size else -1,
        loops_max=int(started.max()) if started.size else 0,
        nodes_min=None if converged else min(spread),
        nodes_max=None if converged else max(spread),
        flag=flag,
        flag_s=seconds if flag else None,
    )


def tabulate(records: Sequence[Sequence[Progress]]) -> dict[str, NDArray[Any]]:
    """Turn records into the variables ``perf_...`` of the schema.

    Parameters
    ----------
    records : sequence of sequences of Progress
        For each run its records in order, all with the same number of nodes.

    Returns
    -------
    dict
        Padded arrays for `numalab.runs.build`, ``perf_record_count`` among them.
    """
    nodes = {len(record.threads) for run in records for record in run} or {0}
    if len(nodes) > 1:
        raise PerfBenchError(
            f"records with {sorted(nodes)} nodes do not belong in one dataset; read one test at a time"
        )
    width = nodes.pop()
    return runs.padded("progress", [_columns(run, width) for run in records])


def _columns(records: Sequence[Progress], width: int) -> dict[str, ArrayLike]:
    def column(values: list[float] | list[int], dtype: str) -> NDArray[Any]:
        return np.array(values, dtype=dtype)

    return {
        # to 1e-6 s, so that 0.3 minutes are 18 s
        "perf_time_s": column([round(r.minutes * 60, 6) for r in records], "float64"),
        "perf_percent": column([r.percent for r in records], "float64"),
        "perf_threads": np.array([r.threads for r in records], dtype="int32").reshape(len(records), width),
        "perf_processes": np.array([r.processes for r in records], dtype="int32").reshape(len(records), width),
        "perf_distance": column([r.distance for r in records], "int32"),
        "perf_groups": column([r.groups for r in records], "int32"),
        "perf_loops_min": column([r.loops_min for r in records], "int64"),
        "perf_loops_max": column([r.loops_max for r in records], "int64"),
        "perf_nodes_min": column([-1 if r.nodes_min is None else r.nodes_min for r in records], "int32"),
        "perf_nodes_max": column([-1 if r.nodes_max is None else r.nodes_max for r in records], "int32"),
        "perf_flag": column([_FLAGS[r.flag] for r in records], "int32"),
        "perf_flag_s": column([np.nan if r.flag_s is None else r.flag_s for r in records], "float64"),
    }


def to_dataset(report: Report, test: str | None = None, *, nodes: Sequence[int] | None = None) -> xr.Dataset:
    """Make a run of what a text held: one entry along ``run`` for each test.

    Parameters
    ----------
    report : Report
    test : str, optional
        Name of the test to take; default: all.
    nodes : sequence of int, optional
        Labels of the nodes, which perf does not print; default 0, 1, 2, ...

    Returns
    -------
    xarray.Dataset
        Parameters along ``run``: test, command (perf's arguments, "" when unknown),
        nr_proc and nr_threads (-1 when unknown). Records lie on ``progress``, not on a
        time axis: perf prints time in tenths of a minute, several records may share one, and each
        test has its own.

    Raises
    ------
    PerfBenchError
        When tests with different numbers of nodes are to go together.
    """
    tests = [one for one in report.tests if test is None or one.name == test]
    if not tests:
        report.test(str(test))  # raises, listing the names
    variables: dict[str, Any] = {
        "perf_converged_s": [np.nan if one.converged_s is None else one.converged_s for one in tests],
        **{f"perf_{key}": [_or(getattr(one.setup, key), none) for one in tests] for key, none in _SETUP.items()},
    }
    for name, (_, _, variable) in RESULTS.items():
        if any(one.value(name) is not None for one in tests):
            variables[variable] = [_or(one.value(name), np.nan) for one in tests]
    coords: dict[str, Any] = {
        "test": ("run", [one.name for one in tests]),
        "command": ("run", [one.options.args if one.options else "" for one in tests]),
        "nr_proc": ("run", [one.options.processes if one.options else -1 for one in tests]),
        "nr_threads": ("run", [one.options.threads if one.options else -1 for one in tests]),
    }
    if any(one.progress for one in tests):
        variables |= tabulate([one.progress for one in tests])
        width = variables["perf_threads"].shape[2]
        coords["node"] = list(range(width)) if nodes is None else list(nodes)
        if len(coords["node"]) != width:
            raise PerfBenchError(f"nodes: expected {width} labels, got {len(coords['node'])}")
    return runs.build(
        variables,
        coords,
        title="perf bench numa mem: " + ", ".join(dict.fromkeys(one.name for one in tests)),
        source="measured",
        params={
            "reader": "perf_bench",
            "file": report.source,
            "skipped_lines": len(report.skipped),
            "convergence": [f"{one.name}: {one.conclusion or 'not told'}" for one in tests],
        },
    )


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


# ---------------------------------------------------------------- writing


def format_record(record: Progress) -> str:
    """Print one record as perf does, without the carriage return before and the line end after it."""
    pairs = "".join(f" {t:2d}/{p:<2d}" for t, p in zip(record.threads, record.processes, strict=True))
    text = f" #  {record.percent:5.1f}%  [{record.minutes:.1f} mins]{pairs} [{record.distance:2d}/{record.groups:<2d}]"
    text += f" l:{record.loops_min:3d}-{record.loops_max:<3d} ({record.loops_max - record.loops_min:3d})"
    if record.loops_min and record.loops_max:
        text += f" [{skew(record):4.1f}%]"
    if record.nodes_min is not None:
        text += f" {{{record.nodes_min}-{record.nodes_max}}}"
    if record.flag is not None:
        text += f" ({record.flag_s:6.1f}s {record.flag})"
    return text


def format_progress(ds: xr.Dataset, *, carriage_returns: bool = False) -> str:
    """Print runs in the format of ``perf bench numa mem``, one test per run.

    Parameters
    ----------
    ds : xarray.Dataset
        With the ``perf_...`` variables, simulated or read; what is missing is not printed.
    carriage_returns : bool
        As perf to the byte: each record begins with a carriage return, and while a run stays
        converged no line end follows. Default: one record per line.

    Returns
    -------
    str
        `numalab.readers.perf_bench.parse` reads it back into the same variables, rounded as
        perf rounds.
    """
    blocks = []
    for run in range(ds.sizes["run"]):
        one = ds.isel(run=run)
        name = str(one["test"].item()) if "test" in one.coords else "main"
        command = str(one["command"].item()) if "command" in one.coords else ""
        blocks.append(f'\n # Running {name}, "perf bench numa mem{" " if command else ""}{command}"\n')
        blocks.append(_format_setup(one))
        blocks.append(_format_records(ds, run, carriage_returns))
        blocks.append(_format_results(one, name))
    return "".join(blocks)


def _format_setup(one: xr.Dataset) -> str:
    have = {key: int(one[f"perf_{key}"]) for key, none in _SETUP.items() if int(one.get(f"perf_{key}", none)) != none}
    lines = []
    if {"tasks", "nodes", "cpus"} <= set(have):
        word = "task" if have["tasks"] == 1 else "tasks"
        lines.append(f" # {have['tasks']} {word} will execute (on {have['nodes']} nodes, {have['cpus']} CPUs):\n")
    for kind in ("global  shared", "process shared", "thread  local "):
        size = have.get(f"{kind.split()[0]}_mb")
        if size is not None and "loops" in have:
            lines.append(f" #      {have['loops']:5d}x {size:5d}MB {kind} mem operations\n")
    return "".join(["\n ###\n", *lines, " ###\n"]) if lines else ""


def _format_records(ds: xr.Dataset, run: int, carriage_returns: bool) -> str:
    if "perf_record_count" not in ds:
        return ""
    text, converged = "\n ###\n #\n", False
    for record in _records(ds, run):
        converged = record.flag == "converged" or (converged and record.flag is None)
        # perf ends the line at each record but those in which a run merely stays converged
        end = "" if carriage_returns and converged and record.flag is None else "\n"
        text += ("\r" if carriage_returns else "") + format_record(record) + end
    return text + "\n ###\n"


def _records(ds: xr.Dataset, run: int) -> list[Progress]:
    table = ds.numa.table("progress", run)

    def known(name: str, row: int) -> int | None:
        value = int(table[name].values[row])
        return None if value < 0 else value

    return [
        Progress(
            percent=float(table.perf_percent.values[row]),
            minutes=float(table.perf_time_s.values[row]) / 60,
            threads=tuple(table.perf_threads.values[row].tolist()),
            processes=tuple(table.perf_processes.values[row].tolist()),
            distance=int(table.perf_distance.values[row]),
            groups=int(table.perf_groups.values[row]),
            loops_min=int(table.perf_loops_min.values[row]),
            loops_max=int(table.perf_loops_max.values[row]),
            nodes_min=known("perf_nodes_min", row),
            nodes_max=known("perf_nodes_max", row),
            flag=_FLAG_TEXT[int(table.perf_flag.values[row])],
            flag_s=float(table.perf_flag_s.values[row]) if table.perf_flag.values[row] != NO_FLAG else None,
        )
        for row in range(table.sizes["progress"])
    ]


def _format_results(one: xr.Dataset, name: str) -> str:
    rows = []
    for short, (unit, _, variable) in RESULTS.items():
        value = float(one.get(variable, np.nan))
        if not np.isnan(value):
            rows.append(f" {name + ',':<30} {value:15.3f}, {unit + ',':<15} {short}\n")
    return "".join(["\n", *rows]) if rows else ""
