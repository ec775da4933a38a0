import pytest

from tests.sweeps.small import files, sweep


@pytest.fixture(scope="package", autouse=True)
def one_revision():
    """The checkout may change while tests run; a store must not care here."""
    patch = pytest.MonkeyPatch()
    patch.setattr("numalab.runs.revision", lambda: "test")
    patch.setattr("numalab.runs._build.revision", lambda: "test")
    yield
    patch.undo()


@pytest.fixture(scope="package")
def finished(tmp_path_factory, one_revision):
    """The small sweep, done in this process."""
    path = tmp_path_factory.mktemp("finished") / "small.zarr"
    sweep(path)
    return path


@pytest.fixture(scope="package")
def wanted(finished):
    """Its files."""
    return files(finished)
