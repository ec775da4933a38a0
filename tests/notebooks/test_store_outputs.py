"""Storing outputs twice gives the same file."""

import json

import nbformat
import pytest

from tools.store_outputs import WIDGETS, stored

SLIDERS = """
import ipywidgets as w
left, right = w.IntSlider(description="left"), w.IntSlider(description="right")
hidden = w.IntSlider(description="hidden")
w.HBox([left, right])
"""


def notebook(*sources, ids="abcdef"):
    cells = [
        nbformat.v4.new_code_cell(source, id=f"cell-{letter}") for letter, source in zip(ids, sources, strict=False)
    ]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    first = stored(notebook(SLIDERS, "print(left.value)"), folder)
    return first, stored(first, folder)


def test_a_second_time_changes_nothing(twice):
    first, second = twice
    assert first == second


def test_outputs_are_there_and_nothing_that_varies(twice):
    read = json.loads(twice[0])
    assert read["cells"][1]["outputs"][0]["text"] == ["0\n"]
    assert read["metadata"]["language_info"] == {"name": "python"}
    assert all(cell["metadata"] == {} for cell in read["cells"])


def test_widgets_are_numbered_and_only_those_that_show(twice):
    state = json.loads(twice[0])["metadata"]["widgets"][WIDGETS]["state"]
    assert sorted(state) == [f"{n:032x}" for n in range(1, len(state) + 1)]
    assert {model["state"].get("description") for model in state.values()} == {None, "left", "right"}
    assert all(value is not None for model in state.values() for value in model["state"].values())


def test_cells_need_names(tmp_path):
    text = notebook("1").replace("cell-a", "0123abcd")
    with pytest.raises(SystemExit, match="give it an id that says what it is"):
        stored(text, tmp_path)
