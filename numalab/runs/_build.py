"""Making a run from arrays, with what is needed to repeat it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

import numalab
from numalab.schema import TABLES, VARIABLES, VERSION, SchemaError, Variable, declared_coord, validate

CONVENTIONS = "CF-1.11"


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
        "numalab_params": to_json({"numalab": numalab.__version__, "revision": revision(), **params}),
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
        table = np.full((len(rows), max(lengths), *tails.pop()), pad_value(columns[0].dtype), dtype=columns[0].dtype)
        for run, column in enumerate(columns):
            table[run, : len(column)] = column if len(column) else table[run, :0]
        out[name] = table
    return out


def pad_value(dtype: np.dtype[Any]) -> float | int:
    """Return what fills the rows of a table that are not in use."""
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


def to_json(params: Mapping[str, Any]) -> str:
    """Return what repeats a run as it is stored."""

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
    checkout = Path(numalab.__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return None

    def git(*args: str) -> str:
        command = ["git", "-C", str(checkout), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", "numalab", "data") else "")
    except (OSError, subprocess.SubprocessError):
        return None
