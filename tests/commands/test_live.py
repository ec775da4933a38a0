"""``numalab live``: what is printed, and the exit codes."""

import json

import numpy as np
import pytest

from numalab import live, runs
from numalab.live import Live
from tests.command_line import caller


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return caller(capsys, "live", "shared-cow")


@pytest.fixture
def fake(monkeypatch):
    """Answer at once: two readers, looked at twice while they lived, once waiting."""
    calls = []

    def shared_cow(processes, seconds, **options):
        calls.append((processes, seconds, options))
        return Live(
            1_000_000,
            seconds,
            np.array([600, 1400]),
            [0.0, 0.25, 2.5],
            [np.array([0, 0]), np.array([60, 140]), np.array([600, 1400])],
            [np.array([-1, -1]), np.array([0, 2]), np.array([-1, -1])],
            {"numa_pte_updates": [5, 6, 1005], "pgmigrate_success": [1, 1, 1]},
            ["this machine has one NUMA node"],
        )

    monkeypatch.setattr(live, "shared_cow", shared_cow)
    return calls


def test_text(cli, fake, tmp_path):
    code, out, err = cli("--processes", "2", "--seconds", "2", "--folder", tmp_path)
    assert (code, err) == (0, "")
    assert fake == [(2, 2.0, {"ints": 1_000_000, "folder": tmp_path})]
    assert out.splitlines() == [
        "2 readers of 1,000,000 ints, 2 s each, 2.5 s in all",
        "passes: 2,000 in all",
        "a reader: 600 to 1,400, median 1,000; fastest / slowest 2.33",
        "waiting for a page, disk or lock (state D): 50.0 % of 2 looks at readers",
        "/proc/vmstat, of the whole machine:",
        "  numa_pte_updates               +1,000",
        "  pgmigrate_success                  +0",
        "note: this machine has one NUMA node",
    ]


def test_json_and_dataset(cli, fake, tmp_path):
    code, out, err = cli("--processes", 2, "--seconds", 2, "--folder", tmp_path, "--json", "-o", "run.nc")
    assert code == 0
    facts = json.loads(out)
    assert (facts["passes"], facts["total"], facts["waiting_share"]) == ([600, 1400], 2000, 0.5)
    assert facts["counters"] == {"numa_pte_updates": 1000, "pgmigrate_success": 0}
    assert "saved run.nc" in err
    assert runs.open("run.nc").sizes["task"] == 2
    code, _, err = cli("--processes", 2, "--seconds", 2, "--folder", tmp_path, "-o", "run.nc")
    assert code == 2
    assert "exists" in err
    assert len(fake) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--processes", "0", "--seconds", "1"), "expected a whole number >= 1, got '0'"),
        (("--processes", "1", "--seconds", "nan"), "expected seconds above 0, got 'nan'"),
        (("--processes", "1"), "required: --seconds"),
        (("--processes", "1", "--seconds", "1", "--folder", "nowhere"), "nowhere: expected a folder"),
    ],
)
def test_wrong_arguments(cli, fake, args, message):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert fake == []
