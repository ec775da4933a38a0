"""Reader of counts of sched_skip_vma_numa by reason: why the scanner of NUMA balancing left mappings out.

Read are counts as ``sort | uniq -c`` makes them of a trace (``193,050 reason=pid_inactive``), as bpftrace prints a
map (``@[pid_inactive]: 193050``), and as a histogram trigger of ftrace does, which gives the reason as a number. A
group of counts is of one kernel or run; the line above it names it. The event is there since Linux 6.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numalab.readers._numbers import GROUPED, number
from numalab.readers._paste import Line, lines
from numalab.readers._reading import Found, Reading, Table
from numalab.readers._text import FromText, ReadError, Skipped

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "skip-reasons"

#: The kernel's reasons, in the order of its numbers.
REASONS = (
    "unsuitable",
    "shared_ro",
    "inaccessible",
    "scan_delay",
    "pid_inactive",
    "ignore_pid_inactive",
    "seq_completed",
)
#: Beginning of the names of the counters in a run.
COUNTER = "sched_skip_vma_numa."

_REASON = rf"(?P<reason>{'|'.join(REASONS)})"
_COUNTED = re.compile(rf"\s*(?P<count>{GROUPED})\s+(?:.*\s)?reason=(?P<reason>\w+)\s*$")
_BPFTRACE = re.compile(rf"\s*@\w*\[(?:\w+, )?{_REASON}\]:\s*(?P<count>\d{{1,18}})\s*$")
_TRIGGER = re.compile(
    r"\s*\{\s*reason:\s*(?:\w+\s*\[\s*)?(?P<reason>\d)\s*\]?\s*\}\s*hitcount:\s*(?P<count>\d{1,18})\s*$"
)
_FRAME = re.compile(r"\s*(?:# event histogram|#|# trigger info: .*|Totals:|(?:Hits|Entries|Dropped): \d+)\s*$")
_UNDERLINE = re.compile(r"\s*[-=~]{3,}\s*$")
_SNIFF = re.compile(
    r"(?m)^[ \t>]*+(?:[\d.,]+\s+(?:\S.*\s)?reason=\w+|@\w*\[(?:\w+, )?\w+\]:\s*\d+"
    r"|\{ reason:.*hitcount:\s*\d+)[ \t\r]*$"
)


@dataclass
class Group:
    """Counts of one kernel or run: the line it begins at, its title (may be empty), reason -> count."""

    line: int
    title: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Skips for any reason."""
        return sum(self.counts.values())

    def share(self, reason: str) -> float:
        """Return the part of a reason in all skips: 0 to 1; NaN without any."""
        return self.counts.get(reason, 0) / self.total if self.total else float("nan")


@dataclass
class Report(FromText):
    """What a text held: groups of counts, and the lines that were not used."""

    groups: list[Group] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds counts by reason."""
    return any(_row(match.group()) is not None for match in _SNIFF.finditer(text))


def parse(text: str, source: str = "<text>") -> Report:
    """Read groups of counts.

    Parameters
    ----------
    text : str
        A reason that comes again, or a new title, begins the next group; a blank line alone does not.
    source : str
        Name for messages.

    Raises
    ------
    ReadError
        No count by reason.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    for line in lines(text):
        reader.take(line)
    reader.drop()
    if not reader.report.groups:
        problem = "holds no count by reason of sched_skip_vma_numa; expected '<count> reason=<name>'"
        why = next((f" (line {s.line}: {s.reason})" for s in reader.report.skipped if s.reason != _FOREIGN), "")
        raise ReadError(source, 0, problem + why)
    return reader.report


_FOREIGN = "not a count of sched_skip_vma_numa by reason"


def _row(text: str) -> tuple[str, int | None] | None:
    """Read one count: reason and number, None for a number that is none."""
    match = _COUNTED.match(text.lstrip("> \t")) or _BPFTRACE.match(text.lstrip("> \t"))
    if match:
        count = number(match["count"])
        return (match["reason"], count if isinstance(count, int) else None) if match["reason"] in REASONS else None
    match = _TRIGGER.match(text.lstrip("> \t"))
    if match and int(match["reason"]) < len(REASONS):
        return REASONS[int(match["reason"])], int(match["count"])
    return None


class _Reader:
    """State while reading: the group counts belong to, and lines of other text that may be a title."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.above: list[Line] = []
        self.titled = False

    def take(self, line: Line) -> None:
        text = line.text
        found = _row(text)
        if found is not None:
            self.count(line, *found)
        elif _UNDERLINE.match(text) and self.above and not self.titled:
            self.titled = True
        elif text.strip() and not _FRAME.match(text):
            self.drop()
            self.above = [line]

    def drop(self) -> None:
        """Report what stood above and was no title."""
        self.report.skipped += [Skipped(line.number, line.text, _FOREIGN) for line in self.above]
        self.above, self.titled = [], False

    def count(self, line: Line, reason: str, count: int | None) -> None:
        if count is None:
            problem = "the digits of the count are grouped in no known way; was the line cut?"
            self.report.skipped.append(Skipped(line.number, line.text, problem))
            return
        groups = self.report.groups
        if not groups or self.above or reason in groups[-1].counts:
            title = self.above[-1].text.strip().rstrip(":") if self.above else ""
            self.above, self.titled = self.above[:-1], False
            self.drop()
            groups.append(Group(line.number, title))
        groups[-1].counts[reason] = count


# ---------------------------------------------------------------- reading


def read(text: str, source: str, _release: str | None = None) -> Reading:
    """Read counts by reason: one table of all groups, and the counts as counters."""
    report = parse(text, source)
    names = _names(report)
    found = []
    for i, (name, group) in enumerate(zip(names, report.groups, strict=True)):
        most = max(group.counts, key=lambda reason: group.counts[reason])
        what = f"{name if group.title else f'group {i + 1}'}: {group.total} skips, most of all {most}"
        found.append(Found(group.line, f"{what} ({group.share(most):.1%})"))
    reasons = [reason for reason in REASONS if any(reason in group.counts for group in report.groups)]
    rows = tuple((reason, *(group.counts.get(reason) for group in report.groups)) for reason in reasons)
    table = Table("skips by reason", ("reason", *names), rows, line=report.groups[0].line)
    lacking = any(reason not in group.counts for group in report.groups for reason in reasons)
    guessed = [Found(table.line, "a reason without a count in one group counts as 0 in the run")] if lacking else []
    return Reading(
        source,
        FORMAT,
        report.lines,
        tuple(found),
        tuple(report.skipped),
        _dataset(report, reasons),
        guessed=tuple(guessed),
        tables=(table,),
    )


def _names(report: Report) -> list[str]:
    return [group.title or f"group {i}" for i, group in enumerate(report.groups, 1)]


def _dataset(report: Report, reasons: list[str]) -> Callable[[], xr.Dataset]:
    def build() -> xr.Dataset:
        from numalab.readers._counted import counters

        # a reason that never occurred is not printed
        every = [{COUNTER + reason: group.counts.get(reason, 0) for reason in reasons} for group in report.groups]
        coords = {"kernel": _names(report)}
        return counters(every, list(every[0]), coords, FORMAT, report.source, len(report.skipped))

    return build
