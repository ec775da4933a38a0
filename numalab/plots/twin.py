"""A recording and its twin over time: the recorded line, the twin's band, one axes for each quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from numalab.plots import style
from numalab.plots.curves import Curves, Line, Panel
from numalab.plots.picture import Picture, over_seeds, stacked
from numalab.quantities import Series
from numalab.twin import Fit, WhatIf

#: Quantities that are drawn when none are named, and what their axes say; counts are drawn in thousands.
_SHOWN = {
    "numa_pte_updates": ("PTE updates", "1000 pages"),
    "numa_hint_faults": ("hint faults", "1000"),
    "local_share": ("local share", ""),
    "numa_pages_migrated": ("migrated", "1000 pages"),
}
_SHARES = ("local_share", "main_node_share")
#: Colour, dashes and marker of what was recorded, of the twin and of the what-if.
_RECORDED, _TWIN, _OTHER = (style.SIDES[position][:3] for position in (2, 1, 0))


class Courses(Picture):
    """Quantities over time below each other, each on a scale of its own."""

    def __init__(self, parts: Sequence[Curves]) -> None:
        self.parts = list(parts)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the first quantity."""
        self.parts[0].draw(axes)

    @cached_property
    def figure(self) -> Figure:
        """All quantities."""
        return stacked(*self.parts, height=2.7)

    @property
    def text(self) -> str:
        """Values of each quantity at times spread over the run."""
        return "\n\n".join(part.text for part in self.parts)

    @property
    def alt(self) -> str:
        """A sentence for each quantity."""
        return " ".join(part.alt for part in self.parts)


def twin(fit: Fit, what_if: WhatIf | None = None, *, quantities: Sequence[str] | None = None) -> Courses:
    """Show a recording beside its twin.

    Parameters
    ----------
    fit : Fit
        What `numalab.twin.Twin.run` returned.
    what_if : WhatIf, optional
        Drawn beside them.
    quantities : sequence of str, optional
        Those of `Fit.series`; default: counters of the machine, local share, and pages by node.
    """
    names = list(quantities) if quantities else [name for name in fit.series if _is_usual(name)]
    other = what_if.series if what_if is not None else {}
    label = f"what if {what_if.spec}" if what_if is not None else ""
    return Courses([_part(fit, name, other, label) for name in names])


def _is_usual(name: str) -> bool:
    return name in _SHOWN or name.startswith("pages_node_")


def _part(fit: Fit, name: str, other: Mapping[str, Series], label: str) -> Curves:
    what, unit = _SHOWN.get(name, (name.replace("pages_node_", "on node "), "1000 pages"))
    size = 1.0 if name in _SHARES else 1000.0
    recorded, twin = fit.series[name]
    lines = [_line("recorded", recorded, size, _RECORDED), _line("twin", twin, size, _TWIN)]
    if name in other:
        lines.append(_line(label, other[name], size, _OTHER))
    ends = ", ".join(f"{line.label} {line.known[-1]:,.2f}" for line in lines if len(line.known))
    words = f"{what}{f' [{unit}]' if unit else ''} at the end: {ends}."
    return Curves(what, unit, [Panel("", lines, words)], fit.until, form=",.2f", band=", twin: median over seeds")


def _line(label: str, series: Series, size: float, look: tuple[str, Any, str]) -> Line:
    times, values = series[0], series[1] / size
    if len(values) == 1:
        return Line(label, times, values[0], None, None, look)
    low, middle, high = over_seeds(values)
    return Line(label, times, middle, low, high, look)
