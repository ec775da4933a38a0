"""The runs of thread S0: the mail's program on its machine, and what is kept of each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab import _data, pool
from numalab.derived import growth
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.model.params import DEFAULTS
from numalab.simulation import simulate
from numalab.workload import Binding
from numalab.workloads import shared_cow

Values = NDArray[np.float64]

STEP_US = 4000
PAGE_INTS = 1024
BEFORE = Kernel("4.15")
#: The one rule of the patch, on the kernel before it.
PATCHED = BEFORE.replace(skip_shared_cow="mapcount")
#: Label of a main case -> kernel.
MAIN = {"off": BEFORE, "before": BEFORE, "patched": PATCHED}
#: Share of each seed's work that the second reading of the machine, and the sweeps, get.
SECOND, SWEPT = 3, 10
#: What the thread and later kernels put in place of the patch's test.
VARIANTS = {
    "no test (4.15)": BEFORE,
    "the patch: mapcount (4.16)": PATCHED,
    "rest of the area skipped": PATCHED.replace(cow_skip_rest_of_vma=True),
    "limit of 5 processes": BEFORE.replace(cow_max_mappers=5),
    "limit of 287": BEFORE.replace(cow_max_mappers=287),
    "limit of 288": BEFORE.replace(cow_max_mappers=288),
    "page_count (5.17-6.9)": BEFORE.replace(skip_shared_cow="page_count"),
    "likely_shared (6.10)": BEFORE.replace(skip_shared_cow="likely_shared"),
    "maybe_shared (6.18)": BEFORE.replace(skip_shared_cow="maybe_shared"),
}
SWEEP_READERS = (1, 16, 72, 144, 288, 576, 1024)
SWEEP_INTS = (100_000, 300_000, 1_000_000, 3_000_000)


def published() -> dict[str, Any]:
    """Return the figures of the mail, as in ``data/published/shared_cow.toml``."""
    return tomllib.loads(_data.read_text("published", "shared_cow.toml"))


@dataclass(frozen=True)
class Reading:
    """One way to read "144 core/8 socket machine", and what a migration costs on it.

    Attributes
    ----------
    cpus : int
    machine : str
        Preset.
    per_mapping_ns : int
        Time of a migration for each process that maps the page: reverse map walk and flush. Fitted, to the
        throughput without the patch and to nothing else.
    """

    cpus: int
    machine: str
    per_mapping_ns: int

    @property
    def pass_ms(self) -> float:
        """Useful time of a pass: what the published throughput with balancing off leaves for one."""
        mail = published()
        return float(1000 * mail["program"]["seconds"] * self.cpus / mail["throughput"]["off"])


#: The cores as CPUs, which is what the mail says, and two hardware threads a core.
READINGS = {144: Reading(144, "oracle-8s144", 508), 288: Reading(288, "oracle-8s288", 305)}


@dataclass(frozen=True)
class Case:
    """The mail's program on one machine with one kernel; ``label`` is a key of `MAIN` or of `VARIANTS`."""

    label: str
    reading: Reading
    kernel: Kernel
    readers: int = 288
    ints: int = 1_000_000
    step_us: int = STEP_US

    @property
    def name(self) -> str:
        """A name that no other case has."""
        how = f"{self.reading.per_mapping_ns}ns-{self.step_us}us"
        return f"{self.label}-{self.reading.cpus}cpus-{self.readers}x{self.ints}-{how}"

    @property
    def migration_ns(self) -> int:
        """Time of a migration, copy included."""
        return DEFAULTS["migrate_ns"] + DEFAULTS["copy_page_ns"] + self.reading.per_mapping_ns * self.readers

    @property
    def is_main(self) -> bool:
        """Whether this is the mail's program as it stands, before or after the patch or with balancing off."""
        usual = (self.readers, self.ints, self.step_us) == (288, 1_000_000, STEP_US)
        return self.label in MAIN and self.reading in READINGS.values() and usual

    def run(self, seeds: Sequence[int]) -> xr.Dataset:
        """Simulate the case.

        The array lies in every socket's cache, so remote memory costs nothing extra.
        """
        parameters: dict[str, Any] = {
            "remote_cost": 0,
            "unmap_ns": self.reading.per_mapping_ns,
            "step_us": self.step_us,
        }
        if self.label == "off":
            parameters["numa_balancing"] = 0
        seconds = published()["program"]["seconds"]
        load = shared_cow(self.readers, self.ints, seconds, self.reading.pass_ms)
        every: dict[str, float | None] = dict.fromkeys(
            ("free_pages", "preferred_nid", "scan_period_ms", "numa_group_id", "total_numa_faults"), None
        )
        return simulate(
            machine(self.reading.machine),
            load,
            self.kernel,
            seconds=seconds,
            seeds=seeds,
            every=every,
            **parameters,
        )


@dataclass(frozen=True)
class Result:
    """What is kept of a case, a number a seed each: (run,).

    Attributes
    ----------
    case : Case
    passes, slowest, fastest, spread
        Passes of all readers, of the slowest and the fastest, and their standard deviation over their mean.
    waiting, kernel
        Share of the readers' time that they waited for pages, or that ``task_sys_ms`` counts: scans and faults. A walk
        counts each fault at what it would cost if it migrated (docs/model.md 4.5), so with faults this is too much.
    hint_faults, migrated : 1, pages
    """

    case: Case
    passes: Values
    slowest: Values
    fastest: Values
    spread: Values
    waiting: Values
    kernel: Values
    hint_faults: Values
    migrated: Values

    @property
    def pages(self) -> float:
        """Pages of the array."""
        return self.case.ints / PAGE_INTS

    @property
    def waiters(self) -> Values:
        """Waiters of a migration: time waited over half of its length, which is what one waits on average."""
        each_s = self.migration_us / 2e6
        waited_s = self.waiting * self.case.readers * published()["program"]["seconds"]
        return np.asarray(waited_s / np.maximum(1, self.migrated) / each_s)

    @property
    def faulting(self) -> Values:
        """Share of the readers' time that faults and migrations cost."""
        cost_us = self.hint_faults * DEFAULTS["hint_fault_ns"] / 1000 + self.migrated * self.migration_us
        return np.asarray(cost_us / 1e6 / published()["program"]["seconds"] / self.case.readers)

    @property
    def migration_us(self) -> float:
        """Length of a migration."""
        return self.case.migration_ns / 1000

    def numbers(self) -> dict[str, list[float]]:
        """Return the numbers of the seeds as plain lists."""
        names = [name for name in self.__dataclass_fields__ if name != "case"]
        return {name: [float(f"{value:.6g}") for value in getattr(self, name)] for name in names}


def measure(case: Case, ds: xr.Dataset) -> Result:
    """Reduce a dataset of a case to its numbers."""
    passes = growth(ds.task_work_pages).values * PAGE_INTS / case.ints
    time_ms = 1000 * published()["program"]["seconds"] * case.readers
    return Result(
        case,
        passes.sum(axis=1),
        passes.min(axis=1),
        passes.max(axis=1),
        passes.std(axis=1) / passes.mean(axis=1),
        growth(ds.task_wait_ms).sum("task").values / time_ms,
        growth(ds.task_sys_ms).sum("task").values / time_ms,
        growth(ds.numa_hint_faults).values.astype(float),
        growth(ds.numa_pages_migrated).values.astype(float),
    )


# ------------------------------------------------------------------------------------ which runs
def cases(seeds: int, full: bool) -> list[tuple[Case, int]]:
    """Return what a replay runs, each with its number of seeds; ``full`` adds the sweeps and gives all the same."""
    fewer = seeds if full else max(2, seeds // SECOND)
    todo = [(Case(label, READINGS[144], kernel), seeds) for label, kernel in MAIN.items()]
    todo += [(Case(label, READINGS[288], kernel), fewer) for label, kernel in MAIN.items()]
    # the first two variants are main cases
    todo += [(Case(label, READINGS[144], kernel), 1) for label, kernel in list(VARIANTS.items())[2:]]
    if full:
        swept = max(2, seeds // SWEPT)
        shapes = [(n, 1_000_000) for n in SWEEP_READERS if n != 288] + [(288, n) for n in SWEEP_INTS if n != 1_000_000]
        for readers, ints in shapes:
            todo += [(Case(label, READINGS[144], kernel, readers, ints), swept) for label, kernel in MAIN.items()]
        todo += [(case, swept) for case in checks()]
    return todo


def checks() -> list[Case]:
    """Return cases that ask what the fitted cost hangs on: half the step, and the other machine's cost."""
    one, two = READINGS.values()
    halved = [Case("before", reading, BEFORE, step_us=STEP_US // 2) for reading in (one, two)]
    swapped = (replace(a, per_mapping_ns=b.per_mapping_ns) for a, b in ((one, two), (two, one)))
    return halved + [Case("before", reading, BEFORE) for reading in swapped]


def run_all(todo: Sequence[tuple[Case, int]], progress: bool) -> Iterator[tuple[Case, xr.Dataset]]:
    """Yield finished cases as they come; leaving early ends the workers."""
    for (case, _), ds in pool.results(_run, todo, name=lambda one: one[0].name, progress=progress):
        yield case, ds


def _run(one: tuple[Case, int]) -> xr.Dataset:
    case, seeds = one
    return case.run(range(seeds))


# ------------------------------------------------------------------------------------ who follows
@dataclass(frozen=True)
class Followed:
    """Pages that came after readers which changed nodes, with one test of the scanner.

    Attributes
    ----------
    shared, own : share of the pages that two readers share, and of those each has written
    alone : share of the array of a single reader that has written nothing
    """

    shared: float
    own: float
    alone: float


def follow(kernel: Kernel) -> Followed:
    """Bind readers to the array's node, two seconds later to another: which pages come after them?

    Two readers have written half of the array each, and share the other half; then one alone.
    """
    pair = _bound(kernel, 2, 0.5)
    alone = _bound(kernel, 1, 0.0)
    return Followed(pair[0], pair[1], alone[0])


def _bound(kernel: Kernel, readers: int, written: float) -> tuple[float, float]:
    """Return the share of shared pages, and of those the readers have written, on the second node at the end."""
    reading, seconds = READINGS[144], published()["program"]["seconds"]
    load = shared_cow(readers, 1_000_000, seconds, reading.pass_ms, written=written)
    moved = replace(load, bindings=(Binding(0, until_ms=2000), Binding(1, from_ms=2000)))
    ds = simulate(machine(reading.machine), moved, kernel, seconds=seconds, remote_cost=0, step_us=STEP_US)
    pages = ds.pages.values[0, -1]
    came = pages[:, 1] / pages.sum(axis=1)
    # the first region is what is shared, the others are the readers' own copies
    return float(came[0]), float(came[1:].mean()) if written else 0.0
