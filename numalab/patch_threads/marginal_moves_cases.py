"""What the replay of thread S4 runs, and what it counts: two loads of hackbench, and a JVM that spans four nodes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import _data, pool
from numalab.derived import growth
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.model.record import READERS
from numalab.schema import MOVE, SWAP
from numalab.simulation import simulate
from numalab.workload import Workload
from numalab.workloads import NAMED, jvm, workload

#: Loads, and the machine each runs on.
HACKBENCH = {"pipe": "ivb42", "socket": "lkp-snb01"}
JVM, JVM_MACHINE = "jvm", "rik-4n80"
#: Half as many groups of threads as the machine has CPUs: LKP's "50%".
GROUP_SHARE = 0.5
#: The report's two commits: 3.16 without and with it; and with the mail's patch on top.
BASE, NEW, PATCHED = "base", "+ a43455a1", "+ the mail's patch"
#: The kernel of the mail's trace is not named: the branch of July 2014, with the convergence series, became 3.17.
WITHOUT, BRANCH, BRANCH_PATCHED = "3.17 without a43455a1", "3.17", "3.17 + the mail's patch"
NO_HYSTERESIS, ANY_GAIN, LATER = "3.17 without the 1/16", "4.19 without the 30", "4.19"
#: Kernel 4.19 starts to move tasks late; it is simulated so many times as long.
LATER_TIMES = 4
COUNTERS = ("numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated")
#: Lower ends of the classes of gains, of 1000; those of the real kernel's counters.
GAINS = (-(10**9), 0, 30, 50, 100, 200)
GAIN_NAMES = ("< 0", "0-29", "30-49", "50-99", "100-199", ">= 200")

Values = NDArray[np.float64]


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """Return the figures of the mail, as in ``data/published/marginal_moves.toml``."""
    return tomllib.loads(_data.read_text("published", "marginal_moves.toml"))


@dataclass(frozen=True)
class Size:
    """How the loads are simulated.

    Attributes
    ----------
    threads_per : int
        Threads of hackbench that one thread of the model stands for. It wants to run so many times as much, and so
        does in a second what those do in as many.
    hackbench_s, jvm_s : float
        Simulated time.
    hackbench_step_us, jvm_step_us : int
    """

    threads_per: int
    hackbench_s: float
    jvm_s: float
    hackbench_step_us: int
    jvm_step_us: int = 4000


FULL = Size(threads_per=1, hackbench_s=100.0, jvm_s=15.0, hackbench_step_us=4000)
QUICK = Size(threads_per=4, hackbench_s=40.0, jvm_s=10.0, hackbench_step_us=8000)


@dataclass(frozen=True)
class Case:
    """One load on one kernel."""

    load: str
    label: str
    kernel: Kernel

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.load}-{self.label}".replace("+ ", "with ").replace(" ", "_").replace("'", "").replace("/", "")


def cases(full: bool) -> list[Case]:
    """Return what a replay runs: the report's and the trace's kernels, or also what later became of the idea."""
    before = Kernel("3.16")
    report = {BASE: before, NEW: before.patched("a43455a1")}
    trace = {
        WITHOUT: Kernel("3.17", check_preferred="if_free"),
        BRANCH: Kernel("3.17"),
        BRANCH_PATCHED: Kernel("3.17").patched("S4"),
    }
    if full:
        report[PATCHED] = before.patched("a43455a1", "S4")
        trace |= report | {
            NO_HYSTERESIS: Kernel("3.17", group_hysteresis=False),
            ANY_GAIN: Kernel("4.19", small_improvement=0),
            LATER: Kernel("4.19"),
        }
    return [Case(load, label, kernel) for load in HACKBENCH for label, kernel in report.items()] + [
        Case(JVM, label, kernel) for label, kernel in trace.items()
    ]


def workload_of(load: str, size: Size) -> Workload:
    """Return a load: hackbench in a size, or the JVM with a thread for each CPU."""
    if load == JVM:
        return jvm(machine(JVM_MACHINE).cpus)
    on, usual = machine(HACKBENCH[load]), hackbench_defaults()
    return workload(
        "hackbench",
        on,
        groups=int(on.cpus * GROUP_SHARE),
        kind=load,
        tasks_per_group=usual["tasks_per_group"] // size.threads_per,
        demand=usual["demand"] * size.threads_per,
        stack_kb=usual["stack_kb"] * size.threads_per,
    )


def hackbench_defaults() -> Mapping[str, Any]:
    """Return the parameters of hackbench as `numalab.workloads` has them."""
    return NAMED["hackbench"].parameters


def run_case(case: Case, seeds: Sequence[int], size: Size) -> xr.Dataset:
    """Simulate one case."""
    wanted = (*COUNTERS, "task_work_pages")
    is_jvm = case.load == JVM
    seconds = size.jvm_s * (LATER_TIMES if case.label in (ANY_GAIN, LATER) else 1) if is_jvm else size.hackbench_s
    return simulate(
        machine(JVM_MACHINE if is_jvm else HACKBENCH[case.load]),
        workload_of(case.load, size),
        case.kernel,
        seconds=seconds,
        seeds=seeds,
        every={name: 1.0 if name in wanted else None for name in READERS},
        step_us=size.jvm_step_us if is_jvm else size.hackbench_step_us,
    )


@dataclass(frozen=True)
class Result:
    """What a case gave.

    Attributes
    ----------
    seconds : simulated
    counts : by counter, and "work" (page visits): (run,)
    swaps, moves : by class of gain (`GAINS`): (run, class)
    """

    case: Case
    seconds: float
    counts: Mapping[str, Values]
    swaps: Values
    moves: Values

    def local(self) -> Values:
        """Return the counter of the report, numa_hint_faults_local: (run,)."""
        return self.counts["numa_hint_faults_local"]

    def per_minute(self, events: Values) -> Values:
        """Return events of any gain a minute: (run,)."""
        total: Values = events.sum(axis=1) * 60 / self.seconds
        return total

    def small(self, events: Values) -> Values:
        """Return events below the mail's threshold a minute: (run,)."""
        below = np.array(GAINS) < published()["threshold"]["gain"]
        return self.per_minute(events[:, below])


def measure(case: Case, ds: xr.Dataset) -> Result:
    """Take from a run what is compared."""
    counts = {name: growth(ds[name]).values.astype(float) for name in COUNTERS}
    work = growth(ds["task_work_pages"])
    counts["work"] = work.sum("task").values.astype(float)
    return Result(case, float(ds["time"].values[-1]), counts, _by_gain(ds, SWAP), _by_gain(ds, MOVE))


def _by_gain(ds: xr.Dataset, kind: int) -> Values:
    """Count events of a kind by class of gain: (run, class)."""
    gains, is_kind = ds["event_gain"].values, ds["event_kind"].values == kind
    edges = np.array([*GAINS, 10**9])
    return np.array([np.histogram(row[ours], edges)[0] for row, ours in zip(gains, is_kind, strict=True)], float)


def run_all(
    todo: Sequence[Case], seeds: Sequence[int], size: Size, progress: bool
) -> Iterator[tuple[Case, xr.Dataset]]:
    """Yield finished cases as they come; leaving early ends the workers."""
    run = partial(run_case, seeds=seeds, size=size)
    return pool.results(run, todo, name=attrgetter("name"), progress=progress)
