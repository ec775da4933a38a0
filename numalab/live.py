"""The mails' programs on this machine: what a thread describes, done for real, with the kernel's counters beside it.

So far the one of the shared_cow thread: an array in a private mapping of a file, as a program's ``.data`` is; forked
readers that sum it over and over and never write it; the passes of each.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import runs
from numalab.readers import vmstat
from numalab.schema import TASK_STATES, VARIABLES

Ints = NDArray[np.int64]

#: Integers of a page of 4 KiB.
PAGE_INTS = 1024
#: Between two looks at counters and readers, s.
EVERY_S = 0.25
#: Linux knows no more processes (PID_MAX_LIMIT on 64 bits); the size keeps sums of the mail's integers exact.
MOST_PROCESSES, MOST_INTS = 4_194_304, 1_000_000_000
#: Integer that the first word of the array holds, as in the mail; the others are 0.
FIRST = 13
#: File systems that decide on memory policies themselves: their mappings are not scanned.
UNSCANNED = ("tmpfs", "ramfs")


class LiveError(ValueError):
    """The program cannot run here as asked; the message says what to change."""


@dataclass
class Live:
    """What the program and the machine did.

    Attributes
    ----------
    ints : int
        Length of the array.
    asked_s : float
        For how long each reader was to read.
    passes : (reader,)
        Passes over the array of each.
    times : (look,) s
        Since the first reader was started.
    seen : (look, reader)
        Passes until then.
    states : (look, reader)
        State of each reader, an index into `numalab.schema.TASK_STATES`; -1: has ended.
    counters : dict
        Counter of /proc/vmstat that has to do with balancing -> its value at each look, whole machine, since boot.
    notes : list of str
        Why the machine may show nothing.
    interrupted : bool
        Ctrl-C ended it early.
    """

    ints: int
    asked_s: float
    passes: Ints
    times: list[float] = field(default_factory=list)
    seen: list[Ints] = field(default_factory=list)
    states: list[Ints] = field(default_factory=list)
    counters: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """How long it took, from the first start to the last end."""
        return self.times[-1]

    @property
    def waiting(self) -> float:
        """Share of looks at readers that found them waiting for a page, disk or lock (state D); NaN without any."""
        states = np.array(self.states)
        alive = int((states >= 0).sum())
        return int((states == TASK_STATES.index("D")).sum()) / alive if alive else float("nan")

    @property
    def grown(self) -> dict[str, int]:
        """Growth of the counters."""
        return {name: values[-1] - values[0] for name, values in self.counters.items()}

    def dataset(self) -> xr.Dataset:
        """Return it as a measured run: counters, and work and state of each reader, along ``time``."""
        readers = np.arange(len(self.passes))
        variables: dict[str, Any] = {name: [values] for name, values in self.counters.items()}
        variables |= {
            "task_work_pages": np.array([self.seen], float) * self.ints / PAGE_INTS,
            "task_state": np.array([self.states], np.int32),
        }
        coords = {
            "run": [0],
            "kernel": ("run", [platform.release()]),
            "time": self.times,
            "task": readers,
            "task_process": ("task", readers),
            "task_name": ("task", [f"reader{i}" for i in readers]),
        }
        params = {
            "command": f"numalab live shared-cow --processes {len(readers)} --seconds {self.asked_s:g}",
            "ints": self.ints,
            "notes": "; ".join(self.notes),
            "interrupted": self.interrupted,
        }
        title = f"{len(readers)} readers of {self.ints:,} ints on {platform.node()}, {platform.release()}"
        return runs.build(variables, coords, title=title, source="measured", params=params)


def shared_cow(
    processes: int,
    seconds: float,
    *,
    ints: int = 1_000_000,
    folder: str | os.PathLike[str] = "/var/tmp",
    proc: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
) -> Live:
    """Run the mail's program: fork readers of one array, and count their passes.

    Parameters
    ----------
    processes : int
    seconds : float
        For how long each reads.
    ints : int
        Length of the array.
    folder : path-like
        Where the array's file is made (deleted at once); mappings of tmpfs are not scanned.
    proc, sysfs : Path
        Where counters and settings are read.

    Returns
    -------
    Live
        Interrupted by Ctrl-C it holds what was done until then. In any case no reader is left.

    Raises
    ------
    LiveError
        An argument out of its range, no fork on this system, or not as many processes as asked.
    OSError
        The file cannot be made in the folder, or /proc/vmstat not be read.
    """
    _check(processes, seconds, ints)
    counts_map = mmap.mmap(-1, 8 * processes)
    counts = np.frombuffer(counts_map, np.int64)
    answer = Live(ints, seconds, np.zeros(processes, np.int64), notes=remarks(Path(folder), proc, sysfs))
    with tempfile.TemporaryFile(dir=folder) as file:
        _write_array(file.fileno(), ints)
        # a private mapping that may be written, as that of .data: copy-on-write
        array = np.frombuffer(mmap.mmap(file.fileno(), 4 * ints, access=mmap.ACCESS_COPY), np.int32)
        pids: list[int] = []
        start = time.monotonic()
        try:
            _look(answer, start, pids, counts, proc)
            _fork_readers(pids, processes, array, counts, seconds)
            _watch(answer, start, pids, counts, proc)
        except KeyboardInterrupt:
            answer.interrupted = True
        finally:
            _end(pids)
    if answer.interrupted:
        _look(answer, start, pids, counts, proc)
    answer.passes = counts.copy()
    return answer


def _check(processes: int, seconds: float, ints: int) -> None:
    if not hasattr(os, "fork"):
        raise LiveError("this system has no fork; run it on Linux")
    for name, value, most in (("processes", processes, MOST_PROCESSES), ("ints", ints, MOST_INTS)):
        if not 1 <= value <= most:
            raise LiveError(f"{name}: expected a whole number from 1 to {most:,}, got {value}")
    if not 0 < seconds < float("inf"):
        raise LiveError(f"seconds: expected a number above 0, got {seconds}")


def _write_array(descriptor: int, ints: int) -> None:
    """Fill the array's file; the kernel leaves dirty pages of files alone, so it goes to disk before it is mapped."""
    with os.fdopen(os.dup(descriptor), "wb") as out:
        out.write(np.array([FIRST], np.int32).tobytes())
        zeros = bytes(4 * PAGE_INTS * 64)
        left = 4 * (ints - 1)
        while left:
            left -= out.write(zeros[:left])
        out.flush()
        os.fsync(descriptor)


# ------------------------------------------------------------------------------------ the readers
@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back, so that it cannot fall between a process and the note of its id."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork_readers(pids: list[int], processes: int, array: NDArray[np.int32], counts: Ints, seconds: float) -> None:
    """Start the readers, a short pause after every sixteenth, as the mail's program does."""
    parent = os.getpid()
    for i in range(processes):
        with _no_interrupts():
            try:
                pid = _fork()
            except OSError as error:
                problem = f"{error.strerror.lower() if error.strerror else error}; give fewer processes"
                raise LiveError(f"only {i} of {processes} processes could be started: {problem}") from error
            if pid == 0:
                _read(parent, array, counts, i, seconds)
            pids.append(pid)
        if i % 16 == 0:
            time.sleep(2e-6)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of locks that other threads may hold; a reader takes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _read(parent: int, array: NDArray[np.int32], counts: Ints, i: int, seconds: float) -> None:
    """Sum the array until time is up or nobody waits for the answer any more; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        end = time.monotonic() + seconds
        while time.monotonic() < end and os.getppid() == parent:
            if int(array.sum()) != FIRST:
                break
            counts[i] += 1
        else:
            code = 0
    finally:
        # nothing of the parent's is flushed or cleaned up twice
        os._exit(code)


def _watch(answer: Live, start: float, pids: list[int], counts: Ints, proc: Path) -> None:
    """Look at counters and readers until all have ended."""
    failed = 0
    while any(pids):
        time.sleep(EVERY_S)
        _look(answer, start, pids, counts, proc)
        for i, pid in enumerate(pids):
            with _no_interrupts():
                done, status = os.waitpid(pid, os.WNOHANG) if pid else (0, 0)
                if done:
                    pids[i] = 0
                    failed += status != 0
    _look(answer, start, pids, counts, proc)
    if failed:
        raise LiveError(f"{failed} of {len(pids)} readers were ended by something else, or read a wrong sum")


def _end(pids: list[int]) -> None:
    """End the readers that are left (0: has ended), and wait for them, so that none stays as a zombie."""
    with _no_interrupts():
        for pid in filter(None, pids):
            os.kill(pid, signal.SIGKILL)
        for i, pid in enumerate(pids):
            if pid:
                os.waitpid(pid, 0)
            pids[i] = 0


# ------------------------------------------------------------------------------------ the machine
def _look(answer: Live, start: float, pids: list[int], counts: Ints, proc: Path) -> None:
    """Take the counters, and state and passes of each reader."""
    (sample,) = vmstat.parse((proc / "vmstat").read_text(), str(proc / "vmstat")).samples
    for name, value in sample.values.items():
        if name in VARIABLES:
            answer.counters.setdefault(name, []).append(value)
    states = np.full(len(counts), -1, np.int64)
    states[: len(pids)] = [_state(proc, pid) for pid in pids]
    answer.times.append(time.monotonic() - start)
    answer.seen.append(counts.copy())
    answer.states.append(states)


def _state(proc: Path, pid: int) -> int:
    """Return the state of a process; -1 if it has ended."""
    if not pid:
        return -1
    try:
        # the name, in brackets, may hold anything
        letter = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return -1
    return -1 if letter == "Z" else TASK_STATES.find(letter)


def remarks(folder: Path, proc: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> list[str]:
    """Say why balancing may do nothing here, one sentence each; nothing if it is on."""
    found = []
    nodes = len(list((sysfs / "devices/system/node").glob("node[0-9]*")))
    if nodes < 2:
        found.append("this machine has one NUMA node, so nothing can be migrated between nodes")
    setting = proc / "sys/kernel/numa_balancing"
    value = setting.read_text().strip() if setting.exists() else None
    if value is None:
        found.append(f"this kernel has no NUMA balancing ({setting} is missing)")
    elif value == "0":
        found.append("NUMA balancing is off; as root: sysctl kernel.numa_balancing=1")
    kind = _file_system(folder, proc)
    if kind in UNSCANNED:
        found.append(f"{folder} is {kind}, whose mappings are not scanned; give a folder on disk")
    return found


def _file_system(folder: Path, proc: Path) -> str:
    """Return the type of the file system a folder is on, by the longest mount point; empty if unknown."""
    path, best = folder.resolve(), ("", "")
    mounts = proc / "mounts"
    for line in mounts.read_text().splitlines() if mounts.exists() else []:
        words = line.split()
        # later mounts hide earlier ones at the same place
        if len(words) > 2 and path.is_relative_to(words[1]) and len(words[1]) >= len(best[0]):
            best = words[1], words[2]
    return best[1]
