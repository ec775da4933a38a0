"""Lines of a mail or paste, freed from what mail programs, terminals and pagers do to them; each keeps its number."""

import quopri
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from numalab.readers._numbers import ungrouped

#: Also with the initials of who is quoted.
_QUOTED = re.compile(r"[ \t]*(?:(?:[A-Z][A-Za-z]{0,3})?>[ \t]?)+")
#: Some programs quote with a bar. Tables of Markdown and call chains of perf report begin with one too: the first end
#: with one, and of the second all text is some ten columns away.
_BAR = re.compile(r" {0,3}\|")
_NEAR_BARS = re.compile(r" {0,3}(?:[|>] ?)++ {0,6}[\w$#/]")
_BEHIND_BARS = re.compile(r" {0,3}(?:[|>] ?)++ *[\w$#/]")
_CHAIN = re.compile(r" {0,3}(?:[|>] ?)++ *-{2,3}[\w(]")
_FEWEST_BARRED, _DEEPEST = 2, 4
#: Marks of a message saved as it travels: "=C2=B1" is "±", "=20" a blank at the end of a line.
_ENCODED = re.compile(r"=C2=B1|=B1|=3D|=20$", re.MULTILINE)
#: Counts by node, which may end in "=20" themselves; in an encoded text their "=" would be "=3D".
_PLAIN_COUNTS = re.compile(r"\bN\d+=\d")
_SOFT_BREAK = re.compile(r"[^=]=$")
#: A mail stored as one line keeps its quote marks, and they tell where lines began.
_FLAT = 160
_LOST_BREAK = re.compile(r" (?=>+ )")
#: Colours and window titles of a terminal, letters struck over, marks without width or of the direction of writing,
#: other control characters.
_UNSEEN = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\n]\x08|[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
#: Blanks of other widths become plain ones, and so do dashes that word processors put for a minus.
_PLAIN = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " ") | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
)
#: Thousands parted by marks that part nothing else.
_THOUSANDS = re.compile(r"(?<![\w.,'’])(?P<first>\d{1,3})(?P<rest>(?:['’\u2009\u202f]\d{3})+)(?![\w'’])")
_WIDEST = 1000
_ENDLESS = re.compile(f" {{{_WIDEST},}}")
#: Bytes that are looked at to tell an encoding.
_PROBE = 1000
#: The number that ``cat -n``, ``grep -n`` or a list puts before a line.
_NUMBERED = re.compile(r"\s*(\d{1,6})(?:[.):]|\s{2}|$)")
#: A table may begin its rows with numbers too; among numbered lines some go on with more than numbers.
_TEXT = re.compile(r"\s*(?:[A-Za-z$#/>]|[0-9a-f]{8,16} )")
_FEWEST_NUMBERED = 3
#: A name and a value, as most lines of /proc/vmstat are: nothing to undo, and no heading.
COUNT = re.compile(r"(?P<name>[a-z][a-z0-9_]+) (?P<value>\d+)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes
    ----------
    number : int
        From 1, in the text as it came.
    text : str
        What is left of it.
    joined : bool
        Cut from a mail whose line ends were lost, so more may follow where the line once ended.
    """

    number: int
    text: str
    joined: bool = False


def decode(data: bytes) -> str:
    """Return the text of a file, whatever program wrote it.

    Parameters
    ----------
    data : bytes
        UTF-8 or, line by line where it is not that, Latin-1; UTF-16 and UTF-32 if it begins with their mark, or
        if every other byte is 0.
    """
    if data[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return data.decode("utf-32", errors="replace")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(data) > 1 and not any(data[first:_PROBE:2]) and all(data[1 - first : _PROBE : 2]):
            return data.decode(name, errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(_decode_line(line) for line in data.split(b"\n"))


def _decode_line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def plain_lines(text: str) -> list[Line]:
    """Cut a text into `lines`, and take the commas out of its counts (`numalab.readers._numbers.ungrouped`)."""
    return [Line(line.number, ungrouped(line.text), line.joined) for line in lines(text)]


def lines(text: str) -> list[Line]:
    """Cut a text into lines without quote marks, tabs, colours, list numbers and line ends.

    Parameters
    ----------
    text : str
        Quoted mails ("> ", "| ", "AB> "), mails in quoted-printable, and mails whose line ends became blanks are
        undone.

    Returns
    -------
    list of Line
        Blank lines are kept, empty.
    """
    return list(_lines(text))


# many readers look at the same text, one after the other
@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[Line, ...]:
    encoded = _ENCODED.search(text) is not None and ("=3D" in text or _PLAIN_COUNTS.search(text) is None)
    found: list[Line] = []
    start, held = 0, ""
    every = text.split("\n")
    for number, raw in enumerate(every, 1):
        if not held and COUNT.fullmatch(raw):
            found.append(Line(number, raw))
            continue
        line = raw.rstrip("\r")
        start = start if held else number
        if encoded and number < len(every) and _SOFT_BREAK.search(line):
            held += line[:-1]
            continue
        whole = held + line
        held = ""
        if encoded:
            whole = quopri.decodestring(whole.encode()).decode("utf-8", errors="replace")
        if "'" in whole or not whole.isascii():
            whole = _THOUSANDS.sub(_together, whole)
        if not whole.isascii() or not whole.isprintable():
            whole = _UNSEEN.sub("", whole).translate(_PLAIN)
        flat = len(whole) > _FLAT and len(_LOST_BREAK.findall(whole)) > 2
        pieces = _LOST_BREAK.split(whole) if flat else [whole]
        found += [Line(start, _narrowed(_unquoted(piece).expandtabs().rstrip()), flat) for piece in pieces]
    return tuple(_without_numbers(_without_bars(found) if "|" in text else found))


def _without_bars(found: list[Line], depth: int = 1) -> list[Line]:
    """Take the bars off blocks of lines that are quoted so."""
    out: list[Line] = []
    for barred, lines_ in groupby(found, lambda line: _BAR.match(line.text) is not None):
        block = list(lines_)
        if barred and len(block) >= _FEWEST_BARRED and _is_quoted(block):
            rests = [_BAR.sub("", line.text, 1) for line in block]
            blank = all(rest[:1] in ("", " ") for rest in rests)
            texts = [_unquoted(rest[1:] if blank else rest) for rest in rests]
            block = [Line(line.number, text, line.joined) for line, text in zip(block, texts, strict=True)]
            block = _without_bars(block, depth + 1) if depth < _DEEPEST else block
        out += block
    return out


def _is_quoted(barred: list[Line]) -> bool:
    """Tell whether the bars before lines are quote marks."""
    if all(line.text.endswith("|") for line in barred):
        return False
    near = _NEAR_BARS if any(_CHAIN.match(line.text) for line in barred) else _BEHIND_BARS
    return any(near.match(line.text) for line in barred)


def _together(count: re.Match[str]) -> str:
    """Return a count without marks between its digits; behind a blank it keeps its width, as columns want it."""
    plain = count["first"] + re.sub(r"\D", "", count["rest"])
    return plain.rjust(len(count[0])) if count.string[: count.start()].endswith((" ", "\t")) else plain


def _unquoted(text: str) -> str:
    quoted = _QUOTED.match(text)
    return text[quoted.end() :] if quoted else text


def _narrowed(text: str) -> str:
    """Cut endless runs of blanks, over which patterns would try again at each; no table is so wide."""
    return _ENDLESS.sub(" " * _WIDEST, text) if len(text) > _WIDEST else text


def _without_numbers(found: list[Line]) -> list[Line]:
    """Take the numbers off lines that follow each other and are numbered upwards."""
    out, at = list(found), 0
    while at < len(found):
        if not _NUMBERED.match(found[at].text):
            at += 1
            continue
        run: list[re.Match[str]] = []
        while at + len(run) < len(found) and (mark := _NUMBERED.match(found[at + len(run)].text)):
            if run and not _follows(run[-1], mark):
                break
            run.append(mark)
        rests = [_unquoted(mark.string[mark.end() :]) for mark in run]
        # a list has a blank behind each mark; ``grep -n`` has not, and there blanks are the line's own
        cut = all(rest[:1] in ("", " ") for rest in rests) and _marked(run[0])
        words = any(_TEXT.match(mark.string, mark.end()) for mark in run)
        if len(run) >= _FEWEST_NUMBERED and (words or (cut and _is_list(run))):
            for i, rest in enumerate(rests, at):
                out[i] = Line(found[i].number, rest[1:] if cut else rest, found[i].joined)
        at += len(run)
    return out


def _is_list(run: list[re.Match[str]]) -> bool:
    """Tell whether numbers are 1. 2. 3. or 1) 2) 3), as no table has them."""
    return all(int(mark[1]) == i and mark[0].rstrip()[-1] in ".)" for i, mark in enumerate(run, 1))


def _follows(before: re.Match[str], after: re.Match[str]) -> bool:
    """Tell whether a number may be that of the next line: with a mark behind it is higher, with mere blanks by one."""
    step = int(after[1]) - int(before[1])
    return step > 0 if _marked(before) and _marked(after) else step == 1


def _marked(number: re.Match[str]) -> bool:
    return number[0].rstrip()[-1] in ".):"
