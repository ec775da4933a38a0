"""Writer of comparison tables in MMTests' style."""

from __future__ import annotations

from collections.abc import Sequence

from numalab.readers.mmtests import Row, Table

#: Width of a value with its percent, and of one without.
_CHANGED, _PLAIN = 23, 15


def write(table: Table) -> str:
    """Write a table: rows with percents in one block, below it those without.

    Parameters
    ----------
    table : numalab.readers.mmtests.Table

    Returns
    -------
    str
        The names of the kernels stand above each block, in two lines if all of them have a "-", as the tool has it.
        Ends with a line end.
    """
    changed = [row for row in table.rows if row.changes]
    plain = [row for row in table.rows if not row.changes]
    blocks = [_block(table.kernels, rows, width) for rows, width in ((changed, _CHANGED), (plain, _PLAIN)) if rows]
    return "\n\n".join(blocks) + "\n"


def _block(kernels: Sequence[str], rows: Sequence[Row], width: int) -> str:
    statistic = max(len(row.statistic) for row in rows)
    metric = max(len(row.metric) for row in rows)
    labels = [f"{row.statistic:<{statistic}} {row.metric:<{metric}}".strip() for row in rows]
    left = max(map(len, labels))
    heads = _heads(kernels)
    # one blank at least, or names and values would touch
    fields = [max(width, *(len(head[i]) + 1 for head in heads)) for i in range(len(kernels))]
    lines = [" " * left + "".join(map(str.rjust, head, fields)) for head in heads]
    for label, row in zip(labels, rows, strict=True):
        cells = [f" {_cell(row, i)}".rjust(field) for i, field in enumerate(fields)]
        lines.append(f"{label:<{left}}" + "".join(cells))
    return "\n".join(lines)


def _heads(kernels: Sequence[str]) -> list[list[str]]:
    """Cut the names at their first "-", a release candidate's "-rc1" belonging to the first part."""
    parts = []
    for name in kernels:
        release, dash, rest = name.partition("-")
        if dash and rest.startswith("rc"):
            candidate, dash, rest = rest.partition("-")
            release = f"{release}-{candidate}"
        if not dash or not rest:
            return [list(kernels)]
        parts.append((release, rest))
    return [[first for first, _ in parts], [rest for _, rest in parts]]


def _cell(row: Row, i: int) -> str:
    if not row.changes:
        return f"{row.values[i]:.2f}"
    left, right = "**" if row.significant[i] else "()"
    return f"{row.values[i]:.2f} {left}{row.changes[i]:7.2f}%{right}"
