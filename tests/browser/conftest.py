"""JupyterLab on a copy of the notebooks, and Debian's Chromium in front of it.

Only the system's browser is used, /usr/bin/chromium or what CHROMIUM names; Playwright's own are never downloaded.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

CHECKOUT = Path(__file__).resolve().parents[2]
#: Looked at by people after a change of the figures; not under version control.
SCREENSHOTS = CHECKOUT / "runs" / "screenshots"

#: A slider that redraws the smallest of figures: what any answer in a browser takes.
TRIVIAL = """\
import ipywidgets as w
from io import BytesIO
from matplotlib.figure import Figure

slider = w.IntSlider(value=3, min=1, max=40, continuous_update=False)
image = w.Image(format="png")

def draw(_=None):
    figure = Figure(figsize=(9.6, 3.6), dpi=100)
    figure.subplots().plot([0, slider.value])
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    image.value = buffer.getvalue()

slider.observe(draw, names="value")
draw()
w.VBox([slider, image])
"""


def chromium():
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if Path(path).exists():
        return path
    message = f"no browser at {path}: install Debian's chromium, or set CHROMIUM to a Chromium"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Address and token of a JupyterLab in a folder of its own, with its own settings."""
    chromium()
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(CHECKOUT / "notebooks", root / "notebooks")
    cell = {"cell_type": "code", "id": "trivial", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {
        "cells": [cell | {"source": TRIVIAL}], "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    }  # fmt: skip
    (root / "notebooks" / "trivial.ipynb").write_text(json.dumps(notebook))
    # every cell is in the page, also those out of sight; no news from the network
    _set(root, "notebook-extension/tracker", windowingMode="none")
    _set(root, "apputils-extension/notification", fetchNews="false", checkForUpdates=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    home = {name: str(root / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    environment = os.environ | home | {"JUPYTERLAB_SETTINGS_DIR": str(root / "settings")}
    with open(root / "log", "w") as log:
        server = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
                f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0",
                "--expose-app-in-browser", f"--ServerApp.root_dir={root}",
            ],
            env=environment, cwd=root, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        _await(f"http://127.0.0.1:{port}/api?token={token}", server, root / "log")
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.terminate()
        server.wait(30)


def _set(root, name, **values):
    """Write settings of JupyterLab."""
    path = root / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(values))


def _await(url, server, log):
    for _ in range(240):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2)
        except OSError:
            time.sleep(0.25)
        else:
            return
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
