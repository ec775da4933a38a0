"""``numalab sweep``, ``sensitivity`` and the pictures of sweeps on the command line."""

import json

import pytest

from numalab import sweeps
from tests.command_line import caller
from tests.sweeps.small import FILE, files

MORRIS = (
    FILE.partition("[sweep.grid]")[0]
    + "[sweep.morris]\nn = 2\nranges = { scan_size_mb = [1, 64], remote_cost = [0, 99] }"
)


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(FILE)
    return caller(capsys)


def test_a_file_is_swept_into_runs(cli, tmp_path, wanted):
    code, out, _ = cli("sweep", "mine.toml", "--workers", 1)
    assert code == 0
    assert out.splitlines() == [
        "runs/mine.zarr: wrong_node 4 MB: sweep of kernel, workload.size_mb, scan_size_mb",
        "8 points x 2 seeds = 16 runs",
        "done 16, failed 0, to do 0",
    ]
    assert files(tmp_path / "runs" / "mine.zarr") == wanted


def test_a_store_tells_how_far_it_is_and_is_resumed(cli, tmp_path, monkeypatch, wanted):
    from numalab.sweeps import backends

    whole = backends.in_processes

    def two_batches(jobs, workers):
        yield from whole(jobs[:2], workers)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(backends, "in_processes", two_batches)
        code, _, err = cli("sweep", "mine.toml", "-o", "x.zarr", "--workers", 1)
    assert code == 130
    assert err.splitlines()[-1] == "numalab: interrupted; 8 of 16 runs are in x.zarr; the same command continues"
    code, out, err = cli("sweep", "x.zarr")
    assert (code, out.splitlines()[-1]) == (0, "done 8, failed 0, to do 8")
    assert err == "numalab sweep x.zarr --resume continues\n"
    code, out, _ = cli("sweep", "x.zarr", "--resume", "--workers", 1, "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["done"], told["failed"], told["to_do"], told["runs"]) == (16, 0, 0, 16)
    assert files(tmp_path / "x.zarr") == wanted


def test_a_dry_run_counts_and_keeps_nothing(cli, tmp_path):
    code, out, _ = cli("sweep", "mine.toml", "--dry-run", "--workers", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == ["8 points x 2 seeds = 16 runs", "4 setups of machine, workload and kernel; 4 batches"]
    # 10 numbers, 11 counters of 8 bytes, status of 4, 300 letters of 4: 16 x 1372 bytes
    assert lines[2] == "at most 0.0 MB of results before they are compressed"
    assert lines[3].startswith("the first batch of 4 runs took ")
    assert lines[3].endswith(" with 2 workers")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
    code, out, _ = cli("sweep", "mine.toml", "--dry-run", "--json", "--workers", 2)
    told = json.loads(out)
    assert told["size"] == 16 * 1372
    assert told["estimate_s"] == pytest.approx(2 * told["first_s"])


def test_failed_runs_are_told(cli, tmp_path):
    (tmp_path / "mine.toml").write_text(FILE.replace("[4.0, 8.0]", "[4.0, 400.0]"))
    code, out, err = cli("sweep", "mine.toml", "-o", "x.zarr", "--workers", 1)
    why = "workload.regions: expected at most 128 MB in all on machine 2x2, got 400 MB"
    assert code == 0
    assert out.splitlines()[2:] == ["done 8, failed 8, to do 0", f"  8 runs failed, the first is 4: {why}"]
    assert err.splitlines()[-1] == "numalab sweep x.zarr --retry-failed runs those again that failed"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("sweep", "absent.toml"), "absent.toml: cannot be read: No such file or directory"),
        (("sweep", "mine.toml", "-o", "mine.toml"), "mine.toml: is not the store of a sweep"),
        (("sweep", "mine.toml", "--scheduler", "tcp://127.0.0.1:9"), "127.0.0.1:9: no scheduler answers there"),
        (("run", "mine.toml"), "mine.toml: sweep: describes many setups, of which this needs one; `numalab sweep`"),
        (("sensitivity", "absent.zarr", "local_share"), "absent.zarr: no such store"),
    ],
)
def test_bad_input_is_one_line(cli, args, message, monkeypatch):
    monkeypatch.setattr("numalab.commands.sweep._PATIENCE_S", 0.3)
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_sensitivity_is_a_table_or_json(cli, tmp_path):
    (tmp_path / "mine.toml").write_text(MORRIS)
    assert cli("sweep", "mine.toml", "-o", "x.zarr", "--workers", 1)[0] == 0
    code, out, _ = cli("sensitivity", "x.zarr", "work_pages")
    assert code == 0
    assert out.splitlines()[0] == "work_pages [pages], morris"
    code, out, _ = cli("sensitivity", "x.zarr", "work_pages", "--json")
    (told,) = json.loads(out)
    assert {index["factor"] for index in told["indices"]} == {"scan_size_mb", "remote_cost"}
    assert told["runs"] == 12


def test_a_sweep_is_drawn(cli, tmp_path, finished):
    code, out, _ = cli("plot", finished, "response", "--of", "work_pages", "--by", "kernel", "-o", "x.svg", "--text")
    assert code == 0
    assert "useful work of all tasks: pages visited over scan_size_mb" in out or "over workload_size_mb" in out
    assert (tmp_path / "x.svg").stat().st_size > 1000
    code, _, err = cli("plot", finished, "pages", "-o", "y.svg")
    assert code == 2
    assert "is a sweep; its pictures are response, heatmap" in err
    code, _, err = cli("plot", finished, "heatmap", "--x", "scan_size", "-o", "y.svg")
    assert code == 2
    assert "scan_size: was not swept; did you mean" in err
    assert sweeps.open(finished).sizes["run"] == 16
