"""A paste of several tools' output, cut into the parts that belong to each format.

Every line is looked at by itself: some can be of one format only, others may stand among such lines. Lists of names
and values are told apart by the names in them. What is left belongs to what stands next to it, as titles and remarks
do, and is reported by the reader of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numalab.readers import (
    memcg,
    meminfo,
    mpstat,
    node_numastat,
    numa_maps,
    numactl,
    numastat_tables,
    sched,
    vmstat,
)
from numalab.readers._numbers import ungrouped
from numalab.readers._paste import COUNT, Line, lines
from numalab.readers._placed import Placed, placed

_LONGEST = 1000
Test = Callable[[Placed], bool]


def _matches(*patterns: str) -> Test:
    compiled = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    # no tool prints longer lines, and a search in one that is endless would be slow
    return lambda line: compiled.search(ungrouped(line.text[:_LONGEST])) is not None


def _never(_line: Placed) -> bool:
    return False


@dataclass(frozen=True)
class Rule:
    """How lines of a format are known: surely, and only when they stand below such lines."""

    format: str
    sure: Test
    more: Test = _never


_PERCENT = r"(?:\(\s*-?(?:\d+\.\d+|nan|inf|Inf|NaN)%\)|\*\s*-?\d+\.\d+%\*)"
_EVENTS = r"(?:sched_\w+_numa|sched_migrate_task|mm_migrate_pages\w*|mm_numa_migrate_ratelimit|hint_fault)"
_SPREAD = r"(?:\s*(?:±|\+/-|A?\+-|Â±|\ufffd|~)\s*\d+\s*%)?"
_MEAN = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"

#: In the order in which they are asked.
RULES = (
    Rule(
        "perf-bench-numa",
        _matches(
            r"perf bench numa|numa/mem\b.*benchmark|#\s+[\d.]+%\s+\[[\d.]+ mins\]|\btasks? will execute\b",
            r"^\s*\S.*,\s+[\d.]+,\s+(?:secs|%|GB|nsecs|GB/sec),\s+\S|^\s*#\s+-?\d+x\s+\d+MB\b|NUMA-convergence-latency",
        ),
        _matches(r"^\s*#(?:\s|#|$)", r"^\s*\d+\.\d{3} \S"),
    ),
    Rule(
        "perf-stat",
        _matches(
            r"Performance counter stats for|seconds time elapsed\b|^\s*[\d.,]+\s+seconds (?:user|sys)\b",
            r"^#\s+time\s.*\bcounts unit events",
        ),
        _matches(r"^\s*(?:[\d.,]+|<not \w+>)\s+[A-Za-z]\S*(?:\s.*)?$", r"^\s*\d+\.\d+\s+\([+-]"),
    ),
    Rule(
        "lkp",
        _matches(
            r"%stddev|%reproduction|^\s*commit:\s*$|^[\w.-]+(?:/[\w.-]+){2,}:$|^={60,}$|^-{14,}\s+-{20,}",
            r"^[0-9a-f]{12,16}\s+[0-9a-f]{12,}",
            rf"^\s*{_MEAN}{_SPREAD}\s+[+-]\d+(?:\.\d+)?(?:e[+-]?\d+)?%?\s+{_MEAN}{_SPREAD}\s+\S*[A-Za-z_]\S*$",
            rf"^\s*{_MEAN}{_SPREAD}(?:\s+[+-]\d+(?:\.\d+)?%\s+{_MEAN}{_SPREAD}){{2,}}\s+\S*[A-Za-z_]\S*$",
        ),
        _matches(r"^\s{2,}\S", r"^\s*\d*:\d+\s"),
    ),
    Rule(
        "mmtests",
        _matches(
            rf"^\s*\S.*\s-?\d+(?:\.\d+)?\s*{_PERCENT}",
            r"^\s*(?:Ops|Duration)\s+\S.*\s-?\d+(?:\.\d+)?\s*$",
            r"^\s*(?:NUMA (?:alloc|base|huge|page|PTE|PMD|hint|interleave|pages)|AutoNUMA cost)\b.*(?:\s[\d.]+){2}\s*$",
            r"^\s*(?:User|System|Elapsed)(?:\s+\d+\.\d+){2,}\s*$",
        ),
        _matches(r"^\s*[A-Za-z].*(?:\s+-?\d+(?:\.\d+)?){2,}\s*$"),
    ),
    Rule(
        "perf-lock",
        _matches(r"^[ #]*(?:Name\s+acquired\s+)?contended\s+(?:avg wait|total wait)(?: \(ns\))?\s"),
        _matches(r"^\s*(?:\S+\s+\d+\s+)?\d+\s+\d+(?:\.\d+)? ?(?:ns|us|ms|s|m)?\s", r"^\s+0x[0-9a-f]+\s"),
    ),
    Rule(
        "perf-report",
        _matches(
            r"^\s*[-+]?\s*\d+\.\d+%\s.*\[[.kgHu]\]\s+\S",
            r"^#\s+(?:Children|Overhead)\s",
            r"^#?\s*Samples: \S+ +of event",
        ),
        _matches(r"^[\s|]+\S", r"^#", r"^[-+|]"),
    ),
    Rule(
        "numamove",
        _matches(r"^\s*TIME\s+(?:NUMA_migrations|PID\s+(?:TID\s+)?SRC_NID)\b"),
        _matches(r"^\s*\d\d:\d\d:\d\d\s+\d+\s"),
    ),
    Rule(
        "latency-histogram",
        _matches(
            r"^\s*[nmu]?secs\s*:\s*count\s+distribution|^\s*\d+\s*->\s*\d+\s*:\s*\d+\s*\|",
            r"^\s*[\[(](?:-?\d+|\.\.\.)[KMGT]?(?:,\s*(?:-?\d+|\.\.\.)[KMGT]?\s*\)|\])\s+\d+\s*\|",
            r"^\s*avg =\s+\d+ [nmu]?secs, total: ",
        ),
    ),
    Rule(
        "skip-reasons",
        _matches(r"^\s*[\d.,]+\s+(?:\S.*\s)?reason=\w+\s*$", r"^\s*\{\s*reason:.*hitcount:"),
    ),
    Rule(
        "perf-script",
        _matches(rf"^\s*\S.*\d+\.\d+:\s+(?:\d+\s+)?(?:sched|migrate):{_EVENTS}:"),
        _matches(r"^\s+[0-9a-f]{4,16} \S.*\(\S.*\)$", r"\d+\.\d+:\s+(?:\d+\s+)?\w+:\w+:"),
    ),
    Rule(
        "ftrace",
        _matches(rf"^# tracer: |\[\d+\].*\d+\.\d+:\s+{_EVENTS}:"),
        _matches(r"^#", r"\[\d+\].*\s\d+\.\d+: ", r"\bLOST \d+ "),
    ),
    Rule("numa_maps", numa_maps.is_known),
    Rule("memcg", memcg.is_known, memcg.is_row),
    Rule("sched", sched.is_known, sched.is_row),
    Rule("mpstat", mpstat.is_known, mpstat.is_row),
    Rule("meminfo", meminfo.is_known),
    Rule("zoneinfo", _matches(r"^Node \d+, zone\s+\w+\s*$"), _matches(r"^\s+\S")),
    Rule("numactl", numactl.is_known, numactl.is_row),
    Rule("numactl", _matches(r"^\s*node\s+\d+(?:\s+\d+)+\s*$"), numactl.is_row),
    Rule("numastat-p", numastat_tables.is_process_line, numastat_tables.is_row),
    Rule("numastat-m", numastat_tables.is_system_line, numastat_tables.is_row),
    Rule("numastat", node_numastat.is_table, node_numastat.is_row),
)
_MORE = {rule.format: rule.more for rule in reversed(RULES)}
_SURE = {rule.format: tuple(one for one in RULES if one.format == rule.format) for rule in RULES}
_BENCHMARK = re.compile(r"\s*numa\d\d(?:_[A-Z]+)*\s*$")
_BENCHMARK_MORE = re.compile(r"\s*(?:\d+(?:\.\d+)?$|(?:gcc|rm -f)\s.*numa0|gcc nmstat|Hyper-Threading IS)")
_SECONDS = re.compile(r"\s*\d+\.\d+\s*$")

#: The last part of a path, and the list that the file holds.
_FILES = {"vmstat": "vmstat", "memory.stat": "memcg-stat", "numastat": "numastat"}
#: What tools say before and after they print.
_STARTING = re.compile(r"\s*(?:Attaching \d+ probes?\.\.\.|\^C|Tracing\b.*)\s*$")
#: Lines of a title that may stand above a blank line.
_TITLE_LINES = 2


def segments(text: str, sniffs: Mapping[str, Callable[[str], bool]], source: str = "") -> dict[str, str]:
    """Cut a text into one text for each format.

    Parameters
    ----------
    text : str
    sniffs : mapping
        Format -> test of a text, for what no line by itself gives away.
    source : str
        The file that the text is.

    Returns
    -------
    dict
        Format -> text in which each line has the number it had, and those of other formats are blank. In the order of
        the text; empty if nothing is known.
    """
    every = lines(text)
    found = placed(text, source)
    owner = _own(found)
    _ask(owner, found, sniffs)
    if not any(owner):
        return {}
    _attach(owner, found)
    formats = list(dict.fromkeys(name for name in owner if name))
    raw = text.split("\n")
    return {name: _text_of(name, owner, every, raw) for name in formats}


def _own(found: list[Placed]) -> list[str | None]:
    """Say for each line which format it is of, as far as lines by themselves and the one before tell."""
    owner: list[str | None] = [None] * len(found)
    current: str | None = None
    run: dict[int, str] = {}
    before: str | None = None
    for i, line in enumerate(found):
        if not line.text.strip() and not line.file:
            before, run = _end_run(owner, found, run, before), {}
            continue
        # in the middle of a list, one more name and value need no further question
        listed = bool(run) and COUNT.fullmatch(line.text) is not None and not line.text.startswith("node ")
        name = None if listed else _owner_of(line, found[i + 1] if i + 1 < len(found) else None, current)
        if name is None and (count := vmstat.name_of(line)) is not None:
            run[i] = count
            current = None
            continue
        before, run = _end_run(owner, found, run, before), {}
        if line.text.strip():
            before = None
            current = name
        owner[i] = name
    _end_run(owner, found, run, before)
    return owner


def _owner_of(line: Placed, after: Placed | None, current: str | None) -> str | None:
    if current in _MORE and not line.heading and current not in _LOOSE and _MORE[current](line):
        return current
    if after is not None and _BENCHMARK.match(line.text) and _SECONDS.match(after.text):
        return "autonuma-benchmark"
    if current == "autonuma-benchmark" and _BENCHMARK_MORE.match(line.text):
        return current
    # most lines are of the same format as the one before
    for rule in (*_SURE.get(current or "", ()), *RULES):
        if rule.sure(line):
            return rule.format
    return current if current in _LOOSE and not line.heading and _MORE[current](line) else None


#: What may stand among their lines could as well be of another format, whose lines are asked first.
_LOOSE = frozenset({"perf-report", "lkp", "perf-bench-numa", "perf-stat", "mmtests", "zoneinfo", "numactl", "ftrace"})


def _end_run(owner: list[str | None], found: list[Placed], run: dict[int, str], before: str | None) -> str | None:
    """Decide what a list (line -> name) is; one without telling names goes on with the list above it."""
    if not run:
        return before
    names = set(run.values())
    named = _FILES.get(found[next(iter(run))].name)
    if named is None:
        if any(node_numastat.OWN.match(found[i].text) for i in run):
            named = "numastat"
        elif len(names & vmstat.CGROUP_NAMES) > 1:
            named = "memcg-stat"
        elif any(vmstat.KNOWN_NAMES.match(name) for name in names):
            named = "vmstat"
        else:
            named = before
    for i in run:
        owner[i] = named
    return named


def _ask(owner: list[str | None], found: list[Placed], sniffs: Mapping[str, Callable[[str], bool]]) -> None:
    """Let the formats look at whole paragraphs of which no line gave anything away."""
    start = 0
    while start < len(found):
        end = start
        while end < len(found) and owner[end] is None and not found[end].heading and found[end].text.strip():
            end += 1
        if end > start:
            paragraph = "\n".join(line.text for line in found[start:end]) + "\n"
            name = next((name for name, sniff in sniffs.items() if sniff(paragraph)), None)
            owner[start:end] = [name] * (end - start)
        start = max(end, start + 1)


def _attach(owner: list[str | None], found: list[Placed]) -> None:
    """Give lines that nobody knows to the format above or, titles and prompts, to the one below them."""
    at, above = 0, None
    while at < len(found):
        if owner[at] is not None:
            above = owner[at]
            at += 1
            continue
        end = at
        while end < len(found) and owner[end] is None:
            end += 1
        below = owner[end] if end < len(found) else None
        cut = end if below is None else at if above is None else _title(found, at, end)
        owner[at:cut] = [above or below] * (cut - at)
        owner[cut:end] = [below] * (end - cut)
        at = end


def _title(found: list[Placed], start: int, end: int) -> int:
    """Return where, in lines between two formats, the title of the second begins."""
    at = end
    while at > start and not found[at - 1].text.strip():
        at -= 1
    apart = at < end
    top = at
    while top > start and found[top - 1].text.strip():
        top -= 1
    top = top if not apart or at - top <= _TITLE_LINES else at
    while top > start and (not found[top - 1].text.strip() or _STARTING.match(found[top - 1].text)):
        top -= 1
    return top


def _text_of(name: str, owner: list[str | None], every: list[Line], raw: list[str]) -> str:
    out = [""] * len(raw)
    for own, line in zip(owner, every, strict=True):
        if own == name:
            # a mail whose line ends were lost is cut by the reader again
            out[line.number - 1] = raw[line.number - 1] if line.joined else line.text
    return "\n".join(out)
