"""A folder of files that somebody gathered (copies of /proc and /sys, output of tools), read like one paste of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from numalab.readers._reading import Found, Reading, Readings
from numalab.readers._text import ReadError, Skipped

#: Larger files are no copy of /proc, and would fill the memory.
_LARGEST = 1 << 28
#: With more files a folder is a whole disk.
_MOST_FILES = 10_000
#: Some of the files there never end.
_LIVE = (Path("/"), Path("/proc"), Path("/sys"))


@dataclass
class Bundle:
    """Files of a folder, joined to one text in which each stands below ``==> name <==``.

    Attributes
    ----------
    path : Path
    text : str
    names : list of str
        Of the files, within the folder.
    starts : list of int
        Line of each file's heading in the text.
    skipped : list of Skipped
        Files that were left out.
    """

    path: Path
    text: str = ""
    names: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def place(self, line: int) -> tuple[str, int]:
        """Return file and line in it for a line of the text; the folder as a whole is ("", 0)."""
        at = bisect_right(self.starts, line) - 1
        return (self.names[at], line - self.starts[at]) if at >= 0 else ("", 0)

    def placed(self, reading: Reading) -> Reading:
        """Return a reading of the text with files and their lines in place of the text's."""

        def move(found: Found) -> Found:
            file, line = self.place(found.line)
            return Found(line, found.what, file)

        def skip(one: Skipped) -> Skipped:
            file, line = self.place(one.line)
            return Skipped(line, one.text, one.reason, file)

        return replace(
            reading,
            understood=tuple(map(move, reading.understood)),
            guessed=tuple(map(move, reading.guessed)),
            skipped=tuple(map(skip, reading.skipped)),
            tables=tuple(replace(table, line=self.place(table.line)[1]) for table in reading.tables),
        )

    def error(self, error: ReadError) -> ReadError:
        """Return an error that names the file at fault."""
        name, line = self.place(error.line)
        return ReadError(str(self.path / name), line, error.problem)


def gather(path: Path, decode: Callable[[Path], str], refusal: Callable[[str], str]) -> Bundle:
    """Join the files of a folder, and of the folders in it.

    Parameters
    ----------
    path : Path
    decode : callable
        Returns the text of a file.
    refusal : callable
        Says why a text, below its heading, cannot be read among others; "" if it can.

    Raises
    ------
    ReadError
        The folder is no folder of gathered files.
    """
    bundle = Bundle(path)
    parts: list[str] = []
    line = 1
    live = path.resolve() in _LIVE
    every = [] if live else sorted(islice((one for one in path.rglob("*") if one.is_file()), _MOST_FILES + 1))
    if live or len(every) > _MOST_FILES:
        raise ReadError(str(path), 0, f"is / or /proc, or holds over {_MOST_FILES:,} files; name the files to read")
    for file in every:
        name = str(file.relative_to(path))
        text, why = "", "no text, or one too large"
        try:
            text = "" if file.stat().st_size > _LARGEST else decode(file)
        except OSError as error:  # some files of /sys can only be written
            why = f"cannot be read: {error.strerror}"
        part = f"==> {file} <==\n{text}\n"
        if text and "\0" not in text:
            why = refusal(part)
        if why:
            bundle.skipped.append(Skipped(0, "", why, name))
            continue
        bundle.names.append(name)
        bundle.starts.append(line)
        parts.append(part)
        line += part.count("\n")
    bundle.text = "".join(parts)
    return bundle


def of_files(bundle: Bundle, readings: Readings) -> Readings:
    """Return what was read of a bundle's text, with the names of its files."""
    unread = [replace(one, file=bundle.place(one.line)[0], line=bundle.place(one.line)[1]) for one in readings.unread]
    # lines are those of the files now, no longer of the text that was put together of them
    parts = tuple(replace(bundle.placed(one), text="") for one in readings)
    return Readings(parts, (*unread, *bundle.skipped))
