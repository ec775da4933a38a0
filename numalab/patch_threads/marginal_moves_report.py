"""Thread S4 in words: the claims and the tables, from the numbers of the runs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numalab import tables
from numalab.compare import compare
from numalab.patch_threads import Claim
from numalab.patch_threads.marginal_moves_cases import (
    ANY_GAIN,
    BASE,
    BRANCH,
    BRANCH_PATCHED,
    GAIN_NAMES,
    HACKBENCH,
    JVM,
    LATER,
    NEW,
    NO_HYSTERESIS,
    PATCHED,
    WITHOUT,
    Result,
    Size,
    Values,
    published,
)
from numalab.readers import lkp, trace
from numalab.sides import VMSTAT, Quantity, Side, sample
from numalab.text import table
from numalab.writers import lkp as lkp_writer

THREAD = "marginal_moves"
#: Column of the mail's patch in the LKP table: it has no commit.
PATCH_COLUMN = "prevent-marginal-moves"
#: A trace of "several" events a minute: at least this many.
SEVERAL = 3
NOT_GIVEN = "(not given)"


# ------------------------------------------------------------------------------------ which numbers
class Results:
    """Results by load and label."""

    def __init__(self, found: Sequence[Result]) -> None:
        self.all = {(one.case.load, one.case.label): one for one in found}

    def get(self, load: str, *labels: str) -> list[Result] | None:
        """Return the results of a load in the order of the labels; None if one is missing."""
        if any((load, label) not in self.all for label in labels):
            return None
        return [self.all[load, label] for label in labels]


def spread(values: Values) -> float:
    """Return the standard deviation in percent of the mean."""
    return float(100 * values.std(ddof=1) / values.mean()) if len(values) > 1 else 0.0


# ------------------------------------------------------------------------------------ the real kernel
@lru_cache(maxsize=1)
def _traces() -> dict[str, list[dict[str, float]]]:
    """Return the counters of the real kernel's runs by "case label", one entry a repetition."""
    answer: dict[str, list[dict[str, float]]] = {}
    for name in trace.names():
        if name.startswith("S4_"):
            # ten times as fast as the packed dataset, and the same: only what its provenance holds is needed
            with trace.folder(name) as folder:
                facts = json.loads(trace.read(folder).dataset().attrs["numalab_params"])
            answer.setdefault(name[len("S4_") : -len("_r1")], []).append(facts["totals"] | facts["results"])
    return answer


def real_ratio(case: str, label: str, base: str, counter: str) -> float:
    """Return the median over repetitions of a counter's ratio between two variants of the real kernel."""
    pairs = zip(_traces()[f"{case}_{label}"], _traces()[f"{case}_{base}"], strict=True)
    return float(np.median([new[counter] / old[counter] for new, old in pairs]))


def real_small(kind: str, label: str) -> float:
    """Return the attempts of a kind, "swap" or "move", below the threshold: all repetitions of the JVM's runs."""
    classes = (f"k_{kind}_imp_{name}" for name in ("lt0", "0_29", "30_49"))
    return sum(run.get(name, 0.0) for name in classes for run in _traces()[f"jvm8_{label}"])


def real_attempts(kind: str, label: str) -> float:
    """Return all attempts of a kind, in all repetitions of the JVM's runs."""
    return sum(run.get(f"k_{kind}_try", 0.0) for run in _traces()[f"jvm8_{label}"])


# ------------------------------------------------------------------------------------ claims
def claims(found: Sequence[Result]) -> list[Claim]:
    """Compare what is finished with the mail, and with the traces of a real kernel."""
    results = Results(found)
    return [*_local(results), *_spreads(results), *_swaps(results), *_throughput(results), *_later(results)]


def _claim(
    what: str,
    words: str,
    model: Values | float,
    *,
    real: float | None = None,
    holds: bool | None = None,
    note: str = "",
    source: str | None = None,
    tolerance: str = "",
) -> Claim:
    """Make a claim of a number, or of numbers along seeds."""
    values = np.atleast_1d(np.asarray(model, float))
    low, middle, high = (float(value) for value in np.quantile(values, [0.05, 0.5, 0.95]))
    first, last = (None, None) if np.ndim(model) == 0 else (low, high)
    where = source or f"<{published()['thread']['message_id']}>"
    return Claim(THREAD, what, where, words, middle, first, last, real, holds, note, tolerance)


def _local(results: Results) -> list[Claim]:
    """Local hint faults with the commit, relative to those without: each load, and the table's TOTAL."""
    answer, both = [], []
    factor = published()["lkp"]["tolerance_factor"]

    def row(name: str, base: Values, new: Values, printed: dict[str, Any], real: float | None) -> Claim:
        mail = printed["new"] / printed["base"]
        middle = float(np.median(new / base))
        holds = middle > 1 and max(middle / mail, mail / middle) <= factor
        note = "" if holds else f"outside a factor of {factor}"
        return _claim(
            f"{name}: numa_hint_faults_local, with a43455a1 / before",
            f"{mail:.3f} (+{printed['change']} %)",
            new / base,
            real=real,
            holds=holds,
            note=note,
            tolerance=f"above 1, within a factor of {factor}",
        )

    for printed in published()["lkp"]["rows"]:
        pair = results.get(printed["load"], BASE, NEW)
        if pair:
            base, new = (one.local() for one in pair)
            both.append((base, new))
            real = real_ratio("hackbench", "post", "pre", "numa_hint_faults_local")
            answer.append(row(printed["test"], base, new, printed, real))
    if len(both) == len(published()["lkp"]["rows"]):
        base, new = (sum(some[1:], some[0]) for some in zip(*both, strict=True))
        answer.append(row("TOTAL", base, new, published()["lkp"]["total"], None))
    return answer


def _spreads(results: Results) -> list[Claim]:
    """Spread of these counts between runs."""
    answer = []
    most = published()["lkp"]["spread_at_most"]
    for printed in published()["lkp"]["rows"]:
        for label, key, what in ((BASE, "base_spread", "before"), (NEW, "new_spread", "with a43455a1")):
            one = results.get(printed["load"], label)
            if one and len(one[0].local()) > 1:
                value = spread(one[0].local())
                holds = value <= most
                answer.append(
                    _claim(
                        f"{printed['test']}, {what}: standard deviation [% of the mean]",
                        f"~{printed[key]} %",
                        value,
                        holds=holds,
                        note="" if holds else SPREAD_NOTE,
                        tolerance=f"at most {most:g}",
                    )
                )
    return answer


SPREAD_NOTE = (
    "more than 10 %. Counts come in passes over all memory, and how many there are hangs on when the first NUMA moves "
    "put scan periods back to their start. The report does not say how many runs of the program one of its values sums "
    "up; a value of the model is a single run"
)


def _swaps(results: Results) -> list[Claim]:
    """Compare the JVM with what the mail's trace saw, and with what its patch is for."""
    answer = []
    words, fall = published()["swaps"], published()["swaps"]["fall_at_least"]
    limit = published()["threshold"]["gain"]
    branch = results.get(JVM, BRANCH)
    if branch:
        small, every = branch[0].small(branch[0].swaps), branch[0].per_minute(branch[0].swaps)
        real = real_small("swap", "post") / real_attempts("swap", "post")
        several = bool(np.median(small) >= SEVERAL)
        answer += [
            _claim(
                f"{BRANCH}, JVM: swaps a minute that gain less than {limit}",
                words["words"],
                small,
                holds=several,
                tolerance=f"median {SEVERAL} or more",
            ),
            _claim("share of these in all swaps", NOT_GIVEN, small / np.maximum(every, 1e-9), real=real),
        ]
    pair = results.get(JVM, BRANCH, BRANCH_PATCHED)
    if pair:
        for kind in ("swap", "move"):
            before, after = (one.small(one.swaps if kind == "swap" else one.moves) for one in pair)
            gone = 1 - after / np.maximum(before, 1e-9)
            holds = bool(np.median(before) > 0 and np.median(gone) >= fall)
            answer.append(
                _claim(
                    f"{kind}s that gain less than {limit}: share gone with the mail's patch",
                    f"{words['patched_words']} ({fall:.0%} or more)",
                    gone,
                    real=1 - real_small(kind, "prop50") / real_small(kind, "post"),
                    holds=holds,
                    tolerance=f"median {fall:g} or more",
                )
            )
    pair = results.get(JVM, BRANCH, NO_HYSTERESIS)
    if pair:
        before, after = (one.small(one.swaps) for one in pair)
        left = before / np.maximum(after, 1e-9)
        answer.append(
            _claim(
                f"swaps that gain less than {limit}, with the 1/16 off the gain / without",
                "the hysteresis does not do it (over 0.5)",
                left,
                holds=bool(np.median(left) > 0.5),
                tolerance="median above 0.5",
                note=(
                    f"the real kernel's attempts, {real_small('swap', 'post'):.0f} with and "
                    f"{real_small('swap', 'post_nohyst'):.0f} without, are too few"
                ),
            )
        )
    return answer


def _throughput(results: Results) -> list[Claim]:
    """Page visits: does the commit cost, and does the patch give it back?"""
    answer = []
    words = published()["regression"]["words"]
    real = real_ratio("hackbench", "post", "pre", "msgs_per_s")
    for load, box in HACKBENCH.items():
        pair = results.get(load, BASE, NEW)
        if pair:
            answer.append(_slower(f"{box}, hackbench: throughput, with a43455a1 / before", words, pair, real))
    pair = results.get(JVM, WITHOUT, BRANCH)
    if pair:
        real = real_ratio("jvm8", "post", "pre", "per_s")
        answer.append(_slower(f"JVM: throughput, {BRANCH} / {WITHOUT}", words, pair, real))
    pair = results.get(JVM, BRANCH, BRANCH_PATCHED)
    if pair:
        ratio = pair[1].counts["work"] / pair[0].counts["work"]
        answer.append(
            _claim(
                f"JVM: throughput, {BRANCH_PATCHED} / {BRANCH}",
                "the regression goes (above 1)",
                ratio,
                real=real_ratio("jvm8", "prop50", "post", "per_s"),
                holds=bool(np.quantile(ratio, 0.05) > 1),
                tolerance="90 % band above 1",
            )
        )
    return answer


def _slower(what: str, words: str, pair: Sequence[Result], real: float | None = None) -> Claim:
    base, new = pair
    ratio = new.counts["work"] / base.counts["work"]
    holds = bool(np.quantile(ratio, 0.95) < 1)
    return _claim(
        what,
        f"{words} (below 1)",
        ratio,
        real=real,
        holds=holds,
        note="" if holds else HACKBENCH_NOTE,
        tolerance="90 % band below 1",
    )


HACKBENCH_NOTE = (
    "no regression, nor is there one on the real kernel's guest. The model's hackbench touches memory at a steady "
    "rate: it has no messages, no wake-ups and no caches, so that a NUMA move costs it next to nothing"
)


def _later(results: Results) -> list[Claim]:
    """Show what the mail leaves open: the commit alone, and the rule merged in 2018."""
    answer = []
    limit = published()["threshold"]["gain"]
    alone = results.get(JVM, NEW)
    if alone:
        answer.append(
            _claim(
                f"3.16 {NEW} alone, JVM: swaps a minute that gain less than {limit}",
                NOT_GIVEN,
                alone[0].small(alone[0].swaps),
                note="shown only: the mail does not name the kernel of its trace",
            )
        )
    pair = results.get(JVM, ANY_GAIN, LATER)
    if pair:
        source = published()["later"]["commit"]
        for label, one in zip((ANY_GAIN, LATER), pair, strict=True):
            what = f"{label}, JVM: swaps a minute that gain less than {limit}"
            note = f"shown only; of {np.median(one.per_minute(one.swaps)):.3g} swaps a minute"
            answer.append(_claim(what, NOT_GIVEN, one.small(one.swaps), note=note, source=source))
    return answer


# ------------------------------------------------------------------------------------ text
def head() -> str:
    """Print what the mail is about."""
    mail, one = published()["thread"], published()["threshold"]
    said = textwrap.fill(
        "The mail: a robot reports that commit a43455a1, which lets a task search its preferred node even when that is "
        f'full, raises local hint faults. Its author answers that he traced "{published()["swaps"]["words"]}", and '
        f"proposes that a swap within a group, and a move to an idle CPU, must gain at least {one['gain']} of "
        f"{one['scale']}.",
        116,
    )
    return f"{mail['subject']}\n{mail['author']}, {mail['date']}, <{mail['message_id']}>\n\n{said}"


def how(size: Size) -> str:
    """Print what was assumed."""
    stands = (
        f"One thread of hackbench stands for {size.threads_per} here and wants to run as often as they, and its steps "
        f"are {size.hackbench_step_us // 1000} ms; --full takes every thread, in steps of 4 ms. "
        if size.threads_per > 1
        else ""
    )
    text = (
        f"The model: hackbench for {size.hackbench_s:.0f} s on kernel 3.16, with and without a43455a1; the JVM, a "
        f"thread for each of 80 CPUs on one heap, for {size.jvm_s:.0f} s on 3.17, whose branch had a43455a1 and the "
        "convergence series when the mail was written: it does not name the kernel of its trace. "
        f"{stands}Sizes and rates of both loads are assumed, and nothing was fitted."
    )
    return textwrap.fill(text, 116)


def comparison_side(name: str, load_results: Sequence[tuple[str, Result]]) -> Side:
    """Return the local hint faults of one kernel as a side of a comparison."""
    quantity = Quantity(published()["lkp"]["stat"], "faults", origin=VMSTAT)
    return Side(name, {(test, quantity.name): (quantity, sample(one.local().tolist())) for test, one in load_results})


def lkp_tables(found: Sequence[Result]) -> tuple[str, str] | None:
    """Return the report's table as published, and the model's in the same format; None without both commits."""
    results, printed = Results(found), published()["lkp"]
    rows = [row for row in printed["rows"] if results.get(row["load"], BASE, NEW)]
    if not rows:
        return None
    sides = []
    for label, name in ((BASE, printed["base"]), (NEW, printed["new"]), (PATCHED, PATCH_COLUMN)):
        own = [(row["test"], one[0]) for row in rows if (one := results.get(row["load"], label))]
        if len(own) == len(rows):
            sides.append(comparison_side(name, own))
    return lkp_writer.write_2014(mail_table()), tables.STYLES["lkp-2014"](compare(sides))


def mail_table() -> lkp.Table:
    """Return the table of the report."""
    printed = published()["lkp"]
    stat = f"{VMSTAT}.{printed['stat']}"
    tests = [(row["test"], row) for row in printed["rows"]] + [(lkp.TOTAL, printed["total"])]
    rows = [
        lkp.Row(
            stat,
            tuple(lkp.Cell(row[key], row[f"{key}_spread"]) for key in ("base", "new")),
            (row["change"],),
            test=test,
        )
        for test, row in tests
    ]
    return lkp.Table(0, (printed["base"], printed["new"]), rows)


def gains_table(found: Sequence[Result]) -> str:
    """Print NUMA swaps and moves of the JVM a minute, by kernel and gain."""
    rows = []
    for one in found:
        if one.case.load == JVM:
            for kind, events in (("swaps", one.swaps), ("moves", one.moves)):
                per_minute = events.mean(axis=0) * 60 / one.seconds
                shown = _full_label(one.case.label)
                work = one.counts["work"].mean() / one.seconds / 1e6
                cells = [f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in per_minute]
                rows.append([shown, kind, *cells, f"{work:.2f}" if kind == "swaps" else ""])
    title = "The JVM: NUMA swaps and moves a minute, by gain of 1000 (mean of all seeds); page visits [M/s]"
    return f"{title}\n" + table(["kernel", "", *GAIN_NAMES, "visits"], rows, left=2)


def _full_label(label: str) -> str:
    """Name the kernel of a label of the report."""
    return {BASE: "3.16", NEW: f"3.16 {NEW}", PATCHED: f"3.16 + a43455a1 {PATCHED}"}.get(label, label)


def counters_table(found: Sequence[Result]) -> str:
    """Print counters of hackbench, and how many NUMA moves there were."""
    rows = []
    for one in found:
        if one.case.load in HACKBENCH:
            faults = one.counts["numa_hint_faults"]
            rows.append(
                [
                    HACKBENCH[one.case.load],
                    _full_label(one.case.label),
                    *(f"{one.counts[name].mean():,.0f}" for name in ("numa_pte_updates", "numa_hint_faults")),
                    f"{(one.local() / faults).mean():.2f}",
                    f"{one.counts['numa_pages_migrated'].mean():,.0f}",
                    *(f"{events.sum(axis=1).mean():.3g}" for events in (one.swaps, one.moves)),
                    f"{one.counts['work'].mean() / one.seconds / 1e6:.3f}",
                ]
            )
    names = ["machine", "kernel", "pte updates", "hint faults", "local", "migrated", "swaps", "moves", "visits [M/s]"]
    return "Hackbench: means of all seeds\n" + table(names, rows, left=2)
