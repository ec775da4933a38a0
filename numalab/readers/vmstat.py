"""Reader of /proc/vmstat: one snapshot or several, or a log of snapshots each after a stamp ``@ <seconds>``.

One line holds a name and a value. Counters count since boot; names beginning with ``nr_`` are states.
memory.stat of a cgroup has the same form and is read the same way.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from itertools import pairwise

from numalab.readers._numbers import GROUPED, number
from numalab.readers._paste import COUNT
from numalab.readers._placed import Labels, Placed, clock, placed
from numalab.readers._text import CUT, FromText, ReadError, Record, Skipped, quote, records

_LINE = re.compile(r"\s*([a-z][a-z0-9_]*)(?:\s*[:=])?\s+(\d{1,18})\s*$")
_PASTED = re.compile(
    rf"\s*(?:[-*•|]\s+)?(?P<name>[a-z][a-z0-9_]*)\s*(?:[:=|]\s*|\s)(?P<sign>[+]?)(?P<value>{GROUPED})"
    rf"(?:\s*(?:->|→|=>)\s*(?P<after>{GROUPED}))?(?:\s*\|)?\s*$"
)
#: Found in every kernel with CONFIG_NUMA or with migration; tells a /proc/vmstat from other lists of names and values.
KNOWN_NAMES = re.compile(
    r"numa_(?:hit|miss|foreign|interleave|local|other|pte_updates|huge_pte_updates|hint_faults(?:_local)?"
    r"|pages_migrated|task_migrated|task_swapped)$|nr_free_pages$|pgmigrate_(?:success|fail)$"
    r"|(?:pgpromote|pgdemote|thp_migration)_"
)
#: In memory.stat of a cgroup, not in /proc/vmstat: version 2, then version 1.
CGROUP_NAMES = frozenset(
    {"anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "shmem"}
    | {
        "file_mapped",
        "file_dirty",
        "file_writeback",
        "anon_thp",
        "file_thp",
        "shmem_thp",
        "inactive_anon",
        "active_anon",
    }
    | {"inactive_file", "active_file", "unevictable", "slab", "slab_reclaimable", "slab_unreclaimable"}
    | {"cache", "rss", "rss_huge", "mapped_file", "swap", "total_cache", "total_rss"}
)
#: Words of labels that make two snapshots the two ends of one measurement.
_BEFORE = re.compile(r"(?i)\b(?:before|start|begin(?:ning)?|initial|vorher|pre|t0|avant|antes)\b")
_AFTER = re.compile(r"(?i)\b(?:after(?:wards)?|end|stop|finish(?:ed)?|final|nachher|post|t1|apr[eè]s|despu[eé]s)\b")


#: Room that the digits of a counter take when they are grouped, and how many are a counter whatever they are.
_LONGEST_NUMBER, _SURE_DIGITS = 27, 18
#: A name and what is no count: with a unit, an exponent or a sign.
_OTHER_VALUE = re.compile(r"\s*(?P<name>[a-z][a-z0-9_]*)\s*[:=]?\s+(?=[-+.\w]*\d)[-+.%\w]++(?:\s+[A-Za-z%]+)?$")


@dataclass(frozen=True)
class Sample:
    """One snapshot.

    Attributes
    ----------
    time : float or None
        Seconds; None without a stamp.
    values : dict
        Name -> value.
    line : int
        Where it begins.
    label : str
        Without a stamp, the last line of other text before it.
    delta : bool
        The values are the growth during something, not counts since boot.
    """

    time: float | None
    values: dict[str, int]
    line: int
    label: str = ""
    delta: bool = False


@dataclass
class Report(FromText):
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    samples : list of Sample
        In the order of the text. Those without stamps may be of different boots.
    skipped : list of Skipped
        Lines of a paste that are no counter.
    guesses : list of (line, text)
        What the text does not say.
    """

    samples: list[Sample] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
    guesses: list[tuple[int, str]] = field(default_factory=list)

    def common(self) -> list[str]:
        """Names that every snapshot has, in the order of the first."""
        return [name for name in self.samples[0].values if all(name in sample.values for sample in self.samples)]

    def names(self) -> list[str]:
        """Names that any snapshot has, in the order of the text."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.values))


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of /proc/vmstat."""
    return any(is_known(line) for line in placed(text))


def looks_like_cgroup(text: str) -> bool:
    """Tell whether a text holds memory.stat of a cgroup."""
    names = {name_of(line) for line in placed(text)}
    return len(names & CGROUP_NAMES) > 1 and "nr_free_pages" not in names


def is_known(line: Placed) -> bool:
    """Tell whether a line holds a counter by which /proc/vmstat is known."""
    match = _PASTED.match(line.bare)
    return match is not None and KNOWN_NAMES.match(match["name"]) is not None and not line.heading


def name_of(line: Placed) -> str | None:
    """Return the name if a line holds a name and a value."""
    match = COUNT.fullmatch(line.text) or _PASTED.match(line.bare)
    return sys.intern(match["name"]) if match and not line.heading and _count(match["value"]) is not None else None


def _count(printed: str) -> int | None:
    """Return a whole number that a counter can be; None for anything else."""
    if len(printed) <= _SURE_DIGITS and printed.isdecimal():
        return int(printed)
    value = number(printed) if len(printed) <= _LONGEST_NUMBER else None
    return value if isinstance(value, int) else None


def parse(text: str, source: str = "<text>") -> Report:
    """Read snapshots, pasted or in a log.

    Parameters
    ----------
    text : str
        A paste, in which foreign lines are skipped and a name that comes again, another file or another label begins
        the next snapshot; or a log with stamps, in which nothing else may stand.
    source : str
        Name for messages.

    Returns
    -------
    Report

    Raises
    ------
    ReadError
        No counter at all; in a log a foreign line, a name twice in a snapshot, or a snapshot that lacks
        names the first one has.
    """
    report = Report(source, len(text.splitlines()))
    if re.search(r"(?m)^@", text):
        for record in records(text, source):
            report.samples.append(_read_logged(record, source))
        _check_log(report)
        return report
    _Paste(report).read(placed(text, source))
    if not report.samples:
        problem = "holds no counter of /proc/vmstat; expected lines like 'numa_hint_faults 1234'"
        raise ReadError(source, 0, f"{problem} (is CONFIG_NUMA_BALANCING on?)")
    return report


_NO_COUNT = "the value is no whole number below 2^63"


class _Paste:
    """State while reading a paste: the snapshot that lines belong to, and what stood before it."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.values: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self.first, self.delta, self.file = 0, False, ""
        self.label = ""
        self.time: float | None = None
        self.labels = Labels(report.skipped, report.titles, "not a line of /proc/vmstat")
        self.next_time: float | None = None

    def read(self, every: list[Placed]) -> None:
        for line in every:
            if plain := COUNT.fullmatch(line.text):
                self.take(line, plain["name"], plain["value"])
            elif line.heading:
                # a command such as "$ grep numa /proc/vmstat" is no name for what it prints
                if self.values and line.name != self.file:
                    self.end()
            elif (seconds := clock(line.text)) is not None:
                self.end()
                self.next_time = seconds
            elif match := _PASTED.match(line.bare):
                self.take(line, match["name"], match["value"], match["after"], growth=bool(match["sign"]))
            elif (other := _OTHER_VALUE.match(line.text)) and KNOWN_NAMES.match(other["name"]):
                self.report.skipped.append(Skipped(line.number, line.text, _NO_COUNT))
            elif line.text.strip():
                if _is_label(line.text):
                    self.end()
                self.labels.offer(line)
        self.end()
        self.labels.finish()

    def take(self, line: Placed, name: str, printed: str, later: str | None = None, *, growth: bool = False) -> None:
        value = _count(printed)
        after = _count(later) if later else None
        if value is None or (later and after is None):
            self.report.skipped.append(Skipped(line.number, line.text, _NO_COUNT))
            return
        if name in self.values:
            self.end()
        if not self.values:
            self.begin(line, growth)
        self.labels.drop()
        name = sys.intern(name)
        self.values[name] = value
        if after is not None:
            self.after[name] = after

    def begin(self, line: Placed, delta: bool) -> None:
        self.first, self.delta, self.file = line.number, delta, line.name
        self.label = self.labels.take()
        self.time, self.next_time = self.next_time, None

    def end(self) -> None:
        if not self.values:
            return
        sample = Sample(self.time, self.values, self.first, self.label, self.delta)
        if self.after:
            both = {name: self.values[name] for name in self.values if name in self.after}
            name = f"{self.label} " if self.label else ""
            self.report.samples += [
                replace(sample, values=both, label=f"{name}before"),
                replace(sample, values=self.after, label=f"{name}after"),
            ]
            if lost := self.values.keys() - self.after.keys():
                self.report.guesses.append((self.first, f"only one value of {', '.join(sorted(lost))}: left out"))
        else:
            self.report.samples.append(sample)
        self.values, self.after, self.time = {}, {}, None


def _is_label(text: str) -> bool:
    """Tell whether a line between counters begins something new rather than remarks on what is above."""
    return text.rstrip().endswith(":") or bool(_BEFORE.search(text)) or bool(_AFTER.search(text))


def pairs(report: Report) -> list[tuple[Sample, Sample]] | None:
    """Return the two ends of each measurement, if labels name all snapshots "before" and "after" by turns.

    Returns
    -------
    list of (before, after), or None
        None where labels say nothing of the kind or a counter falls: then snapshots may be of different boots.
    """
    samples = report.samples
    found = list(zip(samples[::2], samples[1::2], strict=False))
    for before, after in found:
        falls = any(
            after.values[name] < value
            for name, value in before.values.items()
            if name in after.values and not name.startswith("nr_")
        )
        if not _BEFORE.search(before.label) or not _AFTER.search(after.label) or falls:
            return None
    return found if found and len(samples) % 2 == 0 else None


def pair_label(before: Sample) -> str:
    """Return what is left of a label without the word "before"."""
    return _BEFORE.sub("", before.label).strip(" :,()-")


def is_series(report: Report) -> bool:
    """Tell whether all snapshots have times that rise and no counter falls: one boot."""
    samples = report.samples
    times = [sample.time for sample in samples if sample.time is not None]
    if len(times) != len(samples) or any(b <= a for a, b in pairwise(times)):
        return False
    return all(
        b.values[name] >= a.values[name]
        for name in report.common()
        for a, b in pairwise(samples)
        if not name.startswith("nr_")
    )


def _read_logged(record: Record, source: str) -> Sample:
    values: dict[str, int] = {}
    for number_, line in record.lines:
        match = _LINE.match(line)
        if match is None:
            raise ReadError(source, number_, f"expected 'name value', got {quote(line)}; {CUT}")
        if match[1] in values:
            raise ReadError(source, number_, f"{match[1]} for the second time in one snapshot; {CUT}")
        values[match[1]] = int(match[2])
    return Sample(record.time, values, record.line or record.lines[0][0])


def _check_log(report: Report) -> None:
    first = report.samples[0]
    if first.time is None:
        raise ReadError(report.source, first.line, "expected '@ <seconds>' before the first snapshot of a log")
    if not any(sample.values for sample in report.samples):
        raise ReadError(
            report.source, 0, "holds no counter of /proc/vmstat; expected lines like 'numa_hint_faults 1234'"
        )
    for sample in report.samples:
        lost = first.values.keys() - sample.values.keys()
        if lost:
            what = f"the snapshot lacks {min(lost)}" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
            raise ReadError(report.source, sample.line, f"{what} of the names in the first; {CUT}")
