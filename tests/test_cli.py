"""The command line: what is printed, what is written, and the exit codes."""

import errno
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import matplotlib.figure
import numpy as np
import pytest

import numalab
from numalab import runs
from numalab.cli import make_parser
from numalab.commands import output, summary
from numalab.commands.kernels import spans
from numalab.kernel import Cell, Kernel, Switch, table
from numalab.machine import PRESETS, Machine
from numalab.model.engine import Engine
from numalab.workloads import NAMED
from tests.command_line import caller

GOLDEN = Path(__file__).parent / "readers" / "golden"
COMMANDS = (
    "threads",
    "replay",
    "claims",
    "run",
    "show",
    "rerun",
    "sweep",
    "sensitivity",
    "plot",
    "read",
    "compare",
    "validate",
    "live",
    "record",
    "kernels",
    "machines",
    "workloads",
)

#: One thread on node 1, its 8 MB (2048 pages) on node 0.
TINY = """
[machine]
uniform = { nodes = 2, cpus_per_node = 2, memory_mb = 128, name = "tiny" }
[workload]
preset = "wrong_node"
size_mb = 8
[kernel]
name = "6.1"
[run]
seconds = 4
seeds = 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def cli(here, capsys):
    """Run a command line in an empty folder: exit code, stdout, stderr."""
    return caller(capsys)


@pytest.fixture
def tiny(here):
    file = here / "tiny.toml"
    file.write_text(TINY)
    return file


def one_line(text):
    """An error is one line that begins with the program's name."""
    assert re.fullmatch(r"numalab: [^\n]+\n", text), text
    return text.removeprefix("numalab: ").rstrip("\n")


# ------------------------------------------------------------------ help, errors, endings


def test_help_and_version(cli):
    code, out, err = cli("--help")
    assert (code, err) == (0, "")
    for word in (*COMMANDS, "exit codes:", "130  interrupted", "141  nobody read"):
        assert word in out
    assert cli("--version") == (0, f"numalab {numalab.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_that_parses(cli, command):
    code, out, _ = cli(command, "--help")
    assert code == 0
    examples = re.search(r"^examples?:\n((?:  .*\n?)+)", out, re.MULTILINE)[1]
    lines = [line.split("|")[-1].split("      ")[0].split() for line in examples.strip().splitlines()]
    assert {tuple(line[:2]) for line in lines} == {("numalab", command)}
    for line in lines:
        make_parser().parse_args(line[1:])


def test_help_imports_nothing_heavy():
    # Not a timing: what makes help slow is these.
    code = f"""if True:
        import sys
        from numalab.cli import main
        for command in {COMMANDS!r}:
            for args in (["--help"], [command, "--help"], [command, "--no-such-option"]):
                try:
                    main(args)
                except SystemExit:
                    pass
        print(sorted({{"numpy", "xarray", "matplotlib", "tqdm", "json"}} & set(sys.modules)), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_no_command_shows_help(cli):
    code, out, err = cli()
    assert (code, out) == (2, "")
    assert "usage: numalab" in err


@pytest.mark.parametrize(
    "args",
    [
        ("frob",),
        ("replay",),
        ("replay", "x", "--seeds", "0"),
        ("replay", "x", "--seeds", "-1"),
        ("show",),
        ("run", "--fo"),
    ],
)
def test_wrong_arguments(cli, args):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert "error: " in err


@pytest.mark.parametrize("args", [("show", "no.nc"), ("rerun", "no.nc"), ("read", "no.txt"), ("run", "no.toml")])
def test_a_missing_file_is_named(cli, args):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert re.match(r"no\.\w+: .*no such file", one_line(err), re.IGNORECASE)


def test_what_is_no_run_is_named(cli, here):
    (here / "x.nc").write_text("text")
    code, _, err = cli("show", "x.nc")
    assert code == 2
    assert one_line(err).startswith("x.nc: not a netCDF-4 file")


def failing(error):
    def call(*_args, **_options):
        raise error

    return call


def test_ctrl_c(cli, monkeypatch):
    monkeypatch.setattr("numalab.commands.catalogs.machines", failing(KeyboardInterrupt()))
    assert cli("machines") == (130, "", "numalab: interrupted\n")


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), AssertionError("x")])
def test_our_own_mistakes_are_not_called_bad_input(cli, monkeypatch, error):
    monkeypatch.setattr("numalab.commands.catalogs.machines", failing(error))
    code, _, err = cli("machines")
    assert code == 3
    assert err.startswith("Traceback")
    assert "please report it" in err.splitlines()[-1]


@pytest.mark.parametrize("args", [["kernels"], ["machines"], ["kernels", "--help"]])
def test_a_closed_pipe_is_no_error(args, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    command = [sys.executable, "-m", "numalab", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("args", "redirect", "code", "err"),
    [
        ("machines", ">&-", 0, ""),
        ("machines --json", ">/dev/full", 2, "numalab: standard output: no space left on device\n"),
        ("kernels", ">/dev/full", 2, "numalab: standard output: no space left on device\n"),
        ("show no.nc", "2>&-", 2, ""),
        ("show no.nc", "2>/dev/full", 2, ""),
        ("show", "2>/dev/full", 2, ""),
        ("show no.nc", ">&- 2>&-", 2, ""),
        ("read -", "<&-", 2, "numalab: <stdin>: is empty; expected the output of a tool\n"),
        ("run tiny.toml", ">&- 2>&-", 0, ""),
        ("run tiny.toml", ">/dev/null 2>/dev/full", 0, ""),
    ],
)
def test_closed_and_full_streams(tiny, args, redirect, code, err):
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    env["PYTHONPATH"] = str(Path(numalab.__file__).parent.parent)
    command = f"{shlex.quote(sys.executable)} -m numalab {args} {redirect}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=env, cwd=tiny.parent)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", err)
    if args.startswith("run"):
        assert runs.open(tiny.parent / "runs" / "tiny.nc").sizes["run"] == 2


# ------------------------------------------------------------------ run, show, rerun


def test_run_show_rerun(cli, tiny):
    code, out, err = cli("run", tiny)
    assert code == 0
    assert Path("runs/tiny.nc").is_file()
    assert "saved runs/tiny.nc" in err
    for line in (
        "  machine   tiny: 2 nodes, 4 CPUs, 256 MB",
        "  workload  wrong_node 8 MB: 1 process, 1 thread",
        "  kernel    6.1, all switches as in that release",
        "  runs      seeds 0-1; 4 s in steps of 1 ms",
    ):
        assert line in out.splitlines()
    assert cli("show", "runs/tiny.nc") == (0, out, "")
    count = len(runs.open("runs/tiny.nc").variables)
    assert cli("rerun", "runs/tiny.nc") == (0, f"runs/tiny.nc: equal, all {count} variables\n", "")


def test_the_summary_is_right(cli, tiny):
    code, out, _ = cli("run", tiny, "--json")
    assert code == 0
    facts = json.loads(out)
    # A pass over the memory marks all 2048 pages; each faults once, from afar, and is brought over. Pages that
    # are already local are not marked again (skip_local_single_user).
    for name in ("numa_pte_updates", "numa_hint_faults", "numa_pages_migrated"):
        found = facts["results"][name]
        assert (found["runs"], found["median"], found["min"], found["max"]) == (2, 2048, 2048, 2048), name
    assert facts["results"]["local_share"]["median"] == 0
    assert facts["results"]["migrations_per_fault"]["median"] == 1
    assert "convergence_s" not in facts["results"]  # a single thread is always together
    (setup,) = facts["setups"]
    assert setup["kernel"] == {"name": "6.1", "release": "6.1", "differs": {}, "table_changed": {}}
    assert (setup["seeds"], setup["seconds"], setup["step_us"]) == ([0, 1], 4, 1000)
    assert (facts["interrupted"], facts["recorded_s"], facts["groups"]) == (False, 4, [])
    again = json.loads(cli("show", "runs/tiny.nc", "--json")[1])
    assert again == facts


def test_no_fault_is_undefined_not_zero(cli, here, tiny):
    tiny.write_text(TINY.replace("size_mb = 8", "size_mb = 8\nmemory_node = 1"))
    code, out, _ = cli("run", tiny, "--json")
    assert code == 0
    share = json.loads(out)["results"]["local_share"]
    assert share == {"runs": 2, "defined": 0, "median": None, "min": None, "max": None, "units": "1"}
    text = cli("show", "runs/tiny.nc")[1]
    assert re.search(r"local share of hint faults +undefined +\(in 2 runs\)", text)


def test_switches_that_differ_are_listed(cli, tiny):
    tiny.write_text(TINY.replace('"6.1"', '"3.16-tip"\nswitches = { scan_size_mb = 64 }'))
    _, out, _ = cli("run", tiny)
    changes = "scan_size_mb 256 -> 64, migrate_at_placement on_change -> not_there, check_preferred if_free -> always"
    assert f"3.16-tip; other than in 3.16: {changes}" in " ".join(out.split())


def test_the_step_of_the_file_is_used(cli, tiny):
    tiny.write_text(TINY + "step_ms = 2.5\n")
    _, out, _ = cli("run", tiny)
    assert "4 s in steps of 2.5 ms" in out
    tiny.write_text(TINY + "step_ms = 0.0001\n")
    code, _, err = cli("run", tiny, "--force")
    assert code == 2
    assert one_line(err) == f"{tiny}: run.step_ms: expected at least 0.001, got 0.0001"


def test_nothing_is_overwritten_unasked(cli, here, tiny, monkeypatch):
    (here / "runs").mkdir()
    (here / "runs" / "tiny.nc").write_text("precious")
    monkeypatch.setattr("numalab.simulation.Engine", failing(AssertionError("must not start")))
    code, out, err = cli("run", tiny)
    assert (code, out) == (2, "")
    assert one_line(err).startswith("runs/tiny.nc: exists; overwrite it with --force")
    assert (here / "runs" / "tiny.nc").read_text() == "precious"
    assert cli("run", tiny, "-o", "runs")[2] == "numalab: runs: is a folder; give -o a file name\n"
    assert "is no folder you may write to" in cli("run", tiny, "-o", "tiny.toml/x.nc")[2]


def test_force_overwrites(cli, here, tiny):
    (here / "x.nc").write_text("old")
    assert cli("run", tiny, "-o", "x.nc", "--force")[0] == 0
    assert runs.open("x.nc").sizes["run"] == 2


def test_only_regular_files_are_overwritten(cli, here, tiny, monkeypatch):
    monkeypatch.setattr("numalab.simulation.Engine", failing(AssertionError("must not start")))
    os.mkfifo("pipe")
    Path("link.nc").symlink_to("pipe")
    for name in ("pipe", "link.nc"):
        for force in ((), ("--force",)):
            code, _, err = cli("run", tiny, "-o", name, *force)
            assert code == 2
            expected = f"{name}: is a device, a pipe or a socket, not a regular file; give -o a file name"
            assert one_line(err) == expected
    assert Path("pipe").is_fifo()
    assert Path("link.nc").is_symlink()


def test_the_input_is_not_overwritten(cli, here, tiny):
    Path("link.nc").symlink_to("tiny.toml")
    for name in ("tiny.toml", "./tiny.toml", "link.nc"):
        code, _, err = cli("run", "tiny.toml", "-o", name, "--force")
        assert code == 2
        assert one_line(err) == f"{Path(name)}: is the input tiny.toml, which would be lost; give another -o"
    Path("runs").mkdir()
    tiny.rename("runs/tiny.nc")
    assert "is the input runs/tiny.nc" in cli("run", "runs/tiny.nc", "--force")[2]
    assert Path("runs/tiny.nc").read_text() == TINY


def test_read_does_not_overwrite_its_input(cli, here):
    Path("x.txt").write_text("numa_hint_faults 12\nnuma_hit 3\n")
    code, _, err = cli("read", "x.txt", "-o", "x.txt", "--force")
    assert (code, one_line(err)) == (2, "x.txt: is the input x.txt, which would be lost; give another -o")
    Path("folder").mkdir()
    Path("folder/meta.json").write_text("{}")
    code, _, err = cli("read", "folder", "-o", "folder/meta.json", "--force")
    expected = "folder/meta.json: is part of the input folder, which would be lost; give another -o"
    assert (code, one_line(err)) == (2, expected)
    assert Path("folder/meta.json").read_text() == "{}"


def test_a_full_disk_is_one_line(cli, here, tiny, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    code, _, err = cli("run", tiny, "-o", "x.nc")
    assert (code, one_line(err)) == (2, "x.nc: no space left on device; give another -o")
    assert [path.name for path in here.iterdir()] == ["tiny.toml"]


def test_a_wrong_key_writes_nothing(cli, here, tiny):
    tiny.write_text(TINY.replace("size_mb = 8", "size = 8"))
    code, out, err = cli("run", tiny)
    assert (code, out) == (2, "")
    assert one_line(err) == f'{tiny}: workload.size: unknown key; did you mean "size_mb"?'
    assert [path.name for path in here.iterdir()] == ["tiny.toml"]


def test_an_interrupted_run_is_saved_and_repeatable(cli, tiny, monkeypatch):
    step = Engine.step

    def interrupted(engine):
        if int(engine.state.step_index.min()) > 2500:
            raise KeyboardInterrupt
        step(engine)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "step", interrupted)
        code, out, err = cli("run", tiny)
    assert code == 130
    assert one_line(err) == "interrupted; what all runs had reached is in runs/tiny.nc"
    reached = float(re.search(r"recorded up to ([\d.]+) s only", out)[1])
    assert 2.4 < reached <= 2.6
    code, out, _ = cli("rerun", "runs/tiny.nc")
    assert code == 0, out
    assert f"note: the run was interrupted: compared up to {reached:g} s" in out


def test_rerun_finds_a_difference(cli, tiny):
    cli("run", tiny)
    ds = runs.open("runs/tiny.nc")
    ds.numa_hint_faults[1, -1] += 1
    runs.save(ds, "other.nc")
    code, out, _ = cli("rerun", "other.nc")
    assert code == 1
    assert f"1 of {len(ds.variables)} variables differ" in out
    assert re.search(r"numa_hint_faults: 1 of \d+ values differ, first at run\[1\], time\[\d+\]: 2049 != 2048", out)
    code, out, _ = cli("rerun", "other.nc", "--json")
    assert code == 1
    assert json.loads(out)["equal"] is False


def test_only_one_simulation_can_be_repeated(cli, tiny):
    cli("run", tiny)
    cli("run", tiny, "-o", "two.nc")
    a, b = runs.open("runs/tiny.nc"), runs.open("two.nc")
    b.attrs["numalab_params"] = b.attrs["numalab_params"].replace('"seconds": 4.0', '"seconds": 4.5')
    runs.save(runs.concat([a, b]), "both.nc")
    code, _, err = cli("rerun", "both.nc")
    assert code == 2
    assert one_line(err).startswith("both.nc: is several simulations joined together")
    assert cli("show", "both.nc")[1].count("machine   tiny") == 2


def test_a_dataset_of_another_version(cli, tiny):
    cli("run", tiny)
    ds = runs.open("runs/tiny.nc")
    ds.attrs["numalab_params"] = ds.attrs["numalab_params"].replace('"every"', '"how_often"')
    runs.save(ds, "old.nc")
    code, _, err = cli("rerun", "old.nc")
    assert code == 2
    assert one_line(err) == "old.nc: does not say its every; another version of numalab made it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda how: [how.pop("defaults"), how.pop("rates")], "does not say its rates, defaults; another version"),
        (lambda how: how["kernel"].pop("set"), "does not say its kernel.set; another version of numalab"),
        (lambda how: how["machine"].pop("nodes"), "machine.nodes: missing; expected a list"),
        (lambda how: how["workload"]["processes"][0].pop("name"), "workload.processes[0].name: missing; expected a "),
    ],
)
def test_provenance_that_lacks_keys(cli, tiny, change, message):
    cli("run", tiny)
    ds = runs.open("runs/tiny.nc")
    how = runs.provenance(ds)
    change(how)
    ds.attrs["numalab_params"] = json.dumps(how)
    runs.save(ds, "old.nc")
    code, out, err = cli("rerun", "old.nc")
    assert (code, out) == (2, "")
    assert one_line(err).startswith(f"old.nc: {message}")
    assert cli("show", "old.nc")[0] == (0 if "rates" in message else 2)


def test_kernels_and_setups_are_not_pooled(cli, tiny):
    cli("run", tiny, "-o", "a.nc")
    tiny.write_text(TINY.replace('"6.1"', '"3.17"'))
    cli("run", tiny, "-o", "b.nc")
    tiny.write_text(TINY.replace("size_mb = 8", "size_mb = 8\nrate_mbps = 100"))
    cli("run", tiny, "-o", "c.nc")
    a, b, c = (runs.open(f"{name}.nc") for name in "abc")
    runs.save(runs.concat([a, b]), "kernels.nc")
    facts = json.loads(cli("show", "kernels.nc", "--json")[1])
    assert facts["title"] == "wrong_node 8 MB on tiny, 6.1; wrong_node 8 MB on tiny, 3.17"
    assert facts["results"] == {}
    assert [group["parameters"] for group in facts["groups"]] == [{"kernel": "6.1"}, {"kernel": "3.17"}]
    for group, one in zip(facts["groups"], (a, b), strict=True):
        assert group["results"] == summary.summarise(one)["results"]
    out = cli("show", "kernels.nc")[1].splitlines()
    assert out.count("kernel 6.1") == out.count("kernel 3.17") == 1
    assert sum("RANGE OVER RUNS" in line for line in out) == 2
    # No coordinate tells these two apart.
    facts = summary.summarise(runs.concat([a, c]))
    assert [group["parameters"] for group in facts["groups"]] == [{"setup": 1}, {"setup": 2}]
    assert facts["groups"][1]["results"] == summary.summarise(c)["results"]
    assert summary.summarise(runs.concat([a, a]))["groups"] == []


# ------------------------------------------------------------------ the summary, by hand


def by_hand(**more):
    """Four runs on two nodes, two threads of one process; the last run never converges."""
    node = np.zeros((4, 3, 2), int)
    node[0, 0, 1] = node[1, :2, 1] = node[3, :, 1] = 1
    variables = {
        "numa_hint_faults": [[10, 20, 110], [0, 0, 0], [0, 5, 10], [0, 10, 40]],
        "numa_hint_faults_local": [[10, 20, 35], [0, 0, 0], [0, 5, 10], [0, 5, 20]],
        "task_node": node,
        "task_run_ms": np.array([[[0, 0], [1, 2], [3, 4]]] * 4, float),
    }
    rows = [{"event_time_s": [1.0] * n, "event_kind": [1] * n, "event_task": [0] * n} for n in (0, 1, 2, 3)]
    coords = {
        "time": [0.0, 1.0, 2.0],
        "node": [0, 1],
        "task": [0, 1],
        "task_process": [7, 7],
        "seed": [0, 1, 0, 1],
        **more,
    }
    return runs.build(
        {**variables, **runs.padded("event", rows)}, coords, title="t", source="measured", params={"reader": "hand"}
    )


def test_medians_and_ranges():
    facts = summary.summarise(by_hand())

    def of(name):
        found = facts["results"][name]
        return found["defined"], found["min"], found["median"], found["max"]

    assert of("numa_hint_faults") == (4, 0, 25, 100)  # growth: 100, 0, 10, 40
    assert of("local_share") == (3, 0.25, 0.5, 1)
    assert of("convergence_s") == (3, 0, 1, 2)
    assert of("task_run_ms") == (4, 7, 7, 7)
    assert of("swap_events") == (4, 0, 1.5, 3)
    assert of("move_events") == (4, 0, 0, 0)
    assert facts["setups"] == []
    assert facts["measured"] == {"reader": "hand"}
    json.dumps(facts, allow_nan=False)
    text = summary.text(facts)
    assert re.search(r"converged for good after +1 +0 to 2 +s \(3 of 4 runs converged\)", text)
    assert re.search(r"local share of hint faults +50\.0 % +25\.0 % to 100\.0 % +\(3 of 4 runs with faults\)", text)


def test_runs_are_grouped_by_what_varies():
    facts = summary.summarise(by_hand(scan_size_mb=("run", [64, 64, 256, 256])))
    assert [group["parameters"] for group in facts["groups"]] == [{"scan_size_mb": 64}, {"scan_size_mb": 256}]
    assert [group["results"]["numa_hint_faults"]["median"] for group in facts["groups"]] == [50, 25]
    lines = summary.text(facts).splitlines()
    assert lines[-3].split()[:2] == ["scan_size_mb", "RUNS"]
    assert lines[-2].split() == ["64", "2", "50", "25.0", "%", "1.5", "s", "(2/2)"]
    assert lines[-1].split() == ["256", "2", "25", "75.0", "%", "0", "s", "(1/2)"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "undefined"), (0, "0"), (2048, "2,048"), (0.12345, "0.1235"), (12345.6, "12,346"), (3.0, "3")],
)
def test_numbers(value, text):
    assert output.number(value) == text


# ------------------------------------------------------------------ read


def test_read_reports_and_saves(cli):
    code, out, err = cli("read", GOLDEN / "023" / "input.txt", "-o", "p.nc")
    assert code == 0
    assert "10 result rows (lines 22-31), converged after 6.801 s" in " ".join(out.split())
    assert out.splitlines()[-1] == "skipped: nothing"
    assert "saved p.nc" in err
    assert runs.open("p.nc").perf_converged_s.values.tolist() == [6.801]
    text = cli("show", "p.nc")[1]
    assert re.search(r"perf: converged after +6\.801 ", text)
    assert re.search(r"perf: speed of all threads +31\.46 +31\.46 to 31\.46 +GB/s", text)


def test_read_takes_a_paste_with_prose(cli, monkeypatch):
    trace = (Path(__file__).parent.parent / "data" / "published" / "convergence_trace.txt").read_text()
    paste = f"Hello,\n\nthis is it:\n{trace}\nbye\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(paste.encode())))
    code, out, _ = cli("read", "-")
    assert code == 0
    assert "line 5: test main, 160 tasks on 4 nodes, 80 CPUs, 5 progress records (lines 13-17)" in " ".join(out.split())
    assert out.splitlines()[-3:] == [
        "skipped: 3 lines",
        "  lines 1-3: 'Hello,' and so on: not output of perf bench numa mem",
        "  line 19: 'bye': not output of perf bench numa mem",
    ]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(paste.encode())))
    facts = json.loads(cli("read", "-", "--json")[1])
    assert (facts["file"], facts["format"], facts["saved"]) == ("<stdin>", "perf-bench-numa", None)
    assert [skip["line"] for skip in facts["skipped"]] == [1, 3, 19]


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("pgfault 12\n", (), "x.txt: looks like no format that numalab reads; perhaps vmstat, by its words"),
        (" \n", (), "x.txt: is empty"),
        ("pgfault 12\n", ("--format", "vmstats"), "no format 'vmstats'; did you mean \"vmstat\"?"),
        ("pgfault twelve\n", ("--format", "vmstat"), "x.txt: holds no counter of /proc/vmstat"),
        ("pgfault 12\n", ("--format", "perf-bench-numa"), "x.txt: no output of perf bench numa mem found in 1 lines"),
        (" #    0.0%  [0.2 mins]  2/1   0/0  [ 9/1 ] l:  0-0   (  0) {1-1}\n", (), "x.txt:1: expected [2/1] from"),
    ],
)
def test_what_cannot_be_read(cli, here, text, args, message):
    (here / "x.txt").write_text(text)
    code, out, err = cli("read", "x.txt", *args, "-o", "x.nc")
    assert (code, out) == (2, "")
    assert one_line(err).startswith(message)
    assert not (here / "x.nc").exists()


@pytest.fixture
def trace():
    return (Path(__file__).parent.parent / "data" / "published" / "convergence_trace.txt").read_text()


def test_read_joins_what_a_mail_client_wrapped(cli, here, trace):
    (here / "x.txt").write_text(trace.replace("[50.0%] ", "\n[50.0%] ").replace("[40.0%] ", "[40.0%] \n"))
    code, out, _ = cli("read", "x.txt")
    assert code == 0
    assert "5 progress records (lines 10-16), converged after 41.8 s" in " ".join(out.split())
    assert out.splitlines()[-1] == "skipped: nothing"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" (  41.8s converged)", "", "unknown: the output ends before the result rows"),
        ("[ 4/9 ]", "[ 5/9 ]", "unknown: 1 progress record was skipped"),
    ],
)
def test_read_and_show_agree_that_convergence_is_unknown(cli, here, trace, old, new, reason):
    (here / "x.txt").write_text(trace.replace(old, new))
    code, out, _ = cli("read", "x.txt", "-o", "x.nc")
    assert code == 0
    assert f"line 14: convergence of test main: {reason}" in " ".join(out.split())
    assert "did not converge" not in out
    assert "converged after" not in out
    facts = json.loads(cli("read", "x.txt", "--json")[1])
    assert {"line": 14, "what": f"convergence of test main: {reason}"} in facts["understood"]
    shown = cli("show", "x.nc")[1]
    assert re.search(rf"^  convergence +main: {reason}$", shown, re.MULTILINE)
    assert re.search(r"perf: converged after +not reported", shown)
    facts = json.loads(cli("show", "x.nc", "--json")[1])
    assert facts["measured"]["convergence"] == [f"main: {reason}"]
    assert facts["results"]["perf_converged_s"]["defined"] == 0


def test_read_refuses_absurd_numbers_in_one_line(cli, here, trace):
    (here / "x.txt").write_text(trace.replace("160 tasks", "9" * 5000 + " tasks"))
    code, out, err = cli("read", "x.txt")
    assert (code, out) == (2, "")
    assert one_line(err) == "x.txt:2: expected numbers of at most 9 digits, got one of 5000 digits"


def test_read_unpacks(cli, here):
    text = b"numa_hint_faults 12\nnuma_hit 3\n"
    (here / "x.gz").write_bytes(gzip.compress(text))
    code, out, _ = cli("read", "x.gz", "-o", "x.nc")
    assert (code, out.splitlines()[0]) == (0, "x.gz: vmstat, 2 lines")
    assert runs.open("x.nc").numa_hint_faults.values.tolist() == [[12]]
    (here / "x.gz").write_bytes(gzip.compress(text)[:-9])
    code, _, err = cli("read", "x.gz")
    assert code == 2
    assert one_line(err).startswith("x.gz: cannot be unpacked")


def test_read_knows_which_kernels_exchange_private_and_shared(cli):
    log = GOLDEN / "sched" / "log.txt"
    assert "kernel 4.15 prints them exchanged" in cli("read", log, "--kernel", "4.15", "-o", "old.nc")[1]
    cli("read", log, "-o", "new.nc")
    old, new = (runs.open(name).faults for name in ("old.nc", "new.nc"))
    assert (old.sel(kind="shared").values == new.sel(kind="private").values).all()
    code, _, err = cli("read", log, "--kernel", "old")
    assert (code, one_line(err)) == (2, "release: expected something like 4.15.0 (uname -r), got 'old'")


# ------------------------------------------------------------------ kernels, machines, workloads


def switch(cells, **kind):
    values = {f"{i}.0": Cell(value, read) for i, (value, read) in enumerate(cells)}
    return Switch("s", "what", "", kind.get("unit", ""), (), values)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([(True, True)] * 3, "all on"),
        ([(False, True), (False, False), (True, True)], "0.0-1.0 off, 2.0- on; inferred: 1.0"),
        ([(3, True), (7, True), (3, True), (3, False)], "0.0 3, 1.0 7, 2.0- 3; inferred: 3.0"),
        ([(False, True), (True, False)], "0.0 off, 1.0- on; inferred: 1.0"),
    ],
)
def test_spans_of_releases(cells, text):
    assert spans(switch(cells)) == text


def test_kernels_lists_everything(cli):
    code, out, _ = cli("kernels")
    assert code == 0
    known = table()
    for name in (*known.releases, *known.trees, *known.patches, *known.switches):
        assert re.search(rf"(?<!\S){re.escape(name)}(?!\w)", out), name
    facts = json.loads(cli("kernels", "--json")[1])
    assert facts["releases"] == list(known.releases)
    listed = {entry["name"]: entry for entry in facts["switches"]}
    assert list(listed) == list(known.switches)
    threshold = listed["numa_period_threshold"]
    assert (threshold["unit"], threshold["commit"]) == ("of 10", "a22b4b012340")
    assert threshold["releases"]["3.16"] == {"value": 3, "read": True}
    assert threshold["releases"]["6.12"] == {"value": 7, "read": False}
    patches = {entry["name"]: entry["set"] for entry in facts["patches"]}
    assert patches["S1#5"] == {"move_in_swap": True, "strict_improvement": True}


def test_one_kernel(cli):
    facts = json.loads(cli("kernels", "3.16-tip", "--json")[1])
    assert facts["release"] == "3.16"
    assert {key: entry["value"] for key, entry in facts["switches"].items()} == Kernel("3.16-tip").switches
    assert facts["switches"]["check_preferred"] == {"value": "always", "from": "tree"}
    out = cli("kernels", "3.16-tip")[1]
    assert re.search(r"check_preferred +always\*", out)
    assert re.search(r"wp_fault_resets_cpupid +on\?", out)
    assert re.search(r"scan_size_mb +256 +MB", out)


def test_one_switch_and_one_patch(cli):
    assert "3.14-3.16 off, 3.17- on; inferred: 3.14" in cli("kernels", "move_in_swap")[1]
    assert cli("kernels", "S1#7")[1].splitlines()[-1] == "  sets numa_period_threshold=7"


def test_kernels_diff(cli):
    facts = json.loads(cli("kernels", "diff", "3.16", "3.17", "--json")[1])
    assert {key: (entry["a"], entry["b"]) for key, entry in facts["switches"].items()} == (
        Kernel("3.16").diff(Kernel("3.17"))
    )
    code, out, _ = cli("kernels", "diff", "3.16", "3.17")
    assert code == 0
    assert f"{len(facts['switches'])} of {len(table().switches)} switches differ" in out
    assert "  numa_period_threshold: 3 -> 7\n" in out
    assert "slows down (a22b4b012340)" in out
    assert "3.17 -> 3.17: 0 of" in cli("kernels", "diff", "3.17", "3.17")[1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("kernels", "move_in_swp"), "no kernel, patch or switch 'move_in_swp'; did you mean \"move_in_swap\"?"),
        (("kernels", "2.6"), "no release '2.6'; the oldest is 3.14"),
        (("kernels", "6.6"), "no release '6.6'; its neighbours are 6.5 and 6.12"),
        (("kernels", "6.1.5"), "no release '6.1.5'; its neighbours are 6.1 and "),
        (("kernels", "99.1"), f"no release '99.1'; the newest is {table().releases[-1]}"),
        (("kernels", "3.16-tpi"), "no kernel, patch or switch '3.16-tpi'; did you mean \"3.16-tip\"?"),
        (("kernels", "diff", "3.16"), "kernels diff: expected two kernels"),
        (("kernels", "diff", "3.16", "zzz"), "no kernel 'zzz'; known: 3.14, "),
        (("kernels", "3.16", "3.17"), "kernels: expected one name, or diff and two names; got 3.16 3.17"),
        (("machines", "rik-4n8"), 'no machine "rik-4n8"; did you mean "rik-4n80"?'),
        (("workloads", "numa03"), "no workload 'numa03'; did you mean \"numa0"),
    ],
)
def test_unknown_names(cli, args, message):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert one_line(err).startswith(message)


def test_machines(cli):
    listed = [line.split()[:5] for line in cli("machines")[1].splitlines() if line.startswith(tuple(PRESETS))]
    assert [line[0] for line in listed] == list(PRESETS)
    assert listed[0] == ["rik-4n80", "4", "80", "256", "GB"]
    out = cli("machines", "guest-4x2mesh")[1]
    assert "topology class: mesh" in out
    assert "  1  16  10  22  16\n" in out
    facts = json.loads(cli("machines", "--json")[1])
    for entry in facts:
        extra = {"cpus", "topology_class", "watermark_pages", "remarks"}
        assert Machine.from_dict({key: entry[key] for key in entry.keys() - extra}) == PRESETS[entry["name"]]
    assert json.loads(cli("machines", "guest-2x2", "--json")[1])["watermark_pages"] == [664, 664]


def test_workloads(cli):
    out = cli("workloads")[1]
    for name in NAMED:
        assert re.search(rf"^{name}\(", out, re.MULTILINE)
    assert "wrong_node(size_mb=32, node=1, memory_node=0, " in out
    out = cli("workloads", "hackbench")[1]
    assert re.search(r"groups +required +a whole number >= 1", out)
    assert "groups = ..." in out
    assert "Groups of tasks_per_group threads" in out
    facts = {entry["name"]: entry for entry in json.loads(cli("workloads", "--json")[1])}
    assert list(facts) == list(NAMED)
    assert facts["numa01"]["sized_by_machine"] is True
    assert facts["jvm"]["parameters"][0] == {
        "name": "threads", "required": True, "default": None, "expected": "a whole number >= 1"
    }  # fmt: skip


# ------------------------------------------------------------------ threads, replay


@dataclass
class FakeClaim:
    number: int

    def to_dict(self):
        return {"number": self.number}


@pytest.fixture
def fake(monkeypatch):
    """A package of patch threads that answers at once and remembers what it was asked."""
    module = ModuleType("patch_threads")
    module.calls = []
    rows = (("one", True), ("two", False), ("three", True))
    module.THREADS = {
        name: SimpleNamespace(
            name=name, title=f"T {name}", question=f"why {name}?", mail="A. Uthor, 2014-06-23, id@x", ready=ready
        )
        for name, ready in rows
    }

    def replay(name, **options):
        module.calls.append((name, options))
        datasets = {"main": by_hand()}
        if keep := options.get("keep"):
            keep("main", datasets["main"])
        figures = {"times": matplotlib.figure.Figure()}
        return SimpleNamespace(
            text=f"text of {name}\n",
            claims=[FakeClaim(3)],
            datasets=datasets,
            results={"n": 1},
            figures=figures,
            interrupted=False,
        )

    module.replay = replay
    monkeypatch.setattr("numalab.commands.threads.patch_threads", module)
    return module


def test_threads(cli, fake):
    lines = cli("threads")[1].splitlines()
    assert lines[1].split() == ["one", "replayed", "2014-06-23", "why", "one?"]
    assert lines[2].split()[:2] == ["two", "planned"]
    facts = json.loads(cli("threads", "--json")[1])
    assert facts[1] == {
        "name": "two",
        "title": "T two",
        "question": "why two?",
        "mail": "A. Uthor, 2014-06-23, id@x",
        "ready": False,
    }


def test_the_five_threads(cli):
    names = {"shared_cow", "convergence", "scan_overhead", "policy_lock", "marginal_moves"}
    facts = json.loads(cli("threads", "--json")[1])
    assert {entry["name"] for entry in facts} == names
    assert all(entry["question"].endswith("?") for entry in facts)
    assert re.search(r"^convergence +replayed +2014-06-23 +Why", cli("threads")[1], re.MULTILINE)


def test_replay_prints(cli, fake):
    assert cli("replay", "one", "--seeds", "3") == (0, "text of one\n", "")
    assert fake.calls == [("one", {"full": False, "progress": True, "seeds": 3})]
    cli("replay", "one", "--full")
    assert fake.calls[-1] == ("one", {"full": True, "progress": True})


def test_a_replay_that_fails_is_not_called_bad_input(cli, fake, monkeypatch):
    monkeypatch.setattr(fake, "replay", failing(runs.SchemaError("x")))
    code, _, err = cli("replay", "one")
    assert code == 3
    assert "RuntimeError: replay of one: x" in err


def test_replay_all(cli, fake):
    code, out, err = cli("replay", "all")
    assert code == 0
    assert out == "text of one\n\ntext of three\n"
    assert err == "not replayed yet, only planned: two\n"
    facts = json.loads(cli("replay", "all", "--json")[1])
    assert facts == {name: {"claims": [{"number": 3}], "files": []} for name in ("one", "three")}


def test_replay_writes(cli, fake, here):
    code, _, err = cli("replay", "one", "-o", "results")
    assert code == 0
    names = ["one-main.nc", "one-results.json", "one-times.png", "one.txt"]
    assert sorted(path.name for path in (here / "results").iterdir()) == names
    assert (here / "results" / "one.txt").read_text() == "text of one\n"
    assert (here / "results" / "one-times.png").read_bytes().startswith(b"\x89PNG")
    assert runs.differences(runs.open("results/one-main.nc"), by_hand()) == []
    assert all(f"results/{name}" in err for name in names)
    assert "numalab show results/one-main.nc" in err
    assert "make lab" in err
    facts = json.loads(cli("replay", "one", "-o", "results", "--json")[1])
    assert facts["one"]["files"] == [
        f"results/{name}" for name in ("one-main.nc", "one-times.png", "one.txt", "one-results.json")
    ]


def test_replay_saves_each_case_as_it_is_finished(cli, fake, here, monkeypatch):
    def killed(name, *, keep, **options):
        keep("old", by_hand())
        raise MemoryError

    monkeypatch.setattr(fake, "replay", killed)
    assert cli("replay", "one", "-o", "results")[0] == 2
    assert [path.name for path in (here / "results").iterdir()] == ["one-old.nc"]
    assert runs.differences(runs.open("results/one-old.nc"), by_hand()) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("replay", "oen"), "no patch thread 'oen'; did you mean \"one\"?"),
        (("replay", "two"), "the thread two is planned, not replayed yet; ready: one, three"),
        (("replay", "one", "-o", "file"), "file: expected a folder for the results, found a file"),
    ],
)
def test_what_cannot_be_replayed(cli, fake, here, args, message):
    (here / "file").write_text("")
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert one_line(err).startswith(message)
    assert fake.calls == []
