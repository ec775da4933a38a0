"""Pictures of model against real kernels: numbers small enough to check by hand."""

import math

import numpy as np
import pytest

from numalab.plots import style
from numalab.plots.judged import Effects, Ratios, Score, Widths, chance_band, courses
from numalab.validate import Row


def row(trace="S0_x", quantity="task_moves", **given):
    values = {
        "case": trace, "trace": trace, "quantity": quantity, "units": "1", "kind": "quantity", "real": 10.0,
        "real_low": 9.0, "real_high": 11.0, "n_real": 3, "model": 12.0, "low": 8.0, "high": 16.0, "ratio": 1.2,
        "inside": True, "strict": True, "sign": None, "fitted": False, "counted": True, "why": "",
    }  # fmt: skip
    return Row(**values | given)


ROWS = [
    row(),
    row(why="both as good as 0", real=0.0, model=0.0, low=0.0, high=0.0, ratio=None),
    row(inside=False, why="band wider than a factor of 3", low=2.0),
    row("S1_x", "local_share", inside=False, why="too high", model=40.0, low=38.0, high=44.0, ratio=4.0),
    row("S1_x", "local_share", real=0.0, ratio=None, inside=False, why="too high"),
    row("S1_x", "page_rate", counted=False, inside=False),
    row("S1_x: a -> b", kind="effect", sign=True, ratio=0.5),
    row("S1_x: a -> b", kind="effect", sign=False, inside=False, ratio=-2.0),
    row("S1_x: a -> b", kind="effect", sign=None, counted=False),
]


def test_the_score_counts_what_is_counted():
    picture = Score(ROWS)
    assert picture.text.splitlines()[2:] == [
        "S0         3       2       1   67 %",
        "S1         2       0       0    0 %",
        "all        5       2       1   40 %",
    ]
    assert picture.alt.startswith("2 of 5 rows are inside (40 %; 1 of them because both sides are as good as 0)")
    assert style.png(picture.figure).startswith(b"\x89PNG")
    assert Score([]).alt == "No row is counted."


def test_ratios_leave_nothing_out():
    picture = Ratios(ROWS)
    marks = sum(len(one.get_offsets()) for one in picture.figure.axes[0].collections)
    # five counted, one of them 0 on both sides; the one without a ratio stands at the right edge
    assert marks == 4
    assert "1 rows stand at the edges" in picture.alt
    assert [line.split()[0] for line in picture.text.splitlines()[2:]] == ["local_share", "task_moves"]


def test_chance_is_poissons():
    """Sums of e^-m m^k / k!, written out."""
    for mean in (0.7, 5.0, 9.5, 40.0):
        terms = np.array([math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(200)]).cumsum()
        assert chance_band(mean) == (int(np.argmax(terms >= 0.05)), int(np.argmax(terms >= 0.95)))


def test_widths_of_bands():
    picture = Widths(ROWS[:3])
    # 5 to 15 events at a mean of 10 is a factor of 3; 4 to 14 at 9 is more
    assert (chance_band(9), chance_band(10)) == ((4, 14), (5, 15))
    assert picture.edge == 10
    assert picture.alt.endswith("of 2 above, 1. 1 more rows have a median of 0 and no such ratio.")
    assert picture.text.splitlines()[4] == "10 to 30         2              1   50 %"


def test_effects_by_sign():
    picture = Effects(ROWS)
    assert picture.text.splitlines()[2] == "S1            2           1         1"
    assert picture.alt.startswith("1 of 2 effects have the right sign in the model, 1 of them the right size too")
    wrong = next(one for one in picture.figure.axes[0].collections if one.get_label().startswith("wrong"))
    assert wrong.get_offsets()[0][0] == -1


def test_real_runs_and_model_over_time():
    times = np.array([0.0, 1.0, 2.0])
    real = [(np.array([0.5, 1.5, 9.0]), np.array([[1.0, 5.0, 99.0]]))]
    model = (times, np.array([[0.0, 2.0, 4.0], [0.0, 4.0, 8.0], [np.nan, 6.0, 6.0]]))
    picture = courses({"pages": (real, model)}, 2.0)
    assert picture.alt == "pages: after 2.0 s 5 on the real kernel, 6 (4.2 to 7.8) in the model."
    assert picture.figure.axes[0].get_ylim()[1] == pytest.approx(1.08 * 8)
    last = picture.text.splitlines()[-1].split()
    assert last == ["2.0", "5", "6", "4.2", "7.8"]
    nothing = courses({"pages": (real, (times[:0], np.zeros((1, 0))))}, 2.0)
    assert nothing.alt == "pages: nothing yet."
