"""Which known illness of automatic NUMA balancing is in these numbers?

`diagnose` takes what `numalab.read` returns, and runs; each finding carries the numbers that decided and their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import xarray as xr

from numalab.diagnose import compared, counters, nodes, profiles, series, tasks
from numalab.diagnose.collect import all_readings, collect
from numalab.diagnose.cost import cost
from numalab.diagnose.facts import Facts, Side
from numalab.diagnose.grouped import dearest, grouped, together
from numalab.diagnose.releases import fitting
from numalab.diagnose.result import Cost, Diagnosis, Evidence, Finding, in_order
from numalab.diagnose.verdict import verdict, views
from numalab.readers._reading import Reading, Readings
from numalab.sides import split

__all__ = ["Cost", "Diagnosis", "Evidence", "Finding", "diagnose", "load"]

Input = Readings | Reading | xr.Dataset


def diagnose(*inputs: Input | Sequence[Input]) -> Diagnosis:
    r"""Find the known illnesses in readings and runs.

    Parameters
    ----------
    *inputs : Readings, Reading, xarray.Dataset, or sequences of them
        What `numalab.read` returned, or runs. Given together they are of one machine, and sides of tables and files
        are compared with each other.

    Returns
    -------
    Diagnosis
        Findings, alarms first; what balancing cost; what was looked at.

    Examples
    --------
    >>> from numalab.readers.mixed import read
    >>> counters = "numa_pte_updates 0\nnuma_hint_faults 0\nnuma_pages_migrated 0\nnuma_hit 900\n"
    >>> diagnose(read(counters)).ids
    ['balancing-off']
    """
    readings, datasets = all_readings(_flat(inputs))
    facts = collect(readings, datasets)
    # a mean over runs may be ill where none of them is, and well where one is
    single = [one for one in datasets if one[1].sizes["run"] == 1]
    found = list(_alone(facts if len(single) == len(datasets) else collect(readings, single)))
    found += [one for named in datasets if named[1].sizes["run"] > 1 for one in _run_by_run(*named)]
    found += [one for family in (compared, profiles) for one in family.findings(_trusted(facts))]
    found = grouped(_merged(found, facts), facts)
    found = [fitting(one, facts.datasets) for one in found]
    seen = views(facts)
    found += verdict(found, seen)
    costs = [
        (one, side.samples if side.many else 1, side.table) for side in facts.sides if (one := cost(side)) is not None
    ]
    looked_at = [view.what + (f": {view.lacks}" if view.lacks else "") for view in seen]
    remarks = (*nodes.remarks(facts), *facts.remarks)
    return Diagnosis(in_order(found), tuple(dearest(costs)), tuple(looked_at), remarks)


def load(path: str | Path) -> Input:
    """Read one input: a saved run, or whatever `numalab.read` takes.

    Parameters
    ----------
    path : str or Path
        File (.nc, .nc.gz: a run), folder, or ``"-"``.
    """
    from numalab import runs
    from numalab.readers import mixed

    if str(path).endswith((".nc", ".nc.gz")):
        ds = runs.open(path)
        ds.encoding["source"] = str(path)
        return ds
    return mixed.read(path if str(path) == "-" else Path(path))


def _flat(inputs: Sequence[Input | Sequence[Input]]) -> Iterator[Input]:
    for one in inputs:
        if isinstance(one, Readings | Reading | xr.Dataset):
            yield one
        else:
            yield from one


def _run_by_run(source: str, ds: xr.Dataset) -> Iterator[Finding]:
    """Judge each run of a dataset by itself; what several runs of one kind show is said once, with their number."""
    for label, part in split(ds):
        shown: dict[str, list[tuple[str, Finding]]] = {}
        for i in range(part.sizes["run"]):
            run = part.isel(run=[i])
            name = f"seed {run['seed'].item()}" if "seed" in run.coords else f"run {i}"
            alone = collect([], [(source, run)])
            for one in _merged(list(_alone(alone)), alone):
                shown.setdefault(one.id, []).append((name, one))
        for every in shown.values():
            first, one = every[0]
            which = f"{', '.join(name for name, _ in every)}; the numbers are those of {first}"
            told = f" {len(every)} of {part.sizes['run']} runs show this: {which}." if part.sizes["run"] > 1 else ""
            yield replace(one, says=one.says + told, side=label or one.side, sides=(label,) if label else one.sides)


def _trusted(facts: Facts) -> Facts:
    """Leave out sides whose counters contradict each other: nothing that rests on them is said."""
    doubted = {id(side) for _, side in counters.contradictions(facts)}
    return replace(facts, sides=[side for side in facts.sides if id(side) not in doubted])


def _alone(facts: Facts) -> Iterator[Finding]:
    """Find what a single side or run shows."""
    for contradiction, _ in counters.contradictions(facts):
        yield contradiction
    doubted_nodes: dict[int, set[int | None]] = {}
    for contradiction, side, node in nodes.contradictions(facts):
        doubted_nodes.setdefault(id(side), set()).add(node)
        yield _of(side, contradiction)
    yield from nodes.topology(facts)
    # a full fast tier is what tiering is
    tiered = {side.source for side in facts.sides if counters.churns(side)}
    for side, others in facts.beside():
        odd = doubted_nodes.get(id(side), set())
        if side.source not in tiered:
            of_node = nodes.full(facts, side, None in odd, {node for node in odd if node is not None})
            yield from (_of(side, one) for one in of_node)
        yield from (_of(side, one) for one in nodes.unused(facts, side, others))
    trusted = _trusted(facts)
    for side in trusted.sides:
        yield from counters.findings(side)
    for family in (series, tasks):
        yield from family.findings(trusted)


def _of(side: Side, found: Finding) -> Finding:
    """Name the side that a finding of a node is of."""
    return replace(found, sides=(side.name,) if side.name else ())


def _merged(found: Sequence[Finding], facts: Facts) -> list[Finding]:
    """Keep one of several findings of one illness and side: the surest, with the numbers of all."""
    many = {(side.source, side.name) for side in facts.sides if side.many}

    def about(one: Finding) -> tuple[str, ...]:
        sample = (one.evidence[0].source, "".join(one.sides)) in many
        return one.id, one.side, one.evidence[0].source, *(one.sides if sample else ())

    merged = []
    for group in together(found, about):
        first = in_order(group)[0]
        numbers = dict.fromkeys(evidence for one in (first, *group) for evidence in one.evidence)
        merged.append(replace(first, evidence=tuple(numbers)))
    return merged
