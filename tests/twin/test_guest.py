"""Recordings of a real kernel in a guest of two nodes: they are read, drawn, diagnosed, and have twins.

``golden/bench.record.log.gz``: Linux 6.12.117 (Debian) in an emulated machine of 2 nodes x 2 CPUs, 512 MB each,
distance 21; ``numalab record --cpu 100 -- perf bench numa mem -p 2 -t 2 -P 64 -s 30 -0zZ`` as root.
``golden/swap.record.log.gz``: the same machine; ``--cgroup load --for 36s``; two processes that fill 64 MB each on a
node of its own, sum it, are bound to the other's node after 3 s, and sum on until 30 s; the recording began a second
later than they. Paths of libraries were shortened.
"""

import gzip
from pathlib import Path

import pytest

from numalab import runs
from numalab.cli import main
from numalab.readers._recording import read_record
from numalab.twin import Twin
from numalab.twin._evidence import evidence

GOLDEN = Path(__file__).parent / "golden"


def dataset(name):
    path = GOLDEN / f"{name}.record.log.gz"
    return read_record(gzip.decompress(path.read_bytes()).decode(), path.name).dataset()


@pytest.fixture(scope="module")
def bench():
    return dataset("bench")


@pytest.fixture(scope="module")
def swap():
    return dataset("swap")


def grown(ds, *names):
    return [int(ds[name].values[0, -1]) for name in names]


def test_what_was_recorded(bench, swap):
    names = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    # last minus first value of the lines below the 36 and 37 stamps kind=vmstat
    assert grown(bench, *names) == [104835, 100405, 81330, 18549]
    assert grown(swap, *names) == [33116, 33842, 826, 32871]
    assert (bench.sizes["time"], swap.sizes["time"]) == (36, 37)
    assert bench.kernel.values.tolist() == ["6.12.117+deb12-amd64"]
    assert bench.distance.values.tolist() == [[10, 21], [21, 10]]
    assert bench.total_pages.values[0, 0].tolist() == [514360 // 4, 476972 // 4]
    assert bench.numa_group_id.values.max() > 0  # threads that share memory are a group


def test_the_cgroup_counted_itself(swap):
    own = {str(name): swap.counters.sel(counter=name).values[0, -1] for name in swap.counter.values}
    assert own["cgroup_numa_pte_updates"] == 33112
    assert own["cgroup_numa_hint_faults"] == 33839
    assert own["cgroup_numa_pages_migrated"] == 32868
    anon = swap.cgroup_pages.sel(cgroup_memory="anon").values[0]
    assert anon[0].tolist() == [67772416 // 4096, 80855040 // 4096]
    assert anon[-1].tolist() == [0, 0]


def test_the_processes_were_bound_to_the_other_node(swap):
    tasks = {task.tid: task for process in evidence(swap, "swap").processes for task in process.tasks}
    told = {tid: [nodes for _, nodes in task.allowed] for tid, task in tasks.items()}
    assert told == {241: [{0}, {1}], 242: [{1}, {0}]}
    assert [task.allowed[1][0] for task in tasks.values()] == [2.01792, 2.01792]
    assert [round(task.end_s) for task in tasks.values()] == [29, 29]


@pytest.mark.parametrize("name", ["bench", "swap"])
def test_it_is_shown_drawn_and_diagnosed(name, tmp_path, capsys):
    out = tmp_path / "r.nc"
    runs.save(dataset(name), out)
    assert main(["show", str(out)]) == 0
    for kind in ("pages", "nodes", "local"):
        assert main(["plot", str(out), kind, "--text"]) == 0
    assert main(["diagnose", str(out)]) == 0
    assert "looked at:" in capsys.readouterr().out


def test_the_twin_of_the_benchmark(bench):
    twin = Twin.of(bench, "bench", pages_per_s=1e4)
    machine, workload = twin.model.machine, twin.model.workload
    assert [(node.cpus, round(node.memory_mb)) for node in machine.nodes] == [(2, 502), (2, 466)]
    assert twin.model.kernel.name == "6.12.117"
    assert [(one.name, one.threads) for one in workload.processes] == [
        *(("numa-mem-219", 1), ("process_0-220", 2), ("process_1-221", 2))
    ]
    # -P 64 and the 2 MB that perf asks for on top, touched first on node 0 (-0)
    sizes = {one.name: (one.size_mb, one.first_touch) for one in workload.regions if one.name.endswith(".anon")}
    assert sizes == {"process_0-220.7f3b08200000.anon": (66, (0,)), "process_1-221.7f3b08200000.anon": (66, (0,))}
    rows = {row.quantity: row for row in twin.run(4).rows}
    assert rows["numa_pte_updates"].recorded == 104835
    # within a quarter, or in the band; what came late in the recording does not come in the twin
    fits = {name for name, row in rows.items() if row.fits}
    assert {"numa_pte_updates", "numa_hint_faults", "local_share", "numa_pages_migrated", "pages_node_0"} <= fits
    assert "pte_updates_third_2" not in fits
    assert "pte_updates_third_2" in twin.run(4).warning


def test_the_twin_of_two_processes_on_the_wrong_node(swap):
    twin = Twin.of(swap, "swap", pages_per_s=3162)
    assert not any(note.startswith("counters are the machine's") for note in twin.assumed)
    rows = {row.quantity: row for row in twin.run(4).rows}
    # judged by the cgroup's counters
    assert rows["numa_pages_migrated"].recorded == 32868
    assert rows["numa_pages_migrated"].fits
    assert "local_share" not in rows
