"""Field cases whose text comes from a tool: real output of public reports, values checked against the text by hand.

golden/cases/<case>/input.txt is the text as it was pasted. Names of cases are those of the collection it is from.
"""

import math

import pytest

from numalab.readers import (
    autonuma_log,
    funclatency,
    lkp,
    mmtests,
    numamove,
    perf_bench,
    perf_report,
    perf_script,
    perf_stat,
    skip_reasons,
    tables,
)
from tests.readers.helpers import GOLDEN

CASES = {path.name[:3]: path.name for path in (GOLDEN / "cases").iterdir()}


def case(number):
    return (GOLDEN / "cases" / CASES[number] / "input.txt").read_text(encoding="utf-8")


# ------------------------------------------------------------- perf


def test_008_xfs_repair_perf_report():
    (profile,) = perf_report.parse(case("008")).profiles
    (symbol,) = profile.symbols
    assert (symbol.name, symbol.children, symbol.own) == ("default_send_IPI_mask_sequence_phys", 52.69, 52.69)
    names = [link.name for link in symbol.chain]
    assert names.index("migrate_misplaced_page") + 1 == names.index("handle_mm_fault")
    # 97.28 % of the line above, so 51.26 % of all samples
    assert symbol.through()["flush_tlb_page"] == pytest.approx(0.9728)
    assert symbol.through()["migrate_misplaced_page"] == pytest.approx(0.9728)


BEFORE, AFTER = "(3.14-rc6)", "(3.14-rc6 with fix)"
EVENTS = ("cs", "migrations", "faults", "cache-misses", "migrate:mm_migrate_pages")


@pytest.mark.parametrize(
    ("section", "label", "counts", "elapsed"),
    [
        (BEFORE, "numa01", (1227462, 241957, 16801713, 7993529041, 98808), 1407.690148814),
        (BEFORE, "numa02", (63065, 14364, 208118, 253259404, 12), 63.840827219),
        (AFTER, "numa01", (968911, 101414, 8838697, 4429251042, 425060), 685.965331189),
        (AFTER, "numa02", (17543, 2962, 117843, 118061644, 12358), 20.380132343),
    ],
)
def test_011_numa01_with_indian_digits(section, label, counts, elapsed):
    report = perf_stat.parse(case("011"))
    assert (len(report.runs), report.skipped) == (4, [])
    (run,) = [run for run in report.runs if (run.section, run.label) == (section, label)]
    assert tuple(run.value(event) for event in EVENTS) == counts
    assert run.elapsed == perf_stat.Seconds(elapsed)
    assert run.what == f"/usr/bin/time -f %e %S %U %c %w -o start_bench.out -a ./{label}"
    shares = [run.get(event).share_percent for event in EVENTS]
    assert shares == [100, 100, 100, None, 100]


# ------------------------------------------------------------- LKP


def stats(number):
    report = lkp.parse(case(number))
    (table,) = report.tables
    assert report.skipped == []
    return {row.stat: row for row in table.rows}


def cells(row):
    return [(cell.mean, cell.stddev_percent) for cell in row.cells]


LKP = {
    "018": {
        "numa-numastat.node1.local_node": ([(1.75e8, None), (82.83, 223)], -100.0),
        "proc-vmstat.numa_hint_faults": ([(360277, 30), (680.17, 112)], -99.8),
        "proc-vmstat.numa_hint_faults_local": ([(357678, 31), (680.17, 112)], -99.8),
        "proc-vmstat.numa_pages_migrated": ([(10372, 129), (0, None)], -100.0),
        "proc-vmstat.numa_pte_updates": ([(790289, 15), (193877, 7)], -75.5),
    },
    "020": {
        "proc-vmstat.numa_hint_faults": ([(18491785, None), (18880098, None)], 2.1),
        "proc-vmstat.numa_hint_faults_local": ([(18483590, None), (18850441, None)], 2.0),
        "proc-vmstat.numa_pte_updates": ([(21039386, None), (21505792, None)], 2.2),
        "proc-vmstat.numa_pages_migrated": ([(8589, 97), (30553, 17)], 255.7),
    },
    "051": {
        "proc-vmstat.numa_pte_updates": ([(2.669e9, None), (2.78e9, None)], 4.2),
        "proc-vmstat.numa_huge_pte_updates": ([(5211079, None), (5427541, None)], 4.2),
        "proc-vmstat.numa_hint_faults": ([(1501517, None), (1412958, None)], -5.9),
        "proc-vmstat.numa_hint_faults_local": ([(1075936, None), (934706, None)], -13.1),
        "proc-vmstat.numa_pages_migrated": ([(690793, 3), (596166, 2)], -13.7),
        "proc-vmstat.pgmigrate_fail": ([(1.723e8, 2), (1.97e8, 8)], 14.3),
        "proc-vmstat.pgmigrate_success": ([(690793, 3), (596166, 2)], -13.7),
    },
    "054": {
        "proc-vmstat.numa_hint_faults": ([(683375, 10), (341609, 4)], -50.0),
        "proc-vmstat.numa_hint_faults_local": ([(519396, 17), (206845, 27)], -60.2),
        "proc-vmstat.numa_huge_pte_updates": ([(938.89, 18), (414.71, 8)], -55.8),
        "proc-vmstat.numa_pte_updates": ([(1313649, 5), (700042, 3)], -46.7),
        "proc-vmstat.nr_zone_active_anon": ([(57680, None), (1153633, 4)], 1900.0),
    },
    "086": {
        "proc-vmstat.numa_hint_faults": ([(351363, 32), (72278, 16)], -79.4),
        "proc-vmstat.numa_hint_faults_local": ([(337005, 34), (57525, 24)], -82.9),
        "proc-vmstat.numa_pte_updates": ([(411756, 21), (150280, 34)], -63.5),
        "proc-vmstat.numa_hit": ([(1.679e9, None), (1.042e9, 2)], -37.9),
    },
}
#: Local shares as the collection gives them, left and right.
SHARES = {"018": (0.993, 1.0), "020": (0.99956, 0.99843), "051": (0.717, 0.662), "054": (0.760, 0.606)}
SHARES["086"] = (0.959, 0.796)


@pytest.mark.parametrize("number", LKP)
def test_lkp(number):
    found = stats(number)
    for stat, (expected, change) in LKP[number].items():
        assert (cells(found[stat]), found[stat].changes, found[stat].absolute) == (expected, (change,), False)
    local, faults = (found[f"proc-vmstat.numa_hint_faults{end}"].cells for end in ("_local", ""))
    for i, share in enumerate(SHARES[number]):
        assert local[i].mean / faults[i].mean == pytest.approx(share, abs=5e-4)


def test_018_rows_of_nodes_become_counters_of_nodes():
    ds = tables.read_lkp(case("018"), "x").dataset()
    counters = ds.node_counters.isel(time=0)
    assert counters.sel(node=1, node_counter="local_node").values.tolist() == [175000000, 83]
    assert counters.sel(node=0, node_counter="numa_hit").values.tolist() == [175000000, 51378813]
    assert ds.counters.sel(counter="pgfault").values.tolist() == [[387100000], [57578373]]


def test_051_every_update_is_a_huge_page():
    found = stats("051")
    assert 512 * found["proc-vmstat.numa_huge_pte_updates"].cells[0].mean == pytest.approx(2.668e9, rel=5e-4)
    fail, success = (found[f"proc-vmstat.pgmigrate_{end}"].cells for end in ("fail", "success"))
    assert [round(f.mean / s.mean) for f, s in zip(fail, success, strict=True)] == [249, 330]


def test_heads_of_lkp():
    (table,) = lkp.parse(case("086")).tables
    assert (table.setup["testcase"], table.setup["test"]) == ("netperf", "TCP_MAERTS")
    (table,) = lkp.parse(case("018")).tables
    assert table.columns == ("4ab93063c83a2478", "7aaa45f8374887d98cd479a6bdd")
    assert table.setup["tbox_group"] == "lkp-csl-2sp9"


# ------------------------------------------------------------- MMTests


def labels(number):
    return {row.label: row for table in mmtests.parse(case(number)).tables for row in table.rows}


MMTESTS = {
    "039": {
        "Ops NUMA PTE updates": (147858285, 18601, 42043107),
        "Ops NUMA hint faults": (150531983, 18254, 42450080),
        "Ops NUMA hint local faults %": (125691825, 11964, 32993313),
        "Ops NUMA hint local percent": (83.50, 65.54, 77.72),
        "Ops NUMA pages migrated": (13535786, 2207, 4654628),
        "Ops AutoNUMA cost": (753952.10, 91.44, 212633.14),
        "Duration Elapsed": (2312.20, 2004.48, 2335.84),
        "Amean elsp-NUMA02": (3.16, 3.93, 3.14),
    },
    "042": {
        "User": (61493.38, 47615.01),
        "System": (1665.17, 1550.07),
        "Elapsed": (1480.79, 1236.74),
        "NUMA hint faults": (1538964, 1242142),
        "NUMA hint local faults": (835871, 814313),
        "NUMA hint local percent": (54, 65),
        "NUMA pages migrated": (7329212, 59883854),
        "NUMA huge PMD updates": (1086000, 866680),
    },
    "044": {
        "NUMA hint faults": (0,) * 6,
        "NUMA hint local percent": (100,) * 6,
        "AutoNUMA cost": (0,) * 6,
        "NUMA alloc hit": (170245991, 170939361, 169815871, 170557197, 170160298, 170719930),
    },
    "046": {
        "Hmean 16384": (27359.55, 33071.88),
        "Ops NUMA hint faults": (16113, 143),
        "Ops NUMA hint local percent": (52.18, 99.30),
        "Ops NUMA pages migrated": (4244, 1),
        "Lat 99.90th-qrtle-1": (98, 55),
    },
    "047": {
        "Amean elsp-NUMA01_THREADLOCAL": (175.68, 123.34),
        "Ops NUMA base-page range updates": (64272, 26374386),
        "Ops NUMA hint faults": (15504, 75786),
        "Ops NUMA pages migrated": (1629, 6469222),
        "Duration Elapsed": (1234.77, 868.37),
    },
}


@pytest.mark.parametrize("number", MMTESTS)
def test_mmtests(number):
    found = labels(number)
    assert {label: found[label].values for label in MMTESTS[number]} == MMTESTS[number]


def test_changes_of_mmtests():
    assert labels("039")["Amean elsp-NUMA02"].changes == (0, -24.20, 0.81)
    assert labels("046")["Hmean 16384"].changes == (0, 20.88)
    assert labels("046")["Lat 99.90th-qrtle-1"].changes == (0, 43.88)
    assert labels("047")["Amean elsp-NUMA01_THREADLOCAL"].changes == (0, 29.79)


def test_printed_percents_of_mmtests_follow_from_their_counts():
    found = labels("039")
    for i, percent in enumerate(found["Ops NUMA hint local percent"].values):
        local, faults = (found[f"Ops NUMA hint {what}"].values[i] for what in ("local faults %", "faults"))
        assert 100 * local / faults == pytest.approx(percent, abs=0.005)
    ds = tables.read_mmtests(case("042"), "x").dataset()
    # printed as 54 and 65: cut off, not rounded
    assert 100 * ds.numa.local_share().values.ravel() == pytest.approx([54.3, 65.6], abs=0.05)
    assert ds.numa.migrations_per_fault().values.ravel() == pytest.approx([4.76, 48.2], abs=0.05)


def test_044_zero_of_zero_is_undefined():
    ds = tables.read_mmtests(case("044"), "x").dataset()
    assert ds.sizes["run"] == 6
    assert all(math.isnan(share) for share in ds.numa.local_share().values.flat)


# ------------------------------------------------------------- perf bench numa


def test_023_perf_bench_128_processes():
    (test,) = perf_bench.parse(case("023")).tests
    assert (test.setup.tasks, test.setup.nodes, test.setup.cpus) == (256, 2, 128)
    assert test.startup_s == 1.086025
    expected = {
        "NUMA-convergence-latency": 6.801,
        "runtime-max/thread": 6.801,
        "runtime-min/thread": 4.000,
        "runtime-avg/thread": 5.650,
        "spread-runtime/thread": 20.594,
        "data/thread": 0.836,
        "data-total": 213.991,
        "runtime/byte/thread": 8.136,
        "thread-speed": 0.123,
        "total-speed": 31.463,
    }
    assert {row.name: row.value for row in test.results} == expected
    assert (test.converged, test.converged_s) == (True, 6.801)


def test_048_suite_of_2012():
    report = perf_bench.parse(case("048"))
    speeds = {test.name: (test.value("thread-speed"), test.value("total-speed")) for test in report.tests}
    assert speeds == {
        "RAM-bw-local": (8.436, 8.436),
        "RAM-bw-remote": (6.717, 6.717),
        "RAM-bw-local-2x": (6.588, 13.177),
        "RAM-bw-remote-2x": (3.686, 7.371),
        "1x3-convergence": (2.784, 8.351),
        "4x6-convergence": (0.237, 5.698),
    }
    stuck, done = report.test("1x3-convergence"), report.test("4x6-convergence")
    assert stuck.options.limit_s == 100
    assert (stuck.converged, stuck.value("NUMA-convergence-latency")) == (False, 100.103)
    assert (done.converged, done.converged_s, done.value("spread-runtime/thread")) == (True, 5.444, 23.794)


# ------------------------------------------------------------- other tools


def test_024_autonuma_benchmark():
    report = autonuma_log.parse(case("024"))
    assert (len(report.iterations), report.skipped) == (4, [])
    first = {name: result.seconds for name, result in report.iterations[0].items()}
    assert first == {
        "numa01": 313.17,
        "numa01_HARD_BIND": 120.33,
        "numa01_INVERSE_BIND": 179.88,
        "numa01_THREAD_ALLOC": 101.52,
        "numa01_THREAD_ALLOC_HARD_BIND": 110.97,
        "numa01_THREAD_ALLOC_INVERSE_BIND": 192.15,
        "numa02": 6.04,
        "numa02_HARD_BIND": 3.62,
        "numa02_INVERSE_BIND": 5.28,
        "numa02_SMT": 6.46,
        "numa02_SMT_HARD_BIND": 4.85,
        "numa02_SMT_INVERSE_BIND": 7.19,
    }
    # by hand: (313.17 + 301.07 + 296.72 + 283.02) / 4 = 298.495
    means = {"numa01": 298.495, "numa02": 6.0225, "numa02_SMT": 6.69, "numa01_HARD_BIND": 116.26}
    means |= {"numa01_INVERSE_BIND": 196.3575, "numa01_THREAD_ALLOC": 100.2325, "numa02_INVERSE_BIND": 5.5825}
    assert {name: report.mean(name) for name in means} == pytest.approx(means)


def test_047_reasons_for_leaving_mappings_out():
    left, right = skip_reasons.parse(case("047")).groups
    assert (left.title, right.title) == ("6.6.0-rc2-sched-numabtrace-v1", "6.6.0-rc2-sched-numabselective-v1")
    assert left.counts == {
        "scan_delay": 649,
        "unsuitable": 9094,
        "shared_ro": 48915,
        "inaccessible": 143919,
        "pid_inactive": 193050,
    }
    assert right.counts == {
        "seq_completed": 146,
        "ignore_pid_inactive": 622,
        "scan_delay": 624,
        "unsuitable": 6570,
        "shared_ro": 16101,
        "inaccessible": 27608,
        "pid_inactive": 41939,
    }
    assert left.share("pid_inactive") == pytest.approx(0.488, abs=5e-4)
    assert right.share("pid_inactive") == pytest.approx(0.448, abs=5e-4)


def test_055_numamove():
    report = numamove.parse(case("055"))
    assert [sample.time for sample in report.samples] == list(range(14))
    assert (report.start, report.skipped) == ("02:54:41", [])
    assert report.rate() == pytest.approx(31543, abs=0.5)
    assert sum(sample.ms for sample in report.samples) == 25
    # 4 KiB each
    assert report.rate() * 4096 / 2**20 == pytest.approx(123, abs=0.5)


# ------------------------------------------------------------- which reader

MODULES = {
    perf_stat: {"011"},
    perf_report: {"008"},
    lkp: {"018", "020", "051", "054", "086"},
    mmtests: {"039", "042", "044", "046", "047"},
    autonuma_log: {"024"},
    skip_reasons: {"047"},
    numamove: {"055"},
    funclatency: set(),
    perf_script: set(),
}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_reader_knows_its_own_cases_only(module):
    assert {number for number in CASES if module.looks_like(case(number))} == MODULES[module]
