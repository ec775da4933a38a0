"""Which points a sweep visits: every combination, lists side by side, or a sample of ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from numalab.records import DescriptionError, nearest, show
from numalab.sweeps.extra import need
from numalab.sweeps.factors import Value

#: How ranges can be sampled; the last two are for `numalab.sweeps.indices`.
METHODS = ("latin_hypercube", "morris", "sobol")
#: Levels of a Morris design; even, as its authors advise.
LEVELS = 4


@dataclass(frozen=True)
class Range:
    """Where the values of a sampled factor lie.

    Attributes
    ----------
    low, high : int or float
        Both are taken; whole numbers if both are.
    log : bool
        Equal ratios are equally likely, not equal differences.
    values : tuple
        In place of a range: these, equally likely.
    """

    low: int | float = 0
    high: int | float = 0
    log: bool = False
    values: tuple[Value, ...] = ()

    @classmethod
    def read(cls, name: str, given: Any) -> Range:
        """Read ``[low, high]``, ``{low =, high =, log = true}`` or ``{values = [...]}``.

        Raises
        ------
        DescriptionError
            It is none of these.
        """
        if isinstance(given, list | tuple) and len(given) == 2:
            given = {"low": given[0], "high": given[1]}
        wanted = "[low, high], { low = ..., high = ..., log = true } or { values = [...] }"
        if not isinstance(given, Mapping) or not set(given) <= {"low", "high", "log", "values"}:
            raise DescriptionError(name, f"expected {wanted}, got {show(given)}")
        if "values" in given:
            if len(given) > 1 or not isinstance(given["values"], list | tuple) or not given["values"]:
                raise DescriptionError(name, f"expected {wanted}, got {show(given)}")
            return cls(values=tuple(given["values"]))
        low: Any = given.get("low")
        high: Any = given.get("high")
        log = given.get("log", False)
        if not _is_number(low) or not _is_number(high) or not isinstance(log, bool) or not low < high:
            raise DescriptionError(name, f"expected {wanted} with low < high, got {show(given)}")
        if log and low <= 0:
            raise DescriptionError(name, f"expected low > 0 with log = true, got {show(low)}")
        return cls(low, high, log)

    def plain(self) -> dict[str, Any]:
        """Return the range as a description file has it."""
        if self.values:
            return {"values": list(self.values)}
        return {"low": self.low, "high": self.high, "log": self.log}

    @property
    def ends(self) -> list[Value]:
        """Every value, or the extreme ones."""
        return list(self.values) or [self.low, self.high]

    def at(self, unit: float) -> Value:
        """Return the value at a position from 0 to 1; whole numbers and listed values get equal parts of it."""
        if self.values:
            return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        end = self.high + 1 if whole else self.high
        value = self.low * (end / self.low) ** unit if self.log else self.low + unit * (end - self.low)
        return min(math.floor(value), int(self.high)) if whole else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Sampling:
    """A sample of ranges.

    Attributes
    ----------
    method : str
        Of :data:`METHODS`.
    n : int
        Points of a Latin hypercube, trajectories of Morris, base points of Sobol.
    seed : int
    ranges : mapping of str to Range
    """

    method: str
    n: int
    seed: int
    ranges: Mapping[str, Range]

    @classmethod
    def read(cls, method: str, given: Any) -> Sampling:
        """Read the table of a method.

        Raises
        ------
        DescriptionError
            Naming the key.
        """
        if not isinstance(given, Mapping):
            raise DescriptionError(method, f"expected a table with n and ranges, got {show(given)}")
        for key in given:
            if key not in ("n", "seed", "ranges"):
                raise DescriptionError(f"{method}.{key}", f"unknown key{nearest(str(key), ('n', 'seed', 'ranges'))}")
        n, seed, ranges = given.get("n"), given.get("seed", 0), given.get("ranges")
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 10**6:
            raise DescriptionError(f"{method}.n", f"expected a whole number from 1 to 1,000,000, got {show(n)}")
        if method == "sobol" and n & (n - 1):
            raise DescriptionError("sobol.n", f"expected a power of 2, which the sequence needs, got {n}")
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            raise DescriptionError(f"{method}.seed", f"expected a whole number from 0, got {show(seed)}")
        if not isinstance(ranges, Mapping) or not ranges:
            raise DescriptionError(f"{method}.ranges", f"expected a table of ranges, got {show(ranges)}")
        read = {name: Range.read(f"{method}.ranges.{name}", one) for name, one in flat(ranges, leaf=_is_range).items()}
        if method != "latin_hypercube" and len(read) < 2:
            raise DescriptionError(f"{method}.ranges", f"expected at least two factors to tell apart, got {len(read)}")
        return cls(method, n, seed, read)

    def plain(self) -> dict[str, Any]:
        """Return the table as a description file has it."""
        ranges = {name: one.plain() for name, one in self.ranges.items()}
        return {"n": self.n, "seed": self.seed, "ranges": ranges}

    def units(self) -> list[list[float]]:
        """Draw the sample: (points, factors), each number from 0 to 1."""
        count = len(self.ranges)
        if self.method == "latin_hypercube":
            sampler = need("scipy.stats.qmc").LatinHypercube(d=count, rng=self.seed)
            return [[float(x) for x in row] for row in sampler.random(self.n)]
        problem = problem_of(list(self.ranges))
        if self.method == "morris":
            rows = need("SALib.sample.morris").sample(problem, self.n, num_levels=LEVELS, seed=self.seed)
        else:
            sobol = need("SALib.sample.sobol")
            rows = sobol.sample(problem, self.n, calc_second_order=False, seed=self.seed)
        return [[float(x) for x in row] for row in rows]

    def size(self) -> int:
        """Count the points."""
        factors = len(self.ranges)
        return self.n * {"latin_hypercube": 1, "morris": factors + 1, "sobol": factors + 2}[self.method]

    def points(self, units: list[list[float]]) -> list[dict[str, Value]]:
        """Return the values at each point of a sample."""
        return [
            {name: one.at(unit) for (name, one), unit in zip(self.ranges.items(), row, strict=True)} for row in units
        ]


def problem_of(names: list[str]) -> dict[str, Any]:
    """Describe factors to SALib, each from 0 to 1."""
    return {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}


def _is_range(given: Mapping[str, Any]) -> bool:
    return bool(given) and set(given) <= {"low", "high", "log", "values"}


def flat(given: Mapping[str, Any], *, leaf: Any = lambda table: False) -> dict[str, Any]:
    """Join keys of nested tables with dots, as in ``workload.p``; ``leaf`` says which tables are values."""
    out: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and not leaf(value):
            out |= {f"{key}.{rest}": inner for rest, inner in flat(value, leaf=leaf).items()}
        else:
            out[str(key)] = value
    return out


def combinations(lists: Mapping[str, list[Value]]) -> list[dict[str, Value]]:
    """Return every combination; the last factor varies fastest."""
    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]


def side_by_side(lists: Mapping[str, list[Value]]) -> list[dict[str, Value]]:
    """Return the first value of each list, the second of each, and so on."""
    if not lists:
        return [{}]
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
