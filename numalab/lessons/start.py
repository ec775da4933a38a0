"""The lesson to start with (``notebooks/00_start_here.ipynb``): is everything there, and what do the figures show?"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping
from typing import Any

from numalab import plots
from numalab.kernel import table as kernel_table
from numalab.machine import PRESETS
from numalab.simulation import simulate
from numalab.text import table
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, choice, slider, steps
from numalab.workloads import NAMED, perf_bench_numa

MACHINE = "dave-4n16"
KERNELS = ("3.14", "3.17")
SECONDS = 12.0
P, T = 4, 4
#: Kernels of the explorer, oldest first.
RELEASES = ("3.14", "3.16", "3.17", "4.19", "6.18")


def setup(kernel: str, p: int = P, t: int = T, seconds: float = SECONDS) -> Setup:
    """Describe some processes of some threads on a machine of 4 nodes with 4 CPUs each, all memory on node 0."""
    return Setup(
        MACHINE, "perf_bench_numa", kernel, seconds, {"p": p, "t": t, "P": 256},
        options={"step_us": 4000, "every": {"task_node": 0.1}},
    )  # fmt: skip


def before_and_after() -> dict[str, Setup]:
    """Describe the same load on an old and on a newer kernel."""
    return {kernel: setup(kernel) for kernel in KERNELS}


# ------------------------------------------------------------------------------------ is everything there?
def checked() -> Printed:
    """Check what the notebooks need, and say of each whether it is there."""
    rows = [[what, "yes" if good else f"NO: {remedy}"] for what, good, remedy in _checks()]
    return Printed(table(["needed", "there"], rows))


def _checks() -> list[tuple[str, bool, str]]:
    """Return what was checked, whether it is right, and what to do if not."""
    again = "install numalab anew: pip install 'numalab[lab]', or make lab in a clone"
    return [
        ("Python 3.11 or newer", sys.version_info >= (3, 11), "use a newer Python"),
        ("ipywidgets 8", _major("ipywidgets") >= 8, "pip install 'ipywidgets>=8.1', then restart JupyterLab"),
        ("data: machines, workloads, kernels", bool(PRESETS and NAMED and kernel_table().releases), again),
        ("the model: the same seed gives the same run", _repeats(), again),
    ]


def _major(distribution: str) -> int:
    """Return the first number of an installed version, 0 if it is not there."""
    try:
        return int(importlib.metadata.version(distribution).split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0


def _repeats() -> bool:
    """Tell whether a run comes out again, also among others."""
    load = perf_bench_numa(p=2, t=1, P=8)
    alone = simulate("guest-2x2", load, "3.17", seconds=3, seeds=[1], step_us=4000)
    among = simulate("guest-2x2", load, "3.17", seconds=3, seeds=[0, 1], step_us=4000).isel(run=[1])
    same = all(bool((alone[name] == among[name]).all()) for name in ("numa_hint_faults", "pages", "task_node"))
    return same and int(alone.numa_hint_faults.max()) > 0


# ------------------------------------------------------------------------------------ widgets
def predict_home() -> Predict:
    """Ask how long it takes until every process is on one node."""
    return Predict(
        "4 processes of 4 threads, 4 nodes of 4 CPUs. All memory is on node 0 at first. After how many seconds is "
        "every process, with kernel 3.17, on one node?",
        0,
        30,
        unit="s",
    )


def home_words(results: Mapping[str, Any]) -> str:
    """Say when every process was first on one node, one line a kernel."""
    return "\n".join(f"{name}: every process on one node {_when(home_time(ds))}" for name, ds in results.items())


def home_time(ds: Any) -> float:
    """Return when every process of the first run was first on one node, s; nan: not within the run."""
    return float(ds.numa.convergence_time().values[0])


def _when(seconds: float) -> str:
    return f"not within {SECONDS:g} s" if seconds != seconds else f"after {seconds:.1f} s"


def explorer() -> Explorer:
    """Return the first explorer: how many processes and threads, which kernels."""
    knobs = [
        steps("p", "processes", [1, 2, 4, 8], P),
        slider("t", "threads of each", 1, 8, T),
        slider("seconds", "time to simulate", 4, 30, SECONDS, step=2, unit="s"),
        choice("left", "kernel on the left", RELEASES, KERNELS[0]),
        choice("right", "kernel on the right", RELEASES, KERNELS[1]),
    ]
    presets: dict[str, Mapping[str, Any]] = {
        "4 x 4": {},
        "too many threads": {"t": 8},
        "2014 and today": {"left": "3.17", "right": "6.18"},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Setup]:
        return {
            values[side]: setup(values[side], values["p"], values["t"], float(values["seconds"]))
            for side in ("left", "right")
        }

    def draw(results: Any, values: Mapping[str, Any]) -> plots.Picture:
        one = next(iter(results.values()))
        picture = plots.astray if one.sizes["run"] > 1 else plots.nodes
        return picture(results, seconds=values["seconds"])

    return Explorer("Your first explorer", knobs, sides, draw, presets=presets, band=4)


# ------------------------------------------------------------------------------------ an exercise
def exercise_read() -> Exercise:
    """Return problems on reading the figure of the explorer."""
    return Exercise("Read the figure", _read_problem)


def _read_problem(seed: int) -> Problem:
    """Ask for the moment a process gets home, for the seed."""
    seconds = home_time(setup(KERNELS[1]).run([seed]))
    never = seconds != seconds
    return Problem(
        f"Press reset and set the explorer's seed to {seed}. When is every process on one node with kernel "
        f"{KERNELS[1]}?\n"
        f"(In seconds, to the nearest one; {SECONDS:g} if it does not happen within {SECONDS:g} s.)",
        SECONDS if never else round(seconds),
        lambda given: (
            "Each process is a block of 4 rows. Look for the moment from which on every block has one colour, or press "
            "play and watch the sentence: it counts the processes that are on one node."
        ),
        "It does not happen." if never else f"The exact time is {seconds:.1f} s.",
        tolerance=0.6,
        unit="s",
    )
