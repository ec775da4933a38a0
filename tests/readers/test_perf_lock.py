"""Reader of perf lock and perf report.

perf_report/policy.txt is made by hand in perf's form. The rest was printed by perf, in public mails: contention.txt
<20220729200756.666106-1-namhyung@kernel.org>, stack.txt Namhyung Kim on ``perf lock con --output`` (June 2023),
report.txt the lru_lock series of Alex Shi (2020), flat.txt a report of a slow router (2021), cut short; ipi.txt Dave
Chinner on xfs_repair (March 2015).
"""

from functools import partial

import numpy as np
import pytest

from numalab.readers import formats, perf_lock
from tests.readers.helpers import golden, refuses


def report(name):
    return perf_lock.parse_report(golden("perf_report", name))


def test_contention():
    found = perf_lock.parse_lock(golden("perf_lock", "contention.txt"))
    assert len(found.waits) == 10
    assert found.skipped == []
    first, rwlock = found.waits[0], found.waits[5]
    assert (first.contended, first.kind, first.name, first.acquired) == (42, "spinlock", "queue_work_on+0x20", None)
    assert first.total_s == pytest.approx(192.67e-6)
    assert first.longest_s == pytest.approx(13.64e-6)
    assert rwlock.kind == "rwlock:W"
    assert not any(wait.is_lookup for wait in found.waits)


def test_a_stack_belongs_to_the_line_above():
    (wait,) = perf_lock.parse_lock(golden("perf_lock", "stack.txt")).waits
    assert wait.stack[0] == "_raw_read_lock_irqsave"
    assert wait.stack[-1] == "sock_sendmsg"
    assert len(wait.stack) == 7


def test_report_by_lock_in_nanoseconds():
    found = perf_lock.parse_lock(golden("perf_lock", "report.txt"))
    lru = found.waits[1]
    assert (lru.acquired, lru.contended) == (9, 7)
    assert lru.total_s == pytest.approx(89096e-9)
    assert lru.longest_s == pytest.approx(26656e-9)


def test_the_look_up_is_found_as_caller_and_in_a_stack():
    line = "  7  1.50 ms  1.00 ms  214.29 us  spinlock   {}+0x1f\n"
    head = " contended   total wait     max wait     avg wait         type   caller\n\n"
    caller = head + line.format("mpol_shared_policy_lookup") + line.format("other")
    stack = head + line.format("_raw_spin_lock") + "      0xffffffff99bbd4dd  mpol_shared_policy_lookup+0x1f\n"
    for text in (caller, stack):
        ds = formats.read(text, "x").dataset()
        assert ds.lock_waits.values.tolist() == [7]
        assert ds.lock_total_wait_s.values == pytest.approx([1.5e-3])


def test_chains_of_relative_percentages():
    """The screen of perf: 97.28 % of the line's 52.69 %, then 99.59 % of that."""
    (symbol,) = report("ipi.txt").symbols
    assert (symbol.children, symbol.own, symbol.name) == (52.69, 52.69, "default_send_IPI_mask_sequence_phys")
    assert symbol.lookup_share() == 0
    through = {"migrate_misplaced_page": 0.9728, "do_async_page_fault": 0.9728 * 0.9959, "physflat_send_IPI_mask": 1}
    for name, share in through.items():
        chain = [(c, p, "mpol_shared_policy_lookup" if n == name else n) for c, p, n in symbol.chain]
        changed = perf_lock.Symbol(1, 52.69, 52.69, symbol.name, chain)
        assert changed.lookup_share() == pytest.approx(share)


def test_chains_of_absolute_percentages():
    """By hand: 92.00 of the lock's 92.40 % come from the look-up, whose own line says 93.10 % with its callees."""
    found = report("policy.txt")
    assert found.area_share() == pytest.approx(0.931)
    assert found.waiting_share() == pytest.approx(0.92)
    assert found.spinning_share() == pytest.approx(0.924)
    ds = formats.read(golden("perf_report", "policy.txt"), "policy.txt").dataset()
    assert ds.lock_area_share.values == pytest.approx([0.931])
    assert ds.lock_waiting_share.values == pytest.approx([0.92])


def test_without_a_children_column_the_parts_are_added():
    text = """
     1.10%  gamess  [kernel.kallsyms]  [k] mpol_shared_policy_lookup
    92.40%  gamess  [kernel.kallsyms]  [k] _raw_spin_lock
            |--99.57%-- mpol_shared_policy_lookup
            |          shmem_get_policy
             --0.43%-- handle_mm_fault
"""
    found = perf_lock.parse_report(text)
    assert found.waiting_share() == pytest.approx(0.924 * 0.9957)
    assert found.area_share() == pytest.approx(0.011 + 0.924 * 0.9957)


def test_without_chains_the_share_is_not_known():
    found = report("flat.txt")
    assert len(found.symbols) == 8
    assert found.spinning_share() == pytest.approx(0.0173)
    assert found.waiting_share() is None
    assert found.area_share() is None
    reading = formats.read(golden("perf_report", "flat.txt"), "flat.txt")
    assert np.isnan(reading.dataset().lock_area_share.values).all()
    assert any("perf record -g" in found.what for found in reading.understood)


def test_no_spinning_at_all_is_zero():
    found = perf_lock.parse_report("    60.00%  a  [kernel]  [k] clear_page\n")
    assert (found.area_share(), found.waiting_share()) == (0, 0)


def test_headers_are_named_as_skipped():
    assert [skip.line for skip in report("policy.txt").skipped] == list(range(1, 9))


def test_what_is_wrong():
    lock, symbols = partial(refuses, perf_lock.parse_lock), partial(refuses, perf_lock.parse_report)
    lock("nothing\n", 0, "no table of perf lock")
    lock(golden("perf_lock", "stack.txt").split("\n")[0] + "\n", 0, "has no line", "cut off")
    symbols("nothing\n", 0, "no symbol of perf report")
