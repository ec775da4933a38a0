"""The lesson to start with."""

import pytest

from numalab.lessons import start as lesson
from numalab.patch_threads.convergence import true_times


def test_everything_is_there():
    assert [good for _, good, _ in lesson._checks()] == [True] * 4
    assert str(lesson.checked()).count("yes") == 4


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(lesson, "_major", lambda name: 7)
    assert "NO: pip install 'ipywidgets>=8.1', then restart JupyterLab" in str(lesson.checked())


def test_a_package_that_is_not_there_has_no_version():
    assert lesson._major("no-such-distribution") == 0
    assert lesson._major("ipywidgets") >= 8


def test_the_old_kernel_does_not_get_there_and_the_newer_one_does():
    results = {name: setup.run() for name, setup in lesson.before_and_after().items()}
    old, new = (lesson.home_time(ds) for ds in results.values())
    assert old != old
    assert new == true_times(results["3.17"])[0] < lesson.SECONDS
    lines = lesson.home_words(results).splitlines()
    assert lines == [
        "3.14: every process on one node not within 12 s",
        f"3.17: every process on one node after {new:.1f} s",
    ]


def test_the_explorer_begins_with_the_figures_runs():
    explorer = lesson.explorer()
    calls = {name: job.call([0]) for name, job in explorer._sides(explorer.values).items()}
    assert calls == {name: job.call([0]) for name, job in lesson.before_and_after().items()}


@pytest.mark.parametrize("seed", [1, 2])
def test_problems_are_answered_by_the_run(seed):
    exercise = lesson.exercise_read()
    problem = exercise.choose(seed)
    seconds = lesson.home_time(lesson.setup("3.17").run([seed]))
    assert abs(problem.answer - seconds) <= 0.5
    assert exercise.check(problem.answer) == "✓ Right."
    assert exercise.check(problem.answer + 2).startswith("✗ Not yet. Each process is a block")
