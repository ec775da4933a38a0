"""All claims of all threads beside each other, how many hold, and the constants that were fitted.

A thread says what was fitted in ``Replay.results["fitted"]``: name -> {"value": number or text, "to": what it was
fitted to}. A row that a constant was fitted to has ``holds`` None and stands outside the count, as do rows that are
shown only.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from numalab.patch_threads import THREADS, Claim, Replay, replay
from numalab.text import table

WORDS = {True: "yes", False: "NO", None: "-"}


@dataclass(frozen=True)
class Fitted:
    """A constant that was fitted.

    Attributes
    ----------
    thread, name : str
    value : float or str
    to : str
        What it was fitted to.
    """

    thread: str
    name: str
    value: float | str
    to: str


def ready() -> list[str]:
    """Return the threads that can be replayed."""
    return [thread.name for thread in THREADS.values() if thread.ready]


def stored(names: Sequence[str]) -> list[Replay]:
    """Return the stored results of threads; what is computed exactly is computed anew."""
    return [replay(name, stored=True) for name in names]


def fitted(replays: Sequence[Replay]) -> list[Fitted]:
    """Return the fitted constants of threads."""
    return [
        Fitted(one.thread, name, facts["value"], facts["to"])
        for one in replays
        for name, facts in one.results.get("fitted", {}).items()
    ]


def counted(claims: Sequence[Claim]) -> tuple[int, int]:
    """Count the rows that are judged, and of these the ones that hold: (hold, judged)."""
    judged = [one.holds for one in claims if one.holds is not None]
    return sum(judged), len(judged)


def number(value: float | None) -> str:
    """Print a number of a claim; infinite times as "never"."""
    if value is None:
        return ""
    return "never" if math.isinf(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def band(one: Claim) -> str:
    """Print the 90 % band of a claim."""
    return f"{number(one.low)} .. {number(one.high)}" if one.low is not None else ""


def claims_table(claims: Sequence[Claim], *, tolerance: bool = False) -> str:
    """Print claims as a table, why those that do not hold below it; with ``tolerance`` what counts as holding."""
    why: dict[str, int] = {}
    rows = []
    for one in claims:
        note = one.note
        if note and one.holds is False:
            note = f"see {why.setdefault(note, len(why) + 1)}"
        allowed = [one.tolerance] if tolerance else []
        numbers = [number(one.model), band(one), number(one.real)]
        rows.append([one.claim, one.published, *numbers, *allowed, WORDS[one.holds], note])
    allowed = ["tolerance"] if tolerance else []
    text = table(["claim", "published", "model", "5-95 %", "real", *allowed, "holds", "note"], rows, right=(2, 3, 4))
    if why:
        text += "\n\nWhat does not hold, and why:"
    for note, position in why.items():
        text += "\n" + textwrap.fill(f"{position}. {note}", 116, subsequent_indent="   ")
    return text


def summary(claims: Sequence[Claim]) -> str:
    """Print how many rows hold, by thread and in all, and how many of the judged ones no mail says."""
    rows = []
    for name in [*dict.fromkeys(one.thread for one in claims), None]:
        own = [one for one in claims if name in (one.thread, None)]
        hold, judged = counted(own)
        share = f"{100 * hold / judged:.0f} %" if judged else ""
        others_hold, others = counted([one for one in own if not one.in_mail])
        beside = f"{others_hold} of {others}" if others else ""
        rows.append([name or "all", str(len(own)), str(judged), str(hold), share, beside])
    return table(["thread", "rows", "judged", "hold", "share", "of them not in the mail"], rows)


def fitted_table(constants: Sequence[Fitted]) -> str:
    """Print fitted constants."""
    rows = [
        [one.thread, one.name, one.value if isinstance(one.value, str) else number(one.value), one.to]
        for one in constants
    ]
    return table(["thread", "constant", "value", "fitted to"], rows, right=(2,))
