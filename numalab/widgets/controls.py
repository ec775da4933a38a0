"""Controls of an explorer, each with a label, a unit and a range that makes sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as w

_WIDTH = w.Layout(width="min(30em, 98%)")
#: "initial" lets a label take the room it needs instead of cutting it off.
_STYLE = {"description_width": "initial"}


@dataclass(frozen=True)
class Knob:
    """One control.

    Attributes
    ----------
    name : str
        Key of its value.
    value : object
        What it starts with and is reset to.
    build : callable
        Makes the ipywidget.
    """

    name: str
    value: Any
    build: Callable[[], Any]


def slider(
    name: str, label: str, low: float, high: float, value: float, *, step: float = 1, unit: str = "", help: str = ""
) -> Knob:
    """Return a slider over evenly spaced numbers; whole ones if all of its numbers are.

    Parameters
    ----------
    name, label, unit : str
    low, high, value, step : float
    help : str
        Shown when the pointer rests on it.

    Raises
    ------
    ValueError
        A value outside the range.
    """
    if not low <= value <= high:
        raise ValueError(f"slider {name}: expected a value from {low} to {high}, got {value}")
    whole = all(float(number).is_integer() for number in (low, high, value, step))
    kind = w.IntSlider if whole else w.FloatSlider
    cast = int if whole else float

    def build() -> Any:
        return kind(
            value=cast(value), min=cast(low), max=cast(high), step=cast(step), description=_label(label, unit),
            tooltip=help or None, continuous_update=False, style=_STYLE, layout=_WIDTH,
        )  # fmt: skip

    return Knob(name, cast(value), build)


def steps(name: str, label: str, values: Sequence[float], value: float, *, unit: str = "", help: str = "") -> Knob:
    """Return a slider over given numbers, such as powers of two.

    Raises
    ------
    ValueError
        A value that is not among them.
    """
    if value not in values:
        raise ValueError(f"steps {name}: expected one of {', '.join(map(str, values))}, got {value}")

    def build() -> Any:
        return w.SelectionSlider(
            options=[(f"{one:,}", one) for one in values], value=value, description=_label(label, unit),
            tooltip=help or None, continuous_update=False, style=_STYLE, layout=_WIDTH,
        )  # fmt: skip

    return Knob(name, value, build)


def choice(name: str, label: str, options: Mapping[str, Any] | Sequence[Any], value: Any, *, help: str = "") -> Knob:
    """Return a drop-down list.

    Parameters
    ----------
    name, label : str
    options : mapping of str to object, or sequence
        What is shown and the value it stands for; of a sequence both are the same.
    value : object
    help : str

    Raises
    ------
    ValueError
        A value that is not among them.
    """
    pairs = list(options.items()) if isinstance(options, Mapping) else [(str(one), one) for one in options]
    if value not in [one for _, one in pairs]:
        raise ValueError(f"choice {name}: expected one of {', '.join(str(one) for _, one in pairs)}, got {value}")

    def build() -> Any:
        return w.Dropdown(
            options=pairs, value=value, description=label, tooltip=help or None, style=_STYLE, layout=_WIDTH
        )

    return Knob(name, value, build)


def switch(name: str, label: str, value: bool = False, *, help: str = "") -> Knob:
    """Return a check box."""

    def build() -> Any:
        return w.Checkbox(value=value, description=label, tooltip=help or None, indent=False, layout=_WIDTH)

    return Knob(name, value, build)


def _label(label: str, unit: str) -> str:
    return f"{label} [{unit}]" if unit else label
