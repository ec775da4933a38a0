"""What ``perf bench numa mem`` prints, as plain types; `numalab.readers.perf_bench` is the way in."""

import getopt
import shlex
from dataclasses import dataclass, field

#: Result rows: short name -> (unit, long text, variable of the schema).
RESULTS = {
    "NUMA-convergence-latency": ("secs", "secs latency to NUMA-converge", "perf_latency_s"),
    "runtime-max/thread": ("secs", "secs slowest (max) thread-runtime", "perf_runtime_max_s"),
    "runtime-min/thread": ("secs", "secs fastest (min) thread-runtime", "perf_runtime_min_s"),
    "runtime-avg/thread": ("secs", "secs average thread-runtime", "perf_runtime_avg_s"),
    "spread-runtime/thread": ("%", "% difference between max/avg runtime", "perf_spread_percent"),
    "data/thread": ("GB", "GB data processed, per thread", "perf_thread_gb"),
    "data-total": ("GB", "GB data processed, total", "perf_total_gb"),
    "runtime/byte/thread": ("nsecs", "nsecs/byte/thread runtime", "perf_ns_per_byte"),
    "thread-speed": ("GB/sec", "GB/sec/thread speed", "perf_thread_gb_per_s"),
    "total-speed": ("GB/sec", "GB/sec total speed", "perf_total_gb_per_s"),
}

#: Long name -> short letter. A value is expected where `VALUED_OPTIONS` has the letter.
LONG_OPTIONS = {
    "nr_proc": "p",
    "nr_threads": "t",
    "mb_global": "G",
    "mb_proc": "P",
    "mb_proc_locked": "L",
    "mb_thread": "T",
    "nr_loops": "l",
    "nr_secs": "s",
    "usleep": "u",
    "perturb_secs": "x",
    "thp": "H",
    "cpus": "C",
    "memnodes": "M",
    "data_reads": "R",
    "data_writes": "W",
    "data_backwards": "B",
    "data_zero_memset": "Z",
    "data_rand_walk": "r",
    "init_zero": "z",
    "init_random": "I",
    "init_cpu0": "0",
    "show_details": "d",
    "all": "a",
    "show_convergence": "c",
    "measure_convergence": "m",
    "quiet": "q",
    "serialize-startup": "S",
}
VALUED_OPTIONS = "ptGPLTlsuxHCM"
FLAG_OPTIONS = "".join(letter for letter in LONG_OPTIONS.values() if letter not in VALUED_OPTIONS)


@dataclass(frozen=True)
class Options:
    """What a command line asks for.

    Attributes
    ----------
    args : str
        The arguments after ``perf bench numa mem``.
    processes, threads : int
        -p and -t, threads per process; 1 by default.
    seconds : int
        -s, time limit; 5 by default, 0 for none.
    loops : int or None
        -l, loop limit.
    measure : bool
        -m: stop when converged.
    suite : bool
        -a: run all built-in tests.
    """

    args: str
    processes: int = 1
    threads: int = 1
    seconds: int = 5
    loops: int | None = None
    measure: bool = False
    suite: bool = False

    @property
    def limit_s(self) -> int | None:
        """Time limit in seconds; None when the run may end for another reason than time or convergence."""
        return self.seconds if self.seconds and self.loops is None else None


def parse_options(args: str) -> Options:
    """Read the arguments after ``perf bench numa mem``.

    Raises
    ------
    ValueError
        For an option perf does not have, or a number that is none.
    """
    valued = [f"{name}=" for name, letter in LONG_OPTIONS.items() if letter in VALUED_OPTIONS]
    flags = [name for name, letter in LONG_OPTIONS.items() if letter not in VALUED_OPTIONS]
    short = "".join(letter + (":" if letter in VALUED_OPTIONS else "") for letter in LONG_OPTIONS.values())
    try:
        pairs, rest = getopt.getopt(shlex.split(args), short, valued + flags + [f"no-{name}" for name in flags])
    except getopt.GetoptError as error:
        raise ValueError(str(error)) from error
    if rest:
        raise ValueError(f"unexpected argument {rest[0]!r}")
    given = {LONG_OPTIONS.get(key.lstrip("-"), key.lstrip("-")): value for key, value in pairs}
    for letter in "ptsl":
        # int() itself refuses thousands of digits, with a message about Python
        if len(given.get(letter, "")) > 9:
            raise ValueError(f"-{letter}: expected a number of at most 9 digits")
    return Options(
        args=" ".join(args.split()),
        processes=int(given.get("p", 1)),
        threads=int(given.get("t", 1)),
        seconds=int(given.get("s", 5)),
        loops=int(given["l"]) if "l" in given else None,
        measure="m" in given,
        suite="a" in given,
    )


class PerfBenchError(ValueError):
    """The text contradicts the format; the message names file, line and what was expected."""


@dataclass(frozen=True)
class Progress:
    """One progress record.

    Attributes
    ----------
    percent, minutes : float
        Share of the loops done; run time.
    threads, processes : tuple of int
        Per node: threads last seen there, processes with a thread there.
    distance, groups : int
        Most minus fewest threads on a node; sum of `processes`.
    loops_min, loops_max : int
        Loops done by the slowest and the fastest thread; -1 when no thread has finished one.
    nodes_min, nodes_max : int or None
        Fewest and most nodes a process is spread over; None when not printed, which it is
        not when every process sits on one node.
    flag : {None, "converged", "de-converged"}
        Change of state, if any.
    flag_s : float or None
        Its time, seconds.
    line : int
        Line of the text; 0 for a record not read from text.
    """

    percent: float
    minutes: float
    threads: tuple[int, ...]
    processes: tuple[int, ...]
    distance: int
    groups: int
    loops_min: int
    loops_max: int
    nodes_min: int | None = None
    nodes_max: int | None = None
    flag: str | None = None
    flag_s: float | None = None
    line: int = 0


@dataclass(frozen=True)
class Result:
    """One result row: short name, value, unit, perf's long text, line of the text."""

    name: str
    value: float
    unit: str
    text: str
    line: int


@dataclass
class Setup:
    """The set-up block; None where the paste does not say. Sizes in MiB, loops -1: no limit."""

    tasks: int | None = None
    nodes: int | None = None
    cpus: int | None = None
    global_mb: int | None = None
    process_mb: int | None = None
    thread_mb: int | None = None
    loops: int | None = None


@dataclass
class Test:
    """One test: what was asked for, what was printed.

    Attributes
    ----------
    name : str
        As in the banner and the result rows; "main" for a single test.
    line : int
        Where it begins.
    options : Options or None
        None when the paste holds no command line.
    setup : Setup
    startup_s : float or None
        Seconds until all threads had started.
    progress : list of Progress
    ticks : list of (line, percent, minutes)
        Records without places, as printed when convergence is not measured.
    results : list of Result
    thread_results : list of (process, thread, Result)
        Rows that -dd adds.
    notes : list of (line, text)
        perf's remarks: bindings, warnings, perturbations.
    unread : list of int
        Lines of progress records that were skipped, because cut or contradicting themselves.
    """

    __test__ = False  # not a test for pytest to collect

    name: str
    line: int
    options: Options | None = None
    setup: Setup = field(default_factory=Setup)
    startup_s: float | None = None
    progress: list[Progress] = field(default_factory=list)
    ticks: list[tuple[int, float, float]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    thread_results: list[tuple[int, int, Result]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    named: bool = False

    def value(self, name: str) -> float | None:
        """Look up a result row by its short name; None when it is not there."""
        return next((row.value for row in self.results if row.name == name), None)

    @property
    def converged(self) -> bool | None:
        """Whether the test ended converged; None when the text does not tell.

        The last change of state decides; without result rows only if that is to converged,
        because a text without them may be cut anywhere, even just before the change. A skipped
        record may be the one that matters, so then nothing is concluded. With result rows but
        no change, the rows do: perf prints its run time as "convergence latency" whether or
        not it converged, but a run that converges stops threads before the limit of -s, while
        at the limit none stops earlier.
        """
        if self.unread:
            return None
        flags = [record.flag for record in self.progress if record.flag]
        if flags and (flags[-1] == "converged" or self.results):
            return flags[-1] == "converged"
        if not self.results:
            return None
        shortest, limit = self.value("runtime-min/thread"), self.options and self.options.limit_s
        if self.value("NUMA-convergence-latency") is not None and shortest is not None and limit:
            # Threads start a moment apart, hence the 2 %.
            return shortest < 0.98 * limit
        return False if self.progress else None

    @property
    def unknown(self) -> str | None:
        """Why the text does not tell whether the test converged; None when it does, or was not measured."""
        if self.converged is not None:
            return None
        if self.unread:
            count = len(self.unread)
            return f"unknown: {count} progress record{'s were' if count > 1 else ' was'} skipped"
        return None if self.results else "unknown: the output ends before the result rows"

    @property
    def conclusion(self) -> str | None:
        """In words, whether the test converged; None when it was not measured."""
        if self.converged is None:
            return self.unknown
        return "did not converge" if self.converged_s is None else f"converged after {self.converged_s:g} s"

    @property
    def last_line(self) -> int:
        """The last line that is known to belong to the test."""
        lines = [self.line, *(record.line for record in self.progress), *(line for line, _, _ in self.ticks)]
        return max([*lines, *(row.line for row in self.results), *(line for line, _ in self.notes), *self.unread])

    @property
    def converged_s(self) -> float | None:
        """Convergence time in seconds as perf reports it; None when it did not converge or that is unknown."""
        if not self.converged:
            return None
        flags = [record.flag_s for record in self.progress if record.flag == "converged"]
        return flags[-1] if flags else self.value("NUMA-convergence-latency")


@dataclass
class Report:
    """What a text held.

    Attributes
    ----------
    source : str
        Name of the file, for messages.
    tests : list of Test
    headers : list of (line, text)
        perf's lines about the whole call, and for each test of which the text does not tell
        whether it converged, why.
    skipped : list of (line, text, reason)
        Lines that were not used.
    """

    source: str
    tests: list[Test] = field(default_factory=list)
    headers: list[tuple[int, str]] = field(default_factory=list)
    skipped: list[tuple[int, str, str]] = field(default_factory=list)

    def test(self, name: str) -> Test:
        """Look up the first test of a name; KeyError lists the names there are."""
        for test in self.tests:
            if test.name == name:
                return test
        raise KeyError(f"{self.source}: no test {name!r}; there are: {', '.join(test.name for test in self.tests)}")

    def summary(self) -> str:
        """Say in a few lines what was understood and, line by line, what was skipped."""
        records = sum(len(test.progress) + len(test.ticks) for test in self.tests)
        rows = sum(len(test.results) + len(test.thread_results) for test in self.tests)
        head = f"{self.source}: {len(self.tests)} tests, {records} progress records, {rows} result rows"
        lines = [f"  line {line} skipped: {text.strip()[:60]!r} ({reason})" for line, text, reason in self.skipped]
        return "\n".join([head, *lines])
