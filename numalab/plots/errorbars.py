"""Runs and what error bars make of them: every run a mark, means, and bars that say what they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from numalab import welch
from numalab.plots import style
from numalab.plots.picture import Floats, Picture, PictureError, listed
from numalab.text import table


@dataclass(frozen=True)
class Spread:
    """What some runs say together.

    Attributes
    ----------
    n : int
        Runs with a value.
    without : int
        Runs without, such as those that never converged.
    mean : float
        Of those with a value; NaN without any.
    deviation : float
        Standard deviation with n - 1: how far one run lies from the others. NaN below two runs.
    error : float
        Standard error: how far the mean would lie from that of so many other runs.
    reach : float
        Half of the 95 % confidence interval of the mean.
    """

    n: int
    without: int
    mean: float
    deviation: float
    error: float
    reach: float


def spread(values: Floats) -> Spread:
    """Sum up runs.

    Parameters
    ----------
    values : array (run,)
        NaN: this run has no value.
    """
    known = values[~np.isnan(values)]
    n, without = len(known), len(values) - len(known)
    if n < 2:
        return Spread(n, without, float(known.mean()) if n else math.nan, math.nan, math.nan, math.nan)
    deviation = float(known.std(ddof=1))
    error = deviation / math.sqrt(n)
    return Spread(n, without, float(known.mean()), deviation, error, error * welch.t_quantile(0.975, n - 1))


@dataclass
class Response(Picture):
    """A quantity against what was varied: every run, the mean and its 95 % interval.

    Attributes
    ----------
    groups : dict of str to (run,) array
        Value of what was varied -> the quantity in each run.
    varied, quantity : str
        Axis labels.
    """

    groups: Mapping[str, Floats]
    varied: str
    quantity: str

    def __post_init__(self) -> None:
        if not self.groups:
            raise PictureError("expected at least one group of runs to draw, got none")
        self._spreads = {label: spread(values) for label, values in self.groups.items()}

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw runs as marks, means with bars beside them; runs without a value stand on top."""
        (ax,) = axes
        top = max((float(np.nanmax(v)) for v in self.groups.values() if not np.isnan(v).all()), default=1.0)
        never = 1.12 * top
        for k, (label, values) in enumerate(self.groups.items()):
            known = values[~np.isnan(values)]
            ax.plot(
                _beside(k - 0.12, len(known)), known, "o", color=style.SKY, mec="#333333", mew=0.5, ms=6, label="a run"
            )
            if self._spreads[label].without:
                missing = self._spreads[label].without
                ax.plot(
                    _beside(k - 0.12, missing), [never] * missing, "X", color=style.VERMILION, ms=7,
                    label="a run without a value",
                )  # fmt: skip
        at = np.arange(len(self.groups)) + 0.2
        means = [one.mean for one in self._spreads.values()]
        reach = [one.reach for one in self._spreads.values()]
        ax.errorbar(at, means, reach, color=style.BLACK, fmt="none", capsize=6, lw=2)
        ax.plot(at, means, "s-", color=style.BLACK, ms=7, lw=1, label="mean, and its 95 % interval")
        style.dress(ax, "", self.varied, self.quantity)
        ax.set_xticks(range(len(self.groups)), list(self.groups))
        ax.set_xlim(-0.5, len(self.groups) - 0.5)
        ax.set_ylim(0, 1.2 * top)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Runs, mean, standard deviation and interval of each group."""
        cells = []
        for label, one in self._spreads.items():
            interval = f"{one.mean - one.reach:.3g} to {one.mean + one.reach:.3g}" if one.n > 1 else "-"
            runs = f"{one.n} of {one.n + one.without}"
            cells.append([label, runs, f"{one.mean:.3g}", f"{one.deviation:.2g}", interval])
        return table([self.varied, "runs", f"mean {self.quantity}", "deviation", "95 % of the mean"], cells, left=0)

    @property
    def alt(self) -> str:
        """The means and intervals, and how many runs have no value."""
        words = [
            f"{label}: {one.mean:.3g}" + (f" ± {one.reach:.2g}" if one.n > 1 else "")
            for label, one in self._spreads.items()
        ]
        without = sum(one.without for one in self._spreads.values())
        missing = f" {without} runs have no value and are in no mean." if without else ""
        return f"Mean {self.quantity} by {self.varied}, with its 95 % interval: {listed(words)}.{missing}"


def _beside(centre: float, count: int) -> Floats:
    """Return places for marks around a centre, so that equal values do not hide each other."""
    return centre + 0.16 * (np.arange(count) / max(1, count - 1) - 0.5)


@dataclass
class Bars(Picture):
    """The same runs with three kinds of bars: deviation, standard error, interval; for the first n runs and for all.

    Attributes
    ----------
    values : (run,) array
    quantity : str
    few : int
    """

    values: Floats
    quantity: str
    few: int = 4

    def __post_init__(self) -> None:
        self._sets = {f"first {self.few} runs": self.values[: self.few], f"all {len(self.values)} runs": self.values}

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw both sets beside each other."""
        (ax,) = axes
        looks = (
            ("standard deviation: of one run", style.SKY, "o"),
            ("standard error: of the mean", style.ORANGE, "^"),
            ("95 % interval of the mean", style.BLACK, "s"),
        )
        for k, values in enumerate(self._sets.values()):
            one = spread(values)
            known = values[~np.isnan(values)]
            ax.plot(_beside(2 * k - 0.6, len(known)), known, ".", color="#555555", ms=9, label="a run")
            for j, ((label, colour, marker), reach) in enumerate(
                zip(looks, (one.deviation, one.error, one.reach), strict=True)
            ):
                x = 2 * k - 0.15 + 0.35 * j
                ax.errorbar([x], [one.mean], [reach], color=colour, fmt="none", capsize=6, lw=2.4)
                ax.plot([x], [one.mean], marker, color=colour, mec="#333333", ms=9, label=label)
        style.dress(ax, "", "", self.quantity)
        ax.set_xticks([0, 2], list(self._sets))
        ax.set_xlim(-1, 3)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Deviation, error and interval of both sets."""
        cells = []
        for label, values in self._sets.items():
            one = spread(values)
            cells.append([label, *(f"{x:.3g}" for x in (one.mean, one.deviation, one.error, one.reach))])
        return table([self.quantity, "mean", "deviation", "error", "interval ±"], cells, left=1)

    @property
    def alt(self) -> str:
        """What the bars of both sets say."""
        words = []
        for label, values in self._sets.items():
            one = spread(values)
            words.append(
                f"{label}: mean {one.mean:.3g}, standard deviation {one.deviation:.2g}, standard error "
                f"{one.error:.2g}, 95 % interval ± {one.reach:.2g}"
            )
        return f"{self.quantity}, {'; '.join(words)}."


@dataclass
class Versus(Picture):
    """Two sides, every run of each, and the difference of their means with its 95 % interval.

    Attributes
    ----------
    sides : dict of str to (run,) array
        The base first.
    quantity : str
    top : float or None
        Where the axis of values ends.
    reach : float or None
        Where the axis of differences ends, either way.
    """

    sides: Mapping[str, Floats]
    quantity: str
    top: float | None = None
    reach: float | None = None
    panels: int = 2

    def __post_init__(self) -> None:
        (self._base, one), (self._other, other) = self.sides.items()
        self._spreads = (spread(one), spread(other))
        before, after = (welch.Sample(side.mean, side.deviation, side.n) for side in self._spreads)
        self._found = welch.compare(before, after)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the runs on the left, the difference on the right."""
        left, right = axes
        for k, ((name, values), one) in enumerate(zip(self.sides.items(), self._spreads, strict=True)):
            colour, _, marker, _ = style.SIDES[k]
            known = values[~np.isnan(values)]
            left.plot(_beside(k, len(known)), known, marker, color=colour, mec="#333333", mew=0.5, ms=7, label=name)
            left.plot([k - 0.22, k + 0.22], [one.mean] * 2, color=style.BLACK, lw=2.5, label="mean")
        style.dress(left, "", "", self.quantity)
        left.set_xticks([0, 1], [f"{one.n} runs" for one in self._spreads])
        left.set_xlim(-0.6, 1.6)
        left.set_ylim(0, self.top)
        right.axvline(0, color=style.BLACK, lw=1, label="no difference")
        if self._found is not None:
            difference, low, high = self._found.difference, self._found.low, self._found.high
            right.errorbar(
                [difference], [0], xerr=[[difference - low], [high - difference]], color=style.BLUE, fmt="none",
                capsize=8, lw=2.5,
            )  # fmt: skip
            right.plot([difference], [0], "s", color=style.BLUE, ms=9, label="difference, 95 % interval")
        style.dress(right, "", f"difference of {self.quantity}")
        right.set_yticks([])
        right.set_ylim(-1, 1)
        if self.reach is not None:
            right.set_xlim(-self.reach, self.reach)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Both sides in numbers."""
        cells = [
            [name, str(one.n), f"{one.mean:.3g}", f"{one.deviation:.2g}"]
            for name, one in zip(self.sides, self._spreads, strict=True)
        ]
        return table(["side", "runs", f"mean {self.quantity}", "deviation"], cells, left=1) + f"\n{self.verdict}"

    @property
    def verdict(self) -> str:
        """Say whether the difference is more than noise."""
        if self._found is None:
            return "With fewer than two runs a side nothing can be said."
        found = self._found
        noise = "more than noise" if found.p < welch.ALPHA else "no more than noise can do"
        p = "below 0.001" if found.p < 0.001 else f"{found.p:.3f}"
        return (
            f"Difference {found.difference:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f}, p {p}: {noise}."
        )

    @property
    def alt(self) -> str:
        """Both means and the verdict."""
        means = [f"{name} {one.mean:.2f} ({one.n} runs)" for name, one in zip(self.sides, self._spreads, strict=True)]
        return f"Mean {self.quantity}: {listed(means)}. {self.verdict}"
