"""Predictions and problems."""

import pytest

from numalab.widgets import ClaimsTable, Exercise, Predict, Printed, Problem, Table


def problem(seed):
    return Problem(
        f"What is 2 x {seed}?", 2 * seed, lambda given: f"{given:g} is too {'large' if given > 2 * seed else 'small'}.",
        "Add it to itself.", tolerance=0.1, unit="apples",
    )  # fmt: skip


def test_a_guess_is_shown_beside_the_result():
    guess = Predict("How long?", 0, 60, unit="s")
    assert guess.compare(11.5) == "The model: 11.5 s. (No guess was taken.)"
    guess.give(12)
    assert guess.compare(11.5) == "Your guess: 12 s. The model: 11.5 s."
    assert "Your guess: 12 s" in guess.words.value
    guess.field.value = 40
    guess.button.click()
    assert guess.compare(11.5, "never").startswith("Your guess: 40 s. The model: never.")


def test_a_choice_is_right_or_not():
    guess = Predict("Which?", choices=["a", "b"])
    guess.button.click()
    assert "Choose an answer first" in guess.words.value
    guess.give("a")
    assert guess.compare("a") == "Your guess: a. The model: a. ✓ As you said."
    assert guess.compare("b") == "Your guess: a. The model: b. ✗ Not as you said."
    with pytest.raises(ValueError, match="expected one of a, b, got 'c'"):
        guess.give("c")


def test_answers_are_checked_and_hints_fit_the_answer():
    exercise = Exercise("Doubling", problem, seed=4)
    assert exercise.check(8.05) == "✓ Right."
    assert exercise.check(9) == "✗ Not yet. 9 is too large."
    assert exercise.check(None) == "No answer yet."
    # a solution that is run with all cells does not answer for the reader
    assert "Not checked yet." in exercise.words.value
    assert exercise.solution() == "Problem 4: 8 apples. Add it to itself."
    assert exercise.choose(5).answer == 10
    assert "What is 2 x 5?" in exercise.text.value
    assert "Not checked yet" in exercise.words.value


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("8", "✓ Right."),
        ("8,0", "✓ Right."),
        ("7", "7 is too small"),
        ("", "No answer yet"),
        ("x", "Expected a number"),
    ],
)
def test_what_is_typed(typed, words):
    exercise = Exercise("Doubling", problem, seed=4)
    exercise.field.value = typed
    exercise.button.click()
    assert words in exercise.words.value


def test_choices_follow_the_problem():
    def make(seed):
        return Problem("?", "yes", lambda given: "Look again.", "", choices=("yes", "no") if seed else ("yes", "maybe"))

    exercise = Exercise("Choose", make, seed=1)
    exercise.field.value = "no"
    exercise.button.click()
    assert "Not yet. Look again." in exercise.words.value
    exercise.choose(0)
    assert exercise.field.options == ("yes", "maybe")
    assert exercise.check("yes") == "✓ Right."


def test_text_that_keeps_its_columns():
    shown = Printed("a  <b>")._repr_mimebundle_()
    assert shown["text/plain"] == "a  <b>"
    assert "a  &lt;b&gt;</pre>" in shown["text/html"]


def test_claims_as_a_table():
    from tests.plots.test_pictures import CLAIMS

    shown = ClaimsTable(CLAIMS)._repr_mimebundle_()
    assert shown["text/html"].count("<tr>") == 1 + len(CLAIMS)
    assert "too &lt; slow" in shown["text/html"]
    assert "too < slow" in shown["text/plain"]


def test_a_table_wraps_in_the_page_and_is_laid_out_elsewhere():
    table = Table(["run", "why"], [["a<b", "too high"], ["c", ""]], note="And 3 more.")
    shown = table._repr_mimebundle_()
    assert shown["text/plain"].splitlines() == ["run  why", "---  --------", "a<b  too high", "c", "And 3 more."]
    assert shown["text/html"].count("<tr>") == 3
    assert "a&lt;b" in shown["text/html"]
    assert shown["text/html"].endswith("<p>And 3 more.</p>")
