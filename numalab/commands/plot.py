"""``numalab plot``: a figure of saved runs, or the same as text."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from matplotlib import rc_context

from numalab import runs, sweeps
from numalab.commands import OK, CommandError
from numalab.commands.output import check_free, check_not_input
from numalab.plots import PLOTS, Picture
from numalab.plots.sweeps import DEFAULT, SWEEP_PLOTS
from numalab.records import nearest


def plot(args: Namespace) -> int:
    """Draw one picture of one or several runs beside each other, or of a sweep."""
    if args.kind not in PLOTS and args.kind not in SWEEP_PLOTS:
        raise CommandError(f"no picture {args.kind!r}{nearest(args.kind, [*PLOTS, *SWEEP_PLOTS])}")
    if not args.out and not args.text:
        raise CommandError("expected -o FILE.png (or .svg), or --text")
    out = Path(args.out) if args.out else None
    if out is not None:
        if out.suffix not in (".png", ".svg"):
            raise CommandError(f"{out}: expected a name that ends in .png or .svg")
        for file in args.files:
            check_not_input(out, _path(file))
        check_free(out, args.force)
    picture = _of_sweep(args) if args.kind in SWEEP_PLOTS else _of_runs(args)
    if args.text:
        print(f"{picture.text}\n\n{picture.alt}")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        # dates, versions and random names out: the same run gives the same file
        with rc_context({"svg.hashsalt": "numalab"}):
            picture.figure.savefig(out, metadata={"Software": None} if out.suffix == ".png" else {"Date": None})
        print(f"saved {out}: {picture.alt}")
    return OK


def _of_runs(args: Namespace) -> Picture:
    for option in ("of", "x", "by"):
        if getattr(args, option) is not None:
            raise CommandError(f"--{option} belongs to the pictures of sweeps: {', '.join(SWEEP_PLOTS)}")
    sides = {}
    for file in args.files:
        name, _, path = file.rpartition("=")
        if sweeps.is_store(path):
            raise CommandError(f"{path}: is a sweep; its pictures are {', '.join(SWEEP_PLOTS)}")
        sides[name or _title(path)] = runs.open(path)
    if len(sides) < len(args.files):
        raise CommandError("two runs have the same name; give each one, as in before=old.nc after=new.nc")
    picture: Picture = PLOTS[args.kind].make(sides)
    return picture


def _of_sweep(args: Namespace) -> Picture:
    if len(args.files) > 1:
        raise CommandError(f"{args.kind} draws one sweep, got {len(args.files)} names")
    return SWEEP_PLOTS[args.kind](sweeps.open(args.files[0]), args.of or DEFAULT, x=args.x, by=args.by)


def _path(file: str) -> str:
    return file.rpartition("=")[2]


def _title(path: str) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".nc")
