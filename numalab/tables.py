"""A comparison as the tables that kernel developers read: LKP's, today's and of 2014, and MMTests'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from statistics import harmonic_mean

import numpy as np
import xarray as xr

from numalab.compare import Comparison, Row
from numalab.readers import lkp, mmtests
from numalab.readers.tables import MMTESTS_COUNTERS
from numalab.sides import OWN, Values, lkp_stat
from numalab.writers import lkp as lkp_writer
from numalab.writers import mmtests as mmtests_writer

#: Style -> writer of a whole comparison.
STYLES: dict[str, Callable[[Comparison], str]] = {
    "mmtests": lambda comparison: mmtests_writer.write(as_mmtests(comparison)),
    "lkp": lambda comparison: "\n".join(map(lkp_writer.write, as_lkp(comparison))),
    "lkp-2014": lambda comparison: "\n".join(map(lkp_writer.write_2014, as_lkp_2014(comparison))),
}


def _columns(comparison: Comparison) -> tuple[str, ...]:
    """Return the names of the sides as single words."""
    return tuple("_".join(name.split()) for name in comparison.names)


# ---------------------------------------------------------------- LKP


def as_lkp(comparison: Comparison) -> list[lkp.Table]:
    """Make tables of LKP, their rows in the order of the tool.

    Returns
    -------
    list of numalab.readers.lkp.Table
        One for each test, and further ones for quantities that some side lacks, without its column. First numalab's
        own statistics, then the others by group (what stands before the first dot), small groups first, and by name.
    """
    return [
        lkp.Table(0, columns, _lkp_sorted([_lkp_row(row) for row in rows]), setup=_setup(test))
        for test in comparison.tests
        for columns, rows in _by_columns(comparison, [row for row in comparison.rows if row.test == test])
    ]


def _by_columns(comparison: Comparison, rows: Sequence[Row]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Part rows by the sides that have them; with the names of these."""
    names = _columns(comparison)
    parts: dict[tuple[bool, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(one is not None for one in row.values), []).append(row)
    return [(tuple(compress(names, present)), part) for present, part in parts.items()]


def _lkp_row(row: Row, *, percent: bool = False) -> lkp.Row:
    """Make a row; with ``percent`` its changes are percents of the base for shares, too."""
    absolute = row.quantity.absolute and not percent
    values = [one for one in row.values if one is not None]
    changes = tuple(one.mean - values[0].mean if absolute else _percent(values[0].mean, one.mean) for one in values[1:])
    return lkp.Row(lkp_stat(row.quantity), tuple(_lkp_cell(one) for one in values), changes, absolute)


def _percent(base: float, new: float) -> float:
    """Return the change in percent; against a base of 0 as huge as LKP has it."""
    return 100 * (new - base) / (base or 1e-100)


def _lkp_cell(values: Values) -> lkp.Cell:
    return lkp.Cell(values.mean, values.stddev_percent)


def _lkp_sorted(rows: Sequence[lkp.Row]) -> list[lkp.Row]:
    def group(row: lkp.Row) -> str:
        return row.stat.partition(".")[0]

    size = Counter(map(group, rows))
    return sorted(rows, key=lambda row: (0 if group(row) == OWN else size[group(row)], row.stat))


def _setup(test: str) -> dict[str, str]:
    machine, slash, rest = test.partition("/")
    if not slash:
        return {"testcase": test} if test else {}
    keys = ("tbox_group", "testcase", "test")
    # a slash more would be read as a parameter more
    parts = [machine, *rest.split("/", 1)]
    return {key: part.replace("/", ":") for key, part in zip(keys, parts, strict=False)}


def as_lkp_2014(comparison: Comparison) -> list[lkp.Table]:
    """Make tables in LKP's style of 2014: a block for each quantity, with a row for each test and their TOTAL.

    Returns
    -------
    list of numalab.readers.lkp.Table
        One, and further ones for quantities that some side lacks, without its column. The spread of a TOTAL is the
        sum of the spreads over the sum of the means, as in the tool's tables.
    """
    tables = []
    for columns, rows in _by_columns(comparison, comparison.rows):
        table = lkp.Table(0, columns)
        for stat in dict.fromkeys(lkp_stat(row.quantity) for row in rows):
            found = [row for row in rows if lkp_stat(row.quantity) == stat]
            block = [_lkp_row(row, percent=True) for row in found]
            table.rows += map(_named_by_test, found, block)
            table.rows.append(_total(stat, block))
        tables.append(table)
    return tables


def _named_by_test(row: Row, printed: lkp.Row) -> lkp.Row:
    return replace(printed, test=_test_2014(row.test))


def _total(stat: str, block: Sequence[lkp.Row]) -> lkp.Row:
    cells = []
    for column in zip(*(row.cells for row in block), strict=True):
        mean = sum(cell.mean for cell in column)
        known = all(cell.stddev_percent is not None for cell in column) and mean
        spread = sum((cell.stddev_percent or 0.0) * abs(cell.mean) for cell in column)
        cells.append(lkp.Cell(mean, spread / abs(mean) if known else None))
    changes = tuple(_percent(cells[0].mean, cell.mean) for cell in cells[1:])
    return lkp.Row(stat, tuple(cells), changes, test=lkp.TOTAL)


def _test_2014(test: str) -> str:
    """Name a test as machine/suite/parameters, in one word."""
    parts = test.split("/")
    if len(parts) == 2:
        words = parts[1].split()
        # what begins with a "-" and what comes after are parameters
        first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        parts = [parts[0], "-".join(words[:first]), "-".join(word.strip("-") for word in words[first:]) or "default"]
    elif len(parts) == 1:
        parts = [OWN, test or "test", "default"]
    return "/".join("-".join(part.split()) for part in parts)


# ---------------------------------------------------------------- MMTests


def as_mmtests(comparison: Comparison) -> mmtests.Table:
    """Make a table of MMTests: Min, mean, Stddev, CoeffVar and Max of each quantity, then the "Ops" rows.

    Returns
    -------
    numalab.readers.mmtests.Table
        Percents say how much better, ``*`` marks means that differ significantly. Rates have harmonic means. Of
        single runs only the mean is printed. With several tests the name of a metric ends in its test, and there are
        no "Ops" rows.
    """
    several = len(comparison.tests) > 1
    rows: list[mmtests.Row] = []
    for statistic, pick in _STATISTICS:
        for row in comparison.rows:
            values = [None if one is None else pick(row, one) for one in row.values]
            single = all(one is None or one.n == 1 for one in row.values)
            if values[0] is None or (single and statistic != "Mean"):
                continue
            name = _mean(row)[0] if statistic == "Mean" else statistic
            stars = (False, *(bool(one and one.significant) and statistic == "Mean" for one in row.against))
            better = "lower" if statistic in ("Stddev", "CoeffVar") else row.quantity.better
            metric = row.quantity.name + ("-" + "_".join(row.test.split()) if several else "")
            rows.append(_mmtests_row(name, metric, values, better, stars))
    return mmtests.Table(0, _columns(comparison), rows + ([] if several else _ops(comparison)))


def _mean(row: Row) -> tuple[str, Callable[[Values], float]]:
    """Return which mean fits a quantity: of rates the harmonic one, as a fixed amount of work takes their inverse."""
    rate = row.quantity.units.endswith(("/s", "s-1")) and all(
        one is None or (one.values and not one.without and min(one.values) > 0) for one in row.values
    )
    return ("Hmean", lambda one: harmonic_mean(one.values)) if rate else ("Amean", lambda one: one.mean)


#: Statistics in the order of the tool; "Mean" is the one that fits.
_STATISTICS: tuple[tuple[str, Callable[[Row, Values], float | None]], ...] = (
    ("Min", lambda row, one: one.low),
    ("Mean", lambda row, one: _mean(row)[1](one)),
    ("Stddev", lambda row, one: one.stddev),
    ("CoeffVar", lambda row, one: one.stddev_percent),
    ("Max", lambda row, one: one.high),
)


def _mmtests_row(
    statistic: str, metric: str, values: Sequence[float | None], better: str, stars: tuple[bool, ...]
) -> mmtests.Row:
    numbers = [np.nan if value is None else value for value in values]
    changes = [0.0] + [_improvement(numbers[0], number, better) for number in numbers[1:]]
    return mmtests.Row(statistic, metric, tuple(numbers), tuple(changes), stars)


def _improvement(base: float, new: float, better: str) -> float:
    """Return how much better than the base, percent; 100 and -99 where one of the two is 0, as the tool has it."""
    if base == new:
        return 0.0
    if better == "lower":
        return -99.0 if base == 0 else 100 - 100 * new / base
    return 100.0 if base == 0 else 100 * new / base - 100


#: Allocation counters, in the order of the tool; they stand before the rows of NUMA balancing.
_ALLOCATIONS = ("numa_hit", "numa_miss", "numa_interleave", "numa_local")
_ALLOCATION_LABELS = {counter: label for label, counter in MMTESTS_COUNTERS.items() if counter in _ALLOCATIONS}


def _ops(comparison: Comparison) -> list[mmtests.Row]:
    """Compute the rows of /proc/vmstat from the means of those counters that all sides have."""
    means = {
        row.quantity.name: np.array([[one.mean] for one in row.values if one is not None])
        for row in comparison.rows
        if row.quantity.counter and all(row.values)
    }
    found = {_ALLOCATION_LABELS[name]: means[name][:, 0] for name in _ALLOCATIONS if name in means}
    ds = xr.Dataset({name: (("run", "time"), values) for name, values in means.items()})
    found |= {str(name): row.values for name, row in ds.numa.mmtests().items()}
    return [mmtests.Row("Ops", label, tuple(map(float, values))) for label, values in found.items()]
