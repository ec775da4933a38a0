"""Whole validations of a few traces: what is judged, what is not, what survives an interruption."""

import json
import shutil

import pytest

from numalab import validate
from numalab.cli import main
from numalab.readers import trace
from numalab.validate import simulated

BOUND, OFF, LOCK = "b_wrongnode_bound_2x2_r1", "d_cow_2x2_nb0_r1", "S3_mttcg_lookup_n2_exclusive_r2"
PAIR = ("S0_data_n16_nb1_trap_r1", "S0_data_n16_nb1_skip_r1")


@pytest.fixture(scope="module")
def unknown(tmp_path_factory):
    """The folder of a run whose load the model cannot follow."""
    folder = tmp_path_factory.mktemp("runs") / "unknown_r1"
    with trace.folder(OFF) as packed:
        shutil.copytree(packed, folder)
    meta = json.loads((folder / "meta.json").read_text())
    meta["workload"]["command"] = "stress-ng --vm 4"
    (folder / "meta.json").write_text(json.dumps(meta))
    return str(folder)


@pytest.fixture(scope="module")
def result(unknown):
    return validate.validate([BOUND, OFF, *PAIR, LOCK, unknown], seeds=3, jobs=1)


def rows(result, trace):
    return {row.quantity: row for row in result.rows if row.trace == trace}


def test_one_task_on_the_wrong_node(result):
    """All 8192 pages follow in the first scan; which is what fitting was allowed to."""
    found = rows(result, BOUND)
    assert all(row.fitted for row in found.values())
    for name, real in (("numa_pte_updates", 8293), ("numa_hint_faults", 8289), ("numa_pages_migrated", 8219)):
        assert found[name].real == real
        assert found[name].model == pytest.approx(8192, rel=0.03)
        assert found[name].inside
    # samples are a second apart, and in both the pages need 0.7 s once marked
    assert found["time_to_local"].model == pytest.approx(found["time_to_local"].real, abs=1.0)
    assert found["pages_over_time"].inside
    assert not found["task_moves"].counted
    assert found["task_moves"].why == "tasks are bound to a node"


def test_without_balancing_only_the_work_counts(result):
    found = rows(result, OFF)
    assert {name for name, row in found.items() if row.counted} == {"slowest_worker", "fastest_worker", "page_rate"}
    assert found["numa_hint_faults"].why == "balancing is off"


def test_what_the_model_cannot_follow_is_said(result):
    ((name, why),) = result.left_out
    assert name == "unknown_r1"
    assert "stress-ng" in why
    assert "/" not in why


def test_locks_are_judged_by_the_lock_model(result):
    """Two processes on two host CPUs, every look-up alone: slower than with the lock shared."""
    found = rows(result, LOCK.removesuffix("_r2"))
    assert set(found) == {"contended_share", "waiting_share", "ratio"}
    assert found["ratio"].real < 1
    assert found["ratio"].n_real == 1
    # a single repetition: the widest relative spread in the thread, 1.05, is its uncertainty
    assert (found["ratio"].real_low, found["ratio"].strict) == (0, False)


def test_effects_of_a_switch(result):
    """Paired by repetition, here the first of S0, which may be fitted to; parts of a quantity are left out."""
    found = rows(result, "S0_data_n16: nb1_trap -> nb1_skip")
    before, after = rows(result, PAIR[0].removesuffix("_r1")), rows(result, PAIR[1].removesuffix("_r1"))
    assert found["numa_pte_updates"].real == after["numa_pte_updates"].real - before["numa_pte_updates"].real
    assert all(row.fitted for row in found.values())
    assert {row.kind for row in found.values()} == {"effect"}
    assert "pte_updates_third_1" not in found


def test_the_same_seeds_give_the_same_rows(result):
    again = validate.validate([BOUND], seeds=3)
    assert again.rows == [row for row in result.rows if row.trace == BOUND]


def test_nothing_to_judge(unknown):
    with pytest.raises(validate.ValidateError, match=r"^nothing can be judged: unknown_r1: "):
        validate.validate([unknown], seeds=1)


def test_an_interruption_keeps_finished_cases(monkeypatch):
    real = simulated.run

    def run(case, seeds):
        if case.name == OFF:
            raise KeyboardInterrupt
        return real(case, seeds)

    monkeypatch.setattr(simulated, "run", run)
    found = validate.validate([BOUND, OFF], seeds=1, jobs=1)
    assert found.interrupted
    assert {row.trace for row in found.rows} == {BOUND}
    with pytest.raises(KeyboardInterrupt):
        validate.validate([OFF], seeds=1)


# ---------------------------------------------------------------- the command


def test_the_command_prints_rows_and_writes_figures(tmp_path, capsys):
    assert main(["validate", BOUND, "--seeds", "1", "--json", "-o", str(tmp_path / "out")]) == 0
    printed = json.loads(capsys.readouterr().out)
    keys = {"trace", "quantity", "real", "real_low", "real_high", "model", "low", "high", "ratio", "inside"}
    assert all(keys <= set(row) for row in printed)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {f"{BOUND}.png", f"{BOUND}.json", "validation.json"}
    assert json.loads((tmp_path / "out" / f"{BOUND}.json").read_text()) == printed
    assert (tmp_path / "out" / f"{BOUND}.png").read_bytes()[:4] == b"\x89PNG"


def test_the_command_prints_tables(capsys):
    assert main(["validate", BOUND, "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{BOUND}, may be fitted to\n")
    assert "Outside, worst first, on traces that may be fitted to:" in text


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["nothing"], "nothing: expected the name of a packed trace (data/traces) or the folder of a run"),
        (["--stored", "--seeds", "3"], "--stored runs nothing: it goes without RUN, --seeds, --decisions and -o"),
        (["--stored", BOUND], "--stored runs nothing: it goes without RUN, --seeds, --decisions and -o"),
        (["--decisions", "-o", "x"], "--decisions has no seeds and no figures: it goes without --seeds and -o"),
    ],
)
def test_wrong_arguments(args, problem, capsys):
    assert main(["validate", *args]) == 2
    assert capsys.readouterr().err == f"numalab: {problem}\n"
