"""Workloads by name: those of the mails and of the usual NUMA benchmarks.

Each is a function from a few numbers to a :class:`numalab.workload.Workload`; :data:`NAMED` lists them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numalab.machine import Machine
from numalab.records import DescriptionError, nearest, read_arguments, show
from numalab.workload import Workload
from numalab.workloads.autonuma import numa01, numa01_thread_alloc, numa02, numa02_smt
from numalab.workloads.benchmarks import hackbench, jvm, perf_bench_numa
from numalab.workloads.programs import shared_cow, xfs_repair
from numalab.workloads.single import follow, wrong_node

__all__ = [
    "NAMED",
    "Named",
    "follow",
    "hackbench",
    "jvm",
    "numa01",
    "numa01_thread_alloc",
    "numa02",
    "numa02_smt",
    "perf_bench_numa",
    "shared_cow",
    "workload",
    "wrong_node",
    "xfs_repair",
]


@dataclass(frozen=True)
class Named:
    """A workload that can be asked for by name.

    Attributes
    ----------
    name : str
    build : callable
        Returns the workload; takes the machine first if ``needs_machine``, then the parameters.
    needs_machine : bool
    parameters : dict
        Parameter name to its default, ``inspect.Parameter.empty`` where it must be given.
    """

    name: str
    build: Callable[..., Workload]
    needs_machine: bool
    parameters: Mapping[str, Any]

    @property
    def doc(self) -> str:
        """What it is and what its parameters mean."""
        return inspect.getdoc(self.build) or ""

    @property
    def summary(self) -> str:
        """The first line of :attr:`doc`."""
        return self.doc.split("\n", 1)[0]


def _named(build: Callable[..., Workload]) -> Named:
    parameters = {key: value.default for key, value in inspect.signature(build).parameters.items()}
    needs_machine = parameters.pop("machine", None) is not None
    return Named(build.__name__, build, needs_machine, parameters)


_BUILDERS: tuple[Callable[..., Workload], ...] = (
    perf_bench_numa,
    shared_cow,
    wrong_node,
    follow,
    numa01,
    numa01_thread_alloc,
    numa02,
    numa02_smt,
    hackbench,
    jvm,
    xfs_repair,
)
#: The named workloads.
NAMED: dict[str, Named] = {build.__name__: _named(build) for build in _BUILDERS}


def workload(name: str, machine: Machine, **parameters: object) -> Workload:
    """Build a workload by name.

    Parameters
    ----------
    name : str
        A key of :data:`NAMED`.
    machine : Machine
        The machine it will run on; some workloads size themselves by it.
    **parameters
        Of that workload.

    Returns
    -------
    Workload

    Raises
    ------
    DescriptionError
        Unknown name; unknown, missing or wrong parameter, by its name.
    """
    if name not in NAMED:
        raise DescriptionError("", f"no workload {show(name)}{nearest(name, NAMED)}")
    found = NAMED[name]
    given = read_arguments(found.build, parameters, skip=("machine",))
    return found.build(machine, **given) if found.needs_machine else found.build(**given)
