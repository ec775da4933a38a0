"""What the store of a sweep will hold: names, axes and types, found out by simulating one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import describe, runs
from numalab.kernel import Kernel, KernelError
from numalab.model.record import READERS, Recorder
from numalab.model.state import COUNTERS
from numalab.records import DescriptionError
from numalab.schema import TO_DO, VARIABLES, is_time
from numalab.simulation import simulate
from numalab.sweeps import factors
from numalab.sweeps.batch import LONGEST
from numalab.sweeps.outputs import NUMBERS
from numalab.sweeps.plan import Plan, first_buildable
from numalab.sweeps.spec import Spec
from numalab.sweeps.store import SweepError, unknown

Array = NDArray[Any]


def along_run(plan: Plan) -> dict[str, Array]:
    """Return every coordinate along ``run``: number, seed, point of the design, kernel, factors."""
    rows = plan.rows
    out: dict[str, Array] = {
        "run": np.arange(len(rows)),
        "seed": np.array([row.seed for row in rows], np.int64),
        "point": np.array([row.point for row in rows], np.int64),
    }
    for name in plan.spec.factors:
        out[factors.coordinate(name)] = np.array([factors.stored(row.values[name]) for row in rows])
    labels = [_kernel(setup, plan.spec) for setup in plan.setups]
    return {**out, "kernel": np.array([labels[row.setup] for row in rows])}


def _kernel(setup: dict[str, Any], spec: Spec) -> str:
    """Name a kernel; what is swept beside it has a coordinate of its own."""
    fixed = {key: value for key, value in setup["kernel"].get("switches", {}).items() if key not in spec.factors}
    patches = "".join(f" +{name}" for name in spec.description["kernel"].get("patches", []))
    try:
        return Kernel(str(setup["kernel"].get("name")), **fixed).label + patches
    except KernelError:
        return "?"


def template(plan: Plan) -> xr.Dataset:
    """Return one run of the store, all of it unknown.

    Parameters
    ----------
    plan : Plan

    Raises
    ------
    DescriptionError
        No setup can be built.
    SweepError
        What is kept over time has axes that differ between setups.
    """
    described = first_buildable(plan)
    axes = _axes(plan, described)
    variables: dict[str, Any] = {
        "status": np.full(1, TO_DO, np.int32),
        "failure": np.zeros(1, f"U{LONGEST}"),
        **{name: np.full(1, np.nan) for name in NUMBERS},
    }
    coords: dict[str, Any] = {name: values[:1] for name, values in along_run(plan).items()}
    coords["time"] = np.array([_steps(plan.spec.seconds, plan)[-1]])
    for name in COUNTERS:
        variables[name] = np.full((1, 1), -1, np.int64)
    intervals = sorted(set(plan.spec.keep.values()))
    for name, every in plan.spec.keep.items():
        axis = f"time_{1 + intervals.index(every)}"
        coords[axis] = _steps(every, plan)
        dims, dtype = READERS[name][0], np.dtype(VARIABLES[name].dtype)
        shape = (1, len(coords[axis]), *(axes.sizes[dim] for dim in dims))
        variables[name] = (("run", axis, *dims), np.full(shape, unknown(dtype), dtype))
    coords |= {str(name): (coord.dims, coord.values) for name, coord in axes.coords.items()}
    swept = ", ".join(plan.spec.factors) or "seeds only"
    return runs.build(
        variables,
        coords,
        title=f"{described.workload.name}: sweep of {swept}",
        source="simulated",
        params={"sweep": {"spec": plan.spec.plain()}},
        # without the time: equal sweeps are equal stores
        history="swept by numalab",
    )


def _steps(every: float, plan: Plan) -> Array:
    """Return when samples are taken, s."""
    step_s = plan.spec.step_us / 1e6
    end, interval = max(1, round(plan.spec.seconds / step_s)), max(1, round(every / step_s))
    return np.asarray(Recorder({"": interval}, 0, end).times[interval] * step_s)


def _axes(plan: Plan, described: describe.Description) -> xr.Dataset:
    """Return the axes beside run and time of what is kept over time, with their coordinates."""
    wanted = {dim for name in plan.spec.keep for dim in READERS[name][0]}
    axes = _of_setup(plan, described, wanted)
    seen = set()
    for setup in plan.setups if wanted else ():
        key = repr((setup["machine"], setup["workload"]))
        if key in seen:
            continue
        seen.add(key)
        try:
            other = _of_setup(plan, describe.build(setup), wanted)
        except DescriptionError:
            continue  # its runs will say so
        if differences := runs.differences(axes, other):
            kept = ", ".join(name for name in plan.spec.keep if READERS[name][0])
            raise SweepError(
                f"sweep.keep: {kept} cannot be kept over time, its axes differ between machines or workloads "
                f"({differences[0]}); keep counters, or sweep these one by one"
            )
    return axes


def _of_setup(plan: Plan, described: describe.Description, wanted: set[str]) -> xr.Dataset:
    if not wanted:
        return xr.Dataset()
    step_us = plan.spec.step_us
    ds = simulate(
        described.machine,
        described.workload,
        described.kernel,
        seconds=step_us / 1e6,
        seeds=[0],
        every=dict.fromkeys(plan.spec.keep, 0.0),
        step_us=step_us,
    )
    dims = {dim for dim in map(str, ds.dims) if dim in wanted or (dim == "node2" and "node" in wanted)}
    keep = {name: (c.dims, c.values) for name, c in ds.coords.items() if c.dims and {*map(str, c.dims)} <= dims}
    made = xr.Dataset(coords={name: one for name, one in keep.items() if not is_time(str(name))})
    return made.assign_coords({dim: np.arange(ds.sizes[dim]) for dim in dims if dim not in made.coords})
