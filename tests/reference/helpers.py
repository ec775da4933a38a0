"""Small oracles for tests, brought into a state by hand."""

from __future__ import annotations

from numalab.kernel import Kernel
from numalab.layout import RANDOM, SEQUENTIAL
from tests.reference import faults, scan, scheduling
from tests.reference.oracle import Oracle
from tests.reference.tiny import tiny_layout

GB = 262144  # pages


def oracle(kernel="6.18", params=None, seed=1, switches=None, **layout):
    return Oracle(tiny_layout(**layout), Kernel(kernel, **(switches or {})), params or {}, seed)


def run(o, steps):
    for _ in range(steps):
        o.step()
    return o


def first_step_with(o, what, limit=5000):
    for _ in range(limit):
        o.step()
        if what(o):
            return o.i
    raise AssertionError("never")


def window_of(o, t=0):
    """A whole window at once."""
    window = scan.Window(o, t)
    for _ in window.rests:
        pass
    return window


def a_fault(o, t=0, q=0, last=None):
    o.trapped[q] = True
    o.pending[0] += 1
    if last is not None:
        o.last_cpu[q], o.last_pid[q] = last
    (f,) = faults.handle(o, [(t, q)], {})
    return f


def trap(o, blocks):
    """Trap blocks of the only VMA, their thresholds reached."""
    for q in blocks:
        o.trapped[q] = True
        o.reached[0].add(q)
    o.pending[0] += len(blocks)


def two_accesses(first=RANDOM, second=SEQUENTIAL, **rest):
    """One task, two accesses to the same local region, both from block 0."""
    return oracle(
        threads=1,
        home=0,
        nodes=1,
        access_task=[0, 0],
        access_vma=[0, 0],
        access_rate=[1000] * 2,
        access_order=[first, second],
        access_write=[0] * 2,
        access_start=[0] * 2,
        access_from_ns=[0] * 2,
        access_until_ns=[2**62] * 2,
        **rest,
    )


def remote(kernel="4.15", **rest):
    """Four nodes, task 0 on CPU 0; memory on node 1."""
    o = oracle(kernel, nodes=4, cpus=2, threads=2, home=1, **rest)
    o.cpu = [0, 2]
    return o


def two_nodes(kernel="4.15", cpus=2, threads=4, **rest):
    """Tasks 0 and 1 on node 0, 2 and 3 on node 1, all runnable and alone."""
    o = oracle(kernel, cpus=cpus, threads=threads, **rest)
    place(o, [0, 1, 2, 3][:threads])
    return o


def place(o, cpus):
    o.cpu = list(cpus)
    o.started_on = scheduling.tasks_on(o)
    o.queue = [scheduling.queued(o, tasks) for tasks in o.started_on]
    o.cur = [q[0] if q else -1 for q in o.queue]


def prefer(o, t, n, faults_=100):
    o.preferred[t], o.mem[t][n], o.total[t] = n, [0, faults_], faults_
