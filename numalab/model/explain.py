"""Why a task goes where it goes: a search retold, candidate by candidate (kernels before 4.19)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.model import candidates as look
from numalab.model import loadtest, weigh
from numalab.model.state import State


@dataclass(frozen=True)
class Candidate:
    """One CPU examined for a task.

    Attributes
    ----------
    cpu, cur : CPU, and the task running there (-1: idle)
    swap_gain, move_gain : improvement of a swap and of a plain move, of 1000
    best_before : the best improvement found before
    verdict : what the kernel does with it, in words
    accepted : it becomes the best so far
    """

    cpu: int
    cur: int
    swap_gain: int
    move_gain: int
    best_before: int
    verdict: str
    accepted: bool


@dataclass(frozen=True)
class LoadTest:
    """The load test of a plain move: loads as the kernel sees them, before and after, and its answer."""

    source: int
    target: int
    new_source: int
    new_target: int
    refused: bool


def load_test(state: State, r: int, t: int, node: int) -> LoadTest:
    """Retell the load test of moving a task to a node."""
    query = look.query(state, np.array([r]), np.array([t]))
    nodes = np.array([node])
    source, target, _, _ = (int(part[0]) for part in loadtest.loads(state, query, nodes))
    moved = int(state.load_avg[r, t])
    refused = bool(loadtest.too_imbalanced(state, query, nodes, loadtest.load_moved(state, query))[0, 0])
    return LoadTest(source, target, source - moved, target + moved, refused)


def explain(state: State, r: int, t: int, node: int) -> list[Candidate]:
    """Retell the examination of one node for a task, starting from no candidate.

    Parameters
    ----------
    state : State
        With queues up to date; nothing is changed.
    r, t, node : int

    Raises
    ------
    ValueError
        For kernels from 4.19 on, whose search goes another way.
    """
    if state.kernel.maymove:
        raise ValueError("explain: knows the search of kernels before 4.19 only")
    query = look.query(state, np.array([r]), np.array([t]))
    nodes = np.array([node])
    own, group, base = look.gains(state, query, nodes, nodes)
    at = look.candidates(state, query, nodes, nodes)
    worth = weigh.weigh(state, query, nodes, own, group, base, at)
    best, result = np.zeros(1, np.int64), []
    for x in np.flatnonzero(at.valid[0]):
        idle, move, swap = (bool(part[0, x]) for part in worth.accept(state, np.array([0]), best))
        before = int(best[0])
        accepted = idle or move or swap
        gain, move_gain = int(worth.swap[0, x]), int(base[0])
        verdict = _verdict(state, query, at, worth, int(x), before, (idle, move, swap))
        result.append(Candidate(int(at.cpu[0, x]), int(at.cur[0, x]), gain, move_gain, before, verdict, accepted))
        if accepted:
            best[0] = gain if swap else move_gain - int(move)
    return result


def _verdict(
    state: State, query: look.Query, at: look.Candidates, worth: weigh.Weighed, x: int, best: int,
    taken: tuple[bool, bool, bool],
) -> str:  # fmt: skip
    """Say in words what the kernel does with a candidate, and if nothing, which test it fails first."""
    idle, move, swap = taken
    gain, move_gain = int(worth.swap[0, x]), int(worth.move[0, 0])
    fits, swap_fits = bool(worth.move_fits[0, 0]), bool(worth.swap_fits[0, x])
    if idle:
        return "move to the idle CPU"
    if move:
        return "move: gains more than the swap, and the loads allow it"
    if swap:
        return "swap that gains nothing" if gain == 0 else "swap"
    if at.cur[0, x] < 0:
        if not fits:
            return "refused: idle, but the loads forbid the move"
        if not worth.idle_ok[0, x]:
            return "refused: idle, but the node's capacity or the gain is too small"
        return f"refused: idle, but a move gains no more than {best}"
    if not at.busy[0, x]:
        return "refused: the task there may not run on the source CPU"
    threshold = int(state.par.numa_move_threshold[query.r[0]])
    if not worth.swap_ok[0, x]:
        return f"refused: the swap gains less than {threshold}"
    better = gain > best or (gain == best and not state.kernel.strict_improvement)
    if better and not swap_fits:
        return "refused: the loads forbid the swap"
    if not state.kernel.move_in_swap:
        return f"refused: the swap gains {gain}, no more than {best}; a plain move is not considered"
    if move_gain > max(gain, best) and not fits:
        return f"refused: the swap gains {gain}; the loads forbid the move"
    return f"refused: gains no more than {best}"
