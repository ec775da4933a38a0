"""Every notebook in a real JupyterLab: it runs, its widgets live, and the explorers answer what Python answers."""

import statistics

import pytest

from tests.browser.conftest import CHECKOUT, SCREENSHOTS
from tests.browser.page import BROKEN, Notebook

NOTEBOOKS = sorted(path.name for path in (CHECKOUT / "notebooks").glob("*.ipynb"))
SIZES = ((1280, 800), (1920, 1080))

#: Name of the first explorer in a notebook's kernel, "" if it has none.
EXPLORER = (
    "next((k for k, v in list(globals().items()) if type(v).__name__ == 'Explorer' and not k.startswith('_')), '')"
)
CHANGED = "([box, was]) => box.querySelector('img').src !== was"
#: What the explorer's own Python calls give, told by its own picture, beside what it shows.
CALLED = """
def called(explorer):
    runs = {}
    for name, block in zip(explorer.results, explorer.call.split("\\n\\nfrom numalab import")):
        names = {}
        exec(block if block.startswith("from") else "from numalab import" + block, names)
        runs[name] = names["ds"]
    return explorer._draw(runs, explorer.values).alt
"""


@pytest.fixture(scope="module", params=NOTEBOOKS)
def notebook(request, lab, browser):
    opened = Notebook(browser, lab, request.param)
    opened.name = request.param.removesuffix(".ipynb")
    opened.run_all()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def explorer(notebook):
    name = notebook.python_value(EXPLORER)
    assert name, "every notebook has an explorer"
    notebook.python(CALLED)
    return Explorer(notebook, name)


class Explorer:
    """The first explorer of a notebook, from both sides: in the page and in the kernel."""

    def __init__(self, notebook, name):
        self.notebook, self.name = notebook, name
        title = notebook.python_value(f"{name}.title")
        heading = notebook.page.locator("h4", has_text=title).first
        self.root = heading.locator("xpath=ancestor::div[contains(@class,'widget-vbox')][1]")
        self.image = self.root.locator("img").first

    def handles(self):
        """The sliders' handles, but for that of the time line, which computes nothing."""
        boxes = self.root.locator(".widget-slider").all()
        return [box.locator(".noUi-handle").first for box in boxes if "show until" not in box.inner_text()]

    def sentence(self):
        return self.root.locator("[role=status]").inner_text()

    def source(self):
        return self.image.get_attribute("src")

    def settled(self):
        """Wait for the end of the run; return sentence and digest of the picture, in the page."""
        words = self.notebook.python_value(f"({self.name}.wait(), {self.name}.sentence)[1]")
        self.root.get_by_text(words, exact=True).wait_for(timeout=20_000)
        png = self.notebook.python_value(f"__import__('hashlib').sha256({self.name}.png).hexdigest()")
        self.notebook.page.wait_for_timeout(100)
        assert self.notebook.digest(self.image) == png
        return words, png


def test_everything_runs_and_nothing_is_broken(notebook):
    assert notebook.errors() == []
    text = notebook.page.locator(".jp-Notebook").inner_text()
    assert [words for words in BROKEN if words in text] == []


def test_pictures_have_text_alternatives_and_controls_have_labels(notebook, explorer):
    words, _ = explorer.settled()
    assert explorer.image.get_attribute("alt") == words
    for field in explorer.root.locator("input, select, textarea").all():
        label = field.evaluate("e => e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.title || ''")
        assert label.strip(), field.evaluate("e => e.outerHTML")


def test_every_slider_changes_picture_and_facts(notebook, explorer):
    for handle in explorer.handles():
        before, picture = notebook.python_value(f"{explorer.name}.values"), notebook.digest(explorer.image)
        at = float(handle.get_attribute("aria-valuenow"))
        middle = (float(handle.get_attribute("aria-valuemin")) + float(handle.get_attribute("aria-valuemax"))) / 2
        # away from the edge, and to less where there is more: that is sooner done
        source = explorer.source()
        notebook.drag(handle, -0.25 if at >= middle else 0.12)
        notebook.page.wait_for_function(CHANGED, arg=[explorer.root.element_handle(), source], timeout=20_000)
        changed = notebook.python_value(f"{explorer.name}.values")
        assert sum(changed[key] != before[key] for key in before) == 1
        assert notebook.digest(explorer.image) != picture, f"the picture is the same after {before} -> {changed}"


def test_the_sentence_is_what_the_python_call_gives(notebook, explorer):
    first = explorer.sentence()
    # the shortest run will do
    notebook.python(f"{explorer.name}.reset()")
    controls = notebook.python_value(f"list({explorer.name}.controls)")
    if "seconds" in controls:
        notebook.python(f"{explorer.name}.set(seconds={explorer.name}.controls['seconds'].min)")
    words, _ = explorer.settled()
    assert words != first
    assert notebook.python_value(f"called({explorer.name})") == words


def test_play_goes_through_time(notebook, explorer):
    whole, _ = explorer.settled()
    play = explorer.root.locator(".widget-play button").first
    runs = notebook.python_value(f"any(type(one).__name__ == 'Dataset' for one in {explorer.name}.results.values())")
    assert play.is_visible() == runs, "runs are played over time, and nothing else is"
    if not runs:
        return
    play.click()
    gone = "([box, was]) => !box.innerText.includes(was)"
    notebook.page.wait_for_function(gone, arg=[explorer.root.element_handle(), whole])
    play.click()
    notebook.page.wait_for_timeout(1500)
    shown = notebook.python_value(f"[{explorer.name}.time.value, {explorer.name}.sentence]")
    assert 0 <= shown[0] < notebook.python_value(f"{explorer.name}.time.max")
    assert shown[1] == explorer.sentence() != whole
    notebook.python(f"{explorer.name}.set(time={explorer.name}.time.max)")
    assert explorer.settled()[0] == whole


def test_stale_runs_are_dropped(notebook, explorer):
    handle = explorer.handles()[0]
    handle.focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
        handle.press(key)
    explorer.settled()
    assert notebook.python_value(f"{explorer.name}._finished == {explorer.name}._generation")


#: First picture after a slider moved, over the smallest figure's time: the aim, and where something is broken, whatever
#: else the machine does.
AIM, TOO_SLOW = 2.0, 3.0


def test_a_picture_comes_about_as_soon_as_the_smallest_figure(notebook, explorer, lab, browser, record_property):
    trivial = Notebook(browser, lab, "trivial.ipynb")
    trivial.run_all()
    plain_handle = trivial.page.locator(".noUi-handle").first
    plain_image = trivial.page.locator(".jp-Notebook img").first
    # away from the end of the slider, where a key changes nothing
    notebook.python(f"{explorer.name}.reset()")
    explorer.settled()
    ratios = []
    while len(ratios) < 3 and min(ratios, default=TOO_SLOW) >= AIM:  # a busy moment is no answer
        plain, ours = [], []
        for key in ["ArrowLeft", "ArrowRight"] * 4:
            plain.append(trivial.answer_ms(plain_handle, plain_image, key))
            # nothing may come from what was computed before
            notebook.python("from numalab.widgets.jobs import DONE; DONE.clear()")
            ours.append(notebook.answer_ms(explorer.handles()[0], explorer.image, key))
            notebook.page.wait_for_timeout(300)
        ratios.append(statistics.median(ours) / statistics.median(plain))
        print(f"{notebook.name}: first picture {statistics.median(ours):.0f} ms, smallest figure "
              f"{statistics.median(plain):.0f} ms, ratio {ratios[-1]:.2f}")  # fmt: skip
    trivial.close()
    record_property("picture_ratio", round(min(ratios), 2))
    assert min(ratios) < TOO_SLOW


def test_screenshots(notebook):
    """Pictures for people; and nothing is wider than the page."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    panel = notebook.page.locator(".jp-WindowedPanel-outer").first
    for width, height in SIZES:
        notebook.page.set_viewport_size({"width": width, "height": height})
        notebook.page.wait_for_timeout(500)
        total = panel.evaluate("e => { e.scrollTop = 0; return e.scrollHeight; }")
        view = panel.evaluate("e => e.clientHeight")
        for number in range(-(-total // view)):
            panel.evaluate("(e, y) => { e.scrollTop = y; }", number * view)
            notebook.page.wait_for_timeout(150)
            notebook.page.screenshot(path=SCREENSHOTS / f"{notebook.name}-{width}-{number:02d}.png")
        assert panel.evaluate("e => e.scrollWidth <= e.clientWidth + 1")


def test_the_console_is_quiet(notebook):
    assert notebook.noise() == []
