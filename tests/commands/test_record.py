"""``numalab record``: what is printed, what is left behind, and the exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from numalab import runs
from numalab.cli import main
from numalab.commands import record as command
from tests.command_line import caller


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return caller(capsys, "record")


def numalab(*args, **options):
    return subprocess.Popen([sys.executable, "-m", "numalab", *map(str, args)], **options)


def test_a_command_is_recorded(cli, tmp_path):
    code, out, err = cli("-o", "runs/a.nc", "--every", "100ms", "--", "sh", "-c", "sleep 0.5; exit 4")
    assert code == 0
    assert err.splitlines() == [
        "recording sh -c sleep 0.5; exit 4, every 0.1 s; until the command ends or until Ctrl-C",
        "saved runs/a.nc; look at it with numalab show runs/a.nc",
    ]
    lines = out.splitlines()
    # before it starts, at 0, 0.1 ... 0.5 s, and at its end; fewer on a machine that has other things to do
    assert re.fullmatch(r"[4-8] looks in \d+\.\d s; the command has ended", lines[0])
    assert lines[1] == "2 tasks of 2 processes"
    assert "the command ended with exit code 4" in lines
    assert os.listdir("runs") == ["a.nc"]
    ds = runs.open("runs/a.nc")
    assert ds.attrs["source"] == "measured"
    assert set(ds.task_name.values) == {"sh", "sleep"}
    for words in (["show", "runs/a.nc"], ["plot", "runs/a.nc", "nodes", "--text"]):
        assert main(words) == 0


def test_both_cpu_numbers_are_named(cli):
    _, out, _ = cli("-o", "a.nc", "--every", "200ms", "--for", "1.2s", "--cpu", "3")
    said = next(line for line in out.replace("\n      ", " ").splitlines() if line.startswith("the recorder used"))
    assert re.fullmatch(
        r"the recorder used \d+\.\d\d % of one CPU, all its work together; limit \(--cpu\) 3 %: statistics and memory "
        r"maps wait for it, other looks do not",
        said,
    )


def test_live_programs_run_under_it(cli, tmp_path):
    program = [sys.executable, "-m", "numalab", "live", "shared-cow"]
    how = ["--processes", "2", "--seconds", "0.5", "--ints", "10000", "--folder", str(tmp_path), "--json"]
    code, out, _ = cli("-o", "a.nc", "--every", "100ms", "--json", "--", *program, *how)
    assert code == 0
    facts = json.loads(out)
    assert (facts["reason"], facts["command_status"], facts["log"]) == ("the command has ended", 0, None)
    ds = runs.open("a.nc")
    # the program and its two readers, and what else it started
    assert ds.sizes["process"] >= 3
    # a reader works all the time
    assert np.nanmax(ds.task_run_ms.values) > 200


def test_everything_for_a_time_and_its_log(cli):
    code, out, err = cli("-o", "a.nc", "--every", "0.1", "--for", "300ms", "--keep-log")
    assert code == 0
    assert err.startswith("recording all processes, every 0.1 s; for 0.3 s or until Ctrl-C\n")
    assert "0.3 s were over" in out.splitlines()[0]
    assert sorted(os.listdir()) == ["a.nc", "a.record.log"]
    assert main(["read", "a.record.log", "-o", "b.nc"]) == 0
    a, b = runs.open("a.nc"), runs.open("b.nc")
    assert runs.differences(a, b) == []


def started(tmp_path, *args, **options):
    """Start a recording of this process, and wait for its third interval."""
    program = numalab("record", "-o", "a.nc", "--every", "100ms", *args, cwd=tmp_path, **options)
    log = tmp_path / "a.record.log"
    for _ in range(300):
        if log.exists() and log.read_text().count("kind=end") >= 3:
            return program
        time.sleep(0.05)
    program.kill()
    raise AssertionError("no intervals within 15 s")


@pytest.mark.parametrize(("args", "code"), [([], 0), (["--for", "1m"], 130)])
def test_ctrl_c_saves(tmp_path, args, code):
    with started(tmp_path, "--pid", os.getpid(), *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    assert program.returncode == code
    assert b"; interrupted" in out.splitlines()[0]
    assert (b"what was recorded until then is in a.nc" in err) == bool(code)
    assert os.listdir(tmp_path) == ["a.nc"]
    assert runs.open(tmp_path / "a.nc").sizes["time"] >= 4


def test_a_killed_recording_is_recovered(cli, tmp_path):
    with started(tmp_path, "--pid", os.getpid()) as program:
        program.kill()
    assert os.listdir(tmp_path) == ["a.record.log"]
    code, _, err = cli("-o", "a.nc", "--for", "1s")
    assert (code, err) == (
        2,
        "numalab: a.record.log: exists; numalab record --recover a.record.log -o a.nc makes a run of it, "
        "--force writes over it\n",
    )
    # what the kernel was still writing when the machine went down
    with open("a.record.log", "a") as log:
        log.write("@ 99.000000 kind=vmstat\nnuma_hi")
    code, out, err = cli("--recover", "a.record.log", "-o", "a.nc")
    assert (code, err) == (0, "saved a.nc; look at it with numalab show a.nc\n")
    lines = out.splitlines()
    assert lines[0].startswith(f"process {os.getpid()} and descendants on kernel")
    assert "the recorder was killed, or still runs" in lines
    assert lines[-1].endswith("after the last whole interval: the recorder was killed while it wrote")
    assert runs.open("a.nc").sizes["time"] >= 3
    assert os.path.exists("a.record.log")


def test_numpy_is_not_loaded_while_it_looks(tmp_path):
    code = """
import sys
from numalab.commands import record
import numalab.cli
def make(log, out):
    print(sorted({"numpy", "xarray", "pandas", "h5netcdf"} & set(sys.modules)))
    raise SystemExit
record._make_run = make
numalab.cli.main(["record", "-o", sys.argv[1], "--every", "100ms", "--for", "200ms"])
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.nc")], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "a.txt"], "a.txt: expected a name ending in .nc or .nc.gz"),
        (["-o", "there.nc"], "there.nc: exists; overwrite it with --force"),
        (["-o", "folder.nc"], "folder.nc: is no regular file"),
        (["-o", "there.nc/a.nc"], "there.nc/a.nc: cannot be written"),
        (["-o", "a.nc", "--pid", "1", "--", "true"], "expected one of --pid, --cgroup and a command"),
        (["-o", "a.nc", "--", "no-such-program"], "no-such-program: no such program"),
        (["-o", "a.nc", "--cgroup", "no/such"], "no/such: expected a cgroup"),
        (["-o", "a.nc", "--pid", "4194305"], "process 4194305 and descendants: no such process is running"),
        (["-o", "a.nc", "--recover", "no.log"], "no.log: No such file or directory"),
        (["-o", "a.nc", "--recover", "there.nc", "--for", "1s"], "--recover makes a run of a log that is there"),
        (["-o", "a.nc", "--every", "1ms"], "expected at least 50ms"),
        (["-o", "a.nc", "--for", "1d"], "expected a time such as 500ms, 1s, 2m or 1h, got '1d'"),
        (["-o", "a.nc", "--for", "s"], "expected seconds above 0"),
        ([], "the following arguments are required: -o/--out"),
    ],
)
def test_refusals(cli, tmp_path, args, words):
    (tmp_path / "there.nc").write_text("x")
    (tmp_path / "folder.nc").mkdir()
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(os.listdir()) == ["folder.nc", "there.nc"]


def test_elsewhere_it_says_so(cli, monkeypatch):
    monkeypatch.setattr(command, "Path", lambda path: SimpleNamespace(is_dir=lambda: False, name=path, parent=None))
    monkeypatch.setattr(command, "_check_free", lambda *args: None)
    monkeypatch.setattr(command, "log_of", lambda out: out)
    code, _, err = cli("-o", "a.nc")
    assert (code, err) == (2, "numalab: this system has no /proc as Linux has it; record on Linux\n")
