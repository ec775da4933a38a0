"""Random draws that depend on their names only (docs/model.md 1).

A counter-based stream: a run sees the same draws whoever shares its batch, whatever was skipped, on every
machine. Exponential and normal variates come from integer tables, so no libm decides a result.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numalab.layout import Ints

FORK, PHASE, WAKE, MARK, TOUCH, WRITE, BALANCE, GROUP, LOCK, ISOLATE, PICK, MEET, DOUBLE, DOUBLER, TURN = range(1, 16)

Draws = NDArray[np.uint64]

_SEED, _A, _B = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7))
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)

_LN2 = 693_147
_EXP_TABLE = np.array([round(-math.log(0.5 + (j + 0.5) / 8192) * 1e6) for j in range(4096)], np.int64)
_NORMAL_TABLE = np.array([round(NormalDist().inv_cdf((j + 0.5) / 4096) * 1000) for j in range(4096)], np.int64)


def _mix(x: Draws) -> Draws:
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


def _u64(value: ArrayLike) -> Draws:
    return np.atleast_1d(np.asarray(value, np.int64)).view(np.uint64)


def stream_key(seed: ArrayLike, stream: int) -> Draws:
    """Return the key of a stream for each seed: the first step of :func:`draw`, worth keeping."""
    return _mix(_u64(seed) * _SEED + np.uint64(stream))


def draw_keyed(key: Draws, a: ArrayLike, b: ArrayLike) -> Draws:
    """Return the draws named (a, b) of the streams with these keys; arguments broadcast."""
    return _mix(_mix(key ^ (_u64(a) * _A)) ^ (_u64(b) * _B))


def draw(seed: ArrayLike, stream: int, a: ArrayLike, b: ArrayLike) -> Draws:
    """Return 64 random bits for each (seed, stream, a, b).

    Parameters
    ----------
    seed, a, b : array_like of int, broadcast
    stream : int
        One of the names above; separates purposes.

    Returns
    -------
    ndarray of uint64, at least one-dimensional
    """
    return draw_keyed(stream_key(seed, stream), a, b)


def exponential(u: Draws) -> Ints:
    """Turn draws into unit exponentials, in millionths (error of the table below 1.3e-4)."""
    x = ((u >> np.uint64(11)) + np.uint64(1)).astype(np.float64)  # at most 2**53: exact
    fraction, exponent = np.frexp(x)
    table = _EXP_TABLE[((fraction - 0.5) * 8192).astype(np.int64)]
    return np.maximum(0, (53 - exponent.astype(np.int64)) * _LN2 + table)


def normal(u: Draws) -> Ints:
    """Turn draws into unit normals, in thousandths (tails end at 3.7)."""
    return _NORMAL_TABLE[(u >> np.uint64(52)).astype(np.int64)]


def permille(u: Draws) -> Ints:
    """Turn draws into whole numbers 0..999."""
    return (u % np.uint64(1000)).astype(np.int64)
