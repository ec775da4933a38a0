"""One TOML file that describes a machine, a workload, a kernel and a run.

::

    [machine]
    preset = "rik-4n80"          # or uniform = { nodes = 2, ... }, or name, nodes, distance
    [workload]
    preset = "perf_bench_numa"   # with its parameters, or name, processes, regions, accesses, bindings
    p = 8
    t = 20
    [kernel]
    name = "3.17"
    patches = ["S4"]
    switches = { scan_size_mb = 64 }
    [run]
    seconds = 100
    seeds = 12

Every wrong key gives one error with the file, the path of the key, what was expected and what was found.
Two examples ship with numalab: ``data/examples/preset.toml`` and ``data/examples/custom.toml``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from numalab import workloads
from numalab.compile import compile_layout
from numalab.kernel import Kernel, KernelError, Value, table
from numalab.machine import PRESETS, Machine, machine
from numalab.records import (
    DescriptionError,
    Index,
    Positive,
    Rule,
    check,
    nearest,
    read_arguments,
    read_field,
    read_record,
    show,
    too_large,
)
from numalab.workload import Workload

Result = TypeVar("Result")
#: Tasks times CPUs, times the moments when bindings change: one byte each.
MOST_PAIRS = 10**9
#: Simulated time: at most a good week.
Seconds = Annotated[float, Rule("a number > 0", lambda v: v > 0, 10**6)]
Seeds = Annotated[int, Rule("a whole number >= 1", lambda v: v >= 1, 10**6)]


@dataclass(frozen=True)
class Run:
    """How long and how often.

    Attributes
    ----------
    seconds : float
        Simulated time.
    seeds : int or tuple of int
        A number of runs, with seeds from 0, or the seeds themselves.
    step_ms : float or None
        Time step of the model; None = its own default. Steps above 4 ms are known to distort.
    """

    seconds: Seconds = 60.0
    seeds: Seeds | tuple[Index, ...] = 1
    step_ms: Positive | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.seeds == ():
            raise DescriptionError("seeds", "expected at least one seed, got []")
        if self.step_ms is not None and self.step_ms > self.seconds * 1000:
            problem = f"expected at most the {self.seconds * 1000:g} ms that the run lasts, got {self.step_ms:g}"
            raise DescriptionError("step_ms", problem)

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds, one per run."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


@dataclass(frozen=True)
class Description:
    """What a description file describes.

    Attributes
    ----------
    machine : Machine
    workload : Workload
    kernel : Kernel
    run : Run
    """

    machine: Machine
    workload: Workload
    kernel: Kernel
    run: Run


def load(path: str | os.PathLike[str]) -> Description:
    """Read a description file.

    Parameters
    ----------
    path : str or path-like
        A TOML file.

    Returns
    -------
    Description
        The workload is known to fit the machine.

    Raises
    ------
    DescriptionError
        The file cannot be read, is no TOML, or has an unknown, missing or wrong key.
    """
    return build(read(path), os.fspath(path))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the tables of a file as they stand there.

    Raises
    ------
    DescriptionError
        The file cannot be read, or is no TOML.
    """
    try:
        # Some editors begin UTF-8 with a byte order mark.
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DescriptionError("", f"cannot be read: {error.strerror}", os.fspath(path)) from None
    except UnicodeDecodeError as error:
        raise DescriptionError("", f"expected UTF-8 text, byte {error.start} is not", os.fspath(path)) from None
    return _parsed(text, os.fspath(path))


def loads(text: str, file: str = "description") -> Description:
    """Read a description from a string; errors name it ``file``.

    Raises
    ------
    DescriptionError
        As :func:`load`.
    """
    return build(_parsed(text, file), file)


def _parsed(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError("", f"expected TOML: {error}", file) from None
    except RecursionError:
        raise DescriptionError("", "expected TOML: brackets are nested too deep", file) from None
    except ValueError:
        # Python refuses to read a number of thousands of digits.
        raise DescriptionError(
            "", "expected TOML: a number or date in it cannot be read; is it too long?", file
        ) from None


def build(data: Mapping[str, Any], file: str = "") -> Description:
    """Make a description of tables; errors name the file, if there is one.

    Parameters
    ----------
    data : mapping
        With the keys ``machine``, ``workload``, ``kernel`` and perhaps ``run``, as in a file.
    file : str

    Raises
    ------
    DescriptionError
        As :func:`load`.
    """
    try:
        return _description(data)
    except DescriptionError as error:
        raise DescriptionError(error.key, error.problem, file) from None


def _description(data: Mapping[str, Any]) -> Description:
    sections = ("machine", "workload", "kernel", "run")
    for key in data:
        if key == "sweep":
            raise DescriptionError(key, "describes many setups, of which this needs one; `numalab sweep` runs them")
        if key not in sections:
            raise DescriptionError(key, f"unknown key{nearest(key, sections)}")
    for key in sections[:3]:
        if key not in data:
            raise DescriptionError(key, f"missing; expected a table [{key}]")
        if not isinstance(data[key], Mapping):
            raise DescriptionError(key, f"expected a table, got {show(data[key])}")
    built = _within("machine", lambda: _machine(data["machine"]))
    load_on = _within("workload", lambda: _workload(data["workload"], built))
    kernel = _within("kernel", lambda: _kernel(data["kernel"]))
    run = _within("run", lambda: read_record(Run, data.get("run", {})))
    # Nodes that the machine lacks, memory that does not fit: found here, not when the run starts.
    _within("workload", lambda: _check_bindable(built, load_on))
    try:
        _within("workload", lambda: compile_layout(built, load_on))
    except MemoryError:
        problem = (
            "expected what fits into the memory of this computer; take fewer tasks, or less memory in larger blocks"
        )
        raise DescriptionError("workload", problem) from None
    return Description(built, load_on, kernel, run)


def _check_bindable(on: Machine, load_on: Workload) -> None:
    # Which CPUs a task may use is an array of all tasks by all CPUs, anew whenever a binding begins or ends.
    tasks = sum(group.count * group.threads for group in load_on.processes)
    times = len({time for binding in load_on.bindings for time in (binding.from_ms, binding.until_ms)} | {0.0})
    if tasks * on.cpus * times > MOST_PAIRS:
        problem = f"expected at most {MOST_PAIRS // on.cpus // times:,} tasks on {on.cpus:,} CPUs"
        changes = f" with {len(load_on.bindings):,} bindings" if load_on.bindings else ""
        raise DescriptionError("processes", f"{problem}{changes}, got {tasks:,}")


def _within(prefix: str, build: Callable[[], Result]) -> Result:
    try:
        return build()
    except DescriptionError as error:
        raise error.within(prefix) from None


def _machine(data: Mapping[str, Any]) -> Machine:
    """Read a preset, with fields replaced; a uniform machine; or a full description."""
    if "preset" in data:
        name = read_field(str, data["preset"], "preset")
        preset = _within("preset", lambda: machine(name))
        return Machine.from_dict({**preset.to_dict(), **{k: v for k, v in data.items() if k != "preset"}})
    if "uniform" in data:
        for key in data:
            if key != "uniform":
                raise DescriptionError(key, "unknown key beside uniform; move it into the table uniform")
        uniform = _within("uniform", lambda: read_arguments(Machine.uniform, data["uniform"]))
        return _within("uniform", lambda: Machine.uniform(**uniform))
    if "name" not in data:
        raise DescriptionError(
            "preset", f"missing; expected one of {', '.join(PRESETS)}, or uniform, or name and nodes"
        )
    return Machine.from_dict(data)


def _workload(data: Mapping[str, Any], on: Machine) -> Workload:
    if "preset" in data:
        name = read_field(str, data["preset"], "preset")
        if name not in workloads.NAMED:
            raise DescriptionError("preset", f"no workload {show(name)}{nearest(name, workloads.NAMED)}")
        return workloads.workload(name, on, **{key: value for key, value in data.items() if key != "preset"})
    if "name" not in data:
        names = ", ".join(workloads.NAMED)
        raise DescriptionError("preset", f"missing; expected one of {names}, or name, processes, regions")
    return Workload.from_dict(data)


def _kernel(data: Mapping[str, Any]) -> Kernel:
    known = ("name", "patches", "switches")
    for key in data:
        if key not in known:
            hint = "; write it under [kernel.switches]" if key in table().switches else nearest(key, known)
            raise DescriptionError(key, f"unknown key{hint}")
    if "name" not in data:
        raise DescriptionError("name", 'missing; expected a release such as "6.1"; see `numalab kernels`')
    name = read_field(str, data["name"], "name")
    patches = read_field(tuple[str, ...], data.get("patches", []), "patches")
    switches = data.get("switches", {})
    if not isinstance(switches, Mapping):
        raise DescriptionError("switches", f"expected a table, got {show(switches)}")
    kernel = _kernel_step("name", lambda: Kernel(name))
    kernel = _kernel_step("patches", lambda: kernel.patched(*patches))
    return kernel.replace(**{key: _switch(key, value) for key, value in switches.items()})


def _kernel_step(key: str, build: Callable[[], Kernel]) -> Kernel:
    try:
        return build()
    except KernelError as error:
        raise DescriptionError(key, str(error)) from None


def _switch(key: str, value: object) -> Value:
    switches = table().switches
    if key not in switches:
        raise DescriptionError(f"switches.{key}", f"unknown key{nearest(key, switches)}")
    if too_large(value):
        raise DescriptionError(f"switches.{key}", f"expected a number of at most 15 digits, got {show(value)}")
    try:
        return switches[key].parse(value)
    except KernelError as error:
        raise DescriptionError(f"switches.{key}", str(error)) from None
