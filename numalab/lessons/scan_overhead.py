"""The lesson of the scan overhead thread (``notebooks/30_scan_overhead.ipynb``): runs, figures of them, widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from numalab import plots
from numalab.derived import growth
from numalab.kernel import Kernel
from numalab.model import pagefilter
from numalab.model.record import READERS
from numalab.patch_threads.scan_overhead_cases import (
    COUNTERS,
    IPI_NS,
    MACHINE,
    STEP_US,
    flush_ns,
    published,
    real_phase_s,
)
from numalab.plots import style
from numalab.plots.curves import Curves, Line, Panel
from numalab.schema import is_time
from numalab.text import table
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, choice, slider, steps, switch
from numalab.workloads import NAMED

#: Simulated, and how much of the end of it is counted: before that most pages are found for the first time.
SECONDS, WINDOW = 30.0, 10.0
NODES = published()["machine"]["nodes"]
WRITE = round(100 * NAMED["xfs_repair"].parameters["write"])
SCAN_MB, BUCKETS = 256, 101073
#: The kernels of the mail, and others: label -> release or tree, and switches set in it.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    "3.19": ("3.19", {}),
    "4.0-rc1": ("4.0-rc1", {}),
    "4.0-rc4": ("4.0-rc4", {}),
    "patch 1": ("4.0-rc5+p1", {}),
    "patches 1 and 2": ("4.0-rc5+p1+p2", {}),
    "patches 1 to 3 (4.0)": ("4.0", {}),
    "patch 3 alone": ("4.0-rc4", {"fail_slows": True}),
    "4.15": ("4.15", {}),
    "4.19": ("4.19", {}),
    "6.18": ("6.18", {}),
}
OLD, BAD, GOOD = "3.19", "4.0-rc4", "patches 1 to 3 (4.0)"
USUAL = "the mail's load"
#: What is recorded, once a second.
_TASKS = ("task_work_pages", "task_run_ms", "task_sys_ms", "task_wait_ms", "scan_period_ms")
_EVERY = {name: 1.0 if name in (*COUNTERS, *_TASKS) else None for name in READERS}


# ------------------------------------------------------------------------------------ what is run
def setup(
    kernel: str = OLD, seconds: float = SECONDS, *, scan_mb: int = SCAN_MB, flush: int = 100, **arguments: Any
) -> Setup:
    """Describe phase 3 of xfs_repair with both options on the mail's guest.

    Parameters
    ----------
    kernel : str
        A key of :data:`KERNELS`.
    seconds : float
    scan_mb : int
        Memory of a scan window.
    flush : int
        What the flush of the TLBs costs, percent of what it costs the mail's guest.
    **arguments
        Of the workload.
    """
    name, switches = KERNELS[kernel]
    scan = {} if scan_mb == SCAN_MB else {"scan_size_mb": scan_mb}
    load = {"phase3_ms": 1000 * seconds, "repair_s": 2 * real_phase_s(), **arguments}
    costs = {"ipi_wait_ns": flush_ns() * flush // 100, "ipi_ns": IPI_NS * flush // 100}
    options = {"step_us": STEP_US, "every": _EVERY, **costs}
    return Setup(MACHINE, "xfs_repair", name, seconds, load, switches=switches | scan, options=options)


def run() -> dict[str, xr.Dataset]:
    """Simulate the mail's case on 3.19, on 4.0-rc4 and with all three patches."""
    return {kernel: setup(kernel).run() for kernel in (OLD, BAD, GOOD)}


def before_after(runs: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Return the first two of some runs: what became worse."""
    return dict(list(runs.items())[:2])


def settled(ds: xr.Dataset) -> xr.Dataset:
    """Return the last :data:`WINDOW` seconds of a record, or all of a shorter one."""
    for dim in [str(dim) for dim in ds.dims if is_time(str(dim))]:
        times = ds[dim].values
        ds = ds.isel({dim: slice(int(np.searchsorted(times, times[-1] - WINDOW - 1e-9)), None)})
    return ds


def grown(ds: xr.Dataset, name: str) -> float:
    """Return the growth of a counter at the end of a run, all tasks together, mean of all runs."""
    array = settled(ds)[name]
    dim = next(str(dim) for dim in array.dims if is_time(str(dim)))
    return float(growth(array).sum().item()) / ds.sizes["run"] if array.sizes[dim] > 1 else 0.0


def counted_s(ds: xr.Dataset) -> float:
    """Return how many seconds of a run are counted."""
    times = settled(ds)["time"].values
    return float(times[-1] - times[0])


# ------------------------------------------------------------------------------------ figures of runs
def fates(runs: Mapping[str, xr.Dataset], load: str = USUAL) -> plots.Parts:
    """Show what became of a hundred hint faults: last seconds of each run, of a load in words."""
    return plots.Parts(f"Of all hint faults ({load})", {name: _fates(ds) for name, ds in runs.items()})


def _fates(ds: xr.Dataset) -> dict[str, float]:
    faults, local, moved, refused = (
        grown(ds, name) for name in ("numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated",
                                      "migrate_refused")
    )  # fmt: skip
    return {"local": local, "stays": faults - local - moved - refused, "moves": moved, "refused": refused}


def time_spent(runs: Mapping[str, xr.Dataset]) -> plots.Parts:
    """Show where the time of the threads went: last seconds of each run."""
    return plots.Parts("Of the threads' time", {name: _time_spent(ds) for name, ds in runs.items()})


def _time_spent(ds: xr.Dataset) -> dict[str, float]:
    ran, kernel, waited = (grown(ds, name) for name in ("task_run_ms", "task_sys_ms", "task_wait_ms"))
    return {"work": ran - kernel, "in the kernel": kernel, "waiting for flushes": waited}


def counters(runs: Mapping[str, xr.Dataset]) -> plots.Spans:
    """Show the counters of the last seconds relative to the first run."""
    return plots.counters({name: settled(ds) for name, ds in runs.items()})


def scanner(runs: Mapping[str, xr.Dataset]) -> Curves:
    """Show the scan period of the one thread that lasts, and so does all the scanning: first run of each."""
    lines, words = [], []
    for (name, ds), look in zip(runs.items(), style.SIDES, strict=False):
        array = ds.scan_period_ms.isel(run=0, task=0)
        (dim,) = array.dims
        period = array.values / 1000
        lines.append(Line(name, ds[dim].values, period, None, None, look[:3]))
        words.append(f"{name}: a scan every {period[-1]:.1f} s of run time at the end, at least {period.min():.1f} s.")
    return Curves("scan period", "s", [Panel("", lines, " ".join(words))], SECONDS)


def work(ds: xr.Dataset) -> float:
    """Return the page visits of all threads, thousands a second, at the end of a run; 0 before anything is recorded."""
    seconds = counted_s(ds)
    return grown(ds, "task_work_pages") / seconds / 1000 if seconds else 0.0


class FatesOverTime(plots.Beside):
    """The fate of hint faults beside migrations over time, and in the sentence the work done."""

    def __init__(self, runs: Mapping[str, xr.Dataset], seconds: float, load: str) -> None:
        moved = plots.rate(runs, "numa_pages_migrated", "pages migrated", seconds=seconds)
        super().__init__([fates(runs, load), moved])
        self._work = {name: work(ds) for name, ds in runs.items()}

    @property
    def alt(self) -> str:
        """Both sentences, and how much work is done a second."""
        first = next(iter(self._work.values()))
        told = [
            f"{name} {value:.0f} thousand page visits a second"
            + (f" ({100 * (value / first - 1):+.0f} %)" if value is not first and first else "")
            for name, value in self._work.items()
        ]
        return f"{super().alt} Work done: {'; '.join(told)}."


# ------------------------------------------------------------------------------------ one page
#: Hint faults on one page: the node they come from, and whether the thread goes on to write.
FAULTS = ((2, True), (1, False), (1, True), (3, True), (0, False), (0, True), (2, False))


def play(kernel: str, faults: Sequence[tuple[int, bool]], at: int = 0) -> list[tuple[int, int]]:
    """Let hint faults of different threads, in no group, come upon one page.

    Parameters
    ----------
    kernel : str
        A key of :data:`KERNELS`.
    faults : sequence of (node, whether the thread writes)
    at : int
        Where the page is; its last user is there too.

    Returns
    -------
    list of (node, last node)
        Before each fault and after the last: where the page is, and the node of its last user, -1 for none.
    """
    keeps = bool(Kernel(KERNELS[kernel][0]).switches["keep_write"])
    last, no = at, np.array([False])
    seen = [(at, last)]
    for here, writes in faults:
        branch = pagefilter.branch(
            early=no, elsewhere=np.array([last >= 0 and last != here]), own=no, deferred=no, ungrouped=~no
        )
        if pagefilter.ALLOWS[branch][0]:
            at = here
        last = -1 if writes and not keeps else here
        seen.append((at, last))
    return seen


def moves(seen: Sequence[tuple[int, int]]) -> int:
    """Count how often a page of :func:`play` moved."""
    return sum(one[0] != other[0] for one, other in pairwise(seen))


def page_story(faults: Sequence[tuple[int, bool]] = FAULTS) -> Printed:
    """Tell what the same hint faults do to one page on 3.19 and on 4.0-rc4."""
    sides = [play(kernel, faults) for kernel in (OLD, BAD)]
    rows = []
    for k, (here, writes) in enumerate(faults):
        cells = []
        for seen in sides:
            (at, last), (then, _) = seen[k], seen[k + 1]
            known = "nobody" if last < 0 else f"node {last}"
            cells += [known, f"node {at}: here already" if at == here else f"node {at}" if at == then else
                      f"node {at} -> {then}"]  # fmt: skip
        rows.append([f"node {here}, {'writes' if writes else 'reads'}", *cells])
    head = ["fault from"] + [f"{kernel}: {what}" for kernel in (OLD, BAD) for what in ("last user", "page on")]
    counted = ", ".join(f"{kernel} {moves(seen)}" for kernel, seen in zip((OLD, BAD), sides, strict=True))
    return Printed(f"{table(head, rows, right=())}\nmoves: {counted}")


def chance(kernel: str, nodes: int = NODES, written: int = WRITE) -> float:
    """Return how many of 100 hint faults move their page, if threads in no group come from all nodes alike.

    Parameters
    ----------
    kernel : str
        A key of :data:`KERNELS`.
    nodes : int
    written : int
        Percent of the faults after which the thread writes.

    Notes
    -----
    Let p be the chance. After a fault that moved its page or was local, the last user is where the page is; it is
    elsewhere after (n - 1) / n - p of all faults, and the next fault comes from just there in one case of n. With a
    share w forgotten, p = w (n - 1) / n + (1 - w) ((n - 1) / n - p) / n.
    """
    keeps = bool(Kernel(KERNELS[kernel][0]).switches["keep_write"])
    w, remote = 0.0 if keeps else written / 100, (nodes - 1) / nodes
    return 100 * remote * (w + (1 - w) / nodes) / (1 + (1 - w) / nodes)


def chances(runs: Mapping[str, xr.Dataset]) -> Printed:
    """Print the chance of a move by the rule alone beside what runs counted: moved, or wanted to."""
    rows = []
    for name, ds in runs.items():
        parts = _fates(ds)
        wanted = 100 * (parts["moves"] + parts["refused"]) / sum(parts.values())
        rows.append([name, f"{chance(name):.0f}", f"{wanted:.0f}"])
    return Printed(table(["", "by the rule alone", "in the run, refused ones included"], rows))


# ------------------------------------------------------------------------------------ widgets
SCANNED, REMOTE, MOVED = (
    "the scanner marks more pages a second",
    "more of the hint faults are remote",
    "more of the remote faults move their page",
)


def predict_cause() -> Predict:
    """Ask what grew."""
    return Predict(
        "4.0-rc4 migrates twice as many pages as 3.19 in the same time. Why?", choices=[SCANNED, REMOTE, MOVED]
    )


def cause(runs: Mapping[str, xr.Dataset]) -> str:
    """Say which of the three grew most from the first run to the second."""
    first, second = (settled(ds) for ds in before_after(runs).values())

    def ratio(part: str, whole: str | None = None) -> float:
        values = [grown(ds, part) / (grown(ds, whole) if whole else 1) for ds in (first, second)]
        return values[1] / values[0]

    remote = [1 - float(ds.numa.local_share().mean()) for ds in (first, second)]
    rise = {
        SCANNED: ratio("numa_pte_updates"),
        REMOTE: remote[1] / remote[0],
        MOVED: ratio("numa_pages_migrated", "numa_hint_faults"),
    }
    return max(rise, key=lambda name: rise[name])


def predict_chance() -> Predict:
    """Ask how many faults move their page."""
    return Predict(
        f"Threads on {NODES} nodes visit pages at random, and a page moves at the second fault in a row from a node "
        "where it is not. Of 100 hint faults, how many move their page?",
        0,
        100,
    )


def explorer() -> Explorer:
    """Return the explorer: two kernels beside each other on the same load."""
    default = NAMED["xfs_repair"].parameters
    knobs = [
        choice("left", "left", list(KERNELS), OLD),
        choice("right", "right", list(KERNELS), BAD),
        steps("scan_mb", "scan size", [16, 64, 128, 256, 512, 1024], SCAN_MB, unit="MB", help="Of a scan window"),
        slider("write", "pages written after a fault", 0, 100, WRITE, step=10, unit="%"),
        steps("free_mb", "free memory on a node", [1, 2, 4, 16, 64, 256], int(default["free_mb"]), unit="MB",
              help="Beyond the high watermark; page cache takes the rest, and full nodes refuse migrations"),
        steps("flush", "cost of a TLB flush", [0, 25, 50, 100, 200], 100, unit="% of the mail's"),
        switch("stride", "ag_stride=-1: one group after the other, 8 threads", True),
        switch("bhash", f"bhash={BUCKETS}: a cache of 6.3 GB", True, help="Not given: 32 MB"),
        slider("seconds", "time to simulate", 10, 60, SECONDS, step=5, unit="s"),
    ]  # fmt: skip
    presets: dict[str, Mapping[str, Any]] = {
        "the mail": {},
        "rc1: no groups": {"right": "4.0-rc1"},
        "patch 1": {"left": BAD, "right": "patch 1"},
        "patch 2": {"left": "patch 1", "right": "patches 1 and 2"},
        "patch 3": {"left": "patches 1 and 2", "right": GOOD},
        "nobody writes": {"write": 0},
        "no options": {"stride": False, "bhash": False},
        "today": {"left": GOOD, "right": "6.18"},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Setup]:
        load = {
            "ag_stride": None if values["stride"] else 0,
            "bhash": None if values["bhash"] else 0,
            "write": None if values["write"] == WRITE else values["write"] / 100,
            "free_mb": None if values["free_mb"] == default["free_mb"] else values["free_mb"],
        }
        # left out where it is the default, so that the run is the one of the figures above
        given = {name: value for name, value in load.items() if value is not None}
        given |= {"scan_mb": values["scan_mb"], "flush": values["flush"]}
        return {values[side]: setup(values[side], float(values["seconds"]), **given) for side in ("left", "right")}

    def draw(runs: Mapping[str, xr.Dataset], values: Mapping[str, Any]) -> plots.Picture:
        return FatesOverTime(runs, values["seconds"], _load_words(values))

    return Explorer("Find the edge: which kernel, which load?", knobs, sides, draw, presets=presets, band=4)


def _load_words(values: Mapping[str, Any]) -> str:
    """Say in what the load of the explorer differs from the mail's."""
    usual = NAMED["xfs_repair"].parameters["free_mb"]
    words = [
        f"scan {values['scan_mb']} MB" if values["scan_mb"] != SCAN_MB else "",
        f"{values['write']} % written" if values["write"] != WRITE else "",
        f"{values['free_mb']} MB free" if values["free_mb"] != usual else "",
        f"flush {values['flush']} %" if values["flush"] != 100 else "",
        "" if values["stride"] else "with stride",
        "" if values["bhash"] else "small cache",
    ]
    return ", ".join(filter(None, words)) or USUAL


# ------------------------------------------------------------------------------------ exercises
def exercise_page() -> Exercise:
    """Return problems on one page that different threads find."""
    return Exercise("How often does the page move?", _page_problem)


def _page_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    kernel = str(rng.choice([OLD, BAD]))
    faults = [
        (int(node), bool(writes)) for node, writes in zip(rng.integers(0, 3, 8), rng.random(8) < 0.4, strict=True)
    ]
    told = ", ".join(f"{node}{'w' if writes else ''}" for node, writes in faults)
    seen = play(kernel, faults)
    went = [
        f"to node {then} at fault {k}" for k, ((at, _), (then, _)) in enumerate(pairwise(seen), start=1) if at != then
    ]
    return Problem(
        "A page is on node 0, where its last user was. Hint faults of different threads, all without a group, come "
        f"from the nodes\n    {told}\n(w: the thread goes on to write). The kernel is {kernel}. How often does the "
        "page move?",
        moves(seen),
        lambda given: (
            "Note after each fault where the page is and who was its last user. It moves when that was on the node of "
            "this fault, or nobody; and on 4.0-rc4 a write leaves nobody behind."
        ),
        f"It moves {', '.join(went)}." if went else "No two faults in a row come from the same other node.",
        unit="moves",
    )


def exercise_chance() -> Exercise:
    """Return problems on the chance that a hint fault moves its page."""
    return Exercise("How many of 100 hint faults move a page?", _chance_problem)


def _chance_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    nodes, written, kernel = (
        int(rng.choice([2, 3, 4, 8])),
        int(rng.choice([20, 50, 80, 100])),
        str(rng.choice([OLD, BAD])),
    )
    answer = chance(kernel, nodes, written)
    remote = 100 * (nodes - 1) / nodes
    roughly = f"{remote:.0f} are remote, and one in {nodes} of them comes from the last user's node"
    if kernel == BAD:
        roughly = (
            f"{remote:.0f} are remote; {written} % of them find nobody,\nand one in {nodes} of the others the own node"
        )
    forgets = 0.0 if kernel == OLD else written / 100
    rough = remote * (forgets + (1 - forgets) / nodes)
    return Problem(
        f"Threads without groups visit pages at random, from {nodes} nodes alike; {written} % of the faults are "
        f"followed by a write. Of 100 hint faults on {kernel}, how many move their page? (A rough answer will do.)",
        answer,
        lambda given: (
            f"{remote:.0f} are remote. Which of them find nobody, which find that the last user was on their node? "
            + ("3.19 forgets nobody." if kernel == OLD else "4.0-rc4 forgets whoever writes.")
        ),
        f"Roughly {rough:.0f}: {roughly}.\nIt is a little less, as the last "
        "user is often where the page is: after a local fault, and after a move.",
        tolerance=rough - answer + 1,
    )


def exercise_flush() -> Exercise:
    """Return problems on what a flush costs, from a profile."""
    return Exercise("What does a flush cost?", _flush_problem)


def _flush_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    threads, share = int(rng.choice([4, 8, 16, 32])), int(rng.integers(10, 70))
    per_s = int(rng.integers(10, 90)) * 1000
    answer = 1e6 * threads * share / 100 / per_s
    return Problem(
        f"{threads} threads are busy all the time. perf says that {share} % of their time is spent in flushing other "
        f"CPUs' TLBs, and counts {per_s:,} pages migrated a second. How long does one flush take, in microseconds?",
        answer,
        lambda given: (
            "How many seconds do all threads together spend on flushes in one second? Divide by the migrations."
        ),
        f"{threads} x {share / 100:.2f} s = {threads * share / 100:.2f} s for {per_s:,} flushes.",
        tolerance=0.05 * answer,
        unit="µs",
    )
