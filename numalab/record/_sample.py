"""One interval of a recording, as the text that is appended to the log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from numalab.record._follow import Follow
from numalab.record._machine import Machine
from numalab.record._procfs import File, Gone, whole
from numalab.record._tasks import Process, Task, page_kb

#: What the recorder may use, of one CPU. Statistics and memory maps, which may be many and long, are looked at less
#: often than asked where they would use more than these shares of that; counters and places take the rest.
BUDGET, STATISTICS_SHARE, MEMORY_SHARE = 0.01, 0.45, 0.15
#: Processes and mappings below these are left out, kB and pages; at most so many processes, the largest.
SMALLEST_KB, SMALLEST_PAGES, MOST_PROCESSES = 4096, 256, 32

#: Counters of /proc/vmstat, and of a cgroup's memory.stat, that have to do with scans, faults and migrations.
_VMSTAT = re.compile(rb"(?m)^(?:numa_|pgmigrate|thp_migration|pgpromote|pgdemote|pgfault|pgmajfault)\w* \d+\n")
_NODE_MEMORY = re.compile(rb"(?m)^Node \d+ (?:MemTotal|MemFree): .*\n")
#: Rows of memory.numa_stat: version 2, and those of version 1 with the cgroups below.
_NUMA_STAT = re.compile(rb"(?m)^(?:anon|file|shmem|anon_thp|hierarchical_\w+=\d+)(?: N\d+=\d+)+\n")
_PAGES = re.compile(rb" N\d+=(\d+)")
_PAGE_KB = re.compile(rb" kernelpagesize_kB=(\d+)")


class Share:
    """A part of the work that may use a share of a CPU: it is put off until what it used fits.

    Attributes
    ----------
    looks, put_off : int
        Intervals in which it was done, and was not.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._ready = 0.0
        self.looks = self.put_off = 0

    def due(self, now: float, every: float) -> bool:
        """Tell whether it may be done now; a tenth of an interval is not waited for."""
        done = now + every / 10 >= self._ready
        self.looks += done
        self.put_off += not done
        return done

    def used(self, now: float, cpu_s: float) -> None:
        """Note what it used."""
        self._ready = now + cpu_s / self._share


class Sampler:
    """Looks at the machine and the processes followed.

    Parameters
    ----------
    root : Path
        Where /proc and /sys are.
    machine : Machine
    follow : Follow
    every : float
        Seconds between looks.
    budget : float
        What it may use, of one CPU.
    """

    def __init__(self, root: Path, machine: Machine, follow: Follow, every: float, budget: float = BUDGET) -> None:
        self._root, self._follow, self._every, self._budget = root, follow, every, budget
        self._vmstat = File(str(root / "proc/vmstat"))
        base = root / "sys/devices/system/node"
        self._node_files = [
            (node, File(str(base / f"node{node}/numastat")), File(str(base / f"node{node}/meminfo")))
            for node in machine.nodes
        ]
        self._processes: dict[int, Process] = {}
        self._ignored: set[int] = set()
        self._statistics, self._memory = Share(STATISTICS_SHARE * budget), Share(MEMORY_SHARE * budget)
        self._no_statistics = False
        self._large: dict[int, set[bytes]] = {}
        self._denied: set[int] = set()
        self._said: dict[str, None] = dict.fromkeys(machine.notes)
        self._unsaid = list(machine.notes)

    @property
    def notes(self) -> list[str]:
        """What was left out so far, and why."""
        return [*self._said, *self.late]

    def interval(self, at: float) -> tuple[bytes, bool]:
        """Look at everything.

        Parameters
        ----------
        at : float
            Seconds since the recording began.

        Returns
        -------
        bytes
            For the log.
        bool
            Whether any process can still come or stay.
        """
        stamp = b"@ %.6f kind=" % at
        out = [stamp + b"vmstat\n", *_VMSTAT.findall(self._vmstat.read())]
        if self._node_files:
            out += self._nodes(stamp)
        alive = self._look_at_processes()
        out.append(stamp + b"tasks\n")
        for process in list(self._processes.values()):
            try:
                out += process.look()
            except Gone:
                self._drop(process.pid)
        if self._follow.folder is not None:
            out += self._cgroup(stamp, self._follow.folder)
        if self._statistics.due(at, self._every):
            out += self._timed(self._statistics, at, self._of_tasks, stamp)
        if self._memory.due(at, self._every):
            out += self._timed(self._memory, at, self._maps, stamp)
        out += [stamp + b"note\n" + note.encode() + b"\n" for note in self._unsaid]
        self._unsaid.clear()
        out.append(stamp + b"end cpu_ms=%.3f\n" % (time.process_time() * 1e3))
        return b"".join(out), alive

    def _timed(self, share: Share, at: float, part: Callable[[bytes], list[bytes]], stamp: bytes) -> list[bytes]:
        """Do a part of the work, and note what it used."""
        before = time.thread_time()
        out = part(stamp)
        share.used(at, time.thread_time() - before)
        return out

    def say(self, note: str) -> None:
        """Note something that is left out, once."""
        if note not in self._said:
            self._said[note] = None
            self._unsaid.append(note)

    @property
    def late(self) -> list[str]:
        """What was looked at less often than asked."""
        parts = (("statistics of tasks", self._statistics), ("memory maps", self._memory))
        return [
            f"{name} were looked at {share.looks} times, not {share.looks + share.put_off}: more would have used over "
            f"{100 * self._budget:g} % of a CPU"
            for name, share in parts
            if share.put_off
        ]

    # ------------------------------------------------------------ nodes

    def _nodes(self, stamp: bytes) -> list[bytes]:
        counters, memory = [stamp + b"numastat\n"], [stamp + b"meminfo\n"]
        for node, numastat, meminfo in self._node_files:
            counters += [b"node%d\n" % node, numastat.read()]
            memory += _NODE_MEMORY.findall(meminfo.read())
        return [*counters, *memory]

    def _cgroup(self, stamp: bytes, folder: Path) -> list[bytes]:
        """Read the memory of the cgroup by node, and its own counters."""
        out: list[bytes] = []
        for kind, name, wanted in (
            (b"cgroup", "memory.numa_stat", _NUMA_STAT),
            (b"cgroup_stat", "memory.stat", _VMSTAT),
        ):
            try:
                lines = wanted.findall(whole(folder / name))
            except Gone:
                self.say(f"the cgroup has no {name}: it has no memory controller, or is gone")
                continue
            except PermissionError:
                self.say(f"the cgroup's {name} is left out: it needs root")
                continue
            out += (stamp, kind, b"\n", *lines) if lines else ()
        return out

    # ------------------------------------------------------------ processes

    def _look_at_processes(self) -> bool:
        """Find who has come and gone."""
        pids = self._follow.pids(self._root)
        now = set(pids or ())
        for pid in self._processes.keys() - now:
            self._drop(pid)
        self._ignored &= now
        for pid in sorted(now - self._processes.keys() - self._ignored):
            try:
                process = Process(self._root, pid)
            except Gone:
                continue
            except PermissionError:
                self._ignored.add(pid)
                self.say("some processes may not be looked at by this user at all; as root they can")
                continue
            if process.of_kernel:
                process.close()
                self._ignored.add(pid)
            else:
                self._processes[pid] = process
        return pids is not None

    def _drop(self, pid: int) -> None:
        self._processes.pop(pid).close()
        self._large.pop(pid, None)
        self._denied.discard(pid)

    # ------------------------------------------------------------ statistics

    def _of_tasks(self, stamp: bytes) -> list[bytes]:
        statistics = [] if self._no_statistics else self._numa_statistics(stamp)
        return [*statistics, *self._affinity(stamp)]

    def _affinity(self, stamp: bytes) -> list[bytes]:
        """Read which CPUs tasks may use, where that is new."""
        out: list[bytes] = []
        for process in self._processes.values():
            for tid, task in process.tasks.items():
                try:
                    told = task.allowed(process.task_folder(tid))
                except (Gone, PermissionError):
                    # ended, or shown to its user only: then it counts as unknown
                    continue
                out += [b"%d %s\n" % (tid, told)] if told else []
        return [stamp, b"affinity\n", *out] if out else []

    def _numa_statistics(self, stamp: bytes) -> list[bytes]:
        """Read the NUMA statistics of all tasks; those unchanged are only named."""
        out: list[bytes] = []
        same: list[int] = []
        for process in self._processes.values():
            for tid, task in process.tasks.items():
                told, changed = self._statistics_of(process, task)
                if self._no_statistics:
                    return []
                if told and changed:
                    out += (stamp, b"sched pid=%d tid=%d\n" % (process.pid, tid), told)
                elif told:
                    same.append(tid)
        if same:
            out += (stamp, b"same\n", " ".join(map(str, same)).encode(), b"\n")
        return out

    def _statistics_of(self, process: Process, task: Task) -> tuple[bytes, bool]:
        try:
            told, changed = task.statistics(process.task_folder(task.tid))
        except Gone:
            # ended, or there is no such file in this kernel: then its place can still be read
            if not self._shown(process, task):
                return b"", False
            told, changed = b"", True
        except PermissionError:
            self.say(f"statistics of tasks of other users are left out: /proc/{process.pid}/sched needs root")
            return b"", False
        if not told:
            self._no_statistics = True
            self.say("this kernel shows no NUMA statistics of tasks in /proc/PID/sched: they are left out")
        return told, changed

    def _shown(self, process: Process, task: Task) -> bool:
        try:
            task.look(process.pid)
        except Gone:
            return False
        return True

    # ------------------------------------------------------------ memory

    def _maps(self, stamp: bytes) -> list[bytes]:
        """Read the large mappings of the large processes, one after the other."""
        out: list[bytes] = []
        for pid in self._large_processes():
            process = self._processes[pid]
            try:
                lines, below, above = self._large_mappings(pid, process.memory())
            except Gone:
                continue
            except PermissionError:
                self._denied.add(pid)
                self._large.pop(pid)
                self.say("memory maps of other users' processes are left out: /proc/PID/numa_maps needs root")
                continue
            name = process.leader.line.split()[-1].replace(b"=", b"_")
            head = b"numa_maps pid=%d comm=%s below=%d above=%d\n" % (pid, name, below, above)
            out += (stamp, head, *lines)
        return out

    def _large_processes(self) -> list[int]:
        """Choose the largest; who was chosen stays, so that memory does not seem to vanish."""
        page = page_kb()
        sizes = {
            pid: process.leader.rss_pages * page
            for pid, process in self._processes.items()
            if pid not in self._large and pid not in self._denied and process.leader.rss_pages * page >= SMALLEST_KB
        }
        new = sorted(sizes, key=lambda pid: -sizes[pid])
        room = MOST_PROCESSES - len(self._large)
        if len(new) > room:
            self.say(f"memory maps of the {MOST_PROCESSES} largest processes are read, not of those below")
        for pid in new[:room]:
            self._large[pid] = set()
        return list(self._large)

    def _large_mappings(self, pid: int, maps: bytes) -> tuple[list[bytes], int, int]:
        """Return the lines of the large mappings, and how many small ones with written pages lie on either side.

        Since 6.4 the scanner goes by areas, so how many there are beside the largest tells how often it comes to that.
        """
        known = self._large[pid]
        lines, small, most, largest = [], [], 0, 0
        for number, line in enumerate(maps.splitlines(keepends=True)):
            start, pages = line[: line.find(b" ")], _pages(line)
            if start in known or pages >= SMALLEST_PAGES:
                known.add(start)
                lines.append(line)
                if pages > most:
                    most, largest = pages, number
            elif b" anon=" in line:
                small.append(number)
        below = sum(number < largest for number in small)
        return lines, below, len(small) - below


def _pages(line: bytes) -> int:
    """Count the pages of 4 KiB of a line of numa_maps."""
    total = sum(map(int, _PAGES.findall(line)))
    size = _PAGE_KB.search(line)
    return total * int(size[1]) // 4 if size else total
