"""What is kept of a run, and how often (docs/model.md 4.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.layout import Ints
from numalab.model.state import COUNTERS, State

Array = NDArray[Any]
MS = 1_000_000


def _cpu_label(state: State) -> Array:
    return state.cpu


def _node_label(state: State) -> Array:
    return _labels(state, state.node_of_task)


def _counter(name: str) -> Callable[[State], Array]:
    return lambda state: state.counters[name]


def _labels(state: State, index: Ints) -> Array:
    return np.where(index >= 0, state.layout.node_id[np.maximum(0, index)], -1)


#: Recordable variables of the run schema: dimensions behind (run, time), and how to read one off the state.
READERS: dict[str, tuple[tuple[str, ...], Callable[[State], Array]]] = {
    **{name: ((), _counter(name)) for name in COUNTERS},
    "pages": (("region", "node"), lambda state: state.region_node_pages),
    "free_pages": (("node",), lambda state: state.free),
    "task_node": (("task",), _node_label),
    "task_cpu": (("task",), _cpu_label),
    "preferred_nid": (("task",), lambda state: _labels(state, state.preferred)),
    "scan_period_ms": (("task",), lambda state: state.period_ms),
    "numa_group_id": (("task",), lambda state: state.group + 1),
    "total_numa_faults": (("task",), lambda state: state.total),
    "task_run_ms": (("task",), lambda state: state.run_ns / MS),
    "task_sys_ms": (("task",), lambda state: state.sys_ns / MS),
    "task_wait_ms": (("task",), lambda state: state.waited_ns / MS),
    "task_work_pages": (("task",), lambda state: state.work / 1e9),
    "task_end_s": (("task",), lambda state: np.where(state.ended, state.end_ns / 1e9, np.nan)),
    "faults": (("task", "node", "kind"), lambda state: state.mem),
    "scan_seq": (("process",), lambda state: state.seq),
}

#: Recorded unless told otherwise, with the number of samples of a run.
USUAL: dict[str, int] = {
    **dict.fromkeys(COUNTERS, 240),
    "pages": 120,
    "free_pages": 120,
    "task_node": 240,
    "preferred_nid": 240,
    "scan_period_ms": 120,
    "numa_group_id": 60,
    "total_numa_faults": 60,
    "task_run_ms": 60,
    "task_sys_ms": 60,
    "task_wait_ms": 60,
    "task_work_pages": 60,
    "task_end_s": 1,
    "scan_seq": 60,
}


class Recorder:
    """Samples variables of all runs, each variable at its own interval, and one last time at the end.

    Parameters
    ----------
    every : mapping of str to int
        Variable to interval in steps.
    runs, end : int
        Number of runs; step index at which they end.
    """

    def __init__(self, every: Mapping[str, int], runs: int, end: int) -> None:
        self.end = end
        self.intervals = sorted(set(every.values()))
        self.times = {interval: _sample_steps(interval, end) for interval in self.intervals}
        self.variables = {i: [name for name, interval in every.items() if interval == i] for i in self.intervals}
        self.taken = {interval: np.zeros(runs, np.int64) for interval in self.intervals}
        self.arrays: dict[str, Array] = {}
        self._runs = runs

    def next_step(self, run: Ints) -> Ints:
        """Return the earliest step index each run must stop at to be sampled: (K,)."""
        steps = [np.append(t, self.end)[self.taken[i][run]] for i, t in self.times.items()]
        return np.minimum.reduce([np.full(len(run), self.end), *steps])

    def sample(self, state: State, run: Ints) -> None:
        """Take what is due; ``run`` is the number of each run in flight: (K,)."""
        for interval in self.intervals:
            times, taken = self.times[interval], self.taken[interval]
            due = np.append(times, np.iinfo(np.int64).max)[taken[run]] <= state.step_index
            rows = np.flatnonzero(due)
            if not rows.size:
                continue
            for name in self.variables[interval]:
                value = READERS[name][1](state)
                if name not in self.arrays:
                    self.arrays[name] = np.zeros((self._runs, len(times), *value.shape[1:]), value.dtype)
                self.arrays[name][run[rows], taken[run[rows]]] = value[rows]
            taken[run[rows]] += 1

    def finish(self, state: State, run: Ints, rows: Ints) -> None:
        """Fill the rest of runs that stop before the end with their last state."""
        for interval in self.intervals:
            taken = self.taken[interval]
            for name in self.variables[interval]:
                value = READERS[name][1](state)
                for row in rows:
                    self.arrays[name][run[row], taken[run[row]] :] = value[row]
            taken[run[rows]] = len(self.times[interval])


def _sample_steps(interval: int, end: int) -> Ints:
    steps = np.arange(0, end + 1, interval, dtype=np.int64)
    return steps if steps[-1] == end else np.append(steps, end)
