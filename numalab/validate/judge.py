"""The rules of judging: when a quantity counts as inside, and when it is counted at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: A model median this close to the real value is inside, as a share of it.
CLOSE = 0.25
#: A band of the model wider than this says nothing.
WIDEST = 3.0
#: With fewer repetitions than this their own spread is not trusted.
ENOUGH = 3
BAND = (0.05, 0.95)
#: Page shares that differ by less are the same.
SAME_SHARES = 0.02


@dataclass(frozen=True)
class Row:
    """One quantity of one case: real beside model.

    Attributes
    ----------
    case : str
        The name of the case; for an effect the two labels.
    trace : str
        The same, or the repetitions that are meant.
    quantity, units : str
    kind : {"quantity", "effect"}
    real, real_low, real_high : float or None
        Mean over repetitions, minus and plus its uncertainty.
    n_real : int
        Repetitions.
    model, low, high : float or None
        Median and 90 % band over seeds; None where the model has none.
    ratio : float or None
        Model over real.
    inside : bool
    strict : bool
        Inside without the real value's uncertainty.
    sign : bool or None
        Effects: whether the model has the sign of the real one; None where the real effect is within its spread.
    fitted : bool
        Constants may have been fitted to these traces.
    counted : bool
    why : str
        Why it is outside, or not counted.
    """

    case: str
    trace: str
    quantity: str
    units: str
    kind: str
    real: float | None
    real_low: float | None
    real_high: float | None
    n_real: int
    model: float | None
    low: float | None
    high: float | None
    ratio: float | None
    inside: bool
    strict: bool
    sign: bool | None
    fitted: bool
    counted: bool
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON can hold it: numbers to six digits."""
        return {key: _short(value) if isinstance(value, float) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """Make a row of what :meth:`to_dict` gave."""
        return cls(**data)


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


@dataclass(frozen=True)
class Judgement:
    """The numbers and the verdict of a row."""

    real: float
    real_low: float
    real_high: float
    model: float
    low: float
    high: float
    inside: bool
    strict: bool
    why: str

    @property
    def ratio(self) -> float | None:
        """Model over real."""
        return self.model / self.real if self.real and not math.isnan(self.model) else None

    def row(
        self, names: tuple[str, str], quantity: str, units: str, n_real: int, *, fitted: bool, why_not: str = ""
    ) -> Row:
        """Make a row of it: of a case and its trace, with the reason why it is not counted, if there is one."""
        numbers = {name: _known(getattr(self, name)) for name in ("real_low", "real_high", "model", "low", "high")}
        return Row(
            case=names[0],
            trace=names[1],
            quantity=quantity,
            units=units,
            kind="quantity",
            real=self.real,
            n_real=n_real,
            ratio=self.ratio,
            inside=self.inside,
            strict=self.strict,
            sign=None,
            fitted=fitted,
            counted=not why_not,
            why=why_not or self.why,
            **numbers,
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def relative_spread(values: Values) -> float | None:
    """Return the standard deviation of repetitions over their mean; None for fewer than two, or a mean of 0."""
    values = values[~np.isnan(values)]
    if len(values) < 2 or not values.mean():
        return None
    return float(values.std(ddof=1) / abs(values.mean()))


def widest(repetitions: Sequence[Values]) -> float | None:
    """Return the widest relative spread among cases; None when none has two repetitions."""
    spreads = [spread for values in repetitions if (spread := relative_spread(values)) is not None]
    return max(spreads, default=None)


def judge(real: Values, model: Values, *, widest_spread: float | None, floor: float = 0.0) -> Judgement:
    """Judge a quantity.

    Parameters
    ----------
    real : array (repetition,)
    model : array (seed,)
        NaN where undefined.
    widest_spread : float or None
        Widest relative spread of this quantity in the thread, the uncertainty of fewer than three repetitions.
    floor : float
        Up to it a value is as good as 0.

    Returns
    -------
    Judgement
        Inside: the real value lies in the model's 90 % band, or the model's median within 25 % of it or within its
        uncertainty, and the band is no wider than a factor of 3; or both are as good as 0.
    """
    mean = float(real.mean())
    if len(real) >= ENOUGH:
        spread = float(real.std(ddof=1))
    else:
        spread = abs(mean) * (widest_spread or 0.0)
    # none of the quantities can be negative
    return _verdict(mean, max(0.0, mean - spread), mean + spread, model, floor)


def judge_effect(
    before: Values, after: Values, model: Values, *, widest_spread: float | None, floor: float = 0.0
) -> tuple[Judgement, bool | None]:
    """Judge what a switch does to a quantity.

    Parameters
    ----------
    before, after : array (repetition,)
        Paired.
    model : array (seed,)
        After minus before.
    widest_spread, floor
        As for :func:`judge`.

    Returns
    -------
    Judgement
        Of after minus before.
    bool or None
        Whether the model's median has the real sign; None when the real effect does not exceed its spread or floor,
        or repetitions disagree on its sign.
    """
    effect = after - before
    mean = float(effect.mean())
    if len(effect) >= ENOUGH:
        spread = float(effect.std(ddof=1))
    else:
        spread = math.hypot(before.mean(), after.mean()) * (widest_spread or 0.0)
    verdict = _verdict(mean, mean - spread, mean + spread, model, floor)
    agree = (effect > 0).all() or (effect < 0).all()
    if not agree or abs(mean) <= max(spread, floor) or math.isnan(verdict.model):
        return verdict, None
    return verdict, verdict.model * mean > 0


def _verdict(real: float, real_low: float, real_high: float, model: Values, floor: float) -> Judgement:
    known = model[~np.isnan(model)]
    if len(known) < len(model) / 2:
        nan = math.nan
        return Judgement(real, real_low, real_high, nan, nan, nan, False, False, "undefined in the model")
    low, middle, high = (float(value) for value in np.quantile(known, (BAND[0], 0.5, BAND[1])))
    if abs(real) <= floor and abs(middle) <= floor:
        return Judgement(real, real_low, real_high, middle, low, high, True, True, "both as good as 0")
    strict = low <= real <= high or abs(middle - real) <= CLOSE * abs(real)
    inside = strict or real_low <= middle <= real_high
    if max(abs(low), abs(high)) > WIDEST * min(abs(low), abs(high)) or low * high < 0:
        return Judgement(real, real_low, real_high, middle, low, high, False, False, "band wider than a factor of 3")
    why = "" if inside else "too low" if middle < real else "too high"
    return Judgement(real, real_low, real_high, middle, low, high, inside, strict, why)


def judge_distance(real: Values, own: Values, signal: float) -> Judgement:
    """Judge how far real page shares lie from the model's.

    Parameters
    ----------
    real : array (repetition, seed)
        RMS differences between each repetition and each seed.
    own : array (seed, seed)
        Those between the seeds themselves.
    signal : float
        RMS difference between the real shares and what they were at the start: how much happened.

    Returns
    -------
    Judgement
        "Real" is the mean difference between real runs and seeds, "model" that of a seed from the other seeds.
        Inside: real runs lie no farther from the seeds than 95 % of the seeds do, or within 25 % of what happened,
        and the seeds' band is no wider than a factor of 3.
    """
    count = len(own)
    between = (own.sum(axis=1) - own.diagonal()) / max(1, count - 1)
    per_run = real.mean(axis=1)
    low, middle, high = (float(value) for value in np.quantile(between, (BAND[0], 0.5, BAND[1])))
    mean = float(per_run.mean())
    wide = high > max(WIDEST * low, SAME_SHARES)
    inside = not wide and (mean <= high or mean <= CLOSE * signal)
    far = "farther from the seeds than they from each other"
    why = "" if inside else "band wider than a factor of 3" if wide else far
    return Judgement(mean, float(per_run.min()), float(per_run.max()), middle, low, high, inside, inside, why)
