"""Reader of /proc/vmstat: one snapshot or several, or a log of snapshots each after a stamp ``@ <seconds>``.

One line holds a name and a value. Counters count since boot; names beginning with ``nr_`` are states.
"""

import re
from dataclasses import dataclass, field

from numalab.readers._text import CUT, ReadError, Record, Skipped, quote, records

# people put arrows behind the lines they mean
_LINE = re.compile(r"\s*(?:>\s*)*([a-z][a-z0-9_]*)\s*[:=]?\s+(\d+)(?:\s+<-+)?\s*$")
_PROMPT = re.compile(r"\s*(?:\S*[$#%]|\[.*\][$#])\s")
#: Found in every kernel with CONFIG_NUMA.
_KNOWN = re.compile(r"(?m)^[\s>]*(?:numa_(?:hit|pte_updates|hint_faults)|nr_free_pages)\s*[:=]?\s+\d+(?:\s+<-+)?\s*$")


@dataclass(frozen=True)
class Sample:
    """One snapshot.

    Attributes
    ----------
    time : float or None
        Seconds; None without a stamp.
    values : dict
        Name -> value.
    line : int
        Where it begins.
    label : str
        Without a stamp, the last line of other text before it.
    """

    time: float | None
    values: dict[str, int]
    line: int
    label: str = ""


@dataclass
class Report:
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    samples : list of Sample
        In the order of the text. Those without stamps may be of different boots.
    skipped : list of Skipped
        Lines of a paste that are no counter.
    """

    source: str
    lines: int
    samples: list[Sample] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def common(self) -> list[str]:
        """Names that every snapshot has, in the order of the first."""
        return [name for name in self.samples[0].values if all(name in sample.values for sample in self.samples)]


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of /proc/vmstat."""
    return _KNOWN.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read snapshots, pasted or in a log.

    Parameters
    ----------
    text : str
        A paste, in which foreign lines are skipped and a name that comes again begins the next snapshot;
        or a log with stamps, in which nothing else may stand.
    source : str
        Name for messages.

    Returns
    -------
    Report

    Raises
    ------
    ReadError
        No counter at all; in a log a foreign line, a name twice in a snapshot, or a snapshot that lacks
        names the first one has.
    """
    report = Report(source, len(text.splitlines()))
    for record in records(text, source):
        if record.time is None:
            _read_paste(report, record)
        else:
            report.samples.append(_read_logged(record, source))
    if not any(sample.values for sample in report.samples):
        problem = "holds no counter of /proc/vmstat; expected lines like 'numa_hint_faults 1234'"
        raise ReadError(source, 0, f"{problem} (is CONFIG_NUMA_BALANCING on?)")
    if any(sample.time is not None for sample in report.samples):
        _check_log(report)
    return report


def _read_paste(report: Report, record: Record) -> None:
    values: dict[str, int] = {}
    first, label, last = 0, "", ""
    for number, line in record.lines:
        match = _LINE.match(line)
        if match is None:
            report.skipped.append(Skipped(number, line, "not a line of /proc/vmstat"))
            # a command line such as "$ grep numa /proc/vmstat" is no name for what it prints
            last = last if _PROMPT.match(line) else line.strip().rstrip(":")
            continue
        if match[1] in values:
            report.samples.append(Sample(None, values, first, label))
            values = {}
        if not values:
            first, label, last = number, last, ""
        values[match[1]] = int(match[2])
    if values:
        report.samples.append(Sample(None, values, first, label))


def _read_logged(record: Record, source: str) -> Sample:
    values: dict[str, int] = {}
    for number, line in record.lines:
        match = _LINE.match(line)
        if match is None:
            raise ReadError(source, number, f"expected 'name value', got {quote(line)}; {CUT}")
        if match[1] in values:
            raise ReadError(source, number, f"{match[1]} for the second time in one snapshot; {CUT}")
        values[match[1]] = int(match[2])
    return Sample(record.time, values, record.line)


def _check_log(report: Report) -> None:
    first = report.samples[0]
    if first.time is None:
        raise ReadError(report.source, first.line, "expected '@ <seconds>' before the first snapshot of a log")
    for sample in report.samples:
        lost = first.values.keys() - sample.values.keys()
        if lost:
            what = f"the snapshot lacks {min(lost)}" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
            raise ReadError(report.source, sample.line, f"{what} of the names in the first; {CUT}")
