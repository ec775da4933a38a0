"""Slides, handouts and student copies of one small notebook; without network."""

import io
import json
import re
import tarfile
from html import unescape

import nbformat
import pytest

from tools import publish
from tools.store_outputs import stored

HIDDEN = {"tags": ["solution", "hide-cell"], "jupyter": {"source_hidden": True}}
SLIDER = "import ipywidgets as w\nw.IntSlider(description='depth', value=7)"
DRAW = """from IPython.display import display
data = {'text/plain': 'a dot', 'image/png': 'iVBORw0KGgo='}
display(data, metadata={'image/png': {'alt': 'a dot, "small" & red'}}, raw=True)"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Title, slider, a link, a subheading, a picture, a solution."""
    cells = [
        nbformat.v4.new_markdown_cell("# Small\n\nSee [the other](20_convergence.ipynb).", id="title"),
        nbformat.v4.new_code_cell(SLIDER, id="slider"),
        nbformat.v4.new_markdown_cell("### Look", id="look"),
        nbformat.v4.new_code_cell(DRAW, id="picture"),
        nbformat.v4.new_markdown_cell("Words on it.", id="words"),
        nbformat.v4.new_code_cell("print('the answer is', 6 * 7)", id="answer", metadata=HIDDEN),
    ]
    folder = tmp_path_factory.mktemp("notebooks")
    path = folder / "05_small.ipynb"
    path.write_text(stored(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), folder))
    return path


def sources(html):
    """Return what a page loads."""
    return re.findall(r"""<(?:script|link|img)[^>]*(?:src|href)=["']([^"']+)""", html)


def test_a_student_copy_lacks_the_solutions_and_nothing_else(notebook):
    name, text = publish.student(notebook)
    before, after = json.loads(notebook.read_text()), json.loads(text)
    assert name == "05_small.ipynb"
    assert "42" not in text
    assert after["cells"] == [cell for cell in before["cells"] if cell["id"] != "answer"]
    assert after["metadata"] == before["metadata"]


def test_a_handout_has_the_widgets_state_and_its_solutions_at_the_end(notebook):
    name, html = publish.handout(notebook)
    assert name == "05_small.html"
    assert '"description": "depth"' in html
    assert html.index("Words on it.") < html.index("Solutions of the exercises") < html.index("the answer is 42")
    assert 'href="20_convergence.html"' in html


def test_slides_begin_at_headings_and_pictures(notebook):
    name, html = publish.slides(notebook)
    assert name == "05_small.slides.html"
    assert "the answer is 42" not in html
    # one slide to the right; on it the title, below it the slider, the subheading, the picture with its words
    assert html.count("<section>") == 5
    last = html.rsplit("<section>", 1)[1]
    assert "iVBORw0KGgo=" in last
    assert "Words on it." in last
    assert 'href="20_convergence.slides.html"' in html


@pytest.mark.parametrize("make", [publish.slides, publish.handout])
def test_pages_load_only_what_lies_beside_them(notebook, make, tmp_path, monkeypatch):
    packed(tmp_path, monkeypatch)
    publish.fetch_web(tmp_path / "pages", tmp_path / "npm")
    html = make(notebook)[1]
    assert "http://" not in "".join(sources(html))
    local = [one for one in sources(html) if not one.startswith(("data:", "#"))]
    assert local
    for one in [*local, publish.SCRIPTS["widget_renderer_url"]]:
        assert (tmp_path / "pages" / one).is_file(), one
    assert publish.SCRIPTS["widget_renderer_url"] in html


@pytest.mark.parametrize("make", [publish.slides, publish.handout])
def test_pages_have_the_notebooks_title_and_the_pictures_words(notebook, make):
    html = make(notebook)[1]
    assert re.search(r"<title>Small( slides)?</title>", html)
    (picture,) = re.findall(r"<img [^>]*>", html)
    assert 'a dot, "small" & red' in unescape(picture)


def packed(folder, monkeypatch):
    """Stand in for npm: archives with the files that pages name."""
    files = {
        "reveal.js": ("dist/reveal.css", "dist/theme/simple.css", "dist/theme/white.css", "dist/reveal.js"),
        "html-manager": ("dist/embed-amd.js", "dist/index.js", "dist/font.woff2"),
        "requirejs": ("require.js", "bin/r.js"),
    }
    (folder / "npm").mkdir()
    for package in publish.PACKAGES:
        name, version = package.rsplit("@", 1)
        file_name = f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
        with tarfile.open(folder / "npm" / file_name, "w:gz") as archive:
            for file in files[name.rsplit("/", 1)[-1]]:
                info = tarfile.TarInfo(f"package/{file}")
                info.size = 2
                archive.addfile(info, io.BytesIO(b"//"))
    monkeypatch.setattr(publish.subprocess, "run", lambda *args, **kwargs: pytest.fail("npm was called"))


def test_only_what_is_needed_is_unpacked(tmp_path, monkeypatch):
    packed(tmp_path, monkeypatch)
    publish.fetch_web(tmp_path / "pages", tmp_path / "npm")
    publish.fetch_web(tmp_path / "pages", tmp_path / "npm")
    pages = tmp_path / "pages"
    assert {str(path.relative_to(pages)) for path in pages.rglob("*") if path.is_file()} == {
        "requirejs/require.js",
        "@jupyter-widgets/html-manager/dist/embed-amd.js",
        "@jupyter-widgets/html-manager/dist/font.woff2",
        "reveal.js/dist/reveal.css",
        "reveal.js/dist/reveal.js",
        # others load fonts from the network
        "reveal.js/dist/theme/white.css",
    }


def test_without_npm_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(publish.shutil, "which", lambda name: None)
    with pytest.raises(publish.PublishError, match=r"npm is needed to fetch reveal.js@4.0.2: install Node.js"):
        publish.fetch_web(tmp_path / "pages", tmp_path / "npm")


def test_a_page_that_would_load_from_the_network_is_refused():
    with pytest.raises(publish.PublishError, match=r"would load https://example.org/x.js"):
        publish._offline('<script src="https://example.org/x.js"></script>')


def test_reveal_is_the_release_that_nbconvert_writes_for(notebook):
    """Of a page without a prefix."""
    html = publish.SlidesExporter().from_notebook_node(nbformat.read(notebook, as_version=4))[0]
    assert f"unpkg.com/{next(iter(publish.PACKAGES))}/dist/reveal.js" in html
