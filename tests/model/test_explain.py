"""A search retold agrees with the search itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

from numalab.kernel import Kernel, names
from numalab.machine import machine
from numalab.model import runqueue, search
from numalab.model.engine import Engine
from numalab.model.explain import Candidate, explain, load_test
from numalab.model.state import State
from numalab.patch_threads.convergence import MACHINE, RATE_MBPS
from numalab.patch_threads.convergence_trap import HOME, STRAY, VARIANTS, stuck
from numalab.workloads import perf_bench_numa
from tests.model.small import at, band, give
from tests.reference.cases import random_layout

OLD = [name for name in names() if not Kernel(name).maymove]
Choice = tuple[int, int, int]


def found(state: State, t: int) -> Choice:
    """CPU, partner and gain of the search."""
    got = search.find(state, at(0), at(t))
    return int(got.cpu[0]), int(got.partner[0]), int(got.gain[0])


def last_accepted(candidates: list[Candidate]) -> Choice | None:
    """The same of the retold search. A move to a busy CPU is booked at one less than its gain."""
    accepted = [one for one in candidates if one.accepted]
    if not accepted:
        return None
    one = accepted[-1]
    if one.verdict.startswith("swap"):
        return one.cpu, one.cur, one.swap_gain
    return one.cpu, -1, one.move_gain - (one.cur >= 0)


# ---------------------------------------------------------------- the trap
def trap(kernel: Kernel) -> State:
    return stuck(machine(MACHINE), perf_bench_numa(8, 20, P=1000, rate_mbps=RATE_MBPS), kernel, [0]).state


@pytest.mark.parametrize("name", OLD)
def test_the_trap_by_kernel(name: str) -> None:
    state = trap(Kernel(name, check_preferred="always"))
    candidates = explain(state, 0, STRAY, HOME)
    assert [one.cpu for one in candidates] == list(range(20, 40))
    # all are at home: a swap gains 1000 - 1000, a move 1000
    assert {(one.swap_gain, one.move_gain) for one in candidates} == {(0, 1000)}
    assert found(state, STRAY) == (last_accepted(candidates) or (-1, -1, 0))


@pytest.mark.parametrize(
    ("label", "accepted", "score", "verdict"),
    [
        ("before the series", True, 0, "swap that gains nothing"),
        ("with patch 2 alone", True, 0, "swap that gains nothing"),
        ("with patch 5 alone", False, 0, "refused: the swap gains 0; the loads forbid the move"),
        ("with patches 2 and 5", True, 999, "move: gains more than the swap, and the loads allow it"),
    ],
)
def test_the_trap_by_patch(label: str, accepted: bool, score: int, verdict: str) -> None:
    """Equal candidates replace each other until patch 5 asks for better ones. Then a move is booked at 999, and a
    later one gains 1000, which is better than that: every CPU is taken in turn, the last stays."""
    state = trap(Kernel("3.16-tip").patched(*VARIANTS[label]))
    candidates = explain(state, 0, STRAY, HOME)
    assert {one.verdict for one in candidates} == {verdict}
    assert [one.accepted for one in candidates] == [accepted] * 20
    assert [one.best_before for one in candidates] == [0] + [score] * 19
    assert found(state, STRAY) == (last_accepted(candidates) or (-1, -1, 0))


@pytest.mark.parametrize(
    ("patches", "before", "after", "refused"),
    [((), (3649, 3471), (2625, 4495), True), (("S1#2",), (41984, 39936), (40960, 40960), False)],
)
def test_the_load_test_of_the_trap(patches: tuple[str, ...], before: object, after: object, refused: bool) -> None:
    """41 and 39 tasks on 20 threads of 589: see test_search.py."""
    test = load_test(trap(Kernel("3.16-tip").patched(*patches)), 0, STRAY, HOME)
    assert ((test.source, test.target), (test.new_source, test.new_target), test.refused) == (before, after, refused)


# ---------------------------------------------------------------- random states
def random_state(rng: random.Random) -> State | None:
    """A random machine with tasks on any CPU, faults anywhere, and some groups."""
    kernel = Kernel(
        rng.choice(OLD),
        check_preferred="always",
        search_all_if_spread=False,  # so that a search that finds something looks at one node only
        move_in_swap=rng.random() < 0.5,
        strict_improvement=rng.random() < 0.5,
        capacity_after=rng.random() < 0.7,
        imbalance_rule=rng.choice(["threshold", "balance_point"]),
        idle_capacity_test=rng.choice(["free", "relative", "none"]),
        group_improvement=rng.choice(["if_positive", "grouped"]),
        numa_move_threshold=rng.choice([0, 0, 50]),
    )
    try:
        state = Engine(random_layout(rng), kernel, [rng.randrange(100)]).state
    except ValueError:
        return None  # the memory does not fit
    one = state.layout
    for t in range(one.tasks):
        state.put(np.array([0]), t, rng.choice(np.flatnonzero(one.affinity[0, t]).tolist()))
    state.queue_changed[:] = True
    runqueue.pick_running(state)
    for t in range(one.tasks):
        give(state, t, [rng.choice([0, 1, 10, 100]) for _ in range(one.nodes)])
    tasks = rng.sample(range(one.tasks), one.tasks)
    while len(tasks) > 1:
        size = rng.randint(1, 4)
        if rng.random() < 0.7:
            band(state, sorted(tasks[:size]), active=[0])
        tasks = tasks[size:]
    return state


def test_explain_agrees_with_the_search_on_random_states() -> None:
    """Every task, with every other node as its preferred one: the last accepted candidate is what is found; where
    none is accepted, nothing on that node is found."""
    verdicts: dict[str, int] = {}
    for seed in range(300):
        state = random_state(random.Random(seed))
        if state is None:
            continue
        for t in np.flatnonzero(state.cpu[0] >= 0).tolist():
            for node in state.fix.nodes_with_cpus.tolist():
                if node == state.node_of_task[0, t]:
                    continue
                state.preferred[0, t] = node
                candidates = explain(state, 0, t, node)
                expected, got = last_accepted(candidates), found(state, t)
                if expected is not None:
                    assert got == expected, (seed, t, node, candidates)
                else:
                    assert got[0] < 0 or state.layout.cpu_node[got[0]] != node, (seed, t, node)
                last = [one.verdict for one in candidates if one.accepted][-1:] or ["nothing"]
                verdicts[last[0].split(":")[0]] = verdicts.get(last[0].split(":")[0], 0) + 1
    assert set(verdicts) == {"swap", "swap that gains nothing", "move", "move to the idle CPU", "nothing"}
    assert min(verdicts.values()) > 10, verdicts


def test_only_the_candidates_count_that_beat_the_best_before() -> None:
    """Within one retelling the best so far never falls, and rises with every accepted candidate to its score."""
    checked = 0
    for seed in range(40):
        state = random_state(random.Random(seed))
        if state is None or len(state.fix.nodes_with_cpus) < 2:
            continue
        for t in np.flatnonzero(state.cpu[0] >= 0).tolist():
            node = next(n for n in state.fix.nodes_with_cpus.tolist() if n != state.node_of_task[0, t])
            best = 0
            for one in explain(state, 0, t, node):
                assert one.best_before == best
                if one.accepted:
                    choice = last_accepted([one])
                    assert choice is not None
                    assert choice[2] >= best
                    best, checked = choice[2], checked + 1
    assert checked > 50


def test_later_kernels_search_another_way() -> None:
    with pytest.raises(ValueError, match=r"before 4\.19"):
        explain(trap(Kernel("4.19")), 0, STRAY, HOME)
