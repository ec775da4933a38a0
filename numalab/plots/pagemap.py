"""Page by page: where each page of a small run is, whether it is trapped, and who touched it last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from numalab.plots import style
from numalab.plots.picture import Picture, listed
from numalab.text import table

#: Threads are called by letters: numbers are nodes.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Colours of pages by the node they were last touched from: light, a text stands on them.
_TOUCHED = ("#F7E0A6", "#BBDDF5", "#B5E2D3", "#E6CFDF")
_UNTOUCHED = "#FFFFFF"
#: Half of a page's side.
_HALF = 0.42


@dataclass
class PageMap(Picture):
    """All pages at one moment, the fault averages of the threads, and the pages on each node until then.

    Attributes
    ----------
    seen : xarray.Dataset
        Of :class:`numalab.lessons.page_watch.Watch`, up to the moment.
    seconds : float
        Where the time axis ends.
    """

    seen: xr.Dataset
    seconds: float
    panels: int = 3

    @cached_property
    def figure(self) -> Figure:
        """The figure: the pages above, the two others below."""
        made = Figure(figsize=(9.6, 4.4), dpi=100)
        grid = made.add_gridspec(
            2, 2, height_ratios=(1.15, 1), left=0.08, right=0.985, top=0.935, bottom=0.155, hspace=0.45, wspace=0.2
        )
        self.draw([made.add_subplot(grid[0, :]), made.add_subplot(grid[1, 0]), made.add_subplot(grid[1, 1])])
        return made

    @cached_property
    def now(self) -> Any:
        """The last look."""
        return self.seen.isel(time=-1)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the pages, the fault averages, and the pages by node over time."""
        pages, faults, past = axes
        self._draw_pages(pages)
        self._draw_faults(faults)
        self._draw_past(past)

    def _draw_pages(self, ax: Axes) -> None:
        now, nodes = self.now, self.seen.sizes["node"]
        count = now.sizes["page"]
        for n in range(nodes):
            ax.axhspan(n - 0.5, n + 0.5, lw=0, color="#E2E2E2" if n % 2 else "#F0F0F0", zorder=0)
        looks = zip(*(now[name].values for name in _LOOK), strict=True)
        for page, (node, trapped, user, user_node) in enumerate(looks):
            box = Rectangle(
                (page - _HALF, node - _HALF), 2 * _HALF, 2 * _HALF, zorder=2, lw=2.2 if trapped else 0.8,
                fc=_TOUCHED[user_node % len(_TOUCHED)] if user >= 0 else _UNTOUCHED,
                ec="black" if trapped else "#777777", hatch="////" if trapped else "",
            )  # fmt: skip
            ax.add_artist(box)
            if user >= 0:
                words = f"{LETTERS[user]}{user_node}"
                style_of = {"boxstyle": "square,pad=0.1", "fc": box.get_facecolor(), "ec": "none"}
                ax.text(page, node, words, ha="center", va="center", fontsize=9, zorder=3, bbox=style_of)
        _draw_threads(ax, now.task_node.values)
        _draw_regions(ax, now.page_of.values, nodes)
        ax.set_xlim(-3.4, count - 0.4)
        ax.set_ylim(nodes - 0.15, -0.55)
        for n in range(nodes):
            ax.text(-3.6, n, f"node {n}", ha="right", va="center", fontsize=style.FONT)
        words = "threads (circles) and pages. Hatched: trapped. a1: last fault by thread a on node 1"
        ax.text(-3.4, -0.65, f"{float(now.time):.2f} s: {words}", fontsize=style.FONT)
        # its axes would take a fifth of the time of all the drawing
        ax.set_axis_off()

    def _draw_faults(self, ax: Axes) -> None:
        now, nodes = self.now, self.seen.sizes["node"]
        labels = []
        for task, (old, new) in enumerate(zip(now.faults.values, now.faults_new.values, strict=True)):
            for n in range(nodes):
                x = task * (nodes + 0.6) + n
                ax.add_artist(Rectangle((x - 0.4, 0), 0.8, old[n], fc=style.NUMBERED[n][0], ec="black", lw=0.8))
                ax.add_artist(Rectangle((x - 0.4, old[n]), 0.8, new[n], fc="white", ec="black", lw=0.8, hatch=".."))
                star = "★" if int(now.preferred_nid[task]) == n else ""
                labels.append((x, f"{LETTERS[task]}:{n}{star}"))
        _dress(ax, "pages faulted, thread:node (★ preferred)", "filled: decaying average; dotted: since then")
        ax.set_xticks([x for x, _ in labels], [label for _, label in labels])
        most = float((self.seen.faults.values + self.seen.faults_new.values).max())
        ax.set_xlim(-0.6, labels[-1][0] + 0.6)
        ax.set_ylim(0, max(4.0, 1.1 * most))

    def _draw_past(self, ax: Axes) -> None:
        nodes = self.seen.sizes["node"]
        on = np.stack([(self.seen.page_node.values == n).sum(axis=1) for n in range(nodes)])
        # names keep a line's height from each other
        heights = np.empty(nodes)
        order = np.argsort(on[:, -1], kind="stable")
        line = 0.13 * self.seen.sizes["page"]
        for k, n in enumerate(order):
            heights[n] = max(on[n, -1], heights[order[k - 1]] + line) if k else on[n, -1]
        for n in range(nodes):
            colour, dash, _ = style.NUMBERED[n]
            ax.plot(self.seen.time.values, on[n], color=colour, ls=dash, lw=2)
            ax.text(float(self.seen.time[-1]), heights[n], f" node {n}", va="center", fontsize=style.FONT - 1)
        _dress(ax, "pages on each node", "time [s]")
        ax.set_xlim(0, 1.13 * self.seconds)
        ax.set_ylim(-1, self.seen.sizes["page"] + 1)

    @property
    def text(self) -> str:
        """The pages as a table."""
        now = self.now
        rows = [
            [str(page), str(node), "yes" if trapped else "", f"{LETTERS[user]} on node {there}" if user >= 0 else ""]
            for page, (node, trapped, user, there) in enumerate(zip(*(now[name].values for name in _LOOK), strict=True))
        ]
        return table(["page", "node", "trapped", "last fault"], rows, right=(0, 1))

    @property
    def alt(self) -> str:
        """Where threads and pages are, how many are trapped or half on their way, and what the averages say."""
        now, nodes = self.now, self.seen.sizes["node"]
        node, user_node = now.page_node.values, now.page_user_node.values
        where = listed([f"{int((node == n).sum())} on node {n}" for n in range(nodes)])
        half = int(((user_node >= 0) & (user_node != node)).sum())
        tasks = range(now.sizes["task"])
        runs = listed([f"{LETTERS[t]} on node {int(now.task_node[t])}" for t in tasks])
        wants = listed([_wish(LETTERS[t], int(now.preferred_nid[t]), int(now.scan_period_ms[t])) for t in tasks])
        return (
            f"At {float(now.time):.2f} s: thread{'s' if len(tasks) > 1 else ''} {runs}; pages: {where}. "
            f"{int(now.page_trapped.sum())} trapped; {half} last touched from another node than they are on. "
            f"Hint faults so far: {int(now.numa_hint_faults)}. {wants}."
        )


_LOOK = ("page_node", "page_trapped", "page_user", "page_user_node")


def watched(seen: xr.Dataset, *, seconds: float) -> PageMap:
    """Return the picture of a watched run at its last look.

    Parameters
    ----------
    seen : xarray.Dataset
        Of :class:`numalab.lessons.page_watch.Watch`; a part of it shows an earlier moment.
    seconds : float
        Where the time axis ends.
    """
    return PageMap(seen, seconds)


def _wish(letter: str, preferred: int, period: int) -> str:
    node = "has no preferred node" if preferred < 0 else f"prefers node {preferred}"
    return f"{letter} {node} and scans every {period} ms"


def _dress(ax: Axes, title: str, xlabel: str) -> None:
    """Give axes their labels and few ticks: grid and ticks of the usual dress take half of the time of all drawing."""
    ax.set_title(title, fontsize=style.FONT, loc="left", y=1.02)
    ax.set_xlabel(xlabel, fontsize=style.FONT - 1)
    ax.set_ylabel("pages", fontsize=style.FONT - 1)
    ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.xaxis.set_label_coords(0.5, -0.2)
    ax.yaxis.set_label_coords(-0.09, 0.5)
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)


def _draw_threads(ax: Axes, node_of_task: Any) -> None:
    """Draw the threads on their nodes, left of the pages."""
    seats: dict[int, int] = {}
    for task, node in enumerate(node_of_task.tolist()):
        seat = seats[node] = seats.get(node, -1) + 1
        x, y = -2.8 + 1.0 * (seat % 2), node + (0.24 if seat // 2 else -0.24) * (len(node_of_task) > 2)
        circle = {"boxstyle": "circle,pad=0.25", "fc": "black", "ec": "black"}
        ax.text(x, y, LETTERS[task], ha="center", va="center", color="white", fontsize=10, bbox=circle, zorder=3)


def _draw_regions(ax: Axes, regions: Any, nodes: int) -> None:
    """Name the pages below them, and part those of different areas."""
    starts = np.flatnonzero(np.r_[True, regions[1:] != regions[:-1]])
    for start, end in zip(starts, np.r_[starts[1:], len(regions)], strict=True):
        name, length = regions[start], end - start
        ax.text(start + (length - 1) / 2, nodes - 0.32, name, ha="center", va="center", fontsize=style.FONT - 1)
        if start:
            ax.axvline(start - 0.5, color="black", lw=0.8)
