"""Pastes as people mangle them: no crash, no hang, no line lost in silence, and work in proportion to length."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalab.commands.read import to_dict
from numalab.readers import mixed
from tests.readers.helpers import GOLDEN

NAMES = sorted(path.parent.name for path in GOLDEN.glob("cases/*/expected.json"))
TEXTS = {path.parent.name: path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("cases/*/input.txt"))}
#: A line no tool prints.
STRANGE = "zqx what is this"

cases = st.sampled_from(sorted(TEXTS))


def own_error(error):
    """Whether an error is one of numalab's: one line that begins with the source."""
    return type(error).__module__.startswith("numalab.") and str(error).startswith("x:") and "\n" not in str(error)


def outcome(call):
    """Return what a call returns and None, or None and the error it raises."""
    try:
        return call(), None
    except ValueError as error:
        return None, error


def attempt(data):
    """Read bytes in every respect; None if they are refused as they should be."""
    text = mixed.decode(data)
    found, refusal = outcome(lambda: mixed.read_text(text, "x"))
    if found is None:
        assert own_error(refusal), repr(refusal)
        return None
    for make in (found.datasets, found.dataset):
        _, refusal = outcome(make)
        assert refusal is None or own_error(refusal), repr(refusal)
    json.dumps(to_dict(found, None), allow_nan=False)
    lines = text.split("\n")
    for skip in found.skipped:
        assert 1 <= skip.line <= len(lines)
    for part in found:
        for place in (*part.understood, *part.guessed):
            assert 0 <= place.line <= len(lines)
    return found


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


@given(mangled(), st.sampled_from(("\n", "\r\n")), st.sampled_from(("utf-8", "latin-1")), st.sampled_from(("", "> ")))
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
    """Wherever it stands: skipped, or the title of what is below it and so in the report or a table."""
    lines = TEXTS[name].split("\n")
    at = where % len(lines)
    lines.insert(at, STRANGE)
    found = attempt("\n".join(lines).encode())
    if found is None:
        return
    titles = [place.what for part in found for place in part.understood]
    titles += [head for table in found.tables for head in (table.name, *table.columns, *(row[0] for row in table.rows))]
    assert at + 1 in {skip.line for skip in found.skipped} or any(STRANGE in str(title) for title in titles)


def cells(found):
    return [(part.format, table.name, table.columns, table.rows) for part in found for table in part.tables]


@pytest.mark.parametrize("name", NAMES)
def test_forms_of_one_text_read_alike(name):
    text = TEXTS[name]
    want = cells(mixed.read_text(text, "x"))
    forms = {
        "quoted": "".join(f"> {line}\n" for line in text.splitlines()),
        "quoted twice": "".join(f">> {line}\n" for line in text.splitlines()),
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
