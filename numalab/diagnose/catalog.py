"""What is known of each finding: its kind, why it matters, what to try, which kernel changed it, which thread tells.

Releases and commits are those of the kernel's history; `numalab kernels` says more of those that are switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalab.diagnose.result import Confidence, Evidence, Finding, Kind

_OFF = "kernel.numa_balancing=0 and measure again"


@dataclass(frozen=True)
class Known:
    """What is always said of a finding; attributes as in `numalab.diagnose.result.Finding`.

    Attributes
    ----------
    measure : str
        Begin of the name of the number that is greatest in the worst of many samples; empty: none is.
    """

    kind: Kind
    why: str
    attempts: tuple[str, ...] = ()
    kernels: tuple[tuple[str, str], ...] = ()
    thread: str = ""
    measure: str = ""


CATALOG: dict[str, Known] = {
    "overhead-without-benefit": Known(
        "illness",
        "Every hint fault costs about a microsecond and finds that the page is where it belongs.",
        (
            _OFF,
            "a longer kernel.numa_balancing_scan_period_min_ms (debugfs since 5.13)",
            "find out why it is on: numactl -H shows the nodes with memory",
        ),
        thread="scan_overhead",
        measure="numa_hint_faults",
    ),
    "memoryless-node-enables-balancing": Known(
        "illness",
        "With one node that has memory nothing can be moved, yet the kernel counts nodes, and switches balancing on.",
        ("kernel.numa_balancing=0", "firmware, or a kernel, that keeps the empty node offline"),
        (("after 2020-08", "powerpc keeps the empty node 0 offline (patch set of August 2020)"),),
    ),
    "page-ping-pong": Known(
        "illness",
        "Pages are copied again and again between nodes that both use them; each copy stops who needs the page.",
        (
            "split what the threads share, or bind threads and memory",
            "interleave memory that all nodes use (numactl --interleave)",
            "scan slower: a longer kernel.numa_balancing_scan_period_min_ms",
            _OFF,
        ),
        (("4.0", "b191f9b106ea keeps the write bit over a hint fault; 4.0-rc1 to rc4 are without"),),
        "scan_overhead",
        measure="pages migrated per fault",
    ),
    "scan-filter-too-strict": Known(
        "illness",
        "Areas that a thread did not touch lately are not scanned, so nobody learns that their memory is remote.",
        ("compare with a kernel before the filter (6.3 or earlier)", "bind what you know the place of"),
        (("6.7", "f169c62ff7cd scans an area at last that all threads passed over"),),
    ),
    "migrations-fail": Known(
        "illness",
        "Nearly all attempts to move pages fail after the work of unmapping them; the counter has every cause, "
        "compaction too.",
        (
            "look for free memory on the target node (numastat -m)",
            "look for pinned pages (RDMA, VFIO) and for huge pages that find no free one (thp_migration_fail)",
            "trace migrate:mm_migrate_pages, which names the reason",
        ),
        measure="failed share of migrations",
    ),
    "huge-pages-several-pages-per-fault": Known(
        "information",
        "One fault moves a whole huge page or large folio, counted as its pages: no error, but faults and pages are "
        "different units here.",
        ("count faults and pages apart; divide pages by 512 before judging ping-pong",),
        measure="pages migrated per fault",
    ),
    "tiering-churn": Known(
        "illness",
        "What is promoted to the fast tier pushes as much out of it: copies without gain.",
        (
            "a larger fast tier, or a smaller hot set",
            "kernel.numa_balancing_promote_rate_limit_MBps",
            "a longer hot_threshold_ms",
            "demotion_enabled off, as a test",
        ),
        (("6.1", "limits the rate of promotion"),),
    ),
    "one-node-unused": Known(
        "illness",
        "A node with CPUs and memory takes no part; the others do its work.",
        (
            "look at cpuset.cpus and cpuset.mems, taskset and numactl of the job",
            "look at the placement of the cgroup or container",
        ),
    ),
    "numa-gone": Known(
        "illness",
        "One side ran on a machine with one node. Its rows of zero are no success of balancing.",
        (
            "look in dmesg for SRAT and numa=off",
            "look at the firmware's node interleaving and at the kernel command line",
        ),
    ),
    "tlb-shootdown-bound": Known(
        "illness",
        "Unmapping pages makes CPUs interrupt each other, and wait.",
        (
            "fewer migrations: see page-ping-pong",
            "on a VM host: kernel.numa_balancing=0, or bind the guest's memory to nodes",
        ),
        (("6.3", "7e12beb8ca2a flushes once for a batch of migrating pages"),),
        "scan_overhead",
    ),
    "scan-latency": Known(
        "illness",
        "A scan runs in the task itself on its way back to user space; for work with deadlines one long call is a "
        "missed deadline, however small its share of CPU time.",
        (
            "a smaller kernel.numa_balancing_scan_size_mb: shorter calls",
            "a longer kernel.numa_balancing_scan_period_min_ms: fewer",
            "bind the memory: bound areas are not scanned",
            "kernel.numa_balancing=0",
        ),
        thread="scan_overhead",
    ),
    "node-full-foreign-allocations": Known(
        "illness",
        "Memory that was wanted on this node went to others, because it was full.",
        (
            "numastat -m shows what holds the node's memory",
            "spread or limit that: interleave or bind one big process, limit the page cache's writer",
            "vm.zone_reclaim_mode, vm.min_free_kbytes",
        ),
        measure="foreign share",
    ),
    "balancers-disagree": Known(
        "illness",
        "NUMA balancing moves a task to its memory, the load balancer moves it back.",
        ("put tasks that talk to each other into one cpuset", "leave CPUs idle"),
        (("5.7", "b396f52326de and the series around it: both balancers judge imbalance alike"),),
        "convergence",
    ),
    "shared-cow-waiting": Known(
        "illness",
        "Many processes read pages that they share copy-on-write; each move of one makes all of them wait.",
        (
            "kernel.numa_balancing=0, as a test: the waiting must be gone",
            "a private copy of the data for each process, or shared memory bound to each node",
        ),
        (("4.16", "859d4adc3415 does not trap shared copy-on-write pages"),),
        "shared_cow",
    ),
    "no-convergence": Known(
        "illness",
        "Threads and their memory do not come together; remote accesses remain.",
        (
            "fewer threads per process than a node has CPUs",
            "leave CPUs idle: without room no task can move",
            "bind processes to nodes",
        ),
        (("3.17", "seven patches of June 2014: groups are placed as a whole, tasks are swapped"),),
        "convergence",
    ),
    "retried-migrations": Known(
        "illness",
        "Pages are trapped, found remote and not moved, over and over: the faults' cost without their use.",
        (
            "free memory on the target node",
            "a longer kernel.numa_balancing_scan_period_min_ms",
            "up to 4.18: the limit of the migration rate",
        ),
        (("4.0", "074c238177a7 scans slower where migrations fail"),),
        "scan_overhead",
        measure="numa_hint_faults",
    ),
    "policy-lock-contention": Known(
        "illness",
        "All faults on one shared file or segment look up its policy under one lock; the waiting grows faster than "
        "the number of processes.",
        (
            "fewer processes on one tmpfs file or segment",
            "no policy on it: an empty tree of policies takes no lock",
        ),
        (("4.5", "4a8c7bb59ac8 makes the lock a rwlock"),),
        "policy_lock",
    ),
    "marginal-moves": Known(
        "illness",
        "Tasks change nodes for gains too small to pay for the move.",
        ("keep spare CPUs", "bind"),
        (("4.19", "6fd98e775f24 refuses moves of small gain"),),
        "marginal_moves",
    ),
    "nothing-wrong": Known(
        "verdict",
        "None of the illnesses numalab knows shows in these numbers; others, and other causes, would not show in them.",
        ("look at CPU load, huge pages, I/O and memory bandwidth",),
    ),
    "not-enough-data": Known("verdict", "A verdict on these numbers would be a guess."),
    "counters-contradict": Known(
        "verdict",
        "Numbers that belong together do not fit; findings that rest on them are left out or held less sure.",
        ("read all counters again at one time", "check for editing by hand and for samples of several boots"),
    ),
    "balancing-off": Known(
        "information",
        "Nothing was scanned: balancing is off, there is one node, or it was too short. The local share is undefined.",
        ("sysctl kernel.numa_balancing", "numactl -H"),
    ),
}


def finding(
    id: str,
    says: str,
    evidence: Sequence[Evidence],
    confidence: Confidence | None,
    side: str = "",
    attempts: tuple[str, ...] = (),
) -> Finding:
    """Make a finding of its numbers and of what the catalog says.

    Parameters
    ----------
    id : str
        Key of `CATALOG`.
    says : str
    evidence : sequence of Evidence
        At least one.
    confidence : {"high", "medium", "low"} or None
    side : str
    attempts : tuple of str
        What to try before what is always tried.

    Raises
    ------
    ValueError
        No evidence.
    """
    if not evidence:
        raise ValueError(f"{id}: a finding needs the numbers that carry it")
    known = CATALOG[id]
    return Finding(
        id,
        known.kind,
        says,
        tuple(evidence),
        confidence,
        side,
        known.why,
        (*attempts, *known.attempts),
        known.kernels,
        known.thread,
        (side,) if side else (),
    )
