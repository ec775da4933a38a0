"""Readings of perf report: its tables, and the shares of the policy's lock as runs, one for each event sampled."""

from __future__ import annotations

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers import perf_report
from numalab.readers._reading import Found, Reading, Table
from numalab.readers.perf_report import FORMAT, Profile, Report

#: How many symbols are named in the summary.
_TOP = 5
#: Lines shorter than this, in percent of all samples, are left out of the table of chains.
_LEAST = 0.1


def read_perf_report(text: str, source: str, _release: str | None = None) -> Reading:
    """Read perf report: tables of symbols and of what their samples came through, and the shares of the policy lock."""
    report = perf_report.parse(text, source)
    found = [Found(0, f"{key}: {value}") for key, value in report.facts.items()]
    tables = []
    for profile in report.profiles:
        found += _describe(profile)
        tables += (
            [_symbols(profile), _chains(profile)] if any(s.chain for s in profile.symbols) else [_symbols(profile)]
        )
    understood, skipped = tuple(found), tuple(report.skipped)
    return Reading(source, FORMAT, report.lines, understood, skipped, lambda: lock_shares(report), tables=tuple(tables))


def _describe(profile: Profile) -> list[Found]:
    of = f" of {profile.event}" if profile.event else ""
    samples = f", {profile.samples:g} samples" if profile.samples is not None else ""
    found = [Found(profile.line, f"{len(profile.symbols)} symbols{of}{samples}")]
    largest = sorted(profile.symbols, key=lambda symbol: -symbol.own)[:_TOP]
    found += [Found(symbol.line, f"{symbol.name}: {symbol.own:g} % by itself") for symbol in largest if symbol.own]
    found.append(Found(0, f"spinning for any lock: {profile.spinning_share():.2%}"))
    for what, share in (
        ("in the look-up of a shared policy", profile.area_share()),
        ("spinning for its lock", profile.waiting_share()),
    ):
        chains = "not known without call chains (perf record -g)"
        found.append(Found(0, f"{what}: {chains if share is None else f'{share:.2%}'}"))
    return found


def _symbols(profile: Profile) -> Table:
    columns = ("symbol", "self", "children", "command", "object", "where")
    rows = tuple(
        (s.name, s.own, s.children, s.command or None, s.shared_object or None, "kernel" if s.kernel else "user")
        for s in profile.symbols
    )
    return Table(f"symbols {profile.event}".strip(), columns, rows, "percent", profile.line)


def _chains(profile: Profile) -> Table:
    rows = tuple(
        (symbol.name, name, round(symbol.whole * share, 4))
        for symbol in profile.symbols
        for name, share in symbol.through().items()
        if symbol.whole * share >= _LEAST
    )
    return Table(f"chains {profile.event}".strip(), ("symbol", "through", "share"), rows, "percent", profile.line)


def lock_shares(report: Report) -> xr.Dataset:
    """Make a dataset of the shares that `numalab.locks` has too; NaN where call chains would be needed."""
    area = [profile.area_share() for profile in report.profiles]
    waiting = [profile.waiting_share() for profile in report.profiles]
    variables = {
        name: np.array([np.nan if share is None else share for share in shares])
        for name, shares in (("lock_area_share", area), ("lock_waiting_share", waiting))
    }
    coords = {"event": ("run", [profile.event for profile in report.profiles])}
    params = {"reader": FORMAT, "file": report.source, "skipped_lines": len(report.skipped)}
    title = f"{FORMAT}: {report.source}"
    return runs.build(variables, coords, title=title, source="measured", params=params)
