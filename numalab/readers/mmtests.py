"""Reader of the comparison tables of MMTests, old and new, for any number of kernels.

A row holds a label and, for each kernel, a value; most rows have behind each value how much better it is than that
of the first kernel, in percent: less time is better, more throughput is, so the sign alone does not say whether the
value rose. Newer versions print ``*`` in place of the brackets where Welch's test sees a difference at 5 %. The
rows of /proc/vmstat and of run times ("Ops", "Duration") have no percent; where they have no head either, the
kernels are those of the table above. "NUMA hint local faults %" is a count.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from numalab.readers import _cells, _tables
from numalab.readers._paste import Line, plain_lines
from numalab.readers._text import ReadError, Skipped

#: First words of labels that say what of the runs a row holds.
STATISTICS = (
    *("Min", "Max", "Amean", "Hmean", "Gmean", "Stddev", "CoeffVar", "SubAmean", "SubHmean", "SubmeanCI", "Samples"),
    *("1st-qrtle", "2nd-qrtle", "3rd-qrtle", "Duration", "Ops", "Lat", "Time", "Mean"),
)
_WITH_SHARE = re.compile(r"(?:BAmean|BHmean|Max|Min|Samples)-\S+$")

_NUMBER = r"-?(?:\d{1,20}(?:\.\d{1,9})?|nan|NaN)"
_PERCENT = r"-?(?:\d{1,20}(?:\.\d{1,9})?|nan|NaN|[Ii]nf)"
_CHANGED = rf"{_NUMBER}\s*(?:\(\s*{_PERCENT}%\)|\*\s*{_PERCENT}%\*)"
_ROW = re.compile(rf"\s*(?P<label>\S.*?)\s+(?P<cells>{_CHANGED}(?:\s+{_CHANGED})*)\s*$")
_CELL = re.compile(rf"(?P<value>{_NUMBER})\s*(?P<mark>[(*])\s*(?P<percent>{_PERCENT})%[)*]")
#: Label and plain numbers, or all of them with "%"; how many of them are columns the table decides.
_PLAIN = re.compile(rf"\s*(?P<label>[A-Za-z]\S*(?: +\S+)*?)(?P<cells>(?:\s+{_NUMBER})+|(?:\s+{_NUMBER}%)+)\s*$")
#: The rest of a row that was wrapped between two values, or between a value and its percent.
_REST = re.compile(rf"\s*(?:{_NUMBER}|[(*]?\s*{_PERCENT}%[)*])(?:\s+{_NUMBER}|\s*[(*]\s*{_PERCENT}%[)*])*\s*$")
#: How a block of rows without percents is told from other text with numbers: one of its labels begins so.
_KNOWN = re.compile(r"(?:Ops|Duration|User|System|Elapsed|NUMA|AutoNUMA|Minor Faults|Page migrate|THP|Swap Ins)\b")
#: Totals, whose labels end in no number.
_TOTAL = re.compile(
    r"(?:Ops |Duration )?(?:User|System|Elapsed|NUMA|AutoNUMA|Minor Faults|Page migrate|THP|Swap Ins)\b"
)
_OPEN_END = re.compile(r"[(*]\s*-?\d*(?:\.\d*)?%?$")
_WORD = re.compile(r"\S*[A-Za-z0-9]\S*")
_SNIFF_CHANGED = re.compile(rf"(?m)^[ \t>]*+[A-Za-z0-9]\S*\s.*{_NUMBER}\s*\(\s*-?0\.00%\)(?:\s+{_CHANGED})*\s*$")
_OPS = r"(?:NUMA (?:alloc hit|(?:base )?PTE updates|hint faults)|AutoNUMA cost)"
_SNIFF_PLAIN = re.compile(rf"(?m)^[ \t>]*+(?:Ops )?{_OPS}(?:\s+{_NUMBER}){{2,}}\s*$")


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes
    ----------
    statistic : str
        "Amean", "Stddev", "Ops" ...; empty where the label begins with none.
    metric : str
        The rest of the label.
    values : tuple of float
        One for each kernel; NaN as printed.
    changes : tuple of float
        How much better than the first kernel, percent, one for each kernel; empty in rows without.
    significant : tuple of bool
        Where ``*`` marks the change.
    lower_is_better : bool or None
        As the signs of the changes say; None where they do not.
    line : int
    """

    statistic: str
    metric: str
    values: tuple[float, ...]
    changes: tuple[float, ...] = ()
    significant: tuple[bool, ...] = ()
    lower_is_better: bool | None = None
    line: int = 0

    @property
    def label(self) -> str:
        """The label, blanks squeezed."""
        return f"{self.statistic} {self.metric}".strip()


@dataclass
class Table:
    """Rows about the same kernels: where the table begins, the kernels, the rows."""

    line: int
    kernels: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)


#: What a text held: its tables, what was skipped, notes.
Report = _tables.Report[Table]


def looks_like(text: str) -> bool:
    """Tell whether a text holds rows of such a table."""
    plain = "\n".join(line.text for line in plain_lines(text))
    return bool(_SNIFF_CHANGED.search(plain) or _SNIFF_PLAIN.search(plain))


def parse(text: str, source: str = "<text>") -> Report:
    """Read the tables in a mail or paste.

    Parameters
    ----------
    text : str
        Quoted, or wrapped between two numbers.
    source : str
        Name for messages.

    Returns
    -------
    Report
        A row that is cut, has too few columns, or whose percents do not follow from its values is skipped.

    Raises
    ------
    ReadError
        No row at all.
    """
    reader = _Reader(Report(source, len(text.splitlines())), _unwrapped(plain_lines(text)))
    reader.read()
    if not reader.report.tables:
        problem = "holds no row of an MMTests table; expected '<label>  <value> (<percent>%)  ...' or 'Ops <label> ...'"
        first = next((skip for skip in reader.report.skipped if skip.reason != _FOREIGN), None)
        raise ReadError(source, 0, problem + (f" (line {first.line}: {first.reason})" if first else ""))
    return reader.report


_FOREIGN = "not a row of an MMTests table"


def _unwrapped(every: list[Line]) -> list[Line]:
    """Put the rest of a wrapped row behind its beginning."""
    found: list[Line] = []
    for line in every:
        before = found[-1] if found else None
        if before and before.text and _REST.match(line.text) and (_PLAIN.match(before.text) or "%" in before.text):
            found[-1] = Line(before.number, f"{before.text} {line.text.strip()}")
        else:
            found.append(line)
    return found


class _Reader:
    """State while reading: the table that rows belong to, and the lines that may be its head."""

    def __init__(self, report: Report, every: list[Line]) -> None:
        self.report = report
        self.every = every
        self.table: Table | None = None
        self.heads: list[Line] = []
        self.blocks = {pattern: _blocks(every, pattern) for pattern in (_ROW, _PLAIN)}

    def read(self) -> None:
        for at, line in enumerate(self.every):
            if match := _ROW.match(line.text):
                self.changed(at, line, match)
            elif (match := _PLAIN.match(line.text)) and self.is_block(at):
                self.plain(at, line, match)
            elif line.text:
                # a head, until the next line is no row
                self.heads.append(line)
                continue
            self.drop_heads()
        self.drop_heads()
        self.report.skipped.sort(key=lambda skip: skip.line)

    def drop_heads(self) -> None:
        for line in self.heads:
            cut = _CELL.search(line.text) is not None and _OPEN_END.search(line.text) is not None
            self.report.skipped.append(Skipped(line.number, line.text, "row cut off" if cut else _FOREIGN))
        self.heads = []

    def skip(self, line: Line, reason: str) -> None:
        self.report.skipped.append(Skipped(line.number, line.text, reason))

    # ------------------------------------------------------------ columns

    def block(self, at: int, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Return the matches of a line and of those around it without a gap."""
        return self.blocks[pattern][at]

    def is_block(self, at: int) -> bool:
        """Tell whether rows of plain numbers belong to such a table, and not to other text."""
        rows = self.block(at, _PLAIN)
        return any(_KNOWN.match(row["label"]) or _label(_words(row))[0] for row in rows) and self.width(at) > 1

    def width(self, at: int) -> int:
        """Return how many numbers of a plain row are columns: as many as most rows around have."""
        counts = Counter(len(row["cells"].split()) - (row["label"] in STATISTICS) for row in self.block(at, _PLAIN))
        most = max(counts, key=lambda count: (counts[count], count))
        known = self.known()
        # a number at the end of a label is whole
        ends = [_extra(row, known) for row in self.block(at, _PLAIN)] if known < most else [["."]]
        return most if known == 0 or any("." in number for end in ends for number in end) else known

    def known(self) -> int:
        """Return the columns of the head right above, or of the table so far; 0 without."""
        above = self.heads[-1].text if self.heads else ""
        names = _WORD.findall(above) if above[:4].isspace() else []
        if len(names) > 1:
            return len(names)
        return len(self.table.kernels) if self.table else 0

    def under(self, line: Line, edges: list[int]) -> Table:
        """Return the table a row belongs to: under a new head, or as the rows before."""
        columns = len(edges)
        names, used = self.head(line, edges)
        if names is None and self.table is not None and len(self.table.kernels) == columns:
            return self.table
        if names is None:
            names = ("base", *(f"column {i}" for i in range(2, columns + 1)))
            why = "names that can be told apart" if self.heads else "names"
            self.report.notes.append((line.number, f"no {why} above these {columns} columns; numbered from the left"))
        self.heads = self.heads[: len(self.heads) - used]
        self.table = Table(line.number, names)
        self.report.tables.append(self.table)
        return self.table

    def head(self, line: Line, edges: list[int]) -> tuple[tuple[str, ...] | None, int]:
        """Read the one or two lines above a row as names of its columns; how many lines were used."""
        near = [head for head in self.heads[-2:] if head.text[:4].isspace() and _WORD.search(head.text)]
        glued = [_by_prefix(head, len(edges)) for head in near]
        rows = [_cut(head, edges) or parts for head, parts in zip(near, glued, strict=True)]
        if not near or near[-1] is not self.heads[-1] or rows[-1] is None:
            return None, 0
        last = rows[-1]
        if len(near) == 2 and rows[0] is not None:
            return tuple("-".join(filter(None, pair)) for pair in zip(rows[0], last, strict=True)), 2
        # of two lines that ran together the upper one may be lost, and the lower one not tell the kernels apart
        lost = last == glued[-1] and len(set(last)) < len(last)
        return (tuple(last), 1) if all(last) and not lost else (None, 0)

    # ------------------------------------------------------------ rows

    def changed(self, at: int, line: Line, match: re.Match[str]) -> None:
        cells = list(_CELL.finditer(match["cells"]))
        edges = [match.start("cells") + cell.end() for cell in cells]
        width = max(len(_CELL.findall(row["cells"])) for row in self.block(at, _ROW))
        if len(cells) != width:
            self.skip(line, f"expected {width} columns as in the rows around, got {len(cells)}")
            return
        values, percents = [cell["value"] for cell in cells], [cell["percent"] for cell in cells]
        lower = _direction(values, percents)
        if lower == "none":
            self.skip(line, "the percents do not follow from the values, the first being the base; was it changed?")
            return
        statistic, metric = _label(match["label"])
        row = Row(
            statistic,
            metric,
            tuple(map(float, values)),
            tuple(map(float, percents)),
            tuple(cell["mark"] == "*" for cell in cells),
            {"lower": True, "higher": False}.get(lower),
            line.number,
        )
        self.under(line, edges).rows.append(row)

    def plain(self, at: int, line: Line, match: re.Match[str]) -> None:
        width = self.width(at)
        numbers = list(re.finditer(r"\S+", match["cells"]))
        extra = _extra(match, width)
        if len(numbers) < width or any("." in number or _TOTAL.match(match["label"]) for number in extra):
            self.skip(line, f"expected {width} columns as in the rows around, got {len(numbers)}")
            return
        numbers = numbers[-width:]
        edges = [match.start("cells") + number.end() for number in numbers]
        statistic, metric = _label(line.text[: match.start("cells") + numbers[0].start()])
        values = tuple(float(number.group().rstrip("%")) for number in numbers)
        self.under(line, edges).rows.append(Row(statistic, metric, values, line=line.number))


def _blocks(every: list[Line], pattern: re.Pattern[str]) -> dict[int, list[re.Match[str]]]:
    """Return for each line that matches the matches of its block: lines that do, one after the other."""
    found: dict[int, list[re.Match[str]]] = {}
    for at, line in enumerate(every):
        if match := pattern.match(line.text):
            found[at] = found.get(at - 1, [])
            found[at].append(match)
    return found


def _words(row: re.Match[str]) -> str:
    """Return label and numbers of a plain row, in words."""
    return " ".join(row.group().split())


def _extra(row: re.Match[str], columns: int) -> list[str]:
    """Return the numbers of a plain row that stand before its columns, and so belong to the label."""
    return row["cells"].split()[: -columns or None] if columns else []


def _cut(line: Line, edges: list[int]) -> list[str] | None:
    """Cut a line of a head into names, by blanks or, where names touch, at the right edges of the columns."""
    words = list(_WORD.finditer(line.text))
    if len(words) == len(edges):
        return [word.group() for word in words]
    names = []
    start = 0
    for i, edge in enumerate(edges):
        end = edge if i < len(edges) - 1 else len(line.text)
        name = line.text[start:end].strip()
        touches = line.text[end - 1 : end + 1].strip() and len(line.text[end - 1 : end + 1].split()) == 1
        field = edges[max(i, 1)] - edges[max(i, 1) - 1] if len(edges) > 1 else edge
        # a name that fills its field may reach beyond it, into the next
        if " " in name or (end != len(line.text) and touches and len(name) >= field):
            return None
        names.append(name)
        start = end
    return names if any(names) and len(words) < len(edges) else None


def _by_prefix(line: Line, columns: int) -> list[str] | None:
    """Cut names that ran into each other where they all begin alike: "rc6-stats-v5r1rc6-thp-v5r1"."""
    text = line.text.strip()
    prefix = re.match(r"\w+-", text)
    if prefix is None:
        return None
    names = [name.strip() for name in re.split(rf"(?={re.escape(prefix[0])})", text) if name.strip()]
    return names if len(names) == columns and not any(" " in name for name in names) else None


def _label(text: str) -> tuple[str, str]:
    first, _, rest = " ".join(text.split()).partition(" ")
    known = first in STATISTICS or _WITH_SHARE.match(first)
    return (first, rest) if known and rest else ("", " ".join(text.split()))


def _direction(values: list[str], percents: list[str]) -> str:
    """Tell which way is better by the signs: lower, higher, either (no change), or none (they contradict)."""
    fits = {"lower": True, "higher": True}
    base = values[0]
    if float(percents[0]) != 0:
        return "none"
    for value, percent in zip(values[1:], percents[1:], strict=True):
        if not all(map(_finite, (base, value, percent))) or float(base) == 0 or float(value) == 0:
            continue  # fixed values stand for what has no percent
        unsigned = percent.lstrip("-")
        for way, sign in (("lower", -1), ("higher", 1)):
            change = f"{sign * float(percent):+.{len(unsigned.partition('.')[2])}f}"
            fits[way] &= _cells.follows(base, value, change, absolute=False)
    good = [way for way, fit in fits.items() if fit]
    return good[0] if len(good) == 1 else "either" if good else "none"


def _finite(printed: str) -> bool:
    return printed.lower().lstrip("-") not in {"nan", "inf"}
