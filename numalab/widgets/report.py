"""What was read and what was found, as HTML for a page; the numbers beside the words they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from numalab.diagnose import Diagnosis, Evidence, Finding
from numalab.readers._reading import Found, Reading, Readings, Table, Value
from numalab.readers._text import Skipped

#: A sign and a word for each kind, so that no colour is needed.
_SIGNS = {"illness": "✗ illness", "information": "i information", "verdict": "= verdict"}
#: Longer tables are counted, not shown.
_MOST_ROWS = 40
_CELL = "padding:1px 8px; text-align:left; vertical-align:top"
_NUMBER = "padding:1px 8px; text-align:right; vertical-align:top"


def problem(text: str) -> str:
    """Return what went wrong, in one paragraph."""
    return f"<p role='status' aria-live='polite' style='line-height:1.4'>✗ {escape(text)}</p>"


def lined(html: str) -> str:
    """Set lines as close as in the text of a notebook."""
    return f"<div style='line-height:1.4'>{html}</div>"


# ------------------------------------------------------------------------------------ what was read
def readings_html(every: Sequence[Readings]) -> str:
    """Return what was understood, guessed and skipped of all inputs, and their tables folded away."""
    parts = [_reading(one) for readings in every for one in readings]
    skipped = [block for readings in every for block in readings.skipped_blocks]
    return "".join(parts) + _list("skipped", map(_block, skipped) if skipped else ["nothing"])


def _reading(one: Reading) -> str:
    lists = {"understood": one.understood, "guessed": one.guessed, "missing": one.missing}
    told = "".join(_list(title, map(_found, found)) for title, found in lists.items() if found)
    tables = "".join(map(_table, one.tables))
    folded = f"<details><summary>its tables</summary>{tables}</details>" if tables else ""
    head = f"{escape(one.source)}: <b>{escape(one.format)}</b>, {one.lines:,} line{'s' if one.lines > 1 else ''}"
    return f"<p style='margin:4px 0'>{head}</p>{told}{folded}"


def _found(found: Found) -> str:
    where = ", ".join(filter(None, (found.file, f"line {found.line}" if found.line else "")))
    return f"{where}: {found.what}" if where else found.what


def _block(block: Sequence[Skipped]) -> str:
    first, last = block[0], block[-1]
    if not first.line:
        return f"{first.file}: {first.reason}"
    where = f"line {first.line}" if first.line == last.line else f"lines {first.line}-{last.line}"
    text = first.text.strip()
    quoted = repr(text if len(text) <= 50 else text[:50] + "...")
    more = " and so on" if len(block) > 1 else ""
    return f"{first.file + ', ' if first.file else ''}{where}: {quoted}{more}: {first.reason}"


def _list(title: str, items: Iterable[str]) -> str:
    points = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<div style='margin-left:8px'>{title}:<ul style='margin:0'>{points}</ul></div>"


def _table(one: Table) -> str:
    title = f"{one.name} ({one.units})" if one.units else one.name
    if len(one.rows) > _MOST_ROWS:
        return f"<p>{escape(title)}: {len(one.rows):,} rows of {len(one.columns)} columns</p>"
    return f"<p style='margin:4px 0'>{escape(title)}</p>" + rows_html(
        one.columns, [[_cell(value) for value in row] for row in one.rows]
    )


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Return a number for reading: whole ones with separators, others to four digits."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10_000 else f"{value:.4g}"


def rows_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned right."""
    styles = [_CELL] + [_NUMBER] * (len(head) - 1)
    top = "".join(
        f"<th scope='col' style='{style}'>{escape(cell)}</th>" for cell, style in zip(head, styles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td style='{style}'>{escape(cell)}</td>" for cell, style in zip(row, styles, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        "<div tabindex='0' style='overflow-x:auto'><table style='font-size:13px; line-height:1.3'>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# ------------------------------------------------------------------------------------ what was found
def diagnosis_html(found: Diagnosis, notebooks: Mapping[str, str]) -> str:
    """Return the findings with their numbers and what to try.

    Parameters
    ----------
    found : Diagnosis
    notebooks : mapping of str to str
        Patch thread -> the notebook that explains it.
    """
    parts = [_finding(one, notebooks) for one in found.findings]
    parts += [_list("looked at", found.looked_at)] if found.looked_at else []
    parts += [_list("remarks", found.remarks)] if found.remarks else []
    return f"<div role='status' aria-live='polite'>{''.join(parts)}</div>"


def _finding(one: Finding, notebooks: Mapping[str, str]) -> str:
    side = f" ({escape(one.side)})" if one.side else ""
    head = f"{_SIGNS[one.kind]}: {one.id}{side}"
    sure = f" Confidence: {one.confidence}." if one.confidence else ""
    evidence = rows_html(["number", "value", "where"], [_evidence(each) for each in one.evidence])
    told = [
        f"<h4 style='margin:6px 0 0'>{head}</h4>",
        f"<p style='margin:2px 0'>{escape(one.says)}{sure}</p>",
        f"<details open><summary>the numbers</summary>{evidence}</details>",
        f"<p style='margin:2px 0'>Why it matters: {escape(one.why)}</p>" if one.why else "",
        _list("try", one.attempts) if one.attempts else "",
        *(f"<p style='margin:2px 0'>Kernel {escape(release)}: {escape(what)}</p>" for release, what in one.kernels),
        f"<p style='margin:2px 0'>Explained in notebook {notebooks[one.thread]}</p>" if one.thread in notebooks else "",
    ]
    return f"<div style='border-left:4px solid #888888; padding-left:8px; margin:6px 0'>{''.join(told)}</div>"


def _evidence(one: Evidence) -> list[str]:
    value = "missing" if one.value is None else number(one.value)
    units = "" if one.units in ("", "1") or one.value is None else f" {one.units}"
    return [one.what, value + units, f"{one.source}, line {one.line}" if one.line else ""]
