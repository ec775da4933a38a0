"""Published figures beside the model's, and locks under contention."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from numalab.locks import Lock, Solution, solve
from numalab.patch_threads import Claim
from numalab.patch_threads.claims import claims_table, counted
from numalab.plots import style
from numalab.plots.picture import Picture, PictureError
from numalab.text import table

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|to)\s*(\d+(?:\.\d+)?)")


@dataclass
class Published(Picture):
    """Claims of mails: published, model with its band, real kernel; as ratios to the published figure.

    Attributes
    ----------
    claims : sequence of Claim
    """

    claims: Sequence[Claim]

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw every claim that is judged and has a number on both sides, published = 1."""
        (ax,) = axes
        rows = [
            (one, low, high)
            for one in self.claims
            if one.holds is not None and one.model
            for low, high in [published_range(one)]
            if high
        ]
        if not rows:
            raise PictureError("none of these claims is judged by a published number and one of the model")
        for y, (one, low, high) in enumerate(rows):
            unit = (low + high) / 2
            ax.plot([low / unit, high / unit], [y, y], color=style.BLACK, lw=7, solid_capstyle="butt", alpha=0.35)
            ax.plot(1, y, "|", color=style.BLACK, ms=14, mew=3, label=None if y else "published (bar: range)")
            if one.low is not None and one.high is not None and math.isfinite(one.high):
                ax.plot([one.low / unit, one.high / unit], [y - 0.18] * 2, color=style.ORANGE, lw=2)
            assert one.model is not None
            if math.isfinite(one.model):
                ax.plot(one.model / unit, y - 0.18, "o", color=style.ORANGE, mec="black", ms=8, label=_once(y, "model"))
            else:
                ax.annotate("never", (1, y - 0.18), xytext=(14, 0), textcoords="offset points")
            if one.real is not None:
                ax.plot(one.real / unit, y + 0.18, "^", color=style.BLUE, mec="black", ms=8, label=_once(y, "real"))
        style.dress(ax, "", "published = 1")
        ax.set_yticks(range(len(rows)), [one.claim for one, _, _ in rows])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.figure.subplots_adjust(left=0.42)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """The claims as a table."""
        return claims_table(self.claims)

    @property
    def alt(self) -> str:
        """How many claims hold."""
        hold, judged = counted(self.claims)
        against = [one.claim for one in self.claims if one.holds is False]
        words = f"{hold} of {judged} published statements that can be judged hold in the model"
        return words + (f"; not these: {'; '.join(against)}." if against else ".")


def _once(y: int, label: str) -> str | None:
    return None if y else label


def published(claims: Sequence[Claim]) -> Published:
    """Show published figures beside the model's.

    Parameters
    ----------
    claims : sequence of Claim
        As ``numalab.patch_threads.replay(name, stored=True).claims``.
    """
    return Published(claims)


def published_range(one: Claim) -> tuple[float, float]:
    """Return the published number of a claim as a range, its ends equal if it is one number; zeros if it is words."""
    span = _RANGE.search(one.published)
    if span:
        return float(span[1]), float(span[2])
    number = _NUMBER.search(one.published)
    value = float(number[0].replace(",", "")) if number else 0.0
    return value, value


@dataclass
class Contention(Picture):
    """What locks cost against the number of tasks that use them.

    Attributes
    ----------
    solved : dict of str to Solution
    marks : sequence of (tasks, percent, label)
        Published points.
    """

    solved: dict[str, Solution]
    marks: Sequence[tuple[int, float, str]] = ()

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a line for each lock, tasks in powers of two."""
        (ax,) = axes
        for i, (name, one) in enumerate(self.solved.items()):
            colour, dashes, marker = style.NUMBERED[(i + 3) % len(style.NUMBERED)]
            ax.plot(one.tasks, 100 * one.area_share, color=colour, ls=dashes, marker=marker, lw=2, label=name)
        for k, (tasks, percent, label) in enumerate(self.marks):
            ax.plot(tasks, percent, "*", color=style.BLACK, ms=13, label=None if k else "published")
            ax.annotate(label, (tasks, percent), xytext=(7, 5), textcoords="offset points", fontsize=style.FONT - 1)
        ticks = sorted({int(n) for one in self.solved.values() for n in one.tasks})
        shown = ticks[:: max(1, math.ceil(len(ticks) / 12))]
        style.dress(ax, "", "tasks", "time in the look-up [%]")
        ax.set_xscale("log", base=2)
        ax.set_xticks(shown, [f"{n:,}" for n in shown])
        ax.minorticks_off()
        ax.set_ylim(0, 102)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Percent of the time in the look-up, by number of tasks."""
        tasks: NDArray[np.int64] = np.unique(np.concatenate([one.tasks for one in self.solved.values()]))
        rows = []
        for n in tasks:
            cells = [
                f"{100 * one.area_share[one.tasks == n][0]:.1f}" if n in one.tasks else ""
                for one in self.solved.values()
            ]
            rows.append([f"{n:,}", *cells])
        return "time in the look-up, waiting included [%]\n" + table(["tasks", *self.solved], rows, left=0)

    @property
    def alt(self) -> str:
        """The share at both ends of each line."""
        words = [
            f"{name}: {100 * one.area_share[0]:.1f} % of the time at {one.tasks[0]:,} tasks, "
            f"{100 * one.area_share[-1]:.1f} % at {one.tasks[-1]:,}."
            for name, one in self.solved.items()
        ]
        return "Time in the look-up, waiting included. " + " ".join(words)


def contention(
    locks: Mapping[str, Lock], tasks: Sequence[int], marks: Sequence[tuple[int, float, str]] = ()
) -> Contention:
    """Show what locks cost against the number of tasks.

    Parameters
    ----------
    locks : mapping of str to Lock
    tasks : sequence of int
    marks : sequence of (int, float, str)
        Published points: tasks, percent, label.
    """
    return Contention({name: solve(lock, list(tasks)) for name, lock in locks.items()}, marks)
