"""One batch: simulated anywhere, and sent back as arrays. What fails is told run by run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import numalab
from numalab import describe, runs
from numalab.kernel import KernelWarning
from numalab.model.record import USUAL
from numalab.simulation import simulate
from numalab.sweeps import factors, outputs
from numalab.sweeps.plan import Plan, Row

Array = NDArray[Any]
#: Letters of a message that are kept.
LONGEST = 300


@dataclass(frozen=True)
class Job:
    """Runs to simulate, as they travel to a worker.

    Attributes
    ----------
    batch : int
    places : tuple of int
        Positions of the runs within the batch.
    rows : tuple of Row
    setups : dict of int to dict
        Descriptions by the number of the setup.
    seconds : float
    step_us : int
    keep : dict
    """

    batch: int
    places: tuple[int, ...]
    rows: tuple[Row, ...]
    setups: dict[int, dict[str, Any]]
    seconds: float
    step_us: int
    keep: dict[str, float]


@dataclass(frozen=True)
class Result:
    """What came out.

    Attributes
    ----------
    batch : int
    places : tuple of int
    failures : tuple of str
        Empty where a run was simulated.
    arrays : dict
        Variable to its values, (len(places), ...); anything where a run failed.
    made_by : tuple
        Version and revision of the numalab that simulated.
    """

    batch: int
    places: tuple[int, ...]
    failures: tuple[str, ...]
    arrays: dict[str, Array]
    made_by: tuple[str, str | None]


def job(plan: Plan, batch: int, places: Sequence[int] | None = None) -> Job:
    """Make the job of a batch.

    Parameters
    ----------
    plan : Plan
    batch : int
    places : sequence of int, optional
        Only these runs of it, by position; default: all.
    """
    span = plan.span(batch)
    chosen = tuple(range(len(span))) if places is None else tuple(places)
    rows = tuple(plan.rows[span[place]] for place in chosen)
    setups = {row.setup: plan.setups[row.setup] for row in rows}
    return Job(batch, chosen, rows, setups, plan.spec.seconds, plan.spec.step_us, plan.spec.keep)


def name_of(one: Job) -> str:
    """Name a job in messages."""
    return str(one.batch)


def simulate_batch(one: Job) -> Result:
    """Simulate a job, setup by setup.

    Parameters
    ----------
    one : Job

    Returns
    -------
    Result
        The same wherever and in whatever company its runs are simulated.
    """
    failures: list[str] = []
    parts: list[dict[str, Array] | None] = []
    with warnings.catch_warnings():
        # a patch that changes nothing need not be told run by run
        warnings.simplefilter("ignore", KernelWarning)
        for setup, rows in groupby(one.rows, key=lambda row: row.setup):
            for count, outcome in _setup(one, one.setups[setup], list(rows)):
                failures += [outcome if isinstance(outcome, str) else ""] * count
                parts.append(None if isinstance(outcome, str) else outcome)
    counts = [1 if part is None else len(next(iter(part.values()))) for part in parts]
    made_by = (numalab.__version__, runs.revision())
    return Result(one.batch, one.places, tuple(failures), _joined(parts, counts), made_by)


def died(one: Job, why: str) -> Result:
    """Return the result of a job whose processes ended again and again."""
    return Result(one.batch, one.places, (why[:LONGEST],) * len(one.places), {}, (numalab.__version__, runs.revision()))


def _setup(one: Job, setup: dict[str, Any], rows: list[Row]) -> Iterable[tuple[int, dict[str, Array] | str]]:
    """Simulate runs of one setup; after a failure each alone, to see which it was."""
    try:
        described = describe.build(setup)
    except Exception as error:
        yield from ((1, _message(error)) for _ in rows)
        return
    try:
        yield len(rows), _kept(_simulated(one, described, rows), one)
        return
    except Exception as error:
        if len(rows) == 1:
            yield 1, _message(error)
            return
    for row in rows:
        yield from _setup(one, setup, [row])


def _simulated(one: Job, described: describe.Description, rows: list[Row]) -> xr.Dataset:
    names = [name for name in rows[0].values if factors.along_run(name)]
    rates: dict[str, list[int]] = {}
    parameters: dict[str, Any] = {"step_us": one.step_us}
    for name in names:
        column = [int(row.values[name]) for row in rows]
        if name.startswith("rate."):
            rates[name.removeprefix("rate.")] = column
        else:
            parameters[name] = column
    return simulate(
        described.machine,
        described.workload,
        described.kernel,
        seconds=one.seconds,
        seeds=[row.seed for row in rows],
        every=outputs.recorded(one.keep, one.seconds, USUAL),
        rates=rates,
        paired=True,
        **parameters,
    )


def _kept(ds: xr.Dataset, one: Job) -> dict[str, Array]:
    return {**outputs.numbers(ds), **outputs.totals(ds, one.keep), **outputs.series(ds, one.keep)}


def _joined(parts: list[dict[str, Array] | None], counts: list[int]) -> dict[str, Array]:
    known = [part for part in parts if part is not None]
    if not known:
        return {}
    out = {}
    for name, like in known[0].items():
        pieces = [
            np.zeros((count, *like.shape[1:]), like.dtype) if part is None else part[name]
            for part, count in zip(parts, counts, strict=True)
        ]
        out[name] = np.concatenate(pieces)
    return out


def _message(error: Exception) -> str:
    """Return what went wrong in one line: numalab's own errors say it, others need their type."""
    ours = isinstance(error, ValueError) and type(error).__module__.partition(".")[0] == "numalab"
    text = " ".join((str(error) if ours else f"{type(error).__name__}: {error}").split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
