"""Reader of numamove and numasched.

The storm of numamove is among the field cases (test_tool_cases). numasched.txt is from the pull request that brought
the tool to bpftrace's user-tools (2024), shortened; bcc.txt from that of bcc (2022).
"""

import pytest

from numalab.readers import numamove
from numalab.readers._moved import read_numamove
from numalab.readers.numamove import Change, parse
from tests.readers.helpers import golden, refuses

STORM = golden("cases", "055-bcc-numamove-storm", "input.txt")
SCHED = golden("numamove", "numasched.txt")
HEAD = "TIME      NUMA_migrations NUMA_migrations_ms\n"


def test_counters_rise_from_the_first_sample_on():
    ds = read_numamove(STORM, "x").dataset()
    calls = ds.counters.sel(counter="numa_migrations").values[0]
    # 31576, then 31705 more
    assert calls[:2].tolist() == [31576, 63281]
    assert calls[-1] == 441598
    assert ds.counters.sel(counter="numa_migrations_ms").values[0].tolist()[-3:] == [19, 21, 25]
    assert ds.time.values.tolist() == list(range(14))


def test_over_midnight():
    report = parse(HEAD + "23:59:58 308 29\n23:59:59 0 0\n00:00:00 5 1\n00:00:02 6 0\n")
    assert [sample.time for sample in report.samples] == [0, 1, 2, 4]
    assert report.start == "23:59:58"


def test_two_rows_of_one_second_are_one_in_the_run():
    ds = read_numamove(HEAD + "10:00:00 1 0\n10:00:00 2 0\n10:00:01 3 0\n", "x").dataset()
    assert ds.time.values.tolist() == [0, 1]
    assert ds.counters.sel(counter="numa_migrations").values.tolist() == [[3, 6]]


def test_numasched():
    report = parse(SCHED)
    assert len(report.changes) == 5
    assert report.changes[1] == Change(0, 722, 722, 3, 0, "jbd2/vda2-8", 6)
    assert report.changes[4] == Change(0, 850, 860, 2, 0, "gdbus", 9)
    reading = read_numamove(SCHED, "x")
    assert reading.table("changes of node").get("2", "1") == 1
    assert reading.table("changes of node").get("0", "1") == 0
    ds = reading.dataset()
    assert ds.event_count.values.tolist() == [5]
    assert ds.event_dst_node.values.tolist() == [[2, 0, 1, 0, 0]]
    assert ds.task_process.sel(task=860) == 850
    assert ds.node.values.tolist() == [0, 1, 2, 3]


def test_numasched_of_bcc_without_threads():
    report = parse(golden("numamove", "bcc.txt"))
    assert report.changes == [
        Change(0, 355842, 355842, 0, 1, "yes", 4),
        Change(15, 355842, 355842, 1, 2, "yes", 5),
    ]


def test_nodes_keep_their_numbers():
    text = "TIME     PID      TID      SRC_NID     DST_NID  COMM\n10:19:30 41       41       8        -> 252        x\n"
    assert read_numamove(text, "x").dataset().node.values.tolist() == [8, 252]


@pytest.mark.parametrize("text", [STORM, SCHED])
def test_what_mail_does_changes_no_number(text):
    for changed in ("".join(f"> {line}\n" for line in text.splitlines()), text.replace("\n", "\r\n")):
        assert numamove.looks_like(changed)
        assert (parse(changed).samples, parse(changed).changes) == (parse(text).samples, parse(text).changes)


def test_what_is_wrong():
    refuses(parse, "hello\n", 0, "holds no row of numamove or numasched")
    refuses(parse, HEAD + "10:00:05 1 0\n10:00:01 1 0\n", 3, "time goes back to 10:00:01")
    refuses(parse, HEAD + "10:00:05 1 0\n10:00:06 1 1 0 -> 1 x\n", 3, "rows of numamove and of numasched")
    report = parse(HEAD + "10:00:05 1 0\n10:00:06 1\nwhat?\n")
    assert [skip.line for skip in report.skipped] == [3, 4]
    assert not numamove.looks_like("10:00:05 1 0\n")
