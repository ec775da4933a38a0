"""What holds for every notebook; that they run and give what is stored is nbval's part (`make test`)."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000
#: Lines of a code cell; a longer one is logic, which belongs into numalab.
MOST_LINES = 12
TAGS = {"solution", "hide-cell"}


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def names_used(source):
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {part for alias in node.names for part in alias.name.split(".")}
            names |= set((getattr(node, "module", "") or "").split("."))
    return names


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_valid_and_small(self, path):
        nbformat.validate(read(path))
        assert path.stat().st_size < MOST_BYTES

    def test_was_executed_to_its_end(self, path):
        counts = [cell.execution_count for cell in code_cells(path)]
        assert counts == list(range(1, len(counts) + 1)), "run tools/store_outputs.py"
        for cell in code_cells(path):
            assert not [o for o in cell.outputs if o.output_type == "error"], cell.id
            assert not [o for o in cell.outputs if o.get("name") == "stderr"], cell.id

    def test_cells_are_short_and_in_good_order(self, path):
        for cell in code_cells(path):
            assert len(cell.source.splitlines()) <= MOST_LINES, cell.id
            # nbval runs cells without history, where IPython does not honour a trailing semicolon
            assert not re.search(r";\s*$", cell.source), cell.id
            # state-based widgets only: Output and interact cannot be tested, pyplot breaks in callback threads
            assert not names_used(cell.source) & {"interact", "interactive", "interactive_output", "Output", "pyplot"}
            assert "plt." not in cell.source, cell.id
            assert not cell.source.startswith("%"), cell.id

    def test_holds_no_logic(self, path):
        kinds = (ast.FunctionDef, ast.ClassDef, ast.While, ast.Try, ast.Lambda)
        for cell in code_cells(path):
            assert not [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, kinds)], cell.id

    def test_tags_are_known_and_solutions_hidden(self, path):
        for cell in read(path).cells:
            tags = set(cell.metadata.get("tags", ()))
            assert tags <= TAGS, cell.id
            if "solution" in tags:
                assert "hide-cell" in tags, cell.id
                assert cell.metadata["jupyter"]["source_hidden"] is True, cell.id

    def test_metadata_is_stable(self, path):
        notebook = read(path)
        assert dict(notebook.metadata.kernelspec)["name"] == "python3"
        assert dict(notebook.metadata.language_info) == {"name": "python"}
        ids = [cell.id for cell in notebook.cells]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-z][a-z0-9-]+", one) for one in ids), "ids say what a cell is"
        assert not [cell.id for cell in notebook.cells if "execution" in cell.metadata]

    def test_every_picture_has_words(self, path):
        for cell in code_cells(path):
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    words = output.data["text/plain"]
                    assert len(words) > 40, cell.id
                    assert output.metadata["image/png"]["alt"] == words, cell.id

    def test_widgets_are_stored_so_that_they_show_without_a_kernel(self, path):
        text = path.read_text(encoding="utf-8")
        shown = set(re.findall(r'"model_id": "([0-9a-f]{32})"', text))
        widgets = read(path).metadata.get("widgets", {})
        state = widgets.get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
        assert shown <= set(state)
        assert set(re.findall(r"IPY_MODEL_([0-9a-f]{32})", json.dumps(state))) <= set(state)
