"""Writer of LKP's tables: as the tool prints, and read back to the same numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab.readers import lkp
from numalab.readers.lkp import TOTAL, Cell, Row, Table
from numalab.writers.lkp import number, write, write_2014
from tests.readers.helpers import golden

# ------------------------------------------------------------- as the tool


@pytest.mark.parametrize("name", ["020", "086"])
def test_a_real_report_comes_out_as_it_went_in(name):
    text = golden("lkp", f"{name}.txt")
    (table,) = lkp.parse(text).tables
    written = write(table)
    assert written.splitlines()[0] == "=" * 89
    # the excerpt of case 086 begins below the rule
    assert written.removeprefix("=" * 89 + "\n") == text.removeprefix("=" * 89 + "\n")


def test_differences_in_points():
    (table,) = lkp.parse(golden("lkp", "three.txt")).tables
    assert [line.rstrip() for line in write(table).splitlines()[-5:]] == golden("lkp", "three.txt").splitlines()[-5:]


def test_the_mail_of_2014_comes_out_as_it_went_in():
    (table,) = lkp.parse(golden("lkp", "flat.txt")).tables
    assert write_2014(table) == (
        "ebe06187bf2aec1  a43455a1d572daf7b730fe12e  \n"
        "---------------  -------------------------  \n"
        "     94500 ~ 3%    +115.6%     203711 ~ 6%  ivb42/hackbench/50%-threads-pipe\n"
        "     67745 ~ 4%     +64.1%     111174 ~ 5%  lkp-snb01/hackbench/50%-threads-socket\n"
        "    162245 ~ 3%     +94.1%     314885 ~ 6%  TOTAL proc-vmstat.numa_hint_faults_local\n"
    )


def test_blocks_of_2013_without_spread():
    block = (
        "       v3.13-rc3       eabb1f89905a0c809d13  \n---------------  -------------------------  \n"
        " 6.129e+08 ~ 0%     -19.5%  4.931e+08 ~ 1%  lkp-snb01/micro/ebizzy/200%-100-10\n"
        "       609 ~ 4%     +14.0%        694 ~ 4%  lkp-nex04/micro/ebizzy/400%-5-30\n"
        " 6.129e+08          -19.5%  4.931e+08       TOTAL proc-vmstat.numa_miss\n"
    )
    text = block + "\n" + block.replace("numa_miss", "numa_other")
    tables = lkp.parse(text).tables
    joined = Table(1, tables[0].columns, tables[0].rows + tables[1].rows)
    assert [line.strip() for line in write_2014(joined).splitlines()] == [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (999.994, "999.99"),
        (1000.9, "1000"),
        (99_999_999.7, "99999999"),
        (1e8, "100000000"),
        (174_912_345, "1.749e+08"),
        (1.97e8, "1.97e+08"),
        (-12.345, "-12.35"),
    ],
)
def test_digits(value, text):
    assert number(value) == text


def test_small_spreads_are_not_printed():
    row = Row("x.y", (Cell(10.0, 1.99), Cell(20.0, 2.9), Cell(20.0, 122.5), Cell(5.0)), (100.0, 100.0, -50.0))
    assert write(Table(0, ("a", "b", "c", "d"), [row])).splitlines()[-1] == (
        "     10.00          +100.0%      20.00 ±  2%    +100.0%      20.00 ±122%     -50.0%       5.00        x.y"
    )


def test_long_names_stand_whole_under_commit():
    names = ("sched-numa-before-the-patch", "sched-numa-before-the-patch-with-three-fixes")
    text = write(Table(0, names, [Row("x.y", (Cell(1.0), Cell(1.0)), (0.0,))]))
    assert "\nsched-numa-befor sched-numa-before-the-patch \n" in text
    assert lkp.parse(text).tables[0].columns == names


# ------------------------------------------------------------- round trip

words = st.text("abz019_-", max_size=12).map(lambda text: "w" + text)
heads = st.text("abAB019._+-", max_size=40).map(lambda text: "k" + text)
means = st.floats(0, 1e13, allow_nan=False).map(lambda value: value if value > 1e-3 else 0.0)
spreads = st.none() | st.floats(0, 500)


@st.composite
def tables(draw, tests=False):
    """Tables whose changes follow from the means, as the reader checks."""
    columns = draw(st.lists(heads, min_size=2, max_size=6))
    if tests:
        columns = [name[:15] for name in columns]  # this style has no room for more
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        stat = f"{draw(words)}.{draw(words)}"
        block = []
        absolute = not tests and draw(st.booleans())
        for _ in range(draw(st.integers(1, 3)) if tests else 1):
            cells = tuple(Cell(draw(means), draw(spreads)) for _ in columns)
            base = cells[0].mean
            changes = [one.mean - base if absolute else 100 * (one.mean - base) / (base or 1e-100) for one in cells[1:]]
            test = f"{draw(words)}/{draw(words)}/{draw(words)}" if tests else ""
            block.append(Row(stat, cells, tuple(changes), absolute, test))
        rows += block
        if tests:
            sums = [sum(row.cells[i].mean for row in block) for i in range(len(columns))]
            changes = tuple(100 * (one - sums[0]) / (sums[0] or 1e-100) for one in sums[1:])
            rows.append(Row(stat, tuple(map(Cell, sums)), changes, test=TOTAL))
    return Table(0, tuple(columns), rows)


def same(printed, value, digits):
    """The number read is the one written, within the last digit printed."""
    return printed == pytest.approx(value, abs=digits)


def last_digit(value):
    return 0.0051 if abs(value) < 1000 else 1.0 if abs(value) <= 1e8 else abs(value) * 5.1e-4


def check(read, table, printed_spread):
    assert [(row.stat, row.test) for row in read] == [(row.stat, row.test) for row in table.rows]
    for got, row in zip(read, table.rows, strict=True):
        assert got.absolute == row.absolute
        for a, b in zip(got.cells, row.cells, strict=True):
            assert same(a.mean, b.mean, last_digit(b.mean))
            wanted = printed_spread(b.stddev_percent)
            assert a.stddev_percent == wanted
        for a, b in zip(got.changes, row.changes, strict=True):
            assert same(a, b, 0.051 if abs(b) < 1e5 else abs(b) * 0.051)


@given(tables())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(table):
    report = lkp.parse(write(table))
    assert (report.skipped, report.notes) == ([], [])
    (read,) = report.tables
    assert read.columns == table.columns
    check(read.rows, table, lambda spread: None if spread is None or spread < 2 else int(spread))


@given(tables(tests=True))
@settings(max_examples=100, deadline=None)
def test_what_is_written_in_the_style_of_2014_is_read_back(table):
    report = lkp.parse(write_2014(table))
    assert (report.skipped, report.notes) == ([], [])
    assert {read.columns for read in report.tables} == {table.columns}
    read = [row for one in report.tables for row in one.rows]
    check(read, table, lambda spread: None if spread is None else round(spread))
