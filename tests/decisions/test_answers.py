"""The filter's answers in hand-made sequences, branch by branch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from numalab.decisions import answers, replay
from numalab.decisions.history import GroupFaults
from numalab.decisions.result import Replay
from numalab.model import pagefilter
from tests.decisions.small import FAILED, LOCAL, MIGRATED, UNSET, Sample, answer, cpupid, fault, folder, prefer

BY_100, BY_101 = cpupid(0, 100), cpupid(2, 101)


def asked(time: float, pid: int, cpu: int, said: int, node: int, flags: int, last: int = UNSET) -> list[str]:
    """A call of the filter and the fault it belongs to."""
    return [answer(time, pid, cpu, said), fault(time + 0.001, pid, cpu, node, flags, last)]


def branches(found: Replay) -> dict[str, tuple[int, int, int]]:
    return {name: (tally.yes, tally.no, tally.equal) for name, tally in found.answers.branches.items()}


def test_early_and_two_stage(tmp_path: Path) -> None:
    """100 (node 0) without a preferred node: a first touch comes, another's page stays if last used on node 1."""
    events = [
        *asked(1.0, 100, 0, 1, 0, MIGRATED),
        *asked(1.1, 100, 0, 0, 1, 0, BY_101),
        *asked(1.2, 100, 0, 1, 0, MIGRATED, cpupid(3, 100)),  # its own page, from wherever it used it
    ]
    found = replay(folder(tmp_path, events, [Sample(0.5, 100), Sample(0.5, 101), Sample(2, 100)]))
    assert branches(found) == {"early": (2, 0, 2), "two-stage": (0, 1, 1)}
    assert not found.answers.undecidable
    assert found.disagreements() == []


def test_a_pid_that_ends_in_255_is_none(tmp_path: Path) -> None:
    """Last used by task 255 on the other node: for the filter a first touch, for the statistics another's page."""
    events = asked(1.0, 100, 0, 1, 0, MIGRATED, cpupid(2, 255))
    found = replay(folder(tmp_path, events, [Sample(0.5, 100), Sample(2, 100, group=100)]))
    assert branches(found) == {"early": (1, 0, 1)}
    assert found.joins[100].founded_equal == 1


def later() -> list[Sample]:
    """Placed at scan sequences 5 and 6, so no longer early; node 0 preferred."""
    return [
        Sample(0.5, 100, seq=5, preferred=0),
        Sample(0.5, 101, seq=5, preferred=0),
        Sample(2.0, 100, ((1, 0), (0, 0)), seq=6, preferred=0),
        Sample(2.0, 101, seq=6, preferred=0),
    ]


def test_private_and_no_group(tmp_path: Path) -> None:
    """After the first scans: own pages come if last used here, a first touch because there is no group."""
    events = [
        fault(1.0, 100, 0, 0),
        fault(1.1, 100, 0, 0),  # placed here, with one fault; the sequence is 6 by now
        *asked(2.1, 100, 0, 1, 0, MIGRATED, BY_100),
        *asked(2.2, 100, 0, 0, 1, 0, cpupid(3, 100)),
        *asked(2.3, 100, 0, 1, 0, MIGRATED),
        *asked(2.4, 100, 0, 0, 1, 0, cpupid(1, 101)),  # the kernel says no where the rule says yes
    ]
    found = replay(folder(tmp_path, events, later()))
    # 5 or 6 at the placement, both more than 4
    assert branches(found) == {"private": (1, 0, 1), "two-stage": (0, 1, 1), "no group": (1, 1, 1)}
    assert found.disagreements() == ["2.400000 s, task 100: filter (no group) said no"]


@pytest.mark.parametrize(
    ("cpu_target", "expected"),
    [
        ((31, 31), {True}),  # more than three times 10
        ((30, 30), {True}),  # not, but 30*30*3 = 2700 > 10*10*4 = 400
        ((4, 4), {False}),  # 4*30*3 = 360
        ((5, 5), {True}),  # 450
        ((4, 5), {True, False}),
    ],
)
def test_ratio_of_a_group(cpu_target: tuple[int, int], expected: set[bool]) -> None:
    """From node 0 (30 faults, 10 by CPU) to node 1 (10 faults)."""
    low, high = cpu_target
    faults = GroupFaults(np.array([30, 10]), np.array([10, low]), np.array([10, high]))
    assert answers._allows(faults, 0, 1) == expected


def group_of_one(nodes: int, flags: int, node: int) -> tuple[list[str], list[Sample]]:
    """100 has a group of its own, four faults on its node 0 and from there, none elsewhere."""
    quiet = [(0, 0)] * (nodes - 1)
    events = [
        fault(1.0, 100, 0, 0),
        fault(1.1, 100, 0, 0),
        fault(1.2, 100, 0, 0),
        fault(1.3, 100, 0, 0, LOCAL, cpupid(0, 102)),  # founds the group
        fault(1.4, 100, 0, 0),  # placed here
        *asked(2.1, 100, 0, 1, node, flags, cpupid(0, 102)),
    ]
    own = [(3, 1), *quiet]
    rest = {"seq": 6, "preferred": 0, "group": 100, "group_faults": own}
    samples = [
        Sample(0.5, 100, [(0, 0), *quiet], [(0, 0), *quiet], seq=5, preferred=0),
        Sample(2.0, 100, own, **rest),
        Sample(3.0, 100, own, **rest),
    ]
    return events, samples


def test_group_ratio(tmp_path: Path) -> None:
    """All CPU faults are on the target's node, more than three times the source's none."""
    events, samples = group_of_one(2, MIGRATED, 0)
    found = replay(folder(tmp_path, events, samples))
    assert branches(found) == {"group ratio": (1, 0, 1)}
    assert (found.group_sums.decidable, found.group_sums.equal) == (1, 1)


def test_the_source_of_a_page_that_moved(tmp_path: Path) -> None:
    """With three nodes it may have been on 1 or 2: the group ran on neither, so both say yes."""
    events, samples = group_of_one(3, MIGRATED, 0)
    assert branches(replay(folder(tmp_path, events, samples, nodes=3))) == {"group ratio": (1, 0, 1)}


def test_a_source_that_matters_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the answer hangs on which of the two it was, there is none; where the migration failed, the node is known."""
    monkeypatch.setattr(answers, "_allows", lambda faults, source, target: {source == 1})
    events, samples = group_of_one(3, MIGRATED, 0)
    found = replay(folder(tmp_path, events, samples, nodes=3))
    assert dict(found.answers.undecidable) == {("group ratio", answers.SOURCE): 1}
    events, samples = group_of_one(3, FAILED, 1)
    assert branches(replay(folder(tmp_path, events, samples, nodes=3))) == {"group ratio": (1, 0, 1)}


def test_bounds_that_matter_are_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_allows", lambda faults, source, target: {True, False})
    events, samples = group_of_one(2, MIGRATED, 0)
    found = replay(folder(tmp_path, events, samples))
    assert dict(found.answers.undecidable) == {("group ratio", answers.CPU_SUMS): 1}


def test_cpu_sums_are_not_known_after_a_gap(tmp_path: Path) -> None:
    """The first printed sums come out of nothing, the second do: memory is known again, and the CPU part is not."""
    events, samples = group_of_one(2, MIGRATED, 0)
    events[-2:-2] = [fault(1.6, 100, 0, 1), fault(1.7, 100, 0, 0)]  # 3 - 3/2, 4 - 4/2 and the faults since
    wrong = Sample(1.5, 100, [(3, 4), (0, 0)], [(3, 4), (0, 0)], seq=6, preferred=0, group=100)
    after = [(3, 2), (1, 0)]
    for sample in samples[1:]:
        sample.faults, sample.group_faults, sample.seq = after, after, 7
    found = replay(folder(tmp_path, events, [*samples, wrong]))
    assert found.sums[100].differ == [1.5]
    assert (found.sums[100].changed, found.sums[100].equal) == (2, 1)
    assert dict(found.answers.undecidable) == {("group ratio", answers.CPU_SUMS): 1}


def test_what_cannot_be_decided(tmp_path: Path) -> None:
    """A task that was not sampled, a call without its fault, and everything after a loss."""
    events = [
        *asked(1.0, 300, 0, 1, 0, MIGRATED),
        *asked(1.1, 300, 0, 0, 1, 0, BY_101),  # decided by where it was used last, whoever asks
        answer(1.2, 100, 0, 1),
        answer(1.3, 100, 0, 1),
        fault(1.4, 100, 0, 0, MIGRATED),
        *asked(1.5, 100, 0, 1, 0, MIGRATED),
    ]
    stats = (
        "cpu0 overrun: 0 commit overrun: 0 dropped events: 0 \ncpu2 overrun: 0 commit overrun: 0 dropped events: 3 \n"
    )
    events.insert(-2, fault(1.45, 101, 2, 1))
    found = replay(folder(tmp_path, events, [Sample(0.5, 100), Sample(2, 100)], stats=stats))
    assert branches(found) == {"two-stage": (0, 1, 1), "early": (1, 0, 1)}
    assert dict(found.answers.undecidable) == {
        ("", answers.NO_TASK): 1,
        ("", answers.NO_FAULT): 1,
        ("", answers.LOST): 1,
    }


def test_preferred_node(tmp_path: Path) -> None:
    """Three faults on node 1, one on node 0: 1 is set. Another answer of the kernel is a disagreement."""
    events = [*(fault(1 + i / 10, 100, 0, node) for i, node in enumerate((1, 1, 0, 1))), fault(1.5, 100, 0, 0)]
    samples = [Sample(0.5, 100), Sample(2, 100, ((1, 0), (3, 0)), seq=1)]
    right = replay(folder(tmp_path, [*events, prefer(1.500005, 100, 0, 1)], samples))
    assert (right.preferred.decidable, right.preferred.equal) == (1, 1)
    for wrong in ([prefer(1.500005, 100, 0, 0)], []):
        found = replay(folder(tmp_path, [*events, *wrong], samples))
        assert (found.preferred.decidable, found.preferred.equal) == (1, 0)


def test_a_filter_that_always_agrees_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [*asked(1.0, 100, 0, 1, 0, MIGRATED), *asked(1.1, 100, 0, 0, 1, 0, BY_101)]
    monkeypatch.setattr(pagefilter, "ALLOWS", np.ones_like(pagefilter.ALLOWS))
    found = replay(folder(tmp_path, events, [Sample(0.5, 100), Sample(2, 100)]))
    assert branches(found) == {"early": (1, 0, 1), "two-stage": (0, 1, 0)}
