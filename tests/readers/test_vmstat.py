"""Reader of /proc/vmstat: a log of a real kernel, pastes of mails, and what is wrong."""

import sys
from functools import partial

import pytest

from numalab.readers import formats, mixed, vmstat
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
    # the prompt in line 1 names the file and is understood
    assert [(skip.line, skip.reason) for skip in report.skipped] == [(4, "not a line of /proc/vmstat")]
    # a single snapshot keeps its count since boot
    assert formats.read(text, "x").dataset().numa_hint_faults.values.tolist() == [[2048]]


def test_golden_paste_of_two_boots_is_two_runs():
    text = golden("vmstat", "paste.txt")
    report = vmstat.parse(text)
    assert [(sample.line, sample.label) for sample in report.samples] == [(3, "Without patch"), (17, "With patch")]
    assert report.skipped == []  # labels and prompts were understood
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


# ------------------------------------------------------------------ pastes


def test_a_series_with_dates_is_one_run():
    text = "".join(f"Tue Dec  1 02:35:{50 + i} UTC 2026\nnuma_hit {i}\nnuma_hint_faults {5 * i}\n" for i in range(3))
    ds = formats.read(text, "x").dataset()
    assert ds.time.values.tolist() == [0, 1, 2]
    assert ds.numa_hint_faults.values.tolist() == [[0, 5, 10]]


@pytest.mark.parametrize(
    "stamps", [("time: 1647937563", "time: 1647937565.5"), ("2026-12-01 02:35:50", "2026-12-01T02:35:52.5Z")]
)
def test_stamps(stamps):
    text = "".join(f"{stamp}\nnuma_hit {i}\n" for i, stamp in enumerate(stamps, 1))
    assert formats.read(text, "x").dataset().time.values.tolist() == [0, 2.5]


def test_series_over_a_reboot_is_not_one_run():
    text = "2026-12-01 02:35:50\nnuma_hint_faults 9\n2026-12-01 02:36:50\nnuma_hint_faults 3\n"
    reading = formats.read(text, "x")
    assert reading.dataset().numa_hint_faults.values.tolist() == [[9], [3]]
    assert any("different boots" in guess.what for guess in reading.guessed)


@pytest.mark.parametrize(
    ("before", "after"),
    [("before:", "after:"), ("3.19 before", "3.19 after"), ("start", "end"), ("# vorher", "# nachher")],
)
def test_before_and_after_give_the_growth(before, after):
    text = f"{before}\nnuma_hint_faults 10\nnr_free_pages 9\n{after}\nnuma_hint_faults 25\nnr_free_pages 4\n"
    ds = formats.read(text, "x").dataset()
    assert ds.numa_hint_faults.values.tolist() == [[15]]


def test_before_and_after_a_reboot_are_two_runs():
    text = "before\nnuma_hint_faults 10\nafter\nnuma_hint_faults 5\n"
    assert formats.read(text, "x").dataset().numa_hint_faults.values.tolist() == [[10], [5]]


def test_pairs_of_two_tests():
    text = "".join(
        f"{name} {when}\nnuma_hint_faults {count}\n"
        for name, when, count in (("old", "before", 1), ("old", "after", 5), ("new", "before", 7), ("new", "after", 9))
    )
    ds = formats.read(text, "x").dataset()
    assert ds.snapshot.values.tolist() == ["old", "new"]
    assert ds.numa_hint_faults.values.tolist() == [[4], [2]]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("numa_hit 13,717,222", 13717222),
        ("numa_hit 1,37,17,222", 13717222),
        ("numa_hit: +5", 5),
        ("numa_hit = 5    ← look", 5),
        ("- numa_hit 5", 5),
        ("| numa_hit | 5 |", 5),
        ("/proc/vmstat:numa_hit 5", 5),
    ],
)
def test_ways_to_write_a_counter(line, value):
    report = vmstat.parse(f"{line}\nnuma_miss 0\n")
    assert report.samples[0].values == {"numa_hit": value, "numa_miss": 0}
    assert report.skipped == []


def test_arrows_are_before_and_after():
    text = "numa_hint_faults 10 -> 25\nnuma_hit 1 -> 2\nnuma_miss 3\n"
    reading = formats.read(text, "x")
    assert reading.dataset().numa_hint_faults.values.tolist() == [[15]]
    assert reading.guessed[0].what == "only one value of numa_miss: left out"


def test_numbers_that_are_none():
    report = vmstat.parse("numa_hit 12,34\nnuma_miss 1.5\nnuma_local 99999999999999999999\nnuma_other 5\n")
    assert report.samples[0].values == {"numa_other": 5}
    assert [skip.line for skip in report.skipped] == [1, 2, 3]


def test_partial_snapshots_keep_all_values_in_the_table():
    text = "a:\nnuma_hit 1\nnuma_hint_faults 2\nb:\nnuma_hint_faults 3\n"
    reading = formats.read(text, "x")
    assert reading.table("vmstat").rows == (("numa_hit", 1, None), ("numa_hint_faults", 2, 3))
    assert reading.dataset().numa_hint_faults.values.tolist() == [[2], [3]]
    assert any("the 1 names that all snapshots have; the table has all 2" in guess.what for guess in reading.guessed)


def test_the_largest_counter_and_those_above():
    report = vmstat.parse(f"numa_hit {2**63 - 1}\nnuma_miss {2**63}\nnuma_local {2**64 - 1}\n")
    assert report.samples[0].values == {"numa_hit": 9223372036854775807}
    assert [(skip.line, skip.reason) for skip in report.skipped] == [
        (2, "the value is no whole number below 2^63"),
        (3, "the value is no whole number below 2^63"),
    ]


@pytest.mark.parametrize("value", ["12K", "3M", "1.5e6", "12 kB", "-5", "0x64", "5%"])
def test_counters_with_other_values_are_no_titles(value):
    """Such a line above others would else be taken for the name of the snapshot."""
    reading = formats.read(f"numa_hint_faults {value}\nnuma_hit 4\nnuma_miss 5\n", "x")
    assert reading.table("vmstat").rows == (("numa_hit", 4), ("numa_miss", 5))
    assert [skip.line for skip in reading.skipped] == [1]
    assert not any("title" in place.what for place in reading.understood)


def test_many_snapshots_are_little_work():
    """50,000 snapshots in one paste took minutes and a gigabyte: a dataset was made of each."""
    lines = [f"{name} {i}" for i in range(2000) for name in ("numa_hit", "numa_hint_faults", "pgmigrate_success")]
    text = "\n".join(lines) + "\n"
    count = 0

    def see(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    mixed.read_text(text[:200], "x").dataset()  # what is imported late is now
    sys.setprofile(see)
    try:
        ds = mixed.read_text(text, "x").dataset()
    finally:
        sys.setprofile(None)
    assert count < 80 * len(lines)
    assert ds.numa_hint_faults.values.ravel().tolist() == list(range(2000))
    assert ds.counters.sel(counter="numa_hit").values.ravel().tolist() == list(range(2000))
    assert ds.snapshot.values.tolist()[-1] == "1999"
