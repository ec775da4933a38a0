"""Writer of comparison tables in LKP's styles: today's, and that of 2013 and 2014.

Digits as the tool prints them: two decimals below 1000, whole numbers (cut off, not rounded) up to 1e8, four
digits above; a standard deviation today only from 2 % of the mean on, in whole percents, cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalab.readers.lkp import TOTAL, Cell, Row, Table

#: Widths of the columns of names, today and in 2014.
_FIRST, _REST = 16, 27
_FIRST_2014, _REST_2014 = 15, 25
#: From here on the tool prints a change with two digits, and a mean with four.
_MUCH, _MANY = 100_000, 100_000_000


def number(value: float) -> str:
    """Print a mean as LKP does."""
    if abs(value) < 1000:
        return f"{value:.2f}"
    return f"{value:.4g}" if abs(value) > _MANY else str(int(value))


def write(table: Table) -> str:
    """Write a table in today's style (``lkp ncompare``).

    Parameters
    ----------
    table : numalab.readers.lkp.Table
        Names of columns that are longer than the head has room for stand whole under "commit:".

    Returns
    -------
    str
        Ends with a line end.
    """
    lines = ["=" * 89]
    if table.setup:
        lines += ["/".join(table.setup) + ":", "  " + "/".join(table.setup.values()), ""]
    lines += ["commit: ", *(f"  {title}" for title in table.titles or table.columns), ""]
    lines += _names(table.columns, _FIRST, _REST)
    more = len(table.columns) - 1
    lines.append("         %stddev" + "     %change         %stddev" * more)
    lines.append("             \\  " + "        |                \\  " * more)
    lines += [_row(row) for row in table.rows]
    return "\n".join(lines) + "\n"


def _names(columns: Sequence[str], first: int, rest: int, blanks: str = " ") -> list[str]:
    head = f"{columns[0][:first]:>{first}}" + "".join(f"{blanks}{name[:rest]:>{rest}}" for name in columns[1:])
    return [head + blanks, "-" * first + (blanks + "-" * rest) * (len(columns) - 1) + blanks]


def _row(row: Row) -> str:
    text = _cell(row.cells[0])
    for change, cell in zip(row.changes, row.cells[1:], strict=True):
        text += f"{_change(change):>10}" + ("  " if row.absolute else "% ") + _cell(cell)
    return f"{text}  {row.stat}"


def _change(change: float) -> str:
    return f"{change:+.1f}" if abs(change) < _MUCH else f"{change:+.2g}"


def _cell(cell: Cell) -> str:
    spread = cell.stddev_percent
    return f"{number(cell.mean):>10}" + (f" ±{int(spread):3d}%" if spread is not None and spread >= 2 else " " * 6)


def write_2014(table: Table) -> str:
    """Write a table in the style of 2013 and 2014: a block for each statistic, with a row for each test.

    Parameters
    ----------
    table : numalab.readers.lkp.Table
        Every row names its test; rows of one statistic stand together, closed by their `TOTAL`. The style knows
        no changes without "%".

    Returns
    -------
    str
        Blocks are parted by a blank line.
    """
    blocks: list[list[str]] = []
    ended = True
    for row in table.rows:
        if ended:
            blocks.append(_names(table.columns, _FIRST_2014, _REST_2014, "  "))
        blocks[-1].append(_row_2014(row))
        ended = row.test == TOTAL
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _row_2014(row: Row) -> str:
    text = _cell_2014(row.cells[0])
    for change, cell in zip(row.changes, row.cells[1:], strict=True):
        text += f" {_change(change):>9}% {_cell_2014(cell)}"
    return f"{text}  {TOTAL + ' ' + row.stat if row.test == TOTAL else row.test}"


def _cell_2014(cell: Cell) -> str:
    whole = abs(cell.mean) < 1000 and cell.mean == int(cell.mean)
    text = str(int(cell.mean)) if whole else number(cell.mean)
    return f"{text:>10}" + (" " * 5 if cell.stddev_percent is None else f" ~{cell.stddev_percent:2.0f}%")
