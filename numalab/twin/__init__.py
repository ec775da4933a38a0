"""The twin of a recording: the same machine, processes and memory in the model, and what would be if.

A recording (`numalab record`, or any measured run with places of tasks and memory by node) is turned into machine,
workload and kernel; the model runs as long as the recording lasts, with several seeds. What it gives stands beside
what was recorded, and each what-if beside the twin.

Examples
--------
>>> from numalab import runs
>>> from numalab.twin import Twin
>>> twin = Twin.of(runs.open("mine.nc"))  # doctest: +SKIP
>>> print(twin.run().text)  # doctest: +SKIP
>>> print(twin.what_if("off").text)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import xarray as xr

from numalab.twin import _touch
from numalab.twin._compare import MODEL_ONLY, Sides
from numalab.twin._errors import TwinError
from numalab.twin._evidence import evidence
from numalab.twin._machine import kernel_of, machine_of
from numalab.twin._model import Model, changed, record_every
from numalab.twin._patterns import Pattern, patterns
from numalab.twin._result import AtRate, Effect, Fit, Row, WhatIf, effect_of
from numalab.twin._touch import Touch
from numalab.twin._workload import PAGES_PER_S, at_rate, workload_of

__all__ = ["SEEDS", "AtRate", "Effect", "Fit", "Model", "Row", "Touch", "Twin", "TwinError", "WhatIf"]

#: Runs of the twin, and of each what-if.
SEEDS = 12
#: At most so many at the other rates that the recording does not rule out.
SEEDS_AT_ENDS = 4
#: With more processes the small areas of each are left out.
MOST_BY_AREA = 16


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True)
class Twin:
    """A recording's twin in the model; make one with :meth:`of`.

    Attributes
    ----------
    name : str
        Of the recording.
    release : str
        Kernel that was recorded.
    model : Model
        Machine, workload, kernel and parameters that are simulated.
    touch : Touch
        How often threads visit memory, and how that was found.
    assumed : tuple of str
        What the recording does not tell, and what is taken instead.
    """

    name: str
    release: str
    model: Model
    touch: Touch
    assumed: tuple[str, ...]
    _sides: Sides = field(repr=False)
    _fits: dict[int, Fit] = field(default_factory=dict, repr=False)
    #: Rate -> the twin at that rate.
    _at_ends: dict[float, Twin] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        ds: xr.Dataset,
        name: str = "recording",
        *,
        pages_per_s: float | None = None,
        tell: Callable[[str], None] = _silent,
    ) -> Twin:
        """Make the twin of a recording.

        Parameters
        ----------
        ds : xarray.Dataset
            One measured run with the machine's nodes, counters, places of tasks, and memory of processes by node.
        name : str
            For titles and messages.
        pages_per_s : float, optional
            How often each thread visits a page; default: fitted, which runs the model some twenty times.
        tell : callable
            Is told what is being done.

        Raises
        ------
        TwinError
            Too little was recorded: says what is missing and how to record it.
        """
        found = evidence(ds, name)
        kernel, parameters, about_kernel = kernel_of(found)
        by_area = kernel.pid_filter != "none" and len(found.processes) <= MOST_BY_AREA
        inferred = workload_of(found, small_areas=by_area)
        machine, about_machine = machine_of(found, inferred.needed)
        sides = Sides(ds, found, inferred.regions)
        tried = patterns(found)

        def make(pattern: Pattern) -> Model:
            workload = workload_of(found, pattern, small_areas=by_area).workload
            return Model(machine, workload, kernel, found.seconds, parameters)

        if pages_per_s is None:
            touch = _touch.fitted(make, tried, sides, tell=tell)
        else:
            touch = _touch.given(tried[0], pages_per_s)
        model = make(touch.pattern)
        model = replace(model, workload=at_rate(model.workload, touch.pages_per_s))
        assumed = (touch.note, *about_kernel, *about_machine, *found.assumed, *inferred.notes)
        if sides.own_counters:
            assumed = tuple(one for one in assumed if not one.startswith("counters are the machine's"))
        return cls(name, found.release, model, touch, assumed, sides)

    def run(self, seeds: int = SEEDS) -> Fit:
        """Run the twin and compare it with the recording; a second call with as many seeds runs nothing.

        Parameters
        ----------
        seeds : int

        Raises
        ------
        TwinError
            The memory does not fit the machine.
        """
        if seeds not in self._fits:
            ds = self.model.simulate(seeds, record_every(self.model.seconds))
            rows = tuple(self._sides.rows(ds))
            self._fits[seeds] = Fit(rows, ds, self._sides.series(ds), self._sides.until, self.name)
        return self._fits[seeds]

    def what_if(self, spec: str, seeds: int = SEEDS) -> WhatIf:
        """Run the twin with something changed, and compare it with the twin as it is.

        Parameters
        ----------
        spec : str
            One or several of these, with commas between: ``off``, ``on``; ``kernel=6.14``; ``patch=NAME``; a setting
            or switch by its name, ``scan_size_mb=64``; a parameter of the model, ``remote_cost=1000``; ``bind=0`` or
            ``bind=0+1``, tasks and memory; ``cpubind=0``, tasks only; ``interleave``.
        seeds : int

        Returns
        -------
        WhatIf
            With the twin's warning: where it does not fit the recording. Where the recording does not tell how often
            memory is touched, with the same at the ends of what it may be (`SEEDS_AT_ENDS` runs at most).

        Raises
        ------
        TwinError
            What is asked for is not understood, or cannot be.
        """
        effects, ds = self._beside(spec, seeds)
        series = {name: twin for name, (_, twin) in self._sides.series(ds).items()}
        ends = tuple(
            AtRate(rate, self._at(rate)._beside(spec, min(seeds, SEEDS_AT_ENDS))[0]) for rate in self.touch.ends
        )
        return WhatIf(spec, effects, self.run(seeds).warning, ds, series, ends)

    def _beside(self, spec: str, seeds: int) -> tuple[tuple[Effect, ...], xr.Dataset]:
        """Run a what-if; return what it changes, and its runs."""
        other = self.changed(spec)
        base = self.run(seeds).ds
        ds = other.simulate(seeds, record_every(other.seconds))
        return tuple(self._effects(base, ds)), ds

    def _at(self, rate: float) -> Twin:
        """Return the twin at another rate; the same one each time, so that it runs once."""
        if rate not in self._at_ends:
            workload = at_rate(self.model.workload, PAGES_PER_S * rate / self.touch.pages_per_s)
            touch = replace(self.touch, pages_per_s=rate)
            self._at_ends[rate] = replace(
                self, model=replace(self.model, workload=workload), touch=touch, _fits={}, _at_ends={}
            )
        return self._at_ends[rate]

    def changed(self, spec: str) -> Model:
        """Return what a what-if would simulate.

        Raises
        ------
        TwinError
            As :meth:`what_if`.
        """
        return changed(self.model, spec)

    def _effects(self, base: xr.Dataset, other: xr.Dataset) -> list[Effect]:
        sampled = [self._sides.sampled(ds) for ds in (base, other)]
        out = []
        for one in self._sides.quantities():
            values = [one.value(ds, self._sides.until) for ds in sampled]
            if values[0] is not None and values[1] is not None:
                out.append(effect_of(one.name, one.units, one.what, values[0], values[1]))
        for name, units, what, take in MODEL_ONLY:
            first, second = (take(ds, self._sides.until) for ds in (base, other))
            if first is not None and second is not None:
                out.append(effect_of(name, units, what, first, second))
        return [effect for effect in out if effect is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return what is simulated and assumed, for JSON."""
        return {
            "recording": self.name,
            "release": self.release,
            "kernel": self.model.kernel.label,
            "seconds": self.model.seconds,
            "parameters": dict(self.model.parameters),
            "machine": self.model.machine.to_dict(),
            "workload": self.model.workload.to_dict(),
            "pages_per_s": self.touch.pages_per_s,
            "pages_per_s_not_told_apart": [self.touch.lowest, self.touch.highest],
            "assumed": list(self.assumed),
        }
