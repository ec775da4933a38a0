"""Bars in parts, pictures beside each other, and counters as rates."""

import numpy as np
import pytest

from numalab import plots
from numalab.plots import PictureError
from tests.plots.test_pictures import build


def counted(*runs):
    return build(len(runs), numa_pages_migrated=(("run", "time"), np.array(runs, np.int64)))


def test_parts_are_shares_of_their_bar():
    picture = plots.Parts("Of all", {"a": {"x": 1, "y": 3}, "b": {"x": 0, "y": 0}})
    assert picture.shares == {"a": {"x": 25, "y": 75}, "b": {}}
    assert picture.alt == "Of all. a: x 25 %, y 75 %. b: nothing yet."
    assert picture.text.splitlines()[-2:] == ["a  25.0  75.0", "b     -     -"]
    bars = picture.figure.axes[0].patches
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0, 25), (25, 75)]


def test_no_bar_is_an_error():
    with pytest.raises(PictureError, match="expected at least one bar"):
        plots.Parts("Of all", {})


def test_pictures_beside_each_other():
    left = plots.Parts("Left", {"a": {"x": 1}})
    right = plots.rate(counted([0, 1000, 4000]), "numa_pages_migrated", "pages")
    picture = plots.Beside([left, right])
    first, second = picture.figure.axes
    assert len(first.patches) == 1
    assert second.get_lines()[0].get_ydata().tolist() == [1, 3]
    assert picture.alt == f"{left.alt} {right.alt}"
    assert picture.text == f"{left.text}\n\n{right.text}"


def test_rates_are_between_samples():
    """Samples at 0, 1 and 2 s: 1000, then 3000 pages a second; of three runs the median."""
    one = plots.rate(counted([0, 1000, 4000]), "numa_pages_migrated", "pages", seconds=5)
    assert one.alt == "3.17: 3.0 thousand pages a second at 2.0 s."
    assert one.end == 5
    three = plots.rate(counted([0, 0, 4000], [0, 0, 5000], [0, 0, 9000]), "numa_pages_migrated", "pages")
    assert three.alt == "3.17: 5.0 thousand pages a second at 2.0 s (median of 3 runs)."


def test_a_run_that_has_just_begun():
    begun = counted([0, 0, 0]).isel(time=slice(1))
    picture = plots.rate(begun, "numa_pages_migrated", "pages", seconds=5)
    assert picture.alt == "3.17: nothing counted yet."
    assert picture.figure.axes[0].get_xlim() == (0, 5)
