"""Reader of /sys/devices/system/node/nodeN/meminfo: what the memory of each node is used for, in kB.

Lines ``Node 0 MemTotal:  134182340 kB``; numbers of huge pages have no unit. Pastes of several nodes, in any frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._numbers import GROUPED, number
from numalab.readers._placed import Labels, Placed, placed
from numalab.readers._text import FromText, ReadError

_LINE = re.compile(
    rf"\s*Node (?P<node>\d{{1,6}}),? (?P<name>[A-Z][\w()]*):\s+(?P<value>{GROUPED})(?: (?P<unit>kB))?\s*$"
)
#: Digits and marks between them.
_LONGEST_NUMBER = 20


@dataclass
class Report(FromText):
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    samples : list of dict
        Node -> name -> kB, or number of huge pages. A name that comes again begins the next sample.
    first : list of int
        Line of each sample.
    labels : list of str
        Last other text above each sample.
    units : dict
        Name -> "kB" or "1".
    skipped : list of Skipped
    """

    samples: list[dict[int, dict[str, int]]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    titles: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of a node's meminfo."""
    return any(is_known(line) for line in placed(text))


def is_known(line: Placed) -> bool:
    """Tell whether a line is of a node's meminfo."""
    return not line.heading and _LINE.match(line.bare) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read the files of one or more nodes.

    Raises
    ------
    ReadError
        No such line.
    """
    report = Report(source, len(text.splitlines()))
    labels = Labels(report.skipped, report.titles, "not a line of a node's meminfo")
    for line in placed(text, source):
        match = None if line.heading else _LINE.match(line.bare)
        value = number(match["value"]) if match and len(match["value"]) <= _LONGEST_NUMBER else None
        if line.heading:
            continue
        if match is None or not isinstance(value, int):
            if line.text.strip():
                labels.offer(line)
            continue
        node, name = int(match["node"]), match["name"]
        if not report.samples or name in report.samples[-1].get(node, {}):
            report.samples.append({})
            report.first.append(line.number)
            report.labels.append(labels.take())
        labels.drop()
        report.samples[-1].setdefault(node, {})[name] = value
        report.units[name] = match["unit"] or "1"
    labels.finish()
    if not report.samples:
        raise ReadError(source, 0, "holds no meminfo of a node; expected lines like 'Node 0 MemFree: 53030372 kB'")
    return report
