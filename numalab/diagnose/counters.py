"""Illnesses that the counters of one side show, and contradictions between them."""

from __future__ import annotations

from collections.abc import Iterator

from numalab.derived import HUGE_PAGES
from numalab.diagnose.catalog import finding
from numalab.diagnose.facts import Facts, Side
from numalab.diagnose.result import Finding

#: Fewer hint faults than this say little of a share: one scan of one 256 MB window is 65,536 of them.
FEWEST_FAULTS = 1000
#: Local share of a load that is where it should be; the healthy runs among the cases are below.
SHARE_ALL_LOCAL = 0.98
#: Pages moved per fault that are none to speak of: 2 in 1000; the redis case has 0.0005 and 0.0016.
PER_FAULT_NONE = 0.002
#: Faults worth complaining about: at some 1.2 us each, a million are a second of CPU time ...
MANY_FAULTS = 1_000_000
#: ... and 1000 a second 0.1 % of a CPU, besides the latency.
MANY_FAULTS_PER_S = 1000.0
#: Pages per fault of a storm: 0.40 in 4.0-rc1's xfs_repair, 0.035 in the healthy 3.19.
PER_FAULT_STORM = 0.3
#: Outside this share of local faults it is another thing: tiering below, a settled load above.
SHARE_PING_PONG = (0.05, 0.8)
#: 4 GB: a load that finds its place moves that once.
STORM_PAGES = 1_000_000
#: Attempts that fail; a case with 300 failures per success has 0.997, a full node for a while some tenths.
FAILED = 0.9
#: Below, some pinned pages of a start-up make the share.
FAILURES = 100_000
#: Local share with slow memory that has no CPUs: every hint fault on it is remote. The cases have 0.
SHARE_TIERING = 0.02
#: Promoted over demoted pages when each promotion pushes one page out; the case has 0.975 to 0.983.
CHURN = (0.8, 1.25)
#: 400 MB; below, it may be a hot set that finds its place.
CHURN_PAGES = 100_000
#: Counters read one after the other differ by what happened between; rounding of tables is smaller.
SLACK = 0.001
#: Printed percents are rounded to whole ones by old tables.
PERCENT_SLACK = 1.0

_BALANCING = ("numa_pte_updates", "numa_hint_faults", "numa_pages_migrated")
#: Counters of which the first counts a part of what the second counts.
_PARTS = (("numa_hint_faults_local", "numa_hint_faults"), ("numa_pages_migrated", "pgmigrate_success"))


def contradictions(facts: Facts) -> Iterator[tuple[Finding, Side]]:
    """Find counters of one side that cannot all be true, with the side they are of."""
    for side in facts.sides:
        for less, more in _PARTS:
            part, whole = side.value(less), side.value(more)
            if part is not None and whole is not None and part > whole * (1 + SLACK):
                says = f"{less} counts a part of {more}, but is above it."
                yield finding("counters-contradict", says, side.evidence(less, more), None, side.name), side
        printed, share = side.value("printed local percent"), side.share
        if printed is not None and share is not None and abs(printed - 100 * share) > PERCENT_SLACK:
            evidence = [
                *side.evidence("printed local percent", "numa_hint_faults_local", "numa_hint_faults"),
                side.derived("local share of the counts", 100 * share, "percent"),
            ]
            says = "The printed percentage is not that of the counts beside it."
            yield finding("counters-contradict", says, evidence, None, side.name), side


def findings(side: Side) -> Iterator[Finding]:
    """Find what the totals of one side show; of a side without contradictions."""
    if _off(side):
        hits = side.value("numa_hit")
        says = "All counters of balancing are 0" + (f" beside {hits:,.0f} allocations." if hits else ".")
        yield finding("balancing-off", says, side.evidence(*_BALANCING, "numa_hit"), None, side.name)
    if side.faults >= FEWEST_FAULTS:
        yield from _without_benefit(side)
        yield from _ping_pong(side)
        yield from _huge(side)
        yield from _churn(side)
    yield from _failing(side)


def _off(side: Side) -> bool:
    values = [side.value(name) for name in _BALANCING]
    return values[0] == 0 and values[1] == 0 and not values[2]


def _without_benefit(side: Side) -> Iterator[Finding]:
    share, per_fault = side.share, side.per_fault
    if share is None or per_fault is None or share < SHARE_ALL_LOCAL or per_fault > PER_FAULT_NONE:
        return
    rate = side.faults / side.seconds if side.seconds else None
    if side.faults < MANY_FAULTS and (rate is None or rate < MANY_FAULTS_PER_S):
        return
    evidence = side.evidence("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
    evidence += [side.derived("local share", share), side.derived("pages migrated per fault", per_fault)]
    evidence += [side.derived("hint faults per second", rate, "1/s")] if rate else []
    other = side.value("numa_other")
    if other == 0:
        evidence += side.evidence("numa_other")
    says = f"{side.faults:,.0f} hint faults found {100 * share:.4g} % of the pages local, and moved next to none."
    if other == 0:
        says += " No allocation went to another node: one node may hold all memory."
    yield finding("overhead-without-benefit", says, evidence, "high", side.name)


def _ping_pong(side: Side) -> Iterator[Finding]:
    share, per_fault, migrated = side.share, side.per_fault, side.value("numa_pages_migrated")
    if share is None or per_fault is None or migrated is None:
        return
    # one fault moves a whole huge page
    each = per_fault / HUGE_PAGES if per_fault > 1 else per_fault
    low, high = SHARE_PING_PONG
    if each < PER_FAULT_STORM or not low <= share <= high or migrated < STORM_PAGES:
        return
    evidence = side.evidence("numa_pages_migrated", "numa_hint_faults", "numa_hint_faults_local")
    evidence += [side.derived("pages migrated per fault", per_fault), side.derived("local share", share)]
    says = (
        f"{migrated:,.0f} pages moved, {per_fault:.3g} for each hint fault, and still {100 * share:.3g} % of the "
        "faults are local: the pages come and go."
    )
    yield finding("page-ping-pong", says, evidence, "high", side.name)


def _huge(side: Side) -> Iterator[Finding]:
    per_fault, huge = side.per_fault, side.value("numa_huge_pte_updates")
    if per_fault is None or not 1 < per_fault <= HUGE_PAGES or not huge:
        return
    evidence = side.evidence("numa_pages_migrated", "numa_hint_faults", "numa_huge_pte_updates")
    evidence.append(side.derived("pages migrated per fault", per_fault))
    says = f"{per_fault:.3g} pages moved per hint fault: huge pages move whole, and the counter counts their pages."
    yield finding("huge-pages-several-pages-per-fault", says, evidence, "high", side.name)


def _promoted(side: Side) -> str:
    return "pgpromote_success" if side.value("pgpromote_success") else "numa_pages_migrated"


def _churn(side: Side) -> Iterator[Finding]:
    share, name, demoted = side.share, _promoted(side), side.demoted
    promoted = side.value(name)
    if share is None or share > SHARE_TIERING or promoted is None or promoted < CHURN_PAGES:
        return
    demotions = [key for key in side.counts if key.startswith("pgdemote_")]
    evidence = [*side.evidence("numa_hint_faults", "numa_hint_faults_local", name, *demotions)]
    evidence.append(side.derived("local share", share))
    if demoted is None:
        says = (
            f"Only {100 * share:.2g} % of the faults are local and {promoted:,.0f} pages moved: memory tiers do that, "
            "so does memory on the wrong node. The rows of demotion would tell."
        )
        how = ("grep -E 'pgdemote|pgpromote' /proc/vmstat", "numactl -H: does a node have memory and no CPUs?")
        yield finding("not-enough-data", says, evidence, None, side.name, how)
    elif demoted >= CHURN_PAGES and CHURN[0] <= promoted / demoted <= CHURN[1]:
        evidence.append(side.derived("pages promoted per page demoted", promoted / demoted))
        says = f"{promoted:,.0f} pages went to the fast tier and {demoted:,.0f} out of it: each pushes another out."
        yield finding("tiering-churn", says, evidence, "high", side.name)


def churns(side: Side) -> bool:
    """Tell whether pages go in circles between memory tiers, whose full fast node is no illness of its own."""
    return side.faults >= FEWEST_FAULTS and any(one.id == "tiering-churn" for one in _churn(side))


def _failing(side: Side) -> Iterator[Finding]:
    failed, moved = side.value("pgmigrate_fail"), side.value("pgmigrate_success")
    if failed is None or moved is None or failed < FAILURES or failed / (failed + moved) < FAILED:
        return
    evidence = side.evidence("pgmigrate_fail", "pgmigrate_success", "thp_migration_fail", "numa_pages_migrated")
    evidence.append(side.derived("failed share of migrations", failed / (failed + moved)))
    says = f"{100 * failed / (failed + moved):.4g} % of all page migrations fail, {failed:,.0f} in all."
    yield finding("migrations-fail", says, evidence, "high", side.name)
