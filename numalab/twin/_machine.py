"""The recorded machine and kernel as the model has them."""

from __future__ import annotations

from collections.abc import Mapping

from numalab.kernel import Kernel
from numalab.machine import PAGES_PER_MB, Machine, Node
from numalab.records import DescriptionError
from numalab.scenarios import ScenarioError, _kernels
from numalab.twin._errors import TwinError
from numalab.twin._seen import Evidence

#: SLIT distance between nodes where none is told: what firmware without a table means.
REMOTE = 20
#: Memory of a node where none is told, as a multiple of what the processes have in all.
ROOMY = 2.0
#: Settings are recorded under the names that /proc/sys once had for them.
PREFIX = "numa_balancing_"


def machine_of(found: Evidence, needed: Mapping[int, int]) -> tuple[Machine, list[str]]:
    """Describe the machine.

    Parameters
    ----------
    found : Evidence
    needed : mapping
        Node -> pages that the workload has on it at the start.

    Returns
    -------
    Machine
        Its memory: as large as recorded, less what was neither free nor the processes' own.
    list of str
        What is assumed.

    Raises
    ------
    TwinError
    """
    notes = ["every CPU is taken for a core with nothing shared: hardware threads and caches are not recorded"]
    rows = found.distance.tolist() if found.distance is not None else None
    if rows is None:
        notes.append(f"no distances recorded: {REMOTE} between all nodes")
        rows = [[10 if a == b else REMOTE for b in found.nodes] for a in found.nodes]
    total = found.total
    if not total:
        most = round(ROOMY * sum(needed.values()))
        notes.append(f"sizes of nodes not recorded: each has {ROOMY:g} times the memory of all processes")
        total = dict.fromkeys(found.nodes, most)
    elif not found.free:
        notes.append("free memory not recorded: all that the processes do not have is taken as free")
    nodes = []
    for node in found.nodes:
        pages, own = total.get(node, 0), needed.get(node, 0)
        pages = max(pages, own)
        free = found.free.get(node, pages - own)
        reserved = max(0, pages - own - free)
        nodes.append(Node(node, found.cpus[node], pages / PAGES_PER_MB, reserved_mb=reserved / PAGES_PER_MB))
    try:
        return Machine(
            f"{found.name}: {len(nodes)} nodes, {sum(found.cpus.values())} CPUs", tuple(nodes), tuple(map(tuple, rows))
        ), notes
    except DescriptionError as error:
        raise TwinError(f"{found.name}: the recorded machine cannot be: {error}") from error


def kernel_of(found: Evidence) -> tuple[Kernel, dict[str, int], list[str]]:
    """Name the model's nearest kernel.

    Returns
    -------
    Kernel
    dict
        Settings of the scanner that are not the kernel's defaults, as parameters.
    list of str
        What is assumed.

    Raises
    ------
    TwinError
        No kernel that the model knows, or a setting that is no number.
    """
    try:
        name, about = _kernels.release(found.release, found.name)
        kernel, more = _kernels.toggled(name, found.toggles, found.name) if found.toggles else (Kernel(name), ())
        sysctl = {key.removeprefix(PREFIX): value for key, value in found.sysctl.items()}
        settings, remarks = _kernels.settings(kernel, sysctl, found.name)
    except ScenarioError as error:
        raise TwinError(str(error)) from error
    notes = [*about, *more, *remarks]
    untold = [name for name in _kernels.SCAN_SETTINGS if name not in sysctl]
    if untold:
        notes.append(f"settings not recorded ({', '.join(untold)}; they need root): those of {kernel.name} by default")
    return kernel, {name: round(value) for name, value in settings.items()}, notes
