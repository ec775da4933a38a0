"""What the readers of text share: errors, skipped lines, records that begin with a time stamp."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field


class ReadError(ValueError):
    """A text that is not what it should be.

    Attributes
    ----------
    source : str
        Name of the file.
    line : int
        Line at fault, from 1; 0 when it is the file as a whole.
    problem : str
        What was expected, what was found, what to do.
    """

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}:{line}: {problem}" if line else f"{source}: {problem}")
        self.source = source
        self.line = line
        self.problem = problem


class NoRunError(ReadError):
    """A text that was read, but of which no run can be made: it holds nothing that a run has."""


@dataclass(frozen=True)
class Skipped:
    """A line that was not used: its number, its text, why, and of several files which."""

    line: int
    text: str
    reason: str
    file: str = ""


CUT = "the text seems to be cut off; take it again, or remove this record"


@dataclass
class FromText:
    """What every reader's report of a text has.

    Attributes
    ----------
    source : str
        File name, for messages.
    lines : int
        Of the text.
    skipped : list of Skipped
        Lines that were not used.
    """

    source: str
    lines: int
    skipped: list[Skipped] = field(default_factory=list, kw_only=True)


def quote(text: str) -> str:
    """Return a line for an error message, shortened."""
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:60] + "...")


def check_whole(text: str, source: str) -> None:
    """Make sure that the last line of a file some program wrote ends as lines do.

    Raises
    ------
    ReadError
    """
    if text and not text.endswith("\n"):
        number = text.count("\n") + 1
        last = text[text.rfind("\n") + 1 :]
        raise ReadError(source, number, f"expected a line end after {quote(last)}; {CUT}")


@dataclass
class Record:
    """The lines under one stamp ``@ <seconds> key=value ...``.

    Attributes
    ----------
    line : int
        Line of the stamp, 0 for lines before any.
    time : float or None
        Seconds; None before any stamp.
    fields : dict
        The stamp's key=value pairs.
    lines : list of (line, text)
        What stands below, without blank lines.
    """

    line: int
    time: float | None
    fields: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[int, str]] = field(default_factory=list)


_STAMP = re.compile(r"@ (\d+(?:\.\d+)?)((?: \S+=.*)?)$")
_FIELD = re.compile(r"(\w+)=(.*?)(?= \w+=|$)")


def records(text: str, source: str) -> Iterator[Record]:
    """Cut a text at its stamps; a text without stamps is one record without a time.

    Raises
    ------
    ReadError
        A stamp that is none, or one earlier than the one before.
    """
    record, last = Record(0, None), -1.0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("@"):
            stamp = _STAMP.match(line.rstrip())
            if stamp is None:
                raise ReadError(source, number, f"expected '@ <seconds>' and key=value pairs, got {quote(line)}")
            if record.line or record.lines:
                yield record
            record = Record(number, float(stamp[1]), dict(_FIELD.findall(stamp[2])))
            if float(stamp[1]) < last:
                problem = (
                    f"time goes back from {last:g} to {stamp[1]} s; is this more than one log? Read them one by one"
                )
                raise ReadError(source, number, problem)
            last = float(stamp[1])
        elif line.strip():
            record.lines.append((number, line.rstrip("\r")))
    if record.line or record.lines:
        yield record
