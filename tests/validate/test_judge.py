"""The rules of judging, on numbers worked out by hand."""

import math

import numpy as np
import pytest

from numalab.validate.judge import Row, judge, judge_distance, judge_effect, relative_spread, widest

#: 5 % and 95 % quantiles of these 21 are the 2nd and the 20th: 91 and 109; the median is 100.
MODEL = np.arange(90.0, 111.0)


def verdict(real, model=MODEL, spread=None, floor=0.0):
    return judge(np.array(real, dtype=float), np.array(model, dtype=float), widest_spread=spread, floor=floor)


def test_the_band_and_the_ratio():
    found = verdict([80.0])
    assert (found.model, found.low, found.high) == (100.0, 91.0, 109.0)
    assert found.ratio == 1.25


@pytest.mark.parametrize(
    ("real", "inside"),
    [
        (91.0, True),  # on the edge of the band
        (109.0, True),
        (80.0, True),  # 100 is 25 % more than 80
        (79.0, False),
        (133.0, True),  # 100 is 24.8 % less than 133
        (134.0, False),
    ],
)
def test_inside_the_band_or_within_a_quarter_of_the_real_value(real, inside):
    found = verdict([real])
    assert found.inside == found.strict == inside
    assert found.why == ("" if inside else "too high" if real < 100 else "too low")


def test_few_repetitions_have_the_widest_spread_of_the_thread():
    """60 is far out; a thread whose widest spread is 70 % makes it 18 to 102, which holds the median 100."""
    assert not verdict([60.0], spread=0.6).inside
    found = verdict([60.0], spread=0.7)
    assert (found.real_low, found.real_high) == pytest.approx((18.0, 102.0))
    assert found.inside
    assert not found.strict


def test_three_repetitions_have_their_own_spread():
    found = verdict([50.0, 60.0, 70.0], spread=0.7)
    assert (found.real, found.real_low, found.real_high) == pytest.approx((60.0, 50.0, 70.0))
    assert not found.inside


def test_a_band_wider_than_a_factor_of_three_says_nothing():
    assert not verdict([100.0], [50.0, 100.0, 151.0] * 20).inside
    assert verdict([100.0], [50.0, 100.0, 149.0] * 20).inside
    assert verdict([100.0], [0.0, 100.0, 100.0] * 20).why == "band wider than a factor of 3"


def test_next_to_nothing_on_both_sides():
    found = verdict([54.0], [0.0] * 30, floor=118)
    assert found.inside
    assert found.why == "both as good as 0"
    assert not verdict([119.0], [0.0] * 30, floor=118).inside
    assert not verdict([54.0], [119.0] * 30, floor=118).inside


def test_undefined_in_the_model():
    found = verdict([0.5], [math.nan] * 20 + [0.5] * 10)
    assert not found.inside
    assert found.ratio is None
    assert verdict([0.5], [math.nan] * 10 + [0.5] * 20).inside


def test_spreads():
    assert relative_spread(np.array([9.0, 11.0])) == pytest.approx(math.sqrt(2) / 10)
    assert relative_spread(np.array([9.0])) is None
    assert relative_spread(np.array([0.0, 0.0])) is None
    assert relative_spread(np.array([9.0, math.nan])) is None
    assert widest([np.array([9.0, 11.0]), np.array([1.0, 3.0]), np.array([5.0])]) == pytest.approx(math.sqrt(2) / 2)
    assert widest([np.array([5.0])]) is None


def effect(before, after, model, spread=None):
    sides = (np.array(side, dtype=float) for side in (before, after, model))
    return judge_effect(*sides, widest_spread=spread)


def test_the_sign_of_an_effect_beyond_its_spread():
    """Pairwise differences -40, -50, -60: mean -50, spread 10."""
    found, sign = effect([100, 110, 120], [60, 60, 60], [-49.0, -50.0, -51.0])
    assert (found.real, found.real_low, found.real_high) == (-50.0, -60.0, -40.0)
    assert sign is True
    assert found.inside
    found, sign = effect([100, 110, 120], [60, 60, 60], [49.0, 50.0, 51.0])
    assert sign is False
    assert not found.inside
    assert effect([100, 110, 120], [60, 60, 60], [0.0] * 3)[1] is False


def test_an_effect_within_its_spread_has_no_sign():
    assert effect([100, 110, 120], [110, 100, 125], [50.0] * 3)[1] is None
    # 9 on average with a deviation of 8.7, but one of three points the other way
    assert effect([100, 100, 100], [99, 114, 114], [9.0] * 3)[1] is None
    assert effect([100, 100, 100], [101, 114, 114], [9.0] * 3)[1] is True
    # a single pair of 100 and 60 with 40 % each: hypot(100, 60) * 0.4 = 46.6
    assert effect([100], [60], [-40.0] * 3, spread=0.4)[1] is None
    assert effect([100], [60], [-40.0] * 3, spread=0.3)[1] is True


def test_a_distance_is_judged_by_the_seeds_own():
    own = np.array([[0.0, 0.2, 0.2], [0.2, 0.0, 0.2], [0.2, 0.2, 0.0]])
    near = judge_distance(np.full((1, 3), 0.19), own, signal=0.5)
    assert near.inside
    assert (near.real, near.model) == pytest.approx((0.19, 0.2))
    far = judge_distance(np.full((1, 3), 0.3), own, signal=0.5)
    assert not far.inside
    # a quarter of what happened is good enough
    assert judge_distance(np.full((1, 3), 0.3), own, signal=1.2).inside


def test_rows_survive_json():
    row = Row("c", "c_r1", "page_rate", "pages/s", "quantity", 1.0, 1.0, 1.0, 1, None, None, None, None,
              inside=False, strict=False, sign=None, fitted=False, counted=True, why="x")  # fmt: skip
    assert Row.from_dict(row.to_dict()) == row
    assert Row.from_dict({**row.to_dict(), "real": 1234567.0}).to_dict()["real"] == 1234570.0
