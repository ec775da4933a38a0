"""What a replay needs from a folder: found, refused, and up to when it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalab.readers import recorded, trace
from numalab.readers._text import ReadError
from tests.decisions.small import Sample, fault, folder, scan

EVENTS = [fault(1.0, 100, 0, 0), fault(1.5, 100, 2, 1), scan(2.0, 100, 0), fault(3.0, 100, 2, 1)]
WHOLE = "cpu{} overrun: {} commit overrun: 0 dropped events: {} \n"


def test_a_folder(tmp_path: Path) -> None:
    found = recorded.recording(folder(tmp_path, EVENTS, [Sample(2.5, 100, ((1, 0), (2, 0))), Sample(1.2, 100)]))
    assert (found.name, found.release, found.loss_s) == ("small", "6.12.117", float("inf"))
    assert found.node_of.tolist() == [0, 0, 1, 1]
    assert found.distance.tolist() == [[10, 21], [21, 10]]
    assert [sample.time for sample in found.samples[100]] == [1.2, 2.5]
    assert found.pages == {100: 4096}
    assert found.decisions.time.tolist() == [1.0, 1.5, 3.0]


@pytest.mark.parametrize(
    ("stats", "until"),
    [
        (WHOLE.format(0, 0, 0) + WHOLE.format(2, 0, 5), 3.0),  # the end of CPU 2 is lost
        (WHOLE.format(0, 0, 1) + WHOLE.format(2, 0, 0), 2.0),
        (WHOLE.format(0, 0, 1) + WHOLE.format(2, 0, 5), 2.0),
        (WHOLE.format(0, 0, 0) + WHOLE.format(1, 0, 5), float("-inf")),  # CPU 1 has nothing else
        (WHOLE.format(0, 3, 0), float("-inf")),  # the beginning is lost
    ],
)
def test_buffers_that_were_full(tmp_path: Path, stats: str, until: float) -> None:
    assert recorded.recording(folder(tmp_path, EVENTS, [Sample(1.2, 100)], stats=stats)).loss_s == until


def test_losses_in_the_text(tmp_path: Path) -> None:
    """Before its event at 3.0 s CPU 2 lost some; the one before was at 1.5 s."""
    events = [*EVENTS[:3], "CPU:2 [LOST 12 EVENTS]", EVENTS[3]]
    assert recorded.recording(folder(tmp_path, events, [Sample(1.2, 100)])).loss_s == 1.5
    written = ["# entries-in-buffer/entries-written: 4/9   #P:4", *EVENTS]
    assert recorded.recording(folder(tmp_path, written, [Sample(1.2, 100)])).loss_s == float("-inf")


def test_folders_that_cannot_be_replayed(tmp_path: Path) -> None:
    path = folder(tmp_path, [scan(1.0, 100)], [Sample(1.2, 100)])
    with pytest.raises(ReadError, match=r"trace\.txt: holds no hint_fault event"):
        recorded.recording(path)
    (path / "sched.log").unlink()
    with pytest.raises(ReadError, match=r"sched\.log: is missing or empty"):
        recorded.recording(path)
    with trace.folder("S0_anon_n16_nb0_r1") as other, pytest.raises(ReadError, match="is not of layout A"):
        recorded.recording(other)


def test_who_has_the_probes(tmp_path: Path) -> None:
    assert recorded.has_probes(folder(tmp_path, EVENTS, [Sample(1.2, 100)]))
    assert not recorded.has_probes(folder(tmp_path, EVENTS, [Sample(1.2, 100)], groups=["numa"]))
    assert not recorded.has_probes(tmp_path / "nowhere")
    with trace.folder("S0_anon_n16_nb0_r1") as other:
        assert not recorded.has_probes(other)


def test_a_machine_that_is_none(tmp_path: Path) -> None:
    path = folder(tmp_path, EVENTS, [Sample(1.2, 100)])
    text = (path / "meta.json").read_text()
    (path / "meta.json").write_text(text.replace("[[10, 21], [21, 10]]", "[[10]]"))
    with pytest.raises(ReadError, match=r"topology\.distance: expected 2 x 2"):
        recorded.recording(path)
    (path / "meta.json").write_text(text.replace("[0, 1]", "[0, 7]"))
    with pytest.raises(ReadError, match="topology: expected CPUs 0, 1"):
        recorded.recording(path)
