"""Kernels as sets of named switches.

A *release* is a column of ``data/kernels.toml``, a *tree* is a release with a few switches turned (a
release candidate, a development branch), a *patch* turns switches. Anything may be overridden::

    Kernel("3.16", move_in_swap=True, scan_size_mb=64)
    Kernel("3.16-tip").patched("S1#2", "S1#5")
"""

from __future__ import annotations

import operator
import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import Any, SupportsIndex

from numalab import _data

Value = bool | int | str


#: Numeric switches are in ms, MB and the like, and computed with in ns and pages.
MOST = 10**9


class KernelError(ValueError):
    """A release, tree, patch or switch that does not exist, or a value it cannot take."""


class KernelWarning(UserWarning):
    """Something asked of a kernel that changes nothing."""


@dataclass(frozen=True)
class Cell:
    """One switch in one release: its value, and whether a tree of that release was read."""

    value: Value
    read: bool


@dataclass(frozen=True)
class Switch:
    """A rule that changed between releases, or a number that can be set.

    Attributes
    ----------
    name : str
    what : str
        What it does when on; for a choice, what each word means in the order of ``choices``.
    commit : str
        The change that brought or removed it; empty where it is not known.
    unit : str
        Unit of a number, else empty.
    least, most : int
        Smallest and largest number that makes a kernel.
    choices : tuple of str
        The words a choice switch knows, else empty.
    cells : dict
        Release to :class:`Cell`.
    """

    name: str
    what: str
    commit: str
    unit: str
    choices: tuple[str, ...]
    cells: Mapping[str, Cell]
    least: int = 0
    most: int = MOST

    @property
    def kind(self) -> str:
        """``"number"``, ``"choice"`` or ``"bool"``."""
        return "choice" if self.choices else "number" if self.unit else "bool"

    def parse(self, value: object) -> Value:
        """Check a value for this switch and return it in its own type.

        Raises
        ------
        KernelError
            Naming the switch, the value and what it takes.
        """
        if self.kind == "number":
            number = _whole(value)
            if number is not None and self.least <= number <= self.most:
                return number
            bounds = f"from {self.least:,} to {self.most:,}"
            raise KernelError(f"switch {self.name}: {value!r} is no whole number {bounds} ({self.unit})")
        if self.kind == "choice":
            if value in self.choices:
                return str(value)
            raise KernelError(f"switch {self.name}: {value!r} is none of {', '.join(self.choices)}")
        if isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool":
            return bool(value)
        if value in ("on", "off"):
            return value == "on"
        raise KernelError(f"switch {self.name}: {value!r} is neither on nor off (True or False)")


@dataclass(frozen=True)
class Change:
    """A named set of switch values: a tree (on top of a base release) or a patch."""

    name: str
    what: str
    commit: str
    base: str
    set: Mapping[str, Value]


@dataclass(frozen=True)
class Table:
    """Everything ``data/kernels.toml`` holds."""

    releases: tuple[str, ...]
    switches: Mapping[str, Switch]
    trees: Mapping[str, Change]
    patches: Mapping[str, Change]


@cache
def table() -> Table:
    """Read the release x switch table (once).

    Returns
    -------
    Table

    Raises
    ------
    KernelError
        If the table contradicts itself; names the switch.
    """
    raw = tomllib.loads(_data.read_text("kernels.toml"))
    releases = tuple(raw["releases"])
    switches = {entry["name"]: _switch(entry, releases) for entry in raw["switch"]}

    def changes(key: str) -> dict[str, Change]:
        return {
            entry["name"]: Change(
                name=entry["name"],
                what=entry.get("what", entry.get("title", "")),
                commit=entry.get("commit", ""),
                base=entry.get("base", ""),
                set={name: switches[name].parse(value) for name, value in entry["set"].items()},
            )
            for entry in raw[key]
        }

    return Table(releases, switches, changes("tree"), changes("patch"))


def _switch(entry: Mapping[str, Any], releases: tuple[str, ...]) -> Switch:
    words = entry["cells"].split()
    if len(words) != len(releases):
        raise KernelError(f"switch {entry['name']}: {len(words)} cells for {len(releases)} releases")
    bare = Switch(
        name=entry["name"],
        what=entry["what"],
        commit=entry.get("commit", ""),
        unit=entry.get("unit", ""),
        choices=tuple(entry.get("choices", ())),
        cells={},
        least=entry.get("least", 0),
        most=entry.get("most", MOST),
    )
    cells = {
        release: Cell(bare.parse(word.removesuffix("?")), not word.endswith("?"))
        for release, word in zip(releases, words, strict=True)
    }
    return replace(bare, cells=cells)


class Kernel:
    """A release or named tree, with any switches overridden. Immutable; compares by its switches.

    Parameters
    ----------
    name : str
        A release (``"3.17"``) or a named tree (``"3.16-tip"``); see ``numalab kernels``.
    **overrides : bool, int or str
        Switch values that differ from the table.

    Raises
    ------
    KernelError
        Unknown name, unknown switch (with the nearest known one), or a value the switch cannot take.

    Examples
    --------
    >>> Kernel("3.16", move_in_swap=True).move_in_swap
    True
    >>> Kernel("3.16").diff(Kernel("3.17"))["numa_period_threshold"]
    (3, 7)
    """

    def __init__(self, name: str, **overrides: Value) -> None:
        known = table()
        tree = known.trees.get(name)
        release = tree.base if tree else name
        if release not in known.releases:
            names = [*known.releases, *known.trees]
            raise KernelError(f"no kernel {name!r}; known: {', '.join(names)}")
        values = {key: switch.cells[release].value for key, switch in known.switches.items()}
        values.update(tree.set if tree else {})
        for key, value in overrides.items():
            if key not in known.switches:
                raise KernelError(f"no switch {key!r}{_nearest(key, known.switches)}")
            values[key] = known.switches[key].parse(value)
        self._name = name
        self._release = release
        self._overrides = dict(overrides)
        self._values = values

    @property
    def name(self) -> str:
        """The release or tree it was made from."""
        return self._name

    @property
    def release(self) -> str:
        """The release underneath."""
        return self._release

    @property
    def overrides(self) -> dict[str, Value]:
        """The switches that were given, as they were given."""
        return dict(self._overrides)

    @property
    def switches(self) -> dict[str, Value]:
        """All switches with their values."""
        return dict(self._values)

    @property
    def label(self) -> str:
        """The name followed by what was overridden, for tables and legends."""
        return self._name + "".join(f" {k}={_word(v)}" for k, v in self._overrides.items())

    def __getattr__(self, key: str) -> Any:
        try:
            return self.__dict__["_values"][key]
        except KeyError:
            raise AttributeError(key) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        extra = "".join(f", {key}={value!r}" for key, value in self._overrides.items())
        return f"Kernel({self._name!r}{extra})"

    def replace(self, **overrides: Value) -> Kernel:
        """Return the same kernel with further switches overridden."""
        return Kernel(self._name, **{**self._overrides, **overrides})

    def patched(self, *patches: str) -> Kernel:
        """Return the same kernel with named patches applied, in order.

        Warns
        -----
        KernelWarning
            A patch changes nothing: the kernel has it, or the model has nothing of what it changes.

        Raises
        ------
        KernelError
            Unknown patch.
        """
        known = table().patches
        if unknown := [name for name in patches if name not in known]:
            raise KernelError(f"no patch {unknown[0]!r}; known: {', '.join(known)}")
        values: dict[str, Value] = {}
        for name in patches:
            patch, now = known[name], self._values | values
            if not patch.set:
                _warn(f"patch {name} changes nothing in the model: {patch.what}")
            elif all(now[key] == value for key, value in patch.set.items()):
                rules = ", ".join(f"{key}={_word(value)}" for key, value in patch.set.items())
                _warn(f"patch {name} changes nothing: {self.label} has {rules} already")
            values.update(patch.set)
        return self.replace(**values)

    def diff(self, other: Kernel) -> dict[str, tuple[Value, Value]]:
        """Return the switches that differ: name to (mine, theirs)."""
        return {key: (value, other._values[key]) for key, value in self._values.items() if value != other._values[key]}


def names() -> Iterator[str]:
    """Yield every release and named tree."""
    yield from table().releases
    yield from table().trees


def nearest(version: str) -> str:
    """Name the newest release, or tree of a stable release, that is not newer than a kernel.

    Parameters
    ----------
    version : str
        Such as ``6.12.117`` or what ``uname -r`` prints.

    Raises
    ------
    KernelError
        No version in it, or one before all releases.
    """
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if found is None:
        raise KernelError(f"expected a version such as 6.12, got {version!r}")
    asked = tuple(int(part or 0) for part in found.groups())
    known = {tuple(int(part) for part in name.split(".")): name for name in names() if re.fullmatch(r"[\d.]+", name)}
    # what a stable release got, the next mainline release need not have
    older = [numbers for numbers in known if numbers <= asked and (len(numbers) == 2 or numbers[:2] == asked[:2])]
    if not older:
        raise KernelError(f"expected a kernel from {table().releases[0]} on, got {version!r}")
    return known[max(older)]


def _whole(value: object) -> int | None:
    """Read a whole number, numpy's included, or its digits."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 20 else None
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:  # an array
            return None
    return None


def _nearest(key: str, known: Iterable[str]) -> str:
    close = get_close_matches(key, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "; see `numalab kernels`"


def _warn(text: str) -> None:
    warnings.warn(text, KernelWarning, stacklevel=3)


def _word(value: Value) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
