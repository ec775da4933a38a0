"""Does a printed change follow from two printed values?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalab.readers._cells import bounds, follows


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("12", (11, 13)), ("0.50", (0.495, 0.505)), ("1.749e+08", (1.7485e8, 1.7495e8)), ("-3.0", (-3.05, -2.95))],
)
def test_bounds(printed, expected):
    assert bounds(printed) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("base", "new", "change", "absolute", "fits"),
    [
        ("360277", "680.17", "-99.8", False, True),
        ("360277", "680.17", "-98.8", False, False),
        ("0.00", "0.01", "+110.4", False, True),  # of what is nearly nothing anything
        ("8.12", "3.43", "-4.7", True, True),
        ("8.12", "3.43", "-57.8", True, False),
        ("1", "2", "+180.0", False, True),  # cut off: 1.05 to 2.94, say
        ("1629", "6469222", "+4e+05", False, True),
    ],
)
def test_follows(base, new, change, absolute, fits):
    assert follows(base, new, change, absolute=absolute) is fits


@given(st.floats(0.01, 1e9), st.floats(0, 1e9))
def test_what_was_computed_follows(base, new):
    change = f"{100 * (new / base - 1):+.1f}"
    assert follows(f"{base:.2f}", f"{new:.2f}", change, absolute=False)
    assert follows(f"{int(base)}", f"{int(new)}", change, absolute=False)
    assert follows(f"{base:.4g}", f"{new:.4g}", change, absolute=False)
