"""Reading of anything: a file, a folder, a paste of several tools' output, standard input."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path

from numalab.readers import formats
from numalab.readers._bundle import gather, of_files
from numalab.readers._paste import decode, lines
from numalab.readers._placed import kernel_release, placed, ranges
from numalab.readers._reading import Found, Reading, Readings
from numalab.readers._segments import segments
from numalab.readers._text import ReadError, Skipped
from numalab.readers.formats import FORMATS, FormatError

__all__ = ["read", "read_text"]

#: Logs that programs of numalab write are of one format, in which nothing else may stand.
_LOGGED = re.compile(r"\s*(?:@ \d|# t pid tid )")
#: Characters in which the first line begins, and a second one.
_FIRST = 1000
#: Of Windows, also where a program added its own; old ones of a Mac have no "\n".
_LINE_END = re.compile(r"\r+\n")
#: Line ends of editors that write Unicode's own.
_SEPARATORS = {0x2028: "\n", 0x2029: "\n"}
_SNIFFS = {known.name: known.sniff for known in FORMATS.values()}
#: Formats whose readers use prompts and names of files.
_WITH_HEADINGS = frozenset(
    {"memcg", "memcg-stat", "meminfo", "mpstat", "numa_maps", "numactl", "numastat", "numastat-m", "numastat-p"}
    | {"sched", "vmstat"}
)


def read(*sources: str | Path, format: str | None = None, kernel: str | None = None) -> Readings:
    r"""Read the output of real tools, the kernel's files, or the folder of a run.

    Parameters
    ----------
    *sources : str or Path
        Files (also .gz), folders of runs or of gathered files (copies of /proc and /sys, output of tools), ``"-"`` for
        standard input, or the text itself: a string with a line end in it.
        A text may hold the output of several tools, with prompts, quote marks and remarks between.
    format : str, optional
        Read all of it in this format (`numalab.readers.formats.FORMATS`), whatever it looks like.
    kernel : str, optional
        Release of the kernel the text is from, such as "4.15.0" (``uname -r``), where the format depends on it.

    Returns
    -------
    Readings
        One reading for each format: its tables, what was understood, guessed and skipped; ``dataset()`` makes a run.

    Raises
    ------
    FormatError
        Nothing in a text is known.
    ReadError
        A text contradicts itself or is cut off; names file and line.
    OSError
        No such file.

    Examples
    --------
    >>> found = read("numa_hit 12\nnuma_hint_faults 2048\nnuma_hint_faults_local 512\n")
    >>> found.formats
    ['vmstat']
    >>> found["vmstat"].tables[0].get("numa_hint_faults", "value")
    2048
    """
    found = [_read_one(source, format, kernel) for source in sources]
    parts = tuple(part for one in found for part in one)
    several = len(found) > 1
    unread = [replace(skip, file=one[0].source) if several else skip for one in found for skip in one.unread]
    return Readings(parts, tuple(unread))


def _read_one(source: str | Path, name: str | None, kernel: str | None) -> Readings:
    if isinstance(source, str) and "\n" in source:
        return read_text(source, "<text>", name, kernel)
    if str(source) == "-":
        return read_text(decode(sys.stdin.buffer.read()), "<stdin>", name, kernel)
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, name, kernel)
    return read_text(_text_of(path), str(path), name, kernel)


def _read_folder(path: Path, name: str | None, kernel: str | None) -> Readings:
    """Read the folder of a run, or any other as a bundle of files."""
    if (path / "meta.json").is_file():
        if name or kernel:
            raise FormatError(f"{path}: is a folder, whose meta.json says all; give no format and no kernel")
        return Readings((formats.read_folder(path),))
    if name:
        raise FormatError(f"{path}: is a folder; give a format with a file only")
    bundle = gather(path, _text_of, _refusal)
    if not bundle.names:
        raise FormatError(
            f"{path}: holds no meta.json, so it is not the folder of a run, and no file that numalab reads"
        )
    try:
        return of_files(bundle, _read(bundle.text, str(path), kernel))
    except ReadError as error:
        raise bundle.error(error) from error


def _refusal(text: str) -> str:
    """Say why a file cannot be read among others."""
    if _LOGGED.match(text.partition("\n")[2]):
        return "a log, which is read by itself only; give it as a file"
    known = segments(text, _SNIFFS) or kernel_release(placed(text))
    return "" if known else "looks like no format that numalab reads"


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ReadError(str(path), 0, f"cannot be unpacked ({error}); copy the file again") from error
    return decode(data)


def read_text(text: str, source: str, name: str | None = None, kernel: str | None = None) -> Readings:
    """Read a text; see `read`.

    Parameters
    ----------
    text : str
    source : str
        File name, for messages; of a file in /proc or /sys it also says what the text is.
    name, kernel : str, optional
        ``format`` and ``kernel`` of `read`.
    """
    if not text.isascii():
        text = text.translate(_SEPARATORS)
    text = _LINE_END.sub("\n", text) if "\n" in text else text.replace("\r", "\n")
    if not text.strip("\0 \t\r\n"):
        raise ReadError(source, 0, "is empty; expected the output of a tool")
    if not _LOGGED.match(text) and _LOGGED.match(_first_line(text)):
        text = _unquoted(text)
    if name is not None or _LOGGED.match(text):
        return Readings((formats.read(text, source, name, kernel),))
    readings = _read(text, source, kernel)
    if headings := _headings(text, readings):
        first = replace(readings[0], understood=(*readings[0].understood, headings))
        readings = replace(readings, parts=(first, *readings.parts[1:]))
    return readings


def _first_line(text: str) -> str:
    """Return the first line that is not empty, freed from quote marks."""
    return next((line.text for line in lines(text.lstrip()[:_FIRST]) if line.text), "")


def _unquoted(text: str) -> str:
    """Take the quote marks of a mail off; each line keeps its number."""
    found = [""] * (text.count("\n") + 1)
    for line in lines(text):
        found[line.number - 1] = line.text
    return "\n".join(found)


def _read(text: str, source: str, kernel: str | None) -> Readings:
    """Read the parts of a text, each in its format."""
    found = segments(text, _SNIFFS, source)
    if not found:
        raise formats.unknown(text, source)
    told = None if kernel or "sched" not in found else kernel_release(placed(text))
    if len(found) == 1:
        # alone in its text, a reader sees it as it came
        found = dict.fromkeys(found, text)
    parts: list[Reading] = []
    unread: list[Skipped] = []
    for part, own in found.items():
        try:
            parts.append(formats.read(own, source, part, kernel or (told[1] if told else None)))
        except ValueError as error:
            # words that only mention a format are none of it; a text that contradicts itself is an error
            if len(found) == 1 or re.match(rf"{re.escape(source)}:\d+: ", str(error)):
                raise
            rows = own.split("\n")
            unread += [Skipped(i, row, f"no {part} after all") for i, row in enumerate(rows, 1) if row.strip()]
    if not parts:
        raise FormatError(f"{source}: looks like {' and '.join(found)}, but holds nothing that can be read as such")
    if told:
        guess = Found(told[0], f"kernel {told[1]}, as this line says, is the one that /proc/PID/sched is from")
        parts = [replace(one, guessed=(*one.guessed, guess)) if one.format == "sched" else one for one in parts]
    return Readings(tuple(parts), tuple(unread))


def _headings(text: str, parts: Readings) -> Found | None:
    """Say which lines were taken as prompts, file names and the like, of formats whose readers do so."""
    if not _WITH_HEADINGS.intersection(part.format for part in parts):
        return None
    skipped = {skip.line for part in parts for skip in part.skipped}
    found = [line.number for line in placed(text) if line.heading and line.number not in skipped]
    return Found(0, f"prompts and names of files in lines {ranges(found)}") if found else None
