"""Runs that differ in their seeds are judged one by one, and no kernel is recommended to itself."""

import numpy as np
import pytest

from numalab import runs
from numalab.diagnose import diagnose
from numalab.diagnose.releases import has


def benched(*shortest, kernels=("3.16",)):
    """Runs of perf bench numa with a limit of 5 s, whose threads ran so long without converging, s."""
    n = len(shortest)
    variables = {"perf_runtime_min_s": np.array(shortest), "perf_converged_s": np.full(n, np.nan)}
    same = {"command": ["-p 2 -t 2 -m -P 300"] * n, "test": ["main"] * n, "seed": [7 + i for i in range(n)]}
    kernel = {"kernel": list(kernels) if len(kernels) == n else list(kernels) * n}
    return runs.build(variables, kernel | same, title="perf", source="simulated", params={})


def test_the_runs_that_show_it_are_named():
    # at their limit are those of 4.75 s and more
    (one,) = diagnose(benched(1.0, 4.9, 2.0, 4.8)).illnesses
    assert one.id == "no-convergence"
    assert one.says.endswith("2 of 4 runs show this: seed 8, seed 10; the numbers are those of seed 8.")
    assert one.evidence[0].value == 4.9


def test_of_a_single_run_nothing_is_counted():
    (one,) = diagnose(benched(4.9)).illnesses
    assert "runs show this" not in one.says


def counted(faults, moved, seeds=2):
    """Runs with so many hint faults, half of them local, and pages moved."""
    every = {
        "numa_hint_faults": faults,
        "numa_hint_faults_local": [value // 2 for value in faults],
        "numa_pages_migrated": moved,
    }
    variables = {name: np.array([[0, value] for value in values]) for name, values in every.items()}
    axes = {"time": [0.0, 10.0], "seed": range(len(faults)), "kernel": ["3.17"] * len(faults)}
    return runs.build(variables, axes, title="t", source="simulated", params={})


def test_a_mean_hides_no_run():
    # a storm moves 0.3 pages a fault: one of three runs does, their mean moves 0.2
    ds = counted([4_000_000] * 3, [2_000_000, 200_000, 200_000])
    (one,) = diagnose(ds).illnesses
    assert (one.id, one.evidence[0].value) == ("page-ping-pong", 2_000_000)
    assert "1 of 3 runs show this: seed 0" in one.says


def test_what_was_looked_at_says_that_it_is_a_mean():
    assert diagnose(counted([9000, 9000], [0, 0])).looked_at[0].startswith("counters of balancing of t, mean of 2 runs")


def test_kinds_of_runs_stay_apart():
    found = diagnose(benched(4.9, 4.9, 4.9, 1.0, kernels=["3.16", "3.16", "3.17", "3.17"])).illnesses
    assert [
        (one.side, one.says.partition(" runs show")[0][-6:], [name for name, _ in one.kernels]) for one in found
    ] == [
        ("3.16", "2 of 2", ["3.17"]),
        ("3.17", "1 of 2", []),
    ]


@pytest.mark.parametrize(("kernel", "recommended"), [("3.16", ["3.17"]), ("3.17", []), ("6.12.117", [])])
def test_a_kernel_is_not_recommended_to_itself(kernel, recommended):
    (one,) = diagnose(benched(4.9, kernels=[kernel])).illnesses
    assert [name for name, _ in one.kernels] == recommended


@pytest.mark.parametrize(
    ("kernel", "release", "expected"),
    [
        ("3.16-tip", "3.17", False),
        ("4.0-rc4", "4.0", False),
        ("4.0-rc4", "3.19", True),
        ("4.1", "4.0", True),
        ("6.1.0-13-amd64", "5.7", True),
        ("4.5", "4.16", False),
        ("3.17 scan_size_mb=64", "3.17", True),
        ("3.17 move_in_swap=off", "3.17", False),
        ("mine", "3.17", False),
        ("6.12", "after 2020-08", False),
    ],
)
def test_what_a_kernel_has(kernel, release, expected):
    assert has(kernel, release) is expected
