"""Groups of threads that pass messages: ``perf bench sched messaging`` and ``pipe``, and ``nlwl hb``."""

from __future__ import annotations

from numalab.scenarios import _areas
from numalab.scenarios._command import Options, Piece, ScenarioError
from numalab.scenarios._guest import Guest
from numalab.workload import Access, Processes, Region

MESSAGING, PIPE = "perf bench sched messaging", "perf bench sched pipe"
#: A message of 100 bytes: pages of its own that a thread visits for it, and instructions (write, read, two switches).
PAGES_A_MESSAGE, INSTRUCTIONS_A_MESSAGE = 3.0, 4000
#: Pages of its stack that a thread visits, and of its heap, which holds the buffer; from the program.
STACK_PAGES, HEAP_PAGES = 2, 1
#: Address space of a thread's heap, MB; data of the program that all read, kB.
HEAP_MB, SHARED_KB = 0.129, 16
#: 64 kB of messages of 100 bytes.
MESSAGES_A_PIPE = 655
#: Runnable threads a CPU, while a message takes longer to pass on than to read.
RUNNABLE = 2.0


def talkers(
    name: str, processes: int, threads: int, guest: Guest, *, start_ms: float = 0.0, written_once: int = 0
) -> Piece:
    """Describe tasks that mostly wait for each other.

    Parameters
    ----------
    name : str
    processes, threads : int
    guest : Guest
    start_ms : float
    written_once : int
        Pages of the process that are written at the beginning and not used again.
    """
    tasks = processes * threads
    busy = float(min(tasks, guest.cpus))
    demand = max(1, min(1000, round(1000 * RUNNABLE * guest.cpus / tasks)))
    rate = guest.rate(INSTRUCTIONS_A_MESSAGE) * PAGES_A_MESSAGE
    # a sender fills the pipes of its group, and its half of the instructions of a message goes into each
    wake_ms = MESSAGES_A_PIPE * guest.ns(INSTRUCTIONS_A_MESSAGE / 2, busy) / 1e6
    stack, heap, shared = f"{name}.stack", f"{name}.heap", f"{name}.shared"
    size = HEAP_PAGES * _areas.PAGE_KB / 1024
    once = f"{name}.once", written_once * _areas.PAGE_KB / 1024
    return Piece(
        (Processes(name, processes, threads, demand, wake_ms=wake_ms, start_ms=start_ms),),
        (
            *([Region(*once, (name,), block_kb=_areas.PAGE_KB)] if written_once else []),
            Region(shared, SHARED_KB / 1024, (name,), block_kb=4, first_touch="main"),
            _areas.stacks(stack, (name,), STACK_PAGES),
            Region(heap, size, (name,), scope="thread", block_kb=_areas.PAGE_KB, reserved_mb=HEAP_MB - size),
        ),
        (
            Access(shared, pages_per_s=rate / PAGES_A_MESSAGE, processes=(name,), write=0.5),
            Access(stack, pages_per_s=rate * 2 / 3, processes=(name,), write=1.0),
            Access(heap, pages_per_s=rate / 3, processes=(name,), write=1.0),
        ),
        busy=busy,
        notes=(
            f"waiting for messages: tasks want to run {demand / 1000:g} of the time, independently of each other",
            "pages that a thread visits: two of its stack, one of its heap, and 4 of the program, from its source",
        ),
    )


def messaging(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe ``perf bench sched messaging``."""
    long = {"pipe": "p", "thread": "t", "group": "g", "nr_loops": "l"}
    options = Options.read(MESSAGING, words, "gl", "pt", long)
    options.whole("l", 100, 1)
    tasks = 40 * options.whole("g", 10, 1)
    return talkers(name, *((1, tasks) if options.flag("t") else (tasks, 1)), guest)


def pipe(words: list[str], guest: Guest, name: str) -> Piece:
    """Describe ``perf bench sched pipe``: two tasks, of which one runs at a time."""
    options = Options.read(PIPE, words, "lG", "nT", {"loop": "l", "nonblocking": "n", "threaded": "T"})
    if "G" in options.given:
        raise ScenarioError(f"{PIPE}: -G: cgroups are not modelled; expected none")
    options.whole("l", 1_000_000, 1)
    piece = talkers(name, *((1, 2) if options.flag("T") else (2, 1)), guest)
    only = piece.processes[0]
    taking_turns = Processes(only.name, only.count, only.threads, demand=500)
    return Piece((taking_turns,), piece.regions, piece.accesses, busy=1.0, notes=piece.notes)
