"""Reader of the NUMA part of /proc/PID/sched, and of a few lines before it.

Three grammars. Linux 3.14 prints ``numa_faults, i, node, cpu_current, home_node, faults`` per node and
kind (i: 0 shared, 1 private), 3.16 and 3.19 the same as ``numa_faults_memory``, both after
``numa_migrations, n`` (which reading resets). 4.15 to 6.18 print ``numa_pages_migrated``,
``numa_preferred_nid``, ``total_numa_faults``, ``current_node=, numa_group_id=`` and per node
``numa_faults node= task_private= task_shared= group_private= group_shared=``. Kernels before 4.19 with
that grammar (read in 4.15) print the private count under ``..._shared`` and the reverse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from numalab.readers._numbers import ungrouped
from numalab.readers._placed import Placed, placed, unwrapped
from numalab.readers._text import CUT, FromText, ReadError, Skipped, quote, records

_HEAD = re.compile(r"(?P<comm>.*) \((?P<tid>\d{1,10}), #threads: (?P<threads>\d{1,10})\)\s*$")
_VALUE = re.compile(r"([A-Za-z][\w.>-]*(?: [\w()/]+)*)\s*:\s*(-?\d{1,18}(?:\.\d{1,18})?)$")
_PLACE = re.compile(r"current_node=(-?\d{1,6}), numa_group_id=(\d{1,9})\s*$")
_NEW = re.compile(
    r"numa_faults node=(\d{1,6}) task_private=(\d{1,18}) task_shared=(\d{1,18})"
    r" group_private=(\d{1,18}) group_shared=(\d{1,18})\s*$"
)
_OLD = re.compile(r"numa_faults(?:_memory)?, ([01]), (\d{1,6}), ([01]), ([01]), (-?\d{1,18})\s*$")
_OLD_MOVES = re.compile(r"numa_migrations, (-?\d{1,18})\s*$")
_RULE = re.compile(r"-+\s*$")
#: The rest of a line of faults that was wrapped.
_REST = re.compile(r"(?:(?:task_shared|group_private|group_shared)=\d+\s*)+$")
#: Lines of this file and of no other.
_KNOWN = re.compile(
    r"numa_faults node=\d|numa_faults(?:_memory)?, [01], |current_node=-?\d|.* \(\d+, #threads: \d+\)\s*$"
    r"|(?:total_numa_faults|numa_preferred_nid|mm->numa_scan_seq|se\.sum_exec_runtime)\s*:"
)
_PID = re.compile(r"/proc/(\d+)/(?:task/(\d+)/)?sched")


class NodeFaults(NamedTuple):
    """Decayed fault counts of one node; group -1 when not printed."""

    private: int
    shared: int
    group_private: int = -1
    group_shared: int = -1


@dataclass
class Task:
    """One task at one moment.

    Attributes
    ----------
    time : float or None
        Seconds, from the stamp.
    pid, tid : int
        pid from the stamp, -1 without.
    comm : str
    line : int
    values : dict
        All lines ``name : value`` as printed, such as ``se.sum_exec_runtime`` (ms).
    node, group : int or None
        Node of the CPU; NUMA group, 0 for none. None when not printed.
    faults : dict
        Node -> `NodeFaults`.
    """

    time: float | None
    pid: int
    tid: int
    comm: str
    line: int
    values: dict[str, float] = field(default_factory=dict)
    node: int | None = None
    group: int | None = None
    faults: dict[int, NodeFaults] = field(default_factory=dict)

    def whole(self, name: str) -> int | None:
        """Return a value that is a whole number; None when it was not printed."""
        value = self.values.get(name)
        return None if value is None else int(value)

    @property
    def preferred(self) -> int | None:
        """Preferred node, -1 for none; None when not printed."""
        return self.whole("numa_preferred_nid")

    @property
    def scan_seq(self) -> int | None:
        """Completed scans of the address space; None when not printed."""
        return self.whole("mm->numa_scan_seq")

    @property
    def total(self) -> int | None:
        """Sum of the decayed faults as the kernel keeps it; None when not printed."""
        return self.whole("total_numa_faults")


@dataclass
class Report(FromText):
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    tasks : list of Task
        In the order of the text.
    swapped : bool
        Private and shared were exchanged back, because the kernel prints them exchanged.
    skipped : list of Skipped
    """

    tasks: list[Task] = field(default_factory=list)
    swapped: bool = False


def looks_like(text: str) -> bool:
    """Tell whether a text holds a /proc/PID/sched."""
    return any(is_known(line) for line in placed(text))


def is_known(line: Placed) -> bool:
    """Tell whether a line is of this file and of no other."""
    return not line.heading and _KNOWN.match(line.text.lstrip()) is not None


def is_row(line: Placed) -> bool:
    """Tell whether a line may belong to this file."""
    text = line.text.lstrip()
    return not line.heading and (_value(text) or _RULE.match(text) or _faults(text) or _KNOWN.match(text)) is not None


def prints_swapped(release: str) -> bool:
    """Tell whether a kernel prints private and shared faults exchanged.

    Parameters
    ----------
    release : str
        As ``uname -r`` has it, such as "4.15.0-213-generic".

    Raises
    ------
    ReadError
        When it does not begin with two numbers.
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    if match is None:
        raise ReadError("release", 0, f"expected something like 4.15.0 (uname -r), got {release!r}")
    # Only the grammar with names (4.x) is concerned; 3.x tells the kind by number.
    return (4, 0) <= (int(match[1]), int(match[2])) < (4, 19)


def parse(text: str, source: str = "<text>", release: str | None = None) -> Report:
    """Read one /proc/PID/sched, several, or a log after stamps ``@ <seconds> pid=<n> tid=<n>``.

    Parameters
    ----------
    text : str
    source : str
    release : str, optional
        Kernel release, for `prints_swapped`. Without it the names are taken at their word.

    Raises
    ------
    ReadError
        No such text; a NUMA part that breaks off; a task with other nodes than the first.
    """
    swapped = release is not None and prints_swapped(release)
    report = Report(source, len(text.splitlines()), swapped=swapped)
    if re.search(r"(?m)^@", text):
        _read_log(report, text)
    else:
        _read_paste(report, placed(text, source))
    _check(report)
    return report


def _read_log(report: Report, text: str) -> None:
    for record in records(text, report.source):
        pid, tid = (record.fields.get(key, "") for key in ("pid", "tid"))
        if not (pid.isdecimal() and tid.isdecimal()):
            raise ReadError(report.source, record.line, "expected '@ <seconds> pid=<n> tid=<n>'")
        task = Task(record.time, int(pid), int(tid), "", record.line)
        report.tasks.append(task)
        for number, line in record.lines:
            if head := _HEAD.match(line):
                task.comm = head["comm"]
            else:
                _take(report, task, number, line)


def _read_paste(report: Report, every: list[Placed]) -> None:
    """Read the files of one or more tasks: a head, the name of a file or a value that comes again begins the next."""
    task: Task | None = None
    file, pid, tid = "", -1, -1
    for line in unwrapped(every, _goes_on):
        text = line.text.strip()
        if line.heading or line.file != file:
            named = _PID.search(line.file)
            file, pid = line.file, int(named[1]) if named else -1
            task, tid = None, int(named[2] or named[1]) if named else -1
        if line.heading:
            continue
        if head := _HEAD.match(text):
            task = Task(None, pid, int(head["tid"]), head["comm"], line.number)
            report.tasks.append(task)
        elif not text:
            continue
        elif task is None and not is_row(line):
            report.skipped.append(Skipped(line.number, line.text, "not a line of /proc/PID/sched"))
        else:
            value, faults = _value(text), _NEW.match(text)
            again = task and ((value and value[1] in task.values) or (faults and int(faults[1]) in task.faults))
            if task is None or again:  # a paste that begins below the head
                task = Task(None, pid, tid, "", line.number)
                report.tasks.append(task)
            _take(report, task, line.number, text)
    # tasks of which the text does not say who they are
    unknown = [task for task in report.tasks if task.tid < 0]
    for number, task in enumerate(unknown, 1):
        task.tid = -number


def _value(text: str) -> re.Match[str] | None:
    return _VALUE.match(ungrouped(text))


def _goes_on(text: str, rest: str) -> bool:
    return text.lstrip().startswith("numa_faults node=") and "group_shared=" not in text and bool(_REST.match(rest))


def _faults(line: str) -> re.Match[str] | None:
    return _NEW.match(line) or _OLD.match(line) or _OLD_MOVES.match(line)


def _take(report: Report, task: Task, number: int, line: str) -> None:
    if value := _value(line):
        task.values[value[1]] = float(value[2])
    elif place := _PLACE.match(line):
        task.node, task.group = int(place[1]), int(place[2])
    elif new := _NEW.match(line):
        node, private, shared, group_private, group_shared = map(int, new.groups())
        if report.swapped:
            private, shared, group_private, group_shared = shared, private, group_shared, group_private
        if node in task.faults:
            raise ReadError(report.source, number, f"numa_faults of node {node} for the second time; {CUT}")
        task.faults[node] = NodeFaults(private, shared, group_private, group_shared)
    elif old := _OLD.match(line):
        _take_old(task, *map(int, old.groups()))
    elif moves := _OLD_MOVES.match(line):
        task.values["numa_migrations"] = float(moves[1])
    elif line.startswith(("numa_faults", "current_node", "numa_migrations")):
        raise ReadError(report.source, number, f"expected a whole line of the NUMA part, got {quote(line)}; {CUT}")
    elif not _RULE.match(line):
        report.skipped.append(Skipped(number, line, "not a line of /proc/PID/sched"))


def _take_old(task: Task, kind: int, node: int, flag: int, home: int, count: int) -> None:
    # -1 stands for "no array yet"
    before = task.faults.get(node, NodeFaults(0, 0))
    task.values.setdefault("numa_preferred_nid", -1.0)
    count = max(count, 0)
    task.faults[node] = before._replace(shared=count) if kind == 0 else before._replace(private=count)
    if kind == 0 and flag:
        task.node = node
    if home:
        task.values["numa_preferred_nid"] = float(node)


def _check(report: Report) -> None:
    if not report.tasks:
        raise ReadError(
            report.source, 0, "holds no /proc/PID/sched; expected 'comm (tid, #threads: n)' and lines 'name : value'"
        )
    told = [task for task in report.tasks if task.faults]
    nodes = set(told[0].faults) if told else set()
    stamped = told and told[0].time is not None
    for task in report.tasks:
        began = task.faults or task.node is not None or task.total is not None
        if (began or stamped) and set(task.faults) != nodes:
            have = ", ".join(map(str, sorted(task.faults))) or "none"
            problem = f"task {task.tid} has numa_faults of nodes {have}, the first task of {sorted(nodes)}; {CUT}"
            raise ReadError(report.source, task.line, problem)
    if not told:
        first = report.tasks[0]
        report.skipped.append(Skipped(first.line, first.comm, "no NUMA part: the kernel has no NUMA balancing"))
