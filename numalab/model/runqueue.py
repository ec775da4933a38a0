"""Who runs where: start, affinity, run queues, and the time of a step (docs/model.md 3, 4.1, 4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from numalab.layout import Bools, Ints
from numalab.model import draws, firsttouch, groups
from numalab.model.state import NS, UNIT_LOAD, State

MOST_NICE = 19
#: Rounds a division by 65536.
HALF = 32768


def start_and_bind(state: State) -> None:
    """End and place tasks whose time has come, and carry out affinity phases that began."""
    one = state.layout
    now = state.step_index * state.dt
    if state.fix.tasks_end:
        _end(state, now)
    if state.not_started.any():
        due = (state.cpu < 0) & ~state.ended & (one.task_start_ns <= now[:, None]) & (now[:, None] < one.task_end_ns)
        state.not_started &= (one.task_start_ns > now[:, None]).any(axis=1)
        _start(state, due)
    phase = np.searchsorted(one.affinity_ns, now, side="right") - 1
    for r in np.flatnonzero(phase != state.affinity_phase):
        state.affinity_phase[r] = phase[r]
        _obey_affinity(state, int(r))
        state.queue_changed[r] = state.speed_stale[r] = True


def _end(state: State, now: Ints) -> None:
    """Let tasks end: they leave their CPUs and groups, and what they waited for or worked on is dropped."""
    one = state.layout
    due = one.task_end_ns <= now[:, None]
    if state.fix.work_ends:
        due |= (one.task_visits > 0) & (state.work >= one.task_visits * NS)
    due &= state.cpu >= 0
    if not due.any():
        return
    state.end_ns[due] = np.broadcast_to(now[:, None], due.shape)[due]
    for t in np.flatnonzero(due.any(axis=0)):
        r = np.flatnonzero(due[:, t])
        groups.leave(state, r, np.full(len(r), t))
    state.cpu[due] = state.node_of_task[due] = -1
    state.moving[due] = state.waits_for[due] = -1
    state.debt_ns[due] = state.wait_ns[due] = state.spin_ns[due] = 0
    for r, t in zip(*np.nonzero(due), strict=True):
        state.scans.pop((int(r), int(t)), None)
    rows = due.any(axis=1)
    state.queue_changed[rows] = state.speed_stale[rows] = True


def _start(state: State, due: Bools) -> None:
    if state.fix.tasks_end and state.kernel.fork_resets_parent_scan:
        _renew_scans(state, due)
    for r in np.flatnonzero(due.any(axis=1)):
        for t in np.flatnonzero(due[r]):
            _fork(state, int(r), int(t))
            _inherit(state, int(r), int(t))
        firsttouch.place_blocks(state, int(r))
        state.queue_changed[r] = state.speed_stale[r] = True


def _renew_scans(state: State, due: Bools) -> None:
    """Let the scanner begin anew in processes that get tasks after all they had have ended."""
    one = state.layout
    for r, t in zip(*np.nonzero(due), strict=True):
        process = one.task_process[t]
        others = (one.task_process == process) & ~due[r]
        now = state.step_index[r] * state.dt
        if (others & state.ended[r]).any() and not (state.cpu[r, others] >= 0).any():
            state.next_scan_ms[r, process] = now // 1_000_000 + state.par.scan_delay_ms[r]
            state.seq[r, process] = 0


def _fork(state: State, r: int, t: int) -> None:
    """Put a new task on the node that looks least loaded to fork, there on the emptiest CPU."""
    one, fix = state.layout, state.fix
    allowed = one.affinity[_phase_now(state, r), t]
    started = state.cpu[r] >= 0
    nr = np.bincount(state.cpu[r][started], minlength=one.cpus)
    nr_node = np.bincount(one.cpu_node, weights=nr, minlength=one.nodes).astype(np.int64)
    noise = draws.normal(draws.draw_keyed(state.key[draws.FORK][r], t * one.nodes + np.arange(one.nodes), 0))
    seen = np.maximum(1, 1_000_000 + int(state.par.fork_spread[r]) * noise)
    score = (nr_node + 1) * 1_000_000 // np.maximum(1, fix.cpus_of_node) * seen
    possible = np.bincount(one.cpu_node[allowed], minlength=one.nodes) > 0
    node = int(np.argmin(np.where(possible, score, np.iinfo(np.int64).max)))
    nr_core = np.bincount(one.cpu_core, weights=nr).astype(np.int64)[one.cpu_core]
    candidates = np.flatnonzero(allowed & (one.cpu_node == node))
    cpu = candidates[np.lexsort((candidates, nr_core[candidates], nr[candidates]))[0]]
    state.cpu[r, t], state.node_of_task[r, t] = cpu, node


def _inherit(state: State, r: int, t: int) -> None:
    """Give a thread what it takes from its process: scans completed, and the preferred node of its first task."""
    process = state.layout.task_process[t]
    state.seq_seen[r, t] = state.seq[r, process]
    state.preferred[r, t] = state.preferred[r, state.fix.process_first_task[process]]


def _obey_affinity(state: State, r: int) -> None:
    one = state.layout
    mask = one.affinity[state.affinity_phase[r]]
    for t in np.flatnonzero(state.cpu[r] >= 0):
        if not mask[t, state.cpu[r, t]]:
            nr = np.bincount(state.cpu[r][state.cpu[r] >= 0], minlength=one.cpus)
            candidates = np.flatnonzero(mask[t])
            cpu = candidates[np.argmin(nr[candidates])]
            state.cpu[r, t], state.node_of_task[r, t] = cpu, one.cpu_node[cpu]


def _phase_now(state: State, r: int) -> int:
    now = int(state.step_index[r]) * state.dt
    return int(np.searchsorted(state.layout.affinity_ns, now, side="right")) - 1


def pick_running(state: State) -> None:
    """Choose the running task of every CPU: the queue's entry whose turn this time slice is."""
    fix = state.fix
    if state.in_flight:
        _wake(state)
    now = state.step_index * state.dt
    slot = now // (state.par.slice_us * 1000)
    if fix.always_runnable:
        stale = np.flatnonzero(state.queue_changed | (slot != state.slot))
    else:
        stale = np.arange(state.runs)
    if not stale.size:
        return
    requeue = stale if not fix.always_runnable else stale[state.queue_changed[stale]]
    if requeue.size:
        state.runnable[requeue] = _wants_to_run(state, requeue)
        build_queues(state, requeue)
        state.maybe_uneven[requeue] = True
    state.queue_changed[stale] = False
    state.slot[stale] = slot[stale]
    pick_rows(state, stale)


def _wake(state: State) -> None:
    """Wake the tasks whose page is no longer under migration; the others wait on."""
    r, t = np.nonzero(state.waits_for >= 0)
    moved_in, moved = np.nonzero(state.moving >= 0)
    blocks = state.layout.blocks
    wanted = r * blocks + state.waits_for[r, t]
    waits = np.isin(wanted, moved_in * blocks + state.moving[moved_in, moved])
    state.waits_for[r[~waits], t[~waits]] = -1
    state.queue_changed[r[~waits]] = True
    state.waited_ns[r[waits], t[waits]] += state.dt
    state.in_flight = bool(moved.size)


def _wants_to_run(state: State, rows: NDArray[np.intp]) -> Bools:
    one = state.layout
    started = (state.cpu[rows] >= 0) & (state.waits_for[rows] < 0)
    state.awake[rows] = started
    if state.fix.always_runnable:
        return started
    sleepers = state.fix.sleepers
    slot = (state.step_index[rows] * state.dt)[:, None] // one.task_wake_ns[sleepers]
    u = draws.draw_keyed(state.key[draws.WAKE][rows][:, None], sleepers[None], slot)
    wants = started.copy()
    wants[:, sleepers] &= draws.permille(u) < one.task_demand[sleepers]
    full = np.where(wants[:, sleepers], one.task_weight[sleepers], 0)
    keep, at = state.load_keep, (rows[:, None], sleepers)
    state.load_avg[at] = (state.load_avg[at] * keep + full * (65536 - keep) + HALF) // 65536
    return wants


def build_queues(state: State, rows: NDArray[np.intp]) -> None:
    """Recount the run queues of some runs: each task's place on its CPU, and ``nr`` per CPU."""
    one = state.layout
    size = len(rows)
    cpu = np.where(state.runnable[rows], state.cpu[rows], one.cpus)
    flat = (cpu + (np.arange(size) * (one.cpus + 1))[:, None]).ravel()
    # tasks of a lower nice value come first: they alone take turns
    order = np.argsort(flat, kind="stable") if state.fix.equal_nice else _by_nice(state, flat, size)
    nr = np.bincount(flat, minlength=size * (one.cpus + 1))
    first = np.cumsum(nr) - nr
    rank = np.empty(flat.size, np.int64)
    rank[order] = np.arange(flat.size) - first[flat[order]]
    state.rank[rows] = rank.reshape(size, one.tasks)
    state.nr[rows] = nr.reshape(size, one.cpus + 1)[:, : one.cpus]
    state.load[rows] = state.nr[rows] * UNIT_LOAD if state.fix.equal_loads else _loads(state, rows)


def _loads(state: State, rows: NDArray[np.intp]) -> Ints:
    """Return the load of each CPU, averages of the tasks on it whether or not they want to run now: (K, C)."""
    one = state.layout
    cpu = np.where(state.awake[rows], state.cpu[rows], one.cpus)
    flat = cpu + np.arange(len(rows))[:, None] * (one.cpus + 1)
    total = np.bincount(flat.ravel(), weights=state.load_avg[rows].ravel(), minlength=len(rows) * (one.cpus + 1))
    return total.astype(np.int64).reshape(len(rows), one.cpus + 1)[:, : one.cpus]


def pick_rows(state: State, rows: NDArray[np.intp]) -> None:
    """Set ``running`` and ``cur`` of some runs from their queues and the time slice."""
    turn = (state.slot[rows][:, None] + state.slice_phase[rows]) % np.maximum(1, _turn_takers(state, rows))
    cpu = state.cpu[rows]
    running = state.runnable[rows] & (state.rank[rows] == np.take_along_axis(turn, np.maximum(cpu, 0), axis=1))
    state.running[rows] = running
    state.slice_ns[rows] = np.where(running, state.dt, 0)
    cur = np.full((len(rows), state.layout.cpus), -1, np.int64)
    row, task = np.nonzero(running)
    cur[row, cpu[row, task]] = task
    state.cur[rows] = cur


def _by_nice(state: State, flat: Ints, size: int) -> Ints:
    return np.lexsort((np.tile(state.layout.task_nice, size), flat))


def _turn_takers(state: State, rows: NDArray[np.intp]) -> Ints:
    """Return how many tasks of each CPU take turns, those of the lowest nice value of its queue: (K, C)."""
    one = state.layout
    if state.fix.equal_nice:
        return state.nr[rows]
    lowest = np.full((len(rows), one.cpus + 1), MOST_NICE)
    cpu = np.where(state.runnable[rows], state.cpu[rows], one.cpus)
    at = (np.arange(len(rows))[:, None], cpu)
    np.minimum.at(lowest, at, one.task_nice[None])
    takers = np.zeros_like(lowest)
    np.add.at(takers, at, one.task_nice[None] == lowest[at])
    return takers[:, : one.cpus]


def requeue(state: State, rows: NDArray[np.intp]) -> None:
    """Bring the queues of some runs up to date within the step; their next step starts from new queues too."""
    build_queues(state, rows)
    turn = (state.slot[rows][:, None] + state.slice_phase[rows]) % np.maximum(1, _turn_takers(state, rows))
    cpu = state.cpu[rows]
    front = state.runnable[rows] & (state.rank[rows] == np.take_along_axis(turn, np.maximum(cpu, 0), axis=1))
    row, task = np.nonzero(front)
    cur = np.full((len(rows), state.layout.cpus), -1, np.int64)
    cur[row, cpu[row, task]] = task
    state.cur[rows] = cur
    state.queue_changed[rows] = True
    state.maybe_uneven[rows] = True


def spend_time(state: State) -> Ints:
    """Let the running tasks run for a step: waiting first, then owed system time, the rest is useful.

    Returns
    -------
    (R, T) useful time, ns; 0 for tasks that do not run
    """
    if not state.own_cpus:
        _end_waits_for_idle_cpus(state)
        state.power = power(state)
    if not state.in_flight:
        return _spend(state)
    r, t = np.nonzero(state.moving >= 0)
    begun = state.owed(r, t) <= state.moving_ns[r, t]
    useful = _spend(state)
    done = state.owed(r, t) <= 0
    state.moving[r[done], t[done]] = -1
    state.flying = (r[begun & ~done], t[begun & ~done])
    return useful


def _spend(state: State) -> Ints:
    ran = state.slice_ns
    flat_running = state.running.ravel()
    wait, debt = state.wait_ns.ravel(), state.debt_ns.ravel()
    waiting = np.flatnonzero(wait)
    waiting = waiting[flat_running[waiting]]
    if waiting.size:
        ran = ran.copy()
        waited = np.minimum(wait[waiting], state.dt)
        wait[waiting] -= waited
        state.waited_ns.ravel()[waiting] += waited
        ran.ravel()[waiting] -= waited
    state.run_ns += ran
    if state.par.flush_wait_ns.any():
        ran = _spin(state, ran)
    got = ran if state.own_cpus else ran * state.power[:, None] // 1000
    owing = np.flatnonzero(debt)
    owing = owing[flat_running[owing]]
    if not owing.size:
        return got
    useful = got.copy()
    owed, had = debt[owing], got.ravel()[owing]
    useful.ravel()[owing] = np.maximum(0, had - owed)
    paid = np.clip(owed, 0, had)
    state.sys_ns.ravel()[owing] += paid * ran.ravel()[owing] // np.maximum(1, had)
    debt[owing] = np.maximum(0, owed - had)
    return useful


def _spin(state: State, ran: Ints) -> Ints:
    """Take off the time that scanners' CPUs spin until others answer."""
    r, t = np.nonzero(state.spin_ns)
    spun = np.minimum(state.spin_ns[r, t], ran[r, t])
    if not spun.any():
        return ran
    ran = ran.copy()
    ran[r, t] -= spun
    state.spin_ns[r, t] -= spun
    state.sys_ns[r, t] += spun
    return ran


def _end_waits_for_idle_cpus(state: State) -> None:
    """End the waits of an emulated guest in which no CPU works: idle CPUs answer at once."""
    at_rest = (state.par.shared_cpus > 0) & ~(state.running & (state.wait_ns == 0) & (state.spin_ns == 0)).any(axis=1)
    if at_rest.any():
        state.wait_ns[at_rest[:, None] & state.running] = 0
        state.spin_ns[at_rest[:, None] & state.running] = 0


def power(state: State) -> Ints:
    """Return how much of a CPU each working CPU of an emulated guest has (``shared_cpus``), of 1000: (R,)."""
    busy = np.where(state.running, state.dt - np.minimum(state.dt, state.wait_ns + state.spin_ns), 0).sum(axis=1)
    share = np.minimum(1000, state.par.shared_cpus * state.dt // np.maximum(1, busy))
    return np.where(state.par.shared_cpus > 0, share, 1000)
