"""Groups of hand-made sequences."""

from __future__ import annotations

from pathlib import Path

from numalab.decisions import groups, tasks
from numalab.decisions.groups import Change, Groups
from numalab.readers import recorded
from tests.decisions.small import LOCAL, NO_GROUP, Sample, cpupid, fault, folder

BY_100, BY_101 = cpupid(0, 100), cpupid(2, 101)


def groups_of(path: Path) -> Groups:
    recording = recorded.recording(path)
    return groups.follow(recording, tasks.tracks(recording))


def samples(first: int, second: int, time: float = 3.0) -> list[Sample]:
    """Before everything without a group, then in these."""
    return [Sample(0.5, 100), Sample(0.5, 101), Sample(time, 100, group=first), Sample(time, 101, group=second)]


def meeting() -> list[str]:
    """101 founds its group at 1.1 s, on a page of 100; 100 at 1.3 s, on one of 101, which runs on CPU 2."""
    return [
        fault(1.0, 100, 0, 0),
        fault(1.1, 101, 2, 0, 0, BY_100),
        fault(1.2, 101, 2, 1),
        fault(1.3, 100, 0, 1, 0, BY_101),
        fault(1.4, 101, 2, 1),
    ]


def test_founding_and_joining(tmp_path: Path) -> None:
    """100 founds a group and joins that of 101, which is on CPU 2 before and after, in the same fault."""
    found = groups_of(folder(tmp_path, meeting(), samples(101, 101)))
    assert found.changes[101] == [Change(1.1, 1.1, 101)]
    assert found.changes[100] == [Change(1.3, 1.3, 100), Change(1.3, 1.3, 101)]
    mine, its = found.joins[100], found.joins[101]
    assert (mine.founded, mine.founded_equal, mine.joined, mine.joined_equal) == (1, 1, 1, 1)
    assert (its.founded, its.founded_equal, its.joined) == (1, 1, 0)
    assert found.members(100, 1.3) == [()]
    assert found.members(101, 1.35) == [(100, 101)]


def test_a_tie_may_go_the_other_way(tmp_path: Path) -> None:
    """Two groups of one: their addresses decide, and they are not known. So staying apart is no contradiction."""
    found = groups_of(folder(tmp_path, meeting(), samples(100, 101)))
    assert found.joins[100].asked == 0
    assert found.members(100, 2.0) == [(100,)]


def test_a_join_that_had_to_be(tmp_path: Path) -> None:
    """102 is alone and meets 101, whose group has two: it must join, but the kernel says it did not."""
    events = [
        *meeting(),
        fault(3.5, 101, 2, 1),
        fault(3.6, 102, 1, 1, 0, BY_101),
        fault(3.7, 101, 2, 1),
    ]
    late = [Sample(4.0, 100, group=101), Sample(4.0, 101, group=101), Sample(0.5, 102)]
    stayed = groups_of(folder(tmp_path, events, [*samples(101, 101), *late, Sample(4.0, 102, group=102)]))
    assert stayed.joins[102].asked == 1
    joined = groups_of(folder(tmp_path, events, [*samples(101, 101), *late, Sample(4.0, 102, group=101)]))
    assert (joined.joins[102].asked, joined.joins[102].joined_equal) == (0, 1)
    assert joined.members(102, 3.9) == [(100, 101, 102)]


def test_a_group_without_reason(tmp_path: Path) -> None:
    """A group, where every fault was private; and none, where the fault may not group."""
    private = [fault(1.0, 100, 0, 0), fault(1.1, 101, 2, 1)]
    assert groups_of(folder(tmp_path, private, samples(100, 0))).joins[100].founded_equal == 0
    refused = [fault(1.0, 100, 0, 1, NO_GROUP, BY_101), fault(1.1, 101, 2, 1)]
    found = groups_of(folder(tmp_path, refused, samples(0, 0)))
    assert (found.joins[100].founded, found.changes[100]) == (0, [])


def test_a_group_that_is_not_printed(tmp_path: Path) -> None:
    found = groups_of(folder(tmp_path, meeting(), samples(0, 101)))
    assert (found.joins[100].founded, found.joins[100].founded_equal) == (1, 0)


def test_a_join_without_reason(tmp_path: Path) -> None:
    """100 founded its group on a page whose last user is gone; nothing led it to 101's."""
    events = [fault(1.0, 100, 0, 0, LOCAL, cpupid(3, 77)), *meeting()[1:3]]
    found = groups_of(folder(tmp_path, events, samples(101, 101)))
    assert (found.joins[100].joined, found.joins[100].joined_equal) == (1, 0)
    assert len(found.members(100, 2.0) or []) == 2  # some time between the samples


def test_unclear_moments_are_tried_in_all_ways() -> None:
    unsure = Groups({1: [Change(0, 0, 1)], 2: [Change(0, 0, 2), Change(5, 7, 1)]}, {1: 9.0, 2: 9.0})
    assert unsure.members(1, 4) == [(1,)]
    assert unsure.members(1, 6) == [(1,), (1, 2)]
    assert unsure.members(1, 8) == [(1, 2)]
    assert unsure.members(1, 8.5) == [(1, 2)]
    assert unsure.members(2, 6) == [(2,), (1, 2)]
