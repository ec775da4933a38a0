"""Records of the readers, put together as variables and coordinates of the run schema."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.readers import memcg, node_numastat, numa_maps, sched, tasks
from numalab.readers._text import ReadError
from numalab.schema import FAULT_KINDS, TASK_STATES

#: Counters of /proc/vmstat that the schema names.
VMSTAT = (
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_success",
    "pgmigrate_fail",
)
#: Beginnings of the names of further counters that are kept (states, which may fall, begin with nr_).
FURTHER = ("numa_", "pgmigrate", "thp_migration", "pgpromote", "pgdemote", "pgfault", "pgmajfault")


#: Bytes of a page in which the memory of cgroups is counted.
BYTES_OF_PAGE = 4096


@dataclass
class Parts:
    """A dataset in the making.

    Attributes
    ----------
    node_of : dict
        CPU -> node, as far as known.
    nodes : list of int
        Labels of the nodes.
    fixed : bool
        CPUs and nodes are known beforehand; else they grow with what is seen.
    zero : float
        Time of the text that becomes 0 s.
    variables, coords : dict
        For `numalab.runs.build`.
    params : dict
        Provenance.
    names, process_of : dict
        Task -> name, task -> process, of tasks that must be labels.
    process_names : dict
    small_areas : dict
        Process -> small mappings below and above its largest, when it had most.
    """

    node_of: dict[int, int] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)
    fixed: bool = False
    zero: float = 0.0
    variables: dict[str, Any] = field(default_factory=dict)
    coords: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    process_of: dict[int, int] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    small_areas: dict[int, tuple[int, int]] = field(default_factory=dict)

    def see_nodes(self, nodes: Iterable[int], source: str = "") -> dict[int, int]:
        """Add nodes to the labels, and return node -> position.

        Raises
        ------
        ReadError
            When the nodes are known and these are not among them.
        """
        known = {*self.nodes, *nodes}
        if self.fixed and len(known) > len(self.nodes):
            strange = min(known - set(self.nodes))
            raise ReadError(
                source, 0, f"names node {strange}, but the machine has {self.nodes}; is meta.json of this run?"
            )
        self.nodes = sorted(known)
        return {node: i for i, node in enumerate(self.nodes)}

    def see_task(self, task: int, process: int, name: str) -> None:
        """Make a task a label; what was known before stays."""
        self.names.setdefault(task, name)
        self.process_of.setdefault(task, process)
        self.process_names.setdefault(process, name if task == process else "")

    def finish(self) -> None:
        """Add the coordinates of nodes, CPUs, tasks and processes."""
        if self.nodes:
            self.coords["node"] = self.nodes
        if self.node_of:
            self.coords["cpu"] = sorted(self.node_of)
            self.coords["cpu_node"] = (("cpu",), [self.node_of[cpu] for cpu in sorted(self.node_of)])
        if self.names:
            order = sorted(self.names)
            self.coords["task"] = order
            self.coords["task_name"] = (("task",), [self.names[task] for task in order])
            self.coords["task_process"] = (("task",), [self.process_of[task] for task in order])
        if self.process_names:
            order = sorted(self.process_names)
            self.coords["process"] = order
            self.coords["process_name"] = (("process",), [self.process_names[process] for process in order])
            for i, side in enumerate(("below", "above") if self.small_areas else ()):
                counts = [self.small_areas.get(process, (-1, -1))[i] for process in order]
                self.coords[f"process_small_{side}"] = (("process",), counts)


# ---------------------------------------------------------------- time


def rounds(times: Sequence[float], keys: Sequence[Hashable], begins: Sequence[float] = ()) -> NDArray[np.int64]:
    """Say to which round of samples each record belongs.

    Parameters
    ----------
    times : sequence of float (record)
        Seconds, not falling.
    keys : sequence (record)
        Who the record is about; nobody comes twice in a round.
    begins : sequence of float, optional
        When rounds began, if another file tells.

    Returns
    -------
    array of int (record)
        From 0, without gaps.
    """
    if len(begins):
        position = np.searchsorted(np.asarray(begins), np.asarray(times), side="right")
        return np.unique(position, return_inverse=True)[1].reshape(-1)
    number, out = 0, []
    seen: set[Hashable] = set()
    for key in keys:
        if key in seen:
            number, seen = number + 1, set()
        seen.add(key)
        out.append(number)
    return np.array(out, dtype=np.int64)


def _axis(parts: Parts, name: str, times: Sequence[float], which: NDArray[np.int64]) -> int:
    """Add a time axis, each round at its first record; returns its length."""
    first = np.unique(which, return_index=True)[1]
    parts.coords[name] = np.asarray(times, dtype=float)[first] - parts.zero
    return len(first)


# ---------------------------------------------------------------- counters


def add_counters(
    parts: Parts,
    axis: str,
    times: Sequence[float],
    samples: Sequence[Mapping[str, int]],
    lines: Sequence[int],
    source: str,
    *,
    more: Sequence[Mapping[str, int]] = (),
    major: int | None = None,
) -> None:
    """Add the counters of /proc/vmstat, each counted from the first sample of a log.

    Parameters
    ----------
    parts : Parts
    axis : str
        Time axis to make.
    times, samples, lines : sequences (sample)
        Seconds, name -> value, line of the text.
    source : str
        For messages.
    more : sequence of mappings, optional
        Counters of other origin, absent while 0.
    major : int, optional
        Major faults during the log, if another file tells: without any, pgfault counts minor faults.

    Raises
    ------
    ReadError
        When a counter falls.
    """
    parts.coords[axis] = np.asarray(times, dtype=float) - parts.zero
    have = samples[0].keys()
    columns = {name: [sample[name] for sample in samples] for name in have if name.startswith(FURTHER)}
    columns |= {
        name: [sample.get(name, 0) for sample in more] for name in sorted({name for one in more for name in one})
    }
    counted = {name: _from_first(name, column, lines, source)[None] for name, column in columns.items()}
    _put_counters(parts, axis, counted, major)


def add_counts(parts: Parts, samples: Sequence[Mapping[str, int]]) -> None:
    """Add counters of /proc/vmstat whose times are unknown: each sample is a run, with its counts since boot."""
    parts.coords["time"] = np.zeros(1)
    have = [name for name in samples[0] if name.startswith(FURTHER)]
    counted = {name: np.array([[sample[name]] for sample in samples], dtype=np.int64) for name in have}
    _put_counters(parts, "time", counted)


def _put_counters(parts: Parts, axis: str, counted: Mapping[str, NDArray[np.int64]], major: int | None = None) -> None:
    """Put counters (run, time) where the schema has them, those it does not name together; see `add_counters`."""
    for name in VMSTAT:
        if name in counted:
            parts.variables[name] = (("run", axis), counted[name])
    if "pgfault" in counted and ("pgmajfault" in counted or major == 0):
        minor = counted["pgfault"] - counted.get("pgmajfault", 0)
        parts.variables["minor_faults"] = (("run", axis), minor)
    further = [name for name in counted if name not in VMSTAT]
    if further:
        parts.coords["counter"] = np.array(further)
        table = np.stack([counted[name] for name in further], axis=-1)
        parts.variables["counters"] = (("run", axis, "counter"), table)


def _from_first(name: str, column: Sequence[int], lines: Sequence[int], source: str) -> NDArray[np.int64]:
    values = np.asarray(column, dtype=np.int64)
    falls = np.flatnonzero(np.diff(values) < 0)
    if len(falls):
        at = falls[0] + 1
        problem = f"{name} falls from {values[at - 1]} to {values[at]}; a counter never does: was this two boots?"
        raise ReadError(source, lines[at], problem)
    # a single snapshot keeps its count since boot
    return values - values[0] if len(values) > 1 else values


def add_numastat(parts: Parts, axis: str, report: node_numastat.Report) -> None:
    """Add the counters of each node, from the first sample of a log, on a time axis that must fit them."""
    samples = report.samples
    position = parts.see_nodes((node for sample in samples for node in sample.nodes), report.source)
    names = [name for name in node_numastat.NAMES if all(name in own for one in samples for own in one.nodes.values())]
    table = np.zeros((1, len(samples), len(position), len(names)), dtype=np.int64)
    for i, sample in enumerate(samples):
        for node, values in sample.nodes.items():
            table[0, i, position[node]] = [values[name] for name in names]
    if len(samples) > 1:
        table -= table[:, :1].copy()
        if (np.diff(table, axis=1) < 0).any():
            raise ReadError(report.source, samples[0].line, "a counter of a node falls; was this two boots?")
    times = np.array([sample.time or 0.0 for sample in samples]) - parts.zero
    if axis not in parts.coords:
        parts.coords[axis] = times
    elif not np.array_equal(parts.coords[axis], times):
        axis = "time_numastat"
        parts.coords[axis] = times
    parts.coords["node_counter"] = np.array(names)
    parts.variables["node_counters"] = (("run", axis, "node", "node_counter"), table)


# ---------------------------------------------------------------- tasks


@dataclass
class _Seen:
    """What is known of one task in one round."""

    time: float
    pid: int
    tid: int
    row: tasks.Row | None = None
    stats: sched.Task | None = None


def add_tasks(
    parts: Parts,
    axis: str,
    rows: Sequence[tasks.Row],
    scheds: Sequence[sched.Task],
    begins: Sequence[float] = (),
    source: str = "",
) -> None:
    """Add where tasks were and what the kernel printed of their NUMA state.

    Parameters
    ----------
    parts : Parts
    axis : str
        Time axis to make: one sample per round, at the time of its first record.
    rows, scheds : sequences
        Of tasks.log and of /proc/PID/sched; either may be empty.
    begins : sequence of float, optional
        See `rounds`.
    source : str
        For messages.
    """
    told = {n for task in scheds for n in (*task.faults, task.node, task.preferred) if n is not None and n >= 0}
    parts.see_nodes({row.node for row in rows} | told, source)
    if not parts.fixed:
        parts.node_of |= {row.cpu: row.node for row in rows}
    seen: dict[tuple[float, int], _Seen] = {}
    for row in rows:
        seen[row.time, row.tid] = _Seen(row.time, row.pid, row.tid, row=row)
    for task in scheds:
        time = task.time or 0.0
        pid = task.pid if task.pid >= 0 else task.tid
        seen.setdefault((time, task.tid), _Seen(time, pid, task.tid)).stats = task
    every = sorted(seen.values(), key=lambda one: one.time)
    which = rounds([one.time for one in every], [one.tid for one in every], begins)
    count = _axis(parts, axis, [one.time for one in every], which)
    _name_tasks(parts, every)
    position = {tid: i for i, tid in enumerate(sorted(parts.names))}
    where = [(int(r), position[one.tid], one) for r, one in zip(which, every, strict=True)]
    shape = (1, count, len(position))
    if rows:
        _add_rows(parts, axis, shape, where)
    if scheds:
        _add_sched(parts, axis, shape, where)


def _name_tasks(parts: Parts, every: Sequence[_Seen]) -> None:
    """Give each task the name it bore most often: a program takes its name only some time after its start."""
    votes: dict[int, dict[str, int]] = {}
    for one in every:
        comm = one.row.comm if one.row else one.stats.comm if one.stats else ""
        own = votes.setdefault(one.tid, {})
        own[comm] = own.get(comm, 0) + 1
        parts.process_of[one.tid] = one.pid
    for tid, own in votes.items():
        parts.names[tid] = max(own, key=lambda name: own[name])
    for tid, pid in parts.process_of.items():
        parts.process_names.setdefault(pid, "")
        if tid == pid:
            parts.process_names[pid] = parts.names[tid]


def _add_rows(parts: Parts, axis: str, shape: tuple[int, ...], where: Sequence[tuple[int, int, _Seen]]) -> None:
    cpu, node, state = (np.full(shape, -1, dtype=np.int64) for _ in range(3))
    for r, t, one in where:
        if one.row:
            cpu[0, r, t], node[0, r, t] = one.row.cpu, one.row.node
            state[0, r, t] = TASK_STATES.find(one.row.state.upper())
    dims = ("run", axis, "task")
    parts.variables |= {"task_cpu": (dims, cpu), "task_node": (dims, node), "task_state": (dims, state)}


def _add_sched(parts: Parts, axis: str, shape: tuple[int, ...], where: Sequence[tuple[int, int, _Seen]]) -> None:
    dims = ("run", axis, "task")
    told = [(r, t, one.stats) for r, t, one in where if one.stats is not None]
    position = parts.see_nodes([])
    integers: dict[str, tuple[int, Any]] = {
        "preferred_nid": (-1, lambda task: task.preferred),
        "total_numa_faults": (0, lambda task: task.total),
        "numa_group_id": (0, lambda task: task.group),
    }
    if "task_node" not in parts.variables:
        integers["task_node"] = (-1, lambda task: task.node)
    for name, (none, get) in integers.items():
        values = [(r, t, get(task)) for r, t, task in told]
        if any(value is not None for _, _, value in values):
            table = np.full(shape, none, dtype=np.int64)
            for r, t, value in values:
                table[0, r, t] = none if value is None else value
            parts.variables[name] = (dims, table)
    if any(task.faults for _, _, task in told):
        _add_faults(parts, axis, shape, told, position)
    run = np.full(shape, np.nan)
    for r, t, task in told:
        run[0, r, t] = task.values.get("se.sum_exec_runtime", np.nan)
    if not np.isnan(run).all():
        parts.variables["task_run_ms"] = (dims, _carried(run))
    _add_scan_seq(parts, axis, shape[1], told)


def _add_faults(
    parts: Parts,
    axis: str,
    shape: tuple[int, ...],
    told: Sequence[tuple[int, int, sched.Task]],
    position: Mapping[int, int],
) -> None:
    # two arrays (task, node, kind): the task's own and its group's
    faults, group = (np.zeros((*shape, len(position), len(FAULT_KINDS)), dtype=np.int64) for _ in range(2))
    for r, t, task in told:
        for node, counts in task.faults.items():
            faults[0, r, t, position[node]] = counts.shared, counts.private
            group[0, r, t, position[node]] = max(counts.group_shared, 0), max(counts.group_private, 0)
    dims = ("run", axis, "task", "node", "kind")
    parts.coords["kind"] = np.array(FAULT_KINDS)
    parts.variables["faults"] = (dims, faults)
    if any(counts.group_shared >= 0 for _, _, task in told for counts in task.faults.values()):
        parts.variables["group_faults"] = (dims, group)


def _add_scan_seq(parts: Parts, axis: str, count: int, told: Sequence[tuple[int, int, sched.Task]]) -> None:
    processes = sorted(parts.process_names)
    table = np.full((1, count, len(processes)), np.nan)
    for r, _, task in told:
        if task.scan_seq is not None:
            table[0, r, processes.index(parts.process_of[task.tid])] = task.scan_seq
    if not np.isnan(table).all():
        parts.variables["scan_seq"] = (("run", axis, "process"), _carried(table).astype(np.int64))


def _carried(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill gaps of counters along time: 0 before the first value, the last value after it ended."""
    known = ~np.isnan(table)
    index = np.where(known, np.arange(table.shape[1])[None, :, None], 0)
    latest = np.maximum.accumulate(index, axis=1)
    filled = np.take_along_axis(table, latest, axis=1)
    return np.nan_to_num(filled, nan=0.0)


def add_affinity(parts: Parts, axis: str, changes: Sequence[tuple[float, int, frozenset[int]]]) -> None:
    """Add how many CPUs of each node a task may use: what was last seen holds on.

    Parameters
    ----------
    parts : Parts
        Whose CPUs and tasks are known.
    axis : str
        Time axis to make.
    changes : sequence of (time, tid, CPUs)
    """
    changes = [change for change in changes if change[1] in parts.names]
    if not changes:
        return
    times = sorted({time for time, _, _ in changes})
    nodes = parts.see_nodes([])
    position = {tid: i for i, tid in enumerate(sorted(parts.names))}
    table = np.full((1, len(times), len(position), len(nodes)), -1, dtype=np.int64)
    for time, tid, cpus in changes:
        on = [sum(parts.node_of.get(cpu) == node for cpu in cpus) for node in parts.nodes]
        table[0, times.index(time) :, position[tid]] = on
    parts.coords[axis] = np.array(times) - parts.zero
    parts.variables["task_cpus_allowed"] = (("run", axis, "task", "node"), table)


# ---------------------------------------------------------------- memory


def add_cgroup(parts: Parts, axis: str, looks: Sequence[tuple[float, memcg.Sample]]) -> None:
    """Add the memory of a cgroup by kind and node, in pages of 4 KiB."""
    kinds = list(dict.fromkeys(kind for _, sample in looks for kind in sample.nodes))
    position = parts.see_nodes({node for _, sample in looks for row in sample.nodes.values() for node in row})
    table = np.zeros((1, len(looks), len(kinds), len(position)), dtype=np.int64)
    for i, (_, sample) in enumerate(looks):
        size = 1 if sample.version == 1 else BYTES_OF_PAGE
        for kind, row in sample.nodes.items():
            for node, value in row.items():
                table[0, i, kinds.index(kind), position[node]] = value // size
    parts.coords[axis] = np.array([time for time, _ in looks]) - parts.zero
    parts.coords["cgroup_memory"] = np.array(kinds)
    parts.variables["cgroup_pages"] = (("run", axis, "cgroup_memory", "node"), table)


def add_memory(
    parts: Parts, axis: str, report: numa_maps.Report, begins: Sequence[float] = (), *, policies: bool = False
) -> None:
    """Add pages of 4 KiB by mapping and node: one region per mapping of each process.

    Processes that share memory each have it among their regions, so the sum over all may count a page more than once.
    With ``policies`` the policy of each region, how many processes map its pages, and how many small mappings are not
    among them are added too.
    """
    processes = report.processes
    times = [process.time or 0.0 for process in processes]
    which = rounds(times, [process.pid for process in processes], begins)
    count = _axis(parts, axis, times, which)
    found: dict[tuple[int, int, str], dict[int, dict[int, int]]] = {}
    policy: dict[tuple[int, int, str], str] = {}
    sharers: dict[tuple[int, int, str], int] = {}
    for r, process in zip(which.tolist(), processes, strict=True):
        for mapping in process.mappings:
            key = (process.pid, mapping.start, mapping.name)
            pages = found.setdefault(key, {}).setdefault(r, {})
            policy[key] = mapping.policy
            sharers[key] = max(sharers.get(key, 0), mapping.counts.get("mapmax", 1))
            for node, number in mapping.base_pages().items():
                pages[node] = pages.get(node, 0) + number
    used = {n for rows in found.values() for pages in rows.values() for n in pages}
    position = parts.see_nodes(used, report.source)
    order = sorted(found)
    table = np.zeros((1, count, len(order), len(position)), dtype=np.int64)
    for g, key in enumerate(order):
        for r, pages in found[key].items():
            for node, number in pages.items():
                table[0, r, g, position[node]] = number
    names = {process.pid: process.comm for process in processes}
    for pid in sorted(names):
        parts.process_names[pid] = parts.process_names.get(pid) or names[pid]
    parts.coords["region"] = np.array(
        [f"{parts.process_names[pid]}-{pid} {start:x} {name}".strip() for pid, start, name in order]
    )
    parts.coords["region_process"] = (("region",), [pid for pid, _, _ in order])
    if policies:
        parts.coords["region_policy"] = (("region",), [policy[key] for key in order])
        parts.coords["region_sharers"] = (("region",), [sharers[key] for key in order])
        # a process that ends has fewer and fewer
        for one in processes:
            if one.small is not None:
                parts.small_areas[one.pid] = max(one.small, parts.small_areas.get(one.pid, (0, 0)), key=sum)
    parts.variables["pages"] = (("run", axis, "region", "node"), table)
