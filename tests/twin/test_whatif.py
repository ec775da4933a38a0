"""The words of what-ifs: what each changes, and what is refused."""

from dataclasses import replace

import pytest

from numalab.kernel import Kernel
from numalab.twin import Twin, TwinError
from tests.twin.small import recording


@pytest.fixture(scope="module")
def twin():
    return Twin.of(recording(), "r", pages_per_s=1e5)


def test_off_and_on(twin):
    assert twin.model.parameters == {"scan_size_mb": 64}
    never = {"scan_size_mb": 64, "numa_balancing": 0}
    for words in ("off", "numa_balancing=0", "kernel.numa_balancing=0"):
        assert twin.changed(words).parameters == never
    off = replace(twin, model=twin.changed("off"))
    assert off.changed("on").parameters == off.changed("numa_balancing=1").parameters == {"scan_size_mb": 64}


def test_another_kernel_keeps_what_was_set(twin):
    model = twin.changed("kernel=6.14")
    assert model.kernel == Kernel("6.14")
    assert model.parameters == {"scan_size_mb": 64}


@pytest.mark.parametrize("name", ["scan_size_mb", "numa_balancing_scan_size_mb", "kernel.numa_balancing_scan_size_mb"])
def test_a_setting_by_any_of_its_names(twin, name):
    model = twin.changed(f"{name}=128")
    assert model.kernel.scan_size_mb == 128
    assert model.parameters == {}


def test_switches_of_all_kinds_and_parameters(twin):
    assert twin.changed("fail_slows=off").kernel.fail_slows is False
    assert twin.changed("pid_filter=none").kernel.pid_filter == "none"
    assert twin.changed("numa_period_threshold=3").kernel.numa_period_threshold == 3
    assert twin.changed("remote_cost=1000").parameters == {"scan_size_mb": 64, "remote_cost": 1000}


def test_several_together_in_any_order(twin):
    one, other = twin.changed("kernel=6.14,scan_size_mb=32,off"), twin.changed("off, scan_size_mb=32, kernel=6.14")
    assert one == other
    assert (one.kernel, one.parameters) == (Kernel("6.14", scan_size_mb=32), {"numa_balancing": 0})


def test_a_patch(twin):
    assert twin.changed("kernel=3.16,patch=S1#2").kernel == Kernel("3.16").patched("S1#2")


def test_bound(twin):
    both = twin.changed("bind=0").workload
    assert [one.nodes for one in both.bindings] == [(0,)]
    assert {one.first_touch for one in both.regions} == {(0,)}
    assert {one.policy for one in both.regions} == {"explicit"}
    tasks = twin.changed("cpubind=0+2").workload
    assert [one.nodes for one in tasks.bindings] == [(0, 2)]
    assert tasks.regions == twin.model.workload.regions
    spread = twin.changed("interleave").workload
    assert {one.first_touch for one in spread.regions} == {(0, 2)}
    assert spread.bindings == twin.model.workload.bindings


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "what-if '': expected changes with commas between"),
        ("off,,on", "what-if 'off,,on': expected changes with commas between"),
        ("of", "what-if 'of': not understood; did you mean off?"),
        ("scansize_mb=64", "what-if 'scansize_mb=64': not understood; did you mean scan_size_mb=?"),
        ("faster", "what-if 'faster': not understood; expected off, on, interleave, bind=NODE, kernel=RELEASE"),
        ("scan_size_mb=big", "switch scan_size_mb: 'big' is no whole number from 1 to 1,000,000,000 (MB)"),
        ("fail_slows=2", "switch fail_slows: '2' is neither on nor off"),
        ("remote_cost=-1", "what-if 'remote_cost=-1': expected a whole number (of 1000), got '-1'"),
        ("kernel=9.9", "what-if 'kernel=9.9': no kernel '9.9'; known: "),
        ("patch=x", "what-if 'patch=x': no patch 'x'; known: "),
        ("numa_balancing=2", "expected 0 or 1, got '2'; memory tiering (2) is not modelled"),
        ("bind=1", "what-if 'bind=1': expected nodes of the machine (0, 2), + between, got '1'"),
        ("bind=0-2", "what-if 'bind=0-2': expected nodes of the machine (0, 2), + between, got '0-2'"),
    ],
)
def test_refusals(twin, spec, words):
    with pytest.raises(TwinError) as caught:
        twin.changed(spec)
    assert words in str(caught.value)


def test_memory_that_does_not_fit():
    ds = recording()
    # node 2 has 1424 pages of the processes and 200 free ones; all have 2136
    ds["free_pages"].loc[{"node": 2}] = 200
    tight = Twin.of(ds, "r", pages_per_s=1e5)
    with pytest.raises(
        TwinError, match=r"^what-if 'bind=2': the memory does not fit: 8 MB, and node 2 has 6 MB for it$"
    ):
        tight.changed("bind=2")
    assert tight.changed("bind=0").workload.bindings
