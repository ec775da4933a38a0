"""The event simulation agrees with the exact solution, over random locks."""

import numpy as np
import pytest

from numalab.locks import KINDS, Lock, simulate, solve

QUANTITIES = ("throughput", "area_share", "waiting_share", "mean_waiters", "wait_s", "contended_share")
#: Standard errors the mean of 20 blocks may be off. 5 kinds x 8 locks x 6 quantities are tested; Student's t with 19
#: degrees of freedom exceeds 5.5 with a probability of 3e-5, so one in 140 sets of seeds would fail by chance.
ERRORS = 5.5


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_agreement(kind, seed):
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    section, parallel = 10 ** rng.uniform(-2, 1, 2)
    lock = Lock(kind, 1.0, section, parallel, handoff_s=10 ** rng.uniform(-3, 0), atomic_s=10 ** rng.uniform(-2, 0))
    tasks = int(rng.integers(1, 17))
    exact, found = solve(lock, tasks), simulate(lock, tasks, lookups=6000, seed=seed)
    for name in QUANTITIES:
        mean, error = found.mean(name)
        # A share of look-ups that is 0 or 1 in each block has no scatter: one look-up more or less is its error.
        error = max(error, 1 / 6000 if name == "contended_share" else 1e-12)
        assert abs(mean - getattr(exact, name)[0]) < ERRORS * error, name


def test_it_sees_a_wrong_solution():
    """The tolerance is narrow enough to tell 10 % of the section's length."""
    found = simulate(Lock("ticket", 1.0, 0.3, handoff_s=0.1), 8, lookups=30000, seed=1)
    mean, error = found.mean("throughput")
    wrong = solve(Lock("ticket", 1.0, 0.33, handoff_s=0.1), 8).throughput[0]
    assert abs(mean - wrong) > ERRORS * error


def test_a_seed_gives_the_same_run():
    one, two, other = (simulate(Lock("mcs", 1.0, 0.2), 4, lookups=400, seed=seed) for seed in (5, 5, 6))
    assert one.throughput.tolist() == two.throughput.tolist()
    assert one.throughput.tolist() != other.throughput.tolist()


@pytest.mark.parametrize(("tasks", "lookups"), [(0, 1000), (2, 100)])
def test_too_little(tasks, lookups):
    with pytest.raises(ValueError, match="at least one task and 200 look-ups"):
        simulate(Lock("none", 1.0, 1.0), tasks, lookups=lookups, seed=0)
