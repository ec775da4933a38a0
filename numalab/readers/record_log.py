"""Reader of the log of ``numalab record``, whose form `numalab.record` describes.

Whole intervals only: what stands after the last line ``kind=end`` was being written when the recorder was killed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from numalab.readers import memcg, meminfo, node_numastat, numa_maps, numactl, sched, vmstat
from numalab.readers._text import CUT, ReadError, Skipped, quote
from numalab.readers.tasks import Row

#: The version of the log that this reader knows.
VERSION = 1
#: Kinds whose readers take logs: the lines of all others are blank in their texts, so line numbers stay.
LOGS = ("vmstat", "numastat", "sched", "numa_maps", "cgroup_stat")

_FIRST = re.compile(r"@ 0\.0+ kind=record$")
_STAMP = re.compile(r"@ (\d+\.\d+) kind=(\w+)(.*)$")
_TASK = re.compile(r"(\d+) (\d+) (\S) (\d+) (\d+) (\d+) (\d+) (\S+)$")
_ALLOWED = re.compile(r"(\d+) (\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)$")
_CPU = re.compile(r" cpu_ms=(\d+\.\d+)$")


@dataclass
class Report:
    """What a log held.

    Attributes
    ----------
    source : str
    lines : int
    head : dict
        What the log says of itself.
    machine : numactl.Sample or None
        Nodes, their CPUs and distances.
    times : list of float
        Seconds of each interval.
    counters : vmstat.Report or None
    nodes : node_numastat.Report or None
    memory : list of dict
        For each interval node -> MemTotal and MemFree, kB.
    rows : list of tasks.Row
    stats : list of sched.Task
        Those that did not change are repeated at each look.
    maps : numa_maps.Report or None
    affinity : list of (time, tid, CPUs)
        Which CPUs a task may use, from then on.
    cgroup : list of (time, node counts)
        Of the cgroup that was followed: what memory.numa_stat printed.
    cgroup_counters : vmstat.Report or None
        Its own counters, where the kernel has such.
    notes : list of (line, text)
        What the recorder left out, and why.
    cpu_ms : list of float
        What the recorder had used at the end of each interval.
    stop : str
        Why it ended; empty when it was killed.
    skipped : list of Skipped
    """

    source: str
    lines: int
    head: dict[str, Any] = field(default_factory=dict)
    machine: numactl.Sample | None = None
    times: list[float] = field(default_factory=list)
    counters: vmstat.Report | None = None
    nodes: node_numastat.Report | None = None
    memory: list[dict[int, dict[str, int]]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    stats: list[sched.Task] = field(default_factory=list)
    swapped: bool = False
    maps: numa_maps.Report | None = None
    affinity: list[tuple[float, int, frozenset[int]]] = field(default_factory=list)
    cgroup: list[tuple[float, memcg.Sample]] = field(default_factory=list)
    cgroup_counters: vmstat.Report | None = None
    notes: list[tuple[int, str]] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    stop: str = ""
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def node_of(self) -> dict[int, int]:
        """CPU -> node, as far as the machine says."""
        cpus = self.machine.cpus if self.machine else {}
        return {cpu: node for node, own in cpus.items() for cpu in own}


def looks_like(text: str) -> bool:
    """Tell whether a text is such a log."""
    return _FIRST.match(text.lstrip().partition("\n")[0]) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read a log.

    Raises
    ------
    ReadError
        No such log, of another version, without one whole interval, or with a record that is broken.
    """
    lines = text.split("\n")
    report = Report(source, len(text.splitlines()))
    _cut(report, lines)
    parts = _Parts(report, len(lines))
    for number, line in enumerate(lines, 1):
        parts.take(number, line)
    if not report.head:
        raise ReadError(
            source, 1, "expected '@ 0.000000 kind=record' and a line of JSON; is this a log of numalab record?"
        )
    parts.finish()
    return report


def _cut(report: Report, lines: list[str]) -> None:
    """Take away what follows the last whole interval."""
    ends = [i for i, line in enumerate(lines) if (stamp := _STAMP.match(line)) and stamp[2] in ("end", "stop")]
    if not ends:
        raise ReadError(
            report.source, 0, "holds no whole interval ('@ <seconds> kind=end'); the recording was too short"
        )
    # the line below a stop says why
    last = ends[-1] + (2 if " kind=stop" in lines[ends[-1]] else 1)
    why = "after the last whole interval: the recorder was killed while it wrote"
    report.skipped += [Skipped(i, line, why) for i, line in enumerate(lines[last:], last + 1) if line.strip()]
    del lines[last:]


class _Titled(Protocol):
    skipped: list[Skipped]
    titles: list[tuple[int, str]]


_Pasted = TypeVar("_Pasted", bound=_Titled)


def _at(number: int, line: str, before: list[str]) -> list[str]:
    """Return what puts a line where it has its number: blank lines, and the line."""
    return [""] * (number - 1 - len(before)) + [line]


class _Parts:
    """State while reading: the texts of each kind, and the stamp that lines stand below."""

    def __init__(self, report: Report, count: int) -> None:
        self.report = report
        self.time, self.kind = 0.0, ""
        self.texts = {kind: [""] * count for kind in LOGS}
        self.topology: list[str] = []
        self.meminfo: list[str] = []
        #: Time, and tasks whose statistics are the same as before.
        self.same: list[tuple[float, int, list[int]]] = []
        #: Time, line and text of each look at the memory of a cgroup.
        self.cgroup: list[tuple[float, int, list[str]]] = []

    def fail(self, number: int, problem: str) -> ReadError:
        return ReadError(self.report.source, number, f"{problem}; {CUT}")

    def take(self, number: int, line: str) -> None:
        if line.startswith("@"):
            stamp = _STAMP.match(line)
            if stamp is None or float(stamp[1]) < self.time:
                raise self.fail(
                    number, f"expected '@ <seconds> kind=<kind>', not earlier than before, got {quote(line)}"
                )
            self.time, self.kind = float(stamp[1]), stamp[2]
            if self.kind in LOGS:
                self.texts[self.kind][number - 1] = f"@ {stamp[1]}{stamp[3]}"
            elif self.kind == "cgroup":
                self.cgroup.append((self.time, number, []))
            elif self.kind == "end":
                cpu = _CPU.match(stamp[3])
                self.report.times.append(self.time)
                self.report.cpu_ms.append(float(cpu[1]) if cpu else float("nan"))
        elif self.kind in LOGS:
            self.texts[self.kind][number - 1] = line
        elif line.strip():
            self.other(number, line)

    def other(self, number: int, line: str) -> None:
        if self.kind == "record":
            self.report.head = self.read_head(number, line)
        elif self.kind == "topology":
            self.topology += _at(number, line, self.topology)
        elif self.kind == "meminfo":
            self.meminfo += _at(number, line, self.meminfo)
        elif self.kind == "tasks":
            self.task(number, line)
        elif self.kind == "same" and all(word.isdecimal() for word in line.split()):
            self.same.append((self.time, number, [int(word) for word in line.split()]))
        elif self.kind == "affinity":
            self.affinity(number, line)
        elif self.kind == "cgroup":
            self.cgroup[-1][2].append(line)
        elif self.kind == "note":
            self.report.notes.append((number, line))
        elif self.kind == "stop":
            self.report.stop = line
        else:
            raise self.fail(number, f"expected a line of kind {self.kind or 'record'}, got {quote(line)}")

    def read_head(self, number: int, line: str) -> dict[str, Any]:
        try:
            head = json.loads(line)
        except json.JSONDecodeError as error:
            raise self.fail(number, f"expected one line of JSON ({error.msg})") from error
        if not isinstance(head, dict) or not isinstance(head.get("release"), str):
            raise self.fail(number, "expected an object of JSON with the kernel's release")
        if head.get("version") != VERSION:
            found = head.get("version")
            raise ReadError(
                self.report.source, number, f"is of version {found!r}, this numalab reads {VERSION}; update it"
            )
        return head

    def task(self, number: int, line: str) -> None:
        match = _TASK.match(line)
        if match is None:
            raise self.fail(number, f"expected pid, tid, state, CPU, user, system, faults and name, got {quote(line)}")
        pid, tid, cpu, user, system, minor = map(int, match.group(1, 2, 4, 5, 6, 7))
        # the node follows once the machine is known
        self.report.rows.append(
            Row(self.time, pid, tid, match[8], match[3], cpu, -1, user, system, minor, -1, -1, number)
        )

    def affinity(self, number: int, line: str) -> None:
        match = _ALLOWED.match(line)
        if match is None:
            raise self.fail(number, f"expected tid and a list of CPUs, got {quote(line)}")
        cpus: set[int] = set()
        for part in match[2].split(","):
            first, _, last = part.partition("-")
            cpus |= set(range(int(first), int(last or first) + 1))
        self.report.affinity.append((self.time, int(match[1]), frozenset(cpus)))

    # ------------------------------------------------------------ the readers of each kind

    def text(self, kind: str) -> str:
        return "\n".join(self.texts[kind]) if any(self.texts[kind]) else ""

    def finish(self) -> None:
        report, source = self.report, self.report.source
        if self.topology:
            machines = self.whole(numactl.parse("\n".join(self.topology), source)).samples
            if len(machines) > 1:
                raise self.fail(machines[1].line, "expected the files of each node once")
            report.machine = machines[0]
        if text := self.text("vmstat"):
            report.counters = vmstat.parse(text, source)
        if text := self.text("numastat"):
            report.nodes = node_numastat.parse(text, source)
        if self.meminfo:
            report.memory = self.whole(meminfo.parse("\n".join(self.meminfo), source)).samples
            if len(report.memory) != len(report.times):
                looks, times = len(report.memory), len(report.times)
                report.notes.append((0, f"memory of nodes was seen {looks} times in {times} intervals: left out"))
        if text := self.text("sched"):
            stats = sched.parse(text, source, report.head["release"])
            report.stats, report.swapped = self.repeated(stats.tasks), stats.swapped
            report.skipped += stats.skipped
        if "pid=" in (text := self.text("numa_maps")) and re.search(r"(?m)^[0-9a-f]", text):
            report.maps = numa_maps.parse(text, source)
        if text := self.text("cgroup_stat"):
            report.cgroup_counters = vmstat.parse(text, source)
        for time, number, lines in self.cgroup:
            try:
                report.cgroup.append((time, self.whole(memcg.parse("\n".join(lines), source), number).samples[0]))
            except ReadError as error:
                raise self.fail(number + error.line, error.problem.removesuffix(f"; {CUT}")) from error
        node_of = report.node_of
        report.rows = [row._replace(node=node_of.get(row.cpu, -1)) for row in report.rows]

    def whole(self, found: _Pasted, above: int = 0) -> _Pasted:
        """Report what a reader of pastes did not use or took for a title: here both are foreign."""
        titles = [Skipped(line, text, "not a line of a log of numalab record") for line, text in found.titles]
        self.report.skipped += [replace(skip, line=skip.line + above) for skip in (*found.skipped, *titles)]
        return found

    def repeated(self, found: list[sched.Task]) -> list[sched.Task]:
        """Add what did not change at each look, in the order of time."""
        names = {row.tid: row.comm for row in self.report.rows}
        events: list[tuple[float, int, sched.Task | list[int]]] = [
            (task.time or 0.0, task.line, task) for task in found
        ]
        events += self.same
        latest: dict[int, sched.Task] = {}
        out: list[sched.Task] = []
        for time, line, what in sorted(events, key=lambda event: event[:2]):
            if isinstance(what, sched.Task):
                latest[what.tid] = replace(what, comm=names.get(what.tid, ""))
                out.append(latest[what.tid])
                continue
            for tid in what:
                if tid not in latest:
                    raise self.fail(line, f"task {tid} is named as unchanged, but was never shown")
                out.append(replace(latest[tid], time=time))
        return out
