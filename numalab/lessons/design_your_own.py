"""The lesson "Design your own" (``notebooks/80_design_your_own.ipynb``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from numalab import describe, plots, welch
from numalab.compare import Against, compare
from numalab.kernel import Kernel
from numalab.kernel import table as kernel_table
from numalab.machine import Machine
from numalab.plots.errorbars import Bars, Response, Versus
from numalab.plots.picture import Floats
from numalab.records import DescriptionError
from numalab.sides import from_runs, quantities, split
from numalab.text import table
from numalab.widgets import (
    Computation,
    Exercise,
    Explorer,
    Predict,
    Printed,
    Problem,
    Setup,
    Table,
    choice,
    slider,
    steps,
)
from numalab.workload import Access, Processes, Region, Workload

#: The kernel that is changed, how long runs are, and their step.
KERNEL, SECONDS, STEP_US = "6.12", 20.0, 4000
#: Sides of the comparison and the runs of each.
AS_IS, CHANGED, RUNS = "6.12 as it is", "without early moves", 10
#: What a sweep goes through, MB.
SIZES = (32, 64, 128, 256)
TOML = """\
[machine.uniform]
name = "my desk"
nodes = 2
cpus_per_node = 4
memory_mb = 2048

[workload]
name = "my service"

[[workload.processes]]
name = "worker"
count = 4
threads = 2

[[workload.regions]]
name = "heap"
size_mb = 64
first_touch = 0

[[workload.accesses]]
region = "heap"
rate_mbps = 300
write = 0.5

[kernel]
name = "6.12"

[run]
seconds = 20
step_ms = 4
"""


def my_machine(nodes: int = 2, cpus: int = 4) -> Machine:
    """Return the lesson's machine."""
    return Machine.uniform(nodes, cpus, 2048, name="my desk")


def my_workload(count: int = 4, threads: int = 2, size_mb: int = 64) -> Workload:
    """Return the lesson's load: workers with a heap each, all of it touched first on node 0."""
    return Workload(
        "my service",
        (Processes("worker", count=count, threads=threads),),
        (Region("heap", size_mb, first_touch=0),),
        (Access("heap", rate_mbps=300, write=0.5),),
    )


def described(text: str = TOML) -> describe.Description:
    """Read a description."""
    return describe.loads(text, "mine.toml")


def refused(wrong: str, right: str) -> str:
    """Say what numalab says of the description with one word misspelt."""
    try:
        described(TOML.replace(right, wrong, 1))
    except DescriptionError as error:
        return str(error)
    return "accepted"


def switches(word: str) -> Table:
    """Return the switches that have a word in their name or explanation, and their value in the lesson's kernel."""
    own = Kernel(KERNEL)
    cells = [
        [name, str(own.switches[name]), one.what]
        for name, one in kernel_table().switches.items()
        if word in name or word in one.what
    ]
    return Table(["switch", KERNEL, "what it does"], cells)


# ------------------------------------------------------------------------------------ the design explorer
@dataclass(frozen=True)
class Own(Setup):
    """A simulation of the lesson's machine and load, with the Python that builds both."""

    design: Mapping[str, int] | None = None

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that simulates the same."""
        d = self.design or {}
        kernel = f"Kernel({self.kernel!r})"
        if self.switches:
            kernel += f".replace({', '.join(f'{name}={value!r}' for name, value in self.switches.items())})"
        return (
            "from numalab import Kernel, simulate\n"
            "from numalab.machine import Machine\n"
            "from numalab.workload import Access, Processes, Region, Workload\n\n"
            f'machine = Machine.uniform({d["nodes"]}, {d["cpus"]}, 2048, name="my desk")\n'
            "workload = Workload(\n"
            '    "my service",\n'
            f'    (Processes("worker", count={d["count"]}, threads={d["threads"]}),),\n'
            f'    (Region("heap", {d["size_mb"]}, first_touch=0),),\n'
            '    (Access("heap", rate_mbps=300, write=0.5),),\n'
            ")\n"
            f"ds = simulate(\n    machine, workload, {kernel},\n"
            f"    seconds={self.seconds}, seeds={list(seeds)}, step_us={STEP_US},\n)"
        )


def own(kernel: str, design: Mapping[str, int], seconds: float = SECONDS, **switched: Any) -> Own:
    """Describe a run of the lesson's load.

    Parameters
    ----------
    kernel : str
    design : mapping
        nodes, cpus, count, threads, size_mb.
    seconds : float
    **switched
        Switches of the kernel.
    """
    host = my_machine(design["nodes"], design["cpus"])
    load = my_workload(design["count"], design["threads"], design["size_mb"])
    return Own(host, load, kernel, seconds, switches=switched, options={"step_us": STEP_US}, design=design)


DESIGN = {"nodes": 2, "cpus": 4, "count": 4, "threads": 2, "size_mb": 64}


def explorer() -> Explorer:
    """Return the explorer: an own machine and load on two kernels."""
    releases = list(kernel_table().releases)
    knobs = [
        slider("nodes", "nodes", 1, 8, 2),
        slider("cpus", "CPUs of each", 1, 8, 4),
        slider("count", "processes", 1, 12, 4),
        slider("threads", "threads of each", 1, 8, 2),
        steps("size_mb", "memory of each process", [16, 32, 64, 128, 256], 64, unit="MB"),
        slider("seconds", "time to simulate", 4, 40, 12, step=2, unit="s"),
        choice("left", "kernel on the left", releases, "3.17"),
        choice("right", "kernel on the right", releases, KERNEL),
    ]
    presets: dict[str, Mapping[str, Any]] = {
        "my service": {},
        "one process": {"count": 1, "threads": 8},
        "a thread too many": {"count": 3, "threads": 3},
        "eight nodes": {"nodes": 8, "cpus": 2, "count": 8},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Own]:
        design = {name: values[name] for name in DESIGN}
        kernels = {f"left: {values['left']}": values["left"], f"right: {values['right']}": values["right"]}
        return {name: own(kernel, design, float(values["seconds"])) for name, kernel in kernels.items()}

    def draw(runs: Any, values: Mapping[str, Any]) -> plots.Picture:
        return plots.astray(runs, seconds=values["seconds"])

    return Explorer("A machine and a load of your own", knobs, sides, draw, presets=presets)


# ------------------------------------------------------------------------------------ sweeps
def quantity_of(ds: xr.Dataset, name: str) -> Floats:
    """Return a quantity of each run, by the names of ``numalab compare``.

    Raises
    ------
    KeyError
        No such quantity in this dataset.
    """
    found = {quantity.name: values for quantity, values in quantities(ds)}
    return np.asarray(found[name], float)


def response(ds: xr.Dataset, by: str, quantity: str) -> Response:
    """Show a quantity against what a sweep varied.

    Parameters
    ----------
    ds : xarray.Dataset
        With several seeds at each value.
    by : str
        A coordinate along ``run``.
    quantity : str
        As ``numalab compare`` names them: ``convergence_s``, ``numa_hint_faults``, ``local_share%``.
    """
    values, varied = quantity_of(ds, quantity), ds[by].values
    groups = {str(one): values[varied == one] for one in np.unique(varied)}
    return Response(groups, by, quantity)


def order(picture: Response) -> str:
    """Say whether the means rise, fall or do neither from one value to the next, in the words of the prediction."""
    means = [float(np.nanmean(values)) for values in picture.groups.values()]
    steps_ = np.diff(means)
    return ORDERS[0] if (steps_ < 0).all() else ORDERS[1] if (steps_ > 0).all() else ORDERS[2]


#: Answers to :func:`predict_order`.
ORDERS = ("the larger, the sooner", "the larger, the later", "neither")


def predict_order() -> Predict:
    """Ask what the size of a scan does to convergence."""
    return Predict(
        "A scan of 32, 64, 128 or 256 MB at a time (each process has 64 MB): when are all processes together?",
        choices=list(ORDERS),
    )


# ------------------------------------------------------------------------------------ comparing
@cache
def variants() -> dict[str, xr.Dataset]:
    """Run both sides of the comparison: the kernel as it is, and with one rule off."""
    return {
        AS_IS: own(KERNEL, DESIGN).run(range(RUNS)),
        CHANGED: own(KERNEL, DESIGN, early_private=False).run(range(RUNS)),
    }


def compared(
    sides: Mapping[str, xr.Dataset], rows: Sequence[str] = ("convergence_s", "numa_*", "local_share%")
) -> Printed:
    """Compare two sets of runs: change, its 95 % interval, p, and the runs it takes to see 5 %.

    Parameters
    ----------
    sides : mapping of str to xarray.Dataset
        Two, the base first.
    rows : sequence of str
        Quantities, with ``*``.
    """
    found = compare([from_runs(name, [ds], []) for name, ds in sides.items()], rows)
    cells = []
    for row in found.rows:
        (base, other), (against,) = row.values, row.against
        if base is None or other is None or against is None:
            continue
        needed = "" if against.runs_needed is None else f"{against.runs_needed:,}"
        means = [f"{side.mean:,.4g}" for side in (base, other)]
        cells.append([row.quantity.name, *means, *_told(against, base.mean), needed])
    head = ["quantity", "before", "after", "change", "95 % of it", "p", "runs for 5 %"]
    before, after = found.names
    return Printed(f"before: {before}; after: {after}\n\n{table(head, cells)}")


def _told(against: Against, base: float) -> list[str]:
    """Return change, interval and p; a star marks what would be rare as noise."""
    star = "*" if against.significant else " "
    change = (
        f"{against.change_percent:+.1f} %{star}"
        if against.change_percent is not None
        else f"{against.difference:+.3g}{star}"
    )
    if against.low is None or against.high is None or not base:
        return [change, "", against.why or f"{against.p:.3f}"]
    ends = " to ".join(f"{100 * end / base:+.1f}" for end in (against.low, against.high))
    assert against.p is not None
    return [change, f"{ends} %", "<0.001" if against.p < 0.0005 else f"{against.p:.3f}"]


def by_value(ds: xr.Dataset) -> dict[str, xr.Dataset]:
    """Part a sweep by what was varied."""
    return dict(split(ds))


def same_against_same(ds: xr.Dataset) -> Printed:
    """Compare runs with runs of the same set-up: the first half of the seeds with the second."""
    half = ds.sizes["run"] // 2
    return compared({"first half": ds.isel(run=slice(half)), "second half": ds.isel(run=slice(half, None))}, ["*"])


def bars(ds: xr.Dataset, quantity: str = "convergence_s") -> Bars:
    """Show the same runs with three kinds of bars."""
    return Bars(quantity_of(ds, quantity), quantity)


def drawn(n: int, quantity: str, draw: int) -> dict[str, Floats]:
    """Draw n runs a side, without putting any back.

    Parameters
    ----------
    n : int
    quantity : str
    draw : int
        Seed of the draw.
    """
    rng = np.random.default_rng(draw)
    chosen = {}
    for name, ds in variants().items():
        values = quantity_of(ds, quantity)
        chosen[name] = values[np.sort(rng.choice(len(values), n, replace=False))]
    return chosen


def how_many() -> Explorer:
    """Return the explorer that shows a comparison with fewer runs than were made."""
    names = {
        "time to convergence": "convergence_s",
        "hint faults": "numa_hint_faults",
        "pages moved": "numa_pages_migrated",
    }
    knobs = [
        slider("n", "runs a side", 2, RUNS, 3),
        slider("draw", "another draw of as many", 0, 40, 0),
        choice("what", "what is compared", names, "convergence_s"),
    ]

    def sides(values: Mapping[str, Any]) -> dict[str, Computation]:
        n, what, number = values["n"], values["what"], values["draw"]
        call = f"lesson.drawn({n}, {what!r}, draw={number})"
        code = f"from numalab.lessons import design_your_own as lesson\n\nds = {call}"
        text = f"{n} of the {RUNS} runs a side made above"
        return {"both": Computation(lambda seeds: drawn(n, what, number), code, text)}

    def draw(results: Mapping[str, Any], values: Mapping[str, Any]) -> plots.Picture:
        every = [quantity_of(ds, values["what"]) for ds in variants().values()]
        top = 1.1 * max(float(np.nanmax(one)) for one in every)
        reach = 3 * max(float(np.nanstd(one)) for one in every) + abs(
            float(np.nanmean(every[0]) - np.nanmean(every[1]))
        )
        return Versus(results["both"], values["what"], top, reach)

    return Explorer("How many runs does it take?", knobs, sides, draw, seeded=False)


# ------------------------------------------------------------------------------------ exercises
def exercise_runs() -> Exercise:
    """Return problems on how many runs one needs."""
    return Exercise("How many runs?", _runs_problem)


def _runs_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    mean = int(rng.choice([10, 20, 50, 100]))
    percent = int(rng.choice([5, 10, 20]))
    deviation = round(mean * float(rng.choice([0.05, 0.1, 0.15, 0.2, 0.3])), 1)
    difference = mean * percent / 100
    answer = welch.runs_needed(deviation, deviation, difference)
    assert answer is not None
    rule = 16 * (deviation / difference) ** 2
    return Problem(
        f"Runs of both kernels scatter with a standard deviation of {deviation:g} s around means near {mean} s.\n"
        f"How many runs a side to see a difference of {percent} % with a chance of 80 % (false alarm 5 %)?\n"
        "(A rule of thumb: 16 (deviation / difference)², and for few runs one or two more.)",
        answer,
        lambda given: (
            f"The difference is {difference:g} s, the deviation {deviation:g} s. Half the difference takes four "
            "times as many runs."
        ),
        f"16 x ({deviation:g} / {difference:g})² = {rule:.1f}; exactly (welch.runs_needed): {answer}.",
        tolerance=max(2.0, 0.15 * answer),
        unit="runs",
    )


NOISE, MORE = "cannot be told from noise", "more than noise"


def exercise_bars() -> Exercise:
    """Return problems on reading error bars."""
    return Exercise("Read the bars", _bars_problem)


def _bars_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([4, 9, 16, 25]))
    kind = str(rng.choice(["standard deviation", "standard error"]))
    base, deviation = 20.0, float(rng.choice([2.0, 4.0, 6.0]))
    # clearly on one side or the other: nobody should have to look up a table
    factor = float(rng.choice([0.3, 0.8, 3.6, 5.0]))
    error = deviation / math.sqrt(n)
    other = base + round(factor * error * math.sqrt(2), 1)
    shown = deviation if kind == "standard deviation" else round(error, 2)
    exact = shown if kind == "standard deviation" else shown * math.sqrt(n)
    found = welch.compare(welch.Sample(base, exact, n), welch.Sample(other, exact, n))
    assert found is not None
    both = math.sqrt(2) * exact / math.sqrt(n)
    return Problem(
        f"Two kernels, {n} runs each. Means: {base:g} s and {other:g} s; bars of ± {shown:g} s on both.\n"
        f'The caption says "bars: {kind}".\nIs the difference more than noise?',
        MORE if found.p < welch.ALPHA else NOISE,
        lambda given: (
            "A standard deviation is about one run; divided by the root of the number of runs it is about the mean."
            if kind == "standard deviation"
            else "A standard error is about the mean already. Two means differ if they are some three of these apart."
        ),
        f"Standard error of each mean {exact / math.sqrt(n):.2f} s, of the difference {both:.2f} s; the difference is "
        f"{(other - base) / both:.1f} of these, p {'below 0.001' if found.p < 0.001 else f'= {found.p:.3f}'}.",
        choices=(MORE, NOISE),
    )
