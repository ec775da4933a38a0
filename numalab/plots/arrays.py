"""One array among the nodes: where it lies over time, and how often its pages move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from numalab.derived import growth
from numalab.plots import style
from numalab.plots.curves import Curves, Line, Panel
from numalab.plots.picture import (
    Floats,
    Picture,
    Sides,
    axis_of,
    end_of,
    held,
    over_seeds,
    recorded,
    runs_words,
)
from numalab.text import table

#: Times of the printed map.
_TIMES = 11
#: Greys of the map, from no page to all pages of the array.
_GREYS = ListedColormap([str(1 - 0.94 * k / 95) for k in range(96)])
#: Share in percent from which a node is said to hold the array.
_HELD = 50


@dataclass(frozen=True)
class Whereabout:
    """One side: share of all pages on each node, of one run.

    Attributes
    ----------
    name : str
    times : (time,) s
    share : (time, node), percent
    """

    name: str
    times: Floats
    share: Floats

    @property
    def holders(self) -> list[int]:
        """Nodes that held half of the pages or more, one after the other; positions among the nodes."""
        held = self.share.max(axis=1) >= _HELD
        nodes = self.share.argmax(axis=1)[held]
        changes = np.flatnonzero(np.diff(nodes)) + 1
        return [int(nodes[k]) for k in (0, *changes)] if len(nodes) else []


@dataclass
class Whereabouts(Picture):
    """Where pages are: nodes as rows, the darker the more of the pages; one panel for each side.

    Attributes
    ----------
    sides : list of Whereabout
    labels : list of int
        Nodes.
    end : float
        Where the time axis ends, s.
    """

    sides: list[Whereabout]
    labels: list[int]
    end: float

    def __post_init__(self) -> None:
        self.panels = len(self.sides)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a row for each node."""
        count = len(self.labels)
        for ax, one in zip(axes, self.sides, strict=True):
            ax.imshow(
                held(one.times, one.share, self.end), cmap=_GREYS, vmin=0, vmax=100,
                extent=(0, self.end, count - 0.5, -0.5), aspect="auto", interpolation="nearest",
            )  # fmt: skip
            style.dress(ax, one.name, "time [s]", "node" if ax is axes[0] else "", grid=False)
            ax.hlines(np.arange(1, count) - 0.5, 0, self.end, color="#BBBBBB", lw=0.6)
            ax.set_yticks(range(count), [str(label) for label in self.labels])
        for percent, words in ((0, "no page of it"), (50, "half of it"), (100, "all of it")):
            axes[0].add_line(style.box(_GREYS(percent / 100), words))
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Shares at times spread over the record."""
        parts = []
        for one in self.sides:
            picked = np.unique(np.linspace(0, len(one.times) - 1, _TIMES).astype(int))
            body = [[f"{one.times[k]:.1f}", *(f"{value:.0f}" for value in one.share[k])] for k in picked]
            head = ["time [s]", *(f"node {label}" for label in self.labels)]
            parts.append(f"{one.name}: share of the pages [%]\n" + table(head, body, left=0))
        return "\n\n".join(parts)

    @property
    def alt(self) -> str:
        """Where most of the pages were at first, how often that changed, where they are at last."""
        return " ".join(f"{one.name}: {self._words(one)}." for one in self.sides)

    def _words(self, one: Whereabout) -> str:
        held = [self.labels[k] for k in one.holders]
        if not held:
            return "no node ever has half of the pages"
        if len(held) == 1 and one.share[:, one.holders[0]].min() >= _HELD:
            return f"most pages are on node {held[0]} all the time"
        changes = (
            f"{len(held) - 1} times another node has most of them" if held[1:] else "then no node has most of them"
        )
        last = one.share[-1]
        return (
            f"most pages are on node {held[0]} at first; {changes}; after {one.times[-1]:.1f} s node "
            f"{self.labels[int(last.argmax())]} has {last.max():.0f} %"
        )


def whereabouts(given: Sides, *, seconds: float | None = None) -> Whereabouts:
    """Show which share of all pages is on each node over time; of several runs the first.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
    seconds : float, optional
        Length of the time axis; default: that of the record.
    """
    sides = recorded(given, "pages")
    made, labels = [], []
    for name, ds, dim in sides:
        pages = ds.pages.isel(run=0).sum("region").transpose(dim, "node").values.astype(float)
        total = np.maximum(1, pages.sum(axis=1, keepdims=True))
        made.append(Whereabout(name, ds[dim].values, 100 * pages / total))
        labels = ds.node.values.tolist()
    return Whereabouts(made, labels, end_of(sides, seconds))


def page_moves(given: Sides, *, seconds: float | None = None) -> Curves:
    """Show how often a page of all memory has moved so far, on average over the pages.

    Parameters
    ----------
    given, seconds
        As of :func:`whereabouts`; several runs become a band.
    """
    sides = recorded(given, "numa_pages_migrated", "pages")
    lines, words = [], []
    for position, (name, ds, dim) in enumerate(sides):
        moves = ds.numa_pages_migrated.transpose("run", dim).values / pages_of(ds)
        lines.append(_line(name, ds[dim].values, moves - moves[:, :1], position))
        each = float(growth(ds.numa_pages_migrated).mean()) / pages_of(ds)
        words.append(f"{name}: within {ds[dim].values[-1]:.1f} s a page moves {each:.1f} times{runs_words(ds)}.")
    part = Panel("", lines, " ".join(words))
    return Curves("moves of a page", "", [part], end_of(sides, seconds), 1.0, ".1f")


def pages_on(given: Sides, node: int, *, seconds: float | None = None) -> Curves:
    """Show which share of all pages is on one node.

    Parameters
    ----------
    given, seconds
        As of :func:`whereabouts`; several runs become a band.
    node : int
    """
    sides = recorded(given, "pages")
    lines, words = [], []
    for position, (name, ds, dim) in enumerate(sides):
        pages = ds.pages.sum("region").transpose("run", dim, "node").astype(float)
        share = (100 * pages.sel(node=node) / pages.sum("node")).values
        lines.append(_line(name, ds[dim].values, share, position))
        last = float(np.median(share[:, -1]))
        words.append(f"{name}: {last:.0f} % of the pages are on node {node} after {ds[dim].values[-1]:.1f} s.")
    part = Panel("", lines, " ".join(words))
    return Curves(f"pages on node {node}", "%", [part], end_of(sides, seconds), 100.0, ".0f")


def pages_of(ds: xr.Dataset) -> float:
    """Return how many pages all regions have together."""
    return float(ds.pages.isel(run=0, **{axis_of(ds, "pages"): 0}).sum())


def _line(name: str, times: Floats, values: Floats, position: int) -> Line:
    colour, dashes, marker, _ = style.SIDES[position % len(style.SIDES)]
    if len(values) == 1:
        return Line(name, times, values[0], None, None, (colour, dashes, marker))
    low, middle, high = over_seeds(values)
    return Line(name, times, middle, low, high, (colour, dashes, marker))
