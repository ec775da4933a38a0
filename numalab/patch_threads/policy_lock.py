"""Thread S3, November 2015: why 1 % of the time at 128 ranks and 90 % at 2,000?

Each rank of a job asks for the memory policy of the same file on tmpfs, and each look-up takes that file's lock. The
lock is a closed queue (`numalab.locks`), which is solved exactly: no seeds, no spread between runs. What spreads is
what the mail's words can mean, and constants nobody measured.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from numalab import __version__, lock_traces, runs
from numalab.locks import KINDS, solve
from numalab.patch_threads import AS_VALIDATED, NOT_PUBLISHED, Claim, Keep, Replay
from numalab.patch_threads.policy_lock_fit import (
    Range,
    ceiling,
    constant_service,
    fit,
    knees,
    lookup_rate,
    predict,
    published,
)
from numalab.text import table
from numalab.validate import SEEDS, Row, locked
from numalab.validate.report import number

THREAD = "policy_lock"
#: Ranks the tables and the figure show, beside those of the mail.
RANKS = (32, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 768, 1024, 1536, 2048, 3000, 4096)
#: A cache line fetched from another node of a large machine, s: assumed. It sets the clock; no share depends on it.
LINE_S = 1e-7
#: A range of the same, for the look-up rates that follow: within a board, across a machine under load.
LINE_RANGE_S = (5e-8, 1e-6)
#: Built from the kernel's call sites, per rank: allocating page faults on the file, 1/s (a rank that computes in
#: memory it has), mappings of the file, scan windows of NUMA balancing, 1/s (periods of 1 to 60 s). All assumed.
FAULTS_PER_S, MAPPINGS, WINDOWS_PER_S = (0.0, 10.0), 3, (1 / 60, 1.0)


# ------------------------------------------------------------------------------------ the replay
def replay(*, seeds: int = 12, full: bool = False, progress: bool = False, keep: Keep | None = None) -> Replay:
    """Print the mail's figures beside the model's, and the model's beside the recordings of a real kernel.

    Everything is solved exactly, so `seeds` and `full` change nothing. Ctrl-C ends it with the parts that are done.

    Raises
    ------
    KeyboardInterrupt
        Before the first part was done.
    """
    outcome = Replay(THREAD, text=_head() + "\n\n" + _curves(), keep=keep)
    try:
        outcome.add("curves", dataset())
        outcome.claims = [*_fitted_claims(), *_predictions(), *_shape_claims(), _after_claim()]
        outcome.text += "\n\n" + "\n\n".join([_constants_text(), _proof(), _rates()])
        rows = real_rows()
        outcome.claims += _real_claims(rows)
        outcome.text += "\n\n" + _real_text(rows)
        outcome.figures = {"shares": plot(rows)}
    except KeyboardInterrupt:
        outcome.interrupted = True
        outcome.text = "Interrupted: not all parts are done.\n\n" + outcome.text
    outcome.results = stored_form(outcome.claims)
    outcome.text += "\n\n" + claims_table(outcome.claims)
    return outcome


def replay_stored() -> Replay:
    """Return the replay: solved anew in seconds, so nothing is stored."""
    return replay()


def stored_form(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the constants and claims as plain numbers, with their provenance."""
    constants = fit()
    return {
        "thread": THREAD,
        "numalab": __version__,
        "revision": runs.revision(),
        "constants": {"section": constants.section, "request": constants.request, "outside": constants.outside},
        "fitted": _fitted(),
        "claims": [claim.to_dict() for claim in claims],
    }


def _fitted() -> dict[str, Any]:
    """Return the constants that were fitted, and to what, at the mail's scale; none to recordings of a real kernel."""
    words = ", ".join(one["words"].split(",")[0] for one in published()["shares"])
    times = {name: getattr(fit(), name) for name in ("section", "request", "outside")}
    return {f"{name} [time between look-ups]": {"value": value, "to": words} for name, value in times.items()}


def dataset() -> xr.Dataset:
    """Return the long run of each kind of lock at each number of ranks: one of them a ``run``."""
    constants = fit()
    think_s = LINE_S / constants.request
    solved = {kind: solve(constants.lock(kind, think_s), RANKS) for kind in KINDS}
    names = ("throughput", "area_share", "waiting_share", "mean_waiters", "wait_s", "contended_share")
    count = len(KINDS) * len(RANKS)
    return runs.build(
        {f"lock_{name}": np.concatenate([getattr(one, name) for one in solved.values()]) for name in names},
        {
            "run": np.arange(count),
            "lock": ("run", np.repeat(list(KINDS), len(RANKS))),
            "ranks": ("run", np.tile(RANKS, len(KINDS))),
        },
        title="Look-ups of a shared policy by kind of lock and number of ranks",
        source="simulated",
        params={
            "thread": THREAD,
            "think_s": think_s,
            "section": constants.section,
            "request": constants.request,
            "outside": constants.outside,
            "line_s": LINE_S,
        },
    )


def _head() -> str:
    mail = published()["thread"]
    return (
        f"{mail['subject']}\n{mail['author']}, {mail['date']}, <{mail['message_id']}>\n\n"
        "The mail: on a machine of 3,000 and more cores, with binaries on tmpfs, looking up the memory policy of the\n"
        "file takes ~1 % of the time at 128 ranks, nearly 13 % at 512, over 90 % at 2k: one spinlock guards it."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}" if share < 0.1 else f"{100 * share:.1f}"


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 116)


def _curves() -> str:
    """Print the share of time in the look-up by ranks, the mail's beside that of each lock."""
    words = {one["ranks"]: one["words"].split(",")[0] for one in published()["shares"]}
    solved = {kind: solve(fit().lock(kind), RANKS).area_share for kind in KINDS}
    rows = [
        [str(n), words.get(n, ""), *(_percent(float(solved[kind][i])) for kind in KINDS)] for i, n in enumerate(RANKS)
    ]
    after, constants = published()["after"], fit()
    limit = (1 + constants.section + constants.outside) / (2 * constants.request)
    return (
        "Time in the look-up, waiting included, % of all, by kind of lock (ticket: fitted; the others: its times)\n"
        + table(["ranks", "the mail", *KINDS], rows, left=0)
        + "\n"
        + _paragraph(
            "The rwlock has a limit of its own: each look-up changes the lock's cache line twice, one task at a time, "
            f"which is full at {limit:,.0f} ranks; at ten times the cost of a request, at {limit / 10:,.0f}. With the "
            f"patch the mail has {after['words']}: {after['note']}."
        )
    )


def _constants_text() -> str:
    constants = fit()
    quotient = constants.section / constants.request
    return "\n".join(
        [
            "Fitted to the three published shares, in lengths of the time between two look-ups of a rank:",
            f"  lock held                                {constants.section:.3e}",
            f"  one request for the lock's cache line    {constants.request:.3e}",
            f"  the rest of the look-up                  {constants.outside:.3e}",
            _paragraph(
                f"That the first is {quotient:.0f} times the second is hard to believe of a short search: at "
                f"{LINE_S * 1e9:.0f} ns a request the lock were held for {quotient * LINE_S * 1e6:.0f} us. The root of "
                "the tree lies beside the lock, so those who poll slow down the holder; the model has no such term."
            ),
        ]
    )


def _proof() -> str:
    small, large = constant_service()
    _, middle, most = published()["shares"]
    done, left = middle["ranks"] * (1 - middle["middle"]), most["ranks"] * (1 - most["reading"][0])
    few, many = f"at {middle['ranks']}", f"at {most['ranks']}"
    most_share, middle_share = f"{100 * most['reading'][0]:.0f} %", f"{100 * middle['reading'][1]:.0f} %"
    return _paragraph(
        "No constant service time fits. Ranks n with a share w in the look-up do n (1 - w) look-ups in the time "
        f"between two. The mail's {middle['words']} {few} makes that {done:.0f}; if it never fell with more ranks, the "
        f"share {many} were at most {100 * ceiling():.1f} %, whatever the lock. Over {most_share} means that it fell "
        f"to less than {left:.0f}: each waiter makes the lock slower. Computed: a constant lock that takes "
        f"{most_share} {many} takes {100 * small:.0f} % {few}; one that takes {middle_share} there, "
        f"{100 * large:.0f} % {many}."
    )


def _rates() -> str:
    constants = fit()
    fast, slow = (constants.request / line for line in LINE_RANGE_S)
    low = lookup_rate(FAULTS_PER_S[0], MAPPINGS, WINDOWS_PER_S[0])
    high = lookup_rate(FAULTS_PER_S[1], MAPPINGS, WINDOWS_PER_S[1])
    return _paragraph(
        f"The fit implies {slow:.0f} to {fast:.0f} look-ups a second and rank, for {LINE_RANGE_S[1] * 1e6:.0f} us to "
        f"{LINE_RANGE_S[0] * 1e9:.0f} ns a request. Built from the kernel's call sites: {FAULTS_PER_S[0]:.0f} to "
        f"{FAULTS_PER_S[1]:.0f} allocating faults a second on the file, {MAPPINGS} mappings of it in each scan window, "
        f"one every {1 / WINDOWS_PER_S[1]:.0f} to {1 / WINDOWS_PER_S[0]:.0f} s: {low:.2f} to {high:.0f} a second "
        "(assumed: the mail gives no rate). The two meet where a request takes "
        f"{constants.request / high * 1e6:.2f} us or more."
    )


# ------------------------------------------------------------------------------------ claims
def _claim(
    what: str,
    words: str,
    model: float | None,
    band: Range | None = None,
    *,
    holds: bool | None = None,
    note: str = "",
    source: str | None = None,
    tolerance: str = "",
) -> Claim:
    low, high = (band.low, band.high) if band else (None, None)
    where = source or f"<{published()['thread']['message_id']}>"
    return Claim(THREAD, what, where, words, model, low, high, None, holds, note, tolerance)


def _fitted_claims() -> list[Claim]:
    answer = []
    for one in published()["shares"]:
        share = float(solve(fit().lock("ticket"), one["ranks"]).area_share[0])
        what = f"time in the look-up, {one['ranks']} ranks [%]"
        answer.append(_claim(what, one["words"], 100 * share, note="fitted: the three times of the ticket lock"))
    return answer


def _predictions() -> list[Claim]:
    """Each published share from the two others: holds if what the words mean meets a band that says something."""
    shares = published()["shares"]
    answer = []
    for which, one in enumerate(shares):
        found = predict(which)
        low, high = one["reading"]
        holds = found.says_something and low <= found.high and found.low <= high
        others = " and ".join(str(other["ranks"]) for i, other in enumerate(shares) if i != which)
        note = ""
        if not found.says_something:
            note = "on the knee: a lock held some percent longer makes it several times as much"
        elif not low <= found.middle <= high:
            note = "the band meets the words, the median does not"
        percent = Range(100 * found.middle, 100 * found.low, 100 * found.high)
        what = f"the same, {one['ranks']} ranks predicted from {others} [%]"
        allowed = f"band meets {100 * low:g}-{100 * high:g}, its ends within a factor of 3"
        answer.append(_claim(what, one["words"], percent.middle, percent, holds=holds, note=note, tolerance=allowed))
    return answer


def _shape_claims() -> list[Claim]:
    at, fall = knees()
    words = published()["knee"]
    low, high = words["ranks"]
    cores = published()["machine"]["cores"]
    return [
        _claim(
            f"at most, {published()['shares'][2]['ranks']} ranks, if throughput never fell [%]",
            published()["shares"][2]["words"],
            100 * ceiling(),
            note="a proof by the mail's own figures: no constant service time fits",
        ),
        _claim(
            "the knee: ranks at which most look-ups are done",
            words["words"],
            at.middle,
            at,
            holds=low <= at.low and at.high <= high,
            tolerance=f"band within {low}-{high}",
            note=f"read as {low} to {high}; locks that agree with all three shares",
        ),
        _claim(
            f"collapse: most look-ups / those of {cores} ranks",
            published()["collapse"]["words"],
            fall.middle,
            fall,
            note="no figure published",
        ),
    ]


def _after_claim() -> Claim:
    after, cores = published()["after"], published()["machine"]["cores"]
    share = float(solve(fit().lock("rwlock"), cores).area_share[0])
    return _claim(
        f"with the rwlock, {cores} ranks [%]",
        after["words"],
        100 * share,
        source=f"<{after['source']}>",
        note="shown only: the published figure is another area of the kernel",
    )


def real_rows() -> list[Row]:
    """Return what the recordings of pure look-ups say of throughput, lock alone / shared, at 2, 4 and 8 processes."""
    names = [f"S3_mttcg_lookup_n{n}_exclusive_r{rep}" for n in (2, 4, 8) for rep in (1, 2, 3)]
    return [row for row in locked.rows(names, SEEDS) if row.quantity == "ratio"]


def tasks_of(row: Row) -> int:
    """Return how many processes a row of `real_rows` is about."""
    return int(row.case.split("_n")[1].split("_")[0])


def _real_claims(rows: Sequence[Row]) -> list[Claim]:
    return [
        Claim(
            THREAD,
            f"real kernel, {tasks_of(row)} processes: throughput, lock alone / shared",
            row.trace,
            f"({NOT_PUBLISHED})",
            row.model,
            row.low,
            row.high,
            row.real,
            row.inside,
            row.why,
            AS_VALIDATED,
        )
        for row in rows
    ]


def _real_text(rows: Sequence[Row]) -> str:
    cells = [
        [
            str(tasks_of(row)),
            number(row.real),
            f"{number(row.real_low)}-{number(row.real_high)}",
            number(row.model),
            f"{number(row.low)}-{number(row.high)}",
        ]
        for row in rows
    ]
    return (
        "The real kernel (6.1, eight emulated CPUs on two host CPUs): throughput with the lock taken alone, relative "
        "to shared\n"
        + table(["processes", "real", "its spread", "model", "5-95 %"], cells, left=0)
        + "\nTwo host CPUs run the processes, so holders and waiters lose their CPU. Nothing is fitted to these runs:\n"
        f"the lock is held for {100 * lock_traces.section_share('lookup'):.0f} % of a look-up's instructions, and a "
        "turn ends with the host's tick of 4 ms or before."
    )


def claims_table(answer: Sequence[Claim]) -> str:
    """Print claims as a table."""
    word = {True: "yes", False: "NO", None: "-"}

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    rows = [
        [
            claim.claim,
            claim.published,
            number(claim.model),
            f"{number(claim.low)}-{number(claim.high)}" if claim.low is not None else "",
            number(claim.real),
            word[claim.holds],
            claim.note,
        ]
        for claim in answer
    ]
    return table(["claim", "published", "model", "5-95 %", "real", "holds", "note"], rows, right=(2, 3, 4))


# ------------------------------------------------------------------------------------ the figure
#: Kind -> colour, line, width, label. RCU and the rwlock lie on each other: the broad line shows below the thin one.
STYLE = {
    "rcu": ("#56B4E9", "-", 5.0, "RCU"),
    "ticket": ("#D55E00", "-", 2.0, "ticket lock (fitted)"),
    "mcs": ("#E69F00", "--", 2.0, "MCS queue"),
    "rwlock": ("#000000", ":", 1.5, "rwlock (the patch)"),
}


def plot(rows: Sequence[Row]) -> Figure:
    """Draw share of time and throughput against ranks, and the recordings of the real kernel."""
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    ranks = np.unique(np.geomspace(32, 4096, 120).astype(int))
    for kind, (colour, line, width, label) in STYLE.items():
        solved = solve(fit().lock(kind), ranks)
        left.plot(ranks, 100 * solved.area_share, color=colour, ls=line, lw=width, label=label)
        middle.plot(ranks, solved.throughput, color=colour, ls=line, lw=width)
    for one in published()["shares"]:
        low, high = (100 * share for share in one["reading"])
        centre = 100 * one["middle"]
        left.errorbar(one["ranks"], centre, [[centre - low], [high - centre]], fmt="ks", ms=5, capsize=4, zorder=5)
    left.plot([], [], "ks", ms=5, label="the mail")
    left.set(xlabel="ranks", ylabel="time in the look-up [%]", yscale="log", ylim=(0.3, 130), title="Share of time")
    left.set_yticks([1, 10, 100], ["1", "10", "100"])
    middle.set(xlabel="ranks", ylabel="look-ups per time between two", yscale="log", title="Throughput")
    for axes in (left, middle):
        axes.set_xscale("log", base=2)
        axes.set_xticks([32, 128, 512, 2048], ["32", "128", "512", "2048"])
        axes.grid(alpha=0.3)
    tasks = np.array([tasks_of(row) for row in rows])
    for shift, key, form, colour, label in (
        (-0.06, "real", "s", "black", "real kernel"),
        (0.06, "model", "o", "#D55E00", "model"),
    ):
        ends = ("real_low", "real_high") if key == "real" else ("low", "high")
        value, least, most = (np.array([getattr(row, name) for row in rows]) for name in (key, *ends))
        error = [value - least, most - value]
        right.errorbar(tasks * 2**shift, value, error, fmt=form, color=colour, ls="none", ms=6, capsize=4, label=label)
    right.set_xscale("log", base=2)
    right.set_xticks(tasks, [str(n) for n in tasks])
    right.set(
        xlabel="processes", ylabel="throughput, lock alone / shared", ylim=(0, 1.1), title="Two CPUs, real kernel"
    )
    right.grid(alpha=0.3)
    right.legend(frameon=False)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure
