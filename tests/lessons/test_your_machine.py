"""The lesson on one's own machine: its samples, the map, the explorer, the problems."""

import re

import pytest

from numalab import _data
from numalab.diagnose import diagnose
from numalab.diagnose.catalog import CATALOG
from numalab.lessons import your_machine as lesson
from numalab.patch_threads.scan_overhead_cases import published
from numalab.readers import trace
from numalab.readers.mixed import read_text
from tests.readers.helpers import GOLDEN

#: Sample -> number of the field case it is taken from.
CASES = {
    "xfs_repair_4.0-rc1": "006", "xfs_repair_3.19": "006", "power_guest_counters": "001", "power_guest_nodes": "002",
    "guest_profile": "008", "two_tiers": "012", "numa01_two_kernels": "039", "netperf_two_kernels": "046",
    "perf_bench_3.7": "048", "huge_pages_under_load": "051", "database_server": "058", "four_nodes": "060",
    "migrations_each_second": "055", "task_of_eight_nodes": "035", "small_server": "026",
}  # fmt: skip


def test_every_file_is_a_sample_and_every_sample_has_a_file():
    files = {one.name.removesuffix(".txt") for one in _data.path("samples").iterdir() if one.name.endswith(".txt")}
    assert files == set(lesson.samples()) == set(CASES) | set(lesson.LOGS)
    titles = [one.title for one in lesson.samples().values()]
    assert len(set(titles)) == len(titles)
    assert all(one.source and one.what for one in lesson.samples().values())


@pytest.mark.parametrize("name", CASES)
def test_samples_are_lines_of_their_field_case(name):
    (folder,) = (GOLDEN / "cases").glob(f"{CASES[name]}-*")
    every = [line.rstrip() for line in (folder / "input.txt").read_text().splitlines()]
    own = [line.rstrip() for line in lesson.samples()[name].text.splitlines()]
    assert own
    assert set(own) <= set(every)


@pytest.mark.parametrize("name", lesson.LOGS)
def test_logs_are_of_their_traces(name):
    """Totals within a second of the trace's end: counters only grow, and little in a second."""
    one = lesson.samples()[name]
    ds = read_text(one.text, name).dataset()
    real = trace.load(one.source.removeprefix("data/traces/"))
    for counter in ("numa_hint_faults", "numa_pages_migrated"):
        ours, theirs = ds[counter].values[0], real[counter].values[0]
        assert ours[-1] - ours[0] == pytest.approx(theirs[-1] - theirs[0], rel=0.05)
    assert ds.sizes["time"] == 9


def test_the_runs_of_the_mail_are_the_published_ones():
    for name, kernel in (("xfs_repair_3.19", "3.19"), ("xfs_repair_4.0-rc1", "4.0-rc1")):
        counts = dict(line.split() for line in lesson.samples()[name].text.splitlines())
        for counter in ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"):
            assert int(counts[counter]) == published()["vmstat"][counter][kernel]
    assert lesson.telling() == lesson.MOVED


@pytest.mark.parametrize("name", [*CASES, *lesson.LOGS])
def test_findings_are_as_told(name):
    one = lesson.samples()[name]
    assert diagnose(read_text(one.text, name)).findings[0].id == one.finding


def test_every_thread_of_a_finding_has_its_notebook():
    assert {known.thread for known in CATALOG.values() if known.thread} == set(lesson.NOTEBOOKS)
    for notebook in lesson.NOTEBOOKS.values():
        assert re.fullmatch(r"\d\d_[a-z_]+", notebook)
    assert set(lesson.CLUES) == {one.finding for one in lesson.samples().values()}


def test_the_notebook_shows_what_the_threads_notebooks_are_called():
    place = lesson.machine()
    assert "Explained in notebook 30_scan_overhead" in place.verdict.value
    assert lesson.take(place, "database_server").startswith("node-full-foreign-allocations")


def test_what_is_to_be_typed_can_be_read(tmp_path):
    """Two looks with stamps, as the printed loop takes them, are one log."""
    assert 'echo "@ $t"; grep -E' in str(lesson.commands())
    text = "".join(f"@ {t}\n" + lesson.samples()["small_server"].text for t in (0, 60))
    place = lesson.machine()
    place.give(text)
    assert place.diagnosis.ids == ["balancing-off"]


# ---------------------------------------------------------------- map and explorer
def test_sides_on_the_map():
    """By hand: 9,197,961 of 34,816,515 faults are 26.4 %, 32,916,316 pages of 81,697,505 faults 40.3 of 100."""
    picture = lesson.on_the_map(lesson.pair())
    assert picture.points["left"] == pytest.approx((26.418, 3.527), abs=1e-3)
    assert picture.points["right"] == pytest.approx((26.642, 40.29), abs=1e-3)
    assert picture.counters.faults == 81_697_505
    assert list(lesson.on_the_map(lesson.machine()).points) == ["paste"]
    assert lesson.on_the_map(lesson.machine("power_guest_nodes")).points == {}


@pytest.mark.parametrize(
    ("preset", "finding"),
    [
        ("xfs_repair on 4.0-rc1", "page-ping-pong"),
        ("on 3.19", "not-enough-data"),
        ("POWER guest", "overhead-without-benefit"),
        ("two tiers", "tiering-churn"),
        ("settled", "nothing-wrong"),
        ("too short", "not-enough-data"),
    ],
)
def test_presets_of_the_explorer(preset, finding):
    explorer = lesson.explorer()
    explorer.preset(preset)
    # only illnesses have a confidence
    mark = ":" if finding == "not-enough-data" else " (confidence"
    assert f"Verdict: {finding}{mark}" in explorer.sentence


def test_failures_are_judged_beside_the_map():
    """Failures nine times the successes are 90 % of the tries."""
    for failed, expected in ((89, False), (90, True)):
        found = lesson.judge(share=95, moved=10, faults=10_000_000, failed=failed, demoted=0)
        assert ("migrations-fail" in found.ids) == expected


# ---------------------------------------------------------------- problems
def test_problems_on_illnesses_go_through_all_samples():
    exercise = lesson.exercise_illness()
    seen = []
    for seed in range(len(CASES)):
        problem = exercise.choose(seed)
        (one,) = [one for one in lesson.samples().values() if one.text.rstrip("\n") == problem.shown]
        assert problem.answer == one.finding
        assert problem.answer in problem.choices
        wrong = next(choice for choice in problem.choices if choice != problem.answer)
        assert exercise.check(wrong).startswith(f"✗ Not yet. {wrong} looks like this: {lesson.CLUES[wrong]}")
        assert exercise.check(problem.answer) == "✓ Right."
        seen.append(one.name)
    assert set(seen) == set(CASES)
    assert "<pre" in exercise.text.value


@pytest.mark.parametrize("seed", range(20))
def test_problems_on_the_share(seed):
    exercise = lesson.exercise_share()
    problem = exercise.choose(seed)
    rows = [line.split() for line in problem.shown.splitlines()]
    faults, local = (
        int(rows[k + 4][1]) - int(rows[k][1])
        for k in (1, 2)
    )  # fmt: skip
    assert problem.answer == pytest.approx(100 * local / faults)
    assert problem.is_right(round(problem.answer))
    whole = 100 * int(rows[6][1]) / int(rows[5][1])
    if not problem.is_right(whole):
        assert exercise.check(whole).endswith("That is the share since boot. Subtract first.")
