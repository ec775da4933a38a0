"""``numalab record``: what the kernel shows of NUMA balancing, recorded while something runs."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalab.commands import INTERRUPTED, OK, CommandError, fail, note
from numalab.record import Cgroup, Everything, Follow, Outcome, Tree, record

if TYPE_CHECKING:
    from numalab.readers._reading import Reading


def main(args: Namespace) -> int:
    """Record, or make the run of a log that a killed recorder left."""
    out = Path(args.out)
    if not out.name.endswith((".nc", ".nc.gz")):
        raise CommandError(f"{out}: expected a name ending in .nc or .nc.gz; give another -o")
    _check_free(out, args.force)
    if args.recover:
        return _recover(Path(args.recover), out, args)
    log = log_of(out)
    _check_free(log, args.force, f"numalab record --recover {log} -o {out} makes a run of it, --force writes over it")
    follow = _follow(args)
    out.parent.mkdir(parents=True, exist_ok=True)
    if not args.json:
        note(f"recording {follow.what}, every {args.every:g} s; {_until(args)}")
    try:
        outcome = record(
            log, follow, every=args.every, seconds=args.seconds, command=args.command, budget=args.cpu / 100
        )
    except ValueError:
        log.unlink(missing_ok=True)
        raise
    reading = _make_run(log, out)
    if not args.keep_log:
        log.unlink()
    outcome.wait()
    _say(outcome, reading, out, log if args.keep_log else None, args)
    # without a time or a command Ctrl-C is how a recording ends
    if outcome.interrupted and (args.seconds is not None or args.command):
        return fail(f"interrupted; what was recorded until then is in {out}", INTERRUPTED)
    return OK


def log_of(out: Path) -> Path:
    """Name the log beside a run."""
    return out.with_name(out.name.removesuffix(".gz").removesuffix(".nc") + ".record.log")


def _check_free(path: Path, force: bool, how: str = "overwrite it with --force, or give another name with -o") -> None:
    """Make sure that a file can be written, without loading what writes runs.

    Raises
    ------
    CommandError
    """
    if path.exists() and not path.is_file():
        raise CommandError(f"{path}: is no regular file; give another -o")
    if path.exists() and not force:
        raise CommandError(f"{path}: exists; {how}")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: cannot be written, {folder} is no folder you may write to; give another with -o")


def _follow(args: Namespace) -> Follow:
    if sum(map(bool, (args.pid, args.cgroup, args.command))) > 1:
        raise CommandError("expected one of --pid, --cgroup and a command; give the others a recording of their own")
    if not Path("/proc/self/task").is_dir():
        raise CommandError("this system has no /proc as Linux has it; record on Linux")
    if args.command:
        if shutil.which(args.command[0]) is None:
            raise CommandError(f"{args.command[0]}: no such program; check the command after --")
        return Tree.of_command(args.command)
    if args.pid:
        return Tree(args.pid)
    return Cgroup(args.cgroup) if args.cgroup else Everything()


def _until(args: Namespace) -> str:
    ends = [f"for {args.seconds:g} s"] if args.seconds is not None else []
    ends += ["until the command ends"] if args.command else ["until they end"] if args.pid or args.cgroup else []
    return " or ".join([*ends, "until Ctrl-C"])


def _recover(log: Path, out: Path, args: Namespace) -> int:
    if args.pid or args.cgroup or args.command or args.seconds is not None:
        raise CommandError("--recover makes a run of a log that is there; give only it and -o")
    reading = _make_run(log, out)
    if args.json:
        from numalab.commands.output import print_json

        print_json({**reading.to_dict(), "saved": str(out)})
    else:
        for found in reading.understood:
            print(found.what)
        for skip in reading.skipped:
            print(f"line {skip.line}: left out, {skip.reason}")
    note(f"saved {out}; look at it with numalab show {out}")
    return OK


def _make_run(log: Path, out: Path) -> Reading:
    """Read a log, and save the run that it makes."""
    from numalab import runs
    from numalab.readers._recording import read_record

    reading = read_record(log.read_text(encoding="utf-8", errors="replace"), str(log))
    runs.save(reading.dataset(), out)
    return reading


def _say(outcome: Outcome, reading: Reading, out: Path, log: Path | None, args: Namespace) -> None:
    from numalab.commands.output import plural, print_json, wrap

    if args.json:
        print_json(_facts(outcome, out, log))
    else:
        print(f"{plural(outcome.intervals, 'look')} in {outcome.seconds:.1f} s; {outcome.reason}")
        for found in reading.understood[2:-1]:
            print(found.what)
        if outcome.status:
            print(f"the command ended with {_status(outcome.status)}")
        if outcome.seconds >= 1:
            used = f"the recorder used {100 * outcome.cpu_share:.2f} % of one CPU, all its work together"
            limit = f"limit (--cpu) {args.cpu:g} %: statistics and memory maps wait for it, other looks do not"
            print(wrap(f"{used}; {limit}", 0, 6))
        for sentence in outcome.notes:
            print(wrap(f"note: {sentence}", 0, 6))
    note(f"saved {out}; look at it with numalab show {out}")


def _status(status: int) -> str:
    return f"exit code {status}" if status > 0 else f"signal {-status}"


def _facts(outcome: Outcome, out: Path, log: Path | None) -> dict[str, Any]:
    return {
        "saved": str(out),
        "log": str(log) if log else None,
        "seconds": round(outcome.seconds, 3),
        "intervals": outcome.intervals,
        "reason": outcome.reason,
        "interrupted": outcome.interrupted,
        "cpu_percent": round(100 * outcome.cpu_share, 3) if outcome.seconds else None,
        "command_status": outcome.status,
        "notes": outcome.notes,
    }
