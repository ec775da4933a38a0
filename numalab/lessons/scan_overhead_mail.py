"""The mails of the scan overhead thread beside the model (``notebooks/30_scan_overhead.ipynb``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import xarray as xr

from numalab import _data, plots
from numalab.lessons.scan_overhead import BAD, OLD, counted_s, grown, work
from numalab.patch_threads import Claim, scan_overhead
from numalab.patch_threads.scan_overhead import from_stored
from numalab.patch_threads.scan_overhead_cases import Values, published
from numalab.patch_threads.scan_overhead_report import Results, main_options
from numalab.text import table
from numalab.widgets import Printed

#: The kernel of the mail that has the rules of 3.19 again.
REPAIRED = "+p2"


def picture() -> plots.Spans:
    """Return the mail's table: migrations and run time of each kernel, relative to 3.19."""
    counts, seconds = published()["migrations"]["per_10s"], published()["run_time"]["seconds"]
    spread = published()["migrations"]["spread"]
    migrated = {
        kernel: plots.Span.of_mean(count, count * spread.get(kernel, 0.0)).over(counts[OLD])
        for kernel, count in counts.items()
    }
    times = {kernel: plots.Span.of_mean(value, 0.0).over(seconds[OLD]) for kernel, value in seconds.items()}
    series = {"pages migrated in 10 s": migrated, "run time": times}
    return plots.Spans("3.19 = 1", series, ends="what perf gave as its error", line=1.0)


def counters() -> Printed:
    """Return the mail's counters of whole runs, and what they come to per second and per fault."""
    mail, seconds = published()["vmstat"], run_times()
    rows = []
    for kernel, faults in mail["numa_hint_faults"].items():
        scanned, local, moved = (
            mail[f"numa_{name}"][kernel] for name in ("pte_updates", "hint_faults_local", "pages_migrated")
        )
        rows.append(
            [
                kernel, f"{seconds[kernel]} s", f"{scanned / 1e6:.1f} M", f"{faults / 1e6:.1f} M",
                f"{scanned / seconds[kernel]:,.0f}", f"{100 * local / faults:.0f} %", f"{100 * moved / faults:.0f}",
            ]
        )  # fmt: skip
    head = ["kernel", "run time", "PTE updates", "hint faults", "updates a second", "local", "moved of 100 faults"]
    return Printed(table(head, rows))


def run_times() -> dict[str, float]:
    """Return the run times with both options by kernel, seconds."""
    both: dict[str, float] = published()["configurations"][0]["seconds"]
    return both | published()["run_time"]["seconds"]


@lru_cache(maxsize=1)
def claims() -> list[Claim]:
    """Return the mail's claims with the answers of the stored replay."""
    return scan_overhead.replay_stored().claims


#: Options as short as an axis has room for.
_SHORT = {"ag_stride=-1,bhash=101073": "both", "bhash=101073": "bhash", "ag_stride=-1": "stride", "defaults": "none"}


def times() -> plots.Spans:
    """Return the run times of all configurations relative to 3.19: the mail's, and those of the stored replay."""
    mail: dict[str, plots.Span] = {}
    model: dict[str, plots.Span] = {}
    for one in claims():
        if one.claim.startswith("run time, "):
            options, kernel = one.claim.removeprefix("run time, ").removesuffix(" / 3.19").rsplit(", ", 1)
            group = f"{_SHORT[options]}\n{kernel.removeprefix('4.0-')}"
            mail[group] = plots.Span.of_mean(float(one.published), 0.0)
            assert one.model is not None
            assert one.low is not None
            assert one.high is not None
            model[group] = plots.Span(one.model, one.low, one.high)
    return plots.Spans("run time, 3.19 = 1", {"the mail": mail, "the model": model}, ends="5-95 % of runs", line=1.0)


# ------------------------------------------------------------------------------------ where they differ
#: Counters of a second, and what a table calls them.
_RATES = {"numa_pte_updates": "PTE updates a second", "numa_hint_faults": "hint faults a second"}


def agreement(runs: Mapping[str, xr.Dataset]) -> Printed:
    """Return what 4.0-rc4 does a second relative to kernels with the old rules: mails, live runs, stored replay."""
    mail, seconds, moved = published()["vmstat"], run_times(), published()["migrations"]["per_10s"]
    old, bad = runs[OLD], runs[BAD]
    stored = _stored()
    rows = []
    for name, words in _RATES.items():
        cells = [mail[name][BAD] / seconds[BAD] / (mail[name][base] / seconds[base]) for base in (OLD, REPAIRED)]
        here = grown(bad, name) / counted_s(bad) / (grown(old, name) / counted_s(old))
        rows.append([words, *_ratios(*cells, here), _band(stored[name])])
    cells = [moved[BAD] / moved[base] for base in (OLD, REPAIRED)]
    here = grown(bad, "numa_pages_migrated") / grown(old, "numa_pages_migrated")
    rows.append(["pages migrated in 10 s", *_ratios(*cells, here), _band(stored["numa_pages_migrated"])])
    cells = [seconds[base] / seconds[BAD] for base in (OLD, REPAIRED)]
    rows.append(["work a second", *_ratios(*cells, work(bad) / work(old)), _band(stored["work"])])
    head = [f"{BAD} over ...", f"the mail: {OLD}", f"the mail: {REPAIRED}", f"here: {OLD}", f"stored runs: {OLD}"]
    return Printed(table(head, rows))


def faults_of_visits(runs: Mapping[str, xr.Dataset]) -> str:
    """Say how many of 100 page visits end in a hint fault, and how many of 100 marked pages the mail's runs found."""
    visits = [f"{100 * grown(runs[name], 'numa_hint_faults') / grown(runs[name], 'task_work_pages'):.0f} on {name}"
              for name in (OLD, BAD)]  # fmt: skip
    mail = published()["vmstat"]
    found = [
        f"{100 * faults / mail['numa_pte_updates'][kernel]:.0f} on {kernel}"
        for kernel, faults in mail["numa_hint_faults"].items()
        if kernel in (OLD, BAD)
    ]
    return (
        f"Here, of 100 page visits end in a hint fault: {', '.join(visits)}.\n"
        f"The mail, hint faults for 100 PTE updates: {', '.join(found)}."
    )


@lru_cache(maxsize=1)
def _stored() -> dict[str, Values]:
    """Return ratios of the stored runs, 4.0-rc4 over 3.19: (run,) by counter, whole runs a second, and the work."""
    results = Results(from_stored(json.loads(_data.read_text("results", "scan_overhead.json"))))
    pair = results.pair(main_options(), BAD, OLD)
    assert pair is not None
    bad, old = pair
    longer = bad.time_ratio(old)
    rates = {name: bad.total(name, old) / longer / old.total(name, old) for name in _RATES}
    return rates | {"numa_pages_migrated": bad.steady / old.steady, "work": 1 / longer}


def _ratios(*values: float) -> list[str]:
    return [f"{value:.2f}" for value in values]


def _band(values: Values) -> str:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
