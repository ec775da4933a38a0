"""Reader of the machine's nodes: ``numactl -H``, sysfs (cpulist, distance) and the NUMA lines of lscpu.

Node numbers may have gaps, nodes may lack CPUs or memory, distances may differ with the direction. CPUs come as numbers
or ranges ("0-91,184"), and their list may be wrapped. What a text begins in the middle of is read as far as it goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from numalab.readers._numbers import ungrouped
from numalab.readers._placed import Labels, Placed, placed
from numalab.readers._text import CUT, FromText, ReadError, Skipped, quote

_AVAILABLE = re.compile(r"\s*available: (?P<count>\d{1,6}) nodes? \((?P<nodes>[\d,\- ]+)\)\s*$")
_CPUS = re.compile(r"\s*(?:node (?P<node>\d{1,6}) cpus:|NUMA node(?P<lscpu>\d{1,6}) CPU\(s\):)(?P<list>[\d,\-\s]*)$")
_MEMORY = re.compile(r"\s*node (?P<node>\d{1,6}) (?P<what>size|free):\s+(?P<mb>\d{1,12}) (?P<unit>[MG])B\s*$")
_DISTANCES = re.compile(r"\s*node distances:\s*$")
_HEAD = re.compile(r"\s*node\s+\d{1,6}(?:\s+\d{1,6})*\s*$")
_ROW = re.compile(r"\s*(?P<node>\d{1,6}):\s+(?P<values>\d{1,6}(?:\s+\d{1,6})*)\s*$")
_MORE = re.compile(r"\s*\d[\d,\-\s]*$")
_UNKNOWN = re.compile(r"\s*node distances? not available|\s*No distance information available")
_LSCPU = re.compile(r"\s*NUMA node\(s\):\s+(\d+)\s*$")
_OF_FILE = re.compile(r"(?:^|/)node(?P<node>\d{1,6})/(?P<what>cpulist|distance)$")
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?$")
#: More CPUs than any machine has: a number with digits too many must not fill the memory.
_MOST_CPUS = 1 << 16


@dataclass
class Sample:
    """The nodes at one moment.

    Attributes
    ----------
    line : int
    label : str
        Last other text above it.
    nodes : list of int
        All that are named, in ascending order once read.
    cpus : dict
        Node -> its CPUs; a node is absent where the text does not say.
    size_mb, free_mb : dict
        Node -> MB.
    distance : dict
        (node, node) -> SLIT distance.
    """

    line: int
    label: str = ""
    nodes: list[int] = field(default_factory=list)
    cpus: dict[int, list[int]] = field(default_factory=dict)
    size_mb: dict[int, int] = field(default_factory=dict)
    free_mb: dict[int, int] = field(default_factory=dict)
    distance: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class Report(FromText):
    """What a text held: samples in its order, and the lines that were not used."""

    samples: list[Sample] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds numactl -H, or cpulist and distance of sysfs."""
    every = placed(text)
    return any(is_known(line) for line in every) or any(_is_matrix(*pair) for pair in pairwise(every))


def is_known(line: Placed) -> bool:
    """Tell whether a line is of these and of nothing else."""
    if line.heading:
        return _OF_FILE.search(line.file) is not None and line.text.startswith(("==>", "Path:"))
    return (
        _OF_FILE.search(line.file) is not None
        or any(pattern.match(line.text) for pattern in (_AVAILABLE, _CPUS, _DISTANCES, _UNKNOWN, _LSCPU))
        or _memory(line) is not None
    )


def _memory(line: Placed) -> re.Match[str] | None:
    return _MEMORY.match(ungrouped(line.text))


def is_row(line: Placed) -> bool:
    """Tell whether a line may belong to one of these: rows of distances, more CPUs."""
    return is_known(line) or (not line.heading and any(pattern.match(line.bare) for pattern in (_HEAD, _ROW, _MORE)))


def _is_matrix(before: Placed, line: Placed) -> bool:
    """Tell whether two lines are the head of a table of distances and its first row, without the title."""
    return _HEAD.match(before.text) is not None and _ROW.match(line.bare) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read the nodes, once or several times.

    Raises
    ------
    ReadError
        Nothing of the kind; a table of distances with rows or numbers missing, or with another diagonal than 10; a CPU
        on two nodes; other nodes than announced; a range of CPUs that runs backwards.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    for line in placed(text, source):
        reader.take(line)
    reader.end()
    reader.labels.finish()
    reader.report.samples = [sample for sample in reader.report.samples if sample.nodes]
    if not reader.report.samples:
        problem = "holds no nodes of a machine; expected numactl -H, lines like 'node 0 cpus: 0 1 2 3'"
        raise ReadError(source, 0, problem)
    return reader.report


class _Reader:
    """State while reading: the sample, the list of CPUs that may go on, the table of distances."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.sample: Sample | None = None
        self.labels = Labels(report.skipped, report.titles, "not a line of numactl -H or of a node's files")
        self.announced: tuple[int, list[int]] | None = None
        self.open_cpus: int | None = None
        self.columns: list[int] = []
        self.rows: dict[int, list[int]] = {}
        self.row = -1
        self.matrix_line = 0
        #: Rows that sysfs gives without naming their columns: node -> distances.
        self.files: dict[int, list[int]] = {}
        self.file_lines: list[Placed] = []

    def fail(self, line: int, problem: str) -> ReadError:
        return ReadError(self.report.source, line, problem)

    def take(self, line: Placed) -> None:
        text, open_cpus = line.text, self.open_cpus
        self.open_cpus = None
        of_file = _OF_FILE.search(line.file)
        if line.heading:
            self.heading(line, of_file)
        elif of_file:
            self.file_line(line, of_file)
        elif not text.strip() or _UNKNOWN.match(text) or _LSCPU.match(text):
            return
        elif available := _AVAILABLE.match(text):
            self.end()
            self.announced = (line.number, self.cpu_list(available["nodes"], line))
            sample = self.begin(line)
            sample.nodes += self.announced[1]
            if len(sample.nodes) != int(available["count"]):
                raise self.fail(
                    line.number, f"announces {available['count']} nodes, but names {len(sample.nodes)}; {CUT}"
                )
        elif cpus := _CPUS.match(text):
            node = int(cpus["node"] or cpus["lscpu"])
            self.see(line, node, "cpus")
            self.add_cpus(node, cpus["list"], line)
        elif memory := _memory(line):
            sample = self.see(line, int(memory["node"]), memory["what"])
            mb = int(memory["mb"]) * (1024 if memory["unit"] == "G" else 1)
            (sample.size_mb if memory["what"] == "size" else sample.free_mb)[int(memory["node"])] = mb
        elif _DISTANCES.match(text):
            self.begin(line)
            self.columns, self.rows, self.matrix_line = [], {}, line.number
        elif _HEAD.match(text):
            if self.sample is None or self.sample.distance or self.rows:
                self.end()
            self.begin(line)
            self.columns, self.rows, self.row = [int(node) for node in text.split()[1:]], {}, -1
            self.matrix_line = self.matrix_line or line.number
        elif self.columns and (row := _ROW.match(line.bare)):
            self.distances(line, int(row["node"]), row["values"])
        elif open_cpus is not None and _MORE.match(text):
            self.add_cpus(open_cpus, text, line)
        elif self.columns and self.row >= 0 and _MORE.match(text) and len(self.rows[self.row]) < len(self.columns):
            self.distances(line, self.row, text)
        elif self.columns and self.row < 0 and _MORE.match(text):
            self.columns += [int(node) for node in text.split()]
        else:
            self.labels.offer(line)

    # ------------------------------------------------------------ samples

    def begin(self, line: Placed) -> Sample:
        if self.sample is None:
            self.sample = Sample(line.number, self.labels.take())
            self.report.samples.append(self.sample)
        self.labels.drop()
        return self.sample

    def see(self, line: Placed, node: int, what: str) -> Sample:
        """Return the sample for a value of a node, a new one if this value was there already."""
        if self.sample is not None:
            sample = self.sample
            if node in {"cpus": set(sample.cpus), "size": set(sample.size_mb), "free": set(sample.free_mb)}[what]:
                self.end()
        sample = self.begin(line)
        if node not in sample.nodes:
            if self.announced:
                raise self.fail(
                    line.number, f"node {node} is not among those announced in line {self.announced[0]}; {CUT}"
                )
            sample.nodes.append(node)
        return sample

    def heading(self, line: Placed, of_file: re.Match[str] | None) -> None:
        if of_file and of_file["what"] == "cpulist":
            # the file of a node without CPUs is empty
            sample = self.see(line, int(of_file["node"]), "cpus") if not self.has_cpus(of_file) else self.begin(line)
            sample.cpus.setdefault(int(of_file["node"]), [])
        elif line.text.lstrip().startswith(("$", "#", "[")) and "numactl" in line.text:
            self.end()

    def has_cpus(self, of_file: re.Match[str]) -> bool:
        return self.sample is not None and int(of_file["node"]) in self.sample.cpus

    def file_line(self, line: Placed, of_file: re.Match[str]) -> None:
        node = int(of_file["node"])
        if of_file["what"] == "cpulist":
            sample = self.begin(line)
            if node not in sample.nodes:
                sample.nodes.append(node)
            self.add_cpus(node, line.text, line)
            self.open_cpus = None
        elif line.text.strip():
            if not re.fullmatch(r"\s*\d{1,6}(?:\s+\d{1,6})*\s*", line.text):
                raise self.fail(line.number, f"expected the distances of node {node}, got {quote(line.text)}; {CUT}")
            sample = self.begin(line)
            if node not in sample.nodes:
                sample.nodes.append(node)
            self.files[node] = [int(value) for value in line.text.split()]
            self.file_lines.append(line)
            self.matrix_line = self.matrix_line or line.number

    def end(self) -> None:
        """Finish a sample: check its distances, and put its nodes in order."""
        sample, self.sample = self.sample, None
        if sample is not None:
            sample.nodes = sorted({*sample.nodes, *self.columns, *self.files})
            self.end_matrix(sample)
        self.announced, self.columns, self.rows, self.row, self.matrix_line = None, [], {}, -1, 0
        self.files, self.file_lines = {}, []

    # ------------------------------------------------------------ CPUs and distances

    def cpu_list(self, text: str, line: Placed) -> list[int]:
        found: list[int] = []
        for part in text.replace(",", " ").split():
            match = _RANGE.match(part)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if last < first or last >= _MOST_CPUS:
                raise self.fail(line.number, f"expected numbers or ranges such as 0-7, got {quote(part)}; {CUT}")
            found += range(first, last + 1)
        return found

    def add_cpus(self, node: int, text: str, line: Placed) -> None:
        sample = self.begin(line)
        cpus = self.cpu_list(text, line)
        for other, known in sample.cpus.items():
            if twice := set(known) & set(cpus):
                raise self.fail(line.number, f"CPU {min(twice)} is on node {other} and on node {node}; {CUT}")
        sample.cpus.setdefault(node, []).extend(cpus)
        self.open_cpus = node

    def distances(self, line: Placed, node: int, values: str) -> None:
        if node != self.row and node in self.rows:
            raise self.fail(
                line.number, f"the row of node {node} for the second time; is a head missing between two tables?"
            )
        self.row = node
        row = self.rows.setdefault(node, [])
        row += [int(value) for value in values.split()]
        if len(row) > len(self.columns):
            raise self.fail(
                line.number, f"expected {len(self.columns)} distances as in the head, got {len(row)}; {CUT}"
            )

    def end_matrix(self, sample: Sample) -> None:
        columns, rows = (self.columns, self.rows) if self.columns else (sorted(self.files), self.files)
        if not rows:
            return
        where = self.matrix_line
        if not self.columns and any(len(row) != len(columns) for row in rows.values()):
            if not all(len(row) == len(sample.nodes) for row in rows.values()):
                why = f"{len(rows)} nodes' distances, but not of all nodes: which node each number is of is not said"
                self.report.skipped += [Skipped(line.number, line.text, why) for line in self.file_lines]
                return
            columns = sample.nodes
        short = [node for node, row in rows.items() if len(row) != len(columns)]
        lost = [node for node in columns if node not in rows] if self.columns else []
        if short or lost:
            what = (
                f"node {short[0]} has {len(rows[short[0]])} distances"
                if short
                else f"the row of node {lost[0]} is missing"
            )
            raise self.fail(
                where, f"expected {len(columns)} distances for each of {len(columns)} nodes, but {what}; {CUT}"
            )
        for node, row in rows.items():
            sample.distance |= {(node, other): value for other, value in zip(columns, row, strict=True)}
        wrong = [node for node in rows if sample.distance.get((node, node)) != 10]
        if wrong:
            got = sample.distance.get((wrong[0], wrong[0]))
            raise self.fail(where, f"the distance of node {wrong[0]} to itself is 10 by definition, got {got}; {CUT}")
