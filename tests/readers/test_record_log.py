"""The log of the recorder, read back: the values of a made-up machine, and what is refused."""

import re

import pytest

from numalab import runs
from numalab.readers import formats, mixed, record_log
from numalab.readers._recording import read_record
from numalab.readers._text import NoRunError
from numalab.record import Tree, _machine
from numalab.record._loop import Outcome, _Loop
from numalab.record._sample import Sampler
from tests.readers.helpers import golden, refuses
from tests.record.fake import database, put, sched, vmstat


@pytest.fixture
def log(tmp_path):
    """Three looks at 0, 10 and 20 s; from 10 s on more faults, a worker less, memory on node 2; thread 101 stays."""
    fake = database(tmp_path)
    path = tmp_path / "a.log"
    machine = _machine.look(tmp_path)
    follow = Tree([100])
    with open(path, "wb", buffering=0) as file:
        loop = _Loop(file.fileno(), Sampler(tmp_path, machine, follow, 1.0), Outcome(path))
        times = iter((0.0, 10.0, 20.0))
        loop.now = lambda: next(times)
        loop.write_head(machine, _machine.head(machine, follow.what, 1.0, None, []))
        loop.look()
        put(tmp_path / "proc/vmstat", vmstat(faults=180, local=100))
        fake.numastat(2, 1300)
        fake.task(100, threads=2, cpu=2, statistics=sched(100, threads=2, run="500.25", seq=9, faults=(5, 6, 70, 80)))
        fake.maps(100, "7f0000000000 default anon=600 dirty=600 N2=600 kernelpagesize_kB=4\n")
        fake.end(200)
        loop.look()
        loop.look()
    return path.read_text()


def test_the_values_of_a_run(log):
    ds = read_record(log, "a.log").dataset()
    assert ds.attrs["source"] == "measured"
    assert ds.kernel.values.tolist() == ["6.12.0-fake"]
    assert ds.node.values.tolist() == [0, 2]
    assert ds.distance.values.tolist() == [[10, 21], [21, 10]]
    assert ds.cpu_node.values.tolist() == [0, 0, 2, 2]
    assert ds.time.values.tolist() == [0, 10, 20]
    # counters count from the first look
    assert ds.numa_hint_faults.values.tolist() == [[0, 80, 80]]
    assert ds.numa.local_share().item() == 0.5  # 40 of 80
    assert ds.node_counters.sel(node=2, node_counter="numa_hit").values.tolist() == [[0, 300, 300]]
    assert ds.free_pages.values.tolist() == [[[100, 100]] * 3]
    assert ds.total_pages.isel(time=0).values.tolist() == [[1024, 2048]]
    assert ds.task.values.tolist() == [100, 101, 200]
    assert ds.task_name.values.tolist() == ["db", "db", "worker_1"]
    assert ds.task_process.values.tolist() == [100, 100, 200]
    assert ds.task_cpu.values.tolist() == [[[0, 3, 0], [2, 3, -1], [2, 3, -1]]]
    assert ds.task_node.values.tolist() == [[[0, 2, 0], [2, 2, -1], [2, 2, -1]]]
    assert ds.task_state.values.tolist() == [[[0, 1, 0], [0, 1, -1], [0, 1, -1]]]


def test_statistics_that_did_not_change_are_there_at_each_look(log):
    assert log.count("kind=sched") == 4
    ds = read_record(log, "a.log").dataset()
    assert ds.time_sched.values.tolist() == [0, 10, 20]
    assert ds.preferred_nid.values.tolist() == [[[2, -1, 2], [2, -1, -1], [2, -1, -1]]]
    # of process 200: what was there when it ended
    assert ds.scan_seq.sel(process=200).values.tolist() == [[3, 3, 3]]
    own = ds.faults.sel(task=100)
    assert own.sel(node=2, kind="private").values.tolist() == [[30, 70, 70]]
    assert own.sel(node=0, kind="shared").values.tolist() == [[2, 6, 6]]
    assert ds.total_numa_faults.sel(task=100).values.tolist() == [[73, 161, 161]]
    assert ds.task_run_ms.sel(task=100).values.tolist() == [[12.5, 500.25, 500.25]]


def test_memory_by_mapping(log):
    ds = read_record(log, "a.log").dataset()
    assert ds.region.values.tolist() == [
        "db-100 55d0c0000000 /usr/bin/db",
        "db-100 7f0000000000",
        "db-100 7f1000000000",
    ]
    assert ds.region_process.values.tolist() == [100, 100, 100]
    assert ds.pages.isel(run=0, time_memory=0).values.tolist() == [[300, 0], [200, 400], [0, 1024]]
    assert ds.pages.isel(run=0, time_memory=-1).values.tolist() == [[0, 0], [0, 600], [0, 0]]


def test_provenance(log):
    how = runs.provenance(read_record(log, "a.log").dataset())
    assert how["reader"] == "record"
    assert how["stop"] == "killed"
    assert how["machine"] == {
        "cpus": {"0": [0, 1], "2": [2, 3]},
        "distance": [[10, 21], [21, 10]],
        "size_mb": {"0": 4, "2": 8},
    }
    assert how["sysctl"] == {"numa_balancing": 1, "numa_balancing_scan_size_mb": 256, "zone_reclaim_mode": 0}
    assert how["what"] == "process 100 and descendants"


def test_kernels_before_4_19_print_the_kinds_exchanged(log):
    old = log.replace('"release": "6.12.0-fake"', '"release": "4.15.0-213-generic"')
    ds = read_record(old, "a.log").dataset()
    assert ds.faults.sel(task=100, node=2, kind="shared").values.tolist() == [[30, 70, 70]]


def test_it_is_read_as_any_format(log):
    assert mixed.read(log).formats == ["record"]
    assert formats.FORMATS["record"].sniff(log)
    reading = mixed.read(log)[0]
    assert [found.what for found in reading.understood] == [
        "process 100 and descendants on kernel 6.12.0-fake",
        "3 intervals, 0 to 20 s",
        "3 tasks of 2 processes",
        "7 looks at the statistics of a task",
        "3 looks at the memory of a process",
        "the recorder was killed, or still runs",
    ]


def test_any_cut_is_read_or_refused_with_one_line(log):
    """However much of the log there is, whole intervals are read, and nothing else."""
    ends = [match.end() for match in re.finditer(r"(?m)^@ [\d.]+ kind=end", log)]
    for cut in range(0, len(log), 37):
        done = sum(end <= cut for end in ends)
        if done:
            assert record_log.parse(log[:cut]).times == [0.0, 10.0, 20.0][:done]
        else:
            refuses(record_log.parse, log[:cut], 0, "no whole interval")


def test_refusals(log):
    lines = log.split("\n")

    def line_of(words):
        return next(i for i, line in enumerate(lines, 1) if words in line)

    def changed(number, text):
        return "\n".join([*lines[: number - 1], text, *lines[number:]])

    refuses(record_log.parse, log.replace('"version": 1', '"version": 9'), 2, "version 9", "update")
    refuses(record_log.parse, changed(2, "{"), 2, "expected one line of JSON")
    refuses(record_log.parse, changed(2, "[]"), 2, "expected an object of JSON")
    refuses(record_log.parse, "\n".join(lines[2:]), 1, "kind=record")
    task = line_of("100 101 S")
    refuses(record_log.parse, changed(task, "100 101 S"), task, "expected pid, tid, state")
    same = line_of("kind=same") + 1
    refuses(record_log.parse, changed(same, "101 999"), same, "task 999 is named as unchanged")
    back = line_of("@ 20.000000 kind=tasks")
    refuses(record_log.parse, changed(back, "@ 3.000000 kind=tasks"), back, "not earlier than before")
    odd = line_of("@ 10.000000 kind=same")
    refuses(record_log.parse, changed(odd, "@ 10.000000 kind=what"), odd + 1, "expected a line of kind what")
    # the readers of the kinds name the line of the log
    fault = line_of("numa_faults node=2")
    refuses(record_log.parse, changed(fault, "numa_faults node=2 task_pri"), fault, "a whole line of the NUMA part")
    mapping = line_of("N0=300")
    refuses(record_log.parse, changed(mapping, "55d0c0000000 default N0="), mapping, "a number after N0=")


def test_no_counters_no_run():
    text = '@ 0.000000 kind=record\n{"version": 1, "release": "6.1"}\n@ 0.100000 kind=end cpu_ms=1.000\n'
    with pytest.raises(NoRunError, match=r"^a\.log: holds no counter of /proc/vmstat"):
        read_record(text, "a.log").dataset()


def test_a_real_machine_of_two_nodes():
    """Two processes of 32 MB each go to the other node, and their memory follows (6.12 in an emulated machine).

    The program itself printed where its arrays were at the end: of process 219 all 8192 pages on node 1, of 220 on
    node 0; and numa_pte_updates 20607.
    """
    ds = read_record(golden("record", "guest.txt"), "guest.txt").dataset()
    assert ds.kernel.values.tolist() == ["6.12.117+deb12-amd64"]
    assert ds.cpu_node.values.tolist() == [0, 0, 1, 1]
    assert ds.numa_pte_updates.values[0, -1] == 20607
    assert ds.numa_pages_migrated.values[0, -1] == 17909
    assert ds.numa.local_share().item() == pytest.approx(2222 / 20156)
    for process, home, away in ((219, 0, 1), (220, 1, 0)):
        region = ds.region.values.tolist().index(f"python-{process} 7f9905dfd000")
        pages = ds.pages.isel(run=0, region=region)
        assert pages.sel(node=home).values[-2] > 3900
        assert pages.sel(node=away).values[-2:].tolist() == [0, 8192]
        task = ds.sel(task=process).isel(run=0)
        alive = task.task_node.values >= 0
        assert (task.task_node.values[alive][[0, -1]] == [home, away]).all()
        assert task.preferred_nid.values[-1] == away
        # the arrays are private to their processes
        faults = task.faults.isel(time_sched=-1)
        assert faults.sel(kind="shared").sum() == 0
        assert faults.sel(node=away, kind="private") > 4000 > 100 > faults.sel(node=home, kind="private")
    how = runs.provenance(ds)
    assert how["sysctl"]["numa_balancing_scan_delay_ms"] == 500
    assert how["stop"] == "the command has ended"


def test_cpus_that_tasks_may_use(log):
    more = "@ 0.000000 kind=affinity\n100 0-3\n101 1,3\n@ 0.000000 kind=end cpu_ms"
    log = log.replace("@ 0.000000 kind=end cpu_ms", more, 1)
    log = log.replace("@ 20.000000 kind=end", "@ 20.000000 kind=affinity\n100 2-3\n9 0\n@ 20.000000 kind=end", 1)
    ds = read_record(log, "a.log").dataset()
    assert ds.time_affinity.values.tolist() == [0, 20]
    # CPUs 0 and 1 are node 0's, 2 and 3 node 2's; of task 200 nothing is known, and nobody else knows task 9
    assert ds.task_cpus_allowed.values.tolist() == [
        [[[2, 2], [1, 1], [-1, -1]], [[0, 2], [1, 1], [-1, -1]]],
    ]
    refuses(read_record, log.replace("101 1,3", "101 1-,3"), log.splitlines().index("101 1,3") + 1, "list of CPUs")


def test_the_memory_and_counters_of_a_cgroup(log):
    for at, anon, faults in ((0, 8192, 100), (10, 16384, 130)):
        end = f"@ {at}.000000 kind=end"
        more = f"@ {at}.000000 kind=cgroup\nanon N0={anon} N2=4096\nfile N0=0 N2=12288\n"
        more += f"@ {at}.000000 kind=cgroup_stat\npgfault 40\nnuma_hint_faults {faults}\n"
        log = log.replace(end, more + end, 1)
    reading = read_record(log, "a.log")
    assert "2 looks at the memory of the cgroup by node" in [found.what for found in reading.understood]
    ds = reading.dataset()
    assert ds.cgroup_memory.values.tolist() == ["anon", "file"]
    assert ds.cgroup_pages.values.tolist() == [[[[2, 1], [0, 3]], [[4, 1], [0, 3]]]]
    # from the first look; the cgroup was gone at the third
    own = ds.counters.sel(counter="cgroup_numa_hint_faults")
    assert own.values.tolist() == [[0, 30, 30]]
    cut = log.replace("anon N0=8192 N2=4096", "anon N0=8192 N2")
    refuses(read_record, cut, cut.splitlines().index("anon N0=8192 N2") + 1, "N<node>=<number>")


def test_policies_sharers_and_small_areas(log):
    log = log.replace("7f0000000000 default anon=600 dirty=600 N0", "7f0000000000 bind:0 anon=600 mapmax=3 N0", 1)
    ds = read_record(log, "a.log").dataset()
    region = {str(r).rpartition("-100 ")[2].split()[0]: i for i, r in enumerate(ds.region.values)}
    at = region["7f0000000000"]
    # the policy it had last; most processes that ever mapped a page
    assert (ds.region_policy.values[at], ds.region_sharers.values[at]) == ("default", 3)
    # the heap lies below the largest mapping; later nothing does
    assert (ds.process_small_below.sel(process=100), ds.process_small_above.sel(process=100)) == (1, 0)
    assert ds.process_small_below.sel(process=200) == -1


@pytest.mark.parametrize("above", ["Node 0 MemFree:", "Node 2 MemTotal:"])
def test_foreign_lines_are_named(log, above):
    """Also between lines whose readers take other text for a title."""
    lines = log.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(above))
    lines.insert(at, "a line of something else")
    skipped = read_record("\n".join(lines), "x").skipped
    assert [(skip.line, skip.text) for skip in skipped] == [(at + 1, "a line of something else")]


def test_memory_that_some_intervals_lack_is_left_out_and_said(log):
    """The first of three looks is gone."""
    lines = log.split("\n")
    first = next(i for i, line in enumerate(lines) if line.endswith("kind=meminfo"))
    end = next(i for i, line in enumerate(lines) if i > first and line.startswith("@"))
    reading = read_record("\n".join(lines[:first] + lines[end:]), "x")
    assert "memory of nodes was seen 2 times in 3 intervals: left out" in [found.what for found in reading.missing]
    assert "free_pages" not in reading.dataset()
