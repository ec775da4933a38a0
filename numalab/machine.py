"""Machines: nodes, CPUs, memory and distances; the machines of the mails as presets.

The first third is the typed reader that machines, workloads and description files share: the annotations of
a dataclass say what its fields may be, and every error names the key.
"""

from __future__ import annotations

import inspect
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

PAGES_PER_MB = 256
#: SLIT distance of a node to itself.
LOCAL_DISTANCE = 10
#: Bounds of min_free_kbytes as the kernel computes it; the upper one is 262144 since 5.9.
MIN_FREE_KB = (128, 65536)
#: The gamess machine of the policy_lock thread: its mail only says "3k+ cores"; that thread needs no more.
SGI_3K_CORES = 3000

Topology = Literal["direct", "mesh", "backplane"]
Record = TypeVar("Record")


class DescriptionError(ValueError):
    """A machine, workload or run that cannot be.

    Attributes
    ----------
    key : str
        Path of the key at fault, such as ``workload.regions[1].size_mb``.
    problem : str
        What was expected and what was found.
    file : str
        The file it was read from, if any.
    """

    def __init__(self, key: str, problem: str, file: str = "") -> None:
        super().__init__(": ".join(part for part in (file, key, problem) if part))
        self.key = key
        self.problem = problem
        self.file = file

    def within(self, prefix: str) -> DescriptionError:
        """Return the same error seen from outside: ``prefix`` goes before the key."""
        dot = "." if self.key and not self.key.startswith("[") else ""
        return DescriptionError(f"{prefix}{dot}{self.key}", self.problem)


@dataclass(frozen=True)
class Rule:
    """What a value must be (``what`` ends a sentence beginning with "expected") and the test for it."""

    what: str
    test: Callable[[Any], bool]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for the known word nearest to this one, or "; known: ..." with all."""
    words = list(known)
    close = get_close_matches(word, words, n=1)
    return f"; did you mean {show(close[0])}?" if close else f"; known: {', '.join(words)}"


def show(value: object) -> str:
    """Return a value as a description file writes it."""
    return json.dumps(value, default=str, ensure_ascii=False)


@cache
def _hints(call: Any) -> dict[str, Any]:
    return get_type_hints(call, include_extras=True)


def check(record: Any) -> None:
    """Check every field of a frozen dataclass against its annotation; lists become tuples.

    Raises
    ------
    DescriptionError
        Naming the field.
    """
    for key, hint in _hints(type(record)).items():  # type: ignore[arg-type]
        object.__setattr__(record, key, read_field(hint, getattr(record, key), key))


def read_record(cls: type[Record], data: object) -> Record:
    """Make a dataclass of a mapping with the same keys.

    Parameters
    ----------
    cls : type
        A dataclass whose annotations this module understands: bool, int, float, str, None, Literal,
        unions, ``tuple[X, ...]``, other dataclasses, each possibly Annotated with a :class:`Rule`.
    data : mapping

    Raises
    ------
    DescriptionError
        Naming the unknown, missing or wrong key by its path.
    """
    return cls(**read_arguments(cls, data))


def read_arguments(call: Any, data: object, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """Check a mapping against the parameters of a dataclass or function.

    Parameters
    ----------
    call : type or callable
    data : mapping
    skip : tuple of str
        Parameters that are given otherwise.

    Returns
    -------
    dict
        The arguments that ``data`` gives, of the annotated types.

    Raises
    ------
    DescriptionError
        Naming the unknown, missing or wrong key by its path.
    """
    if not isinstance(data, Mapping):
        raise DescriptionError("", f"expected a table, got {show(data)}")
    hints = _hints(call)
    known = {key: value for key, value in inspect.signature(call).parameters.items() if key not in skip}
    for key in data:
        if key not in known:
            raise DescriptionError(str(key), f"unknown key{nearest(str(key), known)}")
    for key, parameter in known.items():
        if key not in data and parameter.default is inspect.Parameter.empty:
            raise DescriptionError(key, f"missing; expected {expected(hints[key])}")
    return {str(key): read_field(hints[key], value, str(key)) for key, value in data.items()}


def expected(hint: Any) -> str:
    """Return what an annotation allows, in words that follow "expected"."""
    try:
        _read(hint, object())
    except DescriptionError as error:
        return error.problem.removeprefix("expected ").split(", got ")[0]
    raise AssertionError(f"{hint} allows anything")


def read_field(hint: Any, value: object, key: str) -> Any:
    """Check one value against an annotation; errors carry ``key``.

    Raises
    ------
    DescriptionError
    """
    try:
        return _read(hint, value)
    except DescriptionError as error:
        raise error.within(key) from None


def _read(hint: Any, value: object) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        base, rule = get_args(hint)
        return _read_ruled(base, rule, value)
    if origin is tuple:
        return _read_tuple(get_args(hint)[0], value)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(hint), value)
    if is_dataclass(hint):
        return value if isinstance(value, hint) else read_record(hint, value)  # type: ignore[arg-type]
    return _read_plain(hint, value)


def _read_ruled(base: Any, rule: Rule, value: object) -> Any:
    wrong = DescriptionError("", f"expected {rule.what}, got {show(value)}")
    try:
        read = _read(base, value)
    except DescriptionError as error:
        raise error if error.key else wrong from None
    if not rule.test(read):
        raise wrong
    return read


def _read_tuple(item: Any, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise DescriptionError("", f"expected a list, got {show(value)}")
    return tuple(read_field(item, element, f"[{i}]") for i, element in enumerate(value))


def _read_union(arms: tuple[Any, ...], value: object) -> Any:
    wanted = []
    for arm in arms:
        try:
            return _read(arm, value)
        except DescriptionError as error:
            # An element of a list, or a key of a table, is at fault: the list itself was what is meant.
            if error.key and isinstance(value, list | tuple | Mapping):
                raise
            if arm is not types.NoneType:
                wanted.append(expected(arm))
    raise DescriptionError("", f"expected {' or '.join(wanted)}, got {show(value)}")


_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _read_plain(hint: Any, value: object) -> Any:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        if value in words and not isinstance(value, bool):
            return value
        near = nearest(value, words) if isinstance(value, str) else ""
        near = near if "did you mean" in near else ""
        raise DescriptionError("", f"expected one of {', '.join(words)}, got {show(value)}{near}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and number and math.isfinite(value):  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    if hint is not float and isinstance(value, hint) and isinstance(value, bool) == (hint is bool):
        return value
    raise DescriptionError("", f"expected {_PLAIN.get(hint, 'none')}, got {show(value)}")


def to_plain(value: Any) -> Any:
    """Return dataclasses as dicts and tuples as lists, all the way down."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


Positive = Annotated[float, Rule("a number > 0", lambda v: v > 0)]
NotNegative = Annotated[float, Rule("a number >= 0", lambda v: v >= 0)]
Share = Annotated[float, Rule("a number from 0 to 1", lambda v: 0 <= v <= 1)]
Count = Annotated[int, Rule("a whole number >= 1", lambda v: v >= 1)]
Index = Annotated[int, Rule("a whole number >= 0", lambda v: v >= 0)]
Name = Annotated[str, Rule("a name that is not empty", lambda v: v != "")]


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
    memory_mb: NotNegative
    llcs: Count = 1
    reserved_mb: NotNegative = 0.0

    def __post_init__(self) -> None:
        check(self)
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
    watermark_mb: NotNegative | None = None
    source: str = ""

    def __post_init__(self) -> None:
        check(self)
        self._check_nodes()
        self._check_distance()

    def _check_nodes(self) -> None:
        ids = [node.id for node in self.nodes]
        if ids != sorted(set(ids)):
            raise DescriptionError("nodes", f"expected node ids in ascending order, each once, got {ids}")
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

    @classmethod
    def uniform(
        cls,
        nodes: Count,
        cpus_per_node: Count,
        memory_mb: Positive,
        remote: Index = 20,
        *,
        smt: Count = 1,
        llcs: Count = 1,
        reserved_mb: NotNegative = 0.0,
        watermark_mb: NotNegative | None = None,
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
