"""The runs of a sweep in their order, and the batches they are simulated and stored in."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from numalab import describe
from numalab.records import DescriptionError
from numalab.sweeps import factors
from numalab.sweeps.factors import Value
from numalab.sweeps.spec import Spec

#: Beyond so many batches, several setups share one: each batch is a file for every variable.
MANY = 1000


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes
    ----------
    point : int
        Which point of the design.
    values : dict
        Factor to its value.
    seed : int
    setup : int
        Number of the setup, from 0: runs of one setup differ only in what varies along the run axis.
    """

    point: int
    values: dict[str, Value]
    seed: int
    setup: int


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep.

    Attributes
    ----------
    spec : Spec
    rows : list of Row
        Runs of one setup follow each other, seeds of one point too.
    setups : list of dict
        The description of each setup.
    batch : int
        Runs of a batch; the last may have fewer.
    """

    spec: Spec
    rows: list[Row]
    setups: list[dict[str, Any]]
    batch: int

    @property
    def batches(self) -> int:
        """Number of batches."""
        return math.ceil(len(self.rows) / self.batch)

    def span(self, batch: int) -> range:
        """Return the numbers of the runs in a batch."""
        return range(batch * self.batch, min((batch + 1) * self.batch, len(self.rows)))


def plan(spec: Spec) -> Plan:
    """Put the runs of a sweep in order.

    Parameters
    ----------
    spec : Spec
        With its sample drawn.
    """
    number: dict[str, int] = {}
    setups: list[dict[str, Any]] = []
    of_point: list[int] = []
    points = spec.points()
    for values in points:
        own = {name: value for name, value in values.items() if not factors.along_run(name)}
        key = json.dumps(own)
        if key not in number:
            number[key] = len(setups)
            setups.append(factors.setup(spec.description, own))
        of_point.append(number[key])
    order = sorted(range(len(points)), key=of_point.__getitem__)
    rows = [Row(point, points[point], seed, of_point[point]) for point in order for seed in spec.seeds]
    counts = [0] * len(setups)
    for row in rows:
        counts[row.setup] += 1
    return Plan(spec, rows, setups, _batch(spec.batch, counts))


def _batch(most: int, counts: list[int]) -> int:
    """Return how many runs make a batch: at most ``most``, and as a rule none of two setups or of half a point."""
    common = math.gcd(*counts)
    size = math.ceil(common / math.ceil(common / most))
    typical = most if sum(counts) > MANY * size else min(most, sum(counts) // len(counts))
    return size * max(1, typical // size)


def first_buildable(of: Plan) -> describe.Description:
    """Build the first setup that can be built; what is wrong with others is for their runs to say.

    Raises
    ------
    DescriptionError
        None can: what is wrong with the first.
    """
    first: DescriptionError | None = None
    for setup in of.setups:
        try:
            return describe.build(setup)
        except DescriptionError as error:
            first = first or error
    assert first is not None
    raise first
