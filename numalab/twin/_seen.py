"""What was seen in a recording: tasks, mappings, processes, and the machine they ran on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Memory counts as there from the first look that shows so much of what a mapping ever had.
WHOLE = 0.9
#: Names of shared memory in numa_maps; any other path is a file.
_SHARED_NAMES = ("/dev/zero", "/dev/shm/", "/SYSV", "/memfd:", "/anon_hugepage")


@dataclass(frozen=True)
class SeenTask:
    """A task that works.

    Attributes
    ----------
    tid : int
    start_s, end_s : float
        When it began, as near as looks and its CPU time tell; the look after the last that showed it, infinite if that
        was the recording's last.
    node : int
        Where it was first.
    share : float
        Of its time that it ran.
    ran_ms : float
        CPU time at the first look; NaN where nobody told.
    allowed : tuple of (time, frozenset of nodes)
        On which nodes it had CPUs to use, from when on; empty where nobody told.
    """

    tid: int
    start_s: float
    end_s: float
    node: int
    share: float
    ran_ms: float
    allowed: tuple[tuple[float, frozenset[int]], ...] = ()


@dataclass(frozen=True)
class SeenMemory:
    """A mapping of a process.

    Attributes
    ----------
    region : str
        Its label in the recording.
    start : int
        Its address; 0 where it is not told.
    name : str
        As numa_maps has it: "" for anonymous memory.
    pages : dict
        Node -> pages of 4 KiB, when it was first there as a whole.
    at_s, from_s : float
        That time; from when on it can have been touched: the look before, if that showed it with less, else 0.
    policy : str
        "" where it is not told.
    sharers : int
        Most processes that map one of its pages; 1 where it is not told.
    """

    region: str
    start: int
    name: str
    pages: Mapping[int, int]
    at_s: float
    from_s: float
    policy: str
    sharers: int

    @property
    def total(self) -> int:
        """All its pages."""
        return sum(self.pages.values())

    @property
    def key(self) -> tuple[int, str]:
        """Equal for mappings of several processes that may be the same memory: a path names it, or forking did."""
        named = self.is_file or (self.is_shared and not self.name.startswith("/dev/zero"))
        return (0, self.name) if named else (self.start, self.name)

    @property
    def is_file(self) -> bool:
        """It is a file's, not memory of its own."""
        return self.name.startswith("/") and not self.is_shared

    @property
    def is_shared(self) -> bool:
        """It is memory that processes share."""
        return self.name.startswith(_SHARED_NAMES)


@dataclass(frozen=True)
class SeenProcess:
    """A process that works.

    Attributes
    ----------
    pid : int
    name : str
    tasks : tuple of SeenTask
        Those that work.
    memory : tuple of SeenMemory
        In the order of addresses.
    private : float or None
        Share of private ones among its hint faults; None where nobody counted.
    small : tuple of int or None
        Small mappings below and above its largest; None where not told.
    """

    pid: int
    name: str
    tasks: tuple[SeenTask, ...]
    memory: tuple[SeenMemory, ...]
    private: float | None
    small: tuple[int, int] | None = None


@dataclass
class Evidence:
    """All that a recording tells.

    Attributes
    ----------
    name : str
    nodes : list of int
    cpus : dict
        Node -> number of CPUs.
    distance : array (node, node) or None
    total, free : dict
        Node -> pages: of memory, and free when the memory of the processes was there; empty where not told.
    release : str
    sysctl, toggles : dict
    seconds : float
        How long it lasts.
    processes : list of SeenProcess
    assumed : list of str
        What it does not tell, and what is taken instead.
    """

    name: str
    nodes: list[int]
    cpus: dict[int, int]
    distance: NDArray[np.int64] | None
    release: str
    seconds: float
    total: dict[int, int] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)
    sysctl: dict[str, Any] = field(default_factory=dict)
    toggles: dict[str, Any] = field(default_factory=dict)
    processes: list[SeenProcess] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)


def pages_of(processes: list[SeenProcess]) -> dict[int, int]:
    """Return the pages of processes by node, those that they share counted once."""
    out: dict[int, int] = {}
    seen: set[tuple[int, str]] = set()
    for process in processes:
        for one in process.memory:
            if (one.is_shared or one.is_file or one.sharers > 1) and one.key in seen:
                continue
            seen.add(one.key)
            for node, count in one.pages.items():
                out[node] = out.get(node, 0) + count
    return out
