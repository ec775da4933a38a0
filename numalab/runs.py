"""Runs as labelled datasets: build, save, open, compare.

What a run looks like is declared and checked in `numalab.schema`; values derived from
it are in `numalab.derived`, reachable as ``ds.numa`` once this module is imported.
"""

import contextlib
import gzip
import io
import json
import os
import stat
import subprocess
import threading
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from xarray.backends import H5NetCDFStore

import numalab
from numalab import derived as _derived  # noqa: F401  registers ds.numa
from numalab.schema import (
    COORDS,
    TABLES,
    VARIABLES,
    VERSION,
    SchemaError,
    Variable,
    declared_coord,
    is_time,
    provenance,
    validate,
)

__all__ = [
    "COORDS",
    "VARIABLES",
    "SchemaError",
    "Variable",
    "at_times",
    "build",
    "concat",
    "destination",
    "differences",
    "equal",
    "extend",
    "open",
    "padded",
    "provenance",
    "revision",
    "save",
    "validate",
]

CONVENTIONS = "CF-1.11"


# ---------------------------------------------------------------- building


def build(
    variables: Mapping[str, Any],
    coords: Mapping[str, Any],
    *,
    title: str,
    source: str,
    params: Mapping[str, Any],
    history: str | None = None,
) -> xr.Dataset:
    """Make a run from arrays and check it.

    Parameters
    ----------
    variables : mapping
        Name of `numalab.schema.VARIABLES` -> array with the declared dimensions,
        or ``(dims, array)`` to put it on another time axis, as in
        ``{"task_node": (("run", "time_task", "task"), a)}``. Arrays are converted
        to the declared type when no value changes.
    coords : mapping
        Name -> array or ``(dims, array)``. Names unknown to `numalab.schema.COORDS` must
        be time axes or lie along ``run``: they are the parameters that vary.
    title : str
        One line for people.
    source : {"simulated", "measured"}
    params : mapping
        Everything needed to repeat the run (kernel switches, machine, workload,
        seeds, seconds, step); stored as JSON beside numalab's version and revision.
    history : str, optional
        How the dataset came about; default: when and with which version.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    SchemaError
        When a name is unknown, or an array does not fit its declaration.
    """
    data = {name: _array(name, value, _declared(name)) for name, value in variables.items()}
    axes = {name: _array(name, value, declared_coord(name)) for name, value in coords.items()}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        ds = xr.Dataset(data, axes)
    except ValueError as error:
        raise SchemaError(f"the arrays do not fit together: {error}") from error
    ds.attrs = {
        "title": title,
        "source": source,
        "Conventions": CONVENTIONS,
        "history": history or f"{now} made by numalab {numalab.__version__}",
        "numalab_schema": VERSION,
        "numalab_params": _to_json({"numalab": numalab.__version__, "revision": revision(), **params}),
    }
    validate(ds)
    return ds


def extend(ds: xr.Dataset, variables: Mapping[str, Any]) -> xr.Dataset:
    """Return a run with further variables, given as to `build`.

    Raises
    ------
    SchemaError
        When a name is unknown, or an array does not fit its declaration.
    """
    result = ds.assign({name: _array(name, value, _declared(name)) for name, value in variables.items()})
    validate(result)
    return result


def padded(dim: str, rows: Sequence[Mapping[str, ArrayLike]]) -> dict[str, NDArray[Any]]:
    """Stack tables of different lengths, one per run, into padded arrays.

    Parameters
    ----------
    dim : {"event", "progress"}
    rows : sequence of mappings
        For each run: variable name -> array with the table's rows on the first axis.

    Returns
    -------
    dict
        The padded arrays (run, dim, ...) and the variable that counts the rows in use.
    """
    names = list(rows[0]) if rows else []
    lengths = []
    for number, row in enumerate(rows):
        sizes = {name: len(np.asarray(column)) for name, column in row.items()}
        if set(row) != set(names) or len(set(sizes.values())) > 1:
            raise SchemaError(f"{dim} table of run {number}: expected columns of one length named {names}, got {sizes}")
        lengths.append(next(iter(sizes.values()), 0))
    out: dict[str, NDArray[Any]] = {TABLES[dim]: np.array(lengths, dtype=np.int64)}
    for name in names:
        columns = [_cast(name, np.asarray(row[name]), _declared(name).dtype) for row in rows]
        tails = {column.shape[1:] for column in columns if len(column)} or {columns[0].shape[1:]}
        if len(tails) > 1:
            raise SchemaError(f"{name}: runs differ in shape beyond the rows: {sorted(tails)}")
        table = np.full((len(rows), max(lengths), *tails.pop()), _pad(columns[0].dtype), dtype=columns[0].dtype)
        for run, column in enumerate(columns):
            table[run, : len(column)] = column if len(column) else table[run, :0]
        out[name] = table
    return out


def _pad(dtype: np.dtype[Any]) -> float | int:
    return np.nan if dtype.kind == "f" else -1


def _declared(name: str) -> Variable:
    if name not in VARIABLES:
        raise SchemaError(f"{name}: not a variable of a run; add it to numalab.schema.VARIABLES")
    return VARIABLES[name]


def _array(name: str, value: Any, spec: Variable | None) -> xr.Variable:
    dims: tuple[str, ...] = spec.dims if spec else ("run",)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | tuple):
        dims = (value[0],) if isinstance(value[0], str) else value[0]
        value = value[1]
    raw = np.asarray(value)
    if raw.ndim != len(dims):
        raise SchemaError(f"{name}: expected {len(dims)} dimensions {dims}, got an array of shape {raw.shape}")
    if spec is None:
        return xr.Variable(dims, raw.astype(str) if raw.dtype.kind in "OT" else raw)
    attrs: dict[str, Any] = {"units": spec.units, "long_name": spec.long_name}
    if spec.codes:
        attrs["flag_values"] = np.arange(len(spec.codes), dtype=spec.dtype)
        attrs["flag_meanings"] = " ".join(spec.codes)
    if spec.dtype == "str":
        return xr.Variable(dims, raw.astype(str), attrs)
    return xr.Variable(dims, _cast(name, raw, spec.dtype), attrs)


def _cast(name: str, raw: NDArray[Any], dtype: str) -> NDArray[Any]:
    wanted = np.dtype(dtype)
    if raw.size and (raw.dtype.kind not in "biuf" or (raw.dtype.kind == "f" and wanted.kind != "f")):
        raise SchemaError(f"{name}: expected {dtype}, got {raw.dtype}")
    cast = raw.astype(wanted, copy=False)
    if wanted.kind != "f" and not np.array_equal(cast, raw):
        raise SchemaError(f"{name}: some values do not fit into {dtype}")
    return cast


# ---------------------------------------------------------------- provenance


def _to_json(params: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, set | frozenset):
            return sorted(value)
        raise SchemaError(f"params: {value!r} of type {type(value).__name__} cannot be stored as JSON")

    # One JSON string: netCDF attributes lose bool, None and dict, each engine in its own way.
    return json.dumps(params, default=plain, sort_keys=True, ensure_ascii=False)


@lru_cache(maxsize=1)
def revision() -> str | None:
    """Name the git revision of the checkout numalab runs from, "+" marking local changes.

    Returns
    -------
    str or None
        None outside a checkout, without git, or before the first commit.
    """
    checkout = Path(__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return None

    def git(*args: str) -> str:
        command = ["git", "-C", str(checkout), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", "numalab", "data") else "")
    except (OSError, subprocess.SubprocessError):
        return None


# ---------------------------------------------------------------- files


def destination(path: str | os.PathLike[str]) -> Path:
    """Follow symbolic links to the file that a save replaces or makes.

    Raises
    ------
    OSError
        When something other than a regular file is there: replacing a device, a pipe or a folder would destroy it.
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Path(os.path.realpath(target))
    if not stat.S_ISREG(mode):
        found = "is a folder" if stat.S_ISDIR(mode) else "is a device, a pipe or a socket, not a regular file"
        raise OSError(f"{target}: {found}; give -o a file name")
    return Path(os.path.realpath(target))


def save(ds: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a run as netCDF-4; the file appears whole or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        Checked with `validate` first.
    path : path-like
        Missing folders are made, symbolic links followed. A name ending in .gz gives a gzipped
        file: small runs are mostly netCDF's own headers, which shrink to a fifth.

    Returns
    -------
    pathlib.Path
        The path as given.

    Raises
    ------
    OSError
        When the path is no place for a file, or it cannot be written; what was there before stays.
    """
    validate(ds)
    target = Path(path)
    final = destination(target)
    content = _packed(ds)
    if target.suffix == ".gz":
        # no name and no time inside, so that equal runs give equal files
        content = gzip.compress(content, 9, mtime=0)
    temporary = final.parent / f".{final.name[:40]}.{os.getpid()}.{threading.get_ident()}.numalab-tmp"
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(content)
            os.replace(temporary, final)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except OSError as error:
        # Named after what was asked for, not after the temporary file.
        raise type(error)(error.errno, error.strerror or str(error), os.fspath(target)) from error
    return target


def _packed(ds: xr.Dataset) -> bytes:
    """Return a run as the content of a netCDF-4 file.

    Made in memory: the HDF5 library does not survive a disk that fills up while it writes.
    """
    encoding: dict[str, dict[str, Any]] = {}
    for name, array in ds.variables.items():
        # Without this a fill value may be chosen for us, and integers come back as floats.
        encoding[str(name)] = {"_FillValue": np.nan if array.dtype.kind == "f" else None}
        if array.dtype.kind in "biuf" and array.size > 1000:
            encoding[str(name)] |= {"zlib": True, "complevel": 4, "shuffle": True}
    memory = io.BytesIO()
    with h5netcdf.File(memory, "w") as file:
        ds.compute().drop_encoding().dump_to_store(H5NetCDFStore(file, mode="w"), encoding=encoding)
    return memory.getvalue()


def open(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a run into memory, check it, and close the file.

    Parameters
    ----------
    path : path-like
        netCDF-4, or the same gzipped.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    SchemaError
        When it is not a netCDF-4 file or not a run; the message names the file.
    """
    target = Path(path)
    if not target.is_file():
        raise FileNotFoundError(f"{target}: no such file")
    try:
        # Decoding would turn seconds into timedelta and filled integers into floats.
        with xr.open_dataset(
            _unpacked(target), engine="h5netcdf", decode_times=False, decode_timedelta=False, mask_and_scale=False
        ) as stored:
            ds = stored.load()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SchemaError(f"{target}: not a netCDF-4 file that numalab can read: {error}") from error
    for array in ds.variables.values():
        array.attrs.pop("_FillValue", None)
    for name in [name for name, array in ds.variables.items() if array.dtype.kind in "OT"]:
        # Text of one fixed type, whatever the engine and pandas make of it.
        text = ds[name].astype(str)
        ds = ds.assign_coords({name: text}) if name in ds.coords else ds.assign({name: text})
    ds = ds.drop_encoding()
    try:
        validate(ds)
    except SchemaError as error:
        # A foreign file has a problem in every variable; the first one says enough.
        first, *others = str(error).split("\n  ")
        more = f" (and {len(others)} more problem{'s' if len(others) > 1 else ''})" if others else ""
        raise SchemaError(f"{target}: {first}{more}") from error
    return ds


def _unpacked(target: Path) -> Path | io.BytesIO:
    """Return what to open: the file, or in memory what a gzipped one holds."""
    return io.BytesIO(gzip.decompress(target.read_bytes())) if target.suffix == ".gz" else target


# ---------------------------------------------------------------- comparing and joining


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
        joined.attrs["numalab_params"] = _to_json({"concatenated": [provenance(ds) for ds in datasets]})
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
                wide[name] = (array.dims, np.pad(array.values, more, constant_values=_pad(array.dtype)), array.attrs)
        ds = ds.drop_vars(list(wide)).assign(wide)
    return ds
