"""NUMA moves and swaps of tasks: when one is tried, what it does (docs/model.md 7.1, 7.3, 7.4).

The search itself is in :mod:`numalab.model.search`. Attempts of a step happen in task order and each sees what
the earlier ones did; since most change nothing, all are judged at once, and again after one that did.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import active, period, runqueue, search
from numalab.model.candidates import Found
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
        moves_ = hit & away & (found.cpu[np.maximum(0, nth)] >= 0) if found.cpu.size else np.zeros_like(hit)
        fails = np.flatnonzero(done & away & ~moves_)
        _note(state, FAILED, r[fails], t[fails], state.cpu[r[fails], t[fails]])
        at = np.flatnonzero(moves_)
        _carry_out(state, r[at], t[at], found, nth[at])
        r, t = r[~done], t[~done]


def _upto_first(r: Ints, matters: Bools) -> tuple[Bools, Bools]:
    """Return which attempts come before or are the first of their run that matters, and which are it."""
    at = np.flatnonzero(matters)
    hit = np.zeros(len(r), np.bool_)
    if not at.size:
        return np.ones(len(r), np.bool_), hit
    at = at[np.r_[True, r[at[1:]] != r[at[:-1]]]]
    last = np.full(int(r[-1]) + 1, len(r))
    last[r[at]] = at
    hit[at] = True
    return np.arange(len(r)) <= last[r], hit


def _note_retry(state: State, r: Ints, t: Ints) -> None:
    """Set when the next attempt may come: 1/16 of the scan period, at most 1 s."""
    wait = np.full(len(r), RETRY_MS)
    if state.kernel.retry_scales:
        wait = np.minimum(RETRY_MS, state.period_ms[r, t] // RETRY_SHARE)
    state.retry_ms[r, t] = period.now_ms(state)[r] + wait


def _preferred_after(state: State, r: Ints, t: Ints, found: Found) -> Ints:
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
        fits = active.is_active(state, r, g, np.where(hit, found.last, here))
    else:
        fits = active.is_active(state, r, g, found.last) & (hit if rule == "off" else state.gcount[r, g] > 1)
    return np.where((g >= 0) & fits, found.last, -1)


def _carry_out(state: State, r: Ints, t: Ints, found: Found, i: Ints) -> None:
    """Move or swap as found, in one attempt of each of some runs."""
    if not r.size:
        return
    node = state.layout.cpu_node
    target, partner, source = found.cpu[i], found.partner[i], state.cpu[r, t]
    if state.kernel.reset_period_on_numa_move:
        _, start, _ = period.bounds(state, r, t)
        state.period_ms[r, t] = start
    swap = partner >= 0
    _note(state, np.where(swap, SWAP, MOVE), r, t, source, target, partner, found.gain[i])
    state.put(r, t, target)
    state.numa_moved_to[r, target] = True
    period.changed_node(state, r, t, node[source], node[target])
    back, partner = r[swap], partner[swap]
    state.put(back, partner, source[swap])
    state.numa_moved_to[back, source[swap]] = True
    period.changed_node(state, back, partner, node[target[swap]], node[source[swap]])
    runqueue.requeue(state, r)


def _note(
    state: State, kind: Ints | int, r: Ints, t: Ints, source: Ints, target: Ints | int = -1, partner: Ints | int = -1,
    gain: Ints | int = 0,
) -> None:  # fmt: skip
    """Add attempts to the table of events."""
    if not r.size:
        return

    def each(value: Ints | int) -> Iterable[int]:
        return value.tolist() if isinstance(value, np.ndarray) else itertools.repeat(value)

    columns = (state.number[r], state.step_index[r], kind, t, source, target, partner, gain)
    state.events += zip(*map(each, columns), strict=False)
