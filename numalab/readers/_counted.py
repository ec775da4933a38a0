"""Counts without times, of one or several things, as runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from numalab import runs
from numalab.schema import VARIABLES


def counters(
    every: Sequence[Mapping[str, int]],
    names: Sequence[str],
    coords: Mapping[str, Sequence[str]],
    reader: str,
    source: str,
    skipped: int,
) -> xr.Dataset:
    """Make a dataset of counts.

    Parameters
    ----------
    every : sequence of mapping
        For each run name -> count.
    names : sequence of str
        Those that all runs have.
    coords : mapping
        Further coordinates along ``run``: name -> a value for each run.
    reader, source : str
    skipped : int
        Lines that were not used.

    Returns
    -------
    xarray.Dataset
        A variable for each count that the run schema names, ``counters`` for the rest.
    """
    values = {name: np.array([[one[name]] for one in every], dtype=np.int64) for name in names}
    variables = {name: value for name, value in values.items() if _is_counter(name)}
    further = [name for name in names if not _is_counter(name)]
    axes: dict[str, object] = {key: ("run", list(labels)) for key, labels in coords.items()}
    axes["time"] = np.zeros(1)
    if further:
        axes["counter"] = further
        variables["counters"] = np.stack([values[name] for name in further], axis=-1)
    params = {"reader": reader, "file": source, "skipped_lines": skipped}
    return runs.build(variables, axes, title=f"{reader}: {source}", source="measured", params=params)


def _is_counter(name: str) -> bool:
    """Tell whether the run schema has a counter of the whole machine by this name."""
    return name in VARIABLES and VARIABLES[name].cumulative and VARIABLES[name].dims == ("run", "time")
