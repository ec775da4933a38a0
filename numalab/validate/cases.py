"""Which traces belong together: repetitions of a case, and which of them constants were fitted to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import trace
from numalab.schema import is_time


class ValidateError(ValueError):
    """A run that cannot be judged; the message names it and says what was expected."""


#: Costs may be fitted to these families of layout A, and to repetition 1 of these threads of layout B.
FITTED_FAMILIES, FITTED_THREADS = ("b",), ("S0", "S2")
#: Labels of each thread of layout B that are "before"; every other label of the case is compared with them.
BEFORE = {"S0": ("nb0", "nb1_trap"), "S1": ("old",), "S2": ("base",), "S4": ("pre",)}
#: Repetitions shorter than this share of the longest are a case of their own (perf bench ends when converged).
SAME_LENGTH = 0.45


@dataclass(frozen=True)
class Trace:
    """One real run.

    Attributes
    ----------
    name : str
    source : str or Path
        The name of a packed trace, or the folder.
    ds : xarray.Dataset
    thread : str
        S0 to S4 in layout B; the first word of the name in layout A.
    variant : str
        Label of layout B; empty in layout A.
    base : str
        Thread and case in layout B, whose variants are compared; the name without its number in layout A.
    rep : int
    fitted : bool
        Constants may have been fitted to it.
    end_s : float
        Last sample in which the load was there.
    """

    name: str
    source: str | Path
    ds: xr.Dataset
    thread: str
    variant: str
    base: str
    rep: int
    fitted: bool
    end_s: float

    @property
    def how(self) -> dict[str, Any]:
        """Its provenance."""
        return runs.provenance(self.ds)

    @property
    def balancing(self) -> bool:
        """Whether NUMA balancing was on."""
        return bool(self.how["sysctl"].get("numa_balancing", 1))

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give its folder."""
        if isinstance(self.source, Path):
            yield self.source
        else:
            with trace.folder(self.source) as path:
                yield path


@dataclass(frozen=True)
class Case:
    """Repetitions of one case, simulated once and judged over the time that all of them cover."""

    name: str
    traces: tuple[Trace, ...]

    @property
    def first(self) -> Trace:
        """The repetition whose set-up is simulated."""
        return self.traces[0]

    @property
    def until_s(self) -> float:
        """Seconds that are judged."""
        return min(one.end_s for one in self.traces)


def load(run: str) -> Trace:
    """Open a packed trace by its name, or a run folder of either layout by its path.

    Raises
    ------
    ValidateError
        No such name or folder.
    ReadError
        A folder that cannot be read.
    """
    path = Path(run)
    if run in trace.names():
        ds: xr.Dataset = trace.load(run)
        return _trace(run, run, ds)
    if not path.is_dir():
        problem = "expected the name of a packed trace (data/traces) or the folder of a run"
        raise ValidateError(f"{run}: {problem}")
    return _trace(path.resolve().name, path, trace.read(path).dataset())


def _trace(name: str, source: str | Path, ds: xr.Dataset) -> Trace:
    how = runs.provenance(ds)
    rep = int(ds["rep"].values[0])
    if how["layout"] == "B":
        thread, variant = str(ds["thread"].values[0]), str(ds["variant"].values[0])
        base = f"{thread}_{ds['case'].values[0]}"
        fitted = thread in FITTED_THREADS and rep == 1
    else:
        thread, variant, base = name.split("_")[0], "", re.sub(r"_r\d+$", "", name)
        fitted = thread in FITTED_FAMILIES
    return Trace(name, source, ds, thread, variant, base, rep, fitted, _end(ds))


def _end(ds: xr.Dataset) -> float:
    """Return the last sample at which everything was still there, s; 0 without any."""
    ends = [float(ds[dim].values[-1]) for dim in map(str, ds.dims) if is_time(dim) and dim != "time_zoneinfo"]
    if "pages" in ds:
        axis = str(ds["pages"].dims[1])
        there = ds["pages"].values[0].sum(axis=(1, 2)) > 0
        if there.any():
            ends.append(float(ds[axis].values[np.flatnonzero(there)[-1]]))
    return max(0.0, min(ends, default=0.0))


def group(traces: Sequence[Trace]) -> list[Case]:
    """Put repetitions together, in the order of their first: same case and machine, seed and duration apart."""
    found: dict[tuple[Any, ...], list[Trace]] = {}
    for one in traces:
        found.setdefault(_key(one), []).append(one)
    cases = []
    for members in found.values():
        longest = max(one.end_s for one in members)
        long = [one for one in members if one.end_s >= SAME_LENGTH * longest]
        short = [one for one in members if one not in long]
        cases += [_case(part) for part in (long, *([one] for one in short)) if part]
    return cases


def _case(members: list[Trace]) -> Case:
    first = members[0]
    name = f"{first.base}_{first.variant}" if first.variant else first.base
    return Case(name if len(members) > 1 or first.variant else first.name, tuple(members))


def _key(one: Trace) -> tuple[Any, ...]:
    how = one.how
    if how["layout"] == "B":
        return "B", one.thread, one.base, one.variant
    machine = {key: how["machine"][key] for key in ("cpus", "distance", "memory_mib")}
    command = re.sub(r"\s-[sS] \S+", "", how["command"])
    accel = (how["meta"].get("qemu") or {}).get("accel", "")
    return "A", command, how["release"], str(accel), json.dumps([machine, how["sysctl"]], sort_keys=True)
