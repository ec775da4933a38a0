"""Scan windows: how far apart those of a process may be (docs/model.md 4.3)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from numalab.layout import Ints

PAGES_PER_MB = 256


def bounds(par: SimpleNamespace, rss: Ints) -> tuple[Ints, Ints]:
    """Return the shortest scan period of processes, and the longest as the sysctl has it: (R, M) ms each.

    Parameters
    ----------
    par : parameters, (R,) each
    rss : (M,) pages of each process
    """
    size = par.scan_size_mb
    windows = np.maximum(1, -(-rss[None, :] // np.maximum(1, size * PAGES_PER_MB)[:, None]))
    fastest = par.max_scan_window_mbps // np.maximum(1, size)
    floor = np.where(fastest > 1, 1000 // np.maximum(1, fastest), 1000)
    shortest = np.maximum(floor[:, None], par.scan_period_min_ms[:, None] // windows)
    return shortest, par.scan_period_max_ms[:, None] // windows
