"""Reader of logs of autonuma-benchmark; the real log is among the field cases (test_tool_cases)."""

import pytest

from numalab.readers import autonuma_log
from numalab.readers.autonuma_log import parse
from tests.readers.helpers import golden, refuses

LOG = golden("cases", "024-lkp-autonuma-benchmark", "input.txt")


def test_what_stands_between_is_known():
    report = parse(LOG)
    # a rm and thirteen compilations, four times and, of a fifth, the first four
    assert report.built == 4 * 14 + 4
    assert report.remarks == [(line, "Hyper-Threading IS enabled.") for line in (15, 54, 93, 132)]


def test_tables():
    reading = autonuma_log.read(LOG, "x")
    means = reading.table("means")
    assert [row[0] for row in means.rows] == ["numa01", "numa01_THREAD_ALLOC", "numa02", "numa02_SMT"]
    assert means.rows[0][1:] == pytest.approx((298.495, 116.26, 196.3575))
    assert reading.table("seconds").get("numa02_SMT", "iteration 4") == 7.00
    with pytest.raises(ValueError, match="has nothing that a run has"):
        reading.dataset()
    assert (16, "12 programs, 4 iterations") in [(found.line, found.what) for found in reading.understood]


def test_a_program_missing_from_one_iteration():
    report = parse("numa01\n3.5\nnuma02\n1\nnuma01\n4.5\n")
    assert [list(one) for one in report.iterations] == [["numa01", "numa02"], ["numa01"]]
    assert report.seconds("numa02") == [1]
    assert autonuma_log.read("numa01\n3.5\nnuma02\n1\nnuma01\n4.5\n", "x").tables[0].rows == (
        ("numa01", 3.5, 4.5),
        ("numa02", 1, None),
    )
    with pytest.raises(KeyError, match="there are numa01, numa02"):
        report.mean("numa03")


def test_a_name_without_seconds_is_said():
    report = parse("numa01\n3.5\nnuma02\nnuma02_SMT\n6.1\nnuma01_HARD_BIND\n")
    assert [(skip.line, skip.reason[:30]) for skip in report.skipped] == [
        (3, "no seconds below this name; wa"),
        (6, "no seconds below this name; wa"),
    ]


def test_what_mail_does_changes_no_number():
    for changed in ("".join(f"> {line}\n" for line in LOG.splitlines()), LOG.replace("\n", "\r\n")):
        assert autonuma_log.looks_like(changed)
        assert parse(changed).iterations == parse(LOG).iterations


def test_what_is_none():
    refuses(parse, "numa01\nhello\n", 0, "holds no result of autonuma-benchmark")
    assert not autonuma_log.looks_like("numa01 is slow\n313.17\n")
