"""Typed records: plain mappings checked against the annotations of a dataclass or function.

Machines, workloads and description files share this reader: the annotations say what fields may be, and
every error names the key, what was expected and what was found.
"""

from __future__ import annotations

import inspect
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


class DescriptionError(ValueError):
    """A machine, workload or run that cannot be.

    Attributes
    ----------
    key : str
        Path of the key at fault, such as ``workload.regions[1].size_mb``.
    problem : str
        What was expected and what was found.
    file : str
        The file it was read from, if any.
    """

    def __init__(self, key: str, problem: str, file: str = "") -> None:
        super().__init__(": ".join(part for part in (file, key, problem) if part))
        self.key = key
        self.problem = problem
        self.file = file

    def within(self, prefix: str) -> DescriptionError:
        """Return the same error seen from outside: ``prefix`` goes before the key."""
        dot = "." if self.key and not self.key.startswith("[") else ""
        return DescriptionError(f"{prefix}{dot}{self.key}", self.problem)


class _TooLargeError(DescriptionError):
    """A number that is of the right kind, but beyond all reason."""


#: No number may be larger (or smaller than its negative): what is computed with them must fit into 64 bits.
LARGEST = 10**15


@dataclass(frozen=True)
class Rule:
    """What a value must be (``what`` ends a sentence beginning with "expected") and the test for it.

    Numbers beyond ``most`` are refused with a message of their own.
    """

    what: str
    test: Callable[[Any], bool]
    most: int = LARGEST


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for the known word nearest to this one, or "; known: ..." with all."""
    words = list(known)
    close = get_close_matches(word, words, n=1)
    return f"; did you mean {show(close[0])}?" if close else f"; known: {', '.join(words)}"


def show(value: object) -> str:
    """Return a value as a description file writes it, shortened if it is very long."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (ValueError, RecursionError):
        # Python refuses to write out a number of thousands of digits.
        return (
            "a number of thousands of digits"
            if isinstance(value, int)
            else f"a {type(value).__name__} too long to show"
        )
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 300


def too_large(value: object, most: int = LARGEST) -> bool:
    """Tell whether a value is a number beyond a bound, in either direction; infinity is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return False
    return abs(value) > most and abs(value) != math.inf


def _bound(value: object, most: int) -> _TooLargeError:
    bound = f"at most {most:,}" if most < LARGEST else "a number of at most 15 digits"
    return _TooLargeError("", f"expected {bound}, got {show(value)}")


@cache
def _hints(call: Any) -> dict[str, Any]:
    return get_type_hints(call, include_extras=True)


def check(record: Any) -> None:
    """Check every field of a frozen dataclass against its annotation; lists become tuples.

    Raises
    ------
    DescriptionError
        Naming the field.
    """
    for key, hint in _hints(type(record)).items():  # type: ignore[arg-type]
        object.__setattr__(record, key, read_field(hint, getattr(record, key), key))


def read_record(cls: type[Record], data: object) -> Record:
    """Make a dataclass of a mapping with the same keys.

    Parameters
    ----------
    cls : type
        A dataclass whose annotations this module understands: bool, int, float, str, None, Literal,
        unions, ``tuple[X, ...]``, other dataclasses, each possibly Annotated with a :class:`Rule`.
    data : mapping

    Raises
    ------
    DescriptionError
        Naming the unknown, missing or wrong key by its path.
    """
    return cls(**read_arguments(cls, data))


def read_arguments(call: Any, data: object, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """Check a mapping against the parameters of a dataclass or function.

    Parameters
    ----------
    call : type or callable
    data : mapping
    skip : tuple of str
        Parameters that are given otherwise.

    Returns
    -------
    dict
        The arguments that ``data`` gives, of the annotated types.

    Raises
    ------
    DescriptionError
        Naming the unknown, missing or wrong key by its path.
    """
    if not isinstance(data, Mapping):
        raise DescriptionError("", f"expected a table, got {show(data)}")
    hints = _hints(call)
    known = {key: value for key, value in inspect.signature(call).parameters.items() if key not in skip}
    for key in data:
        if key not in known:
            raise DescriptionError(str(key), f"unknown key{nearest(str(key), known)}")
    for key, parameter in known.items():
        if key not in data and parameter.default is inspect.Parameter.empty:
            raise DescriptionError(key, f"missing; expected {expected(hints[key])}")
    return {str(key): read_field(hints[key], value, str(key)) for key, value in data.items()}


def expected(hint: Any) -> str:
    """Return what an annotation allows, in words that follow "expected"."""
    try:
        _read(hint, object())
    except DescriptionError as error:
        return error.problem.removeprefix("expected ").split(", got ")[0]
    raise AssertionError(f"{hint} allows anything")


def read_field(hint: Any, value: object, key: str) -> Any:
    """Check one value against an annotation; errors carry ``key``.

    Raises
    ------
    DescriptionError
    """
    try:
        return _read(hint, value)
    except DescriptionError as error:
        raise error.within(key) from None


def _read(hint: Any, value: object) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        base, rule = get_args(hint)
        return _read_ruled(base, rule, value)
    if origin is tuple:
        return _read_tuple(get_args(hint)[0], value)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(hint), value)
    if is_dataclass(hint):
        return value if isinstance(value, hint) else read_record(hint, value)  # type: ignore[arg-type]
    return _read_plain(hint, value)


def _read_ruled(base: Any, rule: Rule, value: object) -> Any:
    wrong = DescriptionError("", f"expected {rule.what}, got {show(value)}")
    try:
        read = _read(base, value)
    except DescriptionError as error:
        raise error if error.key or isinstance(error, _TooLargeError) else wrong from None
    if not rule.test(read):
        raise wrong
    if too_large(read, rule.most):
        raise _bound(read, rule.most)
    return read


def _read_tuple(item: Any, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise DescriptionError("", f"expected a list, got {show(value)}")
    return tuple(read_field(item, element, f"[{i}]") for i, element in enumerate(value))


def _read_union(arms: tuple[Any, ...], value: object) -> Any:
    wanted = []
    for arm in arms:
        try:
            return _read(arm, value)
        except _TooLargeError:
            raise
        except DescriptionError as error:
            # An element of a list, or a key of a table, is at fault: the list itself was what is meant.
            if error.key and isinstance(value, list | tuple | Mapping):
                raise
            if arm is not types.NoneType:
                wanted.append(expected(arm))
    raise DescriptionError("", f"expected {' or '.join(wanted)}, got {show(value)}")


_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _read_plain(hint: Any, value: object) -> Any:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        if value in words and not isinstance(value, bool):
            return value
        near = nearest(value, words) if isinstance(value, str) else ""
        near = near if "did you mean" in near else ""
        raise DescriptionError("", f"expected one of {', '.join(words)}, got {show(value)}{near}")
    if hint in (int, float) and too_large(value) and (hint is float or isinstance(value, int)):
        raise _bound(value, LARGEST)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and number and math.isfinite(value):  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    if hint is not float and isinstance(value, hint) and isinstance(value, bool) == (hint is bool):
        return value
    raise DescriptionError("", f"expected {_PLAIN.get(hint, 'none')}, got {show(value)}")


def to_plain(value: Any) -> Any:
    """Return dataclasses as dicts and tuples as lists, all the way down."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


Positive = Annotated[float, Rule("a number > 0", lambda v: v > 0)]
NotNegative = Annotated[float, Rule("a number >= 0", lambda v: v >= 0)]
Share = Annotated[float, Rule("a number from 0 to 1", lambda v: 0 <= v <= 1)]
Count = Annotated[int, Rule("a whole number >= 1", lambda v: v >= 1)]
Index = Annotated[int, Rule("a whole number >= 0", lambda v: v >= 0)]
#: Times in ms and sizes in MB: what they come to in ns and pages must fit into 64 bits, and in a dataset.
Milliseconds = Annotated[float, Rule("a number >= 0", lambda v: v >= 0, 10**9)]
LaterMs = Annotated[float, Rule("a number > 0", lambda v: v > 0, 10**9)]
Megabytes = Annotated[float, Rule("a number >= 0", lambda v: v >= 0, 10**9)]
SizeMb = Annotated[float, Rule("a number > 0", lambda v: v > 0, 10**9)]
Name = Annotated[str, Rule("a name that is not empty", lambda v: v != "")]
