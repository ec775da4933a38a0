"""``numalab diagnose``: what is printed, and the exit codes."""

import json

import pytest

from numalab import runs
from tests.command_line import caller
from tests.comparing import make_run
from tests.readers.helpers import GOLDEN

STORM = GOLDEN / "cases" / "006-xfs-repair-4.0rc1-vmstat-storm" / "input.txt"


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "storm.txt").write_bytes(STORM.read_bytes())
    runs.save(make_run([5000, 5100], [4900, 5000]), "run.nc")
    return caller(capsys, "diagnose")


def test_text(cli):
    code, out, err = cli("storm.txt")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "page-ping-pong, 4.0-rc1 (illness, confidence high)"
    assert "    numa_pages_migrated, 4.0-rc1: 32,916,316 pages   [storm.txt:29]" in lines
    assert "  Kernel 4.0: b191f9b106ea keeps the write bit over a hint fault; 4.0-rc1 to rc4 are without" in lines
    # (7 · 84,010,995 + 5000 · 81,697,505 + 19 · 32,916,316) / 10⁶ = 409,701
    assert "4.0-rc1: 409,701 million memory accesses (mmtests' AutoNUMA cost)" in out
    assert max(map(len, lines)) <= 100


def test_json(cli):
    code, out, _ = cli("storm.txt", "--json")
    assert code == 0
    data = json.loads(out)
    assert [one["id"] for one in data["findings"]] == ["page-ping-pong"]
    assert {"what": "numa_pages_migrated, 4.0-rc1", "value": 32916316.0, "units": "pages"}.items() <= data["findings"][
        0
    ]["evidence"][0].items()


def test_a_run(cli):
    code, out, _ = cli("run.nc")
    assert code == 0
    assert out.startswith("nothing-wrong (verdict, confidence high)")


def test_too_little_has_no_confidence(cli, tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("numa_pte_updates 40\nnuma_hint_faults 30\nnuma_hint_faults_local 10\nnuma_pages_migrated 5\n")
    _, out, _ = cli(str(few))
    assert out.startswith("not-enough-data (verdict)\n")
    assert "quote it beside tables of mmtests" in out
    assert "quote it to say what share of the machine" in " ".join(out.split())
    data = json.loads(cli(str(few), "--json")[1])
    assert data["findings"][0]["confidence"] is None
    assert len(data["costs"][0]["meaning"]) == 3


def test_standard_input(cli, monkeypatch):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STORM.read_bytes())))
    code, out, _ = cli("-")
    assert code == 0
    assert "[<stdin>:29]" in out


def test_bad_input(cli):
    code, out, err = cli("nowhere.txt")
    assert (code, out) == (2, "")
    assert err == "numalab: nowhere.txt: No such file or directory\n"
    code, _, err = cli("-", "-")
    assert code == 2
    assert "once only" in err
