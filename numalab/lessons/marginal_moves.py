"""The lesson of the marginal moves thread (``notebooks/50_marginal_moves.ipynb``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from numalab import _data, plots, welch
from numalab.derived import growth, time_axis
from numalab.machine import machine
from numalab.patch_threads import Claim
from numalab.patch_threads import marginal_moves_report as report
from numalab.patch_threads.marginal_moves import from_stored
from numalab.patch_threads.marginal_moves_cases import (
    ANY_GAIN,
    BASE,
    BRANCH,
    BRANCH_PATCHED,
    GAIN_NAMES,
    GROUP_SHARE,
    HACKBENCH,
    JVM,
    JVM_MACHINE,
    LATER,
    NEW,
    NO_HYSTERESIS,
    PATCHED,
    QUICK,
    Result,
    Size,
    hackbench_defaults,
    published,
)
from numalab.plots.moves import Gains
from numalab.text import table
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, choice, slider, steps, switch
from numalab.writers import lkp as lkp_writer

#: Of 1000; and the same in percent.
LIMIT = published()["threshold"]["gain"]
PERCENT = published()["threshold"]["percent"]
BEFORE_NAME, WITH_NAME = "before", "with a43455a1"
#: As short as a figure has room for.
SHORT = {BASE: "before", NEW: "+ a43455a1", PATCHED: "+ the patch"}
BRANCH_NAME, LIMIT_NAME = "3.17: 1/16 off the gain", f"3.17: at least {PERCENT} %"
#: What stands on the right side of the explorer: name -> kernel and switches.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "3.17": ("3.17", {}),
    "4.19, swaps at least 30 of 1000": ("4.19", {}),
    "4.19 without the 30": ("4.19", {"small_improvement": 0}),
}
#: Thresholds to choose from, percent; 0: none.
PERCENTS = (0, 0.1, 0.5, 1, 2, 5, 10)
#: The loads of one picture: name of a test, as short as it fits.
TESTS = {"pipe": "ivb42, pipe", "socket": "lkp-snb01, socket"}
HACKBENCH_S = 32.0
SECONDS, THREADS = 8.0, machine(JVM_MACHINE).cpus
LITTLE = {"every": {"task_node": None, "pages": None}, "step_us": QUICK.jvm_step_us}


# ------------------------------------------------------------------------------------ what is run
def hackbench(load: str = "pipe") -> dict[str, Setup]:
    """Describe the report's run before and with the commit, one thread in place of four."""
    return {BEFORE_NAME: _hackbench(load, ()), WITH_NAME: _hackbench(load, ("a43455a1",))}


def _hackbench(load: str, patches: tuple[str, ...]) -> Setup:
    on, usual, per = HACKBENCH[load], hackbench_defaults(), QUICK.threads_per
    arguments = {
        "groups": int(machine(on).cpus * GROUP_SHARE),
        "kind": load,
        "tasks_per_group": usual["tasks_per_group"] // per,
        "demand": usual["demand"] * per,
        "stack_kb": usual["stack_kb"] * per,
    }
    return Setup(
        on, "hackbench", "3.16", HACKBENCH_S, arguments, patches,
        options={"step_us": QUICK.hackbench_step_us, "every": {"task_node": None, "pages": None}},
    )  # fmt: skip


def jvm(
    switches: Mapping[str, Any] | None = None, threads: int = THREADS, seconds: float = SECONDS, kernel: str = "3.17"
) -> Setup:
    """Describe a JVM with one heap that spans all four nodes, on a kernel with some switches changed."""
    return Setup(JVM_MACHINE, "jvm", kernel, seconds, {"threads": threads}, switches=switches or {}, options=LITTLE)


def jvms() -> dict[str, Setup]:
    """Describe the JVM on the kernel of July 2014, and with the mail's threshold."""
    return {BRANCH_NAME: jvm(), LIMIT_NAME: jvm({"numa_move_threshold": LIMIT})}


def work(ds: xr.Dataset) -> float:
    """Return the page visits of all tasks a second, millions, mean of all runs; 0 before anything was recorded."""
    visits = ds["task_work_pages"]
    times = visits[time_axis(visits)].values
    seconds = float(times[-1] - times[0])
    return float(growth(visits).sum("task").mean()) / seconds / 1e6 if seconds else 0.0


def gained(runs: Mapping[str, xr.Dataset]) -> float:
    """Return the work of the second side beyond the first, percent."""
    first, second = (work(ds) for ds in runs.values())
    return 100 * (second / first - 1)


def small_share(ds: xr.Dataset) -> float:
    """Return the share of swaps that gain less than the mail's threshold, percent; 0 without swaps."""
    swaps = plots.moves(ds, below=LIMIT)
    counts = swaps.counts[next(iter(swaps.counts))][1]
    return float(100 * counts[: swaps.below].sum() / counts.sum()) if counts.any() else 0.0


@dataclass
class GainsAndWork(Gains):
    """Moves and swaps by gain, and in the sentence what work was done beside them: side -> page visits [M/s]."""

    work: Mapping[str, float] | None = None

    @property
    def alt(self) -> str:
        """Totals, how many gain little, and the work."""
        first = next(iter((self.work or {}).values()), 0.0)
        words = [
            f"{name}: {value:.2f} M page visits/s" + ("" if value is first or not first else _change(value, first))
            for name, value in (self.work or {}).items()
        ]
        return f"{super().alt} Work done: {'; '.join(words)}."


def _change(value: float, first: float) -> str:
    return f" ({100 * (value / first - 1):+.1f} %)"


def gains(runs: Mapping[str, xr.Dataset]) -> GainsAndWork:
    """Show moves and swaps of runs by gain, with the mail's threshold."""
    found = plots.moves(runs, below=LIMIT)
    done = {name: work(ds) for name, ds in runs.items()}
    seconds = min(float(ds["time"].values[-1]) for ds in runs.values())
    return GainsAndWork(found.counts, found.runs, per=f"in {seconds:.1f} s", little=LIMIT, marked=True, work=done)


# ------------------------------------------------------------------------------------ the stored replay
@lru_cache(maxsize=1)
def stored() -> dict[tuple[str, str], Result]:
    """Return the stored results by load and label."""
    facts = json.loads(_data.read_text("results", "marginal_moves.json"))
    return {(one.case.load, one.case.label): one for one in from_stored(facts)}


def stored_words() -> str:
    """Say what the stored results are: seeds, revision, size."""
    facts = json.loads(_data.read_text("results", "marginal_moves.json"))
    size = Size(**facts["size"])
    return (
        f"Stored results: {len(facts['seeds'])} seeds, numalab {facts['numalab']} at {facts['revision'][:12]};\n"
        f"hackbench {size.hackbench_s:.0f} s with one thread for {size.threads_per}, the JVM {size.jvm_s:.0f} s "
        "(4.19: four times as long)."
    )


def report_table() -> Printed:
    """Return the report's table as the mail has it."""
    return Printed(lkp_writer.write_2014(report.mail_table()).rstrip())


def report_picture() -> plots.Spans:
    """Return the report's numbers with their deviations."""
    return plots.Spans(
        "local hint faults [thousands]",
        {name: _mail_spans(key) for name, key in ((BEFORE_NAME, "base"), (WITH_NAME, "new"))},
        form=".1f",
    )


def _mail_spans(key: str, *, ratio: bool = False) -> dict[str, plots.Span]:
    return {
        TESTS[row["load"]]: plots.Span.of_mean(row[key], row[key] * row[f"{key}_spread"] / 100).over(
            row["base"] if ratio else 1000.0
        )
        for row in published()["lkp"]["rows"]
    }


def model_table() -> Printed:
    """Return the same table from the stored results, with the mail's patch as a further column."""
    tables = report.lkp_tables(list(stored().values()))
    assert tables is not None
    return Printed(tables[1].rstrip())


def spreads() -> plots.Spans:
    """Return the counter of the report relative to before: the report's and each run of the model."""
    report_name, model_name = "the report", "the model"
    series: dict[str, dict[str, plots.Span]] = {model_name: {}, report_name: {}}
    for load, test in TESTS.items():
        base = float(stored()[load, BASE].local().mean())
        for label in SHORT:
            group = f"{test}\n{SHORT[label]}"
            if label != PATCHED:
                series[report_name][group] = _mail_spans("base" if label == BASE else "new", ratio=True)[test]
            series[model_name][group] = plots.Span.of_runs(stored()[load, label].local().tolist()).over(base)
    return plots.Spans("local hint faults, before = 1", series, line=1.0)


#: What is asked of the runs: words -> numbers of a result.
ASKED: dict[str, Callable[[Result], Any]] = {
    "local hint faults": lambda one: one.local(),
    "all hint faults": lambda one: one.counts["numa_hint_faults"],
    "local share [%]": lambda one: 100 * one.local() / one.counts["numa_hint_faults"],
    "pages migrated": lambda one: one.counts["numa_pages_migrated"],
    "page visits [M/s]": lambda one: one.counts["work"] / one.seconds / 1e6,
}


def helped() -> Printed:
    """Return what changed with the commit and whether it is more than noise (Welch's test at 5 %), stored results."""
    rows = []
    for load, test in TESTS.items():
        for words, of in ASKED.items():
            base, new = of(stored()[load, BASE]), of(stored()[load, NEW])
            found = welch.compare(_sample(base), _sample(new))
            rows.append(
                [
                    test,
                    words,
                    *(f"{_short(values.mean())} ± {report.spread(values):.1f} %" for values in (base, new)),
                    f"{100 * (new.mean() / base.mean() - 1):+.1f} %",
                    "yes" if found is not None and found.p < welch.ALPHA else "no",
                ]
            )
    return Printed(table(["", "", BEFORE_NAME, WITH_NAME, "change", "more than noise"], rows, left=2))


def _sample(values: Any) -> welch.Sample:
    return welch.Sample(float(values.mean()), float(values.std(ddof=1)), len(values))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def rules() -> Gains:
    """Return moves and swaps of the JVM a minute by gain, under four rules: stored results."""
    labels = {
        BRANCH: BRANCH_NAME,
        NO_HYSTERESIS: "without it",
        BRANCH_PATCHED: f"at least {PERCENT} %",
        LATER: "4.19: at least 30",
    }
    found = {name: stored()[JVM, label] for label, name in labels.items()}
    return Gains(
        {
            name: np.stack([one.moves.mean(axis=0), one.swaps.mean(axis=0)]) * 60 / one.seconds
            for name, one in found.items()
        },
        {name: len(one.swaps) for name, one in found.items()},
        GAIN_NAMES,
        per="a minute",
        little=LIMIT,
        marked=True,
    )


def rules_table() -> Printed:
    """Return the same as numbers, with the work done."""
    labels = (BRANCH, NO_HYSTERESIS, BRANCH_PATCHED, ANY_GAIN, LATER)
    return Printed(report.gains_table([stored()[JVM, label] for label in labels]))


@lru_cache(maxsize=1)
def claims() -> list[Claim]:
    """Return the mail's claims with the answers of the stored replay."""
    return report.claims(list(stored().values()))


# ------------------------------------------------------------------------------------ widgets
def predict_work() -> Predict:
    """Ask what the commit does to the work."""
    return Predict(
        "With the commit hackbench has about twice as many local hint faults. How much more work does it get done in "
        "the same time?",
        -50,
        100,
        unit="%",
    )


def predict_small() -> Predict:
    """Ask how many swaps gain little."""
    return Predict(
        f"One JVM whose heap lies on all four nodes. Of all swaps of two of its threads, how many gain less than "
        f"{PERCENT} %?",
        0,
        100,
        unit="%",
    )


def explorer() -> Explorer:
    """Return the explorer: the JVM on 3.17, and with other rules against moves of little gain."""
    knobs = [
        steps("percent", "a move must gain at least", PERCENTS, PERCENT, unit="%",
              help="The mail's threshold; 0: it is not there, and what stands beside it holds"),
        switch("sixteenth", "at 0 %: 1/16 off a swap's gain", True),
        switch("busy", "moves onto busy CPUs (convergence series, patch 5)", True),
        choice("kernel", "kernel", list(KERNELS), next(iter(KERNELS))),
        steps("threads", "threads", [20, 40, 80, 120, 160], THREADS),
        slider("seconds", "time to simulate", 4, 40, SECONDS, step=2, unit="s"),
    ]  # fmt: skip
    off = {"percent": 0}
    presets: dict[str, Mapping[str, Any]] = {
        "the mail's 5 %": {},
        "0.1 %": {"percent": 0.1},
        "no 1/16": off | {"sixteenth": False},
        "no moves onto busy CPUs": off | {"busy": False},
        "two threads a CPU": {"threads": 160},
        "4.19": off | {"kernel": list(KERNELS)[1], "seconds": 40},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Setup]:
        kernel, switches = KERNELS[values["kernel"]]
        size = (values["threads"], float(values["seconds"]))
        return {BRANCH_NAME: jvm({}, *size), _rule_name(values): jvm(switches | _switches(values), *size, kernel)}

    def draw(runs: Mapping[str, xr.Dataset], values: Mapping[str, Any]) -> plots.Picture:
        return gains(runs)

    return Explorer("Find the edge: how much must a move gain?", knobs, sides, draw, presets=presets, band=4)


def _switches(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the switches of the right side; the threshold replaces the 1/16, as in the mail's patch."""
    limit = round(10 * values["percent"])
    chosen: dict[str, Any] = {"numa_move_threshold": limit} if limit else {}
    if not limit and not values["sixteenth"]:
        chosen["group_hysteresis"] = False
    if not values["busy"]:
        chosen["move_in_swap"] = False
    return chosen


def _rule_name(values: Mapping[str, Any]) -> str:
    limited = f"at least {values['percent']:g} %" if values["percent"] else ""
    loose = "" if limited or values["sixteenth"] else "no 1/16"
    idle = "" if values["busy"] else "idle CPUs only"
    return f"{values['kernel'].split(',')[0]}: {', '.join(filter(None, (limited, loose, idle))) or 'no threshold'}"


# ------------------------------------------------------------------------------------ exercises
def exercise_total() -> Exercise:
    """Return problems on the TOTAL line of the robot's table."""
    return Exercise("What is the TOTAL?", _total_problem)


def _total_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    base = [int(rng.integers(20, 60)) * 1000, int(rng.integers(100, 400)) * 1000]
    change = [int(rng.integers(80, 300)), int(rng.integers(-20, 20))]
    new = [one * (100 + percent) // 100 for one, percent in zip(base, change, strict=True)]
    answer = 100 * (sum(new) / sum(base) - 1)
    rows = [
        [f"{a}", f"{percent:+d}%", f"{b}", name]
        for a, percent, b, name in zip(base, change, new, ("box1/hackbench", "box2/hackbench"), strict=True)
    ]
    return Problem(
        table(["before", "change", "after", "test"], rows, left=0)
        + "\nThe line TOTAL adds up both tests. Which change does it print? (In percent, to one.)",
        answer,
        lambda given: "Changes in percent cannot be added or averaged: add up the counts of each column first.",
        f"{sum(base)} before, {sum(new)} after: {answer:+.1f} %. The larger count decides, whatever it means.",
        tolerance=1.0,
        unit="%",
    )


def exercise_noise() -> Exercise:
    """Return problems on whether a difference is more than noise."""
    return Exercise("Is it more than noise?", _noise_problem)


def _noise_problem(seed: int) -> Problem:
    """Draw means and deviations; a difference close to the edge of the test is drawn anew."""
    rng = np.random.default_rng(seed)
    while True:
        n = int(rng.choice([3, 5, 10, 20]))
        base, percent = 100_000, int(rng.integers(4, 60))
        spread = [int(rng.integers(3, 12)), int(rng.integers(5, 40))]
        new = base * (100 + percent) // 100
        before, after = (welch.Sample(m, m * s / 100, n) for m, s in zip((base, new), spread, strict=True))
        found = welch.compare(before, after)
        assert found is not None
        if found.p < 0.01 or found.p > 0.15:
            break
    error = ((before.stddev**2 + after.stddev**2) / n) ** 0.5
    yes, no = "more than noise", "may be noise"
    return Problem(
        f"{n} runs each: {base} ~{spread[0]}% before, {new} ~{spread[1]}% after ({percent:+d} %; ~ is the standard "
        "deviation in percent of the mean).\nIs the difference more than noise, at 5 %?",
        yes if found.p < welch.ALPHA else no,
        lambda given: (
            "The standard error of the difference is the root of (first deviation² + second deviation²) / runs. Is the "
            "difference more than about twice that (with 3 runs, rather three to four times)?"
        ),
        f"Difference {new - base:,}, standard error {error:,.0f}: {(new - base) / error:.1f} times, p = {found.p:.2g}.",
        choices=(yes, no),
    )


def exercise_gain() -> Exercise:
    """Return problems on the gain of a swap within a group."""
    return Exercise("What does this swap gain?", _gain_problem)


def _gain_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    # both lean a little towards the other node, so that a swap gains something
    mine, other = (500 + int(lean) for lean in rng.integers(1, 40, 2))
    here, there = (1000 - mine, mine), (other, 1000 - other)
    gain = (here[1] - here[0]) + (there[0] - there[1])
    answer = gain - gain // 16
    rows = [["on node 0", str(here[0]), str(here[1])], ["on node 1", str(there[0]), str(there[1])]]
    passes = "would pass" if gain >= LIMIT else "would be refused"
    return Problem(
        "Two threads of one group; shares of their faults by node, of 1000:\n"
        + table(["thread", "node 0", "node 1"], rows)
        + "\nThey might change places. What gain does 3.17 reckon with, of 1000? (It takes 1/16 off, whole numbers.)",
        answer,
        lambda given: (
            "Each gains its share on the other node less its share on its own; add up both, then take off a sixteenth "
            "of that, rounded down."
        ),
        f"({here[1]} - {here[0]}) + ({there[0]} - {there[1]}) = {gain}; {gain} - {gain // 16} = {answer}.\n"
        f"With the mail's threshold it {passes}: {gain} of {LIMIT}.",
        unit="of 1000",
    )
