"""How figures look: colours that colour-blind readers tell apart, and never colour alone.

The palette is that of Okabe and Ito (2008). Beside it every line has a dash pattern and a marker, every bar a hatch,
so figures survive grey prints; sizes are for 1280 x 800 and for a projector.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from weakref import WeakKeyDictionary

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation
from PIL import Image  # matplotlib needs it too

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip

Dash = Any
#: Sides of a comparison, the first is "before": colour, dashes, marker, hatch.
SIDES: tuple[tuple[str, Dash, str, str], ...] = (
    (VERMILION, (0, (5, 2)), "o", "//"),
    (BLUE, "-", "s", ""),
    (BLACK, (0, (1, 1.5)), "^", ".."),
    (ORANGE, (0, (5, 1.5, 1, 1.5)), "D", "xx"),
)
#: Nodes, or anything else that is numbered: colour, dashes, marker. Lightness falls, so greys differ too.
NUMBERED: tuple[tuple[str, Dash, str], ...] = (
    (ORANGE, "-", "o"),
    (SKY, (0, (5, 2)), "s"),
    (GREEN, (0, (1, 1.2)), "^"),
    (BLUE, (0, (5, 1.5, 1, 1.5)), "D"),
    (PURPLE, "-", "v"),
    (VERMILION, (0, (5, 2)), "P"),
    (YELLOW, (0, (1, 1.2)), "X"),
    (BLACK, (0, (5, 1.5, 1, 1.5)), "*"),
)
#: Colours of areas by number: of rising darkness, so that grey prints keep the order.
AREAS = ("#F7E9A0", ORANGE, "#00735A", "#08306B", "#F2F2F2", PURPLE, "#8C510A", BLACK)
FONT = 11


#: An empty figure: rows and columns of axes, inches of the whole width and of the height of a row.
_Size = tuple[int, int, float, float]
_Empty = tuple[Figure, list[list[Axes]]]
#: Those made ahead, and the size of each that is still in use.
_SPARES: dict[_Size, _Empty] = {}
_SIZES: WeakKeyDictionary[Figure, _Size] = WeakKeyDictionary()
#: Ticks of an axis that are made with an empty figure; matplotlib makes further ones where there are more.
_TICKS = 10


def figure(rows: int, columns: int, *, width: float = 9.6, height: float = 3.6) -> _Empty:
    """Return an empty figure with a grid of axes: that which :func:`spare` made, or a new one.

    Parameters
    ----------
    rows, columns : int
    width, height : float
        Inches, of the whole figure and of a row; 100 dots an inch.

    Notes
    -----
    Margins are fixed: laying them out anew takes as long as all the drawing, and an explorer draws often.
    """
    size = (rows, columns, width, height)
    ready: _Empty | None = _SPARES.pop(size, None)
    made, grid = ready or _empty(size)
    _SIZES[made] = size
    return made, grid


def spare(like: Figure) -> None:
    """Make an empty figure like one that was drawn, so that nobody waits for that: a quarter of a drawing.

    Parameters
    ----------
    like : matplotlib.figure.Figure
        Of :func:`figure`; another one is passed over.
    """
    size = _SIZES.get(like)
    if size is not None and size not in _SPARES:
        _SPARES[size] = _empty(size)


def _empty(size: _Size) -> _Empty:
    rows, columns, width, height = size
    made = Figure(figsize=(width, height * rows), dpi=100)
    tall = height * rows
    grid = made.subplots(rows, columns, squeeze=False)
    made.subplots_adjust(
        left=0.75 / width, right=1 - 0.55 / width, bottom=0.95 / tall, top=1 - 0.42 / tall, wspace=0.3, hspace=0.5
    )
    for ax in grid.flat:
        ax.tick_params(labelsize=FONT - 1)
        ax.locator_params(nbins=6)
        ax.grid(alpha=0.25, lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_ticks(_TICKS)
    return made, [list(row) for row in grid]


def png(made: Figure) -> bytes:
    """Return a figure as PNG with a palette of 96 colours: a quarter of the size, and sooner done.

    Parameters
    ----------
    made : matplotlib.figure.Figure
    """
    canvas = FigureCanvasAgg(made)
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    picture = Image.frombuffer("RGBA", canvas.get_width_height(), pixels).convert("RGB")
    buffer = BytesIO()
    picture.quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG")
    return buffer.getvalue()


def dress(ax: Axes, title: str = "", xlabel: str = "", ylabel: str = "", *, grid: bool = True) -> None:
    """Give axes of :func:`figure` their labels, and take their grid away unless it is wanted.

    Notes
    -----
    Labels stand at fixed distances: having matplotlib find them takes half of the time of a whole drawing.
    """
    ax.set_title(title, fontsize=FONT + 1, loc="left", y=1.02)
    ax.set_xlabel(xlabel, fontsize=FONT)
    ax.set_ylabel(ylabel, fontsize=FONT)
    inches = ax.figure.dpi_scale_trans
    ax.xaxis.set_label_coords(0.5, 0, ax.transAxes + ScaledTranslation(0, -0.3, inches))
    ax.yaxis.set_label_coords(0, 0.5, ax.transAxes + ScaledTranslation(-0.5, 0, inches))
    if not grid:
        ax.grid(visible=False)


def box(colour: Any, label: str) -> Line2D:
    """Return what stands for an area of one colour in a key, and is not drawn itself."""
    return Line2D([], [], ls="none", marker="s", ms=9.5, mfc=colour, mec="black", mew=0.5, label=label)


def key_below(axes: Sequence[Axes], *, drop: float = 0.64) -> None:
    """Put one key for neighbouring axes below them, where it covers no data.

    Parameters
    ----------
    axes : sequence of Axes
        What is drawn in them with a label is in the key.
    drop : float
        How far below the axes, inches: their own labels must have room.

    Notes
    -----
    Simpler than matplotlib's legend, which takes a third of the time of a whole drawing to lay itself out.
    """
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    made = axes[0].get_figure(root=True)
    assert made is not None
    wide, tall = made.get_size_inches()
    first, last = axes[0].get_position(), axes[-1].get_position()
    y = first.y0 - drop / tall
    lengths = [_DASHES if _is_line(handle) else _SAMPLE for handle in found.values()]
    widths = [(length + _GAP + _LETTER * len(label)) / wide for label, length in zip(found, lengths, strict=True)]
    x = (first.x0 + last.x1 - sum(widths)) / 2
    for (label, handle), length, width in zip(found.items(), lengths, widths, strict=True):
        made.add_artist(_sample(handle, (x, y), length / wide, made))
        made.text(x + (length + 0.08) / wide, y, label, va="center", fontsize=FONT - 1)
        x += width


#: Inches: length of a sample in a key, of one in which dashes can be seen, room after a label, width of a letter.
_SAMPLE, _DASHES, _GAP, _LETTER = 0.36, 0.56, 0.34, 0.078


def _is_line(handle: Any) -> bool:
    return isinstance(handle, Line2D) and handle.get_linestyle() != "None"


def _sample(handle: Any, at: tuple[float, float], length: float, made: Figure) -> Artist:
    """Return a short line, a marker or a box that looks as what it stands for, in figure coordinates."""
    x, y = at
    if isinstance(handle, Line2D):
        sample = Line2D([x, x + length / 2, x + length], [y, y, y])
        sample.update_from(handle)
        if not _is_line(handle):
            sample.set_markersize(max(7.0, handle.get_markersize()))
        sample.set_transform(made.transFigure)
        sample.set_clip_on(False)
        sample.set_markevery([1])
        return sample
    box = handle.patches[0] if isinstance(handle, BarContainer) else None
    if box is None:
        # a scatter: its marker
        path = handle.get_paths()[0]
        colour, edge = handle.get_facecolor(), handle.get_edgecolor()
        face = colour[0] if len(colour) else "none"
        return Line2D(
            [x + 0.7 * length], [y], marker=path, ls="none", ms=max(7.0, handle.get_sizes()[0] ** 0.5), mfc=face,
            mec=edge[0] if len(edge) else face, mew=0.8, transform=made.transFigure,
        )  # fmt: skip
    sample_box = Rectangle((x, y - 0.015), length, 0.03)
    sample_box.update_from(box)
    sample_box.set_transform(made.transFigure)
    sample_box.set_clip_on(False)
    return sample_box
