"""Runs about a lock rather than NUMA balancing (S3): the lock model beside them, judged as every other run is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike

from numalab import lock_traces
from numalab.lock_traces import QUANTITIES, LockCase
from numalab.readers import trace
from numalab.validate.cases import Trace
from numalab.validate.judge import Row, judge, widest

THREAD = "S3"


def is_about_a_lock(one: Trace) -> bool:
    """Tell whether the load looks up shared policies, which the lock model follows."""
    return bool(one.how["command"].startswith("nlwl shpol"))


def rows(runs: Sequence[str | PathLike[str]], seeds: int) -> list[Row]:
    """Judge recordings by the lock model.

    Parameters
    ----------
    runs : sequence of names or folders
        See :func:`numalab.lock_traces.cases`, which also says what is raised.
    seeds : int
        Runs of the model per case.
    """
    cases = lock_traces.cases(runs)
    spreads = _spreads(runs, cases)
    return [row for case in cases for row in _rows(case, spreads, seeds)]


def _spreads(runs: Sequence[str | PathLike[str]], cases: Sequence[LockCase]) -> dict[str, float | None]:
    """Return the widest relative spread of each quantity over the thread's packed recordings and those given."""
    given = {run.name for case in cases for run in case.runs}
    more = [name for name in trace.names() if name.split("_")[0] == THREAD and name not in given]
    several = [case.real() for case in lock_traces.cases([*runs, *more]) if len(case.runs) > 1]
    return {name: widest([real[name] for real in several if name in real]) for name in QUANTITIES}


def _rows(case: LockCase, spreads: dict[str, float | None], seeds: int) -> Iterator[Row]:
    why_not = "" if case.shared else "shared look-ups never wait for each other: zero by construction"
    model = case.model(seeds)
    for quantity, real in case.real().items():
        verdict = judge(real, model[quantity], widest_spread=spreads[quantity])
        yield verdict.row((case.name, case.name), quantity, "1", len(real), fitted=False, why_not=why_not)
