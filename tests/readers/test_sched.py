"""Reader of /proc/PID/sched: the grammars of 3.14 to 6.18."""

from functools import partial

import pytest

from numalab.readers import formats, sched
from numalab.readers._text import ReadError
from numalab.readers.sched import NodeFaults
from tests.readers.helpers import golden, refuses

LOG = golden("sched", "log.txt")


def test_golden_log():
    first, second = sched.parse(LOG).tasks
    assert (first.time, first.pid, first.tid, first.comm, first.line) == (39.373315, 200, 204, "wl_p0t0", 1)
    assert (first.scan_seq, first.preferred, first.total, first.node, first.group) == (5, 0, 4884, 0, 205)
    assert first.faults == {0: NodeFaults(3132, 720, 3132, 1589), 1: NodeFaults(0, 1032, 2259, 1746)}
    assert first.values["se.sum_exec_runtime"] == 29207.035580
    assert second.faults[1] == NodeFaults(2259, 714, 2259, 1746)
    # the kernel's own total is the sum of the task's four
    assert first.total == sum(one.private + one.shared for one in first.faults.values())


def test_dataset():
    ds = formats.read(LOG, "log.txt").dataset()
    assert ds.task.values.tolist() == [204, 205]
    assert ds.kind.values.tolist() == ["shared", "private"]
    assert ds.faults.values[0, 0].tolist() == [[[720, 3132], [1032, 0]], [[869, 0], [714, 2259]]]
    assert ds.group_faults.values[0, 0, 0].tolist() == [[1589, 3132], [1746, 2259]]
    assert ds.preferred_nid.values.tolist() == [[[0, 1]]]
    assert ds.numa_group_id.values.tolist() == [[[205, 205]]]
    assert ds.total_numa_faults.values.tolist() == [[[4884, 3842]]]
    assert ds.scan_seq.values.tolist() == [[[5]]]
    assert ds.task_node.values.tolist() == [[[0, 1]]]
    assert ds.task_run_ms.values[0, 0, 0] == 29207.03558


def test_golden_paste_without_head():
    (task,) = sched.parse(golden("sched", "new.txt")).tasks
    assert (task.tid, task.node, task.group, task.preferred, task.scan_seq) == (-1, 5, 11176, 5, 61)
    assert task.faults[5] == NodeFaults(3427, 1, 3427, 1)
    assert task.faults[3] == NodeFaults(1, 0, 1, 0)
    assert sum(one.private + one.shared for one in task.faults.values()) == task.total == 3440


def test_golden_grammar_of_3_16():
    (task,) = sched.parse(golden("sched", "old.txt")).tasks
    assert task.faults == {0: NodeFaults(34, 4), 1: NodeFaults(113, 1)}
    assert (task.node, task.preferred, task.group, task.total) == (1, 0, None, None)
    assert task.values["numa_migrations"] == 121
    ds = formats.read(golden("sched", "old.txt"), "x").dataset()
    assert ds.faults.values.tolist() == [[[[[4, 34], [1, 113]]]]]
    assert "group_faults" not in ds
    assert "numa_group_id" not in ds


def test_grammar_of_3_14_says_numa_faults():
    text = golden("sched", "old.txt").replace("numa_faults_memory", "numa_faults")
    assert sched.parse(text).tasks[0].faults == sched.parse(golden("sched", "old.txt")).tasks[0].faults
    none = "x (7, #threads: 1)\nnuma_migrations, 0\nnuma_faults, 0, 0, 1, 0, -1\nnuma_faults, 1, 0, 0, 0, -1\n"
    (task,) = sched.parse(none).tasks
    assert (task.faults, task.preferred, task.node) == ({0: NodeFaults(0, 0)}, -1, 0)


@pytest.mark.parametrize(
    ("release", "swapped"),
    [("3.16.0", False), ("4.15.0-213-generic", True), ("4.18", True), ("4.19.0", False), ("6.18.1", False)],
)
def test_kernels_that_print_private_and_shared_exchanged(release, swapped):
    assert sched.prints_swapped(release) is swapped
    report = sched.parse(LOG, release=release)
    assert report.swapped is swapped
    right = NodeFaults(720, 3132, 1589, 3132) if swapped else NodeFaults(3132, 720, 3132, 1589)
    assert report.tasks[0].faults[0] == right


def test_a_task_that_ended():
    again = LOG[: LOG.index("@ 39.373879")].replace("39.373315", "40.4").replace("3132", "9")
    ds = formats.read(LOG + again, "x").dataset()
    assert ds.time.values.tolist() == [39.373315, 40.4]
    assert ds.faults.values[0, 1].tolist() == [[[720, 9], [1032, 0]], [[0, 0], [0, 0]]]
    # states are gone with the task, counters keep their last value
    assert ds.total_numa_faults.values[0].tolist() == [[4884, 3842], [4884, 0]]
    assert ds.task_node.values[0].tolist() == [[0, 1], [0, -1]]
    assert ds.task_run_ms.values[0].tolist() == [[29207.03558, 28938.758088], [29207.03558, 28938.758088]]


def test_the_report_names_the_doubt():
    assert any("exchange" in found.what for found in formats.read(LOG, "x").guessed)
    assert any("exchanged back" in found.what for found in formats.read(LOG, "x", release="4.15").understood)
    new = formats.read(LOG, "x", release="6.1")
    assert not any("exchange" in found.what for found in (*new.understood, *new.guessed))
    with pytest.raises(ValueError, match=r"release: expected something like 4\.15\.0"):
        sched.parse(LOG, release="stable")


def test_a_kernel_without_numa_balancing():
    report = sched.parse("bash (12, #threads: 1)\n-----\nse.vruntime   :  5.25\npolicy : 0\n")
    assert report.tasks[0].values == {"se.vruntime": 5.25, "policy": 0}
    assert "no NUMA part" in report.skipped[0].reason


def test_what_is_wrong():
    parse = partial(refuses, sched.parse)
    last = LOG.rindex("numa_faults node=1")
    parse(LOG[:last], LOG[: LOG.rindex("@")].count("\n") + 1, "task 205 has numa_faults of nodes 0", "cut off")
    parse(LOG[: last + 30], LOG.count("\n"), "expected a whole line of the NUMA part")
    parse(LOG[: LOG.rindex("current_node")], LOG[: LOG.rindex("@")].count("\n") + 1, "of nodes none")
    parse(LOG.replace(" tid=204", ""), 1, "expected '@ <seconds> pid=<n> tid=<n>'")
    parse("hello\n", 0, "no /proc/PID/sched")


# ------------------------------------------------------------------ pastes


def test_tasks_named_by_prompts():
    new = golden("sched", "new.txt")
    text = f"$ cat /proc/12/sched\n{new}$ cat /proc/12/task/13/sched\n{new}"
    tasks = sched.parse(text).tasks
    assert [(task.pid, task.tid) for task in tasks] == [(12, 12), (12, 13)]
    ds = formats.read(text, "x").dataset()
    assert ds.task.values.tolist() == [12, 13]
    assert ds.process.values.tolist() == [12]


def test_tasks_without_names_are_numbered():
    new = golden("sched", "new.txt")
    assert [task.tid for task in sched.parse(new + new).tasks] == [-1, -2]


def test_one_task_twice_is_two_runs():
    new = golden("sched", "new.txt")
    text = f"x (7, #threads: 1)\n{new}x (7, #threads: 1)\n{new.replace('3440', '3500')}"
    ds = formats.read(text, "x").dataset()
    assert ds.total_numa_faults.values.tolist() == [[[3440]], [[3500]]]


def test_quoted():
    quoted = "".join(f"> {line}\n" for line in golden("sched", "new.txt").splitlines())
    assert sched.parse(quoted).tasks[0].faults == sched.parse(golden("sched", "new.txt")).tasks[0].faults


def test_values_only_have_no_faults():
    ds = formats.read("current_node=1, numa_group_id=5\n", "x").dataset()
    assert "faults" not in ds
    assert (ds.task_node.item(), ds.numa_group_id.item(), ds.node.values.tolist()) == (1, 5, [1])


NODES = "".join(
    f"numa_faults node={node} task_private=1 task_shared=2 group_private=3 group_shared={{}}{node}\n" for node in (0, 1)
)


def test_lines_of_nodes_that_come_again_are_of_another_look():
    first, second = sched.parse(NODES.format(5, 5) + NODES.format(6, 6)).tasks
    assert [task.faults[1].group_shared for task in (first, second)] == [51, 61]


def test_wrapped_lines():
    (task,) = sched.parse(NODES.format(5, 5).replace(" group_shared", "\ngroup_shared")).tasks
    assert task.faults == {0: (1, 2, 3, 50), 1: (1, 2, 3, 51)}


def test_a_node_that_has_no_faults_listed():
    reading = formats.read(f"current_node=-5, numa_group_id=0\n{NODES.format(5, 5)}", "x")
    with pytest.raises(ReadError, match=r"^x: sched: its values make no run \(.*task_node: -5 is not a label of node"):
        reading.dataset()
