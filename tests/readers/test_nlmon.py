"""Reader of the monitor's samples.log."""

from functools import partial

import pytest

from numalab.readers import formats, nlmon
from tests.readers.helpers import golden, refuses

TEXT = golden("nlmon", "samples.txt")


def test_golden():
    first, second, third = nlmon.parse(TEXT).samples
    assert [sample.time for sample in (first, second, third)] == [0.0, 1.025, 2.005]
    assert third.vmstat["numa_pte_updates"] == 8213
    assert (first.counters["work_ns"], third.counters["scan_period_sum_ms"]) == (648, 6900)
    assert third.counters["blocked_nonzero"] == 1
    assert third.memory["wl_p3"] == [93, 1435, 183, 539]
    assert third.threads["wl_p2"] == [(7, "S"), (2, "R"), (1, "R")]
    assert (first.memory, first.threads) == ({}, {})


def test_two_processes_of_one_name_are_reported():
    report = nlmon.parse(TEXT + "t wl_p3 0R\n")
    assert report.samples[-1].threads["wl_p3"] == [(0, "R")]
    assert "a second process called wl_p3" in report.skipped[0].reason


def test_an_ending_process_has_no_threads():
    assert nlmon.parse(TEXT + "t wl_p9\n").samples[-1].threads["wl_p9"] == []


def test_alone_it_is_pointed_to_its_folder():
    with pytest.raises(formats.FormatError, match="belongs to a run folder"):
        formats.read(TEXT, "samples.log")


def test_what_is_wrong():
    parse = partial(refuses, nlmon.parse)
    lines = TEXT.count("\n")
    parse(TEXT + "@ 3.0 blocked_samples=60 blocked_sum=1 blocked_max=1 blocked_nonzero=1\n", lines + 1, "lacks ")
    parse(TEXT + "@ 3.0 blocked_samples=60\n", lines + 1, "expected '@ <seconds> blocked_samples=<n>")
    parse(TEXT + "x 1\n", lines + 1, "expected a line of kind v, k, m or t, got 'x 1'")
    parse(TEXT + "k scan\n", lines + 1, "got 'k scan'", "cut off")
    parse("", 0, "is empty")
