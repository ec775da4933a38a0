"""Tasks that take turns: against results by hand, the closed queue, and a simulation of every look-up."""

from collections import deque

import numpy as np
import pytest

from numalab.locks import Lock, Work, share_cpus, solve, take_turns


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_with_a_cpu_each_it_is_the_closed_queue(tasks):
    found, queue = share_cpus(Work(tasks, 2.0, 0.7), 3, 0.1, 50.0, rng()), solve(Lock("mcs", 2.0, 0.7), tasks)
    assert found.lookups == pytest.approx(50 * queue.throughput[0])
    assert found.contended == pytest.approx(found.lookups * queue.contended_share[0], abs=1e-15)
    assert found.wait_s == pytest.approx(50 * tasks * queue.waiting_share[0], abs=1e-12)


def test_two_tasks_on_one_cpu_by_hand():
    """A turn of work ends inside the section with s / (a + s) = 1/4.

    Then the other one asks, claims and spins for a turn; the holder comes back, is done at once, asks again, finds
    the claim and spins for a turn, too; then the first takes the lock and works, while the second waits.
    Turns of work without and with a waiter W0, W1, spinning S1, S2: S1 = S2 = W1 = (W0 + W1) / 4, so W0 = 1/2, the
    others 1/6. Throughput 2/3; waiting 1 in W1 and S1, 2 in S2: 4/6 of two tasks. A look-up is contended in S2, and in
    S1 if it follows W0, not W1, where the other waits already: 1/6 + 1/8 per turn, and a turn is 1/2 long on average.
    """
    seconds = 20_000.0
    found = share_cpus(Work(2, 3e-6, 1e-6), 1, 1.0, seconds, rng())
    assert found.lookups * 4e-6 / seconds == pytest.approx(2 / 3, rel=0.02)
    assert found.wait_s / (2 * seconds) == pytest.approx(1 / 3, rel=0.04)
    assert found.contended / seconds == pytest.approx(7 / 12, rel=0.03)


@pytest.mark.parametrize("passed_on", [0.3, 1.0])
def test_two_tasks_in_a_ring_by_hand(passed_on):
    """A turn passes on with probability p, and is stopped inside the section with f = 1/4.

    With nobody waiting, a turn that is stopped inside and passes on makes both ask: the other one claims and gets the
    lock, the first waits. While one waits, a turn that passes on lets it in, unless the lock is held: then the two
    change places, and one look-up is contended. So waiting begins with p * f and ends with p * (1 - f) per turn: one
    waits for a share f of the time, f / 2 of that of two. Contended per turn: (1 - f) * 2 p f + f * p f.
    """
    turns, f = 20_000, 1 / 4
    found = take_turns(Work(2, 3e-6, 1e-6), [1.0], [passed_on, 1 - passed_on], float(turns), rng())
    assert found.wait_s / (2 * turns) == pytest.approx(f / 2, rel=0.06)
    assert found.contended / turns == pytest.approx(passed_on * f * (2 - f), rel=0.06)
    assert found.lookups == pytest.approx(turns / 4e-6)


def test_a_turn_that_comes_back_meets_nobody():
    found = take_turns(Work(2, 3e-6, 1e-6), [1.0, 7.0], [0.0, 1.0], 1000.0, rng())
    assert (found.contended, found.wait_s) == (0, 0)


class Named:
    """Every look-up of every task; first come first served, and the task stopped longest comes next."""

    def __init__(self, work, cpus, turn_s, seed):
        self.work, self.turn_s, self.rng = work, turn_s, rng(seed)
        self.doing = ["think"] * work.tasks
        self.left = self.rng.exponential(work.think_s, work.tasks)
        self.running, self.stopped = list(range(cpus)), deque(range(cpus, work.tasks))
        self.ends = self.rng.uniform(0, turn_s, cpus)
        self.queue, self.claimed = deque(), False
        self.done = self.contended = 0
        self.waited = 0.0

    def run(self, seconds):
        now = 0.0
        while now < seconds:
            at_work = [task for task in self.running if self.doing[task] != "wait"]
            first = min(at_work, key=self.left.__getitem__, default=None)
            place = int(self.ends.argmin())
            step = self.ends[place] - now
            if first is not None and self.left[first] < step:
                step, place = self.left[first], None
            self.left[at_work] -= step
            self.waited += step * len(self.queue)
            now += step
            if place is None:
                self.act(first)
            else:
                self.stopped.append(self.running[place])
                self.running[place] = self.stopped.popleft()
                self.ends[place] = now + self.turn_s * self.rng.random()
            self.settle()
        return self.done / seconds, self.contended / self.done, self.waited / seconds / self.work.tasks

    def act(self, task):
        if self.doing[task] == "hold":
            self.done += 1
            self.start(task, "think", self.work.think_s)
        elif "hold" in self.doing or self.claimed:
            self.contended += 1
            self.doing[task] = "wait"
            self.queue.append(task)
        else:
            self.start(task, "hold", self.work.section_s)

    def start(self, task, what, mean):
        self.doing[task], self.left[task] = what, self.rng.exponential(mean)

    def settle(self):
        if not self.queue or self.queue[0] not in self.running:
            return
        if "hold" in self.doing:
            self.claimed = True
            return
        self.start(self.queue.popleft(), "hold", self.work.section_s)
        self.claimed = bool(self.queue) and self.queue[0] in self.running


@pytest.mark.parametrize(
    ("work", "cpus", "turn_s"),
    [(Work(3, 3.0, 1.0), 1, 400.0), (Work(4, 2.6, 0.4), 2, 400.0), (Work(5, 30.0, 0.6), 2, 500.0)],
    ids=str,
)
def test_it_agrees_with_every_look_up(work, cpus, turn_s):
    """Means within 4 standard errors and 6 %: a turn is some hundred look-ups long, not infinitely many."""
    seconds = 60 * turn_s
    exact = np.array([Named(work, cpus, turn_s, seed).run(seconds) for seed in range(10)])
    runs = [share_cpus(work, cpus, turn_s, seconds, rng(seed)) for seed in range(60)]
    found = np.array([(r.lookups / seconds, r.contended / r.lookups, r.wait_s / seconds / work.tasks) for r in runs])
    error = np.hypot(exact.std(0, ddof=1) / np.sqrt(10), found.std(0, ddof=1) / np.sqrt(60))
    assert (np.abs(found.mean(0) - exact.mean(0)) < 4 * error + 0.06 * exact.mean(0)).all(), (
        found.mean(0),
        exact.mean(0),
    )


@pytest.mark.parametrize("arguments", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_what_is_no_work(arguments):
    with pytest.raises(ValueError, match="expected"):
        Work(*arguments)


def test_what_is_no_run():
    work = Work(3, 1.0, 1.0)
    for cpus, turn_s, seconds in ((0, 1.0, 1.0), (1, 0.0, 1.0), (1, 1.0, 0.0)):
        with pytest.raises(ValueError, match="expected at least one CPU and positive times"):
            share_cpus(work, cpus, turn_s, seconds, rng())
    with pytest.raises(ValueError, match="add up to 1"):
        take_turns(work, [1.0], [0.5, 0.4], 1.0, rng())
    with pytest.raises(ValueError, match="positive times"):
        take_turns(work, [1.0, 0.0], [1.0], 1.0, rng())
