"""The lock of thread S3 at the mail's scale: what its three figures say about it, and what they cannot say."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalab import _data
from numalab.locks import Lock, fit_positive, solve

#: The part of a look-up outside the lock, in lengths of the part inside. Counted in cache lines fetched from another
#: node: inside one (the policy's count), outside two (the lock, and the count when it is dropped); half or twice that.
OUTSIDE = (1.0, 4.0)
#: One request for the lock's cache line, in lengths of the part inside: at most as long as that, which holds one.
REQUEST = (1e-4, 1.0)
#: Published shares of time span this range of the part inside, in lengths of a rank's cycle without waiting.
SECTION = (5e-4, 2e-2)


def published() -> dict[str, Any]:
    """Return the figures of the mail, as in ``data/published/policy_lock.toml``."""
    return tomllib.loads(_data.read_text("published", "policy_lock.toml"))


@dataclass(frozen=True)
class Constants:
    """Times of a look-up, in lengths of the time between two look-ups of a rank.

    Attributes
    ----------
    section : with the lock held
    request : one request for the lock's cache line
    outside : the rest of the look-up, which holds up nobody
    """

    section: float
    request: float
    outside: float

    def lock(self, kind: str, think_s: float = 1.0) -> Lock:
        """Return one of `numalab.locks.KINDS` with these times; an atomic takes one request for its cache line."""
        times = {"handoff_s": self.request} if kind in ("ticket", "mcs") else {"atomic_s": self.request}
        scaled = {name: value * think_s for name, value in times.items()}
        return Lock(kind, think_s, self.section * think_s, self.outside * think_s, **scaled)


@lru_cache(maxsize=1)
def fit() -> Constants:
    """Fit the three times to the three published shares (``middle`` of each)."""
    shares = published()["shares"]
    ranks = [one["ranks"] for one in shares]
    goal = _logit(np.array([one["middle"] for one in shares]))

    def misfit(times: NDArray[np.float64]) -> NDArray[np.float64]:
        return _logit(solve(Constants(*times).lock("ticket"), ranks).area_share) - goal

    return Constants(*fit_positive(misfit, (2e-3, 5e-6, 7e-3)).tolist())


def _logit(share: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.log(share) - np.log1p(-share)
    return result


@dataclass(frozen=True)
class Plausible:
    """Every ticket lock with times in `SECTION`, `REQUEST`, `OUTSIDE`, evenly over logarithms (`OUTSIDE`: evenly).

    Attributes
    ----------
    share : time in the area at each of the mail's ranks: (outside, request, section, published share)
    section, request : the times of each, in lengths of a rank's cycle without waiting: (section,), (request,)
    """

    share: NDArray[np.float64]
    section: NDArray[np.float64]
    request: NDArray[np.float64]

    def agrees(self, which: Sequence[int]) -> NDArray[np.bool_]:
        """Tell which locks give what the mail's words can mean, for some of its shares."""
        words = np.array([one["reading"] for one in published()["shares"]])
        inside = np.logical_and(self.share >= words[:, 0], self.share <= words[:, 1])
        result: NDArray[np.bool_] = np.all(inside[..., list(which)], axis=-1)
        return result


@lru_cache(maxsize=1)
def plausible() -> Plausible:
    """Solve all plausible locks: a coarse grid, between whose sections shares are interpolated."""
    ranks = np.array([one["ranks"] for one in published()["shares"]])
    request, coarse = np.geomspace(*REQUEST, 33), np.geomspace(*SECTION, 90)
    section = np.geomspace(*SECTION, 90 * 60)
    busy = np.array(
        [
            [1 - solve(Lock("ticket", 1.0, s, handoff_s=r * s), ranks).throughput / ranks for s in coarse]
            for r in request
        ]
    )
    fine = np.empty((len(request), len(section), len(ranks)))
    for i in range(len(request)):
        for j in range(len(ranks)):
            fine[i, :, j] = np.interp(np.log(section), np.log(coarse), _logit(busy[i, :, j]))
    away = 1 / (1 + np.exp(fine))
    # Of the time away from the lock a part is still the look-up: the area's share is all but the time between.
    outside = np.linspace(*OUTSIDE, 9)
    think = 1 - outside[:, None] * section
    return Plausible(1 - away[None] * think[:, None, :, None], section, request)


@dataclass(frozen=True)
class Range:
    """A median, and 5 and 95 % of the locks considered."""

    middle: float
    low: float
    high: float

    @property
    def says_something(self) -> bool:
        """Whether it is narrower than a factor of 3."""
        return self.high <= 3 * self.low


def _range(values: NDArray[np.float64]) -> Range:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return Range(float(middle), float(low), float(high))


def predict(which: int) -> Range:
    """Return one of the published shares, 0, 1, 2, from the locks that agree with the two others."""
    others = [i for i in range(3) if i != which]
    every = plausible()
    return _range(every.share[every.agrees(others)][:, which])


def ceiling(at: int = 1, of: int = 2) -> float:
    """Return the largest share of time possible at one published number of ranks if throughput never fell with ranks.

    Whatever the lock, ranks n with a share w in the area do n (1 - w) look-ups per time between two of them. If that
    does not fall from ``at`` to ``of`` ranks, the share at the latter is at most 1 - n1 (1 - w1) / n2. A constant
    service time is such a lock.
    """
    first, second = published()["shares"][at], published()["shares"][of]
    return float(1 - first["ranks"] * (1 - first["reading"][0]) / second["ranks"])


def constant_service() -> tuple[float, float]:
    """Return the least misfit any constant service time can have: (share at 512, share at 2048).

    The section is the shortest that gives the published share at the largest number of ranks, or the one that gives
    it at the middle one; the first number is the share at 512 of the former, the second that at 2048 of the latter.
    """
    _, middle, large = published()["shares"]

    def section(ranks: int, share: float) -> float:
        low, high = SECTION[0] / 10, SECTION[1] * 10
        for _ in range(100):
            mid = math.sqrt(low * high)
            low, high = (mid, high) if _constant(mid, ranks) < share else (low, mid)
        return high

    first = _constant(section(large["ranks"], large["reading"][0]), middle["ranks"])
    second = _constant(section(middle["ranks"], middle["reading"][1]), large["ranks"])
    return first, second


def _constant(section: float, ranks: int) -> float:
    return float(solve(Lock("ticket", 1.0, section), ranks).area_share[0])


def knee(constants: Constants) -> tuple[int, float]:
    """Return the ranks at which most look-ups are done, and how many times as many as on the mail's whole machine."""
    ranks = np.arange(50, 1500, 2)
    done = solve(constants.lock("ticket"), ranks).throughput
    whole = solve(constants.lock("ticket"), published()["machine"]["cores"]).throughput[0]
    return int(ranks[done.argmax()]), float(done.max() / whole)


@lru_cache(maxsize=1)
def knees() -> tuple[Range, Range]:
    """Return the range of `knee` over the plausible locks that agree with all three published shares."""
    every = plausible()
    places = np.argwhere(every.agrees([0, 1, 2]))
    some = places[:: max(1, len(places) // 40)]
    outside = np.linspace(*OUTSIDE, 9)
    found = []
    for o, r, s in some:
        section = every.section[s]
        think = 1 - outside[o] * section
        found.append(knee(Constants(section / think, every.request[r] * section / think, outside[o] * section / think)))
    at, fall = np.array(found).T
    return _range(at), _range(fall)


def lookup_rate(faults_per_s: float, mappings: int, windows_per_s: float) -> float:
    """Return the look-ups of one rank, 1/s, from the kernel's call sites.

    An allocating page fault on the file looks its policy up once, and so does each scan window of NUMA balancing for
    each of the file's mappings in it. Hint faults add none: mappings of tmpfs without a policy are not scanned.
    """
    return faults_per_s + mappings * windows_per_s
