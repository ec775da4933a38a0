"""One interval as text: what is read of a machine of two nodes, and what is left out, with the reason."""

import errno
import os

import pytest

from numalab.record import Cgroup, Everything, Tree, _machine, _procfs, _tasks
from numalab.record._sample import MOST_PROCESSES, Sampler, Share
from tests.record.fake import Fake, database, put, sched, stat, vmstat


def sampler(root, follow=None, every=1.0):
    return Sampler(root, _machine.look(root), follow or Everything(), every)


def kinds(text):
    """Split an interval at its stamps: (rest of the stamp, lines)."""
    out = []
    for line in text.decode().splitlines():
        if line.startswith("@"):
            out.append((line.partition(" kind=")[2], []))
        else:
            out[-1][1].append(line)
    return out


def of(text, kind):
    return [(stamp, lines) for stamp, lines in kinds(text) if stamp.split()[0] == kind]


def test_an_interval(tmp_path):
    database(tmp_path)
    text, alive = sampler(tmp_path, Tree([100])).interval(1.5)
    assert alive
    assert {line.split(" kind=")[0] for line in text.decode().splitlines() if line[0] == "@"} == {"@ 1.500000"}
    order = list(dict.fromkeys(stamp.split()[0] for stamp, _ in kinds(text)))
    assert order == ["vmstat", "numastat", "meminfo", "tasks", "sched", "numa_maps", "end"]
    # states such as nr_free_pages are left out
    assert of(text, "vmstat")[0][1] == vmstat().splitlines()[1:]
    assert of(text, "numastat")[0][1][:2] == ["node0", "numa_hit 1000"]
    assert of(text, "numastat")[0][1][7] == "node2"
    assert of(text, "meminfo")[0][1][2] == "Node 2 MemTotal:  8192 kB"
    assert of(text, "tasks")[0][1] == [
        "100 100 R 0 10 2 5 db",
        "100 101 S 3 10 2 5 db",
        "200 200 R 0 10 2 5 worker_1",
    ]
    assert [stamp for stamp, _ in of(text, "sched")] == [
        f"sched pid={p} tid={t}" for p, t in ((100, 100), (100, 101), (200, 200))
    ]
    lines = of(text, "sched")[0][1]
    assert lines[0] == "se.sum_exec_runtime                          :             12.5"
    assert lines[1].startswith("mm->numa_scan_seq")
    assert lines[-1] == "numa_faults node=2 task_private=30 task_shared=40 group_private=0 group_shared=0"
    assert len(lines) == 8
    # process 200 is small (100 pages); the heap of 90 pages is small, two huge pages are 1024 of 4 KiB
    [(stamp, lines)] = of(text, "numa_maps")
    # the heap lies below the largest mapping, of huge pages
    assert stamp == "numa_maps pid=100 comm=db below=1 above=0"
    assert [line.split()[0] for line in lines] == ["55d0c0000000", "7f0000000000", "7f1000000000"]


def test_statistics_that_stay_are_named_only(tmp_path):
    fake = database(tmp_path)
    look = sampler(tmp_path, Tree([100]))
    look.interval(0.0)
    fake.task(100, threads=2, statistics=sched(100, threads=2, seq=4))
    text, _ = look.interval(10.0)
    [(stamp, lines)] = of(text, "sched")
    assert stamp == "sched pid=100 tid=100"
    assert lines[1].split() == ["mm->numa_scan_seq", ":", "4"]
    assert of(text, "same") == [("same", ["101 200"])]


def test_tasks_and_processes_come_and_go(tmp_path):
    fake = database(tmp_path)
    look = sampler(tmp_path, Tree([100]))
    look.interval(0.0)
    # a third thread, a second child; thread 101 ends; the worker ends
    fake.task(100, threads=2, cpu=1)
    fake.task(100, 102, threads=2, statistics=sched(102))
    (tmp_path / "proc/100/task/101/stat").write_text("")
    for name in ("stat", "sched"):
        (tmp_path / "proc/100/task/101" / name).unlink()
    (tmp_path / "proc/100/task/101").rmdir()
    fake.end(200)
    fake.task(210, ppid=100, name="worker 2", statistics=sched(210))
    text, alive = look.interval(1.0)
    assert alive
    assert [line.split()[:4] for line in of(text, "tasks")[0][1]] == [
        ["100", "100", "R", "1"],
        ["100", "102", "R", "0"],
        ["210", "210", "R", "0"],
    ]
    fake.end(100)
    fake.end(210)
    text, alive = look.interval(2.0)
    assert not alive
    assert of(text, "tasks") == [("tasks", [])]
    assert of(text, "end")


def test_threads_of_the_kernel_are_left_out(tmp_path):
    database(tmp_path)
    text, _ = sampler(tmp_path).interval(0.0)
    assert [line.split()[0] for line in of(text, "tasks")[0][1]] == ["100", "100", "200", "300"]


def test_a_mapping_that_was_large_stays(tmp_path):
    fake = database(tmp_path)
    look = sampler(tmp_path, Tree([300]))
    look.interval(0.0)
    fake.maps(300, "7f0000000000 default anon=9 N2=9 kernelpagesize_kB=4\n7f2000000000 default anon=9 N2=9\n")
    text, _ = look.interval(100.0)
    assert [line.split()[0] for _, lines in of(text, "numa_maps") for line in lines] == ["7f0000000000"]


def test_the_largest_processes_are_looked_at(tmp_path):
    fake = Fake(tmp_path)
    for i in range(MOST_PROCESSES + 2):
        fake.task(1000 + i, rss=2000 + i, statistics=sched(1000 + i))
        fake.maps(1000 + i, "7f0000000000 default anon=500 N0=500 kernelpagesize_kB=4\n")
    look = sampler(tmp_path)
    text, _ = look.interval(0.0)
    seen = {stamp.split()[1] for stamp, _ in of(text, "numa_maps")}
    assert len(seen) == MOST_PROCESSES
    assert not {"pid=1000", "pid=1001"} & seen
    assert any("32 largest processes" in note for note in look.notes)


# ---------------------------------------------------------------- what is left out


def refused(path):
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_maps_of_others_are_named_once(tmp_path, monkeypatch):
    database(tmp_path)
    monkeypatch.setattr(_tasks, "whole", refused)
    look = sampler(tmp_path, Tree([100, 300]))
    text, _ = look.interval(0.0)
    told = "memory maps of other users' processes are left out: /proc/PID/numa_maps needs root"
    assert of(text, "note") == [("note", [told])]
    assert of(text, "numa_maps") == []
    text, _ = look.interval(100.0)
    assert of(text, "note") == []
    assert look.notes == [told]


def test_a_kernel_without_statistics_says_so(tmp_path):
    fake = database(tmp_path)
    old = sched(300).partition("mm->")[0]
    fake.task(300, name="other", rss=3000, statistics=old)
    look = sampler(tmp_path, Tree([300]))
    text, _ = look.interval(0.0)
    assert of(text, "sched") == []
    told = "this kernel shows no NUMA statistics of tasks in /proc/PID/sched: they are left out"
    assert told in look.notes
    (tmp_path / "proc/300/task/300/sched").unlink()
    look = sampler(tmp_path, Tree([300]))
    text, _ = look.interval(0.0)
    assert len(of(text, "tasks")[0][1]) == 1
    assert told in look.notes


@pytest.mark.parametrize(
    ("balancing", "words"),
    [
        (None, "this kernel has no NUMA balancing"),
        ("0", "NUMA balancing is off; as root: sysctl kernel.numa_balancing=1"),
    ],
)
def test_machines_without_balancing_say_so(tmp_path, balancing, words):
    Fake(tmp_path, nodes=(0,), balancing=balancing)
    notes = _machine.look(tmp_path).notes
    assert notes[0] == "this machine has one NUMA node, so nothing can be migrated between nodes"
    assert notes[1].startswith(words)


def test_a_kernel_without_nodes(tmp_path):
    Fake(tmp_path, nodes=())
    look = sampler(tmp_path)
    assert look.notes[0].startswith("this kernel shows no NUMA nodes")
    text, _ = look.interval(0.0)
    assert [stamp.split()[0] for stamp, _ in kinds(text)][:2] == ["vmstat", "tasks"]


def test_settings_wherever_the_kernel_has_them(tmp_path):
    Fake(tmp_path)
    put(tmp_path / "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    machine = _machine.look(tmp_path)
    assert machine.sysctl == {
        "numa_balancing": "1",
        "numa_balancing_scan_size_mb": "256",
        "transparent_hugepage": "always [madvise] never",
        "zone_reclaim_mode": "0",
    }
    assert machine.notes == []
    (tmp_path / "sys/kernel/debug/sched/numa_balancing/scan_size_mb").unlink()
    assert _machine.look(tmp_path).notes == [
        "settings of the scanner are left out: no /sys/kernel/debug/sched/numa_balancing "
        "(as root: mount -t debugfs none /sys/kernel/debug)"
    ]
    put(tmp_path / "proc/sys/kernel/numa_balancing_scan_size_mb", "128\n")
    assert _machine.look(tmp_path).sysctl["numa_balancing_scan_size_mb"] == "128"


# ---------------------------------------------------------------- cost


def test_work_is_put_off_until_it_fits_its_share():
    share = Share(0.005)
    assert share.due(0.0, 1.0)
    share.used(0.0, 0.012)  # 12 ms at 0.5 %: 2.4 s
    assert [share.due(float(t), 1.0) for t in (1, 2, 3)] == [False, False, True]
    share.used(3.0, 0.005)
    # a look comes a little early
    assert share.due(3.95, 1.0)
    assert (share.looks, share.put_off) == (3, 2)


def test_long_maps_are_put_off_and_named(tmp_path, monkeypatch):
    database(tmp_path)
    look = sampler(tmp_path, Tree([100]))
    cost = {"now": 0.0}
    monkeypatch.setattr("numalab.record._sample.time.thread_time", lambda: cost["now"])
    memory = _tasks.Process.memory

    def slow(process):
        cost["now"] += 0.1
        return memory(process)

    monkeypatch.setattr(_tasks.Process, "memory", slow)
    seen = [len(of(look.interval(float(t))[0], "numa_maps")) for t in range(70)]
    # 0.1 s at 0.15 % of a CPU are 66.7 s
    assert seen == [1, *[0] * 66, 1, 0, 0]
    assert look.notes == ["memory maps were looked at 2 times, not 70: more would have used over 1 % of a CPU"]


def test_files_are_opened_anew_when_no_more_may_be_open(tmp_path, monkeypatch):
    put(tmp_path / "stat", "one\n")
    opened = os.open
    full = OSError(errno.EMFILE, "Too many open files")

    def refuse(*args, **kwargs):
        raise full

    monkeypatch.setattr(os, "open", refuse)
    file = _procfs.File(str(tmp_path / "stat"))
    monkeypatch.setattr(os, "open", opened)
    assert file.read() == b"one\n"
    (tmp_path / "stat").unlink()
    with pytest.raises(_procfs.Gone):
        file.read()


def test_long_files_are_read_whole(tmp_path):
    for length in (1, 1 << 14, (1 << 14) + 1, 3 << 14):
        put(tmp_path / "long", "x" * length)
        file = _procfs.File(str(tmp_path / "long"))
        assert len(file.read()) == length
        file.close()


def test_names_with_blanks_and_brackets(tmp_path):
    fake = Fake(tmp_path)
    fake.task(7, name="a) R (b\nc", cpu=2, statistics=sched(7))
    text, _ = sampler(tmp_path).interval(0.0)
    assert of(text, "tasks")[0][1] == ["7 7 R 2 10 2 5 a)_R_(b_c"]
    put(tmp_path / "proc/7/task/7/stat", stat(7, name="", cpu=2))
    text, _ = sampler(tmp_path).interval(0.0)
    assert of(text, "tasks")[0][1] == ["7 7 R 2 10 2 5 ?"]


def test_numa_part_of_every_grammar():
    new = sched(1).encode()
    want = new[new.index(b"se.sum") : new.index(b"nr_switches")] + new[new.index(b"mm->") :]
    assert _tasks.numa_part(new) == want
    # Linux 3.16, cut off at its end
    head, ran = b"a (1, #threads: 1)\n---\n", b"se.sum_exec_runtime : 2.0\n"
    faults = b"numa_migrations, 4\nnuma_faults_memory, 0, 0, 1, 1, 5"
    assert _tasks.numa_part(head + ran + b"prio : 120\n" + faults) == ran + faults + b"\n"
    assert _tasks.numa_part(head + ran) == b""


def test_cpus_that_tasks_may_use_are_named_when_they_change(tmp_path):
    fake = database(tmp_path)
    status = tmp_path / "proc/100/task/100/status"
    put(status, "Name:\tdb\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0,2\n")
    look = sampler(tmp_path, Tree([100]), every=1e-9)
    assert of(look.interval(0.0)[0], "affinity") == [("affinity", ["100 0-3"])]
    assert of(look.interval(10.0)[0], "affinity") == []
    put(status, "Name:\tdb\nCpus_allowed_list:\t2\n")
    assert of(look.interval(20.0)[0], "affinity") == [("affinity", ["100 2"])]
    # after three looks it is looked at every tenth time only: at the tenth
    put(status, "Name:\tdb\nCpus_allowed_list:\t0-1\n")
    later = [of(look.interval(10.0 * n)[0], "affinity") for n in range(3, 10)]
    assert later == [*[[]] * 6, [("affinity", ["100 0-1"])]]
    fake.end(100)


NUMA_STAT = """anon N0=8192 N2=4096
file N0=0 N2=12288
kernel_stack N0=4096 N2=0
shmem N0=4096 N2=0
anon_thp N0=0 N2=0
workingset_refault_anon N0=0 N2=0
"""
MEMORY_STAT = "anon 12288\npgfault 40\nnuma_pte_updates 300\nnuma_hint_faults 200\nnuma_pages_migrated 10\n"


def test_the_memory_of_a_cgroup(tmp_path):
    database(tmp_path)
    base = tmp_path / "sys/fs/cgroup/db"
    put(base / "cgroup.procs", "100\n")
    put(base / "memory.numa_stat", NUMA_STAT)
    put(base / "memory.stat", MEMORY_STAT)
    look = sampler(tmp_path, Cgroup("db", tmp_path))
    text, _ = look.interval(0.0)
    assert of(text, "cgroup") == [
        ("cgroup", ["anon N0=8192 N2=4096", "file N0=0 N2=12288", "shmem N0=4096 N2=0", "anon_thp N0=0 N2=0"])
    ]
    assert of(text, "cgroup_stat") == [
        ("cgroup_stat", ["pgfault 40", "numa_pte_updates 300", "numa_hint_faults 200", "numa_pages_migrated 10"])
    ]
    assert look.notes == []
    # version 1: pages, and those of the cgroups below in rows of their own
    put(base / "memory.numa_stat", "total=3 N0=2 N2=1\nhierarchical_total=7 N0=5 N2=2\nhierarchical_anon=7 N0=5 N2=2\n")
    text, _ = look.interval(1.0)
    assert of(text, "cgroup") == [("cgroup", ["hierarchical_total=7 N0=5 N2=2", "hierarchical_anon=7 N0=5 N2=2"])]


def test_a_cgroup_without_memory_files_says_so(tmp_path):
    database(tmp_path)
    put(tmp_path / "sys/fs/cgroup/db/cgroup.procs", "100\n")
    look = sampler(tmp_path, Cgroup("db", tmp_path))
    text, _ = look.interval(0.0)
    assert of(text, "cgroup") == of(text, "cgroup_stat") == []
    assert look.notes == [
        f"the cgroup has no {name}: it has no memory controller, or is gone"
        for name in ("memory.numa_stat", "memory.stat")
    ]


def test_only_a_cgroup_has_its_files_read(tmp_path):
    database(tmp_path)
    put(tmp_path / "sys/fs/cgroup/memory.numa_stat", NUMA_STAT)
    text, _ = sampler(tmp_path, Tree([100])).interval(0.0)
    assert of(text, "cgroup") == []
