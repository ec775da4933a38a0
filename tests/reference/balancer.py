"""The load balancer (docs/model.md, section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.draws import BALANCE, PICK, draw, normal
from tests.reference.groups import group_faults, group_weight, task_weight
from tests.reference.load import capacity, cpu_load, idle_cpus, imbnr, load, nr
from tests.reference.scheduling import change_cpus

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle

KIND = 2  # of its events


def balance(o: Oracle) -> None:
    """8: between nodes, then within each."""
    for n in o.cpu_nodes:
        if o.balance_ns[n] <= o.t1:
            balance_node(o, n)
    for n in o.cpu_nodes:
        even_out(o, n)


def balance_node(o: Oracle, n: int) -> None:
    """8.1: node n looks for a task to pull."""
    idle = idle_cpus(o, n) > 0
    if idle and o.par.newidle_ms > 0:
        o.balance_ns[n] = o.t1 + o.par.newidle_ms * 10**6
    else:
        o.balance_ns[n] = o.t1 + o.C * 10**6 * (1 if idle else 32)
    seen = {m: seen_load(o, n, m) for m in o.cpu_nodes}
    b = busiest_node(o, n, seen)
    if b < 0 or not needed(o, n, b, idle, seen) or left_alone(o, n, b, seen):
        return
    c = busiest_queue(o, n, b)
    if c < 0:  # spec 8.1: no queue to take from counts as balanced, not as failed
        return
    queue = sorted(o.queue[c])  # spec 8.1: "in task order": whatever the nice values
    first = draw(o.seed, PICK, o.N + n, o.i) % len(queue)
    for t in queue[first:] + queue[:first]:
        targets = [x for x in o.node_cpus[n] if o.allowed(t, x)]
        if t == o.cur[c] or not targets:
            continue
        if hot(o, t, c, b, n, idle) and o.balance_failed[n] <= 2:
            continue
        to = min(targets, key=lambda x: (len(o.queue[x]), x))
        o.balance_failed[n] = 0
        o.events.append((o.i, KIND, t, c, to, -1, 0))
        change_cpus(o, [(t, to)])
        return
    o.balance_failed[n] += 1


def seen_load(o: Oracle, n: int, m: int) -> int:
    """8.1, l_m: load of node m as node n sees it."""
    noise = max(0, 10**6 + o.par.balancer_sigma * normal(draw(o.seed, BALANCE, n * o.N + m, o.i)))
    return load(o, m) * 1024 // capacity(o, m) * noise // 10**6


def busiest_node(o: Oracle, n: int, seen: dict[int, int]) -> int:
    """8.1: the first node with the highest load that has a CPU with two tasks, -1 if none."""
    busy = [m for m in o.cpu_nodes if m != n and any(len(o.queue[c]) >= 2 for c in o.node_cpus[m])]
    return max(busy, key=lambda m: (seen[m], -m)) if busy else -1


def needed(o: Oracle, n: int, b: int, idle: bool, seen: dict[int, int]) -> bool:
    """8.1: whether node n should pull from node b at all."""
    if idle:
        crowded = nr(o, b) > len(o.node_cpus[b]) or idle_cpus(o, n) > idle_cpus(o, b) + 1
        return seen[b] > seen[n] and crowded
    return 100 * seen[b] > o.par.domain_pct * seen[n]


def left_alone(o: Oracle, n: int, b: int, seen: dict[int, int]) -> bool:
    """8.1: whether the imbalance is allowed, or less than half a task."""
    if o.sw.balancer_allows_imbalance and nr(o, n) < len(o.node_cpus[n]) and nr(o, b) <= len(o.node_cpus[b]):
        x = max(0, idle_cpus(o, n) - idle_cpus(o, b))
        if nr(o, n) + 1 <= imbnr(o, n) and x <= 2:
            x = 0
        return x // 2 == 0
    avg = sum(seen.values()) // len(seen)
    imb = min(seen[b] - avg, avg - seen[n])
    return 1024 * 1024 // capacity(o, b) > 2 * imb


def queue_class(o: Oracle, b: int, tasks: list[int]) -> int:
    """8.1: class of a queue, or of all queues of node b together."""
    nn = sum(o.preferred[t] != -1 for t in tasks)
    if len(tasks) > nn:
        return 0
    return 1 if len(tasks) > on_preferred(o, b, tasks) else 2


def on_preferred(o: Oracle, b: int, tasks: list[int]) -> int:
    """8.1, np: tasks that prefer node b."""
    return sum(o.preferred[t] == b for t in tasks)


def busiest_queue(o: Oracle, n: int, b: int) -> int:
    """8.1: the CPU of node b to take from, -1 if none."""
    cpus = o.node_cpus[b]
    most = queue_class(o, b, [t for c in cpus for t in o.queue[c]])
    first = draw(o.seed, PICK, n, o.i) % len(cpus)
    best = -1
    for c in cpus[first:] + cpus[:first]:
        if len(o.queue[c]) < 2 or queue_class(o, b, o.queue[c]) > most:
            continue
        if best < 0 or len(o.queue[c]) > len(o.queue[best]):
            best = c
    return best


def hot(o: Oracle, t: int, c: int, b: int, n: int, idle: bool) -> bool:
    """8.2: whether taking task t from CPU c of node b to node n degrades its locality."""
    preferred = o.preferred[t]
    if o.sw.can_migrate_rule == "favour_higher" or preferred == -1 or o.total[t] == 0:
        return False
    if b == preferred:
        return len(o.queue[c]) > on_preferred(o, b, o.queue[c])
    if n == preferred or idle:
        return False
    g = o.group[t]
    if o.sw.can_migrate_rule == "preferred_count":
        if g >= 0:
            return group_faults(o, g, n) < group_faults(o, g, b)
        return sum(o.mem[t][n]) < sum(o.mem[t][b])
    weight = group_weight if g >= 0 else task_weight
    d = o.lay.distance[b][n]
    return weight(o, t, n, d) < weight(o, t, b, d)


def even_out(o: Oracle, n: int) -> None:
    """8.3: within node n one task goes from the longest queue to the shortest, else from the highest load."""
    cpus = o.node_cpus[n]
    highest = max(cpus, key=lambda c: (len(o.queue[c]), -c))
    lowest = min(cpus, key=lambda c: (len(o.queue[c]), c))
    by_load = len(o.queue[highest]) - len(o.queue[lowest]) < 2
    difference = 0
    if by_load:
        loads = {c: cpu_load(o, c) for c in cpus}
        highest = max(cpus, key=lambda c: (loads[c], -c))
        lowest = min(cpus, key=lambda c: (loads[c], c))
        difference = loads[highest] - loads[lowest]
    for t in sorted(o.queue[highest]):
        if t == o.cur[highest] or not o.allowed(t, lowest):
            continue
        if not by_load or 2 * o.load_avg[t] <= difference:
            change_cpus(o, [(t, lowest)])
            return
