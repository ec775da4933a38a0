"""Reader of mpstat -N."""

from functools import partial

from numalab.readers import mixed, mpstat
from tests.readers.helpers import refuses

TEXT = """Linux 6.1.0 (db1) \t01/02/2024 \t_x86_64_\t(8 CPU)

10:00:01     NODE    %usr   %nice    %sys   %idle
10:00:02      all    1.00    0.00    2.00   97.00
10:00:02        0    2.00    0.00    4.00   94.00
10:00:02        8    0.00    0.00    0.00  100.00

Average:     NODE    %usr   %nice    %sys   %idle
Average:        0    2.50    0.00    4.00   93.50
"""


def test_intervals_and_average():
    report = mpstat.parse(TEXT)
    assert report.names == ("%usr", "%nice", "%sys", "%idle")
    assert [(row.time, row.node, row.percent["%idle"]) for row in report.rows] == [
        ("10:00:02", "all", 97),
        ("10:00:02", "0", 94),
        ("10:00:02", "8", 100),
        ("Average", "0", 93.5),
    ]
    assert report.skipped == []


def test_table():
    found = mixed.read_text(TEXT, "x")
    assert found.formats == ["mpstat"]
    assert found["mpstat"].table("mpstat").get("10:00:02 8", "%sys") == 0
    assert found.datasets() == {}


def test_commas_and_twelve_hours():
    text = "10:00:01 AM NODE %usr %idle\n10:00:02 AM 0 1,50 98,50\n"
    assert mpstat.parse(text).rows[0].percent == {"%usr": 1.5, "%idle": 98.5}


def test_what_is_wrong():
    parse = partial(refuses, mpstat.parse)
    parse(TEXT.replace("0.00    4.00   94.00", "94.00"), 5, "expected 4 numbers as in the head, got 2")
    parse("10:00:02 0 1.0 2.0\n", 0, "holds no table of mpstat -N")
