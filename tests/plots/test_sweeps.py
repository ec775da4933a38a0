"""Pictures of sweeps: lines, cells, text and sentence, from numbers small enough to check by hand."""

import json

import numpy as np
import pytest
import xarray as xr

from numalab.plots import PictureError
from numalab.plots.sweeps import heatmap, response
from numalab.sweeps import SweepError


def swept(values, status=None, name="work_pages", units="pages", **factors):
    """A sweep of 10 s with one quantity: (run,); factors along run."""
    count = len(values)
    spec = {
        "description": {"machine": {}, "workload": {}, "kernel": {}}, "seconds": 10.0, "step_us": 1000, "seeds": [0],
        "grid": {factor: list(dict.fromkeys(column)) for factor, column in factors.items()}, "list": {}, "keep": {},
        "batch": 1,
    }  # fmt: skip
    coords = {"run": np.arange(count), "seed": ("run", np.arange(count))}
    coords |= {factor.replace(".", "_"): ("run", np.array(column)) for factor, column in factors.items()}
    return xr.Dataset(
        {
            name: ("run", np.array(values, float), {"units": units, "long_name": "what"}),
            "status": ("run", np.array([1] * count if status is None else status)),
        },
        coords,
        {"numalab_params": json.dumps({"sweep": {"spec": spec}})},
    )


#: Three runs each at 64 and 256.
SIX = {"scan_size_mb": [64, 64, 64, 256, 256, 256]}


def test_a_response_is_the_median_at_each_value():
    picture = response(swept([1, 2, 9, 4, 5, 6], **SIX), "work_pages")
    (line,) = picture.figure.axes[0].get_lines()
    assert line.get_xdata().tolist() == [64, 256]
    assert line.get_ydata().tolist() == [2, 5]
    # 5 and 95 % of 1, 2, 9, between neighbours: 1 + 0.1 x 1 and 2 + 0.9 x 7
    assert "64                 2  1.1   8.3" in picture.text
    assert picture.alt == (
        "what over scan_size_mb (median over seeds). 2 at 64, 5 at 256, lowest 2 at 64, highest 5 at 256."
    )


def test_what_is_neither_axis_nor_curve_is_named_and_what_failed_left_out():
    picture = response(
        swept([1, 100, 3, 4], status=[1, 2, 1, 1], scan_size_mb=[1, 1, 2, 2], kernel=["a", "b", "a", "b"]), "work_pages"
    )
    assert "median over seeds and kernel" in picture.alt
    (line,) = picture.figure.axes[0].get_lines()
    assert line.get_ydata().tolist() == [1, 3.5]


def test_curves_by_another_factor_differ_in_more_than_colour():
    picture = response(
        swept([1, 2, 3, 4], scan_size_mb=[1, 2, 1, 2], kernel=["3.16", "3.16", "3.17", "3.17"]),
        "work_pages",
        by="kernel",
    )
    one, two = picture.figure.axes[0].get_lines()
    assert (one.get_label(), two.get_label()) == ("kernel 3.16", "kernel 3.17")
    assert one.get_marker() != two.get_marker()
    assert two.get_ydata().tolist() == [3, 4]


def test_words_stand_beside_each_other_in_the_order_given():
    picture = response(swept([1, 2], kernel=["6.1", "3.16"]), "work_pages")
    assert [tick.get_text() for tick in picture.figure.axes[0].get_xticklabels()] == ["6.1", "3.16"]


def test_a_wide_range_has_an_axis_of_ratios():
    assert response(swept([1, 2], scan_size_mb=[16, 1024]), "work_pages").figure.axes[0].get_xscale() == "log"
    assert response(swept([1, 2], scan_size_mb=[16, 64]), "work_pages").figure.axes[0].get_xscale() == "linear"


def test_a_sampled_factor_is_put_into_groups_of_equal_number():
    values = list(range(80))
    picture = response(swept(values, remote_cost=values), "work_pages")
    (line,) = picture.figure.axes[0].get_lines()
    # eight groups of ten: 0 to 9 has the median 4.5
    assert line.get_xdata().tolist() == line.get_ydata().tolist() == [4.5 + 10 * i for i in range(8)]


def test_a_time_that_did_not_come_is_drawn_at_the_end_of_the_run_and_told():
    picture = response(
        swept([1, np.nan, np.nan, 3], name="converged_s", units="s", scan_size_mb=[1, 2, 2, 2]), "converged_s"
    )
    (line,) = picture.figure.axes[0].get_lines()
    assert line.get_ydata().tolist() == [1, 10]
    assert "In 2 of 4 runs the time did not come; the run's length stands for it." in picture.alt
    assert "10 s: did not come" in picture.figure.axes[0].get_title(loc="left")


def test_a_heat_map_has_the_median_of_each_cell():
    ds = swept([1, 3, 4, 5, 7], scan_size_mb=[1, 1, 2, 1, 2], kernel=["a", "a", "a", "b", "b"])
    picture = heatmap(ds, "work_pages")
    (image,) = picture.figure.axes[0].get_images()
    assert image.get_array().tolist() == [[2, 4], [5, 7]]
    assert picture.text.splitlines()[-2:] == ["a       2  4", "b       5  7"]
    assert picture.alt == (
        "what over scan_size_mb and kernel (median over seeds): lowest 2 at scan_size_mb 1 and kernel a; "
        "highest 7 at scan_size_mb 2 and kernel b."
    )


def test_a_cell_without_runs_is_a_dash():
    picture = heatmap(swept([1, 2, 3], scan_size_mb=[1, 2, 1], kernel=["a", "a", "b"]), "work_pages")
    assert picture.text.splitlines()[-1] == "b       3  -"


def test_what_cannot_be_drawn_is_told():
    ds = swept([1, 2], scan_size_mb=[1, 2])
    with pytest.raises(PictureError, match="a heat map needs two factors"):
        heatmap(ds, "work_pages")
    with pytest.raises(SweepError, match="kernel: was not swept"):
        response(ds, "work_pages", by="kernel")
    with pytest.raises(PictureError, match="has 9 values, more than curves can be told apart; take heatmap"):
        response(swept(range(9), scan_size_mb=range(9), remote_cost=range(9)), "work_pages", by="remote_cost")
    with pytest.raises(SweepError, match="no run of this sweep is done"):
        response(swept([1], status=[0], scan_size_mb=[1]), "work_pages")


def test_large_numbers_are_drawn_in_thousands_and_millions_and_written_out():
    ds = swept([2_000_000, 3_500_000], scan_size_mb=[1, 2])
    picture = response(ds, "work_pages")
    (line,) = picture.figure.axes[0].get_lines()
    assert line.get_ydata().tolist() == [2, 3.5]
    assert picture.figure.axes[0].get_ylabel() == "work_pages [million pages]"
    assert "3,500,000 at 2" in picture.alt
    faults = swept([20_000, 30_000], name="task_moves", units="1", scan_size_mb=[1, 2])
    assert response(faults, "task_moves").figure.axes[0].get_ylabel() == "task_moves [1000]"


def test_groups_of_a_heat_map_are_named_by_where_they_begin():
    values = list(range(40))
    picture = heatmap(
        swept(values, remote_cost=values, kernel=["a", "b"] * 20), "work_pages", x="remote_cost", by="kernel"
    )
    ax = picture.figure.axes[0]
    assert ax.get_xlabel() == "remote_cost from"
    # eighths of 0 to 39
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [
        "0",
        "4.88",
        "9.75",
        "14.6",
        "19.5",
        "24.4",
        "29.2",
        "34.1",
    ]
