"""The files under ``data/``: published figures, traces, sample inputs.

In a wheel they lie inside the package (``numalab/data``); in a checkout, and in
an editable install of it, beside the package. Both are found here and nowhere else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path


def _root() -> Traversable:
    installed = files("numalab") / "data"
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parent.parent
    # pyproject.toml proves that this is our checkout, not some site-packages with a data/ folder.
    if (checkout / "pyproject.toml").is_file() and (checkout / "data").is_dir():
        return checkout / "data"
    raise FileNotFoundError(
        f"numalab's data files are missing: neither {installed} nor {checkout / 'data'} exists; reinstall numalab"
    )


def path(*parts: str) -> Traversable:
    """Find one data file or folder.

    Parameters
    ----------
    *parts : str
        Names below ``data/``, for example ``path("published", "convergence.toml")``.

    Returns
    -------
    importlib.resources.abc.Traversable
        Has ``read_text``, ``open``, ``iterdir``.

    Raises
    ------
    FileNotFoundError
        When there is no such file; the message lists what the folder holds.
    """
    here = _root()
    for depth, part in enumerate(parts):
        if part in {"", ".", ".."} or "/" in part:
            raise ValueError(f"data path part {part!r}: give plain names, one argument per folder level")
        below = here / part
        if not (below.is_file() or below.is_dir()):
            folder = "/".join(("data", *parts[:depth]))
            names = ", ".join(sorted(entry.name for entry in here.iterdir())) if here.is_dir() else "nothing, a file"
            raise FileNotFoundError(f"no {part!r} in numalab's {folder}; it holds: {names}")
        here = below
    return here


def read_text(*parts: str) -> str:
    """Read one data file as UTF-8 text, line ends untouched; see `path` for the arguments."""
    return path(*parts).read_bytes().decode("utf-8")


@contextmanager
def local_path(*parts: str) -> Iterator[Path]:
    """Give one data file as a real path, for libraries that cannot read anything else."""
    with as_file(path(*parts)) as local:
        yield local
