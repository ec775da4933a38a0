"""Reader of the log of autonuma-benchmark: numa01, numa02 and their bound variants, seconds each.

The benchmark prints a name and, on the next line, the seconds that program took. HARD_BIND binds threads beside
their memory, the best that balancing can reach; INVERSE_BIND binds them away from it, the worst. LKP runs the whole
several times into one log, each time building it anew; a name that comes again begins the next iteration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import fmean

from numalab.readers._paste import Line, lines
from numalab.readers._reading import Found, Reading, Table, no_run
from numalab.readers._text import FromText, ReadError, Skipped

FORMAT = "autonuma-benchmark"

#: Endings of the names of the best and the worst placement.
BEST, WORST = "_HARD_BIND", "_INVERSE_BIND"

_NAME = re.compile(r"numa\d\d(?:_[A-Z]+)*")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
#: What make prints while the benchmark is built, and what the script says of the machine.
_BUILD = re.compile(r"(?:gcc|cc|clang|rm -f|make(?:\[\d+\])?:?)\s.*(?:numa0|nmstat|\*\.|directory|up to date)")
_MACHINE = re.compile(r"Hyper-Threading (?:IS|is) (?P<not>NOT )?enabled|.*\bnodes?\b.*\brequired\b")
_SNIFF = re.compile(r"(?m)^[ \t>]*+numa\d\d(?:_[A-Z]+)*[ \t\r]*\n[\s>]*\d+(?:\.\d+)?[ \t\r]*$")


@dataclass(frozen=True)
class Result:
    """One program: its name, its seconds, the line of its name."""

    name: str
    seconds: float
    line: int


@dataclass
class Report(FromText):
    """What a log held.

    Attributes
    ----------
    source : str
    lines : int
    iterations : list of dict
        Name -> Result.
    built : int
        Lines of the build.
    remarks : list of (line, text)
        What the script says of the machine.
    skipped : list of Skipped
    """

    iterations: list[dict[str, Result]] = field(default_factory=list)
    built: int = 0
    remarks: list[tuple[int, str]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All programs, in the order of the log."""
        return list(dict.fromkeys(name for one in self.iterations for name in one))

    def seconds(self, name: str) -> list[float]:
        """Return the seconds of a program, of each iteration that has it."""
        return [one[name].seconds for one in self.iterations if name in one]

    def mean(self, name: str) -> float:
        """Return the mean seconds of a program.

        Raises
        ------
        KeyError
            Lists the programs there are.
        """
        if not self.seconds(name):
            raise KeyError(f"no program {name!r}; there are {', '.join(self.names)}")
        return fmean(self.seconds(name))


def looks_like(text: str) -> bool:
    """Tell whether a text holds a name of the benchmark and its seconds below it."""
    return _SNIFF.search(text) is not None


def parse(text: str, source: str = "<text>") -> Report:
    """Read a log.

    Raises
    ------
    ReadError
        No program with its seconds.
    """
    report = Report(source, len(text.splitlines()))
    name: Line | None = None
    for line in lines(text):
        stripped = line.text.strip()
        if not stripped:
            continue
        if name and _SECONDS.fullmatch(stripped):
            _add(report, Result(name.text.strip(), float(stripped), name.number))
            name = None
            continue
        _drop(report, name)
        name = line if _NAME.fullmatch(stripped) else None
        if name is None:
            _take_other(report, line)
    _drop(report, name)
    if not report.iterations:
        problem = "holds no result of autonuma-benchmark; expected a name such as numa01 and below it its seconds"
        raise ReadError(source, 0, problem)
    return report


def _add(report: Report, result: Result) -> None:
    if not report.iterations or result.name in report.iterations[-1]:
        report.iterations.append({})
    report.iterations[-1][result.name] = result


def _drop(report: Report, name: Line | None) -> None:
    """Report a name without seconds."""
    if name is not None:
        report.skipped.append(Skipped(name.number, name.text, "no seconds below this name; was the log cut?"))


def _take_other(report: Report, line: Line) -> None:
    if _BUILD.match(line.text.strip()):
        report.built += 1
    elif _MACHINE.match(line.text.strip()):
        report.remarks.append((line.number, line.text.strip()))
    else:
        report.skipped.append(Skipped(line.number, line.text, "not of a log of autonuma-benchmark"))


# ---------------------------------------------------------------- reading


def read(text: str, source: str, _release: str | None = None) -> Reading:
    """Read a log: a table of seconds by program and iteration, and one of means beside the bound variants."""
    report = parse(text, source)
    count = len(report.iterations)
    first = next(iter(report.iterations[0].values())).line
    found = [Found(first, f"{len(report.names)} programs, {count} iteration{'' if count == 1 else 's'}")]
    firsts = {what: line for line, what in reversed(report.remarks)}
    found += [Found(line, what) for what, line in firsts.items()]
    if report.built:
        found.append(Found(0, f"{report.built} lines of its build"))
    for name in report.names:
        if not name.endswith((BEST, WORST)):
            first = next(one[name].line for one in report.iterations if name in one)
            found.append(Found(first, _say(report, name)))
    return Reading(
        source,
        FORMAT,
        report.lines,
        tuple(found),
        tuple(report.skipped),
        no_run(source, "a log of autonuma-benchmark"),
        tables=(_seconds(report), _means(report)),
    )


def _say(report: Report, name: str) -> str:
    bound = [end for end in (BEST, WORST) if report.seconds(name + end)]
    beside = ", ".join(f"{end.removeprefix('_')} {report.mean(name + end):.2f} s" for end in bound)
    return f"{name}: {report.mean(name):.2f} s on average" + (f" ({beside})" if bound else "")


def _seconds(report: Report) -> Table:
    columns = ("program", *(f"iteration {i}" for i in range(1, len(report.iterations) + 1)))
    rows = tuple(
        (name, *(one[name].seconds if name in one else None for one in report.iterations)) for name in report.names
    )
    return Table("seconds", columns, rows, "s", next(iter(report.iterations[0].values())).line)


def _means(report: Report) -> Table:
    """Return means of the programs that nothing binds, beside those of their bound variants."""
    rows = []
    for name in report.names:
        if not name.endswith((BEST, WORST)):
            bound = [report.mean(name + end) if report.seconds(name + end) else None for end in (BEST, WORST)]
            rows.append((name, report.mean(name), *bound))
    return Table("means", ("program", "mean", "hard_bind", "inverse_bind"), tuple(rows), "s")
