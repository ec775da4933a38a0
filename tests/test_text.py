"""Tables as plain text."""

import math

import pytest

from numalab.text import seconds, table

HEAD = ["kernel", "n", "s"]
ROWS = [["3.17", "12", "9.5"], ["3.16-tip", "1", "never"]]


def test_columns_are_as_wide_as_their_widest_cell():
    """Columns of 8, 2 and 5, two blanks apart; names left, numbers right."""
    assert table(HEAD, ROWS) == "\n".join(
        [
            "kernel     n      s",
            "--------  --  -----",
            "3.17      12    9.5",
            "3.16-tip   1  never",
        ]
    )


def test_left_columns_are_counted():
    assert table(HEAD, ROWS, left=3).splitlines() == [
        "kernel    n   s",
        "--------  --  -----",
        "3.17      12  9.5",
        "3.16-tip  1   never",
    ]


def test_right_columns_are_named():
    """A set of columns to the right wins over the count."""
    assert table(HEAD, ROWS, left=3, right={0, 2}).splitlines() == [
        "  kernel  n       s",
        "--------  --  -----",
        "    3.17  12    9.5",
        "3.16-tip  1   never",
    ]
    assert table(HEAD, ROWS, right=()) == table(HEAD, ROWS, left=3)


def test_a_head_alone_and_a_wide_head():
    assert table(["a", "bcd"], []) == "a  bcd\n-  ---"
    assert table(["a", "bcd"], [["x", "1"]]) == "a  bcd\n-  ---\nx    1"


def test_no_blanks_at_line_ends():
    lines = table(["a", "note"], [["x", ""], ["y", "long text"]], left=2).splitlines()
    assert lines == ["a  note", "-  ---------", "x", "y  long text"]


def test_a_short_or_long_row_is_refused():
    for row in (["x"], ["x", "y", "z"]):
        with pytest.raises((ValueError, IndexError)):
            table(["a", "b"], [row])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (41.8, "41.8"), (9.96, "10.0"), (120, "120.0"), (math.inf, "never"), (math.nan, "nan")],
)
def test_seconds(value, text):
    assert seconds(value) == text
