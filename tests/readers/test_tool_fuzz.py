"""Readers of tools' output against mangled text: their own clear error or a report of all that was left out.

Texts are the golden ones, with lines cut, swapped, repeated, quoted, joined and strewn with other bytes.
"""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numalab.readers import (
    autonuma_log,
    funclatency,
    lkp,
    mmtests,
    numamove,
    perf_lock,
    perf_report,
    perf_script,
    perf_stat,
    skip_reasons,
    tables,
)
from numalab.readers._moved import read_numamove
from numalab.readers._shares import read_perf_report
from numalab.readers._text import ReadError
from tests.readers.helpers import GOLDEN, golden

PARSERS = {
    "perf_stat": perf_stat.parse,
    "perf_report": perf_report.parse,
    "perf_lock": perf_lock.parse_lock,
    "perf_script": perf_script.parse,
    "autonuma_log": autonuma_log.parse,
    "numamove": numamove.parse,
    "funclatency": funclatency.parse,
    "skip_reasons": skip_reasons.parse,
    "lkp": lkp.parse,
    "mmtests": mmtests.parse,
}
READERS = {
    module.__name__.rpartition(".")[2]: module.read
    for module in (perf_stat, perf_script, autonuma_log, funclatency, skip_reasons)
} | {
    "perf_report": read_perf_report,
    "numamove": read_numamove,
    "lkp": tables.read_lkp,
    "mmtests": tables.read_mmtests,
}


def texts(folder):
    return [golden(folder, path.name) for path in sorted((GOLDEN / folder).iterdir())]


def cases(*numbers):
    found = {path.name[:3]: path for path in (GOLDEN / "cases").iterdir()}
    return [(found[number] / "input.txt").read_text(encoding="utf-8") for number in numbers]


SEEDS = {
    "perf_stat": texts("perf_stat") + cases("011"),
    "perf_report": texts("perf_report"),
    "perf_lock": texts("perf_lock"),
    "perf_script": texts("perf_script"),
    "autonuma_log": [text[:2000] for text in cases("024")],
    "numamove": texts("numamove") + cases("055"),
    "funclatency": texts("latency"),
    "skip_reasons": cases("047"),
    "lkp": texts("lkp"),
    "mmtests": texts("mmtests"),
}
STRANGE = [
    "\x00",
    "\t",
    "±",
    "\ufffd",
    "=C2=B1",
    "1" * 5000,
    "-> ",
    "%",
    "(((",
    "| " * 50,
    "> > ",
    "\u202f",
    "0x",
    "\r",
]

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["cut", "drop", "swap", "again", "quote", "join", "insert", "crlf"]), *[st.integers(0, 999)] * 2
    ),
    max_size=6,
)


def changed(text, changes):
    lines = text.split("\n")
    for what, a, b in changes:
        i, j = a % len(lines), b % len(lines)
        if what == "cut":
            lines[i] = lines[i][: b % (len(lines[i]) + 1)]
        elif what == "drop" and len(lines) > 1:
            del lines[i]
        elif what == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        elif what == "again":
            lines[j:j] = lines[i : i + 5]
        elif what == "quote":
            lines = [f"> {line}" for line in lines]
        elif what == "join" and i + 1 < len(lines):
            lines[i : i + 2] = [f"{lines[i]} {lines[i + 1]}"]
        elif what == "insert":
            at = b % (len(lines[i]) + 1)
            lines[i] = lines[i][:at] + STRANGE[a % len(STRANGE)] + lines[i][at:]
        elif what == "crlf":
            lines = [f"{line}\r" for line in lines]
    return "\n".join(lines)


def attempt(call, text):
    """Return what the call gives and "", or None and its own clear error; any other error is a failure."""
    try:
        return call(text, "x.txt"), ""
    except ReadError as error:
        return None, str(error)


SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", PARSERS)
@SETTINGS
@given(data=st.data())
def test_mangled_text_is_read_or_refused(name, data):
    text = changed(data.draw(st.sampled_from(SEEDS[name])), data.draw(CHANGES))
    report, refused = attempt(PARSERS[name], text)
    if report is None:
        assert refused.startswith("x.txt:")
        assert "\n" not in refused
        return
    for skip in report.skipped:
        assert 1 <= skip.line <= text.count("\n") + 1


@pytest.mark.parametrize("name", READERS)
@SETTINGS
@given(data=st.data())
def test_what_was_read_can_be_shown(name, data):
    """Tables and datasets can be made of whatever was read."""
    text = changed(data.draw(st.sampled_from(SEEDS[name])), data.draw(CHANGES))
    reading, _ = attempt(READERS[name], text)
    if reading is None:
        return
    said = reading.to_dict()
    assert said["understood"]
    for table in reading.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    ds, refused = attempt(lambda *_: reading.dataset(), text)
    assert ds.attrs["source"] == "measured" if ds is not None else "\n" not in refused


#: Where a whole line of other text stands, whichever reader: it must be named.
FOREIGN = "the quick brown fox; it jumps!"


@pytest.mark.parametrize("name", PARSERS)
@SETTINGS
@given(data=st.data())
def test_other_text_is_never_lost(name, data):
    lines = data.draw(st.sampled_from(SEEDS[name])).split("\n")
    at = data.draw(st.integers(0, len(lines)))
    report = PARSERS[name]("\n".join([*lines[:at], FOREIGN, *lines[at:]]))
    assert at + 1 in [skip.line for skip in report.skipped] or FOREIGN in names(report)


def names(report):
    """Return what a reader takes lines of other text for: names of runs and groups, lines of "commit:"."""
    found = [name for run in getattr(report, "runs", []) for name in (run.label, run.section)]
    found += [group.title for group in getattr(report, "groups", [])]
    return [*found, *(title for table in getattr(report, "tables", []) for title in getattr(table, "titles", ()))]


@pytest.mark.parametrize("name", PARSERS)
def test_time_grows_with_the_text_only(name):
    """Eight times the text takes about eight times as long; thirty would be a square."""

    def seconds(times):
        text = "".join(seed.rstrip("\n") + "\n" for seed in SEEDS[name][:1]) * times
        begin = time.process_time()
        report, _ = attempt(PARSERS[name], text)
        # time goes back where logs are put behind one another
        assert report is not None or name == "numamove"
        return time.process_time() - begin

    seconds(5)
    small = min(seconds(20) for _ in range(3))
    large = min(seconds(160) for _ in range(2))
    assert large < 30 * small + 0.05


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("piece", ["1 ", "a", "1", ",", " - ", "|--", "( +- ", "x=1 ", "1.0% ", "0 -> ", "1,234 "])
def test_one_endless_line_takes_no_endless_time(name, piece):
    begin = time.perf_counter()
    for seed in ("", SEEDS[name][0] + "\n"):
        attempt(PARSERS[name], seed + piece * 4000 + "\n" + seed)
    assert time.perf_counter() - begin < 5
