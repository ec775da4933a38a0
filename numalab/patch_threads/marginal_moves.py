"""Thread S4, July 2014: did 94 % more local faults help?

A commit lets a task search its preferred node even when that is full. More tasks move; each NUMA move puts a scan
period back to its start, more memory is marked, and more faults, local ones too, are counted. The mail that answers
the report wants moves that gain little to stop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from numalab import __version__, _data, runs
from numalab.kernel import Kernel
from numalab.patch_threads import Keep, Replay
from numalab.patch_threads import marginal_moves_report as report
from numalab.patch_threads.claims import claims_table
from numalab.patch_threads.marginal_moves_cases import (
    FULL,
    GAIN_NAMES,
    QUICK,
    Case,
    Result,
    Size,
    Values,
    cases,
    measure,
    run_all,
)
from numalab.patch_threads.marginal_moves_plots import plot_gains, plot_local

THREAD = "marginal_moves"


def replay(*, seeds: int = 12, full: bool = False, progress: bool = False, keep: Keep | None = None) -> Replay:
    """Run hackbench and the JVM on the mail's kernels, and print them beside the mail.

    Without ``full`` one thread of hackbench stands for several (`marginal_moves_cases.QUICK`). Ctrl-C ends it early
    with the cases that are finished.

    Raises
    ------
    KeyboardInterrupt
        Before any case was finished.
    """
    todo, size = cases(full), FULL if full else QUICK
    found: dict[str, Result] = {}
    outcome = Replay(THREAD, keep=keep)
    try:
        for case, ds in run_all(todo, range(seeds), size, progress):
            found[case.name] = measure(case, ds)
            outcome.add(case.name, ds)
    except KeyboardInterrupt:
        if not found:
            raise
        outcome.interrupted = True
    ordered = [found[case.name] for case in todo if case.name in found]
    _tell(outcome, ordered, size)
    outcome.results = stored_form(ordered, range(seeds), size)
    if outcome.interrupted:
        outcome.text = f"Interrupted: {len(found)} of {len(todo)} cases are finished.\n\n{outcome.text}"
    return outcome


def replay_stored() -> Replay:
    """Print the results that numalab ships, of all cases, without running anything."""
    facts = json.loads(_data.read_text("results", "marginal_moves.json"))
    outcome = Replay(THREAD, results=facts)
    size = Size(**facts["size"])
    part = "" if size == FULL else ", with hackbench as in the quick replay"
    said = (
        f"Stored results of all cases{part}: {len(facts['seeds'])} seeds, numalab {facts['numalab']} at "
        f"{facts['revision']}."
    )
    _tell(outcome, from_stored(facts), size, said)
    return outcome


def _tell(outcome: Replay, found: Sequence[Result], size: Size, *said: str) -> None:
    outcome.claims = report.claims(found)
    parts = [report.head(), *said, report.how(size)]
    printed = report.lkp_tables(found)
    if printed:
        parts += [f"The report:\n{printed[0]}", f"The model, in the same format:\n{printed[1]}"]
    parts += [report.counters_table(found), report.gains_table(found), claims_table(outcome.claims)]
    outcome.text = "\n\n".join(part.rstrip("\n") for part in parts)
    figures = {"local": plot_local(found), "gains": plot_gains(found)}
    outcome.figures = {name: figure for name, figure in figures.items() if figure is not None}


def stored_form(found: Sequence[Result], seeds: range, size: Size) -> dict[str, Any]:
    """Return results as they are stored: plain numbers with their provenance."""

    def plain(values: Values) -> list[Any]:
        numbers: list[Any] = np.round(values).astype(int).tolist()
        return numbers

    return {
        "thread": THREAD,
        "numalab": __version__,
        "revision": runs.revision(),
        "size": asdict(size),
        "seeds": list(seeds),
        "gain_classes": list(GAIN_NAMES),
        "fitted": {},
        "cases": [
            {
                "load": one.case.load,
                "label": one.case.label,
                "kernel": {"name": one.case.kernel.name, "set": one.case.kernel.overrides},
                "seconds": one.seconds,
                "counts": {name: plain(values) for name, values in one.counts.items()},
                "swaps": plain(one.swaps),
                "moves": plain(one.moves),
            }
            for one in found
        ],
    }


def from_stored(facts: Mapping[str, Any]) -> list[Result]:
    """Return results from their stored form."""
    return [
        Result(
            Case(one["load"], one["label"], Kernel(one["kernel"]["name"], **one["kernel"]["set"])),
            one["seconds"],
            {name: np.array(values, float) for name, values in one["counts"].items()},
            np.array(one["swaps"], float),
            np.array(one["moves"], float),
        )
        for one in facts["cases"]
    ]
