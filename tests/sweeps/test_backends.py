"""The same store, byte by byte, whatever simulates it and in whatever order."""

import os
import signal
from concurrent.futures import CancelledError
from types import SimpleNamespace

import distributed
import numpy as np
import pytest

from numalab import pool, simulate, sweeps
from numalab.machine import Machine
from numalab.sweeps import backends
from numalab.sweeps.batch import simulate_batch
from numalab.workloads import wrong_node
from tests.sweeps.small import files, sweep


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # as in the tests' own process
        client.run(_one_revision)
        yield client


def _one_revision():
    from numalab import runs

    runs.revision = lambda: "test"


def test_every_run_is_what_simulate_gives(finished):
    """Alone, with numbers read off the dataset by hand: in company nothing is different."""
    ds, machine = sweeps.open(finished), Machine.uniform(nodes=2, cpus_per_node=2, memory_mb=64)
    for number in (1, 6, 15):
        run = ds.isel(run=number)
        workload = wrong_node(size_mb=float(run.workload_size_mb))
        given = {"seconds": 2, "seeds": [int(run.seed)], "scan_size_mb": int(run.scan_size_mb)}
        alone = simulate(machine, workload, str(run.kernel.values), **given)
        assert int(run.numa_hint_faults[0]) == int(alone.numa_hint_faults[0, -1])
        assert int(run.numa_pages_migrated[0]) == int(alone.numa_pages_migrated[0, -1])
        np.testing.assert_equal(run.local_share.values, alone.numa.local_share().values[0])
        np.testing.assert_equal(run.converged_s.values, alone.numa.convergence_time().values[0])
        assert run.system_s.values == pytest.approx(alone.task_sys_ms.values[0, -1].sum() / 1000)


def test_worker_processes_give_the_same_files(tmp_path, wanted):
    sweep(tmp_path / "x.zarr", workers=2)
    assert files(tmp_path / "x.zarr") == wanted


def test_a_cluster_gives_the_same_files(tmp_path, wanted, client):
    sweep(tmp_path / "x.zarr", client=client)
    assert files(tmp_path / "x.zarr") == wanted


def test_another_order_gives_the_same_files(tmp_path, wanted, monkeypatch):
    monkeypatch.setattr(backends, "in_processes", lambda jobs, workers: (simulate_batch(one) for one in jobs[::-1]))
    sweep(tmp_path / "x.zarr")
    assert files(tmp_path / "x.zarr") == wanted


def test_a_killed_worker_of_a_cluster_does_no_harm(tmp_path, wanted, client, monkeypatch):
    results, killed = backends.on_cluster, []

    def with_a_murder(jobs, on):
        for result in results(jobs, on):
            if not killed:
                killed.append(on.run(os.getpid).popitem()[1])
                os.kill(killed[0], signal.SIGKILL)
            yield result

    monkeypatch.setattr(backends, "on_cluster", with_a_murder)
    # as many as the nanny's new process has to learn from
    monkeypatch.setattr("numalab.sweeps.running._check_made_by", lambda *what: None)
    sweep(tmp_path / "x.zarr", client=client)
    assert killed
    assert files(tmp_path / "x.zarr") == wanted


def test_workers_of_another_version_are_refused(tmp_path, client):
    def other():
        from numalab import runs

        runs.revision = lambda: "other"

    client.run(other)
    try:
        with pytest.raises(
            sweeps.SweepError, match=r"begun by numalab .* \(test\), a worker of the cluster has .*other"
        ):
            sweep(tmp_path / "x.zarr", client=client)
    finally:
        client.run(_one_revision)


def test_a_batch_whose_process_always_dies_is_a_failure(tmp_path, monkeypatch):
    """The others are done."""
    rounds = []

    def outcomes(function, jobs, **how):
        rounds.append([one.batch for one in jobs])
        for one in jobs:
            yield one, MemoryError("batch 1: its process was killed") if one.batch == 1 else function(one)

    monkeypatch.setattr(pool, "outcomes", outcomes)
    far = sweeps.status(sweep(tmp_path / "x.zarr", workers=2))
    assert rounds == [[0, 1, 2, 3], [1], [1]]
    assert (far.done, far.failed, far.to_do) == (12, 4, 0)
    assert far.failures == {"batch 1: its process was killed, 3 times": [4, 5, 6, 7]}


class Cluster:
    """A client whose futures end as told, one after the other."""

    def __init__(self, *ends):
        self.ends, self.given = list(ends), []

    def nthreads(self):
        return {"worker": 1}

    def submit(self, function, job, pure):
        self.given.append(job.batch)
        return Ended(function, job, self.ends.pop(0) if self.ends else None)


class Ended:
    def __init__(self, function, job, error):
        self.key, self.result_of, self.error = object(), (function, job), error

    def result(self):
        if self.error is not None:
            raise self.error
        function, job = self.result_of
        return function(job)

    def release(self):
        pass


@pytest.fixture
def in_order(monkeypatch):
    """Futures of `Cluster` are done in the order given."""

    class Queue(list):
        def __iter__(self):
            while self:
                yield self.pop(0)

        add = list.append

    names = SimpleNamespace(as_completed=Queue, KilledWorker=distributed.KilledWorker)
    real = backends.need
    monkeypatch.setattr(backends, "need", lambda name: names if name == "distributed" else real(name))


KILLED = distributed.KilledWorker("simulate_batch", None, 3)


def test_a_batch_that_kills_workers_is_given_out_three_times(tmp_path, in_order, wanted):
    cluster = Cluster(None, KILLED, None, None, KILLED, KILLED)
    far = sweeps.status(sweep(tmp_path / "x.zarr", client=cluster))
    assert cluster.given == [0, 1, 2, 3, 1, 1]
    why = "batch 1: its worker was killed, as when memory runs out, 3 times"
    assert (far.done, far.failures) == (12, {why: [4, 5, 6, 7]})
    sweep(tmp_path / "x.zarr", retry_failed=True)
    assert files(tmp_path / "x.zarr") == wanted


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CancelledError(), "the cluster is gone; the same call continues"),
        (
            ModuleNotFoundError("No module named 'numalab'"),
            "the cluster's workers cannot simulate: ModuleNotFoundError",
        ),
    ],
)
def test_a_cluster_that_cannot_is_told_and_what_is_done_stays(tmp_path, in_order, error, message):
    with pytest.raises(sweeps.SweepError, match=message):
        sweep(tmp_path / "x.zarr", client=Cluster(None, None, error))
    assert sweeps.status(sweeps.open(tmp_path / "x.zarr")).done == 8
