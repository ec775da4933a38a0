"""Machines of the traces: topology from meta.json, memory from what the guest printed before the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numalab.machine import PAGES_PER_MB, Machine, Node
from numalab.readers import zoneinfo
from numalab.records import DescriptionError
from numalab.scenarios._command import ScenarioError

_NODE_SIZE = re.compile(r"(?m)^node (\d+) (size|free): (\d+) MB\s*$")
#: From the low to the high watermark where the folder does not tell: 44 pages in the guests of 160 MB a node.
GAP_PAGES = 44


@dataclass(frozen=True)
class Shape:
    """Nodes of a guest.

    Attributes
    ----------
    cpus : dict
        Node id to number of CPUs.
    distance : tuple of tuple of int
    memory_mb : float
        Of each node, as given to the emulator.
    """

    cpus: Mapping[int, int]
    distance: tuple[tuple[int, ...], ...]
    memory_mb: float


def shape(meta: Mapping[str, Any], source: str) -> Shape:
    """Read the topology of either layout.

    Raises
    ------
    ScenarioError
        Naming the key.
    """
    topology = meta.get("topology")
    if not isinstance(topology, Mapping):
        raise ScenarioError(f"{source}: topology: expected an object, got {topology!r}")
    memory = topology.get("mem_mib_per_node")
    if isinstance(memory, bool) or not isinstance(memory, int | float) or memory <= 0:
        raise ScenarioError(f"{source}: topology.mem_mib_per_node: expected MB above 0, got {memory!r}")
    distance: Any = topology.get("distance")
    try:
        if "node_cpus" in topology:
            cpus = {int(node): len(listed) for node, listed in sorted(topology["node_cpus"].items(), key=_number)}
            rows = tuple(tuple(int(value) for value in row) for row in distance)
            return Shape(cpus, rows, float(memory))
        size = re.fullmatch(r"(\d+)x(\d+)", str(topology.get("nodes_x_cpus")))
        if size is None:
            raise ScenarioError(
                f"{source}: topology.nodes_x_cpus: expected something like 4x2, got {topology.get('nodes_x_cpus')!r}"
            )
        count = int(size[1])
        matrix = np.full((count, count), int(distance))
        np.fill_diagonal(matrix, 10)
        return Shape(dict.fromkeys(range(count), int(size[2])), tuple(map(tuple, matrix.tolist())), float(memory))
    except (TypeError, AttributeError, KeyError) as error:
        raise ScenarioError(f"{source}: topology: expected CPUs of the nodes and distances ({error})") from error


def _number(item: tuple[str, Any]) -> int:
    return int(item[0])


def build(
    shape: Shape, *, system: str | None, zones: zoneinfo.Report | None, hog_mb: float | None, source: str
) -> tuple[Machine, tuple[str, ...]]:
    """Make the machine.

    Parameters
    ----------
    shape : Shape
    system : str or None
        system.txt of layout A, with what numactl said.
    zones : zoneinfo.Report or None
        Before the load, of layout B.
    hog_mb : float or None
        Memory that a hog leaves above the high watermark of each node.
    source : str
        For messages.

    Returns
    -------
    machine : Machine
    notes : tuple of str

    Raises
    ------
    ScenarioError
        A topology that cannot be.
    """
    name = f"guest {len(shape.cpus)} nodes, {sum(shape.cpus.values())} CPUs"
    try:
        plain = Machine(name, tuple(Node(n, c, shape.memory_mb) for n, c in shape.cpus.items()), shape.distance)
        if zones is not None:
            return _with_room(plain, _room(zones, plain, hog_mb)), ()
        if hog_mb is not None:
            room = {node.id: (node.memory_mb, round(hog_mb * PAGES_PER_MB), GAP_PAGES) for node in plain.nodes}
            return _with_room(plain, room), ("no zoneinfo_before.txt: every node has what the hog leaves",)
        return _with_free(plain, system)
    except DescriptionError as error:
        raise ScenarioError(f"{source}: topology: {error}") from error


def _room(zones: zoneinfo.Report, machine: Machine, hog_mb: float | None) -> dict[int, tuple[float, int, int]]:
    """Return, by node, its memory in MB, pages free above the high watermark, and from the low to the high one."""
    found: dict[int, tuple[float, int, int]] = {}
    for node in machine.nodes:
        own = [zone.pages for zone in zones.zones if zone.node == node.id and zone.pages["managed"]]
        if not own:
            continue
        largest = max(own, key=lambda pages: pages["managed"])
        room = sum(max(0, pages["free"] - pages["high"]) for pages in own)
        if hog_mb is not None:
            room = min(room, round(hog_mb * PAGES_PER_MB))
        managed = sum(pages["managed"] for pages in own) / PAGES_PER_MB
        found[node.id] = (managed, room, largest["high"] - largest["low"])
    return found


def _with_room(machine: Machine, room: Mapping[int, tuple[float, int, int]]) -> Machine:
    """Return the machine with so much free that first touch stops at the low and migration at the high watermark.

    The model's first touch takes a node's last page, so what lies below the low watermark is not there for it.
    """
    gap = round(float(np.mean([gap for _, _, gap in room.values()]))) if room else GAP_PAGES
    nodes = []
    for node in machine.nodes:
        memory, pages, _ = room.get(node.id, (node.memory_mb, round(node.memory_mb * PAGES_PER_MB), gap))
        free = min(memory, (pages + gap) / PAGES_PER_MB)
        nodes.append(replace(node, memory_mb=memory, reserved_mb=memory - free))
    return replace(machine, nodes=tuple(nodes), watermark_mb=gap / PAGES_PER_MB)


def _with_free(machine: Machine, system: str | None) -> tuple[Machine, tuple[str, ...]]:
    sizes: dict[str, dict[int, int]] = {"size": {}, "free": {}}
    for node, what, mb in _NODE_SIZE.findall(system or ""):
        sizes[what][int(node)] = int(mb)
    if any(node.id not in sizes[what] for node in machine.nodes for what in ("size", "free")):
        return machine, ("no system.txt with sizes of the nodes: their memory is taken as free",)
    nodes = tuple(
        replace(
            node,
            memory_mb=float(sizes["size"][node.id]),
            reserved_mb=float(max(0, sizes["size"][node.id] - sizes["free"][node.id])),
        )
        for node in machine.nodes
    )
    return replace(machine, nodes=nodes), ()
