"""Numbers as tools print them for people: digits grouped the Western, Indian or continental way."""

from __future__ import annotations

import re

#: Anything that may be a number with groups; `number` says whether it is one.
GROUPED = r"(?:\d{1,3}(?: \d{3})+(?![\d.])|\d[\d.,'’]*)"

#: Thousands in threes, or (Indian) the last three and pairs before: 1,234,567 and 12,34,567.
_GROUPS = {
    mark: re.compile(rf"\d{{1,3}}(?:{mark}\d{{3}})+|\d{{1,2}}(?:{mark}\d{{2}})+{mark}\d{{3}}") for mark in (",", r"\.")
}
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
#: Counters are kept in 64 bits with a sign.
LARGEST = 2**63 - 1
_MOST_DIGITS = 19
#: In Swiss and French output; `numalab.readers._paste` makes narrow blanks plain ones.
_OTHER_MARKS = str.maketrans("", "", " '’")

#: A whole count alone between blanks, or with what mean, change and percent have around it.
_COUNT = re.compile(r"(?<![^\s(*])[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?![\d,])")


def ungrouped(text: str) -> str:
    """Take the commas out of counts, Western or Indian; columns stay where they are.

    Parameters
    ----------
    text : str
        A line of a table, in which a comma stands in no list of CPUs and is no decimal mark.
    """
    return _COUNT.sub(lambda count: count[0].replace(",", "").rjust(len(count[0])), text) if "," in text else text


def number(printed: str, comma: bool = False) -> int | float | None:
    """Read a number.

    Parameters
    ----------
    printed : str
        Without a sign.
    comma : bool
        The decimal mark is a comma, and groups are parted by dots.

    Returns
    -------
    int or float or None
        An int if there is no decimal mark; None if the digits are grouped in no way people do, or above `LARGEST`.
    """
    text = printed.translate(_OTHER_MARKS)
    mark, point = (r"\.", ",") if comma else (",", ".")
    whole, found, decimals = text.partition(point)
    if mark[-1] in whole:
        if not _GROUPS[mark].fullmatch(whole):
            return None
        whole = whole.replace(mark[-1], "")
    plain = f"{whole}.{decimals}" if found else whole
    if not _PLAIN.fullmatch(plain) or len(whole) > _MOST_DIGITS or int(whole) > LARGEST:
        return None
    return float(plain) if found else int(plain)
