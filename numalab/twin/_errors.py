"""The error of this room."""

from __future__ import annotations


class TwinError(ValueError):
    """A recording of which no twin can be made, or a what-if that makes no sense; says what is missing, what to do."""
