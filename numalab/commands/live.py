"""``numalab live``: the mails' programs on this machine."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np

from numalab import live
from numalab.commands import OK, CommandError
from numalab.commands.output import check_free, note, number, plural, print_json, wrap
from numalab.live import Live


def shared_cow(args: Namespace) -> int:
    """Run the shared_cow thread's program, print what it and the counters say, and save if asked."""
    target = Path(args.out) if args.out else None
    if target is not None:
        check_free(target, args.force)
    folder = Path(args.folder)
    if not folder.is_dir():
        raise CommandError(f"{folder}: expected a folder for the array's file; give another with --folder")
    answer = live.shared_cow(args.processes, args.seconds, ints=args.ints, folder=folder)
    if target is not None:
        from numalab import runs

        runs.save(answer.dataset(), target)
    if args.json:
        print_json({**_facts(answer), "saved": str(target) if target else None})
    else:
        _print(answer)
    if target is not None:
        note(f"saved {target}; look at it with numalab show {target}")
    if answer.interrupted:
        raise KeyboardInterrupt
    return OK


def _facts(answer: Live) -> dict[str, object]:
    looks = int((np.array(answer.states) >= 0).sum())
    return {
        "ints": answer.ints,
        "asked_s": answer.asked_s,
        "took_s": round(answer.seconds, 3),
        "interrupted": answer.interrupted,
        "passes": answer.passes.tolist(),
        "total": int(answer.passes.sum()),
        "waiting_share": answer.waiting if looks else None,
        "counters": answer.grown,
        "notes": answer.notes,
    }


def _print(answer: Live) -> None:
    passes = answer.passes
    took = f"{answer.asked_s:g} s each, {answer.seconds:.1f} s in all"
    if answer.interrupted:
        took = f"interrupted after {answer.seconds:.1f} of {answer.asked_s:g} s"
    print(f"{plural(len(passes), 'reader')} of {answer.ints:,} ints, {took}")
    print(f"passes: {int(passes.sum()):,} in all")
    if passes.min():
        middle, ratio = np.median(passes), passes.max() / passes.min()
        print(f"a reader: {passes.min():,} to {passes.max():,}, median {number(middle)}; fastest / slowest {ratio:.2f}")
    else:
        print(f"a reader: {passes.min():,} to {passes.max():,}")
    looks = int((np.array(answer.states) >= 0).sum())
    share = f"{100 * answer.waiting:.1f} %" if looks else "not known, too short"
    print(f"waiting for a page, disk or lock (state D): {share} of {plural(looks, 'look')} at readers")
    print("/proc/vmstat, of the whole machine:")
    for name, grown in answer.grown.items():
        print(f"  {name:<24} {grown:>+12,}")
    if not any(name.startswith("numa_") for name in answer.grown):
        print("  no counters of NUMA balancing")
    for sentence in answer.notes:
        print(wrap(f"note: {sentence}", 0, 6))
