"""Description files: the examples, and one clear error for everything that can be wrong."""

from pathlib import Path

import pytest

from numalab import _data
from numalab.describe import load, loads
from numalab.kernel import Kernel
from numalab.machine import Machine, machine
from numalab.records import DescriptionError
from numalab.simulation import simulate
from numalab.workload import Access, Binding, Processes, Region, Workload
from numalab.workloads import perf_bench_numa

MACHINE = "[machine]\nuniform = { nodes = 2, cpus_per_node = 2, memory_mb = 512 }\n"
WORKLOAD = '[workload]\npreset = "wrong_node"\n'
KERNEL = '[kernel]\nname = "6.1"\n'
RUN = MACHINE + WORKLOAD + KERNEL + "[run]\n"
CUSTOM = """[workload]
name = "w"
processes = [{ name = "a", threads = 2 }]
regions = [{ name = "r", size_mb = 4 }, { name = "s", size_mb = 4 }]
accesses = [{ region = "r", rate_mbps = 10 }]
"""


def example(name: str) -> Path:
    with _data.local_path("examples", name) as path:
        return path


def test_preset_example() -> None:
    described = load(example("preset.toml"))
    assert described.machine == machine("rik-4n80")
    assert described.workload == perf_bench_numa(8, 20)
    assert described.kernel == Kernel("3.17")
    assert described.run.seconds == 100
    assert described.run.seed_list == tuple(range(12))
    assert described.run.step_ms is None


def test_custom_example() -> None:
    described = load(example("custom.toml"))
    assert [node.id for node in described.machine.nodes] == [0, 1, 4]
    assert described.machine.distance == ((10, 21, 28), (21, 10, 28), (28, 28, 10))
    server, client = described.workload.processes
    assert server == Processes("server", threads=8)
    assert client == Processes("client", count=4, demand=250, start_ms=2000, stagger_ms=10)
    assert described.workload.regions[1] == Region("sort memory", 64, processes=("server",), scope="thread")
    assert described.workload.accesses[2] == Access("message queue", pages_per_s=1000, write=0.5)
    assert described.workload.bindings == (Binding(0, processes=("server",), until_ms=10000),)
    assert described.kernel == Kernel("3.17", move_in_swap=False, scan_size_mb=64)
    assert described.run.seed_list == (1, 2, 3)


def test_round_trip_of_what_was_read() -> None:
    described = load(example("custom.toml"))
    assert Machine.from_dict(described.machine.to_dict()) == described.machine
    assert Workload.from_dict(described.workload.to_dict()) == described.workload


def test_uniform_machine() -> None:
    assert loads(MACHINE + WORKLOAD + KERNEL).machine == Machine.uniform(2, 2, 512)


def test_preset_machine_with_a_field_replaced() -> None:
    text = '[machine]\npreset = "guest-2x2"\nwatermark_mb = 8\n'
    assert loads(text + WORKLOAD + KERNEL).machine.watermark_pages() == (2048, 2048)


def test_patches_and_switches() -> None:
    text = '[kernel]\nname = "3.16"\npatches = ["S1#2", "S1#5"]\nswitches = { scan_size_mb = 64 }\n'
    kernel = loads(MACHINE + WORKLOAD + text).kernel
    assert kernel == Kernel("3.16").patched("S1#2", "S1#5").replace(scan_size_mb=64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WORKLOAD + KERNEL, "machine: missing; expected a table [machine]"),
        ("machine = 4\n" + WORKLOAD + KERNEL, "machine: expected a table, got 4"),
        (MACHINE + WORKLOAD + KERNEL + "[runs]\n", 'runs: unknown key; did you mean "run"?'),
        (
            '[machine]\npreset = "guest-2x3"\n' + WORKLOAD + KERNEL,
            'machine.preset: no machine "guest-2x3"; did you mean',
        ),
        ("[machine]\npreset = 3\n" + WORKLOAD + KERNEL, "machine.preset: expected text, got 3"),
        ("[machine]\nsmt = 2\n" + WORKLOAD + KERNEL, "machine.preset: missing; expected one of rik-4n80"),
        (
            "[machine]\nuniform = { nodes = 2, cpu_per_node = 2, memory_mb = 64 }\n" + WORKLOAD + KERNEL,
            'machine.uniform.cpu_per_node: unknown key; did you mean "cpus_per_node"?',
        ),
        (
            "[machine]\nuniform = { nodes = 2, cpus_per_node = 2, memory_mb = 64, remote = 5 }\n" + WORKLOAD + KERNEL,
            "machine.uniform.distance[0][1]: expected at least 10, got 5",
        ),
        ("[machine]\nsmt = 2\nuniform = {}\n" + WORKLOAD + KERNEL, "machine.smt: unknown key beside uniform"),
        (MACHINE + WORKLOAD.replace("node", "nodes") + KERNEL, 'workload.preset: no workload "wrong_nodes"; did you'),
        (MACHINE + WORKLOAD + "size = 3\n" + KERNEL, 'workload.size: unknown key; did you mean "size_mb"?'),
        (MACHINE + WORKLOAD + "size_mb = true\n" + KERNEL, "workload.size_mb: expected a number > 0, got true"),
        (MACHINE + WORKLOAD + 'order = "radnom"\n' + KERNEL, 'got "radnom"; did you mean "random"?'),
        (MACHINE + '[workload]\npreset = "jvm"\n' + KERNEL, "workload.threads: missing; expected a whole number >= 1"),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = "big"') + KERNEL,
            'workload.regions[1].size_mb: expected a number > 0, got "big"',
        ),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = 4, kind = "forkd"') + KERNEL,
            "workload.regions[1].kind: expected one of private, forked, data, shmem, file, file-shared, "
            'got "forkd"; did you mean "forked"?',
        ),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = 4, first_touch = [0, "x"]') + KERNEL,
            'workload.regions[1].first_touch[1]: expected a whole number, got "x"',
        ),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = 4, first_touch = 5') + KERNEL,
            "workload.regions[1].first_touch: expected a node of 2x2 (0, 1), got 5",
        ),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = 4096') + KERNEL,
            "workload.regions: expected at most 1024 MB in all on machine 2x2, got 4100 MB",
        ),
        (
            MACHINE + CUSTOM + "bindings = [{ cpus = [9] }]\n" + KERNEL,
            "workload.bindings[0].cpus: expected CPUs below 4",
        ),
        (MACHINE + WORKLOAD + "[kernel]\n", "kernel.name: missing"),
        (MACHINE + WORKLOAD + '[kernel]\nname = "9.9"\n', "kernel.name: no kernel '9.9'"),
        (MACHINE + WORKLOAD + KERNEL + "scan_size_mb = 1\n", "kernel.scan_size_mb: unknown key; write it under"),
        (MACHINE + WORKLOAD + KERNEL + 'patches = ["S9"]\n', "kernel.patches: no patch 'S9'"),
        (
            MACHINE + WORKLOAD + KERNEL + "switches = { scan_sizes_mb = 1 }\n",
            'kernel.switches.scan_sizes_mb: unknown key; did you mean "scan_size_mb"?',
        ),
        (
            MACHINE + WORKLOAD + KERNEL + 'switches = { scan_size_mb = "x" }\n',
            "kernel.switches.scan_size_mb: switch scan_size_mb: 'x' is no whole number",
        ),
        (MACHINE + WORKLOAD + KERNEL + "[run]\nsecond = 3\n", 'run.second: unknown key; did you mean "seconds"?'),
        (MACHINE + WORKLOAD + KERNEL + "[run]\nseconds = 0\n", "run.seconds: expected a number > 0, got 0"),
        (MACHINE + WORKLOAD + KERNEL + "[run]\nseeds = []\n", "run.seeds: expected at least one seed, got []"),
        (
            MACHINE + WORKLOAD + KERNEL + '[run]\nseeds = "all"\n',
            'run.seeds: expected a whole number >= 1 or a list, got "all"',
        ),
        (MACHINE + WORKLOAD + KERNEL + "[run]\nstep_ms = nan\n", "run.step_ms: expected a number > 0"),
        ("[machine\n", "expected TOML: "),
        ("x = " + 5000 * "[" + 5000 * "]", "expected TOML: brackets are nested too deep"),
        (f"x = {'9' * 10_000}\n", "expected TOML: a number or date in it cannot be read"),
        (RUN + f"seeds = 0x{'f' * 9000}\n", "run.seeds: expected a number of at most 15 digits, got a number of thous"),
        (RUN + f"seconds = 0x{'f' * 9000}\n", "run.seconds: expected a number of at most 15 digits, got a number of"),
        (RUN + "seconds = 1e300\n", "run.seconds: expected a number of at most 15 digits, got 1e+300"),
        (RUN + "seconds = 1e7\n", "run.seconds: expected at most 1,000,000, got 10000000.0"),
        (RUN + "seeds = [1, 9223372036854775808]\n", "run.seeds[1]: expected a number of at most 15 digits"),
        (RUN + "seeds = 1000001\n", "run.seeds: expected at most 1,000,000, got 1000001"),
        (
            RUN + "seconds = 1\nstep_ms = 1001\n",
            "run.step_ms: expected at most the 1000 ms that the run lasts, got 1001",
        ),
        (
            MACHINE + '[workload]\npreset = "perf_bench_numa"\np = 100000000\nt = 1\n' + KERNEL,
            "workload.processes: expected at most 1,000,000 tasks in all, got 100,000,000",
        ),
        (
            MACHINE + CUSTOM.replace("threads = 2", "threads = 10000000") + KERNEL,
            "workload.processes: expected at most 1,000,000 tasks in all, got 10,000,000",
        ),
        (
            MACHINE + CUSTOM.replace("threads = 2", "count = 1000000, stagger_ms = 1e6") + KERNEL,
            "workload.processes[0].stagger_ms: expected the last process to start within 1,000,000,000 ms",
        ),
        (
            MACHINE + CUSTOM.replace('"s", size_mb = 4', '"s", size_mb = 1e9, block_kb = 4') + KERNEL,
            "workload.regions: expected at most 100,000,000 blocks of pages in all",
        ),
        (
            MACHINE + CUSTOM.replace("rate_mbps = 10", "rate_mbps = 1000001") + KERNEL,
            "workload.accesses[0].rate_mbps: expected at most 1,000,000, got 1000001",
        ),
        (
            MACHINE + WORKLOAD + "rate_mbps = 1e9\n" + KERNEL,
            "workload.rate_mbps: expected at most 1,000,000, got 1000000000.0",
        ),
        (
            MACHINE + CUSTOM + "bindings = [{ until_ms = 5 }]\n" + KERNEL,
            "workload.bindings[0].nodes: expected nodes or cpus, got neither",
        ),
        (
            MACHINE.replace("nodes = 2", "nodes = 100000000") + WORKLOAD + KERNEL,
            "machine.uniform.nodes: expected at most 1024 nodes, got 100,000,000",
        ),
        (
            MACHINE.replace("cpus_per_node = 2", "cpus_per_node = 100000000") + WORKLOAD + KERNEL,
            "machine.uniform.nodes: expected at most 100,000 CPUs in all, got 200,000,000",
        ),
        (
            MACHINE.replace("cpus_per_node = 2", "cpus_per_node = 50000")
            + CUSTOM.replace("threads = 2", "threads = 100000")
            + KERNEL,
            "workload.processes: expected at most 10,000 tasks on 100,000 CPUs, got 100,000",
        ),
        (
            MACHINE.replace("= 512", "= 512, remote = 300") + WORKLOAD + KERNEL,
            "machine.uniform.distance[0][1]: expected at most 255, a distance is one byte; got 300",
        ),
        (
            MACHINE.replace("= 512", "= 512, remote = 9223372036854775808") + WORKLOAD + KERNEL,
            "machine.uniform.remote: expected a number of at most 15 digits, got 9223372036854775808",
        ),
        (
            "[machine]\nname = 'm'\nnodes = [{ id = 1024, cpus = 1, memory_mb = 64 }]\ndistance = [[10]]\n"
            + WORKLOAD
            + KERNEL,
            "machine.nodes[0].id: expected a number below 1024, got 1024",
        ),
        (
            MACHINE + WORKLOAD + KERNEL + "switches = { scan_size_mb = 9223372036854775808 }\n",
            "kernel.switches.scan_size_mb: expected a number of at most 15 digits",
        ),
        (
            MACHINE + WORKLOAD + KERNEL + 'switches = { scan_size_mb = "9223372036854775808" }\n',
            "kernel.switches.scan_size_mb: switch scan_size_mb: '9223372036854775808' is no whole number from 1 to "
            "1,000,000,000 (MB)",
        ),
    ],
)
def test_error_names_file_and_key(text: str, message: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        loads(text, "fast.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("fast.toml: ")
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "bom.toml").write_text(RUN + "seconds = 7\n", encoding="utf-8-sig")
    assert load(tmp_path / "bom.toml").run.seconds == 7


def test_values_at_the_bounds_are_taken() -> None:
    described = loads(RUN + f"seconds = 1000000\nseeds = [{10**15}]\nstep_ms = 1e9\n")
    assert (described.run.seconds, described.run.seed_list, described.run.step_ms) == (10**6, (10**15,), 1e9)
    described = loads(MACHINE + CUSTOM.replace("rate_mbps = 10", "rate_mbps = 1e6") + KERNEL)
    assert described.workload.accesses[0].rate == 256e6
    described = loads(MACHINE.replace("= 512", "= 512, remote = 255") + WORKLOAD + KERNEL)
    assert described.machine.distance == ((10, 255), (255, 10))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"none\.toml: cannot be read: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(DescriptionError, match=r"latin\.toml: expected UTF-8 text, byte 5 is not"):
        load(tmp_path / "latin.toml")


@pytest.mark.parametrize("name", ["preset.toml", "custom.toml"])
def test_the_examples_run(name: str) -> None:
    """Both shipped descriptions simulate, late clients included."""
    with _data.local_path("examples", name) as path:
        what = load(path)
    ds = simulate(what.machine, what.workload, what.kernel, seconds=3, seeds=[0], step_us=4000)
    assert (ds.task_node.values[0, -1] >= 0).all()
