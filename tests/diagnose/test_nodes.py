"""Illnesses of nodes, each at its threshold and just below."""

from tests.diagnose.samples import balancing, found, numbers


def hardware(*sizes, cpus=None):
    """`numactl -H` of nodes with these MB, 8 CPUs each if not said."""
    lines = [f"available: {len(sizes)} nodes (0-{len(sizes) - 1})"]
    for node, size in enumerate(sizes):
        own = (cpus or [8] * len(sizes))[node]
        numbers = " ".join(str(8 * node + i) for i in range(own))
        lines += [
            f"node {node} cpus: {numbers}".rstrip(),
            f"node {node} size: {size} MB",
            f"node {node} free: {size // 2} MB",
        ]
    return "\n".join(lines) + "\n"


def numastat(hit, miss=None, foreign=None, local=None, other=None):
    """`numastat` with a value for each node; all local if not said."""
    nodes = len(hit)
    zero = [0] * nodes
    rows = {
        "numa_hit": hit,
        "numa_miss": miss or zero,
        "numa_foreign": foreign or zero,
        "interleave_hit": zero,
        "local_node": local or [a + b for a, b in zip(hit, miss or zero, strict=True)],
        "other_node": other or zero,
    }
    head = " " * 16 + "".join(f"{f'node{i}':>16}" for i in range(nodes)) + "\n"
    return head + "".join(f"{name:<16}" + "".join(f"{v:>16}" for v in every) + "\n" for name, every in rows.items())


def ids(*texts):
    return [(one.id, one.side) for one in found(*texts).findings if one.kind == "illness"]


def test_memoryless_node():
    (one,) = found(hardware(0, 32_000)).illnesses
    assert one.id == "memoryless-node-enables-balancing"
    assert one.confidence == "medium"
    assert numbers(one) == {"memory of node 0": 0, "memory of node 1": 32_000}
    # one MB on the other node is memory
    assert ids(hardware(1, 32_000)) == []
    assert ids(hardware(32_000)) == []
    assert ids(hardware(0, 32_000, 32_000)) == []


def test_memoryless_node_with_faults_is_sure():
    result = found(hardware(0, 32_000), balancing(5000, 5000, 0))
    assert [(one.id, one.confidence) for one in result.illnesses] == [("memoryless-node-enables-balancing", "high")]
    assert "numa_hint_faults" in numbers(result.illnesses[0])


def test_full_node():
    # 1 % of what was meant for node 1 went to node 0: 1,000,000 of 100,000,000
    def text(foreign, hit=99_000_000):
        return numastat([50_000_000, hit], miss=[foreign, 0], foreign=[0, foreign], local=[50_000_000 + foreign, hit])

    (one,) = found(text(1_000_000)).illnesses
    assert (one.id, one.side, one.confidence) == ("node-full-foreign-allocations", "node 1", "medium")
    assert numbers(one)["foreign share of what was meant for node 1"] == 0.01
    assert ids(text(1_000_000, hit=99_000_001)) == []
    assert ids(text(999_999, hit=50_000_000)) == []


def test_full_node_needs_the_misses_of_the_others():
    # foreign to node 1, but no other node counts the misses: the sums contradict each other, and nothing is said
    text = numastat([50_000_000, 50_000_000], foreign=[0, 2_000_000])
    assert [one.id for one in found(text).findings] == ["counters-contradict"]


def test_identity_of_a_node():
    def text(other):
        return numastat([1_000_000, 1_000_000], local=[990_000, 1_000_000], other=[other, 0])

    assert found(text(11_002)).ids == ["counters-contradict"]  # 1,001,002 and 1,000,000: 0.1001 %
    assert found(text(11_001)).ids == ["nothing-wrong"]


def test_sums_of_misses_and_foreign():
    def text(miss):
        return numastat([10_000_000, 10_000_000], miss=[miss, 0], foreign=[0, 10_000])

    assert found(text(10_102)).ids == ["counters-contradict"]
    assert found(text(10_101)).ids == ["nothing-wrong"]  # 0.9999 %


def test_unused_node():
    # 1 % of what the busiest node got
    assert ids(hardware(32_000, 32_000), numastat([1_000_000, 9999])) == [("one-node-unused", "node 1")]
    assert ids(hardware(32_000, 32_000), numastat([1_000_000, 10_000])) == []
    assert ids(hardware(32_000, 32_000), numastat([999_999, 0])) == []  # nothing has happened yet


def test_an_unused_node_may_have_no_cpus_or_no_memory():
    assert ids(numastat([1_000_000, 0])) == []
    assert ids(hardware(32_000, 32_000, cpus=[8, 0]), numastat([1_000_000, 0])) == []
    assert ids(hardware(32_000, 0), numastat([1_000_000, 0])) == [("memoryless-node-enables-balancing", "")]


def test_a_node_that_took_its_part_before():
    # 20 % of the busiest on the other side
    assert ids(numastat([1_000_000, 0]), numastat([1_000_000, 200_000])) == [("one-node-unused", "node 1")]
    assert ids(numastat([1_000_000, 0]), numastat([1_000_000, 199_999])) == []


def test_memory_of_which_only_the_total_is_known():
    total = "".join(f"Node {node} MemTotal: 32000000 kB\n" for node in (0, 1))
    (one,) = found(total).findings
    assert one.id in ("nothing-wrong", "not-enough-data")
