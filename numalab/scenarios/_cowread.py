"""``cowread``: a parent fills an array and forks readers that never write it."""

from __future__ import annotations

from numalab.machine import PAGES_PER_MB
from numalab.scenarios import _areas
from numalab.scenarios._command import Options, Piece, block_kb
from numalab.scenarios._guest import Guest
from numalab.workload import Access, Processes, Region

NAME = "cowread"
#: Size of the program's .data segment, MB.
DATA_MB = 4
#: Instructions to copy the page table entry of one page at a fork.
FORK_PAGE = 60
TMPFS = "the array lies in a file on tmpfs, which decides on policies itself and names none: it is not scanned"


def build(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe one run of the program; arguments and errors as those of ``numawl``."""
    options = Options.read(NAME, words, "mnsik", "d")
    readers, seconds = options.whole("n", 4, 1), options.whole("s", 30, 1)
    in_file = options.flag("d")
    size = float(DATA_MB if in_file else options.whole("m", 64, 1))
    node = options.whole("i", -1, -1)
    busy = float(min(readers, guest.cpus))
    # counted in the program: 8 a read, 6 to go on to the next page
    rate = guest.rate(8 * options.whole("k", 16, 1) + 6)
    stagger_ms = guest.ns(FORK_PAGE * size * PAGES_PER_MB, busy) / 1e6
    return readers_of(
        name,
        readers,
        size,
        rate,
        busy=busy,
        first_touch="main" if node < 0 else guest.node(node),
        stagger_ms=stagger_ms,
        seconds=seconds,
        kind="forked",
        notes=(TMPFS,) if in_file else (),
        scanned=not in_file,
    )


def readers_of(
    name: str,
    readers: int,
    size_mb: float,
    rate: float,
    *,
    busy: float,
    first_touch: int | str,
    seconds: float,
    start_ms: float = 0.0,
    stagger_ms: float,
    kind: str,
    scanned: bool,
    notes: tuple[str, ...],
) -> Piece:
    """Describe readers of one array that is shared copy-on-write.

    Parameters
    ----------
    name : str
    readers : int
    size_mb : float
    rate : float
        Pages a second of each reader, while it is alone.
    busy : float
        vCPUs kept busy.
    first_touch : int or str
        Where the array lies; ``"main"``: where the first reader starts.
    seconds : float
        Run time of each reader.
    start_ms, stagger_ms : float
        When the first reader starts, and from one to the next.
    kind : {"forked", "data"}
    scanned : bool
        The array may be scanned.
    notes : tuple of str
    """
    array = f"{name}.array"
    below, above, more = _areas.around(
        name, (name,), _areas.FORKED, threads=1, first_touch="parent", passes_per_s=rate / (size_mb * PAGES_PER_MB)
    )
    shared = Region(
        array,
        size_mb,
        (name,),
        scope="all",
        kind="data" if kind == "data" else "forked",
        block_kb=block_kb(size_mb),
        first_touch=first_touch,
        policy="default" if scanned else "explicit",
    )
    return Piece(
        (Processes(name, readers, start_ms=start_ms, stagger_ms=stagger_ms),),
        (*below, shared, *above),
        (Access(array, pages_per_s=rate, processes=(name,), order="sequential"), *more),
        busy=busy,
        seconds=seconds + (start_ms + stagger_ms * (readers - 1)) / 1000,
        notes=(_areas.FORKED.source, *notes),
        many_mappings=readers > 1,
    )
