"""Thread S1, June 2014: why does one last thread never get home?

``perf bench numa mem`` with 160 threads on 4 nodes and 80 CPUs, before and after Rik van Riel's seven patches.
A run has converged when all threads of every process are on one node.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from numalab import __version__, _data, pool, runs
from numalab.kernel import Kernel
from numalab.machine import machine
from numalab.model.params import PARAMETERS
from numalab.patch_threads import NOT_PUBLISHED, Claim, Keep, Replay, convergence_trap
from numalab.readers import perf_bench
from numalab.simulation import simulate
from numalab.text import seconds, table
from numalab.workloads import perf_bench_numa

THREAD = "convergence"
MACHINE = "rik-4n80"
SHAPES = ((8, 20), (4, 40), (16, 10))
#: 80 threads want one node that has room for 40: nothing can bring them together.
CONTROL = (2, 80)
BEFORE, AFTER = "3.16-tip", "3.17"
PATCHES = ("S1#1", "S1#2", "S1#4", "S1#5", "S1#6", "S1#7")
#: Visits of a thread with a CPU of its own. From the mail's trace: the fastest thread ends its fifth loop of
#: 1000 MB at 41.8 s with half a CPU. Convergence hardly depends on it.
RATE_MBPS = 240.0
STEP_US = 4000
SAMPLE_S = 0.25
LIMIT_S = 120.0
DEADLINE_S = 100.0
#: perf sees a convergence one or two loops late; a run goes on for this long.
AFTERGLOW_S = 25.0
#: Share of runs that counts as "very rare".
VERY_RARE = 0.05
FITTED = "balancer_sigma was fitted to these words"


def published() -> dict[str, Any]:
    """Return the figures of the mail, as in ``data/published/convergence.toml``."""
    return tomllib.loads(_data.read_text("published", "convergence.toml"))


@dataclass(frozen=True)
class Case:
    """One kernel with one shape of the benchmark, and parameters that differ from their defaults."""

    label: str
    shape: tuple[int, int]
    kernel: Kernel
    parameters: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A name for files."""
        words = [self.label, f"p{self.shape[0]}t{self.shape[1]}", *(f"{k}{v}" for k, v in self.parameters.items())]
        return "-".join(words).replace(" ", "_").replace("#", "")


def cases(full: bool) -> list[Case]:
    """Return what a replay runs: the main kernels, or also each patch alone and in order, and the balancer's error."""
    main = [Case(name, shape, Kernel(name)) for shape in SHAPES for name in (BEFORE, AFTER)]
    control = [Case(AFTER, CONTROL, Kernel(AFTER))]
    if not full:
        return main + control
    more = [Case("3.16", SHAPES[0], Kernel("3.16"))]
    for shape in SHAPES:
        more += [Case(f"{BEFORE}+{patch}", shape, Kernel(BEFORE).patched(patch)) for patch in PATCHES]
        more += [
            Case(f"{BEFORE}+{PATCHES[0]}..{PATCHES[n]}", shape, Kernel(BEFORE).patched(*PATCHES[: n + 1]))
            for n in range(1, len(PATCHES) - 1)
        ]
        more.append(Case(f"{BEFORE}+S1#2+S1#5", shape, Kernel(BEFORE).patched("S1#2", "S1#5")))
        more += [
            Case(name, shape, Kernel(name), {"balancer_sigma": sigma}) for name in (BEFORE, AFTER) for sigma in (0, 150)
        ]
    later = [Case(name, SHAPES[0], Kernel(name)) for name in ("3.19", "4.15", "4.19", "6.1", "6.12")]
    return main + control + more + later


def run_case(case: Case, seeds: Sequence[int]) -> xr.Dataset:
    """Simulate one case and add what perf would have printed."""
    p, t = case.shape
    parameters: dict[str, Any] = {"step_us": STEP_US, **case.parameters}
    ds = simulate(
        machine(MACHINE),
        perf_bench_numa(p, t, P=1000, rate_mbps=RATE_MBPS),
        case.kernel,
        seconds=LIMIT_S,
        seeds=seeds,
        every={"task_node": SAMPLE_S, "task_work_pages": SAMPLE_S, "free_pages": None, "numa_group_id": None},
        stop_after_converged_s=AFTERGLOW_S,
        **parameters,
    )
    return add_perf_view(ds, loop_mb=1000)


def add_perf_view(ds: xr.Dataset, loop_mb: float) -> xr.Dataset:
    """Add the progress records ``perf bench numa mem -m -c`` would have printed of each run.

    perf knows a thread's node from the end of its last loop only, and looks when its last thread ends one.

    Parameters
    ----------
    ds : xarray.Dataset
        With ``task_node`` and ``task_work_pages`` on one time axis.
    loop_mb : float
        Memory a thread visits in one loop.
    """
    records = [_records(ds.isel(run=run), loop_mb * 256) for run in range(ds.sizes["run"])]
    variables: dict[str, Any] = dict(perf_bench.tabulate(records))
    per_run = np.ones(len(records), np.int64)
    first = [next((r.flag_s for r in each if r.flag == "converged"), math.nan) for each in records]
    variables |= {
        "perf_converged_s": np.array([math.nan if s is None else s for s in first]),
        "perf_tasks": ds.sizes["task"] * per_run,
        "perf_nodes": ds.sizes["node"] * per_run,
        "perf_cpus": ds.sizes["cpu"] * per_run,
        "perf_global_mb": 0 * per_run,
        "perf_process_mb": round(loop_mb) * per_run,
        "perf_thread_mb": 0 * per_run,
        "perf_loops": -per_run,
    }
    return runs.extend(ds, variables)


def _records(run: xr.Dataset, loop_pages: float) -> list[perf_bench.Progress]:
    time = run[run.task_node.dims[0]].values
    loops = (run.task_work_pages.values // loop_pages).astype(np.int64)
    node, process = run.task_node.values, run.task_process.values
    seen = np.full(node.shape[1], -1)
    records: list[perf_bench.Progress] = []
    converged = False
    for k in range(1, len(time)):
        ended = loops[k] > loops[k - 1]
        seen[ended] = node[k, ended]
        if ended[-1]:
            record = perf_bench.observe(
                float(time[k]), seen, process, loops[k] - 1, nodes=run.node.values.tolist(), converged_before=converged
            )
            converged = record.flag == "converged" or (converged and record.flag is None)
            records.append(record)
    return records


# ------------------------------------------------------------------------------------ the replay
@dataclass(frozen=True)
class Times:
    """When the runs of a case converged, seconds, infinity if not within the limit; (run,) each.

    Attributes
    ----------
    true : every process first on one node
    perf : as ``perf bench numa mem`` reports it
    """

    case: Case
    true: NDArray[np.float64]
    perf: NDArray[np.float64]

    @property
    def is_main(self) -> bool:
        """Whether this is one of the main kernels on one of the mail's shapes, with nothing changed."""
        return self.case.label in (BEFORE, AFTER) and self.case.shape in SHAPES and not self.case.parameters


def replay(*, seeds: int = 12, full: bool = False, progress: bool = False, keep: Keep | None = None) -> Replay:
    """Run the cases, print them beside the mail's words, and walk through the stuck state of its trace.

    Ctrl-C ends it early with the cases that are finished.

    Raises
    ------
    KeyboardInterrupt
        Before any case was finished.
    """
    todo = cases(full)
    main = {case.name for case in cases(full=False)}
    times: dict[str, Times] = {}
    outcome = Replay(THREAD, keep=keep)
    try:
        run = partial(run_case, seeds=range(seeds))
        for case, ds in pool.results(run, todo, name=attrgetter("name"), progress=progress):
            times[case.name] = Times(case, true_times(ds), perf_times(ds))
            if case.name in main:
                outcome.add(case.name, ds)
    except KeyboardInterrupt:
        if not times:
            raise
        outcome.interrupted = True
    ordered = [times[case.name] for case in todo if case.name in times]
    outcome.claims = claims(ordered)
    outcome.results = stored_form(ordered, range(seeds))
    parts = [_head(), times_table(ordered), claims_table(outcome.claims)]
    if outcome.interrupted:
        parts.insert(0, f"Interrupted: {len(times)} of {len(todo)} cases are finished.")
    else:
        parts += [_example(outcome.datasets[todo[0].name]), _trap()]
    outcome.text = "\n\n".join(parts)
    outcome.figures = {"times": plot_times(ordered)}
    return outcome


def replay_stored() -> Replay:
    """Print the results of the full replay that numalab ships, without running anything."""
    facts = json.loads(_data.read_text("results", "convergence.json"))
    times = stored()
    how = (
        f"Stored results of `numalab replay convergence --full`: {len(facts['seeds'])} seeds, "
        f"{len(times)} of its {len(cases(full=True))} cases, step {facts['step_us']} us, "
        f"numalab {facts['numalab']} at {facts['revision']}."
    )
    outcome = Replay(THREAD, claims=claims(times), results=facts | {"fitted": fitted()})
    outcome.text = "\n\n".join([_head(), how, times_table(times), claims_table(outcome.claims)])
    outcome.figures = {"times": plot_times(times)}
    return outcome


def stored_form(results: Sequence[Times], seeds: range) -> dict[str, Any]:
    """Return results as they are stored: plain numbers, None for never, with their provenance."""

    def plain(times: NDArray[np.float64]) -> list[float | None]:
        return [round(float(t), 3) if math.isfinite(t) else None for t in times]

    return {
        "thread": THREAD,
        "numalab": __version__,
        "revision": runs.revision(),
        "machine": MACHINE,
        "limit_s": LIMIT_S,
        "step_us": STEP_US,
        "rate_mbps": RATE_MBPS,
        "seeds": list(seeds),
        "fitted": fitted(),
        "cases": [
            {
                "label": one.case.label,
                "shape": list(one.case.shape),
                "kernel": {"name": one.case.kernel.name, "set": one.case.kernel.overrides},
                "parameters": one.case.parameters,
                "true_s": plain(one.true),
                "perf_s": plain(one.perf),
            }
            for one in results
        ],
    }


def fitted() -> dict[str, Any]:
    """Return the constants that were fitted, and to what."""
    sigma = PARAMETERS["balancer_sigma"]
    return {"balancer_sigma": {"value": sigma.default, "to": "the mail's words about the kernel before the series"}}


def stored() -> list[Times]:
    """Return the results of the full replay that numalab ships (``data/results/convergence.json``)."""

    def numbers(values: list[float | None]) -> NDArray[np.float64]:
        return np.array([math.inf if value is None else value for value in values])

    return [
        Times(
            Case(
                one["label"],
                tuple(one["shape"]),
                Kernel(one["kernel"]["name"], **one["kernel"]["set"]),
                one["parameters"],
            ),
            numbers(one["true_s"]),
            numbers(one["perf_s"]),
        )
        for one in json.loads(_data.read_text("results", "convergence.json"))["cases"]
    ]


def true_times(ds: xr.Dataset) -> NDArray[np.float64]:
    """Return when each run first had every process on one node, infinity if never: (run,) s."""
    return _never(ds.numa.convergence_time(first=True).values)


def perf_times(ds: xr.Dataset) -> NDArray[np.float64]:
    """Return when perf would have said so: (run,) s."""
    return _never(ds.perf_converged_s.values)


def _never(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(values), math.inf, values)


def quantile(times: NDArray[np.float64], q: float) -> float:
    """Return a quantile of times of which some are infinite: the sample at its upper rank."""
    return float(np.sort(times)[min(len(times) - 1, math.ceil(q * len(times)) - 1 if q else 0)])


def _head() -> str:
    mail = published()
    return (
        f"{mail['thread']['subject']}\n"
        f"{mail['thread']['author']}, {mail['thread']['date']}, <{mail['thread']['message_id']}>\n\n"
        "The mail: before the series, convergence sometimes never came, or came minutes late; after it,\n"
        "generally in 10-20 s, a few spikes of 30-40 s, very rarely minutes."
    )


def times_table(results: Sequence[Times]) -> str:
    """Print convergence times, one case a row."""
    rows = []
    for one in results:
        label = one.case.label + "".join(f" {name}={value}" for name, value in one.case.parameters.items())
        cells = [label, f"{one.case.shape[0]}x{one.case.shape[1]}", str(len(one.true))]
        for times in (one.true, one.perf):
            share = f"{np.mean(times <= DEADLINE_S):.0%}"
            cells += [share, seconds(quantile(times, 0.5)), seconds(quantile(times, 0.9))]
        rows.append(cells)
    head = ["kernel", "p x t", "runs", "by 100 s", "median", "p90", "perf: by 100 s", "median", "p90"]
    note = (
        f"Seconds until every process is on one node; 'never' is not within {LIMIT_S:.0f} s. Right: as perf reports it."
    )
    return table(head, rows) + "\n" + note


def claims(results: Sequence[Times]) -> list[Claim]:
    """Compare the main cases with the mail's words."""
    limits = {claim["id"]: claim.get("time_s", claim.get("delay_s")) for claim in published()["claims"]}
    main = {
        kernel: [one.true for one in results if one.is_main and one.case.label == kernel] for kernel in (BEFORE, AFTER)
    }
    answer: list[Claim] = []
    if main[AFTER]:
        answer += _claims_after(np.concatenate(main[AFTER]), limits)
    if main[BEFORE]:
        answer += _claims_before(np.concatenate(main[BEFORE]))
    example = [one.perf for one in results if one.is_main and one.case.label == BEFORE and one.case.shape == SHAPES[0]]
    if example:
        shown = published()["trace"]["converged_s"]
        what = f"before: share of runs perf calls converged by {shown} s"
        answer.append(_claim(what, f"one run, {shown} s", np.mean(example[0] <= shown), note="one run proves nothing"))
    for one in results:
        if one.case.shape == CONTROL:
            what, words = "control: share converged of 2 x 80 threads", "cannot: 80 threads, 40 places"
            share = np.mean(np.isfinite(one.true))
            holds = bool(share == 0)
            answer.append(_claim(what, words, share, holds=holds, note=NOT_PUBLISHED, tolerance="exactly 0"))
    return answer


def _claims_after(times: NDArray[np.float64], limits: dict[str, Any]) -> list[Claim]:
    low, high = limits["after-typical"]
    spike = limits["after-spikes"][1]
    median, p90, slow = quantile(times, 0.5), quantile(times, 0.9), float(np.mean(times > 60))
    typical = f"generally {low:.0f}-{high:.0f} s"
    return [
        _claim(
            "after: median time [s]",
            typical,
            median,
            times,
            holds=low <= median <= high,
            tolerance=f"median in {low:.0f}-{high:.0f}",
        ),
        _claim(
            "after: 90th percentile [s]",
            f"a few spikes up to {spike:.0f} s",
            p90,
            holds=p90 <= spike,
            tolerance=f"at most {spike:.0f}",
        ),
        _claim(
            "after: share later than 60 s",
            "very rare: minutes",
            slow,
            holds=slow <= VERY_RARE,
            tolerance=f"at most {VERY_RARE}",
        ),
    ]


def _claims_before(times: NDArray[np.float64]) -> list[Claim]:
    never, words = np.mean(times > LIMIT_S), "sometimes never, or many minutes"
    return [
        _claim(f"before: share not within {LIMIT_S:.0f} s", words, never, note=FITTED),
        _claim("before: median time [s]", "(not given)", quantile(times, 0.5), times, note=FITTED),
    ]


def _claim(
    what: str,
    words: str,
    value: float | np.floating[Any],
    spread: NDArray[np.float64] | None = None,
    holds: bool | None = None,
    note: str = "",
    tolerance: str = "",
) -> Claim:
    low, high = (None, None) if spread is None else (quantile(spread, 0.05), quantile(spread, 0.95))
    source = f"<{published()['thread']['message_id']}>"
    return Claim(THREAD, what, source, words, float(value), low, high, None, holds, note, tolerance)


def claims_table(answer: Sequence[Claim]) -> str:
    """Print claims as a table."""

    def number(value: float | None) -> str:
        return (
            ""
            if value is None
            else "never"
            if math.isinf(value)
            else f"{value:.2f}"
            if abs(value) < 10
            else f"{value:.1f}"
        )

    word = {True: "yes", False: "NO", None: "-"}
    rows = [
        [
            c.claim,
            c.published,
            number(c.model),
            f"{number(c.low)}-{number(c.high)}" if c.low is not None else "",
            word[c.holds],
            c.note,
        ]
        for c in answer
    ]
    return table(["claim", "published", "model", "5-95 %", "holds", "note"], rows, left=2)


def _trap() -> str:
    p, t = SHAPES[0]
    workload = perf_bench_numa(p, t, P=1000, rate_mbps=RATE_MBPS)
    return convergence_trap.tell(machine(MACHINE), workload, BEFORE, seeds=list(range(4)))


def _example(ds: xr.Dataset) -> str:
    """Print the mail's trace and the model's run that perf calls converged last, in perf's own format."""
    mail = "The mail's run:\n" + _data.read_text("published", published()["trace"]["file"]).strip("\n")
    times = perf_times(ds)
    late = int(np.argmax(np.where(np.isfinite(times), times, -1)))
    one = perf_bench.format_progress(ds.isel(run=[late])).strip("\n")
    return f"{mail}\n\nA run of the model (kernel {BEFORE}, seed {int(ds.seed[late])}):\n{one}"


def plot_times(results: Sequence[Times]) -> Figure:
    """Draw the share of runs converged against time, before and after the series, one panel per shape."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    axes = figure.subplots(1, len(SHAPES), sharey=True)
    style = {BEFORE: ("#D55E00", "--", "before the series"), AFTER: ("#0072B2", "-", "after it (3.17)")}
    typical = next(claim["time_s"] for claim in published()["claims"] if claim["id"] == "after-typical")
    for ax, shape in zip(axes, SHAPES, strict=True):
        ax.axvspan(*typical, color="#999999", alpha=0.25, lw=0, label="the mail: generally, after")
        for one in results:
            if one.is_main and one.case.shape == shape:
                colour, line, label = style[one.case.label]
                times = np.sort(one.true[np.isfinite(one.true)])
                x = np.concatenate([[0], times, [LIMIT_S]])
                share = np.concatenate([np.arange(len(times) + 1), [len(times)]]) / len(one.true)
                ax.step(x, share, where="post", color=colour, ls=line, lw=2, label=label)
        ax.set(title=f"{shape[0]} processes x {shape[1]} threads", xlabel="time [s]", xlim=(0, LIMIT_S), ylim=(0, 1.02))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("share of runs converged")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
