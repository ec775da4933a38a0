"""docs/sweeps.md works as printed."""

import re
import tomllib
from pathlib import Path

import pytest

from numalab import sweeps
from numalab.sweeps.outputs import NUMBERS
from numalab.sweeps.spec import Spec

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
BASE = BLOCKS[0].partition("[sweep.grid]")[0]


def test_the_file_has_48_points():
    data = tomllib.loads(BLOCKS[0])
    spec = Spec.build({key: part for key, part in data.items() if key != "sweep"}, data["sweep"])
    assert (spec.size, len(spec.seeds)) == (48, 8)


@pytest.mark.parametrize(("block", "points"), [(BLOCKS[1], 50), (BLOCKS[2], 40)])
def test_the_samples_are_valid(block, points):
    data = tomllib.loads(BASE + block)
    assert Spec.build({key: part for key, part in data.items() if key != "sweep"}, data["sweep"]).size == points


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "sweeps.md", "exec"), {})
    assert len(capsys.readouterr().out.strip("[]\n").split()) == 2
    assert sweeps.open("many.zarr").sizes["run"] == 8


def test_every_number_that_is_kept_is_named():
    for name in NUMBERS:
        assert f"`{name}`" in TEXT
