"""The lock model judged by the recordings S3_*; the figures are those of the recordings' own summary."""

import shutil

import pytest

from numalab import lock_traces
from numalab.lock_traces import FITTED, judge, measured
from numalab.readers import trace
from numalab.readers._text import ReadError

KEYS = {
    "trace", "quantity", "real", "real_low", "real_high", "model", "low", "high", "ratio", "inside", "counted",
    "fitted", "why",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return judge()


def row(rows, name, quantity):
    (found,) = [one for one in rows if one["trace"] == name and one["quantity"] == quantity]
    return found


def test_a_recording():
    run = measured("S3_mttcg_lookup_n4_exclusive_r1")
    assert (run.mode, run.kind, run.label, run.tasks, run.rep, run.cpus) == ("mttcg", "lookup", "exclusive", 4, 1, 2)
    assert (run.lookups, run.contended, run.ops) == (1488240, 91774, 1484096)
    assert run.contended_share == pytest.approx(91774 / 1488240)
    assert run.waiting_share == pytest.approx(7.449286941 / 16)
    assert run.case == "S3_mttcg_lookup_n4_exclusive"
    # two CPUs for four seconds
    assert run.cycle_s == pytest.approx(8 / 1484096)


def test_a_folder_is_read_as_the_shipped_one(tmp_path):
    name = "S3_icount_alloc_n2_exclusive_r1"
    with trace.folder(name) as folder:
        shutil.copytree(folder, tmp_path / name)
    assert measured(tmp_path / name) == measured(name)
    # The shared run is not beside it, so the shipped one is taken.
    assert judge([tmp_path / name]) == judge([name])


def test_what_is_no_recording_of_look_ups(tmp_path):
    with pytest.raises(ValueError, match="S1_p4t2_old_r1: expected a run of 'nlwl shpol"):
        judge(["S1_p4t2_old_r1"])
    with pytest.raises(FileNotFoundError, match="no 'S3_x'"):
        judge(["S3_x"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match=r"meta\.json"):
        judge([tmp_path / "empty"])


def test_constants_give_what_they_were_fitted_to(rows):
    for name, quantities in (
        ("S3_mttcg_lookup_n2_exclusive_r1", ["contended_share"]),
        ("S3_mttcg_alloc_n2_exclusive_r1", ["contended_share"]),
        ("S3_mttcg_lookup_n4_exclusive_r1", ["contended_share", "ratio"]),
        ("S3_icount_lookup_n2_exclusive_r1", ["contended_share", "waiting_share"]),
    ):
        assert name in FITTED
        for quantity in quantities:
            assert row(rows, name, quantity)["ratio"] == pytest.approx(1, rel=1e-6)
    mttcg, icount = lock_traces.constants()["mttcg", "lookup"], lock_traces.constants()["icount", "lookup"]
    # 426,231 of 2,697,944 look-ups waited; the shared run did 2,404,800 in four seconds on two CPUs.
    assert mttcg.section_s == pytest.approx(426231 / 2697944 * 8 / 2404800)
    assert mttcg.spin_slice_s < mttcg.slice_s < icount.slice_s


def test_rows(rows):
    assert all(set(one) == KEYS for one in rows)
    # 2 modes x 2 kinds x 4 numbers x (3 quantities + 2 of the shared lock) and 3 rows of each fitted run: three
    # of these have further repetitions, that with icount has not.
    assert len(rows) == 16 * 5 + 3 * 3
    assert {one["trace"] for one in rows if one["fitted"]} == set(FITTED)
    for one in rows:
        assert one["counted"] == (not one["fitted"] and "rwlock" not in one["trace"])
        assert one["model"] is None or one["low"] <= one["model"] <= one["high"]
        assert one["real_low"] <= one["real"] <= one["real_high"]
        if one["counted"] and not one["inside"]:
            assert one["why"]


def test_shared_look_ups_never_waited(rows):
    shared = [one for one in rows if "rwlock" in one["trace"]]
    assert len(shared) == 32
    assert all(one["real"] == one["real_high"] == one["model"] == 0 for one in shared)


def test_real_values_are_those_of_the_recordings(rows):
    """Eight processes, three repetitions: 260,496, 260,624, 220,672 look-ups a second, shared 682,912, 711,648,
    638,144; 20.79, 22.03, 22.37 of 32 process-seconds waiting."""
    ratio = row(rows, "S3_mttcg_lookup_n8_exclusive", "ratio")
    assert ratio["real"] == pytest.approx(260624 / 711648)
    assert ratio["real_low"] == pytest.approx(220672 / 638144)
    assert ratio["real_high"] == pytest.approx(260496 / 682912)
    waiting = row(rows, "S3_mttcg_lookup_n8_exclusive", "waiting_share")
    assert waiting["real"] == pytest.approx(22.03 / 32, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("mttcg_lookup_n1", "contended_share"),
        ("mttcg_lookup_n2", "contended_share"),
        ("mttcg_lookup_n2", "waiting_share"),
        ("mttcg_lookup_n4", "ratio"),
        ("mttcg_lookup_n4", "waiting_share"),
        ("mttcg_lookup_n8", "ratio"),
        ("mttcg_lookup_n8", "waiting_share"),
        ("mttcg_alloc_n8", "ratio"),
        ("icount_lookup_n4", "contended_share"),
        ("icount_lookup_n8", "ratio"),
        ("mttcg_alloc_n4", "contended_share"),
        ("mttcg_alloc_n4", "waiting_share"),
    ],
)
def test_what_holds(rows, name, quantity):
    assert row(rows, f"S3_{name}_exclusive", quantity)["inside"]


def test_the_balance(rows):
    """What is known to be outside stays visible: see the rows' own words."""
    counted = [one for one in rows if one["counted"]]
    assert len(counted) == 45
    inside = {case: sum(one["inside"] for one in counted if case in one["trace"]) for case in ("mttcg", "icount")}
    assert inside == {"mttcg": 15, "icount": 8}  # of 24 and 21


def test_few_repetitions_take_the_widest_spread(rows):
    """The throughput ratios of two processes are 1.121, 0.766, 0.750: half the range is 24 % of their median."""
    two = row(rows, "S3_mttcg_lookup_n2_exclusive", "ratio")
    spread = (673968 / 601200 - 690208 / 920304) / 2 / (634864 / 828832)
    middle = (634864 / 828832 + 690208 / 920304) / 2
    assert two["real"] == pytest.approx(middle)
    assert two["real_low"] == pytest.approx(middle * (1 - spread))
    assert row(rows, "S3_icount_lookup_n8_exclusive", "ratio")["real_low"] == pytest.approx(
        157248 / 152096 * (1 - spread)
    )
