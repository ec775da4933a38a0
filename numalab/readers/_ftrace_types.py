"""Records of the trace events that `numalab.readers.ftrace` reads.

The first fields of each are the same: time (s, the trace's clock), pid and cpu of the task that was
running, line of the text. Events that name the task concerned have its pid as ``task``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from numalab.readers._text import Skipped


class Move(NamedTuple):
    """sched_move_numa: a move is tried. ``group`` is the NUMA group, 0 for none."""

    time: float
    pid: int
    cpu: int
    line: int
    task: int
    process: int
    group: int
    src_cpu: int
    src_node: int
    dst_cpu: int
    dst_node: int


class Swap(NamedTuple):
    """sched_swap_numa: a swap is tried."""

    time: float
    pid: int
    cpu: int
    line: int
    task: int
    process: int
    group: int
    src_cpu: int
    src_node: int
    partner: int
    partner_process: int
    partner_group: int
    dst_cpu: int
    dst_node: int


class Stick(NamedTuple):
    """sched_stick_numa: no place was found (dst -1), or what was tried failed.

    ``partner`` (and its process and group) is 0 when the attempt was a move, and -1 where the kernel
    does not print it (before 5.7).
    """

    time: float
    pid: int
    cpu: int
    line: int
    task: int
    process: int
    group: int
    src_cpu: int
    src_node: int
    partner: int
    partner_process: int
    partner_group: int
    dst_cpu: int
    dst_node: int


class SkipVma(NamedTuple):
    """sched_skip_vma_numa: the scanner left a mapping out."""

    time: float
    pid: int
    cpu: int
    line: int
    offset: int
    start: int
    end: int
    reason: str


class MigratePages(NamedTuple):
    """mm_migrate_pages: one call of migrate_pages() ended; -1 for counts that old kernels do not print."""

    time: float
    pid: int
    cpu: int
    line: int
    succeeded: int
    failed: int
    thp_succeeded: int
    thp_failed: int
    thp_split: int
    split: int
    mode: str
    reason: str


class MigrateTask(NamedTuple):
    """sched_migrate_task: a task is given to another CPU, by whomever."""

    time: float
    pid: int
    cpu: int
    line: int
    comm: str
    task: int
    src_cpu: int
    dst_cpu: int


class HintFault(NamedTuple):
    """A kprobe ``hint_fault`` on task_numa_fault(last_cpupid, mem_node, pages, flags).

    ``node`` is where the page lies after a migration, if there was one.
    """

    time: float
    pid: int
    cpu: int
    line: int
    last_cpupid: int
    node: int
    pages: int
    flags: int


class ScanWork(NamedTuple):
    """A kprobe ``scan_work`` on task_numa_work: the scanner is called."""

    time: float
    pid: int
    cpu: int
    line: int


class SetPreferred(NamedTuple):
    """A kprobe ``set_preferred`` on sched_setnuma: the running task gets a preferred node."""

    time: float
    pid: int
    cpu: int
    line: int
    node: int


class ShouldMigrate(NamedTuple):
    """A return probe ``should_migrate`` on should_numa_migrate_memory; answer 0 or 1."""

    time: float
    pid: int
    cpu: int
    line: int
    answer: int


class PageFault(NamedTuple):
    """page_fault_user: a fault in user mode, of any kind."""

    time: float
    pid: int
    cpu: int
    line: int
    address: int
    ip: int
    error_code: int


@dataclass
class Report:
    """What a trace held.

    Attributes
    ----------
    source : str
    lines : int
    moves, swaps, sticks, skipped_vmas, migrate_pages, migrate_tasks, hint_faults, scan_works,
    set_preferred, should_migrate, page_faults : list
        In the order of the text.
    names : dict
        pid -> comm, as last seen.
    lost : int
        Events the kernel says it lost, as far as the text tells.
    skipped : list of Skipped
    """

    source: str
    lines: int
    moves: list[Move] = field(default_factory=list)
    swaps: list[Swap] = field(default_factory=list)
    sticks: list[Stick] = field(default_factory=list)
    skipped_vmas: list[SkipVma] = field(default_factory=list)
    migrate_pages: list[MigratePages] = field(default_factory=list)
    migrate_tasks: list[MigrateTask] = field(default_factory=list)
    hint_faults: list[HintFault] = field(default_factory=list)
    scan_works: list[ScanWork] = field(default_factory=list)
    set_preferred: list[SetPreferred] = field(default_factory=list)
    should_migrate: list[ShouldMigrate] = field(default_factory=list)
    page_faults: list[PageFault] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    lost: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Events by name, those that occur."""
        found: dict[str, Sequence[NamedTuple]] = {
            "sched_move_numa": self.moves,
            "sched_swap_numa": self.swaps,
            "sched_stick_numa": self.sticks,
            "sched_skip_vma_numa": self.skipped_vmas,
            "mm_migrate_pages": self.migrate_pages,
            "sched_migrate_task": self.migrate_tasks,
            "hint_fault": self.hint_faults,
            "scan_work": self.scan_works,
            "set_preferred": self.set_preferred,
            "should_migrate": self.should_migrate,
            "page_fault_user": self.page_faults,
        }
        return {name: len(events) for name, events in found.items() if events}
