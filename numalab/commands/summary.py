"""What a run is and what came out of it, as plain facts and as text."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import sides
from numalab.commands.output import columns, number, plural, word, wrap
from numalab.kernel import Kernel, KernelError, table
from numalab.model.params import DEFAULTS
from numalab.runs import provenance
from numalab.schema import VARIABLES, is_time

Facts = dict[str, Any]

#: Results by which groups of runs are compared: name, heading.
_HEADLINES = {
    "numa_hint_faults": "HINT FAULTS",
    "local_share": "LOCAL SHARE",
    "numa_pages_migrated": "PAGES MIGRATED",
    "migrations_per_fault": "MIGRATED/FAULT",
    "convergence_s": "CONVERGED",
    "perf_converged_s": "CONVERGED (PERF)",
    "perf_total_gb_per_s": "GB/S IN ALL",
}
_PER_CENT = {"local_share"}
#: Groups of runs beyond this number are compared in one table only, without a table for each.
_MOST_TABLES = 6


def summarise(ds: xr.Dataset) -> Facts:
    """Collect the facts of a run, simulated or measured.

    Parameters
    ----------
    ds : xarray.Dataset
        In the schema of `numalab.schema`.

    Returns
    -------
    dict
        JSON-ready: None where a value is undefined. ``results`` holds for each quantity the number of runs,
        in how many it is defined, and median, least and greatest among those. Where kernels, parameters or
        set-ups vary along ``run``, ``groups`` holds the same for each combination and ``results`` is empty:
        runs of different kernels have no common median.
    """
    how = provenance(ds)
    setups = [_setup(part) for part in parts(how)]
    ends = [float(ds[dim].values[-1]) for dim in map(str, ds.dims) if is_time(dim) and ds.sizes[dim]]
    recorded = max(ends, default=None)
    asked = setups[0]["seconds"] if len(setups) == 1 else None
    groups = _groups(ds)
    return {
        "title": ds.attrs["title"],
        "source": ds.attrs["source"],
        "history": ds.attrs["history"],
        "numalab": how.get("numalab"),
        "revision": how.get("revision"),
        "measured": None if setups else {key: how[key] for key in how if key not in ("numalab", "revision")},
        "setups": setups,
        "recorded_s": recorded,
        "interrupted": bool(recorded is not None and asked and recorded < asked - setups[0]["step_us"] / 1e6),
        "dims": {str(dim): size for dim, size in ds.sizes.items()},
        "results": {} if groups else results(ds),
        "groups": [{"parameters": chosen, "results": results(ds.isel(run=index))} for chosen, index in groups],
    }


# ---------------------------------------------------------------- how it was made


def parts(how: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the simulations a dataset was made of; none for a measured one."""
    if "concatenated" in how:
        return [part for one in how["concatenated"] for part in parts(one)]
    return [how] if {"machine", "workload", "kernel", "seconds"} <= set(how) else []


def _setup(how: Mapping[str, Any]) -> Facts:
    machine, workload, parameters = how["machine"], how["workload"], how.get("parameters", {})
    step = parameters.get("step_us", DEFAULTS["step_us"])
    return {
        "machine": {
            "name": machine["name"],
            "nodes": len(machine["nodes"]),
            "cpus": sum(node["cpus"] for node in machine["nodes"]),
            "memory_mb": sum(node["memory_mb"] for node in machine["nodes"]),
        },
        "workload": {
            "name": workload["name"],
            "processes": sum(group["count"] for group in workload["processes"]),
            "threads": sum(group["count"] * group["threads"] for group in workload["processes"]),
        },
        "kernel": _kernel(how["kernel"]),
        "seconds": how["seconds"],
        "seeds": how["seeds"],
        "step_us": step[0] if isinstance(step, list) else step,
        "parameters": parameters,
        "stop_after_converged_s": how.get("stop_after_converged_s"),
    }


def _kernel(stored: Mapping[str, Any]) -> Facts:
    """Compare the switches of a run with the release, and with what the same kernel is today."""
    known = table()
    name, switches = stored["name"], stored["switches"]
    release = known.trees[name].base if name in known.trees else name
    facts: Facts = {"name": name, "release": release, "differs": {}, "table_changed": {}}
    if release in known.releases:
        facts["differs"] = {
            key: [switch.cells[release].value, switches[key]]
            for key, switch in known.switches.items()
            if key in switches and switches[key] != switch.cells[release].value
        }
    try:
        now = Kernel(name, **stored["set"]).switches
    except KernelError:
        now = {}
    keys = sorted(set(switches) | set(now))
    facts["table_changed"] = {k: [switches.get(k), now.get(k)] for k in keys if switches.get(k) != now.get(k)}
    return facts


# ---------------------------------------------------------------- what came out


def _groups(ds: xr.Dataset) -> list[tuple[Facts, NDArray[np.int64]]]:
    """Split the runs by everything but the seed that differs between them; empty if nothing does."""
    varying = [
        str(name)
        for name, coord in ds.coords.items()
        if coord.dims == ("run",) and name not in ("run", "seed") and len(set(coord.values.tolist())) > 1
    ]
    columns = {name: ds[name].values.tolist() for name in varying}
    setups = _setup_numbers(ds)
    if setups and len(set(zip(*columns.values(), setups, strict=True))) > len(set(zip(*columns.values(), strict=True))):
        # Not told apart by any coordinate: other machines, workloads or times.
        columns["setup"] = setups
        varying.append("setup")
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, key in enumerate(zip(*columns.values(), strict=True)):
        found.setdefault(key, []).append(position)
    return [(dict(zip(varying, key, strict=True)), np.array(index)) for key, index in found.items()]


def _setup_numbers(ds: xr.Dataset) -> list[int]:
    """Return the number of each run's set-up, from 1; empty if it is not known or all have the same."""
    kinds: list[dict[str, Any]] = []
    numbers: list[int] = []
    for part in parts(provenance(ds)):
        kind = {key: value for key, value in part.items() if key not in ("seeds", "numalab", "revision")}
        if kind not in kinds:
            kinds.append(kind)
        grid = [value for key in ("parameters", "rates") for value in part.get(key, {}).values()]
        runs = len(part["seeds"]) * prod(len(value) for value in grid if isinstance(value, list))
        numbers += [kinds.index(kind) + 1] * runs
    return numbers if len(kinds) > 1 and len(numbers) == ds.sizes["run"] else []


def results(ds: xr.Dataset) -> Facts:
    """Return median and range over the runs of everything that is there to tell."""
    # of the counters that only some kernels have, those that counted something
    facts = {
        one.name: _spread(total, one.units) for one, total in sides.counts(ds) if one.name in VARIABLES or total.any()
    }
    have = set(ds.variables)
    if {"numa_hint_faults", "numa_hint_faults_local"} <= have:
        facts["local_share"] = _spread(ds.numa.local_share(), "1")
    if {"numa_hint_faults", "numa_pages_migrated"} <= have:
        facts["migrations_per_fault"] = _spread(ds.numa.migrations_per_fault(), "pages")
    if "task_node" in have and sides.has_threads(ds):
        facts["convergence_s"] = _spread(ds.numa.convergence_time(), "s")
    for name, array in ds.data_vars.items():
        # What a tool measured once per run.
        if array.dims == ("run",) and array.dtype.kind == "f":
            facts[str(name)] = _spread(array, VARIABLES[str(name)].units)
    if "event_kind" in have:
        facts |= {one.name: _spread(total, one.units) for one, total in sides.events(ds)}
    return facts


def _spread(values: xr.DataArray | NDArray[Any], units: str) -> Facts:
    every = np.asarray(values, dtype=float)
    defined = every[~np.isnan(every)]
    low, middle, high = (
        (float(defined.min()), float(np.median(defined)), float(defined.max())) if defined.size else (None, None, None)
    )
    return {
        "runs": every.size,
        "defined": defined.size,
        "median": middle,
        "min": low,
        "max": high,
        "units": units,
    }


# ---------------------------------------------------------------- as text


def text(facts: Facts) -> str:
    """Return the facts of :func:`summarise` for reading."""
    lines = [wrap(facts["title"]), f"{facts['source']}: {facts['history']}", ""]
    if facts["setups"]:
        lines.append(columns(_setup_rows(facts), 2))
    else:
        # meta.json as it was is for programs (--json); what matters of it stands beside it
        told = {key: value for key, value in facts["measured"].items() if key != "meta" and value != {}}
        lines.append(columns([row for key, value in told.items() for row in _told_rows(key, value)], 2))
    lines.append(wrap("dims: " + ", ".join(f"{dim} {size}" for dim, size in facts["dims"].items()), 2, 4))
    groups = facts["groups"]
    if not groups:
        lines += ["", *_result_lines(facts["results"])]
    for group in groups if len(groups) <= _MOST_TABLES else []:
        chosen = ", ".join(f"{key} {value}" for key, value in group["parameters"].items())
        lines += ["", wrap(chosen, 0, 2), *_result_lines(group["results"])]
    if groups:
        lines += ["", "median by what varies between the runs", _group_table(groups)]
    return "\n".join(lines)


def _told_rows(key: str, value: Any) -> list[tuple[str, str]]:
    # perf_bench says for each test whether it converged, or why that is unknown
    return [(key, str(one)) for one in value] if key == "convergence" else [(key, str(value))]


def _setup_rows(facts: Facts) -> list[tuple[str, str]]:
    rows = []
    for setup in facts["setups"]:
        machine, workload = setup["machine"], setup["workload"]
        size = f"{plural(machine['nodes'], 'node')}, {plural(machine['cpus'], 'CPU')}, {machine['memory_mb']:,g} MB"
        who = f"{plural(workload['processes'], 'process')}, {plural(workload['threads'], 'thread')}"
        rows.append(("machine", f"{machine['name']}: {size}"))
        rows.append(("workload", f"{workload['name']}: {who}"))
        rows.append(("kernel", _kernel_text(setup["kernel"])))
        step = f"steps of {setup['step_us'] / 1000:g} ms"
        rows.append(("runs", f"seeds {_ranges(setup['seeds'])}; {number(setup['seconds'])} s in {step}"))
        if setup["stop_after_converged_s"] is not None:
            after = number(setup["stop_after_converged_s"])
            rows.append(("stopped", f"each run {after} s after it was first converged; the rest repeats that state"))
        rows += [("set", f"{key} = {value}") for key, value in setup["parameters"].items() if key != "step_us"]
    if facts["interrupted"]:
        rows.append(("interrupted", f"recorded up to {number(facts['recorded_s'])} s only"))
    return rows


def _kernel_text(kernel: Facts) -> str:
    if not kernel["differs"]:
        return f"{kernel['name']}, all switches as in that release"
    changes = ", ".join(f"{key} {word(a)} -> {word(b)}" for key, (a, b) in kernel["differs"].items())
    return f"{kernel['name']}; other than in {kernel['release']}: {changes}"


def _ranges(seeds: list[int]) -> str:
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


_NAMES = {
    "local_share": "local share of hint faults",
    "migrations_per_fault": "pages migrated per hint fault",
    "convergence_s": "converged for good after",
    "perf_converged_s": "perf: converged after",
    "move_events": "moves by NUMA balancing",
    "swap_events": "swaps by NUMA balancing",
    "balancer_move_events": "moves between nodes by the load balancer",
    "failed_events": "attempts that found no place",
    "task_run_ms": "all tasks: time on a CPU",
    "task_sys_ms": "all tasks: kernel time for balancing",
    "task_wait_ms": "all tasks: time asleep on pages or locks",
    "task_work_pages": "all tasks: pages visited",
}


def _label(name: str) -> str:
    return _NAMES.get(name) or (f"perf: {VARIABLES[name].long_name}" if name.startswith("perf_") else name)


def _result_lines(facts: Facts) -> list[str]:
    if not facts:
        return ["nothing recorded that could be summed up"]
    rows = [("", "MEDIAN", "RANGE OVER RUNS", "")]
    for name, spread in facts.items():
        middle, low, high = (_value(name, spread[key]) for key in ("median", "min", "max"))
        rows.append((_label(name), middle, f"{low} to {high}" if spread["defined"] else "", _remark(name, spread)))
    return [columns(rows, 2)]


def _value(name: str, value: float | None) -> str:
    if value is None and name == "convergence_s":
        return "never"
    if value is None and name.startswith("perf_"):
        return "not reported"
    return number(value) if value is None or name not in _PER_CENT else f"{100 * value:.1f} %"


def _remark(name: str, spread: Facts) -> str:
    unit = "" if spread["units"] == "1" or spread["median"] is None else spread["units"]
    if spread["defined"] == spread["runs"]:
        return unit
    some = f"{spread['defined']} of {spread['runs']} runs"
    if not spread["defined"]:
        return f"(in {plural(spread['runs'], 'run')})"
    # a run whose perf reports no convergence time need not be known not to have converged
    what = "report it" if name.startswith("perf_") else "converged" if "converge" in name else "with faults"
    return f"{unit} ({some} {what})".strip()


def _group_table(groups: list[Facts]) -> str:
    shown = [name for name in _HEADLINES if name in groups[0]["results"]]
    head = [*groups[0]["parameters"], "RUNS", *(_HEADLINES[name] for name in shown)]
    rows = [head]
    for group in groups:
        found = group["results"]
        count = next((spread["runs"] for spread in found.values()), 0)
        cells = [_value(name, found[name]["median"]) + _share(name, found[name]) for name in shown]
        rows.append([*map(str, group["parameters"].values()), str(count), *cells])
    return columns(rows, 2)


def _share(name: str, spread: Facts) -> str:
    if "converge" not in name or spread["median"] is None:
        return ""
    return f" s ({spread['defined']}/{spread['runs']})"
