"""Reader of trace events of NUMA balancing, as ftrace, trace-cmd and perf script print them.

Tracepoints: sched_move_numa, sched_swap_numa, sched_stick_numa (seven fields before Linux 5.7, ten
since), sched_skip_vma_numa (6.7), mm_migrate_pages (four fields, then eight), sched_migrate_task,
page_fault_user. Probes under the names hint_fault, scan_work, set_preferred and should_migrate, defined as

    p hint_fault task_numa_fault last_cpupid=%di:s32 mem_node=%si:s32 pages=%dx:s32 flags=%cx:x32
    p scan_work task_numa_work
    p set_preferred sched_setnuma nid=%si:s32
    r should_migrate should_numa_migrate_memory ret=$retval:u8

A move or swap is printed before it is tried; a stick of the same tasks soon after says that it failed.
"""

import re
from collections.abc import Callable

from numalab.readers._ftrace_types import (
    HintFault,
    MigratePages,
    MigrateTask,
    Move,
    PageFault,
    Report,
    ScanWork,
    SetPreferred,
    ShouldMigrate,
    SkipVma,
    Stick,
    Swap,
)
from numalab.readers._text import CUT, ReadError, Skipped, quote

__all__ = [
    "HintFault",
    "MigratePages",
    "MigrateTask",
    "Move",
    "PageFault",
    "Report",
    "ScanWork",
    "SetPreferred",
    "ShouldMigrate",
    "SkipVma",
    "Stick",
    "Swap",
    "looks_like",
    "parse",
    "take_other",
    "takers",
]

# comm-pid (tgid) [cpu] flags time: event:   by ftrace; without flags by trace-cmd;
# comm pid/tid [cpu] time: system:event:     by perf script
_PREFIX = re.compile(
    r"\s*(?P<comm>\S.*?)(?:-|\s+(?:\d+/)?)(?P<pid>\d+)\s+(?:\(\s*[-\d]+\)\s+)?\[(?P<cpu>\d+)\]\s+"
    r"(?:[^\s:]{3,8}\s+)?(?P<time>\d+\.\d+):\s+(?:\w+:)?(?P<event>\w+):(?: (?P<rest>.*))?$"
)
_FIELD = re.compile(r"(\w+)=(\S*)")
_HINT = re.compile(r" *(?:\S+ )?last_cpupid=(-?\d+) mem_node=(-?\d+) pages=(\d+) flags=0x([0-9a-f]+)\s*$")
_ANSWER = re.compile(r".*\bret=(?:0x)?([01])\s*$")
_WRITTEN = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+)")
_LOST = re.compile(r"CPU:\d+ \[LOST (\d+) EVENTS\]|.*\bLOST (\d+) events\b")
_KNOWN = re.compile(
    r"(?m)^# tracer: |\[\d+\][^\n]*\d+\.\d+:\s+(?:\w+:)?"
    r"(?:sched_(?:move|swap|stick)_numa|sched_skip_vma_numa|mm_migrate_pages|hint_fault):"
)

#: The kernel prints ints of 32 bits.
_MOST = 2**31

Head = tuple[float, int, int, int]
Taker = Callable[[Head, str], None]


def looks_like(text: str) -> bool:
    """Tell whether a text holds trace events this module reads."""
    return _KNOWN.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read a trace.

    Parameters
    ----------
    text : str
        Lines of one tool; lines beginning with # are comments. Other events, call chains and prose are
        skipped and reported.
    source : str
        Name for messages.

    Returns
    -------
    Report

    Raises
    ------
    ReadError
        A known event with other fields than it has in any kernel, or no event and no comment at all.
    """
    report = Report(source, 0)
    known = takers(report)
    number, comments, names, match_prefix = 0, 0, report.names, _PREFIX.match
    for number, line in enumerate(text.splitlines(), 1):
        match = match_prefix(line)
        if match is None:
            comments += take_other(report, number, line)
            continue
        comm, pid_text, cpu, time, event, rest = match.groups()
        take = known.get(event)
        if take is None:
            report.skipped.append(Skipped(number, line, f"event {event} is not used"))
            continue
        pid = int(pid_text)
        names[pid] = comm
        try:
            take((float(time), pid, int(cpu), number), rest or "")
        except (KeyError, ValueError):
            problem = f"expected the fields of {event}, got {quote(rest or '')}; {CUT}"
            raise ReadError(source, number, problem) from None
    report.lines = number
    if not report.counts() and not comments:
        raise ReadError(source, 0, "holds no trace event; expected lines 'comm-pid [cpu] flags time: event: fields'")
    return report


def take_other(report: Report, number: int, line: str) -> bool:
    """Take a line that is no event; says whether it is a comment."""
    if line.startswith("#"):
        if written := _WRITTEN.match(line):
            report.lost += int(written[2]) - int(written[1])
        return True
    if lost := _LOST.match(line):
        report.lost += int(lost[1] or lost[2])
    elif line.strip():
        report.skipped.append(Skipped(number, line, "not a trace event"))
    return False


def takers(report: Report) -> dict[str, Taker]:
    """Return for each event the function that reads its fields into the report.

    They raise KeyError or ValueError, and leave the report as it is, where a field is not as in any kernel.
    """

    def hint_fault(head: Head, rest: str) -> None:
        match = _HINT.match(rest)
        if match is None:
            raise ValueError
        last, node, pages, flags = match.groups()
        report.hint_faults.append(HintFault(*head, int(last), int(node), int(pages), int(flags, 16)))

    def should_migrate(head: Head, rest: str) -> None:
        match = _ANSWER.match(rest)
        if match is None:
            raise ValueError
        report.should_migrate.append(ShouldMigrate(*head, int(match[1])))

    def migrate_task(head: Head, rest: str) -> None:
        # comm may hold blanks, so it is what stands before " pid="
        comm, _, tail = rest.strip().removeprefix("comm=").rpartition(" pid=")
        fields = dict(_FIELD.findall("pid=" + tail))
        pid, src, dst = (int(fields[key]) for key in ("pid", "orig_cpu", "dest_cpu"))
        report.migrate_tasks.append(MigrateTask(*head, comm, pid, src, dst))

    return {
        "hint_fault": hint_fault,
        "should_migrate": should_migrate,
        "sched_migrate_task": migrate_task,
        "sched_move_numa": lambda head, rest: report.moves.append(Move(*head, *_ints(rest, _MOVE))),
        "sched_swap_numa": lambda head, rest: report.swaps.append(Swap(*head, *_ints(rest, _SWAP))),
        "sched_stick_numa": lambda head, rest: report.sticks.append(_stick(head, rest)),
        "sched_skip_vma_numa": lambda head, rest: report.skipped_vmas.append(_skip_vma(head, rest)),
        "mm_migrate_pages": lambda head, rest: report.migrate_pages.append(_migrate_pages(head, rest)),
        "scan_work": lambda head, _rest: report.scan_works.append(ScanWork(*head)),
        "set_preferred": lambda head, rest: report.set_preferred.append(SetPreferred(*head, *_ints(rest, ("nid",)))),
        "page_fault_user": lambda head, rest: report.page_faults.append(_page_fault(head, rest)),
    }


_MOVE = ("pid", "tgid", "ngid", "src_cpu", "src_nid", "dst_cpu", "dst_nid")
_SWAP = tuple(f"{who}_{what}" for who in ("src", "dst") for what in ("pid", "tgid", "ngid", "cpu", "nid"))


def _ints(rest: str, names: tuple[str, ...]) -> tuple[int, ...]:
    fields = dict(_FIELD.findall(rest))
    values = tuple([int(fields[name]) for name in names])
    if max(values) >= _MOST:
        raise ValueError
    return values


def _stick(head: Head, rest: str) -> Stick:
    if "src_pid=" in rest:
        return Stick(*head, *_ints(rest, _SWAP))
    task, process, group, src_cpu, src_node, dst_cpu, dst_node = _ints(rest, _MOVE)
    return Stick(*head, task, process, group, src_cpu, src_node, -1, -1, -1, dst_cpu, dst_node)


def _skip_vma(head: Head, rest: str) -> SkipVma:
    fields = dict(_FIELD.findall(rest))
    offset, start, end = (int(fields[key], 16) for key in ("numa_scan_offset", "vm_start", "vm_end"))
    if not fields["reason"]:
        raise ValueError
    return SkipVma(*head, offset, start, end, fields["reason"])


def _migrate_pages(head: Head, rest: str) -> MigratePages:
    fields = dict(_FIELD.findall(rest))
    done, failed = int(fields["nr_succeeded"]), int(fields["nr_failed"])
    more = (int(fields.get(name, -1)) for name in ("nr_thp_succeeded", "nr_thp_failed", "nr_thp_split", "nr_split"))
    thp_done, thp_failed, thp_split, split = more
    return MigratePages(*head, done, failed, thp_done, thp_failed, thp_split, split, fields["mode"], fields["reason"])


def _page_fault(head: Head, rest: str) -> PageFault:
    fields = dict(_FIELD.findall(rest))
    return PageFault(*head, *(int(fields[key], 16) for key in ("address", "ip", "error_code")))
