"""Reader of what perf says about locks: ``perf lock contention`` and ``perf lock report``.

Of all locks it looks for the one of the thread ``policy_lock``: the look-up of a shared policy.
"""

import re
from dataclasses import dataclass, field

from numalab.readers._paste import lines
from numalab.readers._text import CUT, ReadError, Skipped
from numalab.readers.perf_report import LOOKUP

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass
class Wait:
    """One line of perf lock: contentions, waiting time in all and at most, s, kind of lock, who waited or which lock.

    ``stack`` has the callers printed below it, ``acquired`` is None where perf does not print it.
    """

    line: int
    contended: int
    total_s: float
    longest_s: float
    kind: str
    name: str
    acquired: int | None = None
    stack: list[str] = field(default_factory=list)

    @property
    def is_lookup(self) -> bool:
        """Whether it is the look-up of a shared policy that waits."""
        return not LOOKUP.isdisjoint({self.name.partition("+")[0], *self.stack})


@dataclass
class LockReport:
    """What a text of perf lock held, and the lines that were not used."""

    source: str
    lines: int
    waits: list[Wait] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


_HEAD = re.compile(
    r"^[ #>]*(?P<name>Name\s+acquired\s+)?contended\s+(?:avg wait|total wait)(?: \(ns\))?\s", re.MULTILINE
)
_TIME = r"(\d+(?:\.\d+)?)(?: (ns|us|ms|s|m))?"
_CONTENTION = re.compile(rf"\s*(\d+)\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+(\S+)\s+(\S.*?)\s*$")
_REPORT = re.compile(rf"\s*(\S+)\s+(\d+)\s+(\d+)\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+{_TIME}\s*$")
_FRAME = re.compile(r"\s+0x[0-9a-f]+\s+([\w.]+)(?:\+0x[0-9a-f]+)?\s*$")


def looks_like_lock(text: str) -> bool:
    """Tell whether a text is a table of perf lock."""
    return _HEAD.search(text) is not None


def parse_lock(text: str, source: str = "<text>") -> LockReport:
    """Read the table of ``perf lock contention`` or ``perf lock report``.

    Raises
    ------
    ReadError
        No such table, or one without a line.
    """
    report = LockReport(source, len(text.splitlines()))
    by_lock: bool | None = None
    for line in lines(text):
        if not line.text.strip():
            continue
        head, row = _HEAD.match(f"{line.text} "), (_REPORT if by_lock else _CONTENTION).match(line.text)
        if head:
            by_lock = head["name"] is not None
        elif by_lock is not None and row and _of_one_kind(row):
            report.waits.append(_lock_row(row, line.number) if by_lock else _caller_row(row, line.number))
        elif report.waits and (frame := _FRAME.match(line.text)):
            report.waits[-1].stack.append(frame[1])
        else:
            report.skipped.append(Skipped(line.number, line.text, "not a line of perf lock's table"))
    if by_lock is None:
        raise ReadError(source, 0, "holds no table of perf lock; expected a head with 'contended' and 'total wait'")
    if not report.waits:
        raise ReadError(source, 0, f"the table of perf lock has no line; {CUT}")
    return report


def _of_one_kind(row: re.Match[str]) -> bool:
    """Tell whether all times of a row have a unit, or none; else there is a number too many."""
    units = row.groups()[2:7:2] if row.re is _CONTENTION else row.groups()[4::2]
    return all(units) or not any(units)


def _time(value: str, unit: str | None) -> float:
    # perf before 5.19 prints nanoseconds without a unit.
    return float(value) * SECONDS[unit or "ns"]


def _caller_row(row: re.Match[str], line: int) -> Wait:
    return Wait(line, int(row[1]), _time(row[2], row[3]), _time(row[4], row[5]), row[8], row[9])


def _lock_row(row: re.Match[str], line: int) -> Wait:
    total, longest = _time(row[6], row[7]), _time(row[8], row[9])
    return Wait(line, int(row[3]), total, longest, "lock", row[1], acquired=int(row[2]))
