"""Pasting and uploading in a real JupyterLab: what people do in the notebook on their own machine."""

import pytest

from tests.browser.page import Notebook

COUNTERS = "numa_pte_updates 0\nnuma_hint_faults 0\nnuma_pages_migrated 0\nnuma_hit 900\n"
NODES = b"available: 2 nodes (0,2)\nnode 0 cpus:\nnode 0 size: 0 MB\nnode 2 cpus: 0 1\nnode 2 size: 900 MB\n"


@pytest.fixture(scope="module")
def notebook(lab, browser):
    opened = Notebook(browser, lab, "60_your_machine.ipynb")
    opened.run_all()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def place(notebook):
    """The place of one machine: the first text field, with all that belongs to it."""
    field = notebook.page.locator(".widget-textarea textarea").first
    return field.locator("xpath=ancestor::div[contains(@class,'widget-vbox')][2]")


def test_what_is_pasted_is_read_and_judged(notebook, place):
    place.locator("textarea").fill(COUNTERS)
    place.locator("textarea").blur()
    place.get_by_text("i information: balancing-off").wait_for(timeout=20_000)
    assert "vmstat" in place.inner_text()


def test_what_cannot_be_read_is_said_once(notebook, place):
    place.locator("textarea").fill("it is slow")
    place.locator("textarea").blur()
    place.get_by_text("paste: looks like no format that numalab reads").wait_for(timeout=20_000)
    assert "Traceback" not in place.inner_text()


def test_files_are_uploaded(notebook, place):
    place.locator("textarea").fill("")
    place.locator("textarea").blur()
    files = [
        {"name": "nodes.txt", "mimeType": "text/plain", "buffer": NODES},
        {"name": "counters.txt", "mimeType": "text/plain", "buffer": COUNTERS.encode()},
    ]
    with notebook.page.expect_file_chooser() as chooser:
        place.locator("button", has_text="files").click()
    chooser.value.set_files(files)
    place.get_by_text("illness: memoryless-node-enables-balancing").wait_for(timeout=20_000)
    text = place.inner_text()
    assert "nodes.txt" in text
    assert "counters.txt" in text
    place.locator("button", has_text="empty").click()
    place.get_by_text("Nothing is here yet").wait_for(timeout=20_000)
    assert notebook.noise() == []
