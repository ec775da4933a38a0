"""Reader of trace events: ftrace, trace-cmd and perf script, grammars of old and new kernels."""

from functools import partial

import numpy as np
import pytest

from numalab.readers import formats, ftrace, trace
from numalab.readers._events import decisions, outcomes
from tests.readers.helpers import golden, refuses

TRACE = golden("ftrace", "trace.txt")
OTHERS = golden("ftrace", "others.txt")


def test_golden():
    report = ftrace.parse(TRACE)
    assert report.counts() == {
        "sched_move_numa": 1,
        "sched_swap_numa": 1,
        "sched_stick_numa": 1,
        "sched_skip_vma_numa": 2,
        "hint_fault": 3,
        "scan_work": 1,
        "set_preferred": 1,
        "should_migrate": 1,
    }
    assert report.moves == [ftrace.Move(27.492087, 204, 1, 20, 204, 200, 205, 1, 0, 2, 1)]
    assert report.swaps == [ftrace.Swap(39.164076, 205, 3, 22, 205, 200, 205, 3, 1, 202, 201, 202, 0, 0)]
    assert report.sticks == [ftrace.Stick(29.160069, 202, 1, 21, 202, 201, 202, 1, 0, 0, 0, 0, -1, -1)]
    assert report.skipped_vmas[1] == ftrace.SkipVma(10.596022, 203, 3, 14, 0, 0x401000, 0x4A4000, "shared_ro")
    assert report.hint_faults == [
        ftrace.HintFault(10.596061, 202, 0, 15, 2097151, 0, 1, 0x8),
        ftrace.HintFault(10.596544, 202, 0, 17, 2097151, 1, 1, 0x10),
        ftrace.HintFault(10.892264, 203, 3, 19, 202, 1, 1, 0x8),
    ]
    assert report.should_migrate == [ftrace.ShouldMigrate(10.596539, 202, 0, 16, 1)]
    assert report.set_preferred == [ftrace.SetPreferred(10.672072, 205, 2, 18, 1)]
    assert report.scan_works == [ftrace.ScanWork(10.596014, 203, 3, 12)]
    assert (report.names[205], report.lost, report.skipped) == ("wl_p0t1", 0, [])


def test_golden_other_events():
    report = ftrace.parse(OTHERS)
    assert report.migrate_pages == [
        ftrace.MigratePages(14.687462, 201, 3, 1, 512, 0, 1, 0, 0, 0, "MIGRATE_ASYNC", "numa_misplaced")
    ]
    assert report.migrate_tasks[0] == ftrace.MigrateTask(15.000110, 0, 3, 2, "init", 194, 2, 3)
    assert report.page_faults == [ftrace.PageFault(18.963897, 190, 3, 6, 0x7FB16135C1C0, 0x40204E, 0x4)]
    assert report.names[0] == "<idle>"


OLD_FIELDS = "pid=77 tgid=70 ngid=5 src_cpu=1 src_nid=0 dst_cpu=9 dst_nid=1"
OLD = f"""\
 nginx: worker-77    [001] d... 100.000001: sched_move_numa: {OLD_FIELDS}
 nginx: worker-77    [001] d... 100.010000: sched_stick_numa: {OLD_FIELDS}
           x-8      [002] .... 101.000000: mm_migrate_pages: nr_succeeded=3 nr_failed=1 mode=MIGRATE_ASYNC reason=
"""


def test_grammars_before_5_7():
    report = ftrace.parse(OLD)
    assert report.names[77] == "nginx: worker"
    assert report.sticks == [ftrace.Stick(100.01, 77, 1, 2, 77, 70, 5, 1, 0, -1, -1, -1, 9, 1)]
    assert report.migrate_pages[0][4:] == (3, 1, -1, -1, -1, -1, "MIGRATE_ASYNC", "")
    done, failed = outcomes(report)
    assert (done, len(failed)) == ([], 1)


FIELDS = "pid=204 tgid=200 ngid=205 src_cpu=1 src_nid=0 dst_cpu=2 dst_nid=1"


@pytest.mark.parametrize(
    "line",
    [
        f"         wl_p0t0-204     [001] .....    27.492087: sched_move_numa: {FIELDS}",
        f"         wl_p0t0-204     (    200) [001] .....    27.492087: sched_move_numa: {FIELDS}",
        f"         wl_p0t0-204   [001]    27.492087: sched_move_numa:      {FIELDS}",
        f"         wl_p0t0   204 [001]    27.492087: sched:sched_move_numa: {FIELDS}",
        f"wl_p0t0   200/204 [001]    27.492087:       sched:sched_move_numa: {FIELDS}\r",
    ],
    ids=["ftrace", "ftrace with tgid", "trace-cmd", "perf script", "perf script pid/tid"],
)
def test_prefixes_of_all_tools(line):
    assert ftrace.looks_like(line)
    report = ftrace.parse(line)
    assert report.moves == [ftrace.Move(27.492087, 204, 1, 1, 204, 200, 205, 1, 0, 2, 1)]
    assert report.names == {204: "wl_p0t0"}


def test_what_is_not_used_is_named():
    text = TRACE + "   x-1 [000] ..... 50.000000: sched_switch: prev_comm=x\nhello\nCPU:1 [LOST 12 EVENTS]\n"
    report = ftrace.parse(text)
    assert [(skip.line, skip.reason) for skip in report.skipped] == [
        (23, "event sched_switch is not used"),
        (24, "not a trace event"),
    ]
    assert report.lost == 12
    cut = TRACE.replace("59088/59088", "59088/60000")
    assert ftrace.parse(cut).lost == 912


def test_what_is_wrong():
    parse = partial(refuses, ftrace.parse)
    parse(TRACE[: TRACE.rindex(" dst_nid=")], 22, "expected the fields of sched_swap_numa", "cut off")
    parse(TRACE.replace("flags=0x8", "flags="), 15, "expected the fields of hint_fault")
    parse(TRACE.replace("ret=1", "ret=maybe"), 16, "expected the fields of should_migrate")
    parse(TRACE.replace("reason=shared_ro", "reason="), 13, "expected the fields of sched_skip_vma_numa")
    parse("hello\n", 0, "holds no trace event")


# ------------------------------------------------------------- moves and swaps


def test_a_swap_followed_by_a_stick_of_the_same_pair_failed():
    report = ftrace.parse(OTHERS)
    done, failed = outcomes(report)
    assert done == []
    assert [(stick.task, stick.partner, stick.dst_node) for stick in failed] == [(252, 254, 1)]
    # of another pair it is another attempt
    done, _ = outcomes(
        ftrace.parse(
            OTHERS.replace("15.208062: sched_stick_numa: src_pid=252", "15.208062: sched_stick_numa: src_pid=251")
        )
    )
    assert [swap.task for swap in done] == [252]
    # much later too
    done, _ = outcomes(ftrace.parse(OTHERS.replace("15.208062", "17.208062")))
    assert [swap.task for swap in done] == [252]


def test_table_of_events():
    ds = formats.read(TRACE, "x").dataset()
    table = ds.numa.table("event")
    assert table.event_time_s.values.tolist() == [27.492087, 29.160069, 39.164076]
    assert table.event_kind.values.tolist() == [0, 3, 1]
    assert table.event_task.values.tolist() == [204, 202, 205]
    assert table.event_partner.values.tolist() == [-1, -1, 202]
    assert table.event_dst_node.values.tolist() == [1, -1, 0]
    assert ds.task.values.tolist() == [202, 204, 205]
    assert ds.task_name.values.tolist() == ["wl_p1t0", "wl_p0t0", "wl_p0t1"]
    failed = formats.read(OTHERS, "x").dataset().numa.table("event")
    assert (failed.event_kind.values.tolist(), failed.event_dst_cpu.values.tolist()) == ([3], [2])


# ------------------------------------------------------------- decisions


def test_golden_decisions():
    got = decisions(ftrace.parse(TRACE), zero=10.0)
    assert np.allclose(got.time, [0.596061, 0.596544, 0.892264])
    assert got.pid.tolist() == [202, 202, 203]
    # 2097151 is all ones: unset; 202 is CPU 0, low bits of pid 202
    assert got.last_cpu.tolist() == [-1, -1, 0]
    assert got.last_pid.tolist() == [-1, -1, 202]
    assert got.node.tolist() == [0, 1, 1]
    assert got.flags.tolist() == [trace.FAULT_LOCAL, trace.MIGRATE_FAIL, trace.FAULT_LOCAL]
    # the filter was asked for the second fault only
    assert got.answer.tolist() == [-1, 1, -1]
    assert (got.filter_answer.tolist(), got.filter_fault.tolist()) == ([1], [1])
    assert got.address.tolist() == [-1, -1, -1]
    assert (got.scan_pid.tolist(), got.preferred_node.tolist()) == ([203], [1])


def test_last_cpupid_is_cut_into_cpu_and_pid():
    line = TRACE.splitlines()[14]
    # CPU 5 and a pid whose low 8 bits are 0x12: 5 * 256 + 18
    got = decisions(ftrace.parse(line.replace("=2097151", "=1298") + "\n" + line.replace("=2097151", "=65535")))
    assert (got.last_cpu.tolist(), got.last_pid.tolist()) == ([5, 255], [18, 255])
    # a kernel for 256 CPUs keeps 8 + 8 bits, and this is its "unset"
    got = decisions(ftrace.parse(line.replace("=2097151", "=65535")), cpu_bits=8)
    assert got.last_cpu.tolist() == [-1]


def test_answers_of_other_tasks_are_not_mixed_up():
    lines = TRACE.splitlines()
    fault, ask = lines[16], lines[15]
    other = ask.replace("wl_p1t0-202", "wl_p1t1-203").replace("ret=1", "ret=0")
    got = decisions(ftrace.parse("\n".join([ask, other, fault, fault.replace("-202", "-203")])))
    assert got.answer.tolist() == [1, 0]
    # an answer without a fault is told apart
    got = decisions(ftrace.parse("\n".join([ask, ask.replace("ret=1", "ret=0"), fault])))
    assert got.answer.tolist() == [0]
    assert got.filter_fault.tolist() == [-1, 0]


def test_the_address_belongs_to_the_fault_it_precedes():
    user = OTHERS.splitlines()[-1]
    fault = TRACE.splitlines()[16].replace("wl_p1t0-202", "wl_p0t0-190")
    got = decisions(ftrace.parse("\n".join([user, fault, fault])))
    assert got.address.tolist() == [0x7FB16135C1C0, -1]
