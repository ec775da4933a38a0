"""Which rules the kernel of a recording follows."""

from __future__ import annotations

from numalab.kernel import Kernel, nearest


def kernel_of(release: str) -> Kernel:
    """Return the newest kernel of the table that is not newer than a release.

    Raises
    ------
    ValueError
        No version in it, or one before all that are known.
    """
    return Kernel(nearest(release))
