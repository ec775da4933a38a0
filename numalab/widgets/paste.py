"""A place for the output of tools: samples to choose from, text to paste, files to upload."""

from __future__ import annotations

import gzip
import html
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets as w
import xarray as xr

from numalab import runs
from numalab.readers import mixed
from numalab.readers._paste import decode
from numalab.readers._reading import Readings

_WIDE = {"description_width": "initial"}
#: What the sample list says as long as none is chosen, and what a paste is called in messages.
NONE, PASTED = "(none)", "paste"
#: What the notebook has no way to answer; the rest of the message stands.
_FLAG = "; force one with --format"


class PasteError(ValueError):
    """What was given cannot be read; the message is for the reader."""


class Paste:
    """Text and files of one machine.

    Parameters
    ----------
    samples : mapping of str to str
        Title -> text; what is chosen is put into the text field.
    sample : str
        Chosen at the start.
    label : str
        What the place is for.
    """

    def __init__(self, samples: Mapping[str, str], sample: str = "", label: str = "output of tools") -> None:
        self._samples = dict(samples)
        self._files: dict[str, bytes] = {}
        self._told: list[Callable[[], None]] = []
        self._quiet = False
        self.choice = w.Dropdown(
            options=[NONE, *samples], value=sample or NONE, description="sample", style=_WIDE,
            layout=w.Layout(width="min(34em, 98%)"),
        )  # fmt: skip
        self.area = w.Textarea(
            value=self._samples.get(sample, ""), description=label, style=_WIDE, continuous_update=False,
            placeholder="Paste here: /proc/vmstat, numastat, numactl -H, perf report, ... several below each other",
            layout=w.Layout(width="98%", height="15em"),
        )  # fmt: skip
        self.area.add_class("numalab-paste")
        self.upload = w.FileUpload(multiple=True, description="files", layout=w.Layout(width="max-content"))
        self.empty = w.Button(description="empty", icon="trash", tooltip="Take text and files away")
        self.names = w.HTML()
        self.choice.observe(lambda change: self._chosen(change["new"]), names="value")
        self.area.observe(lambda change: self._typed(change["new"]), names="value")
        self.upload.observe(lambda change: self._uploaded(change["new"]), names="value")
        self.empty.on_click(lambda _: self.give(""))
        style = w.HTML("<style>.numalab-paste textarea { font-family: monospace; white-space: pre; }</style>")
        row = w.HBox([self.choice, self.upload, self.empty], layout=w.Layout(flex_flow="row wrap"))
        self.view = w.VBox([style, row, self.area, self.names])

    def on_change(self, call: Callable[[], None]) -> None:
        """Call something whenever text or files change."""
        self._told.append(call)

    def choose(self, sample: str) -> None:
        """Take a sample.

        Raises
        ------
        ValueError
            No such sample.
        """
        if sample not in self._samples:
            raise ValueError(f"sample: expected one of {', '.join(self._samples)}, got {sample!r}")
        self._set(sample, self._samples[sample], {})

    def give(self, text: str, files: Mapping[str, bytes] | None = None) -> None:
        """Take text, and files by name, in place of what is there."""
        self._set(NONE, text, files or {})

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Name and content of all that is text.

        Raises
        ------
        PasteError
            A file cannot be unpacked.
        """
        given = [(PASTED, self.area.value)] if self.area.value.strip() else []
        return given + [(name, _text(name, data)) for name, data in self._files.items() if not _is_run(name)]

    @property
    def datasets(self) -> list[tuple[str, xr.Dataset]]:
        """Name and content of all files that are runs.

        Raises
        ------
        PasteError
            One that is none.
        """
        return [(name, _dataset(name, data)) for name, data in self._files.items() if _is_run(name)]

    def inputs(self) -> list[Readings | xr.Dataset]:
        """Read all that is there.

        Raises
        ------
        PasteError
            Nothing is there, or something cannot be read; names it.
        """
        found: list[Readings | xr.Dataset] = []
        for name, text in self.texts:
            found.append(read(name, text))
        found += [ds for _, ds in self.datasets]
        if not found:
            raise PasteError("Nothing is here yet: choose a sample, paste the output of a tool, or upload files.")
        return found

    def _chosen(self, sample: str) -> None:
        if not self._quiet:
            self._set(sample, self._samples.get(sample, ""), {})

    def _typed(self, text: str) -> None:
        if not self._quiet:
            self._set(NONE, text, self._files)

    def _uploaded(self, files: Any) -> None:
        if not self._quiet and files:
            # one's own files do not belong to the machine of a sample
            text = self.area.value if self.choice.value == NONE else ""
            self._set(NONE, text, {one["name"]: bytes(one["content"]) for one in files})

    def _set(self, sample: str, text: str, files: Mapping[str, bytes]) -> None:
        self._quiet = True
        self.choice.value, self.area.value, self._files = sample, text, dict(files)
        if not files:
            self.upload.value = ()
        self._quiet = False
        self._changed()

    def _changed(self) -> None:
        shown = ", ".join(f"{name} ({len(data):,} bytes)" for name, data in self._files.items())
        self.names.value = f"files: {html.escape(shown)}" if shown else ""
        for call in self._told:
            call()


def read(name: str, text: str) -> Readings:
    """Read a text.

    Raises
    ------
    PasteError
        It cannot be read; in one sentence.
    """
    try:
        return mixed.read_text(text if text.endswith("\n") else f"{text}\n", name)
    except ValueError as error:
        raise PasteError(str(error).removesuffix(_FLAG)) from error


def _is_run(name: str) -> bool:
    return name.endswith((".nc", ".nc.gz"))


def _text(name: str, data: bytes) -> str:
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise PasteError(f"{name}: cannot be unpacked ({error}); upload it again") from error
    return decode(data)


def _dataset(name: str, data: bytes) -> xr.Dataset:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(data)
        try:
            ds = runs.open(path)
        except (ValueError, OSError) as error:
            raise PasteError(str(error).replace(f"{folder}/", "")) from error
    ds.encoding["source"] = name
    return ds
