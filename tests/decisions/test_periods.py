"""When scans are due, and what is known of run times, in hand-made sequences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from numalab.decisions import locality, releases, replay, runtime, tasks
from numalab.decisions.periods import Scans
from numalab.readers import recorded, sched
from tests.decisions.small import FAILED, LOCAL, Sample, cpupid, fault, folder, scan

WHOLE = 65536


def scans_of(path: Path) -> Scans:
    return replay(path).scans[100]


@pytest.mark.parametrize(("second", "kept"), [(2.0, 1), (1.997, 1), (1.9, 0), (4.0, 1)])
def test_scans_are_a_period_apart(tmp_path: Path, second: float, kept: int) -> None:
    """1000 ms until the first placement; a tick's rounding is allowed."""
    events = [fault(0.9, 100, 0, 0), scan(1.0, 100), scan(second, 100)]
    found = scans_of(folder(tmp_path, events, [Sample(0.1, 100), Sample(5, 100)]))
    assert (found.due, found.kept, found.exact) == (1, kept, 1)
    assert found.early == ([] if kept else [second])


def failing(*later: str) -> list[str]:
    """Two local faults and a failed one, placed at 1.4 s: 1000 ms double, the next scan is due at 3.4 s."""
    return [
        scan(1.0, 100),
        *(fault(1.1 + i / 10, 100, 0, 0, LOCAL) for i in range(2)),
        fault(1.3, 100, 0, 1, FAILED),
        fault(1.4, 100, 0, 0, LOCAL),
        *later,
    ]


@pytest.mark.parametrize(("second", "kept"), [(3.4, 1), (3.3, 0)])
def test_a_doubled_period_puts_the_scan_off(tmp_path: Path, second: float, kept: int) -> None:
    samples = [Sample(0.1, 100), Sample(2, 100, ((2, 0), (1, 0)), seq=1), Sample(5, 100, ((2, 0), (1, 0)), seq=1)]
    found = scans_of(folder(tmp_path, failing(scan(second, 100)), samples))
    assert (found.due, found.kept, found.exact) == (1, kept, 1)


def two_passes() -> tuple[list[str], list[Sample]]:
    """The failing pass, then one of four private local faults: placed at 4.4 s with that of 1.4 s and three more."""
    events = failing(scan(3.5, 100), *(fault(4 + i / 10, 100, 0, 0) for i in range(4)), fault(4.4, 100, 0, 0))
    # node 0: 2 - 2/2 + 5, node 1: 1 - 1/2
    samples = [
        Sample(0.1, 100),
        Sample(2, 100, ((2, 0), (1, 0)), seq=1),
        Sample(5, 100, ((6, 0), (1, 0)), seq=2),
    ]
    return events, samples


@pytest.mark.parametrize(
    ("release", "seen", "doubles"),
    [("6.1.0-57-cloud-amd64", [3, 8], [True, True]), ("6.12.117+deb12-cloud-amd64", [3, 5], [True, False])],
)
def test_a_failure_sticks_or_not(tmp_path: Path, release: str, seen: list[int], doubles: list[bool]) -> None:
    """Without clearing the failed fault of the first pass doubles the period after the second too."""
    events, samples = two_passes()
    recording = recorded.recording(folder(tmp_path, events, samples, release=release))
    track = tasks.tracks(recording)[100]
    found = locality.counts(recording, track, releases.kernel_of(release))
    assert [each.seen for each in found] == seen
    assert [each.doubles for each in found] == doubles
    assert found[-1].high.tolist() == [1, 7, 1] if doubles[1] else [0, 5, 0]


def test_shared_faults_between_nodes_may_count_as_local(tmp_path: Path) -> None:
    """Two shared remote faults and one private remote one: from 0 to 2 of 3 are local."""
    events = [
        *(fault(1 + i / 10, 100, 0, 1, 0, cpupid(2, 101)) for i in range(2)),
        fault(1.2, 100, 0, 1, 0),
        fault(1.3, 100, 0, 0),
    ]
    recording = recorded.recording(
        folder(tmp_path, events, [Sample(0.1, 100), Sample(2, 100, ((0, 0), (1, 2)), seq=1)])
    )
    (found,) = locality.counts(recording, tasks.tracks(recording)[100], releases.kernel_of("6.12"))
    assert (found.low.tolist(), found.high.tolist(), found.seen) == ([3, 0, 0], [1, 2, 0], 3)


def ran(*looks: tuple[float, float]) -> tasks.Track:
    """A task placed at 1.5 s and 3.5 s, with samples (time, ms run until then)."""
    zero = np.zeros((2, 2), np.int64)
    placements = [tasks.Placement(i, t, 0, zero, zero, zero, 0) for i, t in enumerate((1.5, 3.5))]
    samples = [_task(time, ms) for time, ms in looks]
    return tasks.Track(100, 100, np.arange(3), [1.5, 3.5, 5], np.ones(3, bool), samples, placements)


def _task(time: float, ran_ms: float) -> sched.Task:
    return sched.parse(Sample(time, 100, ran_ms=ran_ms).text() + "\n").tasks[0]


def test_share_of_time_run(tmp_path: Path) -> None:
    """Idle until the samples: 0, 100, 300, 400 ms. From 1.5 to 3.5 s that is 200 to 400 ms, give or take a tick."""
    least, most = runtime._share(ran((1, 1000), (2, 1900), (3, 2700), (4, 3600)), 1)
    assert least == (1995_000_000 - 400_000_000) * WHOLE // 1995_000_001
    assert most == (2005_000_000 - 200_000_000) * WHOLE // 2005_000_001
    assert 0.79 < least / WHOLE < 0.8 < 0.9 < most / WHOLE < 0.901


def test_share_without_samples_around() -> None:
    """Nothing printed before or after: it may have run always or never."""
    least, most = runtime._share(ran((2, 1900), (3, 2700)), 1)
    assert least == 0
    assert most == (2005_000_000 - 200_000_000) * WHOLE // 2005_000_001


def test_first_share_is_that_of_the_load_average() -> None:
    """A task that never slept is at 46718 of 47742 at least; 47000 printed tell no more."""
    least, most = runtime._share(ran((1, 1000), (2, 1900), (3, 2700)), 0)
    assert (least, most) == (46718 * WHOLE // 47743, 47742 * WHOLE // 47743)


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("6.12.117+deb12", "6.12.117"),
        ("6.12.200", "6.12.117"),
        ("6.12.116", "6.12"),
        ("6.13.120", "6.12"),
        ("6.1.0-57-cloud", "6.1"),
        ("6.8.0", "6.5"),
        ("5.10.1", "5.7"),
        ("9.9", "6.18"),
    ],
)
def test_kernel_of_a_release(release: str, name: str) -> None:
    assert releases.kernel_of(release).name == name


def test_kernels_that_are_not_known(tmp_path: Path) -> None:
    path = folder(tmp_path, [fault(1, 100, 0, 0)], [Sample(0.5, 100)], release="2.6.32")
    with pytest.raises(ValueError, match=rf"{tmp_path.name}: expected a kernel from 3.14 on"):
        replay(path)
    with pytest.raises(ValueError, match=r"expected a version such as 6\.12"):
        releases.kernel_of("unknown")
