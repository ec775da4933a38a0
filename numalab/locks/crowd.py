"""An exclusive lock among more tasks than CPUs: lock holders and waiters lose their CPU.

With a CPU for each task this is the closed queue of `numalab.locks.queue` (n tasks, constant section). With fewer,
a scheduler that knows nothing of the lock (a hypervisor, or a kernel whose tasks spin in user space) takes the CPU
away after a while. If it hits the holder, all others can only spin; if it hits the waiter whose turn is next, they
wait behind it. The lock is the writer's side of the kernel's queued rwlock, which is what an exclusive look-up takes
in the recordings under ``data/traces/S3_*``: who finds it taken joins a first-come queue; the first of the queue
puts its claim on the lock as soon as it runs, after which nobody may overtake it; before that, anybody may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Crowd", "CrowdSolution", "solve_crowd"]


@dataclass(frozen=True)
class Crowd:
    """Tasks that share an exclusive lock, and the CPUs that run them.

    Attributes
    ----------
    tasks, cpus : int
    think_s : float
        Mean time on a CPU from leaving the lock to asking for it again, s.
    section_s : float
        Mean time on a CPU with the lock held, s.
    slice_s : float
        Mean time a task keeps its CPU while another wants it, s.
    spin_slice_s : float, optional
        The same for a task that waits for the lock; default `slice_s`. Small where spinning gives the CPU away
        (QEMU with ``-icount``: a guest's ``pause`` lets the next CPU run).
    """

    tasks: int
    cpus: int
    think_s: float
    section_s: float
    slice_s: float
    spin_slice_s: float | None = None

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.cpus < 1:
            raise ValueError(f"expected at least one task and one CPU, got {self.tasks} and {self.cpus}")
        if min(self.think_s, self.section_s, self.slice_s, self.spin_slice_s or self.slice_s) <= 0:
            raise ValueError("expected positive times, s")


@dataclass(frozen=True)
class CrowdSolution:
    """What a crowd does in the long run, and how far a run of some length strays from it.

    Attributes
    ----------
    throughput : float
        Look-ups of all tasks, 1/s.
    contended_share : float
        Look-ups that found the lock taken or claimed, of all.
    waiting_share : float
        Time tasks spend waiting for the lock, on a CPU or off, of all tasks' time.
    free_throughput : float
        Look-ups of all tasks if none ever waited, 1/s.
    variance : dict
        Quantity -> its variance over a run of T seconds, times T, for long T (exact for the chain; s).
    """

    throughput: float
    contended_share: float
    waiting_share: float
    free_throughput: float
    variance: dict[str, float]

    @property
    def ratio(self) -> float:
        """Throughput relative to a lock that never makes anybody wait."""
        return self.throughput / self.free_throughput

    def deviation(self, name: str, seconds: float) -> float:
        """Return the standard deviation of ``ratio``, ``contended_share`` or ``waiting_share`` over runs so long."""
        return float(np.sqrt(max(0.0, self.variance[name]) / seconds))


@dataclass(frozen=True)
class _State:
    """Who runs.

    ``thinking``: tasks that run away from the lock; ``holder``: None, or whether it runs; ``queue``: whether each
    waiter runs, first come first; ``claimed``: the first waiter has put its claim on the lock.
    """

    thinking: int
    holder: bool | None = None
    queue: tuple[bool, ...] = ()
    claimed: bool = False


_ARRIVAL, _WAIT, _RELEASE, _SWITCH = range(4)


def solve_crowd(crowd: Crowd) -> CrowdSolution:
    """Solve the Markov chain of a crowd exactly: exponential times, the next task drawn evenly from those off a CPU.

    Parameters
    ----------
    crowd : Crowd
        Some hundred states for eight tasks on two CPUs; the number grows with ``tasks ** cpus``.

    Returns
    -------
    CrowdSolution
    """
    states, moves = _chain(crowd)
    here, there, kind = (np.array([move[i] for move in moves]) for i in range(3))
    rate = np.array([move[3] for move in moves])
    share, deviation = _stationary(here, there, rate, len(states))

    def frequency(of: int) -> float:
        return float((share[here] * rate)[kind == of].sum())

    def variance(weight: NDArray[np.float64]) -> float:
        """Return the variance rate of a count of moves, each with its weight."""
        counted = np.bincount(here, weights=rate * weight, minlength=len(states))
        later = (deviation @ counted)[there]
        return float((share[here] * rate * weight * (weight + 2 * later)).sum())

    queue = np.array([len(state.queue) for state in states]) / crowd.tasks
    waiting = float(share @ queue)
    released, waits = frequency(_RELEASE), frequency(_WAIT)
    contended = waits / (waits + frequency(_ARRIVAL))
    free = min(crowd.tasks, crowd.cpus) / (crowd.think_s + crowd.section_s)
    releases = np.where(kind == _RELEASE, 1.0, 0.0)
    asked = np.where(kind == _WAIT, 1 - contended, np.where(kind == _ARRIVAL, -contended, 0.0))
    return CrowdSolution(
        throughput=released,
        contended_share=contended,
        waiting_share=waiting,
        free_throughput=free,
        variance={
            "ratio": variance(releases) / free**2,
            "contended_share": variance(asked) / released**2,
            "waiting_share": float(2 * (share * (queue - waiting)) @ (deviation @ (queue - waiting))),
        },
    )


def _chain(crowd: Crowd) -> tuple[list[_State], list[tuple[int, int, int, float]]]:
    """Return all states that can be reached, and all moves: (from, to, kind, rate in 1/s)."""
    states = [_State(min(crowd.tasks, crowd.cpus))]
    number = {states[0]: 0}
    moves = []
    for here, state in enumerate(states):  # grows while it is walked
        for kind, rate, after in _transitions(state, crowd):
            if after not in number:
                number[after] = len(states)
                states.append(after)
            moves.append((here, number[after], kind, rate))
    return states, moves


def _transitions(state: _State, crowd: Crowd) -> Iterator[tuple[int, float, _State]]:
    """Yield (kind, rate in 1/s, state after)."""
    if state.thinking:
        rate = state.thinking / crowd.think_s
        outside = replace(state, thinking=state.thinking - 1)
        if state.holder is None and not state.claimed:
            yield _ARRIVAL, rate, replace(outside, holder=True)
        else:
            yield _WAIT, rate, _settle(replace(outside, queue=(*state.queue, True)))
    if state.holder:
        yield _RELEASE, 1 / crowd.section_s, _settle(replace(state, thinking=state.thinking + 1, holder=None))
    if crowd.tasks > crowd.cpus:
        yield from _switches(state, crowd)


def _switches(state: _State, crowd: Crowd) -> Iterator[tuple[int, float, _State]]:
    """Yield each way in which a running task loses its CPU to one of those that have none."""
    spin_slice = crowd.spin_slice_s or crowd.slice_s
    on: list[tuple[float, _State]] = []
    if state.thinking:
        on.append((state.thinking / crowd.slice_s, replace(state, thinking=state.thinking - 1)))
    if state.holder:
        on.append((1 / crowd.slice_s, replace(state, holder=False)))
    on += [(1 / spin_slice, _turn(state, i, False)) for i, runs in enumerate(state.queue) if runs]
    outside = crowd.tasks - len(state.queue) - (state.holder is not None)
    off = crowd.tasks - crowd.cpus
    for rate, stopped in on:
        if outside > state.thinking:
            share = (outside - state.thinking) / off
            yield _SWITCH, rate * share, replace(stopped, thinking=stopped.thinking + 1)
        if state.holder is False:
            yield _SWITCH, rate / off, replace(stopped, holder=True)
        for i, runs in enumerate(state.queue):
            if not runs:
                yield _SWITCH, rate / off, _settle(_turn(stopped, i, True))


def _turn(state: _State, place: int, runs: bool) -> _State:
    queue = state.queue
    return replace(state, queue=(*queue[:place], runs, *queue[place + 1 :]))


def _settle(state: _State) -> _State:
    """Let the first of the queue, if it runs, claim the lock and take it when it is free."""
    if not state.queue or not state.queue[0]:
        return state
    if state.holder is not None:
        return replace(state, claimed=True)
    rest = state.queue[1:]
    return replace(state, holder=True, queue=rest, claimed=bool(rest) and rest[0])


def _stationary(
    here: NDArray[np.int64], there: NDArray[np.int64], rate: NDArray[np.float64], states: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the long-run share of time in each state, (states,), and the chain's deviation matrix, s.

    Row i of that, times a reward per second, is how much more of it comes in all when starting from i.
    """
    generator = np.zeros((states, states))
    np.add.at(generator, (here, there), rate)
    np.fill_diagonal(generator, 0.0)
    np.fill_diagonal(generator, -generator.sum(axis=1))
    fastest = np.abs(generator).max()
    balance = generator.T / fastest
    balance[-1] = 1.0
    share = np.linalg.solve(balance, np.eye(states)[-1])
    deviation = np.linalg.inv(np.outer(np.ones(states), share) - generator / fastest) - share
    return share, deviation / fastest
