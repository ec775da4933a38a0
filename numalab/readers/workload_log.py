"""Reader of workload.log: what the load programs of the packaged traces print.

numawl: ``S s proc i pid p start`` (a process begins), ``W s proc thread tid cpu node passes pages``.
cowread: ``S s parent pid p``, ``R s reader pid cpu node sums``, ``TOTAL key=value``. nlwl: ``R reader
passes``, ``C s`` and for each process its threads per node as ``1/0/1/0``, ``RESULT key=value``.
Times of S, W, R are on the trace's clock, those of C since the program began.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from numalab.readers._text import ReadError, Skipped, quote

_START = re.compile(r"S (\d+\.\d+) (?:proc \d+ pid (\d+) start|parent pid (\d+)).*$")
_WORK = re.compile(r"W (\d+\.\d+) \d+ \d+ (\d+) -?\d+ -?\d+ (\d+) (\d+)\s*$")
_READER = re.compile(r"R (\d+\.\d+) \d+ (\d+) -?\d+ -?\d+ (\d+)\s*$")
_PASSES = re.compile(r"R (\d+) (\d+)\s*$")
_SPREAD = re.compile(r"C (\d+\.\d+)((?: \d+(?:/\d+)+)+)\s*$")
_RESULT = re.compile(r"(RESULT|TOTAL)((?: \w+=-?[\d.]+)+)\s*$")
_TAGGED = re.compile(r"(?:[SWRC] \d|RESULT|TOTAL)")


def looks_like(text: str) -> bool:
    """Tell whether a text is such a log."""
    return any(pattern.match(text.partition("\n")[0]) for pattern in (_START, _WORK, _READER, _PASSES, _SPREAD))


class Work(NamedTuple):
    """Work done by a task so far: passes over its memory, and pages (-1 when not printed)."""

    time: float
    tid: int
    passes: int
    pages: int
    line: int


class Spread(NamedTuple):
    """Threads per node of each process at one moment (s since the program began)."""

    time: float
    threads: tuple[tuple[int, ...], ...]
    line: int


@dataclass
class Report:
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    starts : dict
        pid -> time its work began, s on the trace's clock.
    work : list of Work
    spread : list of Spread
    passes : dict
        Reader -> passes at the end.
    results : dict
        key -> number of the lines RESULT or TOTAL.
    skipped : list of Skipped
    """

    source: str
    lines: int
    starts: dict[int, float] = field(default_factory=dict)
    work: list[Work] = field(default_factory=list)
    spread: list[Spread] = field(default_factory=list)
    passes: dict[int, int] = field(default_factory=dict)
    results: dict[str, float] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def parse(text: str, source: str = "<text>") -> Report:
    """Read a workload.log; other programs' lines are skipped and reported.

    Raises
    ------
    ReadError
        A line that begins as one of these and is none; lines C with different processes or nodes.
    """
    lines = text.splitlines()
    report = Report(source, len(lines))
    for number, line in enumerate(lines, 1):
        if not _take(report, number, line) and line.strip():
            if _TAGGED.match(line):
                raise ReadError(source, number, f"expected a whole line of numawl, cowread or nlwl, got {quote(line)}")
            report.skipped.append(Skipped(number, line, "not a line of numawl, cowread or nlwl"))
    for spread in report.spread:
        if [len(one) for one in spread.threads] != [len(one) for one in report.spread[0].threads]:
            raise ReadError(source, spread.line, "expected as many processes and nodes as in the first line C")
    return report


def _take(report: Report, number: int, line: str) -> bool:
    if start := _START.match(line):
        report.starts[int(start[2] or start[3])] = float(start[1])
    elif work := _WORK.match(line):
        report.work.append(Work(float(work[1]), int(work[2]), int(work[3]), int(work[4]), number))
    elif reader := _READER.match(line):
        report.work.append(Work(float(reader[1]), int(reader[2]), int(reader[3]), -1, number))
    elif passes := _PASSES.match(line):
        report.passes[int(passes[1])] = int(passes[2])
    elif spread := _SPREAD.match(line):
        threads = tuple(tuple(map(int, one.split("/"))) for one in spread[2].split())
        report.spread.append(Spread(float(spread[1]), threads, number))
    elif result := _RESULT.match(line):
        for pair in result[2].split():
            key, _, value = pair.partition("=")
            report.results[key] = float(value)
    else:
        return False
    return True
