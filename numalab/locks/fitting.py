"""Positive constants that bring as many misfits to zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["fit_positive"]


def fit_positive(misfit: Callable[[NDArray[np.float64]], ArrayLike], start: Sequence[float]) -> NDArray[np.float64]:
    """Find positive numbers for which a function of them is zero: Newton's method on their logarithms.

    Parameters
    ----------
    misfit : callable
        (n,) numbers -> (n,) misfits, best logarithms of quotients model / measured.
    start : sequence of float
        (n,) first guess; a step changes none by more than a factor of two.

    Raises
    ------
    ArithmeticError
        It does not get there in 60 steps.
    """
    at = np.log(np.asarray(start, dtype=np.float64))
    step = 1e-5
    for _ in range(60):
        here = np.asarray(misfit(np.exp(at)))
        if np.abs(here).max() < 1e-9:
            return np.exp(at)
        moved = [np.asarray(misfit(np.exp(at + step * one))) - here for one in np.eye(len(at))]
        at = at - np.clip(np.linalg.solve(np.array(moved).T / step, here), -0.7, 0.7)
    raise ArithmeticError(f"no constants fit; the last were {np.exp(at)}")
