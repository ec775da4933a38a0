"""Lines of a mail or paste, freed from what mail programs do to them; each keeps the number it had."""

import quopri
import re
from dataclasses import dataclass

_QUOTED = re.compile(r"[ \t]*(?:>[ \t]?)+")
#: Marks of a message saved as it travels: "=C2=B1" is "±", "=20" a blank at the end of a line.
_ENCODED = re.compile(r"=C2=B1|=B1|=3D|=20$", re.MULTILINE)
_SOFT_BREAK = re.compile(r"[^=]=$")
#: A mail stored as one line keeps its quote marks, and they tell where lines began.
_FLAT = 160
_LOST_BREAK = re.compile(r" (?=>+ )")


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes
    ----------
    number : int
        From 1, in the text as it came.
    text : str
        What is left of it.
    joined : bool
        Cut from a mail whose line ends were lost, so more may follow where the line once ended.
    """

    number: int
    text: str
    joined: bool = False


def lines(text: str) -> list[Line]:
    """Cut a text into lines without quote marks, tabs and line ends.

    Parameters
    ----------
    text : str
        Quoted mails ("> "), mails in quoted-printable, and mails whose line ends became blanks are undone.

    Returns
    -------
    list of Line
        Blank lines are kept, empty.
    """
    encoded = _ENCODED.search(text) is not None
    found: list[Line] = []
    start, held = 0, ""
    every = text.split("\n")
    for number, raw in enumerate(every, 1):
        line = raw.rstrip("\r")
        start = start if held else number
        if encoded and number < len(every) and _SOFT_BREAK.search(line):
            held += line[:-1]
            continue
        whole = held + line
        held = ""
        if encoded:
            whole = quopri.decodestring(whole.encode()).decode("utf-8", errors="replace")
        flat = len(whole) > _FLAT and len(_LOST_BREAK.findall(whole)) > 2
        for piece in _LOST_BREAK.split(whole) if flat else [whole]:
            quoted = _QUOTED.match(piece)
            found.append(Line(start, piece[quoted.end() if quoted else 0 :].expandtabs().rstrip(), flat))
    return found
