"""Reader of perf report.

perf_report/policy.txt is made by hand in perf's form. The rest was printed by perf: flat.txt a report of a slow router
(2021, public mail), cut short; ipi.txt Dave Chinner on xfs_repair (March 2015); stdio.txt perf 6.1 on a small machine,
shortened.
"""

import re

import numpy as np
import pytest

from numalab.readers import formats, perf_report
from numalab.readers._shares import read_perf_report
from numalab.readers.perf_report import Link, Symbol
from tests.readers.helpers import golden, refuses


def report(name):
    return perf_report.parse(golden("perf_report", name))


def profile(name):
    (found,) = report(name).profiles
    return found


# ------------------------------------------------------------- chains


def test_chains_of_relative_percentages():
    """The screen of perf: 97.28 % of the line's 52.69 %, then 99.59 % of that."""
    (symbol,) = report("ipi.txt").symbols
    assert (symbol.children, symbol.own, symbol.name) == (52.69, 52.69, "default_send_IPI_mask_sequence_phys")
    assert (symbol.shared_object, symbol.command, symbol.kernel) == ("[kernel]", "", True)
    through = symbol.through()
    assert through["migrate_misplaced_page"] == pytest.approx(0.9728)
    assert through["do_async_page_fault"] == pytest.approx(0.9728 * 0.9959)
    assert through["native_send_call_func_single_ipi"] == pytest.approx(0.0272)
    assert through["physflat_send_IPI_mask"] == 1
    assert symbol.share_through({"mpol_shared_policy_lookup"}) == 0
    names = {"flush_tlb_page", "migrate_misplaced_page", "native_send_call_func_single_ipi"}
    # one inside the other counts once: 97.28 + 2.72
    assert symbol.share_through(names) == pytest.approx(1)


def test_share_of_symbols_under_others():
    """52.69 % of all samples send IPIs, 97.28 % of these from migrate_misplaced_page."""
    ipi = re.compile(r"default_send_IPI|native_flush_tlb")
    assert profile("ipi.txt").share(ipi) == pytest.approx(0.5269)
    assert profile("ipi.txt").share(ipi, {"migrate_misplaced_page"}) == pytest.approx(0.5269 * 0.9728)
    assert profile("flat.txt").share(re.compile("osq_lock")) == pytest.approx(0.0824)
    assert profile("flat.txt").share(re.compile("osq_lock"), {"mutex_lock"}) is None
    assert profile("flat.txt").share(re.compile("not_there"), {"mutex_lock"}) == 0


def test_recursion_counts_once():
    chain = [Link(4, None, "a"), Link(4, None, "b"), Link(4, None, "a")]
    assert Symbol(1, 50.0, 50.0, "x", chain=chain).through() == {"a": 1, "b": 1}


def test_chains_of_absolute_percentages():
    """By hand: 92.00 of the lock's 92.40 % come from the look-up, whose own line says 93.10 % with its callees."""
    found = profile("policy.txt")
    assert found.area_share() == pytest.approx(0.931)
    assert found.waiting_share() == pytest.approx(0.92)
    assert found.spinning_share() == pytest.approx(0.924)
    ds = formats.read(golden("perf_report", "policy.txt"), "policy.txt").dataset()
    assert ds.lock_area_share.values == pytest.approx([0.931])
    assert ds.lock_waiting_share.values == pytest.approx([0.92])


def test_without_a_children_column_the_parts_are_added():
    text = """
     1.10%  gamess  [kernel.kallsyms]  [k] mpol_shared_policy_lookup
    92.40%  gamess  [kernel.kallsyms]  [k] _raw_spin_lock
            |--99.57%-- mpol_shared_policy_lookup
            |          shmem_get_policy
             --0.43%-- handle_mm_fault
"""
    (found,) = perf_report.parse(text).profiles
    assert found.waiting_share() == pytest.approx(0.924 * 0.9957)
    assert found.area_share() == pytest.approx(0.011 + 0.924 * 0.9957)


def test_without_chains_the_share_is_not_known():
    found = profile("flat.txt")
    assert len(found.symbols) == 8
    assert found.spinning_share() == pytest.approx(0.0173)
    assert found.waiting_share() is None
    assert found.area_share() is None
    reading = formats.read(golden("perf_report", "flat.txt"), "flat.txt")
    assert np.isnan(reading.dataset().lock_area_share.values).all()
    assert any("perf record -g" in found.what for found in reading.understood)


def test_no_spinning_at_all_is_zero():
    (found,) = perf_report.parse("    60.00%  a  [kernel]  [k] clear_page\n").profiles
    assert (found.area_share(), found.waiting_share()) == (0, 0)


# ------------------------------------------------------------- what stands around


def test_stdio_with_header():
    """Real output: 43.04 % with callees, none of its own, 41.48 of them through one caller, 26.56 below that."""
    found = report("stdio.txt")
    (only,) = found.profiles
    assert (only.event, only.samples, only.count, only.lost) == ("cpu-clock:ppp", 704, 176000000, 0)
    assert found.facts["os release"] == "6.18.0"
    assert found.facts["nrcpus online"] == "2"
    first = only.symbols[0]
    assert (first.children, first.own, first.name, first.command) == (43.04, 0.0, "0x00007f2dc5456240", "python")
    assert (first.shared_object, first.kernel) == ("[unknown]", False)
    assert first.through()["0x7f2dc4d329c0"] == pytest.approx(41.48 / 43.04)
    assert first.through()["_PyEval_EvalFrameDefault"] == pytest.approx(26.56 / 43.04)
    largest = max(only.symbols, key=lambda symbol: symbol.own)
    assert (largest.name, largest.own, largest.shared_object) == (
        "_PyEval_EvalFrameDefault",
        27.98,
        "libpython3.11.so.1.0",
    )
    assert found.skipped == []


def test_two_events_are_two_profiles():
    text = "# Samples: 12K of event 'cycles'\n 60.00%  a  [kernel]  [k] clear_page\n"
    text += "# Samples: 3  of event 'faults'\n 70.00%  b  b  [.] main\n"
    found = perf_report.parse(text)
    assert [(p.event, p.samples, [s.name for s in p.symbols]) for p in found.profiles] == [
        ("cycles", 12000, ["clear_page"]),
        ("faults", 3, ["main"]),
    ]
    ds = read_perf_report(text, "x").dataset()
    assert ds.event.values.tolist() == ["cycles", "faults"]


def test_names_of_other_languages():
    text = "  5.00%  db  db  [.] std::vector<int, std::allocator<int> >::push_back(int const&)\n"
    text += "            |--3.00%--foo(int, char) const (inlined)\n            |          main+0x1f\n"
    (symbol,) = perf_report.parse(text).symbols
    assert symbol.name == "std::vector<int, std::allocator<int> >::push_back(int const&)"
    assert [link.name for link in symbol.chain] == ["foo(int, char) const", "main"]


def test_tables():
    reading = read_perf_report(golden("perf_report", "ipi.txt"), "ipi.txt")
    assert reading.table("symbols").get("default_send_IPI_mask_sequence_phys", "self") == 52.69
    rows = {through: share for _, through, share in reading.table("chains").rows}
    assert rows["migrate_misplaced_page"] == pytest.approx(52.69 * 0.9728, abs=1e-3)


def test_a_quoted_mail_reads_the_same():
    for name in ("ipi.txt", "policy.txt", "flat.txt"):
        text = golden("perf_report", name)
        quoted = "".join(f"> {line}\r\n" for line in text.splitlines())
        assert perf_report.looks_like(quoted)
        found, expected = perf_report.parse(quoted).symbols, report(name).symbols
        assert [(s.name, s.own, s.through()) for s in found] == [(s.name, s.own, s.through()) for s in expected]


def test_other_text_is_named():
    found = perf_report.parse("Hi all,\n" + golden("perf_report", "flat.txt") + "This is bad. I think\n")
    assert [(skip.line, skip.text) for skip in found.skipped] == [(1, "Hi all,"), (10, "This is bad. I think")]


def test_what_is_wrong():
    refuses(perf_report.parse, "nothing\n", 0, "no symbol of perf report")


def test_other_lines_behind_a_hash_are_named():
    found = perf_report.parse("# My analysis: it is slow\n#\n# ........  ....\n" + golden("perf_report", "stdio.txt"))
    assert [(skip.line, skip.text) for skip in found.skipped] == [(1, "# My analysis: it is slow")]


def test_an_event_without_symbols_is_said():
    found = perf_report.parse("# Samples: 0  of event 'faults'\n#\n" + golden("perf_report", "policy.txt"))
    assert [(skip.line, skip.text) for skip in found.skipped] == [(1, "faults")]
    assert [p.event for p in found.profiles] == ["cycles"]
