"""Reader and writer of `perf bench numa mem`, against real output and the grammar of its source."""

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab import _data, runs
from numalab.readers import perf_bench
from numalab.readers.perf_bench import PerfBenchError, parse

GOLDEN = Path(__file__).parent / "golden"
TRACE = _data.read_text("published", "convergence_trace.txt")
LINES = [line for line in TRACE.splitlines() if "mins]" in line]


# ------------------------------------------------------------- real output


@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir() if path.name.isdecimal()))
def test_golden(case):
    expected = json.loads((GOLDEN / case / "expected.json").read_text())["tests"]
    report = perf_bench.read(GOLDEN / case / "input.txt")
    assert report.skipped == []
    assert [test.name for test in report.tests] == [want["name"] for want in expected]
    for test, want in zip(report.tests, expected, strict=True):
        assert (test.converged, test.converged_s) == (want["converged"], want["converged_s"])
        assert {key: getattr(test.options, key) for key in want["options"]} == want["options"]
        assert {key: getattr(test.setup, key) for key in want.get("setup", {})} == want.get("setup", {})
        assert test.startup_s == want.get("startup_s")
        rows = {row.name: [row.value, row.unit] for row in test.results}
        assert {key: rows[key] for key in want["results"]} == want["results"]
        assert len(rows) == (10 if "NUMA-convergence-latency" in rows else 9)


def test_lines_are_numbered_as_in_the_file():
    test = perf_bench.read(GOLDEN / "023" / "input.txt").tests[0]
    assert test.line == 4
    assert test.results[0].line == 22


def test_trace_of_the_mail():
    (test,) = parse(TRACE).tests
    assert test.setup == perf_bench.Setup(160, 4, 80, 0, 1000, 0, -1)
    assert [record.threads for record in test.progress] == [
        (0, 1, 36, 0),
        (43, 37, 39, 41),
        (42, 38, 40, 40),
        (41, 39, 40, 40),
        (40, 40, 40, 40),
    ]
    assert [record.processes for record in test.progress][2:] == [(3, 2, 2, 2), (3, 2, 2, 2), (2, 2, 2, 2)]
    assert [(record.distance, record.groups) for record in test.progress] == [(36, 3), (6, 10), (4, 9), (2, 9), (0, 8)]
    assert [(record.loops_min, record.loops_max) for record in test.progress] == [
        (0, 0),
        (0, 1),
        (1, 2),
        (2, 4),
        (3, 5),
    ]
    assert [(record.nodes_min, record.nodes_max) for record in test.progress][:2] == [(0, 2), (1, 2)]
    last = test.progress[-1]
    assert (last.minutes, last.flag, last.flag_s, last.nodes_max) == (0.7, "converged", 41.8, None)
    assert test.converged_s == 41.8


def test_records_are_printed_as_the_mail_has_them():
    assert [perf_bench.format_record(record) for record in parse(TRACE).tests[0].progress] == LINES


# ------------------------------------------------------------- ways a paste may look


def progress(text):
    return [
        (r.minutes, r.threads, r.processes, r.flag, r.flag_s, r.loops_max)
        for t in parse(text).tests
        for r in t.progress
    ]


MANGLED = {
    "quoted": "\n".join("> " + line for line in TRACE.splitlines()),
    "quoted twice": "\n".join(">> " + line for line in TRACE.splitlines()),
    "quoted twice, spaced": "\n".join("> > " + line for line in TRACE.splitlines()),
    "CRLF": TRACE.replace("\n", "\r\n"),
    "carriage return before each record": TRACE.replace(" #    0.0%", "\r #    0.0%"),
    "carriage return as ^M": TRACE.replace(" #    0.0%", "^M #    0.0%"),
    "numbered 1.": "\n".join(f"{n}. {line}" for n, line in enumerate(TRACE.splitlines(), 1)),
    "numbered 1:": "\n".join(f"{n:4}: {line}" for n, line in enumerate(TRACE.splitlines(), 1)),
    "numbered by cat -n": "\n".join(f"{n:6}\t{line}" for n, line in enumerate(TRACE.splitlines(), 1)),
    "numbered and quoted": "\n".join(f"> {n} {line}" for n, line in enumerate(TRACE.splitlines(), 1)),
    "records joined by CR": TRACE.replace("\n #    0.0%", "\r #    0.0%"),
    "records joined, CR lost": TRACE.replace("\n #    0.0%", " #    0.0%"),
    "blanks stripped": "\n".join(line.strip() for line in TRACE.splitlines()),
}


@pytest.mark.parametrize("form", MANGLED)
def test_mangled_pastes_read_alike(form):
    report = parse(MANGLED[form])
    assert progress(MANGLED[form]) == progress(TRACE)
    assert report.tests[0].setup.process_mb == 1000
    assert report.skipped == []


@pytest.mark.parametrize("case", ["023", "048"])
def test_mangled_results_read_alike(case):
    text = (GOLDEN / case / "input.txt").read_text()
    plain = [(t.name, [(r.name, r.value) for r in t.results]) for t in parse(text).tests]
    for form in (
        text.replace("\n", "\r\n"),
        "\n".join("> " + line for line in text.splitlines()),
        "\n".join(f"{n}: {line}" for n, line in enumerate(text.splitlines(), 1)),
    ):
        assert [(t.name, [(r.name, r.value) for r in t.results]) for t in parse(form).tests] == plain


def test_prose_around_is_skipped_and_said():
    mail = f"Running things like this shows it.\n\n{TRACE}\nIn this example, 1 of 2, or 3, counts.\n"
    report = parse(mail, "mail.txt")
    assert [(line, text) for line, text, _ in report.skipped] == [
        (1, "Running things like this shows it."),
        (18, "In this example, 1 of 2, or 3, counts."),
    ]
    assert report.summary().splitlines() == [
        "mail.txt: 1 tests, 5 progress records, 0 result rows",
        "  line 1 skipped: 'Running things like this shows it.' (not output of perf bench numa mem)",
        "  line 18 skipped: 'In this example, 1 of 2, or 3, counts.' (not output of perf bench numa mem)",
    ]


def test_a_command_named_in_prose_is_not_taken_for_the_command():
    report = parse('times are down when doing "perf bench numa mem -m -0 -P 1000 -p X -t Y" runs.\n' + TRACE)
    assert report.tests[0].options is None
    assert len(report.skipped) == 1


@pytest.mark.parametrize(
    "line",
    [
        "2023-04-10 10:53:01 perf bench numa mem -p 8 -t 20 -m",
        "perf bench numa mem -p 8 -t 20 -m",
        "root@host:~# perf bench numa mem -p 8 -t 20 -m",
        '# Running main, "perf bench numa mem -p 8 -t 20 -m"',
        '# Running main, "perf bench numa numa-mem -p 8 -t 20 -m"',
    ],
)
def test_command_lines(line):
    report = parse(line + "\n" + TRACE)
    (test,) = report.tests
    assert (test.options.processes, test.options.threads, test.options.measure) == (8, 20, True)
    assert report.skipped == []


def test_options():
    options = perf_bench.parse_options("-p 4 -t 6 -P 1020 -s 100 -zZ0qcm --thp  1 --no-data_rand_walk -C 0,2 -M 0x2")
    assert (options.processes, options.threads, options.seconds, options.measure) == (4, 6, 100, True)
    assert options.args == "-p 4 -t 6 -P 1020 -s 100 -zZ0qcm --thp 1 --no-data_rand_walk -C 0,2 -M 0x2"
    assert perf_bench.parse_options("--nr_proc 3 --nr_secs=0").limit_s is None
    assert perf_bench.parse_options("-l 10").limit_s is None
    assert perf_bench.parse_options("-a").suite
    with pytest.raises(ValueError, match="option -y not recognized"):
        perf_bench.parse_options("-y")
    report = parse('# Running main, "perf bench numa mem -p X"\n' + TRACE)
    assert report.tests[0].options is None
    assert report.skipped[0][2].startswith("options not understood")


LONG = """
          6.801 secs latency to NUMA-converge
          6.801 secs slowest (max) thread-runtime
          4.000 secs fastest (min) thread-runtime
          5.650 secs average thread-runtime
         20.594 % difference between max/avg runtime
          0.836 GB data processed, per thread
        213.991 GB data processed, total
          8.136 nsecs/byte/thread runtime
          0.123 GB/sec/thread speed
         31.463 GB/sec total speed
"""


def test_long_result_rows_equal_short_ones():
    short = perf_bench.read(GOLDEN / "023" / "input.txt").tests[0]
    (test,) = parse(LONG).tests
    assert [(r.name, r.value, r.unit) for r in test.results] == [(r.name, r.value, r.unit) for r in short.results]
    assert test.converged is None  # without the command its time limit is unknown


def test_several_runs_in_one_paste():
    assert len(parse(TRACE + TRACE).tests) == 2
    assert len(parse(LONG + LONG).tests) == 2
    assert len(parse(LINES[0] + LONG + LINES[0] + LONG).tests) == 2
    rows = " main,   6.801, secs,  runtime-max/thread\n"
    assert [len(test.results) for test in parse(rows + rows + rows).tests] == [1, 1, 1]


def test_details_and_remarks():
    text = """ # Running main, "perf bench numa mem -p 1 -t 1 -P 8 -C 0 -dd"
# binding tasks to CPUs:
#   0, 2
# NOTE: 2 tasks bound, 3 tasks unbound
WARNING: Could not enable THP - do: 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled'
 # process  0: PID 4242
 #    1.0%  [0.1 mins]\r #    2.0%  [0.2 mins]
 (injecting perturbalance, moved to CPU#31)
 main,                                    5.000, secs,           runtime-max/thread
 process0:thread0                         1.250, GB/sec          thread-speed
 process0:thread0                         0.002, secs            thread-system-time
"""
    report = parse(text)
    (test,) = report.tests
    assert report.skipped == []
    assert test.ticks == [(7, 1.0, 0.1), (7, 2.0, 0.2)]
    assert [line for line, _ in test.notes] == [2, 3, 4, 5, 6, 8]
    assert [(p, t, row.name, row.value) for p, t, row in test.thread_results] == [
        (0, 0, "thread-speed", 1.25),
        (0, 0, "thread-system-time", 0.002),
    ]
    assert test.converged is None


STAY = (
    " #    0.0%  [1.0 mins]  2/1   2/1  [ 0/2 ] l:  3-5   (  2) [40.0%] (  60.0s converged)\n"
    "\r #    0.0%  [1.1 mins]  2/1   2/1  [ 0/2 ] l:  4-6   (  2) [33.3%]"
    "\r #    0.0%  [1.2 mins]  2/1   2/1  [ 0/2 ] l:  5-7   (  2) [28.6%]"
)
LEAVE = "\r #    0.0%  [1.3 mins]  3/2   1/1  [ 2/3 ] l:  6-8   (  2) [25.0%] {1-2} (  78.0s de-converged)\n"
AGAIN = "\r #    0.0%  [1.5 mins]  2/1   2/1  [ 0/2 ] l:  7-9   (  2) [22.2%] (  90.0s converged)\n"


def test_staying_leaving_and_converging_again():
    assert [r.line for r in parse(STAY).tests[0].progress] == [1, 2, 2]
    assert parse(STAY).tests[0].converged_s == 60.0
    left = parse(STAY + LEAVE + "\n" + LONG).tests[0]
    assert (left.converged, left.converged_s) == (False, None)
    assert left.progress[-1].flag_s == 78.0
    assert parse(STAY + LEAVE + AGAIN).tests[0].converged_s == 90.0


def test_records_without_a_change_are_not_converged():
    test = parse("\n".join(LINES[:4]) + LONG).tests[0]
    assert (test.converged, test.conclusion) == (False, "did not converge")


CUT = "unknown: the output ends before the result rows"
SKIPPED = "unknown: 1 progress record was skipped"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(LINES[:4]),
        "\n".join(LINES).removesuffix(" (  41.8s converged)"),  # just as a whole record looks
        STAY + LEAVE,  # might have converged again
        TRACE.split(" ###\n\n")[0],
    ],
)
def test_without_result_rows_no_convergence_is_concluded(text):
    report = parse(text, "f")
    (test,) = report.tests
    assert (test.converged, test.converged_s, test.unknown) == (None, None, CUT)
    assert report.headers == [(test.last_line, f"convergence of test main: {CUT}")]
    assert np.isnan(perf_bench.to_dataset(report).perf_converged_s.item())


@pytest.mark.parametrize("end", range(1, len(LINES[4])))
def test_a_file_cut_anywhere_in_its_last_record_is_not_called_converged_or_not(end):
    (test,) = parse("\n".join([*LINES[:4], LINES[4][:-end]])).tests
    assert test.converged is None
    assert test.unknown in (CUT, SKIPPED)


def test_a_converged_flag_is_enough():
    (test,) = parse(TRACE).tests
    assert (test.converged, test.unknown, test.conclusion) == (True, None, "converged after 41.8 s")


# ------------------------------------------------------------- wrapped by a mail client


def fold(text, width):
    """Do as fold -s does: break after a blank."""
    return "\n".join(
        part
        for line in text.split("\n")
        for part in textwrap.TextWrapper(
            width, drop_whitespace=False, break_on_hyphens=False, break_long_words=False
        ).wrap(line)
        or [""]
    )


def number(text):
    return "\n".join(f"{n}: {line}" for n, line in enumerate(text.split("\n"), 1))


def quote(text):
    return "\n".join("> " + line for line in text.split("\n"))


WRAPPED = {
    "wrapped": fold,
    "wrapped, then quoted": lambda text, width: quote(fold(text, width)),
    "quoted, then wrapped": lambda text, width: fold(quote(text), width),
    "wrapped, then numbered": lambda text, width: number(fold(text, width)),
    "numbered, then wrapped": lambda text, width: fold(number(text), width),
    "wrapped, blanks stripped": lambda text, width: "\n".join(line.strip() for line in fold(text, width).split("\n")),
    "CR lost, then wrapped": lambda text, width: fold(text.replace("\n #    0.0%", " #    0.0%"), width),
}


@pytest.mark.parametrize("form", WRAPPED)
def test_wrapped_records_read_alike_at_any_width(form):
    for width in range(40, 121):
        report = parse(WRAPPED[form](TRACE, width))
        assert progress(WRAPPED[form](TRACE, width)) == progress(TRACE), width
        (test,) = report.tests
        assert (test.converged_s, report.skipped, test.unknown) == (41.8, [], None), width
        assert test.setup == parse(TRACE).tests[0].setup, width


@pytest.mark.parametrize("case", ["023", "048"])
def test_wrapped_results_and_options_read_alike(case):
    def facts(text):
        return [
            (t.name, t.options, t.setup, t.startup_s, [(r.name, r.value) for r in t.results], t.converged_s)
            for t in parse(text).tests
        ]

    text = (GOLDEN / case / "input.txt").read_text()
    for width in range(46, 121):
        assert facts(fold(text, width)) == facts(text), width


def test_a_wrapped_record_keeps_the_number_of_its_first_line():
    assert [record.line for record in parse(fold("\n".join(LINES), 76)).tests[0].progress] == [1, 2, 3, 5, 7]


def test_prose_after_a_record_is_not_joined():
    report = parse("\n".join([*LINES, "1-2", "(1)", "2."]))
    assert report.tests[0].converged_s == 41.8
    assert [line for line, _, _ in report.skipped] == [6, 7]


@pytest.mark.parametrize(
    ("lines", "skipped", "reason"),
    [
        ([*LINES[:4], LINES[4][:76], "  so far", LINES[4][76:]], [5, 6, 7], "not a whole progress record"),
        ([*LINES[:4], "[40.0%] (  41.8s converged)"], [4], "not a whole progress record"),
        (["[40.0%] (  41.8s converged)", *LINES[:4]], [1], "piece of a wrapped progress record"),
    ],
)
def test_pieces_that_cannot_be_joined_are_said_and_conclude_nothing(lines, skipped, reason):
    report = parse("\n".join([*lines, *LONG.splitlines()]))
    (test,) = report.tests
    assert [line for line, _, _ in report.skipped] == skipped
    assert report.skipped[0][2].startswith(reason)
    assert test.converged is None
    assert test.unknown.startswith("unknown: ")


# ------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("[ 6/10]", "[ 7/10]", 11, "expected [6/10] from the counts per node, got [7/10]"),
        ("43/3 ", "44/3 ", 11, "expected [7/10]"),
        ("[ 4/9 ]", "[ 4/8 ]", 12, "expected [4/9]"),
        ("0-1   (  1)", "0-1   (  2)", 11, "expected a difference of 1 loops, got 2"),
        ("[40.0%]", "[41.0%]", 14, "expected [40.0%] from the loops, got [41.0%]"),
        ("(  41.8s", "(  71.8s", 14, "expected a time near 0.7 minutes, got 71.8 s"),
        ("[50.0%] {1-2}\n #    0.0%  [0.7", "[50.0%] {1-\n #    0.0%  [0.7", 13, "not a whole progress record"),
    ],
)
def test_a_contradicting_record_is_skipped_and_convergence_unknown(old, new, line, reason):
    assert old in TRACE
    report = parse(TRACE.replace(old, new), "mail.txt")
    (test,) = report.tests
    assert [record.line for record in test.progress] == [n for n in range(10, 15) if n != line]
    assert [skip[0] for skip in report.skipped] == [line]
    assert report.skipped[0][2].startswith(reason)
    assert (test.converged, test.converged_s, test.unknown) == (None, None, SKIPPED)
    assert f"line {line} skipped: " in report.summary()


@pytest.mark.parametrize(
    ("old", "new", "lines", "reason"),
    [
        ("# 160 tasks", "# 150 tasks", [11, 12, 13, 14], "expected at most 150 threads, got 160"),
        ("on 4 nodes", "on 2 nodes", [10, 11, 12, 13, 14], "expected 2 nodes as before, got 4"),
    ],
)
def test_records_that_contradict_the_setup_are_skipped(old, new, lines, reason):
    report = parse(TRACE.replace(old, new))
    assert [skip[0] for skip in report.skipped] == lines
    assert {skip[2].split(";")[0] for skip in report.skipped} == {reason}
    assert report.tests[0].unknown == f"unknown: {len(lines)} progress records were skipped"


def test_where_every_record_contradicts_the_first_is_the_error():
    text = "Hello\n" + LINES[1].replace("[ 6/10]", "[ 7/10]") + "\n" + LINES[2].replace("[ 4/9 ]", "[ 5/9 ]")
    with pytest.raises(PerfBenchError, match=r"^f:2: expected \[6/10\] from the counts per node, got \[7/10\]; was"):
        parse(text, "f")


def test_a_setup_that_contradicts_itself_is_refused():
    with pytest.raises(PerfBenchError, match=r"mail.txt:4: expected -1x as in the lines before, got 7x"):
        parse(TRACE.replace("-1x  1000MB", "7x  1000MB"), "mail.txt")


def test_converged_with_the_wrong_number_of_processes_is_skipped():
    report = parse("$ perf bench numa mem -p 16 -t 10 -m\n" + TRACE)
    assert report.skipped[0][0] == 15
    assert report.skipped[0][2].startswith("expected 16 processes on one node each in a converged record")
    assert report.tests[0].converged is None


def test_a_node_that_vanishes_is_skipped():
    fewer = LINES[1].replace(" 41/3 ", " ").replace("[ 6/10]", "[ 6/7 ]")
    report = parse(LINES[0] + "\n" + fewer)
    assert report.skipped[0][0] == 2
    assert report.skipped[0][2].startswith("expected 4 nodes as before, got 3")


@pytest.mark.parametrize("value", ["x.801", "inf", "nan", "-nan", "-6.801", "1e3", "1_0", "6.80.1"])
@pytest.mark.parametrize(
    "row",
    [" main,   {}, secs,  runtime-max/thread\n", "   {} secs slowest (max) thread-runtime\n"],
    ids=["short", "long"],
)
def test_values_of_result_rows_are_checked(row, value):
    message = f"^f:2: runtime-max/thread: expected a number from 0 up, got {value!r}$"
    with pytest.raises(PerfBenchError, match=message):
        parse("\n" + row.format(value), "f")


def test_rows_of_threads_are_checked():
    text = " main, 5.000, secs, runtime-max/thread\n process0:thread0  nan, GB/sec  thread-speed\n"
    with pytest.raises(PerfBenchError, match=r"^f:2: thread-speed: expected a number from 0 up, got 'nan'$"):
        parse(text, "f")


def test_units_of_result_rows_are_checked():
    with pytest.raises(PerfBenchError, match="f:1: runtime-max/thread: expected the unit secs, got GB"):
        parse(" main,   6.801, GB,  runtime-max/thread\n", "f")


NINES = "9" * 5000


@pytest.mark.parametrize("digits", [10, 20, 5000])
@pytest.mark.parametrize(
    ("old", "line"),
    [
        ("160 tasks", 2),
        ("on 4 nodes", 2),
        ("1000MB", 4),
        ("-1x  1000MB", 4),
        ("[0.2 mins]", 10),
        (" 36/2 ", 10),
        ("l:  0-1 ", 11),
        ("{1-2}", 11),
        ("41.8s", 14),
    ],
)
def test_absurdly_long_numbers_are_refused_with_file_and_line(old, line, digits):
    absurd = re.sub(r"\d+", NINES[:digits], old, count=1)
    message = f"^f:{line}: expected numbers of at most 9 digits, got one of {digits} digits$"
    with pytest.raises(PerfBenchError, match=message):
        parse(TRACE.replace(old, absurd, 1), "f")


@pytest.mark.parametrize(
    "text",
    [
        f" main, {NINES}.000, secs, runtime-max/thread",
        f" {NINES} secs average thread-runtime",
        f" # Startup synchronization: ... threads initialized in {NINES} seconds.",
    ],
)
def test_absurdly_long_results_are_refused(text):
    with pytest.raises(PerfBenchError, match=r"^f:1: expected numbers of at most 9 digits, got one of 5000 digits$"):
        parse(text, "f")


def test_absurdly_long_options_are_skipped_and_said():
    report = parse(f"$ perf bench numa mem -p {NINES} -m\n" + TRACE)
    assert report.tests[0].options is None
    assert report.skipped[0][0] == 1
    assert report.skipped[0][2] == "options not understood: -p: expected a number of at most 9 digits"


def test_a_startup_time_that_is_no_number_is_refused():
    with pytest.raises(
        PerfBenchError, match=r"^f:1: startup synchronization: expected a number from 0 up, got '1.2.3'$"
    ):
        parse("# Startup synchronization: ... threads initialized in 1.2.3 seconds.", "f")


def test_a_record_cut_off_at_the_end_is_skipped_and_said():
    report = parse(TRACE[:-30])
    assert len(report.tests[0].progress) == 4
    assert report.skipped[0][0] == 14
    assert report.skipped[0][2] == "record cut off at the end of the text"


@pytest.mark.parametrize("text", ["", "numa_hit 12\n", '# Running main, "perf bench numa mem -a"\n'])
def test_a_text_without_output_is_refused(text):
    with pytest.raises(PerfBenchError, match="f: no output of perf bench numa mem found"):
        parse(text, "f")


def test_unknown_test_names_list_the_known():
    report = perf_bench.read(GOLDEN / "048" / "input.txt")
    assert report.test("4x6-convergence").converged_s == 5.444
    with pytest.raises(KeyError, match="no test '2x3'; there are: RAM-bw-local, RAM-bw-remote"):
        perf_bench.to_dataset(report, "2x3")


# ------------------------------------------------------------- the schema, both ways


def test_to_dataset_of_the_trace():
    ds = perf_bench.to_dataset(parse(TRACE), nodes=[0, 1, 8, 9])
    assert ds.attrs["source"] == "measured"
    assert ds.perf_threads.dims == ("run", "progress", "node")
    assert ds.perf_threads.sel(node=8).values.tolist() == [[36, 39, 40, 40, 40]]
    assert ds.perf_time_s.values.tolist() == [[12.0, 18.0, 24.0, 36.0, 42.0]]
    assert ds.perf_groups.values.tolist() == [[3, 10, 9, 9, 8]]
    assert ds.perf_nodes_max.values.tolist() == [[2, 2, 2, 2, -1]]
    assert ds.numa.perf_convergence_time().values.tolist() == [41.8]
    assert (ds.perf_tasks.item(), ds.perf_process_mb.item(), ds.perf_loops.item()) == (160, 1000, -1)
    with pytest.raises(PerfBenchError, match="nodes: expected 4 labels, got 2"):
        perf_bench.to_dataset(parse(TRACE), nodes=[0, 1])


def test_to_dataset_of_a_suite():
    ds = perf_bench.to_dataset(perf_bench.read(GOLDEN / "048" / "input.txt"))
    assert ds.test.values.tolist()[-2:] == ["1x3-convergence", "4x6-convergence"]
    np.testing.assert_array_equal(ds.perf_converged_s.values, [np.nan] * 5 + [5.444])
    np.testing.assert_array_equal(ds.perf_latency_s.values, [np.nan] * 4 + [100.103, 5.444])
    assert ds.perf_total_gb_per_s.values[:2].tolist() == [8.436, 6.717]
    assert ds.nr_threads.values.tolist() == [1, 1, 1, 1, 3, 6]
    assert ds.perf_tasks.values.tolist() == [-1] * 6
    one = perf_bench.to_dataset(perf_bench.read(GOLDEN / "048" / "input.txt"), "4x6-convergence")
    assert one.sizes["run"] == 1


def test_tests_on_different_machines_stay_apart():
    two = " #    0.0%  [1.0 mins]  2/1   2/1  [ 0/2 ] l:  3-5   (  2) [40.0%]\n"
    with pytest.raises(PerfBenchError, match=r"records with \[2, 4\] nodes"):
        perf_bench.to_dataset(parse(TRACE + '# Running b, "perf bench numa mem"\n' + two))


@pytest.mark.parametrize("carriage_returns", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        TRACE,
        STAY,
        STAY + LEAVE,
        STAY + LEAVE + AGAIN,
        *[(GOLDEN / c / "input.txt").read_text() for c in ("023", "048")],
    ],
    ids=["trace", "stay", "leave", "again", "023", "048"],
)
def test_what_was_read_is_written_and_read_back(text, carriage_returns):
    ds = perf_bench.to_dataset(parse(text))
    written = perf_bench.format_progress(ds, carriage_returns=carriage_returns)
    report = parse(written)
    assert report.skipped == []
    assert runs.differences(perf_bench.to_dataset(report), ds) == []


def test_carriage_returns_stand_where_perf_puts_them():
    written = perf_bench.format_progress(perf_bench.to_dataset(parse(STAY + LEAVE)), carriage_returns=True)
    assert STAY.removeprefix(" ") + LEAVE in written
    assert "\r" not in perf_bench.format_progress(perf_bench.to_dataset(parse(STAY)))


def test_setup_and_results_are_written_to_the_byte():
    written = perf_bench.format_progress(perf_bench.to_dataset(parse(TRACE)))
    assert TRACE.split("\n ###\n\n ###")[0] in written
    original = (GOLDEN / "023" / "input.txt").read_text()
    written = perf_bench.format_progress(perf_bench.to_dataset(parse(original)))
    assert original[original.index(" main,  ") :] in written


# ------------------------------------------------------------- perf's judgement


def observe(nodes, process, loops=None, before=False, seconds=41.8, labels=(0, 1)):
    loops = [1] * len(nodes) if loops is None else loops
    return perf_bench.observe(seconds, nodes, process, loops, nodes=labels, converged_before=before)


def test_observe_counts_as_perf_does():
    record = observe([0, 0, 0, 1], [5, 5, 6, 6], loops=[2, 4, 3, 3])
    assert (record.threads, record.processes) == ((3, 1), (2, 1))
    assert (record.distance, record.groups) == (2, 3)
    assert (record.loops_min, record.loops_max) == (2, 4)
    assert (record.nodes_min, record.nodes_max) == (1, 2)
    assert record.flag is None


def test_observe_converges_when_every_process_sits_on_one_node():
    record = observe([0, 0, 1, 1], [5, 5, 6, 6])
    assert (record.flag, record.flag_s, record.nodes_min) == ("converged", 41.8, None)
    assert observe([0, 0, 0, 0], [5, 5, 6, 6]).flag == "converged"
    assert observe([0, 0, 1, 1], [5, 5, 6, 6], before=True).flag is None
    record = observe([0, 0, 1, 0], [5, 5, 6, 6], before=True)
    assert (record.flag, record.nodes_max) == ("de-converged", 2)


def test_observe_with_threads_not_started():
    # as in the first line of the mail: a process not wholly started counts as on no node
    record = observe([0, 0, 1, -1], [5, 5, 6, 6], loops=[0, 0, 0, 0])
    assert (record.threads, record.groups, record.nodes_min, record.nodes_max) == ((2, 1), 2, 0, 1)
    assert record.flag is None
    record = observe([-1, -1], [5, 6], loops=[0, 0])
    assert (record.threads, record.loops_min, record.loops_max) == ((0, 0), -1, 0)
    assert parse(perf_bench.format_record(record)).tests[0].progress[0].loops_min == -1


def test_observe_uses_node_labels():
    assert observe([8, 8, 3, 3], [5, 5, 6, 6], labels=(3, 8)).threads == (2, 2)


@st.composite
def histories(draw):
    """Records of one run, at times perf can print exactly."""
    labels = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
    processes = draw(st.integers(1, 3))
    process = np.repeat(np.arange(processes), draw(st.integers(1, 3)))
    records, converged, minute, loops = [], False, 0, np.zeros(len(process), dtype=int)
    for _ in range(draw(st.integers(0, 5))):
        minute += draw(st.integers(1, 9))
        home = draw(st.lists(st.sampled_from(labels), min_size=processes, max_size=processes))
        node = np.array(home)[process]
        if draw(st.booleans()):
            node[draw(st.integers(0, len(node) - 1))] = draw(st.sampled_from([-1, *labels]))
        loops = loops + draw(st.integers(0, 3))
        loops[0] += draw(st.integers(0, 2))
        record = perf_bench.observe(minute * 6.0, node, process, loops, nodes=labels, converged_before=converged)
        converged = record.flag == "converged" or (converged and record.flag is None)
        records.append(record)
    return labels, records, converged


@settings(max_examples=150, deadline=None)
@given(histories(), st.booleans())
def test_any_simulated_history_survives_the_text(history, carriage_returns):
    labels, records, converged = history
    last = [r.flag_s for r in records if r.flag == "converged"]
    ds = runs.build(
        {**perf_bench.tabulate([records]), "perf_converged_s": [last[-1] if converged else np.nan]},
        {"node": labels} if records else {"node": []},
        title="simulated",
        source="simulated",
        params={},
    )
    text = perf_bench.format_progress(ds, carriage_returns=carriage_returns)
    if not records:
        assert "mins]" not in text
        return
    back = perf_bench.to_dataset(parse(text), nodes=labels)[list(ds)]
    back = back.drop_vars(["test", "command", "nr_proc", "nr_threads"])
    assert runs.differences(ds, back) == []
