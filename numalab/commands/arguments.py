"""Types of arguments: each takes the text and returns the value. Standard library only."""

from __future__ import annotations

from argparse import ArgumentTypeError

#: Units of times, s.
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
#: Below, a recorder mostly sees itself, s.
_SHORTEST = 0.05


def count(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)


def counts(text: str) -> list[int]:
    """Return whole numbers from 1, given with commas between."""
    return [count(part) for part in text.split(",")]


def percent(text: str) -> float:
    """Return a percentage above 0."""
    return _above_0(text, "a percentage")


def rate(text: str) -> float:
    """Return pages per second above 0."""
    return _above_0(text, "pages per second")


def seconds(text: str) -> float:
    """Return seconds above 0."""
    return _above_0(text, "seconds")


def duration(text: str) -> float:
    """Return a time, such as 500ms, 1s, 2m or 0.5, in seconds."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(digits) :] or "s"
    if unit not in _UNITS:
        raise ArgumentTypeError(f"expected a time such as 500ms, 1s, 2m or 1h, got {text!r}")
    return seconds(digits) * _UNITS[unit]


def interval(text: str) -> float:
    """Return the time between two looks, in seconds."""
    value = duration(text)
    if value < _SHORTEST:
        raise ArgumentTypeError(f"expected at least {1000 * _SHORTEST:g}ms: below, a recorder mostly sees itself")
    return value


def _above_0(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"expected {what} above 0, got {text!r}")
    return value
