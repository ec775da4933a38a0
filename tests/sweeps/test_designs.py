"""Samples of ranges."""

import numpy as np
import pytest

from numalab.sweeps.designs import LEVELS, Range, Sampling


@pytest.mark.parametrize(
    ("given", "units", "values"),
    [
        # whole numbers get equal parts of 0 to 1, both ends included
        ([1, 4], [0, 0.24, 0.25, 0.5, 0.75, 0.999, 1], [1, 1, 2, 3, 4, 4, 4]),
        ([0.0, 4.0], [0, 0.25, 1], [0.0, 1.0, 4.0]),
        ([1, 2.5], [0, 1], [1.0, 2.5]),
        # 1 to 8 on a scale of ratios: the middle of 1 to 9 is 3
        ({"low": 1, "high": 8, "log": True}, [0, 0.5001, 1], [1, 3, 8]),
        ({"low": 1.0, "high": 100.0, "log": True}, [0, 0.5, 1], [1.0, 10.0, 100.0]),
        ({"values": ["a", "b", "c"]}, [0, 0.3, 0.34, 0.7, 1], ["a", "a", "b", "c", "c"]),
    ],
)
def test_values_in_a_range(given, units, values):
    one = Range.read("x", given)
    found = [one.at(unit) for unit in units]
    assert found == pytest.approx(values) if isinstance(values[0], float) else found == values
    assert Range.read("x", one.plain()) == one


def sampling(method, n, count=2):
    return Sampling.read(method, {"n": n, "seed": 3, "ranges": {f"x{i}": [0.0, 1.0] for i in range(count)}})


def test_a_latin_hypercube_has_one_point_in_each_row_and_column():
    units = np.array(sampling("latin_hypercube", 10).units())
    for column in units.T:
        assert sorted((10 * column).astype(int)) == list(range(10))


@pytest.mark.parametrize(("method", "n", "points"), [("latin_hypercube", 7, 7), ("morris", 5, 20), ("sobol", 8, 40)])
def test_the_number_of_points_is_known_beforehand(method, n, points):
    made = sampling(method, n, count=3)
    assert made.size() == points == len(made.units())
    assert made.units() == made.units()


def test_a_morris_trajectory_changes_one_factor_at_a_time():
    units = np.array(sampling("morris", 4, count=3).units()).reshape(4, 4, 3)
    steps = np.abs(np.diff(units, axis=1))
    assert (np.count_nonzero(steps, axis=2) == 1).all()
    np.testing.assert_allclose(steps.max(axis=2), LEVELS / (2 * (LEVELS - 1)))
