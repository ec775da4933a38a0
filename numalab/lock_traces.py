"""The lock model beside a real kernel: the recordings ``S3_*``, where N processes ask for policies of one segment.

In each case the look-ups take the lock alone (``exclusive``) or shared (``rwlock``). How long a look-up takes on a CPU
is measured in the shared run of the same repetition, in which nobody ever waited; the model (`numalab.locks.turns`)
then says what taking the lock alone costs. Nothing is fitted to these recordings.

The recorded machine has 8 CPUs, emulated by a host that has fewer. With ``mttcg`` each is a thread, and two host CPUs
run the threads: from three processes on, holders and waiters lose their CPU, and one that spins uses it up as one that
works does. With ``icount`` one thread runs them in turn: the ``pause`` of one that spins ends its turn, so waiting
costs no throughput, but a task waits until its turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numalab.locks import Work, Worked, share_cpus, take_turns
from numalab.readers import trace
from numalab.schema import provenance

__all__ = ["QUANTITIES", "LockCase", "LockRun", "cases", "measured", "section_share"]

Values = NDArray[np.float64]

#: Host CPUs that run the guest's, by mode of the emulator (data/traces/README.md).
HOST_CPUS = {"mttcg": 2, "icount": 1}
#: Instructions of a look-up with the lock held: counted in Debian's build of the same kernel version (6.1.192) along
#: the path of `mpol_shared_policy_lookup`, for a red-black tree of 256 ranges (on average 7.54 nodes deep).
SECTION_INSTRUCTIONS = 100
#: ``-icount shift=3``: the guest's clock advances by so much with every instruction, s.
INSTRUCTION_S = 8e-9
#: Period of the scheduler's tick, host and guest alike: 250 a second.
TICK_S = 0.004
#: QEMU turns from one CPU to the next so often, ticks or not (TCG_KICK_PERIOD).
KICK_S = 0.1
#: Probabilities that a turn goes on by one, two, ... CPUs: counted in 7596 turns of QEMU 7.2 with ``-icount``, a 6.12
#: guest and six or eight processes that only count, without any lock. A timer that is due is handled on account of the
#: next CPU, which loses its turn by that; and setting the next tick ends the turn of a CPU if no other's comes sooner.
PLACES = (0.032, 0.386, 0.454, 0.123, 0.005)
#: The monitor of the recordings reads numa_maps, and so asks for policies, so often.
MONITOR_HZ = 1.0
#: Look-ups that waited, of all; time waiting, of all processes' time; throughput, exclusive / shared lock.
QUANTITIES = ("contended_share", "waiting_share", "ratio")


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
    def throughput(self) -> float:
        """Look-ups of all processes, 1/s."""
        return self.ops / self.seconds

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
    return _measured(trace.read(run).dataset()) if Path(run).is_dir() else _shipped(str(run))


@lru_cache(maxsize=128)
def _shipped(name: str) -> LockRun:
    # Ten times as fast as the packed dataset, and the same: only what its provenance holds is needed.
    with trace.folder(name) as folder:
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


# ---------------------------------------------------------------- the work
@lru_cache(maxsize=8)
def section_share(kind: str) -> float:
    """Return the share of a look-up's instructions that one process executes with the lock held.

    Parameters
    ----------
    kind : str
        lookup or alloc.
    """
    return SECTION_INSTRUCTIONS * INSTRUCTION_S / measured(f"S3_icount_{kind}_n1_rwlock_r1").cycle_s


@lru_cache(maxsize=8)
def _section_s(mode: str, kind: str) -> float:
    """Return how long the lock is held, s. That does not grow with the processes, as page allocation does."""
    alone = [measured(name).cycle_s for name in trace.names() if name.startswith(f"S3_{mode}_{kind}_n1_rwlock_")]
    return section_share(kind) * float(np.mean(alone))


def _work(run: LockRun, shared: LockRun) -> Work:
    section_s = _section_s(run.mode, run.kind)
    return Work(run.tasks, shared.cycle_s - section_s, section_s)


# ---------------------------------------------------------------- cases
@dataclass(frozen=True)
class LockCase:
    """Repetitions of one case.

    Attributes
    ----------
    name : str
    runs : tuple of LockRun
    shared : tuple of LockRun
        The run with the lock shared of each repetition; empty where the runs themselves are such.
    """

    name: str
    runs: tuple[LockRun, ...]
    shared: tuple[LockRun, ...]

    def real(self) -> dict[str, Values]:
        """Return what was measured: quantity -> (repetition,); no ratio where the runs are shared."""
        found = {name: np.array([getattr(run, name) for run in self.runs]) for name in QUANTITIES[:2]}
        if self.shared:
            pairs = zip(self.runs, self.shared, strict=True)
            found["ratio"] = np.array([run.throughput / shared.throughput for run, shared in pairs])
        return found

    def model(self, seeds: int) -> dict[str, Values]:
        """Return what the model has for the same quantities: (seed,) each, the repetitions taken in turn."""
        if not self.shared:
            return {name: np.zeros(seeds) for name in QUANTITIES[:2]}
        pairs = list(zip(self.runs, self.shared, strict=True))
        answers = [_one_run(*pairs[seed % len(pairs)], seed) for seed in range(seeds)]
        return {name: np.array([answer[name] for answer in answers]) for name in QUANTITIES}


def cases(runs: Sequence[str | PathLike[str]]) -> list[LockCase]:
    """Put the repetitions of each case together, in the order of their first.

    Parameters
    ----------
    runs : sequence of names or folders
        An exclusive run needs the shared run of the same repetition: it is looked for among these, then beside the
        folder or among the shipped ones.

    Raises
    ------
    FileNotFoundError, ReadError, ValueError
        See `measured`.
    """
    found = {str(run): measured(run) for run in runs}
    at_hand = {run.name: run for run in found.values()}
    members: dict[str, list[LockRun]] = {}
    shared: dict[str, list[LockRun]] = {}
    for where, run in found.items():
        members.setdefault(run.case, []).append(run)
        if run.label == "exclusive":
            shared.setdefault(run.case, []).append(at_hand.get(_partner_name(run.name)) or _partner(where))
    return [LockCase(name, tuple(own), tuple(shared.get(name, ()))) for name, own in members.items()]


def _partner_name(name: str) -> str:
    return name.replace("exclusive", "rwlock")


def _partner(where: str) -> LockRun:
    """Read the shared run of the same repetition: beside a folder, or a shipped one."""
    path = Path(where)
    beside = path.with_name(_partner_name(path.name))
    return measured(beside if beside.is_dir() else _partner_name(path.name))


# ---------------------------------------------------------------- the model
def _one_run(run: LockRun, shared: LockRun, seed: int) -> dict[str, float]:
    work = _work(run, shared)
    if run.tasks == 1:
        return _watched(run, work, np.random.default_rng(seed))
    worked = _worked(work, run.mode, run.seconds, seed)
    free = min(run.tasks, run.cpus) * run.seconds / shared.cycle_s
    return {
        "contended_share": worked.contended / worked.lookups,
        "waiting_share": worked.wait_s / (run.seconds * run.tasks),
        "ratio": worked.lookups / free,
    }


@lru_cache(maxsize=1024)
def _worked(work: Work, mode: str, seconds: float, seed: int) -> Worked:
    rng = np.random.default_rng(seed)
    if mode == "icount":
        return take_turns(work, (TICK_S, KICK_S), PLACES, seconds, rng)
    return share_cpus(work, HOST_CPUS[mode], TICK_S, seconds, rng)


def _watched(run: LockRun, work: Work, rng: np.random.Generator) -> dict[str, float]:
    """Return what a single process shows. It waits only for the monitor, which asks for the policy of every mapping.

    A look-up of the monitor finds the lock held with the share of time it is held; and the process comes while the
    monitor has it as often.
    """
    # On one CPU the two meet only when the monitor is let in; else at each of its look-ups.
    meetings = run.lookups - run.ops if run.cpus > 1 else round(run.seconds * MONITOR_HZ)
    waits = 2 * int(rng.binomial(meetings, work.held_share))
    # On one CPU the other has it for a turn.
    wait_s = work.section_s if run.cpus > 1 else TICK_S
    return {
        "contended_share": waits / run.lookups,
        "waiting_share": waits * wait_s / run.seconds,
        "ratio": 1.0,
    }
