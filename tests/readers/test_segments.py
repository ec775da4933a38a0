"""A paste cut into the parts of each format."""

import pytest

from numalab.readers._segments import segments
from numalab.readers.formats import FORMATS
from tests.readers.helpers import GOLDEN, golden


def cut(text):
    return segments(text, {known.name: known.sniff for known in FORMATS.values()})


def lines_of(text):
    """Numbers of the lines that are not blank."""
    return [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def test_lines_keep_their_numbers():
    found = cut(golden("mixed.txt"))
    assert {name: (lines_of(text)[0], lines_of(text)[-1]) for name, text in found.items()} == {
        "numactl": (1, 18),
        "vmstat": (19, 33),
        "numastat": (35, 42),
        "numa_maps": (44, 45),
        "sched": (46, 55),
    }


def test_every_line_goes_to_exactly_one_format():
    text = golden("mixed.txt")
    every = sorted(number for part in cut(text).values() for number in lines_of(part))
    assert every == lines_of(text)


def test_nothing_is_known():
    assert cut("hello\n\nnode and so on 5\npgfault 5\n") == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("numa_hit 5\nnuma_local 4\n", "vmstat"),
        ("numa_hit 5\nlocal_node 4\n", "numastat"),
        ("anon 5\nfile 4\nnuma_pte_updates 3\n", "memcg-stat"),
        ("$ cat memory.stat\nx/memory.stat:numa_pte_updates 3\n", "memcg-stat"),
        ("numa_hit 5\n\nhtlb_buddy_alloc_fail 3\n", "vmstat"),
    ],
)
def test_names_tell_lists_apart(text, name):
    found = cut(text)
    assert list(found) == [name]
    assert lines_of(found[name]) == lines_of(text)


def test_titles_go_with_what_is_below_them():
    text = "numa_hit 5\nnuma_local 5\n\nas to the nodes:\n\navailable: 1 nodes (0)\nnode 0 cpus: 0\nas said\n"
    assert {name: lines_of(part) for name, part in cut(text).items()} == {"vmstat": [1, 2], "numactl": [4, 6, 7, 8]}


def test_prose_between_goes_with_what_is_above():
    text = "numa_hit 5\nnuma_local 5\n\nand\nso\non\n\navailable: 1 nodes (0)\nnode 0 cpus: 0\n"
    assert {name: lines_of(part) for name, part in cut(text).items()} == {"vmstat": [1, 2, 4, 5, 6], "numactl": [8, 9]}


#: Texts of tools, each of one format; all of them in one paste are told apart.
TOOLS = {
    "perf-stat": "perf_stat/plain.txt",
    "lkp": "lkp/020.txt",
    "mmtests": "mmtests/five.txt",
    "perf-bench-numa": "023/input.txt",
    "perf-report": "perf_report/ipi.txt",
    "numamove": "numamove/bcc.txt",
    "latency-histogram": "latency/bpftrace.txt",
    "autonuma-benchmark": str(next(GOLDEN.glob("cases/024-*/input.txt")).relative_to(GOLDEN)),
    "ftrace": "ftrace/trace.txt",
    "perf-script": "perf_script/chains.txt",
    "zoneinfo": "zoneinfo/zoneinfo.txt",
    "perf-lock": "perf_lock/contention.txt",
}


@pytest.mark.parametrize("name", TOOLS)
def test_output_of_a_tool_among_other_text(name):
    text = golden(*TOOLS[name].split("/"))
    before, after = (
        "$ grep numa_ /proc/vmstat\nnuma_hit 5\nnuma_hint_faults 5\n\n",
        "\n\n$ cat node0/meminfo\nNode 0 MemFree: 5 kB\n",
    )
    found = cut(before + text + after)
    assert list(found) == ["vmstat", name, "meminfo"]
    inner = [number + 4 for number in lines_of(text)]
    assert [number for number in lines_of(found[name]) if number <= inner[-1]] == inner


def test_all_tools_in_one_paste():
    text = "\n\n".join(golden(*file.split("/")) for file in TOOLS.values())
    assert list(cut(text)) == list(TOOLS)
