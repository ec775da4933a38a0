"""The release x switch table against what is known of the releases, and kernels made from it."""

import tomllib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from numalab import _data
from numalab.kernel import Cell, Kernel, KernelError, KernelWarning, names, table

RELEASES = ["3.14", "3.16", "3.17", "3.19", "4.0", "4.1", "4.15", "4.16", "4.19"]
RELEASES += ["5.7", "5.19", "6.1", "6.5", "6.12", "6.14", "6.18"]
SERIES = [f"S1#{n}" for n in range(1, 8)]
WITH_SWITCHES = [name for name in SERIES if name != "S1#3"]  # about cgroups, which the model has not


def history(switch):
    """The switch's values from release to release, repeats left out: [(release, value), ...]."""
    cells = [(release, cell.value) for release, cell in table().switches[switch].cells.items()]
    return [cells[0]] + [after for before, after in pairwise(cells) if after[1] != before[1]]


# ---------------------------------------------------------------- the table
def test_every_switch_has_a_value_in_every_release():
    known = table()
    assert list(known.releases) == RELEASES
    for name, switch in known.switches.items():
        assert list(switch.cells) == RELEASES, name
        assert switch.what, name
        for cell in switch.cells.values():
            assert switch.parse(cell.value) == cell.value, name
            assert type(cell.value) is {"number": int, "choice": str, "bool": bool}[switch.kind], name


@pytest.mark.parametrize("name", [switch.name for switch in table().switches.values() if switch.kind == "choice"])
def test_choices_are_in_use_and_in_order_of_age(name):
    """Every word occurs in a release or a tree."""
    switch = table().switches[name]
    used = [cell.value for cell in switch.cells.values()]
    used += [str(tree.set[name]) for tree in table().trees.values() if name in tree.set]
    unused = set(switch.choices) - set(used)
    assert unused <= {"eighth"}  # imb_numa_nr between 5.7 and 5.19
    if name not in ("no_group_rule", "imbalance_rule", "check_preferred"):  # these came back
        order = [switch.choices.index(cell.value) for cell in switch.cells.values()]
        assert order == sorted(order)


#: Where a rule changed, as documented: the first release of the 16 that has each value.
CHANGES = {
    # constants
    "scan_period_min_ms": [("3.14", 1000)],
    "scan_period_max_ms": [("3.14", 60000)],
    "scan_size_mb": [("3.14", 256)],
    "migrate_deferred": [("3.14", 16), ("3.16", 0)],
    "numa_period_threshold": [("3.14", 3), ("3.17", 7)],  # patch 7 of June 2014
    "migrate_ratelimit_pages": [("3.14", 32768), ("4.19", 0)],  # 128 MB; removed by efaffc5e40ae
    "small_improvement": [("3.14", 0), ("4.19", 30)],
    "numa_move_threshold": [("3.14", 0)],  # never merged
    # scanning
    "virtual_scan_budget": [("3.14", False), ("4.15", True)],
    "cumulative_pte_budget": [("3.14", True), ("4.15", False)],
    "scan_overhead_stretch": [("3.14", False), ("4.15", True)],
    "mmap_lock": [("3.14", "wait"), ("4.15", "try")],
    "thread_stagger": [("3.14", False), ("4.19", True)],
    "cpuset_one_node_skip": [("3.14", False), ("6.18", True)],
    "pid_filter": [("3.14", "none"), ("6.5", "active"), ("6.12", "complete")],  # 6.4, completed in 6.7
    "skip_shared_cow": [
        ("3.14", "none"),
        ("4.16", "mapcount"),  # 859d4adc3415
        ("5.19", "page_count"),  # 5.17
        ("6.12", "likely_shared"),  # 6.10
        ("6.18", "maybe_shared"),
    ],
    "skip_local_single_user": [("3.14", False), ("4.15", True)],
    # faults
    "no_group_rule": [("3.14", "pte_write"), ("4.0", "vma_write"), ("4.15", "pte_write")],
    "keep_write": [("3.14", True)],
    "fail_slows": [("3.14", False), ("4.0", True)],
    "placement_at": [("3.14", "every_fault"), ("4.19", "retry")],
    "exchange_on_local": [("3.14", True), ("5.19", False)],
    "early_private": [("3.14", False), ("4.19", True)],
    "group_filter": [("3.14", "none"), ("3.16", "memory"), ("4.15", "cpu_memory")],
    "active_nodes": [("3.14", "none"), ("3.16", "mask"), ("4.15", "count")],
    "cpu_faults": [("3.14", False), ("3.16", True)],
    # placement and period
    "preferred_rule": [("3.14", "weight_sum"), ("3.17", "group_max"), ("3.19", "topology")],
    "migrate_at_placement": [("3.14", "on_change"), ("3.17", "not_there"), ("4.19", "no")],
    "retry_scales": [("3.14", False), ("3.16", True)],
    "period_rule": [("3.14", "local"), ("4.15", "private_first")],
    "reset_period_on_numa_move": [("3.14", True), ("4.19", False)],
    "reset_period_on_cross_node": [("3.14", False), ("4.19", True)],
    # topology
    "direct_topology_test": [("3.14", "none"), ("3.19", "max_distance"), ("4.15", "distinct_distances")],
    # moves
    "check_preferred": [("3.14", "if_free"), ("3.17", "always"), ("4.15", "has_capacity"), ("4.19", "always")],
    "task_capacity": [("3.14", "capacity"), ("3.19", "cores")],
    "smt_capacity_discount": [("3.14", True), ("5.7", False)],  # gone in 5.3
    "group_improvement": [("3.14", "if_positive"), ("3.17", "grouped")],
    "capacity_after": [("3.14", False), ("3.17", True)],
    "move_in_swap": [("3.14", False), ("3.17", True)],
    "strict_improvement": [("3.14", False), ("3.17", True)],
    "imbalance_rule": [("3.14", "threshold"), ("4.1", "balance_point"), ("4.15", "threshold"), ("4.19", "improve")],
    "idle_capacity_test": [("3.14", "free"), ("3.19", "relative"), ("4.19", "none")],
    "maymove": [("3.14", False), ("4.19", True)],
    "numa_migrate_on": [("3.14", False), ("4.19", True)],
    "home_bias": [("3.14", False), ("5.7", True)],
    "node_classes": [("3.14", False), ("5.7", True)],
}


@pytest.mark.parametrize("switch", CHANGES)
def test_a_rule_changes_where_it_did(switch):
    assert history(switch) == CHANGES[switch]


def read_releases():
    return tomllib.loads(_data.read_text("kernels.toml"))["read"]


def test_releases_that_were_read():
    """4.0's tree was 4.0.5; no tree of 4.16, 5.7 and 6.12 was read."""
    assert set(RELEASES) - set(read_releases()) == {"4.16", "5.7", "6.12"}


@pytest.mark.parametrize("name", list(table().switches))
def test_only_trees_that_were_read_count_as_read(name):
    """Elsewhere a cell may claim so only if a commit dates the rule, it was never merged, or a trace shows it."""
    switch = table().switches[name]
    claims = {r: cell.value for r, cell in switch.cells.items() if cell.read and r not in read_releases()}
    never_merged = "never merged" in switch.what
    shown_by_traces = (name, set(claims)) == ("exchange_on_local", {"6.12"})
    assert not claims or switch.commit or never_merged or shown_by_traces, claims


def test_marks():
    cells = table().switches["small_improvement"].cells
    assert cells["4.19"] == Cell(30, read=True)
    assert cells["5.7"] == Cell(30, read=False)
    assert table().switches["exchange_on_local"].cells["6.5"] == Cell(False, read=False)


# ---------------------------------------------------------------- trees and patches
def test_the_series_makes_3_17_of_its_branch():
    """All that differs between the branch and 3.17 are the seven patches, in any order."""
    with pytest.warns(KernelWarning, match="patch S1#3 changes nothing in the model"):
        assert Kernel("3.16-tip").patched(*SERIES).diff(Kernel("3.17")) == {}
    with pytest.warns(KernelWarning, match="patch S1#3"):
        assert Kernel("3.16-tip").patched(*reversed(SERIES)) == Kernel("3.17")
    assert Kernel("3.16").patched("a43455a1", "bb97fc31") == Kernel("3.16-tip")


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ("S1#1", {"preferred_rule": ("weight_sum", "group_max")}),
        ("S1#2", {"capacity_after": (False, True)}),
        ("S1#4", {"group_improvement": ("if_positive", "grouped")}),
        ("S1#5", {"move_in_swap": (False, True), "strict_improvement": (False, True)}),
        ("S1#6", {"stay_put": ("off", "active")}),
        ("S1#7", {"numa_period_threshold": (3, 7)}),
        ("S4", {"numa_move_threshold": (0, 50)}),
    ],
)
def test_what_a_patch_changes(patch, changed):
    old = Kernel("3.16-tip")
    assert old.diff(old.patched(patch)) == changed


def test_a_patch_that_changes_nothing_is_told():
    with pytest.warns(KernelWarning, match=r"patch S1#3 changes nothing in the model: cgroup share") as caught:
        assert Kernel("3.16-tip").patched("S1#3") == Kernel("3.16-tip")
    assert caught[0].filename == __file__
    with pytest.warns(KernelWarning, match=r"patch S1#7 changes nothing: 3\.17 has numa_period_threshold=7 already"):
        assert Kernel("3.17").patched("S1#7") == Kernel("3.17")
    # the second time the kernel has it
    with pytest.warns(KernelWarning, match=r"patch S1#2 changes nothing: 3\.16 has capacity_after=on already"):
        Kernel("3.16").patched("S1#2", "S1#2")


def test_named_trees():
    assert list(names()) == RELEASES + list(table().trees)
    for name, tree in table().trees.items():
        made = Kernel(name)
        assert (made.name, made.release) == (name, tree.base)
        assert set(Kernel(tree.base).diff(made)) <= set(tree.set)
    diffs = {name: Kernel("4.0").diff(Kernel(name)) for name in table().trees if name.startswith("4.0-")}
    slow = {"fail_slows": (True, False)}
    lost = {**slow, "keep_write": (True, False)}
    assert diffs == {
        "4.0-rc1": {**lost, "no_group_rule": ("vma_write", "always_private")},
        "4.0-rc4": {**lost, "no_group_rule": ("vma_write", "pte_dirty")},
        "4.0-rc5+p1": lost,
        "4.0-rc5+p1+p2": slow,
        "4.0-rc5+p1+p2+p3": {},
    }
    assert Kernel("3.19").diff(Kernel("3.19-vma-write")) == {"no_group_rule": ("pte_write", "vma_write")}


# ---------------------------------------------------------------- kernels
def test_overrides_take_the_words_of_the_file_too():
    made = Kernel("3.16", move_in_swap="on", scan_size_mb="64", preferred_rule="topology")
    assert (made.move_in_swap, made.scan_size_mb, made.preferred_rule) == (True, 64, "topology")
    assert made == Kernel("3.16", move_in_swap=True, scan_size_mb=64, preferred_rule="topology")
    assert made.switches["scan_size_mb"] == 64
    assert made.scan_delay_ms == 1000  # the rest as released
    assert Kernel("3.16").scan_size_mb == 256


@pytest.mark.parametrize(
    ("name", "switches", "message"),
    [
        ("3.18", {}, r"no kernel '3\.18'; known: 3\.14, 3\.16, .*6\.18, 3\.16-tip"),
        ("3.17", {"scan_size": 4}, "no switch 'scan_size'; did you mean 'scan_size_mb'?"),
        ("3.17", {"zzz": 4}, "no switch 'zzz'; see `numalab kernels`"),
        ("3.17", {"scan_size_mb": -1}, r"switch scan_size_mb: -1 is no whole number from 1 to 1,000,000,000 \(MB\)"),
        ("3.17", {"scan_size_mb": 0}, "switch scan_size_mb: 0 is no whole number from 1"),
        ("3.17", {"scan_size_mb": "9" * 5000}, "switch scan_size_mb: '9+' is no whole number"),
        ("3.17", {"numa_period_threshold": 99}, r"numa_period_threshold: 99 is no whole number from 1 to 10 \(of 10\)"),
        ("3.17", {"numa_period_threshold": 0}, "numa_period_threshold: 0 is no whole number from 1 to 10"),
        ("3.17", {"scan_size_mb": 2.5}, "switch scan_size_mb: 2.5 is no whole number"),
        ("3.17", {"scan_size_mb": True}, "switch scan_size_mb: True is no whole number"),
        ("3.17", {"scan_size_mb": "many"}, "switch scan_size_mb: 'many' is no whole number"),
        ("3.17", {"keep_write": 1}, r"switch keep_write: 1 is neither on nor off \(True or False\)"),
        ("3.17", {"keep_write": "yes"}, "switch keep_write: 'yes' is neither on nor off"),
        ("3.17", {"pid_filter": "some"}, "switch pid_filter: 'some' is none of none, active, complete"),
        ("3.17", {"pid_filter": True}, "switch pid_filter: True is none of none, active, complete"),
    ],
)
def test_what_is_wrong_is_named(name, switches, message):
    with pytest.raises(KernelError, match=message):
        Kernel(name, **switches)


def test_unknown_patches_and_attributes():
    with pytest.raises(KernelError, match=r"no patch 'S1#8'; known: S1#1, .*S4"):
        Kernel("3.17").patched("S1#1", "S1#8")
    with pytest.raises(AttributeError, match="scan_size"):
        _ = Kernel("3.17").scan_size


def test_replace_and_patched_make_new_kernels():
    old = Kernel("3.16-tip", scan_size_mb=64)
    new = old.replace(scan_size_mb=32, move_in_swap=True)
    assert old.overrides == {"scan_size_mb": 64}
    assert new.overrides == {"scan_size_mb": 32, "move_in_swap": True}
    assert (new.name, new.release) == ("3.16-tip", "3.16")
    assert old.diff(new) == {"scan_size_mb": (64, 32), "move_in_swap": (False, True)}
    assert new.diff(old) == {"scan_size_mb": (32, 64), "move_in_swap": (True, False)}
    patched = old.patched("S1#2", "S1#7")
    assert patched.overrides == {"scan_size_mb": 64, "capacity_after": True, "numa_period_threshold": 7}
    assert old.patched() == old


def test_kernels_compare_by_their_switches():
    """However they were made: by name, by patches, or one switch after the other."""
    tip = Kernel("3.16", check_preferred="always", migrate_at_placement="not_there")
    assert tip == Kernel("3.16-tip")
    assert hash(tip) == hash(Kernel("3.16-tip"))
    assert tip != Kernel("3.16")
    assert Kernel("3.17") != "3.17"
    assert len({Kernel("3.17"), Kernel("3.16-tip").patched(*WITH_SWITCHES), Kernel("3.19")}) == 2


def test_label_and_repr():
    assert Kernel("6.1").label == "6.1"
    made = Kernel("3.16-tip", move_in_swap=True, keep_write=False, scan_size_mb=64, pid_filter="none")
    assert made.label == "3.16-tip move_in_swap=on keep_write=off scan_size_mb=64 pid_filter=none"
    assert repr(made).startswith("Kernel('3.16-tip', move_in_swap=True, keep_write=False,")
    assert eval(repr(made), {"Kernel": Kernel}) == made


def test_a_kernel_cannot_be_changed_through_what_it_returns():
    made = Kernel("3.17", scan_size_mb=64)
    made.switches["scan_size_mb"] = made.overrides["scan_size_mb"] = 1
    assert (made.scan_size_mb, made.overrides) == (64, {"scan_size_mb": 64})


def test_numbers_of_numpy_are_numbers() -> None:
    given: dict[str, Any] = {"scan_size_mb": np.int64(64), "move_in_swap": np.bool_(True)}
    kernel = Kernel("3.16", **given)
    assert kernel == Kernel("3.16", scan_size_mb=64, move_in_swap=True)
    assert type(kernel.scan_size_mb) is int
    assert kernel.move_in_swap is True
    wrongs: list[Any] = [np.array([1, 2]), np.float64(64), np.bool_(True)]
    for wrong in wrongs:
        with pytest.raises(KernelError, match=r"scan_size_mb: .* is no whole number"):
            Kernel("3.16", scan_size_mb=wrong)
