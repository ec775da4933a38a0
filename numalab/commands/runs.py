"""``numalab run``, ``show`` and ``rerun``: make a run, look at it, make it again."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from numalab import __version__, describe, runs
from numalab.commands import DIFFERENT, INTERRUPTED, OK, CommandError, fail, summary
from numalab.commands.output import check_free, check_not_input, note, number, print_json
from numalab.machine import Machine
from numalab.model.params import DEFAULTS
from numalab.records import DescriptionError
from numalab.schema import TABLES, is_time
from numalab.simulation import repeat, simulate
from numalab.workload import Workload


def run(args: Namespace) -> int:
    """Simulate a description file, summarise and save."""
    target = Path(args.out) if args.out else Path("runs") / f"{Path(args.file).stem}.nc"
    check_not_input(target, args.file)
    check_free(target, args.force)
    described = describe.load(args.file)
    ds = simulate(
        described.machine,
        described.workload,
        described.kernel,
        seconds=described.run.seconds,
        seeds=described.run.seed_list,
        progress=sys.stderr.isatty(),
        step_us=_step_us(described.run, args.file),
    )
    runs.save(ds, target)
    facts = summary.summarise(ds)
    _print_summary(facts, target, args.json)
    if facts["interrupted"]:
        return fail(f"interrupted; what all runs had reached is in {target}", INTERRUPTED)
    note(f"saved {target}; numalab show {target} prints this again, numalab rerun {target} repeats it")
    return OK


def _step_us(wanted: describe.Run, file: str) -> int:
    # Given even if it is the default, so that the dataset says it.
    if wanted.step_ms is None:
        return DEFAULTS["step_us"]
    step_us = round(wanted.step_ms * 1000)
    if step_us < 1:
        raise DescriptionError("run.step_ms", f"expected at least 0.001, got {wanted.step_ms:g}", file)
    return step_us


def show(args: Namespace) -> int:
    """Summarise a saved run."""
    ds = runs.open(args.file)
    for part in summary.parts(runs.provenance(ds)):
        _check_says(part, _SHOWN, args.file)
    _print_summary(summary.summarise(ds), Path(args.file), args.json)
    return OK


def _print_summary(facts: summary.Facts, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(path), **facts})
    else:
        print(summary.text(facts))


#: What a simulation says about itself so that it can be repeated.
_NEEDED = (
    "machine",
    "workload",
    "kernel",
    "seconds",
    "seeds",
    "every",
    "stop_after_converged_s",
    "rates",
    "parameters",
    "defaults",
)
#: What the summary of a simulation cannot do without.
_SHOWN = ("machine", "workload", "kernel", "seconds", "seeds")


def _check_says(how: Mapping[str, Any], keys: Sequence[str], file: str) -> None:
    """Make sure that the provenance of a simulation has some keys, and what machine, workload and kernel consist of.

    Raises
    ------
    CommandError, DescriptionError
        Names the file and the keys.
    """
    missing = [key for key in keys if key not in how]
    kernel = how.get("kernel", {})
    if isinstance(kernel, Mapping):
        missing += [f"kernel.{key}" for key in ("name", "set", "switches") if "kernel" in how and key not in kernel]
    else:
        missing.append("kernel.name")
    if missing:
        raise CommandError(f"{file}: does not say its {', '.join(missing)}; another version of numalab made it")
    made: tuple[tuple[str, Callable[[Mapping[str, Any]], object]], ...] = (
        ("machine", Machine.from_dict),
        ("workload", Workload.from_dict),
    )
    for key, make in made:
        try:
            make(how[key])
        except DescriptionError as error:
            within = error.within(key)
            raise DescriptionError(within.key, within.problem, file) from None


def rerun(args: Namespace) -> int:
    """Repeat a saved simulation and compare."""
    stored = runs.open(args.file)
    how = runs.provenance(stored)
    if stored.attrs["source"] != "simulated" or "workload" not in how:
        kind = "several simulations joined together" if "concatenated" in how else "not a simulation"
        raise CommandError(f"{args.file}: is {kind}; only the dataset of one simulation can be repeated")
    _check_says(how, _NEEDED, args.file)
    facts = summary.summarise(stored)
    again = repeat(stored, progress=sys.stderr.isatty())
    notes = _notes(facts)
    if facts["interrupted"]:
        stored, again = _reached(stored), _cut(again, stored)
    lines = runs.differences(stored, again)
    if args.json:
        print_json({"file": args.file, "equal": not lines, "differences": lines, "notes": notes})
        return DIFFERENT if lines else OK
    for remark in notes:
        print(f"note: {remark}")
    if not lines:
        print(f"{args.file}: equal, all {len(stored.variables)} variables")
        return OK
    print(f"{args.file}: {len(lines)} of {len(stored.variables)} variables differ")
    for line in lines:
        print(f"  {line}")
    return DIFFERENT


def _notes(facts: summary.Facts) -> list[str]:
    """Say what may make a difference."""
    notes = []
    made, now = (facts["numalab"], facts["revision"]), (__version__, runs.revision())
    if made != now:
        notes.append(f"made by numalab {_version(*made)}, repeated by {_version(*now)}")
    for setup in facts["setups"]:
        for key, (then, here) in setup["kernel"]["table_changed"].items():
            notes.append(f"the table of kernels has changed: {key} was {then}, is {here}")
    if facts["interrupted"]:
        reached = number(facts["recorded_s"])
        notes.append(f"the run was interrupted: compared up to {reached} s, without its table of events")
    return notes


def _version(version: str | None, revision: str | None) -> str:
    return f"{version or 'unknown'} ({revision[:12] + '+' * revision.endswith('+') if revision else 'no revision'})"


def _reached(ds: xr.Dataset) -> xr.Dataset:
    """Leave out the table of events: its runs stopped at different times."""
    return ds.drop_vars([name for name, a in ds.data_vars.items() if "event" in a.dims or name == TABLES["event"]])


def _cut(again: xr.Dataset, stored: xr.Dataset) -> xr.Dataset:
    sizes = {dim: stored.sizes[dim] for dim in map(str, stored.dims) if dim == "run" or is_time(dim)}
    return _reached(again).isel({dim: slice(size) for dim, size in sizes.items()})
