"""Numbers with their spread beside each other: means and deviations, medians and bands, single runs as dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from numalab.derived import growth
from numalab.plots import style
from numalab.plots.picture import Picture, PictureError, Sides, need, sides_of
from numalab.text import table

#: Counters of a run, and what they are called in a picture.
COUNTERS = {
    "numa_pte_updates": "PTE updates",
    "numa_hint_faults": "hint faults",
    "numa_hint_faults_local": "local hint faults",
    "numa_pages_migrated": "pages migrated",
    "task_work_pages": "work done",
}


@dataclass(frozen=True)
class Span:
    """A number with its spread.

    Attributes
    ----------
    middle, low, high : float
        What the ends are the picture says: a deviation to both sides, or a band.
    values : sequence of float
        Single runs, if they are known.
    """

    middle: float
    low: float
    high: float
    values: Sequence[float] = ()

    @classmethod
    def of_mean(cls, mean: float, deviation: float) -> Span:
        """Make a mean with its standard deviation to both sides."""
        return cls(mean, mean - deviation, mean + deviation)

    @classmethod
    def of_runs(cls, values: Sequence[float]) -> Span:
        """Make mean and standard deviation (n - 1) of runs; of one run the run alone."""
        mean = float(np.mean(values))
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(mean, mean - deviation, mean + deviation, tuple(float(value) for value in values))

    def over(self, unit: float) -> Span:
        """Return it in a unit."""
        return Span(self.middle / unit, self.low / unit, self.high / unit, tuple(v / unit for v in self.values))


@dataclass
class Spans(Picture):
    """Numbers with their spread, in groups beside each other.

    Attributes
    ----------
    what : str
        Label of the axis.
    series : dict of str to dict of str to Span
        Name of a series -> group -> its number; a series may lack groups.
    ends : str
        What the ends of a bar are.
    form : str
        Format of the numbers in text.
    line : float or None
        Where a line is drawn across, say 1 for ratios.
    """

    what: str
    series: Mapping[str, Mapping[str, Span]]
    ends: str = "one standard deviation to both sides"
    form: str = ".2f"
    line: float | None = None
    groups: list[str] = field(init=False)

    def __post_init__(self) -> None:
        if not any(self.series.values()):
            raise PictureError("expected at least one number to draw, got none")
        self.groups = list(dict.fromkeys(group for some in self.series.values() for group in some))

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a marker with its bar for each number, single runs as small dots beside it."""
        (ax,) = axes
        if self.line is not None:
            ax.axhline(self.line, color=style.BLACK, lw=1, ls=(0, (1, 1.5)))
        width = 0.7 / len(self.series)
        for i, (name, some) in enumerate(self.series.items()):
            colour, _, marker, _ = style.SIDES[i % len(style.SIDES)]
            at = np.array([self.groups.index(group) for group in some]) + (i - (len(self.series) - 1) / 2) * width
            spans = list(some.values())
            middle = [one.middle for one in spans]
            for x, one in zip(at, spans, strict=True):
                ax.plot([x, x], [one.low, one.high], color=colour, lw=3, alpha=0.55, solid_capstyle="butt")
                if len(one.values) > 1:
                    beside = np.full(len(one.values), x) + 0.22 * width
                    ax.plot(beside, one.values, "o", color="white", mec=colour, ms=3.5, mew=0.9, label="single runs")
            # whole also at 0, where the axes end
            ax.plot(
                at, middle, ls="none", marker=marker, ms=9, color=colour, mec="black", mew=0.7, label=name,
                clip_on=False, zorder=3,
            )  # fmt: skip
        style.dress(ax, f"Bars: {self.ends}" if self.spread else "", "", self.what)
        ax.set_xticks(range(len(self.groups)), self.groups, fontsize=style.FONT - 1)
        ax.set_xlim(-0.6, len(self.groups) - 0.4)
        ax.set_ylim(0, 1.08 * ax.get_ylim()[1])
        style.key_below(axes)

    @property
    def spread(self) -> bool:
        """Whether any number has one."""
        return any(one.low != one.high for some in self.series.values() for one in some.values())

    @property
    def text(self) -> str:
        """Middle and ends of each number."""
        rows = []
        for group in self.groups:
            cells = [self._cell(some[group]) if group in some else "" for some in self.series.values()]
            rows.append([group.replace("\n", " "), *cells])
        return f"{self.what} ({self.ends})\n" + table(["", *self.series], rows)

    def _cell(self, one: Span) -> str:
        if one.low == one.high:
            return f"{one.middle:{self.form}}"
        return f"{one.middle:{self.form}} ({one.low:{self.form}} to {one.high:{self.form}})"

    @property
    def alt(self) -> str:
        """Every number with its ends."""
        words = []
        for group in self.groups:
            own = [f"{name} {self._cell(some[group])}" for name, some in self.series.items() if group in some]
            words.append(f"{group}: {', '.join(own)}.".replace("\n", " "))
        return f"{self.what}{f', in brackets {self.ends}' if self.spread else ''}. {' '.join(words)}"


def counters(given: Sides, names: Mapping[str, str] | None = None) -> Spans:
    """Show what was counted, relative to the mean of the first side; of several seeds means and deviations.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
    names : mapping of str to str, optional
        Variables and what to call them; default: those of :data:`COUNTERS` that every side has. The share of local
        faults is added when both counters of it are among them.

    Raises
    ------
    PictureError
        A counter is missing, or nothing was counted on the first side.
    """
    sides = sides_of(given)
    if names is None:
        names = {name: label for name, label in COUNTERS.items() if all(name in ds for ds in sides.values())}
    found = {side: _counted(ds, names) for side, ds in sides.items()}
    base = next(iter(found.values()))
    units = {group: float(np.mean(values)) for group, values in base.items() if np.mean(values)}
    series = {
        side: {group: Span.of_runs(values[group]).over(unit) for group, unit in units.items()}
        for side, values in found.items()
    }
    return Spans(f"{next(iter(sides))} = 1", series, line=1.0)


def _counted(ds: xr.Dataset, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the growth of counters over a run, summed over everything but runs: label -> (run,)."""
    need(ds, *names)
    answer = {}
    for name, label in names.items():
        grown = growth(ds[name])
        answer[label] = grown.sum([dim for dim in grown.dims if dim != "run"]).values.astype(float)
    some, every = (names.get(name) for name in ("numa_hint_faults_local", "numa_hint_faults"))
    if some and every and answer[every].all():
        answer["local share"] = answer[some] / answer[every]
    return answer
