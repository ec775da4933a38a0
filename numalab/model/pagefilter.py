"""The migration filter as rules over plain arrays: may a page follow a hint fault? See docs/model.md 4.6, point 4.

The engine asks with its state, the replay of recorded decisions with what a trace holds.
"""

from __future__ import annotations

import numpy as np

from numalab.kernel import Kernel
from numalab.layout import Bools, Ints

EARLY_SCANS = 4
#: The bits of the pid, all set, that mean none.
UNSET_PID = 255

#: What decides, in this order; all but GROUP decide alone (`ALLOWS`).
EARLY, TWO_STAGE, OWN, DEFERRED, UNGROUPED, GROUP = range(6)
BRANCHES = ("early", "two-stage", "private", "deferred", "no group", "group ratio")
ALLOWS = np.array([True, False, True, False, True, False])


def branch(early: Bools, elsewhere: Bools, own: Bools, deferred: Bools, ungrouped: Bools) -> Ints:
    """Say which test of the filter decides.

    Parameters
    ----------
    early : (K,) :func:`is_early` holds
    elsewhere : (K,) there is a last user, and on another node than the target
    own : (K,) the last user is the faulting task, by the bits of the pid that are kept
    deferred : (K,) the task's shared faults are held back (3.14)
    ungrouped : (K,) the task has no group

    Returns
    -------
    (K,) int
        `EARLY` to `GROUP`.
    """
    out = np.full(len(own), GROUP)
    out[ungrouped] = UNGROUPED
    out[deferred] = DEFERRED
    out[own] = OWN
    out[elsewhere] = TWO_STAGE
    out[early] = EARLY
    return out


def is_unset(last_cpu: Ints, last_pid: Ints) -> Bools:
    """Say where the filter sees no last user: (K,).

    It looks at the pid's bits alone, so pages last used by a task whose pid ends in 255 pass for untouched. (Only
    the filter: whether a fault counts as private is asked of CPU and pid together.)
    """
    return (last_cpu < 0) | (last_pid == UNSET_PID)


def is_own(last_cpu: Ints, last_pid: Ints, mine: Ints) -> Bools:
    """Say where the last user has the faulting task's pid, by the bits that are kept: (K,).

    All bits set mean none, but a task whose pid ends in 255 finds them to be its own.
    """
    return np.where(last_cpu < 0, mine == UNSET_PID, last_pid == mine)


def is_early(kernel: Kernel, preferred: Ints, seq_seen: Ints, private: Bools) -> Bools:
    """Say which private faults come early enough in a task's life to migrate at once (``early_private``).

    Parameters
    ----------
    preferred : (K,) preferred node, -1 none
    seq_seen : (K,) scan sequence of the task's last placement
    private : (K,) first touch or own page
    """
    if not kernel.early_private:
        return np.zeros(len(private), np.bool_)
    return ((preferred < 0) | (seq_seen <= EARLY_SCANS)) & private


def memory_allows(memory_source: Ints, memory_target: Ints, source_active: Bools, target_active: Bools) -> Bools:
    """Weigh a shared page's two nodes by the group's faults on their memory (``group_filter`` memory): (K,)."""
    return target_active & (~source_active | (memory_target < 3 * memory_source // 4))


def cpu_memory_allows(memory_source: Ints, memory_target: Ints, cpu_source: Ints, cpu_target: Ints) -> Bools:
    """Weigh them by the group's faults from their CPUs against those on their memory (cpu_memory): (K,)."""
    return (cpu_target > 3 * cpu_source) | (cpu_target * memory_source * 3 > cpu_source * memory_target * 4)
