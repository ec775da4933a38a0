"""Bars in parts: what a hundred of something come to; and pictures beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from numalab.plots import style
from numalab.plots.picture import Picture, PictureError
from numalab.text import table

#: A part below this share has no room for its number.
_ROOM = 0.045


@dataclass
class Parts(Picture):
    """Wholes and their parts in percent, a bar for each whole.

    Attributes
    ----------
    what : str
        What a whole is.
    bars : dict of str to dict of str to float
        Name of a bar -> part -> amount, not negative; all bars have the same parts. A bar without amounts is empty.
    """

    what: str
    bars: Mapping[str, Mapping[str, float]]

    def __post_init__(self) -> None:
        if not self.bars:
            raise PictureError("expected at least one bar to draw, got none")

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        """Percent of each part, by bar; a bar without amounts has none."""
        totals = {name: sum(parts.values()) for name, parts in self.bars.items()}
        return {
            name: {part: 100 * amount / totals[name] for part, amount in parts.items()} if totals[name] else {}
            for name, parts in self.bars.items()
        }

    def draw(self, axes: Sequence[Axes]) -> None:
        """Draw the bars below each other, each with its name above it; the parts darken in their order."""
        (ax,) = axes
        for y, (name, shares) in enumerate(self.shares.items()):
            left = 0.0
            for i, (part, share) in enumerate(shares.items()):
                colour = style.AREAS[i]
                ax.barh(y, share, 0.5, left, color=colour, edgecolor="black", lw=0.7, label=None if y else part)
                if share >= 100 * _ROOM:
                    look: dict[str, Any] = {"color": "white" if i >= _DARK else "black", "fontsize": style.FONT}
                    ax.text(left + share / 2, y, f"{share:.0f}", ha="center", va="center", **look)
                left += share
            ax.text(0.5, y - 0.3, name, va="bottom", fontsize=style.FONT)
        style.dress(ax, self.what, "%")
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xlim(0, 100)
        ax.set_ylim(len(self.bars) - 0.6, -0.75)
        style.key_below(axes)

    @property
    def text(self) -> str:
        """The shares as a table."""
        parts = list(next(iter(self.bars.values())))
        rows = [
            [name, *(f"{shares[part]:.1f}" if shares else "-" for part in parts)]
            for name, shares in self.shares.items()
        ]
        return f"{self.what} [%]\n" + table(["", *parts], rows)

    @property
    def alt(self) -> str:
        """Every share."""
        words = []
        for name, shares in self.shares.items():
            told = ", ".join(f"{part} {share:.0f} %" for part, share in shares.items())
            words.append(f"{name}: {told or 'nothing yet'}.")
        return f"{self.what}. {' '.join(words)}"


#: From this part on the colours are dark.
_DARK = 2


@dataclass
class Beside(Picture):
    """Pictures beside each other.

    Attributes
    ----------
    pictures : sequence of Picture
    """

    pictures: Sequence[Picture]

    def __post_init__(self) -> None:
        self.panels = sum(one.panels for one in self.pictures)

    def draw(self, axes: Sequence[Axes]) -> None:
        """Let each draw into its own axes."""
        begin = 0
        for one in self.pictures:
            one.draw(axes[begin : begin + one.panels])
            begin += one.panels

    @property
    def text(self) -> str:
        """Their tables, one after the other."""
        return "\n\n".join(one.text for one in self.pictures)

    @property
    def alt(self) -> str:
        """Their sentences, one after the other."""
        return " ".join(one.alt for one in self.pictures)
