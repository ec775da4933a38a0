"""What an explorer runs: a simulation that goes on piece by piece, or any computation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

import xarray as xr

from numalab import runs
from numalab.kernel import Kernel
from numalab.machine import Machine
from numalab.machine import machine as machine_named
from numalab.model.params import DEFAULTS
from numalab.simulation import Simulation
from numalab.workload import Workload
from numalab.workloads import NAMED
from numalab.workloads import workload as workload_named


class Progress(Protocol):
    """A job on its way; :class:`numalab.simulation.Simulation` is one."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def advance(self, budget_s: float) -> None:
        """Go on for about so many seconds of wall-clock time."""
        ...

    def dataset(self) -> Any:
        """Return what is there so far."""
        ...


class Job(Protocol):
    """Something an explorer can run, for one seed or several.

    Attributes
    ----------
    seconds : float or None
        Simulated time; None: nothing happens over time.
    """

    @property
    def seconds(self) -> float | None:
        """Simulated time, seconds; None: nothing happens over time."""
        ...

    def start(self, seeds: Sequence[int]) -> Progress:
        """Begin."""
        ...

    def parts(self, seeds: Sequence[int]) -> list[list[int]]:
        """Part seeds into what is run one after the other."""
        ...

    def join(self, parts: Sequence[Any]) -> Any:
        """Put the results for different parts together."""
        ...

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that does the same."""
        ...

    def facts(self) -> str:
        """Say what is computed: machine, simulated time, step."""
        ...


@dataclass(frozen=True)
class Setup:
    """A simulation, described so that it can be run and also written down.

    Attributes
    ----------
    machine : str or Machine
    workload : str or Workload
        A name of :data:`numalab.workloads.NAMED`, or a workload.
    kernel : str
        Release or tree.
    seconds : float
    arguments : mapping
        Of the named workload.
    patches : sequence of str
        Applied to the kernel in order.
    switches : mapping
        Set in the kernel after that.
    options : mapping
        Further arguments of :func:`numalab.simulate`: ``step_us``, ``every``, ``rates``, parameters.
    """

    machine: str | Machine
    workload: str | Workload
    kernel: str
    seconds: float
    arguments: Mapping[str, Any] = field(default_factory=dict)
    patches: Sequence[str] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def start(self, seeds: Sequence[int]) -> Simulation:
        """Begin the simulation.

        Raises
        ------
        ValueError
            Whatever of it cannot be; the message names it.
        """
        host = machine_named(self.machine) if isinstance(self.machine, str) else self.machine
        work = self.workload
        if isinstance(work, str):
            work = workload_named(work, host, **self.arguments)
        kernel = Kernel(self.kernel).patched(*self.patches).replace(**self.switches)
        return Simulation(host, work, kernel, seconds=self.seconds, seeds=list(seeds), **self.options)

    def run(self, seeds: int | Sequence[int] = (0,)) -> xr.Dataset:
        """Simulate to the end; what this session has done already is not done twice.

        Parameters
        ----------
        seeds : int or sequence of int
            A number n stands for the seeds 0 to n - 1.
        """
        chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        found: xr.Dataset | None = DONE.get(self.call(chosen))
        if found is None:
            simulation = self.start(chosen)
            while not simulation.done:
                simulation.advance(1.0)
            found = simulation.dataset()
            DONE.put(self.call(chosen), found)
        return found

    def parts(self, seeds: Sequence[int]) -> list[list[int]]:
        """Part seeds so that the first run is there soon and a band fills in: one, three, then four at a time."""
        rest = list(seeds)
        return [part for part in (rest[:1], rest[1:4], *(rest[i : i + 4] for i in range(4, len(rest), 4))) if part]

    def join(self, parts: Sequence[xr.Dataset]) -> xr.Dataset:
        """Put runs of different seeds into one dataset."""
        return parts[0] if len(parts) == 1 else runs.concat(parts)

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that simulates the same."""
        named = isinstance(self.workload, str)
        imports = ["from numalab import Kernel, simulate"]
        work = repr(self.workload)
        if named and not NAMED[str(self.workload)].needs_machine:
            imports.append(f"from numalab.workloads import {self.workload}")
            work = f"{self.workload}({_arguments(self.arguments)})"
        elif named:
            imports += ["from numalab.machine import machine", "from numalab.workloads import workload"]
            given = [repr(self.workload), f"machine({self.machine!r})", _arguments(self.arguments)]
            work = f"workload({', '.join(filter(None, given))})"
        kernel = f"Kernel({self.kernel!r})"
        if self.patches:
            kernel += f".patched({', '.join(map(repr, self.patches))})"
        if self.switches:
            kernel += f".replace({_arguments(self.switches)})"
        options = {"seconds": self.seconds, "seeds": list(seeds), **self.options}
        lines = [f"    {self.machine!r},", f"    {work},", f"    {kernel},", f"    {_arguments(options)},"]
        return "\n".join([*imports, "", "ds = simulate(", *lines, ")"])

    def facts(self) -> str:
        """Say what is simulated: machine, time, step."""
        host = machine_named(self.machine) if isinstance(self.machine, str) else self.machine
        cpus = sum(node.cpus for node in host.nodes)
        step_ms = self.options.get("step_us", DEFAULTS["step_us"]) / 1000
        return (
            f"Machine {host.name}: {len(host.nodes)} nodes, {cpus} CPUs; {self.seconds:g} s simulated in steps of "
            f"{step_ms:g} ms"
        )


@dataclass(frozen=True)
class Computation:
    """A job that ends in one go.

    Attributes
    ----------
    function : callable
        From a list of seeds to a result for all of them.
    code, text : str
        The Python that does the same, with ``{seeds}`` where they stand; what is computed, in words. The code
        names the result: two computations with the same code are taken for the same.
    """

    function: Callable[[list[int]], Any]
    code: str
    text: str

    @property
    def seconds(self) -> None:
        """Nothing happens over time."""
        return None

    def start(self, seeds: Sequence[int]) -> Progress:
        """Begin."""
        return _Computed(self.function, list(seeds))

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the one part: all seeds were computed at once."""
        (only,) = parts
        return only

    def parts(self, seeds: Sequence[int]) -> list[list[int]]:
        """Return all seeds as one part."""
        return [list(seeds)]

    def call(self, seeds: Sequence[int]) -> str:
        """Return the Python that computes the same."""
        return self.code.replace("{seeds}", repr(list(seeds)))

    def facts(self) -> str:
        """Say what is computed."""
        return self.text


class _Computed:
    def __init__(self, function: Callable[[list[int]], Any], seeds: list[int]) -> None:
        self._function, self._seeds = function, seeds
        self._result: Any = None
        self.done = False

    def advance(self, budget_s: float) -> None:
        self._result = self._function(self._seeds)
        self.done = True

    def dataset(self) -> Any:
        return self._result


class Done:
    """The latest finished results of this session, by the call that made them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def get(self, call: str) -> Any:
        """Return a result, or None."""
        with self._lock:
            if call in self._kept:
                self._kept.move_to_end(call)
            return self._kept.get(call)

    def put(self, call: str, result: Any) -> None:
        """Keep a result; the one that was not used for longest goes."""
        with self._lock:
            self._kept[call] = result
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()


#: A run of 160 tasks over 20 s takes some hundred kB.
DONE = Done(most=64)


def _arguments(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
