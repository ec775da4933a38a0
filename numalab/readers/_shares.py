"""Shares of time of the lock of shared policies, as runs: one for each event that perf sampled."""

from __future__ import annotations

import numpy as np
import xarray as xr

from numalab import runs
from numalab.readers.perf_report import Report


def lock_shares(report: Report) -> xr.Dataset:
    """Make a dataset of the shares that `numalab.locks` has too; NaN where call chains would be needed."""
    area = [profile.area_share() for profile in report.profiles]
    waiting = [profile.waiting_share() for profile in report.profiles]
    variables = {
        name: np.array([np.nan if share is None else share for share in shares])
        for name, shares in (("lock_area_share", area), ("lock_waiting_share", waiting))
    }
    coords = {"event": ("run", [profile.event for profile in report.profiles])}
    params = {"reader": "perf-report", "file": report.source, "skipped_lines": len(report.skipped)}
    title = f"perf-report: {report.source}"
    return runs.build(variables, coords, title=title, source="measured", params=params)
