"""Thread S0, January 2018: why do 288 readers of one array wait?

Processes that share an array copy-on-write trap its pages each for itself, and each may migrate a page under all the
others. The patch leaves pages of such areas alone that more than one process maps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from numalab import __version__, _data, runs
from numalab.patch_threads import Keep, Replay, shared_cow_guest
from numalab.patch_threads.shared_cow_cases import (
    BEFORE,
    MAIN,
    READINGS,
    STEP_US,
    VARIANTS,
    Case,
    Followed,
    Result,
    cases,
    follow,
    measure,
    published,
    run_all,
)
from numalab.patch_threads.shared_cow_plots import plot_guest, plot_main, plot_sweeps
from numalab.patch_threads.shared_cow_report import (
    claims,
    claims_table,
    head,
    main_table,
    remarks,
    sweep_table,
    variants_table,
)

THREAD = "shared_cow"


def replay(*, seeds: int = 12, full: bool = False, progress: bool = False, keep: Keep | None = None) -> Replay:
    """Run the mail's program, the variants discussed, and the traced readers, and print them beside the mail.

    Without ``full`` the second reading of the machine and the traced readers get a third of the seeds, and the sweeps
    are left out. Ctrl-C ends it early with what is finished.

    Raises
    ------
    KeyboardInterrupt
        Before any case was finished.
    """
    todo = cases(seeds, full)
    found: dict[str, Result] = {}
    followed: dict[str, Followed] = {}
    guest: shared_cow_guest.Guest = {}
    outcome = Replay(THREAD, keep=keep)
    try:
        for case, ds in run_all(todo, progress):
            found[case.name] = measure(case, ds)
            if case.is_main:
                outcome.add(f"{case.label}-{case.reading.cpus}cpus", ds)
        for label, kernel in VARIANTS.items():
            followed[label] = follow(kernel)
        for label, quantities in shared_cow_guest.run(seeds if full else max(2, seeds // 3), progress):
            guest[label] = quantities
    except KeyboardInterrupt:
        if not found:
            raise
        outcome.interrupted = True
    # not in the order in which processes finished them
    ordered = [found[case.name] for case, _ in todo if case.name in found]
    guest = {label: guest[label] for label in shared_cow_guest.LABELS.values() if label in guest}
    _tell(outcome, ordered, followed, guest)
    outcome.results = stored_form(ordered, followed, guest, seeds)
    if outcome.interrupted:
        outcome.text = f"Interrupted: {len(found)} of {len(todo)} cases are finished.\n\n" + outcome.text
    return outcome


def replay_stored() -> Replay:
    """Print the results of the full replay that numalab ships, without running anything."""
    facts = json.loads(_data.read_text("results", "shared_cow.json"))
    outcome = Replay(THREAD, results=facts)
    _tell(outcome, *from_stored(facts))
    how = (
        f"Stored results of `numalab replay shared_cow --full --seeds {facts['seeds']}`: "
        f"step {facts['step_us']} us, numalab {facts['numalab']} at {facts['revision']}."
    )
    outcome.text = f"{how}\n\n{outcome.text}"
    return outcome


def _tell(
    outcome: Replay, found: Sequence[Result], followed: Mapping[str, Followed], guest: shared_cow_guest.Guest
) -> None:
    """Fill in claims, text and figures from whatever is finished."""
    outcome.claims = claims(found, followed, guest)
    parts = [head(), main_table(found), variants_table(found, followed), sweep_table(found)]
    outcome.text = "\n\n".join(part for part in (*parts, claims_table(outcome.claims), remarks(found)) if part)
    figures = {"main": plot_main(found), "guest": plot_guest(guest), "sweeps": plot_sweeps(found)}
    outcome.figures = {name: figure for name, figure in figures.items() if figure is not None}


def stored_form(
    found: Sequence[Result], followed: Mapping[str, Followed], guest: shared_cow_guest.Guest, seeds: int
) -> dict[str, Any]:
    """Return results as they are stored: plain numbers with their provenance."""
    return {
        "thread": THREAD,
        "numalab": __version__,
        "revision": runs.revision(),
        "step_us": STEP_US,
        "seeds": seeds,
        "fitted": fitted(),
        "cases": [
            {
                "label": one.case.label,
                "cpus": one.case.reading.cpus,
                "per_mapping_ns": one.case.reading.per_mapping_ns,
                "step_us": one.case.step_us,
                "kernel": {"name": one.case.kernel.name, "set": one.case.kernel.overrides},
                "readers": one.case.readers,
                "ints": one.case.ints,
                **one.numbers(),
            }
            for one in found
        ],
        "followed": {label: asdict(one) for label, one in followed.items()},
        "guest": shared_cow_guest.plain(guest),
    }


def fitted() -> dict[str, Any]:
    """Return the constants that were fitted, and to what."""
    told = published()["throughput"]
    answer: dict[str, Any] = {}
    for cpus, one in READINGS.items():
        answer[f"per_mapping_ns, {cpus} CPUs"] = {
            "value": one.per_mapping_ns,
            "to": f"throughput before the patch / off, {told['before'] / told['off']:.4f}",
        }
        answer[f"pass_ms, {cpus} CPUs"] = {
            "value": round(one.pass_ms, 4),
            "to": "passes in 10 s with balancing off (computed from them)",
        }
    return answer


def from_stored(facts: Mapping[str, Any]) -> tuple[list[Result], dict[str, Followed], shared_cow_guest.Guest]:
    """Take back what `stored_form` gave."""
    found = []
    for one in facts["cases"]:
        kernel = MAIN.get(one["label"], VARIANTS.get(one["label"], BEFORE))
        reading = replace(READINGS[one["cpus"]], per_mapping_ns=one["per_mapping_ns"])
        case = Case(one["label"], reading, kernel, one["readers"], one["ints"], one["step_us"])
        numbers = {name: np.array(one[name]) for name in Result.__dataclass_fields__ if name != "case"}
        found.append(Result(case, **numbers))
    followed = {label: Followed(**one) for label, one in facts["followed"].items()}
    return found, followed, shared_cow_guest.read(facts["guest"])
