"""Reader of MMTests' comparison tables: real ones with two to six kernels, and what must not be misread."""

import re

import numpy as np
import pytest

from numalab.readers import formats, mmtests
from numalab.readers.mmtests import parse
from tests.readers.helpers import golden, refuses

THREE = golden("mmtests", "039.txt")


def rows(text):
    return {row.label: row for table in parse(text).tables for row in table.rows}


# ------------------------------------------------------------- real tables


def test_three_kernels_without_names():
    report = parse(THREE)
    (table,) = report.tables
    assert table.kernels == ("base", "column 2", "column 3")
    assert (len(table.rows), report.skipped) == (14, [])
    assert report.notes == [(1, "no names above these 3 columns; numbered from the left")]
    found = rows(THREE)
    assert found["Ops NUMA PTE updates"].values == (147858285, 18601, 42043107)
    assert found["Ops NUMA hint local faults %"].values == (125691825, 11964, 32993313)
    assert found["Ops AutoNUMA cost"].values == (753952.10, 91.44, 212633.14)
    assert found["Duration Elapsed"].values == (2312.20, 2004.48, 2335.84)
    amean = found["Amean elsp-NUMA02"]
    assert (amean.values, amean.changes) == ((3.16, 3.93, 3.14), (0, -24.20, 0.81))
    assert (amean.significant, amean.lower_is_better) == ((False, True, True), True)


def test_old_totals_under_a_glued_head():
    (table,) = parse(golden("mmtests", "042.txt")).tables
    assert table.kernels == ("3.18.0-rc4-vanilla", "3.18.0-rc4-protnone-v2r5")
    found = rows(golden("mmtests", "042.txt"))
    assert found["System"].values == (1665.17, 1550.07)
    assert found["NUMA hint local percent"].values == (54, 65)
    assert found["NUMA pages migrated"].values == (7329212, 59883854)


def test_six_kernels():
    found = rows(golden("mmtests", "044.txt"))
    assert found["NUMA alloc hit"].values == (170245991, 170939361, 169815871, 170557197, 170160298, 170719930)
    assert found["NUMA hint local percent"].values == (100,) * 6


def test_rates_rows_below_a_head_and_a_cut_end():
    report = parse(golden("mmtests", "046.txt"))
    (table,) = report.tables
    assert table.kernels == ("baseline", "lbnuma-v3")
    found = {row.label: row for row in table.rows}
    assert (found["Hmean 16384"].values, found["Hmean 16384"].changes) == ((27359.55, 33071.88), (0, 20.88))
    assert found["Hmean 16384"].lower_is_better is False
    assert (found["Stddev 3312"].changes, found["Stddev 3312"].lower_is_better) == ((0, -116.41), True)
    assert found["Lat 99.90th-qrtle-1"].values == (98, 55)
    assert found["Ops NUMA hint local percent"].values == (52.18, 99.30)
    assert [(skip.line, skip.reason) for skip in report.skipped] == [(40, "row cut off")]


def test_three_heads_in_two_lines():
    report = parse(golden("mmtests", "047.txt"))
    names = ("6.6.0-rc2-sched-numabtrace-v1", "6.6.0-rc2-sched-numabselective-v1")
    assert [(table.line, table.kernels, len(table.rows)) for table in report.tables] == [
        (22, names, 5),
        (30, names, 3),
        (35, names, 7),
    ]
    amean = report.tables[0].rows[1]
    assert (amean.statistic, amean.metric) == ("Amean", "elsp-NUMA01_THREADLOCAL")
    assert (amean.values, amean.changes, amean.significant) == ((175.68, 123.34), (0, 29.79), (False, True))
    # the counts of skipped VMAs above are no such table
    assert [skip.line for skip in report.skipped] == [*range(1, 8), *range(9, 13), *range(14, 19)]


def test_five_kernels():
    """Patch series of February 2020 (linux-kernel, "Reconcile NUMA balancing decisions with the load balancer")."""
    report = parse(golden("mmtests", "five.txt"))
    first, second = report.tables
    assert first.kernels[1:] == tuple(
        f"5.6.0-rc1-{name}" for name in ("loadavg-v3", "lbidle-v3", "classify-v6", "stopsearch-v6")
    )
    assert second.kernels[4] == "5.6.0-rc1-stopsearch-v3"
    assert first.rows[0].significant == (False, False, False, True, False)
    assert second.rows[-1].values == (8412.04, 7961.44, 7399.05, 6444.39, 7585.05)
    assert [skip.line for skip in report.skipped] == [6, 7, 9]


def test_six_kernels_of_2012_whose_names_ran_into_each_other():
    """Mel Gorman, linux-mm, November 2012 (numacore, autonuma, balancenuma), shortened."""
    report = parse(golden("mmtests", "2012.txt"))
    names = tuple(
        f"3.7.0-rc6-{name}"
        for name in (
            *("stats-v5r1", "numacore-20121123", "autonuma-v28fastr4"),
            *("thpmigrate-v5r1", "adaptscan-v5r1", "delaystart-v5r4"),
        )
    )
    assert [table.kernels for table in report.tables[1:]] == [names] * 3
    assert [skip.line for skip in report.skipped] == [5, 12, 26]
    found = {row.label: row for table in report.tables for row in table.rows}
    assert found["Kswapd efficiency"].values == (100,) * 6
    assert found["NUMA PTE updates"].values == (0, 0, 0, 842347410, 295302723, 301160396)
    assert found["Elapsed"].values == (6827.56, 2781.35, 3046.92, 3508.55, 3757.51, 3843.07)
    assert found["Stddev 5"].changes == (0, -3958.43, 18.98, -48.07, -117.62, -169.00)
    assert found["TPut 1"].lower_is_better is False
    # PTE updates were the kernel's counter then; since 2013 the label stands for a difference
    ds = formats.read(golden("mmtests", "2012.txt"), "x").dataset()
    assert ds.numa_pte_updates.values.ravel().tolist() == [0, 0, 0, 842347410, 295302723, 301160396]
    later = "Ops NUMA PTE updates 11 12\nOps NUMA PMD updates 1 1\nOps NUMA hint faults 5 6\n"
    assert "numa_pte_updates" not in formats.read(later, "x", "mmtests").dataset()


def test_three_kernels_in_a_reply_of_2015():
    """The thread on xfs_repair, 4.0-rc1; 42 % local on 3.19: 61866265 of 147235021."""
    first, second = parse(golden("mmtests", "2015.txt")).tables
    assert second.kernels == ("4.0.0-rc1-vanilla", "4.0.0-rc1-slowscan-v2", "3.19.0-vanilla")
    assert first.rows[0].values == (533.37, 309.38, 207.94)
    ds = formats.read(golden("mmtests", "2015.txt"), "x").dataset()
    assert ds.numa_pte_updates.values.ravel().tolist() == [300195775, 143923210, 282048527]
    assert 100 * ds.numa.local_share().values.ravel() == pytest.approx([40.3, 37.7, 42.0], abs=0.05)


def test_head_after_tabs_and_values_with_percent_signs():
    """A machine of one node, number 1 (May 2015); the last row is as other tables of the time have it."""
    report = parse(golden("mmtests", "uma.txt"))
    (table,) = report.tables
    assert table.kernels == ("vanilla", "patched")
    assert (table.rows[-1].label, table.rows[-1].values) == ("AutoNUMA cost", (0, 0))
    assert [skip.line for skip in report.skipped] == [1, 2]


def test_counts_of_an_analysis_of_ftrace():
    """The series of February 2020: numbers of task moves beside the counters."""
    first, second = parse(golden("mmtests", "ftrace.txt")).tables
    assert first.kernels == ("base", "column 2")
    assert second.kernels == ("5.6.0-rc1-baseline-v2", "5.6.0-rc1-stopsearch-v2")
    assert [(row.metric, row.values) for row in second.rows] == [
        ("Migrate failed no CPU", (1871, 689)),
        ("Migrate failed move to idle", (0, 0)),
        ("Migrate failed swap task fail", (872, 568)),
        ("Task Migrated swapped", (6702, 3344)),
    ]


def test_older_brackets_and_nan():
    text = (
        "                                3.16.0                3.16.0                3.17.0\n"
        "                               vanilla               patched               vanilla\n"
        "Time System-NUMA01        84.65 (  0.00%)      120.93 (-42.86%)           nan (  nan%)\n"
    )
    (table,) = parse(text).tables
    assert table.kernels == ("3.16.0-vanilla", "3.16.0-patched", "3.17.0-vanilla")
    (row,) = table.rows
    assert (row.statistic, row.metric, row.values[:2], row.changes[:2]) == (
        *("Time", "System-NUMA01"),
        *((84.65, 120.93), (0, -42.86)),
    )
    assert np.isnan(row.values[2])
    assert np.isnan(row.changes[2])


# ------------------------------------------------------------- what mail does

MANGLED = {
    "quoted": re.sub("^", "> ", THREE, flags=re.MULTILINE),
    "quoted twice": re.sub("^", ">> ", THREE, flags=re.MULTILINE),
    "CRLF": THREE.replace("\n", "\r\n"),
    "blanks squeezed": re.sub(" +", " ", THREE),
    "tabs": re.sub(" {3,}", "\t", THREE),
    "indented": re.sub("^(?=.)", "  ", THREE, flags=re.MULTILINE),
    "wrapped before the last value": re.sub(r" +(\S+)$", r"\n\1", THREE, flags=re.MULTILINE),
    "wrapped before a star": THREE.replace(" * ", "\n* "),
    "wrapped after a star": THREE.replace("3.93 * -24", "3.93 *\n-24"),
    "quoted and wrapped": re.sub("^", "> ", re.sub(r"( +\S+)( +\S+)$", r"\1\n\2", THREE, flags=re.M), flags=re.M),
}


@pytest.mark.parametrize("name", MANGLED)
def test_what_mail_does_changes_no_number(name):
    def numbers(found):
        return {label: (row.values, row.changes, row.significant) for label, row in found.items()}

    assert numbers(rows(MANGLED[name])) == numbers(rows(THREE))
    assert parse(MANGLED[name]).skipped == []


# ------------------------------------------------------------- never misread


def skipped(text):
    return [(skip.line, skip.reason) for skip in parse(text).skipped]


@pytest.mark.parametrize("lost", range(1, 70))
def test_a_row_cut_anywhere_is_not_read(lost):
    lines = THREE.splitlines()
    cut = lines[1][:-lost]
    found = [row for table in parse("\n".join([lines[0], cut, *lines[2:]])).tables for row in table.rows]
    assert not [row for row in found if row.line == 2]
    assert skipped("\n".join([lines[0], cut, *lines[2:]]))[0][0] == 2
    assert len(found) == 13


@pytest.mark.parametrize("lost", range(2, 40))
def test_a_plain_row_cut_anywhere_shifts_nothing(lost):
    """Digits lost at the very end cannot be seen; a column less can."""
    lines = THREE.splitlines()
    cut = lines[10][:-lost]
    found = rows("\n".join([*lines[:10], cut, *lines[11:]]) + "\n")
    assert found["Ops NUMA hint faults"].values == (150531983, 18254, 42450080)
    row = next((row for row in found.values() if row.line == 11), None)
    assert row is None or row.values[:2] == (147858285, 18601)


def test_a_missing_column():
    text = THREE.replace("        3.14 *   0.81%*", "")
    assert skipped(text) == [(1, "expected 3 columns as in the rows around, got 2")]
    text = THREE.replace("13535786.00        2207.00", "13535786.00               ")
    assert skipped(text) == [(15, "expected 3 columns as in the rows around, got 2")]


@pytest.mark.parametrize(
    ("old", "new"),
    [("3.93 *", "39.3 *"), ("* -24.20%*", "*  24.20%*"), ("3.16 (   0.00%)", "3.16 (   5.00%)"), ("3.16 (", "31.6 (")],
)
def test_percents_that_do_not_follow(old, new):
    ((line, reason),) = skipped(THREE.replace(old, new))
    assert line == 1
    assert reason.startswith("the percents do not follow from the values")


def test_numbers_at_the_end_of_labels_are_no_column():
    text = "Hmean     64         568.73      577.56\nHmean     128       1089.98     1128.06\n"
    assert {label: row.values for label, row in rows(text).items()} == {
        "Hmean 64": (568.73, 577.56),
        "Hmean 128": (1089.98, 1128.06),
    }


@pytest.mark.parametrize(
    "text", ["node 0 cpus: 0 1 2 3\nnode 1 cpus: 4 5 6 7\n", "It ran in 2014 2015\n", "MemFree  12  13\n"]
)
def test_other_text_with_numbers_is_no_row(text):
    assert not mmtests.looks_like(text)
    assert skipped(THREE + "\n" + text) == [
        (18 + i, "not a row of an MMTests table") for i in range(len(text.splitlines()))
    ]


def test_names_that_run_into_each_other_are_not_guessed():
    text = (
        "                                6_1_base_config6_1_final_config\n"
        "                                workload-kernbench-maxworkload-kernbench-max\n"
        "Ops Minor Faults                  1883340576.00  1883195171.00\n"
        "Ops Major Faults                          88.00          42.00\n"
    )
    report = parse(text)
    assert report.tables[0].kernels == ("base", "column 2")
    assert report.notes == [(3, "no names that can be told apart above these 2 columns; numbered from the left")]
    assert [skip.line for skip in report.skipped] == [1, 2]


def test_what_is_no_table():
    refuses(parse, "hello\n", 0, "holds no row of an MMTests table", "expected '<label>")
    refuses(parse, "Amean x 1.00 (0.00%) 2.00 (50.00%)\n", 0, "line 1: the percents do not follow")
    assert not mmtests.looks_like(golden("lkp", "018.txt"))


# ------------------------------------------------------------- dataset


def test_dataset_of_counters():
    ds = formats.read(golden("mmtests", "047.txt"), "x").dataset()
    assert ds.kernel.values.tolist() == ["6.6.0-rc2-sched-numabtrace-v1", "6.6.0-rc2-sched-numabselective-v1"]
    assert ds.numa_pte_updates.values.tolist() == [[64272], [26374386]]
    assert ds.numa_huge_pte_updates.values.tolist() == [[54], [51404]]
    # the table prints PTE updates without huge ones: 36624 and 55538; local percent 95.85 and 74.90
    derived = ds.numa.mmtests()
    assert derived["NUMA PTE updates"].values.tolist() == [36624, 55538]
    assert derived["NUMA hint local percent"].values == pytest.approx([95.85, 74.90], abs=0.005)


def test_tables():
    reading = formats.read(THREE, "x")
    (table,) = reading.tables
    assert table.columns[:4] == ("label", "base", "column 2", "column 2 better_percent")
    assert table.get("Amean elsp-NUMA02", "column 2 better_percent") == -24.20
    assert table.get("Amean elsp-NUMA02", "column 2 significant") == 1
    assert table.get("Ops AutoNUMA cost", "column 3") == 212633.14
    assert table.get("Ops AutoNUMA cost", "column 3 better_percent") is None
    # three heads of the same two kernels are one table
    assert len(formats.read(golden("mmtests", "047.txt"), "x").tables) == 1


def test_dataset_with_the_old_labels():
    ds = formats.read(golden("mmtests", "042.txt"), "x").dataset()
    assert ds.numa_pte_updates.values.tolist() == [[1112521407], [887860141]]
    assert ds.numa.mmtests()["NUMA PTE updates"].values.tolist() == [
        1112521407 - 512 * 1086000,
        887860141 - 512 * 866680,
    ]
    assert ds.numa.migrations_per_fault().values == pytest.approx([4.76, 48.2], abs=0.05)
    assert np.isnan(formats.read(golden("mmtests", "044.txt"), "x").dataset().numa.local_share().values).all()


def test_a_number_too_many_is_no_part_of_a_total():
    """As where a terminal cut a value in two: 170160298 is 170 and 160298 then."""
    head = "            base      new\n"
    rows = "NUMA alloc hit 1000 2000\nNUMA alloc local 10 170 160298\n"
    report = parse(head + rows)
    assert [row.label for table in report.tables for row in table.rows] == ["NUMA alloc hit"]
    assert [(skip.line, skip.reason[:18]) for skip in report.skipped] == [(3, "expected 2 columns")]
