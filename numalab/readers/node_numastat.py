"""Reader of allocation counters per node: /sys/devices/system/node/nodeN/numastat and the tool numastat.

The files: six lines of name and value per node; pastes of one file, of ``grep . .../node*/numastat`` (each line with
its path), of files each after a line that names its node, and logs of these after stamps ``@ <seconds>``.
The tool: a column per node, as ``numastat`` and ``pcp numastat`` (old and new) print it (pages), or ``numastat -n``
and ``-c`` (MB, names with capitals, a column with the total); more nodes than fit are folded into further columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._numbers import number
from numalab.readers._placed import Labels, Placed, clock, placed, unwrapped
from numalab.readers._text import CUT, FromText, ReadError, Skipped, quote, records

NAMES = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")

_LINE = re.compile(r"\s*(?:\S*?node(?P<node>\d{1,6})/numastat:)?(?P<name>[a-z_]+)\s+(?P<value>\d{1,18})\s*$")
_NODE = re.compile(r"\s*(?:==> )?(?:\S*/)?node(\d{1,6})(?:/numastat)?(?: <==|:)?\s*$")
_OF_FILE = re.compile(r"(?i)(?:^|/)node ?(\d{1,6})(?:/numastat)?$")
_ROW = re.compile(
    rf"(?i)\s*(?P<name>{'|'.join(NAMES)}|(?:hit|miss|foreign)(?=\s+:))(?:\s*[:=])?\s+"
    r"(?P<values>\d[\d.,]*(?:\s+\d[\d.,]*)*)$"
)
#: Heads of columns of numastat in all its forms.
HEAD = re.compile(r"\s*(?:PID\s+)?(?P<nodes>[Nn]ode ?\d{1,6}(?:\s+[Nn]ode ?\d{1,6})*)(?P<total>\s+Total)?\s*$")
#: The head of plain numastat; those of its other forms begin with a capital.
_NODES = re.compile(r"\s*node\d{1,6}(?:\s+node\d{1,6})+\s*$")
RULE = re.compile(r"\s*-{3,}(?:\s+-{3,})*\s*$")
TITLE = re.compile(r"\s*(?:Per-node numastat info \(in MBs\):?|NUMA memory allocation statistics \(pages\))\s*$")
#: Names that only this file has.
OWN = re.compile(r"(?i)\s*(?:local_node|interleave_hit|other_node)(?:\s*[:=])?\s+\d")
#: Pages of 4 KiB in one MB as numastat counts them.
PER_MB = 256
#: Digits and marks between them; more is no number of pages or MB.
_LONGEST_NUMBER = 20


@dataclass(frozen=True)
class Sample:
    """One look at all nodes.

    Attributes
    ----------
    time : float or None
        Seconds; None without a stamp.
    nodes : dict
        Node -> name -> pages.
    line : int
    label : str
        Last other text before it.
    printed : dict
        Node -> name -> MB, where the tool prints those; empty where it prints pages.
    """

    time: float | None
    nodes: dict[int, dict[str, int]]
    line: int
    label: str = ""
    printed: dict[int, dict[str, float]] = field(default_factory=dict)


@dataclass
class Report(FromText):
    """What a text held: samples in the order of the text, guesses (line, text), and the lines that were not used."""

    samples: list[Sample] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
    guesses: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of a node's numastat file, or of the tool's table of them."""
    return any(is_known(line) for line in placed(text))


def is_table(line: Placed) -> bool:
    """Tell whether a line is of the tool's table and of nothing else."""
    if line.heading:
        return False
    row = _ROW.match(line.bare)
    return bool(TITLE.match(line.text) or _NODES.match(line.text)) or (row is not None and " " in row["values"])


def is_known(line: Placed) -> bool:
    """Tell whether a line is of these files or tables and of no other."""
    if line.heading or _ROW.match(line.bare) is None:
        return is_table(line)
    return is_table(line) or OWN.match(line.bare) is not None or line.name == "numastat"


def is_row(line: Placed) -> bool:
    """Tell whether a line may belong to such a file or table."""
    return not line.heading and (_ROW.match(line.bare) or HEAD.match(line.text) or RULE.match(line.text)) is not None


def head_nodes(text: str) -> tuple[int, ...]:
    """Return the nodes that a head of columns names; empty if the line is none."""
    match = HEAD.match(text)
    return tuple(int(node) for node in re.findall(r"\d+", match["nodes"])) if match else ()


def numbers(text: str) -> list[int | float] | None:
    """Return the numbers in a row; None if one of them is none."""
    found = [number(part) if len(part) <= _LONGEST_NUMBER else None for part in text.split()]
    return None if None in found else [value for value in found if value is not None]


def parse(text: str, source: str = "<text>") -> Report:
    """Read the counters of one or more nodes, once, several times, or in a log.

    A single file does not say its node: it is taken as node 0, and the report says so.

    Raises
    ------
    ReadError
        Nothing of the kind; a row with fewer values than there are columns; a node that lacks names others have; in a
        log any other line, a counter twice, or a sample that lacks a node.
    """
    report = Report(source, len(text.splitlines()))
    if re.search(r"(?m)^@", text):
        _read_log(report, text)
    else:
        _Paste(report).read(placed(text, source))
    if not any(sample.nodes for sample in report.samples):
        raise ReadError(source, 0, "holds no numastat of a node; expected lines like 'local_node 1234'")
    return report


# ---------------------------------------------------------------- logs


def _read_log(report: Report, text: str) -> None:
    for record in records(text, report.source):
        nodes: dict[int, dict[str, int]] = {}
        node: int | None = None
        for line_number, line in record.lines:
            header, match = _NODE.match(line), _LINE.match(line)
            if header:
                node = int(header[1])
                nodes.setdefault(node, {})
            elif match and match["name"] in NAMES and (match["node"] or node is not None):
                node = int(match["node"]) if match["node"] else node
                assert node is not None
                counters = nodes.setdefault(node, {})
                if match["name"] in counters:
                    problem = f"{match['name']} of node {node} for the second time; {CUT}"
                    raise ReadError(report.source, line_number, problem)
                counters[match["name"]] = int(match["value"])
            else:
                problem = f"expected nodeN or one of {', '.join(NAMES)}, got {quote(line)}; {CUT}"
                raise ReadError(report.source, line_number, problem)
        report.samples.append(Sample(record.time, nodes, record.line or record.lines[0][0]))
    first = report.samples[0]
    for sample in report.samples:
        for node in first.nodes:
            if lost := [name for name in NAMES if name not in sample.nodes.get(node, {})]:
                raise ReadError(report.source, sample.line, f"node {node} lacks {', '.join(lost)}; {CUT}")


# ---------------------------------------------------------------- pastes

#: The rest of a row that was wrapped.
_REST = re.compile(r"\s*\d[\d.,]*(?:\s+\d[\d.,]*)*$")


def _goes_on(text: str, rest: str) -> bool:
    """Tell whether a line is the rest of a wrapped row, or of the head: its nodes come after those above."""
    if _REST.match(rest):
        row = _ROW.match(text)
        return row is not None and " " in row["values"]
    above, more = head_nodes(text), head_nodes(rest)
    return bool(above and more) and above[-1] < more[0] and rest.lstrip().startswith("node")


class _Paste:
    """State while reading a paste: the sample, the node or the columns that lines belong to."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.pages: dict[int, dict[str, int]] = {}
        self.printed: dict[int, dict[str, float]] = {}
        #: Line where each node's values begin.
        self.began: dict[int, int] = {}
        self.columns: tuple[int, ...] = ()
        self.total = False
        self.node: int | None = None
        self.mb = False
        self.first = 0
        self.time: float | None = None
        self.label = ""
        self.labels = Labels(report.skipped, report.titles, "not a line of a node's numastat")

    def read(self, every: list[Placed]) -> None:
        for line in unwrapped(every, _goes_on):
            if line.heading:
                self.heading(line)
            elif TITLE.match(line.text):
                self.mb, self.columns, self.node = "MBs" in line.text, (), None
            elif nodes := head_nodes(line.text):
                self.head(line, nodes)
            elif (seconds := clock(line.text)) is not None:
                self.end()
                self.time = seconds
            elif row := _ROW.match(line.bare):
                self.row(line, row)
            elif line.text.strip() and not RULE.match(line.text):
                self.labels.offer(line)
            elif line.name == "cpulist":  # of a node without CPUs, with nothing behind its name
                self.report.skipped.append(Skipped(line.number, line.text, self.labels.reason))
        self.end()
        self.labels.finish()

    def heading(self, line: Placed) -> None:
        if match := _OF_FILE.search(line.file):
            self.node, self.columns, self.mb = int(match[1]), (), False

    def head(self, line: Placed, nodes: tuple[int, ...]) -> None:
        if len(set(nodes)) < len(nodes):
            raise ReadError(self.report.source, line.number, f"a node comes twice in the head {quote(line.text)}")
        self.columns, self.total, self.node = nodes, "Total" in line.text, None

    def row(self, line: Placed, row: re.Match[str]) -> None:
        values = numbers(row["values"])
        name, columns = row["name"].lower(), self.columns
        name = name if name in NAMES else f"numa_{name}"  # as pcp has it
        own = _OF_FILE.search(line.file)
        if own and not columns:
            self.node = int(own[1])
        if not columns:
            if self.node is None or (not own and name in self.pages.get(self.node, {}) and name == NAMES[0]):
                self.guess_node(line)
            assert self.node is not None
            columns = (self.node,)
        most = len(columns) + (self.total and columns == self.columns)
        if values is None or not len(columns) <= len(values) <= most:
            raise ReadError(self.report.source, line.number, self.expected(line, len(row["values"].split())))
        if any(name in self.pages.get(node, {}) for node in columns):
            self.end()
        mb = self.mb or row["name"][0].isupper()
        if mb and not self.mb and not self.pages:
            self.report.guesses.append(
                (line.number, "names with capitals, as numastat -n and -c print them: taken as MB")
            )
        if not self.pages:
            self.first, self.label = line.number, self.labels.take()
        self.labels.drop()
        for node, value in zip(columns, values, strict=False):
            self.began.setdefault(node, line.number)
            self.pages.setdefault(node, {})[name] = round(value * PER_MB) if mb else round(value)
            if mb:
                self.printed.setdefault(node, {})[name] = float(value)

    def expected(self, line: Placed, got: int) -> str:
        """Say what is wrong with a row that has not one number for each column."""
        if not self.columns and got > 1:
            head = "needs a head like 'node0 node1' above it; take the text again, with its head"
            return f"{quote(line.text)} has {got} numbers and {head}"
        count = len(self.columns) or 1
        each = "one number" if count == 1 else f"{count} numbers, one for each node"
        return f"expected {each}, got {got} in {quote(line.text)}; {CUT}"

    def guess_node(self, line: Placed) -> None:
        """Take a file whose node is not said as the next one, as ``cat node*/numastat`` prints them."""
        self.node = 0 if self.node is None else self.node + 1
        self.report.guesses.append((line.number, f"no node named before this line: taken as node {self.node}"))

    def end(self) -> None:
        """Finish a sample; a node's file that is cut is an error, files of which only some lines were taken are not."""
        if not self.pages:
            return
        names = [name for name in NAMES if any(name in values for values in self.pages.values())]
        for node, values in self.pages.items():
            if lost := [name for name in names if name not in values]:
                problem = f"node {node} lacks {', '.join(lost)}, which other nodes have; {CUT}"
                raise ReadError(self.report.source, self.began[node], problem)
        self.report.samples.append(Sample(self.time, self.pages, self.first, self.label, self.printed))
        self.pages, self.printed, self.began, self.time = {}, {}, {}, None
