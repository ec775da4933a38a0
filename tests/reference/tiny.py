"""Small layouts built by hand for tests; independent of numalab.workload."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from numalab.layout import BASE, FOLIO, HUGE, RANDOM, SEQUENTIAL, Layout

FOREVER = 2**62


def tiny_layout(
    nodes: int = 2,
    cpus: int = 2,
    processes: int = 1,
    threads: int = 2,
    blocks: int = 16,
    block_pages: int = 1,
    kind: int = BASE,
    order: int = RANDOM,
    rate: int = 100_000,
    write: int = 500,
    shared_region: bool = False,
    home: int | None = None,
    demand: int = 1000,
    smt: int = 1,
    node_pages: int | list[int] = 1 << 20,
    distance: list[list[int]] | None = None,
    **changes: Any,
) -> Layout:
    """Build a layout: every thread of every process touches one region of its process (or one region of all).

    ``cpus`` counts per node, ``threads`` per process. ``home`` is the node of all memory, by default each
    region starts where the first thread of its (first) process starts. ``changes`` replaces fields.
    """
    T, C = processes * threads, nodes * cpus
    regions = 1 if shared_region else processes
    if distance is None:
        distance = [[10 if a == b else 21 for b in range(nodes)] for a in range(nodes)]
    pages = blocks * block_pages
    homes = [home if home is not None else -1 - g * threads for g in range(regions)]
    fields: dict[str, Any] = {
        "node_id": range(nodes),
        "distance": distance,
        "node_pages": [node_pages] * nodes if isinstance(node_pages, int) else node_pages,
        "node_reserved": [0] * nodes,
        "node_watermark": [0] * nodes,
        "node_llcs": [1] * nodes,
        "cpu_node": [c // cpus for c in range(C)],
        "cpu_core": [c // smt for c in range(C)],
        "smt": smt,
        "task_process": [t // threads for t in range(T)],
        "task_pid": [1000 + t for t in range(T)],
        "task_demand": [demand] * T,
        "task_nice": [0] * T,
        "task_weight": [1024] * T,
        "task_wake_ns": [10_000_000] * T,
        "task_start_ns": [0] * T,
        "task_end_ns": [FOREVER] * T,
        "task_visits": [0] * T,
        "affinity_ns": [0],
        "affinity": np.ones((1, T, C), dtype=bool),
        "region_first": [g * blocks for g in range(regions)],
        "region_blocks": [blocks] * regions,
        "region_block_pages": [block_pages] * regions,
        "region_kind": [kind] * regions,
        "region_file": [False] * regions,
        "region_exec": [False] * regions,
        "region_dirty": [False] * regions,
        "block_node": [homes[g] for g in range(regions) for _ in range(blocks)],
        "vma_process": range(processes),
        "vma_region": [0 if shared_region else m for m in range(processes)],
        "vma_start": [512] * processes,
        "vma_pages": [pages] * processes,
        "vma_hole": [0] * processes,
        "vma_pte": [m * blocks for m in range(processes)],
        "vma_read": [True] * processes,
        "vma_write": [True] * processes,
        "vma_shared": [shared_region] * processes,
        "vma_cow": [not shared_region] * processes,
        "vma_mof": [True] * processes,
        "vma_scannable": [True] * processes,
        "vma_migratable": [True] * processes,
        "vma_pte_write": [True] * processes,
        "vma_pinned": [False] * processes,
        "access_task": range(T),
        "access_vma": [t // threads for t in range(T)],
        "access_rate": [rate] * T,
        "access_order": [order] * T,
        "access_write": [write] * T,
        "access_start": [t % blocks for t in range(T)],
        "access_from_ns": [0] * T,
        "access_until_ns": [FOREVER] * T,
        "process_single_node": [False] * processes,
    }
    fields.update(changes)
    return Layout(**{name: as_array(name, value) for name, value in fields.items()})


def as_array(name: str, value: Any) -> Any:
    """Turn a list into the array a layout holds."""
    if name == "smt":
        return int(value)
    array = np.asarray(list(value) if isinstance(value, range) else value)
    return array if array.dtype == bool else array.astype(np.int64)


MESH = [[10, 16, 16, 22], [16, 10, 22, 16], [16, 22, 10, 16], [22, 16, 16, 10]]
BACKPLANE = [[10, 16, 22, 22], [16, 10, 22, 22], [22, 22, 10, 16], [22, 22, 16, 10]]


#: Nice values and their load weights.
NICE = {nice: round(1024 * 1.25**-nice) for nice in (-20, -15, -5, 1, 5, 19)}
#: Times after which a task decides anew whether to run.
WAKES = [2_000_000, 10_000_000, 50_000_000]


def unlike_tasks(rng: random.Random, tasks: int) -> dict[int, tuple[int, int, int]]:
    """Tasks of another nice value in a third of the cases: (nice, weight, demand); others are nice 0."""
    if rng.random() >= 1 / 3:
        return {}
    if rng.random() < 0.4:  # a daemon among equals
        return {rng.randrange(tasks): (-15, NICE[-15], rng.randint(100, 300))}
    return {
        t: (*rng.choice(list(NICE.items())), rng.choice([100, 300, 1000]))
        for t in rng.sample(range(tasks), rng.randint(1, tasks))
    }


def random_layout(seed: int) -> Layout:
    """Build a small layout in which most things of a layout occur somewhere."""
    rng = random.Random(seed)
    nodes, distance = rng.choice([(1, None), (2, None), (2, None), (4, None), (4, MESH), (4, BACKPLANE)])
    if distance is None:
        distance = [[10 if a == b else 21 for b in range(nodes)] for a in range(nodes)]
    smt = rng.choice([1, 1, 2])
    counts = [rng.choice([2, 2, 4]) for _ in range(nodes)]
    if nodes == 4 and rng.random() < 0.3:
        counts[rng.randrange(4)] = 0
    cpu_node = [n for n in range(nodes) for _ in range(counts[n])]
    C = len(cpu_node)
    processes = rng.choice([1, 2, 3])
    task_process = [m for m in range(processes) for _ in range(rng.choice([1, 2, 4, 8]))]
    T = len(task_process)
    leaders = [task_process.index(m) for m in range(processes)]

    regions: list[dict[str, Any]] = []
    vmas: list[dict[str, Any]] = []
    block_node: list[int] = []
    ptes = 0
    end = [512] * processes
    owners = [[m] for m in range(processes) for _ in range(rng.choice([1, 2]))]
    owners += [sorted(rng.sample(range(processes), rng.randint(1, processes))) for _ in range(2)]
    for who in owners:
        kind = rng.choice([BASE, BASE, HUGE, FOLIO])
        k = {BASE: rng.choice([1, 4]), HUGE: 512, FOLIO: 16}[kind]
        blocks = rng.choice([6, 24]) if kind == HUGE else rng.choice([8, 64])
        file = kind != HUGE and rng.random() < 0.3
        shared = rng.random() < (0.6 if len(who) > 1 else 0.2)
        where = rng.choice([rng.randrange(nodes), -1 - leaders[who[0]]])
        regions.append(
            {
                "first": len(block_node),
                "blocks": blocks,
                "block_pages": k,
                "kind": kind,
                "file": file,
                "exec": file and rng.random() < 0.3,
                "dirty": file and rng.random() < 0.3,
            }
        )
        block_node += [where if rng.random() < 0.8 else rng.randrange(nodes) for _ in range(blocks)]
        for m in who:
            write = rng.random() < 0.85
            hole = rng.choice([0, 0, 512, 2048])
            vmas.append(
                {
                    "process": m,
                    "region": len(regions) - 1,
                    "start": end[m],
                    "pages": hole + blocks * k,
                    "hole": hole,
                    "read": rng.random() < 0.97,
                    "write": write,
                    "shared": shared,
                    "cow": not shared,
                    "mof": rng.random() < 0.95,
                    "scannable": rng.random() < 0.95,
                    "migratable": rng.random() < 0.95,
                    "pte_write": write and rng.random() < 0.8,
                    "pinned": rng.random() < 0.1,
                }
            )
            end[m] += hole + -(-blocks * k // 512) * 512 + rng.choice([0, 512])
    vmas.sort(key=lambda v: (v["process"], v["start"]))
    for v in vmas:
        v["pte"] = ptes
        ptes += regions[v["region"]]["blocks"]

    accesses: list[dict[str, Any]] = []
    for t in range(T):
        mine = [i for i, v in enumerate(vmas) if v["process"] == task_process[t]]
        for i in rng.sample(mine, rng.randint(1, len(mine))):
            r = regions[vmas[i]["region"]]
            late = rng.random() < 0.2
            accesses.append(
                {
                    "task": t,
                    "vma": i,
                    "rate": rng.choice([1_000, 50_000, 1_000_000]),
                    "order": rng.choice([RANDOM, SEQUENTIAL]),
                    "write": rng.choice([0, 300, 1000]),
                    "start": rng.randrange(r["blocks"]),
                    "from_ns": 200_000_000 if late else 0,
                    "until_ns": FOREVER if rng.random() < 0.8 else 700_000_000,
                }
            )
    phases = rng.choice([1, 2])
    affinity = np.ones((phases, T, C), dtype=bool)
    for f in range(phases):
        for t in range(T):
            if rng.random() < 0.3:
                affinity[f, t] = [rng.random() < 0.5 for _ in range(C)]
                affinity[f, t, rng.randrange(C)] = True
    unlike = unlike_tasks(rng, T)
    starts = [0 if t in leaders or rng.random() < 0.7 else rng.randrange(400) * 10**6 for t in range(T)]
    need = sum(r["blocks"] * r["block_pages"] for r in regions)
    node_pages = [need + 600 if rng.random() < 0.6 else need // 2 + 1100 for _ in range(nodes)]
    if nodes > 1 and rng.random() < 0.2:
        node_pages[rng.randrange(nodes)] = 0
    node_pages[rng.choice([n for n in range(nodes) if node_pages[n]])] = 2 * need + 4096
    return tiny_layout(
        nodes=nodes,
        cpus=1,
        processes=1,
        threads=1,
        distance=distance,
        smt=smt,
        **{
            "node_pages": node_pages,
            "node_reserved": [min(pages, 16) for pages in node_pages],
            "node_watermark": [8 if pages else 0 for pages in node_pages],
            "node_llcs": [rng.choice([1, 2]) for _ in range(nodes)],
            "cpu_node": cpu_node,
            "cpu_core": [c // smt for c in range(C)],
            "task_process": task_process,
            "task_pid": [rng.choice([250, 1000]) + t for t in range(T)],
            "task_demand": [unlike[t][2] if t in unlike else rng.choice([1000, 1000, 600]) for t in range(T)],
            "task_nice": [unlike[t][0] if t in unlike else 0 for t in range(T)],
            "task_weight": [unlike[t][1] if t in unlike else 1024 for t in range(T)],
            "task_wake_ns": [rng.choice(WAKES) for _ in range(T)],
            "task_start_ns": starts,
            "task_end_ns": [rng.choice([FOREVER] * 5 + [start + 150 * 10**6]) for start in starts],
            "task_visits": [rng.choice([0] * 5 + [20_000]) for _ in range(T)],
            "affinity_ns": [0, 300_000_000][:phases],
            "affinity": affinity,
            "block_node": block_node,
            "process_single_node": [rng.random() < 0.1 for _ in range(processes)],
        }
        | {f"region_{name}": [r[name] for r in regions] for name in regions[0]}
        | {f"vma_{name}": [v[name] for v in vmas] for name in vmas[0]}
        | {f"access_{name}": [a[name] for a in accesses] for name in accesses[0]},
    )
