"""Pastes that are read and judged as soon as they change: one machine, or two sides of a comparison."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as w
import xarray as xr

from numalab import inputs
from numalab.compare import Against, Comparison, Row, compare
from numalab.diagnose import Diagnosis, diagnose
from numalab.readers._reading import Readings
from numalab.sides import Side
from numalab.text import table
from numalab.widgets import report
from numalab.widgets.paste import Paste, PasteError, read

#: Characters of a line of output that a notebook has room for at 1280 pixels.
_LINE = 96


class Diagnosed:
    """Text and files of one machine, what was read of them, and which known illness they show.

    Parameters
    ----------
    samples : mapping of str to str
        Title -> text.
    sample : str
        Chosen at the start.
    notebooks : mapping of str to str
        Patch thread -> the notebook that explains it.
    """

    def __init__(
        self, samples: Mapping[str, str], sample: str = "", notebooks: Mapping[str, str] | None = None
    ) -> None:
        self._notebooks = dict(notebooks or {})
        self.paste = Paste(samples, sample)
        self.reading, self.verdict = w.HTML(), w.HTML()
        self.inputs: list[Readings | xr.Dataset] = []
        self.diagnosis: Diagnosis | None = None
        self.problem = ""
        columns = w.Layout(padding="4px", flex="1 1 26em", width="auto")
        self.reading.layout, self.verdict.layout = columns, w.Layout(padding="4px", flex="2 1 34em", width="auto")
        below = w.HBox([self.reading, self.verdict], layout=w.Layout(flex_flow="row wrap"))
        self.view = w.VBox([self.paste.view, below], layout=w.Layout(border="1px solid #888888", padding="8px"))
        self.paste.on_change(self._judge)
        self._judge()

    def choose(self, sample: str) -> None:
        """Take a sample."""
        self.paste.choose(sample)

    def give(self, text: str, files: Mapping[str, bytes] | None = None) -> None:
        """Take text, and files by name."""
        self.paste.give(text, files)

    @property
    def told(self) -> str:
        """The findings in plain text, or why there are none."""
        if self.diagnosis is None:
            return textwrap.fill(self.problem, _LINE)
        return "\n".join(
            textwrap.fill(line, _LINE, subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2))
            for line in str(self.diagnosis).splitlines()
        )

    def _judge(self) -> None:
        self.inputs, self.diagnosis, self.problem = [], None, ""
        try:
            self.inputs = self.paste.inputs()
            self.diagnosis = diagnose(*self.inputs)
        except PasteError as error:
            self.problem = str(error)
        texts = [one for one in self.inputs if isinstance(one, Readings)]
        runs = [f"<p>{one.encoding['source']}: a run</p>" for one in self.inputs if isinstance(one, xr.Dataset)]
        head = "<h4 style='margin:0'>What was read</h4>"
        read_html = head + "".join(runs) + report.readings_html(texts)
        self.reading.value = report.lined(read_html) if self.inputs else ""
        if self.diagnosis is None:
            self.verdict.value = report.problem(self.problem)
        else:
            found = report.diagnosis_html(self.diagnosis, self._notebooks)
            self.verdict.value = report.lined(f"<h4 style='margin:0'>Verdict</h4>{found}")

    def __repr__(self) -> str:
        return "Diagnosed: a place to paste or upload the output of tools, what was read of it, and a verdict"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return _bundle(self, kwargs)


class Compared:
    """Two pastes beside each other: what changed from the left to the right.

    Parameters
    ----------
    samples : mapping of str to str
        Title -> text.
    left, right : str
        Chosen at the start.
    """

    NAMES = ("left", "right")

    def __init__(self, samples: Mapping[str, str], left: str = "", right: str = "") -> None:
        self.pastes = tuple(Paste(samples, one, name) for one, name in zip((left, right), self.NAMES, strict=True))
        self.changes = w.HTML()
        self.comparison: Comparison | None = None
        self.problem = ""
        for paste in self.pastes:
            paste.area.layout.height = "10em"
            paste.view.layout = w.Layout(flex="1 1 26em", width="auto")
            paste.on_change(self._compare)
        row = w.HBox([paste.view for paste in self.pastes], layout=w.Layout(flex_flow="row wrap"))
        self.view = w.VBox([row, self.changes], layout=w.Layout(border="1px solid #888888", padding="8px"))
        self._compare()

    def choose(self, left: str, right: str) -> None:
        """Take two samples."""
        for paste, sample in zip(self.pastes, (left, right), strict=True):
            paste.choose(sample)

    @property
    def runs(self) -> dict[str, xr.Dataset]:
        """The dataset of each side of which one can be made."""
        return {name: ds for name, paste in zip(self.NAMES, self.pastes, strict=True) for ds in _runs(paste)[:1]}

    @property
    def told(self) -> str:
        """The changes as plain text, or why there are none."""
        if self.comparison is None:
            return textwrap.fill(self.problem, _LINE)
        head, rows = _changes(self.comparison)
        return "\n".join([table(head, rows), *(textwrap.fill(note, _LINE) for note in _notes(self.comparison))])

    def _compare(self) -> None:
        self.comparison, self.problem = None, ""
        try:
            sides = [side for name, paste in zip(self.NAMES, self.pastes, strict=True) for side in _sides(name, paste)]
            self.comparison = compare(sides)
        except ValueError as error:
            self.problem = str(error)
            self.changes.value = report.problem(self.problem)
            return
        notes = "".join(f"<p style='margin:2px 0'>{escape(note)}</p>" for note in _notes(self.comparison))
        self.changes.value = report.lined(report.rows_html(*_changes(self.comparison)) + notes)

    def __repr__(self) -> str:
        return "Compared: two places to paste or upload, and what changed from the left to the right"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return _bundle(self, kwargs)


def _runs(paste: Paste) -> list[xr.Dataset]:
    """Return the datasets of a paste, none where it cannot be read."""
    try:
        found = [one if isinstance(one, xr.Dataset) else one.dataset() for one in paste.inputs()]
    except ValueError:
        return []
    return found


def _sides(name: str, paste: Paste) -> list[Side]:
    """Return the sides of a paste.

    Raises
    ------
    PasteError
        Nothing is there, or it holds nothing that can be compared.
    """
    found: list[Side] = []
    for source, text in paste.texts:
        read(source, text)
        found += inputs.of_text(text if text.endswith("\n") else f"{text}\n", source, name)
    for source, ds in paste.datasets:
        found += inputs.of_dataset(ds, source, name)
    if not found:
        raise PasteError(f"Nothing is here yet on the {name}: choose a sample, paste, or upload.")
    return found


def _changes(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of changes, of every side against the first."""
    several = len(found.names) > 2
    head = ["quantity", *found.names, *(f"change, {name}" if several else "change" for name in found.names[1:])]
    rows = [
        [
            row.quantity.name,
            *("-" if one is None else report.number(one.mean) for one in row.values),
            *(_change(row, against) for against in row.against),
        ]
        for row in found.rows
    ]
    return head, rows


def _change(row: Row, against: Against | None) -> str:
    if against is None:
        return "-"
    mark = "*" if against.significant else ""
    if row.quantity.absolute:
        return f"{against.difference:+.1f} points{mark}"
    return "from 0" if against.change_percent is None else f"{against.change_percent:+,.1f} %{mark}"


def _notes(found: Comparison) -> list[str]:
    """Say what the marks mean or why there are none, and what the comparison notes."""
    every = [one for row in found.rows for one in row.against if one is not None]
    notes = ["*: more than noise."] if any(one.significant for one in every) else []
    whys = list(dict.fromkeys(one.why for one in every if one.why and one.significant is None))
    if whys:
        notes.append(f"Not tested whether it is more than noise: {'; '.join(whys)}.")
    return [*notes, *dict.fromkeys(found.notes)]


def _bundle(one: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a widget's view with a text that is the same every time."""
    bundle = one.view._repr_mimebundle_(**kwargs)
    return dict(bundle[0] if isinstance(bundle, tuple) else bundle) | {"text/plain": repr(one)}
