"""The quantities by which a model run and a real one are compared.

Each is one function of a run dataset (:mod:`numalab.schema`), whether simulated or measured; what differs between
the two is only where a thing was recorded. All look at the time from 0 s, when the work began, to ``until``.
Sample both sides at the same times first (:func:`like`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import runs
from numalab.derived import time_axis
from numalab.schema import MOVE, SLEEPING, SWAP, is_time

Values = NDArray[np.float64]
#: Times (time,) in s, and values (run, time).
Series = tuple[Values, Values]

#: Share of a process's pages on one node from which it counts as local.
LOCAL_SHARE = 0.9
#: A process counts as converged when it stays on one node for this long, s (as the loads of S1 report it).
HOLD_S = 2.0
#: Two samples of logs of the same second may lie this far apart, s.
SLACK_S = 0.05


@dataclass(frozen=True)
class Quantity:
    """One number of a run.

    Attributes
    ----------
    name, units, what : str
    value : callable (dataset, until) -> (run,) or None
        None: was not recorded, or does not apply. NaN: undefined for that run.
    series : callable (dataset, until) -> (times, (run, time)) or None
        How it came about over time, for figures.
    floor : float
        What a guest shows without the load doing anything (see docs/validation.md); up to it, it is as good as 0.
    effect : bool
        Whether the effect of a switch on it is judged: not of parts of another quantity.
    """

    name: str
    units: str
    what: str
    value: Callable[[xr.Dataset, float], Values | None]
    series: Callable[[xr.Dataset, float], Series | None] | None = None
    floor: float = 0.0
    effect: bool = True


# ---------------------------------------------------------------- sampling


def like(simulated: xr.Dataset, measured: xr.Dataset, until: float) -> xr.Dataset:
    """Sample a simulated run at the times of a measured one, each variable where the measured one has it.

    Parameters
    ----------
    simulated : xarray.Dataset
        Recorded more finely than it is sampled here.
    measured : xarray.Dataset
    until : float
        Seconds.

    Returns
    -------
    xarray.Dataset
        Variables the measured run lacks keep their own times.
    """
    axes = {
        name: time_axis(measured[name])
        for name in simulated.data_vars
        if name in measured and any(map(is_time, map(str, measured[name].dims)))
    }
    if "threads" in measured:
        axes["task_node"] = "time_threads"
    parts: dict[str, xr.DataArray] = {}
    for name, array in simulated.data_vars.items():
        own = [dim for dim in map(str, array.dims) if is_time(dim)]
        if own and name in axes:
            wanted = measured[axes[name]].values
            wanted = wanted[(wanted >= 0) & (wanted <= until + SLACK_S)]
            at = np.searchsorted(array[own[0]].values, wanted + 1e-9, side="right") - 1
            # the simulated run has a "time" of its own
            target = "time_counter" if axes[name] == "time" else axes[name]
            array = array.isel({own[0]: at}).rename({own[0]: target}).assign_coords({target: wanted})
        parts[str(name)] = array
    fixed = {name: coord for name, coord in simulated.coords.items() if not any(map(is_time, map(str, coord.dims)))}
    return xr.Dataset(parts, fixed, attrs=simulated.attrs)


def _cut(array: xr.DataArray, until: float) -> Series:
    """Return a variable from 0 s to ``until``: times, and values with run and time first."""
    dim = time_axis(array)
    array = array.transpose("run", dim, ...)
    times = array[dim].values
    keep = (times >= 0) & (times <= until + SLACK_S)
    return times[keep], array.values[:, keep]


def _counted(array: xr.DataArray, until: float) -> Series:
    """Return a counter's growth since work began: from the last sample up to 0 s, or the first there is."""
    dim = time_axis(array)
    array = array.transpose("run", dim)
    times, values = array[dim].values, array.values.astype(float)
    base = max(0, int(np.searchsorted(times, 0.0, side="right")) - 1)
    keep = (times >= 0) & (times <= until + SLACK_S)
    return times[keep], values[:, keep] - values[:, [base]]


def _last(series: Series | None) -> Values | None:
    return None if series is None or not len(series[0]) else series[1][:, -1]


# ---------------------------------------------------------------- counters


def counter(name: str) -> Callable[[xr.Dataset, float], Series | None]:
    """Return the function that gives the growth of a counter over time."""

    def series(ds: xr.Dataset, until: float) -> Series | None:
        return _counted(ds[name], until) if name in ds else None

    return series


def kernel_counter(ds: xr.Dataset, name: str, until: float) -> Series | None:
    """Return a counter of the kernel with switches (layout B), which omits what is 0; None on other runs."""
    if "counter" not in ds.coords or "blocked_samples" not in ds["counter"].values:
        return None
    if name in ds["counter"].values:
        return _counted(ds["counters"].sel(counter=name), until)
    times, values = _counted(ds["counters"].isel(counter=0), until)
    return times, np.zeros_like(values)


def third(number: int) -> Callable[[xr.Dataset, float], Values | None]:
    """Return the function that gives the PTE updates in one third of the time (0, 1 or 2)."""

    def value(ds: xr.Dataset, until: float) -> Values | None:
        series = counter("numa_pte_updates")(ds, until)
        if series is None or not len(series[0]):
            return None
        times, values = series
        ends = np.searchsorted(times, [until * number / 3, until * (number + 1) / 3 + SLACK_S], side="right") - 1
        before = values[:, ends[0]] if ends[0] >= 0 else np.zeros(len(values))
        return np.asarray(values[:, ends[1]] - before)

    return value


def local_share_series(ds: xr.Dataset, until: float) -> Series | None:
    """Share of the hint faults so far that were local; NaN before the first."""
    faults, local = (counter(name)(ds, until) for name in ("numa_hint_faults", "numa_hint_faults_local"))
    if faults is None or local is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return faults[0], np.where(faults[1] > FLOOR_PAGES, local[1] / faults[1], np.nan)


def failures_series(ds: xr.Dataset, until: float) -> Series | None:
    """Page migrations that failed, and those refused before they were tried where somebody counted them."""
    failed, refused = counter("pgmigrate_fail")(ds, until), counter("migrate_refused")(ds, until)
    if failed is None or refused is None or len(refused[0]) != len(failed[0]):
        return failed
    return failed[0], failed[1] + refused[1]


# ---------------------------------------------------------------- tasks


def _events(ds: xr.Dataset, kind: int, until: float) -> Series:
    times = np.arange(0.0, until + 1e-9, 0.5)
    times = np.append(times[times < until], until)
    values = np.zeros((ds.sizes["run"], len(times)))
    for run in range(ds.sizes["run"]):
        rows = int(ds["event_count"].values[run])
        own = ds["event_time_s"].values[run, :rows][ds["event_kind"].values[run, :rows] == kind]
        values[run] = np.searchsorted(np.sort(own[own >= 0]), times, side="right")
    return times, values


def task_events(kind: int, kernel_name: str) -> Callable[[xr.Dataset, float], Series | None]:
    """Return the function that counts moves or swaps: from the events, or the kernel's counter."""

    def series(ds: xr.Dataset, until: float) -> Series | None:
        if "event_kind" in ds:
            return _events(ds, kind, until)
        return kernel_counter(ds, kernel_name, until)

    return series


def preferred_series(ds: xr.Dataset, until: float) -> Series | None:
    """Count changes of preferred nodes, the first choice included; where no counter tells, those between samples."""
    told = counter("preferred_changes")(ds, until)
    told = kernel_counter(ds, "setnuma", until) if told is None else told
    if told is not None or "preferred_nid" not in ds:
        return told
    times, node = _cut(ds["preferred_nid"], until)
    before = np.concatenate([np.full_like(node[:, :1], -1), node[:, :-1]], axis=1)
    return times, ((node >= 0) & (node != before)).sum(axis=2).cumsum(axis=1).astype(float)


def workers(ds: xr.Dataset, until: float) -> NDArray[np.bool_]:
    """Tell which tasks do the work (task,): not those that sleep nearly always, as many main threads do."""
    if "task_state" in ds:
        _, state = _cut(ds["task_state"], until)
        seen, asleep = (state >= 0).sum(axis=(0, 1)), (state == SLEEPING).sum(axis=(0, 1))
        return np.asarray(asleep < 0.9 * seen)
    if "task_run_ms" in ds:
        _, ran = _cut(ds["task_run_ms"], until)
        return np.asarray(ran[:, -1].mean(axis=0) >= 0.02 * 1000 * until)
    return np.ones(ds.sizes["task"], dtype=bool)


def threads_on_nodes(ds: xr.Dataset, until: float) -> tuple[Values, Values] | None:
    """Return the working threads of each process by node: times, (run, time, process, node).

    Processes are those with two such threads or more; None when there is none.
    """
    if "threads" in ds:
        times, table = _cut(ds["threads"], until)
        several = table.sum(axis=3).max(axis=(0, 1), initial=0) >= 2
        return (times, table[:, :, several].astype(float)) if several.any() else None
    if "task_node" not in ds:
        return None
    times, place = _cut(ds["task_node"], until)
    working, owner = workers(ds, until), ds["task_process"].values
    groups = [np.flatnonzero(working & (owner == process)) for process in np.unique(owner[owner >= 0])]
    groups = [group for group in groups if len(group) >= 2]
    if not groups:
        return None
    labels = ds["node"].values
    return times, np.stack([(place[:, :, group, None] == labels).sum(axis=2) for group in groups], axis=2, dtype=float)


def main_node_series(ds: xr.Dataset, until: float) -> Series | None:
    """Share of a process's threads that are on the node where most of them are, mean over processes."""
    found = threads_on_nodes(ds, until)
    if found is None:
        return None
    times, table = found
    known = table.sum(axis=3)
    with np.errstate(invalid="ignore"):
        share = np.where(known > 0, table.max(axis=3) / known, np.nan)
    usable = ~np.isnan(share).all(axis=(0, 2))
    return times[usable], np.nanmean(share[:, usable], axis=2)


def _could_converge(ds: xr.Dataset, table: Values) -> bool:
    """Tell whether every process fits on a node when CPUs are shared evenly."""
    per_node = min(np.unique(ds["cpu_node"].values, return_counts=True)[1])
    threads = table.sum(axis=3).max(axis=(0, 1))
    return bool(threads.max() <= per_node * np.ceil(threads.sum() / ds.sizes["cpu"]))


def _together(ds: xr.Dataset, until: float) -> tuple[Values, NDArray[np.bool_]] | None:
    found = threads_on_nodes(ds, until)
    if found is None or not _could_converge(ds, found[1]):
        return None
    times, table = found
    full = table.sum(axis=3).max(axis=1, keepdims=True)
    # All threads must be seen: one that has not started yet keeps its process from counting.
    return times, (table.max(axis=3) == full).all(axis=2)


def convergence_time(ds: xr.Dataset, until: float) -> Values | None:
    """Time from which every process was on one node for two seconds; ``until`` if never."""
    found = _together(ds, until)
    if found is None:
        return None
    times, state = found
    answer = np.full(len(state), float(until))
    for run, good in enumerate(state):
        bad = np.append(times[~good], np.inf)
        for i in np.flatnonzero(good):
            next_bad = bad[np.searchsorted(bad, times[i])]
            if min(next_bad, times[-1]) - times[i] >= HOLD_S - 1e-9:
                answer[run] = times[i]
                break
    return answer


def converged_share(ds: xr.Dataset, until: float) -> Values | None:
    """Share of the samples in which every process is on one node."""
    found = _together(ds, until)
    return None if found is None else found[1].mean(axis=1)


def main_node_share(ds: xr.Dataset, until: float) -> Values | None:
    """Return the mean over time of `main_node_series`."""
    found = main_node_series(ds, until)
    return None if found is None or not len(found[0]) else np.nanmean(found[1], axis=1)


# ---------------------------------------------------------------- memory


def page_shares(ds: xr.Dataset, until: float) -> tuple[Values, Values] | None:
    """Return the share of each process's pages by node: times, (run, time, process, node).

    Regions of no process of their own (``region_process`` -1) are everybody's. Left out are mapped programs and
    libraries, and samples in which a run has no pages, before its start and after its end.
    """
    if "pages" not in ds:
        return None
    times, pages = _cut(ds["pages"], until)
    owner = ds["region_process"].values if "region_process" in ds.coords else np.full(ds.sizes["region"], -1)
    pages = np.where(_programs(ds, pages, owner)[:, None], 0, pages)
    if (owner < 0).any() and "task_process" in ds.coords:
        processes = np.unique(ds["task_process"].values)
    else:
        processes = np.unique(owner)
    table = np.stack([pages[:, :, (owner == p) | (owner < 0)].sum(axis=2) for p in processes], axis=2, dtype=float)
    table = table[:, :, table.sum(axis=3).max(axis=(0, 1), initial=0) > 0]
    whole = table.sum(axis=3, keepdims=True)
    there = (whole > 0).all(axis=(0, 2, 3))
    if not there.any() or not table.shape[2]:
        return None
    return times[there], table[:, there] / whole[:, there]


def _programs(ds: xr.Dataset, pages: Values, owner: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which regions are mappings of files that are not the load's memory: (region,).

    A load may use the data section of its program: a mapping that is the largest of its process is kept.
    """
    if ds.attrs["source"] != "measured":
        return np.zeros(len(owner), dtype=bool)
    files = np.array([" /" in name and " /dev/" not in name for name in ds["region"].values.tolist()], dtype=bool)
    size = pages.sum(axis=3).max(axis=(0, 1), initial=0)
    largest = np.array([size[owner == one].max() for one in owner])
    return np.asarray(files & (size < largest))


def main_pages_series(ds: xr.Dataset, until: float) -> Series | None:
    """Share of a process's pages on the node that holds most of them at the end, mean over processes."""
    found = page_shares(ds, until)
    if found is None:
        return None
    times, share = found
    home = share[:, -1].argmax(axis=2)
    return times, np.take_along_axis(share, home[:, None, :, None], axis=3)[..., 0].mean(axis=2)


def time_to_local(ds: xr.Dataset, until: float) -> Values | None:
    """Time from which 90 % of a process's pages stay on the node that holds most of them at the end.

    Mean over processes; one that does not get there counts as ``until``.
    """
    found = page_shares(ds, until)
    if found is None:
        return None
    times, share = found
    home = share[:, -1].argmax(axis=2)
    own = np.take_along_axis(share, home[:, None, :, None], axis=3)[..., 0]
    stays = np.logical_and.accumulate((own >= LOCAL_SHARE)[:, ::-1], axis=1)[:, ::-1]
    first = np.where(stays.any(axis=1), times[stays.argmax(axis=1)], until)
    return np.asarray(first.mean(axis=1))


def rms(one: tuple[Values, Values], other: tuple[Values, Values]) -> Values:
    """Return the root mean square difference of page shares between runs of two datasets: (run, other run).

    Compared are the times that both have, and as many processes, in order, as both have.
    """
    _, i, j = np.intersect1d(one[0], other[0], return_indices=True)
    processes = min(one[1].shape[2], other[1].shape[2])
    a, b = one[1][:, i, :processes], other[1][:, j, :processes]
    return np.asarray(np.sqrt(((a[:, None] - b[None, :]) ** 2).sum(axis=-1).mean(axis=(2, 3)) / 2))


# ---------------------------------------------------------------- work and waiting


def waiting_series(ds: xr.Dataset, until: float) -> Series | None:
    """Mean number of tasks that wait for a page, disk or lock (state D), since the start."""
    total_waiting, looks = (kernel_counter(ds, f"blocked_{what}", until) for what in ("sum", "samples"))
    if total_waiting is not None and looks is not None:
        return looks[0], total_waiting[1] / np.maximum(looks[1], 1)
    if "task_wait_ms" not in ds:
        return None
    times, waited = _cut(ds["task_wait_ms"], until)
    return times, waited.sum(axis=2) / 1000 / np.maximum(times, 1e-3)


def _work(ds: xr.Dataset, until: float) -> Values | None:
    """Return the work of each working task: passes as the load printed them, or pages (run, task)."""
    if "task_work_pages" in ds:
        _, work = _cut(ds["task_work_pages"], until)
        done = work[:, -1]
        return np.asarray(done[:, done.mean(axis=0) > 0.02 * done.mean(axis=0).max()])
    passes = runs.provenance(ds).get("passes") or {}
    return np.array([list(passes.values())], dtype=float) if len(passes) >= 2 else None


def reader(pick: Callable[..., Values]) -> Callable[[xr.Dataset, float], Values | None]:
    """Return the function that gives the slowest (np.min) or fastest (np.max) worker's work over the mean."""

    def value(ds: xr.Dataset, until: float) -> Values | None:
        done = _work(ds, until)
        return None if done is None or done.shape[1] < 2 else pick(done, axis=1) / done.mean(axis=1)

    return value


def _worked_s(ds: xr.Dataset, until: float) -> Values:
    """Return when the last task of each run ended, or else ``until``, s: (run,)."""
    if "task_end_s" not in ds:
        return np.full(ds.sizes["run"], until)
    _, ends = _cut(ds["task_end_s"], until)
    return np.asarray(np.fmin(until, ends[:, -1].max(axis=1)))


def page_rate(ds: xr.Dataset, until: float) -> Values | None:
    """Pages visited per second by all tasks; of measured runs where the load tells."""
    if "task_work_pages" in ds:
        _, work = _cut(ds["task_work_pages"], until)
        return np.asarray(work[:, -1].sum(axis=1) / _worked_s(ds, until))
    how = runs.provenance(ds)
    told, words = how.get("results") or {}, str(how.get("command", "")).split()
    if words[:2] == ["nlwl", "cow"] and "per_s" in told:
        return np.array([told["per_s"] * float(words[3]) * 256])
    if words[:1] == ["cowread"] and "-m" in words and told.get("secs"):
        return np.array([told["sums"] / told["secs"] * float(words[words.index("-m") + 1]) * 256])
    rate = told.get("pages_per_s", told.get("per_s"))
    return None if rate is None else np.array([float(rate)])


# ---------------------------------------------------------------- the table

#: Pages outside the load's arrays that a guest scans in a run: S0 `nb1_skip`, repetition 1 (101 in b_wrongnode_bound).
FLOOR_PAGES = 118
#: As a share of the 8192 pages of b_*.
FLOOR_SHARE = FLOOR_PAGES / 8192
#: Pages too busy to be moved, in a run with room: S2 `roomy`, repetition 1.
FLOOR_REFUSED = 25
#: Tasks in state D for other reasons than migrations: S2, repetition 1.
FLOOR_WAITING = 0.05


def _at_end(
    name: str, units: str, what: str, series: Callable[[xr.Dataset, float], Series | None], floor: float = 0.0
) -> Quantity:
    """Make a quantity of the last value of a series."""
    return Quantity(name, units, what, lambda ds, until: _last(series(ds, until)), series, floor)


def _third(number: int, which: str) -> Quantity:
    what = f"pages marked in the {which} third"
    return Quantity(f"pte_updates_third_{number}", "pages", what, third(number - 1), None, FLOOR_PAGES, False)


QUANTITIES: tuple[Quantity, ...] = (
    _at_end("numa_pte_updates", "pages", "pages marked by the scanner", counter("numa_pte_updates"), FLOOR_PAGES),
    _at_end("numa_hint_faults", "1", "hint faults", counter("numa_hint_faults"), FLOOR_PAGES),
    _at_end("local_share", "1", "share of hint faults that were local", local_share_series, FLOOR_SHARE),
    _at_end(
        "numa_pages_migrated", "pages", "pages migrated by hint faults", counter("numa_pages_migrated"), FLOOR_PAGES
    ),
    _at_end("migrate_failures", "pages", "page migrations that failed or were refused", failures_series, FLOOR_REFUSED),
    Quantity("time_to_local", "s", "time to 90 % of the pages on one node", time_to_local, main_pages_series),
    _at_end("task_moves", "1", "tasks moved to another node", task_events(MOVE, "move_ok")),
    _at_end("task_swaps", "1", "tasks swapped", task_events(SWAP, "swap_ok")),
    _at_end("preferred_changes", "1", "changes of preferred nodes", preferred_series),
    _third(1, "first"),
    _third(2, "second"),
    _third(3, "last"),
    Quantity("convergence_time", "s", "time from which every process is on one node for 2 s", convergence_time),
    Quantity("converged_share", "1", "share of time with every process on one node", converged_share, effect=False),
    Quantity(
        "main_node_share", "1", "share of threads on their process's main node", main_node_share, main_node_series
    ),
    _at_end("waiting_tasks", "1", "tasks that wait (state D), mean", waiting_series, FLOOR_WAITING),
    Quantity("slowest_worker", "1", "work of the slowest task over the mean", reader(np.min)),
    Quantity("fastest_worker", "1", "work of the fastest task over the mean", reader(np.max)),
    Quantity("page_rate", "pages/s", "pages visited per s by all tasks", page_rate),
)
#: Judged by its distance, not as a number: see `rms`.
PAGES_OVER_TIME = "pages_over_time"
