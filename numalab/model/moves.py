"""NUMA moves and swaps of tasks: when one is tried, what it does (docs/model.md 7.1, 7.3, 7.4).

The search itself is in :mod:`numalab.model.search`. Attempts of a step happen in task order and each sees what
the earlier ones did; since most change nothing, all are judged at once, and again after one that did.
"""

from __future__ import annotations

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import groups, period, runqueue, search
from numalab.model.state import State

MOVE, SWAP, BALANCE, FAILED = 0, 1, 2, 3
RETRY_MS = 1000
RETRY_SHARE = 16


def attempt(state: State, r: Ints, t: Ints) -> None:
    """Try to bring tasks to their preferred nodes, in order.

    Parameters
    ----------
    r, t : (K,) run and task, ascending
    """
    known = (state.preferred[r, t] >= 0) & (state.total[r, t] > 0)
    r, t = r[known], t[known]
    state.numa_moved_to[:] = False
    while r.size:
        away = state.node_of_task[r, t] != state.preferred[r, t]
        found = search.find(state, r[away], t[away])
        preferred = np.full(len(r), -1, np.int64)
        preferred[away] = _preferred_after(state, r[away], t[away], found)
        matters = np.zeros(len(r), np.bool_)
        matters[away] = found.cpu >= 0
        if state.kernel.home_bias:
            matters |= (preferred >= 0) & (preferred != state.preferred[r, t])
        done, hit = _upto_first(r, matters)
        _note_retry(state, r[done], t[done])
        settle = done & (preferred >= 0)
        state.preferred[r[settle], t[settle]] = preferred[settle]
        nth = np.cumsum(away) - 1
        for i in np.flatnonzero(done & away & ~hit):
            _event(state, int(r[i]), FAILED, int(t[i]))
        for i in np.flatnonzero(hit):
            _carry_out(state, int(r[i]), int(t[i]), found, int(nth[i]))
        r, t = r[~done], t[~done]


def _upto_first(r: Ints, matters: Bools) -> tuple[Bools, Bools]:
    """Return which attempts come before or are the first of their run that matters, and which are it."""
    at = np.flatnonzero(matters)
    hit = np.zeros(len(r), np.bool_)
    if not at.size:
        return np.ones(len(r), np.bool_), hit
    runs, first = np.unique(r[at], return_index=True)
    last = np.full(int(r.max()) + 1, len(r))
    last[runs] = at[first]
    hit[at[first]] = True
    return np.arange(len(r)) <= last[r], hit


def _note_retry(state: State, r: Ints, t: Ints) -> None:
    """Set when the next attempt may come: 1/16 of the scan period, at most 1 s."""
    wait = np.full(len(r), RETRY_MS)
    if state.kernel.retry_scales:
        wait = np.minimum(RETRY_MS, state.period_ms[r, t] // RETRY_SHARE)
    state.retry_ms[r, t] = period.now_ms(state)[r] + wait


def _preferred_after(state: State, r: Ints, t: Ints, found: search.Found) -> Ints:
    """Return the preferred node a grouped task has after its search (``stay_put``), -1: as it was."""
    one = state.layout
    here = state.node_of_task[r, t]
    if len(state.fix.nodes_with_cpus) == 1:
        return here
    g = state.group[r, t]
    hit = found.cpu >= 0
    rule = state.kernel.stay_put
    if rule == "best_cpu":
        return np.where(g >= 0, np.where(hit, one.cpu_node[np.maximum(0, found.cpu)], here), -1)
    if rule == "always":
        return np.where(hit, found.last, -1)
    if rule == "active":
        fits = groups.active(state, r, g, np.where(hit, found.last, here))
    else:
        fits = groups.active(state, r, g, found.last) & (hit if rule == "off" else state.gcount[r, g] > 1)
    return np.where((g >= 0) & fits, found.last, -1)


def _carry_out(state: State, r: int, t: int, found: search.Found, i: int) -> None:
    """Move or swap as found; a hit without a CPU only changed its preferred node."""
    if found.cpu[i] < 0:
        _event(state, r, FAILED, t)
        return
    target, partner, source = int(found.cpu[i]), int(found.partner[i]), int(state.cpu[r, t])
    one = state.layout
    if state.kernel.reset_period_on_numa_move:
        _, start, _ = period.bounds(state, np.array([r]), np.array([t]))
        state.period_ms[r, t] = start[0]
    _event(state, r, SWAP if partner >= 0 else MOVE, t, source, target, partner, int(found.gain[i]))
    runqueue.place(state, r, t, target)
    moved = [(t, one.cpu_node[source], one.cpu_node[target])]
    state.numa_moved_to[r, target] = True
    if partner >= 0:
        runqueue.place(state, r, partner, source)
        moved.append((partner, one.cpu_node[target], one.cpu_node[source]))
        state.numa_moved_to[r, source] = True
    for task, a, b in moved:
        changed_node(state, r, task, int(a), int(b))
    runqueue.requeue(state, r)


def changed_node(state: State, r: int, t: int, a: int, b: int) -> None:
    """Restart the scan period of a task the scheduler took away from where it belongs (since 4.19)."""
    if not state.kernel.reset_period_on_cross_node or a == b or state.total[r, t] <= 0:
        return
    preferred = state.preferred[r, t]
    if state.seq_seen[r, t] != 0 and (b == preferred or (preferred >= 0 and a != preferred)):
        return
    _, start, _ = period.bounds(state, np.array([r]), np.array([t]))
    state.period_ms[r, t] = start[0]


def _event(
    state: State,
    r: int,
    kind: int,
    t: int,
    source: int | None = None,
    target: int = -1,
    partner: int = -1,
    gain: int = 0,
) -> None:
    source = int(state.cpu[r, t]) if source is None else source
    state.events.append((int(state.number[r]), int(state.step_index[r]), kind, t, source, target, partner, gain))
