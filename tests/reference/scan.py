"""Scanning (docs/model.md, sections 4.3 and 4.4)."""

from __future__ import annotations

from collections.abc import Generator
from heapq import heappush
from typing import TYPE_CHECKING, TypeVar

from numalab.layout import BASE, FOLIO, HUGE
from tests.reference.draws import LOCK, MARK, ceiling, draw, exponential

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle

Result = TypeVar("Result")


# ---------------------------------------------------------------- periods
def windows(o: Oracle, m: int) -> int:
    """4.3: scan windows in one pass over process m."""
    return max(1, ceiling(o.rss[m], o.sw.scan_size_mb * 256))


def min_period(o: Oracle, t: int) -> int:
    """4.3: shortest scan period of task t."""
    size, most = o.sw.scan_size_mb, o.sw.max_scan_window_mbps
    floor = 1000 if size >= most else 1000 // (most // size)
    return max(floor, o.sw.scan_period_min_ms // windows(o, o.lay.task_process[t]))


def group_scaled(o: Oracle, t: int, period: int) -> int:
    """4.3: a period scaled with the group's tasks and its share of shared faults."""
    g = o.group[t]
    shared = sum(row[0] for row in o.gmem[g])
    private = sum(row[1] for row in o.gmem[g])
    return period * o.gtasks[g] * (shared + 1) // (private + shared + 1)


def start_period(o: Oracle, t: int) -> int:
    """4.3: scan period a task starts with."""
    least = min_period(o, t)
    if o.sw.group_scaled_period and o.group[t] >= 0:
        return max(least, group_scaled(o, t, least))
    return least


def max_period(o: Oracle, t: int) -> int:
    """4.3: longest scan period of task t."""
    least = min_period(o, t)
    x = o.sw.scan_period_max_ms // windows(o, o.lay.task_process[t])
    if o.sw.group_scaled_period and o.group[t] >= 0:
        return max(least, x, group_scaled(o, t, x))
    return max(least, x)


# ---------------------------------------------------------------- when
def scans(o: Oracle) -> None:
    """4.3: windows begin at the ticks of running tasks; then the running tasks work on theirs, both in task order."""
    ticking = [o.cur[c] for c in range(o.C) if (o.i + (o.cpu_phase[c] >> 32)) % o.tick_steps == 0]
    if o.par.numa_balancing == 0:
        ticking = []
    for t in sorted(t for t in ticking if t >= 0):
        tick(o, t)
    for t in sorted(t for t in o.cur if t >= 0):
        if o.window[t] is not None and o.useful[t] > 0:
            work(o, t)


def tick(o: Oracle, t: int) -> None:
    """4.3: one tick of a running task."""
    m = o.lay.task_process[t]
    # 5: nothing while it scans
    if o.window[t] is not None:
        return
    # 1
    if o.run_ns[t] <= o.stamp_ns[t] + o.period_ms[t] * 10**6:
        return
    old = o.period_ms[t]
    if o.stamp_ns[t] == 0:
        o.period_ms[t] = start_period(o, t)
    o.stamp_ns[t] += old * 10**6
    # 2
    if o.now_ms < o.next_scan_ms[m]:
        return
    if o.sw.cpuset_one_node_skip and o.lay.process_single_node[m]:
        return
    # 3
    if o.next_scan_ms[m] == 0:
        o.next_scan_ms[m] = o.now_ms + o.sw.scan_delay_ms
        return
    o.next_scan_ms[m] = o.now_ms + o.period_ms[t]
    o.stamp_ns[t] += 2 * o.tick_ns
    # 4
    if draw(o.seed, LOCK, t, o.i) % 1000 < o.par.mmap_busy:
        if o.sw.mmap_lock == "try":
            return
        o.wait_ns[t] += o.par.mmap_wait_ns
    # 5
    o.window[t] = Window(o, t)
    o.scan_ns[t] = 0


def work(o: Oracle, t: int) -> None:
    """4.3: task t goes on with its window for its useful time; the last block may take it beyond."""
    window = o.window[t]
    before = window.cost()
    flushing = False
    # spec 4.3: only looking at a block needs time left; what is free up to the next block or the end is done at once,
    # a flush too. What comes after a flush, the end of the window too, is left for a later step
    for rest in window.rests:
        flushing = rest == FLUSH and waits_for_flushes(o, t)
        if flushing or (rest == LOOK and window.cost() - before >= o.useful[t]):
            break
    else:
        o.window[t] = None
    spent = window.cost() - before
    paid = min(spent, o.useful[t])
    o.sys_ns[t] += paid * 1000 // max(1, o.power)
    o.useful[t] -= paid
    o.debt_ns[t] += spent - paid
    o.scan_ns[t] += spent * 1000 // max(1, o.power)
    if flushing:
        o.spin_ns[t] += o.par.flush_wait_ns
        o.scan_ns[t] += o.par.flush_wait_ns
        o.useful[t] = 0
    if o.window[t] is None and o.sw.scan_overhead_stretch:
        o.stamp_ns[t] += 32 * (o.scan_ns[t] // o.tick_ns * o.tick_ns)


def waits_for_flushes(o: Oracle, t: int) -> bool:
    """4.3: whether other CPUs must flush what task t marked: those on which its process runs."""
    process = o.lay.task_process
    return o.par.flush_wait_ns > 0 and any(u >= 0 and u != t and process[u] == process[t] for u in o.cur)


# ---------------------------------------------------------------- what
LOOK, FLUSH = "look", "flush"
Rests = Generator[str, None, Result]  # before it looks at a block, and at the end of a chunk in which it marked some


class Window:
    """4.4: one scan window of task t over its process's memory."""

    def __init__(self, o: Oracle, t: int) -> None:
        self.o, self.t, self.m = o, t, o.lay.task_process[t]
        self.pages = o.sw.scan_size_mb * 256
        self.virt = 8 * self.pages
        self.start = 0
        self.forced = False
        self.skipped = False
        self.marked = 0  # pages marked in the whole window, for cumulative_pte_budget
        self.looked_at = 0  # pages
        self.updates = 0  # pages, a huge page counts 1
        self.rests = self.walk()

    def cost(self) -> int:
        """4.3: ns spent so far."""
        return self.o.par.pte_scan_ns * self.looked_at + self.o.par.pte_update_ns * self.updates

    def walk(self) -> Rests[None]:
        """4.4: from *begin* to where the window ends."""
        o, m = self.o, self.m
        self.start = o.offset[m]  # spec 4.3, 4.4: as it is when the work begins
        while True:
            ended = yield from self.from_begin()
            if ended == "budget":
                o.offset[m] = self.start
                return
            if ended == "forced":
                o.offset[m] = self.start
                return
            if o.sw.pid_filter == "complete" and self.skipped and not self.forced:
                self.forced = True
                self.start = o.offset[m]
                continue
            o.seq[m] += 1
            o.offset[m] = 0
            return

    def from_begin(self) -> Rests[str]:
        """4.4, *begin*: walk the VMAs from start; what ended it: budget, forced or list."""
        o, lay = self.o, self.o.lay
        vmas = [v for v in o.process_vmas[self.m] if lay.vma_start[v] + lay.vma_pages[v] > self.start]
        if not vmas:
            o.seq[self.m] += 1
            self.start = 0
            o.offset[self.m] = 0
            vmas = o.process_vmas[self.m]
        for v in vmas:
            if self.unsuitable(v) or self.filtered(v):
                continue
            if (yield from self.scan_vma(v)):
                return "budget"
            if o.sw.pid_filter == "complete":
                o.prev_seq[v] = o.seq[self.m]
            if self.forced:
                return "forced"
        return "list"

    def unsuitable(self, v: int) -> bool:
        """4.4: VMAs no window looks at."""
        lay = self.o.lay
        if not lay.vma_migratable[v] or not lay.vma_mof[v]:
            return True
        if self.o.sw.skip_hugetlb_mixedmap and not lay.vma_scannable[v]:
            return True
        if lay.region_file[lay.vma_region[v]] and lay.vma_read[v] and not lay.vma_write[v]:
            return True
        return not lay.vma_read[v] and not lay.vma_write[v]

    def filtered(self, v: int) -> bool:
        """4.4, pid filter (a) to (d): VMAs this task's window leaves alone."""
        o, m, sw = self.o, self.m, self.o.sw
        if sw.pid_filter == "none":
            return False
        if o.seq[m] != 0 and o.now_ms < o.vma_next_ms[v]:
            return True
        if sw.pid_filter == "complete":
            self.age(v)
        if sw.pid_filter == "complete" and o.prev_seq[v] == o.seq[m]:
            o.offset[m] = o.lay.vma_start[v] + o.lay.vma_pages[v]
            return True
        if not self.forced and not self.mine(v):
            self.skipped = True
            return True
        if sw.pid_filter == "active":
            self.age(v)
        return False

    def age(self, v: int) -> None:
        """4.4 (b): forget who faulted long ago."""
        o = self.o
        if o.seq[self.m] != 0 and o.now_ms > o.vma_reset_ms[v]:
            o.pids0[v], o.pids1[v] = o.pids1[v], 0
            o.vma_reset_ms[v] += 4 * o.sw.scan_delay_ms

    def mine(self, v: int) -> bool:
        """4.4 (d): whether the task may scan VMA v."""
        o, m = self.o, self.m
        if o.seq[m] < 2 or (o.pids0[v] | o.pids1[v]) & pid_bit(o, self.t):
            return True
        if o.sw.pid_filter != "complete":
            return False
        started = sum(o.cpu[t] >= 0 for t in o.process_tasks[m])
        return o.offset[m] > o.lay.vma_start[v] or o.seq[m] > o.prev_seq[v] + started

    def scan_vma(self, v: int) -> Rests[bool]:
        """4.4: scan VMA v in chunks; whether the budget ended it."""
        o, lay = self.o, self.o.lay
        vm_end = lay.vma_start[v] + lay.vma_pages[v]
        k = lay.region_block_pages[lay.vma_region[v]]
        self.start = max(self.start, lay.vma_start[v])
        while True:
            end = ceiling(self.start + self.pages, 512) * 512
            end = min(vm_end, max(end, self.start + k))
            marked, cut = yield from self.look_at(v, self.start, end)
            # spec 4.3: marked by this window; where cow_skip_rest_of_vma cuts a VMA the chunk ends, too
            if marked > 0:
                yield FLUSH
            self.marked += marked
            u = self.marked if o.sw.cumulative_pte_budget else marked
            # spec 4.4: a VMA cut short by cow_skip_rest_of_vma is charged its whole last chunk
            if u > 0:
                self.pages -= end - self.start
            if o.sw.virtual_scan_budget:
                self.virt -= end - self.start
            self.start = vm_end if cut else end
            if self.pages <= 0 or self.virt <= 0:
                return True
            if self.start == vm_end:
                return False

    def look_at(self, v: int, start: int, end: int) -> Rests[tuple[int, bool]]:
        """4.4: look at the blocks whose first page is in [start, end): (pages marked, whether the VMA was cut)."""
        o, lay = self.o, self.o.lay
        g = lay.vma_region[v]
        k, huge = lay.region_block_pages[g], lay.region_kind[g] == HUGE
        first = lay.vma_start[v] + lay.vma_hole[v]  # page of block 0
        marked = 0
        for j in range(max(0, ceiling(start - first, k)), ceiling(end - first, k)):
            yield LOOK
            self.looked_at += 1 if huge else k
            if shared_cow(o, v):
                if o.sw.cow_skip_rest_of_vma:
                    return marked, True
            elif not self.left_alone(v, j):
                self.mark(v, lay.vma_pte[v] + j, k, huge)
                marked += k
        return marked, False

    def left_alone(self, v: int, j: int) -> bool:
        """4.4: whether block j of VMA v, not shared copy-on-write, is not marked."""
        o, lay = self.o, self.o.lay
        g = lay.vma_region[v]
        huge = lay.region_kind[g] == HUGE
        node = o.node[lay.region_first[g] + j]
        if o.trapped[lay.vma_pte[v] + j] or node == -1:
            return True
        if o.sw.skip_dirty_file and lay.region_file[g] and lay.region_dirty[g] and not huge:
            return True
        if not o.sw.skip_local_single_user or lay.vma_shared[v] or huge:
            return False
        # spec 4.4: "has one task": of the layout, started or not
        return len(o.process_tasks[self.m]) == 1 and node == o.node_of(self.t)

    def mark(self, v: int, q: int, k: int, huge: bool) -> None:
        """4.4: trap PTE block q."""
        o, lay = self.o, self.o.lay
        g = lay.vma_region[v]
        o.trapped[q] = True
        o.pending[v] += 1
        o.counters["numa_pte_updates"] += k
        self.updates += 1 if huge else k
        if huge:
            o.counters["numa_huge_pte_updates"] += 1
        if not o.sw.keep_write:
            o.pte_write[q] = False
        unit = o.region_pages[g] if lay.region_kind[g] == BASE else lay.region_blocks[g]
        o.threshold[q] = o.intensity[v] + exponential(draw(o.seed, MARK, q, o.i)) * unit
        if o.random_accesses[v]:
            heappush(o.ahead[v], (o.threshold[q], q))


def shared_cow(o: Oracle, v: int) -> bool:
    """4.4: whether the scanner takes the blocks of VMA v for shared copy-on-write."""
    lay, g = o.lay, o.lay.vma_region[v]
    if not lay.vma_cow[v] or lay.region_kind[g] == HUGE:
        return False
    mapcount, pinned = o.mapcount[g], lay.vma_pinned[v]
    if o.sw.cow_max_mappers > 0:
        return mapcount > o.sw.cow_max_mappers
    match o.sw.skip_shared_cow:
        case "none":
            return False
        case "mapcount":
            return mapcount != 1
        case "page_count":
            return mapcount != 1 or lay.region_file[g] or pinned or lay.region_kind[g] == FOLIO
        case _:  # likely_shared, maybe_shared
            return mapcount > 1 or pinned


def pid_bit(o: Oracle, t: int) -> int:
    """4.4: the task's bit in a VMA's mask of pids."""
    return 1 << ((o.lay.task_pid[t] * 0x61C88647 % 2**32) >> 26)
