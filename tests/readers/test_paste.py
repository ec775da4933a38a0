"""Lines of pastes: quote marks, encodings and lost line ends undone, numbers kept."""

import pytest

from numalab.readers._paste import Line, decode, lines


def texts(text):
    return [(line.number, line.text) for line in lines(text)]


@pytest.mark.parametrize("mark", ["> ", ">> ", "> > ", " > "])
def test_quote_marks(mark):
    assert texts(f"{mark}one\n{mark}  two\n") == [(1, "one"), (2, "  two"), (3, "")]


def test_a_quote_mark_without_a_blank():
    assert texts(">one\n>>two\n") == [(1, "one"), (2, "two"), (3, "")]


def test_blanks_tabs_and_line_ends():
    assert texts("a  \r\n\tb\n") == [(1, "a"), (2, "        b"), (3, "")]


def test_quoted_printable_keeps_the_number_of_the_first_line():
    assert texts("x =C2=B1 2% =\nrest\nnext=20\n") == [(1, "x ± 2% rest"), (3, "next"), (4, "")]
    # "=" at a line's end means nothing in plain text
    assert texts("a=\nb\n") == [(1, "a="), (2, "b"), (3, "")]
    assert texts("=C2=B1\nlast=") == [(1, "±"), (2, "last")]


def test_counts_that_end_as_an_encoded_blank_does():
    text = "total=30 N0=10 N1=20\nanon=5 N0=5 N1=\n"
    assert texts(text) == [(1, "total=30 N0=10 N1=20"), (2, "anon=5 N0=5 N1="), (3, "")]
    assert texts("total=3D30 N0=3D10 N1=3D20\n") == [(1, "total=30 N0=10 N1=20"), (2, "")]


def test_numbers_of_lines():
    assert texts("   1  $ cat x\n   2\n   3  9 8\n") == [(1, "$ cat x"), (2, ""), (3, "9 8"), (4, "")]
    assert texts("12:numa_hit 5\n14:numa_miss 6\n20:numa_foreign 7\n")[2] == (3, "numa_foreign 7")
    # rows of a table that begin with their number, and counts
    rows = "  0:  10  20\n  1:  20  10\n  2:  30  30\n"
    assert texts(rows)[0] == (1, "  0:  10  20")
    assert texts("  5  cs\n  6  faults\n  8  cycles\n")[0] == (1, "  5  cs")


def test_colours_and_marks_without_width():
    assert texts("\ufeff\x1b[01;31m\x1b[Knuma\x1b[m\x1b[K_hit\u00a05\n") == [(1, "numa_hit 5"), (2, "")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings(encoding):
    assert decode("5 ± 2%\n".encode(encoding)) == "5 ± 2%\n"


def test_lines_of_two_encodings():
    assert decode("±\n".encode() + "±\n".encode("latin-1")) == "±\n±\n"


def test_a_mail_without_line_ends():
    text = "On Monday somebody wrote: > one > two > three > " + "x" * 200
    assert lines(text)[:4] == [
        Line(1, "On Monday somebody wrote:", True),
        *(Line(1, word, True) for word in ("one", "two", "three")),
    ]
    # a few comparisons in a long line are no quote marks
    long = "a > b and c > d " + "x" * 200
    assert texts(long) == [(1, long)]


def test_lists_and_grep_put_different_marks():
    """A list has a blank behind its numbers; behind those of grep blanks are the line's own."""
    assert texts("1: a\n2:   b\n3:\n4: c\n") == [(1, "a"), (2, "  b"), (3, ""), (4, "c"), (5, "")]
    assert texts("9:a\n10:  b\n11: c\n") == [(1, "a"), (2, "  b"), (3, " c"), (4, "")]


def test_a_list_of_rows_that_begin_with_numbers():
    assert texts("1. 53693 a\n2.\n3.   20 b\n")[2] == (3, "  20 b")
    # values with decimals
    assert texts("1.5 a\n2.5 b\n3.5 c\n")[0] == (1, "1.5 a")


def test_what_a_terminal_does_not_show():
    text = "\x1b]0;db1: ~\x07\x1b[?2004hnuma_hit 5\x00\x00\n\x0cN\x08Nu\x08uma\u00ad_miss\u00a0\u22126\n"
    assert texts(text) == [(1, "numa_hit 5"), (2, "Numa_miss -6"), (3, "")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_of_two_and_four_bytes(encoding):
    assert decode("numa_hit 5\n".encode(encoding)).lstrip("\ufeff") == "numa_hit 5\n"
