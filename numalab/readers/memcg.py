"""Reader of memory.numa_stat: the memory of a cgroup by node.

Version 1 counts pages: ``total=858067 N0=858067`` and the same with ``hierarchical_`` before the name. Version 2 counts
bytes: ``anon N0=94208 N1=474624000``. Several cgroups or moments may follow each other, told apart by file names before
or above the lines, lines ``cgroup: name`` and ``time: seconds``, or by a name that comes again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._placed import Labels, Placed, clock, placed
from numalab.readers._text import CUT, FromText, ReadError, quote

_LINE = re.compile(r"\s*(?P<name>[a-z_]+)(?:=(?P<total>\d{1,18}))?(?P<nodes>(?:\s+N\d{1,6}=\d{1,18})+)\s*$")
_BEGUN = re.compile(r"\s*[a-z_]+(?:=\d+)?\s+N\d+=\d+\s")
_CGROUP = re.compile(r"\s*cgroup: *(\S+)\s*$")
_OF_FILE = re.compile(r"(?:.*/cgroup/(?:memory/)?|)(?P<cgroup>.*?)/?memory\.numa_stat$")


@dataclass
class Sample:
    """One cgroup at one moment.

    Attributes
    ----------
    line : int
    cgroup : str
        "" when not stated.
    time : float or None
        Seconds since 1970.
    version : {1, 2}
        Of cgroups: 1 counts pages, 2 bytes.
    nodes : dict
        Name -> node -> pages or bytes.
    totals : dict
        Name -> sum over nodes as printed, of version 1.
    """

    line: int
    cgroup: str
    time: float | None
    version: int
    nodes: dict[str, dict[int, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)


@dataclass
class Report(FromText):
    """What a text held: samples in its order, and the lines that were not used."""

    samples: list[Sample] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of memory.numa_stat."""
    return any(is_known(line) for line in placed(text))


def is_known(line: Placed) -> bool:
    """Tell whether a line is of memory.numa_stat."""
    return not line.heading and _LINE.match(line.bare) is not None


def is_row(line: Placed) -> bool:
    """Tell whether a line may stand among those of memory.numa_stat."""
    return is_known(line) or (not line.heading and _CGROUP.match(line.text) is not None)


def parse(text: str, source: str = "<text>") -> Report:
    """Read one or more memory.numa_stat.

    Raises
    ------
    ReadError
        No such line; one that is cut; a total that is not the sum over the nodes.
    """
    report = Report(source, len(text.splitlines()))
    labels = Labels(report.skipped, report.titles, "not a line of memory.numa_stat")
    sample: Sample | None = None
    cgroup, time, file = "", None, ""
    for line in placed(text, source):
        if line.heading or not line.text.strip():
            continue
        if (seconds := clock(line.text)) is not None:
            time, sample = seconds, None
        elif named := _CGROUP.match(line.text):
            cgroup, sample = named[1], None
        elif match := _LINE.match(line.bare):
            version = 1 if match["total"] else 2
            if line.file != file:
                of_file = _OF_FILE.match(line.file)
                cgroup, file, sample = of_file["cgroup"] if of_file else cgroup, line.file, None
            if sample is None or match["name"] in sample.nodes or sample.version != version:
                label = labels.take()
                sample = Sample(line.number, cgroup or label, time, version)
                report.samples.append(sample)
            labels.drop()
            _take(report, sample, match, line)
        elif _BEGUN.match(line.text):
            raise ReadError(source, line.number, f"expected N<node>=<number> to the end, got {quote(line.text)}; {CUT}")
        else:
            labels.offer(line)
    labels.finish()
    if not report.samples:
        raise ReadError(source, 0, "holds no memory.numa_stat; expected lines like 'anon N0=94208 N1=474624000'")
    return report


def _take(report: Report, sample: Sample, match: re.Match[str], line: Placed) -> None:
    nodes = {int(node): int(value) for node, value in re.findall(r"N(\d+)=(\d+)", match["nodes"])}
    sample.nodes[match["name"]] = nodes
    if match["total"]:
        sample.totals[match["name"]] = int(match["total"])
        # the kernel sums up per CPU while others count, so a few pages may be off
        if abs(sum(nodes.values()) - int(match["total"])) > max(64, int(match["total"]) // 100):
            problem = f"the nodes of {match['name']} sum to {sum(nodes.values())}, not to {match['total']}; {CUT}"
            raise ReadError(report.source, line.number, problem)
