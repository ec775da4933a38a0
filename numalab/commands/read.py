"""``numalab read``: the text of real tools or the folder of a run, what was understood, and the dataset it makes."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalab.commands import OK, CommandError
from numalab.commands.output import check_free, check_not_input, columns, note, number, plural, print_json, width, wrap
from numalab.readers import mixed
from numalab.readers._reading import Reading, Readings, Table, Value
from numalab.readers._text import ReadError
from numalab.readers.formats import Found, Skipped
from numalab.readers.vmstat import KNOWN_NAMES

if TYPE_CHECKING:
    import xarray as xr

#: Of longer tables the counters of NUMA balancing are printed; where there are none they are counted.
_MOST_ROWS = 24


def read(args: Namespace) -> int:
    """Read files, folders of runs or standard input, report line by line, and save if asked."""
    target = Path(args.out) if args.out else None
    if target is not None:
        check_free(target, args.force)
        for file in args.files:
            check_not_input(target, file)
    if args.files.count("-") > 1:
        raise CommandError("standard input can be read once only; give - once")
    parts: list[Reading] = []
    unread: list[Skipped] = []
    for file in args.files:
        found = _one(file, args)
        parts += found.parts
        unread += found.unread
    readings = Readings(tuple(parts), tuple(unread))
    if target is not None:
        from numalab import runs

        runs.save(readings.dataset(), target)
    if args.json:
        print_json(to_dict(readings, str(target) if target else None))
    else:
        _print(readings)
    if target is not None:
        note(f"saved {target}; look at it with numalab show {target}")
    return OK


def _one(file: str, args: Namespace) -> Readings:
    return mixed.read(file if file == "-" else Path(file), format=args.format, kernel=args.kernel)


# ---------------------------------------------------------------- JSON


def to_dict(readings: Readings, saved: str | None) -> dict[str, Any]:
    """Return all that was read: the whole report, and for each format its tables and the values of its run."""
    whole = [part.to_dict() for part in readings]
    several = len({part.source for part in readings}) > 1

    def together(key: str) -> list[dict[str, Any]]:
        return [({"file": one["file"]} if several else {}) | entry for one in whole for entry in one[key]]

    for part, one in zip(readings, whole, strict=True):
        one["dataset"], one["no_dataset"] = _dataset(part)
    return {
        "file": ", ".join(dict.fromkeys(part.source for part in readings)),
        "format": " + ".join(readings.formats),
        "lines": sum({part.source: part.lines for part in readings}.values()),
        "understood": together("understood"),
        "guessed": together("guessed"),
        "skipped": [
            ({"file": skip.file} if skip.file else {}) | {"line": skip.line, "text": skip.text, "reason": skip.reason}
            for skip in readings.skipped
        ],
        "missing": together("missing"),
        "readings": whole,
        "saved": saved,
    }


def _dataset(part: Reading) -> tuple[dict[str, Any] | None, str | None]:
    """Return the values of the run that a text makes, or why it makes none."""
    if part.format.startswith("trace folder"):
        return None, f"{part.source}: is the folder of a run; save its dataset with -o"
    try:
        return _values(part.dataset()), None
    except ReadError as error:
        return None, str(error)


def _values(ds: xr.Dataset) -> dict[str, Any]:
    """Return labels and values of a run; what is not a number becomes null."""
    return {
        kind: {
            str(name): {
                "dims": [str(dim) for dim in array.dims],
                "units": array.attrs.get("units", "1"),
                "values": _no_nan(array.values.tolist()),
            }
            for name, array in arrays.items()
        }
        for kind, arrays in (("coordinates", ds.coords), ("variables", ds.data_vars))
    }


def _no_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_no_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---------------------------------------------------------------- text


def _print(readings: Readings) -> None:
    for part in readings:
        print(f"{part.source}: {part.format}, {plural(part.lines, 'line')}")
        for title, every in (("understood", part.understood), ("guessed", part.guessed), ("missing", part.missing)):
            if every or title == "understood":
                print(f"{title}:")
            for found in every:
                print(wrap(_where(found) + found.what, 2, 6))
        for table in part.tables:
            _print_table(table)
        if len(readings) > 1:
            print()
    skipped = readings.skipped
    if not skipped:
        print("skipped: nothing")
        return
    print(f"skipped: {plural(len({(skip.file, skip.line) for skip in skipped}), 'line')}")
    for block in readings.skipped_blocks:
        first, last = block[0], block[-1]
        lines = f"line {first.line}" if first.line == last.line else f"lines {first.line}-{last.line}"
        if not first.line:  # a file as a whole
            print(wrap(f"{first.file}: {first.reason}", 2, 6))
            continue
        lines = f"{first.file}, {lines}" if first.file else lines
        text = first.text.strip()
        text = repr(text if len(text) <= 50 else text[:50] + "...")
        print(wrap(f"{lines}: {text}{' and so on' if len(block) > 1 else ''}: {first.reason}", 2, 6))


def _print_table(table: Table) -> None:
    units = f" ({table.units})" if table.units else ""
    shown = table.rows
    if len(shown) > _MOST_ROWS:
        shown = tuple(row for row in shown if KNOWN_NAMES.match(str(row[0])))
    rows = [list(table.columns), *([_cell(value) for value in row] for row in shown)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    if not shown or sum(widths) + 2 * len(widths) > width():
        print(f"{table.name}{units}: {plural(len(table.rows), 'row')} of {len(widths)} columns, which --json shows")
        return
    part = f", {len(shown)} of {len(table.rows)} rows; --json shows all" if len(shown) < len(table.rows) else ""
    print(f"{table.name}{units}{part}:")
    # numbers stand right in their columns
    right = [all(isinstance(row[i], int | float | None) for row in shown) for i in range(len(widths))]
    aligned = [[cell.rjust(w) if r else cell for cell, w, r in zip(row, widths, right, strict=True)] for row in rows]
    print(columns(aligned, 2))


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else number(value)


def _where(found: Found) -> str:
    parts = [found.file] if found.file else []
    parts += [f"line {found.line}"] if found.line else []
    return ", ".join(parts) + ": " if parts else ""
