"""What the search knows of nodes: loads, load tests, capacities, classes; by hand.

Two nodes; it is asked for task 0 on node 0, whose target is node 1.
"""

from __future__ import annotations

from typing import Any

import pytest

from numalab.model import candidates, loadtest, maymove, search
from numalab.model.state import State
from tests.model.small import at, place, state_of


def crowded(kernel: str, source: int, target: int, cpus: int = 4, **rest: Any) -> tuple[State, candidates.Query]:
    """So many tasks on node 0 and on node 1, spread evenly over their CPUs; asked for task 0."""
    state = state_of(kernel, cpus=cpus, threads=source + target, **rest)
    place(state, [i % cpus for i in range(source)] + [cpus + i % cpus for i in range(target)])
    return state, candidates.query(state, at(0), at(0))


def too_imbalanced(kernel: str, source: int, target: int, moved: int = 1024, **rest: Any) -> bool:
    state, query = crowded(kernel, source, target, **rest)
    return bool(loadtest.too_imbalanced(state, query, at(1), moved)[0, 0])


# ---------------------------------------------------------------- the trap
def test_the_trap_loads() -> None:
    """41 and 39 tasks on nodes of 20 threads of SMT 2, each worth 1178/2 = 589: capacity 11780.
    Divided first: 41*1024*1024/11780 = 3649, 39 gives 3471. After a move of 1024: 2625 and 4495, and
    100*4495 - 112*2625 = 155500 > 0, more than the 100*3649 - 112*3471 < 0 of before: refused.
    Cross-multiplied: 40960 on both sides after the move: fine."""
    state, query = crowded("3.16-tip", 41, 39, cpus=20, smt=2)
    assert state.fix.capacity.tolist() == [11780, 11780]
    assert [int(part[0]) for part in loadtest.loads(state, query, at(1))] == [3649, 3471, 1, 1]
    assert loadtest.too_imbalanced(state, query, at(1), 1024).tolist() == [[True]]
    state, query = crowded("3.16-tip", 41, 39, cpus=20, smt=2, switches={"capacity_after": True})
    assert [int(part[0]) for part in loadtest.loads(state, query, at(1))] == [41 * 1024, 39 * 1024, 11780, 11780]
    assert loadtest.too_imbalanced(state, query, at(1), 1024).tolist() == [[False]]


@pytest.mark.parametrize(
    ("kernel", "refused"),
    [("3.14", True), ("3.16", True), ("3.17", False), ("4.1", False), ("4.15", False), ("6.18", False)],
)
def test_the_trap_by_release(kernel: str, refused: bool) -> None:
    assert too_imbalanced(kernel, 41, 39, cpus=20, smt=2) is refused


def test_without_smt_it_is_a_trap_too() -> None:
    """Capacity 20480: loads 2099 and 1996 of 1024 a CPU; after 1075 and 3020: 302000 - 120400 > 209900 - 223552."""
    state, query = crowded("3.16", 41, 39, cpus=20)
    assert [int(part[0]) for part in loadtest.loads(state, query, at(1))][:2] == [41 * 1024 // 20, 39 * 1024 // 20]
    assert loadtest.too_imbalanced(state, query, at(1), 1024).tolist() == [[True]]


# ---------------------------------------------------------------- load rules
@pytest.mark.parametrize(
    ("source", "target", "threshold", "balance_point", "improve"),
    [
        (3, 1, False, False, False),  # 2, 2
        (3, 2, False, True, False),  # 2, 3: 12 % over, but no worse than before; past the balance point; no worse
        (2, 2, True, True, True),  # 1, 3
        (20, 19, False, False, False),  # 19, 20: within 12 %: 100*20 < 112*19
        (10, 10, True, True, True),  # 9, 11: 1100 > 1008
        (20, 20, False, False, True),  # 19, 21: 2100 < 2128 is within tolerance; any increase
    ],
)
def test_load_rules(source: int, target: int, threshold: bool, balance_point: bool, improve: bool) -> None:
    for rule, expected in (("threshold", threshold), ("balance_point", balance_point), ("improve", improve)):
        assert too_imbalanced("4.15", source, target, cpus=20, switches={"imbalance_rule": rule}) is expected, rule


def test_a_swap_moves_no_load() -> None:
    """Every task weighs the same: loads are as before, so no worse. 4.1 asks otherwise: more than 12 % apart, it
    refuses all swaps from the heavier node, as if they had moved load to it."""
    for kernel in ("3.16", "3.17", "4.1", "4.15", "6.18"):
        assert too_imbalanced(kernel, 5, 1, moved=0) is (kernel == "4.1")
        assert not too_imbalanced(kernel, 1, 5, moved=0)


# ---------------------------------------------------------------- capacities and classes
@pytest.mark.parametrize(
    ("kernel", "smt", "capacity", "holds"),
    [
        ("3.17", 1, 4096, 4),
        ("3.17", 2, 4 * 589, 2),  # round(2356/1024)
        ("3.17", 4, 4 * 294, 1),
        ("3.19", 2, 4 * 589, 2),  # min(4/ceil(4096/2356), round(...))
        ("5.7", 2, 4096, 4),  # no discount: min(4/1, 4)
    ],
)
def test_capacity_of_a_node(kernel: str, smt: int, capacity: int, holds: int) -> None:
    state, query = crowded(kernel, holds, 1, smt=smt)
    assert state.fix.capacity.tolist() == [capacity] * 2
    assert state.fix.task_capacity.tolist() == [holds] * 2
    assert query.nr.tolist() == [[holds, 1]]
    assert query.free.tolist() == [[False, holds > 1]]


@pytest.mark.parametrize(
    ("source", "target", "smt", "expected"),
    [
        (2, 2, 1, True),  # 2*112 > 2*100
        (2, 3, 1, False),  # 224 < 300
        (8, 8, 1, True),  # both full, equal
        (3, 3, 2, True),
    ],
)
def test_has_capacity(source: int, target: int, smt: int, expected: bool) -> None:
    state, query = crowded("4.15", source, target, smt=smt)
    assert search.has_capacity(state, query, at(1)).tolist() == [expected]


def test_a_full_target_has_none_for_a_free_source() -> None:
    """Two cores on each node. One task against two is within 300 %, but the source is free and the target full."""
    for source, expected in ((1, False), (2, True)):
        state, query = crowded("4.15", source, 2, smt=2, switches={"imbalance_pct": 300})
        assert search.has_capacity(state, query, at(1)).tolist() == [expected]


@pytest.mark.parametrize(
    ("cpus_used", "spare"),
    [
        ([4, 5, 6], True),  # 3 of 4
        ([4, 5, 6, 7], False),  # 400 < 4*108 busy: neither
        ([4, 4, 5, 5], True),  # as many tasks as CPUs, but two idle: 400 > 2*108 and 4*108 > 400
        ([4, 4, 4, 5, 5], False),  # overloaded: 4*108 < 5*100
    ],
)
def test_node_classes(cpus_used: list[int], spare: bool) -> None:
    state = place(state_of("6.18", cpus=4, threads=1 + len(cpus_used)), [0, *cpus_used])
    assert maymove.is_spare(state, candidates.query(state, at(0), at(0)), at(1)).tolist() == [spare]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (3, 1, 0),  # 2, 2
        (2, 1, 0),  # 1, 2: one over, but the target has at most two
        (1, 1, 0),  # 0, 2: two over is the most that is let pass
        (2, 2, 2),  # 1, 3: more than two tasks
        (3, 2, 1),  # 2, 3
    ],
)
def test_allowed_imbalance(source: int, target: int, expected: int) -> None:
    """16 CPUs: an eighth is 2 tasks."""
    state, query = crowded("6.18", source, target, cpus=16)
    assert state.fix.imbalance_nr.tolist() == [2, 2]
    assert maymove.allowed_imbalance(state, query, at(1)).tolist() == [expected]


def test_allowed_imbalance_by_release() -> None:
    """Two; later an eighth of the CPUs; with several last-level caches, their number."""
    for kernel, llcs, expected in (("5.7", 1, 2), ("6.18", 1, 4), ("6.18", 8, 8), ("5.7", 8, 2)):
        assert state_of(kernel, cpus=32, node_llcs=[llcs] * 2).fix.imbalance_nr.tolist() == [expected] * 2


def test_attempts_side_by_side_do_not_mix() -> None:
    """Task 0 from 5 to 3 tasks is fine, task 6 from 3 to 5 is not."""
    state, _ = crowded("3.17", 5, 3)
    both, node = candidates.query(state, at(0, 0), at(0, 6)), at(1, 0)
    assert (both.cpu.tolist(), both.node.tolist()) == ([0, 5], [0, 1])
    assert [part.tolist() for part in loadtest.loads(state, both, node)[:2]] == [[5120, 3072], [3072, 5120]]
    assert loadtest.too_imbalanced(state, both, node, 1024).tolist() == [[False], [True]]
