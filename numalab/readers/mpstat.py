"""Reader of ``mpstat -N``: how busy the CPUs of each node are, in percent, per interval and on average."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._placed import Placed, placed
from numalab.readers._text import CUT, FromText, ReadError, Skipped, quote

_TIME = r"(?P<time>Average:|\d\d:\d\d:\d\d(?: [AP]M)?)"
_HEAD = re.compile(rf"\s*{_TIME}\s+NODE\s+(?P<names>%\w+(?:\s+%\w+)*)\s*$")
_ROW = re.compile(
    rf"\s*{_TIME}\s+(?P<node>all|\d{{1,6}})\s+(?P<values>\d{{1,6}}[.,]\d{{1,6}}(?:\s+\d{{1,6}}[.,]\d{{1,6}})*)\s*$"
)
_BANNER = re.compile(r"\s*Linux \S+ \(\S+\)\s")


@dataclass(frozen=True)
class Row:
    """One node in one interval: time as printed ("Average" of all), node ("all" or its number), percent by name."""

    time: str
    node: str
    percent: dict[str, float]
    line: int


@dataclass
class Report(FromText):
    """What a text held: names of the columns, rows in its order, the lines that were not used."""

    names: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds the head of a table of mpstat -N."""
    return any(is_known(line) for line in placed(text))


def is_known(line: Placed) -> bool:
    """Tell whether a line is the head of such a table."""
    return _HEAD.match(line.text) is not None


def is_row(line: Placed) -> bool:
    """Tell whether a line may be a row below such a head."""
    return _HEAD.match(line.text) is not None or _ROW.match(line.bare) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read the table.

    Raises
    ------
    ReadError
        No table; a row with another number of values than its head has names.
    """
    report = Report(source, len(text.splitlines()))
    names: tuple[str, ...] = ()
    for line in placed(text, source):
        if line.heading or not line.text.strip() or _BANNER.match(line.text):
            continue
        if head := _HEAD.match(line.text):
            names = tuple(head["names"].split())
            report.names = tuple(dict.fromkeys([*report.names, *names]))
        elif names and (row := _ROW.match(line.bare)):
            values = [float(value.replace(",", ".")) for value in row["values"].split()]
            if len(values) != len(names):
                problem = (
                    f"expected {len(names)} numbers as in the head, got {len(values)} in {quote(line.text)}; {CUT}"
                )
                raise ReadError(source, line.number, problem)
            percent = dict(zip(names, values, strict=True))
            report.rows.append(Row(row["time"].rstrip(":"), row["node"], percent, line.number))
        else:
            report.skipped.append(Skipped(line.number, line.text, "not a line of mpstat -N"))
    if not report.rows:
        raise ReadError(
            source, 0, "holds no table of mpstat -N; expected a head 'NODE %usr %nice ...' and rows below it"
        )
    return report
