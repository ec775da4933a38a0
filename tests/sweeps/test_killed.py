"""SIGKILL at random moments, to the main process or to workers: the next call ends with the identical store."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import psutil

from numalab import sweeps
from numalab.sweeps.store import Store
from tests.sweeps.small import MACHINE, WORKLOAD, files, sweep

#: 2 kernels x 24 scan sizes = 48 runs in 24 batches.
SWEEP = {
    "seconds": 1,
    "seeds": 1,
    "grid": {"kernel": ["3.16", "6.1"], "scan_size_mb": [*range(8, 200, 8)]},
    "batch": 2,
    "keep": {"numa_hint_faults": 0.5},
}
MAIN = f"""
import sys
from numalab import runs
runs.revision = runs._build.revision = lambda: "test"
from numalab import sweeps
if __name__ == "__main__":
    sweeps.sweep({MACHINE}, {WORKLOAD}, "6.1", store=sys.argv[1], workers=2, **{SWEEP})
"""


class Killed(BaseException):
    """Stands for the end of the process where a real one cannot be timed."""


def start(folder, store):
    script = folder / "main.py"
    script.write_text(MAIN)
    return subprocess.Popen([sys.executable, str(script), str(store)], stderr=subprocess.PIPE)


def workers(process):
    """The processes that simulate, once there are any."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def done(store):
    return sum(path.name.isdecimal() for path in (store / "status").glob("*")) if store.exists() else 0


def until(condition):
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def test_killed_anywhere_it_ends_the_same(tmp_path):
    chance, store = random.Random(7), tmp_path / "x.zarr"
    found = []
    for victim in ("main", "worker then main"):
        process = start(tmp_path, store)
        goal = done(store) + chance.randint(1, 4)
        until(lambda goal=goal: done(store) >= goal)
        time.sleep(chance.uniform(0, 0.05))
        if victim == "worker then main" and (alive := workers(process)):
            kill(chance.choice(alive).pid)
            time.sleep(chance.uniform(0, 0.2))
        process.kill()
        assert process.wait() == -signal.SIGKILL, process.stderr.read().decode()
        process.stderr.close()
        found.append(done(store))
        # what is called done is complete
        ds = sweeps.open(store)
        finished = ds.isel(run=ds.status.values == 1)
        assert (finished.numa_hint_faults.values >= 0).all()
    # it was in the middle each time, and went on each time
    assert 0 < found[0] < found[1] < 24
    # a worker alone is replaced
    process = start(tmp_path, store)
    until(lambda: done(store) > found[-1])
    for one in chance.sample(workers(process), 1):
        kill(one.pid)
    assert process.wait() == 0, process.stderr.read().decode()
    process.stderr.close()
    assert sweeps.status(sweeps.open(store)).done == 48
    sweeps.sweep(MACHINE, WORKLOAD, "6.1", store=tmp_path / "at_once.zarr", **SWEEP)
    assert files(store) == files(tmp_path / "at_once.zarr")


def test_killed_while_the_store_is_made_nothing_is_there(tmp_path, monkeypatch, wanted):
    """A half-made store has another name, and is made anew."""

    def at_the_last_moment(*what, **how):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", at_the_last_moment)
        with contextlib.suppress(Killed):
            sweep(tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()
    assert (tmp_path / ".x.zarr.new").exists()
    sweep(tmp_path / "x.zarr")
    assert files(tmp_path / "x.zarr") == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_what_a_killed_write_left_is_done_anew(tmp_path, monkeypatch, wanted):
    """Killed after some arrays of a batch were written, within a file: status is not yet written."""

    def interrupted(self, batch, names):
        if batch == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_sync", interrupted)
        with contextlib.suppress(Killed):
            sweep(tmp_path / "x.zarr")
    (tmp_path / "x.zarr" / "local_share" / "2").write_bytes(b"half")
    (tmp_path / "x.zarr" / "local_share" / "2.1234.partial").write_bytes(b"")
    assert sweeps.status(sweeps.open(tmp_path / "x.zarr")).to_do == 8
    sweep(tmp_path / "x.zarr")
    assert files(tmp_path / "x.zarr") == wanted
