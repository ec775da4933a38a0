"""Reader of numastat -p and -m."""

from functools import partial

from numalab.readers import mixed, numastat_tables
from tests.readers.helpers import refuses

PROCESSES = """Per-node process memory usage (in MBs)
PID              Node 0 Node 1 Total
---------------  ------ ------ -----
24463 (qemu_hotr      6      6    12
24479 (qemu_tls_      0      8     8
---------------  ------ ------ -----
Total                 6     14    20
"""
FOLDED = """Per-node system memory usage (in MBs):
                          Node 0          Node 1
                 --------------- ---------------
MemTotal                  100.00          200.00
MemFree                    10.50           20.00

                          Node 2           Total
                 --------------- ---------------
MemTotal                  300.00          600.00
MemFree                    30.00           60.50
"""


def test_processes_whose_names_are_cut():
    (usage,) = numastat_tables.parse(PROCESSES).tables
    assert usage.comms == {"24463": "qemu_hotr", "24479": "qemu_tls_"}
    assert usage.rows["24479"] == {0: 0, 1: 8}
    assert usage.totals == {"24463": 12, "24479": 8, "Total": 20}
    ds = mixed.read_text(PROCESSES, "x").dataset()
    assert ds.region.values.tolist() == ["qemu_hotr-24463", "qemu_tls_-24479"]
    assert ds.pages.values.tolist() == [[[[6 * 256, 6 * 256], [0, 8 * 256]]]]


def test_nodes_folded_into_further_columns():
    (usage,) = numastat_tables.parse(FOLDED).tables
    assert (usage.kind, usage.nodes) == ("system", [0, 1, 2])
    assert usage.rows["MemFree"] == {0: 10.5, 1: 20, 2: 30}
    assert usage.totals["MemTotal"] == 600
    ds = mixed.read_text(FOLDED, "x").dataset()
    assert ds.free_pages.values.tolist() == [[[2688, 5120, 7680]]]


def test_classes_of_two_processes_are_two_tables():
    one = "Per-node process memory usage (in MBs) for PID 7 (a)\n  Node 0 Total\n  ------ -----\n"
    one += "Heap 1.00 1.00\nTotal 1.00 1.00\n"
    found = mixed.read_text(one + one.replace("PID 7 (a)", "PID 8 (b)"), "x")
    assert [table.name for table in found.tables] == ["process 7 a", "process 8 b"]
    assert found.skipped == ()


def test_tables_without_a_title():
    found = mixed.read_text(
        "                 Node 0 Node 1 Total\nMemFree  1.00 2.00 3.00\nActive(anon) 0.50 0.25 0.75\n", "x"
    )
    assert found.formats == ["numastat-m"]
    assert found.tables[0].get("Active(anon)", 1) == 0.25


def test_what_is_wrong():
    parse = partial(refuses, numastat_tables.parse)
    parse(PROCESSES.replace("0      8     8", "0      8"), 5, "expected 3 numbers, one for each column, got 2")
    parse(FOLDED + "MemFree 1 1\n", 11, "MemFree of node 2 for the second time in one table")
    parse("Per-node system memory usage (in MBs):\n", 0, "holds no table of numastat")
