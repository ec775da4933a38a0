"""What is compared with what: sets of runs, or columns of a saved table, each as samples of named quantities.

Names are those of the run schema; counters of /proc/vmstat keep the kernel's. A name ending in "%" is a share in
percent, and its changes are differences in points, as LKP has it. Runs of different tests (machine and workload)
are never pooled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.derived import growth
from numalab.readers import lkp, mmtests
from numalab.readers.tables import MMTESTS_COUNTERS, mmtests_counters
from numalab.runs import provenance
from numalab.schema import BALANCER_MOVE, TABLES, VARIABLES, is_time

#: LKP prints a standard deviation above this many percent of the mean; below, it is unknown.
LKP_PRINTED = 2.0

#: Origins of quantities, LKP's prefixes of statistics.
VMSTAT, OWN, MMTESTS = "proc-vmstat", "numalab", "mmtests"

LOCAL_SHARE = "local_share%"
CONVERGED = "converged%"


@dataclass(frozen=True)
class Quantity:
    """What a number is.

    Attributes
    ----------
    name, units : str
    better : {"lower", "higher", ""}
        Empty where it depends.
    origin : str
        Who counted it, as LKP's prefix of statistics: "proc-vmstat", "numalab", "mmtests"; empty where the name
        has its prefix itself.
    """

    name: str
    units: str = "1"
    better: str = ""
    origin: str = OWN

    @property
    def counter(self) -> bool:
        """Whether it is one of /proc/vmstat."""
        return self.origin == VMSTAT

    @property
    def absolute(self) -> bool:
        """Whether its changes are differences, in percent points."""
        return self.name.endswith("%")


@dataclass(frozen=True)
class Values:
    """One quantity of one side.

    Attributes
    ----------
    mean : float
    stddev : float or None
        With n - 1; None with one run, or where a table does not say.
    stddev_most : float or None
        At most this, for tests; above ``stddev`` where a table rounds.
    n : int or None
        Runs behind the mean; None where a table does not say.
    low, high : float or None
        Least and greatest.
    without : int
        Further runs in which the quantity has no value, such as a convergence that never came.
    values : tuple of float
        Of each run; empty for tables.
    table : str
        The table it is from, if that tests its means itself.
    marked : bool or None
        Whether that table marks it as different from its first column; None for the first.
    """

    mean: float
    stddev: float | None = None
    stddev_most: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    without: int = 0
    values: tuple[float, ...] = ()
    table: str = ""
    marked: bool | None = None

    @property
    def stddev_percent(self) -> float | None:
        """Standard deviation in percent of the mean; None where either is missing."""
        return None if self.stddev is None or not self.mean else 100 * self.stddev / abs(self.mean)


#: Test and name of a quantity.
Key = tuple[str, str]


@dataclass
class Side:
    """One column of a comparison.

    Attributes
    ----------
    name : str
    samples : dict
        (test, name of a quantity) -> (Quantity, Values).
    sources : list of str
        Files it was made from.
    seconds : dict
        Test -> lengths of the records, s.
    setups : dict
        Test -> what was run but for seeds, as text that can be compared; only of runs.
    notes : list of str
    """

    name: str
    samples: dict[Key, tuple[Quantity, Values]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    setups: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def tests(self) -> list[str]:
        """The tests it holds, in order."""
        return list(dict.fromkeys(test for test, _ in self.samples))


# ---------------------------------------------------------------- runs


def from_runs(name: str, datasets: Sequence[xr.Dataset], sources: Sequence[str]) -> Side:
    """Pool runs into one side.

    Parameters
    ----------
    name : str
    datasets : sequence of xarray.Dataset
        Runs (`numalab.schema`); entries along ``run`` must not differ in more than seed or repetition (see `split`).
    sources : sequence of str
        Their files.
    """
    side = Side(name, sources=list(sources))
    pooled: dict[Key, tuple[Quantity, list[float]]] = {}
    for ds in datasets:
        test = test_of(ds)
        ends = [float(ds[dim].values[-1]) for dim in map(str, ds.dims) if is_time(dim) and ds.sizes[dim] > 1]
        side.seconds.setdefault(test, []).extend(ends and [max(ends)])
        for quantity, values in quantities(ds):
            pooled.setdefault((test, quantity.name), (quantity, []))[1].extend(map(float, values))
    runs_of: dict[str, int] = {}
    partly: list[str] = []
    for (test, _), (_, every) in pooled.items():
        runs_of[test] = max(runs_of.get(test, 0), len(every))
    for (test, key), (quantity, every) in pooled.items():
        if len(every) < runs_of[test]:
            partly.append(key)
        elif any(not np.isnan(value) for value in every):
            side.samples[test, key] = quantity, sample(every)
    if partly:
        side.notes.append(f"{name}: left out, as some of its runs did not record them: {', '.join(partly)}")
    return side


def sample(every: Sequence[float]) -> Values:
    """Sum up the values of runs; NaN: that run has none."""
    known = [value for value in every if not np.isnan(value)]
    stddev = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Values(
        float(np.mean(known)), stddev, stddev, len(known), min(known), max(known), len(every) - len(known), tuple(every)
    )


#: Coordinates along ``run`` that tell repetitions apart, not what was run.
_REPETITION = ("run", "seed", "rep", "trace")


def split(ds: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Part the runs of a dataset by everything but seed and repetition that differs between them.

    Returns
    -------
    list of (label, dataset)
        The label is empty when nothing differs.
    """
    return [(label, ds.isel(run=index)) for label, index in groups(ds)] or [("", ds)]


def groups(ds: xr.Dataset) -> list[tuple[str, list[int]]]:
    """Return label and positions along ``run`` of each part that `split` makes; nothing where all runs are alike."""
    varying = [
        str(name)
        for name, coord in ds.coords.items()
        if coord.dims == ("run",) and name not in _REPETITION and len(set(coord.values.tolist())) > 1
    ]
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, key in enumerate(zip(*(ds[name].values.tolist() for name in varying), strict=True)):
        found.setdefault(key, []).append(position)
    # text speaks for itself, a number needs its name
    labels = {
        key: ",".join(str(v) if isinstance(v, str) else f"{n}={v}" for n, v in zip(varying, key, strict=True))
        for key in found
    }
    return [(labels[key], index) for key, index in found.items()]


def mixed(ds: xr.Dataset) -> bool:
    """Tell whether a dataset joins simulations that differ in ways none of its coordinates shows."""
    kinds: list[Any] = []
    for part in provenance(ds).get("concatenated", ()):
        kind = {key: value for key, value in part.items() if key not in ("seeds", "numalab", "revision")}
        kinds += [kind] if "workload" in kind and kind not in kinds else []
    return len(kinds) > len(split(ds))


#: The repetition at the end of a trace's name.
_REP = re.compile(r"_r\d+$")


def test_of(ds: xr.Dataset) -> str:
    """Name what was run, and on what: machine and workload, or what the record of a real run says."""
    how = provenance(ds)
    how = how["concatenated"][0] if how.get("concatenated") else how
    if isinstance(how.get("workload"), Mapping) and isinstance(how.get("machine"), Mapping):
        return f"{how['machine']['name']}/{how['workload']['name']}"
    if "case" in ds.coords and ds["case"].dims == ("run",) and ds["case"].values[0]:
        return str(ds["case"].values[0])
    return _REP.sub("", str(how.get("trace") or how.get("command", "")))


_BETTER = {
    "numa_pte_updates": "lower",
    "numa_huge_pte_updates": "lower",
    "numa_hint_faults": "lower",
    "numa_hint_faults_local": "higher",
    "numa_pages_migrated": "lower",
    "pgmigrate_fail": "lower",
    "minor_faults": "lower",
    "task_sys_ms": "lower",
    "task_wait_ms": "lower",
    "task_work_pages": "higher",
}


def quantities(ds: xr.Dataset) -> Iterator[tuple[Quantity, NDArray[Any]]]:
    """Give everything that a run can be summed up in.

    Parameters
    ----------
    ds : xarray.Dataset
        A run, simulated or measured.

    Yields
    ------
    Quantity, array (run,)
        NaN where a run has no value. Counters are those of the whole record.
    """
    yield from counts(ds)
    have = set(ds.variables)
    if {"numa_hint_faults", "numa_hint_faults_local"} <= have:
        yield Quantity(LOCAL_SHARE, "percent", "higher"), 100 * ds.numa.local_share().values
    if {"numa_hint_faults", "numa_pages_migrated"} <= have:
        yield Quantity("migrations_per_fault", "pages", "lower"), ds.numa.migrations_per_fault().values
    if "task_node" in have and has_threads(ds):
        seconds = ds.numa.convergence_time().values
        yield Quantity(CONVERGED, "percent", "higher"), 100.0 * ~np.isnan(seconds)
        yield Quantity("convergence_s", "s", "lower"), seconds
    for name, array in ds.data_vars.items():
        if array.dims == ("run",) and array.dtype.kind == "f":
            units = VARIABLES[str(name)].units
            yield Quantity(str(name), units, _by_units(units)), array.values
    if "event_kind" in have:
        yield from events(ds)
    results = provenance(ds).get("results")
    for name, value in (results if isinstance(results, Mapping) and ds.sizes["run"] == 1 else {}).items():
        # what the measured program printed about itself
        if isinstance(value, int | float):
            units = "s-1" if name.endswith("_per_s") else "s" if name.endswith("_s") else "1"
            yield Quantity(name, units, _by_units(units)), np.array([value], dtype=float)


def counts(ds: xr.Dataset) -> Iterator[tuple[Quantity, NDArray[Any]]]:
    """Give what is counted, over the whole record and all tasks together: (run,)."""
    for name, array in ds.data_vars.items():
        spec = VARIABLES[str(name)]
        if not spec.cumulative or not all(array.sizes.values()) or {"process", "node_counter"} & set(array.dims):
            continue
        total = growth(array)
        if "counter" in total.dims:
            for one in total.transpose("counter", "run"):
                yield Quantity(str(one["counter"].item()), origin=VMSTAT), one.values
            continue
        tasks = "task" in total.dims
        quantity = Quantity(str(name), spec.units, _BETTER.get(str(name), ""), OWN if tasks else VMSTAT)
        yield quantity, (total.sum("task") if tasks else total).values


def events(ds: xr.Dataset) -> Iterator[tuple[Quantity, NDArray[Any]]]:
    """Give the number of events of each kind that was traced: (run,)."""
    used = np.arange(ds.sizes["event"]) < ds[TABLES["event"]].values[:, None]
    groups = provenance(ds).get("trace_groups")
    for code, kind in enumerate(VARIABLES["event_kind"].codes):
        if code == BALANCER_MOVE and groups is not None and "schedmig" not in groups:
            continue  # it was not traced, which is not the same as none
        yield Quantity(f"{kind}_events"), ((ds["event_kind"].values == code) & used).sum(axis=1)


def _by_units(units: str) -> str:
    """Tell which way is better for a time or a rate."""
    return "lower" if units in ("s", "ms", "ns") else "higher" if units.endswith(("/s", "s-1")) else ""


def has_threads(ds: xr.Dataset) -> bool:
    """Tell whether some process has two threads (with fewer, all are together from the start), and any is awake."""
    owner = ds["task_process"].values if "task_process" in ds.variables else np.array([])
    if not owner.size or np.unique(owner[owner >= 0], return_counts=True)[1].max(initial=0) < 2:
        return False
    return bool((owner[~ds.numa.idle()] >= 0).any())


# ---------------------------------------------------------------- tables


def from_lkp(report: lkp.Report, runs: Sequence[int] | None = None) -> list[Side]:
    """Make a side of each column of the tables of LKP in a text.

    Parameters
    ----------
    report : numalab.readers.lkp.Report
    runs : sequence of int, optional
        Runs behind the means of each column (or one number for all), which the tables do not say.
    """
    sides: dict[str, Side] = {}
    for table in report.tables:
        counts = _runs(runs, len(table.columns)) or table.runs or (None,) * len(table.columns)
        place = "/".join(table.setup[key] for key in ("tbox_group", "testcase", "test") if key in table.setup)
        for row in table.rows:
            if row.test == lkp.TOTAL or not row.stat:
                continue
            quantity = _lkp_quantity(row.stat)
            for name, cell, n in zip(table.columns, row.cells, counts, strict=True):
                side = sides.setdefault(name, Side(name, sources=[report.source]))
                # a table that comes twice, shortened and whole, says the same twice
                side.samples.setdefault((row.test or place, quantity.name), (quantity, _lkp_values(cell, n)))
    if not sides:
        problem = "its tables do not say which statistic they are about; add the row TOTAL of the report"
        raise SidesError(f"{report.source}: {problem}")
    for side in sides.values():
        _add_ratios(side)
    return _noted(list(sides.values()), report)


#: What can be computed from two counters of a table: part, quantity, factor.
_RATIOS = (
    ("numa_hint_faults_local", Quantity(LOCAL_SHARE, "percent", "higher"), 100.0),
    ("numa_pages_migrated", Quantity("migrations_per_fault", "pages", "lower"), 1.0),
)


def _add_ratios(side: Side) -> None:
    """Add the ratios to hint faults that a table leaves to its reader, where it has both counters."""
    for test in side.tests:
        faults = side.samples.get((test, "numa_hint_faults"))
        for part, quantity, factor in _RATIOS:
            if faults and faults[1].mean and (test, part) in side.samples:
                values = _ratio(side.samples[test, part][1], faults[1], factor)
                side.samples.setdefault((test, quantity.name), (quantity, values))


def _ratio(part: Values, whole: Values, factor: float) -> Values:
    """Divide means; the spread is that of two independent counts, so at most about that of counts that go together."""
    mean = factor * part.mean / whole.mean

    def spread(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None or not part.mean else mean * hypot(a / part.mean, b / whole.mean)

    return Values(mean, spread(part.stddev, whole.stddev), spread(part.stddev_most, whole.stddev_most), whole.n)


def _lkp_quantity(stat: str) -> Quantity:
    prefix, dot, rest = stat.partition(".")
    known = bool(dot) and prefix in (VMSTAT, OWN, MMTESTS)
    name = rest if known else stat
    units = "percent" if name.endswith("%") else "1"
    return Quantity(name, units, _BETTER.get(name, ""), prefix if known else "")


def lkp_stat(quantity: Quantity) -> str:
    """Return LKP's name for a quantity."""
    return f"{quantity.origin}.{quantity.name}" if quantity.origin else quantity.name


def _lkp_values(cell: lkp.Cell, n: int | None) -> Values:
    percent = cell.stddev_percent
    # printed are whole percents, cut off; nothing where there are fewer than 2, or a single run
    most = None if n == 1 else abs(cell.mean) * (LKP_PRINTED if percent is None else percent + 1) / 100
    return Values(cell.mean, None if percent is None else abs(cell.mean) * percent / 100, most, n)


def from_mmtests(report: mmtests.Report, runs: Sequence[int] | None = None) -> list[Side]:
    """Make a side of each kernel in the tables of MMTests in a text.

    Parameters
    ----------
    report : numalab.readers.mmtests.Report
    runs : sequence of int, optional
        Runs behind the means of each kernel (or one number for all), which the tables do not say.
    """
    sides: dict[str, Side] = {}
    counters = mmtests_counters(report)
    for table in report.tables:
        counts = _runs(runs, len(table.kernels)) or (None,) * len(table.kernels)
        beside = {(row.statistic, row.metric): row for row in table.rows}
        # old versions mark nothing
        starred = any(any(row.significant) for row in table.rows)
        means = {row.metric for row in table.rows if row.statistic in _MEANS}
        for row in table.rows:
            if row.statistic not in _MEANS and row.metric in means:
                continue  # goes with the mean
            quantity = _mmtests_quantity(row, counters)
            for i, kernel in enumerate(table.kernels):
                if np.isnan(row.values[i]):
                    continue
                side = sides.setdefault(kernel, Side(kernel, sources=[report.source]))
                stddev, low, high = (_beside(beside, key, row.metric, i) for key in ("Stddev", "Min", "Max"))
                n = counts[i] if row.statistic in _MEANS else None
                values = Values(row.values[i], stddev, stddev, n, low, high)
                if row.statistic in _MEANS and row.changes and starred:
                    marked = row.significant[i] if i else None
                    values = replace(values, table=f"{report.source}:{table.line}", marked=marked)
                side.samples.setdefault(("", quantity.name), (quantity, values))
    for side in sides.values():
        faults = side.samples.get(("", "numa_hint_faults"))
        if faults and not faults[1].mean:
            side.samples.pop(("", LOCAL_SHARE), None)  # printed as 100 where there is nothing to share
        _add_ratios(side)
    return _noted(list(sides.values()), report)


def _beside(rows: Mapping[Key, mmtests.Row], statistic: str, metric: str, i: int) -> float | None:
    """Return what another row says of the same metric and kernel."""
    row = rows.get((statistic, metric))
    return None if row is None or np.isnan(row.values[i]) else row.values[i]


_MEANS = ("Amean", "Hmean", "Gmean", "Mean")


def _mmtests_quantity(row: mmtests.Row, counters: Mapping[str, str]) -> Quantity:
    better = {True: "lower", False: "higher", None: ""}[row.lower_is_better]
    if row.statistic in _MEANS:
        name = row.metric
        known = VARIABLES.get(name)
        own = OWN if known or name in (LOCAL_SHARE, CONVERGED) else MMTESTS
        counter = name in MMTESTS_COUNTERS.values() or (known and known.cumulative and "task" not in known.dims)
        units = "percent" if name.endswith("%") else "1"
        return Quantity(name, units, better or _BETTER.get(name, ""), VMSTAT if counter else own)
    if row.statistic in ("", "Ops") and row.metric in counters:
        name = counters[row.metric]
        return Quantity(name, "1", _BETTER.get(name, ""), VMSTAT)
    if row.metric == "NUMA hint local percent":
        return Quantity(LOCAL_SHARE, "percent", "higher")
    return Quantity(row.label.replace(" ", "_"), "1", better, MMTESTS)


def _runs(runs: Sequence[int] | None, columns: int) -> Sequence[int] | None:
    if runs is None:
        return None
    if len(runs) not in (1, columns):
        raise SidesError(f"{len(runs)} numbers of runs for a table of {columns} columns; give one, or one for each")
    return list(runs) * (columns if len(runs) == 1 else 1)


class SidesError(ValueError):
    """Something that cannot be a side of a comparison; says what to do."""


def _noted(sides: list[Side], report: lkp.Report | mmtests.Report) -> list[Side]:
    """Give the notes of a text to its first column."""
    sides[0].notes += [f"{report.source}:{line}: {text}" for line, text in report.notes]
    return sides
