"""Is a difference more than noise? Welch's t-test, Fisher's exact test, and how many runs one needs.

Standard library only: of a statistics package this is all that a comparison of runs takes, and it is short.
The tail of Student's distribution comes from the regularised incomplete beta function, evaluated as a continued
fraction (Abramowitz and Stegun, 26.5.8 and 26.7.1) by Lentz's method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

#: Chance of calling noise a difference, and of finding a difference that is there.
ALPHA, POWER = 0.05, 0.8

#: `runs_needed` gives up here: more runs than anyone makes.
MOST_RUNS = 1_000_000

_TINY = 1e-300


@dataclass(frozen=True)
class Sample:
    """What a test needs to know of one side: mean, standard deviation (n - 1), number of runs."""

    mean: float
    stddev: float
    n: int


@dataclass(frozen=True)
class Welch:
    """Two means compared.

    Attributes
    ----------
    difference : float
        Second mean minus first.
    low, high : float
        Confidence interval of the difference at 1 - alpha.
    t, df, p : float
        Statistic, Welch-Satterthwaite degrees of freedom, two-sided p value.
    """

    difference: float
    low: float
    high: float
    t: float
    df: float
    p: float


def compare(a: Sample, b: Sample, alpha: float = ALPHA) -> Welch | None:
    """Compare two means whose spreads may differ (Welch 1947).

    Parameters
    ----------
    a, b : Sample
    alpha : float
        For the confidence interval.

    Returns
    -------
    Welch or None
        None with fewer than two runs on a side. Two sides without any spread differ for certain (p = 0) or not
        at all (p = 1).
    """
    if a.n < 2 or b.n < 2:
        return None
    difference = b.mean - a.mean
    va, vb = a.stddev**2 / a.n, b.stddev**2 / b.n
    error = math.sqrt(va + vb)
    if not error:
        t = 0.0 if difference == 0 else math.copysign(math.inf, difference)
        return Welch(difference, difference, difference, t, a.n + b.n - 2, float(difference == 0))
    # in shares of the sum, so that small numbers do not underflow
    df = 1 / ((va / (va + vb)) ** 2 / (a.n - 1) + (vb / (va + vb)) ** 2 / (b.n - 1))
    t = difference / error
    reach = t_quantile(1 - alpha / 2, df) * error
    return Welch(difference, difference - reach, difference + reach, t, df, t_two_sided(t, df))


def t_two_sided(t: float, df: float) -> float:
    """Return the chance of a value of Student's t at least as far from 0.

    Parameters
    ----------
    t : float
    df : float
        Degrees of freedom, above 0, whole or not.
    """
    return 1.0 if t == 0 else _beta(df / (df + t * t), df / 2, 0.5)


def t_quantile(q: float, df: float) -> float:
    """Return the value below which Student's t lies with chance ``q`` (0 < q < 1)."""
    if q < 0.5:
        return -t_quantile(1 - q, df)
    low, high = 0.0, 1.0
    while t_two_sided(high, df) > 2 * (1 - q):
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, df) > 2 * (1 - q) else (low, middle)
    return (low + high) / 2


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b))
    # the fraction converges fast only on this side of the mean
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    """Keep a denominator off zero."""
    return value if abs(value) > _TINY else _TINY


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Compare two shares, ``a`` of ``n`` and ``b`` of ``m``: Fisher's exact test.

    Returns
    -------
    float
        Two-sided p value: the chance, both shares being equal, of any outcome no likelier than this one.
    """
    yes, every = a + b, math.comb(n + m, a + b)
    ways = {k: math.comb(n, k) * math.comb(m, yes - k) for k in range(max(0, yes - m), min(n, yes) + 1)}
    return sum(count for count in ways.values() if count <= ways[a]) / every


def runs_needed(
    stddev_a: float, stddev_b: float, difference: float, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """Return how many runs each side needs to show a difference.

    Parameters
    ----------
    stddev_a, stddev_b : float
        Spread of each side, in the unit of ``difference``.
    difference : float
        The difference of the means to be seen.
    alpha, power : float
        Chance of a false alarm, two-sided; chance of seeing the difference.

    Returns
    -------
    int or None
        Least n >= 2 with n >= (t(1 - alpha/2) + t(power))² (sa² + sb²) / difference², the quantiles taken at
        Welch's degrees of freedom for that n. Against the noncentral t distribution this is exact, save for
        differences beyond three standard deviations of very unlike sides, where it may be one run short.
        None for no difference, or beyond `MOST_RUNS`.
    """
    if not difference:
        return None
    variance = (stddev_a**2 + stddev_b**2) / difference**2
    if not variance:
        return 2
    skew = (stddev_a**2 + stddev_b**2) ** 2 / (stddev_a**4 + stddev_b**4)

    def wanted(n: int) -> float:
        df = skew * (n - 1)
        return (t_quantile(1 - alpha / 2, df) + t_quantile(power, df)) ** 2 * variance

    # the normal distribution gives a bound from below, at most a few runs short
    normal = NormalDist()
    n = max(2, math.ceil((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) ** 2 * variance))
    if n > MOST_RUNS:
        return None
    while n < wanted(n):
        n += 1
    return n
