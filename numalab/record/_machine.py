"""What does not change while a recording lasts: the kernel, its settings, the nodes; and what they leave out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numalab import __version__
from numalab.record._procfs import text

#: Raised by one when the log changes so that older readers cannot take it.
VERSION = 1

#: Where kernels keep the settings that matter here: before 5.13 all below /proc/sys/kernel, then some in debugfs.
_SETTINGS = (
    "proc/sys/kernel/numa_balancing*",
    "proc/sys/kernel/sched_migration_cost_ns",
    "proc/sys/vm/zone_reclaim_mode",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/numa/demotion_enabled",
    "sys/kernel/debug/sched/migration_cost_ns",
    "sys/kernel/debug/sched/numa_balancing/*",
)
_DEBUG = "sys/kernel/debug"


@dataclass
class Machine:
    """The machine as it is when the recording begins.

    Attributes
    ----------
    nodes : list of int
        Online nodes; empty without NUMA in the kernel.
    files : dict
        Path -> text of the files cpulist and distance.
    release : str
    sysctl : dict
        Setting -> value as printed.
    notes : list of str
        What there is not, and why.
    """

    nodes: list[int]
    files: dict[str, str]
    release: str
    sysctl: dict[str, str]
    notes: list[str] = field(default_factory=list)


def look(root: Path) -> Machine:
    """Look at the machine whose /proc and /sys are below a folder."""
    base = root / "sys/devices/system/node"
    nodes = sorted(int(path.name[4:]) for path in base.glob("node[0-9]*"))
    files = {
        f"/sys/devices/system/node/node{node}/{name}": told
        for node in nodes
        for name in ("cpulist", "distance")
        if (told := text(base / f"node{node}" / name)) is not None
    }
    release = text(root / "proc/sys/kernel/osrelease") or os.uname().release
    machine = Machine(nodes, files, release, _settings(root))
    machine.notes = _remarks(machine, root)
    return machine


def _settings(root: Path) -> dict[str, str]:
    """Read the settings there are; those in debugfs are named as /proc/sys once named them."""
    found: dict[str, str] = {}
    for pattern in _SETTINGS:
        try:
            paths = sorted(root.glob(pattern))
        except OSError:
            continue
        for path in paths:
            if path.is_file() and (told := text(path)) is not None:
                name = f"numa_balancing_{path.name}" if path.parent.name == "numa_balancing" else path.name
                found["transparent_hugepage" if path.name == "enabled" else name] = told
    return found


def _remarks(machine: Machine, root: Path) -> list[str]:
    """Say what cannot be recorded here, and why; what needs root is named."""
    notes = []
    if not machine.nodes:
        notes.append("this kernel shows no NUMA nodes (/sys/devices/system/node): counters of nodes are left out")
    elif len(machine.nodes) == 1:
        notes.append("this machine has one NUMA node, so nothing can be migrated between nodes")
    balancing = machine.sysctl.get("numa_balancing")
    if balancing is None:
        notes.append("this kernel has no NUMA balancing (/proc/sys/kernel/numa_balancing is missing)")
    elif balancing == "0":
        notes.append("NUMA balancing is off; as root: sysctl kernel.numa_balancing=1")
    known = {name for name in machine.sysctl if name.startswith("numa_balancing_scan")}
    if balancing is not None and not known:
        notes.append(f"settings of the scanner are left out: {_why_no_debugfs(root)}")
    return notes


def _why_no_debugfs(root: Path) -> str:
    folder = root / _DEBUG
    if not os.access(folder, os.R_OK | os.X_OK):
        return f"they are in /{_DEBUG}/sched, which needs root"
    return f"no /{_DEBUG}/sched/numa_balancing (as root: mount -t debugfs none /{_DEBUG})"


def head(machine: Machine, what: str, every: float, asked: float | None, command: list[str]) -> dict[str, Any]:
    """Return what the log says of itself in its first record."""
    return {
        "version": VERSION,
        "numalab": __version__,
        "began": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "host": os.uname().nodename,
        "release": machine.release,
        "what": what,
        "command": command,
        "every_s": every,
        "asked_s": asked,
        "user": os.geteuid(),
        "ticks_per_s": os.sysconf("SC_CLK_TCK"),
        "sysctl": machine.sysctl,
    }
