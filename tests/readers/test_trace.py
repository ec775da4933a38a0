"""Run folders of real kernels: the packaged ones against the tables that came with them, broken ones."""

import csv
import gzip
import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from numalab import _data, cli, runs
from numalab.readers import trace
from numalab.readers._folder import ARCHIVE, Folder
from numalab.readers._text import ReadError
from tests.readers.helpers import GOLDEN

TRACES = Path(str(_data.path("traces")))


def table(name):
    lines = (GOLDEN / name).read_text().splitlines()[1:]
    return {row[next(iter(row))]: row for row in csv.DictReader(lines)}


A, B = table("traces_a.csv"), table("traces_b.csv")


def end(ds, name):
    """What a counter grew by from the first sample to the last."""
    counter = ds[name] if name in ds else ds.counters.sel(counter=name)
    return int(counter.values[0, -1] - counter.values[0, 0])


# ------------------------------------------------------------- what is packaged


def test_every_trace_is_packaged():
    assert set(trace.names()) == set(A) | set(B)
    assert (len(A), len(B)) == (34, 177)


def test_they_take_less_than_10_mb():
    assert sum(path.stat().st_size for path in TRACES.rglob("*") if path.is_file()) < 10e6


@pytest.mark.parametrize("name", sorted(A))
def test_layout_a_ends_with_the_counters_of_its_table(name):
    ds, row = trace.load(name), A[name]
    names = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    want = [int(row[column]) for column in ("pte", "hint", "local", "migrated")]
    assert [end(ds, counter) for counter in names] == want
    counts = runs.provenance(ds)["trace_events"]
    events = [counts.get(f"sched_{kind}_numa", 0) for kind in ("move", "swap", "stick")]
    assert events == [int(row[kind]) for kind in ("move", "swap", "stick")]
    assert runs.provenance(ds)["trace_lost"] == 0


@pytest.mark.parametrize("name", sorted(B))
def test_layout_b_ends_with_the_counters_of_its_summary(name):
    ds, row = trace.load(name), B[name]
    how = runs.provenance(ds)
    for column, text in row.items():
        if column.startswith(("numa_", "pg", "k_")):
            assert how["totals"].get(column, 0) == int(text), column
    # the monitor's last sample was taken a moment before the counters "after"
    for column in ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"):
        assert 0 <= int(row[column]) - end(ds, column) <= 3, column
    for column in ("r_total", "r_per_s", "r_runtime_s", "r_conv_s", "r_ops", "r_msgs"):
        if row[column]:
            assert how["results"][column.removeprefix("r_")] == pytest.approx(float(row[column])), column
    assert end(ds, "blocked_max") <= float(row["blocked_max"])


def test_the_stored_dataset_is_what_reading_gives():
    for name in (
        "c_groups_2x2_thp_r1",
        "a_perfnuma_4x2_p4t2_r1",
        "S1_p4t4_old+move_r1",
        "S3_icount_alloc_n2_rwlock_r1",
    ):
        with trace.folder(name) as path:
            assert runs.differences(trace.read(path).dataset(), trace.load(name)) == []


# ------------------------------------------------------------- right values, layout A


@pytest.fixture(scope="module")
def swap():
    with trace.folder("c_swap_2x2_r1") as path:
        return trace.read(path)


@pytest.fixture(scope="module")
def swap_run(swap):
    return swap.dataset()


def test_layout_a_report(swap):
    assert swap.layout == "A"
    assert {file.name for file in swap.files} == {
        "workload.log", "trace.txt", "vmstat_before.txt", "vmstat_after.txt", "vmstat.log", "numastat.log",
        "tasks.log", "sched.log", "numa_maps.log",
    }  # fmt: skip
    assert (swap.missing, swap.skipped) == ((), ())


def test_layout_a_time_begins_with_the_work(swap_run):
    # the later of "S 9.545273 proc 1" and "S 9.554682 proc 0"
    assert swap_run.time.values[0] == pytest.approx(8.339485 - 9.554682)
    assert swap_run.time.values[-1] == pytest.approx(39.344050 - 9.554682)
    assert swap_run.time_task.values[0] == pytest.approx(10.352845 - 9.554682)
    assert swap_run.time_memory.values[-1] == pytest.approx(39.372510 - 9.554682)
    how = runs.provenance(swap_run)
    assert how["starts_s"] == {"200": 0.0, "201": pytest.approx(-0.009409)}


def test_layout_a_machine_and_provenance(swap_run):
    assert swap_run.distance.values.tolist() == [[10, 21], [21, 10]]
    assert swap_run.cpu_node.values.tolist() == [0, 0, 1, 1]
    how = runs.provenance(swap_run)
    assert how["machine"]["size_mb"] == {"0": 376, "1": 340}
    assert how["sysctl"]["scan_size_mb"] == 256
    assert how["sysctl"]["numa_balancing"] == 1
    assert how["release"] == "6.12.117+deb12-cloud-amd64"
    assert how["command"] == "numawl -p 2 -t 2 -P 16 -i rr -b inter -r 5000 -s 30 -S 1"
    assert how["passes"]["204"] == 3447
    assert (swap_run.seed.values.tolist(), swap_run.rep.values.tolist()) == ([1], [1])
    assert swap_run.attrs["source"] == "measured"


def test_layout_a_tasks_faults_and_memory(swap_run):
    last = swap_run.isel(time_task=-1, time_memory=-1, run=0)
    one = last.sel(task=204)
    assert (one.task_node.item(), one.task_cpu.item(), one.preferred_nid.item()) == (0, 1, 0)
    assert (one.total_numa_faults.item(), one.numa_group_id.item()) == (4884, 205)
    assert one.faults.sel(node=0, kind="private").item() == 3132
    assert one.faults.sel(node=1, kind="shared").item() == 1032
    assert one.group_faults.sel(node=1, kind="shared").item() == 1746
    assert last.scan_seq.sel(process=200).item() == 5
    assert last.pages.sel(region="wl_p0m-200 7f7a35e00000").values.tolist() == [3341, 755]
    assert swap_run.task_name.sel(task=204).item() == "wl_p0t0"
    assert swap_run.task_process.sel(task=204).item() == 200
    assert swap_run.node_counters.sel(node=1, node_counter="local_node").values[0, -1] == 12976 - 3538


def test_layout_a_events(swap_run):
    events = swap_run.numa.table("event")
    # 2 moves, 1 swap, 3 sticks that found no place
    assert sorted(events.event_kind.values.tolist()) == [0, 0, 1, 3, 3, 3]
    assert (np.diff(events.event_time_s.values) > 0).all()
    swap = events.isel(event=np.flatnonzero(events.event_kind.values == 1)[0])
    assert swap.event_time_s.item() == pytest.approx(39.164076 - 9.554682)
    assert (swap.event_task.item(), swap.event_partner.item()) == (205, 202)


def test_failed_swaps_are_failures():
    ds = trace.load("c_swap_4x2_p4t2_r1")
    kinds = np.bincount(ds.numa.table("event").event_kind.values, minlength=4)
    # 1 move, 16 swaps of which 4 were followed by a stick of the same pair, 11 sticks
    assert kinds.tolist() == [1, 12, 0, 11]
    tried = ds.numa.table("event")
    tried = tried.isel(event=(tried.event_kind == 3).values & (tried.event_dst_cpu >= 0).values)
    assert tried.event_task.values.tolist() == [252, 252, 258, 258]


def test_moves_by_others_are_known_where_traced():
    ds = trace.load("b_wrongnode_free_2x2_r1")
    events = ds.numa.table("event")
    assert set(events.event_kind.values.tolist()) <= {2}
    assert set(events.event_task.values.tolist()) <= {197}


def test_perf_bench_is_read_where_it_was_the_load():
    ds = trace.load("a_perfnuma_2x2_p2t2_r1")
    assert ds.perf_total_gb_per_s.values.tolist() == [0.263]
    assert ds.perf_tasks.values.tolist() == [4]
    assert ds.perf_converged_s.values.tolist() == [0.7]
    perturbed = trace.load("a_perfnuma_perturb_2x2_p2t2_r1").numa.table("progress")
    flags = perturbed.perf_flag_s.values[perturbed.perf_flag.values > 0]
    assert {18.1, 23.1, 38.2, 39.1} <= set(np.round(flags, 1).tolist())


def test_huge_pages_count_in_base_pages():
    ds = trace.load("c_groups_2x2_thp_r1")
    assert (end(ds, "numa_pte_updates"), end(ds, "numa_huge_pte_updates")) == (49238, 96)


# ------------------------------------------------------------- right values, layout B


def test_layout_b():
    with trace.folder("S1_p4t2_new_r1") as path:
        report = trace.read(path)
    assert (report.layout, report.missing, report.skipped) == ("B", (), ())
    ds = report.dataset()
    assert ds.process_name.values.tolist() == ["wl_p0", "wl_p1", "wl_p2", "wl_p3"]
    assert ds.task_name.values.tolist()[:4] == ["wl_p0/0", "wl_p0/1", "wl_p0/2", "wl_p1/0"]
    third = ds.sel(time=2.005).isel(run=0)
    assert third.numa_pte_updates.item() == 8213
    assert third.pages.sel(region="wl_p3").values.tolist() == [93, 1435, 183, 539]
    assert third.region_process.sel(region="wl_p3").item() == 3
    # t wl_p2 7S 2R 1R, two CPUs a node
    assert third.task_cpu.values.tolist()[6:9] == [7, 2, 1]
    assert third.task_node.values.tolist()[6:9] == [3, 1, 0]
    assert third.task_state.values.tolist()[6:9] == [1, 0, 0]
    assert third.counters.sel(counter="scan_period_sum_ms").item() == 6900
    # work_ns counts from boot: 281019568 - 648
    assert third.counters.sel(counter="work_ns").item() == 281018920
    # C 0.47 0/0/2/0 1/1/0/0 1/0/0/1 0/0/0/0
    assert ds.threads.sel(time_threads=0.47).values.tolist() == [[[0, 0, 2, 0], [1, 1, 0, 0], [1, 0, 0, 1], [0] * 4]]
    assert ds.distance.values[0].tolist() == [10, 21, 21, 21]
    how = runs.provenance(ds)
    assert (how["switches"]["always_place"], how["switches"]["scan_formula"]) == (2, 0)
    assert how["results"]["conv_s"] == 11.23
    assert how["sysctl"]["scan_period_max_ms"] == 60000
    assert (ds.variant.item(), ds.case.item(), ds.thread.item(), ds.seed.item()) == ("new", "p4t2", "S1", 1)
    assert ds.kernel.item().startswith("6.1.192-numalab scan_formula=0")


def test_layout_b_memory_pressure_is_told():
    how = runs.provenance(trace.load("S2_write_base_r1"))
    assert how["hog_left_kb"] == {"0": 5564, "1": 5560, "2": 5552, "3": 5572}
    assert how["machine"]["zones"]["0"]["free"] == 2646
    ds = trace.load("S2_write_base_r1")
    assert ds.free_pages.values.tolist() == [[[2646, 2712, 2626, 1614]]]
    # refused: full nodes and pages that could not be isolated, in all but what fails while tried
    assert end(ds, "migrate_refused") == pytest.approx(how["totals"]["k_mig_fail"], abs=3)


def test_layout_b_threads_that_ended_are_unknown():
    with trace.folder("S2_write_base_r1") as path:
        report = trace.read(path)
    (lack,) = [what for name, what in report.missing if name == "samples.log"]
    assert "some threads had ended" in lack
    ds = report.dataset()
    counts = (ds.task_cpu.values[0] >= 0).sum(axis=1)
    assert ds.sizes["task"] == 9
    assert set(counts.tolist()) == {0, 1, 9}


def test_seeds_and_forks_of_every_mode():
    want = {
        "S0_anon_n16_nb1_trap_r1": 1,  # nlwl cow 16 1 15 1 anon
        "S2_write_base_r2": 2,  # nlwl scan 8 17 300 80 40 2
        "S3_mttcg_lookup_n4_exclusive_r1": 1,  # nlwl shpol 4 16 4 1 lookup
        "S4_hackbench_post_r3": 3,
    }
    assert {name: trace.load(name).seed.item() for name in want} == want


# ------------------------------------------------------------- decisions


KPROBES = {
    "b_wrongnode_bound_2x2_r1": (8291, 8291, 8221, 70),
    "b_wrongnode_bound_2x2_scan4_r1": (8290, 8290, 8225, 65),
    "c_groups_2x2_thp_r1": (191, 54, 31, 13),
    "c_mixed_2x2_r1": (28754, 8020, 7996, 15),
    "c_swap_2x2_k61_r1": (69780, 13035, 9612, 10),
    "c_swap_2x2_mt_r1": (53471, 16631, 11389, 18),
    "c_swap_2x2_r1": (41067, 17801, 11228, 2),
    "c_swap_4x2_p4t2_r1": (29434, 14619, 10101, 126),
    "f_backoff_2x2_r1": (29896, 70, 70, 0),
}


@pytest.mark.parametrize("name", KPROBES)
def test_every_answer_belongs_to_a_fault(name):
    with trace.folder(name) as path:
        got = trace.faults(path)
    faults, answers, moved, failed = KPROBES[name]
    assert (len(got.time), len(got.filter_answer)) == (faults, answers)
    assert ((got.flags & trace.MIGRATED) > 0).sum() == moved
    assert ((got.flags & trace.MIGRATE_FAIL) > 0).sum() == failed
    assert got.lost == 0
    assert (got.filter_fault >= 0).all()
    assert (got.answer >= 0).sum() == answers
    # pages move, or fail to, when the filter said yes and only then
    tried = (got.flags & (trace.MIGRATED | trace.MIGRATE_FAIL)) > 0
    assert (got.answer[tried] == 1).all()
    assert (np.diff(got.time) >= 0).all()


def test_decisions_have_the_runs_zero():
    with trace.folder("c_swap_2x2_r1") as path:
        got = trace.faults(path)
    assert got.time[0] == pytest.approx(10.596061 - 9.554682)
    assert got.names[204] == "wl_p0t0"
    assert got.preferred_node[0] == 1
    assert len(got.scan_time) == 23


def test_lost_events_are_told(unpacked):
    folder = unpacked("c_groups_2x2_thp_r1")
    stats = (folder / "trace_stats.txt").read_text()
    assert "cpu1 overrun: 0 commit overrun: 0 dropped events: 0" in stats
    (folder / "trace_stats.txt").write_text(
        stats.replace(
            "cpu1 overrun: 0 commit overrun: 0 dropped events: 0", "cpu1 overrun: 2 commit overrun: 0 dropped events: 5"
        )
    )
    assert trace.faults(folder).lost == 7
    report = trace.read(folder)
    assert ("trace.txt", "7 events: the kernel's buffers were full") in report.missing
    assert runs.provenance(report.dataset())["trace_lost"] == 7


def test_runs_without_probes_say_so():
    with trace.folder("c_groups_2x2_r1") as path, pytest.raises(ReadError, match="taken without the probes"):
        trace.faults(path)
    with trace.folder("S1_p4t2_new_r1") as path, pytest.raises(ReadError, match="layout B"):
        trace.faults(path)


# ------------------------------------------------------------- folders that are not as they should be


@pytest.fixture
def unpacked(tmp_path):
    """Make a plain folder of a packaged one."""

    def make(name):
        source, target = TRACES / name, tmp_path / name
        target.mkdir()
        shutil.copy(source / "meta.json", target)
        folder = Folder(source)
        for file in folder.names():
            if file not in ("meta.json", "run.nc"):
                (target / file).write_bytes(folder.data(file))
        return target

    return make


@pytest.mark.parametrize("name", ["c_groups_2x2_thp_r1", "S2_write_base_r1"])
def test_plain_gzipped_and_packed_read_alike(unpacked, name):
    folder = unpacked(name)
    first = trace.read(folder).dataset()
    for path in list(folder.glob("*.txt")) + list(folder.glob("*.log")):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert runs.differences(first, trace.read(folder).dataset()) == []
    assert runs.differences(first, trace.load(name)) == []


NEEDED = {
    "c_groups_2x2_thp_r1": ("vmstat.log", "tasks.log", "sched.log", "numa_maps.log", "numastat.log", "trace.txt"),
    "S2_write_base_r1": ("workload.log", "zoneinfo_before.txt", "counters_before.txt", "sysctl.txt"),
}


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in NEEDED.items() for file in files])
def test_a_missing_file_is_reported_and_the_rest_is_read(unpacked, name, file):
    folder = unpacked(name)
    (folder / file).unlink()
    report = trace.read(folder)
    assert file in [missing for missing, _ in report.missing]
    left = report.dataset()
    whole = trace.load(name)
    assert set(left.variables) <= set(whole.variables)
    assert "numa_hint_faults" in left or file == "vmstat.log"
    # what is left is as it was, whichever file the rounds of samples are told from
    same = [name for name in left.data_vars if name not in ("minor_faults", "migrate_refused", "counters")]
    assert runs.differences(left[same].drop_vars("counter", errors="ignore"), whole[same]) == []


def test_without_any_measurement(unpacked):
    folder = unpacked("S2_write_base_r1")
    for path in folder.iterdir():
        if path.name != "meta.json":
            path.unlink()
    with pytest.raises(ReadError, match=r"holds no measurement beside meta\.json: .*samples\.log"):
        trace.read(folder)


@pytest.mark.parametrize(
    "file", ["vmstat.log", "tasks.log", "sched.log", "numa_maps.log", "numastat.log", "trace.txt", "meta.json"]
)
def test_a_file_that_is_cut_off_is_refused(unpacked, file):
    folder = unpacked("c_groups_2x2_thp_r1")
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(ReadError, match=rf"{file}:\d+: .*(cut off|copy the file again)"):
        trace.read(folder)


def test_a_samples_log_that_is_cut_off_is_refused(unpacked):
    folder = unpacked("S2_write_base_r1")
    data = (folder / "samples.log").read_bytes()
    (folder / "samples.log").write_bytes(data[:10000])
    with pytest.raises(ReadError, match=r"samples.log:\d+: .*cut off"):
        trace.read(folder)


def test_a_broken_archive(unpacked, tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    shutil.copy(TRACES / "c_swap_2x2_r1" / "meta.json", folder)
    data = (TRACES / "c_swap_2x2_r1" / ARCHIVE).read_bytes()
    (folder / ARCHIVE).write_bytes(data[:5000])
    with pytest.raises(ReadError, match=r"raw\.tar\.gz: cannot be unpacked"):
        trace.read(folder)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ReadError, match="is no folder"):
        trace.read(tmp_path / "nowhere")
    with pytest.raises(ReadError, match=r"has no meta\.json, .* holds nothing"):
        trace.read(tmp_path)
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(ReadError, match="is of no known layout"):
        trace.read(tmp_path)
    (tmp_path / "meta.json").write_text('{"run": \n')
    with pytest.raises(ReadError, match=r"meta\.json:2: expected JSON"):
        trace.read(tmp_path)


def test_a_meta_of_another_machine(unpacked):
    folder = unpacked("c_groups_2x2_thp_r1")
    meta = json.loads((folder / "meta.json").read_text())
    meta["topology"] |= {"node_cpus": {"0": [0, 1]}, "distance": [[10]]}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ReadError, match=r"names node 1, but the machine has \[0\]"):
        trace.read(folder).dataset()


# ------------------------------------------------------------- the command and the tool


def test_the_command_reads_folders(capsys, tmp_path):
    assert cli.main(["read", str(TRACES / "S1_p4t2_new_r1"), "-o", str(tmp_path / "a.nc")]) == 0
    out = capsys.readouterr().out
    assert "trace folder, layout B" in out
    assert "samples.log: 42 samples" in out
    assert runs.differences(runs.open(tmp_path / "a.nc"), trace.load("S1_p4t2_new_r1")) == []
    assert cli.main(["read", str(TRACES / "S2_write_base_r1"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["format"] == "trace folder, layout B"
    assert {"file": "samples.log", "line": 0, "what": "42 samples"} not in facts["understood"]
    assert facts["missing"][0]["file"] == "samples.log"
    assert cli.main(["show", str(TRACES / "c_swap_2x2_r1" / "run.nc.gz")]) == 0
    assert "swaps by NUMA balancing" in capsys.readouterr().out
    assert cli.main(["read", str(TRACES / "c_swap_2x2_r1"), "--format", "vmstat"]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.fixture(scope="module")
def pack():
    path = Path(__file__).parents[2] / "tools" / "pack_traces.py"
    spec = importlib.util.spec_from_file_location("pack_traces", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_packing_again_gives_the_same_files(pack, unpacked, tmp_path, monkeypatch, capsys):
    folder = unpacked("S2_write_base_r1")
    out = tmp_path / "packed"
    monkeypatch.setattr(sys, "argv", ["pack_traces.py", str(folder), "--to", str(out)])
    assert pack.main() == 0
    assert "1 traces in" in capsys.readouterr().out
    for name in ("meta.json", ARCHIVE):
        assert (out / folder.name / name).read_bytes() == (TRACES / folder.name / name).read_bytes()
    assert runs.equal(runs.open(out / folder.name / "run.nc.gz"), trace.load(folder.name))
    before = (out / folder.name / "run.nc.gz").stat().st_mtime_ns
    assert pack.main() == 0
    assert (out / folder.name / "run.nc.gz").stat().st_mtime_ns == before
    monkeypatch.setattr(sys, "argv", ["pack_traces.py", str(tmp_path / "nothing"), "--to", str(out)])
    assert pack.main() == 2
