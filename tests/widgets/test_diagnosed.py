"""Places to paste and upload: what is read, what is said of it, and what is said where nothing can be read."""

import datetime
import gzip

import numpy as np
import pytest

from numalab import runs
from numalab.widgets import Compared, Diagnosed
from numalab.widgets.paste import NONE, Paste
from tests.plots.test_pictures import build

#: 0.4 pages for each fault, half of them local: a storm.
STORM = (
    "numa_pte_updates 5000000\nnuma_hint_faults 5000000\nnuma_hint_faults_local 2500000\nnuma_pages_migrated 2000000\n"
)
CALM = "numa_pte_updates 2500000\nnuma_hint_faults 2500000\nnuma_hint_faults_local 2375000\nnuma_pages_migrated 25000\n"
SAMPLES = {"storm": STORM, "calm": CALM}
NODES = b"available: 2 nodes (0,2)\nnode 0 cpus:\nnode 0 size: 0 MB\nnode 2 cpus: 0 1\nnode 2 size: 900 MB\n"


def upload(paste, **files):
    """What a browser sends for uploaded files."""
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    paste.upload.value = tuple(
        {"name": name.replace("_", "."), "type": "", "size": len(data), "content": memoryview(data),
         "last_modified": now}
        for name, data in files.items()
    )  # fmt: skip


# ---------------------------------------------------------------- one machine
def test_a_sample_is_read_and_judged_at_once():
    place = Diagnosed(SAMPLES, "storm", {"scan_overhead": "30_scan_overhead"})
    assert place.diagnosis.ids == ["page-ping-pong"]
    assert place.paste.area.value == STORM
    assert "<b>vmstat</b>, 4 lines" in place.reading.value
    page = place.verdict.value
    assert "✗ illness: page-ping-pong" in page
    assert "Confidence: high" in page
    assert "paste, line 4" in page
    assert "Explained in notebook 30_scan_overhead" in page
    assert place.told.startswith("page-ping-pong: illness, confidence high\n")


def test_a_healthy_one_raises_no_alarm():
    place = Diagnosed(SAMPLES, "calm")
    assert place.diagnosis.ids == ["nothing-wrong"]
    assert "= verdict: nothing-wrong" in place.verdict.value
    assert "Explained in notebook" not in place.verdict.value


def test_what_is_typed_replaces_the_sample():
    place = Diagnosed(SAMPLES, "calm")
    place.paste.area.value = STORM.rstrip("\n")  # a paste often lacks its last line end
    assert place.paste.choice.value == NONE
    assert place.diagnosis.ids == ["page-ping-pong"]
    place.paste.choice.value = "calm"
    assert place.diagnosis.ids == ["nothing-wrong"]
    place.paste.empty.click()
    assert place.told.startswith("Nothing is here yet")


@pytest.mark.parametrize(
    ("text", "files", "said"),
    [
        ("it is slow", {}, "paste: looks like no format that numalab reads"),
        ("", {"a.txt": b"\x1f\x8bnot really"}, "a.txt: cannot be unpacked"),
        ("", {"a.nc": b"not really"}, "a.nc: not a netCDF-4 file"),
        ("@ 10\nnuma_hit 5\n@ 0\nnuma_hit 6\n", {}, "paste:3: time goes back from 10 to 0 s"),
        (STORM, {"b.txt": b"it is slow"}, "b.txt: looks like no format"),
    ],
)
def test_what_cannot_be_read_is_one_message(text, files, said):
    place = Diagnosed(SAMPLES, "storm")
    place.give(text, files)
    assert place.diagnosis is None
    assert place.inputs == []
    assert place.problem.startswith(said)
    assert "--format" not in place.problem
    assert "/tmp" not in place.problem
    assert place.reading.value == ""
    assert place.verdict.value.startswith("<p role='status'")
    place.choose("storm")
    assert place.problem == ""
    assert place.diagnosis.ids == ["page-ping-pong"]


def test_what_is_pasted_is_shown_and_not_obeyed():
    place = Diagnosed({})
    place.give(f"{STORM}<script>alert(1)</script>\n")
    assert "&lt;script&gt;" in place.reading.value
    assert "<script>" not in place.reading.value + place.verdict.value
    place.give("<b>no</b>")
    assert "<b>" not in place.verdict.value


def test_files_are_read_together():
    """One's own files do not belong to the machine of the sample, but to what was typed."""
    place = Diagnosed(SAMPLES, "storm")
    upload(place.paste, nodes_txt=NODES, counters_txt=gzip.compress(CALM.encode()))
    assert place.diagnosis.ids == ["memoryless-node-enables-balancing"]
    assert [one[0].source for one in place.inputs] == ["nodes.txt", "counters.txt"]
    assert "nodes.txt (" in place.paste.names.value
    place.give(STORM)
    assert len(place.inputs) == 1
    upload(place.paste, nodes_txt=NODES)
    assert place.diagnosis.ids == ["page-ping-pong", "memoryless-node-enables-balancing"]
    with pytest.raises(ValueError, match="sample: expected one of storm, calm, got 'rain'"):
        place.choose("rain")


def test_a_recorded_run_can_be_uploaded(tmp_path):
    totals = {line.split()[0]: int(line.split()[1]) for line in STORM.splitlines()}
    ds = build(**{name: (("run", "time"), np.array([[0, total // 2, total]])) for name, total in totals.items()})
    path = tmp_path / "mine.nc"
    runs.save(ds, path)
    place = Diagnosed({})
    place.give("", {"mine.nc": path.read_bytes()})
    assert place.diagnosis.ids == ["page-ping-pong"]
    assert "mine.nc: a run" in place.reading.value


def test_skipped_lines_are_told_with_their_reason():
    place = Diagnosed({})
    place.give(f"{STORM}numa_hit twelve\n")
    assert "line 5: " in place.reading.value
    place.give(STORM)
    assert "<li>nothing</li>" in place.reading.value


# ---------------------------------------------------------------- two sides
def test_changes_are_against_the_left():
    """By hand: faults double; 2.0 of 5.0 million moved against 0.025 of 2.5 is 40 times as much for each."""
    places = Compared(SAMPLES, "calm", "storm")
    rows = {line.split()[0]: line.split()[1:] for line in places.told.splitlines()[2:]}
    assert rows["numa_hint_faults"] == ["2,500,000", "5,000,000", "+100.0", "%"]
    assert rows["migrations_per_fault"] == ["0.01", "0.4", "+3,900.0", "%"]
    assert rows["local_share%"] == ["95", "50", "-45.0", "points"]
    assert "a single run" in places.changes.value
    assert list(places.runs) == ["left", "right"]


def test_both_sides_are_needed_and_must_have_something_in_common():
    places = Compared(SAMPLES, "calm")
    assert places.told.startswith("Nothing is here yet on the right")
    places.pastes[1].give("it is slow")
    assert places.told.startswith("paste: looks like no format")
    assert list(places.runs) == ["left"]
    places.pastes[1].give(NODES.decode())
    assert places.comparison is None
    assert places.problem
    places.choose("storm", "calm")
    assert places.problem == ""


def test_snapshots_of_one_paste_are_sides_of_their_own():
    places = Compared(SAMPLES, "calm", "storm")
    places.pastes[1].give(f"3.19:\n\n{CALM}\n4.0-rc1:\n\n{STORM}")
    assert places.comparison.names == ("left", "right-3.19", "right-4.0-rc1")
    assert "change, right-4.0-rc1" in places.told


def test_marks_of_a_table_are_kept():
    """MMTests marks the change itself; what it marks was tested."""
    table = "                  a                  b\nAmean elsp 3.16 ( 0.00%) 3.93 * -24.20%*\n"
    places = Compared({"table": table}, "table", "table")
    assert "+24.4 %*" in places.told
    assert "*: more than noise." in places.told


def test_listeners_hear_of_each_change_once():
    heard = []
    paste = Paste(SAMPLES)
    paste.on_change(lambda: heard.append(paste.area.value))
    paste.choose("calm")
    paste.area.value = STORM
    paste.give("")
    assert heard == [CALM, STORM, ""]
