"""The queue at a lock, event by event: random times, every task by name. Slow, and made differently from `solve`."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numalab.locks.queue import Lock

__all__ = ["Simulated", "simulate"]

#: Look-ups are measured in this many blocks, whose scatter says how exact the means are.
BLOCKS = 20


@dataclass(frozen=True)
class Simulated:
    """What a simulation measured, block by block: (blocks,) each; names and units as in `numalab.locks.Solution`."""

    tasks: int
    throughput: NDArray[np.float64]
    area_share: NDArray[np.float64]
    waiting_share: NDArray[np.float64]
    mean_waiters: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    contended_share: NDArray[np.float64]

    def mean(self, name: str) -> tuple[float, float]:
        """Return the mean of a quantity and its standard error."""
        values: NDArray[np.float64] = getattr(self, name)
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def simulate(lock: Lock, tasks: int, *, lookups: int, seed: int) -> Simulated:
    """Let tasks use a lock, with exponential times, first come first served.

    Parameters
    ----------
    lock : Lock
    tasks : int
    lookups : int
        To measure, at least 10 in each of the 20 blocks; a quarter as many more go before.
    seed : int

    Raises
    ------
    ValueError
        No task, or fewer than 200 look-ups.
    """
    if tasks < 1 or lookups < 10 * BLOCKS:
        raise ValueError(f"expected at least one task and {10 * BLOCKS} look-ups, got {tasks} and {lookups}")
    run = _Run(lock, tasks, np.random.default_rng(seed))
    run.advance(lookups // 4)
    marks = [run.counts()]
    for _ in range(BLOCKS):
        run.advance(lookups // BLOCKS)
        marks.append(run.counts())
    time, done, waited, outside, contended = np.diff(np.array(marks), axis=0).T
    return Simulated(
        tasks=tasks,
        throughput=done / time,
        area_share=1 - outside / (time * tasks),
        waiting_share=waited / (time * tasks),
        mean_waiters=waited / time,
        wait_s=waited / done,
        contended_share=contended / done,
    )


class _Run:
    """One simulation.

    A cycle of a task is a list of steps: a mean time away from all queues, or the name of a station (the lock, a
    cache line), which serves one task at a time.
    """

    def __init__(self, lock: Lock, tasks: int, rng: np.random.Generator) -> None:
        self.lock, self.tasks, self.rng = lock, tasks, rng
        self.cycle = _steps(lock)
        self.step = [0] * tasks
        self.queues: dict[str, deque[int]] = {step: deque() for step in self.cycle if isinstance(step, str)}
        self.events: list[tuple[float, int, int, str | None]] = []
        self.serial = 0
        #: Station -> serial number of the release that counts; an earlier draw of it is void.
        self.due: dict[str, int] = {}
        self.now = self.waited = self.thought = 0.0
        self.done = self.contended = 0
        for task in range(tasks):
            self._begin(task)

    def counts(self) -> tuple[float, ...]:
        """Return time, look-ups done, waiting time, time between look-ups, look-ups that found the lock held."""
        return self.now, self.done, self.waited, self.thought, self.contended

    def advance(self, lookups: int) -> None:
        """Go on until so many more look-ups are done."""
        goal = self.done + lookups
        while self.done < goal:
            time, serial, task, station = heapq.heappop(self.events)
            if station is not None and self.due[station] != serial:
                continue
            self.waited += (time - self.now) * self._waiting()
            self.thought += (time - self.now) * self.step.count(0)
            self.now = time
            if station is not None:
                self.queues[station].popleft()
                self._serve(station)
            self.step[task] = (self.step[task] + 1) % len(self.cycle)
            self.done += self.step[task] == 0
            self._begin(task)

    def _begin(self, task: int) -> None:
        step = self.cycle[self.step[task]]
        if isinstance(step, str):
            queue = self.queues[step]
            self.contended += self.lock.exclusive and len(queue) > 0
            queue.append(task)
            # Who waits makes handing over dearer: the release is drawn anew, as exponential times allow.
            if len(queue) == 1 or self.lock.exclusive:
                self._serve(step)
        else:
            self._push(step, task, None)

    def _serve(self, station: str) -> None:
        if self.queues[station]:
            self._push(self._service_s(station), self.queues[station][0], station)
            self.due[station] = self.serial

    def _push(self, mean_s: float, task: int, station: str | None) -> None:
        self.serial += 1
        heapq.heappush(self.events, (self.now + mean_s * self.rng.exponential(), self.serial, task, station))

    def _service_s(self, station: str) -> float:
        if station != "lock":
            return self.lock.atomic_s
        waiters = len(self.queues[station]) - 1
        handoff = self.lock.handoff_s * (waiters / 2 if self.lock.kind == "ticket" else min(waiters, 1))
        return self.lock.section_s + handoff

    def _waiting(self) -> float:
        """Count the tasks that wait now; the one a lock is being handed to waits for that part of the time."""
        busy = [station for station, queue in self.queues.items() if queue]
        queued = sum(len(self.queues[station]) for station in busy)
        return queued - sum(self.lock.section_s / self._service_s(s) if s == "lock" else 1.0 for s in busy)


def _steps(lock: Lock) -> list[float | str]:
    """Return the steps of a look-up; the first is the time before it."""
    if lock.exclusive:
        return [lock.think_s, lock.parallel_s, "lock"]
    away: list[float | str] = [lock.think_s, lock.parallel_s]
    count: list[float | str] = ["count"] if lock.lines else []
    word: list[float | str] = ["word"] if lock.lines == 2 else []
    return [*away, *word, lock.section_s, *count, *word, *count]
