"""Numbers of a run that are not kernel switches: time base, costs, load balancer.

Every one may vary along the run axis. The source or the fit of each stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One number: default, unit, meaning, where the default comes from, and its range."""

    default: int
    unit: str
    what: str
    source: str
    least: int = 0
    most: int = 1_000_000_000


PARAMETERS: dict[str, Parameter] = {
    "numa_balancing": Parameter(1, "0 or 1", "the sysctl; 0: memory is never scanned", "kernel default", most=1),
    # time base
    "step_us": Parameter(1000, "us", "length of a step (the same for all runs of a batch)", "choice", least=1),
    "tick_us": Parameter(4000, "us", "scheduler tick", "CONFIG_HZ=250", least=1),
    "slice_us": Parameter(
        12000, "us", "time a task runs before the next of its CPU's queue", "CFS: 24 ms latency, 2 tasks", least=1
    ),
    "shared_cpus": Parameter(
        0,
        "of 1000",
        "CPUs' worth of work that all CPUs of an emulated guest share; 0: each CPU its own",
        "a real machine",
    ),
    # costs
    "pte_scan_ns": Parameter(5, "ns/page", "looking at a page in a scan", "order of a cached load"),
    "pte_update_ns": Parameter(
        60,
        "ns/page",
        "marking a PTE, its share of the TLB flush included",
        "mmtests counts 56 cycles; rounded up with the flush",
    ),
    "hint_fault_ns": Parameter(1200, "ns", "taking a hint fault", "mmtests counts 5000 cycles: 1.25 us at 4 GHz"),
    "wp_fault_ns": Parameter(700, "ns", "a write-protect fault that reuses the page", "minor fault without allocation"),
    "migrate_ns": Parameter(1500, "ns", "isolating and remapping a page, without copy and unmapping", "choice"),
    "copy_page_ns": Parameter(600, "ns/page", "copying 4 KiB between nodes", "about 7 GB/s"),
    "unmap_ns": Parameter(300, "ns/mapping", "reverse map walk and IPI for one mapping of a migrating page", "choice"),
    "ipi_wait_ns": Parameter(
        0, "ns/mapping", "waiting for busy CPUs to flush a mapping of a migrating page, without work", "a real machine"
    ),
    "isolate_ns": Parameter(
        1200, "ns", "from a hint fault to its page's unmapping: who faults on it meanwhile fails", "as hint_fault_ns"
    ),
    "ipi_ns": Parameter(
        0, "ns", "a running task's loss by one flush of a migrating page of its process; 0: not counted", "choice"
    ),
    "flush_wait_ns": Parameter(
        0,
        "ns",
        "a scanner's CPU spins so long for those of other threads after each area it marked pages in",
        "choice",
    ),
    "remote_cost": Parameter(
        500, "of 1000", "extra time of an access per 10 units of SLIT distance", "choice", most=1_000_000
    ),
    # load balancer
    "balancer_sigma": Parameter(
        100,
        "of 1000",
        "relative error with which the balancer sees a node's load",
        "fitted: to the words of the convergence mail",
        most=10_000,
    ),
    "fork_spread": Parameter(
        30,
        "of 1000",
        "relative error with which fork sees a node's load",
        "chosen: nodes start some tasks apart, as in the mail",
        most=10_000,
    ),
    "newidle_ms": Parameter(
        0, "ms", "a node with an idle CPU balances this often; 0: every CPUs x 1 ms", "kernel default"
    ),
    "domain_pct": Parameter(
        125, "percent", "load ratio above which the balancer acts", "NUMA domains before 5.10", least=100, most=10_000
    ),
    # bad luck
    "mmap_busy": Parameter(0, "of 1000", "chance that the scanner finds mmap_lock taken", "choice", most=1000),
    "mmap_wait_ns": Parameter(100_000, "ns", "waiting for mmap_lock, where the kernel waits", "choice"),
    "isolate_fail": Parameter(0, "of 1000", "chance that a page cannot be isolated", "choice", most=1000),
}

DEFAULTS: dict[str, int] = {name: parameter.default for name, parameter in PARAMETERS.items()}
