"""The simplest cases: one thread, bound to a node, whose memory is elsewhere."""

from __future__ import annotations

from numalab.records import Index, Positive, Share
from numalab.workload import Access, Binding, Order, Pages, Processes, Region, Workload


def wrong_node(
    size_mb: Positive = 32.0,
    node: Index = 1,
    memory_node: Index = 0,
    rate_mbps: Positive = 500.0,
    order: Order = "sequential",
    write: Share = 0.0,
) -> Workload:
    """One thread bound to one node, its memory on another.

    Parameters
    ----------
    size_mb : float
        Private memory, MB.
    node, memory_node : int
        Node ids of the CPUs it may use, and of its memory at the start.
    rate_mbps : float
        MB visited per second of useful time; assumed.
    order : {"random", "sequential"}
    write : float
        Chance that a page just opened is written.
    """
    return Workload(
        f"wrong_node {size_mb:g} MB",
        (Processes("wl"),),
        (Region("array", size_mb, first_touch=memory_node),),
        (Access("array", rate_mbps, order=order, write=write),),
        (Binding(node),),
        source="the simplest case: one scan should bring all pages over",
    )


def follow(
    size_mb: Positive = 32.0,
    home: Index = 0,
    dst: Index = 1,
    at_ms: Positive = 8000.0,
    rate_mbps: Positive = 500.0,
    order: Order = "sequential",
    write: Share = 0.0,
    pages: Pages = "base",
) -> Workload:
    """One thread bound to one node and later to another; its memory should come after it.

    Parameters
    ----------
    size_mb : float
        Private memory, MB, at the start on the first node.
    home, dst : int
        Node ids before and from ``at_ms``.
    at_ms : float
        When the binding changes.
    rate_mbps : float
        MB visited per second of useful time; assumed.
    order : {"random", "sequential"}
    write : float
        Chance that a page just opened is written.
    pages : {"base", "huge", "folio"}
    """
    return Workload(
        f"follow {size_mb:g} MB",
        (Processes("wl"),),
        (Region("array", size_mb, first_touch=home, pages=pages),),
        (Access("array", rate_mbps, order=order, write=write),),
        (Binding(home, until_ms=at_ms), Binding(dst, from_ms=at_ms)),
        source="as the follow runs of the real-kernel traces",
    )
