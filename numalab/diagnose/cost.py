"""What NUMA balancing cost, estimated from counters."""

from __future__ import annotations

from numalab.derived import COST_COPY, COST_FAULT, COST_MIGRATE, COST_PTE, autonuma_cost
from numalab.diagnose.facts import Side
from numalab.diagnose.result import Cost
from numalab.model.params import DEFAULTS

_COUNTED = ("numa_pte_updates", "numa_hint_faults", "numa_pages_migrated")


def cost(side: Side) -> Cost | None:
    """Estimate the cost of one side; None where a counter is missing or all are 0."""
    pte, faults, migrated = (side.value(name) for name in _COUNTED)
    if pte is None or faults is None or migrated is None or not (pte or faults or migrated):
        return None
    marks = pte * (DEFAULTS["pte_scan_ns"] + DEFAULTS["pte_update_ns"])
    move = DEFAULTS["migrate_ns"] + DEFAULTS["copy_page_ns"] + DEFAULTS["unmap_ns"]
    nanoseconds = marks + faults * DEFAULTS["hint_fault_ns"] + migrated * move
    return Cost(
        side.name or side.source,
        float(autonuma_cost(pte, faults, migrated)),
        float(autonuma_cost(pte, faults, migrated, copy=True)),
        nanoseconds / 1e9,
        side.seconds,
        (
            f"mmtests: {COST_PTE} accesses a mark, {COST_FAULT} a fault, {COST_MIGRATE} a page moved; "
            f"with the copy {COST_COPY} more, which mmtests computes and drops",
            f"CPU time, as the model has it: {DEFAULTS['pte_scan_ns'] + DEFAULTS['pte_update_ns']} ns a mark, "
            f"{DEFAULTS['hint_fault_ns']} ns a fault, {move} ns a page moved "
            "that one process maps; no waiting and no interrupts",
            "pages looked at and not marked are not counted, nor what a better place saved",
        ),
    )
