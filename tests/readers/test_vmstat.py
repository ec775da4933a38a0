"""Reader of /proc/vmstat: a log of a real kernel, pastes of mails, and what is wrong."""

from functools import partial

import pytest

from numalab.readers import formats, vmstat
from tests.readers.helpers import golden, refuses

LOG = golden("vmstat", "log.txt")


def test_golden_log():
    report = vmstat.parse(LOG)
    assert [sample.time for sample in report.samples] == [8.339485, 18.344090, 39.344050]
    assert [sample.line for sample in report.samples] == [1, 24, 47]
    assert [sample.values["numa_pte_updates"] for sample in report.samples] == [1, 24647, 41063]
    assert [sample.values["numa_hint_faults_local"] for sample in report.samples] == [0, 14453, 23147]
    assert [len(sample.values) for sample in report.samples] == [22, 22, 22]
    assert (report.lines, report.skipped) == (69, [])


def test_dataset_counts_from_the_first_snapshot():
    ds = formats.read(LOG, "log.txt").dataset()
    assert ds.time.values.tolist() == [8.339485, 18.344090, 39.344050]
    assert ds.numa_pte_updates.values.tolist() == [[0, 24646, 41062]]
    assert ds.numa_pages_migrated.values.tolist() == [[0, 7333, 11178]]
    counters = ds.counters.sel(run=0) if "run" in ds.coords else ds.counters[0]
    assert counters.sel(counter="pgfault").values.tolist() == [0, 33175, 49392]
    # major faults are not in this log, so nothing says that all of these were minor
    assert "minor_faults" not in ds


def test_minor_faults_need_the_major_ones():
    text = "@ 1\npgfault 10\npgmajfault 2\nnuma_hit 0\n@ 2\npgfault 25\npgmajfault 3\nnuma_hit 0\n"
    assert formats.read(text, "x").dataset().minor_faults.values.tolist() == [[0, 14]]


def test_a_paste_of_one_snapshot():
    text = "> $ grep numa /proc/vmstat\n> numa_hit 12\n> numa_hint_faults 2048\nwhat does this mean?\nnr_zzz: 5\n"
    report = vmstat.parse(text)
    assert [(sample.time, sample.values) for sample in report.samples] == [
        (None, {"numa_hit": 12, "numa_hint_faults": 2048, "nr_zzz": 5})
    ]
    assert [(skip.line, skip.reason) for skip in report.skipped] == [
        (1, "not a line of /proc/vmstat"),
        (4, "not a line of /proc/vmstat"),
    ]
    # a single snapshot keeps its count since boot
    assert formats.read(text, "x").dataset().numa_hint_faults.values.tolist() == [[2048]]


def test_golden_paste_of_two_boots_is_two_runs():
    text = golden("vmstat", "paste.txt")
    report = vmstat.parse(text)
    assert [(sample.line, sample.label) for sample in report.samples] == [(3, "Without patch"), (17, "With patch")]
    assert [skip.line for skip in report.skipped] == [1, 2, 15, 16]
    ds = formats.read(text, "x").dataset()
    assert ds.snapshot.values.tolist() == ["Without patch", "With patch"]
    assert ds.numa_hint_faults.values.tolist() == [[13717222], [0]]
    assert ds.numa_pte_updates.values.tolist() == [[13739278], [0]]
    assert ds.numa.local_share().values[0] == 1.0


def test_what_a_log_may_not_hold():
    parse = partial(refuses, vmstat.parse)
    parse(LOG + "@ 40.0\nnuma_hit 1\n", 70, "lacks numa_foreign and 20 more", "cut off")
    parse(LOG[:-8], 69, "expected 'name value', got 'thp_migration_'", "cut off")
    parse(LOG + "numa_hit 1\n", 70, "numa_hit for the second time")
    parse(LOG + LOG, 70, "time goes back from 39.3441 to 8.339485 s")
    parse("numa_hit 1\n" + LOG, 1, "expected '@ <seconds>' before the first")
    parse("@ soon\nnuma_hit 1\n", 1, "expected '@ <seconds>'")


def test_what_is_no_vmstat():
    refuses(vmstat.parse, "hello\n", 0, "no counter", "expected lines like")


def test_a_counter_that_falls():
    text = "@ 1\nnuma_hit 5\nnuma_hint_faults 5\n@ 2\nnuma_hit 6\nnuma_hint_faults 4\n"
    with pytest.raises(ValueError, match=r"^x.txt:4: numa_hint_faults falls from 5 to 4"):
        formats.read(text, "x.txt").dataset()
