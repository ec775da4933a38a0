"""Numbers as tables print them, and whether a printed change follows from the two values beside it."""

from __future__ import annotations

from decimal import Decimal

#: Slack for the binary fractions in between.
_EPSILON = 1e-9


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a printed number."""
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent


def bounds(printed: str) -> tuple[float, float]:
    """Return what a printed number may have been: decimals are rounded, whole ones rounded or cut off."""
    value = float(printed)
    if "." in printed or "e" in printed:
        return value - half_unit(printed), value + half_unit(printed)
    return value - 1, value + 1


def follows(base: str, new: str, change: str, *, absolute: bool) -> bool:
    """Tell whether a change can be the one from a base to a new value, all three as printed.

    Parameters
    ----------
    base, new : str
    change : str
        With its sign, without "%": percent of the base, or with ``absolute`` the difference.
    absolute : bool
    """
    (base_low, base_high), (low, high) = bounds(base), bounds(new)
    if absolute:
        least, most = low - base_high, high - base_low
    elif base_low <= 0 <= base_high:
        return True  # percent of what may be nothing can be anything
    else:
        corners = [100 * (n / b - 1) for b in (base_low, base_high) for n in (low, high)]
        least, most = min(corners), max(corners)
    slack = half_unit(change) + _EPSILON * max(abs(least), abs(most), 1.0)
    return least - slack <= float(change) <= most + slack
