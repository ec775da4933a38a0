"""The children of this process: what a test starts must be gone when it ends."""

import os
from pathlib import Path


def children() -> set[int]:
    """Return the ids of this process' children, the dead that nobody waited for among them.

    Other tests may have left one that stays, as multiprocessing's resource tracker does.
    """
    return {int(child) for thread in _threads() for child in (thread / "children").read_text().split()}


def _threads() -> list[Path]:
    return [thread for thread in Path(f"/proc/{os.getpid()}/task").iterdir() if (thread / "children").exists()]
