"""Reader of counts of sched_skip_vma_numa by reason; the real ones are among the field cases (test_tool_cases)."""

import pytest

from numalab.readers import skip_reasons
from numalab.readers.skip_reasons import parse
from tests.readers.helpers import golden, refuses

CASE = golden("cases", "047-numab-skip-vma-reasons", "input.txt")


def test_counters_of_both_kernels():
    reading = skip_reasons.read(CASE, "x")
    assert reading.table("skips by reason").get("pid_inactive", "6.6.0-rc2-sched-numabselective-v1") == 41939
    assert reading.table("skips by reason").get("seq_completed", "6.6.0-rc2-sched-numabtrace-v1") is None
    ds = reading.dataset()
    assert ds.kernel.values.tolist() == ["6.6.0-rc2-sched-numabtrace-v1", "6.6.0-rc2-sched-numabselective-v1"]
    found = ds.counters.isel(time=0).sel(counter="sched_skip_vma_numa.pid_inactive")
    assert found.values.tolist() == [193050, 41939]
    assert [found.what for found in reading.guessed] == ["a reason without a count in one group counts as 0 in the run"]


def test_the_other_lines_are_named():
    assert [skip.line for skip in parse(CASE).skipped] == [*range(20, 27), *range(28, 33), *range(33, 42)]


def test_bpftrace_and_histogram_triggers():
    (group,) = parse("Attaching 1 probe...\n@[pid_inactive]: 193050\n@[shared_ro]: 48915\n").groups
    assert group.counts == {"pid_inactive": 193050, "shared_ro": 48915}
    text = (
        "# event histogram\n#\n\n{ reason:          4 } hitcount:     193050\n{ reason:          0 } hitcount: 9094\n"
    )
    (group,) = parse(text + "\nTotals:\n    Hits: 202144\n    Entries: 2\n    Dropped: 0\n").groups
    assert group.counts == {"pid_inactive": 193050, "unsuitable": 9094}


def test_counts_of_whole_events():
    """As `cut` of a trace may leave more of the line."""
    (group,) = parse(
        "    5 sched_skip_vma_numa: reason=pid_inactive\n    7 sched_skip_vma_numa: reason=shared_ro\n"
    ).groups
    assert group.counts == {"pid_inactive": 5, "shared_ro": 7}


def test_a_reason_again_begins_a_group():
    first, second = parse("before\n 5 reason=shared_ro\n\n 6 reason=shared_ro\n").groups
    assert (first.title, first.counts, second.title, second.counts) == (
        "before",
        {"shared_ro": 5},
        "",
        {"shared_ro": 6},
    )


def test_what_mail_does_changes_no_number():
    expected = [(group.title, group.counts) for group in parse(CASE).groups]
    for changed in ("".join(f"> {line}\n" for line in CASE.splitlines()), CASE.replace("\n", "\r\n")):
        assert skip_reasons.looks_like(changed)
        assert [(group.title, group.counts) for group in parse(changed).groups] == expected


def test_what_is_wrong():
    refuses(parse, "hello\n", 0, "holds no count by reason")
    refuses(parse, "19,30 reason=shared_ro\n", 0, "line 1: the digits of the count")
    report = parse("5 reason=shared_ro\n6 reason=numa_misplaced\n")
    assert [skip.line for skip in report.skipped] == [2]
    assert not skip_reasons.looks_like("6 reason=numa_misplaced\n")


@pytest.mark.parametrize("name", ["trace.txt", "others.txt"])
def test_a_trace_is_no_table_of_counts(name):
    assert not skip_reasons.looks_like(golden("ftrace", name))
