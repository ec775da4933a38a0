"""Thread S0 in figures, from the numbers of the runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from numalab.patch_threads import shared_cow_guest
from numalab.patch_threads.shared_cow_cases import Result, published
from numalab.patch_threads.shared_cow_report import WORDS, swept, trios

#: Case -> colour, marker; they differ in grey as well.
STYLE = {"off": ("#999999", "D"), "before": ("#D55E00", "o"), "patched": ("#0072B2", "s")}


def plot_main(found: Sequence[Result]) -> Figure | None:
    """Draw throughput beside the mail's, for each reading of the machine, and how time is lost."""
    ready = list(trios(found))
    if not ready:
        return None
    mail = published()["throughput"]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ticks = []
    for group, (reading, trio) in enumerate(ready):
        for j, label in enumerate(("before", "patched")):
            colour, marker = STYLE[label]
            x = 2.6 * group + j
            values = trio[label].passes / trio["off"].passes
            low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
            left.plot(
                x - 0.12, mail[label] / mail["off"], "k_", ms=18, mew=3, label="the mail" if not (group or j) else None
            )
            left.errorbar(
                x + 0.12, middle, [[middle - low], [high - middle]], fmt=marker, color=colour, ms=8, capsize=5,
                label=f"model, {WORDS[label]}" if not group else None,
            )  # fmt: skip
            ticks.append((x, f"{reading.cpus} CPUs\n{'before' if not j else 'patched'}"))
    left.axhline(1, color="#999999", lw=1, ls="--", label="balancing off")
    left.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    left.set(
        ylabel="throughput / balancing off", ylim=(0.94, 1.005), xlim=(-0.6, ticks[-1][0] + 0.6), title="Throughput"
    )
    left.legend(frameon=False, loc="center left", fontsize=8)
    for line, (reading, trio) in zip(("-", ":"), ready, strict=False):
        for label in ("before", "patched"):
            one = trio[label]
            mean = one.passes / one.case.readers
            edges = [np.median(one.slowest / mean), 1, np.median(one.fastest / mean)]
            y = list(WORDS).index(label) - 1 + (0.15 if line == ":" else -0.15)
            colour, marker = STYLE[label]
            right.plot(edges, [y] * 3, line, color=colour, lw=2, marker=marker, ms=7)
            right.annotate(
                f"{reading.cpus} CPUs", (edges[2], y), xytext=(8, -3), textcoords="offset points", fontsize=8
            )
    right.axvline(1, color="#999999", lw=1)
    right.set_yticks([0, 1], ["before\nthe patch", "with\nthe patch"])
    right.set(xlabel="passes of a reader / mean", title="Slowest and fastest reader", xlim=(0.5, 2.5), ylim=(-0.5, 1.5))
    return figure


def plot_guest(guest: shared_cow_guest.Guest) -> Figure | None:
    """Draw the real kernel's readers beside the model's."""
    if set(guest) != set(shared_cow_guest.LABELS.values()):
        return None
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = (
        ("slowest", "slowest reader / mean"),
        ("fastest", "fastest reader / mean"),
        ("waiting", "readers waiting"),
    )
    for axes, (name, title) in zip(figure.subplots(1, 3), panels, strict=True):
        for i, label in enumerate(shared_cow_guest.LABELS.values()):
            pair = guest[label][name]
            axes.plot(
                np.full(len(pair.real), i - 0.12), pair.real, "k_", ms=16, mew=3, label=None if i else "real kernel"
            )
            low, middle, high = np.quantile(pair.model, [0.05, 0.5, 0.95])
            axes.errorbar(
                i + 0.12, middle, [[middle - low], [high - middle]], fmt="o", color="#D55E00", ms=7, capsize=5,
                label=None if i else "model",
            )  # fmt: skip
        axes.set_xticks(range(3), ["off", "before", "patched"])
        axes.set(title=title, xlim=(-0.5, 2.5), ylim=(0, None))
        axes.grid(axis="y", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def plot_sweeps(found: Sequence[Result]) -> Figure | None:
    """Draw loss and waiting against the number of readers and the size of the array."""
    along = {by: swept(found, by) for by in ("readers", "ints")}
    if any(len(points) < 2 for points in along.values()):
        return None
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, (by, points) in zip(figure.subplots(1, 2, sharey=True), along.items(), strict=True):
        x = [value for value, _ in points]
        for label in ("before", "patched"):
            colour, marker = STYLE[label]
            y = [100 * (1 - np.median(trio[label].passes / trio["off"].passes)) for _, trio in points]
            axes.plot(x, y, marker=marker, color=colour, label=f"throughput lost, {WORDS[label].removeprefix('on, ')}")
        waiting = [100 * np.median(trio["before"].waiting) for _, trio in points]
        axes.plot(x, waiting, "k:", marker="^", label="time waiting, before the patch")
        axes.set(
            xscale="log", xlabel="readers" if by == "readers" else "integers in the array", title=f"144 CPUs, by {by}"
        )
        axes.set_xticks(x, [f"{value:,}" for value in x], rotation=30)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    axes.figure.axes[0].set_ylabel("% of throughput or time")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
