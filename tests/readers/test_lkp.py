"""Reader of LKP's comparison tables: real reports of both styles, what mail does to them, and what is refused."""

import quopri
import re
from functools import partial

import pytest

from numalab.readers import formats, lkp
from numalab.readers._text import ReadError
from numalab.readers.lkp import Cell, parse
from numalab.readers.mixed import read_text
from tests.readers.helpers import golden, refuses

MAIL = golden("lkp", "086.txt")
ROWS = [line for line in MAIL.splitlines() if "%  " in line]


def rows(text):
    return {row.stat: row for table in parse(text).tables for row in table.rows}


def cells(row):
    return [(cell.mean, cell.stddev_percent) for cell in row.cells]


# ------------------------------------------------------------- real reports


@pytest.mark.parametrize(
    ("name", "count", "stat", "expected", "change"),
    [
        ("018", 63, "proc-vmstat.numa_hint_faults", [(360277, 30), (680.17, 112)], -99.8),
        ("018", 63, "numa-numastat.node1.local_node", [(1.75e8, None), (82.83, 223)], -100.0),
        ("018", 63, "proc-vmstat.numa_pages_migrated", [(10372, 129), (0, None)], -100.0),
        ("020", 11, "proc-vmstat.numa_pages_migrated", [(8589, 97), (30553, 17)], 255.7),
        ("051", 15, "proc-vmstat.numa_pte_updates", [(2.669e9, None), (2.78e9, None)], 4.2),
        ("051", 15, "proc-vmstat.pgmigrate_fail", [(1.723e8, 2), (1.97e8, 8)], 14.3),
        ("054", 11, "proc-vmstat.nr_zone_active_anon", [(57680, None), (1153633, 4)], 1900.0),
        ("086", 6, "proc-vmstat.numa_hint_faults_local", [(337005, 34), (57525, 24)], -82.9),
    ],
)
def test_golden(name, count, stat, expected, change):
    report = parse(golden("lkp", f"{name}.txt"))
    (table,) = report.tables
    assert (len(table.rows), report.skipped, report.notes) == (count, [], [])
    row = next(row for row in table.rows if row.stat == stat)
    assert (cells(row), row.changes, row.absolute) == (expected, (change,), False)


def test_head():
    (table,) = parse(MAIL).tables
    assert table.columns == ("8c57b687e8331eb8", "01d37228d331047a0bbbd1026ce")
    assert table.line == 8
    assert table.titles[1] == '01d37228d3 ("memcg: Use trylock to access memcg stock_lock.")'
    assert table.setup["tbox_group"] == "lkp-icl-2sp2"
    assert len(table.setup) == 11
    assert parse(golden("lkp", "051.txt")).tables[0].columns == ("base", "new")


def test_three_columns_and_differences_in_points():
    (table,) = parse(golden("lkp", "three.txt")).tables
    assert table.columns == ("ff388fe5c481d39c", "8be7258aad44b5e25977a98db13", "4605212a162071afdd9c713e936")
    points = table.rows[-1]
    assert (points.stat, points.absolute, points.changes) == ("perf-stat.overall.cache-miss-rate%", True, (-4.7, 2.6))
    assert cells(points) == [(8.12, 118), (3.43, 14), (10.68, 118)]


STYLE_2014 = """\
ebe06187bf2aec1  a43455a1d572daf7b730fe12e
---------------  -------------------------
     94500 ~ 3%    +115.6%     203711 ~ 6%  ivb42/hackbench/50%-threads-pipe
     67745 ~ 4%     +64.1%     111174 ~ 5%  lkp-snb01/hackbench/50%-threads-socket
    162245 ~ 3%     +94.1%     314885 ~ 6%  TOTAL proc-vmstat.numa_hint_faults_local
"""


@pytest.mark.parametrize("text", [STYLE_2014, golden("lkp", "flat.txt"), STYLE_2014.replace("~", "±")])
def test_style_of_2014_even_without_line_ends(text):
    (table,) = parse(text).tables
    assert table.columns == ("ebe06187bf2aec1", "a43455a1d572daf7b730fe12e")
    stat = "proc-vmstat.numa_hint_faults_local"
    assert [(row.stat, row.test, row.changes, cells(row)) for row in table.rows] == [
        (stat, "ivb42/hackbench/50%-threads-pipe", (115.6,), [(94500, 3), (203711, 6)]),
        (stat, "lkp-snb01/hackbench/50%-threads-socket", (64.1,), [(67745, 4), (111174, 5)]),
        (stat, lkp.TOTAL, (94.1,), [(162245, 3), (314885, 6)]),
    ]


def test_tests_without_a_total_have_no_statistic():
    report = parse("".join(STYLE_2014.splitlines(keepends=True)[:-1]))
    assert [row.stat for row in report.tables[0].rows] == ["", ""]
    assert report.notes == [(3, "no TOTAL below these tests says which statistic they are about")]


def test_a_total_that_is_none():
    lines = STYLE_2014.splitlines(keepends=True)
    (note,) = parse("".join(lines[:3] + lines[4:])).notes
    assert note[0] == 4
    assert "is 162245 in column 1, the tests above it sum to 94500" in note[1]


def test_totals_of_2013_have_no_spread():
    text = (
        "      v3.13-rc3       eabb1f89905a0c809d13  \n---------------  -------------------------  \n"
        " 6.129e+08 ~ 0%     -19.5%  4.931e+08 ~ 1%  lkp-snb01/micro/ebizzy/200%-100-10\n"
        "  75210725 ~ 0%     -14.2%   64497421 ~ 9%  lkp-snb01/micro/hackbench/1600%-process-pipe\n"
        " 6.881e+08          -19.0%  5.576e+08       TOTAL proc-vmstat.numa_miss\n"
    )
    report = parse(text)
    assert (report.notes, cells(report.tables[0].rows[-1])) == ([], [(6.881e8, None), (5.576e8, None)])


def test_several_blocks_of_2013():
    """Fengguang Wu's reports of December 2013, shortened: a head for each statistic."""
    report = parse(golden("lkp", "2013.txt"))
    assert (len(report.tables), report.notes, report.skipped) == (3, [], [])
    assert {table.columns for table in report.tables} == {("v3.13-rc3", "eabb1f89905a0c809d13")}
    hackbench = report.tables[2].rows[1]
    assert (hackbench.stat, hackbench.test) == (
        "proc-vmstat.numa_other",
        "lkp-snb01/micro/hackbench/1600%-process-pipe",
    )
    assert (cells(hackbench), hackbench.changes) == ([(75210691, 0), (64497437, 9)], (-14.2,))
    reading = formats.read(golden("lkp", "2013.txt"), "x")
    (table,) = reading.tables
    assert table.rows[-1][:2] == ("proc-vmstat.numa_other", "TOTAL")
    assert table.columns == (
        *("stat", "test", "v3.13-rc3", "v3.13-rc3 stddev_percent"),
        *("eabb1f89905a0c809d13", "eabb1f89905a0c809d13 stddev_percent", "eabb1f89905a0c809d13 change", "change_in"),
    )
    ds = reading.dataset()
    assert ds.sizes["run"] == 4
    assert ds.counter.values.tolist() == ["numa_miss", "numa_other"]


def test_a_value_that_went_and_a_spread_above_100():
    text = "  64760830 ~ 0%    -100.0%          0 ~122%  brickland2/micro/vm-scalability/1T-anon-w-seq\n"
    text += "  64760830         -100.0%          0       TOTAL numa-numastat.node0.other_node\n"
    (row, _) = parse(text).tables[0].rows
    assert (cells(row), row.stat) == ([(64760830, 0), (0, 122)], "numa-numastat.node0.other_node")


def test_failures_say_how_many_runs_there_were():
    text = (
        "e8e9d21a5df655a6 e84f43e34faf85816587f805945\n---------------- ---------------------------\n"
        "       fail:runs  %reproduction    fail:runs\n           |             |             |\n"
        "         16:60         -27%            :111   dmesg.BUG:KCSAN:data-race\n"
        "         %stddev     %change         %stddev\n             \\          |                \\\n"
        "     515.95           -50.0%     257.98        filebench.sum_operations/s\n"
    )
    (table,) = parse(text).tables
    assert table.failures == [lkp.Failure("dmesg.BUG:KCSAN:data-race", ((16, 60), (0, 111)), 5)]
    assert table.runs == (60, 111)
    assert [row.stat for row in table.rows] == ["filebench.sum_operations/s"]


# ------------------------------------------------------------- what mail does


MANGLED = {
    "quoted": "".join("> " + line for line in MAIL.splitlines(keepends=True)),
    "quoted twice": "".join("> > " + line for line in MAIL.splitlines(keepends=True)),
    "quoted tightly": "".join(">>" + line for line in MAIL.splitlines(keepends=True)),
    "CRLF": MAIL.replace("\n", "\r\n"),
    "blanks stripped": "\n".join(line.strip() for line in MAIL.splitlines()) + "\n",
    "blanks squeezed": re.sub(r"(?<=\S) +", " ", MAIL),
    "plus-minus in ASCII": MAIL.replace("±", "+-"),
    "plus-minus of an archive": MAIL.replace("±", "A+-"),
    "UTF-8 read as latin-1": MAIL.encode().decode("latin-1"),
    "latin-1 read as UTF-8": MAIL.encode("latin-1").decode("utf-8", errors="replace"),
    "names on lines of their own": re.sub(r"  ((?:proc|perf)\S+)$", r"\n   \1", MAIL, flags=re.MULTILINE),
    "wrapped before a percent": re.sub(r"± (\d\d%  \w)", r"±\n\1", MAIL),
    "quoted and wrapped": re.sub(
        r"^", "> ", re.sub(r" +(\S+) +(\S+)$", r"\n\1 \2", MAIL, flags=re.MULTILINE), flags=re.M
    ),
    "quoted-printable": MAIL.replace("=", "=3D").replace("±", "=C2=B1"),
    "quoted-printable, as Python encodes": quopri.encodestring(MAIL.encode()).decode(),
}


@pytest.mark.parametrize("name", MANGLED)
def test_what_mail_does_changes_no_number(name):
    expected = rows(MAIL)
    found = rows(MANGLED[name])
    assert {stat: cells(row) for stat, row in found.items()} == {stat: cells(row) for stat, row in expected.items()}
    assert {stat: row.changes for stat, row in found.items()} == {stat: row.changes for stat, row in expected.items()}


def test_a_quoted_reply_in_quoted_printable():
    text = (
        ">> dcb45fd7f501f864                    v6.3-rc2 32715af441411a5a266606be0=\n8f\n"
        ">> ---------------- --------------------------- -------------------------=\n--\n"
        ">>        5.04 =C2=B1  7%    +833.7%      47.09 =C2=B1  2%      -2.9%    =\n"
        "   4.90 =C2=B1  2%  filebench.sum_time_ms/op\n"
        ">>       10438          -100.0%       0.33 =C2=B1141%    -100.0%       0.=\n50 =C2=B1100%  filebench.faults\n"
    )
    (table,) = parse(text).tables
    assert table.columns == ("dcb45fd7f501f864", "v6.3-rc2", "32715af441411a5a266606be08f")
    assert [cells(row) for row in table.rows] == [
        [(5.04, 7), (47.09, 2), (4.9, 2)],
        [(10438, None), (0.33, 141), (0.5, 100)],
    ]


def test_a_table_of_four_wrapped_everywhere():
    text = (
        "> 9f68395333ad7f5b 070f5e860ee2bf588c99ef7b4c2                        v5.7\n> 63a5d0fbb5ec62f5148c251c01e\n"
        "> ---------------- --------------------------- ---------------------------\n> ---------------------------\n"
        ">          %stddev     %change         %stddev     %change %stddev     %change\n> %stddev\n"
        ">       0.69           -10.3%       0.62            -9.1%       0.62\n"
        "> +1.0%       0.69        reaim.child_systime\n"
    )
    (table,) = parse(text).tables
    assert table.columns[2:] == ("v5.7", "63a5d0fbb5ec62f5148c251c01e")
    assert table.rows == [
        lkp.Row("reaim.child_systime", (Cell(0.69), Cell(0.62), Cell(0.62), Cell(0.69)), (-10.3, -9.1, 1.0), line=7)
    ]


# ------------------------------------------------------------- never misread


def skipped(text):
    return [(skip.line, skip.reason) for skip in parse(text).skipped]


def test_other_text_is_named():
    text = "Hello,\nwe noticed a regression.\n" + MAIL + "Thanks\n"
    assert skipped(text) == [(n, "not a row of an LKP table") for n in (1, 2, 20)]


@pytest.mark.parametrize("lost", range(1, len(ROWS[1].strip())))
def test_a_row_cut_anywhere_gives_the_same_numbers_or_none(lost):
    """Cut within its name it still holds the numbers; with fewer it is not read."""
    whole = rows(MAIL)["proc-vmstat.numa_hint_faults"]
    text = MAIL.replace(ROWS[1], ROWS[1][:-lost])
    found = [row for table in parse(text).tables for row in table.rows if row.line == whole.line]
    assert [cells(row) for row in found] in ([], [cells(whole)])
    assert found or any(line == whole.line for line, _ in skipped(text))
    assert len(rows(text)) >= 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("351363", "35136", "change -79.4% does not follow from 35136 and 72278"),
        ("-79.4%", "+79.4%", "does not follow"),
        ("72278", "7227", "does not follow"),
        ("-79.4%   ", "-79.4    ", "does not follow"),
        (
            "-79.4%      72278 ± 16%",
            "-79.4%      72278 ± 16%    +3.0%  361903",
            "expected 2 columns as in the head, got 3",
        ),
        ("351363 ± 32%     -79.4%", "351363 ± 32%", "not a row"),
    ],
)
def test_a_changed_row_is_refused(old, new, words):
    text = MAIL.replace(old, new, 1)
    ((line, reason),) = skipped(text)
    assert (line, "proc-vmstat.numa_hint_faults" in rows(text)) == (13, False)
    assert words in reason


def test_a_word_below_a_cut_row_is_no_name():
    text = MAIL + "  1000  +5.0%  1050\nThanks\n"
    assert skipped(text) == [(18, "row cut off or changed"), (19, "not a row of an LKP table")]


def test_changes_with_and_without_percent_do_not_mix():
    text = golden("lkp", "three.txt").replace("-4.3%   39746835", "-4.3    39746835")
    ((line, reason),) = skipped(text)
    assert line == 12
    assert reason.startswith("some changes have a %")


def test_no_line_end_may_mean_half_a_name():
    (note,) = parse(MAIL.rstrip("\n")[:-6]).notes
    assert note == (17, "the text ends without a line end; is proc-vmstat.numa_pte_u the whole name?")


def test_what_is_no_table():
    parse_ = partial(refuses, parse)
    parse_("hello\n", 0, "holds no row of an LKP table", "expected '<mean>")
    parse_("  12 ± 3%   +90.0%   13  x.y\n", 0, "line 1: the change +90.0% does not follow")
    assert not lkp.looks_like("about 5 -3.0% 6 or so")
    assert not lkp.looks_like(golden("mmtests", "046.txt"))


# ------------------------------------------------------------- dataset


def test_dataset_of_counters():
    ds = formats.read(golden("lkp", "018.txt"), "x").dataset()
    assert ds.kernel.values.tolist() == ["4ab93063c83a2478", "7aaa45f8374887d98cd479a6bdd"]
    assert ds.numa_hint_faults.values.tolist() == [[360277], [680]]
    # as the report has it: 357678 of 360277, 680.17 of 680.17
    assert ds.numa.local_share().values == pytest.approx([0.9928, 1.0], abs=5e-5)
    assert ds.counters.sel(counter="numa_hit").values.tolist() == [[350000000], [51462030]]
    assert not [name for name in ds.counter.values if name.startswith("nr_")]


def test_dataset_of_tests():
    ds = formats.read(STYLE_2014, "x").dataset()
    assert ds.test.values.tolist()[::2] == [
        "ivb42/hackbench/50%-threads-pipe",
        "lkp-snb01/hackbench/50%-threads-socket",
    ]
    assert ds.numa_hint_faults_local.values.tolist() == [[94500], [203711], [67745], [111174]]


def test_a_dataset_needs_counters():
    reading = formats.read("   515.95           -50.0%     257.98        filebench.sum\n", "x.txt")
    with pytest.raises(ValueError, match=r"^x.txt: holds no counter of /proc/vmstat"):
        reading.dataset()


def test_a_total_that_names_nothing_is_skipped():
    text = golden("lkp", "2013.txt")
    at, row = next((i, line) for i, line in enumerate(text.split("\n"), 1) if "TOTAL" in line)
    report = parse(text.replace(row, row[: row.index("TOTAL") + len("TOTAL")]))
    assert [skip.line for skip in report.skipped if "TOTAL does not say" in skip.reason] == [at]


def test_a_negative_value():
    """-15 is 50 % more than -10, and "-10" no change."""
    (table,) = parse("    -10           +50.0%        -15        sched_debug.cfs_rq:/.spread0.avg\n").tables
    assert [cell.mean for cell in table.rows[0].cells] == [-10, -15]
    assert table.rows[0].changes == (50,)


def test_a_negative_counter():
    row = "     -9           +0.0%         -9        proc-vmstat.numa_pages_migrated\n"
    with pytest.raises(ReadError, match=r"^x:1: -9 for a counter, which is never negative"):
        read_text(row, "x")


def test_what_is_compared_and_how_is_reported():
    said = [place.what for place in formats.read(MAIL, "x").understood]
    assert 'title: 01d37228d3 ("memcg: Use trylock to access memcg stock_lock.")' in said
    (setup,) = (what for what in said if "tbox_group" in what)
    assert "testcase netperf" in setup
