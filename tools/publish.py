"""Make slides, handouts and student copies of notebooks.

    python tools/publish.py slides                         all notebooks, into build/slides
    python tools/publish.py handouts                       all notebooks, into build/handouts
    python tools/publish.py student notebooks/20_convergence.ipynb -o copies

What is stored in the notebooks is shown; nothing is executed. Pages need neither a kernel nor the network: reveal.js
and the widgets' JavaScript lie beside them (fetched once, with npm, into build/npm). In a student copy the solutions
are left out; everything else is as it was.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from nbconvert import HTMLExporter, SlidesExporter

CHECKOUT = Path(__file__).resolve().parent.parent
NOTEBOOKS, BUILD = CHECKOUT / "notebooks", CHECKOUT / "build"
#: Extends nbconvert's page, whichever it is.
PAGE = (Path(__file__).parent / "page.html.j2").read_text(encoding="utf-8")
#: npm packages pages need, and which of their files. reveal.js is the release that nbconvert writes for.
PACKAGES = {
    "reveal.js@4.0.2": (
        "dist/*.js",
        "dist/*.css",
        "dist/theme/white.css",
        "dist/theme/fonts/source-sans-pro/*",
        "plugin/notes/*",
    ),
    "@jupyter-widgets/html-manager@1.0.14": ("dist/embed-amd.js", "dist/*.woff2", "dist/embed.js.LICENSE.txt"),
    "requirejs@2.3.7": ("require.js",),
}
#: What is beside the pages, as they name it.
SCRIPTS = {
    "require_js_url": "requirejs/require.js",
    "widget_renderer_url": "@jupyter-widgets/html-manager/dist/embed-amd.js",
}
#: Parts of nbconvert's pages that would load what no notebook here needs, and from the network.
UNUSED = (
    r"<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->",
    r"<!-- Load mermaid.*?<!-- End of mermaid configuration -->",
    r'<script type="module">\s*document.addEventListener\([^{]*\{\s*const diagrams.*?</script>',
    r'<script type="module">\s*import mermaid.*?</script>',
    r'<script src="[^"]*/jquery[^"]*"></script>',
)
WIDGET = "application/vnd.jupyter.widget-view+json"


class PublishError(RuntimeError):
    """Something is missing; the message says what and how to get it."""


def main() -> int:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("slides", "handouts", "student"))
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(NOTEBOOKS.glob("*.ipynb")))
    parser.add_argument("-o", "--output", type=Path, help="folder; without it build/WHAT")
    args = parser.parse_args()
    folder = args.output or BUILD / args.what
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if args.what != "student":
            fetch_web(folder, BUILD / "npm")
        for path in args.notebooks:
            name, text = MAKE[args.what](path)
            (folder / name).write_text(text, encoding="utf-8")
            print(f"{folder / name}: {len(text) / 1000:.0f} kB")
    except (PublishError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


# ------------------------------------------------------------------------------------ the three products
def slides(path: Path) -> tuple[str, str]:
    """Return a notebook as slides: name of the file, and its text.

    Parameters
    ----------
    path : Path
    """
    notebook = without_solutions(nbformat.read(path, as_version=4))
    for cell in notebook.cells:
        cell.metadata.slideshow = {"slide_type": slide_type(cell)}
    exporter = SlidesExporter(
        raw_template=PAGE, reveal_url_prefix="reveal.js", reveal_theme="white", reveal_scroll=True, **SCRIPTS
    )
    html = exporter.from_notebook_node(_titled(_linked(notebook, ".slides.html")))[0]
    return f"{path.stem}.slides.html", _offline(html)


def handout(path: Path) -> tuple[str, str]:
    """Return a notebook as one page to read: name of the file, and its text. Solutions stand at the end."""
    notebook = nbformat.read(path, as_version=4)
    last = [cell for cell in notebook.cells if is_solution(cell)]
    notebook = without_solutions(notebook)
    if last:
        head = nbformat.v4.new_markdown_cell("## Solutions of the exercises", id="solutions-at-the-end")
        notebook.cells += [head, *last]
    html = HTMLExporter(raw_template=PAGE, **SCRIPTS).from_notebook_node(_titled(_linked(notebook, ".html")))[0]
    return f"{path.stem}.html", _offline(html)


def student(path: Path) -> tuple[str, str]:
    """Return a notebook without its solutions: name of the file, and its text."""
    notebook = without_solutions(nbformat.read(path, as_version=4))
    return path.name, nbformat.writes(notebook, indent=1) + "\n"


MAKE: dict[str, Callable[[Path], tuple[str, str]]] = {"slides": slides, "handouts": handout, "student": student}


def is_solution(cell: Any) -> bool:
    """Tell whether a cell is a solution."""
    return "solution" in cell.metadata.get("tags", ())


def without_solutions(notebook: Any) -> Any:
    """Return a copy without the cells that are solutions."""
    copy = notebook.copy()
    copy.cells = [cell.copy() for cell in notebook.cells if not is_solution(cell)]
    return copy


def slide_type(cell: Any) -> str:
    """Say where a cell stands: headings and pictures begin a page, the rest goes on below.

    Parameters
    ----------
    cell : NotebookNode

    Returns
    -------
    str
        "slide" (to the right), "subslide" (downwards) or "-" (the same page).
    """
    if cell.cell_type == "markdown":
        return {"#": "slide", "##": "slide", "###": "subslide"}.get(cell.source.split(" ", 1)[0], "-")
    shown = {kind for output in cell.outputs for kind in output.get("data", ())}
    return "subslide" if shown & {"image/png", WIDGET} else "-"


# ------------------------------------------------------------------------------------ pages without network
def _linked(notebook: Any, ending: str) -> Any:
    """Let links between notebooks lead to the pages that are made of them."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\(([\w]+)\.ipynb\)", rf"](\1{ending})", cell.source)
    return notebook


def _titled(notebook: Any) -> Any:
    """Name the page as its first heading does; nbconvert would call every page Notebook."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            notebook.metadata.title = cell.source.splitlines()[0].removeprefix("# ").replace("`", "")
            break
    return notebook


def _offline(html: str) -> str:
    """Take out what would be loaded from the network.

    Raises
    ------
    PublishError
        Something is left.
    """
    for part in UNUSED:
        html = re.sub(part, "", html, flags=re.DOTALL)
    left = re.findall(r"""<(?:script|link)[^>]*(?:src|href)=["'](https?://[^"']+)""", html)
    left += re.findall(r"""import\(?\s*(?:\w+ from )?["'](https?://[^"']+)""", html)
    if left:
        raise PublishError(f"the page would load {', '.join(left)}: tell tools/publish.py what that is")
    return html


def fetch_web(target: Path, cache: Path) -> None:
    """Put the JavaScript that pages need beside them; what was fetched once is not fetched again.

    Parameters
    ----------
    target : Path
        Folder beside the pages.
    cache : Path
        Where the packages are kept.

    Raises
    ------
    PublishError
        npm is not there, or fails.
    """
    for package, wanted in PACKAGES.items():
        name = package.rsplit("@", 1)[0]
        archive = _packed(package, cache)
        if (target / name).exists():
            shutil.rmtree(target / name)
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                inside = member.name.removeprefix("package/")
                if member.isfile() and any(PurePosixPath(inside).match(one) for one in (*wanted, "LICENSE")):
                    member.name = inside
                    packed.extract(member, target / name, filter="data")


def _packed(package: str, cache: Path) -> Path:
    """Return the archive of an npm package, from the cache or the registry."""
    name, version = package.rsplit("@", 1)
    archive = cache / f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise PublishError(f"npm is needed to fetch {package}: install Node.js (Debian: apt install npm)")
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "--silent", package, "--pack-destination", str(cache)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise PublishError(f"npm could not fetch {package}: {done.stderr.strip()[-500:]}")
    return archive


if __name__ == "__main__":
    sys.exit(main())
