"""``numalab plot``: a figure of saved runs, or the same as text."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from matplotlib import rc_context

from numalab import runs
from numalab.commands import OK, CommandError
from numalab.commands.output import check_free, check_not_input
from numalab.plots import PLOTS
from numalab.records import nearest


def plot(args: Namespace) -> int:
    """Draw one picture of one or several runs beside each other."""
    if args.kind not in PLOTS:
        raise CommandError(f"no picture {args.kind!r}{nearest(args.kind, PLOTS)}")
    if not args.out and not args.text:
        raise CommandError("expected -o FILE.png (or .svg), or --text")
    out = Path(args.out) if args.out else None
    if out is not None:
        if out.suffix not in (".png", ".svg"):
            raise CommandError(f"{out}: expected a name that ends in .png or .svg")
        for file in args.files:
            check_not_input(out, _path(file))
        check_free(out, args.force)
    sides = {}
    for file in args.files:
        name, _, path = file.rpartition("=")
        sides[name or _title(path)] = runs.open(path)
    if len(sides) < len(args.files):
        raise CommandError("two runs have the same name; give each one, as in before=old.nc after=new.nc")
    picture = PLOTS[args.kind].make(sides)
    if args.text:
        print(f"{picture.text}\n\n{picture.alt}")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        # dates, versions and random names out: the same run gives the same file
        with rc_context({"svg.hashsalt": "numalab"}):
            picture.figure.savefig(out, metadata={"Software": None} if out.suffix == ".png" else {"Date": None})
        print(f"saved {out}: {picture.alt}")
    return OK


def _path(file: str) -> str:
    return file.rpartition("=")[2]


def _title(path: str) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".nc")
