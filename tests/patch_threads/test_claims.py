"""All claims together: counting, printing, and what was fitted."""

import math

import pytest

from numalab.patch_threads import NOT_PUBLISHED, THREADS, Claim, Replay, claims


def claim(what="a", *, thread="t", model=1.0, low=None, holds=None, note=""):
    high = None if low is None else 9.0
    return Claim(thread, what, "<id@x>", "about 1", model, low, high, None, holds, note)


SOME = [
    claim("a", holds=True),
    claim("b", holds=False, note="too hot"),
    claim("c", note="fitted: to it"),
    claim("d", thread="u", holds=True, model=1234.5, low=0.5, note="fine"),
    claim("e", holds=False, note="too hot"),
]


def test_rows_without_an_answer_stand_outside_the_count():
    assert claims.counted(SOME) == (2, 4)
    assert claims.counted([SOME[2]]) == (0, 0)


def test_summary_by_thread_and_in_all():
    lines = [line.split() for line in claims.summary(SOME).splitlines()[2:]]
    assert lines == [
        ["t", "4", "3", "1", "33", "%"],
        ["u", "1", "1", "1", "100", "%"],
        ["all", "5", "4", "2", "50", "%"],
    ]


def test_rows_that_no_mail_says_are_counted_apart():
    others = [claim("f", holds=True, note=NOT_PUBLISHED), claim("g", note=NOT_PUBLISHED)]
    traced = Claim("t", "h", "run", f"({NOT_PUBLISHED})", 1.0, None, None, 1.0, False)
    assert [one.in_mail for one in (*SOME, *others, traced)] == [True] * 5 + [False] * 3
    last = claims.summary([*SOME, *others, traced]).splitlines()[-1]
    assert last.split() == ["all", "8", "6", "3", "50", "%", "1", "of", "2"]


def test_a_row_has_a_tolerance_if_it_is_judged():
    for one in claims.stored(claims.ready()):
        assert [bool(row.tolerance) for row in one.claims] == [row.holds is not None for row in one.claims]


def test_why_a_row_does_not_hold_is_told_once_below_the_table():
    text = claims.claims_table(SOME)
    assert [line.split()[-3:] for line in text.splitlines() if line.startswith(("b ", "e "))] == [
        ["NO", "see", "1"]
    ] * 2
    assert text.endswith("What does not hold, and why:\n1. too hot")
    assert "1,234" in text
    assert "0.5 .. 9" in text
    assert claims.claims_table([SOME[0]]).endswith("yes")


@pytest.mark.parametrize(
    ("value", "printed"), [(None, ""), (math.inf, "never"), (2.1561, "2.16"), (0.0, "0"), (94500, "94,500")]
)
def test_numbers(value, printed):
    assert claims.number(value) == printed


def test_fitted_constants():
    replays = [Replay("t", results={"fitted": {"cost_ns": {"value": 1500, "to": "0.954"}}}), Replay("u")]
    (one,) = claims.fitted(replays)
    assert (one.thread, one.name, one.value, one.to) == ("t", "cost_ns", 1500, "0.954")
    assert claims.fitted_table([one]).splitlines()[2].split() == ["t", "cost_ns", "1,500", "0.954"]


def test_every_ready_thread_says_what_was_fitted():
    """Whatever stands in a note as fitted is a constant in the thread's table, and no such row is judged."""
    for one in claims.stored(claims.ready()):
        assert {row.thread for row in one.claims} == {one.thread}
        assert set(one.results["fitted"]) == {row.name for row in claims.fitted([one])}
        noted = [row for row in one.claims if "fitted" in row.note]
        assert all(row.holds is None for row in noted)
        assert bool(one.results["fitted"]) >= bool(noted)


def test_all_five_threads_are_replayed():
    assert claims.ready() == ["shared_cow", "convergence", "scan_overhead", "policy_lock", "marginal_moves"]
    assert claims.ready() == list(THREADS)
