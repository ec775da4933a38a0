"""The lesson "Design your own"."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from numalab import simulate
from numalab.kernel import Kernel
from numalab.lessons import design_your_own as lesson
from numalab.workload import Binding


@pytest.fixture(scope="module")
def sweep():
    return simulate(
        lesson.my_machine(), lesson.my_workload(), lesson.KERNEL,
        seconds=20, seeds=range(6), step_us=lesson.STEP_US, scan_size_mb=list(lesson.SIZES),
    )  # fmt: skip


def test_file_and_python_describe_the_same():
    described = lesson.described()
    assert described.machine == lesson.my_machine()
    assert described.workload == lesson.my_workload()
    assert described.kernel == Kernel(lesson.KERNEL)
    assert (described.run.seconds, described.run.step_ms) == (lesson.SECONDS, lesson.STEP_US / 1000)


def test_what_is_misspelt_is_named():
    assert lesson.refused("first_tuoch", "first_touch") == (
        'mine.toml: workload.regions[0].first_tuoch: unknown key; did you mean "first_touch"?'
    )
    assert lesson.refused("first_touch", "first_touch") == "accepted"


def test_switches_are_found_by_a_word():
    assert str(lesson.switches("early")).splitlines()[2].split()[:2] == ["early_private", "True"]
    assert len(str(lesson.switches("scan")).splitlines()) > 10


@pytest.mark.parametrize("values", [{}, {"count": 2, "nodes": 3, "size_mb": 16}])
def test_the_explorers_call_simulates_the_same(values):
    explorer = lesson.explorer()
    explorer.set(seconds=4, **values)
    names: dict = {}
    exec(explorer.call.split("\n\nfrom numalab import")[0], names)
    xr.testing.assert_identical(names["ds"].drop_attrs(), next(iter(explorer.results.values())).drop_attrs())


def test_the_explorer_begins_with_the_notebooks_load():
    explorer = lesson.explorer()
    one = next(iter(explorer._sides(explorer.values).values()))
    assert (one.machine, one.workload) == (lesson.my_machine(), lesson.my_workload())


# ---------------------------------------------------------------- what the prose says of the results


def test_sizes_beyond_the_heap_give_the_same_runs(sweep):
    """A heap of 64 MB and the rest of the process fit into one scan of 128 MB, so 256 changes nothing."""
    parts = lesson.by_value(sweep)
    same = [lesson.quantity_of(parts[f"scan_size_mb={mb}"], "convergence_s") for mb in (128, 256)]
    assert np.array_equal(*same, equal_nan=True)
    other = lesson.quantity_of(parts["scan_size_mb=64"], "convergence_s")
    assert not np.array_equal(same[0], other, equal_nan=True)


def test_the_answer_to_the_prediction(sweep):
    picture = lesson.response(sweep, "scan_size_mb", "convergence_s")
    assert list(picture.groups) == ["32", "64", "128", "256"]
    assert lesson.order(picture) in lesson.ORDERS
    # equal means from 128 to 256 MB: neither order can hold
    assert lesson.order(picture) == "neither"


def test_who_is_pinned_has_more_local_faults():
    load = lesson.my_workload()
    pinned = replace(load, bindings=(Binding(nodes="process"),))
    shares = [
        simulate(lesson.my_machine(), one, lesson.KERNEL, seconds=20, seeds=[0], step_us=lesson.STEP_US)
        .numa.local_share()
        .item()
        for one in (load, pinned)
    ]
    assert shares[1] > shares[0]


def test_a_comparison_in_words():
    variants = lesson.variants()
    assert [ds.sizes["run"] for ds in variants.values()] == [lesson.RUNS] * 2
    lines = str(lesson.compared(variants)).splitlines()
    row = next(line for line in lines if line.startswith("numa_pages_migrated "))
    before, after = (lesson.quantity_of(ds, "numa_pages_migrated").mean() for ds in variants.values())
    assert f"{100 * (after / before - 1):+.1f} %" in row
    # pages that may not move at first touch: fewer move
    assert after < before


def test_the_same_against_the_same_has_no_side():
    told = str(lesson.same_against_same(lesson.variants()[lesson.AS_IS]))
    assert "first half" in told
    stars = told.count("*")
    assert stars < len(told.splitlines()) / 2


def test_all_runs_are_all_runs_whatever_the_draw():
    first, second = (lesson.drawn(lesson.RUNS, "convergence_s", draw) for draw in (0, 1))
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True)
    few = lesson.drawn(3, "convergence_s", 5)
    assert [len(values) for values in few.values()] == [3, 3]
    assert set(few[lesson.AS_IS]) <= set(first[lesson.AS_IS])


def test_fewer_runs_say_less():
    explorer = lesson.how_many()
    explorer.set(n=2)
    few = explorer.sentence
    explorer.set(n=10)
    widths = []
    for sentence in (few, explorer.sentence):
        low, high = map(float, re.search(r"interval (\S+) to (\S+),", sentence).groups())
        widths.append(high - low)
    assert widths[0] > widths[1]


# ---------------------------------------------------------------- exercises


@pytest.mark.parametrize("seed", range(40))
def test_problems_on_how_many_runs(seed):
    """The rule of thumb of the text is near enough to count as right, with its one or two runs more."""
    problem = lesson.exercise_runs().choose(seed)
    deviation = float(re.search(r"deviation of (\S+) s", problem.text)[1])
    mean = float(re.search(r"near (\d+) s", problem.text)[1])
    percent = float(re.search(r"difference of (\d+) %", problem.text)[1])
    rule = math.ceil(16 * (deviation / (mean * percent / 100)) ** 2)
    assert problem.is_right(rule) or problem.is_right(rule + 1)
    assert not problem.is_right(4 * rule + 10)


@pytest.mark.parametrize("seed", range(60))
def test_problems_on_bars(seed):
    """By hand: two means differ if they are clearly more than two standard errors of the difference apart."""
    problem = lesson.exercise_bars().choose(seed)
    runs = int(re.search(r"(\d+) runs each", problem.text)[1])
    one, other = (float(x) for x in re.search(r"Means: (\S+) s and (\S+) s", problem.text).groups())
    bar = float(re.search(r"± (\S+) s", problem.text)[1])
    error = bar if "standard error" in problem.text else bar / math.sqrt(runs)
    apart = abs(other - one) / (math.sqrt(2) * error)
    assert apart < 1.5 or apart > 3
    assert problem.answer == (lesson.MORE if apart > 2.5 else lesson.NOISE)


def test_both_answers_come_up():
    assert {lesson.exercise_bars().choose(seed).answer for seed in range(20)} == {lesson.MORE, lesson.NOISE}


def test_answers_of_the_lecture_note():
    assert [lesson.exercise_runs().choose(seed).answer for seed in (1, 2, 3)] == [64, 17, 17]
    answers = [lesson.exercise_bars().choose(seed).answer for seed in (1, 2, 3)]
    assert answers == [lesson.MORE, lesson.NOISE, lesson.NOISE]
