"""Reader of the machine's nodes: numactl -H, sysfs, lscpu."""

from functools import partial

import pytest

from numalab.readers import mixed, numactl
from tests.readers.helpers import refuses

TWO = """available: 2 nodes (0,8)
node 0 cpus: 0 1 2 3
node 0 size: 1000 MB
node 0 free: 250 MB
node 8 cpus: 4-6,9
node 8 size: 2 GB
node 8 free: 0 MB
node distances:
node   0   8
  0:  10  40
  8:  40  10
"""


def test_numactl():
    (sample,) = numactl.parse(TWO).samples
    assert (sample.nodes, sample.cpus) == ([0, 8], {0: [0, 1, 2, 3], 8: [4, 5, 6, 9]})
    assert (sample.size_mb, sample.free_mb) == ({0: 1000, 8: 2048}, {0: 250, 8: 0})
    assert sample.distance == {(0, 0): 10, (0, 8): 40, (8, 0): 40, (8, 8): 10}


def test_dataset_has_the_ids_as_labels():
    ds = mixed.read_text(TWO, "x").dataset()
    assert ds.node.values.tolist() == [0, 8]
    assert ds.distance.sel(node=0, node2=8).item() == 40
    assert dict(zip(ds.cpu.values.tolist(), ds.cpu_node.values.tolist(), strict=True)) == {
        **dict.fromkeys(range(4), 0),
        **dict.fromkeys((4, 5, 6, 9), 8),
    }
    # 1 MB is 256 pages of 4 KiB
    assert ds.free_pages.values.tolist() == [[[64000, 0]]]
    assert ds.total_pages.values.tolist() == [[[256000, 524288]]]


def test_lists_and_tables_that_a_mail_wrapped():
    text = "node 0 cpus: 0 1 2\n3 4\nnode 1 cpus:\nnode distances:\nnode   0\n 1\n  0:  10\n 21\n  1:  21  10\n"
    (sample,) = numactl.parse(text).samples
    assert sample.cpus == {0: [0, 1, 2, 3, 4], 1: []}
    assert sample.distance[0, 1] == 21


def test_files_of_nodes():
    text = "==> node0/cpulist <==\n0-1\n\n==> node2/cpulist <==\n\n"
    text += "==> node0/distance <==\n10 20\n\n==> node2/distance <==\n20 10\n"
    (sample,) = numactl.parse(text).samples
    assert (sample.nodes, sample.cpus) == ([0, 2], {0: [0, 1], 2: []})
    assert sample.distance[0, 2] == 20


def test_distances_of_some_nodes_only_are_not_guessed():
    report = numactl.parse("node0/cpulist:0-1\nnode0/distance:10 20 30\n")
    assert report.samples[0].distance == {}
    assert [(skip.line, "which node each number is of is not said" in skip.reason) for skip in report.skipped] == [
        (2, True)
    ]


def test_a_node_whose_row_was_pasted_alone_among_known_nodes():
    text = "node0/cpulist:0\nnode1/cpulist:1\nnode0/distance:10 20\n"
    assert numactl.parse(text).samples[0].distance == {(0, 0): 10, (0, 1): 20}


def test_lscpu():
    text = "NUMA node(s):          2\nNUMA node0 CPU(s):     0-11,24-35\nNUMA node1 CPU(s):     12-23\n"
    found = mixed.read_text(text, "x")
    assert found["numactl"].table("nodes").get(0, "cpus") == 24
    assert found.skipped == ()


def test_one_machine_at_two_moments_is_two_runs():
    later = TWO.replace("250 MB", "125 MB")
    ds = mixed.read_text(f"before\n$ numactl -H\n{TWO}after\n$ numactl -H\n{later}", "x").dataset()
    assert ds.snapshot.values.tolist() == ["before", "after"]
    assert ds.free_pages.sel(node=0).values.tolist() == [[64000], [32000]]


def test_two_machines_are_not_one():
    found = mixed.read_text(f"$ numactl -H\n{TWO}$ numactl -H\n{TWO.replace('40', '30')}", "x")
    assert len(found.tables) == 4
    with pytest.raises(ValueError, match="nothing that a run has"):
        found.dataset()


def test_what_is_wrong():
    parse = partial(refuses, numactl.parse)
    parse(TWO.replace("2 nodes", "3 nodes"), 1, "announces 3 nodes, but names 2")
    parse(TWO.replace("node 8 cpus", "node 7 cpus"), 5, "node 7 is not among those announced in line 1")
    parse(TWO.replace("4-6,9", "4-6,3"), 5, "CPU 3 is on node 0 and on node 8")
    parse(TWO.replace("4-6", "6-4"), 5, "expected numbers or ranges such as 0-7, got '6-4'")
    parse(TWO.replace("  8:  40  10\n", ""), 8, "the row of node 8 is missing", "cut off")
    parse(TWO.replace("  8:  40  10\n", "  8:  40\n"), 8, "node 8 has 1 distances")
    parse(TWO.replace("  8:  40  10\n", "  8:  40  10 5\n"), 11, "expected 2 distances as in the head, got 3")
    parse(
        TWO.replace("  8:  40  10\n", "  8:  40  11\n"),
        8,
        "the distance of node 8 to itself is 10 by definition, got 11",
    )
    parse("node0/distance:10 x\n", 1, "expected the distances of node 0, got '10 x'")
    parse("hello\n", 0, "holds no nodes of a machine")
