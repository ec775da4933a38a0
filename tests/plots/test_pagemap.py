"""The picture of single pages."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.patches import Rectangle

from numalab.plots import style, watched

#: Two looks at three pages, two threads, two nodes: page 1 came from node 0 to node 1 at 0.5 s.
SEEN = xr.Dataset(
    {
        "page_node": (("time", "page"), [[0, 0, 0], [0, 1, 0]]),
        "page_trapped": (("time", "page"), [[False, True, True], [False, False, True]]),
        "page_user": (("time", "page"), [[-1, 1, 1], [-1, 1, 1]]),
        "page_user_node": (("time", "page"), [[-1, 1, 1], [-1, 1, 1]]),
        "task_node": (("time", "task"), [[0, 1], [0, 1]]),
        "preferred_nid": (("time", "task"), [[-1, -1], [-1, 1]]),
        "scan_period_ms": (("time", "task"), [[1000, 1000], [1000, 500]]),
        "faults": (("time", "task", "node"), np.zeros((2, 2, 2))),
        "faults_new": (("time", "task", "node"), [[[0, 0], [0, 0]], [[0, 0], [1, 1]]]),
        "numa_hint_faults": ("time", [2, 3]),
    },
    {"time": [0.0, 0.5], "page_of": ("page", ["only a", "shared by a and b", "shared by a and b"])},
)


def test_the_sentence_counts():
    assert watched(SEEN, seconds=1).alt == (
        "At 0.50 s: threads a on node 0 and b on node 1; pages: 2 on node 0 and 1 on node 1. 1 trapped; 1 last touched "
        "from another node than they are on. Hint faults so far: 3. a has no preferred node and scans every 1000 ms "
        "and b prefers node 1 and scans every 500 ms."
    )


def test_the_table_has_a_row_for_each_page():
    lines = watched(SEEN, seconds=1).text.splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["0", "0"],
        ["1", "1", "b", "on", "node", "1"],
        ["2", "0", "yes", "b", "on", "node", "1"],
    ]


@pytest.fixture
def axes():
    return watched(SEEN, seconds=1).figure.axes


def test_pages_stand_in_the_row_of_their_node_and_trapped_ones_are_hatched(axes):
    boxes = [patch for patch in axes[0].findobj(Rectangle) if patch.get_width() == 0.84]
    middle = [(box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2) for box in boxes]
    assert np.allclose(middle, [(0, 0), (1, 1), (2, 0)])
    assert [bool(box.get_hatch()) for box in boxes] == [False, False, True]
    words = [text.get_text() for text in axes[0].texts]
    assert words.count("b1") == 2
    assert [word for word in words if word in ("a", "b")] == ["a", "b"]
    assert [word for word in words if " " in word][:4] == ["only a", "shared by a and b", "node 0", "node 1"]


def test_the_preferred_node_has_a_star_and_lines_end_now(axes):
    assert [label.get_text() for label in axes[1].get_xticklabels()] == ["a:0", "a:1", "b:0", "b:1★"]
    assert [line.get_ydata().tolist() for line in axes[2].get_lines()] == [[3, 2], [0, 1]]


def test_it_can_be_drawn(axes):
    assert style.png(axes[0].figure).startswith(b"\x89PNG")
