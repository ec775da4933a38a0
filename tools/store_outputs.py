"""Execute notebooks and store their outputs, so that doing it again changes nothing that did not change.

    python tools/store_outputs.py                          all in notebooks/
    python tools/store_outputs.py notebooks/20_convergence.ipynb
    python tools/store_outputs.py --check                  change nothing; exit 1 if something would change

The committed .ipynb with outputs is the source. What would differ from one execution to the next is taken out or made
stable: execution times, the random ids of widgets, the Python version.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
#: Seconds a cell may take.
TIMEOUT_S = 120
WIDGETS = "application/vnd.jupyter.widget-state+json"


def main() -> int:
    """Store the outputs of some notebooks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(FOLDER.glob("*.ipynb")))
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if something would change")
    args = parser.parse_args()
    changed = False
    for path in args.notebooks:
        before = path.read_text(encoding="utf-8")
        begun = time.monotonic()
        after = stored(before, path.parent)
        changed |= after != before
        print(f"{path.name}: {time.monotonic() - begun:.1f} s, {len(after) / 1000:.0f} kB", end="")
        print(", changed" if after != before else ", as it was")
        if not args.check:
            path.write_text(after, encoding="utf-8")
    return int(args.check and changed)


def stored(text: str, folder: Path) -> str:
    """Execute a notebook and return it with its outputs, as text.

    Parameters
    ----------
    text : str
        The notebook as JSON.
    folder : Path
        Where it runs.
    """
    notebook = nbformat.reads(text, as_version=4)
    NotebookClient(
        notebook, timeout=TIMEOUT_S, kernel_name="python3", store_widget_state=True, record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()  # fmt: skip
    notebook.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook.metadata.language_info = {"name": "python"}
    for number, cell in enumerate(notebook.cells):
        if re.fullmatch(r"[0-9a-f]{8}", cell.id):
            raise SystemExit(f"cell {number}: give it an id that says what it is, in place of {cell.id}")
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
    _keep_visible_widgets(notebook)
    return _steady_ids(nbformat.writes(notebook, indent=1)) + "\n"


def _keep_visible_widgets(notebook: Any) -> None:
    """Drop the state of widgets that no output leads to, and what says nothing."""
    state = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    found: dict[str, Any] = {}
    todo = re.findall(r'"model_id": "([0-9a-f]{32})"', json.dumps(notebook.cells))
    while todo:
        one = todo.pop()
        if one in state and one not in found:
            found[one] = state[one]
            todo += re.findall(r"IPY_MODEL_([0-9a-f]{32})", json.dumps(state[one]["state"]))
    for model in found.values():
        # most of a state are properties at null, their default
        model["state"] = {name: value for name, value in model["state"].items() if value is not None}
    if state:
        notebook.metadata.widgets[WIDGETS]["state"] = found


def _steady_ids(text: str) -> str:
    """Replace the random ids of widgets by numbers, in the order in which the notebook shows them."""
    notebook = json.loads(text)
    state = notebook["metadata"].get("widgets", {}).get(WIDGETS, {}).get("state", {})
    order: dict[str, str] = {}

    def visit(one: str) -> None:
        if one in state and one not in order:
            order[one] = f"{len(order) + 1:032x}"
            for below in re.findall(r"IPY_MODEL_([0-9a-f]{32})", json.dumps(state[one]["state"], sort_keys=True)):
                visit(below)

    for one in re.findall(r'"model_id": "([0-9a-f]{32})"', json.dumps(notebook["cells"])):
        visit(one)
    # sorted by name the numbered widgets come in the same order every time
    text = re.sub(r"\b[0-9a-f]{32}\b", lambda match: order.get(match[0], match[0]), text)
    notebook = json.loads(re.sub(r"IPY_MODEL_([0-9a-f]{32})", lambda m: f"IPY_MODEL_{order.get(m[1], m[1])}", text))
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())
