"""What the engine runs: a machine and a workload as plain arrays.

:func:`numalab.compile.compile_layout` makes a :class:`Layout`. Everything is an index: node ``n`` is the
n-th node of the machine (ids are labels), likewise CPUs, tasks, processes, VMAs, regions. Memory is counted
in *blocks* of ``region_block_pages`` 4 KiB pages; a block lives on one node and faults as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Page kinds of a region.
BASE, HUGE, FOLIO = 0, 1, 2
#: Order in which an access walks its region.
RANDOM, SEQUENTIAL = 0, 1


@dataclass(frozen=True)
class Layout:
    """Structure of one run; shared by all runs of a batch.

    Sizes: N nodes, C CPUs, T tasks, M processes, G regions, V VMAs (a region mapped by a process), B blocks
    (sum over regions), Q PTE blocks (sum over VMAs), A accesses, F affinity phases.

    Attributes
    ----------
    node_id : (N,) labels of the nodes.
    distance : (N, N) SLIT distances, 10 on the diagonal.
    node_pages : (N,) memory in 4 KiB pages; 0 = no memory.
    node_reserved : (N,) pages in use by others from the start.
    node_watermark : (N,) high watermark in pages: migrations must leave more than this free.
    node_llcs : (N,) last-level caches per node.
    cpu_node : (C,) node of each CPU, ascending.
    cpu_core : (C,) core of each CPU; hardware threads of a core share the number.
    smt : hardware threads per core.
    task_process, task_pid : (T,) process index, and pid (consecutive); tasks of a process are consecutive.
    task_demand : (T,) share of the time the task wants to run, of 1000.
    task_nice, task_weight : (T,) nice value, and the load weight of that value: 1024 at 0.
    task_wake_ns : (T,) how often a task with demand below 1000 decides anew to run or sleep.
    task_start_ns : (T,) when the task is created; 0 = with its process at the start.
    task_end_ns : (T,) when the task ends; beyond any run = never.
    task_visits : (T,) pages it visits before it ends; 0 = it does not end by that.
    affinity_ns : (F,) times from which the affinity masks hold, ascending, first is 0.
    affinity : (F, T, C) bool, CPUs the task may use in each phase.
    region_first : (G,) first block; blocks of a region are consecutive.
    region_blocks, region_block_pages : (G,) number of blocks, pages per block.
    region_kind : (G,) BASE, HUGE (a block is one huge page of 512) or FOLIO (a large folio mapped by PTEs).
    region_file, region_exec, region_dirty : (G,) file-backed; mapped executable; pages dirty in the file.
    block_node : (B,) node index of first touch, or -1-t: the node where task t starts.
    vma_process, vma_region : (V,) ordered by process, then address.
    vma_start : (V,) first page of its address range, a multiple of 512; ranges of a process are disjoint.
    vma_pages : (V,) length in pages.
    vma_hole : (V,) pages at its beginning where nothing is mapped; its blocks fill the rest.
    vma_pte : (V,) first PTE block; PTE block vma_pte[v]+i maps block region_first[vma_region[v]]+i.
    vma_read, vma_write, vma_shared : (V,) VM_READ, VM_WRITE, VM_SHARED.
    vma_cow : (V,) private and may be written: copy-on-write.
    vma_mof : (V,) the policy lets the scanner in (default policy; not numactl, not shmem without policy).
    vma_scannable : (V,) not hugetlb, not MIXEDMAP.
    vma_migratable : (V,) not IO, PFNMAP or DAX.
    vma_pte_write : (V,) the PTEs are writable at the start (pages written before).
    vma_pinned : (V,) pages have other references (GUP, swap cache, LRU batch).
    access_task, access_vma : (A,) ordered by task.
    access_rate : (A,) pages visited per second of useful time while all memory is local.
    access_order : (A,) RANDOM or SEQUENTIAL.
    access_write : (A,) chance of 1000 that a page just opened by a fault is written before the next scan.
    access_start : (A,) first block visited by a sequential walk.
    access_from_ns, access_until_ns : (A,) when the access happens.
    process_single_node : (M,) the cpuset allows memory of one node only.
    """

    node_id: Ints
    distance: Ints
    node_pages: Ints
    node_reserved: Ints
    node_watermark: Ints
    node_llcs: Ints
    cpu_node: Ints
    cpu_core: Ints
    smt: int
    task_process: Ints
    task_pid: Ints
    task_demand: Ints
    task_nice: Ints
    task_weight: Ints
    task_wake_ns: Ints
    task_start_ns: Ints
    task_end_ns: Ints
    task_visits: Ints
    affinity_ns: Ints
    affinity: Bools
    region_first: Ints
    region_blocks: Ints
    region_block_pages: Ints
    region_kind: Ints
    region_file: Bools
    region_exec: Bools
    region_dirty: Bools
    block_node: Ints
    vma_process: Ints
    vma_region: Ints
    vma_start: Ints
    vma_pages: Ints
    vma_hole: Ints
    vma_pte: Ints
    vma_read: Bools
    vma_write: Bools
    vma_shared: Bools
    vma_cow: Bools
    vma_mof: Bools
    vma_scannable: Bools
    vma_migratable: Bools
    vma_pte_write: Bools
    vma_pinned: Bools
    access_task: Ints
    access_vma: Ints
    access_rate: Ints
    access_order: Ints
    access_write: Ints
    access_start: Ints
    access_from_ns: Ints
    access_until_ns: Ints
    process_single_node: Bools

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_id)

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return len(self.cpu_node)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.task_process)

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len(self.process_single_node)

    @property
    def regions(self) -> int:
        """Number of regions."""
        return len(self.region_first)

    @property
    def vmas(self) -> int:
        """Number of VMAs."""
        return len(self.vma_process)

    @property
    def blocks(self) -> int:
        """Number of memory blocks."""
        return len(self.block_node)

    @property
    def pte_blocks(self) -> int:
        """Number of PTE blocks: every process has its own for a block it maps."""
        return int((self.region_blocks[self.vma_region]).sum())
