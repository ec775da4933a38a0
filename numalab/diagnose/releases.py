"""Which of the kernels that a finding names is no news to the kernel it was found on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from numalab.diagnose.facts import Named
from numalab.diagnose.result import Finding
from numalab.kernel import table
from numalab.sides import split

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*(-rc\d)?")


def fitting(finding: Finding, datasets: Sequence[Named]) -> Finding:
    """Leave out kernels that are not newer than those of the runs with the finding."""
    kernels = _kernels(finding, datasets)
    if not kernels:
        return finding
    news = tuple((release, what) for release, what in finding.kernels if not all(has(one, release) for one in kernels))
    return replace(finding, kernels=news)


def has(kernel: str, release: str) -> bool:
    """Tell whether a kernel, named as in a run, has what came with a release.

    A release candidate may be without it, and so may a kernel with a rule switched.
    """
    asked, own = _RELEASE.match(release), _RELEASE.match(kernel)
    if asked is None or own is None or _rules_switched(kernel):
        return False
    candidate = own[3] is not None
    return (int(own[1]), int(own[2]), not candidate) >= (int(asked[1]), int(asked[2]), True)


def _rules_switched(kernel: str) -> bool:
    """Tell whether something other than a number was overridden: "3.17 move_in_swap=off"."""
    known = table().switches
    names = [word.partition("=")[0] for word in kernel.split()[1:]]
    return any(name in known and known[name].kind != "number" for name in names)


def _kernels(finding: Finding, datasets: Sequence[Named]) -> set[str]:
    """Return the kernels of the runs that a finding is about; of all runs of its input where it names none of them."""
    source = finding.evidence[0].source
    parts = [part for name, ds in datasets if name == source and "kernel" in ds.coords for part in split(ds)]
    own = [ds for label, ds in parts if label == finding.side] or [ds for _, ds in parts]
    return {str(name) for ds in own for name in ds["kernel"].values.tolist()}
