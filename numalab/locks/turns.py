"""An exclusive lock among tasks that take turns on CPUs: a holder that is stopped holds up everybody.

With a CPU for each task a lock is the closed queue of `numalab.locks.queue`. With fewer, whoever runs the tasks (a
hypervisor, an emulator) knows nothing of the lock. A turn lasts milliseconds, a look-up microseconds. So between two
turns the tasks that can work are in the long run of a closed queue of their own, and only where a turn ends, or a task
finds the lock blocked, does anything change. That is what is simulated here; time between is skipped.

The lock is the writer's side of the kernel's queued rwlock. Who finds it taken joins a first-come queue and spins. The
first of the queue, as soon as it runs, takes the lock, or claims it if it is held: then nobody may overtake. While the
first of the queue is stopped and has not claimed, a task that runs may still take the lock; once it finds it taken, it
stands behind the stopped one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numalab.locks.queue import Lock, solve, stationary

__all__ = ["Work", "Worked", "share_cpus", "take_turns"]


@dataclass(frozen=True)
class Work:
    """Tasks that look something up under an exclusive lock, again and again.

    Attributes
    ----------
    tasks : int
    think_s : float
        Mean time on a CPU from leaving the lock to asking for it again, s.
    section_s : float
        Mean time on a CPU with the lock held, s.
    """

    tasks: int
    think_s: float
    section_s: float

    def __post_init__(self) -> None:
        if self.tasks < 1 or min(self.think_s, self.section_s) <= 0:
            raise ValueError(f"expected at least one task and positive times, got {self}")

    @property
    def held_share(self) -> float:
        """Share of its time a task alone holds the lock."""
        return self.section_s / (self.think_s + self.section_s)


@dataclass(frozen=True)
class Worked:
    """What a run did.

    Attributes
    ----------
    lookups : float
        Look-ups done; a mean where time was skipped.
    contended : float
        Of these, the ones that found the lock taken or claimed.
    wait_s : float
        Time spent waiting for it, on a CPU or stopped, of all tasks, s.
    """

    lookups: float
    contended: float
    wait_s: float


def share_cpus(work: Work, cpus: int, turn_s: float, seconds: float, rng: np.random.Generator) -> Worked:
    """Run tasks on fewer CPUs than tasks: a task that spins keeps its CPU as one that works does.

    A turn is as likely to have any length up to `turn_s`, the tick of the scheduler, at which a task must give way at
    the latest. The task that has been stopped longest comes next.

    Parameters
    ----------
    work : Work
    cpus : int
        With a CPU for each task nothing is drawn: the long run of the closed queue.
    turn_s, seconds : float
        Longest turn and length of the run, s.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        A number of CPUs or a time that is not positive.
    """
    _check(cpus, turn_s, seconds)
    if work.tasks <= cpus:
        found = solve(_lock(work), work.tasks)
        lookups = float(found.throughput[0]) * seconds
        wait_s = float(found.waiting_share[0]) * work.tasks * seconds
        return Worked(lookups, lookups * float(found.contended_share[0]), wait_s)
    return _Host(work, cpus, turn_s, rng).run(seconds)


def take_turns(
    work: Work,
    turn_s: Sequence[float],
    places: Sequence[float],
    seconds: float,
    rng: np.random.Generator,
) -> Worked:
    """Run tasks one at a time, in a ring: one that works keeps its turn, one that spins gives it up at once.

    Parameters
    ----------
    work : Work
    turn_s : sequence of float
        Periods of the clocks that end a turn, s; each with a phase of its own.
    places : sequence of float
        Probabilities that the next visit is one, two, ... places on. Those between are not looked at; from there on
        tasks are visited in order until one can work.
    seconds : float
        Length of the run, s.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        A time that is not positive, or probabilities that do not add up to 1.
    """
    _check(1, min(turn_s), seconds)
    if min(places) < 0 or abs(sum(places) - 1) > 1e-9:
        raise ValueError(f"expected probabilities that add up to 1, got {list(places)}")
    lock, n = _Queue(), work.tasks
    due = [period * rng.random() for period in turn_s]
    runner, now, wait_s = 0, 0.0, 0.0
    steps = np.cumsum(places)
    while True:
        until = min(*due, seconds)
        wait_s += (until - now) * len(lock.waiting)
        now = until
        if now >= seconds:
            return Worked(seconds / (work.think_s + work.section_s), lock.contended, wait_s)
        due[due.index(now)] += turn_s[due.index(now)]
        if rng.random() < work.held_share:
            lock.holder = runner
        runner = (runner + 1 + int(np.searchsorted(steps, rng.random(), side="right"))) % n
        while not _works(lock, runner):
            runner = (runner + 1) % n


def _works(lock: _Queue, task: int) -> bool:
    """Let a task run: whether it can work on. It asks at once, a look-up being short against a turn."""
    works = lock.resume(task)
    while works and lock.blocked:
        works = lock.ask(task)
    return works


def _check(cpus: int, *times: float) -> None:
    if cpus < 1 or min(times) <= 0:
        raise ValueError(f"expected at least one CPU and positive times, got {cpus} and {times}")


def _lock(work: Work) -> Lock:
    return Lock("mcs", work.think_s, work.section_s)


@dataclass
class _Queue:
    """The lock: a holder that is stopped, the waiters, whether the first of them has claimed it."""

    holder: int | None = None
    waiting: deque[int] = field(default_factory=deque)
    claimed: bool = False
    contended: int = 0

    @property
    def blocked(self) -> bool:
        """Whether nobody outside the queue can take it."""
        return self.holder is not None or self.claimed

    def resume(self, task: int) -> bool:
        """Let a task run: a holder leaves the lock, the first waiter takes or claims it. Whether it then works."""
        if task == self.holder:
            self.holder = None
        if self.waiting and self.waiting[0] == task:
            if self.holder is not None:
                self.claimed = True
                return False
            self.waiting.popleft()
            self.claimed = False
            return True
        return task not in self.waiting

    def ask(self, task: int) -> bool:
        """Let a task find it taken."""
        self.contended += 1
        self.waiting.append(task)
        return self.resume(task)


class _Host:
    """Tasks on the CPUs of a host."""

    def __init__(self, work: Work, cpus: int, turn_s: float, rng: np.random.Generator) -> None:
        self.work, self.turn_s, self.rng = work, turn_s, rng
        self.lock = _Queue()
        tasks = rng.permutation(work.tasks).tolist()
        self.running, self.stopped = tasks[:cpus], deque(tasks[cpus:])
        self.ends = [turn_s * rng.random() for _ in self.running]
        self.now = self.lookups = self.contended = self.wait_s = 0.0
        numbers = range(1, cpus + 1)
        self.long_run = solve(_lock(work), list(numbers))
        self.at_lock = [stationary(_lock(work), n) for n in numbers]

    def run(self, seconds: float) -> Worked:
        while self.now < seconds:
            free = self._free()
            end = min(*self.ends, seconds)
            change = self.now + self._until_found_taken(len(free))
            self._pass(min(end, change) - self.now, len(free))
            if change < end:
                self.now = change
                self.lock.ask(self._any(free))
            else:
                self.now = end
                self._switch(free)
        return Worked(self.lookups, self.contended + self.lock.contended, self.wait_s)

    def _free(self) -> list[int]:
        """Let all who run do what takes no time; return those who then work."""
        while True:
            before = self.lock.holder, self.lock.claimed, len(self.lock.waiting)
            free = [task for task in self.running if self.lock.resume(task)]
            if before == (self.lock.holder, self.lock.claimed, len(self.lock.waiting)):
                return free

    def _until_found_taken(self, free: int) -> float:
        """Return the time until one who works must join the queue, s."""
        if not free:
            return np.inf
        if self.lock.blocked:
            return self.rng.exponential(self.work.think_s / free)
        if free > 1 and self.lock.waiting:
            found = self.long_run.throughput[free - 1] * self.long_run.contended_share[free - 1]
            return self.rng.exponential(1 / float(found))
        return np.inf

    def _pass(self, time: float, free: int) -> None:
        self.wait_s += time * len(self.lock.waiting)
        if not free or self.lock.blocked:
            return
        lookups = time * float(self.long_run.throughput[free - 1])
        self.lookups += lookups
        if not self.lock.waiting:
            self.contended += lookups * float(self.long_run.contended_share[free - 1])
            self.wait_s += time * free * float(self.long_run.waiting_share[free - 1])

    def _switch(self, free: list[int]) -> None:
        """End the turn that is due, catching those who work where they are."""
        if free and not self.lock.blocked:
            self._catch(free)
        place = self.ends.index(min(self.ends))
        self.stopped.append(self.running[place])
        self.running[place] = self.stopped.popleft()
        self.ends[place] = self.now + self.turn_s * self.rng.random()

    def _catch(self, free: list[int]) -> None:
        """Put those who work in or outside the lock, as the long run has them."""
        count = int(np.searchsorted(np.cumsum(self.at_lock[len(free) - 1]), self.rng.random()))
        if not count:
            return
        holder, *waiters = self.rng.permutation(free)[:count].tolist()
        self.lock.holder = holder
        if waiters and not self.lock.waiting:
            self.lock.waiting.extend(waiters)
            self.lock.claimed = True

    def _any(self, tasks: list[int]) -> int:
        return tasks[int(self.rng.integers(len(tasks)))]
