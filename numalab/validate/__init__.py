"""How far the model is from real kernels: every trace beside runs of the model, quantity by quantity.

For each case the same machine, workload and kernel are built from its meta (:mod:`numalab.scenarios`) and run
with many seeds; docs/validation.md says which quantities are compared, and by which rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from numalab import __version__, pool, runs
from numalab.quantities import PAGES_OVER_TIME, QUANTITIES, Quantity
from numalab.readers import trace
from numalab.scenarios import ScenarioError
from numalab.validate import locked, simulated
from numalab.validate.cases import BEFORE, Case, Trace, ValidateError, group, load
from numalab.validate.judge import Row, judge, judge_distance, judge_effect, widest
from numalab.validate.simulated import Outcome

__all__ = ["Case", "Outcome", "Row", "Trace", "ValidateError", "Validation", "validate"]

Values = NDArray[np.float64]
#: Runs of the model per case, unless told otherwise.
SEEDS = 30
#: Before this nothing is scanned, as a multiple of scan_delay.
_SCANNED_AFTER = 2
#: Quantities that are 0 where tasks are bound to a node.
_OF_MOVES = ("task_moves", "task_swaps", "convergence_time", "converged_share", "main_node_share")
#: Quantities that a run without balancing may still differ in.
_WITHOUT_BALANCING = ("slowest_worker", "fastest_worker", "page_rate")


@dataclass
class Validation:
    """The result of a validation.

    Attributes
    ----------
    seeds : int
    outcomes : list of Outcome
        Cases that were simulated.
    rows : list of Row
    left_out : list of (case, reason)
    interrupted : bool
        Ctrl-C ended it before all cases were finished.
    """

    seeds: int
    outcomes: list[Outcome] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return rows and provenance as JSON can hold them."""
        return {
            "numalab": __version__,
            "revision": runs.revision(),
            "seeds": self.seeds,
            "cases": {one.case.name: [t.name for t in one.case.traces] for one in self.outcomes},
            "notes": {one.case.name: list(one.notes) for one in self.outcomes if one.notes},
            "left_out": dict(self.left_out),
            "rows": [row.to_dict() for row in self.rows],
        }


def validate(
    names: Sequence[str] = (), *, seeds: int = SEEDS, jobs: int | None = None, progress: bool = False
) -> Validation:
    """Judge the model by real runs.

    Parameters
    ----------
    names : sequence of str, optional
        Packed traces by name, folders by path; default: all packed traces.
    seeds : int
        Runs of the model per case.
    jobs : int, optional
        Cases simulated at the same time; default: one for each CPU.
    progress : bool
        Report on stderr.

    Returns
    -------
    Validation
        Interrupted by Ctrl-C it holds the finished cases, if there are any.

    Raises
    ------
    ValidateError
        A name that is neither, or nothing that can be judged.
    """
    traces = [load(name) for name in tqdm(names or trace.names(), unit="trace", desc="reading", disable=not progress)]
    answer = Validation(seeds)
    about_locks = [one for one in traces if locked.is_about_a_lock(one)]
    cases = group([one for one in traces if not locked.is_about_a_lock(one)])
    found: dict[int, Outcome | str] = {}
    try:
        # one by one: an interruption leaves what is finished
        for (i, _), outcome in pool.results(
            partial(_run, seeds=seeds),
            list(enumerate(cases)),
            processes=jobs,
            name=lambda one: one[1].name,
            progress=progress,
        ):
            found[i] = outcome
    except KeyboardInterrupt:
        if not any(isinstance(outcome, Outcome) for outcome in found.values()):
            raise
        answer.interrupted = True
    for i, outcome in sorted(found.items()):
        if isinstance(outcome, Outcome):
            answer.outcomes.append(outcome)
        else:
            answer.left_out.append((cases[i].name, outcome))
    if not answer.outcomes and not about_locks:
        raise ValidateError("nothing can be judged: " + "; ".join(f"{name}: {why}" for name, why in answer.left_out))
    spreads = _Spreads(traces)
    answer.rows += [row for outcome in answer.outcomes for row in _rows(outcome, spreads)]
    if about_locks:
        answer.rows += locked.rows([one.source for one in about_locks], seeds)
    answer.rows += _effects(answer.outcomes, spreads)
    return answer


def _run(numbered: tuple[int, Case], seeds: int) -> Outcome | str:
    """Run a case, or say why the model cannot follow it."""
    _, case = numbered
    try:
        return simulated.run(case, seeds)
    except ScenarioError as error:
        with case.first.folder() as path:
            return str(error).removeprefix(f"{path}/").removeprefix("meta.json: ")


class _Spreads:
    """Widest relative spread of each quantity in a thread, over its packed traces and those given."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._given = {one.name: one for one in traces}
        self._known: dict[str, dict[str, float | None]] = {}

    def of(self, thread: str, quantity: str) -> float | None:
        if thread not in self._known:
            self._known[thread] = self._measure(thread)
        return self._known[thread].get(quantity)

    def _measure(self, thread: str) -> dict[str, float | None]:
        more = [load(name) for name in trace.names() if name.split("_")[0] == thread and name not in self._given]
        cases = group([one for one in [*self._given.values(), *more] if one.thread == thread])
        several = [case for case in cases if len(case.traces) > 1]
        found: dict[str, float | None] = {}
        for quantity in QUANTITIES:
            values = [simulated.real_values(quantity.name, case.traces, case.until_s) for case in several]
            # a spread among next to nothing says nothing about the rest
            found[quantity.name] = widest([v for v in values if v is not None and np.nanmean(v) > quantity.floor])
        return found


# ---------------------------------------------------------------- rows


def _rows(outcome: Outcome, spreads: _Spreads) -> list[Row]:
    """Judge a case: the repetitions that were free to be fitted, and the others, apart."""
    rows, case = [], outcome.case.name
    for fitted in (True, False):
        chosen = np.array([one.fitted == fitted for one in outcome.case.traces])
        if not chosen.any():
            continue
        some = [one for one, own in zip(outcome.case.traces, chosen, strict=True) if own]
        label = case if chosen.all() else _some(case, some)
        for quantity in QUANTITIES:
            values = outcome.real.get(quantity.name, np.full(len(chosen), np.nan))
            real = values[chosen & ~np.isnan(values)]
            if not len(real):
                continue
            model = outcome.model[quantity.name]
            spread = spreads.of(some[0].thread, quantity.name)
            verdict = judge(real, model, widest_spread=spread, floor=quantity.floor)
            why_not = _not_counted(outcome, quantity, real, model)
            names = (case, label)
            rows.append(verdict.row(names, quantity.name, quantity.units, len(real), fitted=fitted, why_not=why_not))
        if outcome.pages is not None:
            to_seeds, between, signal = outcome.pages
            verdict = judge_distance(to_seeds[chosen], between, float(signal[chosen].mean()))
            why_not = _nothing_scanned(outcome)
            n_real = int(chosen.sum())
            rows.append(verdict.row((case, label), PAGES_OVER_TIME, "1", n_real, fitted=fitted, why_not=why_not))
    return rows


def _some(name: str, traces: Sequence[Trace]) -> str:
    if len(traces) == 1:
        return traces[0].name
    return f"{name} ({', '.join(f'r{one.rep}' for one in traces)})"


def _nothing_scanned(outcome: Outcome) -> str:
    first = outcome.case.first
    if not first.balancing:
        return "balancing is off"
    if "bench sched" in first.how["command"]:
        return "no task runs long enough to be scanned"
    delay = float(first.how["sysctl"].get("scan_delay_ms", 1000)) / 1000
    return "ends before anything is scanned" if outcome.case.until_s < _SCANNED_AFTER * delay else ""


def _not_counted(outcome: Outcome, quantity: Quantity, real: Values, model: Values) -> str:
    """Say why a row is not counted: both sides are 0, or what they are, by construction."""
    why = _nothing_scanned(outcome)
    if why and not (why == "balancing is off" and quantity.name in _WITHOUT_BALANCING):
        return why
    zero = not real.any() and not np.nan_to_num(model).any()
    if quantity.name in _OF_MOVES and outcome.bound:
        return "tasks are bound to a node"
    if quantity.name == "migrate_failures" and zero and "migrate_refused" not in outcome.case.first.ds:
        return "only failed copies were counted, which the model does not have"
    return ""


# ---------------------------------------------------------------- effects


def _effects(outcomes: Sequence[Outcome], spreads: _Spreads) -> list[Row]:
    """Compare every variant of a case of layout B with those that are "before", repetition by repetition."""
    by_base: dict[str, dict[str, Outcome]] = {}
    for one in outcomes:
        if one.case.first.variant:
            by_base.setdefault(one.case.first.base, {})[one.case.first.variant] = one
    rows = []
    for variants in by_base.values():
        thread = next(iter(variants.values())).case.first.thread
        bases = [label for label in BEFORE.get(thread, ()) if label in variants]
        for position, label in enumerate(bases):
            # what is before itself is compared with what comes before it only
            others = [name for name in variants if name not in bases[: position + 1]]
            for other in others:
                rows += _effect(variants[label], variants[other], spreads)
    return rows


def _effect(before: Outcome, after: Outcome, spreads: _Spreads) -> list[Row]:
    pairs = [
        (i, j)
        for i, one in enumerate(before.case.traces)
        for j, other in enumerate(after.case.traces)
        if one.rep == other.rep
    ]
    unfitted = [(i, j) for i, j in pairs if not before.case.traces[i].fitted]
    fitted, pairs = not unfitted, unfitted or pairs
    rows: list[Row] = []
    if not pairs:
        return rows
    first, second = before.case.first, after.case.first
    label = f"{first.base}: {first.variant} -> {second.variant}"
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    for quantity in filter(lambda known: known.effect, QUANTITIES):
        values = _paired(quantity.name, before, after, one, other)
        if values is None:
            continue
        real_before, real_after, model = values
        spread = spreads.of(first.thread, quantity.name)
        verdict, sign = judge_effect(real_before, real_after, model, widest_spread=spread, floor=quantity.floor)
        row = verdict.row((label, label), quantity.name, quantity.units, len(real_before), fitted=fitted)
        why = "within its spread" if sign is None else "wrong sign" if not sign else row.why
        rows.append(Row(**{**vars(row), "kind": "effect", "sign": sign, "counted": sign is not None, "why": why}))
    return rows


def _paired(
    name: str, before: Outcome, after: Outcome, one: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[Values, Values, Values] | None:
    """Return the real values before and after, of pairs where both are known, and the model's differences."""
    sides: list[Mapping[str, Values]] = [before.real, after.real, before.model, after.model]
    if any(name not in side for side in sides):
        return None
    real_before, real_after = before.real[name][one], after.real[name][other]
    known = ~np.isnan(real_before) & ~np.isnan(real_after)
    if not known.any():
        return None
    return real_before[known], real_after[known], after.model[name] - before.model[name]
