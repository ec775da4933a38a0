"""Scenarios of real runs: what the packed traces' meta.json become, and errors of commands and keys."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalab import simulate
from numalab.readers import trace
from numalab.scenarios import COSTS, Scenario, ScenarioError, scenario

NAMES = trace.names()


def packed(name: str) -> Scenario:
    with trace.folder(name) as folder:
        return scenario(folder)


def named(entries: Any, *names: str) -> list[Any]:
    """Regions by the ends of their names, or accesses by those of their regions."""
    found = {getattr(entry, "name", None) or entry.region: entry for entry in entries}
    return [next(entry for name, entry in found.items() if name.endswith("." + end)) for end in names]


def stock_meta(command: str, **more: Any) -> dict[str, Any]:
    """A meta.json of layout A: 2 nodes of 2 CPUs, 250 M instructions a second."""
    return {
        "kernel": {"release": "6.12.117+deb12-cloud-amd64"},
        "qemu": {"accel": "icount:2", "host_cpus": 2},
        "topology": {
            "mem_mib_per_node": 384,
            "distance": [[10, 21], [21, 10]],
            "node_cpus": {"0": [0, 1], "1": [2, 3]},
        },
        "workload": {"command": command},
        "uptime_cmd_start": "9.00 0",
        "uptime_after": "21.50 0",
        **more,
    }


def toggle_meta(command: str, toggles: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A meta.json of layout B: 4 nodes of 2 CPUs, 125 M instructions a second."""
    return {
        "kernel": "Linux (none) 6.1.192-numalab #2 SMP",
        "qemu": {"accel": "-accel tcg,thread=single -icount shift=3,sleep=off"},
        "topology": {"nodes_x_cpus": "4x2", "mem_mib_per_node": 256, "distance": 21},
        "command": command,
        "toggles": toggles,
        "guest_uptime_s": [10.0, 27.5],
        **more,
    }


# ---------------------------------------------------------------- the packed traces


@pytest.mark.parametrize("name", NAMES)
def test_every_packed_trace_has_a_scenario(name: str) -> None:
    if name.startswith("S3_"):
        with pytest.raises(ScenarioError, match="lock model"):
            packed(name)
        return
    found = packed(name)
    assert found.seconds > 0
    assert found.notes
    with trace.folder(name) as folder:
        meta = json.loads((folder / "meta.json").read_text())
    topology = meta["topology"]
    nodes = topology.get("nodes") or int(topology["nodes_x_cpus"].split("x")[0])
    assert len(found.machine.nodes) == nodes


def test_one_thread_on_the_wrong_node() -> None:
    found = packed("b_wrongnode_bound_2x2_r1")
    (group, _), (binding,) = found.workload.processes, found.workload.bindings
    (region,), (access,) = named(found.workload.regions, "process"), named(found.workload.accesses, "process")
    assert (group.count, group.threads, group.demand) == (1, 1, 1000)
    assert (region.size_mb, region.first_touch, region.block_kb, region.kind) == (32, 0, 4, "private")
    assert (binding.nodes, binding.from_ms, binding.until_ms) == (1, 0, None)
    # 8 + 4 + 13 * 8 - 1 + 6 = 121 instructions of 8 ns, and 3.3 % of others: 1000.4 ns a visit
    assert access.rate == pytest.approx(999_600, rel=1e-3)
    assert (access.order, access.write) == ("sequential", 0)
    # the real one: 999,400 pages a second in its quiet seconds
    assert access.rate == pytest.approx(999_400, rel=5e-3)
    assert found.kernel.name == "6.12.117"
    assert not found.kernel.overrides
    assert found.params["hint_fault_ns"] == 8 * 800
    assert found.seconds == 40
    # numactl of the guest: 376 and 340 MB, of which 353 and 309 were free
    assert [node.memory_mb for node in found.machine.nodes] == [376, 340]
    assert [node.memory_mb - node.reserved_mb for node in found.machine.nodes] == [353, 309]


def test_scan_settings_that_differ_are_parameters() -> None:
    assert packed("b_wrongnode_bound_2x2_scan4_r1").params["scan_size_mb"] == 4
    assert "scan_size_mb" not in packed("b_wrongnode_bound_2x2_r1").params


def test_a_thread_that_is_moved_after_eight_seconds() -> None:
    home, there = packed("b_follow_2x2_r1").workload.bindings
    assert (home.nodes, home.from_ms, home.until_ms) == (0, 0, 8000)
    assert (there.nodes, there.from_ms, there.until_ms) == (1, 8000, None)


def test_a_lone_free_thread_begins_where_it_filled_its_array() -> None:
    (held,) = packed("b_wrongnode_free_2x2_r1").workload.bindings
    assert (held.nodes, held.until_ms) == (1, 1)


def test_four_busy_vcpus_share_the_instructions() -> None:
    found = packed("c_swap_2x2_r1")
    (group, _), (binding,) = found.workload.processes, found.workload.bindings
    (region,), (access,) = named(found.workload.regions, "process"), named(found.workload.accesses, "process")
    assert (group.count, group.threads, region.first_touch) == (2, 2, "rr")
    # 121 instructions of 4 ns, and 3.3 %: 500 ns a visit of a vCPU that is alone; four share the work of one
    assert access.rate == pytest.approx(2_000_000, rel=2e-3)
    assert found.params["shared_cpus"] == 1000
    assert access.start == "spread"
    assert (binding.nodes, binding.until_ms) == ("thread", 5000)
    # 800 instructions (310), and 510 (97) for the other thread of the process
    assert found.params["hint_fault_ns"] == 4 * (800 + 510)
    assert found.params["pte_update_ns"] == 4 * (310 + 97)
    ds = simulate(found.machine, found.workload, found.kernel, seconds=0.5, seeds=1, **found.params)
    # a percent of their visits go to data and stacks, and the monitor takes its share of the vCPUs
    monitor = found.workload.processes[-1]
    assert (monitor.name, monitor.nice, monitor.demand) == ("monitor", -15, 40)  # 2e6 instructions of 4 ns, one of five
    assert ds.task_work_pages.isel(run=0).values[-1][:4] == pytest.approx([250_000] * 4, rel=0.1)


def test_process_and_thread_arrays_share_the_passes() -> None:
    found = packed("c_mixed_2x2_r1")
    process, thread = named(found.workload.regions, "process", "thread")
    assert (process.size_mb, process.scope, thread.size_mb, thread.scope) == (8, "process", 4, "thread")
    shared, own = named(found.workload.accesses, "process", "thread")
    assert shared.rate == pytest.approx(2 * own.rate)
    # written: 8 + 4 + 14 * 8 - 1 + 5 = 128 instructions
    assert shared.rate + own.rate == pytest.approx(1e9 / (128 * 4 * 1.033), rel=1e-3)
    assert shared.write == own.write == 1


def test_a_huge_page_comes_whole_from_the_node_that_touches_it_first() -> None:
    (region,) = named(packed("c_groups_2x2_thp_r1").workload.regions, "process")
    assert (region.pages, region.first_touch) == ("huge", 0)


@pytest.mark.parametrize(
    ("name", "nodes", "cpus", "far"),
    [("c_groups_4x2mesh_p2t4_r1", 4, 2, 22), ("c_groups_8x1_p2t4_r1", 8, 1, 22), ("a_perfnuma_2x4_p1t4_r1", 2, 4, 21)],
)
def test_topologies(name: str, nodes: int, cpus: int, far: int) -> None:
    machine = packed(name).machine
    assert [node.cpus for node in machine.nodes] == [cpus] * nodes
    assert max(max(row) for row in machine.distance) == far


def test_balancing_off_never_scans() -> None:
    found = packed("e_shared_2x2_nb0_r1")
    ds = simulate(found.machine, found.workload, found.kernel, seconds=3, seeds=1, **found.params)
    assert int(ds.numa_pte_updates.max()) == 0
    assert found.params["numa_balancing"] == 0


def test_readers_of_a_forked_array() -> None:
    found = packed("S0_anon_n16_nb1_trap_r1")
    group, _ = found.workload.processes
    (array,), (access,) = named(found.workload.regions, "array"), named(found.workload.accesses, "array")
    assert (group.count, group.threads) == (16, 1)
    assert (array.size_mb, array.kind, array.scope) == (1, "forked", "all")
    own = [one for one in found.workload.regions if one.kind == "private" and one.processes == (group.name,)]
    # five pages it has written, and the area of the vdso
    assert sum(region.size_mb for region in own) * 256 == 6
    # 128 reads of 5 instructions a page of 4 ns, 256 pages a sum; the real readers of nb0 made 1513.7 a second in all
    assert access.rate / 256 == pytest.approx(1513.7, rel=0.03)
    assert found.kernel.overrides == {"skip_shared_cow": "none"}
    assert found.params["ipi_wait_ns"] == 7 * 246_000
    assert found.seconds == pytest.approx(15, abs=0.1)


def test_the_data_segment_is_on_tmpfs_and_not_scanned() -> None:
    found = packed("S0_data_n16_nb1_trap_r1")
    (array,) = named(found.workload.regions, "array")
    assert (array.kind, array.policy) == ("data", "explicit")
    assert any("tmpfs" in note for note in found.notes)


def test_convergence() -> None:
    found = packed("S1_p4t2_old_r1")
    group, _ = found.workload.processes
    assert (group.count, group.threads) == (4, 2)
    text, memory, _ = found.workload.regions
    assert (text.kind, text.size_mb * 256) == ("file", 190)
    assert memory.size_mb == 8
    # 59 instructions of 8 ns, and 3.3 %
    assert found.workload.accesses[0].rate == pytest.approx(1e9 / (59 * 8 * 1.033), rel=1e-6)
    assert found.kernel.overrides == {
        "spare_refuses_swap": False,
        "period_rule": "local",
        "numa_period_threshold": 3,
        "group_scaled_period": False,
        "placement_at": "every_fault",
        "migrate_at_placement": "on_change",
        "preferred_rule": "weight_sum",
        "move_in_swap": False,
    }
    assert not any(note.startswith("toggle") for note in found.notes)


def test_the_toggle_kernel_as_it_was_is_6_1() -> None:
    found = packed("S1_p4t2_stock_r1")
    assert found.kernel.name == "6.1"
    assert not found.kernel.overrides


def test_chunks_on_nodes_that_a_hog_filled() -> None:
    found = packed("S2_write_base_r1")
    part, _ = found.workload.regions  # the other one is the monitor's
    own, anywhere, _ = found.workload.accesses
    assert (part.scope, part.size_mb * 8) == ("thread", 17)
    assert (own.reach, anywhere.reach) == ("own", "all")
    assert anywhere.rate / (own.rate + anywhere.rate) == pytest.approx(0.4)
    assert own.write == 0.8
    assert found.params["pte_update_ns"] == 8 * (310 + 7 * 97)
    assert found.kernel.no_group_rule == "pte_dirty"
    assert (found.kernel.keep_write, found.kernel.fail_slows) == (False, False)
    # zoneinfo: node 0 has 2646 pages free and its high watermark at 1290, so 1356 are left
    first, mark = found.machine.nodes[0], found.machine.watermark_pages()[0]
    assert round((first.memory_mb - first.reserved_mb) * 256) - mark == 1356
    # fixed work: 300,000 steps of 8 pages each; the real run took as long as meta.json says
    assert found.workload.processes[0].page_visits == 2_400_000
    assert any("ends with its work" in note for note in found.notes)


def test_the_five_percent_proposal_replaces_the_hysteresis() -> None:
    found = packed("S4_jvm8_prop50_r1")
    assert found.kernel.numa_move_threshold == 50
    assert packed("S4_jvm8_post_nohyst_r1").kernel.overrides["group_hysteresis"] is False
    assert not any("hyst" in note for note in found.notes)


def test_a_shared_heap_and_own_memory() -> None:
    _, heap, own, _ = packed("S4_jvm8_stock_r1").workload.regions
    assert (heap.size_mb, own.size_mb, own.scope) == (8, 0.25, "thread")
    shared, private, _ = packed("S4_jvm8_stock_r1").workload.accesses
    assert shared.rate == pytest.approx(4 * private.rate)


def test_message_passers() -> None:
    found = packed("S4_hackbench_stock_r1").workload
    group, _ = found.processes
    # 4 groups of 5 senders and 5 receivers; two runnable on each of 8 CPUs
    assert (group.count, group.threads, group.demand) == (1, 40, 400)
    # 655 messages of 2000 instructions of 8 ns, while 8 CPUs take turns
    assert group.wake_ms == pytest.approx(655 * 2000 * 8 * 8 / 1e6)
    _, once, _, stack, heap, _ = found.regions
    assert once.size_mb * 256 == 20  # a page of each sender
    assert (stack.scope, stack.size_mb * 256, stack.reserved_mb + stack.size_mb) == ("thread", 2, 8)
    assert (heap.size_mb * 256, heap.reserved_mb + heap.size_mb) == (1, 0.129)


def test_a_chain_of_programs() -> None:
    found = packed("e_messaging_2x2_nb1_r1")
    first, second, _ = found.workload.processes
    assert (first.threads, second.count) == (80, 2)
    assert 0 < second.start_ms < 1000 * found.seconds
    # no thread gets a second of CPU time
    ds = simulate(found.machine, found.workload, found.kernel, seconds=found.seconds, seeds=1, **found.params)
    assert int(ds.numa_pte_updates.max()) == 0


def test_perf_fills_more_than_it_walks() -> None:
    found = packed("a_perfnuma_4x2_p4t2_r1")
    large = {region.name: region for region in found.workload.regions if region.size_mb >= 1}
    assert {name: region.size_mb for name, region in large.items()} == {
        "mem.process": 8, "mem.process-edge": 2, "mem.global": 1,
    }  # fmt: skip
    assert {region.first_touch for region in large.values()} == {0}
    walked = {access.region for access in found.workload.accesses}
    assert walked & large.keys() == {"mem.process", "mem.global"}


def test_small_areas_stand_around_the_arrays() -> None:
    # The scanner of 6.12 takes areas one at a time when none was faulted in lately.
    names = [region.name.partition(".")[2] for region in packed("c_mixed_2x2_r1").workload.regions]
    assert names == ["data", "bss", "heap", "stacks", "thread", "process", "vdso", "stack", "own"]
    idle = {region.name for region in packed("c_mixed_2x2_r1").workload.regions if region.pinned}
    assert idle == {"numawl.heap", "numawl.vdso", "numawl.stack"}
    perf = packed("a_perfnuma_2x2_p2t2_r2").workload.regions
    assert sum(region.name.startswith("mem.lib") for region in perf) == 40


def test_perf_perturbs_its_first_thread_every_six_seconds() -> None:
    found = packed("a_perfnuma_perturb_2x2_p2t2_r1")
    bindings = found.workload.bindings
    assert [binding.cpus for binding in bindings[:2]] == [(3,), (0,)]
    assert bindings[1].from_ms - bindings[0].from_ms == 6000
    assert {(binding.processes, binding.threads) for binding in bindings} == {(("mem.first",), (0,))}


def test_vcpus_that_run_side_by_side() -> None:
    found = packed("b_follow_2x2_mt_P16_r1")
    assert named(found.workload.accesses, "process")[0].rate == pytest.approx(555_000, rel=5e-3)
    # on two CPUs of the host
    assert found.params["shared_cpus"] == 2000


def test_every_cost_says_where_it_comes_from() -> None:
    for cost in COSTS.values():
        assert cost.source.startswith(("fitted: b_", "fitted: S0", "fitted: S2", "derived:"))


# ---------------------------------------------------------------- other commands


@pytest.mark.parametrize(
    "command",
    [
        "numawl -p 3 -t 2 -P 4 -T 2 -G 6 -i rr -b proc -s 9 -u 500 -k 4 -W -R -S 3 -n x",
        "numawl -P 16 -t 4 -o 0.25 -i 1 -b 0 -s 5",
        "numawl -t2 -P8 -WR -s5",
        "cowread -m 8 -n 3 -s 7 -k 4",
        "cowread -n 2 -d -s 5",
        "perf bench numa mem -p 2 -t 2 -P 4 -T 1 -G 2 -s 5 -zZ0qcm --thp 1 --no-data_rand_walk",
        "perf bench sched messaging -g 1 -l 50",
        "perf bench sched pipe -T -l 1000",
        "numawl -P 4 -s 2; cowread -m 4 -n 2 -s 3",
    ],
)
def test_options_of_stock_runs(command: str) -> None:
    found = scenario(stock_meta(command))
    simulate(found.machine, found.workload, found.kernel, seconds=0.05, seeds=1, **found.params)


def test_tasks_sleep_after_each_pass() -> None:
    found = scenario(stock_meta("numawl -p 4 -P 16 -s 9 -u 4000"))
    demand = found.workload.processes[0].demand / 1000
    # a pass of 4096 visits of 500 ns while 4 * demand vCPUs share the work, then 4 ms
    took = 4096 * 500e-9 * max(1, 4 * demand)
    assert demand == pytest.approx(took / (took + 0.004), abs=2e-3)


def test_a_chain_starts_its_second_program_when_the_first_has_ended() -> None:
    found = scenario(stock_meta("numawl -P 4 -i 0 -b home:0,dst:1@1000 -s 2; numawl -P 4 -i 0 -b 1 -s 3"))
    assert found.seconds == 5
    assert [group.start_ms for group in found.workload.processes[:-1]] == [0, 2000]
    assert {access.until_ms for access in found.workload.accesses if "numawl1" in access.region} == {2000}
    assert {access.until_ms for access in found.workload.accesses if "numawl2" in access.region} == {5000}
    assert [binding.from_ms for binding in found.workload.bindings] == [0, 1000, 2000]


def test_memory_that_is_only_read_is_the_zero_page() -> None:
    found = scenario(stock_meta("numawl -P 4 -t 2 -i self -s 3"))
    assert named(found.workload.regions, "process")[0].policy == "explicit"
    assert any("zero page" in note for note in found.notes)


def test_a_slice_and_a_part_of_the_rest() -> None:
    found = scenario(stock_meta("numawl -P 16 -t 4 -o 0.25 -i 0 -s 5"))
    own, others = (access for access in found.workload.accesses if access.region.endswith(".process"))
    # 1024 own pages, and a quarter of the other 3072
    assert others.rate / own.rate == pytest.approx(768 / 1024)
    assert (own.order, others.order, others.reach) == ("sequential", "random", "all")


def test_a_hog_alone_takes_the_memory() -> None:
    found = scenario(toggle_meta("nlwl hog 5.5", {"cow_skip": 1}))
    for node, mark in zip(found.machine.nodes, found.machine.watermark_pages(), strict=True):
        assert round((node.memory_mb - node.reserved_mb) * 256) - mark == 1408


def test_sysctl_of_a_toggle_run_without_its_file() -> None:
    found = scenario(toggle_meta("nlwl conv 2 2 4 10 1", {}, sysctl="scan_size_mb=2 numa_balancing=0"))
    assert (found.params["scan_size_mb"], found.params["numa_balancing"]) == (2, 0)


def test_an_older_kernel_than_the_nearest_release_is_noted() -> None:
    found = scenario(stock_meta("numawl -P 4", kernel={"release": "6.8.0-1-amd64"}))
    assert found.kernel.name == "6.5"
    assert any("taken as 6.5" in note for note in found.notes)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("stress -c 4", "expected one of numawl"),
        ("numawl -P 4 | cat", "one after the other"),
        ("numawl -q -P 4", "no option -q"),
        ("numawl -P", "-P: expected an argument"),
        ("numawl -P four", "-P: expected a whole number"),
        ("numawl -t 2", "expected memory"),
        ("numawl -P 4 -i everywhere", "-i: expected rr, self"),
        ("numawl -P 4 -b home:0,dst:1", "-b: expected free, proc"),
        ("cowread -n 0", "-n: expected a whole number >= 1"),
        ("perf bench numa mem -P 4 --thq 1", "did you mean"),
        ("perf bench numa mem -P 4 -C 0,1", "-C: tasks bound to CPUs"),
        ("nlwl conv 4 2 8", "expected 5 arguments"),
        ("nlwl dance 1", "expected a mode"),
        ("nlwl scan 8 17 300 180 40 1", "W%: expected a share"),
        ("nlwl cow 4 1 5 1 file", "expected one of the two"),
        ("nlwl shpol 2 16 4 1 alloc", "lock model"),
    ],
)
def test_bad_commands(command: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=r"meta\.json") as error:
        scenario(stock_meta(command))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda meta: meta.pop("topology"), "expected topology.node_cpus"),
        (lambda meta: meta["topology"].pop("mem_mib_per_node"), "topology.mem_mib_per_node"),
        (lambda meta: meta["topology"].update(distance=[[10, 21]]), "distance: expected 2 rows"),
        (lambda meta: meta["qemu"].update(accel="kvm"), "qemu.accel: expected icount:N"),
        (lambda meta: meta["kernel"].update(release="2.6.39"), "expected a kernel from 3.14"),
        (lambda meta: meta["workload"].update(command=" "), "workload.command: expected text"),
        (lambda meta: meta.update(sysctl={"scan_size_mb": "-"}), "scan_size_mb: expected a whole number"),
    ],
)
def test_bad_metas(change: Callable[[dict[str, Any]], Any], words: str) -> None:
    meta = stock_meta("numawl -P 4")
    change(meta)
    with pytest.raises(ScenarioError) as error:
        scenario(meta)
    assert words in str(error.value)


def test_fixed_work_needs_the_times_of_the_run() -> None:
    meta = toggle_meta("nlwl hb 1 2 100 1", {})
    del meta["guest_uptime_s"]
    with pytest.raises(ScenarioError, match="guest_uptime_s"):
        scenario(meta)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is no folder"):
        scenario(tmp_path / "nothing")
    with pytest.raises(ScenarioError, match=r"no meta\.json"):
        scenario(tmp_path)
