"""Significance and numbers of runs, against published values."""

import math
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab import welch
from numalab.welch import Sample

# Student, "The probable error of a mean", Biometrika 6 (1908): hours of sleep gained with two drugs. R's t.test
# on it (?t.test, ?sleep) prints t = -1.8608, df = 17.776, p-value = 0.07939, interval -3.3654832 0.2054832.
SLEEP = (
    (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0),
    (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4),
)


def sample(values):
    return Sample(mean(values), stdev(values), len(values))


def test_student_s_sleep():
    found = welch.compare(*map(sample, SLEEP))
    assert found.difference == pytest.approx(1.58)
    assert (round(found.t, 4), round(found.df, 3), round(found.p, 5)) == (1.8608, 17.776, 0.07939)
    assert (found.low, found.high) == pytest.approx((-0.2054832, 3.3654832), abs=5e-8)


# Percentage points of the t distribution as in every table of it (Abramowitz and Stegun, table 26.10).
@pytest.mark.parametrize(
    ("q", "df", "t"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 5, 2.571),
        (0.975, 10, 2.228),
        (0.95, 30, 1.697),
        (0.995, 4, 4.604),
        (0.995, 120, 2.617),
        (0.975, 1e9, 1.960),
        (0.9995, 3, 12.924),
    ],
)
def test_percentage_points(q, df, t):
    assert welch.t_quantile(q, df) == pytest.approx(t, abs=5e-4)
    assert welch.t_quantile(1 - q, df) == -welch.t_quantile(q, df)


@pytest.mark.parametrize(
    ("df", "tail"),
    [
        (1, lambda t: 1 - 2 * math.atan(t) / math.pi),
        (2, lambda t: 1 - t / math.sqrt(2 + t * t)),
        (4, lambda t: 1 - (s := t / math.sqrt(4 + t * t)) * (1.5 - 0.5 * s * s)),
    ],
)
def test_closed_forms(df, tail):
    for t in (1e-3, 0.3, 1.0, 2.5, 7.0):
        assert welch.t_two_sided(t, df) == pytest.approx(tail(t), rel=1e-12)
        assert welch.t_two_sided(-t, df) == welch.t_two_sided(t, df)


def test_far_out_it_does_not_round_to_nothing():
    # scipy 1.17: 2 * stats.t.sf(100, 4)
    assert welch.t_two_sided(100.0, 4) == pytest.approx(5.99600209899246e-08, rel=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.6, 500))
@settings(max_examples=60, deadline=None)
def test_quantile_and_tail_are_inverse(q, df):
    t = welch.t_quantile(q, df)
    assert welch.t_two_sided(t, df) == pytest.approx(2 * min(q, 1 - q), abs=1e-9)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 10), st.integers(2, 30), st.floats(1e-3, 10), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_degrees_of_freedom_and_symmetry(mean_, sa, n, sb, m):
    a, b = Sample(0.0, sa, n), Sample(mean_, sb, m)
    one, two = welch.compare(a, b), welch.compare(b, a)
    assert min(n, m) - 1 <= one.df * (1 + 1e-12)
    assert one.df <= (n + m - 2) * (1 + 1e-12)
    assert (one.p, one.low, one.high) == pytest.approx((two.p, -two.high, -two.low))
    # at the edge of the interval stands 0 exactly when p is 5 %
    assert (one.low <= 0 <= one.high) == (one.p >= 0.05) or one.p == pytest.approx(0.05, abs=1e-6)


def test_sides_that_do_not_vary():
    same, other = Sample(3.0, 0.0, 4), Sample(5.0, 0.0, 4)
    assert welch.compare(same, same).p == 1.0
    assert (welch.compare(same, other).p, welch.compare(same, other).t) == (0.0, math.inf)
    found = welch.compare(same, Sample(5.0, 1.0, 4))  # one varies: a test of one sample, df of that side
    assert (found.df, found.t) == (3.0, 4.0)
    assert welch.compare(Sample(1.0, 0.0, 1), other) is None


# Fisher, The Design of Experiments (1935), the lady tasting tea: all 8 cups right has 1 chance in 70 a side.
# Agresti, Categorical Data Analysis, 3 of 4 against 1 of 4: 0.486.
@pytest.mark.parametrize(
    ("counts", "p"), [((4, 4, 0, 4), 2 / 70), ((3, 4, 1, 4), 34 / 70), ((0, 5, 5, 5), 2 / 252), ((2, 3, 2, 3), 1.0)]
)
def test_fisher(counts, p):
    assert welch.fisher(*counts) == pytest.approx(p)


# Runs a side at 5 %, two-sided, power 80 %, by difference in standard deviations: Cohen, Statistical Power
# Analysis (1988), table 2.4.1, gives 393, 64, 26 and 17; the noncentral t distribution 394, 64, 26, 17, 6.
@pytest.mark.parametrize(("d", "runs"), [(0.2, 394), (0.5, 64), (0.8, 26), (1.0, 17), (2.0, 6)])
def test_runs_needed(d, runs):
    assert welch.runs_needed(1.0, 1.0, d) == runs
    assert welch.runs_needed(10.0, 10.0, -10 * d) == runs


def test_runs_needed_at_the_ends():
    assert welch.runs_needed(0.0, 0.0, 1.0) == 2
    assert welch.runs_needed(1.0, 1.0, 0.0) is None
    assert welch.runs_needed(1.0, 1.0, 1e-6) is None
    # a side that does not vary at all halves the variance: (1.96 + 0.84)² = 7.85, and the t of few runs
    assert welch.runs_needed(1.0, 0.0, 1.0) == 10
