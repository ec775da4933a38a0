"""The lesson on one's own machine (``notebooks/60_your_machine.ipynb``): paste counters, read them, get a verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from numalab import _data, plots
from numalab.diagnose import Diagnosis, Finding, diagnose
from numalab.diagnose.collect import all_readings, collect
from numalab.plots.verdicts import Counters
from numalab.readers.mixed import read_text
from numalab.text import table
from numalab.widgets import (
    Compared,
    Computation,
    Diagnosed,
    Exercise,
    Explorer,
    Predict,
    Printed,
    Problem,
    slider,
    steps,
)

#: Patch thread -> the notebook that explains it.
NOTEBOOKS = {
    "shared_cow": "10_shared_cow",
    "convergence": "20_convergence",
    "scan_overhead": "30_scan_overhead",
    "policy_lock": "40_policy_lock",
    "marginal_moves": "50_marginal_moves",
}
STORM, BEFORE = "xfs_repair_4.0-rc1", "xfs_repair_3.19"
LOGS = ("guest_log_old", "guest_log_new")
#: What is typed on the machine.
COMMANDS = """\
# the least: counters before and after a minute of load, in one file
for t in 0 60; do
    echo "@ $t"; grep -E 'numa|pgmigrate|pgdemote|pgpromote' /proc/vmstat
    [ $t = 60 ] || sleep 60
done > counters.txt

# nodes, and who allocates where
(numactl -H; numastat) > nodes.txt

# or all that numalab can record: counters, tasks, pages
numalab record -o mine.nc --for 60s"""


# ------------------------------------------------------------------------------------ samples
@dataclass(frozen=True)
class Sample:
    """A paste that numalab ships.

    Attributes
    ----------
    name, title, what, source : str
        File; what is known of it beforehand; what was printed where; where it is from.
    finding : str
        The first that a diagnosis finds.
    """

    name: str
    title: str
    what: str
    finding: str
    source: str

    @property
    def text(self) -> str:
        """The paste."""
        return _data.read_text("samples", f"{self.name}.txt")


@lru_cache(maxsize=1)
def samples() -> dict[str, Sample]:
    """Return the samples by name."""
    facts = tomllib.loads(_data.read_text("samples", "samples.toml"))
    return {one["name"]: Sample(**one) for one in facts["sample"]}


def _texts() -> dict[str, str]:
    return {one.title: one.text for one in samples().values()}


def sample(name: str) -> Printed:
    """Return a sample as it was printed."""
    return Printed(samples()[name].text.rstrip("\n"))


def overview() -> Printed:
    """Return what a diagnosis says first of each sample."""
    rows = []
    for one in samples().values():
        found = diagnose(read_text(one.text, one.name)).findings[0]
        rows.append([one.title, found.id, NOTEBOOKS.get(found.thread, "")])
    return Printed(table(["sample", "first finding", "notebook"], rows, right=()))


def commands() -> Printed:
    """Return what to type on the machine that is to be looked at."""
    return Printed(COMMANDS)


# ------------------------------------------------------------------------------------ one machine, two sides
def machine(name: str = STORM) -> Diagnosed:
    """Return the place to paste or upload, with a sample in it."""
    return Diagnosed(_texts(), samples()[name].title, NOTEBOOKS)


def take(place: Diagnosed, name: str) -> str:
    """Put a sample into a place and return the verdict."""
    place.choose(samples()[name].title)
    return place.told


def pair(left: str = BEFORE, right: str = STORM) -> Compared:
    """Return two places beside each other, with samples in them."""
    return Compared(_texts(), samples()[left].title, samples()[right].title)


def take_both(places: Compared, left: str, right: str) -> str:
    """Put samples into both places and return what changed."""
    places.choose(samples()[left].title, samples()[right].title)
    return places.told


def on_the_map(place: Diagnosed | Compared) -> plots.VerdictMap:
    """Show where the sides of a paste lie among the rules for totals."""
    inputs = place.runs.items() if isinstance(place, Compared) else [("", one) for one in place.inputs]
    points = {}
    faults = [0.0]
    for name, given in inputs:
        for side in collect(*all_readings([given])).sides:
            if side.share is not None and side.per_fault is not None:
                points[side.name or name or side.source] = (100 * side.share, 100 * side.per_fault)
                faults.append(side.faults)
    return plots.VerdictMap(points, Counters(faults=max(faults)), f"rules for {max(faults):,.0f} hint faults")


# ------------------------------------------------------------------------------------ the explorer
def judge(share: float, moved: float, faults: int, failed: float, demoted: float) -> Diagnosis:
    """Judge counters made up of a few numbers.

    Parameters
    ----------
    share : float
        Percent of the hint faults that were local.
    moved : float
        Pages migrated of 100 hint faults.
    faults : int
        Hint faults.
    failed : float
        Percent of the migrations tried that failed, below 100.
    demoted : float
        Pages demoted for each page migrated.
    """
    pages = round(faults * moved / 100)
    counters = {
        "numa_pte_updates": faults,
        "numa_hint_faults": faults,
        "numa_hint_faults_local": round(faults * share / 100),
        "numa_pages_migrated": pages,
        "pgmigrate_success": pages,
        "pgmigrate_fail": round(pages * failed / (100 - failed)),
        "pgdemote_kswapd": round(pages * demoted),
    }
    text = "".join(f"{name} {value}\n" for name, value in counters.items())
    return diagnose(read_text(text, "these numbers"))


class Judged(plots.VerdictMap):
    """A point on the map, with the verdict on all its counters in the sentence."""

    found: Diagnosis

    @property
    def alt(self) -> str:
        """The point, and what the diagnosis says."""
        return f"{super().alt} Verdict: {' '.join(map(_said, self.found.findings))}"


def _said(one: Finding) -> str:
    sure = f" (confidence {one.confidence})" if one.confidence else ""
    return f"{one.id}{sure}: {one.says}"


def explorer() -> Explorer:
    """Return the explorer: counters under one's hands, and the verdict on them."""
    knobs = [
        slider("share", "hint faults that were local", 0, 100, 27, unit="%"),
        steps(
            "moved", "pages moved of 100 faults", [0, 0.1, 0.2, 0.5, 1, 2, 4, 10, 20, 30, 40, 60, 100], 40,
        ),
        steps("thousands", "hint faults", [0.5, 10, 100, 1000, 10_000, 100_000], 100_000, unit="thousand"),
        slider("failed", "migrations that failed", 0, 99, 0, unit="%"),
        steps("demoted", "pages demoted for each page moved", [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4], 0,
              help="To memory without CPUs"),
    ]  # fmt: skip
    presets: dict[str, Mapping[str, Any]] = {
        "xfs_repair on 4.0-rc1": {},
        "on 3.19": {"moved": 4},
        "POWER guest": {"share": 100, "moved": 0, "thousands": 10_000},
        "two tiers": {"share": 0, "moved": 30, "thousands": 10_000, "demoted": 1},
        "settled": {"share": 92, "moved": 1, "thousands": 1000},
        "too short": {"thousands": 0.5},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Computation]:
        numbers = _numbers(values)
        given = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
        code = f"from numalab.lessons import your_machine as lesson\n\nds = lesson.judge({given})"
        text = "The rules of numalab diagnose on counters made up of these numbers; nothing is random"
        return {"verdict": Computation(lambda seeds: judge(**numbers), code, text)}

    def draw(results: Mapping[str, Any], values: Mapping[str, Any]) -> plots.Picture:
        faults = _numbers(values)["faults"]
        rules = Counters(faults, values["demoted"])
        title = (
            f"{faults:,} hint faults; {values['failed']} % of the migrations failed; "
            f"{values['demoted']:g} pages demoted for each that moved"
        )
        picture = Judged({"these counters": (values["share"], values["moved"])}, rules, title)
        picture.found = results["verdict"]
        return picture

    return Explorer("How much is too much?", knobs, sides, draw, presets=presets, seeded=False)


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`judge` that the controls stand for."""
    given = dict(values)
    return {"faults": round(1000 * given.pop("thousands")), **given}


# ------------------------------------------------------------------------------------ questions
def predict_number() -> Predict:
    """Ask which number tells the two runs of xfs_repair apart."""
    return Predict(
        "The two runs did the same work; the second took twice as long. Which number tells that the balancing is ill?",
        choices=list(NUMBERS),
    )


SCANNED, LOCAL, MOVED, MISSED = (
    "more PTE updates",
    "a lower local share of the hint faults",
    "more pages migrated for each hint fault",
    "more misses of allocation (numa_miss)",
)
NUMBERS = (SCANNED, LOCAL, MOVED, MISSED)


def telling() -> str:
    """Return which of the numbers became worst from the sample of 3.19 to that of 4.0-rc1."""
    counts = [dict(line.split() for line in samples()[name].text.splitlines()) for name in (BEFORE, STORM)]

    def worse(part: str, whole: str = "") -> float:
        values = [int(one[part]) / (int(one[whole]) if whole else 1) for one in counts]
        return values[1] / values[0]

    grown = {
        SCANNED: worse("numa_pte_updates"),
        LOCAL: 1 / worse("numa_hint_faults_local", "numa_hint_faults"),
        MOVED: worse("numa_pages_migrated", "numa_hint_faults"),
        MISSED: worse("numa_miss"),
    }
    return max(grown, key=lambda name: grown[name])


#: Finding -> what it looks like in numbers.
CLUES = {
    "page-ping-pong": "0.3 pages and more moved for each hint fault while the local share stays in the middle; or "
    "tens of thousands of pages a second that never calm down.",
    "overhead-without-benefit": "very many hint faults, nearly all local, and next to no page moved.",
    "memoryless-node-enables-balancing": "more than one node online, and only one of them with memory.",
    "tlb-shootdown-bound": "a profile that sends interrupts, called by a migration.",
    "tiering-churn": "no fault local, and about as many pages demoted as moved.",
    "scan-filter-too-strict": "side by side, a hundredth of the PTE updates and less, and a run time that is worse.",
    "balancers-disagree": "side by side, many faults of which half are remote against few that are local, and better "
    "results there.",
    "no-convergence": "a run of perf bench numa that lasts to its limit.",
    "migrations-fail": "pgmigrate_fail far above pgmigrate_success.",
    "node-full-foreign-allocations": "a node with a high numa_foreign, and little free memory.",
    "balancing-off": "all counters of balancing 0 beside many allocations.",
    "not-enough-data": "totals with a low local share and no storm: they do not say why, or whether it is over.",
    "nothing-wrong": "enough numbers, and none of the others in them.",
}


def exercise_illness() -> Exercise:
    """Return problems on the samples."""
    return Exercise("Which illness is this?", _illness_problem)


def _illness_problem(seed: int) -> Problem:
    # neighbours get different ones, and every sample comes up
    every = [one for one in samples().values() if one.name not in LOGS]
    order = np.random.default_rng(60).permutation(len(every))
    one = every[int(order[seed % len(every)])]
    found = diagnose(read_text(one.text, "paste")).findings[0]
    return Problem(
        f"From {one.title}: {one.what}.\nWhat is the first finding?",
        one.finding,
        lambda given: f"{given} looks like this: {CLUES[given]} Do you see that here?",
        f"{found.says}\nIt looks like this: {CLUES[one.finding]}",
        choices=sorted(CLUES),
        shown=one.text.rstrip("\n"),
    )


def exercise_share() -> Exercise:
    """Return problems on two snapshots of counters."""
    return Exercise("How local was this minute?", _share_problem)


def _share_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    old = int(rng.integers(5, 50)) * 100_000
    old_share, share = int(rng.integers(20, 90)), int(rng.integers(20, 99))
    new = int(rng.integers(2, 40)) * 10_000
    moved = int(rng.integers(1, 60))
    first = {"numa_hint_faults": old, "numa_hint_faults_local": old * old_share // 100, "numa_pages_migrated": old // 9}
    grown = {
        "numa_hint_faults": new,
        "numa_hint_faults_local": new * share // 100,
        "numa_pages_migrated": new * moved // 100,
    }
    second = {name: value + grown[name] for name, value in first.items()}
    shown = "\n".join(
        f"@ {when}\n" + "\n".join(f"{name} {value}" for name, value in counters.items())
        for when, counters in ((0, first), (60, second))
    )
    local, faults = grown["numa_hint_faults_local"], grown["numa_hint_faults"]
    whole = 100 * second["numa_hint_faults_local"] / second["numa_hint_faults"]
    return Problem(
        "Two looks at /proc/vmstat, a minute apart. How many percent of the hint faults of this minute were local?",
        100 * local / faults,
        lambda given: (
            "That is the share since boot. Subtract first."
            if abs(given - whole) < 1
            else "Counters count since boot: subtract the first look from the second, then divide."
        ),
        f"{local:,} of {faults:,} faults. (Since boot it is {whole:.0f} %.)",
        tolerance=0.5,
        unit="%",
        shown=shown,
    )
