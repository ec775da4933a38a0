"""Load and capacity of nodes (docs/model.md, sections 7.1 and 7.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.draws import ceiling

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def nr(o: Oracle, n: int) -> int:
    """7.1, nr: runnable tasks on node n."""
    return sum(len(o.queue[c]) for c in o.node_cpus[n])


def idle_cpus(o: Oracle, n: int) -> int:
    """8.1: idle CPUs of node n."""
    return sum(not o.queue[c] for c in o.node_cpus[n])


def cpu_load(o: Oracle, c: int) -> int:
    """4.2: load of CPU c, of tasks that sleep too unless they do so for a page."""
    return sum(o.load_avg[t] for t in o.started_on[c] if not o.asleep[t])


def load(o: Oracle, n: int) -> int:
    """7.1, load(n)."""
    return sum(cpu_load(o, c) for c in o.node_cpus[n])


def capacity(o: Oracle, n: int) -> int:
    """7.1, K(n)."""
    one = 1178 // o.lay.smt if o.sw.smt_capacity_discount and o.lay.smt > 1 else 1024
    return one * len(o.node_cpus[n])


def task_capacity(o: Oracle, n: int) -> int:
    """7.1, tc: how many tasks node n holds."""
    cpus, K = len(o.node_cpus[n]), capacity(o, n)
    by_capacity = (K + 512) // 1024
    if o.sw.task_capacity == "capacity":
        return by_capacity
    return min(cpus // ceiling(1024 * cpus, K), by_capacity)


def free(o: Oracle, n: int) -> bool:
    """7.1, free(n)."""
    return nr(o, n) < task_capacity(o, n)


def spare(o: Oracle, n: int) -> bool:
    """7.2, class: whether node n has spare capacity."""
    cpus, cap, pct, tasks = len(o.node_cpus[n]), capacity(o, n), o.sw.imbalance_pct, nr(o, n)
    util = 1024 * (cpus - idle_cpus(o, n))
    if tasks > cpus and (cap * 100 < util * pct or cap * pct < 1024 * tasks * 100):
        return False  # overloaded
    return tasks < cpus or (cap * 100 > util * pct and cap * pct > 1024 * tasks * 100)


def imbnr(o: Oracle, n: int) -> int:
    """7.2, imbnr: tasks up to which an imbalance is allowed into node n."""
    if o.sw.imb_numa_nr == "two":
        return 2
    if o.sw.imb_numa_nr == "llcs" and o.lay.node_llcs[n] > 1:
        return o.lay.node_llcs[n]
    return max(1, len(o.node_cpus[n]) // 8)


def idle_cpu(o: Oracle, t: int, n: int) -> int:
    """7.2: an idle CPU of node n for task t, one on an idle core first, then the lowest; -1 if none."""
    idle = [c for c in o.node_cpus[n] if not o.queue[c] and o.allowed(t, c)]
    core = o.lay.cpu_core
    for c in idle:
        if not any(o.queue[x] for x in o.core_cpus[core[c]]):
            return c
    return idle[0] if idle else -1
