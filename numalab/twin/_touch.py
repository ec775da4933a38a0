"""How memory is touched, and how often: nobody records it, but marked pages fault only when they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from numalab import quantities
from numalab.simulation import ALL_REGIONS
from numalab.twin._compare import Sides
from numalab.twin._model import Model, record_every
from numalab.twin._patterns import Pattern
from numalab.twin._workload import PAGES_PER_S

#: Rates tried, of 1000 of `PAGES_PER_S`: 4 MB/s to 4 GB/s of each thread.
RATES = tuple(round(10**exponent) for exponent in np.arange(1.0, 4.01, 0.5))
#: Runs for each.
SEEDS = 2
#: Rates whose distance from the recording is no more than this above the least are as good.
AS_GOOD = 0.03
#: What is fitted to.
COUNTERS = ("numa_hint_faults", "numa_pte_updates", "numa_hint_faults_local", "numa_pages_migrated")


@dataclass(frozen=True)
class Touch:
    """What was found.

    Attributes
    ----------
    pattern : Pattern
    pages_per_s : float
        Visits of each thread.
    note : str
        How it was found, for people.
    lowest, highest : float
        Rates between which the recording does not tell; both the rate itself where it does, or was given.
    """

    pattern: Pattern
    pages_per_s: float
    note: str
    lowest: float
    highest: float

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of what the recording does not tell apart, without the rate itself."""
        return tuple(sorted({self.lowest, self.highest} - {self.pages_per_s}))


def given(pattern: Pattern, pages_per_s: float) -> Touch:
    """Return a rate that was asked for."""
    note = f"memory is touched by {pattern.name}, {pages_per_s:,.0f} pages/s each: given"
    return Touch(pattern, pages_per_s, note, pages_per_s, pages_per_s)


def fitted(
    make: Callable[[Pattern], Model], tried: Sequence[Pattern], sides: Sides, *, tell: Callable[[str], None]
) -> Touch:
    """Find the pattern and rate with which the counters come out as recorded, as near as any does.

    Parameters
    ----------
    make : callable
        From pattern to model, at `numalab.twin._workload.PAGES_PER_S`.
    tried : sequence of Pattern
    sides : Sides
    tell : callable
        Is told what is tried.
    """
    recorded = {name: quantities.counter(name)(sides.recorded, sides.until) for name in COUNTERS}
    recorded = {name: series for name, series in recorded.items() if series is not None}
    if not any(series[1][:, -1].any() for series in recorded.values() if series is not None):
        rate = f"{PAGES_PER_S:,.0f} pages/s each"
        note = f"memory is touched by {tried[0].name}, {rate}: assumed, there was no hint fault to fit it to"
        return Touch(tried[0], PAGES_PER_S, note, PAGES_PER_S, PAGES_PER_S)
    distances = []
    for number, pattern in enumerate(tried, 1):
        tell(f"fitting how memory is touched, {number} of {len(tried)}: by {pattern.name}")
        model = make(pattern)
        every = {name: (step if name in COUNTERS else None) for name, step in record_every(model.seconds).items()}
        twin = model.simulate(SEEDS, every, rates={ALL_REGIONS: RATES})
        distances.append(
            [_distance(sides, twin.isel(run=twin[f"rate_{ALL_REGIONS}"].values == rate)) for rate in RATES]
        )
    table = np.array(distances)
    best, at = divmod(int(table.argmin()), len(RATES))
    good = [rate for rate, one in zip(RATES, table[best], strict=True) if one <= table.min() + AS_GOOD]
    pages = [PAGES_PER_S * rate / 1000 for rate in (RATES[at], good[0], good[-1])]
    note = (
        f"memory is touched by {tried[best].name}, {pages[0]:,.0f} pages/s each: fitted to {', '.join(recorded)} over "
        f"time, {table.min():.0%} off"
    )
    if len(good) > 1:
        note += f"; the recording does not tell rates from {pages[1]:,.0f} to {pages[2]:,.0f} apart"
        note += ", so each what-if is run at both ends too"
    return Touch(tried[best], pages[0], note, pages[1], pages[2])


def _distance(sides: Sides, twin: xr.Dataset) -> float:
    """Return how far the twin's counters are from the recorded ones, as a share of these, mean over time."""
    sampled = sides.sampled(twin)
    far = []
    for name in COUNTERS:
        real, model = (quantities.counter(name)(ds, sides.until) for ds in (sides.recorded, sampled))
        if real is None or model is None:
            continue
        off = np.abs(np.median(model[1], axis=0) - real[1][0]).mean()
        far.append(off / max(quantities.FLOOR_PAGES, real[1].max()))
    return float(np.mean(far))
