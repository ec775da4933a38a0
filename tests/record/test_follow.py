"""Whom a recording follows: all, trees of processes, cgroups."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numalab.record import Cgroup, Everything, RecordError, Tree
from tests.record.fake import database, put


def test_everything_but_the_recorder(tmp_path):
    fake = database(tmp_path)
    fake.task(os.getpid(), name="numalab")
    assert Everything().pids(tmp_path) == [2, 100, 200, 300]


def test_a_tree_is_a_process_and_its_descendants(tmp_path):
    fake = database(tmp_path)
    tree = Tree([100])
    assert tree.pids(tmp_path) == [100, 200]
    # a grandchild with a lower number than its parent, both new at once
    fake.task(150, ppid=400)
    fake.task(400, ppid=200)
    fake.task(500, ppid=300)
    assert tree.pids(tmp_path) == [100, 150, 200, 400]
    # whose parent has ended belongs to init, and to the tree all the same
    fake.end(200)
    fake.task(400, ppid=1)
    assert tree.pids(tmp_path) == [100, 150, 400]
    for pid in (100, 150, 400):
        fake.end(pid)
    assert tree.pids(tmp_path) is None


def test_a_tree_of_two(tmp_path):
    database(tmp_path)
    assert Tree([200, 300]).pids(tmp_path) == [200, 300]


def test_what_is_followed_is_said():
    assert Tree([7, 5]).what == "process 5, 7 and descendants"
    assert Tree.of_command(["perf", "bench"]).what == "perf bench"


def test_cgroups_have_those_below_them(tmp_path):
    base = tmp_path / "sys/fs/cgroup/db.slice"
    put(base / "cgroup.procs", "100\n")
    put(base / "shard/cgroup.procs", "300\n0\n200\n")
    # threaded: the kernel refuses to list processes there; here it is a folder without the file
    put(base / "threads/cgroup.threads", "101\n")
    for name in ("db.slice", "/sys/fs/cgroup/db.slice", str(base)):
        assert Cgroup(name, tmp_path).pids(tmp_path) == [100, 200, 300]
    group = Cgroup("db.slice", tmp_path)
    put(base / "cgroup.procs", "")
    assert group.pids(tmp_path) == [200, 300]
    put(base / "shard/cgroup.procs", "0\n")
    assert group.pids(tmp_path) is None
    shutil.rmtree(base)
    assert group.pids(tmp_path) is None
    with pytest.raises(RecordError, match=r"^db\.slice: expected a cgroup, a folder below .*/sys/fs/cgroup with"):
        Cgroup("db.slice", tmp_path)


def test_real_descendants():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.readline() == "1\n"
        found = Tree([parent.pid]).pids(Path("/"))
        assert len(found) == 2
        assert parent.pid in found
        parent.communicate("\n")
