"""The plain oracle: state, start and order of one step (docs/model.md, sections 2 to 4).

The rules are functions in the modules beside this one; each takes the oracle as ``o`` and names its section.
Places where the specification leaves something open carry a comment ``# spec <section>:``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import SimpleNamespace

from numalab.kernel import Kernel
from numalab.layout import RANDOM, Layout
from tests.reference import balancer, faults, flights, scan, scheduling, tasks, topology, touch
from tests.reference.draws import BALANCE, GROUP, PHASE, draw

DEFAULTS: dict[str, int] = {
    "numa_balancing": 1,
    "step_us": 1000,
    "tick_us": 4000,
    "slice_us": 12000,
    "shared_cpus": 0,
    "pte_scan_ns": 5,
    "pte_update_ns": 60,
    "hint_fault_ns": 1200,
    "wp_fault_ns": 700,
    "migrate_ns": 1500,
    "copy_page_ns": 600,
    "unmap_ns": 300,
    "ipi_wait_ns": 0,
    "ipi_ns": 0,
    "flush_wait_ns": 0,
    "isolate_ns": 1200,
    "remote_cost": 500,
    "balancer_sigma": 100,
    "fork_spread": 30,
    "newidle_ms": 0,
    "domain_pct": 125,
    "mmap_busy": 0,
    "isolate_fail": 0,
    "mmap_wait_ns": 100000,
}

COUNTERS = (
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_success",
    "pgmigrate_fail",
    "migrate_refused",
    "minor_faults",
    "migration_waits",
    "preferred_changes",
)

STATE = (
    # per task
    *("cpu", "run_ns", "debt_ns", "wait_ns", "spin_ns", "sys_ns", "waited_ns", "work", "stamp_ns", "period_ms"),
    *("preferred", "retry_ms", "seq_seen", "group", "deferred", "total", "placed_run_ns", "placed_wall_ns"),
    *("moving", "moving_from", "moving_ns", "waits_for", "load_avg"),
    *("mem", "cpuf", "membuf", "cpubuf", "locality"),
    # per group, named by the task that created it
    *("gmem", "gcpu", "gtotal", "gtasks", "gmax", "gcount", "gactive"),
    # per access, process and VMA
    *("pos", "carry_ns", "offset", "next_scan_ms", "seq"),
    *("pending", "intensity", "vma_next_ms", "vma_reset_ms", "pids0", "pids1", "prev_seq"),
    # per PTE block, memory block and node
    *("trapped", "pte_write", "pte_dirty", "threshold", "node", "last_cpu", "last_pid"),
    *("free", "rate_end_ms", "rate_count", "balance_ns", "balance_failed"),
)


class Oracle:
    """One run of one workload under one kernel.

    Parameters
    ----------
    layout : Layout
    kernel : Kernel
    params : mapping
        Values that differ from :data:`DEFAULTS`.
    seed : int
    """

    def __init__(self, layout: Layout, kernel: Kernel, params: Mapping[str, int], seed: int) -> None:
        unknown = set(params) - set(DEFAULTS)
        if unknown:
            raise KeyError(f"unknown parameters: {', '.join(sorted(unknown))}")
        self.lay = plain(layout)
        self.sw = SimpleNamespace(**kernel.switches)
        self.par = SimpleNamespace(**{**DEFAULTS, **{k: int(v) for k, v in params.items()}})
        self.seed = int(seed)
        self.dt = self.par.step_us * 1000
        self.load_keep = round(65536 * 0.5 ** (self.dt / 32768000))  # 4.2
        self.tick_ns = self.par.tick_us * 1000
        self.tick_steps = max(1, self.par.tick_us // self.par.step_us)
        self.events: list[tuple] = []
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.i = 0
        self.t0, self.t1, self.now_ms = 0, 0, 0
        self._derive()
        self._tasks()
        self._memory()
        self.phase = scheduling.affinity_phase(self)
        scheduling.start_tasks(self)
        scheduling.first_touch(self)

    # ------------------------------------------------------------ structure that never changes
    def _derive(self) -> None:
        lay = self.lay
        self.N, self.C, self.T = len(lay.node_id), len(lay.cpu_node), len(lay.task_process)
        self.M, self.V, self.G = len(lay.process_single_node), len(lay.vma_process), len(lay.region_first)
        self.node_cpus = [[c for c in range(self.C) if lay.cpu_node[c] == n] for n in range(self.N)]
        self.core_cpus = [
            [c for c in range(self.C) if lay.cpu_core[c] == core] for core in range(1 + max(lay.cpu_core))
        ]
        self.cpu_nodes = [n for n in range(self.N) if self.node_cpus[n]]
        self.process_tasks = [[t for t in range(self.T) if lay.task_process[t] == m] for m in range(self.M)]
        self.process_vmas = [[v for v in range(self.V) if lay.vma_process[v] == m] for m in range(self.M)]
        self.mapcount = [lay.vma_region.count(g) for g in range(self.G)]  # of every block of the region
        self.mappers = [
            sorted({m for m, r in zip(lay.vma_process, lay.vma_region, strict=True) if r == g}) for g in range(self.G)
        ]  # processes
        self.process_regions = [{lay.vma_region[v] for v in vmas} for vmas in self.process_vmas]
        self.region_pages = [lay.region_blocks[g] * lay.region_block_pages[g] for g in range(self.G)]
        self.rss = [sum(self.region_pages[lay.vma_region[v]] for v in vmas) for vmas in self.process_vmas]
        self.pid8 = [pid & 255 for pid in lay.task_pid]
        self.group_address = [draw(self.seed, GROUP, g, 0) >> 1 for g in range(self.T)]
        self.cpu_phase = [draw(self.seed, PHASE, c, 0) for c in range(self.C)]
        self.block_region = [0] * len(lay.block_node)
        for g in range(self.G):
            for b in range(lay.region_first[g], lay.region_first[g] + lay.region_blocks[g]):
                self.block_region[b] = g
        self.random_accesses: list[list[int]] = [[] for _ in range(self.V)]  # of each VMA, in order
        for a, v in enumerate(lay.access_vma):
            if lay.access_order[a] == RANDOM:
                self.random_accesses[v].append(a)
        self.topology = topology.classify(self)
        self.max_distance = max(max(row) for row in lay.distance)

    # ------------------------------------------------------------ section 3
    def _tasks(self) -> None:
        lay, T, N = self.lay, self.T, self.N
        self.cpu, self.preferred, self.group = [-1] * T, [-1] * T, [-1] * T
        self.run_ns, self.debt_ns, self.wait_ns, self.spin_ns = [0] * T, [0] * T, [0] * T, [0] * T
        self.sys_ns, self.waited_ns, self.work = [0] * T, [0] * T, [0] * T
        self.stamp_ns, self.retry_ms, self.seq_seen, self.deferred = [0] * T, [0] * T, [0] * T, [0] * T
        self.period_ms = [self.sw.scan_delay_ms] * T
        self.load_avg = list(lay.task_weight)
        self.ended = [False] * T  # 4.1
        self.asleep = [False] * T  # 4.2: waits for a page in this step
        if self.sw.thread_stagger:
            for members in self.process_tasks:
                for t in members[1:]:
                    self.stamp_ns[t] = 2 * self.tick_ns
        self.mem, self.cpuf = faults_of(T, N), faults_of(T, N)
        self.membuf, self.cpubuf = faults_of(T, N), faults_of(T, N)
        self.total, self.placed_run_ns, self.placed_wall_ns = [0] * T, [0] * T, list(lay.task_start_ns)
        self.locality = [[0, 0, 0] for _ in range(T)]  # remote, local, fail
        self.moving, self.moving_ns, self.waits_for = [-1] * T, [0] * T, [-1] * T  # blocks
        self.moving_from = [-1] * T  # nodes
        self.in_flight = [False] * T  # 4.2: the page it is moving, in this step
        self.flights: dict[int, dict[int, list[int]]] = {}  # 4.5: tasks by region and block
        self.left: dict[int, int] = {}  # 4.5: what each of them owes at its start
        self.window: list[scan.Window | None] = [None] * T  # begun and not finished
        self.scan_ns = [0] * T
        self.gmem, self.gcpu = faults_of(T, N), faults_of(T, N)
        self.gtotal, self.gtasks, self.gmax, self.gcount = [0] * T, [0] * T, [0] * T, [0] * T
        self.gactive = [[False] * N for _ in range(T)]
        # of the current step, section 4.2
        self.started_on: list[list[int]] = [[] for _ in range(self.C)]  # runnable or not
        self.queue: list[list[int]] = [[] for _ in range(self.C)]
        self.cur = [-1] * self.C
        self.useful = [0] * T
        self.running: list[int] = []  # whatever moves later in the step
        self.power = 1000
        self.landed: set[int] = set()  # CPUs a NUMA move of this step ended on
        self.found: list[tuple[int, int]] = []  # (access, PTE block)
        self.listed: list[faults.Fault] = []

    def _memory(self) -> None:
        lay, sw = self.lay, self.sw
        # spec 3: "start of their first task": the first in task order, as for thread_stagger
        start_ms = [lay.task_start_ns[members[0]] // 10**6 if members else 0 for members in self.process_tasks]
        self.offset, self.next_scan_ms, self.seq = [0] * self.M, [0] * self.M, [0] * self.M
        for m in range(self.M):
            if sw.fork_resets_parent_scan and (len(self.process_tasks[m]) > 1 or self.M > 1):
                self.next_scan_ms[m] = start_ms[m] + sw.scan_delay_ms
        V = self.V
        self.pending, self.intensity, self.pids0, self.pids1 = [0] * V, [0] * V, [0] * V, [0] * V
        self.prev_seq = [-1] * V
        # 4.5, random: a heap of the thresholds ahead of the intensity with their PTE blocks, and those it has reached
        self.ahead: list[list[tuple[int, int]]] = [[] for _ in range(V)]
        self.reached: list[set[int]] = [set() for _ in range(V)]
        # spec 3: the pid filter's times are set whether or not there is a filter
        self.vma_next_ms = [start_ms[lay.vma_process[v]] + sw.scan_delay_ms for v in range(V)]
        self.vma_reset_ms = [ms + 4 * sw.scan_delay_ms for ms in self.vma_next_ms]
        self.trapped: list[bool] = []
        self.pte_write: list[bool] = []
        for v in range(V):
            self.pte_write += [lay.vma_pte_write[v]] * lay.region_blocks[lay.vma_region[v]]
        self.pte_dirty = list(self.pte_write)
        self.trapped, self.threshold = [False] * len(self.pte_write), [0] * len(self.pte_write)
        B = len(lay.block_node)
        self.node, self.last_cpu, self.last_pid = [-1] * B, [-1] * B, [-1] * B
        self.free = [lay.node_pages[n] - lay.node_reserved[n] for n in range(self.N)]
        self.rate_end_ms, self.rate_count, self.balance_failed = [0] * self.N, [0] * self.N, [0] * self.N
        self.balance_ns = [draw(self.seed, BALANCE, n, 2**32) % (self.C * 32 * 10**6) for n in range(self.N)]
        self.on_node = [[0] * self.N for _ in range(self.G)]  # pages of each region on each node
        self.pos, self.carry_ns = list(lay.access_start), [0] * len(lay.access_task)

    # ------------------------------------------------------------ section 4
    def step(self) -> None:
        """Section 4: one step, in its order."""
        self.t0, self.t1 = self.i * self.dt, (self.i + 1) * self.dt
        self.now_ms = self.t1 // 10**6
        scheduling.end_tasks(self)  # 4.1
        scheduling.start_tasks(self)
        scheduling.follow_affinity(self)
        flights.wake(self)  # 4.2
        scheduling.fill_queues(self)
        scheduling.run(self)
        scan.scans(self)  # 4.3, 4.4
        live = touch.live_accesses(self)  # 4.5
        self.found = touch.touch(self, live)
        self.listed = faults.handle(self, self.found, live)  # 4.6
        tasks.account(self, self.listed)  # 4.7 with 5, 6, 7, 9
        faults.charge(self, self.listed, live)  # 4.8
        balancer.balance(self)  # 4.9, 8
        self.i += 1

    def state(self) -> dict[str, object]:
        """Return a copy of the state, nested lists by the names of section 3, and the counters."""
        out: dict[str, object] = {name: copied(getattr(self, name)) for name in STATE}
        out["counters"] = dict(self.counters)
        return out

    # ------------------------------------------------------------ small questions asked everywhere
    def node_of(self, t: int) -> int:
        """Node of a started task."""
        return self.lay.cpu_node[self.cpu[t]]

    def prefer(self, t: int, n: int) -> None:
        """5.2: placement makes n the preferred node of task t."""
        # spec 3: a first preferred node is another than it was, too
        self.counters["preferred_changes"] += n != self.preferred[t]
        self.preferred[t] = n

    def allowed(self, t: int, c: int) -> bool:
        """Whether the affinity of now lets task t use CPU c."""
        return self.lay.affinity[self.phase][t][c]


def plain(layout: Layout) -> SimpleNamespace:
    """Turn the arrays of a layout into lists of Python values."""
    out = {}
    for field in fields(layout):
        value = getattr(layout, field.name)
        out[field.name] = value.tolist() if hasattr(value, "tolist") else int(value)
    return SimpleNamespace(**out)


def faults_of(tasks_: int, nodes: int) -> list[list[list[int]]]:
    """Return zeroed faults per task and node: [shared, private]."""
    return [[[0, 0] for _ in range(nodes)] for _ in range(tasks_)]


def copied(value: object) -> object:
    """Copy nested lists."""
    return [copied(item) for item in value] if isinstance(value, list) else value
