"""``numalab validate``: the model beside runs of real kernels."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from numalab import runs
from numalab.commands import OK, CommandError
from numalab.commands.output import note, plural, print_json, to_json
from numalab.validate import SEEDS, Validation, report
from numalab.validate import validate as judge_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def validate(args: Namespace) -> int:
    """Judge the model by real runs, or print what was judged."""
    if args.stored or args.decisions:
        _refuse(args)
        return _stored(args.json) if args.stored else _decisions(args.runs, args.json)
    folder = Path(args.out) if args.out else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: expected a folder for the figures, found a file; give -o another name")
    result = judge_by(args.runs, seeds=args.seeds or SEEDS, progress=sys.stderr.isatty())
    facts = result.to_dict()
    if args.json:
        print_json(facts["rows"])
    else:
        print(report.text(facts))
    for name, why in result.left_out if args.json else ():
        note(f"not judged: {name}: {why}")
    if folder is not None:
        _write(folder, result)
    if result.interrupted:
        raise KeyboardInterrupt
    return OK


def _refuse(args: Namespace) -> None:
    if args.seeds is not None or args.out or (args.stored and (args.runs or args.decisions)):
        what = "--stored runs nothing: it goes" if args.stored else "--decisions has no seeds and no figures: it goes"
        rest = "without RUN, --seeds, --decisions and -o" if args.stored else "without --seeds and -o"
        raise CommandError(f"{what} {rest}")


def _stored(as_json: bool) -> int:
    facts = report.stored()
    if as_json:
        print_json(facts["rows"])
        return OK
    print(f"Stored results of `numalab validate`: {facts['seeds']} seeds, numalab {facts['numalab']}")
    print(f"at {facts['revision']}.\n")
    print(report.text(facts))
    return OK


def _decisions(names: list[str], as_json: bool) -> int:
    from numalab import decisions
    from numalab.readers import trace

    packed, replays = set(trace.names()), []
    for name in names or decisions.replayable():
        if name in packed:
            with trace.folder(name) as path:
                replays.append(decisions.replay(path))
        else:
            replays.append(decisions.replay(name))
    if as_json:
        print_json([row for one in replays for row in one.rows()])
    else:
        print(decisions.table(replays))
    return OK


def _write(folder: Path, result: Validation) -> None:
    """Write a figure and the numbers of each case; each file appears whole or not at all."""
    from numalab.plots.validation import plot_case

    folder.mkdir(parents=True, exist_ok=True)
    for outcome in result.outcomes:
        name = outcome.case.name
        runs.write_whole(folder / f"{name}.png", _png(plot_case(outcome)))
        own = [row.to_dict() for row in result.rows if row.case == name]
        runs.write_whole(folder / f"{name}.json", to_json(own).encode())
    runs.write_whole(folder / "validation.json", report.to_text(result.to_dict()).encode())
    note(f"wrote figures and rows of {plural(len(result.outcomes), 'case')}, and validation.json, to {folder}")


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()
