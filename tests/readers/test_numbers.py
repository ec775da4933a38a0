"""Numbers with grouped digits."""

import re

import pytest

from numalab.readers._numbers import GROUPED, number


@pytest.mark.parametrize(
    ("printed", "comma", "value"),
    [
        ("0", False, 0),
        ("1234567", False, 1234567),
        ("1,234,567", False, 1234567),
        ("12,34,567", False, 1234567),
        ("7,99,35,29,041", False, 7993529041),
        ("98,808", False, 98808),
        ("31,268.42", False, 31268.42),
        ("1407.690148814", False, 1407.690148814),
        ("11.117.524.161", True, 11117524161),
        ("3,4814", True, 3.4814),
        ("1.234,56", True, 1234.56),
        ("974", True, 974),
        ("1 234 567", False, 1234567),
        ("1'234'567", False, 1234567),
    ],
)
def test_numbers(printed, comma, value):
    found = number(printed, comma)
    assert found == value
    assert type(found) is type(value)
    assert re.fullmatch(GROUPED, printed)


@pytest.mark.parametrize(
    ("printed", "comma"),
    [
        ("12,3", False),
        ("1,2345", False),
        ("1,23,4", False),
        ("123,45,678", False),
        ("12,345,", False),
        ("1.2.3", False),
        ("1.234.56", True),
        ("5.", False),
    ],
)
def test_digits_grouped_in_no_known_way_are_no_number(printed, comma):
    assert number(printed, comma) is None
