"""Locks that many tasks share: exact stationary solutions, and an event simulation that agrees with them.

The lock of the thread ``policy_lock`` guards the policies of one file or segment in memory; each look-up takes it.

``solve``, ``Lock``
    A CPU for each task, up to thousands of tasks: ticket spinlock, MCS queue, reader-writer lock, RCU, empty tree.
``simulate``
    The same, event by event.
``solve_crowd``, ``Crowd``
    More tasks than CPUs, so that holders and waiters lose their CPU: what small virtual machines show.
"""

from numalab.locks.crowd import Crowd, CrowdSolution, solve_crowd
from numalab.locks.events import Simulated, simulate
from numalab.locks.fitting import fit_positive
from numalab.locks.queue import KINDS, Lock, Solution, solve

__all__ = [
    "KINDS",
    "Crowd",
    "CrowdSolution",
    "Lock",
    "Simulated",
    "Solution",
    "fit_positive",
    "simulate",
    "solve",
    "solve_crowd",
]
