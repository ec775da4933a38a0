"""The import contract: a module may import what stands in its own room or in a room below."""

import ast
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "numalab"

#: From top to bottom; some are yet to be built.
ROOMS = (
    ("the command line", "cli", "__main__", "commands", "commands.*"),
    ("what a person sees", "widgets", "widgets.*", "plots", "plots.*", "lessons", "lessons.*"),
    ("the patch threads", "patch_threads", "patch_threads.*"),
    (
        "what the numbers mean",
        "lock_traces",
        "diagnose",
        "diagnose.*",
        "compare",
        "sides",
        "inputs",
        "tables",
        "welch",
        "validate",
        "scenarios",
        "scenarios.*",
        "validate.*",
        "quantities",
        "decisions",
        "decisions.*",
        "twin",
        "twin.*",
    ),
    ("text of real tools, live systems", "readers", "readers.*", "writers", "writers.*", "record", "record.*", "live"),
    ("many batches", "sweeps", "sweeps.*", "pool"),
    ("one batch", "simulation"),
    ("the model", "model", "model.*", "locks", "locks.*"),
    ("descriptions", "compile", "workload", "workloads", "workloads.*", "describe"),
    (
        "what all know",
        "",
        "kernel",
        "machine",
        "records",
        "layout",
        "runs",
        "runs.*",
        "schema",
        "derived",
        "text",
        "_data",
    ),
)


def name_of(path: Path) -> str:
    """Name below numalab: "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def rooms_of(module: str) -> list[int]:
    return [i for i, (_, *patterns) in enumerate(ROOMS) if any(fnmatchcase(module, pattern) for pattern in patterns)]


def imports(path: Path) -> set[str]:
    """Full names of all modules imported anywhere in a file, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            base = node.module.removeprefix("numalab").removeprefix(".")
            for alias in node.names:
                # `from numalab import runs` imports a module, `from numalab import __version__` a name.
                below = f"{base}.{alias.name}".removeprefix(".")
                ours = node.module.split(".")[0] == "numalab"
                found.add(f"numalab.{below}" if ours and below in MODULES else node.module)
    return found


def inside(path: Path) -> set[str]:
    names = {name for name in imports(path) if name.split(".")[0] == "numalab"}
    return {name.removeprefix("numalab").removeprefix(".") for name in names}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_one_room(module: str) -> None:
    assert len(rooms_of(module)) == 1, f"numalab.{module}: give it a place in ROOMS"


@pytest.mark.parametrize("module", MODULES)
def test_imports_lead_down(module: str) -> None:
    (here,) = rooms_of(module)
    for other in inside(MODULES[module]):
        for there in rooms_of(other):
            assert there >= here, f"numalab.{module} ({ROOMS[here][0]}) imports numalab.{other} ({ROOMS[there][0]})"


@pytest.mark.parametrize("module", [m for m in MODULES if m.split(".")[0] == "model"])
def test_the_model_knows_numpy_kernels_and_layouts_only(module: str) -> None:
    for other in inside(MODULES[module]):
        assert other.split(".")[0] in {"model", "kernel", "layout"}, f"numalab.{module} imports numalab.{other}"
    tops = {name.split(".")[0] for name in imports(MODULES[module])} - {"numalab"}
    assert tops <= {"numpy"} | sys.stdlib_module_names


def test_a_wrong_import_is_seen(tmp_path: Path) -> None:
    # The contract is only as good as what it sees.
    file = tmp_path / "x.py"
    lines = ("from numalab import simulation, __version__", "import numalab.runs as r", "import numpy.linalg")
    file.write_text("def f():\n" + "".join(f"    {line}\n" for line in lines))
    assert imports(file) == {"numalab.simulation", "numalab", "numalab.runs", "numpy.linalg"}
    assert inside(file) == {"simulation", "", "runs"}
    (model,), (simulation,) = rooms_of("model.scan"), rooms_of("simulation")
    assert simulation < model
