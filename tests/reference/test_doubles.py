"""The oracle: faults on pages that another fault is moving (section 4.6, remap_after_migration)."""

from __future__ import annotations

import random

import pytest

from numalab.layout import BASE, FOLIO, HUGE, RANDOM, SEQUENTIAL
from tests.reference import faults, tasks, touch
from tests.reference.cases import random_kernel, random_layout, random_params
from tests.reference.draws import DOUBLE, DOUBLER, TURN, draw, exponential
from tests.reference.helpers import oracle, remote, trap
from tests.reference.oracle import Oracle

OFTEN = 10**9  # pages/s: whatever the draw, a page is touched while it moves


def two(kernel="4.15", cpus=(0, 2), switches=None, **rest):
    """Memory on node 1, two CPUs a node; task 0 on node 0, task 1 on that of its CPU."""
    o = remote(kernel, switches={"remap_after_migration": True, **(switches or {})}, write=0, **rest)
    o.cpu = list(cpus)
    return o


def fault_on(o, q=3, t=0, live=None):
    """Task t faults on block q while the accesses go on; the faults in list order."""
    trap(o, [q])
    return faults.handle(o, [(t, q)], {0: OFTEN, 1: OFTEN} if live is None else live)


def test_only_with_the_switch_and_only_if_the_page_moves():
    assert [f.task for f in fault_on(two())] == [0, 1]
    assert [f.task for f in fault_on(two(switches={"remap_after_migration": False}))] == [0]
    o = two()
    o.node[3] = 0  # local
    assert [f.task for f in fault_on(o)] == [0]
    assert [f.failed for f in fault_on(two(params={"isolate_fail": 1000}))] == [True]
    assert [f.task for f in fault_on(two(params={"isolate_ns": 0}))] == [0]  # nobody touches it in no time


def test_a_double_fault_where_the_page_was():
    """Task 1 is on node 1, as the page was: a local fault, and nothing is to be moved."""
    o = two()
    f, double = fault_on(o)
    assert (f.migrated, f.memory_node, f.failed) == (True, 0, False)
    assert (double.task, double.access, double.q, double.block) == (1, 1, 3, 3)
    assert (double.local, double.memory_node, double.migrated, double.failed) == (True, 1, False, False)
    assert (double.last_cpu, double.last_pid, double.priv) == (0, o.pid8[0], False)
    assert o.node[3] == 0
    assert (o.last_cpu[3], o.last_pid[3]) == (0, o.pid8[0])  # the last user stays
    assert {name: value for name, value in o.counters.items() if value} == {
        "numa_hint_faults": 2, "numa_hint_faults_local": 1, "numa_pages_migrated": 1, "pgmigrate_success": 1,
        "minor_faults": 2,
    }  # fmt: skip
    assert o.pending == [0]
    faults.charge(o, [f, double], {})
    assert o.debt_ns == [1200 + 1500 + 300 + 600, 1200]
    assert o.moving == [3, -1]


def test_a_double_fault_that_fails():
    """Task 1 is on node 0 too: the last user, task 0, is on its node, so the page should move there."""
    o = two(cpus=(0, 1))
    _, double = fault_on(o)
    assert (double.local, double.failed, double.memory_node) == (False, True, 1)
    assert o.counters["migrate_refused"] == 1
    # on node 2 it should not, the last user was elsewhere
    o = two(cpus=(0, 4))
    assert [f.failed for f in fault_on(o)] == [False, False]
    assert o.counters["migrate_refused"] == 0


def test_the_filter_looks_at_the_doubler():
    o = two("6.1", cpus=(0, 4), task_pid=[1000, 1256])  # early, and by its pid the last user was task 1 itself
    double = fault_on(o)[1]
    assert (double.failed, double.priv) == (True, True)
    o = two("6.1", cpus=(0, 4), task_pid=[1000, 1256])
    o.preferred[1], o.seq_seen[1] = 0, 5  # no longer early
    assert not fault_on(o)[1].failed
    o = two(cpus=(0, 1))
    o.group[1], o.gmem[1][1], o.gcpu[1][1] = 1, [9, 0], [9, 0]  # its group is at home on node 1
    assert not fault_on(o)[1].failed
    for needed, failed in ((True, False), (False, True)):
        o = two("6.1", cpus=(0, 4), task_pid=[1000, 1256], node_pages=[1 << 20, 1 << 20, 0, 1 << 20],
                switches={"dst_needs_memory": needed})  # fmt: skip
        assert fault_on(o)[1].failed is failed


def test_double_faults_defer_migrations():
    o = two("3.14", cpus=(0, 4))
    fault_on(o)
    assert o.deferred == [0, 16]  # the last user was on another node
    o = two("3.14", cpus=(0, 1))
    o.deferred[1] = 5
    assert not fault_on(o)[1].failed
    assert o.deferred == [0, 4]
    o = two("3.14", cpus=(0, 2))
    o.deferred[1] = 5
    fault_on(o)
    assert o.deferred == [0, 5]  # local: not asked


def test_pages_of_a_double_fault():
    for kind, pages, k, c in (("base", 4, 1, 1), (HUGE, 512, 512, 1), (FOLIO, 16, 16, 1)):
        o = two("6.18", cpus=(0, 1), block_pages=pages, **({} if kind == "base" else {"kind": kind}))
        f, double = fault_on(o)
        assert (f.k, double.k, double.c) == (pages, k, c)
        assert o.counters["numa_hint_faults"] == f.c + c
        assert o.counters["migrate_refused"] == k
    o = two("6.12", block_pages=16, kind=FOLIO)  # not accounted
    assert fault_on(o) == []


@pytest.mark.parametrize("pages", [1, 4])
def test_the_chance_of_a_double_fault(pages):
    """Isolated after 1 ns: W is the rate // 1000; 16 blocks, so by the page 16*EXP <= W."""
    q = 5
    needed = 16 * exponential(draw(1, DOUBLE, q, 0))
    for W, faulting in ((needed - 1, [0]), (needed, [0, 1])):
        o = two(block_pages=pages, params={"isolate_ns": 1})
        assert [f.task for f in fault_on(o, q, live={0: OFTEN**2, 1: 1000 * W})] == faulting
    o = two(params={"isolate_ns": 1})
    o.i = 7  # anew in every step
    needed = 16 * exponential(draw(1, DOUBLE, q, 7))
    assert [f.task for f in fault_on(o, q, live={1: 1000 * needed - 1})] == [0]


def test_accesses_that_may_double():
    """Of other tasks, at random, live, to the same area."""
    o = remote(
        switches={"remap_after_migration": True}, access_task=[0, 1, 1, 1], access_vma=[0, 0, 0, 0],
        access_order=[RANDOM, SEQUENTIAL, RANDOM, RANDOM], access_rate=[0] * 4, access_write=[0] * 4,
        access_start=[0] * 4, access_from_ns=[0] * 4, access_until_ns=[2**62] * 4,
    )  # fmt: skip
    assert [f.task for f in fault_on(o, 1, live={0: OFTEN, 1: OFTEN})] == [0]
    assert [f.access for f in fault_on(o, 2, live={0: OFTEN, 1: OFTEN, 3: OFTEN})] == [0, 3]
    o = oracle("4.15", processes=2, threads=1, shared_region=True, home=1, switches={"remap_after_migration": True})
    o.cpu = [0, 2]
    assert [f.task for f in fault_on(o)] == [0]  # another process has PTEs of its own


def test_which_access_doubles():
    """Weights of 1 to 2; from the draw, below a third or not."""
    chosen = set()
    for q in range(16):
        o = oracle("4.15", threads=3, cpus=3, home=1, switches={"remap_after_migration": True})
        o.cpu = [0, 3, 4]
        at = (draw(1, DOUBLER, q, 0) >> 44) / 2**20
        expected = 1 if at < 1 / 3 else 2
        assert [f.task for f in fault_on(o, q, live={0: OFTEN, 1: OFTEN, 2: 2 * OFTEN})] == [0, expected]
        chosen.add(expected)
    assert chosen == {1, 2}


def one_working_cpu(tick_us=4, params=None, **rest):
    """As two(), in a guest on one CPU; a turn of some us."""
    return two(params={"shared_cpus": 1000, "tick_us": tick_us, **(params or {})}, **rest)


def test_the_chance_to_come_by_in_a_turn():
    """A turn of 3 us makes W three times the rate; it ends for sure, and has no weight of its own."""
    assert TURN == 15
    for q in range(16):
        needed = 16 * exponential(draw(1, DOUBLE, q, 0))
        for rate in (needed // 3 - 1, needed // 3, needed // 3 + 1):
            o = one_working_cpu(3, {"isolate_ns": 9000})
            met = [0, 1] if 3 * rate >= needed else [0]
            assert [f.task for f in fault_on(o, q, live={0: OFTEN**2, 1: rate})] == met


def test_a_turn_must_end_meanwhile():
    """1200 ns of the 4000 of a turn, whatever the useful times."""
    ends = {q: draw(1, TURN, q, 0) % 4000 < 1200 for q in range(16)}
    assert set(ends.values()) == {True, False}
    for q, end in ends.items():
        for useful in ([0, 0], [2000, 0], [5, 10**6]):
            o = one_working_cpu()
            o.useful = list(useful)
            assert [f.task for f in fault_on(o, q)] == ([0, 1] if end else [0])
        at = draw(1, TURN, q, 0) % 4000  # when it ends
        assert [f.task for f in fault_on(one_working_cpu(params={"isolate_ns": at}), q)] == [0]
        assert [f.task for f in fault_on(one_working_cpu(params={"isolate_ns": at + 1}), q)] == [0, 1]
        assert [f.task for f in fault_on(one_working_cpu(params={"isolate_ns": 0}), q)] == [0]
        assert [f.task for f in fault_on(one_working_cpu(tick_us=1), q)] == [0, 1]  # sure to end
        o = one_working_cpu()
        o.i = 7  # anew in every step
        met = [0, 1] if draw(1, TURN, q, 7) % 4000 < 1200 else [0]
        assert [f.task for f in fault_on(o, q)] == met
        # not just one CPU: as without
        for shared in (0, 999, 1001):
            assert [f.task for f in fault_on(one_working_cpu(params={"shared_cpus": shared}), q)] == [0, 1]


@pytest.mark.parametrize(("kind", "pages", "isolated"), [(BASE, 4, 4800), (HUGE, 512, 1200), (FOLIO, 16, 1200)])
def test_a_turn_may_end_with_every_page_taken_off(kind, pages, isolated):
    """Of 12000 ns; the 4 base pages are isolated one by one, whatever the double fault is on."""
    chances = [draw(1, TURN, q, 0) % 12_000 for q in range(16)]
    assert 1200 <= sorted(chances)[3] < 4800  # neither never nor always
    for q, chance in enumerate(chances):
        o = one_working_cpu(12, kernel="6.18", block_pages=pages, kind=kind)
        assert [f.task for f in fault_on(o, q)] == ([0, 1] if chance < isolated else [0])


def test_which_access_comes_by_in_a_turn():
    """Rates of 1 to 2; from the draw, below a third or not."""
    chosen = set()
    for q in range(16):
        params = {"shared_cpus": 1000, "tick_us": 1, "isolate_ns": 1000}
        o = oracle("4.15", params, threads=3, cpus=3, home=1, switches={"remap_after_migration": True})
        o.cpu = [0, 3, 4]
        expected = 1 if (draw(1, DOUBLER, q, 0) >> 44) / 2**20 < 1 / 3 else 2
        assert [f.task for f in fault_on(o, q, live={0: OFTEN, 1: OFTEN, 2: 2 * OFTEN})] == [0, expected]
        chosen.add(expected)
    assert chosen == {1, 2}


def finds(o, *found):
    """Both tasks come upon the blocks; nobody touches any at random."""
    trap(o, sorted({q for _, q in found}))
    return [(f.task, f.q, f.migrated) for f in faults.handle(o, list(found), {})]


def test_later_finders_meet_the_page_in_passing():
    """A migration takes 1200 + 1500 + 300 + 600 with the fault; 1200 until the page is isolated."""
    meets = {q: draw(1, DOUBLER, q, 0) % 3600 < 1200 for q in range(16)}
    for q, met in meets.items():
        o = two()
        assert finds(o, (0, q), (1, q)) == [(0, q, True), *([(1, q, False)] if met else [])]
        assert o.debt_ns == [0, 1200]  # for finding it; the fault is charged later
        assert o.counters["numa_hint_faults"] == 1 + met
        assert finds(two(switches={"remap_after_migration": False}), (0, q), (1, q)) == [(0, q, True)]
    yes, no = (next(q for q, met in meets.items() if met is wanted) for wanted in (True, False))
    other = next(q for q, met in meets.items() if met and q != yes)
    # a task tries the first page that moves, no other
    assert finds(two(), (0, no), (0, yes), (1, no), (1, yes)) == [(0, no, True), (0, yes, True)]
    assert finds(two(), (0, yes), (0, other), (1, yes), (1, other)) == [
        (0, yes, True), (0, other, True), (1, yes, False),
    ]  # fmt: skip
    o = two()
    o.node[no] = 0  # this does not move
    assert finds(o, (0, no), (0, yes), (1, no), (1, yes)) == [(0, no, False), (0, yes, True), (1, yes, False)]
    assert finds(two(), (0, yes), (0, yes)) == [(0, yes, True)]  # nobody meets his own
    # every task tries one: 2 before 1 in the list
    o = oracle("4.15", threads=3, cpus=3, home=1, switches={"remap_after_migration": True})
    o.cpu = [0, 3, 1]
    assert finds(o, (0, yes), (1, yes), (2, yes)) == [(0, yes, True), (1, yes, False), (2, yes, False)]


def test_the_chance_to_meet_a_page_in_passing():
    """4 pages mapped once: 4*(1200 + 1500 + 300) + 4*600 = 14400, 4*isolate_ns of them; huge: 310200."""
    assert [f[0] for f in finds(two(params={"isolate_ns": 0}), (0, 1), (1, 1))] == [0]
    free = dict.fromkeys(("migrate_ns", "unmap_ns", "copy_page_ns"), 0)
    for q in range(16):
        met = [0, 1] if draw(1, DOUBLER, q, 0) % 14_400 < 4800 else [0]
        assert [f[0] for f in finds(two(block_pages=4), (0, q), (1, q))] == met
        met = [0, 1] if draw(1, DOUBLER, q, 0) % 310_200 < 1200 else [0]
        assert [f[0] for f in finds(two(block_pages=512, kind=HUGE), (0, q), (1, q))] == met
        assert [f[0] for f in finds(two(params=free), (0, q), (1, q))] == [0, 1]
        met = [0, 1] if draw(1, DOUBLER, q, 0) % 3600 < 2500 else [0]
        for shared in (0, 1000):  # turns are asked about at random only
            o = two(params={"isolate_ns": 2500, "shared_cpus": shared})
            assert [f[0] for f in finds(o, (0, q), (1, q))] == met


def test_random_meetings_come_before_those_in_passing():
    free = dict.fromkeys(("migrate_ns", "unmap_ns", "copy_page_ns"), 0)
    o = two(params=free)
    trap(o, [3, 7])
    o.region_pages = [2**70]  # nothing at random, whatever the rate, but block 7
    q_pages = exponential(draw(1, DOUBLE, 7, 0)) * 2**70
    other = exponential(draw(1, DOUBLE, 3, 0)) * 2**70
    live = {1: 1000 * min(q_pages, other) // 1200 + 1000}
    first, second = (7, 3) if q_pages < other else (3, 7)
    # the block met at random is faulted on second, the other is met in passing first
    listed = faults.handle(o, [(0, second), (0, first), (1, second)], live)
    assert [(f.task, f.q) for f in listed] == [(0, second), (0, first), (1, first), (1, second)]


def test_double_faults_come_first():
    """Blocks 2 and 9 of task 1, block 5 of task 0; each is touched by the other."""
    o = two(cpus=(0, 4))
    trap(o, [2, 5, 9])
    listed = faults.handle(o, [(0, 5), (1, 2), (1, 9)], {0: OFTEN, 1: OFTEN})
    assert [(f.task, f.q, f.migrated) for f in listed] == [
        (0, 2, False), (0, 9, False), (0, 5, True), (1, 5, False), (1, 2, True), (1, 9, True),
    ]  # fmt: skip
    faults.charge(o, listed, {})
    assert o.moving == [5, 9]


def test_what_a_double_fault_takes_from_the_first():
    o = two("5.7", cpus=(0, 1), vma_pte_write=[False], switches={"failed_migration_drops_write": True})
    o.lay.access_write = [1000, 1000]  # the first makes the PTE writable
    f, double = fault_on(o)
    assert (f.no_group, double.no_group, double.failed) == (True, True, True)
    assert o.pte_write[3]  # neither written nor dropped by the second
    assert (f.wp_ns, double.wp_ns, o.counters["minor_faults"]) == (700, 0, 3)
    o = two("6.18")
    fault_on(o)
    assert o.pids1 == [faults.pid_bit(o, 0) | faults.pid_bit(o, 1)]


def test_what_double_faults_do_to_their_task():
    o = two("5.7", cpus=(0, 1), switches={"fail_slows": True})
    o.cur = [0, 1, *[-1] * 6]
    tasks.account(o, fault_on(o))
    assert o.locality[1] == [1, 0, 1]
    assert o.membuf[1][1] == [1, 0]  # shared, on the node the page was on
    assert o.cpubuf[1][0] == [1, 0]
    assert o.group == [-1, 1]  # it has met task 0, which has no group to join


# ---------------------------------------------------------------- the random cases
def test_random_cases_reach_double_faults_and_waiting_walks(monkeypatch):
    """Double faults of either kind, some failed, turns, and walks that fault on pages elsewhere under dear flushes."""
    seen = {name: set() for name in ("doubled", "failed", "passing", "turn ended", "turn went on", "walked")}  # seeds
    double_fault, passing, afforded = faults.double_fault, faults.passing_meetings, touch.afforded
    ends = faults.turn_ends

    def counted_double(o, *rest):
        f = double_fault(o, *rest)
        seen["doubled"].add(o.seed)
        if f.failed:
            seen["failed"].add(o.seed)
        return f

    def counted_meetings(o, late):
        meetings = passing(o, late)
        if meetings:
            seen["passing"].add(o.seed)
        return meetings

    def counted_turns(o, f):
        ended = ends(o, f)
        seen["turn ended" if ended else "turn went on"].add(o.seed)
        return ended

    def counted_walk(o, a, visit, budget):
        estimates, carry = afforded(o, a, visit, budget)
        local = o.par.hint_fault_ns * touch.faults_of_block(o, o.lay.vma_region[o.lay.access_vma[a]])
        if o.par.ipi_wait_ns and o.par.unmap_ns and any(est > local for est in estimates):
            seen["walked"].add(o.seed)
        return estimates, carry

    monkeypatch.setattr(faults, "double_fault", counted_double)
    monkeypatch.setattr(faults, "passing_meetings", counted_meetings)
    monkeypatch.setattr(faults, "turn_ends", counted_turns)
    monkeypatch.setattr(touch, "afforded", counted_walk)
    for seed in range(240):
        rng = random.Random(seed)
        layout, kernel, params = random_layout(rng), random_kernel(rng), random_params(rng)
        o = Oracle(layout, kernel, params, seed)
        for _ in range(150):
            o.step()
    assert len(seen["doubled"]) >= 8, seen
    assert len(seen["passing"]) >= 2, seen
    assert len(seen["failed"]) >= 2, seen
    assert len(seen["turn ended"]) >= 3, seen
    assert len(seen["turn went on"]) >= 3, seen
    assert len(seen["walked"]) >= 5, seen
