"""Programs of the mails: the readers of one array, and xfs_repair."""

from __future__ import annotations

from numalab.machine import PAGES_PER_MB
from numalab.records import Count, Index, NotNegative, Positive, Share
from numalab.workload import Access, Processes, Region, Workload


def shared_cow(
    processes: Count = 288,
    size_ints: Count = 1_000_000,
    seconds: Positive = 10.0,
    pass_ms: Positive = 1.359,
    node: Index = 0,
    stagger_ms: NotNegative = 0.1,
    written: Share = 0.0,
) -> Workload:
    """Readers that sum one array in ``.data`` over and over: the test program of the shared_cow thread.

    Parameters
    ----------
    processes : int
        Readers. The program's parent only waits and is left out.
    size_ints : int
        Length of the array of 4-byte integers.
    seconds : float
        For how long they read.
    pass_ms : float
        Useful time of one pass over 1,000,000 integers. 1.359 is the published one with balancing off: 288
        readers made 2,118,782 passes in 10 s. With 144 CPUs half a reader's time was useful: give 0.68.
    node : int
        Node that holds the array's page-cache pages at the start; assumed to be one node.
    stagger_ms : float
        Time from one fork to the next; assumed.
    written : float
        Share of the array that each process has already written, and so owns.
    """
    pages_per_s = size_ints * 4 / 4096 / (pass_ms / 1000 * size_ints / 1_000_000)
    return Workload(
        f"shared_cow {processes} readers of {size_ints} ints",
        (Processes("reader", processes, stagger_ms=stagger_ms),),
        (
            Region(
                "array",
                size_ints * 4 / 4096 / PAGES_PER_MB,
                scope="all",
                kind="data",
                written=written,
                block_kb=4,
                first_touch=node,
            ),
        ),
        (Access("array", pages_per_s=pages_per_s, order="sequential", until_ms=seconds * 1000),),
        source="mail 1516130924-3545-1-git-send-email-henry.willard@oracle.com; start node and fork time assumed",
    )


#: xfs_repair without ``bhash`` on an image of 500 TB: the map of blocks it plans for alone is larger than the guest, so
#: it takes its smallest cache, this many hash buckets (xfsprogs, repair/xfs_repair.c).
_LEAST_BUCKETS = 512
#: Buffers in a bucket, and kB of a buffer: an inode cluster.
_BUCKET_BUFFERS, _BUFFER_KB = 8, 8
#: Allocation groups of 500 TB, at most 1 TB each; without ``ag_stride`` xfs_repair divides them into runs of 15.
_GROUPS, _USUAL_STRIDE = 500, 15
#: Phases 3 and 4, which take nearly all the time, each go through all groups.
_WALKS = 2
#: Busy threads of one worker: one goes through the groups, the others read one group ahead.
_BUSY = 8


def xfs_repair(
    ag_stride: int = -1,
    bhash: Index = 101073,
    threads: Count | None = None,
    phase3_ms: Positive = 150_000.0,
    pages_per_s: Positive = 60_000.0,
    write: Share = 0.6,
    free_mb: NotNegative = 4.0,
    records_mb: Positive = 256.0,
    cached: Share = 0.9,
    repair_s: Positive = 300.0,
) -> Workload:
    """Threads that visit a large buffer cache at random, on nodes that page cache keeps nearly full.

    What the scan_overhead thread needs of xfs_repair: shared memory without locality, first spread over all
    nodes, migrations that full nodes refuse, and threads that end. One thread in eight goes through the
    allocation groups and lives as long as the program; the others read ahead for it, and xfs_repair creates
    them anew for each group (repair/prefetch.c). All numbers are assumed except where said.

    Parameters
    ----------
    ag_stride, bhash : int
        As on the command line of the mails, -1 and 101073 (0 = not given). A stride of -1 switches striding
        off: one allocation group after the other, by 8 busy threads (as the mails say), prefetch included.
        Without ``ag_stride`` the 500 groups (inferred from 500 TB) are divided by 15, one worker each: 34
        threads. A bucket of the buffer hash holds 8 buffers of 8 kB; without ``bhash`` there are 512.
    threads : int or None
        Overrides the number of threads.
    phase3_ms : float
        Until then (phase 3, reading inodes) threads visit at the full rate, after that (phase 4, checking
        for duplicate blocks) at half of it.
    pages_per_s : float
        Page visits of a thread per second of useful time: as many as give the 150,000 PTE updates a second of
        the mail's kernel with patches 1 and 2.
    write : float
        Chance that a page just opened is written: fitted to the migrations of 4.0-rc4 in the mail.
    free_mb : float
        What page cache leaves free on every node above the high watermark.
    records_mb : float
        Memory beside the buffers: records of inodes, the map of blocks.
    cached : float
        Share of the visits that go to the buffers.
    repair_s : float
        How long the whole repair takes on the real machine: threads that read ahead live for this time divided
        by the 500 groups and the two phases that go through all of them, times the groups worked on
        at once. They do so for two phases as long as ``phase3_ms``; the last of them stay.
    """
    striding = -(-_GROUPS // (ag_stride or _USUAL_STRIDE)) if ag_stride >= 0 else 0
    count = threads or striding or _BUSY
    life_ms = 1000 * repair_s / (_WALKS * _GROUPS) * (striding or 1)
    generations = max(1, round(2 * phase3_ms / life_ms))
    cache_mb = (bhash or _LEAST_BUCKETS) * _BUCKET_BUFFERS * _BUFFER_KB / 1024
    regions, accesses = [], []
    for name, size_mb, share in (("buffers", cache_mb, cached), ("records", records_mb, 1 - cached)):
        # Small blocks where there is little memory, so that shares of nodes are not coarse.
        regions.append(Region(name, size_mb, first_touch="rr", block_kb=2048 if size_mb >= 1024 else 256))
        if share:
            rate = pages_per_s * share
            accesses.append(Access(name, pages_per_s=rate, write=write, until_ms=phase3_ms))
            accesses.append(Access(name, pages_per_s=rate / 2, write=write, from_ms=phase3_ms))
    return Workload(
        f"xfs_repair -o ag_stride={ag_stride},bhash={bhash}",
        (
            Processes(
                "xfs_repair", 1, count, generations=generations, thread_life_ms=life_ms, lasting=-(-count // _BUSY)
            ),
        ),
        tuple(regions),
        tuple(accesses),
        free_mb=free_mb,
        source="scan_overhead thread, mail 20150324115141.GS28621@dastard; threads, sizes and rates assumed",
    )
