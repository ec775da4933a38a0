"""Figures of thread S2: migrations and run times, the mail's beside the model's and a real kernel's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from numalab.patch_threads import Claim

#: Colour, marker, label; black, orange and blue differ in greyscale too.
STYLE = {
    "mail": ("black", "s", "the mail"),
    "model": ("#E69F00", "o", "model, 5-95 %"),
    "real": ("#0072B2", "^", "real kernel, another load"),
}


def plot_counts(answer: Sequence[Claim]) -> Figure | None:
    """Draw migrations, and migrations per fault, by kernel."""
    panels = [
        ("migrations per 10 s, ", "Migrations, relative to 3.19"),
        ("migrations per hint", "Migrated per hint fault"),
    ]
    chosen = [[claim for claim in answer if claim.claim.startswith(start)] for start, _ in panels]
    if not all(chosen):
        return None
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    for axes, some, (_, title) in zip(figure.subplots(1, 2), chosen, panels, strict=True):
        names = [claim.claim.split(", ")[1].split(" / ")[0] for claim in some]
        _dots(axes, names, some)
        axes.set(title=title, ylim=(0, None))
    _legend(figure)
    return figure


def plot_times(answer: Sequence[Claim]) -> Figure | None:
    """Draw run times relative to 3.19, one panel a configuration."""
    by: dict[str, list[Claim]] = {}
    for claim in answer:
        if claim.claim.startswith("run time, "):
            options = claim.claim.removeprefix("run time, ").rsplit(", ", 1)[0]
            by.setdefault(options, []).append(claim)
    if not by:
        return None
    figure = Figure(figsize=(max(5.0, 3.1 * len(by)), 3.6), layout="constrained")
    grid = figure.subplots(1, len(by), sharey=True, squeeze=False, width_ratios=[len(some) for some in by.values()])
    for axes, (options, some) in zip(grid[0], by.items(), strict=True):
        _dots(axes, [claim.claim.rsplit(", ", 1)[1].split(" / ")[0] for claim in some], some)
        axes.axhline(1, color="#999999", lw=1)
        axes.set_title(options.replace(",", ",\n"), fontsize=9)
    grid[0][0].set(ylabel="run time / that of 3.19", ylim=(0, None))
    _legend(figure)
    return figure


def _dots(axes: Any, names: Sequence[str], some: Sequence[Claim]) -> None:
    x = np.arange(len(some))
    values: Mapping[str, list[float]] = {
        "mail": [float(claim.published) for claim in some],
        "model": [np.nan if claim.model is None else claim.model for claim in some],
        "real": [np.nan if claim.real is None else claim.real for claim in some],
    }
    for shift, (key, (colour, marker, label)) in zip((-0.2, 0, 0.2), STYLE.items(), strict=True):
        if not np.isnan(values[key]).all():
            axes.plot(x + shift, values[key], marker, color=colour, ms=6, ls="none", label=label)
    low, high = ([getattr(claim, end) for claim in some] for end in ("low", "high"))
    axes.vlines(x, low, high, color=STYLE["model"][0], lw=2)
    axes.set_xticks(x, names, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(some) - 0.4)
    axes.grid(alpha=0.3)


def _legend(figure: Figure) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
