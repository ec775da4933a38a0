"""Moves and swaps of tasks by what the kernel thought they gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from numalab.plots import style
from numalab.plots.picture import Picture, Sides, need, sides_of
from numalab.schema import MOVE, SWAP
from numalab.text import table

#: Edges of the classes of gains, of 1000; the last class is open.
EDGES = (0, 5, 10, 20, 30, 50, 100, 200, 400)
_NAMES = ["< 0", *(f"{low}-{high - 1}" for low, high in pairwise(EDGES)), f">= {EDGES[-1]}"]


@dataclass
class Gains(Picture):
    """NUMA moves and swaps by gain, a run's mean, one panel for each of the two.

    Attributes
    ----------
    counts : dict of str to (2, class) array
        Side -> moves and swaps in each class of gains.
    runs : dict of str to int
        How many the counts are the mean of.
    names : sequence of str
        Of the classes.
    per : str
        What the counts are of: "a run", "a minute".
    little : int
        Gains below this are counted in the sentence; the lower end of a class.
    marked : bool
        Whether a line stands there.
    """

    counts: dict[str, NDArray[np.float64]]
    runs: dict[str, int]
    names: Sequence[str] = tuple(_NAMES)
    per: str = "a run"
    little: int = 30
    marked: bool = False
    panels: int = 2

    @property
    def below(self) -> int:
        """How many classes lie below ``little``."""
        return next(i for i, name in enumerate(self.names) if name.startswith(f"{self.little}-"))

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw bars beside each other for the sides; moves and swaps on one scale."""
        width = 0.8 / len(self.counts)
        top = 1.05 * max(float(counts.max()) for counts in self.counts.values()) or 1.0
        for kind, (ax, title) in enumerate(zip(axes, ("moves", "swaps"), strict=True)):
            for i, (name, counts) in enumerate(self.counts.items()):
                colour, _, _, hatch = style.SIDES[i % len(style.SIDES)]
                # bars without height cost as much time as others; the first is in the key
                shown = counts[kind] > 0
                shown[0] = True
                at = np.arange(len(self.names)) + (i - (len(self.counts) - 1) / 2) * width
                look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "black", "lw": 0.6}
                ax.bar(at[shown], counts[kind][shown], width, label=name, **look)
            style.dress(ax, f"NUMA {title}, by gain of 1000", "", f"number {self.per}" if not kind else "")
            ax.set_ylim(0, top)
            if self.marked:
                words = f"a gain of {self.little}"
                ax.axvline(self.below - 0.5, color=style.BLACK, lw=1, ls=(0, (5, 2)), label=words)
            ax.set_xlim(-0.7, len(self.names) - 0.3)
            ax.set_xticks(range(len(self.names)), self.names, rotation=30, ha="right", fontsize=style.FONT - 2)
        style.key_below(axes, drop=0.72)

    @property
    def text(self) -> str:
        """Counts by class."""
        head = ["gain, of 1000", *(f"{name}: {kind}" for name in self.counts for kind in ("moves", "swaps"))]
        rows = [
            [label, *(f"{counts[kind, k]:.1f}" for counts in self.counts.values() for kind in (0, 1))]
            for k, label in enumerate(self.names)
        ]
        return f"NUMA moves and swaps by gain, {self.per}\n" + table(head, rows)

    @property
    def alt(self) -> str:
        """Totals and how many gain little."""
        words = []
        for name, counts in self.counts.items():
            low = counts[:, : self.below].sum()
            several = self.runs[name] > 1
            if self.per == "a run":
                mean = f" (mean of {self.runs[name]} runs)" if several else ""
            else:
                mean = f" ({self.per}{f', mean of {self.runs[name]} runs' if several else ''})"
            words.append(
                f"{name}: {counts[0].sum():.0f} moves and {counts[1].sum():.0f} swaps, {low:.0f} of them with a gain "
                f"below {self.little} of 1000{mean}."
            )
        return " ".join(words)


def moves(given: Sides, *, below: int | None = None) -> Gains:
    """Show NUMA moves and swaps by what the kernel computed as their gain.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
    below : int, optional
        One of :data:`EDGES`: a line stands there, and the sentence counts what gains less.
    """
    counts, runs = {}, {}
    for name, ds in sides_of(given).items():
        need(ds, "event_kind", "event_gain", "event_count")
        used = np.arange(ds.sizes["event"]) < ds.event_count.values[:, None]
        kind, gain = ds.event_kind.values, ds.event_gain.values
        counts[name] = (
            np.stack(
                [
                    np.bincount(np.searchsorted(EDGES, gain[used & (kind == one)], side="right"), minlength=len(_NAMES))
                    for one in (MOVE, SWAP)
                ]
            )
            / ds.sizes["run"]
        )
        runs[name] = ds.sizes["run"]
    return Gains(counts, runs) if below is None else Gains(counts, runs, little=below, marked=True)
