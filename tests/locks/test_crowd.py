"""More tasks than CPUs: against hand results, the closed queue, and a simulation of named tasks."""

from collections import deque

import numpy as np
import pytest

from numalab.locks import Crowd, Lock, solve, solve_crowd


@pytest.mark.parametrize("tasks", [1, 2, 3, 5])
def test_with_a_cpu_each_it_is_the_closed_queue(tasks):
    crowd = solve_crowd(Crowd(tasks, tasks, 2.0, 0.7, slice_s=0.1))
    queue = solve(Lock("ticket", 2.0, 0.7), tasks)
    assert crowd.throughput == pytest.approx(queue.throughput[0])
    assert crowd.waiting_share == pytest.approx(queue.waiting_share[0], abs=1e-15)
    assert crowd.contended_share == pytest.approx(queue.contended_share[0], abs=1e-15)
    assert crowd.free_throughput == pytest.approx(tasks / 2.7)


def test_two_tasks_on_one_cpu_by_hand():
    """Slices far longer than look-ups. A slice of work ends inside the section with s / (a + s) = 1/4.

    Then the other one asks, claims and spins for a slice; the holder comes back, is done at once, asks again, finds
    the claim and spins for a slice, too; then the first takes the lock and works, while the second waits.
    Slices of work without and with a waiter W0, W1, spinning S1, S2: S1 = S2 = W1 = (W0 + W1) / 4, so W0 = 1/2, the
    others 1/6. Throughput 2/3; waiting 1 in W1 and S1, 2 in S2: 4/6 of two tasks.
    """
    found = solve_crowd(Crowd(2, 1, 3.0, 1.0, slice_s=1e7))
    assert found.ratio == pytest.approx(2 / 3, rel=1e-5)
    assert found.waiting_share == pytest.approx(1 / 3, rel=1e-5)


class Named:
    """The same rules for tasks with names, plain and slow."""

    def __init__(self, crowd, seed):
        self.crowd, self.rng = crowd, np.random.default_rng(seed)
        self.doing = ["think"] * crowd.tasks
        self.running = set(range(min(crowd.tasks, crowd.cpus)))
        self.queue = deque()
        self.claimed = False
        self.asked = self.waited = self.done = 0

    def settle(self):
        if not self.queue or self.queue[0] not in self.running:
            return
        if "hold" in self.doing:
            self.claimed = True
            return
        self.doing[self.queue.popleft()] = "hold"
        self.claimed = bool(self.queue) and self.queue[0] in self.running

    def rates(self):
        crowd = self.crowd
        for task in sorted(self.running):
            if self.doing[task] == "think":
                yield 1 / crowd.think_s, task, "ask"
            if self.doing[task] == "hold":
                yield 1 / crowd.section_s, task, "release"
            if crowd.tasks > crowd.cpus:
                keeps = crowd.slice_s if self.doing[task] != "wait" else (crowd.spin_slice_s or crowd.slice_s)
                yield 1 / keeps, task, "stop"

    def step(self):
        choices = list(self.rates())
        weights = np.array([rate for rate, _, _ in choices])
        passed = self.rng.exponential() / weights.sum()
        waiting = passed * len(self.queue)
        _, task, what = choices[self.rng.choice(len(choices), p=weights / weights.sum())]
        if what == "ask":
            self.asked += 1
            if "hold" in self.doing or self.claimed:
                self.doing[task] = "wait"
                self.queue.append(task)
                self.waited += 1
            else:
                self.doing[task] = "hold"
        elif what == "release":
            self.doing[task] = "think"
            self.done += 1
        else:
            off = sorted(set(range(self.crowd.tasks)) - self.running)
            self.running.remove(task)
            self.running.add(off[self.rng.integers(len(off))])
        self.settle()
        return passed, waiting

    def run(self, steps):
        start = self.asked, self.waited, self.done
        passed, waiting = np.sum([self.step() for _ in range(steps)], axis=0)
        asked, waited, done = np.array([self.asked, self.waited, self.done]) - start
        return done / passed, waited / asked, waiting / passed / self.crowd.tasks


CROWDS = [
    Crowd(3, 1, 2.0, 1.0, 5.0),
    Crowd(4, 2, 2.0, 0.5, 3.0),
    Crowd(5, 2, 1.0, 1.0, 4.0, spin_slice_s=0.5),
    Crowd(6, 3, 3.0, 1.5, 2.0, spin_slice_s=6.0),
]


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
def test_the_chain_agrees_with_named_tasks(crowd):
    """Means of 24 blocks within 5 standard errors: 12 comparisons, chance of a false alarm below 1 in 1000."""
    named, exact = Named(crowd, seed=3), solve_crowd(crowd)
    named.run(1000)
    blocks = np.array([named.run(1500) for _ in range(24)])
    means, errors = blocks.mean(0), blocks.std(0, ddof=1) / np.sqrt(len(blocks))
    wanted = [exact.throughput, exact.contended_share, exact.waiting_share]
    assert (np.abs(means - wanted) < 5 * errors).all(), (means, wanted, errors)


def test_deviations_agree_with_named_tasks():
    """Scatter of 60 runs of equal length about the mean: its relative error is 1 / sqrt(2 * 59), allow 4 of them."""
    crowd = Crowd(4, 2, 1.0, 0.5, 2.0)
    exact, seconds = solve_crowd(crowd), 150.0
    found = []
    named = Named(crowd, seed=8)
    for _ in range(60):
        named.asked = named.waited = named.done = 0
        time = waiting = 0.0
        while time < seconds:
            passed, more = named.step()
            time, waiting = time + passed, waiting + more
        share = waiting / time / crowd.tasks
        found.append((named.done / time / exact.free_throughput, named.waited / named.asked, share))
    scatter = np.std(found, axis=0, ddof=1)
    for i, name in enumerate(("ratio", "contended_share", "waiting_share")):
        assert scatter[i] == pytest.approx(exact.deviation(name, seconds), rel=4 / np.sqrt(118))


def test_without_competition_nothing_scatters():
    found = solve_crowd(Crowd(1, 1, 1.0, 1.0, 1.0))
    assert found.contended_share == 0
    assert found.waiting_share == 0
    assert found.deviation("waiting_share", 1.0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("arguments", [(0, 1, 1, 1, 1), (1, 0, 1, 1, 1), (1, 1, 0, 1, 1), (1, 1, 1, 1, 1, -1)])
def test_what_is_no_crowd(arguments):
    with pytest.raises(ValueError, match="expected"):
        Crowd(*arguments)
