"""Numbers with their spread: by hand, drawn and told."""

import numpy as np
import pytest

from numalab import plots
from numalab.locks import Lock, Simulated, solve
from numalab.plots import PictureError, Span, Spans
from tests.plots.test_pictures import build, events


def test_a_span_of_runs_is_mean_and_deviation():
    """1, 2, 3 and 6: mean 3, squares 4 + 1 + 0 + 9 = 14, by n - 1 = 3."""
    one = Span.of_runs([1, 2, 3, 6])
    assert (one.middle, one.values) == (3, (1, 2, 3, 6))
    assert one.high - one.middle == pytest.approx((14 / 3) ** 0.5)
    assert one.middle - one.low == pytest.approx((14 / 3) ** 0.5)
    assert Span.of_runs([5.0]) == Span(5, 5, 5, (5,))
    assert Span.of_mean(10, 2).over(10) == Span(1, 0.8, 1.2)


def test_spans_are_drawn_printed_and_told():
    picture = Spans("x", {"mail": {"a": Span.of_mean(2, 1)}, "model": {"a": Span(4, 3, 5), "b": Span(6, 6, 6, (6,))}})
    ax = picture.figure.axes[0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    points = {line.get_label(): line.get_ydata().tolist() for line in ax.get_lines() if line.get_label()[0] != "_"}
    assert points == {"mail": [2], "model": [4, 6]}
    bars = [line.get_ydata().tolist() for line in ax.get_lines() if len(line.get_xdata()) == 2 and line.get_lw() == 3]
    assert bars == [[1, 3], [3, 5], [6, 6]]
    assert picture.alt == (
        "x, in brackets one standard deviation to both sides. a: mail 2.00 (1.00 to 3.00), model 4.00 (3.00 to 5.00). "
        "b: model 6.00."
    )
    assert picture.text.splitlines()[-1].split() == ["b", "6.00"]
    assert Spans("x", {"one run": {"a": Span.of_runs([3.0])}}).alt == "x. a: one run 3.00."
    with pytest.raises(PictureError, match="got none"):
        Spans("x", {"mail": {}})


def counted(faults, local):
    grid = ("run", "time")
    return build(
        len(faults),
        numa_hint_faults=(grid, np.array([[5, 7, 5 + n] for n in faults])),
        numa_hint_faults_local=(grid, np.array([[0, 1, n] for n in local])),
        numa_pages_migrated=(grid, np.zeros((len(faults), 3), np.int64)),
    )


def test_counters_relative_to_the_first_side():
    """Growth from the first sample: 100 faults, 50 local before; then 200 and 300 with 150 local in both."""
    picture = plots.counters({"before": counted([100], [50]), "after": counted([200, 300], [150, 150])})
    after = picture.series["after"]
    assert picture.groups == ["hint faults", "local hint faults", "local share"]
    assert after["hint faults"].values == (2, 3)
    assert after["hint faults"].middle == 2.5
    assert after["local hint faults"].middle == 3
    # shares 0.75 and 0.5 beside 0.5
    assert after["local share"].values == pytest.approx((1.5, 1.0))
    with pytest.raises(PictureError, match="numa_pte_updates: not in this run"):
        plots.counters(counted([100], [50]), {"numa_pte_updates": "PTE updates"})


def test_moves_below_a_gain_that_is_asked_for():
    ds = events((0, 3, -1, 100), (1, 0, 2, 49), (1, 1, 3, 50))
    picture = plots.moves(ds, below=50)
    assert picture.alt == "3.17: 1 moves and 2 swaps, 1 of them with a gain below 50 of 1000."
    # classes below 0, 0-4, 5-9, 10-19, 20-29, 30-49 lie left of the line
    assert [line.get_xdata()[0] for line in picture.figure.axes[0].get_lines()] == [5.5]
    assert not plots.moves(ds).figure.axes[0].get_lines()
    # two swaps and one move on the same scale, and no bar where nothing was counted but the one for the key
    moved, swapped = picture.figure.axes
    assert moved.get_ylim() == swapped.get_ylim() == (0, pytest.approx(1.05))
    assert [bar.get_height() for bar in swapped.patches] == [0, 1, 1]
    assert [bar.get_height() for bar in moved.patches] == [0, 1]


def test_look_ups_beside_the_share_of_time():
    """Two requests for the line a hand-over: with three tasks fewer look-ups than the peak (tests/locks/test_queue)."""
    lock = Lock("ticket", 1.0, 1.0, handoff_s=2.0)
    one = Simulated(3, *[np.full(20, 0.5)] * 6)
    picture = plots.contention(
        {"ticket": lock}, [1, 2, 3], [(2, 50.0, "half")], simulated={"ticket": [one]}, per="per second"
    )
    solved = solve(lock, [1, 2, 3])
    left, right = picture.figure.axes
    assert right.get_lines()[0].get_ydata().tolist() == solved.throughput.tolist()
    assert right.get_title(loc="left") == "Look-ups of all tasks"
    assert right.get_ylabel() == "per second"
    top = solved.throughput.argmax()
    words = f"most look-ups at {top + 1}, {solved.throughput[top] / solved.throughput[-1]:.1f} times those at 3"
    assert words in picture.alt
    assert picture.alt.endswith("ticket, event by event: 50.0 % at 3. Published: half at 2.")
    assert [line.get_ydata()[0] for line in left.get_lines() if line.get_marker() == "*"] == [50]
    free = plots.contention({"none": solve(Lock("none", 1.0, 1.0), [1, 2])}, per="per second")
    assert free.alt.endswith("50.0 % at 2, and look-ups never fall.")
