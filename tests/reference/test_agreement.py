"""The array model and the oracle agree, state by state, on random machines, workloads and kernels."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numalab.kernel import Kernel, names
from numalab.layout import Layout
from numalab.model.engine import Engine
from tests.reference import invariants, moves
from tests.reference.cases import array_state, crowded, oracle_state, random_kernel, random_layout, random_params
from tests.reference.groups import weight
from tests.reference.invariants import Ledger
from tests.reference.oracle import Oracle

WEIGHTS_EVERY = 10  # steps: all weights of all tasks take longer than a step


def engine(layout: Layout, kernel: Kernel, seeds: list[int], params: dict[str, int]) -> Engine | None:
    """The array model, or None if the memory does not fit the machine."""
    try:
        return Engine(layout, kernel, seeds, params)
    except ValueError as error:
        if "fits on no node" not in str(error):
            raise
        return None


def assert_agree(layout: Layout, kernel: Kernel, params: dict[str, int], seeds: list[int], steps: int) -> Engine | None:
    model = engine(layout, kernel, seeds, params)
    if model is None:
        return None
    oracles = [Oracle(layout, kernel, params, seed) for seed in seeds]
    ledgers = [Ledger(oracle) for oracle in oracles]
    for step in range(steps):
        model.step()
        for run, oracle in enumerate(oracles):
            oracle.step()
            mine, theirs = array_state(model.state, run), oracle_state(oracle, layout)
            differ = {name: (mine[name], theirs[name]) for name in theirs if mine[name] != theirs[name]}
            assert not differ, f"step {step}, run {run}, {kernel!r}: {sorted(differ)}\n{str(differ)[:2000]}"
            ledgers[run].check(oracle)
            invariants.check(oracle)
            if step % WEIGHTS_EVERY == 0:
                assert_weights_agree(model, run, oracle)
                invariants.check_weights(oracle)
    for run, oracle in enumerate(oracles):
        events = [event[1:] for event in model.state.events if event[0] == run]
        assert events == [tuple(event) for event in oracle.events]
    return model


def assert_weights_agree(model: Engine, run: int, oracle: Oracle) -> None:
    """The weights the model keeps are those of the formula, of tasks and of groups, for each distance that matters."""
    distances = sorted({x for row in oracle.lay.distance for x in row})
    for i in range(model.state.task_weight.shape[2]):
        for one in range(oracle.T):
            for name, mem, total in (("task", oracle.mem, oracle.total), ("group", oracle.gmem, oracle.gtotal)):
                expected = [weight(oracle, mem[one], total[one], n, distances[i]) for n in range(oracle.N)]
                assert getattr(model.state, f"{name}_weight")[run, one, i].tolist() == expected, (name, one, i)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_cases_agree(rng: random.Random) -> None:
    layout, kernel, params = random_layout(rng), random_kernel(rng), random_params(rng)
    assert_agree(layout, kernel, params, [rng.randrange(2**40)], steps=150)


@pytest.mark.parametrize("name", list(names()))
def test_every_kernel_agrees_in_a_batch(name: str) -> None:
    """Every release and tree on several machines, two seeds side by side."""
    for seed in range(6):
        rng = random.Random(f"{name} {seed}")
        layout, params = random_layout(rng), random_params(rng)
        kernel = Kernel(name, scan_delay_ms=4, scan_period_min_ms=20, scan_period_max_ms=200, scan_size_mb=2)
        assert_agree(layout, kernel, params, [1, 2], steps=100)


@pytest.mark.parametrize("seed", range(60))
def test_crowded_cases_agree(seed: int) -> None:
    """Swaps of unequal tasks and faults on pages in flight, both rare in the other cases."""
    rng = random.Random(f"crowded {seed}")
    layout, params = crowded(rng)
    assert_agree(layout, random_kernel(rng), params, [seed], steps=250)


def test_crowded_cases_reach_their_rules() -> None:
    """Faults on pages in flight, those that are refused, swaps of unequal tasks: in how many of the cases."""
    seen = dict.fromkeys(("in flight", "refused", "swapped"), 0)
    for seed in range(60):
        rng = random.Random(f"crowded {seed}")
        layout, params = crowded(rng)
        oracle = Oracle(layout, random_kernel(rng), params, seed)
        isolated = []
        for _ in range(250):
            oracle.step()
            isolated += [fault for fault in oracle.listed if fault.isolated]
        weight = oracle.lay.task_weight
        unequal = [e for e in oracle.events if e[1] == moves.SWAP and weight[e[2]] != weight[e[5]]]
        found = (isolated, any(fault.failed for fault in isolated), unequal)
        seen = {name: count + bool(found[i]) for i, (name, count) in enumerate(seen.items())}
    assert seen["in flight"] >= 8, seen
    assert min(seen.values()) >= 3, seen


def test_balancing_is_off_in_some_cases() -> None:
    """In one of 25."""
    off = sum(random_params(random.Random(seed)).get("numa_balancing") == 0 for seed in range(1000))
    assert 25 <= off <= 60


def test_scan_windows_of_the_cases_last_several_steps() -> None:
    """In a good part of them; the oracle tells which windows are not finished."""
    unfinished = 0
    for seed in range(60):
        rng = random.Random(seed)
        layout, kernel, params = random_layout(rng), random_kernel(rng), random_params(rng)
        if engine(layout, kernel, [seed], params) is None:
            continue
        oracle = Oracle(layout, kernel, params, seed)
        for _ in range(60):
            oracle.step()
            if any(window is not None and window.looked_at for window in oracle.window):
                unfinished += 1
                break
    assert unfinished >= 12


def test_cases_spin_end_by_visits_and_scan_behind_holes() -> None:
    """Each in a good part of the cases, spins on CPUs of their own and on shared ones."""
    seen = dict.fromkeys(("spins", "spins in a guest", "ended by visits", "marked behind a hole"), 0)
    for seed in range(200):
        rng = random.Random(seed)
        layout, kernel, params = random_layout(rng), random_kernel(rng), random_params(rng)
        if engine(layout, kernel, [seed], params) is None:
            continue
        oracle = Oracle(layout, kernel, params, seed)
        spun = marked = False
        for _ in range(100):
            oracle.step()
            spun |= any(oracle.spin_ns)
            marked |= any(oracle.pending[v] for v in range(layout.vmas) if layout.vma_hole[v])
        ended = [t for t in range(layout.tasks) if oracle.ended[t] and layout.task_end_ns[t] > oracle.t0]
        guest = params["shared_cpus"] > 0
        found = (spun and not guest, spun and guest, bool(ended), marked)
        seen = {name: count + found[i] for i, (name, count) in enumerate(seen.items())}
    assert all(count >= 8 for count in seen.values()), seen


def test_cases_reach_the_rules() -> None:
    """The random cases are not idle: they migrate, are refused, group, move, swap, balance, sleep, differ in weight."""
    seen: dict[str, int] = dict.fromkeys(
        (
            "migrated",
            "refused",
            "huge",
            "grouped",
            "move",
            "swap",
            "balance",
            "failed",
            "waited",
            "deferred",
            "slept",
            "nice",
        ),
        0,
    )
    for seed in range(160):
        rng = random.Random(seed)
        layout = random_layout(rng)
        model = engine(layout, random_kernel(rng), [seed], random_params(rng))
        if model is None:
            continue
        for _ in range(150):
            model.step()
        state = model.state
        kinds = [event[2] for event in state.events]
        found: dict[str, Any] = {
            "migrated": state.counters["numa_pages_migrated"].sum(),
            "refused": state.counters["migrate_refused"].sum(),
            "huge": state.counters["numa_huge_pte_updates"].sum(),
            "grouped": (state.gtasks > 1).sum(),
            "waited": state.waited_ns.sum(),
            "deferred": state.deferred.sum(),
            "slept": state.counters["migration_waits"].sum(),
            "nice": (layout.task_nice != 0).sum(),
            **{name: kinds.count(i) for i, name in enumerate(("move", "swap", "balance", "failed"))},
        }
        seen = {name: count + int(found[name] > 0) for name, count in seen.items()}
    assert all(count >= 1 for count in seen.values()), seen
    assert min(seen["migrated"], seen["grouped"], seen["swap"], seen["slept"]) >= 8, seen
