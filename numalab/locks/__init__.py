"""Locks that many tasks share: exact stationary solutions, and an event simulation that agrees with them.

The lock of the thread ``policy_lock`` guards the policies of one file or segment in memory; each look-up takes it.

``solve``, ``Lock``
    A CPU for each task, up to thousands of tasks: ticket spinlock, MCS queue, reader-writer lock, RCU, empty tree.
``simulate``
    The same, event by event.
``share_cpus``, ``take_turns``, ``Work``
    Fewer CPUs than tasks, so that holders and waiters lose their CPU: what small virtual machines show.
"""

from numalab.locks.events import Simulated, simulate
from numalab.locks.fitting import fit_positive
from numalab.locks.queue import KINDS, Lock, Solution, solve, stationary
from numalab.locks.turns import Work, Worked, share_cpus, take_turns

__all__ = [
    "KINDS",
    "Lock",
    "Simulated",
    "Solution",
    "Work",
    "Worked",
    "fit_positive",
    "share_cpus",
    "simulate",
    "solve",
    "stationary",
    "take_turns",
]
