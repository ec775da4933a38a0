"""What ``numalab read`` gets from any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numalab.readers._text import Skipped

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Found:
    """Something understood: where it begins (0: the file as a whole), what it is, in a folder in which file."""

    line: int
    what: str
    file: str = ""


@dataclass(frozen=True)
class Reading:
    """What a text, or a folder of texts, held.

    Attributes
    ----------
    source : str
        File or folder, for messages.
    format : str
    lines : int
        Length of the text.
    understood : tuple of Found
    skipped : tuple of Skipped
    dataset : callable
        Makes the run (`numalab.schema`) of it.
    missing : tuple of Found
        What a folder or file lacks, and what the run is without for it.
    """

    source: str
    format: str
    lines: int
    understood: tuple[Found, ...]
    skipped: tuple[Skipped, ...]
    dataset: Callable[[], xr.Dataset]
    missing: tuple[Found, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the dataset as plain lists, numbers and strings."""

        def where(found: Found | Skipped) -> dict[str, Any]:
            return ({"file": found.file} if found.file else {}) | {"line": found.line}

        return {
            "file": self.source,
            "format": self.format,
            "lines": self.lines,
            "understood": [where(found) | {"what": found.what} for found in self.understood],
            "skipped": [where(skip) | {"text": skip.text, "reason": skip.reason} for skip in self.skipped],
            "missing": [where(found) | {"what": found.what} for found in self.missing],
        }
