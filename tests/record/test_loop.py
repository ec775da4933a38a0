"""The recording itself: the log grows by whole intervals, ends as it should, and survives what may come."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from numalab.readers import record_log
from numalab.readers._recording import read_record
from numalab.record import Cgroup, Everything, RecordError, Tree, record
from tests.children import children
from tests.record.fake import database


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No child of the test, and the signals as they were."""
    before, others = signal.pthread_sigmask(signal.SIG_BLOCK, ()), children()
    yield
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert children() <= others


def test_for_a_time(tmp_path):
    fake = database(tmp_path)
    log = tmp_path / "a.log"
    outcome = record(log, Tree([100]), every=0.1, seconds=0.35, root=fake.root)
    report = record_log.parse(log.read_text(), str(log))
    assert outcome.reason == report.stop == "0.35 s were over"
    assert not outcome.interrupted
    # at 0, 0.1, 0.2, 0.3 and at the end
    assert outcome.intervals == len(report.times) == 5
    assert report.times == pytest.approx([0, 0.1, 0.2, 0.3, 0.35], abs=0.08)
    head = report.head
    assert (head["version"], head["release"], head["every_s"], head["asked_s"]) == (1, "6.12.0-fake", 0.1, 0.35)
    assert head["what"] == "process 100 and descendants"
    assert report.machine.cpus == {0: [0, 1], 2: [2, 3]}


def test_it_ends_with_those_followed(tmp_path):
    log = tmp_path / "a.log"
    with subprocess.Popen(["sleep", "0.5"]) as program:
        # a zombie until someone waits for it, which here happens while the recorder looks on
        waiting = threading.Thread(target=program.wait)
        waiting.start()
        outcome = record(log, Tree([program.pid]), every=0.1, seconds=20)
        waiting.join()
    assert outcome.reason == "all that was followed has ended"
    assert outcome.seconds < 10
    assert record_log.parse(log.read_text()).stop == outcome.reason


def test_it_ends_when_a_cgroup_is_empty(tmp_path):
    """The group itself stays, as those of systemd may."""
    members = tmp_path / "db" / "cgroup.procs"
    members.parent.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        members.write_text(f"{program.pid}\n")

        def leave():
            program.communicate(b"\n")
            members.write_text("")

        timer = threading.Timer(0.4, leave)
        timer.start()
        outcome = record(tmp_path / "a.log", Cgroup(str(members.parent)), every=0.1, seconds=20)
        timer.join()
    assert outcome.reason == "all that was followed has ended"
    assert 0.3 < outcome.seconds < 10
    with pytest.raises(RecordError, match=r"db: no process is in it; start one first"):
        record(tmp_path / "b.log", Cgroup(str(members.parent)))


def test_nobody_to_follow(tmp_path):
    with subprocess.Popen(["true"]) as program:
        program.wait()
    with pytest.raises(RecordError, match=f"process {program.pid} and descendants: no such process is running; see ps"):
        record(tmp_path / "a.log", Tree([program.pid]))
    assert not (tmp_path / "a.log").exists()


def test_a_command(tmp_path):
    log = tmp_path / "a.log"
    command = [
        sys.executable,
        "-c",
        "import time; x = bytearray(b'x' * 30_000_000); time.sleep(0.6); raise SystemExit(3)",
    ]
    outcome = record(log, Tree.of_command(command), every=0.1, command=command)
    assert (outcome.reason, outcome.status, outcome.child) == ("the command has ended", 3, 0)
    report = record_log.parse(log.read_text(), str(log))
    times = {row.time for row in report.rows}
    # the first look is before it starts, the last after it has ended
    assert report.times[0] not in times
    assert report.times[-1] not in times
    assert len(times) >= 3
    assert len({row.tid for row in report.rows}) == 1
    ds = read_record(log.read_text(), str(log)).dataset()
    # 30 MB are 7324 pages
    assert ds.pages.isel(time_memory=-1).sum() > 7324
    assert ds.task_name.values[0].startswith("python")


def test_a_command_outlives_the_time(tmp_path):
    code = "import sys, time; time.sleep(1.0); sys.exit(5)"
    command = [sys.executable, "-c", code]
    outcome = record(tmp_path / "a.log", Tree.of_command(command), every=0.1, seconds=0.2, command=command)
    assert outcome.reason == "0.2 s were over"
    assert outcome.child > 0
    outcome.wait()
    assert (outcome.status, outcome.child) == (5, 0)


def test_a_command_gets_signals_as_any_program(tmp_path):
    # Python ignores SIGPIPE, and the recorder holds back SIGINT, SIGTERM, SIGHUP and SIGCHLD
    command = ["sh", "-c", f"grep Sig /proc/self/status > {tmp_path}/out"]
    record(tmp_path / "a.log", Tree.of_command(command), every=0.1, command=command)
    masks = dict(re.findall(r"Sig(\w+):\t([0-9a-f]+)", (tmp_path / "out").read_text()))
    assert int(masks["Blk"], 16) == 0
    assert int(masks["Ign"], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_a_command_that_is_none(tmp_path):
    with pytest.raises(RecordError, match="/no/such: cannot be started: no such file or directory"):
        record(tmp_path / "a.log", Tree.of_command(["/no/such"]), command=["/no/such"])


RECORDER = """
import sys
from pathlib import Path
from numalab.record import Everything, Tree, record
outcome = record(Path(sys.argv[1]), Tree([int(sys.argv[2])]), every=0.1)
print(outcome.interrupted, outcome.reason, outcome.intervals, *sorted({"numpy", "xarray"} & set(sys.modules)), sep="|")
"""


def recorder(log):
    """Start a recorder of this process, and wait for its third interval."""
    program = subprocess.Popen([sys.executable, "-c", RECORDER, str(log), str(os.getpid())], stdout=subprocess.PIPE)
    for _ in range(200):
        if log.exists() and log.read_text().count("kind=end") >= 3:
            return program
        time.sleep(0.05)
    program.kill()
    raise AssertionError("no intervals within 10 s")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_after_one_more_look(tmp_path, number):
    log = tmp_path / "a.log"
    with recorder(log) as program:
        program.send_signal(number)
        out, _ = program.communicate(timeout=30)
    interrupted, reason, intervals, *heavy = out.decode().strip().split("|")
    assert (interrupted, reason, program.returncode) == ("True", "interrupted", 0)
    # numpy and xarray were never loaded
    assert heavy == []
    report = record_log.parse(log.read_text(), str(log))
    assert report.stop == "interrupted"
    assert len(report.times) == int(intervals) >= 4


def test_killed_it_loses_the_interval_it_was_in(tmp_path):
    log = tmp_path / "a.log"
    with recorder(log) as program:
        program.kill()
    text = log.read_text()
    whole = record_log.parse(text, str(log))
    assert whole.stop == ""
    assert whole.skipped == []
    # as if it had been killed in the middle of writing the last interval
    last = text.rindex(" kind=vmstat")
    cut = record_log.parse(text[: last + 200], str(log))
    assert cut.times == whole.times[:-1]
    assert {skip.reason for skip in cut.skipped} == {
        "after the last whole interval: the recorder was killed while it wrote"
    }
    assert read_record(text[: last + 200], str(log)).dataset().sizes["time"] == len(whole.times) - 1


def test_processes_come_and_go(tmp_path):
    """Fifty short processes and two hundred threads while every look races with them."""
    code = """
import os, subprocess, sys, threading, time
for i in range(50):
    subprocess.Popen(["true"])
    for _ in range(4):
        threading.Thread(target=time.sleep, args=(0.03,)).start()
    time.sleep(0.01)
"""
    log = tmp_path / "a.log"
    command = [sys.executable, "-c", code]
    outcome = record(log, Tree.of_command(command), every=0.05, command=command)
    assert outcome.status == 0
    reading = read_record(log.read_text(), str(log))
    assert reading.skipped == ()
    ds = reading.dataset()
    assert ds.sizes["task"] > 20
    # all have ended at the end of the recording; some moment saw several threads at once
    assert (ds.task_state.values >= 0).sum(axis=2).max() > 3


def test_itself_uses_little(tmp_path):
    """Five hundred tasks at one second: under 1 % of a CPU, by the recorder's own account and by the kernel's."""
    code = "import threading, time; [threading.Thread(target=time.sleep, args=(9,)).start() for _ in range(499)]"
    with subprocess.Popen([sys.executable, "-c", code]) as program:
        for _ in range(200):
            if len(os.listdir(f"/proc/{program.pid}/task")) == 500:
                break
            time.sleep(0.05)
        before = os.times()
        outcome = record(tmp_path / "a.log", Tree([program.pid]), seconds=5)
        used = os.times().user + os.times().system - before.user - before.system
        program.kill()
    report = record_log.parse((tmp_path / "a.log").read_text())
    assert [len([row for row in report.rows if row.time == t]) for t in report.times] == [500] * 6
    # the first look opens files and knows no costs yet; the rest is what goes on
    later = np.diff(report.cpu_ms) / np.diff(report.times) / 10
    assert later.mean() < 1.0, later
    # the kernel counts in ticks of 10 ms
    assert outcome.cpu_share * outcome.seconds == pytest.approx(used, abs=0.05)


def test_all_processes_of_this_machine(tmp_path):
    log = tmp_path / "a.log"
    record(log, Everything(), every=0.1, seconds=0.3)
    reading = read_record(log.read_text(), str(log))
    ds = reading.dataset()
    nodes = [int(path.name[4:]) for path in Path("/sys/devices/system/node").glob("node[0-9]*")]
    assert ds.node.values.tolist() == sorted(nodes)
    params = json.loads(ds.attrs["numalab_params"])
    assert params["release"] == os.uname().release
    assert params["notes"] == [found.what for found in reading.missing]
    if len(nodes) == 1:
        assert "this machine has one NUMA node, so nothing can be migrated between nodes" in params["notes"]
    assert os.getpid() not in ds.task_process.values
