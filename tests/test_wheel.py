"""The package as users get it: built, installed outside the checkout, run elsewhere."""

import importlib.metadata
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

CHECKOUT = Path(__file__).resolve().parent.parent


def run(command, cwd, check=True):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True)
    if check and done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def closure(requirements):
    """The installed distributions that requirements lead to, extras and markers followed."""
    found, todo = {}, [(requirement, "") for requirement in requirements]
    seen = set()
    while todo:
        text, extra = todo.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *requirement.extras):
            if (requirement.name, wanted) not in seen:
                seen.add((requirement.name, wanted))
                distribution = importlib.metadata.distribution(requirement.name)
                found[requirement.name] = distribution
                todo += [(line, wanted) for line in distribution.requires or ()]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a source archive, so that the archive is known to be complete too."""
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, CHECKOUT], cwd=out)
    assert len(list(out.glob("numalab-*.tar.gz"))) == 1
    (wheel,) = out.glob("numalab-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment that holds numalab's declared dependencies, the wheel, and nothing else.

    The dependencies are links to those already installed, which saves minutes; that they are
    just the closure of what the wheel declares keeps a forgotten dependency from hiding.
    """
    home = tmp_path_factory.mktemp("elsewhere")
    venv.create(home / "venv", with_pip=False, symlinks=True)
    python = home / "venv" / "bin" / "python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], home).strip())
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = importlib.metadata.PathDistribution(zipfile.Path(archive, name.removesuffix("METADATA"))).metadata
    for distribution in closure(metadata.get_all("Requires-Dist")).values():
        for top in {file.parts[0] for file in distribution.files if file.parts[0] not in {"..", "__pycache__"}}:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(distribution.locate_file(top)).resolve())
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel], home)
    return home


def test_the_wheel_holds_the_package_and_its_data_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name.removeprefix("numalab/data/") for name in names if name.startswith("numalab/data/")}
    here = {str(path.relative_to(CHECKOUT / "data")) for path in (CHECKOUT / "data").rglob("*") if path.is_file()}
    assert shipped == here
    assert "numalab/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"numalab"}
    assert not any("test" in Path(name).parts for name in names)


def test_the_installed_package_is_the_one_that_runs(installed):
    code = "import numalab; print(numalab.__file__)"
    file = Path(run([installed / "venv/bin/python", "-c", code], installed).strip())
    assert file.is_relative_to(installed / "venv")
    assert run(
        [installed / "venv/bin/python", "-c", "import importlib.util as u; print(u.find_spec('pytest'))"], installed
    ) == ("None\n")


def test_data_is_read_from_the_installed_package(installed):
    code = """if True:
        import tomllib
        from numalab import _data
        from numalab.readers import perf_bench
        published = tomllib.loads(_data.read_text("published", "convergence.toml"))
        trace = perf_bench.parse(_data.read_text("published", published["trace"]["file"]))
        print(_data.path("published"), trace.tests[0].converged_s)
    """
    path, seconds = run([installed / "venv/bin/python", "-c", code], installed).split()
    assert Path(path).is_relative_to(installed / "venv")
    assert seconds == "41.8"


def test_a_run_is_saved_and_opened(installed):
    code = """if True:
        from numalab import runs
        ds = runs.build({"numa_hint_faults": [[0, 2**40]]}, {"time": [0, 1]}, title="t", source="simulated", params={})
        back = runs.open(runs.save(ds, "run.nc"))
        print(runs.differences(ds, back), runs.provenance(back)["revision"])
    """
    assert run([installed / "venv/bin/python", "-c", code], installed) == "[] None\n"


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("--help", "replay"),
        ("machines", "rik-4n80"),
        ("workloads", "shared_cow"),
        ("kernels", "3.17"),
        ("threads", "convergence"),
    ],
)
def test_commands(installed, command, word):
    assert word in run([installed / "venv/bin/numalab", command], installed)


def test_an_example_that_ships_runs(installed):
    python = installed / "venv/bin/python"
    code = "from numalab import _data; print(_data.read_text('examples', 'preset.toml'))"
    text = run([python, "-c", code], installed)
    small = text.replace("rik-4n80", "guest-2x2").replace("p = 8", "p = 2").replace("t = 20", "t = 2")
    small = small.replace("P = 1000", "P = 16").replace("seconds = 100", "seconds = 2")
    (installed / "mine.toml").write_text(small)
    out = run([installed / "venv/bin/numalab", "run", "mine.toml"], installed)
    assert "seeds 0-11; 2 s in steps of 1 ms" in out
    assert "equal" in run([python, "-m", "numalab", "rerun", "runs/mine.nc"], installed)
