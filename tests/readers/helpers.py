"""What the tests of the readers share."""

from pathlib import Path

import pytest

from numalab.readers._text import ReadError

GOLDEN = Path(__file__).parent / "golden"


def golden(*parts):
    return GOLDEN.joinpath(*parts).read_text(encoding="utf-8")


def refuses(parse, text, line, *words):
    """The text is refused with one line that names the file, the line and what is wrong."""
    with pytest.raises(ReadError) as caught:
        parse(text, "x.txt")
    error = caught.value
    assert "\n" not in str(error)
    assert str(error).startswith(f"x.txt:{line}: " if line else "x.txt: ")
    assert error.line == line
    for word in words:
        assert word in str(error), str(error)
