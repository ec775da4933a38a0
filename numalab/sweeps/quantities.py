"""One number for each run of a sweep, by name."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.derived import growth
from numalab.model.state import COUNTERS
from numalab.records import nearest
from numalab.schema import DONE
from numalab.sweeps.outputs import NUMBERS
from numalab.sweeps.store import SweepError, spec_of

#: What a sweep can be asked for.
QUANTITIES = (*NUMBERS, *COUNTERS)
#: Times that are unknown where something did not happen.
TIMES = ("converged_s", "first_converged_s")


def quantity(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return a quantity of all runs that are done.

    Parameters
    ----------
    ds : xarray.Dataset
        A sweep.
    name : str
        Of :data:`QUANTITIES`; of a counter its growth.

    Returns
    -------
    xarray.DataArray
        (run), float64.

    Raises
    ------
    SweepError
        No such quantity, or no run is done.
    """
    if name not in QUANTITIES:
        raise SweepError(f"no quantity {name!r}{nearest(name, QUANTITIES)}")
    done = np.flatnonzero(ds["status"].values == DONE)
    if not len(done):
        raise SweepError("no run of this sweep is done")
    array = ds[name] if name in NUMBERS else growth(ds[name])
    return array.isel(run=done).astype(np.float64).compute().assign_attrs(ds[name].attrs)


def censored(array: xr.DataArray, ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Put the length of the run where a time is unknown because it did not come; say where that is."""
    never = array.isnull() if array.name in TIMES else xr.zeros_like(array, dtype=bool)
    return array.where(~never, spec_of(ds).seconds), never


def factor_values(ds: xr.Dataset, name: str) -> NDArray[np.generic]:
    """Return the values of a factor along ``run``; dots in its name may be underscores.

    Raises
    ------
    SweepError
        It was not swept.
    """
    known = [factor.replace(".", "_") for factor in spec_of(ds).factors] + ["seed"]
    if name.replace(".", "_") not in known:
        raise SweepError(f"{name}: was not swept{nearest(name, known)}")
    values: NDArray[np.generic] = ds[name.replace(".", "_")].values
    return values
