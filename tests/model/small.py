"""Small states brought into shape by hand, for tests of single rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import Ints
from numalab.model import fault, runqueue, weights
from numalab.model.engine import Engine
from numalab.model.state import PRIVATE, State
from numalab.model.touch import Touches
from tests.reference.tiny import tiny_layout

GB = 262144  # pages


def state_of(
    kernel: str,
    *,
    runs: int = 1,
    params: dict[str, Any] | None = None,
    switches: dict[str, Any] | None = None,
    **rest: Any,
) -> State:
    """A fresh batch over a layout of :func:`tests.reference.tiny.tiny_layout`."""
    return Engine(tiny_layout(**rest), Kernel(kernel, **(switches or {})), range(runs), params).state


def at(*values: int) -> Ints:
    return np.array(values, np.int64)


def place(state: State, cpus: Sequence[int]) -> State:
    """Put the tasks on these CPUs, with the queues up to date."""
    for t, cpu in enumerate(cpus):
        state.put(np.arange(state.runs), t, cpu)
    state.queue_changed[:] = True
    runqueue.pick_running(state)
    return state


def give(
    state: State, t: int, faults: Sequence[int], preferred: int | None = None, *, total: int | None = None
) -> None:
    """Give a task private faults by node, and perhaps a preferred node (``total``: to have some elsewhere)."""
    state.mem[:, t] = 0
    state.mem[:, t, :, PRIVATE] = faults
    state.total[:, t] = sum(faults) if total is None else total
    if preferred is not None:
        state.preferred[:, t] = preferred
    rows = np.arange(state.runs)
    weights.refresh_tasks(state, rows, np.full(state.runs, t))


def band(state: State, tasks: Sequence[int], active: Sequence[int] = ()) -> int:
    """Make a group of tasks, named after the first; its sums are theirs. Returns its name."""
    g, rows = tasks[0], np.arange(state.runs)
    state.group[:, tasks] = g
    state.gmem[:, g], state.gcpu[:, g] = state.mem[:, tasks].sum(axis=1), state.cpuf[:, tasks].sum(axis=1)
    state.gtotal[:, g], state.gtasks[:, g] = state.total[:, tasks].sum(axis=1), len(tasks)
    state.gactive[:, g] = False
    state.gactive[:, g, list(active)] = True
    state.gcount[:, g] = len(active)
    state.gmax[:, g] = state.gcpu[:, g].sum(axis=2).max(axis=1)
    weights.refresh_groups(state, rows, np.full(state.runs, g))
    return g


def last_used(state: State, block: int, by: int | None) -> None:
    """Make a task, where it is now, the last user of a block; None: nobody."""
    state.last_cpu[:, block] = -1 if by is None else state.cpu[0, by]
    state.last_pid[:, block] = -1 if by is None else state.fix.task_pid8[by]


def fault_on(state: State, *faults: tuple[int, int]) -> fault.Faults:
    """Let tasks fault on PTE blocks, in this order: (task, PTE block) each, through the task's first access there."""
    one = state.layout
    found = []
    for t, q in faults:
        v = int(state.fix.pte_vma[q])
        a = int(np.flatnonzero((one.access_task == t) & (one.access_vma == v))[0])
        if not state.trapped[0, q]:
            state.trapped[0, q] = True
            state.pending[0, v] += 1
        found.append((0, t, q, a))
    taken, late = fault.take(state, Touches(*(at(*column) for column in zip(*found, strict=True))))
    assert taken is not None
    assert not late.r.size
    fault.count(state, taken)
    return taken


def counted(state: State) -> dict[str, int]:
    """The counters that are not 0."""
    return {name: int(value[0]) for name, value in state.counters.items() if value[0]}
