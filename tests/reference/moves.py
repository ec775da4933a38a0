"""Moving a task towards its memory (docs/model.md, section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.draws import truncated
from tests.reference.groups import active, group_weight, task_weight
from tests.reference.load import capacity, free, idle_cpu, imbnr, load, nr, spare, task_capacity
from tests.reference.scan import start_period
from tests.reference.scheduling import change_cpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.oracle import Oracle

MOVE, SWAP, BALANCER, FAILED = range(4)


def attempt(o: Oracle, t: int) -> None:
    """7.1: try to bring task t to its preferred node."""
    if o.preferred[t] == -1 or o.total[t] == 0:
        return
    o.retry_ms[t] = o.now_ms + (min(1000, o.period_ms[t] // 16) if o.sw.retry_scales else 1000)
    s = o.node_of(t)
    if s == o.preferred[t]:
        return
    if len(o.cpu_nodes) == 1:
        o.preferred[t] = s
        return
    search = Search(o, t)
    search.all_nodes()
    search.settle()
    search.act()


class Search:
    """7: the search for a CPU for task t, now on CPU c0 of node s."""

    def __init__(self, o: Oracle, t: int) -> None:
        self.o, self.t, self.c0, self.s = o, t, o.cpu[t], o.node_of(t)
        self.grouped = o.group[t] >= 0
        self.best_cpu, self.best_task, self.best_imp = -1, -1, 0
        self.last = o.preferred[t]  # last node considered
        self.stats: dict[tuple[Callable[[Oracle, int], int], int], int] = {}
        # of the node being examined
        self.n, self.d, self.timp, self.gimp = -1, 0, 0, 0

    def stat(self, what: Callable[[Oracle, int], int], n: int) -> int:
        """7.1: one of the stats of node n; nothing moves while the search goes on."""
        if (what, n) not in self.stats:
            self.stats[what, n] = what(self.o, n)
        return self.stats[what, n]

    # ------------------------------------------------------------ 7.2, nodes
    def all_nodes(self) -> None:
        """7.2: the preferred node, then the others."""
        o, t = self.o, self.t
        preferred = o.preferred[t]
        self.gains(preferred, o.lay.distance[self.s][preferred])
        if self.check_preferred(preferred):
            self.examine(preferred)
        spread = o.sw.search_all_if_spread and self.grouped and o.gcount[o.group[t]] > 1
        if self.best_cpu >= 0 and not spread:
            return
        for n in o.cpu_nodes:
            if n in (self.s, preferred):
                continue
            self.gains(n, o.lay.distance[self.s][self.last])  # the kernel's own slip
            if self.timp < 0 and self.gimp < 0:
                continue
            self.last = n
            if o.sw.check_preferred != "has_capacity" or self.has_capacity(n):
                self.examine(n)

    def check_preferred(self, n: int) -> bool:
        """7.2: whether the preferred node is examined."""
        match self.o.sw.check_preferred:
            case "always":
                return True
            case "if_free":
                return bool(self.stat(free, n))
            case _:  # has_capacity
                return self.has_capacity(n)

    def has_capacity(self, n: int) -> bool:
        """7.1, has_capacity(n): node n is relatively less loaded than s."""
        o, s, stat = self.o, self.s, self.stat
        if not stat(free, n) and stat(free, s):
            return False
        return stat(load, s) * capacity(o, n) * o.sw.imbalance_pct > stat(load, n) * capacity(o, s) * 100

    def gains(self, n: int, d: int) -> None:
        """7.1, timp and gimp: what the task and its group gain by node n at distance d."""
        o, t = self.o, self.t
        self.n, self.d = n, d
        self.timp = task_weight(o, t, n, d) - task_weight(o, t, self.s, d)
        self.gimp = group_weight(o, t, n, d) - group_weight(o, t, self.s, d)

    def base(self) -> int:
        """7.2, base(n): gain of a plain move."""
        if self.o.sw.group_improvement == "if_positive":
            return self.gimp if self.gimp > 0 else self.timp
        return self.gimp if self.grouped else self.timp

    def examine(self, n: int) -> None:
        """7.2: look at the CPUs of node n."""
        if self.o.sw.maymove:
            self.examine_maymove()
        else:
            for c in self.o.node_cpus[n]:
                if self.o.allowed(self.t, c):
                    self.examine_classic(c)

    def accept(self, c: int, partner: int, imp: int) -> None:
        """7.2: the best so far."""
        self.best_cpu, self.best_task, self.best_imp = c, partner, imp

    # ------------------------------------------------------------ 7.2, loads
    def too_imbalanced(self, moved: int) -> bool:
        """7.2: whether taking load from s to n leaves them too imbalanced."""
        o = self.o
        Ks, Kd = capacity(o, self.s), capacity(o, self.n)
        Ls, Ld = self.stat(load, self.s), self.stat(load, self.n)
        if not o.sw.capacity_after:
            Ls, Ld = 1024 * Ls // Ks, 1024 * Ld // Kd
            Ks = Kd = 1
        new_s, new_d = Ls - moved, Ld + moved
        if o.sw.imbalance_rule == "improve":
            return abs(new_d * Ks - new_s * Kd) > abs(Ld * Ks - Ls * Kd)

        def imbalance(one: int, other: int) -> int:
            return 100 * max(one, other) * Ks - o.sw.imbalance_pct * min(one, other) * Kd

        if imbalance(new_s, new_d) <= 0:
            return False
        if o.sw.imbalance_rule == "threshold":
            return imbalance(new_s, new_d) > imbalance(Ls, Ld)
        # balance_point
        if moved > 0:
            return new_s * Kd < new_d * Ks
        return new_d * Ks < new_s * Kd

    # ------------------------------------------------------------ 7.2, swap partners
    def swapped_load(self, cur: int) -> int:
        """7.2, l': load that a swap with the task cur takes from s to n."""
        return self.o.load_avg[self.t] - self.o.load_avg[cur]

    def partner_gain(self, cur: int, by_group: bool) -> int:
        """7.2: what the task cur gains by coming from n to s."""
        weight = group_weight if by_group else task_weight
        return weight(self.o, cur, self.s, self.d) - weight(self.o, cur, self.n, self.d)

    def same_group(self, cur: int) -> bool:
        """7.2: same group, or both have none."""
        return self.o.group[cur] == self.o.group[self.t]

    def within_group(self, imp: int) -> int | None:
        """7.2: gain of a swap within a group; none if below the threshold."""
        o = self.o
        if o.sw.numa_move_threshold > 0:
            return imp if imp >= o.sw.numa_move_threshold else None
        return imp - truncated(imp, 16) if o.sw.group_hysteresis else imp

    def moves_for(self, imp: int) -> bool:
        """7.2: whether a gain reaches the threshold of moves."""
        return self.o.sw.numa_move_threshold == 0 or imp >= self.o.sw.numa_move_threshold

    # ------------------------------------------------------------ 7.2, until 4.18
    def examine_classic(self, c: int) -> None:
        """7.2, classic: one CPU of the node."""
        o = self.o
        imp0 = imp = self.base()
        cur = o.cur[c]
        if cur >= 0:
            if not o.allowed(cur, self.c0):
                return
            swap = self.classic_swap_gain(cur)
            if swap is None:
                return
            imp = swap
        if o.sw.strict_improvement:
            if imp <= self.best_imp and (not o.sw.move_in_swap or imp0 <= self.best_imp):
                return
        elif imp < self.best_imp:
            return
        if cur < 0:
            self.classic_idle(c, imp)
        else:
            self.classic_busy(c, cur, imp, imp0)

    def classic_swap_gain(self, cur: int) -> int | None:
        """7.2, classic: gain of a swap with cur; none if refused."""
        o = self.o
        if self.same_group(cur):
            imp = self.timp + self.partner_gain(cur, by_group=False)
            return self.within_group(imp) if self.grouped else imp
        return (self.gimp if self.grouped else self.timp) + self.partner_gain(cur, by_group=o.group[cur] >= 0)

    def classic_idle(self, c: int, imp: int) -> None:
        """7.2, classic: an idle CPU."""
        o, s, n, stat = self.o, self.s, self.n, self.stat
        if not self.moves_for(imp):
            return
        if o.sw.idle_capacity_test == "free" and stat(free, s) and not stat(free, n):
            return
        if o.sw.idle_capacity_test == "relative" and stat(nr, s) <= task_capacity(o, s) and not stat(free, n):
            return
        if not self.too_imbalanced(o.load_avg[self.t]):
            self.accept(c, -1, imp)

    def classic_busy(self, c: int, cur: int, imp: int, imp0: int) -> None:
        """7.2, classic: a busy CPU."""
        o, strict = self.o, self.o.sw.strict_improvement
        alone = len(o.queue[self.c0]) == 1 and len(o.queue[c]) == 1
        if alone and (not strict or imp > self.best_imp):
            self.accept(c, cur, imp)
        elif o.sw.move_in_swap and imp0 > imp and imp0 > self.best_imp and not self.too_imbalanced(o.load_avg[self.t]):
            self.accept(c, -1, imp0 - 1)
        elif not (strict and imp <= self.best_imp) and not self.too_imbalanced(self.swapped_load(cur)):
            self.accept(c, cur, imp)

    # ------------------------------------------------------------ 7.2, since 4.19
    def examine_maymove(self) -> None:
        """7.2, maymove: the node, then its CPUs."""
        o, n = self.o, self.n
        if o.sw.node_classes and self.stat(spare, n):
            dst_nr = self.stat(nr, n) + 1
            x = max(0, dst_nr - (self.stat(nr, self.s) - 1))
            if dst_nr <= imbnr(o, n) and x <= 2:
                x = 0
            maymove = x == 0
            if maymove:
                idle = idle_cpu(o, self.t, n)
                if idle >= 0 and self.moves_for(self.base()):
                    self.accept(idle, -1, 0)
                    return
        else:
            maymove = not self.too_imbalanced(o.load_avg[self.t])
        for c in o.node_cpus[n]:
            skip = o.sw.numa_migrate_on and c in o.landed
            if o.allowed(self.t, c) and not skip and self.examine_cpu(c, maymove):
                return

    def examine_cpu(self, c: int, maymove: bool) -> bool:
        """7.2, maymove: one CPU of the node; whether the node is done."""
        o, imp0, cur = self.o, self.base(), self.o.cur[c]
        if cur < 0:
            if maymove and imp0 >= self.best_imp and self.moves_for(imp0):
                self.accept(c, -1, imp0)
                return o.sw.stop_when_good
            return False
        if not o.allowed(cur, self.c0):
            return False
        if o.sw.spare_refuses_swap and self.stat(spare, self.n) and self.same_group(cur):
            return False
        goes_home = o.preferred[cur] == self.s
        best_goes_home = self.best_task >= 0 and o.preferred[self.best_task] == self.s
        if o.sw.home_bias and best_goes_home and not goes_home:
            return False
        imp = self.swap_gain(cur, imp0)
        if imp is None:
            return False
        if o.sw.move_in_swap and maymove and imp0 > imp and imp0 > self.best_imp and self.moves_for(imp0):
            self.accept(c, -1, imp0)
            return False
        at_once = o.sw.home_bias and goes_home and self.best_task >= 0 and not best_goes_home
        h = o.sw.small_improvement
        if not at_once and (imp <= self.best_imp + h // 2 or (h > 0 and imp < h)):
            return False
        moved = self.swapped_load(cur)
        if not at_once and moved != 0 and self.too_imbalanced(moved):
            return False
        self.accept(c, cur, imp)
        return o.sw.stop_when_good and not maymove and goes_home

    def swap_gain(self, cur: int, imp0: int) -> int | None:
        """7.2, maymove: gain of a swap with cur; none if refused."""
        o = self.o
        if self.same_group(cur):
            gain = self.timp + self.partner_gain(cur, by_group=False)
            imp = self.within_group(gain) if self.grouped else gain
            if imp is None:
                return None
        else:
            by_group = o.group[cur] >= 0 and (self.grouped or not o.sw.pair_by_group)
            imp = imp0 + self.partner_gain(cur, by_group)
        if o.sw.home_bias and o.preferred[cur] == self.n:
            imp -= truncated(imp, 16)
        if o.sw.home_bias and o.preferred[cur] == self.s:
            imp += truncated(imp, 8)
        return imp

    # ------------------------------------------------------------ 7.3
    def settle(self) -> None:
        """7.3: the preferred node of a grouped task after a search."""
        o, t, g = self.o, self.t, self.o.group[self.t]
        found = self.best_cpu >= 0
        if o.sw.stay_put == "always" and found:
            o.preferred[t] = self.last
        if not self.grouped:
            return
        node = o.lay.cpu_node[self.best_cpu] if found else self.s
        match o.sw.stay_put:
            case "off":
                if found and active(o, g, self.last):
                    o.preferred[t] = self.last
            case "best_cpu":
                o.preferred[t] = node
            case "active":
                if active(o, g, self.last if found else self.s):
                    o.preferred[t] = self.last
            case "several_active":
                if o.gcount[g] > 1 and active(o, g, self.last):
                    o.preferred[t] = self.last

    def act(self) -> None:
        """7.3: the move, the swap or nothing."""
        o, t = self.o, self.t
        if self.best_cpu < 0:
            o.events.append((o.i, FAILED, t, self.c0, -1, -1, 0))
            return
        if o.sw.reset_period_on_numa_move:
            o.period_ms[t] = start_period(o, t)
        o.landed.add(self.best_cpu)
        if self.best_task < 0:
            change_cpus(o, [(t, self.best_cpu)])
            o.events.append((o.i, MOVE, t, self.c0, self.best_cpu, -1, self.best_imp))
            return
        o.landed.add(self.c0)
        change_cpus(o, [(t, self.best_cpu), (self.best_task, self.c0)])
        o.events.append((o.i, SWAP, t, self.c0, self.best_cpu, self.best_task, self.best_imp))
