"""A run that fails is recorded, and stops no other."""

import numpy as np

from numalab import sweeps
from numalab.sweeps import backends, batch
from tests.sweeps.small import files, sweep

TOO_LARGE = {"grid": {"workload.size_mb": [4.0, 400.0, 8.0], "scan_size_mb": [1, 256]}}


def test_a_setup_that_cannot_be_built_fails_its_runs(tmp_path):
    ds = sweep(tmp_path / "x.zarr", **TOO_LARGE)
    assert ds.status.values.tolist() == [1] * 4 + [2] * 4 + [1] * 4
    why = "workload.regions: expected at most 128 MB in all on machine 2x2, got 400 MB"
    assert set(ds.failure.values[4:8]) == {why}
    assert set(ds.failure.values[[0, 1, 2, 3, 8, 9, 10, 11]]) == {""}
    assert np.isnan(ds.work_pages.values[4:8]).all()
    assert (ds.numa_hint_faults.values[4:8] == -1).all()
    # and not a share of -1 over -1
    assert np.isnan(ds.numa.local_share().values[4:8]).all()
    assert sweeps.status(ds).failures == {why: [4, 5, 6, 7]}


def test_failures_are_the_same_files_in_another_order(tmp_path, monkeypatch):
    sweep(tmp_path / "a.zarr", **TOO_LARGE)
    monkeypatch.setattr(
        backends, "in_processes", lambda jobs, workers: (batch.simulate_batch(one) for one in jobs[::-1])
    )
    sweep(tmp_path / "b.zarr", **TOO_LARGE)
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


def breaking(monkeypatch, wrong):
    """Have `simulate` fail for runs with a seed."""
    calls = []
    real = batch.simulate

    def simulate(*args, seeds, **rest):
        calls.append(list(seeds))
        if wrong in seeds:
            raise ZeroDivisionError("by chance")
        return real(*args, seeds=seeds, **rest)

    monkeypatch.setattr(batch, "simulate", simulate)
    return calls


def test_in_a_batch_only_the_run_that_fails_fails_and_is_retried(tmp_path, monkeypatch, wanted):
    with monkeypatch.context() as patch:
        calls = breaking(patch, wrong=1)
        ds = sweep(tmp_path / "x.zarr")
    # the batch of a setup at once, then each run alone
    assert calls[:5] == [[0, 1, 0, 1], [0], [1], [0], [1]]
    assert ds.status.values.tolist() == [1, 2] * 8
    assert ds.failure.values[1] == "ZeroDivisionError: by chance"
    # nothing is to do, so nothing is done again
    calls = breaking(monkeypatch, wrong=None)
    sweep(tmp_path / "x.zarr")
    assert calls == []
    sweep(tmp_path / "x.zarr", retry_failed=True)
    assert calls == [[1, 1]] * 4
    assert files(tmp_path / "x.zarr") == wanted


def test_a_long_message_is_cut():
    told = batch._message(RuntimeError("x" * 1000))
    assert len(told) == batch.LONGEST
    assert told.endswith("x...")
