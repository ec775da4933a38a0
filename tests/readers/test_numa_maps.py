"""Reader of numa_maps."""

from functools import partial

import pytest

from numalab.readers import formats, numa_maps
from tests.readers.helpers import golden, refuses

LOG = golden("numa_maps", "log.txt")


def test_golden_log():
    report = numa_maps.parse(LOG)
    assert [(process.time, process.pid, process.comm) for process in report.processes] == [
        (10.352544, 200, "wl_p0m"),
        (10.377236, 201, "wl_p1m"),
        (39.372510, 200, "wl_p0m"),
        (39.376974, 201, "wl_p1m"),
    ]
    file, heap = report.processes[2].mappings
    assert (file.start, file.name, file.nodes, file.counts["mapmax"]) == (0x401000, "/bin/numawl", {1: 143}, 3)
    assert (heap.start, heap.policy, heap.name, heap.nodes) == (0x7F7A35E00000, "default", "", {0: 3341, 1: 755})
    assert heap.counts == {"anon": 4096, "dirty": 4096, "active": 28}


def test_dataset():
    ds = formats.read(LOG, "log.txt").dataset()
    assert ds.time.values.tolist() == [10.352544, 39.372510]
    assert ds.region.values.tolist() == [
        "wl_p0m-200 401000 /bin/numawl",
        "wl_p0m-200 7f7a35e00000",
        "wl_p1m-201 401000 /bin/numawl",
        "wl_p1m-201 7f7a35e00000",
    ]
    assert ds.region_process.values.tolist() == [200, 200, 201, 201]
    assert ds.pages.values[0, :, 1].tolist() == [[2048, 2048], [3341, 755]]
    assert ds.pages.values[0, :, 3].tolist() == [[2048, 2048], [1851, 2245]]


def test_golden_paste_within_other_output():
    report = numa_maps.parse(golden("numa_maps", "paste.txt"))
    (process,) = report.processes
    first, second, *_ = process.mappings
    assert (first.policy, first.nodes) == ("interleave:2-3", {2: 582, 3: 1405})
    assert first.name == "/memfd:memory-backend-memfd-shared (deleted)"
    assert (second.nodes, second.page_kb) == ({}, 4)
    assert [skip.line for skip in report.skipped] == [1, 2, 3, 4, 5, 6]  # line 7 names the file


def test_golden_huge_pages_have_their_size():
    mappings = numa_maps.parse(golden("numa_maps", "hugetlb.txt")).processes[0].mappings
    assert [(m.huge, m.page_kb, m.base_pages()) for m in mappings[3:]] == [
        (True, 2048, {1: 512}),
        (True, 2048, {1: 5 * 512}),
    ]
    assert mappings[1].name == "heap"


def test_golden_policy_of_two_words():
    text = golden("numa_maps", "weighted.txt")
    processes = numa_maps.parse(text).processes
    # addresses that begin again from below are another process's
    assert [(p.pid, p.line, len(p.mappings)) for p in processes] == [(-1, 1, 6), (-2, 7, 2), (-3, 9, 2), (-4, 11, 2)]
    mappings = [m for process in processes for m in process.mappings]
    assert {m.policy for m in mappings} == {"weighted interleave:0-1"}
    assert sum(m.nodes[0] for m in mappings) == 328287
    pages = formats.read(text, "x").dataset().pages.sum("region")
    assert pages.values.tolist() == [[[328287, 328108]]]


def test_lines_of_old_kernels_have_no_page_size():
    (mapping,) = numa_maps.parse("7f0000000000 prefer:1 stack anon=3 N1=3\n").processes[0].mappings
    assert (mapping.policy, mapping.name, mapping.page_kb, mapping.base_pages()) == ("prefer:1", "stack", 4, {1: 3})


def test_what_is_wrong():
    parse = partial(refuses, numa_maps.parse)
    parse(LOG[: LOG.rindex(" kernelpagesize")], 12, "expected kernelpagesize_kB=", "cut off")
    parse(LOG[:-2], 12, "expected a number after kernelpagesize_kB=, got ''")
    parse(LOG + "oops\n", 13, "expected '<address> <policy> ...', got 'oops'")
    parse("@ 1 comm=x\n00401000 default N0=1 kernelpagesize_kB=4\n", 1, "pid=<n>")
    parse("nothing\n", 0, "no line of numa_maps")


# ------------------------------------------------------------------ pastes


@pytest.mark.parametrize(
    "policy",
    [
        *("default", "local", "prefer:1", "prefer (many):0,2", "bind:0-3", "bind=static:1", "interleave=relative:0-1"),
        *("weighted interleave:0,255", "weighted interleave=static|balancing:0"),
    ],
)
def test_policies(policy):
    line = f"7f0000000000 {policy} file=/a\\040b\\075c anon=3 mapmax=2 N0=1 N255=2 kernelpagesize_kB=64\n"
    assert numa_maps.looks_like(line)
    (mapping,) = numa_maps.parse(line).processes[0].mappings
    assert (mapping.policy, mapping.name) == (policy, "/a b=c")
    assert mapping.base_pages() == {0: 16, 255: 32}


def test_processes_named_by_prompts_and_paths():
    line = "7f0000000000 default anon=1 N0=1 kernelpagesize_kB=4\n"
    text = f"$ cat /proc/12/numa_maps\n{line}$ cat /proc/7/numa_maps\n{line}/proc/9/numa_maps:{line}"
    ds = formats.read(text, "x").dataset()
    assert ds.process.values.tolist() == [7, 9, 12]
    assert ds.region_process.values.tolist() == [7, 9, 12]


def test_one_process_twice_is_two_runs():
    line = "7f0000000000 default anon=4 N0={} N1={} kernelpagesize_kB=4\n"
    text = f"before, PID 12:\n{line.format(1, 3)}after, PID 12:\n{line.format(4, 0)}"
    ds = formats.read(text, "x").dataset()
    assert ds.snapshot.values.tolist() == ["before, PID 12", "after, PID 12"]
    assert ds.pages.values.tolist() == [[[[1, 3]]], [[[4, 0]]]]


def test_mappings_without_pages_make_no_run():
    reading = formats.read("7f0000000000 default file=/x\n", "x")
    assert reading.table("mappings").get("7f0000000000", "name") == "/x"
    with pytest.raises(ValueError, match="without pages on any node"):
        reading.dataset()


def test_a_number_that_is_too_long():
    refuses(numa_maps.parse, "7f0000000000 default N0=9999999999999\n", 1, "expected a number after N0=")


def test_a_node_twice_in_a_line():
    refuses(
        numa_maps.parse, "7f0000000000 default anon=9 N0=4 N0=5 kernelpagesize_kB=4\n", 1, "N0= for the second time"
    )


def test_wrapped_lines():
    whole = "7f0000000000 default anon=9 dirty=9 N0=4 N1=5 kernelpagesize_kB=4\n"
    broken = whole.replace(" N0", "\nN0")
    (process,) = numa_maps.parse(broken * 2).processes
    assert [(one.nodes, one.line) for one in process.mappings] == [({0: 4, 1: 5}, 1), ({0: 4, 1: 5}, 3)]
