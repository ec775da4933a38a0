"""Compare sets of runs: means, spread, change, whether it is more than noise, and how many runs would tell.

The first side is the base. Sides are `numalab.sides.Side`; `numalab.tables` prints a comparison as LKP or MMTests do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from numalab import welch
from numalab.sides import CONVERGED, Key, Quantity, Side, SidesError, Values, lkp_stat

#: Effect that `Against.runs_needed` is about, percent of the base.
EFFECT = 5.0

#: So many rows are read at one glance.
FEW_ROWS = 12

#: Differences below this share of the base are rounding, whatever a test says.
_SAME = 1e-6

#: `Against.why` of a table's means, and of a side with one run.
UNKNOWN_RUNS, SINGLE_RUN = "number of runs unknown", "a single run"

#: Records whose lengths differ by more than this share are not comparable as totals.
_SAME_LENGTH = 0.01


@dataclass(frozen=True)
class Against:
    """One side against the base in one quantity.

    Attributes
    ----------
    difference : float
        Mean minus that of the base.
    change_percent : float or None
        Of the base; None where that is 0.
    low, high : float or None
        95 % confidence interval of the difference.
    t, df, p : float or None
        Welch's test; for shares of runs only p, of Fisher's exact test. None where there is none, see ``why``.
    significant : bool or None
        Of a table of MMTests, without a number of runs, what it says itself.
    runs_needed : int or None
        Runs a side to see a change of the effect asked for, with the spread seen here.
    why : str
        Why there is no test.
    """

    difference: float
    change_percent: float | None
    low: float | None = None
    high: float | None = None
    t: float | None = None
    df: float | None = None
    p: float | None = None
    significant: bool | None = None
    runs_needed: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Row:
    """One quantity of one test: values of each side (None: has it not), and each but the first against the first."""

    test: str
    quantity: Quantity
    values: tuple[Values | None, ...]
    against: tuple[Against | None, ...]


@dataclass(frozen=True)
class Comparison:
    """Sides compared.

    Attributes
    ----------
    names : tuple of str
        Of the sides, the base first.
    rows : tuple of Row
    alpha, power, effect : float
        Chance of a false alarm; chance of seeing the effect; effect in percent.
    notes : tuple of str
        What to keep in mind.
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    alpha: float
    power: float
    effect: float
    notes: tuple[str, ...]

    @property
    def tests(self) -> list[str]:
        """The tests compared, in order."""
        return list(dict.fromkeys(row.test for row in self.rows))

    @property
    def noise_known(self) -> bool:
        """Whether any change could be tested."""
        return any(one is not None and one.significant is not None for row in self.rows for one in row.against)

    def main_rows(self) -> Comparison:
        """Return the rows to read first: what changed beyond noise, then what is known to be good or bad.

        All, if there are few, or none of these.
        """
        if len(self.rows) <= FEW_ROWS:
            return self
        beyond = [row for row in self.rows if any(one and one.significant for one in row.against)]
        judged = [row for row in self.rows if row.quantity.better and row not in beyond]
        return replace(self, rows=tuple(beyond + judged) or self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, numbers and strings."""
        return {
            "sides": list(self.names),
            "alpha": self.alpha,
            "power": self.power,
            "effect_percent": self.effect,
            "notes": list(self.notes),
            "rows": [_row_dict(row, self.names) for row in self.rows],
        }


def compare(
    sides: Sequence[Side],
    rows: Sequence[str] = (),
    *,
    effect: float = EFFECT,
    alpha: float = welch.ALPHA,
    power: float = welch.POWER,
) -> Comparison:
    """Compare sides with the first.

    Parameters
    ----------
    sides : sequence of Side
        Two or more. A quantity is compared where the base and another side have it in the same test; when each
        side holds one test only, these are taken for the same.
    rows : sequence of str
        Names of quantities, numalab's or LKP's, with ``*`` and ``?``; default: all that are not 0 everywhere.
    effect : float
        Percent of the base that one wants to see, for `Against.runs_needed`.
    alpha, power : float

    Returns
    -------
    Comparison

    Raises
    ------
    SidesError
        Fewer than two sides, nothing in common, or a name in ``rows`` that fits nothing.
    """
    if len(sides) < 2:
        only = f"only one, {sides[0].name}, is given" if sides else "none is given"
        raise SidesError(f"two or more sets of runs can be compared, {only}")
    sides, notes = _same_test(sides)
    keys = [key for key in sides[0].samples if any(key in side.samples for side in sides[1:])]
    if not keys:
        raise SidesError(_nothing_common(sides))
    chosen = _chosen(sides, keys, rows or ["*"])
    found = []
    for key in chosen:
        quantity = sides[0].samples[key][0]
        values = tuple(side.samples[key][1] if key in side.samples else None for side in sides)
        base = values[0]
        assert base is not None
        others = tuple(
            None if one is None else _against(quantity, base, one, effect, alpha, power) for one in values[1:]
        )
        found.append(Row(key[0], quantity, values, others))
    return Comparison(
        tuple(side.name for side in sides), tuple(found), alpha, power, effect, (*notes, *_notes(sides, chosen))
    )


def _same_test(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    """Bring sides of one test each under the base's name for it."""
    if any(len(side.tests) != 1 for side in sides):
        return list(sides), []
    names = [side.tests[0] for side in sides]
    if len(set(names)) == 1:
        return list(sides), []
    renamed = [
        replace(
            side,
            samples={(names[0], key): value for (_, key), value in side.samples.items()},
            seconds={names[0]: next(iter(side.seconds.values()), [])},
            setups={names[0]: next(iter(side.setups.values()), "")},
        )
        for side in sides
    ]
    told = {side.name: name for side, name in zip(sides, names, strict=True) if name}
    differ = len(set(told.values())) > 1
    note = "not the same was run: " + "; ".join(f"{name}: {test}" for name, test in told.items())
    return renamed, [note] if differ else []


def _nothing_common(sides: Sequence[Side]) -> str:
    tests = [set(side.tests) for side in sides]
    if not set.intersection(*tests):
        told = "; ".join(f"{side.name}: {', '.join(side.tests) or 'nothing'}" for side in sides)
        return f"the sides have no test in common ({told}); compare files that hold one test each"
    return "the sides have no quantity in common: " + "; ".join(
        f"{side.name} holds {', '.join(sorted({key for _, key in side.samples})[:5])} ..." for side in sides
    )


def _happened(sides: Sequence[Side], key: Key) -> bool:
    """Tell whether a quantity is not 0 in every run of every side."""
    values = [side.samples[key][1] for side in sides if key in side.samples]
    return any(one.mean or one.stddev for one in values)


def _chosen(sides: Sequence[Side], keys: Sequence[Key], rows: Sequence[str]) -> list[Key]:
    """Pick what the patterns fit; what is 0 everywhere must be asked for by its name."""
    names = {key: (key[1], lkp_stat(sides[0].samples[key][0])) for key in keys}
    for pattern in rows:
        if not any(fnmatchcase(name, pattern) for pair in names.values() for name in pair):
            known = ", ".join(dict.fromkeys(key[1] for key in keys))
            raise SidesError(f"--rows {pattern}: fits no quantity; there are {known}")
    fits = [key for key in keys if any(fnmatchcase(name, pattern) for name in names[key] for pattern in rows)]
    return [key for key in fits if _happened(sides, key) or any(name in rows for name in names[key])]


# ---------------------------------------------------------------- tests


def _against(quantity: Quantity, base: Values, one: Values, effect: float, alpha: float, power: float) -> Against:
    difference = one.mean - base.mean
    change = 100 * difference / base.mean if base.mean else None
    needed = None
    if base.stddev_most is not None and one.stddev_most is not None and quantity.name != CONVERGED:
        # an effect on a share is in points
        size = effect if quantity.absolute else effect / 100 * abs(base.mean)
        needed = welch.runs_needed(base.stddev_most, one.stddev_most, size, alpha, power)
    if base.without or one.without:
        # those that came late or never are missing, so the means of the rest say little
        return Against(difference, change, why="some runs have no value")
    if base.n is None and base.table and base.table == one.table and base.marked is None:
        return Against(difference, change, significant=one.marked, runs_needed=needed, why="as the table marks it")
    if base.n is None or one.n is None:
        return Against(difference, change, runs_needed=needed, why=UNKNOWN_RUNS)
    if base.n < 2 or one.n < 2:
        return Against(difference, change, runs_needed=needed, why=SINGLE_RUN)
    if base.stddev_most is None or one.stddev_most is None:
        return Against(difference, change, why="spread unknown")
    if quantity.name == CONVERGED:
        counts = [round(values.mean / 100 * values.n) for values in (base, one) if values.n]
        p = welch.fisher(counts[0], base.n, counts[1], one.n)
        return Against(difference, change, p=p, significant=p < alpha)
    found = welch.compare(
        welch.Sample(base.mean, base.stddev_most, base.n), welch.Sample(one.mean, one.stddev_most, one.n), alpha
    )
    assert found is not None
    visible = abs(difference) > _SAME * abs(base.mean)
    return Against(
        difference, change, found.low, found.high, found.t, found.df, found.p, visible and found.p < alpha, needed
    )


def _notes(sides: Sequence[Side], keys: Sequence[Key]) -> list[str]:
    notes = [note for side in sides for note in side.notes]
    for side in sides[1:]:
        lacks = [name for test, name in keys if (test, name) not in side.samples]
        if lacks:
            notes.append(f"{side.name} has no {', '.join(lacks)}")
    for test in dict.fromkeys(test for test, _ in keys):
        never = sides[0].samples.get((test, CONVERGED))
        if never and not never[1].mean and any((test, "convergence_s") in side.samples for side in sides):
            notes.append(f"convergence_s: none of the {never[1].n} runs of {sides[0].name} converged for good")
        lengths = {side.name: seconds for side in sides if (seconds := side.seconds.get(test))}
        every = [value for seconds in lengths.values() for value in seconds]
        if every and max(every) > (1 + _SAME_LENGTH) * min(every):
            told = ", ".join(f"{name} {min(s):.4g}-{max(s):.4g}" for name, s in lengths.items())
            notes.append(f"the records differ in length (s: {told}); counters are totals, not rates")
    return notes


# ---------------------------------------------------------------- plain data


def _finite(value: float | None) -> float | None:
    """Return a number that JSON has; an infinite t means that neither side varies."""
    return None if value is None or value in (float("inf"), float("-inf")) else value


def _row_dict(row: Row, names: Sequence[str]) -> dict[str, Any]:
    return {
        "test": row.test,
        "quantity": row.quantity.name,
        "units": row.quantity.units,
        "better": row.quantity.better,
        "values": [
            None
            if one is None
            else {
                "side": name,
                "mean": one.mean,
                "stddev": one.stddev,
                "stddev_percent": one.stddev_percent,
                "runs": one.n,
                "without": one.without,
                "low": one.low,
                "high": one.high,
            }
            for name, one in zip(names, row.values, strict=True)
        ],
        "against_base": [
            None
            if one is None
            else {
                "side": name,
                "difference": one.difference,
                "change_percent": one.change_percent,
                "ratio": None if one.change_percent is None else 1 + one.change_percent / 100,
                "low": one.low,
                "high": one.high,
                "t": _finite(one.t),
                "df": one.df,
                "p": one.p,
                "significant": one.significant,
                "runs_needed": one.runs_needed,
                "why": one.why,
            }
            for name, one in zip(names[1:], row.against, strict=True)
        ],
    }
