"""The small areas of a process beside its arrays: data, heap, stacks, libraries.

They hold few pages, but since 6.4 the scanner goes by areas: one that no task of the process has faulted in lately is
left out, and when all are, each scan takes a single one of them, in the order of their addresses. So the more small
areas, the more seldom it comes to an array.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalab.workload import Access, Region

PAGE_KB = 4
#: Address space of a thread's stack, MB.
STACK_MB = 8.0


@dataclass(frozen=True)
class Layout:
    """Areas of a program with pages of their own, and how many pages of each it has written.

    Attributes
    ----------
    below, above : tuple of (name, pages)
        At lower and at higher addresses than its arrays, in order.
    passes : frozenset of str
        Those that every task touches in every pass. In the others, which are touched to print a line or not at all,
        the scanner finds nothing to mark; in reality it marks their few pages once and then waits for them.
    source : str
    """

    below: tuple[tuple[str, int], ...]
    above: tuple[tuple[str, int], ...]
    passes: frozenset[str]
    source: str


#: numawl, linked statically.
STATIC = Layout(
    (("data", 3), ("bss", 5), ("heap", 4)),
    (("vdso", 1), ("stack", 4)),
    frozenset({"data", "bss"}),
    "small areas of the program: data, bss and vdso as the scanner passes them in b_wrongnode_bound, heap and stacks "
    "from its source; the 21 pages it marks there spread over them by assumption",
)
#: A forked copy of such a program has written few pages itself.
FORKED = Layout(
    (("data", 1), ("bss", 1), ("heap", 1)),
    (("vdso", 1), ("stack", 2)),
    frozenset({"bss"}),
    "a reader has written five pages since it was forked: assumed",
)
#: perf, linked with some twenty libraries, each with an area of data and one that is read-only after linking.
PERF = Layout(
    (("data", 2), ("bss", 2), ("heap", 4)),
    (*((f"lib{i:02}", 1) for i in range(40)), ("stack", 4)),
    frozenset({"data"}),
    "perf's libraries have 40 areas that are written once, as the scanner passes them in a_perfnuma",
)


def stacks(name: str, groups: tuple[str, ...], pages: int) -> Region:
    """Describe the stacks of threads, of which they have touched so many pages."""
    size = pages * PAGE_KB / 1024
    return Region(name, size, groups, scope="thread", block_kb=PAGE_KB, reserved_mb=STACK_MB - size)


def around(
    name: str,
    groups: tuple[str, ...],
    layout: Layout,
    *,
    threads: int,
    first_touch: int | str,
    passes_per_s: float,
) -> tuple[tuple[Region, ...], tuple[Region, ...], tuple[Access, ...]]:
    """Describe the small areas of a program.

    Parameters
    ----------
    name : str
        Begins the names of the areas.
    groups : tuple of str
        Its processes.
    layout : Layout
    threads : int
        Tasks of each process; with several, each has a stack of its own, below the arrays.
    first_touch : int or str
        Where the main thread wrote them.
    passes_per_s : float
        Passes of a task while it is alone.

    Returns
    -------
    below, above : tuple of Region
        For the list of regions, before and behind the arrays.
    accesses : tuple of Access
    """

    def often(what: str) -> bool:
        return what in (*layout.passes, "stacks") or (what == "stack" and threads == 1)

    def region(what: str, pages: int) -> Region:
        size, idle = pages * PAGE_KB / 1024, not often(what)
        return Region(f"{name}.{what}", size, groups, block_kb=PAGE_KB, first_touch=first_touch, pinned=idle)

    below, above = list(layout.below), list(layout.above)
    regions = [region(what, pages) for what, pages in below]
    if threads > 1:
        below.append(("stacks", 2))
        regions.append(stacks(f"{name}.stacks", groups, 2))
    accesses = tuple(
        Access(
            f"{name}.{what}",
            pages_per_s=pages * passes_per_s,
            processes=groups,
            write=1.0 if what in ("stack", "stacks") else 0.0,
        )
        for what, pages in (*below, *above)
        if often(what)
    )
    return tuple(regions), tuple(region(what, pages) for what, pages in above), accesses
