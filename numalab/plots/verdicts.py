"""Where counters of balancing lie among the rules of the diagnosis: local share against pages moved per fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from numalab.diagnose.counters import FEWEST_FAULTS, findings
from numalab.diagnose.facts import Count, Side
from numalab.plots import style
from numalab.plots.picture import Picture
from numalab.text import table

#: Fields the map is cut into, across and upwards, and the ends of its upward axis: pages moved of 100 faults.
_ACROSS, _UP = 100, 60
LOW, HIGH = 0.02, 100.0
#: Colours of regions: light, as names stand on them; of others the last.
_COLOURS = {
    "no alarm": "#FFFFFF",
    "page-ping-pong": "#F7E0A6",
    "overhead-without-benefit": "#BBDDF5",
    "tiering-churn": "#E6CFDF",
    "": "#DDDDDD",
}
NO_ALARM = "no alarm"


@dataclass(frozen=True)
class Counters:
    """What the rules look at besides share and pages moved.

    Attributes
    ----------
    faults : float
        Hint faults.
    demoted : float
        Pages demoted to slow memory for each page that moved.
    """

    faults: float = 1e7
    demoted: float = 0.0

    def side(self, share: float, moved: float) -> Side:
        """Return the counters of a side: local percent, and pages moved of 100 faults."""
        pages = self.faults * moved / 100
        counts = {
            "numa_pte_updates": self.faults,
            "numa_hint_faults": self.faults,
            "numa_hint_faults_local": self.faults * share / 100,
            "numa_pages_migrated": pages,
            "pgdemote_kswapd": pages * self.demoted,
        }
        return Side("", "", 0, {name: Count(name, value) for name, value in counts.items()})


@lru_cache(maxsize=64)
def _regions(given: Counters) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the names of the regions, and the number of the region of each field: (pages moved, share)."""
    names = [NO_ALARM]
    shares = (np.arange(_ACROSS) + 0.5) * 100 / _ACROSS
    ends = np.geomspace(LOW, HIGH, _UP + 1)
    found = np.zeros((_UP, _ACROSS), np.int64)
    for i, moved in enumerate(np.sqrt(ends[:-1] * ends[1:])):
        for k, share in enumerate(shares):
            name = region(given, float(share), float(moved))
            if name not in names:
                names.append(name)
            found[i, k] = names.index(name)
    return tuple(names), found


def region(given: Counters, share: float, moved: float) -> str:
    """Name what the totals of one side show: the first finding, or that there is none."""
    if given.faults < FEWEST_FAULTS:
        return "too few faults"
    ids = [one.id for one in findings(given.side(share, moved))]
    return ids[0] if ids else NO_ALARM


@dataclass
class VerdictMap(Picture):
    """The rules for totals of one side as regions, and sides as points among them.

    Attributes
    ----------
    points : dict of str to (share, moved)
        Name -> percent of hint faults that were local, pages moved of 100 hint faults.
    counters : Counters
        For which the regions are drawn.
    title : str
    """

    points: Mapping[str, tuple[float, float]]
    counters: Counters = field(default_factory=Counters)
    title: str = ""

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the regions with their names, and the points."""
        (ax,) = axes
        names, found = _regions(self.counters)
        low, high = np.log10(LOW), np.log10(HIGH)
        colours = ListedColormap([_COLOURS.get(name, _COLOURS[""]) for name in names])
        ax.imshow(
            found, origin="lower", aspect="auto", extent=(0, 100, low, high), cmap=colours, vmin=-0.5,
            vmax=len(names) - 0.5, interpolation="nearest",
        )  # fmt: skip
        for k, name in enumerate(names):
            if (found == k).any():
                _label(ax, name, found == k, low, high)
        for i, (name, (share, moved)) in enumerate(self.points.items()):
            colour, _, marker, _ = style.SIDES[i % len(style.SIDES)]
            at = np.log10(np.clip(moved, LOW, HIGH))
            ax.plot(share, at, marker, ms=11, color=colour, mec="black", label=name, ls="none", clip_on=False, zorder=4)
        style.dress(ax, self.title, "hint faults that were local [%]", "pages moved of 100 faults")
        ticks = [0.1, 1, 10, 30, 100]
        ax.set_yticks(np.log10(ticks), [f"{tick:g}" for tick in ticks])
        ax.set_xlim(0, 100)
        ax.set_ylim(low, high)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """The points with their regions."""
        rows = [
            [name, f"{share:.1f}", f"{moved:.2f}", self._region(name)] for name, (share, moved) in self.points.items()
        ]
        return table(["", "local [%]", "moved of 100 faults", "region"], rows, right=(1, 2))

    @property
    def alt(self) -> str:
        """Each point and its region."""
        words = [
            f"{name}: {share:.0f} % of the faults local, {moved:.3g} pages moved of 100 faults: {self._region(name)}."
            for name, (share, moved) in self.points.items()
        ]
        return " ".join(words) or "No side has hint faults."

    def _region(self, name: str) -> str:
        return region(self.counters, *self.points[name])


def _label(ax: Axes, name: str, inside: NDArray[np.bool_], low: float, high: float) -> None:
    """Write a name into the widest row of its region."""
    widths = inside.sum(axis=1)
    rows = np.flatnonzero(widths == widths.max())
    row = int(rows[len(rows) // 2])
    columns = np.flatnonzero(inside[row])
    # of a narrow region at the edge the name goes beside it
    x = (columns[0] + columns[-1] + 1) / 2 * 100 / _ACROSS
    y = low + (row + 0.5) * (high - low) / _UP
    side = "left" if x < 8 else "right" if x > 92 else "center"
    at = 1.0 if side == "left" else 99.0 if side == "right" else x
    ax.text(at, y, name, ha=side, va="center", fontsize=style.FONT, zorder=3)
