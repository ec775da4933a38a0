"""Trace events: moves and swaps as the schema's table, hint faults and decisions as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab import runs
from numalab.readers._assemble import Parts
from numalab.readers._ftrace_types import MigrateTask, Move, Report, Stick, Swap
from numalab.schema import BALANCER_MOVE, FAILED, MOVE, SWAP

#: A stick this long after the attempt still belongs to it: between them the task itself waits for both
#: CPUs to stop, which took up to 0.4 s in emulated guests.
FAIL_WITHIN_S = 1.0
#: A NUMA move shows as sched_migrate_task too, once for each task moved, within this time.
SAME_MOVE_S = 1.0

#: Bits of the pid that the kernel keeps in last_cpupid, and of the CPU with NR_CPUS 8192.
PID_BITS, CPU_BITS = 8, 13

#: Flags of task_numa_fault.
MIGRATED, NO_GROUP, SHARED, FAULT_LOCAL, MIGRATE_FAIL = 0x01, 0x02, 0x04, 0x08, 0x10


# ---------------------------------------------------------------- moves and swaps


def outcomes(report: Report) -> tuple[list[Move | Swap], list[Stick]]:
    """Tell attempts that succeeded from those that did not.

    The kernel prints a move or swap before it tries, and a stick when it fails. A task makes one attempt
    at a time, so a stick with the same task, CPUs and partner as the event of that task just before is its end.

    Returns
    -------
    done : list of Move and Swap
        In the order of time.
    failed : list of Stick
        Those that found no place (dst_cpu -1) and those that tried one.
    """
    attempts: list[Move | Swap | None] = []
    latest: dict[int, int] = {}
    for event in _of_tasks(report):
        if isinstance(event, Stick):
            at = latest.pop(event.task, None)
            if at is not None and _is_end(event, attempts[at]):
                attempts[at] = None
        else:
            latest[event.task] = len(attempts)
            attempts.append(event)
    return [attempt for attempt in attempts if attempt is not None], sorted(report.sticks, key=lambda e: e.time)


def _of_tasks(report: Report) -> list[Move | Swap | Stick]:
    return sorted([*report.moves, *report.swaps, *report.sticks], key=lambda event: event.time)


def _is_end(stick: Stick, attempt: Move | Swap | None) -> bool:
    if attempt is None or stick.time - attempt.time > FAIL_WITHIN_S:
        return False
    partner = attempt.partner if isinstance(attempt, Swap) else 0
    return (stick.src_cpu, stick.dst_cpu) == (attempt.src_cpu, attempt.dst_cpu) and stick.partner in (partner, -1)


def add_events(parts: Parts, report: Report) -> None:
    """Add the table of moves, swaps, failures and, where traced, moves by others between nodes.

    Failed attempts are rows of kind failed; where a CPU had been found they name it.
    """
    done, failed = outcomes(report)
    rows: list[tuple[float, int, int, int, int, int, int, int]] = []
    for event in done:
        kind, partner = (SWAP, event.partner) if isinstance(event, Swap) else (MOVE, -1)
        rows.append(_row(event, kind, partner))
    rows += [_row(stick, FAILED, stick.partner if stick.partner > 0 else -1) for stick in failed]
    rows += [_moved_row(parts, event) for event in _by_others(parts, report.migrate_tasks, done)]
    rows.sort()
    table = np.array([row[1:] for row in rows], dtype=np.int64).reshape(len(rows), 7)
    names = ("kind", "task", "src_cpu", "src_node", "dst_cpu", "dst_node", "partner")
    columns: dict[str, Any] = {"event_time_s": np.array([row[0] for row in rows], dtype=float) - parts.zero}
    columns |= {f"event_{name}": table[:, i] for i, name in enumerate(names)}
    parts.variables |= runs.padded("event", [columns])


def _row(event: Move | Swap | Stick, kind: int, partner: int) -> tuple[float, int, int, int, int, int, int, int]:
    places = (event.src_cpu, event.src_node, event.dst_cpu, event.dst_node)
    return (event.time, kind, event.task, *places, partner)


def _moved_row(parts: Parts, event: MigrateTask) -> tuple[float, int, int, int, int, int, int, int]:
    nodes = parts.node_of
    places = (event.src_cpu, nodes[event.src_cpu], event.dst_cpu, nodes[event.dst_cpu])
    return (event.time, BALANCER_MOVE, event.task, *places, -1)


def _by_others(parts: Parts, events: Sequence[MigrateTask], done: Sequence[Move | Swap]) -> list[MigrateTask]:
    """Take the moves of known tasks to another node that are not the doing of NUMA balancing."""
    due = [(event.task, event.dst_cpu, event.time) for event in done]
    due += [(event.partner, event.src_cpu, event.time) for event in done if isinstance(event, Swap)]
    out = []
    for event in events:
        own = any(
            task == event.task and cpu == event.dst_cpu and 0 <= event.time - time <= SAME_MOVE_S
            for task, cpu, time in due
        )
        between = parts.node_of.get(event.src_cpu) != parts.node_of.get(event.dst_cpu)
        if event.task in parts.names and between and not own:
            out.append(event)
    return out


def see_tasks(parts: Parts, report: Report) -> None:
    """Make every task of a move or swap a label."""
    for event in _of_tasks(report):
        parts.see_task(event.task, event.process, report.names.get(event.task, ""))
        if isinstance(event, Swap | Stick) and event.partner > 0:
            parts.see_task(event.partner, event.partner_process, report.names.get(event.partner, ""))


def see_cpus(parts: Parts, report: Report) -> None:
    """Learn which CPU is on which node from moves, swaps and sticks."""
    for event in _of_tasks(report):
        parts.node_of[event.src_cpu] = event.src_node
        if event.dst_cpu >= 0:
            parts.node_of[event.dst_cpu] = event.dst_node


# ---------------------------------------------------------------- hint faults and decisions


@dataclass(frozen=True)
class Decisions:
    """What the kernel was asked and answered, event by event, from its probes.

    Times are seconds on the axis of the run (0: the workload's start). Within a table rows are in the
    order of the text, that is of time.

    Attributes
    ----------
    time, pid, cpu : arrays (fault)
        When, which task, on which CPU it ran.
    last_cpu, last_pid : int arrays (fault)
        CPU and low 8 bits of the pid of the last access; -1 where none was recorded.
    node, pages, flags : int arrays (fault)
        Node the page lies on after a migration, base pages, flags of task_numa_fault (`MIGRATED` ...).
    answer : int array (fault)
        What the migration filter answered for this fault: 1 migrate, 0 do not, -1 it was not asked (as when
        the page is on the CPU's node already) or the event was lost.
    address : int array (fault)
        Where the fault was, of traces with page_fault_user; -1 unknown (as faults taken inside system calls are).
    filter_time, filter_pid, filter_cpu, filter_answer : arrays (call)
        Every answer of the filter.
    filter_fault : int array (call)
        Row of the hint fault it belongs to; -1 when none followed before the task's next call.
    scan_time, scan_pid, scan_cpu : arrays (scan)
        Every call of task_numa_work.
    preferred_time, preferred_pid, preferred_node : arrays (change)
        Every setting of a preferred node.
    names : dict
        pid -> comm, as last seen in the trace.
    lost : int
        Events the kernel lost. With any, an answer may stand beside the wrong fault.
    """

    time: NDArray[np.float64]
    pid: NDArray[np.int64]
    cpu: NDArray[np.int32]
    last_cpu: NDArray[np.int32]
    last_pid: NDArray[np.int32]
    node: NDArray[np.int32]
    pages: NDArray[np.int32]
    flags: NDArray[np.int32]
    answer: NDArray[np.int8]
    address: NDArray[np.int64]
    filter_time: NDArray[np.float64]
    filter_pid: NDArray[np.int64]
    filter_cpu: NDArray[np.int32]
    filter_answer: NDArray[np.int8]
    filter_fault: NDArray[np.int64]
    scan_time: NDArray[np.float64]
    scan_pid: NDArray[np.int64]
    scan_cpu: NDArray[np.int32]
    preferred_time: NDArray[np.float64]
    preferred_pid: NDArray[np.int64]
    preferred_node: NDArray[np.int32]
    names: dict[int, str]
    lost: int


def decisions(report: Report, zero: float = 0.0, cpu_bits: int = CPU_BITS) -> Decisions:
    """Turn the probes of a trace into arrays.

    Parameters
    ----------
    report : Report
    zero : float
        Time of the trace that becomes 0 s.
    cpu_bits : int
        Bits of the CPU in last_cpupid (log2 of NR_CPUS); 13 in the kernels of distributions for x86-64.
    """
    faults, calls, scans, preferred = report.hint_faults, report.should_migrate, report.scan_works, report.set_preferred
    answer, address, owner = _pair(report)
    last = _ints([fault.last_cpupid for fault in faults], np.int64)
    # all ones, or -1, is "never set"
    unset = (last < 0) | (last == (1 << (cpu_bits + PID_BITS)) - 1)
    return Decisions(
        time=_seconds(faults, zero),
        pid=_ints([fault.pid for fault in faults], np.int64),
        cpu=_ints([fault.cpu for fault in faults]),
        last_cpu=np.where(unset, -1, last >> PID_BITS).astype(np.int32),
        last_pid=np.where(unset, -1, last & ((1 << PID_BITS) - 1)).astype(np.int32),
        node=_ints([fault.node for fault in faults]),
        pages=_ints([fault.pages for fault in faults]),
        flags=_ints([fault.flags for fault in faults]),
        answer=_ints(answer, np.int8),
        address=_ints(address, np.int64),
        filter_time=_seconds(calls, zero),
        filter_pid=_ints([call.pid for call in calls], np.int64),
        filter_cpu=_ints([call.cpu for call in calls]),
        filter_answer=_ints([call.answer for call in calls], np.int8),
        filter_fault=_ints(owner, np.int64),
        scan_time=_seconds(scans, zero),
        scan_pid=_ints([scan.pid for scan in scans], np.int64),
        scan_cpu=_ints([scan.cpu for scan in scans]),
        preferred_time=_seconds(preferred, zero),
        preferred_pid=_ints([change.pid for change in preferred], np.int64),
        preferred_node=_ints([change.node for change in preferred]),
        names=dict(report.names),
        lost=report.lost,
    )


def _pair(report: Report) -> tuple[list[int], list[int], list[int]]:
    """Find for each hint fault the filter's answer and the address, for each answer its fault.

    A task handles one fault at a time: user fault, filter, hint fault follow each other in its own events.
    """
    answer = [-1] * len(report.hint_faults)
    address = [-1] * len(report.hint_faults)
    owner = [-1] * len(report.should_migrate)
    # line numbers order the events of all kinds
    merged = [(fault.line, 2, i) for i, fault in enumerate(report.hint_faults)]
    merged += [(call.line, 1, i) for i, call in enumerate(report.should_migrate)]
    merged += [(fault.line, 0, i) for i, fault in enumerate(report.page_faults)]
    merged.sort()
    asked: dict[int, int] = {}
    where: dict[int, int] = {}
    for _, kind, i in merged:
        if kind == 0:
            fault = report.page_faults[i]
            where[fault.pid] = fault.address
            asked.pop(fault.pid, None)
        elif kind == 1:
            asked[report.should_migrate[i].pid] = i
        else:
            pid = report.hint_faults[i].pid
            address[i] = where.pop(pid, -1)
            call = asked.pop(pid, None)
            if call is not None:
                answer[i], owner[call] = report.should_migrate[call].answer, i
    return answer, address, owner


def _ints(values: Sequence[int], dtype: Any = np.int32) -> NDArray[Any]:
    return np.array(values, dtype=dtype)


def _seconds(events: Sequence[Any], zero: float) -> NDArray[np.float64]:
    return np.array([event.time for event in events], dtype=np.float64) - zero
