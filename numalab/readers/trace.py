"""Reader of one run folder: traces of real kernels, as a run in numalab's schema.

Two layouts are known and told apart by ``meta.json``. **A**, stock kernels: ``vmstat.log``, ``sched.log``,
``tasks.log``, ``numa_maps.log``, ``numastat.log``, ``trace.txt``, ``workload.log``. **B**, a kernel with
switches: ``samples.log``, ``workload.log``, counters before and after. Each file may be gzipped, or
packed with others in ``raw.tar.gz``. A file that is missing is reported; the rest is read.

0 s is when the work began (A: the last ``S`` line of workload.log, else ``uptime_cmd_start`` of meta.json;
B: when the monitor began), so samples may lie before it. Counters of /proc/vmstat count from the first
sample of the log; ``totals`` in the provenance hold after minus before, from the full files.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr

from numalab import _data, runs
from numalab.readers import _layout_a, _layout_b, ftrace
from numalab.readers._assemble import Parts
from numalab.readers._collect import Collected, FileRead, read_meta
from numalab.readers._events import (
    FAULT_LOCAL,
    MIGRATE_FAIL,
    MIGRATED,
    NO_GROUP,
    SHARED,
    Decisions,
    decisions,
    outcomes,
)
from numalab.readers._folder import Folder
from numalab.readers._text import ReadError, Skipped

__all__ = [
    "FAULT_LOCAL",
    "MIGRATED",
    "MIGRATE_FAIL",
    "NO_GROUP",
    "SHARED",
    "Decisions",
    "FileRead",
    "Report",
    "events",
    "faults",
    "folder",
    "load",
    "names",
    "outcomes",
    "read",
]


@dataclass(frozen=True)
class Report:
    """What a folder held.

    Attributes
    ----------
    source : str
    layout : {"A", "B"}
    meta : dict
        meta.json.
    files : tuple of FileRead
    missing : tuple of (file, what is lacking)
    skipped : tuple of Skipped
    """

    source: str
    layout: str
    meta: dict[str, Any]
    files: tuple[FileRead, ...]
    missing: tuple[tuple[str, str], ...]
    skipped: tuple[Skipped, ...]
    _parts: Parts

    def dataset(self) -> xr.Dataset:
        """Return the run, one entry along ``run``."""
        parts = self._parts
        title = f"{parts.params['trace']}: {parts.params['command']} on {parts.params['release']}"
        return runs.build(parts.variables, parts.coords, title=title, source="measured", params=parts.params)


def read(path: str | PathLike[str]) -> Report:
    """Read a run folder of either layout.

    Parameters
    ----------
    path : path-like
        The folder.

    Returns
    -------
    Report

    Raises
    ------
    ReadError
        No folder, no meta.json, a meta.json of neither layout, no other file that can be used, or a file
        that is cut off or contradicts itself; names the file and the line.
    """
    out = _open(path)
    layout = _layout(out)
    (_layout_a if layout == "A" else _layout_b).read(out)
    if not out.parts.variables:
        lacking = ", ".join(name for name, _ in out.missing)
        raise ReadError(str(path), 0, f"holds no measurement beside meta.json: {lacking} are missing or empty")
    out.parts.finish()
    return Report(str(path), layout, out.meta, tuple(out.files), tuple(out.missing), tuple(out.skipped), out.parts)


def names() -> list[str]:
    """Name the traces that come with numalab."""
    return sorted(entry.name for entry in _data.path("traces").iterdir() if entry.is_dir())


def load(name: str) -> xr.Dataset:
    """Open a trace that comes with numalab, as parsed when it was packed.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    FileNotFoundError
        When there is none of that name; lists those there are.
    """
    with _data.local_path("traces", name, "run.nc.gz") as path:
        return runs.open(path)


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """Give the folder of a trace that comes with numalab, for `read`, `events` and `faults`."""
    with _data.local_path("traces", name) as path:
        yield path


def events(path: str | PathLike[str]) -> ftrace.Report:
    """Read the trace of a folder, event by event; times on the trace's clock.

    Raises
    ------
    ReadError
        When there is none, or it is broken.
    """
    files = Folder(Path(path))
    text = files.text("trace.txt")
    if text is None:
        raise ReadError(str(path), 0, "has no trace.txt; runs of layout B and runs taken without ftrace have none")
    return ftrace.parse(text, files.source("trace.txt"))


def faults(path: str | PathLike[str]) -> Decisions:
    """Read every hint fault, answer of the migration filter, scan and preferred node of a folder.

    Parameters
    ----------
    path : path-like
        A folder of layout A whose trace holds the probes hint_fault, should_migrate, scan_work, set_preferred.

    Returns
    -------
    Decisions
        Times with the run's zero.

    Raises
    ------
    ReadError
        When there is no trace, or no hint fault in it.
    """
    out = _open(path)
    if _layout(out) != "A":
        raise ReadError(str(path), 0, "is of layout B, whose monitor does not record single faults")
    report = events(path)
    if not report.hint_faults:
        raise ReadError(report.source, 0, "holds no hint_fault event; it was taken without the probes (trace.groups)")
    report.lost = max(report.lost, _layout_a.lost(out))
    return decisions(report, _layout_a.zero(out))


def _open(path: str | PathLike[str]) -> Collected:
    files = Folder(Path(path))
    return Collected(files, read_meta(files), Parts())


def _layout(out: Collected) -> str:
    known: Iterable[tuple[str, Any]] = (("A", _layout_a), ("B", _layout_b))
    for name, layout in known:
        if layout.fits(out.meta):
            return name
    problem = "is of no known layout: expected topology.node_cpus (A) or toggles and topology.nodes_x_cpus (B)"
    raise ReadError(out.folder.source("meta.json"), 0, problem)
