"""``numalab kernels``: releases, trees, patches, switches, and what differs between two kernels."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from numalab.commands import OK, CommandError
from numalab.commands.output import columns, print_json, word, wrap
from numalab.kernel import MOST, Change, Kernel, KernelError, Switch, names, table
from numalab.records import nearest


def kernels(args: Namespace) -> int:
    """List kernels and switches, describe one, or compare two."""
    match args.names:
        case []:
            print_json(_everything()) if args.json else _print_everything()
        case ["diff", a, b]:
            _diff(Kernel(a), Kernel(b), args.json)
        case ["diff", *_]:
            raise CommandError("kernels diff: expected two kernels, as in `numalab kernels diff 3.16 3.17`")
        case [name]:
            _one(name, args.json)
        case _:
            raise CommandError(f"kernels: expected one name, or diff and two names; got {' '.join(args.names)}")
    return OK


def spans(switch: Switch) -> str:
    """Say in one line what a switch is set to in which releases.

    Returns
    -------
    str
        As in "3.14-3.16 off, 3.17- on; inferred: 3.14 4.0".
    """
    groups = [list(group) for _, group in groupby(switch.cells.items(), key=lambda item: item[1].value)]
    texts = []
    for number, group in enumerate(groups):
        first, last = group[0][0], group[-1][0]
        span = first if first == last else f"{first}-{last}"
        if number == len(groups) - 1:
            span = f"{first}-"
        texts.append(f"{'all' if len(groups) == 1 else span} {word(group[0][1].value)}")
    inferred = [release for release, cell in switch.cells.items() if not cell.read]
    return ", ".join(texts) + (f"; inferred: {' '.join(inferred)}" if inferred else "")


# ---------------------------------------------------------------- everything


def _everything() -> dict[str, Any]:
    known = table()
    return {
        "releases": list(known.releases),
        "trees": [_change(tree) for tree in known.trees.values()],
        "patches": [_change(patch) for patch in known.patches.values()],
        "switches": [_switch(switch) for switch in known.switches.values()],
    }


def _change(change: Change) -> dict[str, Any]:
    base = {"base": change.base} if change.base else {}
    return {"name": change.name, **base, "what": change.what, "commit": change.commit or None, "set": dict(change.set)}


def _switch(switch: Switch) -> dict[str, Any]:
    return {
        "name": switch.name,
        "what": switch.what,
        "kind": switch.kind,
        "unit": switch.unit or None,
        "choices": list(switch.choices) or None,
        "commit": switch.commit or None,
        "releases": {release: {"value": cell.value, "read": cell.read} for release, cell in switch.cells.items()},
    }


def _print_everything() -> None:
    known = table()
    print(f"RELEASES  {' '.join(known.releases)}")
    total = len(known.switches)
    read = {r: sum(switch.cells[r].read for switch in known.switches.values()) for r in known.releases}
    print(wrap(f"of {total} switches read in a tree: " + ", ".join(f"{r} {n}" for r, n in read.items()), 2, 4))
    print("\nTREES  releases with some switches turned")
    print(columns([(tree.name, f"{tree.what}{_sets(tree)}") for tree in known.trees.values()], 2))
    print("\nPATCHES  applied to a kernel with patches = [...] or .patched(...)")
    print(columns([(p.name, f"{p.what}{_sets(p)}{_commit(p.commit)}") for p in known.patches.values()], 2))
    print("\nSWITCHES  what each does; its value by release (- to the newest), which of them were inferred")
    for switch in known.switches.values():
        _print_switch(switch)


def _sets(change: Change) -> str:
    return f" [{_assignments(change)}]" if change.set else ""


def _assignments(change: Change) -> str:
    return ", ".join(f"{key}={word(value)}" for key, value in change.set.items())


def _commit(commit: str) -> str:
    return f" ({commit})" if commit else ""


def _bounds(switch: Switch) -> str:
    if switch.most < MOST:
        return f", {switch.least:,} to {switch.most:,}"
    return f", >= {switch.least}" if switch.least else ""


def _print_switch(switch: Switch) -> None:
    takes = (
        f" [{switch.unit}{_bounds(switch)}]"
        if switch.unit
        else f" [{' | '.join(switch.choices)}]"
        if switch.choices
        else ""
    )
    print(wrap(f"{switch.name}{takes}", 2, 6))
    print(wrap(f"{switch.what}{_commit(switch.commit)}", 6))
    print(wrap(spans(switch), 6, 8))


# ---------------------------------------------------------------- one


def _one(name: str, as_json: bool) -> None:
    known = table()
    if name in known.patches:
        patch = known.patches[name]
        if as_json:
            print_json(_change(patch))
            return
        print(wrap(f"patch {name}: {patch.what}{_commit(patch.commit)}"))
        print(f"  sets {_assignments(patch) or 'nothing in the model'}")
    elif name in known.switches:
        print_json(_switch(known.switches[name])) if as_json else _print_switch(known.switches[name])
    else:
        everything = [*names(), *known.patches, *known.switches]
        if name not in everything:
            if re.fullmatch(r"\d+\.\d+(\.\d+)*", name):
                raise KernelError(f"no release {name!r}; {_neighbours(name, known.releases)}")
            close = nearest(name, everything)
            hint = close if "did you mean" in close else f"; known kernels: {', '.join(names())}"
            raise KernelError(f"no kernel, patch or switch {name!r}{hint}")
        _kernel(name, as_json)


def _neighbours(name: str, releases: Sequence[str]) -> str:
    """Say between which known releases another one lies: nobody mistypes 6.6 for 6.5."""
    below = [release for release in releases if _version(release) < _version(name)]
    above = [release for release in releases if _version(release) > _version(name)]
    if below and above:
        return f"its neighbours are {below[-1]} and {above[0]}"
    return f"the {'newest is ' + below[-1] if below else 'oldest is ' + above[0]}"


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in release.split("."))


def _kernel(name: str, as_json: bool) -> None:
    kernel, known = Kernel(name), table()
    tree = known.trees.get(name)
    origin = {
        key: "tree" if tree and key in tree.set else "read" if switch.cells[kernel.release].read else "inferred"
        for key, switch in known.switches.items()
    }
    if as_json:
        switches = {key: {"value": value, "from": origin[key]} for key, value in kernel.switches.items()}
        print_json({"name": name, "release": kernel.release, "what": tree.what if tree else None, "switches": switches})
        return
    print(wrap(f"{name}: {tree.what}" if tree else f"release {name}"))
    print("  ? inferred from the neighbouring releases" + (", * set by this tree" if tree else "") + "\n")
    mark = {"read": "", "inferred": "?", "tree": "*"}
    rows = [
        (key, f"{word(value)}{mark[origin[key]]}", known.switches[key].unit) for key, value in kernel.switches.items()
    ]
    print(columns(rows, 2))
    print("\n`numalab kernels SWITCH` says what a switch does.")


# ---------------------------------------------------------------- two


def _diff(a: Kernel, b: Kernel, as_json: bool) -> None:
    switches = table().switches
    changes = a.diff(b)
    if as_json:
        print_json(
            {
                "a": a.name,
                "b": b.name,
                "switches": {
                    key: {"a": x, "b": y, "what": switches[key].what, "commit": switches[key].commit or None}
                    for key, (x, y) in changes.items()
                },
            }
        )
        return
    print(f"{a.name} -> {b.name}: {len(changes)} of {len(switches)} switches differ")
    for key, (x, y) in changes.items():
        marks = ["" if _read(kernel, key) else "?" for kernel in (a, b)]
        print(f"  {key}: {word(x)}{marks[0]} -> {word(y)}{marks[1]}")
        print(wrap(f"{switches[key].what}{_commit(switches[key].commit)}", 6))
    if any(not _read(kernel, key) for kernel in (a, b) for key in changes):
        print("  ? inferred from the neighbouring releases")


def _read(kernel: Kernel, key: str) -> bool:
    tree = table().trees.get(kernel.name)
    return bool(tree and key in tree.set) or table().switches[key].cells[kernel.release].read
