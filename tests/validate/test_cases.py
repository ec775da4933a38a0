"""Which traces are repetitions of one case, and which may be fitted to."""

import shutil

import pytest

from numalab import _data
from numalab.validate.cases import ValidateError, group, load


def members(*names):
    return [[one.name for one in case.traces] for case in group([load(name) for name in names])]


def test_repetitions_are_judged_together():
    names = ("S0_anon_n16_nb1_trap_r1", "S0_anon_n16_nb1_trap_r2", "S0_anon_n16_nb1_skip_r1", "c_swap_2x2_r1")
    assert members(*names) == [list(names[:2]), [names[2]], [names[3]]]
    # seed and duration differ; another kernel is another case
    names = ("c_groups_2x2_r1", "c_groups_2x2_r2", "c_groups_2x2_k61_r1")
    assert members(*names) == [list(names[:2]), [names[2]]]
    # -icount shift=3 and shift=2
    assert len(members("e_shared_2x2_nb0_r1", "e_shared_2x2_nb0_r2")) == 2
    # the same load under another name
    assert members("b_follow_2x2_r1", "z_determinism_follow_2x2_r1") == [
        ["b_follow_2x2_r1", "z_determinism_follow_2x2_r1"]
    ]


def test_a_run_that_ended_at_once_is_a_case_of_its_own():
    """perf bench ended when converged, after a second."""
    cases = group([load("a_perfnuma_2x2_p2t2_r1"), load("a_perfnuma_2x2_p2t2_r2")])
    assert [case.name for case in cases] == ["a_perfnuma_2x2_p2t2_r2", "a_perfnuma_2x2_p2t2_r1"]
    assert [round(case.until_s) for case in cases] == [30, 1]


def test_the_time_that_is_judged_is_covered_by_all():
    """jvm8 ran 25 s in repetition 1 and 18 s in 2 and 3."""
    (case,) = group([load(f"S4_jvm8_pre_r{rep}") for rep in (1, 2, 3)])
    assert case.name == "S4_jvm8_pre"
    assert 18.0 <= case.until_s < 18.6


@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        ("b_follow_2x2_r1", True),
        ("z_determinism_follow_2x2_r1", False),
        ("S0_data_n16_nb0_r1", True),
        ("S0_anon_n16_nb0_r2", False),
        ("S2_write_base_r1", True),
        ("S2_write_base_r2", False),
        ("S1_p4t2_old_r1", False),
        ("S4_jvm8_pre_r1", False),
    ],
)
def test_what_may_be_fitted_to(name, fitted):
    assert load(name).fitted is fitted


def test_folders_and_names(tmp_path):
    with _data.local_path("traces", "S1_p4t2_new_r1") as packed:
        shutil.copytree(packed, tmp_path / "S1_p4t2_new_r1")
    one = load(str(tmp_path / "S1_p4t2_new_r1"))
    assert (one.name, one.base, one.variant, one.rep) == ("S1_p4t2_new_r1", "S1_p4t2", "new", 1)
    assert one.ds.equals(load("S1_p4t2_new_r1").ds)
    with pytest.raises(ValidateError, match=r"^nothing: expected the name of a packed trace"):
        load("nothing")
