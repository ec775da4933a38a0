"""Pictures of runs: the lines drawn, the text and the sentence, from numbers small enough to check by hand."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from numalab import _data, plots, runs
from numalab.locks import Lock, solve
from numalab.patch_threads import NOT_PUBLISHED, Claim
from numalab.plots import PictureError, style
from numalab.plots.picture import listed, over_seeds
from numalab.plots.published import published_range
from numalab.readers import perf_bench

GB = 2**30 // 4096
CLAIMS = [
    Claim("t", "time [s]", "<m>", "generally 10-20 s", 12.0, 10.0, 18.0, None, True),
    Claim("t", "ratio", "<m>", "4,000", 3000.0, None, None, 5000.0, False, "too < slow"),
    Claim("t", "late", "<m>", "40 s", float("inf"), None, None, None, False),
    Claim("t", "share", "<m>", "one run, 41.8 s", 0.4, None, None, None, None),
]


def build(seeds=1, **variables):
    """Two nodes, two processes of two tasks, samples at 0, 1 and 2 s."""
    coords = {
        "run": np.arange(seeds),
        "seed": np.arange(seeds),
        "kernel": np.array(["3.17"] * seeds),
        "time": np.array([0.0, 1.0, 2.0]),
        "node": np.array([0, 1]),
        "cpu": np.arange(4),
        "cpu_node": (("cpu",), np.array([0, 0, 1, 1])),
        "task": np.arange(4),
        "task_process": (("task",), np.array([0, 0, 1, 1])),
        "task_name": (("task",), np.array(["p0t0", "p0t1", "p1t0", "p1t1"])),
        "process": np.arange(2),
    }
    for axis, labels in (("region", ["heap"]), ("kind", ["shared", "private"])):
        if any(axis in value[0] for value in variables.values() if isinstance(value, tuple)):
            coords[axis] = np.array(labels)
    return runs.build(variables, coords, title="t", source="simulated", params={})


def node_runs(*nodes):
    """Runs of given nodes: (time, task) each."""
    return build(len(nodes), task_node=(("run", "time", "task"), np.array(nodes, np.int32)))


#: Process 0 is on node 0 from the start; the second task of process 1 comes to node 1 at 2 s.
HOME = [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
STRAY = [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0]]


def lines(picture):
    return [line.get_ydata().tolist() for line in picture.figure.axes[0].get_lines()]


def events(*rows):
    """A run with events: kind, task, partner, gain."""
    names = ("event_kind", "event_task", "event_partner", "event_gain")
    table = dict(zip(names, np.array(rows).T, strict=True))
    table |= {"event_time_s": 1.0 + np.arange(len(rows)), "event_src_cpu": 0 * table["event_kind"]}
    table |= dict.fromkeys(("event_src_node", "event_dst_cpu", "event_dst_node"), 0 * table["event_kind"])
    padded = runs.padded("event", [table])
    return build(task_node=(("run", "time", "task"), np.array([HOME], np.int32)), **padded)


def test_tasks_astray_of_one_run():
    picture = plots.astray({"before": node_runs(STRAY), "after": node_runs(HOME)})
    # of process 0 one of two is not with the other at 0 s, of process 1 one until 2 s
    assert lines(picture) == [[2, 1, 1], [1, 1, 0]]
    assert picture.alt == (
        "before: 1 of 4 tasks are still astray after 2.0 s. after: from 2.0 s on all 4 tasks are with their process."
    )
    assert picture.text.splitlines()[1].split() == ["time", "[s]", "before", "after"]
    assert picture.text.splitlines()[-1].split() == ["2.0", "1", "0"]


def test_several_runs_are_a_median_and_a_band():
    picture = plots.astray(node_runs(STRAY, HOME, STRAY))
    assert lines(picture) == [[2, 1, 1]]
    assert len(picture.figure.axes[0].collections) == 1
    assert picture.alt == "3.17: at 2.0 s all tasks are with their process in 1 of 3 runs."


def test_memory_by_node():
    pages = np.array([[[[4 * GB, 0]], [[3 * GB, GB]], [[GB, 3 * GB]]]])
    picture = plots.pages(build(pages=(("run", "time", "region", "node"), pages)))
    assert lines(picture) == [[4, 3, 1], [0, 1, 3]]
    assert picture.alt == (
        "3.17: memory on nodes 0 and 1: at the start 4.00 and 0.00 GB, after 2.0 s 1.00 and 3.00 GB."
    )
    with pytest.raises(KeyError):
        plots.pages(build(pages=(("run", "time", "region", "node"), pages)), region="stack")


def test_local_share_in_a_window():
    ds = build(
        numa_hint_faults=(("run", "time"), np.array([[0, 10, 30]])),
        numa_hint_faults_local=(("run", "time"), np.array([[0, 2, 17]])),
    )
    # 2 of 10 in the first second, 15 of 20 in the next; before there was none
    assert lines(plots.local(ds))[0][1:] == [20, 75]
    assert plots.local(ds).alt == "3.17: 20 % of hint faults are local at first (1.0 s), 75 % at the end."
    none = build(
        numa_hint_faults=(("run", "time"), np.zeros((1, 3), np.int64)),
        numa_hint_faults_local=(("run", "time"), np.zeros((1, 3), np.int64)),
    )
    assert plots.local(none).alt == "3.17: no hint fault yet."
    plots.local(none).figure.savefig("/dev/null", format="png")


def test_scan_period_of_each_task():
    period = np.array([[[1000] * 4, [500] * 4, [250, 500, 1000, 2000]]], np.int32)
    picture = plots.scan(build(scan_period_ms=(("run", "time", "task"), period)))
    assert lines(picture) == [[1, 0.5, 0.25], [1, 0.5, 0.5], [1, 0.5, 1], [1, 0.5, 2]]
    assert "is 0.75 s after 2.0 s (median over tasks; from 0.25 to 2.00 s)" in picture.alt


def test_waiting_is_of_all_tasks():
    wait = np.array([[[0.0] * 4, [0, 0, 400, 400], [0, 0, 400, 1200]]])
    picture = plots.waiting(build(task_wait_ms=(("run", "time", "task"), wait)))
    # 800 ms of 4 x 1000 ms, then as much again
    assert np.allclose(lines(picture)[0], [20, 20])
    assert picture.alt == "3.17: tasks waited 20.0 % of the time."


def test_nodes_of_tasks_with_what_moved_them():
    ds = events((0, 3, -1, 100), (1, 0, 2, 5), (1, 1, 3, 450), (2, 2, -1, 0), (3, 0, -1, 0))
    picture = plots.nodes({"before": ds, "after": ds}, seconds=4)
    assert picture.panels == 2
    words = "after 2.0 s 2 of 2 processes are on one node each; 1 moves, 2 swaps, 1 moves by the load balancer so far."
    assert picture.alt == f"before: {words} after: {words}"
    # 20 rows of columns: process 1 is on nodes 0/1 with 1/1 threads, at the end with 0/2
    body = picture.text.split("\n\n")[0].splitlines()
    assert body[0] == "before: threads of each process on nodes 0/1"
    assert [row.split() for row in body[3:]] == [
        ["0.0", "2/0", "1/1"], ["1.0", "2/0", "1/1"], ["2.0", "2/0", "0/2"],
    ]  # fmt: skip
    first = picture.figure.axes[0]
    image = first.images[0].get_array()
    # row 3 is task p1t1: node 0 until 2 s, then node 1 for the last sample; what is not simulated is empty
    assert image[3, 0] == 0
    assert image.mask[3, -1]
    assert {text.get_text() for text in first.texts} == {"0: 2", "1: 2"}


def test_moves_by_gain():
    picture = plots.moves(events((0, 3, -1, 100), (1, 0, 2, 5), (1, 1, 3, 450), (3, 0, -1, 0)))
    assert picture.alt == "3.17: 1 moves and 2 swaps, 1 of them with a gain below 30 of 1000."
    rows = {line.split()[0]: line.split()[1:] for line in picture.text.splitlines()[3:]}
    assert rows["100-199"] == ["1.0", "0.0"]
    assert rows["5-9"] == ["0.0", "1.0"]
    # the two words of the open classes come apart
    assert rows[">="] == ["400", "0.0", "1.0"]


def test_faults_by_node_of_the_memory():
    faults = np.zeros((1, 3, 4, 2, 2), np.int64)
    faults[0, -1, 0] = [[30, 30], [20, 20]]
    faults[0, -1, 3] = [[0, 0], [0, 8]]
    picture = plots.faults(build(faults=(("run", "time", "task", "node", "kind"), faults)))
    assert picture.alt == "3.17, at 2.0 s: most faults of p0t0 on node 0 and p1t1 on node 1."
    cells = [text.get_text() for text in picture.figure.axes[0].texts]
    assert cells == ["60 %", "40 %", "-", "-", "-", "-", "0 %", "100 %"]
    with pytest.raises(PictureError, match=r"faults: not in this run.*every=\{'faults': seconds\}"):
        plots.faults(node_runs(HOME))


def test_the_mails_own_trace():
    text = _data.read_text("published", "convergence_trace.txt")
    picture = plots.perf(perf_bench.to_dataset(perf_bench.parse(text)))
    # its lines say 0/0 1/1 36/2 0/0, ..., 41/3 39/2 40/2 40/2, 40/2 40/2 40/2 40/2
    assert lines(picture) == [[0, 43, 42, 41, 40], [1, 37, 38, 39, 40], [36, 39, 40, 40, 40], [0, 41, 40, 40, 40]]
    assert "41, 39, 40 and 40 threads on the nodes, 9 process-node pairs" in picture.alt


def test_published_beside_the_model():
    picture = plots.published(CLAIMS)
    assert [published_range(one) for one in CLAIMS] == [(10, 20), (4000, 4000), (40, 40), (41.8, 41.8)]
    assert picture.alt == ("1 of 3 published statements that can be judged hold in the model; not these: ratio; late.")
    (ax,) = picture.figure.axes
    # what is not judged is not drawn; the model's 12 s are 0.8 of the middle of 10 to 20
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["time [s]", "ratio", "late"]
    drawn = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() in "o^" and len(line.get_xdata()) == 1]
    assert drawn == [0.8, 0.75, 1.25]
    assert [text.get_text() for text in ax.texts] == ["never"]


def test_what_no_mail_says_is_counted_apart():
    control = Claim("t", "control", "<m>", "cannot", 0.0, None, None, None, True, NOT_PUBLISHED)
    traced = Claim("t", "traced", "run", f"({NOT_PUBLISHED})", 1.0, None, None, 2.0, False)
    assert plots.published([*CLAIMS, control, traced]).alt == (
        "1 of 3 published statements that can be judged hold in the model, and 1 of 2 not in the mail (controls, "
        "traces of a real kernel); not these: ratio; late; traced."
    )


def test_locks_against_tasks():
    lock = Lock("mcs", think_s=1.0, section_s=0.1)
    picture = plots.contention({"mcs": lock}, [1, 2, 64], marks=[(2, 10.0, "mail")])
    share = solve(lock, [64]).area_share[0]
    assert lines(picture)[0][0] == pytest.approx(100 * 0.1 / 1.1)
    assert f"{100 * share:.1f} % at 64." in picture.alt
    assert picture.text.splitlines()[-1].split() == ["64", f"{100 * share:.1f}"]


def test_a_figure_made_ahead_is_used_once_and_looks_the_same():
    picture, again = (plots.astray({"before": node_runs(STRAY)}) for _ in range(2))
    style.spare(picture.figure)
    ((ready, _),) = style._SPARES.values()
    assert again.figure is ready
    assert not style._SPARES
    assert style.png(again.figure) == style.png(picture.figure)
    style.spare(Figure())
    assert not style._SPARES


def test_equal_lines_are_both_seen():
    """The first side's line, which has gaps, lies on top."""
    picture = plots.astray({"before": node_runs(STRAY), "after": node_runs(STRAY)})
    first, second = picture.figure.axes[0].get_lines()
    assert first.get_zorder() > second.get_zorder()
    assert first.is_dashed()
    assert not second.is_dashed()


def test_pictures_below_each_other():
    one = plots.astray({"before": node_runs(STRAY), "after": node_runs(HOME)})
    two = plots.nodes({"before": node_runs(STRAY), "after": node_runs(HOME)})
    figure = plots.stacked(two, one)
    assert [ax.axison for ax in figure.axes] == [True, True, True, False]
    assert figure.get_figheight() == pytest.approx(7.2)


def test_it_shows_in_a_notebook_with_its_text_alternative(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **more: shown.append((data, more)))
    picture = plots.astray(node_runs(HOME))
    picture._ipython_display_()
    (image, more), (caption, _) = shown
    assert image["image/png"].startswith(b"\x89PNG")
    assert image["text/plain"] == more["metadata"]["image/png"]["alt"] == caption["text/plain"] == picture.alt


def test_every_plot_of_the_command_line_is_described():
    over_time = {"pages", "nodes", "astray", "local", "scan", "waiting", "perf"}
    assert set(plots.PLOTS) == over_time | {"faults", "moves", "counters"}


def test_colours_differ_in_grey():
    """Areas of neighbouring numbers differ in lightness, and lines never by colour alone."""

    def lightness(colour):
        return float(np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)))

    steps = np.abs(np.diff([lightness(colour) for colour in style.AREAS[:4]]))
    assert steps.min() > 1 / 6
    assert len({(dash, marker) for _, dash, marker in style.NUMBERED}) == len(style.NUMBERED)
    assert len({(dash, marker) for _, dash, marker, _ in style.SIDES}) == len(style.SIDES)


def test_small_helpers():
    assert listed(["a"]) == "a"
    assert listed([1, 2, 3]) == "1, 2 and 3"
    low, middle, high = over_seeds(np.array([[np.nan, 1.0], [np.nan, 3.0]]))
    assert np.isnan(middle[0])
    assert middle[1] == 2
    assert (low[1], high[1]) == (pytest.approx(1.1), pytest.approx(2.9))
    with pytest.raises(PictureError, match="at least one run"):
        plots.astray({})
