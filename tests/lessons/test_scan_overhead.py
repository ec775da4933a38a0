"""The lesson of the scan overhead thread: problems, the explorer, and what its notebook says in words."""

import re

import numpy as np
import pytest

from numalab.kernel import Kernel
from numalab.lessons import scan_overhead as lesson
from numalab.lessons import scan_overhead_mail as mail
from numalab.machine import machine
from numalab.patch_threads.scan_overhead_cases import Case, flush_ns, kernels, run_case
from numalab.workloads import workload


@pytest.fixture(scope="module")
def runs():
    return lesson.run()


# ---------------------------------------------------------------- what is run
def test_the_load_is_the_replays():
    """All but the length of the phase: machine, load, costs and step."""
    ours = lesson.setup(seconds=5).run([0])
    theirs = run_case(Case(("3.19",), "ag_stride=-1,bhash=101073", Kernel("3.19"), phase_s=5.0), [0])
    for name in ("numa_hint_faults", "numa_pages_migrated"):
        assert ours[name].values[0, -1] == theirs[name].sel(time=5).values[0] > 0


def test_kernels_of_the_mail():
    for label, name in (("3.19", "3.19"), ("4.0-rc1", "4.0-rc1"), ("4.0-rc4", "4.0-rc4"), ("patch 1", "+p1"),
                        ("patches 1 and 2", "+p2"), ("patches 1 to 3 (4.0)", "+p3")):  # fmt: skip
        release, switches = lesson.KERNELS[label]
        assert Kernel(release).replace(**switches).switches == Kernel(kernels()[name]).switches
    release, switches = lesson.KERNELS["patch 3 alone"]
    assert Kernel(release).replace(**switches).switches == Kernel("4.0", no_group_rule="pte_dirty", keep_write=False
                                                                 ).switches  # fmt: skip


def test_the_explorer_begins_with_the_mails_case():
    explorer = lesson.explorer()
    sides = explorer._sides(explorer.values)
    assert {name: one.call([0]) for name, one in sides.items()} == {
        name: lesson.setup(name).call([0]) for name in ("3.19", "4.0-rc4")
    }
    assert lesson._load_words(explorer.values) == "the mail's load"


def test_controls_reach_the_run():
    explorer = lesson.explorer()
    given = {"scan_mb": 64, "write": 20, "free_mb": 16, "flush": 50, "stride": False, "bhash": False, "right": "6.18"}
    values = explorer.values | given
    one = explorer._sides(values)["6.18"]
    assert one.kernel == "6.18"
    assert one.switches == {"scan_size_mb": 64}
    assert one.options["ipi_wait_ns"] == flush_ns() // 2
    load = workload(one.workload, machine(one.machine), **one.arguments)
    assert load.free_mb == 16
    assert load.processes[0].threads == 34
    assert load.regions[0].size_mb == 32
    assert {access.write for access in load.accesses} == {0.2}
    words = "scan 64 MB, 20 % written, 16 MB free, flush 50 %, with stride, small cache"
    assert lesson._load_words(values) == words


def test_the_same_kernel_on_both_sides_is_one_side():
    explorer = lesson.explorer()
    assert list(explorer._sides(explorer.values | {"right": "3.19"})) == ["3.19"]


# ---------------------------------------------------------------- what the notebook says
def test_more_of_the_remote_faults_move_their_page(runs):
    assert lesson.cause(runs) == lesson.MOVED
    counters = lesson.counters(runs).series["4.0-rc4"]
    assert counters["PTE updates"].middle < 1.1
    assert counters["pages migrated"].middle > 1.4
    assert counters["work done"].middle < 0.8
    for shares in lesson.fates(runs).shares.values():
        assert shares["local"] == pytest.approx(25, abs=3)
        assert shares["refused"] > 2


def test_fates_add_up_to_the_hint_faults(runs):
    ds = lesson.settled(runs["3.19"])
    faults = ds.numa_hint_faults.values[0]
    parts = lesson._fates(runs["3.19"])
    assert sum(parts.values()) == faults[-1] - faults[0]
    assert ds.time.values[0] == 20
    assert parts["moves"] == np.ptp(ds.numa_pages_migrated.values[0])


def test_the_time_of_eight_threads(runs):
    """No thread waits for a CPU: running and waiting come to eight threads' seconds."""
    for ds in runs.values():
        assert sum(lesson._time_spent(ds).values()) == pytest.approx(8 * 10_000, rel=0.02)
    shares = lesson.time_spent(runs).shares
    assert shares["4.0-rc4"]["waiting for flushes"] > 1.4 * shares["3.19"]["waiting for flushes"]


def test_patch_3_slows_the_scanner(runs):
    last = [line.middle[-1] for line in lesson.scanner(runs).parts[0].lines]
    assert last[2] >= 4 * last[0] == 4 * last[1]


def test_nobody_writes_nothing_is_forgotten():
    one, other = (lesson.setup(name, 8.0, write=0.0).run() for name in ("3.19", "4.0-rc4"))
    assert one.numa_pages_migrated.values.tolist() == other.numa_pages_migrated.values.tolist()


def test_free_flushes_more_migrations_no_harm():
    one, other = (lesson.setup(name, flush=0).run() for name in ("3.19", "4.0-rc4"))
    assert lesson.grown(other, "numa_pages_migrated") > 2 * lesson.grown(one, "numa_pages_migrated")
    assert lesson.work(other) > 0.9 * lesson.work(one)


def test_full_nodes_protect_the_program(runs):
    """With room on every node nothing is refused, more pages move and less work is done."""
    for name in ("3.19", "4.0-rc4"):
        roomy = lesson.setup(name, free_mb=256).run()
        assert lesson.grown(roomy, "migrate_refused") == 0
        assert lesson.grown(roomy, "numa_pages_migrated") > lesson.grown(runs[name], "numa_pages_migrated")
        assert lesson.work(roomy) < lesson.work(runs[name])


def test_a_small_cache_is_hardly_slower():
    one, other = (lesson.setup(name, 10.0, bhash=0).run() for name in ("3.19", "4.0-rc4"))
    assert 0.8 < lesson.work(other) / lesson.work(one) < 1


def test_the_figure_of_a_run_that_has_just_begun():
    setup = lesson.setup()
    begun = setup.start([0])
    begun.advance(0.001)
    picture = lesson.FatesOverTime({"3.19": begun.dataset()}, 30, "the mail's load")
    assert picture.alt.startswith("Of all hint faults (the mail's load). 3.19: nothing yet.")
    assert picture.alt.endswith("Work done: 3.19 0 thousand page visits a second.")


def test_the_mails_counters():
    """By hand: 36,482,466 updates in 294 s are 124,090 a second; 1,228,114 of 34,816,515 faults are 3.5 of 100."""
    rows = [line.split() for line in str(mail.counters()).splitlines()]
    assert rows[2] == ["3.19", "294", "s", "36.5", "M", "34.8", "M", "124,090", "26", "%", "4"]
    assert [row[0] for row in rows[2:]] == ["3.19", "4.0-rc1", "4.0-rc4", "+p2", "+p3"]
    picture = mail.picture()
    assert picture.series["run time"]["4.0-rc4"].middle == pytest.approx(470 / 294)
    assert picture.series["pages migrated in 10 s"]["+p3"].middle == pytest.approx(201_429 / 266_750)


def test_run_times_of_all_configurations():
    series = mail.times().series
    assert len(series["the mail"]) == len(series["the model"]) == 14
    assert series["the mail"]["bhash\nrc1"].middle == pytest.approx(1063 / 364, abs=0.01)


def test_where_model_and_mail_differ(runs):
    """The mail by hand: 58,777,092 hint faults in 470 s over 34,816,515 in 294 s are 1.056; over +p2, 0.858."""
    rows = {line[:22].strip(): line[22:].split() for line in str(mail.agreement(runs)).splitlines()[2:]}
    faults = rows["hint faults a second"]
    assert faults[:2] == ["1.06", "0.86"]
    assert rows["pages migrated in 10 s"][:2] == [f"{572_839 / base:.2f}" for base in (266_750, 223_706)]
    assert rows["work a second"][:2] == [f"{base / 470:.2f}" for base in (294, 307)]
    # what the notebook says: the model's faults fall with its work, the mail's do not
    for column in (2, 3):
        assert abs(float(faults[column]) - float(rows["work a second"][column])) < 0.05
        assert float(faults[column]) < 0.75 < float(faults[1])
    assert rows["work a second"][2] == f"{lesson.work(runs['4.0-rc4']) / lesson.work(runs['3.19']):.2f}"
    # the stored migrations are those of the claim, median and band
    claim = next(one for one in mail.claims() if one.claim.startswith("migrations per 10 s, 4.0-rc4"))
    assert rows["pages migrated in 10 s"][3:] == [f"{claim.model:.2f}", f"({claim.low:.2f}", "to", f"{claim.high:.2f})"]


def test_most_visits_meet_a_marked_page(runs):
    """The mail by hand: 34.82 of 36.48 million and 58.78 of 60.90 million."""
    here, there = mail.faults_of_visits(runs).splitlines()
    assert there.endswith("95 on 3.19, 97 on 4.0-rc4.")
    assert all(75 < int(number) < 85 for number in re.findall(r"(\d+) on", here))


# ---------------------------------------------------------------- one page
def by_hand(kernel, faults):
    """The rule in words: move if the last user was here or nobody, and the page is elsewhere."""
    page, last, count = 0, 0, 0
    for here, writes in faults:
        if page != here and last in (here, None):
            page, count = here, count + 1
        last = None if writes and kernel == "4.0-rc4" else here
    return count


def test_the_story_of_the_page():
    assert lesson.moves(lesson.play("3.19", lesson.FAULTS)) == by_hand("3.19", lesson.FAULTS) == 2
    assert lesson.moves(lesson.play("4.0-rc4", lesson.FAULTS)) == by_hand("4.0-rc4", lesson.FAULTS) == 4
    assert str(lesson.page_story()).endswith("moves: 3.19 2, 4.0-rc4 4")


@pytest.mark.parametrize(("kernel", "nodes", "written"), [("3.19", 4, 60), ("4.0-rc4", 4, 60), ("4.0-rc4", 2, 20)])
def test_the_chance_of_a_move(kernel, nodes, written):
    """Played 40,000 times: the standard error is at most a quarter percent."""
    rng = np.random.default_rng(7)
    faults = list(
        zip(rng.integers(0, nodes, 40_000).tolist(), (rng.random(40_000) < written / 100).tolist(), strict=True)
    )
    assert lesson.chance(kernel, nodes, written) == pytest.approx(by_hand(kernel, faults) / 400, abs=1.0)
    if kernel == "3.19":
        assert lesson.chance(kernel, nodes, written) == pytest.approx(15)  # 3 / (4 * 5)


# ---------------------------------------------------------------- problems
@pytest.mark.parametrize("seed", range(30))
def test_problems_on_a_page(seed):
    problem = lesson.exercise_page().choose(seed)
    kernel = re.search(r"The kernel is (3\.19|4\.0-rc4)\.", problem.text)[1]
    cells = problem.text.splitlines()[1].split(", ")
    faults = [(int(cell.strip()[0]), cell.endswith("w")) for cell in cells]
    assert problem.answer == by_hand(kernel, faults)
    assert problem.solution.count("to node") == problem.answer


def test_problems_on_the_chance():
    seen = set()
    for seed in range(30):
        problem = lesson.exercise_chance().choose(seed)
        nodes, written = map(int, re.search(r"from (\d) nodes alike; (\d+) %", problem.text).groups())
        kernel = re.search(r"on (3\.19|4\.0-rc4), how", problem.text)[1]
        forgotten = written / 100 if kernel == "4.0-rc4" else 0
        remote = (nodes - 1) / nodes
        assert problem.is_right(100 * remote * (forgotten + (1 - forgotten) / nodes))
        assert not problem.is_right(100 * remote) or forgotten == 1
        seen.add(kernel)
    assert seen == {"3.19", "4.0-rc4"}


@pytest.mark.parametrize("seed", range(20))
def test_problems_on_the_flush(seed):
    problem = lesson.exercise_flush().choose(seed)
    threads, share, per_s = (
        int(part.replace(",", ""))
        for part in re.search(r"(\d+) threads.* (\d+) %.* ([\d,]+) pages", problem.text).groups()
    )
    assert problem.answer * 1e-6 * per_s == pytest.approx(threads * share / 100)
    assert not problem.is_right(problem.answer / threads)
