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
    flush = np.where(faults.migrated, faults.c * par.ipi_wait_ns[r] * mapped, 0)
    cost = faults.c * par.hint_fault_ns[r] + np.where(faults.migrated, move, 0)
    cost += np.where(faults.wrote, faults.c * par.wp_fault_ns[r], 0)
    tasks = state.layout.tasks
    total = np.bincount(r * tasks + faults.t, weights=cost, minlength=state.runs * tasks).astype(np.int64)
    state.debt_ns += total.reshape(state.runs, tasks)
    if par.ipi_wait_ns.any():
        np.add.at(state.wait_ns, (r, faults.t), flush)
    if par.ipi_ns.any():
        _interrupt(state, faults)
    met_in_passing = faults.migrated.copy()
    flying = _note_flights(state, faults, move + flush)
    met_in_passing[flying[state.moving_ns[r[flying], faults.t[flying]] > state.dt]] = False
    moved = np.flatnonzero(met_in_passing)
    if moved.size:
        _wait_for_pages(state, faults, live, moved, (move + flush)[moved] // 1000)


def _interrupt(state: State, faults: Faults) -> None:
    """Charge the flushes of the step's migrations to the tasks they interrupt: those whose process maps the page."""
    one, fix = state.layout, state.fix
    r, t = faults.r[faults.migrated], faults.t[faults.migrated]
    c = faults.c[faults.migrated]
    moved = np.zeros((state.runs, one.regions), np.int64)
    np.add.at(moved, (r, one.vma_region[faults.v[faults.migrated]]), c)
    own = np.zeros((state.runs, one.tasks), np.int64)
    np.add.at(own, (r, t), c)
    flushed = np.zeros((state.runs, one.processes), np.int64)
    np.add.at(flushed.T, fix.mapping_process, moved[:, fix.mapped_region].T)
    flushed = flushed[:, one.task_process] - own
    state.debt_ns += np.where(state.running, state.par.ipi_ns[:, None] * flushed, 0)


def _note_flights(state: State, faults: Faults, takes: Ints) -> Ints:
    """Note whose last migration of the step is not finished yet: whoever meets that page sleeps (4.5).

    Parameters
    ----------
    takes : (K,) time of each migration, ns

    Returns
    -------
    (F,) index of those faults
    """
    r, t = faults.r, faults.t
    last = np.flatnonzero(np.r_[(r[1:] != r[:-1]) | (t[1:] != t[:-1]), True])
    last = last[faults.migrated[last]]
    r, t = r[last], t[last]
    lacks = state.debt_ns[r, t] + state.wait_ns[r, t]
    flies = (lacks > 0) & (state.waits_for[r, t] < 0)
    r, t, last = r[flies], t[flies], last[flies]
    state.moving[r, t], state.moving_ns[r, t] = faults.b[last], takes[last]
    state.moving_from[r, t] = faults.source[last]
    state.in_flight |= bool(last.size)
    return last


def _wait_for_pages(state: State, faults: Faults, live: Live, moved: Ints, micros: Ints) -> None:
    """Charge the expected wait.

    A page is gone from a task's page table for the rest D of its migration, after the processes before the task's own
    have lost it. The task meets it with probability rate * D / pages, and then waits D / 2 on average.
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
    wait //= 2000 * fix.region_pages[regions[a]]
    np.add.at(state.wait_ns, (r, one.access_task[a]), wait * fix.access_gone[a] // 1000)
