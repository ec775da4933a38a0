"""Illnesses that profiles and latencies show: perf report, perf stat, histograms of funclatency."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from numalab.diagnose.catalog import finding
from numalab.diagnose.facts import Facts, number
from numalab.diagnose.result import Confidence, Evidence, Finding
from numalab.readers._reading import Reading, Table
from numalab.readers._text import ReadError
from numalab.readers.funclatency import UNITS
from numalab.readers.perf_report import SPINNING

#: Self time in sending interrupts and flushing TLBs, percent; the case has 52.69, a healthy kernel up to 14.
SHOOTDOWN = 20.0
#: Calls of the hypervisor's unmapping per second that hold up a guest.
UNMAPS_PER_S = 1000.0
#: Mean of a scan's call, s, that a deadline notices; and a long call, with the share of such that is too many.
MEAN_CALL_S, LONG_CALL_S, LONG_CALLS = 1e-3, 8e-3, 0.05
#: Calls behind a mean or a share.
FEWEST_CALLS = 20
#: Share of time spent waiting for the policy's lock.
LOCK_SHARE = 0.05
#: The share grows faster than the number of tasks; linear growth would be 1, a queue's is 2.
LOCK_GROWTH = 1.5
#: Below, a share is noise of sampling.
LEAST_SHARE = 0.005

_SENDING = re.compile(
    r"(?:default_|native_|__)?send_(?:IPI|call_func)\w*|smp_call_function_(?:many|single)\w*|\w*flush_tlb\w*|"
    r"x2apic_send_IPI\w*|(?:native_)?flush_tlb_others|try_to_unmap_flush\w*|csd_lock_wait\w*|__x2apic_send_IPI\w*"
)
_MIGRATING = re.compile(
    r"migrate_misplaced_(?:page|folio|transhuge_page)|try_to_(?:unmap|migrate)(?:_one)?|change_prot_numa"
)
#: Takes the lock of a shared policy.
LOOKUP = "mpol_shared_policy_lookup"
#: Coordinates of runs that say how many tasks contend.
_RANKS = ("ranks", "tasks", "processes")


def findings(facts: Facts) -> Iterator[Finding]:
    """Find what profiles and latencies show."""
    for reading, table in facts.named("perf-report", "symbols"):
        yield from _shootdown(facts, reading, table)
    for reading, table in facts.named("perf-stat"):
        yield from _unmapping(facts, reading, table)
    yield from _scan_calls(facts)
    for reading in {id(reading): reading for reading, _ in facts.named("perf-report")}.values():
        yield from _policy_lock(facts, reading)
    yield from _lock_growth(facts)


def _shootdown(facts: Facts, reading: Reading, table: Table) -> Iterator[Finding]:
    event = table.name.removeprefix("symbols")
    own = {str(row[0]): number(row[1]) or 0.0 for row in table.rows if _SENDING.fullmatch(str(row[0]))}
    chains = [t for _, t in facts.named("perf-report", "chains") if t in reading.tables and t.name == f"chains{event}"]
    through = [
        (str(row[0]), str(row[1]), number(row[2]) or 0.0)
        for chain in chains
        for row in chain.rows
        if str(row[0]) in own and _MIGRATING.fullmatch(str(row[1]))
    ]
    if sum(own.values()) < SHOOTDOWN or not through:
        return

    def at(name: str) -> int:
        return facts.line(source, reading.format, table.line, name)

    source, whole = reading.source, sum(own.values())
    evidence = [
        Evidence(f"self time of {name}", share, "percent", source, at(name)) for name, share in own.items() if share
    ]
    symbol, where, share = max(through, key=lambda one: one[2])
    evidence.append(Evidence(f"of {symbol}, through {where}", share, "percent", source, at(where)))
    says = f"{whole:.4g} % of the time goes into telling other CPUs to flush their TLBs, for pages that move."
    yield finding("tlb-shootdown-bound", says, evidence, "high")


def _unmapping(facts: Facts, reading: Reading, table: Table) -> Iterator[Finding]:
    """Find a VM host that unmaps pages of its guest all the time."""
    times = {str(row[0]): number(row[1]) for one in reading.tables if one.name == "seconds" for row in one.rows}
    seconds = times.get(table.name)
    for row in table.rows if table.columns[:2] == ("event", "count") else ():
        count, name = number(row[1]), str(row[0])
        if "kvm_unmap_hva" not in name or count is None or not seconds or count / seconds < UNMAPS_PER_S:
            continue
        on = [side for side in facts.sides if side.faults]
        evidence = [
            Evidence(name, count, "1", reading.source, facts.line(reading.source, reading.format, table.line, name))
        ]
        evidence += [
            Evidence("elapsed", seconds, "s", reading.source),
            Evidence(f"{name} per second", count / seconds, "1/s", reading.source),
        ]
        evidence += [one for side in on[:1] for one in side.evidence("numa_hint_faults")]
        says = f"The host unmaps pages of its guests {count / seconds:,.0f} times a second."
        yield finding("tlb-shootdown-bound", says, evidence, "medium" if on else "low")


def _scan_calls(facts: Facts) -> Iterator[Finding]:
    for reading, table in facts.named("latency-histogram", "latency"):
        if table.name == "latency":
            continue
        words = table.name.split()
        scale = UNITS.get(table.units)
        if len(words) < 2 or words[1] != "task_numa_work" or not scale:
            continue
        when = words[2] if len(words) > 2 else ""
        calls = sum(number(row[2]) or 0 for row in table.rows)
        long = sum(number(row[2]) or 0 for row in table.rows if (number(row[0]) or 0) * scale >= LONG_CALL_S)
        mean = _mean(reading, when)
        if calls < FEWEST_CALLS or not ((mean or 0) >= MEAN_CALL_S or long / calls >= LONG_CALLS):
            continue
        source, line, limit = reading.source, table.line, f"{1000 * LONG_CALL_S:.0f} ms"
        evidence = [
            Evidence("calls of task_numa_work", calls, "1", source, line),
            Evidence("mean length of a call", mean, "s", source, line),
            Evidence(f"share of calls of {limit} and more", long / calls, "1", source, line),
        ]
        said = f"{1000 * mean:.3g} ms on average, and " if mean is not None else ""
        says = f"A scan holds its task up for {said}{limit} or more in {100 * long / calls:.3g} % of the calls."
        yield finding("scan-latency", says, evidence, "high", when)


def _mean(reading: Reading, when: str) -> float | None:
    """Return the mean length of a call as printed, else the least it can be."""
    for row in reading.table("latency").rows:
        if row[0] == "task_numa_work" and str(row[1]) == when:
            printed = number(row[3])
            return printed if printed is not None else number(row[4])
    return None


# ---------------------------------------------------------------- the policy's lock


def _policy_lock(facts: Facts, reading: Reading) -> Iterator[Finding]:
    try:
        ds = reading.dataset()
    except ReadError:
        return
    for share in ds["lock_waiting_share"].values.tolist():
        if not share >= LOCK_SHARE:  # NaN: a profile without chains cannot say
            continue
        line, what = reading.tables[0].line, "time spinning for the policy's lock, of all"
        at = facts.line(reading.source, reading.format, line, LOOKUP)
        evidence = [Evidence(what, share, "1", reading.source, at)]
        for row in (row for table in reading.tables if table.name.startswith("symbols") for row in table.rows):
            if SPINNING.match(str(row[0])) and (own := number(row[1])) is not None:
                at = facts.line(reading.source, reading.format, line, str(row[0]))
                evidence.append(Evidence(f"self time of {row[0]}", own, "percent", reading.source, at))
        says = f"{100 * share:.3g} % of the time is spent spinning for the lock of a shared memory policy."
        yield finding("policy-lock-contention", says, evidence, "high")


def _lock_growth(facts: Facts) -> Iterator[Finding]:
    """Find shares of time that grow faster than the number of tasks."""
    points: list[tuple[float, float, str]] = []
    for source, ds in facts.datasets:
        ranks = next((name for name in _RANKS if name in ds.coords and ds[name].dims == ("run",)), None)
        if "lock_area_share" in ds.data_vars and ranks:
            numbers = ds[ranks].values.astype(float).tolist()
            points += zip(numbers, ds["lock_area_share"].values.tolist(), [source] * len(numbers), strict=True)
    known = sorted((n, s, source) for n, s, source in points if n > 0 and np.isfinite(s) and s >= LEAST_SHARE)
    if not known or known[0][0] == known[-1][0]:
        return
    (few, low, where), (many, high, there) = known[0], known[-1]
    power = float(np.log(high / low) / np.log(many / few))
    if high < LOCK_SHARE or power <= LOCK_GROWTH:
        return
    evidence = [
        Evidence(f"share of time in the look-up with {few:g} tasks", low, "1", where),
        Evidence(f"share of time in the look-up with {many:g} tasks", high, "1", there),
        Evidence(
            "power of the number of tasks with which the share grows", float(np.log(high / low) / np.log(many / few))
        ),
    ]
    sure: Confidence = "high" if len({n for n, _, _ in known}) > 2 else "medium"
    says = f"The policy's look-up takes {100 * low:.3g} % of the time of {few:g} tasks, {100 * high:.3g} % of {many:g}."
    yield finding("policy-lock-contention", says, evidence, sure)
