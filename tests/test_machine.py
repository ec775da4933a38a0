"""Machines: validation, topology class, watermarks, presets, round trip."""

import json

import pytest

from numalab.machine import PRESETS, Machine, Node, machine
from numalab.records import DescriptionError

MESH = ((10, 16, 16, 22), (16, 10, 22, 16), (16, 22, 10, 16), (22, 16, 16, 10))
# Two boxes of two nodes: nobody in a box is nearer to the other box than the farthest pair.
BACKPLANE = ((10, 15, 20, 20), (15, 10, 20, 20), (20, 20, 10, 15), (20, 20, 15, 10))
# The first pair at the largest distance (0, 1) has nobody between; the later pair (2, 3) has node 4.
FIRST_PAIR = (
    (10, 30, 30, 30, 30),
    (30, 10, 20, 20, 20),
    (30, 20, 10, 30, 20),
    (30, 20, 30, 10, 20),
    (30, 20, 20, 20, 10),
)


def made(distance: tuple[tuple[int, ...], ...]) -> Machine:
    return Machine("m", tuple(Node(i, 1, 64) for i in range(len(distance))), distance)


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (((10,),), "direct"),
        (((10, 10), (10, 10)), "direct"),
        (((10, 21), (21, 10)), "direct"),
        (((10, 20, 20), (20, 10, 20), (20, 20, 10)), "direct"),
        (MESH, "mesh"),
        (BACKPLANE, "backplane"),
        (FIRST_PAIR, "backplane"),
    ],
)
def test_topology_class(distance: tuple[tuple[int, ...], ...], expected: str) -> None:
    assert made(distance).topology_class() == expected


def test_watermark_as_the_kernel_computes_it() -> None:
    # 256 GB: sqrt(2**28 kB * 16) = 65536 kB = 16384 pages, a quarter for each node, and half as much again.
    assert machine("rik-4n80").watermark_pages() == (6144,) * 4
    # 768 MB: sqrt(786432 * 16) = 3547.2 kB = 886 pages, 443 a node, 443 + 221.
    assert machine("guest-2x2").watermark_pages() == (664, 664)


def test_watermark_is_shared_out_by_size() -> None:
    nodes = (Node(0, 1, 3072), Node(1, 1, 1024), Node(2, 1, 0))
    distance = ((10, 20, 20), (20, 10, 20), (20, 20, 10))
    # 4 GB: sqrt(4194304 * 16) = 8192 kB = 2048 pages: 1536 and 512, and half as much again.
    assert Machine("m", nodes, distance).watermark_pages() == (2304, 768, 0)
    assert Machine("m", nodes, distance, watermark_mb=2).watermark_pages() == (512, 512, 0)


@pytest.mark.parametrize(("memory_mb", "pages"), [(0.5, 48), (2**20, 24576)])
def test_watermark_bounds(memory_mb: float, pages: int) -> None:
    # 0.5 MB would give 90 kB: 128 kB = 32 pages, x 3/2; 1 TB would give 131072 kB: 65536 kB = 16384 pages.
    assert Machine.uniform(1, 1, memory_mb).watermark_pages() == (pages,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distance": [[10, 20]]}, "distance: expected 2 rows, one per node, got 1"),
        ({"distance": [[10, 20], [20]]}, "distance[1]: expected 2 numbers, one per node, got 1"),
        ({"distance": [[10, 20], [20, 11]]}, "distance[1][1]: expected 10, the distance of a node to itself, got 11"),
        ({"distance": [[10, 9], [20, 10]]}, "distance[0][1]: expected at least 10, got 9"),
        ({"distance": [[10, "x"], [20, 10]]}, 'distance[0][1]: expected a whole number, got "x"'),
        ({"smt": 0}, "smt: expected a whole number >= 1, got 0"),
        ({"smt": 3}, "nodes[0].cpus: expected a multiple of smt = 3, got 2"),
        ({"watermark_mb": "low"}, 'watermark_mb: expected a number >= 0, got "low"'),
        (
            {"watermark_mb": 64},
            "watermark_mb: expected less than the memory of every node, got 64 with 64 MB on node 0",
        ),
        ({"watermark": 1}, 'watermark: unknown key; did you mean "watermark_mb"?'),
        ({"x": 1}, "x: unknown key; known: name, nodes, distance, smt, watermark_mb, source"),
        ({"nodes": [{"id": 1, "cpus": 2}]}, "nodes[0].memory_mb: missing; expected a number >= 0"),
        ({"nodes": [{"id": 1, "cpu": 2, "memory_mb": 64}]}, 'nodes[0].cpu: unknown key; did you mean "cpus"?'),
        ({"nodes": [{"id": 1, "cpus": 2.5, "memory_mb": 64}]}, "nodes[0].cpus: expected a whole number >= 0, got 2.5"),
        ({"nodes": 4}, "nodes: expected a list, got 4"),
        ({"name": ""}, 'name: expected a name that is not empty, got ""'),
    ],
)
def test_error_names_the_key(change: dict[str, object], message: str) -> None:
    nodes = [{"id": 0, "cpus": 2, "memory_mb": 64}, {"id": 1, "cpus": 2, "memory_mb": 64}]
    data = {"name": "m", "nodes": nodes, "distance": [[10, 20], [20, 10]]} | change
    with pytest.raises(DescriptionError) as caught:
        Machine.from_dict(data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((Node(1, 1, 64), Node(0, 1, 64)), "nodes: expected node ids in ascending order, each once, got [1, 0]"),
        ((Node(1, 1, 64), Node(1, 1, 64)), "nodes: expected node ids in ascending order, each once, got [1, 1]"),
        ((Node(0, 0, 64), Node(1, 0, 64)), "nodes: expected at least one node with CPUs, got none"),
        ((Node(0, 1, 0), Node(1, 1, 0)), "nodes: expected at least one node with memory, got none"),
    ],
)
def test_impossible_nodes(nodes: tuple[Node, ...], message: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        Machine("m", nodes, ((10, 20), (20, 10)))
    assert str(caught.value) == message


def test_no_more_reserved_than_there_is() -> None:
    with pytest.raises(DescriptionError, match="reserved_mb: expected at most memory_mb = 64, got 65"):
        Node(0, 1, 64, reserved_mb=65)


def test_gaps_and_bare_nodes_are_legal_and_remarked() -> None:
    made = Machine("m", (Node(0, 4, 0), Node(3, 0, 64), Node(7, 2, 64)), ((10, 20, 21), (20, 10, 22), (25, 22, 10)))
    assert made.cpus == 6
    assert made.cpu_nodes == (0, 2)
    assert made.memory_nodes == (1, 2)
    assert made.index(7) == 2
    assert made.remarks() == (
        "node 0 has no memory",
        "node 3 has no CPUs",
        "distances are asymmetric: 21 from node 0 to 7, 25 back",
    )
    with pytest.raises(DescriptionError, match=r"expected a node of m \(0, 3, 7\), got 1"):
        made.index(1)


@pytest.mark.parametrize("name", PRESETS)
def test_round_trip(name: str) -> None:
    preset = machine(name)
    assert Machine.from_dict(json.loads(json.dumps(preset.to_dict()))) == preset
    assert preset.name == name
    assert preset.source


@pytest.mark.parametrize(
    ("name", "nodes", "cpus", "smt", "memory_gb", "far"),
    [
        ("rik-4n80", 4, 80, 2, 256, 20),
        ("oracle-8s144", 8, 144, 1, 1024, 21),
        ("oracle-8s288", 8, 288, 2, 1024, 21),
        ("dave-4n16", 4, 16, 1, 16, 20),
        ("ivb42", 2, 48, 2, 64, 21),
        ("lkp-snb01", 2, 32, 2, 64, 21),
        ("mel-4n48", 4, 48, 1, 128, 20),
        ("guest-2x2", 2, 4, 1, 0.75, 21),
        ("guest-2x4", 2, 8, 1, 0.75, 21),
        ("guest-4x2", 4, 8, 1, 1, 21),
        ("guest-4x2mesh", 4, 8, 1, 1, 22),
        ("guest-8x1", 8, 8, 1, 1.5, 22),
        ("guest-8x2", 8, 16, 1, 1.5, 22),
    ],
)
def test_presets(name: str, nodes: int, cpus: int, smt: int, memory_gb: float, far: int) -> None:
    preset = machine(name)
    assert len(preset.nodes) == nodes
    assert preset.cpus == cpus
    assert preset.smt == smt
    assert sum(node.memory_mb for node in preset.nodes) == memory_gb * 1024
    assert max(max(row) for row in preset.distance) == far
    assert preset.topology_class() == ("mesh" if far == 22 else "direct")


def test_eight_node_guest_is_the_one_of_the_traces() -> None:
    # Second row of the matrix in meta.json of the 8x1 traces.
    assert machine("guest-8x1").distance[1] == (16, 10, 16, 22, 22, 16, 22, 22)


def test_unknown_preset_suggests() -> None:
    with pytest.raises(DescriptionError, match='no machine "rik-4n8"; did you mean "rik-4n80"'):
        machine("rik-4n8")
