"""Reader of what perf says about locks: ``perf lock contention``, ``perf lock report``, ``perf report``.

Of all locks it looks for the one of the thread ``policy_lock``: the look-up of a shared policy. In ``perf report`` its
share is that of the look-up itself and of the spinning called from it; with call chains (``perf record -g``) that is
known, without them only the spinning of all locks is. perf prints the percentages of chains either of all samples or
of the line above; which of the two follows from their sum.
"""

import re
from dataclasses import dataclass, field

from numalab.readers._text import CUT, ReadError, Skipped, quote

#: The look-up of a shared policy.
LOOKUP = frozenset({"mpol_shared_policy_lookup"})
#: Where a CPU spins for a lock: ticket, queued (MCS), reader-writer, paravirtual.
SPINNING = re.compile(
    r"_*(?:raw_)?(?:spin_lock|read_lock|write_lock)(?:_irq|_irqsave|_bh)?$"
    r"|(?:__pv_|native_)?queued_spin_lock_slowpath$|queued_(?:read|write)_lock_slowpath$|__ticket_spin_lock$"
)
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass
class Wait:
    """One line of perf lock: contentions, waiting time in all and at most, s, kind of lock, who waited or which lock.

    ``stack`` has the callers printed below it, ``acquired`` is None where perf does not print it.
    """

    line: int
    contended: int
    total_s: float
    longest_s: float
    kind: str
    name: str
    acquired: int | None = None
    stack: list[str] = field(default_factory=list)

    @property
    def is_lookup(self) -> bool:
        """Whether it is the look-up of a shared policy that waits."""
        return not LOOKUP.isdisjoint({self.name.partition("+")[0], *self.stack})


@dataclass
class Symbol:
    """One line of perf report: its share of samples, callees included where printed, alone, and its call chain.

    A link of the chain is (column, percentage or None, symbol).
    """

    line: int
    children: float | None
    own: float
    name: str
    chain: list[tuple[int, float | None, str]] = field(default_factory=list)

    @property
    def spins(self) -> bool:
        """Whether it is where a CPU spins for a lock."""
        return SPINNING.match(self.name) is not None

    def lookup_share(self) -> float:
        """Return the part of this line's samples whose chain goes through the look-up: 0 to 1."""
        if not LOOKUP.isdisjoint({self.name}):
            return 1.0
        percents = [(column, percent) for column, percent, _ in self.chain if percent is not None]
        top = sum(percent for column, percent in percents if column == min(column for column, _ in percents))
        whole = self.own if self.children is None else self.children
        relative = abs(top - 100) < abs(top - whole)
        return min(1.0, sum(self._through(i, relative, whole) for i in self._outermost()))

    def _outermost(self) -> list[int]:
        """Return the places of the look-up in the chain that have none above them."""
        places = [i for i, (_, _, name) in enumerate(self.chain) if name in LOOKUP]
        return [i for i in places if not any(name in LOOKUP for _, _, name in self._above(i))]

    def _above(self, i: int) -> list[tuple[int, float | None, str]]:
        """Return the links that link i hangs on, the nearest first."""
        above, column = [], self.chain[i][0]
        for link in reversed(self.chain[:i]):
            if link[0] < column or (link[0] == column and link[1] is None and self.chain[i][1] is None):
                above.append(link)
                column = link[0]
        return above

    def _through(self, i: int, relative: bool, whole: float) -> float:
        percents = [percent for _, percent, _ in [self.chain[i], *self._above(i)] if percent is not None]
        if not percents:
            return 1.0
        if not relative:
            return percents[0] / whole if whole else 0.0
        share = 1.0
        for percent in percents:
            share *= percent / 100
        return share


@dataclass
class LockReport:
    """What a text of perf lock held, and the lines that were not used."""

    source: str
    lines: int
    waits: list[Wait] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


@dataclass
class SymbolReport:
    """What a text of perf report held, and the lines that were not used."""

    source: str
    lines: int
    symbols: list[Symbol] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def area_share(self) -> float | None:
        """Return the share of samples in the look-up and the spinning for it; None where chains would be needed."""
        inclusive = [symbol.children for symbol in self.symbols if symbol.name in LOOKUP]
        if inclusive and inclusive[0] is not None:
            return inclusive[0] / 100
        spinning = [symbol for symbol in self.symbols if symbol.spins]
        if spinning and not any(symbol.chain for symbol in spinning):
            return None
        return sum(s.own * s.lookup_share() for s in self.symbols if s.spins or s.name in LOOKUP) / 100

    def waiting_share(self) -> float | None:
        """Return the share of samples that spin for the look-up's lock; None where chains would be needed."""
        spinning = [symbol for symbol in self.symbols if symbol.spins]
        if spinning and not any(symbol.chain for symbol in spinning):
            return None
        return sum(symbol.own * symbol.lookup_share() for symbol in spinning) / 100

    def spinning_share(self) -> float:
        """Return the share of samples that spin for any lock."""
        return sum(symbol.own for symbol in self.symbols if symbol.spins) / 100


# ---------------------------------------------------------------- perf lock
_HEAD = re.compile(
    r"^[ #]*(?P<name>Name\s+acquired\s+)?contended\s+(?:avg wait|total wait)(?: \(ns\))?\s", re.MULTILINE
)
_TIME = r"(\d+(?:\.\d+)?)(?: (ns|us|ms|s|m))?"
_CONTENTION = re.compile(rf"\s*(\d+)\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+(\S+)\s+(\S.*?)\s*$")
_REPORT = re.compile(rf"\s*(\S+)\s+(\d+)\s+(\d+)\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+{_TIME}\s*$")
_FRAME = re.compile(r"\s+0x[0-9a-f]+\s+([\w.]+)(?:\+0x[0-9a-f]+)?\s*$")


def looks_like_lock(text: str) -> bool:
    """Tell whether a text is a table of perf lock."""
    return _HEAD.search(text) is not None


def parse_lock(text: str, source: str = "<text>") -> LockReport:
    """Read the table of ``perf lock contention`` or ``perf lock report``.

    Raises
    ------
    ReadError
        No such table, or one without a line.
    """
    report = LockReport(source, len(text.splitlines()))
    by_lock: bool | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        head, row = _HEAD.match(line), (_REPORT if by_lock else _CONTENTION).match(line)
        if head:
            by_lock = head["name"] is not None
        elif by_lock is not None and row:
            report.waits.append(_lock_row(row, number) if by_lock else _caller_row(row, number))
        elif report.waits and (frame := _FRAME.match(line)):
            report.waits[-1].stack.append(frame[1])
        else:
            report.skipped.append(Skipped(number, line, "not a line of perf lock's table"))
    if by_lock is None:
        raise ReadError(source, 0, "holds no table of perf lock; expected a head with 'contended' and 'total wait'")
    if not report.waits:
        raise ReadError(source, 0, f"the table of perf lock has no line; {CUT}")
    return report


def _time(value: str, unit: str | None) -> float:
    # perf before 5.19 prints nanoseconds without a unit.
    return float(value) * SECONDS[unit or "ns"]


def _caller_row(row: re.Match[str], line: int) -> Wait:
    return Wait(line, int(row[1]), _time(row[2], row[3]), _time(row[4], row[5]), row[8], row[9])


def _lock_row(row: re.Match[str], line: int) -> Wait:
    total, longest = _time(row[6], row[7]), _time(row[8], row[9])
    return Wait(line, int(row[3]), total, longest, "lock", row[1], acquired=int(row[2]))


# ---------------------------------------------------------------- perf report
_SYMBOL = re.compile(r"\s*[-+]?\s*(\d+\.\d+)%\s+(?:(\d+\.\d+)%\s+)?(?:\S.*\s)?\[[.kgHu]\]\s+(\S+)")
_CHAIN = re.compile(r"([\s|+-]+?)(?:(\d+(?:\.\d+)?)%[\s-]*)?([A-Za-z_][\w.$@]*|0x[0-9a-f]+)(?:\+0x[0-9a-f]+)?\s*$")
_RULE = re.compile(r"[\s|]*[-=]*[\s|]*$")


def looks_like_report(text: str) -> bool:
    """Tell whether a text holds lines of perf report."""
    return any(_SYMBOL.match(line) for line in text.splitlines())


def parse_report(text: str, source: str = "<text>") -> SymbolReport:
    """Read ``perf report``, as ``--stdio`` prints it or pasted from its screen.

    Raises
    ------
    ReadError
        No line of a symbol.
    """
    report = SymbolReport(source, len(text.splitlines()))
    for number, line in enumerate(text.splitlines(), 1):
        if _RULE.match(line):
            continue
        symbol, link = _SYMBOL.match(line), _CHAIN.match(line)
        if symbol:
            first, second = float(symbol[1]), symbol[2]
            children, own = (first, float(second)) if second else (None, first)
            report.symbols.append(Symbol(number, children, own, symbol[3]))
        elif link and report.symbols:
            column = len(link[1])
            percent = float(link[2]) if link[2] else None
            report.symbols[-1].chain.append((column, percent, link[3]))
        else:
            report.skipped.append(Skipped(number, line, "not a symbol or call chain of perf report"))
    if not report.symbols:
        raise ReadError(source, 0, f"holds no symbol of perf report; expected lines like {quote('1.23% [k] name')}")
    return report
