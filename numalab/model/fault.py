"""Hint faults, page side: last user, migration filter, migration (docs/model.md 4.6).

The faults of a step meet task and group state as it was when the step's faults began; page and node state
changes fault by fault. To keep that with arrays, faults are worked off in rounds of distinct pages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import BASE, FOLIO, HUGE, Bools, Ints
from numalab.model import active, draws, flight, pagefilter
from numalab.model.flight import Held
from numalab.model.period import now_ms
from numalab.model.state import State
from numalab.model.touch import Touches

RATE_WINDOW_MS = 100


@dataclass
class Faults:
    """The hint faults of a step in order of (run, task, access, touch), and what became of them.

    Attributes
    ----------
    r, t, q, a, v, b : (K,) run, task, PTE block, access, VMA, memory block
    k, c : (K,) pages of the block, hint faults it counts
    here : (K,) the faulting CPU's node
    shared, no_group : (K,) flags: may join other processes' groups; may not group at all
    source, memory : (K,) node of the block before and after the fault
    local : (K,) was on the CPU's node before
    private : (K,) first touch or own page, judged before the last user was replaced
    other_cpu, other_pid : (K,) last user before the fault, -1 unset
    migrated, failed, wrote : (K,) the block moved; it should have; a write-protect fault followed
    """

    r: Ints
    t: Ints
    q: Ints
    a: Ints
    v: Ints
    b: Ints
    k: Ints
    c: Ints
    here: Ints
    shared: Bools
    no_group: Bools
    source: Ints
    memory: Ints
    local: Bools
    private: Bools
    other_cpu: Ints
    other_pid: Ints
    migrated: Bools
    failed: Bools
    wrote: Bools


def take(state: State, touches: Touches) -> tuple[Faults | None, Touches]:
    """Handle the step's hint faults on the pages' side.

    Returns
    -------
    Faults or None
        None if nothing faulted.
    Touches
        Finds of PTEs that were another task's already.
    """
    touches, late = _first_only(state, touches)
    _untrap(state, touches)
    touches = _accounted_only(state, touches)
    if not touches.r.size:
        return None, late
    faults = _open(state, touches)
    held = flight.held(state)
    for rows in _rounds(state, faults):
        _round(state, faults, rows, held)
    return faults, late


def _first_only(state: State, touches: Touches) -> tuple[Touches, Touches]:
    """Split the finds into the first of each PTE and the others, which took a fault for nothing."""
    if not state.fix.has_sequential or not touches.r.size:
        return touches, touches.pick(slice(0))
    key = touches.r * state.layout.pte_blocks + touches.q
    _, first = np.unique(key, return_index=True)
    if len(first) == len(key):
        return touches, touches.pick(slice(0))
    keep = np.zeros(len(key), np.bool_)
    keep[first] = True
    late = touches.pick(~keep)
    v = state.layout.access_vma[late.a]
    cost = state.fix.vma_fault_count[v] * state.par.hint_fault_ns[late.r]
    np.add.at(state.debt_ns, (late.r, late.t), cost)
    return touches.pick(keep), late


def _untrap(state: State, touches: Touches) -> None:
    """Make the PTEs present again."""
    if touches.r.size:
        state.trapped[touches.r, touches.q] = False
        np.subtract.at(state.pending, (touches.r, state.layout.access_vma[touches.a]), 1)
        state.intensity[state.pending == 0] = 0


def _accounted_only(state: State, touches: Touches) -> Touches:
    """Drop faults on large folios mapped by PTEs where the kernel does not account them; they still cost."""
    fix = state.fix
    if state.kernel.large_folio_accounting or not (fix.vma_kind == FOLIO).any():
        return touches
    folio = fix.vma_kind[state.layout.access_vma[touches.a]] == FOLIO
    r, t = touches.r[folio], touches.t[folio]
    np.add.at(state.debt_ns, (r, t), state.par.hint_fault_ns[r])
    np.add.at(state.counters["minor_faults"], r, 1)
    return touches.pick(~folio)


def _open(state: State, touches: Touches) -> Faults:
    """Note what does not depend on other faults of the step."""
    one, fix, kernel = state.layout, state.fix, state.kernel
    r, t, q, a = touches.r, touches.t, touches.q, touches.a
    v = one.access_vma[a]
    b = q + fix.vma_block_offset[v]
    kind = fix.vma_kind[v]
    size = len(r)
    shared = (fix.mapcount[one.vma_region[v]] > 1) & one.vma_shared[v]
    if not kernel.thp_sets_shared:
        shared &= kind != HUGE
    return Faults(
        r=r, t=t, q=q, a=a, v=v, b=b,
        k=fix.vma_block_pages[v],
        c=fix.vma_fault_count[v],
        here=state.node_of_task[r, t],
        shared=shared,
        no_group=_no_group(state, r, q, v),
        source=np.zeros(size, np.int64),
        memory=np.zeros(size, np.int64),
        local=np.zeros(size, np.bool_),
        private=np.zeros(size, np.bool_),
        other_cpu=np.zeros(size, np.int64),
        other_pid=np.zeros(size, np.int64),
        migrated=np.zeros(size, np.bool_),
        failed=np.zeros(size, np.bool_),
        wrote=np.zeros(size, np.bool_),
    )  # fmt: skip


def _no_group(state: State, r: Ints, q: Ints, v: Ints) -> Bools:
    """Say which faults may not group tasks (thread S2, patch 1 and its history)."""
    rule = state.kernel.no_group_rule
    if rule == "vma_write":
        return ~state.layout.vma_write[v]
    if rule == "pte_dirty":
        return ~state.pte_dirty[r, q]
    not_writable = ~state.pte_write[r, q]
    if rule == "always_private":
        return not_writable | ~state.layout.vma_shared[v]
    return not_writable


def _rounds(state: State, faults: Faults) -> list[Ints]:
    """Split the faults so that no memory block occurs twice in a round; order is kept."""
    if not state.fix.blocks_are_shared:
        return [np.arange(len(faults.r))]
    key = faults.r * state.layout.blocks + faults.b
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    if new.all():
        return [np.arange(len(key))]
    starts = np.flatnonzero(new)
    nth = np.empty(len(key), np.int64)
    nth[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.r_[starts, len(key)]))
    return [np.flatnonzero(nth == j) for j in range(int(nth.max()) + 1)]


def _round(state: State, faults: Faults, rows: Ints, held: Held) -> None:
    """Handle one round: distinct blocks, in order."""
    kernel = state.kernel
    r, b, here = faults.r[rows], faults.b[rows], faults.here[rows]
    source = state.node[r, b].astype(np.int64)
    isolated = np.zeros(len(rows), np.bool_)
    if held.r.size:
        leaves = held.leaves(r, faults.t[rows], b)
        isolated = leaves >= 0
        source[isolated] = leaves[isolated]
    last_cpu, last_pid = state.last_cpu[r, b].astype(np.int64), state.last_pid[r, b].astype(np.int64)
    mine = state.fix.task_pid8[faults.t[rows]]
    local = source == here
    faults.local[rows], faults.source[rows], faults.memory[rows] = local, source, source
    faults.other_cpu[rows], faults.other_pid[rows] = last_cpu, last_pid
    faults.private[rows] = (last_cpu < 0) | (last_pid == mine)

    asked = np.ones(len(rows), np.bool_) if kernel.exchange_on_local else ~local
    if kernel.dst_needs_memory:
        asked &= state.layout.node_pages[here] > 0
    state.last_cpu[r[asked], b[asked]] = state.cpu[r, faults.t[rows]][asked]
    state.last_pid[r[asked], b[asked]] = mine[asked]
    wanted = asked & ~local
    sel = np.flatnonzero(wanted)
    if sel.size:
        passes = should_migrate(
            state, r[sel], faults.t[rows][sel], source[sel], here[sel], last_cpu[sel], last_pid[sel]
        )
        _migrate(state, faults, rows[sel[passes]], isolated[sel[passes]])
    if state.par.migrate_deferred.any():
        defer(state, faults, rows[asked], last_cpu[asked], last_pid[asked])
    _write(state, faults, rows)


def should_migrate(state: State, r: Ints, t: Ints, source: Ints, target: Ints, last_cpu: Ints, last_pid: Ints) -> Bools:
    """Answer the migration filter: may a page on ``source`` follow a fault from ``target``?

    Parameters
    ----------
    r, t : (K,) run and faulting task
    source, target : (K,) node of the page, node of the faulting CPU
    last_cpu, last_pid : (K,) last user before this fault, -1 unset

    Returns
    -------
    (K,) bool
    """
    mine = state.fix.task_pid8[t]
    unset = pagefilter.is_unset(last_cpu, last_pid)
    own = pagefilter.is_own(last_cpu, last_pid, mine)
    g = state.group[r, t]
    branch = pagefilter.branch(
        early=_early(state, r, t, unset | own),
        # two-stage test: two faults in a row from the target's node
        elsewhere=~unset & (state.layout.cpu_node[np.maximum(0, last_cpu)] != target),
        own=own,
        deferred=(state.par.migrate_deferred[r] > 0) & (state.deferred[r, t] > 0),
        ungrouped=g < 0,
    )
    answer = pagefilter.ALLOWS[branch]
    asks = np.flatnonzero(branch == pagefilter.GROUP)
    if asks.size:
        answer[asks] = _group_allows(state, r[asks], g[asks], source[asks], target[asks])
    return answer


def _early(state: State, r: Ints, t: Ints, private: Bools) -> Bools:
    """Say which private faults come early enough in a task's life to migrate at once (``early_private``)."""
    return pagefilter.is_early(state.kernel, state.preferred[r, t], state.seq_seen[r, t], private)


def _group_allows(state: State, r: Ints, g: Ints, source: Ints, target: Ints) -> Bools:
    """Weigh a shared page's two nodes by what the group does there."""
    rule = state.kernel.group_filter
    if rule == "none":
        return np.ones(len(r), np.bool_)
    memory_source = state.gmem[r, g, source].sum(axis=1)
    memory_target = state.gmem[r, g, target].sum(axis=1)
    if rule == "memory":
        there, here = active.is_active(state, r, g, target), active.is_active(state, r, g, source)
        return pagefilter.memory_allows(memory_source, memory_target, here, there)
    cpu_source, cpu_target = state.gcpu[r, g, source].sum(axis=1), state.gcpu[r, g, target].sum(axis=1)
    return pagefilter.cpu_memory_allows(memory_source, memory_target, cpu_source, cpu_target)


def defer(state: State, faults: Faults, rows: Ints, last_cpu: Ints, last_pid: Ints) -> None:
    """Count migration deferral: a foreign page seen from elsewhere starts it, foreign pages use it up (3.14)."""
    r, t = faults.r[rows], faults.t[rows]
    unset, own = pagefilter.is_unset(last_cpu, last_pid), pagefilter.is_own(last_cpu, last_pid, state.fix.task_pid8[t])
    elsewhere = ~unset & (state.layout.cpu_node[np.maximum(0, last_cpu)] != faults.here[rows])
    foreign = ~own & ~_early(state, r, t, unset | own)
    used, elsewhere = foreign & ~elsewhere, foreign & elsewhere
    np.add.at(state.deferred_used, (r[used], t[used]), 1)
    state.deferred_set[r[elsewhere], t[elsewhere]] = True


def _migrate(state: State, faults: Faults, rows: Ints, isolated: Bools) -> None:
    """Move the blocks of these faults to their CPUs' nodes, unless the kernel refuses or others move them already."""
    if not rows.size:
        return
    r, b, k, here = faults.r[rows], faults.b[rows], faults.k[rows], faults.here[rows]
    done = _admit(state, faults, rows, isolated)
    faults.migrated[rows], faults.failed[rows] = done, ~done
    state.counters["migrate_refused"] += np.bincount(r[~done], weights=k[~done], minlength=state.runs).astype(np.int64)
    r, b, k, here = r[done], b[done], k[done], here[done]
    region = state.fix.block_region[b]
    source = state.node[r, b].astype(np.int64)
    state.node[r, b] = here
    np.add.at(state.region_node_pages, (r, region, here), k)
    np.subtract.at(state.region_node_pages, (r, region, source), k)
    faults.memory[rows[done]] = here
    state.speed_stale[r] = True


def _admit(state: State, faults: Faults, rows: Ints, isolated: Bools) -> Bools:
    """Say which migrations go through, in order: refusals by kind of page, rate limit, full node, no isolation."""
    one, fix, kernel, par = state.layout, state.fix, state.kernel, state.par
    r, k, v, here = faults.r[rows], faults.k[rows], faults.v[rows], faults.here[rows]
    region = one.vma_region[v]
    mapped = fix.mapcount[region]
    refused = one.region_file[region] & one.region_exec[region] & (mapped > 1)
    if kernel.refuse_shared_thp:
        refused |= (fix.vma_kind[v] == HUGE) & (mapped > 1)
    if kernel.skip_dirty_file:
        refused |= one.region_file[region] & one.region_dirty[region]
    if par.isolate_fail.any():
        u = draws.draw_keyed(state.key[draws.ISOLATE][r], faults.q[rows], state.step_index[r])
        isolated = isolated | (draws.permille(u) < par.isolate_fail[r])
    ok = ~refused & _within_rate(state, r, here, np.where(refused, 0, k))
    return _fits(state, faults, rows, ok, isolated)


def _within_rate(state: State, r: Ints, node: Ints, k: Ints) -> Bools:
    """Apply the rate limit: pages into a node per 100 ms, counted before anything else can refuse (<= 4.18)."""
    limit = state.par.migrate_ratelimit_pages[r]
    if not limit.any():
        return np.ones(len(r), np.bool_)
    now = now_ms(state)[r]
    asks = k > 0
    over = asks & (now > state.rate_end_ms[r, node])
    state.rate_count[r[over], node[over]] = 0
    state.rate_end_ms[r[over], node[over]] = now[over] + RATE_WINDOW_MS
    if (state.rate_count + _by_node(state, r, node, k) <= state.par.migrate_ratelimit_pages[:, None]).all():
        np.add.at(state.rate_count, (r, node), k)
        return np.ones(len(r), np.bool_)
    # pages asked for before, per node: the count only grows, so refusal is a matter of the running sum
    key = r * state.layout.nodes + node
    order = np.argsort(key, kind="stable")
    upto = np.cumsum(k[order])
    new = np.r_[True, key[order][1:] != key[order][:-1]]
    offset = np.maximum.accumulate(np.where(new, upto - k[order], 0))
    before = np.empty(len(r), np.int64)
    before[order] = upto - k[order] - offset
    ok = (limit == 0) | (state.rate_count[r, node] + before <= limit)
    counted = ok & (limit > 0)
    np.add.at(state.rate_count, (r[counted], node[counted]), k[counted])
    return ok


def _by_node(state: State, r: Ints, node: Ints, k: Ints) -> Ints:
    """Sum pages by run and node: (R, N)."""
    nodes = state.layout.nodes
    total = np.bincount(r * nodes + node, weights=k, minlength=state.runs * nodes)
    return total.astype(np.int64).reshape(state.runs, nodes)


def _fits(state: State, faults: Faults, rows: Ints, ok: Bools, isolated: Bools) -> Bools:
    """Refuse migrations into full nodes, and keep the free pages up to date."""
    watermark = state.layout.node_watermark
    r, k, here = faults.r[rows], faults.k[rows], faults.here[rows]
    source = state.node[r, faults.b[rows]].astype(np.int64)
    inbound = _by_node(state, r[ok], here[ok], k[ok])
    if (state.free - inbound >= np.where(inbound > 0, watermark, np.iinfo(np.int64).min)).all():
        done = ok & ~isolated
        np.subtract.at(state.free, (r[done], here[done]), k[done])
        np.add.at(state.free, (r[done], source[done]), k[done])
        return done
    # some node may fill up: who comes first decides
    done = ok.copy()
    for i in np.flatnonzero(ok):
        free = state.free[r[i]]
        if isolated[i] or free[here[i]] < watermark[here[i]] + k[i]:
            done[i] = False
        else:
            free[here[i]] -= k[i]
            free[source[i]] += k[i]
    return done


def _write(state: State, faults: Faults, rows: Ints) -> None:
    """Let the touches that write do so: a lost write permission costs a second fault, which forgets the last user."""
    one, fix, kernel = state.layout, state.fix, state.kernel
    if kernel.failed_migration_drops_write:
        bad = rows[faults.failed[rows]]
        state.pte_write[faults.r[bad], faults.q[bad]] = False
    chance = one.access_write[faults.a[rows]]
    rows, chance = rows[chance > 0], chance[chance > 0]
    if not rows.size:
        return
    u = draws.draw_keyed(state.key[draws.WRITE][faults.r[rows]], faults.q[rows], state.step_index[faults.r[rows]])
    rows = rows[draws.permille(u) < chance]
    r, q, v, b = faults.r[rows], faults.q[rows], faults.v[rows], faults.b[rows]
    writable = state.pte_write[r, q]
    second = one.vma_write[v] & ~writable
    state.pte_dirty[r, q] |= second | writable
    state.pte_write[r, q] |= second
    faults.wrote[rows] = second
    if kernel.wp_fault_resets_cpupid:
        forgets = second & (fix.vma_kind[v] == BASE) & (fix.mapcount[one.vma_region[v]] == 1)
        state.last_cpu[r[forgets], b[forgets]] = -1
        state.last_pid[r[forgets], b[forgets]] = -1


def count(state: State, faults: Faults) -> None:
    """Add the step's faults to the counters and to the areas' records of who faulted there."""
    runs, counters = state.runs, state.counters

    def add(name: str, amount: Ints, which: Bools | None = None) -> None:
        r = faults.r if which is None else faults.r[which]
        amount = amount if which is None else amount[which]
        counters[name] += np.bincount(r, weights=amount, minlength=runs).astype(np.int64)

    add("numa_hint_faults", faults.c)
    add("numa_hint_faults_local", faults.c, faults.local)
    add("minor_faults", faults.c)
    add("minor_faults", faults.c, faults.wrote)
    add("numa_pages_migrated", faults.k, faults.migrated)
    add("pgmigrate_success", faults.k, faults.migrated)
    if state.kernel.pid_filter != "none":
        bits = state.fix.task_pid_bit[faults.t]
        np.bitwise_or.at(state.pids1, (faults.r, faults.v), bits)
