"""``numalab sweep`` and ``sensitivity``: many runs into a store, how far they are, and what matters in them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from numalab import pool, sweeps
from numalab.commands import INTERRUPTED, OK, CommandError, fail
from numalab.commands.output import check_free, note, plural, print_json
from numalab.sweeps.extra import need
from numalab.sweeps.indices import sensitivity as analyse

#: Messages of failed runs that are printed.
_SHOWN = 5
#: How long a scheduler may take to answer.
_PATIENCE_S = 10


def sweep(args: Namespace) -> int:
    """Run or continue the sweep of a file, or say how far a store is and perhaps continue it."""
    target = Path(args.target)
    if args.workers and args.scheduler:
        raise CommandError("--workers and --scheduler: expected one of them; a cluster has its own workers")
    if not target.is_dir():
        return _dry_run(args) if args.dry_run else _run_file(args)
    if args.out or args.dry_run:
        raise CommandError(f"{target}: is a store; -o and --dry-run belong to a description file")
    if not (args.resume or args.retry_failed):
        _print_status(sweeps.open(target), target, args.json)
        return OK
    with _cluster(args) as client:
        return _finish(args, target, lambda: sweeps.continue_(target, **_how(args, client)))


def _run_file(args: Namespace) -> int:
    spec = sweeps.Spec.load(args.target)
    path = Path(args.out) if args.out else Path("runs") / f"{Path(args.target).stem}.zarr"
    if not path.exists():
        check_free(path, force=False)
    with _cluster(args) as client:
        return _finish(args, path, lambda: sweeps.run(spec, path, **_how(args, client)))


def _how(args: Namespace, client: Any) -> dict[str, Any]:
    return {
        "workers": _workers(args),
        "client": client,
        "retry_failed": args.retry_failed,
        "any_revision": args.any_revision,
        "progress": not args.json,
    }


def _workers(args: Namespace) -> int:
    return args.workers or pool.processors()


@contextmanager
def _cluster(args: Namespace) -> Iterator[Any]:
    """Connect to the cluster that was named, if one was."""
    if not args.scheduler:
        yield None
        return
    distributed = need("distributed")
    try:
        client = distributed.Client(args.scheduler, timeout=_PATIENCE_S)
    except (OSError, ValueError) as error:
        raise CommandError(f"--scheduler {args.scheduler}: no scheduler answers there: {error}") from None
    with client:
        yield client


def _finish(args: Namespace, path: Path, do: Any) -> int:
    try:
        ds = do()
    except KeyboardInterrupt:
        if not sweeps.is_store(path):
            raise
        done = sweeps.status(sweeps.open(path))
        told = f"{done.done + done.failed:,} of {_total(done):,} runs are in {path}; the same command continues"
        return fail(f"interrupted; {told}", INTERRUPTED)
    _print_status(ds, path, args.json)
    return OK


def _total(far: sweeps.Progress) -> int:
    return far.done + far.failed + far.to_do


def _print_status(ds: xr.Dataset, path: Path, as_json: bool) -> None:
    far = sweeps.status(ds)
    spec = sweeps.spec_of(ds)
    if as_json:
        facts = {"done": far.done, "failed": far.failed, "to_do": far.to_do, "failures": far.failures}
        print_json({"store": str(path), "title": ds.attrs["title"], "runs": _total(far), **facts, "spec": spec.plain()})
        return
    print(f"{path}: {ds.attrs['title']}")
    print(f"{plural(spec.size, 'point')} x {plural(len(spec.seeds), 'seed')} = {plural(_total(far), 'run')}")
    print(f"done {far.done:,}, failed {far.failed:,}, to do {far.to_do:,}")
    for why, runs in list(far.failures.items())[:_SHOWN]:
        print(f"  {plural(len(runs), 'run')} failed, the first is {runs[0]}: {why}")
    if len(far.failures) > _SHOWN:
        print(f"  and {len(far.failures) - _SHOWN} more messages, in the variable failure")
    if far.to_do:
        note(f"numalab sweep {path} --resume continues")
    elif far.failed:
        note(f"numalab sweep {path} --retry-failed runs those again that failed")


def _dry_run(args: Namespace) -> int:
    spec = sweeps.Spec.load(args.target)
    note("simulating the first batch, which is not kept ...")
    found = sweeps.trial(spec)
    workers = _workers(args)
    failures = [why for why in found.first.failures if why]
    if args.json:
        facts = {key: getattr(found, key) for key in ("points", "runs", "setups", "batches", "size", "first_s")}
        estimate = found.estimate_s(workers)
        print_json({**facts, "workers": workers, "estimate_s": estimate, "failures": failures})
        return OK
    print(f"{plural(found.points, 'point')} x {plural(len(spec.seeds), 'seed')} = {plural(found.runs, 'run')}")
    print(f"{plural(found.setups, 'setup')} of machine, workload and kernel; {_batches(found.batches)}")
    print(f"at most {found.size / 1e6:,.1f} MB of results before they are compressed")
    runs_of_first = plural(len(found.first.places), "run")
    print(f"the first batch of {runs_of_first} took {found.first_s:.1f} s", end="")
    print(f"; if all are like it: {_time(found.estimate_s(workers))} with {plural(workers, 'worker')}")
    for why in dict.fromkeys(failures):
        print(f"in the first batch {plural(failures.count(why), 'run')} failed: {why}")
    return OK


def _batches(count: int) -> str:
    return f"{count:,} {'batch' if count == 1 else 'batches'}"


def _time(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def sensitivity(args: Namespace) -> int:
    """Say which factor of a sweep matters for a quantity."""
    found = analyse(sweeps.open(args.store), args.quantity)
    if args.json:
        print_json([one.plain() for one in found])
        return OK
    print("\n\n".join(one.text for one in found))
    return OK
