"""The guests of the traces: how long an instruction takes in them, and what the kernel's work costs.

All of them are emulated. With ``icount:N`` guest time advances by 2**N ns an instruction, whichever of the vCPUs
executes it: busy vCPUs share the work of one, while the clock of every running task goes on. With ``tcg-mt`` vCPUs
run side by side and share the host's CPUs. Rates and costs given here are those of a vCPU that is busy alone; the
model divides the work (its parameter ``shared_cpus``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from numalab.scenarios._command import Piece, ScenarioError
from numalab.workload import Access, Processes, Region

MONITOR_NAME, MONITOR_NICE = "monitor", -15


@dataclass(frozen=True)
class Cost:
    """What a piece of work costs.

    Attributes
    ----------
    instructions : float
        Executed by the task itself.
    per_other : float
        On top for every other thread of the process whose vCPU waits for its turn: it may hold the page table's lock.
    source : str
        What it is derived from, or the traces it was fitted to.
    """

    instructions: float
    per_other: float
    source: str


#: Every cost of the kernel's work, once for all traces. Numbers were fitted to b_* and repetition 1 of S0 and S2 only.
COSTS: dict[str, Cost] = {
    "look": Cost(
        150, 0, "fitted: b_wrongnode_bound, scans that mark nothing stretch the next interval by 8-12 ms / 8192 pages"
    ),
    "mark": Cost(
        310,
        97,
        "fitted: b_wrongnode_bound, the scan that marks 8192 pages takes 28-32 ms; S2 r1 with 8 busy threads: "
        "work_ns a marked page is 810-1590 instructions with the look, median 1136",
    ),
    "hint_fault": Cost(
        800,
        510,
        "derived: trap, fault handler and accounting, some 800; fitted: S2 r1 with 8 busy threads, "
        "(hint_ns - mig_ns) / hint_faults is 1740-6630 instructions (and one of 10,000), median 4360",
    ),
    "wp_fault": Cost(1500, 0, "fitted: S2 r1, run time of p1 against p1p2: 40,000 faults fewer save 0.5 s"),
    "migrate": Cost(
        9100, 0, "fitted: b_follow, 0.72 s for 8192 migrating faults, less fault and copy: Debian's kernels, traced"
    ),
    "migrate_toggle": Cost(
        4360, 0, "fitted: S2 r1 roomy, mig_ns / mig_try is 4450-7760 instructions, median 5360, less the copy"
    ),
    "copy_page": Cost(
        1000, 0, "derived: 512 words of 8 bytes, moved by a repeated instruction that is counted each time"
    ),
    "first_touch": Cost(2300, 0, "fitted: S2 r1, init_s = 0.081 for 4352 pages"),
}
#: ns until one more vCPU that waits for its turn has answered an interrupt, for each process that maps a moving page.
#: Fitted: S0 anon_n16 trap r1, mig_ns / mig_ok = 27.6 ms with 16 mappings and 7 other busy vCPUs.
IPI_NS = 246_000
#: ns that a scanner spins, for each other busy vCPU that waits for its turn, until all have flushed what it changed.
#: Debian's kernels, derived: a vCPU that spins gives up its turn, and the turn of each other lasts to the next tick.
#: Toggle kernel, fitted: S2 r1, scans that mark 5 to 11 pages in several areas take less than half a ms.
FLUSH_NS = {True: 0, False: 4_000_000}
#: Instructions executed for one of a program's: ticks, daemons, the sampler.
#: Fitted: b_wrongnode_bound, 999,400 visits of 121 instructions a second at 8 ns.
SYSTEM = 1.033
#: Instructions a second of the program that writes the logs (nice -15, so it runs at once, and its load of 28 tasks
#: while it runs drives others away). Toggle kernel, derived: reading /proc/stat 20 times a second, some 60,000 each,
#: and the rest once a second, 2.4 million: S2 r1 shows 16.1 to 16.8 of the 20 readings, S0 r1 17.7 to 17.9. Debian's
#: kernels, fitted: b_wrongnode_bound, a thirtieth of all instructions is not the program's, half of it ticks.
MONITOR = {True: 3.4e6, False: 2.0e6}
#: How long it runs or sleeps at a time, ms. Chosen: between its short readings and its long one.
MONITOR_MS = 50.0
#: Its memory, kB, and how many pages it visits in a second of its own. Derived from its source: the part of its buffer
#: that it fills, stack, heap and the libraries' data, some 16 pages; 20 short readings touch some 4, one a second all.
MONITOR_KB, MONITOR_PAGES_PER_S = 64, 400.0
#: tcg-mt: ns an instruction while no other vCPU is busy.
#: Fitted: b_follow_2x2_mt_P16, 555,000 visits of 121 instructions a second, mean of the quiet seconds.
MT_NS = 14.9


@dataclass(frozen=True)
class Guest:
    """A guest, as far as programs see it.

    Attributes
    ----------
    nodes : tuple of int
        Ids.
    cpus_per_node : tuple of int
    instruction_ns : float
        Time of an instruction while one vCPU is busy.
    parallel : float
        vCPUs that run at the same time.
    huge : bool
        Transparent huge pages for all anonymous memory.
    toggle : bool
        The kernel is the one with toggles, not Debian's.
    system : float
        Overhead; see `SYSTEM`.
    """

    nodes: tuple[int, ...]
    cpus_per_node: tuple[int, ...]
    instruction_ns: float
    parallel: float = 1.0
    huge: bool = False
    toggle: bool = False
    system: float = SYSTEM

    def monitor(self, busy: float) -> Piece:
        """Return the program that writes the logs while so many vCPUs are busy."""
        share = self.ns(MONITOR[self.toggle], busy + 1) / 1e6
        demand = max(1, min(999, round(share)))
        memory = f"{MONITOR_NAME}.own"
        return Piece(
            (Processes(MONITOR_NAME, demand=demand, wake_ms=MONITOR_MS, nice=MONITOR_NICE),),
            (Region(memory, MONITOR_KB / 1024, (MONITOR_NAME,), block_kb=4, first_touch="self"),),
            (Access(memory, pages_per_s=MONITOR_PAGES_PER_S, write=1.0),),
            busy=0.0,
        )

    @property
    def cpus(self) -> int:
        """Number of vCPUs."""
        return sum(self.cpus_per_node)

    def node(self, number: int) -> int:
        """Return the id of a node that a program names by a number, modulo their count."""
        return self.nodes[number % len(self.nodes)]

    def ns(self, instructions: float, busy: float = 1.0) -> float:
        """Return the guest time of so many instructions of a task while ``busy`` vCPUs are busy."""
        return instructions * self.instruction_ns * max(1.0, busy / self.parallel)

    def rate(self, instructions: float) -> float:
        """Return how often a second a task does a step of so many instructions while its vCPU is busy alone."""
        return 1e9 / (self.ns(instructions) * self.system)

    def waiting(self, busy: float) -> float:
        """Return how many of the busy vCPUs wait for their turn."""
        return max(0.0, busy - self.parallel)

    def cost_ns(self, name: str, threads: float = 1.0) -> int:
        """Return a cost of `COSTS` in ns of work, while so many threads of the process are busy."""
        cost = COSTS[name]
        return round(self.ns(cost.instructions + cost.per_other * self.waiting(threads)))


def clock(accel: str, host_cpus: int, source: str) -> tuple[float, float, float]:
    """Read the accelerator of the emulator.

    Returns
    -------
    instruction_ns, parallel, system : float
        As in `Guest`.

    Raises
    ------
    ScenarioError
        Neither ``icount:N``, ``tcg-mt``, nor qemu's own words for them.
    """
    shift = re.search(r"icount(?::|\s+shift=)(\d+)", accel)
    if shift is not None:
        return float(2 ** int(shift[1])), 1.0, SYSTEM
    if accel == "tcg-mt" or "thread=multi" in accel:
        return MT_NS, float(host_cpus), 1.0
    raise ScenarioError(f"{source}: qemu.accel: expected icount:N or tcg-mt (thread=multi), got {accel!r}")


def params(guest: Guest, busy: float, threads: float, *, many_mappings: bool) -> dict[str, float]:
    """Return the costs as model parameters.

    Parameters
    ----------
    guest : Guest
    busy : float
        vCPUs that the workload keeps busy.
    threads : float
        Busy threads of each process.
    many_mappings : bool
        Pages are mapped by many processes, each of which must be interrupted to move one.
    """
    return {
        "pte_scan_ns": guest.cost_ns("look"),
        "pte_update_ns": guest.cost_ns("mark", threads),
        "hint_fault_ns": guest.cost_ns("hint_fault", threads),
        # no lock is waited for between a page's isolation and its unmapping
        "isolate_ns": guest.cost_ns("hint_fault"),
        "wp_fault_ns": guest.cost_ns("wp_fault"),
        "migrate_ns": guest.cost_ns("migrate_toggle" if guest.toggle else "migrate"),
        "copy_page_ns": guest.cost_ns("copy_page"),
        # part of migrate_ns while one process maps the page
        "unmap_ns": 0,
        "ipi_wait_ns": round(IPI_NS * guest.waiting(busy)) if many_mappings else 0,
        "shared_cpus": round(1000 * guest.parallel),
        # a tick: what comes of a scan or a fault takes longer than that
        "step_us": 4000,
        "flush_wait_ns": round(FLUSH_NS[guest.toggle] * guest.waiting(busy) / guest.parallel),
        # emulated memory is equally far from everywhere
        "remote_cost": 0,
    }
