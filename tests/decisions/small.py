"""Run folders of a few events, written by hand: two nodes of two CPUs, the work begins at 0 s."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MIGRATED, NO_GROUP, SHARED, LOCAL, FAILED = 1, 2, 4, 8, 16
UNSET = 2097151
#: Tasks of process 100: 100 its main thread, 101 and 102.
COMM = "load"


def cpupid(cpu: int, pid: int) -> int:
    return (cpu << 8) + (pid & 255)


def fault(time: float, pid: int, cpu: int, node: int, flags: int = LOCAL, last: int = UNSET, pages: int = 1) -> str:
    fields = f"last_cpupid={last} mem_node={node} pages={pages} flags=0x{flags:x}"
    return _event(time, pid, cpu, f"hint_fault: (task_numa_fault+0x4/0xbf0) {fields}")


def answer(time: float, pid: int, cpu: int, said: int) -> str:
    return _event(
        time, pid, cpu, f"should_migrate: (mpol_misplaced+0x140/0x220 <- should_numa_migrate_memory) ret={said}"
    )


def scan(time: float, pid: int, cpu: int = 0) -> str:
    return _event(time, pid, cpu, "scan_work: (task_numa_work+0x4/0x920)")


def prefer(time: float, pid: int, cpu: int, node: int) -> str:
    return _event(time, pid, cpu, f"set_preferred: (sched_setnuma+0x4/0x60) nid={node}")


def _event(time: float, pid: int, cpu: int, rest: str) -> str:
    return f"            {COMM}-{pid}     [{cpu:03}] .....  {time:12.6f}: {rest}"


@dataclass
class Sample:
    """A look at a task; faults are (private, shared) by node, those of its group likewise."""

    time: float
    tid: int
    faults: Sequence[tuple[int, int]] = ((0, 0), (0, 0))
    group_faults: Sequence[tuple[int, int]] = ((0, 0), (0, 0))
    group: int = 0
    preferred: int = -1
    seq: int = 0
    process: int = 100
    ran_ms: float | None = None  # None: without a break since 0 s
    values: dict[str, float] = field(default_factory=dict)

    def text(self) -> str:
        ran = self.time * 1000 if self.ran_ms is None else self.ran_ms
        values = {
            "se.exec_start": self.time * 1000,
            "se.sum_exec_runtime": ran,
            "se.nr_migrations": 0,
            "nr_voluntary_switches": 0,
            "se.avg.load_sum": 47000,
            "mm->numa_scan_seq": self.seq,
            "numa_preferred_nid": self.preferred,
            "total_numa_faults": sum(map(sum, self.faults)),
            **self.values,
        }
        lines = [f"@ {self.time:.6f} pid={self.process} tid={self.tid}", f"{COMM} ({self.tid}, #threads: 3)", "-" * 60]
        lines += [f"{name:44} : {value}" for name, value in values.items()]
        lines.append(f"current_node=0, numa_group_id={self.group}")
        for node, ((private, shared), (group_private, group_shared)) in enumerate(
            zip(self.faults, self.group_faults, strict=True)
        ):
            task, group = (
                f"task_private={private} task_shared={shared}",
                f"group_private={group_private} group_shared={group_shared}",
            )
            lines.append(f"numa_faults node={node} {task} {group}")
        return "\n".join(lines)


def folder(
    path: Path,
    events: Iterable[str],
    samples: Iterable[Sample],
    *,
    release: str = "6.12.117",
    stats: str = "",
    nodes: int = 2,
    groups: Sequence[str] = ("numa", "kprobe"),
) -> Path:
    """Write a run folder of layout A."""
    distance = [[10 if a == b else 21 for b in range(nodes)] for a in range(nodes)]
    meta = {
        "run": "small",
        "kernel": {"release": release},
        "topology": {"node_cpus": {str(n): [2 * n, 2 * n + 1] for n in range(nodes)}, "distance": distance},
        "workload": {"command": "load"},
        "trace": {"groups": list(groups)},
    }
    (path / "meta.json").write_text(json.dumps(meta))
    (path / "workload.log").write_text("S 0.000000 proc 0 pid 100 start (parr=0x0)\n")
    (path / "trace.txt").write_text("\n".join(["# tracer: nop", *events]) + "\n")
    (path / "sched.log").write_text("\n".join(sample.text() for sample in sorted(samples, key=lambda s: s.time)) + "\n")
    (path / "numa_maps.log").write_text(
        "@ 0.500000 pid=100 comm=load\n7f0000000000 default anon=4096 N0=4096 kernelpagesize_kB=4\n"
    )
    (path / "trace_stats.txt").write_text(stats or "cpu0 overrun: 0 commit overrun: 0 dropped events: 0 \n")
    return path
