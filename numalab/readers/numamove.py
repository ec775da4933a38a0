"""Reader of two tools of BPF: ``numamove``, page migrations each second, and ``numasched``, tasks that change node.

numamove (bcc and bpftrace print the same) counts calls of the kernel's function that migrates a misplaced page, and
the milliseconds spent there: a huge page counts once, and so does a call that fails; of bcc's version each call's time
is cut to whole milliseconds, so sums are far too low. numasched prints a line whenever a task runs on another node than
last time, whoever moved it. Both print the time of day without a date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import fmean

from numalab.readers._paste import Line, plain_lines
from numalab.readers._text import FromText, ReadError, Skipped

FORMAT = "numamove"

_DAY = 24 * 3600
_CLOCK = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)"
_RATE_HEAD = re.compile(r"\s*TIME\s+NUMA_migrations\s+NUMA_migrations_ms\s*$")
_TASK_HEAD = re.compile(r"\s*TIME\s+PID\s+(?:TID\s+)?SRC_NID\s+(?:->\s+)?DST_NID\s+COMM\s*$")
_RATE = re.compile(rf"\s*{_CLOCK}\s+(?P<calls>\d{{1,15}})\s+(?P<ms>\d{{1,15}})\s*$")
_TASK = re.compile(
    rf"\s*{_CLOCK}\s+(?P<pid>\d{{1,10}})\s+(?:(?P<tid>\d{{1,10}})\s+)?"
    r"(?P<src>\d{1,6})\s+->\s+(?P<dst>\d{1,6})\s+(?P<comm>\S.*?)\s*$"
)
_STARTING = re.compile(r"\s*(?:Attaching \d+ probes?\.\.\.|Tracing task (?:numa|NUMA) switch\.+|\^C)\s*$")
_SNIFF = re.compile(r"(?m)^[ \t>]*+TIME\s+(?:NUMA_migrations\s+NUMA_migrations_ms|PID\s+(?:TID\s+)?SRC_NID\s)")
_SNIFF_TASK = re.compile(rf"(?m)^[ \t>]*+{_CLOCK}\s+\d+\s+(?:\d+\s+)?\d+\s+->\s+\d+\s+\S")


@dataclass(frozen=True)
class Sample:
    """One second: seconds since the first sample, calls, milliseconds in them, line."""

    time: float
    calls: int
    ms: int
    line: int


@dataclass(frozen=True)
class Change:
    """One change of node: seconds since the first, process, task (the process where not printed), nodes, name, line."""

    time: float
    process: int
    task: int
    src: int
    dst: int
    comm: str
    line: int


@dataclass
class Report(FromText):
    """What a text held: samples of numamove, changes of numasched; the time of day of the first."""

    samples: list[Sample] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    start: str = ""

    def rate(self) -> float:
        """Return calls per second, the mean of the samples; NaN without any."""
        return fmean(sample.calls for sample in self.samples) if self.samples else float("nan")


def looks_like(text: str) -> bool:
    """Tell whether a text holds output of numamove or numasched."""
    return bool(_SNIFF.search(text) or _SNIFF_TASK.search(text))


def parse(text: str, source: str = "<text>") -> Report:
    """Read samples or changes.

    Raises
    ------
    ReadError
        None of either; rows of both tools; a time that goes back other than over midnight.
    """
    report = Report(source, len(text.splitlines()))
    clock = _Clock(source)
    for line in plain_lines(text):
        if rate := _RATE.match(line.text):
            report.samples.append(Sample(clock.since(line, rate), int(rate["calls"]), int(rate["ms"]), line.number))
        elif task := _TASK.match(line.text):
            report.changes.append(_change(clock.since(line, task), line, task))
        elif line.text.strip() and not any(known.match(line.text) for known in (_RATE_HEAD, _TASK_HEAD, _STARTING)):
            report.skipped.append(Skipped(line.number, line.text, "not output of numamove or numasched"))
    report.start = clock.text
    if report.samples and report.changes:
        raise ReadError(source, report.changes[0].line, "holds rows of numamove and of numasched; read them one by one")
    if not report.samples and not report.changes:
        problem = "holds no row of numamove or numasched; expected 'hh:mm:ss <migrations> <ms>'"
        raise ReadError(source, 0, f"{problem} or 'hh:mm:ss <pid> <tid> <node> -> <node> <name>'")
    return report


class _Clock:
    """Turns the time of day into seconds since the first row."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.text = ""
        self.first = self.last = 0

    def since(self, line: Line, match: re.Match[str]) -> float:
        hour, minute, second = (int(match[part]) for part in ("hour", "minute", "second"))
        now = hour * 3600 + minute * 60 + second
        if not self.text:
            self.text = f"{hour:02}:{minute:02}:{second:02}"
            self.first = self.last = now
        now += (self.last // _DAY) * _DAY
        if now < self.last:
            # one that is earlier by half a day or more is of the next day
            if self.last - now < _DAY // 2:
                problem = f"time goes back to {hour:02}:{minute:02}:{second:02}; is this more than one log?"
                raise ReadError(self.source, line.number, f"{problem} Read them one by one")
            now += _DAY
        self.last = now
        return float(now - self.first)


def _change(time: float, line: Line, match: re.Match[str]) -> Change:
    pid = int(match["pid"])
    # bcc prints the name as Python shows bytes
    comm = re.sub(r"^b(['\"])(.*)\1$", r"\2", match["comm"])
    tid = int(match["tid"]) if match["tid"] else pid
    return Change(time, pid, tid, int(match["src"]), int(match["dst"]), comm, line.number)
