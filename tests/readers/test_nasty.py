"""Pastes as people send them at their worst: what is read of each, and what is said of the rest."""

import pytest

from numalab.readers import mixed
from numalab.readers.formats import FormatError
from tests.readers.helpers import golden
from tests.readers.promises import attempt

COUNTERS = "numa_hit 100\nnuma_miss 2\nnuma_hint_faults 2048\nnuma_hint_faults_local 512\n"
ROWS = (("numa_hit", 100), ("numa_miss", 2), ("numa_hint_faults", 2048), ("numa_hint_faults_local", 512))
TWO_NODES = golden("cases", "076-kvm-power-2node-ranges", "input.txt")
OTHER_NODES = golden("cases", "002-power9-memoryless-node0-numactl", "input.txt")
NUMASTAT = golden("cases", "060-numastat-plain-4node-clean", "input.txt")


@pytest.mark.parametrize(
    "data",
    [
        ("\ufeff" + COUNTERS).encode("utf-16-le"),
        ("\ufeff" + COUNTERS).encode("utf-16-be"),
        COUNTERS.encode("utf-16-le"),
        ("\ufeff" + COUNTERS).encode("utf-32-le"),
        COUNTERS.replace("\n", "\r").encode(),
        COUNTERS.replace("\n", "\r\r\n").encode(),
        COUNTERS.replace("\n", "\u2028").encode(),
        COUNTERS.replace("\n", "\n\0\n").encode(),
        COUNTERS.replace("100", "1\x0000").encode(),
        COUNTERS.replace("\n", "\x0b\n\x0c").encode(),
        COUNTERS.replace("numa_hit", "\u202enuma_hit").encode(),
        COUNTERS.replace(" ", "\t").encode(),
        COUNTERS.replace(" ", ": ").encode(),
        COUNTERS.replace("100", "１００").encode(),
        ("x" * 300_000 + "\n" + COUNTERS).encode(),
        ("<pre>\n" + COUNTERS + "</pre>\n").encode(),
        ("Every 2.0s: grep numa /proc/vmstat      host: Tue Dec  1 12:00:00 2026\n\n" + COUNTERS).encode(),
        "".join(f"| {line} |\n" for line in ["counter | value", "---|---", *COUNTERS.splitlines()])
        .replace("numa_hit ", "numa_hit | ")
        .encode(),
    ],
)
def test_same_counters(data):
    found = attempt(data)
    assert found.formats == ["vmstat"]
    assert found["vmstat"].tables[0].rows == ROWS


@pytest.mark.parametrize(
    "text",
    [
        COUNTERS.replace(" ", ","),
        COUNTERS.replace(" ", "\n"),
        COUNTERS.replace("\n", "<br>\n"),
        '{"numa_hit": 100, "numa_hint_faults": 2048}\n',
        "".join(f"[   12.0000{i}] {line}\n" for i, line in enumerate(COUNTERS.splitlines())),
        "".join(f"-{line}\n+{line}0\n" for line in COUNTERS.splitlines()),
        COUNTERS.upper(),
    ],
)
def test_what_is_not_read_is_named(text):
    with pytest.raises(FormatError, match=r"^x: looks like no format that numalab reads; perhaps vmstat, by its words"):
        mixed.read_text(text, "x")


def test_half_a_numastat():
    """Cut between lines there is less; cut within one it is refused."""
    lines = NUMASTAT.split("\n")
    (table,) = attempt("\n".join(lines[:4]).encode()).tables
    assert [row[0] for row in table.rows] == ["numa_hit", "numa_miss", "numa_foreign"]
    cut = "\n".join([*lines[:3], lines[3][: len(lines[3]) // 2]])
    with pytest.raises(ValueError, match=r"^x:4: expected 4 numbers, one for each node, got"):
        mixed.read_text(cut, "x")


def test_two_machines_in_one_paste():
    found = attempt((TWO_NODES + OTHER_NODES).encode())
    assert found.formats == ["numactl"]
    nodes = [[row[0] for row in table.rows] for table in found.tables if table.name.startswith("nodes")]
    assert nodes == [[0, 1], [0, 2]]
    snapshots = attempt(f"host a:\n{COUNTERS}\nhost b:\n{COUNTERS.replace('100', '7')}".encode())
    assert snapshots.tables[0].columns == ("counter", "host a", "host b")
    assert snapshots.tables[0].rows[0] == ("numa_hit", 100, 7)


def test_lines_of_two_tools_by_turns():
    others = TWO_NODES.splitlines()
    text = "".join(f"{one}\n{two}\n" for one, two in zip(COUNTERS.splitlines(), others, strict=False))
    found = attempt(text.encode())
    assert found["vmstat"].tables[0].rows == ROWS
    # of the second node no line came
    assert [(row[0], row[3]) for row in found["numactl"].tables[0].rows] == [(0, 261659), (1, None)]
    assert found.skipped == ()
