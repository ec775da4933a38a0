"""The figures of thread S4: local hint faults, and NUMA moves by what they gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from numalab.patch_threads.marginal_moves_cases import (
    BASE,
    BRANCH,
    BRANCH_PATCHED,
    GAIN_NAMES,
    HACKBENCH,
    JVM,
    LATER,
    NEW,
    NO_HYSTERESIS,
    PATCHED,
    Result,
    published,
)

REPORT_NAMES = {BASE: "before", NEW: "with\na43455a1", PATCHED: "+ the mail's\npatch"}
#: Kernel -> colour, hatch. In grey they differ by lightness and hatch.
REPORT_STYLE = {BASE: ("#BBBBBB", ""), NEW: ("#D55E00", "//"), PATCHED: ("#56B4E9", "..")}
TRACE_STYLE = {
    BRANCH: ("#D55E00", "//"),
    NO_HYSTERESIS: ("#F0E442", "xx"),
    BRANCH_PATCHED: ("#56B4E9", ".."),
    LATER: ("#000000", ""),
}


def plot_local(found: Sequence[Result]) -> Figure | None:
    """Draw local hint faults relative to those before the commit, the report's and the model's; None without both."""
    own = {(one.case.load, one.case.label): one.local() for one in found if one.case.load in HACKBENCH}
    rows = [row for row in published()["lkp"]["rows"] if (row["load"], BASE) in own and (row["load"], NEW) in own]
    if not rows:
        return None
    figure = Figure(figsize=(4.6 * len(rows), 3.6), layout="constrained")
    for ax, row in zip(figure.subplots(1, len(rows), sharey=True, squeeze=False)[0], rows, strict=True):
        ax.bar([0, 1], [1, row["new"] / row["base"]], color=["#BBBBBB", "#D55E00"], edgecolor="black", width=0.7)
        ax.patches[1].set_hatch("//")
        base = own[row["load"], BASE].mean()
        labels = [label for label in REPORT_STYLE if (row["load"], label) in own]
        for x, label in enumerate(labels, start=3):
            colour, hatch = REPORT_STYLE[label]
            values = own[row["load"], label] / base
            ax.bar(x, values.mean(), color=colour, hatch=hatch, edgecolor="black", width=0.7)
            ax.plot(x + np.linspace(-0.2, 0.2, len(values)), values, "o", color="white", mec="black", ms=4)
        ticks = [0, 1, *range(3, 3 + len(labels))]
        ax.set_xticks(ticks, [REPORT_NAMES[one] for one in (BASE, NEW, *labels)], fontsize=8)
        ax.set_title(row["test"], fontsize=9)
        top = ax.get_xaxis_transform()
        ax.text(0.5, 0.97, "the report", transform=top, ha="center", va="top")
        ax.text(3 + (len(labels) - 1) / 2, 0.97, "the model (dots: seeds)", transform=top, ha="center", va="top")
        ax.margins(y=0.15)
        ax.grid(axis="y", alpha=0.3)
    figure.axes[0].set_ylabel("numa_hint_faults_local, before = 1")
    return figure


def plot_gains(found: Sequence[Result]) -> Figure | None:
    """Draw NUMA swaps and moves of the JVM a minute by what they gain; None when no such kernel is finished."""
    own = {one.case.label: one for one in found if one.case.load == JVM and one.case.label in TRACE_STYLE}
    if not own:
        return None
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    width = 0.8 / len(own)
    for ax, kind in zip(figure.subplots(1, 2), ("swaps", "moves"), strict=True):
        for i, label in enumerate(name for name in TRACE_STYLE if name in own):
            colour, hatch = TRACE_STYLE[label]
            one = own[label]
            values = (one.swaps if kind == "swaps" else one.moves).mean(axis=0) * 60 / one.seconds
            at = np.arange(len(GAIN_NAMES)) + (i - (len(own) - 1) / 2) * width
            ax.bar(at, values, width, color=colour, hatch=hatch, edgecolor="black", lw=0.6, label=label)
        limit = [float(name.split("-")[0]) >= published()["threshold"]["gain"] for name in GAIN_NAMES[1:-1]].index(True)
        ax.axvline(limit + 0.5, color="black", ls="--", lw=1)
        ax.set_xticks(range(len(GAIN_NAMES)), GAIN_NAMES)
        ax.set(title=f"NUMA {kind}", xlabel="gain, of 1000 (dashed: the mail's threshold)")
        ax.grid(axis="y", alpha=0.3)
    figure.axes[0].set_ylabel("a minute")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
