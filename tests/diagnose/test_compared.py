"""Illnesses that two sides show, each at its threshold and just below."""

import pytest

from tests.diagnose.samples import alarms, balancing, found, mmtests, two


def ids(result):
    return [(one.id, one.side) for one in result.illnesses]


def test_ping_pong_against_another_side():
    # 0.05 and 0.15 pages a fault at 50 % local: three times
    def sides(moved, local=50_000):
        return balancing(100_000, 50_000, 5000), balancing(100_000, local, moved)

    (one,) = found(*sides(15_001)).illnesses
    assert one.id == "page-ping-pong"
    assert sorted(number.value for number in one.evidence) == [
        *(0.05, 0.15001, 0.5, 0.5),
        *(5000, 15_001, 100_000, 100_000),
    ]
    assert alarms(*sides(14_999)) == []
    assert alarms(*sides(15_001, 55_001)) == []  # 5.0001 points more are local
    assert alarms(balancing(100_000, 50_000, 3000), balancing(100_000, 50_000, 9999)) == []  # below 0.1 a fault


def test_scan_filter():
    # 1/100 of the pages scanned, 5 % faster with all of them
    def text(pte, slow):
        return two([100, slow], [10_000_000, pte], [9_000_000, 90_000], [4_500_000, 45_000], [900_000, 9000])

    assert ids(found(text(100_000, 105.27))) == [("scan-filter-too-strict", "column 2")]
    assert alarms(text(100_001, 105.27)) == []
    assert alarms(text(100_000, 105.26)) == []  # 4.997 % faster


def test_disagreeing_balancers():
    def text(local=7000, faults=1000, agreeing=900, quick=95.0):
        return two([100, quick], [20_000, 2000], [10_000, faults], [local, agreeing], [500, 10])

    assert ids(found(text())) == [("balancers-disagree", "base")]
    assert alarms(text(local=7001)) == []
    assert alarms(text(faults=1001, agreeing=1000)) == []  # more than a tenth of the faults
    assert alarms(text(agreeing=899)) == []
    assert alarms(text(quick=95.01)) == []


def test_overhead_against_balancing_off():
    def text(elapsed, system):
        rows = f"Duration System{200.0:>16.2f}{system:>16.2f}\nDuration Elapsed{1000.0:>16.2f}{elapsed:>16.2f}\n"
        return rows + mmtests(
            {
                "NUMA base-page range updates": [0, 60_000],
                "NUMA hint faults": [0, 50_000],
                "NUMA hint local faults %": [0, 40_000],
                "NUMA pages migrated": [0, 5000],
            }
        )

    assert ids(found(text(1009.9, 220.1))) == [("overhead-without-benefit", "column 2")]
    assert alarms(text(1010.1, 220.1)) == []
    assert alarms(text(989, 220.1)) == []  # it is faster: the time buys something
    assert alarms(text(1000, 219.9)) == []


LKP = """commit:
  1111111111 ("before")
  2222222222 ("after")

1111111111111111 2222222222222222222222222222
---------------- ----------------------------
         %stddev     %change         %stddev
             \\          |                \\
{rows}"""


def lkp(*rows):
    """A table of LKP: (mean, percent of it that is stddev) of each column, name."""

    def cell(value, percent):
        return f"{value:>12}" + (f" ± {percent:>2}%" if percent else "      ")

    lines = []
    for before, after, name in rows:
        change = "+0.0%" if not before[0] else f"{100 * (after[0] / before[0] - 1):+.1f}%"
        lines.append(f"{cell(*before)} {change:>9} {cell(*after)}  {name}\n")
    return LKP.format(rows="".join(lines))


def gone(faults=0, other=0, node1=0):
    return lkp(
        ((400_000, 0), (faults, 0), "proc-vmstat.numa_hint_faults"),
        ((300_000, 0), (faults, 0), "proc-vmstat.numa_hint_faults_local"),
        ((50_000, 0), (other, 0), "proc-vmstat.numa_other"),
        ((9_000_000, 0), (18_000_000, 0), "numa-numastat.node0.numa_hit"),
        ((9_000_000, 0), (node1, 0), "numa-numastat.node1.numa_hit"),
    )


def test_numa_is_gone():
    assert ("numa-gone", "2222222222222222222222222222") in ids(found(gone()))


@pytest.mark.parametrize("more", [{"faults": 1}, {"other": 1}, {"node1": 1}])
def test_numa_is_not_gone_while_a_row_is_above_zero(more):
    assert "numa-gone" not in alarms(gone(**more))


def test_balancing_switched_off_is_not_gone():
    # no row that only a machine with nodes has: balancing may be off
    text = lkp(((400_000, 0), (0, 0), "proc-vmstat.numa_hint_faults"))
    assert "numa-gone" not in alarms(text)


def repeated(faults, share, per_fault, elapsed):
    return two(
        [100, elapsed], [100_000, 150_000], [100_000, faults], [50_000, share * faults], [5000, per_fault * faults]
    )


def test_retried_migrations_against_another_side():
    # half again as many faults, 51.99 % local instead of 50, 0.10 pages a fault instead of 0.05, no better for it
    result = found(repeated(150_000, 0.5199, 0.10, 100))
    assert ids(result) == [("retried-migrations", "column 2")]
    assert result.illnesses[0].confidence == "low"
    assert alarms(repeated(149_999, 0.5199, 0.10, 100)) == []
    assert alarms(repeated(150_000, 0.5201, 0.10, 100)) == []
    assert alarms(repeated(150_000, 0.5, 0.1999, 100)) == ["page-ping-pong", "retried-migrations"]
    assert alarms(repeated(150_000, 0.5, 0.2001, 100)) == ["page-ping-pong"]


def test_tenfold_faults_are_another_setting():
    assert alarms(repeated(1_000_000, 0.5, 0.10, 100)) == ["retried-migrations"]
    assert alarms(repeated(1_000_001, 0.5, 0.10, 100)) == []


def test_faults_that_bought_something_are_no_illness():
    # 94.9 s are 5.1 % less than 100, 95.1 are 4.9 %
    assert alarms(repeated(150_000, 0.5, 0.10, 94.9)) == []
    assert alarms(repeated(150_000, 0.5, 0.10, 95.1)) == ["retried-migrations"]


def test_marginal_moves_against_another_side():
    # as above, with about as many pages a fault (0.05, then up to 0.075)
    both = ["retried-migrations", "marginal-moves"]
    assert alarms(repeated(150_000, 0.5, 0.0749, 95.1)) == both
    assert alarms(repeated(150_000, 0.5, 0.0751, 95.1)) == ["retried-migrations"]
    assert alarms(repeated(150_000, 0.5, 0.0749, 94.9)) == []
    assert alarms(repeated(149_999, 0.5, 0.0749, 95.1)) == []


def test_a_change_within_the_errors_is_none():
    # 100,000 ± 10,000 and 150,000 ± 22,500: the difference's error is 24,622, twice that 49,244
    def rows(percent):
        counts = (((100_000, 10), (150_000, percent), "proc-vmstat.numa_hint_faults"),)
        local = (((50_000, 10), (75_000, percent), "proc-vmstat.numa_hint_faults_local"),)
        moved = (((5000, 0), (7000, 0), "proc-vmstat.numa_pages_migrated"),)
        return lkp(*counts, *local, *moved)

    assert alarms(rows(15)) == ["retried-migrations"]
    assert alarms(rows(16)) == []  # 26,000: twice 26,000 is above the difference


def test_sides_of_one_table_are_not_compared_with_themselves():
    assert found(two([100, 100], [5000, 5000], [4000, 4000], [2000, 2000], [100, 100])).illnesses == ()
