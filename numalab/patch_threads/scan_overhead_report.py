"""Thread S2 as people read it: its claims beside the model, tables, and what the model cannot do."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from numalab.patch_threads import Claim
from numalab.patch_threads.scan_overhead_cases import (
    IPI_NS,
    PHASE_S,
    STEADY_S,
    STEP_US,
    Result,
    Values,
    flush_ns,
    published,
    real_phase_s,
)
from numalab.readers import trace
from numalab.schema import provenance
from numalab.text import table
from numalab.workloads import NAMED, xfs_repair

THREAD = "scan_overhead"
WRITE_FITTED = "writes are fitted to this kernel's"
TIME_FITTED = "what a flush costs the CPUs it interrupts is fitted to this"
ODD_COUNT = "contradicts its count per 10 s"
SAME_RULES, SAME = "one run with 3.19: same rules", "one run with 4.0-rc4"
SAVED = "model: second faults per hint fault"
DOUBLING = (
    "how soon the one thread that scans has doubled its period is a matter of when it meets a full node and of who "
    "moves it, which the mail does not tell"
)
JOINS = (
    "without stride the threads that read ahead live for seconds and join groups; how fast they do hangs on how often "
    "two of them meet on a page, and pages are visited at random here"
)
FIRST = "the first remote fault on a page migrates it, and how often pages come anew is not known"
COSTS = "there are no caches, contended locks or disks, and a flush costs every interrupted CPU the same"
#: Labels of the mail, and what the traces of a real kernel with switches call the same rules.
TRACES = {
    "4.0-rc1": "rc1",
    "4.0-rc4": "base",
    "+p1": "p1",
    "+p2": "p1p2",
    "+p3": "p1p2p3",
    "3.19": "p1p2",
    "3.19-vma-write": "p1p2",
}


class Results:
    """Results of cases by configuration and kernel.

    Parameters
    ----------
    found : sequence of Result
    """

    def __init__(self, found: Sequence[Result]) -> None:
        self._by = {(one.case.options, label): one for one in found for label in one.case.labels}

    def get(self, options: str, label: str) -> Result | None:
        """Return a result, None if it was not simulated."""
        return self._by.get((options, label))

    def pair(self, options: str, label: str, base: str) -> tuple[Result, Result] | None:
        """Return a result and the one it is compared with; None unless both are there."""
        one, other = (self.get(options, name) for name in (label, base))
        return (one, other) if one and other else None


def main_options() -> str:
    """Return the configuration with both options, in which the mail counted."""
    options: str = published()["configurations"][0]["options"]
    return options


# ------------------------------------------------------------------------------------ the real kernel
@lru_cache(maxsize=1)
def real() -> dict[str, dict[str, float]]:
    """Return means over repetitions of the traces ``S2_write_*``: label to counter (and ``runtime_s``) to value."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in trace.names():
        label = name.removeprefix("S2_write_").rsplit("_", 1)[0]
        if label in TRACES.values():
            how = provenance(trace.load(name))
            found.setdefault(label, []).append({**how["totals"], "runtime_s": how["results"]["runtime_s"]})
    return {
        label: {key: float(np.mean([run[key] for run in runs])) for key in runs[0] if all(key in run for run in runs)}
        for label, runs in found.items()
    }


def _real(label: str, base: str, counter: str) -> float | None:
    """Return how many times as much of something the real kernel had with other rules; None with the same rules."""
    if TRACES[label] == TRACES[base]:
        return None
    return real()[TRACES[label]][counter] / real()[TRACES[base]][counter]


# ------------------------------------------------------------------------------------ claims
def claims(found: Sequence[Result], bench: Sequence[Values]) -> list[Claim]:
    """Compare what was simulated with the mail's figures."""
    results = Results(found)
    answer = [*_migrations(results), *_run_times(results), *_vmstat(results)]
    if bench:
        answer.append(_bench(bench))
    return answer


def _claim(
    what: str,
    words: str,
    values: Values,
    *,
    holds: bool | None,
    note: str = "",
    actual: float | None = None,
    source: str = "20150324115141.GS28621@dastard",
    tolerance: str,
) -> Claim:
    low, middle, high = (float(value) for value in np.quantile(values, [0.05, 0.5, 0.95]))
    allowed = "" if holds is None else tolerance
    return Claim(THREAD, what, f"<{source}>", words, middle, low, high, actual, holds, note, allowed)


def _within(tolerance: float) -> str:
    return f"within {100 * tolerance:.0f} %"


def within(model: float, mail: float, tolerance: float) -> bool:
    """Tell whether a ratio is near enough: it differs by at most this share of the mail's."""
    return abs(model - mail) <= tolerance * mail


def _migrations(results: Results) -> list[Claim]:
    mail, options = published()["migrations"], main_options()
    counts, base = mail["per_10s"], mail["base"]
    answer = []
    for label, count in counts.items():
        pair = results.pair(options, label, base)
        if label == "3.19" or pair is None:
            continue
        values = pair[0].steady / pair[1].steady
        ratio = count / counts["3.19"]
        alike = "4.0-rc4" in pair[0].case.labels
        good = within(float(np.median(values)), ratio, mail["tolerance"])
        note = WRITE_FITTED if label == "4.0-rc4" else SAME if alike else DOUBLING if not good else ""
        if pair[0] is pair[1]:
            note = SAME_RULES
        answer.append(
            _claim(
                f"migrations per 10 s, {label} / {base}",
                f"{ratio:.2f}",
                values,
                holds=None if alike else good,
                note=note,
                actual=_real(label, base, "numa_pages_migrated"),
                tolerance=_within(mail["tolerance"]),
            )
        )
    return answer + _order(results)


def _order(results: Results) -> list[Claim]:
    """Return the claims about which kernels are equal, and which clearly apart."""
    counts, options = published()["migrations"]["per_10s"], main_options()
    answer = []
    cases = [results.get(options, label) for label in ("+p2", "+p3", "4.0-rc4", "+p1")]
    if all(cases):
        new, old = ([one.steady for one in part if one] for part in (cases[:2], cases[2:]))
        values = np.max(new, axis=0) / np.min(old, axis=0)
        words = max(counts["+p2"], counts["+p3"]) / min(counts["4.0-rc4"], counts["+p1"])
        clear = bool(np.quantile(new, 0.95) < np.quantile(old, 0.05))
        answer.append(
            _claim(
                "migrations: +p2 and +p3 clearly below 4.0-rc4 and +p1",
                f"{words:.2f}",
                values,
                holds=clear,
                tolerance="90 % bands apart",
            )
        )
    pair = results.pair(options, "+p1", "4.0-rc4")
    if pair:
        values = pair[0].steady / pair[1].steady
        words = counts["+p1"] / counts["4.0-rc4"]
        noise = bool(np.quantile(values, 0.05) <= 1 <= np.quantile(values, 0.95))
        answer.append(
            _claim(
                "migrations, +p1 / 4.0-rc4: equal",
                f"{words:.2f}, noise",
                values,
                holds=noise,
                note="memory once written: both rules say the same",
                actual=_real("+p1", "4.0-rc4", "numa_pages_migrated"),
                tolerance="1 in the 90 % band",
            )
        )
    return answer


def _run_times(results: Results) -> list[Claim]:
    """Return the run times of both tables, relative to 3.19 in the same configuration."""
    mail = published()
    tolerance = mail["summary"]["tolerance"]
    answer = []
    for one in mail["configurations"]:
        seconds = dict(one["seconds"])
        if one["options"] == main_options():
            seconds |= mail["run_time"]["seconds"]
        for label in mail["kernels"]:
            pair = results.pair(one["options"], label, "3.19")
            if label == "3.19" or label not in seconds or pair is None:
                continue
            values, ratio = pair[0].time_ratio(pair[1]), seconds[label] / seconds["3.19"]
            good = within(float(np.median(values)), ratio, tolerance)
            main = one["options"] == main_options()
            actual = _real(label, "3.19", "runtime_s") if main else None
            what = f"run time, {one['options']}, {label} / 3.19"
            note = "" if good else JOINS if label == "4.0-rc4" else COSTS
            fitted = main and "4.0-rc4" in pair[0].case.labels
            if fitted:
                note = TIME_FITTED if label == "4.0-rc4" else SAME
            answer.append(
                _claim(
                    what,
                    f"{ratio:.2f}",
                    values,
                    holds=None if fitted else good,
                    note=note,
                    actual=actual,
                    tolerance=_within(tolerance),
                )
            )
    return answer


def _vmstat(results: Results) -> list[Claim]:
    mail, options = published()["vmstat"], main_options()
    answer = []
    for counter, what in (("numa_pte_updates", "PTE updates"), ("numa_pages_migrated", "pages migrated")):
        pair = results.pair(options, "+p3", "+p2")
        if pair:
            values = 100 * (pair[0].total(counter, pair[1]) / pair[1].total(counter, pair[1]) - 1)
            change = 100 * (mail[counter]["+p3"] / mail[counter]["+p2"] - 1)
            good = abs(float(np.median(values)) - change) <= mail["points"]
            actual = 100 * (real()[TRACES["+p3"]][counter] / real()[TRACES["+p2"]][counter] - 1)
            name = f"patch 3: {what}, whole run [%]"
            answer.append(
                _claim(
                    name,
                    f"{change:.1f}",
                    values,
                    holds=good,
                    note="" if good else DOUBLING,
                    actual=actual,
                    tolerance=f"within {mail['points']} points",
                )
            )
    base = results.get(options, "3.19")
    if base:
        answer += [*_local(results, base), *_per_fault(results, base)]
    return answer


def _local(results: Results, base: Result) -> list[Claim]:
    low, high = published()["vmstat"]["local_share"]
    kernels = [results.get(main_options(), label) for label in published()["kernels"]]
    values = np.concatenate(
        [one.share("numa_hint_faults_local", "numa_hint_faults", base) for one in kernels if one is not None]
    )
    good = low <= round(float(np.median(values)), 2) <= high
    words = f"{low:.2f}-{high:.2f}"
    what = "local share of hint faults, all kernels"
    return [_claim(what, words, values, holds=good, tolerance=f"median in {words}")]


def _per_fault(results: Results, base: Result) -> list[Claim]:
    """Return migrations per hint fault, judged as migrations are."""
    mail, tolerance = published()["vmstat"], published()["migrations"]["tolerance"]
    answer = []
    for label, migrated in mail["numa_pages_migrated"].items():
        one = results.get(main_options(), label)
        if one is None:
            continue
        values = one.share("numa_pages_migrated", "numa_hint_faults", base)
        share = migrated / mail["numa_hint_faults"][label]
        reason = {"3.19": ODD_COUNT, "4.0-rc4": WRITE_FITTED}.get(label)
        good = within(float(np.median(values)), share, tolerance)
        run = real()[TRACES[label]]
        answer.append(
            _claim(
                f"migrations per hint fault, {label}",
                f"{share:.3f}",
                values,
                holds=None if reason else good,
                note=reason or ("" if good else DOUBLING if label == "+p3" else FIRST),
                actual=run["numa_pages_migrated"] / run["numa_hint_faults"],
                tolerance=_within(tolerance),
            )
        )
    return answer


def _bench(faults: Sequence[Values]) -> Claim:
    """Return what patch 2 does to minor faults of autonumabench, with the mail's hint faults and first touches."""
    mail = published()["autonumabench"]
    before, after = mail["minor_faults"]
    values = -100 * (faults[0] - faults[1]) * mail["hint_faults"] / before
    change = 100 * (after / before - 1)
    good = abs(float(np.median(values)) - change) <= mail["points"]
    return _claim(
        "patch 2: minor faults of autonumabench [%]",
        f"{change:.1f}",
        values,
        holds=good,
        note=SAVED,
        source=mail["source"].split(";")[0],
        tolerance=f"within {mail['points']} points",
    )


# ------------------------------------------------------------------------------------ text
def head() -> str:
    """Print what the thread asks, and why it is so."""
    mail = published()["thread"]
    parts = [
        f"{mail['subject']}\n{mail['author']}, {mail['date']}, <{mail['message_id']}>",
        paragraph(
            "The mails: xfs_repair takes 1.6 to 2 times as long on 4.0-rc as on 3.19, with the same share of local "
            "faults. It migrates twice as many pages, and each migration flushes the TLBs of all CPUs. Patch 1 groups "
            "threads by the mapping's rights, patch 2 keeps the write permission of a page, patch 3 slows scanning "
            "down after failed migrations."
        ),
        paragraph(
            "Why: with threads anywhere, three faults of four are remote. A page migrates if its last user was on the "
            "node of this fault too, one in four, or if it has no last user yet. A write to a page that has lost its "
            "permission is a second fault, and that wipes the last user: so a page once written migrates at each "
            "remote fault. Full nodes refuse some."
        ),
    ]
    return "\n\n".join(parts)


def how() -> str:
    """Print what was assumed, derived and fitted."""
    first, last = PHASE_S - STEADY_S, PHASE_S
    load = NAMED["xfs_repair"].parameters
    life_ms = xfs_repair(repair_s=2 * real_phase_s()).processes[0].thread_life_ms
    return "\n".join(
        [
            "How the model stands for it:",
            _item(
                f"Phases 3 and 4 of {PHASE_S:.0f} s each, in steps of {STEP_US // 1000} ms, stand for two of "
                f"{real_phase_s():.0f} s: what happens until {first:.0f} s counts once, {first:.0f} to {last:.0f} s "
                "(the migrations per 10 s) for the rest of phase 3. All else is over the whole run, for equal work. "
                "Run times are relative to 3.19 in the same configuration: how long disk and work take is not modelled."
            ),
            _item(
                "Configurations, from xfsprogs: ag_stride=-1 switches striding off (8 busy threads, say the mails); "
                "without it 34 groups are worked on at once; without bhash the cache is 32 MB, with it 6.3 GB."
            ),
            _item(
                "Threads: one in eight lives as long as the program and so does all the scanning; the others read "
                f"ahead and end with their allocation group, after {life_ms:,.0f} ms (from 500 groups in each of two "
                "phases of 3.19), without stride after 34 times that. That is too short for a placement but long "
                "enough to join a group, which keeps many of their faults from migrating; in 4.0-rc1 none may group."
            ),
            _item(
                f"Derived: a migration waits {flush_ns() / 1000:.0f} us for other CPUs, from the share of flushes in "
                f"the profile of 4.0-rc4. Fitted: it costs each other running thread {IPI_NS / 1000:.0f} us, to the "
                f"run time of 4.0-rc4; {load['pages_per_s']:,.0f} page visits a second and thread, to the PTE updates "
                f"a second of +p2; {load['write']:.0%} of the pages found are written, to the migrations of 4.0-rc4."
            ),
            _item(
                "4.0-rc4 and +p1 are one run, and so are 3.19 and +p2: their rules differ in words only for memory "
                "that was written once."
            ),
        ]
    )


def paragraph(text: str) -> str:
    """Break text into lines."""
    return textwrap.fill(text, 116)


def _item(text: str) -> str:
    return textwrap.fill(text, 116, initial_indent="* ", subsequent_indent="  ")


def kernels_table(found: Sequence[Result]) -> str:
    """Print what each kernel did in the main configuration, per second of its run."""
    results, options, base = Results(found), main_options(), published()["migrations"]["base"]
    rows = []
    for label in published()["kernels"]:
        pair = results.pair(options, label, base)
        if pair:
            rows.append(_kernel_row(label, *pair))
    columns = ["kernel", "PTE updates/s", "faults/s", "local", "migrated/s", "per fault", "refused/s", "time"]
    columns.insert(-1, "per 10 s, steady")
    note = paragraph("Medians over the whole run; time: relative to 3.19.")
    return f"{table(columns, rows)}\n{note}"


def _kernel_row(label: str, one: Result, base: Result) -> list[str]:
    def rate(counter: str) -> str:
        return f"{np.median(one.counts[counter].sum(axis=0)) / (2 * real_phase_s()):,.0f}"

    def per_fault(counter: str) -> str:
        return f"{np.median(one.share(counter, 'numa_hint_faults', base)):.3f}"

    return [
        label,
        rate("numa_pte_updates"),
        rate("numa_hint_faults"),
        per_fault("numa_hint_faults_local"),
        rate("numa_pages_migrated"),
        per_fault("numa_pages_migrated"),
        rate("migrate_refused"),
        f"{np.median(one.steady):,.0f}",
        f"{np.median(one.time_ratio(base)):.2f}",
    ]
