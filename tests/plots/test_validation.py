"""The figure of a case."""

import numpy as np

from numalab.plots.validation import plot_case
from numalab.validate.cases import group, load
from numalab.validate.simulated import Outcome


def test_every_repetition_is_a_line_and_the_model_a_line_and_a_band():
    (case,) = group([load("S0_data_n16_nb1_trap_r1")])
    times = np.array([0.0, 1.0, 2.0])
    real = [(times, np.array([[0.0, 1.0, 2.0]])), (times, np.array([[0.0, 2.0, 4.0]]))]
    model = (times, np.array([[np.nan, 1.0, 1.0], [np.nan, 3.0, 5.0]]))
    outcome = Outcome(case, series={"numa_hint_faults": (real, model), "local_share": (real, model)})
    figure = plot_case(outcome)
    first, second, third = figure.axes
    assert [ax.get_title() for ax in (first, second)] == ["hint faults", "share of hint faults so far that were local"]
    assert not third.axison
    lines = [line.get_ydata().tolist() for line in first.get_lines()]
    # the median of 1 and 3, 1 and 5; where the model has no value it is not drawn
    assert lines == [[2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]
    assert len(first.collections) == 1
    assert len({line.get_linestyle() for line in first.get_lines()[1:]}) == 2
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["real, S0_data_n16_nb1_trap_r1", "model, median", "model, 90% band"]
    assert figure.get_suptitle() == "S0_data_n16_nb1_trap: nlwl cow 16 1 15 1 data"
