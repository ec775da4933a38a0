"""Reader and writer of the output of ``perf bench numa mem``.

The grammar is that of tools/perf/bench/numa.c, whose prints are the same in Linux 3.16
and 6.18: a banner per test, a set-up block, progress records, result rows. Pastes are
taken as people make them: quoted in mail, with CRLF, numbered, with the carriage returns
between records kept, turned into ``^M`` or lost.

perf calls a run converged when every process sits on exactly one node, judged by the place
each thread had at the end of its last loop, at the moment the reporting thread (the last
one of the last process) ends a loop, at most once a second.
"""

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from numalab.readers._perf_dataset import format_progress, format_record, observe, skew, tabulate, to_dataset
from numalab.readers._perf_types import (
    RESULTS,
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
    "RESULTS",
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

_BY_TEXT = {text: name for name, (_, text, _) in RESULTS.items()}
#: Rows that -dd adds for every thread.
_THREAD_ROWS = {"thread-speed", "thread-system-time", "thread-user-time"}

_NUMBER = r"-?\d+(?:\.\d+)?"
_RECORD_START = re.compile(rf"(?=#\s+{_NUMBER}%\s+\[)")
_RECORD = re.compile(
    rf"#\s+(?P<percent>{_NUMBER})%\s+\[(?P<minutes>{_NUMBER}) mins\](?P<nodes>(?:\s+\d+/\d+)+)"
    r"\s*\[\s*(?P<distance>\d+)/(?P<groups>\d+)\s*\]"
    r"\s+l:\s*(?P<low>-?\d+)-\s*(?P<high>-?\d+)\s*\(\s*(?P<diff>-?\d+)\)"
    rf"(?:\s+\[\s*(?P<skew>{_NUMBER})%\])?(?:\s+\{{(?P<few>-?\d+)-(?P<many>\d+)\}})?"
    rf"(?:\s+\(\s*(?P<flag_s>{_NUMBER})s (?P<flag>converged|de-converged)\))?\s*$"
)
_TICK = re.compile(rf"#\s+(?P<percent>{_NUMBER})%\s+\[(?P<minutes>{_NUMBER}) mins\]\s*$")
_BANNER = re.compile(r'#\s*Running\s+(?P<name>[^"]*?),?\s*"perf bench numa\b(?:\s+(?:numa-)?mem\b)?(?P<args>[^"]*)"')
_HEADER = re.compile(r"#\s*Running (?:'?numa/mem'? benchmark|test on:)")
_COMMAND = re.compile(r"(?P<before>.*?)\bperf bench numa (?:numa-)?mem\b(?P<args>[^\"']*)$")
_PROMPT = re.compile(r"(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*|.*[#$%])?\s*$")
_TASKS = re.compile(r"#\s*(?P<tasks>\d+) tasks? will execute \(on (?P<nodes>\d+) nodes?, (?P<cpus>\d+) CPUs?\):")
_SIZE = re.compile(
    r"#\s*(?P<loops>-?\d+)x\s+(?P<mb>\d+)MB\s+(?P<kind>global|process|thread)\s+(?:shared|local)\s+mem op"
)
_STARTUP = re.compile(r"#\s*Startup synchronization:.*?(?P<seconds>[\d.]+) seconds")
_ROW = re.compile(r"(?P<test>[^,]+?),\s+(?P<value>[^\s,]+),\s+(?P<unit>[^\s,]+),?\s+(?P<name>\S+)$")
_THREAD_ROW = re.compile(
    r"process(?P<p>\d+):thread(?P<t>\d+)\s+(?P<value>[^\s,]+),\s+(?P<unit>[^\s,]+),?\s+(?P<name>\S+)$"
)
_LONG_ROW = re.compile(r"(?P<value>\S+)\s+(?P<text>(?:secs|%|GB|nsecs/byte|GB/sec).*)$")
_NOTE = re.compile(
    r"# binding tasks to|# NOTE:|WARNING: Could not (?:en|dis)able THP|\(injecting perturbalance|Test not applicable"
    r"|#\s+process\s+\d+(?:: PID| global mem)|#\s+thread\s+\d+ /|#\s*\d+ /\s*\d+: .*nsecs/op|got (?:CPU|NODE) list:"
    r"|binding to node|#\s+\d+(?:/\d+)?(?:,\s*\d+(?:/\d+)?)*$|CPUs: |NODEs: |token:"
)
_QUOTE = re.compile(r"(?:\s{0,2}>)+ ?")
# "12: ", "12. ", "12) ", "12<tab>" before anything; a bare "12 " only before a "#". A result row begins with a
# decimal number, which none of these takes.
_LIST_NUMBER = re.compile(r"\s*\d{1,6}(?:[:.)]?\s*$|[:.)]\s+|\t|\s+(?=#))")


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
        When a line has perf's shape but contradicts itself or its test, or when the
        text holds nothing of perf's.
    """
    reader = _Reader(Report(source))
    pieces = list(_pieces(text))
    for index, (line, piece) in enumerate(pieces):
        reader.take(line, piece, last=index == len(pieces) - 1)
    report = reader.report
    # A banner without anything is the head of a suite (-a), or a paste that ends there.
    report.tests = [t for t in report.tests if t.setup != Setup() or t.progress or t.ticks or t.results or t.notes]
    if not report.tests:
        raise PerfBenchError(
            f"{source}: no output of perf bench numa mem found in {len(text.splitlines())} lines;"
            " expected progress records (#  0.0%  [0.2 mins] ...), result rows or a set-up block"
        )
    return report


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text into lines and progress records, without quoting, numbering and blank lines."""
    for number, line in enumerate(text.replace("\r\n", "\n").replace("^M", "\r").split("\n"), 1):
        quote = _QUOTE.match(line)
        bare = line[quote.end() :] if quote else line
        label = _LIST_NUMBER.match(bare)
        bare = bare[label.end() :] if label else bare
        for part in bare.split("\r"):
            for piece in _RECORD_START.split(part):
                if piece.strip().strip("#"):
                    yield number, piece.strip()


class _Reader:
    """State while reading: the test that lines belong to, and a command seen before its test."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.current: Test | None = None
        self.command: Options | None = None

    def fail(self, line: int, message: str) -> PerfBenchError:
        return PerfBenchError(f"{self.report.source}:{line}: {message}")

    def open(self, line: int, name: str = "main", options: Options | None = None, named: bool = False) -> Test:
        self.current = Test(name, line, options or self.command, named=named)
        self.command = None
        self.report.tests.append(self.current)
        return self.current

    def take(self, line: int, piece: str, last: bool) -> None:
        if _RECORD_START.match(piece):
            self.record(line, piece, last)
        elif match := _BANNER.match(piece):
            name = match["name"].strip()
            self.open(line, name, self.options(line, match["args"]), named=True)
        elif _HEADER.match(piece):
            self.report.headers.append((line, piece))
        elif match := _TASKS.match(piece):
            test = self.current
            if test is None or test.setup != Setup() or test.progress or test.results:
                test = self.open(line)
            test.setup.tasks, test.setup.nodes, test.setup.cpus = (
                int(match[key]) for key in ("tasks", "nodes", "cpus")
            )
        elif match := _SIZE.match(piece):
            self.size(line, match)
        elif match := _STARTUP.match(piece):
            (self.current or self.open(line)).startup_s = float(match["seconds"])
        elif match := _THREAD_ROW.match(piece):
            self.thread_row(line, piece, match)
        elif (match := _ROW.match(piece)) and match["name"] in RESULTS:
            self.row(line, match["name"], match["value"], match["unit"], match["test"].strip())
        elif (match := _LONG_ROW.match(piece)) and match["text"] in _BY_TEXT:
            name = _BY_TEXT[match["text"]]
            self.row(line, name, match["value"], RESULTS[name][0], None)
        elif (match := _COMMAND.match(piece)) and _PROMPT.match(match["before"]):
            self.command = self.options(line, match["args"])
            self.current = None
        elif _NOTE.match(piece):
            (self.current or self.open(line)).notes.append((line, piece))
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
        setup = (self.current or self.open(line)).setup
        loops = int(match["loops"])
        if setup.loops not in (None, loops):
            raise self.fail(line, f"expected {setup.loops}x as in the lines before, got {loops}x")
        setup.loops = loops
        setattr(setup, f"{match['kind']}_mb", int(match["mb"]))

    def number(self, line: int, text: str, what: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self.fail(line, f"{what}: expected a number, got {text!r}") from None

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
        value = self.number(line, match["value"], match["name"])
        row = Result(match["name"], value, match["unit"], match["name"], line)
        self.current.thread_results.append((int(match["p"]), int(match["t"]), row))

    def record(self, line: int, piece: str, last: bool) -> None:
        match, tick = _RECORD.match(piece), _TICK.match(piece)
        if match is None and tick is None:
            if last:
                self.report.skipped.append((line, piece, "record cut off at the end of the text"))
                return
            raise self.fail(line, f"expected a whole progress record, got {piece!r}; paste the lines unwrapped")
        test = self.current
        if test is None or test.results:
            test = self.open(line)
        if match is None:
            assert tick is not None
            test.ticks.append((line, float(tick["percent"]), float(tick["minutes"])))
            return
        record = _progress(line, match)
        problem = _contradiction(record, match, test)
        if problem:
            raise self.fail(line, f"{problem}; was the line changed or cut?")
        test.progress.append(record)


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
