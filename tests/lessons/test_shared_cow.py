"""The lesson of the shared copy-on-write thread: problems, the explorer, and what its notebook says in words."""

import re

import numpy as np
import pytest

from numalab import plots
from numalab.compile import compile_layout
from numalab.kernel import Kernel
from numalab.lessons import shared_cow as lesson
from numalab.machine import machine
from numalab.model import pagefilter
from numalab.patch_threads.shared_cow_cases import MAIN, READINGS, VARIANTS, Case, measure
from numalab.widgets.times import reached
from numalab.workloads import shared_cow, workload


@pytest.fixture(scope="module")
def runs():
    """The mail's three runs."""
    return {name: one.run() for name, one in lesson.three().items()}


# ---------------------------------------------------------------- what is run
def test_the_runs_are_the_replays():
    for setup, label in zip(lesson.three().values(), ("off", "before", "patched"), strict=True):
        assert Kernel(setup.kernel).replace(**setup.switches) == MAIN[label]
        assert setup.machine == READINGS[144].machine
        made = workload(setup.workload, machine(setup.machine), **setup.arguments)
        assert made == shared_cow(288, 1_000_000, 10, READINGS[144].pass_ms)
        options = {name: value for name, value in setup.options.items() if name != "every"}
        assert options.pop("numa_balancing", 1) == (0 if label == "off" else 1)
        assert options == {"remote_cost": 0, "unmap_ns": READINGS[144].per_mapping_ns, "step_us": 4000}


def test_passes_and_loss_are_the_replays(runs):
    """What is recorded, and how often, changes nothing."""
    case = Case("before", READINGS[144], MAIN["before"])
    again = measure(case, case.run([0]))
    before = runs[lesson.BEFORE_NAME]
    assert lesson.passes(before) == pytest.approx(again.passes[0], rel=1e-3)
    assert lesson.lost(runs) == pytest.approx(100 * (1 - lesson.passes(before) / lesson.passes(runs["balancing off"])))
    assert lesson.lost_words(runs).endswith("the mail: 4.6 %")


def test_what_the_loss_is_made_of(runs):
    """The CPU time lost is waiting, migrations, hint faults, and what scans cost: 65 ns for each PTE update."""
    before, off = runs[lesson.BEFORE_NAME], runs[lesson.OFF_NAME]
    waiting, migrations, faults, scans = lesson.loss_parts(runs)
    run_s = [float(ds.task_run_ms.values[0, -1].sum()) / 1000 for ds in (before, off)]
    assert waiting.seconds == pytest.approx(run_s[1] - run_s[0], rel=1e-6)
    moved = int(before.numa_pages_migrated[0, -1] - before.numa_pages_migrated[0, 0])
    # 1.5 us to migrate, 0.6 to copy, 0.508 for each of 288 mappings
    assert migrations.seconds == pytest.approx(moved * (1.5 + 0.6 + 288 * 0.508) / 1e6)
    assert faults.seconds == pytest.approx(faults.number * 1.2 / 1e6)
    # each hint fault was a PTE update before
    assert scans.seconds == pytest.approx(faults.number * 65e-9, abs=0.02 * migrations.seconds)
    total = waiting.seconds + migrations.seconds + faults.seconds + scans.seconds
    assert total == pytest.approx(lesson.lost(runs) / 100 * run_s[1])
    last = str(lesson.loss_table(runs)).splitlines()[-1].split()
    assert last == ["together", f"{total:.2f}", f"{lesson.lost(runs):.2f}", "%"]


def test_the_explorer_begins_with_the_mails_runs():
    explorer = lesson.explorer()
    sides = explorer._sides(explorer.values)
    three = lesson.three()
    assert {name: one.call([0]) for name, one in sides.items()} == {
        name: three[name].call([0]) for name in ("4.15", "with the patch")
    }


@pytest.mark.parametrize(
    ("values", "name", "kernel"),
    [
        ({"limit": 1}, "with the patch", VARIANTS["the patch: mapcount (4.16)"]),
        ({"limit": 5}, "limit of 5", VARIANTS["limit of 5 processes"]),
        ({"limit": 288}, "limit of 288", VARIANTS["limit of 288"]),
        ({"beside": "off", "limit": 5}, "balancing off", MAIN["off"]),
    ],
)
def test_controls_and_switches(values, name, kernel):
    explorer = lesson.explorer()
    sides = explorer._sides(explorer.values | values | {"readers": 5, "thousands": 100, "cost_ns": 0, "seconds": 4})
    assert list(sides) == ["4.15", name]
    assert Kernel(sides[name].kernel).replace(**sides[name].switches) == kernel
    for side in sides.values():
        assert side.arguments == {"processes": 5, "size_ints": 100_000, "seconds": 4, "pass_ms": READINGS[144].pass_ms}
        assert side.options["unmap_ns"] == 0
        assert side.seconds == 4
    assert ("numa_balancing" in sides[name].options) == (name == "balancing off")


def test_every_preset_can_be_run():
    explorer = lesson.explorer()
    for values in explorer._presets.values():
        for side in explorer._sides(explorer.values | values).values():
            compile_layout(machine(side.machine), workload(side.workload, machine(side.machine), **side.arguments))


def test_the_sentence_tells_waiting_moves_and_passes(runs):
    """By hand from the recorded numbers: 288 readers for 10 s, 977 pages, passes of 1,000,000 integers."""
    two = {name: runs[name] for name in ("4.15", "with the patch")}
    before = runs["4.15"]
    waited = float(before.task_wait_ms.values[0, -1].sum()) / 288 / 10_000
    moves = int(before.numa_pages_migrated.values[0, -1]) / 977
    done = [float(one.task_work_pages.values[0, -1].sum()) * 1024 / 1e6 / 10 for one in two.values()]
    assert lesson.waiting(two).alt == (
        f"4.15: in 10.0 s readers waited {100 * waited:.1f} % of the time, a page moved {moves:.1f} times; "
        f"{done[0]:,.0f} passes a second. with the patch: in 10.0 s readers waited 0.0 % of the time, a page moved "
        f"0.0 times; {done[1]:,.0f} passes a second ({100 * (done[1] / done[0] - 1):+.1f} %)."
    )


def test_a_run_that_has_just_begun_can_be_drawn():
    """A side that is done beside one that is not: its passes a second are compared, not its passes."""
    sides = lesson.three()
    going = sides["4.15"].start([0])
    going.advance(0.001)
    begun = lesson.waiting({"a": going.dataset(), "b": going.dataset()}, seconds=10)
    assert re.match(r"a: in 0\.\d s readers waited 0\.0 % of the time", begun.alt)
    assert begun.figure.axes[0].get_title(loc="left") == "288 readers of 1,000,000 integers"
    while reached(going.dataset()) < 1:
        going.advance(0.01)
    part = lesson.waiting({"a": going.dataset(), "b": sides["balancing off"].run()}, seconds=10).alt
    assert abs(float(re.search(r"\(([+-][\d.]+) %\)", part).group(1))) < 20


# ---------------------------------------------------------------- what the notebook says
def test_pages_do_not_come_to_rest_without_the_patch(runs):
    two = {name: runs[name] for name in ("4.15", "with the patch")}
    before, after = plots.whereabouts(two).sides
    assert len(before.holders) >= 5
    assert after.holders == [0]
    assert after.share[:, 0].min() == 100


def test_moves_come_in_waves_of_scans(runs):
    """Two seconds after the start, two readers on a CPU each have run for one; not much moves before."""
    (line, _) = plots.page_moves({name: runs[name] for name in ("4.15", "with the patch")}).parts[0].lines
    until = dict(zip(line.times.round(2).tolist(), line.middle.tolist(), strict=True))
    assert until[1.8] < 2
    assert until[2.4] > 5
    assert until[10.0] > 30
    # half of all moves within a tenth of the time
    steps = np.sort(np.diff(line.middle))[::-1]
    assert steps[: len(steps) // 10].sum() > 0.5 * steps.sum()


def test_waiting_and_moves_go_together(runs):
    before = runs["4.15"]
    waited = np.diff(before.task_wait_ms.values[0].sum(axis=1))
    moved = np.diff(before.numa_pages_migrated.values[0])
    assert np.corrcoef(waited, moved)[0, 1] > 0.7


def test_no_limit_below_the_readers_differs_from_the_patch(runs):
    assert lesson.comes_back(runs) == lesson.ALL
    assert lesson.comes_back(runs, 287) == lesson.ALL
    assert lesson.comes_back(runs, 288) == lesson.NONE


def test_two_readers_are_followed_under_a_limit_and_not_with_the_patch():
    limited, patched = lesson.after_them({name: one.run() for name, one in lesson.moved().items()}).parts[0].lines
    before = limited.times < lesson.MOVED_S
    assert limited.middle[before].max() == 0
    assert limited.middle[limited.times > lesson.MOVED_S + 1].min() == 100
    assert patched.middle.max() == 0


def test_a_smaller_array_is_no_less_trouble():
    """Ten times fewer pages, each met ten times as often: what the second exercise with the explorer finds."""
    waited = []
    for ints in (100_000, 1_000_000):
        ds = lesson.setup(ints=ints).run()
        waited.append(float(ds.task_wait_ms.values[0, -1].sum()))
    assert waited[0] > 0.5 * waited[1]


def test_without_the_cost_of_unmapping_moves_stay_and_waiting_goes(runs):
    free, before = lesson.setup(cost_ns=0).run(), runs["4.15"]
    assert free.numa_pages_migrated.values[0, -1] > 0.3 * before.numa_pages_migrated.values[0, -1]
    assert free.task_wait_ms.values[0, -1].sum() < 0.1 * before.task_wait_ms.values[0, -1].sum()


def test_what_a_migration_takes():
    """1.5 us, 0.6 us for the copy, and the fitted cost for each of 288 processes: 89.4 us, if it is 303 ns."""
    unmap_us = 288 * READINGS[144].per_mapping_ns / 1000
    whole = 2.1 + unmap_us
    assert str(lesson.costs()).splitlines()[-1].split() == ["288", f"{whole:.1f}", f"{100 * unmap_us / whole:.0f}", "%"]


def test_the_mails_table():
    """Passes over 288 readers and 10 s; 1 - 2,021,534 / 2,118,782 is 4.59 %."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in str(lesson.mail_table()).splitlines()[2:]]
    assert rows == [
        ["off", "2,118,782", "735.7", "0.00 %"],
        ["on, before the patch", "2,021,534", "701.9", "4.59 %"],
        ["on, with the patch", "2,107,979", "731.9", "0.51 %"],
    ]
    mail = lesson.mail_and_model().series["the mail"]
    assert mail["before the patch (fitted)"].middle == pytest.approx(4.59, abs=5e-3)
    assert mail["with the patch"].middle == pytest.approx(0.51, abs=5e-3)


def test_more_readers_lose_more_and_with_the_patch_none():
    series = lesson.by_readers().series
    middles = [one.middle for one in series["4.15"].values()]
    assert middles == sorted(middles)
    assert max(one.middle for one in series["with the patch"].values()) < 0.1


def test_rows_that_do_not_hold_are_shown_with_reasons():
    against = lesson.not_held()
    assert against
    assert all(one.note for one in against)
    shown = {one.claim for one in lesson.claims()}
    assert {one.claim for one in against} <= shown
    assert not [one for one in lesson.claims() if one.published == "(not given)"]


def test_a_single_readers_array_stays_behind_under_page_count():
    _, followed, _ = lesson.stored()
    assert followed["page_count (5.17-6.9)"].alone == 0
    assert followed["maybe_shared (6.18)"].alone == followed["the patch: mapcount (4.16)"].alone == 1


def test_real_readers_in_order_of_fork():
    """Passes as the traces' own logs print them: reader 0 did 320, reader 15 did 4066, all 22,337."""
    picture = lesson.real_readers()
    before = picture.panels_of["as in 4.15"]["real kernel, run 2"]
    assert (before[0], before[15], before.sum()) == (320, 4066, 22_337)
    for title, least, most in (("as in 4.15", 3, 10), ("with the patch", 0.8, 1.2)):
        later = picture.later_over_earlier(title)
        assert all(least < later[f"real kernel, run {rep}"] < most for rep in (2, 3))
        assert len(picture.panels_of[title]["model"]) == 16


# ---------------------------------------------------------------- problems
@pytest.mark.parametrize("seed", range(30))
def test_problems_on_moves(seed):
    """The model's migration filter says the same of every fault, from the printed text alone."""
    problem = lesson.exercise_moves().choose(seed)
    page, last = map(int, re.search(r"on node (\d), the fault before these came from node (\d)", problem.text).groups())
    faults = list(map(int, problem.text.splitlines()[1].split()))
    moves = 0
    for node in faults:
        no = np.array([False])
        (decides,) = pagefilter.branch(no, np.array([last != node]), no, no, np.array([True]))
        if pagefilter.ALLOWS[decides] and page != node:
            page, moves = node, moves + 1
        last = node
    assert problem.answer == moves


def test_problems_on_moves_have_some():
    answers = [lesson.exercise_moves().choose(seed).answer for seed in range(40)]
    assert np.mean(answers) > 1.5
    assert len(set(answers)) >= 4


#: What each kernel's test says of a copy-on-write page, from the words of the problem.
def left_alone(kernel, mappers, text):
    file, pinned = "mapped from its file" in text, "pinned" in text
    if kernel == "4.15":
        return False
    if kernel == "4.16":
        return mappers > 1
    if kernel == "4.15 with a limit of 5":
        return mappers >= 6
    if kernel == "5.17":  # one reference more for the page cache, one for the device
        return mappers + file + pinned > 1
    return mappers > 1 or pinned


def test_problems_on_the_scanners_test():
    seen = set()
    for seed in range(80):
        exercise = lesson.exercise_test()
        problem = exercise.choose(seed)
        kernel, mappers = re.match(r"Kernel (.*?)\. A page .*\nProcesses that map it: (\d+)\.", problem.text).groups()
        expected = "MAP_SHARED" not in problem.text and left_alone(kernel, int(mappers), problem.text)
        assert problem.answer == (lesson.SKIPPED if expected else lesson.TRAPPED), problem.text
        wrong = lesson.TRAPPED if expected else lesson.SKIPPED
        assert exercise.check(wrong).startswith("✗ Not yet. First: is the page copy-on-write")
        seen.add((kernel, problem.answer))
    assert len(seen) == 9  # 4.15 leaves nothing alone


@pytest.mark.parametrize("seed", range(30))
def test_problems_on_the_time_under_way(seed):
    problem = lesson.exercise_gone().choose(seed)
    words = r"page\. (\d+) processes map ([\d,]+) pages; each page moves (\d+) times"
    mappers, pages, moves = (int(number.replace(",", "")) for number in re.search(words, problem.text).groups())
    share = pages * moves * (2 + 0.3 * mappers) / 1e6
    assert problem.answer == pytest.approx(100 * share)
    assert share < 1
    assert not problem.is_right(problem.answer / mappers)
