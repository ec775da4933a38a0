"""What a sweep is: a description, what varies in it, with which seeds, and what is kept.

A description file of ``numalab run`` with one more table::

    [sweep]
    seeds = 8                       # default: those of [run]
    keep = { task_node = 0.5 }      # beside one number per run and quantity: over time, every 0.5 s
    [sweep.grid]                    # every combination
    kernel = ["3.16", "3.17"]
    scan_size_mb = [64, 256]
    workload.p = [2, 4]
    [sweep.list]                    # side by side
    [sweep.latin_hypercube]         # or morris, or sobol
    n = 50
    ranges = { remote_cost = [100, 1000] }
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numalab import describe
from numalab.kernel import Kernel
from numalab.machine import Machine
from numalab.model.params import DEFAULTS
from numalab.model.record import READERS
from numalab.records import DescriptionError, nearest, read_field, read_record, show
from numalab.sweeps import factors
from numalab.sweeps.designs import METHODS, Sampling, combinations, flat, side_by_side
from numalab.sweeps.factors import Value
from numalab.workload import Workload

#: Runs of a batch at most, unless told otherwise: a run in 64 costs a fifth less, but 16 spread over more processes.
BATCH = 16
#: More runs than this are a mistake.
MOST_RUNS = 1_000_000
_KEYS = ("seeds", "keep", "batch", "grid", "list", *METHODS)


@dataclass(frozen=True)
class Spec:
    """A sweep.

    Attributes
    ----------
    description : dict
        Tables ``machine``, ``workload`` and ``kernel`` as a description file has them.
    seconds : float
        Simulated time of each run.
    step_us : int
        Time step of the model.
    seeds : tuple of int
        Every point is run with each.
    grid, lists : dict
        Factor to its values: every combination, and side by side.
    sampling : Sampling or None
    keep : dict
        Variable to seconds between samples that are kept.
    batch : int
        Runs of a batch at most.
    units : list or None
        The sample of ``sampling``, drawn once.
    """

    description: dict[str, Any]
    seconds: float
    step_us: int
    seeds: tuple[int, ...]
    grid: dict[str, list[Value]]
    lists: dict[str, list[Value]]
    sampling: Sampling | None
    keep: dict[str, float]
    batch: int = BATCH
    units: list[list[float]] | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spec:
        """Read a description file with a table ``[sweep]``.

        Raises
        ------
        DescriptionError
            Names the file and the key at fault.
        """
        data = describe.read(path)
        try:
            if "sweep" not in data:
                raise DescriptionError("sweep", "missing; expected a table [sweep] that says what varies")
            return cls.build({key: part for key, part in data.items() if key != "sweep"}, data["sweep"])
        except DescriptionError as error:
            raise DescriptionError(error.key, error.problem, os.fspath(path)) from None

    @classmethod
    def build(cls, data: Mapping[str, Any], table: Any) -> Spec:
        """Make a sweep of a description's tables and the table ``sweep``.

        Raises
        ------
        DescriptionError
            Names the key at fault.
        """
        sections = ("machine", "workload", "kernel", "run")
        for key in data:
            if key not in sections:
                raise DescriptionError(key, f"unknown key{nearest(key, (*sections, 'sweep'))}")
        for key in sections[:3]:
            if not isinstance(data.get(key), Mapping):
                raise DescriptionError(key, f"expected a table [{key}]")
        try:
            run = read_record(describe.Run, data.get("run", {}))
        except DescriptionError as error:
            raise error.within("run") from None
        try:
            return cls._of_table({key: dict(data[key]) for key in sections[:3]}, run, table)
        except DescriptionError as error:
            raise error.within("sweep") from None

    @classmethod
    def _of_table(cls, description: dict[str, Any], run: describe.Run, table: Any) -> Spec:
        if not isinstance(table, Mapping):
            raise DescriptionError("", f"expected a table, got {show(table)}")
        for key in table:
            if key not in _KEYS:
                raise DescriptionError(str(key), f"unknown key{nearest(str(key), _KEYS)}")
        methods = [method for method in METHODS if method in table]
        if len(methods) > 1:
            raise DescriptionError(methods[1], f"expected one of {', '.join(METHODS)}, got {methods[0]} too")
        spec = cls(
            description=description,
            seconds=run.seconds,
            step_us=DEFAULTS["step_us"] if run.step_ms is None else max(1, round(run.step_ms * 1000)),
            seeds=_seeds(table["seeds"]) if "seeds" in table else run.seed_list,
            grid=_lists("grid", table.get("grid", {})),
            lists=_lists("list", table.get("list", {})),
            sampling=Sampling.read(methods[0], table[methods[0]]) if methods else None,
            keep=_keep(table.get("keep", [])),
            batch=read_field(describe.Seeds, table.get("batch", BATCH), "batch"),
        )
        spec._check()
        return spec

    def _check(self) -> None:
        lengths = {name: len(values) for name, values in self.lists.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DescriptionError("list", f"expected lists of one length, which lie side by side, got {told}")
        parts = [("grid", self.grid), ("list", self.lists)]
        if self.sampling is not None:
            sampled = {name: one.ends for name, one in self.sampling.ranges.items()}
            parts.append((f"{self.sampling.method}.ranges", sampled))
        seen: dict[str, str] = {}
        for where, part in parts:
            for name, values in part.items():
                if name in seen:
                    raise DescriptionError(f"{where}.{name}", f"expected each factor once, it is in {seen[name]} too")
                seen[name] = where
                try:
                    factors.check(name, values, self.description)
                except DescriptionError as error:
                    raise error.within(where) from None
        if (runs := self.size * len(self.seeds)) > MOST_RUNS:
            raise DescriptionError("", f"expected at most {MOST_RUNS:,} runs, got {runs:,}")

    @property
    def factors(self) -> list[str]:
        """Names of what varies."""
        return [*self.grid, *self.lists, *(self.sampling.ranges if self.sampling else ())]

    @property
    def size(self) -> int:
        """Number of points: combinations of values."""
        count = len(next(iter(self.lists.values()), [None]))
        for values in self.grid.values():
            count *= len(values)
        return count * (self.sampling.size() if self.sampling else 1)

    def drawn(self) -> Spec:
        """Return the same with its sample drawn."""
        if self.sampling is None or self.units is not None:
            return self
        return replace(self, units=self.sampling.units())

    def points(self) -> list[dict[str, Value]]:
        """Return the values of all factors at every point; the sampled ones vary fastest."""
        sampled: list[dict[str, Value]] = [{}]
        if self.sampling is not None:
            assert self.units is not None, "drawn() first"
            sampled = self.sampling.points(self.units)
        return [
            {**one, **two, **three}
            for one in combinations(self.grid)
            for two in side_by_side(self.lists)
            for three in sampled
        ]

    def plain(self) -> dict[str, Any]:
        """Return what JSON can hold, of which :meth:`from_plain` makes the same sweep."""
        made: dict[str, Any] = {
            "description": self.description,
            "seconds": self.seconds,
            "step_us": self.step_us,
            "seeds": list(self.seeds),
            "grid": self.grid,
            "list": self.lists,
            "keep": self.keep,
            "batch": self.batch,
        }
        if self.sampling is not None:
            made["sampling"] = {"method": self.sampling.method, **self.sampling.plain()}
            made["units"] = self.units
        plain: dict[str, Any] = json.loads(json.dumps(made))
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Spec:
        """Read what :meth:`plain` returned."""
        sampling = dict(plain.get("sampling") or {})
        return cls(
            description=plain["description"],
            seconds=plain["seconds"],
            step_us=plain["step_us"],
            seeds=tuple(plain["seeds"]),
            grid=plain["grid"],
            lists=plain["list"],
            sampling=Sampling.read(sampling.pop("method"), sampling) if sampling else None,
            keep=plain["keep"],
            batch=plain["batch"],
            units=plain.get("units"),
        )

    def differences(self, other: Spec) -> list[str]:
        """Say what another sweep has otherwise, a line for each; the sample itself does not count."""
        mine, theirs = ({key: v for key, v in one.plain().items() if key != "units"} for one in (self, other))
        one, two = flat(mine), flat(theirs)
        keys = [key for key in {**one, **two} if one.get(key) != two.get(key)]
        return [f"{key}: {show(one.get(key))} here, {show(two.get(key))} there" for key in keys]


def _lists(where: str, given: Any) -> dict[str, list[Value]]:
    if not isinstance(given, Mapping):
        raise DescriptionError(where, f"expected a table of lists, got {show(given)}")
    lists = {}
    for name, values in flat(given).items():
        several = list(values) if isinstance(values, list | tuple | range) else [values]
        if not several:
            raise DescriptionError(f"{where}.{name}", "expected at least one value, got []")
        kinds = {type(value) for value in several}
        if kinds == {int, float}:
            several = [float(value) for value in several]
        elif len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            raise DescriptionError(f"{where}.{name}", f"expected values of one kind, got {show(several)}")
        if len(set(several)) < len(several) and where == "grid":
            raise DescriptionError(f"{where}.{name}", f"expected each value once, got {show(several)}")
        lists[name] = several
    return lists


def _seeds(given: Any) -> tuple[int, ...]:
    given = list(given) if isinstance(given, range) else given
    return read_record(describe.Run, {"seeds": given}).seed_list


def _keep(given: Any) -> dict[str, float]:
    """Read names of variables, or a table of names and seconds; a name alone is kept at each second."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Mapping):
        given = dict.fromkeys(read_field(tuple[str, ...], given, "keep"), 1.0)
    for name, every in given.items():
        if name not in READERS:
            raise DescriptionError(f"keep.{name}", f"no variable to record{nearest(str(name), READERS)}")
        read_field(describe.Seconds, every, f"keep.{name}")
    return {str(name): float(every) for name, every in given.items()}


def tables(machine: Any, workload: Any, kernel: Any, seconds: float, seeds: Any) -> dict[str, Any]:
    """Return the description that objects, names or tables of Python come to.

    Raises
    ------
    DescriptionError
        One is of the wrong kind.
    """

    def table_of(what: str, given: Any, kind: type, key: str) -> dict[str, Any]:
        if isinstance(given, str):
            return {key: given}
        if isinstance(given, Machine | Workload) and isinstance(given, kind):
            return given.to_dict()
        if isinstance(given, Kernel) and isinstance(given, kind):
            return {"name": given.name, "switches": given.overrides}
        if isinstance(given, Mapping):
            return dict(given)
        raise DescriptionError(what, f"expected a name, a table or a {kind.__name__}, got {show(given)}")

    several = list(seeds) if isinstance(seeds, Sequence | range) else seeds
    return {
        "machine": table_of("machine", machine, Machine, "preset"),
        "workload": table_of("workload", workload, Workload, "preset"),
        "kernel": table_of("kernel", kernel, Kernel, "name"),
        "run": {"seconds": seconds, "seeds": several},
    }
