"""The stuck state of the convergence thread: one thread astray, and no legal way home.

The mail's trace stands at 41/3 39/2 40/2 40/2 (threads/processes by node) before it converges: one thread of a
process of node 1 sits on node 0. This builds that state and asks several kernels what they do about it.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from numalab.compile import compile_layout
from numalab.kernel import Kernel
from numalab.layout import Ints
from numalab.machine import Machine
from numalab.model import runqueue, weights
from numalab.model.engine import Engine
from numalab.model.explain import Candidate, explain, load_test
from numalab.model.state import PRIVATE, SHARED, State
from numalab.text import table
from numalab.workload import Workload

THREADS, PER_NODE = 20, 2
#: The last thread of process 2, whose home is node 1, sits on node 0.
STRAY, SITS_ON, HOME = 3 * THREADS - 1, 0, 1
#: Of a thread's faults on its process's memory this share is shared with others.
SHARED_SHARE = 0.95

VARIANTS: dict[str, tuple[str, ...]] = {
    "before the series": (),
    "with patch 2 alone": ("S1#2",),
    "with patch 5 alone": ("S1#5",),
    "with patches 2 and 5": ("S1#2", "S1#5"),
}


def stuck(host: Machine, workload: Workload, kernel: Kernel, seeds: list[int], **params: int) -> Engine:
    """Return an engine in the stuck state: memory and groups settled, one thread astray.

    Parameters
    ----------
    host, workload
        Four nodes of 20 CPUs; 8 processes of 20 threads that share 1000 MB each.
    kernel : Kernel
    seeds : list of int
        One run each; they differ from the first scan on.
    **params : int
        Parameters of the model.
    """
    layout = compile_layout(host, workload)
    engine = Engine(layout, kernel, seeds, params)
    state = engine.state
    home = layout.task_process // PER_NODE
    node = home.copy()
    node[STRAY] = SITS_ON
    state.node_of_task[:] = node
    for n in range(layout.nodes):
        tasks = np.flatnonzero(node == n)
        cpus = np.flatnonzero(layout.cpu_node == n)
        state.cpu[:, tasks] = cpus[np.arange(len(tasks)) % len(cpus)]
    _settle_memory(state)
    _settle_faults(state, home, node)
    state.queue_changed[:] = state.speed_stale[:] = True
    runqueue.pick_running(state)
    return engine


def _settle_memory(state: State) -> None:
    """Put every process's memory on its node, last used by its first thread."""
    one, fix = state.layout, state.fix
    region_home = one.vma_process[np.searchsorted(one.vma_region, np.arange(one.regions))] // PER_NODE
    state.node[:] = region_home[fix.block_region]
    state.region_node_pages[:] = 0
    state.region_node_pages[:, np.arange(one.regions), region_home] = fix.region_pages
    used = np.bincount(region_home, weights=fix.region_pages, minlength=one.nodes).astype(np.int64)
    state.free[:] = one.node_pages - one.node_reserved - used
    leader = fix.process_first_task[one.vma_process[np.searchsorted(one.vma_region, np.arange(one.regions))]]
    state.last_pid[:] = fix.task_pid8[leader][fix.block_region]
    state.last_cpu[:] = state.cpu[:, leader][:, fix.block_region]


def _settle_faults(state: State, home: Ints, node: Ints) -> None:
    """Give all threads the fault averages of a settled run: two passes' faults at home, half a CPU each."""
    tasks = np.arange(state.layout.tasks)
    per_pass = int(state.fix.region_pages[0]) // THREADS
    half_cpu = 1 << 15
    for array, where, amount in ((state.mem, home, 2 * per_pass), (state.cpuf, node, 2 * half_cpu)):
        array[:, tasks, where, SHARED] = int(amount * SHARED_SHARE)
        array[:, tasks, where, PRIVATE] = amount - int(amount * SHARED_SHARE)
    state.total[:] = state.mem.sum(axis=(2, 3))
    state.preferred[:] = home
    state.seq[:] = state.seq_seen[:] = 10
    leader = state.fix.process_first_task[state.layout.task_process]
    state.group[:] = leader
    for r in range(state.runs):
        np.add.at(state.gmem[r], leader, state.mem[r])
        np.add.at(state.gcpu[r], leader, state.cpuf[r])
    state.gtotal[:] = state.gmem.sum(axis=(2, 3))
    state.gtasks[:, state.fix.process_first_task] = THREADS
    state.gmax[:] = state.gcpu.sum(axis=3).max(axis=2)
    state.gcount[:, state.fix.process_first_task] = 1
    state.gactive[:, leader, home] = True
    everyone = np.repeat(np.arange(state.runs), len(tasks)), np.tile(tasks, state.runs)
    weights.refresh_tasks(state, *everyone)
    weights.refresh_groups(state, *everyone)


def astray(state: State) -> Ints:
    """Return how many threads are away from the node of their process's memory: (R,)."""
    home = state.layout.task_process // PER_NODE
    return np.asarray((state.node_of_task != home).sum(axis=1))


def escape_times(host: Machine, workload: Workload, kernel: Kernel, seeds: list[int], limit_s: float) -> list[float]:
    """Return when each run has all threads home, infinity if not within the limit, with a balancer that sees right."""
    step_us = 4000
    engine = stuck(host, workload, kernel, seeds, step_us=step_us, balancer_sigma=0)
    times = np.full(len(seeds), np.inf)
    for step in range(1, int(limit_s * 1e6 / step_us) + 1):
        engine.step()
        free = (astray(engine.state) == 0) & np.isinf(times)
        times[free] = step * step_us / 1e6
        if np.isfinite(times).all():
            break
    return [float(t) for t in times]


def tell(host: Machine, workload: Workload, before: str, seeds: list[int], limit_s: float = 20.0) -> str:
    """Retell the stuck state: what each kernel makes of every candidate, and how long it stays stuck."""
    parts = [
        "The stuck state of the mail's trace, 41/3 39/2 40/2 40/2: a thread of process 2, whose memory and other\n"
        "19 threads are on node 1, sits on node 0. Every CPU of node 1 is busy. What the search makes of them:"
    ]
    parts += [tell_variant(host, workload, before, label, seeds, limit_s) for label in VARIANTS]
    parts.append(
        "Patch 2 lets the move pass the load test (before it, loads were divided by capacity but the moved load was\n"
        "not, so one thread looked heavier than it is); patch 5 makes the kernel think of a move at all. Either alone\n"
        "moves nothing: before them the best on offer is a swap that gains nothing and sends another thread astray."
    )
    return "\n\n".join(parts)


def tell_variant(
    host: Machine, workload: Workload, before: str, label: str, seeds: list[int], limit_s: float = 20.0
) -> str:
    """Retell the stuck state for one of :data:`VARIANTS`: candidates, load test, how long it stays stuck."""
    kernel = Kernel(before).patched(*VARIANTS[label])
    engine = stuck(host, workload, kernel, [0])
    found = explain(engine.state, 0, STRAY, HOME)
    times = escape_times(host, workload, kernel, seeds, limit_s)
    home = [t for t in times if np.isfinite(t)]
    ends = f"all threads home in {len(home)} of {len(times)} runs within {limit_s:.0f} s"
    ends += f", median {np.median(home):.1f} s" if home else " (the load balancer sees right and has no reason to act)"
    return f"{label}:\n{_candidates_table(found)}\n{_load_test(engine)}\n{ends}"


def _candidates_table(found: list[Candidate]) -> str:
    """Print candidates, those alike in one row."""
    rows = []
    for (process, swap, move, verdict), group in groupby(sorted(found, key=_kind), key=_kind):
        rows.append([process, str(swap), str(move), verdict, _ranges([one.cpu for one in group])])
    return table(["CPU runs a thread of", "swap gains", "move gains", "verdict", "CPUs"], rows, right=(1, 2))


def _ranges(numbers: list[int]) -> str:
    """Print ascending numbers as a CPU list."""
    runs = [list(group) for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0][1]}" if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs)


def _load_test(engine: Engine) -> str:
    """Print the loads of both nodes before and after the move, and what the kernel says to them."""
    test = load_test(engine.state, 0, STRAY, HOME)
    verdict = "too uneven" if test.refused else "fine"
    return (
        f"loads of node {SITS_ON} and node {HOME}: {test.source}, {test.target}; after a move "
        f"{test.new_source}, {test.new_target}: {verdict}"
    )


def _kind(one: Candidate) -> tuple[str, int, int, str]:
    process = "idle" if one.cur < 0 else f"process {one.cur // THREADS}"
    return process, one.swap_gain, one.move_gain, one.verdict
