"""The recording: intervals, the command, signals, and the log."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from numalab.record import _machine
from numalab.record._follow import Follow, Tree
from numalab.record._procfs import RecordError
from numalab.record._sample import BUDGET, Sampler

_STOP = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass
class Outcome:
    """How a recording went.

    Attributes
    ----------
    log : Path
    seconds : float
    intervals : int
    reason : str
        Why it ended, for people.
    interrupted : bool
        By a signal.
    cpu_share : float
        What the recorder used, of one CPU, from the first interval to the last; NaN of a single one.
    notes : list of str
        What was left out, and why.
    child : int
        Process id of the command while it has not been waited for; 0 without one, or after.
    status : int or None
        Exit code of the command, negative the signal that ended it; None without one, or while it runs.
    """

    log: Path
    seconds: float = 0.0
    intervals: int = 0
    reason: str = ""
    interrupted: bool = False
    cpu_share: float = float("nan")
    notes: list[str] = field(default_factory=list)
    child: int = 0
    status: int | None = None

    def wait(self) -> None:
        """Wait for the command, if it still runs."""
        if self.child:
            _, status = os.waitpid(self.child, 0)
            self.child, self.status = 0, os.waitstatus_to_exitcode(status)


def record(
    log: Path,
    follow: Follow,
    *,
    every: float = 1.0,
    seconds: float | None = None,
    command: Sequence[str] = (),
    budget: float = BUDGET,
    root: Path = Path("/"),
) -> Outcome:
    """Record until time is up, everything followed has ended, or a signal (Ctrl-C) comes.

    Parameters
    ----------
    log : Path
        Is written, over what may be there.
    follow : Follow
        Whom to record; a `Tree` if there is a command.
    every : float
        Seconds between looks.
    seconds : float, optional
        How long; default: until something else ends it.
    command : sequence of str
        Is started after the first look, and followed; its end ends the recording.
    budget : float
        What the recorder may use, of one CPU: statistics and memory maps are looked at less often to keep to it.
    root : Path
        Where /proc and /sys are.

    Returns
    -------
    Outcome
        The command may still run: see `Outcome.wait`.

    Raises
    ------
    RecordError
        The command cannot be started, or what is to be followed is not there.
    OSError
        The log cannot be written.
    """
    if not command and not follow.pids(root):
        nobody = "no process is in it; start one first" if follow.folder else "no such process is running; see ps"
        raise RecordError(f"{follow.what}: {nobody}")
    machine = _machine.look(root)
    waited_for = _STOP | ({signal.SIGCHLD} if command else set())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        loop = _Loop(file, Sampler(root, machine, follow, every, budget), Outcome(log))
        loop.write_head(machine, _machine.head(machine, follow.what, every, seconds, list(command)))
        if command:
            assert isinstance(follow, Tree)
            loop.look()
            follow.add(loop.start(command))
        _more_files()
        loop.run(every, seconds, waited_for)
    finally:
        os.close(file)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return loop.outcome


def _more_files() -> None:
    """Let this process open as many files as it may: two for each task."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Loop:
    """The recording while it runs."""

    def __init__(self, file: int, sampler: Sampler, outcome: Outcome) -> None:
        self._file, self._sampler, self.outcome = file, sampler, outcome
        self._began = time.monotonic()
        self._cpu = time.process_time()

    def now(self) -> float:
        return time.monotonic() - self._began

    def write_head(self, machine: _machine.Machine, head: dict[str, object]) -> None:
        out = f"@ 0.000000 kind=record\n{json.dumps(head, sort_keys=True)}\n"
        if machine.files:
            out += "@ 0.000000 kind=topology\n"
            out += "".join(f"==> {path} <==\n{text}\n" for path, text in machine.files.items())
        self._write(out.encode())

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def look(self) -> bool:
        """Append an interval; False when there is nobody left to follow."""
        at = self.now()
        text, alive = self._sampler.interval(at)
        self._write(text)
        self.outcome.intervals += 1
        self.outcome.seconds = at
        return alive

    def start(self, command: Sequence[str]) -> int:
        """Start the command, with the signals as any program gets them."""
        try:
            pid = os.posix_spawnp(
                command[0], list(command), os.environ, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
            )
        except OSError as error:
            problem = f"{error.strerror.lower() if error.strerror else error}"
            raise RecordError(f"{command[0]}: cannot be started: {problem}; check the command after --") from error
        self.outcome.child = pid
        return pid

    def run(self, every: float, seconds: float | None, waited_for: set[signal.Signals]) -> None:
        """Look until it is over, and once more at the end."""
        outcome, number = self.outcome, 0
        while not outcome.reason:
            alive = self.look()
            if not alive and not outcome.child:
                outcome.reason = "all that was followed has ended"
                break
            # a look that took longer than an interval is not made up for
            number = max(number + 1, int(self.now() / every))
            end = number * every if seconds is None else min(number * every, seconds)
            self._sleep(end, waited_for)
            if not outcome.reason and seconds is not None and self.now() >= seconds:
                outcome.reason = f"{seconds:g} s were over"
        if outcome.seconds < self.now() - every / 100:
            self.look()
        outcome.cpu_share = (time.process_time() - self._cpu) / outcome.seconds if outcome.seconds else float("nan")
        outcome.notes = self._sampler.notes
        self._write(self._ending().encode())

    def _ending(self) -> str:
        stamp = f"@ {self.outcome.seconds:.6f} kind="
        return (
            "".join(f"{stamp}note\n{note}\n" for note in self._sampler.late) + f"{stamp}stop\n{self.outcome.reason}\n"
        )

    def _sleep(self, end: float, waited_for: set[signal.Signals]) -> None:
        """Sleep until then, or until a signal says that it is over."""
        while not self.outcome.reason and (left := end - self.now()) > 0:
            came = signal.sigtimedwait(waited_for, left)
            if came is None:
                return
            if came.si_signo == signal.SIGCHLD:
                self._see_end()
            else:
                self.outcome.interrupted = True
                self.outcome.reason = "interrupted"
                if self.outcome.child and came.si_signo != signal.SIGINT:
                    # Ctrl-C reaches the command by itself
                    os.kill(self.outcome.child, came.si_signo)

    def _see_end(self) -> None:
        pid, status = os.waitpid(self.outcome.child, os.WNOHANG) if self.outcome.child else (0, 0)
        if pid:
            self.outcome.child, self.outcome.status = 0, os.waitstatus_to_exitcode(status)
            self.outcome.reason = "the command has ended"
