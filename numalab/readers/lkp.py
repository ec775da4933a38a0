"""Reader of the comparison tables of LKP, the kernel test robot: today's style and that of 2013 and 2014.

Today (``lkp ncompare``) a row holds the mean over runs for each commit, behind it the standard deviation in
percent of the mean where it is over 2, between two means the change in percent of the first column (without "%":
the difference), and at the end the name of the statistic. In the older style a block is about one statistic, its
rows are tests, and the last row, TOTAL, names the statistic and sums up the column; "~ 3%" stands for "± 3%".
A plus is not "better". How many runs are behind a mean the tables do not say, save beside counted failures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite

from numalab.readers import _cells, _tables
from numalab.readers._paste import Line, plain_lines
from numalab.readers._text import ReadError, Skipped

#: "test" of the row that sums up a block of the older style.
TOTAL = "TOTAL"

_NUMBER = r"-?\d{1,20}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?"
# what becomes of "±" in archives
_SIGN = r"(?:±|\+/-|A?\+-|Â±|\ufffd|~)"
_CELL = rf"{_NUMBER}(?:\s*{_SIGN}\s*\d{{1,9}}\s*%)?"
_CHANGE = r"[+-]\d{1,20}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?(?:%|(?=\s|$))"
_NAME = rf"(?:{TOTAL}\s+)?[A-Za-z_]\S*"
_ROW = re.compile(rf"\s*(?P<cells>{_CELL}(?:\s+{_CHANGE}\s+{_CELL})+)\s+(?P<name>{_NAME})(?P<rest>\s.*)?$")
_FULL_NAME = re.compile(r"\w[./]\w")
#: A row whose rest stands on the next line, cut anywhere between two words.
_BEGUN = re.compile(rf"\s*{_CELL}(?:\s+{_CHANGE}\s+{_CELL})*(?:\s+{_CHANGE})?(?:\s+{_NUMBER})?(?:\s*{_SIGN})?\s*$")
_VALUE = rf"(?P<mean>{_NUMBER})(?:\s*{_SIGN}\s*(?P<stddev>\d{{1,9}})\s*%)?"
_FIRST = re.compile(_VALUE)
_PART = re.compile(rf"\s*(?P<change>{_CHANGE})\s+{_VALUE}")
_FAILURE = re.compile(r"\s*(\d{0,9}:\d{1,9}(?:\s+[+-]?\d+%\s+\d{0,9}:\d{1,9})+)\s+(\S+)$")

_RULE = re.compile(r"\s*(?:-{8,}\s*)+$")
_DOUBLE_RULE = re.compile(r"={20,}$")
_HEAD_WORDS = re.compile(r"\s*(?:(?:%stddev|%change|\\|\||fail:runs|%reproduction)(?:\s+|$))+$")
_AXES = re.compile(r"\s*(?:[\w.-]+(?:/[\w.-]+)+|tbox_group|testcase|test):$")
_COMMIT = re.compile(r"\s*commit:$")
#: A test in front of a statistic's place: machine/suite/test/parameters.
_TEST = re.compile(r"[\w-]+/[^/]+/.")
_CHANGE_INSIDE = re.compile(r"[+-]\d+(?:\.\d+)?%")
#: Lines that one row or head may be wrapped over.
_LONGEST = 4


@dataclass(frozen=True)
class Cell:
    """A mean over runs, and its standard deviation in percent of it; None where it is not printed."""

    mean: float
    stddev_percent: float | None = None


@dataclass(frozen=True)
class Row:
    """One statistic.

    Attributes
    ----------
    stat : str
        Its name, as in ``proc-vmstat.numa_hint_faults``; empty where a block of the older style does not say.
    cells : tuple of Cell
        One for each column.
    changes : tuple of float
        Of each column but the first: percent of the first, or with ``absolute`` the difference.
    absolute : bool
    test : str
        In the older style the test the row is about, or ``TOTAL``.
    line : int
    """

    stat: str
    cells: tuple[Cell, ...]
    changes: tuple[float, ...]
    absolute: bool = False
    test: str = ""
    line: int = 0


@dataclass(frozen=True)
class Failure:
    """A failure, and in how many of how many runs of each column it was seen."""

    name: str
    counts: tuple[tuple[int, int], ...]
    line: int = 0


@dataclass
class Table:
    """Rows under one head.

    Attributes
    ----------
    line : int
        Of the head, or of the first row.
    columns : tuple of str
        What is compared, as in the head ("base", "column 2" where it has none).
    rows : list of Row
    failures : list of Failure
    setup : dict
        Parameters of the test: axis -> value.
    titles : tuple of str
        The lines under "commit:".
    """

    line: int
    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    setup: dict[str, str] = field(default_factory=dict)
    titles: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[int, ...] | None:
        """Runs of each column, where failures are counted."""
        return tuple(runs for _, runs in self.failures[0].counts) if self.failures else None


#: What a text held: its tables, what was skipped, notes.
Report = _tables.Report[Table]


def looks_like(text: str) -> bool:
    """Tell whether a text holds rows of such a table."""
    return any(
        ((row := _ROW.match(line.text)) is not None and (line.joined or not row["rest"])) or _is_begun(line.text)
        for line in plain_lines(text)
    )


def parse(text: str, source: str = "<text>") -> Report:
    """Read the tables in a mail or paste.

    Parameters
    ----------
    text : str
        Quoted, wrapped at blanks, or in quoted-printable.
    source : str
        Name for messages.

    Returns
    -------
    Report
        A row that is cut, has too few columns, or whose change does not follow from its means is skipped.

    Raises
    ------
    ReadError
        No row at all.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    reader.read(plain_lines(text))
    report = reader.report
    report.tables = [table for table in report.tables if table.rows or table.failures]
    if not report.tables:
        problem = "holds no row of an LKP table; expected '<mean> [± n%]  <change>%  <mean> [± n%]  <name>'"
        why = f" (line {report.skipped[0].line}: {report.skipped[0].reason})" if report.skipped else ""
        raise ReadError(source, 0, problem + why)
    if not text.endswith("\n"):
        last = report.tables[-1].rows[-1:]
        if last and last[0].line >= report.lines - 1 and not any(s.line >= last[0].line for s in report.skipped):
            report.notes.append((last[0].line, f"the text ends without a line end; is {last[0].stat} the whole name?"))
    return report


def _is_begun(text: str) -> bool:
    """Tell whether a line is the beginning of a row, as far as a change at least."""
    return _BEGUN.match(text) is not None and _CHANGE_INSIDE.search(text) is not None


class _Reader:
    """State while reading: the table that rows belong to, and the head that is being put together."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.table: Table | None = None
        self.block: list[Row] = []
        self.setup: dict[str, str] = {}
        self.titles: tuple[str, ...] = ()

    def read(self, every: list[Line]) -> None:
        at = 0
        while at < len(every):
            at += self.take(every, at)
        self.end_block()

    def skip(self, line: Line, reason: str) -> int:
        self.report.skipped.append(Skipped(line.number, line.text, reason))
        return 1

    def take(self, every: list[Line], at: int) -> int:
        """Use the line, or with those after it the thing that begins there; return how many were used."""
        line = every[at]
        if not line.text or _DOUBLE_RULE.match(line.text) or _HEAD_WORDS.match(line.text):
            if not line.text:
                self.end_block()
            return 1
        if (found := self.head(every, at)) or (found := self.axes(every, at)) or (found := self.commits(every, at)):
            return found
        if match := _FAILURE.match(line.text):
            return self.failure(line, match)
        for count in range(1, min(_LONGEST, len(every) - at) + 1):
            pieces = every[at : at + count]
            if count > 1 and (not pieces[-1].text or _ROW.match(pieces[-1].text)):
                break
            whole = " ".join(piece.text.strip() for piece in pieces)
            match = _ROW.match(whole)
            # a word on the next line is a name only if it looks like one
            if match and (not match["rest"] or line.joined) and (count == 1 or _FULL_NAME.search(match["name"])):
                return self.row(line, match, count)
            if not _BEGUN.match(whole):
                break
        return self.skip(line, "row cut off or changed" if _is_begun(line.text) else "not a row of an LKP table")

    # ------------------------------------------------------------ heads

    def head(self, every: list[Line], at: int) -> int:
        """Read the names of the columns and the rules under them, wrapped or not."""
        names: list[str] = []
        rules = at
        while rules < len(every) and rules < at + _LONGEST and not _RULE.match(every[rules].text):
            if not every[rules].text or _ROW.match(every[rules].text):
                return 0
            names += every[rules].text.split()
            rules += 1
        end, count = rules, 0
        while end < len(every) and _RULE.match(every[end].text):
            count += len(every[end].text.split())
            end += 1
        if count < 2 or (names and len(names) != count):
            return 0
        self.end_block()
        self.table = Table(every[at].number, self.columns(names, count), setup=self.setup, titles=self.titles)
        self.report.tables.append(self.table)
        return end - at

    def columns(self, names: list[str], count: int) -> tuple[str, ...]:
        """Take names from the list under "commit:" where the head had no room for the whole."""
        names = names or _numbered(count)
        full = [title.split()[0] for title in self.titles]
        if len(full) == len(names) and all(long.startswith(name) for long, name in zip(full, names, strict=True)):
            return tuple(full)
        return tuple(names)

    def axes(self, every: list[Line], at: int) -> int:
        """Read the parameters of the test: their names with slashes between, below it their values."""
        if not _AXES.match(every[at].text):
            return 0
        follow = [i for i in range(at + 1, min(at + 3, len(every))) if every[i].text]
        if not follow:
            return 0
        keys, values = every[at].text.strip(" :").split("/"), every[follow[0]].text.strip().split("/")
        if len(keys) != len(values):
            return 0
        self.setup, self.titles = dict(zip(keys, values, strict=True)), ()
        self.report.titles.append((every[follow[0]].number, ", ".join(f"{k} {v}" for k, v in self.setup.items())))
        return follow[0] - at + 1

    def commits(self, every: list[Line], at: int) -> int:
        """Read the list of what is compared."""
        if not _COMMIT.match(every[at].text):
            return 0
        end = at + 1
        while end < len(every) and every[end].text and not any(_RULE.match(line.text) for line in every[end : end + 2]):
            end += 1
        named = [(line.number, line.text.strip()) for line in every[at + 1 : end]]
        self.titles = tuple(text for _, text in named)
        self.report.titles += named
        return end - at

    # ------------------------------------------------------------ rows

    def failure(self, line: Line, match: re.Match[str]) -> int:
        counts = tuple((int(a or 0), int(b)) for a, b in re.findall(r"(\d*):(\d+)", match[1]))
        table = self.under(line, len(counts))
        if table is None:
            return self.skip(line, f"expected {self.width()} columns as in the head, got {len(counts)}")
        table.failures.append(Failure(match[2], counts, line.number))
        return 1

    def row(self, line: Line, match: re.Match[str], count: int) -> int:
        first = _FIRST.match(match["cells"])
        assert first is not None
        parts = [first, *_PART.finditer(match["cells"], first.end())]
        means, changes = [part["mean"] for part in parts], [part["change"] for part in parts[1:]]
        table = self.under(line, len(parts))
        if table is None:
            self.skip(line, f"expected {self.width()} columns as in the head, got {len(parts)}")
            return count
        if not all(isfinite(float(printed.rstrip("%"))) for printed in [*means, *changes]):
            self.skip(line, "a number is too large; was the line changed?")
            return count
        absolute = not changes[0].endswith("%")
        for new, change in zip(means[1:], changes, strict=True):
            if change.endswith("%") == absolute:
                self.skip(line, "some changes have a % and some not; was the line changed?")
                return count
            if not _cells.follows(means[0], new, change.rstrip("%"), absolute=absolute):
                self.skip(line, f"the change {change} does not follow from {means[0]} and {new}; was the line changed?")
                return count
        name = match["name"].split()
        cells = tuple(Cell(float(p["mean"]), None if p["stddev"] is None else float(p["stddev"])) for p in parts)
        numbers = tuple(float(change.rstrip("%")) for change in changes)
        if match["rest"]:
            self.skip(Line(line.number, match["rest"]), "not a row of an LKP table")
        if name == [TOTAL]:
            self.skip(line, "TOTAL does not say of which statistic; is the line cut off?")
        elif name[0] == TOTAL:
            self.end_block(Row(name[1], cells, numbers, absolute, TOTAL, line.number))
        elif _TEST.match(name[0]):
            self.block.append(Row("", cells, numbers, absolute, name[0], line.number))
        else:
            table.rows.append(Row(name[0], cells, numbers, absolute, "", line.number))
        return count

    def under(self, line: Line, columns: int) -> Table | None:
        """Return the table a row belongs to, a new one where there was no head; None if it does not fit."""
        if self.table is None:
            self.table = Table(line.number, tuple(_numbered(columns)))
            self.report.tables.append(self.table)
        return self.table if len(self.table.columns) == columns else None

    def width(self) -> int:
        return len(self.table.columns) if self.table else 0

    def end_block(self, total: Row | None = None) -> None:
        """Give the rows of a block of the older style the statistic that its last row names."""
        block, self.block = self.block, []
        if self.table is None or not (block or total):
            return
        if total is None:
            self.report.notes.append((block[0].line, "no TOTAL below these tests says which statistic they are about"))
            self.table.rows += block
            return
        stat = total.stat
        self.table.rows += [Row(stat, r.cells, r.changes, r.absolute, r.test, r.line) for r in block] + [total]
        for i, cell in enumerate(total.cells):
            values = [row.cells[i].mean for row in block]
            # seven digits at most are printed, whole numbers may be cut off
            slack = sum(max(1.0, abs(value) * 5e-4) for value in [*values, cell.mean])
            if block and abs(sum(values) - cell.mean) > slack:
                problem = f"TOTAL {stat} is {cell.mean:g} in column {i + 1}, the tests above it sum to {sum(values):g}"
                self.report.notes.append((total.line, f"{problem}; are tests missing?"))
                break


def _numbered(count: int) -> list[str]:
    return ["base", "new"] if count == 2 else ["base", *(f"column {i}" for i in range(2, count + 1))]
