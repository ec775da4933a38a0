"""Build what Binder would build, and run the first notebook in it.

    python tools/check_binder.py                # in a temporary folder; needs the network and some minutes
    python tools/check_binder.py notebooks/01_how_numa_balancing_works.ipynb

As repo2docker does for a repository with binder/requirements.txt, runtime.txt and postBuild: a fresh environment of the
Python named in runtime.txt, `pip install --no-cache-dir -r binder/requirements.txt`, then binder/postBuild in a clone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
FIRST = Path("notebooks/00_start_here.ipynb")
PIP = ("python", "-m", "pip")


def main() -> int:
    """Build, run, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=[FIRST])
    args = parser.parse_args()
    python = find_python()
    if python is None:
        print(f"error: {runtime()} is needed, as in binder/runtime.txt; found none", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="numalab-binder-") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "venv"
        copy_checkout(clone)
        steps = [
            ("environment", [python, "-m", "venv", str(home)]),
            ("packages", [*PIP, "install", "--quiet", "--no-cache-dir", "-r", "binder/requirements.txt"]),
            ("postBuild", ["binder/postBuild"]),
            ("consistent", [*PIP, "check"]),
            *((str(one), execute(one)) for one in args.notebooks),
        ]
        for what, command in steps:
            begun = time.monotonic()
            done = subprocess.run(command, cwd=clone, env=environment(home), capture_output=True, text=True)
            if done.returncode:
                print(f"{what}: failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}", file=sys.stderr)
                return 1
            print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


def runtime() -> str:
    """Return the Python that Binder takes, as the name of its command."""
    return (CHECKOUT / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().replace("python-", "python")


def find_python() -> str | None:
    """Return a Python of that release: this one, or one on the path."""
    if runtime() == "python{}.{}".format(*sys.version_info[:2]):
        return sys.executable
    return shutil.which(runtime())


def copy_checkout(target: Path) -> None:
    """Copy what git would clone, with today's changes."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, target / name)


def environment(home: Path) -> dict[str, str]:
    """Return the variables of the fresh environment: nothing of the one this runs in."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER", "IPYTHON", "VIRTUAL_ENV"))}
    path = os.pathsep.join([str(home / "bin"), os.environ["PATH"]])
    return kept | {"PATH": path, "VIRTUAL_ENV": str(home)}


def execute(notebook: Path) -> list[str]:
    """Return the command that runs a notebook and ends with an error if a cell does."""
    convert = ["python", "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", "--log-level=ERROR"]
    return [*convert, str(notebook)]


if __name__ == "__main__":
    sys.exit(main())
