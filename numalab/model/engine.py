"""The loop: one step after another, each run of the batch on its own clock (docs/model.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.kernel import Kernel
from numalab.layout import Ints, Layout
from numalab.model import (
    balance,
    cost,
    doubled,
    fault,
    firsttouch,
    groups,
    moves,
    placement,
    runqueue,
    scan,
    skip,
    touch,
    weights,
)
from numalab.model.period import now_ms
from numalab.model.state import FAIL, State


class Engine:
    """A batch of runs of one machine, workload and kernel.

    Parameters
    ----------
    layout : Layout
    kernel : Kernel
    seeds : array_like of int, (R,)
    params : mapping, optional
        Parameters and numeric switches that differ from their defaults; numbers or (R,) arrays.
    rate_permille : (R, A) array of int, optional
        Rates of the accesses, of 1000 of the layout's.
    """

    def __init__(
        self,
        layout: Layout,
        kernel: Kernel,
        seeds: Any,
        params: Mapping[str, Any] | None = None,
        rate_permille: Ints | None = None,
    ) -> None:
        self.state = State(layout, kernel, np.atleast_1d(np.asarray(seeds, np.int64)), params, rate_permille)
        runqueue.start_and_bind(self.state)
        # memory with a given node is there from the start, whether or not a task is
        for run in range(self.state.runs):
            firsttouch.place_blocks(self.state, run)

    def step(self) -> None:
        """Advance every run by one step."""
        state = self.state
        runqueue.start_and_bind(state)
        runqueue.pick_running(state)
        useful = runqueue.spend_time(state)
        useful = scan.run_due_scans(state, useful)
        live = touch.live_accesses(state, useful)
        faults, late = fault.take(state, touch.touch(state, live))
        if faults is not None:
            faults = doubled.add(state, faults, live, late)
            fault.count(state, faults)
            _task_side(state, faults)
            cost.charge(state, faults, live)
        balance.balance(state)
        state.step_index += 1

    def skip(self, until: Ints) -> None:
        """Skip idle steps of each run, up to a step index per run (R,)."""
        skip.skip_idle(self.state, until)


def _task_side(state: State, faults: fault.Faults) -> None:
    """Carry the step's faults to the tasks: groups, placement, buffers, attempts to move (docs/model.md 4.7)."""
    groups_before = state.group.copy() if not faults.private.all() else None
    private, rate_local = groups.join(state, faults)
    if groups_before is not None:
        _refresh_changed_groups(state, groups_before)

    # faults come in order of run and task
    r, t = faults.r, faults.t
    first = np.r_[True, (r[1:] != r[:-1]) | (t[1:] != t[:-1])]
    r, t = r[first], t[first]
    retry = now_ms(state)[r] > state.retry_ms[r, t]
    place = placement.due(state, r, t)
    wants = np.zeros(len(r), np.bool_)
    if place.any():
        wants[place] = placement.place(state, r[place], t[place])
    _buffer(state, faults, private, rate_local)
    tries = retry if state.kernel.placement_at == "retry" else retry | wants
    if tries.any():
        moves.attempt(state, r[tries], t[tries])
    if state.par.migrate_deferred.any():
        _settle_deferral(state)


def _refresh_changed_groups(state: State, before: Ints) -> None:
    r, t = np.nonzero(state.group != before)
    if r.size:
        old, new = before[r, t], state.group[r, t]
        rows, groups_ = np.concatenate([r[old >= 0], r]), np.concatenate([old[old >= 0], new])
        weights.refresh_groups(state, rows, groups_)


def _buffer(state: State, faults: fault.Faults, private: NDArray[np.bool_], local: NDArray[np.bool_]) -> None:
    """Add the step's faults to the buffers and to what the scan rate counts."""
    r, t, k = faults.r, faults.t, faults.k
    kind = private.astype(np.int64)
    _add(state.membuf, (r, t, faults.memory, kind), k)
    _add(state.cpubuf, (r, t, faults.here, kind), k)
    _add(state.locality, (r, t, local.astype(np.int64)), k)
    moved = faults.migrated
    _add(state.pages_migrated, (r[moved], t[moved]), k[moved])
    if state.kernel.fail_slows:
        failed = faults.failed
        _add(state.locality, (r[failed], t[failed], np.full(int(failed.sum()), FAIL)), k[failed])


def _add(array: Ints, at: tuple[Ints, ...], amount: Ints) -> None:
    flat = np.ravel_multi_index(at, array.shape)
    np.add.at(array.ravel(), flat, amount)


def _settle_deferral(state: State) -> None:
    state.deferred[:] = np.maximum(0, state.deferred - state.deferred_used)
    state.deferred[state.deferred_set] = np.broadcast_to(state.par.migrate_deferred[:, None], state.deferred.shape)[
        state.deferred_set
    ]
    state.deferred_used[:] = 0
    state.deferred_set[:] = False
