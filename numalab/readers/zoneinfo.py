"""Reader of /proc/zoneinfo: free pages, managed pages and watermarks of each zone."""

import re
from dataclasses import dataclass, field

from numalab.readers._paste import plain_lines
from numalab.readers._text import CUT, ReadError, Skipped

_ZONE = re.compile(r"Node (\d+), zone\s+(\w+)\s*$")
_FREE = re.compile(r"\s*pages free\s+(\d+)\s*$")
_VALUE = re.compile(r"\s+(min|low|high|present|managed)\s+(\d+)\s*$")
NAMES = ("free", "min", "low", "high", "present", "managed")


@dataclass
class Zone:
    """One zone: its node, its name, and `NAMES` in pages."""

    node: int
    name: str
    line: int
    pages: dict[str, int] = field(default_factory=dict)


@dataclass
class Report:
    """What a text held: zones in the order of the text. Of their indented lines most are not used."""

    source: str
    lines: int
    zones: list[Zone] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def nodes(self) -> dict[int, dict[str, int]]:
        """Node -> name -> pages, summed over its zones."""
        sums: dict[int, dict[str, int]] = {}
        for zone in self.zones:
            node = sums.setdefault(zone.node, dict.fromkeys(NAMES, 0))
            for name in NAMES:
                node[name] += zone.pages[name]
        return sums


def looks_like(text: str) -> bool:
    """Tell whether a text is a /proc/zoneinfo."""
    return re.search(r"(?m)^[ \t>]*+Node \d+, zone\s+\w+\s*$", text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read a /proc/zoneinfo.

    Raises
    ------
    ReadError
        No zone, or one that lacks some of `NAMES`.
    """
    report = Report(source, len(text.splitlines()))
    for number, line in ((one.number, one.text) for one in plain_lines(text)):
        if head := _ZONE.match(line):
            report.zones.append(Zone(int(head[1]), head[2], number))
        elif not report.zones or (line and not line[0].isspace()):
            if line.strip():
                report.skipped.append(Skipped(number, line, "not a line of /proc/zoneinfo"))
        elif free := _FREE.match(line):
            report.zones[-1].pages["free"] = int(free[1])
        elif value := _VALUE.match(line):
            # "high: 42" of the per-CPU lists has a colon; the watermarks come first
            report.zones[-1].pages.setdefault(value[1], int(value[2]))
    if not report.zones:
        raise ReadError(source, 0, "holds no zone; expected 'Node 0, zone   Normal' and lines below it")
    for zone in report.zones:
        lost = [name for name in NAMES if name not in zone.pages]
        if lost:
            raise ReadError(source, zone.line, f"zone {zone.name} of node {zone.node} lacks {', '.join(lost)}; {CUT}")
    return report
