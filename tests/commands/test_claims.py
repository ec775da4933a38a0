"""``numalab claims``: rows, counts, and the exit codes."""

import json

import pytest

from numalab import patch_threads
from numalab.cli import main
from numalab.patch_threads import Claim, Replay

KEYS = ["thread", "claim", "source", "published", "model", "low", "high", "real", "holds", "note", "tolerance"]


@pytest.fixture
def cli(capsys, monkeypatch):
    """The command with two threads ready, which answer at once."""
    asked = []

    def replay(name, **options):
        asked.append((name, options))
        rows = [
            Claim(name, "ratio", "<id@x>", "2.156", 2.0, 1.5, 2.5, 1.3, True, tolerance="within 10 %"),
            Claim(name, "time [s]", "<id@x>", "40 s", float("inf"), None, None, None, False, "late"),
            Claim(name, "cost", "<id@x>", "0.95", 0.95, None, None, None, None, "fitted to it"),
        ]
        fitted = {"cost_ns": {"value": 1500, "to": "0.95"}}
        return Replay(name, claims=rows, results={"fitted": fitted})

    monkeypatch.setattr("numalab.patch_threads.claims.replay", replay)
    monkeypatch.setattr("numalab.patch_threads.claims.ready", lambda: ["convergence", "policy_lock"])

    def call(*args):
        code = main(["claims", *args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    call.asked = asked
    return call


def test_all_that_are_ready_from_their_stored_results(cli):
    code, out, err = cli()
    assert code == 0
    assert cli.asked == [(name, {"stored": True}) for name in ("convergence", "policy_lock")]
    assert err == "not replayed yet, only planned: shared_cow, scan_overhead, marginal_moves\n"
    rows = [line.split() for line in out.splitlines()]
    assert ["all", "6", "4", "2", "50", "%"] in rows
    assert ["policy_lock", "3", "2", "1", "50", "%"] in rows
    assert ["policy_lock", "cost_ns", "1,500", "0.95"] in rows
    assert patch_threads.THREADS["convergence"].title in out
    ratio = next(line for line in out.splitlines() if line.startswith("ratio "))
    assert ratio.split() == ["ratio", "2.156", "2", "1.5", "..", "2.5", "1.3", "within", "10", "%", "yes"]


def test_rows_for_programs(cli):
    code, out, err = cli("policy_lock", "--json")
    rows = json.loads(out)
    assert (code, err) == (0, "")
    assert [list(row) for row in rows] == [KEYS] * 3
    assert rows[0]["real"] == 1.3
    assert [row["tolerance"] for row in rows] == ["within 10 %", "", ""]
    assert [row["holds"] for row in rows] == [True, False, None]
    assert rows[1]["model"] is None
    assert "never" in rows[1]["note"]


def test_some_threads(cli):
    cli("policy_lock", "policy_lock")
    assert cli.asked == [("policy_lock", {"stored": True})]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("convergance", "no patch thread 'convergance'; did you mean \"convergence\"?"),
        ("shared_cow", "the thread shared_cow is planned, not replayed yet; ready: convergence, policy_lock"),
    ],
)
def test_what_there_is_not(cli, name, message):
    assert cli(name) == (2, "", f"numalab: {message}\n")
    assert cli.asked == []
