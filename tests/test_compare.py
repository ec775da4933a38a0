"""Comparisons: which rows, which test, and what is said where none can be made."""

import json

import pytest

from numalab.compare import compare
from numalab.readers import mmtests
from numalab.sides import CONVERGED, LOCAL_SHARE, Quantity, Side, SidesError, Values, from_mmtests, from_runs, sample
from tests.comparing import make_run
from tests.readers.helpers import golden


def side(name, faults, local=None, **kwargs):
    return from_runs(name, [make_run(faults, local or faults, **kwargs)], [f"{name}.nc"])


def row(found, name):
    return next(one for one in found.rows if one.quantity.name == name)


def of(name, values, quantity="seconds", **kwargs):
    """A side with one quantity."""
    return Side(name, {("", quantity): (Quantity(quantity, **kwargs), values)})


def test_welch_by_hand():
    a, b = sample([9, 10, 10, 11]), sample([11, 12, 14, 15])
    assert (a.stddev**2, b.stddev**2) == (pytest.approx(2 / 3), pytest.approx(10 / 3))
    found = compare([of("a", a), of("b", b)]).rows[0].against[0]
    assert (found.difference, found.change_percent) == (3.0, pytest.approx(30.0))
    # t = 3 / √(2/3/4 + 10/3/4) = 3 / 1, df = 1 / ((1/6)²/3 + (5/6)²/3) = 108/26
    assert (found.t, found.df) == (pytest.approx(3.0), pytest.approx(108 / 26))
    assert found.p == pytest.approx(0.0378, abs=5e-4)
    assert found.significant is True
    assert found.low == pytest.approx(3 - 2.736, abs=2e-3)


def test_noise_is_not_significant():
    found = compare([of("a", sample([9, 10, 11])), of("b", sample([9.2, 10.1, 11.3]))]).rows[0].against[0]
    assert (found.significant, found.p > 0.5) == (False, True)


def test_runs_needed_are_for_the_effect_asked_for():
    a, b = sample([90.0, 100.0, 110.0]), sample([90.0, 100.0, 110.0])
    sides = [of("a", a), of("b", b)]
    # spread 10 % of the mean: an effect of 10 % is one standard deviation (17 runs), of 5 % half of one (64)
    assert compare(sides, effect=10.0).rows[0].against[0].runs_needed == 17
    assert compare(sides).rows[0].against[0].runs_needed == 64


def test_an_effect_on_a_share_is_in_points():
    share = {"quantity": LOCAL_SHARE, "units": "percent"}
    sides = [of("a", sample([40.0, 50.0, 60.0]), **share), of("b", sample([40.0, 50.0, 60.0]), **share)]
    assert compare(sides, effect=10.0).rows[0].against[0].runs_needed == 17


def test_shares_of_runs_are_tested_exactly():
    share = {"quantity": CONVERGED, "units": "percent"}
    sides = [of("a", sample([0.0] * 4), **share), of("b", sample([100.0] * 4), **share)]
    found = compare(sides).rows[0].against[0]
    assert (found.p, found.t, found.significant) == (pytest.approx(2 / 70), None, True)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (sample([1.0]), sample([1.0, 2.0]), "a single run"),
        (Values(1.0, 0.1, 0.1), sample([1.0, 2.0]), "number of runs unknown"),
        (Values(1.0, n=3), sample([1.0, 2.0]), "spread unknown"),
        (sample([1.0, 2.0, float("nan")]), sample([1.0, 2.0]), "some runs have no value"),
    ],
)
def test_why_there_is_no_test(a, b, why):
    found = compare([of("a", a), of("b", b)]).rows[0].against[0]
    assert (found.why, found.p, found.significant) == (why, None, None)


def test_a_table_s_own_verdict():
    tables = mmtests.parse(golden("mmtests", "five.txt"), "x.txt")
    found = row(compare(from_mmtests(tables)), "tput-1").against
    assert [one and one.significant for one in found] == [False, False, True, False, None, None]
    assert [one and one.why for one in found][:4] == ["as the table marks it"] * 4
    # not so against another column than its first, nor where a number of runs is given
    sides = from_mmtests(tables)
    assert row(compare([sides[1], sides[3]]), "tput-1").against[0].why == "number of runs unknown"
    assert row(compare(from_mmtests(mmtests.parse(golden("mmtests", "047.txt")), [3])), _NUMA01).against[0].p < 0.001


_NUMA01 = "elsp-NUMA01_THREADLOCAL"


def test_rounding_is_no_difference():
    a = Values(96000.0, 1e-6, 1e-6, 5)
    found = compare([of("a", a), of("b", Values(96000.00001, 1e-6, 1e-6, 5))]).rows[0].against[0]
    assert (found.significant, found.p < 0.01) == (False, True)


# ---------------------------------------------------------------- rows


def test_rows_are_chosen_by_either_name():
    sides = [side("a", [10, 12]), side("b", [20, 22])]
    names = [one.quantity.name for one in compare(sides).rows]
    assert names == ["numa_hint_faults", "numa_hint_faults_local", "numa_pte_updates", LOCAL_SHARE]
    assert [one.quantity.name for one in compare(sides, ["numa_hint*"]).rows] == names[:2]
    assert [one.quantity.name for one in compare(sides, ["proc-vmstat.numa_pte*", "local*"]).rows] == names[2:]
    with pytest.raises(SidesError, match=r"--rows x\*: fits no quantity; there are numa_hint_faults, "):
        compare(sides, ["numa*", "x*"])


def test_what_never_happened_must_be_asked_for_by_name():
    sides = [side("a", [10], [0]), side("b", [20], [0])]
    names = [one.quantity.name for one in compare(sides).rows]
    assert "numa_hint_faults_local" not in names
    assert [one.quantity.name for one in compare(sides, ["numa_hint_faults_local"]).rows] == ["numa_hint_faults_local"]


def test_a_side_that_lacks_a_quantity():
    lean = from_runs("c", [make_run([5], [5]).drop_vars("numa_pte_updates")], ["c.nc"])
    found = compare([side("a", [10]), side("b", [20]), lean])
    assert row(found, "numa_pte_updates").values[2] is None
    assert row(found, "numa_pte_updates").against[1] is None
    assert "c has no numa_pte_updates" in found.notes


def test_tests_are_matched_by_name():
    both = from_runs("a", [make_run([10], [1]), make_run([30], [1], workload="other")], ["x", "y"])
    found = compare([both, side("b", [60], workload="other")])
    assert found.tests == ["two/other"]
    assert row(found, "numa_hint_faults").values[0].mean == 30
    with pytest.raises(SidesError, match=r"no test in common \(a: two/load, two/other; c: two/third\)"):
        compare([both, side("c", [1], workload="third")])


def test_one_test_each_is_taken_for_the_same_and_said():
    found = compare([side("a", [10]), side("b", [60], workload="other")])
    assert found.tests == ["two/load"]
    assert "not the same was run: a: two/load; b: two/other" in found.notes


def test_records_of_other_length_are_said():
    found = compare([side("a", [10]), side("b", [60], seconds=20.0)])
    assert "the records differ in length (s: a 10-10, b 20-20); counters are totals, not rates" in found.notes


def test_two_sides_are_needed():
    with pytest.raises(SidesError, match="only one, a, is given"):
        compare([side("a", [1])])
    with pytest.raises(SidesError, match="no quantity in common: a holds seconds"):
        compare([of("a", sample([1.0])), of("b", sample([1.0]), "others")])


def test_plain_data():
    found = compare([side("a", [10, 10]), side("b", [20, 20])], ["numa_hint_faults"]).to_dict()
    json.dumps(found, allow_nan=False)
    assert found["sides"] == ["a", "b"]
    (one,) = found["rows"]
    assert one["values"][0] == {
        "side": "a",
        "mean": 10.0,
        "stddev": 0.0,
        "stddev_percent": 0.0,
        "runs": 2,
        "without": 0,
        "low": 10.0,
        "high": 10.0,
    }
    against = one["against_base"][0]
    assert (against["ratio"], against["p"], against["t"], against["significant"]) == (2.0, 0.0, None, True)
