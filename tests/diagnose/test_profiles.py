"""Illnesses that profiles and latencies show, each at its threshold and just below."""

import numpy as np
import pytest

from numalab import runs
from numalab.diagnose import diagnose
from numalab.readers.mixed import read
from tests.diagnose.samples import alarms, balancing, found, numbers
from tests.readers.helpers import GOLDEN, golden

IPI = golden("cases", "008-xfs-repair-perf-report-ipi", "input.txt")
POLICY = golden("perf_report", "policy.txt")


def test_shootdown():
    def text(share):
        return IPI.replace("52.69%", f"{share}%")

    (one,) = found(text("20.00")).illnesses
    assert one.id == "tlb-shootdown-bound"
    assert numbers(one)["self time of default_send_IPI_mask_sequence_phys"] == 20
    assert alarms(text("19.99")) == []


def test_shootdown_of_other_causes():
    # the chain leads to unmapping by the program, not to migration
    text = IPI
    for word in ("migrate_misplaced_page", "try_to_unmap_one", "try_to_unmap", "migrate_pages", "change_prot_numa"):
        text = text.replace(word, "unmap_region")
    assert alarms(text) == []


def perf_stat(unmaps, seconds="10.000000000"):
    return (
        " Performance counter stats for 'system wide':\n\n"
        f"{unmaps:>18,}      kvm:kvm_unmap_hva_range\n\n      {seconds} seconds time elapsed\n"
    )


def test_unmapping_guests():
    (one,) = found(perf_stat(10_000)).illnesses
    assert (one.id, one.confidence) == ("tlb-shootdown-bound", "low")
    assert numbers(one)["kvm:kvm_unmap_hva_range per second"] == 1000
    (one,) = found(perf_stat(10_000), balancing(5000, 4000, 100)).illnesses
    assert one.confidence == "medium"
    assert alarms(perf_stat(9999)) == []


def latency(buckets, mean):
    """A histogram of funclatency -m: calls below 2 ms, below 4, below 8, below 16."""
    head = 'Tracing 1 functions for "task_numa_work"... Hit Ctrl-C to end.\n^C\n'
    head += "     msecs               : count     distribution\n"
    edges = (("0", "1"), ("2", "3"), ("4", "7"), ("8", "15"))
    rows = "".join(
        f"{low:>10} -> {high:<10} : {count:<8} |{'*' * (count > 0):<40}|\n"
        for (low, high), count in zip(edges, buckets, strict=True)
    )
    total = sum(buckets)
    return f"{head}{rows}\navg = {mean} msecs, total: {mean * total} msecs, count: {total}\n"


def test_scan_latency():
    (one,) = found(latency([95, 0, 0, 5], 0)).illnesses
    assert one.id == "scan-latency"
    assert numbers(one)["share of calls of 8 ms and more"] == 0.05
    assert alarms(latency([96, 0, 0, 4], 0)) == []
    assert alarms(latency([100, 0, 0, 0], 1)) == ["scan-latency"]
    assert alarms(latency([0, 0, 0, 19], 9)) == []  # too few calls to tell


def test_scan_latency_of_a_real_machine():
    # deepseek-ai/DeepEP 624: 5 ms on average
    (one,) = diagnose(read(GOLDEN / "latency" / "task_numa_work.txt")).illnesses
    assert numbers(one)["mean length of a call"] == 0.005


def test_other_functions_are_no_scans():
    assert alarms(latency([0, 0, 0, 100], 9).replace("task_numa_work", "vfs_read")) == []


def test_policy_lock():
    def text(share):
        return POLICY.replace("92.40%", share).replace("92.00%", share)

    assert alarms(POLICY) == ["policy-lock-contention"]
    assert alarms(text("5.00%")) == ["policy-lock-contention"]
    assert alarms(text("4.99%")) == []


def ranks(*points):
    numbers_, shares = zip(*points, strict=True)
    return runs.build(
        {"lock_area_share": np.array(shares)},
        {"ranks": ("run", list(numbers_))},
        title="ranks",
        source="measured",
        params={},
    )


def test_policy_lock_that_grows():
    # the mail's: 1 % at 128, 13 % at 512: a power of log 13 / log 4 = 1.85
    (one,) = diagnose(ranks((128, 0.01), (512, 0.13))).illnesses
    assert (one.id, one.confidence) == ("policy-lock-contention", "medium")
    power = numbers(one)["power of the number of tasks with which the share grows"]
    assert power == pytest.approx(1.850, abs=5e-4)
    # fourfold ranks, 4 ^ 1.5 = 8 times the share
    assert diagnose(ranks((128, 0.01), (512, 0.0801))).illnesses
    assert not diagnose(ranks((128, 0.01), (512, 0.0799))).illnesses
    assert not diagnose(ranks((128, 0.005), (512, 0.0499))).illnesses  # tenfold, but below 5 %
