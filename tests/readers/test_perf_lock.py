"""Reader of perf lock.

All was printed by perf, in public mails: contention.txt <20220729200756.666106-1-namhyung@kernel.org>, stack.txt
Namhyung Kim on ``perf lock con --output`` (June 2023), report.txt the lru_lock series of Alex Shi (2020).
"""

from functools import partial

import pytest

from numalab.readers import formats, perf_lock
from tests.readers.helpers import golden, refuses


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


def test_a_quoted_mail_reads_the_same():
    for name in ("contention.txt", "stack.txt", "report.txt"):
        text = golden("perf_lock", name)
        quoted = "".join(f"> {line}\r\n" for line in text.splitlines())
        assert perf_lock.looks_like_lock(quoted)
        assert perf_lock.parse_lock(quoted).waits == perf_lock.parse_lock(text).waits


def test_what_is_wrong():
    lock = partial(refuses, perf_lock.parse_lock)
    lock("nothing\n", 0, "no table of perf lock")
    lock(golden("perf_lock", "stack.txt").split("\n")[0] + "\n", 0, "has no line", "cut off")


def test_a_number_too_many():
    """A time without a unit beside one that has one would be nanoseconds."""
    text = golden("perf_lock", "contention.txt").replace("192.67 us", "192.67 7 us")
    (skip,) = perf_lock.parse_lock(text).skipped
    assert "192.67 7 us" in skip.text
