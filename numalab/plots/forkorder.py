"""What forked processes got done, in the order in which they were forked: real runs beside the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from numalab.plots import style
from numalab.plots.picture import Floats, Picture
from numalab.text import table


@dataclass
class ForkOrder(Picture):
    """Work of each process over the mean of all, one panel for each setting.

    Attributes
    ----------
    panels_of : mapping of str to mapping of str to array (process,)
        Title of a panel -> name of a run -> work of its processes, the first forked first. The first run of a panel
        is drawn as the model's, the others as real ones.
    who : str
        What the processes are called.
    """

    panels_of: Mapping[str, Mapping[str, Floats]]
    who: str = "process"

    def __post_init__(self) -> None:
        self.panels = len(self.panels_of)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a marker for each process, all panels on one scale."""
        top = max(float(self._relative(work).max()) for runs in self.panels_of.values() for work in runs.values())
        for ax, (title, runs) in zip(axes, self.panels_of.items(), strict=True):
            ax.axhline(1, color=style.BLACK, lw=1, ls=(0, (1, 1.5)))
            for k, (name, work) in enumerate(runs.items()):
                colour, marker = (style.ORANGE, "o") if not k else (style.BLUE, "^v<>"[(k - 1) % 4])
                look: dict[str, Any] = {
                    "ls": (0, (5, 2)) if not k else "-",
                    "lw": 1.4,
                    "ms": 6.5,
                    "mec": "black",
                    "mew": 0.5,
                }
                at = np.arange(1, len(work) + 1)
                ax.plot(at, self._relative(work), color=colour, marker=marker, label=name, **look)
            style.dress(ax, title, f"{self.who}, in order of fork", "work / mean" if ax is axes[0] else "")
            ax.set_ylim(0, 1.08 * top)
        style.key_below(axes)

    @staticmethod
    def _relative(work: Floats) -> Floats:
        return np.asarray(work / work.mean())

    def later_over_earlier(self, title: str) -> dict[str, float]:
        """Return, for each run of a panel, the work of the later forked half over that of the earlier half."""
        return {name: float(work[len(work) // 2 :].sum() / work[: len(work) // 2].sum())
                for name, work in self.panels_of[title].items()}  # fmt: skip

    @property
    def text(self) -> str:
        """Every process's work over the mean."""
        parts = []
        for title, runs in self.panels_of.items():
            columns = [self._relative(work) for work in runs.values()]
            body = [[str(k + 1), *(f"{one[k]:.2f}" for one in columns)] for k in range(len(columns[0]))]
            parts.append(f"{title}: work / mean\n" + table([self.who, *runs], body, left=0))
        return "\n\n".join(parts)

    @property
    def alt(self) -> str:
        """How much more the later forked half did, and slowest and fastest."""
        words = []
        for title, runs in self.panels_of.items():
            later = self.later_over_earlier(title)
            told = [
                f"{name} {later[name]:.2f} times ({self._relative(work).min():.2f} to {self._relative(work).max():.2f})"
                for name, work in runs.items()
            ]
            words.append(f"{title}: the half that was forked later did, over the earlier half: {', '.join(told)}.")
        return " ".join(words) + " In brackets slowest and fastest over the mean."
