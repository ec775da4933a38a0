"""What the readings of /proc, /sys and their tools share: datasets of samples that have times, and of those without."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import xarray as xr

from numalab import runs
from numalab.readers._assemble import Parts
from numalab.readers._reading import Found, Reading, Table
from numalab.readers._text import NoRunError, ReadError, Skipped
from numalab.schema import SchemaError

T = TypeVar("T")
#: Puts something into a dataset in the making.
Fill = Callable[[Parts], None]


def build(parts: Parts, name: str, source: str, skipped: Sequence[Skipped]) -> xr.Dataset:
    """Finish a dataset.

    Raises
    ------
    NoRunError
        Nothing of it has a place in a run.
    ReadError
        A value that no run can have, such as a node that the text does not list.
    """
    parts.finish()
    if not parts.variables and "run" not in parts.coords:
        raise NoRunError(source, 0, f"{name}: nothing in it that a run has; what there is, is in the tables (--json)")
    params = {"reader": name, "file": source, "skipped_lines": len(skipped)}
    try:
        return runs.build(parts.variables, parts.coords, title=f"{name}: {source}", source="measured", params=params)
    except SchemaError as error:
        raise ReadError(source, 0, f"{name}: its values make no run ({error}); was a line changed?") from error


def single(fill: Fill, name: str, source: str, skipped: Sequence[Skipped]) -> Callable[[], xr.Dataset]:
    """Return what makes a dataset of one run."""

    def dataset() -> xr.Dataset:
        parts = Parts()
        fill(parts)
        return build(parts, name, source, skipped)

    return dataset


def side_by_side(
    fills: Sequence[tuple[str, Fill]], name: str, source: str, skipped: Sequence[Skipped]
) -> Callable[[], xr.Dataset]:
    """Return what makes a dataset of looks whose times are unknown: each is a run of its own, named by ``snapshot``.

    Parameters
    ----------
    fills : sequence of (label, fill)
    name, source : str
    skipped : sequence of Skipped
    """

    def dataset() -> xr.Dataset:
        found = []
        for label, fill in fills:
            parts = Parts(coords={"snapshot": ("run", [label])})
            fill(parts)
            found.append(build(parts, name, source, skipped))
        try:
            return runs.concat(found)
        except SchemaError as error:
            problem = f"its {len(found)} looks do not fit into one dataset ({error}); read them one by one"
            raise ReadError(source, 0, problem) from error

    return dataset


def apart(every: Sequence[T], who: Callable[[T], Hashable]) -> list[list[T]]:
    """Put what a text shows one after the other into looks, of which none has the same one twice."""
    looks: list[list[T]] = [[]]
    seen: set[Hashable] = set()
    for one in every:
        if who(one) in seen:
            looks.append([])
            seen = set()
        seen.add(who(one))
        looks[-1].append(one)
    return looks


def labels_of(found: Sequence[Any]) -> list[str]:
    """Return a label for each sample: its own, or its number; none comes twice."""
    out: list[str] = []
    seen: set[str] = set()
    for i, one in enumerate(found):
        own = one.label or str(i)
        label = own if own not in seen else f"{own}#{i}"
        seen.add(label)
        out.append(label)
    return out


def reading(
    report: Any,
    name: str,
    found: Sequence[Found],
    dataset: Callable[[], xr.Dataset],
    *,
    guesses: Sequence[tuple[int, str]] = (),
    tables: Sequence[Table] = (),
) -> Reading:
    """Make a reading of a reader's report: its titles are understood, its guesses come before those given."""
    titles = [Found(line, f"title: {text}") for line, text in getattr(report, "titles", ())]
    every = [*getattr(report, "guesses", ()), *guesses]
    return Reading(
        report.source,
        name,
        report.lines,
        tuple(sorted([*titles, *found], key=lambda one: one.line)),
        tuple(report.skipped),
        dataset,
        guessed=tuple(Found(line, what) for line, what in every),
        tables=tuple(tables),
    )


def plural(count: int, noun: str) -> str:
    """Return "1 sample", "2 samples"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def span(found: Sequence[Any], noun: str) -> Found:
    """Say how many records there are, and from when to when."""
    times = [one.time for one in found if one.time is not None]
    when = f", {min(times):g} to {max(times):g} s" if len(times) > 1 else f" at {times[0]:g} s" if times else ""
    return Found(found[0].line if found else 0, f"{plural(len(found), noun)}{when}")
