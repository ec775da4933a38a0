"""The lesson on how it works (``notebooks/01_how_numa_balancing_works.ipynb``): a machine seen page by page."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from numalab import plots
from numalab.kernel import Kernel
from numalab.lessons.page_watch import Watch
from numalab.plots.pagemap import LETTERS
from numalab.text import table
from numalab.widgets import Exercise, Explorer, Predict, Printed, Problem, Setup, choice, slider, steps
from numalab.widgets.times import until_time

MACHINE, KERNEL = "guest-2x2", "3.17"
#: MB of a huge page, which is a page of this lesson.
PAGE_MB = 2
PAGES = 24
#: Pages a thread visits each second, and MB scanned at a time: slow enough to be watched.
VISITS, SCAN_MB = 100, 8
PERIOD_MS = 1000
#: When the first scene's thread is bound to node 1, s.
MOVED_S = 4.0
MOVED, SWAPPED, SHARED = "a thread is moved", "two processes", "own and shared pages"
_SECONDS = {MOVED: 12.0, SWAPPED: 14.0, SHARED: 14.0}
#: Pages of a small MB rate: a visit is counted as one page of 4 kB.
_MB_PER_VISIT = 4 / 1024


def scene(
    name: str, *, kernel: str = KERNEL, scan_mb: int = SCAN_MB, period_ms: int = PERIOD_MS, visits: int = VISITS,
    own: int = PAGES // 3,
) -> Watch:  # fmt: skip
    """Describe one of the scenes.

    Parameters
    ----------
    name : str
        :data:`MOVED`: one thread, bound to node 0 and from 4 s on to node 1. :data:`SWAPPED`: two processes of two
        threads. :data:`SHARED`: one process of two threads, each with pages of its own and some in common.
    kernel : str
    scan_mb, period_ms : int
        Memory of a scan window, and the shortest time between two looks at all memory.
    visits : int
        Pages each thread visits per second.
    own : int
        Of :data:`SHARED`: pages each thread has alone.
    """
    rate = {"rate_mbps": visits * _MB_PER_VISIT, "pages": "huge"}
    size = PAGES * PAGE_MB
    loads: dict[str, tuple[str, dict[str, Any]]] = {
        MOVED: ("follow", {"size_mb": size, "at_ms": MOVED_S * 1000, "order": "random"}),
        SWAPPED: ("perf_bench_numa", {"p": 2, "t": 2, "P": size // 2}),
        SHARED: ("perf_bench_numa", {"p": 1, "t": 2, "P": size - 2 * own * PAGE_MB, "T": own * PAGE_MB}),
    }
    load, arguments = loads[name]
    switches = {"scan_size_mb": scan_mb, "scan_period_min_ms": period_ms}
    options = {"step_us": 4000}
    return Watch(Setup(MACHINE, load, kernel, _SECONDS[name], arguments | rate, switches=switches, options=options))


def look(watch: Watch, seconds: float, seed: int = 0) -> plots.PageMap:
    """Return the picture of a scene at some time."""
    return plots.watched(until_time(watch.run(seed), seconds), seconds=watch.seconds)


# ------------------------------------------------------------------------------------ the rules, told from the run
def story(watch: Watch, page: int, seed: int = 0) -> Printed:
    """Tell what happens to one page: when it is trapped, who faults, whether it moves and by which rule."""
    return Printed(table(["time [s]", "page on", "what happens"], _story(watch.run(seed), page), right=(0,)))


def _story(seen: xr.Dataset, page: int) -> list[list[str]]:
    """Compare each look with the one before."""
    one = seen.isel(page=page)
    node, trapped = one.page_node.values, one.page_trapped.values
    user, user_node = one.page_user.values, one.page_user_node.values
    alone = seen.sizes["task"] == 1
    rows = []
    for k in range(1, len(node)):
        when = f"{float(seen.time[k]):.2f}"
        changed = node[k] != node[k - 1] or user[k] != user[k - 1] or user_node[k] != user_node[k - 1]
        if changed or (trapped[k - 1] and not trapped[k]):
            # later kernels do not note who faults on a page that is local: with one thread it is known all the same
            who, here = (0, seen.task_node.values[k, 0]) if alone else (user[k], user_node[k])
            what = fault_words(LETTERS[who], int(user_node[k - 1]), int(node[k - 1]), int(here), int(node[k]))
            rows.append([when, f"node {node[k]}", what])
        if trapped[k] and (changed or not trapped[k - 1]):
            rows.append([when, f"node {node[k]}", "the scanner traps it"])
    return rows


def fault_words(who: str, last: int, source: int, here: int, target: int) -> str:
    """Say what a hint fault did to a page.

    Parameters
    ----------
    who : str
        The thread's letter.
    last : int
        Node of the last fault before, -1: none.
    source, target : int
        Node of the page before and after.
    here : int
        Node of the faulting thread.
    """
    begin = f"{who} faults on node {here}: "
    if source == here:
        return begin + "the page is here already, it stays"
    if target == source:
        again = "the fault before came from another node" if last != here else "its group is not at home here"
        return begin + f"{again}, it stays"
    if last < 0:
        return begin + "nobody was seen here before, it moves"
    if last == here:
        return begin + "the second fault in a row from here, it moves"
    return begin + "the thread is young, it moves at once"


def placements(watch: Watch, task: int = 0, seed: int = 0) -> Printed:
    """Print every placement of a thread: the averages that decide, the node it prefers then, its scan period."""
    return Printed(
        table(
            ["time [s]", "runs on", "new: node 0, 1", "average: node 0, 1", "prefers", "scans every [ms]"],
            [
                [
                    f"{row['time']:.2f}", f"node {row['node']}", _pair(row["new"]), _pair(row["average"]),
                    f"node {row['prefers']}", f"{row['period']}",
                ]
                for row in placement_rows(watch.run(seed), task)
            ],
            right=(0, 5),
        )
    )  # fmt: skip


def placement_rows(seen: xr.Dataset, task: int) -> list[dict[str, Any]]:
    """Return what each placement of a thread began with and came to; pages.

    New faults are what the rule added to half of the average before.
    """
    one = seen.isel(task=task)
    faults, node = one.faults.values, one.task_node.values
    return [
        {
            "time": float(seen.time[k]),
            "node": int(node[k]),
            "new": faults[k] - faults[k - 1] / 2,
            "average": faults[k],
            "prefers": int(one.preferred_nid[k]),
            "period": int(one.scan_period_ms[k]),
        }
        for k in np.flatnonzero((np.diff(faults, axis=0) != 0).any(axis=1)) + 1
    ]


def journeys(watch: Watch, seed: int = 0) -> Printed:
    """Print when threads changed their node, and what they preferred then."""
    seen = watch.run(seed)
    node = seen.task_node.values
    rows = []
    for k, task in zip(*np.nonzero(np.diff(node, axis=0)), strict=True):
        if node[k, task] >= 0:
            average = seen.faults.values[k, task]
            rows.append(
                [
                    f"{float(seen.time[k + 1]):.2f}", LETTERS[task], f"{node[k, task]} to {node[k + 1, task]}",
                    _pair(average), f"node {int(seen.preferred_nid[k + 1, task])}",
                ]
            )  # fmt: skip
    return Printed(table(["time [s]", "thread", "node", "its faults: node 0, 1", "prefers"], rows, right=(0,)))


def _pair(pages: Any) -> str:
    return ", ".join(f"{round(float(one), 1):g}" for one in pages)


def windows(scan_mb: int, period_ms: int = PERIOD_MS, size_mb: int = PAGES * PAGE_MB) -> tuple[int, int]:
    """Return how many windows a process's memory has, and the shortest time from one to the next, ms."""
    switches = Kernel(KERNEL).switches
    count = max(1, -(-size_mb // scan_mb))
    fastest = int(switches["max_scan_window_mbps"]) // scan_mb
    floor = 1000 // fastest if fastest else 1000
    return count, max(floor, period_ms // count)


def windows_words(*sizes_mb: int) -> Printed:
    """Print the windows of this lesson's process for some scan sizes."""
    rows = [[f"{one} MB", f"{one // PAGE_MB}", str(windows(one)[0]), f"{windows(one)[1]} ms"] for one in sizes_mb]
    return Printed(table(["scan size", "pages a window", "windows", "shortest period"], rows, right=(0, 1, 2, 3)))


def settled(watch: Watch, seed: int = 0) -> str:
    """Say when the last page moved, and how many moved in all."""
    seen = watch.run(seed)
    moved = np.flatnonzero((np.diff(seen.page_node.values, axis=0) != 0).any(axis=1))
    count = int((np.diff(seen.page_node.values, axis=0) != 0).sum())
    last = f"the last one at {float(seen.time[moved[-1] + 1]):.2f} s" if moved.size else "none"
    return f"{count} moves of pages, {last}; {int(seen.numa_hint_faults[-1])} hint faults"


def moves_by_area(watch: Watch, seed: int = 0) -> Printed:
    """Print how often pages moved after the first time, by who touches them."""
    seen = watch.run(seed)
    count = (np.diff(seen.page_node.values, axis=0) != 0).sum(axis=0)
    rows = []
    for name in dict.fromkeys(seen.page_of.values.tolist()):
        some = seen.page_of.values == name
        on = [int((seen.page_node.values[-1][some] == n).sum()) for n in range(seen.sizes["node"])]
        rows.append([name, str(int(some.sum())), str(int(count[some].sum())), ", ".join(map(str, on))])
    return Printed(table(["pages", "number", "moves in all", "at the end on node 0, 1"], rows, right=(1, 2)))


# ------------------------------------------------------------------------------------ widgets
def predict_fault() -> Predict:
    """Ask what the first fault from the new node does."""
    return Predict(
        "The thread was on node 0 and has faulted there on all of its pages. Now it runs on node 1 and faults on a "
        "page on node 0 for the first time. Does the kernel move the page to node 1?",
        choices=ANSWERS,
    )


ANSWERS = ("yes, at once", "not yet: at the second fault from node 1", "only when all pages have faulted")


def explorer() -> Explorer:
    """Return the explorer: a scene, step by step, and the scanner's two numbers."""
    knobs = [
        choice("scene", "scene", [MOVED, SWAPPED, SHARED], MOVED),
        steps("scan_mb", "scan size", [2, 4, 8, 16, 32, 64], SCAN_MB, unit="MB", help="Kernel's default: 256 MB"),
        steps(
            "period_ms", "shortest scan period", [250, 500, 1000, 2000, 4000], PERIOD_MS, unit="ms",
            help="From one look at all memory to the next; the kernel's default is 1000 ms",
        ),
        slider("visits", "visits of each thread", 20, 300, VISITS, step=20, unit="pages/s"),
    ]  # fmt: skip
    presets: dict[str, Mapping[str, Any]] = {
        "one page at a time": {"scan_mb": 2},
        "everything at once": {"scan_mb": 64},
    }

    def sides(values: Mapping[str, Any]) -> dict[str, Watch]:
        given = {name: value for name, value in values.items() if name != "scene"}
        return {values["scene"]: scene(values["scene"], **given)}

    def draw(runs: Any, values: Mapping[str, Any]) -> plots.PageMap:
        (seen,) = runs.values()
        return plots.watched(seen, seconds=_SECONDS[values["scene"]])

    return Explorer("Page by page", knobs, sides, draw, presets=presets, band=0)


def sharing_explorer() -> Explorer:
    """Return the explorer of private and shared pages."""
    knobs = [
        slider("own", "pages of each thread alone", 0, PAGES // 2, PAGES // 3),
        choice("kernel", "kernel", ["3.17", "6.18"], KERNEL),
    ]

    def sides(values: Mapping[str, Any]) -> dict[str, Watch]:
        return {SHARED: scene(SHARED, **values)}

    def draw(runs: Any, values: Mapping[str, Any]) -> plots.PageMap:
        (seen,) = runs.values()
        return plots.watched(seen, seconds=_SECONDS[SHARED])

    return Explorer("Whose page is it?", knobs, sides, draw, band=0)


# ------------------------------------------------------------------------------------ exercises
def exercise_faults() -> Exercise:
    """Return problems on the second fault in a row."""
    return Exercise("Does the page move?", _faults_problem)


def _faults_problem(seed: int) -> Problem:
    """Let one thread fault on one page from changing nodes; count its moves by the two-stage rule."""
    rng = np.random.default_rng(seed)
    nodes = [0, *rng.integers(0, 2, 8).tolist()]
    at, moves, steps_taken = 0, 0, []
    for last, here in pairwise(nodes):
        if here != at and here == last:
            at, moves = here, moves + 1
            steps_taken.append(f"to node {here} at the second {here} in a row")
    return Problem(
        f"A thread's own page is on node 0, and its last fault came from node 0. The next faults come from the nodes\n"
        f"    {' '.join(map(str, nodes[1:]))}\n"
        "How often does the page move (kernel 3.17, the thread is in no group)?",
        moves,
        lambda given: (
            "Go from left to right and note where the page is. It moves only if the fault before came from the same "
            "node as this one, and the page is elsewhere."
        ),
        f"It moves {', then '.join(steps_taken)}." if steps_taken else "No two faults in a row come from elsewhere.",
        unit="moves",
    )


def exercise_decay() -> Exercise:
    """Return problems on the fault averages."""
    return Exercise("When does the preferred node change?", _decay_problem)


def _decay_problem(seed: int) -> Problem:
    """Let the faults of a thread come from another node from now on; count placements until it prefers that."""
    rng = np.random.default_rng(seed)
    old, new = int(rng.integers(4, 17)) * 4, int(rng.integers(2, 9)) * 2
    averages, count, lines = [old, 0], 0, []
    while averages[1] <= averages[0]:
        averages = [averages[0] - averages[0] // 2, averages[1] - averages[1] // 2 + new]
        count += 1
        lines.append(f"{averages[0]} and {averages[1]}")
    return Problem(
        f"A thread's fault average is {old} pages on node 0 and 0 on node 1. From now on each pass brings {new} pages "
        "on node 1 and none on node 0.\nAfter how many passes is the average of node 1 the higher one? (Each pass "
        "halves both averages, rounding what is taken away down, and adds what is new.)",
        count,
        lambda given: "Write both averages down, pass by pass: half of the old one, plus what is new.",
        f"The averages: {'; '.join(lines)}.",
        unit="passes",
    )


def exercise_windows() -> Exercise:
    """Return problems on the scan period."""
    return Exercise("How long is a scan period?", _windows_problem)


def _windows_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    size, scan = int(rng.choice([400, 768, 1000, 1024, 2000, 3000, 6000])), int(rng.choice([64, 128, 256]))
    count, period = windows(scan, PERIOD_MS, size)
    fastest = int(Kernel(KERNEL).switches["max_scan_window_mbps"])
    return Problem(
        f"A process has {size} MB. With a scan size of {scan} MB and a shortest period of {PERIOD_MS} ms for all "
        "of its memory: what is the shortest time from one scan window to the next, in ms?\n"
        f"(Rounded down. No more than {fastest} MB may be scanned in a second.)",
        period,
        lambda given: "How many windows are there, rounded up? Divide the time by them. Then look at the limit.",
        f"{size} MB are {count} windows: {PERIOD_MS} // {count} = {PERIOD_MS // count} ms; the limit alone allows one "
        f"every {1000 // (fastest // scan)} ms.",
        tolerance=0.5,
        unit="ms",
    )
