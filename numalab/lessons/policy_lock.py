"""The lesson of the policy lock thread (``notebooks/40_policy_lock.ipynb``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from numalab import plots
from numalab.locks import KINDS, Lock, Simulated, Solution, simulate, solve
from numalab.patch_threads import Claim, policy_lock
from numalab.patch_threads.policy_lock_fit import constant_service, fit, published
from numalab.text import table
from numalab.validate import Row
from numalab.widgets import Computation, Exercise, Explorer, Predict, Printed, Problem, choice, slider

#: Eight steps to each doubling, so that the knee shows.
RANKS = tuple(round(2 ** (k / 8)) for k in range(40, 97))
NAMES = {
    "ticket": "ticket lock (the mail's)",
    "mcs": "MCS queue",
    "rwlock": "rwlock (the patch)",
    "rcu": "RCU",
    "none": "no lock (empty tree)",
}
PER_THINK = "in the time between two of a rank"
#: Ranks, and look-ups to measure, of the simulation event by event.
SIMULATED, LOOKUPS = (128, 448, 512, 640, 1024), 12_000
#: The fitted times with units, the request for the lock's cache line taken as about 100 ns.
THINK_MS, HELD_US, REQUEST_NS, REST_US = 21, 44, 98, 152


def marks() -> list[tuple[int, float, str]]:
    """Return the mail's shares: ranks, percent, words."""
    return [(one["ranks"], 100 * one["middle"], one["words"].split(",")[0]) for one in published()["shares"]]


def share(kind: str = "ticket", ranks: int = 2048) -> float:
    """Return the percent of the time in the look-up that a kind of lock takes with the fitted times."""
    return 100 * float(solve(fit().lock(kind), ranks).area_share[0])


def times() -> Printed:
    """Return the fitted times, in lengths of the time between two look-ups of a rank."""
    one = fit()
    rows = [
        ["lock held", f"{100 * one.section:.2g} %"],
        ["one request for the lock's cache line", f"{100 * one.request:.2g} %"],
        ["rest of the look-up, outside the lock", f"{100 * one.outside:.2g} %"],
    ]
    return Printed(table(["fitted to the mail's three shares", "of the time between two"], rows))


def curve(*kinds: str, look_ups: bool = False) -> plots.Picture:
    """Return the share of time in the look-up against ranks, with the mail's points.

    Parameters
    ----------
    *kinds : str
        Of :data:`numalab.locks.KINDS`; default: the ticket lock.
    look_ups : bool
        Whether a second panel shows how many look-ups are done.
    """
    chosen = {NAMES[kind]: fit().lock(kind) for kind in kinds or ("ticket",)}
    return plots.contention(chosen, RANKS, marks(), per=PER_THINK if look_ups else None, who="ranks")


def locks_table() -> Printed:
    """Return the share of time in the look-up of every kind of lock at some numbers of ranks."""
    return Printed(
        plots.contention({kind: fit().lock(kind) for kind in KINDS}, [2**k for k in range(5, 13)], who="ranks").text
    )


def arithmetic() -> Printed:
    """Return how many look-ups the mail's own shares leave: ranks, times the share of time between look-ups."""
    rows = []
    for one in published()["shares"]:
        least, most = one["reading"]
        done = sorted(one["ranks"] * (1 - end) for end in (least, most))
        words = one["words"].split(",")[0]
        rows.append([f"{one['ranks']:,}", words, f"{done[0]:.0f} to {done[1]:.0f}"])
    return Printed(table(["ranks", "the mail", "look-ups done in the time between two"], rows, left=0))


def constant() -> plots.Picture:
    """Return two locks whose hand-over always takes the same: one meets the mail at 512 ranks, one at 2048."""
    _, middle, most = published()["shares"]
    locks = {
        f"constant, meets {one['ranks']:,} ranks": Lock("ticket", 1.0, _constant_section(one["ranks"], one["middle"]))
        for one in (middle, most)
    }
    return plots.contention(locks, RANKS, marks(), who="ranks")


def _constant_section(ranks: int, goal: float) -> float:
    """Return how long a lock without hand-over costs must be held to take a share of the time: bisection."""
    low, high = 1e-6, 1.0
    for _ in range(60):
        mid = (low * high) ** 0.5
        low, high = (mid, high) if solve(Lock("ticket", 1.0, mid), ranks).area_share[0] < goal else (low, mid)
    return high


def constant_words() -> str:
    """Say how far from the mail the best lock of constant service stays."""
    at_middle, at_most = constant_service()
    _, middle, most = published()["shares"]
    return (
        f"held so long that {most['ranks']:,} ranks spend {100 * most['reading'][0]:.0f} %: "
        f"{100 * at_middle:.0f} % already at {middle['ranks']}\n"
        f"held so short that {middle['ranks']} ranks spend {100 * middle['reading'][1]:.0f} %: "
        f"only {100 * at_most:.0f} % at {most['ranks']:,}"
    )


@lru_cache(maxsize=8)
def events(seed: int = 0) -> tuple[Simulated, ...]:
    """Simulate the fitted ticket lock event by event at some numbers of ranks."""
    return tuple(simulate(fit().lock("ticket"), n, lookups=LOOKUPS, seed=seed) for n in SIMULATED)


def both(seed: int = 0) -> plots.Picture:
    """Return the solution with the simulation event by event on it."""
    name = NAMES["ticket"]
    return plots.contention({name: fit().lock("ticket")}, RANKS, simulated={name: events(seed)}, who="ranks")


def both_table(seed: int = 0) -> Printed:
    """Return solution and simulation as numbers: share of the time in the look-up, percent."""
    rows = []
    for one in events(seed):
        mean, error = (100 * value for value in one.mean("area_share"))
        rows.append([f"{one.tasks:,}", f"{share(ranks=one.tasks):.1f}", f"{mean:.1f} ± {2 * error:.1f}"])
    return Printed(table(["ranks", "solved [%]", "event by event, two standard errors [%]"], rows, left=0))


@lru_cache(maxsize=1)
def replayed() -> tuple[list[Claim], tuple[Row, ...]]:
    """Return the claims of the thread, and what real kernels did: solved anew."""
    return policy_lock.replay().claims, tuple(policy_lock.real_rows())


def claims() -> list[Claim]:
    """Return the mail's claims with the model's answers."""
    return replayed()[0]


def real() -> plots.Spans:
    """Return how many look-ups a real kernel did with the lock taken alone, relative to shared."""

    def spans(*keys: str) -> dict[str, plots.Span]:
        return {
            f"{policy_lock.tasks_of(row)} processes": plots.Span(*(getattr(row, key) for key in keys))
            for row in replayed()[1]
        }

    series = {"real kernel": spans("real", "real_low", "real_high"), "model": spans("model", "low", "high")}
    return plots.Spans("look-ups, lock alone / shared", series, ends="spread of the runs, the model's 90 %", line=1.0)


# ------------------------------------------------------------------------------------ widgets
def predict() -> Predict:
    """Ask for the share of time at 2048 ranks."""
    small, middle, _ = published()["shares"]
    return Predict(
        f"The look-up takes {small['words'].removeprefix('only ')} of the time at {small['ranks']} ranks, "
        f"{middle['words']} at {middle['ranks']}. How much is it at 2048?",
        0,
        100,
        unit="%",
    )


def predict_look_ups() -> Predict:
    """Ask what four times the ranks do to the number of look-ups."""
    return Predict(
        "From 512 ranks to 2048, with the same lock: how many look-ups do all ranks together get done, in percent of "
        "what they did before?",
        0,
        400,
        step=5,
        unit="%",
    )


def look_ups_left() -> float:
    """Return the look-ups of all ranks at 2048 in percent of those at 512, with the fitted lock."""
    done = solve(fit().lock("ticket"), [512, 2048]).throughput
    return float(100 * done[1] / done[0])


def explorer() -> Explorer:
    """Return the explorer: the ticket lock beside another one, with times in seconds."""
    knobs = [
        slider("think", "time between two look-ups of a rank", 2, 60, THINK_MS, unit="ms"),
        slider("held", "lock held", 1, 100, HELD_US, unit="µs"),
        slider(
            "request", "one request for a cache line", 0, 600, REQUEST_NS, step=2, unit="ns",
            help="Of a line that another CPU has: some tens of ns nearby, more across a large machine",
        ),
        slider("rest", "rest of the look-up", 0, 600, REST_US, step=4, unit="µs"),
        choice("beside", "beside it", {NAMES[kind]: kind for kind in KINDS if kind != "ticket"}, "rwlock"),
    ]  # fmt: skip
    presets: dict[str, Mapping[str, Any]] = {
        "the mail's lock": {},
        "waiters cost nothing": {"request": 0, "beside": "mcs"},
        "MCS queue": {"beside": "mcs"},
        "held a tenth as long": {"held": 4},
        "RCU": {"beside": "rcu"},
        "ten times as many look-ups": {"think": 2},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Computation]:
        return {NAMES[kind]: _computation(kind, values) for kind in ("ticket", values["beside"])}

    def draw(results: Mapping[str, Solution], values: Mapping[str, Any]) -> plots.Picture:
        return plots.contention(results, marks=marks(), per="per second", who="ranks")

    return Explorer(
        "Find the edge: how long, how often, which lock?", knobs, sides, draw, presets=presets, seeded=False
    )


def lock_of(kind: str, values: Mapping[str, Any]) -> Lock:
    """Return the lock that an explorer's controls describe; times in seconds."""
    request = round(1e-9 * values["request"], 12)
    cost = {"handoff_s": request} if kind in ("ticket", "mcs") else {"atomic_s": request}
    think, held, rest = (
        round(values[name] * unit, 12) for name, unit in (("think", 1e-3), ("held", 1e-6), ("rest", 1e-6))
    )
    return Lock(kind, think, held, rest, **cost)


def _computation(kind: str, values: Mapping[str, Any]) -> Computation:
    lock = lock_of(kind, values)
    given = ", ".join(
        f"{name}={getattr(lock, name)!r}"
        for name in ("think_s", "section_s", "parallel_s", "handoff_s", "atomic_s")
        if getattr(lock, name)
    )
    code = (
        "from numalab import locks\n\n"
        "ranks = [round(2 ** (k / 8)) for k in range(40, 97)]\n"
        f"ds = locks.solve(locks.Lock({kind!r}, {given}), ranks)"
    )
    text = f"{RANKS[0]} to {RANKS[-1]:,} ranks, a CPU each; solved exactly, nothing is random"
    return Computation(lambda seeds: solve(lock, list(RANKS)), code, text)


# ------------------------------------------------------------------------------------ exercises
def exercise_ceiling() -> Exercise:
    """Return problems on what shares of time say about look-ups."""
    return Exercise("How much if look-ups never fell?", _ceiling_problem)


def _ceiling_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    few = int(rng.choice([64, 128, 256, 512]))
    many = few * int(rng.choice([2, 4, 8]))
    percent = int(rng.integers(5, 40))
    left = few * (100 - percent) / 100
    answer = 100 * (1 - left / many)
    return Problem(
        f"{few} ranks spend {percent} % of their time in a look-up. Suppose {many} ranks get no fewer look-ups done "
        "than these.\nWhat is the most they can spend in it? (To one percent.)",
        answer,
        lambda given: (
            "In the time between two look-ups a rank that is never in one does one. How many do all ranks do, if they "
            "are outside for the rest of their time? The larger number of ranks does at least as many."
        ),
        f"{few} x {100 - percent} % = {left:.1f} look-ups in the time between two.\n{many} ranks that do as many are "
        f"outside for {left:.1f} / {many} of their time, so inside for {answer:.1f} %.",
        tolerance=1.0,
        unit="%",
    )


def exercise_knee() -> Exercise:
    """Return problems on where a lock is full."""
    return Exercise("Where is the knee?", _knee_problem)


def _knee_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    held_us, think_ms = int(rng.choice([2, 5, 10, 20, 50])), int(rng.choice([1, 2, 4, 10, 20, 50]))
    answer = (1000 * think_ms + held_us) / held_us
    return Problem(
        f"A rank takes the lock every {think_ms} ms (from leaving it to asking again), and holds it for {held_us} µs. "
        "Handing over takes no time.\nFrom how many ranks on is the lock always held, if all come in good order? "
        "(To 3 %.)",
        answer,
        lambda given: (
            "One turn of a rank takes the time away and the time inside. How many such times inside fit into one turn? "
            "Mind the units."
        ),
        f"One turn takes {1000 * think_ms:,} + {held_us} µs; {answer:,.0f} times {held_us} µs fill it.",
        tolerance=0.03 * answer,
        unit="ranks",
    )


def exercise_which() -> Exercise:
    """Return problems on telling a lock by its numbers."""
    return Exercise("Which lock is it?", _which_problem)


def _which_problem(seed: int) -> Problem:
    """Draw a lock well above its knee at the last numbers of ranks, so that the three kinds differ."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["ticket", "mcs", "rwlock"]))
    section = float(rng.uniform(0.01, 0.03))
    request = section * float(rng.uniform(0.05, 0.2)) if kind != "rwlock" else 1e-6
    cost = {"atomic_s": request} if kind == "rwlock" else {"handoff_s": request}
    ranks = [16, 64, 256, 512, 1024]
    done = solve(Lock(kind, 1.0, section, **cost), ranks).throughput
    rows = [[f"{n:,}", f"{value:.1f}"] for n, value in zip(ranks, done, strict=True)]
    why = {
        "ticket": "look-ups fall with more ranks: each waiter makes handing over dearer",
        "mcs": "look-ups stay level from some number of ranks on:\none holder, and a hand-over that costs the same",
        "rwlock": "look-ups grow with the ranks: nobody waits for anybody",
    }
    names = {"ticket": "ticket lock", "mcs": "MCS queue", "rwlock": "rwlock"}
    return Problem(
        "Look-ups of all ranks, in the time between two of one:\n"
        + table(["ranks", "look-ups"], rows, left=0)
        + "\nWhich lock is it?",
        names[kind],
        lambda given: "Does the number of look-ups grow, stay or fall towards the largest numbers of ranks?",
        f"{why[kind][0].upper()}{why[kind][1:]}.",
        choices=tuple(names.values()),
    )
