"""Text and tables too wide for a notebook's column: they scroll or wrap by cell, and are plain text elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from numalab.patch_threads import Claim
from numalab.patch_threads.claims import WORDS, band, claims_table, number

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


class ClaimsTable(Printed):
    """Published figures beside the model's, as a table of a page's width; elsewhere as text.

    Parameters
    ----------
    claims : sequence of Claim
    """

    def __init__(self, claims: Sequence[Claim]) -> None:
        super().__init__(claims_table(claims))
        self._claims = claims

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        head = ("claim", "published", "model", "5-95 %", "real kernel", "holds", "note")
        rows = [
            (c.claim, c.published, number(c.model), band(c), number(c.real), WORDS[c.holds], c.note)
            for c in self._claims
        ]
        top = "".join(f"<th scope='col' style='{_CELL}'>{html.escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td style='{_CELL}'>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return {
            "text/html": f"<table style='font-size:13px'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>",
            "text/plain": self.text,
        }
