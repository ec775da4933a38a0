"""Every packed trace with probes: what was measured when this was written, and that wrong rules are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalab import decisions
from numalab.decisions import Replay, releases
from numalab.kernel import Kernel
from numalab.model import pagefilter, placing
from numalab.readers import trace

#: Trace -> row -> (decidable, equal, undecidable).
MEASURED: dict[str, dict[str, tuple[int, int, int]]] = {
    "b_wrongnode_bound_2x2_scan4_r1": {
        "filter early": (8269, 8269, 0),
        "filter (not known)": (0, 0, 21),
        "fault sums": (3, 3, 0),
        "private or shared": (8248, 8248, 42),
        "preferred node": (4, 4, 0),
        "scan not before due": (36, 36, 0),
    },
    "c_groups_2x2_thp_r1": {
        "filter early": (44, 44, 0),
        "filter two-stage": (10, 10, 0),
        "fault sums": (10, 10, 0),
        "private or shared": (159, 159, 32),
        "groups founded": (4, 4, 0),
        "groups joined": (2, 2, 0),
        "group sums": (10, 10, 0),
        "preferred node": (10, 10, 0),
        "scan not before due": (10, 10, 0),
    },
    "c_swap_2x2_r1": {
        "filter early": (10142, 10142, 0),
        "filter two-stage": (6428, 6428, 0),
        "filter private": (1088, 1088, 0),
        "filter group ratio": (143, 143, 0),
        "fault sums": (14, 14, 0),
        "private or shared": (32853, 32853, 8214),
        "groups founded": (4, 4, 0),
        "groups joined": (2, 2, 0),
        "group sums": (23, 23, 0),
        "preferred node": (14, 14, 0),
        "scan not before due": (20, 20, 0),
    },
    "c_swap_2x2_k61_r1": {
        "filter early": (8652, 8652, 0),
        "filter two-stage": (2887, 2887, 0),
        "filter private": (59, 59, 0),
        "filter early or private": (93, 93, 0),
        "filter group ratio": (1329, 1329, 14),
        "fault sums": (28, 28, 0),
        "groups founded": (4, 4, 0),
        "groups joined": (2, 2, 0),
        "group sums": (38, 38, 0),
        "preferred node": (28, 28, 0),
        "scan not before due": (15, 15, 0),
    },
    "c_swap_4x2_p4t2_r1": {
        "filter early": (10203, 10203, 0),
        "filter two-stage": (4279, 4279, 0),
        "filter private": (2, 2, 0),
        "filter no group": (1, 1, 0),
        "filter group ratio": (118, 118, 0),
        "filter (not known)": (0, 0, 16),
        "fault sums": (36, 36, 0),
        "groups founded": (8, 8, 0),
        "groups joined": (4, 4, 0),
        "group sums": (54, 54, 0),
        "preferred node": (36, 36, 0),
        "scan not before due": (47, 47, 0),
    },
}


def replay(name: str) -> Replay:
    with trace.folder(name) as path:
        return decisions.replay(path)


def rows(found: Replay) -> dict[str, dict[str, Any]]:
    return {f"{row['what']} {row['branch']}".strip(): row for row in found.rows()}


def of_filter(found: Replay, branch: str) -> tuple[int, int]:
    row = rows(found)[f"filter {branch}"]
    return row["decidable"], row["equal"]


@pytest.mark.parametrize("name", MEASURED)
def test_agreement(name: str) -> None:
    """Deterministic, so exact; every branch is to reach 99 % of what is decidable, and sums all."""
    found = replay(name)
    got = {key: (row["decidable"], row["equal"], row["undecidable"]) for key, row in rows(found).items()}
    for key, expected in MEASURED[name].items():
        assert got[key] == expected, key
    assert found.disagreements() == []


def test_every_packed_trace_with_probes_is_replayed() -> None:
    names = decisions.replayable()
    assert len(names) == 9
    assert MEASURED.keys() < set(names)


def test_no_answer_is_dropped() -> None:
    """Decided and not decidable ones together are all answers of the trace."""
    found = replay("c_swap_2x2_k61_r1")
    filtered = [row for row in found.rows() if row["what"] == "filter"]
    assert sum(row["decidable"] + row["undecidable"] for row in filtered) == len(found.recording.decisions.filter_time)
    (ratio,) = (row for row in filtered if row["branch"] == "group ratio")
    assert ratio["majority"] == 818 / 1329  # of the kernel's answers in this branch 818 were yes
    assert ratio["reasons"] == {"the group's CPU sums": 14}


# ---------------------------------------------------------------- wrong rules
def test_a_filter_that_always_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagefilter, "ALLOWS", np.ones_like(pagefilter.ALLOWS))
    monkeypatch.setattr(pagefilter, "cpu_memory_allows", lambda *args: np.array([True]))
    found = replay("c_swap_2x2_k61_r1")
    assert of_filter(found, "early") == (8652, 8652)
    assert of_filter(found, "two-stage") == (2887, 0)
    # the CPU sums do not matter any more, so those 14 are decidable too
    decidable, equal = of_filter(found, "group ratio")
    assert (decidable, equal / decidable < 0.62) == (1343, True)


def test_a_ratio_of_one_in_place_of_three_quarters(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(memory_source: Any, memory_target: Any, cpu_source: Any, cpu_target: Any) -> Any:
        return (cpu_target > 3 * cpu_source) | (cpu_target * memory_source < cpu_source * memory_target)

    monkeypatch.setattr(pagefilter, "cpu_memory_allows", wrong)
    decidable, equal = of_filter(replay("c_swap_2x2_k61_r1"), "group ratio")
    assert decidable == 1329
    assert equal < 0.92 * decidable


def test_no_pid_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 255 is there: its pages pass the kernel's filter as if they had no last user."""
    monkeypatch.setattr(pagefilter, "is_unset", lambda last_cpu, last_pid: last_cpu < 0)
    assert of_filter(replay("c_swap_4x2_p4t2_r1"), "two-stage") == (4928, 4279)


def test_failures_that_stick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule until 6.12.117: periods go on doubling, and scans would come too early."""
    monkeypatch.setattr(releases, "kernel_of", lambda release: Kernel("6.12"))
    found = replay("c_swap_4x2_p4t2_r1")
    assert of_filter(found, "group ratio") == (118, 117)
    assert rows(found)["scan not before due"]["equal"] == 44
    assert "task 255: filter (group ratio) said yes" in found.disagreements()[0]


def test_sums_that_do_not_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "memory_change", lambda mem, buffered: buffered - mem // 4)
    found = rows(replay("c_swap_2x2_r1"))["fault sums"]
    # the first of each task, before anything decays; and one of a task with all faults on one node, where
    # another moment makes up for it
    assert (found["decidable"], found["equal"]) == (14, 5)


def test_the_table_shows_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = replay("c_groups_2x2_thp_r1")
    text = decisions.table([found])
    assert "two-stage" in text
    assert "No disagreement." in text
    monkeypatch.setattr(pagefilter, "ALLOWS", np.zeros_like(pagefilter.ALLOWS))
    text = decisions.table([replay("c_groups_2x2_thp_r1")])
    assert "44 disagreements:" in text
    assert "c_groups_2x2_thp_r1: " in text
