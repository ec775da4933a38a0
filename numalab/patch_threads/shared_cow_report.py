"""Thread S0 in words: the claims and the tables, from the numbers of the runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from numalab.patch_threads import AS_VALIDATED, NOT_PUBLISHED, Claim, shared_cow_guest
from numalab.patch_threads.shared_cow_cases import (
    MAIN,
    READINGS,
    STEP_US,
    VARIANTS,
    Case,
    Followed,
    Reading,
    Result,
    checks,
    published,
)
from numalab.text import table

Values = NDArray[np.float64]

NOT_GIVEN = "(not given)"
WORDS = {"off": "off", "before": "on, before the patch", "patched": "on, with the patch"}


# ------------------------------------------------------------------------------------ which numbers
Trio = dict[str, Result]


def trios(found: Sequence[Result]) -> Iterator[tuple[Reading, Trio]]:
    """Yield each reading of the machine whose three main cases are finished."""
    for reading in READINGS.values():
        own = {one.case.label: one for one in found if one.case.reading == reading and one.case.is_main}
        if set(own) == set(MAIN):
            yield reading, own


def recovered(trio: Trio) -> Values:
    """Return which share of the loss the patch brings back: (run,)."""
    lost = trio["off"].passes - trio["before"].passes
    return np.asarray((trio["patched"].passes - trio["before"].passes) / lost)


# ------------------------------------------------------------------------------------ claims
def claims(found: Sequence[Result], followed: Mapping[str, Followed], guest: shared_cow_guest.Guest) -> list[Claim]:
    """Compare what is finished with the mails, and with the traces of a real kernel."""
    answer: list[Claim] = []
    for reading, trio in trios(found):
        answer += _throughput_claims(reading, trio) + _waiting_claims(reading, trio) + _count_claims(reading, trio)
    answer += _variant_claims(found, followed)
    if set(guest) == set(shared_cow_guest.LABELS.values()):
        answer += _guest_claims(guest)
    return answer


def _claim(
    what: str,
    words: str,
    values: Values | float,
    *,
    holds: bool | None = None,
    note: str = "",
    source: str = "",
    real: float | None = None,
    tolerance: str = "",
) -> Claim:
    every = np.atleast_1d(values)
    low, middle, high = (float(x) for x in np.quantile(every, [0.05, 0.5, 0.95]))
    where = source or f"<{published()['thread']['message_id']}>"
    spread = len(every) > 1
    first, last = (low, high) if spread else (None, None)
    return Claim("shared_cow", what, where, words, middle, first, last, real, holds, note, tolerance)


def _throughput_claims(reading: Reading, trio: Trio) -> list[Claim]:
    mail = published()["throughput"]
    before, patched = (trio[label].passes / trio["off"].passes for label in ("before", "patched"))
    told = {label: mail[label] / mail["off"] for label in ("before", "patched")}
    told_recovered = (mail["patched"] - mail["before"]) / (mail["off"] - mail["before"])
    low, high = mail["recovered_range"]
    share = recovered(trio)
    away = float(np.median(patched)) - told["patched"]
    at = f"{reading.cpus} CPUs"
    return [
        _claim(
            f"{at}: passes in 10 s, balancing off",
            f"{mail['off']:,}",
            trio["off"].passes,
            note="fitted: the time of a pass is taken from it",
        ),
        _claim(
            f"{at}: throughput / off, before the patch",
            f"{told['before']:.4f}",
            before,
            note=f"fitted to it: {reading.per_mapping_ns} ns a mapping of a migrating page",
        ),
        _claim(
            f"{at}: throughput / off, with the patch",
            f"{told['patched']:.4f}",
            patched,
            holds=abs(away) <= mail["patched_tolerance"],
            note=f"{away:+.4f}: nothing in the rules costs the mail's half percent",
            tolerance=f"within {mail['patched_tolerance']}",
        ),
        _claim(
            f"{at}: share of the loss recovered",
            f"{told_recovered:.3f}",
            share,
            holds=bool(low <= np.median(share) <= high),
            note=f"{low:.0%} to {high:.0%} counts as holding",
            tolerance=f"{low:g} to {high:g}",
        ),
    ]


def _waiting_claims(reading: Reading, trio: Trio) -> list[Claim]:
    mail, at = published()["production"], f"{reading.cpus} CPUs"
    before, patched = trio["before"], trio["patched"]
    less = patched.spread / before.spread
    outliers = (before.slowest / before.passes) / (patched.slowest / patched.passes)
    return [
        _claim(
            f"{at}: share of time waiting, before",
            mail["words_iowait"],
            before.waiting,
            note="another load on other machines: shown, not judged",
        ),
        _claim(
            f"{at}: share of time waiting, with the patch",
            mail["words_iowait"],
            patched.waiting,
            holds=bool(np.median(patched.waiting) < mail["none_below"]),
            tolerance=f"below {mail['none_below']}",
        ),
        _claim(
            f"{at}: spread between readers, with the patch / before",
            mail["words_spread"],
            less,
            holds=bool(np.median(less) < 1),
            tolerance="below 1",
            note="" if np.median(less) < 1 else "before, tasks that move even out what fork left uneven",
        ),
        _claim(
            f"{at}: slowest reader's share, before / with the patch",
            mail["words_spread"],
            outliers,
            holds=bool(np.median(outliers) < 1),
            tolerance="below 1",
            note="" if np.median(outliers) < 1 else "the slowest are those that share a CPU, either way",
        ),
    ]


def _count_claims(reading: Reading, trio: Trio) -> list[Claim]:
    before, at = trio["before"], f"{reading.cpus} CPUs, before"
    mean = before.passes / before.case.readers
    return [
        _claim(f"{at}: hint faults", NOT_GIVEN, before.hint_faults),
        _claim(f"{at}: migrations per page", NOT_GIVEN, before.migrated / before.pages),
        _claim(f"{at}: waiters per migration", NOT_GIVEN, before.waiters, note=f"of {before.migration_us:.0f} us each"),
        _claim(f"{at}: slowest reader / mean", NOT_GIVEN, before.slowest / mean),
        _claim(f"{at}: fastest reader / mean", NOT_GIVEN, before.fastest / mean),
    ]


def _variant_claims(found: Sequence[Result], followed: Mapping[str, Followed]) -> list[Claim]:
    told = {one["id"]: one for one in published()["variants"]}
    names = list(VARIANTS)
    patch, rest, limit = names[1], names[2], names[3]
    answer: list[Claim] = []

    def say(which: str, what: str, value: float, holds: bool, tolerance: str) -> None:
        words, source = told[which]["words"], f"<{told[which]['source']}>"
        answer.append(_claim(what, words, value, holds=holds, source=source, tolerance=tolerance))

    if patch in followed:
        came = followed[patch]
        follow = "patch: shared pages that follow two readers to another node"
        say("permanent", follow, came.shared, came.shared == 0, "exactly 0")
        say("own", "patch: pages the readers wrote that follow them", came.own, came.own == 1, "exactly 1")
    if limit in followed:
        came = followed[limit]
        say("limit", "limit of 5: shared pages that follow two readers", came.shared, came.shared == 1, "exactly 1")
    one, other = (_variant(found, name) for name in (rest, patch))
    if one is not None and other is not None:
        ratio = float(np.median(one.kernel) / np.median(other.kernel))
        say("rest", "rest of the area skipped: scan time / with the patch", ratio, ratio < 1, "below 1")
    return answer


def _variant(found: Sequence[Result], label: str) -> Result | None:
    """Return the run of a variant with 288 readers; two of them are main cases."""
    name = dict(zip(VARIANTS, ("before", "patched"), strict=False)).get(label, label)
    for one in found:
        if one.case.name == Case(name, READINGS[144], one.case.kernel).name:
            return one
    return None


#: Row of the real kernel that does not hold -> what is known of it.
UNLIKE_REAL = {
    "slowest reader / slowest with balancing off": "both: the later forked, the faster; real waits are longer (below)",
    "fastest reader / fastest with balancing off": "both: the later forked, the faster; real waits are longer (below)",
    "hint faults": "the few fast readers scan most, and in the model they are less fast (below)",
    "migrations per page": "likely: real pages stay with the few fast readers, who are less fast in the model",
}


def _guest_claims(guest: shared_cow_guest.Guest) -> list[Claim]:
    answer = []
    for what, when, pair in shared_cow_guest.rows(guest):
        note = "" if pair.holds else UNLIKE_REAL.get(what, "not explained")
        name = f"traced, {shared_cow_guest.READERS} readers, {WORDS[when].removeprefix('on, ')}: {what}"
        real = float(pair.real.mean())
        answer.append(
            _claim(
                name,
                f"({NOT_PUBLISHED})",
                pair.model,
                real=real,
                holds=pair.holds,
                note=note,
                source=shared_cow_guest.traces(),
                tolerance=AS_VALIDATED,
            )
        )
    return answer


# ------------------------------------------------------------------------------------ tables
def head() -> str:
    """Say what the mail says."""
    mail = published()
    return (
        f"{mail['thread']['subject']}\n{mail['thread']['author']}, {mail['thread']['date']}, "
        f"<{mail['thread']['message_id']}>\n\n"
        "The mail: 288 processes read one array of 1,000,000 ints that they share copy-on-write, on 8 sockets with\n"
        "144 cores. With balancing each traps the pages for itself and migrates them under all others, who wait.\n"
        "Passes in 10 s: " + ", ".join(f"{mail['throughput'][label]:,} ({WORDS[label]})" for label in MAIN) + "."
    )


def main_table(found: Sequence[Result]) -> str:
    """Print the program's runs, one case a row."""
    mail = published()["throughput"]
    rows = []
    for reading, trio in trios(found):
        for label, one in trio.items():
            mean = one.passes / one.case.readers
            rows.append(
                [
                    f"{reading.cpus}",
                    WORDS[label],
                    f"{len(one.passes)}",
                    f"{mail[label] / mail['off']:.4f}",
                    f"{np.median(one.passes / trio['off'].passes):.4f}",
                    f"{100 * np.median(one.waiting):.1f}",
                    f"{100 * np.median(one.faulting):.1f}",
                    f"{np.median(one.slowest / mean):.2f}-{np.median(one.fastest / mean):.2f}",
                    f"{np.median(one.hint_faults):,.0f}",
                    f"{np.median(one.migrated / one.pages):,.0f}",
                ]
            )
    if not rows:
        return ""
    titles = [
        "CPUs",
        "balancing",
        "runs",
        "mail",
        "model",
        "waiting %",
        "faults %",
        "readers",
        "hint faults",
        "moves/page",
    ]
    note = (
        "Throughput over that with balancing off; shares of the readers' time; slowest and fastest reader over mean.\n"
        "The mail does not say whether its cores have one hardware thread or two: 144 CPUs or 288."
    )
    return table(titles, rows, left=2) + "\n" + note


def variants_table(found: Sequence[Result], followed: Mapping[str, Followed]) -> str:
    """Print what other tests for shared pages do."""
    rows = []
    for label, came in followed.items():
        one = _variant(found, label)
        rows.append(
            [
                label,
                f"{np.median(one.hint_faults):,.0f}" if one else "",
                _scan_ms(one) if one else "",
                *(f"{100 * share:.0f}" for share in (came.shared, came.own, came.alone)),
            ]
        )
    if not rows:
        return ""
    titles = ["test of the scanner", "hint faults", "scan ms", "shared", "own", "alone"]
    note = (
        "288 readers on 144 CPUs: hint faults, time that each scans. Then two readers (`alone`: one) move to another\n"
        "node: % of the pages that come after them. `own`: pages they have written before. The model puts these into\n"
        "an area of their own, so it cannot show what skipping the rest of an area does to them."
    )
    return table(titles, rows) + "\n" + note


def _scan_ms(one: Result) -> str:
    """Print what each reader scans, ms, where nothing faults: then it is all the kernel's time."""
    return "" if one.hint_faults.any() else f"{1000 * np.median(one.kernel) * published()['program']['seconds']:.4f}"


def swept(found: Sequence[Result], by: str) -> list[tuple[int, Trio]]:
    """Return finished trios along the number of readers or the size of the array, on 144 CPUs."""
    fixed = ("ints", 1_000_000) if by == "readers" else ("readers", 288)
    groups: dict[int, Trio] = {}
    for one in found:
        case = one.case
        usual = case.reading == READINGS[144] and case.step_us == STEP_US and getattr(case, fixed[0]) == fixed[1]
        if case.label in MAIN and usual:
            groups.setdefault(getattr(case, by), {})[case.label] = one
    return [(value, trio) for value, trio in sorted(groups.items()) if set(trio) == set(MAIN)]


def sweep_table(found: Sequence[Result]) -> str:
    """Print how the loss depends on the number of readers and the size of the array."""
    rows = []
    for by in ("readers", "ints"):
        points = swept(found, by)
        for value, trio in points if len(points) > 1 else []:
            before = trio["before"]
            rows.append(
                [
                    f"{value:,} {by}",
                    f"{before.migration_us:.0f}",
                    *(f"{np.median(trio[x].passes / trio['off'].passes):.4f}" for x in ("before", "patched")),
                    f"{100 * np.median(before.waiting):.1f}",
                    f"{np.median(before.waiters):.1f}",
                    f"{np.median(before.migrated / before.pages):.1f}",
                ]
            )
    if not rows:
        return ""
    titles = ["144 CPUs", "us a migration", "before / off", "patched / off", "waiting %", "waiters", "moves/page"]
    return table(titles, rows) + "\nOne million ints, 288 readers but for what the row says."


def claims_table(answer: Sequence[Claim]) -> str:
    """Print claims as a table."""
    word = {True: "yes", False: "NO", None: "-"}

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    rows = [
        [
            one.claim,
            one.published,
            number(one.model),
            f"{number(one.low)}-{number(one.high)}" if one.low is not None else "",
            number(one.real),
            word[one.holds],
            one.note,
        ]
        for one in answer
    ]
    return table(["claim", "published", "model", "5-95 %", "real", "holds", "note"], rows, right=(2, 3, 4))


def remarks(found: Sequence[Result], width: int = 116) -> str:
    """Say what was fitted, what it hangs on, and why some rows do not hold; lines of ``width`` characters."""
    costs = " and ".join(f"{one.per_mapping_ns} ns with {cpus} CPUs" for cpus, one in READINGS.items())
    parts = (
        f"Fitted: one cost, what each mapping adds to a migration, to the throughput before the patch: {costs}. The "
        "array fits into every socket's cache, so remote memory is taken to cost nothing." + _sensitivity(found),
        "A migration here is far shorter than a step of the model. Its waits are then charged as expected values, "
        "longer for the first forked, and the CPU is not given to others meanwhile: with 144 CPUs, two readers on "
        "each, a wait costs too much, so that the fit finds migrations too short.",
        "In the traced runs a migration takes longer than a step, and who meets its page sleeps. A reader gets the "
        "faster the later it was forked: a migrating page is unmapped from one process after the other in that order, "
        "so the first forked are locked out the longest. In the real runs the difference is greater than in the model: "
        "a wait lasts 73 ms there (repetition 1, 85 s in 1163 waits), nearly three migrations of 27.6 ms; why is not "
        "known.",
    )
    return "\n".join(textwrap.fill(part, width) for part in parts)


def _sensitivity(found: Sequence[Result]) -> str:
    """Print what half the step and the other machine's cost give, where these were run."""
    done = {one.case.name: one for one in found}
    off = {reading.cpus: trio["off"] for reading, trio in trios(found)}
    said = []
    for case in checks():
        one = done.get(case.name)
        if one is not None and case.reading.cpus in off:
            ratio = float(np.median(one.passes) / np.median(off[case.reading.cpus].passes))
            how = f"steps of {case.step_us // 1000} ms" if case.step_us != STEP_US else "the other machine's cost"
            said.append(f"{ratio:.3f} with {how} ({case.reading.cpus} CPUs)")
    if not said:
        return ""
    return f" What the fit hangs on: throughput / off is {', '.join(said)}; so only a measured migration could tell."
