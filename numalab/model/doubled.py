"""A page that two threads want at once: the second faults while it is being moved, and fails (docs/model.md 4.6)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from numalab.layout import BASE, Ints
from numalab.model import draws, fault
from numalab.model.state import State
from numalab.model.touch import Live, Touches

#: ``shared_cpus`` of an emulator that runs one CPU at a time.
ONE_CPU = 1000


def add(state: State, faults: fault.Faults, live: Live, late: Touches) -> fault.Faults:
    """Add the faults of threads that touch a page between its isolation and its unmapping.

    Parameters
    ----------
    faults : Faults
        The step's, worked off.
    live : Live
        What every access does in the step.
    late : Touches
        Finds of PTEs that were another task's already.

    Returns
    -------
    Faults
        With the second faults, each before its task's own.
    """
    moved = np.flatnonzero(faults.migrated)
    if not state.kernel.remap_after_migration or not moved.size:
        return faults
    pairs = [_met_at_random(state, faults, moved, live), _met_in_passing(state, faults, moved, late)]
    met, access = (np.concatenate(part) for part in zip(*pairs, strict=True))
    if not met.size:
        return faults
    order = np.argsort(met, kind="stable")
    second = _second_faults(state, faults, met[order], access[order])
    # they come first, and sorting is stable
    both = [np.concatenate([getattr(part, one.name) for part in (second, faults)]) for one in fields(faults)]
    order = np.lexsort((both[1], both[0]))
    return fault.Faults(*(part[order] for part in both))


def _met_at_random(state: State, faults: fault.Faults, moved: Ints, live: Live) -> tuple[Ints, Ints]:
    """Draw which migrations a random access meets, by how often it comes by: (K,) fault, (K,) access."""
    one, fix = state.layout, state.fix
    accesses = fix.random_access
    if not len(accesses):
        return moved[:0], moved[:0]
    moved = _interrupted(state, faults, moved)
    one_at_a_time = (state.par.shared_cpus == ONE_CPU)[:, None]
    time = np.where(one_at_a_time, 1000 * state.par.tick_us[:, None], state.par.isolate_ns[:, None])
    visits = np.where(live.useful > 0, live.rate * time // 1000, 0)[:, accesses]
    r, v = faults.r[moved], faults.v[moved]
    area = np.searchsorted(fix.random_vma, v) % len(fix.random_vma)
    upto = np.cumsum(visits, axis=1)
    total = upto[r, fix.random_last[area]] - (upto - visits)[r, fix.random_first[area]]
    total = np.where(fix.random_vma[area] == v, total, 0)
    q, i = faults.q[moved], state.step_index[r]
    wait = draws.exponential(draws.draw_keyed(state.key[draws.DOUBLE][r], q, i))
    wait *= fix.region_pages[one.vma_region[v]]
    met, found = [], []
    # who is not met by all, himself included, is not met by the others
    for row in np.flatnonzero((total > 0) & (wait <= total * faults.k[moved])):
        span = slice(fix.random_first[area[row]], fix.random_last[area[row]] + 1)
        own = one.access_task[accesses[span]] == faults.t[moved[row]]
        upto_others = np.cumsum(np.where(own, 0, visits[r[row], span]))
        others = int(upto_others[-1])
        if others and wait[row] <= others * faults.k[moved[row]]:
            u = draws.draw_keyed(state.key[draws.DOUBLER][r[[row]]], q[[row]], i[[row]])
            share = (int(u[0] >> np.uint64(44)) * others) >> 20
            met.append(moved[row])
            found.append(accesses[span][np.searchsorted(upto_others, share, side="right")])
    return np.array(met, np.int64), np.array(found, np.int64)


def _interrupted(state: State, faults: fault.Faults, moved: Ints) -> Ints:
    """Keep the migrations during which others run: where CPUs work by turns, those whose task loses its own."""
    if state.own_cpus:
        return moved
    r = faults.r[moved]
    turn = (1000 * state.par.tick_us[r]).astype(np.uint64)
    u = draws.draw_keyed(state.key[draws.TURN][r], faults.q[moved], state.step_index[r]) % turn
    loses = u < (faults.c[moved] * state.par.isolate_ns[r]).astype(np.uint64)
    return moved[loses | (state.par.shared_cpus[r] != ONE_CPU)]


def _met_in_passing(state: State, faults: fault.Faults, moved: Ints, late: Touches) -> tuple[Ints, Ints]:
    """Draw which migrations are met by one who finds the same PTEs in the step: (K,) fault, (K,) access."""
    if not late.r.size:
        return moved[:0], moved[:0]
    one, fix, par = state.layout, state.fix, state.par
    key = faults.r[moved] * one.pte_blocks + faults.q[moved]
    order = np.argsort(key)
    moved, key = moved[order], key[order]
    found = late.r * one.pte_blocks + late.q
    at = np.minimum(np.searchsorted(key, found), len(key) - 1)
    same = np.flatnonzero(key[at] == found)
    # a task meets at most one a step: then it is behind
    _, first = np.unique(late.r[same] * one.tasks + late.t[same], return_index=True)
    pick = same[first]
    met, r = moved[at[pick]], late.r[pick]
    v, c, k = faults.v[met], faults.c[met], faults.k[met]
    window = (c * par.isolate_ns[r]).astype(np.uint64)
    mapped = fix.mapcount[one.vma_region[v]]
    lasts = c * (par.hint_fault_ns[r] + par.migrate_ns[r] + par.unmap_ns[r] * mapped) + k * par.copy_page_ns[r]
    u = draws.draw_keyed(state.key[draws.DOUBLER][r], late.q[pick], state.step_index[r])
    hits = u % np.maximum(1, lasts).astype(np.uint64) < window
    return met[hits], late.a[pick][hits]


def _second_faults(state: State, faults: fault.Faults, met: Ints, access: Ints) -> fault.Faults:
    """Make the faults of those who came second, and count what they refuse."""
    r, t, v = faults.r[met], state.layout.access_task[access], faults.v[met]
    base = state.fix.vma_kind[v] == BASE
    k = np.where(base, 1, faults.k[met])
    source, here = faults.source[met], state.node_of_task[r, t]
    cpu, pid = state.cpu[r, faults.t[met]], state.fix.task_pid8[faults.t[met]]
    asks = here != source
    if state.kernel.dst_needs_memory:
        asks &= state.layout.node_pages[here] > 0
    sel = np.flatnonzero(asks)
    failed = asks.copy()
    failed[sel] = fault.should_migrate(state, r[sel], t[sel], source[sel], here[sel], cpu[sel], pid[sel])
    refused = np.bincount(r[failed], weights=k[failed], minlength=state.runs)
    state.counters["migrate_refused"] += refused.astype(np.int64)
    none = np.zeros(len(met), np.bool_)
    second = fault.Faults(
        r=r, t=t, q=faults.q[met], a=access, v=v, b=faults.b[met],
        k=k,
        c=np.where(base, 1, faults.c[met]),
        here=here,
        shared=faults.shared[met],
        no_group=faults.no_group[met],
        source=source,
        memory=source,
        local=source == here,
        private=pid == state.fix.task_pid8[t],
        other_cpu=cpu,
        other_pid=pid,
        migrated=none,
        failed=failed,
        wrote=none.copy(),
    )  # fmt: skip
    if state.par.migrate_deferred.any():
        fault.defer(state, second, sel, cpu[sel], pid[sel])
    return second
