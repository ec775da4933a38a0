"""The lesson of the policy lock thread: problems, the explorer, and what its notebook says in words."""

import re

import numpy as np
import pytest

from numalab.lessons import policy_lock as lesson
from numalab.locks import solve
from numalab.patch_threads.policy_lock_fit import fit, published


@pytest.mark.parametrize("seed", range(30))
def test_problems_on_the_ceiling(seed):
    """The answer by hand, from the printed text alone: look-ups left over, spread over more ranks."""
    exercise = lesson.exercise_ceiling()
    problem = exercise.choose(seed)
    few, percent, many = map(int, re.match(r"(\d+) ranks spend (\d+) % .* Suppose (\d+) ranks", problem.text).groups())
    done = few - few * percent / 100
    assert problem.answer == pytest.approx(100 - 100 * done / many)
    assert exercise.check(round(problem.answer)) == "✓ Right."
    assert exercise.check(problem.answer - 5).startswith("✗ Not yet. In the time between two")


@pytest.mark.parametrize("seed", range(30))
def test_problems_on_the_knee(seed):
    problem = lesson.exercise_knee().choose(seed)
    think_ms, held_us = map(int, re.search(r"every (\d+) ms .* for (\d+) µs", problem.text).groups())
    # so many ranks keep a lock busy for exactly one turn
    assert problem.answer * held_us == pytest.approx(1000 * think_ms + held_us)
    assert problem.is_right(1.02 * problem.answer)
    assert not problem.is_right(1.04 * problem.answer)


def test_problems_on_which_lock_can_be_told_from_the_numbers():
    """By what the last two rows do alone: grow, stay within a percent, or fall; and every answer comes up."""
    seen = set()
    for seed in range(40):
        problem = lesson.exercise_which().choose(seed)
        before, last = (float(line.split()[1]) for line in problem.text.splitlines()[6:8])
        told = "rwlock" if last > 1.5 * before else "ticket lock" if last < 0.98 * before else "MCS queue"
        assert told == problem.answer
        seen.add(told)
    assert seen == set(problem.choices)


def test_the_explorer_begins_with_the_mails_lock():
    """Times in whole units give the shares the mail's words mean."""
    explorer = lesson.explorer()
    lock = lesson.lock_of("ticket", explorer.values)
    shares = solve(lock, [one["ranks"] for one in published()["shares"]]).area_share
    for one, share in zip(published()["shares"], shares, strict=True):
        assert one["reading"][0] <= share <= one["reading"][1]
    fitted = fit()
    assert lock.section_s / lock.think_s == pytest.approx(fitted.section, rel=0.01)
    assert lock.handoff_s / lock.think_s == pytest.approx(fitted.request, rel=0.01)
    assert lock.parallel_s / lock.think_s == pytest.approx(fitted.outside, rel=0.01)


def test_the_explorers_call_gives_what_it_shows():
    explorer = lesson.explorer()
    explorer.set(request=0, beside="mcs")
    names = {}
    exec(explorer.call.split("\n\nfrom")[0], names)
    shown = explorer.results[lesson.NAMES["ticket"]]
    assert names["ds"].tasks.tolist() == list(lesson.RANKS)
    assert names["ds"].throughput.tolist() == shown.throughput.tolist()
    # requests that cost nothing: both locks are one, and nothing falls
    assert shown.throughput == pytest.approx(explorer.results[lesson.NAMES["mcs"]].throughput)
    assert np.all(np.diff(shown.throughput) > -1e-9 * shown.throughput[-1])
    assert explorer.sentence.count("look-ups never fall") == 2


# ---------------------------------------------------------------- what the notebook says
def test_the_knee():
    """Nothing happens from 256 ranks to 400; then within a few ranks the lock is always held."""
    assert lesson.share(ranks=400) - lesson.share(ranks=256) < 1
    assert lesson.share(ranks=600) > 10 * lesson.share(ranks=400)
    assert 25 < lesson.look_ups_left() < 50


def test_look_ups_fell_by_half_by_the_mails_numbers_alone():
    done = [line.split("to") for line in str(lesson.arithmetic()).splitlines()[2:]]
    least_512 = int(done[1][0].split()[-1])
    most_2048 = int(done[2][1])
    # by hand: 512 x 0.87 = 445.4 and 2048 x 0.1 = 204.8
    assert (least_512, most_2048) == (445, 205)
    assert most_2048 < 0.5 * least_512


def test_two_constant_locks_meet_one_point_each():
    _, middle, most = published()["shares"]
    picture = lesson.constant()
    by_name = {
        name: dict(zip(one.tasks.tolist(), 100 * one.area_share, strict=True)) for name, one in picture.solved.items()
    }
    assert by_name["constant, meets 512 ranks"][512] == pytest.approx(100 * middle["middle"], abs=1e-6)
    assert by_name["constant, meets 2,048 ranks"][2048] == pytest.approx(100 * most["middle"], abs=1e-6)
    assert by_name["constant, meets 512 ranks"][2048] < 80
    assert by_name["constant, meets 2,048 ranks"][512] > 60
    assert "60 % already at 512" in lesson.constant_words()


def test_the_other_locks():
    """MCS stops the fall, not the wait; the rwlock has no knee here, and RCU is no better."""
    solved = lesson.curve("ticket", "mcs", "rwlock", look_ups=True).solved
    mcs, rwlock = (solved[lesson.NAMES[kind]].throughput for kind in ("mcs", "rwlock"))
    assert mcs[-1] == pytest.approx(mcs.max(), rel=1e-3)
    assert lesson.share("mcs") > 50
    assert rwlock[-1] == pytest.approx(4096 / 32 * rwlock[0], rel=1e-3)
    assert lesson.share("rwlock", 4096) == pytest.approx(lesson.share("rcu", 4096), abs=0.1)


def test_dear_requests_give_the_rwlock_a_knee():
    """A turn of 2 ms + 44 + 152 µs over two requests of 600 ns a look-up: full at 1,830 ranks."""
    explorer = lesson.explorer()
    explorer.set(think=2, request=600, beside="rwlock")
    done = explorer.results[lesson.NAMES["rwlock"]]
    at = dict(zip(done.tasks.tolist(), done.throughput, strict=True))
    assert at[1024] == pytest.approx(2 * at[512], rel=0.05)
    assert at[4096] == pytest.approx(at[2896], rel=0.01)
    assert at[4096] == pytest.approx(1 / 1.2e-6, rel=0.01)


def test_event_by_event_lies_on_the_formula():
    """Away from the knee within a tenth; at it in order, where blocks are too alike for their errors."""
    means = {one.tasks: 100 * one.mean("area_share")[0] for one in lesson.events(0)}
    for ranks in (128, 640, 1024):
        assert means[ranks] == pytest.approx(lesson.share(ranks=ranks), rel=0.1)
    assert means[448] < means[512] < means[640]


def test_the_real_kernel_loses_more_the_more_processes_there_are():
    series = lesson.real().series
    ratios = [one.middle for one in series["real kernel"].values()]
    assert list(series["model"]) == ["2 processes", "4 processes", "8 processes"]
    assert ratios == sorted(ratios, reverse=True)
    assert series["real kernel"]["2 processes"].middle < series["model"]["2 processes"].low
