"""``numalab twin``: the machine and processes of a recording in the model, and what would be if."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalab import runs
from numalab.commands import OK, CommandError, note
from numalab.commands.output import check_free, check_not_input, plural, print_json, wrap
from numalab.twin import SEEDS, Fit, Twin, WhatIf

if TYPE_CHECKING:
    import xarray as xr

#: With -o: the twin's runs, or a figure.
_DATASETS, _FIGURES = (".nc", ".nc.gz"), (".png", ".svg")


def main(args: Namespace) -> int:
    """Make the twin, run it beside the recording, answer the what-ifs."""
    out = Path(args.out) if args.out else None
    if out is not None:
        _check_out(out, args)
    ds = _load(args.file)
    name = Path(args.file).resolve().name
    for end in (".gz", ".nc", ".log", ".record"):
        name = name.removesuffix(end)
    # what cannot be is said before the model runs
    unfitted = Twin.of(ds, name, pages_per_s=args.rate or 1.0)
    for spec in args.what_if:
        unfitted.changed(spec)
    tell = note if sys.stderr.isatty() and not args.json else lambda _: None
    twin = unfitted if args.rate else Twin.of(ds, name, tell=tell)
    seeds = args.seeds or SEEDS
    fit = twin.run(seeds)
    answers = [twin.what_if(spec, seeds) for spec in args.what_if]
    if args.json:
        print_json(_facts(twin, fit, answers, seeds))
    else:
        print("\n\n".join([_head(twin), _assumed(twin), _fit(fit, seeds), *(_answer(one) for one in answers)]))
    if out is not None:
        _save(out, fit, answers)
    return OK


def _check_out(out: Path, args: Namespace) -> None:
    if not out.name.endswith((*_DATASETS, *_FIGURES)):
        raise CommandError(f"{out}: expected a name ending in .nc (the twin's runs) or in .png or .svg (a figure)")
    check_not_input(out, args.file)
    check_free(out, args.force)


def _load(file: str) -> xr.Dataset:
    """Read a dataset, the folder of a run, or a text that makes a run, such as the recorder's log."""
    from numalab.readers import mixed

    path = Path(file)
    packed = path / "run.nc.gz"
    if packed.is_file() or file.endswith(_DATASETS):
        return runs.open(packed if packed.is_file() else path)
    return mixed.read(path).dataset()


def _head(twin: Twin) -> str:
    model = twin.model
    groups = model.workload.processes
    tasks = sum(group.count * group.threads for group in groups)
    what = (
        f"Twin of {twin.name}: {model.seconds:.1f} s of {plural(len(groups), 'process')} with {plural(tasks, 'task')} "
        f"on {plural(len(model.machine.nodes), 'node')} and {model.machine.cpus} CPUs, kernel {twin.release} taken as "
        f"{model.kernel.label}"
    )
    settings = ", ".join(f"{name}={value}" for name, value in model.parameters.items())
    return wrap(what + (f", with {settings}" if settings else ""), 0, 2)


def _assumed(twin: Twin) -> str:
    return "assumed:\n" + "\n".join(wrap(one, 2, 4) for one in twin.assumed)


def _fit(fit: Fit, seeds: int) -> str:
    lines = [f"recorded, and the twin with {plural(seeds, 'seed')}:", fit.text]
    if fit.warning:
        lines += ["", wrap(f"WARNING: {fit.warning}", 0, 2)]
    else:
        lines += ["", "the twin fits the recording"]
    return "\n".join(lines)


def _answer(one: WhatIf) -> str:
    warning = f"\n\n{wrap(f'WARNING: {one.warning}', 0, 2)}" if one.warning else ""
    return f"what if {one.spec}:\n{one.text}{warning}"


def _facts(twin: Twin, fit: Fit, answers: list[WhatIf], seeds: int) -> dict[str, Any]:
    return {
        **twin.to_dict(),
        "seeds": seeds,
        "rows": [row.to_dict() for row in fit.rows],
        "warning": fit.warning,
        "what_if": [one.to_dict() for one in answers],
    }


def _save(out: Path, fit: Fit, answers: list[WhatIf]) -> None:
    if out.name.endswith(_DATASETS):
        runs.save(fit.ds, out)
        note(f"saved {out}; look at it with numalab show {out}")
        return
    from numalab.plots.twin import twin

    picture = twin(fit, answers[0] if answers else None)
    drawn = io.BytesIO()
    picture.figure.savefig(drawn, format=out.suffix[1:])
    runs.write_whole(out, drawn.getvalue())
    note(f"saved {out}: {picture.alt}")
