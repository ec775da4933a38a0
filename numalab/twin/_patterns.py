"""How threads touch the memory of their process: nobody records it, so some patterns are tried."""

from __future__ import annotations

from dataclasses import dataclass

from numalab.twin._seen import Evidence
from numalab.workload import Order

#: Private shares of faults nearer than this to none or all are taken as none or all.
NEAR = 0.1


@dataclass(frozen=True)
class Pattern:
    """How the threads of a process touch its memory, which nobody records.

    Attributes
    ----------
    name : str
        For people.
    order : {"random", "sequential"}
    own : bool
        Each thread has a part to itself, as large as its private hint faults say.
    """

    name: str
    order: Order
    own: bool = False


#: Those that are tried.
PATTERNS = (
    Pattern("all threads of a process at random", "random"),
    Pattern("all threads of a process in order, each from another place", "sequential"),
    Pattern("each thread a part of its own, at random", "random", own=True),
)


def patterns(found: Evidence) -> tuple[Pattern, ...]:
    """Return the patterns that differ for these processes."""
    parts = any(
        len(process.tasks) > 1 and (process.private is None or own_part(process.private, len(process.tasks)))
        for process in found.processes
    )
    return PATTERNS if parts else PATTERNS[:2]


def own_part(private: float | None, threads: int) -> float:
    """Return how much of the memory each thread has to itself: by chance 1 in ``threads`` faults is private."""
    if private is None:
        return 1.0
    own = (private - 1 / threads) / (1 - 1 / threads)
    return 0.0 if own < NEAR else 1.0 if own > 1 - NEAR else own
