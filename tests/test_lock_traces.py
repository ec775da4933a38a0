"""The lock model beside the recordings S3_*; the figures are those of the recordings' own summary."""

import shutil

import numpy as np
import pytest

from numalab import lock_traces
from numalab.lock_traces import QUANTITIES, cases, measured, section_share
from numalab.readers import trace
from numalab.readers._text import ReadError


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
    assert cases([tmp_path / name]) == cases([name])


def test_what_is_no_recording_of_look_ups(tmp_path):
    with pytest.raises(ValueError, match="S1_p4t2_old_r1: expected a run of 'nlwl shpol"):
        cases(["S1_p4t2_old_r1"])
    with pytest.raises(FileNotFoundError, match="no 'S3_x'"):
        cases(["S3_x"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match=r"meta\.json"):
        cases([tmp_path / "empty"])


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


def test_a_case_holds_its_repetitions_with_their_shared_runs():
    names = [f"S3_mttcg_lookup_n8_exclusive_r{rep}" for rep in (1, 2, 3)]
    single = "S3_icount_lookup_n2_exclusive_r1"
    eight, two = cases([*names, single])
    assert (eight.name, two.name) == ("S3_mttcg_lookup_n8_exclusive", "S3_icount_lookup_n2_exclusive")
    assert [run.name for run in eight.runs] == names
    assert [run.name for run in eight.shared] == [name.replace("exclusive", "rwlock") for name in names]
    assert [run.name for run in two.runs] == [single]


def test_real_values_are_those_of_the_recordings():
    """Eight processes, three repetitions: 260,496, 260,624, 220,672 look-ups a second, shared 682,912, 711,648,
    638,144; 20.79, 22.03, 22.37 of 32 process-seconds waiting; 3,976, 3,189, 2,656 look-ups waited."""
    (case,) = cases([f"S3_mttcg_lookup_n8_exclusive_r{rep}" for rep in (1, 2, 3)])
    real = case.real()
    assert set(real) == set(QUANTITIES)
    assert real["ratio"] == pytest.approx([260496 / 682912, 260624 / 711648, 220672 / 638144])
    assert real["waiting_share"] == pytest.approx([20.79 / 32, 22.03 / 32, 22.37 / 32], abs=2e-4)
    assert real["contended_share"] == pytest.approx([3976 / 1050272, 3189 / 1050784, 2656 / 889904])


def test_the_model_has_a_value_per_seed_and_takes_repetitions_in_turn():
    """A process alone is as fast either way, and waits only for the monitor: for each wait of its own one of the
    monitor's, each as long as the lock is held."""
    names = [f"S3_mttcg_lookup_n1_exclusive_r{rep}" for rep in (1, 2, 3)]
    (case,) = cases(names)
    model = case.model(5)
    assert {name: len(values) for name, values in model.items()} == dict.fromkeys(QUANTITIES, 5)
    assert list(model["ratio"]) == [1.0] * 5
    lookups = np.array([case.runs[seed % 3].lookups for seed in range(5)])
    waits = model["contended_share"] * lookups
    assert waits / 2 == pytest.approx(np.round(waits / 2))
    # 100 instructions of the 125 M / 153,552 of a look-up; shared 399,008, 344,848 and 455,296 look-ups a second
    section_s = 100 * 153552 / 125e6 * np.mean([1 / 399008, 1 / 344848, 1 / 455296])
    assert model["waiting_share"] * 4 == pytest.approx(waits * section_s)


def test_shared_look_ups_never_waited():
    shared = [name for name in trace.names() if name.startswith("S3_") and "rwlock" in name]
    assert len(shared) == 32
    for case in cases(shared):
        real, model = case.real(), case.model(2)
        assert set(real) == set(model) == {"contended_share", "waiting_share"}
        assert not any(values.any() for values in [*real.values(), *model.values()])
