"""Topology (docs/model.md, section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.reference.oracle import Oracle

DIRECT, MESH, BACKPLANE = "DIRECT", "MESH", "BACKPLANE"


def classify(o: Oracle) -> str:
    """9: what kind of machine the kernel takes it for."""
    distance = o.lay.distance
    match o.sw.direct_topology_test:
        case "none":
            return DIRECT
        case "distinct_distances":
            if len({x for row in distance for x in row}) <= 2:
                return DIRECT
        case _:  # max_distance
            if o.N == 1:
                return DIRECT
    D = max(max(row) for row in distance)
    a, b = next((a, b) for a in range(o.N) for b in range(o.N) if distance[a][b] == D)
    if any(distance[a][c] < D and distance[b][c] < D for c in range(o.N)):
        return MESH
    return BACKPLANE


def near(o: Oracle, mem: list[list[int]], n: int, d: int) -> int:
    """9, near(n,d): faults on nodes near n."""
    if not o.sw.topology_scores or o.topology == DIRECT:
        return 0
    score, D = 0, o.max_distance
    for m in range(o.N):
        x = o.lay.distance[n][m]
        if m == n or x >= D:
            continue
        if o.topology == MESH:
            score += sum(mem[m]) * (D - x) // (D - 10)
        elif x < d or (x == d and not o.sw.backplane_limit_excluded):
            score += sum(mem[m])
    return score


def most(values: list[int]) -> int:
    """5.2: the first node with the highest value above 0, -1 if none."""
    best = max(values)
    return values.index(best) if best > 0 else -1


def best_cluster(o: Oracle, gmem: list[list[int]]) -> int:
    """9, BACKPLANE: narrow the nodes down to the cluster with most faults, level by level."""
    distance = o.lay.distance
    nodes, answer = list(range(o.N)), -1
    for x in sorted({x for row in distance for x in row if x > 10}, reverse=True):
        left = list(nodes)
        best: list[int] = []
        best_faults = 0
        for a in nodes:
            if a not in left:
                continue
            # spec 9: a partition as in the kernel, nodes already in a cluster are in no other
            cluster = [b for b in left if distance[a][b] < x]
            left = [b for b in left if b not in cluster]
            cluster_faults = sum(sum(gmem[b]) for b in cluster)
            if cluster_faults > best_faults:
                best, best_faults, answer = cluster, cluster_faults, a
        if best_faults == 0:
            break
        nodes = best
    return answer
