"""Reader of ``perf stat``: counts of events, with what perf prints beside them.

A run is the rows of one call. Old perf prints a count, the event and ``[100.00%]`` for the share of the time the
counter was scheduled; newer ones a unit before the event, ``# metric`` behind it, ``( +- 0.31% )`` for the relative
standard error of the mean over the runs of ``-r``, and ``(33.65%)``. With ``-I`` a row begins with the time, with
``-A``, ``--per-node`` or ``--per-socket`` with a place. Digits are grouped as the locale has it: by commas, dots, or
the Indian way (``12,27,462``). The relative error of ``-r`` is that of the mean, not the spread of single runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numalab.readers._numbers import GROUPED, number
from numalab.readers._paste import Line, lines
from numalab.readers._reading import Found, Reading, Table, no_run
from numalab.readers._text import FromText, ReadError, Skipped

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "perf-stat"

#: What stands in place of a count.
NOT_SUPPORTED, NOT_COUNTED = "not supported", "not counted"

_UNITS = "msec|nsec|usec|sec|Joules|Watts|MiB|KiB|GiB|MB|GB|C|%"
#: An event as perf names it: software ("cs"), tracepoint ("migrate:mm_migrate_pages"), PMU ("cpu_core/cycles/u").
_EVENT = r"[A-Za-z_][\w.:/,=@*+-]*(?: \((?:msec|nsec)\))?"
_BESIDE = (
    r"(?:\s+#(?P<metric>.*?))?(?:\s*\(\s*(?:\+-|±)\s*(?P<noise>[\d.,]+)%\s*\))?"
    r"(?:\s*[(\[]\s*(?P<share>[\d.,]+)%\s*[)\]])?\s*$"
)
_ROW = re.compile(
    r"\s*(?:(?P<time>\d+[.,]\d{6,})\s+)?"
    r"(?:(?P<place>CPU\d+|[NS]\d+(?:-[A-Z]\d+)*)(?:\s+(?P<cpus>\d+))?\s+)?"
    rf"(?:(?P<count>{GROUPED})|<(?P<lack>{NOT_SUPPORTED}|{NOT_COUNTED})>)\s+"
    rf"(?:(?P<unit>{_UNITS})\s+)?(?P<event>{_EVENT}){_BESIDE}"
)
#: The rest of a row on a line of its own: a further metric, or what a mail program wrapped.
_REST = re.compile(rf"(?=\s*[#(\[]){_BESIDE}")
_ELAPSED = re.compile(
    rf"\s*(?P<value>{GROUPED})(?:\s+(?:\+-|±)\s+(?P<error>{GROUPED}))?\s+seconds\s+(?P<what>time elapsed|user|sys)"
    r"(?:\s*\(\s*(?:\+-|±)\s*(?P<noise>[\d.,]+)%\s*\))?\s*$"
)
_HEAD = re.compile(r"\s*Performance counter stats for (?P<what>.*)$")
_RUNS = re.compile(r"(?P<what>.*?)(?: \((?P<runs>\d{1,9}) runs\))?:$")
_REMARK = re.compile(
    r"\s*#\s*(?:started on .*|Table of individual measurements:|Final result:|time\s+(?:counts|CPU|node|socket).*)$"
)
_SINGLE = re.compile(r"\s*(?P<value>\d+[.,]\d+)\s+\([+-]\d+[.,]\d+\)\s+#*\s*$")
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})\s*$")
_SNIFF_HEAD = re.compile(r"(?m)^[ \t>]*+Performance counter stats for ")
_SNIFF_END = re.compile(rf"(?m)^[ \t>]*+{GROUPED}(?:\s+(?:\+-|±)\s+{GROUPED})?\s+seconds time elapsed\b")
_SNIFF_INTERVAL = re.compile(r"(?m)^[ \t>]*+#\s+time\s.*\bcounts unit events\s*$")
#: Events of one plain word; where no head stands above, other words behind a number are no event.
_WORDS = frozenset({"cs", "migrations", "faults", "cycles", "instructions", "branches", "dummy"})
#: Names of perf for a counter that the run schema has.
_SCHEMA = {"minor-faults": "minor_faults"}
_COMMAND = re.compile(r"\bperf stat\b")
_REPEAT = re.compile(r"\s(?:-r|--repeat)[ =]?(\d{1,9})\b")
#: What may name a run; a longer line above it is prose.
_NAME = re.compile(r"\s*([^\s|%]+(?: [^\s|%]+){0,4}?)\s*:?$")
#: Lines a wrapped head may go over.
_LONGEST = 4


@dataclass
class Count:
    """One row.

    Attributes
    ----------
    event : str
        As perf names it.
    value : int or float or None
        None where perf could not count.
    lack : str
        Then why: "not supported" or "not counted".
    unit : str
        As printed; empty for a plain number.
    noise_percent : float or None
        Standard error of the mean over runs (``-r``), percent of the mean.
    share_percent : float or None
        Share of the time in which the event was counted; the value is scaled up to all of it.
    metrics : list of str
        What perf computes of it, as printed.
    time : float or None
        End of the interval, s (``-I``).
    place : str
        CPU, node or socket (``-A``, ``--per-node``); empty for all.
    line : int
    """

    event: str
    value: int | float | None
    lack: str = ""
    unit: str = ""
    noise_percent: float | None = None
    share_percent: float | None = None
    metrics: list[str] = field(default_factory=list)
    time: float | None = None
    place: str = ""
    line: int = 0


@dataclass
class Seconds:
    """A time perf prints below the counts: mean, absolute standard error, the same in percent; None without ``-r``."""

    value: float
    error: float | None = None
    noise_percent: float | None = None


@dataclass
class Run:
    """One call of perf stat.

    Attributes
    ----------
    line : int
        Where it begins.
    what : str
        What was counted, as in the head: a command, "system wide", a process; empty without a head.
    label : str
        The lines of other text above it.
    section : str
        The last underlined line above it.
    runs : int or None
        ``-r``.
    counts : list of Count
    elapsed, user, sys : Seconds or None
    single : list of float
        Elapsed times of the runs one by one (``--table``), s.
    """

    line: int
    what: str = ""
    label: str = ""
    section: str = ""
    runs: int | None = None
    counts: list[Count] = field(default_factory=list)
    elapsed: Seconds | None = None
    user: Seconds | None = None
    sys: Seconds | None = None
    single: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What tells it from other runs of the text."""
        return " ".join(filter(None, [self.section, self.label])) or self.what

    @property
    def empty(self) -> bool:
        """Whether nothing stands below its head."""
        return not (self.counts or self.elapsed or self.user or self.sys)

    def get(self, event: str, place: str = "") -> Count:
        """Return the count of an event; of ``-I`` the last.

        Raises
        ------
        KeyError
            Lists the events there are.
        """
        found = [count for count in self.counts if (count.event, count.place) == (event, place)]
        if not found:
            raise KeyError(f"no event {event!r}; there are {', '.join(dict.fromkeys(c.event for c in self.counts))}")
        return found[-1]

    def value(self, event: str, place: str = "") -> int | float | None:
        """Return the number of an event; see `get`."""
        return self.get(event, place).value


@dataclass
class Report(FromText):
    """What a text held: its runs, what was not used, what was taken for granted (line, text)."""

    runs: list[Run] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds output of perf stat."""
    return any(pattern.search(text) for pattern in (_SNIFF_HEAD, _SNIFF_END, _SNIFF_INTERVAL))


def parse(text: str, source: str = "<text>") -> Report:
    """Read the runs in a mail or paste.

    Parameters
    ----------
    text : str
        Quoted, wrapped, in quoted-printable; rows with or without their head.
    source : str
        Name for messages.

    Raises
    ------
    ReadError
        No count and no time at all.
    """
    every = _unwrapped(lines(text))
    reader = _Reader(Report(source, len(text.splitlines())), _has_comma(every))
    for line in every:
        reader.take(line)
    reader.end()
    report = reader.report
    empty = [run for run in report.runs if run.empty]
    report.runs = [run for run in report.runs if not run.empty]
    for run in empty:
        for line, text in (*reader.names.get(run.line, ()), (run.line, run.what)):
            report.skipped.append(Skipped(line, text, "no count below this head; was the text cut?"))
    report.skipped.sort(key=lambda skip: skip.line)
    if not report.runs:
        problem = "holds no count of perf stat; expected '<count>  <event>' and '<seconds> seconds time elapsed'"
        first = next((skip for skip in report.skipped if skip.reason != _FOREIGN), None)
        raise ReadError(source, 0, problem + (f" (line {first.line}: {first.reason})" if first else ""))
    return report


_FOREIGN = "not output of perf stat"


def _has_comma(every: list[Line]) -> bool:
    """Tell whether the decimal mark is a comma: times, which always have decimals, say."""
    for line in every:
        match = _ELAPSED.match(line.text) or _SINGLE.match(line.text)
        if match and (found := re.search(r"([.,])\d+$", match["value"])):
            return found[1] == ","
    noises = [match["noise"] for line in every if (match := _ROW.match(line.text)) and match["noise"]]
    return any("," in noise for noise in noises)


def _unwrapped(every: list[Line]) -> list[Line]:
    """Put the rest of a wrapped head behind its beginning."""
    found: list[Line] = []
    at = 0
    while at < len(every):
        line, used = every[at], 1
        if _HEAD.match(line.text) and not line.text.endswith(":"):
            for count in range(2, min(_LONGEST, len(every) - at) + 1):
                last = every[at + count - 1].text
                if not last or _ROW.match(last):
                    break
                if last.endswith(":"):
                    text = " ".join(piece.text.strip() for piece in every[at : at + count])
                    line, used = Line(line.number, text, line.joined), count
                    break
        found.append(line)
        at += used
    return found


class _Reader:
    """State while reading: the run rows belong to, and lines of other text that may be its name."""

    def __init__(self, report: Report, comma: bool) -> None:
        self.report = report
        self.comma = comma
        self.run: Run | None = None
        self.ended = True
        self.last: Count | Seconds | None = None
        self.above: list[Line] = []
        self.section = ""
        # line of a run -> lines above that name it
        self.names: dict[int, list[tuple[int, str]]] = {}

    def take(self, line: Line) -> None:
        text = line.text
        if not text.strip() or _REMARK.match(text):
            return
        if head := _HEAD.match(text):
            self.head(line, head["what"])
        elif match := _ELAPSED.match(text):
            self.seconds(line, match)
        elif (match := _SINGLE.match(text)) and self.run and not self.ended:
            self.run.single.append(float(match["value"].replace(",", ".")))
        elif (match := _ROW.match(text)) and self.is_count(match):
            self.row(line, match)
        elif (match := _REST.match(text)) and self.last and not self.above:
            self.rest(self.last, match)
        else:
            self.other(line)

    def skip(self, line: Line, reason: str) -> None:
        self.report.skipped.append(Skipped(line.number, line.text, reason))

    def other(self, line: Line) -> None:
        if _UNDERLINE.match(line.text) and self.above:
            self.section = self.above.pop().text.strip()
        else:
            self.above.append(line)
            self.last = None

    def end(self) -> None:
        """Report what stood below the last run."""
        for line in self.above:
            self.skip(line, _FOREIGN)
        self.above = []

    def open(self, line: Line, what: str = "", runs: int | None = None) -> Run:
        """Begin a run; the line right above names it, what stands before that is none of it."""
        label = ""
        named = self.names.setdefault(line.number, [])
        if self.above and _COMMAND.search(self.above[-1].text):
            named.append((self.above[-1].number, self.above[-1].text))
            command = self.above.pop().text.strip()
            what, repeat = what or command, _REPEAT.search(command)
            runs = runs or (int(repeat[1]) if repeat else None)
        if self.above and (name := _NAME.match(self.above[-1].text)):
            named.append((self.above[-1].number, self.above[-1].text))
            self.above.pop()
            label = name[1]
        self.end()
        self.run = Run(line.number, what, label, self.section, runs)
        self.ended = False
        self.report.runs.append(self.run)
        return self.run

    def head(self, line: Line, what: str) -> None:
        match = _RUNS.match(what)
        if match is None:
            self.open(line, what.strip(" '"))
            self.report.notes.append((line.number, "the head of this run is cut off"))
        else:
            self.open(line, match["what"].strip(" '"), int(match["runs"]) if match["runs"] else None)

    def current(self, line: Line) -> Run:
        return self.open(line) if self.run is None or self.ended else self.run

    def is_count(self, match: re.Match[str]) -> bool:
        """Tell a row from a line of other text that begins with a number."""
        plain = match["event"].isalpha() and match["event"] not in _WORDS
        return not plain or (self.run is not None and bool(self.run.what) and not self.ended)

    def number(self, printed: str | None) -> float | None:
        value = None if printed is None else number(printed, self.comma)
        return None if value is None else float(value)

    def row(self, line: Line, match: re.Match[str]) -> None:
        value = None if match["count"] is None else number(match["count"], self.comma)
        if match["count"] is not None and value is None:
            self.skip(line, f"the digits of {match['count']} are grouped in no known way; was the line cut?")
            return
        time = self.number(match["time"])
        run = self.current(line)
        again = [c for c in run.counts if (c.event, c.place, c.time) == (match["event"], match["place"] or "", time)]
        if again:
            run = self.open(line)
        self.end()
        metric = (match["metric"] or "").strip()
        self.last = Count(
            match["event"],
            value,
            match["lack"] or "",
            match["unit"] or "",
            self.number(match["noise"]),
            self.number(match["share"]),
            [" ".join(metric.split())] if metric else [],
            time,
            match["place"] or "",
            line.number,
        )
        run.counts.append(self.last)

    def rest(self, last: Count | Seconds, match: re.Match[str]) -> None:
        """Take what stands on a line of its own, and belongs to the one above."""
        if last.noise_percent is None:
            last.noise_percent = self.number(match["noise"])
        if isinstance(last, Seconds):
            return
        if metric := (match["metric"] or "").strip():
            last.metrics.append(" ".join(metric.split()))
        if last.share_percent is None:
            last.share_percent = self.number(match["share"])

    def seconds(self, line: Line, match: re.Match[str]) -> None:
        value = self.number(match["value"])
        if value is None:
            self.skip(line, f"{match['value']} is no time; was the line cut?")
            return
        seconds = Seconds(value, self.number(match["error"]), self.number(match["noise"]))
        what = "elapsed" if match["what"] == "time elapsed" else match["what"]
        run = self.run
        # user and sys stand below the elapsed time, which ends the counts
        if run is None or getattr(run, what) is not None or (what == "elapsed" and self.ended):
            run = self.open(line)
        self.end()
        setattr(run, what, seconds)
        self.last = seconds
        self.ended = self.ended or what == "elapsed"


# ---------------------------------------------------------------- reading


def read(text: str, source: str, _release: str | None = None) -> Reading:
    """Read perf stat: a table of counts for each run, and the counts as counters."""
    report = parse(text, source)
    found, tables = [], []
    for run in report.runs:
        many = f", mean of {run.runs} runs" if run.runs else ""
        elapsed = f", {run.elapsed.value:g} s elapsed" if run.elapsed else ""
        counted = sum(count.value is not None for count in run.counts)
        found.append(Found(run.line, f"run {run.name!r}: {counted} counts{many}{elapsed}"))
        tables.append(_table(run))
    if any(run.elapsed for run in report.runs):
        tables.append(_times(report))
    guessed = [Found(line, text) for line, text in report.notes]
    return Reading(
        source,
        FORMAT,
        report.lines,
        tuple(found),
        tuple(report.skipped),
        _dataset(report),
        guessed=tuple(guessed),
        tables=tuple(tables),
    )


def _table(run: Run) -> Table:
    columns = ("event", "count", "unit", "noise_percent", "counted_percent", "time_s", "place", "lack")
    rows = tuple(
        (c.event, c.value, c.unit or None, c.noise_percent, c.share_percent, c.time, c.place or None, c.lack or None)
        for c in run.counts
    )
    return Table(run.name or "counts", columns, rows, line=run.line)


def _times(report: Report) -> Table:
    rows = []
    for run in report.runs:
        values = [None if part is None else part.value for part in (run.elapsed, run.user, run.sys)]
        rows.append((run.name, *values, run.elapsed.noise_percent if run.elapsed else None))
    return Table("seconds", ("run", "elapsed", "user", "sys", "elapsed_noise_percent"), tuple(rows), "s")


def _plain(run: Run) -> dict[str, int]:
    """Return the counts that are whole numbers of all the run, by name."""
    return {
        _SCHEMA.get(c.event, c.event): c.value
        for c in run.counts
        if isinstance(c.value, int) and not c.unit and c.time is None and not c.place
    }


def _dataset(report: Report) -> Callable[[], xr.Dataset]:
    """Make one run of each, with the counters that all of them have."""
    every = [_plain(run) for run in report.runs]
    common = [name for name in every[0] if all(name in one for one in every)]
    if not common:
        return no_run(report.source, "this output of perf stat")

    def build() -> xr.Dataset:
        from numalab.readers._counted import counters

        coords = {"label": [run.name for run in report.runs]}
        return counters(every, common, coords, FORMAT, report.source, len(report.skipped))

    return build
