"""Which processes are recorded: all, some and their descendants, those of a cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from numalab.record._procfs import Gone, RecordError, numbers, whole


class Follow(Protocol):
    """A choice of processes.

    Attributes
    ----------
    what : str
        For people.
    folder : Path or None
        Of the cgroup, if it is one.
    """

    what: str
    folder: Path | None

    def pids(self, root: Path) -> list[int] | None:
        """Return those alive; None when no other can come any more, so that the recording is over."""


class Everything:
    """All processes of the machine that this user sees, without the recorder itself."""

    what = "all processes"
    folder: Path | None = None

    def pids(self, root: Path) -> list[int]:
        """Return those alive."""
        own = os.getpid()
        return [pid for pid in numbers(root / "proc") if pid != own]


class Tree:
    """Some processes and their descendants.

    A process whose parent comes and ends between two looks belongs to nobody's tree, and is missed.
    """

    folder: Path | None = None

    def __init__(self, roots: Iterable[int], what: str = "") -> None:
        self._roots = set(roots)
        self._ours: set[int] = set()
        self._others: set[int] = set()
        self.what = what or f"process {', '.join(map(str, sorted(self._roots)))} and descendants"

    @classmethod
    def of_command(cls, command: Sequence[str]) -> Tree:
        """Return the tree of a command that is yet to be started."""
        return cls((), " ".join(command))

    def add(self, pid: int) -> None:
        """Follow a further process."""
        self._roots.add(pid)

    def pids(self, root: Path) -> list[int] | None:
        """Return those alive; None when all have ended.

        Only processes that were not there at the last look are asked for their parent.
        """
        alive = set(numbers(root / "proc"))
        self._ours = (self._ours | self._roots) & alive
        self._others &= alive
        parents = {pid: _parent(root, pid) for pid in alive - self._ours - self._others}
        while new := {pid for pid, parent in parents.items() if parent in self._ours} - self._ours:
            self._ours |= new
        self._others |= parents.keys() - self._ours
        return sorted(self._ours) or None


def _parent(root: Path, pid: int) -> int:
    """Return the parent of a process, 0 if it has ended."""
    try:
        return int(whole(root / "proc" / str(pid) / "stat").rpartition(b")")[2].split()[1])
    except (Gone, PermissionError, IndexError):
        return 0


class Cgroup:
    """The processes of a cgroup and of those below it.

    Parameters
    ----------
    name : str
        A folder, or its path below /sys/fs/cgroup.
    root : Path
        Where /sys is.

    Raises
    ------
    RecordError
        No such cgroup.
    """

    def __init__(self, name: str, root: Path = Path("/")) -> None:
        base = root / "sys/fs/cgroup"
        below = base / name.removeprefix("/sys/fs/cgroup").lstrip("/")
        self.folder: Path | None = next(
            (path for path in (below, Path(name)) if (path / "cgroup.procs").is_file()), None
        )
        if self.folder is None:
            raise RecordError(f"{name}: expected a cgroup, a folder below {base} with a file cgroup.procs")
        self.what = f"cgroup {name}"

    def pids(self, root: Path) -> list[int] | None:
        """Return those alive; None when there are none, or the cgroup is gone."""
        assert self.folder is not None
        found: set[int] = set()
        for folder, _, _ in os.walk(self.folder):
            try:
                found |= {int(line) for line in whole(Path(folder) / "cgroup.procs").split()}
            except (Gone, OSError):
                # removed meanwhile, or a threaded cgroup, whose processes are listed above it
                continue
        # 0 stands for processes of another pid namespace
        return sorted(found - {0}) or None
