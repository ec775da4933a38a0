"""Kernels of the traces: the nearest release the model knows, and the switches of the toggle kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from numalab.kernel import Kernel, KernelError, Value, nearest, table
from numalab.scenarios._command import ScenarioError

#: Toggle -> its value -> switches of the model. A value that is 6.1 as it was sets nothing.
TOGGLES: dict[str, dict[int, dict[str, Value]]] = {
    "cow_skip": {
        0: {"skip_shared_cow": "none"},
        1: {"skip_shared_cow": "page_count"},
        2: {"skip_shared_cow": "mapcount"},
    },
    "group_by": {
        0: {"no_group_rule": "pte_dirty"},
        1: {"no_group_rule": "vma_write"},
        2: {"no_group_rule": "pte_write"},
    },
    "keep_write": {0: {"keep_write": False}, 1: {"keep_write": True}},
    "fail_slow": {0: {"fail_slows": False}, 1: {"fail_slows": True}},
    "scan_formula": {0: {"period_rule": "local"}, 1: {"period_rule": "private_first"}},
    "group_scale": {0: {"group_scaled_period": False}, 1: {"group_scaled_period": True}},
    "always_place": {
        0: {"placement_at": "every_fault", "migrate_at_placement": "on_change"},
        1: {"placement_at": "retry", "migrate_at_placement": "no"},
        2: {"placement_at": "every_fault", "migrate_at_placement": "not_there"},
    },
    "group_nid": {0: {"preferred_rule": "weight_sum"}, 1: {"preferred_rule": "topology"}},
    "preferred_check": {0: {"check_preferred": "if_free"}, 1: {"check_preferred": "always"}},
    "spare_swap": {0: {"spare_refuses_swap": True}, 1: {"spare_refuses_swap": False}},
    "sp_lock": {0: {}, 1: {}},
    "examine_move": {0: {"move_in_swap": False}, 1: {"move_in_swap": True}},
    "hyst": {0: {"group_hysteresis": False}, 1: {"group_hysteresis": True}},
}
#: Toggles whose value goes into a switch as it is.
NUMBERS = {"scan_thresh": "numa_period_threshold", "small_imp": "small_improvement"}
THRESHOLDS = ("group_swap_thresh", "move_thresh")
SCAN_SETTINGS = ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb")


def release(name: str, source: str) -> tuple[str, tuple[str, ...]]:
    """Return the newest release of the model that is not newer than a kernel, and a note if it is older.

    Raises
    ------
    ScenarioError
        No version in the name, or one before all releases.
    """
    try:
        found = nearest(name)
    except KernelError as error:
        raise ScenarioError(f"{source}: {error}") from error
    same = re.match(rf"{re.escape(found)}(?![\d])", name)
    return found, () if same else (f"kernel {name}: taken as {found}, the nearest release that is not newer",)


def toggled(base: str, toggles: Mapping[str, Any], source: str) -> tuple[Kernel, tuple[str, ...]]:
    """Return a kernel with the toggles of layout B as switches of the model, and what has none.

    Raises
    ------
    ScenarioError
        A toggle's value that is not a number.
    """
    switches: dict[str, Value] = {}
    notes: list[str] = []
    for name, raw in toggles.items():
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ScenarioError(f"{source}: toggles.{name}: expected a whole number, got {raw!r}")
        if name in NUMBERS:
            switches[NUMBERS[name]] = raw
        elif name in THRESHOLDS:
            continue
        elif raw in TOGGLES.get(name, {}):
            switches |= TOGGLES[name][raw]
        else:
            notes.append(f"toggle {name}={raw}: the model has no switch for it")
    swap, move = (int(toggles.get(name, 0)) for name in THRESHOLDS)
    if swap and swap == move:
        switches["numa_move_threshold"] = swap
    elif swap or move:
        notes.append(f"toggles group_swap_thresh={swap}, move_thresh={move}: the model knows one value for both")
    changed = {name: value for name, value in switches.items() if table().switches[name].cells[base].value != value}
    return Kernel(base, **changed), tuple(notes)


def settings(kernel: Kernel, sysctl: Mapping[str, Any], source: str) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the scan settings that differ from the kernel's, as parameters, and notes.

    Raises
    ------
    ScenarioError
        A setting that is not a whole number.
    """
    found: dict[str, float] = {}
    notes: list[str] = []
    for name in SCAN_SETTINGS:
        text = str(sysctl.get(name, kernel.switches[name]))
        if not text.isdecimal():
            raise ScenarioError(f"{source}: {name}: expected a whole number, got {text!r}")
        if int(text) != kernel.switches[name]:
            found[name] = int(text)
    mode = str(sysctl.get("numa_balancing", "1"))
    if mode == "0":
        found["numa_balancing"] = 0
    elif mode != "1":
        notes.append(f"numa_balancing {mode}: memory tiering is not modelled")
    return found, tuple(notes)
