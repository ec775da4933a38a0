"""Random draws against section 1 of docs/model.md, written here a second time in plain Python."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from numalab.model import draws

WORD = (1 << 64) - 1


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def plain_draw(seed: int, stream: int, a: int, b: int) -> int:
    named = mix(mix(seed * 0x9E3779B97F4A7C15 + stream & WORD) ^ (a * 0xD1B54A32D192ED03 & WORD))
    return mix(named ^ (b * 0x8CB92BA72F3D8DD7 & WORD))


def plain_exponential(u: int) -> int:
    x = (u >> 11) + 1
    e = x.bit_length()  # x / 2**e lies in [0.5, 1)
    j = (x * 8192 >> e) - 4096
    return max(0, (53 - e) * 693147 + round(-math.log(0.5 + (j + 0.5) / 8192) * 1e6))


def plain_normal(u: int) -> int:
    return round(NormalDist().inv_cdf(((u >> 52) + 0.5) / 4096) * 1000)


#: (seed, stream, a, b): 64 bits, exponential, normal
GOLDEN = {
    (0, draws.FORK, 0, 0): (0x71CAC37448049CE4, 810831, -140),
    (1, draws.MARK, 0, 0): (0x8F91A895212B8973, 578298, 153),
    (1, draws.MARK, 1, 0): (0x4E6F23A25C11202E, 1182975, -506),
    (1, draws.MARK, 0, 1): (0x87F4B296BE716A9D, 632867, 78),
    (1, draws.TOUCH, 0, 0): (0x0AA785E55582D783, 3179122, -1732),
    (2, draws.MARK, 0, 0): (0x50E5F4361EF4DAB2, 1151983, -479),
    (12345, draws.BALANCE, 77, 2**32): (0xDB6BA9B6A0DE21D4, 154181, 1067),
    (2**40, draws.PICK, 159, 10**7): (0x9B29403CE91D4200, 500644, 269),
}


def u64(*values: int) -> draws.Draws:
    return np.array(values, np.uint64)


def test_streams_have_the_numbers_of_the_page() -> None:
    names = ["FORK", "PHASE", "WAKE", "MARK", "TOUCH", "WRITE", "BALANCE", "GROUP", "LOCK", "ISOLATE", "PICK"]
    assert [getattr(draws, name) for name in names] == list(range(1, 12))


def test_mixing_is_splitmix64() -> None:
    """The published outputs of splitmix64 seeded with 0: its state is a multiple of the constant of the seed."""
    assert draws.stream_key([1, 2, 3], 0).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(("names", "values"), GOLDEN.items())
def test_golden_values(names: tuple[int, int, int, int], values: tuple[int, int, int]) -> None:
    bits, unit, bell = values
    u = draws.draw(*names)
    assert (int(u[0]), int(draws.exponential(u)[0]), int(draws.normal(u)[0])) == (bits, unit, bell)
    assert (plain_draw(*names), plain_exponential(bits), plain_normal(bits)) == (bits, unit, bell)
    assert int(draws.permille(u)[0]) == bits % 1000


def test_draws_broadcast_and_equal_the_plain_ones() -> None:
    seeds, a, b = np.array([[0], [7], [2**40]]), np.array([[0, 1, 5, 10**6]]), np.array([[3]])
    got = draws.draw(seeds, draws.WAKE, a, b)
    assert got.shape == (3, 4)
    assert got.tolist() == [[plain_draw(int(s), 3, int(x), 3) for x in a[0]] for s in seeds[:, 0]]
    keyed = draws.draw_keyed(draws.stream_key(seeds, draws.WAKE), a, b)
    assert keyed.tolist() == got.tolist()


def test_a_draw_depends_on_its_names_only() -> None:
    """One of many is the same as alone; other streams and swapped names give something else."""
    many = draws.draw(5, draws.MARK, np.arange(1000), 9)
    assert many[321] == draws.draw(5, draws.MARK, 321, 9)[0]
    assert len(set(many.tolist())) == 1000
    assert draws.draw(5, draws.TOUCH, 321, 9)[0] != many[321]
    assert draws.draw(5, draws.MARK, 9, 321)[0] != many[321]


def test_variates_equal_the_plain_ones() -> None:
    u = draws.draw(1, draws.MARK, np.arange(3000), 0)
    assert draws.exponential(u).tolist() == [plain_exponential(int(x)) for x in u]
    assert draws.normal(u).tolist() == [plain_normal(int(x)) for x in u]


def test_ends_of_the_exponential() -> None:
    """All ones: x = 2**53 = 0.5 * 2**54, so ln 2 * -1 + TABLE[0] = -693147 + 693025 < 0, cut to 0. All zeros:
    x = 1 = 0.5 * 2**1: 52 * 693147 + 693025. Last before the top: TABLE[4095] = -ln(1 - 1/16384) = 61e-6."""
    top, below = WORD, ((1 << 53) - 2) << 11
    assert draws.exponential(u64(top, below, 0)).tolist() == [0, 61, 52 * 693147 + 693025]


def test_ends_and_middle_of_the_normal() -> None:
    """2048 of 4096 steps lie below zero; the outermost step is the quantile 1/8192: 3.668, by the tail's integral."""
    half = 1 << 63
    assert math.erfc(3.6675 / math.sqrt(2)) / 2 > 1 / 8192 > math.erfc(3.6685 / math.sqrt(2)) / 2
    assert draws.normal(u64(0, WORD)).tolist() == [-3668, 3668]
    assert draws.normal(u64(half - 1, half)).tolist() == [0, 0]
    assert draws.normal(u64(1 << 62)).tolist() == [-674]  # just above the lower quartile, -0.6745


def test_moments() -> None:
    """Within four standard errors of a sample of n: exponential mean 1 and variance 1 (fourth central moment 9),
    normal mean 0 and variance 1 (fourth moment 3); a tenth of 1000 values in each tenth of a thousand."""
    n = 200_000
    u = draws.draw(3, draws.MARK, np.arange(n), 1)
    unit, bell = draws.exponential(u) / 1e6, draws.normal(u) / 1e3
    error = 4 / math.sqrt(n)
    assert abs(unit.mean() - 1) < error
    assert abs(unit.var() - 1) < error * math.sqrt(8)
    assert abs(bell.mean()) < error
    assert abs(bell.var() - 1) < error * math.sqrt(2) + 5e-4  # the tails end at 3.67: 3e-4 of it
    assert abs((unit > 1).mean() - math.exp(-1)) < error
    tenths = np.bincount(draws.permille(u) // 100, minlength=10) / n
    assert tenths.sum() == 1
    assert np.abs(tenths - 0.1).max() < error
