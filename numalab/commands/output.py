"""What all commands share: tables, JSON, and refusing to overwrite. Standard library only."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numalab.commands import CommandError, note

__all__ = [
    "check_free",
    "check_not_input",
    "columns",
    "note",
    "number",
    "plural",
    "print_json",
    "to_json",
    "width",
    "word",
    "wrap",
]


def to_json(value: Any) -> str:
    """Return a value as JSON that every program can read (no NaN)."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(to_json(value))


def width() -> int:
    """Columns to fill: those of the terminal within reason, 100 into a file."""
    return min(max(shutil.get_terminal_size((100, 0)).columns, 60), 120)


def wrap(text: str, indent: int = 0, hanging: int | None = None) -> str:
    """Fill one paragraph; lines after the first are indented by ``hanging``."""
    rest = " " * (indent if hanging is None else hanging)
    return textwrap.fill(
        text,
        width(),
        initial_indent=" " * indent,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns(rows: Sequence[Sequence[str]], indent: int = 0) -> str:
    """Align rows in columns; the last column is wrapped within itself."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    start = indent + sum(widths) + 2 * len(widths)
    lines = []
    for row in rows:
        head = " " * indent + "".join(f"{cell:<{size}}  " for cell, size in zip(row, widths, strict=False))
        if start > width() - 20:
            lines.append((head + row[-1]).rstrip())
        else:
            lines.append((head + wrap(row[-1], start)[start:]).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Return a number for reading: whole ones with separators, others to four digits."""
    if value is None:
        return "undefined"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def word(value: bool | int | str) -> str:
    """Return a switch value as the table of kernels writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def plural(count: int, noun: str) -> str:
    """Return "1 node", "2 nodes", "2 processes"."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def check_free(path: Path, force: bool) -> None:
    """Make sure that a result can be saved, before the work for it is done.

    Raises
    ------
    CommandError
        The file exists and may not be overwritten, or its folder cannot be written to.
    OSError
        It exists and is no regular file, which nothing may replace.
    """
    from numalab.runs import destination  # not at the top: it loads xarray

    target = destination(path)
    if target.exists() and not force:
        raise CommandError(f"{path}: exists; overwrite it with --force, or give another name with -o")
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: cannot be written, {folder} is no folder you may write to; give another with -o")


def check_not_input(path: Path, source: str) -> None:
    """Make sure that saving a result does not destroy what it is made from.

    Raises
    ------
    CommandError
        The output is the input file under whatever name, or a file other than a dataset in the input folder.
    """
    try:
        same = os.path.samefile(path, source)
    except OSError:
        return  # one of the two does not exist; another check says so
    inside = Path(source).is_dir() and Path(source).resolve() in path.resolve().parents
    if same or (inside and not path.name.endswith((".nc", ".nc.gz"))):
        what = "is part of" if inside else "is"
        raise CommandError(f"{path}: {what} the input {source}, which would be lost; give another -o")
