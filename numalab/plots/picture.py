"""A picture: one set of numbers as a figure, as text, and as a sentence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from numalab.plots import style

Floats = NDArray[np.float64]
#: Runs to draw: name of a side -> dataset. One dataset may also stand for itself.
Sides = xr.Dataset | Mapping[str, xr.Dataset]
#: Quantiles over seeds that bands show.
BAND = (0.05, 0.95)
#: Columns of what is drawn as an image over time.
_COLUMNS = 480


class PictureError(ValueError):
    """A dataset lacks what a picture needs; the message says how to get it."""


class Picture(ABC):
    """Numbers that can be drawn, printed and told.

    In a notebook it shows as its figure with the sentence below, which is also the picture's text alternative.

    Attributes
    ----------
    panels : int
        Axes it needs, beside each other.
    figure : matplotlib.figure.Figure
    text : str
        A table for terminals and screen readers.
    alt : str
        A sentence computed from the data.
    """

    panels: int = 1

    @abstractmethod
    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw into as many axes as there are panels."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The numbers as plain text."""

    @property
    @abstractmethod
    def alt(self) -> str:
        """What the figure shows, in words."""

    @cached_property
    def figure(self) -> Figure:
        """The figure."""
        return stacked(self)

    def _ipython_display_(self) -> None:
        # IPython is there whenever it asks to be shown in it
        from IPython.display import display

        picture = {"image/png": style.png(self.figure), "text/plain": self.alt}
        display(picture, raw=True, metadata={"image/png": {"alt": self.alt}})  # type: ignore[no-untyped-call]
        caption = {"text/html": f"<p style='max-width:60em'>{escape(self.alt)}</p>", "text/plain": self.alt}
        display(caption, raw=True)  # type: ignore[no-untyped-call]


def stacked(*pictures: Picture, height: float = 3.6) -> Figure:
    """Draw pictures below each other in one figure.

    Parameters
    ----------
    *pictures : Picture
        With the same number of panels.
    height : float
        Of each, inches.
    """
    made, grid = style.figure(len(pictures), max(one.panels for one in pictures), height=height)
    for one, axes in zip(pictures, grid, strict=True):
        one.draw(axes[: one.panels])
        for ax in axes[one.panels :]:
            ax.set_axis_off()
    return made


def sides_of(given: Sides) -> dict[str, xr.Dataset]:
    """Return the sides by name; one dataset is named by its kernel.

    Raises
    ------
    PictureError
        Nothing to draw.
    """
    if isinstance(given, xr.Dataset):
        kernels = list(dict.fromkeys(given.kernel.values.tolist())) if "kernel" in given.coords else []
        return {(", ".join(map(str, kernels)) or "run"): given}
    if not given:
        raise PictureError("expected at least one run to draw, got none")
    return dict(given)


def need(ds: xr.Dataset, *names: str) -> None:
    """Check that variables were recorded.

    Raises
    ------
    PictureError
        Naming the one that is missing, and how to record it.
    """
    for name in names:
        if name not in ds.variables:
            raise PictureError(
                f"{name}: not in this run, but the picture needs it; simulated runs record it with "
                f"every={{{name!r}: seconds}}"
            )


class Side(NamedTuple):
    """A run to draw: its name, the run, and the time axis of what is drawn."""

    name: str
    ds: xr.Dataset
    dim: str


def recorded(given: Sides, *names: str) -> list[Side]:
    """Return the sides with the time axis of the first of some variables, all of which must be there.

    Raises
    ------
    PictureError
        Naming the variable that is missing, and how to record it.
    """
    found = []
    for name, ds in sides_of(given).items():
        need(ds, *names)
        found.append(Side(name, ds, axis_of(ds, names[0])))
    return found


def end_of(sides: Sequence[Side], seconds: float | None) -> float:
    """Return where a time axis ends: what was asked for, or the last sample of any side."""
    if seconds is not None:
        return seconds
    return max(float(ds[dim].values[-1]) for _, ds, dim in sides)


def held(times: Floats, values: NDArray[Any], end: float) -> Floats:
    """Return the rows of an image over time, in which a sample holds until the next one; NaN beyond the record.

    Parameters
    ----------
    times : (time,) s
    values : (time, row)
    end : float
        Where the time axis ends, s.

    Returns
    -------
    (row, column)
    """
    columns = np.linspace(0, end, _COLUMNS, endpoint=False) + end / _COLUMNS / 2
    sample = np.maximum(np.searchsorted(times, columns, side="right") - 1, 0)
    image = values[sample].T.astype(float)
    image[:, columns > max(times[-1], end / 200)] = np.nan
    return image


def axis_of(ds: xr.Dataset, name: str) -> str:
    """Name the time axis of a variable."""
    return next(str(dim) for dim in ds[name].dims if str(dim).startswith("time"))


def over_seeds(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the low end of the band, the median and the high end over the first axis; NaN where nothing is known."""
    known = ~np.isnan(values).all(axis=0)
    out = np.full((3, *values.shape[1:]), np.nan)
    if known.any():
        out[:, known] = np.nanquantile(values[:, known], (BAND[0], 0.5, BAND[1]), axis=0)
    return out[0], out[1], out[2]


def listed(words: Sequence[Any]) -> str:
    """Return "a, b and c"."""
    some = [str(word) for word in words]
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}"


def runs_words(ds: xr.Dataset) -> str:
    """Say over how many runs numbers are medians; nothing for one run."""
    return f" (median of {ds.sizes['run']} runs)" if ds.sizes["run"] > 1 else ""
