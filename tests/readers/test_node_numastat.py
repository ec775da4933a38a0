"""Reader of the nodes' numastat."""

from functools import partial

import pytest

from numalab.readers import formats, node_numastat
from numalab.readers._text import ReadError
from numalab.readers.mixed import read_text
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
    assert "taken as node 0" in report.guesses[0][1]


def test_what_is_wrong():
    parse = partial(refuses, node_numastat.parse)
    parse(LOG[: LOG.rindex("other_node")], 16, "node 1 lacks other_node", "cut off")
    parse(LOG[: LOG.rindex(" 2876")], 30, "expected nodeN or one of", "'other_node'")
    parse(LOG + "other_node 3\n", 31, "other_node of node 1 for the second time")
    parse("numa_hits 4\n", 0, "no numastat")


# ------------------------------------------------------------------ the tool


def test_table_of_the_tool_folded():
    text = (
        "                 node0   node1\nnuma_hit             5       6\nlocal_node           4       6\n\n"
        "                 node4\nnuma_hit             7\nlocal_node           7\n"
    )
    (sample,) = node_numastat.parse(text).samples
    assert sample.nodes == {
        0: {"numa_hit": 5, "local_node": 4},
        1: {"numa_hit": 6, "local_node": 6},
        4: {"numa_hit": 7, "local_node": 7},
    }


def test_in_mb():
    text = (
        "Per-node numastat info (in MBs):\n                  Node 0   Node 1     Total\n"
        "                -------- -------- ---------\nNuma_Hit        1.50 2.00 3.50\nOther_Node 0.25 0 0.25\n"
    )
    reading = formats.read(text, "x")
    assert reading.skipped == ()
    assert reading.table("numastat").get("numa_hit", 0) == 1.5
    assert reading.table("numastat").units == "MB"
    ds = reading.dataset()
    assert ds.node_counters.values.tolist() == [[[[384, 64], [512, 0]]]]


def test_only_some_counters_were_taken():
    text = "".join(f"node{node}/numastat:{name} 5\n" for node in (0, 1) for name in ("numa_miss", "other_node"))
    ds = formats.read(text, "x").dataset()
    assert ds.node_counter.values.tolist() == ["numa_miss", "other_node"]
    refuses(node_numastat.parse, text[: text.rindex("node1")], 3, "node 1 lacks other_node, which other nodes have")


def test_two_looks_are_two_runs():
    table = "node0 node1\nnuma_hit {} 6\nother_node 0 0\n"
    ds = formats.read("then\n" + table.format(5) + "\nnow\n" + table.format(9), "x").dataset()
    assert ds.snapshot.values.tolist() == ["then", "now"]
    assert ds.node_counters.sel(node=0, node_counter="numa_hit").values.tolist() == [[5], [9]]


def test_files_without_names_of_nodes():
    one = "".join(f"{name} {{}}\n" for name in node_numastat.NAMES).replace("{}", "7")
    report = node_numastat.parse(one + one)
    assert list(report.samples[0].nodes) == [0, 1]
    assert [guess for _, guess in report.guesses] == [
        "no node named before this line: taken as node 0",
        "no node named before this line: taken as node 1",
    ]


def test_a_row_that_is_cut():
    refuses(node_numastat.parse, "node0 node1 node2\nnuma_hit 1 2 3\nother_node 1\n", 3, "expected 3 numbers", "got 1")


def test_pcp_numastat():
    text = (
        "NUMA memory allocation statistics (pages)\n                              node0       node1       \n"
        "Hit                  :           12          34\nMiss                 :            0           5\n"
        "Interleave_hit       :            1           2\nLocal_node           :           12          34\n"
    )
    reading = formats.read(text, "x", "numastat")
    assert reading.skipped == ()
    assert reading.table("numastat").rows == (
        ("numa_hit", 12, 34),
        ("numa_miss", 0, 5),
        ("interleave_hit", 1, 2),
        ("local_node", 12, 34),
    )


def test_a_number_too_many_is_no_total():
    """Only a head that ends in "Total" has a column more than nodes."""
    head = "        node0 node1\n"
    refuses(node_numastat.parse, f"{head}numa_hit 1 2 3\n", 2, "expected 2 numbers", "got 3")
    refuses(node_numastat.parse, "numa_hit 1 2\nnuma_miss 3 4\n", 1, "2 numbers", "needs a head like 'node0 node1'")
    (sample,) = node_numastat.parse("   Node 0 Node 1 Total\nNuma_Hit 1.00 2.00 3.00\n").samples
    assert sample.printed == {0: {"numa_hit": 1.0}, 1: {"numa_hit": 2.0}}


def test_names_with_capitals_are_in_mb():
    """Also where the title that says so was not copied: 2 MB are 512 pages of 4 KiB."""
    report = node_numastat.parse("   Node 0 Node 1\nNuma_Hit 1.00 2.00\nNuma_Miss 0.00 0.50\n")
    assert report.samples[0].nodes[1] == {"numa_hit": 512, "numa_miss": 128}
    assert [line for line, _ in report.guesses] == [2]


def test_a_node_twice_in_the_head():
    refuses(node_numastat.parse, "  node0 node0\nnuma_hit 1 2\n", 1, "a node comes twice")


def test_a_row_with_a_number_too_few_is_not_of_vmstat():
    with pytest.raises(ReadError, match=r"^x:2: expected 2 numbers, one for each node, got 1"):
        read_text("  node0 node1\nnuma_hit 1\n", "x")


def test_wrapped_rows():
    text = "  node0 node1\nnode8\nnuma_hit 11 12\n13\nnuma_miss 21 22\n23\n"
    (sample,) = node_numastat.parse(text).samples
    assert {node: tuple(values.values()) for node, values in sample.nodes.items()} == {
        0: (11, 21),
        1: (12, 22),
        8: (13, 23),
    }
