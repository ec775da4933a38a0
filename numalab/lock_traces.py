"""The lock model judged by a real kernel: the recordings ``S3_*``, where N processes ask for policies of one segment.

In each case the look-ups take the lock alone (``exclusive``) or shared (``rwlock``). What work lies between two
look-ups is taken from the shared runs, in which nobody ever waited; the model (`numalab.locks.solve_crowd`) then says
what taking the lock alone costs.

The recorded machine has 8 CPUs, emulated by a host that has fewer: with ``mttcg`` two, with ``icount`` one, which runs
the guest's CPUs in turn. So from three processes on (two, with icount) holders and waiters lose their CPU. Six
constants are fitted, to four of the runs (`FITTED`); no row of these runs counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.locks import Crowd, CrowdSolution, fit_positive, solve_crowd
from numalab.readers import trace
from numalab.schema import provenance

__all__ = ["FITTED", "Constants", "LockRun", "constants", "judge", "measured"]

#: Host CPUs that run the guest's, by mode of the emulator (data/traces/README.md).
HOST_CPUS = {"mttcg": 2, "icount": 1}
#: Runs the constants are fitted to, and what of them.
FITTED = {
    "S3_mttcg_lookup_n2_exclusive_r1": "section: share of look-ups that waited",
    "S3_mttcg_alloc_n2_exclusive_r1": "section with allocation: share of look-ups that waited",
    "S3_mttcg_lookup_n4_exclusive_r1": "slices: share of look-ups that waited, throughput",
    "S3_icount_lookup_n2_exclusive_r1": "section, slice: share of look-ups that waited, time waiting",
}
#: With icount a waiting task runs for this long; chosen, not fitted: there the ``pause`` of a spinning CPU lets the
#: next one run. Ten times as much or as little changes no result by a tenth.
ICOUNT_SPIN_S = 1e-6
#: Half of the band: 90 % of a normal distribution.
SIGMAS_90 = 1.645
#: The monitor of the recordings reads numa_maps, and so asks for policies, so often.
MONITOR_HZ = 1.0
QUANTITIES = {
    "contended_share": "look-ups that waited, of all",
    "waiting_share": "time waiting, of all processes' time",
    "ratio": "throughput, exclusive / shared lock",
}


@dataclass(frozen=True)
class LockRun:
    """What one recording holds.

    Attributes
    ----------
    name, mode, kind, label : str
        ``mode`` mttcg or icount; ``kind`` lookup (pure look-ups) or alloc (page allocation between them); ``label``
        exclusive or rwlock.
    tasks, rep : int
    seconds : float
        Length of the run.
    lookups, contended : int
        Look-ups, the monitor's included, and those that found the lock taken.
    ops : int
        Look-ups of the processes alone.
    wait_s : float
        Waiting time of all.
    """

    name: str
    mode: str
    kind: str
    label: str
    tasks: int
    rep: int
    seconds: float
    lookups: int
    contended: int
    ops: int
    wait_s: float

    @property
    def case(self) -> str:
        """The name without the repetition."""
        return self.name.rsplit("_r", 1)[0]

    @property
    def cpus(self) -> int:
        """CPUs that can run the processes at one time."""
        return HOST_CPUS[self.mode]

    @property
    def contended_share(self) -> float:
        """Look-ups that found the lock taken, of all."""
        return self.contended / self.lookups

    @property
    def waiting_share(self) -> float:
        """Time waiting, of the time of all processes."""
        return self.wait_s / (self.seconds * self.tasks)

    @property
    def cycle_s(self) -> float:
        """CPU time from one look-up to the next, if nobody waits, s."""
        return min(self.tasks, self.cpus) * self.seconds / self.ops


def measured(run: str | PathLike[str]) -> LockRun:
    """Read a recording: the name of a shipped one, or a folder.

    Raises
    ------
    FileNotFoundError, ReadError
        No such recording.
    ValueError
        It is not one of shared policy look-ups.
    """
    if Path(run).is_dir():
        return _measured(trace.read(run).dataset())
    # Ten times as fast as the packed dataset, and the same: only what its provenance holds is needed.
    with trace.folder(str(run)) as folder:
        return _measured(trace.read(folder).dataset())


def _measured(ds: xr.Dataset) -> LockRun:
    facts = provenance(ds)
    name, words = facts["trace"], facts["command"].split()
    mode = str(facts["meta"].get("case", "")).split("_")[0]
    if words[1:2] != ["shpol"] or mode not in HOST_CPUS or len(words) < 7:
        raise ValueError(
            f"{name}: expected a run of 'nlwl shpol N MB SECONDS SEED lookup|alloc' of case mttcg_* or icount_*, "
            f"got {facts['command']!r} of case {facts['meta'].get('case')!r}"
        )
    totals = facts["totals"]
    return LockRun(
        name=name,
        mode=mode,
        kind=words[6],
        label=facts["meta"]["label"],
        tasks=int(words[2]),
        rep=int(facts["meta"]["rep"]),
        seconds=float(words[4]),
        lookups=int(totals["k_sp_lookup"]),
        contended=int(totals.get("k_sp_contended", 0)),
        ops=int(facts["results"]["ops"]),
        wait_s=totals.get("k_sp_wait_ns", 0) / 1e9,
    )


# ---------------------------------------------------------------- the constants
@dataclass(frozen=True)
class Constants:
    """What was fitted, s: the lock held by one look-up; a task's time on a CPU others want, working and waiting."""

    section_s: float
    slice_s: float
    spin_slice_s: float

    def crowd(self, run: LockRun, cycle_s: float) -> Crowd:
        """Return the model of a run whose look-ups are `cycle_s` of CPU time apart."""
        return Crowd(run.tasks, run.cpus, cycle_s - self.section_s, self.section_s, self.slice_s, self.spin_slice_s)


@lru_cache(maxsize=1)
def constants() -> dict[tuple[str, str], Constants]:
    """Fit the constants to the runs in `FITTED` and to the shared runs beside them: (mode, kind) -> constants.

    With mttcg a look-up between allocations holds the lock longer, for reasons not known; with icount it does not.
    """
    two, allocating, four, turns = (measured(name) for name in FITTED)
    shared = {run.name: _partner(run.name) for run in (two, allocating, four, turns)}

    def section(run: LockRun) -> float:
        # Two tasks, each on a CPU: one finds the lock taken for as long as the other holds it.
        return run.contended_share * shared[run.name].cycle_s

    def four_tasks(slices: NDArray[np.float64]) -> list[float]:
        solution = solve_crowd(Constants(section(two), slices[0], slices[1]).crowd(four, shared[four.name].cycle_s))
        throughput = four.ops / shared[four.name].ops
        return [math.log(solution.contended_share / four.contended_share), math.log(solution.ratio / throughput)]

    def taking_turns(times: NDArray[np.float64]) -> list[float]:
        solution = solve_crowd(Constants(times[0], times[1], ICOUNT_SPIN_S).crowd(turns, shared[turns.name].cycle_s))
        return [
            math.log(solution.contended_share / turns.contended_share),
            math.log(solution.waiting_share / turns.waiting_share),
        ]

    slices = fit_positive(four_tasks, (5e-4, 2e-4)).tolist()
    times = fit_positive(taking_turns, (0.15 * shared[turns.name].cycle_s, 1e-2)).tolist()
    icount = Constants(times[0], times[1], ICOUNT_SPIN_S)
    return {
        ("mttcg", "lookup"): Constants(section(two), *slices),
        ("mttcg", "alloc"): Constants(section(allocating), *slices),
        ("icount", "lookup"): icount,
        ("icount", "alloc"): icount,
    }


# ---------------------------------------------------------------- judging
def judge(runs: Sequence[str | PathLike[str]] | None = None) -> list[dict[str, Any]]:
    """Compare the model with recordings.

    Parameters
    ----------
    runs : sequence of names or folders, optional
        Default: all shipped ``S3_*``. An exclusive run needs the shared run of the same repetition: it is looked for
        among these, then beside the folder or among the shipped ones.

    Returns
    -------
    list of dict
        Repetitions of a case are one row per quantity; runs used for fitting have rows of their own.
        ``trace`` : case, with its repetition where it was used for fitting
        ``quantity`` : key of `QUANTITIES`
        ``real``, ``real_low``, ``real_high`` : median and range; with fewer than three repetitions the widest relative
        half range of the same quantity and kind of work among cases with three, and more than one process
        ``model``, ``low``, ``high`` : median and 90 % band: spread of runs so long, over the shared runs' paces; None
        where the model has nothing to say
        ``ratio`` : model / real
        ``inside`` : the real median is in the band, or the model within 25 % of it; with fewer than three repetitions
        also if the real range, if no wider than a factor of 3, meets the band. Never where the band is wider than that
        ``counted`` : False for fitted rows, and where model and recording are zero by construction
        ``fitted`` : whether the run was used for fitting
        ``why`` : a word on the row

    Raises
    ------
    FileNotFoundError, ReadError, ValueError
        See `measured`.
    """
    known = [name for name in trace.names() if name.startswith("S3_")] if runs is None else list(runs)
    found = {str(run): measured(run) for run in known}
    at_hand = {run.name: run for run in found.values()}
    cases: dict[str, list[_Pair]] = {}
    for where, run in found.items():
        key = run.name if run.name in FITTED else run.case
        shared = None
        if run.label == "exclusive":
            shared = at_hand.get(_partner_name(run.name)) or _partner(where)
        cases.setdefault(key, []).append(_Pair(run, shared))
    repeated: dict[str, list[_Pair]] = {}
    for pairs in cases.values():
        repeated.setdefault(pairs[0].run.case, []).extend(pairs)
    spreads = _spreads(repeated.values())
    return [row for key, pairs in cases.items() for row in _rows(key, pairs, spreads)]


@dataclass(frozen=True)
class _Pair:
    """An exclusive run and the shared run of the same repetition; or a shared run alone."""

    run: LockRun
    shared: LockRun | None

    def value(self, quantity: str) -> float:
        if quantity == "ratio":
            assert self.shared is not None
            return self.run.ops / self.run.seconds / (self.shared.ops / self.shared.seconds)
        return float(getattr(self.run, quantity))


def _partner_name(name: str) -> str:
    return name.replace("exclusive", "rwlock")


def _partner(where: str) -> LockRun:
    """Read the shared run of the same repetition: beside a folder, or a shipped one."""
    path = Path(where)
    beside = path.with_name(_partner_name(path.name))
    return measured(beside if beside.is_dir() else _partner_name(path.name))


def _spreads(cases: Iterable[list[_Pair]]) -> dict[tuple[str, str], float]:
    """Return the widest relative half range per (kind, quantity) of cases with three repetitions, fitted or not."""
    widest: dict[tuple[str, str], float] = {}
    for pairs in cases:
        # A single process waits for the monitor only; that says nothing of how others scatter.
        if len(pairs) < 3 or pairs[0].shared is None or pairs[0].run.tasks == 1:
            continue
        for quantity in QUANTITIES:
            values = [pair.value(quantity) for pair in pairs]
            if middle := float(np.median(values)):
                key = (pairs[0].run.kind, quantity)
                widest[key] = max(widest.get(key, 0.0), (max(values) - min(values)) / 2 / middle)
    return widest


def _rows(key: str, pairs: list[_Pair], spreads: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    first = pairs[0].run
    if first.label != "exclusive":
        zeros = [_row(key, name, [pair.value(name) for pair in pairs], None, None) for name in list(QUANTITIES)[:2]]
        why = "shared look-ups never wait for each other: zero by construction"
        return [row | {"model": 0.0, "low": 0.0, "high": 0.0, "counted": False, "why": why} for row in zeros]
    model = _model(pairs)
    rows = []
    for quantity in QUANTITIES:
        spread = None if len(pairs) >= 3 else spreads.get((first.kind, quantity), 0.0)
        row = _row(key, quantity, [pair.value(quantity) for pair in pairs], spread, model[quantity])
        rows.append(row | {"why": _why(first, quantity, row)})
    return rows


def _row(
    key: str, quantity: str, values: list[float], spread: float | None, model: tuple[float, float, float] | None
) -> dict[str, Any]:
    real, real_low, real_high = float(np.median(values)), min(values), max(values)
    if spread is not None:
        real_low = max(0.0, min(real_low, real * (1 - spread)))
        real_high = max(real_high, real * (1 + spread))
    middle, low, high = model or (None, None, None)
    ratio = inside = None
    if middle is not None and low is not None and high is not None:
        ratio = middle / real if real else None
        # A range of the recordings wider than a factor of 3 would meet anything.
        wide = real_high > 3 * real_low
        hit = low <= real <= high if spread is None or wide else real_low <= high and low <= real_high
        close = ratio is not None and abs(ratio - 1) <= 0.25
        inside = bool((hit or close) and high <= 3 * low)
    return {
        "trace": key,
        "quantity": quantity,
        "real": real,
        "real_low": real_low,
        "real_high": real_high,
        "model": middle,
        "low": low,
        "high": high,
        "ratio": ratio,
        "inside": inside,
        "counted": inside is not None and key not in FITTED,
        "fitted": key in FITTED,
        "why": "",
    }


def _model(pairs: list[_Pair]) -> dict[str, tuple[float, float, float]]:
    """Return the model's median and band of each quantity, over the paces of the shared runs."""
    answers: dict[str, list[tuple[float, float]]] = {name: [] for name in QUANTITIES}
    for pair in pairs:
        assert pair.shared is not None
        fit = constants()[pair.run.mode, pair.run.kind]
        if pair.run.tasks == 1:
            for name, value in _watched(pair.run, pair.shared, fit).items():
                answers[name].append(value)
            continue
        solution = _solved(fit.crowd(pair.run, pair.shared.cycle_s))
        for name in QUANTITIES:
            answers[name].append((getattr(solution, name), solution.deviation(name, pair.run.seconds)))
    return {name: _band(some) for name, some in answers.items()}


@lru_cache(maxsize=64)
def _solved(crowd: Crowd) -> CrowdSolution:
    return solve_crowd(crowd)


def _watched(run: LockRun, shared: LockRun, fit: Constants) -> dict[str, tuple[float, float]]:
    """Return what a single process shows: value and deviation.

    It waits only for the monitor, which once a second asks for the policy of every mapping. A look-up of the monitor
    finds the lock held with the share of time it is held; and the process comes while the monitor has it as often.
    """
    held = fit.section_s / shared.cycle_s
    # On one CPU the two meet only when the monitor is let in, and when it ends; else at each of its look-ups.
    meetings = run.lookups - run.ops if run.cpus > 1 else run.seconds * MONITOR_HZ
    waits = 2 * held * meetings
    time = run.seconds * run.tasks
    wait_s = fit.section_s if run.cpus > 1 else fit.slice_s
    return {
        "contended_share": (waits / run.lookups, math.sqrt(waits) / run.lookups),
        "waiting_share": (waits * wait_s / time, math.sqrt(2 * waits) * wait_s / time),
        "ratio": (1.0, 0.0),
    }


def _band(some: list[tuple[float, float]]) -> tuple[float, float, float]:
    values, lows = [value for value, _ in some], [value - SIGMAS_90 * sigma for value, sigma in some]
    return float(np.median(values)), max(0.0, min(lows)), max(value + SIGMAS_90 * sigma for value, sigma in some)


def _why(run: LockRun, quantity: str, row: dict[str, Any]) -> str:
    if row["fitted"]:
        return f"fitted: {FITTED[row['trace']]}"
    if row["inside"]:
        return ""
    if row["high"] > 3 * row["low"]:
        return "the model's own band is wider than a factor of 3"
    if run.tasks == 1:
        return "the monitor, or the process, loses its CPU now and then while the other waits: not modelled"
    if run.mode == "icount":
        return "how the emulator turns from one CPU to the next is not known; drawing the next one comes closest so far"
    if run.tasks <= run.cpus:
        return "interrupts and other work of the host stop a holder now and then though it has a CPU: not modelled"
    return "how the host shares out its CPUs is known by two fitted constants only"
