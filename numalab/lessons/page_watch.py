"""A run of the model seen page by page: where each page is, whether it is trapped, who touched it last.

A run dataset counts pages by region and node; on a machine with few pages one can look at each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from numalab.compile import compile_layout
from numalab.kernel import Kernel
from numalab.layout import Layout
from numalab.machine import machine
from numalab.model.engine import Engine
from numalab.model.state import COUNTERS, State
from numalab.plots.pagemap import LETTERS
from numalab.plots.picture import listed
from numalab.widgets import Setup
from numalab.widgets.jobs import DONE
from numalab.workloads import workload

#: Steps between two looks.
STEPS = 5
#: More pages than this cannot be told apart in a figure.
MOST_PAGES = 64


@dataclass(frozen=True)
class Watch:
    """A simulation whose pages are looked at every few steps; a job of an explorer.

    Attributes
    ----------
    setup : Setup
        Of a machine and a workload by name, with at most :data:`MOST_PAGES` blocks of memory.
    """

    setup: Setup

    @property
    def seconds(self) -> float:
        """Simulated time, seconds."""
        return self.setup.seconds

    def start(self, seeds: Sequence[int]) -> Watching:
        """Begin.

        Raises
        ------
        ValueError
            More pages than can be looked at one by one.
        """
        (seed,) = seeds
        return Watching(self.setup, seed)

    def run(self, seed: int = 0) -> xr.Dataset:
        """Watch one run to its end; what this session has done already is not done twice."""
        call = self.call([seed])
        found: xr.Dataset | None = DONE.get(call)
        if found is None:
            watching = self.start([seed])
            while not watching.done:
                watching.advance(1.0)
            found = watching.dataset()
            DONE.put(call, found)
        return found

    def parts(self, seeds: Sequence[int]) -> list[list[int]]:
        """Return the one seed that is watched: pages of several runs cannot be shown in one figure."""
        return [list(seeds[:1])]

    def join(self, parts: Sequence[xr.Dataset]) -> xr.Dataset:
        """Return the one part."""
        (only,) = parts
        return only

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that watches the same."""
        one = self.setup
        given = [repr(one.machine), repr(one.workload), repr(one.kernel), repr(one.seconds), repr(dict(one.arguments))]
        given += [f"switches={dict(one.switches)!r}", f"options={dict(one.options)!r}"]
        lines = "\n".join(f"    {part}," for part in given)
        return (
            "from numalab.lessons.page_watch import Watch\nfrom numalab.widgets import Setup\n\n"
            f"setup = Setup(\n{lines}\n)\nds = Watch(setup).run(seed={seeds[0]})"
        )

    def facts(self) -> str:
        """Say what is computed."""
        return self.setup.facts()


class Watching:
    """A watched simulation on its way."""

    def __init__(self, setup: Setup, seed: int) -> None:
        host = machine(str(setup.machine))
        load = workload(str(setup.workload), host, **setup.arguments)
        layout = compile_layout(host, load)
        if layout.blocks > MOST_PAGES or layout.pte_blocks != layout.blocks:
            raise ValueError(
                f"expected at most {MOST_PAGES} pages (or huge pages) to look at, each of one process; "
                f"got {layout.blocks:,} pages with {layout.pte_blocks:,} page table entries"
            )
        kernel = Kernel(setup.kernel).patched(*setup.patches).replace(**setup.switches)
        self._engine = Engine(layout, kernel, [seed], setup.options)
        self._areas = _areas(layout)
        self._dt = self._engine.state.dt / 1e9
        self._end = max(1, round(setup.seconds / self._dt))
        self._frames = [_look(self._engine.state)]
        self._times = [0.0]

    @property
    def done(self) -> bool:
        """Whether the time is over."""
        return int(self._engine.state.step_index[0]) >= self._end

    def advance(self, budget_s: float) -> None:
        """Go on for about so many seconds of wall-clock time, at least to the next look."""
        until = time.monotonic() + budget_s
        while not self.done:
            for _ in range(STEPS):
                self._engine.step()
            self._frames.append(_look(self._engine.state))
            self._times.append(int(self._engine.state.step_index[0]) * self._dt)
            if time.monotonic() >= until:
                break

    def dataset(self) -> xr.Dataset:
        """Return what was seen so far.

        Returns
        -------
        xarray.Dataset
            Along ``time`` (s) and ``page``: ``page_node``, ``page_trapped``, ``page_user`` (the task that last faulted
            on it, -1: none) and ``page_user_node`` (where it ran then). Along ``time`` and ``task``: ``task_node``,
            ``preferred_nid``, ``scan_period_ms``, ``task_group``; and ``node``: ``faults`` (pages; averages that decay,
            as the kernel's numa_faults of memory), ``faults_new`` (pages since the last placement). The counters.
            Along ``page``: ``page_of``, who touches it.
        """
        data = {name: (dims, np.stack([frame[name] for frame in self._frames])) for name, dims in _DIMS.items()}
        layout = self._engine.state.layout
        names = np.repeat(self._areas, layout.region_blocks)
        ds = xr.Dataset(data, {"time": self._times, "page_of": ("page", names)})
        ds.time.attrs["units"] = "s"
        ds.scan_period_ms.attrs["units"] = "ms"
        return ds


_PAGES, _TASKS = ("time", "page"), ("time", "task")
_DIMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("page_node", "page_trapped", "page_user", "page_user_node"), _PAGES),
    **dict.fromkeys(("task_node", "preferred_nid", "scan_period_ms", "task_group"), _TASKS),
    **dict.fromkeys(("faults", "faults_new"), (*_TASKS, "node")),
    **dict.fromkeys(COUNTERS, ("time",)),
}


def _look(state: State) -> dict[str, Any]:
    """Return one look at the run."""
    layout, fix = state.layout, state.fix
    # the page table entry of each page: every page has one
    entry = np.argsort(np.arange(layout.pte_blocks) + fix.vma_block_offset[fix.pte_vma])
    cpu, pid = state.last_cpu[0].astype(np.int64), state.last_pid[0]
    user = np.argmax(pid[:, None] == fix.task_pid8, axis=1)
    size = int(fix.vma_block_pages[0])
    return {
        "page_node": state.node[0].astype(np.int64),
        "page_trapped": state.trapped[0, entry],
        "page_user": np.where(cpu >= 0, user, -1),
        "page_user_node": np.where(cpu >= 0, layout.cpu_node[np.maximum(0, cpu)], -1),
        "task_node": state.node_of_task[0].copy(),
        "preferred_nid": state.preferred[0].copy(),
        "scan_period_ms": state.period_ms[0].copy(),
        "task_group": state.group[0].copy(),
        "faults": state.mem[0].sum(axis=2) / size,
        "faults_new": state.membuf[0].sum(axis=2) / size,
        **{name: count[0] for name, count in state.counters.items()},
    }


def _areas(layout: Layout) -> list[str]:
    """Say of each region which threads touch it."""
    touched = layout.vma_region[layout.access_vma]
    names = []
    for region in range(layout.regions):
        tasks = np.unique(layout.access_task[touched == region]).tolist()
        names.append(("shared by " if len(tasks) > 1 else "only ") + listed([LETTERS[task] for task in tasks]))
    return names
