"""Run the model: machine, workload and kernel in, a dataset out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from tqdm import tqdm

from numalab import runs
from numalab.compile import compile_layout, region_names
from numalab.kernel import Kernel
from numalab.kernel import table as kernel_table
from numalab.layout import Ints, Layout
from numalab.machine import Machine
from numalab.machine import machine as machine_named
from numalab.model.engine import Engine
from numalab.model.params import DEFAULTS, PARAMETERS
from numalab.model.record import READERS, USUAL, Recorder
from numalab.workload import Workload

#: Runs simulated side by side; more are done in turn, with the same results.
BATCH = 64
#: Largest value of a numeric switch, and longest simulated time in seconds.
MOST, MOST_S = 1_000_000_000, 1_000_000.0
#: Stands for every region where visits are scaled.
ALL_REGIONS = "all"
#: What spans the grid of runs.
SEVERAL = (list, tuple, range, np.ndarray)


class SimulationError(ValueError):
    """An argument that cannot be simulated; the message names it and says what was expected."""


def simulate(
    machine: Machine | str,
    workload: Workload,
    kernel: Kernel | str,
    *,
    seconds: float,
    seeds: int | Sequence[int] = 1,
    every: Mapping[str, float | None] | None = None,
    stop_after_converged_s: float | None = None,
    rates: Mapping[str, int | Sequence[int]] | None = None,
    paired: bool = False,
    progress: bool = False,
    **parameters: int | Sequence[int],
) -> xr.Dataset:
    """Simulate NUMA balancing.

    Parameters
    ----------
    machine, workload, kernel
        What runs; machine and kernel may be given by name.
    seconds : float
        Simulated time.
    seeds : int or sequence of int
        One run per seed; a number n stands for the seeds 0 to n - 1.
    every : mapping of str to float or None, optional
        How often variables are recorded, in seconds (0: every step), or None: not at all. Without it
        each variable is sampled some ten to a few hundred times per run.
    stop_after_converged_s : float, optional
        Stop a run this long after all threads of every process were first on one node; the rest of its record
        repeats the last state.
    rates : mapping of str to int or sequence of int, optional
        How often a region of the workload is visited, of 1000 of what the workload says; ``all`` stands for every
        region that is not named. Sequences span the grid as those of parameters do; the coordinate is
        ``rate_<region>``.
    paired : bool
        Sequences span no grid: each is as long as that of the seeds, and a run has one value of each.
    progress : bool
        Show a progress bar on stderr.
    **parameters : int or sequence of int
        Parameters (:data:`numalab.model.params.PARAMETERS`) and numeric kernel switches. Sequences span a
        grid: every combination with every seed is a run, and each lies along ``run`` as a coordinate.

    Returns
    -------
    xarray.Dataset
        A run dataset (:mod:`numalab.schema`) with everything needed to repeat it. Interrupted by Ctrl-C it
        holds the time that all runs have reached.

    Raises
    ------
    SimulationError
        An argument of the wrong kind, out of its range, or unknown; the message names it.
    ValueError
        The workload's memory does not fit the machine.
    """
    run = Simulation(
        machine, workload, kernel, seconds=seconds, seeds=seeds, every=every,
        stop_after_converged_s=stop_after_converged_s, rates=rates, paired=paired, **parameters,
    )  # fmt: skip
    with tqdm(total=run.total_s, unit="s", disable=not progress, desc=run.title[:60]) as bar:
        try:
            while not run.done:
                run.advance(0.2)
                bar.update(run.simulated_s - bar.n)
        except KeyboardInterrupt:
            if not run.has_samples:
                raise
    return run.dataset()


class Simulation:
    """What :func:`simulate` does, in pieces that can be looked at: the same runs, however they are cut.

    Parameters
    ----------
    machine, workload, kernel, seconds, seeds, every, stop_after_converged_s, rates, paired, **parameters
        As those of :func:`simulate`.

    Attributes
    ----------
    machine, workload, kernel : Machine, Workload, Kernel
    seconds : float
        Simulated time of each run.
    title : str
        Workload and kernel, for a progress bar.

    Raises
    ------
    SimulationError, ValueError
        As :func:`simulate`, at once.
    """

    def __init__(
        self,
        machine: Machine | str,
        workload: Workload,
        kernel: Kernel | str,
        *,
        seconds: float,
        seeds: int | Sequence[int] = 1,
        every: Mapping[str, float | None] | None = None,
        stop_after_converged_s: float | None = None,
        rates: Mapping[str, int | Sequence[int]] | None = None,
        paired: bool = False,
        **parameters: int | Sequence[int],
    ) -> None:
        self.machine = machine_named(machine) if isinstance(machine, str) else machine
        self.workload = workload
        self.kernel = Kernel(kernel) if isinstance(kernel, str) else kernel
        for what, value, kind in (
            ("machine", self.machine, Machine),
            ("workload", self.workload, Workload),
            ("kernel", self.kernel, Kernel),
        ):
            if not isinstance(value, kind):
                raise SimulationError(f"{what}: expected a {kind.__name__}, got {value!r}")
        self.seconds = _seconds("seconds", seconds)
        if stop_after_converged_s is not None:
            stop_after_converged_s = _seconds("stop_after_converged_s", stop_after_converged_s, zero=True)
        self._hold_s = stop_after_converged_s
        seeds = range(seeds) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
        self._seeds = _whole_numbers("seeds", seeds, 0, 2**63 - 1)
        self._every, self._rates, self._parameters = every, rates or {}, parameters
        self._paired = paired
        lists = _lists(parameters, self._rates, workload)
        self._grid, self._values = (_pairs if paired else _grid)(self._seeds, lists)
        steps_us = np.unique(self._values.get("step_us", DEFAULTS["step_us"]))
        if len(steps_us) != 1:
            raise SimulationError("step_us: all runs of a call share one step; make one call per step length")
        self._dt = int(steps_us[0]) / 1e6
        self._end = max(1, round(self.seconds / self._dt))
        self._intervals = _intervals(every, self._end, self._dt)
        self._layout = compile_layout(self.machine, workload)
        self._parts: list[_Part] = []
        self._waiting = list(_chunks(len(self._grid)))
        self.title = f"{workload.name[:40]} on {self.kernel.name}"

    @property
    def done(self) -> bool:
        """Whether all runs have ended."""
        return not self._waiting and not self._parts[-1].runs

    @property
    def total_s(self) -> float:
        """Simulated time of all runs together, seconds."""
        return self._end * self._dt * len(self._grid)

    @property
    def simulated_s(self) -> float:
        """Simulated time done so far, of all runs together, seconds."""
        return sum(part.steps_done() for part in self._parts) * self._dt

    @property
    def has_samples(self) -> bool:
        """Whether there is anything to make a dataset of."""
        return any(part.reached() for part in self._parts)

    def advance(self, budget_s: float) -> None:
        """Simulate for about so long on the wall clock, at least one step.

        Parameters
        ----------
        budget_s : float
            Seconds; a step is always finished.
        """
        end = time.monotonic() + budget_s
        while not self.done:
            if not self._parts or not self._parts[-1].runs:
                self._parts.append(self._start(self._waiting.pop(0)))
            self._parts[-1].turn()
            if time.monotonic() >= end:
                break

    def _start(self, chosen: Ints) -> _Part:
        params = {name: self._values[name][chosen] for name in self._parameters}
        rates = _rate_permille(self.workload, self._layout, self._rates, self._values, chosen)
        engine = Engine(self._layout, self.kernel, self._grid[chosen], params, rates)
        hold = None if self._hold_s is None else self._hold_s / self._dt
        return _Part(engine, self._intervals, self._end, len(chosen), hold)

    def dataset(self) -> xr.Dataset:
        """Return what is simulated so far, as :func:`simulate` does: the time that all runs begun have reached.

        Raises
        ------
        SimulationError
            Before the first call of :meth:`advance`.
        """
        parts = [part for part in self._parts if part.reached() > 0]
        if not parts:
            raise SimulationError("nothing is simulated yet; call advance() first")
        provenance = {
            "machine": self.machine.to_dict(),
            "workload": self.workload.to_dict(),
            "kernel": {"name": self.kernel.name, "set": self.kernel.overrides, "switches": self.kernel.switches},
            "seconds": self.seconds,
            "seeds": self._seeds,
            "every": dict(self._every) if self._every else None,
            "stop_after_converged_s": self._hold_s,
            "rates": _plain(self._rates),
            "parameters": _plain(self._parameters),
            "defaults": {name: value for name, value in DEFAULTS.items() if name not in self._parameters},
            **({"paired": True} if self._paired else {}),
        }
        given = {**self._parameters, **{f"rate_{name}": value for name, value in self._rates.items()}}
        return _dataset(
            self.machine, self.workload, self.kernel, self._layout, parts, self._grid, self._values, given, self._dt,
            provenance,
        )  # fmt: skip


def repeat(ds: xr.Dataset, *, progress: bool = False) -> xr.Dataset:
    """Simulate a dataset again from what it says about itself.

    Raises
    ------
    SimulationError
        If it was not simulated by one call of :func:`simulate`.
    """
    how = runs.provenance(ds)
    if ds.attrs["source"] != "simulated" or "workload" not in how:
        raise SimulationError("only a dataset of one simulation can be repeated")
    return simulate(
        Machine.from_dict(how["machine"]),
        Workload.from_dict(how["workload"]),
        _same_kernel(how["kernel"]),
        seconds=how["seconds"],
        seeds=how["seeds"],
        every=how["every"],
        stop_after_converged_s=how["stop_after_converged_s"],
        rates=how["rates"],
        paired=how.get("paired", False),
        progress=progress,
        **{**_changed_defaults(how), **how["parameters"]},
    )


def _plain(given: Mapping[str, Any]) -> dict[str, int | list[int]]:
    """Return parameters as they go into JSON."""
    return {k: [int(x) for x in v] if isinstance(v, SEVERAL) else int(v) for k, v in given.items()}


def _same_kernel(stored: Mapping[str, Any]) -> Kernel:
    """Return a stored kernel; switches the table has changed since are set as they were."""
    kernel = Kernel(stored["name"], **stored["set"])
    was = {name: value for name, value in stored["switches"].items() if kernel.switches.get(name, value) != value}
    return kernel.replace(**was) if was else kernel


def _changed_defaults(how: Mapping[str, Any]) -> dict[str, int]:
    """Return the parameters whose defaults were others when a dataset was made."""
    return {name: value for name, value in how["defaults"].items() if DEFAULTS.get(name) != value}


class _Part:
    """One batch on its way."""

    def __init__(self, engine: Engine, every: Mapping[str, int], end: int, count: int, hold: float | None) -> None:
        self.engine, self.end, self.count, self.hold = engine, end, count, hold
        self.recorder = Recorder(every, count, end)
        self.events: list[tuple[int, ...]] = []
        self._converged_at = np.full(count, -1, np.int64)

    @property
    def runs(self) -> int:
        """Runs that have not ended."""
        return self.engine.state.runs

    def turn(self) -> None:
        """Skip idle steps, take the samples that are due, do one step."""
        state, recorder = self.engine.state, self.recorder
        recorder.sample(state, state.number)
        self._drop_finished()
        if not state.runs:
            return
        self.engine.skip(recorder.next_step(state.number))
        recorder.sample(state, state.number)
        self._drop_finished()
        if state.runs:
            self.engine.step()

    def steps_done(self) -> int:
        """Count the steps of all runs; one that ended early counts as whole."""
        return int(self.engine.state.step_index.sum()) + (self.count - self.runs) * self.end

    def _drop_finished(self) -> None:
        state = self.engine.state
        done = state.step_index >= self.end
        if self.hold is not None:
            settled = self._settled()
            self.recorder.finish(state, state.number, np.flatnonzero(settled & ~done))
            done |= settled
        if done.any():
            state.keep(np.flatnonzero(~done))

    def _settled(self) -> NDArray[np.bool_]:
        """Say which runs have long enough ago had every process on one node."""
        state = self.engine.state
        first = state.fix.process_first_task
        node = state.node_of_task
        same = (np.minimum.reduceat(node, first, axis=1) == np.maximum.reduceat(node, first, axis=1)).all(axis=1)
        at = self._converged_at
        fresh = same & (at[state.number] < 0)
        at[state.number[fresh]] = state.step_index[fresh]
        first_time = at[state.number]
        assert self.hold is not None
        return np.asarray((first_time >= 0) & (state.step_index - first_time >= self.hold))

    def reached(self) -> int:
        """Return how many samples of the sparsest variable all runs have."""
        return min((int(taken.min()) for taken in self.recorder.taken.values()), default=0)


def _lists(
    parameters: Mapping[str, int | Sequence[int]], rates: Mapping[str, int | Sequence[int]], workload: Workload
) -> dict[str, list[int]]:
    """Return the checked values of everything that may vary along ``run``."""
    switches = {name: switch for name, switch in kernel_table().switches.items() if switch.kind == "number"}
    lists: dict[str, list[int]] = {}
    for name, given in parameters.items():
        if name in PARAMETERS:
            least, most = PARAMETERS[name].least, PARAMETERS[name].most
        elif name in switches:
            least, most = switches[name].least, switches[name].most
        else:
            close = get_close_matches(name, [*PARAMETERS, *switches], n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join([*PARAMETERS, *switches])}"
            raise SimulationError(f"{name}: no such parameter; {hint} (other switches belong to Kernel(...))")
        lists[name] = _whole_numbers(name, given, least, most)
    regions = sorted({region.name for region in workload.regions})
    for name, given in rates.items():
        if name not in (*regions, ALL_REGIONS):
            raise SimulationError(f"rates: the workload has no region {name!r}; it has {', '.join(regions)}")
        lists[f"rate_{name}"] = _whole_numbers(f"rates: {name}", given, 1, 1_000_000)
    return lists


def _grid(seeds: list[int], lists: Mapping[str, list[int]]) -> tuple[Ints, dict[str, Ints]]:
    """Return the seed of each run and the value of each parameter in it: all combinations, seeds innermost."""
    combinations = list(product(*lists.values()))
    columns = {
        name: np.repeat(np.array([c[i] for c in combinations], np.int64), len(seeds)) for i, name in enumerate(lists)
    }
    return np.tile(np.array(seeds, np.int64), len(combinations)), columns


def _pairs(seeds: list[int], lists: Mapping[str, list[int]]) -> tuple[Ints, dict[str, Ints]]:
    """Return the same where run i has the i-th seed and the i-th value of each sequence."""
    columns = {}
    for name, values in lists.items():
        if len(values) not in (1, len(seeds)):
            raise SimulationError(f"{name}: expected {len(seeds)} numbers, one for each seed, got {len(values)}")
        columns[name] = np.resize(np.array(values, np.int64), len(seeds))
    return np.array(seeds, np.int64), columns


def _whole_numbers(name: str, given: Any, least: int, most: int) -> list[int]:
    """Return one or several whole numbers within a range as a list; anything else is refused by name."""
    several = isinstance(given, SEVERAL)
    values = list(given) if several else [given]
    if not values:
        raise SimulationError(f"{name}: expected at least one number, got none")
    for value in values:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise SimulationError(f"{name}: expected whole numbers from {least} to {most}, got {value!r}")
    return [int(value) for value in values]


def _seconds(name: str, value: Any, *, zero: bool = False) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not (0 <= value <= MOST_S) or (value == 0 and not zero):
        raise SimulationError(f"{name}: expected seconds {'>=' if zero else '>'} 0, got {value!r}")
    return float(value)


def _rate_permille(
    workload: Workload,
    layout: Layout,
    rates: Mapping[str, Any] | None,
    values: Mapping[str, Ints],
    chosen: Ints,
) -> Ints | None:
    """Return the rates of all accesses in some runs, of 1000: (R, A); None if nothing varies."""
    if not rates:
        return None
    names = [name.split("/")[0] for name in region_names(workload)]
    of_access = [names[g] for g in layout.vma_region[layout.access_vma]]
    rest = values[f"rate_{ALL_REGIONS}"][chosen] if ALL_REGIONS in rates else np.full(len(chosen), 1000)
    columns = [values[f"rate_{name}"][chosen] if name in rates else rest for name in of_access]
    return np.stack(columns, axis=1)


def _chunks(count: int) -> Iterator[Ints]:
    for start in range(0, count, BATCH):
        yield np.arange(start, min(count, start + BATCH))


def _intervals(every: Mapping[str, float | None] | None, end: int, dt: float) -> dict[str, int]:
    intervals = {name: max(1, end // samples) for name, samples in USUAL.items()}
    for name, value in (every or {}).items():
        if name not in READERS:
            raise SimulationError(f"every: no variable {name!r} to record; known: {', '.join(READERS)}")
        if value is None:
            intervals.pop(name, None)
        else:
            intervals[name] = max(1, round(_seconds(f"every: {name}", value, zero=True) / dt))
    return intervals


def _dataset(
    machine: Machine, workload: Workload, kernel: Kernel, layout: Layout, parts: list[_Part], seeds: Ints,
    values: Mapping[str, Ints], parameters: Mapping[str, Any], dt: float, provenance: Mapping[str, Any],
) -> xr.Dataset:  # fmt: skip
    count = sum(part.count for part in parts)
    coords: dict[str, Any] = {
        "run": np.arange(count),
        "seed": seeds[:count],
        "kernel": np.array([kernel.label] * count),
        "node": layout.node_id,
        "node2": layout.node_id,
        "distance": (("node", "node2"), layout.distance),
        "cpu": np.arange(layout.cpus),
        "cpu_node": (("cpu",), layout.node_id[layout.cpu_node]),
        "task": np.arange(layout.tasks),
        "task_process": (("task",), layout.task_process),
        "task_name": (("task",), _task_names(workload, layout)),
        "process": np.arange(layout.processes),
        "region": np.array(region_names(workload)),
        "kind": np.array(["shared", "private"]),
    }
    coords |= {
        name: (("run",), values[name][:count]) for name, given in parameters.items() if isinstance(given, SEVERAL)
    }
    recorder = parts[0].recorder
    variables: dict[str, Any] = {}
    for position, interval in enumerate(recorder.intervals):
        axis = "time" if position == 0 else f"time_{position}"
        samples = min(int(part.recorder.taken[interval].min()) for part in parts)
        coords[axis] = recorder.times[interval][:samples] * dt
        for name in recorder.variables[interval]:
            array = np.concatenate([part.recorder.arrays[name][:, :samples] for part in parts])
            variables[name] = (("run", axis, *READERS[name][0]), array)
    used = {dim for dims, _ in variables.values() for dim in dims}
    if "region" not in used:
        del coords["region"]
    if "kind" not in used:
        del coords["kind"]
    variables |= _event_table(layout, parts, dt)
    title = f"{workload.name} on {machine.name}, {kernel.label}"
    return runs.build(variables, coords, title=title, source="simulated", params=provenance)


def _event_table(layout: Layout, parts: list[_Part], dt: float) -> dict[str, Any]:
    per_run: list[list[tuple[int, ...]]] = []
    for part in parts:
        rows: list[list[tuple[int, ...]]] = [[] for _ in range(part.count)]
        for event in part.engine.state.events:
            rows[event[0]].append(event)
        per_run += rows
    node = np.append(layout.node_id[layout.cpu_node], -1)
    tables = []
    for events in per_run:
        table = np.array(sorted(events, key=lambda event: event[1]), np.int64).reshape(-1, 8)
        tables.append(
            {
                "event_time_s": (table[:, 1] + 1) * dt,
                "event_kind": table[:, 2],
                "event_task": table[:, 3],
                "event_src_cpu": table[:, 4],
                "event_src_node": node[table[:, 4]],
                "event_dst_cpu": table[:, 5],
                "event_dst_node": node[table[:, 5]],
                "event_partner": table[:, 6],
                "event_gain": table[:, 7],
            }
        )
    return runs.padded("event", tables)


def _task_names(workload: Workload, layout: Layout) -> NDArray[np.str_]:
    first = np.searchsorted(layout.task_process, layout.task_process)
    return np.array([f"p{p}t{t}" for p, t in zip(layout.task_process, np.arange(layout.tasks) - first, strict=True)])
