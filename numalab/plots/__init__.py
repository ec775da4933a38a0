"""Figures: functions that take results and return a picture.

A :class:`Picture` is one set of numbers in three forms: ``.figure`` (matplotlib), ``.text`` (a table for terminals and
screen readers) and ``.alt`` (a sentence computed from the data). In a notebook it shows as the figure with the
sentence below. Every function takes one run dataset, or a mapping of names to datasets, which it draws beside each
other: ``plots.pages({"3.16": before, "3.17": after})``. Datasets of several seeds are drawn with bands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numalab.plots.arrays import page_moves, pages_on, whereabouts
from numalab.plots.curves import astray, local, pages, perf, rate, scan, tasks_astray, waiting
from numalab.plots.forkorder import ForkOrder
from numalab.plots.maps import faults, nodes
from numalab.plots.moves import moves
from numalab.plots.pagemap import PageMap, watched
from numalab.plots.parts import Beside, Parts
from numalab.plots.picture import Picture, PictureError, Sides, stacked
from numalab.plots.published import contention, published
from numalab.plots.spans import Span, Spans, counters
from numalab.plots.verdicts import VerdictMap

__all__ = [
    "PLOTS",
    "Beside",
    "ForkOrder",
    "PageMap",
    "Parts",
    "Picture",
    "PictureError",
    "Plot",
    "Sides",
    "Span",
    "Spans",
    "VerdictMap",
    "astray",
    "contention",
    "counters",
    "faults",
    "local",
    "moves",
    "nodes",
    "page_moves",
    "pages",
    "pages_on",
    "perf",
    "published",
    "rate",
    "scan",
    "stacked",
    "tasks_astray",
    "waiting",
    "watched",
    "whereabouts",
]


@dataclass(frozen=True)
class Plot:
    """A picture of runs, by name.

    Attributes
    ----------
    what : str
        One line for lists.
    make : callable
        From runs to a picture.
    """

    what: str
    make: Callable[..., Any]


#: What ``numalab plot`` knows.
PLOTS: dict[str, Plot] = {
    "pages": Plot("memory on each node over time", pages),
    "nodes": Plot("the node each task runs on over time, moves and swaps marked", nodes),
    "astray": Plot("tasks that are not with their process, over time", astray),
    "local": Plot("share of hint faults that were local, over time", local),
    "scan": Plot("scan period over time", scan),
    "waiting": Plot("share of tasks waiting for pages or locks, over time", waiting),
    "perf": Plot("threads by node, as perf bench numa mem prints them", perf),
    "faults": Plot("hint faults by task and node of the memory, at the end", faults),
    "moves": Plot("moves and swaps by what they gain", moves),
    "counters": Plot("what was counted, relative to the first run", counters),
}
