"""Reader of samples.log, written once a second by the monitor of the instrumented 6.1 kernel.

After a stamp ``@ <s> blocked_samples= blocked_sum= blocked_max= blocked_nonzero=`` (tasks in
uninterruptible sleep, looked at every 50 ms, counts since the monitor began; s since then too) come
``v name value`` (/proc/vmstat), ``k name value`` (the kernel's own counters since boot, zeros left out),
``m comm pages...`` (pages of a process per node from numa_maps, four nodes, at most eight processes) and
``t comm <cpu><state>...`` (its threads in the order of their creation).
"""

import re
from dataclasses import dataclass, field

from numalab.readers._text import CUT, FromText, ReadError, Record, Skipped, quote, records

BLOCKED = ("blocked_samples", "blocked_sum", "blocked_max", "blocked_nonzero")

_COUNTER = re.compile(r"([vk]) ([a-z]\w*) (\d+)\s*$")
_MEMORY = re.compile(r"m (\S+)((?: \d+)+)\s*$")
_THREADS = re.compile(r"t (\S+)((?: -?\d+\S)*)\s*$")


@dataclass
class Sample:
    """One sample.

    Attributes
    ----------
    time : float
        Seconds since the monitor began.
    line : int
    vmstat, counters : dict
        Name -> value since boot; `counters` holds the kernel's own and `BLOCKED`.
    memory : dict
        Process -> pages on nodes 0, 1, 2, 3.
    threads : dict
        Process -> (CPU, state letter) of each thread; empty when it was just ending.
    """

    time: float
    line: int
    vmstat: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    memory: dict[str, list[int]] = field(default_factory=dict)
    threads: dict[str, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass
class Report(FromText):
    """What a text held: samples in the order of time, and the lines that were not used."""

    samples: list[Sample] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text is such a log."""
    return re.match(r"@ [\d.]+ blocked_samples=", text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read a samples.log.

    Raises
    ------
    ReadError
        Any line of another form; a sample that lacks counters an earlier one has.
    """
    report = Report(source, len(text.splitlines()))
    for record in records(text, source):
        if record.time is None or not all(record.fields.get(key, "").isdecimal() for key in BLOCKED):
            line = record.line or record.lines[0][0]
            raise ReadError(source, line, f"expected '@ <seconds> {'=<n> '.join(BLOCKED)}=<n>'; {CUT}")
        sample = Sample(record.time, record.line, counters={key: int(record.fields[key]) for key in BLOCKED})
        _read(sample, record, report)
        report.samples.append(sample)
    if not report.samples:
        raise ReadError(source, 0, "is empty; expected samples of the monitor")
    _check(report)
    return report


def _read(sample: Sample, record: Record, report: Report) -> None:
    for number, line in record.lines:
        if counter := _COUNTER.match(line):
            (sample.vmstat if counter[1] == "v" else sample.counters)[counter[2]] = int(counter[3])
        elif memory := _MEMORY.match(line):
            _once(sample.memory, memory[1], report, number, line)
            sample.memory[memory[1]] = [int(word) for word in memory[2].split()]
        elif threads := _THREADS.match(line):
            _once(sample.threads, threads[1], report, number, line)
            sample.threads[threads[1]] = [(int(word[:-1]), word[-1]) for word in threads[2].split()]
        else:
            raise ReadError(report.source, number, f"expected a line of kind v, k, m or t, got {quote(line)}; {CUT}")


def _once(
    known: dict[str, list[int]] | dict[str, list[tuple[int, str]]], name: str, report: Report, number: int, line: str
) -> None:
    if name in known:
        report.skipped.append(Skipped(number, line, f"a second process called {name}: only the last is kept"))


def _check(report: Report) -> None:
    vmstat = set(report.samples[0].vmstat)
    counters: set[str] = set()
    for sample in report.samples:
        # A counter is left out while it is 0, so it never goes away.
        lost = sorted((vmstat - sample.vmstat.keys()) | (counters - sample.counters.keys()))
        if lost:
            raise ReadError(report.source, sample.line, f"the sample lacks {lost[0]}, which an earlier one has; {CUT}")
        counters |= sample.counters.keys()
