"""``numalab machines`` and ``numalab workloads``: what a description file can ask for by name."""

from __future__ import annotations

import inspect
import typing
from argparse import Namespace
from typing import Any

from numalab import machine as machines_
from numalab import workloads as workloads_
from numalab.commands import OK, CommandError
from numalab.commands.output import columns, number, plural, print_json, wrap
from numalab.machine import Machine
from numalab.records import expected, nearest
from numalab.records import show as toml_value
from numalab.workloads import Named

# ---------------------------------------------------------------- machines


def machines(args: Namespace) -> int:
    """List the machine presets, or describe one."""
    if args.name:
        found = machines_.machine(args.name)
        print_json(_machine_facts(found)) if args.json else _print_machine(found)
    elif args.json:
        print_json([_machine_facts(preset) for preset in machines_.PRESETS.values()])
    else:
        head = ("NAME", "NODES", "CPUS", "MEMORY", "TOPOLOGY", "WHERE FROM")
        rows, before = [head], ""
        for m in machines_.PRESETS.values():
            source = "the same" if m.source == before else m.source
            rows.append((m.name, str(len(m.nodes)), str(m.cpus), _memory(m), m.topology_class(), source))
            before = m.source
        print(columns(rows))
        print('\n`numalab machines NAME` shows one; a description file takes it with [machine] preset = "NAME".')
    return OK


def _memory(machine: Machine) -> str:
    total = sum(node.memory_mb for node in machine.nodes)
    return f"{total / 1024:g} GB" if total >= 1024 else f"{total:g} MB"


def _machine_facts(machine: Machine) -> dict[str, Any]:
    return {
        **machine.to_dict(),
        "cpus": machine.cpus,
        "topology_class": machine.topology_class(),
        "watermark_pages": list(machine.watermark_pages()),
        "remarks": list(machine.remarks()),
    }


def _print_machine(machine: Machine) -> None:
    print(wrap(f"{machine.name}: {machine.source}"))
    threads = plural(machine.smt, "hardware thread")
    print(f"  {plural(len(machine.nodes), 'node')}, {machine.cpus} CPUs ({threads} a core), {_memory(machine)}")
    print(f"  topology class: {machine.topology_class()}\n")
    head = ("NODE", "CPUS", "MEMORY MB", "IN USE MB", "LAST-LEVEL CACHES", "HIGH WATERMARK, PAGES")
    rows = [
        (str(n.id), str(n.cpus), number(n.memory_mb), number(n.reserved_mb), str(n.llcs), number(mark))
        for n, mark in zip(machine.nodes, machine.watermark_pages(), strict=True)
    ]
    print(columns([head, *rows], 2))
    ids = [str(node.id) for node in machine.nodes]
    matrix = [(id_, *map(str, row)) for id_, row in zip(ids, machine.distance, strict=True)]
    print(f"\n  DISTANCES\n{columns([('', *ids), *matrix], 2)}")
    for remark in machine.remarks():
        print(f"  remark: {remark}")
    print("\n  to use it:\n    [machine]")
    print(f"    preset = {toml_value(machine.name)}")


# ---------------------------------------------------------------- workloads


def workloads(args: Namespace) -> int:
    """List the named workloads, or describe one."""
    named = workloads_.NAMED
    if args.name:
        if args.name not in named:
            raise CommandError(f"no workload {args.name!r}{nearest(args.name, named)}")
        found = named[args.name]
        print_json(_workload_facts(found)) if args.json else _print_workload(found)
    elif args.json:
        print_json([_workload_facts(found) for found in named.values()])
    else:
        for found in named.values():
            print(wrap(f"{found.name}({_signature(found)})", 0, 4))
            print(wrap(_plain(found.summary), 4))
        print('\n`numalab workloads NAME` explains one; a description file takes it with [workload] preset = "NAME".')
    return OK


def _signature(found: Named) -> str:
    return ", ".join(
        key if default is inspect.Parameter.empty else f"{key}={_default(default)}"
        for key, default in found.parameters.items()
    )


def _default(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    return text.replace("``", "")


def _parameter_facts(found: Named) -> list[dict[str, Any]]:
    hints = typing.get_type_hints(found.build, include_extras=True)
    return [
        {
            "name": key,
            "required": default is inspect.Parameter.empty,
            "default": None if default is inspect.Parameter.empty else default,
            "expected": expected(hints[key]),
        }
        for key, default in found.parameters.items()
    ]


def _workload_facts(found: Named) -> dict[str, Any]:
    return {
        "name": found.name,
        "summary": _plain(found.summary),
        "doc": found.doc,
        "sized_by_machine": found.needs_machine,
        "parameters": _parameter_facts(found),
    }


def _print_workload(found: Named) -> None:
    text, _, described = found.doc.partition("Parameters\n----------\n")
    print(f"{found.name}: {_plain(text).strip()}")
    if found.needs_machine:
        print("\nIt sizes itself by the machine it runs on.")
    head = ("PARAMETER", "DEFAULT", "EXPECTED")
    rows = [
        (fact["name"], "required" if fact["required"] else _default(fact["default"]), fact["expected"])
        for fact in _parameter_facts(found)
    ]
    print(f"\n{columns([head, *rows], 2)}\n")
    print("\n".join(f"  {line}".rstrip() for line in _plain(described).splitlines()))
    print("\n  to use it:\n    [workload]")
    print(f"    preset = {toml_value(found.name)}")
    for fact in _parameter_facts(found):
        if fact["required"]:
            print(f"    {fact['name']} = ...     # {fact['expected']}")
