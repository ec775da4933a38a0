"""The memory of the model, from the mappings that were seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from numalab.machine import PAGES_PER_MB
from numalab.twin._patterns import Pattern, own_part
from numalab.twin._seen import Evidence, SeenMemory
from numalab.workload import Kind, Region

#: Mappings smaller than this part of their process's memory are left out, as are those below a MB.
SMALL = 0.001


@dataclass(frozen=True)
class Memory:
    """A region in the making: a mapping, and the processes that have it.

    Attributes
    ----------
    seen : SeenMemory
    owners : tuple of str
        Names of processes in the model.
    kind : str
    private : float
        How much of it each thread has to itself.
    """

    seen: SeenMemory
    owners: tuple[str, ...]
    kind: Kind
    private: float


def memories_of(found: Evidence, names: Mapping[int, str], pattern: Pattern) -> list[Memory]:
    """Choose the mappings that matter; what several processes share is one."""
    owners: dict[tuple[int, str], list[str]] = {}
    for process in found.processes:
        for one in process.memory:
            owners.setdefault(one.key, []).append(names[process.pid])
    out, taken = [], set()
    for process in found.processes:
        own = process.memory
        largest = max(one.total for one in own)
        threads = len(process.tasks)
        private = own_part(process.private, threads) if pattern.own and threads > 1 else 0.0
        for one in own:
            key = one.key
            small = one.total < max(PAGES_PER_MB, SMALL * sum(each.total for each in own)) and one.total < largest
            if small or (one.is_file and one.total < largest) or key in taken:
                continue
            together = tuple(owners[key]) if _is_common(one, len(owners[key])) else (names[process.pid],)
            if len(together) > 1:
                taken.add(key)
            out.append(Memory(one, together, _kind(one, len(together)), 0.0 if len(together) > 1 else private))
    return out


def _is_common(one: SeenMemory, owners: int) -> bool:
    return owners > 1 and (one.is_shared or one.is_file or one.sharers >= owners)


def _kind(one: SeenMemory, owners: int) -> Kind:
    if one.is_shared:
        return "shmem"
    if one.is_file:
        return "file-shared"
    return "forked" if owners > 1 else "private"


def regions_of(
    one: Memory, found: Evidence, names: Mapping[int, str], block_kb: int | None, *, huge: bool
) -> Iterable[Region]:
    threads = {names[process.pid]: len(process.tasks) for process in found.processes}[one.owners[0]]
    label = re.sub(r"[^\w.-]", "_", one.seen.name.strip("/[]")) or "anon"
    name = f"{one.owners[0]}.{one.seen.start:x}.{label}"
    size = one.seen.total / PAGES_PER_MB
    anonymous = one.kind in ("private", "forked")
    use_huge = huge and anonymous and size >= 2
    blocks = max(1, one.seen.total // (512 if use_huge or (block_kb is None and size >= 64) else 1))

    def region(suffix: str, size_mb: float, scope: Literal["process", "thread", "all"], count: int) -> Region:
        return Region(
            name + suffix,
            size_mb,
            one.owners,
            scope=scope,
            kind=one.kind,
            pages="huge" if use_huge else "base",
            block_kb=None if use_huge else block_kb,
            first_touch=spread(one.seen.pages, max(1, count)),
            policy=policy_of(one.seen.policy),
        )

    own = size * one.private
    if own:
        yield region(".own", own / threads, "thread", round(blocks * one.private / threads))
    if own < size:
        scope: Literal["process", "all"] = "all" if len(one.owners) > 1 else "process"
        yield region("", size - own, scope, round(blocks * (1 - one.private)))


def spread(pages: Mapping[int, int], blocks: int) -> tuple[int, ...]:
    """Say on which node each block lies: as many on each as recorded, evenly mixed.

    Parameters
    ----------
    pages : mapping
        Node -> pages.
    blocks : int

    Returns
    -------
    tuple of int (blocks)
        Of a single node (1,).
    """
    if len(pages) == 1:
        return tuple(pages)
    nodes = sorted(pages)
    share = np.array([pages[node] for node in nodes], dtype=float)
    share /= share.sum()
    given = np.zeros(len(nodes))
    out = []
    for k in range(1, blocks + 1):
        # the node that is most behind what it should have by now
        behind = int(np.argmax(share * k - given))
        given[behind] += 1
        out.append(nodes[behind])
    return tuple(out)


def policy_of(printed: str) -> Literal["default", "explicit", "mof"]:
    """Return what a policy of numa_maps means to the scanner."""
    if printed in ("", "default"):
        return "default"
    return "mof" if "balancing" in printed else "explicit"
