"""Where tasks start, who runs, and what a change of CPU does (docs/model.md, sections 3, 4.1, 4.2, 7.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference import flights
from tests.reference.draws import FORK, WAKE, draw, normal
from tests.reference.groups import leave_group
from tests.reference.scan import start_period

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def affinity_phase(o: Oracle) -> int:
    """4.1: the affinity phase that holds at t0."""
    return max(f for f, ns in enumerate(o.lay.affinity_ns) if ns <= o.t0)


def tasks_on(o: Oracle) -> list[list[int]]:
    """3: started tasks on each CPU, runnable or not, in task order."""
    tasks: list[list[int]] = [[] for _ in range(o.C)]
    for t, c in enumerate(o.cpu):
        if c >= 0:
            tasks[c].append(t)
    return tasks


def end_tasks(o: Oracle) -> None:
    """4.1: tasks that are over leave their CPU and their group; their own faults stay where they are."""
    for t in range(o.T):
        if o.cpu[t] < 0 or not over(o, t):
            continue
        o.cpu[t], o.ended[t] = -1, True
        o.moving[t] = o.waits_for[t] = -1
        o.debt_ns[t] = o.wait_ns[t] = o.spin_ns[t] = 0
        o.window[t] = None
        if o.group[t] >= 0:
            leave_group(o, t)


def over(o: Oracle, t: int) -> bool:
    """4.1: whether the time of task t is up, or its visits are done."""
    visits = o.lay.task_visits[t]
    return o.lay.task_end_ns[t] <= o.t0 or (visits > 0 and o.work[t] >= visits * 10**9)


def scan_anew(o: Oracle, due: list[int]) -> None:
    """4.1: processes that all tasks had left before those in due start are scanned as at their first start."""
    for m in sorted({o.lay.task_process[t] for t in due}):
        members = o.process_tasks[m]
        # spec 4.1: "have ended": were started once, in this step's ends too
        if any(o.ended[t] for t in members) and all(o.cpu[t] < 0 for t in members):
            o.next_scan_ms[m], o.seq[m] = o.t0 // 10**6 + o.sw.scan_delay_ms, 0


def start_tasks(o: Oracle) -> None:
    """3, 4.1: place the tasks whose time has come, under the affinity of now."""
    # spec 3: tasks starting at 0 are placed before the first step, so that memory can follow them
    due = [t for t in range(o.T) if o.cpu[t] < 0 and not o.ended[t]]
    due = [t for t in due if o.lay.task_start_ns[t] <= o.t0 < o.lay.task_end_ns[t]]
    if o.sw.fork_resets_parent_scan:
        scan_anew(o, due)
    nr = [len(tasks) for tasks in tasks_on(o)] if due else []
    for t in due:
        o.cpu[t] = fork_placement(o, t, nr)
        nr[o.cpu[t]] += 1
        process = o.lay.task_process[t]
        o.seq_seen[t] = o.seq[process]
        o.preferred[t] = o.preferred[o.process_tasks[process][0]]
    if due:
        first_touch(o)


def fork_placement(o: Oracle, t: int, nr: list[int]) -> int:
    """3: the CPU a new task starts on; nr: started tasks on each CPU."""
    affinity = o.lay.affinity[affinity_phase(o)][t]
    best, best_score = -1, 0
    for n in o.cpu_nodes:
        if not any(affinity[c] for c in o.node_cpus[n]):
            continue
        nr_n = sum(nr[c] for c in o.node_cpus[n])
        noise = max(1, 10**6 + o.par.fork_spread * normal(draw(o.seed, FORK, t * o.N + n, 0)))
        score = (nr_n + 1) * 10**6 // len(o.node_cpus[n]) * noise
        if best < 0 or score < best_score:
            best, best_score = n, score
    core = o.lay.cpu_core

    def crowd(c: int) -> tuple[int, int, int]:
        return nr[c], sum(nr[x] for x in o.core_cpus[core[c]]), c

    return min((c for c in o.node_cpus[best] if affinity[c]), key=crowd)


def first_touch(o: Oracle) -> None:
    """3: where each block starts; a full node's blocks go to the nearest with room."""
    for b, wanted in enumerate(o.lay.block_node):
        if o.node[b] >= 0 or (wanted < 0 and o.cpu[-1 - wanted] < 0):
            continue
        home = wanted if wanted >= 0 else o.node_of(-1 - wanted)
        g = o.block_region[b]
        k = o.lay.region_block_pages[g]
        # spec 3: the fallback holds for blocks with a given node too ("all blocks in order")
        if o.free[home] < k:
            room = [n for n in range(o.N) if o.free[n] >= k]
            if not room:  # spec 3: says nothing; a layout that does not fit is refused
                raise ValueError(f"no node has room for block {b}")
            home = min(room, key=lambda n: (o.lay.distance[home][n], n))
        o.node[b] = home
        o.free[home] -= k
        o.on_node[g][home] += k


def follow_affinity(o: Oracle) -> None:
    """4.1: at the beginning of an affinity phase tasks leave CPUs they may no longer use."""
    phase = affinity_phase(o)
    if phase == o.phase:
        return
    o.phase = phase
    nr = [len(tasks) for tasks in tasks_on(o)]  # spec 4.1: nr_c counts started tasks, who is runnable is not known yet
    for t in range(o.T):
        if o.cpu[t] >= 0 and not o.allowed(t, o.cpu[t]):
            c = min((c for c in range(o.C) if o.allowed(t, c)), key=lambda c: (nr[c], c))
            nr[o.cpu[t]] -= 1
            nr[c] += 1
            o.cpu[t] = c


def runnable(o: Oracle, t: int) -> bool:
    """4.2: whether task t wants to run in this step."""
    demand = o.lay.task_demand[t]
    if o.cpu[t] < 0 or o.waits_for[t] >= 0:
        return False
    return demand == 1000 or draw(o.seed, WAKE, t, o.t0 // o.lay.task_wake_ns[t]) % 1000 < demand


def running_of(o: Oracle, c: int) -> int:
    """4.2: the task running on CPU c, -1 if idle."""
    queue = o.queue[c]
    if not queue:
        return -1
    lowest = o.lay.task_nice[queue[0]]
    f = sum(o.lay.task_nice[t] == lowest for t in queue)
    return queue[(o.t0 // (o.par.slice_us * 1000) + (o.cpu_phase[c] & 65535)) % f]


def queued(o: Oracle, tasks: list[int]) -> list[int]:
    """4.2: tasks in the order of a queue."""
    return sorted(tasks, key=lambda t: (o.lay.task_nice[t], t))


def fill_queues(o: Oracle) -> None:
    """4.2: the queues of the step and who runs; load averages."""
    o.started_on = tasks_on(o)
    wanting = {t for t in range(o.T) if runnable(o, t)}
    o.queue = [queued(o, [t for t in tasks if t in wanting]) for tasks in o.started_on]
    o.cur = [running_of(o, c) for c in range(o.C)]
    o.landed = set()
    for t in range(o.T):
        if o.lay.task_demand[t] < 1000:
            now = o.lay.task_weight[t] if t in wanting else 0
            o.load_avg[t] = (o.load_avg[t] * o.load_keep + now * (65536 - o.load_keep) + 32768) // 65536
    # spec 4.2: "as of here": who comes upon a held page later in the step still counts as load
    o.asleep = [b >= 0 for b in o.waits_for]


def run(o: Oracle) -> None:
    """4.2: time of the running tasks: waits, spins, then debt, the rest is useful."""
    o.useful = [0] * o.T
    o.running = [t for t in o.cur if t >= 0]
    skip_common_waits(o)
    before = flights.owed(o)
    o.power = power_of_a_cpu(o)
    for t in o.cur:
        if t < 0:
            continue
        w = min(o.wait_ns[t], o.dt)
        o.wait_ns[t] -= w
        o.waited_ns[t] += w
        ran = o.dt - w
        o.run_ns[t] += ran
        x = min(o.spin_ns[t], ran)
        o.spin_ns[t] -= x
        o.sys_ns[t] += x
        ran -= x
        got = ran * o.power // 1000  # spec 4.2: all of ran when nothing is shared
        paid = max(0, min(o.debt_ns[t], got))
        o.useful[t] = max(0, got - o.debt_ns[t])
        if got > 0:
            o.sys_ns[t] += paid * ran // got
        o.debt_ns[t] = max(0, o.debt_ns[t] - got)
    flights.go_on(o, before)


def power_of_a_cpu(o: Oracle) -> int:
    """4.2: thousandths of a CPU that a CPU gets while its task neither waits nor spins, common waits being skipped."""
    if o.par.shared_cpus == 0:
        return 1000
    busy = sum(o.dt - min(o.dt, o.wait_ns[t] + o.spin_ns[t]) for t in o.cur if t >= 0)
    return min(1000, o.par.shared_cpus * o.dt // max(1, busy))


def skip_common_waits(o: Oracle) -> None:
    """4.2: in a guest whose running tasks all wait or spin nobody does; the time skipped is not waited, nor system."""
    running = [t for t in o.cur if t >= 0]
    if o.par.shared_cpus > 0 and all(o.wait_ns[t] > 0 or o.spin_ns[t] > 0 for t in running):
        for t in running:
            o.wait_ns[t] = o.spin_ns[t] = 0


def change_cpus(o: Oracle, moves: list[tuple[int, int]]) -> None:
    """7.4: runnable tasks change CPUs, together; queues and running tasks of the step follow."""
    origin = {t: o.cpu[t] for t, _ in moves}
    for t, c in moves:
        o.queue[o.cpu[t]].remove(t)
        o.queue[c] = queued(o, [*o.queue[c], t])
        o.started_on[o.cpu[t]].remove(t)
        o.started_on[c].append(t)
        o.cpu[t] = c
    for c in {*origin.values(), *(c for _, c in moves)}:
        o.cur[c] = running_of(o, c)
    for t, c in moves:
        reset_period(o, t, o.lay.cpu_node[origin[t]], o.lay.cpu_node[c])


def reset_period(o: Oracle, t: int, a: int, b: int) -> None:
    """7.4: the scheduler took task t from node a to node b."""
    if not o.sw.reset_period_on_cross_node or a == b or o.total[t] == 0:
        return
    preferred = o.preferred[t]
    if o.seq_seen[t] != 0 and (b == preferred or (preferred != -1 and a != preferred)):
        return
    o.period_ms[t] = start_period(o, t)
