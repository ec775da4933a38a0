"""What comes out: recorded beside twin, what-if beside twin, and the warning where the twin does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import welch
from numalab.quantities import PAGES_OVER_TIME, Series
from numalab.text import table
from numalab.validate.judge import BAND

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One quantity, recorded and in the twin.

    Attributes
    ----------
    quantity, units, what : str
    recorded : float
    twin, low, high : float
        Median and 90 % band over seeds; NaN where undefined.
    fits : bool
        The recorded value lies in the band, or the median within 25 % of it, and the band is no wider than a factor
        of 3; or both are as good as 0.
    why : str
        Why it does not fit, fits without telling anything, or fits only within a floor.
    """

    quantity: str
    units: str
    what: str
    recorded: float
    twin: float
    low: float
    high: float
    fits: bool
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """Twin over recorded; None where undefined, and of distances, which have no ratio that tells anything."""
        if not self.recorded or math.isnan(self.twin) or self.quantity == PAGES_OVER_TIME:
            return None
        return self.twin / self.recorded

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; None for what is undefined."""
        return plain({**asdict(self), "ratio": self.ratio})


@dataclass(frozen=True)
class Fit:
    """The twin beside the recording.

    Attributes
    ----------
    rows : tuple of Row
    ds : xarray.Dataset
        The twin's runs, one for each seed.
    series : dict
        Quantity -> its course over time, recorded and in the twin.
    until : float
        Seconds.
    name : str
        Of the recording.
    """

    rows: tuple[Row, ...]
    ds: xr.Dataset = field(repr=False)
    series: Mapping[str, tuple[Series, Series]] = field(repr=False)
    until: float
    name: str

    @property
    def warning(self) -> str:
        """Where the twin does not fit, and by how much; empty if it fits."""
        off = [row for row in self.rows if not row.fits]
        if not off:
            return ""
        listed = "; ".join(f"{row.quantity} {_how_far(row)}" for row in off)
        return (
            f"the twin does not fit the recording in {len(off)} of {len(self.rows)} quantities: {listed}. "
            "What it says of these is not to be relied on, what depends on them neither."
        )

    @property
    def text(self) -> str:
        """A table for people."""
        head = ["quantity", "recorded", "twin", "5-95 %", "ratio", "fits"]
        lines = [
            [
                row.quantity,
                number(row.recorded),
                number(row.twin),
                band(row.low, row.high),
                "-" if row.ratio is None else f"{row.ratio:.2f}",
                ("yes" if row.fits else "no") + (f" ({row.why})" if row.why else ""),
            ]
            for row in self.rows
        ]
        return table(head, lines, left=1)


def _how_far(row: Row) -> str:
    if row.quantity == PAGES_OVER_TIME:
        return f"({row.why}: {row.recorded:.2f}, they {row.twin:.2f})"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} of the recorded"
    return f"{ratio} ({row.why})" if ratio else f"({row.why}: recorded {number(row.recorded)}, twin {number(row.twin)})"


@dataclass(frozen=True)
class Effect:
    """One quantity, in the twin and in the what-if.

    Attributes
    ----------
    quantity, units, what : str
    base, base_low, base_high, value, low, high : float
        Medians and 90 % bands over seeds.
    p : float or None
        Chance of such a difference by the seeds alone (Welch); None where it is not known.
    """

    quantity: str
    units: str
    what: str
    base: float
    base_low: float
    base_high: float
    value: float
    low: float
    high: float
    p: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the difference is more than the seeds'; None where that is not known."""
        return None if self.p is None else self.p < welch.ALPHA

    @property
    def change(self) -> float | None:
        """What-if over twin, less 1."""
        return self.value / self.base - 1 if self.base else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; None for what is undefined."""
        return plain({**asdict(self), "change": self.change, "beyond_noise": self.beyond_noise})


def effect_of(quantity: str, units: str, what: str, base: Values, other: Values) -> Effect | None:
    """Compare two sets of seeds; None where one has no value."""
    known = [values[~np.isnan(values)] for values in (base, other)]
    if not all(len(values) for values in known):
        return None
    samples = [
        welch.Sample(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0, len(values))
        for values in known
    ]
    found = welch.compare(samples[0], samples[1])
    (base_low, base_middle, base_high), (low, middle, high) = (
        (float(one) for one in np.quantile(values, (BAND[0], 0.5, BAND[1]))) for values in known
    )
    p = None if found is None else found.p
    return Effect(quantity, units, what, base_middle, base_low, base_high, middle, low, high, p)


@dataclass(frozen=True)
class AtRate:
    """The same what-if, with threads that touch memory at another rate that the recording does not rule out.

    Attributes
    ----------
    pages_per_s : float
        Of each thread.
    effects : tuple of Effect
        Beside the twin at that rate.
    """

    pages_per_s: float
    effects: tuple[Effect, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"pages_per_s": self.pages_per_s, "effects": [one.to_dict() for one in self.effects]}


@dataclass(frozen=True)
class WhatIf:
    """A what-if beside the twin.

    Attributes
    ----------
    spec : str
        As it was asked.
    effects : tuple of Effect
    warning : str
        That of the twin: where it does not fit the recording.
    ds : xarray.Dataset
        Its runs.
    series : dict
        Quantity -> its course over time.
    ends : tuple of AtRate
        At the ends of the rates that the recording does not tell apart; empty where it does.
    """

    spec: str
    effects: tuple[Effect, ...]
    warning: str
    ds: xr.Dataset = field(repr=False)
    series: Mapping[str, Series] = field(repr=False)
    ends: tuple[AtRate, ...] = ()

    @property
    def text(self) -> str:
        """A table for people."""
        head = ["quantity", "twin", "5-95 %", f"with {self.spec}", "5-95 %", "change", "beyond noise"]
        head += [f"at {end.pages_per_s:,.0f}/s" for end in self.ends]
        lines = [
            [
                one.quantity,
                number(one.base),
                band(one.base_low, one.base_high),
                number(one.value),
                band(one.low, one.high),
                _change(one),
                {True: "yes", False: "no", None: "not known"}[one.beyond_noise],
                *(_change_at(end, one.quantity) for end in self.ends),
            ]
            for one in self.effects
        ]
        return table(head, lines, left=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "what_if": self.spec,
            "effects": [one.to_dict() for one in self.effects],
            "ends": [end.to_dict() for end in self.ends],
            "warning": self.warning,
        }


def _change(one: Effect) -> str:
    return "-" if one.change is None else f"{one.change:+.0%}"


def _change_at(end: AtRate, quantity: str) -> str:
    """Return the change at another rate, in brackets where it is no more than the seeds' own."""
    for one in end.effects:
        if one.quantity == quantity:
            return f"({_change(one)})" if one.beyond_noise is False else _change(one)
    return "-"


def number(value: float) -> str:
    """Return a number for reading."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def band(low: float, high: float) -> str:
    """Return a band for reading."""
    return f"{number(low)} .. {number(high)}"


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace what JSON cannot hold."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
