"""Reader of trace events as ``perf script`` and ``trace-cmd report`` print them, also pasted into mails.

The events are those of `numalab.readers.ftrace`, whose records and report it gives. perf script prints the command,
the thread (or process/thread), the CPU (which ``-F`` may leave out: -1 then), the time, with ``-F period`` a count,
and system and event; below it, with ``perf record -g``, a call chain. trace-cmd prints the form of ftrace, with a
head of its own, so its text looks like ftrace's; both readers take it. A line that mail wrapped is put together; one
that is cut off is skipped, and said.
"""

from __future__ import annotations

import re

from numalab.readers import ftrace
from numalab.readers._ftrace_types import Report
from numalab.readers._paste import Line, lines
from numalab.readers._reading import Reading
from numalab.readers._text import ReadError, Skipped

FORMAT = "perf-script"

_SYSTEM = r"(?:sched|migrate|exceptions|probe|kprobes)"
_EVENT = re.compile(
    r"\s*(?P<comm>\S.*?)(?:-|\s+(?:\d+/)?)(?P<pid>\d{1,10})\s+(?:\(\s*[-\d]+\)\s+)?(?:\[(?P<cpu>\d{1,6})\]\s+)?"
    r"(?:[^\s:\[\]]{3,8}\s+)?(?P<time>\d+\.\d+):\s+(?:\d+\s+)?(?:\w+:)?(?P<event>[a-z]\w*):(?:\s+(?P<rest>.*))?$"
)
#: A frame of a call chain: address, symbol and object by perf; "=> symbol (address)" by trace-cmd.
_FRAME = re.compile(r"\s+[0-9a-f]{4,16} \S.*\(\S.*\)$|\s*=> \S+ \([0-9a-f]+\)$")
_HEAD = re.compile(r"\s*(?:cpus=\d+|version = \d+|CPU \d+ is empty)\s*$")
_SNIFF = re.compile(
    rf"(?m)^[ \t>]*+\S.*?\s(?:\d+/)?\d+\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:\d+\s+)?{_SYSTEM}:"
    r"(?:sched_(?:move|swap|stick)_numa|sched_skip_vma_numa|sched_migrate_task|mm_migrate_pages|page_fault_user"
    r"|hint_fault):"
)
#: Lines one event may be wrapped over.
_LONGEST = 4


def looks_like(text: str) -> bool:
    """Tell whether a text holds events of NUMA balancing as perf script prints them."""
    return _SNIFF.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read events.

    Parameters
    ----------
    text : str
        Quoted, wrapped, with call chains.
    source : str
        Name for messages.

    Returns
    -------
    numalab.readers.ftrace.Report
        Call chains are left out; other events and lines are among what was skipped.

    Raises
    ------
    ReadError
        No event that is known.
    """
    report = Report(source, len(text.splitlines()))
    known = ftrace.takers(report)
    every = lines(text)
    at = 0
    while at < len(every):
        line = every[at]
        match = _EVENT.match(line.text)
        if match is None:
            _take_other(report, line)
        elif match["event"] not in known:
            report.skipped.append(Skipped(line.number, line.text, f"event {match['event']} is not used"))
        else:
            at += _take(report, known[match["event"]], every, at)
            continue
        at += 1
    if not report.counts():
        problem = "holds no trace event of NUMA balancing; expected lines 'comm pid [cpu] time: sched:event: fields'"
        why = next((f" (line {s.line}: {s.reason})" for s in report.skipped if s.reason == _CUT), "")
        raise ReadError(source, 0, problem + why)
    return report


_CUT = "the fields of this event are cut off or changed"


def _take(report: Report, take: ftrace.Taker, every: list[Line], at: int) -> int:
    """Take the event of a line, with those after it as long as they are the rest of it; return how many lines."""
    whole = every[at].text
    for count in range(1, _LONGEST + 1):
        if count > 1:
            following = every[at + count - 1].text if at + count <= len(every) else ""
            if not following.strip() or _EVENT.match(following) or _FRAME.match(following):
                break
            whole = f"{whole} {following.strip()}"
        match = _EVENT.match(whole)
        assert match is not None  # as its beginning did
        pid, cpu = int(match["pid"]), int(match["cpu"] or -1)
        try:
            take((float(match["time"]), pid, cpu, every[at].number), match["rest"] or "")
        except (KeyError, ValueError):
            continue
        report.names[pid] = match["comm"].strip()
        return count
    report.skipped.append(Skipped(every[at].number, every[at].text, _CUT))
    return 1


def _take_other(report: Report, line: Line) -> None:
    if line.text.strip() and not _FRAME.match(line.text) and not _HEAD.match(line.text):
        ftrace.take_other(report, line.number, line.text)


def read(text: str, source: str, _release: str | None = None) -> Reading:
    """Read trace events: the table of moves, swaps and failures."""
    from numalab.readers import _files

    return _files.reading_of_events(parse(text, source), FORMAT)
