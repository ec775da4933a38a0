"""Everything that changes while a batch runs: arrays with the run axis first (docs/model.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab.kernel import Kernel, table
from numalab.layout import BASE, HUGE, RANDOM, SEQUENTIAL, Bools, Ints, Layout
from numalab.model import draws, topology, windows
from numalab.model.params import DEFAULTS

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

#: Indices of the last axis of the fault arrays and of ``locality``.
SHARED, PRIVATE = 0, 1
REMOTE, LOCAL, FAIL = 0, 1, 2
#: Load of a task of nice 0 that always runs.
UNIT_LOAD = 1024
#: Work is counted in pages a second times ns.
NS = 1_000_000_000
#: In which a task's load average falls by half while it sleeps: 32 periods of 1024 us.
LOAD_HALF_LIFE_NS = 32 * 1024 * 1000
#: Longer than any run, ns.
FOREVER = 1 << 61


class Fixed:
    """What follows from the layout and the kernel and never changes; shared by all runs of a batch."""

    def __init__(self, layout: Layout, kernel: Kernel) -> None:
        one = layout
        self.cpus_of_node = np.bincount(one.cpu_node, minlength=one.nodes)
        self.nodes_with_cpus = np.flatnonzero(self.cpus_of_node)
        self.capacity = node_capacity(one, kernel)
        self.class_ = topology.classify(one.distance, kernel)
        self.levels = topology.levels(one.distance, self.class_)
        self.task_capacity = _task_capacity(self.capacity, self.cpus_of_node, kernel)
        self.imbalance_nr = _imbalance_nr(one, self.cpus_of_node, kernel)
        # CPUs come node by node
        self.first_cpu = np.searchsorted(one.cpu_node, self.nodes_with_cpus)
        self.node_rank = np.searchsorted(self.nodes_with_cpus, np.arange(one.nodes))
        self.node_cpus = np.full((one.nodes, int(self.cpus_of_node.max())), -1, np.int64)
        for n in self.nodes_with_cpus:
            self.node_cpus[n, : self.cpus_of_node[n]] = np.flatnonzero(one.cpu_node == n)
        self.nearest_with_cpus = _nearest_with_cpus(one.distance, self.cpus_of_node)
        self.region_pages = one.region_blocks * one.region_block_pages
        self.mapcount = np.bincount(one.vma_region, minlength=one.regions)
        #: Each process that maps a region, once: regions and processes of the pairs.
        self.mapped_region, self.mapping_process = np.unique([one.vma_region, one.vma_process], axis=1)
        self._mapping, self._processes = self.mapped_region * one.processes + self.mapping_process, one.processes
        self.mappers = np.bincount(self.mapped_region, minlength=one.regions)
        self._first_mapping = np.cumsum(self.mappers) - self.mappers
        late = (one.block_node < 0) & (one.task_start_ns[np.maximum(0, -1 - one.block_node)] > 0)
        self.blocks_come_late = bool(late.any())
        self.blocks_are_shared = bool((self.mapcount > 1).any())
        self.block_region = np.repeat(np.arange(one.regions), one.region_blocks)
        self.vma_blocks = one.region_blocks[one.vma_region]
        self.vma_block_pages = one.region_block_pages[one.vma_region]
        self.vma_kind = one.region_kind[one.vma_region]
        self.vma_end = one.vma_start + one.vma_pages
        self.vma_block_offset = one.region_first[one.vma_region] - one.vma_pte
        self.vma_first = one.vma_start + one.vma_hole
        self.vma_unit = np.where(self.vma_kind == BASE, one.vma_pages - one.vma_hole, self.vma_blocks)
        self.vma_fault_count = np.where(self.vma_kind == BASE, self.vma_block_pages, 1)
        self.pte_vma = np.repeat(np.arange(one.vmas), self.vma_blocks)
        self.rss = np.bincount(one.vma_process, weights=one.vma_pages - one.vma_hole, minlength=one.processes).astype(
            np.int64
        )
        self.process_tasks = np.bincount(one.task_process, minlength=one.processes)
        self.process_first_task = np.searchsorted(one.task_process, np.arange(one.processes))
        self.process_vmas = [np.flatnonzero(one.vma_process == m) for m in range(one.processes)]
        self.task_pid8 = one.task_pid & 255
        self.task_pid_bit = _pid_bit(one.task_pid)
        self.one_access_each = np.array_equal(one.access_task, np.arange(one.tasks))
        # phase boundaries at or before 0, or beyond any run, are none
        self.accesses_have_phases = bool((one.access_from_ns > 0).any() or (one.access_until_ns < FOREVER).any())
        # random accesses in order of their areas, and where each area's begin and end
        at_random = np.flatnonzero(one.access_order == RANDOM)
        self.random_access = at_random[np.argsort(one.access_vma[at_random], kind="stable")]
        self.random_is_all = np.array_equal(self.random_access, np.arange(len(one.access_task)))
        self.random_vma, self.random_first = np.unique(one.access_vma[self.random_access], return_index=True)
        self.random_last = np.append(self.random_first[1:], len(self.random_access)) - 1
        self.sequential_access = np.flatnonzero(one.access_order == SEQUENTIAL)
        pair = one.access_task * max(1, one.vmas) + one.access_vma
        _, first_of_pair, which_pair = np.unique(pair, return_index=True, return_inverse=True)
        #: The first access of the same task to the same area.
        self.access_twin = first_of_pair[which_pair]
        #: Square of the share of a migration's time in which a page is gone from the access's page table, of 1000.
        region = one.vma_region[one.access_vma]
        left = self.mappers[region] - self.mapping_place(region, one.task_process[one.access_task])
        self.access_gone = 1000 * left**2 // self.mappers[region] ** 2
        self.has_sequential = bool(self.sequential_access.size)
        self.access_vma_random = np.zeros(one.vmas, np.bool_)
        self.access_vma_random[self.random_vma] = True
        self.work_ends = bool(one.task_visits.any())
        self.tasks_end = self.work_ends or bool((one.task_end_ns < FOREVER).any())
        self.always_runnable = bool((one.task_demand == 1000).all())
        self.equal_loads = self.always_runnable and bool((one.task_weight == UNIT_LOAD).all())
        #: tasks that sleep of their own will: their load is a decaying average
        self.sleepers = np.flatnonzero(one.task_demand < 1000)
        self.equal_nice = bool((one.task_nice == one.task_nice.min(initial=0)).all())
        self.huge = self.vma_kind == HUGE

    def mapping_place(self, region: Ints, process: Ints) -> Ints:
        """Return how many processes before this one map a region."""
        at = np.searchsorted(self._mapping, region * self._processes + process)
        return at - self._first_mapping[region]


class State:
    """A batch of runs in flight.

    Attributes carry the names of docs/model.md; the first axis is the run. ``par`` holds the parameters and
    the kernel's numeric switches as ``(R,)`` arrays, ``kernel`` the other switches, ``fix`` what is derived.
    """

    def __init__(
        self,
        layout: Layout,
        kernel: Kernel,
        seeds: Ints,
        params: Mapping[str, Any] | None = None,
        rate_permille: Ints | None = None,
    ) -> None:
        self.layout, self.kernel = layout, kernel
        self.fix = Fixed(layout, kernel)
        self.seed = np.asarray(seeds, np.int64)
        runs = len(self.seed)
        self.number = np.arange(runs)
        self.par = _parameters(kernel, params or {}, runs)
        self.shortest_period_ms, self.slowest_period_ms = windows.bounds(self.par, self.fix.rss)
        self.dt = int(self.par.step_us[0]) * 1000
        self.power = np.full(runs, 1000)
        self.own_cpus = not self.par.shared_cpus.any()
        self.always_scans = bool(self.par.numa_balancing.all())
        one, tasks, nodes = layout, layout.tasks, layout.nodes

        def zeros(*shape: int) -> Ints:
            return np.zeros((runs, *shape), np.int64)

        def full(value: int, *shape: int) -> Ints:
            return np.full((runs, *shape), value, np.int64)

        self.step_index = zeros()
        self.key = {stream: draws.stream_key(self.seed, stream) for stream in range(1, draws.TURN + 1)}
        # tasks
        self.cpu, self.node_of_task = full(-1, tasks), full(-1, tasks)
        self.run_ns, self.debt_ns, self.wait_ns = zeros(tasks), zeros(tasks), zeros(tasks)
        self.spin_ns = zeros(tasks)
        self.sys_ns, self.waited_ns = zeros(tasks), zeros(tasks)
        # block whose migration a task has not finished, the node it leaves, what that takes; block it sleeps for
        self.moving, self.moving_from, self.moving_ns = full(-1, tasks), full(-1, tasks), zeros(tasks)
        self.waits_for = full(-1, tasks)
        self.in_flight = False
        #: (run, task) of the pages in flight throughout the step
        self.flying: tuple[Ints, Ints] = (np.zeros(0, np.int64),) * 2
        #: scan windows that are not finished, by (run, task)
        self.scans: dict[tuple[int, int], Any] = {}
        self.stamp_ns = zeros(tasks)
        self.period_ms = np.repeat(self.par.scan_delay_ms[:, None], tasks, axis=1)
        self.preferred, self.retry_ms = full(-1, tasks), zeros(tasks)
        self.seq_seen, self.group, self.deferred = zeros(tasks), full(-1, tasks), zeros(tasks)
        self.mem, self.cpuf = zeros(tasks, nodes, 2), zeros(tasks, nodes, 2)
        self.membuf, self.cpubuf = zeros(tasks, nodes, 2), zeros(tasks, nodes, 2)
        self.total, self.locality = zeros(tasks), zeros(tasks, 3)
        self.placed_run_ns = zeros(tasks)
        self.placed_wall_ns = np.repeat(one.task_start_ns[None], runs, axis=0)
        self.pages_migrated = zeros(tasks)
        if kernel.thread_stagger:
            first = np.zeros(tasks, np.bool_)
            first[self.fix.process_first_task] = True
            self.stamp_ns[:] = np.where(first, 0, 2 * 1000 * self.par.tick_us[:, None])
        self.deferred_used, self.deferred_set = zeros(tasks), np.zeros((runs, tasks), np.bool_)
        self.task_weight = zeros(tasks, len(self.fix.levels), nodes)
        # groups, named by the task that created them
        self.group_weight = zeros(tasks, len(self.fix.levels), nodes)
        self.gmem, self.gcpu = zeros(tasks, nodes, 2), zeros(tasks, nodes, 2)
        self.gtotal, self.gtasks, self.gmax, self.gcount = zeros(tasks), zeros(tasks), zeros(tasks), zeros(tasks)
        self.gactive = np.zeros((runs, tasks, nodes), np.bool_)
        # accesses
        self.access_rate = np.repeat(one.access_rate[None], runs, axis=0)
        if rate_permille is not None:
            self.access_rate = self.access_rate * rate_permille // 1000
        self.pos = np.repeat(one.access_start[None], runs, axis=0)
        self.carry_ns = zeros(len(one.access_task))
        self.access_work = zeros(len(one.access_task))
        self.access_speed = zeros(len(one.access_task))
        self.speed_stale = np.ones(runs, np.bool_)
        # processes and VMAs
        self.offset, self.next_scan_ms, self.seq = zeros(one.processes), zeros(one.processes), zeros(one.processes)
        start_ms = one.task_start_ns[self.fix.process_first_task] // 1_000_000
        if kernel.fork_resets_parent_scan:
            forked = (self.fix.process_tasks > 1) | (one.processes > 1)
            self.next_scan_ms[:] = np.where(forked, start_ms + self.par.scan_delay_ms[:, None], 0)
        self.pending, self.intensity = zeros(one.vmas), zeros(one.vmas)
        self.vma_next_ms = start_ms[one.vma_process] + self.par.scan_delay_ms[:, None]
        self.vma_reset_ms = self.vma_next_ms + 4 * self.par.scan_delay_ms[:, None]
        self.pids0 = np.zeros((runs, one.vmas), np.uint64)
        self.pids1 = np.zeros((runs, one.vmas), np.uint64)
        self.prev_seq = full(-1, one.vmas)
        # PTE blocks; trapped ones of randomly touched VMAs wait in a queue sorted by threshold
        self.trapped = np.zeros((runs, one.pte_blocks), np.bool_)
        self.pte_write = np.repeat(one.vma_pte_write[self.fix.pte_vma][None], runs, axis=0)
        self.pte_dirty = self.pte_write.copy()
        self.queue = np.zeros((runs, one.pte_blocks), np.int32)
        self.queue_threshold = np.zeros((runs, one.pte_blocks), np.int64)
        self.queue_head, self.queue_len = zeros(one.vmas), zeros(one.vmas)
        self.next_threshold = full(FOREVER, one.vmas)
        # memory blocks and nodes
        self.node = np.full((runs, one.blocks), -1, np.int16)
        self.last_cpu = np.full((runs, one.blocks), -1, np.int32)
        self.last_pid = np.full((runs, one.blocks), -1, np.int16)
        self.free = np.repeat((one.node_pages - one.node_reserved)[None], runs, axis=0)
        self.rate_end_ms, self.rate_count = zeros(nodes), zeros(nodes)
        self.region_node_pages = zeros(one.regions, nodes)
        interval = np.uint64(one.cpus * 32_000_000)
        self.balance_ns = (
            draws.draw_keyed(self.key[draws.BALANCE][:, None], np.arange(nodes)[None], 2**32) % interval
        ).astype(np.int64)
        self.balance_failed = zeros(nodes)
        self.counters = {name: zeros() for name in COUNTERS}
        # the run queues of the step: derived, kept while nothing changes
        phase = draws.draw_keyed(self.key[draws.PHASE][:, None], np.arange(one.cpus)[None], 0)
        self.slice_phase = (phase & np.uint64(65535)).astype(np.int64)
        tick_steps = np.maximum(1, self.par.tick_us // self.par.step_us)
        self.tick_phase = ((phase >> np.uint64(32)).astype(np.int64)) % tick_steps[:, None]
        self.tick_steps = tick_steps
        self.affinity_phase = full(-1)
        self.nr, self.load = zeros(one.cpus), zeros(one.cpus)
        # started and not asleep for a page, as the queues of the step were filled
        self.awake = np.zeros((runs, tasks), np.bool_)
        self.load_avg = np.repeat(one.task_weight[None], runs, axis=0)
        self.load_keep = round(65536 * 0.5 ** (self.dt / LOAD_HALF_LIFE_NS))
        self.rank = zeros(tasks)
        self.runnable = np.zeros((runs, tasks), np.bool_)
        self.running = np.zeros((runs, tasks), np.bool_)
        self.slice_ns = zeros(tasks)
        self.not_started = np.ones(runs, np.bool_)
        self.end_ns = full(-1, tasks)
        self.cur = full(-1, one.cpus)
        self.queue_changed = np.ones(runs, np.bool_)
        self.maybe_uneven = np.ones(runs, np.bool_)
        self.slot = full(-1)
        self.numa_moved_to = np.zeros((runs, one.cpus), np.bool_)
        #: (run number, step, kind, task, source CPU, target CPU, partner, gain)
        self.events: list[tuple[int, ...]] = []

    @property
    def runs(self) -> int:
        """Number of runs in flight."""
        return len(self.seed)

    @property
    def work(self) -> Ints:
        """Work done by each task: pages visited per second x ns, (R, T)."""
        work = np.zeros((self.runs, self.layout.tasks), np.int64)
        np.add.at(work.T, self.layout.access_task, self.access_work.T)
        return work

    @property
    def ended(self) -> Bools:
        """Which tasks have ended: (R, T)."""
        return self.end_ns >= 0

    def put(self, r: Ints | int, t: Ints | int, cpu: Ints | int) -> None:
        """Put tasks on other CPUs; queues are stale until :func:`numalab.model.runqueue.requeue`."""
        self.cpu[r, t] = cpu
        self.node_of_task[r, t] = self.layout.cpu_node[cpu]
        self.speed_stale[r] = True

    def owed(self, r: Ints, t: Ints) -> Ints:
        """Return what tasks have to pay and to wait for before anything else, ns."""
        return self.debt_ns[r, t] + self.wait_ns[r, t] + self.spin_ns[r, t]

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Drop all runs but these."""
        runs = self.runs
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.shape[:1] == (runs,):
                setattr(self, name, value[rows])
        self.counters = {name: value[rows] for name, value in self.counters.items()}
        row = {int(old): new for new, old in enumerate(rows)}
        self.scans = {(row[r], t): window for (r, t), window in self.scans.items() if r in row}
        self.key = {stream: value[rows] for stream, value in self.key.items()}
        self.par = SimpleNamespace(**{name: value[rows] for name, value in vars(self.par).items()})


def node_capacity(layout: Layout, kernel: Kernel) -> Ints:
    """Return the CPU capacity of each node, 1024 per full CPU: (N,) (docs/model.md 7.1)."""
    discount = kernel.smt_capacity_discount and layout.smt > 1
    per_cpu = 1178 // layout.smt if discount else 1024
    return np.bincount(layout.cpu_node, minlength=layout.nodes).astype(np.int64) * per_cpu


def _task_capacity(capacity: Ints, cpus: Ints, kernel: Kernel) -> Ints:
    """Return how many tasks each node holds (docs/model.md 7.1)."""
    rounded = (capacity + 512) // 1024
    if kernel.task_capacity == "capacity":
        return rounded
    threads = -(-1024 * cpus // np.maximum(1, capacity))
    return np.minimum(cpus // np.maximum(1, threads), rounded)


def _imbalance_nr(layout: Layout, cpus: Ints, kernel: Kernel) -> Ints:
    """Return up to how many tasks a node may be filled regardless of balance (docs/model.md 7.2)."""
    if kernel.imb_numa_nr == "two":
        return np.full(layout.nodes, 2, np.int64)
    eighth = np.maximum(1, cpus // 8)
    if kernel.imb_numa_nr == "eighth":
        return eighth
    return np.where(layout.node_llcs > 1, layout.node_llcs, eighth)


def _nearest_with_cpus(distance: Ints, cpus: Ints) -> Ints:
    reachable = np.where(cpus[None, :] > 0, distance, np.iinfo(np.int64).max)
    nearest = np.argmin(reachable, axis=1)
    return np.where(cpus > 0, np.arange(len(cpus)), nearest)


def _pid_bit(pid: Ints) -> NDArray[np.uint64]:
    hashed = (pid.astype(np.uint64) * np.uint64(0x61C88647)) & np.uint64(0xFFFFFFFF)
    return np.uint64(1) << (hashed >> np.uint64(26))


def _parameters(kernel: Kernel, given: Mapping[str, Any], runs: int) -> SimpleNamespace:
    numbers = {name: kernel.switches[name] for name, switch in table().switches.items() if switch.kind == "number"}
    values = {**DEFAULTS, **numbers, **given}
    unknown = set(values) - set(DEFAULTS) - set(numbers)
    if unknown:
        raise ValueError(f"unknown parameter {min(unknown)!r}; known: {', '.join([*DEFAULTS, *numbers])}")
    return SimpleNamespace(
        **{name: np.broadcast_to(np.asarray(value, np.int64), (runs,)).copy() for name, value in values.items()}
    )
