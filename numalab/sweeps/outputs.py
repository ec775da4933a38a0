"""What a sweep keeps of a run: one number for each quantity, and what is asked for over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.derived import time_axis
from numalab.model.state import COUNTERS
from numalab.schema import BALANCER_MOVE, MOVE, SWAP

Array = NDArray[Any]

#: Quantities of the schema that lie along ``run`` only.
NUMBERS = (
    "converged_s",
    "first_converged_s",
    "local_share",
    "migrations_per_fault",
    "system_s",
    "waiting_s",
    "work_pages",
    "task_moves",
    "task_swaps",
    "balancer_moves",
)
_SUMS = {
    "system_s": ("task_sys_ms", 1000.0),
    "waiting_s": ("task_wait_ms", 1000.0),
    "work_pages": ("task_work_pages", 1),
}


def recorded(keep: Mapping[str, float], seconds: float, known: Mapping[str, object]) -> dict[str, float | None]:
    """Say how often a simulation has to record what.

    Parameters
    ----------
    keep : mapping of str to float
        What is asked for over time, with seconds between samples.
    seconds : float
        Simulated time.
    known : mapping
        Every variable that is recorded unless told otherwise.
    """
    every: dict[str, float | None] = dict.fromkeys(known)
    every |= dict.fromkeys((*COUNTERS, *(name for name, _ in _SUMS.values())), seconds)
    every |= keep
    if "task_node" not in keep:
        # as often as usual: how finely convergence is timed
        del every["task_node"]
    return every


def numbers(ds: xr.Dataset) -> dict[str, Array]:
    """Return the quantities of :data:`NUMBERS`, each (run,).

    Parameters
    ----------
    ds : xarray.Dataset
        Simulated runs that recorded what :func:`recorded` says.
    """
    out: dict[str, Array] = {
        "converged_s": ds.numa.convergence_time().values,
        "first_converged_s": ds.numa.convergence_time(first=True).values,
        "local_share": ds.numa.local_share().values,
        "migrations_per_fault": ds.numa.migrations_per_fault().values,
    }
    for name, (source, size) in _SUMS.items():
        array = ds[source]
        out[name] = array.isel({time_axis(array): -1}).sum("task").values / size
    kind, between = ds["event_kind"].values, (ds["event_src_node"] != ds["event_dst_node"]).values
    out["task_moves"] = (kind == MOVE).sum(axis=1)
    out["task_swaps"] = (kind == SWAP).sum(axis=1)
    out["balancer_moves"] = ((kind == BALANCER_MOVE) & between).sum(axis=1)
    return {name: np.asarray(out[name], np.float64) for name in NUMBERS}


def totals(ds: xr.Dataset, keep: Mapping[str, float]) -> dict[str, Array]:
    """Return the counters at the end, each (run, 1), of those that are not kept over time."""
    return {name: _last(ds[name]) for name in COUNTERS if name not in keep}


def _last(array: xr.DataArray) -> Array:
    return np.asarray(array.isel({time_axis(array): slice(-1, None)}).values)


def series(ds: xr.Dataset, keep: Mapping[str, float]) -> dict[str, Array]:
    """Return what is kept over time, each (run, time, ...)."""
    return {name: np.asarray(ds[name].values) for name in keep}
