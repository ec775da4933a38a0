"""Readers of memory.numa_stat and memory.stat of cgroups."""

from functools import partial

from numalab.readers import memcg, mixed
from tests.readers.helpers import refuses

V2 = "anon N0=8192 N4=4096\nfile N0=0 N4=0\nshmem N0=0 N4=0\n"


def test_version_1_counts_pages_and_version_2_bytes():
    one, two = memcg.parse("total=30 N0=10 N1=20\nanon=30 N0=10 N1=20\nanon N0=40960 N1=81920\n").samples
    assert (one.version, one.nodes["total"], one.totals["total"]) == (1, {0: 10, 1: 20}, 30)
    assert (two.version, two.nodes) == (2, {"anon": {0: 40960, 1: 81920}})


def test_dataset_has_pages_of_what_does_not_overlap():
    ds = mixed.read_text(V2, "x").dataset()
    assert ds.node.values.tolist() == [0, 4]
    assert ds.region.values.tolist() == ["anon", "file"]  # shmem is part of file
    assert ds.pages.values.tolist() == [[[[2, 1], [0, 0]]]]


def test_cgroups_from_paths_and_headings():
    path = "/sys/fs/cgroup/{}/memory.numa_stat"
    grep = "".join(f"{path.format(name)}:{line}\n" for name in ("a", "b/c") for line in V2.splitlines())
    assert [sample.cgroup for sample in memcg.parse(grep).samples] == ["a", "b/c"]
    tail = "".join(f"==> {path.format(name)} <==\n{V2}\n" for name in ("a", "b/c"))
    assert [(sample.cgroup, sample.nodes) for sample in memcg.parse(tail).samples] == [
        (name, memcg.parse(V2).samples[0].nodes) for name in ("a", "b/c")
    ]
    ds = mixed.read_text(grep, "x").dataset()
    assert ds.region.values.tolist() == ["a anon", "a file", "b/c anon", "b/c file"]


def test_one_cgroup_twice_is_two_runs():
    ds = mixed.read_text(f"{V2}{V2.replace('8192', '0')}", "x").dataset()
    assert ds.pages.sel(region="anon", node=0).values.tolist() == [[2], [0]]


def test_counters_of_a_cgroup():
    text = "anon 4096\nfile 8192\npgfault 9\nnuma_pages_migrated 3\nnuma_pte_updates 40\nnuma_hint_faults 30\n"
    found = mixed.read_text(text, "x")
    assert found.formats == ["memcg-stat"]
    assert found.tables[0].get("file", "value") == 8192
    ds = found.dataset()
    assert (ds.numa_pages_migrated.item(), ds.numa_hint_faults.item()) == (3, 30)
    # the prompt tells where only the counters were taken
    few = "$ grep numa /sys/fs/cgroup/mytest/memory.stat\nnuma_pages_migrated 3\nnuma_hint_faults 30\n"
    assert mixed.read_text(few, "x").formats == ["memcg-stat"]


def test_a_cgroup_without_counters_of_balancing_is_a_table():
    found = mixed.read_text("anon 4096\nfile 8192\n", "x")
    assert (found.formats, found.datasets()) == (["memcg-stat"], {})


def test_what_is_wrong():
    parse = partial(refuses, memcg.parse)
    parse("anon=3000 N0=10 N1=20\n", 1, "the nodes of anon sum to 30, not to 3000", "cut off")
    parse("anon N0=10 N1=20 N2\n", 1, "expected N<node>=<number> to the end")
    parse("hello\n", 0, "holds no memory.numa_stat")
