"""Illnesses of one side's counters, each at its threshold and just below."""

import pytest

from tests.diagnose.samples import alarms, balancing, found, mmtests, numbers, vmstat

MILLION = 1_000_000


def test_overhead_without_benefit():
    # 98 % local, 2 pages moved per 1000 faults, a million faults
    assert alarms(balancing(MILLION, 980_000, 2000)) == ["overhead-without-benefit"]


@pytest.mark.parametrize(
    ("faults", "local", "migrated"), [(999_999, 999_999, 0), (MILLION, 979_999, 2000), (MILLION, 980_000, 2001)]
)
def test_no_overhead_below(faults, local, migrated):
    assert alarms(balancing(faults, local, migrated)) == []


def test_overhead_by_rate():
    def text(faults):
        counts = {"numa_pte_updates": faults, "numa_hint_faults": faults, "numa_hint_faults_local": faults}
        zero = dict.fromkeys(counts, 0)
        return f"@ 0\n{vmstat(**zero, numa_pages_migrated=0)}@ 10\n{vmstat(**counts, numa_pages_migrated=0)}"

    assert alarms(text(10_000)) == ["overhead-without-benefit"]  # 1000 a second
    assert alarms(text(9999)) == []


def test_ping_pong():
    one = found(balancing(4 * MILLION, 1_200_000, 1_200_000)).illnesses
    assert [finding.id for finding in one] == ["page-ping-pong"]
    assert numbers(one[0])["pages migrated per fault"] == 0.3
    assert numbers(one[0])["local share"] == 0.3
    assert one[0].thread == "scan_overhead"


@pytest.mark.parametrize(
    ("faults", "local", "migrated"),
    [
        (4 * MILLION, 1_200_000, 1_199_999),  # 0.29999 pages per fault
        (3 * MILLION, MILLION, 999_999),  # 0.3333 per fault, but not a million pages
        (4 * MILLION, 3_200_001, 1_200_000),  # more than 80 % local
        (4 * MILLION, 199_999, 1_200_000),  # less than 5 % local
        # huge pages: 153 of 512 pages a fault are 0.2988 moves a fault
        (100_000, 50_000, 15_300_000),
    ],
)
def test_no_ping_pong_below(faults, local, migrated):
    assert "page-ping-pong" not in alarms(balancing(faults, local, migrated))


def test_ping_pong_of_huge_pages():
    # 154 / 512 = 0.3008 moves a fault
    assert alarms(balancing(100_000, 50_000, 15_400_000, numa_huge_pte_updates=9)) == ["page-ping-pong"]


def test_huge_pages_are_information():
    result = found(balancing(100_000, 50_000, 100_001, numa_huge_pte_updates=1))
    assert result.ids == ["huge-pages-several-pages-per-fault", "nothing-wrong"]
    assert found(balancing(100_000, 50_000, 100_000, numa_huge_pte_updates=1)).ids == ["nothing-wrong"]
    assert found(balancing(100_000, 50_000, 100_001, numa_huge_pte_updates=0)).ids == ["nothing-wrong"]


def test_migrations_fail():
    assert alarms(vmstat(pgmigrate_fail=900_000, pgmigrate_success=100_000)) == ["migrations-fail"]
    assert alarms(vmstat(pgmigrate_fail=899_999, pgmigrate_success=100_000)) == []
    assert alarms(vmstat(pgmigrate_fail=99_999, pgmigrate_success=1)) == []


def test_tiering_churn():
    def text(local, moved, demoted):
        return balancing(MILLION, local, moved, pgdemote_kswapd=demoted - 1, pgdemote_direct=1)

    assert alarms(text(20_000, 100_000, 125_000)) == ["tiering-churn"]
    assert alarms(text(20_000, 125_000, 100_000)) == ["tiering-churn"]
    assert alarms(text(20_000, 100_000, 125_001)) == []  # 0.79999
    assert alarms(text(20_000, 125_001, 100_000)) == []  # 1.25001
    assert alarms(text(20_000, 99_999, 100_000)) == []
    assert alarms(text(20_001, 100_000, 100_000)) == []


def test_tiering_cannot_be_told_without_demotions():
    result = found(balancing(MILLION, 4000, 350_000))
    assert result.ids == ["not-enough-data"]
    assert "pgdemote" in result.findings[0].attempts[0]


def test_balancing_off():
    result = found(balancing(0, 0, 0, numa_hit=5_000_000))
    assert result.ids == ["balancing-off"]
    assert result.findings[0].kind == "information"
    assert found(balancing(0, 0, 0, pte=1, numa_hit=5_000_000)).ids == ["not-enough-data"]


def test_parts_above_their_wholes():
    (one,) = found(balancing(1_000_000, 1_002_000, 0)).findings
    assert one.id == "counters-contradict"
    assert numbers(one) == {"numa_hint_faults_local": 1_002_000, "numa_hint_faults": 1_000_000}
    # read one after the other, counters may be a little apart
    assert "counters-contradict" not in found(balancing(1_000_000, 1_000_900, 0)).ids
    assert found(balancing(2000, 1500, 3000, pgmigrate_success=2000)).ids == ["counters-contradict"]
    assert found(balancing(2000, 1500, 2000, pgmigrate_success=2000)).ids == ["nothing-wrong"]


def test_contradicting_counters_carry_no_finding():
    # as good a storm as any, were not more pages migrated for faults than for all reasons
    storm = {"faults": 4 * MILLION, "local": 1_200_000, "migrated": 1_200_000}
    assert alarms(balancing(**storm, pgmigrate_success=1_200_000)) == ["page-ping-pong"]
    assert found(balancing(**storm, pgmigrate_success=600_000)).ids == ["counters-contradict"]


def test_printed_percent():
    def text(percent):
        return mmtests(
            {
                "NUMA base-page range updates": [5000, 5000],
                "NUMA hint faults": [4000, 4000],
                "NUMA hint local faults %": [2000, 2000],
                "NUMA hint local percent": [50, percent],
                "NUMA pages migrated": [100, 100],
            }
        )

    result = found(text(51.5))
    assert [(one.id, one.side) for one in result.findings] == [("counters-contradict", "column 2")]
    assert numbers(result.findings[0])["local share of the counts, column 2"] == 50
    assert found(text(51)).ids == ["nothing-wrong"]


def test_too_few_faults_are_no_illness():
    # 999 faults, all local, is not enough for any verdict
    result = found(balancing(999, 999, 0))
    assert result.ids == ["not-enough-data"]
    assert "999 hint faults" in result.findings[0].says
    assert found(balancing(1000, 999, 0)).ids == ["nothing-wrong"]
