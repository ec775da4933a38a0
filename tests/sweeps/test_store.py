"""What a store holds, how it opens, and which are refused."""

import fcntl
import json
import os
import subprocess
import sys
import threading

import dask
import numpy as np
import pytest
import xarray as xr

import numalab
from numalab import runs, sweeps
from numalab.records import DescriptionError
from numalab.sweeps.spec import Spec
from tests.sweeps.small import GRID, files, sweep


def test_runs_lie_by_setup_point_and_seed(finished):
    ds = sweeps.open(finished)
    assert ds.sizes["run"] == 16
    assert ds.kernel.values.tolist() == ["3.16"] * 8 + ["6.1"] * 8
    assert ds.workload_size_mb.values.tolist() == ([4.0] * 4 + [8.0] * 4) * 2
    assert ds.scan_size_mb.values.tolist() == [1, 1, 256, 256] * 4
    assert ds.seed.values.tolist() == [0, 1] * 8
    assert ds.status.values.tolist() == [1] * 16


def test_it_opens_lazily_with_a_chunk_a_batch(finished):
    ds = sweeps.open(finished)
    for name, array in ds.data_vars.items():
        assert dask.is_dask_collection(array.data), name
    assert ds.local_share.chunks == ((4, 4, 4, 4),)


def test_it_is_a_run_dataset(finished, tmp_path):
    """Valid in numalab's schema, as it is and saved; ds.numa has what the sweep kept."""
    ds = sweeps.open(finished)
    runs.validate(ds)
    runs.save(ds.compute(), tmp_path / "x.nc")
    assert runs.equal(runs.open(tmp_path / "x.nc"), ds.compute())
    np.testing.assert_equal(ds.numa.local_share().values, ds.local_share.values)
    np.testing.assert_equal(ds.numa.migrations_per_fault().values, ds.migrations_per_fault.values)
    np.testing.assert_equal(ds.numa.convergence_time().values, ds.converged_s.values)
    np.testing.assert_equal(ds.numa.convergence_time(first=True).values, ds.first_converged_s.values)
    assert ds.numa.mmtests()["NUMA hint faults"].values.tolist() == ds.numa_hint_faults.values[:, 0].tolist()


def test_provenance_has_the_whole_sweep_and_no_time(finished):
    how = runs.provenance(sweeps.open(finished))
    assert (how["numalab"], how["revision"]) == (numalab.__version__, "test")
    assert how["sweep"]["spec"]["grid"] == GRID
    text = json.dumps({name: content.decode() for name, content in files(finished).items() if "/.z" in f"/{name}"})
    assert "202" not in text


def test_what_is_kept_over_time(tmp_path):
    """Against the same runs at once."""
    kept = {"pages": 0.5, "task_node": 1.0, "numa_hint_faults": 0.5}
    ds = sweep(tmp_path / "x.zarr", keep=kept, grid={"scan_size_mb": [1, 256]})
    alone = numalab.simulate(
        numalab.machine.Machine.uniform(nodes=2, cpus_per_node=2, memory_mb=64),
        numalab.workloads.wrong_node(size_mb=8), "6.1", seconds=2, seeds=2, scan_size_mb=[1, 256], every=kept,
    )  # fmt: skip
    for name, every in kept.items():
        axis = str(ds[name].dims[1])
        assert ds[axis].values.tolist() == np.arange(0, 2 + every, every).tolist()
        np.testing.assert_array_equal(ds[name].values, alone[name].values)
    assert ds.node.values.tolist() == [0, 1]
    assert ds.task_process.values.tolist() == [0]
    np.testing.assert_equal(ds.numa.convergence_time().values, alone.numa.convergence_time().values)
    # two samples a second show growth
    np.testing.assert_equal(ds.numa.local_share().values, alone.numa.local_share().values)
    assert ds.numa.rates("numa_hint_faults").sizes["time_1"] == 4


def test_axes_that_differ_are_refused_before_anything_is_simulated(tmp_path):
    with pytest.raises(sweeps.SweepError, match=r"sweep\.keep: pages .* differ between .*2.* against .*4"):
        sweep(tmp_path / "x.zarr", keep=["pages"], grid={"machine.nodes": [2, 4]})
    assert list(tmp_path.iterdir()) == []
    # counters have no axis but time
    assert sweep(tmp_path / "x.zarr", keep=["numa_hint_faults"], grid={"machine.nodes": [2, 4]}).sizes["run"] == 4


def test_another_sweep_is_refused_with_what_differs(finished, wanted):
    differences = r"seconds: 3.0 here, 2.0 there; grid.scan_size_mb: \[1, 128\] here, \[1, 256\] there"
    with pytest.raises(sweeps.SweepError, match=rf"holds another sweep \({differences}\); give another name"):
        sweep(finished, seconds=3, grid={**GRID, "scan_size_mb": [1, 128]})
    assert files(finished) == wanted


def test_another_revision_is_refused_unless_told(finished, monkeypatch, wanted):
    monkeypatch.setattr("numalab.runs.revision", lambda: "newer")
    with pytest.raises(sweeps.SweepError, match=r"was begun by numalab .* \(test\), this is numalab .* \(newer\)"):
        sweep(finished)
    sweep(finished, any_revision=True)
    assert files(finished) == wanted


def test_two_at_once_are_refused(finished):
    handle = os.open(finished, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(sweeps.SweepError, match="another process is filling it"):
            sweep(finished)
    finally:
        os.close(handle)


def test_of_two_that_begin_at_once_the_second_waits_and_continues(tmp_path, wanted):
    """While another process holds the folder the store is not made."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    second = threading.Thread(target=sweep, args=(tmp_path / "x.zarr",))
    second.start()
    second.join(0.5)
    assert list(tmp_path.iterdir()) == []
    os.close(handle)
    second.join()
    assert files(tmp_path / "x.zarr") == wanted


def test_the_kernel_is_named_by_all_that_is_not_swept(tmp_path):
    kernel = {"name": "3.16", "patches": ["S1#2"], "switches": {"scan_delay_ms": 500, "move_in_swap": False}}
    grid = {"kernel": ["3.16"], "move_in_swap": [False, True], "remote_cost": [1, 2]}
    ds = sweep(tmp_path / "x.zarr", kernel=kernel, grid=grid, seeds=1)
    assert set(ds.kernel.values) == {"3.16 scan_delay_ms=500 +S1#2"}
    assert ds.move_in_swap.values.tolist() == ["off", "off", "on", "on"]


@pytest.mark.parametrize("kind", ["missing", "folder", "foreign"])
def test_what_is_no_sweep_is_told(tmp_path, kind):
    path = tmp_path / "x.zarr"
    if kind == "missing":
        with pytest.raises(FileNotFoundError, match=r"x\.zarr: no such store"):
            sweeps.open(path)
        return
    path.mkdir()
    if kind == "foreign":
        (path / ".zgroup").write_text('{"zarr_format": 2}')
        (path / ".zmetadata").write_text('{"metadata": {".zgroup": {"zarr_format": 2}}, "zarr_consolidated_format": 1}')
    with pytest.raises(sweeps.SweepError, match="is not the store of a sweep"):
        sweeps.open(path)


def test_without_the_extra_one_message_has_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ValueError, match=r"sweeps need zarr, which is not installed: pip install 'numalab\[sweep\]'"):
        sweep(tmp_path / "x.zarr")


def test_importing_numalab_loads_none_of_it():
    heavy = ("zarr", "dask", "distributed", "scipy", "SALib")
    # nor does a command that sweeps nothing
    for module in ("numalab", "numalab.commands.plot"):
        code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "[]\n", done.stderr


def test_the_sample_of_a_store_is_taken_not_drawn_anew(tmp_path, monkeypatch):
    """Another scipy may draw otherwise: what was begun stays."""
    design = {"latin_hypercube": {"n": 4, "ranges": {"scan_size_mb": [1, 256]}}, "grid": None}
    first = sweep(tmp_path / "x.zarr", **design)
    monkeypatch.setattr(Spec, "drawn", lambda self: pytest.fail("drawn anew"))
    again = sweep(tmp_path / "x.zarr", **design)
    assert again.scan_size_mb.values.tolist() == first.scan_size_mb.values.tolist()


def test_nothing_is_left_where_no_setup_can_be_built(tmp_path):
    with pytest.raises(DescriptionError, match="expected at most 128 MB in all"):
        sweep(tmp_path / "x.zarr", grid={"workload.size_mb": [400.0, 500.0]})
    assert list(tmp_path.iterdir()) == []


def test_others_can_open_it_without_numalab(finished):
    ds = xr.open_zarr(finished)
    assert {"seed", "kernel", "scan_size_mb", "workload_size_mb"} <= set(ds.coords)
    assert ds.numa_hint_faults.attrs["units"] == "1"
