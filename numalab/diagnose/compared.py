"""Illnesses that show when two sides are laid beside each other: kernels, settings, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from numalab.diagnose.catalog import finding
from numalab.diagnose.counters import FEWEST_FAULTS
from numalab.diagnose.facts import Facts, Side, better, changed
from numalab.diagnose.result import Evidence, Finding

#: A result counts as better from here on; benchmarks of memory vary by 1 to 3 % from run to run.
BETTER = 0.05
#: Elapsed time within this is the same ...
SAME_ELAPSED = 0.01
#: ... and a growth of system time from here on is paid for nothing.
MORE_SYSTEM = 0.10
#: Growth of pages per fault of a storm; xfs_repair's grew elevenfold.
STORM_GROWTH = 3.0
#: Pages per fault that a grown rate must reach to be one.
STORM_PER_FAULT = 0.1
#: Local shares within this are the same for ping-pong ...
SAME_SHARE = 0.05
#: ... and, more strictly, for findings that rest on nothing but a factor of the counts.
STRICTLY_SAME_SHARE = 0.02
#: Scanned pages of the side whose filter is too strict; the cases have 1/7949 and 1/411.
SCANNED = 0.01
#: Local shares of the side whose balancers disagree and of that whose agree.
DISAGREE, AGREE = 0.7, 0.9
#: Faults of the side that agrees, of the other's: what is at home is scanned seldom. The case has 1/113.
FEWER_FAULTS = 0.1
#: Growth of faults that says that they are repeated (xfs_repair: 2.5); beyond, something else was scanned.
MORE_FAULTS, FAR_MORE_FAULTS = 1.5, 10.0
#: Pages per fault of faults that move little.
MOVE_LITTLE = 0.2
#: Words of rows that are run times.
_TIMES = ("elsp", "Elapsed", "elapsed_time", "time_sec", "seconds", "runtime", "real_time")
#: Pages per fault within this factor are the same.
SAME_PER_FAULT = 1.5


def findings(facts: Facts) -> Iterator[Finding]:
    """Find what comparisons of two sides show; a side is named once for each illness."""
    said: set[tuple[str, str, str]] = set()
    for bad, good in facts.pairs():
        rules = (_gone, _without_benefit, _ping_pong, _too_strict, _disagree, _retried, _marginal)
        for one in chain.from_iterable(rule(bad, good) for rule in rules):
            key = (one.id, bad.source, bad.name)
            if key not in said:
                said.add(key)
                yield one


def _both(one: Side, other: Side, *names: str) -> list[Evidence]:
    return [*one.evidence(*names), *other.evidence(*names)]


def _differs(one: Side, other: Side, name: str) -> bool:
    return name in one.counts and name in other.counts and changed(one.counts[name], other.counts[name])


def _rows(found: list[tuple[Evidence, Evidence]]) -> list[Evidence]:
    return [one for pair in found[:3] for one in pair]


def _gains(one: Side, other: Side) -> list[tuple[Evidence, Evidence]]:
    """Return the results in which the first side is clearly better, as evidence."""
    return [(a.count.evidence(one.name), b.count.evidence(other.name)) for a, b in better(one, other, BETTER)]


def _is_time(what: str) -> bool:
    label = what.partition(",")[0]
    return any(word in label for word in _TIMES)


def _gone(bad: Side, good: Side) -> Iterator[Finding]:
    """Find a side that ran on one node: no faults, and nothing on any node but the first."""
    if good.faults < FEWEST_FAULTS or bad.faults or bad.table != good.table:
        return
    was = _elsewhere(good)
    is_now = _elsewhere(bad)
    active = [name for name, value in was.items() if value > 0]
    if not active or any(is_now.get(name, 0.0) for name in active):
        return
    evidence = [*good.evidence("numa_hint_faults", "numa_other"), *bad.evidence("numa_hint_faults", "numa_other")]
    for name in active:
        evidence += [good.derived(name, was[name]), bad.derived(name, is_now.get(name, 0.0))]
    says = "No hint fault, and nothing on any node but the first, where the other side has both: one node, not a cure."
    yield finding("numa-gone", says, evidence, "high", bad.name)


def _elsewhere(side: Side) -> dict[str, float]:
    """Return the counts that only a machine with several nodes has: by node, but for the first, and numa_other."""
    found = {"allocations on other nodes": side.counts["numa_other"].value} if "numa_other" in side.counts else {}
    first = min(side.nodes, default=0)
    for node, counts in side.nodes.items():
        if node != first:
            kept = [name for name in ("numa_hit", "other_node") if name in counts]
            found |= {f"{name} of node {node}": counts[name].value for name in kept}
    for name, one in side.counts.items():
        if name.startswith("numa-meminfo.node") and not name.startswith("numa-meminfo.node0"):
            found[name] = one.value
    return found


def _without_benefit(on: Side, off: Side) -> Iterator[Finding]:
    """Find a side with balancing whose elapsed time is that of the side without, at more system time."""
    if on.faults < FEWEST_FAULTS or off.faults or off.value("numa_hint_faults") is None:
        return
    for label, mine in on.results.items():
        theirs = off.results.get(label)
        if theirs is None or not label.endswith(("Elapsed", "elapsed_time")) or not theirs.count.value:
            continue
        system = label.replace("Elapsed", "System").replace("elapsed_time", "system_time")
        if system not in on.results or system not in off.results:
            continue
        spent, saved = on.results[system].count, off.results[system].count
        same = abs(mine.count.value / theirs.count.value - 1) <= SAME_ELAPSED
        if same and spent.value >= saved.value * (1 + MORE_SYSTEM) and changed(spent, saved):
            evidence = [mine.count.evidence(on.name), theirs.count.evidence(off.name)]
            evidence += [spent.evidence(on.name), saved.evidence(off.name), *on.evidence("numa_hint_faults")]
            says = "With balancing the system time is higher and the elapsed time the same."
            yield finding("overhead-without-benefit", says, evidence, "high", on.name)


def _ping_pong(bad: Side, good: Side) -> Iterator[Finding]:
    here, there = bad.per_fault, good.per_fault
    if not _enough(bad, good) or not here or not there or here > 1:
        return
    if here < STORM_PER_FAULT or here < STORM_GROWTH * there or not _same_share(bad, good, SAME_SHARE):
        return
    if not _differs(bad, good, "numa_pages_migrated"):
        return
    evidence = _both(bad, good, "numa_pages_migrated", "numa_hint_faults")
    evidence += _per_side(bad, good, share=True)
    says = f"{here / there:.3g} times as many pages move per fault, and the local share is the same."
    yield finding("page-ping-pong", says, evidence, "high", bad.name)


def _too_strict(bad: Side, good: Side) -> Iterator[Finding]:
    here, there = bad.value("numa_pte_updates"), good.value("numa_pte_updates")
    if not here or not there or here > SCANNED * there or not _differs(bad, good, "numa_pte_updates"):
        return
    gains = [pair for pair in _gains(good, bad) if _is_time(pair[0].what)]
    if gains:
        evidence = [*_both(bad, good, "numa_pte_updates", "numa_hint_faults"), *_rows(gains)]
        says = f"Pages are scanned at 1/{there / here:,.0f} of the other side's number, and the run takes longer."
        yield finding("scan-filter-too-strict", says, evidence, "high", bad.name)


def _disagree(bad: Side, good: Side) -> Iterator[Finding]:
    if bad.faults < FEWEST_FAULTS or bad.share is None or good.share is None:
        return
    if bad.share > DISAGREE or good.share < AGREE or good.faults > FEWER_FAULTS * bad.faults:
        return
    if gains := _gains(good, bad):
        evidence = [*_both(bad, good, "numa_hint_faults", "numa_hint_faults_local"), *_per_side(bad, good, share=True)]
        says = "Half at home with many faults here, nearly all at home with few there, and there the work goes faster."
        yield finding("balancers-disagree", says, [*evidence, *_rows(gains)], "medium", bad.name)


def _retried(bad: Side, good: Side) -> Iterator[Finding]:
    here = bad.per_fault
    if not _repeated(bad, good) or here is None or here >= MOVE_LITTLE or good.per_fault is None:
        return
    if _gains(bad, good):
        return  # they bought something
    evidence = [*_both(bad, good, "numa_hint_faults", "numa_pages_migrated"), *_per_side(bad, good, share=True)]
    says = f"{bad.faults / good.faults:.3g} times the faults, the same local share, and few of them move a page."
    series = ("a series (numalab record) shows whether it stays",)
    yield finding("retried-migrations", says, evidence, "low", bad.name, series)


def _marginal(bad: Side, good: Side) -> Iterator[Finding]:
    here, there = bad.per_fault, good.per_fault
    if not _repeated(bad, good) or here is None or there is None:
        return
    high, low = max(here, there), min(here, there)
    judged = [label for label, one in bad.results.items() if one.better and label in good.results]
    if high > SAME_PER_FAULT * low or not judged or _gains(bad, good):
        return
    evidence = [*_both(bad, good, "numa_hint_faults", "numa_hint_faults_local"), *_per_side(bad, good, share=True)]
    rows = [side.results[label].count.evidence(side.name) for label in judged[:2] for side in (bad, good)]
    says = (
        "Local faults and all faults grew by one factor, and the result is no better: that may be tasks that move "
        "for little. Counts of moves are missing."
    )
    trace = ("trace sched:sched_move_numa and sched:sched_swap_numa",)
    yield finding("marginal-moves", says, [*evidence, *rows], "low", bad.name, trace)


def _enough(*sides: Side) -> bool:
    return all(side.faults >= FEWEST_FAULTS for side in sides)


def _same_share(one: Side, other: Side, within: float) -> bool:
    return one.share is not None and other.share is not None and abs(one.share - other.share) <= within


def _repeated(bad: Side, good: Side) -> bool:
    """Tell whether one side has many more faults, as many of them local."""
    if not _enough(bad, good) or not MORE_FAULTS <= bad.faults / good.faults <= FAR_MORE_FAULTS:
        return False
    return _same_share(bad, good, STRICTLY_SAME_SHARE) and _differs(bad, good, "numa_hint_faults")


def _per_side(*sides: Side, share: bool = False) -> list[Evidence]:
    found = []
    for side in sides:
        if side.per_fault is not None:
            found.append(side.derived("pages migrated per fault", side.per_fault))
        if share and side.share is not None:
            found.append(side.derived("local share", side.share))
    return found
