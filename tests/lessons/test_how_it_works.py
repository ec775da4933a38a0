"""The lesson on how NUMA balancing works: what its text says is what the model does."""

import re

import numpy as np
import pytest

from numalab.lessons import how_it_works as lesson
from numalab.lessons.page_watch import Watch
from numalab.widgets import Setup


@pytest.fixture(scope="module")
def moved():
    return lesson.scene(lesson.MOVED)


@pytest.fixture(scope="module")
def seen(moved):
    return moved.run(0)


@pytest.mark.parametrize("name", [lesson.MOVED, lesson.SWAPPED, lesson.SHARED])
def test_a_watched_run_is_the_run(name):
    watch = lesson.scene(name)
    seen, plain = watch.run(1), watch.setup.run([1])
    for counter in ("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated", "numa_pte_updates"):
        assert int(seen[counter][-1]) == int(plain[counter][0, -1])
    on = [int((seen.page_node[-1] == n).sum()) * 512 for n in range(2)]
    assert on == plain.pages[0, -1].sum("region").values.tolist()
    assert seen.task_node[-1].values.tolist() == plain.task_node[0, -1].values.tolist()


def test_pages_are_told_by_who_touches_them():
    seen = lesson.scene(lesson.SHARED, own=4).run(0)
    assert seen.page_of.values.tolist() == 16 * ["shared by a and b"] + 4 * ["only a"] + 4 * ["only b"]
    # nobody faults on what only the other one touches
    for thread, name in enumerate(("only a", "only b")):
        users = np.unique(seen.page_user.values[:, seen.page_of.values == name])
        assert set(users.tolist()) == {-1, thread}


def test_too_many_pages_are_refused():
    setup = Setup("guest-2x2", "wrong_node", "3.17", 1, {"size_mb": 8})
    with pytest.raises(ValueError, match=r"expected at most 64 pages .* got 2,048 pages"):
        Watch(setup).run(0)


def test_the_first_scene_goes_as_the_text_says(seen):
    at = {t: seen.sel(time=t, method="nearest") for t in (1.0, 2.24, 2.9, 4.4, 5.4)}
    # nothing before the first window, which is four huge pages
    assert not at[1.0].page_trapped.any()
    assert int(at[1.0].numa_hint_faults) == 0
    assert (int(at[2.24].page_trapped.sum()), int(at[2.24].numa_huge_pte_updates)) == (4, 4)
    # some faulted already, some are still white; then some wait for the second fault
    assert 0 < int((at[2.9].page_user >= 0).sum()) < 24
    assert int((at[4.4].page_user_node == 1).sum()) > 0
    assert (at[4.4].page_node == 0).all()
    assert 0 < int((at[5.4].page_node == 1).sum()) < 24
    # in the end everything is where the thread is, and each page moved once
    assert (seen.page_node[-1] == 1).all()
    assert int((np.diff(seen.page_node.values, axis=0) != 0).sum()) == 24


def test_a_page_moves_at_the_second_fault_in_a_row(seen):
    """By hand: from the recorded users alone."""
    for page in range(24):
        one = seen.isel(page=page)
        (k,) = np.flatnonzero(np.diff(one.page_node.values)) + 1
        before = one.page_user_node.values[:k]
        assert before[-1] == 1
        # the change from 0 to 1 was one fault, and the page stayed then
        first = int(np.flatnonzero(before == 1)[0])
        assert (before[first:] == 1).all()
        assert one.page_trapped.values[first:k].any()


def test_the_story_of_the_page_that_is_told(moved):
    story = str(lesson.story(moved, page=12))
    assert story.count("it moves") == 1
    first = story.index("a faults on node 1: the fault before came from another node, it stays")
    assert first < story.index("a faults on node 1: the second fault in a row from here, it moves")


def test_in_6_18_the_same_page_moves_at_the_first_fault():
    story = str(lesson.story(lesson.scene(lesson.MOVED, kernel="6.18"), page=12))
    assert re.search(r"a faults on node 1: [a-z ]+, it moves", story)
    assert story.index("it moves") == story.index("node 1:") + story[story.index("node 1:") :].index("it moves")
    assert "second fault" not in story


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ((0, 1, 1, 1), "here already, it stays"),
        ((0, 0, 1, 0), "came from another node, it stays"),
        ((1, 0, 1, 0), "its group is not at home here, it stays"),
        ((1, 0, 1, 1), "second fault in a row from here, it moves"),
        ((-1, 0, 1, 1), "nobody was seen here before, it moves"),
        ((0, 0, 1, 1), "young, it moves at once"),
    ],
)
def test_words_of_a_fault(case, words):
    assert lesson.fault_words("a", *case).endswith(words)


def test_averages_halve_and_take_up_what_is_new(seen):
    rows = lesson.placement_rows(seen, 0)
    assert len(rows) > 4
    old = np.zeros(2)
    for row in rows:
        # in pages of 4 kB the kernel rounds what it takes away down
        assert row["average"] == pytest.approx(old - old / 2 + row["new"], abs=1 / 512)
        assert (row["new"] >= -1e-9).all()
        old = row["average"]
    assert [row["prefers"] for row in rows][0 :: len(rows) - 1] == [0, 1]


def test_the_period_doubles_where_no_fault_was_local_and_none_shared(seen):
    rows = lesson.placement_rows(seen, 0)
    # between the move at 4 s and the first fault on a page that came over all faults are remote and private
    third = rows[2]
    assert third["node"] == 1
    assert third["period"] == 2 * rows[1]["period"]


def test_windows_by_hand():
    # 48 MB in windows of 8 MB are 6; 1000 ms / 6; 2560 MB/s allow one every 1000 // 320 = 3 ms
    assert lesson.windows(8) == (6, 166)
    assert lesson.windows(256) == (1, 1000)
    # 3000 MB in windows of 64 are 47, 21 ms each; the limit allows 40 a second, one every 25 ms
    assert lesson.windows(64, 1000, 3000) == (47, 25)


def test_two_processes_part_by_one_swap():
    watch = lesson.scene(lesson.SWAPPED)
    lines = str(lesson.journeys(watch, seed=1)).splitlines()[2:]
    assert len(lines) == 2
    assert {line.split()[1] for line in lines} == {"b", "c"}
    end = watch.run(1).isel(time=-1)
    assert end.task_node.values.tolist() == [0, 0, 1, 1]
    assert (end.page_node == np.repeat([0, 1], 12)).all()
    # the text says that seed 0 takes more
    assert len(str(lesson.journeys(watch, seed=0)).splitlines()[2:]) > 2


def test_own_pages_move_once_at_most_and_shared_ones_to_and_fro():
    seen = lesson.scene(lesson.SHARED, own=0).run(0)
    assert int((np.diff(seen.page_node.values, axis=0) != 0).sum()) > 24
    own = lesson.scene(lesson.SHARED, own=12).run(0)
    assert (np.diff(own.page_node.values, axis=0) != 0).sum(axis=0).max() == 1
    assert (own.page_node[-1] == np.repeat([0, 1], 12)).all()


@pytest.mark.parametrize("seed", range(30))
def test_problems_on_faults(seed):
    problem = lesson.exercise_faults().choose(seed)
    nodes = [int(n) for n in problem.text.splitlines()[1].split()]
    page, last, moves = 0, 0, 0
    for node in nodes:
        if node == last and page != node:
            page, moves = node, moves + 1
        last = node
    assert problem.answer == moves


@pytest.mark.parametrize("seed", range(30))
def test_problems_on_averages(seed):
    exercise = lesson.exercise_decay()
    problem = exercise.choose(seed)
    a, new = map(int, re.search(r"is (\d+) pages .* brings (\d+) pages", problem.text, re.DOTALL).groups())
    b, passes = 0, 0
    while b <= a:
        a, b, passes = a - a // 2, b - b // 2 + new, passes + 1
        assert passes < 30
    assert problem.answer == passes
    assert exercise.check(passes + 1).startswith("✗ Not yet. Write both averages down")


@pytest.mark.parametrize("seed", range(10))
def test_problems_on_windows(seed):
    problem = lesson.exercise_windows().choose(seed)
    size, scan = map(int, re.search(r"has (\d+) MB. With a scan size of (\d+) MB", problem.text).groups())
    pieces = (size + scan - 1) // scan
    assert problem.answer == max(1000 // pieces, 1000 // (2560 // scan))


def test_the_explorer_shows_the_lessons_scene_and_earlier_moments(moved):
    explorer = lesson.explorer()
    (job,) = explorer._sides(explorer.values).values()
    assert job.call([0]) == moved.call([0])
    explorer.set(time=5.4)
    assert explorer.sentence == lesson.look(moved, 5.4).alt
    names = {}
    exec(explorer.call, names)
    assert int(names["ds"].numa_hint_faults[-1]) == int(explorer.results[lesson.MOVED].numa_hint_faults[-1])


def test_the_sharing_explorer_follows_its_slider():
    explorer = lesson.sharing_explorer()
    explorer.set(own=12)
    assert "12 on node 0 and 12 on node 1" in explorer.sentence
