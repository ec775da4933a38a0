"""Reader of tasks.log."""

from functools import partial

from numalab.readers import formats, tasks
from tests.readers.helpers import golden, refuses

LOG = golden("tasks", "log.txt")


def test_golden():
    report = tasks.parse(LOG)
    assert len(report.rows) == 12
    assert report.rows[1] == tasks.Row(10.353486, 200, 204, "wl_p0t0", "R", 1, 0, 59, 15, 1, 0, 9, 3)
    assert report.rows[-1] == tasks.Row(39.378342, 201, 203, "wl_p1t1", "R", 2, 1, 1938, 1015, 8752, 2, 405, 13)


def test_dataset():
    ds = formats.read(LOG, "log.txt").dataset()
    assert ds.time.values.tolist() == [10.352845, 39.372756]
    assert ds.task.values.tolist() == [200, 201, 202, 203, 204, 205]
    assert ds.task_process.values.tolist() == [200, 201, 201, 201, 200, 200]
    assert ds.task_node.values.tolist() == [[[1, 1, 0, 1, 0, 1], [1, 1, 0, 1, 0, 1]]]
    assert ds.task_cpu.values.tolist() == [[[3, 2, 0, 3, 1, 2], [3, 2, 0, 2, 1, 3]]]
    assert ds.task_state.values[0, 0].tolist() == [1, 1, 0, 0, 0, 0]
    assert ds.process_name.values.tolist() == ["wl_p0m", "wl_p1m"]
    assert ds.cpu_node.values.tolist() == [0, 0, 1, 1]


def test_sleeping_main_threads_do_not_count_for_convergence():
    ds = formats.read(LOG, "log.txt").dataset()
    # workers of process 200 are on nodes 0 and 1, so is process 201
    assert ds.numa.converged().values.tolist() == [[False, False]]
    moved = ds.assign(task_node=ds.task_node.copy(data=[[[1, 1, 0, 0, 1, 1], [0, 1, 0, 0, 1, 1]]]))
    assert moved.numa.converged().values.tolist() == [[True, True]]


def test_what_is_wrong():
    parse = partial(refuses, tasks.parse)
    parse(LOG[:-5], 13, "expected the 12 columns", "cut off")
    parse(LOG.replace("# t pid", "# time pid"), 1, "expected the header")
    parse("", 1, "expected the header")
    parse(LOG + LOG.split("\n", 1)[1], 14, "time goes back from 39.3783 to 10.3528 s")
