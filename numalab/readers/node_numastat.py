"""Reader of /sys/devices/system/node/nodeN/numastat: allocation counters per node.

Six lines of name and value per node. Pastes of one file, of ``grep . .../node*/numastat`` (each line
with its path), of files each after a line ``nodeN``, and logs of these after stamps ``@ <seconds>``.
"""

import re
from dataclasses import dataclass, field

from numalab.readers._text import CUT, ReadError, Skipped, quote, records

NAMES = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")

_LINE = re.compile(r"\s*(?:\S*?node(?P<node>\d+)/numastat:)?(?P<name>[a-z_]+)\s+(?P<value>\d+)\s*$")
_NODE = re.compile(r"\s*(?:==> )?(?:\S*/)?node(\d+)(?:/numastat)?(?: <==|:)?\s*$")
_KNOWN = re.compile(r"(?m)^\s*(?:\S*node\d+/numastat:)?(?:local_node|interleave_hit)\s+\d+\s*$")


@dataclass(frozen=True)
class Sample:
    """One look at all nodes: seconds (None without a stamp), node -> name -> value (pages), first line."""

    time: float | None
    nodes: dict[int, dict[str, int]]
    line: int


@dataclass
class Report:
    """What a text held: samples in the order of time, and the lines that were not used."""

    source: str
    lines: int
    samples: list[Sample] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of a node's numastat file."""
    return _KNOWN.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read the files of one or more nodes, once or in a log.

    A single file does not say its node: it is taken as node 0, and the report says so.

    Raises
    ------
    ReadError
        Nothing of the kind; a counter twice; a node that lacks one of the six; a sample that lacks a node.
    """
    report = Report(source, len(text.splitlines()))
    for record in records(text, source):
        nodes: dict[int, dict[str, int]] = {}
        node: int | None = None
        for number, line in record.lines:
            header, match = _NODE.match(line), _LINE.match(line)
            if header:
                node = int(header[1])
                nodes.setdefault(node, {})
            elif match and match["name"] in NAMES:
                node = int(match["node"]) if match["node"] else node
                if node is None:
                    node = 0
                    report.skipped.append(Skipped(number, line, "no node named before this line: taken as node 0"))
                counters = nodes.setdefault(node, {})
                if match["name"] in counters:
                    raise ReadError(source, number, f"{match['name']} of node {node} for the second time; {CUT}")
                counters[match["name"]] = int(match["value"])
            elif record.time is not None:
                raise ReadError(
                    source, number, f"expected nodeN or one of {', '.join(NAMES)}, got {quote(line)}; {CUT}"
                )
            else:
                report.skipped.append(Skipped(number, line, "not a line of a node's numastat"))
        if nodes or record.time is not None:
            report.samples.append(Sample(record.time, nodes, record.line or record.lines[0][0]))
    _check(report)
    return report


def _check(report: Report) -> None:
    if not any(sample.nodes for sample in report.samples):
        raise ReadError(report.source, 0, "holds no numastat of a node; expected lines like 'local_node 1234'")
    first = report.samples[0]
    for sample in report.samples:
        for node in first.nodes:
            lost = [name for name in NAMES if name not in sample.nodes.get(node, {})]
            if lost:
                raise ReadError(report.source, sample.line, f"node {node} lacks {', '.join(lost)}; {CUT}")
