"""Lines of a paste with what stands around them: prompts, file names above or before them, archives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from numalab.readers._paste import COUNT, Line, lines
from numalab.readers._text import Skipped

#: Programs whose call somebody pastes together with what they print.
_PROGRAMS = (
    "adb|awk|bpftrace|cat|cd|docker|echo|egrep|fgrep|for|grep|head|kubectl|less|ls|lscpu|more|mpstat|numactl|numastat|"
    r"numademo|pcp|perf|pgrep|podman|sed|ssh|su|sudo|sysctl|tail|taskset|time|trace-cmd|uname|watch|while|zgrep|funclatency|"
    r"numamove|echo|date|sleep|\./\S+"
)
_PROMPT = re.compile(
    rf"\s*(?:\[[^\]\s]+@[^\]]*\]|[\w.-]+@[\w.-]+(?::\S*)?|~|\(\w+\))?\s?(?P<mark>[$#%])\s+(?P<command>(?:{_PROGRAMS})\b.*)$"
)
#: With "$" or a name of user and host before it, any command is one.
_SURE_PROMPT = re.compile(
    r"\s*(?:(?:\[[^\]\s]+@[^\]]*\]|[\w.-]+@[\w.-]+(?::\S*)?)\s?[$#%]|\$)\s+(?P<command>[\w./~<-].*)$"
)
_ECHO = re.compile(rf"\++ (?P<command>(?:{_PROGRAMS})\b.*)$")
_LEVEL = re.compile(r"==> (?P<path>.+?) <==$")
_FENCE = re.compile(r"\s*(?:```|~~~)[\w+-]*$")
_ALONE = re.compile(
    r"\s*(?:#+ |-{2,} |\*+ )?(?P<path>/(?:proc|sys|dev/cgroup|cgroup)/[^:]*?|(?:\S*/)?node\d+(?:/\w+)?"
    r"|[Nn]ode ?\d+(?=:)|(?:/?proc/)?vmstat|numa_maps|memory\.(?:numa_)?stat)(?P<colon>:?)(?: -{2,}| \*+)?$"
)
_BEFORE = re.compile(
    r"\s*(?P<path>(?=[^\s:]*/)[^\s:]+|node\d+/\w+|vmstat|numa_maps|numastat|meminfo|memory\.(?:numa_)?stat):(?:\d+:)?(?P<rest>.*)$"
)
_ARCHIVE = re.compile(r"# ttar( -)+$")
_ARCHIVED = re.compile(r"(?:(?P<what>Path|Directory|SymlinkTo): (?P<path>\S.*)|Lines: \d+|Mode: \d+)$")
_PATH = re.compile(r"[^\s;|&<>'\"]*/[^\s;|&<>'\"]+")
#: Files of one line, which may be empty: a name with nothing behind it is no heading.
_ONE_LINE = ("cpulist", "cpumap", "distance", "online", "possible", "has_cpu", "has_memory", "has_normal_memory")
_TAIL = re.compile(r"(?<!\s)\s+(?:<[-=]+|←|⬅|<==|#|//)(?:\s.*|-*)?$")
_NUMBER = re.compile(r"(?<!\S)\d[\d.,]*(?!\S)")
_CLOCK = re.compile(
    r"(?:time:? |@ )?(?P<epoch>1\d{9}(?:\.\d+)?)$"
    r"|(?P<iso>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?P<part>[.,]\d+)?\s*(?:Z|UTC|[+-]\d\d:?\d\d)?$"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?P<month>[A-Z][a-z]{2})\s+(?P<day>\d{1,2}) (?P<hms>\d\d:\d\d:\d\d)"
    r"(?: [AP]M)?(?: [A-Z]{2,5})? (?P<year>\d{4})$"
)


@dataclass(frozen=True, slots=True)
class Placed:
    """One line, and what it came from.

    Attributes
    ----------
    number : int
        From 1, in the text as it came.
    text : str
        Without the file name that grep puts before it.
    file : str
        The file it is from, as far as the text says; "" where it does not.
    heading : bool
        Names a file or a command, or belongs to an archive's frame: holds no value.
    """

    number: int
    text: str
    file: str = ""
    heading: bool = False

    @property
    def bare(self) -> str:
        """The line without arrows and remarks that people put behind what they mean."""
        return _TAIL.sub("", self.text)

    @property
    def name(self) -> str:
        """Last part of the file's path."""
        return self.file.rstrip("/").rpartition("/")[2]


def placed(text: str, source: str = "") -> list[Placed]:
    """Cut a text into lines (`numalab.readers._paste.lines`) and say of each which file it is from.

    Parameters
    ----------
    text : str
        Headings in it are prompts with a command, ``==> file <==``, a path alone in its line, the frame of a ttar
        archive and the fences of Markdown; a file holds until the next heading that names one.
    source : str
        The file that the text is, which may be one of /proc or /sys itself.
    """
    return list(_placed(text, source if source.startswith(("/proc/", "/sys/")) else ""))


@lru_cache(maxsize=4)
def _placed(text: str, file: str) -> tuple[Placed, ...]:
    return tuple(place(lines(text), file))


def place(every: Iterable[Line], file: str = "") -> list[Placed]:
    """Say of lines which file they are from; see `placed`."""
    found: list[Placed] = []
    archive = False
    for line in every:
        bare = line.text
        if COUNT.fullmatch(bare):
            found.append(Placed(line.number, bare, file))
            continue
        archive = archive or _ARCHIVE.match(bare) is not None
        frame = _ARCHIVED.match(bare.strip()) if archive else None
        if frame or (archive and _ARCHIVE.match(bare)):
            file = frame["path"] if frame and frame["what"] == "Path" else file if frame and not frame["what"] else ""
            found.append(Placed(line.number, bare, file, True))
        elif (named := _named(bare)) is not None:
            file = named
            found.append(Placed(line.number, bare, file, True))
        elif _FENCE.match(bare):
            found.append(Placed(line.number, bare, file, True))
        elif (before := _BEFORE.match(bare)) and (before["rest"].strip() or before["path"].endswith(_ONE_LINE)):
            found.append(Placed(line.number, before["rest"], before["path"]))
        else:
            found.append(Placed(line.number, bare, file))
    return found


def unwrapped(every: Iterable[Placed], goes_on: Callable[[str, str], bool]) -> list[Placed]:
    """Put the rest of lines that a mail program wrapped behind their beginnings.

    Parameters
    ----------
    every : iterable of Placed
    goes_on : callable
        Tells of a line, as far as it is put together, and of the next whether the second is the rest of the first.
    """
    found: list[Placed] = []
    for line in every:
        if found and goes_on(found[-1].text, line.text):
            found[-1] = replace(found[-1], text=f"{found[-1].text} {line.text.strip()}")
        else:
            found.append(line)
    return found


def _named(text: str) -> str | None:
    """Return the file that a heading names ("" if a command reads none); None if the line is no heading."""
    if level := _LEVEL.match(text):
        return level["path"]
    if prompt := _SURE_PROMPT.match(text) or _PROMPT.match(text) or _ECHO.match(text):
        paths = [path for path in _PATH.findall(prompt["command"]) if path.startswith("/") or "node" in path]
        return paths[-1] if paths else ""
    alone = _ALONE.match(text)
    if alone is None or (alone["path"].rpartition("/")[2] in _ONE_LINE and alone["colon"]):
        return None
    return alone["path"]


def clock(text: str) -> float | None:
    """Return the seconds (since 1970, time zones left aside) that a line alone says, as ``date`` prints it; or None."""
    match = _CLOCK.match(text.strip())
    if match is None:
        return None
    if match["epoch"]:
        return float(match["epoch"])
    if match["iso"]:
        moment = match["iso"].replace("T", " ")
        form = "%Y-%m-%d %H:%M:%S"
    else:
        moment = f"{match['year']} {match['month']} {match['day']} {match['hms']}"
        form = "%Y %b %d %H:%M:%S"
    try:
        seconds = (datetime.strptime(moment, form) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return None
    return seconds + float((match["part"] or "0").replace(",", "."))


#: As in /proc/version, ``uname -a`` and the first line of mpstat.
_RELEASE = re.compile(
    r"\bLinux (?:version (?P<version>\d+\.\d+[\w.+-]*)|\S+ (?P<uname>\d+\.\d+[\w.+-]*) #\d"
    r"|(?P<tool>\d+\.\d+[\w.+-]*) \()"
)


def kernel_release(found: Iterable[Placed]) -> tuple[int, str] | None:
    """Return line and kernel release if the text holds ``uname -a``, ``uname -r`` or /proc/version."""
    asked = False
    for line in found:
        if match := _RELEASE.search(line.text):
            return line.number, match["version"] or match["uname"] or match["tool"]
        if asked and (match := re.match(r"\s*(\d+\.\d+\.\d+[\w.+-]*)$", line.text)):
            return line.number, match[1]
        asked = line.heading and "uname -r" in line.text
    return None


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as the kernel prints CPUs: "0-7,120-175"."""
    parts: list[list[int]] = []
    for one in sorted(numbers):
        if parts and one == parts[-1][-1] + 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ",".join("-".join(map(str, part)) for part in parts)


class Labels:
    """The last line of other text above something, which may be its name; lines that name nothing are skipped.

    Parameters
    ----------
    skipped : list of Skipped
        Where lines go that nobody took as a label.
    titles : list of (line, text)
        Where lines go that were taken.
    reason : str
        Why the others are skipped.
    """

    #: Longer lines are prose.
    LONGEST = 100

    def __init__(self, skipped: list[Skipped], titles: list[tuple[int, str]], reason: str) -> None:
        self.skipped, self.titles, self.reason = skipped, titles, reason
        self.held: Placed | None = None

    def offer(self, line: Placed) -> None:
        """Hold a line, and give up the one held before."""
        self.drop()
        self.held = line
        text = line.text.rstrip()
        row = len(_NUMBER.findall(text)) > 1  # of some table
        if len(text) > self.LONGEST or row or not (text.endswith(":") or any(char.isalpha() for char in text)):
            self.drop()

    def drop(self) -> None:
        """Skip the line that is held: it names nothing."""
        if self.held:
            self.skipped.append(Skipped(self.held.number, self.held.text, self.reason))
            self.held = None

    def take(self) -> str:
        """Return the line that is held as a label, without what only frames it; "" if there is none."""
        held, self.held = self.held, None
        if held is None:
            return ""
        title = held.text.strip(" #=*-").rstrip(":").strip()
        self.titles.append((held.number, title))
        return title

    def finish(self) -> None:
        """Skip what is still held, and put the skipped lines in the order of the text."""
        self.drop()
        self.skipped.sort(key=lambda skip: skip.line)
