"""``numalab diagnose``: the known illnesses in a machine's numbers, with their evidence and what to try."""

from __future__ import annotations

from argparse import Namespace

from numalab.commands import OK, CommandError
from numalab.commands.output import number, print_json, wrap
from numalab.diagnose import Cost, Diagnosis, Finding, diagnose, load
from numalab.diagnose.result import evidence_line


def main(args: Namespace) -> int:
    """Read the inputs, and print what is wrong with the machine they are from."""
    if args.files.count("-") > 1:
        raise CommandError("standard input can be read once only; give - once")
    found = diagnose(*(load(file) for file in args.files))
    if args.json:
        print_json(found.to_dict())
    else:
        print(_text(found))
    return OK


def _text(found: Diagnosis) -> str:
    blocks = [_finding(one) for one in found.findings]
    blocks += [_costs(found.costs)] if found.costs else []
    blocks += ["looked at:\n" + "\n".join(wrap(one, 2, 4) for one in found.looked_at)] if found.looked_at else []
    blocks += ["remarks:\n" + "\n".join(wrap(one, 2, 4) for one in found.remarks)] if found.remarks else []
    return "\n\n".join(blocks)


def _finding(one: Finding) -> str:
    side = f", {one.side}" if one.side else ""
    lines = [f"{one.id}{side} ({one.standing})", wrap(one.says, 2)]
    lines += [wrap(evidence_line(each), 4, 6) for each in one.evidence]
    lines += [wrap(f"Why it matters: {one.why}", 2)]
    if one.attempts:
        lines += ["  Try:", *(wrap(each, 4, 6) for each in one.attempts)]
    lines += [wrap(f"Kernel {release}: {what}", 2, 4) for release, what in one.kernels]
    lines += [f"  The patch thread {one.thread} explains it: numalab replay {one.thread}"] if one.thread else []
    return "\n".join(lines)


def _costs(costs: tuple[Cost, ...]) -> str:
    lines = ["what balancing cost, in two estimates:"]
    for one in costs:
        accesses = f"{number(one.accesses_millions)} million memory accesses (mmtests' AutoNUMA cost)"
        copies = f"{number(one.with_copy_millions)} million with the copying of pages"
        time = f"{number(one.cpu_seconds)} s of CPU time"
        busy = f", {100 * one.cpus_busy:.3g} % of one CPU over {number(one.seconds)} s" if one.cpus_busy else ""
        lines.append(wrap(f"{one.side}: {accesses}; {copies}; {time}{busy}", 2, 4))
    lines += [wrap(each, 2, 4) for each in costs[0].meaning]
    lines += [wrap(f"assumed: {each}", 2, 4) for each in costs[0].assumptions]
    return "\n".join(lines)
