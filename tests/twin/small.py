"""Recordings for tests: one made up by hand, and a run of the model dressed up as one."""

import numpy as np

from numalab import runs
from numalab.machine import Machine
from numalab.simulation import simulate
from numalab.workload import Access, Binding, Processes, Region, Workload

#: pid -> name, and the tasks of each.
NAMES = {100: "db", 200: "worker", 300: "idle"}
OWNERS = {100: 100, 101: 100, 200: 200, 300: 300}
#: Label, process, pages on node 0 and 2 at each look, policy, processes that map it.
REGIONS = (
    ("db-100 400000 /usr/bin/db", 100, [(300, 0)] * 3, "default", 1),
    ("db-100 7f0000000000", 100, [(0, 0), (200, 400), (600, 0)], "default", 1),
    ("db-100 7f1000000000 /dev/shm/cache", 100, [(512, 0)] * 3, "bind:0", 2),
    ("worker-200 5600000 heap", 200, [(0, 512), (0, 1024), (0, 1024)], "prefer=balancing:2", 1),
    ("worker-200 7f2000000000 /dev/shm/cache", 200, [(512, 0)] * 3, "bind:0", 2),
    ("worker-200 7f3000000000", 200, [(0, 8)] * 3, "default", 1),
)


def recording(drop=(), release="6.12.5-generic", **more):
    """Three looks at 0, 5 and 10 s at a database of two threads, its worker, and a process that sleeps.

    Thread 101 has run for 0.5 s when it is first seen at 5 s, all the time; the worker half the time. From 5 s on the
    database may use node 2 only.
    """
    tasks = sorted(OWNERS)
    node = np.array([[[0, -1, 2, 0], [0, 2, 2, 0], [2, 2, 2, 0]]])
    ran = np.array([[[1000.0, 0, 3000, 1], [6000, 500, 5500, 2], [11000, 5500, 8000, 3]]])
    allowed = np.array([[[(2, 2), (-1, -1), (2, 2), (2, 2)], [(0, 2), (2, 2), (2, 2), (2, 2)]]])
    axis = ("run", "time")
    variables = {
        "numa_pte_updates": (axis, [[0, 4000, 6000]]),
        "numa_hint_faults": (axis, [[0, 3000, 5900]]),
        "numa_hint_faults_local": (axis, [[0, 1000, 2900]]),
        "numa_pages_migrated": (axis, [[0, 200, 400]]),
        "free_pages": ((*axis, "node"), [[[20000, 10000]] * 3]),
        "total_pages": ((*axis, "node"), [[[25600, 12800]] * 3]),
        "task_node": ((*axis, "task"), node),
        "task_run_ms": ((*axis, "task"), ran),
        "task_cpus_allowed": (("run", "time_affinity", "task", "node"), allowed),
        "faults": ((*axis, "task", "node", "kind"), np.tile([[40, 60], [0, 0]], (1, 3, 4, 1, 1))),
        "pages": ((*axis, "region", "node"), np.array([[[r[2][k] for r in REGIONS] for k in range(3)]])),
    }
    coords = {
        "kernel": ("run", [release]),
        "time": [0.0, 5.0, 10.0],
        "time_affinity": [0.0, 5.0],
        "node": [0, 2],
        "node2": [0, 2],
        "distance": (("node", "node2"), [[10, 21], [21, 10]]),
        "cpu": [0, 1, 2, 3],
        "cpu_node": (("cpu",), [0, 0, 2, 2]),
        "kind": ["shared", "private"],
        "task": tasks,
        "task_name": (("task",), [NAMES[OWNERS[task]] for task in tasks]),
        "task_process": (("task",), [OWNERS[task] for task in tasks]),
        "process": list(NAMES),
        "process_name": (("process",), list(NAMES.values())),
        "process_small_below": (("process",), [2, 0, -1]),
        "process_small_above": (("process",), [3, 1, -1]),
        "region": [region[0] for region in REGIONS],
        "region_process": (("region",), [region[1] for region in REGIONS]),
        "region_policy": (("region",), [region[3] for region in REGIONS]),
        "region_sharers": (("region",), [region[4] for region in REGIONS]),
    }
    params = {
        "release": release,
        "sysctl": {
            "numa_balancing": 1,
            "numa_balancing_scan_size_mb": 64,
            **{f"numa_balancing_{name}": value for name, value in DEFAULT_SETTINGS.items()},
        },
        **more,
    }
    variables = {name: value for name, value in variables.items() if name not in drop}
    coords = {name: value for name, value in coords.items() if name not in drop}
    return runs.build(variables, coords, title="made up", source="measured", params=params)


DEFAULT_SETTINGS = {"scan_delay_ms": 1000, "scan_period_min_ms": 1000, "scan_period_max_ms": 60000}

#: How often the recorder looks, s.
LOOK_S = 0.5
#: Pages that each of its threads visits a second.
RATE = 10_000.0
MACHINE = Machine.uniform(2, 2, 128, 21, reserved_mb=16)
#: Two processes, each with its memory on the other's node, bound where they do not have it.
WORKLOAD = Workload(
    "two apart",
    (Processes("a"), Processes("b")),
    (
        Region("a.mem", 8, ("a",), block_kb=4, first_touch=1),
        Region("b.mem", 8, ("b",), block_kb=4, first_touch=0),
    ),
    (
        Access("a.mem", pages_per_s=RATE, processes=("a",), write=1.0),
        Access("b.mem", pages_per_s=RATE, processes=("b",), write=1.0),
    ),
    (Binding(0, processes=("a",)), Binding(1, processes=("b",))),
)


def simulated(kernel="6.1", seconds=8.0, seed=77):
    """Return a run of the model as the recorder would have written it: other names, its own times, no model's parts."""
    ds = simulate(MACHINE, WORKLOAD, kernel, seconds=seconds, seeds=[seed], step_us=4000)
    of = [100, 200]
    axis_of = {"task_node": "time_task", "task_run_ms": "time_sched", "pages": "time_memory"}
    axis_of |= dict.fromkeys(
        ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"), "time"
    )
    variables, axes = {}, {}
    for name, axis in axis_of.items():
        own = ds[name].dims[1]
        looks = np.searchsorted(ds[own].values, np.arange(0, seconds + 0.1, LOOK_S) + 1e-9, side="right") - 1
        axes[axis] = ds[own].values[looks]
        variables[name] = (("run", axis, *ds[name].dims[2:]), ds[name].isel({own: looks}).values)
    allowed = np.array([[[(2, 0), (0, 2)]]])
    total = np.full((1, len(axes["time"]), 2), 128 * 256)
    free = total - 16 * 256 - 8 * 256
    variables |= {
        "total_pages": (("run", "time", "node"), total),
        "free_pages": (("run", "time", "node"), free),
        "task_cpus_allowed": (("run", "time_affinity", "task", "node"), allowed),
    }
    coords = {
        **axes,
        "kernel": ("run", [f"{kernel}.0"]),
        "time_affinity": [0.0],
        "node": [0, 1],
        "node2": [0, 1],
        "distance": (("node", "node2"), ds["distance"].values),
        "cpu": ds["cpu"].values,
        "cpu_node": (("cpu",), ds["cpu_node"].values),
        "task": of,
        "task_process": (("task",), of),
        "process": of,
        "process_name": (("process",), ["a", "b"]),
        "region": ["a-100 7f0000000000", "b-200 7f0000000000"],
        "region_process": (("region",), of),
        "region_policy": (("region",), ["default", "default"]),
        "region_sharers": (("region",), [1, 1]),
    }
    sysctl = {"numa_balancing": 1, "numa_balancing_scan_size_mb": 256}
    sysctl |= {f"numa_balancing_{name}": value for name, value in DEFAULT_SETTINGS.items()}
    params = {"release": f"{kernel}.0", "sysctl": sysctl}
    return runs.build(variables, coords, title="a run of the model", source="measured", params=params)
