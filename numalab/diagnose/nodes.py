"""Illnesses of nodes: topology, and who allocated where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numalab.diagnose.catalog import finding
from numalab.diagnose.counters import FEWEST_FAULTS
from numalab.diagnose.facts import Count, Facts, Side
from numalab.diagnose.result import Confidence, Evidence, Finding

#: Allocations of a node that takes no part, of those of the busiest; a quiet node of a fair machine has tenths.
UNUSED = 0.01
#: What the same node had on the other side when it took part.
USED = 0.2
#: Allocations of the busiest node below which a machine has done nothing yet: 4 GB.
BUSY = 1_000_000
#: Allocations that did not get the node they were meant for; the healthy node of case 058 has 0.4 %.
FOREIGN = 0.01
#: 4 GB of pages: below, one burst since boot may be all of it.
FOREIGN_PAGES = 1_000_000
#: Free memory of a full node.
FREE = 0.02
#: hit + miss and local + other count the same allocations of a node.
IDENTITY = 0.001
#: Every miss of one node is foreign to another; the sums differ by what was allocated between the readings.
SUMS = 0.01


def topology(facts: Facts) -> Iterator[Finding]:
    """Find machines on which only one of several nodes has memory."""
    for machine in facts.machines:
        sizes = {node.number: node.size_mb for node in machine.values() if node.size_mb is not None}
        if len(sizes) < len(machine) or len(sizes) < 2 or sum(size > 0 for size in sizes.values()) != 1:
            continue
        nodes = sorted(machine.values(), key=lambda node: node.number)
        evidence = [Evidence(f"memory of node {one.number}", one.size_mb, "MB", one.source, one.line) for one in nodes]
        (full,) = (number for number, size in sizes.items() if size > 0)
        says = f"{len(sizes)} nodes are online, and only node {full} has memory: there is nowhere to move a page to."
        faulting = [side for side in facts.sides if side.faults >= FEWEST_FAULTS and side.share == 1.0]
        # of many samples of one input the first speaks for all
        firsts = {side.table if side.many else id(side): side for side in reversed(faulting)}
        for side in reversed(firsts.values()):
            evidence += side.evidence("numa_hint_faults", "numa_hint_faults_local", "numa_other")
        yield finding("memoryless-node-enables-balancing", says, evidence, "high" if faulting else "medium")


def remarks(facts: Facts) -> Iterator[str]:
    """Say what is odd about distances, but no illness."""
    for reading, table in facts.named("numactl", "distances"):
        cells = {(str(row[0]), to): row[i] for row in table.rows for i, to in enumerate(table.columns[1:], 1)}
        odd = sorted(
            (one, other)
            for (one, other), far in cells.items()
            if one < other and cells.get((other, one)) not in (None, far)
        )
        if odd:
            listed = ", ".join(f"{a} to {b}: {cells[a, b]}, back: {cells[b, a]}" for a, b in odd)
            yield f"{reading.source}:{table.line}: distances differ by direction ({listed})"


# ---------------------------------------------------------------- contradictions


def contradictions(facts: Facts) -> Iterator[tuple[Finding, Side, int | None]]:
    """Find counters of nodes that cannot all be true: with the side, and the node or None for the sums."""
    for side in facts.sides:
        for node, counts in side.nodes.items():
            names = ("numa_hit", "numa_miss", "local_node", "other_node")
            if not all(name in counts for name in names):
                continue
            hit, miss, local, other = (counts[name].value for name in names)
            if _apart(hit + miss, local + other) > IDENTITY:
                says = f"hit + miss and local + other count the same pages of node {node}, and differ."
                evidence = [counts[name].evidence(side.name) for name in names]
                yield finding("counters-contradict", says, evidence, None, f"node {node}"), side, node
        every = [counts for counts in side.nodes.values() if {"numa_miss", "numa_foreign"} <= set(counts)]
        misses, foreign = (sum(counts[name].value for counts in every) for name in ("numa_miss", "numa_foreign"))
        if len(every) == len(side.nodes) > 1 and _apart(misses, foreign) > SUMS:
            evidence = [counts[name].evidence(side.name) for counts in every for name in ("numa_miss", "numa_foreign")]
            evidence += [side.derived("misses of all nodes", misses), side.derived("foreign of all nodes", foreign)]
            says = "Each miss of one node is foreign to another, but the sums differ."
            yield finding("counters-contradict", says, evidence, None, side.name), side, None


def _apart(one: float, other: float) -> float:
    return abs(one - other) / max(one, other) if max(one, other) > 0 else 0.0


# ---------------------------------------------------------------- full and empty nodes


def full(facts: Facts, side: Side, sums_contradict: bool, doubted: set[int]) -> Iterator[Finding]:
    """Find nodes whose allocations went elsewhere because they were full."""
    machine = facts.machine(side.source)
    for node, counts in side.nodes.items():
        if not {"numa_hit", "numa_foreign"} <= set(counts) or node in doubted:
            continue
        hit, foreign = counts["numa_hit"], counts["numa_foreign"]
        # pages that were foreign to this node are misses of others
        others = [other for key, other in side.nodes.items() if key != node]
        taken = sum(other["numa_miss"].value for other in others if "numa_miss" in other)
        if foreign.value < FOREIGN_PAGES or taken < foreign.value * (1 - SUMS):
            continue
        share = foreign.value / (hit.value + foreign.value)
        if share < FOREIGN:
            continue
        evidence = [hit.evidence(side.name), foreign.evidence(side.name)]
        evidence.append(side.derived(f"foreign share of what was meant for node {node}", share))
        known = machine.get(node)
        free = known.free_mb / known.size_mb if known and known.size_mb and known.free_mb is not None else None
        if known and free is not None:
            evidence.append(Evidence(f"free memory of node {node}", free, "1", known.source, known.line))
        is_full = free is not None and free < FREE
        says = f"{foreign.value:,.0f} allocations meant for node {node} ({100 * share:.3g} %) went to other nodes."
        says += f" {100 * free:.2g} % of its memory is free now." if free is not None else ""
        sure: Confidence = "high" if is_full and not sums_contradict else "medium"
        yield finding("node-full-foreign-allocations", says, evidence, sure, f"node {node}")


def unused(facts: Facts, side: Side, others: Sequence[Side]) -> Iterator[Finding]:
    """Find nodes with CPUs and memory that take no part; others: the sides it may be compared with."""
    hits = {node: counts["numa_hit"] for node, counts in side.nodes.items() if "numa_hit" in counts}
    if len(hits) < 2:
        return
    busiest = max(hits.values(), key=lambda count: count.value)
    if busiest.value < BUSY:
        return
    machine = facts.machine(side.source)
    for node, hit in hits.items():
        if hit.value >= UNUSED * busiest.value:
            continue
        before = _took_part(others, node)
        before = before[:1] if side.many else before
        known = machine.get(node)
        if not before and not (known and known.cpus and known.size_mb):
            continue  # it may have no CPUs or no memory, and then that is as it should be
        evidence = [hit.evidence(side.name), busiest.evidence(side.name)]
        evidence += [one.evidence(other.name) for other, one in before]
        if known and known.cpus:
            evidence.append(Evidence(f"CPUs of node {node}", known.cpus, "1", known.source, known.line))
        says = f"Node {node} got {hit.value:,.0f} allocations, the busiest node {busiest.value:,.0f}."
        says += " On the other side it took its part." if before else ""
        yield finding("one-node-unused", says, evidence, "high" if before else "medium", side.name or f"node {node}")


def _took_part(others: Sequence[Side], node: int) -> list[tuple[Side, Count]]:
    """Return the sides in which a node did its part, with its allocations."""
    found = []
    for other in others:
        hits = {key: counts["numa_hit"] for key, counts in other.nodes.items() if "numa_hit" in counts}
        if node in hits and hits[node].value >= USED * max(one.value for one in hits.values()):
            found.append((other, hits[node]))
    return found
