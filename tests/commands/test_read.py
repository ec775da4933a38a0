"""numalab read: several tools in a paste, several files, values and report."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

from numalab import cli, runs
from tests.readers.helpers import GOLDEN, golden

PASTE = GOLDEN / "mixed.txt"


@pytest.fixture
def read(capsys, tmp_path, monkeypatch):
    """Run the command; returns its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args):
        code = cli.main(["read", *map(str, args)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_report_of_a_paste(read):
    code, out, _ = read(PASTE)
    assert code == 0
    for format_ in ("numactl", "vmstat", "numastat", "numa_maps", "sched"):
        assert f"{PASTE}: {format_}, 55 lines\n" in out
    assert "  numa_pte_updates        1234567  1234667\n" in out
    assert "  line 21: labelled before and after, and no counter falls: one boot, the growth between\n" in out
    assert "process and class     0    1\n" in out
    assert out.splitlines()[-3:] == [
        "skipped: 3 lines",
        "  lines 1-3: 'Hi all,' and so on: not a line of numactl -H or of a node's files",
        "  line 55: 'Any idea?': not a line of /proc/PID/sched",
    ]


def test_json_has_values_labels_and_report(read):
    facts = json.loads(read(PASTE, "--json")[1])
    assert (facts["format"], facts["lines"]) == ("numactl + vmstat + numastat + numa_maps + sched", 55)
    assert [skip["line"] for skip in facts["skipped"]] == [1, 3, 55]
    assert [guess["line"] for guess in facts["guessed"]] == [21, 6]
    vmstat = facts["readings"][1]
    assert vmstat["tables"][0]["columns"] == ["counter", "before", "after"]
    assert ["numa_hint_faults", 1000, 2000] in vmstat["tables"][0]["rows"]
    assert vmstat["dataset"]["variables"]["numa_hint_faults"] == {
        "dims": ["run", "time"],
        "units": "1",
        "values": [[1000]],
    }
    numactl = facts["readings"][0]["dataset"]["coordinates"]
    assert numactl["distance"]["values"] == [[10, 21], [21, 10]]
    assert numactl["node"]["values"] == [0, 1]


def test_of_a_full_vmstat_the_counters_of_numa_are_shown(read, tmp_path):
    others = "".join(f"workingset_nodes{i} {i}\n" for i in range(180))
    (tmp_path / "vmstat").write_text(f"nr_free_pages 11\n{others}numa_hit 900\nnuma_hint_faults 20\npgmigrate_fail 3\n")
    lines = read("vmstat")[1].splitlines()
    at = lines.index("vmstat, 4 of 184 rows; --json shows all:")
    assert [line.split() for line in lines[at + 1 : at + 6]] == [
        ["counter", "value"],
        ["nr_free_pages", "11"],
        ["numa_hit", "900"],
        ["numa_hint_faults", "20"],
        ["pgmigrate_fail", "3"],
    ]
    assert len(json.loads(read("vmstat", "--json")[1])["readings"][0]["tables"][0]["rows"]) == 184


def test_json_says_why_there_is_no_run(read):
    facts = json.loads(read(GOLDEN / next(GOLDEN.glob("cases/079-*/input.txt")), "--json")[1])
    assert facts["readings"][0]["dataset"] is None
    assert "has nothing that a run has" in facts["readings"][0]["no_dataset"]


def test_several_files_make_one_run(read, tmp_path):
    (tmp_path / "a.txt").write_text("numa_hit 5\nnuma_hint_faults 2\nnuma_hint_faults_local 1\n")
    (tmp_path / "b.txt").write_text("Who knows?\nReally?\nnode 0 free: 4 MB\n")
    code, out, err = read("a.txt", "b.txt", "-o", "x.nc")
    assert code == 0
    assert "skipped: 1 line\n  b.txt, line 1: 'Who knows?': not a line of numactl -H or of a node's files\n" in out
    assert "saved x.nc" in err
    ds = runs.open("x.nc")
    assert (ds.numa_hint_faults.item(), ds.free_pages.item()) == (2, 1024)
    facts = json.loads(read("a.txt", "b.txt", "--json")[1])
    assert facts["file"] == "a.txt, b.txt"
    assert facts["skipped"][0]["file"] == "b.txt"


def test_what_does_not_fit_into_one_file(read, tmp_path):
    (tmp_path / "a.txt").write_text(golden("mixed.txt"))
    (tmp_path / "b.txt").write_text("==> node5/numastat <==\nnuma_hit 5\nlocal_node 5\n")
    code, out, err = read("a.txt", "b.txt", "-o", "x.nc")
    assert (code, out) == (2, "")
    assert "different machines" in err
    assert not (tmp_path / "x.nc").exists()


def test_a_folder_of_files(read, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "vmstat").write_text("numa_hit 5\nnuma_hint_faults 2\n")
    (tmp_path / "b" / "notes").write_text("nothing\n")
    out = read("b")[1]
    assert "  vmstat, line 1: 1 snapshot\n" in out
    assert out.endswith("skipped: 1 line\n  notes: looks like no format that numalab reads\n")


def test_standard_input_once(read, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"node 0 free: 4 MB\n")))
    assert read("-", "-")[2] == "numalab: standard input can be read once only; give - once\n"
    assert read("-")[0] == 0


def test_no_input_is_overwritten(read, tmp_path):
    (tmp_path / "a.nc").write_text("node 0 free: 4 MB\n")
    code, _, err = read("a.nc", "-o", "a.nc", "--force")
    assert code == 2
    assert "is the input a.nc, which would be lost" in err
