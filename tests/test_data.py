"""Finding the data files, and the published figures of the convergence series."""

import re
import tomllib

import pytest

from numalab import _data
from numalab.readers import perf_bench


def test_files_are_found_and_read():
    assert _data.path("published", "convergence.toml").is_file()
    assert _data.path("published").is_dir()
    assert _data.read_text("published", "convergence_trace.txt").startswith(" ###\n # 160 tasks")
    with _data.local_path("published", "convergence_trace.txt") as local:
        assert local.read_text().endswith("converged)\n")


def test_a_missing_file_lists_what_there_is():
    with pytest.raises(
        FileNotFoundError, match=r"no 'convergance\.toml' in numalab's data/published; it holds: .*toml"
    ):
        _data.path("published", "convergance.toml")
    with pytest.raises(FileNotFoundError, match="nothing, a file"):
        _data.path("published", "convergence.toml", "claims")


@pytest.mark.parametrize("part", ["..", "published/convergence.toml", ""])
def test_paths_stay_inside(part):
    with pytest.raises(ValueError, match="give plain names"):
        _data.path(part)


PUBLISHED = tomllib.loads(_data.read_text("published", "convergence.toml"))


def test_the_trace_and_its_figures_agree():
    trace = PUBLISHED["trace"]
    (test,) = perf_bench.parse(_data.read_text("published", trace["file"])).tests
    assert (test.setup.nodes, test.setup.cpus) == (PUBLISHED["machine"]["nodes"], PUBLISHED["machine"]["cpus"])
    assert test.setup.tasks == trace["tasks"] == trace["processes"] * trace["threads"]
    assert test.setup.process_mb == PUBLISHED["command"]["process_mb"]
    assert test.converged_s == trace["converged_s"] == 41.8
    assert test.progress[-1].groups == trace["processes"]
    stuck = test.progress[-2]
    assert stuck.minutes == trace["stuck_minutes"]
    assert list(stuck.threads) == trace["stuck_threads"]
    assert list(stuck.processes) == trace["stuck_processes"]


def test_the_command_is_one_perf_takes():
    args = PUBLISHED["command"]["template"].format(p=8, t=20).removeprefix("perf bench numa mem ")
    options = perf_bench.parse_options(args)
    assert (options.processes, options.threads, options.measure) == (8, 20, True)


def test_the_series_is_whole():
    patches = PUBLISHED["patches"]
    assert [patch["number"] for patch in patches] == [1, 2, 3, 4, 5, 6, 7]
    commits = [entry["commit"] for entry in patches + PUBLISHED["base"]]
    assert len(set(commits)) == 9
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in commits)
    assert [patch["number"] for patch in patches if not patch["in_release"]] == [3]


def test_the_claims_are_ranges_in_seconds():
    claims = {claim["id"]: claim for claim in PUBLISHED["claims"]}
    assert claims["after-typical"]["time_s"] == [10, 20]
    assert claims["after-spikes"]["time_s"] == [30, 40]
    assert not claims["before-never"]["converges"]
    assert all(claim["when"] in {"before", "after"} and claim["source"] for claim in claims.values())
