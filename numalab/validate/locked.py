"""Runs about a lock rather than NUMA balancing (S3): rows of the lock model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numalab import lock_traces
from numalab.validate.cases import Trace
from numalab.validate.judge import CLOSE, WIDEST, Row


def is_about_a_lock(one: Trace) -> bool:
    """Tell whether the load looks up shared policies, which the lock model judges."""
    return bool(one.how["command"].startswith("nlwl shpol"))


def rows(traces: Sequence[Trace]) -> list[Row]:
    """Judge recordings by the lock model; what its rows mean is in :func:`numalab.lock_traces.judge`."""
    return [_row(found, traces) for found in lock_traces.judge([one.source for one in traces])] if traces else []


def _row(found: Mapping[str, Any], traces: Sequence[Trace]) -> Row:
    name, real, model, low, high = (found[key] for key in ("trace", "real", "model", "low", "high"))
    same = ("quantity", "real", "real_low", "real_high", "model", "low", "high", "ratio", "counted", "why")
    near = low <= real <= high or abs(model - real) <= CLOSE * real
    return Row(
        case=name,
        trace=name,
        units="1",
        kind="quantity",
        n_real=sum(one.name == name or one.name.startswith(f"{name}_r") for one in traces),
        inside=bool(found["inside"]),
        strict=near and (high <= WIDEST * low or not real + model),
        sign=None,
        fitted=False,
        **{key: found[key] for key in same},
    )
