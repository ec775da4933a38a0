"""Reader of latency histograms.

task_numa_work.txt is from a public report that automatic NUMA balancing delays a communication library (DeepEP,
2026); interval.txt from the examples of bcc, whose unit of the mean is wrong; bpftrace.txt from a pull request of ZFS.
"""

import math

import pytest

from numalab.readers import funclatency
from numalab.readers.funclatency import parse
from tests.readers.helpers import GOLDEN, golden, refuses

WORK = golden("latency", "task_numa_work.txt")
FILES = sorted(path.name for path in (GOLDEN / "latency").iterdir())


def test_task_numa_work():
    (histogram,) = parse(WORK).histograms
    assert (histogram.function, histogram.unit, histogram.count, histogram.printed_count) == (
        "task_numa_work",
        "msecs",
        139,
        139,
    )
    assert [(b.low, b.high, b.count) for b in histogram.buckets] == [
        (0, 2, 72),
        (2, 4, 8),
        (4, 8, 0),
        (8, 16, 57),
        (16, 32, 2),
    ]
    assert histogram.mean_s() == pytest.approx(5e-3)
    # by hand: (8 x 2 + 57 x 8 + 2 x 16) / 139 and (72 x 2 + 8 x 4 + 57 x 16 + 2 x 32) / 139 ms
    assert histogram.mean_bounds() == pytest.approx((504 / 139, 1152 / 139))
    assert histogram.share_from(8e-3) == pytest.approx((59 / 139, 59 / 139))
    # between 8 and 16 ms nobody knows
    assert histogram.share_from(10e-3) == pytest.approx((2 / 139, 59 / 139))
    assert histogram.share_from(1.0) == (0, 0)


def test_intervals_and_a_mean_under_the_wrong_unit():
    report = parse(golden("latency", "interval.txt"))
    first, second = report.histograms
    assert (first.function, first.time, second.time) == ("vfs_read", "20:10:08", "20:10:13")
    assert (first.count, second.count) == (1521, 1282)
    # "avg = 5 nsecs" of a histogram in milliseconds
    assert (first.mean_s(), second.mean_s()) == pytest.approx((5e-3, 9e-3))
    assert (5, "vfs_read: the mean is in msecs, not nsecs as printed") in report.notes


def test_bpftrace():
    (histogram,) = parse(golden("latency", "bpftrace.txt")).histograms
    assert (histogram.function, histogram.unit, histogram.count) == ("dp_sync_taskq", "usecs", 95)
    assert (histogram.buckets[0].low, histogram.buckets[-1].high) == (4096, 8 * 2**20)
    # 4 M us and more
    assert histogram.share_from(4.194304) == pytest.approx((8 / 95, 8 / 95))


def test_single_values_and_a_unit_nobody_says():
    report = parse("@hist:\n[0]       3 |@@@@|\n[1]       4 |@@@@|\n[2, 4)    1 |@   |\n")
    (histogram,) = report.histograms
    assert [(b.low, b.high, b.count) for b in histogram.buckets] == [(0, 1, 3), (1, 2, 4), (2, 4, 1)]
    assert report.notes == [(1, "hist: the text does not say in what unit")]
    with pytest.raises(ValueError, match="unit of the histogram of hist is not known"):
        histogram.share_from(1)
    assert histogram.mean_s() is None


def test_histograms_of_several_functions():
    text = 'Tracing 2 functions for "/bin/x:*"... Hit Ctrl-C to end.\n^C\n'
    for name in ("is_prime", "insert"):
        text += f"\nFunction = {name} [6556]\n     nsecs : count     distribution\n    2048 -> 4095 : 5 |**|\n"
    assert [h.function for h in parse(text).histograms] == ["is_prime [6556]", "insert [6556]"]


def test_rows_that_are_missing_are_said():
    lines = WORK.splitlines(keepends=True)
    report = parse("".join(lines[:5] + lines[6:]))
    assert report.notes == [
        (6, "buckets are missing above this line; was the text cut?"),
        (4, "task_numa_work: 139 calls printed, 131 in the buckets; are rows missing?"),
    ]
    cut = parse("".join(lines[5:]))
    assert cut.histograms[0].unit == ""
    assert "no head above these buckets" in cut.notes[0][1]


def test_a_mean_that_cannot_be_is_not_used():
    report = parse(WORK.replace("avg = 5 msecs", "avg = 50 msecs"))
    assert report.histograms[0].mean_s() is None
    assert "the printed mean of 50 msecs lies in no bucket" in report.notes[0][1]


def test_tables():
    reading = funclatency.read(WORK, "x")
    assert reading.table("latency task_numa_work").rows[3] == (8, 16, 57)
    assert reading.table("latency").get("task_numa_work", "mean_s") == pytest.approx(5e-3)
    assert reading.table("latency").get("task_numa_work", "mean_at_most_s") == pytest.approx(1.152 / 139)
    with pytest.raises(ValueError, match="has nothing that a run has"):
        reading.dataset()


def test_an_empty_histogram_has_no_share():
    (histogram,) = parse("     msecs : count distribution\n 0 -> 1 : 0 |    |\n").histograms
    assert all(map(math.isnan, histogram.share_from(1e-3)))


@pytest.mark.parametrize("name", FILES)
def test_what_mail_does_changes_no_number(name):
    text = golden("latency", name)
    expected = [(h.function, h.unit, h.time, h.buckets) for h in parse(text).histograms]
    for changed in ("".join(f"> {line}\n" for line in text.splitlines()), text.replace("\n", "\r\n")):
        assert funclatency.looks_like(changed)
        assert [(h.function, h.unit, h.time, h.buckets) for h in parse(changed).histograms] == expected


def test_what_is_none():
    refuses(parse, "hello\n", 0, "holds no row of a histogram of latency")
    assert not funclatency.looks_like("8 -> 15\n")
