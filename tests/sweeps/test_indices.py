"""Sensitivity against functions whose indices are known."""

import math

import numpy as np
import pytest

from numalab import sweeps
from numalab.sweeps.designs import Sampling
from numalab.sweeps.indices import analyse
from tests.sweeps.small import sweep


def sampling(method, n, names):
    ranges = {name: [-math.pi, math.pi] for name in names}
    return Sampling.read(method, {"n": n, "seed": 1, "ranges": ranges})


def values(made, function):
    units = made.units()
    return units, np.array([function(*point.values()) for point in made.points(units)])[:, None]


def ishigami(x1, x2, x3, *without_influence):
    """T. Ishigami and T. Homma (1990), with a = 7 and b = 0.1."""
    return math.sin(x1) + 7 * math.sin(x2) ** 2 + 0.1 * x3**4 * math.sin(x1)


#: Its variance and indices in closed form.
VARIANCE = 7**2 / 8 + 0.1 * math.pi**4 / 5 + 0.1**2 * math.pi**8 / 18 + 0.5
FIRST = {"x1": 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2 / VARIANCE, "x2": 7**2 / 8 / VARIANCE, "x3": 0.0}
BOTH = 0.1**2 * math.pi**8 * (1 / 18 - 1 / 50) / VARIANCE
TOTAL = {"x1": FIRST["x1"] + BOTH, "x2": FIRST["x2"], "x3": BOTH}


def test_the_closed_form_is_the_published_one():
    assert [round(FIRST[x], 4) for x in FIRST] == [0.3139, 0.4424, 0.0]
    assert [round(TOTAL[x], 4) for x in TOTAL] == [0.5576, 0.4424, 0.2437]


def test_sobol_finds_the_indices_of_ishigami():
    made = sampling("sobol", 2048, ["x1", "x2", "x3"])
    indices, variance, noise, _ = analyse(made, *values(made, ishigami))
    assert [one.factor for one in indices] == ["x1", "x2", "x3"]
    for one in indices:
        assert one.total == pytest.approx(TOTAL[one.factor], abs=0.02)
        assert one.first == pytest.approx(FIRST[one.factor], abs=0.02)
        assert 0 < one.total_conf < 0.1
    assert variance == pytest.approx(VARIANCE, rel=0.02)
    assert math.isnan(noise)


def test_noise_of_seeds_gives_a_factor_without_influence_what_the_floor_says():
    made = sampling("sobol", 1024, ["x1", "x2", "x3", "x4"])
    units, exact = values(made, ishigami)
    rng = np.random.default_rng(5)
    # standard deviation 4, 4 seeds: the mean has variance 4
    noisy = exact + rng.normal(0, 4, (len(exact), 4))
    indices, _, noise, floor = analyse(made, units, noisy)
    assert noise == pytest.approx(4 / (VARIANCE + 4), rel=0.05)
    assert floor == noise
    nothing = next(one for one in indices if one.factor == "x4")
    assert nothing.total == pytest.approx(floor, abs=0.04)
    assert nothing.first == pytest.approx(0, abs=0.05)


def linear(x1, x2, x3):
    return 3 * x1 - x2


def test_morris_finds_the_slopes_of_a_plane():
    made = sampling("morris", 10, ["x1", "x2", "x3"])
    indices, *_ = analyse(made, *values(made, linear))
    # over the whole range of 2 pi
    assert [(one.factor, round(one.total / (2 * math.pi), 6)) for one in indices] == [("x1", 3), ("x2", 1), ("x3", 0)]
    assert [round(one.first, 6) for one in indices] == [0, 0, 0]


def test_morris_gives_noise_what_the_floor_says():
    made = sampling("morris", 400, ["x1", "x2"])
    units, exact = values(made, lambda x1, x2: 0.0 * x1)
    noisy = exact + np.random.default_rng(2).normal(0, 1, (len(exact), 4))
    indices, *_, floor = analyse(made, units, noisy)
    for one in indices:
        assert one.total == pytest.approx(floor, rel=0.1)


MORRIS = {
    "grid": {"kernel": ["3.16", "6.1"]},
    "morris": {"n": 2, "ranges": {"scan_size_mb": [1, 64], "remote_cost": [100, 2000]}},
}


@pytest.fixture(scope="module")
def screened(tmp_path_factory):
    return sweep(tmp_path_factory.mktemp("morris") / "x.zarr", **MORRIS)


def test_a_sweep_is_analysed_within_what_is_not_sampled(screened):
    found = sweeps.sensitivity(screened, "work_pages")
    assert [one.within for one in found] == [{"kernel": "3.16"}, {"kernel": "6.1"}]
    # by hand: runs lie by kernel, point of the design, seed
    work = screened.work_pages.values.reshape(2, 6, 2)
    for kernel, one in enumerate(found):
        assert one.runs == 12
        assert one.variance == pytest.approx(work[kernel].mean(axis=1).var())
        steps = np.diff(work[kernel].mean(axis=1).reshape(2, 3), axis=1)
        assert max(index.total for index in one.indices) <= np.abs(steps).max() / (2 / 3) + 1e-9
        assert sorted(index.factor for index in one.indices) == ["remote_cost", "scan_size_mb"]
    assert "work_pages [pages], morris, kernel = 3.16" in found[0].text
    assert "of the variance over points; noise alone gives a factor a mu* of about" in found[0].text


def test_a_time_that_never_came_counts_as_the_length_of_the_run(screened):
    found = sweeps.sensitivity(screened, "converged_s")
    never = np.isnan(screened.converged_s.values).reshape(2, 12).sum(axis=1)
    assert [one.never for one in found] == never.tolist()


def test_other_designs_and_unfinished_sweeps_are_refused(finished, tmp_path, monkeypatch):
    with pytest.raises(sweeps.SweepError, match=r"needs a sweep with \[sweep\.morris\] or \[sweep\.sobol\]"):
        sweeps.sensitivity(sweeps.open(finished), "work_pages")
    with pytest.raises(sweeps.SweepError, match="no quantity 'local'; did you mean \"local_share\""):
        sweeps.quantity(sweeps.open(finished), "local")
    too_large = {"n": 1, "ranges": {"workload.size_mb": {"values": [8.0, 400.0]}, "remote_cost": [0, 1]}}
    ds = sweep(tmp_path / "x.zarr", morris=too_large, grid=None)
    with pytest.raises(sweeps.SweepError, match=r"\d of 6 runs failed or are to do, and the design needs all"):
        sweeps.sensitivity(ds, "work_pages")
