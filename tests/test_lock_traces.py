"""The lock model judged by the recordings S3_*; the figures are those of the recordings' own summary."""

import shutil

import pytest

from numalab import lock_traces
from numalab.lock_traces import judge, measured, section_share
from numalab.readers import trace
from numalab.readers._text import ReadError

KEYS = {
    "trace", "quantity", "real", "real_low", "real_high", "model", "low", "high", "ratio", "inside", "counted", "why",
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


def grown(ranges):
    """Left children, right children, parents in a red-black tree after ascending insertion, by the textbook's rules."""
    left, right, parent, red = {}, {}, {}, {}

    def rotate_left(x):
        y = right.pop(x)
        if y in left:
            right[x] = left[y]
            parent[left[y]] = x
        left[y] = x
        if x in parent:
            right[parent[x]] = y
            parent[y] = parent[x]
        else:
            del parent[y]
        parent[x] = y

    for node in range(ranges):
        red[node] = node > 0
        if node:
            right[node - 1], parent[node] = node, node - 1
        at = node
        while at in parent and red[parent[at]]:
            above = parent[parent[at]]
            uncle = left.get(above)
            red[parent[at]], red[above] = False, True
            if uncle is not None and red[uncle]:
                red[uncle] = False
                at = above
            else:
                rotate_left(above)
        red[next(node for node in red if node not in parent)] = False
    return left, right, parent


def test_instructions_under_the_lock_by_hand():
    """What was read off the stock build: 5 instructions a step to the right, 7 to the left, 38 beside the search.

    The range before is looked for too: from a left child on to the right, 11 and 4 a step; without one upwards, 11 and
    8 a step from a left child, 2 at the first right child. If there is one, its end is compared: 6.
    """
    left, right, parent = grown(256)
    found, deep = 0, 0
    for node in range(256):
        at = node
        while at in parent:
            found += 7 if left.get(parent[at]) == at else 5
            deep += 1
            at = parent[at]
        if node in left:
            at, steps = left[node], 0
            while at in right:
                at, steps = right[at], steps + 1
            found += 11 + 4 * steps
        else:
            at, steps = node, 0
            while at in parent and left.get(parent[at]) == at:
                at, steps = parent[at], steps + 1
            found += 11 + 8 * steps + (2 if at in parent else 0)
        found += 6 if node else 0
    assert deep / 256 + 1 == pytest.approx(7.54, abs=0.005)
    assert found / 256 + 38 == pytest.approx(lock_traces.SECTION_INSTRUCTIONS, abs=1)


def test_the_share_of_a_look_up_under_the_lock():
    """One process with the lock shared: 153,552 look-ups a second, and 23,184 with allocation; 125 M instructions."""
    assert section_share("lookup") == pytest.approx(100 / (125e6 / 153552))
    assert section_share("alloc") == pytest.approx(100 / (125e6 / 23184))


def test_rows(rows):
    assert all(set(one) == KEYS for one in rows)
    # 2 modes x 2 kinds x 4 numbers x (3 quantities + 2 of the shared lock)
    assert len(rows) == 16 * 5
    for one in rows:
        assert one["counted"] == ("rwlock" not in one["trace"])
        assert one["low"] <= one["model"] <= one["high"]
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
        ("mttcg_lookup_n2", "contended_share"),
        ("mttcg_lookup_n4", "ratio"),
        ("mttcg_lookup_n4", "waiting_share"),
        ("mttcg_lookup_n8", "ratio"),
        ("mttcg_lookup_n8", "waiting_share"),
        ("mttcg_lookup_n8", "contended_share"),
        ("mttcg_alloc_n4", "waiting_share"),
        ("mttcg_alloc_n8", "ratio"),
        ("icount_lookup_n2", "contended_share"),
        ("icount_lookup_n4", "waiting_share"),
        ("icount_lookup_n8", "waiting_share"),
        ("icount_lookup_n8", "ratio"),
        ("icount_alloc_n1", "contended_share"),
        ("icount_alloc_n8", "contended_share"),
    ],
)
def test_what_holds(rows, name, quantity):
    assert row(rows, f"S3_{name}_exclusive", quantity)["inside"]


def test_the_balance(rows):
    """What is known to be outside stays visible: see the rows' own words."""
    counted = [one for one in rows if one["counted"]]
    assert len(counted) == 48
    inside = {case: sum(one["inside"] for one in counted if case in one["trace"]) for case in ("mttcg", "icount")}
    assert inside == {"mttcg": 13, "icount": 15}  # of 24 each


def test_both_zero_is_inside(rows):
    alone = row(rows, "S3_icount_alloc_n1_exclusive", "waiting_share")
    assert (alone["real"], alone["model"]) == (0, 0)
    assert (alone["inside"], alone["why"]) == (True, "both as good as 0")


def test_few_repetitions_take_the_widest_spread(rows):
    """Of all look-ups with more than one process, throughput ratios of two scatter most: 1.121, 0.766, 0.750."""
    ratios = 673968 / 601200, 634864 / 828832, 690208 / 920304
    assert row(rows, "S3_mttcg_lookup_n2_exclusive", "ratio")["real"] == pytest.approx(ratios[1])
    spread = (ratios[0] - ratios[2]) / 2 / ratios[1]
    assert row(rows, "S3_icount_lookup_n8_exclusive", "ratio")["real_low"] == pytest.approx(
        157248 / 152096 * (1 - spread)
    )
