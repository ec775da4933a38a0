"""The time of a scan window against values worked out by hand: it may last several steps (4.3 and 4.4)."""

from __future__ import annotations

import pytest

from tests.reference import draws, scan
from tests.reference.helpers import first_step_with, oracle, run

MS = 10**6


def alone(kernel="4.15", params=None, **rest):
    """One task on node 0, 16 pages on node 1; a page looked at and marked costs 5 + 60."""
    o = oracle(kernel, {"fork_spread": 0, **(params or {})}, threads=1, home=1, rate=1, **rest)
    assert o.cpu == [0]  # local pages of a single task are not marked
    return o


def begin(o, *tasks):
    for t in tasks or (0,):
        o.window[t], o.scan_ns[t] = scan.Window(o, t), 0


def go_on(o, *useful):
    """Let the tasks scan in this order, each for its time; whether their windows are finished."""
    o.useful = list(useful)
    for t in range(len(useful)):
        if o.useful[t] > 0 and o.window[t] is not None:
            scan.work(o, t)
    return [window is None for window in o.window[: len(useful)]]


# ---------------------------------------------------------------- 4.3
@pytest.mark.parametrize(
    ("useful", "marked", "finished"),
    [
        (1, 1, False),
        (65, 1, False),
        (66, 2, False),
        (195, 3, False),
        (975, 15, False),
        (976, 16, True),
        (5000, 16, True),
    ],
)
def test_a_window_goes_on_while_there_is_time(useful, marked, finished):
    """65, 130, 195, ..., 975, 1040 after 1, 2, 3, ..., 15, 16 pages; after the last of them the end costs nothing."""
    o = alone()
    begin(o)
    assert go_on(o, useful) == [finished]
    assert o.counters["numa_pte_updates"] == marked
    spent = 65 * marked
    paid = min(spent, useful)
    assert (o.sys_ns, o.useful, o.debt_ns, o.scan_ns) == ([paid], [useful - paid], [spent - paid], [spent])
    assert (o.seq, o.offset) == ([int(finished)], [0])


def test_a_window_of_nothing_ends_at_once():
    o = alone(vma_mof=[False])
    begin(o)
    assert go_on(o, 1) == [True]
    assert (o.seq, o.sys_ns, o.useful, o.scan_ns) == ([1], [0], [1], [0])


def test_free_pages_need_no_time():
    o = alone(params={"pte_scan_ns": 0, "pte_update_ns": 0})
    begin(o)
    assert go_on(o, 1) == [True]
    assert (o.counters["numa_pte_updates"], o.useful) == (16, [1])


def test_a_huge_page_costs_as_one():
    o = alone(block_pages=512)  # small pages in blocks of 512: each costs 512*65 = 33280
    begin(o)
    assert go_on(o, 33_281) == [False]
    assert (o.sys_ns, o.debt_ns, o.counters["numa_pte_updates"]) == ([33_281], [33_279], 1024)
    o = alone(kind=1, block_pages=512)
    begin(o)
    assert go_on(o, 66) == [False]
    assert (o.sys_ns, o.debt_ns, o.counters["numa_pte_updates"]) == ([66], [64], 1024)


def test_what_is_looked_at_only_costs_less():
    o = alone()
    o.trapped[1] = o.trapped[2] = True
    begin(o)
    assert go_on(o, 140) == [False]  # 65, 70, 75, 140
    assert o.sys_ns == [140]
    assert [q for q in range(16) if o.trapped[q]] == [0, 1, 2, 3]


def test_a_window_over_two_steps():
    """105000 a page: 10 pages take 1050000 of 1000000, the debt 50000 of the next step, 6 pages 630000 of the rest."""
    o = alone(params={"pte_scan_ns": 5000, "pte_update_ns": 100_000, "tick_us": 1000})
    begin(o)
    run(o, 1)
    assert (o.counters["numa_pte_updates"], o.sys_ns, o.debt_ns, o.useful, o.work) == (10, [MS], [50_000], [0], [0])
    assert (o.scan_ns, o.stamp_ns, o.seq) == ([1_050_000], [0], [0])
    run(o, 1)
    assert (o.counters["numa_pte_updates"], o.sys_ns, o.debt_ns) == (16, [1_680_000], [0])
    assert (o.useful, o.work, o.run_ns) == ([320_000], [320_000], [2 * MS])  # a page a second
    assert (o.scan_ns, o.stamp_ns, o.seq) == ([1_680_000], [32 * MS], [1])  # a whole tick


def test_a_window_rests_while_its_task_does_not_run():
    """Two tasks of a CPU take turns; 300000 a page, 4 pages (0, 300000, 600000, 900000) in a step."""
    o = oracle(
        "4.15", nodes=1, cpus=1, threads=2, home=0, rate=0,
        params={"slice_us": 1000, "pte_scan_ns": 0, "pte_update_ns": 300_000},
    )  # fmt: skip
    o.lay.access_until_ns = [0, 0]
    begin(o, 0)
    marked = []
    for _ in range(4):
        run(o, 1)
        marked.append((o.cur[0], o.counters["numa_pte_updates"]))
    # 200000 of debt in its second turn: 300000, 600000, 900000 of 800000
    assert marked in ([(0, 4), (1, 4), (0, 7), (1, 7)], [(1, 0), (0, 4), (1, 4), (0, 7)])


def test_a_window_in_a_guest():
    """Power 300: 260 of work take 866 ns, 780 take 2600."""
    o = alone()
    o.power = 300
    begin(o)
    assert go_on(o, 200) == [False]
    assert (o.sys_ns, o.useful, o.debt_ns, o.scan_ns) == ([666], [0], [60], [866])
    assert go_on(o, 1000) == [True]
    assert (o.sys_ns, o.useful, o.debt_ns, o.scan_ns) == ([666 + 2600], [220], [60], [866 + 2600])
    o = alone()
    o.power = 0  # no work done, but a credit to spend
    begin(o)
    assert go_on(o, 66) == [False]
    assert (o.sys_ns, o.scan_ns, o.debt_ns) == ([66_000], [130_000], [64])


def test_the_stretch_counts_whole_ticks():
    for before, stretch in ((3_998_959, 0), (3_998_960, 128 * MS), (7_998_959, 128 * MS), (7_998_960, 256 * MS)):
        o = alone()
        begin(o)
        o.scan_ns[0], o.stamp_ns[0] = before, 7
        assert go_on(o, 975) == [False]
        assert o.stamp_ns[0] == 7  # only at the end
        assert go_on(o, 975) == [True]
        assert (o.scan_ns[0], o.stamp_ns[0]) == (before + 1040, 7 + stretch)
    o = alone(switches={"scan_overhead_stretch": False})
    begin(o)
    o.scan_ns[0], o.stamp_ns[0] = 10**9, 7
    assert go_on(o, 5000) == [True]
    assert o.stamp_ns[0] == 7


def test_ticks_of_a_scanning_task_do_nothing():
    """A page takes 30 ms, so 16 take 480; the task would be due every 2 ms."""
    o = alone(params={"pte_scan_ns": 30 * MS, "pte_update_ns": 0, "tick_us": 1000})
    o.period_ms[0] = o.next_scan_ms[0] = o.stamp_ns[0] = 1
    assert first_step_with(o, lambda o: o.window[0] is not None) == 2  # 2 ms run > 1 ns + 1 ms
    stamp = 1 + MS + 2 * MS
    # pages are looked at in step 2 (1 ms useful, 29 owed), then in the 30th after it and so on
    for page in range(1, 16):
        assert o.window[0].looked_at == page
        assert (o.stamp_ns[0], o.next_scan_ms[0], o.period_ms[0]) == (stamp, 3, 1)
        run(o, 30)
    assert (o.window[0], o.run_ns[0], o.scan_ns[0]) == (None, 452 * MS, 480 * MS)
    assert o.stamp_ns[0] == stamp + 32 * 480 * MS
    o.stamp_ns[0] = stamp
    assert first_step_with(o, lambda o: o.window[0] is not None) == 453  # not in the tick of the step it ended in


def test_ticks_do_nothing_with_balancing_off():
    """The task would be due in its second step; it works for all its time instead, 1 page a second."""
    for on, stamp, next_scan, marked in ((1, 1 + MS + 2 * MS, 3, 16), (0, 1, 1, 0)):
        o = alone(params={"numa_balancing": on, "tick_us": 1000})
        o.period_ms[0] = o.next_scan_ms[0] = o.stamp_ns[0] = 1
        run(o, 2)
        assert (o.stamp_ns[0], o.next_scan_ms[0], o.period_ms[0]) == (stamp, next_scan, 1)
        assert (o.counters["numa_pte_updates"], o.pending[0], o.seq[0]) == (marked, marked, on)
        assert (o.run_ns[0], o.sys_ns[0], o.work[0]) == (2 * MS, 65 * marked, 2 * MS - 65 * marked)
    run(o, 498)
    assert (o.stamp_ns[0], o.next_scan_ms[0], o.period_ms[0], o.window[0]) == (1, 1, 1, None)
    assert (o.run_ns[0], o.sys_ns[0], o.work[0], set(o.counters.values())) == (500 * MS, 0, 500 * MS, {0})


def test_a_window_begins_with_its_ticks_and_works_when_there_is_time():
    """The wait for the lock and the debt come first; nothing of the window is read before."""
    o = alone("6.1", params={"mmap_busy": 1000, "mmap_wait_ns": 1_500_000, "tick_us": 1000})
    o.sw.mmap_lock = "wait"
    o.period_ms[0] = o.next_scan_ms[0] = o.stamp_ns[0] = 1
    o.debt_ns[0] = 2 * MS
    run(o, 2)
    assert (o.window[0] is not None, o.wait_ns[0], o.counters["numa_pte_updates"]) == (True, 1_500_000, 0)
    o.offset[0] = 520
    run(o, 1)
    assert (o.window[0] is not None, o.wait_ns[0], o.counters["numa_pte_updates"]) == (True, 500_000, 0)
    run(o, 1)
    assert (o.window[0], o.seq, [q for q in range(16) if o.trapped[q]]) == (None, [1], [*range(8, 16)])
    assert (o.sys_ns[0], o.useful[0]) == (2 * MS + 8 * 65, 500_000 - 8 * 65)


# ---------------------------------------------------------------- 4.3, flushes
def scanning_thread(kernel="4.15", wait=500, **rest):
    """Tasks 0 and 1 of a process of two areas of 16 pages run, 2 and 3 of a process without memory do not."""
    o = oracle(
        kernel, processes=2, threads=2, vma_process=[0, 0], vma_start=[512, 1024], nodes=1, cpus=4, home=0, rate=0,
        params={"flush_wait_ns": wait}, **rest,
    )  # fmt: skip
    o.cur = [0, 1, -1, -1]
    begin(o)
    return o


def test_a_window_rests_at_every_chunk_others_must_flush():
    o = scanning_thread()
    assert go_on(o, 10**4) == [False]
    assert (o.pending, o.useful, o.debt_ns[0], o.spin_ns[0], o.scan_ns[0]) == ([16, 0], [0], 0, 500, 1540)
    assert go_on(o, 10**4) == [False]  # the end of the window comes after the flush
    assert (o.pending, o.useful, o.spin_ns[0], o.scan_ns[0], o.seq[0]) == ([16, 16], [0], 1000, 3080, 0)
    assert go_on(o, 1) == [True]
    assert (o.useful, o.spin_ns[:2], o.scan_ns[0], o.seq[0]) == ([1], [1000, 0], 3080, 1)
    assert (o.sys_ns[0], o.wait_ns[0]) == (2080, 0)  # spins count when they are spun


@pytest.mark.parametrize("cur", [[0, -1, -1, -1], [0, 2, 3, -1]])
def test_nobody_else_has_to_flush(cur):
    o = scanning_thread()
    o.cur = cur
    assert go_on(o, 10**4) == [True]
    assert (o.pending, o.useful, o.spin_ns[0], o.scan_ns[0]) == ([16, 16], [10**4 - 2080], 0, 2080)


def test_flushes_that_take_no_time():
    o = scanning_thread(wait=0)
    assert go_on(o, 10**4) == [True]
    assert (o.useful, o.spin_ns[0]) == ([10**4 - 2080], 0)


def test_what_was_not_marked_needs_no_flush():
    o = scanning_thread()
    o.trapped[:16] = [True] * 16
    assert go_on(o, 10**4) == [False]  # 80 for the first area, 1040 and a flush for the second
    assert (o.pending, o.sys_ns[0], o.spin_ns[0]) == ([0, 16], 1120, 500)


def test_what_was_marked_in_an_earlier_step_is_flushed():
    o = scanning_thread()
    o.trapped[1:16] = [True] * 15
    assert go_on(o, 65) == [False]
    assert (o.pending, o.spin_ns[0]) == ([1, 0], 0)
    assert go_on(o, 10**4) == [False]
    assert (o.pending, o.sys_ns[0], o.spin_ns[0]) == ([1, 0], 65 + 75, 500)


@pytest.mark.parametrize(("useful", "debt"), [(1040, 0), (1000, 40)])
def test_a_flush_after_the_block_that_used_up_the_time(useful, debt):
    o = scanning_thread()
    assert go_on(o, useful) == [False]
    assert (o.sys_ns[0], o.debt_ns[0], o.useful, o.spin_ns[0]) == (useful, debt, [0], 500)


def test_a_shared_page_that_cuts_an_area_after_marking():
    """A cut ends the chunk as well: pages of the first area, of the process's own, were marked and are flushed."""
    o = scanning_thread("4.19", vma_cow=[False, True], switches={"cow_skip_rest_of_vma": True, "cow_max_mappers": 1})
    o.mapcount[1] = 2
    assert go_on(o, 10**4) == [False]
    assert go_on(o, 10**4) == [True]  # the page that cuts the second is looked at, nothing is marked
    assert (o.pending, o.sys_ns[0], o.spin_ns[0]) == ([16, 0], 1045, 500)


def test_the_stretch_counts_flushes():
    o = scanning_thread(wait=2 * MS)
    for _ in range(3):
        go_on(o, 10**4)
    assert (o.window[0], o.scan_ns[0], o.stamp_ns[0]) == (None, 4 * MS + 2080, 32 * 4 * MS)


def test_flushes_in_steps():
    """Each area takes 1040 and a flush of 1.5 ms, spun in the two steps after it."""
    o = scanning_thread(wait=1_500_000)
    begin(o)
    run(o, 1)
    assert (o.pending, o.useful[:2], o.spin_ns[0], o.sys_ns[0]) == ([16, 0], [0, MS], 1_500_000, 1040)
    run(o, 1)
    assert (o.pending, o.useful[:2], o.spin_ns[0], o.sys_ns[0]) == ([16, 0], [0, MS], 500_000, MS + 1040)
    run(o, 1)  # half of it left for the second area
    assert (o.pending, o.useful[0], o.spin_ns[0], o.sys_ns[0]) == ([16, 16], 0, 1_500_000, 1_500_000 + 2080)
    run(o, 2)
    assert (o.window[0], o.useful[0], o.spin_ns[0], o.sys_ns[0]) == (None, 500_000, 0, 3 * MS + 2080)
    assert o.run_ns[:2] == [5 * MS] * 2


# ---------------------------------------------------------------- 4.4
def test_a_hole_is_free():
    """16 pages behind 520: the first chunk ends at 1024, before them."""
    o = alone(vma_hole=[520], vma_pages=[536], switches={"scan_size_mb": 1})
    assert (o.rss, scan.windows(o, 0)) == ([16], 1)
    begin(o)
    assert go_on(o, 10**4) == [True]
    assert (o.pending, o.sys_ns, o.offset, o.seq) == ([16], [1040], [0], [1])  # 256 - 24 pages left at the end
    assert o.threshold[3] == draws.exponential(draws.draw(1, draws.MARK, 3, 0)) * 16


@pytest.mark.parametrize(("kind", "k", "hole", "marked"), [(0, 4, 508, 15), (0, 4, 507, 14), (2, 16, 480, 14)])
def test_blocks_lie_behind_the_hole(kind, k, hole, marked):
    """Blocks start at 512 + hole; the first at or after page 1024 is 4 / 4 = 1, 5 / 4 rounded up = 2, 32 / 16 = 2."""
    o = alone(kind=kind, block_pages=k, vma_hole=[hole], vma_pages=[hole + 16 * k])
    o.offset = [1024]
    begin(o)
    assert go_on(o, MS) == [True]
    assert [q for q in range(16) if o.trapped[q]] == [*range(16 - marked, 16)]


def test_a_hole_takes_of_the_virtual_budget():
    """8 * 256 pages of 3000 in the first window, four chunks of 512; the blocks, at 3512, in the second,
    where the rest of the hole in their chunk, from 3072, uses up what may be marked."""
    o = alone("6.1", vma_hole=[3000], vma_pages=[3016], switches={"scan_size_mb": 1})
    assert o.sw.virtual_scan_budget
    begin(o)
    assert go_on(o, 1) == [True]
    assert (o.offset, o.pending, o.seq) == ([2560], [0], [0])
    begin(o)
    assert go_on(o, MS) == [True]
    assert (o.offset, o.pending, o.seq) == ([3528], [16], [0])


def test_a_window_starts_where_the_one_before_it_in_the_step_stopped():
    """Both begin at their ticks, before either works."""
    o = oracle("4.15", threads=2, cpus=1, blocks=1024, rate=0, switches={"scan_size_mb": 2})  # 512 pages
    o.i, o.cur, o.useful = 8, [0, 1], [MS, MS]
    o.cpu_phase, o.run_ns, o.now_ms = [0, 0], [10**9, 10**9], 9
    o.period_ms, o.stamp_ns, o.next_scan_ms = [1, 1], [1, 1], [1]
    scan.scans(o)
    # the second task finds next_scan_ms = 9 + 1 already set
    assert (o.offset, o.seq, o.counters["numa_pte_updates"]) == ([1024], [0], 512)
    o.offset, o.next_scan_ms, o.useful, o.trapped = [0], [1], [MS, MS], [False] * 1024
    begin(o, 1)
    o.now_ms, o.run_ns = 10, [2 * 10**9] * 2
    scan.scans(o)
    assert (o.window, o.offset, o.counters["numa_pte_updates"]) == ([None, None], [1536], 512 + 1024)
    assert o.useful == [MS - 512 * 65] * 2


def test_windows_of_two_tasks_side_by_side():
    """8 pages, 100 each and 900 to mark."""
    o = oracle("4.15", threads=2, nodes=1, home=0, blocks=8, rate=0, params={"pte_scan_ns": 100, "pte_update_ns": 900})
    begin(o, 0, 1)
    # 0: pages 0, 1, 2 (1000, 2000, 3000); 1: looks at those (300), marks 3 and 4 (1300, 2300)
    assert go_on(o, 2500, 1500) == [False, False]
    assert (o.pending, o.debt_ns, o.seq) == ([5], [500, 800], [0])
    # 0: looks at 3 and 4 (200), marks 5, 6, 7 (1200, 2200, 3200) and ends; 1: looks at 5, 6, 7
    assert go_on(o, 2500, 1500) == [True, True]
    assert (o.pending, o.debt_ns, o.useful, o.seq) == ([8], [1200, 800], [0, 1200], [2])
    assert o.scan_ns == [6200, 2600]


def test_the_node_of_the_task_is_that_of_now():
    """From 6.1 on the local pages of a single task are left alone; here it follows its memory in the middle."""
    o = alone("6.1")
    begin(o)
    assert go_on(o, 200) == [False]
    o.cpu[0] = 2
    assert go_on(o, 200) == [True]
    assert (o.pending, o.sys_ns) == ([4], [200 + 12 * 5])


def test_pages_get_their_thresholds_when_they_are_marked():
    o = alone()
    begin(o)
    o.i, o.intensity[0] = 7, 1000
    go_on(o, 1)
    o.i, o.intensity[0] = 9, 5000
    go_on(o, 1)
    first, second = (draws.exponential(draws.draw(1, draws.MARK, q, i)) for q, i in ((0, 7), (1, 9)))
    assert o.threshold[:3] == [1000 + first * 16, 5000 + second * 16, 0]


def two_areas(kernel, **rest):
    """Both areas of 16 pages belong to the first process, the second has none."""
    o = oracle(
        kernel, processes=2, threads=1, vma_process=[0, 0], vma_start=[512, 1024], home=1, rate=0,
        params={"fork_spread": 0}, **rest,
    )  # fmt: skip
    assert o.node_of(0) == 0
    return o


def test_filters_are_asked_when_the_window_gets_there():
    """Before 500 ms the second area is too new."""
    for later, marked in ((400, [16, 0]), (600, [16, 16])):
        o = two_areas("6.5")
        o.seq, o.vma_next_ms, o.now_ms = [1, 0], [0, 500], 400
        begin(o)
        assert go_on(o, 200) == [False]
        o.now_ms = later
        assert go_on(o, 10**4) == [True]
        assert (o.pending, o.seq[0]) == (marked, 2)


def test_a_window_that_ends_in_the_middle_of_the_list():
    """No time is left after the last page of the first area: skipping the second is free, looking at it is not."""
    for kernel, ended in (("6.5", True), ("4.15", False)):
        o = two_areas(kernel)
        o.seq, o.vma_next_ms, o.now_ms = [1, 0], [0, 500], 400
        begin(o)
        assert go_on(o, 16 * 65) == [ended]
        assert o.seq[0] == (2 if ended else 1)


def test_a_forced_window_over_several_steps():
    o = alone("6.18")
    o.seq, o.now_ms, o.prev_seq = [2], 2000, [1]
    begin(o)
    assert go_on(o, 200) == [False]
    assert (o.window[0].forced, o.offset, o.prev_seq) == (True, [0], [1])
    assert go_on(o, 16 * 65) == [True]
    assert (o.offset, o.prev_seq, o.seq) == ([528], [2], [2])


def test_a_chunk_is_charged_to_the_budget_when_it_ends():
    """512 pages a window, the first 512 trapped in the meantime except what it marked itself."""
    o = oracle("4.15", threads=2, blocks=1024, rate=0, switches={"scan_size_mb": 2})
    begin(o)
    go_on(o, 66)  # 2 pages
    assert (o.window[0].pages, o.offset) == (512, [0])
    for q in range(512):
        o.trapped[q] = True
    assert go_on(o, MS, 0) == [True, True]
    assert (o.offset, o.debt_ns[0], o.sys_ns[0]) == ([1024], 64, 66 + 510 * 5)


def test_a_shared_page_that_cuts_an_area_is_looked_at():
    o = oracle(
        "4.19", processes=2, threads=1, shared_region=True, vma_shared=[False] * 2, vma_cow=[True] * 2, rate=0,
        switches={"cow_skip_rest_of_vma": True},
    )  # fmt: skip
    begin(o)
    assert go_on(o, 5) == [True]
    assert (o.sys_ns, o.useful, o.seq[0]) == ([5, 0], [0], 1)
