"""From a paste to whole lines of ``perf bench numa mem``: quoting, numbering, lost line ends, wrapped lines."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from numalab.readers._perf_types import RESULTS, parse_options

BY_TEXT = {text: name for name, (_, text, _) in RESULTS.items()}

_NUMBER = r"-?\d+(?:\.\d+)?"
RECORD_START = re.compile(rf"(?=#\s+{_NUMBER}%\s+\[)")
RECORD = re.compile(
    rf"#\s+(?P<percent>{_NUMBER})%\s+\[(?P<minutes>{_NUMBER}) mins\](?P<nodes>(?:\s+\d+/\d+)+)"
    r"\s*\[\s*(?P<distance>\d+)/(?P<groups>\d+)\s*\]"
    r"\s+l:\s*(?P<low>-?\d+)-\s*(?P<high>-?\d+)\s*\(\s*(?P<diff>-?\d+)\)"
    rf"(?:\s+\[\s*(?P<skew>{_NUMBER})%\])?(?:\s+\{{(?P<few>-?\d+)-(?P<many>\d+)\}})?"
    rf"(?:\s+\(\s*(?P<flag_s>{_NUMBER})s (?P<flag>converged|de-converged)\))?\s*$"
)
TICK = re.compile(rf"#\s+(?P<percent>{_NUMBER})%\s+\[(?P<minutes>{_NUMBER}) mins\]\s*$")
BANNER = re.compile(r'#\s*Running\s+(?P<name>[^"]*?),?\s*"perf bench numa\b(?:\s+(?:numa-)?mem\b)?(?P<args>[^"]*)"')
HEADER = re.compile(r"#\s*Running (?:'?numa/mem'? benchmark|test on:)")
_COMMAND = re.compile(r"(?P<before>.*?)\bperf bench numa (?:numa-)?mem\b(?P<args>[^\"']*)$")
_PROMPT = re.compile(r"(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*|.*[#$%])?\s*$")
TASKS = re.compile(r"#\s*(?P<tasks>\d+) tasks? will execute \(on (?P<nodes>\d+) nodes?, (?P<cpus>\d+) CPUs?\):")
SIZE = re.compile(
    r"#\s*(?P<loops>-?\d+)x\s+(?P<mb>\d+)MB\s+(?P<kind>global|process|thread)\s+(?:shared|local)\s+mem op"
)
STARTUP = re.compile(r"#\s*Startup synchronization:.*?(?P<seconds>[\d.]+) seconds")
_ROW = re.compile(r"(?P<test>[^,]+?),\s+(?P<value>[^\s,]+),\s+(?P<unit>[^\s,]+),?\s+(?P<name>\S+)$")
THREAD_ROW = re.compile(
    r"process(?P<p>\d+):thread(?P<t>\d+)\s+(?P<value>[^\s,]+),\s+(?P<unit>[^\s,]+),?\s+(?P<name>\S+)$"
)
_LONG_ROW = re.compile(r"(?P<value>\S+)\s+(?P<text>(?:secs|%|GB|nsecs/byte|GB/sec).*)$")

_QUOTE = re.compile(r"(?:\s{0,2}>)+ ?")
# "12: ", "12. ", "12) ", "12<tab>" before anything; a bare "12 " only before a "#". A result row begins with a
# decimal number, which none of these takes.
_LIST_NUMBER = re.compile(r"\s*\d{1,6}(?:[:.)]?\s*$|[:.)]\s+|\t|\s+(?=#))")
#: Where a record begins at the end of a line whose carriage returns were lost.
_TAIL = re.compile(rf"(?<=\S)\s+(?P<tail>#(?:\s+{_NUMBER}%)?)\s*$")

# What a later line of a wrapped record may consist of, and what only a record has.
_FRAGMENT = re.compile(r"(?:[-\d/.%\[\](){}\s]|l:|\ds\b|mins\]|(?:de-)?converged\))+")
_TELLING = re.compile(
    rf"converged\)|\{{-?\d+-\d+\}}|\[\s*{_NUMBER}%\]|l:|\[\s*\d+/\d+\s*\]|\d+/\d+\s+\d+/\d+|\d+/\d+\s*\["
)


def row(piece: str) -> re.Match[str] | None:
    """Match a result row in perf's short form."""
    match = _ROW.match(piece)
    return match if match and match["name"] in RESULTS else None


def long_row(piece: str) -> re.Match[str] | None:
    """Match a result row in perf's long form, as printed without -q."""
    match = _LONG_ROW.match(piece)
    return match if match and match["text"] in BY_TEXT else None


def command(piece: str) -> re.Match[str] | None:
    """Match a command line, alone or after a prompt; one named in prose is none."""
    match = _COMMAND.match(piece)
    return match if match and _PROMPT.match(match["before"]) else None


def is_fragment(piece: str) -> bool:
    """Tell whether a line can only be the rest of a wrapped progress record."""
    return bool(_FRAGMENT.fullmatch(piece) and _TELLING.search(piece))


#: How a line begins that may be wrapped, and what tells that it is whole; records and commands have their own rule.
_WRAPPED: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"#\s*\d+ tasks?\b"), TASKS.match),
    (re.compile(r"#\s*-?\d+x\s+\d+MB\b"), SIZE.match),
    (re.compile(r"#\s*Startup synchronization:"), STARTUP.match),
    (re.compile(r'#\s*Running\s+[^"]*"'), BANNER.match),
    (re.compile(r"process\d+:thread\d+\b"), THREAD_ROW.match),
    (re.compile(r"[^,#]+,(?:\s+[^\s,]+,(?:\s+[^\s,]+,?)?)?$"), row),
    (re.compile(r"[\d.]+\s+(?:secs|%|GB|nsecs/byte|GB/sec)"), long_row),
)
#: Most lines that one line of perf, other than a record, is taken to be wrapped into.
_MOST = 4


@dataclass(frozen=True)
class _Segment:
    """A line, or one of the records on it: without the number it may carry, and with it."""

    line: int
    text: str
    numbered: str


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text into lines and progress records, joining what a mail client wrapped.

    Parameters
    ----------
    text : str

    Yields
    ------
    int, str
        Number of the line on which it begins; the line or record without quoting, numbering and blanks around.
    """
    segments = list(_segments(text))
    position = 0
    while position < len(segments):
        first = segments[position]
        if RECORD_START.match(first.text):
            taken, piece = _record(segments, position)
        else:
            taken, piece = _line(segments, position)
        position += taken
        if piece.strip("#"):
            yield first.line, piece


def _unquoted(line: str) -> tuple[str, str]:
    """Split a line, after its quoting, into the number it may carry and the rest."""
    quote = _QUOTE.match(line)
    line = line[quote.end() :] if quote else line
    label = _LIST_NUMBER.match(line)
    return (label.group(), line[label.end() :]) if label else ("", line)


def _segments(text: str) -> Iterator[_Segment]:
    tail = ""
    lines = [_unquoted(line) for line in text.replace("\r\n", "\n").replace("^M", "\r").split("\n")]
    for number, (label, line) in enumerate(lines, 1):
        bare, tail = tail + line, ""
        end = _TAIL.search(bare)
        if end and number < len(lines) and RECORD_START.match(f"{end['tail']} {lines[number][1].strip()}"):
            bare, tail = bare[: end.start()], f"{end['tail']} "
        found = [piece.strip() for part in bare.split("\r") for piece in RECORD_START.split(part)]
        found = [piece for piece in found if piece.strip("#")]
        if label.strip() and not found:
            found = [""]  # "0)" may be the end of a wrapped record instead of a number
        for index, piece in enumerate(found):
            yield _Segment(number, piece, piece if index else f"{label}{piece}".strip())


def _record(segments: list[_Segment], position: int) -> tuple[int, str]:
    """Join a record and its later lines: as many as make a whole record, and never fewer than surely belong to it."""
    first, rest = segments[position], []
    for segment in segments[position + 1 :]:
        if RECORD_START.match(segment.text):
            break
        if not _FRAGMENT.fullmatch(segment.text) and not _FRAGMENT.fullmatch(segment.numbered):
            break
        rest.append(segment)
    sure = max((n for n, segment in enumerate(rest, 1) if is_fragment(segment.text)), default=0)
    for count in range(len(rest), sure - 1, -1):
        for later in ([s.numbered for s in rest[:count]], [s.text for s in rest[:count]]):
            piece = " ".join([first.text, *later])
            if RECORD.match(piece) or TICK.match(piece):
                return 1 + count, piece
    return 1 + sure, " ".join([first.text, *(s.text for s in rest[:sure])])


def _line(segments: list[_Segment], position: int) -> tuple[int, str]:
    """Join a line of another kind with its later lines, where that makes it whole."""
    first = segments[position].text
    if command(first):
        return _command(segments, position)
    for start, whole in _WRAPPED:
        if not start.match(first) or whole(first):
            continue
        piece = first
        for count, segment in enumerate(segments[position + 1 : position + _MOST], 2):
            if segment.text.startswith("#") or row(segment.text):
                break
            piece = f"{piece} {segment.text or segment.numbered}"
            if whole(piece):
                return count, piece
    return 1, first


def _command(segments: list[_Segment], position: int) -> tuple[int, str]:
    """Join a command line with later lines that begin with an option, or with the value its last option lacks."""
    piece = segments[position].text
    count = 1
    for segment in segments[position + 1 : position + _MOST]:
        joined = f"{piece} {segment.text or segment.numbered}"
        if not _understood(joined) or not (segment.text.startswith("-") or not _understood(piece)):
            break
        piece = joined
        count += 1
    return count, piece


def _understood(piece: str) -> bool:
    match = command(piece)
    try:
        return match is not None and bool(parse_options(match["args"]))
    except ValueError:
        return False
