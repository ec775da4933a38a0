"""Every format is recognised by its text, and only one's."""

import pytest

from numalab.readers import formats
from tests.readers.helpers import GOLDEN, golden

TEXTS = {
    "lkp": [f"lkp/{name}.txt" for name in ("018", "020", "051", "054", "086", "three", "flat")],
    "mmtests": [f"mmtests/{name}.txt" for name in ("039", "042", "044", "046", "047", "five")],
    "vmstat": ["vmstat/log.txt", "vmstat/paste.txt"],
    "numastat": ["numastat/log.txt", "numastat/grep.txt"],
    "tasks": ["tasks/log.txt"],
    "numa_maps": ["numa_maps/log.txt", "numa_maps/paste.txt", "numa_maps/hugetlb.txt", "numa_maps/weighted.txt"],
    "sched": ["sched/log.txt", "sched/new.txt", "sched/old.txt"],
    "ftrace": ["ftrace/trace.txt", "ftrace/others.txt"],
    "zoneinfo": ["zoneinfo/zoneinfo.txt"],
    "perf-lock": ["perf_lock/contention.txt", "perf_lock/stack.txt", "perf_lock/report.txt"],
    "perf-report": ["perf_report/ipi.txt", "perf_report/policy.txt", "perf_report/flat.txt"],
    "perf-bench-numa": ["023/input.txt", "048/input.txt"],
}
CASES = [(name, file) for name, files in TEXTS.items() for file in files]


def test_every_format_has_a_golden_case():
    assert set(TEXTS) == set(formats.FORMATS)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_texts_are_recognised(name, file):
    text = golden(*file.split("/"))
    fits = [known.name for known in formats.FORMATS.values() if known.sniff(text)]
    # zoneinfo and numastat hold lines of /proc/vmstat; the first that fits is taken
    assert fits[0] == name
    assert set(fits) <= {name, "vmstat"}
    reading = formats.read(text, file)
    assert reading.format == name
    assert reading.lines == len(text.splitlines())
    assert reading.dataset().attrs["source"] == "measured"
    assert reading.understood


@pytest.mark.parametrize(("name", "file"), CASES)
def test_nothing_is_lost_in_silence(name, file):
    """Text that belongs to no format is named, wherever in a paste it stands."""
    text = golden(*file.split("/"))
    if name == "tasks" or text.startswith("@ "):
        return  # logs that programs wrote take nothing else
    reading = formats.read(text + "what is this?\n", file)
    assert len(text.splitlines()) + 1 in [skip.line for skip in reading.skipped]


def test_goldens_are_all_used():
    used = {GOLDEN / file for _, file in CASES}
    kinds = {path.parent for path in used} - {GOLDEN / "023", GOLDEN / "048"}
    assert {path for kind in kinds for path in kind.iterdir()} <= used
