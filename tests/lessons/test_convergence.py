"""The lesson of the convergence thread."""

import re

import pytest

from numalab.kernel import Kernel
from numalab.lessons import convergence as lesson
from numalab.patch_threads.convergence import AFTER, BEFORE, PATCHES


def test_the_whole_series_is_3_17():
    assert Kernel(BEFORE).patched(*PATCHES).switches == Kernel(AFTER).switches


@pytest.mark.parametrize("seed", range(40))
def test_problems_on_perfs_line(seed):
    """The answer by hand: from the printed line alone."""
    exercise = lesson.exercise_trace()
    problem = exercise.choose(seed)
    line = re.search(r"^ +((?:\d+/\d+ ?){4}) +\[(\d+)/(\d+)\]$", problem.text, re.MULTILINE)
    threads, processes = zip(*((int(n) for n in pair.split("/")) for pair in line[1].split()), strict=True)
    assert sum(threads) == 160
    assert (max(threads) - min(threads), sum(processes)) == (int(line[2]), int(line[3]))
    assert problem.answer == sum(n - 40 for n in threads if n > 40)
    assert exercise.check(problem.answer) == "✓ Right."
    assert exercise.check(problem.answer + 1).startswith("✗ Not yet. Before each slash")


@pytest.mark.parametrize("seed", range(40))
def test_problems_on_room(seed):
    problem = lesson.exercise_room().choose(seed)
    p, t = map(int, re.match(r"(\d+) processes of (\d+) threads", problem.text).groups())
    # by trying: fill whole processes into four nodes of 40
    rooms, placed = [40] * 4, 0
    for node in range(4):
        while rooms[node] >= t and placed < p:
            rooms[node] -= t
            placed += 1
    assert problem.answer == ("yes" if placed == p else "no")


def test_problems_differ_and_both_answers_come_up():
    room = [lesson.exercise_room().choose(seed) for seed in range(20)]
    assert {one.answer for one in room} == {"yes", "no"}
    assert len({one.text for one in room}) > 10


def test_the_explorer_begins_with_the_mails_run():
    explorer = lesson.explorer()
    sides = explorer._sides(explorer.values)
    assert {name: one.call([0]) for name, one in sides.items()} == {
        name: one.call([0]) for name, one in lesson.before_and_after().items()
    }
    assert sides["with the series"].arguments == {"p": 8, "t": 20, "P": 1000, "rate_mbps": 240.0}
    explorer.controls["patch_5"].value = False
    explorer.controls["sigma"].value = 0
    name, one = list(explorer._sides(explorer.values).items())[1]
    assert name == "patches 1, 2, 4, 6, 7"
    assert one.options["balancer_sigma"] == 0
    assert "S1#5" not in one.patches


def test_the_stuck_state_is_told_for_each_variant():
    assert "the loads forbid the move" in str(lesson.stuck("with patch 5 alone"))
    assert "all threads home in 2 of 2 runs" in str(lesson.stuck("with patches 2 and 5"))


def test_the_mails_run_and_the_stored_results():
    assert "41/3" in str(lesson.trace())
    assert lesson.claims()
    assert str(lesson.times()).count("\n") < str(lesson.times(full=True)).count("\n")


def test_the_mails_run_is_magnified():
    """The last look but one, 41/3 39/2 40/2 40/2, is seen as four lines only near 40."""
    picture = lesson.trace_picture()
    whole, near = picture.figure.axes
    assert near.get_ylim() == (35, 45)
    assert whole.get_ylim()[0] == 0
    for ax in (whole, near):
        assert [line.get_ydata()[-2] for line in ax.get_lines()] == [41, 39, 40, 40]
