"""What a twin is made of: machine, kernel, processes and memory of a recording, derived by hand."""

import math

import pytest

from numalab.kernel import Kernel
from numalab.twin import Twin, TwinError
from numalab.twin._evidence import evidence
from numalab.twin._machine import kernel_of, machine_of
from numalab.twin._patterns import PATTERNS
from numalab.twin._regions import policy_of, spread
from numalab.twin._workload import workload_of
from tests.twin.small import NAMES, recording, simulated


def test_the_tasks_that_work():
    found = evidence(recording(), "r")
    assert [process.pid for process in found.processes] == [100, 200]  # 300 ran 2 ms in 10 s
    db, worker = (process.tasks for process in found.processes)
    assert [task.tid for task in db] == [100, 101]
    # 100 ran 10 of 10 s; 101 5 of the 5 s after its first look; the worker 5 of 10 s
    assert [task.share for task in (*db, *worker)] == [1.0, 1.0, 0.5]
    # seen at 5 s, it had run half a second, and cannot have begun later than 4.5 s
    assert [task.start_s for task in (*db, *worker)] == [0.0, 4.5, 0.0]
    assert [task.node for task in (*db, *worker)] == [0, 2, 2]
    assert all(math.isinf(task.end_s) for task in (*db, *worker))
    assert db[0].allowed == ((0.0, {0, 2}), (5.0, {2}))
    assert db[1].allowed == ((5.0, {0, 2}),)
    assert [process.small for process in found.processes] == [(2, 3), (0, 1)]
    assert db[0].ran_ms == 1000.0
    assert found.assumed == ["left out: 1 task(s) that ran less than 2% of their time"]


def test_memory_is_taken_when_it_is_there_as_a_whole():
    found = evidence(recording(), "r")
    db, worker = (process.memory for process in found.processes)
    assert [one.name for one in db] == ["/usr/bin/db", "", "/dev/shm/cache"]
    assert (db[1].start, db[1].pages, db[1].at_s, db[1].from_s) == (0x7F0000000000, {0: 200, 2: 400}, 5.0, 0.0)
    # half of the heap was there at 0 s, so it is touched from then on
    assert (worker[0].pages, worker[0].at_s, worker[0].from_s) == ({2: 1024}, 5.0, 0.0)
    assert [process.private for process in found.processes] == [0.6, 0.6]


def test_the_machine():
    found = evidence(recording(), "r")
    machine, notes = machine_of(found, workload_of(found).needed)
    assert [(node.id, node.cpus, node.memory_mb) for node in machine.nodes] == [(0, 2, 100.0), (2, 2, 50.0)]
    assert machine.distance == ((10, 21), (21, 10))
    # in use by others: node 0 25600 - 20000 free - 712 (200 of the database, 512 of the cache), node 2
    # 12800 - 10000 - 1424 (400 and the worker's 1024)
    assert [node.reserved_mb * 256 for node in machine.nodes] == [4888, 1376]
    assert notes == ["every CPU is taken for a core with nothing shared: hardware threads and caches are not recorded"]


def test_a_machine_that_tells_less():
    found = evidence(recording(drop=("free_pages", "total_pages", "distance", "node2")), "r")
    machine, notes = machine_of(found, {0: 712, 2: 1424})
    # twice the memory of all processes on each node, all of it free
    assert [(node.memory_mb * 256, node.reserved_mb) for node in machine.nodes] == [(4272, 0.0), (4272, 0.0)]
    assert machine.distance == ((10, 20), (20, 10))
    assert [note.partition(":")[0] for note in notes[1:]] == ["no distances recorded", "sizes of nodes not recorded"]


def test_the_kernel():
    kernel, parameters, notes = kernel_of(evidence(recording(), "r"))
    assert kernel == Kernel("6.12")
    assert parameters == {"scan_size_mb": 64}  # all other settings are the kernel's own
    assert notes == []
    _, _, notes = kernel_of(evidence(recording(release="6.7.1"), "r"))
    assert notes == ["kernel 6.7.1: taken as 6.5, the nearest release that is not newer"]
    off = recording(sysctl={"numa_balancing": 0})
    kernel, parameters, notes = kernel_of(evidence(off, "r"))
    assert parameters == {"numa_balancing": 0}
    assert any(note.startswith("settings not recorded (scan_delay_ms, ") for note in notes)
    with pytest.raises(TwinError, match=r"^r: expected a kernel from 3\.14 on, got '2\.6\.32'$"):
        kernel_of(evidence(recording(release="2.6.32"), "r"))


def test_the_workload():
    inferred = workload_of(evidence(recording(), "r"))
    made = inferred.workload
    assert [(one.name, one.threads, one.demand) for one in made.processes] == [
        ("db-100", 2, 1000),
        ("worker-200", 1, 500),
    ]
    regions = {one.name: one for one in made.regions}
    # the program's file and the mapping of 8 pages are left out; the cache is one region of both
    assert list(regions) == [
        "db-100.7f0000000000.anon",
        "db-100.7f1000000000.dev_shm_cache",
        "worker-200.5600000.heap",
    ]
    anon, cache, heap = regions.values()
    assert (anon.size_mb * 256, anon.kind, anon.scope, anon.policy) == (600, "private", "process", "default")
    # a third on node 0, evenly mixed: 2 1 2 2 1 2 ...
    assert len(anon.first_touch) == 600
    assert anon.first_touch.count(0) == 200
    assert anon.first_touch[:6] == (2, 0, 2, 2, 0, 2)
    assert (cache.size_mb * 256, cache.kind, cache.scope, cache.policy) == (512, "shmem", "all", "explicit")
    assert cache.processes == ("db-100", "worker-200")
    assert cache.first_touch == (0,)
    assert (heap.size_mb * 256, heap.policy, heap.first_touch) == (1024, "mof", (2,))
    assert inferred.needed == {0: 712, 2: 1424}
    assert inferred.regions == (
        "db-100 7f0000000000",
        "db-100 7f1000000000 /dev/shm/cache",
        "worker-200 5600000 heap",
    )


def test_each_page_is_visited_as_often_as_any_other():
    made = workload_of(evidence(recording(), "r")).workload
    rates = {(one.region.rpartition(".")[2], one.processes): one.rate for one in made.accesses}
    # 100,000 visits a second spread over 600 + 512 and 1024 + 512 pages
    db, worker = ("db-100",), ("worker-200",)
    assert rates["anon", db] == pytest.approx(100_000 * 600 / 1112)
    assert rates["dev_shm_cache", db] == pytest.approx(100_000 * 512 / 1112)
    assert rates["heap", worker] == pytest.approx(100_000 * 1024 / 1536)
    assert rates["dev_shm_cache", worker] == pytest.approx(100_000 * 512 / 1536)


def test_tasks_start_where_they_were_seen_and_are_bound_as_they_were():
    made = workload_of(evidence(recording(), "r")).workload
    told = [(one.nodes, one.processes[0], one.threads, one.from_ms, one.until_ms) for one in made.bindings]
    assert told == [
        (0, "db-100", (0,), 0.0, 1.0),
        ((2,), "db-100", (0,), 5000.0, None),
        (2, "db-100", (1,), 0.0, 4501.0),
        (2, "worker-200", (0,), 0.0, 1.0),
    ]


def test_threads_with_parts_of_their_own():
    # 60 % of the faults are private, 50 % are by chance with two threads: a fifth is each thread's own
    made = workload_of(evidence(recording(), "r"), PATTERNS[2]).workload
    own, rest = (one for one in made.regions if "anon" in one.name)
    assert (own.name, own.scope) == ("db-100.7f0000000000.anon.own", "thread")
    assert own.size_mb * 256 == pytest.approx(600 * 0.2 / 2)
    assert (rest.scope, rest.size_mb * 256) == ("process", pytest.approx(600 * 0.8))


def test_small_areas_lie_around_the_mappings():
    made = workload_of(evidence(recording(), "r"), small_areas=True).workload
    names = [one.name.removeprefix("db-100.") for one in made.regions if one.processes[0] == "db-100"]
    # two below, a stack of each thread, the mappings, three above
    assert names == [
        *("low000", "low001", "stacks"),
        *("7f0000000000.anon", "7f1000000000.dev_shm_cache"),
        *("high000", "high001", "high002"),
    ]


def test_policies_and_places():
    assert [policy_of(word) for word in ("", "default", "bind:0", "interleave:0-1", "bind=balancing:0")] == [
        *("default", "default"),
        *("explicit", "explicit", "mof"),
    ]
    assert spread({3: 10}, 7) == (3,)
    assert spread({0: 1, 1: 3}, 8) == (1, 0, 1, 1, 1, 0, 1, 1)


@pytest.mark.parametrize(
    ("drop", "words"),
    [
        (("pages",), "no memory of processes by node (/proc/PID/numa_maps); record with"),
        (("task_node",), "no places of tasks (/proc/PID/task/TID/stat); record with"),
        (("numa_hint_faults",), "no counters numa_pte_updates and numa_hint_faults (/proc/vmstat); record with"),
        (("cpu", "cpu_node"), "no nodes with their CPUs (/sys/devices/system/node); record with"),
        (("pages", "task_node"), "no places of tasks (/proc/PID/task/TID/stat), no memory of processes by node"),
    ],
)
def test_too_little(drop, words):
    with pytest.raises(TwinError) as caught:
        Twin.of(recording(drop=drop), "r.nc")
    assert str(caught.value).startswith("r.nc: too little for a twin: it has ")
    assert words in str(caught.value)
    assert "`numalab record -o RUN.nc -- COMMAND`" in str(caught.value)


def test_a_run_of_the_model_has_no_twin():
    ds = simulated(seconds=0.1)
    ds.attrs["source"] = "simulated"
    with pytest.raises(TwinError, match=r"^r: is a run of the model already; expected a recording"):
        Twin.of(ds, "r")


def test_nobody_works():
    ds = recording()
    ds["task_run_ms"][:] = 1.0
    with pytest.raises(TwinError, match=r"^r: has no memory by node of any process that works: nothing to migrate"):
        Twin.of(ds, "r")


def test_one_node_is_not_enough():
    ds = recording()
    ds["cpu_node"][:] = 0
    with pytest.raises(TwinError, match=r"^r: the machine has one node with CPUs; balancing needs two$"):
        Twin.of(ds, "r")


def test_names_of_processes_are_kept():
    assert [process.name for process in evidence(recording(), "r").processes] == list(NAMES.values())[:2]
