"""Where an array lies, how often its pages move, and what forked readers got done: numbers by hand."""

import numpy as np
import pytest
import xarray as xr

from numalab.plots import PictureError
from numalab.plots.arrays import page_moves, pages_on, whereabouts
from numalab.plots.forkorder import ForkOrder


def run_of(pages, migrated=None):
    """Make a run: pages of one region on each node, one row a second; and migrations until then."""
    table = np.array(pages)[None, :, None, :]
    variables = {"pages": (("run", "time_1", "region", "node"), table)}
    if migrated is not None:
        variables["numa_pages_migrated"] = (("run", "time"), np.array([migrated]))
    coords = {"time_1": np.arange(len(pages), dtype=float), "node": np.arange(table.shape[3])}
    if migrated is not None:
        coords["time"] = np.arange(len(migrated), dtype=float)
    return xr.Dataset(variables, coords)


HOPS = run_of([[10, 0, 0], [10, 0, 0], [2, 8, 0], [4, 3, 3], [0, 10, 0], [0, 4, 6]], [0, 0, 8, 14, 24, 30])
STAYS = run_of([[10, 0, 0]] * 6, [0] * 6)


def test_who_holds_the_array():
    """Half or more: node 0, then 1, nobody, 1 again, which is no change, and 2."""
    (one,) = whereabouts(HOPS).sides
    assert one.holders == [0, 1, 2]
    assert one.share[2].tolist() == [20, 80, 0]


def test_whereabouts_in_words_and_numbers():
    picture = whereabouts({"a": HOPS, "b": STAYS})
    assert picture.panels == 2
    assert picture.alt == (
        "a: most pages are on node 0 at first; 2 times another node has most of them; after 5.0 s node 2 has 60 %. "
        "b: most pages are on node 0 all the time."
    )
    rows = [line.split() for line in picture.text.splitlines()]
    assert rows[5] == ["2.0", "20", "80", "0"]
    nobody = whereabouts(run_of([[4, 3, 3], [3, 4, 3]]))
    assert nobody.alt == "run: no node ever has half of the pages."
    once = whereabouts(run_of([[10, 0, 0], [4, 3, 3]]))
    assert "on node 0 at first; then no node has most of them; after 1.0 s node 0 has 40 %" in once.alt


def test_the_map_is_dark_where_the_pages_are():
    picture = whereabouts(HOPS)
    (ax,) = picture.figure.axes
    drawn = ax.images[0].get_array()
    # the samples of 0 and 1 s, of six: node 0 all black
    assert drawn[0, : drawn.shape[1] // 3].tolist() == [100.0] * (drawn.shape[1] // 3)
    assert drawn[1, drawn.shape[1] // 2 - 2] == 80
    grey = ax.images[0].cmap
    assert grey(0.0)[0] == 1.0
    assert grey(0.0)[0] > grey(0.5)[0] > grey(0.999)[0]


def test_moves_of_a_page():
    """Thirty migrations of ten pages are three each."""
    picture = page_moves({"a": HOPS, "b": STAYS})
    assert picture.parts[0].lines[0].middle.tolist() == [0, 0, 0.8, 1.4, 2.4, 3.0]
    assert picture.alt == "a: within 5.0 s a page moves 3.0 times. b: within 5.0 s a page moves 0.0 times."


def test_moves_of_a_page_of_several_runs():
    both = xr.concat([HOPS, STAYS], "run")
    (line,) = page_moves(both).parts[0].lines
    assert line.middle[-1] == pytest.approx(1.5)
    assert "a page moves 1.5 times (median of 2 runs)" in page_moves(both).alt


def test_pages_on_a_node():
    picture = pages_on({"a": HOPS, "b": STAYS}, 2)
    assert picture.parts[0].lines[0].middle.tolist() == [0, 0, 0, 30, 0, 60]
    assert (
        picture.alt == "a: 60 % of the pages are on node 2 after 5.0 s. b: 0 % of the pages are on node 2 after 5.0 s."
    )


def test_what_is_not_recorded_is_named():
    with pytest.raises(PictureError, match="numa_pages_migrated: not in this run"):
        page_moves(run_of([[1, 0]]))


def test_later_readers_over_earlier_ones():
    """1 + 2 and 3 + 6: three times; over the mean of 3, from a third to two."""
    picture = ForkOrder({"x": {"model": np.array([1.0, 2.0, 3.0, 6.0])}}, "reader")
    assert picture.later_over_earlier("x") == {"model": 3.0}
    assert picture.alt == (
        "x: the half that was forked later did, over the earlier half: model 3.00 times (0.33 to 2.00). "
        "In brackets slowest and fastest over the mean."
    )
    assert picture.text.splitlines()[-1].split() == ["4", "2.00"]


def test_fork_order_is_on_one_scale():
    picture = ForkOrder({"x": {"model": np.array([1.0, 1.0])}, "y": {"model": np.array([1.0, 3.0])}})
    tops = {ax.get_ylim() for ax in picture.figure.axes}
    assert len(tops) == 1
    assert max(tops)[1] == pytest.approx(1.08 * 1.5)
