"""The scan period: its bounds, its start and its adaptation (docs/model.md 4.3 and 6)."""

from __future__ import annotations

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import Bools, Ints
from numalab.model.state import FAIL, LOCAL, PRIVATE, REMOTE, SHARED, State

PERIOD_SLOTS = 10


def bounds(state: State, r: Ints, t: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the shortest, the starting and the longest scan period of tasks.

    Parameters
    ----------
    r, t : (K,) run and task

    Returns
    -------
    shortest, start, longest : (K,) ms per scan window
    """
    m = state.layout.task_process[t]
    shortest, slowest = state.shortest_period_ms[r, m], state.slowest_period_ms[r, m]
    if not state.kernel.group_scaled_period:
        return shortest, shortest, np.maximum(shortest, slowest)
    g = state.group[r, t]
    grouped = g >= 0
    sums = state.gmem[r, g].sum(axis=1)
    shared, private = sums[:, SHARED], sums[:, PRIVATE]
    members = state.gtasks[r, g]

    def scaled(period: Ints) -> Ints:
        return np.where(grouped, period * members * (shared + 1) // (private + shared + 1), period)

    return (
        shortest,
        np.maximum(shortest, scaled(shortest)),
        np.maximum(shortest, np.maximum(slowest, scaled(slowest))),
    )


def adapt(state: State, r: Ints, t: Ints, kinds: Ints, longest_before: Ints) -> None:
    """Adapt the scan period of tasks that were just placed.

    No local and no shared fault, or a migration failed (``fail_slows``): the period doubles, the process's next
    scan is put off by it, and the locality counts are kept, so one failure goes on doubling. Else the share of
    local faults (and of private ones) against ``numa_period_threshold`` decides, in tenths.

    Parameters
    ----------
    r, t : (K,) run and task
    kinds : (K, 2) faults since the last placement, shared and private
    longest_before : (K,) longest period before placement decayed the faults; it bounds the doubling
    """
    shortest, _, longest = bounds(state, r, t)
    counts = state.locality[r, t]
    state.period_ms[r, t], idle = adapted(
        state.kernel, state.period_ms[r, t], counts, kinds, (shortest, longest, longest_before),
        state.par.numa_period_threshold[r],
    )  # fmt: skip
    cleared = np.ones(len(r), np.bool_) if state.kernel.doubling_clears_counts else ~idle
    state.locality[r[cleared], t[cleared]] = 0
    # several tasks of a process may put off its next scan in one step: the last one in task order stays
    state.next_scan_ms[r[idle], state.layout.task_process[t[idle]]] = (
        now_ms(state)[r[idle]] + state.period_ms[r[idle], t[idle]]
    )


def adapted(
    kernel: Kernel, period: Ints, counts: Ints, kinds: Ints, limits: tuple[Ints, Ints, Ints], threshold: Ints
) -> tuple[Ints, Bools]:
    """Apply the rule of the scan period.

    Parameters
    ----------
    period : (K,) ms
    counts : (K, 3) faults since they were last cleared: remote, local, failed
    kinds : (K, 2) faults since the last placement, shared and private
    limits : (K,) each, ms: shortest and longest period, longest before placement (it bounds the doubling)
    threshold : (K,) tenths

    Returns
    -------
    period : (K,) ms
    idle : (K,) it was doubled: the next scan is put off and the counts are kept
    """
    shortest, longest, longest_before = limits
    local, remote = counts[:, LOCAL], counts[:, REMOTE]
    idle = local + kinds[:, SHARED] == 0
    if kernel.fail_slows:
        idle |= counts[:, FAIL] != 0
    step = -(-period // PERIOD_SLOTS)
    local_tenths = 10 * local // np.maximum(1, local + remote)
    if kernel.period_rule == "local":
        diff = _by_local_share(kernel, local_tenths, kinds, threshold, step)
    else:
        diff = _private_first(local_tenths, kinds, threshold, step)
    changed = np.where(idle, np.minimum(longest_before, 2 * period), np.clip(period + diff, shortest, longest))
    return changed, idle


def _by_local_share(kernel: Kernel, local_tenths: Ints, kinds: Ints, threshold: Ints, step: Ints) -> Ints:
    """Slow down by the local share; speed up by what it lacks, scaled by the private share (before 4.14)."""
    private = kinds[:, PRIVATE]
    both = kinds.sum(axis=1) + (1 if kernel.private_ratio_plus_one else 0)
    ratio = np.where(both > 0, -(-10 * private // np.maximum(1, both)), 0)
    slower = np.maximum(1, local_tenths - threshold) * step
    faster = -((threshold - local_tenths) * step * ratio // PERIOD_SLOTS)
    return np.where(local_tenths >= threshold, slower, faster)


def _private_first(local_tenths: Ints, kinds: Ints, threshold: Ints, step: Ints) -> Ints:
    """Slow down by the private share, then by the local share; else speed up by what the better lacks (4.14)."""
    private_tenths = 10 * kinds[:, PRIVATE] // np.maximum(1, kinds.sum(axis=1))
    best = np.where(private_tenths >= threshold, private_tenths, local_tenths)
    slower = np.maximum(1, best - threshold) * step
    faster = -(threshold - np.maximum(local_tenths, private_tenths)) * step
    return np.where(best >= threshold, slower, faster)


def now_ms(state: State) -> Ints:
    """Return the kernel's clock at the end of the step: (R,) ms."""
    return (state.step_index + 1) * state.dt // 1_000_000


def changed_node(state: State, r: Ints, t: Ints, a: Ints, b: Ints) -> None:
    """Restart the scan period of tasks the scheduler took away from where they belong (since 4.19).

    Parameters
    ----------
    r, t : (K,) run and task
    a, b : (K,) node it left, node it came to
    """
    if not state.kernel.reset_period_on_cross_node:
        return
    preferred = state.preferred[r, t]
    homeward = (b == preferred) | ((preferred >= 0) & (a != preferred))
    restart = (a != b) & (state.total[r, t] > 0) & ~((state.seq_seen[r, t] != 0) & homeward)
    r, t = r[restart], t[restart]
    _, start, _ = bounds(state, r, t)
    state.period_ms[r, t] = start
