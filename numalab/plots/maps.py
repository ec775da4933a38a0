"""Maps: where tasks are over time, and where their memory is faulted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from numpy.typing import NDArray

from numalab.plots import style
from numalab.plots.picture import Picture, PictureError, Sides, end_of, held, listed, recorded
from numalab.schema import BALANCER_MOVE, FAILED, MOVE, SWAP
from numalab.text import table

#: Kinds of task events: marker and words. A failed attempt moves nothing and is not marked.
_MARKS = {MOVE: ("o", "NUMA move"), SWAP: ("x", "NUMA swap"), BALANCER_MOVE: ("|", "load balancer")}
#: More events than this are marked smaller.
_MANY = 250
_TIMES = 9


@dataclass(frozen=True)
class _Map:
    """One side: nodes of the tasks of one run, and what moved them."""

    name: str
    times: NDArray[np.float64]
    node: NDArray[np.int32]  # (time, task)
    process: NDArray[np.int64]
    labels: list[int]
    events: dict[int, NDArray[np.float64]]  # kind -> (event, 2): time, row of the task
    runs: int


@dataclass
class NodeMap(Picture):
    """Tasks by node over time, one panel for each side; of several runs the first is drawn.

    Attributes
    ----------
    maps : list
        One for each side.
    end : float
        Where the time axis ends, s.
    """

    maps: list[_Map]
    end: float

    def __post_init__(self) -> None:
        self.panels = len(self.maps)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the tasks as rows, processes below each other, the node as colour; its number stands in the row."""
        for ax, one in zip(axes, self.maps, strict=True):
            _draw_map(ax, one, self.end)
            style.dress(ax, one.name, "time [s]", "task, by process" if ax is axes[0] else "", grid=False)
            # one scale for both sides, if they have the same tasks
            if ax is not axes[0] and one.node.shape[1] == self.maps[0].node.shape[1]:
                ax.tick_params(labelleft=False)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """Threads of each process by node, at some times."""
        parts = []
        for one in self.maps:
            picked = np.unique(np.linspace(0, len(one.times) - 1, _TIMES).astype(int))
            head = ["time [s]", *(f"process {p}" for p in np.unique(one.process))]
            rows = []
            for k in picked:
                cells = [
                    "/".join(str(int((one.node[k, one.process == p] == label).sum())) for label in one.labels)
                    for p in np.unique(one.process)
                ]
                rows.append([f"{one.times[k]:.1f}", *cells])
            nodes = "/".join(map(str, one.labels))
            parts.append(f"{one.name}: threads of each process on nodes {nodes}\n" + table(head, rows, left=0))
        return "\n\n".join(parts)

    @property
    def alt(self) -> str:
        """How many processes are on one node at the end, and what moved the tasks."""
        words = []
        for one in self.maps:
            numbers = np.unique(one.process[one.process >= 0])
            whole = sum(len(np.unique(one.node[-1, one.process == p])) == 1 for p in numbers)
            moved = {kind: len(one.events[kind]) for kind in _MARKS}
            first = "first of the runs: " if one.runs > 1 else ""
            counts = (
                f"{moved[MOVE]} moves, {moved[SWAP]} swaps, {moved[BALANCER_MOVE]} moves by the load balancer so far"
            )
            words.append(
                f"{one.name}: {first}after {one.times[-1]:.1f} s {whole} of {len(numbers)} processes are on one node "
                f"each; {counts}."
            )
        return " ".join(words)


def nodes(given: Sides, *, seconds: float | None = None) -> NodeMap:
    """Show on which node each task runs, over time, with moves and swaps marked.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
    seconds : float, optional
        Length of the time axis; default: that of the record.
    """
    sides = recorded(given, "task_node")
    maps = []
    for name, ds, dim in sides:
        first = ds.isel(run=0)
        maps.append(
            _Map(
                name,
                ds[dim].values,
                first.task_node.transpose(dim, "task").values,
                ds.task_process.values,
                ds.node.values.tolist(),
                _events(first),
                ds.sizes["run"],
            )
        )
    return NodeMap(maps, end_of(sides, seconds))


def _events(run: xr.Dataset) -> dict[int, NDArray[np.float64]]:
    """Return the events of one run by kind: (event, 2) of time and row of the task."""
    found: dict[int, NDArray[np.float64]] = {kind: np.empty((0, 2)) for kind in _MARKS}
    if "event_kind" not in run:
        return found
    count = int(run.event_count)
    kind, when = run.event_kind.values[:count], run.event_time_s.values[:count]
    row = np.searchsorted(run.task.values, run.event_task.values[:count])
    if len(kind) and kind.max() > FAILED:
        raise PictureError(f"event_kind: expected 0 to {FAILED}, got {kind.max()}")
    for one in _MARKS:
        found[one] = np.stack([when[kind == one], row[kind == one]], axis=1)
    return found


def _draw_map(ax: Axes, one: _Map, end: float) -> None:
    labels = one.labels
    colours = [style.AREAS[k % len(style.AREAS)] for k in range(len(labels))]
    index = np.searchsorted(labels, one.node).astype(float)
    index[one.node < 0] = np.nan
    tasks = one.node.shape[1]
    # an image is drawn much sooner than a mesh
    ax.imshow(
        held(one.times, index, end), cmap=ListedColormap(colours), extent=(0, end, tasks, 0), aspect="auto",
        norm=BoundaryNorm(np.arange(len(labels) + 1) - 0.5, len(labels)), interpolation="nearest",
    )  # fmt: skip
    for k, label in enumerate(labels):
        ax.add_line(style.box(colours[k], f"node {label}"))
    size = 4.2 if sum(map(len, one.events.values())) <= _MANY else 2.4
    for kind, (marker, words) in _MARKS.items():
        at = one.events[kind]
        if len(at):
            look: dict[str, Any] = {"ls": "none", "marker": marker}
            # a white edge: black alone is not seen on the darkest node
            ax.plot(at[:, 0], at[:, 1] + 0.5, ms=size + 1, color="white", mew=2.2 if size > 3 else 1.6, **look)
            ax.plot(at[:, 0], at[:, 1] + 0.5, ms=size, color="black", mew=1, label=words, **look)
    _number_blocks(ax, one)
    ax.set_xlim(0, end)
    ax.set_ylim(tasks, 0)
    ax.hlines(np.flatnonzero(np.diff(one.process)) + 1, 0, end, color="black", lw=0.7)


def _number_blocks(ax: Axes, one: _Map) -> None:
    """Write the node where most of a process is beside its rows: the colour alone would say too little."""
    for number in np.unique(one.process[one.process >= 0]):
        rows = np.flatnonzero(one.process == number)
        last = one.node[-1, rows]
        counts = [int((last == label).sum()) for label in one.labels]
        ax.text(
            1.005, rows.mean() + 0.5, f"{one.labels[int(np.argmax(counts))]}: {max(counts)}",
            transform=ax.get_yaxis_transform(), va="center", fontsize=style.FONT - 2,
        )  # fmt: skip


# ------------------------------------------------------------------------------------ fault matrix
@dataclass
class FaultMatrix(Picture):
    """Decayed hint faults by task (or process) and node of the memory, at the end of the record.

    Attributes
    ----------
    sides : list of (name, row labels, (row, node) faults)
    labels : list of int
        Nodes.
    time : float
        s
    """

    sides: list[tuple[str, list[str], NDArray[Any]]]
    labels: list[int]
    time: float

    def __post_init__(self) -> None:
        self.panels = len(self.sides)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw each row's faults as shares of the row; the percentages stand in the cells."""
        for ax, (name, rows, faults) in zip(axes, self.sides, strict=True):
            share = _shares(faults)
            ax.imshow(share, cmap="cividis", vmin=0, vmax=100, aspect="auto")
            style.dress(ax, name, "node of the memory", "", grid=False)
            ax.set_xticks(range(len(self.labels)), [str(label) for label in self.labels])
            ax.set_yticks(range(len(rows)), rows)
            for i, j in np.ndindex(*share.shape):
                value = share[i, j]
                shade = "white" if np.isnan(value) or value < 55 else "black"
                ax.text(
                    j, i, "-" if np.isnan(value) else f"{value:.0f} %", ha="center", va="center", color=shade,
                    fontsize=style.FONT - 2,
                )  # fmt: skip

    @property
    def text(self) -> str:
        """Faults as numbers."""
        parts = []
        for name, rows, faults in self.sides:
            body = [[row, *(f"{x:,.0f}" for x in faults[i])] for i, row in enumerate(rows)]
            head = ["", *(f"node {label}" for label in self.labels)]
            parts.append(f"{name}: hint faults (decayed) at {self.time:.1f} s\n" + table(head, body))
        return "\n\n".join(parts)

    @property
    def alt(self) -> str:
        """Where each row has most of its faults."""
        words = []
        for name, rows, faults in self.sides:
            known = [i for i in range(len(rows)) if faults[i].sum() > 0]
            main = [f"{rows[i]} on node {self.labels[int(np.argmax(faults[i]))]}" for i in known]
            told = f"most faults of {listed(main)}" if main else "no hint fault yet"
            words.append(f"{name}, at {self.time:.1f} s: {told}.")
        return " ".join(words)


def _shares(faults: NDArray[Any]) -> NDArray[np.float64]:
    total = faults.sum(axis=1, keepdims=True).astype(float)
    return np.divide(100 * faults, total, out=np.full(faults.shape, np.nan), where=total > 0)


def faults(given: Sides) -> FaultMatrix:
    """Show where tasks fault: hint faults by task and node of the memory; of more than 24 tasks, by process.

    Parameters
    ----------
    given : dataset or mapping of str to dataset
        Runs that recorded ``faults``; of several runs the mean.
    """
    sides = []
    for name, ds, dim in recorded(given, "faults"):
        last = ds.faults.isel({dim: -1}).sum("kind").mean("run").transpose("task", "node").values
        names = ds.task_name.values.tolist()
        if len(names) > 24:
            process = ds.task_process.values
            numbers = np.unique(process[process >= 0])
            last = np.stack([last[process == p].sum(axis=0) for p in numbers])
            names = [f"p{p}" for p in numbers]
        sides.append((name, names, last))
        time, labels = float(ds[dim].values[-1]), ds.node.values.tolist()
    return FaultMatrix(sides, labels, time)
