"""Lines of pastes: quote marks, encodings and lost line ends undone, numbers kept."""

import pytest

from numalab.readers._paste import Line, lines


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


def test_a_mail_without_line_ends():
    text = "On Monday somebody wrote: > one > two > three > " + "x" * 200
    assert lines(text)[:4] == [
        Line(1, "On Monday somebody wrote:", True),
        *(Line(1, word, True) for word in ("one", "two", "three")),
    ]
    # a few comparisons in a long line are no quote marks
    long = "a > b and c > d " + "x" * 200
    assert texts(long) == [(1, long)]
