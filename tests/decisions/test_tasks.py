"""Fault sums of hand-made sequences."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalab.decisions import tasks
from numalab.model import placing
from numalab.readers import recorded
from tests.decisions.small import LOCAL, Sample, cpupid, fault, folder, prefer

OTHER = cpupid(2, 101)


def track_of(path: Path, pid: int = 100) -> tasks.Track:
    return tasks.tracks(recorded.recording(path))[pid]


def one_by_one() -> list[str]:
    """Three first touches on node 0, a fourth, then two of another's pages on node 1, and one more."""
    return [
        *(fault(1 + i / 10, 100, 0, 0) for i in range(4)),
        *(fault(2 + i / 10, 100, 0, 1, 0, OTHER) for i in range(2)),
        fault(2.5, 100, 0, 0),
    ]


def two_samples(last: tuple[tuple[int, int], ...]) -> list[Sample]:
    return [Sample(0.5, 100), Sample(1.5, 100, ((3, 0), (0, 0)), seq=1), Sample(3, 100, last, seq=2)]


def test_sums_tell_when_tasks_were_placed(tmp_path: Path) -> None:
    """The first placement saw three; the second 3 - 3/2 + 1 = 3 private ones on node 0, 2 shared on node 1."""
    track = track_of(folder(tmp_path, one_by_one(), two_samples(((3, 0), (0, 2)))))
    assert track.private.tolist() == [True] * 4 + [False] * 2 + [True]
    assert [(p.fault, p.time, p.mem.tolist()) for p in track.placements] == [
        (3, 1.3, [[0, 3], [0, 0]]),
        (6, 2.5, [[0, 3], [2, 0]]),
    ]
    assert track.placements[1].cpu_buffered.tolist() == [[2, 1], [0, 0]]  # all from node 0
    sums = track.sums
    assert (sums.changed, sums.equal, sums.totals, sums.faults, sums.differ) == (2, 2, 2, 6, [])


@pytest.mark.parametrize("wrong", [((4, 0), (0, 2)), ((3, 0), (1, 1)), ((3, 0), (0, 3))])
def test_sums_that_no_moment_gives(tmp_path: Path, wrong: tuple[tuple[int, int], ...]) -> None:
    """A count too many, one of the other kind, one that is not there."""
    track = track_of(folder(tmp_path, one_by_one(), two_samples(wrong)))
    assert (track.sums.changed, track.sums.equal, track.sums.differ, track.sums.doubtful) == (2, 1, [3.0], 4)
    assert track.known(1.4)
    assert not track.known(2.2)
    assert (track.known(3.1), track.whole(1.4), track.whole(3.1)) == (False, True, False)


def test_a_wrong_total_is_seen(tmp_path: Path) -> None:
    samples = two_samples(((3, 0), (0, 2)))
    samples[2].values = {"total_numa_faults": 6}
    assert track_of(folder(tmp_path, one_by_one(), samples)).sums.totals == 1


def test_without_halving_nothing_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "memory_change", lambda mem, buffered: buffered)
    track = track_of(folder(tmp_path, one_by_one(), two_samples(((3, 0), (0, 2)))))
    assert (track.sums.changed, track.sums.equal) == (2, 1)


def twice() -> list[str]:
    return [
        *(fault(1 + i / 10, 100, 0, 0) for i in range(3)),
        *(fault(1.5 + i / 10, 100, 0, 1, LOCAL, OTHER) for i in range(2)),
        fault(1.8, 100, 0, 0),
    ]


def test_two_placements_between_samples(tmp_path: Path) -> None:
    """Node 0: 2, then 2 - 2/2 + 1 = 2; but also 3, then 3 - 3/2 = 2. The preferred node tells which."""
    samples = [Sample(0.5, 100), Sample(2, 100, ((2, 0), (0, 2)), seq=2)]
    unclear = track_of(folder(tmp_path, twice(), samples))
    assert (unclear.sums.changed, unclear.sums.equal, unclear.sums.several) == (1, 0, 1)
    assert not unclear.known(1.6)
    assert unclear.known(2.1)  # both ways end with the same fault
    events = twice()
    events.insert(3, prefer(1.200005, 100, 0, 0))
    clear = track_of(folder(tmp_path, events, samples))
    assert [p.fault for p in clear.placements] == [2, 5]
    assert (clear.sums.equal, clear.sums.several, clear.sums.placements) == (1, 0, 2)


def test_one_scan_allows_one_placement(tmp_path: Path) -> None:
    track = track_of(folder(tmp_path, twice(), [Sample(0.5, 100), Sample(2, 100, ((2, 0), (0, 2)), seq=1)]))
    assert (track.sums.changed, track.sums.equal, track.sums.several) == (1, 0, 0)


def test_sums_are_followed_again_after_a_gap(tmp_path: Path) -> None:
    """The second sample comes out of nothing; the third is 9 - 9/2 and the fault of 2.0 s: placed in the next one."""
    events = [fault(1.0, 100, 0, 0), fault(2.0, 100, 0, 1), fault(2.5, 100, 0, 1), fault(4.0, 100, 0, 0)]
    samples = [
        Sample(0.5, 100),
        Sample(1.5, 100, ((0, 9), (0, 0)), seq=1),
        Sample(3.0, 100, ((0, 5), (1, 0)), seq=2),
    ]
    track = track_of(folder(tmp_path, events, samples))
    assert track.sums.differ == [1.5]
    assert (track.sums.changed, track.sums.equal) == (2, 1)
    assert [track.known(time) for time in (0.4, 1.0, 2.4, 2.6)] == [True, False, False, True]
    assert track.mem(2.6).tolist() == [[5, 0], [0, 1]]
    assert not track.whole(2.6)  # what the CPU part and the period were is lost


def test_nothing_is_said_after_a_loss(tmp_path: Path) -> None:
    stats = (
        "cpu0 overrun: 0 commit overrun: 0 dropped events: 0 \ncpu2 overrun: 0 commit overrun: 0 dropped events: 7 \n"
    )
    events = [*one_by_one()[:5], fault(2.05, 101, 2, 1), *one_by_one()[5:]]
    track = track_of(folder(tmp_path, events, two_samples(((3, 0), (0, 2))), stats=stats))
    assert (track.sums.changed, track.sums.equal, track.sums.lost) == (1, 1, 1)
    assert track.known(2.0)
    assert not track.known(2.1)
