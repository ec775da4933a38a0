"""What a user names as one side of a comparison: files, folders and pastes become `numalab.sides.Side`.

``[NAME=]PATH``: a dataset (.nc, .nc.gz), the folder of a measured run, a directory or a quoted pattern of these
(its runs are pooled), the output of a tool that `numalab read` knows, or a table of LKP or MMTests, of which each
column is a side; ``-`` is standard input.
"""

from __future__ import annotations

import glob
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from numalab import runs
from numalab.readers import formats, lkp, mmtests
from numalab.readers._paste import decode
from numalab.readers._text import Skipped
from numalab.readers.mixed import read_text
from numalab.sides import Side, SidesError, from_lkp, from_mmtests, from_runs, mixed, split, test_of

#: The seed in the command line of a measured load.
_SEED = re.compile(r" -S \d+\b")


def load(specs: Sequence[str], counts: Sequence[int] | None = None) -> list[Side]:
    """Read all sides.

    Parameters
    ----------
    specs : sequence of str
        As described above.
    counts : sequence of int, optional
        Runs behind the means of tables: one number, or one for each column.

    Returns
    -------
    list of Side
        Their names differ.

    Raises
    ------
    SidesError
        No such file, nothing to read in it, or runs that do not belong together.
    """
    sides = [side for spec in specs for side in _load(spec, counts)]
    seen: dict[str, int] = {}
    for side in sides:
        seen[side.name] = seen.get(side.name, 0) + 1
        if seen[side.name] > 1:
            side.name = f"{side.name}#{seen[side.name]}"
    return sides


def _load(spec: str, counts: Sequence[int] | None) -> list[Side]:
    name, path = _named(spec)
    paths = _paths(path)
    if len(paths) == 1 and not _is_runs(paths[0]):
        return _from_text(name, paths[0], counts)
    parts: dict[str, list[tuple[Path, xr.Dataset]]] = {}
    for one in paths:
        for label, ds in _datasets(one):
            parts.setdefault(label, []).append((one, ds))
    default = _stem(Path(path)) if path == str(paths[0]) or Path(path).is_dir() else path
    return [_pooled(_side_name(name, default, label), found) for label, found in parts.items()]


def _named(spec: str) -> tuple[str, str]:
    """Part ``NAME=PATH``; a path may hold "=" itself."""
    name, equals, path = spec.partition("=")
    return (name, path) if equals and name and "/" not in name and not Path(spec).exists() else ("", spec)


def _side_name(name: str, default: str, label: str) -> str:
    return f"{name}-{label}" if name and label else name or label or default


def _stem(path: Path) -> str:
    name = path.resolve().name
    for end in (".nc.gz", ".nc", ".txt", ".log"):
        name = name.removesuffix(end)
    return name


def _paths(path: str) -> list[Path]:
    """Return the files and run folders that a path or pattern stands for."""
    if path == "-":
        return [Path("-")]
    found = [Path(path)] if Path(path).exists() else [Path(one) for one in sorted(glob.glob(path))]
    if not found:
        raise SidesError(f"{path}: no such file or folder, and no pattern that fits one")
    every = []
    for one in found:
        inside = sorted(child for child in one.iterdir() if _is_runs(child)) if _is_collection(one) else [one]
        if not inside:
            raise SidesError(f"{one}: is a folder without runs; expected .nc files, or folders with a meta.json")
        every += inside
    return every


def _is_collection(path: Path) -> bool:
    return path.is_dir() and not (path / "meta.json").is_file()


def _is_runs(path: Path) -> bool:
    """Tell whether a path is a dataset or the folder of one run."""
    return path.name.endswith((".nc", ".nc.gz")) or (path / "meta.json").is_file()


# ---------------------------------------------------------------- runs


def _datasets(path: Path) -> list[tuple[str, xr.Dataset]]:
    if path.is_dir():
        # a packed folder holds what it was parsed to
        packed = path / "run.nc.gz"
        ds = runs.open(packed) if packed.is_file() else formats.read_folder(path).dataset()
    elif _is_runs(path):
        ds = runs.open(path)
    else:
        raise SidesError(
            f"{path}: is no dataset, and a side of several files takes only those; give it as its own side"
        )
    if mixed(ds):
        raise SidesError(
            f"{path}: joins runs of different set-ups that no coordinate tells apart; save them one by one"
        )
    return split(ds)


def _pooled(name: str, found: Sequence[tuple[Path, xr.Dataset]]) -> Side:
    """Put runs together that differ in their seeds only.

    Raises
    ------
    SidesError
        Runs of one test differ otherwise; names two files.
    """
    first: dict[str, tuple[Path, str]] = {}
    for path, ds in found:
        test, setup = test_of(ds), _setup(ds)
        before, known = first.setdefault(test, (path, setup))
        if known != setup:
            raise SidesError(
                f"{before} and {path} differ in more than their seeds, so they are not one side; "
                "give each as a side of its own"
            )
    side = from_runs(name, [ds for _, ds in found], [str(path) for path, _ in found])
    side.setups = {test: setup for test, (_, setup) in first.items()}
    return side


def _setup(ds: xr.Dataset) -> str:
    """Describe what was run but for seeds, comparably."""
    how = runs.provenance(ds)
    how = how["concatenated"][0] if how.get("concatenated") else how
    keys = ("workload", "kernel", "seconds", "parameters", "rates", "release", "switches", "sysctl")
    here = {str(n): str(c.values[0]) for n, c in ds.coords.items() if c.dims == ("run",) and n in ("kernel", "variant")}
    # memory that is free at the start varies as seeds do
    machine = {key: value for key, value in (how.get("machine") or {}).items() if key != "zones"}
    # a load that is named by its case may take its seed anywhere
    command = "" if "case" in ds.coords else _SEED.sub("", str(how.get("command", "")))
    told = {**{key: how.get(key) for key in keys}, **here, "command": command, "machine": machine}
    return json.dumps(told, sort_keys=True, default=str)


# ---------------------------------------------------------------- text


def _from_text(name: str, path: Path, counts: Sequence[int] | None) -> list[Side]:
    source = "<stdin>" if str(path) == "-" else str(path)
    data = sys.stdin.buffer.read() if source == "<stdin>" else path.read_bytes()
    return of_text(decode(data), source, name, counts, stem=_stem(path))


def of_text(
    text: str, source: str, name: str = "", counts: Sequence[int] | None = None, *, stem: str = "text"
) -> list[Side]:
    """Return the sides that a text holds: a table of LKP or MMTests, or the output of other tools.

    Parameters
    ----------
    text : str
    source : str
        For messages.
    name : str
        Of the side; several get it in front of their own.
    counts : sequence of int, optional
        As of :func:`load`.
    stem : str
        Name of a single side without one.

    Raises
    ------
    SidesError
        The text is empty.
    ValueError
        What the readers say of it.
    """
    if not text.strip():
        raise SidesError(f"{source}: is empty; expected a table or the output of a tool")
    if lkp.looks_like(text):
        report = lkp.parse(text, source)
        sides, skipped = from_lkp(report, counts), report.skipped
    elif mmtests.looks_like(text):
        tables = mmtests.parse(text, source)
        sides, skipped = from_mmtests(tables, counts), tables.skipped
    else:
        readings = read_text(text, source)
        sides = of_dataset(readings.dataset(), source, name, stem=stem)
        sides[0].notes += _skipped(source, readings.skipped)
        return sides
    for side in sides:
        side.name = f"{name}-{side.name}" if name else side.name
    sides[0].notes += _skipped(source, skipped)
    return sides


def of_dataset(ds: xr.Dataset, source: str, name: str = "", *, stem: str = "run") -> list[Side]:
    """Return the sides that a dataset holds; parameters as of :func:`of_text`."""
    return [_pooled(_side_name(name, stem, label), [(Path(source), part)]) for label, part in split(ds)]


def _skipped(source: str, skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    # a row that was refused says more than text between tables
    row = next((skip for skip in skipped if not skip.reason.startswith("not a")), skipped[0])
    count = len({skip.line for skip in skipped})
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return [f"{source}: {lines} skipped, such as line {row.line} ({row.reason}); numalab read lists them"]
