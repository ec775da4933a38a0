"""Results up to a time."""

from __future__ import annotations

from typing import Any

import xarray as xr

from numalab.schema import is_time


def until_time(result: Any, seconds: float) -> Any:
    """Return a dataset up to a time; anything that is no dataset, as it is.

    Parameters
    ----------
    result : xarray.Dataset or object
    seconds : float
        At least the first sample of every time axis is kept. Events after it are dropped.
    """
    if not isinstance(result, xr.Dataset):
        return result
    for dim in [str(dim) for dim in result.dims if is_time(str(dim))]:
        result = result.isel({dim: slice(0, max(1, int((result[dim].values <= seconds + 1e-9).sum())))})
    if "event_time_s" in result:
        result = result.assign(event_count=(result.event_time_s <= seconds).sum("event").astype("int64"))
    return result


def reached(result: Any) -> float:
    """Return the time a dataset has got to: the last sample of its finest time axis, seconds."""
    if not isinstance(result, xr.Dataset):
        return 0.0
    axes = [result[dim].values for dim in result.dims if is_time(str(dim))]
    return float(max((axis[-1] for axis in axes if len(axis)), default=0.0))
