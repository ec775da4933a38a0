"""numalab: Linux automatic NUMA balancing, replayed, seen and changed.

Importing the package loads nothing heavy: the names below, and the modules of
the package, are imported when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: Public name -> module that defines it.
_EXPORTS = {
    "Kernel": "numalab.kernel",
    "concat": "numalab.runs",
    "open": "numalab.runs",
    "read": "numalab.readers.mixed",
    "save": "numalab.runs",
    "simulate": "numalab.simulation",
    "sweep": "numalab.sweeps",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package, on first use."""
    if name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'numalab' has no attribute {name!r}")
    else:
        try:
            value = import_module(f"numalab.{name}")
        except ModuleNotFoundError as error:
            # A module that exists but lacks a dependency must say so itself.
            if error.name != f"numalab.{name}":
                raise
            raise AttributeError(f"module 'numalab' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
