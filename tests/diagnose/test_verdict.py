"""Verdicts, costs, places of evidence, and the shape of a result."""

import json
import time

import pytest

from numalab.diagnose import Evidence, diagnose
from numalab.diagnose.catalog import CATALOG, finding
from numalab.patch_threads import THREADS
from numalab.readers.mixed import read_text
from tests.comparing import make_run
from tests.diagnose.samples import balancing, found, numbers, vmstat
from tests.diagnose.test_nodes import hardware
from tests.readers.helpers import golden

BALANCING = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")


def test_nothing_wrong_says_what_was_looked_at():
    result = found(balancing(50_000, 48_000, 900))
    (one,) = result.findings
    assert (one.id, one.confidence, one.kind) == ("nothing-wrong", "high", "verdict")
    assert numbers(one) == {
        "numa_hint_faults": 50_000,
        "numa_hint_faults_local": 48_000,
        "numa_pages_migrated": 900,
        "local share": 0.96,
    }
    assert result.looked_at == ("counters of balancing of input0.txt",)


def test_a_low_share_is_said():
    (one,) = found(balancing(50_000, 44_999, 900)).findings
    assert (one.id, one.confidence) == ("nothing-wrong", "medium")
    assert "below 0.9" in one.says
    assert [one.confidence for one in found(balancing(50_000, 45_000, 900)).findings] == ["high"]


def test_mostly_remote_is_not_well_though_no_illness_shows():
    (one,) = found(balancing(50_000, 24_999, 900)).findings
    # it concludes nothing of which one could be sure
    assert (one.id, one.kind, one.confidence, one.standing) == ("not-enough-data", "verdict", None, "verdict")
    assert "only 50% of the faults were local" in one.says
    # other views that are fine do not outweigh it
    assert found(balancing(50_000, 24_999, 900), hardware(32_000, 32_000)).ids == ["not-enough-data"]
    assert found(balancing(50_000, 25_000, 900)).ids == ["nothing-wrong"]


def test_many_failed_migrations_are_not_well_either():
    (one,) = found(balancing(50_000, 48_000, 3000, pgmigrate_success=3000, pgmigrate_fail=1001)).findings
    assert one.id == "not-enough-data"
    assert "25% of the migrations failed" in one.says
    assert numbers(one)["pgmigrate_fail"] == 1001
    for done, failed in ((3000, 1000), (2990, 999)):
        told = found(balancing(50_000, 48_000, done, pgmigrate_success=done, pgmigrate_fail=failed))
        assert told.ids == ["nothing-wrong"], (done, failed)


def test_balancing_that_is_off_gets_no_verdict():
    assert found(balancing(0, 0, 0), hardware(32_000, 32_000)).ids == ["balancing-off"]


def test_a_view_of_the_hardware_alone_proves_little():
    (one,) = found(hardware(32_000, 32_000)).findings
    assert (one.id, one.confidence) == ("nothing-wrong", "low")
    assert "numa_hint" not in str(one.evidence)


def test_missing_counter_is_named():
    (one,) = found(vmstat(numa_pte_updates=5000, numa_hint_faults=5000, numa_pages_migrated=0)).findings
    assert one.id == "not-enough-data"
    assert "numa_hint_faults_local is missing" in one.says


def test_no_faults_have_no_share():
    result = found(balancing(0, 0, 0, numa_hit=10))
    assert "share" not in " ".join(one.what for found_ in result.findings for one in found_.evidence)
    assert result.costs == ()


def test_a_few_faults_beside_something_else():
    result = found(balancing(10, 10, 0), hardware(32_000, 32_000))
    assert [(one.id, one.confidence) for one in result.findings] == [("nothing-wrong", "low")]
    assert "10 hint faults, where 1,000 are needed" in result.looked_at[0]


def test_nothing_to_judge():
    (one,) = diagnose().findings
    assert one.id == "not-enough-data"
    assert one.attempts == ("numactl -H; grep numa /proc/vmstat",)


def test_lines_in_a_paste_of_several_tools():
    """Each number has the line it stands in, though other formats of the same file have labels like it."""
    text = golden("mixed.txt")
    (one,) = found(text).findings
    lines = text.splitlines()
    cited = {each.what: lines[each.line - 1].split()[0] for each in one.evidence if each.line}
    for name in ("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"):
        assert cited[name] == name
    assert [each.line for each in one.evidence if each.what == "numa_hint_faults"] == [24]


def test_long_logs_take_linear_time():
    names = [f"nr_row_{i}" for i in range(60)]

    def seconds(samples):
        counts = dict.fromkeys(names, 1) | dict.fromkeys(BALANCING, 7)
        text = "".join(f"@ {i}\n{vmstat(**counts)}" for i in range(samples))
        readings = read_text(text, "long.log")
        begin = time.process_time()
        diagnose(readings)
        return time.process_time() - begin

    seconds(2)
    # ten times the text; quadratic would be a hundred times
    assert seconds(200) < 40 * seconds(20) + 0.5


def test_cost():
    # a mail's table: 976844 marks, 226763 faults, 220146 pages: 1144.84; each page's copy adds 519 accesses
    (one,) = found(balancing(226_763, 100_000, 220_146, pte=976_844)).costs
    assert one.accesses_millions == pytest.approx(1144.84, abs=0.005)
    assert one.with_copy_millions == pytest.approx(1144.84 + 220_146 * 519 / 1e6, abs=0.005)
    # 65 ns a mark, 1200 a fault, 1500 + 600 + 300 a page
    assert one.cpu_seconds == pytest.approx((976_844 * 65 + 226_763 * 1200 + 220_146 * 2400) / 1e9)
    assert one.cpus_busy is None
    assert any("519" in text for text in one.meaning)


def test_cost_over_time():
    (one,) = diagnose(make_run([1_000_000], [900_000], seconds=10.0)).costs or (None,)
    assert one is None  # pages migrated were not recorded: no estimate without them


def test_runs_are_judged_too():
    result = diagnose(make_run([5000, 5100], [4900, 5000]))
    assert result.ids == ["nothing-wrong"]
    # the mean of both runs
    assert numbers(result.findings[0])["numa_hint_faults"] == 5050


def test_each_finding_once():
    text = balancing(4_000_000, 1_200_000, 1_200_000)
    result = diagnose([read_text(text, "a.txt"), read_text(text, "b.txt")])
    assert [one.id for one in result.illnesses] == ["page-ping-pong", "page-ping-pong"]
    assert {one.evidence[0].source for one in result.illnesses} == {"a.txt", "b.txt"}


def test_lines_of_a_paste():
    text = "some words\n\n" + balancing(4_000_000, 1_200_000, 1_200_000)
    (one,) = diagnose(read_text(text, "paste.txt")).illnesses
    places = {number.what: number.line for number in one.evidence}
    assert places["numa_hint_faults"] == 4
    assert places["numa_pages_migrated"] == 6


def test_a_result_is_json():
    result = found(balancing(4_000_000, 1_200_000, 1_200_000))
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["findings"][0]["id"] == "page-ping-pong"
    assert data["findings"][0]["evidence"][0]["source"] == "input0.txt"
    assert data["costs"][0]["cpus_busy"] is None
    assert "numa_pages_migrated: 1,200,000 pages" in str(result)


def test_a_finding_needs_numbers():
    with pytest.raises(ValueError, match="numbers that carry it"):
        finding("page-ping-pong", "Something is wrong.", [], "high")


def test_the_catalog_is_whole():
    for id, known in CATALOG.items():
        assert known.why.endswith("."), id
        assert known.attempts or known.kind != "illness", id
        assert not known.thread or known.thread in THREADS, id
    assert finding("balancing-off", "Off.", [Evidence("x", 0.0)], "high").kind == "information"


def test_allocations_without_hits_and_misses():
    """numa_foreign alone shows no illness, and does not show that there is none."""
    (one,) = found("  node0 node1\nnuma_foreign 5 6\n").findings
    assert one.id == "not-enough-data"
    assert "numa_miss and numa_hit are missing" in one.says
    assert [(each.what, each.value) for each in one.evidence] == [
        ("numa_foreign of node 0", 5),
        ("numa_foreign of node 1", 6),
    ]
