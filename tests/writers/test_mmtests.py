"""Writer of MMTests' tables: as the tool prints, and read back to the same numbers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab.readers import mmtests
from numalab.readers.mmtests import Row, Table
from numalab.writers.mmtests import write
from tests.readers.helpers import golden

# ------------------------------------------------------------- as the tool


def test_a_real_table_comes_out_as_it_went_in():
    """Case 047 but for the left margin and the widths of labels, which the tool takes from all its rows."""
    text = golden("mmtests", "047.txt")
    first, _, third = mmtests.parse(text).tables
    written = write(Table(0, first.kernels, [*first.rows, *third.rows]))
    expected = (
        [line.split() for line in text.splitlines()[19:26]] + [[]] + [line.split() for line in text.splitlines()[32:]]
    )
    assert [line.split() for line in written.splitlines()] == expected
    assert written.splitlines()[2:4] == [
        # a column as wide as its name and a blank
        "Min      elsp-NUMA01_THREADLOCAL      174.22 (   0.00%)       117.64 (  32.48%)",
        "Amean    elsp-NUMA01_THREADLOCAL      175.68 (   0.00%)       123.34 *  29.79%*",
    ]


def test_names_without_a_dash_stand_in_one_line():
    rows = [Row("Ops", "NUMA hint faults", (1.0, 2.0))]
    assert write(Table(0, ("3.16-tip", "3.17"), rows)) == (
        "                           3.16-tip           3.17\nOps NUMA hint faults           1.00           2.00\n"
    )


def test_release_candidates_stay_with_the_release():
    text = write(Table(0, ("4.0-rc1-vanilla", "4.0-rc4-p1-p2"), [Row("Ops", "x", (1.0, 2.0))]))
    assert [line.split() for line in text.splitlines()[:2]] == [["4.0-rc1", "4.0-rc4"], ["vanilla", "p1-p2"]]
    assert mmtests.parse(text).tables[0].kernels == ("4.0-rc1-vanilla", "4.0-rc4-p1-p2")


# ------------------------------------------------------------- round trip

letters = st.text("abcz0189._", min_size=1, max_size=30).map(lambda text: "k" + text)
names = st.one_of(letters, st.builds("{}-{}".format, letters, letters), st.builds("{}-rc1-{}".format, letters, letters))
metrics = st.text("abcdef_-", max_size=20).map(lambda text: "m" + text) | st.just("local_share%")
values = st.just(0.0) | st.floats(1, 1e9)


@st.composite
def tables(draw):
    """Tables whose percents follow from the values, as the reader checks."""
    kernels = draw(st.lists(names, min_size=2, max_size=7))
    rows = []
    for statistic in draw(
        st.lists(st.sampled_from(["Min", "Amean", "Hmean", "Stddev", "CoeffVar", "Max"]), min_size=1)
    ):
        numbers = draw(st.lists(values, min_size=len(kernels), max_size=len(kernels)))
        sign = draw(st.sampled_from([1, -1]))
        changes = [0.0] + [sign * 100 * (one / numbers[0] - 1) if numbers[0] else 100.0 for one in numbers[1:]]
        changes = [change if abs(change) < 1e9 else 100.0 for change in changes] if not numbers[0] else changes
        stars = (False, *draw(st.lists(st.booleans(), min_size=len(kernels) - 1, max_size=len(kernels) - 1)))
        rows.append(Row(statistic, draw(metrics), tuple(numbers), tuple(changes), stars))
    labels = ["NUMA hint faults", "NUMA PTE updates", "AutoNUMA cost"]
    several = st.lists(values, min_size=len(kernels), max_size=len(kernels)).map(tuple)
    rows += [Row("Ops", label, draw(several)) for label in draw(st.lists(st.sampled_from(labels), unique=True))]
    return Table(0, tuple(kernels), rows)


@given(tables())
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_back(table):
    report = mmtests.parse(write(table))
    assert (report.skipped, report.notes) == ([], [])
    assert {one.kernels for one in report.tables} == {table.kernels}
    read = [row for one in report.tables for row in one.rows]
    assert [row.label for row in read] == [row.label for row in table.rows]
    for got, row in zip(read, table.rows, strict=True):
        assert got.values == pytest.approx(row.values, abs=0.0051)
        assert got.changes == pytest.approx(row.changes, abs=0.0051)
        assert got.significant == row.significant


def test_a_missing_value_is_read_back():
    rows = [Row("Amean", "x", (1.0, math.nan), (0.0, math.nan), (False, False))]
    ((read,),) = [table.rows for table in mmtests.parse(write(Table(0, ("a", "b"), rows))).tables]
    assert math.isnan(read.values[1])
    assert read.values[0] == 1.0
