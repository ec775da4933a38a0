"""Comparing runs, and joining them along ``run``."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from numalab.runs._build import pad_value, to_json
from numalab.schema import TABLES, SchemaError, is_time, provenance, validate


def differences(a: xr.Dataset, b: xr.Dataset) -> list[str]:
    """Say how two runs differ, variable by variable.

    Attributes (when, with which version) do not count; NaN equals NaN.

    Returns
    -------
    list of str
        One line per variable that differs; empty when all are equal.
    """
    lines = []
    for name in sorted({*map(str, a.variables), *map(str, b.variables)}):
        if name not in a.variables or name not in b.variables:
            lines.append(f"{name}: only in the {'first' if name in a.variables else 'second'}")
            continue
        one, two = a.variables[name], b.variables[name]
        if one.dims != two.dims or one.shape != two.shape:
            lines.append(f"{name}: {dict(one.sizes)} against {dict(two.sizes)}")
            continue
        text = one.dtype.kind in "UOT" and two.dtype.kind in "UOT"
        if one.dtype != two.dtype and not text:
            lines.append(f"{name}: {one.dtype} against {two.dtype}")
            continue
        x, y = (one.values.astype(str), two.values.astype(str)) if text else (one.values, two.values)
        unequal = x != y
        if x.dtype.kind == "f":
            unequal &= ~(np.isnan(x) & np.isnan(y))
        if unequal.any():
            first = tuple(int(i) for i in np.argwhere(unequal)[0])
            where = ", ".join(f"{dim}[{i}]" for dim, i in zip(one.dims, first, strict=True))
            count = f"{unequal.sum()} of {x.size} values differ"
            lines.append(f"{name}: {count}, first at {where}: {x[first]} != {y[first]}")
    return lines


def equal(a: xr.Dataset, b: xr.Dataset) -> bool:
    """Tell whether two runs hold the same variables, coordinates and values; see `differences`."""
    return not differences(a, b)


def at_times(ds: xr.Dataset, times: ArrayLike) -> xr.Dataset:
    """Take every time axis at given times, each from the last sample at or before it.

    Raises
    ------
    ValueError
        When a time lies outside what was recorded: values are not invented.
    """
    wanted = np.asarray(times, dtype=float)
    for dim in [str(dim) for dim in ds.dims if is_time(str(dim))]:
        have = ds[dim].values
        if not len(have) or wanted.min() < have[0] or wanted.max() > have[-1]:
            span = f"{have[0]} to {have[-1]} s" if len(have) else "nothing"
            raise ValueError(f"{dim}: {span} was recorded, but {wanted.min()} to {wanted.max()} s was asked for")
        attrs = ds[dim].attrs
        ds = ds.isel({dim: np.searchsorted(have, wanted, side="right") - 1}).assign_coords({dim: wanted})
        ds[dim].attrs = attrs
    return ds


def concat(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Join runs along ``run``.

    Parameters
    ----------
    datasets : sequence of xarray.Dataset
        With the same variables and, apart from ``run``, the same axes. Tables of
        events and of perf's records may differ in length. Bring other time axes
        together with `at_times` first.

    Raises
    ------
    SchemaError
        When they do not fit; the message says which variable of which dataset.
    """
    if not datasets:
        raise SchemaError("concat: expected at least one dataset")
    first = datasets[0]
    for number, other in enumerate(datasets):
        validate(other)
        if other.attrs["source"] != first.attrs["source"]:
            raise SchemaError("concat: simulated and measured runs do not belong in one dataset; compare the two")
        lack = {str(name) for name in set(first.variables) ^ set(other.variables)} - {"run"}
        if lack:
            raise SchemaError(f"concat: dataset 0 and dataset {number} do not both have {', '.join(sorted(lack))}")
        fixed = [name for name, array in first.variables.items() if "run" not in array.dims]
        lines = differences(first[fixed], other[fixed]) if fixed else []
        lines += [
            f"{name}: dims {other[name].dims} against {first[name].dims}"
            for name in first.data_vars
            if other[name].dims != first[name].dims
        ]
        if lines:
            hint = "; use numalab.runs.at_times first" if any(is_time(line.split(":")[0]) for line in lines) else ""
            raise SchemaError(f"concat: dataset {number} does not fit dataset 0: {lines[0]}{hint}")
    parts = [_widen(ds.drop_vars("run", errors="ignore"), datasets) for ds in datasets]
    # All that is not concatenated was found equal above, so nothing is overridden.
    joined = xr.concat(
        parts,
        "run",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="override",
        combine_attrs="override",
    )
    joined.attrs["title"] = "; ".join(dict.fromkeys(ds.attrs["title"] for ds in datasets))
    if len({ds.attrs["numalab_params"] for ds in datasets}) > 1:
        joined.attrs["numalab_params"] = to_json({"concatenated": [provenance(ds) for ds in datasets]})
    validate(joined)
    return joined


def _widen(ds: xr.Dataset, others: Sequence[xr.Dataset]) -> xr.Dataset:
    """Pad the tables of one dataset to the longest among all."""
    for dim in TABLES:
        if dim not in ds.dims:
            continue
        longest = max(other.sizes[dim] for other in others)
        wide = {}
        for name, array in ds.data_vars.items():
            if dim in array.dims:
                more = [(0, longest - ds.sizes[dim] if d == dim else 0) for d in array.dims]
                wide[name] = (
                    array.dims,
                    np.pad(array.values, more, constant_values=pad_value(array.dtype)),
                    array.attrs,
                )
        ds = ds.drop_vars(list(wide)).assign(wide)
    return ds
