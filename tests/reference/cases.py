"""Random small machines, workloads and kernels, and the array model's state in the oracle's words."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from numalab.kernel import Kernel, names, table
from numalab.layout import BASE, FOLIO, HUGE, RANDOM, SEQUENTIAL, Layout
from numalab.model.state import State
from tests.reference.tiny import WAKES, tiny_layout, unlike_tasks

FOREVER = 2**62
MS = 1_000_000


def random_kernel(rng: random.Random) -> Kernel:
    """A release or tree with a few switches turned and clocks fast enough for a short run."""
    fast: dict[str, Any] = {
        "scan_delay_ms": rng.choice([4, 12]),
        "scan_period_min_ms": rng.choice([8, 40]),
        "scan_period_max_ms": rng.choice([60, 400]),
        "scan_size_mb": rng.choice([1, 1, 2, 256]),
        "max_scan_window_mbps": rng.choice([2560, 100_000]),
    }
    for name, switch in rng.sample(sorted(table().switches.items()), rng.choice([0, 0, 2, 6, 20])):
        if name in fast:
            continue
        if switch.kind == "bool":
            fast[name] = rng.random() < 0.5
        elif switch.kind == "choice":
            fast[name] = rng.choice(switch.choices)
    if rng.random() < 0.5:  # with rules of older releases too
        fast["remap_after_migration"] = True
    if rng.random() < 0.2:
        fast["migrate_ratelimit_pages"] = rng.choice([0, 1, 8, 64])
    if rng.random() < 0.15:
        fast["migrate_deferred"] = rng.choice([1, 3])
    if rng.random() < 0.15:
        fast["cow_max_mappers"] = rng.choice([1, 2, 5])
    if rng.random() < 0.15:
        fast["numa_move_threshold"] = 50
    if rng.random() < 0.15:
        fast["small_improvement"] = rng.choice([0, 30, 100])
    return Kernel(rng.choice(list(names())), **fast)


def random_params(rng: random.Random) -> dict[str, int]:
    """Costs and the balancer, pushed to where they matter."""
    step = rng.choice([500, 1000, 1000, 4000])
    params = {
        "step_us": step,
        "tick_us": rng.choice([1000, 4000]),
        "slice_us": rng.choice([step, 3 * step, 5000]),
        "shared_cpus": rng.choice([0, 0, 0, 700, 1000, 2500]),
        "hint_fault_ns": rng.choice([1200, 40_000, 250_000]),
        "migrate_ns": rng.choice([1500, 60_000, 400_000, 2_500_000]),
        # waits of other CPUs that a walk can still afford, and some it cannot
        "unmap_ns": rng.choice([0, 300, 300, 20_000, 150_000]),
        "ipi_wait_ns": rng.choice([0, 0, 3_000, 30_000, 400_000]),
        # the longest: whoever else touches the page at random is sure to do so meanwhile
        "isolate_ns": rng.choice([0, 1200, 40_000, 250_000, 2_500_000, 2_500_000]),
        "ipi_ns": rng.choice([0, 0, 5_000, 100_000]),
        # part of a step, and several
        "flush_wait_ns": rng.choice([0, 0, 500_000, 6_000_000]),
        # a window of 256 pages or more often lasts several steps
        "pte_scan_ns": rng.choice([0, 5, 5, 100_000]),
        "pte_update_ns": rng.choice([60, 2000, 200_000]),
        "remote_cost": rng.choice([0, 500, 2000]),
        "balancer_sigma": rng.choice([0, 100, 400]),
        "fork_spread": rng.choice([0, 30, 300]),
        "newidle_ms": rng.choice([0, 1, 20]),
        "mmap_busy": rng.choice([0, 0, 300]),
        "isolate_fail": rng.choice([0, 0, 200]),
    }
    if rng.random() < 0.35:
        params |= one_working_cpu(rng)
    if rng.random() < 0.04:
        params["numa_balancing"] = 0
    return params


def one_working_cpu(rng: random.Random) -> dict[str, int]:
    """A guest on one CPU, its faults so cheap that several tasks find pages in their share of a step."""
    return {
        "shared_cpus": 1000,
        "hint_fault_ns": 1200,
        "migrate_ns": rng.choice([1500, 60_000]),
        "unmap_ns": 300,
        "isolate_ns": rng.choice([40_000, 250_000]),  # a turn sometimes ends meanwhile
    }


def random_distance(rng: random.Random, nodes: int) -> list[list[int]]:
    """All alike, a ring (mesh), or two boxes of nodes (backplane)."""
    shape = rng.choice(["flat", "flat", "ring", "boxes"])

    def between(a: int, b: int) -> int:
        if a == b:
            return 10
        if shape == "ring":
            hops = min((a - b) % nodes, (b - a) % nodes)
            return 10 + 6 * hops
        if shape == "boxes":
            return 15 if a // 2 == b // 2 else 40
        return 21

    return [[between(a, b) for b in range(nodes)] for a in range(nodes)]


def life(rng: random.Random, start: int) -> tuple[int, int]:
    """Start and end (ns) of a task: with its process and without end, or a short life, or one after those."""
    short = [(start, start + 15 * MS), (start + 5 * MS, start + 40 * MS), (start + 20 * MS, FOREVER)]
    # the last is over before it begins
    return rng.choice([(start, FOREVER)] * 3 + short * 3 + [(start + MS, start)])


def hole(rng: random.Random, kind: int, k: int) -> int:
    """Pages at the beginning of an area where nothing is mapped: often none, or a few, or more than a window scans."""
    pages = rng.choice([0, 0, 0, 0, 0, rng.randrange(1, 600), 3000])
    return pages if kind == BASE else pages // k * k


def random_layout(rng: random.Random) -> Layout:
    """A machine of up to 5 nodes and a workload of a few processes, regions of every kind and accesses."""
    nodes = rng.choice([1, 2, 2, 3, 4, 5])
    smt = rng.choice([1, 1, 2])
    cpus = [smt * rng.choice([1, 1, 2, 3]) for _ in range(nodes)]
    if nodes > 2 and rng.random() < 0.2:
        cpus[rng.randrange(nodes)] = 0
    processes = rng.choice([1, 1, 2, 3, 4])
    threads = [rng.choice([1, 3, 5]) for _ in range(processes)]
    tasks = sum(threads)
    task_process = [m for m in range(processes) for _ in range(threads[m])]
    total_cpus = sum(cpus)
    cpu_node = [n for n in range(nodes) for _ in range(cpus[n])]
    cpu_core, core = [], 0
    for n in range(nodes):
        cores = cpus[n] // smt
        cpu_core += [core + k % cores for k in range(cpus[n])]
        core += cores

    def place(home: int | None) -> int:
        """Any node, or mostly one node, else where some task starts."""
        if home is None:
            return rng.randrange(nodes)
        return home if rng.random() < 0.9 else -1 - rng.randrange(tasks)

    regions: list[dict[str, Any]] = []
    first = 0
    for _ in range(rng.choice([1, 2, 3, 4])):
        kind = rng.choice([BASE, BASE, BASE, HUGE, FOLIO])
        k = {BASE: rng.choice([1, 1, 4, 512]), HUGE: 512, FOLIO: 16}[kind]
        blocks = rng.choice([1, 3, 12, 40])
        file = rng.random() < 0.2
        home = rng.choice([rng.randrange(nodes), None])
        regions.append(
            {
                "first": first, "blocks": blocks, "k": k, "kind": kind, "file": file,
                "exec": file and rng.random() < 0.5, "dirty": file and rng.random() < 0.5,
                "mappers": rng.sample(range(processes), rng.choice([1, 1, processes])),
                "shared": rng.random() < 0.3, "write": rng.random() < 0.8,
                "node": [place(home) for _ in range(blocks)],
            }
        )  # fmt: skip
        first += blocks

    vmas: list[dict[str, Any]] = []
    pte = 0
    for m in range(processes):
        start = rng.choice([0, 512])
        for g, region in enumerate(regions):
            if m not in region["mappers"]:
                continue
            empty = hole(rng, region["kind"], region["k"])
            pages = empty + region["blocks"] * region["k"]
            vmas.append({"m": m, "g": g, "start": start, "pages": pages, "hole": empty, "pte": pte})
            start += -(-pages // 512) * 512 + rng.choice([0, 512])
            pte += region["blocks"]
    accesses = []
    together = rng.random() < 0.5  # the threads of a process all touch its memory, and often
    orders = rng.choice([[RANDOM], [SEQUENTIAL], [RANDOM, SEQUENTIAL]]) if together else [RANDOM, SEQUENTIAL]
    rates = [50_000, 400_000, 3_000_000] if together else [2000, 50_000, 400_000]
    for t in range(tasks):
        mine = [v for v, vma in enumerate(vmas) if vma["m"] == task_process[t]]
        least = len(mine) if together else min(1, len(mine))
        for v in sorted(rng.sample(mine, rng.randint(least, len(mine)))):
            blocks = regions[vmas[v]["g"]]["blocks"]
            accesses.append(
                (t, v, rng.choice(rates), rng.choice(orders),
                 rng.choice([0, 300, 1000]), rng.randrange(blocks),
                 *rng.choice([(0, FOREVER), (0, FOREVER), (30 * MS, 90 * MS)]))
            )  # fmt: skip

    affinity_ns = [0, *rng.choice([[], [], [40 * MS], [25 * MS, 70 * MS]])]
    affinity = np.ones((len(affinity_ns), tasks, total_cpus), bool)
    for phase in range(len(affinity_ns)):
        for t in range(tasks):
            if rng.random() < 0.25:
                keep = rng.choice(cpu_node)
                affinity[phase, t] = np.array(cpu_node) == keep
    pages_needed = sum(region["blocks"] * region["k"] for region in regions)
    roomy = rng.random() < 0.6
    memory = [pages_needed * (4 if roomy else 1) + 600 for _ in range(nodes)]
    if nodes > 2 and rng.random() < 0.2:
        memory[rng.randrange(nodes)] = 0
    watermark = [0 if roomy else rng.choice([0, 20, 200]) for _ in range(nodes)]

    def flags(chance: float) -> list[bool]:
        return [rng.random() < chance for _ in vmas]

    def of(name: str) -> list[Any]:
        return [region[name] for region in regions]

    unlike, demand = unlike_tasks(rng, tasks), rng.choice([1000, 1000, 1000, 500])
    starts = [rng.choice([0, 0, 0, 30 * MS, 55 * MS]) for _ in range(processes)]
    mortal = rng.random() < 0.25
    lives = [life(rng, starts[m]) if mortal else (starts[m], FOREVER) for m in task_process]
    # a step's worth at the rates above, up to a whole run's
    visits = rng.choice([[0], [0], [0], [0], [0, 0, 0, 1, 5_000, 100_000]])
    shared = [regions[v["g"]]["shared"] for v in vmas]
    fields: dict[str, Any] = {
        "node_id": range(nodes), "distance": random_distance(rng, nodes), "node_pages": memory,
        "node_reserved": [min(memory[n], rng.choice([0, 50])) for n in range(nodes)], "node_watermark": watermark,
        "node_llcs": [rng.choice([1, 1, 2])] * nodes, "cpu_node": cpu_node, "cpu_core": cpu_core,
        "task_process": task_process, "task_pid": [1000 + t for t in range(tasks)],
        "task_demand": [unlike[t][2] if t in unlike else demand for t in range(tasks)],
        "task_nice": [unlike[t][0] if t in unlike else 0 for t in range(tasks)],
        "task_weight": [unlike[t][1] if t in unlike else 1024 for t in range(tasks)],
        "task_wake_ns": [rng.choice(WAKES) for _ in range(tasks)],
        "task_start_ns": [start for start, _ in lives], "task_end_ns": [end for _, end in lives],
        "task_visits": [rng.choice(visits) for _ in range(tasks)],
        "affinity_ns": affinity_ns,
        "region_first": of("first"), "region_blocks": of("blocks"), "region_block_pages": of("k"),
        "region_kind": of("kind"), "block_node": [n for region in regions for n in region["node"]],
        "vma_process": [v["m"] for v in vmas], "vma_region": [v["g"] for v in vmas],
        "vma_start": [v["start"] for v in vmas], "vma_pages": [v["pages"] for v in vmas],
        "vma_hole": [v["hole"] for v in vmas], "vma_pte": [v["pte"] for v in vmas],
        "access_task": [a[0] for a in accesses], "access_vma": [a[1] for a in accesses],
        "access_rate": [a[2] for a in accesses], "access_order": [a[3] for a in accesses],
        "access_write": [a[4] for a in accesses], "access_start": [a[5] for a in accesses],
        "access_from_ns": [a[6] for a in accesses], "access_until_ns": [a[7] for a in accesses],
    }  # fmt: skip
    bools: dict[str, Any] = {
        "region_file": of("file"), "region_exec": of("exec"), "region_dirty": of("dirty"),
        "vma_read": flags(0.95), "vma_write": [regions[v["g"]]["write"] for v in vmas], "vma_shared": shared,
        "vma_cow": [not s for s in shared], "vma_mof": flags(0.95), "vma_scannable": flags(0.9),
        "vma_migratable": flags(0.97), "vma_pte_write": flags(0.85), "vma_pinned": flags(0.1),
        "process_single_node": [rng.random() < 0.1 for _ in range(processes)],
    }  # fmt: skip
    return Layout(
        smt=smt,
        affinity=affinity,
        **{name: np.array(list(value), np.int64) for name, value in fields.items()},
        **{name: np.array(value, bool) for name, value in bools.items()},
    )


def crowded(rng: random.Random) -> tuple[Layout, dict[str, int]]:
    """More tasks than CPUs, of unequal loads, and the parameters: a region each, or pages of all that move slowly."""
    nodes, cpus, threads = rng.choice([2, 2, 3]), rng.choice([1, 2]), rng.choice([1, 1, 2, 3])
    processes = max(2, (nodes * cpus + rng.randint(1, nodes * cpus)) // threads)
    tasks, blocks = processes * threads, rng.choice([12, 40])
    shared = rng.random() < 0.5
    homes = rng.choices(range(nodes), k=1 if shared else processes)
    layout = tiny_layout(
        nodes=nodes, cpus=cpus, processes=processes, threads=threads, blocks=blocks, shared_region=shared,
        rate=rng.choice([50_000, 400_000]), block_node=[n for n in homes for _ in range(blocks)],
        task_weight=rng.choices([700, 1024, 1100, 2000], k=tasks), task_demand=rng.choices([1000, 1000, 600], k=tasks),
    )  # fmt: skip
    slow = {"migrate_ns": rng.choice([2_500_000, 6_000_000]), "pte_scan_ns": 0}
    return layout, {"step_us": rng.choice([500, 1000])} | (slow if shared else {})


PER_RUN = [
    "cpu",
    "run_ns",
    "debt_ns",
    "wait_ns",
    "spin_ns",
    "sys_ns",
    "waited_ns",
    "work",
    "stamp_ns",
    "period_ms",
    "preferred",
    "retry_ms",
    "seq_seen",
    "group",
    "deferred",
    "total",
    "placed_run_ns",
    "placed_wall_ns",
    "moving",
    "moving_from",
    "moving_ns",
    "waits_for",
    "load_avg",
    "mem",
    "cpuf",
    "membuf",
    "cpubuf",
    "locality",
    "gmem",
    "gcpu",
    "gtotal",
    "gtasks",
    "gmax",
    "gcount",
    "gactive",
    "pos",
    "carry_ns",
    "offset",
    "next_scan_ms",
    "seq",
    "pending",
    "intensity",
    "vma_next_ms",
    "vma_reset_ms",
    "pids0",
    "pids1",
    "prev_seq",
    "trapped",
    "pte_write",
    "pte_dirty",
    "node",
    "last_cpu",
    "last_pid",
    "free",
    "rate_end_ms",
    "rate_count",
    "balance_ns",
    "balance_failed",
]


def thresholds(state: State, run: int) -> Any:
    """The touch threshold of every trapped PTE block of a run, 0 elsewhere: (Q,)."""
    result = np.zeros(state.layout.pte_blocks, np.int64)
    for v in range(state.layout.vmas):
        first = int(state.layout.vma_pte[v])
        waiting = slice(first + int(state.queue_head[run, v]), first + int(state.queue_len[run, v]))
        result[state.queue[run, waiting]] = state.queue_threshold[run, waiting]
    return np.where(state.trapped[run], result, 0)


def array_state(state: State, run: int) -> dict[str, Any]:
    """One run of the array model under the oracle's names."""
    result = {name: getattr(state, name)[run].tolist() for name in PER_RUN}
    result["threshold"] = thresholds(state, run).tolist()
    result["counters"] = {name: int(value[run]) for name, value in state.counters.items()}
    return result


def oracle_state(oracle: Any, layout: Layout) -> dict[str, Any]:
    """The oracle's state; thresholds of areas nobody touches at random decide nothing and are left out."""
    result = dict(oracle.state())
    at_random = np.zeros(layout.vmas, bool)
    at_random[layout.access_vma[layout.access_order == RANDOM]] = True
    used = np.repeat(at_random, layout.region_blocks[layout.vma_region])
    result["threshold"] = np.where(used, result["threshold"], 0).tolist()
    return result
