"""Many snapshots in one input: a series where they are of one boot, else each illness is said once."""

import json
import time

import pytest

from numalab.diagnose import diagnose
from numalab.diagnose.snapshots import MOST_BOOTS
from numalab.readers.mixed import read_text
from tests.diagnose.samples import alarms, balancing, found, log, numbers, vmstat

SIDE_BY_SIDE = """\
page-ping-pong (40 of 40 samples): illness, confidence high
  1,200,000 pages moved, 0.3 for each hint fault, and still 30 % of the faults are local: the pages come and go. \
40 of 40 samples show this: 0, 1, ..., 39; the numbers are those of 0, the first, and of 17, the worst.
  numbers:
    numa_pages_migrated, 0: 1,200,000 pages   [input0.txt:4]
    numa_hint_faults, 0: 4,000,000   [input0.txt:2]
    numa_hint_faults_local, 0: 1,200,000   [input0.txt:3]
    pages migrated per fault, 0: 0.3
    local share, 0: 0.3
    numa_pages_migrated, 17: 3,200,000 pages   [input0.txt:72]
    numa_hint_faults, 17: 4,000,000   [input0.txt:70]
    numa_hint_faults_local, 17: 1,200,000   [input0.txt:71]
    pages migrated per fault, 17: 0.8
    local share, 17: 0.3
    samples with this finding: 40
    samples: 40
"""


def storms(count, worst=17):
    """Snapshots of pages that come and go, four lines each; in one twice as many, and every second has scanned less."""
    return "".join(
        balancing(4_000_000, 1_200_000, 3_200_000 if i == worst else 1_200_000, pte=5_000_000 - i % 2)
        for i in range(count)
    )


def test_what_forty_samples_share_is_said_once():
    result = found(storms(40))
    assert str(result).startswith(SIDE_BY_SIDE)
    assert result.ids == ["page-ping-pong"]
    (one,) = result.findings
    assert one.sides == tuple(map(str, range(40)))
    assert result.looked_at == (
        "counters of balancing of 40 of 40 samples (input0.txt): only 30% of the faults were local, and totals do not "
        "say why, or whether that is over (in 0, the first)",
    )
    # (65 · 4,999,999 + 1200 · 4,000,000 + 2400 · 3,200,000) / 10⁹
    (cost,) = result.costs
    assert (cost.side, cost.cpu_seconds) == ("17, the most of 40 samples", pytest.approx(12.804999935))


def test_three_samples_are_shown_one_by_one():
    three = found(storms(3, worst=1))
    assert [(one.side, one.sides) for one in three.findings] == [(name, (name,)) for name in "012"]
    assert [one.side for one in three.costs] == ["0", "1", "2"]
    (one,) = found(storms(4, worst=0)).findings
    assert one.side == "4 of 4 samples"
    assert one.says.endswith(
        "4 of 4 samples show this: 0, 1, 2, 3; the numbers are those of 0, the first and the worst."
    )


def test_illnesses_of_few_among_many():
    well, ill = balancing(50_000, 48_000, 900), balancing(0, 0, 0)
    result = found("".join(ill if i in (5, 9) else well for i in range(12)))
    (one,) = result.findings
    assert (one.id, one.side, one.sides) == ("balancing-off", "2 of 12 samples", ("5", "9"))
    assert numbers(one)["samples with this finding"] == 2
    assert one.evidence[0].line == 21
    assert result.looked_at == (
        "counters of balancing of 10 of 12 samples (input0.txt)",
        "counters of balancing of 2 of 12 samples (input0.txt): 0 hint faults, where 1,000 are needed "
        "(in 5, the first)",
    )


def test_other_contradictions_are_other_findings():
    less = balancing(50_000, 60_000, 900)
    moved = balancing(50_000, 48_000, 900, pgmigrate_success=800)
    fine = balancing(50_000, 48_000, 900, pgmigrate_success=900)
    result = found("".join([less + "pgmigrate_success 900\n", moved, fine] * 4))
    assert [(one.id, one.sides) for one in result.findings] == [
        ("counters-contradict", ("0", "3", "6", "9")),
        ("counters-contradict", ("1", "4", "7", "10")),
    ]


def test_nodes_of_many_samples():
    table = "node0 node1\nnuma_hit 90000000 5000000\nnuma_miss 0 {0}\nnuma_foreign {0} 0\n"
    result = found("".join(table.format(9_000_000 + 1000 * (i % 3)) for i in range(12)))
    (one,) = result.illnesses
    assert (one.id, one.side) == ("node-full-foreign-allocations", "node 0 in 12 of 12 samples")
    # 9,002,000 of 99,002,000
    assert numbers(one)["foreign share of what was meant for node 0, 2"] == pytest.approx(9002 / 99002)
    assert len(one.sides) == 12


# ---------------------------------------------------------------- series


def rising(count, moved=5, start=7_000_000):
    """Snapshots of one boot: in each interval 1000 faults, a tenth remote."""
    return [balancing(start + 1000 * i, start // 2 + 900 * i, 100 + moved * i) for i in range(count)]


def test_snapshots_of_one_boot_are_a_series():
    result = found("".join(rising(40)))
    (one,) = result.illnesses
    # 39 intervals with 100 remote faults and 5 pages moved
    assert (one.id, one.side, one.confidence) == ("retried-migrations", "", "medium")
    assert "if the samples are evenly spaced" in one.says
    assert numbers(one) == {
        "numa_hint_faults": 39_000,
        "numa_hint_faults_local": 35_100,
        "numa_pages_migrated": 195,
        "numa_pte_updates": 39_000,
        "least remote faults per page moved, of any interval": 20,
        "pages scanned per sample, first third": 1000,
        "pages scanned per sample, last third": 1000,
    }
    assert result.looked_at == ("counters of balancing of input0.txt",)
    assert result.remarks[0].startswith("input0.txt: 40 snapshots in which no counter falls are taken for samples of")
    assert [cost.seconds for cost in result.costs] == [None]


def test_times_make_it_sure():
    names = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    timed = log([(i, dict(zip(names, [1000 * i, 1000 * i, 900 * i, 5 * i], strict=True))) for i in range(40)])
    result = found(timed)
    assert [(one.id, one.confidence) for one in result.illnesses] == [("retried-migrations", "high")]
    assert result.remarks == ()
    assert result.costs[0].seconds == 39


def test_without_times_nothing_is_said_of_seconds():
    names = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    steps = (100_000, 100_000, 50_000, 25_000)
    counts = [{name: step * i for name, step in zip(names, steps, strict=True)} for i in range(70)]
    # with a sample each second, 25,000 pages move in each and half of the faults stay local
    assert alarms(log(enumerate(counts))) == ["page-ping-pong", "no-convergence"]
    assert alarms("".join(vmstat(**one) for one in counts)) == []


def test_few_samples_that_rise_may_be_chance():
    assert found("".join(rising(9))).looked_at[0].startswith("counters of balancing of 9 of 9 samples")
    assert found("".join(rising(10))).looked_at == ("counters of balancing of input0.txt",)


def test_a_boot_begins_a_series():
    result = found("".join(rising(20) + rising(15) + rising(2)))
    sides = [one.side for one in result.of("retried-migrations")]
    assert sides == ["0 to 19", "20 to 34"]
    # lines of the first snapshot of each
    assert [one.evidence[0].line for one in result.of("retried-migrations")] == [2, 82]
    assert [text.partition(" (")[0] for text in result.looked_at] == [
        "counters of balancing of 0 to 19",
        "counters of balancing of 20 to 34",
        "counters of balancing of 35",
        "counters of balancing of 36",
    ]


def test_machines_by_turns_are_no_series():
    turns = [text for _ in range(MOST_BOOTS + 1) for text in rising(10)]
    result = found("".join(turns))
    assert result.looked_at == ("counters of balancing of 110 of 110 samples (input0.txt)",)
    assert "110 snapshots that are no series: each is compared with the one before" in result.remarks[0]


# ---------------------------------------------------------------- JSON, time


def test_json_names_the_sides():
    data = json.loads(json.dumps(found(storms(40)).to_dict(), allow_nan=False))
    (one,) = data["findings"]
    assert (one["id"], one["side"]) == ("page-ping-pong", "40 of 40 samples")
    assert one["sides"] == [str(i) for i in range(40)]
    assert json.loads(json.dumps(found("".join(rising(40))).to_dict()))["findings"][0]["sides"] == []


@pytest.mark.parametrize("text", [storms, lambda count: "".join(rising(count))], ids=["apart", "series"])
def test_many_samples_take_linear_time(text):
    """Eight times the snapshots take about eight times as long; a square would be 64 times."""
    rest = vmstat(numa_hit=9, numa_miss=0, numa_local=9)

    def seconds(count):
        readings = read_text(text(count).replace("numa_pte", f"{rest}numa_pte"), "many.txt")
        begin = time.process_time()
        diagnose(readings)
        return time.process_time() - begin

    seconds(5)
    small = min(seconds(150) for _ in range(3))
    large = min(seconds(1200) for _ in range(2))
    assert large < 20 * small + 0.05
