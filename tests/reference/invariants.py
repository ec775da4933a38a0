"""What holds after every step, whatever the rules do; each function raises AssertionError where it does not."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from numalab.layout import BASE, FOLIO, HUGE
from tests.reference.groups import weight
from tests.reference.topology import BACKPLANE, DIRECT, MESH

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle

Sums = list[list[int]]


def check(o: Oracle) -> None:
    """Check one state: memory, traps, tasks, groups and counters."""
    check_memory(o)
    check_traps(o)
    for t in range(o.T):
        check_task(o, t)
    for g in range(o.T):
        check_group(o, g, [t for t in range(o.T) if o.group[t] == g])
    assert o.counters["numa_pages_migrated"] == o.counters["pgmigrate_success"]
    assert o.counters["numa_hint_faults_local"] <= o.counters["numa_hint_faults"] <= o.counters["minor_faults"]


def check_memory(o: Oracle) -> None:
    """Every page that is there is on one node, and no longer free."""
    there = [0] * o.N
    for b, n in enumerate(o.node):
        if n >= 0:  # memory of tasks that have not started is nowhere
            there[n] += o.lay.region_block_pages[o.block_region[b]]
    for n in range(o.N):
        assert o.free[n] >= 0
        assert o.free[n] + there[n] == o.lay.node_pages[n] - o.lay.node_reserved[n]
        assert there[n] == sum(on_node[n] for on_node in o.on_node)


def check_traps(o: Oracle) -> None:
    """An area's pending blocks are the trapped ones; without any it has no intensity, an open block no threshold."""
    for v in range(o.V):
        end = o.lay.vma_pte[v] + o.lay.region_blocks[o.lay.vma_region[v]]
        assert o.pending[v] == sum(o.trapped[o.lay.vma_pte[v] : end])
        assert o.pending[v] or not o.intensity[v]
    assert all(trapped or threshold == 0 for trapped, threshold in zip(o.trapped, o.threshold, strict=True))


def check_task(o: Oracle, t: int) -> None:
    """Its faults, its life and its times."""
    lay = o.lay
    assert o.total[t] == sum(map(sum, o.mem[t]))
    assert all(x >= 0 for row in o.mem[t] + o.cpuf[t] for x in row)
    assert o.cpu[t] < 0 or o.allowed(t, o.cpu[t])
    alive = lay.task_start_ns[t] <= o.t0 < lay.task_end_ns[t]
    assert o.cpu[t] < 0 or alive
    assert o.cpu[t] >= 0 or not alive or o.work[t] >= lay.task_visits[t] * 10**9 > 0
    assert o.cpu[t] >= 0 or (o.group[t], o.debt_ns[t], o.wait_ns[t], o.moving[t]) == (-1, 0, 0, -1)
    assert o.spin_ns[t] == 0 or (o.cpu[t] >= 0 and o.debt_ns[t] >= 0)
    assert 0 <= o.run_ns[t] + o.waited_ns[t] <= o.i * o.dt


def check_group(o: Oracle, g: int, members: list[int]) -> None:
    """Group g has the faults of its members, summed."""
    assert o.gtasks[g] == len(members)
    assert o.gtotal[g] == sum(o.total[t] for t in members)
    assert o.gmem[g] == summed(o, [o.mem[t] for t in members])
    assert o.gcpu[g] == summed(o, [o.cpuf[t] for t in members])


def summed(o: Oracle, faults: list[Sums]) -> Sums:
    """Sum faults (N x 2) of several tasks."""
    return [[sum(one[n][p] for one in faults) for p in (0, 1)] for n in range(o.N)]


# ---------------------------------------------------------------- weights (5, 9)
def check_weights(o: Oracle) -> None:
    """Weights of tasks and groups lie between 0 and 1000, their sums between the bounds that the topology sets.

    Of S faults in all, F(m) on node m, weight(n,d) is 1000*(F(n) + sum over m of c(n,m)*F(m)) // S, where c(n,m), from
    0 to 1, is the share of near(n,d) that m gives. Summed over n each F(m) counts K(m) = 1 + sum over n of c(n,m)
    times, so all weights together are at most 1000*max(K), and 1000*min(K) but for what is rounded down: less than 1
    for each of the N weights, and on a mesh less than 1 fault, of S, for each of the N*(N-1) products c*F.
    DIRECT (or without ``topology_scores``) K is 1: at most 1000, as of a share.
    """
    for d in sorted({x for row in o.lay.distance for x in row}):
        times = [1 + sum(share(o, n, m, d) for n in range(o.N) if n != m) for m in range(o.N)]
        for mem, S in zip(o.mem + o.gmem, o.total + o.gtotal, strict=True):
            if S == 0:  # no faults, no weights
                continue
            weights = [weight(o, mem, S, n, d) for n in range(o.N)]
            assert all(0 <= w <= 1000 for w in weights)
            assert sum(weights) <= 1000 * max(times)
            lost = o.N + (Fraction(1000 * o.N * (o.N - 1), S) if o.topology == MESH else 0)
            assert sum(weights) > 1000 * min(times) - lost


def share(o: Oracle, n: int, m: int, d: int) -> Fraction:
    """9: the part of F(m) that counts in near(n,d)."""
    x, D = o.lay.distance[n][m], o.max_distance
    if o.topology == DIRECT or not o.sw.topology_scores or x >= D:
        return Fraction(0)
    if o.topology == BACKPLANE:
        return Fraction(x < d or (x == d and not o.sw.backplane_limit_excluded))
    return Fraction(D - x, D - 10)


# ---------------------------------------------------------------- over a run
class Ledger:
    """What has become of marked pages since the beginning of a run; asked after every step.

    A page that a scan marked (numa_pte_updates) is trapped until it is found (4.5). A find is one hint fault for each
    page of small pages, one for a block of others (c). A large folio that is not accounted is a minor fault only. Later
    finders of a block count nothing. Double faults come on top, one each (c is 1 for small pages too), without a mark:

        numa_pte_updates      = pages found + pages still trapped
        numa_huge_pte_updates = huge pages found + huge pages still trapped
        numa_hint_faults      = c of the finds that are accounted + double faults
        minor_faults          = numa_hint_faults + c of the finds that are not + faults for writing

    where all pages are small and there are no double faults: numa_pte_updates = numa_hint_faults + still trapped.
    """

    def __init__(self, o: Oracle) -> None:
        self.pages = self.huge = self.accounted = self.dropped = self.doubles = self.written = 0
        self.membuf: list[Sums] = [[[0, 0] for _ in range(o.N)] for _ in range(o.T)]

    def check(self, o: Oracle) -> None:
        """Enter the step that has just been done."""
        self.enter_finds(o)
        self.check_counters(o)
        self.check_buffers(o)

    def enter_finds(self, o: Oracle) -> None:
        """4.6: finds by what they count for."""
        accounted = 0
        for q, a in {q: a for a, q in o.found}.items():
            g = o.lay.vma_region[o.lay.access_vma[a]]
            k, kind = o.lay.region_block_pages[g], o.lay.region_kind[g]
            c = k if kind == BASE else 1
            assert not o.trapped[q]
            self.pages += k
            self.huge += kind == HUGE
            if kind == FOLIO and not o.sw.large_folio_accounting:
                self.dropped += c
            else:
                self.accounted += c
                accounted += 1
        doubles = len(o.listed) - accounted
        assert doubles == 0 or (doubles > 0 and o.sw.remap_after_migration)
        self.doubles += doubles
        self.written += sum(f.wp_ns // o.par.wp_fault_ns for f in o.listed)

    def check_counters(self, o: Oracle) -> None:
        """The four identities."""
        trapped = huge = 0
        for v in range(o.V):
            g = o.lay.vma_region[v]
            trapped += o.pending[v] * o.lay.region_block_pages[g]
            huge += o.pending[v] * (o.lay.region_kind[g] == HUGE)
        counters = o.counters
        assert counters["numa_pte_updates"] == self.pages + trapped
        assert counters["numa_huge_pte_updates"] == self.huge + huge
        assert counters["numa_hint_faults"] == self.accounted + self.doubles
        assert counters["minor_faults"] == counters["numa_hint_faults"] + self.dropped + self.written

    def check_buffers(self, o: Oracle) -> None:
        """4.7, 5.1: the buffers hold the faults since the last placement: of a task just placed those of the step."""
        for t in range(o.T):
            if o.placed_wall_ns[t] == o.t1:
                self.membuf[t] = [[0, 0] for _ in range(o.N)]
        for f in o.listed:
            self.membuf[f.task][f.memory_node][f.priv] += f.k
        for t in range(o.T):
            assert o.membuf[t] == self.membuf[t]
            for p in (0, 1):
                assert sum(row[p] for row in o.cpubuf[t]) == sum(row[p] for row in o.membuf[t])
