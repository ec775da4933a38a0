"""Illnesses over time, each at its threshold and just below."""

import pytest

from tests.diagnose.samples import alarms, found, log, mmtests, numbers


def numamove(rates):
    head = "TIME       NUMA_migrations NUMA_migrations_ms\n"
    return head + "".join(f"22:48:{i:02d} {rate:>15} {1:>18}\n" for i, rate in enumerate(rates))


def test_storm():
    (one,) = found(numamove([20_001] * 11)).illnesses
    assert (one.id, one.confidence) == ("page-ping-pong", "medium")
    assert numbers(one)["mean rate"] == 20_001


@pytest.mark.parametrize(
    "rates",
    [
        [19_999] * 11,
        [20_001] * 9,
        # falls by a tenth of its mean from the first to the last sample: it decays
        [21_000 - 210 * i for i in range(12)],
        # up and down by an eighth
        [25_000 + 3125 * (-1) ** i for i in range(12)],
    ],
)
def test_no_storm_below(rates):
    assert alarms(numamove(rates)) == []


def counters(faults, local, moved, pte):
    """A log with these growths, a sample every 10 s."""
    names = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    totals, samples = [0, 0, 0, 0], [(0, dict.fromkeys(names, 0))]
    for i, step in enumerate(zip(pte, faults, local, moved, strict=True), 1):
        totals = [a + b for a, b in zip(totals, step, strict=True)]
        samples.append((10 * i, dict(zip(names, totals, strict=True))))
    return log(samples)


def refused(moved=50, last=750, intervals=6, local=None):
    """500 of 1000 faults remote in each interval, few of which move a page; scans slow down to the last."""
    # shares rise by 3 points an interval, so nothing stands still
    local = local or [500 - 30 * i for i in range(intervals)]
    pte = [1000] * (intervals // 3) + [1000] * (intervals - 2 * (intervals // 3)) + [last] * (intervals // 3)
    return counters([1000] * intervals, local, [moved] * intervals, pte)


def test_refused_migrations():
    (one,) = found(refused()).illnesses
    assert (one.id, one.confidence) == ("retried-migrations", "high")
    assert numbers(one)["least remote faults per page moved, of any interval"] == 10
    assert alarms(refused(moved=51)) == []
    assert alarms(refused(last=749)) == []  # 25.1 % slower: the kernel has noticed
    assert alarms(refused(intervals=4)) == []


def standing(shares, faults=1000):
    local = [round(share * faults) for share in shares]
    return counters([faults] * len(shares), local, [faults // 4] * len(shares), [faults] * len(shares))


def test_share_stands_still():
    (one,) = found(standing([0.88, 0.90, 0.88, 0.90, 0.88, 0.90])).illnesses
    assert (one.id, one.confidence) == ("no-convergence", "low")
    assert numbers(one)["local share of the last 60 s"] == pytest.approx(0.89)


@pytest.mark.parametrize(
    "text",
    [
        standing([0.9] * 6),  # that is convergence
        standing([0.50, 0.50, 0.50, 0.50, 0.50, 0.53]),  # 0.505 on the whole, the last 0.025 above
        standing([0.5] * 5),  # 50 s
        standing([0.5] * 6, faults=160),  # 960 faults
    ],
)
def test_share_does_not_stand_still(text):
    assert alarms(text) == []


def unscanned(pte, seconds, inactive):
    """Skips and counters of two kernels, as in the mail; the second scans enough."""
    skips = "".join(
        f"\t{kernel}\n\t=====\n\t{few:>7,} reason=pid_inactive\n\t{1000 - few:>7,} reason=inaccessible\n\n"
        for kernel, few in (("6.6.0-rc2-sched-a", inactive), ("6.6.0-rc2-sched-b", 0))
    )
    heads = f"{'6.6.0-rc2':>57}{'6.6.0-rc2':>16}\n{'sched-a':>57}{'sched-b':>16}\n"
    elapsed = f"Duration Elapsed{'':>25}{seconds:>16.2f}{seconds:>16.2f}\n"
    counters = {
        "NUMA base-page range updates": [pte, 2_000_000],
        "NUMA hint faults": [2000, 9000],
        "NUMA hint local faults %": [1900, 8000],
        "NUMA pages migrated": [10, 500],
    }
    return skips + heads + elapsed + heads + mmtests(counters)


def test_unscanned_load():
    # 1000 pages a second over two minutes
    assert alarms(unscanned(119_999, 120, 300)) == ["scan-filter-too-strict"]
    assert alarms(unscanned(120_000, 120, 300)) == []
    assert alarms(unscanned(100_000, 119.9, 300)) == []
    assert alarms(unscanned(119_999, 120, 299)) == []
