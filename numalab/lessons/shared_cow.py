"""The lesson of the shared copy-on-write thread (``notebooks/10_shared_cow.ipynb``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from numalab import _data, plots, runs
from numalab.derived import growth, time_axis
from numalab.model.params import DEFAULTS
from numalab.patch_threads import Claim
from numalab.patch_threads import shared_cow_report as report
from numalab.patch_threads.shared_cow import from_stored
from numalab.patch_threads.shared_cow_cases import (
    BEFORE,
    MAIN,
    PAGE_INTS,
    READINGS,
    STEP_US,
    Case,
    Followed,
    Result,
    published,
)
from numalab.patch_threads.shared_cow_guest import READERS as REAL_READERS
from numalab.patch_threads.shared_cow_guest import REPETITIONS, Guest
from numalab.plots.arrays import pages_of
from numalab.plots.curves import Curves
from numalab.readers import trace
from numalab.scenarios import scenario
from numalab.simulation import simulate
from numalab.text import table
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, choice, slider, steps
from numalab.workload import Binding
from numalab.workloads import shared_cow

#: The mail's machine with a CPU for each core.
ONE = READINGS[144]
READERS, INTS = published()["program"]["readers"], published()["program"]["ints"]
SECONDS = float(published()["program"]["seconds"])
COST_NS = ONE.per_mapping_ns
ONE_MIGRATION_NS = Case("", ONE, BEFORE, READERS).migration_ns
OFF_NAME, BEFORE_NAME, PATCH_NAME = "balancing off", "4.15", "with the patch"
PATCH: dict[str, Any] = {"skip_shared_cow": "mapcount"}
#: Recorded this often, s; the rest of what a run can record is not looked at here.
OFTEN_S = 0.04
RECORDED = ("numa_hint_faults", "numa_pages_migrated", "pages", "task_run_ms", "task_wait_ms", "task_work_pages")
LEFT_OUT = (
    "numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults_local", "pgmigrate_success", "pgmigrate_fail",
    "migrate_refused", "minor_faults", "migration_waits", "preferred_changes", "task_node", "preferred_nid",
    "free_pages", "scan_period_ms", "numa_group_id", "total_numa_faults", "task_sys_ms", "scan_seq",
)  # fmt: skip
EVERY: dict[str, float | None] = dict.fromkeys(RECORDED, OFTEN_S) | dict.fromkeys(LEFT_OUT)
#: When two readers are sent to another node, and when that run ends, s; from where to where.
MOVED_S, MOVED_END_S, HOME, AWAY = 2.0, 5.0, 0, 1
#: Characters of a line that a notebook has room for at 1280 pixels.
_LINE = 88
#: A limit between the patch's one process and all 288, for a guess.
HALF_WAY = 100


# ------------------------------------------------------------------------------------ what is run
def setup(
    switches: Mapping[str, Any] | None = None, *, readers: int = READERS, ints: int = INTS, seconds: float = SECONDS,
    cost_ns: int = COST_NS, balancing: bool = True,
) -> Setup:  # fmt: skip
    """Describe the mail's program on its machine, kernel 4.15 with some switches changed.

    Parameters
    ----------
    switches : mapping, optional
    readers, ints : int
        Processes, and length of the array.
    seconds : float
    cost_ns : int
        Time that each process which maps a page adds to its migration.
    balancing : bool
        False: nobody ever gets to the first scan.
    """
    options: dict[str, Any] = {"remote_cost": 0, "unmap_ns": cost_ns, "step_us": STEP_US, "every": EVERY}
    if not balancing:
        options["numa_balancing"] = 0
    arguments = {"processes": readers, "size_ints": ints, "seconds": seconds, "pass_ms": ONE.pass_ms}
    return Setup(ONE.machine, "shared_cow", BEFORE.name, seconds, arguments, switches=switches or {}, options=options)


def three() -> dict[str, Setup]:
    """Describe the mail's three runs."""
    return {OFF_NAME: setup(balancing=False), BEFORE_NAME: setup(), PATCH_NAME: setup(PATCH)}


def limited(most: int) -> dict[str, Any]:
    """Return the switches of a limit: pages that more processes map are left alone; one is the patch's."""
    return PATCH if most == 1 else {"cow_max_mappers": most}


def moved() -> dict[str, Setup]:
    """Describe two readers that are sent to another node: with a limit of five, and with the patch."""
    load = shared_cow(2, INTS, MOVED_END_S, ONE.pass_ms)
    sent = replace(load, bindings=(Binding(HOME, until_ms=1000 * MOVED_S), Binding(AWAY, from_ms=1000 * MOVED_S)))
    options = setup().options
    rules = {"limit of 5": limited(5), PATCH_NAME: PATCH}
    return {
        name: Setup(ONE.machine, sent, BEFORE.name, MOVED_END_S, switches=switches, options=options)
        for name, switches in rules.items()
    }


def after_them(given: Mapping[str, xr.Dataset]) -> Curves:
    """Show which share of the array has come after the readers."""
    return plots.pages_on(given, AWAY)


# ------------------------------------------------------------------------------------ numbers of a run
def passes(ds: xr.Dataset, ints: int = INTS) -> float:
    """Return the passes of all readers over the array so far, mean of all runs."""
    return float(growth(ds.task_work_pages).sum("task").mean()) * PAGE_INTS / ints


def lost(given: Mapping[str, xr.Dataset], name: str = BEFORE_NAME) -> float:
    """Return the throughput that a side lacks against balancing off, percent."""
    return 100 * (1 - passes(given[name]) / passes(given[OFF_NAME]))


def lost_words(given: Mapping[str, xr.Dataset]) -> str:
    """Say what is lost in the model, and in the mail."""
    return f"{lost(given):.1f} %, fitted; the mail: {mail_lost('before'):.1f} %"


def waiting(given: Mapping[str, xr.Dataset], ints: int = INTS, *, seconds: float | None = None) -> Curves:
    """Show the share of readers that wait for a page, and tell beside it moves and passes."""
    drawn = plots.waiting(given, seconds=seconds)
    rates = {name: passes(ds, ints) / max(_seconds(ds), 1e-9) for name, ds in given.items()}
    first = next(iter(rates.values()))
    words = [f"{name}: {_words(ds, rates[name], first)}." for name, ds in given.items()]
    readers = next(iter(given.values())).sizes["task"]
    title = f"{readers:,} reader{'s' * (readers > 1)} of {ints:,} integers"
    part = replace(drawn.parts[0], title=title, words=" ".join(words))
    return replace(drawn, what="readers waiting", parts=[part])


def _seconds(ds: xr.Dataset) -> float:
    return float(ds[time_axis(ds.task_work_pages)].values[-1])


def _words(ds: xr.Dataset, rate: float, first: float) -> str:
    """Tell waiting, moves and passes of a side, and how its passes compare with the first side's."""
    seconds = _seconds(ds)
    waited = float(growth(ds.task_wait_ms).sum("task").mean()) / 1000 / ds.sizes["task"] / max(seconds, 1e-9)
    moves = float(growth(ds.numa_pages_migrated).mean()) / pages_of(ds)
    change = f" ({100 * (rate / first - 1):+.1f} %)" if first and rate != first else ""
    return (
        f"in {seconds:.1f} s readers waited {100 * waited:.1f} % of the time, a page moved {moves:.1f} times; "
        f"{rate:,.0f} passes a second{change}"
    )


def costs() -> Printed:
    """Return what a migration takes by the number of processes that map the page: the fitted cost."""
    cells = []
    for readers in (1, 2, 16, 72, 144, 288):
        whole = Case("", ONE, BEFORE, readers).migration_ns
        cells.append([f"{readers}", f"{whole / 1000:.1f}", f"{100 * readers * COST_NS / whole:.0f} %"])
    return Printed(table(["processes", "a migration [µs]", "of it to unmap"], cells, left=0))


class LossPart(NamedTuple):
    """What took CPU time from reading: how often, what each took [µs], and all of it [s, all CPUs together]."""

    what: str
    number: float | None
    each_us: float | None
    seconds: float


def loss_parts(given: Mapping[str, xr.Dataset], name: str = BEFORE_NAME) -> list[LossPart]:
    """Return what the loss of a side is made of, mean of all runs.

    A reader that waits leaves its CPU idle here, so that all of it is lost. Migrations and hint faults are what they
    cost each; scans are what is left.
    """
    ds = given[name]
    whole = lost(given, name) / 100 * _of_all(given[OFF_NAME].task_run_ms) / 1000
    counted = {
        "migrations": (ds.numa_pages_migrated, ONE_MIGRATION_NS / 1000),
        "hint faults": (ds.numa_hint_faults, DEFAULTS["hint_fault_ns"] / 1000),
    }
    parts = [LossPart("waiting for a page", None, None, _of_all(ds.task_wait_ms) / 1000)]
    parts += [LossPart(what, _of_all(n), each, _of_all(n) * each / 1e6) for what, (n, each) in counted.items()]
    return [*parts, LossPart("scans", None, None, whole - sum(part.seconds for part in parts))]


def loss_table(given: Mapping[str, xr.Dataset], name: str = BEFORE_NAME) -> Printed:
    """Return what the loss of a side is made of, in CPU time and in percent of the throughput."""
    parts, whole = loss_parts(given, name), lost(given, name)
    total = sum(part.seconds for part in parts)
    cells = [
        [part.what, "" if part.number is None else f"{part.number:,.0f}",
         "" if part.each_us is None else f"{part.each_us:.1f}", f"{part.seconds:.2f}",
         f"{whole * part.seconds / total:.2f} %"]
        for part in parts
    ]  # fmt: skip
    cells.append(["together", "", "", f"{total:.2f}", f"{whole:.2f} %"])
    return Printed(table([name, "number", "each [µs]", "of all CPUs [s]", "throughput lost"], cells))


def _of_all(counter: xr.DataArray) -> float:
    """Return the growth of a counter over a run, all tasks together, mean of all runs."""
    return float(growth(counter).sum().item()) / counter.sizes["run"]


# ------------------------------------------------------------------------------------ the mail, the stored replay
def mail_table() -> Printed:
    """Return the mail's numbers."""
    mail = published()
    off, count = mail["throughput"]["off"], mail["program"]["readers"]
    cells = [
        [words, f"{done:,}", f"{done / count / mail['program']['seconds']:.1f}", f"{100 * (1 - done / off):.2f} %"]
        for words, done in ((report.WORDS[label], mail["throughput"][label]) for label in MAIN)
    ]
    head = ["balancing", "passes in 10 s, all readers", "of one reader a second", "lost"]
    return Printed(table(head, cells))


def mail_lost(label: str) -> float:
    """Return the throughput lost by the mail, percent; of ``before`` or ``patched``."""
    told = published()["throughput"]
    return float(100 * (1 - told[label] / told["off"]))


@lru_cache(maxsize=1)
def stored() -> tuple[list[Result], dict[str, Followed], Guest]:
    """Return the stored results: the runs, who follows whom, and the traced readers."""
    return from_stored(json.loads(_data.read_text("results", "shared_cow.json")))


def stored_words() -> str:
    """Say what the stored results are."""
    facts = json.loads(_data.read_text("results", "shared_cow.json"))
    return f"Stored results: {facts['seeds']} seeds, numalab {facts['numalab']} at {facts['revision'][:12]}."


def _lost_of(trio: report.Trio, label: str) -> plots.Span:
    return plots.Span.of_runs((100 * (1 - trio[label].passes / trio["off"].passes)).tolist())


def by_readers() -> plots.Spans:
    """Return the throughput lost by the number of readers: stored results."""
    points = report.swept(stored()[0], "readers")
    names = {"before": BEFORE_NAME, "patched": PATCH_NAME}
    series = {
        name: {f"{n:,}\nreader{'s' * (n > 1)}": _lost_of(trio, label) for n, trio in points}
        for label, name in names.items()
    }
    return plots.Spans("throughput lost [%]", series)


def mail_and_model() -> plots.Spans:
    """Return the throughput lost, the mail's beside the model's for both readings of the machine."""
    groups = {"before": "before the patch (fitted)", "patched": PATCH_NAME}
    series = {"the mail": {group: plots.Span.of_mean(mail_lost(label), 0.0) for label, group in groups.items()}}
    for reading, trio in report.trios(stored()[0]):
        series[f"the model, {reading.cpus} CPUs"] = {group: _lost_of(trio, label) for label, group in groups.items()}
    return plots.Spans("throughput lost [%]", series)


def variants() -> Printed:
    """Return what other tests of the scanner do: stored results."""
    found, followed, _ = stored()
    return Printed(report.variants_table(found, followed))


@lru_cache(maxsize=1)
def claims() -> list[Claim]:
    """Return the mail's claims with the answers of the stored replay; not what the model counts beside them."""
    return [one for one in report.claims(*stored()) if one.published != report.NOT_GIVEN]


def not_held() -> list[Claim]:
    """Return the claims that do not hold."""
    return [one for one in claims() if one.holds is False]


def remarks() -> Printed:
    """Say what was fitted, what it hangs on, and why some claims do not hold."""
    return Printed(report.remarks(stored()[0], _LINE))


# ------------------------------------------------------------------------------------ a real kernel
#: Title of a panel -> label of the traces.
REAL = {"as in 4.15": "nb1_trap", PATCH_NAME: "nb1_skip2018"}


def real_readers(seed: int = 0) -> plots.ForkOrder:
    """Return what each of the traced readers got done, in order of fork, with a run of the model each."""
    panels = {}
    for title, label in REAL.items():
        names = [f"S0_anon_n{REAL_READERS}_{label}_r{rep}" for rep in REPETITIONS]
        real = {f"real kernel, run {rep}": _real_passes(name) for rep, name in zip(REPETITIONS, names, strict=True)}
        panels[title] = {"model": _model_passes(names[0], seed), **real}
    return plots.ForkOrder(panels, "reader")


def _real_passes(name: str) -> Any:
    """Return the passes of the readers of a trace: (reader,), the first forked first."""
    found = runs.provenance(trace.load(name))["passes"]
    return np.array([found[str(reader)] for reader in range(REAL_READERS)], float)


def _model_passes(name: str, seed: int) -> Any:
    """Return page visits of the readers in the same case in the model."""
    with trace.folder(name) as path:
        told = scenario(path)
    given: dict[str, Any] = {name: round(value) for name, value in told.params.items()}
    every: dict[str, float | None] = {"task_work_pages": 1.0} | dict.fromkeys(LEFT_OUT)
    ds = simulate(
        told.machine, told.workload, told.kernel, seconds=told.seconds, seeds=[seed], every=every, **given
    )  # fmt: skip
    # the monitor comes after the readers
    return growth(ds.task_work_pages).values[0, :REAL_READERS]


# ------------------------------------------------------------------------------------ widgets
def predict_loss() -> Predict:
    """Ask what balancing costs readers that only read."""
    return Predict(
        "288 processes add up the same array over and over. Nobody writes, and the array fits into the cache of every "
        "socket. How much throughput is lost when NUMA balancing is switched on?",
        0,
        60,
        unit="%",
    )


NONE, SOME, ALL = "none of it", "a part of it, about a third", "all of it, as with the patch"


def predict_limit() -> Predict:
    """Ask what a limit between one process and all does."""
    return Predict(
        f"Leave pages alone that more than {HALF_WAY} processes map, in place of more than one. The array is mapped by "
        f"{READERS}. How much of what was lost comes back?",
        choices=(NONE, SOME, ALL),
    )


def comes_back(given: Mapping[str, xr.Dataset], most: int = HALF_WAY) -> str:
    """Return which of the answers of the guess is right."""
    limit = passes(setup(limited(most)).run())
    before, off = (passes(given[name]) for name in (BEFORE_NAME, OFF_NAME))
    share = (limit - before) / (off - before)
    return ALL if share > 0.9 else NONE if share < 0.1 else SOME


def explorer() -> Explorer:
    """Return the explorer: 4.15 beside the same with a limit, or with balancing off."""
    beside = {"the limit": "limit", OFF_NAME: "off"}
    knobs = [
        steps("readers", "readers", [1, 2, 5, 16, 36, 72, 100, 144, 200, 288, 576], READERS),
        slider("limit", "limit of mappings", 1, 288, 1,
               help="Pages that more processes map are not trapped; 1 is the patch"),
        steps("cost_ns", "cost of a mapping", sorted({0, 50, 100, 200, 500, 1000, COST_NS}), COST_NS, unit="ns",
              help=f"{COST_NS} ns was fitted to the mail's throughput without the patch"),
        steps("thousands", "array", [100, 300, INTS // 1000, 3000], INTS // 1000, unit="1000 integers"),
        slider("seconds", "time to simulate", 4, 20, SECONDS, unit="s"),
        choice("beside", "beside 4.15", beside, "limit"),
    ]  # fmt: skip
    presets: dict[str, Mapping[str, Any]] = {
        PATCH_NAME: {},
        "off": {"beside": "off"},
        "4.15: no limit": {"limit": 288},
        "limit of 5": {"limit": 5},
        "limit of 287": {"limit": 287},
        "16 readers": {"readers": 16, "limit": 5},
        "576 readers": {"readers": 576},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Setup]:
        common = {
            "readers": values["readers"], "ints": 1000 * values["thousands"], "cost_ns": values["cost_ns"],
            "seconds": float(values["seconds"]),
        }  # fmt: skip
        if values["beside"] == "off":
            return {BEFORE_NAME: setup(**common), OFF_NAME: setup(balancing=False, **common)}
        return {BEFORE_NAME: setup(**common), _limit_name(values["limit"]): setup(limited(values["limit"]), **common)}

    def draw(results: Mapping[str, xr.Dataset], values: Mapping[str, Any]) -> plots.Picture:
        return waiting(results, 1000 * values["thousands"], seconds=values["seconds"])

    return Explorer(
        "Find the edge: how many readers, how large an array, which limit?", knobs, sides, draw, presets=presets, band=4
    )


def _limit_name(most: int) -> str:
    return PATCH_NAME if most == 1 else f"limit of {most}"


# ------------------------------------------------------------------------------------ exercises
TRAPPED, SKIPPED = "it is trapped", "it is left alone"


def exercise_test() -> Exercise:
    """Return problems on whether the scanner leaves a page alone."""
    return Exercise("Does the scanner trap this page?", _test_problem)


#: Kernel of a problem -> the test that it asks of a copy-on-write page, in words.
TESTS = {
    "4.15": "there is no test",
    "4.16": "left alone if the number of processes that map it is not 1",
    "4.15 with a limit of 5": "left alone if more than 5 processes map it",
    "5.17": "left alone if it has another user: a process, the page cache, a device",
    "6.18": "left alone if another process maps it, or a device has pinned it",
}


def _test_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    kernel = str(rng.choice(list(TESTS)))
    kind = str(rng.choice(["data", "written", "forked", "shared"], p=[0.4, 0.15, 0.3, 0.15]))
    many = int(rng.choice([2, 4, 5, 6, 9, 288]))
    mappers = 1 if kind == "written" else int(rng.choice([1, many])) if kind == "data" else many
    pinned = kernel in ("5.17", "6.18") and bool(rng.random() < 0.25)
    page = {
        "data": "of a program's data section, which is mapped from its file, and was never written",
        "written": "of a program's data section that this process has written, so that it has a copy of its own",
        "forked": "that was written before a fork and not since",
        "shared": "of shared memory (MAP_SHARED), as databases use it",
    }[kind]
    left = _left_alone(kernel, cow=kind != "shared", mappers=mappers, file=kind == "data", pinned=pinned)
    answer = SKIPPED if left else TRAPPED
    why = "Shared memory is not copy-on-write: no test is asked." if kind == "shared" else ""
    return Problem(
        f"Kernel {kernel}. A page {page}.\n"
        f"Processes that map it: {mappers}.{' A device has pinned it for DMA.' * pinned} "
        "It lies on another node than the process that scans.",
        answer,
        lambda given: (
            f"First: is the page copy-on-write, that is private and may be written? Only then {kernel} asks its test."
        ),
        f"{why}\n{kernel}: {TESTS[kernel]}.",
        choices=(TRAPPED, SKIPPED),
    )


def _left_alone(kernel: str, *, cow: bool, mappers: int, file: bool, pinned: bool) -> bool:
    """Apply the test of a kernel to a page."""
    found = {
        "4.15": False,
        "4.16": mappers != 1,
        "4.15 with a limit of 5": mappers > 5,
        "5.17": mappers != 1 or file or pinned,
        "6.18": mappers > 1 or pinned,
    }[kernel]
    return cow and found


def exercise_moves() -> Exercise:
    """Return problems on how often a page moves."""
    return Exercise("How often does the page move?", _moves_problem)


def _moves_problem(seed: int) -> Problem:
    """Draw faults on eight nodes with some repeats, so that a page moves now and then."""
    rng = np.random.default_rng(seed)
    start, last = (int(node) for node in rng.choice(8, 2, replace=False))
    faults: list[int] = []
    for _ in range(12):
        before = faults[-1] if faults else last
        faults.append(before if rng.random() < 0.4 else int(rng.integers(8)))
    moves, told = _count_moves(start, last, faults)
    return Problem(
        f"The page is on node {start}, the fault before these came from node {last}. Now it is trapped again and "
        "again, and processes fault on these nodes:\n"
        f"    {' '.join(map(str, faults))}\n"
        "How many times is the page migrated?",
        moves,
        lambda given: (
            "A fault migrates the page if the fault before came from the same node and the page is not there yet. "
            "Whose fault it was does not count, since the readers form no group."
        ),
        told,
        unit="times",
    )


def _count_moves(start: int, last: int, faults: list[int]) -> tuple[int, str]:
    """Return how often a page moves, and to where."""
    page, went = start, []
    for node in faults:
        if node == last != page:
            page = node
            went.append(f"{node}")
        last = node
    return len(went), f"It goes to node {', '.join(went)}." if went else "No two faults in a row bring it elsewhere."


def exercise_gone() -> Exercise:
    """Return problems on how much of the time pages are on their way."""
    return Exercise("How long is a page on its way?", _gone_problem)


def _gone_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    mappers = int(rng.choice([16, 50, 100, 144, 288, 500]))
    pages = int(rng.choice([500, 1000, 2000]))
    each_us = 2 + 0.3 * mappers
    # below the whole time
    most = int(0.9e6 / (pages * each_us))
    moves = int(rng.integers(1, max(2, min(most, 30))))
    answer = 100 * moves * pages * each_us / 1e6
    return Problem(
        "A migration takes 2 µs, and 0.3 µs for each process that maps the page. "
        f"{mappers} processes map {pages:,} pages; each page moves {moves} times a second, one page at a time.\n"
        "In what share of the time is some page on its way? (In percent, to one.)",
        answer,
        lambda given: "First the time of one migration; then all migrations of a second: pages times moves.",
        f"{each_us:.1f} µs a migration, {pages * moves:,} migrations a second: {answer:.1f} % of it.",
        tolerance=1.0,
        unit="%",
    )
