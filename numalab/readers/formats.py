"""The formats that ``numalab read`` knows: how to recognise each, and what reading it gives.

A new format is a :class:`Format` in :data:`FORMATS` and a function that returns a :class:`Reading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from numalab.readers.perf_bench import Test


class FormatError(ValueError):
    """No known format, or not the one that was asked for."""


@dataclass(frozen=True)
class Skipped:
    """A line that was not used: its number, its text and why."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Reading:
    """What a text held.

    Attributes
    ----------
    source : str
        File name, for messages.
    format : str
    lines : int
        Length of the text.
    understood : tuple of (line, what)
        What was found, and where it begins.
    skipped : tuple of Skipped
    dataset : callable
        Makes the run (`numalab.schema`) of it.
    """

    source: str
    format: str
    lines: int
    understood: tuple[tuple[int, str], ...]
    skipped: tuple[Skipped, ...]
    dataset: Callable[[], xr.Dataset]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the dataset as plain lists, numbers and strings."""
        return {
            "file": self.source,
            "format": self.format,
            "lines": self.lines,
            "understood": [{"line": line, "what": what} for line, what in self.understood],
            "skipped": [{"line": skip.line, "text": skip.text, "reason": skip.reason} for skip in self.skipped],
        }


@dataclass(frozen=True)
class Format:
    """One format: its name, what prints it, a quick test of a text, and its reader (text, source)."""

    name: str
    what: str
    sniff: Callable[[str], bool]
    read: Callable[[str, str], Reading]


def read(text: str, source: str, name: str | None = None) -> Reading:
    """Read a text in the format it looks like, or in a given one.

    Parameters
    ----------
    text : str
    source : str
        File name, for messages.
    name : str, optional
        A key of :data:`FORMATS`; default: the first whose test fits.

    Raises
    ------
    FormatError
        Nothing fits, or the name is unknown; lists the formats.
    ValueError
        The format's own error: the text contradicts itself; names the line.
    """
    if name is not None:
        if name not in FORMATS:
            raise FormatError(f"no format {name!r}; known: {', '.join(FORMATS)}")
        return FORMATS[name].read(text, source)
    for known in FORMATS.values():
        if known.sniff(text):
            return known.read(text, source)
    listed = "; ".join(f"{known.name} ({known.what})" for known in FORMATS.values())
    raise FormatError(f"{source}: looks like no format that numalab reads; known: {listed}; force one with --format")


# ---------------------------------------------------------------- perf bench numa mem

_PERF = re.compile(
    r"perf bench numa|numa/mem|#\s+[\d.]+%\s+\[[\d.]+ mins\]|NUMA-convergence-latency|tasks? will execute"
)


def _read_perf(text: str, source: str) -> Reading:
    from numalab.readers import perf_bench

    report = perf_bench.parse(text, source)
    understood = [(line, header) for line, header in report.headers]
    for test in report.tests:
        understood.append((test.line, _describe(test)))
        understood += [(line, f"perf's remark: {remark}") for line, remark in test.notes]
    return Reading(
        source=source,
        format="perf-bench-numa",
        lines=len(text.splitlines()),
        understood=tuple(sorted(understood)),
        skipped=tuple(Skipped(*skip) for skip in report.skipped),
        dataset=lambda: perf_bench.to_dataset(report),
    )


def _describe(test: Test) -> str:
    parts = [f"test {test.name}"]
    if test.options:
        parts.append(f"options {test.options.args}")
    setup = test.setup
    if setup.tasks is not None:
        parts.append(f"{setup.tasks} tasks on {setup.nodes} nodes, {setup.cpus} CPUs")
    for count, noun, lines in (
        (len(test.progress), "progress records", [record.line for record in test.progress]),
        (len(test.ticks), "records without places", [line for line, _, _ in test.ticks]),
        (len(test.results), "result rows", [row.line for row in test.results]),
        (len(test.thread_results), "rows of single threads", [row.line for _, _, row in test.thread_results]),
    ):
        if count:
            parts.append(f"{count} {noun} (lines {min(lines)}-{max(lines)})")
    if test.converged is not None:
        parts.append("did not converge" if test.converged_s is None else f"converged after {test.converged_s:g} s")
    return ", ".join(parts)


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format(
            "perf-bench-numa",
            "output of perf bench numa mem",
            lambda text: _PERF.search(text) is not None,
            _read_perf,
        ),
    )
}
