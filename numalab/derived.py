"""Values derived from a run: the accessor ``ds.numa`` and the formulas behind it.

Counters may count from boot, as in /proc/vmstat, so what happened in a record is
its last sample minus its first. A record with a single sample is read as counted
from zero.
"""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.schema import SLEEPING, TABLES, VARIABLES, SchemaError, is_time

#: Cost model of mmtests (MonitorMmtestsvmstat.pm), in 8-byte memory accesses: a struct page
#: is 56 bytes, so 7; a hint fault is put at 5000; moving a page takes 7 + 12 for lists and locks.
COST_PTE, COST_FAULT, COST_MIGRATE = 7, 5000, 19
#: Copying a page: 7 + 4096 / 8. mmtests computes this term and drops it, see `autonuma_cost`.
COST_COPY = 519

HUGE_PAGES = 512


def autonuma_cost(
    pte_updates: xr.DataArray | float,
    hint_faults: xr.DataArray | float,
    pages_migrated: xr.DataArray | float,
    *,
    copy: bool = False,
) -> Any:
    """Compute the row "AutoNUMA cost" of an mmtests table.

    Parameters
    ----------
    pte_updates : array or number
        Growth of ``numa_pte_updates``, pages (512 per huge page).
    hint_faults : array or number
        Growth of ``numa_hint_faults``.
    pages_migrated : array or number
        Growth of ``numa_pages_migrated``, pages.
    copy : bool
        Add the copying of the pages. mmtests means to, but there the term stands in a
        statement of its own, without effect, so every published row lacks it.

    Returns
    -------
    array or number
        Millions of memory accesses.
    """
    per_page = COST_MIGRATE + (COST_COPY if copy else 0)
    return (COST_PTE * pte_updates + COST_FAULT * hint_faults + per_page * pages_migrated) / 1e6


def time_axis(array: xr.DataArray) -> str:
    """Name the time axis of a variable.

    Raises
    ------
    ValueError
        When it has none.
    """
    for dim in map(str, array.dims):
        if is_time(dim):
            return dim
    raise ValueError(f"{array.name}: has no time axis, its dims are {array.dims}")


def growth(counter: xr.DataArray) -> xr.DataArray:
    """Count what happened during the record: last sample minus first, or the only one."""
    dim = time_axis(counter)
    last = counter.isel({dim: -1}, drop=True)
    return last if counter.sizes[dim] == 1 else last - counter.isel({dim: 0}, drop=True)


def _trailing(counter: xr.DataArray, window: float) -> xr.DataArray:
    """Count what happened in the last ``window`` seconds before each sample."""
    if not window > 0:
        raise ValueError(f"window: expected seconds above 0, got {window}")
    dim = time_axis(counter)
    time = counter[dim].values
    # The tolerance keeps 0.3 - 0.1 from missing the sample at 0.2.
    start = np.searchsorted(time, time - window + 1e-9 * max(1.0, window), side="right") - 1
    before = counter.isel({dim: np.maximum(start, 0)}).assign_coords({dim: time})
    return counter - before


def _ratio(part: xr.DataArray, whole: xr.DataArray, name: str, units: str, long_name: str) -> xr.DataArray:
    """Divide; nothing over nothing is unknown, not 0 and not 1."""
    out = (part / whole.where(whole > 0)).rename(name)
    out.attrs = {"units": units, "long_name": long_name}
    return out


@xr.register_dataset_accessor("numa")  # type: ignore[no-untyped-call]
class NumaAccessor:
    """Derived values of a run, as ``ds.numa``.

    Parameters
    ----------
    ds : xarray.Dataset
        A run in the schema of `numalab.schema`, simulated or measured.
    """

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def _get(self, name: str) -> xr.DataArray:
        if name not in self._ds.variables:
            raise SchemaError(f"this run has no {name}: it was not recorded")
        return self._ds[name]

    def local_share(self, window: float | None = None) -> xr.DataArray:
        """Share of hint faults that were local.

        Parameters
        ----------
        window : float, optional
            Seconds to look back from each sample (less at the start of the record).
            Default: the whole record at once.

        Returns
        -------
        xarray.DataArray
            (run) or (run, time), 0 to 1; NaN where there was no hint fault.
        """
        faults, local = self._get("numa_hint_faults"), self._get("numa_hint_faults_local")
        if window is None:
            part, whole = growth(local), growth(faults)
        else:
            part, whole = _trailing(local, window), _trailing(faults, window)
        return _ratio(part, whole, "local_share", "1", "share of local hint faults")

    def migrations_per_fault(self) -> xr.DataArray:
        """Pages migrated per hint fault over the record, (run); NaN where there was no fault."""
        part, whole = growth(self._get("numa_pages_migrated")), growth(self._get("numa_hint_faults"))
        return _ratio(part, whole, "migrations_per_fault", "pages", "pages migrated per hint fault")

    def rates(self, name: str) -> xr.DataArray:
        """Growth per second of a counter between neighbouring samples.

        Parameters
        ----------
        name : str
            A cumulative variable.

        Returns
        -------
        xarray.DataArray
            As the variable, one sample shorter; each value belongs to the interval that
            ends at its time.

        Raises
        ------
        ValueError
            When the variable is not cumulative or has fewer than two samples.
        """
        spec = VARIABLES.get(name)
        if spec is None or not spec.cumulative:
            known = ", ".join(key for key, value in VARIABLES.items() if value.cumulative)
            raise ValueError(f"rates: {name} is not a counter; expected one of {known}")
        counter = self._get(name)
        dim = time_axis(counter)
        if counter.sizes[dim] < 2:
            raise ValueError(f"rates: {name} has {counter.sizes[dim]} sample, two are needed")
        out = (counter.diff(dim) / counter[dim].diff(dim)).rename(f"{name}_rate")
        units = "s-1" if spec.units == "1" else f"{spec.units} s-1"
        out.attrs = {"units": units, "long_name": f"{spec.long_name}, rate"}
        return out

    def converged(self) -> xr.DataArray:
        """Tell at each sample whether every process has all its threads on one node.

        Returns
        -------
        xarray.DataArray
            bool (run, time). A thread that is not started (-1) keeps its process from
            counting as converged, one that has ended does not; a process that has ended stays
            what it was last. Left out are tasks with ``task_process`` -1 and, where
            ``task_state`` was recorded, those that sleep nearly always, as the main thread of
            many programs does: nothing ever places them.
        """
        node, process = self._get("task_node"), self._get("task_process").values
        process = np.where(self.idle(), -1, process)
        state: xr.DataArray | None = None
        for number in np.unique(process[process >= 0]):
            own = node.isel(task=np.flatnonzero(process == number))
            together = own.isel(task=0, drop=True).copy(data=_together(own.values, own.get_axis_num("task")))
            state = together if state is None else state & together
        if state is None:
            raise SchemaError("task_process: names no process, so there is nothing that could converge")
        return state.rename("converged").assign_attrs(units="1", long_name="every process on one node")

    def idle(self) -> NDArray[np.bool_]:
        """Tell for each task whether it slept in nine of ten samples, or was in none."""
        if "task_state" not in self._ds:
            return np.zeros(self._ds.sizes["task"], dtype=bool)
        state = self._ds["task_state"]
        axes = tuple(i for i, dim in enumerate(state.dims) if dim != "task")
        seen, asleep = (state.values >= 0).sum(axes), (state.values == SLEEPING).sum(axes)
        return np.asarray(asleep >= 0.9 * seen)

    def convergence_time(self, *, first: bool = False) -> xr.DataArray:
        """Time from which every process has all its threads on one node, by the true state.

        Parameters
        ----------
        first : bool
            The first such sample, even when it does not last. Default: the sample from
            which it stays so to the end of the record.

        Returns
        -------
        xarray.DataArray
            (run), seconds on the axis of ``task_node``; NaN when not converged. A sweep that keeps no
            ``task_node`` has it from when the run was simulated.
        """
        kept = "first_converged_s" if first else "converged_s"
        if "task_node" not in self._ds and kept in self._ds:
            return self._ds[kept].rename("convergence_time")
        state = self.converged()
        dim = time_axis(state)
        good: NDArray[np.bool_] = state.transpose("run", dim).values
        if not first:
            good = np.logical_and.accumulate(good[:, ::-1], axis=1)[:, ::-1]
        if good.shape[1]:
            seconds = np.where(good.any(axis=1), state[dim].values[good.argmax(axis=1)], np.nan)
        else:
            seconds = np.full(good.shape[0], np.nan)
        out = xr.DataArray(seconds, {name: c for name, c in state.coords.items() if c.dims == ("run",)}, ("run",))
        return out.rename("convergence_time").assign_attrs(units="s", long_name="convergence time (true state)")

    def perf_convergence_time(self) -> xr.DataArray:
        """Convergence time as ``perf bench numa mem`` reports it, (run), seconds; NaN: never.

        perf knows each thread's place only from the end of its last loop, and looks when its
        reporting thread ends a loop, so this comes later than the truth, or without it.
        """
        return self._get("perf_converged_s")

    def table(self, dim: str, run: int = 0) -> xr.Dataset:
        """Give one run's table of events or of perf's records, without padding.

        Parameters
        ----------
        dim : {"event", "progress"}
        run : int
            Position along ``run``.
        """
        if dim not in TABLES:
            raise ValueError(f"table: expected one of {tuple(TABLES)}, got {dim!r}")
        one = self._ds.isel(run=run)
        rows = int(self._get(TABLES[dim]).values[run])
        return one[[name for name, array in one.data_vars.items() if dim in array.dims]].isel({dim: slice(rows)})

    def mmtests(self) -> xr.Dataset:
        """Compute the NUMA rows of an mmtests table over the record.

        Returns
        -------
        xarray.Dataset
            Variables named as mmtests prints them, (run). "NUMA hint local faults %" is a
            count, in spite of its name; "NUMA hint local percent" is 100 when there was no
            fault, as mmtests has it (`local_share` is not). Rows whose counters were not
            recorded are left out.
        """
        grown = {
            name: growth(self._ds[name])
            for name in (
                "numa_pte_updates",
                "numa_huge_pte_updates",
                "numa_hint_faults",
                "numa_hint_faults_local",
                "numa_pages_migrated",
            )
            if name in self._ds
        }
        pte, huge = grown.get("numa_pte_updates"), grown.get("numa_huge_pte_updates")
        faults, local = grown.get("numa_hint_faults"), grown.get("numa_hint_faults_local")
        moved = grown.get("numa_pages_migrated")
        rows: dict[str, tuple[str, xr.DataArray]] = {}
        if pte is not None:
            rows["NUMA base-page range updates"] = ("pages", pte)
        if pte is not None and huge is not None:
            rows["NUMA PTE updates"] = ("pages", pte - HUGE_PAGES * huge)
        if huge is not None:
            rows["NUMA PMD updates"] = ("1", huge)
        if faults is not None:
            rows["NUMA hint faults"] = ("1", faults)
        if local is not None:
            rows["NUMA hint local faults %"] = ("1", local)
        if faults is not None and local is not None:
            rows["NUMA hint local percent"] = ("percent", (100 * local / faults.where(faults > 0)).fillna(100.0))
        if moved is not None:
            rows["NUMA pages migrated"] = ("pages", moved)
        if pte is not None and faults is not None and moved is not None:
            rows["AutoNUMA cost"] = ("million accesses", autonuma_cost(pte, faults, moved))
        return xr.Dataset({name: row.assign_attrs(units=units, long_name=name) for name, (units, row) in rows.items()})


def _together(node: NDArray[Any], task: int) -> NDArray[np.bool_]:
    """Tell at each sample whether the tasks of an axis are on one node; of (run, time, task), the tasks anywhere."""
    node = np.moveaxis(node, task, -1)
    samples = node.shape[1]
    last = samples - 1 - (node[:, ::-1] >= 0).argmax(axis=1)
    at = np.minimum(np.arange(samples), last.max(axis=1, keepdims=True))
    now = np.take_along_axis(node, at[:, :, None], axis=1)
    there = at[:, :, None] <= last[:, None]
    lowest = np.where(there, now, np.iinfo(now.dtype).max).min(axis=2)
    return np.asarray((lowest >= 0) & (lowest == np.where(there, now, -1).max(axis=2)))
