"""Idle CPUs and other nodes: what the search takes there, and for which gain; by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from numalab.model import candidates, loadtest
from numalab.model.state import State
from tests.model.small import at, band, give, place, state_of
from tests.model.test_search_choice import NOTHING, found


# ---------------------------------------------------------------- idle CPUs
def idle_case(kernel: str, own: Sequence[int] = (0, 100), **rest: Any) -> State:
    """Nodes of four CPUs: tasks 0 and 1 on node 0, task 2 on CPU 7; CPUs 4 to 6 are idle."""
    state = place(state_of(kernel, cpus=4, threads=3, **rest), [0, 1, 7])
    give(state, 0, own, 1)
    return state


def test_idle_cpus() -> None:
    """The first of equals where a candidate must be better; else the last: until 3.16 that is the swap with CPU 7,
    which gains as much; in 4.19 equals count among idle CPUs only."""
    for kernel in ("3.17", "3.19", "4.15"):
        assert found(idle_case(kernel)) == (4, -1, 1000, 1)
    # divided loads, 512 and 256, refuse every move; with patch 2 they allow it
    assert loadtest.too_imbalanced(*asked(idle_case("3.16-tip")), 1024)
    assert found(idle_case("3.16-tip", switches={"capacity_after": True})) == (7, 2, 1000, 1)
    assert found(idle_case("4.19")) == (6, -1, 1000, 1)


def test_idle_cpus_of_a_node_with_spare() -> None:
    """Two tasks against one: taken at once, even at a loss, where two tasks are allowed (two caches); the first of an
    idle core (4 and 5, 6 and 7 are cores). An eighth of four CPUs allows only one: no."""
    assert found(idle_case("6.18", own=(100, 0), node_llcs=[2, 2])) == (4, -1, 0, 1)
    state = place(idle_case("6.18", own=(100, 0), node_llcs=[2, 2], smt=2), [0, 1, 4])
    assert found(state) == (6, -1, 0, 1)
    assert found(idle_case("6.18", own=(100, 0))) == NOTHING


def asked(state: State) -> tuple[State, candidates.Query, Any]:
    return state, candidates.query(state, at(0), at(0)), at(1)


def test_idle_cpus_and_the_proposal() -> None:
    """A move to an idle CPU must gain 50. One to a busy CPU need not: patch 5 still takes it, as 49 - 1."""
    for gain, at_busy, expected in ((49, False, NOTHING), (49, True, (7, -1, 48, 1)), (50, True, (4, -1, 50, 1))):
        state = idle_case("3.17", switches={"numa_move_threshold": 50, "move_in_swap": at_busy})
        give(state, 0, (400, 400 + gain), 1, total=1000)
        give(state, 2, (0, 1000))  # no swap with it
        assert found(state) == expected


@pytest.mark.parametrize(
    ("kernel", "source", "target", "taken"),
    [
        ("3.17", 4, 5, False),  # both hold 8*589/1024 = 5: the source is free, the target is not
        ("3.17", 5, 5, True),
        ("3.17", 4, 4, True),
        ("3.19", 4, 4, False),  # both hold 4 cores: the source is not overfull, the target is full
        ("3.19", 5, 4, True),
        ("3.19", 4, 3, True),
        ("4.19", 4, 5, False),  # no such test; the loads forbid 3 against 6
        ("4.19", 5, 4, True),
    ],
)
def test_idle_cpus_where_nodes_are_full(kernel: str, source: int, target: int, taken: bool) -> None:
    """Eight threads of SMT 2, loads allowed to differ as they like."""
    state = state_of(kernel, cpus=8, smt=2, threads=source + target, switches={"imbalance_pct": 100_000})
    place(state, [*range(source), *range(8, 8 + target)])
    give(state, 0, [0, 100], 1)
    for t in range(source, source + target):
        give(state, t, [0, 100])  # a swap gains nothing
    assert (found(state)[0] >= 8 + target) is taken


def test_group_improvement() -> None:
    """Own faults 450/550, the group's 1450/550 of 2000: +100 and -450. Before patch 4 its own counts, as the group's
    is not positive, and an idle CPU is worth 100; after it never. With 550/450 and 550/1450 both say +450."""
    for patched, expected in ((False, 100), (True, 0)):
        switches = {"capacity_after": True, "group_improvement": "grouped" if patched else "if_positive"}
        state = idle_case("3.16-tip", own=(450, 550), switches=switches)
        give(state, 1, [1000, 0])
        give(state, 2, [0, 1000])
        band(state, [0, 1])
        assert found(state)[2] == expected
        give(state, 0, [550, 450])
        give(state, 1, [0, 1000])
        band(state, [0, 1])
        assert found(state)[2] == 450


# ---------------------------------------------------------------- other nodes
def three_nodes(kernel: str, own: Sequence[int]) -> State:
    """One CPU each; task 1 is at home on node 1, so a swap with it loses; task 2 does not mind."""
    state = place(state_of(kernel, nodes=3, cpus=1, threads=3), [0, 1, 2])
    give(state, 0, own, 1)
    give(state, 1, [0, 100, 0])
    return state


def test_other_nodes_come_when_nothing_was_found() -> None:
    for kernel in ("3.17", "3.19", "4.15", "4.19"):
        assert found(three_nodes(kernel, [0, 60, 40])) == (2, 2, 400, 2)
    state = three_nodes("3.17", [50, 50, 0])  # worse for the task, but not for the group it has not
    assert found(state) == (-1, -1, 0, 2)
    band(state, [0])  # now both lose 500: not even looked at
    assert found(state) == (-1, -1, 0, 1)


def test_other_nodes_come_too_when_the_group_is_spread() -> None:
    """Since 3.19. Node 1 is found with 600; on node 2 task 2 wants away: 400 + 1000."""
    for kernel, active, expected in (("3.17", 2, 1), ("3.19", 1, 1), ("3.19", 2, 2), ("4.15", 2, 2)):
        state = three_nodes(kernel, [0, 60, 40])
        give(state, 1, [0, 0, 0])
        give(state, 2, [100, 0, 0])
        band(state, [0], active=range(active))
        assert found(state)[0] == expected, (kernel, active)
