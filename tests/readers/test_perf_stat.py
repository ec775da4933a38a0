"""Reader of perf stat.

All printed by perf: plain.txt, interval.txt and node.txt by perf 6.1 on a small machine; repeat.txt, continental.txt
and table.txt results that people keep in public repositories, shortened; mail.txt from the change log of a commit to
the scheduler (sched/eevdf: Curb wakeup-preemption, 2023).
"""

import re

import pytest

from numalab.readers import perf_stat
from numalab.readers.perf_stat import Seconds, parse
from tests.readers.helpers import GOLDEN, golden, refuses

FILES = sorted(path.name for path in (GOLDEN / "perf_stat").iterdir())


def only(name):
    report = parse(golden("perf_stat", name))
    (run,) = report.runs
    return run


# ------------------------------------------------------------- what perf prints


def test_plain_output():
    run = only("plain.txt")
    assert run.what == "python3 -c sum(range(4000000))"
    clock = run.get("task-clock")
    assert (clock.value, clock.unit, clock.metrics, clock.noise_percent) == (
        69.48,
        "msec",
        ["0.477 CPUs utilized"],
        None,
    )
    assert [run.value(event) for event in ("page-faults", "context-switches")] == [834, 19]
    cycles = run.get("cycles")
    assert (cycles.value, cycles.lack) == (None, "not supported")
    assert (run.elapsed, run.user, run.sys) == (Seconds(0.145698081), Seconds(0.062839), Seconds(0.007854))
    assert run.runs is None


def test_noise_and_share_of_time_counted():
    run = only("repeat.txt")
    assert run.runs == 10
    assert run.elapsed == Seconds(1.7488, 0.0130, 0.74)
    faults, cycles, misses = (run.get(event) for event in ("page-faults", "cycles", "iTLB-load-misses"))
    assert (faults.value, faults.noise_percent, faults.share_percent) == (379886, 0.02, None)
    assert (cycles.value, cycles.noise_percent, cycles.share_percent) == (104242982245, 0.04, 32.73)
    assert (misses.value, misses.noise_percent, misses.share_percent) == (1188, 14.75, 32.87)
    assert misses.metrics == ["257.84% of all iTLB cache hits"]
    # the line below instructions has a second metric, and the noise and the share of both
    instructions = run.get("instructions")
    assert instructions.metrics == ["2.69 insn per cycle", "0.23 stalled cycles per insn"]
    assert (instructions.noise_percent, instructions.share_percent) == (0.07, 33.48)


def test_continental_digits():
    run = only("continental.txt")
    core = run.get("cpu_core/instructions:u/")
    assert (core.value, core.noise_percent, core.share_percent) == (14690658311, 0.07, 99.63)
    assert run.value("cpu_core/branch-misses:u/") == 974
    assert run.elapsed == Seconds(0.7247, 0.02, 2.76)


def test_table_of_single_runs():
    run = only("table.txt")
    assert run.single == [9.078223741, 8.993506487, 8.931922399]
    assert run.elapsed == Seconds(8.938353692, 0.008355056, 0.09)
    assert run.value("task-clock:u") == 8937.06


def test_rows_without_head_under_their_commands():
    runs = parse(golden("perf_stat", "mail.txt")).runs
    assert [run.label for run in runs] == [f"echo {no}RUN_TO_PARITY > /debug/sched/features" for no in ("NO_", "")]
    assert [run.value("context-switches") for run in runs] == [3723554, 2556535]
    assert [run.elapsed for run in runs] == [Seconds(9.5136, 0.0394, 0.41), Seconds(9.2427, 0.0302, 0.33)]
    assert [run.runs for run in runs] == [10, 10]


def test_intervals():
    run = only("interval.txt")
    faults = [(count.time, count.value, count.lack) for count in run.counts if count.event == "page-faults"]
    assert faults == [
        (0.20364077, 76, ""),
        (0.404170996, None, "not counted"),
        (0.501798439, 0, ""),
    ]


def test_per_node():
    run = only("node.txt")
    assert run.what == "system wide"
    assert run.value("page-faults", "N0") == 90
    with pytest.raises(KeyError, match="there are cpu-clock, page-faults"):
        run.get("page-faults")


# ------------------------------------------------------------- what mail does


@pytest.mark.parametrize("name", FILES)
def test_what_mail_does_changes_no_number(name):
    text = golden("perf_stat", name)
    expected = [(run.name, run.counts, run.elapsed, run.user, run.sys) for run in parse(text).runs]
    for changed in (
        re.sub("^", "> ", text, flags=re.M),
        text.replace("\n", "\r\n"),
        re.sub(r" +(\(\d.*\)) *$", r"\n\1", text, flags=re.M),
        re.sub(r" +(\( \+-.*)$", r"\n      \1", text, flags=re.M),
    ):
        found = parse(changed).runs
        assert perf_stat.looks_like(changed)
        moved = [(run.name, run.elapsed, run.user, run.sys) for run in found]
        assert moved == [(name, *times) for name, _, *times in expected]
        for run, (_, counts, *_) in zip(found, expected, strict=True):
            for count, want in zip(run.counts, counts, strict=True):
                count.line = want.line
            assert run.counts == counts


def test_a_wrapped_head():
    text = golden("perf_stat", "plain.txt").replace("python3 -c ", "python3 -c\n")
    report = parse(text)
    assert [run.what for run in report.runs] == ["python3 -c sum(range(4000000))"]
    assert (report.skipped, report.notes) == ([], [])


# ------------------------------------------------------------- never misread


def test_a_number_with_lost_digits_is_not_read():
    text = golden("perf_stat", "repeat.txt").replace("254,210,499", "254,210,49")
    report = parse(text)
    assert "stalled-cycles-frontend" not in [count.event for count in report.runs[0].counts]
    (skip,) = report.skipped
    assert (skip.line, skip.reason[:40]) == (10, "the digits of 254,210,49 are grouped in ")


def test_prose_with_numbers_is_no_count():
    report = parse("12 monkeys\n" + golden("perf_stat", "mail.txt") + "3 patches\nThat is 8 % less.\n")
    assert [skip.text for skip in report.skipped] == ["12 monkeys", "3 patches", "That is 8 % less."]


def test_a_head_that_is_cut_off_is_said():
    report = parse(" Performance counter stats for 'sleep 1\n\n  5  page-faults\n")
    assert report.runs[0].what == "sleep 1"
    assert report.notes == [(1, "the head of this run is cut off")]


def test_a_head_without_counts_is_said():
    report = parse(" Performance counter stats for 'sleep 1':\n\n" + golden("perf_stat", "plain.txt"))
    assert [(skip.line, skip.text) for skip in report.skipped] == [(1, "sleep 1")]
    assert len(report.runs) == 1


def test_what_is_no_output_of_perf_stat():
    refuses(parse, "hello\n", 0, "holds no count of perf stat", "expected '<count>  <event>'")
    refuses(parse, "  12,3  page-faults\n", 0, "line 1: the digits of 12,3")
    assert not perf_stat.looks_like(golden("perf_report", "flat.txt"))


# ------------------------------------------------------------- reading


def test_tables_and_counters():
    reading = perf_stat.read(golden("perf_stat", "mail.txt"), "x")
    assert reading.format == "perf-stat"
    assert reading.table("seconds").rows[1] == ("echo RUN_TO_PARITY > /debug/sched/features", 9.2427, None, None, 0.33)
    ds = reading.dataset()
    assert ds.counter.values.tolist() == ["context-switches"]
    assert ds.counters.values.tolist() == [[[3723554]], [[2556535]]]
    assert ds.label.values[0].startswith("echo NO_RUN")


def test_minor_faults_have_a_name_in_a_run():
    ds = perf_stat.read("  7  minor-faults\n  2  faults\n", "x").dataset()
    assert ds.minor_faults.values.tolist() == [[7]]
    assert ds.counter.values.tolist() == ["faults"]


def test_floats_and_intervals_make_no_run():
    reading = perf_stat.read(golden("perf_stat", "interval.txt"), "x")
    with pytest.raises(ValueError, match="has nothing that a run has"):
        reading.dataset()
    assert reading.table("counts").rows[1] == ("page-faults", 76, None, None, None, 0.20364077, None, None)


def test_the_name_of_a_run_without_counts_is_not_lost():
    empty = "balancing on\n Performance counter stats for 'a':\n\n"
    full = "balancing off\n Performance counter stats for 'b':\n\n   5  faults\n\n 1.0 seconds time elapsed\n"
    report = parse(empty + full)
    assert [run.label for run in report.runs] == ["balancing off"]
    assert [(skip.line, skip.text) for skip in report.skipped] == [(1, "balancing on"), (2, "a")]
