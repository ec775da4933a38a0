"""Random draws of docs/model.md, section 1."""

from __future__ import annotations

from math import log
from statistics import NormalDist

FORK, PHASE, WAKE, MARK, TOUCH, WRITE, BALANCE, GROUP, LOCK, ISOLATE, PICK, MEET, DOUBLE, DOUBLER, TURN = range(1, 16)

WORD = (1 << 64) - 1


def mix(x: int) -> int:
    """Section 1: splitmix64's finaliser."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def draw(seed: int, stream: int, a: int, b: int) -> int:
    """Section 1: 64 random bits named by (seed, stream, a, b)."""
    x = mix((seed * 0x9E3779B97F4A7C15 + stream) & WORD)
    x = mix(x ^ (a * 0xD1B54A32D192ED03 & WORD))
    return mix(x ^ (b * 0x8CB92BA72F3D8DD7 & WORD))


EXP_TABLE = [round(-log(0.5 + (j + 0.5) / 8192) * 10**6) for j in range(4096)]
NORMAL_TABLE = [round(NormalDist().inv_cdf((j + 0.5) / 4096) * 1000) for j in range(4096)]


def exponential(u: int) -> int:
    """Section 1, EXP: a unit exponential in millionths."""
    x = (u >> 11) + 1
    e = x.bit_length()  # x = f * 2^e with 0.5 <= f < 1
    j = (x * 8192 >> e) - 4096
    return max(0, (53 - e) * 693147 + EXP_TABLE[j])


def normal(u: int) -> int:
    """Section 1, NORMAL: a unit normal in thousandths."""
    return NORMAL_TABLE[u >> 52]


def truncated(a: int, b: int) -> int:
    """Preamble, a / b: signed division as in C, toward zero (b > 0)."""
    return a // b if a >= 0 else -(-a // b)


def ceiling(a: int, b: int) -> int:
    """Round a / b up (b > 0)."""
    return -(-a // b)
