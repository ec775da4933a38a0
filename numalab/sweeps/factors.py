"""What a sweep can vary, by name, and how a value gets into a run.

Model parameters, numeric switches and rates vary along the run axis of one simulation. Everything else makes another
*setup*: a description with its own machine, workload or kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from numalab import workloads
from numalab.kernel import Kernel, KernelError, table
from numalab.machine import PRESETS, Machine
from numalab.model.params import PARAMETERS
from numalab.records import DescriptionError, nearest, read_field, show

Value = bool | int | float | str
#: Separates the patches of one value of the factor ``patch``.
PLUS = "+"
#: Stands for no patch.
NO_PATCH = "none"
#: The step is shared by all runs of a simulation.
_FIXED = ("step_us",)


def along_run(name: str) -> bool:
    """Tell whether a factor varies within one simulation."""
    switch = table().switches.get(name)
    return name.startswith("rate.") or name in PARAMETERS or (switch is not None and switch.kind == "number")


def coordinate(name: str) -> str:
    """Return the name of a factor in a dataset."""
    return name.replace(".", "_")


def stored(value: Value) -> Value:
    """Return a value as a coordinate has it: a dataset in a file cannot hold true and false."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def check(name: str, values: list[Any], description: Mapping[str, Any]) -> None:
    """Check the name of a factor and the values it takes.

    Parameters
    ----------
    name : str
    values : list
    description : mapping
        The tables that the values change.

    Raises
    ------
    DescriptionError
        No such factor, or a value it cannot take; what does not fit together is not found here.
    """
    try:
        checker = _checker(name, description)
        for value in values:
            checker(value)
    except (DescriptionError, KernelError) as error:
        problem = error.problem if isinstance(error, DescriptionError) else str(error)
        raise DescriptionError(name, problem) from None


def _checker(name: str, description: Mapping[str, Any]) -> Any:
    section, _, field = name.partition(".")
    if name in PARAMETERS and name not in _FIXED:
        return lambda value: _whole(value, PARAMETERS[name].least, PARAMETERS[name].most)
    if name in table().switches:
        return table().switches[name].parse
    if section == "rate" and field:
        return lambda value: _whole(value, 1, 1_000_000)
    if name == "kernel":
        return lambda value: Kernel(_text(value))
    if name == "patch":
        return lambda value: Kernel(table().releases[0], **_patch_set(_text(value)))
    if name in ("machine", "workload"):
        known = PRESETS if name == "machine" else workloads.NAMED
        return lambda value: _one_of(_text(value), known)
    if section == "machine" and field:
        return _field_checker(_machine_hints(description), field)
    if section == "workload" and field:
        return _field_checker(_workload_hints(description), field)
    raise DescriptionError("", f"is nothing that can be swept{nearest(name, known_names(description))}")


def known_names(description: Mapping[str, Any]) -> list[str]:
    """List every factor that a description has."""
    names = ["kernel", "patch", "machine", "workload", "rate.all"]
    names += [f"workload.{field}" for field in _hints_or_none(_workload_hints, description)]
    names += [f"machine.{field}" for field in _hints_or_none(_machine_hints, description)]
    return [*names, *(name for name in PARAMETERS if name not in _FIXED), *table().switches]


def _hints_or_none(of: Any, description: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(of(description))
    except DescriptionError:
        return {}


def _machine_hints(description: Mapping[str, Any]) -> dict[str, Any]:
    if "uniform" in description["machine"]:
        hints = get_type_hints(Machine.uniform, include_extras=True)
        return {key: hint for key, hint in hints.items() if key not in ("return", "name", "source")}
    hints = get_type_hints(Machine, include_extras=True)
    return {key: hints[key] for key in ("smt", "watermark_mb")}


def _workload_hints(description: Mapping[str, Any]) -> dict[str, Any]:
    preset = description["workload"].get("preset")
    if preset not in workloads.NAMED:
        raise DescriptionError("", "only arguments of a workload's preset can be swept; [workload] has none")
    named = workloads.NAMED[preset]
    hints = get_type_hints(named.build, include_extras=True)
    return {key: hints[key] for key in named.parameters}


def _field_checker(hints: Mapping[str, Any], field: str) -> Any:
    if field not in hints:
        raise DescriptionError("", f"no {show(field)} here{nearest(field, hints)}")
    return lambda value: read_field(hints[field], value, "")


def _whole(value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise DescriptionError("", f"expected whole numbers from {least:,} to {most:,}, got {show(value)}")


def _text(value: Any) -> str:
    return str(read_field(str, value, ""))


def _one_of(value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        raise DescriptionError("", f"no preset {show(value)}{nearest(value, known)}")


def _patch_set(value: str) -> dict[str, Any]:
    """Return the switches that patches set; only their names are checked here."""
    for name in _patches(value):
        if name not in table().patches:
            raise DescriptionError("", f"no patch {show(name)}{nearest(name, table().patches)}")
    return {}


def _patches(value: str) -> list[str]:
    return [] if value == NO_PATCH else value.split(PLUS)


def setup(description: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """Return the description in which some factors have these values; those along the run axis are left out."""
    made = {key: dict(part) for key, part in description.items()}
    # names of presets first: arguments go into the table that belongs to them
    for name in sorted(values, key=lambda name: "." in name):
        section, _, field = name.partition(".")
        if along_run(name):
            continue
        if name == "kernel":
            made["kernel"]["name"] = values[name]
        elif name == "patch":
            made["kernel"]["patches"] = [*made["kernel"].get("patches", []), *_patches(str(values[name]))]
        elif name in ("machine", "workload"):
            kept = made[name] if "preset" in made[name] else {}
            made[name] = {**kept, "preset": values[name]}
        elif section == "machine" and "uniform" in made["machine"]:
            made["machine"]["uniform"] = {**made["machine"]["uniform"], field: values[name]}
        elif field:
            made[section][field] = values[name]
        else:
            made["kernel"]["switches"] = {**made["kernel"].get("switches", {}), name: values[name]}
    return made
