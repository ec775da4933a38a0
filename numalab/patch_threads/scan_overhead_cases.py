"""What the replay of thread S2 simulates: ``xfs_repair`` on the mail's guest, and autonumabench on its other machine.

The work of a run is fixed, its time is not: the time simulated stands for phases as long as the mail's, and counts of a
whole run are scaled, phase by phase, to the work that the reference does in them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise, product
from operator import attrgetter
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import _data, pool
from numalab.derived import time_axis
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.model.record import READERS
from numalab.simulation import simulate
from numalab.workloads import workload, xfs_repair

MACHINE, BENCH_MACHINE = "dave-4n16", "mel-4n48"
#: Tenths of a scan period: at 10 and 4 ms counts differ by some percent, less than between seeds.
STEP_US = 20_000
#: How long each of the two phases is simulated; the mail's run lasts some 300 s.
PHASE_S = 40.0
#: The mail counted migrations in phase 3, once it was steady: the end of it. Most pages were found once by then.
STEADY_S = 15.0
SAMPLE_S = 5.0
BENCH_S = 12.0
#: The first patch's kernel and the second's.
BENCH_KERNELS = ("4.0-rc5+p1", "4.0-rc5+p1+p2")
COUNTERS = (
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "migrate_refused",
    "minor_faults",
)
#: What a flush costs each other running thread, ns: fitted to the run time of 4.0-rc4 relative to 3.19.
IPI_NS = 10_000

Values = NDArray[np.float64]


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """Return the figures of the mail, as in ``data/published/scan_overhead.toml``."""
    return tomllib.loads(_data.read_text("published", "scan_overhead.toml"))


def flush_ns() -> int:
    """Return what the flush of the other CPUs' TLBs costs a migration, ns.

    From perf's profile of 4.0-rc4: its share of the time of the busy threads, divided by their migrations.
    """
    mail = published()
    share = mail["profile"]["flush_share"]["4.0-rc4"]
    per_s = mail["migrations"]["per_10s"]["4.0-rc4"] / 10
    return round(1e9 * share * mail["machine"]["threads_without_stride"] / per_s)


def kernels() -> dict[str, str]:
    """Return the kernels of the mail, by what it calls them; 3.19 with the VM_WRITE test too, where it counted."""
    mail = published()
    base = mail["migrations"]["base"]
    return {**mail["kernels"], base: base}


@dataclass(frozen=True)
class Case:
    """One simulation of xfs_repair, and all kernels of the mail that it stands for.

    Attributes
    ----------
    labels : tuple of str
        Keys of `kernels`: those whose switches do not differ.
    options : str
        Of the configuration.
    kernel : Kernel
    phase_s : float
        Length of each of the two phases.
    """

    labels: tuple[str, ...]
    options: str
    kernel: Kernel
    phase_s: float = PHASE_S

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.options}-{self.labels[0]}".replace("=", "").replace(",", "-").replace("+", "")


def cases(full: bool) -> list[Case]:
    """Return what a replay runs: the configuration with both options, with ``full`` all configurations."""
    main, *others = (one["options"] for one in published()["configurations"])
    return [case for options in (main, *(others if full else ())) for case in _distinct(options)]


def _distinct(options: str) -> list[Case]:
    """Return one case for all kernels that do the same."""
    alike: dict[str, list[str]] = {}
    chosen = {label: Kernel(name) for label, name in kernels().items()}
    for label, kernel in chosen.items():
        alike.setdefault(repr(sorted(_effective(kernel).items())), []).append(label)
    return [Case(tuple(labels), options, chosen[labels[0]]) for labels in alike.values()]


def _effective(kernel: Kernel) -> dict[str, Any]:
    """Return the switches with those made equal that say the same of memory that was written once and stays writable.

    Such pages are dirty, their areas writable and, where hint faults keep it, so are their page table entries.
    """
    switches: dict[str, Any] = dict(kernel.switches)
    if switches["no_group_rule"] in ("pte_dirty", "vma_write", *["pte_write"] * bool(switches["keep_write"])):
        switches["no_group_rule"] = "once_written"
    return switches


@dataclass(frozen=True)
class Result:
    """What a case gave.

    Attributes
    ----------
    work : (2, run) page visits in phase 3 and in phase 4
    counts : by counter, (2, run) its growth in the phases
    steady : (run,) pages migrated per 10 s in the steady part of phase 3
    """

    case: Case
    work: Values
    counts: dict[str, Values] = field(default_factory=dict)
    steady: Values = field(default_factory=lambda: np.zeros(0))

    def time_ratio(self, base: Result) -> Values:
        """Return the run time, relative to another case of the same seeds: (run,). Its phases last equally long."""
        ratio: Values = (base.work / self.work).mean(axis=0)
        return ratio

    def total(self, counter: str, base: Result) -> Values:
        """Return a counter of the whole run, whose phases do the work of ``base``: (run,)."""
        total: Values = (self.counts[counter] * base.work / self.work).sum(axis=0)
        return total

    def share(self, part: str, of: str, base: Result) -> Values:
        """Return one counter of the whole run, divided by another: (run,)."""
        return self.total(part, base) / self.total(of, base)


def run_case(case: Case, seeds: Sequence[int]) -> xr.Dataset:
    """Simulate one case."""
    configuration = next(one for one in published()["configurations"] if one["options"] == case.options)
    load = xfs_repair(
        configuration["ag_stride"],
        configuration["bhash"],
        phase3_ms=1000 * case.phase_s,
        repair_s=2 * real_phase_s(),
    )
    wanted = (*COUNTERS, "task_work_pages", "scan_period_ms")
    every: dict[str, float | None] = {name: SAMPLE_S if name in wanted else None for name in READERS}
    return simulate(
        machine(MACHINE),
        load,
        case.kernel,
        seconds=2 * case.phase_s,
        seeds=seeds,
        every=every,
        step_us=STEP_US,
        ipi_wait_ns=flush_ns(),
        ipi_ns=IPI_NS,
    )


def real_phase_s() -> float:
    """Return how long each of the two phases lasts in the mail: half of the run time of 3.19."""
    seconds: float = published()["run_time"]["seconds"]["3.19"]
    return seconds / 2


def measure(case: Case, ds: xr.Dataset) -> Result:
    """Take from a run what is compared.

    What happens once (first faults on all pages, scan periods that double) counts once: the steady part of phase 3
    stands for the rest of it, the whole of phase 4 for all of that.
    """

    def at(name: str, time_s: float) -> Values:
        array = ds[name]
        axis = time_axis(array)
        values: Values = array.sel({axis: time_s}, method="nearest").values.astype(float)
        return values.sum(axis=-1) if values.ndim > 1 else values

    settled, middle, end = case.phase_s - STEADY_S, case.phase_s, 2 * case.phase_s

    def growth(name: str) -> Values:
        marks = [at(name, time) for time in (0, settled, middle, end)]
        first, steady, fourth = (late - early for early, late in pairwise(marks))
        rest = (real_phase_s() - settled) / STEADY_S
        return np.array([first + steady * rest, fourth * real_phase_s() / case.phase_s])

    steady = (at("numa_pages_migrated", middle) - at("numa_pages_migrated", settled)) * 10 / STEADY_S
    return Result(case, growth("task_work_pages"), {name: growth(name) for name in COUNTERS}, steady)


def run_all(todo: Sequence[Case], seeds: Sequence[int], progress: bool) -> Iterator[tuple[Case, xr.Dataset]]:
    """Yield finished cases as they come; leaving early ends the workers."""
    return pool.results(partial(run_case, seeds=seeds), todo, name=attrgetter("name"), progress=progress)


def bench_faults(seeds: Sequence[int], progress: bool = False) -> list[Values]:
    """Return the minor faults of autonumabench per hint fault, without patch 2 and with it: (run,) each.

    All benchmarks together, with huge pages. The model has no faults of first touch.
    """
    faults = {kernel: np.zeros((2, len(seeds))) for kernel in BENCH_KERNELS}
    todo = list(product(BENCH_KERNELS, published()["autonumabench"]["benchmarks"]))
    count = partial(_bench_faults, seeds=seeds, seconds=BENCH_S)
    for (kernel, _), counts in pool.results(count, todo, what="benchmark", name=" on ".join, progress=progress):
        faults[kernel] += counts
    return [minor / hint for minor, hint in faults.values()]


def _bench_faults(job: tuple[str, str], seeds: Sequence[int], seconds: float) -> Values:
    """Return minor and hint faults of one benchmark of autonumabench with one kernel: (2, run)."""
    kernel, name = job
    on = machine(BENCH_MACHINE)
    quiet = dict.fromkeys(READERS, None) | {"numa_hint_faults": SAMPLE_S, "minor_faults": SAMPLE_S}
    load = workload(name, on, pages="huge")
    ds = simulate(on, load, kernel, seconds=seconds, seeds=seeds, every=quiet, step_us=STEP_US)
    return np.array([ds.minor_faults.values[:, -1], ds.numa_hint_faults.values[:, -1]], float)
