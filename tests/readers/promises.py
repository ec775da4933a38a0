"""What reading promises of any bytes: its own errors only, values that can be shown, no line lost in silence."""

import json

from numalab.commands.read import to_dict
from numalab.readers import mixed

#: A line no tool prints.
STRANGE = "zqx what is this"


def own_error(error):
    """Whether an error is one of numalab's: one line that begins with the source."""
    return type(error).__module__.startswith("numalab.") and str(error).startswith("x:") and "\n" not in str(error)


def outcome(call):
    """Return what a call returns and None, or None and the error it raises."""
    try:
        return call(), None
    except ValueError as error:
        return None, error


def attempt(data):
    """Read bytes in every respect; None if they are refused as they should be."""
    text = mixed.decode(data)
    found, refusal = outcome(lambda: mixed.read_text(text, "x"))
    if found is None:
        assert own_error(refusal), repr(refusal)
        return None
    for make in (found.datasets, found.dataset):
        _, refusal = outcome(make)
        assert refusal is None or own_error(refusal), repr(refusal)
    json.dumps(to_dict(found, None), allow_nan=False)
    lines = text.split("\n")
    for skip in found.skipped:
        assert 1 <= skip.line <= len(lines)
    for part in found:
        for place in (*part.understood, *part.guessed):
            assert 0 <= place.line <= len(lines)
    return found


def check_strange_line(lines, at):
    """Put the strange line before line ``at`` (from 0): it is skipped, or the title of what is below it.

    A title is in the report or in a table.
    """
    found = attempt("\n".join([*lines[:at], STRANGE, *lines[at:]]).encode(errors="replace"))
    if found is None:
        return
    titles = [place.what for part in found for place in part.understood]
    titles += [head for table in found.tables for head in (table.name, *table.columns, *(row[0] for row in table.rows))]
    assert at + 1 in {skip.line for skip in found.skipped} or any(STRANGE in str(title) for title in titles), at + 1
