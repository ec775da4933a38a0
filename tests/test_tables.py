"""Comparisons as tables of LKP and MMTests: what stands in them, and that they read back."""

import pytest

from numalab.compare import Comparison, compare
from numalab.readers import lkp, mmtests
from numalab.sides import LOCAL_SHARE, Quantity, Side, from_lkp, from_mmtests, from_runs, sample
from numalab.tables import STYLES, as_lkp, as_lkp_2014, as_mmtests
from tests.comparing import make_run
from tests.readers.helpers import golden

OLD = from_runs("3.16-tip", [make_run([1000, 1200, 1400], [500, 700, 900])], ["old.nc"])
NEW = from_runs("3.17 patched", [make_run([3000, 3100, 3200], [2900, 3000, 3100])], ["new.nc"])
THIRD = from_runs("6.1", [make_run([900, 1300, 1400], [450, 800, 800])], ["third.nc"])
FOUND = compare([OLD, NEW, THIRD])


def of(name, quantity, values):
    return Side(name, {("", quantity.name): (quantity, values)})


def lines(text):
    return text.splitlines()


# ---------------------------------------------------------------- LKP


def test_lkp():
    text = STYLES["lkp"](FOUND)
    assert lines(text)[1:10] == [
        "tbox_group/testcase:",
        "  two/load",
        "",
        "commit: ",
        "  3.16-tip",
        "  3.17_patched",
        "  6.1",
        "",
        "        3.16-tip                3.17_patched                         6.1 ",
    ]
    # means 1200, 3100, 1200; spreads 200 / 1200 = 16.7 %, 100 / 3100 = 3.2 %, 264.6 / 1200 = 22.05 %; cut off
    assert (
        "      1200 ± 16%    +158.3%       3100 ±  3%      +0.0%       1200 ± 22%  proc-vmstat.numa_hint_faults"
        in lines(text)
    )
    # shares 50, 58.33 and 64.29 % against 96.67, 96.77 and 96.88 %: a difference in points
    share = next(line for line in lines(text) if line.endswith("numalab.local_share%"))
    assert share.startswith("     57.54 ± 12%     +39.2       96.77           ")


def test_rows_of_lkp_stand_in_the_order_of_the_tool():
    (table,) = as_lkp(FOUND)
    assert [row.stat for row in table.rows] == [
        "numalab.local_share%",
        "proc-vmstat.numa_hint_faults",
        "proc-vmstat.numa_hint_faults_local",
        "proc-vmstat.numa_pte_updates",
    ]
    report = lkp.parse(golden("lkp", "086.txt"))
    (table,) = as_lkp(compare(from_lkp(report)))
    # what is computed of them first, then those of the report as it has them
    assert [row.stat for row in table.rows] == ["numalab.local_share%", *(row.stat for row in report.tables[0].rows)]


def test_a_comparison_of_lkp_s_own_means_gives_its_own_changes():
    report = lkp.parse(golden("lkp", "018.txt"))
    (table,) = as_lkp(compare(from_lkp(report), ["*"]))
    printed = {row.stat: row.changes[0] for row in report.tables[0].rows}
    assert len(table.rows) == 65
    for row in table.rows[2:]:
        assert row.changes[0] == pytest.approx(printed[row.stat], abs=0.16)  # from means of four digits


def test_the_mail_of_2014_from_its_own_numbers():
    text = STYLES["lkp-2014"](compare(from_lkp(lkp.parse(golden("lkp", "flat.txt")))))
    assert lines(text) == [
        "ebe06187bf2aec1  a43455a1d572daf7b730fe12e  ",
        "---------------  -------------------------  ",
        "     94500 ~ 3%    +115.6%     203711 ~ 6%  ivb42/hackbench/50%-threads-pipe",
        "     67745 ~ 4%     +64.1%     111174 ~ 5%  lkp-snb01/hackbench/50%-threads-socket",
        # its spread, too, is as the mail has it: (0.03 · 94500 + 0.04 · 67745) / 162245 = 3.4 %
        "    162245 ~ 3%     +94.1%     314885 ~ 6%  TOTAL proc-vmstat.numa_hint_faults_local",
    ]


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("guest-4x2/perf bench numa mem -p 4 -t 2", "guest-4x2/perf-bench-numa-mem/p-4-t-2"),
        ("ivb42/hackbench/50%-threads-pipe", "ivb42/hackbench/50%-threads-pipe"),
        ("two/load", "two/load/default"),
        ("write", "numalab/write/default"),
        ("", "numalab/test/default"),
    ],
)
def test_names_of_tests_in_2014(test, name):
    sides = [Side(side, {(test, "x"): (Quantity("x"), sample([1.0, 2.0]))}, seconds={test: []}) for side in ("a", "b")]
    (table,) = as_lkp_2014(compare(sides))
    assert [row.test for row in table.rows] == [name, lkp.TOTAL]


def test_several_tests_are_several_tables_of_lkp():
    both = [
        from_runs(name, [make_run([n], [1]), make_run([3 * n], [1], workload="other")], ["x", "y"])
        for name, n in (("a", 10), ("b", 20))
    ]
    report = lkp.parse(STYLES["lkp"](compare(both, ["numa_hint_faults"])))
    assert [(table.setup["testcase"], table.rows[0].cells[1].mean) for table in report.tables] == [
        ("load", 20),
        ("other", 60),
    ]
    # and one block with two tests and their sum in the style of 2014
    (table,) = lkp.parse(STYLES["lkp-2014"](compare(both, ["numa_hint_faults"]))).tables
    assert [(row.test, row.cells[1].mean) for row in table.rows] == [
        ("two/load/default", 20),
        ("two/other/default", 60),
        (lkp.TOTAL, 80),
    ]
    found = mmtests.parse(STYLES["mmtests"](compare(both, ["numa_hint_faults"]))).tables[0].rows
    assert {row.metric for row in found} == {"numa_hint_faults-two/load", "numa_hint_faults-two/other"}


# ---------------------------------------------------------------- MMTests


def test_mmtests():
    rows = {row.label: row for row in as_mmtests(FOUND).rows}
    amean = rows["Amean numa_hint_faults"]
    assert amean.values == pytest.approx((1200, 3100, 1200))
    # fewer faults are better, so more of them count as negative
    assert amean.changes == pytest.approx((0, -158.333, 0), abs=1e-3)
    assert amean.significant == (False, True, False)
    assert rows["Amean local_share%"].changes[1] == pytest.approx(100 * 96.7716 / 57.5397 - 100, abs=1e-3)
    assert rows["Stddev numa_hint_faults"].values[:2] == pytest.approx((200, 100))
    assert rows["Stddev numa_hint_faults"].changes[1] == pytest.approx(50)
    assert rows["CoeffVar numa_hint_faults"].values[0] == pytest.approx(100 * 200 / 1200)
    assert rows["Ops NUMA hint faults"].values == pytest.approx((1200, 3100, 1200))
    # of the means, as the tool has it of its one record: 700 of 1200
    assert rows["Ops NUMA hint local percent"].values[0] == pytest.approx(100 * 700 / 1200)
    assert [row.statistic for row in as_mmtests(FOUND).rows][::4] == [
        "Min",
        "Amean",
        "Stddev",
        "CoeffVar",
        "Max",
        "Ops",
    ]


def test_derived_rows_of_five_kernels_are_those_of_the_tool():
    """From the counters of a mail's table its other rows: PTE updates, local percent, AutoNUMA cost."""
    table = mmtests.parse(golden("mmtests", "five.txt")).tables[1]
    found = compare(from_mmtests(mmtests.Report("x", 1, [table])))
    rows = {row.label: row.values for row in as_mmtests(found).rows if row.statistic == "Ops"}
    assert list(rows) == [row.label for row in table.rows if row.metric != "NUMA alloc miss"]  # 0 everywhere
    for row in table.rows:
        assert rows.get(row.label, (0.0,) * 5) == pytest.approx(row.values, abs=0.005)


def test_rates_have_harmonic_means():
    rate = Quantity("pages_per_s", "s-1", "higher")
    rows = as_mmtests(compare([of("a", rate, sample([1.0, 3.0])), of("b", rate, sample([2.0, 6.0]))])).rows
    hmean = next(row for row in rows if row.statistic == "Hmean")
    assert (hmean.values, hmean.changes) == (pytest.approx((1.5, 3.0)), pytest.approx((0, 100)))
    assert not any(row.statistic == "Amean" for row in rows)


@pytest.mark.parametrize(
    ("better", "base", "new", "percent"),
    [
        ("lower", 0.0, 5.0, -99.0),
        ("lower", 5.0, 0.0, 100.0),
        ("higher", 0.0, 5.0, 100.0),
        ("higher", 5.0, 0.0, -100.0),
        ("higher", 0.0, 0.0, 0.0),
        ("", 4.0, 5.0, 25.0),
    ],
)
def test_percents_at_zero(better, base, new, percent):
    quantity = Quantity("x", "1", better)
    found = compare([of("a", quantity, sample([base])), of("b", quantity, sample([new]))], ["x"])
    assert next(row for row in as_mmtests(found).rows if row.statistic == "Amean").changes[1] == percent


# ---------------------------------------------------------------- read back


def means(sides: list[Side]) -> dict[str, list[float]]:
    return {key[1]: [side.samples[key][1].mean for side in sides] for key in sides[0].samples}


@pytest.mark.parametrize("style", STYLES)
def test_read_back_to_the_same_means(style):
    text = STYLES[style](FOUND)
    if style == "mmtests":
        report = mmtests.parse(text)
        back = from_mmtests(report)
    else:
        report = lkp.parse(text)
        back = from_lkp(report)
    assert (report.skipped, report.notes) == ([], [])
    assert [side.name for side in back] == ["3.16-tip", "3.17_patched", "6.1"]
    found = means(back)
    for row in FOUND.rows:
        wanted = [values.mean for values in row.values]
        assert found[row.quantity.name] == pytest.approx(wanted, abs=0.0051 if row.quantity.name == LOCAL_SHARE else 1)


def test_read_back_with_its_spread_it_gives_the_same_verdict():
    back = from_mmtests(mmtests.parse(STYLES["mmtests"](FOUND)), [3])
    again: Comparison = compare(back, ["numa_hint_faults"])
    (first,) = [row for row in FOUND.rows if row.quantity.name == "numa_hint_faults"]
    for one, other in zip(again.rows[0].against, first.against, strict=True):
        assert one.p == pytest.approx(other.p, rel=1e-3)
    # LKP prints whole percents, cut off, and is read as the next one
    rough = compare(from_lkp(lkp.parse(STYLES["lkp"](FOUND)), [3]), ["numa_hint_faults"])
    assert [one.significant for one in first.against] == [True, False]
    assert [one.significant for one in rough.rows[0].against] == [True, False]
    assert abs(rough.rows[0].against[0].t) < abs(first.against[0].t)


def test_a_row_that_a_side_lacks():
    sides = [of(name, Quantity("x"), sample([n, n + 1.0])) for name, n in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    for side in sides[:2]:
        side.samples["", "y"] = (Quantity("y"), sample([1.0, 2.0]))
    found = compare(sides)
    # a table of its own in LKP's styles, which have no sign for a missing value
    expected = [(("a", "b", "c"), ["numalab.x"]), (("a", "b"), ["numalab.y"])]
    assert [(table.columns, [row.stat for row in table.rows]) for table in as_lkp(found)] == expected
    for style in ("lkp", "lkp-2014"):
        report = lkp.parse(STYLES[style](found))
        assert [table.columns for table in report.tables] == [columns for columns, _ in expected]
        assert (report.skipped, report.notes) == ([], [])
    amean = next(row for row in as_mmtests(found).rows if row.label == "Amean y")
    assert (amean.values[:2], str(amean.values[2])) == ((1.5, 1.5), "nan")
