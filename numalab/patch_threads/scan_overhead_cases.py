"""What the replay of thread S2 simulates: ``xfs_repair`` on the mail's guest, and autonumabench on its other machine.

The work of a run is fixed, its time is not: counts of a whole run are those of the time simulated, scaled phase by
phase to the work that the reference does in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
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
#: The mail's run is some 300 s. Here each of its two phases lasts this long.
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
#: The threads of xfs_repair's prefetch end with their allocation group, long before a first placement, so each has
#: a group of its own, active on its own node only, and that lets all migrations pass that no group lets pass. The
#: model has no thread that ends: its threads would be one group within seconds. This takes their groups away.
SHORT_LIVED = {"no_group_rule": "always_private"}

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
    grouped : bool
        With threads that live as long as the program and form groups.
    phase_s : float
        Length of each of the two phases.
    """

    labels: tuple[str, ...]
    options: str
    kernel: Kernel
    grouped: bool = False
    phase_s: float = PHASE_S

    @property
    def name(self) -> str:
        """A name for files."""
        words = [self.options, self.labels[0], *(["grouped"] if self.grouped else [])]
        return "-".join(words).replace("=", "").replace(",", "-").replace("+", "")


def cases(full: bool) -> list[Case]:
    """Return what a replay runs: the configuration with both options.

    With ``full`` all configurations, and the main one also with threads that group.
    """
    main, *others = (one["options"] for one in published()["configurations"])
    found = _distinct(main)
    if full:
        for options in others:
            found += _distinct(options)
        found += [case for case in _distinct(main, grouped=True) if not {"3.19", "+p3"} & set(case.labels)]
    return found


def _distinct(options: str, *, grouped: bool = False) -> list[Case]:
    """Return one case for all kernels of the same switches."""
    alike: dict[str, list[str]] = {}
    chosen = {label: Kernel(name) if grouped else Kernel(name, **SHORT_LIVED) for label, name in kernels().items()}
    for label, kernel in chosen.items():
        alike.setdefault(repr(sorted(kernel.switches.items())), []).append(label)
    return [Case(tuple(labels), options, chosen[labels[0]], grouped) for labels in alike.values()]


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
    load = xfs_repair(configuration["ag_stride"], configuration["bhash"], phase3_ms=1000 * case.phase_s)
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
    )


def measure(case: Case, ds: xr.Dataset) -> Result:
    """Take from a run what is compared."""

    def at(name: str, time_s: float) -> Values:
        array = ds[name]
        axis = time_axis(array)
        values: Values = array.sel({axis: time_s}, method="nearest").values.astype(float)
        return values.sum(axis=-1) if values.ndim > 1 else values

    def growth(name: str) -> Values:
        marks = [at(name, phase * case.phase_s) for phase in range(3)]
        return np.array([marks[1] - marks[0], marks[2] - marks[1]])

    steady = at("numa_pages_migrated", case.phase_s) - at("numa_pages_migrated", case.phase_s - STEADY_S)
    return Result(case, growth("task_work_pages"), {name: growth(name) for name in COUNTERS}, steady * 10 / STEADY_S)


def run_all(todo: Sequence[Case], seeds: Sequence[int], progress: bool) -> Iterator[tuple[Case, xr.Dataset]]:
    """Yield finished cases as they come; leaving early ends the workers."""
    return pool.results(partial(run_case, seeds=seeds), todo, name=attrgetter("name"), progress=progress)


def bench_faults(seeds: Sequence[int]) -> list[Values]:
    """Return the minor faults of autonumabench per hint fault, without patch 2 and with it: (run,) each.

    All benchmarks together, with huge pages. The model has no faults of first touch.
    """
    on = machine(BENCH_MACHINE)
    quiet = dict.fromkeys(READERS, None) | {"numa_hint_faults": SAMPLE_S, "minor_faults": SAMPLE_S}
    answer = []
    for kernel in BENCH_KERNELS:
        hint, minor = np.zeros(len(seeds)), np.zeros(len(seeds))
        for name in published()["autonumabench"]["benchmarks"]:
            load = workload(name, on, pages="huge")
            ds = simulate(on, load, kernel, seconds=BENCH_S, seeds=seeds, every=quiet, step_us=STEP_US)
            hint += ds.numa_hint_faults.values[:, -1]
            minor += ds.minor_faults.values[:, -1]
        answer.append(minor / hint)
    return answer
