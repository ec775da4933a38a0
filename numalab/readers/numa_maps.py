"""Reader of /proc/PID/numa_maps: where the pages of each mapping lie.

One line per mapping: start address, memory policy, what is mapped, counts of pages, pages on each node.
Pages have the size the line names, 4 KiB where it names none (as Linux before 3.13 prints).
"""

import re
from dataclasses import dataclass, field

from numalab.readers._text import CUT, ReadError, Skipped, quote, records

#: Counts a line may carry beside N<node>=<pages>.
COUNTS = ("anon", "dirty", "mapped", "mapmax", "swapcache", "active", "writeback")

_LINE = re.compile(r"\s*(?:>\s*)*([0-9a-f]{8,16}) +(\S.*)$")
_NODE = re.compile(r"N(\d+)$")
_OCTAL = re.compile(r"\\([0-7]{3})")
_KNOWN = re.compile(
    r"(?m)^[\s>]*[0-9a-f]{8,16} (?:default|prefer|bind|interleave|local|weighted)\S*.*(?: N\d+=\d+| file=| heap| stack)"
)


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
    """The mappings of one process at one moment; time None, pid -1 and comm "" when not stated."""

    time: float | None
    pid: int
    comm: str
    mappings: tuple[Mapping, ...]
    line: int


@dataclass
class Report:
    """What a text held: processes in the order of time, and the lines that were not used."""

    source: str
    lines: int
    processes: list[Process] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of numa_maps."""
    return _KNOWN.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read one numa_maps, or a log of them after stamps ``@ <seconds> pid=<n> comm=<name>``.

    Raises
    ------
    ReadError
        Nothing of the kind; a mapping whose pages have no size, while others have; in a log any other line.
    """
    report = Report(source, len(text.splitlines()))
    sized = " kernelpagesize_kB=" in text
    for record in records(text, source):
        mappings = []
        for number, line in record.lines:
            match = _LINE.match(line)
            if match is not None:
                mappings.append(_mapping(int(match[1], 16), match[2], number, source, sized))
            elif record.time is not None:
                raise ReadError(source, number, f"expected '<address> <policy> ...', got {quote(line)}; {CUT}")
            else:
                report.skipped.append(Skipped(number, line, "not a line of numa_maps"))
        pid, comm = _owner(record.fields, source, record.line) if record.time is not None else (-1, "")
        if mappings or record.time is not None:
            first = record.line or mappings[0].line
            report.processes.append(Process(record.time, pid, comm, tuple(mappings), first))
    if not any(process.mappings for process in report.processes):
        raise ReadError(source, 0, "holds no line of numa_maps; expected '7f7a35e00000 default anon=4096 N0=4096'")
    return report


def _owner(fields: dict[str, str], source: str, line: int) -> tuple[int, str]:
    if not fields.get("pid", "").isdecimal():
        raise ReadError(source, line, f"expected '@ <seconds> pid=<n> comm=<name>', got {fields or 'no pid'}")
    return int(fields["pid"]), fields.get("comm", "")


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
            if not value.isdecimal():
                raise ReadError(source, line, f"expected a number after {key}=, got {quote(value)}; {CUT}")
            if node:
                nodes[int(node[1])] = int(value)
            elif key in COUNTS:
                counts[key] = int(value)
            else:
                page_kb = int(value)
        elif not counts and not nodes and not name:
            # "prefer (many):0" and "weighted interleave:0-1" are policies of two words
            policy.append(token)
        else:
            raise ReadError(source, line, f"expected key=number, got {quote(token)}; {CUT}")
    if nodes and sized and not page_kb:
        raise ReadError(source, line, f"expected kernelpagesize_kB= at the end, as other lines have it; {CUT}")
    return Mapping(start, " ".join(policy), name, huge, counts, nodes, page_kb or 4, line)
