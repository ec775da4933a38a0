"""Every format is recognised by its text, and only one's."""

import pytest

from numalab.readers import formats, mixed
from tests.readers.helpers import GOLDEN, golden


def _case(number):
    (path,) = GOLDEN.glob(f"cases/{number}-*/input.txt")
    return str(path.relative_to(GOLDEN))


#: Format -> texts that hold it alone.
TEXTS = {
    "lkp": [f"lkp/{name}.txt" for name in ("018", "020", "051", "054", "086", "2013", "three", "flat")],
    "mmtests": [
        f"mmtests/{name}.txt" for name in ("039", "042", "044", "046", "2012", "2015", "five", "ftrace", "uma")
    ],
    "vmstat": ["vmstat/log.txt", "vmstat/paste.txt", _case("006"), _case("026"), _case("088")],
    "numastat": ["numastat/log.txt", _case("060")],
    "numastat-p": [_case("027"), _case("030")],
    "numastat-m": [_case("033")],
    "numactl": [_case("002"), _case("075"), _case("076"), _case("085")],
    "tasks": ["tasks/log.txt"],
    "numa_maps": ["numa_maps/log.txt", "numa_maps/hugetlb.txt", "numa_maps/weighted.txt"],
    "memcg": [_case("022"), _case("083")],
    "mpstat": [_case("079")],
    "sched": ["sched/log.txt", "sched/new.txt", "sched/old.txt"],
    "ftrace": ["ftrace/trace.txt", "ftrace/others.txt"],
    "perf-script": ["perf_script/chains.txt"],
    "zoneinfo": ["zoneinfo/zoneinfo.txt"],
    "perf-lock": ["perf_lock/contention.txt", "perf_lock/stack.txt", "perf_lock/report.txt"],
    "perf-report": [f"perf_report/{name}.txt" for name in ("ipi", "policy", "flat", "stdio")],
    "perf-bench-numa": ["023/input.txt", "048/input.txt"],
    "perf-stat": [
        f"perf_stat/{n}.txt" for n in ("continental", "interval", "mail", "node", "plain", "repeat", "table")
    ],
    "latency-histogram": [f"latency/{path.name}" for path in sorted((GOLDEN / "latency").iterdir())],
    "numamove": ["numamove/bcc.txt", "numamove/numasched.txt", _case("055")],
    "autonuma-benchmark": [_case("024")],
    "record": ["record/guest.txt"],
}
#: Texts of several formats.
MIXED = {
    "mmtests/047.txt": ["skip-reasons", "mmtests"],
    "numa_maps/paste.txt": ["numastat-p", "numastat-m", "numa_maps"],
    "numastat/grep.txt": ["numactl", "numastat"],
    _case("025"): ["meminfo", "numastat", "numactl"],
}
CASES = [(name, file) for name, files in TEXTS.items() for file in files]
#: Read by tests of their own (test_mixed.py).
ELSEWHERE = {"memcg-stat"}


def test_every_format_has_a_golden_case():
    assert {*TEXTS, *ELSEWHERE, *(name for names in MIXED.values() for name in names)} == set(formats.FORMATS)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_texts_are_recognised(name, file):
    text = golden(*file.split("/"))
    assert formats.FORMATS[name].sniff(text)
    found = mixed.read_text(text, file)
    assert found.formats == [name]
    assert found[0].lines == len(text.splitlines())
    assert found[0].understood
    for ds in found.datasets().values():
        assert ds.attrs["source"] == "measured"


@pytest.mark.parametrize("file", MIXED)
def test_texts_of_several_formats_are_recognised(file):
    assert mixed.read_text(golden(*file.split("/")), file).formats == MIXED[file]


@pytest.mark.parametrize(("name", "file"), CASES)
def test_nothing_is_lost_in_silence(name, file):
    """Text that belongs to no format is named, wherever in a paste it stands."""
    text = golden(*file.split("/"))
    if name == "tasks" or text.startswith("@ "):
        return  # logs that programs wrote take nothing else
    found = mixed.read_text(text + "what is this?\n", file)
    assert len(text.splitlines()) + 1 in [skip.line for skip in found.skipped]


def test_goldens_are_all_used():
    used = {GOLDEN / file for file in [*(file for _, file in CASES), *MIXED]}
    kinds = {path.parent for path in used} - {GOLDEN / "023", GOLDEN / "048"}
    kinds = {kind for kind in kinds if kind.parent == GOLDEN}
    assert {path for kind in kinds for path in kind.iterdir()} <= used
