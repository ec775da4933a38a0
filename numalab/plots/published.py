"""Published figures beside the model's, and locks under contention."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, StrMethodFormatter
from numpy.typing import NDArray

from numalab.locks import Lock, Simulated, Solution, solve
from numalab.patch_threads import Claim
from numalab.patch_threads.claims import claims_table, counted
from numalab.plots import style
from numalab.plots.picture import Picture, PictureError
from numalab.text import table

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_UP_TO = re.compile(r"up to (\d+(?:\.\d+)?)")
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
            unit = (low + high) / 2 if low else high
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
        ax.set_xlim(0, 1.05 * ax.get_xlim()[1])
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
        hold, judged = counted([one for one in self.claims if one.in_mail])
        others_hold, others = counted([one for one in self.claims if not one.in_mail])
        against = [one.claim for one in self.claims if one.holds is False]
        words = f"{hold} of {judged} published statements that can be judged hold in the model"
        if others:
            words += f", and {others_hold} of {others} not in the mail (controls, traces of a real kernel)"
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
    """Return the published number of a claim as a range; zeros if it is words.

    The ends are equal if it is one number; the lower end of "up to 40" is 0.
    """
    most = _UP_TO.search(one.published)
    if most:
        return 0.0, float(most[1])
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
    simulated : dict of str to sequence of Simulated
        Runs event by event of some of the locks.
    per : str or None
        Unit of the look-ups, such as "1/s": a second panel shows them. None: time in the look-up alone.
    who : str
        What the tasks are called.
    """

    solved: dict[str, Solution]
    marks: Sequence[tuple[int, float, str]] = ()
    simulated: Mapping[str, Sequence[Simulated]] = field(default_factory=dict)
    per: str | None = None
    who: str = "tasks"

    def __post_init__(self) -> None:
        self.panels = 1 if self.per is None else 2

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw a line for each lock, tasks in powers of two."""
        left, *right = axes
        for i, (name, one) in enumerate(self.solved.items()):
            colour, dashes, marker = style.NUMBERED[(i + 3) % len(style.NUMBERED)]
            look: dict[str, Any] = {"color": colour, "ls": dashes, "marker": marker, "lw": 2}
            look["markevery"] = max(1, len(one.tasks) // 9)
            left.plot(one.tasks, 100 * one.area_share, label=name, **look)
            for ax in right:
                ax.plot(one.tasks, one.throughput, **look)
        self._draw_points(left)
        style.dress(left, "Share of the time" if right else "", self.who, "time in the look-up [%]")
        left.set_ylim(0, 102)
        for ax in right:
            style.dress(ax, f"Look-ups of all {self.who}", self.who, self.per or "")
            ax.set_yscale("log")
            ax.yaxis.set_label_coords(-0.2, 0.5)
            ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        for ax in axes:
            self._scale_tasks(ax)
        style.key_below(axes)

    def _draw_points(self, ax: Axes) -> None:
        points = [one for runs in self.simulated.values() for one in runs]
        for k, one in enumerate(points):
            mean, error = (100 * value for value in one.mean("area_share"))
            ax.plot([one.tasks] * 2, [mean - 2 * error, mean + 2 * error], color=style.BLACK, lw=1.5)
            ax.plot(
                one.tasks, mean, "s", ms=10, mfc="none", mec=style.BLACK, mew=1.6, zorder=5,
                label=None if k else "event by event",
            )  # fmt: skip
        for k, (tasks, percent, label) in enumerate(self.marks):
            ax.plot(tasks, percent, "*", color=style.BLACK, ms=13, ls="none", label=None if k else "published")
            ax.annotate(label, (tasks, percent), xytext=(-9, 7), textcoords="offset points", ha="right",
                        fontsize=style.FONT - 1)  # fmt: skip

    def _scale_tasks(self, ax: Axes) -> None:
        ticks = sorted({int(n) for one in self.solved.values() for n in one.tasks})
        if len(ticks) > _MOST_TICKS:
            low, high = math.ceil(math.log2(ticks[0])), math.floor(math.log2(ticks[-1]))
            ticks = [2**k for k in range(low, high + 1)]
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
        ax.minorticks_off()

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
        return "time in the look-up, waiting included [%]\n" + table([self.who, *self.solved], rows, left=0)

    @property
    def alt(self) -> str:
        """The share at both ends of each line, where most look-ups are done, and the points beside the lines."""
        words = ["Time in the look-up, waiting included."]
        for name, one in self.solved.items():
            words.append(
                f"{name}: {100 * one.area_share[0]:.1f} % of the time at {one.tasks[0]:,} {self.who}, "
                f"{100 * one.area_share[-1]:.1f} % at {one.tasks[-1]:,}{self._peak_words(one)}."
            )
        for name, runs in self.simulated.items():
            points = [f"{100 * one.mean('area_share')[0]:.1f} % at {one.tasks:,}" for one in runs]
            words.append(f"{name}, event by event: {', '.join(points)}.")
        if self.marks:
            points = [f"{label} at {tasks:,}" for tasks, _, label in self.marks]
            words.append(f"Published: {', '.join(points)}.")
        return " ".join(words)

    def _peak_words(self, one: Solution) -> str:
        if self.per is None:
            return ""
        top = int(one.throughput.argmax())
        times = float(one.throughput[top] / one.throughput[-1])
        # a line that is level to a hundredth has no peak worth a word
        if times < 1.01:
            return ", and look-ups never fall"
        return f", most look-ups at {one.tasks[top]:,}, {times:.1f} times those at {one.tasks[-1]:,}"


#: With more numbers of tasks the axis names powers of two.
_MOST_TICKS = 12


def contention(
    locks: Mapping[str, Lock | Solution],
    tasks: Sequence[int] = (),
    marks: Sequence[tuple[int, float, str]] = (),
    *,
    simulated: Mapping[str, Sequence[Simulated]] | None = None,
    per: str | None = None,
    who: str = "tasks",
) -> Contention:
    """Show what locks cost against the number of tasks.

    Parameters
    ----------
    locks : mapping of str to Lock or Solution
        A lock is solved at ``tasks``.
    tasks : sequence of int
    marks : sequence of (int, float, str)
        Published points: tasks, percent, label.
    simulated : mapping of str to sequence of Simulated, optional
        The same event by event, drawn with two standard errors.
    per : str, optional
        Unit of the look-ups: with it a second panel shows how many all tasks do.
    who : str
        What the tasks are called.
    """
    solved = {name: solve(lock, list(tasks)) if isinstance(lock, Lock) else lock for name, lock in locks.items()}
    return Contention(solved, marks, dict(simulated or {}), per, who)
