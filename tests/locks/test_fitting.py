"""Fitting positive constants."""

import numpy as np
import pytest

from numalab.locks import fit_positive


def test_two_unknowns():
    """x y = 6, x / y = 1.5: x = 3, y = 2."""
    found = fit_positive(lambda v: [np.log(v[0] * v[1] / 6), np.log(v[0] / v[1] / 1.5)], (100.0, 0.01))
    assert found == pytest.approx([3, 2])


def test_no_solution():
    with pytest.raises(ArithmeticError, match="no constants fit"):
        fit_positive(lambda v: [1 + float(np.log(v[0])) ** 2], (2.0,))
