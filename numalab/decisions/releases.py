"""Which rules the kernel of a recording follows."""

from __future__ import annotations

import re

from numalab.kernel import Kernel, table

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

#: Stable kernels from which a doubling of the scan period clears the counts of locality too (e81ee0630837, merged in
#: September 2026 for stable): of 6.12 the release seen to do so; 6.1.192 was seen not to.
CLEARING = {(6, 12): 117}


def kernel_of(release: str) -> Kernel:
    """Return the newest kernel of the table that is not newer than a release.

    Raises
    ------
    ValueError
        No version in it, or one before all that are known.
    """
    version = _version(release)
    known = {tuple(int(part) for part in name.split(".")): name for name in table().releases}
    older = [numbers for numbers in known if numbers <= version[:2]]
    if not older:
        raise ValueError(f"kernel release {release!r}: expected {table().releases[0]} or newer")
    return Kernel(known[max(older)])


def clears_when_doubling(release: str) -> bool:
    """Tell whether a release clears the counts of locality also when it doubles the scan period."""
    major, minor, patch = _version(release)
    return patch >= CLEARING.get((major, minor), patch + 1)


def _version(release: str) -> tuple[int, int, int]:
    match = _VERSION.match(release)
    if match is None:
        raise ValueError(f"kernel release {release!r}: expected a version such as 6.12.117")
    return int(match[1]), int(match[2]), int(match[3] or 0)
