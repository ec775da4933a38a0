"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, right: Collection[int] | None = None
) -> str:
    """Lay out a table with a ruled head, columns two blanks apart.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequence of str
    left : int
        This many columns are aligned left, the rest right.
    right : collection of int, optional
        In place of that: the columns aligned right.
    """
    to_right = set(range(left, len(head))) if right is None else set(right)
    width = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        pairs = enumerate(zip(row, width, strict=True))
        cells = [cell.rjust(w) if i in to_right else cell.ljust(w) for i, (cell, w) in pairs]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in width), *map(line, rows)])


def seconds(value: float) -> str:
    """Print seconds with one decimal; infinity as ``never``."""
    return "never" if value == float("inf") else f"{value:.1f}"
