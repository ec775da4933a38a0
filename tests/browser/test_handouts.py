"""Handouts can be read by everybody: axe-core finds no violation of WCAG 2 at the levels A and AA.

The pages themselves need nothing that is fetched. Their widgets are drawn by JavaScript from npm; without it the rest
of every page is still judged, and the test of the widgets says that it was skipped, and why.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import CHECKOUT
from tests.browser.page import BROKEN
from tools import publish

NOTEBOOKS = sorted((CHECKOUT / "notebooks").glob("*.ipynb"))
#: axe's names of the levels A and AA of WCAG 2.0, 2.1 and 2.2.
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
#: A page takes a second or two; on a machine that does something else, much longer.
PATIENCE_MS = 120_000
VIEWS = f"script[type='{publish.WIDGET}']"
DRAWN = ".widget-subarea > .jupyter-widgets"
ALL_DRAWN = f"() => document.querySelectorAll({VIEWS!r}).length === document.querySelectorAll({DRAWN!r}).length"
#: No language, no title, a picture without words, a field without a label, a link too faint.
BAD_PAGE = """<!DOCTYPE html><html><head></head><body><main>
<img src="data:,"><input><a href="#x" style="color:#999;background:#fff">faint</a>
</main></body></html>"""


@pytest.fixture(scope="module")
def handouts(tmp_path_factory):
    """Folder of all handouts, and why their widgets are not drawn ("" if they are)."""
    folder = tmp_path_factory.mktemp("handouts")
    for path in NOTEBOOKS:
        name, text = publish.handout(path)
        (folder / name).write_text(text, encoding="utf-8")
    try:
        publish.fetch_web(folder, publish.BUILD / "npm")
    except publish.PublishError as error:
        return folder, str(error)
    return folder, ""


@pytest.fixture(scope="module")
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def handout(request, handouts, page):
    """One handout in the browser, its widgets drawn if they can be."""
    folder, without_widgets = handouts
    page.goto((folder / f"{request.param.stem}.html").as_uri())
    if not without_widgets:
        page.wait_for_function(ALL_DRAWN)
    return page


def violations(page):
    """Return a line for each element that breaks a rule: page, rule, element."""
    found = Axe().run(page, options={"runOnly": LEVELS, "resultTypes": ["violations"]}).response["violations"]
    return [
        f"{page.url.rsplit('/', 1)[-1]}: {rule['id']} ({rule['help']}): {node['target'][0]} {node['html'][:120]}"
        for rule in found
        for node in rule["nodes"]
    ]


def test_nothing_violates_wcag(handout):
    found = violations(handout)
    assert not found, "\n".join(found)


def test_pictures_are_described_and_the_page_is_named(handout):
    """What axe cannot judge: nbconvert gives every picture a text, and every page a title, that says nothing."""
    for picture in handout.locator("img").all():
        assert len(picture.get_attribute("alt")) > 40
        assert "No description" not in picture.get_attribute("alt")
    assert handout.title() == handout.locator("h1").first.inner_text().removesuffix("¶")


def test_widgets_were_judged_too(handout, handouts):
    _, without_widgets = handouts
    if without_widgets:
        pytest.skip(f"the handouts were judged without their widgets: {without_widgets}")
    assert handout.locator(DRAWN).count() == handout.locator(VIEWS).count() > 0
    text = handout.locator("body").inner_text()
    assert [words for words in BROKEN if words in text] == []


def test_a_violation_is_told_with_page_rule_and_element(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD_PAGE)
    bad = browser.new_page()
    bad.goto((tmp_path / "bad.html").as_uri(), timeout=PATIENCE_MS)
    found = violations(bad)
    bad.close()
    assert {line.split(" (")[0] for line in found} == {
        f"bad.html: {rule}" for rule in ("color-contrast", "document-title", "html-has-lang", "image-alt", "label")
    }
    assert [line for line in found if 'img <img src="data:,">' in line]
