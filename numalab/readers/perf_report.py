"""Reader of ``perf report`` (and ``perf top``): shares of samples by symbol, with call chains.

Read is what ``--stdio`` prints, with its headers, and what people copy from the screen. A line has one percentage (its
own) or two (with callees, and its own). perf prints the percentages of chains either of all samples or of the line
above; which of the two follows from their sum.

Of all symbols the reader knows the look-up of a shared policy, the lock of the thread ``policy_lock``: its share is
that of the look-up itself and of the spinning called from it. With call chains (``perf record -g``) that is known,
without them only the spinning of all locks is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from numalab.readers._paste import Line, lines
from numalab.readers._text import FromText, ReadError, Skipped, quote

FORMAT = "perf-report"

#: The look-up of a shared policy.
LOOKUP = frozenset({"mpol_shared_policy_lookup"})
#: Where a CPU spins for a lock: ticket, queued (MCS), reader-writer, paravirtual.
SPINNING = re.compile(
    r"_*(?:raw_)?(?:spin_lock|read_lock|write_lock)(?:_irq|_irqsave|_bh)?$"
    r"|(?:__pv_|native_)?queued_spin_lock_slowpath$|queued_(?:read|write)_lock_slowpath$|__ticket_spin_lock$"
)

_SYMBOL = re.compile(
    r"\s*[-+]?\s*(?P<first>\d+\.\d+)%\s+(?:(?P<second>\d+\.\d+)%\s+)?(?P<middle>\S.*?\s)?\s*"
    r"\[(?P<kind>[.kgHu])\]\s+(?P<name>\S.*?)(?:\s+-\s+-)?\s*$"
)
#: One word, save that C++ has blanks inside brackets and perf says what was inlined.
_NAME = r"(?:[A-Za-z_~<\[][^\s(]*(?:\(.*\)(?: const)?)?|0x[0-9a-f]+|0)(?:\+0x[0-9a-f]+)?(?: \(inlined\))?"
_CHAIN = re.compile(rf"(?P<indent>[\s|+-]+?)(?:(?P<percent>\d+(?:\.\d+)?)%[\s-]*)?(?P<name>{_NAME})\s*$")
_OFFSET = re.compile(r"(?:\+0x[0-9a-f]+)?(?: \(inlined\))?$")
_RULE = re.compile(r"[\s|]*[-=]*[\s|]*$")
_EVENT = re.compile(
    r"#?\s*Samples: (?P<samples>\S+) +of events? '(?P<event>[^']+)'(?:.*Event count \(approx\.\): (\d{1,18}))?"
)
_COUNT = re.compile(r"#?\s*Event count \(approx\.\): (\d{1,18})")
_LOST = re.compile(r"#\s*Total Lost Samples: (\d{1,18})")
_FACT = re.compile(r"# (captured on|hostname|os release|perf version|arch|nrcpus online|cmdline)\s*: (.*\S)")
#: The rest of what perf prints behind "#": frames, dots under heads, "name : value", hints.
_COMMENT = re.compile(
    r"#(?:\s*$|[\s.]+$|\s=+$|\s\w[\w ]*\s: |\s(?:pmu mappings|missing features|dso|comm|symbol)[:=]|\s\(.*\)$"
    r"|\s(?:To display the perf|\w+ info available|Cannot load tips))"
)
_COLUMNS = re.compile(r"#\s+(?:Children|Overhead)\s.*\bSymbol\b")
_GAP = re.compile(r"\s{2,}")
_MANY = {"K": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True)
class Link:
    """One line of a call chain: how far it is indented, its percentage where printed, the symbol."""

    column: int
    percent: float | None
    name: str


@dataclass
class Symbol:
    """One line of the table.

    Attributes
    ----------
    line : int
    children : float or None
        Percent of samples, those of callees included; None where perf did not print it.
    own : float
        Percent of samples in the symbol itself.
    name : str
    command, shared_object : str
        Empty where not printed.
    kernel : bool
    chain : list of Link
    """

    line: int
    children: float | None
    own: float
    name: str
    command: str = ""
    shared_object: str = ""
    kernel: bool = False
    chain: list[Link] = field(default_factory=list)

    @property
    def spins(self) -> bool:
        """Whether it is where a CPU spins for a lock."""
        return SPINNING.match(self.name) is not None

    @property
    def relative(self) -> bool:
        """Whether percentages in the chain are of the line above, and not of all samples."""
        columns = [link.column for link in self.chain if link.percent is not None]
        top = sum(link.percent or 0.0 for link in self.chain if columns and link.column == min(columns))
        return abs(top - 100) < abs(top - self.whole)

    @property
    def whole(self) -> float:
        """Percent of samples that the chain is about."""
        return self.own if self.children is None else self.children

    def through(self) -> dict[str, float]:
        """Return for each symbol of the chain the part of this line's samples that go through it: 0 to 1.

        A symbol that comes again below itself (recursion) counts once.
        """
        relative, whole = self.relative, self.whole
        found: dict[str, float] = {}
        above: list[tuple[Link, float]] = []
        inside: Counter[str] = Counter()
        for link in self.chain:
            while above and not _is_above(above[-1][0], link):
                inside[above.pop()[0].name] -= 1
            share = above[-1][1] if above else 1.0
            if link.percent is not None:
                share = share * link.percent / 100 if relative else link.percent / whole if whole else 0.0
            if not inside[link.name]:
                found[link.name] = found.get(link.name, 0.0) + share
            inside[link.name] += 1
            above.append((link, share))
        return {name: min(1.0, share) for name, share in found.items()}

    def share_through(self, names: Collection[str]) -> float:
        """Return the part of this line's samples in or below any of some symbols: 0 to 1."""
        if self.name in names:
            return 1.0
        renamed = [Link(c.column, c.percent, "" if c.name in names else c.name) for c in self.chain]
        return Symbol(self.line, self.children, self.own, self.name, chain=renamed).through().get("", 0.0)


def _is_above(link: Link, below: Link) -> bool:
    """Tell whether a link of the chain is one the next hangs on: further left, or right above in a chain of one way."""
    return link.column < below.column or (
        link.column == below.column and link.percent is None and below.percent is None
    )


@dataclass
class Profile:
    """Samples of one event.

    Attributes
    ----------
    line : int
    event : str
        Empty without the header.
    samples : float or None
        As printed, "12M" being 12e6.
    count : int or None
        Events the samples stand for, approximately.
    lost : int or None
    symbols : list of Symbol
    """

    line: int
    event: str = ""
    samples: float | None = None
    count: int | None = None
    lost: int | None = None
    symbols: list[Symbol] = field(default_factory=list)

    def share(self, pattern: re.Pattern[str], under: Collection[str] = ()) -> float | None:
        """Return the share of samples in symbols whose name matches, of those under others if these are given.

        Parameters
        ----------
        pattern : re.Pattern
            Matched from the beginning of the name.
        under : collection of str
            Symbols that the call chain must lead through.

        Returns
        -------
        float or None
            0 to 1; None where call chains would be needed and none was printed.
        """
        found = [symbol for symbol in self.symbols if pattern.match(symbol.name)]
        if not under:
            return sum(symbol.own for symbol in found) / 100
        if found and not any(symbol.chain for symbol in found):
            return None
        return sum(symbol.own * symbol.share_through(under) for symbol in found) / 100

    def waiting_share(self) -> float | None:
        """Return the share of samples that spin for the look-up's lock; None where chains would be needed."""
        return self.share(SPINNING, LOOKUP)

    def area_share(self) -> float | None:
        """Return the share of samples in the look-up and the spinning for it; None where chains would be needed."""
        inclusive = [symbol.children for symbol in self.symbols if symbol.name in LOOKUP]
        if inclusive and inclusive[0] is not None:
            return inclusive[0] / 100
        waiting = self.waiting_share()
        return None if waiting is None else waiting + sum(s.own for s in self.symbols if s.name in LOOKUP) / 100

    def spinning_share(self) -> float:
        """Return the share of samples that spin for any lock."""
        return sum(symbol.own for symbol in self.symbols if symbol.spins) / 100


@dataclass
class Report(FromText):
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    profiles : list of Profile
        One for each event.
    facts : dict
        What the header says of the machine.
    skipped : list of Skipped
    """

    profiles: list[Profile] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def symbols(self) -> list[Symbol]:
        """Those of all profiles."""
        return [symbol for profile in self.profiles for symbol in profile.symbols]


def looks_like(text: str) -> bool:
    """Tell whether a text holds lines of perf report."""
    return any(_SYMBOL.match(line.text) for line in lines(text))


def parse(text: str, source: str = "<text>") -> Report:
    """Read ``perf report``, as ``--stdio`` prints it or pasted from its screen.

    Raises
    ------
    ReadError
        No line of a symbol.
    """
    reader = _Reader(Report(source, len(text.splitlines())))
    for line in lines(text):
        reader.take(line)
    report = reader.report
    empty = [profile for profile in report.profiles if not profile.symbols]
    report.profiles = [profile for profile in report.profiles if profile.symbols]
    report.skipped += [Skipped(profile.line, profile.event, "no symbol below this head") for profile in empty]
    report.skipped.sort(key=lambda skip: skip.line)
    if not report.profiles:
        raise ReadError(source, 0, f"holds no symbol of perf report; expected lines like {quote('1.23% [k] name')}")
    return report


class _Reader:
    """State while reading: the profile that lines belong to, and the columns its head names."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.columns: list[str] = []
        self.lost: int | None = None

    def take(self, line: Line) -> None:
        text = line.text
        if _RULE.match(text) or self.header(line):
            return
        symbol, link = _SYMBOL.match(text), _CHAIN.match(text)
        profile = self.report.profiles[-1] if self.report.profiles else None
        if symbol:
            self.profile(line).symbols.append(self.symbol(line, symbol))
        elif link and profile and profile.symbols:
            percent = float(link["percent"]) if link["percent"] else None
            profile.symbols[-1].chain.append(Link(len(link["indent"]), percent, _OFFSET.sub("", link["name"])))
        else:
            self.report.skipped.append(Skipped(line.number, text, "not a symbol or call chain of perf report"))

    def profile(self, line: Line) -> Profile:
        if not self.report.profiles:
            self.report.profiles.append(Profile(line.number, lost=self.lost))
        return self.report.profiles[-1]

    def header(self, line: Line) -> bool:
        """Take a line of the header; says whether it was one."""
        if match := _EVENT.match(line.text):
            count = int(match[3]) if match[3] else None
            self.report.profiles.append(Profile(line.number, match["event"], _approximate(match[1]), count, self.lost))
        elif match := _COUNT.match(line.text):
            if self.report.profiles:
                self.report.profiles[-1].count = int(match[1])
        elif match := _LOST.match(line.text):
            self.lost = int(match[1])
        elif match := _FACT.match(line.text):
            self.report.facts[match[1]] = match[2]
        elif _COLUMNS.match(line.text):
            self.columns = _GAP.split(line.text.strip("# "))
        else:
            return _COMMENT.match(line.text) is not None
        return True

    def symbol(self, line: Line, match: re.Match[str]) -> Symbol:
        first, second = float(match["first"]), match["second"]
        children, own = (first, float(second)) if second else (None, first)
        found = Symbol(line.number, children, own, match["name"], kernel=match["kind"] == "k")
        words = _GAP.split(match["middle"].strip()) if match["middle"] else []
        named = [column for column in self.columns if column not in {"Children", "Self", "Overhead", "Symbol"}]
        if len(named) != len(words):
            named = ["Command", "Shared Object"][-len(words) :] if words else []
        beside = dict(zip(named, words, strict=False))
        found.command, found.shared_object = beside.get("Command", ""), beside.get("Shared Object", "")
        return found


def _approximate(printed: str) -> float | None:
    """Read "704" or "12M"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", printed)
    return float(match[1]) * _MANY.get(match[2], 1.0) if match else None
