"""Model against real kernels: scores, ratios, widths of bands, effects, and courses over time on the same axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from numalab.plots import style
from numalab.plots.picture import Floats, Picture, listed, over_seeds, stacked
from numalab.quantities import Series
from numalab.text import table
from numalab.validate import Row
from numalab.validate.judge import BAND, WIDEST
from numalab.validate.report import number, thread_of

#: Ratios beyond this are drawn at the edge of the figure.
_FAR = 16.0
#: Share of the rows that only judge which numalab aims at, percent.
AIM = 70
_ZERO = "both as good as 0"
_INSIDE, _OUTSIDE = (style.BLUE, "s"), (style.VERMILION, "P")


def _counted(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row.kind == kind and row.counted]


@dataclass
class Score(Picture):
    """Share of the rows inside, by thread or family.

    Attributes
    ----------
    rows : sequence of Row
    """

    rows: Sequence[Row]

    def __post_init__(self) -> None:
        counted = _counted(self.rows, "quantity")
        names = [*dict.fromkeys(map(thread_of, counted)), "all"]
        self._parts = {name: _parts([row for row in counted if name in ("all", thread_of(row))]) for name in names}

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a bar for each thread, in three parts."""
        (ax,) = axes
        names = list(self._parts)
        shares = np.array([[100 * part / max(1, sum(parts)) for part in parts] for parts in self._parts.values()])
        left = np.zeros(len(names))
        looks = (
            ("inside", style.SKY, ""),
            ("inside, both as good as 0", "#FFFFFF", ""),
            ("outside", style.ORANGE, "/"),
        )
        for part, (label, colour, hatch) in enumerate(looks):
            ax.barh(
                range(len(names)), shares[:, part], left=left, color=colour, hatch=hatch, edgecolor="#333333", lw=0.8,
                label=label,
            )  # fmt: skip
            left += shares[:, part]
        ax.axvline(AIM, color=style.BLACK, ls=(0, (5, 2)), lw=1.6, label=f"the aim, {AIM} %")
        style.dress(ax, "", "share of the rows [%]")
        ax.set_yticks(range(len(names)), [f"{name} ({sum(self._parts[name])})" for name in names])
        ax.set_xlim(0, 100)
        ax.invert_yaxis()
        ax.figure.subplots_adjust(left=0.12)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Rows by thread: counted, inside, of these as good as 0, share."""
        cells = [
            [name, str(sum(p)), str(p[0] + p[1]), str(p[1]), f"{_percent(p):.0f} %"] for name, p in self._parts.items()
        ]
        return table(["traces", "rows", "inside", "both 0", "share"], cells, left=1)

    @property
    def alt(self) -> str:
        """The share of all rows, and the best and the worst thread."""
        own = {name: _percent(parts) for name, parts in self._parts.items() if name != "all"}
        if not own:
            return "No row is counted."
        best, worst = max(own, key=lambda name: own[name]), min(own, key=lambda name: own[name])
        parts = self._parts["all"]
        return (
            f"{parts[0] + parts[1]} of {sum(parts)} rows are inside ({_percent(parts):.0f} %; {parts[1]} of them "
            f"because both sides are as good as 0); most in {best} ({own[best]:.0f} %), "
            f"fewest in {worst} ({own[worst]:.0f} %)."
        )


def _parts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Count rows inside with something to see, inside as good as 0, and outside."""
    zero = sum(row.inside and row.why == _ZERO for row in rows)
    inside = sum(row.inside for row in rows)
    return inside - zero, zero, len(rows) - inside


def _percent(parts: tuple[int, int, int]) -> float:
    return 100 * (parts[0] + parts[1]) / max(1, sum(parts))


@dataclass
class Ratios(Picture):
    """Model over real of every row, by quantity.

    Attributes
    ----------
    rows : sequence of Row
    """

    rows: Sequence[Row]

    def __post_init__(self) -> None:
        self._rows = [row for row in _counted(self.rows, "quantity") if row.why != _ZERO]
        outside: dict[str, list[bool]] = {}
        for row in self._rows:
            outside.setdefault(row.quantity, []).append(not row.inside)
        self._quantities = sorted(outside, key=lambda name: -float(np.mean(outside[name])))
        self._share = {name: float(np.mean(outside[name])) for name in self._quantities}

    @cached_property
    def figure(self) -> Figure:
        """The figure, as tall as there are quantities."""
        return stacked(self, height=1.4 + 0.24 * len(self._quantities))

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a mark for each row; those without a finite ratio stand at the edge."""
        (ax,) = axes
        for inside, (colour, marker) in ((True, _INSIDE), (False, _OUTSIDE)):
            own = [row for row in self._rows if row.inside == inside]
            x = [_clipped(row) for row in own]
            # rows of a quantity side by side within its line, in their order: no two runs of this differ
            y = [self._quantities.index(row.quantity) + 0.3 * ((7 * i) % 11 / 5 - 1) for i, row in enumerate(own)]
            ax.scatter(x, y, s=20, c=colour, marker=marker, lw=0, label=_told(inside), snap=True)
        ax.axvline(1, color=style.BLACK, lw=1)
        style.dress(ax, "", "model / real")
        ax.set_xscale("log", base=2)
        ticks = [1 / _FAR, 1 / 4, 1 / 2, 1, 2, 4, _FAR]
        ax.set_xticks(ticks, ["1/16 or less", "1/4", "1/2", "1", "2", "4", "16 or more"])
        ax.minorticks_off()
        ax.set_xlim(1 / _FAR / 1.3, _FAR * 1.3)
        ax.set_yticks(
            range(len(self._quantities)), [f"{name}, {self._share[name]:.0%} outside" for name in self._quantities]
        )
        ax.set_ylim(len(self._quantities) - 0.5, -0.5)
        ax.figure.subplots_adjust(left=0.34)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Rows, rows outside and the median ratio, by quantity."""
        cells = []
        for name in self._quantities:
            own = [row for row in self._rows if row.quantity == name]
            known = [row.ratio for row in own if row.ratio is not None]
            middle = f"{np.median(known):.2f}" if known else "-"
            cells.append([name, str(len(own)), str(sum(not row.inside for row in own)), middle])
        return table(["quantity", "rows", "outside", "median of model / real"], cells, left=1)

    @property
    def alt(self) -> str:
        """The quantities most outside and least, and what stands at the edge."""
        if not self._quantities:
            return "No row is counted."
        most, least = self._quantities[:3], self._quantities[-3:]
        edge = sum(_clipped(row) in (1 / _FAR, _FAR) for row in self._rows)
        return (
            f"{len(self._rows)} rows where something is to be seen. Most often outside: "
            f"{listed([f'{name} ({self._share[name]:.0%})' for name in most])}; least often: "
            f"{listed([f'{name} ({self._share[name]:.0%})' for name in least])}. {edge} rows stand at the edges: "
            f"beyond a factor of {_FAR:.0f}, or one side is 0."
        )


def _told(inside: bool) -> str:
    return "inside" if inside else "outside"


def _clipped(row: Row) -> float:
    """Return a ratio within the figure; where the real value is 0 or the model has none, an edge."""
    if row.model is None:
        return 1 / _FAR
    if row.ratio is None:
        return _FAR if row.model else 1.0
    return min(_FAR, max(1 / _FAR, row.ratio))


@dataclass
class Widths(Picture):
    """How wide the model's band of a count is, against the count; beside it what pure chance gives.

    Attributes
    ----------
    rows : sequence of Row
        Of counts.
    """

    rows: Sequence[Row]

    def __post_init__(self) -> None:
        counted = _counted(self.rows, "quantity")
        self._rows = [row for row in counted if row.model and row.low is not None and row.high is not None]
        self._nothing = len(counted) - len(self._rows)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a mark for each row, the line of chance, and the limit."""
        (ax,) = axes
        for wide, (colour, marker) in ((False, _INSIDE), (True, _OUTSIDE)):
            own = [row for row in self._rows if (_width(row) > WIDEST) == wide]
            label = f"band wider than a factor of {WIDEST:g}" if wide else "narrower"
            x, y = [row.model or 0.0 for row in own], [min(_FAR, _width(row)) for row in own]
            ax.scatter(x, y, s=26, c=colour, marker=marker, lw=0, label=label, snap=True)
        means = np.geomspace(0.6, 110, 120)
        chance = [min(_FAR, _ratio(*chance_band(mean))) for mean in means]
        ax.plot(means, chance, color=style.BLACK, lw=1.6, ls=(0, (5, 2)), label="chance alone")
        ax.axhline(WIDEST, color=style.BLACK, lw=1)
        style.dress(ax, "", "model's median count", "band: high / low")
        ax.set_xscale("log")
        ax.set_yscale("log", base=2)
        ax.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        ax.set_yticks([1, 2, 3, 4, 8, _FAR], ["1", "2", "3", "4", "8", "16, or low = 0"])
        ax.minorticks_off()
        ax.figure.subplots_adjust(left=0.13)
        style.key_below(axes)

    @property
    def edge(self) -> int:
        """The least whole mean whose band of chance is not too wide."""
        return next(mean for mean in range(1, 1000) if _ratio(*chance_band(mean)) <= WIDEST)

    @property
    def text(self) -> str:
        """Rows too wide, by the size of the count."""
        cells = []
        for low, high in ((0, 3), (3, 10), (10, 30), (30, math.inf)):
            own = [row for row in self._rows if low < (row.model or 0) <= high]
            wide = sum(_width(row) > WIDEST for row in own)
            size = f"up to {high:g}" if not low else f"{low} to {high:g}" if math.isfinite(high) else f"above {low}"
            cells.append([size, str(len(own)), str(wide), f"{100 * wide / len(own):.0f} %" if own else "-"])
        return table(["median count", "rows", "band too wide", "share"], cells, left=1)

    @property
    def alt(self) -> str:
        """How many small and large counts have too wide a band."""
        edge = self.edge
        small = [row for row in self._rows if (row.model or 0) < edge]
        large = [row for row in self._rows if (row.model or 0) >= edge]
        wide, still = (sum(_width(row) > WIDEST for row in some) for some in (small, large))
        return (
            f"Chance alone spreads a count below {edge} over more than a factor of {WIDEST:g}. Of {len(small)} "
            f"rows with a median below {edge}, {wide} have too wide a band; of {len(large)} above, {still}. "
            f"{self._nothing} more rows have a median of 0 and no such ratio."
        )


def _ratio(low: float, high: float) -> float:
    return high / low if low > 0 else math.inf


def _width(row: Row) -> float:
    assert row.low is not None
    assert row.high is not None
    return _ratio(row.low, row.high)


def chance_band(mean: float) -> tuple[int, int]:
    """Return the 5 % and 95 % points of a count whose events come independently (Poisson).

    Parameters
    ----------
    mean : float
    """
    ends, chance, total = [], math.exp(-mean), 0.0
    k = 0
    for level in BAND:
        while total + chance < level:
            total += chance
            k += 1
            chance *= mean / k
        ends.append(k)
    return ends[0], ends[1]


@dataclass
class Effects(Picture):
    """Effects of switches: model over real, one mark for each that exceeds its spread.

    Attributes
    ----------
    rows : sequence of Row
    """

    rows: Sequence[Row]

    def __post_init__(self) -> None:
        self._rows = _counted(self.rows, "effect")
        self._threads = list(dict.fromkeys(map(thread_of, self._rows)))

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a line of marks for each thread."""
        (ax,) = axes
        for right, (colour, marker) in ((True, _INSIDE), (False, _OUTSIDE)):
            own = [row for row in self._rows if bool(row.sign) == right]
            x = [min(3.0, max(-1.0, row.ratio or 0.0)) for row in own]
            y = [self._threads.index(thread_of(row)) + 0.32 * ((7 * i) % 11 / 5 - 1) for i, row in enumerate(own)]
            label = "right sign" if right else "wrong sign, or no effect"
            ax.scatter(x, y, s=34, c=colour, marker=marker, lw=0, label=label, snap=True)
        ax.axvline(0, color=style.BLACK, lw=1.2)
        ax.axvline(1, color=style.BLACK, lw=1, ls=(0, (5, 2)), label="as large as in reality")
        style.dress(ax, "", "effect in the model / effect on the real kernel")
        ax.set_xticks([-1, 0, 1, 2, 3], ["-1 or less", "0", "1", "2", "3 or more"])
        ax.set_yticks(range(len(self._threads)), self._threads)
        ax.set_ylim(len(self._threads) - 0.5, -0.5)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Effects by thread: counted, right sign, right size too."""
        cells = []
        for name in self._threads:
            own = [row for row in self._rows if thread_of(row) == name]
            right = [row for row in own if row.sign]
            cells.append([name, str(len(own)), str(len(right)), str(sum(row.inside for row in right))])
        return table(["thread", "effects", "sign right", "size too"], cells, left=1)

    @property
    def alt(self) -> str:
        """How many signs and sizes are right."""
        right = [row for row in self._rows if row.sign]
        size = sum(row.inside for row in right)
        small = sum((row.ratio or 0.0) < 1 for row in right)
        return (
            f"{len(right)} of {len(self._rows)} effects have the right sign in the model, {size} of them the right "
            f"size too; {small} of those with the right sign are smaller in the model than in reality."
        )


# ------------------------------------------------------------------------------------ over time
@dataclass(frozen=True)
class Course:
    """One quantity over time: each real run, and the seeds of the model."""

    title: str
    real: Sequence[Series]
    model: Series


@dataclass
class Courses(Picture):
    """Real runs and the model on the same axes.

    Attributes
    ----------
    parts : sequence of Course
    end : float
        Where the time axis ends, s.
    alike : bool
        All panels on one scale.
    """

    parts: Sequence[Course]
    end: float
    alike: bool = False

    def __post_init__(self) -> None:
        self.panels = len(self.parts)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw thin black lines for real runs, a broad one with its band for the model."""
        tops = [self._top(part) for part in self.parts]
        for ax, part, top in zip(axes, self.parts, tops, strict=True):
            times, low, middle, high = _banded(part.model)
            ax.fill_between(times, low, high, color=style.ORANGE, alpha=0.35, lw=0)
            ax.plot(times, middle, color=style.ORANGE, lw=3.2, label="model, median and 90 % of the seeds")
            for when, values in part.real:
                ax.plot(when, values[0], color=style.BLACK, lw=1.2, ls=(0, (5, 2)), label="real kernel")
            style.dress(ax, part.title, "time [s]")
            ax.set_xlim(0, self.end)
            ax.set_ylim(0, max(tops) if self.alike else top)
            ax.yaxis.set_major_formatter(lambda value, _: number(value))
        style.key_below(axes)

    def _top(self, part: Course) -> float:
        every = [part.model[1].ravel(), *(values[:, when <= self.end].ravel() for when, values in part.real)]
        return 1.08 * float(np.nanmax(np.concatenate([[0.0], *every]))) or 1.0

    @property
    def text(self) -> str:
        """Values at times spread over the run."""
        return "\n\n".join(f"{part.title}\n{self._table(part)}" for part in self.parts)

    def _table(self, part: Course) -> str:
        rows = []
        for at in np.linspace(0, self.end, 6):
            real = [_at((when, values[0]), at) for when, values in part.real]
            times, low, middle, high = _banded(part.model)
            model = [_at((times, values), at) for values in (middle, low, high)]
            rows.append([f"{at:.1f}", *(number(value) for value in (*real, *model))])
        head = ["time [s]", *(f"real {n + 1}" for n in range(len(part.real))), "model", "low", "high"]
        return table(head, rows, left=0)

    @property
    def alt(self) -> str:
        """The values at the last time that the model has reached."""
        words = []
        for part in self.parts:
            times, low, middle, high = _banded(part.model)
            if not len(times):
                words.append(f"{part.title}: nothing yet.")
                continue
            end = float(times[-1])
            real = [number(_at((when, values[0]), end)) for when, values in part.real]
            band = f" ({number(low[-1])} to {number(high[-1])})" if len(part.model[1]) > 1 else ""
            words.append(
                f"{part.title}: after {end:.1f} s {listed(real)} on the real kernel, "
                f"{number(middle[-1])}{band} in the model."
            )
        return " ".join(words)


def _banded(series: Series) -> tuple[Floats, Floats, Floats, Floats]:
    times, values = series
    known = ~np.isnan(values).all(axis=0)
    low, middle, high = over_seeds(values[:, known])
    return times[known], low, middle, high


def _at(series: tuple[Floats, Floats], time: float) -> float | None:
    """Return the last value up to a time."""
    position = int(np.searchsorted(series[0], time + 1e-6, side="right")) - 1
    value = float(series[1][position]) if position >= 0 else math.nan
    return None if math.isnan(value) else value


def courses(titled: Mapping[str, tuple[Sequence[Series], Series]], seconds: float, *, alike: bool = False) -> Courses:
    """Show real runs and the model over time, a panel for each entry.

    Parameters
    ----------
    titled : mapping of str to (real, model)
        As :attr:`numalab.validate.Outcome.series` has them.
    seconds : float
        Length of the time axis.
    alike : bool
        All panels on one scale.
    """
    return Courses([Course(title, real, model) for title, (real, model) in titled.items()], seconds, alike)
