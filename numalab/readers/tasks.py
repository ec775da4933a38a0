"""Reader of tasks.log: where each task was, once per sample.

A line holds time (s), pid, tid, comm (blanks became _), state, CPU, node, user and system time (ticks
of 10 ms), minor faults, voluntary and involuntary switches. The first line names the columns.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from numalab.readers._text import CUT, ReadError, Skipped, quote

HEADER = "# t pid tid comm state cpu node utime_ticks stime_ticks minflt nvcsw nivcsw"

_LINE = re.compile(r"(\d+\.\d+) (\d+) (\d+) (\S+) (\S) (-?\d+) (-?\d+) (\d+) (\d+) (\d+) (-?\d+) (-?\d+)\s*$")


class Row(NamedTuple):
    """One task at one moment; time in seconds, ticks of 10 ms."""

    time: float
    pid: int
    tid: int
    comm: str
    state: str
    cpu: int
    node: int
    utime_ticks: int
    stime_ticks: int
    minflt: int
    nvcsw: int
    nivcsw: int
    line: int


@dataclass
class Report:
    """What a text held: rows in the order of time, and the lines that were not used."""

    source: str
    lines: int
    rows: list[Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text is a tasks.log."""
    return text.startswith("# t pid tid comm state cpu node")


def parse(text: str, source: str = "<text>") -> Report:
    """Read a tasks.log.

    Raises
    ------
    ReadError
        Another header, a line with other columns, or time that goes back.
    """
    lines = text.splitlines()
    report = Report(source, len(lines))
    if not lines or lines[0].rstrip() != HEADER:
        raise ReadError(source, 1, f"expected the header {HEADER!r}, got {quote(lines[0] if lines else '')}")
    last = 0.0
    for number, line in enumerate(lines[1:], 2):
        match = _LINE.match(line)
        if match is None:
            raise ReadError(source, number, f"expected the 12 columns of the header, got {quote(line)}; {CUT}")
        time, pid, tid, comm, state, *rest = match.groups()
        cpu, node, utime, stime, minflt, nvcsw, nivcsw = map(int, rest)
        row = Row(float(time), int(pid), int(tid), comm, state, cpu, node, utime, stime, minflt, nvcsw, nivcsw, number)
        if row.time < last:
            raise ReadError(source, number, f"time goes back from {last:g} to {row.time:g} s; is this two logs in one?")
        last = row.time
        report.rows.append(row)
    return report
