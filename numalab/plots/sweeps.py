"""Sweeps: a quantity over one factor as curves with bands, over two as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from numalab import sweeps
from numalab.plots import style
from numalab.plots.picture import BAND, Floats, Picture, PictureError, listed, over_seeds
from numalab.sweeps.quantities import censored, factor_values, quantity
from numalab.text import table

#: Values of a sampled factor beyond which runs are put into groups of equal number, and how many groups.
_MOST, _GROUPS = 12, 8
#: From this ratio of largest to smallest on, an axis is logarithmic.
_WIDE = 20.0
#: Cells beyond which a heat map has no numbers in it.
_CELLS = 120
#: What is drawn unless something is asked for.
DEFAULT = "local_share"


@dataclass(frozen=True)
class Axis:
    """One factor as an axis.

    Attributes
    ----------
    name : str
    labels : list of str
        Of its values, or of groups of them.
    at : (value,)
        Where they lie: the number itself (the median of a group), or 0, 1, ... for words.
    of_run : (run,)
        Position of each run in them.
    numeric : bool
    grouped : bool
    """

    name: str
    labels: list[str]
    at: Floats
    of_run: NDArray[np.int64]
    numeric: bool
    grouped: bool = False

    @property
    def ticks(self) -> tuple[str, list[str]]:
        """Name and labels that fit on an axis: of groups where they begin."""
        if not self.grouped:
            return self.name, self.labels
        return f"{self.name} from", [label.split(" to ")[0] for label in self.labels]

    @property
    def log(self) -> bool:
        """Whether equal ratios should be equally far apart."""
        return self.numeric and bool(self.at.min() > 0) and bool(self.at.max() >= _WIDE * self.at.min())


def _axis(ds: xr.Dataset, name: str) -> Axis:
    values = factor_values(ds, name)
    numeric = values.dtype.kind in "if"
    if numeric:
        known, of_run = np.unique(values, return_inverse=True)
        if len(known) > _MOST:
            return _grouped(name, values.astype(float))
        return Axis(name, [f"{value:g}" for value in known], known.astype(float), of_run, True)
    # words in the order they were given in
    words = list(dict.fromkeys(values.tolist()))
    return Axis(name, [str(word) for word in words], np.arange(len(words), dtype=float),
                np.array([words.index(value) for value in values.tolist()]), False)  # fmt: skip


def _grouped(name: str, values: Floats) -> Axis:
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _GROUPS + 1)))
    of_run = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    labels = [f"{_edge(low)} to {_edge(high)}" for low, high in pairwise(edges)]
    at = np.array([np.median(values[of_run == group]) for group in range(len(labels))])
    return Axis(name, labels, at, of_run, True, True)


def _edge(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass
class Swept(Picture):
    """What both pictures have: values of runs over one or two factors.

    Attributes
    ----------
    name, units, long_name : str
        The quantity.
    x : Axis
    by : Axis or None
        Curves, or rows of the heat map.
    values : (run,)
    others : list of str
        Factors that vary within a point of the picture, seeds first.
    never : int
        Runs whose time did not come; their length stands for it.
    seconds : float
        That length.
    """

    name: str
    units: str
    long_name: str
    x: Axis
    by: Axis | None
    values: Floats
    others: list[str]
    never: int
    seconds: float

    def groups(self) -> list[tuple[str, Floats]]:
        """Return for each curve or row its label and (low, median, high) at each x: (3, x)."""
        rows = self.by.of_run if self.by else np.zeros(len(self.values), np.int64)
        out = []
        for row, label in enumerate(self.by.labels if self.by else [""]):
            columns = [self._band((rows == row) & (self.x.of_run == i)) for i in range(len(self.x.labels))]
            out.append((label, np.array(columns).T))
        return out

    def _band(self, chosen: NDArray[np.bool_]) -> Floats:
        if not chosen.any():
            return np.full(3, np.nan)
        return np.array([x[0] for x in over_seeds(self.values[chosen][:, None])])

    @property
    def scale(self) -> float:
        """What drawn numbers are counted in: 1, 1000 or a million."""
        largest = float(np.nanmax(np.abs(self.values), initial=0.0))
        return 1e6 if largest >= 1e6 else 1e3 if largest >= 1e4 else 1.0

    @property
    def unit(self) -> str:
        """The unit in brackets; nothing for plain numbers."""
        return "" if self.units == "1" else f" [{self.units}]"

    @property
    def drawn_unit(self) -> str:
        """The same of drawn numbers."""
        size = {1e6: "million", 1e3: "1000"}.get(self.scale, "")
        words = " ".join(word for word in (size, "" if self.units == "1" else self.units) if word)
        return f" [{words}]" if words else ""

    def _over(self) -> str:
        return f"median over {listed(self.others)}"

    @property
    def title(self) -> str:
        """What is drawn, and what stands for never."""
        return self.long_name + (f" ({self.seconds:g} s: did not come)" if self.never else "")

    def _never(self) -> str:
        if not self.never:
            return ""
        return f" In {self.never} of {len(self.values)} runs the time did not come; the run's length stands for it."


@dataclass
class Response(Swept):
    """Curves of a quantity over a factor."""

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw medians with bands."""
        (ax,) = axes
        several = self.by is not None
        for number, (label, band) in enumerate(self.groups()):
            low, middle, high = band / self.scale
            colour, dashes, marker = style.NUMBERED[number % len(style.NUMBERED)] if several else style.SIDES[1][:3]
            known = ~np.isnan(middle)
            named = f"{self.by.name} {label}" if self.by else ""
            ax.plot(self.x.at[known], middle[known], color=colour, ls=dashes, marker=marker, ms=6, lw=2, label=named)
            ax.fill_between(self.x.at[known], low[known], high[known], color=colour, alpha=0.2, lw=0)
        style.dress(ax, self.title, self.x.name, f"{self.name}{self.drawn_unit}")
        if self.x.log:
            ax.set_xscale("log")
        if not self.x.numeric or self.x.log:
            ax.xaxis.set_major_locator(FixedLocator(self.x.at.tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xticks(self.x.at, self.x.labels if not self.x.numeric else [f"{x:.4g}" for x in self.x.at])
        if several:
            style.key_below(axes)

    @property
    def text(self) -> str:
        """Median and band at every value."""
        rows = [
            [x, label, *(_number(v) for v in (middle[i], low[i], high[i]))]
            for label, (low, middle, high) in self.groups()
            for i, x in enumerate(self.x.labels)
        ]
        low_end, high_end = (f"{100 * end:.0f} %" for end in BAND)
        head = [self.x.name, self.by.name if self.by else "", "median", low_end, high_end]
        if not self.by:
            head, rows = [head[0], *head[2:]], [[row[0], *row[2:]] for row in rows]
        return f"{self.long_name}: {self.name}{self.unit}, {self._over()}\n" + table(
            head, rows, left=2 if self.by else 1
        )

    @property
    def alt(self) -> str:
        """Where each curve begins and ends, and its lowest and highest point."""
        words = []
        for label, (_, middle, _) in self.groups():
            known = np.flatnonzero(~np.isnan(middle))
            who = f"{self.by.name} {label}: " if self.by else ""
            if not len(known):
                words.append(f"{who}unknown")
                continue
            ends = known[0], known[-1], known[np.argmin(middle[known])], known[np.argmax(middle[known])]
            first, last, low, high = (f"{_number(middle[i])} at {self.x.labels[i]}" for i in ends)
            words.append(f"{who}{first}, {last}, lowest {low}, highest {high}")
        return f"{self.long_name} over {self.x.name} ({self._over()}). {'; '.join(words)}.{self._never()}"


@dataclass
class HeatMap(Swept):
    """A quantity over two factors, as colours with the number in each cell."""

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the medians."""
        (ax,) = axes
        assert self.by is not None
        middle = self._middle() / self.scale
        low, high = (np.nanmin(middle), np.nanmax(middle)) if not np.isnan(middle).all() else (0.0, 1.0)
        image = ax.imshow(middle, cmap="cividis", vmin=low, vmax=high, aspect="auto", origin="lower")
        (x_name, x_labels), (y_name, y_labels) = self.x.ticks, self.by.ticks
        style.dress(ax, f"{self.title}{self.drawn_unit}", x_name, "", grid=False)
        ax.set_ylabel(y_name, fontsize=style.FONT)
        ax.yaxis.set_label_coords(-0.085, 0.5)
        ax.set_xticks(range(len(x_labels)), x_labels)
        ax.set_yticks(range(len(y_labels)), y_labels)
        if middle.size <= _CELLS:
            for i, j in np.ndindex(*middle.shape):
                value = middle[i, j]
                dark = np.isnan(value) or value < low + 0.55 * (high - low)
                ax.text(
                    j, i, "-" if np.isnan(value) else f"{value:.3g}", ha="center", va="center",
                    color="black" if np.isnan(value) else "white" if dark else "black", fontsize=style.FONT - 2,
                )  # fmt: skip
        made = ax.get_figure(root=True)
        assert made is not None
        made.colorbar(image, ax=ax, pad=0.02).ax.tick_params(labelsize=style.FONT - 1)

    def _middle(self) -> Floats:
        return np.array([middle for _, (_, middle, _) in self.groups()])

    @property
    def text(self) -> str:
        """The medians as a table."""
        assert self.by is not None
        rows = [
            [label, *(_number(v) for v in middle)] for label, middle in zip(self.by.labels, self._middle(), strict=True)
        ]
        title = f"{self.long_name}: {self.name}{self.unit}, {self._over()}; columns: {self.x.name}"
        return f"{title}\n" + table([self.by.name, *self.x.labels], rows)

    @property
    def alt(self) -> str:
        """Where the quantity is lowest and highest."""
        assert self.by is not None
        middle = self._middle()
        if np.isnan(middle).all():
            return f"{self.long_name}: unknown everywhere."
        told = []
        for word, at in (("lowest", np.nanargmin(middle)), ("highest", np.nanargmax(middle))):
            i, j = np.unravel_index(at, middle.shape)
            where = f"{self.x.name} {self.x.labels[j]} and {self.by.name} {self.by.labels[i]}"
            told.append(f"{word} {_number(middle[i, j])} at {where}")
        what = f"{self.long_name} over {self.x.name} and {self.by.name} ({self._over()})"
        return f"{what}: {'; '.join(told)}.{self._never()}"


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def response(ds: xr.Dataset, of: str = DEFAULT, *, x: str | None = None, by: str | None = None) -> Response:
    """Show how a quantity answers to a factor: median and 5 to 95 % band.

    Parameters
    ----------
    ds : xarray.Dataset
        A sweep (`numalab.sweeps.open`); runs that are not done are left out.
    of : str
        A quantity of `numalab.sweeps.QUANTITIES`.
    x : str, optional
        A factor; default: the first that has numbers and several values, or else the first.
    by : str, optional
        A curve for each value of this one; default: none. What is in neither widens the band.

    Returns
    -------
    Response

    Raises
    ------
    SweepError, PictureError
        No such quantity or factor; more curves than can be told apart.
    """
    known = _factors(ds)
    numeric = [name for name in known if ds[name].dtype.kind in "if"]
    picture = Response(**_parts(ds, of, x or (numeric or known)[0], by))
    if picture.by and len(picture.by.labels) > len(style.NUMBERED):
        raise PictureError(
            f"{by}: has {len(picture.by.labels)} values, more than curves can be told apart; take heatmap"
        )
    return picture


def heatmap(ds: xr.Dataset, of: str = DEFAULT, *, x: str | None = None, by: str | None = None) -> HeatMap:
    """Show a quantity over two factors: the median in each cell.

    Parameters
    ----------
    ds, of
        As those of :func:`response`.
    x, by : str, optional
        Columns and rows; default: the first factors with several values.

    Returns
    -------
    HeatMap

    Raises
    ------
    SweepError, PictureError
        No such quantity or factor, or only one.
    """
    known = _factors(ds)
    x = x or next((name for name in known if name != _name(by)), None)
    by = by or next((name for name in known if name != _name(x)), None)
    if x is None or by is None or _name(x) == _name(by):
        raise PictureError("a heat map needs two factors with several values each; response draws one")
    return HeatMap(**_parts(ds, of, x, by))


def _name(factor: str | None) -> str | None:
    return factor.replace(".", "_") if factor else None


def _factors(ds: xr.Dataset) -> list[str]:
    """Return the factors that have several values, or the seeds if none has."""
    names = [name.replace(".", "_") for name in sweeps.spec_of(ds).factors]
    return [name for name in names if len(np.unique(ds[name].values)) > 1] or ["seed"]


def _parts(ds: xr.Dataset, of: str, x: str, by: str | None) -> dict[str, Any]:
    found, never = censored(quantity(ds, of), ds)
    done = ds.sel(run=found["run"])
    shown = {_name(x), _name(by)}
    others = ["seeds", *(name for name in _factors(ds) if name not in shown and name != "seed")]
    attrs = ds[of].attrs
    return {
        "name": of,
        "units": attrs["units"],
        "long_name": attrs["long_name"],
        "x": _axis(done, str(_name(x))),
        "by": _axis(done, str(_name(by))) if by else None,
        "values": found.values,
        "others": others,
        "never": int(never.sum()),
        "seconds": sweeps.spec_of(ds).seconds,
    }


#: What ``numalab plot STORE`` knows.
SWEEP_PLOTS = {"response": response, "heatmap": heatmap}
