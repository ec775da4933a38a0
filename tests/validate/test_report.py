"""Scores and tables, on rows made by hand; and what README quotes."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from numalab.readers import trace
from numalab.validate import report
from numalab.validate.judge import Row

ROW = Row(
    case="S1_x", trace="S1_x", quantity="numa_hint_faults", units="1", kind="quantity", real=100.0, real_low=90.0,
    real_high=110.0, n_real=3, model=90.0, low=80.0, high=100.0, ratio=0.9, inside=True, strict=True, sign=None,
    fitted=False, counted=True,
)  # fmt: skip
OUT = replace(ROW, model=400.0, ratio=4.0, inside=False, strict=False, why="too high")
NEAR = replace(ROW, model=0.0, real=1.0, ratio=0.0, why="both as good as 0")
OFF = replace(ROW, counted=False, why="balancing is off")
SPREAD = replace(ROW, strict=False)
RIGHT = replace(ROW, case="S1_x: old -> new", trace="S1_x: old -> new", kind="effect", sign=True)
WRONG = replace(RIGHT, sign=False, inside=False, why="wrong sign")
UNCLEAR = replace(RIGHT, sign=None, counted=False, why="within its spread")
FITTED = replace(OUT, case="b_y", trace="b_y", fitted=True)
ROWS = [ROW, OUT, NEAR, OFF, SPREAD, RIGHT, WRONG, UNCLEAR, FITTED]
FACTS = {
    "rows": [row.to_dict() for row in ROWS],
    "notes": {"S1_x": ["no hog"]},
    "left_out": {"S3_z": "judged by the lock model"},
}


def test_scores():
    judged = [row for row in ROWS if not row.fitted]
    assert report.score(judged) == {"counted": 4, "inside": 3, "strict": 2, "zero": 1}
    assert report.signs(judged) == {"counted": 2, "right": 1, "size": 1}


def test_the_worst_come_first():
    milder = replace(OUT, ratio=0.4)
    nothing = replace(OUT, model=0.0, ratio=0.0)
    undefined = replace(OUT, model=None, ratio=None)
    found = report.worst([milder, OUT, nothing, WRONG, *ROWS[:1], OFF, undefined])
    assert found == [WRONG, nothing, undefined, OUT, milder]
    assert report.severity(milder) == pytest.approx(math.log(2.5))


def test_the_text_hides_nothing():
    text = report.text(FACTS)
    assert "S1_x\n  model: no hog\n" in text
    assert "b_y, may be fitted to\n" in text
    assert "S1_x: old -> new, after minus before\n" in text
    assert "OUTSIDE: too high" in text
    assert "(balancing is off)" in text
    assert "sign WRONG, size outside" in text
    assert "sign right, size inside" in text
    assert "  S3_z: judged by the lock model" in text
    # thread, use, rows, inside, share, strictly, both 0, effects, sign right, size inside
    lines = [line.split() for line in report.score_table(ROWS).splitlines()]
    assert ["S1", "only", "judges", "4", "3", "75%", "2", "1", "2", "1", "1"] in lines
    assert ["all", "may", "be", "fitted", "to", "1", "0", "0%", "0", "0", "0", "0", "0"] in lines


def test_what_is_not_shown_is_counted():
    assert "and 1 more" in report.worst_table([OUT, WRONG], limit=1)
    assert report.worst_table([ROW]) == "no row is outside"


def test_numbers():
    assert [report.number(value) for value in (None, 0.0, 0.123456, 12.345, 999.6, 8293.0)] == [
        "-", "0", "0.123", "12.3", "1,000", "8,293",
    ]  # fmt: skip


# ---------------------------------------------------------------- what is shipped


def test_the_stored_results_are_of_every_trace():
    facts = report.stored()
    judged = {name for names in facts["cases"].values() for name in names}
    judged |= {name for name in trace.names() if name.startswith("S3_")}
    assert judged == set(trace.names())
    assert {row.trace.split("_")[0] for row in report.rows_of(facts)} == {name.split("_")[0] for name in trace.names()}
    assert facts["left_out"] == {}


def test_the_stored_fitted_rows_are_those_that_may_be():
    for row in report.rows_of(report.stored()):
        thread = report.thread_of(row)
        if row.fitted and thread != "S3":
            assert thread in ("b", "S0", "S2"), row
        if thread in ("S1", "S4", "a", "c", "d", "e", "f"):
            assert not row.fitted, row


def test_the_readme_quotes_the_stored_results():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert report.readme(report.stored()) in text
