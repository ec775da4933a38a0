"""What Binder builds fits what pyproject.toml asks for; `make binder-check` builds it."""

import os
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tools import check_binder, pin_binder

CHECKOUT = Path(__file__).resolve().parents[2]
PINNED = {
    one.name: one
    for one in map(Requirement, (line for line in pin_binder.PINS.read_text().splitlines() if not line.startswith("#")))
}


def version_of(pin):
    (only,) = pin.specifier
    assert only.operator == "=="
    return only.version


def test_every_pin_fits_pyproject():
    for text in pin_binder.direct():
        wanted = Requirement(text)
        pin = PINNED[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version_of(pin)), f"{text}, but binder/requirements.txt has {pin}"


def test_everything_that_is_needed_is_pinned():
    """As far as the packages installed here say; releases may differ from the pinned ones."""
    assert set(pin_binder.closure(pin_binder.direct())) <= set(PINNED)


def test_the_python_fits():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    version = pin_binder.RUNTIME.read_text().strip().removeprefix("python-")
    assert SpecifierSet(project["requires-python"]).contains(version)


def test_post_build_can_be_executed_and_resolves_nothing():
    post = CHECKOUT / "binder" / "postBuild"
    assert os.access(post, os.X_OK)
    assert "pip install --no-cache-dir --no-deps --editable ." in post.read_text()
    # another file would make repo2docker take another way
    assert {path.name for path in post.parent.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}


def test_pins_are_not_written_with_another_python(tmp_path, monkeypatch, capsys):
    (tmp_path / "runtime.txt").write_text("python-3.0\n")
    monkeypatch.setattr(pin_binder, "RUNTIME", tmp_path / "runtime.txt")
    assert pin_binder.main() == 1
    assert "binder/runtime.txt says python-3.0, this is python-" in capsys.readouterr().err


def test_extras_are_followed():
    # h5netcdf itself does not ask for h5py, its extra does
    assert "h5py" in pin_binder.closure(["h5netcdf[h5py]"])


def test_the_copy_is_what_git_would_clone(tmp_path):
    check_binder.copy_checkout(tmp_path)
    assert (tmp_path / "binder" / "postBuild").is_file()
    assert (tmp_path / check_binder.FIRST).is_file()
    assert not (tmp_path / "runs").exists()


def test_nothing_of_this_environment_gets_in(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    found = check_binder.environment(Path("/home/venv"))
    assert "PYTHONPATH" not in found
    assert found["PATH"].startswith("/home/venv/bin:")


@pytest.mark.parametrize("name", ["README.md", "docs/notebooks.md"])
def test_links_to_binder_open_the_first_notebook(name):
    text = (CHECKOUT / name).read_text()
    assert text.count("mybinder.org/v2") == text.count("?urlpath=lab/tree/notebooks/00_start_here.ipynb")
