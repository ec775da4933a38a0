"""The mail's program on this machine: what is counted, what is read beside it, and that no reader is left behind."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from numalab import live, runs
from numalab.live import LiveError
from numalab.schema import TASK_STATES
from tests.children import children

#: Small arrays make short passes.
INTS = 10_000


@pytest.fixture(autouse=True)
def nobody_is_left():
    others = children()
    yield
    assert children() <= others


def machine(root, *, nodes=2, balancing="1", mounts="/dev/sda / ext4 rw 0 0\n"):
    """Make the files of a machine; the counters grow by nothing."""
    proc, sysfs = root / "proc", root / "sys"
    for node in range(nodes):
        (sysfs / f"devices/system/node/node{node}").mkdir(parents=True)
    (proc / "sys/kernel").mkdir(parents=True)
    if balancing is not None:
        (proc / "sys/kernel/numa_balancing").write_text(f"{balancing}\n")
    (proc / "mounts").write_text(mounts)
    (proc / "vmstat").write_text("nr_free_pages 5\nnuma_pte_updates 7\nnuma_hint_faults 3\n")
    return proc, sysfs


def test_passes_are_counted_and_saved(tmp_path):
    answer = live.shared_cow(3, 0.3, ints=INTS, folder=tmp_path)
    assert answer.passes.shape == (3,)
    assert (answer.passes > 0).all()
    assert not answer.interrupted
    assert 0.3 <= answer.seconds < 30
    assert answer.seen[0].tolist() == [0, 0, 0]
    assert answer.seen[-1].tolist() == answer.passes.tolist()
    assert answer.states[-1].tolist() == [-1, -1, -1]
    assert list(tmp_path.iterdir()) == []  # the array's file has no name any more
    ds = answer.dataset()
    # 10,000 ints of 4 bytes are 9.765625 pages
    assert ds.task_work_pages.values[0, -1] == pytest.approx(answer.passes * 9.765625)
    runs.save(ds, tmp_path / "run.nc")
    assert runs.differences(runs.open(tmp_path / "run.nc"), ds) == []


def test_counters_of_the_machine_are_recorded(tmp_path):
    proc, sysfs = machine(tmp_path)
    answer = live.shared_cow(1, 0.1, ints=INTS, folder=tmp_path, proc=proc, sysfs=sysfs)
    assert answer.grown == {"numa_pte_updates": 0, "numa_hint_faults": 0}
    assert set(answer.counters["numa_pte_updates"]) == {7}
    assert len(answer.counters["numa_pte_updates"]) == len(answer.times) >= 3
    # no process of this machine is in its /proc, so no look found one
    assert np.isnan(answer.waiting)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, []),
        ({"nodes": 1}, ["one NUMA node"]),
        ({"balancing": "0"}, ["sysctl kernel.numa_balancing=1"]),
        ({"balancing": None}, ["no NUMA balancing"]),
        ({"mounts": "/dev/sda / ext4 rw 0 0\nshm {folder} tmpfs rw 0 0\n"}, ["is tmpfs"]),
        ({"mounts": "shm {folder} tmpfs rw 0 0\n/dev/sdb {folder} xfs rw 0 0\n"}, []),
        ({"mounts": "shm {folder}x tmpfs rw 0 0\n/dev/sda / ext4 rw 0 0\n"}, []),
    ],
)
def test_what_keeps_balancing_from_working_is_said(tmp_path, how, words):
    if "mounts" in how:
        how = {**how, "mounts": how["mounts"].format(folder=tmp_path.resolve())}
    found = live.remarks(tmp_path, *machine(tmp_path, **how))
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_waiting_is_the_share_of_looks_in_state_d():
    r, d = TASK_STATES.index("R"), TASK_STATES.index("D")
    # of six looks at living readers two found D
    answer = live.Live(1, 1.0, np.zeros(2), states=[np.array(row) for row in ((r, d), (d, r), (r, r), (-1, -1))])
    assert answer.waiting == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("stat", "state"), [("7 (a) b (c) D 1 7", "D"), ("7 (python) R 1 7", "R"), ("7 (python) Z 1 7", None), ("", None)]
)
def test_states_are_read_behind_any_name(tmp_path, stat, state):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(stat)
    assert live._state(tmp_path, 7) == (-1 if state is None else TASK_STATES.index(state))
    assert live._state(tmp_path, 8) == -1


def test_the_array_lies_in_a_private_mapping_of_a_file_that_may_be_written(tmp_path, monkeypatch):
    """As .data does: copy-on-write. The mapping is looked up in /proc by the size nothing else has."""
    ints = 4096 * 37
    lines = []

    def look(*args):
        lines.extend(line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line)

    monkeypatch.setattr(live, "_look", look)
    monkeypatch.setattr(live, "_watch", lambda *args: None)
    live.shared_cow(1, 0.1, ints=ints, folder=tmp_path)
    (line,) = set(lines)
    begin, end = (int(part, 16) for part in line.split()[0].split("-"))
    assert end - begin == 4 * ints
    assert line.split()[1] == "rw-p"


@pytest.mark.parametrize(
    ("processes", "seconds", "ints", "message"),
    [
        (0, 1, 1, "processes: expected a whole number from 1 to 4,194,304, got 0"),
        (1, 0, 1, "seconds: expected a number above 0, got 0"),
        (1, float("inf"), 1, "seconds: expected a number above 0, got inf"),
        (1, 1, 0, "ints: expected a whole number from 1"),
    ],
)
def test_wrong_arguments(tmp_path, processes, seconds, ints, message):
    with pytest.raises(LiveError, match=message):
        live.shared_cow(processes, seconds, ints=ints, folder=tmp_path)


def test_too_many_processes_leave_none(tmp_path, monkeypatch):
    started, fork = [], os.fork

    def limited():
        if len(started) == 2:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        started.append(pid := fork())
        return pid

    monkeypatch.setattr(live, "_fork", limited)
    message = "only 2 of 5 processes could be started: resource temporarily unavailable; give fewer processes"
    with pytest.raises(LiveError, match=message):
        live.shared_cow(5, 60, ints=INTS, folder=tmp_path)


def test_a_reader_that_is_killed_is_an_error(tmp_path, monkeypatch):
    fork, look = live._fork, live._look

    def remember():
        nonlocal victim
        victim = fork()
        return victim

    def kill(answer, start, pids, *args):
        if any(pids):
            os.kill(victim, signal.SIGKILL)
        look(answer, start, pids, *args)

    victim = 0
    monkeypatch.setattr(live, "_fork", remember)
    monkeypatch.setattr(live, "_look", kill)
    with pytest.raises(LiveError, match="1 of 1 readers were ended by something else"):
        live.shared_cow(1, 60, ints=INTS, folder=tmp_path)


# ------------------------------------------------------------------ endings, from outside
def begin(folder, *more):
    """Start the command in a session of its own, and wait until its readers read."""
    words = ["--processes", "3", "--seconds", "60", "--ints", INTS, "--folder", folder, *more]
    command = [sys.executable, "-m", "numalab", "live", "shared-cow", *map(str, words)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 60
    while len(members(program.pid)) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(members(program.pid)) == 4
    time.sleep(0.3)
    return program


def members(session):
    """Living processes of a session, zombies too."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session:
            found.append(int(stat.parent.name))
    return found


def gone(session):
    end = time.monotonic() + 20
    while members(session) and time.monotonic() < end:
        time.sleep(0.05)
    return not members(session)


@pytest.mark.parametrize("whole_terminal", [True, False])
def test_ctrl_c_ends_all_readers_and_tells_what_was_done(tmp_path, whole_terminal):
    program = begin(tmp_path, "--json", "-o", tmp_path / "run.nc")
    (os.killpg if whole_terminal else os.kill)(program.pid, signal.SIGINT)
    out, _ = program.communicate(timeout=60)
    assert program.returncode == 130
    assert gone(program.pid)
    facts = json.loads(out)
    assert facts["interrupted"]
    assert facts["total"] == sum(facts["passes"]) > 0
    assert facts["took_s"] < 60
    ds = runs.open(tmp_path / "run.nc")
    assert ds.task_work_pages.values[0, -1].sum() == pytest.approx(facts["total"] * INTS / 1024)


def test_readers_end_when_nobody_waits_for_them(tmp_path):
    program = begin(tmp_path)
    program.kill()
    program.communicate(timeout=60)
    assert gone(program.pid)
