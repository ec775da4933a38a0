"""Tasks and their statistics, as /proc shows them: what is read at each look, and what is kept between two."""

from __future__ import annotations

import os
from pathlib import Path

from numalab.record._procfs import File, Gone, numbers, whole

#: Flag of kernel threads, which have no memory of their own.
_PF_KTHREAD = 0x00200000
#: Where the NUMA part of /proc/PID/task/TID/sched begins, in the order in which they are printed.
_NUMA_PART = (b"\nmm->numa_scan_seq", b"\nnuma_pages_migrated", b"\nnuma_migrations", b"\nnuma_faults")
_RUN_TIME = b"\nse.sum_exec_runtime"
_ALLOWED = b"\nCpus_allowed_list:"
#: The CPUs a task may use are looked at in its first looks, when programs bind themselves, then every tenth time.
_FIRST_LOOKS, _EVERY = 3, 10


class Task:
    """One task.

    Attributes
    ----------
    tid : int
    line : bytes
        What the log says of it.
    threads, rss_pages, flags : int
        Of its process.
    """

    __slots__ = (
        "_allowed",
        "_looks",
        "_sched",
        "_stat",
        "_told",
        "_was",
        "flags",
        "line",
        "rss_pages",
        "threads",
        "tid",
    )

    def __init__(self, folder: str, pid: int, tid: int) -> None:
        self.tid = tid
        self.line = b""
        self.threads = self.rss_pages = self.flags = 0
        self._was = self._told = self._allowed = b""
        self._looks = 0
        self._stat = File(f"{folder}/stat")
        self._sched: File | None = None
        self.look(pid)

    def look(self, pid: int) -> None:
        """Read where it is.

        Raises
        ------
        Gone
        """
        raw = self._stat.read()
        if raw == self._was:
            return
        head, _, rest = raw.rpartition(b")")
        fields = rest.split()
        if len(fields) < 37:
            raise Gone
        name = b"_".join(head.partition(b"(")[2].split()) or b"?"
        self.flags, self.threads, self.rss_pages = int(fields[6]), int(fields[17]), int(fields[21])
        state, minor, user, system, cpu = fields[0], fields[7], fields[11], fields[12], fields[36]
        self.line = b"%d %d %s %s %s %s %s %s\n" % (pid, self.tid, state, cpu, user, system, minor, name)
        self._was = raw

    def statistics(self, folder: str) -> tuple[bytes, bool]:
        """Read its NUMA statistics: the lines to be kept, and whether they differ from the last.

        Raises
        ------
        Gone
        """
        if self._sched is None:
            self._sched = File(f"{folder}/sched")
        told = numa_part(self._sched.read())
        changed = told != self._told
        self._told = told
        return told, changed

    def allowed(self, folder: str) -> bytes:
        """Read which CPUs it may use, where that was not known or has changed; else, and where it is not said, empty.

        Raises
        ------
        Gone
        """
        self._looks += 1
        if self._looks > _FIRST_LOOKS and self._looks % _EVERY:
            return b""
        raw = whole(f"{folder}/status")
        start = raw.find(_ALLOWED) + len(_ALLOWED)
        told = raw[start : raw.find(b"\n", start)].strip() if start >= len(_ALLOWED) else b""
        if told == self._allowed:
            return b""
        self._allowed = told
        return told

    def close(self) -> None:
        """Close its files."""
        self._stat.close()
        if self._sched is not None:
            self._sched.close()


def numa_part(raw: bytes) -> bytes:
    """Cut a /proc/PID/sched to the time the task ran and the NUMA part; empty without one."""
    # the first hit is enough: looking for what is not there costs more than all the rest
    start = next((at for mark in _NUMA_PART if (at := raw.find(mark)) >= 0), -1)
    if start < 0:
        return b""
    run = raw.find(_RUN_TIME)
    ran = raw[run + 1 : raw.find(b"\n", run + 1) + 1] if run >= 0 else b""
    part = raw[start + 1 :]
    return ran + (part if part.endswith(b"\n") else part + b"\n")


class Process:
    """One process and its tasks.

    Raises
    ------
    Gone
        When it is made, or looked at, and has ended.
    """

    __slots__ = ("_folder", "pid", "tasks")

    def __init__(self, root: Path, pid: int) -> None:
        self.pid = pid
        self._folder = f"{root}/proc/{pid}"
        self.tasks = {pid: Task(self.task_folder(pid), pid, pid)}

    @property
    def leader(self) -> Task:
        """The task whose number the process has."""
        return self.tasks[self.pid]

    @property
    def of_kernel(self) -> bool:
        """It is a thread of the kernel."""
        return bool(self.leader.flags & _PF_KTHREAD)

    def task_folder(self, tid: int) -> str:
        """Where /proc shows a task."""
        return f"{self._folder}/task/{tid}"

    def look(self) -> list[bytes]:
        """Read where its tasks are: a line for each."""
        gone = False
        for tid, task in list(self.tasks.items()):
            try:
                task.look(self.pid)
            except Gone:
                if tid == self.pid:
                    raise
                self.tasks.pop(tid).close()
                gone = True
        if gone or self.leader.threads != len(self.tasks):
            self._find_tasks()
        return [task.line for task in self.tasks.values()]

    def _find_tasks(self) -> None:
        now = numbers(Path(self._folder) / "task")
        for tid in self.tasks.keys() - {self.pid, *now}:
            self.tasks.pop(tid).close()
        for tid in now:
            if tid not in self.tasks:
                try:
                    self.tasks[tid] = Task(self.task_folder(tid), self.pid, tid)
                except Gone:
                    continue

    def memory(self) -> bytes:
        """Read its numa_maps.

        Raises
        ------
        Gone
        PermissionError
            It is another user's.
        """
        return whole(f"{self._folder}/numa_maps")

    def close(self) -> None:
        """Close the files of its tasks."""
        for task in self.tasks.values():
            task.close()


def page_kb() -> int:
    """Return the size of a page of this machine, kB."""
    return os.sysconf("SC_PAGE_SIZE") // 1024
