"""Runs in files: netCDF-4, or the same gzipped."""

import contextlib
import gzip
import io
import os
import stat
import threading
import zlib
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from numalab.schema import SchemaError, validate


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
    content = _packed(ds)
    if Path(path).suffix == ".gz":
        # no name and no time inside, so that equal runs give equal files
        content = gzip.compress(content, 9, mtime=0)
    return write_whole(path, content)


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file of any kind; it appears whole or not at all.

    Parameters
    ----------
    path : path-like
        Missing folders are made, symbolic links followed.
    content : bytes

    Returns
    -------
    pathlib.Path
        The path as given.

    Raises
    ------
    OSError
        When the path is no place for a file, or it cannot be written; what was there before stays.
    """
    target = Path(path)
    final = destination(target)
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
        When it is a folder, not a netCDF-4 file or not a run; the message names it.
    """
    target = Path(path)
    if (target / ".zgroup").is_file():
        raise SchemaError(
            f"{target}: is the store of a sweep; numalab.sweeps.open opens it, numalab sweep describes it"
        )
    if target.is_dir():
        problem = "is a folder, not a saved run; numalab read FOLDER -o RUN.nc makes one of a recorded run's folder"
        raise SchemaError(f"{target}: {problem}")
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
