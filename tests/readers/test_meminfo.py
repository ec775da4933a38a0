"""Reader of nodeN/meminfo."""

from numalab.readers import meminfo, mixed
from tests.readers.helpers import refuses

TEXT = """Node 0 MemTotal:       4096 kB
Node 0 MemFree:        1024 kB
Node 0 HugePages_Free:    3
Node 2 MemTotal:       8192 kB
Node 2 MemFree:           0 kB
Node 2 HugePages_Free:    0
"""


def test_nodes():
    report = meminfo.parse(TEXT)
    assert report.samples == [
        {
            0: {"MemTotal": 4096, "MemFree": 1024, "HugePages_Free": 3},
            2: {"MemTotal": 8192, "MemFree": 0, "HugePages_Free": 0},
        }
    ]
    assert report.units == {"MemTotal": "kB", "MemFree": "kB", "HugePages_Free": "1"}


def test_dataset():
    ds = mixed.read_text(TEXT, "x").dataset()
    assert ds.node.values.tolist() == [0, 2]
    assert ds.free_pages.values.tolist() == [[[256, 0]]]
    assert ds.total_pages.values.tolist() == [[[1024, 2048]]]


def test_twice_is_two_runs():
    ds = mixed.read_text(f"start:\n{TEXT}end:\n{TEXT.replace('1024', '512')}", "x").dataset()
    assert ds.snapshot.values.tolist() == ["start", "end"]
    assert ds.free_pages.sel(node=0).values.tolist() == [[256], [128]]


def test_lines_with_their_paths():
    text = "".join(f"/sys/devices/system/node/node{line[5]}/meminfo:{line}\n" for line in TEXT.splitlines())
    assert meminfo.parse(text).samples == meminfo.parse(TEXT).samples


def test_without_free_and_total_there_is_a_table_only():
    found = mixed.read_text("Node 0 Mapped: 5 kB\n", "x")
    assert found.tables[0].get("Mapped", 0) == 5
    assert found.datasets() == {}


def test_what_is_none():
    refuses(meminfo.parse, "MemFree: 5 kB\n", 0, "holds no meminfo of a node")
