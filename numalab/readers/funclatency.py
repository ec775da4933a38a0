"""Reader of histograms of latency: ``funclatency`` of bcc, Python and libbpf, and ``hist()``, ``lhist()`` of bpftrace.

Buckets are powers of two (or steps of ``lhist()``): a call that took 9 ms is in "8 -> 15" or "[8, 16)". What the text
does not say are the latencies themselves: shares and means come with bounds. bcc prints the mean under a unit that old
versions get wrong, so the unit is that of the histogram unless only another one lies within the bounds of the buckets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from numalab.readers._paste import Line, plain_lines
from numalab.readers._reading import Found, Reading, Table, no_run
from numalab.readers._text import FromText, ReadError, Skipped

FORMAT = "latency-histogram"

#: Seconds of the units the tools name.
UNITS = {"nsecs": 1e-9, "usecs": 1e-6, "msecs": 1e-3, "secs": 1.0}
_SHORT = {"ns": "nsecs", "us": "usecs", "ms": "msecs", "s": "secs"}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_HEAD = re.compile(r"\s*(?P<unit>[nmu]?secs)\s*:\s*count\s+distribution\s*$")
_ROW = re.compile(r"\s*(?P<low>\d{1,18})\s*->\s*(?P<high>\d{1,18})\s*:\s*(?P<count>\d{1,15})\s*\|(?P<bar>.*?)\|?\s*$")
_BPFTRACE = re.compile(
    r"\s*[\[(](?P<low>-?\d{1,18}|\.\.\.)(?P<low_unit>[KMGT]?)(?:,\s*(?P<high>-?\d{1,18}|\.\.\.)(?P<high_unit>[KMGT]?)\s*\)|\])\s+"
    r"(?P<count>\d{1,15})\s*\|[@ ]*\|?\s*$"
)
_KEY = re.compile(r"\s*@(?P<name>\w*)(?:\[(?P<key>.*)\])?:\s*$")
_MEAN = re.compile(
    r"\s*avg =\s+(?P<mean>\d{1,18}) (?P<unit>[nmu]?secs), total:\s+\d+ [nmu]?secs, count:\s+(?P<count>\d{1,18})\s*$"
)
_TRACING = re.compile(r"\s*Tracing (?:\d+ functions? for )?(?P<name>\S+?)(?:\.\.\.|\s).*$")
_FUNCTION = re.compile(r"\s*Function = b?['\"]?(?P<name>[^\s'\"\[]+)['\"]?(?:\s+\[(?P<pid>\d+)\])?\s*$")
_CLOCK = re.compile(r"\s*(?:\d\d:\d\d:\d\d)\s*$")
_NOISE = re.compile(r"\s*(?:\^C|Detaching\.\.\.|Attaching \d+ probes?\.\.\.)?\s*$")
_SNIFF = re.compile(
    r"(?m)^[ \t>]*+\d+\s*->\s*\d+\s*:\s*\d+\s*\|[* +]*\|"
    r"|^[ \t>]*+\[-?\d+[KMGT]?(?:, ?-?\d+[KMGT]?\)|\])\s+\d+\s*\|[@ ]+\|"
)


@dataclass(frozen=True)
class Bucket:
    """Calls that took ``low`` to below ``high`` (None: no bound), in the histogram's unit."""

    low: int | None
    high: int | None
    count: int
    line: int


@dataclass
class Histogram:
    """One histogram.

    Attributes
    ----------
    line : int
    function : str
        What was timed; of bpftrace the name and key of its map.
    unit : str
        A key of :data:`UNITS`; empty where the text does not say.
    time : str
        Time of day printed above (``-T``).
    buckets : list of Bucket
    printed_mean, printed_count : int or None
        As bcc sums up below; the mean is a whole number of `mean_unit`.
    printed_unit : str
        The unit bcc prints behind the mean.
    """

    line: int
    function: str = ""
    unit: str = ""
    time: str = ""
    buckets: list[Bucket] = field(default_factory=list)
    printed_mean: int | None = None
    printed_count: int | None = None
    printed_unit: str = ""

    @property
    def count(self) -> int:
        """Calls in the buckets."""
        return sum(bucket.count for bucket in self.buckets)

    def mean_bounds(self) -> tuple[float, float]:
        """Return between which two values the mean lies, in the histogram's unit; infinite without a bound."""
        low = sum(b.count * (float("-inf") if b.low is None else b.low) for b in self.buckets if b.count)
        high = sum(b.count * (float("inf") if b.high is None else b.high) for b in self.buckets if b.count)
        return (low / self.count, high / self.count) if self.count else (float("nan"), float("nan"))

    @property
    def mean_unit(self) -> str:
        """The unit the printed mean has: one for which it lies within the bounds of the buckets; empty if none does."""
        if self.printed_mean is None or not self.unit:
            return ""
        low, high = (bound * UNITS[self.unit] for bound in self.mean_bounds())
        for unit in (self.unit, self.printed_unit):
            # the mean is cut to a whole number
            if low <= (self.printed_mean + 1) * UNITS[unit] and self.printed_mean * UNITS[unit] <= high:
                return unit
        return ""

    def mean_s(self) -> float | None:
        """Return the printed mean in seconds; None where there is none, or none that fits the buckets."""
        return None if self.printed_mean is None or not self.mean_unit else self.printed_mean * UNITS[self.mean_unit]

    def share_from(self, seconds: float) -> tuple[float, float]:
        """Return least and greatest share of calls that took some time or longer.

        Raises
        ------
        ValueError
            The unit is not known.
        """
        if not self.unit:
            raise ValueError(f"the unit of the histogram of {self.function or 'line ' + str(self.line)} is not known")
        limit = seconds / UNITS[self.unit]
        slack = limit * 1e-9  # of the binary fractions in between
        sure = sum(b.count for b in self.buckets if b.low is not None and b.low >= limit - slack)
        maybe = sum(b.count for b in self.buckets if b.high is None or b.high > limit + slack)
        return (sure / self.count, maybe / self.count) if self.count else (float("nan"), float("nan"))


@dataclass
class Report(FromText):
    """What a text held: histograms, what was not used, what was guessed or contradicts itself (line, text)."""

    histograms: list[Histogram] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Tell whether a text holds rows of such a histogram."""
    return _SNIFF.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read histograms.

    Raises
    ------
    ReadError
        No row of one.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    for line in plain_lines(text):
        reader.take(line)
    report = reader.report
    report.histograms = [histogram for histogram in report.histograms if histogram.buckets]
    if not report.histograms:
        problem = "holds no row of a histogram of latency; expected '8 -> 15 : 57 |***|' or '[8, 16)  57 |@@@|'"
        raise ReadError(source, 0, problem)
    for histogram in report.histograms:
        _check(report, histogram)
    return report


class _Reader:
    """State while reading: what stands above the next histogram."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.tracing = self.function = self.time = ""
        self.current: Histogram | None = None

    def take(self, line: Line) -> None:
        text = line.text
        if head := _HEAD.match(text):
            self.open(line, self.function or self.tracing, head["unit"])
        elif row := _ROW.match(text):
            self.row(line, int(row["low"]), int(row["high"]) + 1, int(row["count"]))
        elif (key := _KEY.match(text)) is not None:
            self.open(line, key["key"] or key["name"], _unit_of(f"{key['name']}_{key['key'] or ''}"))
        elif row := _BPFTRACE.match(text):
            low, high = _bound(row["low"], row["low_unit"]), _bound(row["high"], row["high_unit"])
            # "[1]" is a bucket of one value
            self.row(line, low, low + 1 if row["high"] is None and low is not None else high, int(row["count"]))
        elif (mean := _MEAN.match(text)) and self.current:
            self.current.printed_mean, self.current.printed_count = int(mean["mean"]), int(mean["count"])
            self.current.printed_unit = mean["unit"]
        elif tracing := _TRACING.match(text):
            self.tracing, self.function = tracing["name"].strip("\"'"), ""
        elif function := _FUNCTION.match(text):
            self.function = function["name"] + (f" [{function['pid']}]" if function["pid"] else "")
        elif _CLOCK.match(text):
            self.time = text.strip()
        elif not _NOISE.match(text):
            self.report.skipped.append(Skipped(line.number, text, "not of a histogram of latency"))

    def open(self, line: Line, function: str, unit: str) -> Histogram:
        self.current = Histogram(line.number, function, unit, self.time)
        self.function = self.time = ""
        self.report.histograms.append(self.current)
        return self.current

    def row(self, line: Line, low: int | None, high: int | None, count: int) -> None:
        now = self.current
        if now is None or (now.buckets and low is not None and low < (now.buckets[-1].low or 0)):
            now = self.open(line, self.function or self.tracing, "")
            self.report.notes.append((line.number, "no head above these buckets says what was timed, in what unit"))
        elif now.buckets and now.buckets[-1].high not in (low, None):
            self.report.notes.append((line.number, "buckets are missing above this line; was the text cut?"))
        now.buckets.append(Bucket(low, high, count, line.number))


def _bound(printed: str | None, unit: str | None) -> int | None:
    return None if printed in (None, "...") else int(printed or 0) * _BINARY[unit or ""]


def _unit_of(name: str) -> str:
    """Read the unit people put into the name of a map: "@usecs", "@lat_us", "@ns[task_numa_work]"."""
    for word in re.split(r"[_\W]+", name):
        if word in UNITS or word in _SHORT:
            return _SHORT.get(word, word)
    return ""


def _check(report: Report, histogram: Histogram) -> None:
    """Compare what bcc sums up with the buckets."""
    name = histogram.function or "the histogram"
    if histogram.printed_count not in (None, histogram.count):
        problem = (
            f"{name}: {histogram.printed_count} calls printed, {histogram.count} in the buckets; are rows missing?"
        )
        report.notes.append((histogram.line, problem))
    if histogram.printed_mean is not None and histogram.unit:
        if not histogram.mean_unit:
            problem = f"{name}: the printed mean of {histogram.printed_mean} {histogram.printed_unit} lies in no bucket"
            report.notes.append((histogram.line, f"{problem}; it is not used"))
        elif histogram.mean_unit != histogram.printed_unit:
            problem = f"{name}: the mean is in {histogram.mean_unit}, not {histogram.printed_unit} as printed"
            report.notes.append((histogram.line, problem))
    if not histogram.unit:
        report.notes.append((histogram.line, f"{name}: the text does not say in what unit"))


# ---------------------------------------------------------------- reading


def read(text: str, source: str, _release: str | None = None) -> Reading:
    """Read histograms: a table of buckets for each, and one of counts and means."""
    report = parse(text, source)
    found = []
    for histogram in report.histograms:
        mean = histogram.mean_s()
        said = f", {mean:.3g} s on average" if mean is not None else ""
        at = f" at {histogram.time}" if histogram.time else ""
        found.append(Found(histogram.line, f"{histogram.function or 'histogram'}{at}: {histogram.count} calls{said}"))
    return Reading(
        source,
        FORMAT,
        report.lines,
        tuple(found),
        tuple(report.skipped),
        no_run(source, "a histogram of latency"),
        guessed=tuple(Found(line, what) for line, what in report.notes),
        tables=(*(_buckets(histogram) for histogram in report.histograms), _summary(report.histograms)),
    )


def _buckets(histogram: Histogram) -> Table:
    rows = tuple((b.low, b.high, b.count) for b in histogram.buckets)
    name = " ".join(filter(None, ["latency", histogram.function, histogram.time]))
    return Table(name, ("from", "below", "calls"), rows, histogram.unit, histogram.line)


def _summary(histograms: Sequence[Histogram]) -> Table:
    rows = []
    for histogram in histograms:
        scale = UNITS.get(histogram.unit)
        low, high = histogram.mean_bounds()
        bounds = (low * scale, high * scale) if scale and histogram.count else (None, None)
        rows.append((histogram.function, histogram.time, histogram.count, histogram.mean_s(), *bounds))
    return Table("latency", ("function", "time", "calls", "mean_s", "mean_at_least_s", "mean_at_most_s"), tuple(rows))
