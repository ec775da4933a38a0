"""Machines: nodes, CPUs, memory and distances; the machines of the mails as presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numalab.records import (
    Count,
    DescriptionError,
    Index,
    Megabytes,
    Name,
    SizeMb,
    check,
    nearest,
    read_record,
    show,
    to_plain,
)

PAGES_PER_MB = 256
#: SLIT distance of a node to itself.
LOCAL_DISTANCE = 10
#: Linux has at most 1024 nodes (MAX_NUMNODES), and a SLIT distance is one byte.
MOST_NODES, MOST_DISTANCE = 1024, 255
MOST_CPUS = 100_000
#: Bounds of min_free_kbytes as the kernel computes it; the upper one is 262144 since 5.9.
MIN_FREE_KB = (128, 65536)

Topology = Literal["direct", "mesh", "backplane"]


@dataclass(frozen=True)
class Node:
    """One NUMA node.

    Attributes
    ----------
    id : int
        The kernel's node number: a label, gaps are fine.
    cpus : int
        CPUs (hardware threads); 0 for a memory-only node.
    memory_mb : float
        Memory in MB (2**20 bytes); 0 for a node without memory.
    llcs : int
        Last-level caches.
    reserved_mb : float
        Memory in use by others from the start (kernel, page cache), in MB.
    """

    id: Index
    cpus: Index
    memory_mb: Megabytes
    llcs: Count = 1
    reserved_mb: Megabytes = 0.0

    def __post_init__(self) -> None:
        check(self)
        if self.llcs > MOST_CPUS:
            raise DescriptionError("llcs", f"expected at most {MOST_CPUS:,}, got {self.llcs:,}")
        if self.reserved_mb > self.memory_mb:
            problem = f"expected at most memory_mb = {self.memory_mb:g}, got {self.reserved_mb:g}"
            raise DescriptionError("reserved_mb", problem)


@dataclass(frozen=True)
class Machine:
    """Nodes, their CPUs and memory, and how far they are from each other.

    CPUs are numbered through the nodes in order. Within a node of n cores, CPUs k and k + n (and k + 2n ...)
    are the hardware threads of core k: like on x86, the second threads come after the first ones.

    Attributes
    ----------
    name : str
    nodes : tuple of Node
        In ascending order of id.
    distance : tuple of tuple of int
        SLIT distances, rows and columns in the order of ``nodes``: 10 on the diagonal, at least 10
        elsewhere. It may be asymmetric (some firmware is); :meth:`remarks` says so.
    smt : int
        Hardware threads per core.
    watermark_mb : float or None
        High watermark of every node with memory, in MB; None = what the kernel would compute.
    source : str
        Where the figures come from and what is assumed.

    Raises
    ------
    DescriptionError
        Naming the field, what was expected and what was found.
    """

    name: Name
    nodes: tuple[Node, ...]
    distance: tuple[tuple[int, ...], ...]
    smt: Count = 1
    watermark_mb: Megabytes | None = None
    source: str = ""

    def __post_init__(self) -> None:
        check(self)
        self._check_nodes()
        self._check_distance()

    def _check_nodes(self) -> None:
        ids = [node.id for node in self.nodes]
        if ids != sorted(set(ids)):
            raise DescriptionError("nodes", f"expected node ids in ascending order, each once, got {ids}")
        _check_most_nodes(len(ids))
        for i, node_id in enumerate(ids):
            if node_id >= MOST_NODES:
                raise DescriptionError(f"nodes[{i}].id", f"expected a number below {MOST_NODES}, got {node_id}")
        if self.cpus > MOST_CPUS:
            raise DescriptionError("nodes", f"expected at most {MOST_CPUS:,} CPUs in all, got {self.cpus:,}")
        if not any(node.cpus for node in self.nodes):
            raise DescriptionError("nodes", "expected at least one node with CPUs, got none")
        if not any(node.memory_mb for node in self.nodes):
            raise DescriptionError("nodes", "expected at least one node with memory, got none")
        for i, node in enumerate(self.nodes):
            if node.cpus % self.smt:
                problem = f"expected a multiple of smt = {self.smt}, got {node.cpus}"
                raise DescriptionError(f"nodes[{i}].cpus", problem)
            if self.watermark_mb is not None and 0 < node.memory_mb <= self.watermark_mb:
                problem = f"expected less than the memory of every node, got {self.watermark_mb:g}"
                raise DescriptionError("watermark_mb", f"{problem} with {node.memory_mb:g} MB on node {node.id}")

    def _check_distance(self) -> None:
        n = len(self.nodes)
        if len(self.distance) != n:
            raise DescriptionError("distance", f"expected {n} rows, one per node, got {len(self.distance)}")
        for i, row in enumerate(self.distance):
            if len(row) != n:
                raise DescriptionError(f"distance[{i}]", f"expected {n} numbers, one per node, got {len(row)}")
            for j, value in enumerate(row):
                if i == j and value != LOCAL_DISTANCE:
                    problem = f"expected 10, the distance of a node to itself, got {value}"
                    raise DescriptionError(f"distance[{i}][{j}]", problem)
                if value < LOCAL_DISTANCE:
                    raise DescriptionError(f"distance[{i}][{j}]", f"expected at least 10, got {value}")
                if value > MOST_DISTANCE:
                    problem = f"expected at most {MOST_DISTANCE}, a distance is one byte; got {value}"
                    raise DescriptionError(f"distance[{i}][{j}]", problem)

    @classmethod
    def uniform(
        cls,
        nodes: Count,
        cpus_per_node: Count,
        memory_mb: SizeMb,
        remote: Index = 20,
        *,
        smt: Count = 1,
        llcs: Count = 1,
        reserved_mb: Megabytes = 0.0,
        watermark_mb: Megabytes | None = None,
        name: str = "",
        source: str = "",
    ) -> Machine:
        """Return a machine of equal nodes, each as far from every other.

        Parameters
        ----------
        nodes, cpus_per_node : int
            Numbers of nodes (ids from 0) and of CPUs, that is hardware threads, on each.
        memory_mb : float
            Memory of each node, MB.
        remote : int
            Distance between two nodes.
        smt, llcs, reserved_mb, watermark_mb, name, source
            As in :class:`Machine` and :class:`Node`; the name defaults to e.g. ``4x20``.

        Raises
        ------
        DescriptionError
        """
        _check_most_nodes(nodes)
        node_list = tuple(Node(i, cpus_per_node, memory_mb, llcs, reserved_mb) for i in range(nodes))
        distance = tuple(tuple(LOCAL_DISTANCE if i == j else remote for j in range(nodes)) for i in range(nodes))
        return cls(name or f"{nodes}x{cpus_per_node}", node_list, distance, smt, watermark_mb, source)

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return sum(node.cpus for node in self.nodes)

    @property
    def cpu_nodes(self) -> tuple[int, ...]:
        """Indices of the nodes that have CPUs."""
        return tuple(i for i, node in enumerate(self.nodes) if node.cpus)

    @property
    def memory_nodes(self) -> tuple[int, ...]:
        """Indices of the nodes that have memory."""
        return tuple(i for i, node in enumerate(self.nodes) if node.memory_mb)

    def index(self, node_id: int) -> int:
        """Return the index of the node with this id.

        Raises
        ------
        DescriptionError
            No such node; lists those there are.
        """
        ids = [node.id for node in self.nodes]
        if node_id not in ids:
            raise DescriptionError("", f"expected a node of {self.name} ({', '.join(map(str, ids))}), got {node_id}")
        return ids.index(node_id)

    def node_pages(self) -> tuple[int, ...]:
        """Return the memory of each node in 4 KiB pages."""
        return tuple(round(node.memory_mb * PAGES_PER_MB) for node in self.nodes)

    def watermark_pages(self) -> tuple[int, ...]:
        """Return each node's high watermark in pages.

        Without ``watermark_mb`` this is the kernel's start-up default: min_free_kbytes =
        sqrt(16 * memory in kB) within :data:`MIN_FREE_KB`, spread over the nodes by size, and half as much
        again for the high mark (mm/page_alloc.c; zones of a node taken as one, ``watermark_scale_factor``
        and the larger reserve with transparent huge pages left out).
        """
        pages = self.node_pages()
        if self.watermark_mb is not None:
            mark = round(self.watermark_mb * PAGES_PER_MB)
            return tuple(mark if size else 0 for size in pages)
        low, high = MIN_FREE_KB
        min_pages = min(max(math.isqrt(sum(pages) * 4 * 16), low), high) // 4
        minima = [min_pages * size // sum(pages) for size in pages]
        return tuple(mark + mark // 2 for mark in minima)

    def topology_class(self) -> Topology:
        """Return the topology type that the scheduler derives from the distances.

        At most two distinct distances, the local one included: ``"direct"``. Otherwise the first pair of
        nodes (in node order) at the largest distance decides: with some node closer than that to both it
        is a glueless ``"mesh"``, else a ``"backplane"`` (init_numa_topology_type, kernel 4.15 and later).
        """
        far = max(max(row) for row in self.distance)
        if len({value for row in self.distance for value in row}) <= 2:
            return "direct"
        n = range(len(self.nodes))
        a, b = next((i, j) for i in n for j in n if self.distance[i][j] == far)
        between = any(self.distance[a][c] < far and self.distance[b][c] < far for c in n)
        return "mesh" if between else "backplane"

    def remarks(self) -> tuple[str, ...]:
        """Return what is legal but unusual, one sentence each."""
        notes = []
        for i, a in enumerate(self.nodes):
            if not a.cpus:
                notes.append(f"node {a.id} has no CPUs")
            if not a.memory_mb:
                notes.append(f"node {a.id} has no memory")
            for j, b in enumerate(self.nodes[:i]):
                there, back = self.distance[j][i], self.distance[i][j]
                if there != back:
                    notes.append(f"distances are asymmetric: {there} from node {b.id} to {a.id}, {back} back")
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, from which :meth:`from_dict` makes an equal machine."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Machine:
        """Make a machine of what :meth:`to_dict` gave, or of a table in a description file.

        Raises
        ------
        DescriptionError
            Unknown, missing or wrong key, by its path.
        """
        return read_record(cls, data)


def _check_most_nodes(count: int) -> None:
    if count > MOST_NODES:
        raise DescriptionError("nodes", f"expected at most {MOST_NODES} nodes, got {count:,}")


# ------------------------------------------------------------------ presets

_MAIL = {
    "rik-4n80": "convergence thread: 4 nodes, 80 CPUs; assumed: 40 cores x 2 threads, 64 GB a node, remote 20",
    "oracle-8s144": "shared_cow thread: 144 cores, 8 sockets; assumed: no SMT, 128 GB a node, remote 21",
    "oracle-8s288": "as oracle-8s144 with two hardware threads a core: the mail does not say which it was",
    "dave-4n16": (
        "scan_overhead thread: KVM guest, 16 vCPUs, fake NUMA, 4 GB a node; inferred: 4 nodes; assumed: remote 20, "
        "the default distance (numa=fake on one physical node would give 10 and no NUMA domains)"
    ),
    "ivb42": "marginal_moves thread, LKP box; assumed: 2 sockets, 48 hardware threads, 64 GB in all, remote 21",
    "lkp-snb01": "marginal_moves thread, LKP box; assumed: 2 sockets, 32 hardware threads, 64 GB in all, remote 21",
    "mel-4n48": "scan_overhead thread: 4 sockets, 48 cores; assumed: no SMT, 32 GB a node, remote 20",
}
_GUEST = "QEMU guest of the real-kernel traces; reserved: what the kernel held before the workload, mean of the nodes"
_SQUARE = ((10, 16, 16, 22), (16, 10, 22, 16), (16, 22, 10, 16), (22, 16, 16, 10))
# Each of eight nodes is one hop from its two neighbours on a ring and from the opposite one.
_TWISTED = tuple(tuple({0: 10, 1: 16, 7: 16, 4: 16}.get((j - i) % 8, 22) for j in range(8)) for i in range(8))


def _mail(name: str, nodes: int, cpus: int, memory_gb: int, remote: int, smt: int = 1) -> Machine:
    return Machine.uniform(nodes, cpus, 1024 * memory_gb, remote, smt=smt, name=name, source=_MAIL[name])


def _guest(name: str, nodes: int, cpus: int, distance: tuple[tuple[int, ...], ...] = ()) -> Machine:
    memory_mb, reserved_mb = {2: (384, 50), 4: (256, 30), 8: (192, 20)}[nodes]
    plain = Machine.uniform(nodes, cpus, memory_mb, 21, reserved_mb=reserved_mb, name=name, source=_GUEST)
    return Machine(name, plain.nodes, distance or plain.distance, source=_GUEST)


#: Machines by name: those of the mails and the guests of the traces.
PRESETS: dict[str, Machine] = {
    preset.name: preset
    for preset in (
        _mail("rik-4n80", 4, 20, 64, 20, smt=2),
        _mail("oracle-8s144", 8, 18, 128, 21),
        _mail("oracle-8s288", 8, 36, 128, 21, smt=2),
        _mail("dave-4n16", 4, 4, 4, 20),
        _mail("ivb42", 2, 24, 32, 21, smt=2),
        _mail("lkp-snb01", 2, 16, 32, 21, smt=2),
        _mail("mel-4n48", 4, 12, 32, 20),
        _guest("guest-2x2", 2, 2),
        _guest("guest-2x4", 2, 4),
        _guest("guest-4x2", 4, 2),
        _guest("guest-4x2mesh", 4, 2, _SQUARE),
        _guest("guest-8x1", 8, 1, _TWISTED),
        _guest("guest-8x2", 8, 2, _TWISTED),
    )
}


def machine(name: str) -> Machine:
    """Return the preset of this name.

    Raises
    ------
    DescriptionError
        No such preset; names the nearest or lists all.
    """
    if name not in PRESETS:
        raise DescriptionError("", f"no machine {show(name)}{nearest(name, PRESETS)}")
    return PRESETS[name]
