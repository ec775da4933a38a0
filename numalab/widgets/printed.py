"""Text and tables too wide for a notebook's column: they scroll or wrap by cell, and are plain text elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from numalab.patch_threads import Claim
from numalab.patch_threads.claims import WORDS, band, claims_table, number
from numalab.text import table

_CELL = "text-align:left; vertical-align:top; padding:2px 8px"


class Printed:
    """Text that keeps its columns: a wide line scrolls in place of being broken.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        # tabindex: what scrolls must be reachable by keyboard
        style = "white-space:pre; overflow-x:auto; font-size:12px; line-height:1.3"
        return {
            "text/html": f"<pre tabindex='0' style='{style}'>{html.escape(self.text)}</pre>",
            "text/plain": self.text,
        }


class Table(Printed):
    """A table whose cells wrap, so that it is as wide as the page; elsewhere text.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequence of str
    text : str, optional
        The same as plain text; default: laid out by :func:`numalab.text.table`.
    note : str
        What stands below it.
    """

    def __init__(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], text: str | None = None, note: str = ""
    ) -> None:
        plain = table(head, rows, right=()) if text is None else text
        super().__init__(f"{plain}\n{note}" if note else plain)
        self._head, self._rows, self._note = head, rows, note

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        top = "".join(f"<th scope='col' style='{_CELL}'>{html.escape(cell)}</th>" for cell in self._head)
        body = "".join(
            "<tr>" + "".join(f"<td style='{_CELL}'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows
        )
        made = f"<table style='font-size:13px'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        note = f"<p>{html.escape(self._note)}</p>" if self._note else ""
        return {"text/html": made + note, "text/plain": self.text}


class ClaimsTable(Table):
    """Published figures beside the model's, as a table of a page's width; elsewhere as text.

    Parameters
    ----------
    claims : sequence of Claim
    """

    def __init__(self, claims: Sequence[Claim]) -> None:
        rows = [
            (c.claim, c.published, number(c.model), band(c), number(c.real), WORDS[c.holds], c.note) for c in claims
        ]
        head = ("claim", "published", "model", "5-95 %", "real kernel", "holds", "note")
        super().__init__(head, rows, claims_table(claims))
