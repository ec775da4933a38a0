"""The oracle against values worked out by hand: placement, periods, moves, balancer, topology (5 to 9)."""

from __future__ import annotations

import pytest

from tests.reference import balancer, draws, load, moves, placement, scheduling, topology
from tests.reference.helpers import (
    GB,
    oracle,
    place,
    prefer,
    two_nodes,
)
from tests.reference.scheduling import reset_period
from tests.reference.tiny import BACKPLANE, MESH


# ---------------------------------------------------------------- 5
def test_decay_halves():
    o = oracle(threads=1)
    o.mem[0][0], o.total[0] = [9, 0], 9
    o.membuf[0][1] = [0, 4]
    o.cpubuf[0][0] = [0, 4]
    o.locality[0] = [1, 3, 0]
    o.t1, o.run_ns[0] = 1999, 1000
    assert placement.decay(o, 0) == [0, 4]
    assert o.mem[0] == [[5, 0], [0, 4]]  # 9 - 9//2
    assert o.total[0] == 9
    assert o.cpuf[0] == [[0, 32768 * 4 // 5], [0, 0]]  # half a CPU
    for _ in range(9):
        placement.decay(o, 0)
    assert o.mem[0] == [[1, 0], [0, 1]]  # never back to 0


def test_active_nodes():
    o = oracle("3.17", nodes=4)
    o.gactive[0] = [True, True, False, False]
    o.gcpu[0] = [[16, 0], [3, 0], [6, 0], [7, 0]]
    placement.update_active(o, 0)
    assert (o.gactive[0], o.gcount[0]) == ([True, True, False, True], 3)
    o = oracle("4.15", nodes=4)
    o.gcpu[0] = [[16, 0], [3, 0], [6, 0], [5, 0]]
    placement.update_active(o, 0)
    assert (o.gmax[0], o.gcount[0]) == (16, 2)


def test_preferred_choice():
    o = oracle("3.16", threads=2)
    o.mem[0], o.total[0] = [[3, 0], [3, 0]], 6
    assert placement.preferred_choice(o, 0) == 0  # the lowest on ties
    o.group[0] = 1
    o.gmem[1], o.gtotal[1] = [[1, 0], [9, 0]], 10
    assert placement.preferred_choice(o, 0) == 1  # 500+100 < 500+900
    o.mem[0] = [[6, 0], [0, 0]]
    assert placement.preferred_choice(o, 0) == 0  # 1000+100 > 900
    o.sw.preferred_rule = "group_max"
    assert placement.preferred_choice(o, 0) == 1
    o.gmem[1] = [[0, 0], [0, 0]]
    assert placement.preferred_choice(o, 0) == -1


# ---------------------------------------------------------------- 6
def adapted(kernel, locality, types, period=1000, **switches):
    o = oracle(kernel, threads=1, switches=switches)
    o.rss[0] = 16 * GB  # 100 to 937
    o.sw.scan_period_max_ms = 600_000
    o.period_ms[0], o.locality[0], o.now_ms = period, list(locality), 7
    placement.adapt_period(o, 0, list(types), placement.max_period(o, 0))
    return o.period_ms[0], o.locality[0], o.next_scan_ms[0]


def test_scan_period_extremes():
    assert adapted("3.17", [0, 9, 0], [0, 9]) == (1300, [0, 0, 0], 0)
    assert adapted("3.17", [9, 0, 0], [1, 99])[0] == 300
    assert adapted("3.16", [9, 0, 0], [1, 99])[0] == 700
    assert adapted("3.16", [7, 3, 0], [0, 9])[0] == 1100  # lr = T: one slot
    assert adapted("3.17", [9, 0, 0], [9, 0])[0] == 1000  # nothing private
    assert adapted("3.17", [9, 0, 0], [2, 1])[0] == 1000 - 700 * 4 // 10
    assert adapted("3.19", [19, 1, 0], [0, 9])[0] == 1000 - 700 * 9 // 10  # ceil(90/10) = 9
    assert adapted("4.15", [9, 1, 0], [0, 9])[0] == 1300
    assert adapted("4.15", [9, 0, 0], [9, 0])[0] == 300
    assert adapted("4.15", [5, 5, 0], [6, 4])[0] == 800


def test_scan_period_doubles():
    assert adapted("3.17", [9, 0, 0], [1, 99], period=100)[0] == 100  # clamped
    assert adapted("3.17", [9, 0, 0], [0, 9])[0] == 2000  # nothing local, nothing shared: private and remote slows too
    assert adapted("4.0", [1, 1, 1], [0, 2]) == (2000, [1, 1, 1], 2007)
    assert adapted("4.0", [1, 1, 1], [0, 2], doubling_clears_counts=True) == (2000, [0, 0, 0], 2007)
    assert adapted("3.17", [1, 0, 0], [1, 99], period=1005)[0] == 1005 - 707
    assert adapted("4.15", [2, 0, 0], [0, 0]) == (2000, [2, 0, 0], 2007)


# ---------------------------------------------------------------- 7
def test_attempt_entry():
    o = two_nodes()
    moves.attempt(o, 0)
    assert o.retry_ms[0] == 0
    prefer(o, 0, 0)
    moves.attempt(o, 0)
    assert (o.retry_ms[0], o.events) == (1000 // 16, [])
    o = oracle(nodes=2, cpu_node=[0, 0, 0, 0])
    prefer(o, 0, 1)
    moves.attempt(o, 0)
    assert (o.preferred[0], o.events) == (0, [])


@pytest.mark.parametrize("kernel", ["3.16-tip", "3.17", "4.0", "4.15", "4.19", "5.7", "6.18"])
def test_a_swap_that_suits_both(kernel):
    o = two_nodes(kernel)
    prefer(o, 0, 1)
    prefer(o, 3, 0)
    moves.attempt(o, 0)
    assert o.cpu == [3, 1, 2, 0]
    gain = {"5.7": 2250, "6.18": 2250}.get(kernel, 2000)  # home_bias: an eighth more
    assert o.events == [(0, moves.SWAP, 0, 0, 3, 3, gain)]
    assert o.queue == [[3], [1], [2], [0]]
    assert o.cur == [3, 1, 2, 0]


def test_marginal_swaps():
    """A gain of zero is taken until 3.16, one below 3 % until 4.18."""
    for kernel, imp, swapped in (("3.16-tip", 0, True), ("3.17", 0, False), ("4.15", 20, True), ("4.19", 20, False)):
        o = two_nodes(kernel)
        o.preferred[0], o.mem[0], o.total[0] = 1, [[500 - imp, 0], [500, 0]], 1000 - imp
        moves.attempt(o, 0)
        assert (o.cpu[0] != 0) is swapped, kernel
    o = two_nodes("3.17", switches={"numa_move_threshold": 50})
    for t in range(4):
        o.group[t] = 0
    o.preferred[0], o.mem[0], o.total[0] = 1, [[0, 0], [49, 0]], 1000
    o.gtasks[0] = 4
    moves.attempt(o, 0)
    assert o.events[-1][1] == moves.FAILED


def gain_of(kernel, cpus, *, grouped=False, at=(0, 1), **switches):
    """The task gains 160 by node 1; what it does and with which gain."""
    o = two_nodes(kernel, cpus=cpus, threads=len(at), switches=switches)
    place(o, at)
    if grouped:
        o.group, o.gtasks[0] = [0] * len(at), len(at)
        o.gmem[0], o.gtotal[0] = [[420, 0], [580, 0]], 1000
    o.preferred[0], o.mem[0], o.total[0] = 1, [[420, 0], [580, 0]], 1000
    moves.attempt(o, 0)
    return o.events[-1][1], o.events[-1][-1]


@pytest.mark.parametrize("kernel", ["4.15", "4.19", "6.18"])
def test_swaps_within_a_group(kernel):
    """160 less a sixteenth; a threshold takes its place."""

    def swap(**switches):
        return gain_of(kernel, 2, at=(0, 1, 2, 3), **{"grouped": True, **switches})

    assert swap() == (moves.SWAP, 150)
    assert swap(group_hysteresis=False) == (moves.SWAP, 160)
    for hysteresis in (True, False):
        assert swap(numa_move_threshold=160, group_hysteresis=hysteresis) == (moves.SWAP, 160)
        assert swap(numa_move_threshold=161, group_hysteresis=hysteresis) == (moves.FAILED, 0)
    assert swap(grouped=False, numa_move_threshold=161) == (moves.SWAP, 160)  # of tasks without a group


@pytest.mark.parametrize("kernel", ["4.15", "4.19", "6.1", "6.18"])
@pytest.mark.parametrize("grouped", [False, True])
def test_moves_to_idle_cpus_need_the_threshold(kernel, grouped):
    def move(h):
        return gain_of(kernel, 2, grouped=grouped, numa_move_threshold=h, node_classes=False)

    assert move(0) == move(160) == (moves.MOVE, 160)
    assert move(161) == (moves.FAILED, 0)


def test_an_idle_cpu_is_taken_at_once_only_for_the_threshold():
    """3 tasks here, 1 there; below the threshold the node is gone through: neither its idle CPUs nor a swap will do."""

    def move(h):
        return gain_of("6.18", 4, at=(0, 1, 2, 4), numa_move_threshold=h)

    assert move(0) == move(160) == (moves.MOVE, 0)  # no gain is noted
    assert move(161) == (moves.FAILED, 0)
    assert gain_of("6.18", 4, at=(0, 1, 2, 4), numa_move_threshold=161, spare_refuses_swap=False) == (moves.SWAP, 160)


def test_moves_by_way_of_a_busy_cpu():
    """Two tasks here, one there that would lose 1000."""

    def move(**switches):
        o = oracle("4.19", cpus=1, threads=3, switches=switches)
        place(o, [0, 0, 1])
        prefer(o, 2, 1)
        o.preferred[0], o.mem[0], o.total[0] = 1, [[420, 0], [580, 0]], 1000
        moves.attempt(o, 0)
        return o.events[-1][1], o.events[-1][-1]

    assert move() == move(numa_move_threshold=160) == (moves.MOVE, 160)
    assert move(move_in_swap=False) == move(numa_move_threshold=161) == (moves.FAILED, 0)


def test_move_to_an_idle_cpu():
    o = two_nodes("4.15", cpus=4, threads=3)
    place(o, [0, 1, 7])
    prefer(o, 0, 1)
    moves.attempt(o, 0)
    assert o.events == [(0, moves.MOVE, 0, 0, 4, -1, 1000)]
    assert o.cur[0] == -1
    assert o.cur[4] == 0
    assert o.period_ms[0] == 1000


def test_idle_cpu_of_a_node_with_spare_is_taken_at_once():
    o = two_nodes("6.18", cpus=4, threads=4, smt=2)
    place(o, [0, 2, 4, 1])
    o.preferred[0], o.mem[0], o.total[0] = 1, [[100, 0], [0, 0]], 100  # a loss even
    moves.attempt(o, 0)
    assert o.events == [(0, moves.MOVE, 0, 0, 6, -1, 0)]  # an idle core; 2 there against 2 here


def test_fail_and_stay_put():
    def failed(kernel, active):
        o = two_nodes(kernel, switches={"strict_improvement": True})
        o.group[0], o.gtasks[0], o.gcount[0] = 0, 1, 2
        o.gactive[0] = [active, True]
        o.gcpu[0], o.gmax[0] = [[9 if active else 0, 0], [9, 0]], 9
        o.preferred[0], o.mem[0], o.total[0] = 1, [[100, 0], [0, 0]], 100
        o.gmem[0], o.gtotal[0] = [[100, 0], [0, 0]], 100
        moves.attempt(o, 0)
        assert o.events[-1] == (0, moves.FAILED, 0, 0, -1, -1, 0)
        return o.preferred[0]

    # 3.17: an active node of its own makes the task settle, in words, for the node examined last: 1, as before
    assert [failed("3.17", active) for active in (True, False)] == [1, 1]
    assert [failed("4.19", active) for active in (True, False)] == [0, 0]


def test_load_rules():
    def verdict(rule, src, dst, moved=1024, **switches):
        o = oracle("4.15", cpus=4, threads=src + dst, switches={"imbalance_rule": rule, **switches})
        place(o, [0] * src + [4] * dst)
        search = moves.Search(o, 0)
        search.n = 1
        return search.too_imbalanced(moved)

    assert not verdict("threshold", 3, 1)
    assert not verdict("threshold", 3, 2)  # 2 against 3: as bad as before
    assert verdict("threshold", 2, 2)
    assert not verdict("balance_point", 3, 1)
    assert verdict("balance_point", 3, 2)
    assert not verdict("improve", 3, 2)
    assert verdict("improve", 2, 2)
    # divided by capacity first: loads 768 and 256, then a whole 1024 is moved
    assert verdict("threshold", 3, 1, capacity_after=False)


def test_moved_load_is_the_load_average_of_the_task():
    """4000 here, 1500 there. Less 3000 and more: 1000, 4500, more apart; 2500: as far apart; 1000: 3000, 2500."""

    def moved(weights, t, kernel="4.19"):
        o = two_nodes(
            kernel, threads=3, task_weight=weights,
            switches={"imbalance_rule": "improve", "capacity_after": True, "idle_capacity_test": "none"},
        )  # fmt: skip
        place(o, [0, 1, 2])
        prefer(o, t, 1)
        prefer(o, 2, 1)  # a swap would gain nothing
        moves.attempt(o, t)
        return o.cpu[t] == 3

    for kernel in ("4.15", "4.19"):
        assert moved([1000, 3000, 1500], 0, kernel)
        assert not moved([1000, 3000, 1500], 1, kernel)
        assert moved([2500, 1500, 1500], 0, kernel)
        assert not moved([2501, 1499, 1500], 0, kernel)


def test_has_capacity_by_load():
    """4096 of capacity each, 125 %: has it if 5 * load(s) > 4 * load(n), however many tasks."""

    def has(here, there):
        o = oracle("4.19", cpus=4, threads=3, task_weight=[here, there, 0], switches={"imbalance_pct": 125})
        place(o, [0, 4, 5])
        return moves.Search(o, 0).has_capacity(1)

    assert has(1024, 1279)
    assert not has(1024, 1280)
    o = oracle("4.19", cpus=1, threads=2, task_weight=[10**6, 15])
    place(o, [0, 1])
    assert moves.Search(o, 0).has_capacity(1)
    o.queue[0], o.cur[0] = [], -1  # asleep here: free, and load all the same, but the other is full
    assert not moves.Search(o, 0).has_capacity(1)


def test_node_numbers():
    o = oracle("4.15", cpus=4, smt=2, threads=3)
    place(o, [0, 1, 2])
    assert load.capacity(o, 0) == 4 * 589
    assert load.task_capacity(o, 0) == 2
    assert not load.free(o, 0)
    assert load.free(o, 1)
    o = oracle("3.16", cpus=8, smt=2, threads=3)
    assert load.task_capacity(o, 0) == (8 * 589 + 512) // 1024
    o = oracle("6.18", cpus=16)
    assert (load.capacity(o, 0), load.imbnr(o, 0)) == (16384, 2)
    o.lay.node_llcs = [4, 1]
    assert load.imbnr(o, 0) == 4


def test_period_after_a_move_by_the_scheduler():
    o = two_nodes("6.18")
    prefer(o, 0, 0)
    for seq, a, b, expected in ((0, 0, 1, 1000), (3, 0, 1, 1000), (3, 1, 0, 77), (3, 0, 0, 77)):
        o.period_ms[0], o.seq_seen[0] = 77, seq
        reset_period(o, 0, a, b)
        assert o.period_ms[0] == expected


# ---------------------------------------------------------------- 8
def test_balancer_pulls_and_evens_out():
    o = oracle("4.15", threads=6, params={"balancer_sigma": 0})
    place(o, [0, 0, 0, 0, 1, 1])
    o.balance_ns = [10**12, 0]
    balancer.balance(o)
    (event,) = o.events
    assert event[:2] == (0, balancer.KIND)
    assert event[2] in (1, 2, 3)
    assert event[3:] == (0, 2, -1, 0)
    assert o.balance_ns[1] == 4 * 10**6
    # now 3, 2, 1, 0: no two CPUs of a node differ by 2
    assert [len(q) for q in o.queue] == [3, 2, 1, 0]
    place(o, [0, 0, 0, 1, 2, 3])
    balancer.even_out(o, 0)
    assert [len(q) for q in o.queue] == [2, 2, 1, 1]
    assert o.cpu[0] == 0


def test_balancer_sees_load():
    o = oracle("4.15", threads=4, params={"balancer_sigma": 0}, task_weight=[3000, 1001, 15, 500])
    place(o, [0, 0, 2, 3])
    assert [balancer.seen_load(o, 0, m) for m in (0, 1)] == [4001 * 1024 // 2048, 257]  # 2000, 515 // 2
    o.queue[3], o.cur[3] = [], -1  # sleeping still counts
    assert balancer.seen_load(o, 0, 1) == 257
    o.asleep[3] = True  # unless for a page
    assert balancer.seen_load(o, 0, 1) == 7
    # the busier node has fewer tasks: (3 + 3) * 1024 // 2 against (15 * 4) * 1024 // 2048
    o = oracle("4.15", nodes=3, threads=6, params={"balancer_sigma": 0}, task_weight=[3000, 3000, 15, 15, 15, 15])
    place(o, [2, 2, 4, 4, 5, 5])
    assert balancer.busiest_node(o, 0, {m: balancer.seen_load(o, 0, m) for m in range(3)}) == 1


def test_balancer_takes_tasks_in_task_order_whatever_their_nice():
    """The queue is 2, 0, 1 and 2 runs; from the position drawn on, in task order, the first of 0 and 1."""
    taken = set()
    for step in range(12):
        o = oracle("4.15", threads=3, params={"balancer_sigma": 0}, task_nice=[0, 0, -5])
        place(o, [0, 0, 0])
        assert (o.queue[0], o.cur[0]) == ([2, 0, 1], 2)
        o.i, o.balance_ns = step, [10**12, 0]
        balancer.balance_node(o, 1)
        position = draws.draw(1, draws.PICK, 2 + 1, step) % 3
        assert o.events[-1][2] == {0: 0, 1: 1, 2: 0}[position]
        taken.add(position)
    assert taken == {0, 1, 2}


def evened(weights, cpus, nice=None, cur=None, affinity=None):
    """Where the tasks are after 8.3 within one node of three CPUs."""
    T = len(weights)
    o = oracle(nodes=1, cpus=3, threads=T, task_weight=weights, task_nice=nice or [0] * T)
    place(o, cpus)
    for c, t in (cur or {}).items():
        o.cur[c] = t
    for t, c in affinity or ():
        o.lay.affinity[0][t][c] = False
    balancer.even_out(o, 0)
    assert o.events == []
    return o.cpu


def test_load_is_evened_out_within_a_node():
    # 4000 + b here, 1024 there (and 1500): 2b <= 4000 + b - 1024 up to 2976
    assert evened([4000, 2976, 1024, 1500], [0, 0, 1, 2]) == [0, 1, 1, 2]
    assert evened([4000, 2977, 1024, 1500], [0, 0, 1, 2]) == [0, 0, 1, 2]
    # the one that runs stays, and the other is too heavy
    assert evened([4000, 300, 1024, 1500], [0, 0, 1, 2], cur={0: 1}) == [0, 0, 1, 2]
    # the first in task order, though the queue is 0, 2, 1; and the first that is light enough: 18010 - 18 < 2 * 9000
    others, cpus, nice = [1024, 1024, 9, 9], [0, 0, 0, 1, 1, 2, 2], [-2, 0, -1, 0, 0, 0, 0]
    assert evened([9000, 10, 10, *others], cpus, nice) == [0, 2, 0, 1, 1, 2, 2]
    assert evened([9000, 9000, 10, *others], cpus, nice) == [0, 0, 2, 1, 1, 2, 2]
    assert evened([9000, 10, 10, *others], cpus, nice, affinity=[(1, 2)]) == [0, 0, 2, 1, 1, 2, 2]
    # of equal loads the lowest CPU: 30, 30, 5, and 5, 30, 5
    assert evened([20, 10, 20, 10, 5], [0, 0, 1, 1, 2]) == [0, 2, 1, 1, 2]
    assert evened([5, 20, 10, 5], [0, 1, 1, 2]) == [0, 1, 0, 2]


def test_numbers_come_before_load():
    # 3 tasks, 1 and 1: from the longest queue to the shortest, though CPU 2 has the highest load; in task order
    for nice in ([0] * 5, [-2, 0, -1, 0, 0]):
        assert evened([1, 1, 1, 5, 90], [0, 0, 0, 1, 2], nice) == [0, 1, 0, 1, 2]
    # if none of them may go there nothing is done by load either
    heavy = [9000, 9000, 9000, 1, 1]
    assert evened(heavy, [0, 0, 0, 1, 2], affinity=[(1, 1), (2, 1)]) == [0, 0, 0, 1, 2]


def test_sleepers_are_load_when_load_is_evened_out():
    """Task 0 sleeps on CPU 0 between two others."""
    o = oracle(nodes=1, cpus=3, threads=5, task_weight=[5000, 1024, 1024, 2000, 3000])
    place(o, [0, 0, 0, 1, 2])
    o.queue[0], o.cur[0] = [1, 2], 1  # 7048 here, 2000 and 3000 there, 2 tasks against 1
    balancer.even_out(o, 0)
    assert o.cpu == [0, 0, 1, 1, 2]
    place(o, [0, 0, 0, 1, 2])
    o.queue[0], o.cur[0], o.asleep[0] = [1, 2], 1, True  # 2048, 2000, 3000: CPU 2 has nobody to give
    balancer.even_out(o, 0)
    assert o.cpu == [0, 0, 0, 1, 2]


def test_balancer_and_locality():
    o = oracle("4.15", threads=4)
    place(o, [0, 0, 0, 0])
    prefer(o, 1, 0)
    assert balancer.hot(o, 1, 0, 0, 1, True)  # others may go
    for t in range(4):
        prefer(o, t, 0)
    assert not balancer.hot(o, 1, 0, 0, 1, True)
    o.preferred[1] = 1
    assert not balancer.hot(o, 1, 0, 0, 1, False)
    o.preferred[1] = 5
    assert not balancer.hot(o, 1, 0, 0, 1, True)
    assert balancer.hot(o, 1, 0, 0, 1, False)
    o.sw.can_migrate_rule = "favour_higher"
    assert not balancer.hot(o, 1, 0, 0, 1, False)


# ---------------------------------------------------------------- 9
def test_topologies():
    def kind(kernel, distance):
        return oracle(kernel, nodes=len(distance), distance=distance).topology

    assert [kind("6.18", d) for d in (MESH, BACKPLANE)] == ["MESH", "BACKPLANE"]
    assert kind("3.17", MESH) == "DIRECT"
    assert kind("4.1", [[10, 21], [21, 10]]) == "BACKPLANE"
    assert kind("4.15", [[10, 21], [21, 10]]) == "DIRECT"
    assert kind("4.1", [[10]]) == "DIRECT"


def test_faults_nearby():
    o = oracle("4.15", nodes=4, distance=MESH)
    mem = [[0, 8], [4, 0], [2, 0], [16, 0]]
    assert topology.near(o, mem, 0, 0) == 4 * 6 // 12 + 2 * 6 // 12
    o = oracle("4.15", nodes=4, distance=BACKPLANE)
    assert topology.near(o, mem, 0, 16) == 4
    assert topology.near(o, mem, 0, 10) == 0
    o = oracle("4.19", nodes=4, distance=BACKPLANE)
    assert topology.near(o, mem, 0, 16) == 0
    assert topology.near(o, mem, 0, 22) == 4
    assert topology.best_cluster(o, [[9, 0], [0, 0], [4, 0], [6, 0]]) == 3
    assert topology.best_cluster(o, [[9, 0], [1, 0], [4, 0], [5, 0]]) == 0
    assert topology.best_cluster(o, [[0, 0]] * 4) == -1


def test_running_tasks_follow_the_new_queues():
    o = oracle("4.15", cpus=1, threads=4)
    place(o, [0, 0, 1, 1])
    scheduling.change_cpus(o, [(0, 1)])
    assert o.queue == [[1], [0, 2, 3]]
    assert o.cur == [scheduling.running_of(o, c) for c in (0, 1)]


def test_tasks_of_lower_nice_run_at_once_where_they_arrive():
    o = oracle("4.15", cpus=1, threads=4, task_nice=[-5, 0, 0, 3])
    place(o, [0, 0, 1, 1])
    assert o.cur == [0, 2]
    scheduling.change_cpus(o, [(0, 1)])
    assert (o.queue, o.cur) == ([[1], [0, 2, 3]], [1, 0])
    scheduling.change_cpus(o, [(2, 0), (1, 1)])
    assert (o.queue, o.cur) == ([[2], [0, 1, 3]], [2, 0])


def test_last_node_considered_becomes_preferred():
    """Found on node 1, but node 3 was looked at last and is active."""
    o = oracle("4.15", nodes=4, cpus=1, threads=4)
    place(o, [0, 1, 2, 3])
    o.group[0], o.gtasks[0], o.gcount[0], o.gmax[0] = 0, 1, 3, 9
    o.gcpu[0] = [[9, 0], [9, 0], [0, 0], [9, 0]]
    o.preferred[0], o.mem[0], o.total[0] = 1, [[0, 0], [60, 0], [20, 0], [20, 0]], 100
    o.gmem[0], o.gtotal[0] = [list(row) for row in o.mem[0]], 100
    o.sw.check_preferred = "always"
    moves.attempt(o, 0)
    assert o.events == [(0, moves.SWAP, 0, 0, 1, 1, 600)]
    assert o.preferred[0] == 3
