"""Recorded beside twin: the quantities, their bands, and what fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import quantities
from numalab.derived import time_axis
from numalab.quantities import QUANTITIES, Quantity, Series
from numalab.twin._result import Row
from numalab.twin._seen import WHOLE, Evidence
from numalab.validate.judge import CLOSE, SAME_SHARES, judge, judge_distance

Values = NDArray[np.float64]

#: Those of `numalab.quantities` that a recording and a twin both have.
_SHARED = (
    "numa_pte_updates",
    "pte_updates_third_1",
    "pte_updates_third_2",
    "pte_updates_third_3",
    "numa_hint_faults",
    "local_share",
    "numa_pages_migrated",
    "main_node_share",
)


class Sides:
    """The recording, cut to what is in the twin, and how to take the quantities of both.

    Parameters
    ----------
    ds : xarray.Dataset
        The recording.
    found : Evidence
    regions : sequence of str
        Its regions that are in the twin.
    """

    def __init__(self, ds: xr.Dataset, found: Evidence, regions: Sequence[str]) -> None:
        tasks = [task.tid for process in found.processes for task in process.tasks]
        cut = ds.sel(task=tasks, region=list(regions))
        # one that follows a cgroup counted it alone; the machine's counters count all
        self.recorded, self.own_counters = _of_cgroup(cut)
        self.until = found.seconds
        whole = _pages(self.recorded, self.until)
        # processes that ended have no pages: they are compared while these were there
        self._pages_until = float(whole[0][-1]) if whole is not None else 0.0
        self._nodes = found.nodes

    def quantities(self) -> list[Quantity]:
        """Return those that the recording has."""
        shared = {one.name: one for one in QUANTITIES}
        every = [shared[name] for name in _SHARED]
        every += [_on_node(node, self._pages_until) for node in self._nodes]
        return [one for one in every if one.value(self.recorded, self.until) is not None]

    def sampled(self, twin: xr.Dataset) -> xr.Dataset:
        """Sample a run of the twin as the recording was."""
        return quantities.like(twin, self.recorded, self.until)

    def rows(self, twin: xr.Dataset) -> list[Row]:
        """Judge each quantity, and the pages by node over time."""
        sampled = self.sampled(twin)
        rows = []
        for one in self.quantities():
            real, model = one.value(self.recorded, self.until), one.value(sampled, self.until)
            if real is None or model is None or np.isnan(real).all():
                continue
            told = judge(real, model, widest_spread=None, floor=one.floor)
            rows.append(
                Row(one.name, one.units, one.what, told.real, told.model, told.low, told.high, told.inside, told.why)
            )
        distance = self._distance(sampled)
        return [*rows, distance] if distance else rows

    def _distance(self, sampled: xr.Dataset) -> Row | None:
        real, model = (_node_shares(ds, self._pages_until) for ds in (self.recorded, sampled))
        if real is None or model is None or sampled.sizes["run"] < 2:
            return None
        first = (real[0], np.repeat(real[1][:, :1], real[1].shape[1], axis=1))
        signal = float(quantities.rms(real, first)[0, 0])
        told = judge_distance(quantities.rms(real, model), quantities.rms(model, model), signal)
        # below a quarter of how far the recorded pages moved, distances are not told apart
        floor = max(SAME_SHARES, CLOSE * signal)
        within = told.real <= floor and (told.real > told.high or not told.inside)
        what = "pages by node over time: mean distance from the seeds, as a share of all pages"
        inside, why = told.inside or within, f"within the floor of {floor:.2g}" if within else told.why
        return Row(quantities.PAGES_OVER_TIME, "1", what, told.real, told.model, told.low, told.high, inside, why)

    def series(self, twin: xr.Dataset) -> dict[str, tuple[Series, Series]]:
        """Return the courses over time of both: quantity -> recorded, twin."""
        sampled = self.sampled(twin)
        out = {}
        for one in self.quantities():
            if one.series is None:
                continue
            real, model = one.series(self.recorded, self.until), one.series(sampled, self.until)
            if real is not None and model is not None:
                out[one.name] = (real, model)
        return out


def _of_cgroup(ds: xr.Dataset) -> tuple[xr.Dataset, bool]:
    """Put the counters of a cgroup in the place of the machine's, where it has such."""
    names = ds["counter"].values.tolist() if "counter" in ds.coords else []
    own = {name.removeprefix("cgroup_"): name for name in names if name.startswith("cgroup_numa_")}
    if not {"numa_pte_updates", "numa_hint_faults"} <= own.keys():
        return ds, False
    counters = {
        name: ds["counters"].sel(counter=label, drop=True) for name, label in own.items() if name in ds.data_vars
    }
    # which of the faults were local a cgroup does not count
    return ds.drop_vars("numa_hint_faults_local", errors="ignore").assign(counters), True


def _pages(ds: xr.Dataset, until: float) -> tuple[Values, Values] | None:
    """Return all pages by node where as many are there as ever: times, (run, time, node)."""
    if "pages" not in ds:
        return None
    axis = time_axis(ds["pages"])
    table = ds["pages"].transpose("run", axis, "region", "node").values.sum(axis=2).astype(float)
    times = ds[axis].values
    total = table.sum(axis=2)
    there = (times >= 0) & (times <= until + 1e-9) & (total >= WHOLE * total.max(initial=0)).all(axis=0)
    return (times[there], table[:, there]) if there.any() and total.max(initial=0) else None


def _node_shares(ds: xr.Dataset, until: float) -> tuple[Values, Values] | None:
    found = _pages(ds, until)
    if found is None:
        return None
    times, table = found
    share = table / table.sum(axis=2, keepdims=True)
    return times, share[:, :, None]


def _on_node(node: int, last: float) -> Quantity:
    def series(ds: xr.Dataset, until: float) -> Series | None:
        found = _pages(ds, min(until, last))
        return None if found is None else (found[0], found[1][:, :, ds["node"].values.tolist().index(node)])

    def value(ds: xr.Dataset, until: float) -> Values | None:
        found = series(ds, until)
        return None if found is None else np.asarray(found[1][:, -1])

    return Quantity(
        f"pages_node_{node}",
        "pages",
        f"pages on node {node}, at the end or while processes had their memory",
        value,
        series,
        _FLOOR,
    )


#: Pages on a node that are as good as none.
_FLOOR = quantities.FLOOR_PAGES


def _system_time(ds: xr.Dataset, until: float) -> Values | None:
    if "task_sys_ms" not in ds:
        return None
    axis = time_axis(ds["task_sys_ms"])
    return np.asarray(ds["task_sys_ms"].transpose("run", axis, "task").values[:, -1].sum(axis=1) / 1000)


def _work(ds: xr.Dataset, until: float) -> Values | None:
    if "task_work_pages" not in ds:
        return None
    axis = time_axis(ds["task_work_pages"])
    return np.asarray(ds["task_work_pages"].transpose("run", axis, "task").values[:, -1].sum(axis=1) / until)


_Take = Callable[[xr.Dataset, float], Values | None]
#: What only the model tells, for what-ifs.
MODEL_ONLY: tuple[tuple[str, str, str, _Take], ...] = (
    ("page_rate", "pages/s", "pages visited per s by all tasks: the work done", _work),
    ("system_time", "s", "time in the kernel for balancing, of all tasks", _system_time),
)
