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
    mark = DEFAULTS["pte_scan_ns"] + DEFAULTS["pte_update_ns"]
    move = DEFAULTS["migrate_ns"] + DEFAULTS["copy_page_ns"] + DEFAULTS["unmap_ns"]
    nanoseconds = pte * mark + faults * DEFAULTS["hint_fault_ns"] + migrated * move
    return Cost(
        side.name or side.source,
        float(autonuma_cost(pte, faults, migrated)),
        float(autonuma_cost(pte, faults, migrated, copy=True)),
        nanoseconds / 1e9,
        side.seconds,
        (
            f"mmtests' AutoNUMA cost counts memory accesses: {COST_PTE} a mark, {COST_FAULT} a fault, "
            f"{COST_MIGRATE} a page moved (with the copy {COST_COPY} more, which mmtests computes and drops); quote it "
            "beside tables of mmtests",
            f"CPU time counts nanoseconds at the model's prices: {mark} a mark, {DEFAULTS['hint_fault_ns']} a fault, "
            f"{move} a page moved, copy included; quote it to say what share of the machine balancing took",
            f"they differ because a fault costs mmtests {COST_FAULT // COST_MIGRATE} times what a page moved does, and "
            f"the model {DEFAULTS['hint_fault_ns'] / move:.1g} times; and because an access has no fixed time",
        ),
        (
            "a page moved is mapped by one process; nothing waits, and nothing is interrupted",
            "pages looked at and not marked are not counted, nor what a better place saved",
        ),
    )
