"""What many samples of one input show alike is said once: first, worst, and how many of how many."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from numalab.diagnose.catalog import CATALOG
from numalab.diagnose.facts import Facts
from numalab.diagnose.result import Cost, Evidence, Finding

T = TypeVar("T")
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
#: Samples named one by one.
_NAMED = 6


def grouped(found: Iterable[Finding], facts: Facts) -> list[Finding]:
    """Make one finding of those that are alike but for their sample and their numbers.

    Parameters
    ----------
    found : iterable of Finding
        In the order of the input.
    facts : Facts
        Says which sides are samples of one input.
    """
    total = {(side.source, side.name): side.samples for side in facts.sides if side.many}

    def key(one: Finding) -> Hashable:
        sample = "".join(one.sides)
        if (one.evidence[0].source, sample) not in total:
            return None
        about = "" if one.side == sample else one.side
        return one.id, about, one.confidence, one.evidence[0].source, shape(one.says)

    return [
        _one(group, total[group[0].evidence[0].source, group[0].sides[0]]) if key(group[0]) else group[0]
        for group in together(found, key)
    ]


def together(every: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Group by a key, in order; None: alone."""
    groups: dict[Hashable, list[T]] = {}
    for at, one in enumerate(every):
        groups.setdefault(at if (own := key(one)) is None else own, []).append(one)
    return list(groups.values())


def shape(text: str) -> str:
    """Return a text without its numbers."""
    return _NUMBER.sub("", text)


def _one(group: Sequence[Finding], total: int) -> Finding:
    first, worst, source = group[0], _worst(group), group[0].evidence[0].source
    sides = tuple(dict.fromkeys(name for one in group for name in one.sides))
    shown = f"{len(sides)} of {total} samples"
    numbers = [*first.evidence, *(worst.evidence if worst else ())]
    numbers += [Evidence("samples with this finding", len(sides), "1", source), Evidence("samples", total, "1", source)]
    of = f"{first.sides[0]}, the first"
    if worst:
        of += " and the worst" if worst is first else f", and of {worst.sides[0]}, the worst"
    says = f"{first.says} {shown} show this: {_names(sides)}; the numbers are those of {of}."
    side = shown if first.side == first.sides[0] else f"{first.side} in {shown}"
    return replace(first, says=says, evidence=tuple(dict.fromkeys(numbers)), side=side, sides=sides)


def _worst(group: Sequence[Finding]) -> Finding | None:
    """Return the finding whose number is the greatest; None where there is no number."""
    measure = CATALOG[group[0].id].measure
    values = {
        at: number.value
        for at, one in enumerate(group)
        for number in reversed(one.evidence)
        if measure and number.what.startswith(measure) and number.value is not None
    }
    return group[max(values, key=lambda at: values[at])] if values else None


def _names(names: Sequence[str]) -> str:
    """List names; of many the first two and the last."""
    return ", ".join(names if len(names) <= _NAMED else [*names[:2], "...", names[-1]])


def dearest(costs: Iterable[tuple[Cost, int, int]]) -> list[Cost]:
    """Keep of the costs of many samples the highest.

    Parameters
    ----------
    costs : iterable of (cost, samples, table)
        With the number of samples that it is one of, 1 where all are shown; and their table.
    """
    kept = []
    for group in together(costs, lambda one: one[2] if one[1] > 1 else None):
        most, samples, _ = max(group, key=lambda one: one[0].cpu_seconds)
        kept.append(replace(most, side=f"{most.side}, the most of {samples} samples") if samples > 1 else most)
    return kept
