"""What a validation says, as text: tables per case, the score, the worst rows; and its stored form."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numalab import _data
from numalab.text import table
from numalab.validate.judge import Row

#: Rows shown of those outside, worst first, where not all are printed.
WORST = 15

Facts = Mapping[str, Any]


def stored() -> dict[str, Any]:
    """Return the results that numalab ships (``data/results/validation.json``)."""
    facts: dict[str, Any] = json.loads(_data.read_text("results", "validation.json"))
    return facts


def to_text(facts: Facts) -> str:
    """Return results as they are stored: JSON, a row of the table a line."""
    head = {name: value for name, value in facts.items() if name != "rows"}
    rows = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in facts["rows"])
    return f'{json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]},\n"rows": [\n{rows}\n]}}\n'


def rows_of(facts: Facts) -> list[Row]:
    """Return the rows of a validation in its stored form."""
    return [Row.from_dict(row) for row in facts["rows"]]


def severity(row: Row) -> float:
    """Say how far outside a row is: the logarithm of the ratio, either way; infinity without a ratio."""
    if row.ratio is None or row.ratio <= 0:
        return math.inf if row.real != row.model else 0.0
    return abs(math.log(row.ratio))


def worst(rows: Iterable[Row]) -> list[Row]:
    """Return the counted rows that are outside, worst first: wrong signs, no ratio, then by ratio."""
    outside = [row for row in rows if row.counted and not _right(row)]
    return sorted(outside, key=lambda row: (row.kind != "effect", -severity(row)))


def _right(row: Row) -> bool:
    return row.inside if row.kind == "quantity" else bool(row.sign)


# ---------------------------------------------------------------- tables


def number(value: float | None) -> str:
    """Print a value with three digits, large ones whole."""
    if value is None:
        return "-"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _range(low: float | None, high: float | None) -> str:
    return "-" if low is None and high is None else f"{number(low)} .. {number(high)}"


def _verdict(row: Row) -> str:
    if not row.counted:
        return f"({row.why})"
    return f"inside{': ' * bool(row.why)}{row.why}" if _right(row) else f"OUTSIDE: {row.why}"


def _effect_verdict(row: Row) -> str:
    if row.sign is None:
        return f"({row.why})"
    return f"sign {'right' if row.sign else 'WRONG'}, size {'inside' if row.inside else 'outside'}"


_HEAD = ("quantity", "real", "its spread", "n", "model", "5-95 %", "ratio", "")


def _cells(row: Row, verdict: Callable[[Row], str]) -> list[str]:
    return [
        row.quantity,
        number(row.real),
        _range(row.real_low, row.real_high),
        str(row.n_real),
        number(row.model),
        _range(row.low, row.high),
        number(row.ratio),
        verdict(row),
    ]


def case_tables(facts: Facts) -> str:
    """Print every row, a table per case; effects after them."""
    parts = []
    rows = rows_of(facts)
    for name in dict.fromkeys(row.trace for row in rows):
        own = [row for row in rows if row.trace == name]
        fitted = ", may be fitted to" if own[0].fitted else ""
        verdict = _effect_verdict if own[0].kind == "effect" else _verdict
        title = f"{name}{fitted}" if own[0].kind == "quantity" else f"{name}, after minus before{fitted}"
        cells = [_cells(row, verdict) for row in own]
        lines = [title, *(f"  model: {note}" for note in facts["notes"].get(own[0].case, ()))]
        parts.append("\n".join([*lines, table(_HEAD, cells, right=range(1, 7))]))
    return "\n\n".join(parts)


def thread_of(row: Row) -> str:
    """Return the thread or family of a row: the first word of its trace's name."""
    return row.trace.split("_")[0]


def score(rows: Iterable[Row]) -> dict[str, int]:
    """Count rows: counted, inside, inside without the real value's uncertainty, and as good as 0 on both sides."""
    counted = [row for row in rows if row.kind == "quantity" and row.counted]
    return {
        "counted": len(counted),
        "inside": sum(row.inside for row in counted),
        "strict": sum(row.strict for row in counted),
        "zero": sum(row.inside and row.why == "both as good as 0" for row in counted),
    }


def signs(rows: Iterable[Row]) -> dict[str, int]:
    """Count effects that exceed their spread, those with the right sign, those of the right size."""
    counted = [row for row in rows if row.kind == "effect" and row.counted]
    right = [row for row in counted if row.sign]
    return {"counted": len(counted), "right": len(right), "size": sum(row.inside for row in right)}


def score_table(rows: Sequence[Row]) -> str:
    """Print the score by thread or family; traces that constants may be fitted to apart."""
    cells = []
    for fitted in (False, True):
        own = [row for row in rows if row.fitted == fitted]
        what = "may be fitted to" if fitted else "only judges"
        threads = dict.fromkeys(map(thread_of, own))
        cells += [_score_cells(name, what, [row for row in own if thread_of(row) == name]) for name in threads]
        if own:
            cells.append(_score_cells("all", what, own))
    head = ("traces", "use", "rows", "inside", "share", "strictly", "both 0", "effects", "sign right", "size inside")
    return table(head, cells, left=2)


def _score_cells(name: str, what: str, rows: Sequence[Row]) -> list[str]:
    found, effects = score(rows), signs(rows)
    share = f"{found['inside'] / found['counted']:.0%}" if found["counted"] else "-"
    numbers = [found["counted"], found["inside"], share, found["strict"], found["zero"]]
    return [name, what, *map(str, [*numbers, effects["counted"], effects["right"], effects["size"]])]


def worst_table(rows: Sequence[Row], limit: int | None = WORST) -> str:
    """Print the rows outside, worst first."""
    found = worst(rows)
    cells = [
        [
            row.trace,
            ("effect on " if row.kind == "effect" else "") + row.quantity,
            number(row.real),
            number(row.model),
            _range(row.low, row.high),
            number(row.ratio),
            row.why,
        ]
        for row in found[:limit]
    ]
    head = ("trace", "quantity", "real", "model", "5-95 %", "ratio", "outside because")
    rest = len(found) - len(cells)
    more = f"\nand {rest} more, which `numalab validate --stored` lists" if rest else ""
    return table(head, cells, right=range(2, 6)) + more if cells else "no row is outside"


def summary(facts: Facts, limit: int | None = None) -> str:
    """Print the score and the rows outside, worst first, of traces that only judge and of the others."""
    rows = rows_of(facts)
    parts = [score_table(rows)]
    for fitted, what in ((False, "on traces that only judge"), (True, "on traces that may be fitted to")):
        own = [row for row in rows if row.fitted == fitted]
        if own:
            parts.append(f"Outside, worst first, {what}:\n{worst_table(own, limit)}")
    if facts["left_out"]:
        reasons = dict.fromkeys(facts["left_out"].values())
        names = {why: [name for name, reason in facts["left_out"].items() if reason == why] for why in reasons}
        parts.append("Not judged:\n" + "\n".join(f"  {', '.join(own)}: {why}" for why, own in names.items()))
    return "\n\n".join(parts)


def text(facts: Facts) -> str:
    """Print everything: the tables of all cases, then the summary."""
    return f"{case_tables(facts)}\n\n{summary(facts)}"


def readme(facts: Facts) -> str:
    """Print what README quotes: the score, and the worst rows of traces that only judge."""
    rows = rows_of(facts)
    judged = [row for row in rows if not row.fitted]
    head = f"Runs of the model per case: {facts['seeds']}."
    return f"{head}\n\n{score_table(rows)}\n\nOutside, worst first:\n\n{worst_table(judged)}"
