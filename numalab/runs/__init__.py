"""Runs as labelled datasets: build, save, open, compare.

What a run looks like is declared and checked in `numalab.schema`; values derived from
it are in `numalab.derived`, reachable as ``ds.numa`` once this module is imported.
"""

from numalab import derived as _derived  # noqa: F401  registers ds.numa
from numalab.runs._build import build, extend, padded, revision
from numalab.runs._files import destination, open, save, write_whole
from numalab.runs._join import at_times, concat, differences, equal
from numalab.schema import COORDS, VARIABLES, SchemaError, Variable, provenance, validate

__all__ = [
    "COORDS",
    "VARIABLES",
    "SchemaError",
    "Variable",
    "at_times",
    "build",
    "concat",
    "destination",
    "differences",
    "equal",
    "extend",
    "open",
    "padded",
    "provenance",
    "revision",
    "save",
    "validate",
    "write_whole",
]
