"""Files of /proc and /sys: read once, or again and again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: One read takes most files whole; a longer one is read on.
_CHUNK = 1 << 14


class RecordError(ValueError):
    """The recording cannot be made as asked; the message says what to change."""


class Gone(Exception):
    """The process or task has ended."""


class File:
    """A file that is read again and again.

    It stays open while the system allows (a third of the cost of opening it each time); what is read of an open file
    is of the same task even if another has got its number.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                _gone(error)
                raise

    def read(self) -> bytes:
        """Read all of it.

        Raises
        ------
        Gone
            The task has ended.
        PermissionError
            Only others may read it.
        """
        try:
            if self._fd < 0:
                return whole(self._path)
            data = os.pread(self._fd, _CHUNK, 0)
            while data and len(data) % _CHUNK == 0 and (more := os.pread(self._fd, _CHUNK, len(data))):
                data += more
        except OSError as error:
            _gone(error)
            raise
        if not data:
            raise Gone
        return data

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _gone(error: OSError) -> None:
    """Turn the errors of a task that has ended into one."""
    if error.errno in (errno.ENOENT, errno.ESRCH):
        raise Gone from error


def whole(path: str | Path) -> bytes:
    """Read a file of any length.

    Raises
    ------
    Gone
        There is none, or its task has ended.
    PermissionError
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError as error:
        _gone(error)
        raise


def text(path: Path) -> str | None:
    """Read a small file without the blanks around it; None where there is none or it is not for this user."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def numbers(folder: Path) -> list[int]:
    """List the entries of a folder whose names are numbers, in ascending order.

    Raises
    ------
    Gone
        No such folder.
    """
    try:
        return sorted(int(name) for name in os.listdir(folder) if name.isdecimal())
    except OSError as error:
        _gone(error)
        raise
