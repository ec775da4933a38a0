"""Which factor matters: Morris screening and Sobol indices through SALib, with the seeds' noise beside them.

A point's value is the mean over its seeds. What the seeds still make of it is the *noise*: the variance that the mean
of so many seeds has by itself, as a share of the variance over all points. It lifts the indices of all factors. What
it would give a factor without influence is the *floor*: of total-order indices (Jansen's estimator, half the mean
squared difference) the noise itself; of mu* the mean size of the difference of two such means, over Morris's step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.sweeps import factors
from numalab.sweeps.designs import LEVELS, Sampling, problem_of
from numalab.sweeps.extra import need
from numalab.sweeps.quantities import censored, quantity
from numalab.sweeps.store import SweepError, spec_of
from numalab.text import table

Floats = NDArray[np.float64]
#: Of the bootstrap behind the confidence intervals.
_SEED, _LEVEL = 0, 0.95


@dataclass(frozen=True)
class Index:
    """How much one factor matters.

    Attributes
    ----------
    factor : str
    total, total_conf : float
        Sobol: the total-order index; Morris: mu*, the mean size of the effect of the whole range. With half the width
        of the 95 % interval.
    first, first_conf : float
        Sobol: the first-order index, with the same; Morris: sigma, how much the effect varies from point to point
        (without an interval: NaN).
    """

    factor: str
    total: float
    total_conf: float
    first: float
    first_conf: float


@dataclass(frozen=True)
class Sensitivity:
    """What matters for a quantity.

    Attributes
    ----------
    method, quantity, units : str
    within : dict
        Values of the factors that are not sampled.
    indices : list of Index
        What matters most first.
    variance : float
        Over points, of the means over seeds.
    noise : float
        Share of it that the seeds alone make; NaN with one seed.
    floor : float
        Total-order index or mu* that noise alone gives; NaN with one seed.
    never, runs : int
        Runs in which the time did not come, for which the length of the run stands; and all.
    """

    method: str
    quantity: str
    units: str
    within: dict[str, Any]
    indices: list[Index]
    variance: float
    noise: float
    floor: float
    never: int
    runs: int

    def plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""

        def known(value: float) -> float | None:
            return None if np.isnan(value) else value

        rows = [{key: known(x) if key != "factor" else x for key, x in vars(one).items()} for one in self.indices]
        mine = {key: value for key, value in vars(self).items() if key != "indices"}
        return {**mine, "noise": known(self.noise), "floor": known(self.floor), "indices": rows}

    @property
    def text(self) -> str:
        """A table and what it says."""
        sobol = self.method == "sobol"
        head = ["factor", *(["total", "+-", "first", "+-"] if sobol else ["mu*", "+-", "sigma"])]
        rows = [
            [one.factor, *(f"{x:.3g}" for x in (one.total, one.total_conf, one.first, one.first_conf)[: len(head) - 1])]
            for one in self.indices
        ]
        where = ", ".join(f"{name} = {value}" for name, value in self.within.items())
        title = f"{self.quantity} [{self.units}], {self.method}{f', {where}' if where else ''}"
        return "\n".join([title, table(head, rows), *self._words()])

    def _words(self) -> list[str]:
        words = [self._most()]
        if np.isnan(self.noise):
            if self.variance:
                words.append("One seed a point: how much of this is the seeds' noise is not known.")
        else:
            what = "a total index" if self.method == "sobol" else "a mu*"
            words.append(
                f"Seeds make {100 * self.noise:.1f} % of the variance over points; "
                f"noise alone gives a factor {what} of about {self.floor:.3g}."
            )
        if self.never:
            words.append(f"In {self.never} of {self.runs} runs the time did not come; the run's length stands for it.")
        return words

    def _most(self) -> str:
        """Name what matters: what is larger than what noise alone gives, by more than its interval."""
        if not self.variance:
            return "The quantity is the same at all points."
        floor = 0.0 if np.isnan(self.floor) else self.floor
        some = [one.factor for one in self.indices if one.total - one.total_conf > floor]
        if not some:
            return "No factor is shown to matter."
        return f"Matters most: {some[0]}" + (
            f"; then {', '.join(some[1:])}." if some[1:] else "; no other is shown to."
        )


def sensitivity(ds: xr.Dataset, name: str) -> list[Sensitivity]:
    """Say which factor of a sweep with ``morris`` or ``sobol`` matters for a quantity.

    Parameters
    ----------
    ds : xarray.Dataset
        A sweep, all of whose runs are done.
    name : str
        Quantity.

    Returns
    -------
    list of Sensitivity
        One for each combination of the factors that were not sampled.

    Raises
    ------
    SweepError
        The sweep has another design, runs are missing, or the quantity is unknown in some.
    """
    spec = spec_of(ds)
    if spec.sampling is None or spec.sampling.method == "latin_hypercube":
        raise SweepError("sensitivity needs a sweep with [sweep.morris] or [sweep.sobol]; this has neither")
    known = quantity(ds, name)
    if known.sizes["run"] < ds.sizes["run"]:
        raise SweepError(
            f"{ds.sizes['run'] - known.sizes['run']} of {ds.sizes['run']} runs failed or are to do, and the design "
            "needs all; continue the sweep, or choose narrower ranges"
        )
    values, never = censored(known, ds)
    if unknown := int(np.isnan(values.values).sum()):
        raise SweepError(f"{name}: is unknown in {unknown} runs (nothing over nothing); choose another quantity")
    assert spec.units is not None
    rest = [factor for factor in spec.factors if factor not in spec.sampling.ranges]
    units = str(known.attrs.get("units", ""))
    points, found = spec.points(), []
    for start in range(0, spec.size, len(spec.units)):
        # the sampled factors vary fastest: one sample after the other
        part = slice(start * len(spec.seeds), (start + len(spec.units)) * len(spec.seeds))
        values_here = _in_order(values)[part].reshape(len(spec.units), -1)
        within = {factor: factors.stored(points[start][factor]) for factor in rest}
        found_here = analyse(spec.sampling, spec.units, values_here)
        count = int(_in_order(never)[part].sum())
        found.append(Sensitivity(spec.sampling.method, name, units, within, *found_here, count, values_here.size))
    return found


def _in_order(values: xr.DataArray) -> NDArray[Any]:
    """Return values along ``run`` in the order of the design's points."""
    return np.asarray(values.values[np.argsort(values["point"].values, kind="stable")])


def analyse(
    sampling: Sampling, units: Sequence[Sequence[float]], values: Floats
) -> tuple[list[Index], float, float, float]:
    """Compute indices from the values at the points of a design.

    Parameters
    ----------
    sampling : Sampling
        Morris or Sobol.
    units : sequence of sequence of float
        Its sample, (points, factors).
    values : array
        (points, seeds).

    Returns
    -------
    indices, variance, noise, floor
        As in :class:`Sensitivity`.
    """
    means = values.mean(axis=1)
    variance = float(means.var())
    seeds = values.shape[1]
    of_mean = float(values.var(axis=1, ddof=1).mean() / seeds) if seeds > 1 else np.nan
    noise = of_mean / variance if variance else np.nan
    step = LEVELS / (2 * (LEVELS - 1))
    floor = noise if sampling.method == "sobol" else 2 * np.sqrt(of_mean / np.pi) / step
    names = list(sampling.ranges)
    if not variance:
        return [Index(name, 0.0, 0.0, 0.0, 0.0) for name in names], 0.0, noise, floor
    problem = problem_of(names)
    if sampling.method == "morris":
        module = need("SALib.analyze.morris")
        got = module.analyze(
            problem, np.array(units), means, num_levels=LEVELS, conf_level=_LEVEL, seed=_SEED, print_to_console=False
        )
        columns = (got["mu_star"], got["mu_star_conf"], got["sigma"], np.full(len(names), np.nan))
    else:
        module = need("SALib.analyze.sobol")
        got = module.analyze(problem, means, calc_second_order=False, conf_level=_LEVEL, seed=_SEED)
        columns = (got["ST"], got["ST_conf"], got["S1"], got["S1_conf"])
    indices = [Index(name, *(float(x) for x in row)) for name, *row in zip(names, *columns, strict=True)]
    return sorted(indices, key=lambda one: -one.total), variance, noise, floor
