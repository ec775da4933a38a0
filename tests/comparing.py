"""What the tests of comparisons share: small runs with chosen counters."""

import numpy as np

from numalab import runs

MACHINE = {"name": "two", "nodes": [], "distance": []}


def make_run(faults, local, *, kernel="3.16", seconds=10.0, workload="load", source="simulated", **coords):
    """A dataset with one run for each pair of counts, as a simulation would leave it."""
    n = len(faults)
    counts = {"numa_hint_faults": faults, "numa_hint_faults_local": local, "numa_pte_updates": [2 * f for f in faults]}
    variables = {name: np.array([[0, value] for value in values]) for name, values in counts.items()}
    params = {
        "machine": MACHINE,
        "workload": {"name": workload},
        "kernel": {"name": kernel, "set": {}, "switches": {}},
        "seconds": seconds,
        "seeds": list(range(n)),
    }
    axes = {"time": [0.0, seconds], "seed": range(n), "kernel": [kernel] * n, **coords}
    return runs.build(variables, axes, title=kernel, source=source, params=params)
