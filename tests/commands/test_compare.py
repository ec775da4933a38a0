"""``numalab compare``: what is printed, and the exit codes."""

import json
from pathlib import Path

import pytest

from numalab import runs
from numalab.readers import lkp, mmtests
from tests.command_line import caller
from tests.comparing import make_run
from tests.readers.helpers import GOLDEN

TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    runs.save(make_run([1000, 1200, 1400], [500, 700, 900]), "old.nc")
    runs.save(make_run([3000, 3100, 3200], [2900, 3000, 3100], kernel="3.17"), "new.nc")
    return caller(capsys, "compare")


def test_table_and_tests(cli):
    code, out, err = cli("old.nc", "patched=new.nc", "--rows", "numa_hint_faults,local*", "--effect", "10")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["old", "patched"]
    assert lines[3].split("  ")[0] == "Amean"
    assert "3100.00 *-158.33%*" in lines[3]
    head = next(i for i, line in enumerate(lines) if line.startswith("quantity"))
    # t = 1900 / √((200² + 100²) / 3) = 14.72, df = 50000² / (40000² / 2 + 10000² / 2) = 2.94; t(0.975, 2.94) = 3.22
    assert lines[head + 2].split() == [
        *(
            "numa_hint_faults",
            "patched",
            "3,",
            "3",
            "+158.3",
            "%*",
            "worse",
            "+123.7",
            "to",
            "+193.0",
            "%",
            "0.001",
            "29",
        ),
    ]
    assert lines[head + 3].split()[:7] == ["local_share%", "patched", "3,", "3", "+39.2", "points*", "better"]
    assert "signs: here of the change itself; in the table above, as MMTests prints it, + is better." in lines
    assert any(line.startswith("*: 2 of 2 changes would be rare as noise (p < 0.05; Welch") for line in lines)
    assert any(line.startswith("runs for it: on each side, to see a change of 10 %") for line in lines)
    assert "better: lower numa_hint_faults; higher local_share%" in lines


@pytest.mark.parametrize("style", ["mmtests", "lkp", "lkp-2014"])
def test_all_that_is_printed_reads_back(cli, style, tmp_path):
    """Even with the tests below the table, which are skipped, not taken for rows."""
    _, out, _ = cli("old.nc", "new.nc", "--style", style)
    _, table, _ = cli("old.nc", "new.nc", "--style", style, "--table")
    assert out.startswith(table)
    read = mmtests.parse if style == "mmtests" else lkp.parse
    count = sum(len(one.rows) for one in read(table).tables)
    assert sum(len(one.rows) for one in read(out).tables) == count
    assert read(table).skipped == []
    (tmp_path / "saved.txt").write_text(out)
    code, again, _ = cli("saved.txt", "--style", style, "--table")
    assert (code, again.splitlines()[-1]) == (0, table.splitlines()[-1])


def test_json(cli):
    code, out, _ = cli("old.nc", "new.nc", "--json", "--style", "lkp", "--rows", "proc-vmstat.numa_hint_faults")
    facts = json.loads(out)
    assert (code, facts["style"], facts["sides"], len(facts["rows"])) == (0, "lkp", ["old", "new"], 1)
    assert facts["rows"][0]["against_base"][0]["significant"] is True
    assert lkp.parse(facts["table"]).tables[0].rows[0].cells[1].mean == 3100


def test_a_pasted_report(cli):
    code, out, _ = cli(GOLDEN / "lkp" / "054.txt", "--runs", "6", "--style", "lkp")
    assert code == 0
    assert " -50.0 %*" in out
    # the share of local faults falls, but by less than the spread of its parts
    share = next(line for line in out.splitlines() if line.startswith("local_share%"))
    assert share.split()[:6] == ["local_share%", "new", "6,", "6", "-15.5", "points"]
    assert "number of runs unknown" not in out
    code, out, _ = cli(GOLDEN / "lkp" / "054.txt")
    assert code == 0
    assert "noise is unknown (number of runs unknown): no change here can be told from it." in " ".join(out.split())
    assert "give --runs N to have them tested" in " ".join(out.split())


def traced(label, *repetitions):
    return [str(TRACES / f"S4_hackbench_{label}_r{n}") for n in repetitions]


def test_of_single_runs_noise_is_unknown(cli):
    """The counters of the two traces are 317 and 364; what is neither good nor bad is left out."""
    code, out, _ = cli(*traced("pre", 1), *traced("post", 1))
    lines = out.splitlines()
    assert code == 0
    assert lines[1] == "Amean numa_pte_updates            317.00 (   0.00%)      364.00 ( -14.83%)"
    row = next(line for line in lines if line.startswith("numa_pte_updates"))
    assert row.split() == ["numa_pte_updates", "S4_hackbench_post_r1", "1,", "1", "+14.8", "%", "worse"]
    assert "noise is unknown (a single run): no change here can be told from it. Give each side" in " ".join(
        out.split()
    )
    assert not {"p", "*:"} & set(out.split())
    assert lines[-1] == "not shown: 41 of 50 quantities; --all shows them"
    assert len(lines) < 40
    assert "blocked_samples" not in out


def test_what_changed_beyond_noise_comes_first(cli):
    sides = [f"{label}={TRACES}/S4_hackbench_{label}_r*" for label in ("pre", "post")]
    _, out, err = cli(*sides)
    every = json.loads(cli(*sides, "--json")[1])["rows"]
    beyond = [row["quantity"] for row in every if row["against_base"][0]["significant"]]
    assert beyond == ["numa_migrate_calls", "setnuma", "small_imp_reject", "stick"]
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("quantity"))
    assert [line.split()[0] for line in lines[head + 2 : head + 7]] == [*beyond, "numa_pte_updates"]
    # chance is counted in all that was tested, not in what is shown
    assert f"*: 4 of {len(every)} changes would be rare as noise" in out
    assert "some 3 would be marked too" in " ".join(out.split())
    assert (err, lines[-1]) == ("", f"not shown: {len(every) - 13} of {len(every)} quantities; --all shows them")
    _, table, err = cli(*sides, "--table")
    assert out.startswith(table)
    assert err == lines[-1] + "\n"
    for how in (["--all"], ["--rows", "*"]):
        whole = cli(*sides, *how)[1]
        assert "blocked_samples" in whole
        assert "not shown" not in whole


def test_unnamed_columns_and_lost_lines_are_said(cli):
    _, out, _ = cli(GOLDEN / "mmtests" / "046.txt")
    assert "1 line was skipped, such as line 40 (row cut off)" in " ".join(out.split())
    _, out, _ = cli(GOLDEN / "mmtests" / "044.txt", "--rows", "numa_hit")
    assert "no names above these 6 columns; numbered from the left" in " ".join(out.split())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("old.nc",), "two or more sets of runs can be compared, only one, old, is given"),
        (("old.nc", "nope.nc"), "nope.nc: no such file or folder"),
        (("old.nc", "new.nc", "--rows", "zzz"), "--rows zzz: fits no quantity"),
        (("old.nc", "new.nc", "--runs", "0"), "expected a whole number >= 1"),
        (("old.nc", "new.nc", "--effect", "-3"), "expected a percentage above 0, got '-3'"),
        (("old.nc", "new.nc", "--effect", "nan"), "expected a percentage above 0, got 'nan'"),
        ((), "required"),
    ],
)
def test_what_is_refused(cli, args, words):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert words in err
