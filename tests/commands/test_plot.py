"""``numalab plot``: files, text, and what it refuses."""

import pytest

from numalab import runs
from numalab.cli import main
from numalab.simulation import simulate
from numalab.workloads import perf_bench_numa


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    for kernel in ("3.16", "3.17"):
        ds = simulate("guest-4x2", perf_bench_numa(p=2, t=2, P=16), kernel, seconds=1, every={"faults": 0.5})
        runs.save(ds, folder / f"{kernel}.nc")
    return folder


def call(capsys, *args):
    code = main(["plot", *map(str, args)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


KINDS = ["pages", "nodes", "astray", "local", "scan", "waiting", "faults", "moves", "counters"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_and_printed(kind, folder, tmp_path, capsys):
    out = tmp_path / f"{kind}.png"
    code, text, _ = call(capsys, f"old={folder / '3.16.nc'}", f"new={folder / '3.17.nc'}", kind, "-o", out, "--text")
    assert code == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "old" in text
    assert f"saved {out}: " in text


def test_the_same_run_gives_the_same_file(folder, tmp_path, capsys):
    for name in ("a.svg", "b.svg"):
        assert call(capsys, folder / "3.17.nc", "pages", "-o", tmp_path / name)[0] == 0
    a, b = ((tmp_path / name).read_text() for name in ("a.svg", "b.svg"))
    assert a == b
    assert a.lstrip().startswith("<?xml")


def test_text_alone(folder, capsys):
    code, text, _ = call(capsys, folder / "3.17.nc", "astray", "--text")
    assert code == 0
    assert text.startswith("tasks astray")
    assert text.rstrip().splitlines()[-1].startswith("3.17: ")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["3.17.nc", "page", "--text"], "no picture 'page'; did you mean \"pages\"?"),
        (["3.17.nc", "pages"], "expected -o FILE.png (or .svg), or --text"),
        (["3.17.nc", "pages", "-o", "x.pdf"], "x.pdf: expected a name that ends in .png or .svg"),
        (["3.17.nc", "3.17.nc", "pages", "--text"], "two runs have the same name"),
        (["none.nc", "pages", "--text"], "none.nc"),
    ],
)
def test_refused(args, words, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, error = call(capsys, *args)
    assert code == 2
    assert words in error
    assert len(error.splitlines()) == 1


def test_the_help_says_that_one_of_two_is_needed(capsys):
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    assert "(-o FILE | --text | -o FILE --text)" in capsys.readouterr().out


def test_nothing_is_overwritten_unasked(folder, tmp_path, capsys):
    out = tmp_path / "x.png"
    out.write_text("mine")
    assert call(capsys, folder / "3.17.nc", "pages", "-o", out)[0] == 2
    assert out.read_text() == "mine"
    assert call(capsys, folder / "3.17.nc", "pages", "-o", out, "--force")[0] == 0
