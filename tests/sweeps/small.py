"""A sweep of seconds: one thread, memory on the wrong node, two nodes."""

from pathlib import Path

from numalab import sweeps

MACHINE = {"uniform": {"nodes": 2, "cpus_per_node": 2, "memory_mb": 64}}
WORKLOAD = {"preset": "wrong_node", "size_mb": 8}
#: 2 kernels x 2 sizes x 2 scan sizes x 2 seeds = 16 runs, 4 setups. A memory of 400 MB is too large for the machine.
GRID = {"kernel": ["3.16", "6.1"], "workload.size_mb": [4.0, 8.0], "scan_size_mb": [1, 256]}
FILE = """
[machine]
uniform = { nodes = 2, cpus_per_node = 2, memory_mb = 64 }
[workload]
preset = "wrong_node"
size_mb = 8
[kernel]
name = "6.1"
[run]
seconds = 2
seeds = 2
[sweep]
batch = 4
[sweep.grid]
kernel = ["3.16", "6.1"]
workload.size_mb = [4.0, 8.0]
scan_size_mb = [1, 256]
"""


def sweep(store, kernel="6.1", **changed):
    """Run the sweep above, with something changed."""
    given = {"seconds": 2, "seeds": 2, "grid": GRID, "batch": 4, **changed}
    return sweeps.sweep(MACHINE, WORKLOAD, kernel, store=store, **given)


def files(store):
    """Every file of a store, byte by byte."""
    store = Path(store)
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}
