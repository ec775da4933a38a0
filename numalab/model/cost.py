"""What faults, migrations and waiting cost the tasks (docs/model.md 4.8)."""

from __future__ import annotations

import numpy as np

from numalab.layout import Ints
from numalab.model.fault import Faults
from numalab.model.state import State
from numalab.model.touch import Live


def charge(state: State, faults: Faults, live: Live) -> None:
    """Charge the step's faults to their tasks, and the waiting to whoever meets a page under migration."""
    par, r = state.par, faults.r
    mapped = state.fix.mapcount[state.layout.vma_region[faults.v]]
    move = faults.c * (par.migrate_ns[r] + par.unmap_ns[r] * mapped) + faults.k * par.copy_page_ns[r]
    cost = faults.c * par.hint_fault_ns[r] + np.where(faults.migrated, move, 0)
    cost += np.where(faults.wrote, faults.c * par.wp_fault_ns[r], 0)
    tasks = state.layout.tasks
    total = np.bincount(r * tasks + faults.t, weights=cost, minlength=state.runs * tasks).astype(np.int64)
    state.debt_ns += total.reshape(state.runs, tasks)
    moved = np.flatnonzero(faults.migrated)
    if moved.size:
        _wait_for_pages(state, faults, live, moved, move[moved] // 1000)


def _wait_for_pages(state: State, faults: Faults, live: Live, moved: Ints, micros: Ints) -> None:
    """Charge the expected wait.

    A task meets a page under migration for a time D with probability rate * D / pages, and then waits D / 2 on
    average.
    """
    one, fix = state.layout, state.fix
    region = one.vma_region[faults.v[moved]]
    square = np.zeros((state.runs, one.regions), np.int64)
    np.add.at(square, (faults.r[moved], region), micros * micros)
    # a task does not wait for its own migrations
    own = np.zeros_like(live.useful)
    np.add.at(own, (faults.r[moved], fix.access_twin[faults.a[moved]]), micros * micros)
    regions = one.vma_region[one.access_vma]
    r, a = np.nonzero((square[:, regions] > 0) & (live.useful > 0))
    wait = state.access_rate[r, a] * (square[r, regions[a]] - own[r, fix.access_twin[a]])
    np.add.at(state.wait_ns, (r, one.access_task[a]), wait // (2000 * fix.region_pages[regions[a]]))
