"""Each invariant can fail: a run in which all hold, one value broken."""

from __future__ import annotations

from copy import deepcopy

import pytest

from numalab.kernel import Kernel
from numalab.layout import BASE, FOLIO, HUGE
from tests.reference import faults, groups, scan, topology
from tests.reference.helpers import oracle
from tests.reference.invariants import Ledger, check, check_weights
from tests.reference.oracle import Oracle
from tests.reference.tiny import BACKPLANE, MESH, random_layout

FAST = {"scan_delay_ms": 4, "scan_period_min_ms": 8, "scan_period_max_ms": 60, "scan_size_mb": 2}


@pytest.fixture(scope="module")
def a_run():
    """A run with groups and traps in which all holds, and its ledger before the last step."""
    for seed in range(100):
        o = Oracle(random_layout(seed), Kernel("6.18", **FAST), {}, seed)
        ledger = Ledger(o)
        for _ in range(300):
            before = deepcopy(ledger)
            o.step()
            ledger.check(o)
        if suits(o):
            check(o)
            return o, before
    raise AssertionError("no such run")


def suits(o):
    """Whether there is something of everything to break, task 0 having faults that wait for its placement."""
    buffered = any(map(sum, o.membuf[0])) and o.placed_wall_ns[0] < o.t1
    return max(o.gtasks) > 1 and o.cpu[0] >= 0 and o.pending[0] > 0 and 0 in o.pending and buffered


def of_one(values, i, more=1):
    values[i] += more


#: What is broken: the function that notices, and how.
STATES = {
    "a free page": ("check_memory", lambda o: of_one(o.free, 0)),
    "a page of a region": ("check_memory", lambda o: of_one(o.on_node[0], 0)),
    "a pending block": ("check_traps", lambda o: of_one(o.pending, 0)),
    "an intensity": ("check_traps", lambda o: of_one(o.intensity, o.pending.index(0))),
    "a threshold": ("check_traps", lambda o: of_one(o.threshold, o.trapped.index(False))),
    "a fault": ("check_task", lambda o: of_one(o.mem[0][0], 0)),
    "a sum of faults": ("check_task", lambda o: of_one(o.total, 0)),
    "a run time": ("check_task", lambda o: of_one(o.run_ns, 0, o.i * o.dt + 1)),
    "a task that left": ("check_task", lambda o: of_one(o.cpu, 0, -o.C)),
    "a member": ("check_group", lambda o: of_one(o.gtasks, 0)),
    "a sum of a group": ("check_group", lambda o: of_one(o.gtotal, 0)),
    "a fault of a group": ("check_group", lambda o: of_one(o.gmem[0][0], 0)),
    "a CPU fault of a group": ("check_group", lambda o: of_one(o.gcpu[0][0], 1)),
    "a migration": ("check", lambda o: of_one(o.counters, "pgmigrate_success")),
    "a local fault": ("check", lambda o: of_one(o.counters, "numa_hint_faults_local", 10**9)),
}
COUNTERS = ("numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults", "minor_faults")
ACCOUNTS = {
    **{f"more {name}": ("check_counters", lambda o, name=name: of_one(o.counters, name)) for name in COUNTERS},
    **{f"less {name}": ("check_counters", lambda o, name=name: of_one(o.counters, name, -1)) for name in COUNTERS},
    "a block no longer trapped": ("check_counters", lambda o: of_one(o.pending, 0, -1)),
    "a buffered fault": ("check_buffers", lambda o: of_one(o.membuf[0][0], 1)),
    "a buffered CPU fault": ("check_buffers", lambda o: of_one(o.cpubuf[0][0], 0)),
    "buffers not emptied": ("check_buffers", lambda o: of_one(o.placed_wall_ns, 0, o.t1 - o.placed_wall_ns[0])),
}


@pytest.mark.parametrize("name", list(STATES))
def test_a_broken_state_is_noticed(a_run, name):
    o, (who, breaks) = deepcopy(a_run[0]), STATES[name]
    breaks(o)
    with pytest.raises(AssertionError) as caught:
        check(o)
    assert caught.traceback[-1].name == who


@pytest.mark.parametrize("name", list(ACCOUNTS))
def test_a_broken_account_is_noticed(a_run, name):
    (o, ledger), (who, breaks) = deepcopy(a_run), ACCOUNTS[name]
    breaks(o)
    with pytest.raises(AssertionError) as caught:
        ledger.check(o)
    assert caught.traceback[-1].name == who


@pytest.mark.parametrize(
    ("kind", "k", "accounted", "updates", "hint_faults", "minor_faults"),
    [
        (BASE, 4, True, 8, 4, 4),
        (HUGE, 512, True, 1024, 1, 1),
        (FOLIO, 16, True, 32, 1, 1),
        (FOLIO, 16, False, 32, 0, 1),
    ],
)
def test_what_a_find_counts_for(kind, k, accounted, updates, hint_faults, minor_faults):
    """Two blocks marked, one found."""
    switches = {"large_folio_accounting": accounted}
    o = oracle("6.18", threads=1, nodes=1, home=0, kind=kind, block_pages=k, write=0, switches=switches)
    ledger = Ledger(o)
    for q in (3, 5):
        scan.Window(o, 0).mark(0, q, k, kind == HUGE)
    o.found = [(0, 3)]
    o.listed = faults.handle(o, o.found, {})
    ledger.enter_finds(o)
    ledger.check_counters(o)
    counted = [o.counters[name] for name in ("numa_pte_updates", "numa_hint_faults", "minor_faults")]
    assert counted == [updates, hint_faults, minor_faults]
    assert o.counters["numa_huge_pte_updates"] == (2 if kind == HUGE else 0)


def weighing(distance):
    """A task and its group with faults on two nodes."""
    o = oracle("4.15", nodes=4, cpus=1, threads=1, distance=distance)
    o.group[0], o.gtasks[0], o.total[0], o.gtotal[0] = 0, 1, 1000, 1000
    o.mem[0], o.gmem[0] = ([[0, 600], [0, 400], [0, 0], [0, 0]] for _ in range(2))
    check_weights(o)
    return o


@pytest.mark.parametrize("distance", [None, MESH, BACKPLANE])
@pytest.mark.parametrize("total", [900, 1100])
@pytest.mark.parametrize("whose", ["total", "gtotal"])
def test_weights_of_another_sum_are_noticed(distance, total, whose):
    o = weighing(distance)
    getattr(o, whose)[0] = total
    with pytest.raises(AssertionError):
        check_weights(o)


@pytest.mark.parametrize("distance", [MESH, BACKPLANE])
@pytest.mark.parametrize("times", [0, 2])
def test_other_scores_of_near_nodes_are_noticed(monkeypatch, distance, times):
    o = weighing(distance)
    monkeypatch.setattr(groups, "near", lambda *given: times * topology.near(*given))
    with pytest.raises(AssertionError):
        check_weights(o)
