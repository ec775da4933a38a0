"""The map of verdicts: its regions are the rules of the diagnosis."""

import numpy as np
import pytest

from numalab import plots
from numalab.diagnose import diagnose
from numalab.plots.verdicts import HIGH, LOW, NO_ALARM, Counters, region
from numalab.readers.mixed import read_text


def vmstat(counters, share, moved):
    side = counters.side(share, moved)
    return "".join(f"{name} {count.value:.0f}\n" for name, count in side.counts.items())


@pytest.mark.parametrize(
    ("counters", "share", "moved", "expected"),
    [
        (Counters(1e7), 27, 40, "page-ping-pong"),
        (Counters(1e7), 27, 29.9, NO_ALARM),
        (Counters(1e7), 4.9, 40, NO_ALARM),
        (Counters(1e7), 80.1, 40, NO_ALARM),
        # fewer than a million pages moved
        (Counters(1e6), 27, 40, NO_ALARM),
        (Counters(1e7), 98, 0.2, "overhead-without-benefit"),
        (Counters(1e7), 97.9, 0.1, NO_ALARM),
        (Counters(1e7), 98, 0.21, NO_ALARM),
        (Counters(1e5), 100, 0, NO_ALARM),
        (Counters(1e7, demoted=1), 1, 30, "tiering-churn"),
        (Counters(1e7, demoted=0.5), 1, 30, NO_ALARM),
        (Counters(999), 27, 40, "too few faults"),
    ],
)
def test_regions(counters, share, moved, expected):
    """Limits as of numalab.diagnose.counters; the diagnosis of the same counters as text says the same."""
    assert region(counters, share, moved) == expected
    ids = [one.id for one in diagnose(read_text(vmstat(counters, share, moved), "x")).illnesses]
    assert ids == ([expected] if expected in ("page-ping-pong", "overhead-without-benefit", "tiering-churn") else [])


def test_the_drawing_shows_the_regions_where_they_are():
    picture = plots.VerdictMap({"a": (26.4, 3.5), "b": (26.6, 40.3)}, Counters(1e8))
    (ax,) = picture.figure.axes
    (fields,) = (image.get_array() for image in ax.get_images())
    up, across = fields.shape

    def at(share, moved):
        row = int(np.log(moved / LOW) / np.log(HIGH / LOW) * up)
        return fields[row, int(share / 100 * across)]

    assert at(27, 50) == at(79, 90) != at(27, 10) == at(50, 1) == at(97.5, 0.05)
    assert at(98.5, 0.05) not in (at(27, 50), at(27, 10))
    assert {text.get_text() for text in ax.texts} == {"page-ping-pong", "overhead-without-benefit", NO_ALARM}
    points = {line.get_label(): (line.get_xdata()[0], 10 ** line.get_ydata()[0]) for line in ax.get_lines()}
    assert points["b"] == pytest.approx((26.6, 40.3))


def test_words_and_points_beyond_the_axis():
    picture = plots.VerdictMap({"a": (100.0, 0.0)}, Counters(1e7))
    assert picture.alt == "a: 100 % of the faults local, 0 pages moved of 100 faults: overhead-without-benefit."
    assert picture.text.splitlines()[-1].split() == ["a", "100.0", "0.00", "overhead-without-benefit"]
    (ax,) = picture.figure.axes
    assert 10 ** ax.get_lines()[0].get_ydata()[0] == pytest.approx(LOW)
    assert plots.VerdictMap({}).alt == "No side has hint faults."
