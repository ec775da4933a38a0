"""Reader of what the load programs print."""

from numalab.readers import workload_log
from numalab.readers.workload_log import Spread, Work
from tests.readers.helpers import golden, refuses


def test_golden_numawl():
    report = workload_log.parse(golden("workload_log", "numawl.txt"))
    assert report.starts == {201: 9.545273, 200: 9.554682}
    assert report.work[0] == Work(10.545628, 203, 148, 606208, 3)
    assert report.work[-1] == Work(39.565875, 205, 3480, 14254080, 10)


def test_golden_cowread():
    report = workload_log.parse(golden("workload_log", "cowread.txt"))
    assert report.starts == {198: 9.172166}
    assert report.work[-1] == Work(33.214304, 199, 2808, -1, 9)
    assert report.results == {"readers": 4, "secs": 25, "sums": 11042}


def test_golden_conv():
    report = workload_log.parse(golden("workload_log", "conv.txt"))
    assert report.spread[1] == Spread(0.47, ((0, 0, 2, 0), (1, 1, 0, 0), (1, 0, 0, 1), (0, 0, 0, 0)), 2)
    assert report.results["conv_s"] == 11.23


def test_golden_cow():
    report = workload_log.parse(golden("workload_log", "cow.txt"))
    assert (report.passes[0], report.passes[14], len(report.passes)) == (306, 3317, 16)
    assert report.results == {"total": 22274, "per_s": 1484.93, "min": 306, "max": 3317}
    assert sum(report.passes.values()) == 22274


def test_other_text_is_skipped_and_named():
    report = workload_log.parse("# Running 'sched/messaging' benchmark:\n\n     Total time: 7.246 [sec]\n")
    assert [(skip.line, skip.text) for skip in report.skipped] == [
        (1, "# Running 'sched/messaging' benchmark:"),
        (3, "     Total time: 7.246 [sec]"),
    ]


def test_what_is_wrong():
    conv = golden("workload_log", "conv.txt")
    refuses(workload_log.parse, "W 10.545628 1 1 203 3\n", 1, "expected a whole line of numawl")
    refuses(workload_log.parse, conv.replace(" 0/1/0/1\n", "\n"), 3, "as many processes and nodes")
