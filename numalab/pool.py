"""Many jobs, each in one of several processes: results as they are finished, progress, an end at any moment.

`multiprocessing.Pool` waits for ever for a job whose process was killed, as the kernel does when memory runs out;
here every process has a pipe of its own, so that its end is seen.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

Job = TypeVar("Job")
Result = TypeVar("Result")


class JobError(RuntimeError):
    """A job ended with its process, or with an error that cannot be sent from there; says which."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    processes: int | None = None,
    what: str = "case",
    name: Callable[[Job], str] = str,
    progress: bool = False,
) -> Iterator[tuple[Job, Result]]:
    """Call a function with each of some jobs, and give its results as they are finished.

    Ctrl-C, any other exception and leaving the loop end the processes at once. One job, or one process, is done here.

    Parameters
    ----------
    function : callable
        Of a module, or a `functools.partial` of one: it, jobs and results travel between processes.
    jobs : sequence
    processes : int, optional
        Default: one for each processor.
    what : str
        What a job is, in reports and errors.
    name : callable
        Names a job in reports and errors.
    progress : bool
        Report on stderr: a bar on a terminal, elsewhere a line for each job that is finished.

    Yields
    ------
    job, result
        In the order in which they are finished; with one process in the order given.

    Raises
    ------
    Exception
        Whatever the function raised, with a note that names the job.
    MemoryError
        A process was killed from outside, by SIGKILL; names the job.
    JobError
        A process ended otherwise in a job, or the function raised what cannot be pickled.
    """
    count = min(processes or processors(), len(jobs))
    finished = _one_by_one(function, jobs) if count <= 1 else _side_by_side(function, jobs, count)
    with closing(finished):
        for number, answer in _reported(finished, [name(job) for job in jobs], what) if progress else finished:
            if isinstance(answer, _Failure):
                raise answer.noted(f"{what} {name(jobs[number])}")
            if isinstance(answer, _Died):
                raise answer.error(f"{what} {name(jobs[number])}")
            yield jobs[number], answer


def outcomes(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    processes: int,
    what: str = "case",
    name: Callable[[Job], str] = str,
) -> Iterator[tuple[Job, Result | Exception]]:
    """Do as :func:`results`, but go on with a new process where one was killed: the job's outcome is then the error.

    What may be killed is never done here if there may be several processes, not even a single job.
    """
    count = min(processes, len(jobs))
    finished = _one_by_one(function, jobs) if processes == 1 else _side_by_side(function, jobs, count, renew=True)
    with closing(finished):
        for number, answer in finished:
            if isinstance(answer, _Failure):
                raise answer.noted(f"{what} {name(jobs[number])}")
            yield jobs[number], answer.error(f"{what} {name(jobs[number])}") if isinstance(answer, _Died) else answer


def _reported(finished: Iterator[tuple[int, Any]], names: Sequence[str], what: str) -> Iterator[tuple[int, Any]]:
    """Pass results on, and say on stderr how far they are."""
    if sys.stderr.isatty():
        yield from tqdm(finished, total=len(names), unit=what)
        return
    start = time.monotonic()
    _line(f"{what}s to do: {len(names)}")
    for count, (number, answer) in enumerate(finished, 1):
        if not isinstance(answer, _Failure | _Died):
            _line(f"{what} {count} of {len(names)}, {time.monotonic() - start:.0f} s: {names[number]}")
        yield number, answer


def _line(text: str) -> None:
    with suppress(OSError):  # nobody reads it, which is no reason to stop
        tqdm.write(text, file=sys.stderr)


class _Failure:
    """An exception of a job, and where it came from, if that was another process."""

    def __init__(self, error: Exception, told: str = "") -> None:
        self.error, self.told = error, told

    def noted(self, job: str) -> Exception:
        """Return the exception with a note of the job it is from."""
        self.error.add_note(f"in {job}{self.told}")
        return self.error


class _Died:
    """The end of a process within a job."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code

    def error(self, job: str) -> Exception:
        if self.exit_code == -signal.SIGKILL:
            return MemoryError(f"{job}: its process was killed, as when memory runs out")
        how = f"by {signal.Signals(-self.exit_code).name}" if self.exit_code < 0 else f"with exit code {self.exit_code}"
        return JobError(f"{job}: its process ended {how}")


def _one_by_one(function: Callable[[Job], Any], jobs: Sequence[Job]) -> Generator[tuple[int, Any]]:
    for number, job in enumerate(jobs):
        try:
            answer = function(job)
        except Exception as error:
            answer = _Failure(error)
        yield number, answer


def _side_by_side(
    function: Callable[[Job], Any], jobs: Sequence[Job], count: int, *, renew: bool = False
) -> Generator[tuple[int, Any]]:
    waiting = iter(enumerate(jobs))
    workers: dict[Connection, SpawnProcess] = {}
    busy: dict[Connection, int] = {}

    def give(end: Connection) -> None:
        if (more := next(waiting, None)) is not None:
            busy[end] = more[0]
            with suppress(ConnectionError):  # it died meanwhile, which receiving will tell
                end.send(more[1])

    def replaced(end: Connection) -> Connection:
        del workers[end]
        end.close()
        return _start(function, workers)

    try:
        for _ in range(count):
            _start(function, workers)
        # not before all are on their way: a long job is sent only once its process reads
        for end in workers:
            give(end)
        while busy:
            ready = wait(list(busy))
            for end in [end for end in busy if end in ready]:
                number, answer = busy.pop(end), _receive(end, workers[end])
                give(replaced(end) if renew and isinstance(answer, _Died) else end)
                yield number, answer
    finally:
        for end, worker in workers.items():
            if end in busy:
                worker.terminate()
            end.close()  # an idle one ends at that
        for worker in workers.values():
            worker.join()


def _start(function: Callable[[Any], Any], workers: dict[Connection, SpawnProcess]) -> Connection:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    with _interrupts_held():
        worker = context.Process(target=_work, args=(function, theirs), daemon=True)
        worker.start()
        workers[ours] = worker
    theirs.close()
    return ours


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; processes started meanwhile never see it and leave it to this one, which ends them."""
    # started with the first process otherwise, and lets signals through again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive(end: Connection, worker: SpawnProcess) -> Any:
    try:
        return end.recv()
    except (EOFError, ConnectionError):
        worker.join()
        return _Died(worker.exitcode or 0)


def _work(function: Callable[[Any], Any], end: Connection) -> None:
    """Do jobs as they come, until the other end is gone."""
    # tqdm's own lock is a semaphore, which would outlive a process that is ended
    tqdm.set_lock(RLock())
    with suppress(EOFError, ConnectionError):
        while True:
            job = end.recv()
            end.send_bytes(_answer(function, job))


def _answer(function: Callable[[Any], Any], job: Any) -> bytes:
    try:
        return pickle.dumps(function(job), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        told = f", in a process of its own:\n{traceback.format_exc().rstrip()}"
        try:
            content = pickle.dumps(_Failure(error, told))
            pickle.loads(content)
        except Exception:
            content = pickle.dumps(_Failure(JobError(f"{type(error).__name__}: {error}"), told))
        return content
