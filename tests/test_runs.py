"""Building, saving, opening, comparing and joining runs."""

import errno
import json
import os
import re
import subprocess
import sys

import h5netcdf
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import numalab
from numalab import runs

PARAMS = {"kernel": {"release": "3.16", "move_in_swap": True}, "seeds": [1, 2], "step": None}


def small(source="simulated", **more):
    """Two runs, two nodes with a gap in their ids, two processes of two tasks."""
    variables = {
        "numa_hint_faults": [[0, 10, 30], [5, 5, 2**40]],
        "numa_hint_faults_local": [[0, 5, 20], [5, 5, 5]],
        "task_node": (("run", "time_task", "task"), [[[0, 0, 2, 2], [0, 0, 2, 2]], [[0, 2, 2, -1], [0, 2, 2, 2]]]),
        "free_pages": np.full((2, 3, 2), 7),
        **more.pop("variables", {}),
    }
    coords = {
        "time": [0.0, 0.5, 1.5],
        "time_task": [0.0, 1.5],
        "node": [0, 2],
        "task": [100, 101, 200, 201],
        "task_process": [1, 1, 2, 2],
        "process": [1, 2],
        "seed": [1, 2],
        "kernel": ["3.16", "3.17 + patch 5"],
        "scan_size_mb": ("run", [256, 64]),
        "thp": ("run", [True, False]),
        **more.pop("coords", {}),
    }
    return runs.build(variables, coords, title="a test", source=source, params=PARAMS, **more)


def events(*lengths):
    rows = [
        {
            "event_time_s": np.arange(n) * 0.5,
            "event_kind": np.arange(n) % 4,
            "event_task": np.full(n, 100),
            "event_src_node": np.zeros(n, dtype=int),
            "event_gain": np.full(n, -1),
        }
        for n in lengths
    ]
    return runs.padded("event", rows)


# ------------------------------------------------------------- building and checking


def test_build_gives_declared_types_units_and_names():
    ds = small()
    assert ds.numa_hint_faults.dtype == np.int64
    assert ds.task_node.dtype == np.int32
    assert ds.task_node.dims == ("run", "time_task", "task")
    assert ds.free_pages.attrs == {"units": "pages", "long_name": "free pages on the node"}
    assert ds.time.attrs["units"] == "s"
    assert ds.numa_hint_faults.values[1, 2] == 2**40
    assert ds.attrs["source"] == "simulated"
    assert ds.attrs["title"] == "a test"


def test_every_declaration_is_sound():
    for name, spec in {**runs.VARIABLES, **runs.COORDS}.items():
        assert spec.dtype in {"int32", "int64", "float64", "str"}, name
        assert spec.units, name
        assert spec.long_name, name
        if spec.cumulative:
            assert "time" in spec.dims, name
    # the counters of /proc/vmstat reach 10^9 and more: 32 bits would not do
    for name in ("numa_pte_updates", "numa_hint_faults", "numa_pages_migrated", "pgmigrate_success"):
        assert runs.VARIABLES[name].dtype == "int64"
        assert runs.VARIABLES[name].cumulative


def test_provenance_keeps_what_netcdf_attributes_cannot():
    params = runs.provenance(small())
    assert params["kernel"] == {"release": "3.16", "move_in_swap": True}
    assert params["step"] is None
    assert params["numalab"] == numalab.__version__
    assert "revision" in params


def test_numpy_values_in_params_become_plain_json():
    ds = runs.build(
        {"numa_hint_faults": [[0]]},
        {"time": [0.0]},
        title="t",
        source="measured",
        params={"a": np.int64(3), "b": np.array([1.5, 2.0]), "c": {"y", "x"}},
    )
    stored = json.loads(ds.attrs["numalab_params"])
    assert (stored["a"], stored["b"], stored["c"]) == (3, [1.5, 2.0], ["x", "y"])


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"hint_faults": [[0, 1, 2]]}, "hint_faults: not a variable of a run"),
        ({"numa_pte_updates": [0, 1, 2]}, r"numa_pte_updates: expected 2 dimensions .* shape \(3,\)"),
        ({"numa_pte_updates": [[0.0, 1.0, 2.0]] * 2}, "numa_pte_updates: expected int64, got float64"),
        ({"preferred_nid": np.full((2, 3, 4), 2**31)}, "preferred_nid: some values do not fit into int32"),
        ({"numa_pte_updates": [[0, 5, 4]] * 2}, "numa_pte_updates: a counter never falls along time"),
        ({"numa_pte_updates": [[-1, 5, 6]] * 2}, "numa_pte_updates: a counter is never negative, got -1"),
        ({"preferred_nid": np.full((2, 3, 4), 1)}, r"preferred_nid: 1 is not a label of node \(\[0, 2\]\)"),
        ({"numa_pte_updates": (("run", "node"), [[0, 1]] * 2)}, r"expected dims \('run', 'time'\), got"),
        ({"numa_pte_updates": [[0, 1]] * 2}, "the arrays do not fit together"),
        ({"event_count": [0, 0], "event_gain": np.zeros((2, 1))}, "event_gain: expected int32, got float64"),
        ({"event_gain": [[1], [2]]}, "event_count: missing"),
        ({"event_count": [1, 0], "event_gain": [[1], [2]]}, "event_gain: rows beyond event_count must be padding"),
        ({"event_count": [1, 1], "event_kind": [[1], [4]]}, "event_kind: expected 0 to 3"),
        ({"event_count": [2, 1], "event_kind": [[1], [3]]}, "event_count: expected 0 to 1"),
    ],
)
def test_build_names_the_variable_and_what_was_expected(variables, message):
    with pytest.raises(runs.SchemaError, match=message):
        small(variables=variables)


@pytest.mark.parametrize(
    ("coords", "message"),
    [
        ({"time": [0.0, 0.5, 0.5]}, "time: expected strictly increasing finite seconds"),
        ({"time": [0.0, 0.5, np.nan]}, "time: expected strictly increasing finite seconds"),
        ({"node": [2, 2]}, "node: labels are not unique"),
        ({"task_process": [1, 1, 2, 3]}, "task_process: 3 is not a label of process"),
        ({"shape": ("node", [1, 2])}, "shape: an extra coordinate must lie along run"),
    ],
)
def test_build_checks_coordinates(coords, message):
    with pytest.raises(runs.SchemaError, match=message):
        small(coords=coords)


def test_validate_reports_all_problems_at_once():
    ds = small()
    ds["free_pages"] = ds.free_pages.astype("int32")
    ds["numa_hint_faults"].attrs["units"] = "pages"
    ds.attrs["source"] = "dreamt"
    del ds.attrs["numalab_params"]
    with pytest.raises(runs.SchemaError) as error:
        runs.validate(ds)
    text = str(error.value)
    assert "free_pages: expected int64, got int32" in text
    assert "numa_hint_faults: expected units '1', got 'pages'" in text
    assert "'dreamt'" in text
    assert "'numalab_params' is missing" in text


def test_validate_wants_the_run_dimension():
    with pytest.raises(runs.SchemaError, match="run: every run has this dimension"):
        runs.validate(small().isel(run=0, drop=True))


def test_a_newer_schema_is_refused_by_name():
    ds = small()
    ds.attrs["numalab_schema"] = 99
    with pytest.raises(runs.SchemaError, match="reads version 1, got 99"):
        runs.validate(ds)


def test_padded_tables():
    table = events(2, 0, 3)
    assert table["event_count"].tolist() == [2, 0, 3]
    assert table["event_kind"].tolist() == [[0, 1, -1], [-1, -1, -1], [0, 1, 2]]
    np.testing.assert_array_equal(table["event_time_s"][0], [0.0, 0.5, np.nan])
    with pytest.raises(runs.SchemaError, match="event_gain: expected int32, got float64"):
        runs.padded("event", [{"event_gain": [1.5]}])
    with pytest.raises(runs.SchemaError, match="event table of run 0"):
        runs.padded("event", [{"event_kind": [1, 2], "event_gain": [3]}])


def test_padded_tables_with_further_axes_and_empty_runs():
    empty = np.zeros((0, 2), dtype="int32")
    table = runs.padded("progress", [{"perf_threads": empty}, {"perf_threads": [[3, 4]]}])
    assert table["perf_threads"].tolist() == [[[-1, -1]], [[3, 4]]]
    assert table["perf_record_count"].tolist() == [0, 1]


# ------------------------------------------------------------- files


def test_save_and_open_give_the_same_run(tmp_path):
    ds = small(variables=events(2, 0))
    back = runs.open(runs.save(ds, tmp_path / "deep" / "run.nc"))
    assert runs.differences(ds, back) == []
    assert back.attrs == ds.attrs
    for name in ds.variables:
        assert back[name].dtype.kind == ds[name].dtype.kind, name
        assert (name in back.coords) == (name in ds.coords), name
        assert back[name].attrs.get("units") == ds[name].attrs.get("units"), name
    assert back.numa_hint_faults.dtype == np.int64
    assert back.event_count.dtype == np.int64
    assert back.kernel.values.tolist() == ["3.16", "3.17 + patch 5"]
    assert back.thp.values.tolist() == [True, False]


def test_integers_have_no_fill_value_in_the_file(tmp_path):
    path = runs.save(small(variables=events(2, 0)), tmp_path / "run.nc")
    with h5netcdf.File(path, "r") as file:
        for name, variable in file.variables.items():
            if np.dtype(variable.dtype).kind in "iu":
                assert "_FillValue" not in variable.attrs, name
        assert np.isnan(file.variables["event_time_s"].attrs["_FillValue"])
        assert file.variables["numa_hint_faults"].dtype == np.int64


def test_a_value_that_could_be_a_fill_value_survives(tmp_path):
    extreme = np.array([[0, -(2**63) + 1, 2**63 - 1]] * 2)
    ds = small(variables={"free_pages": np.stack([extreme, extreme[:, ::-1]], axis=2)})
    back = runs.open(runs.save(ds, tmp_path / "run.nc"))
    np.testing.assert_array_equal(back.free_pages.values, ds.free_pages.values)


def test_two_writes_are_identical_bytes(tmp_path):
    ds = small()
    one, two = runs.save(ds, tmp_path / "a.nc"), runs.save(ds, tmp_path / "b.nc")
    assert one.read_bytes() == two.read_bytes()


def test_large_parameters_survive(tmp_path):
    big = {"kernel": {f"switch_{i}": list(range(20)) for i in range(5000)}}  # far above HDF5's 64 KiB header
    ds = runs.build({"numa_hint_faults": [[0]]}, {"time": [0.0]}, title="t", source="measured", params=big)
    assert len(ds.attrs["numalab_params"]) > 200_000
    assert runs.provenance(runs.open(runs.save(ds, tmp_path / "run.nc")))["kernel"] == big["kernel"]


def test_large_arrays_are_compressed_and_exact(tmp_path):
    zeros = np.zeros((2, 200_000), dtype=np.int64)
    zeros[1, -1] = 2**40
    ds = runs.build(
        {"numa_hint_faults": zeros}, {"time": np.arange(200_000) / 8}, title="t", source="simulated", params={}
    )
    path = runs.save(ds, tmp_path / "run.nc")
    assert path.stat().st_size < zeros.nbytes / 2
    assert runs.equal(runs.open(path), ds)


def test_gzipped_files_hold_the_same_run(tmp_path):
    plain, packed = (runs.save(small(), tmp_path / name) for name in ("a.nc", "b.nc.gz"))
    assert runs.differences(runs.open(plain), runs.open(packed)) == []
    assert packed.stat().st_size < plain.stat().st_size / 2
    assert runs.save(runs.open(packed), tmp_path / "c.nc.gz").read_bytes() == packed.read_bytes()
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(runs.SchemaError, match=r"b\.nc\.gz: not a netCDF-4 file"):
        runs.open(packed)
    (tmp_path / "d.nc.gz").write_bytes(plain.read_bytes())
    with pytest.raises(runs.SchemaError, match=r"d\.nc\.gz: not a netCDF-4 file"):
        runs.open(tmp_path / "d.nc.gz")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = runs.save(small(), tmp_path / "run.nc")
    before = path.read_bytes()

    def broken(*_args):
        raise OSError(errno.ENOSPC, "No space left on device", "a temporary name")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="No space left") as caught:
        runs.save(small(), path)
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


def test_a_full_disk_is_an_error_not_a_crash(tmp_path):
    # The limit on the size of a file stands in for the disk; a signal would end the process.
    code = """if True:
        import resource, signal, sys
        from numalab import runs
        ds = runs.open(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            runs.save(ds, sys.argv[2])
        except OSError as error:
            print(error.errno, error.filename)
    """
    path = runs.save(small(), tmp_path / "run.nc")
    assert path.stat().st_size > 4096
    done = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "new.nc"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{errno.EFBIG} {tmp_path / 'new.nc'}\n", "")
    assert os.listdir(tmp_path) == ["run.nc"]


def test_save_replaces_nothing_but_regular_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "link.nc").symlink_to("pipe.nc")
    for name, found in (("pipe.nc", "is a device, a pipe"), ("link.nc", "is a device"), ("folder.nc", "is a folder")):
        with pytest.raises(OSError, match=rf"{name}: {found}"):
            runs.save(small(), tmp_path / name)
    assert (tmp_path / "pipe.nc").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["folder.nc", "link.nc", "pipe.nc"]


def test_save_follows_links(tmp_path):
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "target.nc"
    link = tmp_path / "link.nc"
    link.symlink_to("deep/target.nc")
    assert runs.save(small(), link) == link  # the target does not exist yet
    assert link.is_symlink()
    assert runs.equal(runs.open(target), small())
    target.write_text("old")
    runs.save(small(), link)
    assert link.is_symlink()
    assert runs.equal(runs.open(target), small())
    assert os.listdir(tmp_path / "deep") == ["target.nc"]
    link.unlink()
    link.symlink_to("link.nc")
    with pytest.raises(OSError, match="symbolic links"):
        runs.save(small(), link)


def test_save_refuses_what_is_not_a_run(tmp_path):
    with pytest.raises(runs.SchemaError, match="speed: not a variable of a run"):
        runs.save(small().assign(speed=("run", [1.0, 2.0])), tmp_path / "run.nc")
    assert os.listdir(tmp_path) == []


def test_open_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.nc: no such file"):
        runs.open(tmp_path / "none.nc")
    with pytest.raises(runs.SchemaError, match=r"is a folder, not a saved run; numalab read FOLDER -o RUN\.nc"):
        runs.open(tmp_path)
    text = tmp_path / "text.nc"
    text.write_text("numa_hit 12\n")
    with pytest.raises(runs.SchemaError, match=r"text\.nc: not a netCDF-4 file"):
        runs.open(text)
    other = tmp_path / "other.nc"
    xr.Dataset({"speed": ("x", [1.0])}).to_netcdf(other, engine="h5netcdf")
    with pytest.raises(runs.SchemaError, match=r"other\.nc: not a numalab run: speed: not a variable") as caught:
        runs.open(other)
    assert "\n" not in str(caught.value)
    assert re.search(r" \(and \d+ more problems\)$", str(caught.value))


def test_the_file_can_be_removed_and_rewritten_after_open(tmp_path):
    path = runs.save(small(), tmp_path / "run.nc")
    ds = runs.open(path)
    runs.save(ds, path)
    path.unlink()
    assert ds.numa_hint_faults.values[0].tolist() == [0, 10, 30]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=6),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=4),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
)
def test_any_values_survive_a_file(tmp_path_factory, counts, floats, name):
    ds = runs.build(
        {"numa_hint_faults": [sorted(counts)] * len(floats), "perf_converged_s": floats},
        {"time": np.arange(len(counts)) * 1.0, "kernel": [name] * len(floats)},
        title=name,
        source="measured",
        params={"name": name},
    )
    back = runs.open(runs.save(ds, tmp_path_factory.mktemp("any") / "run.nc"))
    assert runs.differences(ds, back) == []
    assert back.attrs == ds.attrs


# ------------------------------------------------------------- comparing, joining


def test_differences_name_variable_place_and_values():
    a, b = small(), small()
    assert runs.equal(a, b)
    b["numa_hint_faults"][1, 2] = 9
    b = b.drop_vars("free_pages")
    assert runs.differences(a, b) == [
        "free_pages: only in the first",
        f"numa_hint_faults: 1 of 6 values differ, first at run[1], time[2]: {2**40} != 9",
    ]
    assert not runs.equal(a, b)


def test_differences_see_types_shapes_and_nan():
    a = small(variables={"perf_converged_s": [1.0, np.nan]})
    assert runs.equal(a, a.copy(deep=True))
    b = a.copy()
    b["perf_converged_s"] = ("run", [1.0, 2.0])
    b["task_node"] = a.task_node.astype("int64")
    assert runs.differences(a, b) == [
        "perf_converged_s: 1 of 2 values differ, first at run[1]: nan != 2.0",
        "task_node: int32 against int64",
    ]
    assert "kernel: {'run': 2} against {'run': 1}" in runs.differences(a, a.isel(run=[0]))


def test_concat_splits_and_joins_back():
    ds = small(variables=events(2, 3))
    parts = [ds.isel(run=[i]) for i in (0, 1)]
    assert runs.equal(runs.concat(parts), ds)


def test_concat_pads_tables_and_keeps_integers():
    a, b = small(variables=events(1, 0)), small(variables=events(0, 3))
    joined = runs.concat([a, b])
    assert joined.sizes["run"] == 4
    assert joined.event_count.values.tolist() == [1, 0, 0, 3]
    assert joined.event_kind.values.tolist() == [[0, -1, -1], [-1] * 3, [-1] * 3, [0, 1, 2]]
    assert joined.event_kind.dtype == np.int32
    assert joined.numa_hint_faults.dtype == np.int64
    assert joined.seed.values.tolist() == [1, 2, 1, 2]


def test_concat_keeps_the_provenance_of_each():
    a = small()
    b = a.assign_attrs(numalab_params=json.dumps({"seeds": [9]}))
    assert [p.get("seeds") for p in runs.provenance(runs.concat([a, b]))["concatenated"]] == [[1, 2], [9]]
    assert runs.provenance(runs.concat([a, a])) == runs.provenance(a)


def test_concat_titles_name_all():
    a = small()
    assert runs.concat([a, a]).title == "a test"
    b = a.assign_attrs(title="another")
    assert runs.concat([a, b, a]).title == "a test; another"


def test_concat_refuses_what_does_not_fit():
    a = small()
    with pytest.raises(runs.SchemaError, match=r"dataset 1 does not fit dataset 0: time: .*use numalab.runs.at_times"):
        runs.concat([a, small(coords={"time": [0.0, 0.5, 2.5]})])
    with pytest.raises(runs.SchemaError, match="do not both have free_pages"):
        runs.concat([a, a.drop_vars("free_pages")])
    with pytest.raises(runs.SchemaError, match="simulated and measured"):
        runs.concat([a, small(source="measured")])


def test_at_times_takes_the_last_sample_and_invents_nothing():
    ds = runs.at_times(small(), [0.0, 1.4, 1.5])
    assert ds.numa_hint_faults.values[0].tolist() == [0, 10, 30]
    assert ds.task_node.values[1, :, 3].tolist() == [-1, -1, 2]
    assert ds.time.attrs["units"] == "s"
    runs.validate(ds)
    with pytest.raises(ValueError, match=r"0\.0 to 1\.5 s was recorded, but 0\.0 to 2\.0 s"):
        runs.at_times(small(), [0.0, 2.0])


# ------------------------------------------------------------- import cost


def test_importing_numalab_loads_nothing_heavy():
    code = "import sys, numalab; print(numalab.__version__, sorted({'numpy', 'xarray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [numalab.__version__, "[]"]


def test_public_names_are_imported_on_first_use():
    assert numalab.open is runs.open
    assert numalab.runs is runs
    assert "open" in dir(numalab)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = numalab.nothing
