"""Reader of /proc/PID/numa_maps: where the pages of each mapping lie.

One line per mapping: start address, memory policy, what is mapped, counts of pages, pages on each node.
Pages have the size the line names, 4 KiB where it names none (as Linux before 3.13 prints). Policies may be of two
words ("weighted interleave:0-1", "prefer (many):0,2") and have flags ("bind=static:1").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._placed import Labels, Placed, placed, unwrapped
from numalab.readers._text import CUT, FromText, ReadError, quote, records

#: Counts a line may carry beside N<node>=<pages>.
COUNTS = ("anon", "dirty", "mapped", "mapmax", "swapcache", "active", "writeback")

_LINE = re.compile(r"\s*([0-9a-f]{8,16}) +(\S.*)$")
_NODE = re.compile(r"N(\d{1,6})$")
_OCTAL = re.compile(r"\\([0-7]{3})")
#: Address and policy: a line of numa_maps and of nothing else.
_KNOWN = re.compile(
    r"\s*[0-9a-f]{8,16} +(?:default|local|(?:prefer(?: \(many\))?|bind|(?:weighted )?interleave)(?:=\w+(?:\|\w+)*)?:?)"
    r"(?:[\s:]|$)"
)
#: The rest of a line that was wrapped.
_REST = re.compile(rf"\s*(?:(?:N\d{{1,6}}|{'|'.join(COUNTS)}|kernelpagesize_kB)=\d+(?:\s+|$))+$")
_PID = re.compile(r"/proc/(\d{1,10})/|(?:^|[\s(])(?:pid|PID)[ =:]+(\d{1,10})\b")
#: Below it lie programs and their heaps, above it libraries and what is mapped.
_LOW = 1 << 44
#: Digits of pages, and of kB of a page; more pages than that no machine has.
_LONGEST_NUMBER = 12


@dataclass(frozen=True)
class Mapping:
    """One mapping.

    Attributes
    ----------
    start : int
        Address.
    policy : str
        As printed; "default" covers what NUMA balancing itself sets.
    name : str
        Path of the file, "heap", "stack", or "" for anonymous memory.
    huge : bool
        hugetlbfs.
    counts : dict
        `COUNTS` that were printed.
    nodes : dict
        Node -> pages of `page_kb`.
    page_kb : int
    line : int
    """

    start: int
    policy: str
    name: str
    huge: bool
    counts: dict[str, int]
    nodes: dict[int, int]
    page_kb: int
    line: int

    def base_pages(self) -> dict[int, int]:
        """Node -> pages of 4 KiB."""
        return {node: pages * self.page_kb // 4 for node, pages in self.nodes.items()}


@dataclass(frozen=True)
class Process:
    """The mappings of one process at one moment.

    Attributes
    ----------
    time : float or None
        Seconds; None when not stated.
    pid : int
        -1 when not stated; several such in one text are -1, -2 and so on.
    comm : str
    mappings : tuple of Mapping
    line : int
    label : str
        Last other text above it.
    small : tuple of int or None
        Small mappings with written pages that are not listed, at lower and at higher addresses than the largest.
    """

    time: float | None
    pid: int
    comm: str
    mappings: tuple[Mapping, ...]
    line: int
    label: str = ""
    small: tuple[int, int] | None = None


@dataclass
class Report(FromText):
    """What a text held: processes in the order of the text, guesses (line, text), and the lines that were not used."""

    processes: list[Process] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
    guesses: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of numa_maps."""
    return any(is_known(line) for line in placed(text))


def is_known(line: Placed) -> bool:
    """Tell whether a line is of numa_maps."""
    return not line.heading and _KNOWN.match(line.text) is not None


def _goes_on(text: str, rest: str) -> bool:
    return _KNOWN.match(text) is not None and " kernelpagesize_kB=" not in text and _REST.match(rest) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read numa_maps of one process or several, or a log of them after stamps ``@ <seconds> pid=<n> comm=<name>``.

    Raises
    ------
    ReadError
        Nothing of the kind; a mapping whose pages have no size, while others have; in a log any other line.
    """
    report = Report(source, len(text.splitlines()))
    sized = " kernelpagesize_kB=" in text
    if re.search(r"(?m)^@", text):
        _read_log(report, text, sized)
    else:
        _Paste(report, sized).read(placed(text, source))
    if not any(process.mappings for process in report.processes):
        raise ReadError(source, 0, "holds no line of numa_maps; expected '7f7a35e00000 default anon=4096 N0=4096'")
    return report


def _read_log(report: Report, text: str, sized: bool) -> None:
    for record in records(text, report.source):
        mappings = []
        for number, line in record.lines:
            match = _LINE.match(line)
            if match is None or record.time is None:
                raise ReadError(report.source, number, f"expected '<address> <policy> ...', got {quote(line)}; {CUT}")
            mappings.append(_mapping(int(match[1], 16), match[2], number, report.source, sized))
        pid, comm = _owner(record.fields, report.source, record.line)
        small = _small(record.fields)
        report.processes.append(Process(record.time, pid, comm, tuple(mappings), record.line, small=small))


class _Paste:
    """State while reading a paste: the process that lines belong to."""

    def __init__(self, report: Report, sized: bool) -> None:
        self.report, self.sized = report, sized
        self.mappings: list[Mapping] = []
        self.pid, self.unknown = -1, 0
        self.label, self.file = "", ""
        self.labels = Labels(report.skipped, report.titles, "not a line of numa_maps")

    def read(self, every: list[Placed]) -> None:
        for line in unwrapped(every, _goes_on):
            match = None if line.heading else _LINE.match(line.text)
            if line.heading:
                self.end()
                self.pid = _pid_in(line.file)
            elif match and _KNOWN.match(line.text):
                self.take(line, int(match[1], 16), match[2])
            elif line.text.strip():
                if line.text.rstrip().endswith(":") or _PID.search(line.text):
                    self.end()
                self.labels.offer(line)
        self.end()
        self.labels.finish()

    def take(self, line: Placed, start: int, rest: str) -> None:
        if line.file != self.file:
            self.end()
            self.file = line.file
        if self.mappings and start < _LOW <= self.mappings[-1].start:
            self.end()
            what = "addresses begin again from below: taken as another process"
            self.report.guesses.append((line.number, what))
        if not self.mappings:
            self.label = self.labels.take()
            if named := _pid_in(line.file) if line.file else -1:
                self.pid = named if named >= 0 else self.pid
            self.pid = self.pid if self.pid >= 0 else _pid_in(self.label)
        self.labels.drop()
        self.mappings.append(_mapping(start, rest, line.number, self.report.source, self.sized))

    def end(self) -> None:
        if not self.mappings:
            return
        if self.pid < 0:
            self.unknown += 1
        pid = self.pid if self.pid >= 0 else -self.unknown
        first = self.mappings[0].line
        self.report.processes.append(Process(None, pid, "", tuple(self.mappings), first, self.label))
        self.mappings, self.pid = [], -1


def _pid_in(text: str) -> int:
    """Return the process that a path or label names, -1 if it names none."""
    match = _PID.search(text)
    return int(match[1] or match[2]) if match else -1


def _owner(fields: dict[str, str], source: str, line: int) -> tuple[int, str]:
    if not fields.get("pid", "").isdecimal():
        raise ReadError(source, line, f"expected '@ <seconds> pid=<n> comm=<name>', got {fields or 'no pid'}")
    return int(fields["pid"]), fields.get("comm", "")


def _small(fields: dict[str, str]) -> tuple[int, int] | None:
    below, above = fields.get("below", ""), fields.get("above", "")
    return (int(below), int(above)) if below.isdecimal() and above.isdecimal() else None


def _mapping(start: int, rest: str, line: int, source: str, sized: bool) -> Mapping:
    policy: list[str] = []
    name, huge, page_kb = "", False, 0
    counts: dict[str, int] = {}
    nodes: dict[int, int] = {}
    for token in rest.split():
        key, equals, value = token.partition("=")
        node = _NODE.match(key)
        if key == "file" and equals:
            name = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), value)
        elif token in ("heap", "stack") or token.startswith("stack:"):
            name = token
        elif token == "huge":
            huge = True
        elif equals and (node or key in COUNTS or key == "kernelpagesize_kB"):
            if not (value.isdecimal() and len(value) <= _LONGEST_NUMBER):
                raise ReadError(source, line, f"expected a number after {key}=, got {quote(value)}; {CUT}")
            if (node and int(node[1]) in nodes) or key in counts:
                raise ReadError(source, line, f"{key}= for the second time in this line; was it changed?")
            if node:
                nodes[int(node[1])] = int(value)
            elif key in COUNTS:
                counts[key] = int(value)
            else:
                page_kb = int(value)
        elif not counts and not nodes and not name and len(policy) < 2:
            # "prefer (many):0" and "weighted interleave:0-1" are policies of two words
            policy.append(token)
        else:
            raise ReadError(source, line, f"expected key=number, got {quote(token)}; {CUT}")
    if nodes and sized and not page_kb:
        raise ReadError(source, line, f"expected kernelpagesize_kB= at the end, as other lines have it; {CUT}")
    return Mapping(start, " ".join(policy), name, huge, counts, nodes, page_kb or 4, line)
