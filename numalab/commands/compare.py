"""``numalab compare``: sets of runs as a table of LKP or MMTests, and what of it is more than noise."""

from __future__ import annotations

from argparse import Namespace

from numalab.commands import OK
from numalab.commands.output import note, number, print_json, wrap
from numalab.compare import SINGLE_RUN, UNKNOWN_RUNS, Against, Comparison, Row, compare
from numalab.inputs import load
from numalab.sides import Values
from numalab.tables import STYLES
from numalab.text import table


def main(args: Namespace) -> int:
    """Compare the sides given, print the table and below it the tests."""
    patterns = [pattern for pattern in (args.rows or "").split(",") if pattern]
    found = compare(load(args.sides, args.runs), patterns, effect=args.effect)
    if args.json:
        print_json({"style": args.style, "table": STYLES[args.style](found), **found.to_dict()})
        return OK
    shown = found if args.all or patterns else found.main_rows()
    print(STYLES[args.style](shown), end="")
    cut = f"not shown: {len(found.rows) - len(shown.rows)} of {len(found.rows)} quantities; --all shows them"
    if not args.table:
        print()
        print(_text(shown, found, args.style))
    if len(shown.rows) < len(found.rows):
        note(cut) if args.table else print(cut)
    return OK


def _text(found: Comparison, whole: Comparison, style: str) -> str:
    """Print the rows to show; what was tested is counted in all rows, shown or not."""
    several = ["test"] if len(found.tests) > 1 else []
    head = ["quantity", "side", "runs", "change", "which is"]
    head += ["95 % of the change", "p", "runs for it"] if found.noise_known else []
    rows = [
        [*([row.test] if several else []), *_cells(row, name, values, against)[: len(head)]]
        for row in found.rows
        for name, values, against in zip(found.names[1:], row.values[1:], row.against, strict=True)
        if values is not None and against is not None
    ]
    lines = [table([*several, *head], rows, left=2 + len(several)), ""]
    if style == "mmtests":
        lines.append(wrap("signs: here of the change itself; in the table above, as MMTests prints it, + is better."))
    if not found.noise_known:
        lines.append(wrap(_why_unknown(found)))
    tested = [one for row in whole.rows for one in row.against if one and one.p is not None]
    if tested:
        marked = sum(bool(one.significant) for one in tested)
        lines.append(
            wrap(
                f"*: {marked} of {len(tested)} changes would be rare as noise (p < {found.alpha:g}; Welch's t-test, "
                f"two-sided; for converged%: Fisher's exact test). Were all of them noise, some "
                f"{found.alpha * len(tested):.1g} would be marked too."
            )
        )
    if found.noise_known:
        lines.append(
            wrap(
                f"runs for it: on each side, to see a change of {found.effect:g} % (of a share: {found.effect:g} "
                f"points) with a chance of {100 * found.power:g} % and the spread seen here."
            )
        )
    lines += [wrap(f"better: {way}") for way in [_better(found)] if way]
    notes = list(found.notes)
    if any(one and one.why == UNKNOWN_RUNS for row in found.rows for one in row.against):
        notes.append("tables do not say over how many runs their means are; give --runs N to have them tested")
    lines += [wrap(f"note: {note}", 0, 6) for note in notes]
    return "\n".join(lines)


def _why_unknown(found: Comparison) -> str:
    """Say why no change is marked."""
    why = sorted({one.why for row in found.rows for one in row.against if one and one.why})
    how = " Give each side several runs: a dataset with several seeds, or a pattern such as NAME='folder/*_r*'."
    said = f"noise is unknown ({', '.join(why)}): no change here can be told from it."
    return said + (how if SINGLE_RUN in why else "")


def _cells(row: Row, name: str, values: Values, against: Against) -> list[str]:
    base = row.values[0]
    assert base is not None
    return [
        row.quantity.name,
        name,
        f"{_runs(base)}, {_runs(values)}",
        _change(row, against) + ("*" if against.significant else " "),
        _which_is(row, against),
        _interval(row, base, against),
        against.why if against.p is None else f"{against.p:.3f}" if against.p >= 0.0005 else "<0.001",
        "" if against.runs_needed is None else f"{against.runs_needed:,}",
    ]


def _runs(values: Values) -> str:
    if values.n is None:
        return "?"
    return f"{values.n}/{values.n + values.without}" if values.without else str(values.n)


def _change(row: Row, against: Against) -> str:
    if row.quantity.absolute:
        return f"{against.difference:+.1f} points"
    return (
        f"{against.change_percent:+.1f} %"
        if against.change_percent is not None
        else f"from 0 to {number(against.difference)}"
    )


def _which_is(row: Row, against: Against) -> str:
    if not row.quantity.better or not against.difference:
        return ""
    return "better" if (against.difference > 0) == (row.quantity.better == "higher") else "worse"


def _interval(row: Row, base: Values, against: Against) -> str:
    if against.low is None or against.high is None:
        return ""
    if row.quantity.absolute:
        return f"{against.low:+.1f} to {against.high:+.1f}"
    if not base.mean:
        return f"{number(against.low)} to {number(against.high)}"
    return " to ".join(f"{100 * end / base.mean:+.1f}" for end in (against.low, against.high)) + " %"


def _better(found: Comparison) -> str:
    """Say which way MMTests' percents were counted."""
    names: dict[str, list[str]] = {"lower": [], "higher": []}
    for row in found.rows:
        if row.quantity.better:
            names[row.quantity.better].append(row.quantity.name)
    return "; ".join(f"{way} {', '.join(dict.fromkeys(every))}" for way, every in names.items() if every)
