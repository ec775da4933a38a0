"""The explorer, driven from code, without a front end."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from numalab import plots, runs
from numalab.simulation import simulate
from numalab.widgets import Computation, Explorer, Setup, choice, slider, steps, switch
from numalab.widgets.jobs import DONE, Done
from numalab.widgets.times import until_time
from numalab.workloads import perf_bench_numa


@pytest.fixture(autouse=True)
def nothing_remembered():
    DONE.clear()


def load(t, seconds=2.0):
    return Setup("guest-4x2", "perf_bench_numa", "3.17", seconds, {"p": 2, "t": t, "P": 16})


def astray(results, values):
    return plots.astray(results, seconds=2)


@pytest.fixture
def explorer():
    knobs = [slider("t", "threads", 1, 8, 2), switch("x", "nothing")]
    return Explorer("Threads", knobs, lambda v: {"3.17": load(v["t"])}, astray, presets={"four": {"t": 4}}, band=3)


def pick(bottom):
    """An explorer of numbers: twice what the control says plus the seeds, and a record of what was computed."""
    done = []

    def sides(values):
        def compute(seeds):
            done.append((values["k"], tuple(seeds)))
            return [2 * values["k"] + seed for seed in seeds]

        return {"twice": Computation(compute, f"twice({values['k']}, {{seeds}})", "no machine")}

    def tell(results, values):
        return f"twice {values['k']} is {results['twice']}"

    made = Explorer("Twice", [slider("k", "number", bottom, 9, 3)], sides, lambda r, v: Figure((2, 1)), tell, band=2)
    return made, done


def test_it_shows_what_the_model_gives(explorer):
    explorer.set(t=3)
    alone = simulate("guest-4x2", perf_bench_numa(p=2, t=3, P=16), "3.17", seconds=2, seeds=[0])
    assert runs.equal(explorer.results["3.17"], alone)
    assert explorer.sentence == plots.astray({"3.17": alone}, seconds=2).alt
    assert explorer.png.startswith(b"\x89PNG")
    assert f'alt="{explorer.sentence}"' in explorer.image.value
    assert explorer.sentence in explorer.words.value
    assert explorer.facts == "Machine guest-4x2: 4 nodes, 8 CPUs; 2 s simulated in steps of 1 ms; seed 0."


def test_the_python_call_gives_the_same(explorer):
    explorer.set(t=3, seed=5)
    names = {}
    exec(explorer.call, names)
    assert runs.equal(names["ds"], explorer.results["3.17"])
    assert names["ds"].seed.values.tolist() == [5]


def test_the_band_is_over_the_seeds_after_the_problem_number(explorer):
    explorer.set(band=True, seed=4)
    assert explorer.results["3.17"].seed.values.tolist() == [4, 5, 6]
    assert explorer.facts.endswith("; seeds 4 to 6.")
    alone = simulate("guest-4x2", perf_bench_numa(p=2, t=2, P=16), "3.17", seconds=2, seeds=[4, 5, 6])
    assert np.array_equal(explorer.results["3.17"].task_node, alone.task_node)


def test_without_a_band_there_is_no_button_for_it(explorer):
    def buttons(one):
        return [w.description for row in one.view.children for w in getattr(row, "children", ()) if hasattr(w, "icon")]

    alone = Explorer("Threads", [slider("t", "threads", 1, 8, 2)], lambda v: {"3.17": load(v["t"])}, astray, band=0)
    assert "band over 3 seeds" in buttons(explorer)
    assert not [label for label in buttons(alone) if "band" in label]
    assert "next seed" in buttons(alone)


def test_an_earlier_time_is_shown_without_running(explorer):
    explorer.wait()
    whole = explorer.sentence
    before = explorer._generation
    explorer.set(time=0.5)
    assert explorer._generation == before
    cut = until_time(explorer.results["3.17"], 0.5)
    assert explorer.sentence == plots.astray({"3.17": cut}, seconds=2).alt != whole
    explorer.set(time=2.0)
    assert explorer.sentence == whole


def test_presets_and_reset(explorer):
    explorer.set(x=True)
    explorer.preset("four")
    assert explorer.values == {"t": 4, "x": False}
    explorer.set(t=7, seed=3, band=True, wait=False)
    explorer.reset()
    explorer.wait()
    assert explorer.values == {"t": 2, "x": False}
    assert explorer.seeds == [0]
    explorer.another.click()
    explorer.wait()
    assert explorer.seeds == [1]


def test_several_controls_at_once_are_one_run():
    explorer, done = pick(1)
    explorer.set(k=4, seed=7)
    assert done == [(4, (7,))]
    assert explorer.sentence == "twice 4 is [15]"


def test_what_was_computed_is_not_computed_again():
    explorer, done = pick(1)
    for k in (4, 5, 4):
        explorer.set(k=k)
    assert [k for k, _ in done] == [4, 5]
    assert explorer.sentence == "twice 4 is [8]"


def test_stale_work_is_dropped():
    """While the first value is computed the reader moves on twice: the second is never begun, the first not shown."""
    begun, go_on, done, told = threading.Event(), threading.Event(), [], []

    def sides(values):
        def compute(seeds):
            done.append(values["k"])
            if values["k"] == 1:
                begun.set()
                assert go_on.wait(30)
            return values["k"]

        return {"k": Computation(compute, f"k={values['k']}", "")}

    def tell(results, values):
        told.append(results["k"])
        return str(results["k"])

    explorer = Explorer("k", [slider("k", "k", 1, 9, 5)], sides, lambda r, v: Figure((1, 1)), tell)
    explorer.set(k=1, wait=False)
    assert begun.wait(30)
    explorer.set(k=2, wait=False)
    explorer.set(k=3, wait=False)
    go_on.set()
    explorer.wait()
    assert (done, told, explorer.sentence) == ([1, 3], [3], "3")


def test_pictures_come_before_the_end(explorer, monkeypatch):
    """The first picture is drawn after a few steps and shows that much."""
    reached = []

    def draw(results, values):
        reached.append(float(results["3.17"].time[-1]))
        return plots.astray(results, seconds=2)

    monkeypatch.setattr(explorer, "_draw", draw)
    explorer.wait()
    assert reached[0] < 1.0
    assert reached[-1] == 2.0


def test_errors_are_shown_and_raised():
    def sides(values):
        return {"too large": Setup("guest-4x2", "perf_bench_numa", "3.17", 1.0, {"p": 1, "t": 1, "P": values["mb"]})}

    explorer = Explorer("Memory", [steps("mb", "memory", [16, 1 << 20], 16, unit="MB")], sides, astray)
    with pytest.raises(ValueError, match="expected at most 904 MB in all"):
        explorer.set(mb=1 << 20)
    assert "This cannot be shown" in explorer.sentence
    explorer.set(mb=16)
    assert "tasks" in explorer.sentence


def test_a_bare_figure_needs_a_sentence():
    explorer = Explorer("k", [], lambda v: {"3.17": load(1, 0.1)}, lambda r, v: Figure((1, 1)))
    with pytest.raises(TypeError, match="give tell="):
        explorer.wait()


def test_names_and_values_are_checked(explorer):
    with pytest.raises(ValueError, match="set: no control 'u'; the controls are t, x"):
        explorer.set(u=1)
    with pytest.raises(ValueError, match="expected one of four, got 'five'"):
        explorer.preset("five")
    with pytest.raises(ValueError, match="preset 'no': no control 'u'"):
        Explorer("k", [slider("t", "t", 0, 1, 0)], dict, astray, presets={"no": {"u": 1}})
    with pytest.raises(ValueError, match="slider t: expected a value from 1 to 8, got 9"):
        slider("t", "threads", 1, 8, 9)
    with pytest.raises(ValueError, match="steps t: expected one of 1, 2, got 3"):
        steps("t", "threads", [1, 2], 3)
    with pytest.raises(ValueError, match="choice t: expected one of a, got b"):
        choice("t", "threads", ["a"], "b")


def test_it_shows_as_widget_and_as_text(explorer):
    bundle = explorer._repr_mimebundle_()
    explorer.wait()
    assert bundle["text/plain"] == "Explorer: Threads (t, x)"
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.view.model_id


def test_a_dataset_up_to_a_time():
    ds = load(2).run()
    cut = until_time(ds, 1.0)
    assert float(cut.time[-1]) <= 1.0 < float(ds.time[len(cut.time)])
    used = ds.event_time_s.values[0][: int(ds.event_count[0])]
    assert int(cut.event_count[0]) == (used <= 1.0).sum()
    assert until_time(ds, -1.0).sizes["time"] == 1
    assert until_time("words", 1.0) == "words"


def test_calls_that_need_the_machine_and_patches():
    setup = Setup("mel-4n48", "numa02", "3.16-tip", 0.1, {}, ("S1#2",), {"scan_size_mb": 64})
    names = {}
    exec(setup.call([1]), names)
    assert isinstance(names["ds"], xr.Dataset)
    assert runs.equal(names["ds"], setup.run([1]))
    assert runs.provenance(names["ds"])["kernel"]["switches"]["scan_size_mb"] == 64


def test_seeds_are_parted_so_that_one_is_there_soon():
    assert load(1).parts(range(10)) == [[0], [1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert load(1).parts([7]) == [[7]]


def test_the_oldest_result_is_forgotten():
    done = Done(most=2)
    done.put("a", 1)
    done.put("b", 2)
    assert done.get("a") == 1
    done.put("c", 3)
    assert (done.get("a"), done.get("b"), done.get("c")) == (1, None, 3)


def test_python_can_end_while_something_is_computed():
    code = (
        "from numalab import plots\n"
        "from numalab.widgets import Explorer, Setup\n"
        "long = Setup('rik-4n80', 'perf_bench_numa', '3.17', 500, {'p': 8, 't': 20})\n"
        "explorer = Explorer('long', [], lambda v: {'long': long}, lambda r, v: plots.nodes(r, seconds=500))\n"
        "explorer._changed()\n"
        "while not explorer.png: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
