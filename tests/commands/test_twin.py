"""``numalab twin``: what is printed, what is saved, and the exit codes."""

import json

import pytest

from numalab import runs
from numalab.plots.twin import twin as picture
from numalab.twin import Twin
from tests.command_line import caller
from tests.twin.small import recording, simulated


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    runs.save(simulated(seconds=6.0), "loop.nc")
    runs.save(recording(), "made.nc")
    return caller(capsys, "twin")


def test_a_twin_that_fits(cli):
    code, out, err = cli("loop.nc", "--rate", 10000, "--seeds", 4, "--what-if", "off", "--what-if", "bind=1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert (
        lines[0] == "Twin of loop: 6.0 s of 2 processes with 2 tasks on 2 nodes and 4 CPUs, kernel 6.1.0 taken as 6.1"
    )
    assert "assumed:" in lines
    assert "recorded, and the twin with 4 seeds:" in lines
    assert "the twin fits the recording" in lines
    assert "what if off:" in lines
    assert "what if bind=1:" in lines
    assert "WARNING" not in out
    (row,) = (line.split() for line in lines if line.startswith("numa_pages_migrated") and "1.00" in line)
    assert row == ["numa_pages_migrated", "4,096", "4,096", "4,096", "..", "4,096", "1.00", "yes"]


def test_the_warning_comes_with_each_what_if(cli):
    code, out, _ = cli("made.nc", "--rate", 1e5, "--seeds", 2, "--what-if", "off", "--what-if", "kernel=6.14")
    assert code == 0
    # wrapped anywhere
    assert " ".join(out.split()).count("WARNING: the twin does not fit the recording in ") == 3


def test_as_json(cli):
    code, out, err = cli("loop.nc", "--rate", 10000, "--seeds", 2, "--what-if", "off", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert (facts["recording"], facts["kernel"], facts["pages_per_s"], facts["warning"]) == ("loop", "6.1", 10000, "")
    rows = {row["quantity"]: row for row in facts["rows"]}
    assert (rows["numa_pages_migrated"]["recorded"], rows["numa_pages_migrated"]["fits"]) == (4096, True)
    (answer,) = facts["what_if"]
    effects = {one["quantity"]: one for one in answer["effects"]}
    assert (answer["what_if"], effects["numa_hint_faults"]["value"]) == ("off", 0)
    assert effects["numa_hint_faults"]["beyond_noise"] is True


def test_what_is_saved(cli, tmp_path):
    code, _, err = cli("loop.nc", "--rate", 10000, "--seeds", 2, "-o", "twin.nc")
    assert (code, err) == (0, "saved twin.nc; look at it with numalab show twin.nc\n")
    ds = runs.open("twin.nc")
    assert (ds.attrs["source"], ds.sizes["run"]) == ("simulated", 2)
    code, _, err = cli("loop.nc", "--rate", 10000, "--seeds", 2, "--what-if", "off", "-o", "twin.png")
    assert code == 0
    assert err.startswith("saved twin.png: PTE updates [1000 pages] at the end: recorded ")
    assert (tmp_path / "twin.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["none.nc"], "none.nc: "),
        (["loop.nc", "--what-if", "of"], "what-if 'of': not understood; did you mean off?"),
        (["loop.nc", "-o", "twin.txt"], "twin.txt: expected a name ending in .nc (the twin's runs) or in .png or .svg"),
        (["loop.nc", "-o", "loop.nc"], "loop.nc: is the input loop.nc, which would be lost"),
        (["loop.nc", "-o", "made.nc"], "made.nc: exists; overwrite it with --force"),
        (["loop.nc", "--seeds", "0"], "expected a whole number >= 1, got '0'"),
        (["loop.nc", "--rate", "-1"], "expected pages per second above 0, got '-1'"),
    ],
)
def test_refusals(cli, args, words):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert words in err
    assert err.splitlines()[-1].startswith("numalab")


def test_the_picture():
    made = Twin.of(simulated(seconds=6.0), "loop", pages_per_s=1e4)
    drawn = picture(made.run(2), made.what_if("off", 2))
    assert [part.what for part in drawn.parts] == [
        *("PTE updates", "hint faults", "local share", "migrated", "on node 0", "on node 1")
    ]
    moved = drawn.parts[3]
    assert [line.label for line in moved.parts[0].lines] == ["recorded", "twin", "what if off"]
    # of 4096 pages all moved, in the recording and in the twin; without balancing none
    assert [line.known[-1] for line in moved.parts[0].lines] == [4.096, 4.096, 0]
    assert moved.alt == "migrated [1000 pages] at the end: recorded 4.10, twin 4.10, what if off 0.00."
    assert len(drawn.figure.axes) == 6
    assert moved.text.startswith("migrated [1000 pages], twin: median over seeds\n")
