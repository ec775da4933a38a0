"""Scanning: when a task scans, what a window marks (docs/model.md 4.3, 4.4).

A window is rare and short, so it is worked off one at a time; its pages are arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import FOLIO, HUGE, Bools, Ints
from numalab.model import draws, period
from numalab.model.period import now_ms
from numalab.model.state import State
from numalab.model.windows import PAGES_PER_MB

HUGE_PAGES = 512
VIRTUAL_FACTOR = 8
STRETCH = 32


def run_due_scans(state: State) -> None:
    """Let the ticks of the step trigger scans of the running tasks."""
    r, t = np.nonzero(state.running & (state.run_ns > state.stamp_ns + state.period_ms * 1_000_000))
    if not r.size:
        return
    ticking = (state.step_index[r] + state.tick_phase[r, state.cpu[r, t]]) % state.tick_steps[r] == 0
    r, t = r[ticking], t[ticking]
    if r.size:
        _trigger(state, r, t)


def _trigger(state: State, r: Ints, t: Ints) -> None:
    """Advance the stamps of triggered tasks; those whose process's scan is due scan, in order."""
    old = state.period_ms[r, t]
    _, start, _ = period.bounds(state, r, t)
    state.period_ms[r, t] = np.where(state.stamp_ns[r, t] == 0, start, old)
    state.stamp_ns[r, t] += old * 1_000_000
    process = state.layout.task_process[t]
    now = now_ms(state)[r]
    if state.kernel.cpuset_one_node_skip:
        free = ~state.layout.process_single_node[process]
        r, t, process, now = r[free], t[free], process[free], now[free]
    # whoever comes first moves the process's next scan, so the others usually come too late
    for i in np.flatnonzero(now >= state.next_scan_ms[r, process]):
        if now[i] >= state.next_scan_ms[r[i], process[i]]:
            _scan(state, int(r[i]), int(t[i]), int(process[i]), int(now[i]))


def _scan(state: State, r: int, t: int, m: int, now: int) -> None:
    """Take the process's scan window if it is open, and pay for it."""
    par = state.par
    if state.next_scan_ms[r, m] == 0:
        state.next_scan_ms[r, m] = now + par.scan_delay_ms[r]
        return
    state.next_scan_ms[r, m] = now + state.period_ms[r, t]
    state.stamp_ns[r, t] += 2 * par.tick_us[r] * 1000
    if par.mmap_busy[r]:
        u = draws.draw_keyed(state.key[draws.LOCK][r], t, state.step_index[r])
        if draws.permille(u)[0] < par.mmap_busy[r]:
            if state.kernel.mmap_lock == "try":
                return
            state.wait_ns[r, t] += par.mmap_wait_ns[r]
    looked, marked = scan_window(state, r, t, m, now)
    cost = int(par.pte_scan_ns[r]) * looked + int(par.pte_update_ns[r]) * marked
    state.debt_ns[r, t] += cost
    if state.kernel.scan_overhead_stretch:
        state.stamp_ns[r, t] += STRETCH * cost


@dataclass
class _Window:
    """Where a scan window stands."""

    run: int
    task: int
    process: int
    now: int
    start: int
    pages: int
    virtual: int
    forced: bool = False
    skipped: bool = False
    changed: int = 0
    looked: int = 0
    marked: int = 0
    full: bool = False


def scan_window(state: State, r: int, t: int, m: int, now: int) -> tuple[int, int]:
    """Mark one window of a process's memory from where the last one ended.

    Returns
    -------
    looked, marked : int
        Pages looked at; PTEs marked (a huge page is one).
    """
    size = int(state.par.scan_size_mb[r]) * PAGES_PER_MB
    window = _Window(r, t, m, now, int(state.offset[r, m]), size, VIRTUAL_FACTOR * size)
    while True:
        left_early = _walk(state, window)
        if window.full:
            state.offset[r, m] = window.start
            break
        if left_early:
            state.offset[r, m] = window.start
            break
        if state.kernel.pid_filter == "complete" and window.skipped and not window.forced:
            window.forced, window.start = True, int(state.offset[r, m])
            continue
        state.seq[r, m] += 1
        state.offset[r, m] = 0
        break
    return window.looked, window.marked


def _walk(state: State, window: _Window) -> bool:
    """Walk the areas from the window's start; True if a forced scan ended it."""
    fix, one = state.fix, state.layout
    r, m = window.run, window.process
    areas = fix.process_vmas[m]
    first = int(np.searchsorted(fix.vma_end[areas], window.start, side="right"))
    if first == len(areas):
        state.seq[r, m] += 1
        state.offset[r, m] = 0
        window.start, first = 0, 0
    for v in areas[first:]:
        if not _may_scan(state, int(v)) or not _pid_filter(state, window, int(v)):
            continue
        window.start = max(window.start, int(one.vma_start[v]))
        _scan_area(state, window, int(v))
        if window.full:
            return False
        if state.kernel.pid_filter == "complete":
            state.prev_seq[r, v] = state.seq[r, m]
        if window.forced:
            return True
    return False


def _may_scan(state: State, v: int) -> bool:
    """Say whether the scanner looks into an area at all."""
    one = state.layout
    if not one.vma_migratable[v] or not one.vma_mof[v]:
        return False
    if state.kernel.skip_hugetlb_mixedmap and not one.vma_scannable[v]:
        return False
    file = one.region_file[one.vma_region[v]]
    if file and one.vma_read[v] and not one.vma_write[v]:
        return False
    return bool(one.vma_read[v] or one.vma_write[v])


def _pid_filter(state: State, window: _Window, v: int) -> bool:
    """Say whether this thread may scan an area others use: only who faulted there lately (6.4 on)."""
    rule = state.kernel.pid_filter
    if rule == "none":
        return True
    r, m = window.run, window.process
    seq = int(state.seq[r, m])
    if seq != 0 and window.now < state.vma_next_ms[r, v]:
        return False
    if rule == "complete":
        _age_pids(state, window, v)
        if state.prev_seq[r, v] == seq:
            state.offset[r, m] = state.fix.vma_end[v]
            return False
    if not window.forced and not _is_mine(state, window, v):
        window.skipped = True
        return False
    if rule == "active":
        _age_pids(state, window, v)
    return True


def _age_pids(state: State, window: _Window, v: int) -> None:
    """Forget who faulted in an area long ago."""
    r = window.run
    if state.seq[r, window.process] != 0 and window.now > state.vma_reset_ms[r, v]:
        state.pids0[r, v], state.pids1[r, v] = state.pids1[r, v], 0
        state.vma_reset_ms[r, v] += 4 * state.par.scan_delay_ms[r]


def _is_mine(state: State, window: _Window, v: int) -> bool:
    """Say whether the scanning thread faulted in an area lately, or nobody can be expected to have."""
    r, m = window.run, window.process
    seq = int(state.seq[r, m])
    if seq < 2:
        return True
    if (state.pids0[r, v] | state.pids1[r, v]) & state.fix.task_pid_bit[window.task]:
        return True
    if state.kernel.pid_filter == "complete":
        threads = int((state.cpu[r, state.layout.task_process == m] >= 0).sum())
        if state.offset[r, m] > state.layout.vma_start[v] or seq > state.prev_seq[r, v] + threads:
            return True
    return False


def _scan_area(state: State, window: _Window, v: int) -> None:
    """Scan one area chunk by chunk until it or the window's budget ends."""
    fix, one, kernel = state.fix, state.layout, state.kernel
    end_of_area, k = int(fix.vma_end[v]), int(fix.vma_block_pages[v])
    vma_start = int(one.vma_start[v])
    while window.start < end_of_area:
        end = min(end_of_area, max(_align_up(window.start + window.pages, HUGE_PAGES), window.start + k))
        # a block belongs to the chunk its first page is in
        low, high = -(-(window.start - vma_start) // k), -(-(end - vma_start) // k)
        changed, cut = _mark(state, window, v, low, high)
        window.changed = window.changed + changed if kernel.cumulative_pte_budget else changed
        if window.changed:
            window.pages -= end - window.start
        if kernel.virtual_scan_budget:
            window.virtual -= end - window.start
        window.start = end_of_area if cut else end
        if window.pages <= 0 or window.virtual <= 0:
            window.full = True
            return


def _mark(state: State, window: _Window, v: int, low: int, high: int) -> tuple[int, bool]:
    """Mark blocks low..high of an area; return the pages marked and whether a shared page ended the area."""
    r = window.run
    fix, one, kernel = state.fix, state.layout, state.kernel
    k, kind = int(fix.vma_block_pages[v]), int(fix.vma_kind[v])
    first = int(one.vma_pte[v])
    shared = _left_alone_as_shared(state, r, v)
    if shared and kernel.cow_skip_rest_of_vma and high > low:
        window.looked += 1 if kind == HUGE else k
        return 0, True
    window.looked += (1 if kind == HUGE else k) * (high - low)
    if shared or (kernel.skip_dirty_file and kind != HUGE and _dirty_file(state, v)):
        return 0, False
    ptes = slice(first + low, first + high)
    wanted = ~state.trapped[r, ptes]
    block = int(one.region_first[one.vma_region[v]])
    node = state.node[r, block + low : block + high]
    if _only_remote(state, v):
        wanted &= node != state.node_of_task[r, window.task]
    if fix.blocks_come_late:
        wanted &= node >= 0
    count = int(np.count_nonzero(wanted))
    if not count:
        return 0, False
    state.trapped[r, ptes] |= wanted
    if not kernel.keep_write:
        state.pte_write[r, ptes] &= ~wanted
    state.pending[r, v] += count
    state.counters["numa_pte_updates"][r] += count * k
    if kind == HUGE:
        state.counters["numa_huge_pte_updates"][r] += count
    window.marked += count if kind == HUGE else count * k
    if fix.access_vma_random[v]:
        _enqueue(state, r, v, np.flatnonzero(wanted) + first + low)
    return count * k, False


def _left_alone_as_shared(state: State, r: int, v: int) -> bool:
    """Say whether an area's pages are copy-on-write pages with other users (thread S0)."""
    fix, one = state.fix, state.layout
    if not one.vma_cow[v] or fix.vma_kind[v] == HUGE:
        return False
    mapcount = int(fix.mapcount[one.vma_region[v]])
    most = int(state.par.cow_max_mappers[r])
    if most:
        return mapcount > most
    rule = state.kernel.skip_shared_cow
    if rule == "none":
        return False
    if rule == "mapcount":
        return mapcount != 1
    pinned = bool(one.vma_pinned[v])
    if rule == "page_count":
        file = bool(one.region_file[one.vma_region[v]])
        return mapcount != 1 or file or pinned or bool(fix.vma_kind[v] == FOLIO)
    return mapcount > 1 or pinned


def _dirty_file(state: State, v: int) -> bool:
    region = state.layout.vma_region[v]
    return bool(state.layout.region_file[region] and state.layout.region_dirty[region])


def _only_remote(state: State, v: int) -> bool:
    """Say whether only pages away from the scanning CPU's node are marked: private memory of one thread."""
    one = state.layout
    return bool(
        state.kernel.skip_local_single_user
        and not one.vma_shared[v]
        and state.fix.vma_kind[v] != HUGE
        and state.fix.process_tasks[one.vma_process[v]] == 1
    )


def _enqueue(state: State, r: int, v: int, ptes: Ints) -> None:
    """Give marked PTE blocks the moment of their next touch, and sort them in.

    Random touches of one page come as a Poisson process of the area's summed touch intensity, so the first
    one comes after a unit exponential of it; later changes of who runs are then accounted for by themselves.
    """
    first = int(state.layout.vma_pte[v])
    u = draws.draw_keyed(state.key[draws.MARK][r], ptes, state.step_index[r])
    new = state.intensity[r, v] + draws.exponential(u) * state.fix.vma_unit[v]
    waiting = slice(first + int(state.queue_head[r, v]), first + int(state.queue_len[r, v]))
    old_ptes, old_threshold = state.queue[r, waiting], state.queue_threshold[r, waiting]
    if state.fix.has_sequential:  # a walk may have taken pages out of turn
        fresh: Bools = np.isin(old_ptes, ptes, invert=True) & state.trapped[r, old_ptes]
        old_ptes, old_threshold = old_ptes[fresh], old_threshold[fresh]
    threshold = np.concatenate([old_threshold, new])
    all_ptes = np.concatenate([old_ptes, ptes.astype(np.int32)])
    order = np.lexsort((all_ptes, threshold))
    length = len(order)
    state.queue[r, first : first + length] = all_ptes[order]
    state.queue_threshold[r, first : first + length] = threshold[order]
    state.queue_head[r, v], state.queue_len[r, v] = 0, length
    state.next_threshold[r, v] = threshold[order[0]]


def _align_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
