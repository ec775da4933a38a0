"""Placement and scan period (docs/model.md, sections 5 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.draws import ceiling, truncated
from tests.reference.groups import group_cpu, group_faults, group_weight
from tests.reference.scan import max_period, min_period
from tests.reference.topology import DIRECT, MESH, best_cluster, most

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def decay(o: Oracle, t: int) -> list[int]:
    """5.1: halve the old faults, add the new; returns the new faults by type (shared, private)."""
    o.seq_seen[t] = o.seq[o.lay.task_process[t]]
    L = o.locality[t][0] + o.locality[t][1]
    rho = ((o.run_ns[t] - o.placed_run_ns[t]) << 16) // (o.t1 - o.placed_wall_ns[t] + 1)
    o.placed_run_ns[t], o.placed_wall_ns[t] = o.run_ns[t], o.t1
    g = o.group[t]
    types = [0, 0]
    for n in range(o.N):
        for p in (0, 1):
            types[p] += o.membuf[t][n][p]
            dM = o.membuf[t][n][p] - o.mem[t][n][p] // 2
            dC = 0
            if o.sw.cpu_faults:
                dC = rho * o.cpubuf[t][n][p] // (L + 1) - o.cpuf[t][n][p] // 2
            o.membuf[t][n][p], o.cpubuf[t][n][p] = 0, 0
            o.mem[t][n][p] += dM
            o.cpuf[t][n][p] += dC
            o.total[t] += dM
            if g >= 0:
                o.gmem[g][n][p] += dM
                o.gcpu[g][n][p] += dC
                o.gtotal[g] += dM
    return types


def update_active(o: Oracle, g: int) -> None:
    """5.3: the nodes the group runs on."""
    cpu = [group_cpu(o, g, n) for n in range(o.N)]
    a = max(cpu)
    if o.sw.active_nodes == "mask":
        for n in range(o.N):
            if o.gactive[g][n]:
                o.gactive[g][n] = not cpu[n] < 3 * a // 16
            else:
                o.gactive[g][n] = cpu[n] > 6 * a // 16
        o.gcount[g] = sum(o.gactive[g])
    elif o.sw.active_nodes == "count":
        o.gmax[g] = a
        o.gcount[g] = sum(3 * faults > a for faults in cpu)


def choose(o: Oracle, t: int) -> bool:
    """5.2: set the preferred node; returns whether placement asks for a move."""
    choice = preferred_choice(o, t)
    if choice >= 0 and not o.node_cpus[choice]:
        choice = min(o.cpu_nodes, key=lambda m: (o.lay.distance[choice][m], m))
    changed = choice >= 0 and choice != o.preferred[t]
    if changed:
        o.prefer(t, choice)
    match o.sw.migrate_at_placement:
        case "on_change":
            return changed
        case "not_there":
            return choice >= 0 and o.node_of(t) != o.preferred[t]
        case _:  # no
            return False


def preferred_choice(o: Oracle, t: int) -> int:
    """5.2: the node the task should be on, -1 without faults."""
    own = most([sum(o.mem[t][n]) for n in range(o.N)])
    g = o.group[t]
    if g < 0:
        return own
    best = most([group_faults(o, g, n) for n in range(o.N)])
    match o.sw.preferred_rule:
        case "weight_sum":
            if best < 0 or own == best:
                return own
            both = most(
                [
                    1000 * sum(o.mem[t][n]) // max(1, o.total[t]) + 1000 * group_faults(o, g, n) // max(1, o.gtotal[g])
                    for n in range(o.N)
                ]
            )
            return both if both >= 0 else own
        case "group_max":
            return best
        case _:  # topology: 9
            if o.topology == DIRECT:
                return best
            if o.topology == MESH:
                return most([group_weight(o, t, n, o.max_distance) for n in range(o.N)])
            return best_cluster(o, o.gmem[g])


def adapt_period(o: Oracle, t: int, types: list[int], longest: int) -> None:
    """6: the scan period after a placement; longest is max_period before the decay."""
    m = o.lay.task_process[t]
    remote, local, fail = o.locality[t]
    shared, private = types
    P = o.period_ms[t]
    if local + shared == 0 or (o.sw.fail_slows and fail != 0):
        o.period_ms[t] = min(longest, 2 * P)
        o.next_scan_ms[m] = o.now_ms + o.period_ms[t]
        if o.sw.doubling_clears_counts:
            o.locality[t] = [0, 0, 0]
        return
    lr = 10 * local // (local + remote) if local + remote else 0
    if o.sw.period_rule == "local":
        diff = local_rule(o, lr, private, shared, ceiling(P, 10))
    else:
        diff = private_first_rule(o, lr, private, shared, ceiling(P, 10))
    o.period_ms[t] = max(min_period(o, t), min(max_period(o, t), P + diff))
    o.locality[t] = [0, 0, 0]


def local_rule(o: Oracle, lr: int, private: int, shared: int, s: int) -> int:
    """6, period_rule local: change of the period in ms."""
    T = o.sw.numa_period_threshold
    if lr >= T:
        return max(1, lr - T) * s
    divisor = private + shared + (1 if o.sw.private_ratio_plus_one else 0)
    r = ceiling(10 * private, divisor) if divisor else 0
    return truncated(-(T - lr) * s * r, 10)


def private_first_rule(o: Oracle, lr: int, private: int, shared: int, s: int) -> int:
    """6, period_rule private_first: change of the period in ms."""
    T = o.sw.numa_period_threshold
    ps = 10 * private // (private + shared) if private + shared else 0
    if ps >= T:
        return max(1, ps - T) * s
    if lr >= T:
        return max(1, lr - T) * s
    return -(T - max(lr, ps)) * s
