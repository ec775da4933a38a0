"""Pastes as people mangle them: no crash, no hang, no line lost in silence, and work in proportion to length."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab.readers import mixed
from tests.readers.helpers import GOLDEN
from tests.readers.promises import attempt, check_strange_line

NAMES = sorted(path.parent.name for path in GOLDEN.glob("cases/*/expected.json"))
TEXTS = {path.parent.name: path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("cases/*/input.txt"))}

cases = st.sampled_from(sorted(TEXTS))


@st.composite
def mangled(draw):
    """Cut, swap, repeat, drop and alter lines of one or two cases."""
    text = TEXTS[draw(cases)]
    if draw(st.booleans()):
        text += draw(st.sampled_from(["", "\n", "\nand\n"])) + TEXTS[draw(cases)]
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at, to = sorted((draw(st.integers(0, len(lines))), draw(st.integers(0, len(lines)))))
        kind = draw(st.sampled_from(("cut", "swap", "repeat", "drop", "alter", "insert", "join")))
        if kind == "cut":
            lines = lines[at:to] or lines
        elif kind == "swap":
            lines[at:to] = reversed(lines[at:to])
        elif kind == "repeat":
            lines[to:to] = lines[at : min(to, at + 40)]
        elif kind == "drop":
            del lines[at : at + 1]
        elif kind == "join":
            lines[at : at + 2] = [" ".join(lines[at : at + 2])]
        elif kind == "insert":
            lines.insert(at, draw(st.text(max_size=40)))
        elif lines:
            i = min(at, len(lines) - 1)
            where = draw(st.integers(0, len(lines[i])))
            lines[i] = (
                lines[i][:where] + draw(st.sampled_from(("", "9" * 30, "x", "-", "±", "\x00", "  "))) + lines[i][to:]
            )
    return "\n".join(lines)


@given(
    mangled(),
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from(("utf-8", "latin-1")),
    st.sampled_from(("", "> ", "| ", "JD> ")),
)
@settings(max_examples=300, deadline=None)
def test_no_crash(text, end, encoding, quote):
    text = "\n".join(quote + line for line in text.split("\n"))
    attempt(text.replace("\n", end).encode(encoding, errors="replace"))


@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
@settings(max_examples=150, deadline=None)
def test_what_is_no_text_of_a_tool(data):
    attempt(data)


@given(st.sampled_from(NAMES), st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_a_strange_line_is_named(name, where):
    lines = TEXTS[name].split("\n")
    check_strange_line(lines, where % len(lines))


def cells(found):
    return [(part.format, table.name, table.columns, table.rows) for part in found for table in part.tables]


@pytest.mark.parametrize("name", NAMES)
def test_forms_of_one_text_read_alike(name):
    text = TEXTS[name]
    want = cells(mixed.read_text(text, "x"))
    forms = {
        "quoted": "".join(f"> {line}\n" for line in text.splitlines()),
        "quoted twice": "".join(f">> {line}\n" for line in text.splitlines()),
        "quoted with initials": "".join(f"JD> {line}\n" for line in text.splitlines()),
        "quoted with bars": "".join(f"| {line}".rstrip() + "\n" for line in text.splitlines()),
        "quoted by three": "".join(f"> | AB>> {line}\n" for line in text.splitlines()),
        "line ends": text.replace("\n", "\r\n"),
        "indented": "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines()),
        "fenced": f"```console\n{text}\n```\n",
        "numbered": "".join(f"{i:6}\t{line}\n" for i, line in enumerate(text.splitlines(), 1)),
        "coloured": text.replace("numa", "\x1b[01;31m\x1b[Knuma\x1b[m\x1b[K"),
        "byte mark": "\ufeff" + text,
        "other blanks": text.replace("  ", "\u00a0 "),
    }
    if name.startswith("025"):
        del forms["indented"]  # the frame of an archive is not indented
    if text.count("\n") == 1:
        del forms["quoted with bars"]  # one line with a bar is no quote
    for form, changed in forms.items():
        assert cells(mixed.read_text(mixed.decode(changed.encode()), "x")) == want, form


@pytest.mark.parametrize("name", NAMES)
def test_quoted_printable_reads_alike(name):
    """With "=" as =3D and lines broken at 76 characters, as mails travel."""
    text = TEXTS[name].replace("=", "=3D")
    broken = "\n".join(_broken(line) for line in text.split("\n"))
    want = cells(mixed.read_text(TEXTS[name], "x"))
    got = cells(mixed.read_text(broken if "=3D" in broken else broken + "=20\n", "x"))
    assert got == want


def _broken(line):
    parts = []
    while len(line) > 75:
        cut = 75
        while line[cut - 1] == "=" or line[cut - 2] == "=":  # not within =3D
            cut -= 1
        parts.append(line[:cut] + "=")
        line = line[cut:]
    return "\n".join([*parts, line])


def calls(text):
    """Count calls of functions, built-in ones included, while a text is read: work that no other program disturbs."""
    count = 0

    def see(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        mixed.read_text(text, "x")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name[:3] in ("001", "005", "025", "035", "060", "068", "083")]
)
def test_work_grows_as_the_text_does(name):
    """Twice as many copies of a text may cost little more than twice as much."""
    text = TEXTS[name] + "\n"
    if name.startswith("068"):
        text = "$ numactl -H\n" + TEXTS["076-kvm-power-2node-ranges"]  # files of a node come once
    once, twice = calls(text * 40), calls(text * 80)
    assert twice < 2.3 * once


@pytest.mark.parametrize("bit", ["9", " ", "a", "/", "=", "N0=1 ", "node0 ", "9 ", "-", "a:", "[", "1.1% ", "> ", "x,"])
def test_endless_lines_do_not_hang(bit):
    """Patterns that try again at each character would take minutes here."""
    line = bit * (60_000 // len(bit))
    text = f"numa_hit {line}x\n{line}x y\n{line}\nnode 0 cpus: {line}\n7f0000000000 default {line}\nanon {line}\n"
    attempt((text + "numa_hit 5\nnuma_hint_faults 2\n").encode())
