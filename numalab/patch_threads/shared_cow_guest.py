"""Thread S0 on a real kernel: 16 readers on eight emulated CPUs, and the same in the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab import pool
from numalab.quantities import FLOOR_PAGES, FLOOR_WAITING
from numalab.validate import cases, simulated
from numalab.validate.judge import CLOSE

Values = NDArray[np.float64]

#: Label of the traces -> what was set.
LABELS = {"nb0": "off", "nb1_trap": "before", "nb1_skip2018": "patched"}
#: Repetition 1 is left out: costs of the emulated guest may be fitted to it.
REPETITIONS = (2, 3)
READERS = 16
PAGES = 256
#: Quantity of `numalab.quantities` -> name here.
TAKEN = {
    "page_rate": "rate",
    "slowest_worker": "slowest",
    "fastest_worker": "fastest",
    "waiting_tasks": "waiting",
    "numa_hint_faults": "hint_faults",
    "numa_pages_migrated": "migrated",
}


@dataclass(frozen=True)
class Pair:
    """A quantity on the real kernel, a value for each repetition, and in the model, one for each seed.

    Attributes
    ----------
    real : (repetition,)
    model : (seed,)
    floor : float
        Up to here as good as nothing: what a guest shows whose load does nothing (docs/validation.md).
    """

    real: Values
    model: Values
    floor: float = 0.0

    def over(self, other: Pair) -> Pair:
        """Divide by another quantity, repetition by repetition and seed by seed."""
        return Pair(self.real / other.real, self.model / other.model)

    def times(self, other: Pair) -> Pair:
        """Multiply by another quantity."""
        return Pair(self.real * other.real, self.model * other.model)

    @property
    def holds(self) -> bool:
        """Whether the mean of the real runs is in the model's 90 % band, the median close to it, or both nothing."""
        real = float(self.real.mean())
        low, middle, high = np.quantile(self.model, [0.05, 0.5, 0.95])
        nothing = max(real, middle) <= self.floor
        return bool(nothing or low <= real <= high or abs(middle - real) <= CLOSE * abs(real))


Guest = dict[str, dict[str, Pair]]


def run(seeds: int, progress: bool = False) -> Iterator[tuple[str, dict[str, Pair]]]:
    """Simulate the traced case with each setting; yield each as it is finished: quantity -> real and model."""
    setting = partial(_run, seeds=seeds)
    for label, pairs in pool.results(setting, list(LABELS), what="traced setting", progress=progress):
        yield LABELS[label], pairs


def _run(label: str, seeds: int) -> dict[str, Pair]:
    (case,) = cases.group([cases.load(f"S0_anon_n{READERS}_{label}_r{rep}") for rep in REPETITIONS])
    outcome = simulated.run(case, seeds)
    return {own: Pair(outcome.real[theirs], outcome.model[theirs]) for theirs, own in TAKEN.items()}


def traces() -> str:
    """Name the traces that are used."""
    return f"S0_anon_n{READERS}_*_r{REPETITIONS[0]}, r{REPETITIONS[-1]}"


def plain(guest: Guest) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return the numbers as JSON can hold them."""

    def numbers(values: Values) -> list[float]:
        return [float(f"{value:.6g}") for value in values]

    return {
        label: {name: {"real": numbers(one.real), "model": numbers(one.model)} for name, one in found.items()}
        for label, found in guest.items()
    }


def read(stored: dict[str, Any]) -> Guest:
    """Take back what `plain` gave."""
    return {
        label: {name: Pair(np.array(one["real"]), np.array(one["model"])) for name, one in found.items()}
        for label, found in stored.items()
    }


def rows(guest: Guest) -> Sequence[tuple[str, str, Pair]]:
    """Return what is compared: (quantity, what it is without the patch or with it, values)."""
    off, before, patched = (guest[label] for label in LABELS.values())

    def passes(found: dict[str, Pair], which: str) -> Pair:
        return found[which].times(found["rate"])

    def per_page(found: dict[str, Pair]) -> Pair:
        return Pair(found["migrated"].real / PAGES, found["migrated"].model / PAGES)

    return (
        ("throughput / off", "before", before["rate"].over(off["rate"])),
        (
            "slowest reader / slowest with balancing off",
            "before",
            passes(before, "slowest").over(passes(off, "slowest")),
        ),
        (
            "fastest reader / fastest with balancing off",
            "before",
            passes(before, "fastest").over(passes(off, "fastest")),
        ),
        ("readers that wait for a page", "before", before["waiting"]),
        ("hint faults", "before", before["hint_faults"]),
        ("migrations per page", "before", per_page(before)),
        ("throughput / off", "patched", patched["rate"].over(off["rate"])),
        (
            "slowest reader / slowest with balancing off",
            "patched",
            passes(patched, "slowest").over(passes(off, "slowest")),
        ),
        ("readers that wait for a page", "patched", replace(patched["waiting"], floor=FLOOR_WAITING)),
        ("hint faults", "patched", replace(patched["hint_faults"], floor=FLOOR_PAGES)),
    )
