"""Reading what a sweep is: every key, its errors, and the points it comes to."""

import pytest

from numalab import sweeps
from numalab.records import DescriptionError
from numalab.sweeps.plan import _batch, plan
from numalab.sweeps.spec import Spec, tables
from tests.sweeps.small import FILE, MACHINE, WORKLOAD


def spec(workload=WORKLOAD, machine=MACHINE, kernel="6.1", **table):
    return Spec.build(tables(machine, workload, kernel, 2, 2), table)


def test_a_file_says_the_same_as_the_call(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    read = Spec.load(tmp_path / "x.toml")
    made = spec(batch=4, grid={"kernel": ["3.16", "6.1"], "workload.size_mb": [4.0, 8.0], "scan_size_mb": [1, 256]})
    assert read.differences(made) == []
    assert read.points() == made.points()
    assert len(plan(read).rows) == 16


def test_it_survives_json():
    made = spec(
        grid={"kernel": ["3.16"]}, list={"move_in_swap": [True, False], "rate.heap": [500, 1000]},
        latin_hypercube={"n": 3, "ranges": {"remote_cost": {"low": 10, "high": 100, "log": True}}}, keep={"pages": 1},
    ).drawn()  # fmt: skip
    again = Spec.from_plain(made.plain())
    assert again == made
    assert again.points() == made.points()


def test_grid_lists_and_sample_are_combined_and_a_setup_stays_together():
    lists = {"remote_cost": [1, 2], "copy_page_ns": [3, 4]}
    made = spec(grid={"scan_size_mb": [64, 128], "kernel": ["3.16", "3.17"]}, list=lists)
    points = made.points()
    assert len(points) == made.size == 8
    assert points[0] == {"scan_size_mb": 64, "kernel": "3.16", "remote_cost": 1, "copy_page_ns": 3}
    assert points[1] == {"scan_size_mb": 64, "kernel": "3.16", "remote_cost": 2, "copy_page_ns": 4}
    rows = plan(made).rows
    # kernel makes setups, the rest lies along the run axis
    assert [row.values["kernel"] for row in rows] == ["3.16"] * 8 + ["3.17"] * 8
    assert [row.point for row in rows[::2]] == [0, 1, 4, 5, 2, 3, 6, 7]


def test_setups_differ_in_what_cannot_lie_along_the_run_axis():
    made = spec(
        machine="guest-2x2", workload={"preset": "perf_bench_numa", "p": 1, "t": 2, "P": 8}, kernel="3.16",
        grid={"machine": ["guest-4x2"], "workload.t": [2, 4], "patch": ["none", "S1#2+S1#5"], "move_in_swap": [False]},
    )  # fmt: skip
    setups = plan(made).setups
    assert len(setups) == 4
    assert setups[3] == {
        "machine": {"preset": "guest-4x2"},
        "workload": {"preset": "perf_bench_numa", "p": 1, "t": 4, "P": 8},
        "kernel": {"name": "3.16", "switches": {"move_in_swap": False}, "patches": ["S1#2", "S1#5"]},
    }


@pytest.mark.parametrize(
    ("most", "counts", "size"),
    [
        (16, [64], 16),
        (16, [40], 14),  # three batches, not two of 16 and one of 8
        (16, [8, 8], 8),  # a batch for each setup
        (16, [4, 12, 16, 96], 16),  # points of 4 seeds, setups of 32 on average
        (16, [2] * 10, 2),
        (16, [2] * 2000, 16),  # thousands of setups share
        (16, [3], 3),
    ],
)
def test_the_length_of_a_batch(most, counts, size):
    assert _batch(most, counts) == size


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"grids": {}}, r"sweep\.grids: unknown key; did you mean \"grid\"\?"),
        ({"grid": {"scan_size": [1]}}, r"sweep\.grid\.scan_size: is nothing that can be swept; did you mean"),
        ({"grid": {"step_us": [1]}}, r"sweep\.grid\.step_us: is nothing that can be swept"),
        ({"grid": {"scan_size_mb": [0]}}, r"sweep\.grid\.scan_size_mb: .*0 is no whole number from 1 to"),
        ({"grid": {"remote_cost": [2.5]}}, r"sweep\.grid\.remote_cost: expected whole numbers from 0 to 1,000,000"),
        ({"grid": {"kernel": ["3.99"]}}, r"sweep\.grid\.kernel: no kernel '3.99'"),
        ({"grid": {"kernel": [3.17]}}, r"sweep\.grid\.kernel: expected text, got 3.17"),
        ({"grid": {"patch": ["S9"]}}, r'sweep\.grid\.patch: no patch "S9"'),
        ({"grid": {"machine": ["x"]}}, r'sweep\.grid\.machine: no preset "x"'),
        ({"grid": {"machine.node": [2]}}, r'sweep\.grid\.machine\.node: no "node" here; did you mean "nodes"\?'),
        ({"grid": {"workload.size_mb": ["8"]}}, r"sweep\.grid\.workload\.size_mb: expected a number > 0"),
        ({"grid": {"workload.p": [1]}}, r'sweep\.grid\.workload\.p: no "p" here'),
        ({"grid": {"move_in_swap": ["maybe"]}}, r"sweep\.grid\.move_in_swap: .*neither on nor off"),
        ({"grid": {"scan_size_mb": []}}, r"sweep\.grid\.scan_size_mb: expected at least one value"),
        ({"grid": {"scan_size_mb": [1, 1]}}, r"sweep\.grid\.scan_size_mb: expected each value once"),
        ({"grid": {"scan_size_mb": [1, "2"]}}, r"sweep\.grid\.scan_size_mb: expected values of one kind"),
        ({"list": {"kernel": ["3.16"], "remote_cost": [1, 2]}}, r"sweep\.list: expected lists of one length.*kernel 1"),
        (
            {"grid": {"kernel": ["3.16"]}, "list": {"kernel": ["3.17"]}},
            r"sweep\.list\.kernel: expected each factor once",
        ),
        ({"keep": ["page"]}, r'sweep\.keep\.page: no variable to record; did you mean "pages"\?'),
        ({"keep": {"pages": 0}}, r"sweep\.keep\.pages: expected a number > 0"),
        ({"batch": 0}, r"sweep\.batch: expected a whole number >= 1"),
        ({"seeds": []}, r"sweep\.seeds: expected at least one seed"),
        ({"seeds": 10**6, "grid": {"remote_cost": [1, 2]}}, r"sweep: expected at most 1,000,000 runs, got 2,000,000"),
        ({"sobol": {"n": 3, "ranges": {"remote_cost": [1, 2]}}}, r"sweep\.sobol\.n: expected a power of 2"),
        (
            {"sobol": {"n": 4, "ranges": {"remote_cost": [1, 2]}}},
            r"sweep\.sobol\.ranges: expected at least two factors",
        ),
        ({"morris": {"n": 4}}, r"sweep\.morris\.ranges: expected a table of ranges"),
        ({"morris": {"n": 1, "range": {}}}, r'sweep\.morris\.range: unknown key; did you mean "ranges"\?'),
        ({"morris": {"n": 1, "ranges": {"remote_cost": [2, 1]}}}, r"ranges\.remote_cost: expected .* with low < high"),
        (
            {"latin_hypercube": {"n": 1, "ranges": {"remote_cost": {"low": 0, "high": 9, "log": True}}}},
            r"expected low > 0 with log = true, got 0",
        ),
        (
            {"latin_hypercube": {"n": 1, "ranges": {"remote_cost": [1, 10**7]}}},
            r"sweep\.latin_hypercube\.ranges\.remote_cost: expected whole numbers from 0 to 1,000,000, got 10000000",
        ),
        ({"morris": {}, "sobol": {}}, r"sweep\.sobol: expected one of latin_hypercube, morris, sobol, got morris too"),
    ],
)
def test_errors_name_the_key(table, message):
    with pytest.raises(DescriptionError, match=message):
        spec(**table)


def test_errors_of_a_file_name_it(tmp_path):
    (tmp_path / "x.toml").write_text(FILE.replace("scan_size_mb", "scan_sise_mb"))
    with pytest.raises(
        DescriptionError, match=r"x\.toml: sweep\.grid\.scan_sise_mb: .*did you mean \"scan_size_mb\"\?"
    ):
        Spec.load(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text(FILE.partition("[sweep]")[0])
    with pytest.raises(DescriptionError, match=r"x\.toml: sweep: missing; expected a table \[sweep\]"):
        Spec.load(tmp_path / "x.toml")


def test_arguments_need_a_preset():
    from numalab.workloads import wrong_node

    with pytest.raises(
        DescriptionError, match=r"workload\.size_mb: only arguments of a workload's preset can be swept"
    ):
        spec(workload=wrong_node(size_mb=8), grid={"workload.size_mb": [8.0]})


def test_what_only_a_simulation_can_tell_is_told_before_the_store_is_made(tmp_path):
    with pytest.raises(ValueError, match="rates: the workload has no region 'heep'"):
        sweeps.sweep(MACHINE, WORKLOAD, "6.1", store=tmp_path / "x.zarr", seconds=1, grid={"rate.heep": [1]})
    assert list(tmp_path.iterdir()) == []
