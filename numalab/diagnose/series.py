"""Illnesses that show over time: rates that do not decay, faults that come to nothing, shares that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from numalab.diagnose.catalog import finding
from numalab.diagnose.counters import FEWEST_FAULTS
from numalab.diagnose.facts import Facts, Series, Side
from numalab.diagnose.result import Confidence, Finding

#: Pages per second of a storm, 80 MB/s; the case has 31,543.
STORM_RATE = 20_000.0
#: Samples that show that it stays so.
STORM_SAMPLES = 10
#: Spread and trend of a rate that does not decay; the case has 0.6 %. What converges falls by halves.
STEADY = 0.10
#: Remote faults for each page moved, in every interval, where moves are refused.
REFUSED = 10.0
#: Intervals that must show it.
REFUSED_INTERVALS = 5
#: Fall of the scan rate over the series at which the kernel has noticed.
SLOWER = 0.25
#: Seconds that a share must stand still.
STANDSTILL_S = 60.0
#: Parts of that time, each with a share of its own; and faults that a part needs for one.
STANDSTILL_PARTS, FEWEST_OF_PART = 6, 100.0
#: Shares this near are the same.
STANDS = 0.02
#: A share from here on is convergence.
CONVERGED = 0.9
#: Pages scanned per second below which a busy load is as good as not scanned (its floor is some 2 MB/s).
UNSCANNED = 1000.0
#: Seconds of load that a scan may take to get going.
MINUTES_S = 120.0
#: Skips of areas for "this thread was not here" among all skips.
INACTIVE = 0.30

_SKIPS = "sched_skip_vma_numa."


def findings(facts: Facts) -> Iterator[Finding]:
    """Find what series show, and the rates of single sides."""
    for side in facts.sides:
        if side.series is not None:
            yield from _storm(side, side.series)
            yield from _refused(side, side.series)
            yield from _standstill(side, side.series)
    yield from _unscanned(facts)


def _storm(side: Side, series: Series) -> Iterator[Finding]:
    name = next((one for one in ("numa_migrations", "numa_pages_migrated") if one in series.growth), None)
    if name is None or series.seconds.size < STORM_SAMPLES or not np.all(series.seconds > 0):
        return
    rate = series.growth[name] / series.seconds
    mean = float(rate.mean())
    if mean < STORM_RATE:
        return
    spread, trend = float(rate.std(ddof=1)) / mean, _trend(rate)
    share = side.share
    if spread >= STEADY or abs(trend) >= STEADY or (share is not None and not 0.05 <= share <= 0.8):
        return
    confidence: Confidence = "medium" if share is None else "high"
    evidence = [
        *side.evidence(name),
        side.derived("mean rate", mean, "pages/s"),
        side.derived("samples", rate.size),
        side.derived("spread of the rate", spread),
        side.derived("trend over the series", trend),
    ]
    says = f"{mean:,.0f} pages a second move over {rate.size} samples, and the rate does not fall."
    yield finding("page-ping-pong", says, evidence, confidence, side.name)


def _trend(rate: NDArray[np.float64]) -> float:
    """Return the change of a straight line over the series, of its mean."""
    slope = np.polyfit(np.arange(rate.size), rate, 1)[0]
    return float(slope * (rate.size - 1) / rate.mean())


def _refused(side: Side, series: Series) -> Iterator[Finding]:
    names = ("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated", "numa_pte_updates")
    if side.faults < FEWEST_FAULTS or not all(name in series.growth for name in names):
        return
    faults, local, moved, scanned = (series.growth[name] for name in names)
    busy = faults > 0
    timed = bool(np.isfinite(series.seconds).all())
    seconds = series.seconds if timed else np.ones(series.seconds.size)
    if busy.sum() < REFUSED_INTERVALS or not np.all(seconds > 0):
        return
    remote = (faults - local)[busy]
    if not np.all((remote > 0) & (remote >= REFUSED * moved[busy])):
        return
    rates = (scanned / seconds)[busy]
    third = max(rates.size // 3, 1)
    first, last = float(rates[:third].mean()), float(rates[-third:].mean())
    if first <= 0 or last < first * (1 - SLOWER):
        return
    least = float(np.min(remote / np.maximum(moved[busy], 1)))
    each, units = ("second", "pages/s") if timed else ("sample", "pages")
    evidence = [
        *side.evidence(*names, "pgmigrate_fail", "migrate_refused"),
        side.derived("least remote faults per page moved, of any interval", least),
        side.derived(f"pages scanned per {each}, first third", first, units),
        side.derived(f"pages scanned per {each}, last third", last, units),
    ]
    says = "In every interval nearly all remote faults move no page, and the scans do not slow down"
    says += "." if timed else ", if the samples are evenly spaced."
    yield finding("retried-migrations", says, evidence, "high" if timed else "medium", side.name)


def _standstill(side: Side, series: Series) -> Iterator[Finding]:
    names = ("numa_hint_faults", "numa_hint_faults_local")
    ends = series.ends
    if not all(name in series.growth for name in names) or not series.seconds.sum() >= STANDSTILL_S:
        return
    faults, local = (series.growth[name] for name in names)
    edges = np.linspace(ends[-1] - STANDSTILL_S, ends[-1], STANDSTILL_PARTS + 1)
    parts = [(ends > start + 1e-9) & (ends <= end + 1e-9) for start, end in pairwise(edges)]
    counted = np.array([faults[part].sum() for part in parts])
    if counted.sum() < FEWEST_FAULTS or counted.min() < FEWEST_OF_PART:
        return
    shares = np.array([local[part].sum() for part in parts]) / counted
    whole = float((shares * counted).sum() / counted.sum())
    if whole >= CONVERGED or np.abs(shares - whole).max() > STANDS:
        return
    evidence = [
        *side.evidence(*names),
        side.derived(f"local share of the last {STANDSTILL_S:.0f} s", whole),
        side.derived("least of its sixths", float(shares.min())),
        side.derived("greatest", float(shares.max())),
    ]
    says = f"{100 * whole:.3g} % of the faults are local, and that has not changed for {STANDSTILL_S:.0f} s."
    how = ("numalab record shows where threads and memory are; memory that all nodes use cannot converge",)
    yield finding("no-convergence", says, evidence, "low", side.name, how)


def _unscanned(facts: Facts) -> Iterator[Finding]:
    """Find a load of minutes that is hardly scanned, and the filter's part in that."""
    for side in facts.sides:
        pages = side.value("numa_pte_updates")
        if not pages or not side.seconds or side.seconds < MINUTES_S or pages / side.seconds >= UNSCANNED:
            continue
        for skips in facts.sides:
            every = {name: one for name, one in skips.counts.items() if name.startswith(_SKIPS)}
            total, inactive = sum(one.value for one in every.values()), every.get(_SKIPS + "pid_inactive")
            # skips are one block of a mail, counters another: the same column, or the only one
            if inactive is None or skips.source != side.source or skips.name != side.name:
                continue
            if inactive.value < INACTIVE * total:
                continue
            evidence = [
                *side.evidence("numa_pte_updates"),
                side.derived("length", side.seconds, "s"),
                side.derived("pages scanned per second", pages / side.seconds, "pages/s"),
                inactive.evidence(skips.name),
                skips.derived("skips for any reason", total),
                skips.derived("share of pid_inactive", inactive.value / total),
            ]
            says = f"{pages / side.seconds:,.0f} pages a second are scanned; areas are skipped as not the thread's."
            yield finding("scan-filter-too-strict", says, evidence, "high", side.name)
