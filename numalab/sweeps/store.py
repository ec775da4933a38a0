"""The zarr store of a sweep: made at once, filled batch by batch, opened lazily.

Each variable is one zarr array with one chunk along ``run`` for each batch, so writing a batch touches nothing else.
``status`` is written last, when everything else of the batch is on the disk: what it calls done is complete, whenever
the process was killed. Nothing in the store tells of time or of who did what, so equal sweeps give equal files.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.schema import DONE, FAILED_RUN, SchemaError, provenance
from numalab.sweeps.batch import Result
from numalab.sweeps.extra import need
from numalab.sweeps.spec import Spec

Array = NDArray[Any]


class SweepError(ValueError):
    """A store that cannot be used, or a sweep that cannot go on; the message says what to do."""


def is_store(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a zarr store."""
    return (Path(path) / ".zgroup").is_file()


def create(path: Path, template: xr.Dataset, along_run: Mapping[str, Array], batch: int) -> None:
    """Make a store without results; it appears whole or not at all.

    Parameters
    ----------
    path : Path
        Where nothing is yet.
    template : xarray.Dataset
        One run: every coordinate, and every variable with what stands for unknown.
    along_run : mapping of str to array
        The coordinates of all runs.
    batch : int
        Runs of a batch.
    """
    zarr = need("zarr")
    new = path.with_name(f".{path.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    count = len(along_run["run"])
    attrs = {**_plain(template.attrs), "coordinates": " ".join(sorted(set(map(str, template.coords)) - {"run"}))}
    # format 2: text of fixed length has no place in the standard of format 3 yet
    group = zarr.create_group(str(new), zarr_format=2, attributes=attrs)
    with _whole_chunks(zarr):
        for name, variable in template.variables.items():
            if name in template.coords:
                values = np.asarray(along_run.get(str(name), variable.values))
                _make(group, str(name), variable, values.shape, values.shape, values.dtype)[...] = values
            else:
                rest = variable.shape[1:]
                _make(group, str(name), variable, (count, *rest), (min(batch, count), *rest), variable.dtype)
    # arrays never come or go, so what is consolidated stays true
    zarr.consolidate_metadata(str(new), zarr_format=2)
    _sync_tree(new)
    os.rename(new, path)
    _sync(path.parent)


def _make(
    group: Any, name: str, like: xr.Variable, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    return group.create_array(
        name,
        shape=shape,
        chunks=tuple(max(1, size) for size in chunks),
        dtype=dtype,
        fill_value=like.values.flat[0] if like.size else None,
        compressors=need("numcodecs").Zstd(level=3),
        attributes={**_plain(like.attrs), "_ARRAY_DIMENSIONS": list(like.dims)},
    )


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value.tolist() if isinstance(value, np.ndarray) else value for key, value in attrs.items()}


def unknown(dtype: np.dtype[Any]) -> Any:
    """Return what stands for a value that is not known."""
    return np.nan if dtype.kind == "f" else -1


def _whole_chunks(zarr: Any) -> Any:
    """Have arrays that are made or opened meanwhile write chunks of unknown values too: each batch is whole files."""
    return zarr.config.set({"array.write_empty_chunks": True})


class Store:
    """A store that this process alone may write to.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        zarr = need("zarr")
        with _whole_chunks(zarr):
            group = zarr.open_group(str(path), mode="r+", zarr_format=2, use_consolidated=False)
            coords = {"run", *str(group.attrs["coordinates"]).split()}
            self._arrays = {name: array for name, array in group.arrays() if name not in coords}
        for leftover in path.glob("*/*.partial"):
            leftover.unlink()

    def status(self) -> Array:
        """Return the status of every run."""
        return np.asarray(self._arrays["status"][:])

    def write(self, span: range, result: Result) -> None:
        """Write a batch, its status last.

        Parameters
        ----------
        span : range
            The runs of the batch.
        result : Result
            Of all of them, or of some.
        """
        at, places = slice(span.start, span.stop), list(result.places)
        failed = np.array([bool(why) for why in result.failures])
        status = self._filled("status", at, places, np.where(failed, FAILED_RUN, DONE))
        failure = self._filled("failure", at, places, np.array(result.failures))
        for name, array in self._arrays.items():
            if name == "status":
                continue
            if name == "failure":
                array[at] = failure
                continue
            values = np.full((len(places), *array.shape[1:]), array.fill_value, array.dtype)
            if not failed.all():
                values[~failed] = result.arrays[name][~failed]
            array[at] = self._filled(name, at, places, values)
        batch = span.start // self._arrays["status"].chunks[0]
        self._sync(batch, [name for name in self._arrays if name != "status"])
        self._arrays["status"][at] = status
        self._sync(batch, ["status"])

    def _filled(self, name: str, at: slice, places: list[int], values: Array) -> Array:
        """Return all of a batch with new values in some places."""
        array = self._arrays[name]
        if len(places) == at.stop - at.start:
            return values
        whole = np.array(array[at])
        whole[places] = values
        return whole

    def _sync(self, batch: int, names: list[str]) -> None:
        for name in names:
            folder = self.path / name
            _sync(folder / ".".join([str(batch)] + ["0"] * (self._arrays[name].ndim - 1)))
            _sync(folder)


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        _sync(path)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other sweeps from a folder for as long; the lock ends with the process, however it ends.

    Parameters
    ----------
    path : Path
    wait : bool
        Until another process is done with it.

    Raises
    ------
    SweepError
        Another process has it.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise SweepError(f"{path}: another process is filling it; wait for that, or end it") from None
        yield
    finally:
        os.close(handle)


def open(path: str | os.PathLike[str]) -> xr.Dataset:
    """Open the results of a sweep lazily: values are read when they are used.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    xarray.Dataset
        A run dataset (:mod:`numalab.schema`) of dask arrays, one chunk for each batch; seeds and factors are
        coordinates along ``run``. ``ds.numa`` works on it. Runs that failed or are yet to do, as ``ds.status`` says,
        have -1 or NaN.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    SweepError
        What is there is no sweep.
    """
    target = Path(path)
    if not target.exists():
        raise FileNotFoundError(f"{target}: no such store")
    if not is_store(target):
        raise SweepError(f"{target}: is not the store of a sweep")
    need("dask")
    need("zarr")
    # decoding would turn integers with an unknown value into floats, and seconds into timedelta
    ds = xr.open_zarr(target, chunks={}, decode_times=False, decode_timedelta=False, mask_and_scale=False)
    for array in ds.variables.values():
        array.attrs.pop("_FillValue", None)
    try:
        if "sweep" not in provenance(ds):
            raise SchemaError("it does not say what was swept")
    except SchemaError as error:
        raise SweepError(f"{target}: is not the store of a sweep: {error}") from None
    for coord in ds.coords.values():
        coord.load()
    return ds


def spec_of(ds: xr.Dataset) -> Spec:
    """Return what a store says it holds."""
    return Spec.from_plain(provenance(ds)["sweep"]["spec"])


def made_by(ds: xr.Dataset) -> tuple[str, str | None]:
    """Return version and revision of the numalab that began a store."""
    how = provenance(ds)
    return how["numalab"], how["revision"]
