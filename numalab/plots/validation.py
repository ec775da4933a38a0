"""One figure per case: every quantity over time, real runs and model on the same axes."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from numalab.quantities import QUANTITIES, Quantity, Series
from numalab.validate import Outcome
from numalab.validate.judge import BAND

_COLUMNS = 3
#: Orange and black: in greyscale one is light and broad, the other dark and thin. Repetitions differ by dashes.
_MODEL, _REAL = "#E69F00", "#000000"
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 2)))
#: Axis labels of what is drawn where that is not the quantity itself.
_DRAWN = {
    "time_to_local": "share of pages on the node that holds most at the end",
    "local_share": "share of hint faults so far that were local",
    "main_node_share": "share of threads on their process's main node",
    "waiting_tasks": "tasks in state D, mean so far",
}


def plot_case(outcome: Outcome) -> Figure:
    """Draw a case.

    Parameters
    ----------
    outcome : Outcome

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each quantity that has a course over time: each repetition a line, the model's median and
        90 % band over seeds.
    """
    shown = [quantity for quantity in QUANTITIES if quantity.name in outcome.series]
    rows = max(1, math.ceil(len(shown) / _COLUMNS))
    figure = Figure(figsize=(11.0, 1.1 + 2.5 * rows), layout="constrained")
    grid = figure.subplots(rows, _COLUMNS, squeeze=False)
    for ax, quantity in zip(grid.flat, shown, strict=False):
        _panel(ax, quantity, *outcome.series[quantity.name], outcome.case.until_s)
    for ax in grid.flat[len(shown) :]:
        ax.set_axis_off()
    for ax in grid.flat[max(0, len(shown) - _COLUMNS) : len(shown)]:
        ax.set_xlabel("time [s]")
    command = str(outcome.case.first.ds["command"].values[0])
    figure.suptitle(f"{outcome.case.name}: {textwrap.shorten(command, 90)}", fontsize=11)
    figure.legend(handles=_keys(outcome), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


def _panel(ax: Axes, quantity: Quantity, real: list[Series], model: Series, until: float) -> None:
    times, values = model
    known = ~np.isnan(values).all(axis=0)
    if known.any():
        low, middle, high = np.nanquantile(values[:, known], (BAND[0], 0.5, BAND[1]), axis=0)
        ax.fill_between(times[known], low, high, color=_MODEL, alpha=0.35, lw=0)
        ax.plot(times[known], middle, color=_MODEL, lw=2.6)
    for number, (when, one) in enumerate(real):
        ax.plot(when, one[0], color=_REAL, lw=1.1, ls=_DASHES[number % len(_DASHES)])
    label = _DRAWN.get(quantity.name, quantity.what)
    ax.set_title("\n".join(textwrap.wrap(label, 44)), fontsize=9)
    ax.set_xlim(0, until)
    ax.margins(y=0.08)
    ax.grid(alpha=0.25)
    ax.tick_params(labelsize=8)
    if quantity.units == "pages":
        ax.set_ylabel("pages", fontsize=8)
    # a row of zeros is drawn as such, not on a scale of its own
    ax.set_ylim(0, max(1.02, ax.get_ylim()[1]))


def _keys(outcome: Outcome) -> list[Any]:
    keys: list[Any] = [
        Line2D([], [], color=_REAL, lw=1.1, ls=_DASHES[number % len(_DASHES)], label=f"real, {trace.name}")
        for number, trace in enumerate(outcome.case.traces)
    ]
    if len(keys) > len(_DASHES):
        keys = [Line2D([], [], color=_REAL, lw=1.1, label=f"real, {len(outcome.case.traces)} repetitions")]
    keys.append(Line2D([], [], color=_MODEL, lw=2.6, label="model, median"))
    keys.append(Patch(color=_MODEL, alpha=0.35, lw=0, label=f"model, {BAND[1] - BAND[0]:.0%} band"))
    return keys
