"""One run of everything that was read, as far as it fits together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import runs
from numalab.readers._text import NoRunError, ReadError
from numalab.schema import SchemaError, is_time

#: Dimensions and values.
_Array = tuple[tuple[Hashable, ...], NDArray[Any]]

#: What is not on a node, where the text names only nodes with pages or faults, is 0 there.
_ABSENT_IS_ZERO = ("pages", "faults", "group_faults")


def merged(found: Mapping[str, xr.Dataset], formats: Sequence[str], sources: str) -> xr.Dataset:
    """Put the runs of all readings into one.

    Times of different parts are kept on axes of their own unless they are equal.

    Parameters
    ----------
    found : mapping
        Format -> run that was made of it.
    formats : sequence of str
        All that were read.
    sources : str
        Files, for messages.

    Raises
    ------
    NoRunError
        No part makes a run.
    ReadError
        The parts are of different machines, hold different numbers of runs, or say the same thing differently.
    """
    if not found:
        raise NoRunError(sources, 0, f"{', '.join(formats)}: nothing that a run has; the values are in the tables")
    if len(found) == 1:
        return next(iter(found.values()))
    how = "save them one by one (numalab read --format NAME)"
    counts = {
        name: ds.sizes["run"] for name, ds in found.items() if any("run" in a.dims for a in ds.data_vars.values())
    }
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ReadError(sources, 0, f"its parts hold different numbers of runs ({said}); {how}")
    variables: dict[str, _Array] = {}
    coords: dict[str, _Array] = {}
    nodes = sorted({int(node) for ds in found.values() if "node" in ds.coords for node in ds.coords["node"].values})
    for name, ds in found.items():
        own = _own_axes(_on_nodes(ds, nodes, name, sources, how), coords, name)
        if clash := _add(variables, coords, own):
            raise ReadError(sources, 0, f"{name} and another part both have {clash}, and not the same; {how}")
    try:
        return runs.build(
            variables,
            coords,
            title=f"{', '.join(found)}: {sources}",
            source="measured",
            params={
                "reader": list(found),
                "file": sources,
                "parts": {n: runs.provenance(ds) for n, ds in found.items()},
            },
        )
    except SchemaError as error:
        raise ReadError(sources, 0, f"its parts do not fit into one run ({error}); {how}") from error


def _on_nodes(ds: xr.Dataset, nodes: list[int], name: str, sources: str, how: str) -> xr.Dataset:
    """Give a dataset all nodes; only what is 0 where it is not named can be extended."""
    if "node" not in ds.coords or ds.coords["node"].values.tolist() == nodes:
        return ds
    per_node = [str(n) for n, array in ds.variables.items() if "node" in array.dims and n != "node"]
    stuck = [n for n in per_node if n not in _ABSENT_IS_ZERO]
    if stuck:
        have = ds.coords["node"].values.tolist()
        raise ReadError(sources, 0, f"{name} has nodes {have}, other parts {nodes}: different machines? {how}")
    wide = {n: ds[n].reindex(node=nodes, fill_value=0) for n in per_node}
    return ds.drop_vars([*per_node, "node"]).assign(wide)


def _own_axes(ds: xr.Dataset, coords: Mapping[str, _Array], name: str) -> xr.Dataset:
    """Rename time axes that another part has with other times."""
    taken = {
        str(dim): f"time_{name.replace('-', '_').replace('#', '_')}"
        for dim in ds.dims
        if is_time(str(dim)) and str(dim) in coords and not np.array_equal(coords[str(dim)][1], ds[dim].values)
    }
    return ds.rename(taken)


def _add(variables: dict[str, _Array], coords: dict[str, _Array], ds: xr.Dataset) -> str:
    """Add what is new; return the name of what is there already and differs, "" if nothing does."""
    for name, array in ds.variables.items():
        into = variables if name in ds.data_vars else coords
        known = into.setdefault(str(name), (array.dims, array.values))
        if known[0] != array.dims or not np.array_equal(known[1], array.values):
            return str(name)
    return ""
