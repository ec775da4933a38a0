"""Sums over faults and NUMA groups (docs/model.md, sections 4.6, 4.7, 5 and 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.topology import near

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def group_faults(o: Oracle, g: int, n: int) -> int:
    """4.6 f, M(n) or gF(n): memory faults of group g on node n."""
    return sum(o.gmem[g][n])


def group_cpu(o: Oracle, g: int, n: int) -> int:
    """4.6 f, Cf(n): CPU faults of group g on node n."""
    return sum(o.gcpu[g][n])


def active(o: Oracle, g: int, n: int) -> bool:
    """4.7: whether node n is active in group g."""
    if o.sw.active_nodes == "count":
        return 3 * group_cpu(o, g, n) > o.gmax[g]
    return o.gactive[g][n]  # spec 4.7: active_nodes none reads the mask, which keeps the creator's node


def task_weight(o: Oracle, t: int, n: int, d: int) -> int:
    """5: share of the task's faults on node n, of 1000, with nodes near it up to distance d."""
    return weight(o, o.mem[t], o.total[t], n, d)


def group_weight(o: Oracle, t: int, n: int, d: int) -> int:
    """5: the same for the task's group, 0 without one."""
    g = o.group[t]
    return 0 if g < 0 else weight(o, o.gmem[g], o.gtotal[g], n, d)


def weight(o: Oracle, mem: list[list[int]], total: int, n: int, d: int) -> int:
    """5: 1000*(F(n) + near(n,d)) // total."""
    if total == 0:
        return 0
    return 1000 * (sum(mem[n]) + near(o, mem, n, d)) // total


def join(o: Oracle, t: int, here: int, last_cpu: int, last_pid: int, shared: bool) -> bool:
    """4.7: a shared fault may create a group and join another's; returns whether it counts as private."""
    if o.group[t] < 0:
        create(o, t, here)
    other = o.cur[last_cpu]
    if other < 0 or other == t or o.pid8[other] != last_pid:
        return False
    mine, its = o.group[t], o.group[other]
    if its < 0 or its == mine:
        return False
    if o.gtasks[mine] > o.gtasks[its]:
        return False
    if o.gtasks[mine] == o.gtasks[its] and address(o, mine) > address(o, its):
        return False
    if o.lay.task_process[t] != o.lay.task_process[other] and not shared:
        return True
    change_group(o, t, its)
    return False


def address(o: Oracle, g: int) -> int:
    """3: the address of a group breaks ties."""
    return o.group_address[g]


def create(o: Oracle, t: int, here: int) -> None:
    """4.7: task t makes a group of its own."""
    o.group[t] = t
    o.gmem[t] = [list(row) for row in o.mem[t]]
    o.gcpu[t] = [list(row) for row in o.cpuf[t]]
    o.gtotal[t], o.gtasks[t], o.gmax[t], o.gcount[t] = o.total[t], 1, 0, 1
    o.gactive[t] = [n == here for n in range(o.N)]


def change_group(o: Oracle, t: int, to: int) -> None:
    """4.7: task t takes its faults from its group to another."""
    leave_group(o, t)
    add_faults(o, t, to, 1)
    o.group[t] = to


def leave_group(o: Oracle, t: int) -> None:
    """4.1, 4.7: task t takes its faults out of its group, which is forgotten once it is empty."""
    old = o.group[t]
    add_faults(o, t, old, -1)
    if o.gtasks[old] == 0:
        o.gmem[old], o.gcpu[old] = [[0, 0] for _ in range(o.N)], [[0, 0] for _ in range(o.N)]
        o.gtotal[old], o.gmax[old], o.gcount[old] = 0, 0, 0
        o.gactive[old] = [False] * o.N
    o.group[t] = -1


def add_faults(o: Oracle, t: int, g: int, sign: int) -> None:
    """4.7: task t and its faults are added to group g (sign 1) or taken from it (-1)."""
    for n in range(o.N):
        for p in (0, 1):
            o.gmem[g][n][p] += sign * o.mem[t][n][p]
            o.gcpu[g][n][p] += sign * o.cpuf[t][n][p]
    o.gtotal[g] += sign * o.total[t]
    o.gtasks[g] += sign
