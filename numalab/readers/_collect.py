"""What reading a run folder gathers: files read and missing, skipped lines, the parts of the dataset."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from numalab.readers._assemble import Parts
from numalab.readers._folder import Folder
from numalab.readers._text import ReadError, Skipped, check_whole


class _Report(Protocol):
    lines: int
    skipped: list[Skipped]


AnyReport = TypeVar("AnyReport", bound=_Report)


@dataclass(frozen=True)
class FileRead:
    """A file that was read: its name, length in lines, and what it held."""

    name: str
    lines: int
    what: str


@dataclass
class Collected:
    """The outcome of reading a folder.

    Attributes
    ----------
    folder : Folder
    meta : dict
        meta.json.
    parts : Parts
    files : list of FileRead
    missing : list of (name, what is lacking without it)
    skipped : list of Skipped
    """

    folder: Folder
    meta: dict[str, Any]
    parts: Parts
    files: list[FileRead] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def read(
        self, name: str, parse: Callable[[str, str], AnyReport], lacks: str, *, whole: bool = True
    ) -> AnyReport | None:
        """Read one file of the folder.

        Parameters
        ----------
        name : str
        parse : callable
            Takes text and source.
        lacks : str
            What the run is without when the file is not there.
        whole : bool
            The last line must end as lines do.

        Returns
        -------
        The reader's report, or None when the file is missing or empty.
        """
        text = self.folder.text(name)
        if text is None or not text.strip():
            self.missing.append((name, f"{'is empty' if text is not None else 'is not there'}: {lacks}"))
            return None
        source = self.folder.source(name)
        if whole:
            check_whole(text, source)
        report = parse(text, source)
        self.skipped += [Skipped(skip.line, skip.text, skip.reason, name) for skip in report.skipped]
        return report

    def note(self, name: str, report: _Report | None, what: str) -> None:
        """Say what a file held."""
        if report is not None:
            self.files.append(FileRead(name, report.lines, what))


def read_meta(folder: Folder) -> dict[str, Any]:
    """Read meta.json.

    Raises
    ------
    ReadError
        Missing, or no JSON object.
    """
    text, source = folder.text("meta.json"), folder.source("meta.json")
    if text is None:
        names = ", ".join(folder.names()) or "nothing"
        raise ReadError(str(folder.path), 0, f"has no meta.json, so it is not the folder of a run; it holds {names}")
    try:
        meta = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReadError(source, error.lineno, f"expected JSON: {error.msg}; copy the file again") from error
    if not isinstance(meta, dict):
        raise ReadError(source, 1, "expected a JSON object")
    return meta


def need(meta: Any, path: str, kind: type, source: str) -> Any:
    """Return a value of meta.json by its dotted path.

    Raises
    ------
    ReadError
        When it is missing or of another type.
    """
    value = meta
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ReadError(source, 0, f"{path}: expected {kind.__name__}, got {value!r}")
    return value


def plural(count: int, noun: str) -> str:
    """Return "1 sample", "2 samples"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
