"""The thread of the shared policy's lock: what is fitted, what is predicted, what is proved."""

import json

import numpy as np
import pytest

from numalab import patch_threads, runs
from numalab.locks import KINDS, Lock, solve
from numalab.patch_threads import policy_lock, policy_lock_fit
from numalab.patch_threads.policy_lock_fit import Constants, Range


@pytest.fixture(scope="module")
def outcome():
    return patch_threads.replay("policy_lock")


def claim(outcome, words):
    (found,) = [one for one in outcome.claims if words in one.claim]
    return found


def test_the_mails_figures():
    mail = policy_lock_fit.published()
    assert [one["ranks"] for one in mail["shares"]] == [128, 512, 2048]
    for one in mail["shares"]:
        low, high = one["reading"]
        assert low <= one["middle"] <= high
    assert mail["after"]["share"] == 0.02


def test_the_fit_gives_the_three_shares():
    """And close to the times a second program of the same formula found for 1, 13 and 93 %."""
    constants = policy_lock_fit.fit()
    shares = solve(constants.lock("ticket"), [128, 512, 2048]).area_share
    assert shares == pytest.approx([0.01, 0.1275, 0.925], rel=1e-8)
    assert constants.section == pytest.approx(2.067e-3, rel=0.03)
    assert constants.request == pytest.approx(5.11e-6, rel=0.15)
    assert constants.outside == pytest.approx(7.2e-3, rel=0.03)


def test_interpolation_between_solved_sections_is_close_enough():
    """Shares on the grid against solutions at the same places, to 0.2 points; the readings are 0.5 wide or more."""
    every = policy_lock_fit.plausible()
    outside = np.linspace(*policy_lock_fit.OUTSIDE, every.share.shape[0])
    rng = np.random.default_rng(2)
    for _ in range(40):
        o, r, s = (int(rng.integers(n)) for n in every.share.shape[:3])
        section = every.section[s]
        parallel = outside[o] * section
        lock = Lock("ticket", 1 - parallel, section, parallel, handoff_s=every.request[r] * section)
        assert every.share[o, r, s] == pytest.approx(solve(lock, [128, 512, 2048]).area_share, abs=2e-3)


def test_no_lock_whose_throughput_never_falls_fits():
    """By hand: 512 x (1 - 0.125) = 448 look-ups per time between two; 1 - 448 / 2048 = 78.125 %, below 90 %."""
    assert policy_lock_fit.ceiling() == pytest.approx(0.78125)
    # A constant section that takes 90 % at 2048 ranks: 2048 s = 10, so 1 - 204.8 / 512 = 60 % at 512.
    small, large = policy_lock_fit.constant_service()
    assert small == pytest.approx(0.6, abs=1e-3)
    assert 0.78 < large < policy_lock_fit.ceiling() + 0.005
    for section in np.geomspace(1e-4, 1e-1, 40):
        shares = solve(Lock("mcs", 1.0, section), [512, 2048]).area_share
        assert not (shares[0] <= 0.13 and shares[1] >= 0.9)


def test_the_knee_is_where_the_lock_is_always_held():
    """With a constant section throughput is nearly flat beyond cycle / section; waiters make it fall from there."""
    at, fall = policy_lock_fit.knee(policy_lock_fit.fit())
    assert at == pytest.approx(1.0093 / 2.0937e-3, rel=0.05)
    assert fall > 3
    flat_at, flat_fall = policy_lock_fit.knee(Constants(2e-3, 1e-12, 0.0))
    assert flat_at > 550
    assert flat_fall == pytest.approx(1, abs=1e-3)


def test_ranges_wider_than_a_factor_of_three_say_nothing():
    assert Range(2, 1, 3).says_something
    assert not Range(2, 1, 3.1).says_something


def test_look_up_rates():
    """Two faults a second; three mappings in a window every two seconds."""
    assert policy_lock_fit.lookup_rate(2.0, 3, 0.5) == 3.5


def test_predictions_of_the_third_from_two(outcome):
    """128 and 2,048 come out of the two others, 512 does not: it stands on the knee."""
    small, middle, large = (claim(outcome, f"{n} ranks predicted") for n in (128, 512, 2048))
    assert small.holds is True
    assert small.high <= 1.5
    assert large.holds is True
    assert large.low < 90 < large.high
    assert middle.holds is False
    assert middle.high > 10 * middle.low
    assert "on the knee" in middle.note


def test_fitted_rows_stand_outside_the_count(outcome):
    fitted = [one for one in outcome.claims if "fitted" in one.note]
    assert len(fitted) == 3
    assert all(one.holds is None for one in fitted)


def test_the_patch_is_shown_not_judged(outcome):
    after = claim(outcome, "with the rwlock")
    assert after.holds is None
    assert after.model < 1
    assert "564CDA0F.40801@sgi.com" in after.source


def test_the_real_kernel(outcome):
    """Look-ups in four seconds of the three repetitions, alone and shared; the claims are the rows of a validation."""
    four, eight = claim(outcome, "4 processes"), claim(outcome, "8 processes")
    assert four.real == pytest.approx((1484096 / 2892160 + 1323328 / 2728320 + 1325120 / 2348736) / 3)
    assert eight.real == pytest.approx((1041984 / 2731648 + 1042496 / 2846592 + 882688 / 2552576) / 3)
    two = claim(outcome, "2 processes")
    assert two.real == pytest.approx((2695872 / 2404800 + 2539456 / 3315328 + 2760832 / 3681216) / 3)
    assert (two.holds, four.holds, eight.holds) == (True, True, True)
    assert two.source == "S3_mttcg_lookup_n2_exclusive"
    # a quarter of the real value around it, but far from the band
    assert two.real < two.low < two.model < 1.25 * two.real


def test_text_figure_and_dataset(outcome, tmp_path):
    for words in ("lock held", "No constant service time fits", "look-ups a second and rank", "of its own", "real"):
        assert words in outcome.text
    assert max(len(line) for line in outcome.text.split("\nclaim ")[0].splitlines()) <= 120
    assert not outcome.interrupted
    assert json.loads(json.dumps(outcome.results))["fitted"].keys() >= {"section [time between look-ups]"}
    assert [axes.get_title() for axes in outcome.figures["shares"].axes] == [
        "Share of time",
        "Throughput",
        "Two CPUs, real kernel",
    ]
    ds = runs.open(runs.save(outcome.datasets["curves"], tmp_path / "curves.nc"))
    assert set(ds.lock.values.tolist()) == set(KINDS)
    ticket = ds.lock_area_share.values[(ds.lock.values == "ticket") & (ds.ranks.values == 512)]
    assert ticket == pytest.approx([0.1275])


def test_ctrl_c_leaves_what_is_done(monkeypatch):
    def stop(_names, _seeds):
        raise KeyboardInterrupt

    monkeypatch.setattr("numalab.validate.locked.rows", stop)
    outcome = policy_lock.replay()
    assert outcome.interrupted
    assert outcome.text.startswith("Interrupted")
    assert "No constant service time fits" in outcome.text
    assert not any("real kernel" in one.claim for one in outcome.claims)


def test_stored_is_solved_anew():
    assert [c.claim for c in patch_threads.replay("policy_lock", stored=True).claims]
