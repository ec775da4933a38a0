"""What ``numalab read`` gets from any format: one `Reading` per format, all of them a `Readings`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

from numalab.readers._text import NoRunError, Skipped

if TYPE_CHECKING:
    import xarray as xr

Value = str | int | float | None


@dataclass(frozen=True)
class Found:
    """Something understood: where it begins (0: the file as a whole), what it is, in a folder in which file."""

    line: int
    what: str
    file: str = ""


@dataclass(frozen=True)
class Table:
    """Values as the text has them, named as the text names them.

    Attributes
    ----------
    name : str
        What is tabulated.
    columns : tuple of str
        Heads; the first is of the labels that tell rows apart.
    rows : tuple of tuples
        One value per column; None where the text has none.
    units : str
        Of all numbers; empty where they differ and the heads say them.
    line : int
        Where it begins.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    units: str = ""
    line: int = 0

    def get(self, row: str | int, column: str | int) -> Value:
        """Return one value by the labels of its row and column.

        Raises
        ------
        KeyError
            No such row or column.
        """
        if str(column) not in self.columns:
            raise KeyError(f"{self.name} has no column {column!r}; it has {', '.join(self.columns)}")
        at = self.columns.index(str(column))
        for values in self.rows:
            if values[0] == row or str(values[0]) == str(row):
                return values[at]
        raise KeyError(f"{self.name} has no row {row!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain lists."""
        return {
            "name": self.name,
            "line": self.line,
            "units": self.units,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }


def no_run(source: str, what: str) -> Callable[[], xr.Dataset]:
    """Return the ``dataset`` of a reading that has tables only."""

    def refuse() -> xr.Dataset:
        raise NoRunError(source, 0, f"{what} has nothing that a run has; its values are in the tables (--json)")

    return refuse


@dataclass(frozen=True)
class Reading:
    """What a text, or a folder of texts, held in one format.

    Attributes
    ----------
    source : str
        File or folder, for messages.
    format : str
    lines : int
        Length of the text.
    understood : tuple of Found
    skipped : tuple of Skipped
    dataset : callable
        Makes the run (`numalab.schema`) of it; raises `NoRunError` where there is nothing that a run has.
    missing : tuple of Found
        What a folder or file lacks, and what the run is without for it.
    guessed : tuple of Found
        What the text does not say and was taken to be so.
    tables : tuple of Table
        Values that a run has no place for, or not as the text has them.
    text : str
        What was read, line by line as it came; empty of a folder.
    """

    source: str
    format: str
    lines: int
    understood: tuple[Found, ...]
    skipped: tuple[Skipped, ...]
    dataset: Callable[[], xr.Dataset]
    missing: tuple[Found, ...] = ()
    guessed: tuple[Found, ...] = ()
    tables: tuple[Table, ...] = ()
    text: str = field(default="", repr=False, compare=False)

    def table(self, name: str) -> Table:
        """Return a table by its name.

        Raises
        ------
        KeyError
            No such table.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(
            f"{self.format} has no table {name!r}; it has {', '.join(t.name for t in self.tables) or 'none'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the dataset as plain lists, numbers and strings."""

        def where(found: Found | Skipped) -> dict[str, Any]:
            return ({"file": found.file} if found.file else {}) | {"line": found.line}

        return {
            "file": self.source,
            "format": self.format,
            "lines": self.lines,
            "understood": [where(found) | {"what": found.what} for found in self.understood],
            "guessed": [where(found) | {"what": found.what} for found in self.guessed],
            "skipped": [where(skip) | {"text": skip.text, "reason": skip.reason} for skip in self.skipped],
            "missing": [where(found) | {"what": found.what} for found in self.missing],
            "tables": [table.to_dict() for table in self.tables],
        }


@dataclass(frozen=True)
class Readings(Sequence[Reading]):
    """Everything a paste, a file or several files held: one `Reading` for each format in each of them.

    Attributes
    ----------
    parts : tuple of Reading
    unread : tuple of Skipped
        Lines that looked like a format, but could not be read as it; with their file.
    """

    parts: tuple[Reading, ...]
    unread: tuple[Skipped, ...] = ()

    @overload
    def __getitem__(self, key: int | str) -> Reading: ...
    @overload
    def __getitem__(self, key: slice) -> Readings: ...
    def __getitem__(self, key: int | str | slice) -> Reading | Readings:
        """Return a reading by its position or by the name of its format; of a slice, all of them."""
        if isinstance(key, slice):
            return Readings(self.parts[key], self.unread)
        if isinstance(key, int):
            return self.parts[key]
        for part in self.parts:
            if part.format == key:
                return part
        raise KeyError(f"holds no {key}; it holds {', '.join(self.formats)}")

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self.parts)

    @property
    def formats(self) -> list[str]:
        """Names of the formats, in the order of the text."""
        return [part.format for part in self.parts]

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [table for part in self.parts for table in part.tables]

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """All lines that were not used; of several files, with their file."""
        several = len({part.source for part in self.parts}) > 1
        found = [
            replace(skip, file=skip.file or part.source) if several else skip
            for part in self.parts
            for skip in part.skipped
        ]
        return tuple(sorted([*found, *self.unread], key=lambda skip: (skip.file, skip.line)))

    @property
    def skipped_blocks(self) -> list[list[Skipped]]:
        """The lines that were not used, neighbours with the same reason together."""
        # Blank lines belong to nobody, so neighbours may be a few lines apart.
        found: list[list[Skipped]] = []
        for skip in self.skipped:
            before = found[-1][-1] if found else None
            same = before and (before.file, before.reason) == (skip.file, skip.reason)
            if before and same and skip.line - before.line <= 3:
                found[-1].append(skip)
            else:
                found.append([skip])
        return found

    def datasets(self) -> dict[str, xr.Dataset]:
        """Return the runs that can be made, by format (a format that comes again gets a number)."""
        found: dict[str, xr.Dataset] = {}
        for part in self.parts:
            count = sum(name.split("#")[0] == part.format for name in found)
            try:
                found[f"{part.format}#{count + 1}" if count else part.format] = part.dataset()
            except NoRunError:
                continue
        return found

    def dataset(self) -> xr.Dataset:
        """Return one run of all that was read.

        Raises
        ------
        NoRunError
            Nothing of it has a place in a run.
        ReadError
            The parts do not fit into one run; names them.
        """
        from numalab.readers._merge import merged

        return merged(self.datasets(), self.formats, ", ".join(dict.fromkeys(part.source for part in self)))
