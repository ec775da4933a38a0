"""The lesson of the convergence thread (``notebooks/20_convergence.ipynb``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from numalab import _data, plots
from numalab.machine import machine
from numalab.model.params import PARAMETERS
from numalab.patch_threads import Claim, convergence, convergence_trap
from numalab.patch_threads.convergence import BEFORE, MACHINE, PATCHES, RATE_MBPS, SHAPES, STEP_US, published
from numalab.readers import perf_bench
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, slider, steps, switch
from numalab.workloads import perf_bench_numa

P, T = SHAPES[0]
SECONDS = 15.0
#: Threads a node of the mail's machine has room for at two per CPU, as in the mail.
NODES, PLACES = 4, 40
#: Threads more or less than the places of a node that a magnified figure shows.
NEAR = 5
SIGMA = PARAMETERS["balancer_sigma"].default
AFTER_NAME, BEFORE_NAME = "with the series", "before the series"
PATCH_WORDS = {
    "S1#1": "1: a group goes to the node where it faults most",
    "S1#2": "2: the load test compares loads as they are",
    "S1#4": "4: a candidate is scored by the group's gain",
    "S1#5": "5: a busy CPU may be moved to, not only swapped with",
    "S1#6": "6: settle when the group's node is reached",
    "S1#7": "7: scan less often only from 70 % local faults",
}


def setup(patches: tuple[str, ...] = (), p: int = P, t: int = T, seconds: float = SECONDS, **parameters: int) -> Setup:
    """Describe a run on the mail's machine.

    Parameters
    ----------
    patches : tuple of str
        Of the series, applied to the kernel it was written on.
    p, t : int
        Processes, and threads of each.
    seconds : float
    **parameters : int
        Of the model.
    """
    return Setup(
        MACHINE,
        "perf_bench_numa",
        BEFORE,
        seconds,
        {"p": p, "t": t, "P": 1000, "rate_mbps": RATE_MBPS},
        patches,
        options={"step_us": STEP_US, "every": {"task_node": 0.1}, **parameters},
    )


def before_and_after() -> dict[str, Setup]:
    """Describe the mail's run before the series and with all of it (which is what 3.17 has)."""
    return {BEFORE_NAME: setup(), AFTER_NAME: setup(PATCHES)}


def trace() -> Printed:
    """Return the run that the mail shows, from before the series."""
    return Printed(_data.read_text("published", published()["trace"]["file"]).strip("\n"))


def trace_picture() -> plots.Picture:
    """Return the same as a figure: threads by node, and magnified what is left when most are home."""
    text = _data.read_text("published", published()["trace"]["file"])
    whole = plots.perf({"the mail's run": perf_bench.to_dataset(perf_bench.parse(text))})
    (part,) = whole.parts
    near = replace(part, title="the same, magnified", words="", window=(PLACES - NEAR, PLACES + NEAR))
    return replace(whole, parts=[part, near])


def stuck(label: str) -> Printed:
    """Retell the stuck state for one of :data:`numalab.patch_threads.convergence_trap.VARIANTS`."""
    workload = perf_bench_numa(P, T, P=1000, rate_mbps=RATE_MBPS)
    return Printed(convergence_trap.tell_variant(machine(MACHINE), workload, BEFORE, label, [0, 1], limit_s=4.0))


def times(full: bool = False) -> Printed:
    """Return the table of convergence times from the stored replay: the main kernels, or every case."""
    chosen = [one for one in convergence.stored() if full or one.is_main or one.case.shape == convergence.CONTROL]
    return Printed(convergence.times_table(chosen))


def claims() -> list[Claim]:
    """Return the mail's claims with the model's answers, from the stored replay."""
    return convergence.replay_stored().claims


# ------------------------------------------------------------------------------------ widgets
def predict_time() -> Predict:
    """Ask how long it takes with the series."""
    return Predict(
        "8 processes of 20 threads, all memory on node 0, and the seven patches in place. After how many seconds is "
        "every process on one node?",
        0,
        60,
        unit="s",
    )


def predict_patch() -> Predict:
    """Ask which patch frees the last thread."""
    return Predict(
        "One thread of node 1's process sits on node 0; every CPU of node 1 is busy. What brings it home?",
        choices=list(convergence_trap.VARIANTS),
    )


def home_words(runs: Mapping[str, Any]) -> str:
    """Say when every process was first on one node, one line a side."""
    lines = []
    for name, ds in runs.items():
        seconds = home_time(ds)
        when = f"at {seconds:.1f} s" if math.isfinite(seconds) else f"not within {SECONDS:.0f} s"
        lines.append(f"{name}: every process on one node for the first time {when}")
    return "\n".join(lines)


def home_time(ds: Any) -> float:
    """Return when every process of the first run was first on one node, seconds; infinity: not within the record."""
    return float(convergence.true_times(ds)[0])


def explorer() -> Explorer:
    """Return the explorer: the kernel before the series beside one with the patches that are ticked."""
    knobs = [
        steps("p", "processes", [1, 2, 4, 8, 16], P),
        slider("t", "threads of each", 1, 80, T),
        slider(
            "sigma", "error of the load balancer", 0, 300, SIGMA, step=10, unit="1/1000",
            help=f"How far the load balancer misjudges loads; {SIGMA} was fitted to the mail's words",
        ),
        slider("seconds", "time to simulate", 5, 60, SECONDS, step=5, unit="s"),
        *(switch(_switch_name(patch), words, True) for patch, words in PATCH_WORDS.items()),
    ]  # fmt: skip
    none = dict.fromkeys(map(_switch_name, PATCHES), False)
    presets: dict[str, Mapping[str, Any]] = {
        "the mail's run": {},
        "patch 2 alone": none | {"patch_2": True},
        "patch 5 alone": none | {"patch_5": True},
        "patches 2 and 5": none | {"patch_2": True, "patch_5": True},
        "4 x 40": {"p": 4, "t": 40},
        "16 x 10": {"p": 16, "t": 10},
        "2 x 80: no room": {"p": 2, "t": 80},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Setup]:
        chosen = tuple(patch for patch in PATCHES if values[_switch_name(patch)])
        common = (values["p"], values["t"], float(values["seconds"]))
        # left out when it is the default, so that the run is the one of the figures above
        sigma = {} if values["sigma"] == SIGMA else {"balancer_sigma": values["sigma"]}
        return {BEFORE_NAME: setup((), *common, **sigma), _right_name(chosen): setup(chosen, *common, **sigma)}

    def draw(runs: Any, values: Mapping[str, Any]) -> plots.Picture:
        one = next(iter(runs.values()))
        picture = plots.astray if one.sizes["run"] > 1 else plots.nodes
        return picture(runs, seconds=values["seconds"])

    return Explorer(
        "Find the edge: which patches, how many processes and threads?", knobs, sides, draw, presets=presets
    )


def _switch_name(patch: str) -> str:
    return patch.replace("S1#", "patch_")


def _right_name(chosen: tuple[str, ...]) -> str:
    if chosen == PATCHES:
        return AFTER_NAME
    return f"patches {', '.join(patch.removeprefix('S1#') for patch in chosen)}" if chosen else "no patch"


# ------------------------------------------------------------------------------------ exercises
def exercise_trace() -> Exercise:
    """Return problems on reading perf's line."""
    return Exercise("Read perf's line", _trace_problem)


def _trace_problem(seed: int) -> Problem:
    """Let some threads of settled processes go astray, and ask how many have to move at least."""
    rng = np.random.default_rng(seed)
    threads = np.zeros((P, NODES), int)
    threads[np.arange(P), np.arange(P) % NODES] = T
    for _ in range(rng.integers(1, 6)):
        process = rng.integers(P)
        target = rng.integers(NODES)
        if threads[process, process % NODES] > T // 2:
            threads[process, process % NODES] -= 1
            threads[process, target] += 1
    per_node, processes = threads.sum(axis=0), (threads > 0).sum(axis=0)
    least = int(np.maximum(per_node - PLACES, 0).sum())
    cells = " ".join(f"{n}/{p}" for n, p in zip(per_node, processes, strict=True))
    over = [f"node {n}: {k} - {PLACES} = {k - PLACES}" for n, k in enumerate(per_node) if k > PLACES]
    how = f"What is above {PLACES}: {', '.join(over)}." if over else f"Every node has {PLACES} threads already."
    return Problem(
        f"perf prints, for {P} processes of {T} threads on {NODES} nodes:\n"
        f"    {cells}  [{per_node.max() - per_node.min()}/{processes.sum()}]\n"
        f"At least how many threads have to change their node until every node has {PLACES} threads again?",
        least,
        lambda given: (
            f"Before each slash stands the number of threads on a node. Add up by how much nodes are above {PLACES}; "
            "a thread that leaves one fills a gap elsewhere."
        ),
        how,
        unit="threads",
    )


def exercise_room() -> Exercise:
    """Return problems on whether processes fit whole on nodes."""
    return Exercise("Is there room to converge?", _room_problem)


def _room_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    t = int(rng.choice([8, 10, 12, 16, 20, 24, 30, 40, 50, 80]))
    fits = NODES * (PLACES // t)
    p = int(rng.integers(max(1, fits - 2), fits + 4))
    yes, no = "yes", "no"
    return Problem(
        f"{p} processes of {t} threads each; {NODES} nodes with {PLACES} places (20 CPUs, two threads a CPU).\n"
        "Can every process be on one node with no node above its places?",
        yes if p <= fits else no,
        lambda given: (
            f"How many whole processes of {t} threads have room in {PLACES} places? Round down, then times {NODES}."
        ),
        f"{PLACES} // {t} = {PLACES // t} whole processes a node, so {fits} in all; there are {p}.",
        choices=(yes, no),
    )
