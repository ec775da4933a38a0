"""Running a sweep: from the first call to the last of those that continue it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

import numalab
from numalab import runs
from numalab.kernel import Kernel
from numalab.machine import Machine
from numalab.schema import DONE, FAILED_RUN, TO_DO
from numalab.simulation import Simulation
from numalab.sweeps import backends, store
from numalab.sweeps.batch import Result, job, simulate_batch
from numalab.sweeps.plan import Plan, first_buildable, plan
from numalab.sweeps.spec import BATCH, Spec, tables
from numalab.sweeps.store import SweepError
from numalab.sweeps.template import along_run, template
from numalab.workload import Workload


def sweep(
    machine: Machine | str | Mapping[str, Any],
    workload: Workload | str | Mapping[str, Any],
    kernel: Kernel | str | Mapping[str, Any],
    *,
    store: str | os.PathLike[str],
    seconds: float,
    seeds: int | Sequence[int] = 1,
    grid: Mapping[str, Any] | None = None,
    lists: Mapping[str, Any] | None = None,
    latin_hypercube: Mapping[str, Any] | None = None,
    morris: Mapping[str, Any] | None = None,
    sobol: Mapping[str, Any] | None = None,
    keep: Sequence[str] | Mapping[str, float] = (),
    batch: int = BATCH,
    workers: int = 1,
    client: Any = None,
    retry_failed: bool = False,
    any_revision: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate many runs into a zarr store, or go on where an earlier call with the same arguments ended.

    Parameters
    ----------
    machine, workload, kernel
        A name, an object, or a table as in a description file: arguments of a workload can be swept only where it is
        a name or table with a preset.
    store : path-like
        A folder, made by the first call.
    seconds : float
        Simulated time of each run.
    seeds : int or sequence of int
        Every point is run with each; a number n stands for the seeds 0 to n - 1.
    grid : mapping of str to sequence, optional
        Factor to its values: every combination. A factor is a model parameter or a kernel switch by its name,
        ``kernel``, ``patch``, ``machine`` or ``workload`` (presets), ``workload.ARGUMENT``, ``machine.ARGUMENT``,
        ``rate.REGION``.
    lists : mapping of str to sequence, optional
        Factor to its values, of one length: the first of each, the second of each, and so on.
    latin_hypercube, morris, sobol : mapping, optional
        One of them: ``{"n": 50, "seed": 0, "ranges": {"remote_cost": [100, 1000]}}``.
    keep : sequence of str, or mapping of str to float
        Variables to keep over time beside one number for each run and quantity; with seconds between samples.
    batch : int
        Runs that are simulated side by side, and stored together.
    workers : int
        Processes; with 1 everything is done in this one.
    client : distributed.Client, optional
        In place of that: a cluster. Results are the same.
    retry_failed : bool
        Run again what has failed.
    any_revision : bool
        Go on even if another version of numalab began the store.
    progress : bool
        Show on stderr how far it is.

    Returns
    -------
    xarray.Dataset
        As :func:`numalab.sweeps.open` returns it. Runs that failed have a ``status`` and a ``failure`` that say so.

    Raises
    ------
    DescriptionError
        A factor or value that cannot be; names its key.
    SweepError
        The store holds another sweep, or was begun by another numalab.
    """
    given = {
        "grid": grid, "list": lists, "latin_hypercube": latin_hypercube, "morris": morris, "sobol": sobol,
        "keep": keep if isinstance(keep, str | Mapping) else list(keep), "batch": batch,
    }  # fmt: skip
    table = {key: value for key, value in given.items() if value is not None}
    spec = Spec.build(tables(machine, workload, kernel, seconds, seeds), table)
    return run(
        spec, store, workers=workers, client=client, retry_failed=retry_failed, any_revision=any_revision,
        progress=progress,
    )  # fmt: skip


def run(
    spec: Spec,
    path: str | os.PathLike[str],
    *,
    workers: int = 1,
    client: Any = None,
    retry_failed: bool = False,
    any_revision: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Do what :func:`sweep` does with a sweep that was described otherwise; parameters as there."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # of two that begin the same store at once, the second finds it made
    with store.locked(target.parent, wait=True):
        if target.exists():
            _same(spec, target)
        else:
            begin(spec, target)
    return continue_(
        target, workers=workers, client=client, retry_failed=retry_failed, any_revision=any_revision, progress=progress
    )


def _same(spec: Spec, path: Path) -> None:
    """Check that a store holds this sweep.

    Raises
    ------
    SweepError
        Says what differs.
    """
    if lines := spec.differences(store.spec_of(store.open(path))):
        raise SweepError(f"{path}: holds another sweep ({'; '.join(lines)}); give another name, or remove it")


def begin(spec: Spec, path: Path) -> None:
    """Make the store of a sweep, with nothing done.

    Raises
    ------
    DescriptionError, SimulationError
        No setup can be built, or a factor does not belong to it.
    """
    made = plan(spec.drawn())
    _try(made)
    store.create(path, template(made), along_run(made), made.batch)


def _try(made: Plan) -> None:
    """Check what only a simulation can, by setting one up: the parameters of the first run."""
    described, values = first_buildable(made), made.rows[0].values
    rates = {name.partition(".")[2]: int(value) for name, value in values.items() if name.startswith("rate.")}
    Simulation(
        described.machine, described.workload, described.kernel, seconds=made.spec.seconds, rates=rates,
        step_us=made.spec.step_us,
    )  # fmt: skip


def continue_(
    path: str | os.PathLike[str],
    *,
    workers: int = 1,
    client: Any = None,
    retry_failed: bool = False,
    any_revision: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Do what is still to do in a store; parameters as those of :func:`sweep`."""
    target = Path(path)
    ds = store.open(target)
    made, begun = plan(store.spec_of(ds)), store.made_by(ds)
    if not any_revision:
        _check_made_by(begun, (numalab.__version__, runs.revision()), f"{target}: was begun by", "this is")
    with store.locked(target):
        filled = store.Store(target)
        status = filled.status()
        wanted = np.isin(status, (TO_DO, FAILED_RUN) if retry_failed else (TO_DO,))
        places = {batch: np.flatnonzero(wanted[made.span(batch)]) for batch in range(made.batches)}
        jobs = [job(made, batch, [int(x) for x in some]) for batch, some in places.items() if len(some)]
        results = backends.in_processes(jobs, workers) if client is None else backends.on_cluster(jobs, client)
        with closing(results), _bar(len(status), int((~wanted).sum()), shown=progress) as step:
            for result in results:
                if client is not None and not any_revision:
                    _check_made_by(begun, result.made_by, f"{target}: was begun by", "a worker of the cluster has")
                filled.write(made.span(result.batch), result)
                step(len(result.places))
    return store.open(target)


def _check_made_by(one: tuple[str, str | None], two: tuple[str, str | None], first: str, second: str) -> None:
    """Refuse to mix what two versions of numalab simulate.

    Raises
    ------
    SweepError
    """
    if one != two:
        told = [f"numalab {version} ({revision or 'no revision'})" for version, revision in (one, two)]
        raise SweepError(
            f"{first} {told[0]}, {second} {told[1]}, whose results may differ; "
            "begin another store, or mix them with any_revision=True (--any-revision)"
        )


class _bar:
    """A bar on a terminal, elsewhere a line now and then."""

    def __init__(self, total: int, done: int, *, shown: bool) -> None:
        every = 0.2 if sys.stderr.isatty() else 30.0
        self._bar = tqdm(
            total=total, initial=done, unit="run", desc="sweep", disable=not shown, mininterval=every, file=sys.stderr
        )

    def __enter__(self) -> Callable[[int], None]:
        return self._bar.update

    def __exit__(self, *error: object) -> None:
        self._bar.close()


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    done, failed, to_do : int
        Runs.
    failures : dict
        Message to the runs it stopped.
    """

    done: int
    failed: int
    to_do: int
    failures: dict[str, list[int]]


def status(ds: xr.Dataset) -> Progress:
    """Say how far a sweep is.

    Parameters
    ----------
    ds : xarray.Dataset
        What `numalab.sweeps.open` returned.
    """
    values = ds["status"].values
    failures: dict[str, list[int]] = {}
    failed = np.flatnonzero(values == FAILED_RUN)
    if len(failed):
        for number, why in zip(failed, ds["failure"].values[failed], strict=True):
            failures.setdefault(str(why), []).append(int(number))
    return Progress(int((values == DONE).sum()), len(failed), int((values == TO_DO).sum()), failures)


@dataclass(frozen=True)
class Trial:
    """What a sweep will take.

    Attributes
    ----------
    points, runs, setups, batches : int
    size : int
        Bytes of the results before compression.
    first_s : float
        What the first batch took on the wall clock.
    first : Result
        What came out of it.
    """

    points: int
    runs: int
    setups: int
    batches: int
    size: int
    first_s: float
    first: Result

    def estimate_s(self, workers: int) -> float:
        """Return how long all batches take if they are like the first, s."""
        return self.first_s * -(-self.batches // workers)


def trial(spec: Spec) -> Trial:
    """Simulate the first batch of a sweep, store nothing, and say what all of it will take.

    Parameters
    ----------
    spec : Spec
    """
    made = plan(spec.drawn())
    _try(made)
    like = template(made)
    size = sum(variable.nbytes for variable in like.data_vars.values()) * len(made.rows)
    begun = time.monotonic()
    first = simulate_batch(job(made, 0))
    took = time.monotonic() - begun
    return Trial(spec.size, len(made.rows), len(made.setups), made.batches, size, took, first)
