"""The lesson "How far from the real kernel?" (``notebooks/70_how_far_from_the_real_kernel.ipynb``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from numalab import decisions, plots, quantities, runs
from numalab.decisions import Replay
from numalab.kernel import Value
from numalab.model import pagefilter
from numalab.plots.judged import Courses, Effects, Ratios, Score, Widths, courses
from numalab.quantities import QUANTITIES
from numalab.readers import trace
from numalab.scenarios import Scenario, scenario
from numalab.simulation import Simulation
from numalab.text import table
from numalab.validate import Outcome, Row, report, simulated
from numalab.validate.cases import Trace, group, load
from numalab.validate.judge import CLOSE, WIDEST, judge
from numalab.widgets import (
    Computation,
    Exercise,
    Explorer,
    Predict,
    Printed,
    Problem,
    Table,
    choice,
    slider,
    switch,
)
from numalab.widgets.times import reached

#: First word of the names of runs -> what was run.
FAMILIES = {
    "S0": "readers that share one copy-on-write array",
    "S1": "processes of several threads that have to find together",
    "S2": "threads that write parts of a memory which scanning makes slow",
    "S3": "a lock in the look-up of memory policies",
    "S4": "programs whose threads are moved for little: jvm8, hackbench",
    "a": "perf bench numa mem",
    "b": "one thread on the wrong node, or sent to another one",
    "c": "processes whose memory lies on both nodes: groups and swaps",
    "d": "readers of an array from before fork",
    "e": "one process on two nodes; messaging",
    "f": "memory that never becomes local: how scanning slows down",
    "z": "one of b, a second time",
}
#: The case that is run live, and what of it is drawn.
LIVE = tuple(f"S4_jvm8_pre_r{rep}" for rep in (1, 2, 3))
DRAWN = {
    "numa_pte_updates": "PTEs trapped",
    "local_share": "local share of faults so far",
    "preferred_changes": "preferred nodes chosen",
}
#: Counts so small that chance decides.
COUNTS = ("task_moves", "task_swaps", "preferred_changes")
#: Verdicts on these rows come from more than the row holds.
_OWN_RULES = ("S3", "pages_over_time")


@cache
def facts() -> dict[str, Any]:
    """Return the stored validation."""
    return report.stored()


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of the stored validation that only judge: nothing was fitted to their runs."""
    return tuple(row for row in report.rows_of(facts()) if not row.fitted)


def provenance() -> str:
    """Say what made the stored results."""
    made = facts()
    return f"Stored results: {made['seeds']} runs of the model a case, numalab {made['numalab']} at {made['revision']}"


def traces() -> Table:
    """Return the packed runs by thread or family."""
    count = Counter(name.split("_")[0] for name in trace.names())
    cells = [[family, str(count[family]), what] for family, what in FAMILIES.items()]
    return Table(["name begins with", "number", "what"], cells)


def share_inside() -> float:
    """Return the share of rows inside of those that only judge, percent."""
    found = report.score(rows())
    return 100 * found["inside"] / found["counted"]


def worst(limit: int = 15) -> Table:
    """Return the rows outside, worst first."""
    found = report.worst(rows())
    cells = [
        [
            row.trace,
            f"{'effect on ' * (row.kind == 'effect')}{row.quantity}",
            *map(report.number, (row.real, row.model)),
            "" if row.low is None else f"{report.number(row.low)} to {report.number(row.high)}",
            report.number(row.ratio),
            row.why,
        ]
        for row in found[:limit]
    ]
    head = ["run", "quantity", "real", "model", "5-95 %", "ratio", "outside because"]
    return Table(head, cells, note=f"And {len(found) - len(cells)} more.")


def reasons() -> Table:
    """Return why rows are outside, most frequent first, with the quantities most concerned."""
    outside = [row for row in rows() if row.kind == "quantity" and row.counted and not row.inside]
    cells = []
    for why, number in Counter(row.why for row in outside).most_common():
        own = Counter(row.quantity for row in outside if row.why == why)
        cells.append([str(number), why, ", ".join(f"{name} {k}" for name, k in own.most_common(3))])
    return Table(["rows", "outside because", "mostly"], cells)


def score() -> Score:
    """Return the score by thread."""
    return Score(rows())


def ratios() -> Ratios:
    """Return model over real of every row."""
    return Ratios(rows())


def small_counts() -> Widths:
    """Return the widths of the model's bands of counts of moves, swaps and choices."""
    return Widths([row for row in rows() if row.quantity in COUNTS])


def effects() -> Effects:
    """Return the effects of switches."""
    return Effects(rows())


# ------------------------------------------------------------------------------------ one case, live
@dataclass(frozen=True)
class Live:
    """A case that was run here and now.

    Attributes
    ----------
    outcome : Outcome
    seeds : int
    """

    outcome: Outcome
    seeds: int

    @property
    def picture(self) -> Courses:
        """Some quantities over time."""
        series = {what: self.outcome.series[name] for name, what in DRAWN.items()}
        return courses(series, self.outcome.case.until_s)

    @property
    def verdicts(self) -> Printed:
        """Every quantity judged by the rules of ``numalab validate``."""
        cells = []
        for quantity in QUANTITIES:
            if quantity.name in self.outcome.real:
                real, model = self.outcome.real[quantity.name], self.outcome.model[quantity.name]
                found = judge(real, model, widest_spread=None, floor=quantity.floor)
                why = found.why.removesuffix(" than a factor of 3")
                told = ("inside" if found.inside else "OUTSIDE") + (f": {why}" if why else "")
                numbers = (found.real, found.model, found.low, found.high, found.ratio)
                cells.append([quantity.name, *map(report.number, numbers), told])
        head = ["quantity", "real", "model", "low", "high", "ratio", ""]
        return Printed(table(head, cells, right=range(1, 6)))

    @property
    def notes(self) -> str:
        """What the model does not follow of this load."""
        return "\n".join(f"* {note}" for note in self.outcome.notes)


def live(names: Sequence[str] = LIVE, seeds: int = 3) -> Live:
    """Run a case of at least three repetitions in the model.

    Parameters
    ----------
    names : sequence of str
        Repetitions of one case.
    seeds : int
    """
    (case,) = group([load(name) for name in names])
    return Live(simulated.run(case, seeds), seeds)


# ------------------------------------------------------------------------------------ decisions
@cache
def decide(name: str, **switches: Value) -> Replay:
    """Put what one kernel saw through numalab's rules.

    Parameters
    ----------
    name : str
        A packed trace with probes.
    **switches
        Rules to be applied that are not the kernel's own.
    """
    with trace.folder(name) as path:
        return decisions.replay(path, **switches)


def decided(replay: Replay) -> Printed:
    """Return what came out: each kind of decision of a trace, the filter's by branch."""
    cells = []
    for row in replay.rows():
        counts = [f"{row['decidable']:,}", f"{row['equal']:,}"]
        majority = "" if row["majority"] is None else f"{row['majority']:.1%}"
        rest = ", ".join(f"{count:,} {reason}" for reason, count in row["reasons"].items())
        cells.append([row["what"], row["branch"], *counts, majority, rest])
    head = ["decision", "branch", "decidable", "equal", "majority", "not decidable"]
    return Printed(table(head, cells, right=[2, 3, 4]))


#: Rules that are not those of 6.12.117: would anybody notice?
WRONG: dict[str, dict[str, Value]] = {
    "the kernel's own rules": {},
    "first touches do not move at once": {"early_private": False},
    "a failed migration goes on slowing scans": {"doubling_clears_counts": False},
}


def noticed(name: str) -> Printed:
    """Replay a trace with rules that are wrong on purpose and count what differs then, by kind of decision."""
    cells = []
    for what, switches in WRONG.items():
        rows = decide(name, **switches).rows()
        decidable, equal = (sum(row[key] for row in rows) for key in ("decidable", "equal"))
        kinds = Counter({row["what"]: row["decidable"] - row["equal"] for row in rows if row["what"] != "filter"})
        kinds["filter"] = sum(row["decidable"] - row["equal"] for row in rows if row["what"] == "filter")
        told_kinds = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items() if count)
        cells.append([what, f"{decidable:,}", f"{decidable - equal:,}", told_kinds])
    return Printed(table(["rules applied", "decidable", "differ", "in"], cells, right=[1, 2]))


# ------------------------------------------------------------------------------------ the yardstick
def rejudge(row: Row, close: float = CLOSE, widest: float = WIDEST, uncertain: bool = True) -> bool:
    """Tell whether a row would be inside by another yardstick.

    Parameters
    ----------
    row : Row
    close : float
        How near the median must come to the real value, as a share of it.
    widest : float
        Factor between the ends of the model's band from which it says nothing.
    uncertain : bool
        Whether a median within the uncertainty of the real value counts as inside.
    """
    if row.model is None or row.real is None or row.low is None or row.high is None:
        return False
    if row.why == "both as good as 0" or thread_or_quantity(row) in _OWN_RULES:
        return row.inside
    if row.high > widest * row.low:
        return False
    near = row.low <= row.real <= row.high or abs(row.model - row.real) <= close * abs(row.real)
    within = row.real_low is not None and row.real_high is not None and row.real_low <= row.model <= row.real_high
    return near or (uncertain and within)


def thread_or_quantity(row: Row) -> str:
    """Return what a row is called in the list of those with rules of their own."""
    return row.quantity if row.quantity in _OWN_RULES else report.thread_of(row)


def yardstick_rows(close: int, widest: float, uncertain: bool) -> list[Row]:
    """Return the judging rows with the verdicts of another yardstick; ``close`` in percent."""
    chosen = [row for row in rows() if row.kind == "quantity" and row.counted]
    return [replace(row, inside=rejudge(row, close / 100, widest, uncertain)) for row in chosen]


def yardstick() -> Explorer:
    """Return the explorer of the rules that say what "inside" is."""
    percent, factor = round(100 * CLOSE), WIDEST
    knobs = [
        slider("close", "near enough", 0, 60, percent, step=5, unit="%"),
        slider("widest", "widest band", 1.5, 10, factor, step=0.5, unit="times"),
        switch("uncertain", "median within the uncertainty of the real value is inside", True),
    ]
    presets: dict[str, Mapping[str, Any]] = {
        "numalab's yardstick": {},
        "strict": {"close": 10, "uncertain": False},
        "kind": {"close": 50, "widest": 10},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Computation]:
        given = (values["close"], values["widest"], values["uncertain"])
        code = f"from numalab.lessons import real_kernel as lesson\n\nds = lesson.yardstick_rows{given!r}"
        text = f"Stored rows that only judge, judged anew: {len(rows())} with effects"
        return {"rows": Computation(lambda seeds: yardstick_rows(*given), code, text)}

    def draw(results: Mapping[str, Any], values: Mapping[str, Any]) -> plots.Picture:
        return Score(results["rows"])

    return Explorer("Move the yardstick", knobs, sides, draw, presets=presets, seeded=False)


# ------------------------------------------------------------------------------------ switches, live
@dataclass(frozen=True)
class Pair:
    """A case with two labels, and the numbers of the repetitions that only judge."""

    case: str
    labels: tuple[str, str]
    reps: tuple[int, ...]

    def names(self, label: str) -> list[str]:
        """Name the runs of a label."""
        return [f"{self.case}_{label}_r{rep}" for rep in self.reps]


PAIRS = {
    "S0: trap all, or skip shared pages": Pair("S0_anon_n16", ("nb1_trap", "nb1_skip"), (2, 3)),
    "S4: before and after one swap rule": Pair("S4_jvm8", ("pre", "post"), (1, 2, 3)),
    "S2: before and with three patches": Pair("S2_write", ("base", "p1p2p3"), (2, 3)),
}
_COUNTERS = {
    "PTEs trapped": "numa_pte_updates",
    "hint faults": "numa_hint_faults",
    "pages migrated": "numa_pages_migrated",
}


@cache
def real_run(name: str) -> Trace:
    """Return a packed run."""
    return load(name)


@cache
def told(name: str) -> Scenario:
    """Return a run as the model is told of it."""
    with trace.folder(name) as path:
        return scenario(path)


@dataclass(frozen=True)
class Followed:
    """A job of an explorer: a real run in the model.

    Attributes
    ----------
    name : str
        Packed trace.
    seconds : float
    """

    name: str
    seconds: float

    def start(self, seeds: Sequence[int]) -> Simulation:
        """Begin."""
        one = told(self.name)
        every = dict.fromkeys(_COUNTERS.values(), 0.2)
        given: dict[str, Any] = {name: round(value) for name, value in one.params.items()}
        return Simulation(
            one.machine, one.workload, one.kernel, seconds=self.seconds, seeds=list(seeds), every=every, **given
        )

    def parts(self, seeds: Sequence[int]) -> list[list[int]]:
        """Part seeds: the first alone, then all others."""
        return [part for part in (list(seeds[:1]), list(seeds[1:])) if part]

    def join(self, parts: Sequence[Any]) -> Any:
        """Put runs of different seeds into one dataset."""
        return parts[0] if len(parts) == 1 else runs.concat(parts)

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that simulates the same."""
        return (
            "from numalab.lessons import real_kernel as lesson\nfrom numalab.simulation import simulate\n\n"
            f"one = lesson.told({self.name!r})  # machine, workload, kernel and parameters from its meta.json\n"
            f"ds = simulate(one.machine, one.workload, one.kernel, seconds={self.seconds}, seeds={list(seeds)}, "
            "**{name: round(value) for name, value in one.params.items()})"
        )

    def facts(self) -> str:
        """Say what is simulated."""
        machine = told(self.name).machine
        cpus = sum(node.cpus for node in machine.nodes)
        return f"{self.name}: {len(machine.nodes)} nodes, {cpus} CPUs; {self.seconds:g} s simulated in steps of 1 ms"


def before_and_after() -> Explorer:
    """Return the explorer that runs both variants of a case beside the real runs."""
    first = next(iter(PAIRS))
    knobs = [
        choice("case", "case", list(PAIRS), first),
        choice("what", "what is counted", list(_COUNTERS), "PTEs trapped"),
        slider("seconds", "time to simulate", 3, 15, 5, unit="s"),
    ]

    def sides(values: Mapping[str, Any]) -> dict[str, Followed]:
        pair = PAIRS[values["case"]]
        return {label: Followed(pair.names(label)[0], float(values["seconds"])) for label in pair.labels}

    def draw(results: Mapping[str, Any], values: Mapping[str, Any]) -> plots.Picture:
        pair, counter = PAIRS[values["case"]], _COUNTERS[values["what"]]
        series = quantities.counter(counter)
        titled: dict[str, tuple[list[quantities.Series], quantities.Series]] = {}
        for label, ds in results.items():
            real = [real_run(name).ds for name in pair.names(label)]
            until = reached(ds)
            model = series(quantities.like(ds[[counter]], real[0], until), until)
            assert model is not None
            drawn = [series(one, float(values["seconds"])) for one in real]
            titled[f"{label}: {values['what']}"] = ([one for one in drawn if one is not None], model)
        return courses(titled, float(values["seconds"]), alike=True)

    return Explorer("A switch, here and there", knobs, sides, draw, band=6)


# ------------------------------------------------------------------------------------ predictions
def predict_share() -> Predict:
    """Ask for the share of rows inside."""
    return Predict("What share of all rows that only judge do you expect to be inside?", 0, 100, step=1, unit="%")


# ------------------------------------------------------------------------------------ exercises
def exercise_inside() -> Exercise:
    """Return problems on the rules of judging."""
    return Exercise("Inside or outside?", _inside_problem)


def _inside_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    mean = float(rng.choice([4, 40, 400, 4000]))
    real = np.round(mean * rng.uniform(0.9, 1.1, 3))
    centre = mean * float(rng.choice([0.6, 0.85, 1.0, 1.2, 1.6]))
    spread = float(rng.choice([0.04, 0.15, 0.5]))
    model = np.sort(np.round(centre * np.exp(spread * rng.standard_normal(9))))
    found = judge(real, model, widest_spread=None)
    low, high = found.low, found.high
    wide = high > WIDEST * low
    answer = "inside" if found.inside else "outside"
    steps = [
        f"The band {low:.0f} .. {high:.0f} is {'' if wide else 'not '}wider than a factor of {WIDEST:g}.",
        f"The real value {found.real:.1f} is {'' if low <= found.real <= high else 'not '}in it.",
        f"The median {found.model:.0f} differs by {abs(found.model / found.real - 1):.0%} ({CLOSE:.0%} would do).",
        f"The real value's own spread is {found.real_low:.1f} .. {found.real_high:.1f}.",
    ]
    return Problem(
        f"Three repetitions on the real kernel counted {', '.join(f'{x:.0f}' for x in real)} (mean {found.real:.1f}, "
        f"standard deviation {real.std(ddof=1):.1f}).\n"
        f"Nine seeds of the model counted {', '.join(f'{x:.0f}' for x in model)}: "
        f"median {found.model:.0f}, 90 % band {low:.1f} to {high:.1f}.\n"
        "Is the row inside?",
        answer,
        lambda given: steps[0] if wide else f"{steps[1]} {steps[2]} One of three ways in is enough.",
        " ".join(steps),
        choices=("inside", "outside"),
    )


def exercise_filter() -> Exercise:
    """Return problems in which the reader answers for the kernel's migration filter."""
    return Exercise("Answer for the kernel", _filter_problem)


YES, NO, COUNTS_NEEDED = "yes, migrate it", "no, leave it", "the group's fault counts decide"


def _filter_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    elsewhere, own, grouped = (bool(rng.integers(2)) for _ in range(3))
    early = bool(rng.integers(4) == 0)
    here, there = (int(node) for node in rng.permutation(2))
    # a task that runs here may have used the page while it ran there
    flags = [np.array([value]) for value in (early and own, elsewhere, own, False, not grouped)]
    branch = int(pagefilter.branch(*flags)[0])
    answer = COUNTS_NEEDED if branch == pagefilter.GROUP else YES if pagefilter.ALLOWS[branch] else NO
    last = "by itself" if own else "by another task"
    scans = 2 if early else 9
    reasons_by_branch = {
        pagefilter.EARLY: "Early in a task's life its own pages move at once, whatever was before.",
        pagefilter.TWO_STAGE: "The last use was from another node: two faults in a row must come from the same node.",
        pagefilter.OWN: "Two faults in a row from here, both by the task itself: a private page.",
        pagefilter.UNGROUPED: "Two faults in a row from this node, and no group to ask.",
        pagefilter.GROUP: "Two faults in a row from this node but by different tasks: a shared page of a group.",
    }
    return Problem(
        f"Task 17 runs on node {here} and faults on a page that lies on node {there}.\n"
        f"The page was last used {last}, from node {there if elsewhere else here}.\n"
        f"Task 17 has a preferred node, has seen {scans} scan sequences, and is "
        f"{'in a group' if grouped else 'in no group'}.\n"
        "May the page follow (6.12)?",
        answer,
        lambda given: (
            "Go through the tests in order: early, two-stage, private, no group, group ratio. The first decides."
        ),
        reasons_by_branch[branch],
        choices=(YES, NO, COUNTS_NEEDED),
    )
