"""What the rules judge: counters of sides, nodes, tables and series, whatever they were read from."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.derived import growth, time_axis
from numalab.diagnose.result import Evidence
from numalab.readers._reading import Reading, Table
from numalab.schema import VARIABLES

#: Names of one counter per node in numastat, as /proc/vmstat has the sums.
NODE_COUNTERS = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")

#: Samples of one input that are shown one by one; of more, what they share is said once.
FEW = 3
#: Samples of one input of which each is compared with every other; of more, with the ones before and after it.
EVERY_PAIR = 100

_WORD = re.compile(r"\w+")


#: Name of an input, and the runs that it holds.
Named = tuple[str, xr.Dataset]


@dataclass(frozen=True)
class Count:
    """A number, its error and where it stands; error: the spread a table prints, of runs that of their mean."""

    name: str
    value: float
    error: float = 0.0
    units: str = "1"
    source: str = ""
    line: int = 0

    def evidence(self, side: str = "") -> Evidence:
        """Return it as evidence."""
        return Evidence(f"{self.name}, {side}" if side else self.name, self.value, self.units, self.source, self.line)


@dataclass(frozen=True)
class Result:
    """What a benchmark or a clock said, and which way is better."""

    count: Count
    better: str


@dataclass(frozen=True)
class Series:
    """Counters over time: their growth in each interval between samples.

    Attributes
    ----------
    ends, seconds : array (interval,)
        Ends and lengths, s; where the samples have no times, numbers of samples and NaN.
    growth : dict
        Counter -> array (interval,).
    """

    ends: NDArray[np.float64]
    seconds: NDArray[np.float64]
    growth: Mapping[str, NDArray[np.float64]]


@dataclass
class Side:
    """One snapshot, run or column of a table.

    Attributes
    ----------
    name : str
        Empty where it is the only one.
    source : str
    table : int
        Sides of one number stand in one table.
    counts : dict
        Counter, as /proc/vmstat names it -> its growth (from boot, where there was one sample).
    seconds : float or None
        Length of the record.
    results : dict
        Run times and throughputs by label.
    nodes : dict
        Node -> counter of numastat -> its count.
    series : Series or None
    runs : int
        Repetitions whose mean the counts are.
    samples : int
        Samples of its input, of which it is one; 1 where it is none.
    """

    name: str
    source: str
    table: int
    counts: dict[str, Count] = field(default_factory=dict)
    seconds: float | None = None
    results: dict[str, Result] = field(default_factory=dict)
    nodes: dict[int, dict[str, Count]] = field(default_factory=dict)
    series: Series | None = None
    runs: int = 1
    samples: int = 1

    @property
    def many(self) -> bool:
        """Whether it is one of more samples than are shown one by one."""
        return self.samples > FEW

    def value(self, name: str) -> float | None:
        """Return a counter, None where it is missing."""
        return self.counts[name].value if name in self.counts else None

    def evidence(self, *names: str) -> list[Evidence]:
        """Return those counters that there are."""
        return [self.counts[name].evidence(self.name) for name in names if name in self.counts]

    def derived(self, what: str, value: float, units: str = "1") -> Evidence:
        """Return a number computed of this side as evidence."""
        return Evidence(f"{what}, {self.name}" if self.name else what, value, units, self.source)

    @property
    def faults(self) -> float:
        """Hint faults; 0 where nothing counts them."""
        return self.value("numa_hint_faults") or 0.0

    @property
    def share(self) -> float | None:
        """Local share of hint faults; None without faults or without either counter."""
        local = self.value("numa_hint_faults_local")
        return local / self.faults if local is not None and self.faults else None

    @property
    def per_fault(self) -> float | None:
        """Pages migrated per hint fault; None where it is undefined."""
        migrated = self.value("numa_pages_migrated")
        return migrated / self.faults if migrated is not None and self.faults else None

    @property
    def demoted(self) -> float | None:
        """Pages demoted to slow memory by anyone; None where nothing counts them."""
        every = [count.value for name, count in self.counts.items() if name.startswith("pgdemote_")]
        return sum(every) if every else None


@dataclass(frozen=True)
class Node:
    """What the inputs say of one node; None where they say nothing."""

    number: int
    cpus: int | None
    size_mb: float | None
    free_mb: float | None
    source: str
    line: int


@dataclass
class Facts:
    """Everything that was read, in the forms the rules use.

    Attributes
    ----------
    sides : list of Side
    machines : list of dict
        Node -> `Node`, one for each machine that an input shows.
    tables : list of (Reading, Table)
    datasets : list of Named
    texts : dict
        Input and format -> its lines, those of other formats blank, for the lines of evidence.
    remarks : list of str
        How the inputs were taken, where they do not say.
    """

    sides: list[Side] = field(default_factory=list)
    machines: list[dict[int, Node]] = field(default_factory=list)
    tables: list[tuple[Reading, Table]] = field(default_factory=list)
    datasets: list[Named] = field(default_factory=list)
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    _lines: dict[tuple[str, str, str], list[int]] = field(default_factory=dict, repr=False)
    _words: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict, repr=False)

    def named(self, format: str, start: str = "") -> Iterator[tuple[Reading, Table]]:
        """Give the tables of a format whose names begin so."""
        for reading, table in self.tables:
            if reading.format == format and table.name.startswith(start):
                yield reading, table

    def machine(self, source: str) -> dict[int, Node]:
        """Return the nodes that an input shows, else those of the only machine that any shows."""
        own = [one for one in self.machines if any(node.source == source for node in one.values())]
        return own[0] if own else self.machines[0] if len(self.machines) == 1 else {}

    def beside(self) -> Iterator[tuple[Side, list[Side]]]:
        """Give each side, and those it may be compared with: of its table, or of other inputs.

        A sample of a long series of samples (`EVERY_PAIR`) is compared with its neighbours only.
        """
        short = [side for side in self.sides if side.samples <= EVERY_PAIR]
        for at, one in enumerate(self.sides):
            if one.samples > EVERY_PAIR:
                near = self.sides[max(at - 1, 0) : at + 2]
                yield one, [other for other in near if other is not one and other.table == one.table]
            else:
                others = (other for other in short if other is not one)
                yield one, [other for other in others if one.table == other.table or one.source != other.source]

    def pairs(self) -> Iterator[tuple[Side, Side]]:
        """Give every two sides that may be compared, either first."""
        return ((one, other) for one, others in self.beside() for other in others)

    def line(self, source: str, format: str, start: int, label: str, nth: int = 0) -> int:
        """Find the line of a label from a line on.

        Parameters
        ----------
        source, format : str
        start : int
            Line to begin at; returned where no line has the label.
        label : str
        nth : int
            Which of the lines with the label, where snapshots stand below each other; the last if there are fewer.
        """
        found = self._labelled(source, format, label)
        first = bisect_left(found, start)
        return found[min(first + nth, len(found) - 1)] if first < len(found) else start

    def _labelled(self, source: str, format: str, label: str) -> list[int]:
        """Return the lines of a text that have a label."""
        key = source, format, label
        if key not in self._lines:
            words = r"\s+".join(map(re.escape, label.split()))
            pattern = re.compile(rf"(?<![\w.]){words}(?!\w|\.\w)")
            text = self.texts.get((source, format), [])
            first = _WORD.search(label)
            near = self._index((source, format)).get(first[0], []) if first else []
            self._lines[key] = [number for number in near if pattern.search(text[number - 1])]
        return self._lines[key]

    def _index(self, text: tuple[str, str]) -> dict[str, list[int]]:
        """Return the lines of each word of a text, so that many labels are found in one pass."""
        if text not in self._words:
            index: dict[str, list[int]] = {}
            for number, line in enumerate(self.texts.get(text, ()), 1):
                for word in set(_WORD.findall(line)):
                    index.setdefault(word, []).append(number)
            self._words[text] = index
        return self._words[text]


def changed(one: Count, other: Count) -> bool:
    """Tell whether two numbers differ by more than twice the error of their difference."""
    return abs(one.value - other.value) > 2 * float(np.hypot(one.error, other.error))


def better(one: Side, other: Side, least: float) -> list[tuple[Result, Result]]:
    """Return the results in which the first side is better by at least a share of the second's, beyond errors."""
    found = []
    for label, mine in one.results.items():
        theirs = other.results.get(label)
        if theirs is None or not theirs.count.value or not mine.better:
            continue
        gain = (mine.count.value - theirs.count.value) / theirs.count.value
        gain = -gain if mine.better == "lower" else gain
        if gain >= least and changed(mine.count, theirs.count):
            found.append((mine, theirs))
    return found


# ---------------------------------------------------------------- runs


def sides_of_runs(ds: xr.Dataset, source: str, table: int, name: str = "") -> Iterator[Side]:
    """Make a side of each kind of run in a dataset; repetitions give their mean and its error."""
    from numalab.sides import groups

    totals, nodes = dict(_totals(ds)), _nodes(ds)
    axis = _axis(ds)
    times = ds[axis].values.astype(float) if axis is not None and ds.sizes[axis] > 1 else None
    growths = _growths(ds, axis) if axis is not None and times is not None else {}
    for label, runs in groups(ds) or [("", list(range(ds.sizes["run"])))]:
        side = Side(label or name, source, table, runs=len(runs))
        side.counts = {key: _mean(key, every[runs], source) for key, every in totals.items()}
        if times is not None:
            side.seconds = float(times[-1] - times[0]) or None
            own = {key: every[runs].mean(axis=0) for key, every in growths.items()}
            side.series = Series(times[1:], np.diff(times), own)
        if nodes is not None:
            side.nodes = dict(_of_nodes(nodes, runs, source))
        if side.counts or side.nodes:
            yield side


def _axis(ds: xr.Dataset) -> str | None:
    for name in ("numa_hint_faults", "counters"):
        if name in ds.data_vars:
            return time_axis(ds[name])
    return None


def _totals(ds: xr.Dataset) -> Iterator[tuple[str, NDArray[np.float64]]]:
    from numalab.sides import counts

    for quantity, values in counts(ds):
        yield quantity.name, np.asarray(values, dtype=float)


def _mean(name: str, every: NDArray[np.float64], source: str) -> Count:
    units = VARIABLES[name].units if name in VARIABLES else "1"
    if len(every) == 1:
        return Count(name, float(every[0]), 0.0, units, source)
    return Count(name, float(np.mean(every)), float(np.std(every, ddof=1) / np.sqrt(len(every))), units, source)


def _growths(ds: xr.Dataset, axis: str) -> dict[str, NDArray[np.float64]]:
    """Return growth by interval of each counter: (run, interval)."""
    found = {}
    for name, array in ds.data_vars.items():
        if array.dims == ("run", axis) and VARIABLES[str(name)].cumulative:
            found[str(name)] = np.diff(array.values.astype(float), axis=1)
        elif name == "counters" and axis in array.dims:
            for one in array.transpose("counter", "run", axis):
                found[str(one["counter"].item())] = np.diff(one.values.astype(float), axis=1)
    return found


def _nodes(ds: xr.Dataset) -> xr.DataArray | None:
    """Return what the nodes counted: (run, node, node_counter)."""
    if "node_counters" not in ds.data_vars:
        return None
    return growth(ds["node_counters"]).transpose("run", "node", "node_counter")


def _of_nodes(total: xr.DataArray, runs: list[int], source: str) -> Iterator[tuple[int, dict[str, Count]]]:
    means, names = total.values[runs].mean(axis=0).tolist(), total["node_counter"].values.tolist()
    for node, row in zip(total["node"].values.tolist(), means, strict=True):
        counted = zip(names, row, strict=True)
        yield node, {name: Count(f"{name} of node {node}", value, 0.0, "pages", source) for name, value in counted}


# ---------------------------------------------------------------- lines of evidence


def located(side: Side, facts: Facts, reading: Reading, nth: int) -> Side:
    """Give the numbers of a side read from a text the lines they stand in."""
    start = reading.tables[0].line if reading.tables else 0

    def at(one: Count, label: str) -> Count:
        return replace(one, line=facts.line(reading.source, reading.format, start, label, nth))

    side.counts = {name: at(one, name) for name, one in side.counts.items()}
    side.nodes = {node: {name: at(one, name) for name, one in own.items()} for node, own in side.nodes.items()}
    return side


def number(value: object) -> float | None:
    """Return a cell of a table as a number, None where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def every_text(readings: Iterable[Reading]) -> dict[tuple[str, str], list[str]]:
    """Return the lines of all inputs that are texts."""
    return {(one.source, one.format): one.text.split("\n") for one in readings if one.text}
