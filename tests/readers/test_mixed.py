"""Reading of anything: files, folders, pastes of several tools, standard input; one run of all of it."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import numalab
from numalab.readers import mixed
from numalab.readers._text import ReadError
from numalab.readers.formats import FormatError
from numalab.readers.mixed import read, read_text
from tests.readers.helpers import GOLDEN, golden

PASTE = golden("mixed.txt")


def test_a_paste_of_five_tools():
    found = numalab.read(PASTE)
    assert found.formats == ["numactl", "vmstat", "numastat", "numa_maps", "sched"]
    assert [(skip.line, skip.text) for skip in found.skipped] == [
        (1, "Hi all,"),
        (3, "my database is slow since yesterday. Here is what I have:"),
        (55, "Any idea?"),
    ]
    whole = [place.what for part in found for place in part.understood]
    assert "prompts and names of files in lines 5,7,20,35,44,46" in whole


def test_before_and_after_are_one_measurement():
    part = mixed.read(PASTE)["vmstat"]
    assert part.table("vmstat").columns == ("counter", "before", "after")
    assert part.table("vmstat").get("numa_pte_updates", "after") == 1234667
    ds = part.dataset()
    assert (ds.numa_pte_updates.item(), ds.numa_hint_faults.item(), ds.numa_hint_faults_local.item()) == (
        100,
        1000,
        900,
    )
    assert ds.numa.local_share().values.tolist() == [0.9]
    assert any("one boot, the growth between" in guess.what for guess in part.guessed)


def test_the_kernel_is_found_in_the_paste():
    """4.15 prints private and shared exchanged."""
    part = mixed.read(PASTE)["sched"]
    ds = part.dataset()
    assert ds.faults.sel(kind="private").values.tolist() == [[[[12, 3400]]]]
    assert ds.group_faults.sel(kind="shared").values.tolist() == [[[[1, 3]]]]
    assert (part.guessed[-1].line, part.guessed[-1].what[:25]) == (6, "kernel 4.15.0-213-generic")
    told = mixed.read(PASTE, kernel="6.1")["sched"].dataset()
    assert told.faults.sel(kind="private").values.tolist() == [[[[1, 27]]]]


def test_one_run_of_all():
    ds = mixed.read(PASTE).dataset()
    assert ds.node.values.tolist() == [0, 1]
    assert ds.distance.values.tolist() == [[10, 21], [21, 10]]
    assert ds.task.values.tolist() == ds.process.values.tolist() == [4711]
    assert ds.pages.values.tolist() == [[[[400, 71]]]]
    assert ds.node_counters.sel(node_counter="numa_hit").values.tolist() == [[[1000000, 2000000]]]
    assert ds.free_pages.values.tolist() == [[[25600, 2304000]]]


def test_pages_that_are_not_on_a_node_are_0_there():
    text = "available: 3 nodes (0-2)\nnode 0 cpus: 0\nnode 1 cpus: 1\nnode 2 cpus:\n7f0000000000 default anon=5 N1=5\n"
    ds = mixed.read(text).dataset()
    assert ds.node.values.tolist() == [0, 1, 2]
    assert ds.pages.values.tolist() == [[[[0, 5, 0]]]]


def test_what_does_not_fit_into_one_run():
    nodes = "numa_hit 5\nlocal_node 5\nother_node 0\n"
    two = f"numa_hit 5\nnuma_hint_faults 2\n\nnext:\nnuma_hit 1\nnuma_hint_faults 1\n\n==> node0/numastat <==\n{nodes}"
    with pytest.raises(ValueError, match=r"<text>: its parts hold different numbers of runs \(vmstat 2, numastat 1\)"):
        mixed.read(two).dataset()
    machines = f"==> node3/numastat <==\n{nodes}\nNode 0 MemFree: 8 kB\n"
    with pytest.raises(ValueError, match=r"numastat has nodes \[3\], other parts \[0, 3\]: different machines"):
        mixed.read(machines).dataset()
    with pytest.raises(ValueError, match=r"mpstat: nothing that a run has"):
        mixed.read("10:00:01 NODE %usr %idle\n10:00:02 0 1.5 98.5\n").dataset()


def test_times_of_different_parts_are_kept():
    log = "@ 1.5\nnuma_hit 5\nnuma_hint_faults 1\n@ 2.5\nnuma_hit 9\nnuma_hint_faults 3\n"
    found = mixed.Readings((*mixed.read(log), *mixed.read("numactl\n" + "node 0 free: 1 MB\n")))
    ds = found.dataset()
    assert ds.numa_hint_faults.dims == ("run", "time")
    assert ds.numa_hint_faults.values.tolist() == [[0, 2]]
    assert ds.free_pages.dims == ("run", "time_numactl", "node")


def test_a_word_of_a_format_is_not_the_format():
    text = "I ran perf bench numa before, then this:\nnuma_hit 5\nnuma_hint_faults 2\n"
    with pytest.raises(ValueError, match="no output of perf bench numa mem found"):
        mixed.read(text.replace("numa_hit", "hit").replace("numa_hint_faults", "faults"))
    found = mixed.read(text)
    assert found.formats == ["vmstat"]
    assert [(skip.line, skip.reason) for skip in found.skipped] == [(1, "no perf-bench-numa after all")]


def test_an_error_names_the_line_of_the_paste():
    text = PASTE.replace("node 1 cpus: 4 5", "node 1 cpus: 3 5")
    with pytest.raises(ValueError, match=r"^<text>:12: CPU 3 is on node 0 and on node 1"):
        mixed.read(text)


def test_files(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("numa_hit 5\nnuma_hint_faults 2\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"what?\nthis?\nnode 0 free: 4 MB\n"))
    found = mixed.read(tmp_path / "a.txt", str(tmp_path / "b.txt.gz"))
    assert found.formats == ["vmstat", "numactl"]
    assert [(skip.file, skip.line) for skip in found.skipped] == [(str(tmp_path / "b.txt.gz"), 1)]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"node 0 free: 4 MB\n")))
    assert mixed.read("-")[0].source == "<stdin>"
    with pytest.raises(FileNotFoundError):
        mixed.read(tmp_path / "c.txt")


def test_a_format_that_is_forced():
    text = "pgfault 5\npgmajfault 1\n"
    with pytest.raises(FormatError, match="looks like no format"):
        mixed.read(text)
    ds = mixed.read(text, format="vmstat").dataset()
    assert ds.minor_faults.item() == 4


def test_the_folder_of_a_run():
    folder = GOLDEN.parents[2] / "data" / "traces" / "c_swap_2x2_r1"
    found = mixed.read(folder)
    assert len(found) == 1
    assert found[0].format.startswith("trace folder")
    with pytest.raises(FormatError, match=r"is a folder, whose meta\.json says all"):
        mixed.read(folder, format="vmstat")


def test_no_array_is_as_long_as_the_highest_node():
    found = mixed.read("Node 0 MemFree: 4 kB\nNode 255 MemFree: 8 kB\n")
    ds = found.dataset()
    assert ds.sizes["node"] == 2
    assert ds.free_pages.sel(node=255).item() == 2


def test_readings_are_a_sequence():
    found = mixed.read(PASTE)
    assert len(found) == 5
    assert found[0].format == "numactl"
    assert found[1:3].formats == ["vmstat", "numastat"]
    assert [part.format for part in found] == found.formats
    with pytest.raises(KeyError, match="holds no lkp; it holds numactl, vmstat"):
        found["lkp"]
    with pytest.raises(KeyError, match="has no table 'x'; it has vmstat"):
        found["vmstat"].table("x")
    table = found["vmstat"].table("vmstat")
    with pytest.raises(KeyError, match="has no row 'x'"):
        table.get("x", "after")
    with pytest.raises(KeyError, match="has no column 'x'; it has counter, before, after"):
        table.get("numa_hit", "x")


def test_bytes_of_old_mails(tmp_path):
    (tmp_path / "x").write_bytes("Müller:\nnuma_hit 5\nnuma_hint_faults 2\n".encode("latin-1"))
    assert mixed.read(tmp_path / "x")["vmstat"].tables[0].columns == ("counter", "Müller")


def test_the_doctest_of_read():
    found = mixed.read("numa_hit 12\nnuma_hint_faults 2048\nnuma_hint_faults_local 512\n")
    assert np.isclose(found.dataset().numa.local_share().item(), 0.25)


# ------------------------------------------------------------------ folders of files


@pytest.fixture
def bundle(tmp_path):
    files = {
        "sys/node0/numastat": "numa_hit 5\nlocal_node 5\nother_node 0\n",
        "sys/node2/numastat": "numa_hit 7\nlocal_node 7\nother_node 0\n",
        "proc/12/numa_maps": "7f0000000000 default anon=3 N2=3 kernelpagesize_kB=4\nwhat?\n",
        "uname.txt": "Linux db1 4.15.0-213-generic #224 SMP\n",
        "picture.png": "\x89PNG\0\0",
        "notes.txt": "nothing\n",
        "vmstat.log": "@ 1\nnuma_hit 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_of_files_is_read_like_a_paste(bundle):
    found = mixed.read(bundle)
    assert found.formats == ["numa_maps", "numastat"]
    ds = found.dataset()
    assert ds.node.values.tolist() == [0, 2]
    assert ds.node_counters.sel(node_counter="numa_hit").values.tolist() == [[[5, 7]]]
    assert ds.pages.values.tolist() == [[[[0, 3]]]]
    assert {(skip.file, skip.line) for skip in found.skipped} == {
        ("notes.txt", 0),
        ("picture.png", 0),
        ("vmstat.log", 0),
        ("proc/12/numa_maps", 2),
        ("uname.txt", 1),
    }
    assert [(place.file, place.line) for place in found["numastat"].understood] == [("sys/node0/numastat", 1)] * 2


def test_an_error_names_the_file_of_the_folder(bundle):
    (bundle / "sys/node2/numastat").write_text("numa_hit 7\nlocal_node x\nother_node 0\n")
    with pytest.raises(ValueError, match=rf"^{bundle}/sys/node2/numastat:1: node 2 lacks local_node"):
        mixed.read(bundle)


def test_a_folder_of_nothing(tmp_path):
    with pytest.raises(FormatError, match=r"holds no meta\.json.*and no file that numalab reads"):
        mixed.read(tmp_path)
    with pytest.raises(FormatError, match="give a format with a file only"):
        mixed.read(tmp_path, format="vmstat")


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n", "\r"])
def test_line_ends(end):
    (part,) = read_text(f"numa_hit 5{end}numa_miss 6{end}", "x")
    assert part.tables[0].rows == (("numa_hit", 5), ("numa_miss", 6))


@pytest.mark.parametrize("name", ["vmstat/log.txt", "numa_maps/log.txt", "tasks/log.txt", "record/guest.txt"])
def test_logs_in_mails(name):
    """Quote marks and other line ends change no value."""
    text = golden(*name.split("/"))
    want = read_text(text, "x").dataset()
    for changed in (text.replace("\n", "\r\n"), "".join(f"> {line}\n" for line in text.splitlines())):
        assert read_text(changed, "x").dataset().equals(want)


def test_no_format_is_said_in_one_line():
    """With the formats that the words speak for, and where all are listed."""
    for text, hint in (("pgfault 12\n", "; perhaps vmstat, by its words: force it with --format"), ("slow\n", "")):
        with pytest.raises(FormatError) as caught:
            read_text(text, "x")
        said = "x: looks like no format that numalab reads"
        assert str(caught.value) == f"{said}{hint}; numalab read --help lists all"


def test_what_is_no_text():
    with pytest.raises(FormatError, match=r"^x: is no text"):
        read_text("\x7fELF\x02\x01\x00\x00\x00", "x")
    with pytest.raises(ReadError, match=r"^x: is empty"):
        read_text("\0" * 100, "x")


@pytest.mark.parametrize("folder", ["/", "/proc"])
def test_live_folders_are_refused(folder):
    with pytest.raises(ReadError, match="name the files to read"):
        read(Path(folder))
