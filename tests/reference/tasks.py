"""What faults do to their tasks (docs/model.md, section 4.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference import moves, placement
from tests.reference.faults import Fault
from tests.reference.groups import active, join

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle


def account(o: Oracle, listed: list[Fault]) -> None:
    """4.7: groups, placements, buffers and attempts to move of the step."""
    rate_local: list[bool] = []
    for f in listed:
        here = o.node_of(f.task)
        if not f.priv and not f.no_group:
            f.priv = join(o, f.task, here, f.last_cpu, f.last_pid, f.shared)
        rate_local.append(f.local or counts_as_local(o, f, here))
    faulting = sorted({f.task for f in listed})
    due = {t for t in faulting if o.now_ms > o.retry_ms[t]}
    asking = place(o, faulting, due)
    for f, local in zip(listed, rate_local, strict=True):
        o.membuf[f.task][f.memory_node][f.priv] += f.k
        o.cpubuf[f.task][o.node_of(f.task)][f.priv] += f.k
        o.locality[f.task][local] += f.k
        if f.failed and o.sw.fail_slows:
            o.locality[f.task][2] += f.k
    for t in faulting:
        if t in due or (o.sw.placement_at == "every_fault" and t in asking):
            moves.attempt(o, t)


def counts_as_local(o: Oracle, f: Fault, here: int) -> bool:
    """4.7, rate_local: a shared fault between active nodes of the group counts as local."""
    g = o.group[f.task]
    if f.priv or g < 0 or o.sw.shared_group_local == "off":
        return False
    if o.sw.shared_group_local == "several_active" and o.gcount[g] <= 1:
        return False
    return active(o, g, here) and active(o, g, f.memory_node)


def place(o: Oracle, faulting: list[int], due: set[int]) -> set[int]:
    """4.7: the placements of the step in three rounds; returns the tasks that ask for a move."""
    placing = []
    for t in faulting:
        turn = o.sw.placement_at == "every_fault" or t in due
        if turn and o.seq_seen[t] != o.seq[o.lay.task_process[t]]:
            placing.append(t)
    longest = {t: placement.max_period(o, t) for t in placing}
    types = {t: placement.decay(o, t) for t in placing}
    for g in {o.group[t] for t in placing if o.group[t] >= 0}:
        placement.update_active(o, g)
    asking = set()
    for t in placing:
        if placement.choose(o, t):
            asking.add(t)
        placement.adapt_period(o, t, types[t], longest[t])
    return asking
