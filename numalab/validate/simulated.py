"""A case in the model: the same machine, workload and kernel, over seeds, sampled as the real runs were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import quantities
from numalab.compile import compile_layout
from numalab.layout import Layout
from numalab.quantities import QUANTITIES, Series
from numalab.scenarios import MONITOR_NAME, scenario
from numalab.simulation import simulate
from numalab.validate.cases import Case, Trace

Values = NDArray[np.float64]

#: How often the model is recorded, s; S1's load looks at its threads as often.
RECORD_S = 0.2
#: Samples of two logs this far apart are taken as simultaneous, s.
NEAR_S = 1.0
_RECORDED = (
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_fail",
    "migrate_refused",
    "pages",
    "task_node",
    "preferred_nid",
    "preferred_changes",
    "task_run_ms",
    "task_wait_ms",
    "task_work_pages",
    "task_end_s",
)
_LEFT_OUT = (
    "numa_huge_pte_updates",
    "pgmigrate_success",
    "minor_faults",
    "free_pages",
    "scan_period_ms",
    "numa_group_id",
    "total_numa_faults",
    "task_sys_ms",
    "scan_seq",
)


@dataclass
class Outcome:
    """What a case gave, in numbers.

    Attributes
    ----------
    case : Case
    real : dict
        Quantity -> values of its traces (trace,), NaN where undefined.
    model : dict
        Quantity -> values of the seeds (seed,).
    pages : tuple or None
        RMS differences of page shares: trace to seed (trace, seed), seed to seed, and how much happened.
    bound : bool
        No task may ever leave its node.
    notes : tuple of str
        What of the command the model does not follow.
    series : dict
        Quantity -> series of each trace, and of the model.
    """

    case: Case
    real: dict[str, Values] = field(default_factory=dict)
    model: dict[str, Values] = field(default_factory=dict)
    pages: tuple[Values, Values, Values] | None = None
    bound: bool = False
    notes: tuple[str, ...] = ()
    series: dict[str, tuple[list[Series], Series]] = field(default_factory=dict)


def run(case: Case, seeds: int) -> Outcome:
    """Simulate a case and take every quantity of both sides.

    Parameters
    ----------
    case : Case
    seeds : int
        Runs of the model, one batch.

    Raises
    ------
    numalab.scenarios.ScenarioError
        The model cannot follow the load.
    """
    with case.first.folder() as path:
        told = scenario(path)
    until = min(case.until_s, told.seconds)
    layout = compile_layout(told.machine, told.workload)
    parameters: dict[str, Any] = {name: round(value) for name, value in told.params.items()}
    every = dict.fromkeys(_RECORDED, RECORD_S) | dict.fromkeys(_LEFT_OUT, None)
    ds = simulate(
        told.machine,
        told.workload,
        told.kernel,
        seconds=until,
        seeds=seeds,
        every=every,
        **parameters,
    )
    # the monitor, last of all, is no part of the load; the kernel's counters count it too
    own = sum(group.count for group in told.workload.processes if group.name != MONITOR_NAME)
    owners = _owners(layout)
    if quantities.kernel_counter(case.first.ds, "setnuma", until) is None:
        # seen in samples only, as on the real kernel
        ds = ds.drop_vars("preferred_changes")
    ds = ds.assign_coords(region_process=("region", owners))
    ds = ds.isel(task=ds["task_process"].values < own, region=owners < own)
    outcome = Outcome(case, bound=_bound(layout, own), notes=told.notes)
    sampled = quantities.like(ds, case.first.ds, until)
    for quantity in QUANTITIES:
        reals = real_values(quantity.name, case.traces, until)
        values = None if reals is None else quantity.value(sampled, until)
        if reals is None or values is None:
            continue
        outcome.real[quantity.name], outcome.model[quantity.name] = reals, values
        if quantity.series is not None:
            drawn = [found for one in case.traces if (found := quantity.series(one.ds, until)) is not None]
            simulated = quantity.series(sampled, until)
            if drawn and simulated is not None:
                outcome.series[quantity.name] = (drawn, simulated)
    outcome.pages = _pages(case, sampled, until)
    return outcome


def real_values(name: str, traces: tuple[Trace, ...], until: float) -> Values | None:
    """Return a quantity of real runs: (trace,), NaN where one does not have it; None when no one has."""
    quantity = next(one for one in QUANTITIES if one.name == name)
    found = [quantity.value(one.ds, until) for one in traces]
    values = np.array([np.nan if value is None else float(value[0]) for value in found])
    return None if np.isnan(values).all() else values


def _owners(layout: Layout) -> NDArray[np.int64]:
    """Return the process that maps each region, -1 where several do: (G,)."""
    owners = np.full(len(layout.region_first), -1, np.int64)
    for g in range(len(owners)):
        users = np.unique(layout.vma_process[layout.vma_region == g])
        if len(users) == 1:
            owners[g] = users[0]
    return owners


def _bound(layout: Layout, processes: int) -> bool:
    """Say whether every task of the first processes may use the CPUs of one node only, the same at all times."""
    nodes = np.unique(layout.cpu_node)
    affinity = layout.affinity[:, layout.task_process < processes]
    allowed = np.stack([affinity[:, :, layout.cpu_node == n].any(axis=2) for n in nodes], axis=2)
    return bool((allowed.any(axis=0).sum(axis=1) == 1).all())


def _pages(case: Case, sampled: xr.Dataset, until: float) -> tuple[Values, Values, Values] | None:
    own = quantities.page_shares(sampled, until)
    shares = [quantities.page_shares(one.ds, until) for one in case.traces]
    if own is None or any(found is None for found in shares):
        return None
    known = [found for found in shares if found is not None]
    aligned = [_at(found, own[0]) for found in known]
    real = np.concatenate([quantities.rms(found, own) for found in aligned])
    start = [(found[0], np.repeat(found[1][:, :1], found[1].shape[1], axis=1)) for found in known]
    signal = np.array([quantities.rms(a, b)[0, 0] for a, b in zip(known, start, strict=True)])
    return real, quantities.rms(own, own), signal


def _at(found: tuple[Values, Values], times: Values) -> tuple[Values, Values]:
    """Take shares at the times of another repetition, each from the nearest sample: the logs are a second apart."""
    index = np.abs(found[0][None, :] - times[:, None]).argmin(axis=1)
    near = np.abs(found[0][index] - times) <= NEAR_S
    return times[near], found[1][:, index[near]]
