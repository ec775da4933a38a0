"""How fast the model is, as ratios measured in one run (``make bench``).

Each line: what ran, then ``N x oracle`` (time of the plain-Python oracle on the same work over the model's, per
run) and ``M x real time`` (simulated seconds per second of a core, summed over the runs of a batch). Growth lines
give the exponent e of time ~ size^e. Machines are noisy: quote ratios, not seconds.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from numalab.compile import compile_layout
from numalab.kernel import Kernel
from numalab.layout import Layout
from numalab.machine import Machine, machine
from numalab.model.engine import Engine
from numalab.workload import Workload
from numalab.workloads import perf_bench_numa, shared_cow
from tests.reference.oracle import Oracle


def seconds_of(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def model_seconds(layout: Layout, kernel: Kernel, runs: int, simulated_s: float, step_us: int, **params: int) -> float:
    """Core seconds of a batch, set-up excluded; idle stretches may be skipped."""
    engine = Engine(layout, kernel, np.arange(runs), {"step_us": step_us, **params})
    end = np.full(runs, round(simulated_s * 1e6 / step_us))

    def work() -> None:
        state = engine.state
        while state.runs:
            engine.skip(end[: state.runs])
            if (state.step_index >= end[: state.runs]).any():
                state.keep(np.flatnonzero(state.step_index < end[: state.runs]))
            if state.runs:
                engine.step()

    return seconds_of(work)


def oracle_seconds(layout: Layout, kernel: Kernel, simulated_s: float, step_us: int, **params: int) -> float:
    oracle = Oracle(layout, kernel, {"step_us": step_us, **params}, 0)

    def work() -> None:
        for _ in range(round(simulated_s * 1e6 / step_us)):
            oracle.step()

    return seconds_of(work)


def compare(
    name: str, host: Machine, load: Workload, kernel: str, simulated_s: float, step_us: int, batches: Sequence[int]
) -> None:
    layout, chosen = compile_layout(host, load), Kernel(kernel)
    plain = oracle_seconds(layout, chosen, simulated_s, step_us)
    print(f"{name}, oracle … {simulated_s / plain:.2f} x real time", flush=True)
    for runs in batches:
        took = model_seconds(layout, chosen, runs, simulated_s, step_us)
        label = f"{name}, batch of {runs}" if runs > 1 else f"{name}, one run"
        print(f"{label} … {plain * runs / took:.1f} x oracle … {simulated_s * runs / took:.1f} x real time", flush=True)


def growth(name: str, sizes: Sequence[int], measure: Callable[[int], float]) -> None:
    times = [measure(size) for size in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    steps = "  ".join(f"{size}: {took:.2f} s" for size, took in zip(sizes, times, strict=True))
    print(f"growth in {name}: exponent {slope:.2f}   ({steps})", flush=True)


def grown_machine(nodes: int, cpus: int) -> Machine:
    return Machine.uniform(nodes, cpus, memory_mb=256 * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter runs and smaller growth")
    quick = parser.parse_args().quick
    span = 6.0 if quick else 20.0
    rik = machine("rik-4n80")
    compare("convergence 8x20, 2 MiB blocks, 4 ms step", rik, perf_bench_numa(8, 20), "3.17", span, 4000, (1, 64))
    readers = shared_cow(288)
    compare("288 copy-on-write readers", machine("oracle-8s288"), readers, "4.15", 2.5 if quick else 5.0, 1000, (1, 8))

    def by_tasks(tasks: int) -> float:
        layout = compile_layout(grown_machine(4, tasks // 8), perf_bench_numa(8, tasks // 8))
        return model_seconds(layout, Kernel("3.17"), 1, 5.0, 4000)

    def by_nodes(nodes: int) -> float:
        layout = compile_layout(grown_machine(nodes, 160 // nodes), perf_bench_numa(16, 20))
        return model_seconds(layout, Kernel("3.17"), 1, 5.0, 4000)

    def by_pages(gigabytes: int) -> float:
        layout = compile_layout(grown_machine(4, 20), perf_bench_numa(8, 20, P=gigabytes * 1024 // 8))
        return model_seconds(layout, Kernel("3.17"), 1, 5.0, 4000)

    def by_runs(runs: int) -> float:
        layout = compile_layout(rik, perf_bench_numa(8, 20))
        return model_seconds(layout, Kernel("3.17"), runs, 3.0, 4000)

    growth("tasks", (160, 640, 2560) if quick else (160, 640, 2560, 10240), by_tasks)
    growth("nodes", (2, 8, 32) if quick else (2, 4, 8, 16, 32), by_nodes)
    growth("pages (GiB)", (8, 64, 256), by_pages)
    growth("runs", (1, 16, 128) if quick else (1, 16, 128, 512), by_runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory of all of the above: {peak / 1024:.0f} MB")
    assert math.isfinite(peak)


if __name__ == "__main__":
    main()
