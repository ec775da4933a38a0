"""Pictures of runs with error bars: numbers small enough to check by hand."""

import math

import numpy as np
import pytest

from numalab.plots import PictureError, style
from numalab.plots.errorbars import Bars, Response, Versus, spread


def test_spread_by_hand():
    """1, 2, 3, 6: mean 3, squares 4 + 1 + 0 + 9 = 14; t(0.975) at 3 degrees is 3.182."""
    one = spread(np.array([1.0, 2.0, np.nan, 3.0, 6.0]))
    assert (one.n, one.without, one.mean) == (4, 1, 3.0)
    assert one.deviation == pytest.approx(math.sqrt(14 / 3))
    assert one.error == pytest.approx(math.sqrt(14 / 3) / 2)
    assert one.reach == pytest.approx(3.182 * math.sqrt(14 / 3) / 2, rel=1e-3)
    alone = spread(np.array([5.0]))
    assert (alone.mean, alone.n) == (5.0, 1)
    assert math.isnan(alone.reach)
    assert math.isnan(spread(np.array([np.nan])).mean)


def test_runs_without_a_value_are_drawn_and_told():
    picture = Response({"64": np.array([1.0, 2.0, 3.0]), "256": np.array([4.0, np.nan, 6.0])}, "scan_size_mb", "time")
    marks = {line.get_label(): line for line in picture.figure.axes[0].lines}
    assert len(marks["a run without a value"].get_xdata()) == 1
    assert max(marks["a run without a value"].get_ydata()) > 6
    assert picture.alt.startswith("Mean time by scan_size_mb, with its 95 % interval: 64: 2 ± 2.5 and 256: 5 ± 13.")
    assert picture.alt.endswith("1 runs have no value and are in no mean.")
    assert picture.text.splitlines()[3].split()[:4] == ["256", "2", "of", "3"]
    assert style.png(picture.figure).startswith(b"\x89PNG")
    with pytest.raises(PictureError, match="at least one group"):
        Response({}, "x", "y")


def test_three_kinds_of_bars():
    picture = Bars(np.array([1.0, 2.0, 3.0, 6.0, 3.0]), "time", few=4)
    few, every = picture.text.splitlines()[2:]
    assert few.split()[-4:] == ["3", "2.16", "1.08", "3.44"]
    assert every.startswith("all 5 runs")
    assert "first 4 runs: mean 3, standard deviation 2.2, standard error 1.1, 95 % interval ± 3.4" in picture.alt
    assert len(picture.figure.axes[0].get_xticks()) == 2


def test_a_difference_and_none():
    apart = Versus({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([11.0, 12.0, 13.0])}, "time")
    assert apart.verdict.startswith("Difference +10.00, 95 % interval +7.73 to +12.27")
    assert apart.verdict.endswith("more than noise.")
    assert apart.alt.startswith("Mean time: a 2.00 (3 runs) and b 12.00 (3 runs).")
    alike = Versus({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([1.5, 2.0, 2.5])}, "time", top=5, reach=4)
    assert alike.verdict.endswith("no more than noise can do.")
    assert [ax.get_xlim() for ax in alike.figure.axes][1] == (-4, 4)
    single = Versus({"a": np.array([1.0]), "b": np.array([2.0])}, "time")
    assert "nothing can be said" in single.text
