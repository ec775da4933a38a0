"""Scanning: when a task scans, what a window marks (docs/model.md 4.3, 4.4).

A scan takes its task's time, so it may last several steps. Windows are rare, so they are worked off one at a time,
as generators that stop when the step's time is spent; their pages are arrays.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from numalab.layout import FOLIO, HUGE, Bools, Ints
from numalab.model import draws, period
from numalab.model.period import now_ms
from numalab.model.state import State
from numalab.model.windows import PAGES_PER_MB

HUGE_PAGES = 512
VIRTUAL_FACTOR = 8
STRETCH = 32


def run_due_scans(state: State, useful: Ints) -> Ints:
    """Let the ticks of the step trigger scans of the running tasks, and scanning tasks go on.

    Parameters
    ----------
    useful : (R, T) useful time, ns

    Returns
    -------
    (R, T) useful time left
    """
    due = state.running & (state.run_ns > state.stamp_ns + state.period_ms * 1_000_000)
    if not state.always_scans:
        due &= (state.par.numa_balancing > 0)[:, None]
    r, t = np.nonzero(due)
    if r.size:
        ticking = (state.step_index[r] + state.tick_phase[r, state.cpu[r, t]]) % state.tick_steps[r] == 0
        if state.scans:
            ticking &= np.array([(int(run), int(task)) not in state.scans for run, task in zip(r, t, strict=True)])
        r, t = r[ticking], t[ticking]
        if r.size:
            _trigger(state, r, t)
    return _work(state, useful) if state.scans else useful


def _work(state: State, useful: Ints) -> Ints:
    """Let the running tasks that scan spend their time on it, in task order."""
    useful = useful.copy()
    for r, t in sorted(state.scans):
        if not state.running[r, t] or useful[r, t] <= 0:
            continue
        window = state.scans[r, t]
        window.run, window.time, window.spent, window.flushing = r, int(useful[r, t]), 0, False
        done = next(window.course, None) is None
        paid = min(window.spent, window.time)
        power = max(1, int(state.power[r]))
        state.sys_ns[r, t] += paid * 1000 // power
        useful[r, t] -= paid
        state.debt_ns[r, t] += window.spent - paid
        window.ran_ns += window.spent * 1000 // power
        if window.flushing:
            wait = int(state.par.flush_wait_ns[r])
            state.spin_ns[r, t] += wait
            window.ran_ns += wait
            useful[r, t] = 0
        if done:
            if state.kernel.scan_overhead_stretch:
                tick = int(state.par.tick_us[r]) * 1000
                state.stamp_ns[r, t] += STRETCH * (window.ran_ns // tick * tick)
            del state.scans[r, t]
    return useful


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
    """Take the process's scan window if it is open."""
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
    state.scans[r, t] = begin(state, r, t, m)


def begin(state: State, r: int, t: int, m: int) -> Window:
    """Return a window for a task of a process, to be worked on."""
    size = int(state.par.scan_size_mb[r]) * PAGES_PER_MB
    window = Window(r, t, m, size, VIRTUAL_FACTOR * size)
    window.course = scan_window(state, window)
    return window


@dataclass
class Window:
    """Where a scan window stands.

    Attributes
    ----------
    run, task, process : int
        ``run`` is the row of the batch in this step.
    pages, virtual : int
        Pages it may still mark, and look at.
    start : int
        Page it goes on from.
    forced, skipped, full : bool
        Takes one area whoever used it; left one out; its budget is spent.
    changed : int
        Pages marked, as the budget counts them.
    time, spent : int
        Time of the step, and how much of it is spent, ns.
    ran_ns : int
        Run time spent so far.
    flushing : bool
        Waits from now on for CPUs of other threads to flush what they know of the area.
    course : iterator
        Goes on with the scan; stops when the time is spent, ends with the window.
    """

    run: int
    task: int
    process: int
    pages: int
    virtual: int
    start: int = 0
    forced: bool = False
    skipped: bool = False
    full: bool = False
    changed: int = 0
    time: int = 0
    spent: int = 0
    ran_ns: int = 0
    flushing: bool = False
    course: Iterator[bool] = field(default_factory=lambda: iter(()))


def scan_window(state: State, window: Window) -> Iterator[bool]:
    """Mark one window of a process's memory from where the last one ended."""
    m = window.process
    window.start = int(state.offset[window.run, m])
    while True:
        left_early = yield from _walk(state, window)
        if window.full or left_early:
            state.offset[window.run, m] = window.start
            return
        if state.kernel.pid_filter == "complete" and window.skipped and not window.forced:
            window.forced, window.start = True, int(state.offset[window.run, m])
            continue
        state.seq[window.run, m] += 1
        state.offset[window.run, m] = 0
        return


def _walk(state: State, window: Window) -> Generator[bool, None, bool]:
    """Walk the areas from the window's start; True if a forced scan ended it."""
    fix, one = state.fix, state.layout
    m = window.process
    areas = fix.process_vmas[m]
    first = int(np.searchsorted(fix.vma_end[areas], window.start, side="right"))
    if first == len(areas):
        state.seq[window.run, m] += 1
        state.offset[window.run, m] = 0
        window.start, first = 0, 0
    for v in areas[first:]:
        if not _may_scan(state, int(v)) or not _pid_filter(state, window, int(v)):
            continue
        window.start = max(window.start, int(one.vma_start[v]))
        yield from _scan_area(state, window, int(v))
        if window.full:
            return False
        if state.kernel.pid_filter == "complete":
            state.prev_seq[window.run, v] = state.seq[window.run, m]
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


def _pid_filter(state: State, window: Window, v: int) -> bool:
    """Say whether this thread may scan an area others use: only who faulted there lately (6.4 on)."""
    rule = state.kernel.pid_filter
    if rule == "none":
        return True
    r, m = window.run, window.process
    seq = int(state.seq[r, m])
    if seq != 0 and now_ms(state)[r] < state.vma_next_ms[r, v]:
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


def _age_pids(state: State, window: Window, v: int) -> None:
    """Forget who faulted in an area long ago."""
    r = window.run
    if state.seq[r, window.process] != 0 and now_ms(state)[r] > state.vma_reset_ms[r, v]:
        state.pids0[r, v], state.pids1[r, v] = state.pids1[r, v], 0
        state.vma_reset_ms[r, v] += 4 * state.par.scan_delay_ms[r]


def _is_mine(state: State, window: Window, v: int) -> bool:
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


def _scan_area(state: State, window: Window, v: int) -> Iterator[bool]:
    """Scan one area chunk by chunk until it or the window's budget ends."""
    fix, kernel = state.fix, state.kernel
    end_of_area, k = int(fix.vma_end[v]), int(fix.vma_block_pages[v])
    first_page, blocks = int(fix.vma_first[v]), int(fix.vma_blocks[v])
    while window.start < end_of_area:
        end = min(end_of_area, max(_align_up(window.start + window.pages, HUGE_PAGES), window.start + k))
        # a block belongs to the chunk its first page is in
        low, high = (min(blocks, max(0, -(-(page - first_page) // k))) for page in (window.start, end))
        changed, cut = 0, False
        while low < high and not cut:
            if window.spent >= window.time:
                yield True
            low, marked, cut = _mark(state, window, v, low, high)
            changed += marked
        window.changed = window.changed + changed if kernel.cumulative_pte_budget else changed
        if window.changed:
            window.pages -= end - window.start
        if kernel.virtual_scan_budget:
            window.virtual -= end - window.start
        window.start = end_of_area if cut else end
        if changed and state.par.flush_wait_ns[window.run] and _others_run(state, window):
            window.flushing = True
            yield True
        if window.pages <= 0 or window.virtual <= 0:
            window.full = True
            return


def _others_run(state: State, window: Window) -> bool:
    """Say whether other threads of the process run, whose CPUs may know its pages."""
    own = state.layout.task_process == window.process
    return int(state.running[window.run, own].sum()) > 1


def _mark(state: State, window: Window, v: int, low: int, high: int) -> tuple[int, int, bool]:
    """Mark blocks low..high of an area as far as the time lasts.

    Returns
    -------
    low : int
        Block to go on with.
    marked : int
        Pages marked.
    cut : bool
        A shared page ended the area.
    """
    r = window.run
    fix, one, kernel, par = state.fix, state.layout, state.kernel, state.par
    k, kind = int(fix.vma_block_pages[v]), int(fix.vma_kind[v])
    first = int(one.vma_pte[v])
    shared = _left_alone_as_shared(state, r, v)
    unit = 1 if kind == HUGE else k
    look, mark = unit * int(par.pte_scan_ns[r]), unit * int(par.pte_update_ns[r])
    if shared and kernel.cow_skip_rest_of_vma:
        window.spent += look
        return low + 1, 0, True
    left = window.time - window.spent
    if shared or (kernel.skip_dirty_file and kind != HUGE and _dirty_file(state, v)):
        count = high - low if look == 0 else min(high - low, -(-left // look))
        window.spent += look * count
        return low + count, 0, False
    ptes = slice(first + low, first + high)
    wanted = ~state.trapped[r, ptes]
    block = int(one.region_first[one.vma_region[v]])
    node = state.node[r, block + low : block + high]
    if _only_remote(state, v):
        wanted &= node != state.node_of_task[r, window.task]
    if fix.blocks_come_late:
        wanted &= node >= 0
    # a block is begun as long as there is time
    upto = np.cumsum(look + mark * wanted)
    high = low + min(high - low, int(np.searchsorted(upto, left)) + 1)
    window.spent += int(upto[high - low - 1])
    ptes, wanted = slice(first + low, first + high), wanted[: high - low]
    count = int(np.count_nonzero(wanted))
    if not count:
        return high, 0, False
    state.trapped[r, ptes] |= wanted
    if not kernel.keep_write:
        state.pte_write[r, ptes] &= ~wanted
    state.pending[r, v] += count
    state.counters["numa_pte_updates"][r] += count * k
    if kind == HUGE:
        state.counters["numa_huge_pte_updates"][r] += count
    if fix.access_vma_random[v]:
        _enqueue(state, r, v, np.flatnonzero(wanted) + first + low)
    return high, count * k, False


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
