"""What is simulated: the twin, and what changes in a what-if."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import xarray as xr

from numalab.kernel import Kernel, KernelError, table
from numalab.machine import Machine
from numalab.model.params import PARAMETERS
from numalab.simulation import SimulationError, simulate
from numalab.twin._errors import TwinError
from numalab.twin._machine import PREFIX
from numalab.workload import Binding, Region, Workload

#: A tick: what comes of a scan or a fault takes longer than that.
STEP_US = 4000
#: Beginnings of names of settings that say where they are.
_PREFIXES = ("kernel.", "vm.", PREFIX)


@dataclass(frozen=True)
class Model:
    """What the model runs.

    Attributes
    ----------
    machine : Machine
    workload : Workload
    kernel : Kernel
    seconds : float
    parameters : dict
        Parameters of the model, and settings of the scanner.
    """

    machine: Machine
    workload: Workload
    kernel: Kernel
    seconds: float
    parameters: Mapping[str, int] = field(default_factory=dict)

    def simulate(
        self,
        seeds: int,
        every: Mapping[str, float | None],
        *,
        rates: Mapping[str, Sequence[int]] | None = None,
    ) -> xr.Dataset:
        """Run it; arguments as of :func:`numalab.simulation.simulate`.

        Raises
        ------
        TwinError
            The memory does not fit the machine, or a parameter is out of its range.
        """
        parameters: dict[str, Any] = {"step_us": STEP_US, **self.parameters}
        try:
            return simulate(
                self.machine,
                self.workload,
                self.kernel,
                seconds=self.seconds,
                seeds=seeds,
                every=every,
                rates=rates,
                **parameters,
            )
        except SimulationError as error:
            raise TwinError(str(error)) from error
        except ValueError as error:
            raise TwinError(f"{self.workload.name}: cannot be simulated: {error}") from error


def changed(model: Model, spec: str) -> Model:
    """Return the model with what a what-if changes.

    Parameters
    ----------
    model : Model
    spec : str
        One or several, with commas between:

        ``off``, ``on``
            NUMA balancing off or on; also ``numa_balancing=0`` or 1.
        ``kernel=6.14``
            Rules of another release or tree; settings that were recorded stay.
        ``patch=NAME``
            With a patch.
        ``scan_size_mb=64``
            A setting of the scanner by its name in debugfs or sysctl, or any switch of ``numalab kernels``: a
            number, a word, on or off.
        ``remote_cost=1000``
            A parameter of the model.
        ``bind=0``, ``bind=0+1``
            All tasks and all memory bound to nodes.
        ``cpubind=0``
            All tasks bound, memory as it was recorded.
        ``interleave``
            Memory interleaved over all nodes by policy, which the scanner leaves alone.

    Raises
    ------
    TwinError
        A word or value that is not understood; says what was expected.
    """
    parts = [part.strip() for part in spec.split(",")]
    if not all(parts):
        raise TwinError(f"what-if {spec!r}: expected changes with commas between; numalab twin --help lists them")
    # another kernel first: what else is asked for holds on it
    for part in sorted(parts, key=lambda one: not one.startswith("kernel=")):
        try:
            model = _change(model, part)
        except (KernelError, ValueError) as error:
            raise TwinError(f"what-if {part!r}: {error}") from error
    return model


def _change(model: Model, part: str) -> Model:
    key, equals, value = part.partition("=")
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix) if key != "numa_balancing" else key
    if not equals and key in _WORDS:
        return _WORDS[key](model)
    if equals and key in _VALUED:
        return _VALUED[key](model, value)
    switches = table().switches
    if equals and key in switches:
        kernel = model.kernel.replace(**{key: switches[key].parse(value)})
        # a recorded setting would hold in its place
        return replace(model, kernel=kernel, parameters=_without(model.parameters, key))
    if equals and key in PARAMETERS:
        if not value.isdecimal():
            raise TwinError(f"expected a whole number ({PARAMETERS[key].unit}), got {value!r}")
        return replace(model, parameters={**model.parameters, key: int(value)})
    known = [*_WORDS, *(f"{name}=" for name in {**_VALUED, **switches, **PARAMETERS})]
    close = get_close_matches(part if not equals else f"{key}=", known, n=1)
    raise TwinError(
        f"not understood; did you mean {close[0]}?"
        if close
        else "not understood; expected off, on, interleave, bind=NODE, kernel=RELEASE, or a setting or switch=VALUE"
    )


def _without(parameters: Mapping[str, int], key: str) -> dict[str, int]:
    return {name: value for name, value in parameters.items() if name != key}


def _off(model: Model) -> Model:
    return replace(model, parameters={**model.parameters, "numa_balancing": 0})


def _on(model: Model) -> Model:
    return replace(model, parameters=_without(model.parameters, "numa_balancing"))


def _balancing(model: Model, value: str) -> Model:
    if value not in ("0", "1"):
        raise TwinError(f"expected 0 or 1, got {value!r}; memory tiering (2) is not modelled")
    return _on(model) if value == "1" else _off(model)


def _kernel(model: Model, value: str) -> Model:
    # what was set by hand on the recorded machine is set on the other kernel too
    return replace(model, kernel=Kernel(value))


def _patch(model: Model, value: str) -> Model:
    return replace(model, kernel=model.kernel.patched(value))


def _nodes(model: Model, value: str) -> tuple[int, ...]:
    words = value.split("+")
    known = {node.id: node for node in model.machine.nodes}
    if not all(word.isdecimal() and int(word) in known for word in words):
        raise TwinError(f"expected nodes of the machine ({', '.join(map(str, known))}), + between, got {value!r}")
    nodes = tuple(sorted(map(int, words)))
    if not any(known[node].cpus for node in nodes):
        raise TwinError(f"expected nodes with CPUs, got {value}")
    return nodes


def _cpubind(model: Model, value: str) -> Model:
    return replace(model, workload=replace(model.workload, bindings=(Binding(_nodes(model, value)),)))


def _bind(model: Model, value: str) -> Model:
    nodes = _nodes(model, value)
    room = sum(node.memory_mb - node.reserved_mb for node in model.machine.nodes if node.id in nodes)
    size = sum(_size_mb(region, model.workload) for region in model.workload.regions)
    if size > room:
        raise TwinError(f"the memory does not fit: {size:,.0f} MB, and node {value} has {room:,.0f} MB for it")
    bound = _cpubind(model, value)
    return replace(bound, workload=_placed(bound.workload, nodes))


def _size_mb(region: Region, workload: Workload) -> float:
    """Return the size of all instances of a region."""
    users = [group for group in workload.processes if not region.processes or group.name in region.processes]
    if region.scope == "all":
        return region.size_mb
    return region.size_mb * sum(group.count * (group.threads if region.scope == "thread" else 1) for group in users)


def _interleave(model: Model) -> Model:
    nodes = tuple(node.id for node in model.machine.nodes if node.memory_mb)
    return replace(model, workload=_placed(model.workload, nodes))


def _placed(workload: Workload, nodes: tuple[int, ...]) -> Workload:
    """Return the workload with its memory on nodes by policy."""
    regions = tuple(replace(region, first_touch=nodes, policy="explicit") for region in workload.regions)
    return replace(workload, regions=regions)


_WORDS: dict[str, Callable[[Model], Model]] = {"off": _off, "on": _on, "interleave": _interleave}
_VALUED: dict[str, Callable[[Model, str], Model]] = {
    "numa_balancing": _balancing,
    "kernel": _kernel,
    "patch": _patch,
    "bind": _bind,
    "cpubind": _cpubind,
}


def record_every(seconds: float) -> dict[str, float | None]:
    """Say how often each variable is recorded, s: those that are compared some 300 times in a run."""
    step = max(0.05, seconds / 300)
    return dict.fromkeys(COMPARED, step) | dict.fromkeys(LEFT_OUT, None)


#: What is compared, and what no comparison needs.
COMPARED: tuple[str, ...] = (
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_fail",
    "pages",
    "task_node",
    "task_work_pages",
    "task_sys_ms",
)
LEFT_OUT: tuple[str, ...] = (
    "numa_huge_pte_updates",
    "migrate_refused",
    "minor_faults",
    "total_numa_faults",
    "scan_seq",
    "scan_period_ms",
)
