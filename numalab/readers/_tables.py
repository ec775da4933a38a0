"""What the readers of comparison tables share: the report of a text that holds tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from numalab.readers._text import Skipped

T = TypeVar("T")


@dataclass
class Report(Generic[T]):
    """What a text held.

    Attributes
    ----------
    source : str
    lines : int
    tables : list
        Of the format's own kind.
    skipped : list of Skipped
    notes : list of (line, text)
        What was taken for granted, or may be wrong with what was read.
    titles : list of (line, text)
        What the text says of its tables: commits compared, the test and its parameters.
    """

    source: str
    lines: int
    tables: list[T] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
