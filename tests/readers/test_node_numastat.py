"""Reader of the nodes' numastat."""

from functools import partial

from numalab.readers import formats, node_numastat
from tests.readers.helpers import golden, refuses

LOG = golden("numastat", "log.txt")


def test_golden_log():
    report = node_numastat.parse(LOG)
    assert [sample.time for sample in report.samples] == [8.339485, 39.344050]
    assert report.samples[0].nodes[0] == dict(zip(node_numastat.NAMES, [6177, 0, 0, 570, 5893, 284], strict=True))
    assert report.samples[1].nodes[1]["local_node"] == 12976
    assert report.skipped == []


def test_dataset():
    ds = formats.read(LOG, "log.txt").dataset()
    local = ds.node_counters.sel(node_counter="local_node")[0]
    assert local.values.tolist() == [[0, 0], [16312 - 5893, 12976 - 3538]]


def test_golden_grep_of_sysfs():
    report = node_numastat.parse(golden("numastat", "grep.txt"))
    assert sorted(report.samples[0].nodes) == [0, 8, 250]
    assert report.samples[0].nodes[8]["other_node"] == 11138
    assert [skip.line for skip in report.skipped] == [1, 2, 9, 10, 17, 18]
    # a single look keeps its count since boot
    ds = formats.read(golden("numastat", "grep.txt"), "x").dataset()
    assert ds.node_counters.sel(node=8, node_counter="numa_hit").values.tolist() == [[14267940]]


def test_one_file_without_its_node():
    report = node_numastat.parse("".join(f"{name} 7\n" for name in node_numastat.NAMES))
    assert list(report.samples[0].nodes) == [0]
    assert "taken as node 0" in report.skipped[0].reason


def test_what_is_wrong():
    parse = partial(refuses, node_numastat.parse)
    parse(LOG[: LOG.rindex("other_node")], 16, "node 1 lacks other_node", "cut off")
    parse(LOG[: LOG.rindex(" 2876")], 30, "expected nodeN or one of", "'other_node'")
    parse(LOG + "other_node 3\n", 31, "other_node of node 1 for the second time")
    parse("numa_hits 4\n", 0, "no numastat")
