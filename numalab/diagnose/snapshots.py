"""Snapshots without times: which of them are samples of one boot, and so a series.

A counter of the kernel never falls before the next boot. Snapshots of different boots are in rising order by chance
once in n!, which is once in 3.6 million for ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr

from numalab.diagnose.facts import EVERY_PAIR, Side, sides_of_runs
from numalab.schema import VARIABLES

#: Snapshots in a row without a falling counter that are samples of one boot.
SERIES_SAMPLES = 10
#: Series in one input; more are rather snapshots of several machines by turns than boots of one.
MOST_BOOTS = 10


def sides_of_snapshots(ds: xr.Dataset, source: str, table: int) -> Iterator[tuple[int, Side]]:
    """Make a side of each series among snapshots, and of each snapshot that is in none.

    Parameters
    ----------
    ds : xarray.Dataset
        Runs of one sample each, named by ``snapshot``.
    source : str
    table : int

    Yields
    ------
    first, side : int, Side
        Position of its first snapshot.
    """
    parts = _stretches(ds)
    alone = [start for start, end in parts if end - start == 1]
    single = dict(zip(alone, sides_of_runs(ds.isel(run=alone), source, table), strict=False)) if alone else {}
    for at, side in single.items():
        side.samples = len(alone)
        side.name = side.name or (str(ds["snapshot"].values[at]) if len(parts) > 1 else "")
    for start, end in parts:
        if end - start > 1:
            name = "" if len(parts) == 1 else f"{ds['snapshot'].values[start]} to {ds['snapshot'].values[end - 1]}"
            yield from ((start, side) for side in _series(ds.isel(run=slice(start, end)), source, table, name))
        elif start in single:
            yield start, single[start]


def _stretches(ds: xr.Dataset) -> list[tuple[int, int]]:
    """Give begin and end of each series, and of each snapshot that is in none.

    Allocations of nodes are judged from boot, and no rule looks at them over time: they make no series.
    """
    falls = np.zeros(max(ds.sizes["run"] - 1, 0), dtype=bool)
    for name, array in ds.data_vars.items():
        if VARIABLES[str(name)].cumulative:
            values = array.transpose("run", ...).values
            falls |= (np.diff(values, axis=0) < 0).any(axis=tuple(range(1, values.ndim)))
    edges = [0, *(np.flatnonzero(falls) + 1).tolist(), ds.sizes["run"]]
    long = [(start, end) for start, end in pairwise(edges) if end - start >= SERIES_SAMPLES]
    if "node_counters" in ds.data_vars or len(long) > MOST_BOOTS:
        long = []
    inside = {at for start, end in long for at in range(start, end)}
    return sorted([*long, *((at, at + 1) for at in range(ds.sizes["run"]) if at not in inside)])


def _series(ds: xr.Dataset, source: str, table: int, name: str) -> Iterator[Side]:
    """Make a side of samples of one boot: what was counted from the first to the last."""
    one = ds.isel(time=0, drop=True).drop_vars("snapshot").rename(run="time").expand_dims("run")
    for side in sides_of_runs(one.assign_coords(time=np.arange(one.sizes["time"])), source, table, name):
        side.seconds = None
        if side.series is not None:
            side.series.seconds[:] = np.nan
        yield side


def remarks(sides: list[Side]) -> Iterator[str]:
    """Say how snapshots of one input were taken."""
    for side in sides:
        if side.series is not None and np.isnan(side.series.seconds).all():
            taken = f"{side.series.ends.size + 1} snapshots" + (f", {side.name}," if side.name else "")
            yield (
                f"{side.source}: {taken} in which no counter falls are taken for samples of one boot: judged is what "
                "was counted from the first to the last (of what was before, give one of them alone). Rates per "
                "second, and how long a share stands still, need times: date +'@ %s' before each snapshot"
            )
    alone = next((side for side in sides if side.samples > EVERY_PAIR), None)
    if alone is not None:
        what = "each is compared with the one before and the one after it, and with no other input"
        yield f"{alone.source}: {alone.samples} snapshots that are no series: {what}"
