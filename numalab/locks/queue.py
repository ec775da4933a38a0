"""The closed queue at a lock: n tasks, each now elsewhere, now at the lock, in the long run.

With k tasks at the lock the next arrives at rate (n - k) / Z, Z being the mean time of a task away from it; they leave
at rate 1 / t(k). Then P(k) is proportional to n! / (n - k)! * Z**-k * t(1) ... t(k), exactly, for exponential times
(that of the time away does not matter). Boyd-Wickizer, Kaashoek, Morris, Zeldovich: Non-scalable locks are dangerous,
Ottawa Linux Symposium 2012, solve the ticket lock in this way; the reader-writer lock and RCU are product-form
networks (Baskett, Chandy, Muntz, Palacios 1975) and have the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "Lock", "Solution", "solve", "stationary"]

#: How look-ups are kept apart, and what that makes them wait for.
KINDS = {
    "ticket": "one holder; handing over costs more the more wait, for all poll one cache line (x86 until 4.1)",
    "mcs": "one holder; handing over costs the same however many wait (qspinlock, from 4.2)",
    "rwlock": "no exclusion; two atomics on the lock's cache line and two on the policy's count, one task at a time",
    "rcu": "no lock; two atomics on the policy's count, one task at a time",
    "none": "an empty tree: nothing is taken",
}


@dataclass(frozen=True)
class Lock:
    """A lock and the look-ups it guards; all times are means in one unit, say seconds.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    think_s : float
        Between two look-ups of a task.
    section_s : float
        What a look-up does with the lock held; with ``rwlock``, ``rcu`` and ``none`` all do it side by side.
    parallel_s : float
        The rest of a look-up, which holds up nobody.
    handoff_s : float
        ``ticket``: time of one request for the lock's cache line; half of the waiters are served, on average, before
        the one whose turn it is, so handing over to one of w takes ``handoff_s * w / 2``. ``mcs``: the whole of it.
    atomic_s : float
        ``rwlock``, ``rcu``: time of one atomic on a shared cache line.
    """

    kind: str
    think_s: float
    section_s: float
    parallel_s: float = 0.0
    handoff_s: float = 0.0
    atomic_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no lock of kind {self.kind!r}; known: {', '.join(KINDS)}")
        if not self.think_s > 0 or min(self.section_s, self.parallel_s, self.handoff_s, self.atomic_s) < 0:
            raise ValueError(f"expected a positive think_s and no negative time, got {self}")
        if self.exclusive and not self.section_s > 0:
            raise ValueError(f"a {self.kind} lock is held for a time: expected a positive section_s")

    @property
    def exclusive(self) -> bool:
        """Whether one task at a time holds it."""
        return self.kind in ("ticket", "mcs")

    @property
    def lines(self) -> int:
        """Cache lines at which tasks queue, beside an exclusive lock: the lock's own, the policy's count."""
        return {"rwlock": 2, "rcu": 1}.get(self.kind, 0)

    @property
    def away_s(self) -> float:
        """Mean time of a cycle that holds up nobody."""
        return self.think_s + self.parallel_s + (0.0 if self.exclusive else self.section_s)

    def service_s(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean time to the next release of an exclusive lock with k tasks at it, the holder included."""
        waiters = k - 1
        handoff = self.handoff_s * (waiters / 2 if self.kind == "ticket" else np.minimum(waiters, 1))
        return self.section_s + handoff


@dataclass(frozen=True)
class Solution:
    """The long run; one value per number of tasks, (tasks,) each.

    Attributes
    ----------
    tasks : of int
    throughput : look-ups of all tasks, 1/s
    area_share : time in the look-up, waiting included, of all time: what perf shows for it and its callees
    waiting_share : time waiting, for the lock, its hand-over or an atomic, of all time: what perf shows for the
        spinning itself
    mean_waiters : tasks waiting
    wait_s : mean waiting time of a look-up, s
    contended_share : look-ups that found the lock held, of all; 0 for locks that nobody holds alone
    """

    tasks: NDArray[np.int64]
    throughput: NDArray[np.float64]
    area_share: NDArray[np.float64]
    waiting_share: NDArray[np.float64]
    mean_waiters: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    contended_share: NDArray[np.float64]


def solve(lock: Lock, tasks: int | Sequence[int] | NDArray[np.int64]) -> Solution:
    """Solve the queue exactly.

    Parameters
    ----------
    lock : Lock
    tasks : int or sequence of int
        How many tasks use it; each number is solved for itself. Thousands are no trouble: weights are kept as
        logarithms, differences of nearly equal numbers do not occur.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        A number of tasks below 1.
    """
    numbers = np.atleast_1d(np.asarray(tasks, dtype=np.int64))
    if numbers.size == 0 or numbers.min() < 1:
        raise ValueError(f"expected at least one task, got {tasks}")
    columns = np.array([_solve_one(lock, int(n)) for n in numbers]).T
    return Solution(numbers, *columns)


def _solve_one(lock: Lock, n: int) -> tuple[float, ...]:
    k = np.arange(n + 1, dtype=np.float64)
    share, per_state = stationary(lock, n), _waiting(lock, k)
    away = float(share @ (n - k))
    throughput = away / lock.away_s
    waiting = float(share @ per_state)
    # The look-up's own time beside the waiting: nothing of think_s.
    own = lock.parallel_s + lock.section_s + 2 * lock.lines * lock.atomic_s
    area = (waiting + throughput * own) / n
    contended = float(share[1:] @ (n - k[1:])) / away if lock.exclusive else 0.0
    return throughput, area, waiting / n, waiting, waiting / throughput, contended


def stationary(lock: Lock, tasks: int) -> NDArray[np.float64]:
    """Return the shares of time in which 0, 1, ... of so many tasks are at what is served one by one: (tasks + 1,)."""
    n, k = tasks, np.arange(tasks + 1, dtype=np.float64)
    if lock.exclusive:
        service = np.cumsum(np.log(lock.service_s(k[1:])))
    elif lock.lines and lock.atomic_s:
        # Two equal lines can share k tasks in k + 1 ways.
        service = k[1:] * np.log(2 * lock.atomic_s) + np.log(k[1:] + 1) * (lock.lines - 1)
    else:
        return np.eye(1, n + 1)[0]
    weight = np.concatenate([[0.0], np.cumsum(np.log(n - k[:-1]) - np.log(lock.away_s)) + service])
    share = np.exp(weight - weight.max())
    result: NDArray[np.float64] = share / share.sum()
    return result


def _waiting(lock: Lock, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many of k tasks wait, on average: (n + 1,)."""
    if lock.exclusive:
        # The holder works for section_s of the service time; during the hand-over the next one still waits.
        waiting = np.zeros_like(k)
        waiting[1:] = (k[1:] - 1) + (1 - lock.section_s / lock.service_s(k[1:]))
        return waiting
    if lock.lines == 2:
        # All splits i, k - i are equally likely: the mean of max(i - 1, 0) + max(k - i - 1, 0).
        return k * (k - 1) / (k + 1)
    return np.maximum(k - 1, 0)
