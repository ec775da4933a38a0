"""Thread S2, March 2015: why did ``xfs_repair`` take twice as long, with the same locality?

Linux 4.0-rc lost the write permission of a page at each hint fault, and with it much more: the fault that restores it
wipes the record of the page's last user, and the next hint fault migrates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from numalab import __version__, _data, runs
from numalab.kernel import Kernel
from numalab.patch_threads import Keep, Replay, scan_overhead_report
from numalab.patch_threads.claims import claims_table
from numalab.patch_threads.scan_overhead_cases import (
    IPI_NS,
    MACHINE,
    STEP_US,
    Case,
    Result,
    Values,
    bench_faults,
    cases,
    flush_ns,
    measure,
    run_all,
)
from numalab.patch_threads.scan_overhead_plots import plot_counts, plot_times
from numalab.workloads import NAMED

THREAD = "scan_overhead"
#: Runs of autonumabench: its faults hardly differ between seeds.
BENCH_SEEDS = 2
REAL = "Real: the traces S2_write of a kernel with the same rules under another load, means over repetitions."


def replay(*, seeds: int = 12, full: bool = False, progress: bool = False, keep: Keep | None = None) -> Replay:
    """Run the mail's kernels with both options, or with ``full`` all configurations, and print them beside the mail.

    Ctrl-C ends it early with the cases that are finished.

    Raises
    ------
    KeyboardInterrupt
        Before any case was finished.
    """
    todo = cases(full)
    found: dict[str, Result] = {}
    bench: list[Values] = []
    outcome = Replay(THREAD, keep=keep)
    try:
        for case, ds in run_all(todo, range(seeds), progress):
            found[case.name] = measure(case, ds)
            outcome.add(case.name, ds)
        bench = bench_faults(range(min(seeds, BENCH_SEEDS)), progress)
    except KeyboardInterrupt:
        if not found:
            raise
        outcome.interrupted = True
    ordered = [found[case.name] for case in todo if case.name in found]
    _tell(outcome, ordered, bench)
    outcome.results = stored_form(ordered, bench, range(seeds))
    if outcome.interrupted:
        outcome.text = f"Interrupted: {len(found)} of {len(todo)} cases are finished.\n\n{outcome.text}"
    return outcome


def replay_stored() -> Replay:
    """Print the results of the full replay that numalab ships, without running anything."""
    facts = json.loads(_data.read_text("results", "scan_overhead.json"))
    outcome = Replay(THREAD, results=facts)
    said = scan_overhead_report.paragraph(
        f"Stored results of `numalab replay scan_overhead --full`: {len(facts['seeds'])} seeds, step "
        f"{facts['step_us']} us, numalab {facts['numalab']} at {facts['revision']}."
    )
    _tell(outcome, from_stored(facts), [np.array(one) for one in facts["bench_faults"]], said)
    return outcome


def _tell(outcome: Replay, found: Sequence[Result], bench: Sequence[Values], *said: str) -> None:
    report = scan_overhead_report
    outcome.claims = report.claims(found, bench)
    parts = [
        report.head(),
        *said,
        report.how(),
        report.kernels_table(found),
        claims_table(outcome.claims),
        REAL,
    ]
    outcome.text = "\n\n".join(parts)
    figures = {"counts": plot_counts(outcome.claims), "times": plot_times(outcome.claims)}
    outcome.figures = {name: figure for name, figure in figures.items() if figure is not None}


def stored_form(found: Sequence[Result], bench: Sequence[Values], seeds: range) -> dict[str, Any]:
    """Return results as they are stored: plain numbers with their provenance."""

    def plain(values: Values) -> list[Any]:
        numbers: list[Any] = np.round(values, 4).tolist()
        return numbers

    return {
        "thread": THREAD,
        "numalab": __version__,
        "revision": runs.revision(),
        "machine": MACHINE,
        "step_us": STEP_US,
        "flush_ns": flush_ns(),
        "ipi_ns": IPI_NS,
        "fitted": fitted(),
        "seeds": list(seeds),
        "bench_faults": [plain(one) for one in bench],
        "cases": [
            {
                "labels": list(one.case.labels),
                "options": one.case.options,
                "phase_s": one.case.phase_s,
                "kernel": {"name": one.case.kernel.name, "set": one.case.kernel.overrides},
                "work_pages": plain(np.round(one.work)),
                "counts": {name: plain(values) for name, values in one.counts.items()},
                "migrated_per_10s": plain(one.steady),
            }
            for one in found
        ],
    }


def fitted() -> dict[str, Any]:
    """Return the constants that were fitted, and to what."""
    load = NAMED["xfs_repair"].parameters
    return {
        "write": {"value": load["write"], "to": "migrations per 10 s of 4.0-rc4, relative to 3.19"},
        "pages_per_s": {"value": load["pages_per_s"], "to": "PTE updates per second of +p2"},
        "ipi_ns": {"value": IPI_NS, "to": "run time of 4.0-rc4 with both options, relative to 3.19"},
        "ipi_wait_ns": {"value": flush_ns(), "to": "share of TLB flushes in the profile of 4.0-rc4 (computed from it)"},
    }


def from_stored(facts: dict[str, Any]) -> list[Result]:
    """Return results from their stored form."""
    return [
        Result(
            Case(
                tuple(one["labels"]),
                one["options"],
                Kernel(one["kernel"]["name"], **one["kernel"]["set"]),
                one["phase_s"],
            ),
            np.array(one["work_pages"]),
            {name: np.array(values) for name, values in one["counts"].items()},
            np.array(one["migrated_per_10s"]),
        )
        for one in facts["cases"]
    ]
