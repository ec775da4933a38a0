"""A guess before the run, and problems whose numbers are seeds."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as w

_WIDE = {"description_width": "initial"}
_SHOWN = "max-height:24em; overflow:auto; font-size:12px; line-height:1.3"
#: Besides the words a sign, so that no colour is needed.
_RIGHT, _WRONG = "✓", "✗"


class Predict:
    """Take the reader's guess before a run, and show it beside the result.

    Parameters
    ----------
    question : str
    low, high, step : float
        Range of a numeric guess.
    unit : str
    choices : sequence of str
        In place of numbers: answers to choose from.
    """

    def __init__(
        self, question: str, low: float = 0, high: float = 100, *, step: float = 1, unit: str = "",
        choices: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.question, self.unit, self._choices = question, unit, tuple(choices)
        self.guess: float | str | None = None
        if choices:
            self.field: Any = w.RadioButtons(
                options=list(choices), value=None, description="my guess", style=_WIDE,
                layout=w.Layout(width="max-content"),
            )  # fmt: skip
        else:
            self.field = w.FloatSlider(
                value=(low + high) / 2, min=low, max=high, step=step,
                description=f"my guess [{unit}]" if unit else "my guess", style=_WIDE,
                layout=w.Layout(width="min(32em, 98%)"),
            )  # fmt: skip
        self.button = w.Button(description="that is my guess", layout=w.Layout(width="max-content"))
        self.words = w.HTML(_status("Guess first; then run on."))
        self.button.on_click(lambda _: self._take())
        self.view = _framed([_paragraph(question), self.field, self.button, self.words])

    def give(self, guess: float | str) -> None:
        """Guess, as the button would.

        Raises
        ------
        ValueError
            A guess the field cannot hold.
        """
        if self._choices and guess not in self._choices:
            raise ValueError(f"guess: expected one of {', '.join(self._choices)}, got {guess!r}")
        self.field.value = guess
        self._take()

    def compare(self, result: float | str, words: str = "", *, who: str = "The model") -> str:
        """Show the guess beside the result.

        Parameters
        ----------
        result : float or str
        words : str
            What to say of the result, in place of the number.
        who : str
            Whose result it is.

        Returns
        -------
        str
            The same in one line.
        """
        answer = words or self._with_unit(result)
        if self.guess is None:
            text = f"{who}: {answer}. (No guess was taken.)"
        else:
            text = f"Your guess: {self._with_unit(self.guess)}. {who}: {answer}."
            if self._choices:
                text += f" {_RIGHT} As you said." if self.guess == result else f" {_WRONG} Not as you said."
        self.words.value = _status(text)
        return text

    def _take(self) -> None:
        self.guess = self.field.value
        taken = self.guess is not None
        self.words.value = _status(
            f"Taken: {self._with_unit(self.guess)}. Now run on." if taken else "Choose an answer first."
        )

    def _with_unit(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{value:g} {self.unit}".strip()

    def __repr__(self) -> str:
        return f"Predict: {self.question}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return _bundle(self, kwargs)


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes
    ----------
    text : str
        The question, plain text; line breaks are kept.
    answer : float or str
    hint : callable
        From a wrong answer to what to look at.
    solution : str
        How one gets there.
    tolerance : float
        How far from a numeric answer still counts as right.
    unit : str
    choices : sequence of str
        For answers that are words.
    shown : str
        Text in columns that stands below the question, as a tool printed it.
    """

    text: str
    answer: float | str
    hint: Callable[[Any], str]
    solution: str
    tolerance: float = 0.0
    unit: str = ""
    choices: Sequence[str] = ()
    shown: str = ""

    def is_right(self, given: float | str) -> bool:
        """Tell whether an answer is right."""
        if isinstance(self.answer, str) or isinstance(given, str):
            return given == self.answer
        return abs(given - self.answer) <= self.tolerance


class Exercise:
    """A kind of problem: the seed is the problem's number, so that a class can have one each.

    Parameters
    ----------
    title : str
    make : callable
        From a problem number to a :class:`Problem`, the same for the same number everywhere.
    seed : int
        The problem it begins with.
    """

    def __init__(self, title: str, make: Callable[[int], Problem], seed: int = 1) -> None:
        self.title, self._make = title, make
        self.problem = make(seed)
        self.number = w.BoundedIntText(
            value=seed, min=0, max=2**31, description="problem number (seed)", style=_WIDE,
            layout=w.Layout(width="16em"),
        )  # fmt: skip
        self.text = w.HTML()
        self.field: Any = self._make_field()
        self.button = w.Button(description="check", layout=w.Layout(width="max-content"))
        self.words = w.HTML(_status("Not checked yet."))
        self.number.observe(lambda change: self._choose(change["new"]), names="value")
        self.button.on_click(lambda _: self._check_field())
        row = w.HBox([self.field, self.button], layout=w.Layout(flex_flow="row wrap"))
        self.view = _framed([_heading(title), self.number, self.text, row, self.words])
        self._choose(seed)

    def choose(self, seed: int) -> Problem:
        """Go to a problem by its number."""
        self.number.value = seed
        return self.problem

    def check(self, answer: float | str | None) -> str:
        """Say whether an answer is right, or what to look at; the widget stays as it is.

        Parameters
        ----------
        answer : float or str
            None, as from an empty field, is not an answer.

        Returns
        -------
        str
            What stands under the problem when the answer is given there.
        """
        if answer is None or answer == "":
            return "No answer yet."
        if self.problem.is_right(answer):
            return f"{_RIGHT} Right."
        return f"{_WRONG} Not yet. {self.problem.hint(answer)}"

    def _check_field(self) -> None:
        given = self.field.value
        if given and not self.problem.choices:
            try:
                given = float(given.replace(",", "."))
            except ValueError:
                self.words.value = _status(f"Expected a number, got {given!r}.")
                return
        self.words.value = _status(self.check(given))

    def solution(self) -> str:
        """Return the answer and how one gets there."""
        answer = self.problem.answer
        shown = answer if isinstance(answer, str) else f"{answer:g} {self.problem.unit}".strip()
        return f"Problem {self.number.value}: {shown}. {self.problem.solution}"

    def _choose(self, seed: int) -> None:
        self.problem = self._make(seed)
        text = html.escape(self.problem.text)
        shown = f"<pre tabindex='0' style='{_SHOWN}'>{html.escape(self.problem.shown)}</pre>"
        self.text.value = f"<p style='line-height:1.4; white-space:pre-wrap'>{text}</p>" + shown * bool(
            self.problem.shown
        )
        if self.problem.choices:
            self.field.options, self.field.value = list(self.problem.choices), None
        self.words.value = _status("Not checked yet.")

    def _make_field(self) -> Any:
        if self.problem.choices:
            return w.Dropdown(
                options=list(self.problem.choices), value=None, description="answer", style=_WIDE,
                layout=w.Layout(width="min(30em, 98%)"),
            )  # fmt: skip
        label = f"answer [{self.problem.unit}]" if self.problem.unit else "answer"
        return w.Text(placeholder="a number", description=label, style=_WIDE, layout=w.Layout(width="20em"))

    def __repr__(self) -> str:
        return f"Exercise: {self.title}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return _bundle(self, kwargs)


def _bundle(one: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a widget's view with a text that is the same every time."""
    bundle = one.view._repr_mimebundle_(**kwargs)
    return dict(bundle[0] if isinstance(bundle, tuple) else bundle) | {"text/plain": repr(one)}


def _framed(children: Sequence[Any]) -> Any:
    return w.VBox(list(children), layout=w.Layout(border="1px solid #888888", padding="8px"))


def _paragraph(text: str) -> Any:
    return w.HTML(f"<p style='line-height:1.4'>{html.escape(text)}</p>")


def _heading(text: str) -> Any:
    return w.HTML(f"<h4 style='margin:0'>{html.escape(text)}</h4>")


def _status(text: str) -> str:
    return f"<p role='status' aria-live='polite' style='line-height:1.4'>{html.escape(text)}</p>"
