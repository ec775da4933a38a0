"""What can be named as a side: datasets, folders, patterns, pastes and tables."""

import io
import shutil

import pytest

from numalab import _data, runs
from numalab.inputs import load
from numalab.sides import LOCAL_SHARE, SidesError
from tests.comparing import make_run
from tests.readers.helpers import GOLDEN, golden

TRACES = _data.path("traces")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs.save(make_run([10, 20], [5, 10]), "old.nc")
    runs.save(make_run([30], [5], kernel="3.17"), "sub/new.nc")
    runs.save(make_run([50], [5], kernel="3.17"), "sub/more.nc.gz")
    return tmp_path


def counts(side):
    (test,) = side.tests
    return side.samples[test, "numa_hint_faults"][1].values


def test_files_and_directories(here):
    old, new = load(["old.nc", "patched=sub"])
    assert (old.name, counts(old)) == ("old", (10.0, 20.0))
    assert (new.name, counts(new), new.sources) == ("patched", (50.0, 30.0), ["sub/more.nc.gz", "sub/new.nc"])
    assert load(["sub", "./sub/"])[1].name == "sub#2"


def test_patterns(here):
    (side,) = load(["new=sub/*.nc*"])
    assert counts(side) == (50.0, 30.0)
    assert load(["sub/n*.nc"])[0].name == "sub/n*.nc"


def test_kernels_in_one_file_are_sides(here):
    runs.save(runs.concat([make_run([1], [1]), make_run([2, 3], [1, 1], kernel="3.17")]), "both.nc")
    assert [(side.name, counts(side)) for side in load(["both.nc"])] == [("3.16", (1.0,)), ("3.17", (2.0, 3.0))]
    assert [side.name for side in load(["k=both.nc"])] == ["k-3.16", "k-3.17"]


def test_a_name_with_an_equals_sign(here):
    runs.save(make_run([7], [7]), "scan=64.nc")
    assert [side.name for side in load(["scan=64.nc", "a=scan=64.nc"])] == ["scan=64", "a"]


def test_folders_of_measured_runs(here):
    base, one = load([f"base={TRACES}/S2_write_base_r*", f"{TRACES}/S2_write_p1_r1"])
    assert (base.name, base.tests, one.name) == ("base", ["write"], "S2_write_p1_r1")
    assert base.samples["write", "runtime_s"][1].n == 3


def test_a_folder_without_its_parsed_dataset_is_read(here):
    folder = here / "c_swap_2x2_r1"
    folder.mkdir()
    for name in ("meta.json", "raw.tar.gz"):
        shutil.copy(TRACES / "c_swap_2x2_r1" / name, folder)
    raw, packed = load([f"raw={folder}", f"packed={TRACES / 'c_swap_2x2_r1'}"])
    assert counts(raw) == counts(packed)


def test_tables_and_pastes(here, monkeypatch):
    old, base, new = load(["old.nc", f"robot={GOLDEN / 'lkp' / '054.txt'}"], [4])
    assert (old.name, base.name, new.name) == ("old", "robot-base", "robot-new")
    assert base.samples["", "numa_hint_faults"][1].n == 4
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(golden("mmtests", "042.txt").encode())))
    assert [side.name for side in load(["-"])] == ["3.18.0-rc4-vanilla", "3.18.0-rc4-protnone-v2r5"]


def test_other_text_that_numalab_reads(here):
    (here / "x.txt").write_text(golden("vmstat", "paste.txt") + "\nIs this good?\n")
    sides = load(["x.txt"])
    assert [side.name for side in sides] == ["Without patch", "With patch"]
    assert sides[0].samples["", LOCAL_SHARE][1].mean == 100.0
    assert sides[0].notes == [
        "x.txt: 1 line was skipped, such as line 29 (not a line of /proc/vmstat); numalab read lists them"
    ]


def test_what_a_table_lost_is_said(here):
    (note,) = load([str(GOLDEN / "mmtests" / "046.txt")])[0].notes
    assert note.endswith("046.txt: 1 line was skipped, such as line 40 (row cut off); numalab read lists them")
    text = golden("lkp", "086.txt").replace("351363", "35136")
    (here / "x.txt").write_text("Hello\n" + text)
    (note,) = load(["x.txt"])[0].notes
    assert note.startswith("x.txt: 2 lines were skipped, such as line 14 (the change -79.4% does not follow")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nope.nc", "nope.nc: no such file or folder, and no pattern that fits one"),
        ("x=no*.nc", "no*.nc: no such file"),
        ("empty", "empty: is a folder without runs; expected .nc files"),
        ("blank.txt", "blank.txt: is empty"),
        ("mixed", "mixed/a.nc and mixed/b.nc differ in more than their seeds"),
        ("two*", "two.txt: is no dataset, and a side of several files takes only those"),
        ("joined.nc", "joined.nc: joins runs of different set-ups"),
        ("headless.txt", "headless.txt: its tables do not say which statistic"),
    ],
)
def test_what_cannot_be_a_side(here, spec, words):
    (here / "empty").mkdir()
    (here / "blank.txt").write_text("\n")
    (here / "two.txt").write_text("numa_hit 1\n")
    runs.save(make_run([1], [1]), "two.nc")
    runs.save(make_run([1], [1]), "mixed/a.nc")
    runs.save(make_run([1], [1], kernel="3.17"), "mixed/b.nc")
    runs.save(runs.concat([make_run([1], [1]), make_run([1], [1], workload="other")]), "joined.nc")
    (here / "headless.txt").write_text("  94500 ~ 3%  +115.6%  203711 ~ 6%  ivb42/hackbench/50%-pipe\n")
    with pytest.raises(SidesError) as caught:
        load([spec])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
