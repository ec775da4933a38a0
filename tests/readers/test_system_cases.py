"""Real pastes from the field: each reads to the values that were taken from it by hand.

golden/cases/<case>/expected.json holds formats, cells of tables (table, row, column, value), labels, values of the run
and the local share (null: undefined).
"""

import json
import math

import numpy as np
import pytest

from numalab.readers import mixed
from tests.readers.helpers import GOLDEN

CASES = {path.parent.name: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("cases/*/expected.json"))}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param], mixed.read(GOLDEN / "cases" / request.param / "input.txt")


def test_there_are_all_cases_of_system_files():
    numbers = "001 002 004 005 006 012 022 025 026 027 029 030 033 035 037 058 060 063 064 068 073 075 076 079 083 084"
    assert [name[:3] for name in CASES] == [*numbers.split(), "085", "088"]


def test_formats(case):
    expected, found = case
    assert found.formats == expected["formats"]


def test_nothing_is_left_over(case):
    """Every line of these was understood: values, titles, prompts or the frame of an archive."""
    assert case[1].skipped == ()


def test_tables(case):
    expected, found = case
    tables = {table.name: table for table in found.tables}
    for name, row, column, value in expected.get("tables", ()):
        assert tables[name].get(row, column) == value, (name, row, column)


def test_labels(case):
    expected, found = case
    for name, value in expected.get("coords", ()):
        ds = next(ds for ds in found.datasets().values() if name in ds.coords)
        assert ds[name].values.tolist() == value, name


def test_values(case):
    expected, found = case
    for name, where, value in expected.get("values", ()):
        ds = next(ds for ds in found.datasets().values() if name in ds)
        labels = {key: label for key, label in where.items() if key != "sum"}
        array = ds[name].sel(labels).sum(where.get("sum", []))
        assert array.values.tolist() == value, (name, where)


def test_local_share(case):
    expected, found = case
    if "local_share" in expected:
        want = [math.nan if share is None else share for share in expected["local_share"]]
        np.testing.assert_allclose(found.dataset().numa.local_share().values, want, atol=5e-5)


def test_sixteen_nodes_have_four_levels():
    """Case 075: 10 within a node, 12 and 16 and 18 within a socket, 40 between the two."""
    distance = mixed.read(GOLDEN / "cases" / "075-snc-16node-distances" / "input.txt").dataset()["distance"].values
    assert sorted(set(distance.ravel().tolist())) == [10, 12, 16, 18, 40]
    assert (distance == distance.T).all()
    assert (distance[:8, 8:] == 40).all()


def test_pages_do_not_say_where_a_virtual_machine_is():
    """Case 004: numastat and numa_maps both give pages of one process, so there is no one run of both."""
    found = mixed.read(GOLDEN / "cases" / "004-snp-guest-gmem-numastat-numamaps" / "input.txt")
    with pytest.raises(ValueError, match="numa_maps and another part both have region, and not the same"):
        found.dataset()
    assert found["numastat-p"].dataset().pages.values.tolist() == [[[[5412, 412, 10097, 10081]]]]
