"""Reader of the tool numastat's tables of memory in MB: ``numastat -p`` (processes) and ``numastat -m`` (system).

``-p`` of one process has a row for each class of memory (Huge, Heap, Stack, Private, Total), of several processes a row
each and a total; ``-m`` a row for each line of the nodes' meminfo. ``-c`` leaves out decimals and blanks, so that sums
may be off by one. Nodes that do not fit into the line are folded into further blocks of columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from numalab.readers._placed import Placed, placed
from numalab.readers._text import CUT, FromText, ReadError, Skipped, quote
from numalab.readers.node_numastat import RULE, head_nodes, numbers

PROCESSES = re.compile(
    r"\s*Per-node process memory usage \(in MBs\)(?: for PID (?P<pid>\d{1,10})(?: \((?P<comm>.*)\))?)?:?\s*$"
)
SYSTEM = re.compile(r"\s*Per-node system memory usage \(in MBs\):?\s*$")
CLASSES = ("Huge", "Heap", "Stack", "Private", "Total")
#: Rows of ``-m`` by which it is known when its title is cut off.
_MEMINFO = [
    "MemTotal",
    "MemFree",
    "MemUsed",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "Dirty",
    "Writeback",
    "FilePages",
    "Mapped",
    "AnonPages",
    "Shmem",
    "KernelStack",
    "ShadowCallStack",
    "PageTables",
    "SecPageTables",
    "NFS_Unstable",
    "Bounce",
    "WritebackTmp",
    "KReclaimable",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "FileHugePages",
    "FilePmdMapped",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Surp",
    "Unaccepted",
]
_CELLS = r"(?P<values>\d[\d.,]*(?:\s+\d[\d.,]*)+)$"
_CLASS_ROW = re.compile(rf"\s*(?P<name>{'|'.join(CLASSES)})\s+{_CELLS}")
_SYSTEM_ROW = re.compile(rf"\s*(?P<name>{'|'.join(map(re.escape, _MEMINFO))})\s+{_CELLS}")
#: A name in brackets may be cut off by the width of the column.
_PROCESS_ROW = re.compile(rf"\s*(?P<pid>\d{{1,10}})\s+(?:\((?P<comm>.*?)\)?|(?P<plain>[^\d(]\S*))\s+{_CELLS}")


@dataclass
class Usage:
    """One table.

    Attributes
    ----------
    kind : {"processes", "classes", "system"}
        What its rows are: processes, classes of one process's memory, lines of meminfo.
    line : int
    nodes : list of int
    rows : dict
        Name (pid of processes) -> node -> MB.
    totals : dict
        Name -> the total as printed, MB.
    pid, comm : int, str
        Of "classes"; -1 and "" when not stated.
    comms : dict
        pid -> name, of "processes".
    """

    kind: str
    line: int
    nodes: list[int] = field(default_factory=list)
    rows: dict[str, dict[int, float]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    pid: int = -1
    comm: str = ""
    comms: dict[str, str] = field(default_factory=dict)


@dataclass
class Report(FromText):
    """What a text held: tables in its order, and the lines that were not used."""

    tables: list[Usage] = field(default_factory=list)


def looks_like_processes(text: str) -> bool:
    """Tell whether a text holds a table of ``numastat -p``."""
    return any(is_process_line(line) for line in placed(text))


def looks_like_system(text: str) -> bool:
    """Tell whether a text holds a table of ``numastat -m``."""
    return any(is_system_line(line) for line in placed(text))


def is_process_line(line: Placed) -> bool:
    """Tell whether a line is of ``numastat -p`` and of nothing else."""
    return not line.heading and (
        PROCESSES.match(line.text) is not None
        or (line.text.lstrip().startswith("PID ") and bool(head_nodes(line.text)))
        or (_CLASS_ROW.match(line.bare) is not None and not line.text.lstrip().startswith("Total"))
    )


def is_system_line(line: Placed) -> bool:
    """Tell whether a line is of ``numastat -m`` and of nothing else."""
    return not line.heading and (SYSTEM.match(line.text) or _SYSTEM_ROW.match(line.bare)) is not None


def is_row(line: Placed) -> bool:
    """Tell whether a line may belong to one of the tables."""
    if line.heading:
        return False
    rows = (_CLASS_ROW, _PROCESS_ROW, _SYSTEM_ROW)
    return any(row.match(line.bare) for row in rows) or bool(head_nodes(line.text)) or RULE.match(line.text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read the tables.

    Raises
    ------
    ReadError
        No table; a row with fewer numbers than there are nodes; a row twice.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    for line in placed(text, source):
        reader.take(line)
    reader.report.tables = [table for table in reader.report.tables if table.rows]
    if not reader.report.tables:
        problem = (
            "holds no table of numastat; expected 'Node 0 Node 1 Total' and below it rows like 'Heap 0.01 0.00 0.01'"
        )
        raise ReadError(source, 0, problem)
    return reader.report


class _Reader:
    """State while reading: the table and the columns that rows belong to."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.table: Usage | None = None
        self.columns: tuple[int, ...] = ()
        self.total = False

    def take(self, line: Placed) -> None:
        text = line.text
        if line.heading or not text.strip() or RULE.match(text):
            return
        if title := PROCESSES.match(text):
            self.open("processes", line.number)
            if title["pid"]:
                self.open("classes", line.number, int(title["pid"]), title["comm"] or "")
        elif SYSTEM.match(text):
            self.open("system", line.number)
        elif nodes := head_nodes(text):
            self.columns, self.total = nodes, text.rstrip().endswith("Total")
        elif not self.columns or not self.row(line):
            self.report.skipped.append(Skipped(line.number, text, "not a line of a table of numastat"))

    def open(self, kind: str, line: int, pid: int = -1, comm: str = "") -> Usage:
        if self.table is not None and not self.table.rows:
            self.report.tables.pop()
        self.table, self.columns = Usage(kind, line, pid=pid, comm=comm), ()
        self.report.tables.append(self.table)
        return self.table

    def row(self, line: Placed) -> bool:
        """Take a row of the kind that the table has, or that begins another without its title."""
        found = [
            (kind, match)
            for kind, pattern in (("classes", _CLASS_ROW), ("system", _SYSTEM_ROW), ("processes", _PROCESS_ROW))
            if (match := pattern.match(line.bare))
        ]
        if not found:
            return False
        kind, match = found[0]
        name = match.groupdict().get("name") or match["pid"]
        columns = self.columns
        if self.table is None or (self.table.kind != kind and name != "Total"):
            self.open(kind, line.number)
            self.columns = columns
        assert self.table is not None
        values = numbers(match["values"])
        want = len(columns) + self.total
        if values is None or len(values) != want:
            got = len(match["values"].split())
            problem = f"expected {want} numbers, one for each column, got {got} in {quote(line.text)}; {CUT}"
            raise ReadError(self.report.source, line.number, problem)
        self.put(line, name, values)
        if kind == "processes":
            self.table.comms[name] = match["comm"] or match["plain"] or ""
        return True

    def put(self, line: Placed, name: str, values: list[int | float]) -> None:
        table = self.table
        assert table is not None
        if any(node in table.rows.get(name, {}) for node in self.columns):
            problem = f"{name} of node {self.columns[0]} for the second time in one table; is a title missing above it?"
            raise ReadError(self.report.source, line.number, problem)
        row = table.rows.setdefault(name, {})
        for node, value in zip(self.columns, values, strict=False):
            row[node] = float(value)
        table.nodes += [node for node in self.columns if node not in table.nodes]
        if self.total:
            table.totals[name] = float(values[-1])
