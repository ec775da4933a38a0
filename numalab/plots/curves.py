"""Quantities over time: pages, local share, scan periods, tasks away from home, waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from numalab.plots import style
from numalab.plots.picture import (
    Floats,
    Picture,
    Side,
    Sides,
    axis_of,
    end_of,
    listed,
    need,
    over_seeds,
    recorded,
    runs_words,
    sides_of,
)
from numalab.text import table

#: Rows of a printed table.
_ROWS = 11


@dataclass(frozen=True)
class Line:
    """One line: a median over time, possibly with a band.

    Attributes
    ----------
    label : str
    times, middle : (time,)
    low, high : (time,) or None
    look : colour, dashes, marker
    """

    label: str
    times: Floats
    middle: Floats
    low: Floats | None
    high: Floats | None
    look: tuple[str, Any, str]

    @property
    def known(self) -> Floats:
        """The median where there is one."""
        return self.middle[~np.isnan(self.middle)]


@dataclass
class Panel:
    """Axes with lines; ``words`` tells what they show, ``window`` is a value axis of its own."""

    title: str
    lines: list[Line]
    words: str = ""
    window: tuple[float, float] | None = None


@dataclass
class Curves(Picture):
    """Lines over time, in one panel or one for each side.

    Attributes
    ----------
    what, unit : str
        Axis label and its unit.
    parts : list of Panel
    end : float
        Where the time axis ends, s.
    top : float or None
        Where the value axis ends at least.
    form : str
        Format of the numbers in text.
    band : str
        What the numbers of several runs are, in text.
    """

    what: str
    unit: str
    parts: list[Panel]
    end: float
    top: float | None = None
    form: str = ".2f"
    band: str = field(default="")

    def __post_init__(self) -> None:
        self.panels = len(self.parts)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the lines, all panels on one scale but those with a window."""
        highest = max((float(np.nanmax(x)) for x in self._drawn() if len(x) and not np.isnan(x).all()), default=1.0)
        top = max(self.top or 0.0, 1.05 * highest) or 1.0
        for ax, part in zip(axes, self.parts, strict=True):
            for position, line in enumerate(part.lines):
                _draw_line(ax, line, self.end, position)
            label = f"{self.what} [{self.unit}]" if self.unit else self.what
            style.dress(ax, part.title, "time [s]", label if ax is axes[0] else "")
            ax.set_xlim(0, self.end)
            ax.set_ylim(*(part.window or (0, top)))
            if ax is not axes[0] and not part.window:
                ax.tick_params(labelleft=False)
        style.key_below(axes)

    def _drawn(self) -> list[Floats]:
        lines = [line for part in self.parts for line in part.lines]
        return [x for line in lines for x in (line.middle, line.high) if x is not None]

    @property
    def text(self) -> str:
        """Values of every line at times spread over the run."""
        times = np.linspace(0, self.end, _ROWS)
        head, columns = ["time [s]"], [[f"{t:.1f}" for t in times]]
        for part in self.parts:
            for line in part.lines:
                named = part.title and part.title != line.label
                head.append(f"{part.title}: {line.label}" if named else line.label)
                columns.append([self._at(line, t) for t in times])
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{self.what}{unit}{self.band}\n" + table(head, list(zip(*columns, strict=True)), left=0)

    def _at(self, line: Line, t: float) -> str:
        position = int(np.searchsorted(line.times, t + 1e-9, side="right")) - 1
        if position < 0 or np.isnan(line.middle[position]):
            return "-"
        # beyond the end of what was recorded there is nothing to print
        gap = np.diff(line.times).max() if len(line.times) > 1 else 0.0
        return "-" if t > line.times[-1] + gap else format(float(line.middle[position]), self.form)

    @property
    def alt(self) -> str:
        """The panels' sentences."""
        return " ".join(part.words for part in self.parts if part.words)


def _draw_line(ax: Axes, line: Line, end: float, position: int) -> None:
    """Draw a line; the first, which is dashed, lies on top, so that lines which are equal are all seen."""
    colour, dashes, marker = line.look
    every = max(1, int(len(line.times) * (end / max(line.times[-1], 1e-9)) / 9)) if len(line.times) else 1
    ax.plot(
        line.times, line.middle, color=colour, ls=dashes, marker=marker, ms=5.5, markevery=every, lw=2,
        label=line.label, zorder=3 - position / 100,
    )  # fmt: skip
    if line.low is not None and line.high is not None:
        ax.fill_between(line.times, line.low, line.high, color=colour, alpha=0.22, lw=0)


def _line(label: str, times: Floats, values: Floats, look: tuple[str, Any, str]) -> Line:
    """Make a line of values of several runs: (run, time)."""
    if values.shape[0] == 1:
        return Line(label, times, values[0], None, None, look)
    low, middle, high = over_seeds(values)
    return Line(label, times, middle, low, high, look)


def _side_look(position: int) -> tuple[str, Any, str]:
    colour, dashes, marker, _ = style.SIDES[position % len(style.SIDES)]
    return colour, dashes, marker


def _band_words(sides: Sequence[Side]) -> str:
    return ", median over runs" if max(ds.sizes["run"] for _, ds, _ in sides) > 1 else ""


# ------------------------------------------------------------------------------------ the pictures
def pages(given: Sides, *, seconds: float | None = None, region: str | None = None) -> Curves:
    """Show the memory on each node over time, one panel for each side.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
    seconds : float, optional
        Length of the time axis; default: that of the record.
    region : str, optional
        One region of memory in place of all.
    """
    sides = recorded(given, "pages")
    parts = []
    for name, ds, dim in sides:
        array = ds.pages if region is None else ds.pages.sel(region=[region])
        gb = array.sum("region").transpose("run", dim, "node").values * 4096 / 2**30
        times = ds[dim].values
        lines = [
            _line(f"node {node}", times, gb[:, :, k], style.NUMBERED[k % len(style.NUMBERED)])
            for k, node in enumerate(ds.node.values.tolist())
        ]
        begin, end = ([float(line.middle[i]) for line in lines] for i in (0, -1))
        nodes = listed([line.label.removeprefix("node ") for line in lines])
        words = (
            f"{name}: memory on nodes {nodes}: at the start {listed([f'{x:.2f}' for x in begin])} GB, "
            f"after {times[-1]:.1f} s {listed([f'{x:.2f}' for x in end])} GB{runs_words(ds)}."
        )
        parts.append(Panel(name, lines, words))
    return Curves("memory", "GB", parts, end_of(sides, seconds), band=_band_words(sides))


def local(given: Sides, *, seconds: float | None = None, window: float = 1.0) -> Curves:
    """Show the share of hint faults that were local, in a window before each sample.

    Parameters
    ----------
    given, seconds
        As of :func:`pages`.
    window : float
        Seconds.
    """
    sides = recorded(given, "numa_hint_faults", "numa_hint_faults_local")
    lines, words = [], []
    for position, (name, ds, dim) in enumerate(sides):
        share = 100 * ds.numa.local_share(window).transpose("run", dim).values
        line = _line(name, ds[dim].values, share, _side_look(position))
        lines.append(line)
        if len(line.known):
            first = float(line.times[~np.isnan(line.middle)][0])
            words.append(
                f"{name}: {line.known[0]:.0f} % of hint faults are local at first ({first:.1f} s), "
                f"{line.known[-1]:.0f} % at the end{runs_words(ds)}."
            )
        else:
            words.append(f"{name}: no hint fault yet.")
    part = Panel("", lines, " ".join(words))
    end = end_of(sides, seconds)
    return Curves("local hint faults", "%", [part], end, 100.0, ".0f", _band_words(sides))


def scan(given: Sides, *, seconds: float | None = None) -> Curves:
    """Show the scan period over time: a line for each task, or of many tasks the median and the range of 90 %."""
    sides = recorded(given, "scan_period_ms")
    parts = []
    for name, ds, dim in sides:
        period = ds.scan_period_ms.transpose("run", dim, "task").values / 1000
        times = ds[dim].values
        if ds.sizes["task"] <= len(style.NUMBERED):
            lines = [
                _line(str(task), times, period[:, :, k], style.NUMBERED[k])
                for k, task in enumerate(ds.task_name.values.tolist())
            ]
        else:
            every = period.transpose(0, 2, 1).reshape(-1, len(times))
            lines = [_line(f"median of {ds.sizes['task']} tasks; band: 90 % of them", times, every, style.NUMBERED[3])]
        last = period[:, -1]
        words = (
            f"{name}: the scan period begins at {np.median(period[:, 0]):.2f} s and is {np.median(last):.2f} s "
            f"after {times[-1]:.1f} s (median over tasks; from {last.min():.2f} to {last.max():.2f} s)."
        )
        parts.append(Panel(name, lines, words))
    return Curves("scan period", "s", parts, end_of(sides, seconds))


def rate(given: Sides, name: str, what: str, *, seconds: float | None = None) -> Curves:
    """Show how fast a counter grows, between neighbouring samples, thousands a second.

    Parameters
    ----------
    given, seconds
        As of :func:`pages`.
    name : str
        A cumulative variable without other axes than run and time.
    what : str
        What it counts.
    """
    sides = recorded(given, name)
    lines, words = [], []
    for position, (side, ds, dim) in enumerate(sides):
        times = ds[dim].values
        grown = ds[name].transpose("run", dim).values / 1000
        values = np.diff(grown, axis=1) / np.diff(times)
        lines.append(_line(side, times[1:], values, _side_look(position)))
        if values.shape[1]:
            last = float(np.median(values[:, -1]))
            words.append(f"{side}: {last:.1f} thousand {what} a second at {times[-1]:.1f} s{runs_words(ds)}.")
        else:
            words.append(f"{side}: nothing counted yet.")
    part = Panel("", lines, " ".join(words))
    end = end_of(sides, seconds)
    return Curves(what, "thousand/s", [part], end, form=".1f", band=_band_words(sides))


def waiting(given: Sides, *, seconds: float | None = None) -> Curves:
    """Show the share of tasks asleep on pages under migration or on locks, between neighbouring samples."""
    sides = recorded(given, "task_wait_ms")
    lines, words = [], []
    for position, (name, ds, dim) in enumerate(sides):
        total = ds.task_wait_ms.sum("task").transpose("run", dim).values
        times = ds[dim].values
        share = 100 * np.diff(total, axis=1) / (1000 * np.diff(times) * ds.sizes["task"])
        lines.append(_line(name, times[1:], share, _side_look(position)))
        whole = 100 * (total[:, -1] - total[:, 0]) / (1000 * max(times[-1] - times[0], 1e-9) * ds.sizes["task"])
        words.append(f"{name}: tasks waited {np.median(whole):.1f} % of the time{runs_words(ds)}.")
    end = end_of(sides, seconds)
    return Curves("tasks waiting", "%", [Panel("", lines, " ".join(words))], end, 1.0, ".1f", _band_words(sides))


def astray(given: Sides, *, seconds: float | None = None) -> Curves:
    """Show how many tasks are not on the node where most of their process's tasks are; zero is convergence."""
    sides = recorded(given, "task_node")
    lines, words = [], []
    for position, (name, ds, dim) in enumerate(sides):
        away = tasks_astray(ds)
        line = _line(name, ds[dim].values, away.astype(float), _side_look(position))
        lines.append(line)
        words.append(_astray_words(name, ds, away, line))
    end = end_of(sides, seconds)
    return Curves("tasks astray", "", [Panel("", lines, " ".join(words))], end, 10.0, ".0f", _band_words(sides))


def _astray_words(name: str, ds: xr.Dataset, away: Any, line: Line) -> str:
    home = (away[:, -1] == 0).sum()
    runs = ds.sizes["run"]
    if runs > 1:
        return f"{name}: at {line.times[-1]:.1f} s all tasks are with their process in {home} of {runs} runs."
    if not home:
        return f"{name}: {int(away[0, -1])} of {ds.sizes['task']} tasks are still astray after {line.times[-1]:.1f} s."
    since = float(line.times[int(np.flatnonzero(away[0])[-1]) + 1]) if away[0].any() else float(line.times[0])
    return f"{name}: from {since:.1f} s on all {ds.sizes['task']} tasks are with their process."


def perf(given: Sides, *, seconds: float | None = None) -> Curves:
    """Show threads by node as the progress lines of ``perf bench numa mem`` tell them; of several runs the first.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
        Read from perf's output, or simulated runs with perf's view added.
    seconds : float, optional
        Length of the time axis; default: the last record of all sides.
    """
    sides = sides_of(given)
    parts, last = [], 0.0
    for name, ds in sides.items():
        need(ds, "perf_threads", "perf_record_count")
        records = ds.numa.table("progress")
        times, threads = records.perf_time_s.values, records.perf_threads.transpose("progress", "node").values
        lines = [
            Line(
                f"node {node}", times, threads[:, k].astype(float), None, None, style.NUMBERED[k % len(style.NUMBERED)]
            )
            for k, node in enumerate(ds.node.values.tolist())
        ]
        last = max(last, float(times[-1]) if len(times) else 0.0)
        pairs = records.perf_groups.values
        words = [
            f"at {t:.0f} s {listed(row.tolist())} threads on the nodes, {int(p)} process-node pairs"
            for t, row, p in zip(times, threads, pairs, strict=True)
        ]
        told = [words[0], *words[-2:]] if len(words) > 2 else words
        parts.append(Panel(name, lines, f"{name}: {'; '.join(told)}." if told else f"{name}: no record."))
    return Curves("threads", "", parts, seconds or last, form=".0f")


def tasks_astray(ds: xr.Dataset) -> Any:
    """Count the tasks that are not on the main node of their process.

    Returns
    -------
    ndarray of int, (run, time)
        On the time axis of ``task_node``. A task that has not started counts as astray.
    """
    node = ds.task_node.transpose("run", axis_of(ds, "task_node"), "task").values
    process = ds.task_process.values
    away = np.zeros(node.shape[:2], np.int64)
    for number in np.unique(process[process >= 0]):
        own = node[:, :, process == number]
        counts = np.stack([(own == label).sum(axis=2) for label in ds.node.values], axis=2)
        away += own.shape[2] - counts.max(axis=2)
    return away
