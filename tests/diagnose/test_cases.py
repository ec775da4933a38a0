"""The field cases: each is found to have what its author found, and healthy ones raise no alarm."""

import pytest

from numalab.diagnose import diagnose
from numalab.diagnose.catalog import CATALOG
from numalab.readers.mixed import read
from tests.readers.helpers import GOLDEN

CASES = sorted(path.name for path in (GOLDEN / "cases").iterdir())

#: Number of the case -> findings expected, with the sides they are of (empty: the only one); all others are healthy.
EXPECTED = {
    "001": {"overhead-without-benefit": {"Without patch"}, "balancing-off": {"With patch"}},
    "002": {"memoryless-node-enables-balancing": {""}},
    "006": {"page-ping-pong": {"4.0-rc1"}},
    "008": {"tlb-shootdown-bound": {""}},
    "012": {"tiering-churn": {"reverted", "applied", "applied+LUF"}},
    "018": {"one-node-unused": {"7aaa45f8374887d98cd479a6bdd"}},
    "020": {"overhead-without-benefit": {"34ea1df802f79d44", "4aecca4c76808f3736056d18ff5"}},
    "024": {"no-convergence": {"numa01"}},
    "025": {"node-full-foreign-allocations": {"node 0"}, "counters-contradict": {""}},
    "026": {"balancing-off": {""}},
    "037": {"not-enough-data": {""}},
    "039": {"scan-filter-too-strict": {"column 2"}},
    "042": {
        "huge-pages-several-pages-per-fault": {"3.18.0-rc4-vanilla", "3.18.0-rc4-protnone-v2r5"},
        "nothing-wrong": {""},
    },
    "044": {"balancing-off": {"base", "column 2", "column 3", "column 4", "column 5", "column 6"}},
    "046": {"balancers-disagree": {"baseline"}},
    "047": {
        "scan-filter-too-strict": {"6.6.0-rc2-sched-numabtrace-v1"},
        "huge-pages-several-pages-per-fault": {"6.6.0-rc2-sched-numabselective-v1"},
    },
    "048": {"no-convergence": {"1x3-convergence"}},
    "051": {"migrations-fail": {"base", "new"}},
    "055": {"page-ping-pong": {""}},
    "058": {"node-full-foreign-allocations": {"node 1"}},
    # CPU time by node: no illness of balancing can be shown from it
    "079": {"not-enough-data": {""}},
    "088": {"not-enough-data": {""}},
}


def diagnosed(case):
    return diagnose(read(GOLDEN / "cases" / case / "input.txt"))


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_named(case):
    result = diagnosed(case)
    expected = EXPECTED.get(case[:3], {"nothing-wrong": {""}})
    sides = {id: {one.side for one in result.of(id)} for id in result.ids}
    assert sides == expected


@pytest.mark.parametrize("case", CASES)
def test_every_finding_has_its_numbers(case):
    result = diagnosed(case)
    assert result.findings
    for one in result.findings:
        assert one.evidence
        assert one.id in CATALOG
        assert one.says.endswith(".")
        if one.kind == "illness":
            assert one.attempts
            assert any(number.line for number in one.evidence), one


def evidence(case, id):
    (one, *_) = diagnosed(next(name for name in CASES if name.startswith(case))).of(id)
    return {number.what: number for number in one.evidence}


def test_numbers_and_lines_of_the_storm():
    # case.md: 0.403 migrations per fault, 32.9 million pages, share 0.266; the second block begins at line 18
    found = evidence("006", "page-ping-pong")
    assert found["numa_pages_migrated, 4.0-rc1"].value == 32_916_316
    assert found["numa_pages_migrated, 4.0-rc1"].line == 29
    assert found["pages migrated per fault, 4.0-rc1"].value == pytest.approx(0.403, abs=5e-4)
    assert found["local share, 4.0-rc1"].value == pytest.approx(0.266, abs=5e-4)
    assert found["pages migrated per fault, 3.19"].value == pytest.approx(0.035, abs=5e-4)


def test_numbers_of_other_cases():
    churn = evidence("012", "tiering-churn")
    assert churn["pages promoted per page demoted, reverted"].value == pytest.approx(0.975, abs=5e-4)
    failing = evidence("051", "migrations-fail")
    assert failing["failed share of migrations, base"].value == pytest.approx(0.996, abs=5e-4)
    foreign = evidence("058", "node-full-foreign-allocations")
    assert foreign["foreign share of what was meant for node 1"].value == pytest.approx(0.038, abs=5e-4)
    assert foreign["free memory of node 1"].value == pytest.approx(0.008, abs=5e-4)
    strict = evidence("047", "scan-filter-too-strict")
    assert strict["pages scanned per second, 6.6.0-rc2-sched-numabtrace-v1"].value == pytest.approx(52, abs=0.1)
    assert strict["share of pid_inactive, 6.6.0-rc2-sched-numabtrace-v1"].value == pytest.approx(0.488, abs=5e-4)
    storm = evidence("055", "page-ping-pong")
    assert storm["mean rate"].value == pytest.approx(31_543, rel=0.01)


def test_doubtful_sums_make_less_sure():
    result = diagnosed(next(name for name in CASES if name.startswith("025")))
    assert [one.confidence for one in result.of("node-full-foreign-allocations")] == ["medium"]


def test_asymmetric_distances_are_a_remark():
    result = diagnosed(next(name for name in CASES if name.startswith("084")))
    assert len(result.remarks) == 1
    assert "0 to 4: 28, back: 23" in result.remarks[0]
