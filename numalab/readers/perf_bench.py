"""Reader and writer of the output of ``perf bench numa mem``.

The grammar is that of tools/perf/bench/numa.c, whose prints are the same in Linux 3.16
and 6.18: a banner per test, a set-up block, progress records, result rows. Pastes are
taken as people make them: quoted or wrapped in mail, with CRLF, numbered, with the carriage returns
between records kept, turned into ``^M`` or lost.

perf calls a run converged when every process sits on exactly one node, judged by the place
each thread had at the end of its last loop, at the moment the reporting thread (the last
one of the last process) ends a loop, at most once a second.
"""

import re
from os import PathLike
from pathlib import Path

from numalab.readers._perf_dataset import format_progress, format_record, observe, skew, tabulate, to_dataset
from numalab.readers._perf_lines import (
    BANNER,
    BY_TEXT,
    HEADER,
    RECORD,
    RECORD_START,
    SIZE,
    STARTUP,
    TASKS,
    THREAD_ROW,
    TICK,
    command,
    is_fragment,
    long_row,
    pieces,
    row,
)
from numalab.readers._perf_types import (
    FLAG_OPTIONS,
    LONG_OPTIONS,
    RESULTS,
    VALUED_OPTIONS,
    Options,
    PerfBenchError,
    Progress,
    Report,
    Result,
    Setup,
    Test,
    parse_options,
)

__all__ = [
    "FLAG_OPTIONS",
    "LONG_OPTIONS",
    "RESULTS",
    "VALUED_OPTIONS",
    "Options",
    "PerfBenchError",
    "Progress",
    "Report",
    "Result",
    "Setup",
    "Test",
    "format_progress",
    "format_record",
    "observe",
    "parse",
    "parse_options",
    "read",
    "tabulate",
    "to_dataset",
]

#: Rows that -dd adds for every thread.
_THREAD_ROWS = {"thread-speed", "thread-system-time", "thread-user-time"}

_NOTE = re.compile(
    r"# binding tasks to|# NOTE:|WARNING: Could not (?:en|dis)able THP|\(injecting perturbalance|Test not applicable"
    r"|#\s+process\s+\d+(?:: PID| global mem)|#\s+thread\s+\d+ /|#\s*\d+ /\s*\d+: .*nsecs/op|got (?:CPU|NODE) list:"
    r"|binding to node|#\s+\d+(?:/\d+)?(?:,\s*\d+(?:/\d+)?)*$|CPUs: |NODEs: |token:"
)
_VALUE = re.compile(r"\d+(?:\.\d+)?")
#: perf's numbers are C ints; with this many digits they fit one.
_DIGITS = 9
_LONG_NUMBER = re.compile(rf"\d{{{_DIGITS + 1},}}")


def read(path: str | PathLike[str]) -> Report:
    """Read a file of ``perf bench numa mem`` output; see `parse`."""
    # as bytes, because text mode would turn the carriage returns between records into line ends
    return parse(Path(path).read_bytes().decode("utf-8", errors="replace"), str(path))


def parse(text: str, source: str = "<text>") -> Report:
    """Understand a paste of ``perf bench numa mem`` output.

    Parameters
    ----------
    text : str
        One or several tests, alone or within a mail.
    source : str
        Name for messages.

    Returns
    -------
    Report

    Raises
    ------
    PerfBenchError
        When a set-up line or result row has perf's shape but cannot be, or when the text holds
        nothing of perf's. A progress record that cannot be is skipped and said, and leaves
        it unknown whether its test converged.
    """
    reader = _Reader(Report(source))
    found = list(pieces(text))
    for index, (line, piece) in enumerate(found):
        reader.take(line, piece, last=index == len(found) - 1)
    report = reader.report
    # A banner without anything is the head of a suite (-a), or a paste that ends there.
    report.tests = [t for t in report.tests if t.setup != Setup() or t.progress or t.ticks or t.results or t.notes]
    if not report.tests:
        if reader.contradictions:
            raise reader.fail(*reader.contradictions[0])
        raise PerfBenchError(
            f"{source}: no output of perf bench numa mem found in {len(text.splitlines())} lines;"
            " expected progress records (#  0.0%  [0.2 mins] ...), result rows or a set-up block"
        )
    report.headers += [(t.last_line, f"convergence of test {t.name}: {t.unknown}") for t in report.tests if t.unknown]
    return report


class _Reader:
    """State while reading: the test that lines belong to, and a command seen before its test."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.current: Test | None = None
        self.command: Options | None = None
        self.contradictions: list[tuple[int, str]] = []

    def fail(self, line: int, message: str) -> PerfBenchError:
        return PerfBenchError(f"{self.report.source}:{line}: {message}")

    def open(self, line: int, name: str = "main", options: Options | None = None, named: bool = False) -> Test:
        self.current = Test(name, line, options or self.command, named=named)
        self.command = None
        self.report.tests.append(self.current)
        return self.current

    def take(self, line: int, piece: str, last: bool) -> None:
        if RECORD_START.match(piece):
            self.record(line, piece, last)
        elif match := BANNER.match(piece):
            name = match["name"].strip()
            self.open(line, name, self.options(line, match["args"]), named=True)
        elif HEADER.match(piece):
            self.report.headers.append((line, piece))
        elif match := TASKS.match(piece):
            self.check_digits(line, piece)
            test = self.current
            if test is None or test.setup != Setup() or test.progress or test.results:
                test = self.open(line)
            test.setup.tasks, test.setup.nodes, test.setup.cpus = (
                int(match[key]) for key in ("tasks", "nodes", "cpus")
            )
        elif match := SIZE.match(piece):
            self.size(line, match)
        elif match := STARTUP.match(piece):
            seconds = self.number(line, match["seconds"], "startup synchronization")
            (self.current or self.open(line)).startup_s = seconds
        elif match := THREAD_ROW.match(piece):
            self.thread_row(line, piece, match)
        elif match := row(piece):
            self.row(line, match["name"], match["value"], match["unit"], match["test"].strip())
        elif match := long_row(piece):
            name = BY_TEXT[match["text"]]
            self.row(line, name, match["value"], RESULTS[name][0], None)
        elif match := command(piece):
            self.command = self.options(line, match["args"])
            self.current = None
        elif _NOTE.match(piece):
            (self.current or self.open(line)).notes.append((line, piece))
        elif is_fragment(piece) and (self.current is None or not self.current.results):
            self.skip_record(line, piece, "piece of a wrapped progress record whose other lines are not here")
        else:
            self.report.skipped.append((line, piece, "not output of perf bench numa mem"))

    def options(self, line: int, args: str) -> Options | None:
        if not args.strip():
            return None  # heads a suite, or whoever printed this did not know
        try:
            return parse_options(args)
        except ValueError as error:
            self.report.skipped.append((line, args.strip(), f"options not understood: {error}"))
            return None

    def size(self, line: int, match: re.Match[str]) -> None:
        self.check_digits(line, match.group())
        setup = (self.current or self.open(line)).setup
        loops = int(match["loops"])
        if setup.loops not in (None, loops):
            raise self.fail(line, f"expected {setup.loops}x as in the lines before, got {loops}x")
        setup.loops = loops
        setattr(setup, f"{match['kind']}_mb", int(match["mb"]))

    def check_digits(self, line: int, text: str) -> None:
        if match := _LONG_NUMBER.search(text):
            digits = len(match.group())
            raise self.fail(line, f"expected numbers of at most {_DIGITS} digits, got one of {digits} digits")

    def number(self, line: int, text: str, what: str) -> float:
        self.check_digits(line, text)
        if not _VALUE.fullmatch(text):
            raise self.fail(line, f"{what}: expected a number from 0 up, got {text[:20]!r}")
        return float(text)

    def row(self, line: int, name: str, value: str, unit: str, test_name: str | None) -> None:
        expected, text, _ = RESULTS[name]
        if unit != expected:
            raise self.fail(line, f"{name}: expected the unit {expected}, got {unit}")
        test = self.current
        if test is not None and not test.named and not test.results and test_name:
            test.name = test_name
        wrong_test = test is None or (test_name is not None and test.name != test_name)
        if test is None or wrong_test or test.value(name) is not None:
            test = self.open(line, test_name or "main")
        test.results.append(Result(name, self.number(line, value, name), unit, text, line))

    def thread_row(self, line: int, piece: str, match: re.Match[str]) -> None:
        if self.current is None or match["name"] not in _THREAD_ROWS:
            self.report.skipped.append((line, piece, "row of a thread without its test, or of an unknown kind"))
            return
        self.check_digits(line, f"{match['p']} {match['t']}")
        value = self.number(line, match["value"], match["name"])
        row = Result(match["name"], value, match["unit"], match["name"], line)
        self.current.thread_results.append((int(match["p"]), int(match["t"]), row))

    def skip_record(self, line: int, piece: str, reason: str) -> None:
        """Report a record, or a piece of one, as unused; its test's convergence is unknown from then on."""
        self.report.skipped.append((line, piece, reason))
        (self.current or self.open(line)).unread.append(line)

    def record(self, line: int, piece: str, last: bool) -> None:
        self.check_digits(line, piece)
        match, tick = RECORD.match(piece), TICK.match(piece)
        test = self.current
        if test is None or test.results:
            test = self.open(line)
        if match is not None:
            record = _progress(line, match)
            problem = _contradiction(record, match, test)
            if problem is None:
                test.progress.append(record)
                return
            problem += "; was the line changed or cut?"
            self.contradictions.append((line, problem))
            self.skip_record(line, piece, problem)
        elif tick is not None:
            test.ticks.append((line, float(tick["percent"]), float(tick["minutes"])))
        elif last:
            self.skip_record(line, piece, "record cut off at the end of the text")
        else:
            self.skip_record(line, piece, "not a whole progress record; was the line changed or cut?")


def _progress(line: int, match: re.Match[str]) -> Progress:
    pairs = [tuple(map(int, pair.split("/"))) for pair in match["nodes"].split()]
    return Progress(
        percent=float(match["percent"]),
        minutes=float(match["minutes"]),
        threads=tuple(pair[0] for pair in pairs),
        processes=tuple(pair[1] for pair in pairs),
        distance=int(match["distance"]),
        groups=int(match["groups"]),
        loops_min=int(match["low"]),
        loops_max=int(match["high"]),
        nodes_min=int(match["few"]) if match["few"] else None,
        nodes_max=int(match["many"]) if match["many"] else None,
        flag=match["flag"],
        flag_s=float(match["flag_s"]) if match["flag_s"] else None,
        line=line,
    )


def _contradiction(record: Progress, match: re.Match[str], test: Test) -> str | None:
    """Find what in a record cannot be: perf derives all of it from the same numbers."""
    distance, groups = max(record.threads) - min(record.threads), sum(record.processes)
    if (record.distance, record.groups) != (distance, groups):
        return f"expected [{distance}/{groups}] from the counts per node, got [{record.distance}/{record.groups}]"
    if int(match["diff"]) != record.loops_max - record.loops_min:
        return f"expected a difference of {record.loops_max - record.loops_min} loops, got {match['diff']}"
    if match["skew"] and abs(float(match["skew"]) - skew(record)) > 0.051:
        return f"expected [{skew(record):.1f}%] from the loops, got [{match['skew']}%]"
    for count in (*(len(earlier.threads) for earlier in test.progress[-1:]), test.setup.nodes):
        if count is not None and count != len(record.threads):
            return f"expected {count} nodes as before, got {len(record.threads)}"
    if test.setup.tasks is not None and sum(record.threads) > test.setup.tasks:
        return f"expected at most {test.setup.tasks} threads, got {sum(record.threads)}"
    if record.flag_s is not None and abs(record.flag_s / 60 - record.minutes) > 0.0509:
        return f"expected a time near {record.minutes} minutes, got {record.flag_s} s"
    if record.flag == "converged":
        processes = test.options.processes if test.options else record.groups
        if record.nodes_min is not None or record.groups != processes:
            return f"expected {processes} processes on one node each in a converged record"
    return None
