"""Hint faults, migration and their costs (docs/model.md, sections 4.6 and 4.8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from numalab.layout import BASE, FOLIO, HUGE
from tests.reference import flights
from tests.reference.draws import DOUBLE, DOUBLER, ISOLATE, TURN, WRITE, draw, exponential
from tests.reference.groups import active, group_cpu, group_faults
from tests.reference.scan import pid_bit

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


Live = dict[int, int]  # rates of the live accesses (4.5)


@dataclass(slots=True)
class Fault:
    """One counted hint fault: who and what, then what came of it."""

    task: int
    access: int
    vma: int
    region: int
    q: int
    block: int
    k: int  # pages
    c: int  # faults it counts for
    no_group: bool = False
    shared: bool = False
    local: bool = False
    last_cpu: int = -1  # last user before this fault
    last_pid: int = -1
    priv: bool = False
    src: int = -1  # the node the page is faulted on
    isolated: bool = False  # already taken off by another migration
    memory_node: int = -1  # after migration
    migrated: bool = False
    failed: bool = False
    wp_ns: int = 0


Late = tuple[Fault, int]  # a fault and the access of another find of its PTE, later in the list


def handle(o: Oracle, found: list[tuple[int, int]], live: Live) -> list[Fault]:
    """4.6: all faults of the step; returns them in list order."""
    listed, late = list_faults(o, found)
    rounds: list[list[Fault]] = []
    earlier: dict[int, int] = {}  # faults of each memory block so far
    for f in listed:
        j = earlier.get(f.block, 0)
        earlier[f.block] = j + 1
        if j == len(rounds):
            rounds.append([])
        rounds[j].append(f)
    deferral = Deferral()
    for one_round in rounds:
        for f in one_round:
            fault(o, f, deferral)
    if o.sw.remap_after_migration:
        # spec 4.6: "in order of the faults they met": list order; sorted() keeps it, and a task's own faults behind
        listed = sorted(double_faults(o, listed, late, live, deferral) + listed, key=lambda f: f.task)
    deferral.end_of_step(o)
    for v in range(o.V):
        if o.pending[v] == 0:
            o.intensity[v] = 0
            o.ahead[v].clear()
            o.reached[v].clear()
    return listed


def list_faults(o: Oracle, found: list[tuple[int, int]]) -> tuple[list[Fault], list[Late]]:
    """4.6: the first finder of a PTE block faults, later ones only pay."""
    listed: list[Fault] = []
    late: list[Late] = []
    seen: dict[int, Fault | None] = {}  # none: not accounted
    for a, q in found:
        t, v = o.lay.access_task[a], o.lay.access_vma[a]
        g = o.lay.vma_region[v]
        k, kind = o.lay.region_block_pages[g], o.lay.region_kind[g]
        c = k if kind == BASE else 1
        if q in seen:
            o.debt_ns[t] += c * o.par.hint_fault_ns
            first = seen[q]
            if first is not None:
                late.append((first, a))
            continue
        seen[q] = None
        o.trapped[q] = False
        o.threshold[q] = 0
        o.pending[v] -= 1
        if kind == FOLIO and not o.sw.large_folio_accounting:
            o.counters["minor_faults"] += c
            o.debt_ns[t] += c * o.par.hint_fault_ns
            continue
        block = o.lay.region_first[g] + q - o.lay.vma_pte[v]
        seen[q] = f = Fault(t, a, v, g, q, block, k, c)
        listed.append(f)
    return listed, late


class Deferral:
    """4.6, 4 c and d: changes of ``deferred`` that take hold at the end of the step."""

    def __init__(self) -> None:
        self.set: set[int] = set()
        self.used: dict[int, int] = {}

    def end_of_step(self, o: Oracle) -> None:
        """Apply them."""
        for t, count in self.used.items():
            o.deferred[t] = max(0, o.deferred[t] - count)
        for t in self.set:  # spec 4.6: a task that both sets and uses it in a step ends with it set
            o.deferred[t] = o.sw.migrate_deferred


def fault(o: Oracle, f: Fault, deferral: Deferral) -> None:
    """4.6: one fault, steps 0 to 7."""
    t, b, v = f.task, f.block, f.vma
    here, src = o.node_of(t), o.node[b]
    # 0
    source = flights.source(o, t, b)
    if source >= 0:
        src, f.isolated = source, True
    f.src = src
    # 1
    count(o, f, here)
    # 2
    f.no_group = no_group(o, f)
    huge = o.lay.region_kind[f.region] == HUGE
    f.shared = o.mapcount[f.region] > 1 and o.lay.vma_shared[v] and (not huge or o.sw.thp_sets_shared)
    # 3
    f.last_cpu, f.last_pid = o.last_cpu[b], o.last_pid[b]
    f.priv = f.last_cpu < 0 or f.last_pid == o.pid8[t]
    # 4, 5
    f.memory_node = src
    if misplaced(o, f, src, here, deferral):
        migrate(o, f, src, here)
    # 6
    write(o, f)
    # 7
    note_pid(o, f)


def count(o: Oracle, f: Fault, here: int) -> None:
    """4.6, 1: the counters of a fault."""
    f.local = f.src == here
    o.counters["numa_hint_faults"] += f.c
    o.counters["minor_faults"] += f.c
    if f.local:
        o.counters["numa_hint_faults_local"] += f.c


def note_pid(o: Oracle, f: Fault) -> None:
    """4.6, 7: who faulted in the area lately."""
    if o.sw.pid_filter != "none":  # spec 4.6: only with a pid filter
        o.pids1[f.vma] |= pid_bit(o, f.task)


def double_faults(o: Oracle, listed: list[Fault], late: list[Late], live: Live, deferral: Deferral) -> list[Fault]:
    """4.6, remap_after_migration: faults on PTEs whose page another fault was moving, in order of those."""
    at_random = [(f, random_meeting(o, f, live)) for f in listed if f.migrated]
    meetings = [(f, a) for f, a in at_random if a >= 0]
    # spec 4.6: all of a task at random come before the one in passing, whatever they met
    meetings += passing_meetings(o, late)
    return [double_fault(o, f, a, deferral) for f, a in meetings]


def random_meeting(o: Oracle, f: Fault, live: Live) -> int:
    """4.6: the random access that touches a page of the block while fault f moves it, -1 if none."""
    one_cpu = o.par.shared_cpus == 1000
    weights = {
        a: live[a] * (o.tick_ns if one_cpu else o.par.isolate_ns) // 1000
        for a in o.random_accesses[f.vma]
        if a in live and o.lay.access_task[a] != f.task
    }
    W = sum(weights.values())
    # spec 4.6: this k is of the fault met, all pages of its block, though the double fault may be on one of them
    if W == 0 or exponential(draw(o.seed, DOUBLE, f.q, o.i)) * o.region_pages[f.region] > W * f.k:
        return -1
    if one_cpu and not turn_ends(o, f):
        return -1
    at = ((draw(o.seed, DOUBLER, f.q, o.i) >> 44) * W) >> 20
    passed = 0
    for a, weight in weights.items():
        passed += weight
        if passed > at:
            return a
    raise AssertionError("at is below W")


def turn_ends(o: Oracle, f: Fault) -> bool:
    """4.6: whether others get the only CPU while fault f moves its page."""
    # spec 4.6: this c, too, is of the fault met
    return draw(o.seed, TURN, f.q, o.i) % o.tick_ns < f.c * o.par.isolate_ns


def passing_meetings(o: Oracle, late: list[Late]) -> list[tuple[Fault, int]]:
    """4.6: later finders that come upon the page while it moves, with the fault they met; one try for each task."""
    tried: dict[int, tuple[Fault, int]] = {}
    for f, a in late:
        if f.migrated and f.task != o.lay.access_task[a]:
            tried.setdefault(o.lay.access_task[a], (f, a))
    meetings = []
    for f, a in tried.values():
        D = max(1, f.c * o.par.hint_fault_ns + migration_cost(o, f))
        if draw(o.seed, DOUBLER, f.q, o.i) % D < f.c * o.par.isolate_ns:
            meetings.append((f, a))
    return meetings


def double_fault(o: Oracle, met: Fault, a: int, deferral: Deferral) -> Fault:
    """4.6: the fault of access a on a page that fault met was moving; if it should move here too, that fails."""
    t = o.lay.access_task[a]
    here = o.node_of(t)
    base = o.lay.region_kind[met.region] == BASE
    k, c = (1, 1) if base else (met.k, met.c)
    last_cpu, last_pid = o.cpu[met.task], o.pid8[met.task]
    # what is not named here is that of the fault met
    f = replace(
        met, task=t, access=a, k=k, c=c, last_cpu=last_cpu, last_pid=last_pid,
        memory_node=met.src, migrated=False, wp_ns=0,
    )  # fmt: skip
    count(o, f, here)
    f.priv = last_pid == o.pid8[t]
    memory_here = not o.sw.dst_needs_memory or o.lay.node_pages[here] > 0
    # spec 4.6: a local one does not ask the filter, so it counts for nothing in 4 c and d
    if here != f.src and memory_here and filter_says_yes(o, f, f.src, here, deferral):
        f.failed = True
        o.counters["migrate_refused"] += k
    note_pid(o, f)
    return f


def no_group(o: Oracle, f: Fault) -> bool:
    """4.6, 2: whether the fault may not group tasks."""
    match o.sw.no_group_rule:
        case "pte_write":
            return not o.pte_write[f.q]
        case "always_private":
            return not o.lay.vma_shared[f.vma] or not o.pte_write[f.q]
        case "pte_dirty":
            return not o.pte_dirty[f.q]
        case _:  # vma_write
            return not o.lay.vma_write[f.vma]


def misplaced(o: Oracle, f: Fault, src: int, here: int, deferral: Deferral) -> bool:
    """4.6, 4: whether the page should move here; remembers its user when the filter is asked."""
    if src == here and not o.sw.exchange_on_local:
        return False
    if o.sw.dst_needs_memory and o.lay.node_pages[here] == 0:  # a
        return False
    o.last_cpu[f.block], o.last_pid[f.block] = o.cpu[f.task], o.pid8[f.task]
    return filter_says_yes(o, f, src, here, deferral) and src != here


def filter_says_yes(o: Oracle, f: Fault, src: int, dst: int, deferral: Deferral) -> bool:
    """4.6, 4 b to f: the migration filter."""
    t, g, mine = f.task, o.group[f.task], o.pid8[f.task]
    unset = f.last_cpu < 0 or f.last_pid == 255
    own = mine == 255 if f.last_cpu < 0 else f.last_pid == mine
    # b
    if o.sw.early_private and (o.preferred[t] == -1 or o.seq_seen[t] <= 4) and (unset or own):
        return True
    # c
    if not unset and o.lay.cpu_node[f.last_cpu] != dst:
        if o.sw.migrate_deferred > 0 and not own:
            deferral.set.add(t)
        return False
    # d
    if own:
        return True
    if o.sw.migrate_deferred > 0 and o.deferred[t] > 0:
        deferral.used[t] = deferral.used.get(t, 0) + 1
        return False
    # e
    if g < 0 or o.sw.group_filter == "none":
        return True
    # f
    if o.sw.group_filter == "memory":
        if not active(o, g, dst):
            return False
        if not active(o, g, src):
            return True
        return group_faults(o, g, dst) < 3 * group_faults(o, g, src) // 4
    if group_cpu(o, g, dst) > 3 * group_cpu(o, g, src):
        return True
    return group_cpu(o, g, dst) * group_faults(o, g, src) * 3 > group_cpu(o, g, src) * group_faults(o, g, dst) * 4


def migrate(o: Oracle, f: Fault, src: int, dst: int) -> None:
    """4.6, 5: migrate the block, or be refused."""
    if refused(o, f, dst):
        f.failed = True
        o.counters["migrate_refused"] += f.k
        return
    o.node[f.block] = dst
    o.free[src] += f.k
    o.free[dst] -= f.k
    o.on_node[f.region][src] -= f.k
    o.on_node[f.region][dst] += f.k
    o.counters["numa_pages_migrated"] += f.k
    o.counters["pgmigrate_success"] += f.k
    f.migrated = True
    f.memory_node = dst


def refused(o: Oracle, f: Fault, dst: int) -> bool:
    """4.6, 5: the tests before a migration, in order."""
    g = f.region
    file, mapcount = o.lay.region_file[g], o.mapcount[g]
    if file and o.lay.region_exec[g] and mapcount > 1:
        return True
    if o.lay.region_kind[g] == HUGE and o.sw.refuse_shared_thp and mapcount > 1:
        return True
    if o.sw.skip_dirty_file and file and o.lay.region_dirty[g]:
        return True
    if rate_limited(o, dst, f.k):
        return True
    if o.free[dst] < o.lay.node_watermark[dst] + f.k:
        return True
    if f.isolated:
        return True
    return draw(o.seed, ISOLATE, f.q, o.i) % 1000 < o.par.isolate_fail


def rate_limited(o: Oracle, dst: int, k: int) -> bool:
    """4.6, 5: the rate limit of migrations into a node."""
    limit = o.sw.migrate_ratelimit_pages
    if limit == 0:
        return False
    if o.now_ms > o.rate_end_ms[dst]:
        o.rate_count[dst] = 0
        o.rate_end_ms[dst] = o.now_ms + 100
    if o.rate_count[dst] > limit:
        return True
    o.rate_count[dst] += k
    return False


def write(o: Oracle, f: Fault) -> None:
    """4.6, 6: the page may be written before the next scan."""
    q = f.q
    if f.failed and o.sw.failed_migration_drops_write:
        o.pte_write[q] = False
    if draw(o.seed, WRITE, q, o.i) % 1000 >= o.lay.access_write[f.access]:
        return
    if o.pte_write[q]:
        o.pte_dirty[q] = True
    elif o.lay.vma_write[f.vma]:
        o.counters["minor_faults"] += f.c
        f.wp_ns = f.c * o.par.wp_fault_ns
        o.pte_write[q] = True
        o.pte_dirty[q] = True
        base = o.lay.region_kind[f.region] == BASE
        if o.sw.wp_fault_resets_cpupid and base and o.mapcount[f.region] == 1:
            o.last_cpu[f.block], o.last_pid[f.block] = -1, -1


def migration_cost(o: Oracle, f: Fault) -> int:
    """4.8: ns of work one migration takes."""
    unmap = o.par.unmap_ns * o.mapcount[f.region]
    return f.c * (o.par.migrate_ns + unmap) + f.k * o.par.copy_page_ns


def ipi_wait(o: Oracle, f: Fault) -> int:
    """4.8: ns a migration waits for the other CPUs of an emulated guest."""
    return f.c * o.par.ipi_wait_ns * o.mapcount[f.region]


def migration_time(o: Oracle, f: Fault) -> int:
    """4.8: ns from the start of a migration to its end: work and wait."""
    return migration_cost(o, f) + ipi_wait(o, f)


def interrupts(o: Oracle, listed: list[Fault]) -> None:
    """4.8: the flushes of migrations interrupt every other running task whose process maps the block."""
    flushes: dict[int, int] = {}  # per region
    own: dict[tuple[int, int], int] = {}  # per region and task
    for f in listed:
        if f.migrated:
            flushes[f.region] = flushes.get(f.region, 0) + f.c
            own[f.region, f.task] = own.get((f.region, f.task), 0) + f.c
    if not flushes:
        return
    for t in o.running:
        mapped = o.process_regions[o.lay.task_process[t]]
        o.debt_ns[t] += o.par.ipi_ns * sum(flushes.get(g, 0) - own.get((g, t), 0) for g in mapped)


def charge(o: Oracle, listed: list[Fault], live: Live) -> None:
    """4.8: faults become debt, long migrations hold their pages, short ones make the others wait."""
    for f in listed:
        o.debt_ns[f.task] += f.c * o.par.hint_fault_ns + f.wp_ns
        if f.migrated:
            o.debt_ns[f.task] += migration_cost(o, f)
            o.wait_ns[f.task] += ipi_wait(o, f)
    interrupts(o, listed)
    left_out = flights.note(o, listed, lambda f: migration_time(o, f))
    X: dict[int, int] = {}  # per region
    X_t: dict[tuple[int, int], int] = {}  # per region and task
    for f in listed:
        if f.migrated and f is not left_out.get(f.task):
            D = migration_time(o, f) // 1000
            X[f.region] = X.get(f.region, 0) + D * D
            X_t[f.region, f.task] = X_t.get((f.region, f.task), 0) + D * D
    if not X:
        return
    for a in live:
        t, g = o.lay.access_task[a], o.lay.vma_region[o.lay.access_vma[a]]
        others = X.get(g, 0) - X_t.get((g, t), 0)
        if others == 0:
            continue
        m, j = flights.unmapped_before(o, g, o.lay.task_process[t])
        o.wait_ns[t] += (
            o.lay.access_rate[a] * others // (2000 * o.region_pages[g]) * (1000 * (m - j) ** 2 // m**2) // 1000
        )
